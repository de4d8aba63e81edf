"""Vectors (3,) and 3 × 3 matrices (9,) by rows, in kernels. The last argument is written, and may be one of the others."""

import math

from nsds._jit import tiny


@tiny
def dot(a, b):
    """``a . b``."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@tiny
def dot_6(a, b):
    """``a . b`` of six numbers each, as two sums."""
    return (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]) + (a[3] * b[3] + a[4] * b[4] + a[5] * b[5])


@tiny
def norm(x):
    """``|x|``."""
    return math.sqrt(dot(x, x))


@tiny
def cross(a, b, out):
    """``out = a × b``."""
    a0, a1, a2, b0, b1, b2 = a[0], a[1], a[2], b[0], b[1], b[2]
    out[0], out[1], out[2] = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0


@tiny
def times(A, x, out):
    """``out = A x``."""
    x0, x1, x2 = x[0], x[1], x[2]
    for i in range(3):
        out[i] = A[3 * i] * x0 + A[3 * i + 1] * x1 + A[3 * i + 2] * x2


@tiny
def times_transposed(A, x, out):
    """``out = A^T x``."""
    x0, x1, x2 = x[0], x[1], x[2]
    for i in range(3):
        out[i] = A[i] * x0 + A[3 + i] * x1 + A[6 + i] * x2


@tiny
def solve_3(A, b, out):
    """``out = A^-1 b`` by cofactors, not finite where A is singular."""
    b0, b1, b2 = b[0], b[1], b[2]
    # rows of cofactors of the first column, and the determinant
    c0, c1, c2 = A[4] * A[8] - A[5] * A[7], A[2] * A[7] - A[1] * A[8], A[1] * A[5] - A[2] * A[4]
    factor = 1.0 / (A[0] * c0 + A[3] * c1 + A[6] * c2)
    out[0] = factor * (c0 * b0 + c1 * b1 + c2 * b2)
    out[1] = factor * ((A[5] * A[6] - A[3] * A[8]) * b0 + (A[0] * A[8] - A[2] * A[6]) * b1 + (A[2] * A[3] - A[0] * A[5]) * b2)
    out[2] = factor * ((A[3] * A[7] - A[4] * A[6]) * b0 + (A[1] * A[6] - A[0] * A[7]) * b1 + (A[0] * A[4] - A[1] * A[3]) * b2)
