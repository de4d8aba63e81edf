"""Complementarity problems and variational inequalities of user functions from Python: checks, conversion, readable results."""

from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._jit import address, kernel
from nsds.solvers import results
from nsds.solvers.box import forms
from nsds.solvers.faces.box import ConstrainedSolution, Solution
from nsds.solvers.faces.frame import name_of, requested
from nsds.solvers.nonlinear import auto, sparse
from nsds.solvers.nonlinear.functions import Function
from nsds.solvers.nonlinear.signature import CALLBACK, N_INFO, Problem, differentiate, evaluate
from nsds.solvers.results import judged
from nsds.solvers.workspaces import left_at_interrupts, work_of
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, SINGULAR, STALLED

_ADVICE = {
    MAX_ITER: ("iteration limit reached: raise max_iter, loosen tol, or take another first guess or method", ()),
    STALLED: ("the residual no longer falls, as at a minimum that solves nothing: take another first guess", ("josephy", "newton_fb")),
    SINGULAR: ("the linearised problem has no solution that was found", ("newton_fb", "extragradient")),
    NON_FINITE: ("F is NaN or infinite at the first guess, or where the method went: take another first guess, or bounds", ()),
}

_NO_CONES = np.zeros(0, np.int64)
_LEFT = 1e-9  # of F at the start, at a solution
_SMALL, _LEAST, _TINIEST = 2.0**-8, 2.0**-44, 2.0**-512  # units that are not 1; that may be rounding of 1; the least
_ROUNDS, _REPEATS = 3, 60  # of units that are tried; in search of them
_SHORTER, _NEAR = 2.0**-20, 2.0  # while a Jacobian by differences is not finite; in powers of two, where the search ends


@results.readable(lambda self: _ADVICE)
class NonlinearSolution(Solution):
    """Result of a nonlinear problem: ``w = F(z)``, else as `nsds.solvers.Solution`."""

    __slots__ = ()


@results.readable(lambda self: _ADVICE)
class InequalitySolution(ConstrainedSolution):
    """Result of a variational inequality: ``w = F(z)``, multipliers of ``G z >= g`` and ``A z = b``; else as `nsds.solvers.Solution`."""

    __slots__ = ()


