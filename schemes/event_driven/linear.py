"""Event-driven steps of linear first-order systems with constant operators: from one row to the next, or to the next event.

A call of `step` ends at an event, with the state before it; the next call begins with the event, and ends with the state after it; then
the motion continues.
"""

import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference, kernel, tiny
from nsds.maths.times import ROUNDED, is_later
from nsds.model.control import has_controls
from nsds.model.layout import ABSENT
from nsds.model.records import STEP, are_circuits
from nsds.schemes.event_driven import general
from nsds.schemes.event_driven.accumulation import follow_accumulations, forget_accumulations
from nsds.schemes.event_driven.circuit_sources import cause_in_circuit, drive, set_sources
from nsds.schemes.event_driven.driver import driven
from nsds.schemes.event_driven.event_times import (
    ALWAYS,
    AT_START,
    MOST_STILL,
    are_too_many,
    at_row,
    begin_event,
    count_event,
    next_stop,
    wind_up,
)
from nsds.schemes.event_driven.linear_modes import (
    LEAVES,
    PLAN,
    Flow,
    along,
    broken_row,
    choose_modes,
    component,
    forget_moving,
    hidden_row,
    jump,
    move,
    multiplier,
    note_near,
    note_size,
    number_of_entries,
    of_D,
    output,
    place_arrays,
    put_on_outputs,
    solve_modes,
    take_back,
    value_of,
)
from nsds.schemes.event_driven.linear_operators import components_of, look_ahead, of_member, rate_entries, store_operators
from nsds.schemes.event_driven.switched_rows import HELD, LOWER, UPPER, changes
from nsds.schemes.first_order.functions import blame  # noqa: F401
from nsds.schemes.first_order.relative_degree import require_low_degree
from nsds.schemes.first_order.states import elements_of, gather, gather_sources, scatter
from nsds.schemes.first_order.tables import is_constant, layout_of
from nsds.schemes.memory import Allocator, Prepared, require_affordable
from nsds.schemes.problem.branches import place_branches
from nsds.schemes.problem.tables import Unknowns, place_problem
from nsds.status import (
    ACCUMULATION,
    CONVERGED,
    EVENT,
    IMPULSE,
    INEXACT,
    INFEASIBLE,
    JUMP,
    NON_FINITE,
    STEP_COLLAPSED,
    TIME_EVENT,
    TOO_MANY_EVENTS,
    VIOLATED,
    advice,
)

EVENT_ROWS = True
_OWNER = "event_driven"
_VIOLATED = 1e-9  # relative to the terms of y
_OFF = 1e-10  # relative to the terms of y: held rows deviate by more only after a step of a source or a switch
_SMALLEST = 5e-324
_INSTEAD = "nsds.euler_moreau keeps them sparse where A, C, B and D are stated so"
_BELOW_ZERO = (
    "y is negative, and no lambda makes it 0, which changes its derivatives alone: the state would have to jump, and no jump along B "
    "was found; begin where y is not negative"
)


@by_reference
class Options(NamedTuple):
    """Parameters of the step."""

    h: float
    accumulation: float  # of the longest time between events: where it may end
    max_events: float


@by_reference
class Tables(NamedTuple):
    """Tables of one model that a step reads."""

    parts: np.ndarray  # PART, one row a system
    elements: np.ndarray  # ELEMENT, one row an element of a system
    relations: np.ndarray  # RELATION, one row an element of an interaction
    constraints: np.ndarray  # CONSTRAINT
    flow: Flow
    times: np.ndarray  # of events that are known in advance


