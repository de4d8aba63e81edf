"""Interface of linear event-driven first-order systems for `nsds.analysis.tangent`: in a mode, x' and guards are affine functions of x."""

from nsds._jit import kernel, tiny
from nsds.analysis.tangent import FIELD, GUARD
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


@kernel
def load(x, s, memory):
    """Copies the state into x, followed by the states of the sources."""
    p = s.flow.plan[0]
    for j in range(p.n):
        x[j] = memory.work[p.x + j]


@kernel
def evaluate(what, row, t, x, out, system, memory):
    """x' in the present modes, y of a row, or the unchanged state in place of a reset."""
    work = memory.work
    p = system.tables.flow.plan[0]
    if what == FIELD:
        for a in range(p.n):
            out[a] = work[p.constant + a]
            for b in range(p.n):
                out[a] += work[p.rate + a * p.n + b] * x[b]
    elif what == GUARD:
        out[0] = work[p.y0 + row]
        for j in range(p.n):
            out[0] += work[p.Y + row * p.n + j] * x[j]
    else:
        for a in range(p.n):
            out[a] = x[a]


@kernel
def guard_rate(row, t, x, s, functions, options, memory):
    """Rate of change of y of a row along the motion."""
    work = memory.work
    p, result = s.flow.plan[0], 0.0
    for a in range(p.n):
        rate = work[p.constant + a]
        for b in range(p.n):
            rate += work[p.rate + a * p.n + b] * x[b]
        result += work[p.Y + row * p.n + a] * rate
    return result


@kernel
def set_reset(s, memory):
    """No operation: the state does not jump."""
