"""Contacts, stops and friction in a tree of joints: its one-step problem in the generalised velocities of the joints.

With ``A theta = S^T (z - H^T r)``, z the balance of the bodies without laws, and velocities ``w - D theta``, the laws are stated for

    u = W r + q,    W = H D A^-1 S^T H^T,    q = H (w - D A^-1 S^T z) + b

in blocks of d components, as in `schemes.rigid.blocks`; all blocks act on each other. Equations of joints are none of them.
"""

import math

import numpy as np

from nsds._jit import kernel, stack, tiny, view
from nsds.maths.vectors import dot, dot_6
from nsds.model.layout import ABSENT, table
from nsds.schemes.problem import friction
from nsds.schemes.rigid import articulated, blocks, problem
from nsds.schemes.rigid.collisions import rows_of_contact
from nsds.schemes.rigid.interactions import evaluate
from nsds.schemes.rigid.tables import EQUALITY, FORCE, INERTIA, MASS
from nsds.solvers.contact.signature import EQUATION, N_INFO, call_solver, changed, problem_of

# n: unknowns; d: components of a block.
PLAN = table(
    # most: blocks that there is room for; left, right (n a component): their rows in the joints, see `articulated.add_left`
    "most", "left", "right",
    # W (d most, d most): Delassus matrix, in blocks; rhs: q; scratch of the solver, its pattern
    "W", "rhs", "solver", "n_solver", "row", "column",
    # group (2 a block): of both sides, ABSENT for an immovable side, and for the second one if both agree; kept: see
    # `nsds.schemes.problem.friction`; acts (1 a component): whether its row is not 0, that of padding
    "group", "isolver", "n_isolver", "kept", "acts",
)  # fmt: skip
# Connected by joints and forces: unknowns, the first one and their number, and links.
GROUP = table("origin", "size", "link", "links")
_MOST = 24
_MANY = 3  # blocks from which some may carry the load of others
_LEVELS, _LEVEL = 200, 1e-5  # rounds of `_level`, and change, relative to the largest impulse, at which it has converged
_HELD = 1e-9  # relative to the largest entry of a block without joints: smaller ones are blocked by joints, but for rounding


def reserve(lists, method, n, work, iwork):
    """Plan of the arrays for n unknowns."""
    plan, d = np.zeros(1, PLAN), lists.d
    of_laws = ~np.isin(lists.interactions["law"], (EQUALITY, FORCE))
    most = min(_MOST, int(lists.interactions["n_blocks"][of_laws].sum() + lists.collisions["capacity"].sum()))
    plan["most"] = most
    # all blocks act on each other through the tree, so the pattern is full
    if most > 0:
        floats, integers = method.work_size(d, np.arange(most + 1) * most, np.tile(np.arange(most), most))
        work.place(
            plan,
            **dict.fromkeys(("left", "right"), d * most * n),
            W=(d * most) ** 2,
            rhs=d * most,
            solver=floats,
            kept=2 * most,
        )
        iwork.place(plan, row=most + 1, column=most**2, group=2 * most, acts=d * most, isolver=integers)
        plan["n_solver"], plan["n_isolver"] = floats, integers
    return plan


@kernel
def number_blocks(interactions, joins, p, iwork):
    """Number the blocks: laws first, then joints and forces. In/out: begin."""
    n = 0
    for turn in range(2):
        for k in range(interactions.size):
            it = interactions[k]
            if iwork[p.begin + k] >= 0 and (it.law == FORCE or iwork[joins + k] != 0) == (turn == 1):
                iwork[p.begin + k] = n
                n += it.n_blocks


