"""Nonsmooth generalised-alpha scheme, with its three problems one after the other.

    smooth      M a_{k+1} = F(t_{k+1}, q, v) + G^T lambda,   G v = 0,   G of the bilateral constraints
                q = q_k + h v_k + h^2 ((1/2 - beta) A_k + beta A_{k+1}),   v = v_k + h ((1-gamma) A_k + gamma A_{k+1})
                (1 - alpha_m) A_{k+1} + alpha_m A_k = (1 - alpha_f) a_{k+1} + alpha_f a_k
    position    q_{k+1} = q + M^-1 H^T nu,       0 <= y(q_{k+1})  ⟂  nu >= 0,   g(q_{k+1}) = 0
    velocity    v_{k+1} = v + M^-1 H^T Lambda,   0 <= H v_{k+1} + e ydot_k  ⟂  Lambda >= 0   of the contacts that q closes, with their
                friction; bounded forces; G v_{k+1} = 0

The smooth motion knows nothing of friction and bounded forces: it is shifted by ``h (v_{k+1} - v') / 2``, v' what the last problem would
give without them, and projected again, so that what sticks does not creep.

Brüls, Acary, Cardona, Comput. Methods Appl. Mech. Engrg. 281 (2014) 131–161; decoupled as in Cosimo, Galvez, Cavalieri, Cardona, Brüls,
Multibody System Dynamics 48 (2020) 127–149. The smooth problem is one of the Newton form for v, what is known of v and q (with
A_{k+1} but for its a_{k+1}) taking the place of v_k and ``q_k + h v_k``: ``M (v - v_p) = h gamma' F + G^T z``, ``q = q_p + h a (v - v_p)``.
"""

import sys
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._jit import inlined, kernel, tiny
from nsds.model.kinds import LAGRANGIAN, NEWTON_EULER, family
from nsds.model.layout import ABSENT, table
from nsds.model.records import model_of
from nsds.schemes.lagrangian import newton, projection
from nsds.schemes.lagrangian.contact_forces import evaluate_curvature, push_apart, require_rigid
from nsds.schemes.lagrangian.functions import blame  # noqa: F401
from nsds.schemes.lagrangian.newton import (
    EVERY,
    add_jump,
    evaluate_forces,
    evaluate_masses,
    evaluate_relations,
    iterate,
    keep_state,
)
from nsds.schemes.lagrangian.outputs import gap_slack, position, update_outputs, velocity
from nsds.schemes.lagrangian.projection import invert_metrics, prepare_with_positions, project
from nsds.schemes.lagrangian.tables import layout_of
from nsds.schemes.linear_algebra import apply_inverses
from nsds.schemes.problem.box import rounding_of, worse
from nsds.schemes.rigid import generalised_alpha as rigid_generalised_alpha
from nsds.schemes.run.memory import Allocator
from nsds.schemes.table import scheme_for
from nsds.status import CONVERGED, INEXACT

OPTIONS = np.dtype(
    [("scheme", "S32"), ("rho", "<f8"), ("newton_tol", "<f8"), ("newton_max_iter", "<i8"), ("constraint_tol", "<f8"), ("max_rounds", "<i8")]
)
IS_ONE_STEP = False  # accelerations go on from one step to the next
# In the work memory: the controls of the last step, part by part.
PLACES = table("held")


class Tables(NamedTuple):
    """What a step reads of a model."""

    positions: projection.Tables  # and the Newton form
    slippery: newton.Tables  # the same rows without friction and bounds
    places: np.ndarray


