"""Guards: functions that are positive while the motion is smooth, and the first of them that comes to zero.

Of an open contact the gap; of a closed one its force, and while it sticks the distance to the friction cone; of a slip its speed
along the direction of slip; of a bounded force that holds the distances to its bounds; of compliant rows the one that `choose` gives
(`nsds.schemes.event_driven.compliance`). A guard that starts from zero, in as many orders as `zeros` says, is an event only after it has
left zero.

Of two shapes the least gap counts besides, whichever contact has it: for shapes whose contact point jumps, and for bodies so fast that they
might pass each other between two samples. Then it is followed by steps that no gap can lose faster (conservative advancement).
"""

import math

from nsds._jit import kernel, tiny, view
from nsds.maths.polynomials import GUARD_DEGREE, GUARD_NODES, NO_ROOT, evaluate, first_root, interpolate_guard
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT
from nsds.schemes.event_driven.compliance import is_compliant
from nsds.schemes.event_driven.forces import accelerate, slip_of
from nsds.schemes.event_driven.state import store
from nsds.schemes.lagrangian.outputs import position
from nsds.schemes.lagrangian.relations import INACTIVE
from nsds.schemes.mechanics.bodies import evaluate_interactions, least_gap
from nsds.schemes.mechanics.tables import FREE, HELD, REDUNDANT, SLIP
from nsds.schemes.problem.disks import begins_disk, unit_of
from nsds.schemes.problem.rows import coordinate
from nsds.schemes.sides import clamped

_NO_FORCE = 1e-10  # relative to the largest force: smaller values start from zero
_ROUNDING = 2.0**-44  # relative to the largest lengths so far that cancelled in a gap
_BEFORE, _SMALL_PART = 2.0**-48, 2.0**-10  # relative to the time: distance from which the end of a step is approached; part of the step
_TOGETHER = 1e-13  # of the step: guards that come to zero within that time do so simultaneously
_APART, _SECANTS = 1e-3, 6  # points of the first secant, in theta; how many are drawn
_ON_CONE = 1.0 - 1e-6  # of the capacity of a contact
_SOONER = 1e-9  # of the step: margin by which a gap of shapes must come to zero before a guard of a row to count
_LOOKS, _HALVINGS = 200_000, 200  # evaluations of a gap between two samples; bisections for its zero
_TOUCHES = 1e-12  # relative to the lengths in a gap: smaller ones are none
_NONE, _GAP, _FORCE, _CONE, _SLIP, _BOUNDS, _SOFT = range(7)


@tiny
def _guard_of(i, s, iwork):
    """Kind of the guard of row i."""
    c, mode = s.newton.constraints[i], iwork[s.flow[0].mode + i]
    if is_compliant(c):
        return _NONE if c.bilateral != 0 else _SOFT
    if c.lower != ABSENT:
        return _BOUNDS if mode == HELD else _SLIP if mode == SLIP else _NONE
    if c.component == 0:
        return _NONE if c.always != 0 else _GAP if mode == FREE else _FORCE if mode == HELD else _NONE
    if begins_disk(c):
        return _CONE if mode in (HELD, REDUNDANT) else _SLIP if mode == SLIP else _NONE
    return _NONE


@kernel
def _linear_guard(i, at_velocity, s, memory):
    """Polynomial of the gap, or of the speed along the direction of slip, of a linear relation, into guard_poly."""
    work = memory.work
    form, f = s.newton, s.flow[0]
    c, shift = form.constraints[i], f.n // 2 if at_velocity else 0
    # 1. coefficients by those of the motion, with the size of their terms
    for j in range(memory.iwork[f.degree] + 1):
        g, size = 0.0, 0.0
        for k in range(c.entry, c.entry_end):
            term = work[form.entries[k].coefficient] * work[f.poly + j * f.n + shift + form.entries[k].dof]
            g += term
            size += abs(term)
        work[f.guard_poly + j] = g
        work[f.length + i] = max(work[f.length + i], size if not at_velocity else 0.0)
    # 2. constant term, and sign by the direction of slip
    if at_velocity:
        work[f.guard_poly] += 0.0 if c.rate == ABSENT else work[c.rate]
        for j in range(memory.iwork[f.degree] + 1):
            work[f.guard_poly + j] *= work[f.direction + i]
    else:
        work[f.guard_poly] += 0.0 if c.base == ABSENT else work[c.base]
        work[f.length + i] = max(work[f.length + i], abs(work[f.guard_poly]))


