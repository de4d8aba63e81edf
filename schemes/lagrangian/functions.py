"""Masses, forces and relations of Lagrangian systems, and their derivatives: user functions, stored numbers, or finite differences."""

import math

import numpy as np

from nsds._jit import kernel, view
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT, DENSE, DIAGONAL
from nsds.schemes.derivatives import FORWARD_STEP, derivative, derivative_by_time
from nsds.schemes.linear_algebra import subtract_product
from nsds.schemes.problem.blame import asked_of_relations, blaming


@kernel
def mass(part, e, q, functions, memory, out):
    """M(q) of element e of a part, as a dense matrix in work[out:]; q is an offset in work."""
    mem, imem, work = memory.mem, memory.imem, memory.work
    n = part.n
    # by the user's function, or stored dense, diagonal or sparse
    if part.mass_function != ABSENT:
        nothing, z = view(mem, 0, 0), view(mem, part.z + e * part.stride, part.n_z)
        call_function(functions, part.mass_function + e, (0.0, view(work, q, n), nothing, z, view(work, out, n * n)))
        return
    M = part.M + e * part.stride
    for i in range(n * n):
        work[out + i] = mem[M + i] if part.M_kind == DENSE else 0.0
    if part.M_kind == DIAGONAL:
        for i in range(n):
            work[out + i * n + i] = mem[M + i]
    elif part.M_kind != DENSE:
        columns, data = M + n + 1, M + n + 1 + part.M_nnz
        for i in range(n):
            for k in range(imem[M + i], imem[M + i + 1]):
                work[out + i * n + imem[columns + k]] = mem[data + k]


@kernel
def force(t, part, e, q, v, spare, functions, memory, out, size):
    """``F_ext - F_int - F_gyr - K q - C v + T u`` of element e, and the sum of the absolute terms; q, v, spare (n), out, size in work."""
    mem, work = memory.mem, memory.work
    n, shift = part.n, e * part.stride
    z, nothing = view(mem, part.z + shift, part.n_z), view(mem, 0, 0)
    if part.fext_function != ABSENT:
        call_function(functions, part.fext_function + e, (t, nothing, nothing, z, view(work, out, n)))
    else:
        for i in range(n):
            work[out + i] = 0.0 if part.fext == ABSENT else mem[part.fext + shift + i]
    for i in range(n):
        work[size + i] = abs(work[out + i])
    internal_force(t, part, e, q, v, spare, functions, memory, out, size)
    control_force(t, part, e, q, v, functions, memory, out, size)


@kernel
def internal_force(t, part, e, q, v, spare, functions, memory, out, size):
    """Add ``-F_int - F_gyr - K q - C v`` of element e to work[out:], and the absolute terms to work[size:]."""
    work = memory.work
    n = part.n
    z, at_q, at_v, term = view(memory.mem, part.z + e * part.stride, part.n_z), view(work, q, n), view(work, v, n), view(work, spare, n)
    # 1. user functions
    if part.fint_function != ABSENT:
        call_function(functions, part.fint_function + e, (t, at_q, at_v, z, term))
        for i in range(n):
            work[out + i] -= work[spare + i]
            work[size + i] += abs(work[spare + i])
    if part.fgyr_function != ABSENT:
        call_function(functions, part.fgyr_function + e, (t, at_q, at_v, z, term))
        for i in range(n):
            work[out + i] -= work[spare + i]
            work[size + i] += abs(work[spare + i])
    # 2. stored matrices
    if part.K != ABSENT:
        _subtract_stiffness(part.K_kind, part.K_nnz, part.K + e * part.stride, n, q, spare, memory, out, size)
    if part.C != ABSENT:
        _subtract_stiffness(part.C_kind, part.C_nnz, part.C + e * part.stride, n, v, spare, memory, out, size)


