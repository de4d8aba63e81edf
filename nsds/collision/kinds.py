"""Kinds of shapes: codes, meaning of the sizes, and all properties of each, in one table.

============== =========================== =============================================
kind           size                        in its own axes
============== =========================== =============================================
``sphere``     radius, -, -                centred
``capsule``    radius, length, -           length of the cylinder along z, between half balls
``cylinder``   radius, length, -           along z
``box``        lengths                     edges along the axes
``convex``     bound, vertex, vertices     convex hull of vertices; the largest distance of one, the first in the list of all, how many
``mesh``       bound, vertex, vertices     surface of triangles of vertices, which are listed alike
``plane``      -                           the half space z <= 0 is solid
``tube``       radius, length, -           inner wall of a hollow cylinder along z, without caps
``disk``       radius, -, -                in the plane, centred
``stadium``    bound, radius, 0            in the plane, a rectangle along x between half disks; bound: half of the whole length
``polygon``    bound, vertex, vertices     in the plane, convex, of vertices as of ``convex``, counterclockwise
``half_plane`` -                           in the plane, y <= 0 is solid
``cone``       radius, height, -           along z, base at -height/4, tip at 3/4 height: the centre of mass is the origin
============== =========================== =============================================

Four are of bodies that move in the plane z = 0, turned about z.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nsds._jit import specialised, tiny
from nsds.collision.surfaces import box_surface, half_square, oval, square, turned_round, without_caps


class Shape(NamedTuple):
    """Properties of a kind of shapes: a new one is a row of `SHAPES`, a constructor in `nsds.shapes`, and its pairs in `COMPILED`.

    bound: kernel of the three sizes, radius of the smallest ball about the position that contains it, infinite if unbounded. lengths:
    how many of the sizes must be positive; is_endless: the last of them may be infinite. thickness: least extents, of sizes (n, 3) and the
    vertices of all polyhedra. surface: corners and faces for pictures, of the sizes and half the extent of an unbounded shape; None for
    polyhedra, which have vertices and triangles of their own. volume, moments: of sizes, and of sizes and the mass, about the axes; None
    for a shape that is not solid; in the plane the area, and the moment about the normal. is_of_world: it cannot be on a body. is_general:
    `nsds.collision.general` finds its contacts. is_planar: it lies in the plane z = 0.
    """

    bound: Callable
    lengths: int
    thickness: Callable
    surface: Callable | None = None
    volume: Callable | None = None
    moments: Callable | None = None
    is_endless: bool = False
    is_of_world: bool = False
    is_general: bool = False
    is_planar: bool = False

    @property
    def is_polyhedron(self):
        """Whether it has vertices and triangles; a polygon has, too."""
        return self.surface is None


@tiny
def _of_ball(radius, length, _):
    return radius


@tiny
def _of_capsule(radius, length, _):
    return radius + 0.5 * length


@tiny
def _of_cylinder(radius, length, _):
    return math.sqrt(radius**2 + 0.25 * length**2)


@tiny
def _of_cone(radius, height, _):
    return max(math.sqrt(radius**2 + 0.0625 * height**2), 0.75 * height)


@tiny
def _of_box(x, y, z):
    return 0.5 * math.sqrt(x**2 + y**2 + z**2)


@tiny
def _without_end(x, y, z):
    return math.inf


def _diameter(size, vertices):
    return 2 * size[:, 0]


def _extent(size, vertices, n_axes=3):
    """Least extent of the vertices of hulls along their axes."""
    ends = size[:, 1:].astype(np.int64).cumsum(axis=1)
    return np.array([np.ptp(vertices[first:end, :n_axes], axis=0).min() for first, end in ends])


def _ball_volume(size):
    return 4 / 3 * np.pi * size[0] ** 3


def _rod_volume(size):
    return np.pi * size[0] ** 2 * size[1]


def _box_moments(size, mass):
    x, y, z = size**2
    return mass / 12 * np.array([y + z, x + z, x + y])


def _capsule_moments(size, mass, ball=None):
    """Moments of a cylinder between half balls, whose centres of mass are 3/8 of the radius beyond its ends."""
    radius, length, _ = size
    ball = mass * _ball_volume(size) / (_rod_volume(size) + _ball_volume(size)) if ball is None else ball
    rod = mass - ball
    across = rod * (radius**2 / 4 + length**2 / 12) + ball * (0.4 * radius**2 + length**2 / 4 + 3 / 8 * radius * length)
    return np.array([across, across, rod * radius**2 / 2 + ball * 0.4 * radius**2])


def _cone_moments(size, mass):
    across = mass * (3 / 20 * size[0] ** 2 + 3 / 80 * size[1] ** 2)
    return np.array([across, across, mass * 3 / 10 * size[0] ** 2])


def _disk_area(radius):
    return np.pi * radius**2


def _stadium_area(size):
    bound, radius, _ = size
    return 4 * radius * (bound - radius) + _disk_area(radius)


def _stadium_moment(size, mass):
    """Moment of a rectangle between half disks, whose centres of mass are 4 / (3 pi) of the radius beyond its ends."""
    bound, radius, _ = size
    half = bound - radius
    disk = mass * _disk_area(radius) / _stadium_area(size)
    return (mass - disk) * (half**2 + radius**2) / 3 + disk * (radius**2 / 2 + half**2 + 8 / (3 * np.pi) * half * radius)


def _half_circle(radius, half):
    """Surface of revolution of a half circle cut in two, with a cylinder between its halves."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, 10)
    return turned_round(radius * np.cos(angles), radius * np.sin(angles) + np.where(angles < 0, -half, half))


