"""Projection of rigid bodies on their constraints, after a step of Moreau–Jean or with the choice of its contacts ([Notes], chapter 13).

    q <- q moved by G H^T lambda,      0 = h + H G H^T lambda of equations,      0 <= h + H G H^T lambda  ⟂  lambda >= 0 of gaps

with h and H of the last q, until no constraint is violated. G is the inverse mass, or the identity in coordinates: of x and p with the
constraint ``|p| = 1`` (eq. 13.7) a rotation by ``4 H_omega^T lambda``, which is also ``(T^T T)^-1`` in velocities (eq. 13.12). Bodies turn
along the exponential map, so that p stays unit. Velocities are not changed.

Direct: of all contacts, or of the active ones of the step. Combined: a contact that is violated at the end of the step becomes active in
the step, which is solved again; then pressing contacts are projected onto ``h = 0`` also from above. A contact that was absent at the
start of the step becomes active if all are projected, with all of the same shapes that are violated: after the projection another one may
hide it, and no velocity would ever react.
"""

import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference, kernel, stack, tiny, view
from nsds.collision import WORLD
from nsds.collision.frames import frame_in
from nsds.maths import rotations
from nsds.maths.vectors import norm, times_transposed
from nsds.model.layout import ABSENT
from nsds.schemes.lagrangian.projection import options_of
from nsds.schemes.memory import Allocator, Prepared
from nsds.schemes.rigid import blocks, branches, passing, problem
from nsds.schemes.rigid import collisions as contacts
from nsds.schemes.rigid import moreau_jean as plain
from nsds.schemes.rigid.bodies import State, inverse_matrix, radius_of_gyration
from nsds.schemes.rigid.enabled import is_unmoved
from nsds.schemes.rigid.interactions import evaluate, restore_angles
from nsds.schemes.rigid.moreau_jean import blame, cause_of, grow  # noqa: F401
from nsds.schemes.rigid.tables import EQUALITY, tables
from nsds.solvers.contact.signature import EQUATION
from nsds.status import CONVERGED, INEXACT, UNSUITED, VIOLATED

_FAR = 100.0  # times the largest gap: no lever makes a body move that far
_SHARE = 0.1  # of the tolerance: residual allowed in the solver
_ROUNDING = 2.0**-48  # of the lengths that cancel in a gap, in any units: less is no violation
_OF_SLACK = 1e10 * _ROUNDING  # the same of the slack of a shape, which is 1e-10 of them


@by_reference
class Tables(NamedTuple):
    """Tables of a step with its projection."""

    motion: plain.Tables
    positions: plain.Tables  # the same, but for a plan of its own: impulses of the projection must not overwrite those of the step


