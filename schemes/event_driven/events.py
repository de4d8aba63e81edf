"""Events: impact, then forces, which decide which contacts stay closed, which stick, and which open.

Velocity level: all touching contacts make one problem (`nsds.schemes.event_driven.impacts`). Acceleration level: touching contacts at
rest, sticking and slipping, make one problem of forces, ``0 <= H a + curvature  ⟂  lambda >= 0`` with friction; its solution is a guess
of modes, which the equations of these modes then confirm or revise. Slip keeps its direction there.
"""

import math

from nsds._jit import kernel, tiny
from nsds.model.layout import ABSENT
from nsds.schemes.event_driven.compliance import choose, is_compliant
from nsds.schemes.event_driven.flows import correct, put_on_constraints
from nsds.schemes.event_driven.forces import (
    carries,
    evaluate_rows,
    factorise,
    factorise_independent,
    free_accelerations,
    hold,
    jams,
    list_rows,
    mark_redundant,
    slip_of,
    speed_of_rest,
)
from nsds.schemes.event_driven.friction_sharing import spread
from nsds.schemes.event_driven.impacts import is_solved, solve_impact
from nsds.schemes.event_driven.tables import LEANS
from nsds.schemes.lagrangian.contact_forces import push_apart
from nsds.schemes.lagrangian.outputs import acceleration, lengths, position, velocity
from nsds.schemes.lagrangian.relations import EVERY
from nsds.schemes.mechanics.tables import FREE, HELD, REDUNDANT, SLIP
from nsds.schemes.problem.box import rounding_of
from nsds.schemes.problem.disks import begins_disk, first_of_disk, rolls, rows_of, unit_of
from nsds.status import (
    CLOSED,
    CONVERGED,
    FRICTION,
    JUMP,
    OPENED,
    PAINLEVE,
    SINGULAR_STEP,
    STALLED,
)

_TOUCHING = 1e-11  # relative to the largest lengths that cancelled in a gap so far
_ON_IT = 2.0**-44  # the same, for values that count as zero
_RESOLVED = 2.0**-50  # relative to the time: shorter flights are none
_CREEPS = 2.0**-17  # of the time between rows: speeds reached within it do not determine the direction of a beginning slip
_FORCE = 1e-9  # relative to the largest force or acceleration so far: smaller values are zero
_DOUBT = 1e3  # of that
_ALIGNMENTS, _ALIGNED = 200, 1e-10  # of the directions in which slip begins: most iterations, and negligible angle
_STARTS = 1e-7  # relative to accelerations, by the accuracy of solvers: slower rows stay
_ROUNDS = 3  # of the guess, in space
_TURNS = 8  # events at one time after which a repeating choice has not settled
_FAR = 1e3  # accelerations that represent an existing slip in the guess of modes


@kernel
def handle(t, is_start, s, calls, options, memory):
    """Event at time t, or start of a run, at the state in mem. Returns (status, bits of what happened); impulses are in p.total."""
    functions, work, iwork = calls.functions, memory.work, memory.iwork
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    # 1. operators and accelerations before the event, and the modes to compare with
    status, bits = _evaluate(t, s, functions, options, memory), 0
    _scale(t, s, options, memory)
    for i in range(form.constraints.size):
        iwork[f.before + i] = iwork[f.mode + i]
        work[f.direction_before + i] = work[f.direction + i] if iwork[f.mode + i] == SLIP else 0.0
        work[p.total + i] = 0.0
        work[f.kept + i] = memory.mem[form.constraints[i].lam]
    # 2. impact, if a touching contact approaches; velocities change, so that operators do, too
    if find_touching(s, memory) and status == CONVERGED:
        status, _, _ = solve_impact(t, 0.0, s, calls, options, memory)
        bits |= JUMP
        if is_solved(status):
            status = _evaluate(t, s, functions, options, memory)
            _scale(t, s, options, memory)
    # 3. compliant elements: branch of each
    if status == CONVERGED and f.is_compliant != 0 and choose(t, s, functions, options, memory):
        status = _evaluate(t, s, functions, options, memory)
    # 4. forces: modes at acceleration level
    if status == CONVERGED:
        for i in range(p.n_dofs):
            work[f.acc_free + i] = work[p.acc + i]
        status = _choose_modes(s, calls, options, memory)
    # 5. guards for the motion that begins, and a state on its constraints
    if status == CONVERGED:
        _note_zeros(s, options, memory)
        if iwork[f.n_equations] > 0:
            put_on_constraints(t, math.inf if is_start else 0.0, s, functions, options, memory)
    # 6. bits of what happened
    for i in range(form.constraints.size):
        iwork[f.fired + i], work[f.heading + i] = 0, work[f.direction + i]
        bits |= _change_of(form.constraints[i], iwork[f.before + i], iwork[f.mode + i])
        if iwork[f.mode + i] == SLIP and work[f.direction + i] * work[f.direction_before + i] < 0.0:
            bits |= FRICTION
    iwork[f.fresh] = 1
    return status, bits


