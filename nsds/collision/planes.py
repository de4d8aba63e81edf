"""Contacts of solids with a plane: the plane's normal is that of every contact, the points are those of the first shape."""

import math
from typing import NamedTuple

from numpy.typing import NDArray

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.frames import FIELDS, MOST, axes, put, third_axis
from nsds.maths.vectors import norm, times_transposed

_FLAT = 0.7  # cosine between a cylinder's axis and the plane's normal above which it stands rather than rolls
_LEVEL = 1e-6  # radians: a rim of less tilt has no lowest point, which would jump; its fixed points are as low to 3e-7 of its radius
STEEP = 10.0  # weight of the height against the distance outwards when vertices are chosen


class _Polyhedron(NamedTuple):
    """A polyhedron beside a plane."""

    vertices: NDArray
    first: int  # its vertices
    many: int
    offset: float  # height of its place above the plane
    m: NDArray  # (3,): normal of the plane in its axes,
    n: NDArray  # and in the world
    R: NDArray  # (9,): its axes
    place: NDArray  # (3,)


@tiny
def _height(pose, b, n, x, y, z):
    """Distance of a point to plane b of normal n."""
    return n[0] * (x - pose[7 * b]) + n[1] * (y - pose[7 * b + 1]) + n[2] * (z - pose[7 * b + 2])


@kernel
def capsule_plane(size, pose, a, b, margin, found):
    """Both end balls on the plane; feature 0 is the end at -z, 1 that at +z."""
    n, u = stack(3), stack(3)
    third_axis(pose, b, n)
    third_axis(pose, a, u)
    r, count = size[3 * a], 0
    for end in range(2):
        s = (end - 0.5) * size[3 * a + 1]
        x, y, z = pose[7 * a] + s * u[0] - r * n[0], pose[7 * a + 1] + s * u[1] - r * n[1], pose[7 * a + 2] + s * u[2] - r * n[2]
        count = put(found, count, margin, end, _height(pose, b, n, x, y, z), n, x, y, z)
    return count


@kernel
def box_plane(size, pose, a, b, margin, found):
    """Vertices near the plane; bits 0, 1, 2 of the feature: is the vertex on the positive side along x, y, z."""
    n, R, count = stack(3), stack(9), 0
    third_axis(pose, b, n)
    axes(pose, a, R)
    for vertex in range(8):
        i = ((vertex & 1) - 0.5) * size[3 * a]
        j = ((vertex >> 1 & 1) - 0.5) * size[3 * a + 1]
        k = ((vertex >> 2) - 0.5) * size[3 * a + 2]
        x = pose[7 * a] + R[0] * i + R[1] * j + R[2] * k
        y = pose[7 * a + 1] + R[3] * i + R[4] * j + R[5] * k
        z = pose[7 * a + 2] + R[6] * i + R[7] * j + R[8] * k
        count = put(found, count, margin, vertex, _height(pose, b, n, x, y, z), n, x, y, z)
    return count


@kernel
def _rim(solid, s, feature, stands, margin, found, count):
    """Points of the rim at s on the axis of a solid: the lowest one (feature), and for a standing solid four fixed ones (the next four).

    The lowest point lies along ``-n + (n . u) u`` from the rim's centre, u the axis; a rim flat on the plane has none.
    solid: (size, pose, a, b, axes R of a, normal n of the plane).
    """
    size, pose, a, b, R, n = solid
    # 1. direction of steepest descent in the plane of the rim
    d = stack(3)
    cosine = n[0] * R[2] + n[1] * R[5] + n[2] * R[8]
    for i in range(3):
        d[i] = cosine * R[3 * i + 2] - n[i]
    sine, r = norm(d), size[3 * a]
    cx, cy, cz = pose[7 * a] + s * R[2], pose[7 * a + 1] + s * R[5], pose[7 * a + 2] + s * R[8]
    # 2. lowest point; not defined where the rim is parallel to the plane
    if sine > _LEVEL:
        x, y, z = cx + r * d[0] / sine, cy + r * d[1] / sine, cz + r * d[2] / sine
        count = put(found, count, margin, feature, _height(pose, b, n, x, y, z), n, x, y, z)
    # 3. four fixed points: a standing solid needs contacts that do not jump with the direction of a small tilt
    for k in range(4 if stands else 0):
        side, i = (1.0 - 2.0 * (k & 1)) * r, k >> 1
        x, y, z = cx + side * R[i], cy + side * R[3 + i], cz + side * R[6 + i]
        count = put(found, count, margin, feature + 1 + k, _height(pose, b, n, x, y, z), n, x, y, z)
    return count


