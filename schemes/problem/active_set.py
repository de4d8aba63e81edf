"""Active constraints of a step, their rows and columns of W, and their impulses: inactive ones cost nothing."""

import numpy as np

from nsds._jit import inlined, kernel, tiny, view
from nsds.model.layout import ABSENT
from nsds.schemes.problem import box, contact, friction
from nsds.schemes.problem.activation_rule import is_closed
from nsds.schemes.problem.rows import POSITION

_TOUCHING = 1e-300  # a first lambda that only says "pressing"


@inlined
def choose_active(p, constraints, horizon, h, memory):
    """Index set I_1 ([EventCapturing]): permanent constraints, and those of contacts whose forecast ``y + horizon ydot`` is closed.

    A positive forecast is closed where it is so up to `gap_slack`, and the contact neither opens nor closes: see `is_closed`.
    Writes the active flags, the list p.active, and p.local (place in the list). Inactive multipliers are set to 0, those of new
    contacts to a guess that only says "pressing", by which a whole column that lands is solved at once.
    Returns the number of active constraints, negative (-1 - n) when the set differs from that of the last call.
    """
    mem, imem, iwork = memory.mem, memory.imem, memory.iwork
    n = 0
    changed = False
    local, active = p.local, p.active
    for i in range(constraints.size):
        c = constraints[i]
        forecast = mem[c.gap] + horizon * mem[c.gap_rate]
        # active: listed, and a new contact gets a positive guess
        if c.always or is_closed(forecast, h * mem[c.gap_rate], 0.0, memory.work[c.closed]):
            changed |= iwork[local + i] != n
            iwork[local + i] = n
            iwork[active + n] = i
            n += 1
            if imem[c.active] == 0 and c.component == 0:
                mem[c.lam] = _TOUCHING
            imem[c.active] = 1
        # no longer active: its multiplier is cleared
        elif iwork[local + i] != ABSENT:
            changed = True
            iwork[local + i] = ABSENT
            imem[c.active] = 0
            mem[c.lam] = 0.0
    return -1 - n if changed else n


@tiny
def list_row(i, chosen, n, p, iwork):
    """Constraint i, if it is chosen, behind the n in the list. Returns their number."""
    iwork[p.local + i] = n if chosen else ABSENT
    if chosen:
        iwork[p.active + n] = i
    return n + 1 if chosen else n


@kernel
def extract_pattern(p, n, W_row, W_column, iwork):
    """Pattern of the rows and columns of W that belong to the n active constraints, by rows; sub_place: where an entry lies in W."""
    k = 0
    for a in range(n):
        i = iwork[p.active + a]
        iwork[p.sub_row + a] = k
        for j in range(W_row[i], W_row[i + 1]):
            column = iwork[p.local + W_column[j]]
            if column >= 0:
                iwork[p.sub_column + k] = column
                iwork[p.sub_place + k] = j
                k += 1
    iwork[p.sub_row + n] = k
    iwork[p.isolver] = 0  # tells the solver that the matrix is another one


@kernel
def extract_active(p, n, W_row, W_column, memory):
    """Rows and columns of W that belong to the n active constraints."""
    iwork = memory.iwork
    extract_pattern(p, n, W_row, W_column, iwork)
    for k in range(iwork[p.sub_row + n]):
        memory.work[p.sub_W + k] = memory.work[p.W + iwork[p.sub_place + k]]


@kernel
def transpose_pattern(p, n, iwork):
    """Make of sub_place, for each entry of the active constraints' problem, where the transposed one lies; work: sub_next."""
    for a in range(n):
        iwork[p.sub_next + a] = iwork[p.sub_row + a]
    for a in range(n):
        for k in range(iwork[p.sub_row + a], iwork[p.sub_row + a + 1]):
            b = iwork[p.sub_column + k]
            iwork[p.sub_place + k] = iwork[p.sub_next + b]
            iwork[p.sub_next + b] += 1


