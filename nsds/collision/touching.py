"""Time of first touch of two moving shapes by conservative advancement: steps no longer than their distance allows at their speed.

The path of a body is a screw: at a time t of the step, from 0 to 1, its centre is ``c + v (t - t_0) + R arm`` and its quaternion ``R p``,
with ``R = exp(w (t - t_0))``, in inertial axes. A distance g along a normal n shrinks at most at the rate ``-n . (v_a - v_b)`` plus the
part of rotation, for convex shapes for the rest of the step (Mirtich, Impulse-based Dynamic Simulation, Berkeley 1996, 2.3). A nonconvex
surface may have points that are not near yet, and approaches at most as fast as any of its points moves.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.frames import FIELDS, WORLD, third_axis
from nsds.collision.geometry import surface_of, thickness_of_mesh
from nsds.collision.kinds import BALLS, MESH, POLYGON, POLYHEDRAL, TUBE, TURNED_ROUND, bound, thickness_of
from nsds.collision.narrow import contacts_of_pair
from nsds.maths.rotations import exp_quaternion, product, rotate
from nsds.maths.vectors import cross, dot, norm

START, POINT, ARM, TURN, SPEED, SPIN, PATH = 0, 1, 4, 7, 11, 14, 17  # entries of a path: t_0, c, arm, p, v, w; their number
NEVER = 2.0  # a time after the step
FAST, _FAST_AT_SURFACE = 0.5, 0.2  # fraction of the thinner shape: a larger motion in a step could pass it; for nonconvex surfaces
STOPS, FOLLOWS = 1, 2  # what a body does whose path has changed
_DEPTH = 0.01  # fraction of it: overlap at which two shapes touch, deep enough for the normal of the side that they came from,
_MOST = 0.2  # and limit of it for shapes whose overlap grows from step to step
_BARELY = 0.4  # fraction of it: overlap at which convex shapes that touch at the start do, if overlaps are removed afterwards
_CLOSE = 0.05  # fraction of the former: tolerance
_SIGHT = 4.0  # multiple of the smaller shape: distance within which contacts of a nonconvex surface are searched
_CORNER = 0.1  # fraction of the thinner shape: least advance where bounds allow less, or where such a surface could bend towards it
_STEPS = 4096  # per time step, at most
_HALVINGS = 40
_OPEN = 0.01  # fraction of its diameter: thickness of a surface that encloses nothing


class Moving(NamedTuple):
    """Shapes on bodies that follow paths."""

    kind: NDArray
    size: NDArray
    body: NDArray
    local: NDArray  # poses in their bodies
    thickness: NDArray
    path: NDArray  # (PATH per body)
    turned: NDArray  # of each body: whether its path has changed, `STOPS` or `FOLLOWS`
    others: tuple  # argument of `contacts_of_pair`
    is_corrected: int  # not 0: overlaps are removed afterwards
    pose: NDArray  # work: poses in the world
    found: NDArray  # work: contacts of two shapes


def _thicknesses(part):
    """Thickness to be passed to reach the other side, of all shapes of a part of collisions; infinite of planes."""
    kind, size = part["shape_kind"], part["shape_size"]
    result, known = thickness_of(part), {}
    for s in np.flatnonzero(POLYHEDRAL >> kind & 1):
        key = kind[s], *size[s].tolist()
        if key not in known:
            known[key] = _thickness(kind[s], size[s], part["vertices"], part["triangles"])
        result[s] = known[key]
    return result


def safe_ways(part):
    """Thicknesses of all shapes, and last the displacement in a step below which no pair is tested."""
    thickness = _thicknesses(part)
    fast = _FAST_AT_SURFACE if np.isin(part["shape_kind"], (MESH, TUBE)).any() else FAST
    return np.append(thickness, fast * thickness.min())


def _thickness(code, size, vertices, triangles):
    """Least width between a side and the opposite one; of a mesh ``2 V / A``, a plate's thickness, or a fraction of its diameter."""
    # 1. corners and outward normals of the sides
    if code == POLYGON:
        corners = vertices[int(size[1]) : int(size[1] + size[2]), :2]
        edges = np.roll(corners, -1, axis=0) - corners
        normals = np.column_stack([edges[:, 1], -edges[:, 0]])
        places = corners
    else:
        places, triangles = surface_of(size, vertices, triangles)
        corners = places[triangles]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        corners = corners[:, 0]
    # 2. convex: least width over all sides
    length = np.linalg.norm(normals, axis=1)
    if code != MESH:
        normals, corners = normals[length > 0] / length[length > 0, None], corners[length > 0]
        return ((normals * corners).sum(axis=1)[:, None] - normals @ places.T).max(axis=1).min()
    # 3. a mesh: volume over area, if it is closed
    return thickness_of_mesh(places, corners, normals, _OPEN * 2 * size[0])


