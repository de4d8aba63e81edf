"""Moreau–Jean time stepping of rigid bodies ([Notes], 11.6).

    M (v - v_k) = h (theta F(t_{k+1}, q(v), v) + (1-theta) F_k) + H(qbar)^T r,      q(v) = q_k moved by h (theta v + (1-theta) v_k)

with the laws for ``u = H(qbar) v`` and its value at t_k (eq. 11.206). Newton's iteration (eqs 11.207–11.220):

    M_hat = M - h theta D_v F - h^2 theta^2 D_q F T,     w_free = w - M_hat^-1 R_free(v),     w <- w_free + M_hat^-1 H^T r

in velocities w = (v_g, R Omega) in inertial axes, R that of q_k. ``qbar`` is q_k moved by ``q_star h v_theta``: 0 and 1 are the two choices
of the source. Impulses of equations act with H at ``max(1/2, theta)`` of the way to qbar, not there as in the source: halfway between two
laws they take no energy from what turns. Contacts have H(q_k). The semi-explicit form (eq. 11.204) has F_k alone and H(q_k), and one
iteration.

M_hat also holds the geometric stiffness of joints, ``-h theta d(H^T r)/dq``, without its coupling between two bodies: heavy loads on
joints are as stiff as springs. The change of ``H w`` with q is in the rows of equations (`nsds.schemes.rigid.problem`), up to the square
of the turn.
"""

import math
import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference, kernel, stack, tiny, view
from nsds.maths import rotations
from nsds.maths.vectors import dot, norm, times, times_transposed
from nsds.model.collisions import with_room
from nsds.model.records import model_of
from nsds.model.system_kinds import collisions_of
from nsds.schemes.memory import Allocator, Prepared
from nsds.schemes.rigid import blocks, branches, forces, loads, passing, problem
from nsds.schemes.rigid import collisions as contacts
from nsds.schemes.rigid.bodies import LINEAR, State, force, inverse_matrix, radius_of_gyration
from nsds.schemes.rigid.enabled import is_gone, is_unmoved, note_presence
from nsds.schemes.rigid.interactions import blame, cause_of, evaluate, keep_angles, restore_angles, row_velocity  # noqa: F401
from nsds.schemes.rigid.tables import INERTIA, MASS, P, V, tables
from nsds.status import CAPACITY, CONVERGED, INEXACT, LEFT_BRANCH, NEWTON, NON_FINITE, SINGULAR_STEP, STALLED

_GROWTH = 1.5
ROUNDING = 16 * 2.0**-52  # relative to the terms that cancel in an equation: a smaller residual is rounding,
_OF_STATE = 4 * 2.0**-52  # and relative to `state_worth`
_PATIENCE = 10  # Newton's iterations in which the residual must halve
_PROGRESS = 0.1  # by which an iteration of Newton's at least reduces a residual that is not rounding
_NEGLIGIBLE = 1e-2  # of the tolerance of contacts: a residual of Newton's iteration that asks for no other impulses of theirs
_UNSOLVED = 2  # one-step problems in a row of one step that its solver may leave unsolved


@by_reference
class Tables(NamedTuple):
    """Tables of a model that a step reads."""

    bodies: np.ndarray
    interactions: np.ndarray
    collisions: np.ndarray
    plan: np.ndarray  # one row: where the arrays of the work memory lie
    links: np.ndarray  # `loads.LINK`, of RATTLE alone


def prepare(records, mem, options, h, method):
    """Tables and work memory of all members."""
    if options["form"] == b"global":
        raise ValueError("moreau_jean: form='global' is for Lagrangian systems")
    if options["pre_impact"] == b"q_star":
        raise ValueError("moreau_jean: pre_impact='q_star' is for Lagrangian systems; of rigid bodies it is 'start'")
    work, iwork = Allocator(records.size), Allocator(records.size)
    lists, words = tables(records, work, iwork), options_of(h, options)
    s = tables_of(lists, words, method, work, iwork, records.size)
    problem.follow_turns(lists, words, s.plan, work)
    return Prepared(s, lists.functions, words, work.array(), iwork.array(np.int64), sys.modules[__name__], lists)


def tables_of(lists, options, method, work, iwork, n_members):
    """`Tables` with a plan of their own."""
    plan = problem.reserve(lists, options, method, work, iwork, n_members)
    return Tables(lists.bodies, lists.interactions, lists.collisions, plan, np.zeros(0, loads.LINK))