@tiny
def state_bounds(a, h, c, p, work):
    """Bounds of the impulse of a constraint, the a-th row of the problem."""
    work[p.lower + a], work[p.upper + a] = -np.inf if c.bilateral else 0.0, np.inf
    if c.lower != ABSENT:
        work[p.lower + a], work[p.upper + a] = h * work[c.lower], h * work[c.upper]


@tiny
def accept(z, unit, c, inputs, touched, memory):
    """lambda of a constraint, and its impulses ``B z``, in mem; the bodies are marked."""
    memory.mem[c.lam] = z / unit if c.level == POSITION else z
    for k in range(c.input, c.input_end):
        memory.mem[inputs[k].q + 2 * inputs[k].n] += memory.work[inputs[k].coefficient] * z
        memory.iwork[touched + inputs[k].body] = 1


@kernel
def _start_from_blows(p, n, row, column, constraints, memory):
    """The problem of ``z - P``, P the impulses of an impact (`nsds.schemes.problem.impact`): ``q + W P``, and the guess. In/out: q, z."""
    work = memory.work
    most = 0.0
    for a in range(n):
        c, size = constraints[memory.iwork[p.active + a]], 0.0
        for k in range(row[a], row[a + 1]):
            blow = constraints[memory.iwork[p.active + column[k]]].blow
            if blow != ABSENT:
                work[p.q + a] += work[p.sub_W + k] * work[blow]
                size += abs(work[p.sub_W + k] * work[blow])
        most = max(most, size)
        if c.blow != ABSENT:
            work[p.z + a] -= work[c.blow]
            work[p.z + a] = max(work[p.z + a], 0.0) if c.component == 0 else work[p.z + a]
    work[p.rounding] += box.rounding_of(most)


@tiny
def _add_blows(p, n, constraints, memory):
    """``z += P``."""
    for a in range(n):
        blow = constraints[memory.iwork[p.active + a]].blow
        memory.work[p.z + a] += memory.work[blow] if blow != ABSENT else 0.0


@inlined
def solve_active(p, blocks, n, h, unit, solver, constraints, inputs, options, memory):
    """Solve the problem of the n active constraints, its matrix sub_W and vector q prepared; the multipliers in mem are the first guess.

    h: impulse of a unit of bounded forces; unit: that of a unit of lambda at position level.
    Out: lambda and the impulses ``p = B z`` in mem, touched bodies. Returns (status, n_iter, residual).
    """
    work, iwork = memory.work, memory.iwork
    active, z = p.active, p.z
    # 1. guess and bounds
    for a in range(n):
        c = constraints[iwork[active + a]]
        work[z + a] = memory.mem[c.lam] * (unit if c.level == POSITION else 1.0)
        state_bounds(a, h, c, p, work)
    row, column = view(iwork, p.sub_row, n + 1), view(iwork, p.sub_column, iwork[p.sub_row + n])
    # 2. laws of multiple impacts: their impulses are subtracted from the problem, and added to its solution
    if p.impact_law != 0:
        _start_from_blows(p, n, row, column, constraints, memory)
    status = solve(p, blocks, n, row, column, p.sub_W, solver, constraints, options, memory)
    if p.impact_law != 0:
        _add_blows(p, n, constraints, memory)
    # 3. friction of linearly dependent constraints as in the last step
    friction.keep_rows(p, n, row, column, constraints, memory)
    # 4. multipliers and impulses into the record
    for a in range(n):
        accept(work[z + a], unit, constraints[iwork[active + a]], inputs, p.touched, memory)
    return status, int(work[p.info]), work[p.info + 1]


@inlined
def solve(p, blocks, n, row, column, W, solver, constraints, options, memory):
    """Hand the problem of the n listed rows to a solver: one with bounds, or, where the system has friction, one of contacts."""
    if blocks[0].d == 0:
        return box.solve(n, row, column, W, p, solver, options.box, options.at_once, memory)
    is_new = memory.iwork[p.isolver] == 0
    memory.iwork[p.isolver] = 1
    return contact.solve(blocks, constraints, n, is_new, solver, options, memory)
