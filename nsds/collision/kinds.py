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

from nsds._jit import specialised, tiny, view
from nsds.collision import line_intersection as lines
from nsds.collision import parts
from nsds.collision.surfaces import box_surface, half_square, oval, square, turned_round, without_caps

BALL, AXIS = "ball", "axis"  # symmetries


class Shape(NamedTuple):
    """Properties of a kind of shapes: a new one is a row of `SHAPES`, a constructor in `nsds.shapes`, and its pairs in `COMPILED`.

    Of kernels ``size`` is (3,), and all vectors are in the axes of the shape.
    """

    bound: Callable  # kernel of size: radius of the smallest ball about the position that contains it, infinite if unbounded
    lengths: int  # how many of the sizes must be positive
    span: Callable | None = None  # kernel (size, p, u, span), see `nsds.collision.line_intersection`; None for polyhedra
    normal: Callable | None = None  # kernel (size, n) of its curved surface, see there
    least: Callable | None = None  # kernel of size: least extent; None for hulls and polygons, of vertices
    farthest: Callable | None = None  # kernel (size, x, y, z): farthest point along a vector; None for polyhedra and what has no end
    is_rounded: bool = False  # the first size is a radius about that point, as of a capsule about its axis
    part: Callable | None = None  # kernel (shape, d, around, part), see `nsds.collision.parts`; None for polyhedra and in the plane
    faces: tuple = ()  # numbers of its flat faces across its axes
    symmetry: str = ""  # rotations that do not move its surface: all of a `BALL`, those about the z `AXIS`
    surface: Callable | None = None  # corners and faces for pictures, of size and half the extent of an unbounded shape; None for polyhedra
    volume: Callable | None = None  # of size, in the plane the area; None for polyhedra and what is not solid
    moments: Callable | None = None  # of size and mass, about the axes; in the plane about the normal
    is_endless: bool = False  # the last of the lengths may be infinite
    is_of_world: bool = False  # it cannot be on a body
    is_planar: bool = False  # it lies in the plane z = 0
    meridian: Callable | None = None  # kernel of size: radii and heights of both ends of the line whose turns about z span the core

    @property
    def is_polyhedron(self):
        """Whether it has vertices and triangles; a polygon has, too."""
        return self.surface is None

    @property
    def is_general(self):
        """Whether `nsds.collision.general` finds its contacts."""
        return not self.is_planar and (self.is_polyhedron or self.farthest is not None)


@tiny
def _of_ball(size):
    return size[0]


@tiny
def _of_capsule(size):
    return size[0] + 0.5 * size[1]


@tiny
def _of_cylinder(size):
    return math.sqrt(size[0] ** 2 + 0.25 * size[1] ** 2)


@tiny
def _of_cone(size):
    return max(math.sqrt(size[0] ** 2 + 0.0625 * size[1] ** 2), 0.75 * size[1])


@tiny
def _of_box(size):
    return 0.5 * math.sqrt(size[0] ** 2 + size[1] ** 2 + size[2] ** 2)


@tiny
def _without_end(size):
    return math.inf


@tiny
def _diameter(size):
    return 2.0 * size[0]


@tiny
def _width(size):
    return 2.0 * size[1]


@tiny
def _between_ends(size):
    return min(2.0 * size[0], size[1])


@tiny
def _shortest(size):
    return min(min(size[0], size[1]), size[2])


@tiny
def _centre(size, x, y, z):
    return 0.0, 0.0, 0.0


@tiny
def _point(size):
    return 0.0, 0.0, 0.0, 0.0


@tiny
def _axis(size):
    return 0.0, -0.5 * size[1], 0.0, 0.5 * size[1]


@tiny
def _side(size):
    return size[0], -0.5 * size[1], size[0], 0.5 * size[1]


@tiny
def _rim_to_tip(size):
    return size[0], -0.25 * size[1], 0.0, 0.75 * size[1]


