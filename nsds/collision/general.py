"""Contacts of the pairs of shapes that have no kernel, by the library coal (extra ``collision``), which compiled detection calls.

coal says how far two convex shapes that are apart are from each other, and which triangles of a mesh are near. Contacts are then corners of
the faces that look at each other (`nsds.collision.patches`), with the gaps of these faces.

Shapes that touch or overlap are moved apart along a normal n, to a distance r, and the normal n' of that place is taken: the separation
``s(n) = min_a n . x - max_b n . x`` has ``s(n') >= s(n) + (r - s(n)) (1 - n . n')``, so that repeated it grows up to a least overlap. The
normal of two shapes that are hardly apart, of which only rounding is left, is never asked for.
"""

import contextlib
import ctypes
from functools import lru_cache

import numpy as np

from nsds.collision.facing import Placed, Pose, Surface, solid, surface_of
from nsds.collision.frames import FIELDS
from nsds.collision.kinds import BOX, CAPSULE, CONVEX, CYLINDER, MESH, NAMES, POLYHEDRA, SPHERE
from nsds.collision.pairs import GENERAL, require_coal
from nsds.collision.patches import FLAT, patch, thinned
from nsds.maths.rotations import rotation_matrix

_TOLERANCES, _ITERATIONS = (1e-12, 1e-9, 1e-6, 1e-4), 256  # of the search for the closest points, tried one after the other
_ROOM = 0.02  # of the smaller shape: distance to which shapes that are nearer are moved apart
_ROUNDS, _SETTLED = 30, 1e-13  # of moving apart; growth of the separation, of the smaller shape, that is none
_TRIANGLES = 1 << 20  # of a mesh that may be near one shape
_DEEP = 0.25  # of a shape: what is farther behind a triangle did not come through it
_BOTH_SIDES = np.array([[0, 1, 2], [0, 2, 1]])  # of a triangle as a flat hull
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_double, ctypes.c_int64, ctypes.c_int64)


