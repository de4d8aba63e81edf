"""Types of the package. Made from the docstrings by ``python -m tests.stubs``."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nsds import analysis as analysis
from nsds import circuits as circuits
from nsds import examples as examples
from nsds import io as io
from nsds import joints as joints
from nsds import laws as laws
from nsds import plotting as plotting
from nsds import relations as relations
from nsds import rotations as rotations
from nsds import schemes as schemes
from nsds import shapes as shapes
from nsds import solvers as solvers
from nsds import status as status
from nsds.analysis.basin_maps import Basins
from nsds.analysis.maps import IteratedMap
from nsds.pictures.viewing import Viewer
from nsds.results.description import Description
from nsds.schemes.first_order.relative_degree import RelativeDegree
from nsds.schemes.run.problem_capture import OneStepProblem

__all__ = [
    "SimulationError",
    "SimulationInterrupted",
    "advice",
    "analysis",
    "basins",
    "circuit",
    "circuits",
    "collisions",
    "complementarity",
    "compliant",
    "consistent",
    "contact_intervals",
    "contact_point",
    "continue_bifurcation",
    "continue_equilibrium",
    "continue_orbit",
    "d1_minus_linear",
    "describe",
    "dry_friction",
    "energy",
    "equality",
    "equilibrium",
    "euler_moreau",
    "event_driven",
    "examples",
    "first_order",
    "first_order_linear",
    "first_order_linear_relation",
    "first_order_relation",
    "floquet",
    "force_law",
    "fremond_impact",
    "generalised_alpha",
    "gradient",
    "higher_order_sweeping",
    "in_plane",
    "interaction",
    "io",
    "iterated_map",
    "joints",
    "lagrangian",
    "lagrangian_linear",
    "lagrangian_linear_relation",
    "lagrangian_modal",
    "lagrangian_relation",
    "laws",
    "linear_complementarity_system",
    "lyapunov",
    "mixed_complementarity",
    "moreau_jean",
    "moreau_jean_combined_projection",
    "moreau_jean_direct_projection",
    "moreau_jean_exact",
    "multiple_impact",
    "multiple_impact_friction",
    "newton_euler_relation",
    "newton_impact",
    "newton_impact_friction",
    "newton_impact_rolling_friction",
    "newton_impact_spinning_friction",
    "normal_cone",
    "one_step_problems",
    "orbit",
    "planar_bodies",
    "plotting",
    "poisson_impact",
    "poisson_impact_friction",
    "prescribed_velocity",
    "rattle",
    "rays",
    "read_system",
    "read_trajectory",
    "relations",
    "relative_degree",
    "relay",
    "report",
    "restart",
    "resume",
    "rheonomous",
    "rigid_bodies",
    "robot",
    "rotations",
    "sampled_control",
    "schatzman_paoli",
    "schemes",
    "scleronomous",
    "sensitivity",
    "shapes",
    "simulate",
    "solvers",
    "spring_damper",
    "status",
    "step",
    "stepper",
    "stream",
    "sweep",
    "system",
    "to_pandas",
    "to_vtkhdf",
    "to_xarray",
    "type1_relation",
    "type2_relation",
    "view",
    "zero_order_hold",
]
__version__: str

class SimulationError(RuntimeError):
    trajectory: np.ndarray
    member: Any
    step: int
    t: float
    status: int
    residual: float
    cause: str
    def __init__(
        self, trajectory: np.ndarray, member: Any, step: int, t: float, status: int, residual: float, cause: str = ...
    ) -> None: ...

class SimulationInterrupted(KeyboardInterrupt):
    trajectory: np.ndarray
    n_rows: int
    place: Any
    def __init__(self, trajectory: np.ndarray, n_rows: int, place: Any) -> None: ...

def advice(status: int) -> str: ...
def basins(
    system: np.ndarray | Any,
    *,
    grid: dict[str, Any],
    period: float | None = ...,
    transient: int = ...,
    keep: int = ...,
    tol: float = ...,
    scheme: np.ndarray | None = ...,
    h: float | None = ...,
    progress: bool | None = ...,
) -> Basins: ...
def circuit(
    netlist: str | PathLike[str] | Sequence[Any], params: dict[str, Any] | None = ..., *, integrals: Sequence[str] = ..., t: float = ...
) -> np.ndarray: ...
def collisions(
    shapes: dict[str, Any],
    law: dict[str, Any],
    *,
    world: dict[str, Any] | Sequence[Any] = ...,
    materials: dict[str, Any] | Sequence[Any] | None = ...,
    surface_velocity: dict[str, Any] | None = ...,
    pairs: Sequence[Any] | None = ...,
    margin: float = ...,
    capacity: int | None = ...,
    enabled: bool | ArrayLike | None = ...,
    on_contact: Callable[..., Any] | None = ...,
    z: ArrayLike | None = ...,
) -> dict[str, Any]: ...
def complementarity() -> dict[str, Any]: ...
def compliant(
    h: Callable[..., Any], H: Callable[..., Any] | None = ..., D: Callable[..., Any] | None = ..., *, m: int, z: ArrayLike | None = ...
) -> dict[str, Any]: ...
def consistent(system: np.ndarray, tol: float = ..., max_rounds: int = ..., *, functions: Sequence[Any] | None = ...) -> np.ndarray: ...
def contact_intervals(system: np.ndarray | dict[str, Any], trajectory: np.ndarray, name: str) -> np.ndarray: ...
def contact_point(gap: Callable[..., Any], z: ArrayLike | None = ...) -> dict[str, Any]: ...
def continue_bifurcation(
    system: np.ndarray,
    *,
    kind: str,
    parameters: Sequence[Any],
    until: float,
    period: float | Callable[..., Any] | None = ...,
    n_periods: int = ...,
    step: float = ...,
    smallest_step: float = ...,
    max_points: int = ...,
    tol: float = ...,
    scheme: np.ndarray | None = ...,
) -> np.ndarray: ...
def continue_equilibrium(
    system: np.ndarray,
    *,
    parameter: str,
    until: float,
    step: float = ...,
    smallest_step: float = ...,
    max_points: int = ...,
    tol: float = ...,
) -> np.ndarray: ...
def continue_orbit(
    system: np.ndarray,
    *,
    parameter: str,
    until: float,
    period: float | Callable[..., Any] | None = ...,
    n_periods: int = ...,
    step: float = ...,
    smallest_step: float = ...,
    max_points: int = ...,
    tol: float = ...,
    corners: ArrayLike = ...,
    switch: int = ...,
    scheme: np.ndarray | None = ...,
) -> np.ndarray: ...
def d1_minus_linear(level: str = ...) -> np.ndarray: ...
def describe(
    what: np.ndarray | dict[str, Any], *, h: float | None = ..., scheme: np.ndarray | None = ..., solver: np.ndarray | None = ...
) -> Description: ...
def dry_friction(limit: float | ArrayLike) -> dict[str, Any]: ...
def energy(
    system: np.ndarray | dict[str, Any], trajectory: np.ndarray, theta: float = ..., *, functions: Sequence[Any] | None = ...
) -> np.ndarray: ...
def equality() -> dict[str, Any]: ...
def equilibrium(
    system: np.ndarray,
    *,
    tol: float = ...,
    max_iter: int = ...,
    h: float | None = ...,
    solver: str | np.ndarray | None = ...,
    on_failure: str = ...,
    functions: Sequence[Any] | None = ...,
) -> np.ndarray: ...
def euler_moreau(
    theta: float = ...,
    gamma: float = ...,
    gamma_for_relation: bool = ...,
    midpoint: bool = ...,
    newton_tol: float = ...,
    newton_max_iter: int = ...,
) -> np.ndarray: ...
def event_driven(
    rtol: float = ...,
    atol: float = ...,
    flow: str = ...,
    accumulation: float = ...,
    max_events: int = ...,
    time_events: ArrayLike = ...,
    hybrid: bool | None = ...,
) -> np.ndarray: ...
def first_order(
    f: Callable[..., Any],
    jac_f: Callable[..., Any] | None = ...,
    M: ArrayLike | None = ...,
    *,
    x: ArrayLike,
    z: ArrayLike | None = ...,
    T: ArrayLike | Callable[..., Any] | None = ...,
    u: ArrayLike | Callable[..., Any] | None = ...,
    n_u: int | None = ...,
    count: int | None = ...,
    jac_sparsity: ArrayLike | Any | None = ...,
) -> dict[str, Any]: ...
def first_order_linear(
    A: ArrayLike | Any | Callable[..., Any],
    b: ArrayLike | Callable[..., Any] | None = ...,
    M: ArrayLike | Any | None = ...,
    *,
    x: ArrayLike,
    z: ArrayLike | None = ...,
    T: ArrayLike | Callable[..., Any] | None = ...,
    u: ArrayLike | Callable[..., Any] | None = ...,
    n_u: int | None = ...,
    count: int | None = ...,
) -> dict[str, Any]: ...
def first_order_linear_relation(
    C: ArrayLike | Any | Callable[..., Any],
    B: ArrayLike | Any | Callable[..., Any],
    D: ArrayLike | Any | Callable[..., Any] | None = ...,
    e: ArrayLike | Callable[..., Any] | None = ...,
    F: ArrayLike | Callable[..., Any] | None = ...,
    *,
    bounds: Callable[..., Any] | None = ...,
    z: ArrayLike | None = ...,
    m: int | None = ...,
) -> dict[str, Any]: ...
def first_order_relation(
    h: Callable[..., Any],
    g: Callable[..., Any],
    *,
    m: int,
    C: Callable[..., Any] | None = ...,
    D: Callable[..., Any] | None = ...,
    K: Callable[..., Any] | None = ...,
    B: Callable[..., Any] | None = ...,
    z: ArrayLike | None = ...,
) -> dict[str, Any]: ...
def floquet(
    system: np.ndarray | Any,
    *,
    period: float | None = ...,
    n_periods: int = ...,
    scheme: np.ndarray | None = ...,
    h: float | None = ...,
    n_multipliers: int | None = ...,
) -> np.ndarray: ...
def force_law(force: Callable[..., Any], z: ArrayLike | None = ...) -> dict[str, Any]: ...
def fremond_impact(e: float | ArrayLike, mu: float | ArrayLike, dimension: int | None = ...) -> dict[str, Any]: ...
def generalised_alpha(
    rho: float = ..., newton_tol: float = ..., newton_max_iter: int = ..., constraint_tol: float = ..., max_rounds: int = ...
) -> np.ndarray: ...
def gradient(
    system: np.ndarray,
    *,
    t_end: float,
    objective: Callable[..., Any],
    parameters: Sequence[str] = ...,
    rows: int = ...,
    scheme: np.ndarray | None = ...,
    h: float | None = ...,
) -> np.ndarray: ...
def higher_order_sweeping() -> np.ndarray: ...
def in_plane(bodies: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...
def interaction(relation: dict[str, Any], law: dict[str, Any], on: str, *, enabled: bool | ArrayLike | None = ...) -> dict[str, Any]: ...
def iterated_map(
    f: Callable[..., Any],
    x: ArrayLike,
    p: ArrayLike = ...,
    jac: Callable[..., Any] | None = ...,
    modulo: ArrayLike | None = ...,
    border: Callable[..., Any] | None = ...,
) -> IteratedMap: ...
def lagrangian(
    mass: ArrayLike | Callable[..., Any],
    fint: Callable[..., Any] | None = ...,
    fgyr: Callable[..., Any] | None = ...,
    fext: ArrayLike | Callable[..., Any] | None = ...,
    jac_q: Callable[..., Any] | None = ...,
    jac_v: Callable[..., Any] | None = ...,
    *,
    q: ArrayLike,
    v: ArrayLike,
    z: ArrayLike | None = ...,
    T: ArrayLike | Callable[..., Any] | None = ...,
    u: ArrayLike | Callable[..., Any] | None = ...,
    n_u: int | None = ...,
    count: int | None = ...,
    jac_sparsity: ArrayLike | Any | None = ...,
) -> dict[str, Any]: ...
def lagrangian_linear(
    M: ArrayLike | Any,
    K: ArrayLike | Any | None = ...,
    C: ArrayLike | Any | None = ...,
    fext: ArrayLike | Callable[..., Any] | None = ...,
    *,
    q: ArrayLike,
    v: ArrayLike,
    z: ArrayLike | None = ...,
    count: int | None = ...,
) -> dict[str, Any]: ...
def lagrangian_linear_relation(H: ArrayLike | Any, b: ArrayLike | None = ..., D: ArrayLike | Any | None = ...) -> dict[str, Any]: ...
def lagrangian_modal(
    omega: ArrayLike,
    sigma: float | ArrayLike = ...,
    mass: float | ArrayLike = ...,
    fext: ArrayLike | Callable[..., Any] | None = ...,
    *,
    q: ArrayLike,
    v: ArrayLike,
    z: ArrayLike | None = ...,
    count: int | None = ...,
) -> dict[str, Any]: ...
def lagrangian_relation(
    h: Callable[..., Any],
    g: Callable[..., Any],
    H: Callable[..., Any] | None = ...,
    D: Callable[..., Any] | None = ...,
    B: Callable[..., Any] | None = ...,
    *,
    m: int,
    z: ArrayLike | None = ...,
) -> dict[str, Any]: ...
def linear_complementarity_system(
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None = ...,
    *,
    x: ArrayLike,
    b: ArrayLike | Callable[..., Any] | None = ...,
    e: ArrayLike | Callable[..., Any] | None = ...,
    M: ArrayLike | None = ...,
    law: dict[str, Any] | None = ...,
    t: float = ...,
) -> np.ndarray: ...
def lyapunov(
    system: np.ndarray | Any,
    *,
    period: float | ArrayLike | None = ...,
    n_periods: int = ...,
    transient: int = ...,
    n_exponents: int | None = ...,
    blocks: int = ...,
    scheme: np.ndarray | None = ...,
    h: float | None = ...,
) -> np.ndarray: ...
def mixed_complementarity(n_equalities: int) -> dict[str, Any]: ...
def moreau_jean(
    theta: float = ...,
    gamma: float = ...,
    q_star: float = ...,
    newton_tol: float = ...,
    newton_max_iter: int = ...,
    form: str = ...,
    update: str = ...,
    pre_impact: str = ...,
) -> np.ndarray: ...
def moreau_jean_combined_projection(
    theta: float = ...,
    gamma: float = ...,
    q_star: float = ...,
    newton_tol: float = ...,
    newton_max_iter: int = ...,
    constraint_tol: float = ...,
    max_rounds: int = ...,
    metric: str = ...,
) -> np.ndarray: ...
def moreau_jean_direct_projection(
    theta: float = ...,
    gamma: float = ...,
    q_star: float = ...,
    newton_tol: float = ...,
    newton_max_iter: int = ...,
    constraint_tol: float = ...,
    max_rounds: int = ...,
    contacts: str = ...,
    metric: str = ...,
) -> np.ndarray: ...
def moreau_jean_exact(gamma: float = ...) -> np.ndarray: ...
def multiple_impact(e: float | ArrayLike, stiffness: float | ArrayLike = ..., exponent: float = ...) -> dict[str, Any]: ...
def multiple_impact_friction(
    e: float | ArrayLike, mu: float | ArrayLike, stiffness: float | ArrayLike = ..., exponent: float = ..., dimension: int | None = ...
) -> dict[str, Any]: ...
def newton_euler_relation(
    h: Callable[..., Any], jac: Callable[..., Any] | None = ..., h_t: Callable[..., Any] | None = ..., *, m: int, z: ArrayLike | None = ...
) -> dict[str, Any]: ...
def newton_impact(e: float | ArrayLike) -> dict[str, Any]: ...
def newton_impact_friction(
    e_n: float | ArrayLike, mu: float | ArrayLike, e_t: float | ArrayLike = ..., dimension: int | None = ...
) -> dict[str, Any]: ...
def newton_impact_rolling_friction(
    e_n: float | ArrayLike, mu: float | ArrayLike, mu_r: float | ArrayLike, e_t: float | ArrayLike = ..., dimension: int | None = ...
) -> dict[str, Any]: ...
def newton_impact_spinning_friction(
    e_n: float | ArrayLike, mu: float | ArrayLike, mu_s: float | ArrayLike, e_t: float | ArrayLike = ...
) -> dict[str, Any]: ...
def normal_cone(G: ArrayLike, g: ArrayLike) -> dict[str, Any]: ...
def one_step_problems(
    system: np.ndarray | dict[str, Any],
    *,
    t_end: float,
    h: float,
    scheme: np.ndarray | None = ...,
    solver: str | np.ndarray | None = ...,
    every: int = ...,
    functions: Sequence[Any] | None = ...,
) -> Iterator[OneStepProblem]: ...
def orbit(
    system: np.ndarray,
    *,
    period: float | None = ...,
    free_period: bool = ...,
    n_periods: int = ...,
    settle: int = ...,
    tol: float = ...,
    max_iter: int = ...,
    scheme: np.ndarray | None = ...,
    h: float | None = ...,
    n_multipliers: int | None = ...,
) -> np.ndarray: ...
def planar_bodies(
    mass: float | ArrayLike,
    inertia: float | ArrayLike,
    q: ArrayLike,
    v: ArrayLike,
    fext: ArrayLike | Callable[..., Any] | None = ...,
    mext: float | ArrayLike | Callable[..., Any] | None = ...,
    *,
    T: ArrayLike | None = ...,
    u: ArrayLike | None = ...,
    u_frame: str = ...,
    alive: bool | ArrayLike | None = ...,
    z: ArrayLike | None = ...,
    count: int | None = ...,
) -> dict[str, Any]: ...
def poisson_impact(e: float | ArrayLike) -> dict[str, Any]: ...
def poisson_impact_friction(e: float | ArrayLike, mu: float | ArrayLike, dimension: int | None = ...) -> dict[str, Any]: ...
def prescribed_velocity(
    dofs: ArrayLike,
    velocity: float | ArrayLike | Callable[..., Any] = ...,
    *,
    amplitude: float | ArrayLike | None = ...,
    omega: float | ArrayLike | None = ...,
    phase: float | ArrayLike = ...,
    z: ArrayLike | None = ...,
) -> dict[str, Any]: ...
def rattle(newton_tol: float = ..., newton_max_iter: int = ...) -> np.ndarray: ...
def rays(
    system: np.ndarray | dict[str, Any],
    origins: ArrayLike,
    directions: ArrayLike,
    *,
    name: str | None = ...,
    reach: float = ...,
    ignore: str | int | Sequence[Any] = ...,
) -> np.ndarray: ...
def read_system(file: str | PathLike[str]) -> np.ndarray: ...
def read_trajectory(file: str | PathLike[str], fields: Sequence[str] | None = ..., rows: int | slice = ...) -> np.ndarray: ...
def relative_degree(system: np.ndarray | dict[str, Any]) -> RelativeDegree: ...
def relay(lower: float | ArrayLike | None = ..., upper: float | ArrayLike | None = ...) -> dict[str, Any]: ...
def report(
    system: np.ndarray, trajectory: np.ndarray, *, theta: float | None = ..., file: Any = ..., functions: Sequence[Any] | None = ...
) -> None: ...
def restart(system: np.ndarray, row: np.void | np.ndarray) -> np.ndarray: ...
def resume(
    file: str | PathLike[str],
    *,
    t_end: float | None = ...,
    progress: bool | None = ...,
    on_failure: str | None = ...,
    until: str | Callable[..., Any] | None = ...,
    callback: Callable[..., Any] | None = ...,
    callback_every: int = ...,
    check: bool = ...,
    functions: Sequence[Any] | None = ...,
) -> np.ndarray: ...
def rheonomous(
    h: Callable[..., Any], H: Callable[..., Any] | None = ..., h_t: Callable[..., Any] | None = ..., *, m: int, z: ArrayLike | None = ...
) -> dict[str, Any]: ...
def rigid_bodies(
    mass: float | ArrayLike,
    inertia: float | ArrayLike,
    q: ArrayLike,
    v: ArrayLike,
    fext: ArrayLike | Callable[..., Any] | None = ...,
    mext: ArrayLike | Callable[..., Any] | None = ...,
    *,
    frame: str = ...,
    fint: Callable[..., Any] | None = ...,
    mint: Callable[..., Any] | None = ...,
    jac_q: Callable[..., Any] | None = ...,
    jac_v: Callable[..., Any] | None = ...,
    C: ArrayLike | None = ...,
    K: ArrayLike | None = ...,
    T: ArrayLike | None = ...,
    u: ArrayLike | None = ...,
    u_frame: str = ...,
    alive: bool | ArrayLike | None = ...,
    z: ArrayLike | None = ...,
    count: int | None = ...,
) -> dict[str, Any]: ...
def robot(
    urdf: str | PathLike[str],
    *,
    q: dict[str, Any] | None = ...,
    v: dict[str, Any] | None = ...,
    position: ArrayLike = ...,
    orientation: ArrayLike = ...,
    fixed: bool = ...,
    motors: dict[str, Any] | None = ...,
    e: float = ...,
    law: dict[str, Any] | None = ...,
    world: dict[str, Any] | Sequence[Any] = ...,
    self_contacts: bool = ...,
    folder: PathLike[str] | None = ...,
) -> dict[str, Any]: ...
def sampled_control(
    control: Callable[..., Any],
    *,
    reads: str | Sequence[str],
    writes: str | Sequence[str],
    start: Callable[..., Any] | None = ...,
    period: float | None = ...,
    state: ArrayLike | None = ...,
    z: ArrayLike | None = ...,
) -> dict[str, Any]: ...
def schatzman_paoli(theta: float = ..., gamma: float = ..., newton_tol: float = ..., newton_max_iter: int = ...) -> np.ndarray: ...
def scleronomous(h: Callable[..., Any], H: Callable[..., Any] | None = ..., *, m: int, z: ArrayLike | None = ...) -> dict[str, Any]: ...
def sensitivity(
    system: np.ndarray,
    *,
    t_end: float | ArrayLike,
    parameters: Sequence[str] = ...,
    objective: Callable[..., Any] | None = ...,
    rows: int | None = ...,
    scheme: np.ndarray | None = ...,
    h: float | None = ...,
) -> np.ndarray: ...
def simulate(
    system: np.ndarray,
    *,
    t_end: float,
    h: float | ArrayLike,
    scheme: np.ndarray | dict[str, Any] | None = ...,
    solver: str | np.ndarray | None = ...,
    save_every: int = ...,
    t_eval: ArrayLike | None = ...,
    fields: Sequence[str] | None = ...,
    progress: bool | None = ...,
    on_failure: str = ...,
    until: str | Callable[..., Any] | None = ...,
    callback: Callable[..., Any] | None = ...,
    callback_every: int = ...,
    out: np.ndarray | None = ...,
    check: bool = ...,
    functions: Sequence[Any] | None = ...,
    store: str | PathLike[str] | None = ...,
    client: Any = ...,
    mapped: bool = ...,
) -> np.ndarray: ...
def spring_damper(stiffness: float | ArrayLike, damping: float | ArrayLike = ...) -> dict[str, Any]: ...
def step(
    system: np.ndarray,
    h: float,
    *,
    scheme: np.ndarray | None = ...,
    solver: str | np.ndarray | None = ...,
    on_failure: str = ...,
    check: bool = ...,
    functions: Sequence[Any] | None = ...,
) -> np.ndarray: ...
def stepper(
    system: np.ndarray,
    h: float,
    *,
    scheme: np.ndarray | None = ...,
    solver: str | np.ndarray | None = ...,
    on_failure: str = ...,
    functions: Sequence[Any] | None = ...,
) -> Callable[..., Any]: ...
def stream(
    system: np.ndarray,
    file: str | PathLike[str],
    *,
    t_end: float,
    h: float,
    scheme: np.ndarray | None = ...,
    solver: str | np.ndarray | None = ...,
    save_every: int = ...,
    t_eval: ArrayLike | None = ...,
    fields: Sequence[str] | None = ...,
    progress: bool | None = ...,
    on_failure: str = ...,
    until: str | Callable[..., Any] | None = ...,
    callback: Callable[..., Any] | None = ...,
    callback_every: int = ...,
    overwrite: bool = ...,
    check: bool = ...,
    functions: Sequence[Any] | None = ...,
) -> np.ndarray: ...
def sweep(
    system: np.ndarray | Any,
    *,
    vary: dict[str, Any],
    period: float | Callable[..., Any] | None = ...,
    record: str | Callable[..., Any] = ...,
    crossing: int = ...,
    transient: int = ...,
    keep: int = ...,
    direction: Sequence[Any] | None = ...,
    tol: float = ...,
    scheme: np.ndarray | None = ...,
    store: str | PathLike[str] | None = ...,
    client: Any = ...,
    mapped: bool = ...,
    progress: bool | None = ...,
) -> np.ndarray: ...
def system(*, t: float = ..., gravity: ArrayLike | None = ..., **parts: Any) -> np.ndarray: ...
def to_pandas(trajectory: np.ndarray) -> Any: ...
def to_vtkhdf(
    system: np.ndarray | dict[str, Any],
    trajectory: np.ndarray,
    path: str | PathLike[str],
    *,
    contacts: str | PathLike[str] | None = ...,
    shapes: dict[str, Any] | None = ...,
    extent: float | None = ...,
    overwrite: bool = ...,
) -> Any: ...
def to_xarray(trajectory: np.ndarray) -> Any: ...
def type1_relation(
    h: Callable[..., Any],
    g: Callable[..., Any],
    *,
    m: int,
    C: Callable[..., Any] | None = ...,
    B: Callable[..., Any] | None = ...,
    z: ArrayLike | None = ...,
) -> dict[str, Any]: ...
def type2_relation(
    h: Callable[..., Any],
    g: Callable[..., Any],
    *,
    m: int,
    C: Callable[..., Any] | None = ...,
    D: Callable[..., Any] | None = ...,
    B: Callable[..., Any] | None = ...,
    z: ArrayLike | None = ...,
) -> dict[str, Any]: ...
def view(
    system: np.ndarray | dict[str, Any],
    trajectory: np.ndarray | None = ...,
    *,
    port: int = ...,
    shapes: dict[str, Any] | None = ...,
    fps: float = ...,
    host: str = ...,
) -> Viewer: ...
def zero_order_hold() -> np.ndarray: ...
