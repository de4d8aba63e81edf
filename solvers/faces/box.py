"""Problems from Python: checks, conversion to the solvers' form, and a result that says what happened."""

from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.solvers import results, table
from nsds.solvers.box import auto, confirm, enumeration, forms
from nsds.solvers.box.signature import N_INFO, OF_DATA, Problem, is_more_than_rounding, judge, multiply, solve_repeatedly
from nsds.solvers.faces.frame import name_of, requested
from nsds.solvers.results import judged
from nsds.solvers.workspaces import DOUBTFUL, REFUSED, UNCERTAIN, Workspace, Workspaces, key_of, left_at_interrupts, work_of
from nsds.status import CONVERGED, INFEASIBLE, NON_FINITE, STALLED, UNBOUNDED

WORKSPACES = Workspaces()
_SOLVED = (CONVERGED, INFEASIBLE)
_PROGRAMS = ("avi", "qp")
_LARGE = 256  # unknowns and multipliers from which these are solved by sparse factors first
# Methods that "auto" tries where its compiled part has failed: first finite ones, then iterations, each within its own limits.
_OTHERS = (
    "cao_ferris", "bard", "qp", "interior_point", "newton_min", "murty", "lemke", "newton_fb", "proximal", "direct", "enumerate",
    "interior_sparse", "latin", "cpg", "nsgs", "rpgs", "psor", "pgs",
)  # fmt: skip
_TRIED = ("lemke", "newton_fb", "proximal", "enumerate")  # methods that this part has tried, where there is room for all
_SPARSE_FROM = 30  # unknowns and multipliers from which "interior_sparse" gains on "interior_point"
_DENSE = ("lemke", "cao_ferris", "bard", "murty")
_DENSE_MOST = 4000  # unknowns up to which a dense matrix is made
_SWEEPS = ("cpg", "nsgs", "rpgs", "psor", "pgs")  # which want a positive diagonal
_SAFE = 1e-280  # numbers above, beside which products that vanish are nothing


@results.readable(lambda self: results.BOX)
class Solution(NamedTuple):
    """Result of a solver: ``w = M z + q``, a status of `nsds.status`, the merit at z, and the method that found it.

    ``success`` says whether it was solved, ``message`` what the status means and what to do about it.
    """

    z: np.ndarray
    w: np.ndarray
    status: int
    n_iter: int
    residual: float
    method: str


@results.readable(lambda self: results.POLYHEDRON)
class ConstrainedSolution(NamedTuple):
    """Result over a polyhedron: ``w = M z + q = G^T multipliers``, else as `Solution`; the residual is that of all conditions."""

    z: np.ndarray
    w: np.ndarray
    status: int
    n_iter: int
    residual: float
    method: str
    multipliers: np.ndarray


@results.readable(lambda self: results.PROGRAM)
class ProgramSolution(ConstrainedSolution):
    """Result of a quadratic program: a `ConstrainedSolution` whose status may be UNBOUNDED."""

    __slots__ = ()


def solve_lcp(M, q, method="auto", tol=1e-10, max_iter=None, z0=None, on_failure="raise", **options):
    """Linear complementarity problem: ``w = M z + q``, ``0 <= z ⟂ w >= 0``.

    Parameters
    ----------
    M : array_like or scipy.sparse (n, n)
        Matrix. Of a block-sparse one (``bsr_array``) method "nsgs" takes over the size of the blocks.
    q : array_like (n,)
        Vector.
    method, tol, max_iter
        See `nsds.solvers.methods` and `nsds.solvers.solver`, a record of which may take the place of all three.
    z0 : array_like (n,), optional
        First guess.
    on_failure : "raise", "warn" or "continue"
        What to do with a problem that was not solved.
    **options
        weight, block and work_size of `nsds.solvers.solver`.

    Returns
    -------
    Solution
        NamedTuple (z, w, status, n_iter, residual, method) with ``success`` and ``message``.

    Raises
    ------
    ValueError, TypeError
        Wrong shapes, NaN or infinity, unknown method.
    SolverError
        Not solved and ``on_failure="raise"``.

    Examples
    --------
    >>> import nsds
    >>> nsds.solvers.solve_lcp([[2, 1], [1, 2]], [-5, -6]).z.round(12)
    array([1.33333333, 2.33333333])
    """
    return judged(_solved(requested(("solve_lcp", "lcp", method, tol, max_iter, options, z0, on_failure)), M, q, 0.0, np.inf), on_failure)