def options_of(h, options):
    """Options of the step from those of a scheme."""
    is_explicit = "form" in options.dtype.names and options["form"] == b"explicit"
    is_linear = "update" in options.dtype.names and options["update"] == b"linear"
    theta, gamma, q_star, tol, max_iter = (
        float(options[name].item()) for name in ("theta", "gamma", "q_star", "newton_tol", "newton_max_iter")
    )
    # with M and F_k alone nothing depends on the end of the step: one problem, nothing to converge
    if is_explicit:
        q_star, tol = 0.0, np.inf
    motion = problem.Options(h, theta, theta, gamma, q_star, tol, max_iter, float(is_explicit), press=max(0.5, theta) * q_star)
    return motion._replace(update=float(LINEAR)) if is_linear else motion


def grow(records):
    """The records with room for half as many contacts more in all their collisions."""
    names = [line[0] for line in collisions_of(model_of(records))]
    return with_room(records, {name: int(_GROWTH * records.dtype[name]["a"].shape[0]) + 1 for name in names})


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: presence, rotations, contacts and outputs of the state. Returns CONVERGED, or CAPACITY without room."""
    work = memory.work
    p = s.plan[0]
    note_presence(s, memory)
    q, v, R = view(work, p.q, 7 * p.n_bodies), view(work, p.v, 6 * p.n_bodies), view(work, p.R, 9 * p.n_bodies)
    load_state(s.bodies, q, v, memory)
    if not find_contacts(options, p.parallel != 0, s, q, v, memory):
        return CAPACITY
    take_contacts(s.collisions, memory)
    outputs(t, s.interactions, p, q, v, R, functions, memory)
    return CONVERGED


@tiny
def load_state(bodies, q, v, memory):
    """q and v of all bodies from mem, v = 0 of those that are gone."""
    for i in range(bodies.size):
        for k in range(7):
            q[7 * i + k] = memory.mem[bodies[i].q + k]
        for k in range(6):
            v[6 * i + k] = 0.0 if is_gone(bodies[i], memory.work) else memory.mem[bodies[i].q + V + k]


@kernel
def find_contacts(options, parallel, s, q, v, memory):
    """Contacts at the state (q, v), into the work memory; False where there are more than the record has room for."""
    ahead = max(1.0, options.gamma) * options.h  # the forecast of the next step looks no farther
    for k in range(s.collisions.size):
        c = s.collisions[k]
        memory.iwork[c.found] = contacts.find(c, s.interactions, ahead, parallel, q, v, memory)
        if memory.iwork[c.found] > c.capacity:
            return False
    return True


@kernel
def take_contacts(collisions, memory):
    """The contacts found into the record, with the impulses of those that persist and of those that they replace."""
    for k in range(collisions.size):
        c = collisions[k]
        contacts.inherit(False, c, memory.iwork[c.found], memory)
        contacts.pass_on(c, memory.iwork[c.found], memory)
        contacts.take_over(c, memory.iwork[c.found], memory)


@tiny
def outputs(t, interactions, p, q, v, R, functions, memory):
    """R and w of the state (q, v), and y and ydot of all interactions, whose H is that of q afterwards. False where some is not finite."""
    for i in range(p.n_bodies):
        rotations.rotation_matrix(view(q, 7 * i + 3, 4), view(R, 9 * i, 9))
    for k in range(interactions.size):
        evaluate(t, interactions[k], q, R, functions, memory)
    return outputs_of_velocities(interactions, p, v, R, memory)


@kernel
def outputs_of_velocities(interactions, p, v, R, memory):
    """As `outputs`, if h, H and rate, and R, are already those of the state."""
    w, zero = view(memory.work, p.w, 6 * p.n_bodies), 0.0
    to_inertial(p.n_bodies, R, v, w)
    for k in range(interactions.size):
        it = interactions[k]
        keep_outputs(it, w, memory)
        for i in range(it.m):
            zero += 0.0 * memory.mem[it.y + i] + 0.0 * memory.mem[it.ydot + i]
    return zero == 0.0


@tiny
def keep_outputs(it, w, memory):
    """y and ydot of one interaction, from its H and rate and velocities w."""
    work = memory.work
    for i in range(it.m):
        memory.mem[it.y + i], memory.mem[it.ydot + i] = work[it.h + i], row_velocity(work[it.rate + i], it, i, w, work)


@tiny
def to_inertial(n, R, v, w):
    """``w = (v_g, R Omega)`` of n bodies."""
    for i in range(n):
        for k in range(3):
            w[6 * i + k] = v[6 * i + k]
        times(view(R, 9 * i, 9), view(v, 6 * i + 3, 3), view(w, 6 * i + 3, 3))


@tiny
def to_body(n, R, w, v):
    """``v = (v_g, R^T omega)`` of n bodies."""
    for i in range(n):
        for k in range(3):
            v[6 * i + k] = w[6 * i + k]
        times_transposed(view(R, 9 * i, 9), view(w, 6 * i + 3, 3), view(v, 6 * i + 3, 3))


@kernel
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, Newton's iterations, residual)."""
    begin(t_new - options.h, options, s, calls.functions, memory)
    were_held = branches.are_held(options.h, view(memory.work, s.plan[0].w, 6 * s.plan[0].n_bodies), s.interactions, memory.work)
    n_contacts, n_blocks = problem.choose_active(options, s, memory)
    status, n_iter, residual = iterate(t_new, n_contacts, n_blocks, s, calls, options, memory)
    status, residual = judge_work(status, residual, were_held, n_contacts, n_blocks, options, s, memory)
    passing.keep_from_passing(False, options.h, options.a, s, memory)
    done = commit(t_new, n_contacts, n_blocks, s, calls.functions, options, memory)
    return status if done == CONVERGED else done, n_iter, residual


