"""Nonlinear problems whose Jacobian is sparse: Newton's methods in Python, with SuperLU between evaluations of compiled functions.

The problem is that of `nsds.solvers.nonlinear.signature`, with bounds. References as of `nsds.solvers.nonlinear.newton` and
`nsds.solvers.nonlinear.josephy`; the shift of the Jacobian, which singular monotone problems need: Facchinei, Kanzow, SIAM Journal on
Control and Optimization 37 (1999) 1150–1161.
"""

from typing import NamedTuple

import numpy as np

from nsds._jit import kernel
from nsds.maths.superlu import factorise
from nsds.solvers.box import forms
from nsds.solvers.box import signature as box
from nsds.solvers.box.interior_sparse import interior_sparse
from nsds.solvers.nonlinear.signature import call_function
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, SINGULAR, STALLED

METHODS = ("newton_fb", "josephy")  # that are for sparse Jacobians, in the order of "auto"
_MAX_ITER = {"newton_fb": 300, "interior_point": 100, "josephy": 100}
_SHIFTS = (1e-8, 1e-5, 1e-2, 1.0)  # of the units of a row, and of the map, until a step descends
_ARMIJO = 1e-4
_SHORTEST = 2.0**-12  # step of the line search
_BOX_TOL = 1e-10
_PATIENCE = 15  # iterations in which the residual must halve, where other methods are left
_TO_BOUND = 0.99  # of the way to the nearest bound
_NEAR, _NEARER = 1e-2, 0.3  # of the residual: from where, and how much after the last time, an iterate is tried as the end
_END_STEPS = 6
_END_SHIFT = 1e-9  # of the equations of the end, and of the iteration, in units of rows
_AT_KINK = 1.0 - np.sqrt(0.5)  # as in `nsds.solvers.nonlinear.newton`


class Problem(NamedTuple):
    """Addresses of F and of the function that writes the values of its Jacobian, their parameters, its pattern, and K.

    rows, of a sparse matrix, and g: inequalities and equations, whose multipliers are unknowns behind z, with bounds of their own. units:
    as in `nsds.solvers.nonlinear.signature.Problem`.
    """

    functions: tuple
    parameters: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    rows: object
    g: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    units: np.ndarray


@kernel
def call(function, z, p, out):
    """A user's function at an address."""
    call_function(function, (z, p, out))


def evaluate(p, z):
    """F(z) of all unknowns."""
    n = z.size - p.g.size
    F, inner = np.zeros(n), p.units * z[:n]
    call(p.functions[0], inner, p.parameters, F)
    return np.concatenate([F - p.rows.T @ z[n:], p.rows @ inner - p.g]) if p.g.size else F


def differentiate(p, z):
    """The Jacobian of all unknowns, by compressed rows."""
    from scipy.sparse import block_array, csr_array

    n, values = z.size - p.g.size, np.zeros(p.indices.size)
    call(p.functions[1], p.units * z[:n], p.parameters, values)
    J = csr_array((values * p.units[p.indices], p.indices, p.indptr), shape=(n, n))
    return block_array([[J, -p.rows.T], [p.rows * p.units, None]], format="csr") if p.g.size else J


def residual(p, z, F, J):
    """As `nsds.solvers.nonlinear.signature.residual`."""
    terms, size = abs(J) @ (1.0 + abs(z)), 1.0 + abs(z)
    worst = abs(_mid(p.lower / size, p.upper / size, z / size, F / np.where(terms != 0.0, terms, 1.0))).max(initial=0.0)
    return worst if np.isfinite(worst) else np.inf


def _mid(lower, upper, z, F):
    return np.maximum(np.minimum(F, z - lower), z - upper)


