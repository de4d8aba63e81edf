"""The active set method of quadratic programming over a box, one variable in motion at a time."""

import math

from nsds._jit import kernel, view
from nsds.solvers.box import band
from nsds.solvers.box.direct import factorise_basis, settle
from nsds.solvers.box.newton_min import BASIC, LOWER, UPPER, rounding
from nsds.solvers.box.signature import clip, diagonal, entry, is_affordable, judge, multiply, proves_infeasible
from nsds.status import CONVERGED, INFEASIBLE, MAX_ITER, RAY, SINGULAR

_FLAT = 1e-12  # smaller curvatures, relative to the diagonal, are none


def work_size(n, row, column):
    """The band of the basic part; direction and right-hand side."""
    return band.room(n, band.half_width(n, row, column)) + 2 * n, 4 * n


@kernel
def qp(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q`` with symmetric positive semidefinite M: minimise ``z^T M z / 2 + q^T z`` over the box.

    Of the z at a bound whose w has the wrong sign, the one with the steepest slope moves, the basic ones follow so that their w stay 0,
    until its own w is 0 or it reaches its other bound; a basic z that reaches a bound on the way is held there. The guess is not used.
    INFEASIBLE: the objective falls without end, which proves it. SINGULAR: equations that do not determine their z.
    Reference: van de Panne, Whinston, Econometrica 37 (1969) 143–157; Cottle, Pang, Stone, section 4.2.
    """
    row, column, lower, upper = problem.row, problem.column, problem.lower, problem.upper
    n = problem.q.size
    half = band.measure(n, row, column)
    d, x, A = view(work, 0, n), view(work, n, n), view(work, 2 * n, band.room(n, half))
    side, member, place, pivots = view(iwork, 0, n), view(iwork, n, n), view(iwork, 2 * n, n), view(iwork, 3 * n, n)
    limit = int(options.max_iter) if options.max_iter > 0 else 100 + 20 * n
    for i in range(n):
        has_lower, has_upper = lower[i] > -math.inf, upper[i] < math.inf
        side[i] = LOWER if has_lower else UPPER if has_upper else BASIC
        z[i] = lower[i] if has_lower else upper[i] if has_upper else 0.0
    b, regular = factorise_basis(n, half, problem, side, member, place, A, pivots)
    if regular:
        settle(b, half, problem, z, A, pivots, member, x, w)
    status, n_iter, moving, work_done = MAX_ITER if regular else SINGULAR, 0, n, 0.0
    while status == MAX_ITER and n_iter < limit and is_affordable(work_done, options):
        n_iter += 1
        work_done += b * (min(b, half) + 1.0) ** 2
        multiply(row, column, problem.M, problem.q, z, w)
        if moving == n:
            moving = _steepest(problem, side, z, w)
            if moving == n:
                status = CONVERGED
                break
        curvature = _direction(moving, b, half, problem, w, A, pivots, member, place, d, x)
        step, blocking = _longest_step(n, moving, curvature, diagonal(row, column, problem.M, moving), problem, z, w, d)
        if step == math.inf:
            status = INFEASIBLE if proves_infeasible(problem, d, x) else RAY
            break
        for i in range(n):
            z[i] += step * d[i]
        changed = moving if blocking == n else blocking
        if blocking == n:
            side[moving] = BASIC
        else:
            side[blocking] = LOWER if d[blocking] < 0.0 else UPPER
            z[blocking] = lower[blocking] if d[blocking] < 0.0 else upper[blocking]
        moving = n if changed == moving else moving
        b, regular = factorise_basis(n, half, problem, side, member, place, A, pivots)
        if not regular:
            status = SINGULAR
        elif moving == n:  # again from M, so that rounding does not add up
            settle(b, half, problem, z, A, pivots, member, x, w)
    clip(lower, upper, z)
    return judge(status, n_iter, problem, options, z, w, info)


@kernel
def _steepest(problem, side, z, w):
    """The i at a bound with the largest ``w_i^2 / M_ii`` of wrong sign; n: none."""
    n = problem.q.size
    chosen, steepest = n, 0.0
    for i in range(n):
        if side[i] == BASIC or problem.lower[i] == problem.upper[i] or not (w[i] < 0.0 if side[i] == LOWER else w[i] > 0.0):
            continue
        slope = abs(w[i]) / math.sqrt(max(abs(diagonal(problem.row, problem.column, problem.M, i)), 1e-300))
        if abs(w[i]) > rounding(i, problem, z) and slope > steepest:
            chosen, steepest = i, slope
    return chosen


@kernel
def _direction(moving, b, half, problem, w, A, pivots, member, place, d, x):
    """``d_moving = 1`` (-1 downwards), ``M_BB d_B = -M_B,moving d_moving``; returns the curvature ``d^T M d``."""
    row, column = problem.row, problem.column
    sign = 1.0 if w[moving] < 0.0 else -1.0
    for i in range(d.size):
        d[i] = 0.0
    for i in range(b):
        x[i] = 0.0
    for k in range(row[moving], row[moving + 1]):
        j = column[k]
        if place[j] >= 0:
            x[place[j]] = -sign * entry(row, column, problem.M, j, moving)
    band.substitute(b, half, A, pivots, x)
    d[moving] = sign
    for i in range(b):
        d[member[i]] = x[i]
    curvature = 0.0
    for k in range(row[moving], row[moving + 1]):
        curvature += sign * problem.M[k] * d[column[k]]
    return curvature


@kernel
def _longest_step(n, moving, curvature, size, problem, z, w, d):
    """(step, blocking): until w of the moving one is 0 (blocking n), or some z reaches a bound."""
    step, blocking = math.inf, n
    if curvature > _FLAT * abs(size):
        step = abs(w[moving]) / curvature
    for i in range(n):
        room = math.inf
        if d[i] < 0.0:
            room = max(z[i] - problem.lower[i], 0.0) / -d[i]
        elif d[i] > 0.0:
            room = max(problem.upper[i] - z[i], 0.0) / d[i]
        if room < step:
            step, blocking = room, i
    return step, blocking
