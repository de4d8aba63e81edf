"""One step of a linear first-order system with many sparse rows: its state and multipliers together, by sparse factors.

    (M/h - theta A) d - input B lambda = A x_k + theta s_{k+1} + (1-theta) s_k + (1 - input) r_k,      s = b + T u
    w = output C d + D lambda + C x_k + e,      w and lambda by the law
    x_{k+1} = x_k + d

It is the step of `nsds.schemes.first_order.linear`, with the problem of `nsds.schemes.problem.mixed` in place of G and of a matrix of the
rows: one sparse solution for each set of basic rows gives the free motion, the multipliers and their effect.
"""

import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import inlined, kernel, view
from nsds.model.layout import ABSENT, DIAGONAL, table
from nsds.model.records import STEP
from nsds.schemes.first_order.functions import blame, cause_of, evaluate_bounds, source  # noqa: F401
from nsds.schemes.first_order.linear import (
    evaluate_outputs,
    inverse_of_part,
    set_flags,
    set_input,
    state_bounds,
    state_outputs,
    terms_of,
    weighted_source,
)
from nsds.schemes.linear_algebra import kind_of_sum, subtract_product, weighted_sum
from nsds.schemes.memory import Prepared
from nsds.schemes.problem.box import outputs_of_cones, rounding_of
from nsds.schemes.problem.mixed import equations, is_cheaper, judge, place_mixed, solve_sets
from nsds.schemes.problem.tables import number_of_pairs
from nsds.solvers.table import find
from nsds.status import CONVERGED, NON_FINITE

SMALLEST = 60  # rows up to which W is formed
# For each part: its source at t_k, and whether it is constant.
SOURCE = table("source", "constant")
# timed: outputs depend on time; controlled: controls are present; driven: bounds are functions of time; n_cone: multipliers of cones
FLAGS = table("timed", "controlled", "driven", "n_cone")


class Tables(NamedTuple):
    """Tables of one model that a step reads, and the one-step problem of all rows."""

    parts: np.ndarray  # PART, one row a system
    sources: np.ndarray  # SOURCE, one row a system
    relations: np.ndarray  # RELATION, one row an element of an interaction
    constraints: np.ndarray  # CONSTRAINT
    entries: np.ndarray  # ENTRY, of C
    inputs: np.ndarray  # ENTRY, of B
    couplings: np.ndarray  # COUPLING
    flags: np.ndarray  # FLAGS, one row
    mixed: np.ndarray  # MIXED, one row


def planned(records, layout, options, theta, method, work):
    """`Equations` of all members; None where the matrix of the one-step problem is cheaper, or a solver was chosen that wants it."""
    tables = layout.constraints, layout.entries, layout.inputs, layout.couplings
    if layout.constraints.size <= SMALLEST or method is not find("auto", "relay"):
        return None
    kinds = np.repeat([kind_of_sum(part, terms_of(options.h, theta)) for part in layout.parts], layout.parts["count"])
    n_pairs = number_of_pairs(*tables, kinds)
    if n_pairs <= sum(each.size for each in tables):
        return None
    found = equations(*_matrices(records, layout, options, theta, work))
    return found if is_cheaper(found, n_pairs) else None


def _matrices(records, layout, options, theta, work):
    """Sparse M_hat, B, C, D of all members in the numbers of their tables; B and C with the weights of the step."""
    from scipy.sparse import block_diag, csr_array, diags_array

    n, N, values = layout.constraints.size, int((layout.parts["count"] * layout.parts["n"]).sum()), work.array()
    owner = {column: np.repeat(np.arange(n), layout.constraints[column + "_end"] - layout.constraints[column])
             for column in ("entry", "input", "coupling")}  # fmt: skip
    sums = [weighted_sum(records[name].reshape(records.size, -1), part, terms_of(options.h, theta))
            for name, part in zip(layout.part_names, layout.parts, strict=True)]  # fmt: skip
    A, B, C, D = [], [], [], []
    for member in range(records.size):
        blocks = [diags_array(each) if kind == DIAGONAL else each for kind, of_part in sums for each in of_part[member]]
        A.append(block_diag(blocks, format="csr"))
        of_input = options.input_weight * values[member, layout.inputs["coefficient"]]
        of_output = options.output_weight * values[member, layout.entries["coefficient"]]
        B.append(csr_array((of_input, (layout.inputs["dof"], owner["input"])), shape=(N, n)))
        C.append(csr_array((of_output, (owner["entry"], layout.entries["dof"])), shape=(n, N)))
        coupled = layout.couplings["sign"] * values[member, layout.couplings["coefficient"]]
        D.append(csr_array((coupled, (owner["coupling"], layout.couplings["constraint"])), shape=(n, n)))
    return A, B, C, D


