"""Distance of two convex shapes by support functions (Gilbert, Johnson and Keerthi 1988), and their least penetration where they overlap.

Both use the Minkowski difference A - B: the distance is that of the origin from it; where the origin is inside, the nearest face
of an expanding polytope gives the least penetration (van den Bergen 2001).
"""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.frames import TINY
from nsds.collision.support import farthest, radius
from nsds.maths.vectors import cross, dot, norm

SIMPLEX = 56  # entries of a simplex: four points, their weights, and both of the previous iteration
POINT = 6  # entries of a point of it: difference, and the point of A that it comes from
WITHIN, TOUCHING = -1.0, -2.0
_ROUNDS, _CLOSE = 128, 1e-13  # iterations of the distance; relative difference of the squared bounds at which it has converged
_THIN = 1e-12  # relative height of a tetrahedron that counts as flat
_POINTS, _FACES, _NEW = 60, 120, 90  # capacities of a polytope: points, faces, edges of the horizon
_FACE = 7  # entries of a face of it: numbers of three points, normal, distance
_WORDS_OF_POINTS, _WORDS_OF_FACES, _WORDS_OF_EDGES = 3 * _POINTS, _FACE * _FACES, 2 * _NEW
_DEEP_ENOUGH = 1e-9  # fraction of the smaller shape: growth of the polytope at which it has converged


@tiny
def _put_difference(a, b, geometry, d, points, at):
    """Support point of A - B along d. Out: POINT entries of points."""
    x, y, turned = view(points, at + 3, 3), stack(3), stack(3)
    for i in range(3):
        turned[i] = -d[i]
    farthest(a, geometry, d, x)
    farthest(b, geometry, turned, y)
    for i in range(3):
        points[at + i] = x[i] - y[i]


@kernel
def _on_triangle(S, i, j, k, weights):
    """Weights of the point of a triangle of S closest to the origin (Ericson 2004, 5.1.5); returns the squared distance."""
    # 1. edge vectors, and their products with all corners
    u, v = stack(3), stack(3)
    a, b, c = view(S, POINT * i, 3), view(S, POINT * j, 3), view(S, POINT * k, 3)
    for m in range(3):
        u[m], v[m] = b[m] - a[m], c[m] - a[m]
    d1, d2, d3, d4, d5, d6 = -dot(u, a), -dot(v, a), -dot(u, b), -dot(v, b), -dot(u, c), -dot(v, c)
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    # 2. Voronoi region of the origin: a corner, an edge or the interior; degenerate triangles fall into an edge or corner
    s, t = 0.0, 0.0
    if d1 <= 0.0 and d2 <= 0.0:
        s, t = 0.0, 0.0
    elif d3 >= 0.0 and d4 <= d3:
        s, t = 1.0, 0.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        s, t = d1 / (d1 - d3), 0.0
    elif d6 >= 0.0 and d5 <= d6:
        s, t = 0.0, 1.0
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        s, t = 0.0, d2 / (d2 - d6)
    elif va <= 0.0 and d4 >= d3 and d5 >= d6:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        s = 1.0 - t
    else:
        s, t = vb / (va + vb + vc), vc / (va + vb + vc)
    # 3. squared distance from the weights themselves, not from the products above, which cancel
    weights[0], weights[1], weights[2] = 1.0 - s - t, s, t
    square = 0.0
    for m in range(3):
        square += (a[m] + s * u[m] + t * v[m]) ** 2
    return square


@kernel
def _has_within(S, i, j, k, last):
    """Whether the origin is on the same side of a triangle of S as the point ``last``; false for a flat tetrahedron."""
    u, v, w, n = stack(3), stack(3), stack(3), stack(3)
    for m in range(3):
        u[m], v[m], w[m] = S[POINT * j + m] - S[POINT * i + m], S[POINT * k + m] - S[POINT * i + m], S[POINT * last + m] - S[POINT * i + m]
    cross(u, v, n)
    height, origin = dot(n, w), -dot(n, view(S, POINT * i, 3))
    return height * origin >= 0.0 and abs(height) > _THIN * norm(n) * (norm(w) + norm(u))


