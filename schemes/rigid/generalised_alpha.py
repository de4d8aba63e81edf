"""Generalised-alpha of rigid bodies on the rotation group, with its three problems solved in sequence.

    smooth      M a_{k+1} = F(t_{k+1}, q, v) + H^T lambda,   H v + rate = 0   of the bilateral constraints
                q = q_k o exp(h v_k + h^2 ((1/2 - beta) A_k + beta A_{k+1})),   v = v_k + h ((1-gamma) A_k + gamma A_{k+1})
                (1 - alpha_m) A_{k+1} + alpha_m A_k = (1 - alpha_f) a_{k+1} + alpha_f a_k
    position    q_{k+1} = q o exp(M^-1 H^T nu),   0 <= h(q_{k+1})  ⟂  nu >= 0,   h(q_{k+1}) = 0 of the bilateral ones
    velocity    v_{k+1} = v + M^-1 H^T Lambda,   with the laws for ``H v_{k+1}`` of the contacts that q closes, of rows with bounds, and
                H v_{k+1} + rate = 0 of the bilateral ones

The smooth motion does not contain friction: it is shifted by ``h (v_{k+1} - v') / 2``, v' the solution of the last problem without friction
and bounds, and projected again, so that sticking contacts do not creep. Before an impact an interaction has ``H(q_k) v_k``, its ydot at
the start of the step, as in the source (Brüls, Acary, Cardona 2014); a detected contact, which may be new, the velocities of that time at
the contact of its end.

Velocities and accelerations of rotation are in axes of the body, where exp is the exponential map (Brüls, Cardona, J. Comput. Nonlinear
Dynam. 5 (2010) 031002; Arnold, Brüls, Cardona, Numer. Math. 129 (2015) 149–179); decoupled as in the scheme of Lagrangian systems. The
smooth problem is one of `moreau_jean.iterate` for v: ``M (v - v_p) = h theta F + H^T z``, ``q = q_k o exp(h (a v + (1-a) v_mid))``, where
v_p and v_mid are predictors of the velocity and of the displacement.
"""

import math
import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference, kernel, tiny, view
from nsds.collision import WORLD
from nsds.collision.frames import frame_in
from nsds.model.layout import table
from nsds.schemes.lagrangian.generalised_alpha import options_of, predict
from nsds.schemes.memory import Allocator, Prepared
from nsds.schemes.problem.box import worse
from nsds.schemes.problem.smooth_work import of_smooth
from nsds.schemes.rigid import blocks, branches, passing, problem, projection
from nsds.schemes.rigid import collisions as contacts
from nsds.schemes.rigid import moreau_jean as plain
from nsds.schemes.rigid.bodies import EXPONENTIAL, kinetic_energy, move
from nsds.schemes.rigid.enabled import is_gone, is_unmoved
from nsds.schemes.rigid.interactions import evaluate, keep_angles, restore_angles
from nsds.schemes.rigid.moreau_jean import blame, cause_of, grow  # noqa: F401
from nsds.schemes.rigid.tables import EQUALITY, P, V, tables
from nsds.status import CAPACITY, CONVERGED, INEXACT, LEFT_BRANCH

PLAN = table(
    # acc, A (6 n): accelerations a and A; change, smooth (6 n): velocity change by the last problem, with and without friction
    "acc", "A", "change", "smooth",
    # w_old (6 n): velocities at the start in inertial axes; held: controls of the last step; fresh (integer): accelerations are unknown
    "w_old", "held", "fresh",
    # before (7 n): q without the projection; pushed (2 n): displacement and rotation by it; force (6 n): F at the start of the step
    "before", "pushed", "force",
)  # fmt: skip
_LOST, _OF_TURN = 0.05, 1.0  # of the kinetic energy, and of it times a turn in a step: largest work of joints in a step on its branch
_OPENED = 0.5  # of the displacement of a contact by the projection: how much it may have opened it, as it is straight
_CLOSE = 1e-13  # of velocities: residual allowed in equations
_WAY = 1e-2  # of a step: distance of the finite differences for the curvature of constraints


