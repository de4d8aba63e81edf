"""Loads of joints at the middle of a step: forces on bodies that joints transmit act at the positions of the joints there.

RATTLE has forces F of the middle of a step, and joints with H of its ends, which do not balance each other: a strong force through a joint
has a lever of some ``h v / 2`` about it in one half and the opposite one in the other, and so slows down unrelated motions. So the joints
of a spanning tree take at once all that they can,

    F <- F + H^T Lambda,        H of the middle,

body by body towards the world: of the wrench about the point of its joint a body keeps the components along free directions, a force along
translations and a moment about rotations; the rest goes to its parent. That is symmetric in time, so that a step stays reversible. Loads
of joints that close loops, and those due to motion, act with H of the ends, with an error of second order.

Given the loads, Newton's matrix contains their geometric stiffness: ``-h^2 dM/d(rotation)`` is added to the inertia of a body, see
`schemes.rigid.joint_rows.turned_arm`.
"""

import numpy as np

from nsds._jit import kernel, stack, tiny, view
from nsds.maths.rotations import rotate, rotate_back
from nsds.maths.vectors import cross, dot, norm
from nsds.model.layout import ABSENT, table
from nsds.schemes.rigid.enabled import is_unmoved
from nsds.schemes.rigid.tables import EQUALITY, FORCE

# One row per joint of the spanning tree, those farthest from the world first.
LINK = table(
    # child transmits its load to parent, a body or ABSENT for the world; is_b: the child is B of the interaction joint
    "child", "parent", "joint", "is_b",
    # points: rows that hold a point, which come first; turns: free rotations; planar: bodies in the plane
    "points", "turns", "planar",
    # work memory: handed (6), force and moment about its point that the joint transmits, N and N m, in inertial axes; Lambda (m): the same
    # as forces of its rows
    "handed", "Lambda",
)  # fmt: skip


def plant(lists, joints, plan, work):
    """Spanning tree `LINK` of joints, {interaction: (slides, turns)}; its work memory is reserved, and written into the plan.

    None if no force depends on positions and joints close loops, or contacts act, too: there H of the ends has the same balance.
    """
    # 1. neighbours of each body; fixed bodies count as the world
    bodies, around, order = lists.bodies, {}, []
    for k, left in joints.items():
        a, b = (int(lists.interactions[side][k]) for side in "ab")
        for child, parent, is_b in ((a, b, False), (b, a, True)):
            if child != ABSENT and not bodies["fixed"][child]:
                root = ABSENT if parent == ABSENT or bodies["fixed"][parent] else parent
                around.setdefault(root, []).append((child, parent, k, is_b, left))
    # 2. breadth first from the world
    known = set()
    for root in (ABSENT, *np.flatnonzero(bodies["fixed"] == 0).tolist()):
        waiting = [] if root in known else [root]
        known.add(root)
        while waiting:
            for line in around.get(waiting.pop(0), ()):
                if line[0] not in known:
                    known.add(line[0])
                    order.append(line)
                    waiting.append(line[0])
    # 3. whether loads at the middle of the step differ from those at its ends
    laws = lists.interactions["law"]
    depend_on_places = bodies["oriented"].any() or bodies["coupled"].any() or (laws == FORCE).any()
    has_contacts = lists.collisions.size > 0 or (lists.interactions["always"] == 0).any()
    if (has_contacts or len(order) < (laws == EQUALITY).sum()) and not depend_on_places:
        order = []
    # 4. links, from the leaves on: a body's load is complete once its children have been visited
    links = np.zeros(len(order), LINK)
    for link, (child, parent, k, is_b, (slides, turns)) in zip(links, order[::-1], strict=True):
        link["child"], link["parent"], link["joint"], link["is_b"], link["turns"] = child, parent, k, is_b, turns
        link["planar"] = bodies["planar"][child]
        link["points"] = (2 if link["planar"] else 3) - slides
        link["handed"], link["Lambda"] = work.reserve(6), work.reserve(int(lists.interactions["m"][k]))
    n = bodies.size if order else 0
    work.place(plan, load=6 * bodies.size, wrench=6 * n, arms=9 * n)
    return links


