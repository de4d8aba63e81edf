"""Check that shapes meet whose contact the forecast closes, and the contact normal there.

The forecast ``y + gamma h ydot`` follows one normal, that of the start of the step. As the distance of convex shapes is a convex function
of their relative position it is a bound from below: a body that passes an edge, half a millimetre off, is forecast to hit it. Newton's
iteration for the root of the distance along the path, with contacts detected again at each place, stays before the first one; if a forecast
from some place reaches the end of the step with a gap, the shapes do not meet.
"""

import math

import numpy as np
from numba import float64, int64, typeof

from nsds._jit import caller, kernel, on_demand, stack, tiny, view
from nsds.collision import WORLD, place
from nsds.collision.frames import FIELDS, MOST
from nsds.collision.kinds import ENDLESS, MESH, SPHERE, bound
from nsds.collision.narrow import contacts_of_pair, others_of_pair
from nsds.maths.rotations import exp_quaternion, product, rotate
from nsds.maths.vectors import cross, dot, norm
from nsds.schemes.memory import MEMORY
from nsds.schemes.rigid.tables import COLLISIONS

_ROOM = MOST * FIELDS
_ROUNDS = 12  # of Newton's iteration: convergence is quadratic; a pair that has not converged by then counts as met
_MET = 1e-5  # of the displacement of a step: gap at which shapes have met; half of it remains, so that they still have one normal
_ALIKE = 0.9  # cosine between two normals that belong to the same contact


@kernel
def carry(way, x, w, pose, out):
    """Pose on a body at x after moving by its velocities times way. Out: out (7,)."""
    turn, quaternion, lever = stack(3), stack(4), stack(3)
    for k in range(3):
        turn[k], lever[k] = way * w[3 + k], pose[k] - x[k]
    exp_quaternion(turn, quaternion)
    rotate(quaternion, lever, lever)
    for k in range(3):
        out[k] = x[k] + way * w[k] + lever[k]
    product(quaternion, view(pose, 3, 4), view(out, 3, 4))


@tiny
def _is_ball(shape, c, memory):
    """Whether a shape is a sphere around the centre of its body, of which no one asks for the orientation."""
    local = view(memory.mem, c.local + 7 * shape, 3)
    is_centred = local[0] == 0.0 and local[1] == 0.0 and local[2] == 0.0
    return memory.imem[c.kind + shape] == SPHERE and is_centred and memory.iwork[c.hook] == 0


@tiny
def place_shape(shape, q, c, memory):
    """Pose of a shape in the configuration q of the bodies, of balls the position alone. Out: pose of c."""
    body, local, pose = memory.imem[c.body + shape], view(memory.mem, c.local + 7 * shape, 7), view(memory.work, c.pose + 7 * shape, 7)
    if body != WORLD and _is_ball(shape, c, memory):
        for k in range(3):
            pose[k] = q[7 * body + k]
    else:
        place(view(memory.imem, c.body + shape, 1), local, q, pose)


@tiny
def carry_shape(way, x, w, shape, begun, c, memory):
    """`carry` from a pose begun, of balls the position alone. Out: pose of c."""
    pose = view(memory.work, c.pose + 7 * shape, 7)
    if _is_ball(shape, c, memory):
        for k in range(3):
            pose[k] = x[k] + way * w[k]
    else:
        carry(way, x, w, begun, pose)


@kernel
def _speed(way, x, w, point, n):
    """Velocity along n of a body at x, carried on, where a point is."""
    lever, turned = stack(3), stack(3)
    for k in range(3):
        lever[k] = point[k] - x[k] - way * w[k]
    cross(view(w, 3, 3), lever, turned)
    return dot(n, w) + dot(n, turned)


@kernel
def _closing(way, ahead, found, k, moving):
    """Change of the gap of the k-th contact found by the motion of both bodies in a step. moving: x, w, x_b, w_b of both."""
    x, w, x_b, w_b = moving
    n, point, point_b = view(found, FIELDS * k + 2, 3), view(found, FIELDS * k + 5, 3), stack(3)
    for i in range(3):
        point_b[i] = point[i] - found[FIELDS * k + 1] * n[i]
    return ahead * (_speed(way, x, w, point, n) - _speed(way, x_b, w_b, point_b, n))


@tiny
def _far(c, shape, memory):
    """Largest distance of the points of a shape from the centre of its body."""
    size = bound(view(memory.imem, c.kind, c.n_shapes), view(memory.mem, c.size, 3 * c.n_shapes), shape)
    return size + norm(view(memory.mem, c.local + 7 * shape, 3))


