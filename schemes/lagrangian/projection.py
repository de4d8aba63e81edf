"""Projection of positions on the constraints ([Notes], chapter 13), after a step of Moreau–Jean or with the choice of its contacts.

Direct: ``0 <= y + H M^-1 H^T lambda_0  ⟂  lambda_0 >= 0``, ``q <- q + M^-1 H^T lambda_0`` (13.6, with the mass as metric), until no gap is
violated. Combined: a contact that is violated at the end of the step becomes active in the step, which is solved again; then pressing
contacts are projected onto ``y = 0`` exactly. Velocities are not changed.
"""

import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference, inlined, kernel, tiny, view
from nsds.model.layout import ABSENT, DENSE, DIAGONAL
from nsds.schemes.lagrangian import newton
from nsds.schemes.lagrangian.branches import judge, keep_start, take_impulses, work_of_pressed
from nsds.schemes.lagrangian.functions import blame  # noqa: F401
from nsds.schemes.lagrangian.newton import advance, begin, evaluate_forces, evaluate_masses, hand_over
from nsds.schemes.lagrangian.outputs import lengths, position
from nsds.schemes.lagrangian.relations import EVERY, evaluate_relations
from nsds.schemes.lagrangian.tables import layout_of
from nsds.schemes.linear_algebra import apply_inverse, inverse_of, invert_dense
from nsds.schemes.memory import Allocator
from nsds.schemes.problem.active_set import choose_active, extract_pattern, list_row, solve, transpose_pattern
from nsds.schemes.problem.assemble import assemble
from nsds.schemes.problem.box import ULPS, worse
from nsds.schemes.problem.contact import place_blocks
from nsds.schemes.problem.rows import VELOCITY
from nsds.schemes.problem.tables import BODY, largest_contact, ordered, place_active, place_problem, store_inverses
from nsds.status import CONVERGED, INEXACT, NON_FINITE, VIOLATED


@by_reference
class Options(NamedTuple):
    """Parameters of a step with its projection, of coordinates or of rigid bodies; flags are 0 or 1."""

    h: float
    motion: NamedTuple  # of the step itself
    constraint_tol: float
    max_rounds: float
    by_mass: float  # 1: the metric is the mass, else the identity
    every_contact: float  # 0: only contacts that take part in the step
    combined: float


def options_of(h, options, motion):
    """`Options` of a scheme with a projection; the mass is the metric, and all contacts are projected, unless it has options for that."""
    names, combined = options.dtype.names, options["scheme"].item().endswith(b"combined_projection")
    every = combined or "contacts" not in names or options["contacts"] == b"all"
    by_mass = "metric" not in names or options["metric"] == b"mass"
    tol, max_rounds = float(options["constraint_tol"].item()), float(options["max_rounds"].item())
    return Options(h, motion, tol, max_rounds, float(by_mass), float(every), float(combined))


class Tables(NamedTuple):
    """Tables of the step, and of the problem of positions behind it."""

    newton: newton.Tables
    metrics: np.ndarray  # rows of bodies with the inverse of the metric
    constraints: np.ndarray  # those of the step, with H^T for B and without D
    blocks: np.ndarray  # of a problem with friction
    plan: np.ndarray  # where the arrays of the problem of positions lie


def prepare(records, mem, options, h, method):
    """Tables of the Newton form, and those of the problem of positions."""
    work, iwork, words = Allocator(records.size), Allocator(records.size), options_of(h, options, newton.options_of(h, options))
    layout = layout_of(records, work, options["scheme"].item().decode(), h, h * options["theta"].item(), has_impact_laws=True)
    prepared = prepare_with_positions(records, layout, words, method, work, iwork)
    return prepared._replace(stepper=sys.modules[__name__])