def solve_ncp(F, z0, jac=None, parameters=None, method="auto", tol=1e-10, max_iter=None, on_failure="raise", pattern=None):
    """Nonlinear complementarity problem: ``0 <= z ⟂ F(z) >= 0``.

    Parameters
    ----------
    F : callable
        Function ``F(z, out)`` that writes its result into out, or ``F(z, p, out)`` where there are parameters. It is compiled; where
        numba cannot do that, it is called in Python.
    z0 : array_like (n,)
        First guess.
    jac : callable, optional
        Its Jacobian, ``jac(z, out)`` or ``jac(z, p, out)``, out (n, n); if not given, by finite differences.
    parameters : array_like, optional
        Vector p that F and jac take.
    method : str
        A name from ``nsds.solvers.methods("ncp")``, or a record from `nsds.solvers.solver`.
    tol : float
        Largest residual: of ``min(z, F)``, with z_i relative to ``1 + |z_i|`` and F_i to ``sum_j |dF_i/dz_j| (1 + |z_j|)``.
    max_iter : int, optional
        Iteration limit of each method; if not given its own.
    on_failure : "raise", "warn" or "continue"
        What to do with a problem that was not solved.
    pattern : (indptr, indices), optional
        Compressed rows of a sparse Jacobian, as of ``scipy.sparse.csr_array``: jac then writes the values of the entries that are named, in
        this order, out being as long as indices. For problems of thousands of unknowns, which dense ones are too large for.

    Returns
    -------
    NonlinearSolution
        NamedTuple (z, w, status, n_iter, residual, method) with ``success`` and ``message``; ``w = F(z)``.

    Raises
    ------
    ValueError, TypeError
        Not a function of these arguments, NaN or infinity, unknown method.
    SolverError
        Not solved and ``on_failure="raise"``.

    Notes
    -----
    "auto" takes Newton's method on Fischer and Burmeister's map, that of Josephy, Newton's on the natural map and the extragradient method
    from z0, then Newton's methods from other guesses, until one succeeds. A problem may have several solutions, or none. With a pattern it
    is "newton_fb" while its residual falls, then interior points, as of monotone F, then "josephy", whose linear problems these solve.

    Examples
    --------
    >>> import nsds
    >>> def F(z, out):
    ...     out[0] = z[0] ** 2 + z[1] - 3
    ...     out[1] = z[0] + 2
    >>> s = nsds.solvers.solve_ncp(F, [1.0, 1.0])
    >>> s.z.round(9), s.w.round(9) + 0.0
    (array([1.73205081, 0.        ]), array([0.        , 3.73205081]))

    The same with a sparse Jacobian, of whose second row only the first entry is there:

    >>> def values(z, out):
    ...     out[0], out[1], out[2] = 2 * z[0], 1.0, 1.0
    >>> nsds.solvers.solve_ncp(F, [1.0, 1.0], jac=values, pattern=([0, 2, 3], [0, 1, 0])).z.round(9)
    array([1.73205081, 0.        ])
    """
    owner = "solve_ncp"
    z0 = _checks.array(owner, "z0", z0, n_dims=1)
    feasible = _Set(np.zeros(z0.size), np.full(z0.size, np.inf))
    return judged(
        _solved(requested(("solve_ncp", "ncp", method, tol, max_iter, {}, z0, on_failure)), F, jac, parameters, pattern, feasible),
        on_failure,
    )


def solve_mcp(
    F, z0, lower=0.0, upper=np.inf, jac=None, parameters=None, method="auto", tol=1e-10, max_iter=None, on_failure="raise", pattern=None
):  # fmt: skip
    """Mixed complementarity problem: ``lower <= z <= upper``, ``-F(z) ∈ N_[lower,upper](z)``.

    So ``F_i = 0`` where z_i is between its bounds, ``F_i >= 0`` at the lower and ``F_i <= 0`` at the upper one; infinite bounds make
    equations.

    Parameters
    ----------
    F, z0, jac, parameters, method, tol, max_iter, on_failure, pattern
        As in `solve_ncp`.
    lower, upper : float or array_like (n,)
        Bounds, infinite ones included.

    Returns
    -------
    NonlinearSolution
        NamedTuple (z, w, status, n_iter, residual, method); ``w = F(z)``.

    Raises
    ------
    ValueError, TypeError, SolverError
        As `solve_ncp`; lower > upper.

    Examples
    --------
    >>> import math, nsds
    >>> def F(z, out):
    ...     out[0] = math.exp(z[0]) - 3 * z[1]
    ...     out[1] = z[0] + z[1] - 4
    >>> nsds.solvers.solve_mcp(F, [0.0, 0.0], lower=[-math.inf, 0], upper=[math.inf, 2]).z.round(6)
    array([1.791759, 2.      ])
    """
    owner = "solve_mcp"
    z0 = _checks.array(owner, "z0", z0, n_dims=1)
    feasible = _Set(*forms.bounds(owner, z0.size, lower, upper))
    return judged(
        _solved(requested(("solve_mcp", "mcp", method, tol, max_iter, {}, z0, on_failure)), F, jac, parameters, pattern, feasible),
        on_failure,
    )