def prepare(records, layout, options, theta, planned, work, iwork):
    """Reserve memory for sources, and state the one-step problem of all members by its `Equations`."""
    parts, sources, flags = layout.parts, np.zeros(layout.parts.size, SOURCE), np.zeros(1, FLAGS)
    # 1. iteration matrices have to be regular, also without rows; the error names the part
    for part, name in zip(parts if not planned.dominant else (), layout.part_names, strict=False):
        inverse_of_part(records[name], part, name, options.h, theta)
    # 2. memory
    for part, of_part in zip(parts, sources, strict=True):
        of_part["source"] = work.reserve(part["count"] * part["n"])
    set_flags(flags, sources, records, layout)
    mixed = place_mixed(planned, work, iwork)
    # 3. contents of all members
    work, iwork = work.array(), iwork.array(np.int64)
    state_bounds(mixed, layout, np.arange(layout.constraints.size), work)
    s = Tables(parts, sources, layout.relations, layout.constraints, layout.entries, layout.inputs, layout.couplings, flags, mixed)
    return Prepared(s, layout.functions, options, work, iwork, sys.modules[__name__], layout)


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: sources at t, outputs of the state."""
    for a in range(s.parts.size):
        part = s.parts[a]
        for e in range(part.count):
            x = view(memory.mem, part.q + e * part.stride, part.n)
            source(t, part, e, x, functions, memory, s.sources[a].source + e * part.n)
    state_outputs(t, s.flags[0].timed, s.relations, s.constraints, s.entries, s.couplings, functions, memory)
    if memory.imem[STEP] == 0:  # a restarted record holds y and r of its last step
        set_input(s.parts, s.constraints, s.inputs, memory)
    return CONVERGED


@inlined
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, n_iter, residual)."""
    functions, work, flags, m = calls.functions, memory.work, s.flags[0], s.mixed[0]
    # 1. right-hand sides: of the state, and of the rows
    _state_rates(t_new, s, functions, options, memory)
    if flags.timed != 0:
        evaluate_outputs(t_new - (1.0 - options.output_weight) * options.h, s.relations, functions, memory)
    _state_rows(s, memory)
    # 2. sets of basic rows, from the multipliers of the last step
    if flags.driven != 0:
        evaluate_bounds(t_new, s.relations, s.constraints, m, functions, memory)
    status, n_iter = solve_sets(m, calls.solver_options, memory)
    work[m.rounding] = rounding_of(_largest_terms(m, memory))
    status, residual = judge(status, m, calls.solver_options, memory)
    # 3. multipliers, outputs, input and state
    if flags.n_cone > 0:
        outputs_of_cones(s.constraints, s.couplings, m.z, m.w, work)
    return status if _end(s, memory) else NON_FINITE, n_iter, residual


@kernel
def _state_rates(t_new, s, functions, options, memory):
    """``A x_k + theta s_{k+1} + (1-theta) s_k + (1 - input) r_k`` of all parts into work[f:], x_k into work[x:]."""
    mem, work, m = memory.mem, memory.work, s.mixed[0]
    for a in range(s.parts.size):
        part = s.parts[a]
        n = part.n
        for e in range(part.count):
            q, x, f = part.q + e * part.stride, m.x + part.dof + e * n, m.f + part.dof + e * n
            for i in range(n):
                work[x + i] = mem[q + i]
                work[f + i] = (1.0 - options.input_weight) * mem[q + n + i]
            weighted_source(t_new - options.source_lag, t_new - options.h, options.source_weight, s.flags[0].controlled, part, s.sources[a],
                            e, functions, memory, f)  # fmt: skip
            subtract_product(part.A_kind, n, part.A_nnz, mem, memory.imem, part.A + e * part.stride, -1.0, work, x, f)


@kernel
def _state_rows(s, memory):
    """Rows ``C x_k + e`` into work[q:], and the multipliers of the last step into work[z:]."""
    work, m = memory.work, s.mixed[0]
    for i in range(m.n):
        c = s.constraints[i]
        row = work[c.base]
        if s.flags[0].timed != 0 and c.h != ABSENT:
            row += work[c.h]
        for k in range(c.entry, c.entry_end):
            row += work[s.entries[k].coefficient] * memory.mem[s.entries[k].q]
        work[m.q + i], work[m.z + i] = row, memory.mem[c.lam]


@kernel
def _largest_terms(m, memory):
    """The largest sum of magnitudes that cancel in a row without its multipliers."""
    work, iwork, most = memory.work, memory.iwork, 0.0
    for i in range(m.N, m.N + m.n):
        terms = work[m.sizes + i]
        for k in range(iwork[m.row + i], iwork[m.row + i + 1]):
            if iwork[m.column + k] < m.N:
                terms += abs(work[m.given + k] * work[m.solution + iwork[m.column + k]])
        most = max(most, terms)
    return most


@kernel
def _end(s, memory):
    """lambda, y, ``r = B lambda`` and ``x <- x_k + d``. Returns False where one of them, or w, is not finite."""
    mem, work, m, zero = memory.mem, memory.work, s.mixed[0], 0.0
    for i in range(m.n):
        mem[s.constraints[i].lam] = work[m.z + i]
        zero += 0.0 * work[m.z + i] + 0.0 * work[m.w + i]
        if s.constraints[i].y != ABSENT:
            mem[s.constraints[i].y] = work[m.w + i]
    set_input(s.parts, s.constraints, s.inputs, memory)
    for a in range(s.parts.size):
        part = s.parts[a]
        for e in range(part.count):
            q, d = part.q + e * part.stride, m.solution + part.dof + e * part.n
            for i in range(part.n):
                mem[q + i] += work[d + i]
                zero += 0.0 * mem[q + i] + 0.0 * mem[q + part.n + i]
    return zero == 0.0
