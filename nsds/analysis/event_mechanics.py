"""Interface of event-driven Lagrangian systems for `nsds.analysis.tangent`: accelerations in the present modes, guards, impacts."""

from nsds._jit import kernel, tiny
from nsds.analysis.tangent import ALONG_LAMBDA, FIELD, GUARD, OFF_SURFACE, ROUNDED
from nsds.model.layout import ABSENT
from nsds.schemes.event_driven.compliance import is_compliant
from nsds.schemes.event_driven.forces import (
    accelerate,
    evaluate_operators,
    factorise,
    free_accelerations,
    list_rows,
    push,
    push_alone,
    solve_rows,
)
from nsds.schemes.event_driven.state import load as load_state
from nsds.schemes.event_driven.state import store
from nsds.schemes.lagrangian.outputs import position, velocity
from nsds.schemes.lagrangian.relations import EVERY
from nsds.schemes.mechanics.tables import FREE, HELD, SLIP
from nsds.schemes.problem.disks import first_of_disk
from nsds.schemes.problem.rows import VELOCITY

_FULL = 1.0 - 1e-9  # fraction of the friction limit from which a contact slips; a sticking one has less


@tiny
def is_linear(s):
    """Whether all matrices are constant."""
    return s.flow[0].is_linear != 0


@tiny
def n_guards(s):
    """Number of rows with guards."""
    return s.newton.constraints.size


@tiny
def crosses(i, s, iwork):
    """Whether a gap, or a speed of slip, has crossed zero: at all other events the motion stays smooth."""
    f, c = s.flow[0], s.newton.constraints[i]
    is_gap = iwork[f.mode + i] == FREE and c.component == 0 and c.lower == ABSENT and not is_compliant(c)
    return iwork[f.fired + i] != 0 and (is_gap or iwork[f.mode + i] == SLIP)


@tiny
def n_surfaces(t, x, s, functions, options, memory):
    """(Number of surfaces on which forces keep the motion: gaps, and then velocities of HELD rows; how many of them are gaps)."""
    n_gaps = 0
    for e in range(memory.iwork[s.flow[0].n_equations]):
        n_gaps += 1 if _has_gap(e, s, memory.iwork) else 0
    return n_gaps + memory.iwork[s.flow[0].n_equations], n_gaps


@tiny
def _has_gap(e, s, iwork):
    """Whether a HELD row keeps a position, a gap or a joint, and not a velocity alone."""
    c = s.newton.constraints[iwork[s.newton.plan[0].active + iwork[s.flow[0].row + e]]]
    return c.level == VELOCITY and c.component == 0 and c.lower == ABSENT


@tiny
def _row_of(surface, s, iwork):
    """HELD row of a surface."""
    n_gaps = 0
    for e in range(iwork[s.flow[0].n_equations]):
        if _has_gap(e, s, iwork):
            if n_gaps == surface:
                return e
            n_gaps += 1
    return surface - n_gaps


@kernel
def _measure_surfaces(first, most, out, s, memory):
    """Gaps and velocities of surfaces from the first on, at most so many."""
    f, k = s.flow[0], 0
    for of_velocities in range(2):
        for e in range(memory.iwork[f.n_equations]):
            c = s.newton.constraints[memory.iwork[s.newton.plan[0].active + memory.iwork[f.row + e]]]
            if of_velocities == 0 and not _has_gap(e, s, memory.iwork):
                continue
            if 0 <= k - first < most:
                u, _ = velocity(c, s.newton.entries, memory)
                out[k - first] = u if of_velocities == 1 else position(c, s.newton.entries, memory)
            k += 1


@kernel
def load(x, s, memory):
    """Copies the state (q, v) into x."""
    f = s.flow[0]
    load_state(s, memory, f.x_sampled)
    for i in range(f.n):
        x[i] = memory.work[f.x_sampled + i]


@kernel
def _put(x, s, memory):
    """Sets the state to x."""
    f = s.flow[0]
    for i in range(f.n):
        memory.work[f.x_sampled + i] = x[i]
    store(s, memory, f.x_sampled)


