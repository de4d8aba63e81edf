"""Projected Gauss–Seidel and its relatives: sweeps in order, in place, O(nnz) each, any bounds."""

import math

from nsds._jit import kernel, stack, view
from nsds.solvers.box import lemke as pivoting
from nsds.solvers.box.lemke import lemke
from nsds.solvers.box.signature import N_INFO, Options, affordable, diagonal, judge, largest_in_row, look, problem_of
from nsds.status import CONVERGED, MAX_ITER, SINGULAR, STALLED, UNSUITED

MAX_SWEEPS = 10_000
BLOCK = 3  # unknowns of a block of nsgs, where none is given
LARGEST_BLOCK = 32
_RELAXATION = 1.3  # of psor
_REGULARISATION = 0.1  # of rpgs, relative to the largest entry of a row
_EXACT = 1e-13  # tolerance of a block
_CHECKED = 50  # sweeps between two checks of the merit
_PATIENCE, _BLOCK_PATIENCE = 20, 50  # checks without progress before sweeps, and sweeps of blocks, have stalled


def work_size(n, row, column):
    """Divisors of the rows."""
    return n, 0


@kernel
def pgs(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``, sweep by sweep: ``z_i <- P(z_i - w_i / M_ii)``.

    Converges for symmetric positive semidefinite M with a solution, and for diagonally dominant M. SINGULAR: M_ii <= 0.
    Reference: Cottle, Pang, Stone, The Linear Complementarity Problem, section 5.2.
    """
    return _sweeps(1.0, 0.0, problem, options, z, w, info, work)


@kernel
def psor(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q`` with over-relaxation: ``z_i <- P(z_i - omega w_i / M_ii)``; weight: omega in (0, 2), 1.3 if not given.

    Converges for symmetric positive definite M. SINGULAR: M_ii <= 0. Reference: Cryer, SIAM Journal on Control 9 (1971) 385–392.
    """
    omega = options.weight if options.weight > 0.0 else _RELAXATION
    return _sweeps(omega, 0.0, problem, options, z, w, info, work)


@kernel
def rpgs(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``, regularised: ``z_i <- P(z_i - w_i / (M_ii + rho_i))``: zeros on the diagonal are no obstacle.

    rho_i is weight (0.1 if not given) times the largest entry of the row. A proximal term, so that the solution is that of M itself.
    """
    rho = options.weight if options.weight > 0.0 else _REGULARISATION
    return _sweeps(1.0, rho, problem, options, z, w, info, work)


@kernel
def _sweeps(omega, rho, problem, options, z, w, info, divisor):
    row, M = problem.row, problem.M
    n = problem.q.size
    for i in range(n):
        divisor[i] = diagonal(row, problem.column, M, i) + rho * largest_in_row(row, M, i)
        if not divisor[i] > 0.0:
            return judge(SINGULAR, 0, problem, options, z, w, info)
        z[i] = min(max(z[i], problem.lower[i]), problem.upper[i])
    limit = int(options.max_iter) if options.max_iter > 0 else affordable(MAX_SWEEPS, float(M.size))
    progress = stack(2)
    progress[0], progress[1] = math.inf, _PATIENCE
    for sweep in range(limit):
        settled = True
        for i in range(n):
            w_i = problem.q[i]
            for k in range(row[i], row[i + 1]):
                w_i += M[k] * z[problem.column[k]]
            z_new = min(max(z[i] - omega * w_i / divisor[i], problem.lower[i]), problem.upper[i])
            settled &= abs(z_new - z[i]) <= options.tol * abs(z_new)
            z[i] = z_new
        if settled or sweep % _CHECKED == _CHECKED - 1:  # small changes only suggest convergence
            status = look(sweep + 1, _PATIENCE, progress, problem, options, z, w, info)
            if status != MAX_ITER:
                return status
    return judge(MAX_ITER, limit, problem, options, z, w, info)


def nsgs_work_size(n, row, column):
    """The matrix, vectors and scratch of one block."""
    b = min(n, LARGEST_BLOCK)
    n_work, n_iwork = pivoting.work_size(b, row, column)
    return b * b + b + N_INFO + n_work, b + 1 + b * b + n_iwork


@kernel
def nsgs(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``, block by block: each block of unknowns is solved exactly (Lemke), the others being held.

    block: unknowns of a block, 3 if not given, at most 32. Converges for symmetric positive definite M, and block diagonal dominance.
    UNSUITED: a larger block. SINGULAR: a block could not be solved.
    Reference: Jourdan, Alart, Jean, Computer Methods in Applied Mechanics and Engineering 155 (1998) 31–47.
    """
    n, size = problem.q.size, int(options.block) if options.block > 0 else BLOCK
    if size > LARGEST_BLOCK:
        judge(UNSUITED, 0, problem, options, z, w, info)
        return UNSUITED
    limit = int(options.max_iter) if options.max_iter > 0 else affordable(MAX_SWEEPS, problem.M.size + 4.0 * n * size**2)
    progress = stack(2)
    progress[0], progress[1] = math.inf, _PATIENCE
    for sweep in range(limit):
        for first in range(0, n, size):
            b = min(size, n - first)
            if not _solve_block(first, b, problem, z, w, work, iwork):
                return judge(SINGULAR, sweep, problem, options, z, w, info)
        status = look(sweep + 1, _BLOCK_PATIENCE, progress, problem, options, z, w, info)
        if status != MAX_ITER:
            return status
    return judge(MAX_ITER, limit, problem, options, z, w, info)


@kernel
def _solve_block(first, b, problem, z, w, work, iwork):
    """``M_BB z_B + q_B + M_BN z_N`` within the bounds of B, for B = first..first + b - 1. False: no solution found."""
    M_b, q_b = view(work, 0, b * b), view(work, b * b, b)
    info, rest = view(work, b * b + b, N_INFO), view(work, b * b + b + N_INFO, work.size - b * b - b - N_INFO)
    row_b, column_b = view(iwork, 0, b + 1), view(iwork, b + 1, b * b)
    for i in range(b):
        row_b[i] = i * b
        q_b[i] = problem.q[first + i]
        for j in range(b):
            column_b[i * b + j], M_b[i * b + j] = j, 0.0
        for k in range(problem.row[first + i], problem.row[first + i + 1]):
            j = problem.column[k] - first
            if 0 <= j < b:
                M_b[i * b + j] = problem.M[k]
            else:
                q_b[i] += problem.M[k] * z[problem.column[k]]
    row_b[b] = b * b
    z_b, w_b = view(z, first, b), view(w, first, b)
    scratch = view(iwork, b + 1 + b * b, iwork.size - b - 1 - b * b)
    exactly = Options(_EXACT, 0.0, 0.0, 0.0, 0.0, 0.0)
    status = lemke(
        problem_of((row_b, column_b, M_b, q_b, view(problem.lower, first, b), view(problem.upper, first, b))),
        exactly,
        z_b,
        w_b,
        info,
        rest,
        scratch,
    )
    return status in (CONVERGED, STALLED)
