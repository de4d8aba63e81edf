"""Moreau–Jean time stepping for linear time-invariant Lagrangian systems ([EventCapturing]; [Notes], 10.2.1).

One step, with the iteration matrix ``M_hat = M + h theta C + h^2 theta^2 K`` (eq. 10.17):

    v_free = v_k + M_hat^-1 [ h (theta F_{k+1} + (1-theta) F_k) - h C v_k - h K (q_k + h theta v_k) ]        (10.18)
    v_{k+1} = v_free + M_hat^-1 H^T lambda                                                                  (10.16)
    q_{k+1} = q_k + h (theta v_{k+1} + (1-theta) v_k)                                                       (10.14)
    0 <= H v_{k+1} + D lambda + e ydot_k  ⟂  lambda >= 0      where the forecast  y_k + gamma h ydot_k <= 0
"""

import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import inlined, kernel, tiny, view
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT, table
from nsds.schemes.lagrangian import tiles  # noqa: F401
from nsds.schemes.lagrangian.functions import blame, prescribe  # noqa: F401
from nsds.schemes.lagrangian.outputs import state_pulls, update_outputs
from nsds.schemes.linear_algebra import inverse_of, solve_with, subtract_product
from nsds.schemes.memory import Prepared
from nsds.schemes.problem.activation_rule import slack
from nsds.schemes.problem.active_set import choose_active, extract_active, solve_active
from nsds.schemes.problem.assemble import assemble
from nsds.schemes.problem.box import rounding_of
from nsds.schemes.problem.contact import place_blocks
from nsds.schemes.problem.impact import place_impacts, rebound, state_impact
from nsds.schemes.problem.rows import POSITION
from nsds.schemes.problem.tables import bodies_of, largest_contact, ordered, place_active, place_problem, store_inverse
from nsds.status import CONVERGED, NON_FINITE

_MANY = 3  # coordinates of a constraint
# Inverse iteration matrix, impulse of the forces and force at the last t of each part; a constant impulse is stored as M_hat^-1 h F.
OPERATOR = table("kind", "data", "data_stride", "index", "index_stride", "n_lower", "n_upper", "impulse", "force", "constant")
# Offsets in the work memory of a member.
PLAN = table(
    # one-step problem and solver; scratch of one body: right-hand side, arguments, solution; v_old: velocities at the start
    "W", "sub_W", "q", "z", "w", "lower", "upper", "info", "solver", "n_solver", "rhs", "x", "solution", "scratch", "v_old", "dofs",
    # active set and its pattern, touched bodies; pull: velocity change by forces in a step
    "rounding", "active", "local", "sub_row", "sub_column", "sub_place", "touched", "isolver", "n_isolver", "pull",
    # multiple impacts, see `nsds.schemes.problem.impact`
    "impact_law", "impact", "n_impact", "whole", "reduced", "mode", "n_mode", "chosen", "place_in_contact", "reduced_row",
    # diagonal (integers): of W, by constraint
    "reduced_column", "diagonal",
)  # fmt: skip


class Options(NamedTuple):
    """Parameters of the step."""

    h: float
    theta: float
    gamma: float  # of h: the forecast of contact


class Tables(NamedTuple):
    """Tables of the step; constraints in the order of the one-step problem, whose pattern is W_row, W_column."""

    parts: np.ndarray
    constraints: np.ndarray
    entries: np.ndarray  # of H
    inputs: np.ndarray  # entries of B
    couplings: np.ndarray  # entries of D
    relations: np.ndarray
    plan: np.ndarray
    blocks: np.ndarray  # of a problem with friction
    operators: np.ndarray
    W_row: np.ndarray
    W_column: np.ndarray


def prepare(records, layout, options, method, work, iwork):
    """Factorise iteration matrices and assemble the Delassus matrices of all members."""
    # 1. inverse iteration matrices
    parts, h, theta = layout.parts, options.h, options.theta
    operators = inverse_operators(records, layout, h, theta, work, iwork)
    # 2. one-step problem
    tables, layout, work, iwork = pose(layout, operators, bodies_of(parts, operators), method, work, iwork)
    return Prepared(tables, layout.functions, options, work, iwork, sys.modules[__name__], layout)


