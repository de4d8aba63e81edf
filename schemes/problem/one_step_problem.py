"""The one-step problem of several interactions, ``w = W z + q``, in sparse form over the linked constraints ([Notes], 1.37–1.42).

Two constraints are linked when they act on one body (through a diagonal iteration matrix: on one coordinate), or through D.
Inactive constraints cost nothing: the problem handed to a solver holds the active ones only.
"""

from typing import NamedTuple

import numpy as np

from nsds._jit import inlined, kernel, tiny, view
from nsds.model.kinds import RELATIONS
from nsds.model.layout import ABSENT, DIAGONAL, table
from nsds.model.records import model_of, words
from nsds.schemes.lagrangian.tables import PLAIN, POSITION, SLIP, TANGENT
from nsds.schemes.linear_algebra import apply_inverse
from nsds.schemes.problem.activation import slack
from nsds.solvers.box.forms import narrow_order
from nsds.solvers.box.signature import Options, call_solver
from nsds.status import CONVERGED, INEXACT, INFEASIBLE, MAX_ITER, RAY, SINGULAR, STALLED

_TOUCHING = 1e-300
_ROUNDING = 2.0**-52  # of the terms of a row
ULPS = 64 * _ROUNDING  # of the terms that cancel in q: what may be wrong in it
_SLIDING = 1.0 - 1e-9  # lambda_t, relative to mu lambda_n, from which on it was at its bound

# One row per matrix that `solve_with` inverts, that is per body: where its inverse lies.
BODY = table("kind", "n", "dof", "n_lower", "n_upper", "data", "index")


def store_inverse(operator, inverse, work, iwork):
    """Store what `nsds.schemes.linear_algebra.inverse_of` gives for a part, and note where."""
    operator["kind"], data, index, operator["n_lower"], operator["n_upper"] = inverse
    operator["data"], operator["index"] = work.store(data), iwork.store(index)
    operator["data_stride"], operator["index_stride"] = data.shape[-1], index.shape[-1]


def bodies_of(parts, operators):
    """One row for each element of each part, whose inverse iteration matrices lie one stride apart."""
    bodies = np.zeros(parts["count"].sum(), BODY)
    for part, operator in zip(parts, operators, strict=True):
        rows = bodies[part["body"] : part["body"] + part["count"]]
        element = np.arange(part["count"])
        for column in ("kind", "n_lower", "n_upper"):
            rows[column] = operator[column]
        rows["n"], rows["dof"] = part["n"], part["dof"] + part["n"] * element
        rows["data"], rows["index"] = (operator[at] + operator[at + "_stride"] * element for at in ("data", "index"))
    return bodies


def store_inverses(bodies, inverse, work, iwork):
    """Store what `nsds.schemes.linear_algebra.inverse_of` gives for a part, and note where in the rows of its elements."""
    kind, data, index, n_lower, n_upper = inverse
    bodies["kind"], bodies["n_lower"], bodies["n_upper"] = kind, n_lower, n_upper
    element = np.arange(bodies.size)
    bodies["data"], bodies["index"] = work.store(data) + data.shape[-1] * element, iwork.store(index) + index.shape[-1] * element


def linked_pairs(constraints, entries, inputs, couplings, kinds):
    """Pattern of W by rows: (row, column), sorted, symmetric, with the full diagonal.

    ``kinds`` tells how the iteration matrix of each body is stored.
    """
    n = constraints.size
    size = [constraints[column + "_end"] - constraints[column] for column in ("entry", "input", "coupling")]
    owner = np.concatenate([np.repeat(np.arange(n), size[0]), np.repeat(np.arange(n), size[1])])
    dof, body = (np.concatenate([entries[column], inputs[column]]).astype(np.int64) for column in ("dof", "body"))
    node = np.where(np.asarray(kinds)[body] == DIAGONAL, dof, dof.max(initial=0) + 1 + body)
    owner, node = np.divmod(np.unique(owner * (node.max(initial=0) + 1) + node), node.max(initial=0) + 1)
    order = np.argsort(node, kind="stable")
    owner, node = owner[order], node[order]
    first = np.searchsorted(node, node, side="left")
    shared = np.searchsorted(node, node, side="right") - first
    row = np.repeat(owner, shared)
    column = owner[np.repeat(first, shared) + np.arange(shared.sum()) - np.repeat(np.cumsum(shared) - shared, shared)]
    coupled = np.repeat(np.arange(n), size[2])
    partner = couplings["constraint"]
    every = np.arange(n)
    pairs = np.unique(np.concatenate([row * n + column, coupled * n + partner, partner * n + coupled, every * n + every]))
    return np.divmod(pairs, n) if n else (pairs, pairs)


