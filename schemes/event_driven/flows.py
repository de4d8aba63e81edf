"""The smooth motion between events: one step of Dormand and Prince's method, of Radau IIA, or of the Taylor series of a linear motion.

Either ends where the first guard comes to zero. Both leave the motion in the step as polynomials of ``theta = (time - t) / h`` in [0, 1].
"""

import math

from nsds._jit import inlined, kernel, tiny
from nsds.maths.polynomials import NO_ROOT, evaluate
from nsds.model.layout import ABSENT
from nsds.schemes.event_driven import dopri5, radau5
from nsds.schemes.event_driven.compliance import is_compliant
from nsds.schemes.event_driven.forces import (
    accelerate,
    evaluate_operators,
    factorise,
    factorise_independent,
    hold,
    list_rows,
    push,
    slip_of,
    solve_rows,
    speed_of_rest,
    turn,
)
from nsds.schemes.event_driven.guards import first_event, least_length, note_turns, series_event, time_in_step, turns
from nsds.schemes.event_driven.state import add, load, store
from nsds.schemes.event_driven.tables import SERIES_DEGREE
from nsds.schemes.event_driven.time_dependent_forces import JUMP, at_foretold_jump, before_jump, missing_in_forces, next_jump, note_jump
from nsds.schemes.lagrangian.outputs import lengths, position, velocity
from nsds.schemes.lagrangian.relations import ACTIVE
from nsds.schemes.linear_algebra import apply_inverses, subtract_product
from nsds.schemes.mechanics.bodies import LOST, SAME, rates, renew_contacts
from nsds.schemes.mechanics.tables import FREE, HELD, REDUNDANT, SLIP
from nsds.schemes.problem.disks import begins_disk, rolls
from nsds.schemes.problem.rows import VELOCITY
from nsds.status import CONVERGED, NON_FINITE, SINGULAR_STEP, STEP_COLLAPSED

_ATTEMPTS = 200  # at a step
_SHORTEST = 2.0**-50  # relative to the time: shorter steps make no progress
_ROUNDING = 2.0**-54  # relative to the largest term: smaller ones of a series are rounding
_OFF = 2.0**-50  # relative to the terms that cancel: smaller deviations are not projected
_PROJECTIONS = 3
_STRAY, _OPENED = 1e-6, 1e3  # of the lengths in a gap, and of the largest opening of an equation: no projection moves a row by more,
_STEPS = 10.0  # but by so many times the error of a step
_LEFT = 1e-6  # of the squares of velocities that a projection takes away: more is left by none
_DRIVEN, _LOUD = 1e-3, 1e6  # of the impulses times the speeds: a projection of velocities adds no more energy, but what moves by itself may


@kernel
def _derivative(t, x, out, s, functions, options, memory):
    """x' = (v, a) at the state in work[x:], which is in mem afterwards. Returns a status."""
    work = memory.work
    n = s.flow[0].n // 2
    store(s, memory, x)
    status = accelerate(t, s, functions, options, memory)
    if s.rigid.bodies.size > 0:
        rates(s, memory, out)
        return status
    for i in range(n):
        work[out + i], work[out + n + i] = work[x + n + i], work[s.newton.plan[0].acc + i]
    return status


_explicit_step = dopri5.step_of("lagrangian", _derivative, time_in_step)
_note_slopes, _stiff_step = radau5.steps_of("lagrangian", _derivative, time_in_step)