@kernel
def state(t, n_contacts, n_laws, s, joins, options, functions, memory):
    """State the laws of contacts and of interactions, with H at q_k and w_k. Out: blocks and known of plan p."""
    work, iwork = memory.work, memory.iwork
    p, d, m = s.plan[0], s.plan[0].d, s.plan[0].n_bodies
    # 1. contacts
    problem.arrange(n_contacts, True, p, memory)
    problem.state_contacts(n_contacts, True, s, memory)
    for i in range(n_contacts):
        each = s.collisions[iwork[p.which + p.n_contacts + iwork[p.place + i]]].each
        rows_of_contact(each, False, i, p, memory, view(work, p.H + 12 * d * i, 12 * d), view(work, p.diagonal + d * i, d))
    # 2. interactions that are not joints of the tree
    stated = problem.stated_blocks(n_contacts, n_laws, p, memory)
    for k in range(s.interactions.size):
        it, first = s.interactions[k], iwork[p.begin + k]
        if first >= 0 and it.law != FORCE and iwork[joins + k] == 0:
            if it.row == ABSENT and it.gap_function == ABSENT:
                evaluate(t, it, view(work, p.q_old, 7 * m), view(work, p.R, 9 * m), functions, memory)
            blocks.state_block(options.h, options.gamma * options.h, True, True, it, first, d, memory, stated)
    if p.bounded != 0:
        problem.know_origins(options.h, s.interactions, p, memory)


