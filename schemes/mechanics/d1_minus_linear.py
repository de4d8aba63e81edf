"""The half-explicit D1- scheme on rigid bodies: that of Lagrangian systems, whose problems it solves, in velocities of a moving frame.

    v* = v_k + h a_k,   q_{k+1} = q_k moved by h/2 (v_k + v*),   v- = v_k + h/2 (a_k + a*),   v_{k+1} = v- + M^-1 H_{k+1}^T P

with v = (v_g, Omega) in axes of the body, where masses are constant: velocities are those of `nsds.schemes.lagrangian.d1_minus_linear`, and
so are its accelerations, with the gyroscopic moment among the forces. Rotations follow the exponential map of the mean of Omega, which
omits a commutator of O(h^3). Rows, and contacts of shapes, are those of the event-driven scheme (`nsds.schemes.event_driven.rigid_tables`).
"""

import math
import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference, kernel, stack, tiny, view
from nsds.maths.vectors import norm
from nsds.model.layout import ABSENT, table
from nsds.schemes.lagrangian import newton
from nsds.schemes.lagrangian.contact_forces import clear_impulses
from nsds.schemes.lagrangian.d1_minus_linear import AT_END, AT_START, IMPACT, Options, add_contact, end_smooth_motion
from nsds.schemes.lagrangian.outputs import add_change, keep_state, state_pulls, update_outputs
from nsds.schemes.lagrangian.relations import EVERY
from nsds.schemes.linear_algebra import apply_inverses
from nsds.schemes.mechanics.bodies import (
    SAME,
    bend_rows,
    evaluate_interactions,
    evaluate_wrenches,
    forget_contacts,
    renew_contacts,
    write_contacts,
)
from nsds.schemes.mechanics.body_rows import newton_form, state_bodies
from nsds.schemes.mechanics.tables import Rigid
from nsds.schemes.memory import Allocator
from nsds.schemes.problem.box import worse
from nsds.schemes.problem.rows import POSITION
from nsds.schemes.rigid import branches
from nsds.schemes.rigid.bodies import EXPONENTIAL, move
from nsds.schemes.rigid.interactions import blame, foresee_angles, keep_angles  # noqa: F401
from nsds.schemes.rigid.moreau_jean import grow  # noqa: F401
from nsds.schemes.rigid.tables import V
from nsds.status import CAPACITY, CONVERGED, INEXACT, LEFT_BRANCH, NON_FINITE

_OWNER = "d1_minus_linear"
_ROUNDING = 2.0**-48  # relative to the terms of the work of joints
_MOMENT = 0.1  # of h: distance between points of differences in time
KEPT = table(
    # integers of each row: it had an impulse in the last step; it is in the record's list of contacts
    "active", "listed",
    # of each velocity: impulses of joints, N s, and their sizes
    "pressed", "sizes",
    # v-; for `branches.beyond_reason`: velocities at both ends of the step, sizes of forces, and scratch
    "v_left", "v_old", "v", "size", "w_end",
)  # fmt: skip


@by_reference
class Tables(NamedTuple):
    """Tables of the step."""

    newton: newton.Tables
    rigid: Rigid
    kept: np.ndarray


