"""Cholesky factors of small dense symmetric matrices, in kernels. Matrices are by rows, a row every ``stride`` numbers."""

import math

from nsds._jit import tiny


@tiny
def cholesky(n, stride, least, A):
    """``A <- L`` with ``L L^T = A``, in the lower triangle. Returns the rank.

    Pivots up to ``least`` times the diagonal entry are rounding: the row depends on those before, and its column of L is 0.
    """
    rank = 0
    for i in range(n):
        row_i, own = i * stride, abs(A[i * stride + i])
        for j in range(i + 1):
            row_j, s = j * stride, A[row_i + j]
            for k in range(j):
                s -= A[row_i + k] * A[row_j + k]
            if j < i:
                A[row_i + j] = s / A[row_j + j] if A[row_j + j] > 0.0 else 0.0
            else:
                A[row_i + i] = math.sqrt(s) if s > least * own else 0.0
                rank += 1 if s > least * own else 0
    return rank


@tiny
def cholesky_solve(n, stride, L, x):
    """``x <- (L L^T)^-1 x`` with the factor of `cholesky`; 0 for dependent rows."""
    for i in range(n):
        for k in range(i):
            x[i] -= L[i * stride + k] * x[k]
        x[i] = x[i] / L[i * stride + i] if L[i * stride + i] > 0.0 else 0.0
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= L[k * stride + i] * x[k]
        x[i] = x[i] / L[i * stride + i] if L[i * stride + i] > 0.0 else 0.0