def solve_relay(M, q, lower=-1.0, upper=1.0, method="auto", tol=1e-10, max_iter=None, z0=None, on_failure="raise", **options):
    """Relay problem: ``w = M z + q``, ``lower <= z <= upper``, ``-w ∈ N_[lower,upper](z)`` ([Notes], eq. 9.34).

    So ``z_i = lower_i`` where ``w_i > 0``, ``z_i = upper_i`` where ``w_i < 0``, and ``w_i = 0`` between the bounds.

    Parameters
    ----------
    M, q, method, tol, max_iter, z0, on_failure, **options
        As in `solve_lcp`.
    lower, upper : float or array_like (n,)
        Bounds, infinite ones included.

    Returns
    -------
    Solution
        NamedTuple (z, w, status, n_iter, residual, method).

    Raises
    ------
    ValueError, TypeError, SolverError
        As `solve_lcp`; lower > upper.

    Examples
    --------
    >>> import nsds
    >>> nsds.solvers.solve_relay([[1.0]], [0.5]).z.tolist(), nsds.solvers.solve_relay([[1.0]], [3.0]).z.tolist()
    ([-0.5], [-1.0])
    """
    return judged(
        _solved(requested(("solve_relay", "relay", method, tol, max_iter, options, z0, on_failure)), M, q, lower, upper), on_failure
    )


def solve_mlcp(
    M=None, q=None, lower=None, upper=None, method="auto", tol=1e-10, max_iter=None, z0=None, on_failure="raise",
    *, A=None, B=None, C=None, D=None, a=None, b=None, **options,
):  # fmt: skip
    """Mixed linear complementarity problem: ``w = M z + q``, ``lower <= z <= upper``, ``-w ∈ N_[lower,upper](z)``.

    A free z_i (bounds -inf and inf) makes row i an equation ``w_i = 0``; bounds 0 and inf ask ``0 <= z_i ⟂ w_i >= 0``. The block form is
    ``A u + C v + a = 0``, ``0 <= v ⟂ w = D u + B v + b >= 0`` with ``z = (u, v)``; A need not be square.

    Parameters
    ----------
    M : array_like or scipy.sparse (n_rows, n)
        Matrix. If it is not square, the free unknowns come first, and the equations too: ``n_rows - m`` of them, for m bounded unknowns.
    q : array_like (n_rows,)
        Vector.
    lower, upper : float or array_like (n,)
        Bounds.
    A, B, C, D, a, b : array_like or scipy.sparse
        Block form: (n_equations, n_free), (m, m), (n_equations, m), (m, n_free), (n_equations,), (m,); instead of the first four.
    method, tol, max_iter, z0, on_failure, **options
        As in `solve_lcp`.

    Returns
    -------
    Solution
        NamedTuple (z, w, status, n_iter, residual, method); z (n,), w (n_rows,).

    Raises
    ------
    ValueError, TypeError, SolverError
        As `solve_lcp`; lower > upper; both forms or neither.

    Examples
    --------
    >>> import nsds
    >>> s = nsds.solvers.solve_mlcp(A=[[1.0]], B=[[2.0]], C=[[1.0]], D=[[-1.0]], a=[-3.0], b=[-6.0])
    >>> s.z, s.w
    (array([0., 3.]), array([0., 0.]))
    """
    owner = "solve_mlcp"
    results.check_policy(owner, on_failure)
    if not (A is B is C is D is a is b is None):
        given = {"A": A, "B": B, "C": C, "D": D, "a": a, "b": b}
        if any(part is None for part in given.values()) or any(part is not None for part in (M, q, lower, upper)):
            raise ValueError(f"{owner}: give M, q, lower and upper, or all of A, B, C, D, a and b")
        M, q, lower, upper = _joined(owner, **given)
    if M is None or q is None or lower is None or upper is None:
        raise ValueError(f"{owner}: give M, q, lower and upper, or all of A, B, C, D, a and b")
    q, M = _checks.floats(owner, "q", q, n_dims=1), forms.entries(owner, "M", M)
    n_rows, n = M.shape
    if q.size != n_rows:
        raise ValueError(f"{owner}: q must have shape {(n_rows,)} as M has shape {M.shape}, got {q.shape}")
    request = requested(("solve_mlcp", "mlcp", method, tol, max_iter, options, z0, on_failure))
    if n_rows == n:
        return judged(_solved(request, M, q, lower, upper), on_failure)
    q, M = _checks.finite(owner, "q", q), forms.matrix(owner, "M", M)
    lower, upper = forms.bounds(owner, n, lower, upper)
    square, vector, edges, rows, columns = forms.squared(owner, M, q, lower, upper)
    guess = np.zeros(vector.size)
    guess[columns] = 0.0 if z0 is None else _checks.array(owner, "z0", z0, shape=(n,))
    s = _solved(request._replace(guess=guess), square, vector, *edges)
    return judged(s._replace(z=s.z[columns], w=s.w[rows]), on_failure)


