"""The table of methods: a new solver is one module and one line here."""

from types import SimpleNamespace

import numpy as np
from numba.core.errors import NumbaError

from nsds import _checks, _jit
from nsds.solvers import lcp_auto, lcp_enumerate, lcp_lemke, lcp_newton_min, lcp_pgs, lcp_proximal
from nsds.solvers.signature import SOLVER

_TABLE = (
    ("lcp_auto", lcp_auto, "Newton-min; where it fails, proximal, Lemke, enumeration (n <= 10) or projected Gauss-Seidel"),
    ("lcp_newton_min", lcp_newton_min, "P-matrix, or positive semidefinite and consistent; linear in n for chains"),
    ("lcp_proximal", lcp_proximal, "positive semidefinite and consistent; linear in n for chains"),
    ("lcp_lemke", lcp_lemke, "copositive plus or P; dense, 16 n^2 bytes"),
    ("lcp_pgs", lcp_pgs, "symmetric positive semidefinite or diagonally dominant; any bounds"),
    ("lcp_enumerate", lcp_enumerate, "any matrix; n <= 20, 2^n bases"),
)
METHODS = {name: module for name, module, _ in _TABLE}
ASSUMPTIONS = {name: text for name, _, text in _TABLE}

OPTIONS = np.dtype([("method", "S32"), ("tol", "<f8"), ("max_iter", "<i8")])


def solver(method="lcp_auto", *, tol=1e-10, max_iter=0, work_size=(0, 0)):
    """Choice of a solver and its options, as a record that `nsds.simulate` and `nsds.solvers.solve_lcp` take.

    Parameters
    ----------
    method : str or function
        A name from `methods`, or a function of your own with the arguments of `nsds.solvers.signature`; it is compiled at once, and
        its last line should be ``return conclude(...)`` so that only the residual says converged.
    tol : float
        Largest residual (`nsds.solvers.signature.residual`) that counts as converged.
    max_iter : int
        Iteration limit; 0 for the method's own.
    work_size : (int, int)
        Of a function of your own: floats and integers of scratch that it needs for each unknown.

    Raises
    ------
    ValueError
        Unknown name, tol or max_iter out of range.
    TypeError
        The function has other arguments, or does not compile.

    Examples
    --------
    >>> import nsds
    >>> nsds.solvers.solver("lcp_pgs", tol=1e-8)["method"].item()
    b'lcp_pgs'
    """
    if callable(method):
        method = _add_own(method, work_size)
    if method not in METHODS:
        raise ValueError(f"solver: method must be one of {', '.join(METHODS)}, got {method!r}")
    record = np.zeros((), OPTIONS)
    record["method"] = method.encode()
    record["tol"] = _checks.number("solver", "tol", tol, above=0.0)
    record["max_iter"] = _checks.integer("solver", "max_iter", max_iter, low=0)
    return record


def _add_own(function, work_size):
    """Compile a user's solver and put it into the table under its name and identity."""
    wanted = "solver(row, column, M, q, lower, upper, options, z, w, info, work, iwork)"
    floats, integers = (_checks.integer("solver", "work_size", size, low=0) for size in work_size)
    name = f"{function.__name__[:8]}#{id(function):x}:{floats},{integers}"
    try:
        compiled = _jit.callback(SOLVER, function)
    except (NumbaError, TypeError) as error:
        raise TypeError(f"solver: the function {function.__name__} does not compile as {wanted}, returning a status: {error}") from error
    own = {name: _jit.uncached(function), "own": compiled}
    METHODS[name] = SimpleNamespace(work_size=lambda n, row, column: (floats * n, integers * n), **own)
    return name


def chosen(options):
    """(name, module, kernel options) of what a caller passed: None, a method's name, a function, or a record from `solver`."""
    if options is None or isinstance(options, str) or callable(options):
        options = solver() if options is None else solver(options)
    if not isinstance(options, (np.ndarray, np.void)) or options.dtype != OPTIONS:
        raise TypeError(f"solver: expected a method's name, a function or a record from nsds.solvers.solver, got {options!r}")
    name = options["method"].item().decode()
    return name, METHODS[name], np.array([options["tol"].item(), float(options["max_iter"].item())])


def methods():
    """Names of the methods, and what each assumes of the problem.

    Examples
    --------
    >>> import nsds
    >>> nsds.solvers.methods()["lcp_enumerate"]
    'any matrix; n <= 20, 2^n bases'
    """
    return dict(ASSUMPTIONS)


def address(name):
    """Address of a method's compiled code, for kernels that call it."""
    module = METHODS[name]
    return module.own.address if hasattr(module, "own") else _jit.address(SOLVER, getattr(module, name))