@kernel
def runge_kutta_step(t, t_end, s, functions, options, memory):
    """One accepted step from the state in mem towards t_end, or to the first event in it. Returns (status, time reached).

    ``iwork[first_event]`` tells whether an event ends it.
    """
    work = memory.work
    f, n, status = s.flow[0], s.flow[0].n, CONVERGED
    # 1. slope at the start, unless the last step has given it (first same as last)
    if memory.iwork[f.fresh] != 0:
        load(s, memory, f.x)
        status = _derivative(t, f.x, f.k, s, functions, options, memory)
        memory.iwork[f.fresh] = 0
    # 2. step size
    _set_tolerances(s, options, work)
    if not work[f.step] > 0.0:
        work[f.step], work[f.error] = dopri5.first_step(n, options.h, f.x, f.k, options.rtol, f.atol, work), 1.0
    h, error, theta = min(work[f.step], t_end - t), math.inf, NO_ROOT
    if f.is_stiff != 0:
        _note_slopes(t, s, functions, options, memory)
    # 3. attempts until the error is accepted
    for _ in range(_ATTEMPTS):
        foresee(h, s, work)
        status, error = _try_step(t, h, s, functions, options, memory)
        is_shortest = h <= _SHORTEST * max(abs(t), abs(t_end))
        # guards are evaluated on accepted steps only; one whose slip turns within is halved, so that its reversal is resolved
        if error <= 1.0:
            _set_headings(s, work)
            note_turns(s, memory)
            theta = first_event(t, h, s, functions, options, memory)
            if is_shortest or not turns(theta, t, h, s, functions, options, memory):
                break
            h *= 0.5
        elif is_shortest:
            break
        else:
            h *= dopri5.factor(error, work[f.error])
        work[f.step] = h
    # 4. no accepted step: the state at its start is restored
    if not error <= 1.0:
        store(s, memory, f.x)
        return status if status != CONVERGED else STEP_COLLAPSED, t
    # 5. next step size, slope at the end, and the state at the end or the event
    h_next = h * dopri5.factor(error, work[f.error])
    work[f.error] = error
    work[f.step] = h_next if h < t_end - t else max(h_next, work[f.step])
    for i in range(n):
        work[f.k + i] = work[f.k + dopri5.LAST * n + i]
    return CONVERGED, _arrive(theta, t, h, t_end, s, functions, options, memory)


@kernel
def _set_tolerances(s, options, work):
    """Absolute tolerances: of coordinates and velocities below 1 relative to the largest of their system so far.

    That is also their change in a step if forces and multipliers did not cancel: held coordinates are rounding of these.
    """
    f, n, h = s.flow[0], s.flow[0].n // 2, work[s.flow[0].step]
    for i in range(f.n):
        work[f.atol + i] = options.atol
    for k in range(s.newton.elements.size if options.is_scaled != 0.0 and s.rigid.bodies.size == 0 else 0):
        first, many, length, speed = s.newton.elements[k].dof, s.newton.parts[s.newton.elements[k].part].n, 0.0, 0.0
        for i in range(first, first + many):
            work[f.x_size + i] = max(work[f.x_size + i], abs(work[f.x + i]))
            work[f.x_size + n + i] = max(work[f.x_size + n + i], abs(work[f.x + n + i]), h * work[f.acc_size + i])
            length, speed = max(length, work[f.x_size + i]), max(speed, work[f.x_size + n + i])
        length = max(length, h * speed)
        for i in range(first, first + many):
            work[f.atol + i] *= min(length, 1.0) if length > 0.0 else 1.0
            work[f.atol + n + i] *= min(speed, 1.0) if speed > 0.0 else 1.0


@kernel
def _try_step(t, h, s, functions, options, memory):
    """One step from x to x_new, and its dense output. Returns (status, error of the step, infinite where a stage has failed)."""
    f = s.flow[0]
    _set_headings(s, memory.work)
    if f.is_stiff != 0:
        memory.iwork[f.degree] = radau5.DEGREE
        return _stiff_step(t, h, s, functions, options, memory)
    memory.iwork[f.degree] = dopri5.DEGREE
    return _explicit_step(t, h, s, functions, options, memory)


@tiny
def _set_headings(s, work):
    """Reset directions of slip to those at the start of the step: stages may have gone beyond the end of slip."""
    f = s.flow[0]
    for i in range(s.newton.constraints.size):
        work[f.direction + i] = work[f.heading + i]