@scheme_for(LAGRANGIAN, NEWTON_EULER)
def generalised_alpha(rho=0.8, newton_tol=1e-10, newton_max_iter=50, constraint_tol=1e-10, max_rounds=20):
    """Options of the nonsmooth generalised-alpha scheme: second order between impacts, constraints exact for positions and velocities.

    Parameters
    ----------
    rho : float in [0, 1]
        Spectral radius at infinite frequency (Chung and Hulbert 1993): 1 damps nothing, 0 removes what a step does not resolve in one step.
    newton_tol, newton_max_iter
        See `nsds.moreau_jean`.
    constraint_tol, max_rounds
        See `nsds.moreau_jean_direct_projection`.

    Returns
    -------
    numpy.ndarray, shape ()
        Record for `nsds.simulate`.

    Raises
    ------
    ValueError, TypeError
        An option out of its range.

    Notes
    -----
    Where a controller changes u, accelerations begin anew, so that jumps keep order 2; a u that changes in every step costs it for rho < 1.

    lambda of a row is the impulse of the step. A restart begins with the accelerations of its state, as the first step of a run does: it is
    as accurate, but not the same to the last bit. Unilateral contacts are impulses also where they persist: along a curve the scheme is of
    order 1 then; bilateral constraints keep order 2. Friction, dry friction and relays are impulses of the velocities at the end of a
    step, and shift its positions, so that what sticks does not creep; sliding in one direction keeps order 2, slip whose direction turns
    has order 1. Relations with D are refused. Rigid bodies move on the rotation group. Initial positions and velocities must satisfy
    bilateral constraints (see `nsds.consistent`).

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.bouncing_ball(e=0.0), t_end=2.0, h=1e-3, scheme=nsds.generalised_alpha())
    >>> bool(rows["floor"]["y"].min() >= -1e-10), float(rows["floor"]["lambda"][-1].round(6))  # rests: the impulse of its weight
    (True, 0.00981)
    """
    owner = "generalised_alpha"
    record = np.zeros((), OPTIONS)
    record["scheme"] = owner.encode()
    record["rho"] = _checks.number(owner, "rho", rho, 0.0, 1.0)
    record["newton_tol"] = _checks.number(owner, "newton_tol", newton_tol, above=0.0)
    record["newton_max_iter"] = _checks.integer(owner, "newton_max_iter", newton_max_iter, low=1)
    record["constraint_tol"] = _checks.number(owner, "constraint_tol", constraint_tol, above=0.0)
    record["max_rounds"] = _checks.integer(owner, "max_rounds", max_rounds, low=1)
    return record


def prepare(records, mem, options, h, method):
    """Tables of the Newton form, and those of the problem of positions."""
    rho, tol, max_iter, constraint_tol, rounds = (float(options[name].item()) for name in OPTIONS.names[1:])
    alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma = 0.5 + alpha_f - alpha_m
    beta = 0.25 * (gamma + 0.5) ** 2
    ratio = (1 - alpha_f) / (1 - alpha_m)
    if family(model_of(records)) == NEWTON_EULER:
        weights = alpha_m, alpha_f, beta, gamma
        return rigid_generalised_alpha.prepare(records, h, weights, tol, max_iter, constraint_tol, rounds, method)
    owner = "generalised_alpha"
    work, iwork = Allocator(records.size), Allocator(records.size)
    layout = layout_of(records, work, owner, h, h)
    require_rigid(owner, layout)
    smooth = newton.Options(
        h, gamma=0.0, q_star=1.0, tol=tol, max_iter=max_iter, a=beta / gamma, weight=gamma * ratio, at_q=1.0, at_v=1.0, paoli=0.0
    )
    places = np.zeros(1, PLACES)
    work.place(places, held=int((layout.parts["count"] * layout.parts["n_u"]).sum()))
    positions = projection.Options(h, smooth, combined=0.0, constraint_tol=constraint_tol, max_rounds=rounds, every_contact=1.0)
    prepared = prepare_with_positions(records, layout, smooth, "mass", method, work, iwork)
    options = rigid_generalised_alpha.Options(h, positions, alpha_m, alpha_f, beta, gamma)
    tables = Tables(prepared.tables, _without_friction(prepared.tables), places)
    return prepared._replace(tables=tables, options=options, stepper=sys.modules[__name__])


