"""One step of a linear first-order system whose operators are constant ([Notes], 9.3.3; eqs 9.46–9.49).

With ``G = h (M - h theta A)^-1``, prepared once, and the weights of the scheme (see `nsds.schemes.first_order.euler_moreau`)

    x_free = x_k + G [ A x_k + theta s_{k+1} + (1-theta) s_k + (1 - input) r_k ],      s = b + T u
    w = (input output C G B + D) lambda + C (output x_free + (1-output) x_k) + e,      w and lambda by the law
    x_{k+1} = x_free + input G r,  r = B lambda

The zero-order hold is the same with another G, the integral of ``exp(A s)`` over the step.
"""

import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import inlined, kernel, view
from nsds.model.control import has_controls
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT, DENSE, DIAGONAL, SPARSE, table
from nsds.model.records import STEP
from nsds.schemes.first_order import tiles  # noqa: F401
from nsds.schemes.first_order.basis_reuse import LARGEST, NO_BASIS, keep_basis, try_last_basis
from nsds.schemes.first_order.functions import blame, cause_of, evaluate_bounds, source  # noqa: F401
from nsds.schemes.linear_algebra import apply_inverse, inverse_of, subtract_product, weighted_sum
from nsds.schemes.memory import Prepared, require_affordable
from nsds.schemes.problem.assemble import assemble
from nsds.schemes.problem.box import outputs_of_cones, rounding_of
from nsds.schemes.problem.branches import COLUMNS, LARGEST_LOOKED_AT, note_several, note_unstable, place_branches, solve_near
from nsds.schemes.problem.mixed import MIXED, SMALLEST, VECTORS, equations, is_cheaper, place_mixed, solve_mixed
from nsds.schemes.problem.tables import as_they_are, bodies_of, number_of_pairs, ordered, place_problem, place_vectors, store_inverse
from nsds.solvers.table import find
from nsds.status import CONVERGED, NON_FINITE

# For each part: G, the product G A if it is stored, source at t_k, and ``G s`` if the source is constant.
OPERATOR = table("kind", "data", "data_stride", "index", "index_stride", "n_lower", "n_upper", "product", "source", "increment", "constant")
PLAN = table(
    # one-step problem and solver
    "W", "q", "z", "w", "lower", "upper", "info", "solver", "n_solver", "isolver", "n_isolver",
    # scratch of one body; x_old: states at the start; driven: bounds are functions of time; rounding: of q
    "rhs", "solution", "scratch", "x_old", "driven", "rounding", "dofs",
    # timed: outputs depend on time; controlled: controls are present; n_cone: multipliers of cones; mixed: W is not formed
    "timed", "controlled", "n_cone", "mixed",
    # basis of the last step, see `nsds.schemes.first_order.basis_reuse`
    "S", "s", "inverse", "side", "pivots", "keeps_basis",
    *COLUMNS,
)  # fmt: skip
_LARGEST_PRODUCT = 64
_INSTEAD = (
    "give A, M, C, B and D in sparse form, and take nsds.euler_moreau and its own choice of a solver, which needs no matrix; "
    "or make what is independent a part of its own"
)


class Options(NamedTuple):
    """Parameters of the step."""

    h: float
    source_weight: float  # of the newer source
    source_lag: float  # how far before t_{k+1} that acts
    input_weight: float  # of r in the equation of x
    output_weight: float  # of x_{k+1} in the relation


class Tables(NamedTuple):
    """Tables of one model that a step reads; constraints, with their entries, are in the order of the one-step problem."""

    parts: np.ndarray  # PART, one row a system
    operators: np.ndarray  # OPERATOR, one row a system
    relations: np.ndarray  # RELATION, one row an element of an interaction
    constraints: np.ndarray  # CONSTRAINT
    entries: np.ndarray  # ENTRY, of C
    inputs: np.ndarray  # ENTRY, of B
    couplings: np.ndarray  # COUPLING
    plan: np.ndarray  # PLAN, one row
    W_row: np.ndarray  # pattern of W, by rows
    W_column: np.ndarray
    mixed: np.ndarray  # MIXED, one row where W is not formed


