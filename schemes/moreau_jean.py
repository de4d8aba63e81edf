"""Moreau–Jean time stepping for linear time-invariant Lagrangian systems (seed 001; seed 003, 10.2.1).

One step, with the iteration matrix ``M_hat = M + h theta C + h^2 theta^2 K`` (eq. 10.17):

    v_free = v_k + M_hat^-1 [ h (theta F_{k+1} + (1-theta) F_k) - h C v_k - h K (q_k + h theta v_k) ]        (10.18)
    v_{k+1} = v_free + M_hat^-1 H^T lambda                                                                  (10.16)
    q_{k+1} = q_k + h (theta v_{k+1} + (1-theta) v_k)                                                       (10.14)
    0 <= H v_{k+1} + D lambda + e ydot_k  ⟂  lambda >= 0      where the forecast  y_k + gamma h ydot_k <= 0
"""

import sys

import numpy as np

from nsds import _checks
from nsds._jit import inlined, kernel, view
from nsds.functions import call_function
from nsds.layout import ABSENT
from nsds.layout import layout as layout_of
from nsds.schemes import one_step_problem as osnsp
from nsds.schemes.linear_algebra import inverse_of, solve_with, subtract_product
from nsds.schemes.memory import Allocator, Prepared
from nsds.status import CONVERGED, NON_FINITE

OPTIONS = np.dtype([("scheme", "S16"), ("theta", "<f8"), ("gamma", "<f8")])

# Inverse iteration matrix, impulse of the forces and force at the last t of each part; a constant impulse is kept as M_hat^-1 h F.
OPERATOR = np.dtype([(name, np.int32) for name in (
    "kind", "data", "data_stride", "index", "index_stride", "n_lower", "n_upper", "impulse", "force", "constant",
)])  # fmt: skip
# Where things lie in a member's work memory (second line: in its integer work memory).
PLAN = np.dtype([(name, np.int32) for name in (
    "W", "sub_W", "q", "z", "w", "lower", "upper", "info", "solver", "n_solver", "rhs", "x", "solution", "scratch", "v_old", "dofs",
    "active", "local", "sub_row", "sub_column", "touched", "isolver", "n_isolver",
)])  # fmt: skip


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


def prepare(records, mem, options, h, method):
    """Factorise iteration matrices and assemble the Delassus matrices of all members; mem is their memory (members, words)."""
    layout = layout_of(records)
    theta, gamma = options["theta"].item(), options["gamma"].item()
    parts = layout.parts
    operators = np.zeros(parts.size, OPERATOR)
    work, iwork = Allocator(records.size), Allocator(records.size)
    for part, operator, name in zip(parts, operators, layout.part_names, strict=True):
        _invert_iteration_matrix(records[name], part, operator, name, h, theta, work, iwork)
    bodies = osnsp.bodies_of(parts, operators)
    entries = layout.entries
    unknowns = osnsp.ordered(layout.constraints, entries, entries, layout.couplings, bodies["kind"])
    order, constraints, couplings, row, column, transpose = unknowns
    plan = _plan(parts, unknowns, method, work, iwork)
    n, p, work, iwork = constraints.size, plan[0], work.array(), iwork.array(np.int64)
    work[:, p["upper"] : p["upper"] + n] = np.inf
    iwork[:, p["local"] : p["local"] + n] = -2  # no set is known yet
    for member in range(records.size):
        osnsp.assemble(plan, bodies, constraints, entries, entries, couplings, row, column, transpose, 1.0, mem[member], work[member],
                       iwork[member])  # fmt: skip
    tables = parts, constraints, entries, couplings, plan, operators, row, column
    layout = layout._replace(constraints=constraints, constraint_owners=tuple(layout.constraint_owners[i] for i in order))
    return Prepared(tables, layout.functions, np.array([h, theta, gamma]), work, iwork, sys.modules[__name__], layout)


def _plan(parts, unknowns, method, work, iwork):
    """Reserve the arrays of the one-step problem, those of its active constraints, and the scratch of one body."""
    n, nnz = unknowns.constraints.size, unknowns.column.size
    body, dofs = parts["n"].max(), (parts["count"] * parts["n"]).sum()
    plan = np.zeros(1, PLAN)
    osnsp.place_problem(plan, unknowns, method, work, iwork)
    work.place(plan, sub_W=nnz, rhs=body, x=body, solution=body, scratch=body, v_old=dofs, dofs=dofs)
    iwork.place(plan, active=n, local=n, sub_row=n + 1, sub_column=nnz, touched=parts["count"].sum())
    return plan


def _invert_iteration_matrix(records, part, operator, name, h, theta, work, iwork):
    terms = [(1.0, "M"), (h * theta, "C"), (h * theta * h * theta, "K")]
    inverse = inverse_of(records, part, name, terms, f"M + h theta C + h^2 theta^2 K is singular (h = {h:g})")
    osnsp.store_inverse(operator, inverse, work, iwork)
    operator["impulse"] = work.reserve(part["count"] * part["n"])
    operator["force"] = work.reserve(part["count"] * part["n"])
    operator["constant"] = part["function"] == ABSENT and part["C"] == ABSENT and part["K"] == ABSENT


@kernel
def start(t, tables, functions, options, mem, imem, work, iwork):
    """Before the first step: force at t, impulse of constant forces, outputs of the state."""
    parts, constraints, entries, couplings, plan, operators, _, _ = tables
    h = options[0]
    for a in range(parts.size):
        part, o = parts[a], operators[a]
        for e in range(part.count):
            impulse, force = o.impulse + e * part.n, o.force + e * part.n
            if part.function != ABSENT:
                z = view(mem, part.z + e * part.stride, part.n_z)
                nothing = view(mem, 0, 0)
                call_function(functions[part.function + e], (t, nothing, nothing, z, view(work, force, part.n)))
            elif part.fext != ABSENT:
                for i in range(part.n):
                    work[impulse + i] = h * mem[part.fext + e * part.stride + i]
            if o.constant:
                solve_with(o, e, part.n, impulse, plan[0].solution, plan[0].scratch, work, iwork)
                for i in range(part.n):
                    work[impulse + i] = work[plan[0].solution + i]
    osnsp.update_outputs(constraints, entries, couplings, mem)


@inlined
def step(t_new, tables, functions, solver, solver_options, options, mem, imem, work, iwork):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, n_iter, residual)."""
    parts, constraints, entries, couplings, plan, operators, W_row, W_column = tables
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
    nothing, z = view(mem, 0, 0), view(mem, part.z + e * part.stride, part.n_z)
    call_function(functions[part.function + e], (t_new, nothing, nothing, z, view(work, force, n)))
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


def blame(records, prepared, m):
    """Which function of member m gave NaN or infinity, in words; nothing if none did."""
    parts, operators = prepared.tables[0], prepared.tables[5]
    for name, part, operator in zip(prepared.layout.part_names, parts, operators, strict=True):
        size = part["count"] * part["n"]
        force = prepared.work[m, operator["force"] : operator["force"] + size]
        if part["function"] != ABSENT and not np.isfinite(force).all():
            function = records[name]["fext"].reshape(records.size, -1)[m, 0].decode()
            return f"fext of part '{name}', {function.partition('#')[0]}, returned NaN or infinity"
    return ""
