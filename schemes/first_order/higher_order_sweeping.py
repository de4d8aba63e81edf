"""Higher-order sweeping process: one-sided constraints of any relative degree, whose state jumps (Acary, Brogliato, Goeleven 2008).

With a uniform relative degree r, ``z_1 = y = C x + e`` and its derivatives ``z_i = C A^(i-1) x + ...`` up to ``i = r`` obey

    dz_i = z_{i+1} dt + dnu_i  (i < r),      dz_r = (...) dt + C A^(r-1) B dnu_r

with measures ``0 <= dnu_i ⟂ z_i+ >= 0`` where ``z_1, ..., z_{i-1} <= 0`` before, else ``dnu_i = 0``. In x, a jump of z_i alone is one
along ``U_i`` with ``C A^(j-1) U_i = delta_ij`` in the span of ``B, A B, ..., A^(r-1) B``: components that y does not observe stay.
Backward Euler with one LCP a step:

    x_{k+1} = x_k + h (A x_{k+1} + s_{k+1}) + sum_{i<r} U_i mu_i + B mu_r,      0 <= mu_i ⟂ z_{i,k+1} >= 0, or mu_i = 0

Math. Program. A 113 (2008) 133–217.
"""

import sys
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._jit import inlined, kernel
from nsds.model.layout import ABSENT, table
from nsds.model.records import STEP
from nsds.schemes.first_order.functions import AT_ONCE, blame, set_windows  # noqa: F401
from nsds.schemes.first_order.relative_degree import ZERO, degrees, inverse_masses, operators
from nsds.schemes.first_order.states import elements_of, gather, gather_sources, scatter
from nsds.schemes.first_order.tables import is_constant, layout_of
from nsds.schemes.memory import Allocator, Prepared
from nsds.schemes.problem.box import solve
from nsds.schemes.problem.tables import Unknowns, place_problem
from nsds.status import CONVERGED, EARLY_SOURCE, NON_FINITE

# One row per unknown of the LCP, the highest derivative of all outputs first: its constraint, and the order of the derivative minus one.
UNKNOWN = table("constraint", "order", "y", "lam")
# n states, m outputs, r relative degree, k = m r unknowns.
PLAN = table(
    # sizes; varies: sources change
    "n", "n_outputs", "degree", "varies",
    # state at both ends of a step (n); source s and the new one (n)
    "x", "x_new", "s", "s_new",
    # from_x, from_s (n, n): x_{k+1} without jumps, from x and s
    "from_x", "from_s",
    # Z, Z_s (k, n): z from x and s; step_x, step_s (k, n): the same after a free step; base (k): constants; unit (k): powers of h
    "Z", "Z_s", "step_x", "step_s", "base", "unit",
    # jump (n, k): directions of jumps in a step; correction (n, k): of z alone; input (n, k): of r
    "jump", "correction", "input",
    # offset (k): z without its part from x; value (k): z at the start of a step; scale (k): sizes of its terms
    "offset", "value", "scale",
    # LCP and its solver
    "W", "q", "z", "w", "lower", "upper", "info", "rounding", "solver", "n_solver", "isolver", "n_isolver",
)  # fmt: skip
_SNAP = 1e-13  # relative to the terms of z_i and of its change in a step: smaller values are zero
_HIDDEN = 1e-12  # relative to the terms: smaller ones do not reach a derivative of y


class Options(NamedTuple):
    """Parameters of the step."""

    h: float


class Tables(NamedTuple):
    """Tables of one model that a step reads."""

    parts: np.ndarray  # PART, one row a system
    elements: np.ndarray  # ELEMENT, one row an element of a system
    relations: np.ndarray  # RELATION, one row an element of an interaction
    unknowns: np.ndarray  # UNKNOWN
    plan: np.ndarray  # PLAN, one row
    W_row: np.ndarray  # all of W, by rows
    W_column: np.ndarray


