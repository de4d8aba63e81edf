"""Prevention of tunnelling: bodies that would pass through others within one step stop at the contact.

A body that moves farther in a step than half of the thinner of two shapes follows its path until they touch
(`nsds.collision.touching`), and the lighter one from there on the path of the other, until that pushes it into a third: then it stops, and
what touches it stops, too. Velocities are kept: the contact that is detected there acts by its law, in this step or the next. So one body
loses the rest of a step, once or twice an impact.

Where a scheme puts all positions on their constraints afterwards, half spaces stop nothing, and what touches already may overlap until it
might pass: a sheet that turns about a corner dips by O(h^2) in each step, more than the overlap at which others stop.

Bodies connected by joints act as one: they stop when one of them touches. If joints connect them to the world, bodies that push them
within the step may penetrate them.
"""

import math

import numpy as np

from nsds._jit import kernel, stack, tiny, view
from nsds.collision import WORLD, place
from nsds.collision.detection import Shapes, Touches, first_touches
from nsds.collision.frames import FIELDS, MOST
from nsds.collision.kinds import BALLS, bound
from nsds.collision.narrow import other_pairs
from nsds.collision.touching import ARM, FOLLOWS, NEVER, PATH, POINT, SPEED, SPIN, START, STOPS, TURN, Moving, follow
from nsds.maths.rotations import log_quaternion, normalise, product, rotate
from nsds.maths.vectors import norm
from nsds.model.layout import ABSENT
from nsds.schemes.rigid.enabled import hide
from nsds.schemes.rigid.tables import EQUALITY, MASS

_TURNS = 16  # for each body: most events in a step; after half of them bodies stop instead of following others
_AROUND = 2.0 * math.pi
_TO_WORLD = 2  # how joints hold a body


def units_of(bodies, interactions):
    """(first body of the joint group of each body; 1 in such groups, 2 in those connected to the world)."""
    unit, held = np.arange(bodies.size), np.zeros(bodies.size, np.int64)
    joints = interactions[interactions["law"] == EQUALITY]
    for a, b in zip(joints["a"].tolist(), joints["b"].tolist(), strict=True):
        if b == ABSENT or bodies["fixed"][a] or bodies["fixed"][b]:
            movable = [body for body in (a, b) if body != ABSENT and not bodies["fixed"][body]]
            held[np.isin(unit, unit[movable])] = _TO_WORLD
        elif unit[a] != unit[b]:
            joined = np.isin(unit, (unit[a], unit[b]))
            unit[joined], held[joined] = min(unit[a], unit[b]), max(1, held[joined].max())
    return unit, held


def reserve(lists, plan, work, iwork, n_members):
    """Room for paths of bodies, where contacts are detected."""
    n = lists.bodies.size if lists.collisions.size else 0
    unit, held = units_of(lists.bodies[:n], lists.interactions if n else lists.interactions[:0])
    work.place(plan, path=PATH * n, rank=n, when=n)
    iwork.place(plan, partner=n, is_new=n, turned=n)
    plan["unit"], plan["held"] = (iwork.store(np.tile(each, (n_members, 1))) for each in (unit, held))


@kernel
def keep_from_passing(is_corrected, h, weight, s, memory):
    """Stop bodies that have moved from q_old to q with ``weight v + (1 - weight) v_mid`` at contacts on their paths. In/out: q.

    is_corrected: whether positions are put on their constraints afterwards.
    """
    work = memory.work
    p, may_pass = s.plan[0], False
    # 1. most steps end here: nothing has moved farther than is safe for any pair of shapes
    for k in range(s.collisions.size):
        may_pass = _may_pass(h, weight, s.collisions[k], s.bodies, p, memory) or may_pass
    if not may_pass:
        return
    # 2. paths of all bodies, then touches in the order of time
    _begin(h, weight, s.bodies, p, memory)
    for i in range(p.n_bodies):
        work[p.when + i] = NEVER
    most = _TURNS * p.n_bodies
    for k in range(most):
        # a user's function may let shapes pass: collisions with one are not followed
        for j in range(s.collisions.size):
            if memory.iwork[s.collisions[j].hook] == 0:
                _find_touches(k == 0, is_corrected, s.collisions[j], p, memory)
        if not _give_way(2 * k >= most, p, memory):
            break
    # 3. new ends of the paths
    for i in range(p.n_bodies):
        if memory.iwork[p.turned + i] != 0:
            follow(view(work, p.path + PATH * i, PATH), 1.0, view(work, p.q + 7 * i, 7))
            normalise(view(work, p.q + 7 * i + 3, 4))


