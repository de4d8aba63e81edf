"""Event-driven steps of Lagrangian systems: from one row to the next, or to the next event.

A call of `step` ends at an event, with the state before it; the next call begins with the event (`handle`), and ends with the state after
it; then the motion continues.
"""

import sys

import numpy as np

from nsds._jit import kernel, tiny
from nsds.maths import superlu
from nsds.model.control import has_controls
from nsds.model.laws import LAWS
from nsds.model.layout import ABSENT
from nsds.model.records import T, model_of, stored_sparse
from nsds.model.system_kinds import split
from nsds.schemes.event_driven.compliance import choose, is_compliant
from nsds.schemes.event_driven.driver import driven
from nsds.schemes.event_driven.event_times import (
    ALWAYS,
    AT_START,
    NEVER,
    are_too_many,
    begin_event,
    count_event,
    is_handed_over,
    next_stop,
    reason,
    wind_up,
)
from nsds.schemes.event_driven.events import handle, strikes_at_start
from nsds.schemes.event_driven.flows import runge_kutta_step, series_step, take_over_contacts
from nsds.schemes.event_driven.forces import accelerate, evaluate_operators, list_rows
from nsds.schemes.event_driven.guards import start_together
from nsds.schemes.event_driven.handover import begin_anew, hand_over
from nsds.schemes.event_driven.impacts import is_solved
from nsds.schemes.event_driven.state import load, store
from nsds.schemes.event_driven.tables import Options, Tables, numbers_of, place_flow
from nsds.schemes.lagrangian import newton
from nsds.schemes.lagrangian.contact_forces import clear_impulses
from nsds.schemes.lagrangian.functions import blame  # noqa: F401
from nsds.schemes.lagrangian.outputs import keep_state, position, update_outputs
from nsds.schemes.lagrangian.relations import EVERY
from nsds.schemes.lagrangian.tables import is_linear, layout_of
from nsds.schemes.linear_algebra import dense, sparse
from nsds.schemes.mechanics.bodies import forget_contacts, list_contacts
from nsds.schemes.mechanics.tables import FREE, HELD, SLIP, no_bodies, number_blocks
from nsds.schemes.memory import Allocator, require_affordable
from nsds.schemes.problem.disks import rolls, state_coefficients
from nsds.schemes.problem.rows import POSITION
from nsds.schemes.sides import open_window
from nsds.status import (
    CAPACITY,
    CONVERGED,
    EVENT,
    JUMP,
    PAINLEVE,
    SINGULAR_STEP,
    STEP_COLLAPSED,
    TIME_EVENT,
    TIME_STEPPED,
    TOO_MANY_EVENTS,
    VIOLATED,
    advice,
)

EVENT_ROWS = True
_OWNER = "event_driven"
_REACH = 1.5  # of a series: angle of the fastest motion in a step
_MANY, _POWERS = 256, 32  # coordinates from which on norms are estimated, by so many steps of the power method
_SUNK = 1e-6  # of all lengths: a gap that is more negative when it comes to zero has jumped
_GAP_JUMPS = (
    "its gap jumps from positive to negative, or bodies overlap at the start, and no motion of bodies follows: make it continuous in time "
    "and state, and move apart what overlaps"
)
_SINGULAR = "the masses, or the equations of what is held, are singular at this state"


