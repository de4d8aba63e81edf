"""Support functions of posed convex shapes and mesh triangles; a shape is copied into a small stack array so that all are treated alike.

The core of a sphere is a point, that of a capsule a line, both with a radius.
"""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.frames import axes
from nsds.collision.geometry import FACES, MIDDLE, N_VERTICES, SMALLEST, TRIANGLE, VERTICES
from nsds.collision.kinds import POLYHEDRAL, ROUNDED, farthest_point, least_extent
from nsds.collision.parts import AXES, BLOCK, CENTRE, CORNERS, FLAT_KIND, KIND, NORMAL, NUMBER, SIZE
from nsds.maths.vectors import dot, times, times_transposed


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
    return shape[SIZE] if shape[KIND] != FLAT_KIND and ROUNDED >> int(shape[KIND]) & 1 else 0.0


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


@tiny
def farthest(shape, geometry, d, out):
    """Support point of a core along d. Out: out (3,), in the world."""
    if shape[KIND] == FLAT_KIND:
        _farthest_of(shape, CORNERS, 3, d, out)
        return
    # 1. direction in the axes of the shape
    kind, R = int(shape[KIND]), view(shape, AXES, 9)
    times_transposed(R, d, out)
    # 2. support point there
    if POLYHEDRAL >> kind & 1:
        block = int(shape[BLOCK])
        _farthest_of(geometry, int(geometry[block + VERTICES]), int(geometry[block + N_VERTICES]), out, out)
    else:
        out[0], out[1], out[2] = farthest_point(kind, view(shape, SIZE, 3), out[0], out[1], out[2])
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
    return least_extent(int(shape[KIND]), view(shape, SIZE, 3))