def prepare(records, mem, options, h, method):
    """Directions of jumps, propagation of x and s by a step, and the matrix of the LCP, dense and for all members."""
    # 1. model, and the matrices of each member
    owner, work, iwork = "higher_order_sweeping", Allocator(records.size), Allocator(records.size)
    layout = layout_of(records, work)
    _require_complementarity(owner, records, layout)
    set_windows(records, AT_ONCE, AT_ONCE)
    constants, c = work.array(), layout.constraints
    members = [_matrices(owner, records[m : m + 1], layout, constants[m], h) for m in range(records.size)]
    if len({member.degree for member in members}) > 1:
        raise ValueError(f"{owner}: all members of an ensemble must have one relative degree, got {[member.degree for member in members]}")
    # 2. unknowns, from the highest derivative down
    m, n, degree = c.size, members[0].from_x.shape[0], members[0].degree
    unknowns = np.zeros(m * degree, UNKNOWN)
    unknowns["constraint"], unknowns["order"] = np.tile(np.arange(m), degree), np.repeat(np.arange(degree)[::-1], m)
    for column in ("y", "lam"):
        unknowns[column] = c[column][unknowns["constraint"]]
    # 3. LCP with a dense pattern
    parts, k = layout.parts, unknowns.size
    plan = np.zeros(1, PLAN)
    plan["n"], plan["n_outputs"], plan["degree"] = n, m, degree
    plan["varies"] = any((parts[field + "_function"] != ABSENT).any() for field in "bTu") or (parts["u"] != ABSENT).any()
    work.place(plan, x=n, x_new=n, s=n, s_new=n, offset=k, value=k, scale=k)
    row, column = np.arange(k + 1) * k, np.tile(np.arange(k), k)
    place_problem(plan, Unknowns(None, None, unknowns, None, row, column, None), method, work, iwork)
    # 4. matrices into the work memory
    for field in Matrices._fields[1:-1]:
        plan[field] = work.store(np.stack([getattr(member, field) for member in members]))
    work, p = work.array(), plan[0]
    work[:, p["W"] : p["W"] + k * k] = [member.W.reshape(-1) for member in members]
    tables = Tables(parts, elements_of(parts), layout.relations, unknowns, plan, row, column)
    return Prepared(tables, layout.functions, Options(h), work, iwork.array(np.int64), sys.modules[__name__], layout)


class Matrices(NamedTuple):
    """Matrices named by the plan, of one member; rows and columns of unknowns from the highest derivative down."""

    degree: int
    from_x: np.ndarray
    from_s: np.ndarray
    Z: np.ndarray
    Z_s: np.ndarray
    step_x: np.ndarray
    step_s: np.ndarray
    base: np.ndarray
    unit: np.ndarray
    jump: np.ndarray
    correction: np.ndarray
    input: np.ndarray
    W: np.ndarray


def _matrices(owner, record, layout, constants, h):
    """`Matrices` of a member, after its relative degree has been determined and checked."""
    from scipy.sparse import block_diag

    # 1. relative degree, and dense operators
    sparse = operators(record, layout, constants)
    degree = _uniform_degree(owner, layout, degrees(*sparse).of_outputs)
    C, A, B, _ = (operator.toarray() for operator in sparse)
    mass = block_diag(inverse_masses(record, layout)).toarray()
    n, m = B.shape
    # 2. Z: derivatives of y from x; K spans the directions of jumps
    orders = range(degree - 1, -1, -1)
    Z = np.vstack([C @ np.linalg.matrix_power(A, i) for i in orders])
    K = np.hstack([np.linalg.matrix_power(A, i) @ B for i in range(degree)])
    _require_positive(owner, layout, Z[:m] @ B)
    # 3. directions in which exactly one z_i jumps
    correction = K @ np.linalg.inv(Z @ K)
    # 4. backward Euler
    try:
        implicit = np.linalg.inv(np.eye(n) - h * A)
    except np.linalg.LinAlgError:
        raise ValueError(f"{owner}: the iteration matrix M - h A is singular (h = {h:g})") from None
    # 5. multipliers are measures; powers of h give them the units of z
    unit = np.repeat([h ** (degree - i) for i in orders], m)
    jumps = np.hstack([B, correction[:, m:]]) * unit
    from_s = h * implicit @ mass
    jump = implicit @ jumps
    base = np.concatenate([np.zeros((degree - 1) * m), constants[layout.constraints["base"]]])
    # s enters z_i as it enters the derivative of z_{i-1}
    Z_s = np.vstack([Z[m:] @ mass, np.zeros((m, n))])
    rate = np.linalg.solve(mass, jumps) / h
    W = Z @ jump / unit[:, None]
    return Matrices(degree, implicit, from_s, Z, Z_s, Z @ implicit, Z @ from_s, base, unit, jump, correction, rate, W)


