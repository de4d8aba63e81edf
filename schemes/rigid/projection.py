"""Projection of rigid bodies on their constraints after each step of Moreau–Jean ([Notes], chapter 13).

    q <- q moved by G H^T lambda,      0 = h + H G H^T lambda of equations,      0 <= h + H G H^T lambda  ⟂  lambda >= 0 of gaps

with h and H of the last q, until no constraint is violated. G is the inverse mass, or the identity in coordinates: of x and p with the
constraint ``|p| = 1`` (eq. 13.7) a rotation by ``4 H_omega^T lambda``, which is also ``(T^T T)^-1`` in velocities (eq. 13.12). Bodies turn
along the exponential map, so that p stays unit. Velocities are not touched.
"""

import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, specialised, stack, tiny, view
from nsds.collision import WORLD
from nsds.maths import rotations
from nsds.maths.vectors import times_transposed
from nsds.schemes.rigid import blocks, problem
from nsds.schemes.rigid import collisions as contacts
from nsds.schemes.rigid import moreau_jean as plain
from nsds.schemes.rigid.bodies import inverse_matrix
from nsds.schemes.rigid.interactions import evaluate, frame_of
from nsds.schemes.rigid.moreau_jean import blame, grow  # noqa: F401
from nsds.schemes.rigid.tables import EQUALITY, IMPACT, PRESCRIBED, tables
from nsds.schemes.run.memory import Allocator, Prepared
from nsds.solvers.contact.signature import EQUATION
from nsds.status import CONVERGED, VIOLATED

_SHARE = 0.1  # of the tolerance: what the solver may leave


class Tables(NamedTuple):
    """What a step with its projection reads of a model."""

    motion: plain.Tables
    positions: plain.Tables  # the same, but for a plan of its own: impulses of the projection must not overwrite those of the step


class Options(NamedTuple):
    """Words of a step with its projection."""

    h: float
    motion: problem.Options
    constraint_tol: float
    max_rounds: float
    by_mass: float  # not 0: the metric is the mass, else the identity


def prepare(records, options, h, method):
    """Tables of the step and of the problem of positions."""
    work, iwork = Allocator(records.size), Allocator(records.size)
    lists, words = tables(records, work, iwork), plain.options_of(h, options)
    if not options["every_contact"]:
        raise ValueError("moreau_jean_direct_projection: contacts='active' is for Lagrangian systems; of rigid bodies all are projected")
    tol, max_rounds = options["constraint_tol"].item(), float(options["max_rounds"].item())
    own = Options(h, words, tol, max_rounds, float(options["metric"] == b"mass"))
    s = Tables(*(plain.tables_of(lists, words, method, work, iwork, records.size) for _ in range(2)))
    return Prepared(s, lists.functions, own, work.array(), iwork.array(np.int64), sys.modules[__name__], lists)


@kernel
def start(t, s, functions, options, mem, imem, work, iwork):
    """Before the first step: as without a projection."""
    return plain.start(t, s.motion, functions, options.motion, mem, imem, work, iwork)


@kernel
def project(t, s, functions, solver, solver_options, options, mem, imem, work, iwork):
    """Moves q of the end of the step onto the constraints. Returns CONVERGED, VIOLATED, or the solver's status. In/out: q of the plan."""
    p, own, collisions, interactions = s.positions.plan[0], s.motion.plan[0], s.motion.collisions, s.motion.interactions
    m, status, wanted = p.n_bodies, VIOLATED, _SHARE * options.constraint_tol
    q, moved = view(work, own.q, 7 * m), view(work, p.w_free, 6 * m)
    for k in range(int(options.max_rounds) + 1):
        n_contacts, depth = penetrating(options.h, own, collisions, p, q, mem, imem, work, iwork)
        n_blocks, violation = violated(t, interactions, p, q, functions, mem, imem, work, iwork)
        if max(depth, violation) <= options.constraint_tol:
            status = CONVERGED
            break
        if k == int(options.max_rounds):
            break
        metric(t, options.by_mass != 0.0, s.motion.bodies, p, q, functions, mem, work)
        state_positions(n_contacts, n_blocks, interactions, p, work, iwork)
        for i in range(6 * m):
            moved[i] = 0.0
        problem.arrange(n_contacts, problem.has_matrix(n_contacts, n_blocks, p), p, work, iwork)
        state_gaps(n_contacts, collisions, p, q, work, iwork)
        solved = problem.solve_blocks(n_contacts, n_blocks, True, s.positions, solver, solver_options, wanted, 1.0, work, iwork)
        if solved != CONVERGED and not problem.can_go_on(solved):
            status = solved
            break
        inverse, impulse = view(work, p.inverse, p.stride * m), view(work, p.p, 6 * m)
        blocks.multiply_inverse(m, p.stride, inverse, impulse, moved)
        turn_all(p, q, moved, work)
    return status


@tiny
def motion(own):
    """Of the tables, or of the options, those of the step."""
    return own.motion


step = kernel(specialised(plain.step, "projected", correct=project, motion=motion))


@kernel
def penetrating(h, own, collisions, p, q, mem, imem, work, iwork):
    """(number, depth): detected contacts at q with gaps up to the depth of the deepest, none if that is 0. Out: q_old, pair, which of p.

    Those that are open by less than the depth are listed too, as bodies that are pushed apart may be pushed into others.
    """
    n, depth, v = 0, 0.0, view(work, own.v, 6 * p.n_bodies)
    for i in range(7 * p.n_bodies):
        work[p.q_old + i] = q[i]
    for k in range(collisions.size):
        c = collisions[k]
        iwork[c.found] = min(contacts.find(c, h, own.parallel != 0, q, v, mem, imem, work, iwork), c.capacity)
        for i in range(iwork[c.found]):
            depth = max(depth, -work[c.new_gap + i])
    for k in range(collisions.size if depth > 0.0 else 0):
        c = collisions[k]
        for i in range(iwork[c.found]):
            if work[c.new_gap + i] <= depth:
                a, b = imem[c.body + iwork[c.new_a + i]], imem[c.body + iwork[c.new_b + i]]
                iwork[p.pair + 2 * n], iwork[p.pair + 2 * n + 1], iwork[p.which + n], iwork[p.which + p.n_contacts + n] = a, b, i, k
                n += 1
    return n, depth


