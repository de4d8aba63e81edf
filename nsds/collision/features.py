"""Supporting feature of a shape in a direction: a vertex, a line or a face, as a polygon whose edges have names.

Contacts of two shapes are the corners of one such part clipped by the other: see `nsds.collision.patches`.
"""

import math

from nsds._jit import kernel, stack, view
from nsds.collision.geometry import FACE, FACES, FAN_LIST, FANS, N_EDGES, N_FACES, OUTWARDS, TRIANGLE, VERTICES
from nsds.collision.kinds import round_part
from nsds.collision.parts import (
    AXES,
    BLOCK,
    CENTRE,
    CORNERS,
    COUNT,
    FLAT_KIND,
    IS_FACE,
    KIND,
    LEVEL,
    MOST_CORNERS,
    NORMAL,
    NUMBER,
    PART_NORMAL,
    PART_NUMBER,
    POINTS,
)
from nsds.maths.vectors import cross, dot, norm, times, times_transposed

FLAT = 1.0 - 5e-7  # cosine between the normals of a contact and of a face above which the contact may lie on the face
_EDGES_FROM = 1 << 10  # step of the numbers of edges of a face


@kernel
def facing(shape, geometry, d, around, part):
    """Supporting part along d; ``around`` corners stand for a circle. Out: part (PART,)."""
    if shape[KIND] == FLAT_KIND:
        part[COUNT], part[PART_NUMBER], part[IS_FACE] = 3, shape[NUMBER], 1.0
        for i in range(9):
            part[POINTS + i] = shape[CORNERS + i]
        for i in range(3):
            part[PART_NORMAL + i] = shape[NORMAL + i]
    elif shape[BLOCK] > 0.0:
        _of_polyhedron(shape, geometry, d, part)
    else:
        round_part(int(shape[KIND]), shape, d, around, part)


@kernel
def _of_polyhedron(shape, geometry, d, part):
    """Face of a box or hull whose normal is closest to d."""
    block, local, R = int(shape[BLOCK]), stack(3), view(shape, AXES, 9)
    # 1. the face, in the axes of the shape
    times_transposed(R, d, local)
    first, best, most = int(geometry[block + FACES]), 0, -math.inf
    for f in range(int(geometry[block + N_FACES])):
        cosine = dot(view(geometry, first + FACE * f, 3), local)
        if cosine > most:
            best, most = f, cosine
    # 2. its corners in the world, every second, third, ... where there are more than a part has room for
    at, vertices = first + FACE * best, int(geometry[block + VERTICES])
    corners, many = int(geometry[at + 3]), int(geometry[at + 4])
    every = 1 + (many - 1) // MOST_CORNERS
    count = (many + every - 1) // every
    part[COUNT], part[PART_NUMBER], part[IS_FACE] = count, best, 1.0
    times(R, view(geometry, at, 3), view(part, PART_NORMAL, 3))
    for k in range(count):
        x = view(part, POINTS + 3 * k, 3)
        times(R, view(geometry, vertices + 3 * int(geometry[corners + every * k]), 3), x)
        for i in range(3):
            x[i] += shape[CENTRE + i]


@kernel
def edge_of(part, d):
    """Reduces a face that is not across d to its highest edge or vertex along d. In and out: part (PART,); other parts stay as they are."""
    count, top, kept, first, scale = int(part[COUNT]), -math.inf, 0, 0, 0.0
    if part[IS_FACE] == 0.0 or dot(d, view(part, PART_NORMAL, 3)) >= FLAT:
        return
    # 1. highest corner, and the size of the face as the scale of the tolerance
    for k in range(count):
        at = POINTS + 3 * k
        top = max(top, dot(d, view(part, at, 3)))
        for i in range(3):
            scale = max(scale, abs(part[at + i] - part[POINTS + i]))
    # 2. the corners that are as high: one or two
    for k in range(count):
        at = POINTS + 3 * k
        if dot(d, view(part, at, 3)) >= top - LEVEL * scale and kept < 2:
            first = k if kept == 0 else first
            for i in range(3):
                part[POINTS + 3 * kept + i] = part[at + i]
            kept += 1
    part[COUNT], part[IS_FACE] = kept, 0.0
    part[PART_NUMBER] += _EDGES_FROM * (1 + first)


@kernel
def _leans_out(geometry, block, t, i, local):
    """Whether triangle t rises along a direction from its edge i inwards."""
    at, vertices = int(geometry[block + FACES]) + TRIANGLE * t, int(geometry[block + VERTICES])
    u, into = stack(3), stack(3)
    p, q = vertices + 3 * int(geometry[at + i]), vertices + 3 * int(geometry[at + (i + 1) % 3])
    for m in range(3):
        u[m] = geometry[q + m] - geometry[p + m]
    cross(view(geometry, at + 3, 3), u, into)
    return dot(into, local) > LEVEL * norm(into)


