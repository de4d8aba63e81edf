"""One-step problems with friction: rows are gathered in blocks of d components and solved by a method for contacts.

The rows are those of a problem with bounds, ``w = W z + q``; those of a contact with friction follow each other. Of the blocks,
``u = W r + q`` with the laws of `nsds.solvers.contact.signature`,

- a contact with friction is one, with or without rolling; a row ``0 <= w  ⟂  z >= 0`` the normal component of one;
- equations fill blocks one after the other, or one each where a contact has become one;
- a row with two finite bounds, ``z = z_mid + r_T``, is the tangent of a contact whose normal component is half of their distance.

Unused (padding) components satisfy ``u = s r``, with s the largest diagonal entry of the block, so that they are 0. Equations may be
redundant: they have ``w + epsilon W_ii (z - z_last)``, as those of rigid bodies. Equations of angles beside contacts of bodies of a
micrometre are 1e12 times as large as these: rows of equations are scaled, by powers of 2^8, which leaves most other problems as they are.
"""

import math

import numpy as np
from numba import int64, typeof, types, uintp

from nsds._jit import caller, kernel, on_demand, tiny, view
from nsds.maths.patterns import distinct
from nsds.model.layout import ABSENT, table
from nsds.schemes.problem.rows import CONSTRAINT
from nsds.solvers.contact.signature import EQUATION, N_INFO, OPTIONS, call_solver, problem_of
from nsds.status import CONVERGED, INEXACT, INFEASIBLE, MAX_ITER, RAY, SINGULAR, STALLED

PROXIMAL = 1e-12  # epsilon
_COARSE = 8  # exponent of the powers of 2 by which rows are scaled
# n rows, N blocks of d components.
BLOCKS = table(
    # 1. rows: their constraints, pattern and matrix, q, guess and solution z, w, bounds, rounding of q; info
    "active", "row", "column", "W", "q", "z", "w", "lower", "upper", "rounding", "info",
    # 2. d, 0 without friction; linked (2 n + 1): rows and components for which the pattern was made; component (n): of each row; row_of
    # (d N): row of each component, or ABSENT
    "d", "linked", "component", "row_of",
    # 3. blocks: disk, mu; their pattern; entry: place of each entry of W in matrix; mark: scratch; count: number of blocks
    "disk", "mu", "block_row", "block_column", "entry", "mark", "count",
    # 4. matrix, vector, r, u of the blocks; soft (n): proximal term on the diagonal of equations; unit (n): factor of each row; details:
    # info of the method
    "matrix", "vector", "r", "u", "soft", "unit", "details", "solver", "n_solver", "isolver", "n_isolver",
    # 5. bounded: some rows have two bounds
    "bounded",
)  # fmt: skip


def no_blocks():
    """The table of a problem without friction."""
    return np.zeros(1, BLOCKS)


