"""Poses of shapes, frames of contacts, and the buffer in which narrow-phase kernels write the contacts that they find."""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.maths.rotations import rotation_matrix
from nsds.maths.vectors import times_transposed

WORLD = -1  # number of the body that fixed shapes are on
MOST = 16  # upper bound of the contacts of two shapes
TINY = 1e-100  # lengths below this define no direction: their squares underflow
FIELDS = 8  # entries of a contact: feature, gap, normal (3), point (3)
_JUMP = -1e-6  # z of the normals at which their frames change


@tiny
def put(found, n, margin, feature, gap, normal, x, y, z):
    """Adds a contact at (x, y, z) on the first shape unless its gap exceeds the margin; returns the number of contacts."""
    if not gap <= margin:
        return n
    at = n * FIELDS
    found[at], found[at + 1] = feature, gap
    found[at + 2], found[at + 3], found[at + 4] = normal[0], normal[1], normal[2]
    found[at + 5], found[at + 6], found[at + 7] = x, y, z
    return n + 1


@tiny
def turn_round(found, n):
    """Exchanges the roles of both shapes in n contacts: normals are reversed, points move across the gaps."""
    for k in range(n):
        at = k * FIELDS
        for i in range(2, 5):
            found[at + 3 + i] -= found[at + 1] * found[at + i]
            found[at + i] = -found[at + i]


@tiny
def axes(pose, s, R):
    """Rotation matrix Phi(p) of shape s, row-major: its axes are the columns ([Notes], eq. 11.137). Out: R (9,)."""
    rotation_matrix(view(pose, 7 * s + 3, 4), R)


@tiny
def third_axis(pose, s, z):
    """The z axis of shape s. Out: z (3,)."""
    p0, p1, p2, p3 = pose[7 * s + 3], pose[7 * s + 4], pose[7 * s + 5], pose[7 * s + 6]
    z[0], z[1], z[2] = 2.0 * (p1 * p3 + p0 * p2), 2.0 * (p2 * p3 - p0 * p1), 1.0 - 2.0 * (p1 * p1 + p2 * p2)


@tiny
def seen_from(R, pose, a, b, out):
    """``R_b^T (x_a - x_b)``: position of shape a in the axes of shape b. Out: out (3,)."""
    for i in range(3):
        out[i] = pose[7 * a + i] - pose[7 * b + i]
    times_transposed(R, out, out)


@kernel
def place(body, local, q, pose):
    """World poses of shapes from their poses in their bodies: ``x = x_b + R_b x_s``, ``p = p_b . p_s`` ([Notes], eq. 11.126).

    In: body (ns,), -1 for the world; local (7 ns,); q (7 per body): positions and unit quaternions. Out: pose (7 ns,).
    """
    R = stack(9)
    for s in range(body.size):
        at = 7 * s
        # fixed shapes: the local pose is that in the world
        if body[s] == WORLD:
            for i in range(7):
                pose[at + i] = local[at + i]
        else:
            b = body[s]
            axes(q, b, R)
            # position
            x, y, z = local[at], local[at + 1], local[at + 2]
            for i in range(3):
                pose[at + i] = q[7 * b + i] + R[3 * i] * x + R[3 * i + 1] * y + R[3 * i + 2] * z
            # product of both quaternions, written out
            p0, p1, p2, p3 = q[7 * b + 3], q[7 * b + 4], q[7 * b + 5], q[7 * b + 6]
            s0, s1, s2, s3 = local[at + 3], local[at + 4], local[at + 5], local[at + 6]
            pose[at + 3] = p0 * s0 - p1 * s1 - p2 * s2 - p3 * s3
            pose[at + 4] = p0 * s1 + p1 * s0 + p2 * s3 - p3 * s2
            pose[at + 5] = p0 * s2 - p1 * s3 + p2 * s0 + p3 * s1
            pose[at + 6] = p0 * s3 + p1 * s2 - p2 * s1 + p3 * s0


@tiny
def frame_of(normal, frame):
    """``frame = (n, t1, t2)`` by rows, right-handed, depending smoothly on n but where ``n_z`` is `_JUMP` (Duff et al. 2017).

    That is not 0: the normals of an upright wall differ by rounding, and its tangents must not.
    """
    n0, n1, n2 = normal[0], normal[1], normal[2]
    sign = math.copysign(1.0, n2 - _JUMP)
    a = -1.0 / (sign + n2)
    b = n0 * n1 * a
    frame[0], frame[1], frame[2] = n0, n1, n2
    frame[3], frame[4], frame[5] = 1.0 + sign * n0 * n0 * a, sign * b, -sign * n0
    frame[6], frame[7], frame[8] = b, sign + n1 * n1 * a, -n1


@tiny
def frame_in(planar, normal, frame):
    """As `frame_of`; of contacts in the plane z = 0 the last tangent is z, about which these roll."""
    if not planar:
        frame_of(normal, frame)
        return
    frame[0], frame[1], frame[2] = normal[0], normal[1], 0.0
    frame[3], frame[4], frame[5] = -normal[1], normal[0], 0.0
    frame[6], frame[7], frame[8] = 0.0, 0.0, 1.0
