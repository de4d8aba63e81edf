"""Contacts of a capsule with a box, computed in the axes of the box; the axis of the capsule is ``p(s) = c + s u``."""

import math
from typing import NamedTuple

from numpy.typing import NDArray

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.capsules import SAME, SHORT, drop_closest
from nsds.collision.frames import FIELDS, axes, put, seen_from, third_axis
from nsds.maths.vectors import norm, times, times_transposed

_STICKS_OUT = 1e-6  # of the distance of the axis: what is beyond a side of the box by less is within it, by rounding


class Seen(NamedTuple):
    """Capsule a in the axes of box b."""

    size: NDArray
    pose: NDArray
    a: int
    b: int
    R: NDArray  # (9,): axes of the box
    c: NDArray  # (3,): centre of the capsule
    u: NDArray  # (3,): its axis


@tiny
def _excess(c, u, size, b, s, e):
    """Distance vector from the box to the axis at s, ``e = p - clamp(p)``; returns e . u, half the slope of |e|^2. Out: e (3,)."""
    slope = 0.0
    for i in range(3):
        p, half = c[i] + s * u[i], 0.5 * size[3 * b + i]
        e[i] = p - min(max(p, -half), half)
        slope += e[i] * u[i]
    return slope


@tiny
def _closest_to_box(c, u, half, size, b, e):
    """The s in [-half, half] at which the axis is closest to the box: the zero of the slope, increasing and linear between kinks."""
    # 1. the slope of the squared distance at both ends: without a change of sign an end is the closest point
    low, high = -half, half
    slope_low, slope_high = _excess(c, u, size, b, low, e), _excess(c, u, size, b, high, e)
    if slope_low >= 0.0:
        return low
    if slope_high <= 0.0:
        return high
    # 2. bracket the zero between the kinks, where the axis crosses one of the six planes of the faces
    for kink in range(6):
        i = kink >> 1
        if u[i] != 0.0:
            s = ((kink & 1) - 0.5) * size[3 * b + i]
            s = (s - c[i]) / u[i]
            if low < s < high:
                slope = _excess(c, u, size, b, s, e)
                if slope <= 0.0:
                    low, slope_low = s, slope
                else:
                    high, slope_high = s, slope
    # 3. linear there: one step of regula falsi is exact
    return low - slope_low * (high - low) / (slope_high - slope_low)


@tiny
def _ball_on_box(seen, s, feature, margin, found):
    """The contact of the ball at s on the capsule's axis with the box, its centre outside; returns how many, 0 or 1."""
    e, n = stack(3), stack(3)
    _excess(seen.c, seen.u, seen.size, seen.b, s, e)
    distance = norm(e)
    for i in range(3):
        e[i] /= distance
    return _put_ball(seen, s, feature, distance, e, n, margin, found)


@tiny
def _put_ball(seen, s, feature, distance, e, n, margin, found):
    """Contact of the ball at s, its centre at ``distance`` along e, both in the axes of the box; returns 0 or 1. Work: n (3,)."""
    pose, b, R, c, u = seen.pose, seen.b, seen.R, seen.c, seen.u
    r, p = seen.size[3 * seen.a], stack(3)
    times(R, e, n)
    for i in range(3):
        p[i] = pose[7 * b + i] - r * n[i]
        for j in range(3):
            p[i] += R[3 * i + j] * (c[j] + s * u[j])
    return put(found, 0, margin, feature, distance - r, n, p[0], p[1], p[2])


@tiny
def _part_within(seen, half, rounding, free, out):
    """Part of the axis within the slabs of the box along the axes i with ``free[i] <= 0``. Out: out (2,), empty if out[0] > out[1].

    A slab does not cut an axis along its border, whose ends are as far beyond it but for rounding.
    """
    c, u = seen.c, seen.u
    out[0], out[1] = -half, half
    for i in range(3):
        if free[i] <= 0.0 and half * abs(u[i]) > rounding:
            edge = 0.5 * seen.size[3 * seen.b + i]
            s, t = (-edge - c[i]) / u[i], (edge - c[i]) / u[i]
            out[0], out[1] = max(out[0], min(s, t)), min(out[1], max(s, t))


