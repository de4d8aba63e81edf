"""The table of methods: a new solver is one module and one line here."""

from functools import cache
from typing import NamedTuple

import numpy as np
from numba.core.errors import NumbaError

from nsds import _checks, _jit
from nsds.solvers import (
    auto,
    cao_ferris,
    cpg,
    direct,
    enumeration,
    forms,
    gauss_seidel,
    interior_point,
    latin,
    lemke,
    murty,
    newton_fb,
    newton_min,
    proximal,
    qp,
)
from nsds.solvers.signature import SOLVER


class Method(NamedTuple):
    """A solver: its kernel (or a compiled callback), the scratch it needs, what it assumes of the problem, the kinds it treats."""

    kernel: object
    work_size: object
    assumes: str
    kinds: tuple = ("lcp", "mlcp", "relay", "avi")
    reorders: bool = False  # gains from unknowns in an order that keeps M close to its diagonal


METHODS = {
    "auto": Method(
        auto.auto, auto.work_size, "nothing; newton_min or direct first, then up to five others; see the result's method", reorders=True
    ),
    "direct": Method(direct.direct, direct.work_size, "a guess that says which z are at their bounds; one factorisation", reorders=True),
    "newton_min": Method(
        newton_min.newton_min, newton_min.work_size, "P, or positive semidefinite and consistent; linear in n for chains", reorders=True
    ),
    "proximal": Method(
        proximal.proximal, proximal.work_size, "positive semidefinite and consistent; linear in n for chains", reorders=True
    ),
    "lemke": Method(lemke.lemke, lemke.work_size, "copositive plus or P or bounded; dense, 8 n^2 bytes"),
    "murty": Method(murty.murty, murty.work_size, "P; dense, 8 n^2 bytes"),
    "bard": Method(murty.bard, murty.work_size, "P; dense, 8 n^2 bytes"),
    "cao_ferris": Method(cao_ferris.cao_ferris, cao_ferris.work_size, "copositive plus on the recession cone; dense", ("avi",)),
    "enumerate": Method(enumeration.enumeration, enumeration.work_size, "any matrix; up to 2^20 bases"),
    "newton_fb": Method(newton_fb.newton_fb, newton_fb.work_size, "P0 and regular, but often more; a band of M", reorders=True),
    "interior_point": Method(interior_point.interior_point, interior_point.work_size, "positive semidefinite; a band of M", reorders=True),
    "qp": Method(qp.qp, qp.work_size, "symmetric positive semidefinite; a band of M", ("lcp", "mlcp", "relay"), reorders=True),
    "pgs": Method(gauss_seidel.pgs, gauss_seidel.work_size, "symmetric positive semidefinite or diagonally dominant"),
    "psor": Method(gauss_seidel.psor, gauss_seidel.work_size, "symmetric positive definite; weight: omega in (0, 2)"),
    "rpgs": Method(gauss_seidel.rpgs, gauss_seidel.work_size, "symmetric positive semidefinite; weight: regularisation"),
    "nsgs": Method(gauss_seidel.nsgs, gauss_seidel.nsgs_work_size, "symmetric positive definite; block: unknowns of a block"),
    "cpg": Method(cpg.cpg, cpg.work_size, "symmetric positive definite", ("lcp", "mlcp", "relay")),
    "latin": Method(latin.latin, latin.work_size, "positive semidefinite; a band of M; weight: search direction", reorders=True),
}
_OWN = {}  # solvers that users brought

OPTIONS = np.dtype([("method", "S32"), ("tol", "<f8"), ("max_iter", "<i8"), ("weight", "<f8"), ("block", "<i8")])


