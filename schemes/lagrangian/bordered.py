"""Moreau–Jean with velocities and impulses as unknowns of one problem (the global form), for linear systems.

    M_hat v_{k+1} - B z = M_hat v_free,      w = H v_{k+1} + D z + e ydot_k + rate,      0 <= w  ⟂  z >= 0

with v_free and M_hat of the linear form ([Notes], eqs 10.16–10.18). The matrix is M_hat with a border, sparse if M_hat and H are; no
Delassus matrix ``H M_hat^-1 B`` is formed. Impulses of inactive constraints are fixed at 0 by their bounds; a problem with friction omits
their rows, and has rows of momentum, ``M_hat v = ...``, divided by the diagonal, as equations.
"""

import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import inlined, kernel
from nsds.model.layout import ABSENT, DENSE, DIAGONAL, table
from nsds.schemes.lagrangian import linear
from nsds.schemes.lagrangian.functions import blame  # noqa: F401
from nsds.schemes.lagrangian.outputs import update_outputs
from nsds.schemes.linear_algebra import weighted_sum
from nsds.schemes.memory import Prepared
from nsds.schemes.problem.active_set import accept, extract_active, solve, state_bounds
from nsds.schemes.problem.contact import no_blocks, place_blocks
from nsds.schemes.problem.impact import rebound
from nsds.schemes.problem.rows import CONSTRAINT, POSITION
from nsds.schemes.problem.tables import bodies_of, largest_contact, ordered, place_active, place_problem
from nsds.solvers.box.forms import narrow_order
from nsds.status import CONVERGED, NON_FINITE

# One row per unknown: offset of its velocity in the record, or ABSENT and the constraint whose impulse it is.
NODE = table("velocity", "constraint")
# Offsets of the bordered problem in the work memory.
BORDERED = table(
    # matrix of all unknowns, and of the active ones; problem and solution; info of the solver
    "W", "sub_W", "q", "z", "w", "lower", "upper", "info", "rounding", "solver", "n_solver",
    # active unknowns, their numbers, pattern of sub_W
    "active", "local", "sub_row", "sub_column", "sub_place", "isolver", "n_isolver",
)  # fmt: skip


class Tables(NamedTuple):
    """Tables of the step; nodes in the order of the bordered problem, whose pattern is W_row, W_column."""

    linear: linear.Tables
    nodes: np.ndarray
    rows: np.ndarray  # of the nodes, like those of constraints
    bordered: np.ndarray  # where its arrays lie
    blocks: np.ndarray  # of a problem with friction
    W_row: np.ndarray
    W_column: np.ndarray