def prepare(records, mem, options, h, method):
    """Tables of the Newton form, which evaluates functions, and those of the flow."""
    # 1. model
    work, iwork = Allocator(records.size), Allocator(records.size)
    layout = layout_of(records, work, _OWNER, h, h, has_impact_laws=True)
    _require_treated(records, layout)
    layout = layout._replace(constraints=state_coefficients(layout.constraints))
    words = newton.Options(h)
    constraints = layout.constraints
    # 2. flow: sizes of its arrays
    n_dofs = int((layout.parts["count"] * layout.parts["n"]).sum())
    compliant = np.where(constraints["level"] == POSITION, constraints["coupling_end"] - constraints["coupling"], 0).max(initial=0)
    is_stiff = options["flow"].item() == b"radau"
    flow = place_flow(n_dofs, 2 * n_dofs, constraints, is_stiff, work, iwork, int(compliant))
    exact = _is_exact(options, layout)
    # 3. Newton form, and the flags of the flow
    prepared = newton.prepare(records, layout, words, method, work, iwork)
    flow["is_linear"], flow["is_controlled"] = exact, has_controls(records)
    prepared.iwork[:, flow["relation"][0] : flow["relation"][0] + constraints.size] = _relations_of(prepared.tables)
    number_blocks(prepared, flow, max(constraints.size, 1))
    # 4. a linear motion is a series, whose step is limited by the fastest frequency
    if exact:
        prepared.work[:, flow["limit"][0]] = _REACH / _fastest(records, layout)
        prepared.iwork[:, flow["has_forces"][0]] = (layout.parts["fext_function"] != ABSENT).any()
    else:
        prepared.work[:, flow["limit"][0]] = np.inf
    return with_flow(prepared, flow, no_bodies(), options, words)._replace(stepper=sys.modules[__name__])


def _relations_of(tables):
    """Number of the relation of each constraint, ABSENT if it is linear."""
    found = np.full(tables.constraints.size, ABSENT)
    for k, r in enumerate(tables.relations):
        lam = tables.constraints["lam"]
        found[(lam >= r["multiplier"]) & (lam < r["multiplier"] + r["m"])] = k
    return found


def with_flow(prepared, flow, rigid, options, words):
    """Prepared tables of the Newton form, with those of the flow, of rigid bodies, and options."""
    numbers = numbers_of(options)
    tables = Tables(prepared.tables, flow, np.sort(options["time_events"]), rigid)
    return prepared._replace(tables=tables, options=Options(words.h, words, **numbers))


def _require_treated(records, layout):
    """Refuse a ydot that depends on an impulse, and contacts compliant in some directions and rigid in others."""
    c = layout.constraints
    refused = (c["level"] != POSITION) & (c["coupling"] != c["coupling_end"])
    if refused.any():
        name = layout.owners[int(np.argmax(refused))][0]
        raise ValueError(f"{_OWNER}: interaction '{name}': the scheme does not treat a ydot that depends on lambda; use nsds.moreau_jean")
    for name, _, law, *_ in split(model_of(records))[1]:
        part = records.dtype[name].base
        if LAWS[law].is_of_position and "D" in part.names and part["D"].base.kind != "S":
            D = _compliances(name, records[name], part)
            if (np.linalg.eigvalsh(D + np.swapaxes(D, -1, -2))[..., 0] <= 0).any():
                raise ValueError(
                    f"{_OWNER}: interaction '{name}': D must be positive definite: what is rigid has none; else use nsds.moreau_jean"
                )


def _compliances(name, fields, part):
    """D of all members and elements as dense matrices."""
    if part["D"].names is None:
        return fields["D"]
    m = part["D"]["indptr"].shape[0] - 1
    require_affordable(f"{_OWNER}: interaction '{name}': D", fields.size * m * m, "use nsds.moreau_jean")
    return np.array([stored_sparse(each, m).toarray() for each in fields["D"].reshape(-1)])


def _is_exact(options, layout):
    """Whether motions are linear wherever contacts are: then they are series."""
    c = layout.constraints
    can = is_linear(layout) and c["tangents"].max(initial=0) < 2 and not layout.relations.size and not (c["level"] == POSITION).any()
    if options["flow"].item() == b"exact" and not can:
        raise ValueError(
            f"{_OWNER}: flow='exact' is for linear systems and linear relations, without friction in space and compliance; use flow='auto'"
        )
    return can and options["flow"].item() in (b"auto", b"exact")


