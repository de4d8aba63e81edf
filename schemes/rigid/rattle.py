"""Nonsmooth RATTLE of rigid bodies: positions and velocities satisfy the equations, contacts act in both halves of the step.

    M (v - v_k) = h/2 F + H(q_k)^T r,               q_{k+1} = q_k o exp(h v),    h(q_{k+1}) = 0 of the equations
    M (v_{k+1} - v) = h/2 F + H(q_{k+1})^T s,       H v_{k+1} + rate = 0 of these

with ``F = F(t_k + h/2, q_k o exp(h v / 2), v)``, and the laws of friction and bounds for ``H(q_k) v`` in the first half and for
``H(q_{k+1}) v_{k+1}`` in the second. Contacts obey, with y their gaps,

    0 <= y_k + h H(q_k) v  ⟂  r_N >= 0,             0 <= u_N + e u_N^-  ⟂  P_N = r_N + s_N >= 0,       u = H(q_{k+1}) v_{k+1}

the first half of contacts that may close in the step, the second of those that are closed at its end or carried in the first. The first
half controls gaps: it ends where bodies touch, and separates overlapping ones, by at most a hundredth of a body's size in a step, and with
the friction of the stopping impulse only (`collisions.grip`). If bodies turn so far, or are so fast, that it ends with deep penetration, it
is solved again with the contacts found there (`schemes.rigid.overshooting`). The second finds the impulses of contacts in the whole step, P
with friction ``|P_T| <= mu P_N``: so velocities are those of the law, and separated bodies do not fly apart. If joints transmit contact
forces it finds their impulses of the whole step, too, as in the first half they turn with the bodies: such a step is of order 1. u^- is the
velocity of the start, with its change by forces until the gap is closed; 0 for contacts that carried in the last step. Without impacts the
step is symmetric in time up to ``O(h^2)`` of curvature of contacts, which the next step corrects: of order 2, and the energy of a
conservative machine, or of a rolling body, does not drift. Forces are those of the implicit midpoint rule, so that no spring or damper is
too stiff; as under that rule, motions much faster than a step ring and are not damped. Loads of joints act with H of the middle, too, ``F +
H^T Lambda`` (`schemes.rigid.loads`): H of the ends would give a strong force through a joint a lever of ``h v / 2``, in one direction in
the first half and in the other in the second.

If no v is found that keeps joints at their positions and satisfies the laws of contacts, as for a mechanism that is struck while it turns
by a radian in a step, or if joints would drive the motion, they hold for velocities in the first half, and a linear motion beside it closes
them; such a step is INEXACT, and of order 1.

If joints form a tree, both halves are solved in their generalised velocities (`schemes.rigid.trees`). Otherwise, and if that finds nothing,
both halves are steps of Moreau–Jean of half the length: an implicit one whose equations hold for positions (`problem.Options.span`), and a
semi-explicit one without motion and with the same forces.
References: Breuling, Capobianco, Eugster, Leine, Nonlinear Analysis: Hybrid Systems 52 (2024) 101469, whose forces are those of q_k and
q_{k+1}; Jay, SIAM J. Numer. Anal. 45 (2007) 1814–1842: forces by Gauss's, constraints by Lobatto's quadrature.
"""

import math
import sys
from typing import NamedTuple

import numpy as np
from numba import int64

from nsds._jit import by_reference, kernel, stack, tiny, view
from nsds.maths import rotations
from nsds.maths.vectors import cross, dot, norm, solve_3, times
from nsds.model.joints import POINT
from nsds.model.layout import ABSENT, table
from nsds.schemes.memory import Allocator, Prepared
from nsds.schemes.problem.box import worse
from nsds.schemes.problem.smooth_work import of_smooth
from nsds.schemes.rigid import blocks, branches, loads, overshooting, passing, problem, rolling, trees
from nsds.schemes.rigid import collisions as contacts
from nsds.schemes.rigid import moreau_jean as plain
from nsds.schemes.rigid.bodies import EXPONENTIAL, kinetic_energy, move, radius_of_gyration
from nsds.schemes.rigid.enabled import is_gone, is_unmoved
from nsds.schemes.rigid.interactions import evaluate, foresee_angles, keep_angles, restore_angles, row_velocity
from nsds.schemes.rigid.moreau_jean import blame, cause_of, grow  # noqa: F401
from nsds.schemes.rigid.projection import restart, turn_matrices
from nsds.schemes.rigid.tables import EQUALITY, FORCE, INERTIA, MASS, P, V, tables
from nsds.status import CAPACITY, CONVERGED, INEXACT, INFEASIBLE, LEFT_BRANCH, NON_FINITE, VIOLATED

PLAN = table(
    # first half: impulse (6 n) on bodies, in their axes; lam: of interactions
    "impulse", "lam",
    # back (6 n): impulses of the first half that the second one replaces; turned (6 n): their part that turns with the bodies, see
    # `_take_back`
    "back", "turned",
    # way (6 n): velocities by which the bodies move
    "way",
    # w_old (6 n): velocities at q_k, inertial axes; gain (6 n): their change by forces in a step
    "w_old", "gain",
    # v_old (6 n): velocities at q_k; driven (6 n): impulses of drives; both in axes of the bodies
    "v_old", "driven",
)  # fmt: skip
_ROUNDS = 5.0  # of Newton's method for a motion that closes joints
_TURN = 0.5  # radians: largest rotation by a linear motion that closes joints
_FAR = 1 / 4  # radians: rotation in a step up to which impulses of the last one are a useful guess
_NOTHING, _SWEPT = 1e-9, 1e-6  # of the size of a body: negligible overlap, if contacts are solved with a matrix, and by sweeps
_OPEN = 1e-8  # of the coordinates: largest gap of joints at rest
_PUSHED = 0.5  # of the friction of a contact: with less in the first half, separation dominates its impulse there
_FAR_MORE = 10.0  # times the kinetic energy: no valid step adds so much
_GAIN = 0.01  # of the kinetic energy: largest increase by joints and contacts in a step
_MORE = 1.01  # times the energy of rotation without contacts: less is the error of a step, which has both signs
_CLOSED = 1e-6  # of the lengths of joints, in radians, too: smaller gaps count as closed
_APART = 0.01  # likewise: a first half that leaves joints open by more is no solution


@by_reference
class Tables(NamedTuple):
    """Tables of a model that a step reads."""

    motion: plain.Tables
    plan: np.ndarray
    tree: trees.Tables


@by_reference
class Options(NamedTuple):
    """Parameters of a step."""

    h: float
    first: problem.Options
    second: problem.Options
    yielding: problem.Options  # of a first half whose joints hold for velocities,
    closing: problem.Options  # and of the motion that closes them


