"""One step of a first-order system by Newton's method ([Notes], 9.3 and 9.4): nonlinear systems and relations, operators of time.

Each iteration solves the system linearised at ``(x^a, lambda^a)``, with ``A = df/dx``, ``C = dh/dx``, ``D = dh/dlambda``, ``K = dg/dx``,
``B = dg/dlambda`` and the weights ``input`` of r in the equation of x and ``output`` of x_{k+1} in the relation:

    G = (M/h - theta A - input output K)^-1                                                              (9.27)
    R = theta f(x^a) + (1-theta) f_k - M (x^a - x_k) / h + input g + (1-input) r_k                       (9.26)
    x_p - x^a = G (R - input B lambda^a)                                                                 (9.29)
    w = (input output C G B + D) lambda + h(x^a, lambda^a) + output C (x_p - x^a) - D lambda^a           (9.35)
    x^{a+1} = x_p + input G B lambda^{a+1}                                                               (9.30)

until R and ``y - h(x, lambda)`` vanish; where that fails along a path of problems, from one that the start solves (`_follow`). Bodies
joined by a relation with K are solved for together.
"""

import math
import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import inlined, kernel, tiny
from nsds.maths import patterns, sparse_lu
from nsds.model.control import has_controls
from nsds.model.layout import ABSENT, DENSE, table
from nsds.model.records import STEP
from nsds.schemes.compressed import MANY, Family, add_absolute_columns, found_patterns, stated_pattern, store_groups
from nsds.schemes.first_order import newton_mixed
from nsds.schemes.first_order.functions import (  # noqa: F401
    blame,
    compressed_jacobian,
    evaluate_bounds,
    rate,
    rate_jacobian,
    relation_jacobians,
    relation_values,
)
from nsds.schemes.first_order.linear import inverse_of_part
from nsds.schemes.first_order.states import elements_of, gather
from nsds.schemes.linear_algebra import PLANNED, add_absolute_product, apply_inverses, dense, invert_in_place, sparse, subtract_product
from nsds.schemes.memory import Prepared, require_affordable
from nsds.schemes.problem.assemble import assemble
from nsds.schemes.problem.box import outputs_of_cones, rounding_of, solve
from nsds.schemes.problem.branches import COLUMNS, SMALL, note_several, place_branches, solve_near
from nsds.schemes.problem.mixed import MIXED, solve_mixed
from nsds.schemes.problem.rows import coordinate, number_of, width
from nsds.schemes.problem.tables import BODY, as_they_are, ordered, place_problem, place_vectors
from nsds.solvers.table import find
from nsds.status import CONVERGED, INEXACT, NEWTON, NON_FINITE, SINGULAR_STEP

_LEAST_TOL = 2.0**-47  # of residuals relative to the terms that cancel: smaller ones are rounding
_NEARLY = 0.01  # a step that does not converge is INEXACT (not NEWTON) if its residual is below this fraction of the solver's INEXACT limit
_DENSE_COPIES = 3  # of a matrix that changes: A, M / h, and the inverse
_SPARSE_A = (
    "state which states act on which rates as jac_sparsity of nsds.first_order; "
    "nsds.first_order_linear keeps a sparse A where relations are linear"
)
_FAMILY = Family("first_order", ("f",), ("x",), "rate of state")
_NOTHING, _ENOUGH = 1e-90, 0.1  # residuals up to this are 0: roots of powers may not be among the floats; part of it, to end a path
_DIFFERENCES = 1e-6  # residual that finite differences may leave
# Path of problems, where Newton's iteration fails: part of the residual that the first one keeps, below which all of it goes at once;
# numbers of problems, of failures in turn, and of iterations in each.
_FIRST_FACTOR, _AT_ONCE, _MOST_PROBLEMS, _MOST_FAILURES, _SHORT = 0.5, 2.0**-6, 1000, 64, 12
_PROGRESS = 0.1  # by which an iteration of Newton's at least reduces a residual that is not rounding
# One row per group of bodies that are solved for together: offset of M/h if its matrix changes, else ABSENT. Of a single element with
# jac_sparsity that is of n_entries by compressed rows, as its A is; groups: integers of the columns of A, see `nsds.schemes.compressed`.
GROUP = table("mass", "n_entries", "A", "groups")
# N states of all elements.
PLAN = table(
    # one-step problem and solver; scratch of one group
    "W", "q", "z", "w", "lower", "upper", "info", "solver", "n_solver", "rhs", "solution", "scratch", "dofs", "isolver", "n_isolver",
    # rounding of q; x: scratch; x_old, r_old (N): at the start; f, f_old (N): right-hand sides of iterate and start; residual R (N);
    # size (N): sizes of its terms; dx (N): correction
    "rounding", "x", "x_old", "r_old", "f", "f_old", "residual", "size", "dx", "n_dofs", "spare", "pivots",
    # path, where Newton's iteration fails: residuals of its start (N, m); x (N), and lambda and y (2 m), of its last solution and of the
    # start of the step
    "R_start", "y_start", "x_near", "near", "started",
    # flags: controls, bounds by functions of time; number of multipliers of cones; at_once: one unknown is solved without a call
    "controlled", "driven", "n_cone", "at_once",
    *COLUMNS,
)  # fmt: skip


class Options(NamedTuple):
    """Parameters of the step; by default nothing is implicit."""

    h: float
    theta: float = 0.0
    input_weight: float = 0.0  # of r in the equation of x
    output_weight: float = 0.0  # of x_{k+1} in the relation
    midpoint: float = 0.0  # not 0: the mid-point rule
    tol: float = 0.0
    max_iter: float = 0.0