def prepare(records, layout, inverses, options, method, work, iwork, terms=None):
    """Store G and G A, order the unknowns, and assemble the matrix of the one-step problem of all members, or its mixed equations.

    inverses: for each part, (kind, result of `invert`) of G; terms: of the `weighted_sum` whose inverse G is, None if it is none.
    """
    parts = layout.parts
    # 1. G, G A, and memory for sources
    operators = np.zeros(parts.size, OPERATOR)
    for part, operator, name, inverse in zip(parts, operators, layout.part_names, inverses, strict=True):
        store_inverse(operator, inverse, work, iwork)
        operator["product"] = _product(records[name], part, *inverse[:2], work)
        operator["source"], operator["increment"] = (work.reserve(part["count"] * part["n"]) for _ in range(2))
    # 2. one-step problem
    bodies = bodies_of(parts, operators)
    mixed = _mixed(records, layout, bodies, options, method, work, iwork, terms)
    tables = layout.constraints, layout.entries, layout.inputs, layout.couplings
    unknowns = ordered(*tables, bodies["kind"]) if mixed.size == 0 else as_they_are(layout.constraints, layout.couplings)
    constraints, order = unknowns.constraints, unknowns.order
    plan = _plan(parts, unknowns, method if mixed.size == 0 else None, work, iwork)
    for vector in VECTORS if mixed.size else ():
        mixed[vector] = plan[vector]
    plan["controlled"], plan["timed"] = has_controls(records), (layout.relations["e_function"] != ABSENT).any()
    # 3. flags; u may be changed by a controller, or between steps
    changing = [parts[field + "_function"] != ABSENT for field in "bTu"] + [parts["u"] != ABSENT]
    operators["constant"] = ~np.any(changing, axis=0)
    plan["driven"] = (layout.relations["bounds_function"] != ABSENT).any()
    plan["n_cone"] = (constraints["y"] == ABSENT).sum()
    # 4. bounds, and the matrix, once: it does not depend on the state
    n, p, work, iwork = constraints.size, plan[0], work.array(), iwork.array(np.int64)
    work[:, p["lower"] : p["lower"] + n], work[:, p["upper"] : p["upper"] + n] = layout.lower[:, order], layout.upper[:, order]
    s = Tables(parts, operators, layout.relations, constraints, layout.entries, layout.inputs, unknowns.couplings, plan, unknowns.row,
               unknowns.column, mixed)  # fmt: skip
    scale = options.input_weight * options.output_weight
    for member in range(records.size if mixed.size == 0 else 0):
        assemble(plan, bodies, constraints, s.entries, s.inputs, s.couplings, unknowns.every, (s.W_row, s.W_column, unknowns.transpose),
                 scale, 0, work[member], iwork[member])  # fmt: skip
    return Prepared(s, layout.functions, options, work, iwork, sys.modules[__name__], layout)


def _mixed(records, layout, bodies, options, method, work, iwork, terms):
    """Table `MIXED`, without a row where the matrix of the one-step problem is the cheaper form, or a solver was chosen that wants it."""
    n, tables = layout.constraints.size, (layout.constraints, layout.entries, layout.inputs, layout.couplings)
    n_pairs = number_of_pairs(*tables, bodies["kind"])
    may_be_mixed = terms is not None and n > SMALLEST and method is find("auto", "relay")
    if may_be_mixed and n_pairs > n + layout.entries.size + layout.inputs.size + layout.couplings.size:
        planned = equations(*_matrices(records, layout, options, work, terms))
        if is_cheaper(planned, n_pairs):
            return place_mixed(planned, work, iwork)
    require_affordable("the matrix of the one-step problem, all rows of which act on one system,", n_pairs, _INSTEAD)
    return np.zeros(0, MIXED)


def _matrices(records, layout, options, work, terms):
    """Sparse M_hat, B, C, D of all members in the numbers of their tables; B with the weights of the step."""
    from scipy.sparse import block_diag, csr_array, diags_array

    n, N, values = layout.constraints.size, int((layout.parts["count"] * layout.parts["n"]).sum()), work.array()
    owner = {column: np.repeat(np.arange(n), layout.constraints[column + "_end"] - layout.constraints[column])
             for column in ("entry", "input", "coupling")}  # fmt: skip
    sums = [weighted_sum(records[name].reshape(records.size, -1), part, terms)
            for name, part in zip(layout.part_names, layout.parts, strict=True)]  # fmt: skip
    A, B, C, D = [], [], [], []
    for member in range(records.size):
        blocks = [diags_array(each) if kind == DIAGONAL else each for kind, of_part in sums for each in of_part[member]]
        A.append(block_diag(blocks, format="csr"))
        scaled = options.input_weight * options.output_weight * values[member, layout.inputs["coefficient"]]
        B.append(csr_array((scaled, (layout.inputs["dof"], owner["input"])), shape=(N, n)))
        C.append(csr_array((values[member, layout.entries["coefficient"]], (owner["entry"], layout.entries["dof"])), shape=(n, N)))
        coupled = layout.couplings["sign"] * values[member, layout.couplings["coefficient"]]
        D.append(csr_array((coupled, (owner["coupling"], layout.couplings["constraint"])), shape=(n, n)))
    return A, B, C, D


