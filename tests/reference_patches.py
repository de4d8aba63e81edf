"""Parts of shapes that look at each other, and the contacts between them, in plain NumPy: the twins of `nsds.collision.patches`."""

from typing import NamedTuple

import numpy as np

from nsds.collision.frames import MOST
from nsds.collision.kinds import BOX, CAPSULE, CONE, CYLINDER, SPHERE
from nsds.collision.planes import STEEP
from nsds.collision.surfaces import BOX_CORNERS, BOX_SIDES

_STANDS = 0.7  # cosine between a cylinder's axis and a direction above which its end looks there rather than its side
_COPLANAR = 1e-9  # of the size of a polyhedron: how far the vertices of one face may be off a plane
_LEVEL = 1e-4  # sine between an edge and what is across a direction, below which the whole edge looks there


class Facing(NamedTuple):
    """A part of a surface, alone a shape too; its edges are named by their place in it."""

    points: np.ndarray  # (k, 3) in the world, counterclockwise from outside
    number: int  # of this part in its shape
    normal: np.ndarray = None  # of a face

    def facing(self, d, around):
        """All of it."""
        return self

    def lowest(self, n):
        """Least coordinate along n."""
        return (self.points @ n).min()


class Pose(NamedTuple):
    """Where a shape is: its axes as columns, and its position."""

    R: np.ndarray
    x: np.ndarray


class Placed(NamedTuple):
    """A convex shape at its pose."""

    shape: object
    pose: Pose

    def facing(self, d, around):
        """What looks along d, with so many corners where it is round."""
        return self.shape.facing(self.pose, d, around)

    def lowest(self, n):
        """Least coordinate along n."""
        return self.pose.x @ n + self.shape.lowest(n @ self.pose.R)

    @property
    def middle(self):
        """A point well within."""
        return self.pose.x + self.pose.R @ self.shape.middle


class Round:
    """A sphere, capsule or cylinder."""

    def __init__(self, kind, size):
        self.middle, self.kind, self.radius, self.half = np.zeros(3), kind, size[0], 0.0 if kind == SPHERE else size[1] / 2
        self.smallest = 2 * min(size[0], self.half) if kind == CYLINDER else 2 * size[0]

    def facing(self, pose, d, around):
        """What looks along d: a point, a line along the side, or the end of a cylinder as a polygon of so many corners."""
        u = pose.R[:, 2]
        cosine = u @ d
        if self.kind == CYLINDER and abs(cosine) > _STANDS:
            angle = 2 * np.pi * np.arange(around) / around * np.copysign(1.0, cosine)
            circle = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ pose.R[:, :2].T
            normal = np.copysign(1.0, cosine) * u
            return Facing(pose.x + self.half * normal + self.radius * circle, 1 if cosine > 0 else 2, normal)
        outwards = d - cosine * u if self.kind == CYLINDER else d
        middle = pose.x + self.radius / np.linalg.norm(outwards) * outwards
        return Facing(middle[None] if self.kind == SPHERE else np.stack([middle - self.half * u, middle + self.half * u]), 0)

    def lowest(self, n):
        """Least coordinate along n, in the axes of the shape."""
        across = np.hypot(n[0], n[1]) if self.kind == CYLINDER else 1.0
        return -self.half * abs(n[2]) - self.radius * across


class Cone:
    """Its base, or a line along its side."""

    def __init__(self, size):
        self.middle, self.radius, self.height = np.zeros(3), size[0], size[1]
        self.smallest = min(2 * size[0], size[1])

    def facing(self, pose, d, around):
        """What looks along d: the line from rim to tip, or the base as a polygon of so many corners."""
        u, low = pose.R[:, 2], pose.x - self.height / 4 * pose.R[:, 2]
        if u @ d < -_STANDS:
            angle = -2 * np.pi * np.arange(around) / around
            return Facing(low + self.radius * np.stack([np.cos(angle), np.sin(angle)], axis=1) @ pose.R[:, :2].T, 2, -u)
        outwards = d - (u @ d) * u
        outwards = pose.R[:, 0] if np.linalg.norm(outwards) < _LEVEL else outwards / np.linalg.norm(outwards)
        return Facing(np.stack([low + self.radius * outwards, low + self.height * u]), 0)

    def lowest(self, n):
        """Least coordinate along n, in the axes of the shape."""
        return min(0.75 * self.height * n[2], -self.height / 4 * n[2] - self.radius * np.hypot(n[0], n[1]))