class Tables(NamedTuple):
    """Tables that a step reads; degrees of freedom are numbered by groups, constraints in the order of the one-step problem."""

    parts: np.ndarray  # PART, one row a system
    elements: np.ndarray  # ELEMENT, one row an element of a system
    bodies: np.ndarray  # BODY, one row a group of elements that are solved for together
    groups: np.ndarray  # GROUP, one row a body
    relations: np.ndarray  # RELATION, one row an element of an interaction
    constraints: np.ndarray  # CONSTRAINT
    entries: np.ndarray  # ENTRY, of C
    inputs: np.ndarray  # ENTRY, of B
    couplings: np.ndarray  # COUPLING
    plan: np.ndarray  # PLAN, one row
    every: np.ndarray  # 0, 1, ...: the list of all constraints
    W_row: np.ndarray  # pattern of W, by rows
    W_column: np.ndarray
    W_transpose: np.ndarray  # where w_ji lies
    mixed: np.ndarray  # MIXED, one row where W is not formed
    sources: np.ndarray  # SOURCES of `nsds.schemes.first_order.newton_mixed`, too


def prepare(records, layout, options, method, work, iwork, may_be_mixed=False):
    """Number the degrees of freedom by groups, invert constant matrices, and reserve the work memory.

    may_be_mixed: `nsds.schemes.first_order.newton_mixed`, where that costs less.
    """
    parts, relations = layout.parts, layout.relations
    elements, bodies, groups, states = _groups(records, layout, options.h, options.theta, work, iwork)
    entries, inputs = (_renumbered(rows, parts, elements) for rows in (layout.entries, layout.inputs))
    for side in ("first", "second"):
        relations[f"dof_{side}"] += _shift(parts, elements, relations[f"dof_{side}"])
    rows, weight = (layout.constraints, entries, inputs, layout.couplings), options.input_weight * options.output_weight
    chosen = newton_mixed.planned(rows, bodies, states, weight, method, work.first()) if may_be_mixed else None
    unknowns = ordered(*rows, bodies["kind"]) if chosen is None else as_they_are(layout.constraints, layout.couplings)
    constraints, order = unknowns.constraints, unknowns.order
    plan = _plan(layout, bodies, unknowns, method, work, iwork, chosen is None)
    mixed = (np.zeros(0, MIXED), np.zeros(0, newton_mixed.SOURCES)) if chosen is None else newton_mixed.place(chosen, plan, work, iwork)
    plan["controlled"], plan["driven"] = has_controls(records), (relations["bounds_function"] != ABSENT).any()
    plan["n_cone"] = (constraints["y"] == ABSENT).sum()
    n, p, work, iwork = constraints.size, plan[0], work.array(), iwork.array(np.int64)
    work[:, p["lower"] : p["lower"] + n], work[:, p["upper"] : p["upper"] + n] = layout.lower[:, order], layout.upper[:, order]
    tables = Tables(parts, elements, bodies, groups, relations, constraints, entries, inputs, unknowns.couplings, plan, unknowns.every,
                    unknowns.row, unknowns.column, unknowns.transpose, *mixed)  # fmt: skip
    return Prepared(tables, layout.functions, options, work, iwork, sys.modules[__name__], layout)


def _groups(records, layout, h, theta, work, iwork):
    """(elements, bodies, groups, states): tables, of groups of bodies with one matrix each; (row, column) of that, None if not by rows."""
    parts, relations = layout.parts, layout.relations
    # 1. elements, and groups of elements joined by relations with K
    elements = elements_of(parts)
    n = parts["n"][elements["part"]]
    joining = relations[relations["K"] != ABSENT]
    ends = [np.searchsorted(elements["dof"], joining[f"dof_{side}"], side="right") - 1 for side in ("first", "second")]
    label = _components(elements.size, *ends)
    # 2. groups whose matrix changes
    changes = (parts["f_function"] != ABSENT) | (parts["A_function"] != ABSENT)
    varying = np.zeros(elements.size, bool)
    varying[label[changes[elements["part"]]]] = True
    varying[label[ends[0]]] = True
    # 3. numbering by groups
    order = np.argsort(label, kind="stable")
    elements["body"] = label
    elements["dof"][order] = np.cumsum(n[order]) - n[order]
    bodies, groups = np.zeros(label.max() + 1, BODY), np.zeros(label.max() + 1, GROUP)
    bodies["n"] = np.bincount(label, n)
    bodies["dof"] = np.cumsum(bodies["n"]) - bodies["n"]
    groups["mass"] = ABSENT
    states = [None] * bodies.size
    alone = np.bincount(label) == 1
    # 4. single elements: a constant matrix is inverted now, a variable one has its parts stored
    for a, (name, part) in enumerate(zip(layout.part_names, parts, strict=True)):
        mine = elements[elements["part"] == a]
        fields, size = records[name].reshape(records.size, -1), int(part["n"]) ** 2
        changing = varying[mine["body"]]
        if not changing.all():
            _invert_constant(records[name], part, name, h, theta, bodies, mine[~changing], work, iwork)
        pattern = _pattern(records, part, name, layout) if (changing & alone[mine["body"]]).all() else None
        if pattern is not None:
            *places, of_entries = _place_sparse(records[name], part, pattern, h, work, iwork)
            for rows, columns in zip((bodies, groups), places, strict=True):
                for column, values in columns.items():
                    rows[column][mine["body"]] = values
            for body in mine["body"]:
                states[body] = of_entries
            continue
        if changing.any():
            room = int(part["count"]) * size
            require_affordable(f"part '{name}': the iteration matrix", _DENSE_COPIES * room, _SPARSE_A)
            part["A_work"] = work.store(dense(fields, part, "A").reshape(records.size, -1)) if part["A"] != ABSENT else work.reserve(room)
        mine = mine[changing & alone[mine["body"]]]
        if mine.size:
            each = size * np.arange(mine.size)
            bodies["kind"][mine["body"]], bodies["data"][mine["body"]] = DENSE, work.reserve(size * mine.size) + each
            groups["mass"][mine["body"]] = work.store(dense(fields, part, "M")[:, mine["e"]] / h) + each
    # 5. groups of several elements: dense
    for body in np.flatnonzero(~alone):
        bodies[body]["kind"], bodies[body]["data"] = DENSE, work.reserve(int(bodies[body]["n"]) ** 2)
        groups[body]["mass"] = work.store(_mass(records, layout, elements[label == body], bodies[body], h))
    return elements, bodies, groups, states


