"""Linearly dependent equations, as of joints in a closed loop: their forces have least norm, as in the time-stepping schemes.

The scaled matrix of the equations alone is factorised at each state, and its null space N found, by `nsds.schemes.problem.redundancy`. The
dependent rows are omitted from the problem of forces, and of all lambda that solve it the one with the least ``sum of T_i lambda_i^2`` is
chosen, T_i the trace of the matrix in the block of a row,

    lambda - N (N^T T N)^-1 N^T T lambda

It depends neither on the omitted rows nor on their order.
"""

import math

from nsds._jit import kernel, tiny
from nsds.schemes.linear_algebra import invert_in_place
from nsds.schemes.problem import redundancy


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
    rank = redundancy.factorise(n, f, memory)
    for k in range(rank, n):
        iwork[f.left_out + iwork[f.component + k]] = 1
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
        redundancy.find_null_space(n, rank, False, f, memory.work)
        for e in range(m):
            _take_out_null_space(e, n, rank, m, f, memory)
    return True


@tiny
def _list_equations(s, memory):
    """Number of the equations that act on something; others are left out. Out: left_out, component, scale, weight, dense."""
    work, iwork = memory.work, memory.iwork
    f, p, n, m = s.flow[0], s.newton.plan[0], 0, iwork[s.flow[0].n_equations]
    # 1. equations, their scales, and traces of their blocks
    for e in range(m):
        i, own = iwork[p.active + iwork[f.row + e]], work[f.matrix + e * m + e]
        is_equation = s.newton.constraints[i].bilateral != 0
        iwork[f.left_out + e] = 1 if is_equation and not own > 0.0 else 0
        if is_equation and own > 0.0:
            iwork[f.component + n], work[f.scale + n], work[f.weight + n] = e, 1.0 / math.sqrt(own), 0.0
            for k in range(m):
                if iwork[f.block + iwork[p.active + iwork[f.row + k]]] == iwork[f.block + i]:
                    work[f.weight + n] += work[f.matrix + k * m + k] / own
            n += 1
    # 2. scaled matrix
    for i in range(n):
        for j in range(n):
            own = work[f.matrix + m * iwork[f.component + i] + iwork[f.component + j]]
            work[f.dense + n * i + j] = work[f.scale + i] * own * work[f.scale + j]
    return n


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
def _take_out_null_space(e, n, rank, m, f, memory):
    """Make column e of G one of least norm, in scaled numbers. In/out: matrix."""
    work, iwork = memory.work, memory.iwork
    for i in range(n):
        work[f.scaled + i] = work[f.matrix + m * iwork[f.component + i] + e] / work[f.scale + i]
    redundancy.take_out_null_space(n, rank, f, work)
    for i in range(n):
        work[f.matrix + m * iwork[f.component + i] + e] = work[f.scale + i] * work[f.scaled + i]
