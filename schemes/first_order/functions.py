"""Right-hand sides, relations and their Jacobians at a state: user functions, stored numbers, or finite differences."""

import numpy as np

from nsds._jit import kernel, tiny, view
from nsds.circuits.waveforms import set_window
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT
from nsds.model.records import are_circuits
from nsds.schemes.compressed import add_differences, move_group
from nsds.schemes.derivatives import FORWARD_STEP, derivative
from nsds.schemes.linear_algebra import subtract_product
from nsds.schemes.problem.blame import asked_of_relations, blaming
from nsds.status import INFEASIBLE, advice

AT_ONCE = 0.0, 0.0  # window of rates that are those at the very time
CONTRADICTION = "a source of voltage is short-circuited, or one of current has no path left"  # in a circuit
_OFF = 0.1  # of the largest violation: devices with a larger one contradict what is given


def set_windows(records, of_sources, of_rows):
    """In circuits: (time before, time after) a value of sources of parts, and of rows, over which rates of sources are means."""
    if are_circuits(records):
        for name, window in (("circuit", of_sources), ("devices", of_rows)):
            if "z" in records[name].dtype.names:
                set_window(records[name]["z"], *window)


@tiny
def source(t, part, e, x, functions, memory, out):
    """``s = b + T u`` of element e of a part at the state x. Out: work[out:out + n]. Work: part.u_work, part.T of a function."""
    mem, work = memory.mem, memory.work
    n, n_u, shift = part.n, part.n_u, e * part.stride
    z, nothing = view(mem, part.z + shift, part.n_z), view(mem, 0, 0)
    # 1. constant or function b
    for i in range(n):
        work[out + i] = 0.0 if part.b == ABSENT else mem[part.b + shift + i]
    if part.b_function != ABSENT:
        call_function(functions, part.b_function + e, (t, x, nothing, z, view(work, out, n)))
    # 2. controls, with a constant or variable T
    if n_u > 0:
        T = part.T + e * n * n_u
        if part.T_function != ABSENT:
            call_function(functions, part.T_function + e, (t, x, nothing, z, view(work, T, n * n_u)))
        if part.u_function != ABSENT:
            call_function(functions, part.u_function + e, (t, x, nothing, z, view(work, part.u_work, n_u)))
        else:
            for j in range(n_u):
                work[part.u_work + j] = mem[part.u + shift + j]
        for i in range(n):
            for j in range(n_u):
                work[out + i] += work[T + i * n_u + j] * work[part.u_work + j]


@kernel
def rate(t, part, e, x, spare, functions, memory, out):
    """``f(t, x) + T u`` of element e of a part, f being ``A x + b`` for a linear one; x, out and spare (n each) are offsets in work."""
    mem, work = memory.mem, memory.work
    n = part.n
    at_x = view(work, x, n)
    # sources first; then f by a function, A by a function, or a stored A
    source(t, part, e, at_x, functions, memory, out)
    if part.f_function != ABSENT:
        z, nothing = view(mem, part.z + e * part.stride, part.n_z), view(mem, 0, 0)
        call_function(functions, part.f_function + e, (t, at_x, nothing, z, view(work, spare, n)))
        for i in range(n):
            work[out + i] += work[spare + i]
    elif part.A_function != ABSENT:
        A = part.A_work + e * n * n
        z, nothing = view(mem, part.z + e * part.stride, part.n_z), view(mem, 0, 0)
        call_function(functions, part.A_function + e, (t, at_x, nothing, z, view(work, A, n * n)))
        for i in range(n):
            for j in range(n):
                work[out + i] += work[A + i * n + j] * work[x + j]
    else:
        subtract_product(part.A_kind, n, part.A_nnz, mem, memory.imem, part.A + e * part.stride, -1.0, work, x, out)