def _joined(owner, A, B, C, D, a, b):
    """(M, q, lower, upper) of the block form."""
    a, b = _checks.array(owner, "a", a, n_dims=1), _checks.array(owner, "b", b, n_dims=1)
    A = forms.matrix(owner, "A", A)
    n_equations, n_free, m = a.size, A.shape[1], b.size
    A = forms.matrix(owner, "A", A, (n_equations, n_free))
    B = forms.matrix(owner, "B", B, (m, m))
    C = forms.matrix(owner, "C", C, (n_equations, m))
    D = forms.matrix(owner, "D", D, (m, n_free))
    lower = np.concatenate([np.full(n_free, -np.inf), np.zeros(m)])
    return forms.joined([[A, C], [D, B]]), np.concatenate([a, b]), lower, np.full(n_free + m, np.inf)


def solve_avi(M, q, G, g, method="auto", tol=1e-10, max_iter=None, z0=None, on_failure="raise", **options):
    """Affine variational inequality over a polyhedron: ``G z >= g``, ``-(M z + q) ∈ N(z)``, N its normal cone.

    Equivalently ``w = M z + q = G^T lambda``, ``0 <= lambda ⟂ G z - g >= 0``, which is what the solvers are given.

    Parameters
    ----------
    M : array_like or scipy.sparse (n, n)
        Matrix.
    q : array_like (n,)
        Vector.
    G : array_like or scipy.sparse (m, n)
        Rows of the polyhedron.
    g : array_like (m,)
        Its right-hand side.
    method, tol, max_iter, z0, on_failure, **options
        As in `solve_lcp`; "auto" is "cao_ferris" and, where that does not succeed, the "auto" of `solve_mlcp`.

    Returns
    -------
    ConstrainedSolution
        NamedTuple (z, w, status, n_iter, residual, method, multipliers).

    Raises
    ------
    ValueError, TypeError, SolverError
        As `solve_lcp`.

    Examples
    --------
    >>> import nsds
    >>> s = nsds.solvers.solve_avi([[1, 0], [0, 1]], [-3, -1], G=[[-1, -1]], g=[-2])  # the point of x + y <= 2 nearest to (3, 1)
    >>> s.z.round(12) + 0.0, s.multipliers
    (array([2., 0.]), array([1.]))
    """
    owner = "solve_avi"
    results.check_policy(owner, on_failure)
    q = _checks.array(owner, "q", q, n_dims=1)
    M = forms.matrix(owner, "M", M, (q.size, q.size))
    G, g = forms.polyhedron(owner, q.size, G, g)
    whole, vector, guess = _bordered(owner, M, q, [(G, g)], z0)
    lower = np.zeros(vector.size)
    lower[: q.size] = -np.inf
    is_auto, s = isinstance(method, str) and method == "auto", None
    if is_auto:
        s = _solved(requested((owner, "avi", "cao_ferris", tol, max_iter, options, guess, on_failure)), whole, vector, lower, np.inf)
    is_first = is_auto and s.status in _SOLVED
    if not is_first:
        s = _solved(requested((owner, "avi", method, tol, max_iter, options, guess, on_failure)), whole, vector, lower, np.inf)
    name = "auto: cao_ferris" if is_first else s.method
    z = s.z[: q.size]
    return judged(ConstrainedSolution(z, M @ z + q, *s[2:5], name, s.z[q.size :]), on_failure)


