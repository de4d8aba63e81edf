"""Contacts of the pairs of shapes that have no kernel of their own: solids by their farthest points, and meshes triangle by triangle.

How far two convex shapes that are apart are from each other says `nsds.collision.gjk`. Contacts are then corners of the faces that look at
each other (`nsds.collision.patches`), with the gaps of these faces.

Shapes that touch or overlap are moved apart along a normal n, to a distance r, and the normal n' of that place is taken: the separation
``s(n) = min_a n . x - max_b n . x`` has ``s(n') >= s(n) + (r - s(n)) (1 - n . n')``, so that repeated it grows up to a least overlap. The
normal of two shapes that are hardly apart, of which only rounding is left, is never asked for.
"""

import math

import numpy as np

from nsds._jit import at_address, kernel, stack, tiny, view
from nsds.collision.facing import PART, facing, ridge
from nsds.collision.frames import FIELDS, turn_round
from nsds.collision.geometry import DEPTH, FACES, NODE, NODES, ORDER, TRIANGLE, VERTICES, geometry_of
from nsds.collision.gjk import SIMPLEX, WITHIN, apart, least_overlap
from nsds.collision.kinds import MESH
from nsds.collision.pairs import GENERAL
from nsds.collision.patches import FLAT, LISTED, MOST_OF_PATCH, ROOM, base_of, clipped, patch, thinned
from nsds.collision.placed import (
    AXES,
    BLOCK,
    CENTRE,
    CORNERS,
    NORMAL,
    PLACED,
    farthest,
    lowest,
    middle_of,
    place_shape,
    place_triangle,
    radius,
    separation,
    smallest_of,
)
from nsds.maths.vectors import dot, norm

_APART = 0.02  # of the smaller shape: distance to which shapes that are nearer are moved apart
_ROUNDS, _SETTLED = 30, 1e-13  # of moving apart; growth of the separation, of the smaller shape, that is none
_DEEP = 0.25  # of a shape: what is farther behind a triangle did not come through it


@tiny
def _better(a, b, geometry, candidate, gap, n):
    """Takes a direction in which two shapes are farther apart; returns how far. In and out: n (3,)."""
    s = separation(a, b, geometry, candidate)
    if s > gap:
        for i in range(3):
            n[i] = candidate[i]
    return max(s, gap)


@tiny
def _nearest_of(a, geometry, n, point):
    """The point of a shape that is lowest along n. Out: point (3,)."""
    for i in range(3):
        point[i] = -n[i]
    farthest(a, geometry, point, point)
    for i in range(3):
        point[i] -= radius(a) * n[i]


@kernel
def closest(a, b, geometry, towards, is_surface, margin, small, n, point):
    """Signed distance of two convex shapes, of which a leaves b about the unit vector towards. Out: n (3,) from b to a; point (3,) of a.

    is_surface: b is a triangle of a surface, which a leaves to its outer side, though others may be nearer.
    """
    S, d, moved, room = stack(SIMPLEX), stack(3), stack(PLACED), _APART * small
    core, rounds = apart(a, b, geometry, towards, margin, n, point, S), radius(a) + radius(b)
    if core >= room or core - rounds > margin:
        return core - rounds
    gap = -math.inf
    if core > 0.0:
        for i in range(3):
            d[i] = n[i]
        gap = _better(a, b, geometry, d, gap, n)
    gap = _better(a, b, geometry, towards, gap, n)
    if core == WITHIN and not is_surface:
        for i in range(3):
            d[i] = towards[i]
        least_overlap(a, b, geometry, S, small, d)
        gap = _better(a, b, geometry, d, gap, n)
    for i in range(PLACED):
        moved[i] = a[i]
    for _ in range(_ROUNDS):
        shift = room - gap
        for i in range(3):
            moved[CENTRE + i] = a[CENTRE + i] + shift * n[i]
        if apart(moved, b, geometry, n, math.inf, d, point, S) < 0.0:  # of shapes without extent
            _nearest_of(a, geometry, n, point)
            return gap
        for i in range(3):
            point[i] -= shift * n[i]
        better = _better(a, b, geometry, d, gap, n)
        if not better > gap + _SETTLED * small:
            return better
        gap = better
    return gap


@kernel
def _of_solids(a, b, geometry, margin, found):
    """Contacts of two convex shapes."""
    of_a, of_b, listed = stack(PART), stack(PART), stack(LISTED)
    towards, n, point, turned = stack(3), stack(3), stack(3), stack(3)
    small = min(smallest_of(a, geometry), smallest_of(b, geometry))
    middle_of(a, geometry, towards)
    middle_of(b, geometry, n)
    for i in range(3):
        towards[i] -= n[i]
    length = norm(towards)
    for i in range(3):
        towards[i] = towards[i] / length if length > 0.0 else (1.0 if i == 2 else 0.0)
    gap = closest(a, b, geometry, towards, False, margin, small, n, point)
    if gap > margin:
        return 0
    for i in range(3):
        turned[i] = -n[i]
    facing(a, geometry, turned, 8, of_a)
    facing(b, geometry, n, 8, of_b)
    count = patch(a, b, of_a, of_b, geometry, n, gap, point, margin, small, listed, 0)
    return thinned(listed, count, small, found)