@by_reference
class Tables(NamedTuple):
    """Tables of a model that a step reads."""

    motion: plain.Tables
    positions: plain.Tables  # the same, but for a plan of its own, in which positions are projected and the last velocities found
    plan: np.ndarray


def prepare(records, mem, options, h, method):
    """Tables of the step and of its problems of positions and velocities."""
    # 1. model; the smooth problem is one of Moreau–Jean's
    work, iwork = Allocator(records.size), Allocator(records.size)
    lists = tables(records, work, iwork)
    words = options_of(h, options, lambda theta, a: problem.Options(h, theta, a, gamma=0.0, q_star=1.0, tol=0.0, max_iter=0.0, press=1.0))
    motion = words.positions.motion
    # 2. two problems with memory of their own, as the smooth one is needed after the projection
    first, second = (plain.tables_of(lists, motion, method, work, iwork, records.size) for _ in range(2))
    places, n = np.zeros(1, PLAN), lists.bodies.size
    work.place(places, acc=6 * n, A=6 * n, change=6 * n, smooth=6 * n, w_old=6 * n, before=7 * n, pushed=2 * n, force=6 * n)
    work.place(places, held=int(lists.bodies["n_u"].sum()))
    work.place(first.plan, v_mid=6 * n)
    problem.follow_turns(lists, motion, first.plan, work)
    iwork.place(places, fresh=1)
    s = Tables(first, second, places)
    return Prepared(s, lists.functions, words, work.array(), iwork.array(np.int64), sys.modules[__name__], lists)


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: contacts and outputs of the state; accelerations are computed when the first step begins."""
    memory.iwork[s.plan[0].fresh] = 1
    return plain.start(t, s.motion, functions, options.positions.motion, memory)


@kernel
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, Newton's iterations, residual)."""
    functions, work = calls.functions, memory.work
    form, own, places, smooth, n = s.motion, s.motion.plan[0], s.plan[0], options.positions.motion, s.motion.plan[0].n_bodies
    # 1. start of the step
    keep_angles(form.interactions, memory)
    _begin(form.bodies, own, places, memory)
    were_held = _is_held_by_joints(form.interactions, work)
    were_held = were_held and branches.are_held(options.h, view(work, own.w, 6 * n), form.interactions, work)
    # 2. accelerations at the start, after a restart or a jump of the controls
    started, is_new = CONVERGED, _hold(form.bodies, places, memory)
    if is_new or memory.iwork[places.fresh] != 0:
        started = _start_accelerations(t_new - options.h, s, calls, options, memory)
    # 3. smooth motion: predictors, then Newton's iteration with the bilateral constraints
    _know_motion(options, own, places, work)
    n_blocks = problem.list_blocks(problem.SMOOTH, form.interactions, own, memory)
    status, n_iter, residual = plain.iterate(t_new, 0, n_blocks, form, calls, smooth, memory)
    status = worse(started, status)
    # 4. end of the smooth motion, without any projection so far
    passing.keep_from_passing(True, options.h, smooth.a, form, memory)
    q, v, n_contacts, p = view(work, own.q, 7 * n), view(work, own.v, 6 * n), 0, s.positions.plan[0]
    projection.turn_matrices(p, q, work)
    _close_interactions(t_new, True, options, form, p, q, functions, memory)
    for i in range(2 * n):
        work[places.pushed + i] = 0.0
    for i in range(7 * n):
        work[own.q_bar + i] = q[i]
    for k in range(form.collisions.size):
        for i in range(memory.imem[form.collisions[k].n]):
            work[form.collisions[k].taking + i] = 0.0
    # 5. positions; with friction a second time, after the shift
    for attempt in range(2):
        if status in (CONVERGED, INEXACT):
            for i in range(7 * n):
                work[places.before + i] = q[i]
            if not _find(options, form, p, q, memory):
                restore_angles(form.interactions, memory)
                return CAPACITY, n_iter, residual
            _keep_violated(options, form, own, q, memory)
            projected = projection.project(t_new, True, s, calls, options.positions, memory)
            status = worse(projected, status)
            _note_push(n, places, q, work)
        if not _find(options, form, p, q, memory):
            restore_angles(form.interactions, memory)
            return CAPACITY, n_iter, residual
        _recall_hidden(form.collisions, own, q, memory)
        n_contacts = _close(t_new, s, functions, options, memory)
        if attempt == 1 or status not in (CONVERGED, INEXACT) or not _has_friction(n_contacts, form, p, memory):
            break
        shifted = _shift(t_new, n_contacts, s, calls, options, memory)
        status = worse(shifted, status)
    # 6. velocities
    for i in range(6 * n):
        work[places.change + i] = 0.0
    if status in (CONVERGED, INEXACT):
        hit, error = _jump(t_new, True, n_contacts, s, calls, options, memory)
        status, residual = worse(hit, status), max(residual, error)
        for i in range(6 * n):
            v[i] += work[places.change + i]
    # 7. work of joints, and the new state
    share = _work_beyond_reason(n_contacts, options.h, s, memory)
    if were_held and share > 0.0 and status in (CONVERGED, INEXACT):
        status, residual = LEFT_BRANCH, max(residual, share)
    done = _commit(t_new, n_contacts, s, functions, options, memory)
    memory.iwork[places.fresh] = 0
    return worse(done, status), n_iter, residual