def solve_qp(
    P, c, G=None, g=None, A=None, b=None, lower=-np.inf, upper=np.inf, method="auto", tol=1e-10, max_iter=None, z0=None,
    on_failure="raise", **options,
):  # fmt: skip
    """Convex quadratic program: minimise ``z^T P z / 2 + c^T z`` subject to ``G z >= g``, ``A z = b``, ``lower <= z <= upper``.

    Parameters
    ----------
    P : array_like or scipy.sparse (n, n)
        Symmetric positive semidefinite matrix.
    c : array_like (n,)
        Vector.
    G, g, A, b : array_like or scipy.sparse (m, n), (m,), (k, n), (k,), optional
        Inequalities and equations.
    lower, upper : float or array_like (n,)
        Bounds.
    method, tol, max_iter, z0, on_failure, **options
        As in `solve_lcp`; methods for unsymmetric positive semidefinite problems, as inequalities and equations make the system one.

    Returns
    -------
    ConstrainedSolution
        NamedTuple (z, w, status, n_iter, residual, method, multipliers): ``w = P z + c - G^T multipliers[:m] - A^T multipliers[m:]`` is
        the multiplier of the bounds, positive at lower and negative at upper ones. Status UNBOUNDED: there are points, but no lowest one.

    Raises
    ------
    ValueError, TypeError, SolverError
        As `solve_lcp`; P not symmetric, or not positive semidefinite (tested up to 1000 unknowns).

    Examples
    --------
    >>> import nsds
    >>> s = nsds.solvers.solve_qp([[2, 0], [0, 2]], [-2, -5], A=[[1, 1]], b=[1], lower=0)
    >>> s.z, s.multipliers
    (array([0., 1.]), array([-3.]))
    """
    owner = "solve_qp"
    results.check_policy(owner, on_failure)
    c = _checks.array(owner, "c", c, n_dims=1)
    P = forms.matrix(owner, "P", P, (c.size, c.size))
    _check_convex(owner, P)
    parts, edges = forms.constraints(owner, forms.bounds(owner, c.size, lower, upper), G, g, A, b)
    whole, vector, guess = _bordered(owner, P, c, parts, z0)
    s = _solved(requested(("solve_qp", "qp", method, tol, max_iter, options, guess, on_failure)), whole, vector, *edges)
    if s.status == INFEASIBLE:
        s = s._replace(status=_without_solution(owner, P, c, parts, edges))
    return judged(ProgramSolution(s.z[: c.size], s.w[: c.size], *s[2:], s.z[c.size :]), on_failure)


def _without_solution(owner, P, c, parts, edges):
    """Status of a quadratic program whose optimality conditions have no solution: INFEASIBLE, UNBOUNDED, or STALLED where neither is clear.

    A convex quadratic objective that is bounded below on a polyhedron has its minimum there (Frank and Wolfe 1956). It has no lower bound
    if there are a point and a direction d of the polyhedron with ``P d = 0``, ``c^T d < 0``. Both are sought as those nearest to 0.
    """
    n, size = c.size, abs(c).max(initial=0.0)
    parts = _without_rounding(P, c, parts)
    nearest = _nearest(owner, n, parts, edges)
    if nearest != CONVERGED or size == 0.0:
        return INFEASIBLE if nearest == INFEASIBLE else STALLED
    P = forms.blocks([[P]]).tocsr()
    moved = abs(P).max(axis=1).toarray().ravel() > 0.0
    level = forms.blocks([[P[moved] / (abs(P).max() or 1.0)], [c[None, :] / size]] if moved.any() else [[c[None, :] / size]])
    sides = [np.where(np.isfinite(side), 0.0, side) for side in edges]
    free = np.full(level.shape[0], np.inf)
    ahead = [*((G, np.zeros(g.size)) for G, g in parts), (level, np.r_[np.zeros(level.shape[0] - 1), -1.0])]
    falls = _nearest(owner, n, ahead, [np.concatenate(both) for both in zip(sides, (-free, free), strict=True)])
    return UNBOUNDED if falls == CONVERGED else STALLED


