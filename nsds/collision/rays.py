"""First surface hit by each ray: shapes whose bounding ball the ray meets, one after the other, and trees of triangles.

A ray that begins in a solid hits its surface from inside; meshes and walls of tubes are seen from both sides. Of surfaces at the same
distance that of the first shape counts.

A triangle is projected along the ray, and the ray hits it if it passes all three edges on the same side, or through one (Woop, Benthin
and Wald 2013). The side of an edge is a comparison of two products, which rounding may make equal but never reverses: two
triangles at an edge never both miss the ray.
"""

import math
from typing import NamedTuple

from numpy.typing import NDArray

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.frames import axes
from nsds.collision.geometry import DEPTH, FACE, FACES, N_FACES, NODE, NODES, ORDER, TRIANGLE, VERTICES
from nsds.collision.kinds import CONVEX, MESH, POLYGON, curved_normal, span_of
from nsds.collision.line_intersection import ENTERED, IN, LEFT, OUT, ROUND, SPAN, begin, clip
from nsds.maths.vectors import dot, times, times_transposed

_ROUNDING = 4e-15  # relative rounding of coordinates, rounded up
_WAITING = DEPTH + 2  # upper bound of the boxes on the stack
_STEEPEST = 1e300  # replaces 1 / u for a line parallel to the sides of a box


class Scene(NamedTuple):
    """Shapes in the world."""

    kind: NDArray  # (ns,)
    size: NDArray  # (3 ns,)
    pose: NDArray  # (7 ns,)
    radius: NDArray  # (ns,): of the bounding balls, infinite for an unbounded shape, negative for a disabled one
    vertices: NDArray  # (3 nv,): of polyhedra
    geometry: NDArray  # of `nsds.collision.geometry`, of hulls and meshes


class Sight(NamedTuple):
    """Projection of triangles along a direction u with largest component k: ``a = u_i / u_k``, ``b = u_j / u_k``, ``c = 1 / u_k``."""

    i: int
    j: int
    k: int
    a: float
    b: float
    c: float


@tiny
def _sight(u):
    """The projection of triangles along a direction."""
    x, y, z = abs(u[0]), abs(u[1]), abs(u[2])
    k = 0 if x >= y and x >= z else 1 if y >= z else 2
    i = k + 1 if k < 2 else 0
    j = i + 1 if i < 2 else 0
    return Sight(i, j, k, u[i] / u[k], u[j] / u[k], 1.0 / u[k])


@tiny
def _seen(sight, points, at, p):
    """(across, across, along) of a point from the start of a line: the same bits for a vertex in all of its triangles."""
    z = points[at + sight.k] - p[sight.k]
    return points[at + sight.i] - p[sight.i] - sight.a * z, points[at + sight.j] - p[sight.j] - sight.b * z, sight.c * z


@kernel
def _in_triangle(geometry, at, vertices, sight, p):
    """Distance t at which a line meets a triangle; infinite where it does not."""
    # 1. corners in the projection
    ax, ay, az = _seen(sight, geometry, vertices + 3 * int(geometry[at]), p)
    bx, by, bz = _seen(sight, geometry, vertices + 3 * int(geometry[at + 1]), p)
    cx, cy, cz = _seen(sight, geometry, vertices + 3 * int(geometry[at + 2]), p)
    # 2. edge functions; one of each sign is a miss, 0 is on an edge
    a, b, c = cx * by - cy * bx, ax * cy - ay * cx, bx * ay - by * ax
    whole = a + b + c
    if (min(min(a, b), c) < 0.0 and max(max(a, b), c) > 0.0) or whole == 0.0:
        return math.inf
    # 3. distance by barycentric weights
    return (a * az + b * bz + c * cz) / whole


@tiny
def _reaches(geometry, at, p, inverse, slack, low, high):
    """Whether a line meets a box of a tree between two t. inverse: 1 / u, of a component that is 0 a large number."""
    for i in range(3):
        one = (geometry[at + i] - slack - p[i]) * inverse[i]
        other = (geometry[at + 3 + i] + slack - p[i]) * inverse[i]
        low, high = max(low, min(one, other)), min(high, max(one, other))
    return low <= high


@tiny
def _is_first_nearer(geometry, one, other, u):
    """Whether the middle of a box comes before that of another one along u."""
    ahead = 0.0
    for i in range(3):
        ahead += u[i] * ((geometry[other + i] - geometry[one + i]) + (geometry[other + 3 + i] - geometry[one + 3 + i]))
    return ahead >= 0.0


