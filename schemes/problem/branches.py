"""Choice among several solutions of a problem with bounds: that of the present basis, and none that is unstable.

``w = W z + q`` has one solution if W is a P-matrix. Hysteresis (a negative D) and amplifying feedback have several: for a relay each bound,
say, and a point between. z is then the limit of a fast motion ``z' = -w``, kept within the bounds: it stays at a bound as long as w has the
sign for that, and leaves a point between at once if a principal minor of W, of the rows that are between their bounds there, is negative.
"""

import math

import numpy as np

from nsds._jit import kernel, tiny
from nsds.schemes.problem.box import solve
from nsds.schemes.problem.tables import leaves
from nsds.status import CONVERGED, INEXACT

LARGEST_LOOKED_AT = 64  # rows whose minors are checked; of larger problems only the diagonal is
SMALL = 8  # rows of problems with a new matrix in each step, where the check must not take longer than the step
_LAG = 1e-7  # relative to its row: a smaller diagonal entry is replaced by this, a row that answers at once
_ROUNDING = 1e-9  # relative to the terms of a pivot: smaller values are zero
_SIGN = 1e-14  # relative to the terms of w: smaller ones may have the wrong sign by rounding
COLUMNS = (
    # branch: saved bounds, guess, solution, outputs (n each) and a matrix (n, n); held: rows fixed at a bound; member: rows of the matrix
    "branch", "held", "member",
    # several: W may have several solutions; unstable: the last one is; open: choice left by the first problem: -1 before it, 0 for none,
    # else 1 + 2 i, plus 1 if row i is at its upper bound
    "several", "unstable", "open",
)  # fmt: skip
_ARRAYS = 5  # of n numbers, before the matrix


def place_branches(plan, n, work, iwork):
    """Reserve the arrays that `solve_near` needs beside those of the problem."""
    work.place(plan, branch=_ARRAYS * n + (min(n, LARGEST_LOOKED_AT) + 2) * min(n, LARGEST_LOOKED_AT))
    iwork.place(plan, held=n, member=n, several=1, unstable=1, open=1)


def places_of_open(tables):
    """Integers in which the first problem of a run notes an undetermined choice: one for each table of problems that may have one."""
    return np.array([table["open"][0] for table in leaves(tables) if table.dtype.names and "open" in table.dtype.names], np.int64)


@kernel
def note_several(most, n, row, column, p, memory):
    """Note whether W may leave several solutions: a minor, or beyond so many rows an entry of the diagonal, is negative.

    If the diagonal is positive and larger than the rest of each row there is one solution, which is the cheapest test.
    """
    is_dominant = True
    for i in range(n):
        excess = 0.0
        for k in range(row[i], row[i + 1]):
            excess += memory.work[p.W + k] if column[k] == i else -abs(memory.work[p.W + k])
        is_dominant &= excess > 0.0
        memory.iwork[p.member + i] = i
    memory.iwork[p.several] = 1 if not is_dominant and _unstable_row(n, n, most, row, column, p, memory) >= 0 else 0


@kernel
def note_unstable(n, row, column, p, memory):
    """Whether z, between its bounds in some rows, is a solution that is left at once."""
    iwork = memory.iwork
    iwork[p.unstable] = 0
    if iwork[p.several] != 0:
        iwork[p.unstable] = 1 if _leaving_row(n, p.lower, p.upper, row, column, p, memory) >= 0 else 0
    return iwork[p.unstable] != 0


