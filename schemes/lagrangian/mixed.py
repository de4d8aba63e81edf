"""Moreau–Jean for large linear systems with many constraints: velocities and impulses together, by a primal-dual active set.

    M_hat dv - B z = 0,      w = H dv + D z + q,      lower <= z <= upper,      -w ∈ N(z),      q = H v_free + e ydot_k

Rows are basic, w = 0, or at a bound of z. Each iteration solves the equations of one choice with sparse factors of the whole matrix, from
the choice of the last step on, and exchanges all rows with a wrong sign (Hintermüller, Ito, Kunisch, SIAM Journal on Optimization 13,
2003); when that no longer helps, one row at a time (Murty), which is finite for independent rows. Factors are computed again only where the
choice has changed.

A row that acts on one coordinate alone, as the contact of a node with an obstacle, needs no unknown: where it is basic, it prescribes this
velocity, and z is what the row of momentum then lacks. The matrix has the fill of M_hat, and less with each basic row.
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import inlined, kernel, tiny
from nsds.maths import patterns, sparse_lu
from nsds.model.layout import ABSENT, DENSE, table
from nsds.schemes.lagrangian import linear
from nsds.schemes.lagrangian.bordered import iteration_matrices
from nsds.schemes.lagrangian.functions import blame  # noqa: F401
from nsds.schemes.memory import Prepared
from nsds.schemes.problem.active_set import accept, state_bounds
from nsds.schemes.problem.contact import no_blocks
from nsds.schemes.problem.mixed import PATIENCE, PLAIN, ROUNDING, exchange, is_known, mark
from nsds.schemes.problem.rows import POSITION
from nsds.schemes.problem.tables import Unknowns, has_friction
from nsds.solvers.box.newton_min import BASIC, LOWER, UPPER
from nsds.solvers.box.signature import UNDERFLOW, excess, is_affordable
from nsds.status import CONVERGED, INEXACT, MAX_ITER, NON_FINITE, STALLED

FEW = 60  # rows up to which the Delassus matrix is formed
MANY_PAIRS = 2**20  # entries of a Delassus matrix up to which systems with friction have one, as more methods know what to do with it
_COMPONENTS = 3  # of a contact, at most
# Extents: N coordinates, k multipliers of rows that need an unknown, m rows.
MIXED = table(
    # N, N + k, entries of the matrix
    "n_dofs", "size", "nnz",
    # floats: entries of the matrix of all rows, and of the basic ones, with the factors; right-hand side, and values of what is no unknown;
    # solution
    "base", "values", "factors", "rhs", "fixed", "x",
    # integers: index of the factors; rows and columns of entries; by row, coordinate that it owns, or ABSENT, and its unknown; by unknown,
    # row that owns it, or whose multiplier it is
    "index", "row_start", "column", "owned", "unknown", "owner",
    # integers: by row, its side and that for which the factors are; whether there are factors; by unknown, whether it is one now
    "side", "factored", "known", "free",
    # of systems with friction, see `nsds.schemes.lagrangian.mixed_friction`: derivatives of laws by u and by r, rho of one
    # contact; integers: by unknown, the place of the entry of its contact's first multiplier in its row
    "A", "B", "rho", "own",
    # of Newton's iterations: number of entries with values elsewhere in the work memory; integers: places there, in the matrix, and signs
    "n_sources", "sources",
)  # fmt: skip


class Tables(NamedTuple):
    """Tables of the linear form, whose W is an estimate of its diagonal, and the place of the mixed problem."""

    linear: linear.Tables
    mixed: np.ndarray


class Planned(NamedTuple):
    """Symbolic factors of the mixed problem, and its entries: their places, where their values lie in the work memory, and signs."""

    plan: sparse_lu.Plan
    rows: np.ndarray
    columns: np.ndarray
    sources: np.ndarray  # ABSENT where values are given otherwise, or zero
    signs: np.ndarray
    owned: np.ndarray
    unknown: np.ndarray


def planned(records, layout, options, method, work):
    """`Planned` of a linear model, and its values (members, entries); None, where the Delassus matrix is preferred."""
    parts = layout.parts
    is_dense = any((parts[field] != ABSENT).any() and (parts[field + "_kind"] == DENSE).any() for field in "MKC")
    if is_dense or not can_be_mixed(layout, method):
        return None
    rows, columns, values = iteration_matrices(records, layout, options.h, options.theta)
    given = work.array()
    plans = plan_of(layout, rows, columns, np.full(rows.size, ABSENT), given)
    if plans is None:
        return None
    everything = np.where(plans.sources == ABSENT, 0.0, plans.signs * given[:, plans.sources])
    everything[:, : rows.size] = values
    return plans, everything


def can_be_mixed(layout, method):
    """Whether there are many rows, for the default solver, without laws of impacts; with friction no compliance and no rolling."""
    constraints = layout.constraints
    if constraints.size <= FEW or method.name != "auto" or constraints["impact_law"].any():
        return False
    return not has_friction(constraints) or not (layout.couplings.size or (constraints["component"] > constraints["tangents"]).any())


def plan_of(layout, rows, columns, sources, given):
    """`Planned` of M_hat with entries (rows, columns), and all constraints.

    None where the Delassus matrix has fewer entries than the factors, or rows depend on each other by their pattern. given: values in the
    work memory that are known (members, entries); others are zero there.
    """
    parts, constraints, entries, inputs, couplings = layout.parts, layout.constraints, layout.entries, layout.inputs, layout.couplings
    n, m, rough = int((parts["count"] * parts["n"]).sum()), constraints.size, has_friction(constraints)
    # 1. entries of both; each row needs a coordinate of its own
    kinds = "entry", "input", "coupling"
    owner, by_input, by_coupling = (np.repeat(np.arange(m), constraints[f"{kind}_end"] - constraints[kind]) for kind in kinds)
    n_pairs = _pairs(layout, owner, rows, columns)
    if n_pairs <= (MANY_PAIRS if rough else rows.size + entries.size) or not _is_independent(layout, owner, n):
        return None
    # 2. unknowns: coordinates, and multipliers of rows that do not own one
    owned, unknown = np.full(m, ABSENT) if rough else _owned(layout, owner, given), np.full(m, ABSENT)
    unknown[owned == ABSENT] = n + np.arange((owned == ABSENT).sum())
    size = n + int((owned == ABSENT).sum())
    # 3. border by H, B and D, and a full diagonal
    filled = _filled(constraints, owner, entries["dof"], n) if rough else np.tile(np.arange(size), (2, 1))
    pieces = [
        (rows, columns, sources, 1.0),
        (unknown[owner], entries["dof"], entries["coefficient"], 1.0),
        (inputs["dof"], unknown[by_input], inputs["coefficient"], -1.0),
        (unknown[by_coupling], unknown[couplings["constraint"]], couplings["coefficient"], couplings["sign"]),
        (*filled, np.full(filled.shape[1], ABSENT), 1.0),
    ]
    pieces = [(*piece[:3], np.broadcast_to(piece[3], piece[0].shape)) for piece in pieces]
    rows, columns, sources, signs = (np.concatenate([piece[k] for piece in pieces]) for k in range(4))
    kept = (rows != ABSENT) & (columns != ABSENT)
    rows, columns, sources, signs = (each[kept].astype(np.int64) for each in (rows, columns, sources, signs))
    # 4. factors
    plan = sparse_lu.plan(coo_of(rows, columns, size), last_after=np.arange(n, size) if size > n else None)
    return Planned(plan, rows, columns, sources, signs, owned, unknown) if n_pairs > plan.fill + plan.nnz else None


def _filled(constraints, owner, dof, n):
    """Places (2, entries) that make rows of one contact have entries in the same columns, and the diagonal full."""
    m = constraints.size
    first, size = np.arange(m) - constraints["component"], constraints["tangents"] + 1
    # each entry of a row, in all rows of its contact
    row = np.repeat(first[owner], size[owner]) + _counted(size[owner])
    column = np.repeat(dof, size[owner])
    # multipliers of a contact with each other
    own_row, own_column = np.repeat(np.arange(m), size), np.repeat(first, size) + _counted(size)
    every = np.arange(n)
    return np.array([np.concatenate([n + row, n + own_row, every]), np.concatenate([column, n + own_column, every])])


def _counted(sizes):
    """0, 1, ... of each size, one after the other."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def coo_of(rows, columns, size):
    """A square scipy.sparse pattern."""
    from scipy.sparse import coo_array

    return coo_array((np.ones(rows.size), (rows, columns)), shape=(size, size))