@tiny
def _is_held_by_joints(interactions, work):
    """Whether some joint is there, and no other equation: a drive does work."""
    n, others = 0, 0
    for k in range(interactions.size):
        if interactions[k].law == EQUALITY and work[interactions[k].off] == 0.0:
            n, others = n + 1, others + (0 if branches.is_joint(interactions[k]) else 1)
    return n > 0 and others == 0


@kernel
def _work_beyond_reason(n_contacts, h, s, memory):
    """Work of joints in the step relative to the kinetic energy, if it is more than in a step on its branch; else 0. Out: force.

    The change of that energy that forces do not explain, but for their change in the step. Velocity jumps count if nothing but joints
    causes them.
    """
    work = memory.work
    form, places, p, done, bound = s.motion, s.plan[0], s.motion.plan[0], 0.0, 0.0
    is_smooth = n_contacts == 0 and branches.are_only_joints(form.interactions, s.positions.plan[0], memory.iwork)
    for i in range(p.n_bodies):
        body, at = form.bodies[i], 6 * i
        for k in range(at, at + 6):
            work[p.w_free + k] = 0.0 if is_gone(body, work) else memory.mem[body.q + V + k - at]
            work[p.w_end + k] = work[p.v + k] - (0.0 if is_smooth else work[places.change + k])
        if is_unmoved(body, work):
            continue
        for k in range(at, at + 6):
            v_old, v = work[p.w_free + k], work[p.w_end + k]
            done -= 0.5 * h * (work[places.force + k] * v_old + work[p.f + k] * v)
            bound += 0.5 * h * abs(work[p.f + k] - work[places.force + k]) * (abs(v_old) + abs(v))
            work[places.force + k] = work[p.f + k]
        done += kinetic_energy(body, p.w_end + at, memory) - kinetic_energy(body, p.w_free + at, memory)
    energy, expected, turn = branches.measure(h, p.size, p.w_free, p.w_end, form.bodies, memory)
    bound += of_smooth(expected, energy) if is_smooth else (_LOST + _OF_TURN * turn) * energy
    return abs(done) / energy if abs(done) > bound else 0.0


@kernel
def _begin(bodies, p, places, memory):
    """Keep q_k and v_k, and its w, which `outputs` left."""
    work = memory.work
    plain.load_state(bodies, view(work, p.q, 7 * p.n_bodies), view(work, p.v, 6 * p.n_bodies), memory)
    for i in range(7 * p.n_bodies):
        work[p.q_old + i] = work[p.q + i]
    for i in range(6 * p.n_bodies):
        work[places.w_old + i] = work[p.w + i]