def prepare_with_positions(records, layout, options, method, work, iwork):
    """The Newton form with the tables of `project` appended, and their options."""
    # 1. constraints of positions: no compliance, input H^T
    metrics, rigid = _metrics(records, layout, options.by_mass, work, iwork), layout.constraints.copy()
    for column in ("input", "input_end"):
        rigid[column] = rigid[column.replace("input", "entry")]
    rigid["coupling_end"] = rigid["coupling"]
    # 2. problem of positions, with a memory of its own
    places = np.zeros(1, newton.PLAN)
    unknowns = ordered(layout.constraints, layout.entries, layout.inputs, layout.couplings, np.full(metrics.size, DENSE))
    place_problem(places, unknowns, method, work, iwork)
    place_active(places, unknowns, work, iwork)
    body, dofs = metrics["n"].max(), metrics["n"].sum()
    work.place(places, rhs=body, solution=body, scratch=body, dofs=dofs, dv=dofs, total=rigid.size)
    iwork.place(places, sub_next=rigid.size, pivots=body, touched=metrics.size)
    # neither friction nor bounds for positions
    d = largest_contact(rigid)
    for column, value in (("tangents", 0), ("lower", ABSENT), ("upper", ABSENT)):
        rigid[column] = value
    places["sub_W"] = places["W"]
    blocks = place_blocks(places, rigid[unknowns.order], unknowns, d, method, work, iwork)
    # 3. Newton form, in whose order the constraints are
    prepared = newton.prepare(records, layout, options.motion, method, work, iwork)
    order = [layout.owners.index(each) for each in prepared.layout.owners]
    places["n_dofs"], upper = dofs, places[0]["upper"]
    prepared.work[:, upper : upper + rigid.size] = np.inf
    return prepared._replace(tables=Tables(prepared.tables, metrics, rigid[order], blocks, places), options=options)


def _metrics(records, layout, by_mass, work, iwork):
    """Rows like those of bodies, with the inverse of the metric: of M, updated if it changes, or the identity."""
    parts = layout.parts
    bodies = np.zeros(parts["count"].sum(), BODY)
    for name, part in zip(layout.part_names, parts, strict=True):
        mine = bodies[part["body"] : part["body"] + part["count"]]
        each, n, count = np.arange(part["count"]), int(part["n"]), int(part["count"])
        mine["n"], mine["dof"] = n, part["dof"] + n * each
        if not by_mass:
            mine["kind"], mine["data"] = DIAGONAL, work.store(np.ones((records.size, n)))
        elif part["mass_function"] != ABSENT:
            mine["kind"], mine["data"] = DENSE, work.reserve(count * n * n) + n * n * each
        else:
            store_inverses(mine, inverse_of(records[name], part, name, [(1.0, "M")], "M is singular"), work, iwork)
    return bodies


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: force at t, outputs of the state."""
    return newton.start(t, s.newton, functions, options.motion, memory)


@kernel
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, Newton's iterations, residual)."""
    functions = calls.functions
    form, constraints, p, before = s.newton, s.newton.constraints, s.newton.plan[0], s.plan[0].local
    h, gamma = options.h, options.motion.gamma
    # 1. forces at the start, and the active set
    begin(t_new, options.motion, form.parts, form.elements, p, functions, memory)
    if p.jointed != 0:
        keep_start(form.parts, form.elements, form.entries, p, memory)
    n = choose_active(p, constraints, gamma * h, h, memory)
    total = 0
    status, n_iter, residual = CONVERGED, 0, 0.0
    # 2. the step; with the combined projection again, each time with at least one more active contact
    for attempt in range(constraints.size + 1):
        status, n_iter, residual = advance(t_new, n, form, calls, options.motion, memory)
        total += n_iter
        # the velocities cannot satisfy the contacts that have joined: these are left to the positions
        if status not in (CONVERGED, INEXACT) and attempt > 0:
            n = _leave(constraints, p, before, memory)
            status, n_iter, residual = advance(t_new, n, form, calls, options.motion, memory)
            total += n_iter
            n = 0
        evaluate_relations(t_new, 1.0, 0.0, EVERY, options.motion, form.relations, p, functions, memory)
        if status not in (CONVERGED, INEXACT) or options.combined == 0.0 or (attempt > 0 and n == 0):
            break
        n = _join_violated(options.constraint_tol, constraints, form.entries, p, before, memory)
        if n == 0:
            break
    # 3. positions; forces at the new ones are those of the next step's start
    if status in (CONVERGED, INEXACT):
        projected, moved = project(t_new, s, calls, options, memory)
        status = worse(status, projected)
        if moved:
            evaluate_forces(t_new, options.motion, form.parts, form.elements, p, p.f, functions, memory)
    # 4. multipliers and outputs
    if not hand_over(options.motion, constraints, form.entries, form.couplings, p, memory):
        status = NON_FINITE
    if p.jointed != 0:
        take_impulses(form.parts, form.elements, p, memory)
        done, words = work_of_pressed(form.parts, form.elements, p, memory), options.motion
        status, residual = judge(status, residual, done, 0.0, True, t_new, form, words, functions, memory)
    return status, total, residual