@kernel
def _arrive(theta, t, h, t_end, s, functions, options, memory):
    """Put the state at the end of a step, or at the event in it, into mem, projected onto active constraints. Returns the time."""
    work, iwork = memory.work, memory.iwork
    f, n = s.flow[0], s.flow[0].n
    # 1. time and state; a step to t_end ends there exactly
    iwork[f.first_event] = 0 if theta == NO_ROOT else 1
    t_new = t + theta * h
    if theta == NO_ROOT:
        t_new = t_end if h >= t_end - t else t + h
        for i in range(n):
            work[f.x + i] = work[f.x_new + i]
    else:
        evaluate(n, iwork[f.degree], f.poly, theta, f.x, work)
        iwork[f.fresh] = 1
    store(s, memory, f.x)
    # 2. contacts of shapes: one that has vanished is an event, and one found by the sweep has fired
    if take_over_contacts(t_new, s, functions, memory):
        iwork[f.first_event] = 1
    if theta != NO_ROOT and s.rigid.collisions.size > 0 and iwork[f.swept] != ABSENT:
        _fire_swept(s, memory)
    # 3. directions of slip in space follow the motion at the end of each step
    for i in range(s.newton.constraints.size if theta == NO_ROOT else 0):
        if iwork[f.mode + i] == SLIP and s.newton.constraints[i].tangents == 2 and begins_disk(s.newton.constraints[i]):
            turn(i, True, s, memory)
            _note_speed(i, options, s, memory)
    # 4. rows that other rows begin to move; guards that start from zero in the next step
    for i in range(s.newton.constraints.size if theta == NO_ROOT else 0):
        if _is_moved(i, s, memory):
            iwork[f.first_event] = iwork[f.fired + i] = 1
        work[f.heading + i] = work[f.direction + i]
        iwork[f.zeros + i] = 1 if iwork[f.zeros + i] != 0 and _still_rests(i, s, memory) else 0
    # 5. projection: drift of positions and velocities is at most that of one step
    if iwork[f.n_equations] > 0:
        is_moved = theta != NO_ROOT and f.is_linear == 0 and put_on_gaps(t_new, 0.0, s, functions, options, memory)
        if put_on_constraints(t_new, 0.0, s, functions, options, memory) or is_moved:
            load(s, memory, f.x)
            iwork[f.fresh] = 1
    return t_new


@tiny
def _is_moved(i, s, memory):
    """Whether other active rows have begun to move a held bounded row."""
    f, c = s.flow[0], s.newton.constraints[i]
    if memory.iwork[f.mode + i] != REDUNDANT or c.lower == ABSENT:
        return False
    return abs(velocity(c, s.newton.entries, memory)[0]) > memory.work[f.slow + i]


@tiny
def foresee(h, s, work):
    """Set the time within which motion may close contacts with meshes, so that they are detected: h."""
    if s.rigid.bodies.size > 0:
        work[s.rigid.plan[0].horizon] = h


@kernel
def take_over_contacts(t, s, functions, memory):
    """Assign the contacts found at the state in mem to slots of shapes. Returns whether a closed one has vanished.

    New ones have no history of flights and impacts; vanished ones are open.
    """
    work, iwork = memory.work, memory.iwork
    rigid, f, is_lost = s.rigid, s.flow[0], False
    if rigid.collisions.size == 0:
        return False
    renew_contacts(f.mode, rigid, functions, memory)
    for k in range(rigid.rows.size):
        row = rigid.rows[k]
        # slots that have another contact than before, or none
        for l in range(rigid.interactions[k].m if row.collision != ABSENT and iwork[row.state] != SAME else 0):
            i = iwork[row.number + l]
            is_lost |= iwork[row.state] == LOST and iwork[f.mode + i] != FREE
            iwork[f.mode + i] = FREE
            iwork[f.zeros + i] = iwork[f.fired + i] = iwork[f.run + i] = 0
            work[f.flight + i], work[f.flight_before + i], work[f.last + i] = 0.0, 0.0, t
    if is_lost:
        list_rows(s, memory)
    return is_lost


@tiny
def _fire_swept(s, memory):
    """The guards of two shapes that meet have come to zero, where none of a row has."""
    iwork = memory.iwork
    rigid, f = s.rigid, s.flow[0]
    first = iwork[f.swept]
    for k in range(first, first + rigid.rows[first].many):
        i = iwork[rigid.rows[k].number]
        is_nearest = memory.work[rigid.interactions[k].h] <= memory.work[rigid.rows[first].least] + least_length(first, s, memory)
        iwork[f.fired + i] = 1 if iwork[f.mode + i] == FREE and is_nearest else iwork[f.fired + i]


@tiny
def _note_speed(i, options, s, memory):
    """Slip in space that has become faster than ever ends at a higher speed of rest; i: its first tangent."""
    work = memory.work
    f, c = s.flow[0], s.newton.constraints[i]
    for k in (i, i + 1):
        _, size = velocity(s.newton.constraints[k], s.newton.entries, memory)
        work[f.speed + k] = max(work[f.speed + k], size)
    slow = speed_of_rest(max(work[f.speed + i], work[f.speed + i + 1]), c.tangents, options)
    for k in range(i if rolls(c) else i - 1, i + 2):
        work[f.slow + k] = max(work[f.slow + k], slow)
        work[f.slip + k] = max(work[f.slip + k], 0.5 * slow)