@kernel
def _of_triangle(a, mesh, face, t, geometry, middle, margin, small, listed, count):
    """Adds the contacts of a convex shape with a triangle of a mesh that is placed; returns their number.

    Across an edge or vertex only where the surface bends away from it; elsewhere the triangle itself is what counts, so that nothing that
    slides over the joint of two triangles is held up there.
    """
    n, point, turned, d = stack(3), stack(3), stack(3), stack(3)
    of_a, of_b, begin, normal = stack(PART), stack(PART), count, view(face, NORMAL, 3)
    if lowest(a, geometry, normal, d) - dot(normal, view(face, CORNERS, 3)) > margin:
        return count
    gap = closest(a, face, geometry, normal, True, margin, small, n, point)
    if gap > margin:
        return count
    if dot(normal, n) < FLAT and ridge(mesh, geometry, n, t, of_b):
        for i in range(3):
            turned[i] = -n[i]
        facing(a, geometry, turned, 8, of_a)
        count = patch(a, face, of_a, of_b, geometry, n, gap, point, margin, small, listed, count)
    else:
        for i in range(3):
            d[i], turned[i] = middle[i] - face[CORNERS + i], -normal[i]
        if dot(normal, d) <= 0.0:  # it is behind the triangle
            return count
        facing(a, geometry, turned, 8, of_a)
        facing(face, geometry, normal, 8, of_b)
        count = clipped(of_a, of_b, base_of(of_a, of_b), margin, small, listed, count)
    kept = begin
    for k in range(begin, count):
        if listed[FIELDS * k + 1] >= -_DEEP * small:
            for i in range(FIELDS):
                listed[FIELDS * kept + i] = listed[FIELDS * k + i]
            kept += 1
    return kept


@tiny
def _extent(a, mesh, geometry, reach, low, high):
    """The box of a shape in the axes of a mesh, larger by what is near. Out: low, high (3,)."""
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
def _with_mesh(a, mesh, geometry, margin, found):
    """Contacts of a convex shape with each triangle that is near."""
    low, high, middle, waiting = stack(3), stack(3), stack(3), stack(DEPTH)
    listed, face, block = stack(LISTED), stack(PLACED), int(mesh[BLOCK])
    small = min(smallest_of(a, geometry), smallest_of(mesh, geometry))
    _extent(a, mesh, geometry, margin, low, high)
    middle_of(a, geometry, middle)
    nodes, order, left, count = int(geometry[block + NODES]), int(geometry[block + ORDER]), 1, 0
    waiting[0] = 0
    while left > 0:
        left -= 1
        at = nodes + NODE * int(waiting[left])
        is_near = True
        for i in range(3):
            is_near = is_near and geometry[at + i] <= high[i] and geometry[at + 3 + i] >= low[i]
        if is_near and geometry[at + 7] == 0.0:
            waiting[left], waiting[left + 1] = geometry[at + 6], geometry[at + 6] + 1.0
            left += 2
        elif is_near:
            for entry in range(int(geometry[at + 6]), int(geometry[at + 6]) + int(geometry[at + 7])):
                t = int(geometry[order + entry])
                if _is_beside(geometry, block, t, low, high):
                    continue
                place_triangle(mesh, geometry, t, face)
                count = _of_triangle(a, mesh, face, t, geometry, middle, margin, small, listed, count)
                if count > ROOM - MOST_OF_PATCH:
                    count = thinned(listed, count, small, found)
                    for k in range(FIELDS * count):
                        listed[k] = found[k]
    return thinned(listed, count, small, found)


@kernel
def general_pair(kind, size, pose, general, a, b, margin, found):
    """Contacts of two solids, or of a solid and a mesh, the kind of a not after that of b; returns their number.

    In: general: address of the geometry of all shapes, from `GeneralPairs`. Out: found (MOST FIELDS).
    """
    head = at_address(general, 1)
    geometry = at_address(general, int(head[0]))
    one, other = stack(PLACED), stack(PLACED)
    place_shape(kind, size, pose, geometry, a, one)
    place_shape(kind, size, pose, geometry, b, other)
    if kind[b] == MESH:
        return _with_mesh(one, other, geometry, margin, found)
    if kind[a] == MESH:
        n = _with_mesh(other, one, geometry, margin, found)
        turn_round(found, n)
        return n
    return _of_solids(one, other, geometry, margin, found)


class GeneralPairs:
    """The geometry of the shapes of one record, to be kept; ``address`` is what `nsds.collision.detect` wants, 0 where no pair needs it.

    Parameters
    ----------
    kind, size : ndarray (ns,) and (ns, 3)
        The shapes.
    vertices, triangles : ndarray (nv, 3) and (nt, 3)
        Of all polyhedra.
    pairs : sequence of (int, int)
        Kinds that meet.
    """

    def __init__(self, kind, size, vertices, triangles, pairs):
        needed = any(tuple(sorted(pair)) in GENERAL for pair in pairs)
        self._geometry = geometry_of(kind, size, vertices, triangles) if needed else np.zeros(0)
        self.address = self._geometry.ctypes.data if needed else 0


def general_pairs(kind, size, body, group, mask, vertices, triangles):
    """`GeneralPairs` of the shapes of a record: which kinds meet is told by their groups; those of one body do not meet."""
    present = set(np.flatnonzero(np.bincount(kind)).tolist())
    if not any(present.issuperset(pair) for pair in GENERAL):  # many balls are not sorted for nothing
        return GeneralPairs(kind, size, vertices, triangles, [])
    rows, where = np.unique(np.stack([kind, group, mask], axis=1), axis=0, return_inverse=True)
    bodies = [np.unique(body[where.reshape(-1) == i]) for i in range(len(rows))]
    pairs = set()
    for i, (kind_a, group_a, mask_a) in enumerate(rows.tolist()):
        for j, (kind_b, group_b, mask_b) in enumerate(rows.tolist()[: i + 1]):
            alone = np.union1d(bodies[i], bodies[j]).size < 2
            if group_a & mask_b and group_b & mask_a and not alone:
                pairs.add((min(kind_a, kind_b), max(kind_a, kind_b)))
    return GeneralPairs(kind, size, vertices, triangles, sorted(pairs))