class Unknowns(NamedTuple):
    """Constraints in an order that keeps W close to its diagonal, and the pattern of W by rows; transpose: where w_ji lies."""

    order: np.ndarray
    every: np.ndarray  # 0, 1, ...: the list of all
    constraints: np.ndarray
    couplings: np.ndarray
    row: np.ndarray
    column: np.ndarray
    transpose: np.ndarray


def ordered(constraints, entries, inputs, couplings, kinds):
    """`Unknowns` of the one-step problem; for the arguments see `linked_pairs`."""
    row, column = linked_pairs(constraints, entries, inputs, couplings, kinds)
    n = constraints.size
    order = narrow_order(row, column, n)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    couplings = couplings.copy()
    couplings["constraint"] = place[couplings["constraint"]]
    if n > 0:
        row, column = np.divmod(np.sort(place[row] * n + place[column]), n)
    constraints = constraints[order]
    if "leader" in constraints.dtype.names:  # the constraint whose y is the gap of the contact
        gaps = constraints["y"]
        constraints["leader"] = np.argsort(gaps, kind="stable")[np.searchsorted(np.sort(gaps), constraints["gap"])]
    return Unknowns(order, np.arange(n), constraints, couplings, np.searchsorted(row, np.arange(n + 1)), column, np.lexsort((row, column)))


def place_problem(plan, unknowns, method, work, iwork):
    """Reserve the arrays of the one-step problem and the scratch of its solver."""
    n = unknowns.constraints.size
    n_work, n_iwork = method.work_size(n, unknowns.row, unknowns.column)
    work.place(plan, W=unknowns.column.size, q=n, z=n, w=n, lower=n, upper=n, info=3, rounding=1, solver=n_work)
    iwork.place(plan, isolver=max(n_iwork, 1))
    plan["n_solver"], plan["n_isolver"] = n_work, max(n_iwork, 1)


def place_active(plan, unknowns, work, iwork):
    """Reserve the lists of active constraints and the pattern of their problem."""
    n, nnz = unknowns.constraints.size, unknowns.column.size
    work.place(plan, sigma=1)
    iwork.place(plan, active=n, local=n, sub_row=n + 1, sub_column=nnz, sub_place=nnz)
    plan["has_friction"] = (unknowns.constraints["role"] == SLIP).any()


@inlined
def solve(n, row, column, W, p, solver, solver_options, work, iwork):
    """Hand the problem of n unknowns, W on the pattern (row, column) and the rest where the plan says, to a solver.

    What rounding may have done to q, which who states it leaves in p.rounding, is no error. Returns the solver's status, or INEXACT where
    the problem is solved less well than asked, but with sense; then the residual is in units of w.
    """
    asked = solver_options
    own = Options(asked.tol, asked.max_iter, asked.weight, asked.block, work[p.rounding], asked.inexact)
    status = call_solver(
        solver,
        (
            row, column, view(work, W, column.size), view(work, p.q, n), view(work, p.lower, n), view(work, p.upper, n), own,
            view(work, p.z, n), view(work, p.w, n), view(work, p.info, 3), view(work, p.solver, p.n_solver),
            view(iwork, p.isolver, p.n_isolver),
        ),
    )  # fmt: skip
    return status if status == CONVERGED else _judge(status, asked.inexact, n, row, column, W, p, work)