def _pattern(records, part, name, layout):
    """Pattern of the derivative of f that a part states, or that is found where there are many states; None of a dense one."""
    if part["f_function"] == ABSENT:
        return None
    if "jac_sparsity" in records[name].dtype.names:
        return stated_pattern(records, part, name, layout.functions, _FAMILY)
    if part["n"] <= MANY or part["jac_f_function"] != ABSENT:
        return None
    found = found_patterns(records, part, name, layout.functions, _FAMILY)
    return None if found is None else found[0]


def _place_sparse(fields, part, pattern, h, work, iwork):
    """Room for ``M/h - theta A``, M/h and A of all elements of a part, by compressed rows, and for sparse factors of one plan.

    Returns columns of their rows of BODY, and of GROUP, and (row, column) of the entries.
    """
    from scipy.sparse import csr_array, eye_array

    # 1. entries: those of A and M in any member, and the diagonal
    masses = [[csr_array(sparse(element, part, "M")) for element in member] for member in fields.reshape(fields.shape[0], -1)]
    rows = csr_array(abs(pattern) + eye_array(pattern.shape[0]) + sum(abs(M) for member in masses for M in member))
    rows.sort_indices()
    planned, (n_members, count) = sparse_lu.plan(rows), (len(masses), len(masses[0]))
    # 2. M/h at their places
    values, each = np.zeros((n_members, count, planned.nnz)), np.arange(count)
    for where in np.ndindex(n_members, count):
        M = masses[where[0]][where[1]].tocoo()
        values[where][patterns.places(planned.row, planned.column, *M.coords)] = M.data / h
    # 3. room for matrices with factors behind them; kernels change the index, so each element has its own
    size, index = planned.nnz + planned.size, np.tile(planned.index, count)
    data, mass, A = work.reserve(size * count), work.store(values.reshape(n_members, -1)), work.reserve(planned.nnz * count)
    at_index = iwork.store(np.broadcast_to(index, (n_members, index.size)))
    body = {"kind": PLANNED, "n_lower": planned.nnz, "data": data + size * each, "index": at_index + planned.index.size * each}
    places = {"mass": mass + planned.nnz * each, "A": A + planned.nnz * each}
    return body, places | {"n_entries": planned.nnz, "groups": store_groups(pattern, rows, iwork)}, (planned.row, planned.column)


def _components(n, first, second):
    """Labels of the groups that joined pairs make, counted in the order of their first element."""
    if (first == second).all():
        return np.arange(n)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    label = connected_components(coo_array((np.ones(first.size), (first, second)), shape=(n, n)), directed=False)[1]
    return np.unique(np.unique(label, return_index=True)[1][label], return_inverse=True)[1]


def _invert_constant(records, part, name, h, theta, bodies, mine, work, iwork):
    """Inverses of a part whose matrices do not change, for the bodies that its elements are."""
    kind, data, index, n_lower, n_upper = inverse_of_part(records, part, name, h, theta)
    data_at, index_at = work.store(data), iwork.store(index)
    rows = np.zeros(mine.size, BODY)
    rows["kind"], rows["n"], rows["n_lower"], rows["n_upper"] = kind, part["n"], n_lower, n_upper
    rows["data"], rows["index"] = data_at + data.shape[-1] * mine["e"], index_at + index.shape[-1] * mine["e"]
    rows["dof"] = mine["dof"]
    bodies[mine["body"]] = rows


def _mass(records, layout, mine, body, h):
    """``M / h`` of bodies that are solved for together, as a dense matrix (members, n, n)."""
    n = body["n"]
    mass = np.zeros((records.size, n, n))
    for element in mine:
        part = layout.parts[element["part"]]
        fields = records[layout.part_names[element["part"]]].reshape(records.size, -1)[:, element["e"] : element["e"] + 1]
        here = slice(element["dof"] - body["dof"], element["dof"] - body["dof"] + part["n"])
        mass[:, here, here] = dense(fields, part, "M")[:, 0] / h
    return mass


def _shift(parts, elements, dofs):
    """Shift from a part-wise number of a degree of freedom to the group-wise one."""
    first = elements_of(parts)["dof"]
    return (elements["dof"] - first)[np.searchsorted(first, dofs, side="right") - 1]


def _renumbered(rows, parts, elements):
    rows = rows.copy()
    rows["dof"] += _shift(parts, elements, rows["dof"])
    rows["body"] = elements["body"][rows["body"]]
    return rows


