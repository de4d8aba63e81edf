"""One step of a Lagrangian system by Newton's method ([EventCapturing]; [Notes], 10.2.2 and 10.3): nonlinear systems and relations.

Each iteration solves the system linearised at v^a, ``q^a = q_k + h (a v^a + (1-a) v_k)``, for dv = v^{a+1} - v^a and the impulses z:

    M_hat = M(q*) + h weight (at_v C_t + h a at_q K_t)                                                     (10.44, 10.49)
    M_hat dv = h F - M(q*) (v^a - v_k) + B z,      F = weight F(q_at, v_at) + (1 - weight) F_k             (10.43)
    w = H (v^a + dv) + rate + e ydot_k + D z       at position level:  w = y^a / (h a) + H dv + D (z - z^a)

with ``q_at = at_q q^a + (1-at_q) q_k`` and v_at likewise. Moreau–Jean has weight = a = theta, at_q = at_v = 1. Schatzman–Paoli has
a = weight = 1, at_q = theta, at_v = theta / 2, M(q_k), and its law is one of positions, for ``y((q_{k+1} + e q_{k-1}) / (1+e))`` (10.45).
"""

import math
import sys
from typing import NamedTuple

import numpy as np
from numba import float64, int64, typeof, types

from nsds._jit import caller, inlined, kernel, on_demand, tiny, view
from nsds.maths import patterns, sparse_lu
from nsds.model.control import has_controls
from nsds.model.layout import ABSENT, COUPLING, DENSE, DIAGONAL, ENTRY, table
from nsds.model.records import stored_sparse
from nsds.schemes.compressed import store_groups
from nsds.schemes.derivatives import derivative
from nsds.schemes.lagrangian import compressed, mixed
from nsds.schemes.lagrangian.branches import are_bent, judge, keep_start, take_impulses, work_of_pressed
from nsds.schemes.lagrangian.functions import add_tangents, blame, force, mass  # noqa: F401
from nsds.schemes.lagrangian.outputs import keep_state, lengths, state_pulls, update_outputs, velocity
from nsds.schemes.lagrangian.relations import ACTIVE, EVERY, INACTIVE, KEPT, evaluate_relations, is_active
from nsds.schemes.lagrangian.tables import PART, RELATION, change
from nsds.schemes.linear_algebra import (
    PLANNED,
    apply_inverse,
    apply_inverses,
    dense,
    inverse_of,
    invert_dense,
    is_positive_definite,
    subtract_product,
)
from nsds.schemes.memory import MEMORY, Prepared, require_affordable
from nsds.schemes.problem.active_set import accept, choose_active, extract_pattern, solve_active, transpose_pattern
from nsds.schemes.problem.assemble import assemble
from nsds.schemes.problem.box import rounding_of
from nsds.schemes.problem.contact import no_blocks, place_blocks
from nsds.schemes.problem.impact import place_impacts, rebound, restitution, state_impact
from nsds.schemes.problem.rows import CONSTRAINT, POSITION, coordinate, number_of, width
from nsds.schemes.problem.tables import BODY, has_friction, largest_contact, ordered, place_active, place_problem, store_inverses
from nsds.solvers.box.signature import UNDERFLOW
from nsds.solvers.box.signature import Options as BoxOptions
from nsds.status import CONVERGED, INEXACT, NEWTON, NON_FINITE, NOT_DEFINITE, SINGULAR_STEP

_ROUNDING = 1e-4  # velocities below this times |q| / h times the tolerance are lost in the rounding of q
_LEAST_CHANGE = 2e-15  # change of velocities by an iteration, relative to them and to q / h, that is all rounding
_DENSE_COPIES = 3  # of a dense M_hat of functions: its mass, its inverse, and its derivatives
_STATE_PATTERN = "state which coordinates act on which forces as jac_sparsity of nsds.lagrangian"
_LEAST_TOL = 2.0**-47  # of residuals relative to what cancels: less is rounding
_NEARLY = 0.01  # a step that does not converge is INEXACT (not NEWTON) if its residual is below this fraction of the solver's INEXACT limit
_PATIENCE = 5  # iterations in which the residual must halve; else every other correction is halved
# Path of problems, where Newton's iteration fails: part of the residual that the first one keeps, below which all of it goes at once;
# numbers of problems, of failures in turn, and of iterations in each.
_FIRST_FACTOR, _AT_ONCE, _MOST_PROBLEMS, _MOST_FAILURES, _SHORT = 0.5, 2.0**-6, 100, 6, 12
_BENT = 0.05  # of momenta and impulses: more by forces within a step, beyond the mean of its ends, is not resolved
_STRAIGHT = 2  # iterations without the change of H: most steps need no more
_FAR = 1e-3  # residual above which the second iteration already uses it
_LARGEST_BENT = 128  # coordinates of an element up to which inverting the matrix with that change pays
_SMALL = 2.0**-6  # of the motion in a step, for a one-sided difference of H along it
_MOVE = 2.0**-20  # of the coordinates, for one-sided differences of a given H
_DIFFERENCES = 1e-6  # residual below which finite differences are kept once it falls slowly: their rounding is noise of ``H^T lambda`` then
_FAST = 0.01  # of the last residual
# One row per element of a part, which is a body.
ELEMENT = table(
    # part, e: its part and place there; dof: its first coordinate
    "part", "e", "dof",
    # mass: offset of M, ABSENT if M_hat is constant; diagonal, diagonal_step: of its diagonal; stiff: offset of a constant M_hat of an
    # element on which curved relations act, else ABSENT
    "mass", "diagonal", "diagonal_step", "stiff",
    # a sparse M_hat of n_entries, 0 without one, see `nsds.schemes.lagrangian.compressed`; integers: groups of coordinates of both
    # derivatives of the force; mass_map: number of entries of M, their places in its field, and those in M_hat
    "n_entries", "groups_q", "groups_v", "mass_map",
)  # fmt: skip
# Extents: N coordinates of all elements, n of the largest one, m constraints.
PLAN = table(
    # 1. one-step problem. W, sub_W: Delassus matrix and that of the active constraints; q, z, w, lower, upper (m); info; solver scratch
    "W", "sub_W", "q", "z", "w", "lower", "upper", "info", "solver", "n_solver",
    # 2. scratch of one element (n): right-hand side, solution, arguments of functions; spare: its matrix; dofs (N): scratch
    "rhs", "solution", "scratch", "dofs", "spare", "at_q", "at_v",
    # 3. step (N): state at the start, forces at the iterate and at the start, sizes of their terms, impulses, momenta, residual,
    # correction, accelerations; total (m): multipliers summed over the step
    "q_old", "v_old", "f", "f_old", "size", "impulse", "kinetic", "residual", "dv", "a_old", "acc", "total", "n_dofs",
    # path (N), see `_follow`: residual of the start, velocities of the last problem; damps: whether `advance` damps what a step does not
    # resolve
    "started", "near", "damps",
    # 4. active set (integers): active constraints, their number in the problem or ABSENT, pattern of sub_W and its transpose; touched
    # bodies; pivots; fresh: that nothing is known of the last step; scratch of the solver, whose first entry says that W has not changed
    "active", "local", "sub_row", "sub_column", "sub_place", "sub_next", "touched", "pivots", "fresh", "isolver", "n_isolver",
    # 5. rounding: of q, an absolute velocity; controlled: controls are present; pull (N): velocity change by forces in a step, with which
    # gaps are compared; bends, shift: whether H changes, and where its derivative is, behind H; H_moved: H at a moved point
    "rounding", "controlled", "pull", "bends", "shift", "H_moved", "impact_law", "impact", "n_impact",
    # 6. constant: M_hat does not change; known: H, B and D of the last call; the others: multiple impacts, see
    # `nsds.schemes.problem.impact`
    "constant", "known", "whole", "reduced", "mode", "n_mode", "chosen", "place_in_contact", "reduced_row", "reduced_column",
    # 7. equations, see `nsds.schemes.lagrangian.equations`; empty unless a family of systems reserves them
    "most", "dense", "scale", "scaled", "weight", "null", "gram", "trace", "component", "number", "block",
    # 8. work of joints, see `nsds.schemes.lagrangian.branches`: jointed: there are joints whose rows turn; at the start of the step: state
    # (N) and coefficients of all entries of H; pressed, q_ended (N): impulses of joints, state of the end
    "jointed", "q_begun", "v_begun", "H_begun", "pressed", "q_ended",
)  # fmt: skip


