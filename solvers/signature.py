"""The one signature that all solvers of box-constrained one-step problems share, and the merit function that judges them.

Problem (seed 003, eq. 9.34): find ``lower <= z <= upper`` with ``w = M z + q`` and ``-w ∈ N_[lower,upper](z)``. Bounds 0 and infinity
give the LCP ``0 <= z ⟂ w >= 0``; minus and plus infinity an equation ``w_i = 0``.

    status = solver(row, column, M, q, lower, upper, options, z, w, info, work, iwork)

====================  ==========================================================================================================
row, column, M        compressed rows: columns of a row ascending, pattern symmetric, every diagonal entry stored; (n+1,), (nnz,) × 2
q, lower, upper       (n,)
options               (2,): tol, max_iter (0: the method's own)
z                     in: first guess; out: solution
w                     out: ``M z + q``
info                  out (2,): n_iter, residual
work, iwork           scratch of at least the method's ``work_size(n, row, column)``, and one integer: iwork[0] is 0 unless row, column
                      and M are those of the last call with this scratch, so that a method may keep what it knows of them
====================  ==========================================================================================================

A solver allocates nothing, never raises, and returns a code of `nsds.status`: CONVERGED only where `residual` is at most tol.
"""

import math

from numba import float64, int64

from nsds._jit import kernel
from nsds.status import CONVERGED, NON_FINITE, STALLED

_floats, _integers = float64[::1], int64[::1]

SOLVER = int64(
    _integers, _integers, _floats, _floats, _floats, _floats, _floats, _floats, _floats, _floats, _floats, _integers
)  # fmt: skip


@kernel
def multiply(row, column, M, q, z, w):
    """``w = M z + q``."""
    for i in range(q.size):
        s = q[i]
        for k in range(row[i], row[i + 1]):
            s += M[k] * z[column[k]]
        w[i] = s


@kernel
def residual(row, column, M, q, lower, upper, z, w):
    """Merit ``||z - P_[lower,upper](z - w)||_2 / (1 + ||q||_2)`` with w computed anew; NaN where anything is NaN or infinite. Out: w.

    Written as the median of w, z - lower and z - upper: a small w is not lost beside a large z. NaN too where ``||q||^2`` overflows.
    """
    multiply(row, column, M, q, z, w)
    error = scale = 0.0
    for i in range(q.size):
        error += max(min(w[i], z[i] - lower[i]), z[i] - upper[i]) ** 2
        scale += q[i] ** 2 + 0.0 * w[i]  # NaN for an infinite w
    return math.sqrt(error) / (1.0 + math.sqrt(scale)) if scale < math.inf else math.nan


@kernel
def diagonal(row, column, M, i):
    """``M_ii``."""
    low, high = row[i], row[i + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if column[middle] < i:
            low = middle + 1
        else:
            high = middle
    return M[low]


@kernel
def is_complementarity(lower, upper):
    """True when all bounds are 0 and infinity, or infinite on both sides (equations)."""
    kept = True
    for i in range(lower.size):
        kept &= upper[i] == math.inf and (lower[i] == 0.0 or lower[i] == -math.inf)
    return kept


@kernel
def conclude(status, n_iter, row, column, M, q, lower, upper, options, z, w, info):
    """Status of a method that believes to have finished (CONVERGED) or has given up, checked against the merit function."""
    merit = residual(row, column, M, q, lower, upper, z, w)
    info[0] = n_iter
    info[1] = merit
    if not math.isfinite(merit):
        return NON_FINITE
    if merit <= options[0]:
        return CONVERGED
    return STALLED if status == CONVERGED else status