def _plan(layout, bodies, unknowns, method, work, iwork, has_W):
    """Reserve the arrays of the one-step problem, of the iteration, and scratch."""
    body, dofs = bodies["n"].max(), bodies["n"].sum()
    spare = 3 * max(layout.parts["n"].max(), layout.relations["m"].max(initial=0), layout.relations["n"].max(initial=0))
    plan = np.zeros(1, PLAN)
    if has_W:
        place_problem(plan, unknowns, method, work, iwork)
    else:
        place_vectors(plan, unknowns.constraints.size, work)
    place_branches(plan, unknowns.constraints.size, work, iwork)
    plan["at_once"] = unknowns.constraints.size == 1 and method is find("auto", "relay")
    work.place(plan, rhs=body, solution=body, scratch=body, x=body, spare=spare)
    work.place(plan, **dict.fromkeys(("dofs", "x_old", "r_old", "f", "f_old", "residual", "size", "dx", "R_start", "x_near"), dofs))
    work.place(plan, y_start=unknowns.constraints.size, near=2 * unknowns.constraints.size, started=2 * unknowns.constraints.size)
    iwork.place(plan, pivots=body)
    plan["n_dofs"] = dofs
    return plan


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: f at t; for a new record also y and r of its multipliers."""
    work = memory.work
    constraints, p = s.constraints, s.plan[0]
    memory.iwork[p.open] = -1
    gather(s.parts, s.elements, p.x_old, 0, memory)
    gather(s.parts, s.elements, p.r_old, 1, memory)
    _evaluate(t, t, 1.0, 1.0, s, p, functions, memory)
    for i in range(p.n_dofs):
        work[p.f_old + i] = work[p.f + i]
    if memory.imem[STEP] == 0:  # a restarted record holds y and r of its last step
        for i in range(constraints.size):
            if constraints[i].y != ABSENT:
                memory.mem[constraints[i].y] = work[constraints[i].h]
        collect_input(s.parts, s.elements, s.relations, memory)
    return CONVERGED


@kernel
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, Newton's iterations, residual)."""
    parts, elements, p, work = s.parts, s.elements, s.plan[0], memory.work
    is_midpoint, limit = options.midpoint != 0.0, int(options.max_iter)
    # 1. start: state, bounds, and f there if a controller has changed it
    gather(parts, elements, p.x_old, 0, memory)
    gather(parts, elements, p.r_old, 1, memory)
    _keep_outputs(p.started, s.constraints, memory)
    if p.driven != 0:
        evaluate_bounds(t_new, s.relations, s.constraints, p, calls.functions, memory)
    if p.controlled != 0 and options.theta < 1.0 and not is_midpoint:
        _evaluate_rates(t_new - options.h, 1.0, parts, elements, p, p.f_old, calls.functions, memory)
    # 2. Newton's iteration; where it fails along a path, and if there is none its own failure
    status, n_iter, residual = _iterate(t_new, 0.0, 1.0, limit, s, calls, options, memory)
    if not _is_near(status, residual):
        found, more, error = _follow(t_new, limit, s, calls, options, memory)
        if found == CONVERGED:
            status, n_iter, residual = found, n_iter + more, error
        else:
            _restore(p.x_old, p.started, s, memory)
            status, n_iter, residual = _iterate(t_new, 0.0, 1.0, limit, s, calls, options, memory)
    # 3. input of the record, and f for the next step
    if collect_input(parts, elements, s.relations, memory) != 0.0:
        status = NON_FINITE
    if not is_midpoint:
        for i in range(p.n_dofs):
            work[p.f_old + i] = work[p.f + i]
    return status, n_iter, residual


@kernel
def _iterate(t_new, remaining, least, limit, s, calls, options, memory):
    """Newton's iteration for ``R = remaining R_0``, ``y = h + remaining (y - h)_0``, see `_follow`. Returns (status, n_iter, residual).

    least: the least size of a variable to which its step of finite differences is relative.
    """
    functions, work = calls.functions, memory.work
    constraints, p = s.constraints, s.plan[0]
    h, theta, input_weight, output_weight = options.h, options.theta, options.input_weight, options.output_weight
    is_midpoint, tol = options.midpoint != 0.0, max(options.tol, _LEAST_TOL if remaining == 0.0 else _DIFFERENCES)
    t_f, t_y = t_new - (1.0 - theta) * h if is_midpoint else t_new, t_new - (1.0 - output_weight) * h
    status, n_iter, residual, solved = NEWTON, 0, math.inf, CONVERGED
    f_at, f_weight = (theta, 1.0) if is_midpoint else (1.0, theta)
    for n_iter in range(limit + 1):
        _evaluate(t_f, t_y, f_at, output_weight, s, p, functions, memory)
        _add_remaining(remaining, constraints, p, work)
        # a residual that still falls is not yet rounding
        doubted = max(tol, _PROGRESS * residual) if n_iter < limit else tol
        residual = _residual(h, f_weight, input_weight, remaining, n_iter > 0, s, p, memory)
        # the residual of all terms costs more, and decides only when the plain one stalls; on a path steep functions would make it small
        if n_iter > 0 and doubted < residual < math.inf and remaining == 0.0:
            residual = _residual_by_all_terms(h, f_weight, input_weight, s, p, memory)
        # 1. verdict
        if not residual < math.inf:
            status = NON_FINITE
            break
        if solved not in (CONVERGED, INEXACT):
            status, residual = solved, work[p.info + 1]
            break
        if n_iter > 0 and residual <= tol:
            status = solved
            break
        if n_iter == limit:
            break
        # 2. linearise, invert, and assemble
        _linearise(t_f, t_y, f_at, least, s, p, functions, memory)
        if not invert_groups(theta, input_weight * output_weight, s, p, memory):
            status = SINGULAR_STEP
            break
        _state_problem(n_iter == 0, input_weight * output_weight, s, p, memory)
        # 3. predict, solve, correct
        _predict(input_weight, output_weight, s, p, memory)
        solved = _solve(s, p, calls, memory)
        _correct(input_weight, s, p, memory)
    if solved == INEXACT:
        residual = max(residual, work[p.info + 1])
    return INEXACT if status == NEWTON and n_iter > 0 and residual <= _NEARLY * calls.solver_options.inexact else status, n_iter, residual


