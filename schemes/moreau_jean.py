"""Moreau–Jean time stepping for linear time-invariant Lagrangian systems (seed 001; seed 003, 10.2.1).

One step, with the iteration matrix ``M_hat = M + h theta C + h^2 theta^2 K`` (eq. 10.17):

    v_free = v_k + M_hat^-1 [ h (theta F_{k+1} + (1-theta) F_k) - h C v_k - h K (q_k + h theta v_k) ]        (10.18)
    v_{k+1} = v_free + M_hat^-1 H^T lambda                                                                  (10.16)
    q_{k+1} = q_k + h (theta v_{k+1} + (1-theta) v_k)                                                       (10.14)
    0 <= H v_{k+1} + D lambda + e ydot_k  ⟂  lambda >= 0      where the forecast  y_k + gamma h ydot_k <= 0
"""

from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._jit import inlined, kernel, view
from nsds.functions import call_force
from nsds.layout import ABSENT, DENSE, DIAGONAL, SPARSE, Layout
from nsds.records import stored_sparse
from nsds.schemes import one_step_problem as osnsp
from nsds.schemes.linear_algebra import SingularMatrixError, invert, solve_with, subtract_product
from nsds.solvers.forms import narrow_order
from nsds.status import CONVERGED, NON_FINITE

OPTIONS = np.dtype([("scheme", "S16"), ("theta", "<f8"), ("gamma", "<f8")])

# Inverse iteration matrix, impulse of the forces and force at the last t of each part; a constant impulse is kept as M_hat^-1 h F.
OPERATOR = np.dtype([(name, np.int32) for name in (
    "kind", "data", "data_stride", "index", "index_stride", "n_lower", "n_upper", "impulse", "force", "constant",
)])  # fmt: skip
# Where things lie in a member's work memory (second line: in its integer work memory).
PLAN = np.dtype([(name, np.int32) for name in (
    "W", "sub_W", "q", "z", "w", "lower", "upper", "info", "solver", "n_solver", "rhs", "x", "solution", "scratch", "v_old",
    "active", "local", "sub_row", "sub_column", "touched", "isolver", "n_isolver",
)])  # fmt: skip


class Prepared(NamedTuple):
    """What does not change in time: tables for all members, and work memory (members, words)."""

    layout: Layout
    plan: np.ndarray
    operators: np.ndarray
    W_row: np.ndarray
    W_column: np.ndarray
    work: np.ndarray
    iwork: np.ndarray
    options: np.ndarray


def moreau_jean(theta=0.5, gamma=0.5):
    """Options of the Moreau–Jean scheme.

    Parameters
    ----------
    theta : float in [0, 1]
        Weight of the end of the step: 0 explicit, 1/2 second order where nothing is in contact, 1 implicit.
    gamma : float >= 0
        Forecast of contact: a constraint is active when ``y + gamma h ydot <= 0`` at the start of the step.

    Returns
    -------
    numpy.ndarray, shape ()
        Record (scheme, theta, gamma) for `nsds.simulate`.

    Examples
    --------
    >>> import nsds
    >>> nsds.moreau_jean(theta=1.0)["theta"].item()
    1.0
    """
    record = np.zeros((), OPTIONS)
    record["scheme"] = b"moreau_jean"
    record["theta"] = _checks.number("moreau_jean", "theta", theta, 0.0, 1.0)
    record["gamma"] = _checks.number("moreau_jean", "gamma", gamma, 0.0)
    return record