@kernel
def _closest_to_origin(S, count, v):
    """Point of a simplex closest to the origin; points with weight 0 are removed from the simplex. Out: v (3,).

    Returns the number of points kept, 4 if the origin is inside; the weights follow the points, in S[24:28].
    """
    best, weights, chosen = math.inf, stack(3), stack(3)
    kept, simplex = stack(3), stack(18)
    faces = 4 if count == 4 else 1
    # 1. a tetrahedron around the origin
    if (
        count == 4
        and _has_within(S, 0, 1, 2, 3)
        and _has_within(S, 0, 1, 3, 2)
        and _has_within(S, 0, 2, 3, 1)
        and _has_within(S, 1, 2, 3, 0)
    ):
        return 4
    # 2. the closest of its faces; a segment or a point counts as a degenerate triangle
    for face in range(faces):
        i = 1 if face == 3 else 0
        j = (2 if face >= 2 else 1) if count >= 2 else 0
        k = (2 if face == 0 else 3) if count == 4 else (2 if count == 3 else j)
        square = _on_triangle(S, i, j, k, weights)
        if square < best:
            best = square
            kept[0], kept[1], kept[2] = i, j, k
            for m in range(3):
                chosen[m] = weights[m]
    # NaN in the input: the caller stops
    if not best < math.inf:
        return 0
    # 3. points of positive weight, moved to the front, and the closest point from them
    left = 0
    for m in range(3):
        v[m] = 0.0
    for corner in range(3):
        if chosen[corner] > 0.0:
            at = POINT * int(kept[corner])
            for m in range(POINT):
                simplex[POINT * left + m] = S[at + m]
            for m in range(3):
                v[m] += chosen[corner] * S[at + m]
            S[24 + left] = chosen[corner]
            left += 1
    for m in range(POINT * left):
        S[m] = simplex[m]
    return left


@kernel
def apart(a, b, geometry, towards, beyond, n, point, S):
    """Distance of the cores of two shapes, WITHIN if they overlap, TOUCHING if they do to rounding; a lower bound beyond ``beyond``.

    In: towards (3,), initial direction from b to a; beyond: distance at which the search may stop. Out: n (3,), from b to a; point (3,)
    of a; S (SIMPLEX,): the simplex, which contains the origin where cores overlap.
    """
    # 1. first support point
    v, old = stack(3), stack(3)
    rounds = radius(a) + radius(b)
    for m in range(3):
        v[m] = -towards[m]
    _put_difference(a, b, geometry, v, S, 0)
    count, square = 1, 0.0
    S[24] = 1.0
    for m in range(3):
        v[m] = S[m]
    for _ in range(_ROUNDS):
        # 2. support point against the closest point so far
        square = dot(v, v)
        if square <= TINY:
            return TOUCHING
        for m in range(3):
            old[m] = -v[m]
        _put_difference(a, b, geometry, old, S, POINT * count)
        # reach / |v| is a lower bound of the distance: far enough, or converged
        reach = dot(v, view(S, POINT * count, 3))
        if reach > 0.0 and reach > (beyond + rounds) * math.sqrt(square):
            break
        if square - reach <= _CLOSE * square:
            break
        # 3. closest point of the new simplex; the old simplex and its weights are kept, in case rounding makes it worse
        for m in range(28):
            S[28 + m] = S[m]
        left = _closest_to_origin(S, count + 1, old)
        if left == 4 and reach <= 0.0:
            return WITHIN
        if left == 4 or left == 0 or not dot(old, old) < square:  # rounding: no closer than before
            for m in range(28):
                S[m] = S[28 + m]
            break
        count = left
        for m in range(3):
            v[m] = old[m]
    # 4. normal, and the point of a from the same weights
    size = math.sqrt(square)
    for m in range(3):
        n[m], point[m] = v[m] / size, 0.0
        for i in range(count):
            point[m] += S[24 + i] * S[POINT * i + 3 + m]
        point[m] -= radius(a) * n[m]
    return size


