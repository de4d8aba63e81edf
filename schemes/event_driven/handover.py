"""Hand-over of an interval that cannot be followed by events to time stepping: Moreau's midpoint rule, explicit in the forces,

    q_m = q + h/2 v,      M(q_m) (v+ - v) = h F(t_m, q_m, v) + H^T P,      q+ = q_m + h/2 v+,
    0 <= H v+ + e H v  ⟂  P >= 0      of the contacts whose gap at q_m is closed, with friction and laws of impacts as at an event.

Forces do no work in it beyond ``F (q+ - q)``. Contacts at rest at its end close, and the motion continues by events. Intervals are short,
and longer if one follows soon after another (`nsds.schemes.event_driven.event_times.note_length`).
"""

import numpy as np

from nsds._jit import kernel
from nsds.schemes.event_driven.compliance import choose
from nsds.schemes.event_driven.event_times import AT_START, SUBSTEPS, end_of_interval, is_handed_over, lengthen, note_length, strikes
from nsds.schemes.event_driven.events import find_touching, handle
from nsds.schemes.event_driven.flows import put_on_gaps, take_over_contacts
from nsds.schemes.event_driven.forces import accelerate, evaluate_operators, free_accelerations, list_rows
from nsds.schemes.event_driven.impacts import is_solved, solve_impact
from nsds.schemes.event_driven.state import add, load, store
from nsds.schemes.event_driven.time_dependent_forces import forget_jumps
from nsds.schemes.lagrangian.outputs import keep_state
from nsds.schemes.lagrangian.relations import EVERY
from nsds.schemes.mechanics.tables import FREE, HELD
from nsds.schemes.sides import open_window
from nsds.status import CONVERGED, NON_FINITE, TIME_EVENT

_INTERVALS = 64  # in a row, at most; they reach the next row long before


@kernel
def begin_anew(t, s, memory):
    """At t all contacts are open, and neither flights nor events have been."""
    work, iwork = memory.work, memory.iwork
    f, constraints = s.flow[0], s.newton.constraints
    for i in range(constraints.size):
        iwork[f.mode + i] = HELD if constraints[i].bilateral != 0 else FREE
        iwork[f.zeros + i] = iwork[f.fired + i] = iwork[f.run + i] = 0
        work[f.flight + i] = work[f.flight_before + i] = 0.0
        work[f.last + i] = t
    work[f.step], work[f.error], work[f.tail], work[f.mark] = 0.0, 1.0, -np.inf, t
    iwork[f.n_steps] = iwork[f.n_events] = iwork[f.n_still] = iwork[f.pending] = 0
    iwork[f.fresh] = 1
    forget_jumps(f, memory)


@kernel
def hand_over(t, until, why, s, calls, options, memory):
    """From the state in mem on, by steps in time, until modes are found, or to the time until; why: the status that is the reason.

    Returns (status, bits of what happened at the end, time there, length of a step). That is 0 if modes were found; else impulses of the
    last step are in p.total, and the end is pending.
    """
    work = memory.work
    f, h = s.flow[0], 0.0
    work[f.tail] = -np.inf
    note_length(t, why, options.h, f, work)
    # 1. intervals of increasing length
    for _ in range(_INTERVALS):
        end, bits = end_of_interval(t, until, f, work), 0
        h = (end - t) / SUBSTEPS
        begin_anew(end, s, memory)
        for k in range(SUBSTEPS if end > t else 0):
            status = _step(t + (k + 0.5) * h, h, s, calls, options, memory)
            if not is_solved(status):
                return status, 0, t, h
        t = work[f.handed_to] = end
        # 2. known time at the end
        if strikes(t, options.h, s.times, f, memory.iwork):
            bits = TIME_EVENT
            open_window(t, options.h, s.times, f, memory)
        # 3. state on the closed contacts, and modes there
        _put_on_contacts(t, h, s, calls.functions, options, memory)
        load(s, memory, f.x)
        status, found = handle(t, False, s, calls, options, memory)
        if is_solved(status):
            status = accelerate(t, s, calls.functions, options, memory)
        if not is_handed_over(status):
            return status, bits | found, t, 0.0
        store(s, memory, f.x)
        lengthen(t, True, options.h, f, work)
        if t >= until:
            break
    # 4. no modes up to `until`: one more step, whose impulses are recorded there
    begin_anew(t, s, memory)
    list_rows(s, memory)
    memory.iwork[f.pending] = AT_START
    status = _step(t, h, s, calls, options, memory)
    store(s, memory, f.x)
    return status, bits, t, h


@kernel
def _step(t, h, s, calls, options, memory):
    """One step of length h, whose middle is t. Returns a status."""
    functions = calls.functions
    _drift(0.5 * h, s, memory)
    status = free_accelerations(t, s, functions, options, memory)
    if status != CONVERGED:
        return status
    take_over_contacts(t, s, functions, memory)
    evaluate_operators(t, EVERY, s, functions, options, memory)
    if s.flow[0].is_compliant != 0 and choose(t, s, functions, options, memory):
        status = free_accelerations(t, s, functions, options, memory)
        if status != CONVERGED:
            return status
    find_touching(s, memory)
    status, _, _ = solve_impact(t, h, s, calls, options, memory)
    return status if _drift(0.5 * h, s, memory) == 0.0 else NON_FINITE


@kernel
def _put_on_contacts(t, h, s, functions, options, memory):
    """Project the positions onto closed gaps, and those that this closes, after steps of length h. Out: fired, 1 of these."""
    f, constraints, n, n_before = s.flow[0], s.newton.constraints, 0, -1
    take_over_contacts(t, s, functions, memory)
    while n > n_before:
        n, n_before = 0, n
        evaluate_operators(t, EVERY, s, functions, options, memory)
        find_touching(s, memory)
        for i in range(constraints.size):
            touches = constraints[i].component == 0 and constraints[i].always == 0 and memory.iwork[f.keep + i] != 0
            memory.iwork[f.fired + i] = 1 if touches else 0
            n += 1 if touches else 0
        list_rows(s, memory)
        if n > n_before:
            put_on_gaps(t, h, s, functions, options, memory)


@kernel
def _drift(h, s, memory):
    """``q += h v``. Returns 0, or NaN where velocities are not finite."""
    work = memory.work
    form, p, zero = s.newton, s.newton.plan[0], 0.0
    keep_state(form.parts, form.elements, p.q_old, p.v_old, memory)
    for i in range(p.n_dofs):
        work[p.dv + i] = h * work[p.v_old + i]
        zero += 0.0 * work[p.dv + i]
    add(s, memory, p.dv, False)
    return zero