def _without_friction(positions):
    """The Newton form whose rows are those of the problem of positions, which has neither friction nor bounds."""
    form = positions.newton
    return form._replace(constraints=positions.constraints, inputs=form.entries, plan=positions.plan, blocks=positions.blocks)


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: outputs of the state; accelerations are computed when the first step begins."""
    newton.start(t, s.positions.newton, functions, options.positions.newton, memory)
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
    p, h, smooth = form.plan[0], options.h, options.positions.newton
    started = CONVERGED
    if p.controlled != 0 and _hold(parts, s.places[0].held, memory):  # accelerations jump with the controls
        iwork[p.fresh] = 1
    if iwork[p.fresh] != 0:
        iwork[p.fresh] = 0
        started = _start_accelerations(t_new - h, s, calls, options, memory)
    for i in range(constraints.size):
        work[p.total + i] = 0.0
    _known_motion(options, parts, elements, p, memory)
    n = _list(False, h, constraints, entries, p, memory)
    status, n_iter, residual = iterate(t_new, -1 - n, form, calls, smooth, memory)
    for a in range(n):
        work[p.total + iwork[p.active + a]] = work[p.z + a] / smooth.weight
    _accelerations(options, parts, elements, p, memory)
    evaluate_relations(t_new, 1.0, 0.0, EVERY, smooth, form.relations, p, functions, memory)
    n = _list(True, h, constraints, entries, p, memory)
    status = worse(status, started)
    for attempt in range(2):
        if status in (CONVERGED, INEXACT):
            projected, _ = project(t_new, s.positions, calls, options.positions, memory)
            status = worse(status, projected)
        if status not in (CONVERGED, INEXACT) or n == 0:
            break
        evaluate_masses(1.0, parts, elements, p, functions, memory)
        invert_metrics(elements, parts, s.positions.metrics, s.positions.plan[0], memory)
        if attempt == 1 or not _has_friction(n, constraints, p, iwork):
            break
        shifted = _shift(n, s, calls, options, memory)
        status = worse(status, shifted)
        evaluate_relations(t_new, 1.0, 0.0, EVERY, smooth, form.relations, p, functions, memory)
        n = _list(True, h, constraints, entries, p, memory)
    if status in (CONVERGED, INEXACT) and n > 0:
        pushed, error = _jump(n, 1.0, h, form, s.positions.metrics, calls, memory)
        status, residual = worse(status, pushed), max(residual, error)
        add_jump(parts, elements, p, memory)
    for i in range(constraints.size):
        memory.mem[constraints[i].lam] = work[p.total + i]
    update_outputs(h, 1.0, constraints, entries, form.couplings, memory)
    return status, n_iter, residual


@tiny
def _hold(parts, held, memory):
    """Keep the controls of the step; whether they are not those of the last one."""
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
    keep_state(parts, elements, p, memory)
    evaluate_masses(1.0, parts, elements, p, functions, memory)
    invert_metrics(elements, parts, s.positions.metrics, s.positions.plan[0], memory)
    evaluate_forces(t, options.positions.newton, parts, elements, p, p.f, functions, memory)
    apply_inverses(s.positions.metrics, p.f, p.acc, p.scratch, memory)
    evaluate_curvature(t, h, p.acc, form.relations, p, functions, memory)
    n = _list(False, h, constraints, entries, p, memory)
    most = 0.0
    for a in range(n):
        c = constraints[memory.iwork[p.active + a]]
        w = 0.0 if c.curvature == ABSENT else work[c.curvature]
        size = abs(w)
        for k in range(c.entry, c.entry_end):
            term = work[entries[k].coefficient] * work[p.acc + entries[k].dof]
            w += term
            size += abs(term)
        work[p.q + a] = w
        most = max(most, size)
    work[p.rounding] = rounding_of(most)
    status, _, _ = push_apart(n, p.acc, 1.0, 1.0, form, s.positions.metrics, calls, memory)
    for i in range(p.n_dofs):
        work[p.a_old + i] = work[p.acc + i]
    return status


@inlined
def _known_motion(options, parts, elements, p, memory):
    """What is known of v, and of q less h times that, in v_old and q_old; what is known of A_{k+1} in a_old."""
    mem, work = memory.mem, memory.work
    h, beta, gamma, alpha_m, alpha_f = options.h, options.beta, options.gamma, options.alpha_m, options.alpha_f
    for k in range(elements.size):
        el = elements[k]
        q, n = parts[el.part].q + el.e * parts[el.part].stride, parts[el.part].n
        for i in range(n):
            dof = el.dof + i
            A_k = work[p.a_old + dof]
            known = (alpha_f * work[p.acc + dof] - alpha_m * A_k) / (1.0 - alpha_m)
            v = mem[q + n + i] + h * ((1.0 - gamma) * A_k + gamma * known)
            work[p.q_old + dof] = mem[q + i] + h * mem[q + n + i] + h * h * ((0.5 - beta) * A_k + beta * known) - h * v
            work[p.v_old + dof] = v
            work[p.a_old + dof] = known


@inlined
def _accelerations(options, parts, elements, p, memory):
    """a_{k+1} of the smooth motion, and A_{k+1}."""
    work = memory.work
    ratio = (1.0 - options.alpha_f) / (1.0 - options.alpha_m)
    for k in range(elements.size):
        el = elements[k]
        v = parts[el.part].q + el.e * parts[el.part].stride + parts[el.part].n
        for i in range(parts[el.part].n):
            a = (memory.mem[v + i] - work[p.v_old + el.dof + i]) / (options.h * options.positions.newton.weight)
            work[p.acc + el.dof + i] = a
            work[p.a_old + el.dof + i] += ratio * a


@tiny
def _list(with_contacts, h, constraints, entries, p, memory):
    """List the bilateral constraints and, if wanted, bounded forces, what is active and the contacts that the motion has closed.

    What is listed becomes active.
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
        memory.iwork[p.local + i] = n if chosen else ABSENT
        if chosen:
            memory.iwork[p.active + n] = i
            n += 1
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
    """Move q by half a step of what friction and bounded forces do to the velocities. Returns a status."""
    iwork = memory.iwork
    form, slippery, metrics, n_slippery = s.positions.newton, s.slippery, s.positions.metrics, 0
    p, own = form.plan[0], slippery.plan[0]
    for i in range(form.constraints.size):
        chosen = iwork[p.local + i] != ABSENT and form.constraints[i].component == 0 and form.constraints[i].lower == ABSENT
        iwork[own.local + i] = n_slippery if chosen else ABSENT
        if chosen:
            iwork[own.active + n_slippery] = i
            n_slippery += 1
    status, _ = _jump(n_slippery, 0.0, options.h, slippery, metrics, calls, memory)
    full, _ = _jump(n, 0.0, options.h, form, metrics, calls, memory)
    for k in range(form.elements.size):
        el = form.elements[k]
        q = form.parts[el.part].q + el.e * form.parts[el.part].stride
        for i in range(form.parts[el.part].n):
            memory.mem[q + i] += 0.5 * options.h * (memory.work[p.dv + el.dof + i] - memory.work[own.dv + el.dof + i])
    return worse(status, full)


@kernel
def _jump(n, weight, h, form, metrics, calls, memory):
    """The velocity problem of the n listed constraints at q; weight: of its impulses in the total. Returns (status, residual).

    Out: dv, what velocities change by.
    """
    work = memory.work
    p, most = form.plan[0], 0.0
    for k in range(form.elements.size):
        el = form.elements[k]
        for i in range(el.dof, el.dof + form.parts[el.part].n):
            work[p.dv + i] = 0.0
    for a in range(n):
        c = form.constraints[memory.iwork[p.active + a]]
        w, size = velocity(c, form.entries, memory)
        work[p.q + a] = w + (0.0 if c.e == ABSENT else work[c.e] * memory.mem[c.ydot])
        most = max(most, size)
    work[p.rounding] = rounding_of(most)
    status, _, residual = push_apart(n, p.dv, weight, h, form, metrics, calls, memory)
    return status, residual
