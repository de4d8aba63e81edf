"""Rows of joints: value and Jacobian of each scalar equation, see `nsds.joints`."""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.maths.rotations import perpendicular, product, rotate, rotate_back, rotation_matrix
from nsds.maths.vectors import cross, dot, norm, times, times_transposed
from nsds.model.joints import ALIGN, ANGLE, DISTANCE, GEAR, POINT


@tiny
def seen_from(q_a, q_b, has_b, seen):
    """``seen = (R_B^T (x_A - x_B), R_B^T R_A)`` (12,), position and rotation matrix of A as B sees it, those of q_a without B."""
    p = stack(4)
    for i in range(3):
        seen[i] = q_a[i] - (q_b[i] if has_b else 0.0)
    for i in range(4):
        p[i] = q_a[3 + i]
    if has_b:
        back = stack(4)
        back[0], back[1], back[2], back[3] = q_b[3], -q_b[4], -q_b[5], -q_b[6]
        rotate(back, seen, seen)
        product(back, p, p)
    rotation_matrix(p, view(seen, 3, 9))


@tiny
def joint_row(kind, a, u, b, w, offset, q_a, q_b, has_b, seen, angle, H):
    """Value y and Jacobian of one row of a joint: ``ydot = H (v_A, Omega_A, v_B, Omega_B)`` along ``qdot = T(q) v``; returns y.

    With ``r = R_B^T (x_A + R_A a - x_B)``, where x_B = 0 and R_B = 1 without B:
    POINT ``y = w.(r - b) - offset``, ALIGN ``y = w.R_B^T R_A u - offset``, ANGLE the angle from b to ``R_B^T R_A u`` about w less offset,
    COUPLER |a| times A's coordinate on a, less B's on w, less offset; without B both coordinates are A's;
    DISTANCE ``|r - b| - offset``, or ``-|r - b| - offset`` where u is not zero; GEAR ``a_0 (angle - direction) - a_1 direction - offset``.

    In: a, u (3,) in axes of A, b, w (3,) in axes of B, of the world without B (COUPLER: a and w in those of the world; GEAR: a radii);
    q_a, q_b (7,), of which q_b is read where has_b; seen (12,) by `seen_from`. In/out: angle (2,), read and written by ANGLE (the first),
    COUPLER and GEAR: unwrapped to within pi of what it was. Out: H (12,), Omega in axes of the bodies, zero for the world.
    """
    arm, n, R_seen = stack(3), stack(3), view(seen, 3, 9)  # r or R_B^T R_A u, an axis of B
    # the point of A seen from B
    if kind == POINT:
        times(R_seen, a, arm)
        for i in range(3):
            arm[i] += seen[i]
            n[i] = w[i]
        y = w[0] * (arm[0] - b[0]) + w[1] * (arm[1] - b[1]) + w[2] * (arm[2] - b[2])
        if has_b:
            rotate(view(q_b, 3, 4), w, n)
        for i in range(3):
            H[i], H[6 + i] = n[i], -n[i]
        times_transposed(R_seen, w, n)
        cross(a, n, view(H, 3, 3))
        cross(w, arm, view(H, 9, 3))
    # cosine of the angle between two directions
    elif kind == ALIGN:
        times(R_seen, u, arm)
        y = dot(arm, w)
        times_transposed(R_seen, w, n)
        for i in range(3):
            H[i] = H[6 + i] = 0.0
        cross(u, n, view(H, 3, 3))
        cross(w, arm, view(H, 9, 3))
    # an angle, with its turns
    elif kind == ANGLE:
        times(R_seen, u, arm)
        y = _angle(arm, w, b, view(angle, 0, 1), n)
        for i in range(3):
            H[i] = H[6 + i] = 0.0
            H[9 + i] = -n[i]
        times_transposed(R_seen, n, view(H, 3, 3))
    else:
        y = _far_row(kind, a, u, b, w, q_a, q_b, has_b, angle, H)
    # without B there is only the world, which has no velocity
    for i in range(6, 6 if has_b else 12):
        H[i] = 0.0
    return y - offset


@kernel
def _far_row(kind, a, u, b, w, q_a, q_b, has_b, angle, H):
    """Value and Jacobian of rows of distances and of angles in the world."""
    # without B its place is the identity
    place = stack(7)
    for i in range(7):
        place[i] = 1.0 if i == 3 else 0.0
        if has_b:
            place[i] = q_b[i]
    for i in range(12):
        H[i] = 0.0
    if kind == DISTANCE:
        y = _distance(a, b, w, q_a, place, H)
        if u[0] != 0.0 or u[1] != 0.0 or u[2] != 0.0:
            y = -y
            for i in range(12):
                H[i] = -H[i]
    elif kind == GEAR:
        y = _slip(a[0], a[1], u, b, w, q_a, place, angle, H)
    elif has_b:
        y = _coordinate(a, u, q_a, 1.0, view(angle, 0, 1), view(H, 0, 6))
        y += _coordinate(w, b, q_b, -1.0, view(angle, 1, 1), view(H, 6, 6))
    else:
        y = _coordinate(a, u, q_a, 1.0, view(angle, 0, 1), view(H, 0, 6))
        y += _coordinate(w, b, q_a, -1.0, view(angle, 1, 1), view(H, 0, 6))
    return y


