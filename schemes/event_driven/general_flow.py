"""The motion of a first-order system in its modes: one step of Dormand and Prince's method, or of Radau IIA, to the first event in it.

Guards are w of rows at a bound, and the distance of lambda of HELD rows to its bounds.
"""

import math

from nsds._jit import kernel, tiny
from nsds.maths.polynomials import GUARD_DEGREE, GUARD_NODES, NO_ROOT, evaluate, first_root, interpolate_guard
from nsds.schemes.event_driven import dopri5, radau5
from nsds.schemes.event_driven.general_outputs import evaluate_outputs, follow_bounds, hold, linearise, set_difference
from nsds.schemes.event_driven.general_tables import EITHER, STIFF
from nsds.schemes.event_driven.switched_rows import HELD, LOWER
from nsds.schemes.sides import clamped
from nsds.status import CONVERGED, STEP_COLLAPSED

_ATTEMPTS = 200  # at a step
LIMITED, _FREE = 15, 6  # steps that stability limits, after which a motion is stiff; so many others in a row, and it is not
_SELDOM = 16  # of so many steps one is checked, until one is limited
_MANY, _MOST = 20_000, 1e6  # such steps, after which a motion does not get on if more than so many are in the time between rows
_SHORTEST = 2.0**-50  # relative to the time: shorter steps make no progress
_TOGETHER = 1e-10  # of the step: guards that come to zero within that time do so simultaneously
_NO_VALUE, _NO_FORCE = 2.0**-48, 1e-9  # relative to the largest w, or lambda, so far: smaller guards start from zero
_NO_SLOPE, _MOST_SLOPE = 1e-9, 1e-5  # relative to the coefficients of a guard; ten times as much for each event without motion
_LANDINGS, _LANDED = 6, 2.0**-50  # steps to the event, and error of its time, relative to the time
_STRAY, _PROBE = 1e-2, 1e-4  # of the step to it: error of dense output in its time, and distance of a probe before it
_IS_LEFT = 1e-6  # of the range of a guard: one that is declared to start from zero is smaller
_OF_SLOPES = 64.0  # of the noise of a guard: that of its coefficients
_SECTIONS, _USUAL_SECTIONS = 200, 16  # of a step, at most, and without counting as more effort
_REPEATED = 4  # steps that a repeated attempt, and a further section, count for
_NEAREST, _FARTHER = 2.0**-36, 16.0  # of a step: first distance at which an event is searched, and its growth
_RESOLVED = 2.0**-40  # relative to the time: within less a guard follows the rounding of t
_UNIT = 2.0**-52
_EARLY = 0.125  # of a section: roots before that are searched again in a shorter one
_NARROWEST, _INTERPOLATED = 2.0**-8, 1e-7  # section of a step, and interpolation error of a guard, of its range


@kernel
def _derivative(t, x, out, s, functions, options, memory):
    """x' at the state work[x:] into work[out:]; the options are not read. Returns a status."""
    work = memory.work
    f = s.flow[0]
    status = hold(clamped(t, f, work), x, s, functions, memory)
    for j in range(f.n):
        work[out + j] = work[f.xdot + j]
    return status


@tiny
def _time_in_step(t, theta, h):
    """``t + theta h``."""
    return t + theta * h


_explicit_step = dopri5.step_of("first_order", _derivative, _time_in_step)
_note_slopes, _stiff_step = radau5.steps_of("first_order", _derivative, _time_in_step)


@kernel
def _advance(t, h, s, functions, options, memory):
    """A step of length h from work[f.x:]: x_new, its derivative, dense output. Returns (status, error, infinite where a stage fails)."""
    f, n = s.flow[0], s.flow[0].n
    if memory.iwork[f.stiff] == 0:
        return _explicit_step(t, h, s, functions, options, memory)
    for a in range(n):
        memory.work[f.poly + dopri5.DEGREE * n + a] = 0.0
    status, error = _stiff_step(t, h, s, functions, options, memory)
    starts = False
    for i in range(f.m):
        starts |= memory.iwork[f.zero + i] != 0
    if starts and error < math.inf:  # the direction in which a guard leaves zero is that of its rate at the start, not of the stages
        radau5.meet_rate(n, h, f.k, f, memory.work)
    return status, error