@tiny
def _rate(weight, p, i, k, work):
    """Component k of the velocity by which body i has moved."""
    return weight * work[p.v + 6 * i + k] + (1.0 - weight) * work[p.v_mid + 6 * i + k]


@kernel
def _may_pass(h, weight, c, bodies, p, memory):
    """Whether any two shapes have moved by more than the safe displacement. Out, if a user's function filters contacts: passed."""
    mem, imem, work = memory.mem, memory.imem, memory.work
    # 1. displacement of each shape: of its body, and of its farthest point by rotation; balls turn into themselves
    most, second, fastest, x, turn, limit = 0.0, 0.0, 0, stack(3), stack(3), work[c.thickness + c.n_shapes]
    for s in range(c.n_shapes):
        b = imem[c.body + s]
        if b == WORLD or work[c.hidden + s] != 0.0:
            continue
        far = norm(view(mem, c.local + 7 * s, 3))
        if not BALLS >> imem[c.kind + s] & 1:
            r = bound(view(imem, c.kind, c.n_shapes), view(mem, c.size, 3 * c.n_shapes), s)
            far += r if r < math.inf else mem[c.size + 3 * s]
        for i in range(3):
            x[i] = work[p.q + 7 * b + i] - work[p.q_old + 7 * b + i]
            turn[i] = h * _rate(weight, p, b, 3 + i, work) if far > 0.0 else 0.0
        # the two largest, since both shapes of a pair may move
        way = norm(x) + far * norm(turn)
        work[c.reach + s] = way
        if way > most:
            most, second, fastest = way, most, s
        elif way > second:
            second = way
    # 2. against the safe displacement; with a user's function only noted, for a warning at the end
    if memory.iwork[c.hook] == 0:
        return most + second > limit
    if most > limit * max(1.0, work[c.passed]):
        work[c.passed], work[c.passed + 1], work[c.passed + 2] = most / limit, fastest, most / h
    return False


@kernel
def _begin(h, weight, bodies, p, memory):
    """Paths of all bodies from q_old to q, and ranks, the masses of joint groups. Out: path, unit, rank, is_new, turned."""
    work, iwork = memory.work, memory.iwork
    back, between, theta = stack(4), stack(4), stack(3)
    # 1. no history
    for i in range(p.n_bodies):
        work[p.rank + i], iwork[p.is_new + i], iwork[p.turned + i] = 0.0, 1, 0
    # 2. path of each body: displacement and rotation vector over the step
    for i in range(p.n_bodies):
        path, q_old, q = view(work, p.path + PATH * i, PATH), view(work, p.q_old + 7 * i, 7), view(work, p.q + 7 * i, 7)
        path[START] = 0.0
        back[0] = q_old[3]
        for k in range(3):
            path[POINT + k], path[ARM + k], path[SPEED + k], back[1 + k] = q_old[k], 0.0, q[k] - q_old[k], -q_old[4 + k]
        for k in range(4):
            path[TURN + k] = q_old[3 + k]
        product(back, view(q, 3, 4), between)
        log_quaternion(between, theta)
        angle, along, rate = norm(theta), 0.0, 0.0
        for k in range(3):
            omega = h * _rate(weight, p, i, 3 + k, work)
            along, rate = along + omega * theta[k], rate + omega * omega
        # the quaternion gives the rotation up to full turns, whose number follows from the velocities
        if rate > 0.25 * _AROUND * _AROUND and angle > 0.0:
            more = 1.0 + _AROUND / angle * math.floor((along / angle - angle) / _AROUND + 0.5)
            for k in range(3):
                theta[k] *= more
        rotate(view(q_old, 3, 4), theta, view(path, SPIN, 3))
        # 3. the lighter group follows the heavier one; fixed bodies never do
        u = iwork[p.unit + i]
        work[p.rank + u] += math.inf if bodies[i].fixed else memory.mem[bodies[i].q + MASS]