def prepare(records, mem, options, h, method):
    """Tables of the step and of the problem of positions."""
    work, iwork = Allocator(records.size), Allocator(records.size)
    lists, words = tables(records, work, iwork), plain.options_of(h, options)
    s = Tables(*(plain.tables_of(lists, words, method, work, iwork, records.size) for _ in range(2)))
    problem.follow_turns(lists, words, s.motion.plan, work)
    return Prepared(s, lists.functions, options_of(h, options, words), work.array(), iwork.array(np.int64), sys.modules[__name__], lists)


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: as without a projection."""
    return plain.start(t, s.motion, functions, options.motion, memory)


@kernel
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, Newton's iterations, residual)."""
    functions = calls.functions
    form, own, p = s.motion, options.motion, s.motion.plan[0]
    # 1. step of Moreau–Jean
    plain.begin(t_new - options.h, own, form, functions, memory)
    were_held = branches.are_held(options.h, view(memory.work, p.w, 6 * p.n_bodies), form.interactions, memory.work)
    n_contacts, n_blocks = problem.choose_active(own, form, memory)
    status, n_iter, residual = _iterate(t_new, n_contacts, n_blocks, form, calls, own, memory)
    note_contacts(n_contacts, form, p, memory)
    total, joined, is_found = n_iter, True, False
    # 2. violated contacts become active, and the step is repeated; each attempt but the last adds at least one
    for attempt in range(1, p.n_contacts + p.n_blocks + 1 if options.every_contact != 0.0 else 1):
        if status not in (CONVERGED, INEXACT) or not joined:
            break
        before, blocks_before = n_contacts, n_blocks
        n_contacts, n_blocks, joined = join(t_new, attempt, n_contacts, n_blocks, s, functions, options, memory)
        is_found = not joined
        if joined:
            restart(t_new - options.h, form.interactions, p, functions, memory)
            status, n_iter, residual = _iterate(t_new, n_contacts, n_blocks, form, calls, own, memory)
            total += n_iter
            # no velocity satisfies the new contacts: they are left to the positions
            if status not in (CONVERGED, INEXACT):
                leave(attempt, before, n_contacts, blocks_before, form, p, memory)
                n_contacts, n_blocks, joined = before, blocks_before, False
                restart(t_new - options.h, form.interactions, p, functions, memory)
                status, n_iter, residual = _iterate(t_new, n_contacts, n_blocks, form, calls, own, memory)
                total += n_iter
    # 3. work of joints, before positions change
    status, residual = plain.judge_work(status, residual, were_held, n_contacts, n_blocks, own, form, memory)
    # 4. projection
    if options.combined != 0.0:
        note_pressing(n_contacts, n_blocks, form, p, memory)
    if status in (CONVERGED, INEXACT):
        projected = project(t_new, is_found, s, calls, options, memory)
        status = status if projected == CONVERGED else projected
    # 5. state, impulses and outputs
    done = plain.commit(t_new, n_contacts, n_blocks, form, functions, own, memory)
    return status if done == CONVERGED else done, total, residual


@kernel
def _iterate(t_new, n_contacts, n_blocks, s, calls, options, memory):
    """As `plain.iterate`, and nothing has passed."""
    status, n_iter, residual = plain.iterate(t_new, n_contacts, n_blocks, s, calls, options, memory)
    passing.keep_from_passing(True, options.h, options.a, s, memory)
    return status, n_iter, residual


@kernel
def note_contacts(n_contacts, s, p, memory):
    """Mark the active contacts of the record, none of which has been added so far. Out: taking, joined."""
    work = memory.work
    for k in range(s.collisions.size):
        for i in range(memory.imem[s.collisions[k].n]):
            work[s.collisions[k].taking + i] = 0.0
    for i in range(n_contacts):
        work[s.collisions[memory.iwork[p.which + p.n_contacts + i]].taking + memory.iwork[p.which + i]] = 1.0
    for k in range(s.interactions.size):
        for i in range(s.interactions[k].m):
            work[s.interactions[k].joined + i] = 0.0


