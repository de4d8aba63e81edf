"""Linearly dependent equations of joints: solved with multipliers of least norm.

The scaled matrix ``A = D W D`` of `nsds.schemes.rigid.equations` is factorised with pivots on the diagonal, as W is nearly positive
definite; gyroscopic terms and equations for positions destroy its symmetry:

    P A P^T = [L 0; . 1] [U, U X; 0, 0],        N = [-X; 1],        P A P^T N = 0,

until the remainder of every row is rounding of its own diagonal. The right-hand side of the other rows is then rounding of positions, or
contradicts these, and is not met. Of the multipliers that satisfy these rows those with the least ``sum of T_i r_i^2`` are chosen, T_i the
trace of the row's block of W, which does not depend on axes: ``z - N (N^T S N)^-1 N^T S z`` with ``S = D T D``. Redundant parts in equal
places carry equal loads.
"""

from nsds._jit import kernel, tiny, view
from nsds.maths.dense import cholesky, cholesky_solve

MOST = 120  # rows for which pivots are searched; larger systems go to the solver
_DEPENDENT = 1e-11  # relative to a row's own diagonal: remainder of a row that depends on the others


@kernel
def factorise(n, p, memory):
    """Factors of the independent rows, which come first. Returns their number. In/out: dense; scale, weight, component: permuted."""
    work = memory.work
    A = p.dense
    for k in range(n):
        # 1. pivot: the largest diagonal entry
        pivot = k
        for i in range(k + 1, n):
            if abs(work[A + n * i + i]) > abs(work[A + n * pivot + pivot]):
                pivot = i
        # remaining rows depend on those before
        if not abs(work[A + n * pivot + pivot]) > _DEPENDENT:
            return k
        if pivot > k:
            _exchange(n, k, pivot, p, memory)
        # 2. eliminate below
        for i in range(k + 1, n):
            factor = work[A + n * i + k] / work[A + n * k + k]
            work[A + n * i + k] = factor
            for j in range(k + 1, n if factor != 0.0 else k + 1):
                work[A + n * i + j] -= factor * work[A + n * k + j]
    return n


@tiny
def _exchange(n, k, m, p, memory):
    """Rows and columns k and m change places."""
    work, iwork = memory.work, memory.iwork
    A = p.dense
    work[p.scale + k], work[p.scale + m] = work[p.scale + m], work[p.scale + k]
    work[p.weight + k], work[p.weight + m] = work[p.weight + m], work[p.weight + k]
    iwork[p.component + k], iwork[p.component + m] = iwork[p.component + m], iwork[p.component + k]
    for j in range(n):
        work[A + n * k + j], work[A + n * m + j] = work[A + n * m + j], work[A + n * k + j]
    for i in range(n):
        work[A + n * i + k], work[A + n * i + m] = work[A + n * i + m], work[A + n * i + k]


@kernel
def find_null_space(n, rank, of_rows, p, work):
    """Null space: null, the columns of X in sequence, and gram, the Cholesky factor of ``N^T S N``.

    of_rows: N with ``N^T A = 0`` in place of ``A N = 0``, the same unless equations for positions destroy the symmetry of A; and S = 1.
    """
    A, m = p.dense, n - rank
    # 1. X by substitution, with the factors of A or of its transpose
    for j in range(m):
        x = p.null + rank * j
        for i in range(rank - 1, -1, -1):
            s = work[A + n * (rank + j) + i] if of_rows else work[A + n * i + rank + j]
            for l in range(i + 1, rank):
                s -= (work[A + n * l + i] if of_rows else work[A + n * i + l]) * work[x + l]
            work[x + i] = s if of_rows else s / work[A + n * i + i]
    # 2. Gram matrix, and its factor
    for i in range(n if of_rows else 0):
        work[p.weight + i] = 1.0
    for i in range(m):
        for j in range(i + 1):
            s = work[p.weight + rank + i] if i == j else 0.0
            for l in range(rank):
                s += work[p.null + rank * i + l] * work[p.weight + l] * work[p.null + rank * j + l]
            work[p.gram + m * i + j] = s
    cholesky(m, m, 0.0, view(work, p.gram, m * m))


@kernel
def take_out_null_space(n, rank, p, work):
    """``z <- z - N (N^T S N)^-1 N^T S z``. In/out: scaled."""
    z, m = p.scaled, n - rank
    c = p.gram + m * m
    # 1. N^T S z
    for j in range(m):
        s = work[p.weight + rank + j] * work[z + rank + j]
        for l in range(rank):
            s -= work[p.null + rank * j + l] * work[p.weight + l] * work[z + l]
        work[c + j] = s
    # 2. forward and back substitution
    cholesky_solve(m, m, view(work, p.gram, m * m), view(work, c, m))
    # 3. z minus N times it
    for j in range(m):
        work[z + rank + j] -= work[c + j]
        for l in range(rank):
            work[z + l] += work[p.null + rank * j + l] * work[c + j]


@kernel
def solve(n, rank, q, p, r, memory):
    """``W r + q = 0`` of the first rows, with r of least norm. Out: r, 0 but in these rows."""
    work = memory.work
    A, z = p.dense, p.scaled
    # 1. scaled right-hand side of the independent rows
    for i in range(r.size):
        r[i] = 0.0
    for i in range(n):
        work[z + i] = -work[p.scale + i] * q[memory.iwork[p.component + i]] if i < rank else 0.0
    # 2. substitution with L and U
    for i in range(rank):
        for l in range(i):
            work[z + i] -= work[A + n * i + l] * work[z + l]
    for i in range(rank - 1, -1, -1):
        for l in range(i + 1, rank):
            work[z + i] -= work[A + n * i + l] * work[z + l]
        work[z + i] /= work[A + n * i + i]
    # 3. least norm
    if rank < n:
        find_null_space(n, rank, False, p, work)
        take_out_null_space(n, rank, p, work)
    for i in range(n):
        r[memory.iwork[p.component + i]] = work[p.scale + i] * work[z + i]


@kernel
def make_consistent(n, rank, p, q, memory):
    """Make the right-hand side of dependent equations consistent, by the least change; multipliers then have least norm. In/out: q."""
    work = memory.work
    find_null_space(n, rank, True, p, work)
    for i in range(n):
        work[p.scaled + i] = work[p.scale + i] * q[memory.iwork[p.component + i]]
    take_out_null_space(n, rank, p, work)
    for i in range(n):
        q[memory.iwork[p.component + i]] = work[p.scaled + i] / work[p.scale + i]
