"""Contacts of capsules with capsules and boxes: balls on the axis of the first shape, each with its true distance from the other.

Each ball gives a valid constraint wherever it is; those at the ends of the part of the axis that faces the other shape let a capsule lie
at rest. Features: 0 the closest ball, 1 and 2 those at the lower and the upper end of that part, where they are as close.
"""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.frames import FIELDS, TINY, put, third_axis
from nsds.maths.vectors import cross, dot, norm

_PARALLEL = 0.9  # cosine between the axes of two capsules above which they may lie alongside
SAME = 1e-9  # fraction of a radius by which the closest ball must be nearer to be a contact beside those at the ends
SHORT = 1e-3  # fraction of a radius: a facing part shorter than this has one contact


@tiny
def closest_on_segments(r, d, u, v, half_a, half_b, out):
    """Parameters (s, t) of the closest points ``c_a + s u``, ``c_b + t v`` of two segments, |s| <= half_a, |t| <= half_b.

    r = c_a - c_b, d = u . v (Ericson, Real-Time Collision Detection, 5.1.9). Out: out (2,).
    """
    ru = dot(r, u)
    rv = dot(r, v)
    # 1. closest point of the unbounded lines; parallel ones have no unique one, and the formula would divide by rounding
    across = 1.0 - d * d
    s = (rv * d - ru) / across if across > 1e-12 else -ru
    # 2. clamp s, then t for that s, then s again for that t
    t = min(max(s, -half_a), half_a) * d + rv
    t = min(max(t, -half_b), half_b)
    out[0], out[1] = min(max(t * d - ru, -half_a), half_a), t


@tiny
def drop_closest(found, count, tolerance):
    """Removes contact 0, the closest ball, unless it is nearer than the others by the tolerance; returns the number of contacts."""
    lowest = math.inf
    for k in range(1, count):
        lowest = min(lowest, found[k * FIELDS + 1])
    if found[1] < lowest - tolerance:
        return count
    for i in range((count - 1) * FIELDS):
        found[i] = found[FIELDS + i]
    return count - 1


@tiny
def _ball_on_capsule(size, pose, capsules, s, feature, margin, found):
    """Contact of the ball at s on the axis u of capsule a with capsule b, whose axis is v; returns 0 or 1. capsules: (a, b, u, v)."""
    a, b, u, v = capsules
    # 1. from the closest point of b's axis to the ball
    n, along = stack(3), 0.0
    for i in range(3):
        n[i] = pose[7 * a + i] + s * u[i] - pose[7 * b + i]
        along += n[i] * v[i]
    along = min(max(along, -0.5 * size[3 * b + 1]), 0.5 * size[3 * b + 1])
    for i in range(3):
        n[i] -= along * v[i]
    # 2. normal; axes that intersect have none from their distance
    distance = norm(n)
    if distance <= TINY:  # axes that cross part along their common normal, those in one line along any
        cross(u, v, n)
        if abs(n[0]) + abs(n[1]) + abs(n[2]) < 1e-9:
            i = 0 if abs(u[0]) < 0.6 else 1
            n[i], n[1 - i], n[2] = 1.0 - u[i] * u[i], -u[i] * u[1 - i], -u[i] * u[2]
    length = distance if distance > TINY else norm(n)
    for i in range(3):
        n[i] /= length
    # 3. point on a
    r, x, y, z = size[3 * a], pose[7 * a] + s * u[0], pose[7 * a + 1] + s * u[1], pose[7 * a + 2] + s * u[2]
    return put(found, 0, margin, feature, distance - r - size[3 * b], n, x - r * n[0], y - r * n[1], z - r * n[2])


@kernel
def capsule_capsule(size, pose, a, b, margin, found):
    """The closest balls of two capsules, and those at both ends of the common part of nearly parallel ones."""
    u, v, r, balls, d = stack(3), stack(3), stack(3), stack(3), 0.0
    # 1. both axes, and the closest pair of points
    third_axis(pose, a, u)
    third_axis(pose, b, v)
    ru = 0.0
    for i in range(3):
        r[i] = pose[7 * a + i] - pose[7 * b + i]
        d += u[i] * v[i]
        ru += u[i] * r[i]
    half_a, half_b, radii = 0.5 * size[3 * a + 1], 0.5 * size[3 * b + 1], size[3 * a] + size[3 * b]
    closest_on_segments(r, d, u, v, half_a, half_b, balls)
    # 2. common part of nearly parallel axes, in coordinates along a
    low, high = max(-half_a, -ru - half_b * abs(d)), min(half_a, -ru + half_b * abs(d))
    balls[1], balls[2] = low, high
    n_balls, count = 3 if abs(d) > _PARALLEL and high - low > SHORT * radii else 1, 0
    # 3. contacts; the closest ball goes where the ends are as near
    for k in range(n_balls):
        count += _ball_on_capsule(size, pose, (a, b, u, v), balls[k], k, margin, view(found, FIELDS * count, FIELDS))
    return drop_closest(found, count, SAME * radii) if n_balls > 1 and count > 1 else count
