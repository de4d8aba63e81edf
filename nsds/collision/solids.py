"""Closest points of two convex shapes, separated or overlapping, and their contacts.

The distance of separated shapes is that of `nsds.collision.gjk`. Contacts are then corners of the facing faces
(`nsds.collision.patches`), with the gaps of these faces.

Shapes that touch or overlap are moved apart along a normal n, to a distance r, and the normal n' found there is used: the separation
``s(n) = min_a n . x - max_b n . x`` has ``s(n') >= s(n) + (r - s(n)) (1 - n . n')``, so that the iteration increases it up to a least
overlap. The normal of two shapes whose distance is only rounding is never used.
"""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.edge_on import WIDTH, add_normal, does_touch
from nsds.collision.features import edge_of, facing
from nsds.collision.geometry import FACE, FACES, N_FACES, VERTICES
from nsds.collision.gjk import SIMPLEX, WITHIN, apart, least_overlap
from nsds.collision.parts import AXES, BLOCK, CENTRE, CORNERS, FLAT_KIND, KIND, PART, PLACED
from nsds.collision.patches import LISTED, patch, thinned
from nsds.collision.rims import polished
from nsds.collision.support import farthest, middle_of, radius, separation, smallest_of
from nsds.maths.vectors import norm, times

_APART = 0.02  # fraction of the smaller shape: distance to which nearer shapes are moved apart
_CLEAR = 1e-9  # fraction of the smaller shape: overlap that is more than rounding
_ROUNDS, _SETTLED = 30, 1e-13  # iterations of moving apart; growth of the separation, of the smaller shape, at which it has converged


@tiny
def _better(a, b, geometry, candidate, gap, n):
    """Accepts a direction of larger separation; returns the separation. In and out: n (3,)."""
    s = separation(a, b, geometry, candidate)
    if s > gap:
        for i in range(3):
            n[i] = candidate[i]
    return max(s, gap)


@tiny
def _soonest(moved, a, b, geometry, towards, S, small, d, gap, n):
    """Tries the direction of least penetration of b and a shape moved from a; returns the separation of a along n. Work: d (3,)."""
    for i in range(3):
        d[i] = towards[i]
    least_overlap(moved, b, geometry, S, small, d)
    return _better(a, b, geometry, d, gap, n)


@tiny
def _nearest_of(a, geometry, n, point):
    """Lowest point of a shape along n. Out: point (3,)."""
    for i in range(3):
        point[i] = -n[i]
    farthest(a, geometry, point, point)
    for i in range(3):
        point[i] -= radius(a) * n[i]


@tiny
def _refined(a, b, geometry, gap, n, point):
    """Distance by `polished`, or the gap as it is. In/out: n, point (3,)."""
    exact = polished(a, b, geometry, gap, n, point)
    return exact if exact > -math.inf else gap


@kernel
def closest(a, b, geometry, towards, is_surface, margin, small, n, point):
    """Signed distance of two convex shapes; towards: a unit vector, about from b to a. Out: n (3,) from b to a; point (3,) of a.

    is_surface: b is a triangle of a surface, which a leaves to its outer side, though other directions may be shorter.
    """
    S, d, moved, room, corners = stack(SIMPLEX), stack(3), stack(PLACED), _APART * small, 3 if a[KIND] == FLAT_KIND else 1
    # 1. shapes well apart: the distance of their cores is exact
    core, rounds = apart(a, b, geometry, towards, margin, n, point, S), radius(a) + radius(b)
    if core - rounds > margin:
        return core - rounds
    if core >= room:
        return _refined(a, b, geometry, core - rounds, n, point)
    gap = -math.inf
    # 2. near or overlapping: best of the candidates, first the normal between the cores, then the direction of the centres
    if core > 0.0:
        for i in range(3):
            d[i] = n[i]
        gap = _better(a, b, geometry, d, gap, n)
    gap = _better(a, b, geometry, towards, gap, n)
    for i in range(PLACED):
        moved[i] = a[i]
    # 3. an overlap of the cores: expanding polytope
    if core == WITHIN and not is_surface:
        gap = _soonest(moved, a, b, geometry, towards, S, small, d, gap, n)
    is_unclear = gap < -room if core == WITHIN else gap < -_CLEAR * small
    if is_unclear and not is_surface:  # rounding hides the direction of a small overlap: the shapes are moved deeper
        for i in range(3 * corners):
            moved[CORNERS + i] = a[CORNERS + i] - room * towards[i % 3]
        if apart(moved, b, geometry, towards, math.inf, d, point, S) == WITHIN:
            gap = _soonest(moved, a, b, geometry, towards, S, small, d, gap, n)
    # 4. from normal and points that are near, those that meet the conditions for them
    exact = polished(a, b, geometry, gap, n, point) if core > 0.0 else -math.inf
    if exact > -math.inf:
        return exact
    # 5. move a apart along n and take the normal found there, until the separation no longer grows
    for turn in range(_ROUNDS):
        shift = room - gap
        for i in range(3 * corners):
            moved[CORNERS + i] = a[CORNERS + i] + shift * n[i % 3]  # of solids that is their centre
        if apart(moved, b, geometry, n, math.inf, d, point, S) < 0.0:  # of shapes without extent
            _nearest_of(a, geometry, n, point)
            return gap
        for i in range(3):
            point[i] -= shift * n[i]
        better = _better(a, b, geometry, d, gap, n)
        exact = polished(a, b, geometry, better, n, point) if turn == 0 and not core > 0.0 else -math.inf
        if exact > -math.inf:
            return exact
        if not better > gap + _SETTLED * small:
            gap = better
            break
        gap = better
    return _refined(a, b, geometry, gap, n, point)