def _fastest(records, layout):
    """Bound of the rates of the motion of each member: the square root of ``|M^-1 K|``, and ``|M^-1 C|``, in units of the masses.

    Of many coordinates the norms are estimated by products, to some percent from below.
    """
    rates = np.zeros(records.size)
    for name, part in zip(layout.part_names, layout.parts, strict=True):
        fields = records[name].reshape(records.size, -1)
        norm = _norms if part["n"] <= _MANY else _norms_by_products
        rate = np.zeros(fields.shape)
        for field, power in (("K", 0.5), ("C", 1.0)):
            if part[field] != ABSENT:
                rate += norm(fields, part, field) ** power
        rates = np.maximum(rates, rate.max(axis=-1))
    with np.errstate(divide="ignore"):
        return np.where(rates > 0, rates, 1e-300)


def _norms(fields, part, name):
    """``|U M^-1 A U^-1|`` of the elements (members, elements) of a part for a field A, U: square roots of the diagonal of M."""
    M = dense(fields, part, "M")
    unit = np.sqrt(abs(np.diagonal(M, axis1=-2, axis2=-1)))
    scale = unit[..., :, None] / unit[..., None, :]
    return np.linalg.norm(np.linalg.solve(M, dense(fields, part, name)) * scale, 2, axis=(-2, -1))


def _norms_by_products(fields, part, name):
    """`_norms` by the power method, with sparse factors of M."""
    norms = np.zeros(fields.shape)
    for where in np.ndindex(fields.shape):
        M, A = sparse(fields[where], part, "M"), sparse(fields[where], part, name)
        unit = np.sqrt(abs(M.diagonal()))
        inverse = superlu.factorise(M.tocsc())
        x, size = np.random.default_rng(0).normal(size=unit.size), 0.0
        # powers of X^T X, with X = U M^-1 A U^-1
        for _ in range(_POWERS):
            x /= np.linalg.norm(x)
            y = unit * inverse.solve(A @ (x / unit))
            size = np.linalg.norm(y)
            if size == 0.0:
                break
            x = (A.T @ inverse.solve(unit * y, "T")) / unit
        norms[where] = size
    return norms


