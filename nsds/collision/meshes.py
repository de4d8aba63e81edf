"""Contacts with meshes, triangle by triangle: of a convex shape, and of two meshes.

A triangle acts on what is in front of it. Across an edge or vertex there are contacts where the surface is convex; elsewhere the
triangle itself acts, so that a body that slides over the joint of two triangles is not caught there.
"""

import math
from typing import NamedTuple

from numpy.typing import NDArray

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.features import FLAT, edge_of, facing, ridge
from nsds.collision.frames import FIELDS
from nsds.collision.geometry import DEPTH, FACES, FAN_LIST, FANS, HALF, NODE, NODES, ORDER, TRIANGLE, VERTICES
from nsds.collision.parts import AXES, BLOCK, CENTRE, CORNERS, NORMAL, PART, PLACED
from nsds.collision.patches import LISTED, MOST_OF_PATCH, ROOM, base_of, beyond_edge, clipped, clipped_by_first, patch, thinned
from nsds.collision.solids import closest
from nsds.collision.support import lowest, middle_of, place_triangle, separation, smallest_of
from nsds.maths.vectors import dot, times

_DEEP = 0.25  # fraction of the smaller shape: a point farther behind a triangle did not come through it
_SOONER = 0.5  # fraction of an overlap: another direction counts only if the overlap along it is less than this
_STEEP = 0.7  # cosine between opposed normals of two triangles below which one stands on its edge or corner, not on its face
_ACROSS = 1e-9  # cosine between the normals of two triangles above which they do not face each other
_OF_FIRST, _OF_SECOND, _BESIDE = range(3)  # triangle along whose normal they separate
WAITING = DEPTH + 3  # entries of the state of `next_near`: next and last triangle of a leaf, number of boxes on the stack, then the stack


@tiny
def begin_near(waiting):
    """Initialises the traversal by `next_near`."""
    waiting[0], waiting[1], waiting[2], waiting[3] = 0.0, 0.0, 1.0, 0.0


@kernel
def next_near(mesh, geometry, low, high, waiting):
    """Next triangle of a mesh that may meet a box in the axes of the mesh, -1 after the last. In and out: waiting (WAITING,)."""
    block = int(mesh[BLOCK])
    nodes, order = int(geometry[block + NODES]), int(geometry[block + ORDER])
    while True:
        # 1. rest of the current leaf
        while waiting[0] < waiting[1]:
            t = int(geometry[order + int(waiting[0])])
            waiting[0] += 1.0
            if not _is_beside(geometry, block, t, low, high):
                return t
        # 2. next box of the stack; both children of an inner one that meets the box go onto the stack
        if waiting[2] == 0.0:
            return -1
        waiting[2] -= 1.0
        left = 3 + int(waiting[2])
        at = nodes + NODE * int(waiting[left])
        is_near = True
        for i in range(3):
            is_near = is_near and geometry[at + i] <= high[i] and geometry[at + 3 + i] >= low[i]
        if is_near and geometry[at + 7] == 0.0:
            waiting[left], waiting[left + 1] = geometry[at + 6], geometry[at + 6] + 1.0
            waiting[2] += 2.0
        elif is_near:
            waiting[0], waiting[1] = geometry[at + 6], geometry[at + 6] + geometry[at + 7]


@kernel
def _is_left_beside(one, other, mesh, geometry, t, sense, gap, n):
    """Whether two overlapping shapes, one with a triangle of a mesh, overlap by half or less along the normal of a neighbouring triangle.

    Example: a body on a table near its edge leaves it upwards, not to the side. sense: 1 if the mesh is the other, -1 if it is the one.
    Out: n (3,), which is the normal of such a triangle, or its opposite.
    """
    block, m, is_left, least = int(mesh[BLOCK]), stack(3), False, _SOONER * gap
    faces, fans, listed = int(geometry[block + FACES]), int(geometry[block + FANS]), int(geometry[block + FAN_LIST])
    # all triangles that share a corner with t
    for corner in range(3):
        v = int(geometry[faces + TRIANGLE * t + corner])
        for entry in range(int(geometry[fans + v]), int(geometry[fans + v + 1])):
            beside = int(geometry[listed + entry])
            normal = view(geometry, faces + TRIANGLE * beside + 3, 3)
            if beside == t or dot(normal, view(geometry, faces + TRIANGLE * t + 3, 3)) >= FLAT:  # same plane: the same direction of exit
                continue
            # separation along the normal of the neighbour
            times(view(mesh, AXES, 9), normal, m)
            for k in range(3):
                m[k] *= sense
            s = separation(one, other, geometry, m)
            if s > least:
                least, is_left = s, True
                for k in range(3):
                    n[k] = m[k]
    return is_left