def prepare(records, mem, options, h, method):
    """Dense operators of all members, and those of the choice of modes."""
    # 1. systems whose motion is no series have their own tables
    work, iwork = Allocator(records.size), Allocator(records.size)
    layout = layout_of(records, work)
    require_low_degree(_OWNER, records, layout, work)
    if not _is_exact(records, options, layout):
        return general.prepare(records, layout, options, h, method, work, iwork)
    # 2. operators by member, and their components
    constants, c = work.array(), layout.constraints
    members = [of_member(records[k : k + 1], layout, constants[k], h) for k in range(records.size)]
    parts = components_of(members)
    m, n = members[0]["C"].shape
    what = f"{_OWNER}: the operators of {n} states and {m} rows"
    require_affordable(what, number_of_entries(n, m, *parts.entries(), rate_entries(members, parts)), _INSTEAD)
    look_ahead(members, h)
    p = np.zeros(1, PLAN)
    p["n"], p["m"], p["is_controlled"], p["n_lengths"] = n, m, has_controls(records), members[0]["lengths"].size
    p["n_own"] = (layout.parts["count"] * layout.parts["n"]).sum()
    p["is_driven"] = are_circuits(records)
    # 3. constants into the work memory, then scratch
    for prefix in ("bounds", "open"):
        p[f"{prefix}_lower"], p[f"{prefix}_upper"] = work.store(layout.lower), work.store(layout.upper)
    row, column, begin = store_operators(p, members, parts, work, iwork)
    place_arrays(p, n, m, *parts.entries(), work, iwork)
    # 4. problem of modes
    widest = slice((int(p["n_lengths"][0]) - 1) * (m + 1), None)
    place_problem(p, Unknowns(None, None, c, None, row[widest], column[begin[-2] :], None), method, work, iwork)
    place_branches(p, m, work, iwork)
    # 5. initial contents
    work, iwork, plan = work.array(), iwork.array(np.int64), p[0]
    work[:, plan["spare"] : plan["spare"] + n] = [member["spare"] for member in members]
    numbers = {name: float(options[name].item()) for name in ("accumulation", "max_events")}
    tables = Tables(
        layout.parts, elements_of(layout.parts), layout.relations, c, Flow(p, row, column, begin), np.sort(options["time_events"])
    )
    return Prepared(tables, layout.functions, Options(h, **numbers), work, iwork, sys.modules[__name__], layout)


def _is_exact(records, options, layout):
    """Whether operators are constant, sources constant or of a circuit, and laws those of single rows: then motions are series."""
    parts, relations = layout.parts, layout.relations
    varies = [parts[field + "_function"] != ABSENT for field in ("b", "T", "u")]
    varies += [relations[field + "_function"] != ABSENT for field in ("e", "bounds")]
    can = is_constant(records) and (are_circuits(records) or not any(each.any() for each in varies))
    is_asked = options["flow"].item() in (b"auto", b"exact") or (options["flow"].item() == b"radau" and are_circuits(records))
    may = is_asked and options["hybrid"] != ALWAYS
    return bool(can and (layout.constraints["y"] != ABSENT).all() and may)


def cause_of(records, prepared, m, status):
    """Reason for a failure of member m, as text; empty if the status says all."""
    if status == STEP_COLLAPSED:
        return _cause_of_short_steps(records, prepared, m)
    if status not in (TOO_MANY_EVENTS, VIOLATED, IMPULSE) and not (status == INFEASIBLE and are_circuits(records)):
        return ""
    row = prepared.iwork[m, prepared.tables.flow.plan[0]["culprit"]]
    if are_circuits(records):
        return cause_in_circuit(records[m], row, status)
    name = np.repeat(prepared.layout.relation_names, prepared.layout.relations["m"])[row]
    return f"interaction '{name}': {_BELOW_ZERO if status == VIOLATED else advice(status)}"