def solve_vi(
    F, z0, lower=-np.inf, upper=np.inf, G=None, g=None, A=None, b=None, cones=None, jac=None, parameters=None, method="auto", tol=1e-10,
    max_iter=None, on_failure="raise", pattern=None,
):  # fmt: skip
    """Variational inequality: z in K with ``F(z)^T (x - z) >= 0`` for all x in K.

    K is a box, a polyhedron ``lower <= z <= upper``, ``G z >= g``, ``A z = b``, or a product of second-order cones.

    Parameters
    ----------
    F, z0, jac, parameters, method, tol, max_iter, on_failure, pattern
        As in `solve_ncp`.
    lower, upper : float or array_like (n,)
        Bounds, infinite ones included.
    G, g, A, b : array_like (m, n), (m,), (k, n), (k,), optional
        Inequalities and equations.
    cones : sequence of int, optional
        Sizes of cones ``z_1 >= ||(z_2, ..., z_size)||`` that follow each other and cover all of z; instead of all of the above.

    Returns
    -------
    InequalitySolution
        NamedTuple (z, w, status, n_iter, residual, method, multipliers), ``w = F(z)``; multipliers (m + k,) of inequalities and equations.

    Raises
    ------
    ValueError, TypeError, SolverError
        As `solve_ncp`; lower > upper; G without g; cones together with bounds or rows.

    Examples
    --------
    >>> import nsds
    >>> def F(z, out):  # that of the nearest point to (3, 1)
    ...     out[0], out[1] = z[0] - 3, z[1] - 1
    >>> nsds.solvers.solve_vi(F, [0.0, 0.0], G=[[-1, -1]], g=[-2]).z.round(9) + 0.0
    array([2., 0.])
    >>> nsds.solvers.solve_vi(F, [0.0, 0.0], cones=[2]).z.round(9)
    array([3., 1.])
    """
    owner = "solve_vi"
    results.check_policy(owner, on_failure)
    z0 = _checks.array(owner, "z0", z0, n_dims=1)
    n = z0.size
    rows, bounds = forms.constraints(owner, forms.bounds(owner, n, lower, upper), G, g, A, b)
    sizes = _NO_CONES
    if cones is not None:
        sizes = _sizes(owner, cones, n)
        if rows or np.isfinite(np.concatenate(bounds)).any():
            raise ValueError(f"{owner}: cones go with no bounds and no rows")
    if pattern is None:
        G = np.concatenate([np.zeros((0, n)), *(forms.dense(matrix) for matrix, _ in rows)])
    else:
        G = forms.blocks([[matrix] for matrix, _ in rows]).tocsr() if rows else np.zeros(0)
    feasible = _Set(*bounds, G, np.concatenate([np.zeros(0), *(vector for _, vector in rows)]), sizes)
    request = requested((owner, "vi" if cones is None else "soclcp", method, tol, max_iter, {}, z0, on_failure))
    s = _solved(request, F, jac, parameters, pattern, feasible)
    z, multipliers = np.split(s.z, [n])
    w = s.w[:n] + (G.T @ multipliers if rows else 0.0)
    return judged(InequalitySolution(z, w, *s[2:], multipliers), on_failure)