@kernel
def _rises_around(geometry, block, v, local):
    """Whether an edge at vertex v of a mesh rises along a direction."""
    fans, listed, vertices = int(geometry[block + FANS]), int(geometry[block + FAN_LIST]), int(geometry[block + VERTICES])
    d = stack(3)
    # all triangles of the fan around v, both other corners of each
    for entry in range(int(geometry[fans + v]), int(geometry[fans + v + 1])):
        at = int(geometry[block + FACES]) + TRIANGLE * int(geometry[listed + entry])
        for corner in range(3):
            w = int(geometry[at + corner])
            if w != v:
                for m in range(3):
                    d[m] = geometry[vertices + 3 * w + m] - geometry[vertices + 3 * v + m]
                if dot(d, local) > LEVEL * norm(d):
                    return True
    return False


@kernel
def ridge(mesh, geometry, n, t, part):
    """Highest edge or vertex of triangle t of a mesh along n; false unless the surface is convex there, falling off on all sides.

    Outside is where normals point, weighted by angles (Baerentzen and Aanaes, IEEE Trans. Vis. Comput. Graph. 11, 243, 2005).
    Out: part (PART,).
    """
    block, local, heights = int(mesh[BLOCK]), stack(3), stack(3)
    R = view(mesh, AXES, 9)
    # 1. heights of the corners of the triangle along n, in the axes of the mesh
    times_transposed(R, n, local)
    at, vertices = int(geometry[block + FACES]) + TRIANGLE * t, int(geometry[block + VERTICES])
    length, top, low = 0.0, -math.inf, -1
    for i in range(3):
        x = view(geometry, vertices + 3 * int(geometry[at + i]), 3)
        heights[i] = dot(x, local)
        top = max(top, heights[i])
    # 2. which of them are highest, up to a tolerance relative to an edge
    for m in range(3):
        length += (geometry[vertices + 3 * int(geometry[at + 1]) + m] - geometry[vertices + 3 * int(geometry[at]) + m]) ** 2
    above, only = 0, 0
    for i in range(3):
        if heights[i] >= top - LEVEL * math.sqrt(length):
            above, only = above + 1, i
        else:
            low = i
    # the triangle itself is across n: no edge of it
    if above == 3:
        return False
    n_triangles = int(geometry[block + N_FACES])
    part[IS_FACE] = 0.0
    # 3. an edge: the triangles on both sides of it must fall off, and their normals point outwards in the sum
    if above == 2:
        i = (low + 1) % 3
        beyond, outside = int(geometry[at + 6 + i]), dot(view(geometry, at + 3, 3), local)
        if _leans_out(geometry, block, t, i, local):
            return False
        if beyond >= 0:
            other = int(geometry[block + FACES]) + TRIANGLE * beyond
            side = 0
            for k in range(1, 3):
                side = k if geometry[other + 9 + k] == geometry[at + 9 + i] else side
            outside += dot(view(geometry, other + 3, 3), local)
            if _leans_out(geometry, block, beyond, side, local):
                return False
        if outside <= 0.0:
            return False
        # named by the number of the edge in the mesh, its ends in the order of their numbers: the same part whichever triangle asks
        one, two = int(geometry[at + i]), int(geometry[at + (i + 1) % 3])
        part[COUNT], part[PART_NUMBER] = 2, n_triangles + int(geometry[at + 9 + i])
        _put_corner(mesh, geometry, min(one, two), part, 0)
        _put_corner(mesh, geometry, max(one, two), part, 1)
        return True
    # 4. a vertex: no edge around it may rise
    v = int(geometry[at + only])
    if dot(view(geometry, int(geometry[block + OUTWARDS]) + 3 * v, 3), local) <= 0.0 or _rises_around(geometry, block, v, local):
        return False
    part[COUNT], part[PART_NUMBER] = 1, n_triangles + int(geometry[block + N_EDGES]) + v
    _put_corner(mesh, geometry, v, part, 0)
    return True


@kernel
def _put_corner(mesh, geometry, v, part, k):
    """Puts vertex v of a mesh, in the world, as corner k of the part."""
    x = view(part, POINTS + 3 * k, 3)
    times(view(mesh, AXES, 9), view(geometry, int(geometry[int(mesh[BLOCK]) + VERTICES]) + 3 * v, 3), x)
    for i in range(3):
        x[i] += mesh[CENTRE + i]
