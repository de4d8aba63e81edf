"""Event-driven steps of first-order systems in general: nonlinear ones, with operators and sources of time, with normal cones.

A call of `step` ends at an event, with the state before it; the next call begins with the event, and ends with the state after it; then
the motion continues.
"""

import math
import sys

import numpy as np

from nsds._jit import kernel, tiny
from nsds.maths.times import is_later
from nsds.model.control import has_controls
from nsds.model.layout import ABSENT
from nsds.model.records import STEP, T, are_circuits
from nsds.schemes.event_driven import dopri5
from nsds.schemes.event_driven.accumulation import FALLEN, follow_accumulations, forget_accumulations
from nsds.schemes.event_driven.driver import driven
from nsds.schemes.event_driven.event_times import (
    ALWAYS,
    NEVER,
    SUBSTEPS,
    USUAL,
    are_too_many,
    begin_event,
    count_event,
    end_of_interval,
    is_handed_over,
    lengthen,
    next_stop,
    note_length,
    reason,
    wind_up,
)
from nsds.schemes.event_driven.general_flow import LIMITED, begin_flow, move, put_on_outputs, stays
from nsds.schemes.event_driven.general_modes import catch_up, choose_modes, jump, note_direct
from nsds.schemes.event_driven.general_outputs import (
    DIFFERENCES,
    evaluate_output_rates,
    evaluate_outputs,
    evaluate_second_slopes,
    follow_bounds,
    hold,
    linearise,
    set_difference,
)
from nsds.schemes.event_driven.general_tables import Options, Tables, are_plain, place
from nsds.schemes.event_driven.switched_rows import HELD, LOWER, UPPER, changes
from nsds.schemes.event_driven.tables import numbers_of
from nsds.schemes.first_order import newton
from nsds.schemes.first_order.functions import AT_ONCE, blame, evaluate_bounds, set_windows  # noqa: F401
from nsds.schemes.first_order.newton import collect_input, invert_groups
from nsds.schemes.first_order.states import gather, scatter
from nsds.schemes.sides import clamped, open_window
from nsds.status import (
    ACCUMULATION,
    CONVERGED,
    EVENT,
    INFEASIBLE,
    JUMP,
    NON_FINITE,
    SINGULAR_STEP,
    STEP_COLLAPSED,
    TIME_EVENT,
    TIME_STEPPED,
    TOO_MANY_EVENTS,
    advice,
)

EVENT_ROWS = True
_OWNER = "event_driven"
_INTERVALS = 64  # of Euler–Moreau in a row, at most; they reach the next row long before
_NEAR_IT = 1e-11  # relative to the largest w so far: when events follow each other closely, smaller values count as errors
_SOON, _NO_TIME = 1e-9, 2.0**-46  # of the step of finite differences, and of the time: after an event, when equal bounds may differ
_SMALLEST = 5e-324  # y of a row of a circuit at a bound whose y is 0
_REST = 1e-3  # relative to the rate of w at an accumulation: smaller values at its limit are zero
_STIFF = "the motion is stiff: stability, not accuracy, limits its explicit steps; flow='radau' follows it, or nsds.euler_moreau"
_FAST = "an explicit flow follows the fastest part of a circuit, as an amplifier of large gain; flow='auto' moves circuits exactly"