class Polyhedron:
    """A box or convex hull by its faces: polygons of vertices, counterclockwise from outside."""

    def __init__(self, vertices, polygons, normals):
        self.vertices, self.polygons, self.normals = vertices, polygons, normals
        self.middle, self.smallest = vertices.mean(axis=0), np.ptp(vertices, axis=0).min()

    def facing(self, pose, d, around):
        """The face that looks most along d."""
        number = int(np.argmax(self.normals @ (d @ pose.R)))
        return Facing(pose.x + self.vertices[self.polygons[number]] @ pose.R.T, number, pose.R @ self.normals[number])

    def lowest(self, n):
        """Least coordinate along n, in the axes of the shape."""
        return (self.vertices @ n).min()


class Surface:
    """A mesh, triangle by triangle; what is at an edge or vertex is known by all triangles there."""

    def __init__(self, vertices, triangles):
        self.vertices, self.triangles, self.widest = vertices, triangles, np.ptp(vertices, axis=0).max()
        corners = vertices[triangles]
        across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        self.normals = across / np.linalg.norm(across, axis=1)[:, None]
        # Of an edge: normal of a triangle, direction into it; of a vertex: normal times angle, edges from there; for each triangle.
        self._inwards, self._around = {}, {}
        for t, (triangle, points) in enumerate(zip(triangles.tolist(), corners, strict=True)):
            for i in range(3):
                start, end, last = triangle[i], triangle[(i + 1) % 3], points[(i + 2) % 3]
                into = np.cross(self.normals[t], points[(i + 1) % 3] - points[i])
                self._inwards.setdefault((min(start, end), max(start, end)), []).append((self.normals[t], into / np.linalg.norm(into)))
                away = np.stack([points[(i + 1) % 3] - points[i], last - points[i]])
                away /= np.linalg.norm(away, axis=1)[:, None]
                angle = np.arccos(np.clip(away[0] @ away[1], -1, 1))
                self._around.setdefault(start, []).append((angle * self.normals[t], away))
        self._edge_number = {edge: len(triangles) + k for k, edge in enumerate(self._inwards)}

    def triangle(self, pose, t):
        """Triangle t as a face."""
        return Facing(pose.x + self.vertices[self.triangles[t]] @ pose.R.T, t, pose.R @ self.normals[t])

    def ridge(self, pose, d, t):
        """The edge or vertex of triangle t that looks along d; None unless the surface bends away from there on all sides.

        Outside is where normals point, weighted by angles (Baerentzen and Aanaes, IEEE Trans. Vis. Comput. Graph. 11, 243, 2005).
        """
        local, triangle = d @ pose.R, self.triangles[t].tolist()
        points = self.vertices[triangle]
        height = points @ local
        length = np.linalg.norm(points[1] - points[0])
        top = [v for v, z in zip(triangle, height, strict=True) if z >= height.max() - _LEVEL * length]
        if len(top) == 3:
            return None
        if len(top) == 2:
            edge = min(top), max(top)
            beside, number = self._inwards[edge], self._edge_number[edge]
        else:
            beside, number = self._around[top[0]], len(self.triangles) + len(self._inwards) + top[0]
        leans = max(float(np.max(into @ local)) for _, into in beside) > _LEVEL
        if leans or sum(weighted for weighted, _ in beside) @ local <= 0:
            return None
        return Facing(pose.x + self.vertices[sorted(top)] @ pose.R.T, number)


