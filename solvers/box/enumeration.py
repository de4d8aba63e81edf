"""Enumeration of all complementary bases: the reference for small problems, exact for any matrix."""

import math

from nsds._jit import inlined, kernel, tiny, view
from nsds.solvers.box.newton_min import BASIC, LOWER, UPPER
from nsds.solvers.box.signature import affordable, clip, judge, residual
from nsds.status import CONVERGED, MAX_ITER, STALLED, UNSUITED

MAX_UNKNOWNS = 64
MAX_BASES = 1 << 20
_LOOK = 4.0  # multiplications of a thorough look at a basis, in n^4
_PIVOT = 1e-13  # smaller pivots, relative to the entries of the basis in common units, are rounding


def work_size(n, row, column):
    """A dense augmented matrix, the units of its columns; sides, members and a permutation."""
    n = min(n, MAX_UNKNOWNS)
    return n * (n + 2), 3 * n


@kernel
def enumeration(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``: tries every choice of basic z_i, the others being at a bound, and accepts the first solution.

    Free z_i are always basic; max_iter limits the number of choices. UNSUITED: more than 64 unknowns or 2^20 choices. STALLED: no basis
    solves the problem; z is of the one with the least merit.
    """
    return next_solution(0, problem, options, z, w, info, work, iwork)


@kernel
def next_solution(first, problem, options, z, w, info, work, iwork):
    """The first solution among the choices from number ``first`` on; info[0] - 1 is the number of the choice."""
    n = problem.q.size
    n_choices = count_choices(problem.lower, problem.upper)
    if n > MAX_UNKNOWNS or n_choices > MAX_BASES:
        judge(UNSUITED, 0, problem, options, z, w, info)
        return UNSUITED
    limit = int(options.max_iter) if options.max_iter > 0 else affordable(n_choices, _mean_cost(problem.lower, problem.upper))
    best, least, end = first, math.inf, min(n_choices, first + limit)
    thorough = first + thorough_looks(n, end - first)
    for choice in range(first, end):
        _solve_basis(choice, problem, z, work, iwork)
        n_clear, merit = 0, math.inf
        if choice >= thorough:
            merit, _, n_clear, _ = residual(options.tol, options.rounding, problem, z, w)
        if n_clear == 0:
            status = judge(STALLED if choice < thorough else MAX_ITER, choice + 1, problem, options, z, w, info)
            if status == CONVERGED:
                return CONVERGED
            merit = info[1]
        if merit < least:
            best, least = choice, merit
    _solve_basis(best, problem, z, work, iwork)
    status = STALLED if end == n_choices else MAX_ITER
    return judge(status, end - first, problem, options, z, w, info)


@tiny
def thorough_looks(n, n_choices):
    """The choices whose z are accepted, too, where only rounding of the data explains what is missing, which takes n^4 to see.

    Of later ones those that clearly miss a row are dismissed without a second look, which takes as long.
    """
    return affordable(n_choices, _LOOK * n**4)


@tiny
def _mean_cost(lower, upper):
    """Multiplications for a basis of mean size."""
    size = 1.0
    for i in range(lower.size):
        size += (lower[i] < upper[i]) / _count_sides(lower[i], upper[i])
    return size**3


@kernel
def count_choices(lower, upper):
    """Product of the sides that each z_i may be on; cut at 2^21."""
    count = 1
    for i in range(lower.size):
        count = min(2 * MAX_BASES, count * _count_sides(lower[i], upper[i]))
    return count


@tiny
def _count_sides(lower, upper):
    if lower == upper or (lower == -math.inf and upper == math.inf):
        return 1
    return 3 if lower > -math.inf and upper < math.inf else 2


@tiny
def _solve_basis(choice, problem, z, work, iwork):
    """``M_BB z_B = -q_B - M_BN z_N`` by Gauss elimination with complete pivoting; z = 0 where M_BB leaves it open; then clipped."""
    column, lower, upper = problem.column, problem.lower, problem.upper
    n = problem.q.size
    side, member, order = view(iwork, 0, n), view(iwork, n, n), view(iwork, 2 * n, n)
    b = 0
    for i in range(n):
        n_sides = _count_sides(lower[i], upper[i])
        digit, choice = choice % n_sides, choice // n_sides
        if n_sides == 1:
            side[i] = LOWER if lower[i] == upper[i] else BASIC
        else:
            side[i] = BASIC if digit == 1 else LOWER if digit == 0 and lower[i] > -math.inf else UPPER
        z[i] = 0.0 if side[i] == BASIC else lower[i] if side[i] == LOWER else upper[i]
        member[b] = i
        order[b] = b
        b += side[i] == BASIC
    width = b + 1
    for i in range(b):
        for j in range(b):
            work[i * width + j] = 0.0
        work[i * width + b] = -problem.q[member[i]]
        j = 0
        for k in range(problem.row[member[i]], problem.row[member[i] + 1]):
            work[i * width + b] -= problem.M[k] * z[column[k]]
            while j < b and member[j] < column[k]:
                j += 1
            if j < b and member[j] == column[k]:
                work[i * width + j] = problem.M[k]
    rank = _eliminate(b, width, work, view(work, b * width, b), order)
    for i in range(rank - 1, -1, -1):
        s = work[i * width + b]
        for k in range(i + 1, rank):
            s -= work[i * width + k] * z[member[order[k]]]
        z[member[order[i]]] = s / work[i * width + i]
    clip(lower, upper, z)  # a degenerate zero may have been rounded; a wrong basis shows in the merit


@inlined
def _eliminate(b, width, A, unit, order):
    """Rows and columns exchanged so that the largest entry is the pivot, in units in which all of them are of size 1. Returns the rank."""
    for i in range(b):
        largest = 0.0
        for j in range(b):
            largest = max(largest, abs(A[i * width + j]))
        for j in range(width if largest > 0.0 else 0):
            A[i * width + j] /= largest
    for j in range(b):
        largest = 0.0
        for i in range(b):
            largest = max(largest, abs(A[i * width + j]))
        unit[j] = 1.0 / largest if largest > 0.0 else 1.0
    for k in range(b):
        p, c, pivot = k, k, 0.0
        for i in range(k, b):
            for j in range(k, b):
                if abs(A[i * width + j]) * unit[j] > pivot:
                    p, c, pivot = i, j, abs(A[i * width + j]) * unit[j]
        if not pivot > _PIVOT:
            return k
        unit[k], unit[c] = unit[c], unit[k]
        for j in range(k, width):
            A[k * width + j], A[p * width + j] = A[p * width + j], A[k * width + j]
        for i in range(b):
            A[i * width + k], A[i * width + c] = A[i * width + c], A[i * width + k]
        order[k], order[c] = order[c], order[k]
        for i in range(k + 1, b):
            factor = A[i * width + k] / A[k * width + k]
            for j in range(k + 1, width):
                A[i * width + j] -= factor * A[k * width + j]
    return b
