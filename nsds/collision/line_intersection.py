"""Intersection of a line with a shape: entry and exit in the axes of the shape, and the normals there; by its sizes (3,).

A line is ``p + t u`` with a unit vector u. Its part in a convex shape is a span: the two t, and the numbers of the faces at entry and
exit, `ROUND` for a curved surface. A line that misses the shape has a span that ends before it begins. Faces of boxes are
numbered by axes, the low one first; ends of cylinders, bases of cones, planes and half planes have the numbers of such faces.

Spans of half spaces, balls and walls need no tolerance: the last entry and the first exit leave no gap at an edge. Where p is the point of
the line nearest to the shape, rounding is relative to the shape, however far away the line begins.
"""

import math

from nsds._jit import kernel, tiny

IN, OUT, ENTERED, LEFT = range(4)
SPAN = 4  # entries of a span
ROUND = -1.0  # number of a curved face
HIGH_Y, LOW_Z, HIGH_Z = 3.0, 4.0, 5.0  # of flat ones


@tiny
def begin(span, ends):
    """Initialises a span with two t and no flat faces."""
    span[IN], span[OUT] = ends
    span[ENTERED] = span[LEFT] = ROUND


@tiny
def clip(span, face, height, rate):
    """Clips a span by a face: the part with ``height + t rate <= 0``."""
    if rate < 0.0:
        t = -height / rate
        if t > span[IN]:
            span[IN], span[ENTERED] = t, face
    elif rate > 0.0:
        t = -height / rate
        if t < span[OUT]:
            span[OUT], span[LEFT] = t, face
    elif height > 0.0:
        span[IN], span[OUT] = math.inf, -math.inf


@tiny
def in_ball(r, x, y, z, u):
    """(t, t) in a ball, the line beginning at (x, y, z) from its centre: half the chord is ``sqrt(r^2 - d^2)``, d the line's distance."""
    t = -(x * u[0] + y * u[1] + z * u[2])
    x, y, z = x + t * u[0], y + t * u[1], z + t * u[2]
    rest = r * r - (x * x + y * y + z * z)
    if rest < 0.0:
        return math.inf, -math.inf
    half = math.sqrt(rest)
    return t - half, t + half


@tiny
def in_wall(r, x, y, a, b):
    """(t, t) within a radius of the z axis: ``(x + t a)^2 + (y + t b)^2 <= r^2``."""
    square, across = a * a + b * b, x * b - y * a
    if square == 0.0:  # along the axis
        return (-math.inf, math.inf) if x * x + y * y <= r * r else (math.inf, -math.inf)
    rest = r * r * square - across * across
    if rest < 0.0:
        return math.inf, -math.inf
    t, half = -(x * a + y * b) / square, math.sqrt(rest) / square
    return t - half, t + half


@tiny
def of_plane(size, p, u, span):
    """Span in the half space z <= 0."""
    begin(span, (-math.inf, math.inf))
    clip(span, HIGH_Z, p[2], u[2])


@tiny
def of_half_plane(size, p, u, span):
    """Span in y <= 0."""
    begin(span, (-math.inf, math.inf))
    clip(span, HIGH_Y, p[1], u[1])


@tiny
def of_ball(size, p, u, span):
    """Span in a ball."""
    begin(span, in_ball(size[0], p[0], p[1], p[2], u))


@kernel
def of_box(lengths, p, u, span):
    """Span in a box: between three pairs of planes."""
    begin(span, (-math.inf, math.inf))
    for i in range(3):
        clip(span, 2.0 * i, -p[i] - 0.5 * lengths[i], -u[i])
        clip(span, 2.0 * i + 1.0, p[i] - 0.5 * lengths[i], u[i])


@kernel
def of_cylinder(size, p, u, span):
    """Span in a cylinder: within the wall and between two ends."""
    begin(span, in_wall(size[0], p[0], p[1], u[0], u[1]))
    clip(span, LOW_Z, -p[2] - 0.5 * size[1], -u[2])
    clip(span, HIGH_Z, p[2] - 0.5 * size[1], u[2])