def _pairs(layout, owner, rows, columns):
    """Entries of the Delassus matrix: pairs of rows that act on one body, or on one coordinate where no other is coupled to it."""
    entries, parts = layout.entries, layout.parts
    coupled = np.zeros(int((parts["count"] * parts["n"]).sum()), bool)
    coupled[rows[rows != columns]] = True
    node = np.where(coupled[entries["dof"]], coupled.size + entries["body"], entries["dof"])
    _, counts = np.unique(np.unique(np.column_stack([node, owner]), axis=0)[:, 0], return_counts=True)
    return int((counts.astype(np.int64) ** 2).sum())


def _is_independent(layout, owner, n):
    """Whether equations have coordinates of their own, or compliance; of contacts that depend on each other some stay open."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import structural_rank

    constraints, m = layout.constraints, layout.constraints.size
    coupled = np.repeat(np.arange(m), constraints["coupling_end"] - constraints["coupling"])
    soft = coupled[coupled == layout.couplings["constraint"]]
    rows, columns = np.concatenate([owner, soft]), np.concatenate([layout.entries["dof"], n + soft])
    equations = constraints["bilateral"] != 0
    pattern = coo_array((np.ones(rows.size), (rows, columns)), shape=(m, n + m)).tocsr()[equations]
    return not equations.any() or structural_rank(pattern) == equations.sum()


def _owned(layout, owner, given):
    """Coordinate that each row acts on alone, and no other row does; ABSENT where there is none, or z couples to other rows."""
    constraints, entries, couplings = layout.constraints, layout.entries, layout.couplings
    m = constraints.size
    length, acting = np.bincount(owner, minlength=m), np.bincount(entries["dof"])
    found = np.full(m, ABSENT)
    alone = (length[owner] == 1) & (acting[entries["dof"]] == 1) & (given[:, entries["coefficient"]] != 0).all(axis=0)
    found[owner[alone]] = entries["dof"][alone]
    found[(constraints["coupling"] != constraints["coupling_end"]) | (constraints["input_end"] - constraints["input"] != 1)] = ABSENT
    found[couplings["constraint"]] = ABSENT
    # B of functions is another matrix
    same = (
        layout.inputs["coefficient"][np.minimum(constraints["input"], layout.inputs.size - 1)]
        == entries["coefficient"][constraints["entry"]]
    )
    found[~same] = ABSENT
    return found


def prepare(records, layout, options, method, plans, stepper, work, iwork):
    """Inverse iteration matrices, for v_free, and the mixed problem of all members; stepper: the module that solves it."""
    # 1. the linear form, with an estimate of the diagonal of W in place of W: it is the scale of gaps
    plans, values = plans
    operators = linear.inverse_operators(records, layout, options.h, options.theta, work, iwork, keeps_columns=False)
    unknowns = without_pairs(layout)
    plan = linear.reserve(layout, unknowns, method, work, iwork)
    form = linear.tables_of(layout, unknowns, plan, no_blocks(), operators)
    # 2. the mixed problem
    mixed = place(layout, plans, work, iwork)
    # 3. contents of all members
    work, iwork = work.array(), iwork.array(np.int64)
    p, row, column, every = plan[0], plans.plan.row, plans.plan.column, unknowns.every
    base = work[:, mixed["base"][0] : mixed["base"][0] + column.size]
    for member in range(records.size):
        np.add.at(base[member], patterns.places(row, column, plans.rows, plans.columns), values[member])
    iwork[:, p["local"] : p["local"] + every.size] = -2  # no set is known yet
    iwork[:, p["diagonal"] : p["diagonal"] + every.size] = every
    n = mixed["n_dofs"][0]
    _estimate_diagonal(layout, base[:, patterns.places(row, column, np.arange(n), np.arange(n))], p["W"], work)
    if has_friction(layout.constraints):
        iwork[:, mixed["free"][0] : mixed["free"][0] + n] = 1
    return Prepared(Tables(form, mixed), layout.functions, options, work, iwork, stepper, layout)


def without_pairs(layout):
    """`Unknowns` in their own order, with the diagonal of W alone."""
    every = np.arange(layout.constraints.size)
    return Unknowns(every, every, layout.constraints, layout.couplings, np.arange(every.size + 1), every, every)


def place(layout, plans, work, iwork):
    """One row of `MIXED`, with its memory."""
    mixed, factors, constraints = np.zeros(1, MIXED), plans.plan, layout.constraints
    m, n, size = constraints.size, int((layout.parts["count"] * layout.parts["n"]).sum()), factors.row.size - 1
    mixed["n_dofs"], mixed["size"], mixed["nnz"] = n, size, factors.nnz
    work.place(mixed, base=factors.nnz, values=factors.nnz, factors=factors.size, rhs=size, fixed=size, x=size)
    owner = np.full(size, ABSENT)
    owner[plans.owned[plans.owned != ABSENT]] = np.flatnonzero(plans.owned != ABSENT)
    owner[n:] = np.flatnonzero(plans.unknown != ABSENT)
    stored = {"index": factors.index, "row_start": factors.row, "column": factors.column, "owned": plans.owned, "unknown": plans.unknown,
              "owner": owner}  # fmt: skip
    iwork.place(mixed, side=m, factored=m, known=1, free=size)
    if has_friction(constraints):
        work.place(mixed, A=_COMPONENTS * m, B=_COMPONENTS * m, rho=3)
        first = n + np.arange(m) - constraints["component"]
        stored["own"] = np.concatenate([np.zeros(n, np.int64), patterns.places(factors.row, factors.column, n + np.arange(m), first)])
    for name, array in stored.items():
        mixed[name] = iwork.store(np.broadcast_to(array.astype(np.int64), (iwork.n_members, array.size)))
    return mixed


def place_sources(mixed, plans, iwork):
    """Note where the values of the entries lie in the work memory, for `refresh`."""
    known = plans.sources != ABSENT
    where = patterns.places(plans.plan.row, plans.plan.column, plans.rows, plans.columns)
    arrays = np.concatenate([plans.sources[known], where[known], plans.signs[known]]).astype(np.int64)
    mixed["n_sources"] = known.sum()
    mixed["sources"] = iwork.store(np.broadcast_to(arrays, (iwork.n_members, arrays.size)))


def _estimate_diagonal(layout, diagonal, W, work):
    """``H diag(M_hat)^-1 B + D`` of each row into work[:, W:]."""
    constraints = layout.constraints
    for table_, first, end, factor in (
        (layout.entries, "entry", "entry_end", lambda rows: work[:, rows["coefficient"]] ** 2 / diagonal[:, rows["dof"]]),
        (layout.couplings, "coupling", "coupling_end", lambda rows: work[:, rows["coefficient"]]),
    ):
        owner = np.repeat(np.arange(constraints.size), constraints[end] - constraints[first])
        values = factor(table_)
        if first == "coupling":
            owner, values = owner[table_["constraint"] == owner], values[:, table_["constraint"] == owner]
        for member in range(work.shape[0]):
            np.add.at(work[member, W : W + constraints.size], owner, values[member])


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: force at t, impulse of constant forces, outputs of the state; no choice is known."""
    memory.iwork[s.mixed[0].known] = 0
    return linear.start(t, s.linear, functions, options, memory)