def solver(method="auto", *, tol=1e-10, max_iter=None, weight=None, block=None, work_size=(0, 0)):
    """Choice of a solver and its options, as a record that `nsds.simulate` and `nsds.solvers.solve_lcp` take.

    Parameters
    ----------
    method : str or function
        A name from `methods`, or a function of your own with the arguments of `nsds.solvers.signature`; it is compiled at once, and
        its last line should be ``return conclude(...)`` so that only the residual says converged.
    tol : float
        Largest residual (`nsds.solvers.signature.residual`) that counts as converged.
    max_iter : int, optional
        Iteration limit; the method's own, if not given.
    weight : float, optional
        Of the methods that have one: omega of psor, the regularisation of rpgs, the search direction of latin.
    block : int, optional
        Unknowns of a block of nsgs.
    work_size : (int, int)
        Of a function of your own: floats and integers of scratch that it needs for each unknown.

    Raises
    ------
    ValueError
        Unknown name; tol, max_iter, weight or block out of range.
    TypeError
        The function has other arguments, or does not compile.

    Examples
    --------
    >>> import nsds
    >>> nsds.solvers.solver("pgs", tol=1e-8)["method"].item()
    b'pgs'
    """
    if callable(method):
        method = _add_own(method, work_size)
    if method not in METHODS and method not in _OWN:
        raise ValueError(f"solver: method must be one of {', '.join(METHODS)}, got {method!r}")
    record = np.zeros((), OPTIONS)
    record["method"] = method.encode()
    record["tol"] = _checks.number("solver", "tol", tol, above=0.0)
    record["max_iter"] = 0 if max_iter is None else _checks.integer("solver", "max_iter", max_iter, low=1)
    record["weight"] = 0.0 if weight is None else _checks.number("solver", "weight", weight, above=0.0)
    record["block"] = 0 if block is None else _checks.integer("solver", "block", block, low=1)
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
    _OWN[name] = Method(compiled, lambda n, row, column: (floats * n, integers * n), "what its author says")
    return name


def find(name):
    """The `Method` of a name."""
    return METHODS[name] if name in METHODS else _OWN[name]


def chosen(options):
    """(name, Method, kernel options) of what a caller passed: None, a method's name, a function, or a record from `solver`."""
    if options is None or isinstance(options, str) or callable(options):
        options = solver() if options is None else solver(options)
    if not isinstance(options, (np.ndarray, np.void)) or options.dtype != OPTIONS:
        raise TypeError(f"solver: expected a method's name, a function or a record from nsds.solvers.solver, got {options!r}")
    name = options["method"].item().decode()
    return name, find(name), np.array([float(options[field].item()) for field in ("tol", "max_iter", "weight", "block")])


def methods(kind="lcp"):
    """Names of the methods that treat a kind of problem, and what each assumes of the matrix.

    Parameters
    ----------
    kind : "lcp", "mlcp", "relay" or "avi"
        Bounds 0 and infinity; and equations; any bounds; a polyhedron.

    Examples
    --------
    >>> import nsds
    >>> nsds.solvers.methods("lcp")["enumerate"]
    'any matrix; up to 2^20 bases'
    """
    if kind not in ("lcp", "mlcp", "relay", "avi"):
        raise ValueError(f"methods: kind must be 'lcp', 'mlcp', 'relay' or 'avi', got {kind!r}")
    return {name: method.assumes for name, method in METHODS.items() if kind in method.kinds}


def address(method):
    """Address of a method's compiled code, for kernels that call it."""
    return _address(method.kernel)


@cache
def _address(compiled):
    return np.uintp(getattr(compiled, "address", 0) or _jit.address(SOLVER, compiled))


def prepared(owner, method, options, M, q, lower, upper, z0):
    """(order, arguments of `nsds.solvers.signature.solve_repeatedly` from solver on) of a problem with checked vectors."""
    problem, order = forms.box(owner, M, q, lower, upper, method.reorders)
    z, w, info = np.zeros(q.size), np.zeros(q.size), np.zeros(3)
    return order, (address(method), z0[order], *problem, options, z, w, info, *scratch(method, *problem[:2]))


def scratch(method, row, column):
    """New (work, iwork) for a method and a pattern."""
    n_work, n_iwork = method.work_size(row.size - 1, row, column)
    return np.zeros(n_work), np.zeros(max(n_iwork, 1), np.int64)
