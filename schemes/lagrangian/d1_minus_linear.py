"""Half-explicit time-discontinuous Galerkin scheme D1-: velocities linear in each step, and discontinuous between, impulses at its end.

    a_k     = M_k^-1 (F(t_k, q_k, v_k) + H_k^T lambda_k+)                            contacts closed at t_k, and not opening
    q_{k+1} = q_k + h/2 (v_k + v*),   v* = v_k + h a_k
    a*      = M_{k+1}^-1 (F(t_{k+1}, q_{k+1}, v*) + H_{k+1}^T lambda_{k+1}-)         closed at both ends, and v* not opening
    v_{k+1} = v- + M_{k+1}^-1 H_{k+1}^T P,   v- = v_k + h/2 (a_k + a*),   0 <= H v_{k+1} + e H v-  ⟂  P >= 0       closed at t_{k+1}

The forces maintain the acceleration, ``0 <= H a + curvature  ⟂  lambda >= 0``, or the velocity at the end, ``0 <= H v  ⟂  lambda >= 0``.
Those of friction oppose the slip at the end of the step, by v* and v-, and so bring it to rest if they can; in space lambda_k+ opposes that
at its start, if slip continues, so that both together keep the second order. Impulses have friction of their own. Bounded forces are
treated for velocities in the same way, and have no impulses
(Schindler, Acary, Math. Comput. Simul. 95 (2014) 180–199; Schindler, Rezaei, Kursawe, Acary, Comput. Methods Appl.
Mech. Engrg. 290 (2015) 250–276).
"""

import math
import sys
from typing import NamedTuple

from nsds._jit import inlined, kernel, tiny
from nsds.model.layout import ABSENT
from nsds.schemes.lagrangian import newton
from nsds.schemes.lagrangian.branches import judge, keep_start, press, work_of_pressed
from nsds.schemes.lagrangian.contact_forces import evaluate_curvature, push_apart, require_rigid
from nsds.schemes.lagrangian.functions import blame  # noqa: F401
from nsds.schemes.lagrangian.newton import evaluate_forces, evaluate_masses, invert, old_velocity
from nsds.schemes.lagrangian.outputs import acceleration, add_change, gap_slack, keep_state, position, update_outputs, velocity
from nsds.schemes.lagrangian.relations import EVERY, evaluate_relations
from nsds.schemes.lagrangian.tables import layout_of
from nsds.schemes.linear_algebra import apply_inverses
from nsds.schemes.memory import Allocator
from nsds.schemes.problem.active_set import list_row
from nsds.schemes.problem.box import rounding_of, worse
from nsds.schemes.problem.impact import restitution
from nsds.schemes.problem.rows import POSITION
from nsds.status import CONVERGED, INEXACT, NON_FINITE, NOT_DEFINITE, SINGULAR_STEP

_REST = 0.05  # y of a persistent contact, relative to the displacement by its acceleration in a step
_ULPS, _RESTS = 1e-12, 1e-8  # of speeds, and of their change by forces in a step: up to which contacts do not open
_SLIDES = 1e-6  # slip at the end of a step, relative to that at its start: below it is sticking
AT_START, AT_END, IMPACT = range(3)


class Options(NamedTuple):
    """Parameters of the step; velocity_level is 0 or 1."""

    h: float
    newton: newton.Options
    velocity_level: float