@kernel
def _hold(bodies, places, memory):
    """Keep the controls of the step; returns whether they differ from those of the last one."""
    at, is_new = places.held, False
    for i in range(bodies.size):
        for j in range(bodies[i].n_u):
            is_new |= memory.work[at] != memory.mem[bodies[i].u + j]
            memory.work[at] = memory.mem[bodies[i].u + j]
            at += 1
    return is_new


@kernel
def _note_push(n, places, q, work):
    """Largest displacement and rotation of bodies by the projection. In/out: pushed."""
    for i in range(n):
        moved, turned = 0.0, 0.0
        for k in range(3):
            moved += (q[7 * i + k] - work[places.before + 7 * i + k]) ** 2
        for k in range(3, 7):
            turned += (q[7 * i + k] - work[places.before + 7 * i + k]) ** 2
        work[places.pushed + 2 * i] = max(work[places.pushed + 2 * i], math.sqrt(moved))
        work[places.pushed + 2 * i + 1] = max(work[places.pushed + 2 * i + 1], 2.0 * math.sqrt(turned))


@kernel
def _know_motion(options, p, places, work):
    """Predictors of the step, from the state and A at its start.

    Out: v_old, the predictor of the velocity; v_mid, the velocity at the start of the position update that gives the predicted
    displacement; A, the known part of A_{k+1}.
    """
    a = options.beta / options.gamma
    for i in range(6 * p.n_bodies):
        work[places.A + i], of_v, of_q = predict(options, work[places.A + i], work[places.acc + i])
        v_p, way = work[p.v + i] + options.h * of_v, work[p.v + i] + options.h * of_q
        work[p.v_old + i], work[p.v_mid + i] = v_p, (way - a * v_p) / (1.0 - a)


@kernel
def _find(options, form, p, q, memory):
    """Contacts at q, as far as motion with either velocity takes it; False where the record has no room for them. Out: v of p."""
    work, own, collisions = memory.work, form.plan[0], form.collisions
    v = view(work, p.v, 6 * p.n_bodies)
    for i in range(6 * p.n_bodies):
        v[i] = max(abs(work[own.v_old + i]), abs(work[own.v + i]))
    if not plain.find_contacts(options.positions.motion, own.parallel != 0, form, q, v, memory):
        return False
    for k in range(collisions.size):
        contacts.recognise(collisions[k], memory.iwork[collisions[k].found], memory)
    return True


@kernel
def _keep_violated(options, s, own, q, memory):
    """Contacts found that q violates and that the record does not have enter it, as they were at q_bar. Out: taking, 1 of these."""
    imem, work, iwork = memory.imem, memory.work, memory.iwork
    for k in range(s.collisions.size):
        c = s.collisions[k]
        for i in range(iwork[c.found]):
            a, b = imem[c.body + iwork[c.new_a + i]], imem[c.body + iwork[c.new_b + i]]
            is_movable = not (s.bodies[a].fixed and (b == WORLD or s.bodies[b].fixed))
            is_violated = work[c.new_gap + i] < -projection.tolerance_of_contact(options.positions, c, i, memory)
            if is_violated and is_movable and work[c.known + i] == 0.0 and imem[c.n] < c.capacity:
                number = contacts.insert(c, i, view(work, own.q_bar, 7 * own.n_bodies), q, memory)
                work[c.taking + number] = 1.0