def solve(name, p, options, z):
    """(status, z, F, iterations, residual, method) from a first guess, by a method of `METHODS`, or by all, "auto"."""
    best, n_iter = None, 0
    with np.errstate(all="ignore"):
        for method in ("newton_fb", "interior_point", "josephy") if name == "auto" else (name,):
            limit = int(options.max_iter) if options.max_iter > 0.0 else _MAX_ITER[method]
            if method == "interior_point":
                status, found, count = _interior(p, options.tol, limit, z)
            else:
                step = _newton_step if method == "newton_fb" else _josephy_step
                patience = _PATIENCE if name == "auto" and method == "newton_fb" else limit
                status, found, count = _iterate(step, p, options.tol, limit, patience, z)
            n_iter += count
            result = *_judged(status, p, options.tol, found), n_iter, method
            if best is None or result[3] < best[3]:
                best = result
            if result[0] == CONVERGED:
                break
    status, z, F, error, _, method = best
    return status, z, F, n_iter, error, method


def _iterate(step, p, tol, limit, patience, z):
    """(status, z, iterations)."""
    z = np.clip(z, p.lower, p.upper)
    F, least, since = evaluate(p, z), np.inf, 0
    for n_iter in range(limit + 1):
        J = differentiate(p, z)
        if not (np.isfinite(F).all() and np.isfinite(J.data).all()):
            return NON_FINITE, z, n_iter
        error = residual(p, z, F, J)
        if error <= tol or n_iter == limit:
            return MAX_ITER, z, n_iter
        least, since = (error, n_iter) if error < 0.5 * least else (least, since)
        if n_iter - since > patience:
            return STALLED, z, n_iter
        status, z, F = step(p, z, F, J)
        if status != CONVERGED:
            return status, z, n_iter
    return MAX_ITER, z, limit


def _judged(status, p, tol, z):
    """(status, z, F, residual): what is at a bound within tol goes there where that is no worse, and only the residual says CONVERGED."""
    z = np.clip(z, p.lower, p.upper)
    near = tol * (1.0 + abs(z))
    moved = np.where(z - p.lower <= near, p.lower, np.where(p.upper - z <= near, p.upper, z))
    found = [(residual(p, x, F, J), x, F) for x in (moved, z) for F, J in [(evaluate(p, x), differentiate(p, x))]]
    error, z, F = min(found, key=lambda one: one[0])
    return CONVERGED if error <= tol else status if np.isfinite(error) else NON_FINITE, z, F, error


def _fischer_burmeister(p, z, f):
    """(Phi, its derivatives by z and f) of the map for rows with bounds, as `nsds.solvers.nonlinear.newton.fb_row`."""
    value, by_z, by_f = f.copy(), np.zeros(z.size), np.ones(z.size)
    has = np.isfinite(p.upper)
    inner, by_a, by_b = _phi(p.upper[has] - z[has], -f[has])
    value[has], by_z[has], by_f[has] = -inner, by_a, by_b
    has = np.isfinite(p.lower)
    outer, by_a, by_b = _phi(z[has] - p.lower[has], value[has])
    value[has], by_z[has], by_f[has] = outer, by_a + by_b * by_z[has], by_b * by_f[has]
    return value, by_z, by_f


def _phi(a, b):
    """``a + b - sqrt(a^2 + b^2)`` without cancellation, and its derivatives."""
    r = np.hypot(a, b)
    safe = np.where(r > 0.0, r, 1.0)
    value = np.where((a > 0.0) & (b > 0.0), 2.0 * a * (b / np.where(a + b + r != 0.0, a + b + r, 1.0)), a + b - r)
    return value, np.where(r > 0.0, 1.0 - a / safe, _AT_KINK), np.where(r > 0.0, 1.0 - b / safe, _AT_KINK)