def pose(layout, operators, bodies, method, work, iwork):
    """The one-step problem of a linear model: (`Tables`, layout in its order, memories of all members with the Delassus matrices)."""
    unknowns = ordered(layout.constraints, layout.entries, layout.inputs, layout.couplings, bodies["kind"])
    constraints, couplings, row, column = unknowns.constraints, unknowns.couplings, unknowns.row, unknowns.column
    plan = reserve(layout, unknowns, method, work, iwork)
    blocks = place_blocks(plan, constraints, unknowns, largest_contact(constraints), method, work, iwork)
    # initial contents; Delassus matrices, once: they do not depend on the state
    n, p, work, iwork = constraints.size, plan[0], work.array(), iwork.array(np.int64)
    iwork[:, p["local"] : p["local"] + n] = -2  # no set is known yet
    iwork[:, p["diagonal"] : p["diagonal"] + n] = np.flatnonzero(np.repeat(unknowns.every, np.diff(row)) == column)
    for member in range(work.shape[0]):
        assemble(plan, bodies, constraints, layout.entries, layout.inputs, couplings, unknowns.every, (row, column, unknowns.transpose),
                       1.0, 0, work[member], iwork[member])  # fmt: skip
    tables = tables_of(layout, unknowns, plan, blocks, operators)
    layout = layout._replace(constraints=constraints, owners=tuple(layout.owners[i] for i in unknowns.order))
    return tables, layout, work, iwork


def tables_of(layout, u, plan, blocks, operators):
    """`Tables` of the unknowns u."""
    entries, inputs, relations = layout.entries, layout.inputs, layout.relations
    return Tables(layout.parts, u.constraints, entries, inputs, u.couplings, relations, plan, blocks, operators, u.row, u.column)


def reserve(layout, unknowns, method, work, iwork):
    """Reserve the arrays of the one-step problem, those of its active constraints, and the scratch of one body."""
    parts, nnz = layout.parts, unknowns.column.size
    body, dofs = parts["n"].max(), (parts["count"] * parts["n"]).sum()
    plan = np.zeros(1, PLAN)
    place_problem(plan, unknowns, method, work, iwork)
    place_active(plan, unknowns, work, iwork)
    place_impacts(plan, unknowns, work, iwork)
    work.place(plan, sub_W=nnz, rhs=body, x=body, solution=body, scratch=body, v_old=dofs, dofs=dofs, pull=dofs)
    iwork.place(plan, touched=parts["count"].sum(), diagonal=unknowns.every.size)
    return plan


def terms_of(h, theta):
    """Terms of M_hat (eq. 10.17)."""
    return [(1.0, "M"), (h * theta, "C"), (h * theta * h * theta, "K")]


def inverse_operators(records, layout, h, theta, work, iwork, keeps_columns=True):
    """Table of the parts' operators, their inverse iteration matrices stored; keeps_columns: those of the inverse that W is made of."""
    operators = np.zeros(layout.parts.size, OPERATOR)
    for part, operator, name in zip(layout.parts, operators, layout.part_names, strict=True):
        formula = f"M + h theta C + h^2 theta^2 K is singular (h = {h:g})"
        last = _in_contact(layout, part) if keeps_columns else None
        inverse = inverse_of(records[name], part, name, terms_of(h, theta), formula, last)
        store_inverse(operator, inverse, work, iwork)
        operator["impulse"], operator["force"] = (work.reserve(part["count"] * part["n"]) for _ in range(2))
        operator["constant"] = part["fext_function"] == ABSENT and part["C"] == ABSENT and part["K"] == ABSENT
    return operators