def prepare(records, mem, options, h, method):
    """Tables and work memory of all members."""
    # 1. model, and the first half as a step of Moreau–Jean
    work, iwork = Allocator(records.size), Allocator(records.size)
    lists = tables(records, work, iwork)
    tol, max_iter = float(options["newton_tol"].item()), float(options["newton_max_iter"].item())
    first = problem.Options(0.5 * h, theta=1.0, a=1.0, gamma=2.0, q_star=0.0, tol=tol, max_iter=max_iter, span=h, is_half=1.0)
    # 2. memory
    motion, places = plain.tables_of(lists, first, method, work, iwork, records.size), np.zeros(1, PLAN)
    work.place(places, impulse=6 * lists.bodies.size, lam=int(lists.interactions["m"].sum()))
    work.place(places, **dict.fromkeys(("back", "turned", "way", "w_old", "gain", "v_old", "driven"), 6 * lists.bodies.size))
    # v_mid stays 0: the second half moves nothing
    work.place(motion.plan, v_mid=6 * lists.bodies.size)
    work.place(motion.plan, E=int(motion.plan["G"][0] - motion.plan["H"][0]))
    # 3. options of the other half, of closing joints, and the tree
    second, closing = first._replace(is_explicit=1.0, a=0.0, span=0.0, gamma=0.0), first._replace(is_explicit=1.0, max_iter=_ROUNDS)
    words, joints = Options(h, first, second, first._replace(span=0.0), closing), trees.joints_of(lists, mem)
    motion = motion._replace(links=loads.plant(lists, joints, motion.plan, work))
    tree = trees.plant(lists, joints, method, work, iwork)
    return Prepared(Tables(motion, places, tree), lists.functions, words, work.array(), iwork.array(np.int64), sys.modules[__name__], lists)


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: rotations, contacts and outputs of the state."""
    trees.forget_places(s.tree, memory)
    return plain.start(t, s.motion, functions, options.first, memory)


@kernel
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, Newton's iterations, residual)."""
    functions, work = calls.functions, memory.work
    form, p, t, first, second = s.motion, s.motion.plan[0], t_new - options.h, options.first, options.second
    # 1. state and forces at the start, active contacts, laws of the first half
    plain.begin(t, first, form, functions, memory)
    for i in range(6 * p.n_bodies):
        work[s.plan[0].w_old + i], work[s.plan[0].v_old + i] = work[p.w + i], work[p.v + i]
    n_contacts, n_blocks, is_alone = 0, 0, form.interactions.size == 0 and not _are_contacts_near(form.collisions, False, memory)
    if not is_alone:
        _halve_impulses(form, memory)
        n_contacts, n_blocks = problem.choose_active(first, form, memory)
        if p.unilateral != 0:
            _note_approach(t, s, first, functions, memory)
            _aim_at_gaps(_NOTHING if problem.has_matrix(n_contacts, n_blocks, p) else _SWEPT, first, s, memory)
            _aim_at_rolling(t, options.h, form, functions, memory)
    # 2. guess, and measures of energy by which the solution is judged
    if p.linear == 0 and form.bodies[0].coupled == 0 and _are_joints_alone(n_contacts, form, memory.iwork):
        _anticipate(first, form, memory)
    before = math.inf if is_alone else _energy_before(options.h, n_contacts, form, memory)
    was_closed = before == math.inf and s.tree.links.size == 0 and _are_joints_closed(options.h, form, memory)
    # 3. first half, and the motion of the bodies
    n_contacts, n_blocks, status, n_iter, residual, way = _solve_first_half(t, before, n_contacts, n_blocks, s, calls, options, memory)
    if n_contacts < 0:
        _restore_impulses(form, memory)
        restore_angles(form.interactions, memory)
        return CAPACITY, n_iter, residual
    if is_alone and not _are_contacts_near(form.collisions, True, memory):
        return worse(status, _end_alone(t_new, s, functions, options, memory)), n_iter, residual
    # 4. middle: contacts and outputs at the new positions; impulses of contacts are set aside
    is_free, done_by_joints, gain = _are_joints_alone(n_contacts, form, memory.iwork), 0.0, _GAIN * before
    is_pushed = not is_free and _are_joints_pushed(form, memory)
    was_closed = was_closed and way == p.v
    if was_closed:
        done_by_joints = branches.work_of_joints(s.plan[0].w_old, n_contacts, n_blocks, form.interactions, p, memory)
    done = _meet(t_new, is_free, n_contacts, n_blocks, s, functions, options, memory)
    opening = _opening(min(residual, _CLOSED), form, memory)
    residual = max(residual, opening)
    if opening > _CLOSED and status in (CONVERGED, INEXACT):
        status = VIOLATED if opening > calls.solver_options.inexact else INEXACT
    # 5. laws of the second half, which covers the impulses of the whole step, if any act
    _turn_over(second.h, s, work)
    keep_angles(form.interactions, memory)  # the second half moves nothing
    if is_free:
        n_contacts, n_blocks = problem.choose_active(second, form, memory)
        is_free = _are_joints_alone(n_contacts, form, memory.iwork)
    if not is_free:
        if p.unilateral != 0:
            if p.linear == 0:  # else the first half has inverted them
                plain.invert_masses(t_new, second, form, functions, memory)
            _keep_energy_of_pushed(options.h, second.h, s, memory)
            _aim_at_velocities(s, memory)
        if is_pushed:
            _forget_first_half(second.h, s, memory)
        n_contacts, n_blocks = problem.choose_active(second, form, memory)
    for i in range(6 * p.n_bodies if was_closed else 0):
        work[s.plan[0].w_old + i] = work[p.w + i]
    # 6. second half; without a valid solution again, without the impulses of the first
    hit, n_second, error = _solve_half(t_new, n_contacts, n_blocks, s, calls, second, memory)
    if hit not in (CONVERGED, INEXACT) or (not is_free and _is_driven(options.h, gain, n_contacts, n_blocks, s, memory)):
        _forget_first_half(second.h, s, memory)
        _forget_restitution(form, memory)
        n_contacts, n_blocks = problem.choose_active(second, form, memory)
        hit, more, error = _solve_half(t_new, n_contacts, n_blocks, s, calls, second, memory)
        status, n_second = worse(status, INEXACT), n_second + more
    # 7. work of joints over both halves
    if was_closed and n_contacts == 0 and hit in (CONVERGED, INEXACT):
        done_by_joints += branches.work_of_joints(s.plan[0].w_old, 0, n_blocks, form.interactions, p, memory)
        share = _beyond_reason(done_by_joints, options.h, s, memory)
        if share > 0.0:
            status, residual = worse(status, LEFT_BRANCH), max(residual, share)
    # 8. state and impulses
    ended = _commit(n_contacts, n_blocks, s, options, memory)
    return worse(worse(ended, done), worse(hit, status)), n_iter + n_second, max(residual, error)


@kernel
def _solve_first_half(t, before, n_contacts, n_blocks, s, calls, options, memory):
    """(contacts, blocks, status, iterations, residual, way): with contacts in which the motion ends too deep; -1 without room for them.

    way: offset of the velocities by which the bodies have moved. before: `_energy_before`.
    """
    work, form, p, n_iter = memory.work, s.motion, s.motion.plan[0], 0
    q, w = view(work, p.q, 7 * p.n_bodies), view(work, p.w, 6 * p.n_bodies)
    for attempt in range(overshooting.ROUNDS + 1):
        # 1. solve
        status, more, residual = _solve_half(t, n_contacts, n_blocks, s, calls, options.first, memory)
        way, n_iter = p.v, n_iter + more
        # 2. no solution, or one in which joints drive, which they cannot alone: joints hold for velocities
        limit = math.inf if _are_joints_alone(n_contacts, form, memory.iwork) else before
        is_found = status in (CONVERGED, INEXACT) and not _has_far_more_energy(status, limit, form, memory)
        if is_found and status == INEXACT and n_blocks > 0:
            is_found = not _is_left_open(t, options.h, _APART, form, calls.functions, memory)
        if not is_found or (n_blocks > 0 and _do_joints_drive(limit, n_contacts, n_blocks, s, memory)):
            way = s.plan[0].way
            n_contacts, n_blocks, status, more, residual = _yield(t, s, calls, options, memory)
            n_iter += more
        # 3. move, and look for contacts that are too deep
        if not _move(options.h, options.first, way, form, memory):
            return -1, n_blocks, status, n_iter, residual, way
        if way != p.v or attempt == overshooting.ROUNDS or not overshooting.is_any(options.h, form, q, memory):
            break
        # 4. add them, and restart from the state in mem, with the impulses found as a guess
        problem.keep_contact_impulses(n_contacts, form, p, memory)
        n_contacts = overshooting.join(options.h, n_contacts, form, q, w, memory)
        if n_contacts < 0:
            break
        n_blocks = _restart(t, options.first, form, calls.functions, memory)
    return n_contacts, n_blocks, status, n_iter, residual, way