@kernel
def _subtract_stiffness(kind, nnz, K, n, q, spare, memory, out, size):
    work = memory.work
    for i in range(n):
        work[spare + i] = 0.0
    subtract_product(kind, n, nnz, memory.mem, memory.imem, K, 1.0, work, q, spare)
    for i in range(n):
        work[out + i] += work[spare + i]
        work[size + i] += abs(work[spare + i])


@kernel
def control_force(t, part, e, q, v, functions, memory, out, size):
    """Add ``T(q) u(t, q, v)`` of element e to work[out:], and the absolute terms to work[size:]."""
    work = memory.work
    n, n_u, shift = part.n, part.n_u, e * part.stride
    if n_u == 0:
        return
    z, at_q, at_v, T = view(memory.mem, part.z + shift, part.n_z), view(work, q, n), view(work, v, n), part.T + e * n * n_u
    # 1. T and u
    if part.T_function != ABSENT:
        call_function(functions, part.T_function + e, (t, at_q, at_v, z, view(work, T, n * n_u)))
    if part.u_function != ABSENT:
        call_function(functions, part.u_function + e, (t, at_q, at_v, z, view(work, part.u_work, n_u)))
    else:
        for j in range(n_u):
            work[part.u_work + j] = memory.mem[part.u + shift + j]
    # 2. force, with the sizes of its terms
    for i in range(n):
        for j in range(n_u):
            term = work[T + i * n_u + j] * work[part.u_work + j]
            work[out + i] += term
            work[size + i] += abs(term)


@kernel
def add_tangents(t, part, e, q, v, spare, factor_q, factor_v, functions, memory, out):
    """``out += factor_q K_t + factor_v C_t``, the derivatives of ``-force`` by q and v ([Notes], eq. 10.41). Work: spare (n^2 + 4 n)."""
    _add_tangent(t, part, e, q, v, q, part.jac_q_function, factor_q, spare, functions, memory, out)
    _add_tangent(t, part, e, q, v, v, part.jac_v_function, factor_v, spare, functions, memory, out)


@kernel
def _add_tangent(t, part, e, q, v, variable, jacobian, factor, spare, functions, memory, out):
    """Add factor times the derivative of ``-F`` by q or v (variable) to the matrix at out."""
    work = memory.work
    n = part.n
    if factor == 0.0 or (variable == v and part.fint_function == part.fgyr_function == part.u_function == ABSENT):
        return
    # 1. the user's Jacobian, which does not contain the controls
    if jacobian != ABSENT:
        z = view(memory.mem, part.z + e * part.stride, part.n_z)
        call_function(functions, jacobian + e, (t, view(work, q, n), view(work, v, n), z, view(work, spare, n * n)))
        for i in range(n * n):
            work[out + i] += factor * work[spare + i]
        if part.u_function == ABSENT and part.T_function == ABSENT:
            return
    # 2. finite differences of the rest, away from 0, so that signs of coordinates do not change
    at, base, size, moved = spare, spare + n, spare + 2 * n, spare + 3 * n
    part_of_force(t, part, e, q, v, jacobian, at, functions, memory, base, size)
    for j in range(n):
        x_j = work[variable + j]
        work[variable + j] = x_j + math.copysign(FORWARD_STEP * max(1.0, abs(x_j)), x_j)
        step = work[variable + j] - x_j
        part_of_force(t, part, e, q, v, jacobian, at, functions, memory, moved, size)
        work[variable + j] = x_j
        for i in range(n):
            work[out + i * n + j] -= factor * (work[moved + i] - work[base + i]) / step


@kernel
def part_of_force(t, part, e, q, v, jacobian, spare, functions, memory, out, size):
    """Part of the force that is differentiated numerically: all but F_ext, or the control only if a Jacobian is given."""
    for i in range(part.n):
        memory.work[out + i] = 0.0
    if jacobian == ABSENT:
        internal_force(t, part, e, q, v, spare, functions, memory, out, size)
    control_force(t, part, e, q, v, functions, memory, out, size)