@inlined
def _join_violated(tol, constraints, entries, p, before, memory):
    """Make the contacts active that the end of the step violates; returns -1 - (number of active constraints), 0 where none is new.

    The set so far is kept at iwork[before:], in the form of p.local.
    """
    iwork = memory.iwork
    joined = False
    for i in range(constraints.size):
        iwork[before + i] = iwork[p.local + i]
    for i in range(constraints.size):
        c = constraints[i - constraints[i].component]
        if iwork[p.local + i] == ABSENT and c.level == VELOCITY and position(c, entries, memory) < -tol:
            joined = True
            iwork[p.local + i] = 0
            memory.imem[constraints[i].active] = 1
    return _number_active(constraints, p, iwork) if joined else 0


@inlined
def _leave(constraints, p, before, memory):
    """Back to the set at iwork[before:]; returns -1 - (number of active constraints)."""
    iwork = memory.iwork
    for i in range(constraints.size):
        c = constraints[i]
        if iwork[before + i] == ABSENT:
            memory.imem[c.active] = 0
            memory.mem[c.lam] = 0.0
        iwork[p.local + i] = iwork[before + i]
    return _number_active(constraints, p, iwork)


@tiny
def _number_active(constraints, p, iwork):
    """Number the active constraints again, and list them; returns -1 - (their number)."""
    n = 0
    for i in range(constraints.size):
        n = list_row(i, iwork[p.local + i] != ABSENT, n, p, iwork)
    return -1 - n


@kernel
def project(t, s, calls, options, memory):
    """Move the positions until no constraint is violated; values and operators of the relations are evaluated at the new positions.

    Of systems smaller than 1 the tolerance is relative to the terms of y, as long as violations fall so far.
    Returns (status, whether anything moved).
    """
    work, iwork = memory.work, memory.iwork
    form, entries = s.newton, s.newton.entries
    p, tol, before = s.plan[0], options.constraint_tol, np.inf
    for done in range(int(options.max_rounds) + 1):
        # 1. active constraints, and the largest violation
        n, worst, length = _choose(options, s.constraints, entries, p, memory)
        is_last = done == int(options.max_rounds) or worst > 0.5 * before
        if worst <= max(tol * min(length, 1.0), ULPS * length) or (is_last and worst <= tol):
            return CONVERGED, done > 0
        before = worst
        # 2. Delassus matrix with the metric at this position
        extract_pattern(p, n, form.W_row, form.W_column, iwork)
        transpose_pattern(p, n, iwork)
        row, column = view(iwork, p.sub_row, n + 1), view(iwork, p.sub_column, iwork[p.sub_row + n])
        chosen, transpose = view(iwork, p.active, n), view(iwork, p.sub_place, iwork[p.sub_row + n])
        find_metrics(s, calls.functions, memory)
        assemble(s.plan, s.metrics, s.constraints, entries, entries, form.couplings, chosen, (row, column, transpose), 1.0, 0,
                       work, iwork)  # fmt: skip
        # 3. in units of the largest violation, so that tolerances of solvers apply
        for a in range(n):
            work[p.q + a] /= worst
            work[p.z + a] = 0.0
        work[p.rounding] = ULPS * length / worst
        iwork[p.isolver] = 0
        status = solve(p, s.blocks, n, row, column, p.W, calls.solver, s.constraints, calls.solver_options, memory)
        # 4. pressing contacts that no position closes simultaneously: at least none of them is to be violated
        if status != CONVERGED:
            for a in range(n):
                if not s.constraints[chosen[a]].bilateral:
                    work[p.lower + a] = 0.0
                work[p.z + a] = 0.0
            iwork[p.isolver] = 0
            status = solve(p, s.blocks, n, row, column, p.W, calls.solver, s.constraints, calls.solver_options, memory)
        if status not in (CONVERGED, INEXACT):
            return status, done > 0
        # 5. new positions
        _move(n, worst, s, memory)
        evaluate_relations(t, 1.0, 0.0, EVERY, options.motion, form.relations, form.plan[0], calls.functions, memory)
    return VIOLATED, True