@tiny
def _are_joints_alone(n_contacts, s, iwork):
    """Whether nothing but joints and forces acts."""
    return n_contacts == 0 and problem.are_equations(s.interactions, s.plan[0], iwork)


@tiny
def _are_contacts_near(collisions, is_found, memory):
    """Whether there are contacts in the record, closed or near, or where the first half ends."""
    n = 0
    for k in range(collisions.size):
        n += memory.iwork[collisions[k].found] if is_found else memory.imem[collisions[k].n]
    return n > 0


@kernel
def _end_alone(t_new, s, functions, options, memory):
    """The second half and the new state, in mem, of bodies on which forces act alone. Returns CONVERGED or NON_FINITE."""
    work = memory.work
    form, p, m = s.motion, s.motion.plan[0], s.motion.plan[0].n_bodies
    q, v, R = view(work, p.q, 7 * m), view(work, p.v, 6 * m), view(work, p.R, 9 * m)
    for i in range(m):
        rotations.rotation_matrix(view(q, 7 * i + 3, 4), view(R, 9 * i, 9))
        for k in range(6):
            memory.mem[form.bodies[i].q + P + k] = 0.0
    for i in range(7 * m):
        work[p.q_old + i] = q[i]
    for i in range(6 * m):
        work[p.v_old + i], work[p.f_old + i] = v[i], work[p.f + i]
    _fall(t_new, options.second, form, functions, memory)
    is_finite = plain.keep_state(form, q, v, memory)
    plain.to_inertial(m, R, v, view(work, p.w, 6 * m))
    return CONVERGED if is_finite else NON_FINITE


@kernel
def _fall(t, options, s, functions, memory):
    """Half step in which only forces act that depend on t alone or are those of the first half: as `plain.iterate`, without iteration."""
    work = memory.work
    p, m = s.plan[0], s.plan[0].n_bodies
    q, v, w, R = view(work, p.q, 7 * m), view(work, p.v, 6 * m), view(work, p.w, 6 * m), view(work, p.R, 9 * m)
    R_free, impulse, inverse = view(work, p.R_free, 6 * m), view(work, p.p, 6 * m), view(work, p.inverse, p.stride * m)
    problem.clear(p, work)
    if options.is_explicit == 0.0 or p.linear == 0:
        plain.invert_masses(t, options, s, functions, memory)
    plain.evaluate_forces(True, t + 0.5 * options.span, options, s, q, v, functions, memory)
    plain.free_impulse(options, s.bodies, p, v, R, R_free, memory)
    plain.change_velocities(p, R, R_free, impulse, inverse, w, v, work)
    return CONVERGED, 1, 0.0


@kernel
def _solve_half(t, n_contacts, n_blocks, s, calls, options, memory):
    """Half step in the generalised velocities of the joints, if they form a tree; else as `plain.iterate`."""
    form, n_tried = s.motion, 0
    # 1. without interactions, or with constant forces: one problem
    if n_blocks == 0 and (options.is_explicit != 0.0 or form.plan[0].linear != 0):
        if n_contacts == 0:
            return _fall(t, options, form, calls.functions, memory)
        return plain.solve_at_once(t, n_contacts, n_blocks, form, calls, options, memory)
    # 2. tree; a contradiction is a result, too
    n_laws = trees.laws_of(False, n_contacts, n_blocks, form, s.tree, memory)
    if n_laws >= 0:
        if options.span > 0.0:
            status, n_tried, residual = trees.move(t, n_contacts, n_laws, form, s.tree, calls, options, memory)
        else:
            status, n_tried, residual = trees.hold(t, n_contacts, n_laws, form, s.tree, calls, options, memory)
        if status in (CONVERGED, INFEASIBLE):
            return status, n_tried, residual
        plain.restore_velocities(form.plan[0], memory.work)
        problem.choose_blocks(options, form, memory)
    # 3. all bodies
    if options.is_explicit != 0.0 and (form.plan[0].unilateral == 0 or _are_joints_alone(n_contacts, form, memory.iwork)):
        plain.invert_masses(t, options, form, calls.functions, memory)
    status, n_iter, residual = plain.iterate(t, n_contacts, n_blocks, form, calls, options, memory)
    return status, n_tried + n_iter, residual


@kernel
def _restart(t, options, s, functions, memory):
    """A first half again, from the start of the step, with contacts that have joined. Returns the number of blocks of interactions."""
    restart(t, s.interactions, s.plan[0], functions, memory)
    loads.clear(s, memory.work)
    memory.work[s.plan[0].lost] = 0.0
    return problem.choose_blocks(options, s, memory)