@kernel
def _judge(status, inexact, n, row, column, W, p, work):
    """INEXACT for an unsolved problem whose rows are off by at most that part of the largest ``|q|``, in units of w; else the status.

    A row is off by the median of w, ``W_ii (z - lower)`` and ``W_ii (z - upper)``: the velocity that is missing, or that z is worth; and by
    what rounding may hide in w, which is all where impulses have grown against each other.
    """
    if status not in (MAX_ITER, STALLED, RAY, SINGULAR, INFEASIBLE):
        return status
    error = scale = 0.0
    for i in range(n):
        w, terms, unit, most = work[p.q + i], abs(work[p.q + i]), 0.0, 0.0
        for k in range(row[i], row[i + 1]):
            w += work[W + k] * work[p.z + column[k]]
            terms += abs(work[W + k] * work[p.z + column[k]])
            most = max(most, abs(work[W + k]))
            if column[k] == i:
                unit = abs(work[W + k])
        unit = unit if unit > 0.0 else most if most > 0.0 else 1.0
        z, lower, upper = work[p.z + i], work[p.lower + i], work[p.upper + i]
        error = max(error, abs(max(min(w, unit * (z - lower)), unit * (z - upper))) + _ROUNDING * terms) + 0.0 * w
        scale = max(scale, abs(work[p.q + i]))
    if not error <= max(inexact * scale, work[p.rounding]):
        return status
    work[p.info + 1] = error / max(scale, work[p.rounding])
    return INEXACT


@tiny
def worse(status, other):
    """The worse one of two statuses: INEXACT is better than a failure."""
    return other if status == CONVERGED or (status == INEXACT and other != CONVERGED) else status


@tiny
def assemble(plan, bodies, constraints, entries, inputs, couplings, chosen, W_row, W_column, W_transpose, scale, shift, work, iwork):
    """``W = scale C M_hat^-1 B + D`` of the chosen constraints on the pattern (W_row, W_column): eqs 1.39–1.42 and 9.35.

    On Lagrangian systems C is H, and B its transpose. Column j: solve with column j of B, then multiply by the rows linked to j.
    W_transpose[k] is where the transposed entry of k lies; C lies ``shift`` behind the coefficients of the entries.
    In: tables, work (C, B, D, inverses), iwork.
    Out: work[plan.W:]. Work: plan.rhs, plan.solution, plan.scratch, plan.dofs (zero before and after).
    """
    W, dofs = plan[0].W, plan[0].dofs
    for column in range(chosen.size):
        j = chosen[column]
        k = constraints[j].input
        while k < constraints[j].input_end:
            k = _solve_for_body(plan, bodies, inputs, constraints[j].input_end, k, work, iwork)
        for k in range(W_row[column], W_row[column + 1]):
            c = constraints[chosen[W_column[k]]]
            s = 0.0
            for a in range(c.entry, c.entry_end):
                s += work[entries[a].coefficient + shift] * work[dofs + entries[a].dof]
            s *= scale
            for a in range(c.coupling, c.coupling_end):
                if couplings[a].constraint == j:
                    s += couplings[a].sign * work[couplings[a].coefficient]
            work[W + W_transpose[k]] = s
        for k in range(constraints[j].input, constraints[j].input_end):
            if k == constraints[j].input or inputs[k].body != inputs[k - 1].body:
                body = bodies[inputs[k].body]
                for i in range(body.n):
                    work[dofs + body.dof + i] = 0.0