@kernel
def of_mesh(geometry, block, slack, p, u, low, high, span):
    """First triangle of a mesh that a line meets from t = low on and before high, as a span that begins there.

    Near boxes of the tree are visited first; boxes behind a hit are skipped. slack: enlargement of the boxes, for rounding.
    """
    nodes, order, faces, vertices = block + NODES, block + ORDER, block + FACES, block + VERTICES
    nodes, order, faces, vertices = int(geometry[nodes]), int(geometry[order]), int(geometry[faces]), int(geometry[vertices])
    waiting, inverse, sight, left, best = stack(_WAITING), stack(3), _sight(u), 1, -1
    # 1. inverse direction; a component of 0 would give 0 times infinity, which is not a number
    for i in range(3):
        inverse[i] = 1.0 / u[i] if abs(u[i]) * _STEEPEST > 1.0 else math.copysign(_STEEPEST, u[i])
    waiting[0] = 0.0
    # 2. next box of the stack
    while left > 0:
        left -= 1
        at = nodes + NODE * int(waiting[left])
        if not _reaches(geometry, at, p, inverse, slack, low, high):
            continue
        first, n = int(geometry[at + 6]), int(geometry[at + 7])
        # 3. inner box: both children, the nearer on top
        if n == 0:
            one = nodes + NODE * first
            is_nearer = _is_first_nearer(geometry, one, one + NODE, u)
            far = first + 1 if is_nearer else first
            waiting[left], waiting[left + 1] = float(far), float(2 * first + 1 - far)
            left += 2
        # 4. leaf: its triangles; a hit shortens the search
        for entry in range(first, first + n):
            triangle = int(geometry[order + entry])
            t = _in_triangle(geometry, faces + TRIANGLE * triangle, vertices, sight, p)
            if low <= t < high:
                high, best = t, triangle
    # 5. the hit as a span without end: a mesh has no inside
    begin(span, (high, math.inf) if best >= 0 else (math.inf, -math.inf))
    span[ENTERED] = float(best)


@kernel
def _of_hull(geometry, block, p, u, span):
    """Span in a convex polyhedron: below all faces."""
    faces, vertices = int(geometry[block + FACES]), int(geometry[block + VERTICES])
    begin(span, (-math.inf, math.inf))
    for face in range(int(geometry[block + N_FACES])):
        at, height, rate = faces + FACE * face, 0.0, 0.0
        corner = vertices + 3 * int(geometry[int(geometry[at + 3])])
        for i in range(3):
            height += geometry[at + i] * (p[i] - geometry[corner + i])
            rate += geometry[at + i] * u[i]
        clip(span, float(face), height, rate)


@kernel
def _of_polygon(vertices, first, n, p, u, span):
    """Span in a convex polygon in the plane: left of all edges."""
    begin(span, (-math.inf, math.inf))
    for k in range(n):
        at, to = 3 * (first + k), 3 * (first + (k + 1 if k + 1 < n else 0))
        a, b = vertices[to + 1] - vertices[at + 1], vertices[at] - vertices[to]
        clip(span, float(k), a * (p[0] - vertices[at]) + b * (p[1] - vertices[at + 1]), a * u[0] + b * u[1])


@kernel
def _cross(scene, s, p, u, low, high, span):
    """Span of a line in shape s, in its axes; of a mesh, the first hit between two t. Out: span (SPAN,)."""
    kind, size = scene.kind[s], view(scene.size, 3 * s, 3)
    # polyhedra by their faces and triangles, each other kind by its sizes
    if kind == MESH:
        of_mesh(scene.geometry, int(scene.geometry[1 + s]), _ROUNDING * size[0], p, u, low, high, span)
    elif kind == CONVEX:
        _of_hull(scene.geometry, int(scene.geometry[1 + s]), p, u, span)
    elif kind == POLYGON:
        _of_polygon(scene.vertices, int(size[1]), int(size[2]), p, u, span)
    else:
        span_of(kind, size, p, u, span)