@kernel
def move(t, t_end, s, functions, options, memory):
    """One accepted step from the state in work[f.x:] towards t_end, or to the first event in it. Returns (status, time, is_event)."""
    work, iwork = memory.work, memory.iwork
    f, n, status = s.flow[0], s.flow[0].n, CONVERGED
    # 1. slope at the start, unless the last step has given it
    if iwork[f.fresh] != 0:
        set_difference(work[f.step] if work[f.step] > 0.0 else 1e-3 * options.h, f, work)
        status = _derivative(t, f.x, f.k, s, functions, options, memory)
        iwork[f.fresh] = 0
    # 2. tolerances and step size
    _set_tolerances(s, options, memory)
    if not work[f.step] > 0.0:
        work[f.step], work[f.error] = dopri5.first_step(n, options.h, f.x, f.k, options.rtol, f.atol, work), 1.0
    h, error, theta, length, is_event = min(work[f.step], t_end - t), math.inf, NO_ROOT, 0.0, False
    if iwork[f.stiff] != 0:
        _note_slopes(t, s, functions, options, memory)
    iwork[f.effort] = 1
    # 3. attempts: error of the step, then its first event, to which the step is repeated
    for _ in range(_ATTEMPTS):
        set_difference(h, f, work)
        at, error = _advance(t, h, s, functions, options, memory)
        status = at if status == CONVERGED else status
        error = error if status == CONVERGED else math.inf
        if error <= 1.0:
            theta, which = _first_event(t, h, s, functions, memory)
            is_event, length = theta != NO_ROOT, h
            if is_event:
                status, length, is_event = _land(theta, which, t, h, s, functions, options, memory)
            if status == CONVERGED:
                break
            # no state at the event: a shorter step
            error = math.inf
        if h <= _SHORTEST * max(abs(t), abs(t_end)):
            break
        h *= dopri5.factor(error, work[f.error])
        work[f.step], status = h, CONVERGED
        iwork[f.effort] += _REPEATED
    # 4. no accepted step
    if not error <= 1.0:
        return status if status != CONVERGED else STEP_COLLAPSED, t, False
    # 5. next step size, time and state
    is_checked = iwork[f.stiff] == 0 and (iwork[f.n_limited] > 0 or iwork[f.n_free] % _SELDOM == 0)
    is_limited = is_checked and dopri5.reach(n, h, f.x, f.x_new, f.k, options.rtol, f.atol, work) > dopri5.STABLE
    h_next = h * dopri5.factor(error, work[f.error])
    work[f.error] = error
    work[f.step] = h_next if h < t_end - t else max(h_next, work[f.step])
    t_new = t + length if theta != NO_ROOT else t_end if h >= t_end - t else t + h
    # rows left their start at zero once time has passed
    for i in range(f.m):
        iwork[f.zero + i] = 0 if t_new > t else iwork[f.zero + i]
        iwork[f.fired + i] = iwork[f.fired + i] if is_event else 0
    for j in range(n):
        work[f.x + j], work[f.k + j] = work[f.x_new + j], work[f.k + dopri5.LAST * n + j]
        work[f.x_size + j] = max(work[f.x_size + j], abs(work[f.x + j]))
    # 6. projection: drift is at most that of one step
    put_on_outputs(t_new, s, functions, memory)
    if iwork[f.stiff] == 0 and not is_event and _stays_limited(h, is_limited, f, options, memory):
        return STEP_COLLAPSED, t_new, False
    return CONVERGED, t_new, is_event


@tiny
def begin_flow(f, memory):
    """The flow after an event, whose modes may be others."""
    memory.iwork[f.stiff] = 1 if f.kind == STIFF else 0
    memory.iwork[f.n_limited] = memory.iwork[f.n_free] = 0