def _in_contact(layout, part):
    """Coordinates of a part that constraints act on; none where these are so many that W is the smaller matrix by far."""
    rows = np.concatenate([layout.entries, layout.inputs])
    rows = rows[(rows["body"] >= part["body"]) & (rows["body"] < part["body"] + part["count"])]
    found = np.unique((rows["dof"] - part["dof"]) % part["n"])
    return found if found.size <= _MANY * layout.constraints.size else found[:0]


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: force at t, impulse of constant forces, outputs of the state."""
    mem, work = memory.mem, memory.work
    h, p = options.h, s.plan[0]
    # 1. force at t; the impulse of a constant one includes M_hat^-1, so that a step only adds it
    for a in range(s.parts.size):
        part, o = s.parts[a], s.operators[a]
        for e in range(part.count):
            impulse, force = o.impulse + e * part.n, o.force + e * part.n
            if part.fext_function != ABSENT:
                z = view(mem, part.z + e * part.stride, part.n_z)
                nothing = view(mem, 0, 0)
                call_function(functions, part.fext_function + e, (t, nothing, nothing, z, view(work, force, part.n)))
            elif part.fext != ABSENT:
                for i in range(part.n):
                    work[impulse + i] = h * mem[part.fext + e * part.stride + i]
            has_force = part.fext_function != ABSENT or part.fext != ABSENT
            # velocity change by forces, as scale of gaps
            for i in range(part.n):
                work[p.rhs + i] = (h * work[force + i] if part.fext_function != ABSENT else work[impulse + i]) if has_force else 0.0
            solve_with(o, e, part.n, p.rhs, p.solution, p.scratch, memory)
            for i in range(part.n):
                work[p.pull + part.dof + e * part.n + i] = abs(work[p.solution + i])
                if o.constant:
                    work[impulse + i] = work[p.solution + i]
    # 2. outputs
    for k in range(s.relations.size):
        prescribe(t, s.relations[k], functions, memory)
    state_pulls(p.pull, s.constraints, s.entries, work)
    update_outputs(h, options.theta, s.constraints, s.entries, s.couplings, memory)
    heed_impulses(h, s.constraints, p, memory)
    return CONVERGED


@inlined
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, n_iter, residual)."""
    iwork = memory.iwork
    h, theta, p = options.h, options.theta, s.plan[0]
    # 1. active set and free motion
    n, finite = begin(t_new, s, calls.functions, options, memory)
    status, n_iter, residual = CONVERGED, 0, 0.0
    # 2. one-step problem; the pattern is extracted when the active set changes
    if n != 0:
        if n < 0:
            n = -1 - n
            extract_active(p, n, s.W_row, s.W_column, memory)
        if n > 0:
            impact = CONVERGED
            # laws of multiple impacts give restitution before the problem is stated
            if p.impact_law != 0:
                row, column = view(iwork, p.sub_row, n + 1), view(iwork, p.sub_column, iwork[p.sub_row + n])
                impact = state_impact(p, n, p.sub_W, row, column, s.constraints, s.entries, memory)
            state_problem(n, h, theta, s.constraints, s.entries, p, memory)
            status, n_iter, residual = solve_active(
                p, s.blocks, n, h, h, calls.solver, s.constraints, s.inputs, calls.solver_options, memory
            )
            status = impact if impact != CONVERGED else status
        # 3. end of the step
        finite = _end_motion(h, theta, s.parts, s.plan, s.operators, memory)
    return end(status, finite, s, options, memory), n_iter, residual


@inlined
def begin(t_new, s, functions, options, memory):
    """Active set, and free motion, which is already the end of the step without contact. Returns (as `choose_active`, whether finite)."""
    n = choose_active(s.plan[0], s.constraints, options.gamma * options.h, options.h, memory)
    finite = free_motion(t_new, options.h, options.theta, n == 0, s.parts, functions, s.plan, s.operators, memory)
    for k in range(s.relations.size):
        prescribe(t_new, s.relations[k], functions, memory)
    return n, finite


@inlined
def end(status, finite, s, options, memory):
    """Outputs at the end of the step. Returns the status."""
    update_outputs(options.h, options.theta, s.constraints, s.entries, s.couplings, memory)
    heed_impulses(options.h, s.constraints, s.plan[0], memory)
    return status if finite else NON_FINITE


@tiny
def heed_impulses(h, constraints, p, memory):
    """Add the velocity change by contact impulses to `gap_slack`, too: a node of a mesh may feel no other force."""
    for i in range(constraints.size):
        c = constraints[i]
        if c.component == 0 and memory.mem[c.lam] > 0.0:
            memory.work[c.closed] += slack(0.0, memory.work[p.W + memory.iwork[p.diagonal + i]] * memory.mem[c.lam], h)


@inlined
def state_problem(n, h, theta, constraints, entries, p, memory):
    """Vector q of the one-step problem: ``H v_free + e ydot_k``, or ``y / (h theta)`` of the free motion at position level.

    v in mem is v_free, q is q_k.
    """
    work = memory.work
    most = 0.0
    for a in range(n):
        c = constraints[memory.iwork[p.active + a]]
        # velocity: H v_free + rate, and restitution
        w = 0.0 if c.rate == ABSENT else work[c.rate]
        size = abs(w)
        for k in range(c.entry, c.entry_end):
            term = work[entries[k].coefficient] * memory.mem[entries[k].q + entries[k].n]
            w += term
            size += abs(term)
        w += rebound(c, memory)
        # position of the free motion, in units of a velocity
        if c.level == POSITION:
            y = 0.0 if c.base == ABSENT else work[c.base]
            size += abs(y) / (h * theta)
            for k in range(c.entry, c.entry_end):
                y += work[entries[k].coefficient] * (memory.mem[entries[k].q] + (1.0 - theta) * h * work[p.v_old + entries[k].dof])
            w += y / (h * theta)
        work[p.q + a] = w
        most = max(most, size)
    work[p.rounding] = rounding_of(most)