@kernel
def rate_jacobian(t, part, e, least, x, at_x, spare, functions, memory):
    """Derivative of `rate` by x, of a nonlinear part, into work[part.A_work + e n^2:]; at_x: `rate` at x. Work: spare (2 n).

    least: the least size of a variable to which the step of a finite difference is relative.
    """
    work = memory.work
    n = part.n
    A = part.A_work + e * n * n
    # 1. the user's Jacobian, which does not contain the controls
    is_given = part.jac_f_function != ABSENT
    is_whole = is_given and part.u_function == ABSENT and part.T_function == ABSENT
    if is_given:
        z, nothing = view(memory.mem, part.z + e * part.stride, part.n_z), view(memory.mem, 0, 0)
        call_function(functions, part.jac_f_function + e, (t, view(work, x, n), nothing, z, view(work, A, n * n)))
    if is_given and not is_whole:
        source(t, part, e, view(work, x, n), functions, memory, at_x)
    # 2. finite differences of the rest
    for j in range(0 if is_whole else n):
        x_j = work[x + j]
        work[x + j] = x_j + FORWARD_STEP * max(least if x_j != 0.0 else 1.0, abs(x_j))
        step = work[x + j] - x_j
        if is_given:
            source(t, part, e, view(work, x, n), functions, memory, spare)
        else:
            rate(t, part, e, x, spare + n, functions, memory, spare)
        work[x + j] = x_j
        for i in range(n):
            slope = (work[spare + i] - work[at_x + i]) / step
            work[A + i * n + j] = slope + (work[A + i * n + j] if is_given else 0.0)


@kernel
def compressed_jacobian(t, part, e, least, group, p, functions, memory):
    """Derivative of `rate` by x at work[p.x:] into the entries at group.A; `rate` there is at p.solution. Work: p.spare (3 n).

    least: see `rate_jacobian`.
    """
    moved, spare, old = p.spare, p.spare + part.n, p.spare + 2 * part.n
    for k in range(group.n_entries):
        memory.work[group.A + k] = 0.0
    for g in range(memory.iwork[group.groups]):
        move_group(group.groups, g, least, p.x, old, memory)
        rate(t, part, e, p.x, spare, functions, memory, moved)
        add_differences(group.groups, g, 1.0, group.A, (p.x, old), (moved, p.solution), memory)


@kernel
def relation_values(t, r, functions, memory):
    """h and g of a relation at its arguments x and lam; of a linear one also its operators that are functions of time."""
    work = memory.work
    x, lam, z = view(work, r.x, r.n), view(work, r.lam, r.m), view(memory.mem, r.z, r.n_z)
    # 1. a nonlinear relation gives both itself
    if r.h_function != ABSENT:
        call_function(functions, r.h_function, (t, x, lam, z, view(work, r.h, r.m)))
        call_function(functions, r.g_function, (t, x, lam, z, view(work, r.g, r.n)))
        return
    # 2. operators that are functions of time
    m, n, n_z = r.m, r.n, r.n_z
    if r.C_function != ABSENT:
        call_function(functions, r.C_function, (t, x, lam, z, view(work, r.C, m * n)))
    if r.B_function != ABSENT:
        call_function(functions, r.B_function, (t, x, lam, z, view(work, r.B, n * m)))
    if r.D_function != ABSENT:
        call_function(functions, r.D_function, (t, x, lam, z, view(work, r.D, m * m)))
    if r.F_function != ABSENT:
        call_function(functions, r.F_function, (t, x, lam, z, view(work, r.F, m * n_z)))
    if r.e_function != ABSENT:
        call_function(functions, r.e_function, (t, x, lam, z, view(work, r.h, m)))
    # 3. y = C x + D lambda + F z + e, r = B lambda
    for i in range(m):
        s = work[r.base + i] + (work[r.h + i] if r.e_function != ABSENT else 0.0)
        s = _plus_product(s, i, (m, n), r.C, r.C_rows, r.x, memory)
        if r.D != ABSENT:
            s = _plus_product(s, i, (m, m), r.D, r.D_rows, r.lam, memory)
        if r.F_function != ABSENT:
            for j in range(n_z):
                s += work[r.F + i * n_z + j] * memory.mem[r.z + j]
        work[r.h + i] = s
    for i in range(n):
        work[r.g + i] = _plus_product(0.0, i, (n, m), r.B, r.B_rows, r.lam, memory)


@tiny
def _plus_product(s, i, shape, operator, rows, x, memory):
    """``s + (operator x)_i``; rows: where the compressed rows of a sparse operator lie in the record, ABSENT of a dense one."""
    work, imem, (m, n) = memory.work, memory.imem, shape
    if rows == ABSENT:
        for j in range(n):
            s += work[operator + i * n + j] * work[x + j]
        return s
    for k in range(imem[rows + i], imem[rows + i + 1]):
        s += work[operator + k] * work[x + imem[rows + m + 1 + k]]
    return s


