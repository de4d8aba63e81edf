"""Small dense matrices in kernels, by rows, a row every ``stride`` numbers: Cholesky factors, solutions by elimination, and inverses."""

import math

from nsds._jit import kernel, load, put, specialised, tiny


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


@tiny
def _pivot(n, stride, k, A):
    """Row with the largest entry of column k from the diagonal on; -1 where that is 0, NaN or infinite: singular."""
    p = k
    for i in range(k + 1, n):
        if abs(A[i * stride + k]) > abs(A[p * stride + k]):
            p = i
    return p if 0.0 < abs(A[p * stride + k]) < math.inf else -1


@tiny
def eliminate(n, stride, A, x):
    """``x <- A^-1 x`` by Gaussian elimination with row exchanges; A is destroyed. False: singular, or not finite."""
    for k in range(n):
        p = _pivot(n, stride, k, A)
        if p < 0:
            return False
        if p != k:
            x[k], x[p] = x[p], x[k]
            for j in range(k, n):
                A[k * stride + j], A[p * stride + j] = A[p * stride + j], A[k * stride + j]
        for i in range(k + 1, n):
            f = A[i * stride + k] / A[k * stride + k]
            x[i] -= f * x[k]
            for j in range(k + 1, n):
                A[i * stride + j] -= f * A[k * stride + j]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            x[k] -= A[k * stride + j] * x[j]
        x[k] /= A[k * stride + k]
    return True


_N = 6  # rows of a matrix; bound by `specialised`


def invert(A, inverse):
    """Inverse of a matrix (N, N) by Gauss–Jordan with row exchanges; A is destroyed. False: singular, or not finite."""
    for i in range(_N * _N):
        inverse[i] = 1.0 if i % (_N + 1) == 0 else 0.0
    for k in range(_N):
        p = _pivot(_N, _N, k, A)
        if p < 0:
            return False
        if p != k:
            for j in range(_N):
                A[k * _N + j], A[p * _N + j] = A[p * _N + j], A[k * _N + j]
                inverse[k * _N + j], inverse[p * _N + j] = inverse[p * _N + j], inverse[k * _N + j]
        f = 1.0 / A[k * _N + k]
        row, of_inverse = load(A, k, _N) * f, load(inverse, k, _N) * f
        put(A, k, _N, row)
        put(inverse, k, _N, of_inverse)
        # eliminate above and below; blocks apart stay so
        for i in range(_N):
            if i != k:
                f = A[i * _N + k]
                put(A, i, _N, load(A, i, _N) - f * row)
                put(inverse, i, _N, load(inverse, i, _N) - f * of_inverse)
    return True


invert_6 = kernel(specialised(invert, "6", _N=6))