def solve_soclcp(M, q, cones, mu=1.0, z0=None, method="auto", tol=1e-10, max_iter=None, on_failure="raise"):
    """Second-order cone linear complementarity problem: ``w = M z + q``, ``K ∋ z ⟂ w ∈ K*``.

    K is a product of cones ``||(z_2, ..., z_size)|| <= mu z_1``, whose dual cones are those with 1 / mu. Without the slip term of Coulomb's
    law this is the convex problem of contacts with associated friction; that law itself is what `nsds.solvers.solve_fc3d` solves.

    Parameters
    ----------
    M : array_like or scipy.sparse (n, n)
        Matrix.
    q : array_like (n,)
        Vector.
    cones : sequence of int
        Sizes of the cones, which follow each other and cover all of z; 1 is the half-line.
    mu : float or array_like (number of cones,)
        Openings of the cones, positive.
    z0 : array_like (n,), optional
        First guess.
    method, tol, max_iter, on_failure
        As in `solve_ncp`; methods of ``nsds.solvers.methods("soclcp")``.

    Returns
    -------
    NonlinearSolution
        NamedTuple (z, w, status, n_iter, residual, method).

    Raises
    ------
    ValueError, TypeError, SolverError
        As `solve_ncp`; sizes of cones that do not add up to n, mu that is not positive.

    Examples
    --------
    >>> import nsds
    >>> s = nsds.solvers.solve_soclcp([[2, 0, 0], [0, 1, 0], [0, 0, 1]], [-1, -3, 0], cones=[3])
    >>> s.z.round(9) + 0.0, s.w.round(9) + 0.0
    (array([1.33333333, 1.33333333, 0.        ]), array([ 1.66666667, -1.66666667,  0.        ]))
    """
    owner = "solve_soclcp"
    q = _checks.array(owner, "q", q, n_dims=1)
    M = forms.dense(forms.matrix(owner, "M", M, (q.size, q.size)))
    sizes = _sizes(owner, cones, q.size)
    mu = _checks.array(owner, "mu", mu)
    if mu.shape not in ((), sizes.shape) or not (mu > 0.0).all():
        raise ValueError(f"{owner}: mu must be positive, a number or of shape {sizes.shape}, got {_checks.shortened(mu.tolist())}")
    scale = np.ones(q.size)  # of z, which makes the cones right-angled
    scale[np.cumsum(sizes) - sizes] = np.broadcast_to(mu, sizes.shape)
    z0 = np.zeros(q.size) if z0 is None else _checks.array(owner, "z0", z0, shape=q.shape)
    data = np.concatenate([q / scale, (M / np.outer(scale, scale)).ravel()])
    bounds = np.full(q.size, -np.inf), np.full(q.size, np.inf)
    functions = np.array([address(CALLBACK, _affine), address(CALLBACK, _matrix)], np.uintp)
    problem = Problem(functions, data, np.zeros(0), np.zeros(0), *bounds, sizes, np.ones(q.size), np.zeros(q.size))
    s = _run(requested(("solve_soclcp", "soclcp", method, tol, max_iter, {}, z0 * scale, on_failure)), problem)
    z = s.z / scale
    return judged(s._replace(z=z, w=M @ z + q), on_failure)


@kernel
def _affine(z, p, out):
    """``M z + q`` of ``p = (q, M)``."""
    for i in range(z.size):
        out[i] = p[i]
        for j in range(z.size):
            out[i] += p[z.size + i * z.size + j] * z[j]


@kernel
def _matrix(z, p, out):
    """M of ``p = (q, M)``."""
    for i in range(out.size):
        out[i] = p[z.size + i]


def _sizes(owner, cones, n):
    """Checked sizes of cones."""
    sizes = np.atleast_1d(_checks.whole_numbers(owner, "cones", cones))
    if sizes.ndim != 1 or (sizes < 1).any() or sizes.sum() != n:
        raise ValueError(f"{owner}: cones must be sizes of at least 1 whose sum is {n}, got {_checks.shortened(sizes.tolist())}")
    return sizes


class _Set(NamedTuple):
    """The feasible set: bounds, of z and of the multipliers of the rows ``G z >= g`` (and equations); or cones."""

    lower: np.ndarray
    upper: np.ndarray
    G: object = np.zeros(0)
    g: np.ndarray = np.zeros(0)
    cones: np.ndarray = _NO_CONES