@tiny
def _solve_for_body(plan, bodies, inputs, end, k, work, iwork):
    """Solve with the entries of one constraint on one body, from entry k on; returns the first entry of another body."""
    rhs, solution = plan[0].rhs, plan[0].solution
    number = inputs[k].body
    body = bodies[number]
    for i in range(body.n):
        work[rhs + i] = 0.0
    while k < end and inputs[k].body == number:
        work[rhs + inputs[k].dof - body.dof] += work[inputs[k].coefficient]
        k += 1
    apply_inverse(body.kind, body.n, body.n_lower, body.n_upper, body.data, body.index, work, iwork, rhs, solution, plan[0].scratch)
    for i in range(body.n):
        work[plan[0].dofs + body.dof + i] += work[solution + i]
    return k


@tiny
def lengths(c, entries, mem, work):
    """Sum of the magnitudes that cancel in y, of nonlinear relations too: ``|b| + sum |H_j q_j|``."""
    length = 0.0 if c.base == ABSENT else abs(work[c.base])
    for k in range(c.entry, c.entry_end):
        length += abs(work[entries[k].coefficient] * mem[entries[k].q])
    return length


@tiny
def gap_slack(c, h, entries, mem, work):
    """Up to which y of a constraint, or its forecast, counts as closed."""
    length, speed = 0.0 if c.base == ABSENT else abs(work[c.base]), work[c.pull] + (0.0 if c.rate == ABSENT else abs(work[c.rate]))
    for k in range(c.entry, c.entry_end):
        coefficient, q = work[entries[k].coefficient], entries[k].q
        length += abs(coefficient * mem[q])
        speed += abs(coefficient * mem[q + entries[k].n])
    return slack(length, speed, h)


@kernel
def state_pulls(pull, constraints, entries, work):
    """What the forces add to ydot of each constraint in a step, in size; work[pull:]: to each velocity."""
    for i in range(constraints.size):
        c = constraints[i]
        if c.role == PLAIN:
            work[c.pull] = 0.0
            for k in range(c.entry, c.entry_end):
                work[c.pull] += abs(work[entries[k].coefficient]) * work[pull + entries[k].dof]


@inlined
def choose_active(p, constraints, horizon, h, mem, imem, work, iwork):
    """Index set I_1 ([EventCapturing]): what is always active, and constraints of contacts whose forecast ``y + horizon ydot`` is closed.

    A positive forecast is closed where it is so up to rounding, `gap_slack`, and the contact neither opens nor closes: what moves is told
    by its sign.
    Writes the active flags, the list p.active, and p.local (place in the list). Inactive multipliers are set to 0, those of new
    contacts to a guess that only says "pressing", by which a whole column that lands is solved at once.
    Returns the number of active constraints, negative (-1 - n) when the set differs from that of the last call.
    """
    n = 0
    changed = False
    local, active = p.local, p.active
    for i in range(constraints.size):
        c = constraints[i]
        forecast = mem[c.gap] + horizon * mem[c.gap_rate]
        if c.always or forecast <= 0.0 or max(forecast, h * abs(mem[c.gap_rate])) <= work[c.closed]:
            changed |= iwork[local + i] != n
            iwork[local + i] = n
            iwork[active + n] = i
            n += 1
            if c.role != SLIP:
                if imem[c.active] == 0 and c.role == PLAIN:
                    mem[c.lam] = _TOUCHING
                imem[c.active] = 1
        else:
            changed |= iwork[local + i] != ABSENT
            iwork[local + i] = ABSENT
            if c.role != SLIP:
                imem[c.active] = 0
                mem[c.lam] = 0.0
    return -1 - n if changed else n


@kernel
def extract_pattern(p, n, W_row, W_column, iwork):
    """Pattern of the rows and columns of W that belong to the n active constraints, by rows; sub_place: where an entry lies in W."""
    k = 0
    for a in range(n):
        i = iwork[p.active + a]
        iwork[p.sub_row + a] = k
        for j in range(W_row[i], W_row[i + 1]):
            column = iwork[p.local + W_column[j]]
            if column >= 0:
                iwork[p.sub_column + k] = column
                iwork[p.sub_place + k] = j
                k += 1
    iwork[p.sub_row + n] = k
    iwork[p.isolver] = 0  # tells the solver that the matrix is another one


