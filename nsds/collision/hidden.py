"""Removal of contacts that no motion can reach, because a neighbouring face or body is in front of them: flush shapes act as one.

A contact of two shapes a and c says that a is above the plane through it, with its normal m. Where a shape b lies below that plane, a and b
meet in the plane at most, across m: a contact of theirs with another normal is one with an edge that b hides behind c, such as the seam
of two flush tiles, whose sides face each other. It is removed. Both conditions are those of a plane that separates a and b, whatever c
is, so that no possible contact is lost: in a step that rises above the plane by more than the tolerance the contacts stay. Faces that
continue another one nearly in its plane, such as the triangles of a smooth mesh, hide no edge and stay in contact.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import int64, typeof
from numpy.typing import NDArray

from nsds._jit import at_address, by_reference, caller, kernel, made, on_demand, stack, tiny, view
from nsds.collision.detection import CONTACTS
from nsds.collision.frames import WORLD, axes
from nsds.collision.geometry import FACE, FACES, N_FACES, TRIANGLE, VERTICES
from nsds.collision.kinds import (
    CONVEX,
    ENDLESS,
    HALF_PLANE,
    MESH,
    PLANE,
    POLYGON,
    POLYHEDRAL,
    ROUNDED,
    SMOOTH,
    WITH_FACE,
    bound,
    farthest_point,
)
from nsds.collision.meshes import WAITING, begin_near, next_near
from nsds.collision.parts import PLACED
from nsds.collision.support import place_shape
from nsds.maths.vectors import dot, norm, times, times_transposed

_FLUSH = 1e-5  # fraction of the smaller shape: height above a plane up to which a shape is flush with it
_OTHER = 1e-8  # 1 minus the cosine above which two normals differ
_ALIKE = 1e-3  # 1 minus the cosine between normals, 0.045 rad, up to which a face continues another one in a gently curved surface
_OPPOSITE = -0.5  # cosine between two normals below which one shape is between the other two
_FACE = 1e-4  # 1 minus the cosine between a normal and a face up to which the contact belongs to the face
_TILT = 1.5e-2  # sine of that angle, rounded up
_SINK = 2.0  # multiple of the depth of a contact: how far the body on it may reach below its plane
_MOST_HOLDS = 64  # contacts of one body that are tested: a body with more, such as a floor, is below its neighbours


@by_reference
class Solids(NamedTuple):
    """Shapes in the world, as of `nsds.collision.detection.Shapes`, and what polyhedra and meshes have."""

    kind: NDArray
    size: NDArray
    pose: NDArray
    body: NDArray
    vertices: NDArray  # (3 nv,)
    general: int  # address from `nsds.collision.general`, or 0


solids_of = made(Solids)


class Runs(NamedTuple):
    """Runs of contacts of two shapes with one normal, and those of each body as a linked list of (run, side) in rising order."""

    start: NDArray  # (n + 1,): first contact of each
    lowest: NDArray  # (n,): its contact with the least gap
    dropped: NDArray  # (n,): not 0: ruled out
    head: NDArray  # (n_bodies,): first entry ``2 run + side`` of each body, or -1
    next_of: NDArray  # (2 n,)


def links_size(n_bodies, capacity):
    """Length of the integer work array of `drop_hidden`."""
    return n_bodies + 5 * capacity + 1


def has_edges(kinds):
    """Whether there is a shape whose contacts can be hidden; kinds: iterable of codes."""
    return any(not (SMOOTH | ENDLESS) >> int(kind) & 1 for kind in kinds)


@tiny
def _of_vertices(d, first, n, vertices):
    """The largest ``d . x`` of n vertices."""
    most = -math.inf
    for i in range(first, first + n):
        most = max(most, d[0] * vertices[3 * i] + d[1] * vertices[3 * i + 1] + d[2] * vertices[3 * i + 2])
    return most


@kernel
def support(kind, size, pose, vertices, s, d):
    """Support function of shape s, the largest ``d . x``, in the world; infinite along an unbounded direction. d (3,): a unit vector."""
    R, u = stack(9), stack(3)
    axes(pose, s, R)
    times_transposed(R, d, u)
    middle = dot(d, view(pose, 7 * s, 3))
    # by kind: distance of the support point from the position of the shape
    if POLYHEDRAL >> kind[s] & 1:
        return middle + _of_vertices(u, int(size[3 * s + 1]), int(size[3 * s + 2]), vertices)
    if ENDLESS >> kind[s] & 1:
        out = u[2] if kind[s] == PLANE else u[1] if kind[s] == HALF_PLANE else -1.0
        return middle if out > 1.0 - _OTHER else math.inf
    x, y, z = farthest_point(kind[s], view(size, 3 * s, 3), u[0], u[1], u[2])
    return middle + (u[0] * x + u[1] * y + u[2] * z + (size[3 * s] if ROUNDED >> kind[s] & 1 else 0.0))


@kernel
def _support_near(solids, s, other, reach, d):
    """As `support`; of a mesh, that of its triangles near another shape, -infinity where there are none."""
    kind, size, pose, vertices, general = solids.kind, solids.size, solids.pose, solids.vertices, solids.general
    if kind[s] != MESH or general == 0:
        return support(kind, size, pose, vertices, s, d)
    low, high, e, u, mesh, waiting, most = stack(3), stack(3), stack(3), stack(3), stack(PLACED), stack(WAITING), -math.inf
    geometry = at_address(general, int(at_address(general, 1)[0]))
    place_shape(kind, size, pose, geometry, s, mesh)
    R = stack(9)
    axes(pose, s, R)
    # 1. bounding box of the other shape, larger by the reach, in the axes of the mesh
    for i in range(3):
        for side in range(2):
            sense = 2.0 * side - 1.0
            e[0], e[1], e[2] = sense * R[i], sense * R[3 + i], sense * R[6 + i]
            far = dot(e, view(pose, 7 * other, 3)) + size[3 * other]  # a mesh in the ball about it
            far = far if kind[other] == MESH else support(kind, size, pose, vertices, other, e)
            far += reach - dot(e, view(pose, 7 * s, 3))
            low[i], high[i] = (-far if side == 0 else low[i]), far
    # 2. largest coordinate of the triangles that meet it
    times_transposed(R, d, u)
    block = int(geometry[1 + s])
    faces, first = int(geometry[block + FACES]), int(geometry[block + VERTICES])
    begin_near(waiting)
    t = next_near(mesh, geometry, low, high, waiting)
    while t >= 0:
        for corner in range(3):
            most = max(most, dot(u, view(geometry, first + 3 * int(geometry[faces + TRIANGLE * t + corner]), 3)))
        t = next_near(mesh, geometry, low, high, waiting)
    return dot(d, view(pose, 7 * s, 3)) + most


@kernel
def _face_along(solids, s, m, n):
    """Whether a shape has a flat face within a small angle of a unit vector m. Out: n (3,), its normal."""
    kind, size, pose, vertices, general = solids.kind, solids.size, solids.pose, solids.vertices, solids.general
    R, u, v, best, least = stack(9), stack(3), stack(3), -1, 1.0 - _FACE
    # 1. boxes, ends of cylinders, base of a cone: faces across an axis of the shape
    axes(pose, s, R)
    times_transposed(R, m, u)
    n[0], n[1], n[2] = 0.0, 0.0, 0.0
    for i in range(3):
        face = 2 * i + 1 if u[i] > 0.0 else 2 * i
        if abs(u[i]) > least and WITH_FACE[face] >> kind[s] & 1:
            best, least, n[i] = i, abs(u[i]), math.copysign(1.0, u[i])
    # 2. edges of a polygon
    if kind[s] == POLYGON:
        first, count = int(size[3 * s + 1]), int(size[3 * s + 2])
        for k in range(count):
            p, q = 3 * (first + k), 3 * (first + (k + 1) % count)
            v[0], v[1], v[2] = vertices[q + 1] - vertices[p + 1], vertices[p] - vertices[q], 0.0
            cosine = dot(u, v) / norm(v)
            if cosine > least:
                best, least, n[0], n[1] = k, cosine, v[0] / norm(v), v[1] / norm(v)
    # 3. faces of a hull, known only with its geometry
    if kind[s] == CONVEX and general != 0:
        geometry = at_address(general, int(at_address(general, 1)[0]))
        block = int(geometry[1 + s])
        for k in range(int(geometry[block + N_FACES])):
            normal = view(geometry, int(geometry[block + FACES]) + FACE * k, 3)
            if dot(normal, u) > least:
                best, least = k, dot(normal, u)
                for i in range(3):
                    n[i] = normal[i]
    times(R, n, n)
    return best >= 0


@kernel
def _is_parted(solids, upper, lower, m, level, tol, sink, reach):
    """Whether the plane ``m . x = level`` separates two shapes: one above it up to a depth, the other below it up to the tolerance."""
    turned = stack(3)
    for i in range(3):
        turned[i] = -m[i]
    if not _support_near(solids, lower, upper, reach, m) <= level + tol:
        return False
    return -_support_near(solids, upper, lower, reach, turned) >= level - tol - sink


@tiny
def _point_on(side, contacts, i, x):
    """Point of contact i on its shape a (side 0) or b (side 1). Out: x (3,)."""
    for k in range(3):
        x[k] = contacts.point[3 * i + k] - (contacts.gap[i] * contacts.normal[3 * i + k] if side == 1 else 0.0)


@tiny
def _is_same(contacts, i, j):
    """Whether two contacts are of the same shapes and have the same normal."""
    result = contacts.a[i] == contacts.a[j] and contacts.b[i] == contacts.b[j]
    for k in range(3):
        result = result and contacts.normal[3 * i + k] == contacts.normal[3 * j + k]
    return result


@tiny
def _lies_on_face(solids, contacts, first, last):
    """Whether two or more contacts of one pair, with one normal, lie on a face of either shape, or on a mesh: these hide no edge."""
    normal, face, turned, a, b = view(contacts.normal, 3 * first, 3), stack(3), stack(3), contacts.a[first], contacts.b[first]
    if last - first < 2:
        return False
    if solids.kind[a] == MESH or solids.kind[b] == MESH:
        return contacts.feature[first] >= 0
    for k in range(3):
        turned[k] = -normal[k]
    if _face_along(solids, a, turned, face) and dot(turned, face) > 1.0 - _OTHER:
        return True
    return _face_along(solids, b, normal, face) and dot(normal, face) > 1.0 - _OTHER


@kernel
def _hides(solids, contacts, runs, r, own, hold, side, is_turned):
    """Whether contact ``hold`` rules out the contacts of run r, of shapes a and b, of which ``own`` is on the same body.

    own: 0 or 1, for a or b; side: 0 or 1, which shape of hold is on that body. That body is above the plane of hold; or, is_turned,
    below it, and the other shape, which both contacts have in common, above.
    """
    x, m, face, upper_side, c_side = stack(3), stack(3), stack(3), 1 - own if is_turned else own, side if is_turned else 1 - side
    # 1. normal m of hold, upwards, and the deepest of the contacts in question
    first, last, best = runs.start[r], runs.start[r + 1], runs.lowest[r]
    sense = 1.0 if c_side == 1 else -1.0  # normals point from b to a: here, to what is above
    own_sense = 1.0 if upper_side == 0 else -1.0
    for k in range(3):
        m[k] = sense * contacts.normal[3 * hold + k]
    # 2. a smooth continuation hides nothing
    if own_sense * dot(m, view(contacts.normal, 3 * best, 3)) > 1.0 - _ALIKE and _lies_on_face(solids, contacts, first, last):
        return False
    # 3. hold must be as near as the contact, to the tolerance
    upper, lower = contacts.b[best], contacts.a[best]
    if upper_side == 0:
        upper, lower = lower, upper
    size_of_upper = bound(solids.kind, solids.size, upper)
    tol = _FLUSH * min(size_of_upper, bound(solids.kind, solids.size, lower))
    if not contacts.gap[hold] <= max(contacts.gap[best], 0.0) + tol:
        return False
    # 4. no point of the contacts may lie above the plane
    _point_on(c_side, contacts, hold, x)
    level = dot(m, x)
    for i in range(first, last):
        _point_on(1 - upper_side, contacts, i, x)
        if dot(m, x) > level + tol + _TILT * size_of_upper:  # as far as a face of c may be from m
            return False
    # 5. the plane of hold separates both shapes, or else that of the face of c nearest to m
    sink, reach = _SINK * max(-contacts.gap[hold], 0.0), max(contacts.gap[best], 0.0) + tol
    if _is_parted(solids, upper, lower, m, level, tol, sink, reach):
        return True
    c = contacts.a[hold] if c_side == 0 else contacts.b[hold]
    if not _face_along(solids, c, m, face):
        return False
    level = support(solids.kind, solids.size, solids.pose, solids.vertices, c, face)
    return _is_parted(solids, upper, lower, face, level, tol, sink, reach)


@tiny
def _is_hidden(solids, contacts, r, runs):
    """Whether a contact of the bodies of run r rules out that run."""
    # 1. unbounded shapes and two round ones have no edges to hide
    kind, body, best = solids.kind, solids.body, runs.lowest[r]
    kinds = (1 << kind[contacts.a[best]]) | (1 << kind[contacts.b[best]])
    if kinds & ENDLESS != 0 or kinds & ~SMOOTH == 0:
        return False
    # 2. all contacts of the body of either shape, each as a plane below that body, or above it where both have the other shape in common
    for own in range(2):
        shape, other = contacts.a[best], contacts.b[best]
        if own == 1:
            shape, other = other, shape
        entry, count = (runs.head[body[shape]] if body[shape] != WORLD else -1), 0
        while entry >= 0 and count < _MOST_HOLDS:
            run, side = entry // 2, entry % 2
            hold, entry, count = runs.lowest[run], runs.next_of[entry], count + 1
            # the same normal, or an opposite one, hides nothing
            cosine = dot(view(contacts.normal, 3 * hold, 3), view(contacts.normal, 3 * best, 3)) * (1.0 if own == side else -1.0)
            if run == r or runs.dropped[run] != 0 or not _OPPOSITE < cosine < 1.0 - _OTHER:
                continue
            if _hides(solids, contacts, runs, r, own, hold, side, False):
                return True
            beyond = contacts.b[hold] if side == 0 else contacts.a[hold]
            is_turned = beyond == other and shape != (contacts.a[hold] if side == 0 else contacts.b[hold])
            if is_turned and _hides(solids, contacts, runs, r, own, hold, side, True):
                return True
    return False


@kernel
def drop_hidden(solids, contacts, n_bodies, links):
    """Removes contacts that others rule out; returns the number kept. In and out: contacts, see `nsds.collision.detection`.

    Contacts of two shapes with one normal are one run. A removed run rules out nothing: of runs that rule out each other the last
    stays. Work: links, see `links_size`.
    """
    a, b, feature, normal, point, gap = contacts
    n, n_runs, kept, body = a.size, 0, 0, solids.body
    start, lowest = view(links, n_bodies + 4 * n, n + 1), view(links, n_bodies + 3 * n, n)
    dropped, head, next_of = view(links, n_bodies + 2 * n, n), view(links, 0, n_bodies), view(links, n_bodies, 2 * n)
    runs = Runs(start, lowest, dropped, head, next_of)
    # 1. runs of contacts of two shapes with one normal
    for i in range(n):
        if i == 0 or not _is_same(contacts, i, i - 1):
            start[n_runs], lowest[n_runs], dropped[n_runs], n_runs = i, i, 0, n_runs + 1
        elif gap[i] < gap[lowest[n_runs - 1]]:
            lowest[n_runs - 1] = i
    start[n_runs] = n
    # 2. linked list of the runs of each body, in rising order
    for i in range(n_bodies):
        head[i] = -1
    for entry in range(2 * n_runs - 1, -1, -1):
        shape = a[start[entry // 2]] if entry % 2 == 0 else b[start[entry // 2]]
        if body[shape] != WORLD:
            next_of[entry], head[body[shape]] = head[body[shape]], entry
    # 3. which runs are ruled out, one after the other; mostly none is
    n_dropped = 0
    for r in range(n_runs):
        if _is_hidden(solids, contacts, r, runs):
            dropped[r], n_dropped = 1, n_dropped + 1
    if n_dropped == 0:
        return n
    # 4. compact the list in place
    for r in range(n_runs):
        for i in range(start[r], start[r + 1] if dropped[r] == 0 else start[r]):
            a[kept], b[kept], feature[kept], gap[kept] = a[i], b[i], feature[i], gap[i]
            for k in range(3):
                normal[3 * kept + k], point[3 * kept + k] = normal[3 * i + k], point[3 * i + k]
            kept += 1
    return kept


_NUMBERS, _ENTRIES = np.zeros(0), np.zeros(0, np.int64)
_SOLIDS = typeof(Solids(_ENTRIES, _NUMBERS, _NUMBERS, _ENTRIES, _NUMBERS, 0))
_SIGNATURE = int64(_SOLIDS, CONTACTS, int64, int64[::1])
call_drop_hidden = caller(_SIGNATURE)
address_of_drop_hidden = on_demand(_SIGNATURE, drop_hidden)
