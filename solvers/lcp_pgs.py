"""Projected Gauss–Seidel: sweeps ``z_i <- P(z_i - w_i / M_ii)`` in order; O(nnz) a sweep, any bounds."""

import math

from nsds._jit import kernel
from nsds.solvers.signature import conclude, diagonal
from nsds.status import MAX_ITER, SINGULAR

MAX_SWEEPS = 10_000


def work_size(n, row, column):
    """Reciprocals of the diagonal."""
    return n, 0


@kernel
def lcp_pgs(row, column, M, q, lower, upper, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``; in place, one sweep: ``z_i <- min(max(z_i - w_i / M_ii, lower_i), upper_i)``.

    Converges for symmetric positive semidefinite M with a solution, and for diagonally dominant M. SINGULAR: M_ii <= 0.
    Reference: Cottle, Pang, Stone, The Linear Complementarity Problem, section 5.2.
    """
    n = q.size
    tol = options[0]
    limit = int(options[1]) if options[1] > 0 else MAX_SWEEPS
    for i in range(n):
        d = diagonal(row, column, M, i)
        if not d > 0.0:
            return conclude(SINGULAR, 0, row, column, M, q, lower, upper, options, z, w, info)
        work[i] = 1.0 / d
        z[i] = min(max(z[i], lower[i]), upper[i])
    for sweep in range(limit):
        change = scale = 0.0
        for i in range(n):
            w_i = q[i]
            for k in range(row[i], row[i + 1]):
                w_i += M[k] * z[column[k]]
            z_new = min(max(z[i] - w_i * work[i], lower[i]), upper[i])
            change += ((z_new - z[i]) / work[i]) ** 2
            scale += q[i] ** 2
            z[i] = z_new
        if math.sqrt(change) <= tol * (1.0 + math.sqrt(scale)) or sweep % 50 == 49:  # the change of a sweep only suggests convergence
            status = conclude(MAX_ITER, sweep + 1, row, column, M, q, lower, upper, options, z, w, info)
            if status != MAX_ITER:
                return status
    return conclude(MAX_ITER, limit, row, column, M, q, lower, upper, options, z, w, info)
