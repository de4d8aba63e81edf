"""Linearly dependent equations, as of joints in a closed loop: their forces have least norm, as in the time-stepping schemes.

The scaled matrix of the equations alone, ``D A D`` with ``D = diag(A)^(-1/2)``, is factorised with pivots on the diagonal, at each state,

    P D A D P^T = [L 0; . 1] [U, U X; 0, 0],        N = D P^T [-X; 1],        A N = 0,

until the remainder of every row is rounding of its own diagonal. Those rows are omitted from the problem of forces, and of all lambda that
solve it the one with the least ``sum of T_i lambda_i^2`` is chosen, T_i the trace of A in the block of a row,

    lambda - N (N^T T N)^-1 N^T T lambda

It depends neither on the omitted rows nor on their order. See `nsds.schemes.problem.redundancy`.
"""

import math

from nsds._jit import kernel, tiny, view
from nsds.maths.dense import cholesky, cholesky_solve
from nsds.schemes.linear_algebra import invert_in_place

_DEPENDENT = 1e-11  # relative to a row's own diagonal: remainder of a row that depends on the others


@kernel
def invert(s, memory):
    """Replace the matrix of the HELD rows, whose equations may be linearly dependent, by G with ``lambda = -G rhs``.

    False if other rows depend on them. In/out: matrix, size. Out: depends, number of omitted equations.
    """
    iwork = memory.iwork
    f = s.flow[0]
    m = iwork[f.n_equations]
    # 1. rank of the equations alone
    n = _list_equations(s, memory)
    rank = _factorise(n, f, memory)
    for k in range(rank, n):
        iwork[f.left_out + iwork[f.shifted + k]] = 1
    # 2. plain inverse without the dependent ones
    n_left = 0
    for e in range(m):
        n_left += 1 - iwork[f.left_out + e]
    iwork[f.depends] = m - n_left
    _leave_out(m, f, memory)
    if not invert_in_place(n_left, f.matrix, f.size, memory, f.pivots):
        return False
    # 3. back to all rows, with least norm
    _spread(m, n_left, f, memory)
    if rank < n:
        _find_null_space(n, rank, f, memory)
        for e in range(m):
            _take_out_null_space(e, n, rank, m, f, memory)
    return True


@tiny
def _list_equations(s, memory):
    """Number of the equations that act on something; others are left out. Out: shifted, which they are, left_out, weight, scale."""
    work, iwork = memory.work, memory.iwork
    f, p, n, m = s.flow[0], s.newton.plan[0], 0, iwork[s.flow[0].n_equations]
    for e in range(m):
        i, own = iwork[p.active + iwork[f.row + e]], work[f.matrix + e * m + e]
        is_equation = s.newton.constraints[i].bilateral != 0
        iwork[f.left_out + e] = 1 if is_equation and not own > 0.0 else 0
        if is_equation and own > 0.0:
            iwork[f.shifted + n], work[f.scale + e], work[f.weight + e] = e, 1.0 / math.sqrt(own), 0.0
            for k in range(m):
                if iwork[f.block + iwork[p.active + iwork[f.row + k]]] == iwork[f.block + i]:
                    work[f.weight + e] += work[f.matrix + k * m + k] / own
            n += 1
    return n


@kernel
def _factorise(n, f, memory):
    """Factors of ``D A D`` of the n equations, independent ones first. Returns their number. In/out: shifted. Out: shift."""
    work, iwork = memory.work, memory.iwork
    S, m = f.shift, iwork[f.n_equations]
    # 1. scaled matrix
    for i in range(n):
        a = iwork[f.shifted + i]
        for j in range(n):
            b = iwork[f.shifted + j]
            work[S + n * i + j] = work[f.scale + a] * work[f.matrix + m * a + b] * work[f.scale + b]
    # 2. elimination with pivots on the diagonal: it is symmetric but for friction, and semidefinite
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(work[S + n * i + i]) > abs(work[S + n * pivot + pivot]):
                pivot = i
        if not abs(work[S + n * pivot + pivot]) > _DEPENDENT:
            return k
        if pivot > k:
            _exchange(n, k, pivot, f, memory)
        for i in range(k + 1, n):
            factor = work[S + n * i + k] / work[S + n * k + k]
            work[S + n * i + k] = factor
            for j in range(k + 1, n if factor != 0.0 else k + 1):
                work[S + n * i + j] -= factor * work[S + n * k + j]
    return n


