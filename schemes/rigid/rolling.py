"""Change of the velocities of closed contacts with their places in a step, for a symmetric law of sticking.

The contact point of a body that rolls moves on it: ``u = H v`` changes in a step by ``delta = h dH/dt v`` at constant v. If a half step
with H of the start has ``u = 0``, the friction of the other half, with H of the end, meets the velocity delta, and does the work
``s . delta / 2`` in each step: a power of the order of h, of one sign if a body spins about the normal. With ``u = -delta / 2`` both
halves have opposite velocities, and the work of sticking friction cancels. A body that stands on a corner keeps its place likewise.
"""

import numpy as np
from numba import float64, int64, typeof

from nsds._jit import caller, kernel, on_demand, stack, tiny, view
from nsds.collision import WORLD
from nsds.collision.frames import FIELDS, MOST, frame_in
from nsds.collision.narrow import contacts_of_pair, others_of_pair
from nsds.maths import rotations
from nsds.maths.vectors import dot, norm
from nsds.model.layout import ABSENT
from nsds.schemes.memory import MEMORY
from nsds.schemes.rigid import blocks
from nsds.schemes.rigid.approach import carry, carry_shape, place_shape
from nsds.schemes.rigid.bodies import EXPONENTIAL, move
from nsds.schemes.rigid.collisions import ask_user, point_velocity, reach, surfaces_apart
from nsds.schemes.rigid.interactions import axis_of, evaluate, row_velocity
from nsds.schemes.rigid.tables import COLLISIONS

_ROOM = MOST * FIELDS
_STILL = 1e-4  # radians in a step: a slower turn changes the energy of what rolls by 1e-3 in 4e5 steps


@tiny
def are_some_turning(h, c, w, memory):
    """Whether a body turns in a time h by more than counts, on which a contact of the record carried in the last step."""
    mem, imem, result = memory.mem, memory.imem, False
    for i in range(imem[c.n]):
        if mem[c.lam + c.each * i] > 0.0:
            a, b = imem[c.body + imem[c.a + i]], imem[c.body + imem[c.b + i]]
            result = result or h * _turn(a, b, w) > _STILL
    return result


@tiny
def is_turning(h, it, w, memory):
    """Whether an interaction is a contact with friction that carried in the last step, and one of its bodies turns by more than counts."""
    carried = False
    for i in range(it.m if it.tangents > 0 else 0):
        carried = carried or (blocks.first_row(it, i) == i and memory.mem[it.lam + i] > 0.0)
    return carried and h * _turn(it.a, it.b, w) > _STILL


@kernel
def aim_rows(t, h, it, p, functions, memory):
    """As `aim`, of an interaction of bodies whose q, R and w lie in the work memory. In/out: aim; H, h and rate stay those of the start."""
    mem, work = memory.mem, memory.work
    q, R, w = view(work, p.q, 7 * p.n_bodies), view(work, p.R, 9 * p.n_bodies), view(work, p.w, 6 * p.n_bodies)
    for is_end in (True, False):
        # 1. bodies at the end of the step, then at its start again
        for side in range(2):
            body = it.a if side == 0 else it.b
            if body != ABSENT:
                v, begun, to = view(work, p.v_old + 6 * body, 6), view(work, p.q_old + 7 * body, 7), view(q, 7 * body, 7)
                move(EXPONENTIAL, begun, h if is_end else 0.0, 1.0, v, v, to)
                for k in range(0 if is_end else 7):
                    to[k] = begun[k]
                rotations.rotation_matrix(view(to, 3, 4), view(R, 9 * body, 9))
        evaluate(t + h if is_end else t, it, q, R, functions, memory)
        # 2. difference of the velocities of tangential rows
        for i in range(it.m):
            first = blocks.first_row(it, i)
            if i > first and mem[it.lam + first] > 0.0:
                u = 0.5 * row_velocity(work[it.rate + i], it, i, w, work)
                work[it.aim + i] += u if is_end else -u


@tiny
def _turn(a, b, w):
    """Sum of the angular speeds of two bodies, of which the second may be the world."""
    return norm(view(w, 6 * a + 3, 3)) + (norm(view(w, 6 * b + 3, 3)) if b != WORLD else 0.0)