def cause_of(records, prepared, m, status):
    """Reason for a failure of member m, as text; empty if the status says all."""
    if status == SINGULAR_STEP:
        return _SINGULAR
    if status not in (TOO_MANY_EVENTS, PAINLEVE, VIOLATED) or not prepared.layout.owners:
        return ""
    name, element, row = prepared.layout.owners[prepared.iwork[m, prepared.tables.flow["culprit"][0]]]
    return f"interaction '{name}', element {element}, row {row}: {_GAP_JUMPS if status == VIOLATED else advice(status)}"


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: outputs of the state; its modes are determined when the first step begins.

    CAPACITY if a record has no room for the contacts that its shapes can have.
    """
    work = memory.work
    if s.rigid.plan[0].is_short != 0:
        return CAPACITY
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    # 1. scales, and no history of events
    keep_state(form.parts, form.elements, p.q_old, p.v_old, memory)
    for i in range(form.constraints.size):
        work[f.length + i] = work[f.speed + i] = work[f.pull + i] = work[f.carried + i] = 0.0
    for i in range(f.n):
        work[f.x_size + i] = 0.0
    work[f.force] = 0.0
    begin_anew(t, s, memory)
    wind_up(t, options.h, s.times, f, memory)
    open_window(t, options.h, s.times, f, memory)
    # finite differences of smooth functions may reach before the start
    work[f.t_low] = -np.inf if work[f.t_low] == t else work[f.t_low]
    list_rows(s, memory)
    # 2. contacts and outputs
    forget_contacts(s.rigid, memory.iwork)
    take_over_contacts(t, s, functions, memory)
    _update(t, 0, s, functions, options, memory)
    list_contacts(s, memory)
    return CONVERGED


@kernel
def opening(t, s, calls, options, memory):
    """Modes and forces of the first row, after `start`; only those of compliant rows if there is an impact.

    What fails here also fails in the first step.
    """
    functions = calls.functions
    f = s.flow[0]
    if strikes_at_start(t, s, functions, options, memory):
        if f.is_compliant != 0 and choose(t, s, functions, options, memory):
            list_rows(s, memory)
            _update(t, 0, s, functions, options, memory)
        return
    status, _ = _settle(t, s, calls, options, memory)
    if status != CONVERGED:
        begin_anew(t, s, memory)
        memory.iwork[f.pending] = AT_START
        list_rows(s, memory)
        _update(t, 0, s, functions, options, memory)
    list_contacts(s, memory)


@tiny
def _goes_on(status, options, s, iwork):
    """Whether time stepping goes on after this status.

    Usually not where nothing slips and steps are too short, as some force jumps; never where a smooth motion fails that equations alone
    hold, as of a mechanism at a position at which it loses a rank: steps in time would leave its branch.
    """
    slips, touches, holds = False, False, False
    for i in range(s.newton.constraints.size):
        c, mode = s.newton.constraints[i], iwork[s.flow[0].mode + i]
        holds |= c.bilateral != 0 and not is_compliant(c)
        touches |= c.bilateral == 0 and not is_compliant(c) and mode != FREE
        slips |= mode == SLIP
    may = touches or not holds if status in (STEP_COLLAPSED, SINGULAR_STEP) else True
    if status == STEP_COLLAPSED:
        may &= slips or options.hybrid == ALWAYS
    return options.hybrid != NEVER and may and is_handed_over(status)


@kernel
def _settle(t, s, calls, options, memory):
    """Event at t. Returns (CONVERGED, EVENT with bits), or a status that ends the run; 0 in place of bits if nothing changes visibly."""
    work, iwork = memory.work, memory.iwork
    f, constraints = s.flow[0], s.newton.constraints
    # 1. known times, and the end of an accumulation
    is_start, bits = begin_event(t, options.h, s.times, f, memory)
    if (bits & TIME_EVENT) != 0:
        work[f.step] = 0.0
        open_window(t, options.h, s.times, f, memory)
    # 2. counts, the row to blame, and gaps that have jumped
    if not is_start:
        count_event(t, options.h, f, memory)
        for i in range(constraints.size):
            c = constraints[i]
            iwork[f.culprit] = i if iwork[f.fired + i] != 0 else iwork[f.culprit]
            closes = iwork[f.fired + i] != 0 and iwork[f.mode + i] == FREE and c.component == 0 and c.h != ABSENT
            closes &= not is_compliant(c)
            if closes and position(c, s.newton.entries, memory) < -_SUNK * _extent(s, work):
                return VIOLATED, 0
    if are_too_many(t, options, f, memory):
        return TOO_MANY_EVENTS, 0
    # 3. contacts of shapes at the start, then impact and modes
    if is_start:
        take_over_contacts(t, s, calls.functions, memory)
    load(s, memory, f.x)
    status, found = handle(t, is_start, s, calls, options, memory)
    # no modes: the state is restored for time stepping
    if not is_solved(status):
        if options.hybrid != NEVER:
            store(s, memory, f.x)
        return status, 0
    # 4. bodies that overlap at the start are moved apart, unless they are jammed
    if is_start and _is_jammed(s, memory):
        return VIOLATED, 0
    bits |= found
    status = _update(t, bits, s, calls.functions, options, memory)
    return status, EVENT | bits if not is_start or (bits & JUMP) != 0 else 0


@tiny
def _is_jammed(s, memory):
    """Whether a closed contact overlaps, as of a ball between walls that are too near. Out: culprit."""
    f, result = s.flow[0], False
    for i in range(s.newton.constraints.size):
        c = s.newton.constraints[i]
        is_closed = memory.iwork[f.mode + i] != FREE and c.component == 0 and c.lower == ABSENT and c.h != ABSENT and c.bilateral == 0
        if is_closed and not is_compliant(c) and position(c, s.newton.entries, memory) < -_SUNK * _extent(s, memory.work):
            memory.iwork[f.culprit], result = i, True
    return result


@tiny
def _extent(s, work):
    """Largest length in a gap so far, or coordinate of the state at the start of the step, not of bodies: quaternions are no lengths."""
    f, size = s.flow[0], 0.0
    for j in range(f.n // 2 if s.rigid.bodies.size == 0 else 0):
        size = max(size, abs(work[f.x + j]))
    for i in range(s.newton.constraints.size):
        size = max(size, work[f.length + i])
    return size


@kernel
def _hand_over(t_new, why, s, calls, options, memory):
    """Towards the next row, or time that is known in advance, by steps in time, after the status why.

    Returns EVENT with bits, or a status that ends the run. Where no modes are found at the end, lambda is the mean force of a step.
    CONVERGED if such steps have led to the row already and there are no modes there either: the next step begins with them.
    """
    mem = memory.mem
    f = s.flow[0]
    if mem[T] >= t_new and memory.work[f.handed_to] >= t_new:
        memory.iwork[f.pending] = AT_START
        return CONVERGED
    until = next_stop(mem[T], t_new, options.h, s.times, f, memory)
    status, bits, t, h = hand_over(mem[T], until, why, s, calls, options, memory)
    mem[T] = t
    if is_solved(status):
        status = _update(t, bits, s, calls.functions, options, memory)
        if h > 0.0:
            for i in range(s.newton.constraints.size):
                mem[s.newton.constraints[i].lam] += memory.work[s.newton.plan[0].total + i] / h
            _gather_inputs(s, memory)
    return EVENT | TIME_STEPPED | reason(why) | bits if status == CONVERGED else status


@kernel
def _update(t, bits, s, functions, options, memory):
    """y, ydot, the forces lambda, of an impact its impulses, and ``p = H^T lambda`` at the state in mem. Returns a status."""
    mem, work = memory.mem, memory.work
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    for i in range(form.constraints.size):
        mem[form.constraints[i].lam] = 0.0
    status = accelerate(t, s, functions, options, memory)
    evaluate_operators(t, EVERY, s, functions, options, memory)
    update_outputs(options.h, 1.0, form.constraints, form.entries, form.couplings, memory)
    for i in range(form.constraints.size):
        c = form.constraints[i]
        work[f.force] = max(work[f.force], 0.0 if rolls(c) else abs(mem[c.lam]))
        memory.imem[c.active] = 1 if memory.iwork[f.mode + i] == HELD else 0
        if (bits & JUMP) != 0 and not is_compliant(c):
            mem[c.lam] = work[p.total + i]
    _gather_inputs(s, memory)
    return status


@tiny
def _gather_inputs(s, memory):
    """``p = H^T lambda``."""
    mem = memory.mem
    form = s.newton
    clear_impulses(form.parts, form.elements, mem)
    for i in range(form.constraints.size):
        c = form.constraints[i]
        for k in range(c.input, c.input_end):
            mem[form.inputs[k].q + 2 * form.inputs[k].n] += memory.work[form.inputs[k].coefficient] * mem[c.lam]


@kernel
def _advance(t, until, s, functions, options, memory):
    """One step of the series, or of Dormand and Prince's or Radau's method. See `nsds.schemes.event_driven.driver`."""
    f = s.flow[0]
    memory.iwork[f.first_event], status = 0, CONVERGED
    if until <= t:  # the last row was at a time known in advance
        t = until
    elif f.is_linear != 0:
        status, t = series_step(t, until, s, functions, options, memory)
    else:
        status, t = runge_kutta_step(t, until, s, functions, options, memory)
    return status, t, memory.iwork[f.first_event] != 0, 1


@kernel
def _row(t, s, functions, options, memory):
    """The row at a time without an impact."""
    return _update(t, 0, s, functions, options, memory)


step = driven(
    "mechanics",
    settle=_settle,
    advance=_advance,
    update=_row,
    goes_on=_goes_on,
    hand_over=_hand_over,
    note_event=start_together,
    finish=list_contacts,
)