def terms_of(h, theta):
    """Terms of the iteration matrix ``M/h - theta A``, for `nsds.schemes.linear_algebra.weighted_sum`."""
    return [(1.0 / h, "M"), (-theta, "A")]


def inverse_of_part(records, part, name, h, theta):
    """(kind, result of `invert`) of ``(M/h - theta A)^-1`` for the elements of a linear part."""
    return inverse_of(records, part, name, terms_of(h, theta), f"M - h theta A is singular (h = {h:g}, theta = {theta:g})")


def _product(records, part, kind, data, work):
    """Offset of ``G A``; ABSENT for sparse and large matrices, which are multiplied in sequence."""
    n, shape = part["n"].item(), (*data.shape[:2],)
    fields = records.reshape(records.shape[0], -1)
    if kind == DIAGONAL:
        return work.store(data * fields["A"])
    if kind == SPARSE or n > _LARGEST_PRODUCT or part["A_kind"] == SPARSE:
        return ABSENT
    A = fields["A"]
    G = data.reshape(*shape, n, n)
    return work.store(G @ A if part["A_kind"] == DENSE else G * A[..., None, :])


def _plan(parts, unknowns, method, work, iwork):
    """Reserve the arrays of the one-step problem, the scratch of one body, and room for the set of the last step where it is kept.

    method: None where W is not formed.
    """
    n = unknowns.constraints.size
    body, dofs = parts["n"].max(), (parts["count"] * parts["n"]).sum()
    plan = np.zeros(1, PLAN)
    if method is None:
        place_vectors(plan, n, work)
        plan["mixed"] = 1
    else:
        place_problem(plan, unknowns, method, work, iwork)
    place_branches(plan, n, work, iwork)
    work.place(plan, rhs=body, solution=body, scratch=body, x_old=dofs, dofs=dofs)
    if method is find("auto", "relay") and 0 < n <= LARGEST:
        plan["keeps_basis"] = 1
        work.place(plan, S=n * n, s=n, inverse=n * n)
        iwork.place(plan, side=n, pivots=n)
    return plan


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: sources at t, increments of constant ones, outputs of the state."""
    mem, work, iwork = memory.mem, memory.work, memory.iwork
    constraints, entries, couplings, p = s.constraints, s.entries, s.couplings, s.plan[0]
    # 1. sources, and G s of constant ones
    for a in range(s.parts.size):
        part, o = s.parts[a], s.operators[a]
        for e in range(part.count):
            s_k = o.source + e * part.n
            source(t, part, e, view(mem, part.q + e * part.stride, part.n), functions, memory, s_k)
            data, index = o.data + e * o.data_stride, o.index + e * o.index_stride
            apply_inverse(o.kind, part.n, o.n_lower, o.n_upper, data, index, work, iwork, s_k, o.increment + e * part.n, p.scratch)
    # 2. outputs of the state
    _evaluate_outputs(t, s.relations, functions, memory)
    for i in range(constraints.size):
        c = constraints[i]
        y = work[c.base] + (work[c.h] if p.timed and c.h != ABSENT else 0.0)
        for k in range(c.entry, c.entry_end):
            y += work[entries[k].coefficient] * mem[entries[k].q]
        for k in range(c.coupling, c.coupling_end):
            if couplings[k].sign > 0:
                y += work[couplings[k].coefficient] * mem[constraints[couplings[k].constraint].lam]
        if c.y != ABSENT and memory.imem[STEP] == 0:
            mem[c.y] = y
    # 3. whether the problem may have several solutions; basis by lambda of the record, unless it is an unstable one
    iwork[p.open] = -1
    if p.mixed == 0:
        note_several(LARGEST_LOOKED_AT, constraints.size, s.W_row, s.W_column, p, memory)
    if p.keeps_basis != 0:
        for i in range(constraints.size):
            work[p.z + i] = mem[constraints[i].lam]
        iwork[p.side] = NO_BASIS
        keep_basis(constraints.size, s.plan, s.W_row, s.W_column, memory)
        if note_unstable(constraints.size, s.W_row, s.W_column, p, memory):
            iwork[p.side] = NO_BASIS
    if memory.imem[STEP] == 0:  # a restarted record holds y and r of its last step
        _set_input(s.parts, constraints, s.inputs, memory)
    return CONVERGED


@inlined
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, n_iter, residual)."""
    functions, mem, work, iwork = calls.functions, memory.mem, memory.work, memory.iwork
    constraints, entries, inputs, W_row, W_column, p = s.constraints, s.entries, s.inputs, s.W_row, s.W_column, s.plan[0]
    h, input_weight, output_weight = options.h, options.input_weight, options.output_weight
    # 1. free motion
    _free_motion(t_new, s.parts, s.operators, p, functions, options, memory)
    status, n_iter, residual, zero = CONVERGED, 0, 0.0, 0.0
    n = constraints.size
    # 2. vector q
    if n > 0:
        if p.timed != 0:
            _evaluate_outputs(t_new - (1.0 - output_weight) * h, s.relations, functions, memory)
        # h + C x at the point of the relation
        q, z, w = p.q, p.z, p.w
        for i in range(n):
            c = constraints[i]
            q_i = work[c.base]
            if p.timed != 0 and c.h != ABSENT:
                q_i += work[c.h]
            for k in range(c.entry, c.entry_end):
                entry = entries[k]
                x = mem[entry.q]
                if output_weight != 1.0:
                    x = output_weight * x + (1.0 - output_weight) * work[p.x_old + entry.dof]
                q_i += work[entry.coefficient] * x
            work[q + i] = q_i
            zero += 0.0 * q_i
        # 3. basis of the last step, else a solver
        found = False
        if p.driven != 0 and evaluate_bounds(t_new, s.relations, constraints, p, functions, memory) and p.keeps_basis != 0:
            iwork[p.side] = NO_BASIS
        if p.keeps_basis != 0:
            found, residual = try_last_basis(n, p, W_row, W_column, memory)
            found &= residual <= calls.solver_options.tol
            iwork[p.open] = max(iwork[p.open], 0) if found else iwork[p.open]
        if not found:
            work[p.rounding] = rounding_of(_largest_terms(output_weight, constraints, entries, p, memory))
            for i in range(n):
                work[z + i] = mem[constraints[i].lam]
            if p.mixed != 0:
                status = solve_mixed(s.mixed, calls.solver_options, memory)
            else:
                status = solve_near(n, W_row, W_column, p, calls.solver, calls.solver_options, memory)
            n_iter, residual = int(work[p.info]), work[p.info + 1]
        # 4. multipliers, outputs and input
        if p.n_cone > 0:
            outputs_of_cones(constraints, s.couplings, z, w, work)
        for i in range(n):
            c = constraints[i]
            lam = work[z + i]
            zero += 0.0 * lam + 0.0 * work[w + i]
            mem[c.lam] = lam
            if c.y != ABSENT:
                mem[c.y] = work[w + i]
            for k in range(c.input, c.input_end):
                mem[inputs[k].q + inputs[k].n] += work[inputs[k].coefficient] * lam
        # 5. basis for the next step; an unstable solution must not be kept
        if not found and p.keeps_basis != 0:
            keep_basis(n, s.plan, W_row, W_column, memory)
            iwork[p.side] = NO_BASIS if iwork[p.unstable] != 0 else iwork[p.side]
    if not _end_motion(input_weight, n > 0, s.parts, s.operators, p, memory) or zero != 0.0:
        status = NON_FINITE
    return status, n_iter, residual


