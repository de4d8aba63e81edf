"""Nonsmooth generalised-alpha scheme, with its three problems solved in sequence.

    smooth      M a_{k+1} = F(t_{k+1}, q, v) + G^T lambda,   G v = 0,   G of the bilateral constraints
                q = q_k + h v_k + h^2 ((1/2 - beta) A_k + beta A_{k+1}),   v = v_k + h ((1-gamma) A_k + gamma A_{k+1})
                (1 - alpha_m) A_{k+1} + alpha_m A_k = (1 - alpha_f) a_{k+1} + alpha_f a_k
    position    q_{k+1} = q + M^-1 H^T nu,       0 <= y(q_{k+1})  ⟂  nu >= 0,   g(q_{k+1}) = 0
    velocity    v_{k+1} = v + M^-1 H^T Lambda,   0 <= H v_{k+1} + e ydot_k  ⟂  Lambda >= 0   of the contacts that q closes, with their
                friction; bounded forces; G v_{k+1} = 0

The smooth motion does not contain friction and bounded forces: it is shifted by ``h (v_{k+1} - v') / 2``, v' the solution of the last
problem without them, and projected again, so that sticking contacts do not creep.

Brüls, Acary, Cardona, Comput. Methods Appl. Mech. Engrg. 281 (2014) 131–161; decoupled as in Cosimo, Galvez, Cavalieri, Cardona, Brüls,
Multibody System Dynamics 48 (2020) 127–149. The smooth problem is one of the Newton form for v, with the predictors of v and q (with
the known part of A_{k+1}) in place of v_k and ``q_k + h v_k``: ``M (v - v_p) = h gamma' F + G^T z``, ``q = q_p + h a (v - v_p)``.
"""

import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference, inlined, kernel, tiny
from nsds.model.layout import ABSENT, table
from nsds.schemes.lagrangian import newton, projection
from nsds.schemes.lagrangian.branches import gain_of_energy, judge, keep_start
from nsds.schemes.lagrangian.contact_forces import evaluate_curvature, make_jump, push_apart, require_rigid
from nsds.schemes.lagrangian.functions import blame  # noqa: F401
from nsds.schemes.lagrangian.newton import evaluate_forces, iterate
from nsds.schemes.lagrangian.outputs import acceleration, add_change, gap_slack, keep_state, position, update_outputs
from nsds.schemes.lagrangian.projection import find_metrics, prepare_with_positions, project
from nsds.schemes.lagrangian.relations import EVERY, evaluate_relations
from nsds.schemes.lagrangian.tables import layout_of
from nsds.schemes.linear_algebra import apply_inverses
from nsds.schemes.memory import Allocator
from nsds.schemes.problem.active_set import list_row
from nsds.schemes.problem.box import rounding_of, worse
from nsds.status import CONVERGED, INEXACT

IS_ONE_STEP = False  # accelerations are carried from one step to the next
# In the work memory: the controls of the last step, part by part; forces at its end, of each coordinate, where joints are watched.
PLACES = table("held", "force")


@by_reference
class Options(NamedTuple):
    """Parameters of a step; positions has those of the smooth problem and of the projection, of Lagrangian systems or of rigid bodies."""

    h: float
    positions: NamedTuple
    alpha_m: float
    alpha_f: float
    beta: float
    gamma: float


class Tables(NamedTuple):
    """Tables of a model that a step reads."""

    positions: projection.Tables  # and the Newton form
    slippery: newton.Tables  # the same rows without friction and bounds
    places: np.ndarray


def options_of(h, options, motion_of):
    """`Options` of a spectral radius at infinite frequency (Chung and Hulbert 1993).

    motion_of: makes those of the smooth problem from the weights of the new force and of the new velocity in the position.
    """
    rho, tol, max_iter = (float(options[name].item()) for name in ("rho", "newton_tol", "newton_max_iter"))
    alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma = 0.5 + alpha_f - alpha_m
    beta = 0.25 * (gamma + 0.5) ** 2
    smooth = motion_of(gamma * ((1 - alpha_f) / (1 - alpha_m)), beta / gamma)._replace(tol=tol, max_iter=max_iter)
    return Options(h, projection.options_of(h, options, smooth), alpha_m, alpha_f, beta, gamma)