@kernel
def _recall_hidden(collisions, own, q, memory):
    """Include contacts that the projection has separated in the last problem, even if another contact hides them. In/out: contacts found.

    Otherwise no velocity would react to them, while the positions are separated again in each step.
    """
    work = memory.work
    for k in range(collisions.size):
        c = collisions[k]
        for number in range(memory.imem[c.n]):
            is_hidden = work[c.taking + number] == 1.0 and memory.iwork[c.found] < c.capacity
            for i in range(memory.iwork[c.found]):
                is_hidden = is_hidden and work[c.known + i] != number + 1.0
            if is_hidden:
                contacts.recall(c, number, view(work, own.q_bar, 7 * own.n_bodies), q, memory)


@kernel
def _start_accelerations(t, s, calls, options, memory):
    """``a = A = M^-1 (F + H^T lambda)`` at the state, with ``H a + curvature = 0`` of the bilateral constraints. Returns a status.

    Out: acc, A, force.
    """
    functions, work = calls.functions, memory.work
    form, own, p, places = s.motion, s.motion.plan[0], s.positions.plan[0], s.plan[0]
    n, interactions = own.n_bodies, form.interactions
    q, v, R, w = view(work, own.q, 7 * n), view(work, own.v, 6 * n), view(work, p.R, 9 * n), view(work, p.w, 6 * n)
    acc, F, moved = view(work, places.acc, 6 * n), view(work, p.f, 6 * n), view(work, p.q_bar, 7 * n)
    # 1. inverse masses and forces
    projection.turn_matrices(p, q, work)
    plain.to_inertial(n, R, v, w)
    projection.metric(t, True, form.bodies, p, q, functions, memory)
    plain.evaluate_forces(False, t, options.positions.motion, s.positions, q, v, functions, memory)
    for i in range(6 * n):
        work[places.force + i] = F[i]
    plain.to_inertial(n, R, F, F)
    blocks.multiply_inverse(n, p.stride, view(work, p.inverse, p.stride * n), F, view(work, p.w_free, 6 * n))
    # 2. curvature of the bilateral constraints, by central differences along the motion
    n_blocks, way, status = problem.list_blocks(problem.EQUATIONS, interactions, p, memory), _WAY * options.h, CONVERGED
    if n_blocks > 0:
        stated = problem.stated_blocks(0, n_blocks, p, memory)
        for i in range(p.d * n_blocks):
            work[p.u + i] = 0.0
        for side in (-1.0, 1.0):
            for i in range(n):
                q_i, v_i = view(q, 7 * i, 7), view(v, 6 * i, 6)
                move(EXPONENTIAL, q_i, side * way, 1.0, v_i, v_i, view(moved, 7 * i, 7))
            problem.state_rows(t + side * way, 0, n_blocks, moved, options.h, interactions, p, functions, memory)
            blocks.velocities(p.d, stated, w, stated.r)
            for i in range(p.d * n_blocks):
                work[p.u + i] += side * stated.r[i] / (2.0 * way)
        # 3. multipliers for H a + curvature = 0
        problem.state_rows(t, 0, n_blocks, q, options.h, interactions, p, functions, memory)
        for i in range(p.d * n_blocks):
            stated.b[i], stated.r[i] = work[p.u + i], 0.0
        problem.arrange(0, problem.has_matrix(0, n_blocks, p), p, memory)
        status, _ = _solve(0, n_blocks, s, calls, memory)
        blocks.multiply_inverse(n, p.stride, view(work, p.inverse, p.stride * n), view(work, p.p, 6 * n), acc)
        for i in range(6 * n):
            work[p.w_free + i] += acc[i]
    # 4. both accelerations, in axes of the bodies
    plain.to_body(n, R, view(work, p.w_free, 6 * n), acc)
    for i in range(6 * n):
        work[places.A + i] = acc[i]
    return status


@kernel
def _solve(n_contacts, n_blocks, s, calls, memory):
    """The velocities or accelerations that the problem of positions states, from w_free. Returns (status, residual). Out: p, r."""
    p = s.positions.plan[0]
    wanted = _CLOSE * problem.size_of(view(memory.work, p.w_free, 6 * p.n_bodies)) if n_blocks > 0 else math.inf
    status = problem.solve_blocks(n_contacts, n_blocks, True, False, s.positions, calls.solver, calls.solver_options, wanted, 1.0, memory)
    residual = memory.work[p.info + 1]
    if status != CONVERGED and residual <= calls.solver_options.inexact:
        status = INEXACT
    return status, residual