class Options(NamedTuple):
    """Parameters of the step; by default nothing is implicit, as of schemes that use the evaluations of the Newton form alone."""

    h: float
    gamma: float = 0.0  # of h: the forecast of contact
    q_star: float = 1.0  # where M and H are evaluated
    tol: float = 0.0
    max_iter: float = 0.0
    a: float = 1.0  # weight of v_{k+1} in q_{k+1}
    weight: float = 0.0  # of the new force
    at_q: float = 1.0  # where that is evaluated
    at_v: float = 1.0
    paoli: float = 0.0  # not 0: the law is that of Schatzman and Paoli
    sees_q_star: float = 0.0  # not 0: restitution sees v_k by the H of q*
    damped: float = 0.0  # 1: weights of elements whose M_hat changes are 1, see `advance`


class Tables(NamedTuple):
    """Tables of the step; constraints in the order of the one-step problem, whose pattern is W_row, W_column."""

    parts: np.ndarray
    elements: np.ndarray
    bodies: np.ndarray  # inverse iteration matrices
    bent: np.ndarray  # those with the change of H
    relations: np.ndarray
    constraints: np.ndarray
    entries: np.ndarray  # of H
    inputs: np.ndarray  # entries of B
    couplings: np.ndarray  # entries of D
    plan: np.ndarray
    blocks: np.ndarray  # of a problem with friction
    W_row: np.ndarray
    W_column: np.ndarray
    mixed: np.ndarray  # of `nsds.schemes.lagrangian.mixed`: empty where W is formed


def options_of(h, options):
    """`Options` of a Moreau–Jean scheme."""
    theta, gamma, q_star = (options[name].item() for name in ("theta", "gamma", "q_star"))
    tol, max_iter = options["newton_tol"].item(), float(options["newton_max_iter"].item())
    return Options(h, gamma, q_star, tol, max_iter, a=theta, weight=theta)


def prepare(records, layout, options, method, work, iwork, may_be_mixed=False):
    """Tables, constant inverses and work memory of all members; may_be_mixed: `nsds.schemes.lagrangian.mixed`, where that costs less."""
    elements, bodies, bent, entries = _elements(records, layout, options, work, iwork)
    plans = None
    if may_be_mixed and (elements["n_entries"] > 0).all() and not has_friction(layout.constraints) and mixed.can_be_mixed(layout, method):
        plans = mixed.plan_of(layout, *(np.concatenate(each) for each in zip(*entries, strict=True)), work.array())
    d = largest_contact(layout.constraints)
    return prepare_problem(records, layout, elements, bodies, bent, d, options, method, work, iwork, plans)


def prepare_problem(records, layout, elements, bodies, bent, d, options, method, work, iwork, plans=None):
    """Tables and work memory of all members, from those of `_elements`; d: components of a block, 0 of a problem with bounds."""
    # 1. order of the unknowns, and memory of the one-step problem
    if plans is None:
        unknowns = ordered(layout.constraints, layout.entries, layout.inputs, layout.couplings, bodies["kind"])
        of_both = np.zeros(0, mixed.MIXED)
    else:
        unknowns, of_both = mixed.without_pairs(layout), mixed.place(layout, plans, work, iwork)
        mixed.place_sources(of_both, plans, iwork)
    constraints, couplings = unknowns.constraints, unknowns.couplings
    plan = _plan(records, layout, elements, bodies, unknowns, d, method, work, iwork)
    blocks = place_blocks(plan, constraints, unknowns, d, method, work, iwork)
    # 2. if H changes along the motion: room for the derivative of ydot, at one shift behind all coefficients
    first, end = layout.entries["coefficient"].min(initial=work.size), layout.entries["coefficient"].max(initial=-1) + 1
    bends = (bent["kind"] == DENSE).any() and _bending(layout.relations).any() and first < end
    if bends:
        plan["bends"], plan["shift"] = 1, work.reserve(end - first) - first
    # 3. initial contents: no active set is known; constant operators have no curvature
    n, p, work, iwork = constraints.size, plan[0], work.array(), iwork.array(np.int64)
    iwork[:, p["local"] : p["local"] + n] = -2  # no set is known yet
    if bends:
        work[:, first + p["shift"] : end + p["shift"]] = work[:, first:end]
    # 4. a step with theta < 1 may be damped: where elements have forces by functions, and rows of positions no weights of their own
    is_between = 0.0 < options.a < 1.0 and options.weight == options.a and options.at_q == options.at_v == 1.0
    plan["damps"] = is_between and not _is_constant(elements).all() and not (constraints["level"] == POSITION).any()
    # 5. tables of the step
    tables = Tables(
        layout.parts, elements, bodies, bent, layout.relations, constraints, layout.entries, layout.inputs, couplings, plan, blocks,
        unknowns.row, unknowns.column, of_both,
    )  # fmt: skip
    layout = layout._replace(constraints=constraints, owners=tuple(layout.owners[i] for i in unknowns.order))
    return Prepared(tables, layout.functions, options, work, iwork, sys.modules[__name__], layout)


def _bending(relations):
    """Which rows have an H that changes, and ``H^T lambda`` with it."""
    return change(relations) & (relations["g_function"] == ABSENT)