def _newton_step(p, z, F, J):
    """A step on Fischer and Burmeister's map, with the least shift of the Jacobian of which it descends, or against the gradient."""
    from scipy.sparse import diags_array

    largest = abs(J).max(axis=1).toarray().ravel()
    unit = 1.0 / np.where(largest > 0.0, largest, 1.0)
    Phi, by_z, by_f = _fischer_burmeister(p, z, unit * F)
    H, size = diags_array(by_f * unit) @ J + diags_array(by_z), min(1.0, abs(Phi).max())
    gradient = H.T @ Phi
    for shift in (*_SHIFTS, None):
        if shift is None:
            d = -gradient
        else:
            try:
                d = factorise(H + diags_array(shift * size * by_f)).solve(-Phi)
            except RuntimeError:  # singular
                continue
        slope = gradient @ d
        if np.isfinite(slope) and slope < 0.0:
            new = _search(p, z, d, 0.5 * Phi @ Phi, slope, lambda x, w: 0.5 * (_fischer_burmeister(p, x, unit * w)[0] ** 2).sum())
            if new is not None:
                return CONVERGED, *new
    return STALLED, z, F


def _josephy_step(p, z, F, J):
    """A step towards the solution of the linearised problem, along which the natural map falls."""
    from scipy.sparse import diags_array

    largest = abs(J).max(axis=1).toarray().ravel()
    merit = (_mid(p.lower, p.upper, z, F) ** 2).sum()
    for shift in (0.0, *_SHIFTS):
        M = (J + diags_array(shift * largest)).tocoo()
        row, column, data, _ = forms.compressed_rows(M)
        vector = F - M @ z
        linear = box.Problem(row, column, data, vector, p.lower, p.upper)
        _, x, _, info = interior_sparse(linear, box.Options(_BOX_TOL, 0.0, 0.0, 0.0, 0.0, 0.0))
        if np.isfinite(info[1]):
            new = _search(p, z, x - z, merit, -2.0 * merit, lambda x, w: (_mid(p.lower, p.upper, x, w) ** 2).sum())
            if new is not None:
                return CONVERGED, *new
    return SINGULAR, z, F


class _Interior(NamedTuple):
    """A point between the bounds and the parts a and b of F at lower and upper ones, all positive where there are such bounds."""

    z: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def moved(self, t, dz, da, db):
        return _Interior(self.z + t * dz, self.a + t * da, self.b + t * db)