@kernel
def _of_rod(r, half, x, y, z, u, axis, span):
    """Span in a capsule or stadium: from the first entry to the last exit of the wall between -half and half and of both end balls.

    x, y, z: where the line begins; axis: 2 of a capsule, 0 of a stadium, which has its balls in the plane.
    """
    # 1. the wall between both ends
    if axis == 2:
        begin(span, in_wall(r, x, y, u[0], u[1]))
        clip(span, ROUND, -z - half, -u[2])
        clip(span, ROUND, z - half, u[2])
    else:
        begin(span, in_wall(r, y, z, u[1], u[2]))
        clip(span, ROUND, -x - half, -u[0])
        clip(span, ROUND, x - half, u[0])
    if not span[IN] <= span[OUT]:
        begin(span, (math.inf, -math.inf))
    # 2. both balls: the union is convex, so that the least entry and the largest exit are those of the whole
    for side in range(-1, 2, 2):
        ends = in_ball(r, x, y, z - side * half, u) if axis == 2 else in_ball(r, x - side * half, y, z, u)
        span[IN], span[OUT] = min(span[IN], ends[0]), max(span[OUT], ends[1])


@tiny
def of_capsule(size, p, u, span):
    """Span in a capsule."""
    _of_rod(size[0], 0.5 * size[1], p[0], p[1], p[2], u, 2, span)


@tiny
def of_stadium(size, p, u, span):
    """Span in a stadium."""
    _of_rod(size[1], size[0] - size[1], p[0], p[1], p[2], u, 0, span)


@kernel
def of_cone(size, p, u, span):
    """Span in a cone, the part below its base of ``|x| <= s``; lengths across are in radii and s, from the tip down, in heights.

    ``A t^2 + 2 B t + C <= 0`` holds in both halves of the double cone: for a line less steep than the side, A > 0, between two t,
    which are in one of the halves; for a steeper one in a half line in each.
    """
    # 1. quadratic in scaled coordinates
    r, height = size[0], size[1]
    x, y, s = p[0] / r, p[1] / r, 0.75 - p[2] / height
    a, b, c = u[0] / r, u[1] / r, -u[2] / height
    A, B, C = a * a + b * b - c * c, x * a + y * b - s * c, x * x + y * y - s * s
    i, j, k = x * c - s * a, y * c - s * b, x * b - y * a
    rest = i * i + j * j - k * k  # B^2 - A C, without its cancellation
    begin(span, (math.inf, -math.inf))
    if rest < 0.0 and A > 0.0:
        return
    # 2. both roots without cancellation: the larger one by the formula, the other from their product
    root = B + math.copysign(math.sqrt(max(rest, 0.0)), B)
    t = -C / root if root != 0.0 else 0.0
    other = -root / A if A != 0.0 else math.copysign(math.inf, root)
    # 3. the half with s >= 0, then the base
    if A > 0.0:
        if A * s - B * c >= 0.0:
            span[IN], span[OUT] = min(t, other), max(t, other)
    elif c > 0.0:
        span[IN], span[OUT] = max(t, other), math.inf
    else:
        span[IN], span[OUT] = -math.inf, min(t, other)
    clip(span, LOW_Z, s - 1.0, c)


@kernel
def of_tube(size, p, u, span):
    """Span of a tube: the points where a line passes the wall, within its length."""
    begin(span, in_wall(size[0], p[0], p[1], u[0], u[1]))
    half = 0.5 * size[1]
    if span[IN] <= span[OUT] and not abs(p[2] + span[IN] * u[2]) <= half:
        span[IN] = -math.inf
    if not abs(p[2] + span[OUT] * u[2]) <= half:
        span[OUT] = math.inf


# Normals at points n (3,) of curved surfaces, outwards and of any length. In and out: n.


@tiny
def normal_of_ball(size, n):
    """From its centre."""


@tiny
def normal_of_capsule(size, n):
    """From the closest point of its axis."""
    n[2] -= min(max(n[2], -0.5 * size[1]), 0.5 * size[1])


@tiny
def normal_of_stadium(size, n):
    """From the closest point of its core."""
    n[0] -= min(max(n[0], size[1] - size[0]), size[0] - size[1])


@tiny
def normal_of_cone(size, n):
    """Constant along a line from the tip."""
    across = math.hypot(n[0], n[1])
    n[0], n[1] = (n[0] / across * size[1], n[1] / across * size[1]) if across > 0.0 else (0.0, 0.0)
    n[2] = size[0]


@tiny
def normal_of_cylinder(size, n):
    """From the axis."""
    n[2] = 0.0


@tiny
def normal_of_tube(size, n):
    """Towards the axis: its inside is open."""
    n[0], n[1], n[2] = -n[0], -n[1], 0.0