def prepare(records, mem, options, h, method):
    """Tables of the Newton form, and those of the problem of positions."""
    # 1. model, without compliance at velocity level
    work, iwork, owner = Allocator(records.size), Allocator(records.size), "generalised_alpha"
    layout = layout_of(records, work, owner, h, h)
    require_rigid(owner, layout)
    # 2. smooth problem as one of the Newton form, and that of positions
    words = options_of(h, options, lambda weight, a: newton.Options(h, a=a, weight=weight))
    places = np.zeros(1, PLACES)
    dofs = int((layout.parts["count"] * layout.parts["n"]).sum())
    work.place(places, held=int((layout.parts["count"] * layout.parts["n_u"]).sum()), force=dofs)
    prepared = prepare_with_positions(records, layout, words.positions, method, work, iwork)
    # 3. work of joints is known by the energy where masses are constant
    form = prepared.tables.newton
    form.plan["jointed"] &= not (layout.parts["mass_function"] != ABSENT).any()
    tables = Tables(prepared.tables, _without_friction(prepared.tables), places)
    return prepared._replace(tables=tables, options=words, stepper=sys.modules[__name__])


def _without_friction(positions):
    """The Newton form with the rows of the problem of positions, which has neither friction nor bounds."""
    form = positions.newton
    return form._replace(constraints=positions.constraints, inputs=form.entries, plan=positions.plan, blocks=positions.blocks)


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: outputs of the state; accelerations are computed when the first step begins."""
    newton.start(t, s.positions.newton, functions, options.positions.motion, memory)
    p = s.positions.newton.plan[0]
    memory.iwork[p.fresh] = 1
    for i in range(p.n_dofs):
        memory.work[p.f_old + i] = 0.0  # the smooth problem knows one force
    return CONVERGED


@kernel
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, Newton's iterations, residual)."""
    functions, work, iwork = calls.functions, memory.work, memory.iwork
    form = s.positions.newton
    parts, elements, constraints, entries = form.parts, form.elements, form.constraints, form.entries
    p, h, smooth = form.plan[0], options.h, options.positions.motion
    started = CONVERGED
    if p.jointed != 0:
        keep_start(parts, elements, entries, p, memory)
    # 1. accelerations at the start, after a restart or a jump of the controls
    if p.controlled != 0 and _hold(parts, s.places[0].held, memory):
        iwork[p.fresh] = 1
    if iwork[p.fresh] != 0:
        iwork[p.fresh] = 0
        started = _start_accelerations(t_new - h, s, calls, options, memory)
        for i in range(p.n_dofs):
            work[s.places[0].force + i] = work[p.f + i]
    # 2. smooth motion: predictors, then Newton's iteration with the bilateral constraints
    for i in range(constraints.size):
        work[p.total + i] = 0.0
    _known_motion(options, parts, elements, p, memory)
    n = _list(False, h, constraints, entries, p, memory)
    status, n_iter, residual = iterate(t_new, -1 - n, form, calls, smooth, memory)
    for a in range(n):
        work[p.total + iwork[p.active + a]] = work[p.z + a] / smooth.weight
    # 3. accelerations, and the contacts that the smooth motion closes
    _accelerations(options, parts, elements, p, memory)
    evaluate_relations(t_new, 1.0, 0.0, EVERY, smooth, form.relations, p, functions, memory)
    n = _list(True, h, constraints, entries, p, memory)
    status = worse(status, started)
    # 4. positions; with friction a second time, after the shift
    for attempt in range(2):
        if status in (CONVERGED, INEXACT):
            projected, _ = project(t_new, s.positions, calls, options.positions, memory)
            status = worse(status, projected)
        if status not in (CONVERGED, INEXACT) or n == 0:
            break
        find_metrics(s.positions, functions, memory)
        if attempt == 1 or not _has_friction(n, constraints, p, iwork):
            break
        shifted = _shift(n, s, calls, options, memory)
        status = worse(status, shifted)
        evaluate_relations(t_new, 1.0, 0.0, EVERY, smooth, form.relations, p, functions, memory)
        n = _list(True, h, constraints, entries, p, memory)
    # 5. velocities
    if status in (CONVERGED, INEXACT) and n > 0:
        pushed, error = make_jump(n, 1.0, h, form, s.positions.metrics, calls, memory)
        status, residual = worse(status, pushed), max(residual, error)
        add_change(True, parts, elements, p.dv, memory)
    # 6. multipliers of all problems, and outputs
    for i in range(constraints.size):
        memory.mem[constraints[i].lam] = work[p.total + i]
    update_outputs(h, 1.0, constraints, entries, form.couplings, memory)
    if p.jointed != 0:
        done, slack = _work_of_joints(h, form, s.places[0], memory)
        status, residual = judge(status, residual, done, slack, False, t_new, form, smooth, functions, memory)
    return status, n_iter, residual