def prepare(records, mem, options, h, method):
    """Tables and constant inverse masses of all members."""
    work, iwork = Allocator(records.size), Allocator(records.size)
    layout = layout_of(records, work, "d1_minus_linear", h, h)
    require_rigid("d1_minus_linear", layout)
    words = Options(h, newton.Options(h), float(options["level"] == b"velocity"))
    prepared = newton.prepare(records, layout, words.newton, method, work, iwork)
    return prepared._replace(options=words, stepper=sys.modules[__name__])


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: operators at the state, and its outputs."""
    newton.start(t, s, functions, options.newton, memory)
    invert(t, options.newton, s.parts, s.elements, s.bodies, s.plan[0], functions, memory)
    return CONVERGED


@kernel
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, solver's iterations, residual)."""
    functions, work = calls.functions, memory.work
    parts, elements, constraints, p, h, t = s.parts, s.elements, s.constraints, s.plan[0], options.h, t_new - options.h
    # 1. start: accelerations and contact forces
    keep_state(parts, elements, p.q_old, p.v_old, memory)
    if p.jointed != 0:
        keep_start(parts, elements, s.entries, p, memory)
    for i in range(constraints.size):
        work[p.total + i] = 0.0
    evaluate_forces(t, options.newton, parts, elements, p, p.f, functions, memory)
    apply_inverses(s.bodies, p.f, p.a_old, p.scratch, memory)
    evaluate_curvature(t, h, p.a_old, s.relations, p, functions, memory)
    status, n_iter, residual = add_contact(AT_START, p.a_old, s, calls, options, memory)
    if p.jointed != 0:
        press(1.0, constraints, s.entries, p, work)
    # 2. predicted end: positions, operators, forces
    _move(h, parts, elements, p, memory)
    definite = evaluate_masses(1.0, parts, elements, p, functions, memory)
    regular = invert(t_new, options.newton, parts, elements, s.bodies, p, functions, memory)
    evaluate_relations(t_new, 1.0, 0.0, EVERY, options.newton, s.relations, p, functions, memory)
    if p.jointed != 0:
        press(-1.0, constraints, s.entries, p, work)
    evaluate_forces(t_new, options.newton, parts, elements, p, p.f, functions, memory)
    apply_inverses(s.bodies, p.f, p.dv, p.scratch, memory)
    evaluate_curvature(t_new, h, p.dv, s.relations, p, functions, memory)
    # 3. contact forces at the end, and the smooth motion
    status_2, n_2, residual_2 = add_contact(AT_END, p.dv, s, calls, options, memory)
    finite = end_smooth_motion(h, parts, elements, p, memory)
    # 4. impacts
    status_3, n_3, residual_3 = add_contact(IMPACT, p.dv, s, calls, options, memory)
    add_change(True, parts, elements, p.dv, memory)
    # 5. multipliers of all three, outputs, status
    for i in range(constraints.size):
        memory.mem[constraints[i].lam] = work[p.total + i]
        memory.imem[constraints[i].active] = work[p.total + i - constraints[i].component] != 0.0
    update_outputs(h, 1.0, constraints, s.entries, s.couplings, memory)
    status = worse(worse(status, status_2), status_3)
    if not definite or not regular:
        status = SINGULAR_STEP if definite else NOT_DEFINITE
    elif not finite:
        status = NON_FINITE
    residual = max(residual, residual_2, residual_3)
    # 6. work of joints, and what forces do on the way, which is that of v*, more than on the velocities
    if p.jointed != 0:
        press(1.0, constraints, s.entries, p, work)
        done = work_of_pressed(parts, elements, p, memory) + _missing_work(h, parts, elements, p, memory)
        status, residual = judge(status, residual, done, 0.0, False, t_new, s, options.newton, functions, memory)
    return status, n_iter + n_2 + n_3, residual


@tiny
def _missing_work(h, parts, elements, p, memory):
    """``h f . (v - v*) / 2``: the work of forces on velocities that the way has not."""
    work, missing = memory.work, 0.0
    for k in range(elements.size):
        el = elements[k]
        v = parts[el.part].q + el.e * parts[el.part].stride + parts[el.part].n
        for i in range(parts[el.part].n):
            at = el.dof + i
            missing += 0.5 * h * work[p.f + at] * (memory.mem[v + i] - work[p.v_old + at] - h * work[p.a_old + at])
    return missing


