"""The constraints that take part in a step, and their rows and columns of W: inactive ones cost nothing."""

from nsds._jit import inlined, kernel
from nsds.model.layout import ABSENT
from nsds.schemes.lagrangian.tables import PLAIN, SLIP

_TOUCHING = 1e-300  # a first lambda that only says "pressing"


@inlined
def choose_active(p, constraints, horizon, h, mem, imem, work, iwork):
    """Index set I_1 ([EventCapturing]): what is always active, and constraints of contacts whose forecast ``y + horizon ydot`` is closed.

    A positive forecast is closed where it is so up to rounding, `gap_slack`, and the contact neither opens nor closes: what moves is told
    by its sign.
    Writes the active flags, the list p.active, and p.local (place in the list). Inactive multipliers are set to 0, those of new
    contacts to a guess that only says "pressing", by which a whole column that lands is solved at once.
    Returns the number of active constraints, negative (-1 - n) when the set differs from that of the last call.
    """
    n = 0
    changed = False
    local, active = p.local, p.active
    for i in range(constraints.size):
        c = constraints[i]
        forecast = mem[c.gap] + horizon * mem[c.gap_rate]
        if c.always or forecast <= 0.0 or max(forecast, h * abs(mem[c.gap_rate])) <= work[c.closed]:
            changed |= iwork[local + i] != n
            iwork[local + i] = n
            iwork[active + n] = i
            n += 1
            if c.role != SLIP:
                if imem[c.active] == 0 and c.role == PLAIN:
                    mem[c.lam] = _TOUCHING
                imem[c.active] = 1
        elif iwork[local + i] != ABSENT:
            changed = True
            iwork[local + i] = ABSENT
            if c.role != SLIP:
                imem[c.active] = 0
                mem[c.lam] = 0.0
    return -1 - n if changed else n


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
def extract_active(p, n, W_row, W_column, work, iwork):
    """Rows and columns of W that belong to the n active constraints."""
    extract_pattern(p, n, W_row, W_column, iwork)
    for k in range(iwork[p.sub_row + n]):
        work[p.sub_W + k] = work[p.W + iwork[p.sub_place + k]]


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