@kernel
def _follow(t_new, limit, s, calls, options, memory):
    """The solution at the end of a path of problems whose first one the state at the start solves. Returns (status, n_iter, residual).

    Their residuals are ``remaining`` times those of the start, with remaining from 1 to 0: each is solved from the solution of the one
    before. Where Newton's method does not come from one to the next it tries finite differences of steps relative to the variables, as of
    roots near 0, and then a problem nearer by.
    """
    p, t = s.plan[0], t_new
    is_midpoint = options.midpoint != 0.0
    f_at, f_weight = (options.theta, 1.0) if is_midpoint else (1.0, options.theta)
    t_f, t_y = t - (1.0 - options.theta) * options.h if is_midpoint else t, t - (1.0 - options.output_weight) * options.h
    # 1. residuals of the start
    _restore(p.x_old, p.started, s, memory)
    _evaluate(t_f, t_y, f_at, options.output_weight, s, p, calls.functions, memory)
    residual = _residual(options.h, f_weight, options.input_weight, 0.0, True, s, p, memory)
    if not residual < math.inf:
        return NON_FINITE, 0, residual
    size = _keep_residuals(s.constraints, p, memory)
    gather(s.parts, s.elements, p.x_near, 0, memory)
    _keep_outputs(p.near, s.constraints, memory)
    # 2. the path
    remaining, factor, least, n_iter, failures = 1.0, _FIRST_FACTOR, 1.0, 0, 0
    for _ in range(_MOST_PROBLEMS):
        goal = remaining * factor if factor > _AT_ONCE and remaining * size > _ENOUGH * _NOTHING else 0.0
        status, more, residual = _iterate(t_new, goal, least, min(limit, _SHORT), s, calls, options, memory)
        n_iter += more
        if status == CONVERGED:
            if goal == 0.0:
                return status, n_iter, residual
            remaining, factor, failures = goal, factor * math.sqrt(factor), 0
            gather(s.parts, s.elements, p.x_near, 0, memory)
            _keep_outputs(p.near, s.constraints, memory)
        else:
            failures += 1
            least = 0.0 if least > 0.0 else 1.0
            factor = math.sqrt(factor) if failures % 2 == 0 else factor
            if failures > _MOST_FAILURES:
                break
            _restore(p.x_near, p.near, s, memory)
    return NEWTON, n_iter, residual


@tiny
def _is_near(status, residual):
    """Whether a solution needs no path: it has converged, or its residual is about that of finite differences."""
    return status == CONVERGED or (status == INEXACT and residual <= _DIFFERENCES)


@tiny
def _keep_outputs(at, constraints, memory):
    """lambda and y of all rows, into work[at:]."""
    for i in range(constraints.size):
        c = constraints[i]
        memory.work[at + 2 * i] = memory.mem[c.lam]
        if c.y != ABSENT:
            memory.work[at + 2 * i + 1] = memory.mem[c.y]


@kernel
def _restore(x, at, s, memory):
    """The state in work[x:], and lambda and y in work[at:], into mem."""
    mem, work = memory.mem, memory.work
    for k in range(s.elements.size):
        el = s.elements[k]
        part = s.parts[el.part]
        for i in range(part.n):
            mem[part.q + el.e * part.stride + i] = work[x + el.dof + i]
    for i in range(s.constraints.size):
        c = s.constraints[i]
        mem[c.lam] = work[at + 2 * i]
        if c.y != ABSENT:
            mem[c.y] = work[at + 2 * i + 1]


@tiny
def _keep_residuals(constraints, p, memory):
    """``R_0`` and ``(y - h)_0`` of the path. Returns the largest one."""
    work, size = memory.work, 0.0
    for i in range(p.n_dofs):
        work[p.R_start + i] = work[p.residual + i]
        size = max(size, abs(work[p.residual + i]))
    for i in range(constraints.size):
        c = constraints[i]
        work[p.y_start + i] = 0.0 if c.y == ABSENT else memory.mem[c.y] - work[c.h]
        size = max(size, abs(work[p.y_start + i]))
    return size


@tiny
def _add_remaining(remaining, constraints, p, work):
    """``h += remaining (y - h)_0``."""
    for i in range(constraints.size if remaining != 0.0 else 0):
        if constraints[i].y != ABSENT:
            work[constraints[i].h] += remaining * work[p.y_start + i]


@inlined
def _evaluate(t_f, t_y, f_at, y_at, s, p, functions, memory):
    """f at ``f_at x + (1-f_at) x_k``, h and g at ``y_at x + (1-y_at) x_k`` and lambda."""
    work = memory.work
    constraints, relations = s.constraints, s.relations
    _evaluate_rates(t_f, f_at, s.parts, s.elements, p, p.f, functions, memory)
    for i in range(constraints.size):
        if constraints[i].y != ABSENT:
            work[constraints[i].argument] = memory.mem[constraints[i].lam]
    for k in range(relations.size):
        r = relations[k]
        for j in range(r.n):
            work[r.x + j] = y_at * memory.mem[coordinate(r, j)] + (1.0 - y_at) * work[p.x_old + number_of(r, j)]
        relation_values(t_y, r, functions, memory)


@inlined
def _evaluate_rates(t, at, parts, elements, p, out, functions, memory):
    """f of all elements at ``at x + (1-at) x_k``."""
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        _argument(at, part, el, p, memory)
        rate(t, part, el.e, p.x, p.spare, functions, memory, out + el.dof)