@kernel
def solve_near(n, row, column, p, solver, solver_options, memory):
    """`nsds.schemes.problem.box.solve` from the guess z, rows at their bounds staying there unless that contradicts the law.

    From an unstable solution the rows that leave it go to the bound on the side of the guess, if there is a solution there, else to the
    other one.
    """
    work, iwork = memory.work, memory.iwork
    is_first = iwork[p.open] < 0
    iwork[p.open], iwork[p.unstable] = max(iwork[p.open], 0), 0
    # 1. a P-matrix has one solution
    if iwork[p.several] == 0:
        return solve(n, row, column, p.W, p, solver, solver_options, False, memory)
    # 2. fix rows that are at a bound there
    lower, upper, guess = p.branch, p.branch + n, p.branch + 2 * n
    for i in range(n):
        low, high, z = work[p.lower + i], work[p.upper + i], work[p.z + i]
        work[lower + i], work[upper + i], work[guess + i], iwork[p.held + i] = low, high, z, 0
        if low < high and (z <= low or z >= high):
            iwork[p.held + i] = 1
            work[p.z + i] = work[p.lower + i] = work[p.upper + i] = low if z <= low else high
    # 3. solve, and release rows that the law does not keep at their bound
    status, n_iter = CONVERGED, 0.0
    for _ in range(n + 1):
        status, n_iter = _solve(n, row, column, p, solver, solver_options, memory, n_iter)
        if _release(status, n, lower, upper, row, column, p, memory) == 0:
            break
    # 4. leave unstable solutions, one row at a time
    for _ in range(n):
        i = _leaving_row(n, lower, upper, row, column, p, memory) if status in (CONVERGED, INEXACT) else -1
        if i < 0:
            break
        is_high = work[guess + i] > work[p.z + i]
        moved = _move_to_bound(i, is_high, n, lower, upper, row, column, p, solver, solver_options, memory)
        if not moved and not _move_to_bound(i, not is_high, n, lower, upper, row, column, p, solver, solver_options, memory):
            iwork[p.unstable] = 1
            break
    # 5. note an undetermined choice of the first problem, for a warning; restore the bounds
    if is_first and status in (CONVERGED, INEXACT):
        _note_open(n, lower, upper, guess, row, column, p, solver, solver_options, memory)
    for i in range(n):
        work[p.lower + i], work[p.upper + i] = work[lower + i], work[upper + i]
    work[p.info] = max(work[p.info], n_iter)
    return status


@kernel
def _solve(n, row, column, p, solver, solver_options, memory, n_iter):
    """(status, n_iter and the solver's iterations)."""
    status = solve(n, row, column, p.W, p, solver, solver_options, False, memory)
    return status, n_iter + memory.work[p.info]


@tiny
def _is_right(i, row, column, lower, upper, p, work):
    """Whether w of a row fixed at a bound has the sign that the law requires, up to rounding."""
    w, terms = work[p.q + i], abs(work[p.q + i])
    for k in range(row[i], row[i + 1]):
        term = work[p.W + k] * work[p.z + column[k]]
        w, terms = w + term, terms + abs(term)
    return w >= -_SIGN * terms if work[p.z + i] == work[lower + i] else w <= _SIGN * terms


@kernel
def _release(status, n, lower, upper, row, column, p, memory):
    """Restore the bounds of rows that were fixed against the law, of all without a solution. Returns their number."""
    work, iwork = memory.work, memory.iwork
    count, is_solved = 0, status in (CONVERGED, INEXACT)
    for i in range(n):
        if iwork[p.held + i] != 0 and not (is_solved and _is_right(i, row, column, lower, upper, p, work)):
            iwork[p.held + i] = -1
            count += 1
    for i in range(n):
        if iwork[p.held + i] < 0:
            iwork[p.held + i], work[p.lower + i], work[p.upper + i] = 0, work[lower + i], work[upper + i]
    return count


@kernel
def _move_to_bound(i, is_high, n, lower, upper, row, column, p, solver, solver_options, memory):
    """Solve with row i fixed at a bound. False, with everything restored, if there is no such bound, or no solution."""
    work = memory.work
    bound = work[upper + i] if is_high else work[lower + i]
    if abs(bound) == math.inf:
        return False
    # 1. save
    kept, low, high = p.branch + 3 * n, work[p.lower + i], work[p.upper + i]
    for j in range(n):
        work[kept + j], work[kept + n + j] = work[p.z + j], work[p.w + j]
    n_iter, residual = work[p.info], work[p.info + 1]
    # 2. solve at the bound
    work[p.z + i] = work[p.lower + i] = work[p.upper + i] = bound
    status, n_iter = _solve(n, row, column, p, solver, solver_options, memory, n_iter)
    if status in (CONVERGED, INEXACT) and _is_right(i, row, column, lower, upper, p, work):
        work[p.info] = n_iter
        return True
    # 3. restore
    work[p.lower + i], work[p.upper + i], work[p.info], work[p.info + 1] = low, high, n_iter, residual
    for j in range(n):
        work[p.z + j], work[p.w + j] = work[kept + j], work[kept + n + j]
    return False


