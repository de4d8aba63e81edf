"""Types of a public module. Made from the docstrings by ``python -m tests.stubs``."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

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
    def n_contacts(self) -> Any: ...
    @property
    def d(self) -> Any: ...
    @property
    def tangents(self) -> Any: ...

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
    def residual(self) -> Any: ...
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
    def residual(self) -> Any: ...
    @property
    def success(self) -> bool: ...
    @property
    def message(self) -> str: ...

class ImpactSolution(NamedTuple):
    v: Any
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

def all_solutions(
    M: ArrayLike | Any, q: ArrayLike, lower: float | ArrayLike = ..., upper: float | ArrayLike = ..., tol: float = ...
) -> np.ndarray: ...
def generate(family: str, n: int, seed: int = ..., kind: str = ...) -> Any: ...
def generate_contacts(
    family: str, n_contacts: int, seed: int = ..., d: int = ..., mu: float | ArrayLike = ..., mu_r: float | ArrayLike | None = ...
) -> Any: ...
def methods(kind: str = ...) -> Any: ...
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
def read_contact_problem(file: str | PathLike[str]) -> Any: ...
def read_fclib(file: str | PathLike[str]) -> Any: ...
def read_problem(file: str | PathLike[str]) -> Any: ...
def solve_avi(
    M: ArrayLike | Any,
    q: ArrayLike,
    G: ArrayLike | Any,
    g: ArrayLike,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    z0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Any: ...
def solve_fc2d(
    W: ArrayLike | Any,
    q: ArrayLike,
    mu: float | ArrayLike,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Any: ...
def solve_fc3d(
    W: ArrayLike | Any,
    q: ArrayLike,
    mu: float | ArrayLike,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Any: ...
def solve_generic(
    M: ArrayLike | Any,
    q: ArrayLike,
    blocks: Sequence[Any],
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    z0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Any: ...
def solve_gfc2d(
    M: ArrayLike | Any,
    H: ArrayLike | Any,
    q: ArrayLike,
    b: Any,
    mu: float | ArrayLike,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Any: ...
def solve_gfc3d(
    M: ArrayLike | Any,
    H: ArrayLike | Any,
    q: ArrayLike,
    b: ArrayLike,
    mu: float | ArrayLike,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Any: ...
def solve_grfc3d(
    M: ArrayLike | Any,
    H: ArrayLike | Any,
    q: ArrayLike,
    b: Any,
    mu: float | ArrayLike,
    mu_r: float | ArrayLike,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Any: ...
def solve_lcp(
    M: ArrayLike | Any,
    q: ArrayLike,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    z0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Any: ...
def solve_mcp(
    F: Any,
    z0: ArrayLike,
    lower: float | ArrayLike = ...,
    upper: float | ArrayLike = ...,
    jac: Any = ...,
    parameters: ArrayLike | None = ...,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    on_failure: str = ...,
    pattern: Any = ...,
) -> Any: ...
def solve_mlcp(
    M: ArrayLike | Any | None = ...,
    q: ArrayLike | None = ...,
    lower: float | ArrayLike | None = ...,
    upper: float | ArrayLike | None = ...,
    method: Any = ...,
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
) -> Any: ...
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
) -> Any: ...
def solve_ncp(
    F: Any,
    z0: ArrayLike,
    jac: Any = ...,
    parameters: ArrayLike | None = ...,
    method: str = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    on_failure: str = ...,
    pattern: Any = ...,
) -> Any: ...
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
) -> Any: ...
def solve_qp(
    P: ArrayLike | Any,
    c: ArrayLike,
    G: ArrayLike | Any | None = ...,
    g: ArrayLike | Any | None = ...,
    A: ArrayLike | Any | None = ...,
    b: ArrayLike | Any | None = ...,
    lower: float | ArrayLike = ...,
    upper: float | ArrayLike = ...,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    z0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Any: ...
def solve_relay(
    M: ArrayLike | Any,
    q: ArrayLike,
    lower: float | ArrayLike = ...,
    upper: float | ArrayLike = ...,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    z0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Any: ...
def solve_rfc2d(
    W: ArrayLike | Any,
    q: ArrayLike,
    mu: float | ArrayLike,
    mu_r: float | ArrayLike,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Any: ...
def solve_rfc3d(
    W: ArrayLike | Any,
    q: ArrayLike,
    mu: float | ArrayLike,
    mu_r: float | ArrayLike,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    r0: ArrayLike | None = ...,
    on_failure: str = ...,
    **options: Any,
) -> Any: ...
def solve_soclcp(
    M: ArrayLike | Any,
    q: ArrayLike,
    cones: Sequence[Any],
    mu: float | ArrayLike = ...,
    z0: ArrayLike | None = ...,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    on_failure: str = ...,
) -> Any: ...
def solve_vi(
    F: Any,
    z0: ArrayLike,
    lower: float | ArrayLike = ...,
    upper: float | ArrayLike = ...,
    G: ArrayLike | None = ...,
    g: ArrayLike | None = ...,
    A: ArrayLike | None = ...,
    b: ArrayLike | None = ...,
    cones: Sequence[Any] | None = ...,
    jac: Any = ...,
    parameters: ArrayLike | None = ...,
    method: Any = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    on_failure: str = ...,
    pattern: Any = ...,
) -> Any: ...
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
) -> Any: ...
def write_fclib(file: str | PathLike[str], problem: Any, solution: Any = ..., guesses: Any = ...) -> Any: ...