def _elements(records, layout, options, work, iwork):
    """Tables of elements, of bodies with constant inverses, and of bodies with the curvature of relations in them."""
    parts, h, bending = layout.parts, options.h, _bending(layout.relations)
    # 1. elements on which curved relations act, and the terms of M_hat
    curved = np.zeros(parts["count"].sum(), bool)
    for side in ("first", "second"):
        curved[layout.relations[f"body_{side}"][bending]] = True
    terms = [(1.0, "M"), (h * options.weight * options.at_v, "C"), (h * options.weight * options.at_q * h * options.a, "K")]
    is_implicit = any(factor != 0.0 for factor, _ in terms[1:])
    formula = f"M + h theta C + h^2 theta^2 K is singular (h = {h:g})" if is_implicit else "M is singular, without C and K"
    elements, bodies = np.zeros(parts["count"].sum(), ELEMENT), np.zeros(parts["count"].sum(), BODY)
    elements["part"] = np.repeat(np.arange(parts.size), parts["count"])
    elements["e"] = np.arange(elements.size) - parts["body"][elements["part"]]
    entries = []  # (rows, columns, places in the work memory) of sparse M_hat
    # 2. each part: M_hat by functions is inverted in each iteration, a constant one here
    for name, part in zip(layout.part_names, parts, strict=True):
        mine = slice(part["body"], part["body"] + part["count"])
        each, n = np.arange(part["count"]), int(part["n"])
        elements["dof"][mine] = bodies["dof"][mine] = part["dof"] + n * each
        bodies["n"][mine] = n
        elements["mass"][mine] = ABSENT
        functions = [part[f"{field}_function"] != ABSENT for field in ("mass", "fint", "fgyr", "T", "u")]
        pattern = compressed.pattern_of(records, part, name, layout.functions) if any(functions) else None
        if pattern is not None and part["mass_function"] == ABSENT:
            entries += _place_sparse(elements[mine], bodies[mine], records, part, name, pattern, work, iwork)
        elif any(functions):
            require_affordable(f"part '{name}': the iteration matrix", _DENSE_COPIES * n * n, _STATE_PATTERN)
            bodies["kind"][mine] = DENSE
            bodies["data"][mine] = work.reserve(part["count"] * n * n) + n * n * each
            elements["mass"][mine] = elements["diagonal"][mine] = work.reserve(part["count"] * n * n) + n * n * each
            elements["diagonal_step"][mine] = n + 1
        else:
            _store_diagonal(elements[mine], records, part, name, work)
            inverse = inverse_of(records[name], part, name, terms, formula)
            store_inverses(bodies[mine], inverse, work, iwork)
    # 3. constant M_hat with curvature: a copy to which it is added, unless the element is too large
    bent = bodies.copy()
    elements["stiff"] = ABSENT
    for name, part in zip(layout.part_names, parts, strict=True):
        mine = slice(part["body"], part["body"] + part["count"])
        n, which = int(part["n"]), np.flatnonzero(curved[mine] & (elements["mass"][mine] == ABSENT) & (elements["n_entries"][mine] == 0))
        if which.size and n <= _LARGEST_BENT:
            fields = records[name].reshape(records.size, -1)[:, which]
            matrices = sum(factor * dense(fields, part, field) for factor, field in terms if field == "M" or part[field] != ABSENT)
            each = n * n * np.arange(which.size)
            elements["stiff"][part["body"] + which] = work.store(matrices.reshape(records.size, -1)) + each
            bent["kind"][part["body"] + which], bent["data"][part["body"] + which] = DENSE, work.reserve(each.size * n * n) + each
    return elements, bodies, bent, entries


def _is_constant(elements):
    """Which elements have a constant M_hat."""
    return (elements["mass"] == ABSENT) & (elements["n_entries"] == 0)


def _store_diagonal(elements, records, part, name, work):
    """Store the diagonal of a mass of numbers of the elements of one part."""
    fields, n = records[name].reshape(records.size, -1), int(part["n"])
    if part["M"] == ABSENT or part["M_kind"] == DENSE:
        diagonal = np.diagonal(dense(fields, part, "M"), axis1=-2, axis2=-1)
    elif part["M_kind"] == DIAGONAL:
        diagonal = fields["M"]
    else:
        diagonal = np.array([[stored_sparse(each, n).diagonal() for each in member] for member in fields["M"]])
    elements["diagonal"], elements["diagonal_step"] = work.store(diagonal) + n * np.arange(elements.size), 1


def _place_sparse(elements, bodies, records, part, name, pattern, work, iwork):
    """Room for sparse M_hat and their factors, of one plan, of the elements of one part."""
    rows, each, n_members = compressed.matrix_pattern(records, part, name, pattern), np.arange(elements.size), records.size
    planned = sparse_lu.plan(rows)
    # 1. entries, and factors behind them; kernels change the index, so each element has its own
    size = planned.nnz + planned.size
    bodies["kind"], bodies["n_lower"], bodies["data"] = PLANNED, planned.nnz, work.reserve(size * elements.size) + size * each
    index = np.tile(planned.index, elements.size)
    bodies["index"] = iwork.store(np.broadcast_to(index, (n_members, index.size))) + planned.index.size * each
    # 2. where the entries of M and those of the derivatives lie in it
    i, j, field = compressed.mass_entries(records, part, name)
    mass_map = np.concatenate([[i.size], field, patterns.places(rows.indptr, rows.indices, i, j)]).astype(np.int64)
    elements["mass_map"] = iwork.store(np.broadcast_to(mass_map, (n_members, mass_map.size)))
    elements["groups_q"] = store_groups(pattern.by_q, rows, iwork)
    elements["groups_v"] = store_groups(pattern.by_v, rows, iwork)
    elements["n_entries"], elements["mass"] = planned.nnz, ABSENT
    _store_diagonal(elements, records, part, name, work)
    row = np.repeat(np.arange(int(part["n"])), np.diff(planned.row))
    return [(body["dof"] + row, body["dof"] + planned.column, body["data"] + np.arange(planned.nnz)) for body in bodies]


def _plan(records, layout, elements, bodies, unknowns, d, method, work, iwork):
    """Reserve the arrays of the one-step problem, of the iteration, and scratch."""
    # 1. sizes: of the largest element, and of functions of relations
    body, dofs = int(bodies["n"].max()), bodies["n"].sum()
    varying = max((int(n) for n, kind in zip(bodies["n"], bodies["kind"], strict=True) if kind == DENSE), default=0)
    spare = varying**2 + compressed.scratch_of(body) + 3 * max(layout.relations["m"].max(initial=0), layout.relations["n"].max(initial=0))
    plan = np.zeros(1, PLAN)
    # 2. one-step problem and active set
    place_problem(plan, unknowns, method, work, iwork, d)
    place_active(plan, unknowns, work, iwork)
    place_impacts(plan, unknowns, work, iwork)
    plan["sub_W"] = plan["W"]
    # 3. scratch of an element, and vectors of all coordinates
    work.place(plan, rhs=body, solution=body, scratch=body, at_q=body, at_v=body, spare=spare)
    work.place(
        plan,
        **dict.fromkeys(
            ("dofs", "q_old", "v_old", "f", "f_old", "size", "impulse", "kinetic", "residual", "dv", "a_old", "acc", "pull"), dofs
        ),
        started=dofs,
        near=dofs,
        total=unknowns.constraints.size,
        H_moved=(layout.relations["m"] * layout.relations["n"]).max(initial=0),
        known=(layout.relations["m"] * (2 * layout.relations["n"] + layout.relations["m"])).sum(),
    )
    # 4. joints whose work is watched
    plan["jointed"] = are_bent(unknowns.constraints).any()
    if plan["jointed"][0]:
        work.place(plan, **dict.fromkeys(("q_begun", "v_begun", "pressed", "q_ended"), dofs), H_begun=layout.entries.size)
    # 5. integers
    iwork.place(plan, sub_next=unknowns.constraints.size, touched=bodies.size, pivots=body, fresh=1)
    plan["n_dofs"], plan["controlled"], plan["constant"] = dofs, has_controls(records), _is_constant(elements).all()
    return plan


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: force at t, outputs of the state."""
    p = s.plan[0]
    keep_state(s.parts, s.elements, p.q_old, p.v_old, memory)
    evaluate_forces(t, options, s.parts, s.elements, p, p.f_old, functions, memory)
    evaluate_masses(1.0, s.parts, s.elements, p, functions, memory)
    state_pull(options.h, p.f_old, s.elements, s.parts, p, memory.work)
    evaluate_relations(t, 1.0, 0.0, EVERY, options, s.relations, p, functions, memory)
    state_pulls(p.pull, s.constraints, s.entries, memory.work)
    update_outputs(options.h, options.a, s.constraints, s.entries, s.couplings, memory)
    return CONVERGED


@kernel
def state_pull(h, f, elements, parts, p, work):
    """Velocity that the force in work[f:] adds in a step to each velocity, in size: gaps are compared with it."""
    for k in range(elements.size):
        el = elements[k]
        for i in range(parts[el.part].n):
            m = abs(work[el.diagonal + i * el.diagonal_step])
            work[p.pull + el.dof + i] = h * abs(work[f + el.dof + i]) / m if m > 0.0 else 0.0


@kernel
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, Newton's iterations, residual)."""
    p = s.plan[0]
    begin(t_new, options, s.parts, s.elements, p, calls.functions, memory)
    if p.jointed != 0:
        keep_start(s.parts, s.elements, s.entries, p, memory)
    n = choose_active(p, s.constraints, options.gamma * options.h, options.h, memory)
    status, n_iter, residual = advance(t_new, n, s, calls, options, memory)
    if not finish(t_new, n == 0, s, options, calls.functions, memory):
        status = NON_FINITE
    if p.jointed != 0:
        take_impulses(s.parts, s.elements, p, memory)
        done = work_of_pressed(s.parts, s.elements, p, memory)
        status, residual = judge(status, residual, done, 0.0, True, t_new, s, options, calls.functions, memory)
    return status, n_iter, residual