@tiny
def _leaves(values, degree, i, s, work):
    """Whether a gap, of so many values or coefficients, is more than rounding anywhere in the step: two bodies may move side by side."""
    size = 0.0
    for j in range(degree + 1):
        size += abs(work[values + j])
    return size > _ROUNDING * work[s.flow[0].length + i]


@tiny
def _starts(i, degree, s, memory):
    """Whether a speed that is zero at the start of a step exceeds that of rest: a theoretical slip may be held by other contacts."""
    f, size = s.flow[0], 0.0
    for j in range(degree + 1):
        size += abs(memory.work[f.guard_poly + j])
    return memory.iwork[f.zeros + i] == 0 or size > memory.work[f.slip + i]


@tiny
def _acts(i, scale, f, work):
    """Whether a sampled guard of forces is more than rounding anywhere: coefficients of its polynomial are larger than its values."""
    most = 0.0
    for j in range(GUARD_DEGREE + 1):
        most = max(most, abs(work[f.guard_value + i * (GUARD_DEGREE + 1) + j]))
    return most > _NO_FORCE * scale


@kernel
def _root_of_force(degree, scale, s, work):
    """First root of a guard of forces in guard_poly; one that starts from zero counts after it has left it, or never.

    One that falls by rounding before it rises starts from zero, too: bodies at rest that begin to press on each other.
    """
    f, zeros, nothing = s.flow[0], 0, _NO_FORCE * scale
    if abs(work[f.guard_poly]) <= nothing:
        zeros, size = 1, 0.0
        while zeros < degree and -nothing <= work[f.guard_poly + zeros] <= 0.0:
            zeros += 1
        for j in range(zeros, degree + 1):
            size += abs(work[f.guard_poly + j])
        if size <= nothing:
            return NO_ROOT
    return first_root(degree, f.guard_poly, zeros, 0.0, 1.0, work)


@kernel
def _zeros_of(i, at_velocity, s, memory):
    """Number of leading coefficients of a guard in guard_poly that are zero; with three, those that are rounding count, too."""
    work = memory.work
    form, f = s.newton, s.flow[0]
    zeros, c, shift, is_zero = memory.iwork[f.zeros + i], form.constraints[i], f.n // 2 if at_velocity else 0, True
    while is_zero and 3 <= zeros < memory.iwork[f.degree]:
        size = 0.0
        for k in range(c.entry, c.entry_end):
            size += abs(work[form.entries[k].coefficient] * work[f.poly + zeros * f.n + shift + form.entries[k].dof])
        is_zero = abs(work[f.guard_poly + zeros]) <= _ROUNDING * size
        zeros += 1 if is_zero else 0
    return zeros


@kernel
def series_event(s, memory):
    """First event in a step of a linear motion, whose guards are polynomials: theta, or NO_ROOT. Out: root of each guard."""
    work = memory.work
    f, m = s.flow[0], s.newton.constraints.size
    scale, best, degree = work[f.force], NO_ROOT, memory.iwork[f.degree]
    for i in range(m):
        kind, root = _guard_of(i, s, memory.iwork), NO_ROOT
        # gaps and speeds: if they move at all
        if kind in (_GAP, _SLIP):
            _linear_guard(i, kind == _SLIP, s, memory)
            if _starts(i, degree, s, memory) if kind == _SLIP else _leaves(f.guard_poly, degree, i, s, work):
                root = first_root(degree, f.guard_poly, _zeros_of(i, kind == _SLIP, s, memory), 0.0, 1.0, work)
        # forces
        elif kind == _FORCE:
            for j in range(degree + 1):
                work[f.guard_poly + j] = work[f.lam_poly + j * m + i]
            root = _root_of_force(degree, scale, s, work)
        # friction and bounds, on both sides: linear, as the product of both margins would double the degree
        elif kind in (_CONE, _BOUNDS):
            for side in (-1.0, 1.0):
                _margin(i, side, degree, s, work)
                unit = unit_of(s.newton.constraints[i], work)
                root = min(root, _root_of_force(degree, unit * scale, s, work) if work[f.guard_poly] < 1e300 else NO_ROOT)
        work[f.root + i] = root
        best = min(best, root)
    _note_fired(best, s, memory)
    return best


@tiny
def _note_fired(best, s, memory):
    """Which guards come to zero with the first one."""
    f = s.flow[0]
    for i in range(s.newton.constraints.size):
        memory.iwork[f.fired + i] = 1 if best != NO_ROOT and memory.work[f.root + i] <= best + _TOGETHER else 0


