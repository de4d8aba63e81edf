"""Forces and impulses of chosen contacts with the mass as matrix, and the curvature term of accelerations."""

import numpy as np

from nsds._jit import inlined, kernel, tiny, view
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT
from nsds.schemes.derivatives import derivative
from nsds.schemes.lagrangian import equations
from nsds.schemes.lagrangian.functions import stated_rate
from nsds.schemes.lagrangian.newton import add_pushed
from nsds.schemes.problem import redundancy
from nsds.schemes.problem.active import extract_pattern, solve_active, transpose_pattern
from nsds.schemes.problem.assemble import assemble
from nsds.schemes.problem.rows import POSITION
from nsds.status import CONVERGED


def require_rigid(owner, layout):
    """Refuse y that depends on lambda."""
    c = layout.constraints
    compliant = (c["level"] == POSITION) | (c["coupling"] != c["coupling_end"])
    if compliant.any() or (layout.relations["D"] != ABSENT).any():
        name = layout.owners[int(np.argmax(compliant))][0]
        raise ValueError(f"{owner}: interaction '{name}': the scheme is stated for y that does not depend on lambda; use nsds.moreau_jean")


@tiny
def clear_impulses(parts, elements, mem):
    """``p = 0`` of all bodies: also impulses of constraints that are no longer listed."""
    for k in range(elements.size):
        part = parts[elements[k].part]
        p = part.q + elements[k].e * part.stride + 2 * part.n
        for i in range(part.n):
            mem[p + i] = 0.0


@kernel
def push_apart(n, out, weight, h, s, inverses, calls, memory):
    """Solve ``0 <= H M^-1 H^T z + q  ⟂  z >= 0`` for the n listed constraints, q prepared; add ``M^-1 H^T z`` to work[out:].

    Linearly dependent equations have z of least norm: see `nsds.schemes.lagrangian.equations`.

    h: z of a unit of bounded forces; s: tables of the Newton form; inverses: rows of bodies with M^-1. ``weight z`` is added to p.total.
    Returns (status, iterations, residual).
    """
    work, iwork = memory.work, memory.iwork
    constraints, inputs, p = s.constraints, s.inputs, s.plan[0]
    if n == 0:
        return CONVERGED, 0, 0.0
    # 1. Delassus matrix of the listed constraints
    clear_impulses(s.parts, s.elements, memory.mem)
    extract_pattern(p, n, s.W_row, s.W_column, iwork)
    transpose_pattern(p, n, iwork)
    row, column = view(iwork, p.sub_row, n + 1), view(iwork, p.sub_column, iwork[p.sub_row + n])
    chosen, transpose = view(iwork, p.active, n), view(iwork, p.sub_place, iwork[p.sub_row + n])
    assemble(s.plan, inverses, constraints, s.entries, inputs, s.couplings, chosen, row, column, transpose, 1.0, 0, work, iwork)
    # 2. equations alone are solved by elimination; beside other rows redundant ones are made consistent, and the solver does the rest
    m, are_all = equations.gather(n, constraints, p, memory)
    if are_all:
        status, n_iter, residual = equations.solve(n, m, h, constraints, inputs, calls.solver_options.inexact, p, memory)
    else:
        rank = redundancy.factorise(m, p, memory)
        if rank < m:
            redundancy.make_consistent(m, rank, p, view(work, p.q, n), memory)
        status, n_iter, residual = solve_active(p, s.blocks, n, h, h, calls.solver, constraints, inputs, calls.solver_options, memory)
    # 3. impulses, and velocities by them
    for a in range(n):
        work[p.total + iwork[p.active + a]] += weight * work[p.z + a]
    add_pushed(out, s.parts, s.elements, inverses, p, memory)
    return status, n_iter, residual


@kernel
def evaluate_curvature(t, h, relations, p, functions, memory):
    """``d/dt (H v + rate)`` at constant v: a second difference of y along the motion, or a first one where there is no y.

    For contacts with friction whose H is a function, y gives no curvature of the tangents.
    """
    for k in range(relations.size):
        r = relations[k]
        has_other_rows = r.block > 1 and r.H_function != ABSENT
        if r.h_function == ABSENT or has_other_rows:
            _first_difference(t, 0.1 * h, r, p, functions, memory)
        if r.h_function != ABSENT:
            _second_difference(t, h, r.block if has_other_rows else 1, r, p, functions, memory)


@kernel
def _first_difference(t, s, r, p, functions, memory):
    """``(H(t + s, q + s v) v - H v + rate(t + s, q + s v) - rate) / s`` into r.curvature, for H and rate that are not derivatives of y."""
    mem, work = memory.mem, memory.work
    m, n, changes, moves = r.m, r.n, r.H_function != ABSENT, r.rate != ABSENT
    # 1. rate at the point itself, which the moved one overwrites
    for i in range(m):
        work[r.curvature + i] = work[r.rate + i] if moves else 0.0
    # 2. H and rate at the moved point
    for j in range(n):
        work[r.x + j] = mem[coordinate(r, j)] + s * mem[coordinate(r, j) + width(r, j)]
    if changes:
        derivative(t + s, r, r.h_function, r.H_function, m, r.x, n, p.H_moved, p.spare, functions, memory)
    stated_rate(t + s, r, functions, memory)
    # 3. difference; the rate is restored
    for i in range(m):
        here = work[r.curvature + i]
        grown = work[r.rate + i] - here if moves else 0.0
        for j in range(n if changes else 0):
            grown += (work[p.H_moved + i * n + j] - work[r.H + i * n + j]) * mem[coordinate(r, j) + width(r, j)]
        work[r.curvature + i] = grown / s
        if moves:
            work[r.rate + i] = here


@tiny
def coordinate(r, j):
    """Place of coordinate j of a relation; its velocity is `width` behind it."""
    return r.q_first + j if j < r.n_first else r.q_second + j - r.n_first


@tiny
def width(r, j):
    """Coordinates of the body that coordinate j of a relation belongs to."""
    return r.n_first if j < r.n_first else r.n - r.n_first


@inlined
def _second_difference(t, h, each, r, p, functions, memory):
    """``(h(t + s, q + s v) - 2 h(t, q) + h(t - s, q - s v)) / s^2`` into r.curvature, of every ``each``-th row.

    s moves q by a ten-thousandth, or is h/10.
    """
    mem, work = memory.mem, memory.work
    # 1. distance of the points: a time if y depends on time, else a share of the coordinates
    fastest, size = 0.0, 1.0
    for j in range(r.n):
        q = coordinate(r, j)
        fastest, size = max(fastest, abs(mem[q + width(r, j)])), max(size, abs(mem[q]))
    s = 0.1 * h if r.rate != ABSENT or fastest == 0.0 else 1e-4 * size / fastest
    # 2. second difference along the motion
    for i in range(0, r.m, each):
        work[r.curvature + i] = -2.0 * work[r.h + i] / (s * s)
    x, lam, z, out = view(work, r.x, r.n), view(work, r.lam, r.m), view(mem, r.z, r.n_z), view(work, p.spare, r.m)
    for sign in (-1.0, 1.0):
        for j in range(r.n):
            q = coordinate(r, j)
            work[r.x + j] = mem[q] + sign * s * mem[q + width(r, j)]
        call_function(functions, r.h_function, (t + sign * s, x, lam, z, out))
        for i in range(0, r.m, each):
            work[r.curvature + i] += work[p.spare + i] / (s * s)