@kernel
def evaluate(what, row, t, x, out, system, memory):
    """``(v, a)`` in the present modes, the guard of a row, or the state after an impact of the rows that are HELD or SLIP.

    Of surfaces from one on the gaps and velocities that are 0 there, and of one along what its force acts.
    """
    s, functions, options = system.tables, system.functions, system.options
    work, iwork = memory.work, memory.iwork
    f, p, n = s.flow[0], s.newton.plan[0], s.flow[0].n // 2
    _put(x, s, memory)
    # 1. vector field: accelerations of the active constraints
    if what == FIELD:
        accelerate(t, s, functions, options, memory)
        for i in range(n):
            # forces of constraints cancel all digits: rounding has no derivatives
            acc = work[p.acc + i]
            out[i], out[n + i] = x[n + i], acc if abs(acc) > ROUNDED * work[f.acc_size + i] else 0.0
        return
    evaluate_operators(t, EVERY, s, functions, options, memory)
    # 2. guard: the gap, or the speed of slip
    if what == GUARD:
        c = s.newton.constraints[row]
        out[0] = position(c, s.newton.entries, memory)
        if iwork[f.mode + row] == SLIP:
            out[0], _ = velocity(c, s.newton.entries, memory)
        return
    # 3. surfaces
    if what == OFF_SURFACE:
        _measure_surfaces(row, f.n, out, s, memory)
        return
    free_accelerations(t, s, functions, options, memory)
    if what == ALONG_LAMBDA:
        push_alone(_row_of(row, s, iwork), p.dv, s, memory)
        for i in range(n):
            out[i], out[n + i] = 0.0, work[p.dv + i]
        return
    # 4. reset: velocities after the impact, H v+ = -e H v- for rows that rebound and 0 for the others
    factorise(s, memory)
    for e in range(iwork[f.n_equations]):
        i = iwork[p.active + iwork[f.row + e]]
        u, _ = velocity(s.newton.constraints[i], s.newton.entries, memory)
        work[f.rhs + e] = u + (work[s.newton.constraints[i].e] * u if work[f.opening + i] != 0.0 else 0.0)
    solve_rows(s, memory)
    for i in range(n):
        work[p.dv + i] = 0.0
    push(p.dv, s, memory)
    for i in range(n):
        out[i], out[n + i] = x[i], x[n + i] + work[p.dv + i]


@kernel
def guard_rate(row, t, x, s, functions, options, memory):
    """Rate of change of the guard of a row along the motion: velocity of a gap, or ``H a + curvature``; call after `evaluate` of FIELD."""
    work = memory.work
    f, p, c = s.flow[0], s.newton.plan[0], s.newton.constraints[row]
    if memory.iwork[f.mode + row] == FREE:
        evaluate_operators(t, EVERY, s, functions, options, memory)
        rate, _ = velocity(c, s.newton.entries, memory)
        return rate
    rate = 0.0 if c.curvature == ABSENT else work[c.curvature]
    for k in range(c.entry, c.entry_end):
        rate += work[s.newton.entries[k].coefficient] * work[p.acc + s.newton.entries[k].dof]
    return rate


@kernel
def set_reset(s, memory):
    """Modes that describe the impact with the impulses work[p.total:]: HELD for rows that close or stick, SLIP for slipping ones.

    work[opening:] is 1 for rows that rebound with e; closing contacts come to rest.
    """
    work, iwork = memory.work, memory.iwork
    f, p, normal = s.flow[0], s.newton.plan[0], 0
    for i in range(s.newton.constraints.size):
        c, impulse, is_closed = s.newton.constraints[i], work[p.total + i], iwork[f.mode + i] == HELD
        acts = impulse != 0.0 and c.lower == ABSENT
        work[f.opening + i] = 0.0 if is_closed or c.e == ABSENT or c.rebound != ABSENT else 1.0
        iwork[f.mode + i] = HELD if acts or c.bilateral != 0 else FREE
        # friction: a disk of tangential rows slips where its impulse is at the limit of the normal one before it
        if c.component == 0:
            normal = i
        elif acts:
            size = 0.0
            for k in range(first_of_disk(i, c), first_of_disk(i, c) + c.tangents):
                size += work[p.total + k] ** 2
            if size**0.5 >= _FULL * work[c.mu] * work[p.total + normal]:
                iwork[f.mode + i], work[f.direction + i] = SLIP, -impulse / size**0.5
    list_rows(s, memory)