@tiny
def _stays_limited(h, is_limited, f, options, memory):
    """Count steps whose length stability limits: the motion is stiff after some of them, and goes on so if it may.

    Else returns whether it does not get on: after many of them, where many more are in the time between two rows.
    """
    iwork = memory.iwork
    iwork[f.n_free] = 0 if is_limited else iwork[f.n_free] + 1
    iwork[f.n_limited] = 0 if iwork[f.n_free] >= _FREE else min(iwork[f.n_limited] + (1 if is_limited else 0), _MANY)
    if f.kind == EITHER and iwork[f.n_limited] >= LIMITED:
        iwork[f.stiff], iwork[f.fresh] = 1, 1
        return False
    return iwork[f.n_limited] >= _MANY and options.h > _MOST * h


@kernel
def _set_tolerances(s, options, memory):
    """Absolute tolerances: of states below 1 relative to the largest of their system so far.

    That is also their change in a step if forces and multipliers did not cancel: states held at 0 are rounding of these.
    """
    work = memory.work
    form, f, h = s.newton, s.flow[0], work[s.flow[0].step]
    for k in range(form.elements.size):
        first, n, size = form.elements[k].dof, form.parts[form.elements[k].part].n, 0.0
        for a in range(first, first + n if options.is_scaled != 0.0 else first):
            terms = abs(work[f.k + a])
            for i in range(f.m):
                terms += abs(work[f.MB + i * f.n + a] * memory.mem[form.constraints[i].lam])
            size = max(size, work[f.x_size + a], h * terms)
        for a in range(first, first + n):
            work[f.atol + a] = options.atol * (min(size, 1.0) if size > 0.0 else 1.0)


@tiny
def _guard(i, side, s, memory):
    """Guard of a row at the last outputs: w at a bound, of a HELD row the distance of lambda to its lower (0) or upper (1) bound.

    With equal bounds there is nothing to switch, whatever the sign of w.
    """
    work = memory.work
    f, p, mode = s.flow[0], s.newton.plan[0], memory.iwork[s.flow[0].mode + i]
    if work[p.lower + i] == work[p.upper + i] and mode != HELD:
        return work[f.y_size + i]
    if mode != HELD:
        return work[f.w + i] if mode == LOWER else -work[f.w + i]
    lam = memory.mem[s.newton.constraints[i].lam]
    return lam - work[p.lower + i] if side == 0 else work[p.upper + i] - lam


@tiny
def _noise(i, s, memory):
    """Rounding of the guard of a row: smaller values are zero."""
    work = memory.work
    f = s.flow[0]
    if memory.iwork[f.mode + i] == HELD:
        return _NO_FORCE * work[f.lam_size + i]
    return _NO_VALUE * (work[f.y_size + i] if s.plain[i] != 0 else work[f.terms + i])


@kernel
def stays(t, s, functions, memory):
    """Whether all guards are positive or zero at t and the state in work[f.x:], up to the rounding of t."""
    f, result = s.flow[0], True
    hold(clamped(t, f, memory.work), f.x, s, functions, memory)
    for number in range(2 * f.m):
        i, side = number // 2, number % 2
        is_held = memory.iwork[f.mode + i] == HELD
        if _is_sampled(number, s, memory) or (side == 0 and not is_held):
            slack = _noise(i, s, memory) if is_held else _RESOLVED * memory.work[f.y_size + i]
            result = result and _guard(i, side, s, memory) >= -slack
    return result