@tiny
def judge_work(status, residual, were_held, n_contacts, n_blocks, options, s, memory):
    """(status, residual): a step in which joints do work that nothing explains is LEFT_BRANCH, with that work of the kinetic energy."""
    work = memory.work
    share, p = 0.0, s.plan[0]
    if status in (CONVERGED, INEXACT):
        to_inertial(p.n_bodies, view(work, p.R, 9 * p.n_bodies), view(work, p.v_old, 6 * p.n_bodies), view(work, p.w_free, 6 * p.n_bodies))
        share = branches.work_beyond_reason(were_held, n_contacts, n_blocks, options.h, s, memory)
    return (LEFT_BRANCH, max(residual, share)) if share > 0.0 else (status, residual)


@kernel
def begin(t, options, s, functions, memory):
    """Keep q_k and v_k, the first iterate, F_k and the displacement by forces; of an explicit step the inverse masses, too."""
    work, bodies, p = memory.work, s.bodies, s.plan[0]
    q_old, v_old = view(work, p.q_old, 7 * p.n_bodies), view(work, p.v_old, 6 * p.n_bodies)
    work[p.lost] = 0.0
    keep_angles(s.interactions, memory)
    # F_k is needed by its weight 1 - theta, and by the choice of active contacts
    is_wanted = options.theta < 1.0 or options.is_explicit != 0.0 or options.span > 0.0 or p.unilateral != 0
    # 1. state, and forces on each body
    load_state(bodies, q_old, v_old, memory)
    for i in range(6 * p.n_bodies):
        work[p.v + i] = v_old[i]
    for i in range(p.n_bodies if is_wanted else 0):
        if not is_unmoved(bodies[i], work):
            out, size = view(work, p.f_old + 6 * i, 6), view(work, p.size + 2 * i, 2)
            force(t, bodies[i], view(q_old, 7 * i, 7), view(v_old, 6 * i, 6), functions, memory.mem, out, size)
    # 2. forces between bodies, then the displacement by both
    if is_wanted and p.forces != 0:
        forces.add_at_start(t, s, functions, memory)
    if p.unilateral != 0:
        problem.way_of_forces(options.h, bodies, p, memory)
    if options.is_explicit != 0.0:
        invert_masses(t, options, s, functions, memory)