def _without_rounding(P, c, parts):
    """Constraints with 0 for what is rounding beside the z that the objective asks for, one by one: the search for a point knows none."""
    own = P.diagonal()
    told = (own > 0.0) & (c != 0.0)
    size = np.where(told, abs(c) / np.where(told, own, 1.0), 0.0)
    return [(G, np.where(abs(g) <= OF_DATA * (abs(G) @ size), 0.0, g)) for G, g in parts]


def _nearest(owner, n, parts, edges):
    """Status of the search for the point nearest to 0."""
    whole, vector, guess = _bordered(owner, forms.identity(n), np.zeros(n), parts, None)
    return _solved(requested(("solve_qp", "qp", "auto", 1e-10, None, {}, guess, "continue")), whole, vector, *edges).status


def _check_convex(owner, P):
    n = P.shape[0]
    dense = P.toarray() if hasattr(P, "toarray") and n <= 1000 else P
    size = abs(dense).max() if n else 0.0
    dense = dense / size if size > 0.0 else dense
    asymmetry = abs(dense - dense.T).max() if n else 0.0
    if asymmetry > 1e-10:
        raise ValueError(f"{owner}: P must be symmetric, its entries differ from their mirror images by {asymmetry * size}")
    if 0 < n <= 1000:
        least = np.linalg.eigvalsh(dense)[0]
        if least < -1e-10 * n:
            raise ValueError(f"{owner}: P must be positive semidefinite, its least eigenvalue is {least * size}")


def _bordered(owner, M, q, parts, z0):
    """Matrix, vector and guess of ``M z + q - sum G^T lambda`` and ``G z - g``, one box problem of z and the lambda of all parts."""
    rows = [[M, *[-G.T for G, _ in parts]], *[[G, *[None] * len(parts)] for G, _ in parts]]
    whole, vector = (forms.joined(rows) if parts else M), np.concatenate([q, *[-g for _, g in parts]])
    if z0 is not None:
        z0 = np.concatenate([_checks.array(owner, "z0", z0, shape=q.shape), np.zeros(vector.size - q.size)])
    return whole, vector, z0


def _solved(request, M, q, lower, upper):
    """Check, convert, solve by the method that was asked for; of "auto" also by methods that its compiled part leaves out."""
    if type(M) is not np.ndarray and getattr(M, "format", "") == "bsr" and isinstance(request.method, str) and request.method == "nsgs":
        request = request._replace(options={"block": M.blocksize[0], **request.options})
    owner, kind, (method, options) = request.owner, request.kind, request.choice()
    q = _checks.floats(owner, "q", q, n_dims=1)
    n = q.size
    guess = request.first_guess("z0", (n,))
    M, tried = forms.entries(owner, "M", M, (n, n)), ()
    given = owner, M, q, lower, upper, guess
    # 1. of large programmes, sparse factors and Lemke's method
    if n > _LARGE and kind in _PROGRAMS and method.name == "auto":
        tried = ("interior_sparse", "lemke") if n <= _DENSE_MOST else ("interior_sparse",)
        for name in tried:
            s = _by(given, table.find(name, kind), options)
            if s.status in _SOLVED:
                return s._replace(method=f"auto: {name}")
    # 2. the method itself
    s = _by(given, method, options)
    if s.status in _SOLVED or method.name != "auto":
        return s
    # 3. the other methods for this kind, until one has a solution or proves that there is none
    if n <= auto.DENSE_LIMIT and type(guess) is float:  # else from another guess, or not for lack of room
        tried = _TRIED
    tried += ("interior_sparse",) if n < _SPARSE_FROM else _DENSE if n > _DENSE_MOST else ()
    tried += () if (M.diagonal() > 0.0).all() else _SWEEPS
    for name in _OTHERS:
        if table.treats(name, kind) and name not in tried:
            other = _by(given, table.find(name, kind), options)
            if other.status in _SOLVED:
                return other._replace(method=f"auto: {name}", n_iter=s.n_iter + other.n_iter)
    return s


