"""Complementary pivoting with bounds and lexicographic ties: finite and exact where the theory promises it; dense, for small problems."""

import math

from nsds._jit import inlined, kernel
from nsds.solvers.box.signature import a_row_is_infeasible, affordable, judge, proves_infeasible
from nsds.solvers.box.tableau import EPS, dictionary, exchange, fill, move, pivot_equations, read, work_size
from nsds.status import CONVERGED, INFEASIBLE, MAX_ITER, RAY

__all__ = ["lemke", "work_size"]

_TIE = 1e-12  # ratios that differ less than this, relative to their size, are equal


@kernel
def lemke(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q`` along the path of ``w - M z - q = d t`` from large t to t = 0.

    The free z are pivoted into the basis first and stay. d is 1 (-1) where w must become positive (negative). A variable that reaches a
    bound leaves, and its complement follows; a z that runs from one bound to the other changes places without a pivot. Ties are broken
    lexicographically, so no degenerate problem can cycle. Solves every problem with M positive semidefinite (copositive plus) or P, or
    with all bounds finite. INFEASIBLE: a ray that proves it. RAY: one that does not. SINGULAR: equations that do not determine their z.
    References: Cottle, Pang, Stone, The Linear Complementarity Problem, sections 4.4 and 4.9; Cao, Ferris, Mathematics of Operations
    Research 21 (1996) 382–401, with the box as polyhedron.
    """
    n = problem.q.size
    size = fill(problem, work, iwork)
    limit = int(options.max_iter) if options.max_iter > 0 else affordable(100 + 20 * n, float(n) * n)
    status, n_iter = pivot_equations(problem, work, iwork, z, w), 0
    if status == CONVERGED:
        cover(n, 0, work, iwork)
        status, n_iter = follow_path(problem, limit, work, iwork, z, w)
    read(problem, size, work, iwork, z, w)
    return judge(status, n_iter, problem, options, z, w, info)


@kernel
def cover(n, first, work, iwork):
    """Write the column of t, and set t to the least value at which all basic variables keep their bounds.

    Variables of a number below ``first`` are within their bounds already and are not covered.
    """
    D = dictionary(n, work, iwork)
    c = D.place[2 * n]
    t = outside = 0.0
    for r in range(n):
        v, d = D.basic[r], 0.0
        beyond = max(D.low[v] - D.x[r], D.x[r] - D.high[v], 0.0) if v >= first else 0.0
        if v >= first and (D.low[v] == -math.inf) != (D.high[v] == math.inf):
            d = 1.0 if D.high[v] == math.inf else -1.0
            t = max(t, beyond)
        D.T[r * (n + 1) + c] = d
        outside = max(outside, beyond)
    for r in range(n):
        v = D.basic[r]
        two_bounds = D.low[v] > -math.inf and D.high[v] < math.inf
        if two_bounds and v >= first and not D.low[v] <= D.x[r] <= D.high[v]:
            D.T[r * (n + 1) + c] = (0.5 * (D.low[v] + D.high[v]) - D.x[r]) / (t if t > 0.0 else outside)
    move(n, c, t if t > 0.0 else outside, work, iwork)


@kernel
def follow_path(problem, limit, work, iwork, z, w):
    """Drive t from its value to 0, complement after complement. Returns (status, n_iter); z and w are scratch."""
    n = problem.q.size
    D = dictionary(n, work, iwork)
    entering, sign = 2 * n, -1.0
    for n_iter in range(1, limit + 1):
        c = D.place[entering]
        r, step = _ratio_test(n, c, entering, sign, work, iwork)
        if step == math.inf:
            return _what_a_ray_means(problem, c, entering, sign, work, iwork, z, w), n_iter
        move(n, c, sign * step, work, iwork)
        if r == n:  # the entering variable has crossed to its own other bound
            if entering == 2 * n:
                return CONVERGED, n_iter
            D.y[c] = D.high[entering] if sign > 0.0 else D.low[entering]
            sign = -sign
            entering -= n
            D.low[entering], D.high[entering] = (0.0, math.inf) if sign > 0.0 else (-math.inf, 0.0)
            continue
        leaving, upwards = D.basic[r], sign * D.T[r * (n + 1) + c] > 0.0
        exchange(n, r, c, work, iwork)
        D.y[c] = D.high[leaving] if upwards else D.low[leaving]
        if leaving == 2 * n:
            return CONVERGED, n_iter
        if leaving < n:
            sign = 1.0 if D.high[leaving] > 0.0 else -1.0
            entering = leaving + n
        else:
            sign = -1.0 if upwards else 1.0
            entering = leaving - n
            D.low[entering], D.high[entering] = (0.0, math.inf) if sign > 0.0 else (-math.inf, 0.0)
    return MAX_ITER, limit


@inlined
def _ratio_test(n, c, entering, sign, work, iwork):
    """(row, step): the basic variable that first reaches a bound; row n: the entering one itself; t wins all ties."""
    D = dictionary(n, work, iwork)
    own = D.high[entering] - D.y[c] if sign > 0.0 else D.y[c] - D.low[entering]
    best, least = n, max(own, 0.0)
    for r in range(n):
        rate = sign * D.T[r * (n + 1) + c]
        if abs(rate) <= EPS:
            continue
        bound = D.high[D.basic[r]] if rate > 0.0 else D.low[D.basic[r]]
        if not abs(bound) < math.inf:
            continue
        ratio = max((bound - D.x[r]) / rate, 0.0)
        tie = _TIE * max(ratio, least, 1.0) if least < math.inf else 0.0
        if ratio < least - tie or (ratio <= least + tie and _comes_first(n, r, best, c, sign, work, iwork)):
            best, least = r, ratio
    return best, least


@inlined
def _comes_first(n, r, other, c, sign, work, iwork):
    """The one of two rows with equal ratios whose ratio falls when q_0 grows by e, q_1 by e^2, ...: lexicographic order."""
    D = dictionary(n, work, iwork)
    if D.basic[r] == 2 * n or (other < n and D.basic[other] == 2 * n):
        return D.basic[r] == 2 * n
    rate = sign * D.T[r * (n + 1) + c]
    rate_other = sign * D.T[other * (n + 1) + c] if other < n else 1.0
    for k in range(n):
        p = D.place[k]
        if p < n and D.basic[p] == k:
            a, b = 1.0 if p == r else 0.0, 1.0 if p == other else 0.0
        else:
            a, b = -D.T[r * (n + 1) + p], -D.T[other * (n + 1) + p] if other < n else 0.0
        difference = b / rate_other - a / rate  # the ratio of row r changes by -a / rate
        if abs(difference) > EPS:
            return difference < 0.0
    return False


@kernel
def _what_a_ray_means(problem, c, entering, sign, work, iwork, y, g):
    """INFEASIBLE where the direction of z along the ray, or a single row, proves that no z gives w its signs; else RAY."""
    n = problem.q.size
    D = dictionary(n, work, iwork)
    for i in range(n):
        y[i] = 0.0
    for r in range(n):
        if n <= D.basic[r] < 2 * n and abs(D.T[r * (n + 1) + c]) > EPS:
            y[D.basic[r] - n] = sign * D.T[r * (n + 1) + c] * D.C[D.basic[r] - n]
    if n <= entering < 2 * n:
        y[entering - n] = sign * D.C[entering - n]
    if proves_infeasible(problem, y, g):
        return INFEASIBLE
    return INFEASIBLE if a_row_is_infeasible(problem) else RAY