@kernel
def join(t, attempt, n_contacts, n_blocks, s, functions, options, memory):
    """Make contacts active that the end of the step violates; direct: only those of shapes of which one was absent at its start.

    Returns (contacts, blocks of interactions, whether one is new). Out: R of the problem of positions.
    """
    # 1. detected contacts
    imem, work, iwork = memory.imem, memory.work, memory.iwork
    p, own, bodies, joined, of_all = s.positions.plan[0], s.motion.plan[0], s.motion.bodies, False, options.combined != 0.0
    q = view(work, own.q, 7 * p.n_bodies)
    for k in range(s.motion.collisions.size):
        c, of_pair = s.motion.collisions[k], of_all
        find_known(options, k, s.motion, p, q, memory)
        for i in range(iwork[c.found]):
            # alone, one of many corners that come together would tip the body
            if not of_all and (i == 0 or iwork[c.new_a + i] != iwork[c.new_a + i - 1] or iwork[c.new_b + i] != iwork[c.new_b + i - 1]):
                of_pair = _is_one_absent(i, c, options, memory)
            a, b = imem[c.body + iwork[c.new_a + i]], imem[c.body + iwork[c.new_b + i]]
            is_violated = work[c.new_gap + i] < -tolerance_of_contact(options, c, i, memory)
            if not is_violated or (bodies[a].fixed and (b == WORLD or bodies[b].fixed)):
                continue
            number = int(work[c.known + i]) - 1
            is_new = number < 0 and imem[c.n] < c.capacity
            if is_new:
                number = enter(k, i, n_contacts, s.motion, q, memory)
            if is_new or (of_pair and number >= 0 and work[c.taking + number] == 0.0):
                iwork[own.pair + 2 * n_contacts], iwork[own.pair + 2 * n_contacts + 1] = a, b
                iwork[own.which + n_contacts], iwork[own.which + own.n_contacts + n_contacts] = number, k
                work[c.taking + number] = 1.0
                n_contacts, joined = n_contacts + 1, True
    # 2. gaps of interactions
    turn_matrices(p, q, work)
    for k in range(s.motion.interactions.size if of_all else 0):
        it = s.motion.interactions[k]
        if it.always == 0 and work[it.off] == 0.0:
            evaluate(t, it, q, view(work, p.R, 9 * p.n_bodies), functions, memory)
            is_new = False
            for i in range(0, it.m, stride(it)):
                takes_part = blocks.takes_part(it, i, options.motion.gamma * options.h, memory)
                if not takes_part and work[it.h + i] < -tolerance_of_row(options, it, i, s.motion.bodies, q, memory):
                    work[it.joined + i], is_new, joined = attempt, True, True
            if is_new and iwork[own.begin + k] < 0:
                iwork[own.begin + k], n_blocks = n_blocks, n_blocks + it.n_blocks
    return n_contacts, n_blocks, joined


@tiny
def _is_one_absent(i, c, options, memory):
    """Whether a violated contact of the pair of shapes whose contacts begin at the i-th one found is not in the record."""
    a, b, result = memory.iwork[c.new_a + i], memory.iwork[c.new_b + i], False
    while i < memory.iwork[c.found] and memory.iwork[c.new_a + i] == a and memory.iwork[c.new_b + i] == b:
        least = tolerance_of_contact(options, c, i, memory)
        result = result or (memory.work[c.known + i] == 0.0 and memory.work[c.new_gap + i] < -least)
        i += 1
    return result


@kernel
def enter(k, i, n_contacts, s, q, memory):
    """Enter the i-th contact found of collisions k, of which n_contacts are active, into the record. Returns its number. In/out: which."""
    iwork = memory.iwork
    c, own = s.collisions[k], s.plan[0]
    number = contacts.insert(c, i, view(memory.work, own.q_old, 7 * own.n_bodies), q, memory)
    memory.work[c.taking + number] = 0.0
    for j in range(n_contacts):
        if iwork[own.which + own.n_contacts + j] == k and iwork[own.which + j] >= number:
            iwork[own.which + j] += 1
    return number


@kernel
def leave(attempt, n_before, n_contacts, blocks_before, s, p, memory):
    """Deactivate the contacts that were added in an attempt."""
    work, iwork = memory.work, memory.iwork
    for i in range(n_before, n_contacts):
        work[s.collisions[iwork[p.which + p.n_contacts + i]].taking + iwork[p.which + i]] = 0.0
    for k in range(s.interactions.size):
        it = s.interactions[k]
        for i in range(it.m):
            if work[it.joined + i] == attempt:
                work[it.joined + i] = 0.0
        if iwork[p.begin + k] >= blocks_before:
            iwork[p.begin + k] = -1


@kernel
def restart(t, interactions, p, functions, memory):
    """Back to the velocities of the start of the step, and to H of contacts and joints there."""
    work = memory.work
    m = p.n_bodies
    q_old, R = view(work, p.q_old, 7 * m), view(work, p.R, 9 * m)
    plain.restore_velocities(p, work)
    restore_angles(interactions, memory)
    for k in range(interactions.size):
        if interactions[k].gap_function != ABSENT or interactions[k].row != ABSENT:
            evaluate(t, interactions[k], q_old, R, functions, memory)