@kernel
def iterate(t_new, n_contacts, n_blocks, s, calls, options, memory):
    """Newton's iteration from v_k, whose w `outputs` has computed. Velocities and impulses are in work.

    Returns (status, iterations, residual): CONVERGED if balances of momentum and equations hold to TOL, both relative to the terms
    that cancel in them, or no longer fall and are rounding of the state (`state_worth`), and contacts to the solver's options; many blocks,
    which sweeps solve, have equations like contacts. INEXACT if all are at most the residual that these options bear; the residual is the
    largest of the three. Bodies are at the end of the motion, but those of RATTLE, which moves them itself.
    """
    functions, solver_options, p, work = calls.functions, calls.solver_options, s.plan[0], memory.work
    bodies, interactions, is_pressed = s.bodies, s.interactions, options.span > 0.0 and options.is_explicit == 0.0 and s.links.size > 0
    if n_blocks == 0 if options.is_explicit != 0.0 else p.linear != 0:
        return solve_at_once(t_new, n_contacts, n_blocks, s, calls, options, memory)
    m, t_force = p.n_bodies, t_new + 0.5 * options.span  # of both halves of RATTLE, of whose first one t_new is the start
    q, v, R, inverse = view(work, p.q, 7 * m), view(work, p.v, 6 * m), view(work, p.R, 9 * m), view(work, p.inverse, p.stride * m)
    w, R_free, impulse = view(work, p.w, 6 * m), view(work, p.R_free, 6 * m), view(work, p.p, 6 * m)
    # 1. first iterate: no impulses, no geometric stiffness
    problem.clear(p, work)
    for i in range(9 * m):
        work[p.turning + i] = 0.0
    status, solved, residual, n_iter, unsolved, least, waited = NEWTON, CONVERGED, 1.0, 0, 0, math.inf, 0
    tol, enough = max(options.tol, ROUNDING), solver_options.enough
    is_free = n_contacts == 0 and problem.are_equations(interactions, p, memory.iwork)
    is_linear, at_once = is_free and options.is_explicit != 0.0 and options.span == 0.0, False  # but for choices of rows, and rounding
    # sweeps solve equations only to the tolerance of contacts, a matrix to that of Newton's iteration
    tol_of_equations, negligible = max(tol, enough), _NEGLIGIBLE * enough
    if problem.has_matrix(n_contacts, n_blocks, p):
        tol_of_equations, negligible = tol, _NEGLIGIBLE * solver_options.tol
    for n_iter in range(int(options.max_iter) + 1):
        # 2. configuration, forces and rows at the iterate
        if p.placed != 0 and not _stays(options):
            problem.move_all(options.h, options, s.interactions, p, q, memory)
        evaluate_forces(True, t_force, options, s, q, v, functions, memory)
        problem.state_blocks(t_new, n_iter == 0, n_contacts, n_blocks, options, interactions, p, functions, memory)
        n_equations = problem.count_equations(n_contacts, n_blocks, p, memory.iwork)
        # impulses act with the H of this iterate, so their sum is stale
        if n_iter > 0 and n_blocks > 0 and (options.q_star > 0.0 or p.forces != 0):  # H has moved, or forces have
            problem.total_impulse(n_contacts, n_blocks, p, memory)
        # load of the joints over the half step; the guess of the first iterate already has it in r
        if is_pressed:
            loads.press(True, options.h, s, memory)
            loads.add_sizes(s, work)
            if n_iter == 0:
                loads.take_from_guess(options.h, s, problem.stated_blocks(n_contacts, n_blocks, p, memory).r, memory)
        # 3. residuals: balance of momentum, and equations by velocities
        free_impulse(options, bodies, p, v, R, R_free, memory)
        if n_iter > 0 or n_blocks > 0:
            residual = _balance(n_iter, residual, tol, options, bodies, p, v, impulse, R_free, memory)
        equations, judged = equation_residual(
            n_contacts, n_blocks, n_iter > 0 and n_equations > 0, tol_of_equations, options, bodies, p, v, w, inverse, memory
        )
        # 4. verdict; both residuals have to hold at the same iterate
        if not math.isfinite(residual + equations):
            status = NON_FINITE
        elif not (solved == CONVERGED or problem.can_go_on(solved)):
            status = solved
        elif n_iter > 0 and residual <= tol and judged <= tol_of_equations:
            status, equations = solved, judged
        residual = max(residual, equations)
        # halving within _PATIENCE iterations, or the problem is not going to converge
        least, waited = (residual, 0) if residual < 0.5 * least else (least, waited + 1)
        unsolved = 0 if solved == CONVERGED else unsolved + 1
        is_stuck = waited >= _PATIENCE or unsolved >= _UNSOLVED or (n_iter > 0 and p.linear != 0)
        if status != NEWTON or is_stuck or n_iter == int(options.max_iter):
            break
        # 5. iteration matrix
        if n_iter > 0 and options.q_star > 0.0:
            problem.turn_joints(n_contacts, n_blocks, options, interactions, p, memory)
        if options.is_explicit == 0.0 and not invert(t_force, is_free, options, bodies, p, q, v, R, functions, memory, inverse):
            status = SINGULAR_STEP
            break
        # the accuracy of the first problem is relative to the speeds by the new inverse
        if n_iter == 0:
            equation_residual(n_contacts, n_blocks, n_equations > 0, tol, options, bodies, p, v, w, inverse, memory)
        # 6. one-step problem; contacts keep their impulses if only the smooth part has changed by less than they could notice
        if n_iter == 0 or n_blocks > 0 or solved != CONVERGED or residual > negligible:
            solved = problem.solve(
                n_contacts, n_blocks, n_iter == 0, options.is_half != 0.0, s, calls.solver, solver_options, tol, residual, memory
            )
        # 7. new iterate; a linear problem solved to tol is not evaluated again
        change_velocities(p, R, R_free, impulse, inverse, w, v, work)
        at_once = is_linear and work[p.info] == 0.0 and work[p.info + 1] <= tol
        if at_once:
            status, residual, n_iter = solved, 0.0, n_iter + 1
            break
    # 8. end of the motion
    _move_to_end(at_once, options, s, q, memory)
    if n_iter > 0 and n_contacts + n_blocks > 0:
        residual = max(residual, work[p.info + 1])
    return verdict(status, solved, n_iter, residual, solver_options.inexact), n_iter, residual