@kernel
def follow(path, t, q):
    """Pose of a body at time t. Out: q (7,)."""
    w, turn, after = stack(3), stack(4), t - path[START]
    for i in range(3):
        w[i] = after * path[SPIN + i]
    exp_quaternion(w, turn)
    rotate(turn, view(path, ARM, 3), view(q, 0, 3))
    for i in range(3):
        q[i] += path[POINT + i] + after * path[SPEED + i]
    product(turn, view(path, TURN, 4), view(q, 3, 4))


@kernel
def place_at(m, s, t):
    """Pose of shape s at time t. Out: pose of m."""
    q, b, pose, local = stack(7), m.body[s], view(m.pose, 7 * s, 7), view(m.local, 7 * s, 7)
    if b == WORLD:
        for i in range(7):
            pose[i] = local[i]
        return
    follow(view(m.path, PATH * b, PATH), t, q)
    rotate(view(q, 3, 4), view(local, 0, 3), view(pose, 0, 3))
    for i in range(3):
        pose[i] += q[i]
    product(view(q, 3, 4), view(local, 3, 4), view(pose, 3, 4))


@tiny
def _centre_of_turning(path, t, i):
    """Coordinate i of the point about which a body turns at time t."""
    return path[POINT + i] + (t - path[START]) * path[SPEED + i]


@kernel
def _turning(m, s, t, n):
    """Bound of the speed of a point of shape s by rotation, at time t, along the unit vector n; in any direction if n is 0."""
    b = m.body[s]
    if b == WORLD:
        return 0.0
    path, x, z = view(m.path, PATH * b, PATH), stack(3), stack(3)
    w = view(path, SPIN, 3)
    speed = norm(w)
    if speed == 0.0:
        return 0.0
    # 1. arm of the centre of the shape about the centre of rotation
    for i in range(3):
        x[i] = m.pose[7 * s + i] - _centre_of_turning(path, t, i)
    cross(w, x, x)
    arm = norm(x) / speed
    # 2. only the part of the angular velocity that moves points along n
    if dot(n, n) > 0.0:
        cross(w, n, x)
        speed = norm(x)
    if BALLS >> m.kind[s] & 1:
        return speed * arm
    # 3. rotation of the shape itself; a ball does not move its surface by it
    own = speed
    if TURNED_ROUND >> m.kind[s] & 1:  # about its axis it turns in its own surface
        third_axis(m.pose, s, z)
        along = dot(w, z)
        for i in range(3):
            x[i] = w[i] - along * z[i]
        own = min(own, norm(x))
    return speed * arm + own * bound(m.kind, m.size, s)


@kernel
def closing_speed(m, s, t, time, n):
    """Bound of the rate at which the gap of two placed shapes closes along n, from t to s, or, if n is 0, in any direction."""
    v = stack(3)
    for i in range(3):
        v[i] = 0.0
        if m.body[s] != WORLD:
            v[i] += m.path[PATH * m.body[s] + SPEED + i]
        if m.body[t] != WORLD:
            v[i] -= m.path[PATH * m.body[t] + SPEED + i]
    speed = -dot(n, v) if dot(n, n) > 0.0 else norm(v)
    return speed + _turning(m, s, time, n) + _turning(m, t, time, n)


@kernel
def _move_alike(m, s, t, time, small):
    """Whether two shapes follow one screw motion, so that they do not move relative to each other."""
    if m.body[s] == WORLD or m.body[t] == WORLD:
        return False
    # equal velocities; with rotation also the same centre, to a tolerance
    a, b, far, turns = view(m.path, PATH * m.body[s], PATH), view(m.path, PATH * m.body[t], PATH), 0.0, 0.0
    for i in range(SPEED, PATH):
        if a[i] != b[i]:
            return False
    for i in range(3):
        far += abs(_centre_of_turning(a, time, i) - _centre_of_turning(b, time, i))
        turns += abs(a[SPIN + i])
    return far * turns <= 1e-6 * small


@kernel
def _nearest(m, s, t, time, margin, n, x):
    """Lowest gap of two shapes at a time, infinite without contacts within the margin. Out: its normal n and point x."""
    place_at(m, s, time)
    place_at(m, t, time)
    least = math.inf
    for k in range(contacts_of_pair(m.kind, m.size, m.pose, s, t, margin, m.others, m.found)):
        at = FIELDS * k
        if m.found[at + 1] < least:
            least = m.found[at + 1]
            for i in range(3):
                n[i], x[i] = m.found[at + 2 + i], m.found[at + 5 + i]
    return least