@kernel
def note_pressing(n_contacts, n_blocks, s, p, memory):
    """Which contacts press in the step: the normal impulse amounts to more than what opens them. Out: pressing, and 2 of taking.

    One of the two is zero by the law; of one that opens, rounding may leave an impulse. Rows that take no part have none.
    """
    work, iwork = memory.work, memory.iwork
    stated, d, w = problem.stated_blocks(n_contacts, n_blocks, p, memory), p.d, view(work, p.w, 6 * p.n_bodies)
    for i in range(n_contacts):
        j, a, b = iwork[p.place + i], iwork[p.body + 2 * i], iwork[p.body + 2 * i + 1]
        rate = work[p.inverse + p.stride * a] + (0.0 if b == WORLD else work[p.inverse + p.stride * b])
        u = contacts.normal_velocity(a, b, view(work, p.frame + 9 * i, 3), view(work, p.lever + 6 * i, 6), w) + work[p.b + d * i]
        if work[p.r + d * i] > 0.0 and work[p.r + d * i] * rate > u:
            work[s.collisions[iwork[p.which + p.n_contacts + j]].taking + iwork[p.which + j]] = 2.0
    for k in range(s.interactions.size):
        it, first = s.interactions[k], iwork[p.begin + k]
        for i in range(0, it.m if it.always == 0 else 0, stride(it)):
            work[it.pressing + i] = 0.0
            if first >= 0:
                at, row = d * first + blocks.place(it, d, i), view(work, it.H + 12 * i, 12)
                u = blocks.velocity(stated.b[at], 0, it.a, it.b, row, w)
                presses = stated.r[at] > 0.0 and stated.r[at] * _rate(it, row, p, work) > u
                work[it.pressing + i] = 1.0 if presses else 0.0


@tiny
def _rate(it, row, p, work):
    """At least the ``H M^-1 H^T`` of a row of an interaction, but for a factor: translation and rotation of each body by themselves."""
    rate = 0.0
    for side in range(2):
        body = it.a if side == 0 else it.b
        if body != ABSENT:
            inverse = view(work, p.inverse + p.stride * body, p.stride)
            for l in range(2):
                rate += norm(view(row, 6 * side + 3 * l, 3)) ** 2 * blocks.block_norm(p.stride, inverse, l, l)
    return rate


@tiny
def stride(interaction):
    """From one row with a gap to the next."""
    return interaction.each


@tiny
def find_known(options, k, form, p, q, memory):
    """The k-th contacts of shapes at q, and which of them are in the record: as far as the step may have opened them. Out: v of p."""
    work, own, c = memory.work, form.plan[0], form.collisions[k]
    ahead, v = max(1.0, options.motion.gamma) * options.h, view(work, p.v, 6 * p.n_bodies)
    for i in range(6 * p.n_bodies):
        v[i] = abs(work[own.v_old + i]) + abs(work[own.v + i])
    memory.iwork[c.found] = min(contacts.find(c, form.interactions, ahead, own.parallel != 0, q, v, memory), c.capacity)
    contacts.recognise(c, memory.iwork[c.found], memory)


@tiny
def tolerance_of_contact(options, c, i, memory):
    """Depth of the i-th contact found that is accepted: see `_tolerance`; lengths are those of its shapes and of their places."""
    a, b = memory.iwork[c.new_a + i], memory.iwork[c.new_b + i]
    return _tolerance(options, _OF_SLACK / _ROUNDING * (memory.work[c.slack + 2 * a] + memory.work[c.slack + 2 * b]))