@tiny
def _shallow(listed, begin, count, deepest):
    """Removes contacts, from ``begin`` on, that are too deep to have come through a triangle; returns the number kept."""
    kept = begin
    for k in range(begin, count):
        if listed[FIELDS * k + 1] >= -deepest:
            for i in range(FIELDS):
                listed[FIELDS * kept + i] = listed[FIELDS * k + i]
            kept += 1
    return kept


@tiny
def _with_room(listed, count, small, found):
    """Number of contacts in the list, reduced where there is no room for more. Work: found."""
    if count > ROOM - MOST_OF_PATCH:
        count = thinned(listed, count, small, found)
        for k in range(FIELDS * count):
            listed[k] = found[k]
    return count


class Search(NamedTuple):
    """Geometry and buffers with which the contacts of all triangles are found."""

    geometry: NDArray
    margin: float
    small: float  # length of the smaller shape
    is_strict: bool
    skipped: NDArray  # (1,)
    listed: NDArray  # contacts so far


class Triangle(NamedTuple):
    """A placed triangle of a mesh."""

    mesh: NDArray
    number: int
    placed: NDArray


@kernel
def _of_triangle(search, a, one, middle, count):
    """Adds the contacts of a convex shape with a placed triangle of a mesh; returns their number.

    search.is_strict: skip an overlap that a neighbouring triangle resolves sooner, unless across an edge; else these count, too.
    Out: search.skipped[0], 1 where one was skipped.
    """
    geometry, margin, small, is_strict, skipped, listed = search
    mesh, t, face = one
    n, point, turned, d = stack(3), stack(3), stack(3), stack(3)
    of_a, of_b, begin, normal = stack(PART), stack(PART), count, view(face, NORMAL, 3)
    # 1. distance along the normal of the triangle, cheap, then the closest points
    if lowest(a, geometry, normal, d) - dot(normal, view(face, CORNERS, 3)) > margin:
        return count
    gap = closest(a, face, geometry, normal, True, margin, small, n, point)
    if gap > margin:
        return count
    # 2. an overlap that a neighbouring triangle resolves sooner takes its direction
    is_beside = gap < 0.0 and _is_left_beside(a, face, mesh, geometry, t, 1.0, gap, d)
    if is_beside:
        gap = closest(a, face, geometry, d, True, margin, small, n, point)
    # 3. contact across a convex edge or vertex: patch of both supporting parts, and on the triangle, of what leans over the edge
    if dot(normal, n) < FLAT and ridge(mesh, geometry, n, t, of_b):
        for i in range(3):
            turned[i] = -n[i]
        facing(a, geometry, turned, 8, of_a)
        count = patch(a, face, of_a, of_b, geometry, n, gap, point, margin, small, listed, count)
        facing(face, geometry, normal, 8, of_b)
        count = beyond_edge(of_a, of_b, base_of(of_a, of_b), n, margin, small, listed, count)
    # 4. left to the neighbouring triangle, which is met on its own
    elif is_beside and is_strict:
        skipped[0] = 1.0
    # 5. contact on the triangle itself: the shape's facing part clipped by it
    else:
        for i in range(3):
            d[i], turned[i] = middle[i] - face[CORNERS + i], -normal[i]
        if dot(normal, d) <= 0.0:  # it is behind the triangle
            return count
        facing(a, geometry, turned, 8, of_a)
        facing(face, geometry, normal, 8, of_b)
        count = clipped(of_a, of_b, base_of(of_a, of_b), margin, small, listed, count)
    return _shallow(listed, begin, count, _DEEP * small)


@tiny
def _extent(a, mesh, geometry, reach, low, high):
    """Bounding box of a shape in the axes of a mesh, enlarged by the reach. Out: low, high (3,)."""
    n, x, R = stack(3), stack(3), view(mesh, AXES, 9)
    for i in range(3):
        for m in range(3):
            n[m] = R[3 * m + i]
        origin = dot(n, view(mesh, CENTRE, 3))
        low[i] = lowest(a, geometry, n, x) - origin - reach
        for m in range(3):
            n[m] = -n[m]
        high[i] = reach - lowest(a, geometry, n, x) - origin


@tiny
def _is_beside(geometry, block, t, low, high):
    """Whether a triangle of a mesh is outside a box."""
    at, vertices, outside = int(geometry[block + FACES]) + TRIANGLE * t, int(geometry[block + VERTICES]), False
    for i in range(3):
        x = geometry[vertices + 3 * int(geometry[at]) + i]
        y, z = geometry[vertices + 3 * int(geometry[at + 1]) + i], geometry[vertices + 3 * int(geometry[at + 2]) + i]
        outside = outside or min(min(x, y), z) > high[i] or max(max(x, y), z) < low[i]
    return outside