@tiny
def _margin(i, side, degree, s, work):
    """Polynomial ``mu lambda_n + side lambda_t`` of a contact in the plane that sticks, or of the distance to a bound, into guard_poly."""
    c, f, m = s.newton.constraints[i], s.flow[0], s.newton.constraints.size
    for j in range(degree + 1):
        g = side * work[f.lam_poly + j * m + i]
        work[f.guard_poly + j] = g + (work[c.mu] * work[f.lam_poly + j * m + i - c.component] if c.lower == ABSENT else 0.0)
    if c.lower != ABSENT:
        work[f.guard_poly] += -work[c.lower] if side > 0.0 else work[c.upper]


@kernel
def first_event(t, h, s, functions, options, memory):
    """First event in a step of which there is dense output: theta, or NO_ROOT. Out: root of each guard.

    Gaps of linear relations are polynomials; other guards are interpolated from their values at some points of the step.
    """
    work, iwork = memory.work, memory.iwork
    constraints, f = s.newton.constraints, s.flow[0]
    # 1. samples, if some guard is not a polynomial of the motion
    if _has_sampled_guard(s, iwork):
        _sample(t, h, s, functions, options, memory)
    # 2. first root of each guard
    scale, best, which = work[f.force], NO_ROOT, ABSENT
    for i in range(constraints.size):
        kind, root = _guard_of(i, s, iwork), NO_ROOT
        # a gap that jumps between contacts is left to the sweep below
        if kind == _GAP and iwork[f.changes + i] != 0:
            pass
        # a linear gap is a polynomial
        elif kind == _GAP and constraints[i].h == ABSENT:
            _linear_guard(i, False, s, memory)
            if _leaves(f.guard_poly, iwork[f.degree], i, s, work):
                root = first_root(iwork[f.degree], f.guard_poly, iwork[f.zeros + i], 0.0, 1.0, work)
        # gaps, speeds and margins: interpolated from samples
        elif kind in (_GAP, _SLIP, _SOFT):
            for j in range(GUARD_DEGREE + 1 if kind != _SLIP else 0):
                work[f.length + i] = max(work[f.length + i], abs(work[f.guard_value + i * (GUARD_DEGREE + 1) + j]))
            stays = kind != _SLIP and not _leaves(f.guard_value + i * (GUARD_DEGREE + 1), GUARD_DEGREE, i, s, work)
            if kind != _SLIP and iwork[f.zeros + i] == 1:  # the rate of the gap at the start is known
                work[f.guard_value + i * (GUARD_DEGREE + 1)] = h * work[f.opening + i]
            root = NO_ROOT if stays else _sampled_root(i, iwork[f.zeros + i], kind, s, work)
        # forces, cones, bounds
        elif kind != _NONE:
            square = scale if kind == _FORCE else (unit_of(constraints[i], work) * scale) ** 2
            if _acts(i, square, f, work):
                interpolate_guard(f.guard_value + i * (GUARD_DEGREE + 1), f.guard_poly, f.spare, work)
                root = _root_of_force(GUARD_DEGREE, square, s, work)
        work[f.root + i] = root
        if root < best:
            best, which = root, i
    # 3. polish the earliest by evaluations of the guard itself, since interpolation is less accurate than the motion
    _note_fired(best, s, memory)
    if which != ABSENT and (_guard_of(which, s, iwork) != _GAP or constraints[which].h != ABSENT):
        best = _polish(best, which, t, h, s, functions, options, memory)
    # 4. gaps of shapes as a whole
    return min(best, _sweep(best, h, s, functions, memory))


@kernel
def _sweep(best, h, s, functions, memory):
    """Time at which two shapes touch before theta = best, without a guard of a row; else best. Out: swept, and fired."""
    iwork = memory.iwork
    f, first = s.flow[0], ABSENT
    for k in range(s.rigid.rows.size):
        row, is_open = s.rigid.rows[k], False
        for l in range(k, k + row.many if row.collision != ABSENT and row.first == k else k):
            is_open |= iwork[f.mode + iwork[s.rigid.rows[l].number]] == FREE
        if is_open:
            root = _first_touch(k, best, h, s, functions, memory)
            if root < best - _SOONER:
                best, first = root, k
    iwork[f.swept] = first
    for i in range(s.newton.constraints.size if first != ABSENT else 0):
        iwork[f.fired + i] = 0
    return best


