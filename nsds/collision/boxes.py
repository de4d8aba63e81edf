"""Contacts of two boxes: separating-axis test with 15 axes (Gottschalk), then a clipped face or a pair of edges.

Features: a vertex of a clipped face is named by the two faces and the two edges that meet there, below FACES; a pair of edges below EDGES;
the closest vertices and edges where none of the 15 axes gives the distance.
"""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.capsules import closest_on_segments
from nsds.collision.closest import closest_features
from nsds.collision.edge_on import WIDTH, add_normal, does_touch
from nsds.collision.frames import FIELDS, axes, put, seen_from
from nsds.collision.polygons import MOST_VERTICES, VERTEX, clip
from nsds.maths.vectors import norm, times

FACES = 2 * 6 * 6 * 64
EDGES = FACES + 9 * 16
CORNERS = EDGES + 160
_POLYGON = VERTEX * MOST_VERTICES
_BIAS = 1e-2  # fraction of the smallest half length by which another axis must separate more than a face of the first box; edges: twice
_EXACT = 1e-9  # fraction of the smallest half length up to which the lowest gap must agree with the distance
_PARALLEL = 1e-3  # sine below which two edges are parallel and their cross product is no axis
_BESIDE = 1e-7  # fraction of the smallest half length by which a vertex may lie beyond the side of its face


@tiny
def _most_separating(C, t, h, g, bias, apart):
    """The separating axis of two boxes, chosen with the bias; returns (axis, largest separation of all, without the bias).

    Axes 0-2 are normals of a, 3-5 normals of b, 6-14 cross products of edges. In: ``C = R_a^T R_b``, t = x_b - x_a, half sizes h and g.
    Out: apart (6,), how far along the normals.
    """
    # 1. normals of the first box: no bias, so that a tie goes to them whatever the rounding
    best, most, axis = -math.inf, -math.inf, 0
    for i in range(3):
        s = abs(t[i]) - h[i] - g[0] * abs(C[3 * i]) - g[1] * abs(C[3 * i + 1]) - g[2] * abs(C[3 * i + 2])
        apart[i], most = s, max(most, s)
        if s > best:
            best, axis = s, i
    # 2. normals of the second box
    for j in range(3):
        s = abs(t[0] * C[j] + t[1] * C[3 + j] + t[2] * C[6 + j]) - g[j]
        s -= h[0] * abs(C[j]) + h[1] * abs(C[3 + j]) + h[2] * abs(C[6 + j])
        apart[3 + j], most = s, max(most, s)
        if s > best + bias:
            best, axis = s - bias, 3 + j
    # 3. cross products of edges, divided by their length; those of nearly parallel edges have no direction and are covered by the faces
    for i in range(3):
        i1, i2 = (i + 1) % 3, (i + 2) % 3
        for j in range(3):
            j1, j2 = (j + 1) % 3, (j + 2) % 3
            sine = math.sqrt(max(1.0 - C[3 * i + j] ** 2, 0.0))
            if sine > _PARALLEL:
                s = abs(t[i2] * C[3 * i1 + j] - t[i1] * C[3 * i2 + j]) - h[i1] * abs(C[3 * i2 + j]) - h[i2] * abs(C[3 * i1 + j])
                s = (s - g[j1] * abs(C[3 * i + j2]) - g[j2] * abs(C[3 * i + j1])) / sine
                most = max(most, s)
                if s > best + 2.0 * bias:
                    best, axis = s - 2.0 * bias, 6 + 3 * i + j
    return axis, most


@tiny
def _half_width(h, g):
    """The smallest of the half lengths of two boxes."""
    return min(min(min(h[0], h[1]), h[2]), min(min(g[0], g[1]), g[2]))


@tiny
def _normal_across(C, t, axis, n):
    """Normal of one of the six faces that face the other box. Out: n (3,), in the axes of a, from b to a."""
    j = axis - 3
    side = -math.copysign(1.0, t[axis] if axis < 3 else t[0] * C[j] + t[1] * C[3 + j] + t[2] * C[6 + j])
    for d in range(3):
        n[d] = side * (C[3 * d + j] if axis >= 3 else 1.0 if d == axis else 0.0)