def prepare(records, mem, layout, options, h, method):
    """Factorise iteration matrices and assemble the Delassus matrices of all members; mem is their memory (members, words)."""
    theta, gamma = options["theta"].item(), options["gamma"].item()
    operators = np.zeros(layout.parts.size, OPERATOR)
    work, iwork = _Allocator(records.size), _Allocator(records.size)
    for part, operator, name in zip(layout.parts, operators, layout.part_names, strict=True):
        _invert_iteration_matrix(records[name], part, operator, name, h, theta, work, iwork)
    row, column = osnsp.linked_pairs(layout, operators["kind"])
    layout, row, column = _reordered(layout, row, column)
    n = layout.constraints.size
    W_row = np.searchsorted(row, np.arange(n + 1))
    plan = _plan(layout, n, row.size, method.work_size(n, W_row, column), work, iwork)
    prepared = Prepared(layout, plan, operators, W_row, column, work.array(), iwork.array(), np.array([h, theta, gamma]))
    prepared.work[:, plan[0]["upper"] : plan[0]["upper"] + n] = np.inf
    prepared.iwork[:, plan[0]["local"] : plan[0]["local"] + n] = -2  # no set is known yet
    transpose = np.lexsort((row, column))
    for member in range(records.size):
        osnsp.assemble(plan, operators, layout.parts, layout.constraints, layout.entries, layout.couplings, W_row, column, transpose,
                       mem[member], prepared.work[member], prepared.iwork[member])  # fmt: skip
    return prepared


def _plan(layout, n, nnz, solver_sizes, work, iwork):
    """Reserve the arrays of the one-step problem (n constraints, nnz entries of W) and the scratch of one body."""
    solver_sizes = solver_sizes[0], max(solver_sizes[1], 1)
    body, dofs = layout.parts["n"].max(), (layout.parts["count"] * layout.parts["n"]).sum()
    plan = np.zeros(1, PLAN)
    for name, size in {"W": nnz, "sub_W": nnz, "q": n, "z": n, "w": n, "lower": n, "upper": n, "info": 3, "solver": solver_sizes[0],
                       "rhs": body, "x": body, "solution": body, "scratch": body, "v_old": dofs}.items():  # fmt: skip
        plan[name] = work.reserve(size)
    for name, size in {"active": n, "local": n, "sub_row": n + 1, "sub_column": nnz, "isolver": solver_sizes[1],
                       "touched": layout.parts["count"].sum()}.items():  # fmt: skip
        plan[name] = iwork.reserve(size)
    plan["n_solver"], plan["n_isolver"] = solver_sizes
    return plan


class _Allocator:
    """Lays arrays behind one another in a memory of equal length for every member."""

    def __init__(self, n_members):
        self.n_members, self.size, self.filled = n_members, 0, []

    def reserve(self, size):
        """Offset of room for ``size`` words; tables hold offsets as 32-bit integers."""
        self.size += int(size)
        if self.size > np.iinfo(np.int32).max:
            raise ValueError(f"the one-step problem needs more than {self.size:.1e} words: too many constraints that all act on one body")
        return self.size - int(size)

    def store(self, data):
        """Reserve room for ``data`` (members, ...), to be filled by `array`."""
        start = self.reserve(data[0].size)
        self.filled.append((start, data.reshape(self.n_members, -1)))
        return start

    def array(self):
        dtype = self.filled[0][1].dtype
        result = np.zeros((self.n_members, self.size), dtype)
        for start, data in self.filled:
            result[:, start : start + data.shape[1]] = data
        return result


def _invert_iteration_matrix(records, part, operator, name, h, theta, work, iwork):
    terms = [(1.0, "M"), (h * theta, "C"), (h * theta * h * theta, "K")]
    terms = [(factor, matrix) for factor, matrix in terms if part[matrix] != ABSENT]
    kinds = {part[matrix + "_kind"].item() for _, matrix in terms}
    operator["kind"] = DENSE if DENSE in kinds else max(kinds)
    build = {DIAGONAL: _diagonal_sum, DENSE: _dense_sum, SPARSE: _sparse_sum}[operator["kind"].item()]
    records = records.reshape(records.shape[0], -1)
    M_hat = build(records, terms, part)
    try:
        data, index, operator["n_lower"], operator["n_upper"] = invert(operator["kind"], M_hat)
    except SingularMatrixError as error:
        member, element = error.where[:2]
        where = (f", element {element}" if part["count"] > 1 else "") + (f", member {member}" if records.shape[0] > 1 else "")
        raise ValueError(f"part '{name}'{where}: the iteration matrix M + h theta C + h^2 theta^2 K is singular (h = {h:g})") from None
    operator["data"], operator["index"] = work.store(data), iwork.store(index)
    operator["data_stride"], operator["index_stride"] = data.shape[-1], index.shape[-1]
    operator["impulse"] = work.reserve(part["count"] * part["n"])
    operator["force"] = work.reserve(part["count"] * part["n"])
    operator["constant"] = part["function"] == ABSENT and part["C"] == ABSENT and part["K"] == ABSENT