@kernel
def strikes_at_start(t, s, functions, options, memory):
    """Whether contacts that touch approach at the state in mem."""
    status = _evaluate(t, s, functions, options, memory)
    _scale(t, s, options, memory)
    return find_touching(s, memory) or status != CONVERGED


@tiny
def _change_of(c, before, now):
    """Bits of a change of mode."""
    if before == now or c.bilateral != 0:
        return 0
    if c.component > 0 or c.lower != ABSENT:
        return FRICTION if before != FREE and now != FREE else 0
    return CLOSED if before == FREE else OPENED if now == FREE else 0


@tiny
def _evaluate(t, s, functions, options, memory):
    """Accelerations without contact, and operators of all relations. Returns a status."""
    status = free_accelerations(t, s, functions, options, memory)
    evaluate_rows(t, EVERY, s, functions, options, memory)
    return status


@kernel
def _scale(t, s, options, memory):
    """Largest lengths and speeds so far, and the speed below which a row is at rest; the guards note lengths, too."""
    work = memory.work
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    # 1. each row
    for i in range(form.constraints.size):
        c = form.constraints[i]
        _, pull = acceleration(c, p.acc, form.entries, work)
        _, size = velocity(c, form.entries, memory)
        work[f.speed + i] = max(work[f.speed + i], size)
        work[f.length + i] = max(work[f.length + i], lengths(c, form.entries, memory), abs(position(c, form.entries, memory)))
        work[f.pull + i] = max(work[f.pull + i], pull)
        rest = speed_of_rest(work[f.speed + i], c.tangents, options)
        work[f.slow + i] = max(rest, _RESOLVED * (abs(t) + options.h) * work[f.pull + i])
    # 2. one scale for a contact and its tangents, and for a disk of rolling: they are judged together
    for i in range(form.constraints.size):
        c = form.constraints[i]
        end = i + 1 + c.tangents if c.component == 0 else i + c.tangents if begins_disk(c) and rolls(c) else i
        for k in range(i + 1, end):
            work[f.slow + i], work[f.pull + i] = max(work[f.slow + i], work[f.slow + k]), max(work[f.pull + i], work[f.pull + k])
        for k in range(i + 1, end):
            work[f.slow + k], work[f.pull + k] = work[f.slow + i], work[f.pull + i]


@kernel
def find_touching(s, memory):
    """List rows of touching contacts, in iwork[keep], with permanent ones; True if one approaches."""
    work, iwork = memory.work, memory.iwork
    form, f, touches, approaches = s.newton, s.flow[0], False, False
    for i in range(form.constraints.size):
        c = form.constraints[i]
        if c.component == 0:
            y, (ydot, _) = position(c, form.entries, memory), velocity(c, form.entries, memory)
            work[f.approach + i] = -ydot
            held = iwork[f.mode + i] != FREE
            touches = c.always != 0 or held or iwork[f.fired + i] != 0 or y <= _TOUCHING * work[f.length + i]
            touches &= not is_compliant(c)
            approaches |= touches and c.always == 0 and ydot < -work[f.slow + i]
        iwork[f.keep + i] = 1 if touches else 0
        iwork[f.spared + i] = 0
    return approaches


