"""Impact: velocities jump if touching contacts approach, at all of them simultaneously."""

from nsds._jit import kernel, tiny, view
from nsds.model.layout import ABSENT
from nsds.schemes.event_driven.accumulation import note_flight
from nsds.schemes.event_driven.forces import assemble_rows
from nsds.schemes.lagrangian.contact_forces import push_apart
from nsds.schemes.lagrangian.outputs import add_change, keep_state, position, velocity
from nsds.schemes.problem.active_set import extract_pattern, transpose_pattern
from nsds.schemes.problem.box import rounding_of
from nsds.schemes.problem.impact import forget_impact, state_impact
from nsds.status import CONVERGED, INEXACT

_ALIKE = 0.1  # relative difference of two ratios of flight times at which a contact accumulates
_HALF, _TWICE = 4, 2  # slow impacts that are compared with the next ones; least number of a contact that comes to rest with others
_NEAR = 1e-3  # of the threshold of speeds: gaps, relative to the largest lengths, that close with others


@kernel
def solve_impact(t, h, s, calls, options, memory):
    """One problem for all touching contacts: ``0 <= H v+ + e H v-  ⟂  P >= 0`` with friction; bilateral constraints hold, too.

    iwork[keep] gives the rows; contacts at rest have e = 0, and those that come to rest by this impact, if they are all. With one e for
    all contacts and no friction no energy is gained; a contact that opens may still approach by at most e times its speed, and then has an
    impact of its own at once. Other laws of impacts give their velocities themselves, see `nsds.schemes.problem.impact`. Out: v+ in mem,
    impulses in p.total. Returns (status, iterations, residual).

    h: 0 at an event, else a time step, in which the accelerations in p.acc and bounded forces act, too; a contact slower than these
    accelerations can make it in the step is at rest.
    """
    form, p = s.newton, s.newton.plan[0]
    status, n_iter, residual = _strike(h, s, calls, memory)
    if h == 0.0 and is_solved(status) and _count_flights(t, s, options, memory):
        for i in range(p.n_dofs):
            memory.work[p.dv + i] = -memory.work[p.dv + i]
        add_change(True, form.parts, form.elements, p.dv, memory)
        status, n_iter, residual = _strike(h, s, calls, memory)
    return status, n_iter, residual


@kernel
def _strike(h, s, calls, memory):
    """The problem of `solve_impact`, without restitution where keep is 2."""
    work, iwork = memory.work, memory.iwork
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    n, most, status = 0, 0.0, CONVERGED
    # 1. active rows: velocity, restitution, and change by forces in the step
    for i in range(form.constraints.size):
        c = form.constraints[i]
        work[p.total + i] = memory.mem[c.lam] = 0.0
        iwork[p.local + i] = ABSENT
        if iwork[f.keep + i] != 0 and (c.lower == ABSENT or h > 0.0):
            iwork[p.local + i], iwork[p.active + n] = n, i
            ydot, size = velocity(c, form.entries, memory)
            gain, most_gained = _gain(c, h, form.entries, p, work)
            rests = iwork[f.keep + i] == 2 or (c.component == 0 and abs(ydot) <= max(work[f.slow + i], most_gained))
            is_newton = c.e != ABSENT and c.rebound == ABSENT and not rests
            memory.mem[c.ydot], work[p.q + n] = ydot, ydot + (work[c.e] * ydot if is_newton else 0.0) + gain
            most = max(most, size + most_gained)
            n += 1
    work[p.rounding] = rounding_of(most)
    # 2. free jump, and laws of impacts with a path of their own
    for i in range(p.n_dofs):
        work[p.dv + i] = h * work[p.acc + i]
    if p.impact_law != 0:
        status = _collide(n, s, memory)
        if status != CONVERGED:
            return status, 0, 0.0
    # 3. impulses, and velocities that cancelled, as scale of rest
    status, n_iter, residual = push_apart(n, p.dv, 1.0, h if h > 0.0 else 1.0, form, form.bodies, calls, memory)
    for a in range(n):  # velocities that cancel in the jump leave rounding
        i, size = iwork[p.active + a], 0.0
        for k in range(iwork[p.sub_row + a], iwork[p.sub_row + a + 1]):
            size += abs(work[p.W + k] * work[p.z + iwork[p.sub_column + k]])
        work[f.speed + i] = max(work[f.speed + i], size)
    # 4. new velocities
    add_change(True, form.parts, form.elements, p.dv, memory)
    forget_impact(form.constraints, work)  # the problem of forces knows of none
    return status, n_iter, residual


@tiny
def _gain(c, h, entries, p, work):
    """(Change of ydot by the accelerations in p.acc in a step h, the sum of its magnitudes)."""
    gain, size = 0.0, 0.0
    for k in range(c.entry, c.entry_end if h > 0.0 else c.entry):
        term = h * work[entries[k].coefficient] * work[p.acc + entries[k].dof]
        gain += term
        size += abs(term)
    return gain, size