@kernel
def press(is_new, h, s, memory):
    """``F + H^T Lambda`` of all bodies, at q of the middle of a step; h: half of it. In/out: f. Out: load, handed.

    turning: the geometric stiffness, computed if is_new, else kept. The size of forces is still that without loads, see `add_sizes`.
    """
    work = memory.work
    p, m = s.plan[0], s.plan[0].n_bodies
    if s.links.size == 0:  # load and turning stay 0
        return
    # 1. forces on each body, in inertial axes
    q, wrench, arms = view(work, p.q, 7 * m), view(work, p.wrench, 6 * m), view(work, p.arms, 9 * m)
    for i in range(m):
        own, f, is_moved = view(wrench, 6 * i, 6), view(work, p.f + 6 * i, 6), not is_unmoved(s.bodies[i], work)
        for l in range(6):
            own[l] = f[l] if is_moved else 0.0
        rotate(view(q, 7 * i + 3, 4), view(own, 3, 3), view(own, 3, 3))
    for i in range(9 * m if is_new else 0):
        arms[i] = work[p.turning + i] = 0.0
    # 2. from the leaves to the world; a disabled joint carries nothing
    for at in range(s.links.size):
        link = s.links[at]
        if memory.iwork[p.begin + link.joint] >= 0:
            _hand_on(is_new, h, link, s.interactions[link.joint], p, memory)
        else:
            _clear(link.handed, 6, work)
    # 3. back to axes of the bodies; the difference is the load of joints
    for i in range(m):
        own, f, load = view(wrench, 6 * i, 6), view(work, p.f + 6 * i, 6), view(work, p.load + 6 * i, 6)
        rotate_back(view(q, 7 * i + 3, 4), view(own, 3, 3), view(own, 3, 3))
        is_moved = not is_unmoved(s.bodies[i], work)
        for l in range(6):
            load[l] = own[l] - f[l] if is_moved else own[l]
            f[l] = own[l] if is_moved else f[l]


@kernel
def add_sizes(s, work):
    """Sizes of forces get those of the loads of the last `press`. In/out: size."""
    p = s.plan[0]
    for i in range(p.n_bodies if s.links.size > 0 else 0):
        work[p.size + 2 * i] += norm(view(work, p.load + 6 * i, 3))
        work[p.size + 2 * i + 1] += norm(view(work, p.load + 6 * i + 3, 3))