@kernel
def _first_event(t, h, s, functions, memory):
    """First theta at which a guard comes to zero, or NO_ROOT, and its number, 2 i + side. Out: the guards that do, in iwork[f.fired:]."""
    work, iwork = memory.work, memory.iwork
    f, p, best, which = s.flow[0], s.newton.plan[0], NO_ROOT, 0
    # 1. linear guards of rows at a bound: polynomials of the motion
    for i in range(f.m):
        work[f.root + i] = NO_ROOT
        if s.plain[i] != 0 and iwork[f.mode + i] != HELD and work[p.lower + i] < work[p.upper + i]:
            degree = _plain_guard(i, s, memory)
            work[f.root + i] = _root(i, degree, 0.0, _noise(i, s, memory), s, memory)
            if work[f.root + i] < best:
                best, which = work[f.root + i], 2 * i
    # 2. other guards: sampled and interpolated in sections of the step, which are halved until interpolation is accurate
    resolved = min(_RESOLVED * abs(t) / h, 1.0)
    nearest = max(_NEAREST, resolved)
    width, starts = _first_width(nearest, t, h, s, functions, memory)
    begin, narrowest = 0.0, nearest if starts else max(_NARROWEST, resolved)
    for k in range(_SECTIONS if iwork[f.count] > 0 or iwork[f.n_sampled] > 0 else 0):
        if not begin < min(best, 1.0):
            break
        iwork[f.effort] += _REPEATED if k >= _USUAL_SECTIONS else 0
        _sample(t, h, begin, width, s, functions, memory)
        if width > narrowest and not _are_accurate(s, memory):
            width *= 0.5
            continue
        root, number = _sampled_event(begin, width, s, memory)
        # a root near the start of a section is badly resolved: a shorter one
        if root != NO_ROOT and root - begin < _EARLY * width and width > max(resolved, _LANDED):
            width = max(2.0 * (root - begin), resolved, _LANDED)
            continue
        for i in range(f.m):
            work[f.root + i] = min(work[f.root + i], work[f.section + i])
        if root < best:
            best, which = root, number
        begin, narrowest = begin + width, max(_NARROWEST, resolved)
        width = min(2.0 * width, 1.0 - begin)
    # 3. guards that come to zero together are one event
    for i in range(f.m):
        iwork[f.fired + i] = 1 if best != NO_ROOT and work[f.root + i] <= best + _TOGETHER else 0
    return best, which


@kernel
def _first_width(nearest, t, h, s, functions, memory):
    """(width of the first section, whether a guard starts from zero: events, and kinks, may then be nearer than the motion resolves)."""
    f, starts = s.flow[0], False
    for i in range(f.m):
        starts |= memory.iwork[f.zero + i] != 0 and s.plain[i] == 0
    theta = nearest if starts else 1.0
    while theta < 1.0:
        _evaluate_guards(t, h, theta, s, functions, memory)
        for i in range(f.m):
            if s.plain[i] == 0 and memory.iwork[f.mode + i] != HELD and _guard(i, 0, s, memory) < -_UNIT * memory.work[f.y_size + i]:
                return theta, starts
        theta *= _FARTHER
    return 1.0, starts


@kernel
def _evaluate_guards(t, h, theta, s, functions, memory):
    """Outputs, and lambda of HELD rows, at theta of the step."""
    work = memory.work
    f = s.flow[0]
    evaluate(f.n, dopri5.DEGREE, f.poly, theta, f.x_sampled, work)
    if memory.iwork[f.count] > 0:
        hold(clamped(t + theta * h, f, work), f.x_sampled, s, functions, memory)
    else:
        follow_bounds(clamped(t + theta * h, f, work), s, functions, memory)
        evaluate_outputs(clamped(t + theta * h, f, work), f.x_sampled, s, functions, memory)


@kernel
def _sampled_event(begin, width, s, memory):
    """First theta in a section at which a sampled guard comes to zero, or NO_ROOT, and its number. Out: roots of all rows."""
    work = memory.work
    f, best, which = s.flow[0], NO_ROOT, 0
    for i in range(f.m):
        work[f.section + i] = NO_ROOT
    for number in range(2 * f.m):
        i = number // 2
        # linear guards have their roots by then; of a guard that is rounding all over the section the root means nothing
        if not _is_sampled(number, s, memory) or _is_noise(number, s, memory):
            continue
        interpolate_guard(f.guard_value + number * (GUARD_DEGREE + 1), f.guard_poly, f.spare, work)
        root = _root(i, GUARD_DEGREE, begin, _noise(i, s, memory), s, memory)
        if root != NO_ROOT:
            root = begin + width * root
        work[f.section + i] = min(work[f.section + i], root)
        if root < best:
            best, which = root, number
    return best, which