@kernel
def _first_touch(first, end, h, s, functions, memory):
    """First theta < end at which the least gap of two shapes without impulse comes to zero, by samples; NO_ROOT without one.

    Between two samples it is evaluated again unless they exclude a zero, as its rate is bounded.
    """
    work = memory.work
    row = s.rigid.rows[first]
    nothing, theta, gap = least_length(first, s, memory), 0.0, work[row.least_at]
    for node in range(1, GUARD_DEGREE + 1):
        if theta >= end:
            return NO_ROOT
        high, gap_high = GUARD_NODES[node], work[row.least_at + node]
        rate = h * max(work[row.rate_at + node - 1], work[row.rate_at + node])
        # the next sample may be behind a mesh, which has no inside: then the gap there proves nothing
        is_fast = rate * (high - theta) > max(work[row.thin], gap)
        # 1. conservative advancement: by no more than the gap over its largest rate
        for _ in range(_LOOKS):
            further = theta + max(gap, work[row.thin]) / rate if is_fast else high
            if further >= high:
                further, gap_further = high, gap_high
            else:
                gap_further = _least_at(further, first, s, functions, memory)
            # 2. bisection in the step in which it changes sign
            if gap_further < -nothing:
                return _crossing(theta, gap, further, gap_further, nothing, first, s, functions, memory)
            theta, gap = further, gap_further
            if theta >= high:
                break
    return NO_ROOT


@kernel
def _crossing(low, gap_low, high, gap_high, nothing, first, s, functions, memory):
    """Zero of the least gap of two shapes between low, where it is positive or leaves zero, and high, where it is negative."""
    share, side = 0.5, 0
    for _ in range(_HALVINGS):
        if gap_low > nothing:  # regula falsi, an end that stays has half of its gap (Illinois)
            share = gap_low / (gap_low - gap_high)
        theta = low + share * (high - low)
        if not low < theta < high:
            break
        gap = _least_at(theta, first, s, functions, memory)
        if gap == 0.0:
            return theta
        if gap > 0.0:
            low, gap_low, gap_high, side = theta, gap, (0.5 * gap_high if side > 0 else gap_high), 1
        else:
            high, gap_high, gap_low, side = theta, gap, (0.5 * gap_low if side < 0 and gap_low > nothing else gap_low), -1
    return high


@tiny
def _least_at(theta, first, s, functions, memory):
    """The least gap of two shapes that holds nothing at theta of the step; leaves that state in mem."""
    f = s.flow[0]
    evaluate(f.n, memory.iwork[f.degree], f.poly, theta, f.x_sampled, memory.work)
    store(s, memory, f.x_sampled)
    return least_gap(first, f.mode, s.rigid, functions, memory)


@tiny
def least_length(first, s, memory):
    """Largest gap between two shapes that counts as zero, by the first of their slots."""
    size = 0.0
    for k in range(first, first + s.rigid.rows[first].many):
        size = max(size, memory.work[s.flow[0].length + memory.iwork[s.rigid.rows[k].number]])
    return _TOUCHES * size


@tiny
def _has_sampled_guard(s, iwork):
    """Whether a guard is no polynomial of the state."""
    found = False
    for i in range(s.newton.constraints.size):
        kind = _guard_of(i, s, iwork)
        found |= kind != _NONE and (kind != _GAP or s.newton.constraints[i].h != ABSENT)
    return found


@kernel
def _sampled_root(i, zeros, kind, s, work):
    """First root of a sampled gap or speed; a gap that starts from zero is divided by theta^zeros, its limit there given.

    A speed that starts from zero counts from the speed of rest on: below that it is rounding.
    """
    f, values, begin = s.flow[0], s.flow[0].guard_value + i * (GUARD_DEGREE + 1), 0.0
    # speed: from the sample at which it exceeds that of rest
    if kind == _SLIP:
        in_space, first = s.newton.constraints[i].tangents == 2, 0  # there the speed of rest has been subtracted
        rest = 0.0 if in_space else work[f.slip + i]
        least = -math.inf if in_space else -work[f.slow + i] if zeros > 0 else math.inf
        while first < GUARD_DEGREE and least <= work[values + first] <= rest:
            first += 1
        begin = GUARD_NODES[first]
    # gap: divide by theta^zeros; at theta = 0 by its limit, or by extrapolation, as only the rate is known there
    else:
        for j in range(1, GUARD_DEGREE + 1):
            for _ in range(zeros):
                work[values + j] /= GUARD_NODES[j]
        if zeros > 1:
            begin = GUARD_NODES[1]
            work[values] = work[values + 1] - (work[values + 2] - work[values + 1]) * GUARD_NODES[1] / (GUARD_NODES[2] - GUARD_NODES[1])
    interpolate_guard(values, f.guard_poly, f.spare, work)
    return first_root(GUARD_DEGREE, f.guard_poly, 0, begin, 1.0, work) if begin < 1.0 else NO_ROOT