@tiny
def _corner(size, x, y, z):
    return 0.5 * math.copysign(size[0], x), 0.5 * math.copysign(size[1], y), 0.5 * math.copysign(size[2], z)


@tiny
def _on_rim(r, half, x, y, z):
    """Point of the rim of a disk across z at the height half or -half, on the side of a direction."""
    across = math.hypot(x, y)
    return (r * x / across, r * y / across, math.copysign(half, z)) if across > 0.0 else (0.0, 0.0, math.copysign(half, z))


@tiny
def _on_axis(size, x, y, z):
    return _on_rim(0.0, 0.5 * size[1], x, y, z)


@tiny
def _of_ends(size, x, y, z):
    return _on_rim(size[0], 0.5 * size[1], x, y, z)


@tiny
def _of_disk(size, x, y, z):
    return _on_rim(size[0], 0.0, x, y, z)


@tiny
def _of_stadium(size, x, y, z):
    along, across, _ = _on_rim(size[1], 0.0, x, y, z)
    return along + math.copysign(size[0] - size[1], x), across, 0.0


@tiny
def _tip_or_rim(size, x, y, z):
    across, r, height = math.hypot(x, y), size[0], size[1]
    up = (0.75 if r * across <= height * z else -0.25) * height
    return (r * x / across, r * y / across, up) if r * across > height * z and across > 0.0 else (0.0, 0.0, up)


def _extent(size, vertices, n_axes):
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
        _of_ball, 1, lines.of_ball, lines.normal_of_ball, _diameter, _centre, True, parts.of_ball, symmetry=BALL,
        surface=lambda size, extent: _half_circle(size[0], 0.0), volume=_ball_volume,
        moments=lambda size, mass: np.full(3, 0.4 * mass * size[0] ** 2), meridian=_point,
    ),
    "capsule": Shape(
        _of_capsule, 2, lines.of_capsule, lines.normal_of_capsule, _diameter, _on_axis, True, parts.of_capsule, symmetry=AXIS,
        surface=lambda size, extent: _half_circle(size[0], size[1] / 2),
        volume=lambda size: _rod_volume(size) + _ball_volume(size), moments=_capsule_moments, meridian=_axis,
    ),
    "cylinder": Shape(
        _of_cylinder, 2, lines.of_cylinder, lines.normal_of_cylinder, _between_ends, _of_ends, False, parts.of_cylinder,
        (lines.LOW_Z, lines.HIGH_Z), AXIS,
        lambda size, extent: turned_round(size[0] * np.array([0, 1, 1, 0]), size[1] / 2 * np.array([-1, -1, 1, 1])),
        _rod_volume, lambda size, mass: _capsule_moments(size, mass, ball=0.0), meridian=_side,
    ),
    "box": Shape(
        _of_box, 3, lines.of_box, None, _shortest, _corner, faces=tuple(range(6)), surface=lambda size, extent: box_surface(size),
        volume=lambda size: float(np.prod(size)), moments=_box_moments,
    ),
    "convex": Shape(_of_ball, 1),
    "mesh": Shape(_of_ball, 1, least=_diameter),
    "plane": Shape(
        _without_end, 0, lines.of_plane, None, _without_end, surface=lambda size, extent: square(extent), is_of_world=True
    ),
    "tube": Shape(
        _of_cylinder, 2, lines.of_tube, lines.normal_of_tube, _diameter,
        surface=lambda size, extent: without_caps(size[0], min(size[1] / 2, extent)), is_endless=True,
    ),
    "disk": Shape(
        _of_ball, 1, lines.of_ball, lines.normal_of_ball, _diameter, _of_disk, symmetry=BALL, is_planar=True,
        surface=lambda size, extent: oval(size[0], 0.0), volume=lambda size: _disk_area(size[0]),
        moments=lambda size, mass: mass * size[0] ** 2 / 2,
    ),
    "stadium": Shape(
        _of_ball, 2, lines.of_stadium, lines.normal_of_stadium, _width, _of_stadium,
        surface=lambda size, extent: oval(size[1], size[0] - size[1]), volume=_stadium_area, moments=_stadium_moment, is_planar=True,
    ),
    "polygon": Shape(_of_ball, 1, is_planar=True),
    "half_plane": Shape(
        _without_end, 0, lines.of_half_plane, None, _without_end, surface=lambda size, extent: half_square(extent), is_of_world=True,
        is_planar=True,
    ),
    "cone": Shape(
        _of_cone, 2, lines.of_cone, lines.normal_of_cone, _between_ends, _tip_or_rim, False, parts.of_cone, (lines.LOW_Z,), AXIS,
        lambda size, extent: turned_round(size[0] * np.array([0, 1, 0]), size[1] / 4 * np.array([-1, -1, 3])),
        lambda size: _rod_volume(size) / 3, _cone_moments, meridian=_rim_to_tip,
    ),
}  # fmt: skip
NAMES = tuple(SHAPES)
SPHERE, CAPSULE, CYLINDER, BOX, CONVEX, MESH, PLANE, TUBE, DISK, STADIUM, POLYGON, HALF_PLANE, CONE = range(13)
POLYHEDRA, PLANAR = (
    tuple(code for code, shape in enumerate(SHAPES.values()) if getattr(shape, what)) for what in ("is_polyhedron", "is_planar")
)