@tiny
def _hand_on(is_new, h, link, it, p, memory):
    """Transmit the components of a body's wrench that its joint constrains to its parent. In/out: wrench, arms. Out: handed, turning.

    arms: of each body the sum of ``r F^T``, with r from its centre to the points of joints at which it gets F.
    """
    mem, work, m = memory.mem, memory.work, p.n_bodies
    q, wrench, arms = view(work, p.q, 7 * m), view(work, p.wrench, 6 * m), view(work, p.arms, 9 * m)
    c, point, pin, n, turned = link.child, stack(3), stack(3), stack(3), stack(3)
    x, own, handed = view(q, 7 * c, 3), view(wrench, 6 * c, 6), view(work, link.handed, 6)
    force, moment = view(handed, 0, 3), view(handed, 3, 3)
    p_a, p_b = view(q, 7 * it.a + 3, 4), view(q, 7 * max(it.b, 0) + 3, 4)
    rotate(p_a, view(mem, it.row_a, 3), point)
    for l in range(3):
        point[l] += q[7 * it.a + l] - x[l]  # from the centre of the body
        force[l] = own[l] if link.points == 3 else 0.0
        pin[l] = 0.0
    # 1. force: all of it, unless the point may slide
    for i in range(link.points if link.points < 3 else 0):
        _axis(it, i, p_b, mem, n)
        along = dot(n, own)
        for l in range(3):
            force[l] += along * n[l]
    # 2. moment about the point of the joint, but that about a pin
    if link.turns == 1 and link.planar != 0:
        pin[2] = 1.0
    elif link.turns == 1:
        rotate(p_a, view(mem, it.row_u + 3 * link.points, 3), pin)
    if is_new:
        for k in range(9):
            arms[9 * c + k] -= point[k // 3] * own[k % 3]
        _note_turn(h, link.turns, view(q, 7 * c + 3, 4), pin, view(arms, 9 * c, 9), view(work, p.turning + 9 * c, 9))
    cross(point, own, moment)
    for l in range(3):
        moment[l] = own[3 + l] - moment[l] if link.turns < 3 else 0.0
    about = dot(pin, moment)
    for l in range(3):
        moment[l] -= about * pin[l]
    # 3. from one body to the other; of a ball joint the moment that is left is the one about its point
    cross(point, force, turned)
    for l in range(3):
        own[l] -= force[l]
        own[3 + l] -= moment[l] + turned[l]
    if link.parent == ABSENT:
        return
    to = view(wrench, 6 * link.parent, 6)
    for l in range(3):
        point[l] += x[l] - q[7 * link.parent + l]
    cross(point, force, turned)
    for l in range(3):
        to[l] += force[l]
        to[3 + l] += moment[l] + turned[l]
    for k in range(9 if is_new else 0):
        arms[9 * link.parent + k] += point[k // 3] * force[k % 3]


@kernel
def split(s, memory):
    """Split the load of each joint into forces of its rows, which are orthogonal, at q of the last `press`. Out: Lambda."""
    mem, work = memory.mem, memory.work
    q, force, moment, pin, n = view(work, s.plan[0].q, 7 * s.plan[0].n_bodies), stack(3), stack(3), stack(3), stack(3)
    for at in range(s.links.size):
        link = s.links[at]
        it, sign = s.interactions[link.joint], 1.0 if link.is_b != 0 else -1.0
        # in axes of B, in which the directions of rows are constant
        _to_b(it, q, view(work, link.handed, 3), force)
        _to_b(it, q, view(work, link.handed + 3, 3), moment)
        for i in range(link.points):
            work[link.Lambda + i] = sign * dot(view(mem, it.row_w + 3 * i, 3), force)
        for i in range(link.points, it.m):
            if i == link.points or link.turns != 1:  # all rows of a pin have the same
                rotate(view(q, 7 * it.a + 3, 4), view(mem, it.row_u + 3 * i, 3), pin)
                _to_b(it, q, pin, pin)
            cross(pin, view(mem, it.row_w + 3 * i, 3), n)
            work[link.Lambda + i] = sign * dot(n, moment)


@tiny
def _to_b(it, q, x, out):
    """x, in inertial axes, in those of B."""
    if it.b != ABSENT:
        rotate_back(view(q, 7 * it.b + 3, 4), x, out)
    else:
        for l in range(3):
            out[l] = x[l]


@tiny
def _axis(it, i, p_b, mem, n):
    """The direction of row i in axes of B, in inertial ones."""
    if it.b != ABSENT:
        rotate(p_b, view(mem, it.row_w + 3 * i, 3), n)
    else:
        for l in range(3):
            n[l] = mem[it.row_w + 3 * i + l]


@tiny
def _note_turn(h, turns, p_c, pin, X, turning):
    """``h^2 (X - tr X)`` on free rotations, the derivative of the moment ``r x F`` by a rotation, ``X = sum r F^T``. Out: turning (9,)."""
    if turns == 0:
        return
    # one free rotation: a scalar stiffness about its pin
    trace, axis, column = X[0] + X[4] + X[8], stack(3), stack(3)
    if turns == 1:
        slope = -trace
        for k in range(9):
            slope += pin[k // 3] * X[k] * pin[k % 3]
        rotate_back(p_c, pin, axis)
        for k in range(9):
            turning[k] = h * h * slope * axis[k // 3] * axis[k % 3]
        return
    # all rotations: the full matrix, turned into axes of the body from both sides
    for k in range(9):
        turning[k] = h * h * (X[k] - (trace if k % 4 == 0 else 0.0))
    for i in range(0, 9, 3):
        rotate_back(p_c, view(turning, i, 3), view(turning, i, 3))
    for j in range(3):
        for i in range(3):
            column[i] = turning[3 * i + j]
        rotate_back(p_c, column, column)
        for i in range(3):
            turning[3 * i + j] = column[i]


@tiny
def _clear(place, n, work):
    for i in range(n):
        work[place + i] = 0.0


@kernel
def clear(s, work):
    """Joints press at the ends of the step alone. Out: load, Lambda."""
    p = s.plan[0]
    for i in range(6 * p.n_bodies):
        work[p.load + i] = 0.0
    for at in range(s.links.size):
        _clear(s.links[at].Lambda, s.interactions[s.links[at].joint].m, work)


@kernel
def add_to(factor, s, memory):
    """lambda of the record gets factor times Lambda."""
    for at in range(s.links.size):
        it = s.interactions[s.links[at].joint]
        for i in range(it.m):
            memory.mem[it.lam + i] += factor * memory.work[s.links[at].Lambda + i]


@kernel
def take_from_guess(h, s, r, memory):
    """Subtract h Lambda from the impulses of equations with which a half step begins. In/out: r, by components of the one-step problem."""
    p = s.plan[0]
    split(s, memory)
    for at in range(s.links.size):
        link = s.links[at]
        first = p.d * memory.iwork[p.begin + link.joint]
        for i in range(s.interactions[link.joint].m if first >= 0 else 0):
            r[first + i] -= h * memory.work[link.Lambda + i]
