"""Event-driven linear first-order systems, as `nsds.analysis.tangent` sees them: in a mode x' and guards are affine functions of x."""

from nsds._jit import kernel, tiny
from nsds.analysis.tangent import FIELD, GUARD
from nsds.schemes.event_driven.modes import HELD


@tiny
def is_linear(s):
    """Always."""
    return True


@tiny
def n_guards(s):
    """Rows that have guards."""
    return s.flow.plan[0].m


@tiny
def crosses(i, s, iwork):
    """Whether y of a row that is not held has come to zero; where lambda of one that is held comes to a bound motions go on smoothly."""
    p = s.flow.plan[0]
    return iwork[p.fired + i] != 0 and iwork[p.mode + i] != HELD


@kernel
def load(x, s, memory):
    """The state into x, behind it those of sources."""
    p = s.flow.plan[0]
    for j in range(p.n):
        x[j] = memory.work[p.x + j]


@kernel
def evaluate(what, row, t, x, out, s, functions, options, memory):
    """x' in the present modes, or y of a row; the state as it is in place of a reset."""
    work = memory.work
    p = s.flow.plan[0]
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
    """How fast y of a row changes along the motion."""
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
    """Nothing: the state does not jump."""