@tiny
def begin(t_new, options, parts, elements, p, functions, memory):
    """Keep q_k and v_k; the force at t_k where a controller has changed it since."""
    keep_state(parts, elements, p.q_old, p.v_old, memory)
    if p.controlled != 0 and options.weight < 1.0:
        evaluate_forces(t_new - options.h, options, parts, elements, p, p.f_old, functions, memory)


@inlined
def finish(t_new, is_free, s, options, functions, memory):
    """Outputs of the new state; its force is kept for the next step. False where an output is not finite."""
    which = EVERY if is_free or options.q_star != 1.0 or options.paoli != 0.0 else INACTIVE
    evaluate_relations(t_new, 1.0, 0.0, which, options, s.relations, s.plan[0], functions, memory)
    return hand_over(options, s.constraints, s.entries, s.couplings, s.plan[0], memory)


@tiny
def hand_over(options, constraints, entries, couplings, p, memory):
    """y and ydot from the values of the relations; the force is kept for the next step. False where an output is not finite."""
    update_outputs(options.h, options.a, constraints, entries, couplings, memory)
    for i in range(p.n_dofs):
        memory.work[p.f_old + i] = memory.work[p.f + i]
    zero = 0.0
    for i in range(constraints.size):
        zero += 0.0 * memory.mem[constraints[i].y] + 0.0 * memory.mem[constraints[i].ydot]
    return zero == 0.0


@inlined
def advance(t_new, n, s, calls, options, memory):
    """The step by `iterate`, and with theta = 1 for forces by functions where that fails, or where they bend within the step.

    With theta < 1 stops that are stiff against ``M / h^2`` ring, and may gain energy where they close and open. Returns as `iterate`.
    """
    status, n_iter, residual = iterate(t_new, n, s, calls, options, memory)
    if s.plan[0].damps != 0 and (status == NEWTON or _may_bend(options.h, s.plan[0], memory.work)):
        status, more, residual = _damp(t_new, n, status, residual, s, calls, options, memory)
        n_iter += more
    return status, n_iter, residual


@tiny
def _may_bend(h, p, work):
    """Whether forces change in the step by impulses that count among momenta and impulses; those that do not cannot bend by as much."""
    result = False
    for i in range(p.n_dofs):
        result |= h * abs(work[p.f + i] - work[p.f_old + i]) > _BENT * (work[p.kinetic + i] + work[p.impulse + i])
    return result


@kernel
def _damp(t_new, n, status, residual, s, calls, options, memory):
    """The step with theta = 1, if forces bend or it is not solved; a step that this leaves unsolved remains, with its status and residual.

    Forces bend where those within the step differ from the mean of those of its ends. Returns as `iterate`. Work: dv, size.
    """
    work, p, h, weight = memory.work, s.plan[0], options.h, options.weight
    # 1. forces within the step; linear ones are the mean
    is_solved, bends = status in (CONVERGED, INEXACT), False
    if is_solved:
        evaluate_forces(t_new - (1.0 - weight) * h, _with(options, weight, 0.0), s.parts, s.elements, p, p.dv, calls.functions, memory)
    for i in range(p.n_dofs if is_solved else 0):
        off = h * abs(work[p.dv + i] - weight * work[p.f + i] - (1.0 - weight) * work[p.f_old + i])
        bends |= off > _BENT * (work[p.kinetic + i] + work[p.impulse + i])
    if status != NEWTON and not bends:
        return status, 0, residual
    # 2. again with theta = 1
    n_active = -1 - n if n < 0 else n
    found, n_iter, error = iterate(t_new, n_active, s, calls, _with(options, options.at_q, 1.0), memory)
    if is_solved and found not in (CONVERGED, INEXACT):
        _, _, _ = iterate(t_new, n_active, s, calls, options, memory)
        return status, n_iter, residual
    return found, n_iter, error


@tiny
def _with(options, at, damped):
    """Options with forces at this point of the step, and damped or not."""
    return Options(options.h, options.gamma, options.q_star, options.tol, options.max_iter, options.a, options.weight, at, at,
                   options.paoli, options.sees_q_star, damped)  # fmt: skip


@tiny
def weight_of(weight, options, el):
    """Weight of the end of the step for an element, which is `weight` unless the step is damped."""
    return max(weight, options.damped) if el.mass != ABSENT or el.n_entries > 0 else weight


@kernel
def iterate(t_new, n, s, calls, options, memory):
    """Newton's iteration from the state in q_old and v_old; n (or -1 - n for a new set) constraints are active.

    Where it fails under theta = 1 along a path of problems, and if there is none its own failure. Returns (status, iterations, residual).
    """
    p, iwork = s.plan[0], memory.iwork
    # 1. a new active set: its pattern, once for all iterations
    if n < 0:
        n = -1 - n
        extract_pattern(p, n, s.W_row, s.W_column, iwork)
        transpose_pattern(p, n, iwork)
    # 2. from the velocities at the start
    _predict(options, p.v_old, s.parts, s.elements, p, memory)
    status, n_iter, residual = _iterate(t_new, n, 0.0, options.max_iter, s, calls, options, memory)
    # a path only where all forces are those of the end: other steps do not damp what they fail on, and would ring with it. The law of
    # multiple impacts needs the velocities before the impact as the first iterate
    is_damped = max(options.weight, options.damped) * options.at_q >= 1.0
    if status != NEWTON or not is_damped or p.impact_law != 0 or options.max_iter <= _SHORT:
        return status, n_iter, residual
    found, more, error = _follow(t_new, n, s, calls, options, memory)
    if found == CONVERGED:
        return found, n_iter + more, error
    _predict(options, p.v_old, s.parts, s.elements, p, memory)
    return _iterate(t_new, n, 0.0, options.max_iter, s, calls, options, memory)


