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
from nsds.solvers.box.interior_sparse import interior_sparse
from nsds.solvers.box.signature import Options as BoxOptions
from nsds.solvers.nonlinear.signature import call_function
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, SINGULAR, STALLED

METHODS = ("newton_fb", "josephy")  # that are for sparse Jacobians, in the order of "auto"
_MAX_ITER = {"newton_fb": 300, "josephy": 100}
_SHIFTS = (1e-8, 1e-5, 1e-2, 1.0)  # of the units of a row, and of the map, until a step descends
_ARMIJO = 1e-4
_SHORTEST = 2.0**-12  # step of the line search
_BOX_TOL = 1e-10
_AT_KINK = 1.0 - np.sqrt(0.5)  # as in `nsds.solvers.nonlinear.newton`


class Problem(NamedTuple):
    """Addresses of F and of the function that writes the values of its Jacobian, their parameters, its pattern, and K.

    rows, of a sparse matrix, and g: inequalities and equations, whose multipliers are unknowns behind z, with bounds of their own.
    """

    functions: tuple
    parameters: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    rows: object
    g: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@kernel
def call(function, z, p, out):
    """A user's function at an address."""
    call_function(function, (z, p, out))


def evaluate(p, z):
    """F(z) of all unknowns."""
    n = z.size - p.g.size
    F, inner = np.zeros(n), np.ascontiguousarray(z[:n])
    call(p.functions[0], inner, p.parameters, F)
    return np.concatenate([F - p.rows.T @ z[n:], p.rows @ inner - p.g]) if p.g.size else F


def differentiate(p, z):
    """The Jacobian of all unknowns, by compressed rows."""
    from scipy.sparse import block_array, csr_array

    n, values = z.size - p.g.size, np.zeros(p.indices.size)
    call(p.functions[1], np.ascontiguousarray(z[:n]), p.parameters, values)
    J = csr_array((values, p.indices, p.indptr), shape=(n, n))
    return block_array([[J, -p.rows.T], [p.rows, None]], format="csr") if p.g.size else J


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
        for method in METHODS if name == "auto" else (name,):
            limit = int(options.max_iter) if options.max_iter > 0.0 else _MAX_ITER[method]
            step = _newton_step if method == "newton_fb" else _josephy_step
            status, found, count = _iterate(step, p, options.tol, limit, z)
            n_iter += count
            result = *_judged(status, p, options.tol, found), n_iter, method
            if best is None or result[3] < best[3]:
                best = result
            if result[0] == CONVERGED:
                break
    status, z, F, error, _, method = best
    return status, z, F, n_iter, error, method


def _iterate(step, p, tol, limit, z):
    """(status, z, iterations)."""
    z = np.clip(z, p.lower, p.upper)
    F = evaluate(p, z)
    for n_iter in range(limit + 1):
        J = differentiate(p, z)
        if not (np.isfinite(F).all() and np.isfinite(J.data).all()):
            return NON_FINITE, z, n_iter
        if residual(p, z, F, J) <= tol or n_iter == limit:
            return MAX_ITER, z, n_iter
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
        _, x, _, info = interior_sparse(row, column, data, vector, p.lower, p.upper, BoxOptions(_BOX_TOL, 0.0, 0.0, 0.0, 0.0, 0.0))
        if np.isfinite(info[1]):
            new = _search(p, z, x - z, merit, -2.0 * merit, lambda x, w: (_mid(p.lower, p.upper, x, w) ** 2).sum())
            if new is not None:
                return CONVERGED, *new
    return SINGULAR, z, F


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