@inlined
def _argument(at, part, el, p, memory):
    q = part.q + el.e * part.stride
    for i in range(part.n):
        memory.work[p.x + i] = at * memory.mem[q + i] + (1.0 - at) * memory.work[p.x_old + el.dof + i]


@inlined
def _residual(h, f_weight, input_weight, remaining, check_y, s, p, memory):
    """R, and the largest residual of a row of x, and of y if ``check_y``, relative to the magnitudes of its terms."""
    mem, work, parts, elements, relations = memory.mem, memory.work, s.parts, s.elements, s.relations
    size = p.size
    # 1. M (x - x_k) / h and f
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        q, R = part.q + el.e * part.stride, p.residual + el.dof
        for i in range(part.n):
            work[R + i] = 0.0
            work[p.x + i] = mem[q + i] - work[p.x_old + el.dof + i]
        if part.M != ABSENT:
            subtract_product(part.M_kind, part.n, part.M_nnz, mem, memory.imem, part.M + el.e * part.stride, 1.0 / h, work, p.x, R)
        else:
            for i in range(part.n):
                work[R + i] = -work[p.x + i] / h
        # 2. their sum and sizes
        for i in range(part.n):
            dof, inertia = el.dof + i, work[R + i]
            slope = f_weight * work[p.f + dof] + (1.0 - f_weight) * work[p.f_old + dof] + (1.0 - input_weight) * work[p.r_old + dof]
            work[size + dof] = abs(inertia) + abs(slope) + (abs(mem[q + i]) / h if part.M == ABSENT else 0.0)
            work[R + i] = inertia + slope
    # 3. input by relations
    for k in range(relations.size):
        r = relations[k]
        for j in range(r.n):
            dof = number_of(r, j)
            work[size + dof] += abs(input_weight * work[r.g + j])
            work[p.residual + dof] += input_weight * work[r.g + j]
    for i in range(p.n_dofs if remaining != 0.0 else 0):
        work[p.residual + i] -= remaining * work[p.R_start + i]
    return _largest_residual(_NOTHING if remaining == 0.0 else 0.0, check_y, s.constraints, p, memory)


@kernel
def _residual_by_all_terms(h, f_weight, input_weight, s, p, memory):
    """The largest residual relative to the terms within A x, B lambda, C x and D lambda, too, and to the terms of x.

    Those are ``|x| + |x_k| + |G size|``: a state at rest is a difference of rates that cancel, and has their rounding.
    """
    _add_inner_terms(h, f_weight, input_weight, s, p, memory)
    apply_inverses(s.bodies, p.size, p.dx, p.scratch, memory)
    _add_worth(f_weight, input_weight, s, p, memory)
    error = _largest_residual(_NOTHING, False, s.constraints, p, memory)
    return max(error, _output_error(s, p, memory))


@tiny
def _largest_residual(nothing, check_y, constraints, p, memory):
    """Largest residual of x relative to p.size, and of y to itself and its value before lambda; NaN where one is not finite.

    Up to nothing a residual is 0.
    """
    work = memory.work
    error = zero = 0.0
    for i in range(p.n_dofs):
        error = _larger(nothing, error, work[p.residual + i], work[p.size + i])
        zero += 0.0 * work[p.residual + i]
    for i in range(constraints.size if check_y else 0):
        c = constraints[i]
        if c.y != ABSENT:
            y, h = memory.mem[c.y], work[c.h]
            error = _larger(nothing, error, y - h, abs(y) + abs(h) + abs(work[p.q + i]))
            zero += 0.0 * h + 0.0 * y
    return error + zero


@tiny
def _larger(nothing, error, difference, size):
    """The larger of an error and ``|difference| / size``, of a difference that is not nothing."""
    return abs(difference) / size if abs(difference) > max(error * size, nothing) else error


@tiny
def _add_inner_terms(h, f_weight, input_weight, s, p, memory):
    """``p.size += |M| (|x| + |x_k|) / h + theta |A| |x| + |B| |lambda|``; A is that of the last linearisation."""
    mem, imem, work = memory.mem, memory.imem, memory.work
    parts, elements, constraints, inputs = s.parts, s.elements, s.constraints, s.inputs
    # 1. M and A
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        n, q, shift = part.n, part.q + el.e * part.stride, el.e * part.stride
        for i in range(n):
            work[p.x + i] = abs(mem[q + i]) + abs(work[p.x_old + el.dof + i])
        if part.M != ABSENT:
            add_absolute_product(part.M_kind, n, part.M_nnz, mem, imem, part.M + shift, 1.0 / h, work, p.x, p.size + el.dof)
        _add_absolute_rates(f_weight, part, el, s.groups[el.body], p, memory)
    # 2. B lambda
    for i in range(constraints.size):
        for k in range(constraints[i].input, constraints[i].input_end):
            work[p.size + inputs[k].dof] += abs(input_weight * work[inputs[k].coefficient] * mem[constraints[i].lam])


@tiny
def _add_absolute_rates(factor, part, el, group, p, memory):
    """``p.size += factor |A| x`` of an element, with x at p.x, not negative, and A of the last linearisation."""
    n, out, work = part.n, p.size + el.dof, memory.work
    if group.n_entries > 0:
        add_absolute_columns(group.groups, n, factor, group.A, p.x, out, memory)
    elif part.f_function != ABSENT or part.A_function != ABSENT:
        add_absolute_product(DENSE, n, 0, work, memory.imem, part.A_work + el.e * n * n, factor, work, p.x, out)
    else:
        A = part.A + el.e * part.stride
        add_absolute_product(part.A_kind, n, part.A_nnz, memory.mem, memory.imem, A, factor, work, p.x, out)