@kernel
def with_mesh(a, mesh, geometry, margin, found):
    """Contacts of a convex shape with each triangle of a mesh near it."""
    # 1. bounding box in the axes of the mesh
    low, high, middle, waiting = stack(3), stack(3), stack(3), stack(WAITING)
    listed, face, skipped, count = stack(LISTED), stack(PLACED), stack(1), 0
    small = min(smallest_of(a, geometry), smallest_of(mesh, geometry))
    _extent(a, mesh, geometry, margin, low, high)
    middle_of(a, geometry, middle)
    skipped[0] = 0.0
    # 2. strict pass; if it skipped contacts and found none, a second pass that takes them
    for turn in range(2):
        search = Search(geometry, margin, small, turn == 0, skipped, listed)
        begin_near(waiting)
        t = next_near(mesh, geometry, low, high, waiting) if turn == 0 or (count == 0 and skipped[0] != 0.0) else -1
        while t >= 0:
            place_triangle(mesh, geometry, t, face)
            count = _of_triangle(search, a, Triangle(mesh, t, face), middle, count)
            count = _with_room(listed, count, small, found)
            t = next_near(mesh, geometry, low, high, waiting)
    return thinned(listed, count, small, found)


@tiny
def _extent_of_mesh(mesh, other, geometry, reach, low, high):
    """Bounding box of the box of a mesh in the axes of another, enlarged by the reach. Out: low, high (3,)."""
    x, y, root = stack(3), stack(3), int(geometry[int(mesh[BLOCK]) + NODES])
    for i in range(3):
        low[i], high[i] = math.inf, -math.inf
    for corner in range(8):
        for i in range(3):
            x[i] = geometry[root + i + 3 * (corner >> i & 1)]
        times(view(mesh, AXES, 9), x, y)
        for i in range(3):
            y[i] += mesh[CENTRE + i] - other[CENTRE + i]
        for i in range(3):
            s = other[AXES + i] * y[0] + other[AXES + 3 + i] * y[1] + other[AXES + 6 + i] * y[2]
            low[i], high[i] = min(low[i], s - reach), max(high[i], s + reach)


@kernel
def of_meshes(a, b, geometry, margin, found):
    """Contacts of two meshes: each triangle of one with each facing triangle of the other near it."""
    low, high, low_b, high_b, skipped = stack(3), stack(3), stack(3), stack(3), stack(1)
    waiting, waiting_b, listed, one, other, count = stack(WAITING), stack(WAITING), stack(LISTED), stack(PLACED), stack(PLACED), 0
    # 1. box of the second mesh in the axes of the first
    small = min(smallest_of(a, geometry), smallest_of(b, geometry))
    _extent_of_mesh(b, a, geometry, margin, low, high)
    skipped[0] = 0.0
    # 2. strict pass over all near pairs, then a second one as in `with_mesh`; each triangle of the first searches the tree of the second
    for turn in range(2):
        search = Search(geometry, margin, small, turn == 0, skipped, listed)
        begin_near(waiting)
        s = next_near(a, geometry, low, high, waiting) if turn == 0 or (count == 0 and skipped[0] != 0.0) else -1
        while s >= 0:
            place_triangle(a, geometry, s, one)
            _extent(one, b, geometry, margin, low_b, high_b)
            begin_near(waiting_b)
            t = next_near(b, geometry, low_b, high_b, waiting_b)
            while t >= 0:
                place_triangle(b, geometry, t, other)
                count = _of_triangles(search, Triangle(a, s, one), Triangle(b, t, other), count)
                count = _with_room(listed, count, small, found)
                t = next_near(b, geometry, low_b, high_b, waiting_b)
            s = next_near(a, geometry, low, high, waiting)
    return thinned(listed, count, small, found)