def _diagonal_sum(records, terms, part):
    return sum(factor * records[matrix] for factor, matrix in terms)


def _dense_sum(records, terms, part):
    n = part["n"]
    total = np.zeros((*records.shape, n, n))
    for factor, matrix in terms:
        kind = part[matrix + "_kind"]
        if kind == DENSE:
            total += factor * records[matrix]
        elif kind == DIAGONAL:
            total[..., np.arange(n), np.arange(n)] += factor * records[matrix]
        else:
            for where in np.ndindex(records.shape):
                total[where] += factor * stored_sparse(records[matrix][where], n).toarray()
    return total


def _sparse_sum(records, terms, part):
    from scipy.sparse import diags_array

    n = part["n"]

    def one(element):
        return sum(
            factor * (diags_array(element[m]) if part[m + "_kind"] == DIAGONAL else stored_sparse(element[m], n)) for factor, m in terms
        )

    return [[one(element) for element in member] for member in records]


def _reordered(layout, row, column):
    """Constraints in an order that keeps W narrow, and its pattern in that order."""
    n = layout.constraints.size
    order = narrow_order(row, column, n)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    couplings = layout.couplings.copy()
    couplings["constraint"] = place[couplings["constraint"]]
    layout = layout._replace(
        constraints=layout.constraints[order],
        couplings=couplings,
        constraint_owners=tuple(layout.constraint_owners[i] for i in order),
    )
    pairs = np.sort(place[row] * n + place[column])
    return (layout, *np.divmod(pairs, n)) if n else (layout, row, column)


@kernel
def start(t, parts, constraints, entries, couplings, functions, plan, operators, options, mem, work, iwork):
    """Before the first step: force at t, impulse of constant forces, outputs of the state."""
    h = options[0]
    for a in range(parts.size):
        part, o = parts[a], operators[a]
        for e in range(part.count):
            impulse, force = o.impulse + e * part.n, o.force + e * part.n
            if part.function != ABSENT:
                z = view(mem, part.z + e * part.stride, part.n_z)
                call_force(functions[part.function + e], (t, z, view(work, force, part.n)))
            elif part.fext != ABSENT:
                for i in range(part.n):
                    work[impulse + i] = h * mem[part.fext + e * part.stride + i]
            if o.constant:
                solve_with(o, e, part.n, impulse, plan[0].solution, plan[0].scratch, work, iwork)
                for i in range(part.n):
                    work[impulse + i] = work[plan[0].solution + i]
    osnsp.update_outputs(constraints, entries, couplings, mem)


@inlined
def step(t_new, parts, constraints, entries, couplings, functions, plan, operators, W_row, W_column, solver, solver_options,
         options, mem, imem, work, iwork):  # fmt: skip
    """One step from the state in mem to the state at t_new, in mem. Returns (status, n_iter, residual)."""
    h, theta, gamma = options[0], options[1], options[2]
    n = osnsp.choose_active(plan, constraints, gamma * h, mem, imem, iwork)
    finite = _free_motion(t_new, h, theta, n == 0, parts, functions, plan, operators, mem, imem, work, iwork)
    status, n_iter, residual = CONVERGED, 0, 0.0
    if n != 0:
        if n < 0:
            n = -1 - n
            osnsp.extract_active(plan, n, W_row, W_column, work, iwork)
        if n > 0:
            status, n_iter, residual = osnsp.solve_active(plan, n, solver, constraints, entries, solver_options, mem, work, iwork)
        finite = _end_motion(h, theta, parts, plan, operators, mem, work, iwork)
    osnsp.update_outputs(constraints, entries, couplings, mem)
    if not finite:
        status = NON_FINITE
    return status, n_iter, residual


