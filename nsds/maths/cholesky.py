"""Cholesky factors of large sparse matrices in dense blocks, and solutions with them in kernels.

The unknowns of a front of `nsds.maths.dissection` are eliminated together (Duff, Reid, ACM Trans. Math. Software 9, 1983): its block of
columns of the factor L is dense, k × k of the front and r × k of the rows below that it touches, so that a solution runs through
contiguous memory.

>>> import numpy as np
>>> from scipy.sparse import csr_array
>>> from nsds.maths import cholesky
>>> A = csr_array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
>>> plan = cholesky.plan(A, last=np.array([1]))
>>> data = np.zeros(plan.size)
>>> index = cholesky.factorise(A, plan, data)
>>> work = np.concatenate([data, [6.0, 8.0, 5.0], np.zeros(6)])  # b, x, y
>>> b = data.size
>>> cholesky.solve(3, 0, 0, work, index, b, b + 3, b + 6)
>>> work[b + 3 : b + 6].round(12)
array([1.05555556, 1.77777778, 1.61111111])
"""

from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, tiny
from nsds.maths.dissection import dissect

_HEAD = 2  # entries of the index before the positions: number of fronts, unknowns of the stored inverse
_FRONT = 5  # entries of a front: its first position, k, r, offset of its block, offset of the positions of its r rows


_WIDE = 64  # bandwidth after reordering above which factors in dense blocks pay off