@inlined
def _choose(options, constraints, entries, p, memory):
    """The constraints of the projection, with lower bounds and y. Returns (how many, the largest violation, largest sum of terms of y)."""
    iwork = memory.iwork
    n, worst, length = 0, 0.0, 0.0
    for i in range(constraints.size):
        c = constraints[i]
        iwork[p.local + i] = ABSENT
        if c.component == 0 and c.level == VELOCITY and (options.every_contact != 0.0 or memory.imem[c.active] != 0):
            y = position(c, entries, memory)
            is_pressing = c.bilateral or (options.combined != 0.0 and memory.imem[c.active] != 0 and memory.mem[c.lam] > 0.0)
            worst = max(worst, abs(y) if is_pressing else -y)
            length = max(length, lengths(c, entries, memory))
            iwork[p.local + i], iwork[p.active + n] = n, i
            memory.work[p.q + n] = y
            memory.work[p.lower + n] = -np.inf if is_pressing else 0.0
            n += 1
    return n, worst, length


@kernel
def find_metrics(s, functions, memory):
    """Inverse masses at the state in mem, where they change."""
    work, p, parts, elements, metrics = memory.work, s.plan[0], s.newton.parts, s.newton.elements, s.metrics
    evaluate_masses(1.0, parts, elements, s.newton.plan[0], functions, memory)
    for k in range(elements.size):
        g = metrics[k]
        if parts[elements[k].part].mass_function != ABSENT and g.kind == DENSE:
            for i in range(g.n * g.n):
                work[g.data + i] = work[elements[k].mass + i]
            invert_dense(g.n, g.data, p.rhs, memory, p.pivots)


@inlined
def _move(n, worst, s, memory):
    """``q <- q + metric^-1 H^T lambda_0``."""
    work = memory.work
    p, elements, entries = s.plan[0], s.newton.elements, s.newton.entries
    for a in range(n):
        c = s.constraints[memory.iwork[p.active + a]]
        for k in range(c.entry, c.entry_end):
            work[p.dofs + entries[k].dof] += worst * work[p.z + a] * work[entries[k].coefficient]
    for k in range(elements.size):
        g, part = s.metrics[k], s.newton.parts[elements[k].part]
        q = part.q + elements[k].e * part.stride
        apply_inverse(g.kind, g.n, g.n_lower, g.n_upper, g.data, g.index, work, memory.iwork, p.dofs + g.dof, p.dv + g.dof, p.scratch)
        for i in range(g.n):
            memory.mem[q + i] += work[p.dv + g.dof + i]
            work[p.dofs + g.dof + i] = 0.0
