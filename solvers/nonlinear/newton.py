"""Semismooth Newton methods with line search, on Fischer and Burmeister's map or on the natural map ``z - P(z - F)``.

Both maps vanish at solutions and nowhere else. Each iteration solves ``H d = -Phi(z)`` with an element H of the generalised Jacobian, and
goes along d, or against the gradient ``H^T Phi`` of ``||Phi||^2 / 2`` where d does not descend, until that falls as Armijo asks for.
References: De Luca, Facchinei, Kanzow, Mathematical Programming 75 (1996) 407; Billups, Dissertation, Madison 1995 (two bounds); Grippo,
Lampariello, Lucidi, SIAM Journal on Numerical Analysis 23 (1986) 707 (line search).
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, tiny, view
from nsds.solvers.nonlinear.signature import differentiate, evaluate, judge, judge_size, mid, project_cone, residual
from nsds.status import MAX_ITER, NON_FINITE, STALLED

_MAX_ITER = 300
_MEMORY = 8  # iterations whose largest merit a step must be below
_ARMIJO = 1e-4
_SHORTEST = 1e-12  # step of the line search
_DESCENT = 1e-9  # of ||d||^2.1: how steep a direction must be
_AT_KINK = 1.0 - math.sqrt(0.5)  # derivative of Fischer and Burmeister's function at 0, along the diagonal
_UNITS = 10.0  # what an entry of J may grow or shrink by before units of F change
_PIVOT = 1e-14  # of the largest entry of a row: no pivot


class _Scratch(NamedTuple):
    """Jacobian of F; H; Phi; direction, gradient; trial point, F there; x of a cone; units of F; merits of the last iterations; room."""

    J: np.ndarray
    H: np.ndarray
    Phi: np.ndarray
    d: np.ndarray
    gradient: np.ndarray
    trial: np.ndarray
    trial_w: np.ndarray
    x: np.ndarray
    unit: np.ndarray
    merits: np.ndarray
    spare: np.ndarray


def work_size(n):
    """Scratch for n unknowns."""
    return 2 * n * n + 7 * n + _MEMORY + judge_size(n), n


@kernel
def newton_fb(p, options, z, w, info, work, iwork):
    """Newton's method on Fischer and Burmeister's map, ``a + b - sqrt(a^2 + b^2)``; bounds only."""
    return _newton(True, p, options, z, w, info, work, iwork)


@kernel
def newton_natural(p, options, z, w, info, work, iwork):
    """Newton's method on the natural map, ``min(z, F)`` for the nonlinear complementarity problem; cones, too."""
    return _newton(False, p, options, z, w, info, work, iwork)


@tiny
def _scratch(n, work):
    at = 2 * n * n
    return _Scratch(
        view(work, 0, n * n), view(work, n * n, n * n), view(work, at, n), view(work, at + n, n), view(work, at + 2 * n, n),
        view(work, at + 3 * n, n), view(work, at + 4 * n, n), view(work, at + 5 * n, n), view(work, at + 6 * n, n),
        view(work, at + 7 * n, _MEMORY), view(work, at + 7 * n + _MEMORY, judge_size(n)),
    )  # fmt: skip


@kernel
def _newton(is_fb, p, options, z, w, info, work, iwork):
    """See the module; is_fb: on which map."""
    n, s, status = z.size, _scratch(z.size, work), MAX_ITER
    max_iter = int(options.max_iter) if options.max_iter > 0.0 else _MAX_ITER
    if not evaluate(p, z, w):
        return judge(NON_FINITE, 0, p, options, z, w, info, s.spare)
    n_iter, since = 0, 0
    for n_iter in range(max_iter + 1):
        differentiate(p, z, s.J, s.spare)
        if _choose_units(n_iter == 0, p, s.J, s.unit):
            since = n_iter
        merit = _map(is_fb, p, z, w, s.unit, s.Phi)
        if residual(p, z, w, s.J, s.spare) <= options.tol or n_iter == max_iter:
            break
        _generalised_jacobian(is_fb, p, z, w, s)
        for j in range(n):
            s.gradient[j] = 0.0
            for i in range(n):
                s.gradient[j] += s.H[i * n + j] * s.Phi[i]
        s.merits[n_iter % _MEMORY] = merit
        bound = merit
        for k in range(max(since, n_iter + 1 - _MEMORY), n_iter):
            bound = max(bound, s.merits[k % _MEMORY])
        is_descent = _solve(s.H, s.Phi, s.d, iwork) and _slope(s) <= -_DESCENT * _norm(s.d) ** 2.1
        if not (is_descent and _search(is_fb, bound, p, z, w, s)):
            for i in range(n):
                s.d[i] = -s.gradient[i]
            if not _search(is_fb, merit, p, z, w, s):
                status = STALLED
                break
    return judge(status, n_iter, p, options, z, w, info, s.spare)


@tiny
def _choose_units(is_first, p, J, unit):
    """Units of the rows of F in which the largest entries of J are about one, so that the maps do not depend on units; True: they changed.

    They stay while the entries do, up to a factor: merits in other units cannot be compared.
    """
    changes = is_first
    for i in range(unit.size):
        largest = 0.0
        for j in range(unit.size):
            largest = max(largest, abs(J[i * unit.size + j]))
        if is_first:
            unit[i] = 1.0
        if p.cones.size == 0 and 0.0 < largest < math.inf and (is_first or not 1.0 / _UNITS <= largest * unit[i] <= _UNITS):
            unit[i], changes = 1.0 / largest, True
    return changes


@tiny
def _norm(x):
    s = 0.0
    for i in range(x.size):
        s += x[i] * x[i]
    return math.sqrt(s)