@kernel
def cylinder_plane(size, pose, a, b, margin, found):
    """The lowest point of each rim (features 0 and 5), and four points fixed on the rims (1-4, 6-9) of a cylinder that stands."""
    n, R, count = stack(3), stack(9), 0
    third_axis(pose, b, n)
    axes(pose, a, R)
    stands = abs(n[0] * R[2] + n[1] * R[5] + n[2] * R[8]) > _FLAT
    for end in range(2):
        count = _rim((size, pose, a, b, R, n), (end - 0.5) * size[3 * a + 1], 5 * end, stands, margin, found, count)
    return count


@kernel
def cone_plane(size, pose, a, b, margin, found):
    """The lowest point of the rim (feature 0), four points fixed on it of a cone that stands (1-4), and the tip (5)."""
    n, R, height = stack(3), stack(9), size[3 * a + 1]
    third_axis(pose, b, n)
    axes(pose, a, R)
    stands = n[0] * R[2] + n[1] * R[5] + n[2] * R[8] > _FLAT
    count = _rim((size, pose, a, b, R, n), -0.25 * height, 0, stands, margin, found, 0)
    x, y, z = pose[7 * a] + 0.75 * height * R[2], pose[7 * a + 1] + 0.75 * height * R[5], pose[7 * a + 2] + 0.75 * height * R[8]
    return put(found, count, margin, 5, _height(pose, b, n, x, y, z), n, x, y, z)


@kernel
def polyhedron_plane(size, pose, vertices, a, b, margin, found):
    """Vertices near the plane, by their numbers in the shape; of more than MOST the lowest, and those farthest out all round."""
    # 1. normal in the axes of the polyhedron, and offset, so that a height is one product
    n, m, R, count, offset = stack(3), stack(3), stack(9), 0, 0.0
    third_axis(pose, b, n)
    axes(pose, a, R)
    times_transposed(R, n, m)
    for i in range(3):
        offset += n[i] * (pose[7 * a + i] - pose[7 * b + i])
    # 2. count first: a flat bottom can have more vertices than there is room for
    first, many = int(size[3 * a + 1]), int(size[3 * a + 2])
    solid = _Polyhedron(vertices, first, many, offset, m, n, R, view(pose, 7 * a, 3))
    for vertex in range(many):
        at = 3 * (first + vertex)
        if offset + m[0] * vertices[at] + m[1] * vertices[at + 1] + m[2] * vertices[at + 2] <= margin:
            count += 1
    if count > MOST:
        return _spread(solid, margin, found)
    count = 0
    for vertex in range(many):
        count = _put_vertex(solid, vertex, margin, found, count)
    return count


@tiny
def _put_vertex(solid, vertex, margin, found, count):
    """Adds vertex ``vertex`` if it is near; returns the number of contacts."""
    at, vertices, m, n, R, place = 3 * (solid.first + vertex), solid.vertices, solid.m, solid.n, solid.R, solid.place
    x, y, z = vertices[at], vertices[at + 1], vertices[at + 2]
    gap = solid.offset + m[0] * x + m[1] * y + m[2] * z
    x, y, z = R[0] * x + R[1] * y + R[2] * z, R[3] * x + R[4] * y + R[5] * z, R[6] * x + R[7] * y + R[8] * z
    return put(found, count, margin, vertex, gap, n, place[0] + x, place[1] + y, place[2] + z)


@kernel
def _spread(solid, margin, found):
    """The lowest vertex, and the lowest ones in tilted directions all round, each once: support on all sides."""
    vertices, first, many, offset, m = solid.vertices, solid.first, solid.many, solid.offset, solid.m
    # 1. a direction t across the normal, from the axis least parallel to it
    t, least, count = stack(3), 0, 0
    for i in range(1, 3):
        if abs(m[i]) < abs(m[least]):
            least = i
    for i in range(3):
        t[i] = (1.0 if i == least else 0.0) - m[least] * m[i]
    length = norm(t)
    u, v = (least + 1) % 3, (least + 2) % 3
    # 2. the lowest vertex, then the extreme one in each of MOST - 1 directions
    for turn in range(MOST):
        angle, lean = 2.0 * math.pi * turn / (MOST - 1), (0.0 if turn == 0 else 1.0) / length
        cosine, sine = lean * math.cos(angle), lean * math.sin(angle)
        best, chosen = -math.inf, 0
        for vertex in range(many):
            at = 3 * (first + vertex)
            height = offset + m[0] * vertices[at] + m[1] * vertices[at + 1] + m[2] * vertices[at + 2]
            along = t[0] * vertices[at] + t[1] * vertices[at + 1] + t[2] * vertices[at + 2]
            across = m[u] * vertices[at + v] - m[v] * vertices[at + u]  # along m x e, as long as t
            score = cosine * along + sine * across - STEEP * height
            if height <= margin and score > best:
                best, chosen = score, vertex
        # 3. a vertex that is chosen again is not added twice
        known = False
        for k in range(count):
            known = known or found[k * FIELDS] == chosen
        if not known:
            count = _put_vertex(solid, chosen, margin, found, count)
    return count
