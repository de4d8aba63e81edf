"""A predictor-corrector interior point method: few iterations whatever the problem, one factorisation each."""

import math

from nsds._jit import inlined, kernel, tiny, view
from nsds.solvers.box import band
from nsds.solvers.box.signature import a_row_is_infeasible, affordable, judge, largest_in_row
from nsds.status import INFEASIBLE, MAX_ITER, SINGULAR, STALLED

_LIMIT = 100
_TO_THE_BORDER = 0.9995
_SMALLEST_STEP = 1e-8
_HELD = 1e30  # added to the diagonal where z is fixed
_SHIFT = 1e-9  # added where z is free and the equations are singular, relative to the row


def work_size(n, row, column):
    """The band of ``M + D``; multipliers of both bounds, affine and final direction."""
    return band.room(n, band.half_width(n, row, column)) + 4 * n, 2 * n


@kernel
def interior_point(problem, options, z, w, info, work, iwork):
    """Box problem ``M z + q = a - b``, ``z - lower > 0``, ``upper - z > 0``: ``a_i (z - lower)_i = b_i (upper - z)_i = mu``, mu to 0.

    Converges for positive semidefinite M if there is a solution, in 10 to 40 iterations; the guess is not used.
    INFEASIBLE: a row proves it. STALLED: steps vanish. SINGULAR: ``M + D`` is.
    Where the one or the other happens first, free z get a small proximal term for the rest of the way.
    Reference: Mehrotra, SIAM Journal on Optimization 2 (1992) 575–601; Wright, Primal-Dual Interior-Point Methods, chapter 8.
    """
    n = problem.q.size
    half = band.measure(n, problem.row, problem.column)
    a, b, affine, dz = view(work, 0, n), view(work, n, n), view(work, 2 * n, n), view(work, 3 * n, n)
    A, every, pivots = view(work, 4 * n, band.room(n, half)), view(iwork, 0, n), view(iwork, n, n)
    _start(problem, z, a, b, every)
    limit = int(options.max_iter) if options.max_iter > 0 else affordable(_LIMIT, n * (half + 1.0) ** 2)
    status, n_iter, shift = MAX_ITER, 0, 0.0
    while True:
        status = judge(status, n_iter, problem, options, z, w, info)
        if (status not in (MAX_ITER, SINGULAR, STALLED)) or n_iter == limit or (status != MAX_ITER and shift > 0.0):
            break
        shift = _SHIFT if status != MAX_ITER else shift
        n_iter += 1
        _newton_matrix(shift, half, problem, z, a, b, every, A)
        if not band.factorise(n, half, A, pivots):
            status = SINGULAR
            continue
        for i in range(n):
            affine[i] = 0.0
        _right_hand_side(0.0, problem, z, w, a, b, affine, dz)
        band.substitute(n, half, A, pivots, dz)
        mu = _gap(0.0, 0.0, problem, z, a, b, affine, dz)
        ahead = _gap(_largest_step(0.0, problem, z, a, b, affine, dz), 0.0, problem, z, a, b, affine, dz)
        target = mu * (ahead / mu) ** 3 if mu > 0.0 else 0.0
        for i in range(n):
            affine[i] = dz[i]
        _right_hand_side(target, problem, z, w, a, b, affine, dz)
        band.substitute(n, half, A, pivots, dz)
        step = min(1.0, _TO_THE_BORDER * _largest_step(target, problem, z, a, b, affine, dz))
        status = MAX_ITER if step > _SMALLEST_STEP else STALLED
        _advance(step, target, problem, z, a, b, affine, dz)
    if status in (MAX_ITER, STALLED) and a_row_is_infeasible(problem):
        return INFEASIBLE
    return status


@inlined
def _newton_matrix(shift, half, problem, z, a, b, every, A):
    """``M + D`` with D = a / (z - lower) + b / (upper - z)."""
    lower, upper = problem.lower, problem.upper
    band.fill(z.size, half, problem.row, problem.column, problem.M, every, every, A)
    for i in range(z.size):
        D = _HELD if lower[i] == upper[i] else a[i] / (z[i] - lower[i]) + b[i] / (upper[i] - z[i])
        if lower[i] == -math.inf and upper[i] == math.inf:
            largest = largest_in_row(problem.row, problem.M, i)
            D = shift * (largest if largest > 0.0 else 1.0)
        A[i * (3 * half + 1) + half] += D