@kernel
def _normal_at(scene, s, face, x, n):
    """Outward unit normal of shape s at a point x of a face, in its axes. Out: n (3,)."""
    kind, size = scene.kind[s], view(scene.size, 3 * s, 3)
    # curved surfaces, stored normals, edges of polygons, faces across an axis
    if face == ROUND:
        n[0], n[1], n[2] = x[0], x[1], x[2]
        curved_normal(kind, size, n)
        length = math.hypot(math.hypot(n[0], n[1]), n[2])
        for i in range(3):
            n[i] /= length
    elif kind in (CONVEX, MESH):
        at = int(scene.geometry[int(scene.geometry[1 + s]) + FACES])
        at += FACE * int(face) if kind == CONVEX else TRIANGLE * int(face) + 3
        for i in range(3):
            n[i] = scene.geometry[at + i]
    elif kind == POLYGON:
        first, k = int(size[1]), int(face)
        at, to = 3 * (first + k), 3 * (first + (k + 1 if k + 1 < int(size[2]) else 0))
        n[0], n[1] = scene.vertices[to + 1] - scene.vertices[at + 1], scene.vertices[at] - scene.vertices[to]
        length = math.hypot(n[0], n[1])
        n[0], n[1], n[2] = n[0] / length, n[1] / length, 0.0
    else:
        n[0], n[1], n[2] = 0.0, 0.0, 0.0
        n[int(face) // 2] = 1.0 if int(face) % 2 == 1 else -1.0


@tiny
def _to_axes(scene, s, origin, direction, R, p, u):
    """A ray in the axes of shape s; returns the distance of p along the ray: for a bounded shape, the point nearest to its position.

    Out: R (9,), p (3,), u (3,).
    """
    # moving p near the shape first makes rounding relative to the shape, not to the distance of the ray's origin
    axes(scene.pose, s, R)
    for i in range(3):
        p[i] = origin[i] - scene.pose[7 * s + i]
    along = -dot(p, direction) if scene.radius[s] < math.inf else 0.0
    for i in range(3):
        p[i] += along * direction[i]
    times_transposed(R, p, p)
    times_transposed(R, direction, u)
    return along


@tiny
def _may_meet(scene, s, origin, direction, best):
    """Whether a ray meets the bounding ball of shape s before the nearest hit so far."""
    r, at = scene.radius[s], 7 * s
    x, y, z = scene.pose[at] - origin[0], scene.pose[at + 1] - origin[1], scene.pose[at + 2] - origin[2]
    along = x * direction[0] + y * direction[1] + z * direction[2]
    r += _ROUNDING * (abs(along) + r)
    if not (r >= 0.0 and along >= -r and along - r < best):  # neither holds for a disabled shape
        return False
    x, y, z = x - along * direction[0], y - along * direction[1], z - along * direction[2]
    return x * x + y * y + z * z <= r * r


@kernel
def first_shape(scene, origin, direction, limit, found):
    """Number of the first shape that a ray hits within a limit; -1 if none. Out: found (7,): distance, point and normal."""
    R, p, u, span = stack(9), stack(3), stack(3), stack(SPAN)
    best, shape, face, reached = limit, -1, ROUND, 0.0
    # 1. nearest hit of all shapes
    for s in range(scene.kind.size):
        if not _may_meet(scene, s, origin, direction, best):
            continue
        along = _to_axes(scene, s, origin, direction, R, p, u)
        _cross(scene, s, p, u, -along, best - along, span)
        # a ray that begins inside meets the surface at the exit
        if span[IN] <= span[OUT]:
            is_outside = along + span[IN] >= 0.0
            t = span[IN] if is_outside else span[OUT]
            if 0.0 <= along + t < best:
                best, shape, face, reached = along + t, s, (span[ENTERED] if is_outside else span[LEFT]), t
    found[0] = best
    if shape < 0:
        return shape
    # 2. point and normal of the nearest hit only, in the axes of the shape, then in the world
    _to_axes(scene, shape, origin, direction, R, p, u)
    for i in range(3):
        p[i] += reached * u[i]
    _normal_at(scene, shape, face, p, u)
    times(R, p, view(found, 1, 3))
    times(R, u, view(found, 4, 3))
    for i in range(3):
        found[1 + i] += scene.pose[7 * shape + i]
    return shape


@kernel
def cast(kind, size, pose, radius, vertices, geometry, origin, direction, limit, shape, found):
    """First shape that each ray hits, within a limit.

    In: shapes as in `Scene`; origin, direction (3 n), unit vectors. Out: shape (n,), -1 if none; found (7 n): distance, point
    and normal of each.
    """
    scene = Scene(kind, size, pose, radius, vertices, geometry)
    for i in range(shape.size):
        shape[i] = first_shape(scene, view(origin, 3 * i, 3), view(direction, 3 * i, 3), limit, view(found, 7 * i, 7))