@kernel
def state_gaps(n, collisions, p, q, work, iwork):
    """The n penetrating contacts as frictionless ones, in the order of place. Out: the first n of disk, mu, body, frame, lever, b, r."""
    for i in range(n):
        j = iwork[p.place + i]
        c, number = collisions[iwork[p.which + p.n_contacts + j]], iwork[p.which + j]
        a, b = iwork[p.pair + 2 * j], iwork[p.pair + 2 * j + 1]
        iwork[p.body + 2 * i], iwork[p.body + 2 * i + 1], iwork[p.disk + i] = a, b, 0
        work[p.mu + 2 * i], work[p.mu + 2 * i + 1] = 0.0, 0.0
        frame_of(view(work, c.new_normal + 3 * number, 3), view(work, p.frame + 9 * i, 9))
        for k in range(3):
            x = work[c.new_point + 3 * number + k]
            work[p.lever + 6 * i + k] = x - q[7 * a + k]
            work[p.lever + 6 * i + 3 + k] = 0.0 if b == WORLD else x - q[7 * b + k]
        for k in range(p.d):
            work[p.b + p.d * i + k], work[p.r + p.d * i + k] = work[c.new_gap + number] if k == 0 else 0.0, 0.0


@kernel
def violated(t, interactions, p, q, functions, mem, imem, work, iwork):
    """(blocks, violation): equations, and gaps that are negative, at q, and the largest of ``|h|`` and ``-h``. Out: R, begin."""
    R, n, worst = view(work, p.R, 9 * p.n_bodies), 0, 0.0
    for i in range(p.n_bodies):
        rotations.rotation_matrix(view(q, 7 * i + 3, 4), view(R, 9 * i, 9))
    for k in range(interactions.size):
        it = interactions[k]
        iwork[p.begin + k] = -1
        if it.kind == PRESCRIBED or blocks.has_bounds(it):
            continue
        evaluate(t, it, q, R, functions, mem, imem, work)
        violation = 0.0
        for i in range(0, it.m, 1 if it.law == EQUALITY or it.law == IMPACT else it.each):
            violation = max(violation, abs(work[it.h + i]) if it.law == EQUALITY else -work[it.h + i])
        if it.law == EQUALITY or violation > 0.0:
            iwork[p.begin + k] = n
            n += it.n_blocks
            worst = max(worst, violation)
    return n, worst


@kernel
def state_positions(n_contacts, n_blocks, interactions, p, work, iwork):
    """The blocks of interactions: ``H G H^T lambda + h``; of contacts with friction the normal components only."""
    stated, d = problem.stated_blocks(n_contacts, n_blocks, p, work, iwork), p.d
    H, diagonal, body, mu, b = stated.H, stated.diagonal, stated.body, stated.mu, stated.b
    for i in range(12 * d * n_blocks):
        H[i] = 0.0
    for i in range(d * n_blocks):
        diagonal[i], b[i], stated.r[i] = 1.0, 0.0, 0.0
    for k in range(interactions.size):
        it, first = interactions[k], iwork[p.begin + k]
        if first < 0:
            continue
        is_equation = it.law == EQUALITY
        for i in range(first, first + it.n_blocks):
            body[2 * i], body[2 * i + 1], mu[2 * i], mu[2 * i + 1] = it.a, it.b, 0.0, 0.0
            stated.disk[i] = EQUATION if is_equation else 0
        for i in range(0, it.m, 1 if is_equation or it.law == IMPACT else it.each):
            to = first * d + blocks.place(it, d, i)
            diagonal[to], b[to] = -1.0 if is_equation else 0.0, work[it.h + i]
            for l in range(12):
                H[12 * to + l] = work[it.H + 12 * i + l]


@kernel
def metric(t, by_mass, bodies, p, q, functions, mem, work):
    """Inverse of the metric of all bodies, in inertial axes. Out: inverse."""
    still, nothing = stack(6), stack(9)
    for i in range(9):
        nothing[i] = 0.0
    for i in range(6):
        still[i] = 0.0
    for i in range(p.n_bodies):
        own = view(work, p.inverse + p.stride * i, p.stride)
        if by_mass:
            inverse_matrix(
                t, 0.0, 0.0, bodies[i], view(q, 7 * i, 7), still, view(work, p.R + 9 * i, 9), nothing, False, functions, mem, own,
                view(work, p.spare, 150),
            )  # fmt: skip
        else:
            for k in range(p.stride):
                own[k] = 0.0
            movable = 0.0 if bodies[i].fixed else 1.0
            for k in range(6):
                if p.stride == 36:
                    own[7 * k] = movable if k < 3 else 4.0 * movable
                else:
                    own[0 if k < 3 else 1 + 4 * (k - 3)] = movable if k < 3 else 4.0 * movable


@kernel
def turn_all(p, q, moved, work):
    """Moves x, and turns bodies by rotation vectors in inertial axes. In/out: q."""
    w = stack(3)
    for i in range(p.n_bodies):
        for k in range(3):
            q[7 * i + k] += moved[6 * i + k]
        times_transposed(view(work, p.R + 9 * i, 9), view(moved, 6 * i + 3, 3), w)
        rotations.advance(view(q, 7 * i + 3, 4), w, view(q, 7 * i + 3, 4))