@kernel
def _anticipate(options, s, memory):
    """First iterate of Newton's method: after forces at t_k, and half of the impulses of joints of the last step. Out: v, w.

    The velocities at t_k are kept if some body turns too far in a step for this to spare an iteration, or would do so, as after an impact.
    """
    work = memory.work
    p, m, farthest = s.plan[0], s.plan[0].n_bodies, 0.0
    # 1. too much rotation
    for i in range(m):
        farthest = max(farthest, options.span * norm(view(work, p.v_old + 6 * i + 3, 3)))
    if not farthest <= _FAR:
        return
    # 2. impulses: of forces at t_k, and half of those of the last step; force laws are in both, and are counted once
    R, change = view(work, p.R, 9 * m), view(work, p.R_free, 6 * m)
    for i in range(6 * m):
        change[i] = options.h * work[p.f_old + i] + 0.5 * memory.mem[s.bodies[i // 6].q + P + i % 6]
    if p.forces != 0:
        plain.to_inertial(m, R, change, change)
        _count_forces_once(options.h, s, change, memory)
        plain.to_body(m, R, change, change)
    # 3. velocities by them, in axes of the bodies, without what forces resist
    for i in range(m):
        body, turn = s.bodies[i], view(change, 6 * i + 3, 3)
        if is_unmoved(body, work):
            for l in range(6):
                change[6 * i + l] = 0.0
            continue
        for l in range(3):
            change[6 * i + l] /= memory.mem[body.q + MASS]
        solve_3(view(memory.mem, body.q + INERTIA, 9), turn, turn)
        farthest = max(farthest, options.span * norm(turn))
    for i in range(6 * m if farthest <= _FAR else 0):
        work[p.v + i] += change[i]
    plain.to_inertial(m, R, view(work, p.v, 6 * m), view(work, p.w, 6 * m))


@kernel
def _count_forces_once(h, s, change, memory):
    """Subtract from impulses those of force laws that are both in forces at t_k and in half of the last step's. In/out: change (6 n)."""
    work, p = memory.work, s.plan[0]
    for k in range(s.interactions.size):
        it = s.interactions[k]
        for i in range(it.m if it.law == FORCE and memory.iwork[p.begin + k] >= 0 else 0):
            more = memory.mem[it.lam + i] - h * work[it.force_old + i]
            for l in range(6):
                change[6 * it.a + l] += more * work[it.H + 12 * i + l]
                if it.b != ABSENT:
                    change[6 * it.b + l] += more * work[it.H + 12 * i + 6 + l]


@kernel
def _yield(t, s, calls, options, memory):
    """First half with joints at velocity level. Returns (contacts, blocks, status, iterations, residual). Out: way, closing joints."""
    work = memory.work
    form, p, places = s.motion, s.motion.plan[0], s.plan[0]
    # 1. velocities with joints at velocity level
    _aim_at_gaps(math.inf, options.first, s, memory)
    loads.clear(form, work)
    work[p.lost] = 0.0
    held = _hold_velocities(t, s, calls, options, memory)
    for i in range(6 * p.n_bodies):
        work[places.way + i] = work[p.v + i]
    if held[2] != INEXACT:
        return held
    # 2. motion beside it that closes the joints; its impulses are a guess for the same ones
    problem.keep_impulses(held[0], False, options.yielding, form, memory)  # a guess of the same ones
    _close(t, s, calls, options, memory)
    return _hold_velocities(t, s, calls, options, memory)  # whose work is lost


@kernel
def _close(t, s, calls, options, memory):
    """Another motion from where the one by ``way`` ends, with H of there, closes joints. In/out: way, that of both.

    It turns bodies by `_TURN` at most: what wants more is not near.
    """
    work = memory.work
    form, p, h = s.motion, s.motion.plan[0], options.h
    q, v, way, fastest = view(work, p.q, 7 * p.n_bodies), view(work, p.v, 6 * p.n_bodies), view(work, s.plan[0].way, 6 * p.n_bodies), 0.0
    _go(h, way, form, memory)
    for i in range(7 * p.n_bodies):
        work[p.q_old + i] = q[i]
    for i in range(6 * p.n_bodies):
        v[i] = work[p.v_old + i] = work[p.f_old + i] = 0.0
    plain.outputs(t, form.interactions, p, q, v, view(work, p.R, 9 * p.n_bodies), calls.functions, memory)
    keep_angles(form.interactions, memory)
    plain.invert_masses(t, options.closing, form, calls.functions, memory)
    n = problem.list_blocks(problem.EQUATIONS, form.interactions, p, memory)
    plain.iterate(t, 0, n, form, calls, options.closing, memory)
    for i in range(p.n_bodies):
        fastest += norm(view(v, 6 * i + 3, 3)) + 0.0 * norm(view(v, 6 * i, 3))
    share = _TURN / max(_TURN, h * fastest)
    for i in range(p.n_bodies if math.isfinite(fastest) else 0):
        _append(h, share, view(work, p.q_old + 7 * i, 7), view(v, 6 * i, 6), view(memory.mem, form.bodies[i].q, 7), view(way, 6 * i, 6))
    foresee_angles(-h, 1.0, way, way, view(work, p.R, 9 * p.n_bodies), form.interactions, memory)


@tiny
def _append(h, share, q_end, more, q, way):
    """The velocity with which a body goes in h from q to where it comes in ``share h`` from q_end with the velocity more. In/out: way."""
    back, turn, w = stack(4), stack(4), stack(3)
    move(EXPONENTIAL, q_end, share * h, 1.0, more, more, q_end)
    for i in range(4):
        back[i] = q[3 + i] if i == 0 else -q[3 + i]
    rotations.product(back, view(q_end, 3, 4), turn)
    rotations.log_quaternion(turn, w)
    angle = norm(w)
    turns = math.floor((h * dot(view(way, 3, 3), w) / angle - angle) / (2.0 * math.pi) + 0.5) if angle > 0.0 else 0.0
    for i in range(3):
        way[i] = (q_end[i] - q[i]) / h
        way[3 + i] = w[i] * (1.0 + (2.0 * math.pi * turns / angle if angle > 0.0 else 0.0)) / h


@kernel
def _hold_velocities(t, s, calls, options, memory):
    """Velocities with joints at velocity level, from the state in mem, with new R, w and H. Returns as `_yield`, INEXACT at best.

    If nothing is found with forces of the middle, a tree of joints uses those at q_k, bodies without joints those of the motion without
    contacts, and one problem is solved.
    """
    form = s.motion
    # 1. forces of the middle
    n_contacts, n_blocks, status, n_iter, residual = _hold_with_forces(t, form, calls, options.yielding, memory)
    # 2. given forces: a linear problem, which has a solution more often
    if status != CONVERGED and status != INEXACT:
        n_contacts, n_blocks = _begin_anew(t, form, calls.functions, options.second, memory)
        n_laws, left = trees.laws_of(True, n_contacts, n_blocks, form, s.tree, memory), math.inf
        if n_laws >= 0:
            _, _, left = trees.hold(t, n_contacts, n_laws, form, s.tree, calls, options.second, memory)
            for i in range(6 * form.plan[0].n_bodies):
                memory.work[form.plan[0].f + i] = memory.work[form.plan[0].f_old + i]
        elif s.tree.links.size == 0:
            left = _hold_with_free_forces(t, n_contacts, n_blocks, form, calls, options, memory)
        if left <= calls.solver_options.inexact:
            status, residual = CONVERGED, left
        # 3. neither: the result of the first
        else:
            n_contacts, n_blocks, status, n_iter, residual = _hold_with_forces(t, form, calls, options.yielding, memory)
    return n_contacts, n_blocks, INEXACT if status == CONVERGED else status, n_iter, residual


@kernel
def _hold_with_forces(t, s, calls, options, memory):
    """As `_hold_velocities`, with forces of the middle."""
    n_contacts, n_blocks = _begin_anew(t, s, calls.functions, options, memory)
    status, n_iter, residual = plain.iterate(t, n_contacts, n_blocks, s, calls, options, memory)
    return n_contacts, n_blocks, status, n_iter, residual


@kernel
def _hold_with_free_forces(t, n_contacts, n_blocks, s, calls, options, memory):
    """The residual of one problem, with the forces of a motion on which contacts do not act: a body that turns far in a step may have none
    other whose Newton's iteration ends."""
    work = memory.work
    p = s.plan[0]
    n = problem.list_blocks(problem.EQUATIONS, s.interactions, p, memory)
    plain.iterate(t, 0, n, s, calls, options.yielding, memory)
    for i in range(6 * p.n_bodies):
        work[p.f_old + i] = work[p.f + i]
    plain.restore_velocities(p, work)
    if n_blocks > 0:
        problem.choose_blocks(options.second, s, memory)
    plain.invert_masses(t, options.second, s, calls.functions, memory)
    _, _, left = plain.iterate(t, n_contacts, n_blocks, s, calls, options.second, memory)
    return left


@kernel
def _begin_anew(t, s, functions, options, memory):
    """(contacts, blocks) of the state in mem. Out: R, w and H, and the output of `plain.begin`."""
    work = memory.work
    p, m = s.plan[0], s.plan[0].n_bodies
    n_lost = work[p.lost]
    plain.begin(t, options, s, functions, memory)
    work[p.lost] = n_lost
    q, v, R = view(work, p.q_old, 7 * m), view(work, p.v_old, 6 * m), view(work, p.R, 9 * m)
    plain.outputs(t, s.interactions, p, q, v, R, functions, memory)
    keep_angles(s.interactions, memory)
    return problem.choose_active(options, s, memory)


@kernel
def _energy_before(h, n_contacts, s, memory):
    """Kinetic energy at the start of the step and a least energy, see `_least_energy`; infinity if joints cannot drive: without others."""
    p, before = s.plan[0], 0.0
    if p.unilateral == 0 and _are_joints_alone(n_contacts, s, memory.iwork):
        return math.inf
    for i in range(s.bodies.size):
        if not s.bodies[i].fixed:
            before += kinetic_energy(s.bodies[i], p.v_old + 6 * i, memory) + _least_energy(h, s.bodies[i], p, i, memory)
    return before


@kernel
def _energy_after(s, memory):
    """Kinetic energy with the velocities v of the problem that was solved."""
    after = 0.0
    for i in range(s.bodies.size):
        after += kinetic_energy(s.bodies[i], s.plan[0].v + 6 * i, memory) if not s.bodies[i].fixed else 0.0
    return after


@kernel
def _are_joints_closed(h, s, memory):
    """Whether nothing but joints and forces acts, and joints hold at the start of the step: positions, to rounding, and velocities."""
    if s.interactions.size == 0 or not branches.are_only_joints(s.interactions, s.plan[0], memory.iwork):
        return False
    w = view(memory.work, s.plan[0].w, 6 * s.plan[0].n_bodies)
    return _opening(0.0, s, memory) <= _OPEN and branches.are_held(h, w, s.interactions, memory.work)


@kernel
def _beyond_reason(done, h, s, memory):
    """Work of joints in both halves, of the kinetic energy, where it is more than that of a smooth step on its branch; else 0."""
    form, p = s.motion, s.motion.plan[0]
    energy, expected, _ = branches.measure(h, p.size, s.plan[0].v_old, p.v, form.bodies, memory)
    return abs(done) / energy if abs(done) > of_smooth(expected, energy) else 0.0


@kernel
def _do_joints_drive(before, n_contacts, n_blocks, s, memory):
    """Whether most of the kinetic energy after the first half, and more than before, is work of joints: ``r^T H (w + w_k) / 2``.

    They hold at the ends of the step, and H at its start turns with it: a share of about ``(h omega)^2 / 2`` is normal.
    """
    form, p = s.motion, s.motion.plan[0]
    if before == math.inf:
        return False
    done = branches.work_of_joints(s.plan[0].w_old, n_contacts, n_blocks, form.interactions, p, memory)
    return done > max(before, 0.5 * _energy_after(form, memory))


@kernel
def _has_far_more_energy(status, before, s, memory):
    """Whether the first half has far more kinetic energy than `_energy_before`, and than the push of overlaps may give.

    Joints close for turns by many radians, too, where there is no nearer solution. What drives may give any, where a solution was found.
    """
    if before == math.inf:
        return False
    after, mass, push = _energy_after(s, memory), 0.0, 0.0
    if not after > _FAR_MORE * before or (status == CONVERGED and _does_anything_drive(s, memory)):
        return False
    for i in range(s.bodies.size):
        mass += memory.mem[s.bodies[i].q + MASS] if not s.bodies[i].fixed else 0.0
    for k in range(s.interactions.size):
        it = s.interactions[k]
        for i in range(it.m if it.always == 0 else 0):
            push = max(push, -memory.work[it.aim + i])
    for k in range(s.collisions.size):
        c = s.collisions[k]
        for i in range(memory.imem[c.n]):
            push = max(push, -memory.work[c.aim + c.each * i])
    return after > _FAR_MORE * (before + 0.5 * mass * push * push)


@tiny
def _is_anything_moved(s, memory):
    """Whether something moves by itself: what has infinite mass, a stop whose place depends on time, or the surface of a shape."""
    work, p, result = memory.work, s.plan[0], False
    for i in range(6 * p.n_bodies):
        result = result or (s.bodies[i // 6].fixed and memory.mem[s.bodies[i // 6].q + V + i % 6] != 0.0)
    for k in range(s.interactions.size):
        it = s.interactions[k]
        for i in range(it.m if it.always == 0 else 0):
            result = result or work[it.rate + i] != 0.0
    for k in range(s.collisions.size):
        c = s.collisions[k]
        for i in range(6 * c.n_shapes if c.surface != ABSENT else 0):
            result = result or memory.mem[c.surface + i] != 0.0
    return result


@tiny
def _does_anything_drive(s, memory):
    """Whether something may do any work: what moves by itself, motors and all that is neither a joint, a force nor a contact."""
    result = _is_anything_moved(s, memory)
    for k in range(s.interactions.size):
        it = s.interactions[k]
        result = result or (it.always != 0 and it.law != FORCE and not branches.is_joint(it))
    return result


@kernel
def _is_driven(h, gain, n_contacts, n_blocks, s, memory):
    """Whether joints and contacts have added that kinetic energy in the step: what both have done at its start turns with the bodies.

    It is what forces and drives do not explain. Forces act on the velocities before an impact and after it for shares of the step that
    nobody knows. p.v_old: velocities of the middle.
    """
    work = memory.work
    form, p, places, done = s.motion, s.motion.plan[0], s.plan[0], 0.0
    m, driven, moment, kept = p.n_bodies, view(work, p.R_free, 6 * p.n_bodies), stack(3), stack(3)
    if gain == math.inf or _is_anything_moved(form, memory):
        return False
    _impulses_of_drives(n_contacts, n_blocks, form, memory, driven)
    plain.to_body(m, view(work, p.R, 9 * m), driven, driven)
    for i in range(m):
        body, at = form.bodies[i], 6 * i
        if body.fixed:
            continue
        done += kinetic_energy(body, p.v + at, memory) - kinetic_energy(body, places.v_old + at, memory)
        _gyroscopic_moment(body, p.v_old + at, memory, kept, moment)
        for k in range(6):
            v, v_k = work[p.v + at + k], work[places.v_old + at + k]
            pressed = h * (work[p.f + at + k] - (moment[k - 3] if k >= 3 else 0.0))  # the gyroscopic moment does no work
            done -= 0.5 * (pressed + driven[at + k] + work[places.driven + at + k]) * (v + v_k)
            gain += 0.5 * abs(pressed * (v - v_k))
    return done > gain


@kernel
def _impulses_of_drives(n_contacts, n_blocks, s, memory, out):
    """Impulses of motors and of all others that are neither joints nor contacts, in a half. Out: out, in inertial axes."""
    p = s.plan[0]
    for i in range(6 * p.n_bodies):
        out[i] = memory.work[p.known + i] if p.bounded != 0 else 0.0
    stated = problem.stated_blocks(n_contacts, n_blocks, p, memory)
    for k in range(s.interactions.size):
        it, first = s.interactions[k], p.d * memory.iwork[p.begin + k]
        drives = it.always != 0 and it.law != FORCE and (it.row == ABSENT or it.law != EQUALITY)
        for i in range(first, first + p.d * it.n_blocks if drives and first >= 0 else first):
            for l in range(12 if it.b != ABSENT else 6):
                out[6 * (it.a if l < 6 else it.b) + l % 6] += stated.r[i] * stated.H[12 * i + l]


@kernel
def _are_joints_pushed(s, memory):
    """Whether there are joints or drives, and contacts that the first half mostly pushes apart."""
    has_joints, is_pushed = False, False
    for k in range(s.interactions.size):
        it = s.interactions[k]
        has_joints = has_joints or (it.always != 0 and it.law != FORCE)
        for i in range(it.m if it.always == 0 else 0):
            is_pushed = is_pushed or memory.work[it.grip + i] < _PUSHED
    for k in range(s.collisions.size if has_joints else 0):
        c = s.collisions[k]
        for i in range(memory.imem[c.n]):
            is_pushed = is_pushed or memory.work[c.grip + i] < _PUSHED
    return has_joints and is_pushed


@tiny
def _energy_of_rotation(i, momentum, p, memory):
    """``L . I^-1 L / 2`` of body i, L in its axes."""
    L, rate = stack(6), stack(6)
    L[0] = L[1] = L[2] = 0.0
    times(view(memory.work, p.R + 9 * i, 9), momentum, view(L, 3, 3))
    blocks.multiply_inverse(1, p.stride, view(memory.work, p.inverse + p.stride * i, p.stride), L, rate)
    return 0.5 * dot(view(L, 3, 3), view(rate, 3, 3))


@tiny
def _gyroscopic_moment(body, at, memory, momentum, moment):
    """Momentum and moment of a body whose velocities lie at ``at``, in its axes. Out: ``I Omega`` and ``I Omega x Omega``."""
    turning = view(memory.work, at + 3, 3)
    times(view(memory.mem, body.q + INERTIA, 9), turning, momentum)
    cross(momentum, turning, moment)


@kernel
def _forget_first_half(h, s, memory):
    """The second half finds all of the step's impulses, those of joints too: what joints do against a push turns with them.

    Forces are those of the middle, but for gyroscopic moments, which the push makes wrong: these are those of the start, and leave the
    body its energy. h: of a half. Out: v, w, back, f_old.
    """
    work = memory.work
    form, p, places, at = s.motion, s.motion.plan[0], s.plan[0], s.plan[0].lam
    moment, begun, momentum = stack(3), stack(3), stack(3)
    for i in range(6 * p.n_bodies):
        work[p.f_old + i] = work[p.f + i] - work[places.impulse + i] / h
        work[places.back + i] = -work[places.impulse + i]
    for i in range(p.n_bodies):
        body = form.bodies[i]
        if body.fixed or body.isotropic:
            continue
        f, turning = view(work, p.f_old + 6 * i + 3, 3), view(work, places.v_old + 6 * i + 3, 3)
        _gyroscopic_moment(body, p.v_old + 6 * i, memory, momentum, moment)
        for k in range(3):
            f[k] -= 2.0 * moment[k]
        _gyroscopic_moment(body, places.v_old + 6 * i, memory, begun, moment)
        for k in range(3):
            momentum[k] = begun[k] + 2.0 * h * moment[k]
        now = _energy_of_rotation(i, momentum, p, memory)
        share = math.sqrt(0.5 * dot(begun, turning) / now) if now > 0.0 else 0.0
        for k in range(3):
            f[k] += (share * momentum[k] - begun[k]) / h
    for k in range(form.interactions.size):
        it = form.interactions[k]
        for i in range(it.m if it.law != FORCE else 0):
            work[at + i] = 0.0
        at += it.m
    plain.restore_velocities(p, work)


@kernel
def _forget_restitution(s, memory):
    """Without it impulses found at the end of a step add no energy, and there are some. Out: aim, lost."""
    work = memory.work
    work[s.plan[0].lost] = 0.0
    for k in range(s.interactions.size):
        it = s.interactions[k]
        for i in range(it.m if it.law != FORCE else 0):
            work[it.aim + i] = 0.0
    for k in range(s.collisions.size):
        c = s.collisions[k]
        for i in range(c.each * memory.imem[c.n]):
            work[c.aim + i] = 0.0
        contacts.aim_at_surfaces(c, 0, memory.imem[c.n], view(work, s.plan[0].q, 7 * s.plan[0].n_bodies), memory)


@kernel
def _least_energy(h, body, p, i, memory):
    """Energy by forces at t_k in a step for a body at rest, and of closing a joint with a small gap."""
    work = memory.work
    m, I = memory.mem[body.q + MASS], view(memory.mem, body.q + INERTIA, 9)
    inertia = (I[0] + I[4] + I[8]) / 3.0
    speed = h * norm(view(work, p.f_old + 6 * i, 3)) / m + _OPEN * norm(view(work, p.q_old + 7 * i, 3)) / h
    turning = h * norm(view(work, p.f_old + 6 * i + 3, 3)) / inertia + _OPEN / h
    return 0.5 * (m * speed * speed + inertia * turning * turning)


@kernel
def _halve_impulses(s, memory):
    """lambda of the record becomes the guess of the first half; none has joined. Out: last, begun."""
    mem, work = memory.mem, memory.work
    for k in range(s.interactions.size):
        it = s.interactions[k]
        for i in range(it.m):
            work[it.last + i], work[it.joined + i] = mem[it.lam + i], 0.0
            mem[it.lam + i] *= 0.5
    for k in range(s.collisions.size):
        c = s.collisions[k]
        for i in range(c.each * memory.imem[c.n]):
            work[c.last + i] = work[c.begun + i] = mem[c.lam + i]
            mem[c.lam + i] *= 0.5


@kernel
def _restore_impulses(s, memory):
    """lambda of the record as before the step, which there is no room for."""
    for k in range(s.interactions.size):
        it = s.interactions[k]
        for i in range(it.m):
            memory.mem[it.lam + i] *= 2.0
            memory.work[it.joined + i] = 0.0
    for k in range(s.collisions.size):
        c = s.collisions[k]
        for i in range(c.each * memory.imem[c.n]):
            memory.mem[c.lam + i] = memory.work[c.begun + i]


@kernel
def _is_left_open(t, h, limit, s, functions, memory):
    """Whether the motion with the velocities v ends with joints open by more than ``limit``, see `_opening`. H and R stay those of q_k.

    What the solver leaves is small beside impulses, which may be large beside what keeps joints closed.
    """
    work, p = memory.work, s.plan[0]
    q, w, R = view(work, p.q, 7 * p.n_bodies), view(work, p.v, 6 * p.n_bodies), view(work, p.R, 9 * p.n_bodies)
    _go(h, w, s, memory)
    for is_end in (True, False):
        at = q if is_end else view(work, p.q_old, 7 * p.n_bodies)
        turn_matrices(p, at, work)
        if not is_end:
            restore_angles(s.interactions, memory)
        for k in range(s.interactions.size):
            it = s.interactions[k]
            if branches.is_joint(it) and work[it.off] == 0.0:
                evaluate(t, it, at, R, functions, memory)
        if is_end:
            opening = _opening(0.0, s, memory)
    return opening > limit


@tiny
def _go(h, v, s, memory):
    """Bodies, and angles of joints, go by h times the velocities v. Out: q."""
    work, p = memory.work, s.plan[0]
    foresee_angles(h, 1.0, v, v, view(work, p.R, 9 * p.n_bodies), s.interactions, memory)
    for i in range(p.n_bodies):
        v_i = view(v, 6 * i, 6)
        move(EXPONENTIAL, view(work, p.q_old + 7 * i, 7), h, 1.0, v_i, v_i, view(work, p.q + 7 * i, 7))


@kernel
def _move(h, options, way, s, memory):
    """Move the bodies by h times the velocities at ``way``; detect contacts, False without room for them in the record. Out: q."""
    work = memory.work
    p = s.plan[0]
    q, v = view(work, p.q, 7 * p.n_bodies), view(work, p.v, 6 * p.n_bodies)
    _go(h, view(work, way, 6 * p.n_bodies), s, memory)
    passing.keep_from_passing(False, h, 1.0, s, memory)
    return plain.find_contacts(options, p.parallel != 0, s, q, v, memory)


@kernel
def _meet(t_new, is_free, n_contacts, n_blocks, s, functions, options, memory):
    """Contacts and values of the state between the halves in mem. Returns CONVERGED or NON_FINITE. Out: impulses so far, R, w.

    is_free: in the first half joints and forces act alone. Rates of rows are those of the end, see `_commit`.
    """
    work, iwork = memory.work, memory.iwork
    form, p, places = s.motion, s.motion.plan[0], s.plan[0]
    m = p.n_bodies
    q, v, R = view(work, p.q, 7 * m), view(work, p.v, 6 * m), view(work, p.R, 9 * m)
    back, turned = view(work, places.back, 6 * m), view(work, places.turned, 6 * m)
    # 1. impulses of the first half, of all and of drives, in axes of the bodies
    for i in range(6 * m):
        back[i] = 0.0
    plain.to_body(m, R, view(work, p.p, 6 * m), view(work, places.impulse, 6 * m))
    driven = view(work, places.driven, 6 * m)
    if is_free:
        for i in range(6 * m if p.unilateral != 0 else 0):  # read if contacts act in the second half
            driven[i] = 0.0
    else:
        for i in range(6 * m):
            turned[i] = 0.0
        _impulses_of_drives(n_contacts, n_blocks, form, memory, driven)
        plain.to_body(m, R, driven, driven)
    # 2. contacts of the end: inherited impulses, and those of the first half subtracted, at q_k or where they turn with the bodies
    problem.keep_impulses(n_contacts, False, options.first, form, memory)
    for k in range(form.collisions.size):
        c = form.collisions[k]
        contacts.inherit(True, c, iwork[c.found], memory)
        contacts.inherit_approach(c, iwork[c.found], memory)
        contacts.take_back(c, iwork[c.found], view(work, p.q_old, 7 * m), q, memory, back, turned)
        contacts.pass_on(c, iwork[c.found], memory)
        contacts.take_over(c, iwork[c.found], memory)
        contacts.guess_whole(c, memory)
    # 3. interactions likewise; outputs in between, since they overwrite H of q_k
    _each_lambda(False, s, memory)
    if not is_free:
        _take_back(True, form.interactions, back, memory)
        plain.to_body(m, R, back, back)
    is_finite = _values(t_new, form, q, R, functions, memory)
    trees.forget_places(s.tree, memory)
    plain.to_inertial(m, R, v, view(work, p.w, 6 * m))
    if not is_free:
        _take_back(False, form.interactions, turned, memory)
        _guess_whole(form.interactions, memory)
        plain.to_body(m, R, turned, turned)
        for i in range(6 * m):
            back[i] += turned[i]
    return CONVERGED if is_finite else NON_FINITE


@tiny
def _values(t, s, q, R, functions, memory):
    """R of the configuration q, and y of all interactions, whose H is that of q afterwards. False where some is not finite."""
    zero = 0.0
    for i in range(s.plan[0].n_bodies):
        rotations.rotation_matrix(view(q, 7 * i + 3, 4), view(R, 9 * i, 9))
    for k in range(s.interactions.size):
        it = s.interactions[k]
        evaluate(t, it, q, R, functions, memory)
        for i in range(it.m):
            memory.mem[it.y + i] = memory.work[it.h + i]
            zero += 0.0 * memory.work[it.h + i]
    return zero == 0.0


@kernel
def _turn_over(h, s, work):
    """Start of the second half: the end of the first one, with its forces, and without the impulses of contacts.

    Out: q_old, v_old, f_old, force_old and lost.
    """
    form, p, back = s.motion, s.motion.plan[0], s.plan[0].back
    m = p.n_bodies
    work[p.lost] = 0.0
    for i in range(7 * m):
        work[p.q_old + i] = work[p.q + i]
    for i in range(6 * m):
        work[p.v_old + i], work[p.f_old + i] = work[p.v + i], work[p.f + i]
        if p.unilateral != 0:
            work[p.f_old + i] += work[back + i] / h
    for k in range(form.interactions.size):
        it = form.interactions[k]
        for i in range(it.m if it.law == FORCE else 0):
            work[it.force_old + i] = work[it.force + i]


@tiny
def _is_bound(i, interactions):
    """Whether an interaction holds, drives or presses a body."""
    result = False
    for k in range(interactions.size):
        result = result or interactions[k].a == i or interactions[k].b == i
    return result


@kernel
def _keep_energy_of_pushed(h, half, s, memory):
    """Limit the energy of rotation of bodies turned by contacts to that of their motion without contacts, at the start of the second half.

    Impulses of contacts of the first half are subtracted as if they had not acted, but they have turned the body: the same angular momentum
    can have much more energy there, above all for a rod that spins about its axis. The angular velocity is then reduced.
    Bodies that others hold or drive may take energy from them, and are not changed. In/out: f_old.
    """
    work = memory.work
    form, p, places = s.motion, s.motion.plan[0], s.plan[0]
    kept, torque = stack(3), stack(3)
    for i in range(p.n_bodies):
        body, back, f = form.bodies[i], view(work, places.back + 6 * i + 3, 3), view(work, p.f_old + 6 * i + 3, 3)
        if norm(back) == 0.0 or body.fixed or body.isotropic or body.coupled or is_gone(body, work):
            continue
        # 1. energy of rotation without contacts: at the start, and by the work of moments, of which the gyroscopic one does none
        I, v, v_k = view(memory.mem, body.q + INERTIA, 9), view(work, p.v + 6 * i + 3, 3), view(work, places.v_old + 6 * i + 3, 3)
        times(I, v_k, kept)
        energy = 0.5 * dot(v_k, kept)
        _gyroscopic_moment(body, p.v + 6 * i, memory, kept, torque)  # which does no work
        for k in range(3):
            energy += h * (work[p.f + 6 * i + 3 + k] - torque[k]) * v[k]
            kept[k] += half * f[k]
        now = _energy_of_rotation(i, kept, p, memory)
        if now > _MORE * energy and not _is_bound(i, form.interactions):
            share = math.sqrt(max(energy, 0.0) / now) - 1.0
            for k in range(3):
                f[k] += share * kept[k] / half


@kernel
def _note_approach(t, s, options, functions, memory):
    """Time at which contacts close in the step, see `contacts.note_approach`. Out: before, gain, inverse."""
    mem, work = memory.mem, memory.work
    form, p, places, h = s.motion, s.motion.plan[0], s.plan[0], options.span
    m, q, rebounds = p.n_bodies, view(work, p.q_old, 7 * p.n_bodies), False
    # 1. needed for restitution only
    for k in range(form.interactions.size):
        rebounds = rebounds or _rebounds(form.interactions[k], mem)
    for k in range(form.collisions.size):
        rebounds = rebounds or contacts.rebounds(form.collisions[k], mem)
    if not rebounds:
        return
    # 2. velocity change by forces
    w, gain = view(work, places.w_old, 6 * m), view(work, places.gain, 6 * m)
    plain.invert_masses(t, options, form, functions, memory)
    _gain_of_forces(h, p.f_old, form, work, gain)
    # 3. interactions, then detected contacts
    for k in range(form.interactions.size):
        it = form.interactions[k]
        for i in range(it.m if it.always == 0 else 0):
            u, more, speed = mem[it.ydot + i], row_velocity(0.0, it, i, gain, work), norm(view(w, 6 * it.a, 3))
            speed += norm(view(w, 6 * it.b, 3)) if it.b != ABSENT else 0.0
            work[it.before + i] = contacts.time_to_close(h, mem[it.y + i], u, more)
            if blocks.first_row(it, i) == i and contacts.has_rebounded(u, more, speed):
                work[it.last + i] = 0.0
    for k in range(form.collisions.size):
        contacts.note_approach(h, form.collisions[k], q, w, gain, memory)


@tiny
def _rebounds(it, mem):
    """Whether velocities before an impact count, for some contact of an interaction."""
    some = False
    for c in range(it.m // it.each if it.always == 0 else 0):
        some = some or blocks.restitution(it, c, 0, mem) != 0.0 or blocks.restitution(it, c, 1, mem) != 0.0
    return some


@kernel
def _gain_of_forces(h, force, s, work, gain):
    """Velocities that forces, which lie there in axes of the bodies, add in a time h. Out: gain, in inertial axes. Work: R_free."""
    p, m = s.plan[0], s.plan[0].n_bodies
    F = view(work, p.R_free, 6 * m)
    for i in range(6 * m):
        F[i] = h * work[force + i]
    plain.to_inertial(m, view(work, p.R, 9 * m), F, F)
    blocks.multiply_inverse(m, p.stride, view(work, p.inverse, p.stride * m), F, gain)
    for i in range(6 * m):
        gain[i] = 0.0 if s.bodies[i // 6].fixed else gain[i]


@kernel
def _aim_at_gaps(nothing, options, s, memory):
    """Laws of contacts in the first half, see `contacts.aim_at_gaps`. Out: aim, grip."""
    mem, work = memory.mem, memory.work
    form, p, span = s.motion, s.motion.plan[0], 2.0 * options.h
    m, q, w = p.n_bodies, view(work, p.q_old, 7 * p.n_bodies), view(work, s.plan[0].w_old, 6 * p.n_bodies)
    for k in range(form.interactions.size):
        it = form.interactions[k]
        for i in range(it.m if it.always == 0 else 0):
            if memory.iwork[p.begin + k] < 0:  # does not act
                work[it.aim + i], work[it.grip + i] = 0.0, 1.0
                continue
            gap = contacts.gap_to_close(mem[it.y + i], _size(it, i, form.bodies, memory), nothing)
            if mem[it.y + i] > 0.0 and max(mem[it.y + i], span * abs(mem[it.ydot + i])) <= work[it.slack + 2 * i + 1]:
                gap = 0.0
            work[it.aim + i] = gap / span if blocks.first_row(it, i) == i else 0.0
            work[it.grip + i] = contacts.grip(span, gap, mem[it.ydot + i], work[it.slack + 2 * i + 1])
    for k in range(form.collisions.size):
        contacts.aim_at_gaps(span, nothing, form.collisions[k], form.bodies, view(work, p.moved, m), q, w, memory)


@kernel
def _aim_at_rolling(t, h, s, functions, memory):
    """Velocities of sticking contacts in the first half, opposite to those that the second one meets, see `rolling`. In/out: aim."""
    work, m = memory.work, s.plan[0].n_bodies
    q, w = view(work, s.plan[0].q_old, 7 * m), view(work, s.plan[0].w, 6 * m)
    for k in range(s.interactions.size):
        if rolling.is_turning(h, s.interactions[k], w, memory):
            rolling.aim_rows(t, h, s.interactions[k], s.plan[0], functions, memory)
    for k in range(s.collisions.size):
        if s.collisions[k].each > 1 and rolling.are_some_turning(h, s.collisions[k], w, memory):
            address = rolling.address_of_aim()
            if address != 0:
                rolling.call_aim(address, (s.collisions, int64(k), h, q, w, memory))


@tiny
def _size(it, i, bodies, memory):
    """Size of the bodies of a row, in units of its gap."""
    size = math.inf
    for side in range(2):
        body, row = it.a if side == 0 else it.b, it.H + 12 * i + 6 * side
        if body != ABSENT and not bodies[body].fixed:
            radius = radius_of_gyration(bodies[body], memory.mem)
            size = min(size, norm(view(memory.work, row, 3)) * radius + norm(view(memory.work, row + 3, 3)))
    return size


@kernel
def _take_back(is_impact, interactions, back, memory):
    """``back -= H^T r`` of contacts in the first half, of impacts or of others, see `contacts.take_back`. In/out: back.

    The second half finds the impulses of contacts in the whole step: so bodies separated by the first half do not fly apart.
    """
    for k in range(interactions.size):
        it = interactions[k]
        for i in range(it.m if it.always == 0 else 0):
            if (memory.work[it.last + blocks.first_row(it, i)] > 0.0) == is_impact:
                continue
            for l in range(12 if it.b != ABSENT else 6):
                back[6 * (it.a if l < 6 else it.b) + l % 6] -= memory.work[it.H + 12 * i + l] * memory.mem[it.lam + i]


@kernel
def _guess_whole(interactions, memory):
    """lambda of contacts as a guess for the whole step; carrying ones are active in the second half. In/out: lambda. Out: joined."""
    for k in range(interactions.size):
        it = interactions[k]
        for i in range(it.m if it.always == 0 else 0):
            if memory.mem[it.lam + blocks.first_row(it, i)] != 0.0:
                memory.work[it.joined + i] = 1.0
            memory.mem[it.lam + i] *= 2.0


@kernel
def _aim_at_velocities(s, memory):
    """Laws of contacts in the second half: velocities for restitution, see `contacts.aim_at_velocities`. Out: aim, grip."""
    work = memory.work
    form, p = s.motion, s.motion.plan[0]
    m = p.n_bodies
    w_old, gain = view(work, s.plan[0].w_old, 6 * m), view(work, s.plan[0].gain, 6 * m)
    for k in range(form.interactions.size):
        it = form.interactions[k]
        for i in range(it.m if it.always == 0 else 0):
            first, u = blocks.first_row(it, i), 0.0
            # velocity before the impact: at the closing of the gap, 0 of persistent contacts
            if memory.mem[it.lam + first] == 0.0 or not work[it.last + first] > 0.0:
                u = row_velocity(work[it.rate + i], it, i, w_old, work) + work[it.before + first] * row_velocity(0.0, it, i, gain, work)
            work[it.aim + i] = blocks.restitution(it, i // it.each, i - first, memory.mem) * u
            work[it.grip + i] = 1.0
    for k in range(form.collisions.size):
        contacts.aim_at_velocities(form.collisions[k], view(work, p.q, 7 * m), w_old, gain, memory)


@kernel
def _opening(least, s, memory):
    """By how much joints are open at most where H is, of the lengths from their points to the centres of their bodies, or in radians.

    Not less than ``least``: smaller gaps cost no lengths.
    """
    mem, worst = memory.mem, least
    for k in range(s.interactions.size):
        it = s.interactions[k]
        if it.law != EQUALITY or it.row == ABSENT or memory.work[it.off] != 0.0:
            continue
        for i in range(it.m):
            gap = abs(memory.work[it.h + i])
            if memory.imem[it.row + i] == POINT:
                gap = _relative_gap(gap, worst, it, i, s.bodies[it.a], mem)
            worst = max(worst, gap)
    return worst


@tiny
def _relative_gap(gap, least, it, i, body, mem):
    """A gap of row i of its lengths, or 0 if it is below ``least`` of them."""
    # squares without a root or a division are mostly enough: the sum of lengths is no shorter than their root mean square
    a, b, radius = view(mem, it.row_a + 3 * i, 3), view(mem, it.row_b + 3 * i, 3), 0.0
    if gap == 0.0 or (it.b != ABSENT and gap * gap <= least * least * (dot(a, a) + dot(b, b))):
        return 0.0
    if not body.fixed:
        radius = radius_of_gyration(body, mem)
    length = radius + (norm(a) + norm(b) if it.b != ABSENT else 0.0)
    return gap / length if length > 0.0 else 0.0


@kernel
def _commit(n_contacts, n_blocks, s, options, memory):
    """The velocities after the second half, and the impulses of both, in mem. Returns CONVERGED or NON_FINITE.

    H of all rows is that of `_meet`: the second half has no motion.
    """
    work = memory.work
    form, p, places = s.motion, s.motion.plan[0], s.plan[0]
    m = p.n_bodies
    q, v, R = view(work, p.q, 7 * m), view(work, p.v, 6 * m), view(work, p.R, 9 * m)
    plain.to_body(m, R, view(work, p.p, 6 * m), view(work, p.R_free, 6 * m))
    # 1. impulses of bodies: of both halves and the loads of joints, minus those of the first half that were replaced
    for i in range(m):
        for k in range(6):
            at = 6 * i + k
            memory.mem[form.bodies[i].q + P + k] = (
                work[p.R_free + at] + work[places.impulse + at] + options.h * work[p.load + at] + work[places.back + at]
            )
    # 2. multipliers
    problem.keep_impulses(n_contacts, False, options.second, form, memory)
    _each_lambda(True, s, memory)
    loads.add_to(options.h, form, memory)
    # 3. state; positions and H are those of the middle
    is_finite = plain.keep_state(form, q, v, memory)
    is_finite = plain.outputs_of_velocities(form.interactions, p, v, R, memory) and is_finite
    return CONVERGED if is_finite else NON_FINITE


@kernel
def _each_lambda(is_sum, s, memory):
    """Keep lambda of rows that act in both halves; or, if is_sum, add the kept values.

    In the second half contacts have their impulses of the whole step.
    """
    at = s.plan[0].lam
    for k in range(s.motion.interactions.size):
        it = s.motion.interactions[k]
        for i in range(it.m if it.always != 0 else 0):
            if is_sum:
                memory.mem[it.lam + i] += memory.work[at + i]
            else:
                memory.work[at + i] = memory.mem[it.lam + i]
        at += it.m