@tiny
def _stays(options):
    """Whether nothing moves, as in the second half of RATTLE."""
    return options.is_half != 0.0 and options.is_explicit != 0.0


@tiny
def _move_to_end(is_behind, options, s, q, memory):
    """Move bodies to the end of the motion, unless they are there, and angles of joints with them; loads at its middle by rows. Out: q."""
    p = s.plan[0]
    if options.span > 0.0 and options.is_explicit == 0.0:
        loads.split(s, memory)
    if (p.placed == 0 or is_behind) and options.span == 0.0 and not _stays(options):
        problem.move_all(options.h, options, s.interactions, p, q, memory)
    problem.foresee_all(options.h, options, s.interactions, p, memory)


@tiny
def _balance(n_iter, before, tol, options, bodies, p, v, impulse, R_free, memory):
    """`free_residual`, or, where it falls no longer, beside rounding; before: the last one."""
    residual = free_residual(options, bodies, p, v, impulse, R_free, 0.0, memory)
    if n_iter > 0 and residual > max(tol, _PROGRESS * before):
        residual = min(residual, residual_beside_rounding(tol, options, bodies, p, v, impulse, R_free, memory))
    return residual


@kernel
def solve_at_once(t_new, n_contacts, n_blocks, s, calls, options, memory):
    """`iterate` if forces depend on t alone, or are known, and H on nothing: one problem, whose residual is that of the step."""
    functions, work = calls.functions, memory.work
    p, t_force, tol = s.plan[0], t_new + 0.5 * options.span, max(options.tol, ROUNDING)
    m = p.n_bodies
    q, v, R, inverse = view(work, p.q, 7 * m), view(work, p.v, 6 * m), view(work, p.R, 9 * m), view(work, p.inverse, p.stride * m)
    w, R_free, impulse = view(work, p.w, 6 * m), view(work, p.R_free, 6 * m), view(work, p.p, 6 * m)
    for i in range(9 * m):
        work[p.turning + i] = 0.0
    # 1. forces, rows and residual at v_k
    evaluate_forces(True, t_force, options, s, q, v, functions, memory)
    problem.state_blocks(t_new, True, n_contacts, n_blocks, options, s.interactions, p, functions, memory)
    free_impulse(options, s.bodies, p, v, R, R_free, memory)
    # 2. one solve with the constant matrix
    solved, residual = SINGULAR_STEP, 0.0
    if options.is_explicit != 0.0 or invert(t_force, False, options, s.bodies, p, q, v, R, functions, memory, inverse):
        solved = problem.solve(n_contacts, n_blocks, True, options.is_half != 0.0, s, calls.solver, calls.solver_options, tol, 1.0, memory)
        change_velocities(p, R, R_free, impulse, inverse, w, v, work)
        residual = work[p.info + 1] if n_contacts + n_blocks > 0 else 0.0
    # 3. positions
    if options.span == 0.0 and not _stays(options):
        problem.move_all(options.h, options, s.interactions, p, q, memory)
    return verdict(solved, solved, 1, residual, calls.solver_options.inexact), 1, residual


