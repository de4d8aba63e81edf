"""Forces and impulses of chosen contacts with the mass as matrix, and the curvature term of accelerations."""

import math

import numpy as np

from nsds._jit import kernel, tiny, view
from nsds.model.layout import ABSENT
from nsds.schemes.lagrangian import equations
from nsds.schemes.lagrangian.curvature import find_curvature
from nsds.schemes.lagrangian.newton import add_pushed
from nsds.schemes.lagrangian.outputs import velocity
from nsds.schemes.problem import redundancy
from nsds.schemes.problem.active_set import extract_pattern, solve_active, transpose_pattern
from nsds.schemes.problem.assemble import assemble
from nsds.schemes.problem.box import rounding_of
from nsds.schemes.problem.impact import rebound
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
    assemble(s.plan, inverses, constraints, s.entries, inputs, s.couplings, chosen, (row, column, transpose), 1.0, 0, work, iwork)
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
def make_jump(n, weight, h, form, inverses, calls, memory):
    """The velocity problem of the n listed constraints at q, see `push_apart`. Returns (status, residual). Out: dv, the velocity change."""
    work = memory.work
    p, most = form.plan[0], 0.0
    for i in range(p.n_dofs):
        work[p.dv + i] = 0.0
    for a in range(n):
        c = form.constraints[memory.iwork[p.active + a]]
        w, size = velocity(c, form.entries, memory)
        work[p.q + a] = w + rebound(c, memory)
        most = max(most, size)
    work[p.rounding] = rounding_of(most)
    status, _, residual = push_apart(n, p.dv, weight, h, form, inverses, calls, memory)
    return status, residual


@kernel
def evaluate_curvature(t, h, acc, relations, p, functions, memory):
    """``d/dt (H v + rate)`` at constant v, beside the accelerations at acc."""
    for k in range(relations.size):
        find_curvature(t, h, -math.inf, math.inf, ABSENT, acc, relations[k], p, functions, memory)