@kernel
def _follow(t_new, n, s, calls, options, memory):
    """The solution at the end of a path of problems, whose balances are off by ``remaining`` times those of the start, from 1 to 0.

    Each is solved from the velocities of the one before. Returns (status, iterations, residual), NEWTON without a path.
    """
    p, work = s.plan[0], memory.work
    # 1. balances at the velocities of the start, without impulses
    _predict(options, p.v_old, s.parts, s.elements, p, memory)
    evaluate_forces(t_new - (1.0 - options.at_q) * options.h, options, s.parts, s.elements, p, p.f, calls.functions, memory)
    evaluate_masses(options.q_star, s.parts, s.elements, p, calls.functions, memory)
    _residual(options, s.parts, s.elements, s.relations, 0, p, memory)
    for i in range(p.n_dofs):
        work[p.started + i], work[p.near + i] = work[p.residual + i], work[p.v_old + i]
    # 2. the path: a nearer problem after a failure, a farther one after a success
    remaining, factor, n_iter, failures = 1.0, _FIRST_FACTOR, 0, 0
    for _ in range(_MOST_PROBLEMS):
        goal = remaining * factor if factor > _AT_ONCE else 0.0
        status, more, residual = _iterate(t_new, n, goal, _SHORT, s, calls, options, memory)
        n_iter += more
        if status == CONVERGED and goal == 0.0:
            return status, n_iter, residual
        if status == CONVERGED:
            remaining, factor, failures = goal, factor * math.sqrt(factor), 0
            keep_state(s.parts, s.elements, p.dv, p.near, memory)  # of q nothing is needed
        else:
            factor, failures = math.sqrt(factor), failures + 1
            if failures > _MOST_FAILURES:
                break
        _predict(options, p.near, s.parts, s.elements, p, memory)
    return NEWTON, n_iter, math.inf


@kernel
def _iterate(t_new, n, remaining, max_iter, s, calls, options, memory):
    """Newton's iteration from the iterate in mem for ``R = remaining R_0``, see `_follow`; as `iterate`."""
    functions, work, iwork = calls.functions, memory.work, memory.iwork
    parts, elements, relations, p = s.parts, s.elements, s.relations, s.plan[0]
    row, column = view(iwork, p.sub_row, n + 1), view(iwork, p.sub_column, iwork[p.sub_row + n])
    chosen, transpose = view(iwork, p.active, n), view(iwork, p.sub_place, iwork[p.sub_row + n])
    t, tol = t_new - (1.0 - options.at_q) * options.h, max(options.tol, _LEAST_TOL if remaining == 0.0 else _DIFFERENCES)
    status, n_iter, residual, solved, change = NEWTON, 0, math.inf, CONVERGED, math.inf
    which, may_bend, least, previous, waited, has_changed = ACTIVE, p.bends != 0 and n > 0, math.inf, math.inf, 0, False
    for n_iter in range(int(max_iter) + 1):
        # 1. forces, masses and relations at the iterate
        evaluate_forces(t, options, parts, elements, p, p.f, functions, memory)
        definite = evaluate_masses(options.q_star, parts, elements, p, functions, memory)
        if n > 0:
            # finite differences are kept once the residual falls slowly: new ones would only add their rounding
            is_slow = which == KEPT or residual > _FAST * previous
            which = KEPT if n_iter >= 2 and residual <= _DIFFERENCES and is_slow else ACTIVE
            evaluate_relations(t_new, options.q_star, options.paoli, which, options, relations, p, functions, memory)
            has_changed = _have_changed(relations, p, memory)
            if has_changed or p.constant == 0:
                iwork[p.isolver] = 0  # another matrix
            if options.sees_q_star != 0.0:
                _see_start(n, s.constraints, s.entries, p, memory)
        # 2. residual and verdict
        _residual(options, parts, elements, relations, n, p, memory)
        for i in range(p.n_dofs if remaining != 0.0 else 0):
            work[p.residual + i] -= remaining * work[p.started + i]
        previous = residual
        residual = _error(n, n_iter, change, has_changed, s, options, memory)
        least, waited = (residual, 0) if residual < 0.5 * least else (least, waited + 1)
        status = _verdict(residual, definite, solved, n_iter, tol)
        if status != NEWTON or n_iter == int(max_iter):
            break
        # 3. iteration matrix, with the curvature of H once plain iterations do not suffice
        bends = may_bend and (n_iter >= _STRAIGHT or (n_iter > 0 and residual > _FAR))
        if bends:  # a matrix that this makes singular is none to go on with
            bends = may_bend = invert_bent(t, t_new, which, s, options, functions, memory)
        if not bends and not invert(t, options, parts, elements, s.bodies, p, functions, memory):
            status = SINGULAR_STEP if _are_finite(parts, elements, s.bodies, work) else NON_FINITE
            break
        # 4. velocities without impulses
        inverses, shift = s.bent if bends else s.bodies, p.shift if bends else 0
        apply_inverses(inverses, p.residual, p.dv, p.scratch, memory)
        # 5. one-step problem of the active constraints
        if n > 0 and s.mixed.size > 0:
            _state_problem(n, 0, s, options, memory)
            solved = _solve_mixed(n, s, options, calls, memory)
        elif n > 0:
            if bends or iwork[p.isolver] == 0:
                assemble(s.plan, inverses, s.constraints, s.entries, s.inputs, s.couplings, chosen, (row, column, transpose), 1.0, shift,
                               work, iwork)  # fmt: skip
                iwork[p.isolver] = 0
            # the law of multiple impacts starts from the velocities before the impact, those of the first iterate
            if p.impact_law != 0 and n_iter == 0:
                solved = state_impact(p, n, p.W, row, column, s.constraints, s.entries, memory)
                if solved != CONVERGED:
                    status = solved
                    break
            _state_problem(n, shift, s, options, memory)
            unit = 1.0 if options.paoli != 0.0 else options.h  # lambda is an impulse, or a force
            solved, _, _ = solve_active(
                p, s.blocks, n, options.h, unit, calls.solver, s.constraints, s.inputs, calls.solver_options, memory
            )
            if bends:
                iwork[p.isolver] = 0  # W was not that of the operators
            if solved not in (CONVERGED, INEXACT) and bends:  # curvature may leave the problem without a solution
                may_bend, solved = False, CONVERGED
                continue
        # 6. correction; in a cycle every other one is halved, which breaks periods of two
        is_cycling = waited >= _PATIENCE and n_iter % 2 == 0
        change = _correct(0.5 if is_cycling else 1.0, options, parts, elements, inverses, p, memory)
    # the residual of an unsolved one-step problem counts for the step
    if solved != CONVERGED:
        residual = max(residual, work[p.info + 1])
    return INEXACT if status == NEWTON and n_iter > 0 and residual <= _NEARLY * calls.solver_options.inexact else status, n_iter, residual


@tiny
def _solve_mixed(n, s, options, calls, memory):
    """The problem of the n active constraints with the velocities, see `nsds.schemes.lagrangian.mixed`; returns its status."""
    unit = 1.0 if options.paoli != 0.0 else options.h
    return call_mixed(address_of_mixed(), (n, options.h, unit, s, calls.solver_options.box, memory))


@kernel
def _solve_with_velocities(n, h, unit, s, options, memory):
    """`nsds.schemes.lagrangian.mixed.solve` with the matrices of this iteration. Out: lambda and impulses in mem, touched bodies."""
    p = s.plan[0]
    mixed.refresh(s, s.mixed[0], memory)
    status, _, _ = mixed.solve(n, h, unit, s, s.mixed[0], options, memory)
    for a in range(n):
        accept(memory.work[p.z + a], unit, s.constraints[memory.iwork[p.active + a]], s.inputs, p.touched, memory)
    return status


_EMPTY = Tables(
    *(np.zeros(0, kind) for kind in (PART, ELEMENT, BODY, BODY, RELATION, CONSTRAINT, ENTRY, ENTRY, COUPLING, PLAN)), no_blocks(),
    np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, mixed.MIXED),
)  # fmt: skip
_BOX = types.NamedUniTuple(float64, len(BoxOptions._fields), BoxOptions)
_DOOR = int64(int64, float64, float64, typeof(_EMPTY), _BOX, MEMORY)
call_mixed = caller(_DOOR)
address_of_mixed = on_demand(_DOOR, _solve_with_velocities)  # few systems have so many rows