@tiny
def tolerance_of_row(options, it, i, bodies, q, memory):
    """h of a row that is accepted: see `_tolerance`; lengths are ``|H_v| (|x| + radius of gyration) + |H_omega|``."""
    length = 0.0
    for side in range(2):
        body, row = it.a if side == 0 else it.b, it.H + 12 * i + 6 * side
        if body != ABSENT:
            size = 0.0 if bodies[body].fixed else radius_of_gyration(bodies[body], memory.mem)
            length += norm(view(memory.work, row, 3)) * (norm(view(q, 7 * body, 3)) + size) + norm(view(memory.work, row + 3, 3))
    return _tolerance(options, length)


@tiny
def _tolerance(options, length):
    """Violation that is accepted: that of the options, of what is smaller than 1 that part of its lengths, but no less than rounding."""
    return max(options.constraint_tol * min(length, 1.0), _ROUNDING * length)


@kernel
def project(t, is_found, s, calls, options, memory):
    """Project q of the end of the step onto the constraints. Returns CONVERGED, VIOLATED, or the solver's status. In/out: q of the plan.

    is_found: whether `find_known` has found the contacts at q. The identity depends on units: where bodies are large in them it turns what
    should be lifted. If it ends with a violation, the mass is the metric, from the same q on.
    """
    work, q, kept = memory.work, s.motion.plan[0].q, s.positions.plan[0].q
    for i in range(7 * s.motion.plan[0].n_bodies):
        work[kept + i] = work[q + i]
    status = _project_by(options.by_mass != 0.0, t, is_found, s, calls, options, memory)
    if status == VIOLATED and options.by_mass == 0.0:
        for i in range(7 * s.motion.plan[0].n_bodies):
            work[q + i] = work[kept + i]
        status = _project_by(True, t, False, s, calls, options, memory)
    return status


@kernel
def _project_by(by_mass, t, is_found, s, calls, options, memory):
    """As `project`, in one metric."""
    work = memory.work
    p, own, collisions, interactions = s.positions.plan[0], s.motion.plan[0], s.motion.collisions, s.motion.interactions
    m, status, press = p.n_bodies, VIOLATED, options.combined != 0.0
    q, moved = view(work, own.q, 7 * m), view(work, p.w_free, 6 * m)
    for k in range(int(options.max_rounds) + 1):
        # 1. violations; pressing contacts that contradict each other are, from half of the rounds on, only kept from violation
        press = press and 2 * k < options.max_rounds
        n_contacts, depth, of_contacts = penetrating(is_found and k == 0, press, options, s.motion, p, q, memory)
        n_blocks, violation, of_rows = violated(t, k == 0, press, options, s.motion, p, q, calls.functions, memory)
        wanted, worst = _SHARE * max(of_contacts, of_rows), max(depth, violation)
        is_last = k == int(options.max_rounds)
        # what is small, as far as projections reach
        if worst == 0.0 or (is_last and worst <= options.constraint_tol):
            status = CONVERGED
            break
        if is_last:
            break
        # 2. metric and rows at q
        metric(t, by_mass, s.motion.bodies, p, q, calls.functions, memory)
        solved = CONVERGED
        # 3. problem of positions; rows with bounds have no part in it, nor the impulses from which theirs count
        if p.bounded != 0:
            problem.know_origins(options.h, interactions, p, memory)
        for attempt in range(2):
            state_positions(press, n_contacts, n_blocks, options, interactions, p, memory)
            for i in range(6 * m):
                moved[i] = 0.0
            problem.arrange(n_contacts, problem.has_matrix(n_contacts, n_blocks, p), p, memory)
            state_gaps(press, n_contacts, s.motion.bodies, collisions, p, q, memory)
            if not press or attempt == 1:
                solved = problem.solve_blocks(
                    n_contacts, n_blocks, True, False, s.positions, calls.solver, calls.solver_options, wanted, 1.0, memory
                )
                break
            solved = solve_pressing(n_contacts, n_blocks, s, calls, wanted, memory)
            if solved == CONVERGED and not _is_far(_reach(depth, press, options, s.motion, p, memory), s, memory):
                break
            press = False  # no position near closes all pressing contacts at once: at least none of them is to be violated
        if solved != CONVERGED and not problem.can_go_on(solved):
            status = solved
            break
        # 4. new positions
        inverse, impulse = view(work, p.inverse, p.stride * m), view(work, p.p, 6 * m)
        blocks.multiply_inverse(m, p.stride, inverse, impulse, moved)
        turn_all(p, q, moved, work)
    return status


