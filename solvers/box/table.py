"""The table of methods: a new solver is one module and one line here."""

from functools import cache
from types import FunctionType
from typing import NamedTuple

import numpy as np
from numba.core.errors import NumbaError

from nsds import _checks, _jit
from nsds.solvers.box import (
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
from nsds.solvers.box.signature import SOLVER


class Method(NamedTuple):
    """A solver: its kernel (or a compiled callback), the scratch it needs, what it assumes of the problem, the kinds it treats."""

    kernel: object
    work_size: object
    assumes: str
    kinds: tuple = ("lcp", "mlcp", "relay", "avi")
    reorders: bool = False  # gains from unknowns in an order that keeps M close to its diagonal
    option: str = ""  # of its own: "weight" or "block"


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
    "psor": Method(gauss_seidel.psor, gauss_seidel.work_size, "symmetric positive definite; weight: omega in (0, 2)", option="weight"),
    "rpgs": Method(gauss_seidel.rpgs, gauss_seidel.work_size, "symmetric positive semidefinite; weight: regularisation", option="weight"),
    "nsgs": Method(
        gauss_seidel.nsgs, gauss_seidel.nsgs_work_size, "symmetric positive definite; block: unknowns of a block", option="block"
    ),
    "cpg": Method(cpg.cpg, cpg.work_size, "symmetric positive definite", ("lcp", "mlcp", "relay")),
    "latin": Method(
        latin.latin, latin.work_size, "positive semidefinite; a band of M; weight: search direction", reorders=True, option="weight"
    ),
}
_MOST = 2**53  # of counts: options travel as floats
_OWN = {}  # solvers that users brought

OPTIONS = np.dtype([("method", "S32"), ("tol", "<f8"), ("max_iter", "<i8"), ("weight", "<f8"), ("block", "<i8")])


def solver(method="auto", *, tol=1e-10, max_iter=None, weight=None, block=None, work_size=(0, 0)):
    """Choice of a solver and its options, as a record that `nsds.simulate` and `nsds.solvers.solve_lcp` take.

    Parameters
    ----------
    method : str or function
        A name from `methods`, or a function of your own with the arguments of `nsds.solvers.box.signature`; it is compiled at once, and
        its last line should be ``return conclude(...)`` so that only the residual says converged.
    tol : float
        Largest residual that counts as converged: errors of w relative to the terms that cancel in it, below 1 and without unit; see
        `nsds.solvers.box.signature.conclude`.
    max_iter : int, optional
        Iteration limit; if not given the method's own, which also keeps the work to some seconds.
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
    elif not _are_counts(work_size) or any(work_size):
        raise ValueError(f"solver: work_size is for a function of your own, got {work_size!r} with method {method!r}")
    if not isinstance(method, str) or (method not in METHODS and method not in _OWN):
        raise ValueError(f"solver: method must be one of {', '.join(METHODS)}, got {method!r}")
    record = np.zeros((), OPTIONS)
    record["method"] = method.encode()
    record["tol"] = tolerance("solver", tol)
    record["max_iter"] = 0 if max_iter is None else _count("max_iter", max_iter)
    record["weight"] = 0.0 if weight is None else _checks.number("solver", "weight", weight, above=0.0)
    record["block"] = 0 if block is None else _count("block", block)
    for field, value in (("weight", weight), ("block", block)):
        takers = [name for name, taker in METHODS.items() if taker.option == field]
        if value is not None and method in METHODS and method not in takers:
            raise ValueError(f"solver: {field} is an option of {', '.join(takers)}, not of {method!r}")
    if method == "psor" and record["weight"] >= 2.0:
        raise ValueError(f"solver: weight of 'psor' must be below 2, got {weight}")
    return record


def tolerance(owner, tol):
    """A checked tolerance."""
    result = _checks.number(owner, "tol", tol, above=0.0)
    if result >= 1.0:
        raise ValueError(f"{owner}: tol must be below 1, as errors are relative to the terms that cancel, got {tol}")
    return result


def _count(field, value):
    return _checks.integer("solver", field, value, low=1, high=_MOST)


def _are_counts(pair):
    return isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(x, (int, np.integer)) and x >= 0 for x in pair)


def _add_own(function, work_size):
    """Compile a user's solver and put it into the table under its name and identity."""
    wanted = "solver(row, column, M, q, lower, upper, options, z, w, info, work, iwork)"
    if not _are_counts(work_size):
        raise ValueError(f"solver: work_size must be two whole numbers of at least 0, got {work_size!r}")
    if not isinstance(getattr(function, "py_func", function), FunctionType):
        raise TypeError(f"solver: method must be a name or a Python function {wanted}, got {function!r}")
    floats, integers = work_size
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
    name = options["method"].item().decode(errors="replace")
    if name not in METHODS and name not in _OWN:
        raise ValueError(f"solver: method of the record must be one of {', '.join(METHODS)}, got {name!r}")
    for field, most in (("tol", 1.0), ("max_iter", _MOST), ("weight", np.inf), ("block", _MOST)):
        if not 0 <= options[field].item() < most or (field == "tol" and options[field].item() == 0.0):
            raise ValueError(f"solver: {field} of the record is out of range, got {options[field].item()}")
    return name, find(name), np.array([*(float(options[field].item()) for field in ("tol", "max_iter", "weight", "block")), 0.0])


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
    if not isinstance(kind, str) or kind not in ("lcp", "mlcp", "relay", "avi"):
        raise ValueError(f"methods: kind must be 'lcp', 'mlcp', 'relay' or 'avi', got {kind!r}")
    return {name: method.assumes for name, method in METHODS.items() if kind in method.kinds}


def address(method):
    """Address of a method's compiled code, for kernels that call it."""
    return _address(method.kernel)


@cache
def _address(compiled):
    return np.uintp(getattr(compiled, "address", 0) or _jit.address(SOLVER, compiled))


def prepared(owner, method, options, M, q, lower, upper, z0):
    """(order, arguments of `nsds.solvers.box.signature.solve_repeatedly` from solver on) of a problem with checked vectors."""
    return arguments_of(method, options, *forms.box(owner, M, q, lower, upper, method.reorders), z0)


def arguments_of(method, options, problem, order, z0):
    """As `prepared`, of a problem in the solvers' form and order."""
    q = problem[3]
    z, w, info = np.zeros(q.size), np.zeros(q.size), np.zeros(3)
    return order, (address(method), z0[order], *problem, options, z, w, info, *scratch(method, *problem[:2]))


def scratch(method, row, column):
    """New (work, iwork) for a method and a pattern."""
    n_work, n_iwork = method.work_size(row.size - 1, row, column)
    return np.zeros(n_work), np.zeros(max(n_iwork, 1), np.int64)