def solid(kind, size, vertices, triangles):
    """What answers for a convex shape; vertices and triangles of a hull."""
    if kind in (SPHERE, CAPSULE, CYLINDER):
        return Round(kind, size)
    if kind == CONE:
        return Cone(size)
    if kind == BOX:
        normals = np.repeat(np.eye(3), 2, axis=0) * np.tile([-1.0, 1.0], 3)[:, None]
        return Polyhedron(BOX_CORNERS * size, list(BOX_SIDES), normals)
    return Polyhedron(vertices, *_faces(vertices, triangles))


def _faces(vertices, triangles):
    """(polygons, normals) of a hull: triangles in one plane are one face."""
    corners = vertices[triangles]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(across, axis=1)
    left, polygons, normals = np.ones(len(triangles), bool), [], []
    tolerance = _COPLANAR * np.ptp(vertices, axis=0).max()
    for t in np.argsort(-area, kind="stable"):
        if left[t]:
            normal = across[t] / area[t]
            flat = left & (abs((corners - corners[t, 0]) @ normal) <= tolerance).all(axis=1)
            left &= ~flat
            used = np.unique(triangles[flat])
            spokes = vertices[used] - vertices[used].mean(axis=0)
            first = corners[t, 1] - corners[t, 0]
            angle = np.arctan2(spokes @ np.cross(normal, first), spokes @ first)
            polygons.append(used[np.argsort(angle)])
            normals.append(normal)
    return polygons, np.array(normals)


FLAT = 1.0 - 5e-7  # cosine between the normal of a contact and that of a face on which it may be
_ALONG = 1e-2  # sine between two lines that lie along each other
_TILTED = 0.995  # cosine of the angle by which two faces that lie on each other may be tilted
_LOWER = 1e-7  # of the smaller shape: how much nearer the closest points must be than corners are to be a contact of their own
_LOWER_OF_CURVED = 1e-12  # the same of points and lines of curved surfaces
_ACROSS = 1e-9  # difference of the normals of a face and of a line on a curved side that is on the face
_SAME = 1e-6  # of the smaller shape: contacts that are nearer to each other are one
_ROUND = 32  # corners of a round face that others stand on; 8 of one that stands
_NAMES = 10  # bits of the name of an edge
_SECOND = 1 << 52  # feature: which of both faces is stood on
_KEPT = 1 << 16  # numbers of faces in a feature are counted up to there


def patch(a, b, n, closest, margin, small):
    """Contacts of two shapes across a normal from b to a.

    Parameters
    ----------
    a, b : Placed or Facing
        The shapes, or parts of them.
    n : ndarray (3,)
        As the closest points have it; the normal of a face that they may be on takes its place.
    closest : (gap, point on a) or None
        A contact of its own, unless corners are as near; without it n is the normal of the face of b.
    margin, small : float
        Largest gap, and size of the smaller shape.

    Returns
    -------
    list of (feature, gap, normal, point on a)
    """
    of_a, of_b = a.facing(-n, 8), b.facing(n, 8)
    base = (of_a.number % _KEPT * _KEPT + of_b.number % _KEPT) << 2 * _NAMES
    found = [(base + end, gap, n, x) for end, gap, x in _along_edge(a, b, of_a, of_b, n)]
    found += [(_SECOND + base + end, gap, n, y + gap * n) for end, gap, y in _along_edge(b, a, of_b, of_a, -n)]
    if found:
        pass
    elif closest is None or _stands_on(of_b, a, n, closest[0], _lower(b, a, of_a, small)):
        face = b.facing(n, _ROUND)
        for point, height, name in _clipped(of_a.points, face, small):
            found.append((base + name, height, face.normal, point))
    elif _stands_on(of_a, b, -n, closest[0], _lower(a, b, of_b, small)):
        face = a.facing(-n, _ROUND)
        for point, height, name in _clipped(of_b.points, face, small):
            found.append((_SECOND + base + name, height, -face.normal, point - height * face.normal))
    elif _are_tilted(of_a, of_b, n) or _leans_on(of_b, of_a, n):
        found = _clipped_along(of_a, b.facing(n, _ROUND), base, n, small)
    elif _leans_on(of_a, of_b, -n):
        face = a.facing(-n, _ROUND)
        for point, height, name in _clipped(of_b.points, face, small):
            gap = -height * (face.normal @ n)
            found.append((_SECOND + base + name, gap, n, point + gap * n))
    elif len(of_a.points) == 2 and len(of_b.points) == 2:
        found = [(end, gap, n, x) for end, gap, x in _side_by_side(of_a.points, of_b.points, n)]
    found = [one for one in found if one[1] <= margin]
    if closest is not None and closest[0] <= margin and not any(gap <= closest[0] + _LOWER * small for _, gap, *_ in found):
        found.append((-1 - of_b.number, closest[0], n, closest[1]))
    return found