@tiny
def _add_worth(f_weight, input_weight, s, p, memory):
    """``p.size += (theta |A| + |K|) |G size|``, the latter in p.dx, with A and K of the last linearisation."""
    work = memory.work
    # 1. A
    for k in range(s.elements.size):
        el = s.elements[k]
        part = s.parts[el.part]
        for i in range(part.n):
            work[p.x + i] = abs(work[p.dx + el.dof + i])
        _add_absolute_rates(f_weight, part, el, s.groups[el.body], p, memory)
    # 2. K
    for k in range(s.relations.size):
        r = s.relations[k]
        for i in range(r.n if r.K != ABSENT else 0):
            to = number_of(r, i)
            for j in range(r.n):
                work[p.size + to] += abs(input_weight * work[r.K + i * r.n + j] * work[p.dx + number_of(r, j)])


@tiny
def _output_error(s, p, memory):
    """Largest ``|y - h|`` relative to ``|y| + |h| + |C| (|x| + |x_k| + |G size|) + |D| |lambda|`` and the terms of ``W lambda + q``."""
    mem, work = memory.mem, memory.work
    constraints, entries, couplings, error = s.constraints, s.entries, s.couplings, 0.0
    # sizes of the terms of each row
    for i in range(constraints.size):
        c = constraints[i]
        if c.y != ABSENT:
            size = abs(mem[c.y]) + abs(work[c.h]) + abs(work[p.q + i])
            for k in range(c.entry, c.entry_end):
                size += abs(work[entries[k].coefficient]) * (
                    abs(mem[entries[k].q]) + abs(work[p.x_old + entries[k].dof]) + abs(work[p.dx + entries[k].dof])
                )
            for k in range(c.coupling, c.coupling_end):
                size += abs(work[couplings[k].coefficient] * work[p.z + couplings[k].constraint])
            for k in range(s.W_row[i], s.W_row[i + 1]):
                size += abs(work[p.W + k] * work[p.z + s.W_column[k]])
            error = _larger(_NOTHING, error, mem[c.y] - work[c.h], size)
    return error


@inlined
def _linearise(t_f, t_y, f_at, least, s, p, functions, memory):
    """A, and C, D, K, B, at the arguments of the last evaluation."""
    parts, elements, relations = s.parts, s.elements, s.relations
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        if part.f_function != ABSENT:
            _argument(f_at, part, el, p, memory)
            for i in range(part.n):
                memory.work[p.solution + i] = memory.work[p.f + el.dof + i]
            if s.groups[el.body].n_entries > 0:
                compressed_jacobian(t_f, part, el.e, least, s.groups[el.body], p, functions, memory)
            else:
                rate_jacobian(t_f, part, el.e, least, p.x, p.solution, p.spare, functions, memory)
    for k in range(relations.size):
        if relations[k].h_function != ABSENT:
            relation_jacobians(t_y, relations[k], least, p.spare, functions, memory)


@inlined
def invert_groups(theta, gamma, s, p, memory):
    """``G = (M/h - theta A - gamma K)^-1`` of the groups whose matrix changes; False where it is singular."""
    work = memory.work
    parts, elements, bodies, groups, relations = s.parts, s.elements, s.bodies, s.groups, s.relations
    sizes = p.dofs  # by degree of freedom: the sum of the absolute terms of a row
    # 1. M/h, and row sums, the scale of pivots
    for b in range(bodies.size):
        if groups[b].mass != ABSENT and groups[b].n_entries == 0:
            n = bodies[b].n
            for i in range(n):
                size = 0.0
                for j in range(n):
                    work[bodies[b].data + i * n + j] = work[groups[b].mass + i * n + j]
                    size += abs(work[groups[b].mass + i * n + j])
                work[sizes + bodies[b].dof + i] = size
    # 2. minus theta A
    for k in range(elements.size):
        el = elements[k]
        if groups[el.body].mass != ABSENT and groups[el.body].n_entries == 0:
            n = parts[el.part].n
            _subtract_block(theta, parts[el.part].A_work + el.e * n * n, n, 0, n, 0, n, el.dof, el.dof, bodies[el.body], sizes, work)
    # 3. minus gamma K, in its four blocks
    for k in range(relations.size):
        r = relations[k]
        if r.K != ABSENT:
            body = bodies[_body_of(r.dof_first, bodies)]
            n1, n = r.n_first, r.n
            _subtract_block(gamma, r.K, n, 0, n1, 0, n1, r.dof_first, r.dof_first, body, sizes, work)
            _subtract_block(gamma, r.K, n, 0, n1, n1, n, r.dof_first, r.dof_second, body, sizes, work)
            _subtract_block(gamma, r.K, n, n1, n, 0, n1, r.dof_second, r.dof_first, body, sizes, work)
            _subtract_block(gamma, r.K, n, n1, n, n1, n, r.dof_second, r.dof_second, body, sizes, work)
    # 4. invert; the row sums are cleared, as others rely on zeros there
    regular = True
    for b in range(bodies.size):
        if groups[b].n_entries > 0:
            regular &= _factorise_sparse(theta, bodies[b], groups[b], memory)
        elif groups[b].mass != ABSENT:
            regular &= invert_in_place(bodies[b].n, bodies[b].data, sizes + bodies[b].dof, memory, p.pivots)
    for i in range(p.n_dofs):
        work[sizes + i] = 0.0
    return regular


@kernel
def _factorise_sparse(theta, body, group, memory):
    """``M/h - theta A`` of an element with compressed A, and its factors; False where it is singular."""
    work = memory.work
    for k in range(group.n_entries):
        work[body.data + k] = work[group.mass + k] - theta * work[group.A + k]
    return sparse_lu.factorise(body.data, body.data + group.n_entries, body.index, work, memory.iwork) == 0