@kernel
def aim(collisions, number, h, q, w, memory):
    """Half of the change of tangential velocities in a step of length h into the aims of closed contacts that carried in the last one.

    q, w: positions and velocities at the start, in inertial axes. A contact with another feature at the end has none. Returns their number.
    In/out: aim.
    """
    mem, imem, work = memory.mem, memory.imem, memory.work
    c, found, lever, frame = collisions[number], stack(_ROOM), stack(6), stack(9)
    u, turned, end, turned_end = stack(3), stack(3), stack(3), stack(3)
    count, last_a, last_b, n_aimed = 0, -1, -1, 0
    for i in range(imem[c.n]):
        shape_a, shape_b = imem[c.a + i], imem[c.b + i]
        if not mem[c.lam + c.each * i] > 0.0:
            continue
        # 1. bodies that turn
        a, b = reach(c, i, q, memory, lever)
        turn = _turn(a, b, w)
        if not h * turn > _STILL:
            continue
        # 2. contacts of both shapes at the end, once for all of the pair
        if shape_a != last_a or shape_b != last_b:
            margin = abs(mem[c.y + i]) + h * turn * (norm(view(lever, 0, 3)) + (norm(view(lever, 3, 3)) if b != WORLD else 0.0))
            count, last_a, last_b = _find_at_end(c, (shape_a, shape_b), (a, b), margin, (h, q, w), memory, found), shape_a, shape_b
        k = 0
        while k < count and int(found[FIELDS * k]) != imem[c.feature + i]:
            k += 1
        if k == count:
            continue
        # 3. change of the velocity between the points that touch
        _between(0.0, c, (shape_a, shape_b), lever, (h, q, w), memory, u, turned)
        normal, way = view(found, FIELDS * k + 2, 3), 0.0 if b == WORLD else 0.5 * found[FIELDS * k + 1]
        for j in range(3):
            x = found[FIELDS * k + 5 + j] - way * normal[j]
            lever[j] = x - q[7 * a + j] - h * w[6 * a + j]
            lever[3 + j] = 0.0 if b == WORLD else x - q[7 * b + j] - h * w[6 * b + j]
        _between(h, c, (shape_a, shape_b), lever, (h, q, w), memory, end, turned_end)
        for j in range(3):
            end[j], turned[j] = end[j] - u[j], turned_end[j] - turned[j]
        # 4. tangents; axes of rolling and spinning turn with the normal
        frame_in(c.planar, view(mem, c.normal + 3 * i, 3), frame)
        for j in range(1, min(c.each, 3)):
            work[c.aim + c.each * i + j] += 0.5 * dot(end, view(frame, 3 * j, 3))
        spin = dot(normal, turned_end)
        for j in range(3, c.each):
            axis = view(frame, 3 * axis_of(c.each, j), 3)
            change = spin - dot(turned_end, axis) if c.each == 4 else -spin * dot(normal, axis)
            work[c.aim + c.each * i + j] += 0.5 * (dot(turned, axis) + change)
        n_aimed += 1
    return n_aimed


@kernel
def _between(way, c, shapes, lever, motion, memory, u, turn):
    """Velocity between the surfaces of two shapes at their contact, and angular velocity, after a motion for a time. Out: u, turn (3,)."""
    (_, q, w), (shape_a, shape_b), places, x = motion, shapes, stack(14), stack(3)
    a, b = memory.imem[c.body + shape_a], memory.imem[c.body + shape_b]
    # 1. of the bodies
    point_velocity(a, b, lever, w, u)
    # 2. of the surfaces, which move and turn with their bodies
    for side in range(2 if c.surface != ABSENT else 0):
        body = a if side == 0 else b
        if body != WORLD:
            carry(way, view(q, 7 * body, 3), view(w, 6 * body, 6), view(q, 7 * body, 7), view(places, 7 * side, 7))
    surfaces_apart(c, shape_a, shape_b, lever, places, memory, x, turn)
    for k in range(3):
        u[k] += x[k]
        turn[k] += w[6 * a + 3 + k] - (w[6 * b + 3 + k] if b != WORLD else 0.0)


@tiny
def _find_at_end(c, shapes, bodies, margin, motion, memory, found):
    """Contacts of two shapes after the motion (h, q, w) of their bodies, up to a gap; returns their number. Out: found."""
    (h, q, w), (shape_a, shape_b), mem, imem, n = motion, shapes, memory.mem, memory.imem, c.n_shapes
    pose, kind, size = view(memory.work, c.pose, 7 * n), view(imem, c.kind, n), view(mem, c.size, 3 * n)
    # 1. poses at the end
    for side in range(2):
        shape, body = shapes[side], bodies[side]
        place_shape(shape, q, c, memory)
        if body != WORLD:
            carry_shape(h, view(q, 7 * body, 3), view(w, 6 * body, 6), shape, view(pose, 7 * shape, 7), c, memory)
    # 2. their contacts
    others = others_of_pair(kind, shape_a, shape_b), view(mem, c.vertices, 3 * c.n_vertices), memory.iwork[c.general]
    count = contacts_of_pair(kind, size, pose, shape_a, shape_b, margin, others, found)
    if memory.iwork[c.hook] != 0:
        count = _ask_user(count, shapes, c, memory, found)
    # 3. restore the poses
    for side in range(2):
        place_shape(shapes[side], q, c, memory)
    return count


@kernel
def _ask_user(count, shapes, c, memory, found):
    """Number of the contacts found that the user's function keeps. In/out: found."""
    kept, contact = 0, stack(7)
    for k in range(count):
        feature, contact[6] = int(found[FIELDS * k]), found[FIELDS * k + 1]
        for j in range(6):
            contact[j] = found[FIELDS * k + 2 + j]
        if ask_user((shapes[0], shapes[1], feature), c, memory, contact):
            found[FIELDS * kept], found[FIELDS * kept + 1] = found[FIELDS * k], contact[6]
            for j in range(6):
                found[FIELDS * kept + 2 + j] = contact[j]
            kept += 1
    return kept


_FLOATS = float64[::1]
_SIGNATURE = int64(typeof(np.zeros(0, COLLISIONS)), int64, float64, _FLOATS, _FLOATS, MEMORY)
call_aim = caller(_SIGNATURE)
address_of_aim = on_demand(_SIGNATURE, aim)