def place_blocks(plan, constraints, unknowns, d, method, work, iwork):
    """Reserve the blocks of the rows of a plan, of d components each; none if d is 0. unknowns: with the pattern of all rows.

    The pattern of the blocks of all rows at once contains those of all choices.
    """
    if d == 0:
        return no_blocks()
    # 1. pattern of the blocks of all rows
    p, row, column = plan[0], unknowns.row, unknowns.column
    component, n_blocks = _components_of(constraints, d)
    owner = component // d
    pairs = distinct(owner[np.repeat(np.arange(constraints.size), np.diff(row))] * n_blocks + owner[column], n_blocks**2)
    block_row, block_column = np.searchsorted(pairs // n_blocks, np.arange(n_blocks + 1)), pairs % n_blocks
    # 2. memory
    blocks, n = no_blocks(), constraints.size
    floats, integers = method.work_size(d, block_row, block_column)
    work.place(blocks, matrix=d * d * pairs.size, **dict.fromkeys(("vector", "r", "u"), d * n_blocks), mu=2 * n_blocks, soft=n, unit=n)
    work.place(blocks, details=N_INFO, solver=floats)
    iwork.place(blocks, linked=2 * n + 1, component=n, row_of=d * n_blocks, disk=n_blocks, block_row=n_blocks + 1, block_column=pairs.size)
    iwork.place(blocks, entry=column.size, mark=n_blocks, count=1, isolver=max(integers, 1))
    blocks["n_solver"], blocks["n_isolver"], blocks["d"] = floats, max(integers, 1), d
    blocks["bounded"] = (constraints["lower"] != ABSENT).any()
    # 3. rows: the arrays of the plan
    for column, known in (("active", "active"), ("row", "sub_row"), ("column", "sub_column"), ("W", "sub_W")):
        blocks[column] = p[known]
    for column in ("q", "z", "w", "lower", "upper", "rounding", "info"):
        blocks[column] = p[column]
    return blocks


def _components_of(constraints, d):
    """(component of each row, number of blocks) with all rows active, as `_gather` makes them."""
    component, count, filled, equations = np.zeros(constraints.size, np.int64), 0, d, 0
    for i, (is_equation, place) in enumerate(zip(constraints["bilateral"].tolist(), constraints["component"].tolist(), strict=True)):
        if is_equation:
            if filled == d:
                equations, filled, count = count, 0, count + 1
            component[i], filled = equations * d + filled, filled + 1
        else:
            count += place == 0
            component[i] = (count - 1) * d + (place > 0)
    return component, count


@kernel
def _gather(blocks, n, constraints, work, iwork):
    """The blocks of n rows. Out: component, row_of, disk, mu, count."""
    p, count, equations = blocks[0], 0, 0
    d = p.d
    filled = d
    for a in range(n):
        c = constraints[iwork[p.active + a]]
        lower, upper = work[p.lower + a], work[p.upper + a]
        # equations fill blocks one after the other
        if c.bilateral != 0:
            if filled == d:
                equations, filled, count = count, 0, _begin(p, count, EQUATION, 0.0, 0.0, work, iwork)
            at = equations * d + filled
            filled += 1
        # rows with bounds: the normal or the tangent of a block of their own
        elif c.tangents == 0:
            at = d * count + (1 if upper < math.inf else 0)
            disk = EQUATION if lower == -math.inf else 0 if upper == math.inf else min(d - 1, 2)
            count = _begin(p, count, disk, 1.0, 0.0, work, iwork)
        # friction: one block a contact, its components in order, those of rolling after the disk
        else:
            disk = 1 if d == 2 or (d == 3 and c.mu_r != ABSENT) else 2
            if c.component == 0:
                count = _begin(p, count, disk, work[c.mu], 0.0 if c.mu_r == ABSENT else work[c.mu_r], work, iwork)
            at = d * (count - 1) + (c.component if c.component <= c.tangents else disk + c.component - c.tangents)
        iwork[p.component + a], iwork[p.row_of + at] = at, a
    iwork[p.count] = count


@tiny
def _begin(p, k, disk, mu, mu_r, work, iwork):
    """Block k, without rows yet; returns how many blocks there are then."""
    iwork[p.disk + k], work[p.mu + 2 * k], work[p.mu + 2 * k + 1] = disk, mu, mu_r
    for i in range(p.d * k, p.d * (k + 1)):
        iwork[p.row_of + i] = ABSENT
    return k + 1


@kernel
def _link(blocks, iwork):
    """Compressed rows of the blocks, columns ascending, and the place of each entry of the rows. Out: block_row, block_column, entry."""
    p, end = blocks[0], 0
    d, count, column = p.d, iwork[p.count], p.block_column
    # 1. columns of each block row, sorted by insertion; mark tells which are listed
    for k in range(count):
        iwork[p.mark + k] = ABSENT
    for k in range(count):
        begin = end
        iwork[p.block_row + k] = begin
        for i in range(d * k, d * (k + 1)):
            a = iwork[p.row_of + i]
            for e in range(iwork[p.row + a] if a != ABSENT else 0, iwork[p.row + a + 1] if a != ABSENT else 0):
                j = iwork[p.component + iwork[p.column + e]] // d
                if iwork[p.mark + j] < begin:
                    iwork[p.mark + j] = begin
                    at = end
                    while at > begin and iwork[column + at - 1] > j:
                        iwork[column + at] = iwork[column + at - 1]
                        at -= 1
                    iwork[column + at] = j
                    end += 1
        # 2. places of the entries of W
        for l in range(begin, end):
            iwork[p.mark + iwork[column + l]] = l
        for i in range(d * k, d * (k + 1)):
            a = iwork[p.row_of + i]
            for e in range(iwork[p.row + a] if a != ABSENT else 0, iwork[p.row + a + 1] if a != ABSENT else 0):
                at = iwork[p.component + iwork[p.column + e]]
                iwork[p.entry + e] = (iwork[p.mark + at // d] * d + i - d * k) * d + at % d
    iwork[p.block_row + count] = end


@tiny
def _are_linked(p, n, iwork):
    """Whether the n rows, and their components, are those for which the pattern was last made; they are noted."""
    are_same = iwork[p.linked] == n
    iwork[p.linked] = n
    for a in range(n):
        row, at = p.linked + 1 + 2 * a, p.linked + 2 + 2 * a
        are_same &= iwork[row] == iwork[p.active + a] and iwork[at] == iwork[p.component + a]
        iwork[row], iwork[at] = iwork[p.active + a], iwork[p.component + a]
    return are_same


@kernel
def _find_units(blocks, n, constraints, work, iwork):
    """Factor of each row: of equations the power of 2^8 that brings their diagonal nearest to the largest of other rows, 1 of these."""
    p, most = blocks[0], 0.0
    for a in range(n):
        work[p.unit + a] = 0.0
        for e in range(iwork[p.row + a], iwork[p.row + a + 1]):
            if iwork[p.column + e] == a:
                work[p.unit + a] = work[p.W + e]
        if constraints[iwork[p.active + a]].bilateral == 0:
            most = max(most, work[p.unit + a])
    for a in range(n):
        own, is_equation = work[p.unit + a], constraints[iwork[p.active + a]].bilateral != 0
        steps = math.floor(math.log2(most / own) / (2.0 * _COARSE) + 0.5) if is_equation and own > 0.0 and most > 0.0 else 0.0
        work[p.unit + a] = math.ldexp(1.0, _COARSE * int(steps))


@kernel
def _fill(blocks, n, constraints, work, iwork):
    """Matrix of the blocks, with padding, and epsilon times the diagonal of equations. Out: matrix, soft."""
    p = blocks[0]
    d, count = p.d, iwork[p.count]
    # 1. entries of W
    for i in range(d * d * iwork[p.block_row + count]):
        work[p.matrix + i] = 0.0
    for a in range(n):
        for e in range(iwork[p.row + a], iwork[p.row + a + 1]):
            work[p.matrix + iwork[p.entry + e]] = work[p.W + e] * (work[p.unit + a] * work[p.unit + iwork[p.column + e]])
    # 2. diagonal: padding, and the proximal term of equations
    for k in range(count):
        l = iwork[p.block_row + k]
        while iwork[p.block_column + l] != k:
            l += 1
        largest = 0.0
        for i in range(d):
            largest = max(largest, work[p.matrix + (l * d + i) * d + i])
        for i in range(d):
            a, at = iwork[p.row_of + d * k + i], p.matrix + (l * d + i) * d + i
            if a == ABSENT:
                work[at] = largest if largest > 0.0 else 1.0
            else:
                is_equation = constraints[iwork[p.active + a]].bilateral != 0
                work[p.soft + a] = PROXIMAL * (work[at] if work[at] > 0.0 else 1.0) if is_equation else 0.0
                work[at] += work[p.soft + a]


@tiny
def _middle(p, a, work):
    """Half the sum and half the difference of the bounds of a row that has two, zero of others."""
    lower, upper = work[p.lower + a], work[p.upper + a]
    if -math.inf < lower and upper < math.inf:
        return 0.5 * (lower + upper), 0.5 * (upper - lower)
    return 0.0, 0.0


@kernel
def _state(blocks, work, iwork):
    """Vector and guess of the blocks, from those of the rows. Out: vector, r."""
    p = blocks[0]
    for i in range(p.d * iwork[p.count]):
        a = iwork[p.row_of + i]
        unit = work[p.unit + a] if a != ABSENT else 1.0
        work[p.r + i] = work[p.z + a] / unit if a != ABSENT else 0.0
        work[p.vector + i] = unit * work[p.q + a] - work[p.soft + a] * work[p.r + i] if a != ABSENT else 0.0


@kernel
def _state_bounded(blocks, n, work, iwork):
    """Shift vector and guess of rows with two bounds to their middle. In/out: vector, r."""
    p = blocks[0]
    d = p.d
    for a in range(n):
        middle, half = _middle(p, a, work)
        at = iwork[p.component + a]
        if half > 0.0 or middle != 0.0:
            work[p.r + at] -= middle
            for b in range(n if middle != 0.0 else 0):
                for e in range(iwork[p.row + b], iwork[p.row + b + 1]):
                    if iwork[p.column + e] == a:
                        work[p.vector + iwork[p.component + b]] += work[p.unit + b] * work[p.W + e] * middle
            l = iwork[p.block_row + at // d]
            while iwork[p.block_column + l] != at // d:
                l += 1
            work[p.r + at - 1], work[p.vector + at - 1] = half, -half * work[p.matrix + l * d * d]


@tiny
def can_go_on(status):
    """Whether the best point of a solver that has not converged is worth something."""
    return status in (MAX_ITER, STALLED, RAY, SINGULAR, INEXACT, INFEASIBLE)


@kernel
def _solve(blocks, constraints, n, is_new, solver, options, work, iwork):
    """Solve the problem of n rows as one of contacts. Out: z, w, info. Returns a status, as `nsds.schemes.problem.box.solve`.

    is_new: whether rows or W differ from those of the last call. CONVERGED if the residual is small enough, or at most the rounding of q;
    INEXACT if it is bearable.
    """
    p = blocks[0]
    # 1. blocks, if rows or matrix are new
    if is_new:
        _gather(blocks, n, constraints, work, iwork)
        if not _are_linked(p, n, iwork):
            _link(blocks, iwork)
        _find_units(blocks, n, constraints, work, iwork)
        _fill(blocks, n, constraints, work, iwork)
    # 2. vector and guess
    _state(blocks, work, iwork)
    if p.bounded != 0:
        _state_bounded(blocks, n, work, iwork)
    # 3. method
    d, count = p.d, iwork[p.count]
    row, info, q = view(iwork, p.block_row, count + 1), view(work, p.details, N_INFO), view(work, p.vector, d * count)
    problem = problem_of((
        view(iwork, p.disk, count), view(work, p.mu, 2 * count), row, view(iwork, p.block_column, row[count]),
        view(work, p.matrix, d * d * row[count]), q,
    ))  # fmt: skip
    r, u = view(work, p.r, d * count), view(work, p.u, d * count)
    scratch, iscratch = view(work, p.solver, p.n_solver), view(iwork, p.isolver, p.n_isolver)
    status = call_solver(solver, (problem, options, r, u, info, scratch, iscratch))
    # 4. solution by rows
    for a in range(n):
        at = iwork[p.component + a]
        work[p.z + a], work[p.w + a] = work[p.unit + a] * work[p.r + at], work[p.u + at] / work[p.unit + a]
        if p.bounded != 0:
            work[p.z + a] += _middle(p, a, work)[0]
    work[p.info], work[p.info + 1] = info[0], info[1]
    # 5. status; a residual below the rounding of q is none
    if info[1] <= options.enough:
        return CONVERGED
    size = 0.0
    for i in range(q.size):
        size += q[i] ** 2
    if info[1] * math.sqrt(size) <= work[p.rounding]:
        return CONVERGED
    return INEXACT if info[1] <= options.inexact and can_go_on(status) else status


_DOOR = int64(
    typeof(no_blocks()), typeof(np.zeros(0, CONSTRAINT)), int64, int64, uintp, OPTIONS, types.float64[::1], int64[::1]
)  # fmt: skip
call_door = caller(_DOOR)
address_of_door = on_demand(_DOOR, _solve)  # systems without friction do without


@tiny
def solve(blocks, constraints, n, is_new, solver, options, memory):
    """See `_solve`, which is compiled when it is first called."""
    return call_door(address_of_door(), (blocks, constraints, int64(n), int64(is_new), solver, options.contact, memory.work, memory.iwork))