@tiny
def _work_of_joints(h, s, places, memory):
    """(Change of the kinetic energy that forces of both ends do not explain, what their change in the step may do). In/out: force."""
    work, p = memory.work, s.plan[0]
    done, slack = gain_of_energy(s, memory), 0.0
    for k in range(s.elements.size):
        el = s.elements[k]
        v = s.parts[el.part].q + el.e * s.parts[el.part].stride + s.parts[el.part].n
        for i in range(s.parts[el.part].n):
            f_old, f, v_old, v_new = (
                work[places.force + el.dof + i],
                work[p.f + el.dof + i],
                work[p.v_begun + el.dof + i],
                memory.mem[v + i],
            )
            done -= 0.5 * h * (f_old * v_old + f * v_new)
            slack += 0.5 * h * abs(f - f_old) * (abs(v_old) + abs(v_new))
            work[places.force + el.dof + i] = f
    return done, slack


@tiny
def _hold(parts, held, memory):
    """Keep the controls of the step; returns whether they differ from those of the last one."""
    is_new = False
    for k in range(parts.size):
        part = parts[k]
        for e in range(part.count if part.u != ABSENT else 0):
            for j in range(part.u + e * part.stride, part.u + e * part.stride + part.n_u):
                is_new |= memory.work[held] != memory.mem[j]
                memory.work[held] = memory.mem[j]
                held += 1
    return is_new


@kernel
def _start_accelerations(t, s, calls, options, memory):
    """``a = A = M^-1 (F + G^T lambda)`` at the state, with ``G a + curvature = 0``. Returns a status."""
    functions, work = calls.functions, memory.work
    form = s.positions.newton
    parts, elements, constraints, entries = form.parts, form.elements, form.constraints, form.entries
    p, h = form.plan[0], options.h
    # 1. state, inverse masses and forces
    keep_state(parts, elements, p.q_old, p.v_old, memory)
    find_metrics(s.positions, functions, memory)
    evaluate_forces(t, options.positions.motion, parts, elements, p, p.f, functions, memory)
    apply_inverses(s.positions.metrics, p.f, p.acc, p.scratch, memory)
    evaluate_curvature(t, h, p.acc, form.relations, p, functions, memory)
    # 2. acceleration of each bilateral constraint without multipliers
    n = _list(False, h, constraints, entries, p, memory)
    most = 0.0
    for a in range(n):
        work[p.q + a], size = acceleration(constraints[memory.iwork[p.active + a]], p.acc, entries, work)
        most = max(most, size)
    work[p.rounding] = rounding_of(most)
    # 3. multipliers, and both accelerations
    status, _, _ = push_apart(n, p.acc, 1.0, 1.0, form, s.positions.metrics, calls, memory)
    for i in range(p.n_dofs):
        work[p.a_old + i] = work[p.acc + i]
    return status