def _solved(request, F, jac, parameters, pattern, feasible):
    """Check, compile, solve; unknowns are z and the multipliers of rows."""
    owner, z0, (*bounds, G, g, cones) = request.owner, request.guess, feasible
    results.check_policy(owner, request.on_failure)
    # 1. read
    p = np.zeros(0) if parameters is None else _checks.array(owner, "parameters", parameters, n_dims=1)
    if z0.size == 0:
        raise ValueError(f"{owner}: z0 must have at least one entry")
    indptr, indices = (None, None) if pattern is None else _pattern(owner, pattern, jac, cones, z0.size)
    n_values = 0 if pattern is None else indices.size
    functions = [
        Function(owner, field, function, parameters is not None, field == "jac" and pattern is None, n_values if field == "jac" else 0)
        for field, function in (("F", F), ("jac", jac))
        if field == "F" or function is not None
    ]
    start = np.clip(z0, *(side[: z0.size] for side in bounds))
    for function in functions:
        function.try_once(start, p)
    # 2. solve
    addresses = np.array([function.address for function in functions] + [0] * (2 - len(functions)), np.uintp)
    request = request._replace(guess=np.concatenate([start, np.zeros(g.size)]))
    units = np.ones(z0.size)
    if pattern is None:
        s = _in_any_units(
            _run, request, Problem(addresses, p, np.ascontiguousarray(G).reshape(-1), g, *bounds, cones, units, np.zeros(z0.size))
        )
    else:
        s = _in_any_units(_run_sparse, request, sparse.Problem(tuple(addresses), p, indptr, indices, G, g, *bounds, units))
    # 3. an error of a user's function comes before the result
    for function in functions:
        if function.error is not None:
            raise function.error
    return s


def _pattern(owner, pattern, jac, cones, n):
    """Checked (indptr, indices) of the compressed rows of a sparse Jacobian."""
    if jac is None:
        raise ValueError(f"{owner}: pattern goes with jac, which writes the values of its entries")
    if cones.size:
        raise ValueError(f"{owner}: pattern is for bounds and rows, not for cones")
    if not isinstance(pattern, (tuple, list)) or len(pattern) != 2:
        raise ValueError(f"{owner}: pattern must be (indptr, indices), got {_checks.shortened(pattern)}")
    indptr, indices = (
        np.atleast_1d(_checks.whole_numbers(owner, f"{name} of pattern", part))
        for name, part in zip(("indptr", "indices"), pattern, strict=True)
    )
    if indptr.shape != (n + 1,) or indices.ndim != 1 or indptr[0] != 0 or (np.diff(indptr) < 0).any() or indptr[-1] != indices.size:
        raise ValueError(
            f"{owner}: indptr of pattern must be {n + 1} numbers that ascend from 0 to the {indices.size} of indices, got "
            f"{_checks.shortened(indptr.tolist())}"
        )
    if indices.size and not 0 <= indices.min() <= indices.max() < n:
        raise ValueError(f"{owner}: indices of pattern must be from 0 to {n - 1}, got {indices.min()} to {indices.max()}")
    return indptr, indices


def _in_any_units(run, request, problem):
    """`NonlinearSolution` by a method, also where unknowns are small: then they are counted in units that F asks for at the start.

    Methods measure unknowns by 1 and more, so that all of F may be nothing beside its Jacobian where solutions are 10^-9.
    """
    n, start, units = problem.units.size, request.guess.copy(), problem.units
    s = run(request, problem)
    has_cones, is_cut_off = isinstance(problem, Problem) and problem.cones.size, s.status != CONVERGED and request.max_iter is not None
    if has_cones or is_cut_off:
        return s
    initial, n_iter = abs(_values(problem, start)), s.n_iter
    for _ in range(_ROUNDS):
        # 1. solved where F has lost what it had at the start, or has the signs that are asked for
        if s.status == CONVERGED and (_error(problem, s.z, s.w) <= _LEFT * initial).all():
            break
        # 2. else in natural units, as long as they are other ones
        found = _natural_units(problem, start, s.z if np.isfinite(s.z).all() else start, initial)
        if (found == units).all():
            break
        units, guess = found, s.z if s.status == CONVERGED else start
        scale = np.concatenate([units, np.ones(start.size - n)])
        s = run(request._replace(guess=guess / scale), _in_units(problem, units))
        s = s._replace(z=np.clip(scale * s.z, problem.lower, problem.upper), n_iter=s.n_iter + n_iter)
        n_iter = s.n_iter
    return s