@kernel
def _find_touches(is_first, is_corrected, c, p, memory):
    """First touches of bodies with new paths. In/out: when, partner."""
    mem, imem, work, iwork = memory.mem, memory.imem, memory.work, memory.iwork
    n = c.n_shapes
    kind, size, body, local = view(imem, c.kind, n), view(mem, c.size, 3 * n), view(imem, c.body, n), view(mem, c.local, 7 * n)
    pose, reach, at = view(work, c.pose, 7 * n), view(work, c.reach, n), view(work, c.swept, 7 * n)
    # 1. poses at the start of the step, once
    if is_first:
        place(body, local, view(work, p.q_old, 7 * p.n_bodies), pose)
        hide(c, pose, work)
    # 2. reach of each shape along its path
    path = view(work, p.path, PATH * p.n_bodies)
    for s in range(n):
        if body[s] == WORLD:
            reach[s] = 0.0
        elif iwork[p.is_new + body[s]] != 0:
            reach[s] = _reach(s, body, local, pose, path)
    # 3. touches of pairs by the broad phase
    shapes = Shapes(kind, size, pose, body, reach, view(imem, c.group, n), view(imem, c.mask, c.n_mask))
    others = (other_pairs(kind), view(mem, c.vertices, 3 * c.n_vertices), iwork[c.general])
    thickness, turned, found = view(work, c.thickness, n), view(iwork, p.turned, p.n_bodies), view(work, c.swept + 7 * n, MOST * FIELDS)
    moving = Moving(kind, size, body, local, thickness, path, turned, others, 1 if is_corrected else 0, at, found)
    touches = Touches(
        view(iwork, p.unit, p.n_bodies),
        view(iwork, p.held, p.n_bodies),
        view(work, p.rank, p.n_bodies),
        view(iwork, p.is_new, p.n_bodies),
        view(work, p.when, p.n_bodies),
        view(iwork, p.partner, p.n_bodies),
    )
    first_touches(is_first, shapes, moving, touches, view(work, c.scratch, c.n_scratch), view(iwork, c.scratch_i, c.n_scratch_i))


@kernel
def _reach(s, body, local, pose, path):
    """Largest distance of a shape on a body from its pose, from the start of its path on."""
    own, q, x, arm, far = view(path, PATH * body[s], PATH), stack(7), stack(3), stack(3), 0.0
    follow(own, own[START], q)
    rotate(view(q, 3, 4), view(local, 7 * s, 3), x)
    for i in range(3):
        x[i] += q[i]
        arm[i] = x[i] - own[POINT + i]
        far += (x[i] - pose[7 * s + i]) ** 2
    turning = norm(view(own, SPIN, 3))
    return math.sqrt(far) + (1.0 - own[START]) * (norm(view(own, SPEED, 3)) + turning * norm(arm))


@kernel
def _give_way(only_stop, p, memory):
    """The group that touches first follows its partner; False without a touch. In/out: path, when. Out: is_new, turned.

    Bodies that were to touch it later are checked again.
    """
    work, iwork = memory.work, memory.iwork
    # 1. first touch of all
    u, first = -1, NEVER
    for i in range(p.n_bodies):
        iwork[p.is_new + i] = 0
        if work[p.when + i] < first:
            u, first = i, work[p.when + i]
    if u < 0:
        return False
    # 2. its group follows the partner, or stops
    work[p.when + u], partner = NEVER, iwork[p.partner + u]
    for i in range(p.n_bodies):
        if iwork[p.unit + i] == u:
            stops = only_stop or partner == WORLD or iwork[p.held + i] == _TO_WORLD
            iwork[p.is_new + i], iwork[p.turned + i] = 1, STOPS if stops else FOLLOWS
            # what has stopped gives way no more, and pushes on what it follows
            work[p.rank + u] = math.inf if stops else max(work[p.rank + u], work[p.rank + iwork[p.unit + partner]])
            _follow_other(first, stops, i, partner, p, work)
        # 3. partners of this group have an outdated touch: their groups are checked again
        touched = iwork[p.partner + i]
        if work[p.when + i] < NEVER and touched != WORLD and iwork[p.unit + touched] == u:
            work[p.when + i] = NEVER
            for j in range(p.n_bodies):
                if iwork[p.unit + j] == i:
                    iwork[p.is_new + j] = 1
    return True


@kernel
def _follow_other(t, stops, i, partner, p, work):
    """From time t on body i stays where it is, or moves as if it were part of another one. Out: its path."""
    path, q = view(work, p.path + PATH * i, PATH), stack(7)
    follow(path, t, q)
    path[START] = t
    for k in range(4):
        path[TURN + k] = q[3 + k]
    for k in range(3):
        path[POINT + k], path[ARM + k], path[SPEED + k], path[SPIN + k] = q[k], 0.0, 0.0, 0.0
    if not stops:
        other = view(work, p.path + PATH * partner, PATH)
        for k in range(3):
            path[SPEED + k], path[SPIN + k] = other[SPEED + k], other[SPIN + k]
            path[POINT + k] = other[POINT + k] + (t - other[START]) * other[SPEED + k]
            path[ARM + k] = q[k] - path[POINT + k]