@kernel
def _close(t, s, functions, options, memory):
    """Closed contacts at q. Returns the number of detected ones. Out: R of the problem of positions, joined, pair, which."""
    form, own, p = s.motion, s.motion.plan[0], s.positions.plan[0]
    q = view(memory.work, own.q, 7 * own.n_bodies)
    projection.turn_matrices(p, q, memory.work)
    _close_interactions(t, False, options, form, p, q, functions, memory)
    return _closed_contacts(options, s, p, q, memory)


@kernel
def _has_friction(n_contacts, s, p, memory):
    """Whether something that is closed has friction, or is a row with bounds."""
    for i in range(n_contacts):
        if s.collisions[memory.iwork[p.which + p.n_contacts + i]].each > 1:
            return True
    for k in range(s.interactions.size):
        it = s.interactions[k]
        if blocks.has_bounds(it) and memory.work[it.off] == 0.0:
            return True
        for i in range(0, it.m if it.always == 0 and it.each > 1 else 0, it.each):
            if memory.work[it.joined + i] != 0.0:
                return True
    return False


@kernel
def _shift(t, n_contacts, s, calls, options, memory):
    """Shift q by half a step of the velocity change by friction and bounds. Returns a status."""
    work = memory.work
    p, places, n = s.positions.plan[0], s.plan[0], s.motion.plan[0].n_bodies
    q, way = view(work, s.motion.plan[0].q, 7 * n), view(work, p.w_free, 6 * n)
    status, _ = _jump(t, False, n_contacts, s, calls, options, memory)
    for i in range(6 * n):
        work[places.smooth + i] = work[places.change + i]
    full, _ = _jump(t, True, n_contacts, s, calls, options, memory)
    for i in range(6 * n):
        work[places.smooth + i] = 0.5 * options.h * (work[places.change + i] - work[places.smooth + i])
    plain.to_inertial(n, view(work, p.R, 9 * n), view(work, places.smooth, 6 * n), way)
    projection.turn_all(p, q, way, work)
    return worse(full, status)


@kernel
def _jump(t, with_friction, n_contacts, s, calls, options, memory):
    """Impulses of closed contacts at q, with friction and bounds or without.

    Returns (status, residual). Out: change, their velocity change, in axes of the bodies; r of the problem of positions.
    """
    work = memory.work
    form, own, p, places = s.motion, s.motion.plan[0], s.positions.plan[0], s.plan[0]
    n, h = own.n_bodies, options.h
    q, v, R, w = view(work, own.q, 7 * n), view(work, own.v, 6 * n), view(work, p.R, 9 * n), view(work, p.w_free, 6 * n)
    inverse, change, impulse = view(work, p.inverse, p.stride * n), view(work, places.change, 6 * n), view(work, p.p, 6 * n)
    # 1. active rows
    problem.clear(p, work)
    n_blocks = problem.list_blocks(problem.IMPULSIVE, form.interactions, p, memory)
    if not with_friction:
        n_blocks = _omit_bounds(form.interactions, p, memory.iwork)
    if n_contacts + n_blocks == 0:
        for i in range(6 * n):
            change[i] = 0.0
        return CONVERGED, 0.0
    # 2. inverse masses, free velocities and rows at q
    projection.metric(t, True, form.bodies, p, q, calls.functions, memory)
    plain.to_inertial(n, R, v, w)
    problem.state_rows(t, n_contacts, n_blocks, q, h, form.interactions, p, calls.functions, memory)
    _forget_equations(n_contacts, n_blocks, form.interactions, p, memory)
    # known impulses of bounds act on the free velocities
    if p.bounded != 0:
        problem.know_origins(h, form.interactions, p, memory)
        blocks.multiply_inverse(n, p.stride, inverse, view(work, p.known, 6 * n), change)
        for i in range(6 * n):
            w[i] += change[i]
    # 3. contacts; friction is switched off by its coefficient, so that the structure stays the same
    problem.arrange(n_contacts, problem.has_matrix(n_contacts, n_blocks, p), p, memory)
    _state_contacts(n_contacts, form.bodies, form.collisions, p, q, view(work, places.w_old, 6 * n), memory)
    for i in range(2 * (n_contacts + n_blocks) if not with_friction else 0):
        work[p.mu + i] = 0.0
    # 4. impulses, and the velocity change
    status, residual = _solve(n_contacts, n_blocks, s, calls, memory)
    blocks.multiply_inverse(n, p.stride, inverse, impulse, w)
    plain.to_body(n, R, w, change)
    return status, residual