@tiny
def _exchange(n, k, l, f, memory):
    """Rows and columns k and l change places."""
    work, iwork = memory.work, memory.iwork
    S = f.shift
    iwork[f.shifted + k], iwork[f.shifted + l] = iwork[f.shifted + l], iwork[f.shifted + k]
    for j in range(n):
        work[S + n * k + j], work[S + n * l + j] = work[S + n * l + j], work[S + n * k + j]
    for i in range(n):
        work[S + n * i + k], work[S + n * i + l] = work[S + n * i + l], work[S + n * i + k]


@tiny
def _leave_out(m, f, memory):
    """The matrix without the rows and columns that are left out, which lies where it begins, and its size. In/out: matrix, size."""
    work = memory.work
    to, row = f.matrix, 0
    for e in range(m):
        if memory.iwork[f.left_out + e] == 0:
            work[f.size + row] = work[f.size + e]
            row += 1
            for k in range(m):
                if memory.iwork[f.left_out + k] == 0:
                    work[to] = work[f.matrix + m * e + k]
                    to += 1


@tiny
def _spread(m, n, f, memory):
    """Reverse of `_leave_out`, with 0 for omitted rows."""
    at = f.matrix + n * n
    for e in range(m - 1, -1, -1):
        for k in range(m - 1, -1, -1):
            value = 0.0
            if memory.iwork[f.left_out + e] == 0 and memory.iwork[f.left_out + k] == 0:
                at -= 1
                value = memory.work[at]
            memory.work[f.matrix + m * e + k] = value


@kernel
def _find_null_space(n, rank, f, memory):
    """Null space X, in place of U X, and the Cholesky factor of ``N^T T N`` behind it, both in shift."""
    work = memory.work
    S = f.shift
    # 1. X by back substitution
    for j in range(rank, n):
        for i in range(rank - 1, -1, -1):
            s = work[S + n * i + j]
            for l in range(i + 1, rank):
                s -= work[S + n * i + l] * work[S + n * l + j]
            work[S + n * i + j] = s / work[S + n * i + i]
    # 2. N^T T N, and its factor
    for i in range(rank, n):
        for j in range(rank, i + 1):
            s = work[f.weight + memory.iwork[f.shifted + i]] if i == j else 0.0
            for l in range(rank):
                s += work[S + n * l + i] * work[f.weight + memory.iwork[f.shifted + l]] * work[S + n * l + j]
            work[S + n * i + j] = s
    corner = (n + 1) * rank
    cholesky(n - rank, n, 0.0, view(work, S + corner, n * n - corner))


@kernel
def _take_out_null_space(e, n, rank, m, f, memory):
    """Make column e of G one of least norm; in scaled numbers ``z = D^-1 lambda`` as in the text above. In/out: matrix. Work: side."""
    work, iwork = memory.work, memory.iwork
    S, G, c = f.shift, f.matrix + e, f.side
    # 1. (N^T T N)^-1 N^T T lambda
    for j in range(rank, n):
        s = 0.0
        for l in range(rank):
            a = iwork[f.shifted + l]
            s -= work[S + n * l + j] * work[f.weight + a] * work[G + m * a] / work[f.scale + a]
        work[c + j] = s
    corner = (n + 1) * rank
    cholesky_solve(n - rank, n, view(work, S + corner, n * n - corner), view(work, c + rank, n - rank))
    # 2. lambda minus N times it
    for j in range(n - 1, rank - 1, -1):
        a = iwork[f.shifted + j]
        work[G + m * a] -= work[f.scale + a] * work[c + j]
        for l in range(rank):
            a = iwork[f.shifted + l]
            work[G + m * a] += work[f.scale + a] * work[S + n * l + j] * work[c + j]