@tiny
def _have_changed(relations, p, memory):
    """Whether H, B or D of a relation with an active constraint differ from those of the last call, which are updated."""
    work = memory.work
    known, changed = p.known, False
    for k in range(relations.size):
        r = relations[k]
        n_H, n_B, n_D = r.m * r.n, 0 if r.g_function == ABSENT else r.m * r.n, 0 if r.D == ABSENT else r.m * r.m
        if is_active(r, memory.imem):
            changed |= _note(n_H, r.H, known, work)
            changed |= _note(n_B, r.B, known + n_H, work)
            changed |= _note(n_D, r.D, known + n_H + n_B, work)
        known += n_H + n_B + n_D
    return changed


@tiny
def _note(n, first, known, work):
    """Copy n entries; True if some differ."""
    changed = False
    for i in range(n):
        changed |= work[known + i] != work[first + i]
        work[known + i] = work[first + i]
    return changed


@inlined
def _see_start(n, constraints, entries, p, memory):
    """``H v_k + rate`` of the active constraints with restitution into ydot, from which `rebound` takes it."""
    for a in range(n):
        c = constraints[memory.iwork[p.active + a]]
        if c.e != ABSENT:
            memory.mem[c.ydot] = old_velocity(c, entries, p, memory.work)


@inlined
def _verdict(residual, definite, solved, n_iter, tol):
    """Status of an iterate; NEWTON: go on."""
    if not residual < math.inf:
        return NON_FINITE
    if not definite:
        return NOT_DEFINITE
    if solved not in (CONVERGED, INEXACT):
        return solved
    return solved if n_iter > 0 and residual <= tol else NEWTON


@inlined
def _predict(options, from_v, parts, elements, p, memory):
    """Velocities in work[from_v:], ``q = q_k + h (a v + (1-a) v_k)``, ``p = 0``: where the iteration starts."""
    mem, work, h = memory.mem, memory.work, options.h
    for k in range(elements.size):
        el = elements[k]
        part, at = parts[el.part], weight_of(options.a, options, el)
        q = part.q + el.e * part.stride
        for i in range(part.n):
            v, v_old = work[from_v + el.dof + i], work[p.v_old + el.dof + i]
            mem[q + i] = work[p.q_old + el.dof + i] + h * (v_old + at * (v - v_old))
            mem[q + part.n + i] = v
            mem[q + 2 * part.n + i] = 0.0


@kernel
def evaluate_forces(t, options, parts, elements, p, out, functions, memory):
    """F of all elements at q_at and v_at."""
    for k in range(elements.size):
        _force_arguments(options, parts[elements[k].part], elements[k], p, memory)
        force(t, parts[elements[k].part], elements[k].e, p.at_q, p.at_v, p.spare, functions, memory, out + elements[k].dof,
              p.size + elements[k].dof)  # fmt: skip


@tiny
def _force_arguments(options, part, el, p, memory):
    """q_at and v_at of one element."""
    work = memory.work
    at_q, at_v, q = options.at_q, options.at_v, part.q + el.e * part.stride
    for i in range(part.n):
        work[p.at_q + i] = at_q * memory.mem[q + i] + (1.0 - at_q) * work[p.q_old + el.dof + i]
        work[p.at_v + i] = at_v * memory.mem[q + part.n + i] + (1.0 - at_v) * work[p.v_old + el.dof + i]


@kernel
def evaluate_masses(q_star, parts, elements, p, functions, memory):
    """M(q*) of the elements whose matrices change; False where one is not positive definite."""
    work = memory.work
    definite = True
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        if el.mass != ABSENT:
            q = part.q + el.e * part.stride
            for i in range(part.n):
                work[p.at_q + i] = q_star * memory.mem[q + i] + (1.0 - q_star) * work[p.q_old + el.dof + i]
            mass(part, el.e, p.at_q, functions, memory, el.mass)
            definite &= part.mass_function == ABSENT or is_positive_definite(part.n, el.mass, p.spare, work)
    return definite


@inlined
def _residual(options, parts, elements, relations, n, p, memory):
    """``R = h F - M (v - v_k)``, with ``h g - B z`` of fully nonlinear relations; scales of R in p.kinetic and p.impulse.

    The scales are the momentum of the element's kinetic energy, all of it in one coordinate, and the impulses of forces.
    """
    mem, work, h = memory.mem, memory.work, options.h
    for k in range(elements.size):
        el = elements[k]
        part, weight = parts[el.part], weight_of(options.weight, options, el)
        q, v, dof = part.q + el.e * part.stride, part.q + el.e * part.stride + part.n, el.dof
        # 1. velocity change, and the kinetic energy by which it is judged, with the rounding of q
        energy = 0.0
        for i in range(part.n):
            rounding = _ROUNDING * mem[q + i] / h
            size = mem[v + i] ** 2 + work[p.v_old + dof + i] ** 2 + rounding * rounding
            energy += work[el.diagonal + i * el.diagonal_step] * size
            work[p.at_v + i] = mem[v + i] - work[p.v_old + dof + i]
            work[p.residual + dof + i] = 0.0
        # 2. minus M times it
        if el.mass == ABSENT:
            subtract_product(
                part.M_kind, part.n, part.M_nnz, mem, memory.imem, part.M + el.e * part.stride, 1.0, work, p.at_v, p.residual + dof
            )
        else:
            subtract_product(DENSE, part.n, 0, work, memory.imem, el.mass, 1.0, work, p.at_v, p.residual + dof)
        # 3. impulses of forces, and scales
        for i in range(part.n):
            work[p.residual + dof + i] += h * (weight * work[p.f + dof + i] + (1.0 - weight) * work[p.f_old + dof + i])
            work[p.kinetic + dof + i] = math.sqrt(abs(work[el.diagonal + i * el.diagonal_step] * energy))  # M may not be definite
            work[p.impulse + dof + i] = h * work[p.size + dof + i]
    # 4. relations whose input depends nonlinearly on the multiplier
    for k in range(relations.size if n > 0 else 0):
        if relations[k].g_function != ABSENT:
            _add_nonlinear_input(h, relations[k], p, work)


@kernel
def _add_nonlinear_input(h, r, p, work):
    """``R += h g - B z`` of a fully nonlinear relation."""
    for j in range(r.n):
        s = h * work[r.g + j]
        for i in range(r.m):
            s -= work[r.B + j * r.m + i] * h * work[r.lam + i]
        dof = number_of(r, j)
        work[p.residual + dof] += s
        work[p.impulse + dof] += abs(h * work[r.g + j])