def prepare(records, mem, options, h, method):
    """Tables of all members."""
    work, iwork = Allocator(records.size), Allocator(records.size)
    stated = state_bodies(_OWNER, records, work, iwork)
    kept = np.zeros(1, KEPT)
    iwork.place(kept, active=stated.layout.constraints.size, listed=stated.layout.constraints.size)
    words = Options(h, newton.Options(h), float(options["level"] != b"acceleration"))
    n = 6 * stated.rigid.bodies.size
    work.place(kept, size=n // 3, **dict.fromkeys(("pressed", "sizes", "v_left", "v", "w_end"), n))
    prepared = newton_form(stated, records, words.newton, method, work, iwork)
    kept["v_old"] = prepared.tables.plan["v_old"]
    tables = Tables(prepared.tables, stated.rigid, kept)
    return prepared._replace(tables=tables, options=words, stepper=sys.modules[__name__])


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: active rows, and outputs of the state. CAPACITY without room for the contacts of shapes."""
    work = memory.work
    if s.rigid.plan[0].is_short != 0:
        return CAPACITY
    # 1. activity and multipliers of the record, whose memory contacts of shapes use
    constraints, kept, p = s.newton.constraints, s.kept[0], s.newton.plan[0]
    for i in range(constraints.size):
        memory.iwork[kept.active + i], work[p.total + i] = memory.imem[constraints[i].active], memory.mem[constraints[i].lam]
    work[s.rigid.plan[0].horizon] = options.h
    forget_contacts(s.rigid, memory.iwork)
    # 2. contacts and forces
    renew_contacts(ABSENT, s.rigid, functions, memory)
    _find_active(s, memory)
    evaluate_wrenches(t, p.f, s.rigid, functions, memory)
    for i in range(constraints.size):
        memory.mem[constraints[i].lam] = work[p.total + i]
    apply_inverses(s.newton.bodies, p.f, p.a_old, p.scratch, memory)
    # 3. outputs, and the slack of gaps by forces
    for i in range(p.n_dofs):
        work[p.pull + i] = options.h * abs(work[p.a_old + i])
    evaluate_interactions(t, EVERY, ABSENT, s.rigid, functions, memory)
    state_pulls(p.pull, constraints, s.newton.entries, work)
    _end(s, options, memory)
    return CONVERGED


@tiny
def _find_active(s, memory):
    """Contacts of shapes with an impulse, which the record lists by shapes and feature. Out: active."""
    imem, iwork = memory.imem, memory.iwork
    for k in range(s.rigid.rows.size):
        row, r = s.rigid.rows[k], s.rigid.interactions[k]
        if row.collision != ABSENT:
            c, was_active = s.rigid.collisions[row.collision], 0
            for i in range(imem[c.n]):
                is_it = imem[c.a + i] == row.shape_a and imem[c.b + i] == row.shape_b and imem[c.feature + i] == iwork[row.feature]
                if is_it and memory.mem[c.lam + c.each * i] != 0.0:
                    was_active = 1
            for i in range(r.m):
                iwork[s.kept[0].active + iwork[row.number + i]] = was_active


@kernel
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, solver's iterations, residual)."""
    work = memory.work
    form, h, t = s.newton, options.h, t_new - options.h
    constraints, p, kept = form.constraints, form.plan[0], s.kept[0]
    # 1. state, operators, and activity of the last step
    keep_state(form.parts, form.elements, p.q_old, p.v_old, memory)
    _evaluate(t, p.a_old, s, options, calls.functions, memory)
    update_outputs(h, 1.0, constraints, form.entries, form.couplings, memory)  # of contacts of shapes the record has a list instead
    were_held = branches.are_held(h, view(work, p.v_old, p.n_dofs), s.rigid.interactions, work)
    for i in range(constraints.size):
        work[p.total + i] = 0.0
        memory.imem[constraints[i].active] = memory.iwork[kept.active + i]
    for i in range(p.n_dofs):
        work[kept.pressed + i], work[kept.sizes + i] = 0.0, 0.0
    # 2. start: contact forces
    _add_forces(h, s, memory)
    status, n_iter, residual = add_contact(AT_START, p.a_old, form, calls, options, memory)
    _press(1.0, s, memory)
    # 3. predicted end: positions, operators, contact forces
    _move(h, s, memory)
    _evaluate(t_new, p.dv, s, options, calls.functions, memory)
    _press(-1.0, s, memory)
    _add_forces(h, s, memory)
    status_2, n_2, residual_2 = add_contact(AT_END, p.dv, form, calls, options, memory)
    is_finite = end_smooth_motion(h, form.parts, form.elements, p, memory)
    _press(1.0, s, memory)
    done, size = _work_of_pressed(p.v_old, s, memory)
    # 4. impacts, which act on v- and not on the velocity of the start
    _press(-1.0, s, memory)
    status_3, n_3, residual_3 = add_contact(IMPACT, p.dv, form, calls, options, memory)
    add_change(True, form.parts, form.elements, p.dv, memory)
    _press(1.0, s, memory)
    done_3, size_3 = _work_of_pressed(kept.v_left, s, memory)
    # 5. multipliers, contacts and outputs
    for i in range(constraints.size):
        memory.mem[constraints[i].lam] = work[p.total + i]
        memory.iwork[kept.active + i] = 1 if work[p.total + i - constraints[i].component] != 0.0 else 0
    _end(s, options, memory)
    # 6. status; joints that do more work than the motion explains have left their branch
    status = worse(worse(status, status_2), status_3) if is_finite else NON_FINITE
    residual = max(residual, residual_2, residual_3)
    share = 0.0
    if status in (CONVERGED, INEXACT):
        share = _work_beyond_reason(done + done_3, size + size_3, were_held, h, s, memory)
    if share > 0.0:
        status, residual = LEFT_BRANCH, max(residual, share)
    return status, n_iter + n_2 + n_3, residual


@kernel
def _press(sign, s, memory):
    """``sign H^T r`` of the joints, r the impulses in total, added to pressed, and the sizes of its terms to sizes.

    The forces at the start of the step are subtracted with H of its end, where all of total is added later.
    """
    work = memory.work
    kept, total = s.kept[0], s.newton.plan[0].total
    for k in range(s.rigid.interactions.size):
        it = s.rigid.interactions[k]
        for i in range(it.m if branches.is_joint(it) else 0):
            r = sign * work[total + memory.iwork[s.rigid.rows[k].number + i]]
            for l in range(12 if it.b != ABSENT else 6):
                to, term = 6 * (it.a if l < 6 else it.b) + l % 6, r * work[it.H + 12 * i + l]
                work[kept.pressed + to] += term
                work[kept.sizes + to] += abs(term)


@kernel
def _work_of_pressed(v_begun, s, memory):
    """(``P . (v_begun + v) / 2`` of the impulses of joints in pressed, the sizes of its terms). Out: v_left is v; pressed and sizes, 0."""
    work, done, size = memory.work, 0.0, 0.0
    kept = s.kept[0]
    for i in range(6 * s.rigid.bodies.size):
        work[kept.v_left + i], v = memory.mem[s.rigid.bodies[i // 6].q + V + i % 6], work[v_begun + i]
        done += 0.5 * work[kept.pressed + i] * (v + work[kept.v_left + i])
        size += work[kept.sizes + i] * (abs(v) + abs(work[kept.v_left + i]))
        work[kept.pressed + i], work[kept.sizes + i] = 0.0, 0.0
    return done, size


@kernel
def _work_beyond_reason(done, size, were_held, h, s, memory):
    """`branches.beyond_reason` for the work of joints, with the sizes of its terms; of a smooth step also for the way, which is that of v*.

    Forces do ``h f (v* - v) / 2`` more on it than velocities have of it.
    """
    work = memory.work
    kept, f, a, is_smooth = s.kept[0], s.newton.plan[0].f, s.newton.plan[0].a_old, True
    way = 0.0  # work that is missing on it
    for k in range(s.rigid.interactions.size):
        is_smooth = is_smooth and branches.is_joint(s.rigid.interactions[k])
    for b in range(s.rigid.bodies.size):
        for i in range(6 * b, 6 * b + 6):
            work[kept.v + i] = memory.mem[s.rigid.bodies[b].q + V + i - 6 * b]
            way += 0.5 * h * work[f + i] * (work[kept.v + i] - work[kept.v_old + i] - h * work[a + i]) if i < 6 * b + 3 else 0.0
        for side in range(2):
            work[kept.size + 2 * b + side] = norm(view(work, f + 6 * b + 3 * side, 3))
    if is_smooth and size > 0.0:
        done += way
    return branches.beyond_reason(done, _ROUNDING * size, were_held, is_smooth, h, s.rigid.bodies, kept, memory)


@kernel
def _evaluate(t, a, s, options, functions, memory):
    """Accelerations without contact at the state in mem, into work[a:], curvatures, and h, rate and H of all interactions."""
    iwork = memory.iwork
    p = s.newton.plan[0]
    renew_contacts(ABSENT, s.rigid, functions, memory)
    for k in range(s.rigid.rows.size):
        row = s.rigid.rows[k]
        for i in range(s.rigid.interactions[k].m if row.collision != ABSENT and iwork[row.state] != SAME else 0):
            memory.mem[s.newton.constraints[iwork[row.number + i]].y] = math.inf  # it was not closed at the start of the step
            iwork[s.kept[0].active + iwork[row.number + i]] = 0
    evaluate_wrenches(t, p.f, s.rigid, functions, memory)
    apply_inverses(s.newton.bodies, p.f, a, p.scratch, memory)
    _bend(t, s, options, functions, memory)
    evaluate_interactions(t, EVERY, ABSENT, s.rigid, functions, memory)


@kernel
def _bend(t, s, options, functions, memory):
    """Curvatures; 0 of shapes whose normals jump along the difference, which is no acceleration.

    That is, where they touch with other features, or where the velocity of a row would change in the step by more than its bodies have.
    """
    rows, work, iwork = s.rigid.rows, memory.work, memory.iwork
    for k in range(rows.size):
        if rows[k].collision != ABSENT:
            iwork[rows[k].changed] = 0
    bend_rows(t, _MOMENT * options.h, EVERY, ABSENT, s.rigid, functions, memory)
    for k in range(rows.size):
        row = rows[k]
        for i in range(s.rigid.interactions[k].m if row.collision != ABSENT else 0):
            is_jump = options.h * abs(work[row.curvature + i]) > _largest_rate(k, i, s, memory)
            if is_jump or iwork[rows[row.first].changed] != 0:
                work[row.curvature + i] = 0.0


@tiny
def _largest_rate(k, i, s, memory):
    """Bound of the velocity of row i of an interaction with bodies that move as fast as these, whichever their directions."""
    it, rate = s.rigid.interactions[k], 0.0
    for side in range(2 if it.b != ABSENT else 1):
        row, v = it.H + 12 * i + 6 * side, s.rigid.bodies[it.a if side == 0 else it.b].q + V
        for at in (0, 3):
            rate += norm(view(memory.work, row + at, 3)) * norm(view(memory.mem, v + at, 3))
    return rate


@tiny
def _add_forces(h, s, memory):
    """Impulses of half a step of the forces between bodies, which lambda of their rows is then, into total."""
    for i in range(s.newton.constraints.size):
        c = s.newton.constraints[i]
        if c.level == POSITION:
            memory.work[s.newton.plan[0].total + i] += 0.5 * h * memory.mem[c.lam]


@kernel
def _move(h, s, memory):
    """``v* = v_k + h a_k``, and q_k moved by ``h/2 (v_k + v*)``."""
    mem, work = memory.mem, memory.work
    p, kept, n = s.newton.plan[0], stack(7), s.rigid.bodies.size
    keep_angles(s.rigid.interactions, memory)
    v_old, a_old, R = view(work, p.v_old, 6 * n), view(work, p.a_old, 6 * n), view(work, s.rigid.plan[0].R, 9 * n)
    foresee_angles(h, 1.0, v_old, v_old, R, s.rigid.interactions, memory)
    keep_angles(s.rigid.interactions, memory)
    foresee_angles(0.5 * h * h, 1.0, a_old, a_old, R, s.rigid.interactions, memory)
    for b in range(s.rigid.bodies.size):
        q = s.rigid.bodies[b].q
        v, v_old = view(mem, q + V, 6), view(work, p.v_old + 6 * b, 6)
        for i in range(7):
            kept[i] = mem[q + i]
        for i in range(6):
            v[i] = v_old[i] + h * work[p.a_old + 6 * b + i]
        move(EXPONENTIAL, kept, h, 0.5, v_old, v, view(mem, q, 7))


@kernel
def _end(s, options, memory):
    """Outputs of the state, ``p = H^T lambda`` of the bodies, flags, and the list of contacts of shapes."""
    mem = memory.mem
    form, kept = s.newton, s.kept[0]
    update_outputs(options.h, 1.0, form.constraints, form.entries, form.couplings, memory)
    clear_impulses(form.parts, form.elements, mem)
    for i in range(form.constraints.size):
        c = form.constraints[i]
        memory.imem[c.active] = memory.iwork[kept.active + i]
        memory.iwork[kept.listed + i] = 1 if mem[c.gap] <= memory.work[c.closed] else 0
        for k in range(c.input, c.input_end):
            mem[form.inputs[k].q + 2 * form.inputs[k].n] += memory.work[form.inputs[k].coefficient] * mem[c.lam]
    write_contacts(kept.listed, s.rigid, memory)