def kinds_with(is_so):
    """A bit for each kind whose row has a property."""
    return sum(bool(is_so(shape)) << code for code, shape in enumerate(SHAPES.values()))


POLYHEDRAL, ROUNDED = kinds_with(lambda shape: shape.is_polyhedron), kinds_with(lambda shape: shape.is_rounded)
BALLS, TURNED_ROUND = kinds_with(lambda shape: shape.symmetry == BALL), kinds_with(lambda shape: shape.symmetry == AXIS)
ENDLESS = kinds_with(lambda shape: shape.is_of_world or shape.is_endless)
SMOOTH = kinds_with(lambda shape: not shape.faces and not shape.is_polyhedron) & ~ENDLESS
RIMMED = kinds_with(lambda shape: shape.meridian is not None and shape.faces)
WITH_FACE = tuple(kinds_with(lambda shape, face=face: face in shape.faces) for face in range(6))


def _case(kind, *given):
    return own(*given) if kind in codes else others(kind, *given)  # noqa: F821


def _last(kind, *given):
    return own(*given)  # noqa: F821


def _by_kind(column):
    """Kernel (kind, ...) that calls that of a column for the kind of a shape: kinds that share one are one case."""
    cases, chosen = {getattr(shape, column): name for name, shape in SHAPES.items() if getattr(shape, column) is not None}, None
    for own, name in reversed(cases.items()):
        codes = tuple(code for code, shape in enumerate(SHAPES.values()) if getattr(shape, column) is own)
        chosen = tiny(specialised(_case if chosen else _last, f"{column}_{name}", codes=codes, own=own, others=chosen))
    return chosen


bound_of, least_extent, farthest_point = _by_kind("bound"), _by_kind("least"), _by_kind("farthest")
span_of, curved_normal, round_part, meridian = _by_kind("span"), _by_kind("normal"), _by_kind("part"), _by_kind("meridian")


@tiny
def bound(kind, size, s):
    """Radius of the smallest ball about the position of shape s that contains it; infinite if unbounded."""
    return bound_of(kind[s], view(size, 3 * s, 3))


def thickness_of(part):
    """Least extents of all shapes of a part of collisions; infinite of planes."""
    kind, size = part["shape_kind"], part["shape_size"]
    result = np.empty(kind.size)
    for code in set(kind.tolist()):
        own, shape = size[kind == code], SHAPES[NAMES[code]]
        least = getattr(shape.least, "py_func", shape.least)
        result[kind == code] = [least(row) for row in own] if least else _extent(own, part["vertices"], 2 if shape.is_planar else 3)
    return result