@kernel
def _largest_terms(output_weight, constraints, entries, p, memory):
    """The largest sum of magnitudes that cancel in a row of q, and q."""
    work = memory.work
    most = 0.0
    for i in range(constraints.size):
        c = constraints[i]
        terms = abs(work[c.base]) + abs(work[p.q + i])
        for k in range(c.entry, c.entry_end):
            x, x_old = memory.mem[entries[k].q], work[p.x_old + entries[k].dof] if output_weight != 1.0 else 0.0
            terms += abs(work[entries[k].coefficient]) * (output_weight * abs(x) + (1.0 - output_weight) * abs(x_old))
        most = max(most, terms)
    return most


@inlined
def _free_motion(t_new, parts, operators, p, functions, options, memory):
    """``x <- x_free``, ``r <- 0``; x_k is kept if the relation needs it."""
    mem, work = memory.mem, memory.work
    h, theta, lag = options.h, options.source_weight, options.source_lag
    input_weight, output_weight = options.input_weight, options.output_weight
    rhs, solution = p.rhs, p.solution
    for a in range(parts.size):
        part, o = parts[a], operators[a]
        n = part.n
        # 1. right-hand side: sources and the last input
        for e in range(part.count):
            q = part.q + e * part.stride
            data, index = o.data + e * o.data_stride, o.index + e * o.index_stride
            if output_weight != 1.0:
                for i in range(n):
                    work[p.x_old + part.dof + e * n + i] = mem[q + i]
            for i in range(n):
                work[rhs + i] = 0.0
            is_plain = o.constant != 0 and input_weight == 1.0
            if not is_plain:
                _weighted_source(t_new - lag, t_new - h, theta, p.controlled, part, o, e, functions, memory, rhs)
                for i in range(n):
                    work[rhs + i] += (1.0 - input_weight) * mem[q + n + i]
            # 2. G times it; with a stored product G A the rest is a constant increment, if sources are
            if o.product == ABSENT:
                for i in range(n):
                    work[solution + i] = mem[q + i]
                subtract_product(part.A_kind, n, part.A_nnz, mem, memory.imem, part.A + e * part.stride, -1.0, work, solution, rhs)
            if o.product == ABSENT or not is_plain:
                apply_inverse(o.kind, n, o.n_lower, o.n_upper, data, index, work, memory.iwork, rhs, solution, p.scratch)
            else:
                for i in range(n):
                    work[solution + i] = 0.0
            if is_plain:
                for i in range(n):
                    work[solution + i] += work[o.increment + e * n + i]
            if o.product != ABSENT:
                _add_product(o.kind, n, o.product + e * o.data_stride, q, solution, memory)
            # 3. new state
            for i in range(n):
                mem[q + i] += work[solution + i]
                mem[q + n + i] = 0.0