@inlined
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, n_iter, residual)."""
    h, theta, form = options.h, options.theta, s.linear
    # 1. active set and free motion
    n, finite = linear.begin(t_new, form, calls.functions, options, memory)
    status, n_iter, residual = CONVERGED, 0, 0.0
    # 2. mixed problem of the active constraints
    if n != 0:
        n = n if n > 0 else -1 - n
        linear.state_problem(n, h, theta, form.constraints, form.entries, form.plan[0], memory)
        status, n_iter, residual = _solve_step(n, h, s, calls.solver_options, memory)
        finite = end_motion(n, h, theta, s, memory)
    # 3. outputs
    return linear.end(status, finite, form, options, memory), n_iter, residual


@kernel
def solve(n, h, unit, form, g, options, memory):
    """The mixed problem of the n active constraints, q in work[p.q:], from the multipliers in mem. Out: x, z, w.

    form: tables with plan, constraints, entries, inputs and couplings; h: impulse of a unit of bounded forces; unit: that of a unit of
    lambda at position level. Returns (status, iterations, residual).
    """
    work, iwork, p, m = memory.work, memory.iwork, form.plan[0], form.constraints.size
    # 1. bounds, and the side of each row in the last step
    for i in range(m):
        iwork[g.side + i] = LOWER
    for a in range(n):
        i = iwork[p.active + a]
        c = form.constraints[i]
        state_bounds(a, h, c, p, work)
        z, lower, upper = memory.mem[c.lam] * (unit if c.level == POSITION else 1.0), work[p.lower + a], work[p.upper + a]
        iwork[g.side + i] = BASIC if lower < z < upper else UPPER if z >= upper > lower else LOWER
    # 2. one choice after the other
    limit = int(options.max_iter) if options.max_iter > 0.0 else 200 + 3 * n
    status, n_iter, fewest, patience, multiplications = MAX_ITER, 0, n + 1, PATIENCE, 0.0
    while n_iter < limit and is_affordable(multiplications, options):
        n_iter += 1
        if not is_known(PLAIN, m, g, iwork):
            _factorise(m, g, work, iwork)
            multiplications += sparse_lu.effort(g.index, iwork)
        _solve_choice(n, form, g, memory)
        n_wrong, last = _wrong_signs(n, form, g, memory)
        if n_wrong == 0:
            status = CONVERGED
            break
        patience = PATIENCE if n_wrong < fewest else patience - 1
        fewest = min(fewest, n_wrong)
        exchange(m, patience >= 0, last, g, iwork)
    return _judge(status, n_iter, n, form, g, options, memory)


@tiny
def _solve_step(n, h, s, options, memory):
    """`solve` of the rows of a step; with friction bound to another by `specialised`."""
    return solve(n, h, h, s.linear, s.mixed[0], options.box, memory)


@kernel
def _factorise(m, g, work, iwork):
    """Factors with the basic rows: prescribed velocities and multipliers at a bound have rows and columns of the identity."""
    # 1. what is an unknown
    for r in range(g.size):
        i = iwork[g.owner + r]
        is_basic = i != ABSENT and iwork[g.side + i] == BASIC
        iwork[g.free + r] = 1 if (r < g.n_dofs) != is_basic else 0
    for i in range(m):
        iwork[g.factored + i] = iwork[g.side + i]
    # 2. entries between unknowns
    for r in range(g.size):
        for k in range(iwork[g.row_start + r], iwork[g.row_start + r + 1]):
            c = iwork[g.column + k]
            both = iwork[g.free + r] != 0 and iwork[g.free + c] != 0
            work[g.values + k] = work[g.base + k] if both else 1.0 if r == c else 0.0
    sparse_lu.factorise(g.values, g.factors, g.index, work, iwork)
    iwork[g.known] = PLAIN


@kernel
def _solve_choice(n, form, g, memory):
    """dv and multipliers of one choice, and z and w of all rows."""
    work, iwork, p, constraints = memory.work, memory.iwork, form.plan[0], form.constraints
    # 1. right-hand side, and values of what is no unknown: prescribed velocities, z at bounds
    for r in range(g.size):
        work[g.rhs + r] = work[g.fixed + r] = 0.0
    for a in range(n):
        i = iwork[p.active + a]
        side, j, u = iwork[g.side + i], iwork[g.owned + i], iwork[g.unknown + i]
        at_bound = work[p.lower + a] if side == LOWER else work[p.upper + a] if side == UPPER else 0.0
        if j != ABSENT:
            coefficient = work[form.entries[constraints[i].entry].coefficient]
            if side == BASIC:
                work[g.fixed + j] = -work[p.q + a] / coefficient
            else:
                work[g.rhs + j] = coefficient * at_bound
        elif side == BASIC:
            work[g.rhs + u] = -work[p.q + a]
        else:
            work[g.fixed + u] = at_bound
    # 2. columns of what is no unknown, to the right
    for r in range(g.size):
        if iwork[g.free + r] == 0:
            work[g.rhs + r] = work[g.fixed + r]
            continue
        b = work[g.rhs + r]
        for k in range(iwork[g.row_start + r], iwork[g.row_start + r + 1]):
            b -= work[g.base + k] * work[g.fixed + iwork[g.column + k]]
        work[g.rhs + r] = b
    sparse_lu.solve(g.values, g.factors, g.index, g.rhs, g.x, work, iwork)
    # 3. z and w of the rows
    for a in range(n):
        i = iwork[p.active + a]
        side, j, u = iwork[g.side + i], iwork[g.owned + i], iwork[g.unknown + i]
        w, _ = row_sum(a, constraints[i], form, g, memory)
        work[p.w + a] = w
        work[p.z + a] = work[p.lower + a] if side == LOWER else work[p.upper + a]
        if side == BASIC and j != ABSENT:
            lacking = 0.0
            for k in range(iwork[g.row_start + j], iwork[g.row_start + j + 1]):
                lacking += work[g.base + k] * work[g.x + iwork[g.column + k]]
            work[p.z + a] = lacking / work[form.entries[constraints[i].entry].coefficient]
        elif side == BASIC:
            work[p.z + a] = work[g.x + u]


@tiny
def row_sum(a, c, form, g, memory):
    """(``H dv + D z + q`` of the a-th active row, the sum of the magnitudes of its terms)."""
    work, p = memory.work, form.plan[0]
    w = work[p.q + a]
    terms = abs(w)
    for k in range(c.entry, c.entry_end):
        term = work[form.entries[k].coefficient] * work[g.x + form.entries[k].dof]
        w += term
        terms += abs(term)
    for k in range(c.coupling, c.coupling_end):
        couple = form.couplings[k]
        term = couple.sign * work[couple.coefficient] * work[g.x + memory.iwork[g.unknown + couple.constraint]]
        w += term
        terms += abs(term)
    return w, terms


@kernel
def _wrong_signs(n, form, g, memory):
    """(count, last) of the rows that belong on another side, which are marked."""
    work, iwork, p = memory.work, memory.iwork, form.plan[0]
    count, last = 0, ABSENT
    for a in range(n):
        i = iwork[p.active + a]
        z, w, lower, upper = work[p.z + a], work[p.w + a], work[p.lower + a], work[p.upper + a]
        old = new = iwork[g.side + i]
        _, terms = row_sum(a, form.constraints[i], form, g, memory)
        if old == BASIC:
            if max(lower - z, z - upper) * work[p.W + i] > ROUNDING * terms:
                new = LOWER if z < lower else UPPER
        elif lower < upper and (-w if old == LOWER else w) > ROUNDING * terms:
            new = BASIC
        if new != old:
            mark(i, old, new, g, iwork)
            count += 1
            last = i
    return count, last


@kernel
def imbalance(n, form, g, memory):
    """Largest entry of ``M_hat dv - B z``, as a velocity; NaN where one is. Out: the right-hand side."""
    work, iwork, p = memory.work, memory.iwork, form.plan[0]
    for r in range(g.n_dofs):
        work[g.rhs + r] = 0.0
    for a in range(n):
        c = form.constraints[iwork[p.active + a]]
        for k in range(c.input, c.input_end):
            work[g.rhs + form.inputs[k].dof] += work[form.inputs[k].coefficient] * work[p.z + a]
    largest, invalid = 0.0, 0.0
    for r in range(g.n_dofs):
        left, diagonal, k = -work[g.rhs + r], 1.0, iwork[g.row_start + r]
        while k < iwork[g.row_start + r + 1] and iwork[g.column + k] < g.n_dofs:
            left += work[g.base + k] * work[g.x + iwork[g.column + k]]
            diagonal = work[g.base + k] if iwork[g.column + k] == r else diagonal
            k += 1
        largest, invalid = max(largest, abs(left / diagonal)), invalid + 0.0 * left
    return largest + invalid


@kernel
def _judge(status, n_iter, n, form, g, options, memory):
    """(status, iterations, residual): errors of the rows relative to their terms, and of momentum; z are put within their bounds.

    INEXACT where the largest error is a velocity that is small beside the others; see `nsds.schemes.problem.box.solve`.
    """
    work, iwork, p = memory.work, memory.iwork, form.plan[0]
    merit, largest, scale, invalid = 0.0, 0.0, 0.0, 0.0
    for a in range(n):
        i = iwork[p.active + a]
        z = min(max(work[p.z + a], work[p.lower + a]), work[p.upper + a])
        w, terms = row_sum(a, form.constraints[i], form, g, memory)
        off = excess(w, 0.0, work[p.lower + a], work[p.upper + a], z) + abs(z - work[p.z + a]) * work[p.W + i]
        work[p.z + a] = z
        merit += (off / max(terms, UNDERFLOW)) ** 2 if off > 0.0 else 0.0
        largest, scale, invalid = max(largest, off), max(scale, abs(work[p.q + a])), invalid + 0.0 * w + 0.0 * z
    lost = imbalance(n, form, g, memory)
    merit, balance = math.sqrt(merit), lost / max(scale, UNDERFLOW)
    work[p.info], work[p.info + 1] = n_iter, max(merit, balance) + invalid
    if not invalid + lost < math.inf:
        return NON_FINITE, n_iter, math.inf
    if (merit <= options.tol or largest <= work[p.rounding]) and (balance <= options.tol or lost <= work[p.rounding]):
        return CONVERGED, n_iter, max(merit, balance)
    if max(largest, lost) <= options.inexact * scale:
        return INEXACT, n_iter, max(largest, lost) / scale
    return STALLED if status == CONVERGED else status, n_iter, max(merit, balance)


@kernel
def refresh(form, g, memory):
    """Entries of the matrix from the values of M_hat, H, B and D that iterations have changed; the estimate of the diagonal of W."""
    work, iwork, p = memory.work, memory.iwork, form.plan[0]
    # 1. entries
    for k in range(g.nnz):
        work[g.base + k] = 0.0
    for k in range(g.n_sources):
        sign = float(iwork[g.sources + 2 * g.n_sources + k])
        work[g.base + iwork[g.sources + g.n_sources + k]] += sign * work[iwork[g.sources + k]]
    iwork[g.known] = 0
    # 2. diagonals: of M_hat, then of H diag(M_hat)^-1 B + D
    for r in range(g.n_dofs):
        k = iwork[g.row_start + r]
        while iwork[g.column + k] != r:
            k += 1
        work[g.rhs + r] = work[g.base + k]
    for i in range(form.constraints.size):
        c, size = form.constraints[i], 0.0
        for k in range(c.entry, c.entry_end):
            size += work[form.entries[k].coefficient] ** 2 / abs(work[g.rhs + form.entries[k].dof])
        for k in range(c.coupling, c.coupling_end):
            size += abs(work[form.couplings[k].coefficient]) if form.couplings[k].constraint == i else 0.0
        work[p.W + i] = size if size > 0.0 else 1.0


@inlined
def end_motion(n, h, theta, s, memory):
    """Velocities, lambda and impulses of the solution; the positions by (10.14). False if not finite."""
    mem, work, iwork, form, g = memory.mem, memory.work, memory.iwork, s.linear, s.mixed[0]
    p, zero = form.plan[0], 0.0
    # 1. multipliers and impulses
    for a in range(n):
        accept(work[p.z + a], h, form.constraints[iwork[p.active + a]], form.inputs, p.touched, memory)
    # 2. velocities and positions
    for k in range(form.parts.size):
        part = form.parts[k]
        for e in range(part.count):
            q, dof = part.q + e * part.stride, part.dof + e * part.n
            iwork[p.touched + part.body + e] = 0
            for i in range(part.n):
                v = mem[q + part.n + i] = mem[q + part.n + i] + work[g.x + dof + i]
                mem[q + i] += h * (theta * v + (1.0 - theta) * work[p.v_old + dof + i])
                zero += 0.0 * mem[q + i]
    return zero == 0.0