@inlined
def _free_motion(t_new, h, theta, is_free, parts, functions, plan, operators, mem, imem, work, iwork):
    """``v <- v_free`` (eq. 10.18), ``p <- 0``; ``q <- q + h (theta v + (1-theta) v_k)`` (10.14) if nothing is in contact.

    Otherwise v_k is kept for the end of the step. Written as in the source to the last rounding: a body that reaches a wall exactly
    at a step is decided by it. Returns False when not finite.
    """
    rhs, x, solution = plan[0].rhs, plan[0].x, plan[0].solution
    zero = 0.0
    for a in range(parts.size):
        part, o = parts[a], operators[a]
        n, first_q, stride, first_old = part.n, part.q, part.stride, plan[0].v_old + part.dof
        impulse, constant = o.impulse, o.constant
        for e in range(part.count):
            q = first_q + e * stride
            v = q + n
            increment = impulse + e * n
            if not constant:
                increment = solution
                if part.function != ABSENT:
                    _impulse_of_function(t_new, h, theta, part, o, e, functions, plan, mem, work)
                for i in range(n):
                    work[rhs + i] = work[o.impulse + e * n + i]
                if part.C != ABSENT:
                    for i in range(n):
                        work[x + i] = mem[v + i]
                    subtract_product(part.C_kind, n, part.C_nnz, mem, imem, part.C + e * part.stride, h, work, x, rhs)
                if part.K != ABSENT:
                    for i in range(n):
                        work[x + i] = mem[q + i] + h * theta * mem[v + i]
                    subtract_product(part.K_kind, n, part.K_nnz, mem, imem, part.K + e * part.stride, h, work, x, rhs)
                solve_with(o, e, n, rhs, solution, plan[0].scratch, work, iwork)
            v_old = first_old + e * n
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
def _impulse_of_function(t_new, h, theta, part, o, e, functions, plan, mem, work):
    """``h (theta F(t_{k+1}) + (1-theta) F(t_k))``; F(t_{k+1}) is kept for the next step."""
    n, impulse, force = part.n, o.impulse + e * part.n, o.force + e * part.n
    for i in range(n):
        work[impulse + i] = h * (1.0 - theta) * work[force + i]
    call_force(functions[part.function + e], (t_new, view(mem, part.z + e * part.stride, part.n_z), view(work, force, n)))
    for i in range(n):
        work[impulse + i] += h * theta * work[force + i]


@inlined
def _end_motion(h, theta, parts, plan, operators, mem, work, iwork):
    """``v <- v_free + M_hat^-1 p`` (eq. 10.16) for the bodies in contact; the positions follow (10.14). False when not finite."""
    rhs, solution = plan[0].rhs, plan[0].solution
    zero = 0.0
    for a in range(parts.size):
        part, o = parts[a], operators[a]
        n, first_q, stride, first_old, first_body = part.n, part.q, part.stride, plan[0].v_old + part.dof, plan[0].touched + part.body
        for e in range(part.count):
            q = first_q + e * stride
            v = q + n
            body = first_body + e
            if iwork[body] != 0:
                iwork[body] = 0
                for i in range(n):
                    work[rhs + i] = mem[v + n + i]
                solve_with(o, e, n, rhs, solution, plan[0].scratch, work, iwork)
                for i in range(n):
                    mem[v + i] += work[solution + i]
            v_old = first_old + e * n
            for i in range(n):
                mem[q + i] += h * (theta * mem[v + i] + (1.0 - theta) * work[v_old + i])
                zero += 0.0 * mem[q + i]
    return zero == 0.0