def _interior(p, tol, limit, z):
    """(status, z, iterations) by interior points, of monotone F: ``F = a - b``, ``a (z - lower) = b (upper - z) = mu``, mu to 0.

    Mehrotra's predictor and corrector, with the longest step by which ``F - a + b`` falls; ends as in `nsds.solvers.box.interior_sparse`.
    Reference: Wright, Ralph, Mathematics of Operations Research 21 (1996) 815–838.
    """
    from scipy.sparse import diags_array

    fixed = p.lower == p.upper
    has_low, has_high = np.isfinite(p.lower) & ~fixed, np.isfinite(p.upper) & ~fixed
    n_bounds = max(int(has_low.sum() + has_high.sum()), 1)
    F = evaluate(p, np.clip(z, p.lower, p.upper))
    size = max(1.0, 0.1 * abs(F).max(initial=0.0), abs(z).max(initial=0.0))
    room = np.minimum(size, np.where(has_low & has_high, 0.25 * (p.upper - p.lower), np.inf))
    z = np.clip(z, np.where(has_low, p.lower + room, -np.inf), np.where(has_high, p.upper - room, np.inf))
    z = np.where(fixed, p.lower, z)
    x, tried = _Interior(z, np.where(has_low, size, 0.0), np.where(has_high, size, 0.0)), np.inf
    for n_iter in range(limit + 1):
        F, J = evaluate(p, x.z), differentiate(p, x.z)
        if not (np.isfinite(F).all() and np.isfinite(J.data).all()):
            return NON_FINITE, x.z, n_iter
        error = residual(p, x.z, F, J)
        if error <= tol or n_iter == limit:
            return MAX_ITER, x.z, n_iter
        below, above = np.where(has_low, x.z - p.lower, 1.0), np.where(has_high, p.upper - x.z, 1.0)
        if error < min(_NEAR, _NEARER * tried):
            tried = error
            end = _end(p, tol, np.where((has_low & (x.a > below)) | fixed, p.lower, np.where(has_high & (x.b > above), p.upper, x.z)))
            if end is not None:
                return MAX_ITER, end, n_iter
        r, mu = np.where(fixed, 0.0, F - x.a + x.b), (x.a @ below + x.b @ above) / n_bounds
        unit = abs(J).max(axis=1).toarray().ravel()
        free = diags_array(np.where(fixed, 0.0, 1.0))
        D = np.where(fixed, 1.0, x.a / below + x.b / above + _END_SHIFT * unit)
        try:
            factors = factorise(free @ J @ free + diags_array(D), diag_pivot_thresh=0.01)
        except RuntimeError:
            return SINGULAR, x.z, n_iter
        d, target = None, 0.0
        for _ in range(2):
            more_a, more_b = (0.0, 0.0) if d is None else (d[1] * d[0], -d[2] * d[0])
            to_a = np.where(has_low, (target - more_a) / below - x.a, 0.0)
            to_b = np.where(has_high, (target - more_b) / above - x.b, 0.0)
            dz = factors.solve(np.where(fixed, 0.0, -r + to_a - to_b))
            d = dz, np.where(has_low, to_a - x.a / below * dz, 0.0), np.where(has_high, to_b + x.b / above * dz, 0.0)
            pairs = ((below, dz, has_low), (above, -dz, has_high), (x.a, d[1], has_low), (x.b, d[2], has_high))
            t = min((value[k] / -change[k]).min(initial=np.inf) for value, change, has in pairs for k in [has & (change < 0.0)])
            if target == 0.0:
                y = x.moved(min(1.0, t), *d)
                ahead = (y.a @ np.where(has_low, y.z - p.lower, 0.0) + y.b @ np.where(has_high, p.upper - y.z, 0.0)) / n_bounds
                target = mu * max(ahead / mu, 1e-4) ** 3 if mu > 0.0 else 0.0
        t, before = min(1.0, _TO_BOUND * t), np.sqrt(r @ r)
        while t >= _SHORTEST:
            y = x.moved(t, *d)
            w = np.where(fixed, 0.0, evaluate(p, y.z) - y.a + y.b)
            if np.isfinite(w).all() and np.sqrt(w @ w) <= max((1.0 - _ARMIJO * t) * before, 1e-10 * abs(F).max()):
                break
            t *= 0.5
        if t < _SHORTEST:
            return STALLED, x.z, n_iter
        x = y
    return MAX_ITER, x.z, limit


def _end(p, tol, z):
    """A solution with those at bounds that are there, by Newton's method from z for the others; None: it finds none."""
    from scipy.sparse import diags_array

    B = np.flatnonzero((z > p.lower) & (z < p.upper))
    for _ in range(_END_STEPS if B.size else 0):
        F, J = evaluate(p, z), differentiate(p, z)
        if not (np.isfinite(F).all() and np.isfinite(J.data).all()):
            return None
        M = J[B][:, B]
        unit = abs(M).max(axis=1).toarray().ravel()
        try:
            z[B] -= factorise(M + diags_array(_END_SHIFT * np.where(unit > 0.0, unit, 1.0))).solve(F[B])
        except RuntimeError:
            return None
        end = np.clip(z, p.lower, p.upper)
        if np.isfinite(end).all() and residual(p, end, evaluate(p, end), differentiate(p, end)) <= tol:
            return end
    return None


def _search(p, z, d, merit, slope, merit_of):
    """(z, F) at the end of the longest step, 1, 1/2, ..., by which the merit falls as Armijo asks for; None: none."""
    t = 1.0
    while t >= _SHORTEST:
        x = z + t * d
        w = evaluate(p, x)
        if np.isfinite(w).all() and merit_of(x, w) <= merit + _ARMIJO * t * slope and (x != z).any():
            return x, w
        t *= 0.5
    return None