@tiny
def _omit_bounds(interactions, p, iwork):
    """Number of the blocks that are left without rows with bounds. In/out: begin."""
    n = 0
    for k in range(interactions.size):
        if blocks.has_bounds(interactions[k]):
            iwork[p.begin + k] = -1
        if iwork[p.begin + k] >= 0:
            iwork[p.begin + k] = n
            n += interactions[k].n_blocks
    return n


@kernel
def _forget_equations(n_contacts, n_blocks, interactions, p, memory):
    """Equations begin without an impulse: the smooth motion has had that of the step."""
    r = problem.stated_blocks(n_contacts, n_blocks, p, memory).r
    for k in range(interactions.size):
        first, it = memory.iwork[p.begin + k], interactions[k]
        for i in range(p.d * first, p.d * (first + it.n_blocks) if it.law == EQUALITY and first >= 0 else p.d * first):
            r[i] = 0.0


@kernel
def _close_interactions(t, is_first, options, s, p, q, functions, memory):
    """Unilateral rows that are closed at q, by the tolerance of positions and rounding. Out: joined.

    is_first: before any projection. Rows closed then remain so: a projection along a curve leaves a gap of second order.
    """
    work = memory.work
    moved = view(work, p.moved, p.n_bodies)
    for i in range(p.n_bodies):
        moved[i] = 0.0
    for k in range(s.interactions.size):
        it = s.interactions[k]
        if it.always == 0 and work[it.off] == 0.0:
            evaluate(t, it, q, view(work, p.R, 9 * p.n_bodies), functions, memory)
            blocks.find_slack(options.h, it, q, moved, work)
            for i in range(0, it.m, projection.stride(it)):
                least = projection.tolerance_of_row(options.positions, it, i, s.bodies, q, memory)
                is_closed = work[it.h + i] <= max(least, work[it.slack + 2 * i])
                if is_first or is_closed:
                    work[it.joined + i] = 1.0 if is_closed else 0.0


@kernel
def _closed_contacts(options, s, p, q, memory):
    """Number of detected contacts that are closed at q, by the tolerance of positions, rounding, and their opening by the projection.

    Out: q_old, pair, which.
    """
    work, iwork = memory.work, memory.iwork
    n, collisions, bodies, pushed = 0, s.motion.collisions, s.motion.bodies, s.plan[0].pushed
    for i in range(7 * p.n_bodies):
        work[p.q_old + i] = q[i]
    for k in range(collisions.size):
        c = collisions[k]
        for i in range(iwork[c.found]):
            one, other = iwork[c.new_a + i], iwork[c.new_b + i]
            a, b = memory.imem[c.body + one], memory.imem[c.body + other]
            if bodies[a].fixed and (b == WORLD or bodies[b].fixed):
                continue
            rounding = work[c.slack + 2 * one] + (0.0 if b == WORLD else work[c.slack + 2 * other])
            # opening by the displacement of both bodies at the contact
            opened, point = 0.0, view(work, c.new_point + 3 * i, 3)
            for body in (a, b):
                if body != WORLD:
                    arm = abs(point[0] - q[7 * body]) + abs(point[1] - q[7 * body + 1]) + abs(point[2] - q[7 * body + 2])
                    opened += _OPENED * (work[pushed + 2 * body] + arm * work[pushed + 2 * body + 1])
            if work[c.new_gap + i] <= max(projection.tolerance_of_contact(options.positions, c, i, memory), rounding, opened):
                iwork[p.pair + 2 * n], iwork[p.pair + 2 * n + 1], iwork[p.which + n], iwork[p.which + p.n_contacts + n] = a, b, i, k
                n += 1
    return n