@kernel
def _is_far(reach, s, memory):
    """Whether a body would move by much more than `_reach`: contacts nearly contradict each other. Work: w_free."""
    work, p, farthest = memory.work, s.positions.plan[0], 0.0
    moved = view(work, p.w_free, 6 * p.n_bodies)
    blocks.multiply_inverse(p.n_bodies, p.stride, view(work, p.inverse, p.stride * p.n_bodies), view(work, p.p, 6 * p.n_bodies), moved)
    for i in range(p.n_bodies):
        farthest = max(farthest, norm(view(moved, 6 * i, 3)))
    return farthest > _FAR * reach


@kernel
def _reach(depth, press, options, s, p, memory):
    """The farthest that a gap, or a row that is off, asks one of its bodies to move, m: of angles at the body's radius of gyration.

    depth: the largest of contacts. s: tables of the step, whose rows `violated` has evaluated.
    """
    work, reach = memory.work, depth
    for k in range(s.interactions.size):
        it = s.interactions[k]
        for i in range(0, it.m if memory.iwork[p.begin + k] >= 0 else 0, stride(it)):
            if not counts(options, it, i, memory):
                continue
            off = abs(work[it.h + i]) if is_closed(press, it, i, work) else -work[it.h + i]
            for side in range(2):
                body, row = it.a if side == 0 else it.b, it.H + 12 * i + 6 * side
                if body != ABSENT and not s.bodies[body].fixed:
                    rate = norm(view(work, row, 3)), norm(view(work, row + 3, 3)) / radius_of_gyration(s.bodies[body], memory.mem)
                    reach = max(reach, off / max(rate[0], rate[1])) if max(rate[0], rate[1]) > 0.0 else reach
    return reach


@tiny
def solve_pressing(n_contacts, n_blocks, s, calls, wanted, memory):
    """Solve the problem in which pressing contacts are equations, by methods with a matrix only. Returns a status."""
    if not problem.has_matrix(n_contacts, n_blocks, s.positions.plan[0]):
        return UNSUITED
    return problem.solve_with_matrix(
        True, calls.solver_options.tol, n_contacts, n_blocks, s.positions, calls.solver, calls.solver_options, wanted, 1.0, memory
    )


@kernel
def penetrating(is_found, press, options, form, p, q, memory):
    """(number, depth, tolerance): detected contacts at q with gaps up to the depth of the deepest, none if that is 0.

    What a contact tolerates is no depth; tolerance: the largest of any. Gaps smaller than the depth are listed too, as bodies that are
    separated may be pushed into others. press: contacts that pressed in the step count by the size of their gap. Unless all are projected,
    contacts that were inactive in the step are ignored. Out: q_old, pair, which of p.
    """
    work, iwork, own, collisions = memory.work, memory.iwork, form.plan[0], form.collisions
    n, depth, tolerance, v, chosen = 0, 0.0, 0.0, view(work, own.v, 6 * p.n_bodies), press or options.every_contact == 0.0
    for i in range(7 * p.n_bodies):
        work[p.q_old + i] = q[i]
    # 1. contacts at q, and the largest depth
    for k in range(collisions.size):
        c = collisions[k]
        if chosen and not is_found:
            find_known(options, k, form, p, q, memory)
        elif not is_found:
            iwork[c.found] = min(contacts.find(c, form.interactions, options.h, own.parallel != 0, q, v, memory), c.capacity)
        for i in range(iwork[c.found]):
            gap = work[c.new_gap + i]
            if options.every_contact != 0.0 or role(c, i, work) > 0.0:
                deep, least = abs(gap) if press and role(c, i, work) > 1.0 else -gap, tolerance_of_contact(options, c, i, memory)
                depth, tolerance = max(depth, deep if deep > least else 0.0), max(tolerance, least)
    # 2. list of those that it may concern
    for k in range(collisions.size if depth > 0.0 else 0):
        c = collisions[k]
        for i in range(iwork[c.found]):
            if work[c.new_gap + i] <= depth and (options.every_contact != 0.0 or role(c, i, work) > 0.0):
                a, b = memory.imem[c.body + iwork[c.new_a + i]], memory.imem[c.body + iwork[c.new_b + i]]
                iwork[p.pair + 2 * n], iwork[p.pair + 2 * n + 1], iwork[p.which + n], iwork[p.which + p.n_contacts + n] = a, b, i, k
                n += 1
    return n, depth, tolerance