@tiny
def verdict(status, solved, n_iter, residual, bearable):
    """Status of a step whose iteration ended with one, and its last one-step problem with another: INEXACT if its residual is bearable."""
    if status != NEWTON and not problem.can_go_on(status):
        return status
    if n_iter > 0 and residual <= bearable:
        return INEXACT
    if status == NEWTON and problem.can_go_on(solved):
        status = solved
    return STALLED if status == INEXACT else status


@tiny
def evaluate_forces(is_new, t_new, options, s, q, v, functions, memory):
    """F(t_{k+1}, q, v) on all bodies and between them, and the sizes of its terms; if is_new, their stiffness, too."""
    work = memory.work
    p, weight = s.plan[0], options.h * options.theta
    for i in range(p.n_bodies):
        if options.is_explicit == 0.0 and not is_unmoved(s.bodies[i], work):
            out, size = view(work, p.f + 6 * i, 6), view(work, p.size + 2 * i, 2)
            force(t_new, s.bodies[i], view(q, 7 * i, 7), view(v, 6 * i, 6), functions, memory.mem, out, size)
    if options.is_explicit == 0.0 and p.forces != 0:
        floor = ROUNDING / max(options.tol, ROUNDING)
        forces.add_at_end(is_new, t_new, weight, weight * options.h * options.a, floor, s, q, functions, memory)


@kernel
def free_impulse(options, bodies, p, v, R, out, memory):
    """``R_free = M (v - v_k) - h F`` in inertial axes ([Notes], eq. 11.215). Out: R_free (6 each)."""
    work = memory.work
    h, term = options.h, stack(3)
    at_end = 0.0 if options.is_explicit != 0.0 else options.theta
    at_start = 1.0 - at_end
    for i in range(p.n_bodies):
        q, f, f_old, v_old, R_i = bodies[i].q, p.f + 6 * i, p.f_old + 6 * i, p.v_old + 6 * i, view(out, 6 * i, 6)
        if is_unmoved(bodies[i], work):
            for k in range(6):
                R_i[k] = 0.0
            continue
        # M (v - v_k), moment in axes of the body
        for k in range(3):
            R_i[k] = memory.mem[q + MASS] * (v[6 * i + k] - work[v_old + k])
            term[k] = v[6 * i + 3 + k] - work[v_old + 3 + k]
        times(view(memory.mem, q + INERTIA, 9), term, view(R_i, 3, 3))
        # minus h F, weighted by theta; terms of weight 0 are not added, so that NaN of an unused force does not spread
        for k in range(6 if at_end != 0.0 else 0):
            R_i[k] -= h * at_end * work[f + k]
        for k in range(6 if at_start != 0.0 else 0):
            R_i[k] -= h * at_start * work[f_old + k]
        # moments into inertial axes
        times(view(R, 9 * i, 9), view(R_i, 3, 3), view(R_i, 3, 3))


@kernel
def free_residual(options, bodies, p, v, impulse, R_free, floor, memory):
    """The largest relative ``|R_free - p|``. Out: h_size, the sizes of terms of forces as impulses.

    Relative to the magnitudes that cancel on the body, of translation and rotation together, each weighted by the radius of gyration:
    a motion that a body does not have is not judged by its rounding. floor: share of `state_worth` that counts as well, 0 without it.
    """
    mem, work = memory.mem, memory.work
    h, worst, term, momentum = options.h, 0.0, stack(3), stack(3)
    for i in range(p.n_bodies):
        q, v_old, total, left = bodies[i].q, p.v_old + 6 * i, 0.0, 0.0
        if is_unmoved(bodies[i], work):
            continue
        # sizes of translation (N s) and rotation (N m s), and squares of what is left
        I, m = view(mem, q + INERTIA, 9), mem[q + MASS]
        weight = 3.0 * m / (I[0] + I[4] + I[8])  # of squares: 1 over that of the radius of gyration
        for side in range(2):
            if side == 0:
                size = m * (norm(view(v, 6 * i, 3)) + norm(view(work, v_old, 3)))
            else:
                times(I, view(v, 6 * i + 3, 3), momentum)
                size = norm(momentum)
                times(I, view(work, v_old + 3, 3), momentum)
                size += norm(momentum)
            work[p.h_size + 2 * i + side] = h * work[p.size + 2 * i + side]
            size += work[p.h_size + 2 * i + side] + work[p.impulses + 2 * i + side]
            for k in range(3):
                term[k] = R_free[6 * i + 3 * side + k] - impulse[6 * i + 3 * side + k]
            total += size if side == 0 else math.sqrt(weight) * size
            left = max(left, dot(term, term) if side == 0 else weight * dot(term, term))
        left = math.sqrt(left)
        # below the rounding of the state a residual has no meaning
        if floor > 0.0:
            total += floor * mem[q + MASS] * work[p.worth + 2 * i]
        if total > 0.0:
            worst = max(worst, left / total)
        # NaN or infinity of one body reaches the result, which max would drop
        worst += 0.0 * total + 0.0 * left
    return worst