@kernel
def _march(c, i, share, follows, slack, ahead, q, moving, memory, found):
    """(share of the step after which two shapes meet, number of contacts there, the one that is met); the number is 0 if they do not meet.

    In: i: a contact of theirs; share: after which the forecast closes it; follows: only contacts with a normal like its count, as shapes
    touch elsewhere; slack: gap that counts as met; q: of all bodies; moving: positions and velocities of both. Out: found (MOST FIELDS).
    """
    x, w, x_b, w_b = moving
    mem, imem = memory.mem, memory.imem
    a, b, n, saved, normal = imem[c.a + i], imem[c.b + i], c.n_shapes, stack(14), stack(3)
    pose, kind, size, way = view(memory.work, c.pose, 7 * n), view(imem, c.kind, n), view(mem, c.size, 3 * n), 0.0
    others = others_of_pair(kind, a, b), view(mem, c.vertices, 3 * c.n_vertices), memory.iwork[c.general]
    # 1. displacement of the step, rotations included: the scale of what counts as met
    for k in range(3):
        normal[k] = w[k] - w_b[k]
    span = norm(normal) + norm(view(w, 3, 3)) * _far(c, a, memory)
    span += norm(view(w_b, 3, 3)) * _far(c, b, memory) if imem[c.body + b] != WORLD else 0.0
    span *= ahead
    # 2. poses at the start; those of the step are restored at the end
    for k in range(3):
        normal[k] = mem[c.normal + 3 * i + k]
    place_shape(a, q, c, memory)
    place_shape(b, q, c, memory)
    for k in range(7):
        saved[k], saved[7 + k] = pose[7 * a + k], pose[7 * b + k]
    # 3. Newton's iteration for the root of the distance
    count, best, met = 0, 0, slack + _MET * span
    share = max(0.0, share * (1.0 - 0.5 * met / max(mem[c.y + i], met)))
    for _ in range(_ROUNDS):
        # poses after this share, and contacts there
        carry_shape(share * ahead, x, w, a, view(saved, 0, 7), c, memory)
        carry_shape(share * ahead, x_b, w_b, b, view(saved, 7, 7), c, memory)
        count, best, way = contacts_of_pair(kind, size, pose, a, b, slack + span, others, found), -1, math.inf
        # the contact that closes next, by its own normal
        for k in range(count):
            if follows and dot(normal, view(found, FIELDS * k + 2, 3)) < _ALIKE:
                continue
            gap, closing = found[FIELDS * k + 1], _closing(share * ahead, ahead, found, k, moving)
            left = 0.0 if gap <= met else (gap - 0.5 * met) / -closing if closing < 0.0 else math.inf
            if left < way or (left == way and left == 0.0 and gap < found[FIELDS * best + 1]):
                best, way = k, left
        # no root within the step
        if best < 0 or share + way > 1.0 + _MET:
            count = 0
        if count == 0 or way == 0.0:
            break
        for k in range(3):
            normal[k] = found[FIELDS * best + 2 + k]
        share = min(share + way, 1.0)
    # 4. restore
    for k in range(7):
        pose[7 * a + k], pose[7 * b + k] = saved[k], saved[7 + k]
    return share, count, best


@kernel
def _turn_to(c, i, k, share, ahead, moving, found, memory):
    """Move contact i of the record to the k-th contact found where two shapes meet: its gap is the motion from now to there."""
    mem = memory.mem
    (x, w, _, _), lever, quaternion, turn = moving, stack(3), stack(4), stack(3)
    for j in range(3):
        turn[j] = -share * ahead * w[3 + j]
        lever[j] = found[FIELDS * k + 5 + j] - x[j] - share * ahead * w[j]
    exp_quaternion(turn, quaternion)
    rotate(quaternion, lever, lever)
    mem[c.y + i] = found[FIELDS * k + 1] - share * _closing(share * ahead, ahead, found, k, moving)
    for j in range(3):
        mem[c.normal + 3 * i + j], mem[c.point + 3 * i + j] = found[FIELDS * k + 2 + j], x[j] + lever[j]
    for j in range(c.each):
        mem[c.lam + c.each * i + j] = 0.0


