"""Elimination with row exchanges inside a band: for matrices that are indefinite, unsymmetric or have zeros on the diagonal.

Entry (i, j) of a matrix of half width b lies at ``A[i * width + j - i + b]`` with ``width = 3 b + 1``: the band has 2 b + 1 entries, and
b more make room for what row exchanges fill in. A dense matrix is a band of half width n - 1.
"""

import math

import numpy as np

from nsds._jit import kernel


def half_width(n, row, column):
    """Largest distance of an entry from the diagonal; the pattern is symmetric and sorted."""
    return int((np.arange(n) - column[row[:-1]]).max()) if n else 0


@kernel
def room(n, half):
    """Entries of the storage of one matrix."""
    return n * (3 * half + 1)


@kernel
def measure(n, row, column):
    """Largest distance of an entry from the diagonal, as `half_width`."""
    half = 0
    for i in range(n):
        half = max(half, i - column[row[i]])
    return half


@kernel
def fill(b, half, row, column, M, member, place, A):
    """Rows and columns ``member[0:b]`` (ascending) of M; place[i] is where row i comes, negative where it stays away."""
    width = 3 * half + 1
    for k in range(b * width):
        A[k] = 0.0
    for i in range(b):
        shift = i * width + half - i
        for k in range(row[member[i]], row[member[i] + 1]):
            j = place[column[k]]
            if j >= 0:
                A[shift + j] = M[k]


@kernel
def factorise(b, half, A, pivots):
    """``P A = L U`` in place, partial pivoting. False: a column without a pivot, whose unknown `substitute` makes 0."""
    width, regular = 3 * half + 1, True
    for k in range(b):
        last, end = min(b, k + half + 1), min(b, k + 2 * half + 1)
        row_k = k * width + half - k
        p, largest = k, abs(A[row_k + k])
        for i in range(k + 1, last):
            entry = abs(A[i * width + half - i + k])
            if entry > largest:
                p, largest = i, entry
        pivots[k] = p
        if not largest > 0.0:
            A[row_k + k] = math.inf
            regular = False
            continue
        if p != k:
            row_p = p * width + half - p
            for j in range(k, end):
                A[row_k + j], A[row_p + j] = A[row_p + j], A[row_k + j]
        for i in range(k + 1, last):
            row_i = i * width + half - i
            if A[row_i + k] != 0.0:
                factor = A[row_i + k] / A[row_k + k]
                A[row_i + k] = factor
                for j in range(k + 1, end):
                    A[row_i + j] -= factor * A[row_k + j]
    return regular


@kernel
def substitute(b, half, A, pivots, x):
    """``x <- A^-1 x`` with the factors of `factorise`."""
    width = 3 * half + 1
    for k in range(b):
        p = pivots[k]
        x_k = x[p]
        x[p], x[k] = x[k], x_k
        for i in range(k + 1, min(b, k + half + 1)):
            x[i] -= A[i * width + half - i + k] * x_k
    for i in range(b - 1, -1, -1):
        row_i = i * width + half - i
        s = x[i]
        for j in range(i + 1, min(b, i + 2 * half + 1)):
            s -= A[row_i + j] * x[j]
        x[i] = s / A[row_i + i]