@tiny
def _count_of_faces(shape, geometry):
    """Faces of a box or hull, 0 of other shapes."""
    return int(geometry[int(shape[BLOCK]) + N_FACES]) if shape[BLOCK] > 0.0 else 0


@kernel
def _height_above(shape, geometry, f, x, normal):
    """Height of a point above a face of a box or hull. Out: normal (3,) of the face, in the world."""
    block, corner, height = int(shape[BLOCK]), stack(3), 0.0
    at, R = int(geometry[block + FACES]) + FACE * f, view(shape, AXES, 9)
    times(R, view(geometry, at, 3), normal)
    times(R, view(geometry, int(geometry[block + VERTICES]) + 3 * int(geometry[int(geometry[at + 3])]), 3), corner)
    for i in range(3):
        height += normal[i] * (x[i] - shape[CENTRE + i] - corner[i])
    return height


@kernel
def _edge_on(a, b, geometry, gap, point, small, n):
    """Whether several faces separate two shapes, which touch at a point (3,) of a, about equally.

    In and out: n (3,), which becomes the normal between those of these faces, see `nsds.collision.edge_on`.
    """
    x, best, face, total, width = stack(3), stack(3), stack(3), stack(3), 0.5 * WIDTH * small
    most, is_between = gap - width, False
    for turn in range(2):  # the best face first, then all others
        for side in range(2):
            shape, sense = (a, -1.0) if side == 0 else (b, 1.0)  # normals are from b to a
            # point of the contact on this shape; only faces through it can have the normal
            for i in range(3):
                x[i] = point[i] - side * gap * n[i]
            for f in range(_count_of_faces(shape, geometry) if turn == 0 or most > gap - width else 0):
                if _height_above(shape, geometry, f, x, face) < -2.0 * width:
                    continue
                for i in range(3):
                    face[i] *= sense
                # the separation along its normal decides, not the height
                s = separation(a, b, geometry, face)
                if turn == 1:
                    is_between = add_normal(best, face, most - s, width, total) or is_between
                elif s > most:
                    most = s
                    for i in range(3):
                        best[i] = total[i] = face[i]
    length, share = norm(total), max(gap, 0.0) / width  # of those that are apart, the direction between the closest points
    # normal: between the faces for shapes that touch, that of the closest points where they are apart by the width
    for i in range(3 if is_between else 0):
        n[i] = share * n[i] + (1.0 - share) / length * total[i]
    length = norm(n)
    for i in range(3):
        n[i] /= length
    return is_between


@kernel
def of_solids(a, b, geometry, margin, found):
    """Contacts of two convex shapes."""
    of_a, of_b, listed = stack(PART), stack(PART), stack(LISTED)
    towards, n, point, turned = stack(3), stack(3), stack(3), stack(3)
    # 1. initial direction: between interior points
    small = min(smallest_of(a, geometry), smallest_of(b, geometry))
    middle_of(a, geometry, towards)
    middle_of(b, geometry, n)
    for i in range(3):
        towards[i] -= n[i]
    length = norm(towards)
    for i in range(3):
        towards[i] = towards[i] / length if length > 0.0 else (1.0 if i == 2 else 0.0)
    # 2. closest points
    gap = closest(a, b, geometry, towards, False, margin, small, n, point)
    if gap > margin:
        return 0
    is_edge_on = does_touch(gap, 0.5 * small) and _edge_on(a, b, geometry, gap, point, small, n)
    # 3. facing parts, reduced to edges or vertices where shapes touch edge on edge
    for i in range(3):
        turned[i] = -n[i]
    facing(a, geometry, turned, 8, of_a)
    facing(b, geometry, n, 8, of_b)
    if is_edge_on:
        edge_of(of_a, turned)
        edge_of(of_b, n)
    # 4. contacts between both parts
    count = patch(a, b, of_a, of_b, geometry, n, gap, point, margin, small, listed, 0)
    return thinned(listed, count, small, found)