@kernel
def _choose_modes(s, calls, options, memory):
    """Modes of all rows from the problem of forces. In: accelerations without contact in acc_free. Returns a status."""
    iwork, f, status = memory.iwork, s.flow[0], CONVERGED
    # 1. if events repeat at one time, every other one trusts the guards alone; after `_TURNS` the order is reversed, to break cycles
    trusts = (iwork[f.n_still] + iwork[f.n_still] // _TURNS) % 2 == 1
    n = _list_candidates(trusts, s, memory)
    _settle(s, memory)
    if n == 0 or trusts:
        return _find_modes(status, s, memory)
    # 2. guess by the solver, and modes without forces of redundant contacts
    iwork[f.carries] = 0
    status = _guess(s, calls, memory)
    _note_guess(s, memory)
    found = _find_modes(status, s, memory)
    # 3. if these let go what the guess holds, redundant contacts carry their part of it, provided that they then stay
    if is_solved(status) and _is_let_go(s, memory):
        iwork[f.carries] = 1
        _begin_from_guess(s, memory)
        if factorise_independent(s, memory):
            spread(s, memory)
        found = _find_modes(status, s, memory)
        if found != CONVERGED or _is_moved(s, memory):
            iwork[f.carries] = 0
            _begin_from_guess(s, memory)
            found = _find_modes(status, s, memory)
    return found


@kernel
def _note_guess(s, memory):
    """Modes by the problem of forces, and the forces of contacts that stay. Out: guessed, kept."""
    work, iwork = memory.work, memory.iwork
    form, f, p, stays = s.newton, s.flow[0], s.newton.plan[0], False
    for i in range(form.constraints.size):
        c = form.constraints[i]
        iwork[f.guessed + i] = iwork[f.mode + i]
        if c.bilateral != 0 or c.lower != ABSENT:
            continue
        if c.component == 0:
            stays = iwork[f.mode + i] == HELD
            for k in range(i + 1, i + rows_of(c)):
                stays &= iwork[f.mode + k] != SLIP
        work[f.kept + i] = work[p.z + iwork[p.local + i]] if stays and iwork[p.local + i] != ABSENT else 0.0


@kernel
def _begin_from_guess(s, memory):
    """The modes of the guess."""
    for i in range(s.newton.constraints.size):
        memory.iwork[s.flow[0].mode + i], memory.iwork[s.flow[0].spared + i] = memory.iwork[s.flow[0].guessed + i], 0


@tiny
def _is_let_go(s, memory):
    """Whether contacts that the guess holds open, slip or move along, beside redundant ones."""
    iwork, f, some, others = memory.iwork, s.flow[0], False, False
    for i in range(s.newton.constraints.size):
        c = s.newton.constraints[i]
        if c.bilateral == 0 and c.lower == ABSENT and c.always == 0 and iwork[f.guessed + i] == HELD:
            others |= c.component == 0 and iwork[f.mode + i] == REDUNDANT
            some |= iwork[f.mode + i] in (FREE, SLIP) or _moves_along(i, c, s, memory)
    return some and others


@tiny
def _is_moved(s, memory):
    """Whether redundant contacts that carry friction begin to move along."""
    moved = False
    for i in range(s.newton.constraints.size):
        is_given = carries(i, s, memory.iwork) and memory.iwork[s.flow[0].mode + i] == REDUNDANT
        moved |= is_given and memory.work[s.flow[0].kept + i] != 0.0 and _moves_along(i, s.newton.constraints[i], s, memory)
    return moved


@tiny
def _moves_along(i, c, s, memory):
    """Whether a row is a tangent with an acceleration."""
    f, (a, _) = s.flow[0], acceleration(c, s.newton.plan[0].acc, s.newton.entries, memory.work)
    return c.component > 0 and abs(a) > _DOUBT * _FORCE * memory.work[f.pull + i]


@kernel
def _find_modes(status, s, memory):
    """Modes whose equations confirm them, from those at hand: an active-set method. Returns a status; status: of the guess."""
    form, f, p, many = s.newton, s.flow[0], s.newton.plan[0], 0
    # 1. solve the equations of the modes, revise modes that the solution contradicts, of so many rows, not of all that may come
    for i in range(form.constraints.size):
        many += 1 if memory.iwork[f.keep + i] != 0 else 0
    for k in range(4 * many + 20):
        _restore(s, memory)
        if not factorise_independent(s, memory):
            return SINGULAR_STEP
        for i in range(p.n_dofs):
            memory.work[p.acc + i] = memory.work[f.acc_free + i]
        hold(p.acc, True, s, memory)
        # held rows whose normal force makes their friction grow with itself have no solution (Painlevé)
        if jams(s, memory):
            return PAINLEVE
        # all contradicted modes at once, later one at a time, which does not cycle
        one_by_one = k > many + 5
        # 2. direction of beginning slip in space, once the modes are settled
        if not _revise(one_by_one, s, memory):
            if not _align(s, memory):
                return SINGULAR_STEP
            if not _revise(one_by_one, s, memory):
                return CONVERGED if _lean(s, memory) else SINGULAR_STEP
    return status if not is_solved(status) else STALLED


@kernel
def _restore(s, memory):
    """Hold REDUNDANT rows again if other rows are held now, or let them slip with their contact."""
    form, f = s.newton, s.flow[0]
    for i in range(form.constraints.size):
        c = form.constraints[i]
        if memory.iwork[f.mode + i] == REDUNDANT:
            u, _ = velocity(c, form.entries, memory)
            memory.iwork[f.mode + i] = _tangent(i, c, u, s, memory) if c.component > 0 else HELD


@kernel
def _align(s, memory):
    """Direction of beginning slip in space along its acceleration, by iterating ``d <- a + 2 pull d`` normalised. False on failure.

    Not for negligible accelerations, where the direction is opposite to the former friction.
    """
    work = memory.work
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    for _ in range(_ALIGNMENTS):
        off = 0.0
        # turn each direction towards its acceleration
        for i in range(form.constraints.size):
            c = form.constraints[i]
            slips = c.tangents == 2 and begins_disk(c) and memory.iwork[f.mode + i] == SLIP
            if slips and slip_of(i, s, memory)[2] <= work[f.slow + i]:
                x, _ = acceleration(c, p.acc, form.entries, work)
                y, _ = acceleration(form.constraints[i + 1], p.acc, s.newton.entries, work)
                if math.hypot(x, y) > _STARTS * work[f.pull + i]:
                    off = max(off, _turn_towards(i, x, y, f, work))
        # forces depend on the directions: solve again
        if off <= _ALIGNED:
            break
        if not factorise(s, memory):
            return False
        for i in range(p.n_dofs):
            work[p.acc + i] = work[f.acc_free + i]
        hold(p.acc, True, s, memory)
    return True


@kernel
def _lean(s, memory):
    """Touching contacts in equilibrium under bounded forces become REDUNDANT; False if the held rows are singular.

    They carry nothing. As open contacts, their gaps would be guards of pure rounding.
    """
    iwork = memory.iwork
    form, f, p, holds, n = s.newton, s.flow[0], s.newton.plan[0], False, 0
    for i in range(form.constraints.size):
        holds |= form.constraints[i].lower != ABSENT and iwork[f.mode + i] == HELD
    # 1. such contacts, held for the test of dependence
    for i in range(form.constraints.size if holds else 0):
        if _is_idle(i, form.constraints[i], s, memory):
            iwork[f.mode + i], iwork[f.spared + i] = HELD, LEANS
            n += 1
    if n == 0:
        return True
    # 2. those that prove independent are free after all
    list_rows(s, memory)
    mark_redundant(s, memory)
    for i in range(form.constraints.size):
        if iwork[f.spared + i] == LEANS and iwork[f.mode + i] == HELD:
            iwork[f.mode + i] = FREE
    # 3. accelerations with the reduced set
    is_regular = factorise_independent(s, memory)
    for i in range(p.n_dofs):
        memory.work[p.acc + i] = memory.work[f.acc_free + i]
    hold(p.acc, True, s, memory)
    return is_regular


@tiny
def _is_idle(i, c, s, memory):
    """Whether a contact is open, and touches, at rest and without acceleration."""
    work = memory.work
    f = s.flow[0]
    if c.component != 0 or c.lower != ABSENT or c.always != 0 or is_compliant(c) or memory.iwork[f.mode + i] != FREE:
        return False
    y, (u, _) = position(c, s.newton.entries, memory), velocity(c, s.newton.entries, memory)
    touches = memory.iwork[f.fired + i] != 0 or y <= _TOUCHING * work[f.length + i]
    a, _ = acceleration(c, s.newton.plan[0].acc, s.newton.entries, work)
    return touches and abs(u) <= work[f.slow + i] and abs(a) <= _FORCE * work[f.pull + i]


@tiny
def _turn_towards(i, x, y, f, work):
    """A step of `_align` of one contact. Returns the sine of the angle between its direction and its acceleration (x, y)."""
    d, e, stay = work[f.direction + i], work[f.direction + i + 1], 2.0 * work[f.pull + i]
    size = math.hypot(x + stay * d, y + stay * e)
    work[f.direction + i], work[f.direction + i + 1] = (x + stay * d) / size, (y + stay * e) / size
    return abs(x * e - y * d) / math.hypot(x, y)


@kernel
def _settle(s, memory):
    """Velocities that are zero up to rounding become zero: of rows at rest, and of contacts that come to rest.

    The impulses for this are part of those of an impact. Slip that ends by this is none: friction on the edge of its cone in a direction
    in which nothing moves would press contacts of a body at rest against each other, and turn it.
    """
    iwork = memory.iwork
    f, p = s.flow[0], s.newton.plan[0]
    for _ in range(s.newton.constraints.size + 1):
        if factorise_independent(s, memory) and iwork[f.n_equations] > 0 and correct(True, 0.0, 0.0, s, memory):
            for a in range(iwork[f.count]):
                memory.work[p.total + iwork[p.active + a]] += memory.work[p.z + a]
        _restore(s, memory)
        if not _stop(s, memory):
            break


@tiny
def _stop(s, memory):
    """Contacts that slipped, and are at rest now, stick. Returns whether there are any."""
    f, found = s.flow[0], False
    for i in range(s.newton.constraints.size):
        c = s.newton.constraints[i]
        if begins_disk(c) and memory.iwork[f.mode + i] == SLIP and slip_of(i, s, memory)[2] <= memory.work[f.slow + i]:
            for k in range(i, i + c.tangents):
                memory.iwork[f.mode + k] = HELD
            found = True
    return found


@kernel
def _list_candidates(trusts, s, memory):
    """First modes: HELD if a row is at rest and may stay so, SLIP if it moves along. Returns the number of undecided rows.

    keep is 1 of rows that may be held, else 0. A contact whose force has come to zero opens. trusts: of contacts at rest only those
    change whose guard has come to zero.
    """
    work, iwork = memory.work, memory.iwork
    form, f, n, normal = s.newton, s.flow[0], 0, 0
    for i in range(form.constraints.size):
        c = form.constraints[i]
        u, _ = velocity(c, form.entries, memory)
        rests = abs(u) <= work[f.slow + i]
        mode = FREE
        # compliant rows have no mode: their force follows from the state
        if is_compliant(c):
            continue
        # equations
        if c.bilateral != 0:
            mode = HELD
        # bounded forces: sticking or slipping
        elif c.lower != ABSENT:
            slipped, at_zero = iwork[f.mode + i] == SLIP, iwork[f.fired + i] != 0
            mode = HELD if rests and slipped == at_zero else SLIP
            if not rests:
                work[f.direction + i] = math.copysign(1.0, u)
            elif mode == SLIP and not slipped:
                work[f.direction + i] = math.copysign(1.0, _bound_reached(c, memory))
            n += 1 if rests else 0
        # normals: closed if touching at rest, unless the force has just come to zero
        elif c.component == 0:
            normal = i
            was_closed, at_zero = iwork[f.mode + i] != FREE, iwork[f.fired + i] != 0
            opens = was_closed == at_zero if trusts else was_closed and at_zero
            waits = iwork[f.keep + i] == 1 and rests
            if iwork[f.keep + i] == 2 or (waits and not opens):
                mode = HELD
                n += 1
            iwork[f.keep + i] = 1 if mode == HELD or (waits and trusts) else 0
        # tangents of contacts that may be closed
        elif iwork[f.keep + normal] != 0 and work[c.mu] > 0.0:
            mode = _tangent(i, c, u, s, memory) if iwork[f.mode + normal] == HELD else FREE
            iwork[f.keep + i] = 1
        else:
            iwork[f.keep + i] = 0
        iwork[f.mode + i] = mode
        if c.bilateral != 0 or c.lower != ABSENT:
            iwork[f.keep + i] = 1
    return n


@tiny
def _bound_reached(c, memory):
    """Positive where the force is nearer to its lower bound: that is where it slips forward."""
    return memory.work[c.upper] - memory.mem[c.lam] - (memory.mem[c.lam] - memory.work[c.lower])


@tiny
def _tangent(i, c, u, s, memory):
    """Mode of a tangent of a closed contact: SLIP with its direction where that moves."""
    f = s.flow[0]
    _, _, speed = slip_of(first_of_disk(i, c), s, memory)
    if speed <= memory.work[f.slow + i]:
        return HELD
    memory.work[f.direction + i] = u / speed
    return SLIP


@kernel
def _guess(s, calls, memory):
    """Modes from one problem of forces of all candidates; existing slips enter with a large acceleration. Returns the solver's status.

    Then its friction is against ``far direction + a``; in space the problem is solved again with ``far direction - a`` for that of before.
    """
    work = memory.work
    f, p, status = s.flow[0], s.newton.plan[0], CONVERGED
    n, far, turns = _state_forces(s, memory)
    for k in range(_ROUNDS if turns else 1):
        for a in range(n):
            i = memory.iwork[p.active + a]
            if memory.iwork[f.mode + i] == SLIP:
                work[p.q + a] += far * work[f.direction + i] - (work[p.w + a] if k > 0 else 0.0)
        for i in range(p.n_dofs):
            work[p.dv + i] = 0.0
        status, _, _ = push_apart(n, p.dv, 0.0, 1.0, s.newton, s.newton.bodies, calls, memory)
    for a in range(n):
        _guess_row(a, s, memory)
    return status


@kernel
def _state_forces(s, memory):
    """The rows of the problem of forces, its vector and first guess. Returns (how many, a large acceleration, whether some turn)."""
    work, iwork = memory.work, memory.iwork
    form, f, p, n, most, turns = s.newton, s.flow[0], s.newton.plan[0], 0, 0.0, False
    for i in range(form.constraints.size):
        c = form.constraints[i]
        iwork[p.local + i] = ABSENT
        if iwork[f.keep + i] != 0 and (c.lower == ABSENT or iwork[f.mode + i] == HELD):
            iwork[p.local + i], iwork[p.active + n] = n, i
            memory.mem[c.lam] = 0.0
            work[p.q + n], size = acceleration(c, f.acc_free, form.entries, work)
            most = max(most, size)
            turns |= iwork[f.mode + i] == SLIP and c.tangents == 2
            n += 1
    work[p.rounding] = rounding_of(most)
    return n, _FAR * most, turns


@tiny
def _guess_row(a, s, memory):
    """The mode of the a-th row of the problem of forces, or of its contact."""
    work, iwork = memory.work, memory.iwork
    f, p = s.flow[0], s.newton.plan[0]
    i = iwork[p.active + a]
    c = s.newton.constraints[i]
    if c.bilateral == 0 and c.lower == ABSENT and c.component == 0:
        _set_contact(i, c, work[p.z + a] > 0.0 or work[p.w + a] <= _FORCE * work[f.pull + i], s, iwork)
    elif begins_disk(c) and iwork[f.mode + i] == HELD:
        other = work[p.z + a + 1] if c.tangents == 2 else 0.0
        force = math.hypot(work[p.z + a], other)
        moves = c.tangents == 1 or math.hypot(work[p.w + a], work[p.w + a + 1]) > _STARTS * work[f.pull + i]
        if moves and force > 0.0 and force >= (1.0 - _FORCE) * work[c.mu] * work[p.z + iwork[p.local + i - c.component]]:
            for k in range(c.tangents):
                iwork[f.mode + i + k] = SLIP
                work[f.direction + i + k] = -work[p.z + a + k] / force


@tiny
def _set_contact(i, c, closes, s, iwork):
    """Open a contact, with all its rows, or close it."""
    f = s.flow[0]
    iwork[f.mode + i] = HELD if closes else FREE
    for k in range(i + 1, i + rows_of(c)):
        if not closes:
            iwork[f.mode + k] = FREE
        elif iwork[f.mode + k] == FREE and iwork[f.keep + k] != 0:
            iwork[f.mode + k] = HELD


@kernel
def _revise(one_by_one, s, memory):
    """Change the modes that are contradicted by the forces and accelerations that they give; False if none is.

    If linearly dependent contacts carry nothing, one that pulls may take their place, once.
    """
    work, iwork = memory.work, memory.iwork
    # 1. scales: largest force and acceleration so far, with those of the present modes
    form, f, changed, others = s.newton, s.flow[0], False, False
    for i in range(form.constraints.size):
        others |= iwork[f.mode + i] == REDUNDANT and form.constraints[i].component == 0 and form.constraints[i].always == 0
    for a in range(iwork[f.count]):
        if not rolls(form.constraints[iwork[s.newton.plan[0].active + a]]):
            work[f.force] = max(work[f.force], abs(work[s.newton.plan[0].z + a]))
    # forces between bodies may pull more than external ones
    for i in range(form.constraints.size):
        _, pull = acceleration(form.constraints[i], s.newton.plan[0].acc, s.newton.entries, work)
        work[f.pull + i] = max(work[f.pull + i], pull)
    _note_pull_of_moments(s, memory)
    # 2. rows that may be held, all of them or until the first change
    for i in range(form.constraints.size):
        c = form.constraints[i]
        if iwork[f.keep + i] != 0 and c.bilateral == 0 and not ((one_by_one or others) and changed):
            # a pulling contact beside redundant ones is spared: these may carry in its place
            pulls = iwork[f.mode + i] == HELD and c.component == 0 and c.always == 0 and memory.mem[c.lam] < -_FORCE * work[f.force]
            if others and pulls and iwork[f.spared + i] == 0:
                for k in range(i, i + rows_of(c)):
                    iwork[f.spared + k] = 1
                changed = True
                continue
            changed |= _revise_row(i, c, _FORCE * work[f.force] * unit_of(c, work), _FORCE * work[f.pull + i], s, memory)
    return changed


@tiny
def _note_pull_of_moments(s, memory):
    """Angular accelerations that cancel between forces of contacts: what remains at rest is rounding, by which nothing rolls."""
    work, iwork = memory.work, memory.iwork
    f, p = s.flow[0], s.newton.plan[0]
    for a in range(iwork[f.count]):
        i, pull = iwork[p.active + a], 0.0
        c = s.newton.constraints[i]
        if rolls(c):
            for k in range(iwork[p.sub_row + a], iwork[p.sub_row + a + 1]):
                pull += abs(work[p.W + k] * work[p.z + iwork[p.sub_column + k]])
            first = first_of_disk(i, c)
            for k in range(first, first + c.tangents):
                work[f.pull + k] = max(work[f.pull + k], pull)


@kernel
def _revise_row(i, c, no_force, no_acceleration, s, memory):
    """Change the mode of a row, or of its contact, if it is contradicted."""
    mem, work, iwork = memory.mem, memory.work, memory.iwork
    form, f, mode = s.newton, s.flow[0], iwork[s.flow[0].mode + i]
    a, _ = acceleration(c, s.newton.plan[0].acc, s.newton.entries, work)
    u, _ = velocity(c, form.entries, memory)
    starts = abs(u) <= work[f.slow + i]
    # a guard that has come to zero overrides a small acceleration
    back = no_acceleration if iwork[f.fired + i] == 0 else _DOUBT * no_acceleration
    # 1. bounded force: beyond a bound it slips; a slip that returns sticks
    if c.lower != ABSENT:
        if mode == HELD and (mem[c.lam] < work[c.lower] - no_force or mem[c.lam] > work[c.upper] + no_force):
            iwork[f.mode + i] = SLIP
            work[f.direction + i] = 1.0 if mem[c.lam] < work[c.lower] else -1.0
            return True
        # prescribed motion of other rows begins to move it
        if mode == REDUNDANT and abs(a) > _DOUBT * no_acceleration:
            iwork[f.mode + i], work[f.direction + i] = SLIP, math.copysign(1.0, a)
            return True
        if mode == SLIP and starts and a * work[f.direction + i] < -back:
            iwork[f.mode + i] = HELD
            return True
    # 2. normal: a pulling contact opens, a penetrating one closes
    elif c.component == 0:
        if (mode == HELD and mem[c.lam] < -no_force) or (mode == FREE and a < -no_acceleration):
            _set_contact(i, c, mode == FREE, s, iwork)
            return True
    # 3. sticking disk: beyond its cone it slips, against the friction that it had
    elif begins_disk(c) and mode in (HELD, REDUNDANT):
        normal = mem[form.constraints[i - c.component].lam]
        other = mem[form.constraints[i + 1].lam] if c.tangents == 2 else 0.0
        force = math.hypot(mem[c.lam], other)
        # an existing slip continues on the edge of the cone
        is_on_it = iwork[f.fired + i] != 0 or iwork[f.before + i] == SLIP
        edge = -no_force if is_on_it else no_force
        if force > work[c.mu] * normal + edge and force > 0.0:
            for k in range(c.tangents):
                iwork[f.mode + i + k] = SLIP
                work[f.direction + i + k] = -mem[form.constraints[i + k].lam] / force
            return True
        # a redundant disk that moves slips along its acceleration
        if iwork[f.mode + i - c.component] == HELD and REDUNDANT in (mode, iwork[f.mode + i + c.tangents - 1]):
            b = acceleration(form.constraints[i + 1], s.newton.plan[0].acc, s.newton.entries, work)[0] if c.tangents == 2 else 0.0
            size = math.hypot(a, b)
            if size > _DOUBT * no_acceleration:
                for k in range(c.tangents):
                    iwork[f.mode + i + k], work[f.direction + i + k] = SLIP, (a if k == 0 else b) / size
                return True
    # 4. slipping disk: one that starts against its direction sticks
    elif begins_disk(c) and mode == SLIP:
        along = a * work[f.direction + i]
        if c.tangents == 2:
            along += acceleration(form.constraints[i + 1], s.newton.plan[0].acc, s.newton.entries, work)[0] * work[f.direction + i + 1]
        if slip_of(i, s, memory)[2] <= work[f.slow + i] and along < -back:
            for k in range(c.tangents):
                iwork[f.mode + i + k] = HELD
            return True
    return False


@kernel
def _note_zeros(s, options, memory):
    """Number of orders in which guards start from zero: gaps that touch, and speeds of beginning slip."""
    work, iwork = memory.work, memory.iwork
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    for i in range(form.constraints.size):
        c, zeros, mode = form.constraints[i], 0, iwork[f.mode + i]
        if is_compliant(c):
            continue
        u, _ = velocity(c, form.entries, memory)
        a, pull = acceleration(c, p.acc, form.entries, work)
        work[f.opening + i], work[f.pull + i] = u, max(work[f.pull + i], pull)  # of hinged bodies only joints may pull a row
        # gap of an open contact: zero value; zero rate, if it separates by its acceleration alone; zero acceleration
        if mode == FREE and c.component == 0 and c.always == 0:
            if iwork[f.fired + i] != 0 or position(c, form.entries, memory) <= _ON_IT * work[f.length + i]:
                was_held = iwork[f.before + i] != FREE
                rises = a > _ON_IT * work[f.pull + i] and not (was_held and iwork[f.fired + i] != 0)  # a is 0 where no force is left
                nothing = _FORCE * work[f.pull + i] * (_DOUBT if was_held else 1.0)  # next to no force has held it
                zeros = 1 if abs(u) > work[f.slow + i] else 2 if rises or abs(a) > nothing else 3
        # speed of a slip that begins from rest
        elif mode == SLIP and (c.component == 0 or begins_disk(c)) and slip_of(i, s, memory)[2] <= work[f.slow + i]:
            zeros = 1 if abs(a) > _FORCE * work[f.pull + i] else 2
        iwork[f.zeros + i] = zeros
        work[f.slip + i] = 0.5 * work[f.slow + i]  # so that what stops is at rest
        work[f.creep + i] = max(work[f.slow + i], _CREEPS * options.h * work[f.pull + i])