@kernel
def residual_beside_rounding(tol, options, bodies, p, v, impulse, R_free, memory):
    """As `free_residual`, where rounding of the state is not counted. Out: worth."""
    state_worth(options.h, bodies, p, v, memory)
    return free_residual(options, bodies, p, v, impulse, R_free, _OF_STATE / tol, memory)


@kernel
def state_worth(h, bodies, p, v, memory):
    """Velocities whose rounding is one unit of error a step, even for slow bodies. Out: worth (2 each): translation, rotation.

    Those that move a body from the origin to its place, and turn it by a radian, in the step: below their rounding no digit of its
    coordinates changes. And the largest of all bodies: a one-step problem is solved relative to its fastest motion.
    """
    work = memory.work
    fastest = 0.0
    for i in range(p.n_bodies):
        radius = 0.0 if bodies[i].fixed else radius_of_gyration(bodies[i], memory.mem)
        fastest = max(fastest, norm(view(v, 6 * i, 3)) + radius * norm(view(v, 6 * i + 3, 3)))
        fastest = max(fastest, norm(view(work, p.v_old + 6 * i, 3)) + radius * norm(view(work, p.v_old + 6 * i + 3, 3)))
    for i in range(p.n_bodies):
        worth, way = view(work, p.worth + 2 * i, 2), norm(view(work, p.q_old + 7 * i, 3)) / h
        if bodies[i].fixed:
            worth[0], worth[1] = way + fastest, 1.0 / h
        else:
            radius = radius_of_gyration(bodies[i], memory.mem)
            worth[0] = way + fastest + radius / h
            worth[1] = worth[0] / radius