@inlined
def _move(h, parts, elements, p, memory):
    """``v* = v_k + h a_k`` and ``q_{k+1} = q_k + h/2 (v_k + v*)``."""
    mem = memory.mem
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        q = part.q + el.e * part.stride
        for i in range(part.n):
            v_old = memory.work[p.v_old + el.dof + i]
            mem[q + part.n + i] = v_old + h * memory.work[p.a_old + el.dof + i]
            mem[q + i] += 0.5 * h * (v_old + mem[q + part.n + i])


@inlined
def end_smooth_motion(h, parts, elements, p, memory):
    """v-, the left limit of the velocity; a in p.dv becomes 0, for the jump. False where it is not finite."""
    work = memory.work
    zero = 0.0
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        v = part.q + el.e * part.stride + part.n
        for i in range(part.n):
            memory.mem[v + i] = work[p.v_old + el.dof + i] + 0.5 * h * (work[p.a_old + el.dof + i] + work[p.dv + el.dof + i])
            work[p.dv + el.dof + i] = 0.0
            zero += 0.0 * memory.mem[v + i]
    return zero == 0.0


@kernel
def add_contact(when, a, s, calls, options, memory):
    """Forces or impulses of the closed contacts, added to the accelerations (the jump) in work[a:]. Returns the solver's result."""
    p, weight = s.plan[0], 1.0 if when == IMPACT else 0.5 * options.h
    tol = calls.solver_options.contact.tol if s.blocks[0].d > 0 else calls.solver_options.box.tol
    n = _choose(when, tol, a, options, s.constraints, s.entries, p, memory)
    _state_problem(n, when, a, options, s.constraints, s.entries, p, memory)
    # guess: forces of the impulses of the last step, impulses of the forces
    for b in range(n if when != AT_END else 0):
        memory.mem[s.constraints[memory.iwork[p.active + b]].lam] *= 1.0 / options.h if when == AT_START else options.h
    if when == AT_START:
        for i in range(p.n_dofs):
            memory.work[p.dv + i] = memory.work[a + i]
    status, n_iter, residual = push_apart(n, a, weight, 1.0, s, s.bodies, calls, memory)
    if when == AT_START and status in (CONVERGED, INEXACT) and _turn(n, a, options.h, s.constraints, s.entries, p, memory):
        status, more, residual = push_apart(n, a, weight, 1.0, s, s.bodies, calls, memory)
        n_iter += more
    return status, n_iter, residual


@inlined
def _turn(n, a, h, constraints, entries, p, memory):
    """Whether a contact slides in a direction that may turn: then the vector q is stated again for the direction at the start of the step.

    The velocity ``v_k / h + H (a - a~)``, with the accelerations a~ found, has that direction up to O(h^2). The direction at the end, used
    for the forces at both ends, would cost an order. In/out: q, total, and the accelerations in work[a:], which become those without
    contacts, in dv.
    """
    work, iwork = memory.work, memory.iwork
    turns = False
    for b in range(n):
        c = constraints[iwork[p.active + b]]
        if c.tangents == 2 and c.component % 2 == 1:  # of friction or of rolling, and another direction behind it
            x, y = velocity(c, entries, memory)[0] / h, velocity(constraints[iwork[p.active + b + 1]], entries, memory)[0] / h
            if math.hypot(work[p.w + b], work[p.w + b + 1]) > _SLIDES * math.hypot(x, y):
                turns = True
                _state_start(x, b, a, constraints, entries, p, memory)
                _state_start(y, b + 1, a, constraints, entries, p, memory)
    for b in range(n if turns else 0):
        work[p.total + iwork[p.active + b]] = 0.0
    for i in range(p.n_dofs if turns else 0):
        work[a + i] = work[p.dv + i]
    return turns


@tiny
def _state_start(rate, b, a, constraints, entries, p, memory):
    """``rate + H (dv - a)`` into q of the b-th listed row."""
    work = memory.work
    c = constraints[memory.iwork[p.active + b]]
    work[p.q + b] = rate
    for k in range(c.entry, c.entry_end):
        work[p.q + b] += work[entries[k].coefficient] * (work[p.dv + entries[k].dof] - work[a + entries[k].dof])