@kernel
def _of_triangles(search, first, second, count):
    """Adds the contacts of triangles of two meshes; returns their number."""
    (a, s, one), (b, t, other) = first, second
    geometry, margin, small, is_strict, skipped, listed = search
    n, point, x, turned = stack(3), stack(3), stack(3), stack(3)
    normal, looks, begin = view(one, NORMAL, 3), view(other, NORMAL, 3), count
    # 1. cheap tests: separation along both normals, and whether they face each other
    for i in range(3):
        turned[i] = -normal[i]
    is_far = lowest(one, geometry, looks, x) - dot(looks, view(other, CORNERS, 3)) > margin
    is_far = is_far or lowest(other, geometry, normal, x) - dot(normal, view(one, CORNERS, 3)) > margin
    if is_far or dot(normal, looks) > _ACROSS:
        return count
    # 2. direction of separation
    gap, way, is_near = _leave(search, first, second, n, point)
    if gap > margin:
        return count
    # 3. which triangle is the face: one whose normal that is, or else an edge or vertex of a convex part of the surface
    of_a, of_b = stack(PART), stack(PART)
    for i in range(3):
        x[i] = -n[i]
    is_on_b, is_on_a = dot(looks, n) >= FLAT, dot(turned, n) >= FLAT
    if not is_on_b and not is_on_a:
        of_edges = ridge(b, geometry, n, t, of_b)
        is_on_b = not of_edges and way != _OF_FIRST
        is_on_a = not is_on_b and not (of_edges and ridge(a, geometry, x, s, of_a))
        if is_strict and way == _BESIDE and (is_on_b or is_on_a):  # what is there counts
            skipped[0] = 1.0
            return count
    # 4. contacts: one clipped by the other, or a patch between edges and vertices
    if is_on_b or is_on_a:
        facing(one, geometry, x, 3, of_a)
        facing(other, geometry, n, 3, of_b)
        # one that stands on the other has its lowest edge or corner there: it would cut that at places of any height
        if dot(normal, looks) > -_STEEP:
            for i in range(3):
                x[i] = -looks[i]
            edge_of(of_a if is_on_b else of_b, x if is_on_b else turned)
    base, half, half_b = base_of(of_a, of_b), geometry[int(a[BLOCK]) + HALF], geometry[int(b[BLOCK]) + HALF]
    if is_on_b:
        is_before = _is_before(one, other, min(_DEEP * small, half))
        count = clipped(of_a, of_b, base, margin, small, listed, count) if is_before else count
    elif is_on_a:
        is_before = _is_before(other, one, min(_DEEP * small, half_b))
        count = clipped_by_first(of_a, of_b, base, margin, small, listed, count) if is_before else count
    else:
        count = patch(one, other, of_a, of_b, geometry, n, gap, point, margin, small, listed, count)
        last = FIELDS * (count - 1)
        if count > begin and listed[last] < 0.0:  # the closest points: each pair of edges has its own, if it has any
            listed[last] = -1.0 - base
            count -= 0 if is_near else 1
    # 5. two plates that overlap by more than half of both thicknesses are nearer to the other side
    return _shallow(listed, begin, count, min(_DEEP * small, half + half_b))


@kernel
def _leave(search, first, second, n, point):
    """(Signed distance of two triangles, triangle along whose normal they separate, whether they have closest points).

    The distance is the least overlap, or that of a neighbour. Of triangles that are apart, one within the other mesh, it is that of their
    planes, and they have no closest points: beside each other they do not touch. Out: n (3,), point (3,) of the first.
    """
    (a, s, one), (b, t, other) = first, second
    geometry, margin, small, _, _, _ = search
    # 1. triangles apart, with a normal in front of both
    m, x, best, way = stack(3), stack(3), -math.inf, _OF_SECOND
    gap = closest(one, other, geometry, view(other, NORMAL, 3), True, margin, small, n, point)
    is_behind = dot(n, view(other, NORMAL, 3)) < -_ACROSS or dot(n, view(one, NORMAL, 3)) > _ACROSS
    if gap > margin or (gap >= 0.0 and not is_behind):
        return gap, way, True
    # 2. overlap: normals of both triangles, then of their neighbours
    for k in range(4):
        mesh, triangle, placed, sense = (b, t, other, 1.0) if k % 2 == 0 else (a, s, one, -1.0)
        for i in range(3 if k < 2 else 0):
            x[i] = sense * placed[NORMAL + i]
        is_other = k < 2 or _is_left_beside(one, other, mesh, geometry, triangle, sense, best, x)
        if is_other and separation(one, other, geometry, x) > best:
            best, way = separation(one, other, geometry, x), (_BESIDE if k >= 2 else _OF_SECOND if k == 0 else _OF_FIRST)
            for i in range(3):
                m[i] = x[i]
    # 3. closest points along the chosen direction; a separated pair with a normal from behind has none
    if gap < 0.0:
        return closest(one, other, geometry, m, True, margin, small, n, point), way, True
    for i in range(3):
        n[i] = m[i]
    return best if best < 0.0 else math.inf, way, False  # of two that are apart there are others nearer to each other


@tiny
def _is_before(one, other, deep):
    """Whether the space behind one triangle, to a depth within its mesh, is in front of another."""
    d = stack(3)
    for i in range(3):
        middle = (one[CORNERS + i] + one[CORNERS + 3 + i] + one[CORNERS + 6 + i]) / 3.0
        d[i] = middle - deep * one[NORMAL + i] - other[CORNERS + i]
    return dot(view(other, NORMAL, 3), d) > 0.0
