"""Support functions of posed convex shapes and mesh triangles; a shape is copied into a small stack array so that all are treated alike.

The core of a sphere is a point, that of a capsule a line, both with a radius. Entries are numbered below; a triangle has
three corners in the world, its normal and its number in place of the axes.
"""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.frames import axes
from nsds.collision.geometry import FACES, MIDDLE, N_VERTICES, SMALLEST, TRIANGLE, VERTICES
from nsds.collision.kinds import BOX, CAPSULE, CONE, CONVEX, CYLINDER, MESH, SPHERE
from nsds.maths.vectors import dot, times

KIND, CENTRE, AXES, SIZE, BLOCK = 0, 1, 4, 13, 16
PLACED = 17  # entries of a shape
CORNERS, NORMAL, NUMBER = 1, 10, 13  # of a triangle
FLAT_KIND = -1.0  # of a triangle


@kernel
def place_shape(kind, size, pose, geometry, s, shape):
    """Shape s at its pose. Out: shape (PLACED,)."""
    shape[KIND], shape[BLOCK] = kind[s], geometry[1 + s]
    for i in range(3):
        shape[CENTRE + i], shape[SIZE + i] = pose[7 * s + i], size[3 * s + i]
    axes(pose, s, view(shape, AXES, 9))


@kernel
def place_triangle(mesh, geometry, t, shape):
    """Triangle t of a posed mesh. Out: shape (PLACED,)."""
    block = int(mesh[BLOCK])
    at, first = int(geometry[block + FACES]) + TRIANGLE * t, int(geometry[block + VERTICES])
    shape[KIND], shape[NUMBER] = FLAT_KIND, t
    R = view(mesh, AXES, 9)
    times(R, view(geometry, at + 3, 3), view(shape, NORMAL, 3))
    for corner in range(3):
        x = view(shape, CORNERS + 3 * corner, 3)
        times(R, view(geometry, first + 3 * int(geometry[at + corner]), 3), x)
        for i in range(3):
            x[i] += mesh[CENTRE + i]


@tiny
def radius(shape):
    """Radius about the core."""
    return shape[SIZE] if shape[KIND] == SPHERE or shape[KIND] == CAPSULE else 0.0


@tiny
def _farthest_of(points, first, n, d, out):
    """The farthest of n points along d."""
    best, most = first, -math.inf
    for i in range(n):
        at = first + 3 * i
        h = points[at] * d[0] + points[at + 1] * d[1] + points[at + 2] * d[2]
        if h > most:
            best, most = at, h
    for i in range(3):
        out[i] = points[best + i]


@kernel
def farthest(shape, geometry, d, out):
    """Support point of a core along d. Out: out (3,), in the world."""
    kind = shape[KIND]
    if kind == FLAT_KIND:
        _farthest_of(shape, CORNERS, 3, d, out)
        return
    # 1. direction in the axes of the shape
    R = view(shape, AXES, 9)
    u0 = R[0] * d[0] + R[3] * d[1] + R[6] * d[2]
    u1 = R[1] * d[0] + R[4] * d[1] + R[7] * d[2]
    u2 = R[2] * d[0] + R[5] * d[1] + R[8] * d[2]
    # 2. support point there; a sphere and a capsule without their radius
    if kind == BOX:
        out[0], out[1], out[2] = math.copysign(shape[SIZE], u0), math.copysign(shape[SIZE + 1], u1), math.copysign(shape[SIZE + 2], u2)
        for i in range(3):
            out[i] *= 0.5
    elif kind == SPHERE:
        out[0], out[1], out[2] = 0.0, 0.0, 0.0
    elif kind == CONE:
        across, r, height = math.hypot(u0, u1), shape[SIZE], shape[SIZE + 1]
        at_rim = r * across > height * u2 and across > 0.0
        out[0], out[1] = (r * u0 / across, r * u1 / across) if at_rim else (0.0, 0.0)
        out[2] = (0.75 if r * across <= height * u2 else -0.25) * height
    elif kind != CONVEX and kind != MESH:
        across, r = math.hypot(u0, u1), (shape[SIZE] if kind == CYLINDER else 0.0)
        out[0], out[1] = (r * u0 / across, r * u1 / across) if across > 0.0 else (0.0, 0.0)
        out[2] = math.copysign(0.5 * shape[SIZE + 1], u2)
    else:
        block = int(shape[BLOCK])
        out[0], out[1], out[2] = u0, u1, u2
        _farthest_of(geometry, int(geometry[block + VERTICES]), int(geometry[block + N_VERTICES]), out, out)
    # 3. back to the world
    times(R, out, out)
    for i in range(3):
        out[i] += shape[CENTRE + i]


@kernel
def lowest(shape, geometry, n, x):
    """Least coordinate of a shape along a unit vector n; x (3,) is overwritten."""
    x[0], x[1], x[2] = -n[0], -n[1], -n[2]
    farthest(shape, geometry, x, x)
    return dot(x, n) - radius(shape)


@kernel
def separation(a, b, geometry, n):
    """Separation of shape a from b along n; negative where they overlap."""
    x, y, turned = stack(3), stack(3), stack(3)
    for i in range(3):
        turned[i] = -n[i]
    return lowest(a, geometry, n, x) + lowest(b, geometry, turned, y)


@kernel
def middle_of(shape, geometry, out):
    """An interior point of a shape. Out: out (3,), in the world."""
    block = int(shape[BLOCK])
    for i in range(3):
        out[i] = geometry[block + MIDDLE + i] if block > 0 else 0.0
    times(view(shape, AXES, 9), out, out)
    for i in range(3):
        out[i] += shape[CENTRE + i]


@kernel
def smallest_of(shape, geometry):
    """Least extent of a shape, of a mesh the largest."""
    if shape[BLOCK] > 0.0:
        return geometry[int(shape[BLOCK]) + SMALLEST]
    has_ends = shape[KIND] == CYLINDER or shape[KIND] == CONE
    return min(2.0 * shape[SIZE], shape[SIZE + 1]) if has_ends else 2.0 * shape[SIZE]