def _in_units(problem, units):
    """The problem with other units of its unknowns but multipliers."""
    scale = np.concatenate([units, np.ones(problem.lower.size - units.size)])
    return problem._replace(units=units, lower=problem.lower / scale, upper=problem.upper / scale)


def _error(problem, z, F):
    """The part of F with a sign that does not go with the place of z."""
    return np.maximum(np.where(z < problem.upper, -F, 0.0), np.where(z > problem.lower, F, 0.0))


def _values(problem, z):
    """F of all unknowns."""
    if isinstance(problem, sparse.Problem):
        return sparse.evaluate(problem, z)
    F = np.zeros(z.size)
    evaluate(problem, z, F)
    return F


def _sizes_of_slopes(problem, z):
    """Magnitudes of the Jacobian by z alone, in compressed rows."""
    from scipy.sparse import csr_array

    if isinstance(problem, sparse.Problem):
        return abs(sparse.differentiate(problem, z)).tocsr()
    J = np.zeros(z.size**2)
    differentiate(problem, z, J, np.zeros(z.size**2 + 2 * z.size))
    return csr_array(abs(J.reshape(z.size, -1)))


def _natural_units(problem, start, z, worth):
    """Units of the unknowns: powers of two near the least z_j that carries alone what a row is worth, or its own size; 1 if that is more.

    So it is where that may be rounding of 1, and the start is 0. By differences the Jacobian at z is only known in such units, which are
    found by repetition; worth: of the rows, ``abs(F)`` at the start.
    """
    n, units = problem.units.size, np.ones(problem.units.size)
    size = np.maximum(abs(start[:n]), abs(z[:n]))
    for _ in range(_REPEATS):
        scale = np.concatenate([units, np.ones(z.size - n)])
        with np.errstate(all="ignore"):
            J = _sizes_of_slopes(_in_units(problem, units), z / scale)
        found = units * _SHORTER
        if np.isfinite(J.data).all():
            asked = np.full(z.size, np.inf)
            rows = np.repeat(np.arange(z.size), np.diff(J.indptr))
            told = (worth[rows] != 0.0) & np.isfinite(worth[rows]) & (J.data != 0.0)
            np.minimum.at(asked, J.indices[told], worth[rows[told]] / J.data[told])
            found = np.where(np.isfinite(asked[:n]), units * asked[:n], 1.0)
        found = np.maximum(np.maximum(found, size), _TINIEST)
        found = np.where(found <= _SMALL, found, 1.0)
        is_known = (abs(np.log2(found / units)) <= _NEAR).all()
        units = 2.0 ** np.round(0.5 * np.log2(found * units))  # half the way, as slopes of powers alternate
        if is_known:
            break
    return np.where((size == 0.0) & (units < _LEAST), 1.0, units)


def _run_sparse(request, problem):
    """`NonlinearSolution` by a method for sparse Jacobians."""
    method, options = request.choice()
    if method.name not in ("auto", *sparse.METHODS):
        raise ValueError(f"{request.owner}: with a pattern method must be one of auto, {', '.join(sparse.METHODS)}, got {method.name!r}")
    status, z, w, n_iter, residual, name = sparse.solve(method.name, problem, options, request.guess)
    return NonlinearSolution(z, w, int(status), int(n_iter), float(residual), name_of(method, (name,), 0))


def _run(request, problem):
    """`NonlinearSolution` by a method of the table."""
    (method, options), z = request.choice(), request.guess
    w, info = np.zeros(z.size), np.zeros(N_INFO)
    floats, integers = method.work_size(z.size)
    arguments = problem, options, z, w, info, np.zeros(floats), np.zeros(max(integers, 1), np.int64)
    status = left_at_interrupts(work_of(z.size * z.size, z.size, options.max_iter), method.kernel, *arguments)
    return NonlinearSolution(z, w, int(status), int(info[0]), float(info[1]), name_of(method, auto.ORDER, info[2]))