@kernel
def _axis_in_box(seen, half, margin, found):
    """Contacts of a capsule whose axis cuts the box: the shortest exit along a face normal, or across both the axis and an edge."""
    size, a, b, c, u = seen.size, seen.a, seen.b, seen.c, seen.u
    depth, best, n, e, part, free = math.inf, 0, stack(3), stack(3), stack(2), stack(3)
    # 1. depth along the 12 candidate directions; the least one is the way out
    for axis in range(12):  # +x, -x, ..., then the cross products of x, -x, ... with u
        i, side = (axis >> 1) % 3, 1.0 - 2.0 * (axis & 1)
        j, k = (i + 1) % 3, (i + 2) % 3
        if axis < 6:
            d = 0.5 * size[3 * b + i] - side * c[i] + half * abs(u[i])
        else:
            length = math.hypot(u[j], u[k])
            if length < 1e-3:
                continue
            support = 0.5 * (size[3 * b + j] * abs(u[k]) + size[3 * b + k] * abs(u[j]))
            d = (support - side * (c[k] * u[j] - c[j] * u[k])) / length + SHORT * size[3 * a]  # rather by a face
        if d < depth:
            depth, best = d, axis
    # 2. direction of exit, and the part of the axis that leaves in this direction
    i, side = (best >> 1) % 3, 1.0 - 2.0 * (best & 1)
    j, k = (i + 1) % 3, (i + 2) % 3
    e[i] = e[j] = e[k] = free[i] = free[j] = free[k] = 0.0
    if best >= 6:
        length = math.hypot(u[j], u[k])
        e[j], e[k] = -side * u[k] / length, side * u[j] / length
        _part_within(seen, half, 0.0, free, part)
        part[0] = 0.5 * (part[0] + part[1])
    else:
        e[i], free[i] = side, 1.0
        _part_within(seen, half, 0.0, free, part)
    # 3. both ends of this part at a face, its middle at an edge
    first, last, count, h = 1 if best < 6 else 0, 3 if best < 6 else 1, 0, 0.5 * size[3 * b + i]
    for k in range(first, last):
        s = part[k - first]
        out = side * (c[i] + s * u[i]) - h if best < 6 else SHORT * size[3 * a] - depth
        count += _put_ball(seen, s, k, out, e, n, margin, view(found, FIELDS * count, FIELDS))
    return count


@kernel
def capsule_box(size, pose, a, b, margin, found):
    """The ball of the capsule closest to the box, and those at both ends of the part of the axis that faces the same face or edge."""
    c, u, z, e, part, balls, R = stack(3), stack(3), stack(3), stack(3), stack(2), stack(3), stack(9)
    # 1. the capsule in the axes of the box
    axes(pose, b, R)
    seen_from(R, pose, a, b, c)
    third_axis(pose, a, z)
    times_transposed(R, z, u)
    seen, half, r = Seen(size, pose, a, b, R, c, u), 0.5 * size[3 * a + 1], size[3 * a]
    # 2. closest ball
    s = _closest_to_box(c, u, half, size, b, e)
    _excess(c, u, size, b, s, e)
    distance = norm(e)
    if distance - r > margin:
        return 0
    # the axis cuts the box: the closest point gives no direction
    if distance < 1e-9 * r:
        return _axis_in_box(seen, half, margin, found)
    # 3. part of the axis over the same face or edge
    for i in range(3):
        e[i] = abs(e[i]) - _STICKS_OUT * distance
    _part_within(seen, half, _STICKS_OUT * distance, e, part)
    balls[0], balls[1], balls[2] = s, part[0], part[1]
    n_balls, count = 3 if part[1] - part[0] > SHORT * r else 1, 0
    # 4. contacts at the closest ball and at both ends; the closest one goes if the ends are as near (a lying capsule keeps its features)
    for k in range(n_balls):
        count += _ball_on_box(seen, balls[k], k, margin, view(found, FIELDS * count, FIELDS))
    return drop_closest(found, count, SAME * r) if n_balls > 1 and count > 1 else count