def beyond_edge(a, face, n, margin, small):
    """Contacts of a shape with a triangle over whose edge it leans, with the normal n there."""
    of_a = a.facing(-n, 8)
    base = (of_a.number % _KEPT * _KEPT + face.number % _KEPT) << 2 * _NAMES
    is_tilted = _are_tilted(of_a, face, n) or _leans_on(face, of_a, n)
    return [one for one in _clipped_along(of_a, face, base, n, small) if one[1] <= margin] if is_tilted else []


def _clipped_along(of_a, face, base, n, small):
    """What of a part is above a face, with gaps along n."""
    return [(base + name, height * (face.normal @ n), n, point) for point, height, name in _clipped(of_a.points, face, small)]


def _is_curved(shape, part):
    """Whether a part of a shape is a point or line of a curved surface."""
    return part.normal is None and isinstance(shape, Placed) and not isinstance(shape.shape, Polyhedron)


def _is_polyhedron(shape):
    """Whether a shape is a box or hull."""
    return isinstance(shape, Placed) and isinstance(shape.shape, Polyhedron)


def _lower(shape, other, part, small):
    """Distance by which a part may be farther along the normal of a face and stands on it."""
    return _LOWER_OF_CURVED * small if _is_polyhedron(shape) and _is_curved(other, part) else _LOWER * small


def _along_edge(shape, other, line, face, n):
    """(end, gap, point) of a line on a curved side with the edge of a face alongside it, where n is not the normal of the face."""
    if not (_is_curved(shape, line) and len(line.points) == 2 and _is_polyhedron(other)) or abs(face.normal - n).max() <= _ACROSS:
        return []
    best, many = int(np.argmax(face.points @ n)), len(face.points)
    edges = [face.points[[k, (k + 1) % many]] for k in (best, (best - 1) % many)]
    return _side_by_side(line.points, min(edges, key=lambda e: abs((e[1] - e[0]) @ n) / np.linalg.norm(e[1] - e[0])), n)


def _stands_on(face, other, n, gap, lower):
    """Whether a face is across a normal out of it, and as far from the other shape along its own as along that one."""
    if face.normal is None or face.normal @ n < FLAT:
        return False
    return other.lowest(face.normal) - face.normal @ face.points[0] >= gap - lower


def _are_tilted(of_a, of_b, n):
    """Whether two faces look at each other along n, but for a small angle."""
    if of_a.normal is None or of_b.normal is None:
        return False
    return of_a.normal @ of_b.normal < -_TILTED and of_a.normal @ n < -_TILTED and of_b.normal @ n > _TILTED


def _leans_on(face, line, n):
    """Whether a line lies on a face that looks along n, but for a small angle."""
    if face.normal is None or len(line.points) != 2 or not face.normal @ n > _TILTED:
        return False
    along = line.points[1] - line.points[0]
    return (along @ face.normal) ** 2 < (1.0 - _TILTED**2) * (along @ along)