@kernel
def _collide(n, s, memory):
    """Add to q the velocities after an impact by its law. Returns CONVERGED, or IMPACT."""
    work, iwork = memory.work, memory.iwork
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    keep_state(form.parts, form.elements, p.q_old, p.v_old, memory)
    extract_pattern(p, n, form.W_row, form.W_column, iwork)
    transpose_pattern(p, n, iwork)
    assemble_rows(n, s, memory)
    row, column = view(iwork, p.sub_row, n + 1), view(iwork, p.sub_column, iwork[p.sub_row + n])
    status = state_impact(p, n, p.W, row, column, form.constraints, form.entries, memory)
    for a in range(n):
        i = iwork[p.active + a]
        c = form.constraints[i]
        if c.rebound != ABSENT and iwork[f.keep + i - c.component] == 2:
            work[c.rebound] = work[c.blow] = 0.0
        work[p.q + a] += work[c.rebound] if c.rebound != ABSENT else 0.0
    return status


@kernel
def _count_flights(t, s, options, memory):
    """Contacts that come to rest: whose flights shorten by one ratio, and whose speed is small. Their keep becomes 2.

    The sum of the flights to come is ``d q / (1 - q)``; its end is noted in work[tail]. If several contacts strike in turn, flights need
    not have one ratio: then `_dies_out` decides, and all touching contacts come to rest together. Returns whether some come to rest, and no
    other contact strikes: with several values of e, one of them 0, Newton's law may gain energy.
    """
    work, iwork = memory.work, memory.iwork
    form, f, p, die = s.newton, s.flow[0], s.newton.plan[0], False
    # 1. flights of each contact that struck
    for i in range(form.constraints.size):
        if work[p.total + i] > 0.0 and form.constraints[i].component == 0 and form.constraints[i].always == 0:
            d, before, earlier = note_flight(t, i, f, work)
            shrinks = 0.0 < d < before < earlier and abs(before * before - d * earlier) <= _ALIKE * before * before
            if shrinks and work[f.approach + i] <= options.accumulation * work[f.speed + i]:
                iwork[f.keep + i] = 2
                work[f.tail] = max(work[f.tail], t + d * d / (before - d))
            if work[f.approach + i] > work[f.slow + i] and _dies_out(i, t, options.accumulation, f, memory):
                iwork[f.keep + i], die = 2, True
    # 2. contacts that go to rest with one whose impacts die out
    for i in range(form.constraints.size if die else 0):
        c = form.constraints[i]
        if c.component == 0 and c.always == 0 and c.lower == ABSENT and iwork[f.run + i] >= _TWICE:
            y, (u, _) = position(c, form.entries, memory), velocity(c, form.entries, memory)
            if y <= _NEAR * options.accumulation * work[f.length + i] and u <= options.accumulation * work[f.speed + i]:
                iwork[f.keep + i] = 2
    # 3. whether any contact still strikes
    rests, others_strike = False, False
    for i in range(form.constraints.size):
        c = form.constraints[i]
        if c.component == 0 and c.always == 0 and c.lower == ABSENT:
            rests |= iwork[f.keep + i] == 2
            others_strike |= iwork[f.keep + i] == 1 and work[f.approach + i] > work[f.slow + i]
    return rests and not others_strike


@kernel
def _dies_out(i, t, threshold, f, memory):
    """Accumulation test over runs of 8, 16, 32 ... slow impacts: true if they were half as fast, and came sooner, in the second half.

    Notes the extrapolated end of the impacts in work[tail].
    """
    work, iwork = memory.work, memory.iwork
    u, dies = work[f.approach + i], False
    # 1. a fast impact ends the run
    if u > threshold * work[f.speed + i]:
        iwork[f.run + i] = 0
        return False
    # 2. largest speeds in both halves
    iwork[f.run + i] += 1
    n = iwork[f.run + i]
    if n == 1:
        work[f.run_start + i], work[f.run_first + i], work[f.run_second + i] = t, 0.0, 0.0
    work[f.run_second + i] = max(work[f.run_second + i], u)
    # 3. at powers of two: compare, and double the run
    if n >= _HALF and n & (n - 1) == 0:
        first, second = work[f.run_middle + i] - work[f.run_start + i], t - work[f.run_middle + i]
        dies = n > _HALF and second < first and work[f.run_second + i] <= 0.5 * work[f.run_first + i]
        if dies:
            work[f.tail] = max(work[f.tail], t + second * second / (first - second))
        work[f.run_first + i], work[f.run_second + i] = max(work[f.run_first + i], work[f.run_second + i]), 0.0
        work[f.run_middle + i] = t
    return dies


@tiny
def is_solved(status):
    """Whether the result of a solver is good enough to go on with."""
    return status in (CONVERGED, INEXACT)