@kernel
def prescribe(t, r, functions, memory):
    """Minus the prescribed velocity at t, where it is a function."""
    work = memory.work
    if r.velocity_function != ABSENT:
        nothing = view(memory.mem, 0, 0)
        call_function(functions, r.velocity_function, (t, nothing, nothing, view(memory.mem, r.z, r.n_z), view(work, r.rate, r.m)))
        for i in range(r.m):
            work[r.rate + i] = -work[r.rate + i]


@kernel
def stated_rate(t, r, functions, memory):
    """Rate of a relation that states it: minus the prescribed velocity, or h_t at the relation's arguments."""
    work = memory.work
    prescribe(t, r, functions, memory)
    if r.h_t_function != ABSENT:
        x, lam, z = view(work, r.x, r.n), view(work, r.lam, r.m), view(memory.mem, r.z, r.n_z)
        call_function(functions, r.h_t_function, (t, x, lam, z, view(work, r.rate, r.m)))


@kernel
def relation_output(t, r, functions, memory):
    """h, and g of a relation that has one, at the relation's arguments x and lam."""
    work = memory.work
    x, lam, z = view(work, r.x, r.n), view(work, r.lam, r.m), view(memory.mem, r.z, r.n_z)
    if r.h_function != ABSENT:
        call_function(functions, r.h_function, (t, x, lam, z, view(work, r.h, r.m)))
    if r.g_function != ABSENT:
        call_function(functions, r.g_function, (t, x, lam, z, view(work, r.g, r.n)))


@kernel
def relation_operators(t, h, r, is_new, scale, spare, functions, memory):
    """H, B, D (``scale`` times D for the one-step problem) and rate of a relation at its arguments. Work: spare (3 max(m, n)).

    is_new: False keeps those by finite differences. h: the step, which differences in time resolve.
    """
    work = memory.work
    m, n = r.m, r.n
    # 1. rate, if it is given
    if r.rate != ABSENT:
        stated_rate(t, r, functions, memory)
    # 2. H
    if (is_new and r.h_function != ABSENT) or r.H_function != ABSENT:
        derivative(t, r, r.h_function, r.H_function, m, r.x, n, r.H, spare, functions, memory)
    # 3. rate by a central difference in time
    if is_new and r.rate != ABSENT and r.h_function != ABSENT and r.h_t_function == ABSENT:
        derivative_by_time(t, h, r, m, r.rate, spare, functions, memory)
    # 4. D and B
    if r.D != ABSENT:
        if is_new or r.D_function != ABSENT:
            derivative(t, r, r.h_function, r.D_function, m, r.lam, m, r.D, spare, functions, memory)
        for i in range(m * m):
            work[r.scaled + i] = scale * work[r.D + i]
    if r.g_function != ABSENT and (is_new or r.B_function != ABSENT):
        derivative(t, r, r.g_function, r.B_function, n, r.lam, m, r.B, spare, functions, memory)


def _asked(layout, mem, work):
    """Functions of parts and relations, for `blaming`."""
    nothing = np.zeros(0)
    for name, part in zip(layout.part_names, layout.parts, strict=True):
        n = part["n"]
        sizes = {"mass": n**2, "fint": n, "fgyr": n, "fext": n, "jac_q": n**2, "jac_v": n**2, "T": n * part["n_u"], "u": part["n_u"]}
        for e in range(part["count"]):
            first = part["q"] + e * part["stride"]
            z = mem[part["z"] + e * part["stride"] :][: part["n_z"]]
            for field, size in sizes.items():
                slot = part[f"{field}_function"]
                state = (nothing, nothing) if field == "fext" else (mem[first : first + n], mem[first + n : first + 2 * n])
                yield "part", name, e, field, slot if slot == ABSENT else slot + e, *state, z, size
    yield from asked_of_relations(layout, mem, work)


blame = blaming(_asked)