def _clipped(points, face, small):
    """(point, height above the face, name) of the corners of a part that are within the sides of a face."""
    along = face.points[1] - face.points[0]
    axes = np.stack([along / np.linalg.norm(along), np.cross(face.normal, along) / np.linalg.norm(along), face.normal])
    polygon = [(*xyz, i) for i, xyz in enumerate(((points - face.points[0]) @ axes.T).tolist())]
    sides = ((face.points - face.points[0]) @ axes[:2].T).tolist()
    for i, (u, v) in enumerate(sides):
        du, dv = sides[(i + 1) % len(sides)][0] - u, sides[(i + 1) % len(sides)][1] - v
        length = max(np.hypot(du, dv), 1e-300)
        beyond = [((p[0] - u) * dv - (p[1] - v) * du) / length for p in polygon]
        name = (1 << _NAMES - 1) + i
        polygon = _cut(polygon, beyond, name, _SAME * small) if len(points) > 2 else _shortened(polygon, beyond, i, _SAME * small)
    for k, (u, v, height, name) in enumerate(polygon):
        before = polygon[k - 1][3] if len(points) > 2 else 0
        yield face.points[0] + np.array([u, v, height]) @ axes, height, (before % (1 << _NAMES) << _NAMES) + name % (1 << _NAMES)


def _cut(polygon, beyond, name, tolerance):
    """The part of a polygon that is not beyond a side; the cut is an edge of that name (Sutherland and Hodgman)."""
    result = []
    for i, p in enumerate(polygon):
        j = (i + 1) % len(polygon)
        if beyond[i] <= tolerance:
            result.append(p)
        if (beyond[i] <= tolerance) != (beyond[j] <= tolerance):
            part = np.clip(beyond[i] / (beyond[i] - beyond[j]), 0.0, 1.0)
            cut = tuple(p[k] + part * (polygon[j][k] - p[k]) for k in range(3))
            result.append((*cut, name if beyond[i] <= tolerance else p[3]))
    return result


def _shortened(line, beyond, side, tolerance):
    """The part of a line, or the point, that is not beyond a side; an end that is cut off is named after it."""
    if all(distance > tolerance for distance in beyond):
        return []
    if len(line) == 1 or all(distance <= tolerance for distance in beyond):
        return line
    cut = (*_between(*line, *beyond), 2 + side)
    return [line[0], cut] if beyond[0] <= tolerance else [cut, line[1]]


def _between(p, q, at_p, at_q):
    part = at_p / (at_p - at_q)
    return tuple(p[k] + part * (q[k] - p[k]) for k in range(3))


def _side_by_side(a, b, n):
    """Both ends of what two lines that lie along each other have in common; nothing of other lines."""
    u, v = a[1] - a[0], b[1] - b[0]
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
    if np.linalg.norm(np.cross(u, v)) > _ALONG:
        return []
    s, t = (np.sort((line - a[0]) @ u) for line in (a, b))
    low, high = max(s[0], t[0]), min(s[1], t[1])
    if low >= high:
        return []
    points = [(a[0] + w * u, b[0] + (w - (b[0] - a[0]) @ u) / (u @ v) * v) for w in (low, high)]
    return [(end, n @ (x - y), x) for end, (x, y) in enumerate(points)]


def thinned(found, small):
    """Contacts in the order of their features, each place once, MOST of them: the lowest, then one after the other those far from all."""
    best = {}
    for one in found:
        if one[0] not in best or one[1] < best[one[0]][1]:
            best[one[0]] = one
    found = [best[feature] for feature in sorted(best)]
    if len(found) < 2:
        return found
    gap = np.array([one[1] for one in found])
    place = np.array([np.concatenate([one[3], small * one[2]]) for one in found])
    apart = np.linalg.norm(place[:, None] - place[None], axis=2)
    repeated = np.triu(apart < _SAME * small, 1).any(axis=0)
    low = gap <= gap[~repeated].min() + _SAME * small
    chosen = [int(np.argmax(low & ~repeated))]
    far = np.where(repeated, -np.inf, apart[chosen[0]])
    while len(chosen) < min(MOST, np.count_nonzero(~repeated)):
        far[chosen] = -np.inf
        chosen.append(int(np.argmax(far - STEEP * (gap - gap.min()))))
        far = np.minimum(far, apart[chosen[-1]])
    return [found[k] for k in sorted(chosen)]