@tiny
def time_in_step(t, theta, h):
    """``t + theta h``; the end of a step is approached from before it, so that functions that jump there are those of the step."""
    before = _BEFORE * (abs(t) + h)
    return t + theta * h - (before if theta == 1.0 and before < _SMALL_PART * h else 0.0)


@kernel
def _sample(t, h, s, functions, options, memory):
    """Sample all guards at GUARD_NODES of the step."""
    work, iwork = memory.work, memory.iwork
    constraints, rows, f = s.newton.constraints, s.rigid.rows, s.flow[0]
    for k in range(rows.size):
        if rows[k].collision != ABSENT:
            iwork[rows[k].changed] = 0
    # 1. state, forces and gaps at each node
    for node in range(GUARD_DEGREE + 1):
        at = time_in_step(t, GUARD_NODES[node], h)
        evaluate(f.n, iwork[f.degree], f.poly, GUARD_NODES[node], f.x_sampled, work)
        store(s, memory, f.x_sampled)
        if iwork[f.count] > 0 or f.is_compliant != 0:
            accelerate(at, s, functions, options, memory)
        evaluate_gaps(at, s, functions, memory)
        # 2. values of the guards, and least gaps of pairs of shapes
        for i in range(constraints.size):
            work[f.guard_value + i * (GUARD_DEGREE + 1) + node] = _value_of(i, s, memory)
        for k in range(rows.size):
            if rows[k].collision != ABSENT and rows[k].first == k:
                work[rows[k].least_at + node], work[rows[k].rate_at + node] = work[rows[k].least], work[rows[k].rate]
    # 3. pairs whose nearest contact has changed between nodes
    for k in range(rows.size):
        if rows[k].collision != ABSENT:
            iwork[f.changes + iwork[rows[k].number]] = iwork[rows[rows[k].first].changed]


@kernel
def evaluate_gaps(t, s, functions, memory):
    """y of the nonlinear relations that hold nothing, at the state in mem."""
    work = memory.work
    t = clamped(t, s.flow[0], work)
    if s.rigid.bodies.size > 0:
        evaluate_interactions(t, INACTIVE, s.flow[0].mode, s.rigid, functions, memory)
    for k in range(s.newton.relations.size):
        r = s.newton.relations[k]
        acts = False
        for i in range(r.m):
            acts |= memory.imem[r.active + i] != 0
        if not acts and r.h_function != ABSENT:
            for j in range(r.n):
                work[r.x + j] = memory.mem[coordinate(r, j)]
            x, lam, z = view(work, r.x, r.n), view(work, r.lam, r.m), view(memory.mem, r.z, r.n_z)
            call_function(functions, r.h_function, (t, x, lam, z, view(work, r.h, r.m)))


@tiny
def _value_of(i, s, memory):
    """Value of the guard of row i at the state in mem."""
    mem, work = memory.mem, memory.work
    form, f, kind = s.newton, s.flow[0], _guard_of(i, s, memory.iwork)
    c = form.constraints[i]
    if kind == _GAP:
        return position(c, form.entries, memory)
    if kind == _SOFT:
        return work[f.margin + i]
    if kind == _FORCE:
        return mem[c.lam]
    # distance to the cone as a difference of squares: smooth, also where friction is 0
    if kind == _CONE:
        limit = work[c.mu] * mem[form.constraints[i - c.component].lam]
        other = mem[form.constraints[i + 1].lam] if c.tangents == 2 else 0.0
        return limit * abs(limit) - mem[c.lam] ** 2 - other * other
    # product of both distances; a missing bound is no factor
    if kind == _BOUNDS:
        below, above = mem[c.lam] - work[c.lower], work[c.upper] - mem[c.lam]
        return above if below > 1e300 else below if above > 1e300 else below * above
    # speed along the direction of slip, from the speed of rest on
    if kind == _SLIP:
        u, v, _ = slip_of(i, s, memory)
        if c.tangents < 2:
            return u * work[f.direction + i]
        return u * work[f.direction + i] + v * work[f.direction + i + 1] - work[f.slip + i]
    return 1.0