@kernel
def _edge_on(C, t, h, g, apart, n):
    """(face with the largest separation, whether other faces separate the boxes as much).

    Out: n (3,), the normal between those of these faces, in the axes of a, from b to a; see `nsds.collision.edge_on`.
    """
    best, face, smallest, is_between, most, axis = stack(3), stack(3), _half_width(h, g), False, -math.inf, 0
    # 1. the best face; a later one must be better by more than rounding
    for k in range(6):
        most, axis = (apart[k], k) if apart[k] > most + _EXACT * smallest else (most, axis)
    _normal_across(C, t, axis, best)
    for i in range(3):
        n[i] = best[i]
    # 2. normals of all faces that separate nearly as much, weighted
    for k in range(6):
        if apart[k] > most - WIDTH * smallest:
            _normal_across(C, t, k, face)
            is_between = add_normal(best, face, most - apart[k], WIDTH * smallest, n) or is_between
    # 3. unit length; add_normal never adds an opposite, so that the sum is not 0
    length = norm(n)
    for i in range(3):
        n[i] /= length
    return axis, is_between


@tiny
def _turn_to(R, n, beyond, found, count):
    """Sets the normal of all contacts whose gap is at most ``beyond`` to n, which is given in the axes of a."""
    normal = stack(3)
    times(R, n, normal)
    for k in range(count):
        at = FIELDS * k
        for i in range(3 if found[at + 1] <= beyond else 0):
            found[at + 2 + i] = normal[i]


@tiny
def _relative(size, pose, a, b, boxes):
    """Rotation and position of b in the axes of a, and the half sizes of both. Out: R (9,) axes of a, C (9,), t, h, g (3,)."""
    (R, C, t, h, g), S = boxes, stack(9)
    axes(pose, a, R)
    axes(pose, b, S)
    seen_from(R, pose, b, a, t)
    for i in range(3):
        h[i], g[i] = 0.5 * size[3 * a + i], 0.5 * size[3 * b + i]
        for j in range(3):
            C[3 * i + j] = R[i] * S[j] + R[3 + i] * S[3 + j] + R[6 + i] * S[6 + j]


@kernel
def _incident_face(C, t, g, i, side, height, polygon):
    """The incident face of the other box, most opposed to the face ``side e_i`` of this one, as a polygon; returns its number, 0 to 5."""
    # 1. the axis of the other box most parallel to e_i; a tie within rounding goes to the first, so that the face does not alternate
    j, k = (i + 1) % 3, (i + 2) % 3
    m = 0
    for other in range(1, 3):
        if abs(C[3 * i + other]) > abs(C[3 * i + m]) + 1e-9:
            m = other
    towards = -math.copysign(1.0, side * C[3 * i + m])
    m1, m2 = (m + 1) % 3, (m + 2) % 3
    # 2. its four corners: (two coordinates in this face, height above it, name of the edge), counterclockwise
    for corner in range(4):
        x, y = (g[m1] if corner == 0 or corner == 3 else -g[m1]), (g[m2] if corner < 2 else -g[m2])
        at = VERTEX * corner
        for row, axis in enumerate((j, k, i)):
            polygon[at + row] = t[axis] + C[3 * axis + m] * towards * g[m] + C[3 * axis + m1] * x + C[3 * axis + m2] * y
        polygon[at + 2] = side * polygon[at + 2] - height
        polygon[at + 3] = corner
    return 2 * m + (1 if towards > 0.0 else 0)


@tiny
def _clip(polygon, n, axis, side, limit, slack, beyond, clipped):
    """The part of a polygon where ``side * coordinate[axis] <= limit``, see `clip`; sides of the face are 4 to 7."""
    for i in range(n):
        beyond[i] = side * polygon[VERTEX * i + axis] - limit
    return clip(polygon, n, beyond, slack, 4 + 2 * axis + (0 if side > 0.0 else 1), clipped)