@inlined
def free_motion(t_new, h, theta, is_free, parts, functions, plan, operators, memory):
    """``v <- v_free`` (eq. 10.18), ``p <- 0``; ``q <- q + h (theta v + (1-theta) v_k)`` (10.14) if nothing is in contact.

    Otherwise v_k is kept for the end of the step. Rounded as in the source to the last bit: a body that reaches a wall exactly at a step is
    decided by it. Returns False if not finite.
    """
    mem, work = memory.mem, memory.work
    rhs, x, solution = plan[0].rhs, plan[0].x, plan[0].solution
    zero = 0.0
    for a in range(parts.size):
        part, o = parts[a], operators[a]
        first_q, stride, first_old, impulse, constant = part.q, part.stride, plan[0].v_old + part.dof, o.impulse, o.constant
        for e in range(part.count):
            # n is read here: read before the loop it would make the compiled code test all bodies for overlap first, which takes longer
            n, q = part.n, first_q + e * stride
            v, v_old, increment = q + n, first_old + e * n, impulse + e * n
            # 1. increment M_hat^-1 (...) of (10.18); a constant one is known
            if not constant:
                increment = solution
                if part.fext_function != ABSENT:
                    _impulse_of_function(t_new, h, theta, part, o, e, functions, plan, memory)
                for i in range(n):
                    work[rhs + i] = work[o.impulse + e * n + i]
                if part.C != ABSENT:
                    for i in range(n):
                        work[x + i] = mem[v + i]
                    subtract_product(part.C_kind, n, part.C_nnz, mem, memory.imem, part.C + e * part.stride, h, work, x, rhs)
                if part.K != ABSENT:
                    for i in range(n):
                        work[x + i] = mem[q + i] + h * theta * mem[v + i]
                    subtract_product(part.K_kind, n, part.K_nnz, mem, memory.imem, part.K + e * part.stride, h, work, x, rhs)
                solve_with(o, e, n, rhs, solution, plan[0].scratch, memory)
            # 2. free velocity; without contacts the position, too
            for i in range(n):
                v_k = mem[v + i]
                v_free = v_k + work[increment + i]
                mem[v + i] = v_free
                mem[v + n + i] = 0.0
                if is_free:
                    mem[q + i] += h * (theta * v_free + (1.0 - theta) * v_k)
                    zero += 0.0 * mem[q + i]
                else:
                    work[v_old + i] = v_k
    return zero == 0.0


@inlined
def _impulse_of_function(t_new, h, theta, part, o, e, functions, plan, memory):
    """``h (theta F(t_{k+1}) + (1-theta) F(t_k))``; F(t_{k+1}) is kept for the next step."""
    work = memory.work
    n, impulse, force = part.n, o.impulse + e * part.n, o.force + e * part.n
    for i in range(n):
        work[impulse + i] = h * (1.0 - theta) * work[force + i]
    nothing, z = view(memory.mem, 0, 0), view(memory.mem, part.z + e * part.stride, part.n_z)
    call_function(functions, part.fext_function + e, (t_new, nothing, nothing, z, view(work, force, n)))
    for i in range(n):
        work[impulse + i] += h * theta * work[force + i]


@inlined
def _end_motion(h, theta, parts, plan, operators, memory):
    """``v <- v_free + M_hat^-1 p`` (eq. 10.16) for the bodies in contact; the positions by (10.14). False if not finite."""
    mem, work = memory.mem, memory.work
    rhs, solution = plan[0].rhs, plan[0].solution
    zero = 0.0
    for a in range(parts.size):
        part, o = parts[a], operators[a]
        first_q, stride, first_old, first_body = part.q, part.stride, plan[0].v_old + part.dof, plan[0].touched + part.body
        for e in range(part.count):
            n, q, body = part.n, first_q + e * stride, first_body + e
            v, v_old = q + n, first_old + e * n
            # impulses of contacts
            is_touched = memory.iwork[body] != 0
            if is_touched:
                memory.iwork[body] = 0
                for i in range(n):
                    work[rhs + i] = mem[v + n + i]
                solve_with(o, e, n, rhs, solution, plan[0].scratch, memory)
            # positions of all bodies
            for i in range(n):
                if is_touched:
                    mem[v + i] += work[solution + i]
                mem[q + i] += h * (theta * mem[v + i] + (1.0 - theta) * work[v_old + i])
                zero += 0.0 * mem[q + i]
    return zero == 0.0