@inlined
def _start(problem, z, a, b, every):
    """z in the middle of its bounds or at a distance of ``size / max_j |M_ij|`` from the only one; multipliers of the size of q."""
    q, lower, upper = problem.q, problem.lower, problem.upper
    size = 0.0
    for i in range(q.size):
        size = max(size, abs(q[i]))
    size = size if size > 0.0 else 1.0
    for i in range(q.size):
        every[i], largest = i, largest_in_row(problem.row, problem.M, i)
        distance = size / largest if largest > 0.0 else 1.0
        has_lower, has_upper = lower[i] > -math.inf, upper[i] < math.inf
        if has_lower and has_upper:
            z[i] = 0.5 * (lower[i] + upper[i])
        else:
            z[i] = lower[i] + distance if has_lower else upper[i] - distance if has_upper else 0.0
        a[i] = size if has_lower and lower[i] < upper[i] else 0.0
        b[i] = size if has_upper and lower[i] < upper[i] else 0.0


@tiny
def _lift(target, slack, multiplier, affine):
    """Multiplier that belongs to a slack: ``(target - second order correction) / slack``."""
    return (target + affine * multiplier * (1.0 + affine / slack)) / slack


@tiny
def _change(target, slack, multiplier, affine, d):
    """Change of a multiplier when its slack changes by d: ``slack multiplier = target`` linearised, with Mehrotra's correction."""
    return _lift(target, slack, multiplier, affine) - multiplier - multiplier / slack * d


@kernel
def _right_hand_side(target, problem, z, w, a, b, affine, rhs):
    """``-w + lift of the lower bound - lift of the upper one``; 0 where z is fixed."""
    lower, upper = problem.lower, problem.upper
    for i in range(z.size):
        rhs[i] = 0.0
        if lower[i] < upper[i]:
            above, below = z[i] - lower[i], upper[i] - z[i]
            rhs[i] = -w[i] + _lift(target, above, a[i], affine[i]) - _lift(target, below, b[i], -affine[i])


@kernel
def _largest_step(target, problem, z, a, b, affine, dz):
    """Up to where slacks and multipliers stay positive; at most 1 / 0.9995."""
    lower, upper = problem.lower, problem.upper
    step = 1.0 / _TO_THE_BORDER
    for i in range(z.size):
        if lower[i] < upper[i]:
            above, below = z[i] - lower[i], upper[i] - z[i]
            da, db = _change(target, above, a[i], affine[i], dz[i]), _change(target, below, b[i], -affine[i], -dz[i])
            step = min(step, above / -dz[i] if dz[i] < 0.0 else math.inf, below / dz[i] if dz[i] > 0.0 else math.inf)
            step = min(step, a[i] / -da if da < 0.0 else math.inf, b[i] / -db if db < 0.0 else math.inf)
    return step


@kernel
def _gap(step, target, problem, z, a, b, affine, dz):
    """Mean product of slack and multiplier after a step."""
    lower, upper = problem.lower, problem.upper
    total, count = 0.0, 0
    for i in range(z.size):
        if lower[i] > -math.inf and lower[i] < upper[i]:
            above = z[i] - lower[i]
            total += (above + step * dz[i]) * (a[i] + step * _change(target, above, a[i], affine[i], dz[i]))
            count += 1
        if upper[i] < math.inf and lower[i] < upper[i]:
            below = upper[i] - z[i]
            total += (below - step * dz[i]) * (b[i] + step * _change(target, below, b[i], -affine[i], -dz[i]))
            count += 1
    return total / count if count > 0 else 0.0


@inlined
def _advance(step, target, problem, z, a, b, affine, dz):
    lower, upper = problem.lower, problem.upper
    for i in range(z.size):
        if lower[i] < upper[i]:
            above, below = z[i] - lower[i], upper[i] - z[i]
            a[i] += step * _change(target, above, a[i], affine[i], dz[i])
            b[i] += step * _change(target, below, b[i], -affine[i], -dz[i])
            z[i] += step * dz[i]