@inlined
def _choose(when, tol, a, options, constraints, entries, p, memory):
    """List closed contacts: at the start of the step, at both ends, or at the end.

    Forces at acceleration level require a contact that does not open, by more than the tolerance tol of the solver; at velocity level the
    problem itself decides that, and a persistent contact, whose y is zero up to O(h^3) only, remains closed. Bounded forces have no
    impulses; compliant forces of rigid bodies are not listed.
    """
    iwork = memory.iwork
    n, h, at_velocity, left = 0, options.h, options.velocity_level != 0.0, 0.0
    # error of velocities by the solver's tolerance
    for i in range(constraints.size if not at_velocity and when != IMPACT else 0):
        left = max(left, tol * velocity(constraints[i], entries, memory)[1])
    for i in range(constraints.size):
        c = constraints[i]
        closed = c.always != 0 and c.level != POSITION and (when != IMPACT or c.lower == ABSENT)
        # tangents follow their normal
        if c.component > 0:
            closed = iwork[p.local + i - c.component] != ABSENT
        # normals, by their gaps at the ends concerned
        elif c.always == 0:
            slack = gap_slack(c, h, entries, memory)
            if at_velocity and memory.imem[c.active] != 0:
                slack = max(slack, h * h * _REST * acceleration(c, a, entries, memory.work)[1])
            closed = when == AT_START or position(c, entries, memory) <= slack
            closed &= when == IMPACT or memory.mem[c.y] <= slack
            # a contact that separates would pull
            if when != IMPACT and not at_velocity:
                closed &= velocity(c, entries, memory)[0] <= max(left, _speed_rounding(c, h, a, entries, memory))
        n = list_row(i, closed, n, p, iwork)
    return n


@tiny
def _speed_rounding(c, h, a, entries, memory):
    """Bound of H v that is rounding, of the velocities and, over many steps at rest, of their changes."""
    s = 0.0
    for k in range(c.entry, c.entry_end):
        s += abs(memory.work[entries[k].coefficient]) * (
            _ULPS * abs(memory.mem[entries[k].q + entries[k].n]) + _RESTS * h * abs(memory.work[a + entries[k].dof])
        )
    return s


@inlined
def _state_problem(n, when, a, options, constraints, entries, p, memory):
    """Vector q: ``H v- + e H v-``; or of forces, ``H a + curvature``, or the velocity that they maintain, per half step or step.

    Friction and bounded forces are stated for velocities at either level.
    """
    work = memory.work
    h, most = options.h, 0.0
    for b in range(n):
        c = constraints[memory.iwork[p.active + b]]
        at_velocity = options.velocity_level != 0.0 or c.component > 0 or c.lower != ABSENT
        v, size = velocity(c, entries, memory)
        # impacts: Newton's law
        if when == IMPACT:
            s = (1.0 + restitution(c, work)) * v
        # forces: acceleration, or velocity in units of one
        else:
            s = 0.0
            size *= 2.0 / h if at_velocity else 0.0
            for k in range(c.entry, c.entry_end):
                s += work[entries[k].coefficient] * work[a + entries[k].dof]
                size += abs(work[entries[k].coefficient] * work[a + entries[k].dof])
            if not at_velocity or when == AT_START:
                s += 0.0 if c.curvature == ABSENT else work[c.curvature]
            if at_velocity and when == AT_START:
                s += v / h
            elif at_velocity:
                s += 2.0 / h * old_velocity(c, entries, p, work)
                for k in range(c.entry, c.entry_end):
                    s += work[entries[k].coefficient] * work[p.a_old + entries[k].dof]
        work[p.q + b] = s
        most = max(most, size)
    work[p.rounding] = rounding_of(most)
