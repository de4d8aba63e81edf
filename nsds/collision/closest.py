"""Closest vertices and edges of two separated boxes by exhaustive search, for corners that pass each other."""

import math

from nsds._jit import kernel, stack, tiny
from nsds.collision.capsules import closest_on_segments
from nsds.collision.frames import TINY, put
from nsds.maths.vectors import times, times_transposed

# factor of a distance below which another pair counts as closer
_CLOSER = 1.0 - 1e-9


@tiny
def _nearer(x, y, distance, p, q):
    """Keeps the points x and y in p and q if they are closer than the distance; returns the lesser distance."""
    d = math.sqrt((x[0] - y[0]) ** 2 + (x[1] - y[1]) ** 2 + (x[2] - y[2]) ** 2)
    if not d < distance * _CLOSER:  # rounding does not decide between a vertex and the edges that end there
        return distance
    for i in range(3):
        p[i], q[i] = x[i], y[i]
    return d


@tiny
def _corner(half, vertex, x):
    """Vertex 0 to 7 of a box. Out: x (3,)."""
    for i in range(3):
        x[i] = half[i] if (vertex >> i) & 1 else -half[i]


@kernel
def _vertices(C, t, h, g, distance, p, q):
    """Closest pair of points of two boxes of which one is a vertex, in the axes of the first; returns (vertex number, distance)."""
    x, y, z, which = stack(3), stack(3), stack(3), -1
    for vertex in range(16):
        first = vertex < 8
        _corner(h if first else g, vertex & 7, x)
        # vertices 0 to 7 of the first box: clamp in the axes of the second, 8 to 15 conversely
        if first:
            for i in range(3):
                y[i] = x[i] - t[i]
            times_transposed(C, y, y)
            for i in range(3):
                y[i] = min(max(y[i], -g[i]), g[i])
            times(C, y, z)
        else:
            times(C, x, z)
            for i in range(3):
                x[i] = min(max(z[i] + t[i], -h[i]), h[i])
        for i in range(3):
            z[i] += t[i]
        d = _nearer(x, z, distance, p, q)
        if d < distance:
            which, distance = vertex, d
    return which, distance


@kernel
def _edges(C, t, h, g, distance, p, q):
    """Closest pair of points of the edges of two boxes, in the axes of the first; returns (number of the pair, distance)."""
    x, y, z, r, u, v, st, which = stack(3), stack(3), stack(3), stack(3), stack(3), stack(3), stack(2), -1
    for pair in range(144):
        # edge i of the first box and edge j of the second, each by two signs: 12 x 12 pairs
        i, j = pair // 12 % 3, pair % 3
        k = pair // 36
        x[i], x[(i + 1) % 3], x[(i + 2) % 3] = 0.0, (2 * (k & 1) - 1) * h[(i + 1) % 3], (2 * (k >> 1) - 1) * h[(i + 2) % 3]
        k = pair % 12 // 3
        y[j], y[(j + 1) % 3], y[(j + 2) % 3] = 0.0, (2 * (k & 1) - 1) * g[(j + 1) % 3], (2 * (k >> 1) - 1) * g[(j + 2) % 3]
        # both edges as segments in the axes of the first box
        times(C, y, z)
        for d in range(3):
            z[d] += t[d]
            r[d], u[d], v[d] = x[d] - z[d], 0.0, C[3 * d + j]
        u[i] = 1.0
        # closest points of the two segments
        closest_on_segments(r, C[3 * i + j], u, v, h[i], g[j], st)
        x[i] = st[0]
        for d in range(3):
            z[d] += st[1] * v[d]
        nearest = _nearer(x, z, distance, p, q)
        if nearest < distance:
            which, distance = pair, nearest
    return which, distance


@kernel
def closest_features(place, boxes, base, lowest, margin, found, count):
    """Adds the closest points of two separated boxes, if they are nearer than the lowest gap so far: feature ``base + which``.

    place (3,): of the first box; boxes: R, C, t, h, g, as `nsds.collision.boxes` has them.
    """
    R, C, t, h, g = boxes
    p, q, n, x = stack(3), stack(3), stack(3), stack(3)
    # a pair of edges must be nearer than the best vertex by more than rounding
    vertex, distance = _vertices(C, t, h, g, lowest, p, q)
    pair, distance = _edges(C, t, h, g, distance, p, q)
    if (vertex < 0 and pair < 0) or distance < TINY:
        return count
    # unit normal from b to a, and the point of a in the world
    for i in range(3):
        q[i] = (p[i] - q[i]) / distance
    times(R, q, n)
    times(R, p, x)
    feature = base + (16 + pair if pair >= 0 else vertex)
    return put(found, count, margin, feature, distance, n, place[0] + x[0], place[1] + x[1], place[2] + x[2])
