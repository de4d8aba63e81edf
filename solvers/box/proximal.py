"""Proximal point iteration with exact steps: redundant constraints share their load, and chains stay linear in n."""

import math

from nsds._jit import inlined, kernel, view
from nsds.solvers.box import band
from nsds.solvers.box import newton_min as elimination
from nsds.solvers.box.newton_min import newton_min
from nsds.solvers.box.signature import affordable, changed, clip, goes_on, judge, largest_in_row, multiply, problem_of
from nsds.status import CONVERGED, MAX_ITER, STALLED

MAX_STEPS = 50
_INNER = 20  # factorisations that a step has at least
_SHIFT = 1e-7  # relative to the diagonal
_FALL = 0.7  # the merit falls at least by this factor from step to step


def work_size(n, row, column):
    """The shifted matrix, the shift; vector, bounds and solution of a step; what Newton-min needs."""
    n_work, n_iwork = elimination.work_size(n, row, column)
    return column.size + 5 * n + n_work, n_iwork


@kernel
def proximal(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``: ``z <- z + d``, d the solution for ``M + S``, ``M z + q`` and the bounds minus z; S diagonal, small.

    Converges for every positive semidefinite M if there is a solution; from z = 0 to one with nearly the least ``z' S z``.
    STALLED: the merit no longer falls. Rounding in a step is made good by the next.
    Reference: Rockafellar, SIAM Journal on Control and Optimization 14 (1976) 877–898.
    """
    row, column, q, lower, upper = problem.row, problem.column, problem.q, problem.lower, problem.upper
    n, nnz = q.size, column.size
    M_hat, S, q_hat, d = view(work, 0, nnz), view(work, nnz, n), view(work, nnz + n, n), view(work, nnz + 2 * n, n)
    lower_hat, upper_hat = view(work, nnz + 3 * n, n), view(work, nnz + 4 * n, n)
    rest = view(work, nnz + 5 * n, work.size - nnz - 5 * n)
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_STEPS
    if iwork[0] == 0:  # else M, M_hat and its factors are those of the last call
        _shift(n, problem, M_hat, S)
    clip(lower, upper, z)
    multiply(row, column, problem.M, q, z, w)
    status, n_iter, merit, n_inner = MAX_ITER, 0, math.inf, 0
    most = affordable(limit * (200 + 3 * n), n * (band.measure(n, row, column) + 1.0) ** 2 / 3.0)
    while status == MAX_ITER and n_iter < limit and (n_inner < most or options.max_iter > 0.0):
        n_iter += 1
        own = changed(options, options.tol, max(_INNER, most - n_inner) if most - n_inner < 200 + 3 * n else 0.0)
        for i in range(n):
            q_hat[i], d[i], lower_hat[i], upper_hat[i] = w[i], 0.0, lower[i] - z[i], upper[i] - z[i]
        step = newton_min(problem_of((row, column, M_hat, q_hat, lower_hat, upper_hat)), own, d, w, info, rest, iwork)
        n_inner += int(info[0])
        for i in range(n):
            z[i] = lower[i] if d[i] <= lower_hat[i] else upper[i] if d[i] >= upper_hat[i] else z[i] + d[i]
        status = judge(MAX_ITER, n_iter, problem, options, z, w, info)
        if status == CONVERGED and goes_on(merit, options, problem, z, w, info):
            status = MAX_ITER
        if status == MAX_ITER and not info[1] < _FALL * merit:
            status = STALLED if step == CONVERGED else step
        merit = info[1]
    return status


@inlined
def _shift(n, problem, M_hat, S):
    """``M_hat = M + S``, S_i a small multiple of M_ii, or of the largest entry of the row where that is zero."""
    row, M = problem.row, problem.M
    for i in range(n):
        place, largest = row[i], largest_in_row(row, M, i)
        for k in range(row[i], row[i + 1]):
            M_hat[k] = M[k]
            place = k if problem.column[k] == i else place
        S[i] = _SHIFT * (abs(M[place]) if M[place] != 0.0 else largest if largest > 0.0 else 1.0)
        M_hat[place] += S[i]