@tiny
def _still_rests(i, s, memory):
    """Whether a row that has begun to slip is still slower than the speed of rest."""
    f, c = s.flow[0], s.newton.constraints[i]
    if memory.iwork[f.mode + i] != SLIP or not (c.component == 0 or begins_disk(c)):
        return False
    return slip_of(i, s, memory)[2] <= (memory.work[f.slip + i] if c.tangents < 2 else memory.work[f.creep + i])


@kernel
def put_on_gaps(t, span, s, functions, options, memory):
    """Project the positions in mem onto ``y = 0`` of the gaps that have come to zero, together with active constraints, if possible.

    span: time whose motion, besides rounding, may have left these gaps; inf: they may be anywhere, as at the start of a run.

    Active constraints alone would move the others off it again, by more than the height of flights at the end of an accumulation.
    Returns whether it has changed.
    """
    iwork = memory.iwork
    f, m, joins, changed = s.flow[0], s.newton.constraints.size, False, False
    # 1. these gaps count as held for the projection
    for i in range(m):
        c = s.newton.constraints[i]
        iwork[f.before + i] = iwork[f.mode + i]
        closes = iwork[f.fired + i] != 0 and iwork[f.mode + i] == FREE and c.component == 0 and c.lower == ABSENT
        if closes and not is_compliant(c):
            iwork[f.mode + i], joins = HELD, True
    if not joins:
        return False
    list_rows(s, memory)
    # 2. Newton's iteration
    for _ in range(_PROJECTIONS):
        evaluate_operators(t, ACTIVE, s, functions, options, memory)
        if not (factorise_independent(s, memory) and correct(False, options.rtol, span, s, memory)):
            break
        changed = True
    # 3. restore the modes and their operators
    for i in range(m):
        iwork[f.mode + i] = iwork[f.before + i]
    list_rows(s, memory)
    _refresh(t, s, functions, options, memory)
    return changed


@kernel
def put_on_constraints(t, span, s, functions, options, memory):
    """Project the state in mem onto active constraints: positions onto ``y = 0``, then velocities onto ``H v + rate = 0``, along M^-1 B.

    span: see `put_on_gaps`. Returns whether it has changed. Singular active constraints are left as they are.
    """
    changed, is_regular = False, True
    for _ in range(_PROJECTIONS):
        is_regular = _refresh(t, s, functions, options, memory)
        if not (is_regular and correct(False, options.rtol, span, s, memory)):
            break
        changed = True
    if changed:
        is_regular = _refresh(t, s, functions, options, memory)
    return (is_regular and correct(True, options.rtol, 0.0, s, memory)) or changed


@tiny
def _refresh(t, s, functions, options, memory):
    """Update operators of active constraints at the state in mem, if they change. Returns whether they are regular."""
    if s.flow[0].is_linear != 0:
        return True
    evaluate_operators(t, ACTIVE, s, functions, options, memory)
    return factorise(s, memory)


@kernel
def correct(at_velocity, rtol, span, s, memory):
    """One step of a projection of positions, or of velocities; False if nothing deviates by more than rounding, or bodies would stray."""
    iwork = memory.iwork
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    is_off, opening = False, 0.0
    # 1. deviations of the active equations; bounded forces have velocities only
    for e in range(iwork[f.n_equations]):
        i = iwork[p.active + iwork[f.row + e]]
        c, y, size = form.constraints[i], 0.0, 0.0
        if at_velocity:
            y, size = velocity(c, form.entries, memory)
        elif c.level == VELOCITY and c.component == 0 and c.lower == ABSENT:
            y, size = position(c, form.entries, memory), lengths(c, form.entries, memory)
        is_off |= abs(y) > _OFF * size
        opening = max(opening, abs(y) if c.bilateral != 0 else 0.0)
        memory.work[f.rhs + e] = y
    # 2. correction along M^-1 B
    if is_off:
        solve_rows(s, memory)
        for i in range(p.n_dofs):
            memory.work[p.dv + i] = 0.0
        push(p.dv, s, memory)
        is_off = not (_drives(s, memory) if at_velocity else _strays(_OPENED * opening, max(_STRAY, _STEPS * rtol), span, s, memory))
    if is_off:
        add(s, memory, p.dv, at_velocity)
    return is_off