@kernel
def _state_contacts(n, bodies, collisions, p, q, w_old, memory):
    """The n closed contacts with their laws, in the order of place. Out: the first n of disk, mu, body, frame, lever, b, r."""
    work, iwork = memory.work, memory.iwork
    for i in range(n):
        j = iwork[p.place + i]
        c, number = collisions[iwork[p.which + p.n_contacts + j]], iwork[p.which + j]
        a, b = iwork[p.pair + 2 * j], iwork[p.pair + 2 * j + 1]
        frame, lever = view(work, p.frame + 9 * i, 9), view(work, p.lever + 6 * i, 6)
        iwork[p.body + 2 * i], iwork[p.body + 2 * i + 1] = a, b
        frame_in(c.planar, view(work, c.new_normal + 3 * number, 3), frame)
        for k in range(3):
            x = work[c.new_point + 3 * number + k]
            lever[k], lever[3 + k] = x - q[7 * a + k], 0.0 if b == WORLD else x - q[7 * b + k]
        contacts.state_law(c, iwork[c.new_a + number], iwork[c.new_b + number], i, p, frame, lever, q, w_old, memory)
        known = int(work[c.known + number]) - 1
        for k in range(p.d):
            work[p.r + p.d * i + k] = memory.mem[c.lam + c.each * known + k] if known >= 0 and k < c.each else 0.0
        contacts.state_moments(c.each, i, bodies, p, memory)


@kernel
def _commit(t, n_contacts, s, functions, options, memory):
    """The new state, impulses, contacts and outputs in mem. Returns CONVERGED or NON_FINITE."""
    mem, work = memory.mem, memory.work
    form, own, p, places = s.motion, s.motion.plan[0], s.positions.plan[0], s.plan[0]
    n, weight, h = own.n_bodies, options.positions.motion.theta, options.h
    q, v, R = view(work, own.q, 7 * n), view(work, own.v, 6 * n), view(work, own.R, 9 * n)
    ratio = (1.0 - options.alpha_f) / (1.0 - options.alpha_m)
    # 1. accelerations of the smooth motion, by its velocity change
    for i in range(6 * n):
        a = (v[i] - work[places.change + i] - work[own.v_old + i]) / (h * weight)
        work[places.acc + i] = a
        work[places.A + i] += ratio * a
    # 2. multipliers, of the jump and, of bilateral constraints, of the smooth motion: its problem has them times the weight of the force
    plain.take_contacts(form.collisions, memory)
    problem.keep_impulses(n_contacts, True, options.positions.motion, s.positions, memory)
    for k in range(form.interactions.size):
        it, first = form.interactions[k], memory.iwork[own.begin + k]
        for i in range(it.m if it.law == EQUALITY and first >= 0 else 0):
            mem[it.lam + i] += work[own.r + own.d * first + blocks.place(it, own.d, i)] / weight
    # 3. impulses, of both problems in axes of the bodies at their configurations
    smooth, sudden = view(work, own.p, 6 * n), view(work, p.p, 6 * n)
    plain.to_body(n, R, smooth, smooth)
    plain.to_body(n, view(work, p.R, 9 * n), sudden, sudden)
    for i in range(6 * n):
        mem[form.bodies[i // 6].q + P + i % 6] = smooth[i] / weight + sudden[i]
    # 4. state and outputs
    return plain.put_state(t, form, q, v, R, functions, memory)