@tiny
def predict(options, A, a):
    """(known part of A_{k+1}, mean acceleration of the step for its velocity, for its position) from A_k and a_k."""
    known = (options.alpha_f * a - options.alpha_m * A) / (1.0 - options.alpha_m)
    return known, (1.0 - options.gamma) * A + options.gamma * known, (0.5 - options.beta) * A + options.beta * known


@inlined
def _known_motion(options, parts, elements, p, memory):
    """Out: v_old, the predictor v_p of the velocity; q_old, the predictor of q less ``h v_p``; a_old, the known part of A_{k+1}."""
    mem, work = memory.mem, memory.work
    h = options.h
    for k in range(elements.size):
        el = elements[k]
        q, n = parts[el.part].q + el.e * parts[el.part].stride, parts[el.part].n
        for i in range(n):
            dof = el.dof + i
            work[p.a_old + dof], of_v, of_q = predict(options, work[p.a_old + dof], work[p.acc + dof])
            work[p.v_old + dof] = v = mem[q + n + i] + h * of_v
            work[p.q_old + dof] = mem[q + i] + h * mem[q + n + i] + h * h * of_q - h * v


@inlined
def _accelerations(options, parts, elements, p, memory):
    """a_{k+1} of the smooth motion, and A_{k+1}."""
    work = memory.work
    ratio = (1.0 - options.alpha_f) / (1.0 - options.alpha_m)
    for k in range(elements.size):
        el = elements[k]
        v = parts[el.part].q + el.e * parts[el.part].stride + parts[el.part].n
        for i in range(parts[el.part].n):
            a = (memory.mem[v + i] - work[p.v_old + el.dof + i]) / (options.h * options.positions.motion.weight)
            work[p.acc + el.dof + i] = a
            work[p.a_old + el.dof + i] += ratio * a


@tiny
def _list(with_contacts, h, constraints, entries, p, memory):
    """List the bilateral constraints and, if wanted, bounded forces, active contacts and those that the motion has closed.

    Listed constraints become active.
    """
    imem = memory.imem
    n = 0
    for i in range(constraints.size):
        c = constraints[i]
        chosen = c.bilateral != 0
        if with_contacts and c.component > 0:
            chosen = imem[constraints[i - c.component].active] != 0
        elif with_contacts and not chosen:
            chosen = c.always != 0 or imem[c.active] != 0 or position(c, entries, memory) <= gap_slack(c, h, entries, memory)
        imem[c.active] = chosen
        n = list_row(i, chosen, n, p, memory.iwork)
    return n


@tiny
def _has_friction(n, constraints, p, iwork):
    """Whether one of the n listed constraints has friction, or is a bounded force."""
    for a in range(n):
        c = constraints[iwork[p.active + a]]
        if c.tangents > 0 or c.lower != ABSENT:
            return True
    return False


@kernel
def _shift(n, s, calls, options, memory):
    """Shift q by half a step of the velocity change by friction and bounded forces. Returns a status."""
    iwork = memory.iwork
    form, slippery, metrics, n_slippery = s.positions.newton, s.slippery, s.positions.metrics, 0
    p, own = form.plan[0], slippery.plan[0]
    # 1. the same contacts without friction
    for i in range(form.constraints.size):
        chosen = iwork[p.local + i] != ABSENT and form.constraints[i].component == 0 and form.constraints[i].lower == ABSENT
        n_slippery = list_row(i, chosen, n_slippery, own, iwork)
    # 2. velocity jumps without and with it
    status, _ = make_jump(n_slippery, 0.0, options.h, slippery, metrics, calls, memory)
    full, _ = make_jump(n, 0.0, options.h, form, metrics, calls, memory)
    # 3. half of their difference, over the step
    for k in range(form.elements.size):
        el = form.elements[k]
        q = form.parts[el.part].q + el.e * form.parts[el.part].stride
        for i in range(form.parts[el.part].n):
            memory.mem[q + i] += 0.5 * options.h * (memory.work[p.dv + el.dof + i] - memory.work[own.dv + el.dof + i])
    return worse(status, full)