@kernel
def relation_jacobians(t, r, least, spare, functions, memory):
    """C, D, K, B of a nonlinear relation at its arguments, with h and g known; least: of `rate_jacobian`. Work: spare (3 max(m, n))."""
    _derivative(t, r, least, (r.h_function, r.C_function), (r.m, r.n), (r.x, r.C, spare), functions, memory)
    _derivative(t, r, least, (r.g_function, r.B_function), (r.n, r.m), (r.lam, r.B, spare), functions, memory)
    if r.D != ABSENT:
        _derivative(t, r, least, (r.h_function, r.D_function), (r.m, r.m), (r.lam, r.D, spare), functions, memory)
    if r.K != ABSENT:
        _derivative(t, r, least, (r.g_function, r.K_function), (r.n, r.n), (r.x, r.K, spare), functions, memory)


@kernel
def _derivative(t, r, least, function, shape, at, functions, memory):
    """`derivative` of a relation; if least is 0 with finite differences of steps that are relative to the variables alone.

    at: offsets of variable, result and spare numbers.
    """
    (rows, columns), (variable, out, spare) = shape, at
    derivative(t, r, function[0], function[1], rows, variable, columns, out, spare, functions, memory)
    if least > 0.0 or function[1] != ABSENT:
        return
    work = memory.work
    x, lam, z = view(work, r.x, r.n), view(work, r.lam, r.m), view(memory.mem, r.z, r.n_z)
    call_function(functions, function[0], (t, x, lam, z, view(work, spare + rows, rows)))
    for j in range(columns):
        value = work[variable + j]
        work[variable + j] = value + FORWARD_STEP * abs(value)
        step = work[variable + j] - value
        if step != 0.0:
            call_function(functions, function[0], (t, x, lam, z, view(work, spare, rows)))
            for i in range(rows):
                work[out + i * columns + j] = (work[spare + i] - work[spare + rows + i]) / step
        work[variable + j] = value


@kernel
def evaluate_bounds(t, relations, constraints, p, functions, memory):
    """Bounds of lambda that are functions of time, into the problem p of all rows. Returns whether any has changed."""
    work = memory.work
    nothing, changed = view(memory.mem, 0, 0), False
    # 1. functions
    for a in range(relations.size):
        r = relations[a]
        if r.bounds_function != ABSENT:
            call_function(
                functions,
                r.bounds_function,
                (t, nothing, view(work, r.lam, r.m), view(memory.mem, r.z, r.n_z), view(work, r.bounds, 2 * r.m)),
            )
    # 2. their values by row
    for i in range(constraints.size):
        c = constraints[i]
        if c.low != ABSENT:
            changed |= work[p.lower + i] != work[c.low] or work[p.upper + i] != work[c.high]
            work[p.lower + i], work[p.upper + i] = work[c.low], work[c.high]
    return changed


def _asked(layout, mem, work):
    """Functions of parts and relations, for `blaming`."""
    for name, part in zip(layout.part_names, layout.parts, strict=True):
        n, n_u = part["n"], part["n_u"]
        for e in range(part["count"]):
            x, z = (mem[part[at] + e * part["stride"] :][:size] for at, size in (("q", n), ("z", part["n_z"])))
            for field, size in {"f": n, "jac_f": n**2, "A": n**2, "b": n, "T": n * n_u, "u": n_u}.items():
                slot = part[f"{field}_function"]
                yield "part", name, e, field, slot if slot == ABSENT else slot + e, x, np.zeros(0), z, size
    yield from asked_of_relations(layout, mem, work)


blame = blaming(_asked)


def cause_of(records, prepared, m, status):
    """Devices of a circuit that contradict each other at all voltages and currents, as text; empty for other failures."""
    if status != INFEASIBLE or not are_circuits(records):
        return ""
    devices = records["devices"][m]
    y, lam, lower, upper = (np.ravel(devices[field]) for field in ("y", "lambda", "lower", "upper"))
    off = abs(lam - np.clip(lam - y, lower, upper))
    owners = records["names"]["row_names"][m].item().decode().split()
    names = dict.fromkeys(name for name, by in zip(owners, off, strict=False) if by > _OFF * off.max())
    return f"{', '.join(names) or 'devices'}: {advice(status)}: {CONTRADICTION}"