def is_wide(pattern):
    """Whether a symmetric scipy.sparse matrix has a large bandwidth after reordering (Cuthill, McKee)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    rows = pattern.tocsr()
    place = np.argsort(reverse_cuthill_mckee(csr_array(rows), symmetric_mode=True))
    i = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return bool(abs(place[i] - place[rows.indices]).max(initial=0) > _WIDE)


class Plan(NamedTuple):
    """Symbolic factor: fronts, the positions of the rows below each, and the number of entries."""

    fronts: list
    below: list
    size: int
    n_last: int


def plan(pattern, last):
    """`Plan` of the factor of a symmetric matrix with the pattern of a scipy.sparse matrix, with the unknowns ``last`` eliminated last."""
    pattern = (abs(pattern) + abs(pattern).T).tocsr()  # an entry that cancels may be stored on one side of the diagonal only
    fronts, below, end, size = dissect(pattern, last), [], 0, 0
    position, is_row = positions(fronts, pattern.shape[0]), np.zeros(pattern.shape[0], bool)
    # rows below a front: neighbours of its unknowns, and rows of the fronts that end in it
    for front in fronts:
        end += front.unknowns.size
        rows = np.concatenate([position[pattern[front.unknowns].indices], *(below[i] for i in front.before)])
        is_row[rows] = True
        below.append(end + np.flatnonzero(is_row[end:]))
        is_row[rows] = False
        size += front.unknowns.size * (front.unknowns.size + below[-1].size)
    return Plan(fronts, below, size, last.size)


def positions(fronts, n):
    """Position of each unknown in the order of elimination."""
    position = np.empty(n, np.int64)
    position[np.concatenate([front.unknowns for front in fronts]) if n else slice(0)] = np.arange(n)
    return position


def number_of_entries(n, index):
    """Entries of the factor of n unknowns, or of the stored inverse, by the index from `factorise`."""
    n_fronts, n_last = int(index[0]), int(index[1])
    first = _HEAD + n + n_last
    k, r = index[first : first + n_fronts * _FRONT].reshape(-1, _FRONT)[:, 1:3].T
    return int((k * (k + r)).sum())


def factorise(A, planned, data):
    """Numeric factor of a symmetric positive definite matrix, written into ``data``; returns the index for `solve`.

    Parameters
    ----------
    A : scipy.sparse (n, n)
        Its lower triangle counts, in the order of elimination.
    planned : Plan
        Of a pattern that contains that of A.
    data : ndarray (plan.size,)
        Out: blocks by rows, the inverse of the triangle on the diagonal, then the rows below. For the unknowns ``last``, if any,
        their rows and columns of the inverse of A instead.

    Returns
    -------
    ndarray (k,) of int64

    Raises
    ------
    numpy.linalg.LinAlgError
        Not positive definite.
    """
    from scipy.sparse import tril

    # 1. lower triangle in the order of elimination
    n, fronts = A.shape[0], planned.fronts
    position = positions(fronts, n)
    order = np.argsort(position)
    lower = tril(A.tocsr()[order][:, order], format="csc")
    # 2. each front: its entries of A, the updates of the fronts that end in it, elimination
    table, updates = np.zeros((len(fronts), _FRONT), np.int64), {}
    rows_at = _HEAD + n + planned.n_last + table.size
    first = at = 0
    for i, (front, below) in enumerate(zip(fronts, planned.below, strict=True)):
        k, r = front.unknowns.size, below.size
        where = _Rows(first, k, below)
        F = np.zeros((k + r, k + r))
        column = np.repeat(np.arange(k), np.diff(lower.indptr[first : first + k + 1]))
        entries = slice(lower.indptr[first], lower.indptr[first + k])
        F[where(lower.indices[entries]), column] = lower.data[entries]
        for j in front.before:
            _add_lower(F, where(planned.below[j]), updates.pop(j))
        block = data[at : at + k * (k + r)].reshape(k + r, k)
        updates[i] = _eliminate(F, k, block)
        table[i] = first, k, r, at, rows_at
        first, at, rows_at = first + k, at + k * (k + r), rows_at + r
    # 3. the last front stores the inverse itself: its columns are read one by one
    if planned.n_last:
        block[:] = block.T @ block
    last = fronts[-1].unknowns if planned.n_last else np.zeros(0, np.int64)
    return np.concatenate([[len(fronts), planned.n_last], position, last, table.reshape(-1), *planned.below]).astype(np.int64)


class _Rows(NamedTuple):
    """Positions of the rows of a front: k consecutive ones, then those below."""

    first: int
    k: int
    below: np.ndarray

    def __call__(self, position):
        """Rows of the front with these positions."""
        return np.where(position < self.first + self.k, position - self.first, self.k + np.searchsorted(self.below, position))


def _eliminate(F, k, block):
    """Writes the block of the first k unknowns of a front; returns the Schur complement of the others (lower triangles)."""
    from scipy.linalg import lapack

    # the inverse of the triangle is stored, so that a solution is products only
    inverse, failed = lapack.dtrtri(np.linalg.cholesky(F[:k, :k]), lower=1)
    if failed or not np.isfinite(inverse).all():
        raise np.linalg.LinAlgError("not positive definite")
    block[:k] = np.tril(inverse)
    block[k:] = F[k:, :k] @ block[:k].T
    return F[k:, k:] - block[k:] @ block[k:].T


@kernel
def _add_lower(F, rows, update):
    """Adds the lower triangle of a matrix to chosen rows and columns of another."""
    for i in range(rows.size):
        for j in range(i + 1):
            F[rows[i], rows[j]] += update[i, j]


@kernel
def solve(n, data, index, work, iwork, b, x, y):
    """``x = A^-1 b`` with what `factorise` made of A, data in work and index in iwork: ``L y = b``, then ``L^T x = y``.

    In: offsets data, index, b. Out: work[x:x + n]. Work: work[y:y + n]. Fronts with zero y are skipped in the first part.
    """
    # 1. b in the order of elimination
    n_fronts, kept, position = iwork[index], iwork[index + 1], index + _HEAD
    fronts = position + n + kept
    for i in range(n):
        work[y + iwork[position + i]] = work[b + i]
    # 2. forward; the last front is the stored inverse, if there is one
    for f in range(n_fronts if kept == 0 else n_fronts - 1):
        _forward(fronts + _FRONT * f, data, index, y, work, iwork)
    if kept > 0:
        begin, block = y + n - kept, data + iwork[fronts + _FRONT * n_fronts - 2]
        _multiply(kept, block, begin, x, work)
        for i in range(kept):
            work[begin + i] = work[x + i]
    # 3. backward, and back to the order of the unknowns
    for f in range(n_fronts - 1 if kept == 0 else n_fronts - 2, -1, -1):
        _backward(fronts + _FRONT * f, data, index, y, work, iwork)
    for i in range(n):
        work[x + i] = work[y + iwork[position + i]]


@tiny
def keeps_inverse(index, iwork):
    """Whether the inverse of the unknowns that were eliminated last is stored."""
    return iwork[index + 1] > 0


@kernel
def add_kept_column(n, data, index, unknown, factor, out, work, iwork):
    """``out += factor A^-1 e``, at the unknowns of the stored inverse, with e the unit vector of one of them; out in work."""
    n_fronts, kept, position = iwork[index], iwork[index + 1], index + _HEAD
    last = position + n
    column = data + iwork[last + kept + _FRONT * n_fronts - 2] + (iwork[position + unknown] - n + kept) * kept
    for i in range(kept):
        work[out + iwork[last + i]] += factor * work[column + i]


@kernel
def clear_kept(n, index, out, work, iwork):
    """``out = 0`` at the unknowns of the stored inverse."""
    last = index + _HEAD + n
    for i in range(iwork[index + 1]):
        work[out + iwork[last + i]] = 0.0


@tiny
def _forward(front, data, index, y, work, iwork):
    """``y_k <- L_kk^-1 y_k``, ``y_r <- y_r - L_rk y_k`` of one front."""
    begin, k, r, block, rows = y + iwork[front], iwork[front + 1], iwork[front + 2], data + iwork[front + 3], index + iwork[front + 4]
    # 1. sparse right-hand sides: most fronts have nothing to do
    size = 0.0
    for i in range(k):
        size = max(size, abs(work[begin + i]))
    if size == 0.0:
        return
    # 2. from the last row up, in place: row i reads entries up to i only
    for i in range(k - 1, -1, -1):
        work[begin + i] = _dot(i + 1, block + i * k, begin, work)
    block += k * k
    # 3. rows below, four at a time: each load of y_k serves four sums
    for i in range(0, r - 3, 4):
        a, at = 0.0, block + i * k
        b = c = d = a
        for j in range(k):
            t = work[begin + j]
            a += work[at + j] * t
            b += work[at + k + j] * t
            c += work[at + 2 * k + j] * t
            d += work[at + 3 * k + j] * t
        work[y + iwork[rows + i]] -= a
        work[y + iwork[rows + i + 1]] -= b
        work[y + iwork[rows + i + 2]] -= c
        work[y + iwork[rows + i + 3]] -= d
    for i in range(r - r % 4, r):
        work[y + iwork[rows + i]] -= _dot(k, block + i * k, begin, work)


@tiny
def _backward(front, data, index, y, work, iwork):
    """``y_k <- L_kk^-T (y_k - L_rk^T y_r)`` of one front."""
    begin, k, r, block, rows = y + iwork[front], iwork[front + 1], iwork[front + 2], data + iwork[front + 3], index + iwork[front + 4]
    # 1. rows below, four at a time
    below = block + k * k
    for i in range(0, r - 3, 4):
        at, a, b = below + i * k, work[y + iwork[rows + i]], work[y + iwork[rows + i + 1]]
        c, d = work[y + iwork[rows + i + 2]], work[y + iwork[rows + i + 3]]
        for j in range(k):
            work[begin + j] -= (a * work[at + j] + b * work[at + k + j]) + (c * work[at + 2 * k + j] + d * work[at + 3 * k + j])
    for i in range(r - r % 4, r):
        a = work[y + iwork[rows + i]]
        for j in range(k):
            work[begin + j] -= a * work[below + i * k + j]
    # 2. transposed triangle, in place from the first row down
    for i in range(k):
        a = work[begin + i]
        for j in range(i):
            work[begin + j] += a * work[block + i * k + j]
        work[begin + i] = a * work[block + i * k + i]


@tiny
def _dot(k, a, b, work):
    """``a . b`` of k numbers each."""
    s = 0.0
    for j in range(k):
        s += work[a + j] * work[b + j]
    return s


@kernel
def _multiply(k, A, b, x, work):
    """``x = A b`` with a dense symmetric matrix."""
    for i in range(k):
        work[x + i] = 0.0
    for i in range(0, k - 3, 4):
        at, p, q, s, t = A + i * k, work[b + i], work[b + i + 1], work[b + i + 2], work[b + i + 3]
        for j in range(k):
            work[x + j] += (p * work[at + j] + q * work[at + k + j]) + (s * work[at + 2 * k + j] + t * work[at + 3 * k + j])
    for i in range(k - k % 4, k):
        for j in range(k):
            work[x + j] += work[b + i] * work[A + i * k + j]