def prepare(records, layout, options, method, work, iwork):
    """Inverse iteration matrices for v_free, and the bordered matrices of all members."""
    # 1. inverse iteration matrices, for v_free; no memory for a Delassus matrix
    h, theta = options.h, options.theta
    operators = linear.inverse_operators(records, layout, h, theta, work, iwork)
    bodies = bodies_of(layout.parts, operators)
    unknowns = ordered(layout.constraints, layout.entries, layout.inputs, layout.couplings, bodies["kind"])
    constraints, couplings = unknowns.constraints, unknowns.couplings
    single = np.arange(constraints.size + 1)
    plan = linear.reserve(layout, unknowns._replace(row=single, column=single[:-1]), method, work, iwork)  # no W: no room for it
    # 2. entries of the matrix: M_hat, and its border by H, B and D
    rows, columns, values = iteration_matrices(records, layout, h, theta)
    n = (layout.parts["count"] * layout.parts["n"]).sum()
    kinds = "entry", "input", "coupling"
    owner = {kind: np.repeat(np.arange(constraints.size), constraints[f"{kind}_end"] - constraints[kind]) for kind in kinds}
    border = [
        (n + owner["entry"], layout.entries["dof"], layout.entries["coefficient"], 1.0),
        (layout.inputs["dof"], n + owner["input"], layout.inputs["coefficient"], -1.0),
        (n + owner["coupling"], n + couplings["constraint"], couplings["coefficient"], 1.0),
    ]
    n_all = int(n) + constraints.size
    rows = np.concatenate([rows, *(piece[0] for piece in border)]).astype(np.int64)
    columns = np.concatenate([columns, *(piece[1] for piece in border)]).astype(np.int64)
    # 3. symmetric pattern in an order of small bandwidth; contacts with friction stay together as blocks
    every = np.arange(n_all)
    pairs = np.unique(np.concatenate([rows * n_all + columns, columns * n_all + rows, every * n_all + every]))
    d = largest_contact(constraints)
    order = every if d else narrow_order(*np.divmod(pairs, n_all), n_all)  # contacts stay together
    place = np.argsort(order)
    row, column = np.divmod(np.sort(place[pairs // n_all] * n_all + place[pairs % n_all]), n_all)
    start_of = np.searchsorted(row, np.arange(n_all + 1))
    # 4. rows of velocities are equations
    velocities = np.zeros(n, CONSTRAINT)
    velocities["bilateral"], velocities["lower"] = 1, ABSENT
    all_rows = np.concatenate([velocities, constraints])[order]
    bordered, all_unknowns = np.zeros(1, BORDERED), unknowns._replace(constraints=all_rows, row=start_of, column=column)
    place_problem(bordered, all_unknowns, method, work, iwork)
    place_active(bordered, all_unknowns, work, iwork)
    work.place(bordered, sub_W=column.size if d else 0)
    blocks = place_blocks(bordered, all_rows, all_unknowns, d, method, work, iwork)
    # 5. values of all members
    where = np.searchsorted(row * n_all + column, place[rows] * n_all + place[columns])
    work, iwork = work.array(), iwork.array(np.int64)
    W = work[:, bordered[0]["W"] : bordered[0]["W"] + column.size]
    filled = np.concatenate([values, *(sign * work[:, coefficient] for _, _, coefficient, sign in border)], axis=1)
    for member in range(records.size):
        np.add.at(W[member], where, filled[member])
    # momenta become velocities, in whose units the tolerance is
    if d:
        owner_of, diagonal = np.repeat(every, np.diff(start_of)), np.flatnonzero(row == column)
        W[:, owner_of < n] /= W[:, diagonal[owner_of[owner_of < n]]]
    iwork[:, plan[0]["local"] : plan[0]["local"] + constraints.size] = -2  # no set is known yet
    for listed in ("active", "local"):
        iwork[:, bordered[0][listed] : bordered[0][listed] + n_all] = every
    # 6. unknowns of each row
    nodes = np.zeros(n_all, NODE)
    nodes["constraint"][n:] = np.arange(constraints.size)
    nodes["velocity"] = ABSENT
    for part in layout.parts:
        each = part["stride"] * np.arange(part["count"])[:, None] + part["q"] + part["n"] + np.arange(part["n"])
        nodes["velocity"][part["dof"] : part["dof"] + each.size] = each.reshape(-1)
    reduced = linear.tables_of(layout, unknowns, plan, no_blocks(), operators)
    tables = Tables(reduced, nodes[order], all_rows, bordered, blocks, start_of, column)
    layout = layout._replace(constraints=constraints, owners=tuple(layout.owners[i] for i in unknowns.order))
    return Prepared(tables, layout.functions, options, work, iwork, sys.modules[__name__], layout)


def iteration_matrices(records, layout, h, theta):
    """(rows, columns, values (members, entries)) of M_hat of all bodies."""
    rows, columns, values = [], [], []
    for name, part in zip(layout.part_names, layout.parts, strict=True):
        fields = records[name].reshape(records.size, -1)
        kind, matrices = weighted_sum(fields, part, linear.terms_of(h, theta))
        n, first = part["n"], part["dof"] + part["n"] * np.arange(part["count"])[:, None]
        if kind == DIAGONAL:
            i = j = np.arange(n)
        elif kind == DENSE:
            i, j = np.divmod(np.arange(n * n), n)
        else:
            pattern = sum(abs(matrix) for member in matrices for matrix in member).tocoo()
            i, j = pattern.coords
            matrices = np.array([[matrix.tocsr()[i, j] for matrix in member] for member in matrices])
        rows.append((first + i).reshape(-1))
        columns.append((first + j).reshape(-1))
        values.append(matrices.reshape(records.size, -1))
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(values, axis=1)


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: force at t, impulse of constant forces, outputs of the state."""
    return linear.start(t, s.linear, functions, options, memory)


@inlined
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, n_iter, residual)."""
    h, form, g = options.h, s.linear, s.bordered[0]
    # 1. active set and free motion
    n, finite = linear.begin(t_new, form, calls.functions, options, memory)
    status, n_iter, residual = CONVERGED, 0, 0.0
    # 2. bordered problem, from the free motion
    if n != 0:
        size = s.nodes.size if s.blocks[0].d == 0 else _list_rows(n, s, memory)
        _state_problem(s, options, memory)
        status = solve(g, s.blocks, size, s.W_row, s.W_column, g.W, calls.solver, s.rows, calls.solver_options, memory)
        n_iter, residual = int(memory.work[g.info]), memory.work[g.info + 1]
        finite = _end_motion(s, options, memory)
    # 3. outputs
    update_outputs(h, options.theta, form.constraints, form.entries, form.couplings, memory)
    if not finite:
        status = NON_FINITE
    return status, n_iter, residual


@kernel
def _list_rows(n, s, memory):
    """List velocities and the n (or, where they are others, -1 - n) active constraints, of which a problem of contacts consists."""
    iwork = memory.iwork
    g, p, size = s.bordered[0], s.linear.plan[0], 0
    if n > 0:
        return s.nodes.size - s.linear.constraints.size + n
    for i in range(s.nodes.size):
        is_in = s.nodes[i].velocity != ABSENT or iwork[p.local + s.nodes[i].constraint] != ABSENT
        iwork[g.local + i] = size if is_in else ABSENT
        if is_in:
            iwork[g.active + size] = i
            size += 1
    extract_active(g, size, s.W_row, s.W_column, memory)
    return size


@inlined
def _state_problem(s, options, memory):
    """Vector q, bounds and guess of the bordered problem; v in mem is v_free."""
    mem, work = memory.mem, memory.work
    nodes, entries, p, g, h, theta = s.nodes, s.linear.entries, s.linear.plan[0], s.bordered[0], options.h, options.theta
    for i in range(nodes.size):
        w, z, at = 0.0, 0.0, memory.iwork[g.local + i]
        # inactive unknowns of a problem with friction have no row
        if at == ABSENT:
            continue
        work[g.lower + at], work[g.upper + at] = -np.inf, np.inf
        # velocity: M_hat v_free
        if nodes[i].velocity != ABSENT:
            for k in range(s.W_row[i], s.W_row[i + 1]):
                if nodes[s.W_column[k]].velocity != ABSENT:
                    w -= work[g.W + k] * mem[nodes[s.W_column[k]].velocity]
            z = mem[nodes[i].velocity]
        # inactive constraint: impulse 0
        elif memory.iwork[p.local + nodes[i].constraint] == ABSENT:
            work[g.lower + at] = work[g.upper + at] = 0.0
        # active constraint: terms of w without v, in the units of a velocity
        else:
            c = s.linear.constraints[nodes[i].constraint]
            w = 0.0 if c.rate == ABSENT else work[c.rate]
            w += rebound(c, memory)
            if c.level == POSITION:
                y = 0.0 if c.base == ABSENT else work[c.base]
                for k in range(c.entry, c.entry_end):
                    y += work[entries[k].coefficient] * (mem[entries[k].q] + (1.0 - theta) * h * work[p.v_old + entries[k].dof])
                w = y / (h * theta)
            z = mem[c.lam] * (h if c.level == POSITION else 1.0)
            state_bounds(at, h, c, g, work)
        work[g.q + at], work[g.z + at] = w, z


@inlined
def _end_motion(s, options, memory):
    """Velocities, lambda and impulses of the solution; the positions by (10.14). False if not finite."""
    mem, work, iwork = memory.mem, memory.work, memory.iwork
    nodes, parts, constraints, p, g = s.nodes, s.linear.parts, s.linear.constraints, s.linear.plan[0], s.bordered[0]
    h, theta = options.h, options.theta
    # 1. unknowns into the record
    for i in range(nodes.size):
        if nodes[i].velocity != ABSENT:
            mem[nodes[i].velocity] = work[g.z + iwork[g.local + i]]
        elif iwork[p.local + nodes[i].constraint] != ABSENT:
            accept(work[g.z + iwork[g.local + i]], h, constraints[nodes[i].constraint], s.linear.inputs, p.touched, memory)
    # 2. positions
    zero = 0.0
    for a in range(parts.size):
        part = parts[a]
        for e in range(part.count):
            q, v_old = part.q + e * part.stride, p.v_old + part.dof + e * part.n
            for i in range(part.n):
                mem[q + i] += h * (theta * mem[q + part.n + i] + (1.0 - theta) * work[v_old + i])
                zero += 0.0 * mem[q + i]
    return zero == 0.0