@tiny
def _put_face(points, i, j, k, faces, at):
    """Face of a polytope around the origin: three points, outward normal, distance; the distance is infinite for a face without area."""
    u, v, n = stack(3), stack(3), view(faces, at + 3, 3)
    for m in range(3):
        u[m], v[m] = points[3 * j + m] - points[3 * i + m], points[3 * k + m] - points[3 * i + m]
    cross(u, v, n)
    size = norm(n)
    sense = 1.0 if dot(n, view(points, 3 * i, 3)) >= 0.0 else -1.0
    faces[at], faces[at + 1], faces[at + 2] = i, (j if sense > 0.0 else k), (k if sense > 0.0 else j)
    for m in range(3):
        n[m] *= sense / size if size > TINY else 0.0
    faces[at + 6] = dot(n, view(points, 3 * i, 3)) if size > TINY else math.inf


@tiny
def _nearest(faces, count):
    """The face nearest to the origin."""
    best = 0
    for f in range(1, count):
        if faces[_FACE * f + 6] < faces[_FACE * best + 6]:
            best = f
    return best


@kernel
def _open(points, last, faces, count, edges):
    """Removes the faces visible from the last point; returns (faces kept, edges of the horizon). Out: edges, two points each."""
    left, hole = 0, 0
    for f in range(count):
        at, seen = _FACE * f, faces[_FACE * f + 6] < math.inf
        seen = seen and dot(view(faces, at + 3, 3), view(points, 3 * last, 3)) > faces[at + 6]
        if not seen:
            for m in range(_FACE):
                faces[_FACE * left + m] = faces[at + m]
            left += 1
            continue
        # an edge that two removed faces share is inside the hole: it is found in the opposite sense and removed; the others are the horizon
        for corner in range(3):
            i, j, known = faces[at + corner], faces[at + (corner + 1) % 3], False
            for e in range(hole):
                if not known and edges[2 * e] == j and edges[2 * e + 1] == i:  # both faces at it are removed
                    edges[2 * e], edges[2 * e + 1], known, hole = edges[2 * hole - 2], edges[2 * hole - 1], True, hole - 1
            if not known and hole < _NEW:
                edges[2 * hole], edges[2 * hole + 1], hole = i, j, hole + 1
    return left, hole


@kernel
def least_overlap(a, b, geometry, S, small, n):
    """Direction from b to a of the least penetration of two cores (expanding polytope). In: S around the origin. Out: n (3,)."""
    points, faces, edges, d = stack(_WORDS_OF_POINTS), stack(_WORDS_OF_FACES), stack(_WORDS_OF_EDGES), stack(POINT)
    # 1. the tetrahedron around the origin
    for i in range(4):
        for m in range(3):
            points[3 * i + m] = S[POINT * i + m]
    _put_face(points, 0, 1, 2, faces, 0)
    _put_face(points, 0, 1, 3, faces, _FACE)
    _put_face(points, 0, 2, 3, faces, 2 * _FACE)
    _put_face(points, 1, 2, 3, faces, 3 * _FACE)
    count, best = 4, 0
    # 2. support point beyond the nearest face; the face is final where it does not grow
    for last in range(4, _POINTS):
        best = _nearest(faces, count)
        m_out = view(faces, _FACE * best + 3, 3)
        _put_difference(a, b, geometry, m_out, d, 0)
        if not dot(m_out, view(d, 0, 3)) > faces[_FACE * best + 6] + _DEEP_ENOUGH * small:
            break
        for m in range(3):
            points[3 * last + m], n[m] = d[m], -m_out[m]
        # 3. replace the faces visible from the new point by a fan over the horizon; n stays the last good one if room runs out
        left, hole = _open(points, last, faces, count, edges)
        if left + hole > _FACES or hole == 0:
            return
        for e in range(hole):
            _put_face(points, int(edges[2 * e]), int(edges[2 * e + 1]), last, faces, _FACE * (left + e))
        count = left + hole
    # 4. normal of the nearest face
    best = _nearest(faces, count)
    for m in range(3):
        n[m] = -faces[_FACE * best + 3 + m]