@tiny
def _slope(s):
    """Derivative of the merit along d."""
    slope = 0.0
    for i in range(s.d.size):
        slope += s.gradient[i] * s.d[i]
    return slope


@tiny
def _fb(a, b):
    """(value, derivatives by a and b) of ``a + b - sqrt(a^2 + b^2)``, without cancellation where both are positive."""
    r = math.hypot(a, b)
    if r == 0.0:
        return 0.0, _AT_KINK, _AT_KINK
    value = 2.0 * a * (b / (a + b + r)) if a > 0.0 and b > 0.0 else a + b - r
    return value, 1.0 - a / r, 1.0 - b / r


@tiny
def fb_row(lower, upper, z, F):
    """(value, derivatives by z and F) of the map for one row with bounds."""
    value, by_z, by_F = F, 0.0, 1.0
    if upper < math.inf:
        value, by_z, by_F = _fb(upper - z, -F)
        value = -value
    if lower > -math.inf:
        outer, by_a, by_b = _fb(z - lower, value)
        value, by_z, by_F = outer, by_a + by_b * by_z, by_b * by_F
    return value, by_z, by_F


@kernel
def _map(is_fb, p, z, F, unit, Phi):
    """``||Phi||^2 / 2``. Out: Phi."""
    at = 0
    for k in range(p.cones.size):
        for i in range(at, at + p.cones[k]):
            Phi[i] = z[i] - F[i]
        project_cone(view(Phi, at, p.cones[k]))
        for i in range(at, at + p.cones[k]):
            Phi[i] = z[i] - Phi[i]
        at += p.cones[k]
    for i in range(at, z.size):
        f = unit[i] * F[i]
        Phi[i] = fb_row(p.lower[i], p.upper[i], z[i], f)[0] if is_fb else mid(p.lower[i], p.upper[i], z[i], f)
    merit = 0.0
    for i in range(z.size):
        merit += 0.5 * Phi[i] * Phi[i]
    return merit


@kernel
def _generalised_jacobian(is_fb, p, z, F, s):
    """An element of the generalised Jacobian of the map at z. Out: H."""
    n, at = z.size, 0
    for k in range(p.cones.size):
        _cone_rows(at, p.cones[k], z, F, s)
        at += p.cones[k]
    for i in range(at, n):
        f = s.unit[i] * F[i]
        if is_fb:
            _, by_z, by_F = fb_row(p.lower[i], p.upper[i], z[i], f)
        else:
            by_F = 1.0 if mid(p.lower[i], p.upper[i], z[i], f) == f else 0.0
            by_z = 1.0 - by_F
        for j in range(n):
            s.H[i * n + j] = by_F * s.unit[i] * s.J[i * n + j] + (by_z if i == j else 0.0)


@kernel
def _cone_rows(at, size, z, F, s):
    """Rows ``I - V (I - J)`` of H for one cone, V a derivative of the projection at ``x = z - F``. Work: the vector x."""
    n, x, r = z.size, s.x, 0.0
    for i in range(at, at + size):
        x[i] = z[i] - F[i]
        if i > at:
            r = math.hypot(r, x[i])
    for j in range(n):
        along = 0.0  # the direction of x, times column j of I - J
        for l in range(at + 1, at + size):
            along += x[l] / r * ((1.0 if l == j else 0.0) - s.J[l * n + j]) if r > 0.0 else 0.0
        first = (1.0 if at == j else 0.0) - s.J[at * n + j]
        for i in range(at, at + size):
            unit, own = 1.0 if i == j else 0.0, (1.0 if i == j else 0.0) - s.J[i * n + j]
            moved = own
            if r > x[at]:
                moved = 0.0
                if r > -x[at]:
                    ratio = x[at] / r
                    moved = 0.5 * (first + along) if i == at else 0.5 * (x[i] / r * (first - ratio * along) + (1.0 + ratio) * own)
            s.H[i * n + j] = unit - moved


@kernel
def _solve(H, Phi, d, order):
    """``H d = -Phi`` by elimination with row pivots, H being overwritten. False where H is singular."""
    n = d.size
    for i in range(n):
        d[i], order[i] = -Phi[i], i
    for k in range(n):
        best, size = k, 0.0
        for i in range(k, n):
            if abs(H[i * n + k]) > size:
                best, size = i, abs(H[i * n + k])
        scale = 0.0
        for j in range(n):
            scale = max(scale, abs(H[best * n + j]))
        if not size > _PIVOT * scale:
            return False
        if best != k:
            d[k], d[best] = d[best], d[k]
            for j in range(n):
                H[k * n + j], H[best * n + j] = H[best * n + j], H[k * n + j]
        for i in range(k + 1, n):
            factor = H[i * n + k] / H[k * n + k]
            if factor != 0.0:
                d[i] -= factor * d[k]
                for j in range(k + 1, n):
                    H[i * n + j] -= factor * H[k * n + j]
    zero = 0.0
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            d[k] -= H[k * n + j] * d[j]
        d[k] /= H[k * n + k]
        zero += 0.0 * d[k]
    return zero == 0.0


@kernel
def _search(is_fb, bound, p, z, w, s):
    """Shorten the step along d until the merit is below the bound by Armijo's rule. False where it never is. In/out: z, w."""
    t, slope = 1.0, min(_slope(s), 0.0)
    while t >= _SHORTEST:
        for i in range(z.size):
            s.trial[i] = z[i] + t * s.d[i]
        if evaluate(p, s.trial, s.trial_w) and _map(is_fb, p, s.trial, s.trial_w, s.unit, s.Phi) <= bound + _ARMIJO * t * slope:
            is_still = True
            for i in range(z.size):
                is_still &= s.trial[i] == z[i]
                z[i], w[i] = s.trial[i], s.trial_w[i]
            return not is_still
        t *= 0.5
    return False
