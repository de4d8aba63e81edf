"""Interface of linear event-driven first-order systems for `nsds.analysis.tangent`: in a mode, x' and guards are affine functions of x."""

from nsds._jit import kernel, tiny
from nsds.analysis.tangent import ALONG_LAMBDA, FIELD, GUARD, OFF_SURFACE
from nsds.schemes.event_driven.linear_modes import along_lambda, off_surface
from nsds.schemes.event_driven.linear_modes import n_surfaces as count_surfaces
from nsds.schemes.event_driven.switched_rows import HELD


@tiny
def is_linear(s):
    """True: the motion between events is linear."""
    return True


@tiny
def n_guards(s):
    """Number of rows with guards."""
    return s.flow.plan[0].m


@tiny
def crosses(i, s, iwork):
    """Whether y of an open row has crossed zero; where lambda of a closed one reaches a bound the motion stays smooth."""
    p = s.flow.plan[0]
    return iwork[p.fired + i] != 0 and iwork[p.mode + i] != HELD


@tiny
def n_surfaces(t, x, s, functions, options, memory):
    """(Number of surfaces on which lambda keeps the motion, 0 of them by second derivatives)."""
    return count_surfaces(s.flow.plan[0], memory), 0


@kernel
def load(x, s, memory):
    """Copies the state into x, followed by the states of the sources."""
    p = s.flow.plan[0]
    for j in range(p.n):
        x[j] = memory.work[p.x + j]


@kernel
def evaluate(what, row, t, x, out, system, memory):
    """x' in the present modes, y of a row, the unchanged state in place of a reset; how far off surfaces x is, or B there."""
    work, iwork = memory.work, memory.iwork
    p = system.tables.flow.plan[0]
    if what == FIELD:
        for a in range(p.n):
            out[a] = _rate(a, x, p, memory)
    elif what == GUARD:
        out[0] = work[p.y0 + row]
        for k in range(iwork[p.wide + row]):
            out[0] += work[p.Y + iwork[p.at + row] + k] * x[iwork[iwork[p.reads + row] + k]]
    elif what == OFF_SURFACE:
        for k in range(min(count_surfaces(p, memory) - row, p.n)):
            out[k] = off_surface(row + k, x, p, memory)
    elif what == ALONG_LAMBDA:
        along_lambda(row, out, p, memory)
    else:
        for a in range(p.n):
            out[a] = x[a]


@kernel
def guard_rate(row, t, x, s, functions, options, memory):
    """Rate of change of y of a row along the motion."""
    work, iwork = memory.work, memory.iwork
    p, result = s.flow.plan[0], 0.0
    for k in range(iwork[p.wide + row]):
        result += work[p.Y + iwork[p.at + row] + k] * _rate(iwork[iwork[p.reads + row] + k], x, p, memory)
    return result


@tiny
def _rate(a, x, p, memory):
    """x'_a in the present modes."""
    rate = memory.work[p.constant + a]
    for k in range(memory.iwork[p.rate_row + a], memory.iwork[p.rate_end + a]):
        rate += memory.work[p.rate + k] * x[memory.iwork[p.rate_column + k]]
    return rate


@kernel
def set_reset(s, memory):
    """No operation: the state does not jump."""