@kernel
def _subtract_block(factor, block, width, row, row_end, column, column_end, dof_row, dof_column, body, sizes, work):
    """``matrix of the body -= factor * block[row:row_end, column:column_end]``, whose first entry belongs at (dof_row, dof_column)."""
    for i in range(row, row_end):
        for j in range(column, column_end):
            value = factor * work[block + i * width + j]
            at_row = dof_row + i - row
            work[body.data + (at_row - body.dof) * body.n + dof_column + j - column - body.dof] -= value
            work[sizes + at_row] += abs(value)


@kernel
def _body_of(dof, bodies):
    """The group that a degree of freedom belongs to."""
    low, high = 0, bodies.size - 1
    while low < high:
        middle = (low + high + 1) // 2
        if bodies[middle].dof <= dof:
            low = middle
        else:
            high = middle - 1
    return low


@inlined
def _state_problem(is_first, weight, s, p, memory):
    """The matrix of the one-step problem, or the equations in its place."""
    if s.mixed.size > 0:
        newton_mixed.refresh(weight, s.mixed[0], s.sources[0], s, memory)
        return
    assemble(s.plan, s.bodies, s.constraints, s.entries, s.inputs, s.couplings, s.every, (s.W_row, s.W_column, s.W_transpose),
             weight, 0, memory.work, memory.iwork)  # fmt: skip
    if is_first:
        note_several(SMALL, s.constraints.size, s.W_row, s.W_column, p, memory)


@inlined
def _predict(input_weight, output_weight, s, p, memory):
    """``dx = x_p - x^a`` and the vector q of the one-step problem; the multipliers in mem are the first guess."""
    work = memory.work
    constraints, entries, inputs, couplings, most = s.constraints, s.entries, s.inputs, s.couplings, 0.0
    # 1. R - input B lambda, and the correction by it
    for i in range(constraints.size):
        c = constraints[i]
        lam = memory.mem[c.lam]
        work[p.z + i] = lam
        for k in range(c.input, c.input_end):
            work[p.residual + inputs[k].dof] -= input_weight * work[inputs[k].coefficient] * lam
    apply_inverses(s.bodies, p.residual, p.dx, p.scratch, memory)
    # 2. q, with the sizes of its terms
    for i in range(constraints.size):
        c = constraints[i]
        q_i = work[c.base] if c.y == ABSENT else work[c.h]
        size = abs(q_i)
        for k in range(c.entry, c.entry_end):
            term = output_weight * work[entries[k].coefficient] * work[p.dx + entries[k].dof]
            q_i += term
            size += abs(term)
        if c.y != ABSENT:
            for k in range(c.coupling, c.coupling_end):
                if couplings[k].sign > 0:
                    term = work[couplings[k].coefficient] * work[p.z + couplings[k].constraint]
                    q_i -= term
                    size += abs(term)
        work[p.q + i] = q_i
        most = max(most, size)
    work[p.rounding] = rounding_of(most)


@inlined
def _solve(s, p, calls, memory):
    """Solve the one-step problem; y and lambda into mem. Returns the solver's status."""
    work, iwork = memory.work, memory.iwork
    constraints, n = s.constraints, s.constraints.size
    status = CONVERGED
    if n > 0:
        if s.mixed.size == 0:  # the matrix is new in each iteration
            iwork[p.isolver] = 0
        if s.mixed.size > 0:
            status = solve_mixed(s.mixed, calls.solver_options, memory)
        elif p.at_once != 0 and iwork[p.several] == 0:
            iwork[p.open], iwork[p.unstable] = max(iwork[p.open], 0), 0  # as `solve_near`
            status = solve(n, s.W_row, s.W_column, p.W, p, calls.solver, calls.solver_options, True, memory)
        else:
            status = solve_near(n, s.W_row, s.W_column, p, calls.solver, calls.solver_options, memory)
        if p.n_cone > 0:
            outputs_of_cones(constraints, s.couplings, p.z, p.w, work)
        # multipliers of cones have no y
        for i in range(n):
            c = constraints[i]
            memory.mem[c.lam] = work[p.z + i]
            if c.y != ABSENT:
                memory.mem[c.y] = work[p.w + i]
    return status


@inlined
def _correct(input_weight, s, p, memory):
    """``x <- x_p + input G B lambda``."""
    work = memory.work
    parts, elements, constraints, inputs = s.parts, s.elements, s.constraints, s.inputs
    for i in range(p.n_dofs):
        work[p.residual + i] = 0.0
    for i in range(constraints.size):
        c = constraints[i]
        for k in range(c.input, c.input_end):
            work[p.residual + inputs[k].dof] += input_weight * work[inputs[k].coefficient] * work[p.z + i]
    apply_inverses(s.bodies, p.residual, p.f, p.scratch, memory)
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        q = part.q + el.e * part.stride
        for i in range(part.n):
            memory.mem[q + i] += work[p.dx + el.dof + i] + work[p.f + el.dof + i]


@tiny
def collect_input(parts, elements, relations, memory):
    """r of the parts: the sum of g of their relations. Returns 0, NaN where one is not finite."""
    mem = memory.mem
    zero = 0.0
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        for i in range(part.n):
            mem[part.q + el.e * part.stride + part.n + i] = 0.0
    for k in range(relations.size):
        r = relations[k]
        for j in range(r.n):
            q = coordinate(r, j) + width(r, j)
            mem[q] += memory.work[r.g + j]
            zero += 0.0 * mem[q]
    return zero