def _cause_of_short_steps(records, prepared, m):
    """The state that changes fastest in the present modes, and how fast that is, as text."""
    from scipy.linalg import eig

    plan, parts = prepared.tables.flow.plan[0], prepared.tables.parts
    n, n_own = int(plan["n"]), int(plan["n_own"])
    work, iwork, rate = prepared.work[m], prepared.iwork[m], np.zeros((n, n))
    for a in range(n):
        used = np.arange(iwork[plan["rate_row"] + a], iwork[plan["rate_end"] + a])
        rate[a, iwork[plan["rate_column"] + used]] = work[plan["rate"] + used]
    rate = rate[:n_own, :n_own]
    values, left, right = eig(rate, left=True)
    k = abs(values).argmax()
    state = int(abs(left[:, k] * right[:, k]).argmax())  # largest participation, whatever its unit
    if are_circuits(records):
        name = records[m]["names"]["state_names"].item().decode().split()[state]
    else:
        name = f"part '{np.repeat(prepared.layout.part_names, parts['count'] * parts['n'])[state]}'"
    return (
        f"{name}: with a time constant of {1.0 / abs(values[k]):.2g} s the motion does not get on between rows of "
        f"{prepared.options.h:g} s; where that is no rounding of larger ones, take nsds.euler_moreau"
    )


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: outputs of the state and lambda of the record; modes are determined when the first step begins."""
    mem, work, iwork = memory.mem, memory.work, memory.iwork
    p = s.flow.plan[0]
    # 1. state and its size
    gather(s.parts, s.elements, p.x, 0, memory)
    for j in range(p.n):
        work[p.x_size + j] = 0.0
    note_size(p, work)
    # 2. modes by lambda of the record
    for i in range(p.m):
        lower, upper, lam = work[p.bounds_lower + i], work[p.bounds_upper + i], mem[s.constraints[i].lam]
        is_high = upper < np.inf and (lower == -np.inf or lower < upper <= lam)
        iwork[p.mode + i] = UPPER if is_high else LOWER if lower > -np.inf else HELD
        iwork[p.fired + i] = 0
        # relays continue from there
        work[p.l + i] = min(max(lam, lower), upper) if lower > -np.inf and upper < np.inf else 0.0
        for l in range(iwork[p.wide + i]):
            work[p.L + iwork[p.at + i] + l] = 0.0
        y, _ = output(i, p, memory)
        c = component(iwork[p.owner + i], p, iwork)
        for b in range(c.count):
            y += of_D(i, b, c, p, memory) * mem[s.constraints[iwork[p.rows + c.begin + b]].lam]
        if memory.imem[STEP] == 0:
            mem[s.constraints[i].y] = y
    # 3. sources of circuits, and no history of events
    forget_accumulations(p, memory)
    work[p.corner] = np.inf
    if p.is_driven != 0:
        drive(t, p, s.relations, memory)
        note_size(p, work)
    work[p.step], work[p.long], work[p.event], work[p.rounding], work[p.rest] = 0.0, 0.0, -np.inf, 0.0, 0.0
    iwork[p.open] = -1
    _forget_hidden(p, iwork)
    forget_moving(p, memory)
    wind_up(t, options.h, s.times, p, memory)
    return CONVERGED


@tiny
def _forget_hidden(p, iwork):
    """No held rows constrain the state, and all components are to be solved."""
    iwork[p.is_unsolved] = 1
    for k in range(p.n_components):
        iwork[p.n_hidden + k] = 0


@tiny
def _after(t, h, p, work):
    """``t + h`` with compensated rounding: over many events between two rows the error would shift sources in time."""
    h += work[p.rest]
    later = t + h
    work[p.rest] = h - (later - t)
    return later


@kernel
def _settle(t, s, calls, options, memory):
    """Event at t. Returns (CONVERGED, EVENT with bits), or a status that ends the run; 0 in place of bits at the start."""
    work, iwork = memory.work, memory.iwork
    p = s.flow.plan[0]
    # 1. known times, and the end of an accumulation
    is_start, bits = begin_event(t, options.h, s.times, p, memory)
    is_afresh, iwork[p.frozen] = is_start, 1 if work[p.tail] > -np.inf else 0
    # 2. corner of a source: its step may move held rows off zero
    if not is_start and not is_later(work[p.corner], t, options.h):
        bits |= TIME_EVENT
        drive(t, p, s.relations, memory)
        note_size(p, work)
        can, is_afresh = _let_go(p, memory)
        if not can:
            return IMPULSE, 0
    # 3. sources at the start; otherwise counts and accumulations
    if is_start:
        if p.is_driven == 0:
            gather_sources(t, s.parts, s.elements, p.spare, calls.functions, memory)
        _from_masses(p, memory)
        iwork[p.is_unsolved] = 1
    else:
        count_event(t, options.h, p, memory)
        if iwork[p.frozen] == 0 and (bits & ACCUMULATION) == 0:
            note_near(p, memory)
            follow_accumulations(t, options.accumulation, p, memory)
    if are_too_many(t, options, p, memory):
        return TOO_MANY_EVENTS, 0
    # 4. modes; without any there is no motion from here, and a run that continues all the same asks again
    status, found = _switch(is_start, is_afresh, s, calls, memory)
    if status != CONVERGED:
        iwork[p.pending] = AT_START
        return status, 0
    status = _update(t, s, calls.functions, options, memory)
    return status, 0 if is_start and p.is_driven == 0 and (found & JUMP) == 0 else EVENT | bits | found


@kernel
def _let_go(p, memory):
    """Release rows that a step of a source, or a switch, has moved off zero, held ones and those that came to zero.

    Returns (False if one cannot be released, whether there was any: then y of all rows is evaluated from scratch).
    """
    work, iwork = memory.work, memory.iwork
    is_off = False
    # 1. constraints of x by held rows without lambda, and fired rows
    for k in range(p.n_components):
        for l in range(iwork[p.n_hidden + k]):
            y, terms = hidden_row(l, component(k, p, iwork), p, memory)
            is_off |= abs(y) > _OFF * terms
    for i in range(p.m):
        is_off |= iwork[p.fired + i] != 0 and not _is_at_zero(i, p, memory)
    if not is_off:
        return True, False
    # 2. release each of them to the bound on its side
    _forget_hidden(p, iwork)
    for i in range(p.m):
        iwork[p.fired + i] = 1 if iwork[p.fired + i] != 0 and _is_at_zero(i, p, memory) else 0
        if iwork[p.direct + i] != 0 or iwork[p.mode + i] != HELD:
            continue
        y, terms = output(i, p, memory)
        if abs(y) <= _OFF * terms:
            continue
        iwork[p.culprit] = i
        if y > 0.0 and work[p.bounds_lower + i] > -np.inf:
            iwork[p.mode + i] = LOWER
        elif y < 0.0 and work[p.bounds_upper + i] < np.inf:
            iwork[p.mode + i] = UPPER
        else:
            return False, True
    return True, True


@tiny
def _is_at_zero(i, p, memory):
    """Whether the guard of a row is still zero: y at a bound, the distance of lambda from its bounds if held."""
    work = memory.work
    if memory.iwork[p.mode + i] == HELD:
        lam, terms = along(i, p.L, p.l, p, memory)
        distance = min(abs(lam - work[p.bounds_lower + i]), abs(work[p.bounds_upper + i] - lam))
    else:
        y, terms = along(i, p.Y, p.y0, p, memory)
        distance = abs(y)
    return distance <= _OFF * terms


@tiny
def _from_masses(p, memory):
    """``s = M^-1 (b + T u)``."""
    work, iwork = memory.work, memory.iwork
    for a in range(p.n):
        work[p.s + a] = 0.0
        for k in range(iwork[p.mass_row + a], iwork[p.mass_row + a + 1]):
            work[p.s + a] += work[p.mass + k] * work[p.spare + iwork[p.mass_column + k]]


@kernel
def _switch(is_start, is_afresh, s, calls, memory):
    """Project x onto rows that came to zero, and choose the modes after that; at the start x may jump. Returns (status, bits of changes).

    is_afresh: formerly held rows are released, as at the start.
    """
    iwork = memory.iwork
    p, bits = s.flow.plan[0], 0
    # 1. state
    put_on_outputs(s.flow, memory)
    for i in range(p.m):
        iwork[p.before + i] = iwork[p.mode + i]
    # 2. modes, at the start after a jump if necessary
    status = _find_modes(is_start, is_afresh, s, calls, memory)
    if status == VIOLATED and is_start and jump(s.flow, calls, memory):
        status, bits = _find_modes(is_start, is_afresh, s, calls, memory), JUMP
    if status not in (CONVERGED, INEXACT):
        return status, 0
    # 3. bits, and the row to blame
    return CONVERGED, bits | changes(p, iwork)


@kernel
def _find_modes(is_start, is_afresh, s, calls, memory):
    """The modes at x, and the motion in them. Returns a status: VIOLATED, or of circuits IMPULSE, if x would have to jump."""
    work, iwork = memory.work, memory.iwork
    p = s.flow.plan[0]
    off = VIOLATED if p.is_driven == 0 else IMPULSE
    # 1. one-sided rows without lambda must not be violated
    for i in range(p.m):
        y, terms = output(i, p, memory)
        one_sided = work[p.bounds_upper + i] == np.inf and work[p.bounds_lower + i] > -np.inf
        if one_sided and iwork[p.direct + i] == 0 and y < -_VIOLATED * terms:
            iwork[p.culprit] = i
            return off
    # 2. choice, and motion
    status = choose_modes(is_afresh, s.flow, calls, memory) if p.m > 0 else CONVERGED
    if status == INFEASIBLE:
        iwork[p.culprit] = _lowest(p, memory)
        if is_start and p.is_driven == 0:
            return off
    solve_modes(s.flow, memory)
    # 3. checks: a choice that looks ahead may rely on a future change of a source; rows changed too early get their modes back
    if p.is_driven != 0 and iwork[p.is_doubtful] != 0 and iwork[p.is_off] == 0:
        broken = broken_row(p, memory)
        if broken >= 0:  # a solution only with a future change of a source: there is none now
            iwork[p.culprit] = broken
            return INFEASIBLE
    if not is_afresh and iwork[p.is_off] == 0 and take_back(p, memory):
        solve_modes(s.flow, memory)
    # 4. held rows that no motion keeps at zero
    if iwork[p.is_off] == LEAVES:
        return INFEASIBLE
    return off if iwork[p.is_off] != 0 and (is_start or p.is_driven != 0) else status


@tiny
def _lowest(p, memory):
    """The row whose y is lowest."""
    row, lowest = 0, np.inf
    for i in range(p.m):
        y, _ = output(i, p, memory)
        row, lowest = (i, y) if y < lowest else (row, lowest)
    return row


@kernel
def _update(t, s, functions, options, memory):
    """x, y, lambda and r at the state into mem. Returns a status."""
    mem, work, iwork = memory.mem, memory.work, memory.iwork
    p, zero = s.flow.plan[0], 0.0
    # 1. state
    put_on_outputs(s.flow, memory)
    scatter(s.parts, s.elements, p.x, 0, memory)
    # 2. outputs and multipliers; y = 0 is reserved for held rows of a circuit
    for i in range(p.m):
        y, lam = value_of(i, p.Y, p.y0, p, memory), multiplier(i, p, memory)
        if p.is_driven != 0 and y == 0.0:
            y = _SMALLEST if iwork[p.mode + i] == LOWER else -_SMALLEST
        mem[s.constraints[i].y], mem[s.constraints[i].lam] = 0.0 if iwork[p.mode + i] == HELD else y, lam + 0.0  # no -0
        zero += 0.0 * y + 0.0 * lam
    # 3. r = B lambda; NaN and infinity anywhere
    for a in range(p.n):
        work[p.spare + a] = 0.0
        zero += 0.0 * work[p.x + a]
        for k in range(iwork[p.raw_B_row + a], iwork[p.raw_B_row + a + 1]):
            work[p.spare + a] += work[p.raw_B + k] * mem[s.constraints[iwork[p.raw_B_column + k]].lam]
        zero += 0.0 * work[p.spare + a]
    scatter(s.parts, s.elements, p.spare, 1, memory)
    return CONVERGED if zero == 0.0 else NON_FINITE


@tiny
def _plan_of(s):
    """The row of the plan."""
    return s.flow.plan[0]


@tiny
def _entries(p):
    """Entries of the motion, with those of its guards."""
    return p.n + p.n_rate + p.m


@tiny
def _next_stop(t, t_new, h, s, memory):
    """The next corner of a source, or time at which the motion has to stop; a corner next to a row is at it. In/out: corner."""
    p = s.flow.plan[0]
    memory.work[p.corner] = at_row(memory.work[p.corner], t_new, h)
    return min(next_stop(t, t_new, h, s.times, p, memory), memory.work[p.corner])


@kernel
def _advance(t, until, s, functions, options, memory):
    """One step of the motion, and the sources at its end. See `nsds.schemes.event_driven.driver`."""
    work = memory.work
    p, is_event = s.flow.plan[0], False
    if memory.iwork[p.frozen] != 0:
        t = until
    else:
        h, is_event = move(until - t, s.flow, memory)
        t = until if not is_event and h >= until - t else _after(t, h, p, work)
    if t == until:
        work[p.rest] = 0.0
    # sources at the end of the step: before a corner by the piece that ends there
    if p.is_driven != 0:
        is_before_step = not is_later(work[p.corner], t, options.h)
        set_sources(t, is_before_step, ROUNDED * abs(t), p, s.relations, memory)
    return CONVERGED, t, is_event, 1


step = driven(
    "linear",
    plan_of=_plan_of,
    settle=_settle,
    next_stop=_next_stop,
    advance=_advance,
    update=_update,
    entries=_entries,
    at_fault=MOST_STILL + 1,  # a circuit has many events a row
)
