"""Principal pivoting, one exchange at a time: by the least index (Murty) or by the largest violation (Bard)."""

import math

from nsds._jit import kernel
from nsds.solvers.box.signature import affordable, judge
from nsds.solvers.box.tableau import EPS, dictionary, exchange, fill, move, pivot_equations, read, work_size
from nsds.status import CONVERGED, MAX_ITER, SINGULAR

__all__ = ["bard", "murty", "work_size"]

_ROUNDING = 1e-13  # violations of scaled bounds up to this, relative to the size of the values, are none


@kernel
def murty(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``: of all variables beyond their bounds, the one of least index changes sides.

    Finite for P-matrices, with up to 2^n steps. SINGULAR: the exchange needs a zero pivot.
    References: Murty, Linear Complementarity, section 4.2; with two bounds Júdice, Pires, Journal of Optimization Theory and
    Applications 74 (1992) 391–411.
    """
    limit = int(options.max_iter) if options.max_iter > 0 else affordable(100 + 50 * problem.q.size, float(problem.q.size) ** 2)
    return _principal_pivoting(limit, 0, problem, options, z, w, info, work, iwork)


@kernel
def bard(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``: of all variables beyond their bounds, the one that is furthest beyond changes sides.

    Short where it does not cycle; after 2 n + 10 steps the least index decides, which is finite for P-matrices. SINGULAR: zero pivot.
    Reference: Bard, in: Nonlinear Programming and Control Theory, Academic Press 1972; Júdice, Pires, Computers and Operations
    Research 21 (1994) 587–596.
    """
    q = problem.q
    limit = int(options.max_iter) if options.max_iter > 0 else affordable(100 + 50 * q.size, float(q.size) ** 2)
    return _principal_pivoting(limit, 2 * q.size + 10, problem, options, z, w, info, work, iwork)


@kernel
def _principal_pivoting(limit, n_largest, problem, options, z, w, info, work, iwork):
    """At most ``limit`` exchanges, the first ``n_largest`` of them by the largest violation."""
    n = problem.q.size
    size = fill(problem, work, iwork)
    status, n_iter = pivot_equations(problem, work, iwork, z, w), 0
    if status == CONVERGED:
        status = MAX_ITER
    while status == MAX_ITER and n_iter < limit:
        i = _violated(n, n_iter < n_largest, work, iwork)
        if i == n:
            status = CONVERGED
        else:
            n_iter += 1
            status = MAX_ITER if _change_sides(n, i, work, iwork) else SINGULAR
    read(problem, size, work, iwork, z, w)
    return judge(status, n_iter, problem, options, z, w, info)


@kernel
def _violated(n, by_size, work, iwork):
    """Least i for which the basic one of w_i and z_i is beyond its bounds, or the i where it is furthest beyond; n: none."""
    D = dictionary(n, work, iwork)
    chosen, furthest, largest = n, 0.0, 1.0
    for r in range(n):
        largest = max(largest, abs(D.x[r]))
    for i in range(n):
        for v in (i, n + i):
            r = D.place[v]
            if r < n and D.basic[r] == v:
                beyond = max(D.low[v] - D.x[r], D.x[r] - D.high[v])
                if beyond > _ROUNDING * largest and (chosen == n or (by_size and beyond > furthest)):
                    chosen, furthest = i, beyond
    return chosen


@kernel
def _change_sides(n, i, work, iwork):
    """Exchange w_i and z_i; the one that leaves goes to the bound that it has passed. False: the pivot vanishes."""
    D = dictionary(n, work, iwork)
    leaving = i if D.basic[D.place[i]] == i and D.place[i] < n else n + i
    entering = 2 * i + n - leaving
    r, c = D.place[leaving], D.place[entering]
    if abs(D.T[r * (n + 1) + c]) <= EPS:
        return False
    to_upper = D.x[r] > D.high[leaving]
    exchange(n, r, c, work, iwork)
    if leaving < n:
        move(n, c, -D.y[c], work, iwork)
    else:
        move(n, c, (D.high[leaving] if to_upper else D.low[leaving]) - D.y[c], work, iwork)
        D.low[i], D.high[i] = (-math.inf, 0.0) if to_upper else (0.0, math.inf)
    return True