@kernel
def _face_contacts(size, pose, r, o, i, second, margin, found):
    """Contacts by face clipping: the incident face of box o within the sides of the face of r across axis i; second: r is the second"""
    R, C, t, h, g, n = stack(9), stack(9), stack(3), stack(3), stack(3), stack(3)
    polygon, clipped, beyond = stack(_POLYGON), stack(_POLYGON), stack(MOST_VERTICES)
    # 1. both boxes in the axes of r, and the incident face as a polygon
    _relative(size, pose, r, o, (R, C, t, h, g))
    side = math.copysign(1.0, t[i])
    j, k = (i + 1) % 3, (i + 2) % 3
    face, slack = _incident_face(C, t, g, i, side, h[i], polygon), _BESIDE * _half_width(h, g)
    # 2. Sutherland-Hodgman clipping by the four sides of the reference face
    size_now = _clip(polygon, 4, 0, 1.0, h[j], slack, beyond, clipped)
    size_now = _clip(clipped, size_now, 0, -1.0, h[j], slack, beyond, polygon)
    size_now = _clip(polygon, size_now, 1, 1.0, h[k], slack, beyond, clipped)
    size_now = _clip(clipped, size_now, 1, -1.0, h[k], slack, beyond, polygon)
    # 3. normal from b to a, and the first part of the feature: which pair of faces
    count, sense, pair = 0, 1.0 if second else -1.0, ((6 if second else 0) + 2 * i + (1 if side > 0.0 else 0)) * 6 + face
    for d in range(3):
        n[d] = sense * side * R[3 * d + i]
    # 4. one contact for each vertex, named by the faces and by the two edges that meet there, which is the same in the next step
    for vertex in range(min(size_now, MOST_VERTICES)):
        at = VERTEX * vertex
        before = VERTEX * (vertex - 1 if vertex > 0 else size_now - 1)
        gap = polygon[at + 2]
        level = side * (h[i] + (gap if second else 0.0))  # the point lies on the first box, be it this or the other
        x = pose[7 * r] + R[i] * level + R[j] * polygon[at] + R[k] * polygon[at + 1]
        y = pose[7 * r + 1] + R[3 + i] * level + R[3 + j] * polygon[at] + R[3 + k] * polygon[at + 1]
        z = pose[7 * r + 2] + R[6 + i] * level + R[6 + j] * polygon[at] + R[6 + k] * polygon[at + 1]
        feature = pair * 64 + 8 * polygon[before + 3] + polygon[at + 3]
        count = put(found, count, margin, feature, gap, n, x, y, z)
    return count


@kernel
def _vertex_contact(size, pose, r, o, i, second, margin, found):
    """Deepest vertex of box o across axis i of box r, for boxes that overlap while their facing faces have no common part."""
    R, C, t, h, g, n = stack(9), stack(9), stack(3), stack(3), stack(3), stack(3)
    _relative(size, pose, r, o, (R, C, t, h, g))
    # 1. the vertex of o that is lowest along the outward normal, as bits of its number
    side, vertex = math.copysign(1.0, t[i]), 0
    for j in range(3):
        reach = -math.copysign(g[j], side * C[3 * i + j])
        vertex += (1 << j) if reach > 0.0 else 0
        for d in range(3):
            n[d] = side * R[3 * d + i]
        t[0], t[1], t[2] = t[0] + C[j] * reach, t[1] + C[3 + j] * reach, t[2] + C[6 + j] * reach
    # 2. its depth; the point lies on the first box, and the normal points to it
    gap = side * t[i] - h[i]
    if not second:
        t[i] = side * h[i]
        n[0], n[1], n[2] = -n[0], -n[1], -n[2]
    times(R, t, g)
    return put(found, 0, margin, CORNERS + vertex, gap, n, pose[7 * r] + g[0], pose[7 * r + 1] + g[1], pose[7 * r + 2] + g[2])


