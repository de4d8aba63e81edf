"""Types of a public module. Made from the docstrings by ``python -m tests.stubs``."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nsds.solvers.faces.contact import MixedSolution

__all__ = [
    "CONTACT_FAMILIES",
    "FAMILIES",
    "ConstrainedSolution",
    "ContactProblem",
    "ContactSolution",
    "FclibFile",
    "FclibSolution",
    "GlobalContactSolution",
    "ImpactSolution",
    "InequalitySolution",
    "NonlinearSolution",
    "Problem",
    "ProgramSolution",
    "Solution",
    "SolverError",
    "all_solutions",
    "generate",
    "generate_contacts",
    "methods",
    "own_law",
    "profile",
    "profile_contacts",
    "read_contact_problem",
    "read_fclib",
    "read_problem",
    "solve_avi",
    "solve_fc2d",
    "solve_fc3d",
    "solve_generic",
    "solve_gfc2d",
    "solve_gfc3d",
    "solve_grfc3d",
    "solve_lcp",
    "solve_mcp",
    "solve_mlcp",
    "solve_multiple_impact",
    "solve_ncp",
    "solve_poisson_impact",
    "solve_qp",
    "solve_relay",
    "solve_rfc2d",
    "solve_rfc3d",
    "solve_soclcp",
    "solve_vi",
    "solver",
    "write_fclib",
]
CONTACT_FAMILIES: dict[str, Any]
FAMILIES: dict[str, Any]

class ConstrainedSolution(NamedTuple):
    z: np.ndarray
    w: np.ndarray
    status: int
    n_iter: int
    residual: float
    method: str
    multipliers: np.ndarray
    @property
    def success(self) -> bool: ...
    @property
    def message(self) -> str: ...

class ContactProblem(NamedTuple):
    name: str
    W: Any
    q: Any
    mu: Any
    mu_r: Any = ...
    M: Any = ...
    H: Any = ...
    f: Any = ...
    w: Any = ...
    @property
    def n_contacts(self) -> int: ...
    @property
    def d(self) -> int: ...
    @property
    def tangents(self) -> int: ...

class ContactSolution(NamedTuple):
    r: np.ndarray
    u: np.ndarray
    status: int
    n_iter: int
    res_q: float
    res_rho: float
    method: str
    state: np.ndarray
    @property
    def residual(self) -> float: ...
    @property
    def success(self) -> bool: ...
    @property
    def message(self) -> str: ...

class FclibFile(NamedTuple):
    problem: Any
    solution: Any
    guesses: list[Any]
    info: dict[str, Any]

class FclibSolution(NamedTuple):
    r: np.ndarray
    u: np.ndarray
    v: Any = ...

class GlobalContactSolution(NamedTuple):
    v: np.ndarray
    r: np.ndarray
    u: np.ndarray
    status: int
    n_iter: int
    res_q: float
    res_rho: float
    method: str
    state: np.ndarray
    @property
    def residual(self) -> float: ...
    @property
    def success(self) -> bool: ...
    @property
    def message(self) -> str: ...

class ImpactSolution(NamedTuple):
    v: np.ndarray | None
    u: np.ndarray
    P: np.ndarray
    status: int
    n_iter: int
    residual: float
    method: str
    @property
    def success(self) -> bool: ...
    @property
    def message(self) -> str: ...

class InequalitySolution(NamedTuple):
    z: np.ndarray
    w: np.ndarray
    status: int
    n_iter: int
    residual: float
    method: str
    multipliers: np.ndarray
    @property
    def success(self) -> bool: ...
    @property
    def message(self) -> str: ...

class NonlinearSolution(NamedTuple):
    z: np.ndarray
    w: np.ndarray
    status: int
    n_iter: int
    residual: float
    method: str
    @property
    def success(self) -> bool: ...
    @property
    def message(self) -> str: ...

class Problem(NamedTuple):
    name: str
    M: Any
    q: np.ndarray
    lower: Any = ...
    upper: Any = ...

class ProgramSolution(NamedTuple):
    z: np.ndarray
    w: np.ndarray
    status: int
    n_iter: int
    residual: float
    method: str
    multipliers: np.ndarray
    @property
    def success(self) -> bool: ...
    @property
    def message(self) -> str: ...

class Solution(NamedTuple):
    z: np.ndarray
    w: np.ndarray
    status: int
    n_iter: int
    residual: float
    method: str
    @property
    def success(self) -> bool: ...
    @property
    def message(self) -> str: ...

class SolverError(RuntimeError):
    solution: Any
    def __init__(self, solution: Any) -> None: ...

def all_solutions(
    M: ArrayLike | Any, q: ArrayLike, lower: float | ArrayLike = ..., upper: float | ArrayLike = ..., tol: float = ...
) -> np.ndarray: ...
def generate(family: str, n: int, seed: int = ..., kind: str = ...) -> Problem: ...
def generate_contacts(
    family: str, n_contacts: int, seed: int = ..., d: int = ..., mu: float | ArrayLike = ..., mu_r: float | ArrayLike | None = ...
) -> ContactProblem: ...
def methods(kind: str = ...) -> dict[str, str]: ...
def own_law(function: Callable[..., Any], *, tol: float | None = ..., max_iter: int | None = ..., inexact: float = ...) -> np.ndarray: ...
def profile(
    problems: PathLike[str] | Sequence[Any],
    methods: Sequence[str] | None = ...,
    *,
    tol: float = ...,
    max_iter: int | None = ...,
    seconds: float = ...,
) -> np.ndarray: ...
def profile_contacts(
    problems: PathLike[str] | Sequence[Any],
    methods: Sequence[str] | None = ...,
    *,
    tol: float = ...,
    max_iter: int | None = ...,
    seconds: float = ...,
) -> np.ndarray: ...
def read_contact_problem(file: str | PathLike[str]) -> ContactProblem: ...
def read_fclib(file: str | PathLike[str]) -> FclibFile: ...
def read_problem(file: str | PathLike[str]) -> Problem: ...
def solve_avi(
    M: ArrayLike | Any,
    q: ArrayLike,
    G: ArrayLike | Any,
    g: ArrayLike,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    z0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> ConstrainedSolution: ...
def solve_fc2d(
    W: ArrayLike | Any,
    q: ArrayLike,
    mu: float | ArrayLike,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> ContactSolution: ...
def solve_fc3d(
    W: ArrayLike | Any,
    q: ArrayLike,
    mu: float | ArrayLike,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> ContactSolution: ...
def solve_generic(
    M: ArrayLike | Any,
    q: ArrayLike,
    blocks: Sequence[Any],
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    z0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> MixedSolution: ...
def solve_gfc2d(
    M: ArrayLike | Any,
    H: ArrayLike | Any,
    q: ArrayLike,
    b: ArrayLike,
    mu: float | ArrayLike,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> GlobalContactSolution: ...
def solve_gfc3d(
    M: ArrayLike | Any,
    H: ArrayLike | Any,
    q: ArrayLike,
    b: ArrayLike,
    mu: float | ArrayLike,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> GlobalContactSolution: ...
def solve_grfc3d(
    M: ArrayLike | Any,
    H: ArrayLike | Any,
    q: ArrayLike,
    b: ArrayLike,
    mu: float | ArrayLike,
    mu_r: float | ArrayLike,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> GlobalContactSolution: ...
def solve_lcp(
    M: ArrayLike | Any,
    q: ArrayLike,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    z0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Solution: ...
def solve_mcp(
    F: Callable[..., Any],
    z0: ArrayLike,
    lower: float | ArrayLike = ...,
    upper: float | ArrayLike = ...,
    jac: Callable[..., Any] | None = ...,
    parameters: ArrayLike | None = ...,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    on_failure: str = ...,
    pattern: Any = ...,
) -> NonlinearSolution: ...
def solve_mlcp(
    M: ArrayLike | Any | None = ...,
    q: ArrayLike | None = ...,
    lower: float | ArrayLike | None = ...,
    upper: float | ArrayLike | None = ...,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    z0: ArrayLike | None = ...,
    on_failure: str = ...,
    *,
    A: ArrayLike | Any | None = ...,
    B: ArrayLike | Any | None = ...,
    C: ArrayLike | Any | None = ...,
    D: ArrayLike | Any | None = ...,
    a: ArrayLike | Any | None = ...,
    b: ArrayLike | Any | None = ...,
    **options: Any,
) -> Solution: ...
def solve_multiple_impact(
    M: ArrayLike | Any | None = ...,
    H: ArrayLike | Any | None = ...,
    v: ArrayLike | None = ...,
    e: float | ArrayLike | None = ...,
    stiffness: float | ArrayLike = ...,
    exponent: float = ...,
    *,
    mu: float | ArrayLike = ...,
    dimension: int = ...,
    W: ArrayLike | Any | None = ...,
    u: ArrayLike | Any | None = ...,
    tol: float = ...,
    on_failure: str = ...,
) -> ImpactSolution: ...
def solve_ncp(
    F: Callable[..., Any],
    z0: ArrayLike,
    jac: Callable[..., Any] | None = ...,
    parameters: ArrayLike | None = ...,
    method: str = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    on_failure: str = ...,
    pattern: Any = ...,
) -> NonlinearSolution: ...
def solve_poisson_impact(
    M: ArrayLike | Any | None = ...,
    H: ArrayLike | Any | None = ...,
    v: ArrayLike | None = ...,
    e: float | ArrayLike | None = ...,
    mu: float | ArrayLike = ...,
    *,
    dimension: int = ...,
    W: ArrayLike | Any | None = ...,
    u: ArrayLike | Any | None = ...,
    tol: float = ...,
    on_failure: str = ...,
) -> ImpactSolution: ...
def solve_qp(
    P: ArrayLike | Any,
    c: ArrayLike,
    G: ArrayLike | Any | None = ...,
    g: ArrayLike | Any | None = ...,
    A: ArrayLike | Any | None = ...,
    b: ArrayLike | Any | None = ...,
    lower: float | ArrayLike = ...,
    upper: float | ArrayLike = ...,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    z0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> ConstrainedSolution: ...
def solve_relay(
    M: ArrayLike | Any,
    q: ArrayLike,
    lower: float | ArrayLike = ...,
    upper: float | ArrayLike = ...,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    z0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Solution: ...
def solve_rfc2d(
    W: ArrayLike | Any,
    q: ArrayLike,
    mu: float | ArrayLike,
    mu_r: float | ArrayLike,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> ContactSolution: ...
def solve_rfc3d(
    W: ArrayLike | Any,
    q: ArrayLike,
    mu: float | ArrayLike,
    mu_r: float | ArrayLike,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> ContactSolution: ...
def solve_soclcp(
    M: ArrayLike | Any,
    q: ArrayLike,
    cones: Sequence[Any],
    mu: float | ArrayLike = ...,
    z0: ArrayLike | None = ...,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    on_failure: str = ...,
) -> NonlinearSolution: ...
def solve_vi(
    F: Callable[..., Any],
    z0: ArrayLike,
    lower: float | ArrayLike = ...,
    upper: float | ArrayLike = ...,
    G: ArrayLike | None = ...,
    g: ArrayLike | None = ...,
    A: ArrayLike | None = ...,
    b: ArrayLike | None = ...,
    cones: Sequence[Any] | None = ...,
    jac: Callable[..., Any] | None = ...,
    parameters: ArrayLike | None = ...,
    method: str | np.ndarray = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    on_failure: str = ...,
    pattern: Any = ...,
) -> InequalitySolution: ...
def solver(
    method: str | Callable[..., Any] = ...,
    *,
    tol: float | None = ...,
    max_iter: int | None = ...,
    weight: float | None = ...,
    block: int | None = ...,
    rho: float | None = ...,
    local: str = ...,
    seed: int | None = ...,
    freeze: int | None = ...,
    inexact: float = ...,
    work_size: Any = ...,
) -> np.ndarray: ...
def write_fclib(file: str | PathLike[str], problem: Any, solution: Any = ..., guesses: Sequence[Any] = ...) -> None: ...