@kernel
def extract_active(p, n, W_row, W_column, work, iwork):
    """Rows and columns of W that belong to the n active constraints."""
    extract_pattern(p, n, W_row, W_column, iwork)
    for k in range(iwork[p.sub_row + n]):
        work[p.sub_W + k] = work[p.W + iwork[p.sub_place + k]]


@kernel
def transpose_pattern(p, n, iwork):
    """Make of sub_place, for each entry of the active constraints' problem, where the transposed one lies; work: sub_next."""
    for a in range(n):
        iwork[p.sub_next + a] = iwork[p.sub_row + a]
    for a in range(n):
        for k in range(iwork[p.sub_row + a], iwork[p.sub_row + a + 1]):
            b = iwork[p.sub_column + k]
            iwork[p.sub_place + k] = iwork[p.sub_next + b]
            iwork[p.sub_next + b] += 1


@tiny
def guess(sigma, h, c, mem, work):
    """z of a constraint from the lambda of the last step; of friction by its side, read off lambda without its rounding."""
    if c.role == PLAIN:
        return sigma * mem[c.lam] * (h if c.level == POSITION else 1.0)
    most, lam_t, u_t = work[c.mu] * mem[c.normal], mem[c.tangent], mem[c.ydot]
    if lam_t <= -most * _SLIDING and u_t >= 0.0:
        return 0.0
    if c.role == TANGENT:
        return sigma * (lam_t + most)
    return max(-u_t, _TOUCHING) if lam_t >= most * _SLIDING else 0.0


@tiny
def accept(z, h, c, inputs, touched, mem, work, iwork):
    """lambda of a constraint, and its impulses ``B z``, in mem; the bodies are marked. A tangent holds ``lambda_t + mu lambda_n`` yet."""
    if c.role != SLIP:
        mem[c.lam] = z / h if c.level == POSITION else z
    for k in range(c.input, c.input_end):
        mem[inputs[k].q + 2 * inputs[k].n] += work[inputs[k].coefficient] * z
        iwork[touched + inputs[k].body] = 1


@tiny
def subtract_normal_part(c, mem, work):
    """lambda_t of a tangent."""
    if c.role == TANGENT:
        mem[c.lam] -= work[c.mu] * mem[c.normal]


@inlined
def solve_active(p, n, h, solver, constraints, inputs, solver_options, mem, work, iwork):
    """Solve the problem of the n active constraints, its matrix sub_W and vector q prepared; the multipliers in mem are the first guess.

    Out: lambda and the impulses ``p = B z`` in mem, touched bodies. Returns (status, n_iter, residual).
    """
    active, z = p.active, p.z
    sigma = work[p.sigma] if p.has_friction else 1.0
    for a in range(n):
        c = constraints[iwork[active + a]]
        work[z + a] = guess(sigma, h, c, mem, work)
        work[p.lower + a] = -np.inf if c.bilateral else 0.0
    row, column = view(iwork, p.sub_row, n + 1), view(iwork, p.sub_column, iwork[p.sub_row + n])
    status = solve(n, row, column, p.sub_W, p, solver, solver_options, work, iwork)
    for a in range(n):
        c = constraints[iwork[active + a]]
        if c.role != SLIP:
            work[z + a] /= sigma
        accept(work[z + a], h, c, inputs, p.touched, mem, work, iwork)
    if p.has_friction:
        for a in range(n):
            subtract_normal_part(constraints[iwork[active + a]], mem, work)
    return status, int(work[p.info]), work[p.info + 1]


