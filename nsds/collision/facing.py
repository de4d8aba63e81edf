"""Which part of a shape looks in a direction: a vertex, an edge or a face, as a polygon whose edges have names.

Between two shapes that touch, contacts are the corners of one such part clipped by another: see `nsds.collision.patches`. In plain NumPy,
for the pairs of shapes that have no kernel.
"""

from typing import NamedTuple

import numpy as np

from nsds.collision.kinds import BOX, CAPSULE, CYLINDER, SPHERE
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


def surface_of(size, vertices, triangles):
    """(vertices, triangles) of the polyhedron of a size, out of those of all in a record."""
    first, end = int(size[1]), int(size[1] + size[2])
    own = (triangles[:, 0] >= first) & (triangles[:, 0] < end)
    return vertices[first:end], triangles[own] - first


def solid(kind, size, vertices, triangles):
    """What answers for a convex shape; vertices and triangles of a hull."""
    if kind in (SPHERE, CAPSULE, CYLINDER):
        return Round(kind, size)
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