@tiny
def _strays(allowed, share, span, s, memory):
    """Whether the displacement p.dv moves an active row by more than that, a share of the lengths in its gap, and the way of a time span.

    Drift is far smaller: a gap that jumps, or rows that nearly depend on each other, would carry bodies off.
    """
    form, f, result = s.newton, s.flow[0], False
    for e in range(memory.iwork[f.n_equations] if span < math.inf else 0):
        i = memory.iwork[form.plan[0].active + memory.iwork[f.row + e]]
        c = form.constraints[i]
        length = max(memory.work[f.length + i], lengths(c, form.entries, memory))
        most = allowed + share * length + span * max(memory.work[f.speed + i], velocity(c, form.entries, memory)[1])
        result = result or not (rolls(c) or _moved(c, s, memory)[1] <= most)
    return result


@tiny
def _drives(s, memory):
    """Whether the change of velocities p.dv, whose impulses lie in p.z, adds kinetic energy: ``z . (u + H dv / 2)`` is positive.

    Along M^-1 H^T no change does, but friction of rows that slip, where others nearly depend on each other. Rows that move may. Where the
    held rows nearly depend on each other dv may be rounding that their matrix has enlarged: then most of u is left, and dv may do anything.
    """
    form, f, p, done, size, off, left = s.newton, s.flow[0], s.newton.plan[0], 0.0, 0.0, 0.0, 0.0
    for a in range(memory.iwork[f.count]):
        i, z = memory.iwork[p.active + a], memory.work[p.z + a]
        c = form.constraints[i]
        u, _ = velocity(c, form.entries, memory)
        done += z * (u + 0.5 * _moved(c, s, memory)[0])
        size += abs(z) * (memory.work[f.speed + i] + (0.0 if c.rate == ABSENT else _LOUD * abs(memory.work[c.rate])))
    for e in range(memory.iwork[f.n_equations]):
        u, c = memory.work[f.rhs + e], form.constraints[memory.iwork[p.active + memory.iwork[f.row + e]]]
        off, left = off + u * u, left + (u + _moved(c, s, memory)[0]) ** 2
    return done > _DRIVEN * size or left > _LEFT * off


@tiny
def _moved(c, s, memory):
    """(``H dv`` of a row, the sum of the magnitudes that cancel in it) for the change p.dv."""
    change, size = 0.0, 0.0
    for k in range(c.entry, c.entry_end):
        term = memory.work[s.newton.entries[k].coefficient] * memory.work[s.newton.plan[0].dv + s.newton.entries[k].dof]
        change, size = change + term, size + abs(term)
    return change, size


@kernel
def series_step(t, t_end, s, functions, options, memory):
    """One step of a linear motion by its Taylor series, as `runge_kutta_step`; its length is such that truncation is rounding."""
    work, iwork = memory.work, memory.iwork
    f, n = s.flow[0], s.flow[0].n
    # 1. operators of the modes, which are constant in a step
    if iwork[f.fresh] != 0:
        load(s, memory, f.x)
        iwork[f.fresh] = 0
        if not factorise(s, memory):
            return SINGULAR_STEP, t
    # 2. step size; a known jump of forces ends it
    wanted = work[f.step] if work[f.step] > 0.0 else work[f.limit]
    h, is_accurate, beyond, bad, across = min(wanted, t_end - t), False, 0.0, 0.0, 0.0
    foretold = next_jump(t, f, memory)
    is_foretold = foretold < t + h
    h = foretold - t if is_foretold else h
    # 3. polynomials of forces, then the series; a jump inside is bracketed by the last bad and the first good length
    for _ in range(_ATTEMPTS):
        missing, is_bad = missing_in_forces(t, h, s, functions, options, memory)
        if is_bad:
            beyond, bad = h, missing
        else:
            if bad > JUMP:
                h, across = before_jump(t, h, beyond, s, functions, options, memory)
                bad = 0.0
            elif is_foretold:
                h, across = at_foretold_jump(t, h, missing, s, functions, options, memory)
            is_accurate = _expand(h, s, memory)
        if is_accurate or not h > _SHORTEST * max(abs(t), abs(t_end)):
            break
        h, across, is_foretold = 0.5 * h, 0.0, False
        work[f.step] = h
    if not is_accurate:
        return NON_FINITE, t
    # 4. first event
    evaluate(n, iwork[f.degree], f.poly, 1.0, f.x_new, work)
    theta = series_event(s, memory)
    # 5. next step size; after a jump steps are as long as before
    if across > 0.0 and theta == NO_ROOT:
        work[f.step], work[f.resume] = across, wanted
        iwork[f.foretold] += 1 if is_foretold else 0
        note_jump(t + h, f, memory)
    elif h < t_end - t:
        work[f.step], work[f.resume] = min(2.0 * max(h, work[f.resume]), work[f.limit]), 0.0
    return CONVERGED, _arrive(theta, t, h, t_end, s, functions, options, memory)