@inlined
def _add_product(kind, n, product, q, out, memory):
    """``out += G A x`` with the stored product."""
    work = memory.work
    if kind == DENSE:
        for i in range(n):
            s = 0.0
            for j in range(n):
                s += work[product + i * n + j] * memory.mem[q + j]
            work[out + i] += s
    else:
        for i in range(n):
            work[out + i] += work[product + i] * memory.mem[q + i]


@kernel
def _weighted_source(t, t_old, theta, controlled, part, o, e, functions, memory, out):
    """``theta s(t) + (1-theta) s_k``; s is kept for the next step, unless a controller may change it in between."""
    work = memory.work
    s, n = o.source + e * part.n, part.n
    x = view(memory.mem, part.q + e * part.stride, n)
    if controlled != 0:
        source(t_old, part, e, x, functions, memory, s)
    for i in range(n):
        work[out + i] += (1.0 - theta) * work[s + i]
    if o.constant == 0:
        source(t, part, e, x, functions, memory, s)
    for i in range(n):
        work[out + i] += theta * work[s + i]


@inlined
def _end_motion(weight, has_input, parts, operators, p, memory):
    """``x <- x_free + weight G r``. Returns False if x or r is not finite."""
    mem, work = memory.mem, memory.work
    zero = 0.0
    for a in range(parts.size):
        part, o = parts[a], operators[a]
        n = part.n
        for e in range(part.count):
            q = part.q + e * part.stride
            if has_input:
                for i in range(n):
                    work[p.rhs + i] = weight * mem[q + n + i]
                data, index = o.data + e * o.data_stride, o.index + e * o.index_stride
                apply_inverse(o.kind, n, o.n_lower, o.n_upper, data, index, work, memory.iwork, p.rhs, p.solution, p.scratch)
                for i in range(n):
                    mem[q + i] += work[p.solution + i]
            for i in range(n):
                zero += 0.0 * mem[q + i] + 0.0 * mem[q + n + i]
    return zero == 0.0


@kernel
def _evaluate_outputs(t, relations, functions, memory):
    """e(t) of the relations that have a function for it, into their h."""
    nothing = view(memory.mem, 0, 0)
    for a in range(relations.size):
        r = relations[a]
        if r.e_function != ABSENT:
            call_function(functions, r.e_function, (t, nothing, nothing, view(memory.mem, r.z, r.n_z), view(memory.work, r.h, r.m)))


@kernel
def _set_input(parts, constraints, inputs, memory):
    """``r = B lambda`` with the multipliers in mem."""
    mem = memory.mem
    for a in range(parts.size):
        part = parts[a]
        for e in range(part.count):
            for i in range(part.n):
                mem[part.q + e * part.stride + part.n + i] = 0.0
    for i in range(constraints.size):
        for k in range(constraints[i].input, constraints[i].input_end):
            mem[inputs[k].q + inputs[k].n] += memory.work[inputs[k].coefficient] * mem[constraints[i].lam]