@tiny
def turned_arm(factor, arm, n, D):
    """Add factor times the derivative of ``arm × R^T n`` by a rotation of the body, ``n arm^T - (arm.n) 1``, all in axes of the body.

    The derivative of the moment ``lambda arm × n`` of a row whose direction n does not turn with the body: of POINT, with the arm a, and
    of ALIGN, with the arm u. In/out: D (9,).
    """
    along = dot(arm, n)
    for i in range(3):
        for j in range(3):
            D[3 * i + j] += factor * n[i] * arm[j]
        D[4 * i] -= factor * along


@tiny
def _distance(a, b, w, q_a, q_b, H):
    # |r|, with r from B's point b to A's point a; where they coincide along w
    r, n, p_a, p_b = stack(3), stack(3), view(q_a, 3, 4), view(q_b, 3, 4)
    rotate(p_a, a, r)
    rotate(p_b, b, n)
    for i in range(3):
        r[i] += q_a[i] - q_b[i] - n[i]
    size = norm(r)
    rotate(p_b, w, n)
    for i in range(3):
        n[i] = r[i] / size if size > 0.0 else n[i]
        H[i], H[6 + i] = n[i], -n[i]
    rotate_back(p_b, n, r)
    cross(r, b, view(H, 9, 3))
    rotate_back(p_a, n, n)
    cross(a, n, view(H, 3, 3))
    return size


@tiny
def _slip(radius, second_radius, u, b, w, q_a, q_b, angle, H):
    # radius (angle - direction) - second_radius direction, angle of A's u from b about w in axes of B, direction that of A's centre
    d, t, n, p_a, p_b, both = stack(3), stack(3), stack(3), view(q_a, 3, 4), view(q_b, 3, 4), radius + second_radius
    # 1. angle of A's direction, and its derivative
    rotate(p_a, u, d)
    rotate_back(p_b, d, d)
    y = radius * _angle(d, w, b, view(angle, 0, 1), n)
    for i in range(3):
        H[9 + i] = -radius * n[i]
        d[i] = q_a[i] - q_b[i]
    rotate(p_b, n, n)
    rotate_back(p_a, n, n)
    for i in range(3):
        H[3 + i] = radius * n[i]
    # 2. direction of A's centre seen from B
    rotate_back(p_b, d, d)
    y -= both * _angle(d, w, b, view(angle, 1, 1), n)
    cross(w, b, t)
    sine, cosine = dot(d, t), dot(d, b)
    for i in range(3):
        t[i] = both * (cosine * t[i] - sine * b[i]) / max(sine * sine + cosine * cosine, 1e-300)
    cross(d, t, n)
    for i in range(3):
        H[9 + i] += n[i]
    rotate(p_b, t, t)
    for i in range(3):
        H[i], H[6 + i] = -t[i], t[i]
    return y


@kernel
def _coordinate(axis, marker, q, factor, angle, row):
    # factor times x.axis, or times |axis| times the angle from the perpendicular to the marker if that is not zero; its rate added to row
    if dot(marker, marker) == 0.0:
        for i in range(3):
            row[i] += factor * axis[i]
        return factor * dot(q, axis)
    e, start, direction, gradient, p = stack(3), stack(3), stack(3), stack(3), view(q, 3, 4)
    length = norm(axis)
    for i in range(3):
        e[i] = axis[i] / length
    perpendicular(axis, start)
    rotate(p, marker, direction)
    value = _angle(direction, e, start, angle, gradient)
    rotate_back(p, gradient, gradient)
    for i in range(3):
        row[3 + i] += factor * length * gradient[i]
    return factor * length * value


@tiny
def _angle(direction, axis, start, angle, gradient):
    # from start to direction about axis, start across axis; gradient by the angular velocity of direction: axis, where that is across
    t = stack(3)
    cross(axis, start, t)
    sine, cosine, along = dot(direction, t), dot(direction, start), dot(direction, axis)
    value = math.atan2(sine, cosine)
    ahead = angle[0] - value
    if not -math.pi <= ahead < math.pi:  # seldom, and slow
        value += 2.0 * math.pi * math.floor(ahead / (2.0 * math.pi) + 0.5)
    angle[0] = value
    tilt = along / max(sine * sine + cosine * cosine, 1e-300)
    for i in range(3):
        gradient[i] = axis[i] - tilt * (cosine * start[i] + sine * t[i])
    return value