def _require_complementarity(owner, records, layout):
    """Refuse operators and bounds that change, and rows of other laws."""
    for name, row in zip(layout.relation_names, layout.relations, strict=True):
        if row["bounds_function"] != ABSENT:
            raise ValueError(f"{owner}: interaction '{name}' has bounds that are a function of time: take another scheme")
    if not is_constant(records) or (layout.relations["e_function"] != ABSENT).any():
        raise ValueError(f"{owner}: A, the relations and their e must be linear and constant in time")
    rows = layout.constraints["y"] != ABSENT
    other = ~rows | (layout.lower != 0).any(axis=0) | np.isfinite(layout.upper).any(axis=0)
    if other.any():
        name = _names(layout)[np.flatnonzero(other)[0]]
        raise ValueError(f"{owner}: interaction '{name}' must have the law complementarity; relays and equations want nsds.euler_moreau")


def _names(layout):
    """The interaction of each constraint."""
    owner = np.searchsorted(layout.relations["base"], layout.constraints["base"], side="right") - 1
    return np.array(layout.relation_names)[owner]


def _uniform_degree(owner, layout, of_outputs):
    """The relative degree of all outputs, 1 or more; 1 where there are none."""
    if of_outputs.size == 0:
        return 1
    names = _names(layout)
    if (of_outputs != of_outputs[0]).any():
        other = int(np.flatnonzero(of_outputs != of_outputs[0])[0])
        raise ValueError(
            f"{owner}: all outputs must have one relative degree, got {of_outputs[0]} of interaction '{names[0]}' and "
            f"{of_outputs[other]} of interaction '{names[other]}' (-1: no multiplier acts on it)"
        )
    degree = int(of_outputs[0])
    if degree < 1:
        why = "y depends on lambda through D; use nsds.euler_moreau" if degree == 0 else "no multiplier acts on it"
        raise ValueError(f"{owner}: interaction '{names[0]}' has relative degree {degree}: {why}")
    return degree


def _require_positive(owner, layout, leading):
    """Refuse a matrix ``C A^(r-1) B`` by which multipliers may pull outputs down, or not move them at all."""
    if leading.size == 0:
        return
    diagonal = np.diagonal(leading)
    if not (diagonal > 0).all():
        i = int(np.argmin(diagonal))
        raise ValueError(
            f"{owner}: interaction '{_names(layout)[i]}': lambda must push y up, but its entry of C A^(r-1) B is {diagonal[i]:.3g}; change "
            "the sign of C or B, or put outputs and multipliers in the same order"
        )
    scaled = leading / np.sqrt(np.outer(diagonal, diagonal))
    if not np.linalg.eigvalsh(scaled + scaled.T)[0] > ZERO:
        raise ValueError(f"{owner}: the matrix C A^(r-1) B of the interactions must be positive definite, got {_checks.shortened(leading)}")


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: source and outputs at t."""
    p = s.plan[0]
    gather(s.parts, s.elements, p.x, 0, memory)
    _follow_sources(t, s, functions, memory)
    for i in range(s.unknowns.size):
        if s.unknowns[i].order == 0 and memory.imem[STEP] == 0:
            memory.mem[s.unknowns[i].y] = _output(i, p, p.x, memory.work)[0]
    return CONVERGED


@inlined
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, n_iter, residual)."""
    work = memory.work
    p, k = s.plan[0], s.unknowns.size
    # 1. state; a controller may have changed u since the last step
    gather(s.parts, s.elements, p.x, 0, memory)
    is_hidden = p.varies == 0 or _follow_sources(t_new - options.h, s, calls.functions, memory)
    for i in range(k):
        work[p.value + i], work[p.scale + i] = _output(i, p, p.x, work)
    # 2. sources at the end: a jump of s below order r - 1 would need its derivatives
    if p.varies != 0:
        is_hidden &= _follow_sources(t_new, s, calls.functions, memory)
    # 3. LCP
    status, n_iter, residual = CONVERGED, 0, 0.0
    if k > 0:
        _state_problem(s.unknowns, p, memory)
        status = solve(k, s.W_row, s.W_column, p.W, p, calls.solver, calls.solver_options, False, memory)
        n_iter, residual = int(work[p.info]), work[p.info + 1]
    # 4. end of the step
    zero = _end_motion(s, memory)
    if zero != 0.0:
        status = NON_FINITE
    elif not is_hidden:
        status = EARLY_SOURCE
    return status, n_iter, residual