@inlined
def _error(n, n_iter, change, has_changed, s, options, memory):
    """Largest of ``R + B z``, and of the difference of ydot (or y) from the w of the solver, relative to the sums of their terms.

    Before the first iteration only NaN and infinity count. If ``h^2 K`` is large against M, the rounding of q keeps R above the
    tolerance: it is ignored if the last iteration changed v by rounding only.
    """
    work, iwork = memory.work, memory.iwork
    constraints, inputs, p, error, zero = s.constraints, s.inputs, s.plan[0], 0.0, 0.0
    # 1. balance of momentum with the impulses of the active constraints
    for i in range(p.n_dofs):
        work[p.dv + i] = work[p.residual + i]
    for a in range(n if n_iter > 0 else 0):
        c = constraints[iwork[p.active + a]]
        for k in range(c.input, c.input_end):
            push = work[inputs[k].coefficient] * work[p.z + a]
            work[p.dv + inputs[k].dof] += push
            work[p.impulse + inputs[k].dof] += abs(push)
    for i in range(p.n_dofs):
        if n_iter > 0 and change > _LEAST_CHANGE and work[p.dv + i] != 0.0:
            error = max(error, abs(work[p.dv + i]) / max(work[p.kinetic + i] + work[p.impulse + i], UNDERFLOW))
        zero += 0.0 * work[p.dv + i]
    # 2. NaN and infinity anywhere, added as 0 times the value
    for a in range(n):
        c = constraints[iwork[p.active + a]]
        zero += (0.0 if c.h == ABSENT else 0.0 * work[c.h]) + (0.0 if c.rate == ABSENT else 0.0 * work[c.rate])
        if has_changed:
            zero += _not_finite(c, s.entries, inputs, s.couplings, work)
    # 3. constraints
    for a in range(n if n_iter > 0 else 0):
        off = _constraint_error(a, constraints[iwork[p.active + a]], options, s.elements, s.entries, s.couplings, p, memory)
        error = max(error, off)
        zero += 0.0 * off
    return error + zero


@tiny
def _not_finite(c, entries, inputs, couplings, work):
    """0 where a constraint's operators are finite, NaN where not."""
    zero = 0.0
    for k in range(c.entry, c.entry_end):
        zero += 0.0 * work[entries[k].coefficient]
    for k in range(c.input, c.input_end):
        zero += 0.0 * work[inputs[k].coefficient]
    for k in range(c.coupling, c.coupling_end):
        zero += 0.0 * work[couplings[k].coefficient]
    return zero


@kernel
def _constraint_error(a, c, options, elements, entries, couplings, p, memory):
    """Error of the a-th active constraint: its velocity (or position, as a velocity) minus w, relative to the sum of terms."""
    work = memory.work
    at_position = c.level == POSITION
    size = abs(work[p.q + a])
    s = _position_rate(c, options, entries, p, memory) if at_position else velocity(c, entries, memory)[0]
    # 1. sum of the terms: velocities, their rounding from q, and those by impulses
    for k in range(c.entry, c.entry_end):
        el, dof = elements[entries[k].body], entries[k].dof
        v = abs(memory.mem[entries[k].q + entries[k].n]) + abs(work[p.v_old + dof]) + _ROUNDING * abs(memory.mem[entries[k].q]) / options.h
        v += work[p.impulse + dof] / work[el.diagonal + (dof - el.dof) * el.diagonal_step]
        size += abs(work[entries[k].coefficient]) * v
    # 2. compliance: D z of active partners
    for k in range(c.coupling, c.coupling_end):
        partner = memory.iwork[p.local + couplings[k].constraint]
        if partner != ABSENT and (not at_position or c.h == ABSENT):
            s += work[couplings[k].coefficient] * work[p.z + partner]
    # 3. restitution
    if not at_position:
        s += rebound(c, memory)
    error = abs(s - work[p.w + a])
    return error / max(size, UNDERFLOW)


@tiny
def _position_rate(c, options, entries, p, memory):
    """Position-level quantity of the law as a velocity: ``y / (h a)``, or ``(1 + e) y / h`` at the point of (10.45)."""
    work = memory.work
    e = restitution(c, work) if options.paoli != 0.0 else 0.0
    y = 0.0 if c.base == ABSENT else work[c.base]
    if c.h != ABSENT:
        y = work[c.h]
    else:
        for k in range(c.entry, c.entry_end):
            dof = entries[k].dof
            before = work[p.q_old + dof] - options.h * work[p.v_old + dof]
            y += work[entries[k].coefficient] * (memory.mem[entries[k].q] + e * before) / (1.0 + e)
    return (1.0 + e) * y / (options.h * options.a)


@inlined
def _iteration_matrix(t, factor_q, factor_v, options, part, el, M_hat, p, functions, memory):
    """``M_hat`` of an element whose mass or forces change."""
    for i in range(part.n * part.n):
        memory.work[M_hat + i] = memory.work[el.mass + i]
    if factor_q != 0.0 or factor_v != 0.0:
        _force_arguments(options, part, el, p, memory)
        add_tangents(t, part, el.e, p.at_q, p.at_v, p.spare, factor_q, factor_v, functions, memory, M_hat)


@tiny
def _factors(options):
    """Factors of the derivatives of forces by v and by q in an M_hat that changes."""
    a, weight = max(options.a, options.damped), max(options.weight, options.damped)
    return options.h * weight * options.at_v, options.h * weight * options.at_q * options.h * a


@kernel
def invert(t, options, parts, elements, bodies, p, functions, memory):
    """``M_hat^-1`` of the elements whose matrices change; False where one is singular."""
    factor_v, factor_q = _factors(options)
    regular = True
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        if el.mass != ABSENT:
            _iteration_matrix(t, factor_q, factor_v, options, part, el, bodies[k].data, p, functions, memory)
            regular &= invert_dense(part.n, bodies[k].data, p.rhs, memory, p.pivots)
        elif el.n_entries > 0:
            regular &= _factorise_sparse(t, factor_q, factor_v, options, part, el, bodies[k], p, functions, memory)
    return regular


@kernel
def _factorise_sparse(t, factor_q, factor_v, options, part, el, body, p, functions, memory):
    """A sparse ``M_hat`` and its factors; False where it is singular."""
    work, iwork, values = memory.work, memory.iwork, body.data
    # 1. M
    for k in range(el.n_entries):
        work[values + k] = 0.0
    n_mass, mass = iwork[el.mass_map], part.M + el.e * part.stride
    for k in range(n_mass):
        work[values + iwork[el.mass_map + 1 + n_mass + k]] = memory.mem[mass + iwork[el.mass_map + 1 + k]]
    # 2. derivatives of the force
    if factor_q != 0.0 or factor_v != 0.0:
        _force_arguments(options, part, el, p, memory)
        compressed.add_compressed_tangents(t, part, el, values, p.at_q, p.at_v, p.spare, factor_q, factor_v, functions, memory)
    return sparse_lu.factorise(values, values + el.n_entries, body.index, work, iwork) == 0


@kernel
def invert_bent(t, t_new, which, s, options, functions, memory):
    """``(M_hat - d(H^T lambda)/dv)^-1`` of the elements that change, and the derivative of ydot by v; False at a singular one."""
    parts, elements, bent, relations, p = s.parts, s.elements, s.bent, s.relations, s.plan[0]
    # 1. M_hat of each such element
    regular = True
    factor_v, factor_q = _factors(options)
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        if el.mass != ABSENT:
            _iteration_matrix(t, factor_q, factor_v, options, part, el, bent[k].data, p, functions, memory)
        elif el.stiff != ABSENT:
            for i in range(part.n * part.n):
                memory.work[bent[k].data + i] = memory.work[el.stiff + i]
        elif el.n_entries > 0:  # without the curvature, as large constant ones
            regular &= _factorise_sparse(t, factor_q, factor_v, options, part, el, bent[k], p, functions, memory)
    # 2. minus the curvature of each relation on it
    for k in range(relations.size):
        bend(t_new, which, options, relations[k], elements, bent, p, functions, memory)
    # 3. invert
    for k in range(elements.size):
        if elements[k].mass != ABSENT or elements[k].stiff != ABSENT:
            regular &= invert_dense(parts[elements[k].part].n, bent[k].data, p.rhs, memory, p.pivots)
    return regular