class GeneralPairs:
    """Answers for the shapes of one record; ``address`` is what `nsds.collision.detect` calls, 0 where no pair needs it.

    What goes wrong there is kept, the contact gets the gap NaN, and `raise_error` raises it once compiled code has returned.

    Parameters
    ----------
    kind, size : ndarray (ns,) and (ns, 3)
        The shapes.
    vertices, triangles : ndarray (nv, 3) and (nt, 3)
        Of all polyhedra.
    pairs : sequence of (int, int)
        Kinds that meet.

    Raises
    ------
    ImportError
        coal is needed and not installed; the message names the extra.
    """

    def __init__(self, kind, size, vertices, triangles, pairs):
        needed = [pair for pair in pairs if tuple(sorted(pair)) in GENERAL]
        self.address, self._error = 0, None
        if not needed:
            return
        require_coal(*(NAMES[k] for k in needed[0]))
        import coal

        self._coal, self._kind, self._size, self._vertices, self._triangles = coal, kind, size, vertices, triangles
        self._known = {}
        self._request, self._distances = coal.CollisionRequest(), [coal.DistanceRequest() for _ in _TOLERANCES]
        self._request.num_max_contacts = _TRIANGLES
        for tolerance, request in zip(_TOLERANCES, self._distances, strict=True):
            request.gjk_tolerance = request.epa_tolerance = tolerance
            request.gjk_max_iterations = request.epa_max_iterations = _ITERATIONS
        self._callback = _CALLBACK(self._answer)
        self.address = ctypes.cast(self._callback, ctypes.c_void_p).value

    def raise_error(self):
        """Raise what went wrong since the last time."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _answer(self, a, b, margin, pose, found):
        """Contacts of shapes a and b, the kind of a not after that of b; out: found, by address."""
        try:
            result = self._contacts(a, b, margin, _pose(pose, a), _pose(pose, b))
        except KeyboardInterrupt as error:  # this step is still wanted whole
            self._error = self._error or error
            return self._answer(a, b, margin, pose, found)
        except Exception as error:
            self._error, result = self._error or error, [(0, np.nan, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))]
        if result:
            out = (ctypes.c_double * (FIELDS * len(result))).from_address(found)
            out[:] = [value for feature, gap, normal, point in result for value in (feature, gap, *normal, *point)]
        return len(result)

    def _contacts(self, a, b, margin, pose_a, pose_b):
        (shape_a, body_a), (shape_b, body_b) = self._of(a), self._of(b)
        one = Placed(shape_a, pose_a)
        if self._kind[b] == MESH:
            return [] if self._kind[a] == MESH else self._with_mesh(one, body_a, shape_b, body_b, pose_b, margin)
        other, small = Placed(shape_b, pose_b), min(shape_a.smallest, shape_b.smallest)
        gap, n, point = self._closest(one, body_a, other, body_b, pose_b, one.middle - other.middle, margin, small)
        return thinned(patch(one, other, n, (gap, point), margin, small), small) if gap <= margin else []

    def _closest(self, one, body_a, other, body_b, pose_b, towards, margin, small):
        """(signed distance, normal, point on the first shape) of two convex shapes, of which one leaves the other about that way."""
        length, room = np.linalg.norm(towards), _ROOM * small
        candidates = [towards / length if length > 0 else np.array([0.0, 0.0, 1.0])]
        with contextlib.suppress(ArithmeticError):  # of shapes that touch exactly; moved apart below they are not in doubt
            gap, n, point = self._apart(body_a, one.pose, body_b, pose_b)
            if gap >= room or gap > margin:
                return gap, n, point
            candidates.insert(0, n)
        gap, n = max(((_separation(one, other, d), d) for d in candidates), key=lambda pair: pair[0])
        for _ in range(_ROUNDS):
            shift = (room - gap) * n
            _, d, point = self._apart(body_a, Pose(one.pose.R, one.pose.x + shift), body_b, pose_b)
            better = _separation(one, other, d)
            last = not better > gap + _SETTLED * small
            if better > gap:
                gap, n = better, d
            if last:
                break
        return gap, n, point - shift

    def _apart(self, body_a, pose_a, body_b, pose_b):
        """(distance, normal from b to a, point on a) as coal has them, which now and then fails where it is to be very accurate.

        Raises `ArithmeticError` where it fails at any accuracy: of shapes that touch to rounding.
        """
        coal, result = self._coal, self._coal.DistanceResult()
        places = coal.Transform3s(pose_a.R, pose_a.x), coal.Transform3s(pose_b.R, pose_b.x)
        for request in self._distances:
            gap = coal.distance(body_a, places[0], body_b, places[1], request, result)
            n, point = -np.array(result.normal).reshape(3), np.array(result.getNearestPoint1()).reshape(3)
            if abs(n @ n - 1) < 1e-6 and np.isfinite(point).all():
                return gap, n, point
            result.clear()
        raise ArithmeticError("coal found neither distance nor normal of two shapes")

    def _with_mesh(self, one, body_a, surface, body_b, pose_b, margin):
        """Contacts of a convex shape with each triangle that is near.

        Across an edge or vertex only where the surface bends away from it; elsewhere the triangle itself is what counts, so that nothing
        that slides over the joint of two triangles is held up there.
        """
        coal, result, found, small = self._coal, self._coal.CollisionResult(), [], min(one.shape.smallest, surface.widest)
        places = coal.Transform3s(one.pose.R, one.pose.x), coal.Transform3s(pose_b.R, pose_b.x)
        self._request.security_margin = max(margin, _ROOM * small)
        coal.collide(body_a, places[0], body_b, places[1], self._request, result)
        for t in sorted({near.b2 for near in result.getContacts()}):
            face = surface.triangle(pose_b, t)
            body = _hull(surface.vertices[surface.triangles[t]], _BOTH_SIDES)
            gap, n, point = self._closest(one, body_a, face, body, pose_b, face.normal, margin, small)
            if gap > margin:
                continue
            ridge = surface.ridge(pose_b, n, t) if face.normal @ n < FLAT else None
            if ridge is not None:
                contacts = patch(one, ridge, n, (gap, point), margin, small)
            elif face.normal @ (one.middle - face.points[0]) > 0:  # else it is behind the triangle
                contacts = patch(one, face, face.normal, None, margin, small)
            else:
                continue
            found += [contact for contact in contacts if contact[1] >= -_DEEP * small]
        return thinned(found, small)

    def _of(self, s):
        """(what answers for the faces of shape s, what coal knows of it)."""
        kind, size = int(self._kind[s]), tuple(self._size[s].tolist())
        if (kind, size) not in self._known:
            if kind in POLYHEDRA:
                vertices, triangles = surface_of(size, self._vertices, self._triangles)
                self._known[kind, size] = _polyhedron(kind, vertices.tobytes(), triangles.tobytes())
            else:
                from scipy.spatial import ConvexHull

                radius, length, _ = size
                shape = solid(kind, np.array(size), None, None)
                body = {
                    SPHERE: lambda: self._coal.Sphere(radius),
                    CAPSULE: lambda: self._coal.Capsule(radius, length),
                    CYLINDER: lambda: self._coal.Cylinder(radius, length),
                    BOX: lambda: _hull(shape.vertices, ConvexHull(shape.vertices).simplices),  # coal's own is too small by 1e-10
                }[kind]()
                self._known[kind, size] = shape, body
        return self._known[kind, size]


@lru_cache(maxsize=256)
def _polyhedron(kind, vertices, triangles):
    """(faces, coal's) of a hull or mesh, from the bytes of its arrays: members of an ensemble share it."""
    import coal

    vertices, triangles = np.frombuffer(vertices).reshape(-1, 3), np.frombuffer(triangles, np.int64).reshape(-1, 3)
    if kind == CONVEX:
        return solid(kind, None, vertices, triangles), _hull(vertices, triangles)
    tree = coal.BVHModelOBBRSS()
    tree.beginModel(len(triangles), len(vertices))
    tree.addSubModel(*_lists(vertices, triangles))
    tree.endModel()
    return Surface(vertices, triangles), tree


def _hull(vertices, triangles):
    import coal

    return coal.Convex(*_lists(vertices, triangles))


def _lists(vertices, triangles):
    """Vertices and triangles in coal's own containers."""
    import coal

    points, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    points.extend(list(vertices))
    faces.extend([coal.Triangle(*triangle) for triangle in triangles.tolist()])
    return points, faces


def _separation(a, b, n):
    """How far a is from b along n; negative where they overlap."""
    return a.lowest(n) + b.lowest(-n)


def _pose(address, s):
    values = np.array((ctypes.c_double * 7).from_address(address + 56 * s))
    R = np.empty(9)
    rotation_matrix(values[3:], R)
    return Pose(R.reshape(3, 3), values[:3])


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