@tiny
def equation_residual(n_contacts, n_blocks, is_wanted, tol, options, bodies, p, v, w, inverse, memory):
    """Residual of the equations, relative to the velocities that cancel in them; and the same beyond rounding.

    is_wanted: whether there are equations, and the inverses are known. Out: speed, the velocities that the forces on a body amount to.
    """
    if not is_wanted:
        return 0.0, 0.0
    speed = view(memory.work, p.speed, 4 * p.n_bodies)
    state_worth(options.h, bodies, p, v, memory)
    speeds(bodies, p, v, inverse, memory, speed)
    for i in range(2 * p.n_bodies if options.span > 0.0 else 0):  # rounding of positions counts as velocity
        speed[4 * (i // 2) + i % 2] += ROUNDING / tol * memory.work[p.worth + i]
    return blocks.equation_residual(p.d, problem.stated_blocks(n_contacts, n_blocks, p, memory), w, speed, ROUNDING / tol)


@kernel
def speeds(bodies, p, v, inverse, memory, speed):
    """Sums of the velocities, of translation and rotation: of the body, by forces and its impulse; and by impulses that cancel.

    Each is completed by the other at the radius of gyration, as in `free_residual`. Out: speed (4 each): the two sums, and those by
    impulses on the body that cancel in part, with `state_worth`.
    """
    work = memory.work
    for i in range(p.n_bodies):
        v_old, p_i = p.v_old + 6 * i, p.p + 6 * i
        for side in range(2):
            at = 4 * i + side
            speed[at] = norm(view(v, 6 * i + 3 * side, 3)) + norm(view(work, v_old + 3 * side, 3))
            speed[at + 2] = work[p.worth + 2 * i + side]
            for other in range(2):
                size = blocks.block_norm(p.stride, view(inverse, p.stride * i, p.stride), side, other)
                speed[at] += size * (work[p.h_size + 2 * i + other] + norm(view(work, p_i + 3 * other, 3)))
                speed[at + 2] += size * work[p.impulses + 2 * i + other]
        for at in range(4 * i, 4 * i + 4 if not bodies[i].fixed else 4 * i, 2):
            radius = radius_of_gyration(bodies[i], memory.mem)
            speed[at] += radius * speed[at + 1]
            speed[at + 1] = speed[at] / radius


@kernel
def restore_velocities(p, work):
    """Velocities of the start of the step. Out: v, w."""
    v, R = view(work, p.v, 6 * p.n_bodies), view(work, p.R, 9 * p.n_bodies)
    for i in range(6 * p.n_bodies):
        v[i] = work[p.v_old + i]
    to_inertial(p.n_bodies, R, v, view(work, p.w, 6 * p.n_bodies))


@tiny
def invert(t_new, is_free, options, bodies, p, q, v, R, functions, memory, inverse):
    """Inverse iteration matrices of all bodies; False where one is singular. is_free: with equations only, they may be indefinite."""
    h, weight = options.h, 0.0 if options.is_explicit != 0.0 else options.h * options.theta
    regular = True
    for i in range(p.n_bodies):
        regular = regular and inverse_matrix(
            State(t_new, weight, weight * h * options.a, view(q, 7 * i, 7), view(v, 6 * i, 6)), bodies[i], view(R, 9 * i, 9),
            view(memory.work, p.turning + 9 * i, 9), is_free, functions, memory, view(inverse, p.stride * i, p.stride),
            view(memory.work, p.spare, 150),
        )  # fmt: skip
    return regular


@kernel
def invert_masses(t, options, s, functions, memory):
    """Inverse masses at the start of an explicit step, for all its iterations. Out: turning, which is 0, and inverse."""
    work = memory.work
    p, m = s.plan[0], s.plan[0].n_bodies
    q, v, R, inverse = view(work, p.q_old, 7 * m), view(work, p.v, 6 * m), view(work, p.R, 9 * m), view(work, p.inverse, p.stride * m)
    for i in range(9 * m):
        work[p.turning + i] = 0.0
    invert(t, False, options, s.bodies, p, q, v, R, functions, memory, inverse)


@tiny
def change_velocities(p, R, R_free, impulse, inverse, w, v, work):
    """``w += M_hat^-1 (p - R_free)``, and v likewise: a body on which nothing acts keeps the bits of its velocity."""
    m = p.n_bodies
    change = view(work, p.w_free, 6 * m)
    for i in range(6 * m):
        R_free[i] = impulse[i] - R_free[i]
    blocks.multiply_inverse(m, p.stride, inverse, R_free, change)
    for i in range(6 * m):
        w[i] += change[i]
    to_body(m, R, change, R_free)
    for i in range(6 * m):
        v[i] += R_free[i]


@kernel
def commit(t_new, n_contacts, n_blocks, s, functions, options, memory):
    """The new state, impulses, contacts and outputs in mem. Returns CONVERGED, NON_FINITE, or CAPACITY, where nothing has changed."""
    mem, work = memory.mem, memory.work
    p = s.plan[0]
    m = p.n_bodies
    q, v, R = view(work, p.q, 7 * m), view(work, p.v, 6 * m), view(work, p.R, 9 * m)
    if not find_contacts(options, p.parallel != 0, s, q, v, memory):
        restore_angles(s.interactions, memory)
        return CAPACITY
    problem.keep_impulses(n_contacts, False, options, s, memory)
    take_contacts(s.collisions, memory)
    for i in range(m):
        at = s.bodies[i].q
        for k in range(6):
            mem[at + P + k] = work[p.p + 6 * i + k]
        times_transposed(view(R, 9 * i, 9), view(mem, at + P + 3, 3), view(mem, at + P + 3, 3))
    return put_state(t_new, s, q, v, R, functions, memory)


@tiny
def put_state(t, s, q, v, R, functions, memory):
    """q and v into mem, with their outputs. Returns CONVERGED or NON_FINITE. Out: R and w of the state."""
    is_finite = keep_state(s, q, v, memory)
    is_finite = outputs(t, s.interactions, s.plan[0], q, v, R, functions, memory) and is_finite
    return CONVERGED if is_finite else NON_FINITE


@tiny
def keep_state(s, q, v, memory):
    """q and v into mem. Returns whether q and gaps of contacts are finite."""
    mem = memory.mem
    zero = 0.0
    for i in range(s.plan[0].n_bodies):
        if is_gone(s.bodies[i], memory.work):
            continue
        at = s.bodies[i].q
        for k in range(7):
            mem[at + k] = q[7 * i + k]
            zero += 0.0 * q[7 * i + k]
        for k in range(6):
            mem[at + V + k] = v[6 * i + k]
    for k in range(s.collisions.size):
        for i in range(memory.imem[s.collisions[k].n]):
            zero += 0.0 * mem[s.collisions[k].y + i]
    return zero == 0.0