@kernel
def respond(is_start, n_contacts, n_laws, s, tree, memory):
    """Delassus matrix of the laws, A factorised: with columns S, at the start of a half, or D. Out: W, diagonal, group.

    Tangents along which joints allow no motion become padding, as that out of the plane of planar bodies. False if this applies to a
    normal, whose impulse joints may carry or not.
    """
    work, iwork = memory.work, memory.iwork
    p, plan, n, d, count, W = s.plan[0], tree.contacts[0], tree.plan[0].n, s.plan[0].d, n_contacts + n_laws, tree.contacts[0].W
    # 1. rows in the joints, and W: only rows that share a group are coupled; padding acts on nothing
    _find_groups(count, p, tree, iwork)
    for a in range(d * count):
        left, right = view(work, plan.left + n * a, n), view(work, plan.right + n * a, n)
        iwork[plan.acts + a] = 1 if _state_row(is_start, a, left, right, p, tree, memory) else 0
    for i in range((d * count) ** 2):
        work[W + i] = 0.0
    for b in range(d * count):
        for side in range(2 * iwork[plan.acts + b]):
            k = iwork[plan.group + 2 * (b // d) + side]
            for i in range(count if k != ABSENT else 0):
                if iwork[plan.group + 2 * i] == k or iwork[plan.group + 2 * i + 1] == k:
                    first = tree.groups[k].origin
                    response = view(work, plan.left + n * b + first, tree.groups[k].size)
                    for a in range(d * i, d * i + d):
                        work[W + ((i * count + b // d) * d + a % d) * d + b % d] += _dot(response, work, plan.right + n * a + first)
    if tree.plan[0].n_apart > 0 and not is_start:
        articulated.correct_by_forces_apart(d * count, plan.left, plan.right, d, W, tree, memory)
    # 2. padding, by comparison with the response of the bodies without joints
    is_free = True
    for k in range(count):
        own, largest = W + (k * count + k) * d * d, 0.0
        for a in range(d):
            largest = max(largest, _without_joints(k, a, s, memory))
        is_free = is_free and (work[p.diagonal + d * k] != 0.0 or work[own] > _HELD * largest)
        for a in range(d):  # padding: u = s r
            if work[p.diagonal + d * k + a] > 0.0 or not work[own + a * (d + 1)] > _HELD * largest:
                work[p.diagonal + d * k + a], work[own + a * (d + 1)] = 1.0, largest if largest > 0.0 else 1.0
    return is_free


@tiny
def _state_row(is_start, row, left, right, p, tree, memory):
    """A row of H in the joints. Returns whether it is not 0. Without motion A is symmetric, and right is what acts on the joints."""
    x, acts = stack(6), False
    for c in range(left.size):
        left[c] = right[c] = 0.0
    for side in range(2):
        at, H = _link_of(memory.iwork[p.body + 2 * (row // p.d) + side], tree, memory.iwork), p.H + 12 * row + 6 * side
        is_there = False
        for l in range(6 if at != ABSENT else 0):
            is_there = is_there or memory.work[H + l] != 0.0
        if not is_there:
            continue
        acts = True
        if not is_start:
            for l in range(6):
                x[l] = memory.work[H + l]
            articulated.add_right(at, x, right, tree, memory)
        for l in range(6):
            x[l] = memory.work[H + l]
        articulated.add_left(at, x, right if is_start else view(memory.work, tree.plan[0].theta, left.size), left, tree, memory)
    return acts


@tiny
def _dot(x, work, y):
    """``x . work[y:]``."""
    total = 0.0
    for c in range(x.size):
        total += x[c] * work[y + c]
    return total


@tiny
def _along(row, p, tree, memory):
    """``H D theta`` of one row."""
    total = 0.0
    for side in range(2):
        at = _link_of(memory.iwork[p.body + 2 * (row // p.d) + side], tree, memory.iwork)
        if at != ABSENT:
            total += dot_6(view(memory.work, p.H + 12 * row + 6 * side, 6), view(memory.work, tree.links[at].motion, 6))
    return total


@tiny
def _link_of(body, tree, iwork):
    """Link of a body, ABSENT of one that nothing moves."""
    return iwork[tree.plan[0].row_of + body] if body >= 0 else ABSENT


@kernel
def is_contradicted(n_contacts, n_laws, scale, bearable, s, tree, memory):
    """Whether a contact that is to separate, b < 0, cannot move along its normal, after a `respond` with D that is False.

    Neither impulses nor joints change its velocity ``H w + b`` to first order, which is below 0 by most of b, and by more than the
    share ``bearable`` of the velocities present, whose energy is half of scale.
    """
    work, iwork = memory.work, memory.iwork
    p, plan, n, count, least, total = s.plan[0], tree.contacts[0], tree.plan[0].n, n_contacts + n_laws, 0.0, 0.0
    H, w = view(work, p.H, 12 * p.d * count), view(work, p.w, 6 * p.n_bodies)
    for k in range(n_contacts):
        # scale of motion, by all contacts
        row, moves, size = p.d * k, 0.0, _without_joints(k, 0, s, memory)
        total += scale * size + work[p.b + row] ** 2
        if not work[p.diagonal + row] > 0.0 or iwork[p.disk + k] == EQUATION:
            continue
        # motion along the normal that the joints allow
        for side in range(2):
            group = iwork[plan.group + 2 * k + side]
            if group != ABSENT:
                moves += abs(articulated.mobility(group, view(work, plan.right + n * row, n), tree, work))
        u = blocks.velocity(work[p.b + row], row, iwork[p.body + 2 * k], iwork[p.body + 2 * k + 1], H, w)
        if moves <= _HELD * size and u < 0.5 * work[p.b + row] < 0.0:
            least = min(least, u)
    return least * least > bearable * bearable * total


@kernel
def _find_groups(count, p, tree, iwork):
    """Out: group."""
    plan = tree.contacts[0]
    for k in range(count):
        for side in range(2):
            at = _link_of(iwork[p.body + 2 * k + side], tree, iwork)
            group = tree.links[at].group if at != ABSENT else ABSENT
            iwork[plan.group + 2 * k + side] = ABSENT if side == 1 and group == iwork[plan.group + 2 * k] else group


@tiny
def _without_joints(k, a, s, memory):
    """``H M^-1 H^T`` of component a of block k, for balls of the bodies' inertias."""
    mem = memory.mem
    p, total = s.plan[0], 0.0
    for side in range(2):
        body, H = memory.iwork[p.body + 2 * k + side], p.H + 12 * (p.d * k + a) + 6 * side
        if body >= 0 and not s.bodies[body].fixed:
            q, force, moment = s.bodies[body].q, view(memory.work, H, 3), view(memory.work, H + 3, 3)
            inertia = (mem[q + INERTIA] + mem[q + INERTIA + 4] + mem[q + INERTIA + 8]) / 3.0
            total += dot(force, force) / mem[q + MASS] + dot(moment, moment) / inertia
    return total


@kernel
def solve(is_start, is_first, n_contacts, n_laws, s, tree, solver, options, memory):
    """``A theta = S^T z`` with impulses by the laws, and z minus these. Returns (status, ``z . S theta``).

    is_start: w is 0, and its columns are S; is_first: r is that of the last step. Out: r, theta, motion, info. In/out: z.
    """
    work, iwork = memory.work, memory.iwork
    p, plan, d, count = s.plan[0], tree.contacts[0], s.plan[0].d, n_contacts + n_laws
    q, r, u = view(work, plan.rhs, d * count), view(work, p.r, d * count), view(work, p.u, d * count)
    row, column, W = view(iwork, plan.row, count + 1), view(iwork, plan.column, count**2), view(work, plan.W, (d * count) ** 2)
    disk, mu, body = view(iwork, p.disk, count), view(work, p.mu, 2 * count), view(iwork, p.body, 2 * count)
    H, w = view(work, p.H, 12 * d * count), view(work, p.w, 6 * p.n_bodies)
    # 1. motion without laws, and q of each component by it
    articulated.solve_all(is_start, tree, memory)
    for k in range(count):
        row[k + 1] = count * (k + 1)
        for j in range(count):
            column[count * k + j] = j
        for a in range(d * k, d * k + d):
            share = W[(k * count + k) * d * d + a % d * (d + 1)] if work[p.diagonal + a] > 0.0 else 1.0
            q[a] = blocks.velocity(share * work[p.b + a], a, body[2 * k], body[2 * k + 1], H, w)  # b of padding is in units of r
            q[a] -= _along(a, p, tree, memory)
    row[0] = 0
    # 2. guess: of several contacts that could carry the same load, all do
    kept = view(work, plan.kept, 2 * count)
    friction.note(d, disk, view(work, p.diagonal, d * count), r, kept)
    if is_first and count >= _MANY:
        _level(d, disk, mu, view(work, p.diagonal, d * count), W, q, r, u)
    # 3. solve
    info, spare, ispare = view(work, p.info, N_INFO), view(work, plan.solver, plan.n_solver), view(iwork, plan.isolver, plan.n_isolver)
    aim = problem.aim_of_motion(options.tol, d, problem.stated_blocks(0, count, p, memory), q, s.bodies, memory.mem)
    own = changed(options, aim, problem.most_iterations(p, options, work), 0.0)
    status = call_solver(solver, (problem_of((disk, mu, row, column, W, q)), own, r, u, info, spare, ispare))
    # 4. friction of linearly dependent contacts is kept from the last step; open contacts carry nothing, not even rounding
    problem.note_lost(p, options, work)
    friction.keep_blocks(d, disk, row, column, W, u, kept, r)
    for k in range(count):
        own = W[(k * count + k) * d * d]
        if work[p.diagonal + d * k] == 0.0 and not r[d * k] * own > u[d * k]:
            for a in range(d * k, d * k + d):
                r[a] = 0.0
    # 5. motion with the impulses
    for a in range(d * count):
        for side in range(2):
            at = _link_of(body[2 * (a // d) + side], tree, iwork)
            for l in range(6 if at != ABSENT else 0):
                work[tree.links[at].z + l] -= work[p.H + 12 * a + 6 * side + l] * r[a]
    return status, articulated.solve_all(is_start, tree, memory)


@kernel
def _level(d, disk, mu, diagonal, W, q, r, change):
    """Distribute impulses evenly by simultaneous iteration, but those that roll. In/out: r. Work: change.

    Sweeps load the first of many contacts with what several could carry; friction is largest if contacts carry alike.
    """
    count = disk.size
    for _ in range(_LEVELS):
        farthest = most = 0.0
        # Jacobi: changes from the same impulses for all, scaled by row sums, so that the order of contacts has no effect
        for i in range(count):
            for a in range(3):
                u, size = q[d * i + a], 0.0
                for j in range(count):
                    row = ((i * count + j) * d + a) * d
                    for b in range(d):
                        u, size = u + W[row + b] * r[d * j + b], size + abs(W[row + b])
                change[d * i + a] = -u / size if diagonal[d * i + a] == 0.0 and size > 0.0 else 0.0
            _stay_in_cone(diagonal[d * i] != 0.0, mu[2 * i] if disk[i] > 0 else 0.0, view(r, d * i, 3), view(change, d * i, 3))
            for a in range(3):
                farthest, most = max(farthest, abs(change[d * i + a])), max(most, abs(r[d * i + a]))
        if farthest <= _LEVEL * most:
            return
        # apply all changes at once
        for i in range(count):
            for a in range(3):
                r[d * i + a] += change[d * i + a]


@tiny
def _stay_in_cone(is_given, mu, r, change):
    """A change of normal and tangents that leaves the normal above 0, if it is not given, and tangents in the disk. In/out: change."""
    if not is_given:
        change[0] = max(-r[0], change[0])
    limit, x, y = mu * (r[0] + change[0]), r[1] + change[1], r[2] + change[2]
    size = math.sqrt(x * x + y * y)
    share = limit / size if size > limit else 1.0
    change[1], change[2] = share * x - r[1], share * y - r[2]