@kernel
def _follow_sources(t, s, functions, memory):
    """Sources ``s = b + T u`` of all bodies at t, and their part in each z_i. False if they change in a derivative below order r - 1.

    ``z_i = C A^(i-1) x + C A^(i-2) s`` as long as s does not change in lower orders: derivatives of s are not known.
    """
    work = memory.work
    p, n, is_hidden = s.plan[0], s.plan[0].n, True
    gather_sources(t, s.parts, s.elements, p.s_new, functions, memory)
    for i in range(s.unknowns.size):
        change, terms, value = 0.0, 0.0, 0.0
        for j in range(n):
            coefficient, new, old = work[p.Z_s + i * n + j], work[p.s_new + j], work[p.s + j]
            change += coefficient * (new - old)
            terms += abs(coefficient) * (abs(new) + abs(old))
            value += coefficient * new
        work[p.offset + i] = work[p.base + i] + value
        is_hidden &= s.unknowns[i].order == p.degree - 1 or abs(change) <= _HIDDEN * terms
    for j in range(n):
        work[p.s + j] = work[p.s_new + j]
    return is_hidden


@inlined
def _output(i, p, x, work):
    """(z of unknown i at the state in work[x:], sum of the magnitudes of its terms)."""
    z, terms, n = work[p.offset + i], abs(work[p.offset + i]), p.n
    for j in range(n):
        term = work[p.Z + i * n + j] * work[x + j]
        z += term
        terms += abs(term)
    return z, terms


@inlined
def _state_problem(unknowns, p, memory):
    """q of the LCP in units in which rest is of the size of lambda, and bounds: mu_i is 0 unless all z of lower order are not positive."""
    work = memory.work
    n, k, m = p.n, unknowns.size, p.n_outputs
    for i in range(k):
        q = work[p.offset + i]
        for j in range(n):
            from_x, from_s = work[p.step_x + i * n + j] * work[p.x + j], work[p.step_s + i * n + j] * work[p.s + j]
            q += from_x + from_s
            work[p.scale + i] += abs(from_x) + abs(from_s)
        work[p.q + i] = q / work[p.unit + i]
        work[p.z + i] = memory.mem[unknowns[i].lam] if unknowns[i].order == p.degree - 1 else 0.0
    for i in range(k - 1, -1, -1):
        below = i + m
        is_open = below < k and (work[p.upper + below] == 0.0 or not work[p.value + below] <= _SNAP * work[p.scale + below])
        work[p.lower + i], work[p.upper + i] = 0.0, 0.0 if is_open else np.inf


@inlined
def _end_motion(s, memory):
    """x at the end of the step, projected onto zero z_i; y, lambda and r. Returns 0, or NaN if something is not finite."""
    work = memory.work
    p, n, k, zero = s.plan[0], s.plan[0].n, s.unknowns.size, 0.0
    # 1. x with the jumps
    for j in range(n):
        x = 0.0
        for i in range(n):
            x += work[p.from_x + j * n + i] * work[p.x + i] + work[p.from_s + j * n + i] * work[p.s + i]
        for i in range(k):
            x += work[p.jump + j * k + i] * work[p.z + i]
        work[p.x_new + j] = x
        zero += 0.0 * x
    # 2. z_i that are zero up to rounding are made zero, so that the next step sees contact
    for i in range(k):
        work[p.value + i], _ = _output(i, p, p.x_new, work)
    for i in range(k):
        z = work[p.value + i]
        if abs(z) <= _SNAP * work[p.scale + i]:
            for j in range(n):
                work[p.x_new + j] -= work[p.correction + j * k + i] * z
            z = 0.0
        zero += 0.0 * z
        if s.unknowns[i].order == 0:
            memory.mem[s.unknowns[i].y] = z
        if s.unknowns[i].order == p.degree - 1:
            memory.mem[s.unknowns[i].lam] = work[p.z + i]
    # 3. state and input into the record
    scatter(s.parts, s.elements, p.x_new, 0, memory)
    for j in range(n):
        work[p.x_new + j] = 0.0
        for i in range(k):
            work[p.x_new + j] += work[p.input + j * k + i] * work[p.z + i]
        zero += 0.0 * work[p.x_new + j]
    scatter(s.parts, s.elements, p.x_new, 1, memory)
    return zero