# The place of a row is the code by which records know its kind: new rows are added at the end.
SHAPES = {
    "sphere": Shape(
        _of_ball, 1, _diameter, lambda size, extent: _half_circle(size[0], 0.0), _ball_volume,
        lambda size, mass: np.full(3, 0.4 * mass * size[0] ** 2), is_general=True,
    ),
    "capsule": Shape(
        _of_capsule, 2, _diameter, lambda size, extent: _half_circle(size[0], size[1] / 2),
        lambda size: _rod_volume(size) + _ball_volume(size), _capsule_moments, is_general=True,
    ),
    "cylinder": Shape(
        _of_cylinder, 2, lambda size, vertices: np.minimum(2 * size[:, 0], size[:, 1]),
        lambda size, extent: turned_round(size[0] * np.array([0, 1, 1, 0]), size[1] / 2 * np.array([-1, -1, 1, 1])),
        _rod_volume, lambda size, mass: _capsule_moments(size, mass, ball=0.0), is_general=True,
    ),
    "box": Shape(
        _of_box, 3, lambda size, vertices: size.min(axis=1), lambda size, extent: box_surface(size),
        lambda size: float(np.prod(size)), _box_moments, is_general=True,
    ),
    "convex": Shape(_of_ball, 1, _extent, is_general=True),
    "mesh": Shape(_of_ball, 1, _diameter, is_general=True),
    "plane": Shape(
        _without_end, 0, lambda size, vertices: np.full(len(size), np.inf), lambda size, extent: square(extent), is_of_world=True
    ),
    "tube": Shape(_of_cylinder, 2, _diameter, lambda size, extent: without_caps(size[0], min(size[1] / 2, extent)), is_endless=True),
    "disk": Shape(
        _of_ball, 1, _diameter, lambda size, extent: oval(size[0], 0.0), lambda size: _disk_area(size[0]),
        lambda size, mass: mass * size[0] ** 2 / 2, is_planar=True,
    ),
    "stadium": Shape(
        _of_ball, 2, lambda size, vertices: 2 * size[:, 1], lambda size, extent: oval(size[1], size[0] - size[1]), _stadium_area,
        _stadium_moment, is_planar=True,
    ),
    "polygon": Shape(_of_ball, 1, lambda size, vertices: _extent(size, vertices, 2), is_planar=True),
    "half_plane": Shape(
        _without_end, 0, lambda size, vertices: np.full(len(size), np.inf), lambda size, extent: half_square(extent), is_of_world=True,
        is_planar=True,
    ),
    "cone": Shape(
        _of_cone, 2, lambda size, vertices: np.minimum(2 * size[:, 0], size[:, 1]),
        lambda size, extent: turned_round(size[0] * np.array([0, 1, 0]), size[1] / 4 * np.array([-1, -1, 3])),
        lambda size: _rod_volume(size) / 3, _cone_moments, is_general=True,
    ),
}  # fmt: skip
NAMES = tuple(SHAPES)
SPHERE, CAPSULE, CYLINDER, BOX, CONVEX, MESH, PLANE, TUBE, DISK, STADIUM, POLYGON, HALF_PLANE, CONE = range(13)
POLYHEDRA, PLANAR = (
    tuple(code for code, shape in enumerate(SHAPES.values()) if getattr(shape, what)) for what in ("is_polyhedron", "is_planar")
)


def _bound(kind, size, s):
    """Radius of the smallest ball about the position of shape s that contains it; infinite if unbounded."""
    return radius(size[3 * s], size[3 * s + 1], size[3 * s + 2]) if kind[s] == code else others(kind, size, s)


@tiny
def bound(kind, size, s):
    """Fallback for an unknown kind."""
    return math.inf


for code, (name, shape) in reversed(list(enumerate(SHAPES.items()))):
    radius, others = shape.bound, bound
    bound = tiny(specialised(_bound, name, code=code, radius=radius, others=others))


def thickness_of(part):
    """Least extents of all shapes of a part of collisions; infinite of planes."""
    kind, size = part["shape_kind"], part["shape_size"]
    vertices = part["vertices"] if "vertices" in part.dtype.names else None
    result = np.empty(kind.size)
    for code, shape in enumerate(SHAPES.values()):
        result[kind == code] = shape.thickness(size[kind == code], vertices)
    return result