@tiny
def role(c, i, work):
    """Role of the i-th contact found: 0, 1 if it was active in the step, 2 if it pressed."""
    number = int(work[c.known + i])
    return work[c.taking + number - 1] if number > 0 else 0.0


@kernel
def state_gaps(press, n, bodies, collisions, p, q, memory):
    """The n penetrating contacts as frictionless ones, in the order of place. Out: the first n of disk, mu, body, frame, lever, b, r.

    press: those that pressed in the step are equations.
    """
    work, iwork = memory.work, memory.iwork
    for i in range(n):
        j = iwork[p.place + i]
        c, number = collisions[iwork[p.which + p.n_contacts + j]], iwork[p.which + j]
        a, b = iwork[p.pair + 2 * j], iwork[p.pair + 2 * j + 1]
        iwork[p.body + 2 * i], iwork[p.body + 2 * i + 1] = a, b
        iwork[p.disk + i] = EQUATION if press and role(c, number, work) > 1.0 else 0
        work[p.mu + 2 * i], work[p.mu + 2 * i + 1] = 0.0, 0.0
        frame_in(c.planar, view(work, c.new_normal + 3 * number, 3), view(work, p.frame + 9 * i, 9))
        for k in range(3):
            x = work[c.new_point + 3 * number + k]
            work[p.lever + 6 * i + k] = x - q[7 * a + k]
            work[p.lever + 6 * i + 3 + k] = 0.0 if b == WORLD else x - q[7 * b + k]
        for k in range(p.d):
            work[p.b + p.d * i + k], work[p.r + p.d * i + k] = work[c.new_gap + number] if k == 0 else 0.0, 0.0
        contacts.state_moments(c.each, i, bodies, p, memory)


@tiny
def turn_matrices(p, q, work):
    """Rotation matrices at q. Out: R."""
    for i in range(p.n_bodies):
        rotations.rotation_matrix(view(q, 7 * i + 3, 4), view(work, p.R + 9 * i, 9))


@kernel
def violated(t, is_first, press, options, s, p, q, functions, memory):
    """(blocks, violation, tolerance): equations, and negative gaps, at q, the largest of ``|h|`` and ``-h``, and of what is tolerated.

    Out: R, begin.

    A gap that was negative in an earlier round is listed again: otherwise two would push the bodies back and forth.
    """
    work, iwork = memory.work, memory.iwork
    R, n, worst, tolerance = view(work, p.R, 9 * p.n_bodies), 0, 0.0, 0.0
    turn_matrices(p, q, work)
    for k in range(s.interactions.size):
        it = s.interactions[k]
        was_listed = not is_first and iwork[p.begin + k] >= 0
        iwork[p.begin + k] = -1
        if not blocks.has_gap(it) or work[it.off] != 0.0:
            continue
        evaluate(t, it, q, R, functions, memory)
        # equations and pressing rows count from both sides
        violation = 0.0
        for i in range(0, it.m, stride(it)):
            if counts(options, it, i, memory):
                off = abs(work[it.h + i]) if is_closed(press, it, i, work) else -work[it.h + i]
                least = tolerance_of_row(options, it, i, s.bodies, q, memory)
                violation, tolerance = max(violation, off if off > least else 0.0), max(tolerance, least)
        if it.law == EQUALITY or violation > 0.0 or was_listed:
            iwork[p.begin + k] = n
            n += it.n_blocks
            worst = max(worst, violation)
    return n, worst, tolerance