@kernel
def _note_open(n, lower, upper, guess, row, column, p, solver, solver_options, memory):
    """Note a row whose guess lies between its bounds and that could be at the other one as well."""
    work = memory.work
    again = p.branch + 3 * n
    for i in range(n):
        z, low, high = work[p.z + i], work[lower + i], work[upper + i]
        if not low < work[guess + i] < high or low < z < high:
            continue
        for j in range(n):  # bounds are those of the problem again
            work[p.lower + j], work[p.upper + j] = work[lower + j], work[upper + j]
        n_iter, residual = work[p.info], work[p.info + 1]
        if _move_to_bound(i, z == low, n, lower, upper, row, column, p, solver, solver_options, memory):
            memory.iwork[p.open] = 1 + 2 * i + (1 if z == high else 0)
            for j in range(n):
                work[p.z + j], work[p.w + j] = work[again + j], work[again + n + j]
            work[p.info], work[p.info + 1] = n_iter, residual
            break


@kernel
def _leaving_row(n, lower, upper, row, column, p, memory):
    """Row between its bounds that leaves z; -1 if none does."""
    work = memory.work
    count = 0
    for i in range(n):
        if work[lower + i] < work[p.z + i] < work[upper + i]:
            memory.iwork[p.member + count] = i
            count += 1
    return _unstable_row(count, n, LARGEST_LOOKED_AT, row, column, p, memory)


@kernel
def _unstable_row(count, n, most, row, column, p, memory):
    """Row among count members whose minor with faster answering ones is negative; -1 if none is."""
    if count > min(most, LARGEST_LOOKED_AT):
        for a in range(count):
            i = memory.iwork[p.member + a]
            for k in range(row[i], row[i + 1]):
                if column[k] == i and memory.work[p.W + k] < 0.0:
                    return i
        return -1
    A, scale = p.branch + _ARRAYS * n, p.branch + _ARRAYS * n + count * count
    _fill(count, A, row, column, p, memory)
    _scale(count, A, scale, memory.work)
    return _eliminate(count, A, scale, p, memory)


@kernel
def _fill(count, A, row, column, p, memory):
    """The rows and columns of W of the members, which are in order."""
    work, iwork = memory.work, memory.iwork
    for k in range(count * count):
        work[A + k] = 0.0
    for a in range(count):
        i, b = iwork[p.member + a], 0
        for k in range(row[i], row[i + 1]):
            while b < count and iwork[p.member + b] < column[k]:
                b += 1
            if b < count and iwork[p.member + b] == column[k]:
                work[A + a * count + b] = work[p.W + k]


@kernel
def _scale(count, A, scale, work):
    """``A_ij s_i s_j`` with the largest entry of each row and column about 1; negligible diagonal entries become a lag."""
    for _ in range(2):
        for a in range(count):
            largest = 0.0
            for b in range(count):
                largest = max(largest, abs(work[A + a * count + b]), abs(work[A + b * count + a]))
            work[scale + a] = 1.0 / math.sqrt(largest) if largest > 0.0 else 1.0
        for a in range(count):
            for b in range(count):
                work[A + a * count + b] *= work[scale + a] * work[scale + b]
    for a in range(count):
        if abs(work[A + a * count + a]) <= _LAG:
            work[A + a * count + a] = _LAG


@kernel
def _eliminate(count, A, terms, p, memory):
    """Eliminate by positive pivots of the diagonal, the largest first. Returns the row whose entry is negative when none is left, or -1."""
    work = memory.work
    for a in range(count):
        work[terms + a] = abs(work[A + a * count + a])
    for _ in range(count):
        # the largest positive pivot relative to its terms; without one the most negative entry
        pivot, largest, lowest, row = -1, _ROUNDING, -_ROUNDING, -1
        for a in range(count):
            share = work[A + a * count + a] / work[terms + a] if work[terms + a] > 0.0 else 0.0
            pivot, largest = (a, share) if share > largest else (pivot, largest)
            row, lowest = (a, share) if share < lowest else (row, lowest)
        if pivot < 0:
            return memory.iwork[p.member + row] if row >= 0 else -1
        reciprocal = 1.0 / work[A + pivot * count + pivot]
        for a in range(count):
            if a != pivot and work[terms + a] > 0.0:
                factor = work[A + a * count + pivot] * reciprocal
                work[terms + a] += abs(factor * work[A + pivot * count + a])
                for b in range(count):
                    work[A + a * count + b] -= factor * work[A + pivot * count + b]
        work[terms + pivot] = 0.0  # done
    return -1