def _by(given, method, options):
    """The `Solution` by one method. Compiled code checks the numbers; where it refuses them, the invalid field is looked for.

    given: (owner, M, q, lower, upper, guess), whose numbers may be NaN or infinite, and bounds and the guess single numbers.
    """
    owner, M, q, lower, upper, guess = given
    n, (row, column, data, order) = q.size, forms.compressed_rows(M, method.reorders)
    # 1. try
    if method.in_python:
        _check(*given)
        key, problem = None, Problem(row, column, data, q, *forms.bounds(owner, n, lower, upper))
        guess = np.broadcast_to(guess, n)
        status, z, w, info = _run(method, options, problem, guess)
        if forms.wants_common_units(status, options.tol, problem, z):
            status = UNCERTAIN if status == CONVERGED else REFUSED
    else:
        key = key_of(method, options, n, row, column)
        vectors = q, forms.bound_of(owner, n, "lower", lower), forms.bound_of(owner, n, "upper", upper), guess
        if order is not None:
            vectors = [x if type(x) is float else np.broadcast_to(x, n)[order] for x in vectors]
        kept = WORKSPACES.taken(key) or _workspace(method, options, row, column)
        problem, guess, z, w, info = kept.problem, kept.guess, kept.z, kept.w, kept.info
        problem.M[...], (problem.q[...], problem.lower[...], problem.upper[...], guess[...]) = data, vectors
        status = int(kept.solve())
        if status == REFUSED:
            _check(*given)
    # 2. certify: in common units, and with twice the digits
    if status == DOUBTFUL:
        holds, error = confirm.confirmed(options.tol, problem, z)
        status, info[1] = (CONVERGED, info[1]) if holds else (STALLED, max(error, info[1]))
    elif status < 0:  # REFUSED or UNCERTAIN
        common = forms.in_common_units(problem)
        in_common = forms.in_units_of(common[1], slice(None), z)
        if status == UNCERTAIN and _is_certain(options.tol, (problem, z), common[0], in_common):
            status = CONVERGED
        else:
            status, z, w, info = _in_other_units(problem, common, method, options, guess)
    # 3. result, in the order of the unknowns that was given
    z, w = (z.copy(), w.copy()) if order is None else (z[np.argsort(order)], w[np.argsort(order)])
    n_iter, residual, place = info.tolist()
    if key is not None:
        WORKSPACES.put_back(key, kept)
    return Solution(z, w, int(status), int(n_iter), residual, name_of(method, auto.ORDER, place))


def _check(owner, M, q, lower, upper, guess):
    """Raise ValueError where a number is not valid."""
    _checks.finite(owner, "q", q)
    forms.bounds(owner, q.size, lower, upper)
    _checks.finite(owner, "z0", np.asarray(guess))
    if isinstance(M, np.ndarray):
        _checks.finite(owner, "M", M)


def _workspace(method, options, row, column):
    """A `Workspace` for a method and a pattern."""
    n = row.size - 1
    problem = Problem(row, column, np.zeros(column.size), *np.zeros((3, n)))
    arguments = table.arguments_of(method, options, problem, n, np.zeros(n))
    return Workspace(forms.solve_moderate, arguments, work_of(column.size, n, options.max_iter))


def _run(method, options, problem, guess):
    """(status, z, w, info) of a method, without checks of numbers."""
    if method.in_python:
        return method.kernel(problem, options)
    arguments = table.arguments_of(method, options, problem, guess.size, guess)
    status = left_at_interrupts(work_of(problem.M.size, guess.size, options.max_iter), solve_repeatedly, 1, False, *arguments)
    return status, *arguments[-5:-2]


def _is_certain(tol, given, problem, z):
    """Whether a z of a problem in common units is a solution, where a method calls it one of the given problem; z in common units."""
    lacks = forms.missing(tol, problem, z)
    if lacks == forms.ROUNDING:
        return confirm.confirmed(tol, problem, z)[0]
    return lacks == forms.NOTHING and confirm.holds(tol, *given)