@tiny
def counts(options, it, i, memory):
    """Whether row i is projected: all, or the active ones of the step."""
    return options.every_contact != 0.0 or blocks.takes_part(it, i, options.motion.gamma * options.h, memory)


@tiny
def is_closed(press, it, i, work):
    """Whether ``h = 0`` is wanted of row i: of equations, and of contacts that pressed in the step."""
    return it.law == EQUALITY or (press and work[it.pressing + i] != 0.0)


@kernel
def state_positions(press, n_contacts, n_blocks, options, interactions, p, memory):
    """The blocks of interactions: ``H G H^T lambda + h``; of contacts with friction the normal components only."""
    work = memory.work
    stated, d = problem.stated_blocks(n_contacts, n_blocks, p, memory), p.d
    H, diagonal, body, mu, b = stated.H, stated.diagonal, stated.body, stated.mu, stated.b
    # 1. all components padding
    for i in range(12 * d * n_blocks):
        H[i] = 0.0
    for i in range(d * n_blocks):
        diagonal[i], b[i], stated.r[i] = 1.0, 0.0, 0.0
    # 2. rows of listed interactions; a pressing gap is an equation
    for k in range(interactions.size):
        it, first = interactions[k], memory.iwork[p.begin + k]
        if first < 0:
            continue
        for i in range(first, first + it.n_blocks):
            body[2 * i], body[2 * i + 1], mu[2 * i], mu[2 * i + 1] = it.a, it.b, 0.0, 0.0
            stated.disk[i] = EQUATION if it.law == EQUALITY else 0
        for i in range(0, it.m, stride(it)):
            if not counts(options, it, i, memory):
                continue
            to, is_equation = first * d + blocks.place(it, d, i), is_closed(press, it, i, work)
            if is_equation:
                stated.disk[to // d] = EQUATION
            diagonal[to], b[to] = -1.0 if is_equation else 0.0, work[it.h + i]
            for l in range(12):
                H[12 * to + l] = work[it.H + 12 * i + l]


@kernel
def metric(t, by_mass, bodies, p, q, functions, memory):
    """Inverse of the metric of all bodies, in inertial axes. Out: inverse."""
    work = memory.work
    still, nothing = stack(6), stack(9)
    for i in range(9):
        nothing[i] = 0.0
    for i in range(6):
        still[i] = 0.0
    for i in range(p.n_bodies):
        own = view(work, p.inverse + p.stride * i, p.stride)
        # inverse mass: that of the step without velocities and weights of forces
        if by_mass:
            inverse_matrix(
                State(t, 0.0, 0.0, view(q, 7 * i, 7), still), bodies[i], view(work, p.R + 9 * i, 9), nothing, False, functions, memory,
                own, view(work, p.spare, 150),
            )  # fmt: skip
        # identity in coordinates: rotations by 4, see above
        else:
            for k in range(p.stride):
                own[k] = 0.0
            movable = 0.0 if is_unmoved(bodies[i], work) else 1.0
            for k in range(6):
                if p.stride == 36:
                    own[7 * k] = movable if k < 3 else 4.0 * movable
                else:
                    own[0 if k < 3 else 1 + 4 * (k - 3)] = movable if k < 3 else 4.0 * movable


@kernel
def turn_all(p, q, moved, work):
    """Moves x, and turns bodies by rotation vectors in inertial axes. In/out: q."""
    w = stack(3)
    for i in range(p.n_bodies):
        for k in range(3):
            q[7 * i + k] += moved[6 * i + k]
        times_transposed(view(work, p.R + 9 * i, 9), view(moved, 6 * i + 3, 3), w)
        rotations.advance(view(q, 7 * i + 3, 4), w, view(q, 7 * i + 3, 4))