@inlined
def _force_of_order(j, s, memory):
    """Coefficient of theta^j of ``F - K q - C v`` into p.f."""
    mem, work = memory.mem, memory.work
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    for k in range(form.elements.size):
        el = form.elements[k]
        part, out, x = form.parts[el.part], p.f + el.dof, f.poly + j * f.n + el.dof
        for i in range(part.n):
            if memory.iwork[f.has_forces] != 0:
                work[out + i] = work[f.force_poly + j * (f.n // 2) + el.dof + i] if j <= memory.iwork[f.force_degree] else 0.0
            else:
                work[out + i] = mem[part.fext + el.e * part.stride + i] if j == 0 and part.fext != ABSENT else 0.0
        if part.K != ABSENT:
            subtract_product(part.K_kind, part.n, part.K_nnz, mem, memory.imem, part.K + el.e * part.stride, 1.0, work, x, out)
        if part.C != ABSENT:
            subtract_product(part.C_kind, part.n, part.C_nnz, mem, memory.imem, part.C + el.e * part.stride, 1.0, work, x + f.n // 2, out)


@kernel
def _expand(h, s, memory):
    """Taylor series of the motion over a step: ``q_{j+1} = h v_j / (j + 1)``, ``v_{j+1} = h a_j / (j + 1)``; lambda_j from a_j.

    False if it does not converge to rounding. Out: poly, lam_poly, degree.
    """
    work, iwork = memory.work, memory.iwork
    form, f, p, n, m = s.newton, s.flow[0], s.newton.plan[0], s.flow[0].n // 2, s.newton.constraints.size
    # 1. sizes of the leading terms
    for i in range(f.n):
        work[f.poly + i] = work[f.x + i]
    q_size, v_size, lam_size = _largest(f.poly, n, work), _largest(f.poly + n, n, work), 0.0
    degree, small, least, orders = 0, 0, iwork[f.force_degree], 0
    for j in range(SERIES_DEGREE):
        orders = j + 1
        # 2. acceleration of order j, with the forces of the held rows
        _force_of_order(j, s, memory)
        apply_inverses(form.bodies, p.f, p.acc, p.scratch, memory)
        if iwork[f.count] > 0:
            hold(p.acc, j == 0, s, memory)
        # forces of order j, and the next order of the motion
        lam = 0.0
        for a in range(iwork[f.count]):
            work[f.lam_poly + j * m + iwork[p.active + a]] = work[p.z + a]
            lam = max(lam, abs(work[p.z + a]))
        x, x_next, share = f.poly + j * f.n, f.poly + (j + 1) * f.n, h / (j + 1.0)
        for i in range(n):
            work[x_next + i], work[x_next + n + i] = share * work[x + n + i], share * work[p.acc + i]
        # 3. stop after two orders of rounding, since even or odd terms may vanish, but not before the order of the forces
        q, v = _largest(x_next, n, work), _largest(x_next + n, n, work)
        q_size, v_size, lam_size = max(q_size, q), max(v_size, v), max(lam_size, lam)
        if q > _ROUNDING * q_size or v > _ROUNDING * v_size:
            degree, small = j + 1, 0
        elif lam > _ROUNDING * lam_size:
            degree, small = max(degree, j), 0
        else:
            small += 1
            if (small >= 2 or (q == 0.0 and v == 0.0)) and j >= least:
                break
    iwork[f.degree] = degree
    # forces have one order less than the motion
    for a in range(iwork[f.count] if degree >= orders else 0):
        work[f.lam_poly + orders * m + iwork[p.active + a]] = 0.0
    return orders < SERIES_DEGREE and q_size + v_size + lam_size < math.inf


@tiny
def _largest(x, n, work):
    """The largest magnitude in a vector; NaN where one is."""
    largest, zero = 0.0, 0.0
    for i in range(n):
        largest = max(largest, abs(work[x + i]))
        zero += 0.0 * work[x + i]
    return largest + zero