@kernel
def scale_friction(p, n, constraints, work, iwork):
    """``sigma``, the largest diagonal entry, divides sub_W, and multiplies z: all unknowns are velocities, which the tolerance is for."""
    sigma = 0.0
    for a in range(n):
        for k in range(iwork[p.sub_row + a], iwork[p.sub_row + a + 1]):
            if iwork[p.sub_column + k] == a:
                sigma = max(sigma, work[p.sub_W + k])
    sigma = sigma if sigma > 0.0 else 1.0
    for a in range(n):
        for k in range(iwork[p.sub_row + a], iwork[p.sub_row + a + 1]):
            b = iwork[p.sub_column + k]
            if constraints[iwork[p.active + a]].role != SLIP and constraints[iwork[p.active + b]].role != SLIP:
                work[p.sub_W + k] /= sigma
    work[p.sigma] = sigma


@tiny
def compliance(c, constraints, couplings, mem, work):
    """``D z`` of a constraint from the multipliers in mem; z of a tangent is ``lambda_t + mu lambda_n``."""
    s = 0.0
    for k in range(c.coupling, c.coupling_end):
        other = constraints[couplings[k].constraint]
        if other.role != SLIP:
            z = mem[other.lam] + (work[other.mu] * mem[other.normal] if other.role == TANGENT else 0.0)
            s += work[couplings[k].coefficient] * z
    return s


@inlined
def update_outputs(h, theta, constraints, entries, couplings, mem, work):
    """``y = H q + b`` and ``ydot = H v + D lambda`` (at position level: y has the D) of linear relations, from the state in mem.

    Beside them `gap_slack` of contacts, for the next choice.
    """
    for i in range(constraints.size):
        c = constraints[i]
        if c.role == SLIP:
            continue
        y = 0.0 if c.base == ABSENT else work[c.base]
        ydot = 0.0 if c.rate == ABSENT else work[c.rate]
        length, speed = abs(y), abs(ydot)
        for k in range(c.entry, c.entry_end):
            coefficient = work[entries[k].coefficient]
            y_k, ydot_k = coefficient * mem[entries[k].q], coefficient * mem[entries[k].q + entries[k].n]
            y += y_k
            ydot += ydot_k
            length += abs(y_k)
            speed += abs(ydot_k)
        if c.level == POSITION:
            y += h * theta * h * compliance(c, constraints, couplings, mem, work)
        else:
            ydot += compliance(c, constraints, couplings, mem, work)
        mem[c.y] = y if c.h == ABSENT else work[c.h]
        mem[c.ydot] = ydot
        if c.role == PLAIN:
            work[c.closed] = slack(length, speed + work[c.pull], h)


def blame_row(records, prepared, m):
    """Which interaction's row of the one-step problem of member m is NaN or infinite, in words; nothing if none is, or of rigid bodies."""
    tables = [table for table in prepared.tables if table.dtype.names]
    constraints = next((table for table in tables if {"lam", "entry"} <= set(table.dtype.names)), ())
    plan = next((table[0] for table in tables if {"W", "q", "lower", "dofs"} <= set(table.dtype.names)), None)
    if plan is None or len(constraints) == 0:
        return ""
    work, iwork = prepared.work[m], prepared.iwork[m]
    n = constraints.size
    if "sub_row" in plan.dtype.names:
        constraints = constraints[np.clip(iwork[plan["active"] : plan["active"] + n], 0, n - 1)]
    for row in np.flatnonzero(~np.isfinite(work[plan["q"] : plan["q"] + n])):
        place = max(constraints[row]["gap"] if "gap" in constraints.dtype.names else constraints[row]["y"], constraints[row]["lam"])
        for name, kind, *_ in model_of(records):
            start, dtype = words(records.dtype, name)
            if kind in RELATIONS and start <= place < start + dtype.itemsize // 8:
                return f"the one-step problem became NaN or infinite in a row of interaction '{name}'"
    return ""


@kernel
def outputs_of_cones(constraints, couplings, z, w, work):
    """``y = w + G^T mu`` where w is ``y - G^T mu``."""
    for i in range(constraints.size):
        for k in range(constraints[i].coupling, constraints[i].coupling_end):
            if couplings[k].sign < 0:
                work[w + i] += work[couplings[k].coefficient] * work[z + couplings[k].constraint]