@kernel
def _edge_contact(size, pose, a, b, i, j, margin, found):
    """Closest points of the mutually facing edges along axis i of box a and axis j of box b."""
    R, C, t, h, g = stack(9), stack(9), stack(3), stack(3), stack(3)
    n, p, v, u, r, st = stack(3), stack(3), stack(3), stack(3), stack(3), stack(2)
    _relative(size, pose, a, b, (R, C, t, h, g))
    # 1. common normal of both edges, turned from b to a
    i1, i2, j1, j2 = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
    sine = math.hypot(C[3 * i1 + j], C[3 * i2 + j])
    sense = 1.0 if t[i2] * C[3 * i1 + j] - t[i1] * C[3 * i2 + j] < 0.0 else -1.0
    n[i], n[i1], n[i2] = 0.0, -sense * C[3 * i2 + j] / sine, sense * C[3 * i1 + j] / sine
    # 2. the edge of each box that faces the other along this normal
    u[i], u[i1], u[i2] = 1.0, 0.0, 0.0
    p[i], p[i1], p[i2] = 0.0, -math.copysign(h[i1], n[i1]), -math.copysign(h[i2], n[i2])
    along_1 = n[i1] * C[3 * i1 + j1] + n[i2] * C[3 * i2 + j1]
    along_2 = n[i1] * C[3 * i1 + j2] + n[i2] * C[3 * i2 + j2]
    x, y = math.copysign(g[j1], along_1), math.copysign(g[j2], along_2)
    for d in range(3):
        v[d] = C[3 * d + j]
        r[d] = p[d] - t[d] - C[3 * d + j1] * x - C[3 * d + j2] * y
    # 3. closest points of the two segments
    closest_on_segments(r, v[i], u, v, h[i], g[j], st)
    p[i] = st[0]
    # 4. gap along the normal, and the point of a in the world
    gap = 0.0
    for d in range(3):
        gap += n[d] * (r[d] + st[0] * u[d] - st[1] * v[d])
        u[d] = pose[7 * a + d] + R[3 * d] * p[0] + R[3 * d + 1] * p[1] + R[3 * d + 2] * p[2]
    times(R, n, v)
    if gap > 0.0 and (abs(st[0]) >= h[i] or abs(st[1]) >= g[j]):
        return 0  # the edges end before they meet: their distance is not the gap
    # 5. feature: the pair of axes, then two bits for each edge, which of the four parallel ones it is
    feature = FACES + ((3 * i + j) * 4 + (2 if n[i1] > 0.0 else 0) + (1 if n[i2] > 0.0 else 0)) * 4
    feature += (2 if x > 0.0 else 0) + (1 if y > 0.0 else 0)
    return put(found, 0, margin, feature, gap, v, u[0], u[1], u[2])


@kernel
def box_box(size, pose, a, b, margin, found):
    """Contacts across the separating axis, faces before edges; the closest points of both boxes in addition, if these are nearer."""
    R, C, t, h, g, apart, n = stack(9), stack(9), stack(3), stack(3), stack(3), stack(6), stack(3)
    # 1. separating axis
    _relative(size, pose, a, b, (R, C, t, h, g))
    smallest = _half_width(h, g)
    axis, separation = _most_separating(C, t, h, g, _BIAS * smallest, apart)
    if separation > margin:
        return 0
    # 2. boxes that touch edge on edge: rounding would choose the face; the normal between all of them is continuous
    is_edge_on = False
    if axis < 6 and does_touch(separation, smallest):
        best, is_edge_on = _edge_on(C, t, h, g, apart, n)
        axis = best if is_edge_on else axis
    # 3. contacts by clipped faces or by two edges
    second = axis >= 3
    r, o = (b, a) if second else (a, b)
    if axis < 6:
        count = _face_contacts(size, pose, r, o, axis % 3, second, margin, found)
    else:
        count = _edge_contact(size, pose, a, b, (axis - 6) // 3, (axis - 6) % 3, margin, found)
    # 4. lowest gap, which shows whether these contacts give the distance
    lowest = math.inf
    for k in range(count):
        lowest = min(lowest, found[k * FIELDS + 1])
    # 5. touching edge on edge: the common normal instead of that of the face
    if is_edge_on and lowest <= apart[axis] + WIDTH * smallest:
        _turn_to(R, n, apart[axis] + WIDTH * smallest, found, count)
        return count
    # 6. boxes that are apart at corners, or overlap at a corner only: clipping has missed the closest points
    if separation > 0.0 and lowest > separation + _EXACT * smallest:
        return closest_features(view(pose, 7 * a, 3), (R, C, t, h, g), EDGES, lowest, margin, found, count)
    if separation <= 0.0 and count == 0 and axis < 6:
        return _vertex_contact(size, pose, r, o, axis % 3, second, margin, found)
    return count