def prepare(records, layout, options, h, method, work, iwork):
    """Tables of the Newton form, which evaluates functions, and those of the motion."""
    # 1. options that do not apply to general systems
    if options["flow"].item() == b"exact":
        raise ValueError(
            f"{_OWNER}: flow='exact' is for linear systems with constant operators and sources, without normal cones; use flow='auto'"
        )
    is_driven = (layout.relations["bounds_function"] != ABSENT).any()
    if is_driven and are_circuits(records):
        raise ValueError(f"{_OWNER}: a circuit with driven switches moves exactly; use flow='auto' or flow='exact', and hybrid as it is")
    # 2. Newton form, then the motion behind it in the same work memory
    set_windows(records, AT_ONCE, AT_ONCE)
    prepared = newton.prepare(records, layout, newton.Options(1.0), method, work, iwork)
    form = prepared.tables
    flow, problem, row, column = place(int(form.plan["n_dofs"][0]), form.constraints, options["flow"].item(), method, work, iwork)
    more, imore = work.array(), iwork.array(np.int64)
    more[:, : prepared.work.shape[1]], imore[:, : prepared.iwork.shape[1]] = prepared.work, prepared.iwork
    # 3. flags: what varies has to be evaluated in each stage
    relations = form.relations
    changes = [(relations[field + "_function"] != ABSENT).any() for field in ("h", "e", "C", "B", "D", "F")]
    flow["varies"], flow["is_affine"] = any(changes), (relations["h_function"] == ABSENT).all()
    flow["is_controlled"], flow["is_circuit"] = has_controls(records), are_circuits(records)
    plain = are_plain(layout, form.constraints)
    imore[:, flow["n_sampled"][0]] = (plain == 0).sum()
    numbers = numbers_of(options)
    # 4. without declared times, frequent events may be an undeclared jump of a function: no hand-over, which would hide it
    may_jump = is_driven or any(changes)
    if may_jump and numbers["hybrid"] == USUAL:
        numbers["hybrid"] = float(NEVER)
    tables = Tables(form, flow, problem, plain, row, column, np.sort(options["time_events"]))
    return prepared._replace(tables=tables, options=Options(h, **numbers), work=more, iwork=imore, stepper=sys.modules[__name__])


def cause_of(records, prepared, m, status):
    """Reason for a failure of member m, as text; empty if the status says all."""
    if status == STEP_COLLAPSED and are_circuits(records):
        return f"{advice(status)}: {_FAST}"
    if status == STEP_COLLAPSED:
        is_limited = prepared.iwork[m, prepared.tables.flow["n_limited"][0]] >= LIMITED
        return f"{_fastest_part(prepared, m)}: {_STIFF if is_limited else advice(status)}"
    if status != TOO_MANY_EVENTS or not prepared.layout.relation_names:
        return ""
    c = prepared.tables.newton.constraints[prepared.iwork[m, prepared.tables.flow["culprit"][0]]]
    relations = prepared.layout.relations
    owner = int(np.argmax((relations["h"] <= c["h"]) & (c["h"] < relations["h"] + relations["m"]))) if c["h"] != ABSENT else 0
    return f"interaction '{prepared.layout.relation_names[owner]}': {advice(status)}"