@kernel
def _approach(m, s, t, time, n, x):
    """Rate at which two shapes approach along n at a point x."""
    v, arm, rate = stack(3), stack(3), 0.0
    for side in range(2):
        b = m.body[s] if side == 0 else m.body[t]
        if b != WORLD:
            path = view(m.path, PATH * b, PATH)
            for i in range(3):
                arm[i] = x[i] - _centre_of_turning(path, time, i)
            cross(view(path, SPIN, 3), arm, v)
            for i in range(3):
                v[i] += path[SPEED + i]
            rate += dot(n, v) if side == 1 else -dot(n, v)
    return rate


@tiny
def _follows(m, s):
    """Whether the body of a shape moves with another one."""
    return m.body[s] != WORLD and m.turned[m.body[s]] == FOLLOWS


@kernel
def first_touch(m, s, t, begin):
    """First time from ``begin`` on at which two approaching shapes touch, NEVER if there is none; slow pairs are not tested.

    But what follows another body is, however slow: no law has stopped it in front of what it is pushed into.

    They touch at an overlap of a hundredth of the thinner one, or by that more than at the start, up to a limit. A contact exists then.
    """
    # 1. fastest possible approach; a pair too slow to pass through, or in the same motion, is left to the detection of the step
    n, x, anywhere, small = stack(3), stack(3), stack(3), min(m.thickness[s], m.thickness[t])
    for i in range(3):
        anywhere[i] = 0.0
    place_at(m, s, begin)
    place_at(m, t, begin)
    fastest = closing_speed(m, s, t, begin, anywhere)
    is_convex = m.kind[s] != MESH and m.kind[t] != MESH and m.kind[s] != TUBE and m.kind[t] != TUBE
    fast = FAST if is_convex else _FAST_AT_SURFACE
    if _follows(m, s) or _follows(m, t):
        fast = 0.0
    if not fastest * (1.0 - begin) > fast * small or _move_alike(m, s, t, begin, small):
        return NEVER
    # 2. depth at which they touch, shortest advance
    room, shortest, before, time = _DEPTH * small, max((1.0 - begin) / _STEPS, _CORNER * small / fastest), begin, begin
    depth, close, sight = room, _CLOSE * room, _SIGHT * min(bound(m.kind, m.size, s), bound(m.kind, m.size, t))
    # 3. conservative advancement
    for k in range(_STEPS + 1):
        rest = 1.0 - time
        margin = fastest * rest if is_convex else min(fastest * rest, sight)
        gap = _nearest(m, s, t, time, margin, n, x)
        # overlap at the start: only a deeper one is a touch
        if k == 0 and gap < room and is_convex and m.is_corrected != 0:
            depth = max(_BARELY * small, 0.1 * room - gap)
        elif k == 0 and gap < 0.0:
            depth = max(min(room - gap, _MOST * small), 0.1 * room - gap)
        # 4. deep enough: a touch if they approach
        if gap <= close - depth:
            if _approach(m, s, t, time, n, x) > 0.0:
                return time if gap >= -2.0 * depth else _between(m, s, t, before, time, margin, close - depth, gap, n, x)
            depth = room - gap  # it comes out of there
        # 5. next time: as far as the gap allows at this speed; at least the shortest advance, so that the loop ends
        share = (margin + depth) / fastest
        if gap < math.inf:
            speed = closing_speed(m, s, t, time, n)
            share = (gap + depth) / speed if speed * rest > gap + depth else 1.0
            if not is_convex:
                share = min(share, max(gap / fastest, shortest))
        if share >= rest:
            return NEVER
        before, time = time, min(1.0, time + max(share, shortest))
    return NEVER


@kernel
def _between(m, s, t, before, after, margin, wanted, lowest, n, x):
    """Time at which the gap has just fallen to the wanted one, by bisection; lowest: the gap after that.

    Where it jumps, the time after the jump; NEVER if it is then beyond the middle of the thinner shape, e.g. a ball in the wall of a tube.
    """
    for _ in range(_HALVINGS):
        time = 0.5 * (before + after)
        gap = _nearest(m, s, t, time, margin, n, x)
        if gap > wanted:
            before = time
        elif gap >= 2.0 * wanted:
            return time
        else:
            after, lowest = time, gap
    return after if lowest >= -0.5 * min(m.thickness[s], m.thickness[t]) else NEVER