@kernel
def bend(t, which, options, r, elements, bent, p, functions, memory):
    """Curvature terms of an iteration, by the change of H at the point of evaluation, ``q = q^a moved by reach dv``.

    The derivative ``H + reach d/ds H(t + s, q + s v)`` of ydot, p.shift behind H; and ``reach d(H^T lambda)/dq`` subtracted from M_hat of
    each of its bodies, without their coupling. Differences are one-sided: they affect the rate of convergence of the iteration, not
    its limit.
    """
    mem, work = memory.mem, memory.work
    m, n, reach = r.m, r.n, _reach(r, options, work)
    # 1. without curvature the derivative of ydot is H
    changes = r.h_function != ABSENT or r.H_function != ABSENT
    for i in range(m * n if changes else 0):
        work[r.H + p.shift + i] = work[r.H + i]
    is_kept = which == KEPT and r.H_function == ABSENT  # then H does not change
    if not changes or r.g_function != ABSENT or is_kept or reach == 0.0 or not is_active(r, memory.imem):
        return
    # 2. derivative of ydot along the motion, by one difference in its direction
    if r.level != POSITION:
        s = reach * _SMALL
        for j in range(n):
            work[r.x + j] += s * mem[coordinate(r, j) + width(r, j)]
        derivative(t + s, r, r.h_function, r.H_function, m, r.x, n, p.H_moved, p.spare, functions, memory)
        for j in range(n):
            work[r.x + j] -= s * mem[coordinate(r, j) + width(r, j)]
        for i in range(m * n):
            work[r.H + p.shift + i] += (work[p.H_moved + i] - work[r.H + i]) / _SMALL
    # 3. d(H^T lambda)/dq, column by column, of bodies that have a matrix of their own
    unit = options.h if r.level == POSITION and options.paoli == 0.0 else 1.0
    length = 0.0
    for j in range(n):
        length = max(length, abs(work[r.x + j]))
    for j in range(n):
        body = r.body_first if j < r.n_first else r.body_second
        if elements[body].mass == ABSENT and elements[body].stiff == ABSENT:
            continue
        x_j = work[r.x + j]
        work[r.x + j] = x_j + (length if length > 0.0 else 1.0) * _MOVE
        scale = reach * unit / (work[r.x + j] - x_j)
        derivative(t, r, r.h_function, r.H_function, m, r.x, n, p.H_moved, p.spare, functions, memory)
        work[r.x + j] = x_j
        first, end = (0, r.n_first) if j < r.n_first else (r.n_first, n)
        for k in range(first, end):
            s = 0.0
            for i in range(m):
                s += mem[r.multiplier + i] * (work[p.H_moved + i * n + k] - work[r.H + i * n + k])
            work[bent[body].data + (k - first) * (end - first) + j - first] -= scale * s


@tiny
def _reach(r, options, work):
    """Displacement of the point of evaluation of a relation by a unit of v_{k+1}."""
    if options.paoli != 0.0:
        return options.h * options.a / (1.0 + restitution(r, work))
    return options.h * max(options.a, options.damped) * (1.0 if r.level == POSITION else options.q_star)


@kernel
def _are_finite(parts, elements, bodies, work):
    """False where a Jacobian has put NaN or infinity into an iteration matrix."""
    zero = 0.0
    for k in range(elements.size):
        if elements[k].mass != ABSENT:
            n = parts[elements[k].part].n
            for i in range(n * n):
                zero += 0.0 * work[bodies[k].data + i]
        for i in range(elements[k].n_entries):
            zero += 0.0 * work[bodies[k].data + i]
    return zero == 0.0


@tiny
def old_velocity(c, entries, p, work):
    """``H v_k + rate`` with the operators that were evaluated last."""
    s = 0.0 if c.rate == ABSENT else work[c.rate]
    for k in range(c.entry, c.entry_end):
        s += work[entries[k].coefficient] * work[p.v_old + entries[k].dof]
    return s


@tiny
def add_pushed(out, parts, elements, bodies, p, memory):
    """``out += M_hat^-1 p`` for the bodies that contacts have touched, by degree of freedom."""
    work, iwork = memory.work, memory.iwork
    for k in range(elements.size):
        if iwork[p.touched + k] != 0:
            iwork[p.touched + k] = 0
            g, push = bodies[k], parts[elements[k].part].q + elements[k].e * parts[elements[k].part].stride + 2 * bodies[k].n
            for i in range(g.n):
                work[p.rhs + i] = memory.mem[push + i]
            apply_inverse(g.kind, g.n, g.n_lower, g.n_upper, g.data, g.index, work, iwork, p.rhs, p.solution, p.scratch)
            for i in range(g.n):
                work[out + g.dof + i] += work[p.solution + i]


@inlined
def _state_problem(n, shift, s, options, memory):
    """Vector q of the one-step problem; H, or the derivative of ydot by v, is at offset ``shift`` from the coefficients."""
    work = memory.work
    entries, inputs, couplings, p, h, most = s.entries, s.inputs, s.couplings, s.plan[0], options.h, 0.0
    # 1. each active constraint at v^a: velocity, or position in units of one
    for a in range(n):
        c = s.constraints[memory.iwork[p.active + a]]
        w, size = velocity(c, entries, memory)
        if c.level == POSITION:
            size += lengths(c, entries, memory) / h
            w = _position_rate(c, options, entries, p, memory)
            # at position level the multiplier of the last iterate is a force, whose compliance is subtracted
            for k in range(c.coupling, c.coupling_end):
                if c.h != ABSENT:
                    w -= work[couplings[k].coefficient] * h * memory.mem[s.constraints[couplings[k].constraint].lam]
        else:
            w += rebound(c, memory)
        # 2. plus its change by the free correction dv
        for k in range(c.entry, c.entry_end):
            term = work[entries[k].coefficient + shift] * work[p.dv + entries[k].dof]
            w += term
            size += abs(term)
        work[p.q + a] = w
        most = max(most, size)
        # 3. impulses are summed up again by the solver
        for k in range(c.input, c.input_end):
            memory.mem[inputs[k].q + 2 * inputs[k].n] = 0.0
    # 4. rounding of the largest sum: velocities below it are 0
    work[p.rounding] = rounding_of(most)


@inlined
def _correct(share, options, parts, elements, bodies, p, memory):
    """``v <- v + share (dv + M_hat^-1 B z)`` and ``q = q_k + h (a v + (1-a) v_k)``.

    Returns the largest change of an element's v relative to v and q / h, each by the norm of its kinetic energy.
    """
    # 1. correction by impulses
    mem, work = memory.mem, memory.work
    h, largest = options.h, 0.0
    add_pushed(p.dv, parts, elements, bodies, p, memory)
    # 2. each element: v, q, and the norm of the change
    for k in range(elements.size):
        el = elements[k]
        part, at = parts[el.part], weight_of(options.a, options, el)
        q, v, n = part.q + el.e * part.stride, part.q + el.e * part.stride + part.n, part.n
        change, size = 0.0, 0.0
        for i in range(n):
            q_old, v_old, dv = work[p.q_old + el.dof + i], work[p.v_old + el.dof + i], share * work[p.dv + el.dof + i]
            mem[v + i] += dv
            mem[q + i] = q_old + h * (at * mem[v + i] + (1.0 - at) * v_old)
            diagonal = work[el.diagonal + i * el.diagonal_step]
            change += diagonal * dv * dv
            size += diagonal * (mem[v + i] ** 2 + v_old * v_old + (mem[q + i] ** 2 + q_old * q_old) / (h * h))
        if change > 0.0:
            largest = max(largest, math.sqrt(change / size))
    return largest