def _fastest_part(prepared, m):
    """The part whose states change fastest between the last two stages of an explicit step, as text."""
    elements, f = prepared.tables.newton.elements, prepared.tables.flow[0]
    n, work = int(f["n"]), prepared.work[m]
    rates = work[f["k"] : f["k"] + dopri5.STAGES * n].reshape(-1, n)
    sizes = np.maximum(work[f["x_size"] : f["x_size"] + n], dopri5.TINY)
    state = int(np.argmax(abs(rates[dopri5.LAST] - rates[dopri5.LAST - 1]) / sizes))
    owner = elements["part"][np.argmax(np.where(elements["dof"] <= state, elements["dof"], -1))]
    return f"part '{prepared.layout.part_names[owner]}'"


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: outputs of the state; its modes are determined when the first step begins."""
    work, iwork = memory.work, memory.iwork
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    # 1. modes by the bounds; they are chosen again at the first event, at the start
    gather(form.parts, form.elements, f.x, 0, memory)
    if p.driven != 0:
        evaluate_bounds(t, form.relations, form.constraints, p, functions, memory)
    for i in range(f.m):
        low, high = work[p.lower + i] > -np.inf, work[p.upper + i] < np.inf
        iwork[f.mode + i] = LOWER if low else UPPER if high else HELD
        iwork[f.fired + i] = iwork[f.zero + i] = 0
        work[f.y_size + i], work[f.still + i] = 0.0, 0.0
        work[f.lam_size + i] = max(abs(work[p.lower + i]) if low else 0.0, abs(work[p.upper + i]) if high else 0.0)
    # 2. scales, and no history of events
    for j in range(f.n):
        work[f.x_size + j], work[f.xdot_size + j] = abs(work[f.x + j]), 0.0
    forget_accumulations(f, memory)
    work[f.step], work[f.error], work[f.event], iwork[s.problem[0].open] = 0.0, 1.0, -np.inf, -1
    wind_up(t, options.h, s.times, f, memory)
    open_window(t, options.h, s.times, f, memory)
    set_difference(1e-3 * options.h, f, work)
    # 3. operators and outputs
    if not invert_groups(0.0, 0.0, form, p, memory):
        return SINGULAR_STEP
    at = clamped(t, f, work)
    evaluate_outputs(at, f.x, s, functions, memory)
    linearise(at, s, functions, memory)
    note_direct(f, memory)
    for i in range(f.m):
        c = form.constraints[i]
        if memory.imem[STEP] == 0 and c.y != ABSENT:
            memory.mem[c.y] = work[c.h]
    return CONVERGED


@tiny
def _goes_on(status, options, s, iwork):
    """Whether time stepping goes on after this status; usually not where steps are too short: some source jumps, or grows without end."""
    is_usual = is_handed_over(status) or status == INFEASIBLE
    return options.hybrid != NEVER and (options.hybrid == ALWAYS or status != STEP_COLLAPSED) and is_usual


@kernel
def _settle(t, s, calls, options, memory):
    """Event at t. Returns (CONVERGED, EVENT with bits), or a status that ends the run; 0 in place of bits if nothing changes visibly."""
    work, iwork = memory.work, memory.iwork
    f = s.flow[0]
    begin_flow(f, memory)
    # 1. known times, and the end of an accumulation
    is_start, bits = begin_event(t, options.h, s.times, f, memory)
    if (bits & TIME_EVENT) != 0:
        work[f.step] = 0.0
        open_window(t, options.h, s.times, f, memory)
    iwork[f.fresh], iwork[f.frozen] = 1, 1 if work[f.tail] > -np.inf else 0
    # 2. counts, and accumulations that begin
    if not is_start:
        count_event(t, options.h, f, memory)
        if iwork[f.frozen] == 0 and (bits & ACCUMULATION) == 0:
            _sum_accumulations(t, s, calls.functions, options, memory)
            if iwork[f.frozen] == 0 and _comes_to_rest(clamped(t, f, work), s, calls.functions, options, memory):
                bits |= ACCUMULATION
    if are_too_many(t, options, f, memory):
        return TOO_MANY_EVENTS, 0
    # 3. frozen until the end of an accumulation
    if iwork[f.frozen] != 0:
        return CONVERGED, EVENT | bits
    # 4. jump and modes; at the start nothing is shown but a jump
    status, found = _switch(t, is_start or (bits & TIME_EVENT) != 0, s, calls, memory)
    if status != CONVERGED:
        return status, 0
    status = _update(t, s, calls.functions, options, memory)
    is_shown = not is_start or f.is_circuit != 0 or (found & JUMP) != 0
    return status, EVENT | bits | found if is_shown else 0


@kernel
def _hand_over(t_new, why, s, calls, options, memory):
    """From the state in mem on, by steps of Euler–Moreau, until modes are found; why: the status that is the reason.

    Returns EVENT with bits, or a status that ends the run, as if no modes are found at the next row, or known time.
    """
    work, iwork = memory.work, memory.iwork
    f, t, status, bits = s.flow[0], memory.mem[T], why, 0
    # 1. from the state in mem to the next known time
    work[f.tail], iwork[f.frozen] = -np.inf, 0
    until = next_stop(t, t_new, options.h, s.times, f, memory)
    note_length(t, why, options.h, f, work)
    gather(s.newton.parts, s.newton.elements, f.x, 0, memory)
    # 2. intervals of increasing length, until modes are found at the end of one
    for _ in range(_INTERVALS):
        end = end_of_interval(t, until, f, work)
        h = (end - t) / SUBSTEPS
        for k in range(SUBSTEPS if end > t else 0):
            status = catch_up(clamped(t + k * h, f, work), h, s, calls, memory)
            if status != CONVERGED:
                return status
        # no history: the motion restarts there
        t = memory.mem[T] = work[f.handed_to] = end
        iwork[f.n_events], iwork[f.n_still], iwork[f.n_steps], iwork[f.fresh], work[f.mark] = 0, 0, 0, 1, end
        work[f.step], work[f.error] = 0.0, 1.0
        begin_flow(f, memory)
        forget_accumulations(f, memory)
        for i in range(f.m):
            iwork[f.fired + i] = 0
        status, bits = _switch(t, True, s, calls, memory)
        if not is_handed_over(status) or t >= until:
            break
        lengthen(t, True, options.h, f, work)
    if status == CONVERGED:
        status = _update(t, s, calls.functions, options, memory)
    return status if status != CONVERGED else EVENT | TIME_STEPPED | reason(why) | bits


@kernel
def _sum_accumulations(t, s, functions, options, memory):
    """Follow accumulations; where one ends, note which rates of w are zero at its limit."""
    work, iwork = memory.work, memory.iwork
    f, at = s.flow[0], clamped(t, s.flow[0], work)
    hold(at, f.x, s, functions, memory)
    linearise(at, s, functions, memory)
    evaluate_output_rates(at, f.x, s, functions, memory)
    for i in range(f.m):
        is_near = iwork[f.fired + i] == 0 and iwork[f.mode + i] != HELD and abs(work[f.w + i]) <= _NEAR_IT * work[f.y_size + i]
        iwork[f.near + i] = 1 if is_near and iwork[f.direct + i] == 0 else 0
    follow_accumulations(t, options.accumulation, f, memory)
    for i in range(f.m):
        work[f.still + i] = _REST * abs(work[f.wt + i]) if iwork[f.frozen] != 0 and iwork[f.fired + i] != 0 else 0.0


@kernel
def _comes_to_rest(t, s, functions, options, memory):
    """Stop w of a row whose events have come so close that w stays within the error of the steps; whether there is one.

    Its events would be those of this error, for ever, as of a super-twisting observer, whose w is a difference of large states.
    Where lambda is not in w' but in w'', a short impulse of lambda stops it. In: `_sum_accumulations`, whose flights have fallen.
    """
    work, iwork = memory.work, memory.iwork
    f = s.flow[0]
    for i in range(f.m):
        if iwork[f.fired + i] != 0 and iwork[f.direct + i] == 0 and iwork[f.mode + i] != HELD and _is_beneath(i, s, options, work, iwork):
            # differences over the time between its events: over much less their rounding counts
            set_difference(DIFFERENCES * work[f.flight + 3 * i + iwork[f.mode + i]], f, work)
            evaluate_second_slopes(t, f.x, s, functions, memory)
            rate, slope, is_small = work[f.wt + i], work[f.second + i * f.m + i], True
            for a in range(f.n):
                is_small &= abs(rate * work[f.MB + i * f.n + a]) <= math.sqrt(options.rtol) * work[f.x_size + a] * abs(slope)
            if is_small and slope != 0.0:
                for a in range(f.n):
                    work[f.x + a] -= rate / slope * work[f.MB + i * f.n + a]
                work[f.still + i], iwork[f.culprit] = abs(rate), i
                return True
    return False


@tiny
def _is_beneath(i, s, options, work, iwork):
    """Whether w of a row, whose rate depends on no lambda, stays beneath the error of its terms, after flights that fell."""
    f, c, terms, depends = s.flow[0], s.newton.constraints[i], 0.0, False
    rate, flight = abs(work[f.wt + i]), 3 * i + iwork[f.mode + i]
    for k in range(c.entry, c.entry_end):
        terms += abs(work[s.newton.entries[k].coefficient] * work[f.x + s.newton.entries[k].dof])
    for j in range(f.m):
        depends |= abs(work[f.CMB + i * f.m + j]) * work[f.lam_size + j] > rate
    cycle = work[f.flight + flight]
    return 0.0 < cycle <= FALLEN * work[f.longest + flight] and rate * cycle <= options.rtol * terms and not depends


@kernel
def _switch(t, may_jump, s, calls, memory):
    """Project x onto rows that came to zero, and choose the modes after that. Returns (status, bits of what changed)."""
    work, iwork = memory.work, memory.iwork
    # 1. state; bounds a moment later, so that a switch that has just changed has its new ones
    f, p, constraints, bits = s.flow[0], s.newton.plan[0], s.newton.constraints, 0
    at = clamped(t, f, work)
    if not may_jump:  # an accumulation has moved the state
        put_on_outputs(t, s, calls.functions, memory)
    for i in range(f.m):
        iwork[f.before + i] = iwork[f.mode + i]
    follow_bounds(clamped(t + max(_SOON * work[f.delta], _NO_TIME * abs(t)), f, work), s, calls.functions, memory)
    # 2. jump of an inconsistent state, then modes
    status = CONVERGED
    if f.m > 0:
        status, has_jumped = jump(at, s, calls, memory)
        bits = JUMP if has_jumped else 0
        if status == CONVERGED:
            is_new = may_jump or has_jumped
            status = choose_modes(at, is_new, s, calls, memory)
    # 3. multipliers of rows at bounds, and bits
    for i in range(f.m):
        if iwork[f.mode + i] != HELD:
            memory.mem[constraints[i].lam] = work[p.lower + i] if iwork[f.mode + i] == LOWER else work[p.upper + i]
    return status, bits | changes(f, iwork)


@kernel
def _update(t, s, functions, options, memory):
    """x, y, lambda and r at the state into mem. Returns a status."""
    mem, work = memory.mem, memory.work
    form, f, zero = s.newton, s.flow[0], 0.0
    # multipliers at the state, then x, y, lambda and r; 0 times each finds NaN and infinity
    status = hold(clamped(t, f, work), f.x, s, functions, memory)
    scatter(form.parts, form.elements, f.x, 0, memory)
    for a in range(f.n):
        zero += 0.0 * work[f.x + a]
    for i in range(f.m):
        c = form.constraints[i]
        if c.y != ABSENT:
            mode, y = memory.iwork[f.mode + i], work[c.h]
            if f.is_circuit != 0 and y == 0.0 and mode != HELD:  # 0 is for an active constraint
                y = _SMALLEST if mode == LOWER else -_SMALLEST
            mem[c.y] = 0.0 if mode == HELD and c.coupling == c.coupling_end else y
            zero += 0.0 * mem[c.y] + 0.0 * mem[c.lam]
    zero += collect_input(form.parts, form.elements, form.relations, memory)
    return status if zero == 0.0 else NON_FINITE


@kernel
def _advance(t, until, s, functions, options, memory):
    """One step of the motion, none where it is frozen or where no time is left. See `nsds.schemes.event_driven.driver`."""
    f, is_now = s.flow[0], until <= t
    # too close to tell from t: passed if no guard is negative there
    if not is_now and memory.iwork[f.n_still] == 0 and not is_later(until, t, options.h):
        is_now = stays(until, s, functions, memory)
    if memory.iwork[f.frozen] != 0 or is_now:
        return CONVERGED, until, False, 0
    status, t, is_event = move(t, until, s, functions, options, memory)
    return status, t, is_event, memory.iwork[f.effort]


step = driven(
    "general",
    settle=_settle,
    advance=_advance,
    update=_update,
    goes_on=_goes_on,
    hand_over=_hand_over,
)