def _in_other_units(given, common, method, options, guess):
    """(status, z, w, info) of a problem with numbers of extreme size, solved in common units."""
    problem, units = common
    status, z, w, info = _run(method, options, problem, np.nan_to_num(forms.in_units_of(units, slice(None), guess)))
    z, w, status = _returned(units, given, problem, options, z, w, info, status)
    return status, z, w, info


def _returned(units, given, problem, options, z, w, info, status):
    """(z, w, status) in the user's units, judged by what is left of z there: it may have vanished or overflowed."""
    user_z, _ = forms.in_users_units(units, *given[4:], *problem[4:], z, w)
    rounded = forms.in_units_of(units, slice(None), user_z)
    if not np.isfinite(rounded).all():
        status, rounded = NON_FINITE, forms.in_units_of(units, slice(None), np.clip(0.0, *given[4:]))
    if status == CONVERGED:
        status = judge(CONVERGED, int(info[0]), problem, options, rounded, w, info)
    if status == CONVERGED:
        is_open = forms.wants_common_units(status, options.tol, problem, rounded)
        found = problem, rounded
        holds = _is_certain(options.tol, found, *found) if is_open else confirm.holds(options.tol, *found)
        status = CONVERGED if holds else STALLED
    multiply(*problem[:4], rounded, w)
    user_z, user_w = forms.in_users_units(units, *given[4:], *problem[4:], rounded, w)
    multiply(*given[:4], user_z, w)  # bounds may have lost digits in common units
    # what is rounding beside the largest q in common units may be the largest of the given ones
    if status == CONVERGED and is_more_than_rounding(options.tol, *forms.of_safe_size(given, user_z), np.empty(w.size)):
        status = STALLED
    return user_z, np.nan_to_num(np.where(np.isfinite(w) & (abs(w) > _SAFE), w, user_w)), status


def all_solutions(M, q, lower=0.0, upper=np.inf, tol=1e-10):
    """All solutions of a small box problem that one of its complementary bases determines.

    Parameters
    ----------
    M, q
        As in `solve_lcp`; up to 2^20 bases, which is 20 unknowns with one bound or 13 with two.
    lower, upper : float or array_like (n,)
        Bounds, infinite ones included.
    tol : float
        Largest residual; solutions that differ less than its square root, relative to their size, are the same.

    Returns
    -------
    numpy.ndarray (k, n)
        One solution a row. A continuum of solutions shows by its end points.

    Raises
    ------
    ValueError, TypeError
        Wrong shapes, NaN or infinity; too many bases.

    Examples
    --------
    >>> import nsds
    >>> nsds.solvers.all_solutions([[0, 1], [1, 0]], [-1, -1])
    array([[1., 1.]])
    >>> nsds.solvers.all_solutions([[-1]], [1]).tolist()
    [[0.0], [1.0]]
    """
    owner = "all_solutions"
    q = _checks.array(owner, "q", q, n_dims=1)
    n = q.size
    problem, _ = forms.box(owner, M, q, *forms.bounds(owner, n, lower, upper), False)
    lower, upper = problem[4:]
    n_choices = enumeration.count_choices(lower, upper)
    if n > enumeration.MAX_UNKNOWNS or n_choices > enumeration.MAX_BASES:
        raise ValueError(f"{owner}: more than {enumeration.MAX_BASES} bases, or {n} > {enumeration.MAX_UNKNOWNS} unknowns")
    method, options = table.asked(owner, "relay", "enumerate", tol, enumeration.MAX_BASES, {})
    z, w, info = np.zeros(n), np.zeros(n), np.zeros(N_INFO)
    found, choice = [], 0
    arguments = (problem, options, z, w, info, *table.scratch(method, n, problem.row, problem.column))
    while choice < n_choices and enumeration.next_solution(choice, *arguments) == CONVERGED:
        if not any(np.allclose(z, other, rtol=np.sqrt(tol), atol=np.sqrt(tol)) for other in found):
            found.append(z.copy())
        choice = int(info[0])
    return np.array(found).reshape(-1, n)