@kernel
def _guard_at(theta, i, t, h, s, functions, options, memory):
    """Guard of a row at theta of the step; leaves that state in mem."""
    f = s.flow[0]
    evaluate(f.n, memory.iwork[f.degree], f.poly, theta, f.x_sampled, memory.work)
    store(s, memory, f.x_sampled)
    if memory.iwork[f.count] > 0 or f.is_compliant != 0:
        accelerate(t + theta * h, s, functions, options, memory)
    evaluate_gaps(t + theta * h, s, functions, memory)
    return _value_of(i, s, memory)


@kernel
def _polish(theta, i, t, h, s, functions, options, memory):
    """The root of a sampled guard along the dense output, from that of its interpolation, by secants."""
    last = theta - min(_APART, 0.1 * theta)
    g_last = _guard_at(last, i, t, h, s, functions, options, memory)
    g = _guard_at(theta, i, t, h, s, functions, options, memory)
    for _ in range(_SECANTS):
        if g == g_last or theta == last:
            break
        new = theta - g * (theta - last) / (g - g_last)
        if not (0.0 < new <= 1.0 and abs(new - theta) <= _APART):
            break
        last, g_last = theta, g
        theta, g = new, _guard_at(new, i, t, h, s, functions, options, memory)
    return theta


@kernel
def note_turns(s, memory):
    """turned: whether a contact in space slips at the end of a step, whose state is in mem, against its direction at the start."""
    iwork = memory.iwork
    f = s.flow[0]
    for i in range(s.newton.constraints.size):
        iwork[f.turned + i] = 0
        if _guard_of(i, s, iwork) == _SLIP and s.newton.constraints[i].tangents == 2:
            u, v, speed = slip_of(i, s, memory)
            is_reversed = u * memory.work[f.direction + i] + v * memory.work[f.direction + i + 1] < 0.0
            iwork[f.turned + i] = 1 if is_reversed and speed > _rest_of(i, s, memory) else 0


@tiny
def _rest_of(i, s, memory):
    """Up to which speed a contact in space whose slip seems to be reversed is at rest; i: its first tangent."""
    f = s.flow[0]
    return memory.work[f.creep + i] if memory.iwork[f.zeros + i] != 0 else memory.work[f.slow + i]


@kernel
def turns(theta, t, h, s, functions, options, memory):
    """Whether the slip of a contact in space is reversed within a step without rest: it turns, faster than the step resolves.

    So it does, too, where it is reversed at the end (`note_turns`) and has never been at rest: stages may all be beyond the turn.
    """
    iwork = memory.iwork
    form, f, row = s.newton, s.flow[0], ABSENT
    for i in range(form.constraints.size):
        if iwork[f.turned + i] != 0 and memory.work[f.root + i] == NO_ROOT:
            return True
    for i in range(form.constraints.size if theta != NO_ROOT else 0):
        if iwork[f.fired + i] != 0 and _guard_of(i, s, iwork) == _SLIP and form.constraints[i].tangents == 2:
            row = i
    if row == ABSENT:
        return False
    _guard_at(theta, row, t, h, s, functions, options, memory)
    return slip_of(row, s, memory)[2] > _rest_of(row, s, memory)


@kernel
def start_together(s, memory):
    """If the force of one contact reaches its cone, redundant contacts that share it are on theirs: their guards have come to zero, too.

    In: lambda at the event in mem.
    """
    form, f, starts = s.newton, s.flow[0], False
    for i in range(form.constraints.size):
        starts |= memory.iwork[f.fired + i] != 0 and _load(i, s, memory) >= _ON_CONE
    for i in range(form.constraints.size if starts else 0):
        if _load(i, s, memory) >= _ON_CONE:
            memory.iwork[f.fired + i] = 1


@tiny
def _load(i, s, memory):
    """Friction relative to the capacity of a sticking disk; i: its first row. 0 of other rows."""
    mem = memory.mem
    form, mode = s.newton, memory.iwork[s.flow[0].mode + i]
    c = form.constraints[i]
    if not begins_disk(c) or mode in (FREE, SLIP):
        return 0.0
    limit = memory.work[c.mu] * mem[form.constraints[i - c.component].lam]
    other = mem[form.constraints[i + 1].lam] if c.tangents == 2 else 0.0
    return math.hypot(mem[c.lam], other) / limit if limit > 0.0 else 0.0