@tiny
def _is_noise(number, s, memory):
    """Whether all values of a guard in a section are rounding, of which coefficients of its polynomial would be many times as large."""
    largest = 0.0
    for node in range(GUARD_DEGREE + 1):
        largest = max(largest, abs(memory.work[s.flow[0].guard_value + number * (GUARD_DEGREE + 1) + node]))
    return largest <= _noise(number // 2, s, memory)


@tiny
def _is_sampled(number, s, memory):
    """Whether a guard, 2 i + side, is one, and has values at points of the step."""
    f, p, i = s.flow[0], s.newton.plan[0], number // 2
    if memory.iwork[f.mode + i] == HELD:
        return abs(memory.work[p.lower + i] if number % 2 == 0 else memory.work[p.upper + i]) < math.inf
    return number % 2 == 0 and s.plain[i] == 0


@kernel
def _are_accurate(s, memory):
    """Whether guards are polynomials in the section, by the last coefficients of their Chebyshev series."""
    work = memory.work
    f, is_accurate = s.flow[0], True
    for number in range(2 * f.m):
        if _is_sampled(number, s, memory):
            interpolate_guard(f.guard_value + number * (GUARD_DEGREE + 1), f.guard_poly, f.spare, work)
            largest = 0.0
            for j in range(1, GUARD_DEGREE + 1):
                largest = max(largest, abs(work[f.spare + j]))
            last = abs(work[f.spare + GUARD_DEGREE]) + abs(work[f.spare + GUARD_DEGREE - 1])
            is_accurate &= last <= max(_INTERPOLATED * largest, _noise(number // 2, s, memory))
    return is_accurate


@kernel
def _plain_guard(i, s, memory):
    """Coefficients of the guard of a row at a bound whose w is ``C x + e``. Returns their degree."""
    work = memory.work
    f, c = s.flow[0], s.newton.constraints[i]
    sign = 1.0 if memory.iwork[f.mode + i] == LOWER else -1.0
    for j in range(dopri5.DEGREE + 1):
        g = work[c.base] if j == 0 else 0.0
        for k in range(c.entry, c.entry_end):
            g += work[s.newton.entries[k].coefficient] * work[f.poly + j * f.n + s.newton.entries[k].dof]
        work[f.guard_poly + j] = sign * g
    work[f.y_size + i] = max(work[f.y_size + i], abs(work[f.guard_poly]))
    return dopri5.DEGREE


@kernel
def _sample(t, h, begin, width, s, functions, memory):
    """Values of all guards at GUARD_NODES of a section of the step."""
    work = memory.work
    f = s.flow[0]
    for node in range(GUARD_DEGREE + 1):
        _evaluate_guards(t, h, begin + GUARD_NODES[node] * width, s, functions, memory)
        for i in range(f.m):
            work[f.terms + i] = max(work[f.terms + i] if node > 0 else 0.0, _terms(i, h, s, memory))
            work[f.y_size + i] = max(work[f.y_size + i], abs(work[f.w + i]))
            work[f.lam_size + i] = max(work[f.lam_size + i], abs(memory.mem[s.newton.constraints[i].lam]))
            for side in range(2):
                work[f.guard_value + (2 * i + side) * (GUARD_DEGREE + 1) + node] = _guard(i, side, s, memory)


@tiny
def _terms(i, h, s, memory):
    """The terms of w of a row at the state in work[f.x_sampled:], and what multipliers change of it in h, together."""
    work = memory.work
    f, c, w, terms = s.flow[0], s.newton.constraints[i], work[s.flow[0].w + i], 0.0
    for k in range(c.entry, c.entry_end):
        coefficient, dof = work[s.newton.entries[k].coefficient], s.newton.entries[k].dof
        term = coefficient * work[f.x_sampled + dof]
        w -= term
        terms += abs(term)
        for j in range(f.m):
            terms += abs(h * coefficient * work[f.MB + j * f.n + dof] * memory.mem[s.newton.constraints[j].lam])
    return terms + abs(w)


@kernel
def _root(i, degree, begin, noise, s, memory):
    """First root of the guard of a row in guard_poly; at the start of a step coefficients that are rounding count as zero."""
    work = memory.work
    f, zeros, size = s.flow[0], 0, 0.0
    for j in range(1, degree + 1):
        size += abs(work[f.guard_poly + j])
    is_zero = begin == 0.0 and memory.iwork[f.zero + i] != 0 and abs(work[f.guard_poly]) <= _IS_LEFT * size  # not where lambda has jumped
    if is_zero or abs(work[f.guard_poly]) <= noise:
        if size <= noise:
            return NO_ROOT
        no_slope = min(_NO_SLOPE * 10.0 ** memory.iwork[f.n_still], _MOST_SLOPE)
        zeros = 1
        while zeros <= degree and abs(work[f.guard_poly + zeros]) <= max(no_slope * size, _OF_SLOPES * noise):
            zeros += 1
    return first_root(degree, f.guard_poly, zeros, 0.0, 1.0, work)


@kernel
def _land(theta, which, t, h, s, functions, options, memory):
    """Repeat the step to the event of dense output, and correct its length until the guard is zero there.

    Returns (status, the length, whether the guard is zero there, up to rounding; if it is still positive, dense output was too
    inaccurate). A step without length keeps the state.
    """
    work = memory.work
    f, i, side = s.flow[0], which // 2, which % 2
    length, most = theta * h, _STRAY * h
    slope, last, last_g = 0.0, length, 0.0
    # 1. step of the present length, and the guard at its end
    for k in range(_LANDINGS if length > _SHORTEST * abs(t) else 0):
        status, error = _advance(t, length, s, functions, options, memory)
        if not error < math.inf:
            return (status if status != CONVERGED else STEP_COLLAPSED), length, False
        if memory.iwork[f.mode + i] != HELD:
            follow_bounds(clamped(t + length, f, work), s, functions, memory)
            evaluate_outputs(clamped(t + length, f, work), f.x_new, s, functions, memory)
        elif memory.iwork[f.stiff] != 0:  # the last state at which a stiff step evaluates may be another one
            hold(clamped(t + length, f, work), f.x_new, s, functions, memory)
        g = _guard(i, side, s, memory)
        # 2. secant; the second length is a probe before the event
        if length != last and g != last_g:
            slope = (g - last_g) / (length - last)
        change = -g / slope if slope != 0.0 else 0.0
        if k == 0:  # the slope needs a second step
            change = -_PROBE * length
        elif abs(change) <= _LANDED * max(abs(t), h):
            break
        # 3. too far from dense output: the event is left for the next step
        elif not abs(change) <= most or not 0.0 < length + change <= h:
            return CONVERGED, length, not g > _noise(i, s, memory)
        last_g, last = g, length
        length += change
        most = 0.5 * abs(change) if k > 0 else most
    # 4. an event at t itself
    if not length > _SHORTEST * abs(t):
        length = 0.0
        for j in range(f.n):
            work[f.x_new + j], work[f.k + dopri5.LAST * f.n + j] = work[f.x + j], work[f.k + j]
    return CONVERGED, length, True


@kernel
def put_on_outputs(t, s, functions, memory):
    """Project x onto w = 0 of the rows that are HELD or came to zero, and whose w has no lambda, which errors of the step violate."""
    work, iwork = memory.work, memory.iwork
    f, form, changed = s.flow[0], s.newton, False
    at = clamped(t, f, work)
    for i in range(f.m):
        c = form.constraints[i]
        if iwork[f.direct + i] != 0 or (iwork[f.mode + i] != HELD and iwork[f.fired + i] == 0):
            continue
        # least change in a weighted norm, repeated for nonlinear rows
        for _ in range(3):
            evaluate_outputs(at, f.x, s, functions, memory)
            if f.is_affine == 0:
                linearise(at, s, functions, memory)
            square = 0.0
            for k in range(c.entry, c.entry_end):
                square += (work[form.entries[k].coefficient] * _weight(form.entries[k].dof, f, work)) ** 2
            if not square > 0.0 or work[f.w + i] == 0.0:
                break
            changed = True
            for k in range(c.entry, c.entry_end):
                dof, coefficient = form.entries[k].dof, work[form.entries[k].coefficient]
                work[f.x + dof] -= work[f.w + i] * coefficient * _weight(dof, f, work) ** 2 / square
    if changed:
        iwork[f.fresh] = 1


@tiny
def _weight(dof, f, work):
    """By how much a state may be moved: in units of its size."""
    return max(abs(work[f.x + dof]), 1e-300)