@tiny
def _do_touch(c, i, slack, memory):
    """Whether some contact of the record between the shapes of contact i is closed."""
    imem = memory.imem
    first, touches = i, False
    while first > 0 and imem[c.a + first - 1] == imem[c.a + i] and imem[c.b + first - 1] == imem[c.b + i]:
        first -= 1
    while first < imem[c.n] and imem[c.a + first] == imem[c.a + i] and imem[c.b + first] == imem[c.b + i]:
        touches, first = touches or memory.mem[c.y + first] <= slack, first + 1
    return touches


@kernel
def _share_of(c, i, slack, ahead, moving, mem):
    """Share of the step after which the forecast closes contact i of the record; above 1 if it stays open, or is closed already."""
    one, gap = stack(FIELDS), mem[c.y + i]
    if gap <= slack:
        return 2.0
    one[1] = gap
    for k in range(3):
        one[2 + k], one[5 + k] = mem[c.normal + 3 * i + k], mem[c.point + 3 * i + k]
    closing = _closing(0.0, ahead, one, 0, moving)
    return min(1.0, gap / -closing) if gap + closing <= slack else 2.0


@kernel
def meet(collisions, number, ahead, first, last, q, w, memory, pair, which):
    """Drop from the contacts at places first to last of which, chosen by the forecast, those whose shapes miss; returns the end.

    Contacts of separate shapes whose normal turns on the way are moved to the place where they meet. In/out: pair, which.
    """
    mem, imem, work = memory.mem, memory.imem, memory.work
    c, found, kept, at, nothing = collisions[number], stack(_ROOM), first, first, stack(6)
    for k in range(6):
        nothing[k] = 0.0
    # 1. all contacts of one pair of shapes
    while at < last:
        i, end = which[at], at + 1
        a, b, body, body_b = imem[c.a + i], imem[c.b + i], pair[2 * at], pair[2 * at + 1]
        while end < last and imem[c.a + which[end]] == a and imem[c.b + which[end]] == b:
            end += 1
        # 2. motion of both bodies; planes and tubes have one normal, so their forecast is exact
        slack = work[c.slack + 2 * a] + (work[c.slack + 2 * b] if body_b != WORLD else 0.0)
        kinds = (1 << imem[c.kind + a]) | (1 << imem[c.kind + b])
        x, v = view(q, 7 * body, 3), view(w, 6 * body, 6)
        x_b, v_b = (view(nothing, 0, 3), view(nothing, 0, 6)) if body_b == WORLD else (view(q, 7 * body_b, 3), view(w, 6 * body_b, 6))
        moving = (x, v, x_b, v_b)
        touches, soonest = _do_touch(c, i, slack, memory), 2.0
        # 3. soonest forecast of the pair, and whether the shapes meet
        for spot in range(at, end if kinds & ENDLESS == 0 else at):
            soonest = min(soonest, _share_of(c, which[spot], slack, ahead, moving, mem))
        is_checked, share, count, best, used = soonest <= 1.0, soonest, 0, 0, 0
        if is_checked and not touches:
            share, count, best = _march(c, i, soonest, False, slack, ahead, q, moving, memory, found)
        # 4. contacts that are kept
        for spot in range(at, end):
            i = which[spot]
            own, is_kept = _share_of(c, i, slack, ahead, moving, mem) if is_checked else 2.0, True
            if is_checked and own <= 1.0 and not touches:
                # a contact of another normal would push aside; it takes the place of one where they meet
                is_kept = count > 0
                if is_kept and dot(view(found, FIELDS * best + 2, 3), view(mem, c.normal + 3 * i, 3)) < _ALIKE:
                    is_kept = used < count
                    if is_kept:
                        _turn_to(c, i, (best + used) % count, share, ahead, moving, found, memory)
                        used += 1
            # meshes touch in several places: each contact on its own
            elif is_checked and own <= 1.0 and kinds & (1 << MESH) != 0:
                is_kept = _march(c, i, own, True, slack, ahead, q, moving, memory, found)[1] > 0
            if is_kept:
                pair[2 * kept], pair[2 * kept + 1], which[kept], kept = body, body_b, i, kept + 1
        at = end
    return kept


_INTS, _FLOATS = int64[::1], float64[::1]
_SIGNATURE = int64(typeof(np.zeros(0, COLLISIONS)), int64, float64, int64, int64, _FLOATS, _FLOATS, MEMORY, _INTS, _INTS)
call_meet = caller(_SIGNATURE)
address_of_meet = on_demand(_SIGNATURE, meet)
