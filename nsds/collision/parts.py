"""Posed shapes and their supporting parts as small arrays on the stack; parts of balls and solids of revolution, in the world.

A posed shape has its kind, position, axes, sizes and the index of its block, see `nsds.collision.geometry`; a triangle has three
corners in the world, its normal and its number in place of the axes. A supporting part is what a shape has farthest in a direction: a
vertex, a line or a face, its corners counterclockwise from outside; edges are named by their number in it.
"""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.maths.vectors import dot, norm

KIND, CENTRE, AXES, SIZE, BLOCK = 0, 1, 4, 13, 16  # of a shape
PLACED = 17  # entries of it
CORNERS, NORMAL, NUMBER = 1, 10, 13  # of a triangle
FLAT_KIND = -1.0  # of a triangle
COUNT, PART_NUMBER, IS_FACE, PART_NORMAL, POINTS = 0, 1, 2, 3, 6  # of a part
MOST_CORNERS = 64  # of a part: of a face with more only every second, third, ... is used
PART = POINTS + 3 * MOST_CORNERS  # entries of it
LEVEL = 1e-4  # sine between an edge and the plane across a direction below which the whole edge is supporting
_STANDS = 0.7  # cosine between a cylinder's axis and a direction above which its end is the supporting part rather than its side


@tiny
def _on_side(shape, n, half, part):
    """Line along the axis of a shape, on its surface on the side of n, which is not zero."""
    across = shape[SIZE] / norm(n)
    part[COUNT], part[PART_NUMBER], part[IS_FACE] = 2, 0, 0.0
    for i in range(3):
        x, u = shape[CENTRE + i] + across * n[i], shape[AXES + 3 * i + 2]
        part[POINTS + i], part[POINTS + 3 + i] = x - half * u, x + half * u


@tiny
def _end(shape, beyond, side, around, part):
    """End of a cylinder at the distance ``beyond`` from the centre to the side along the axis, or base of a cone, as a polygon."""
    R, r = view(shape, AXES, 9), shape[SIZE]
    part[COUNT], part[PART_NUMBER], part[IS_FACE] = around, (1 if side > 0.0 else 2), 1.0
    for k in range(around):
        angle = side * 2.0 * math.pi * k / around
        x, y = r * math.cos(angle), r * math.sin(angle)
        for i in range(3):
            part[POINTS + 3 * k + i] = shape[CENTRE + i] + beyond * side * R[3 * i + 2] + R[3 * i] * x + R[3 * i + 1] * y
    for i in range(3):
        part[PART_NORMAL + i] = side * R[3 * i + 2]


@tiny
def _from_axis(shape, d, out):
    """Component of d across the z axis of a shape. Out: out (3,). Returns the component along it."""
    u = stack(3)
    for i in range(3):
        u[i] = shape[AXES + 3 * i + 2]
    along = dot(u, d)
    for i in range(3):
        out[i] = d[i] - along * u[i]
    return along


@tiny
def of_ball(shape, d, around, part):
    """Supporting point of a sphere."""
    _on_side(shape, d, 0.0, part)
    part[COUNT] = 1


@tiny
def of_capsule(shape, d, around, part):
    """Line on the side of a capsule, offset from its axis along d itself."""
    _on_side(shape, d, 0.5 * shape[SIZE + 1], part)


@kernel
def of_cylinder(shape, d, around, part):
    """End of a cylinder that stands along d, as a polygon, or the line on the side of one that lies."""
    out, half = stack(3), 0.5 * shape[SIZE + 1]
    cosine = _from_axis(shape, d, out)
    if abs(cosine) > _STANDS:
        _end(shape, half, math.copysign(1.0, cosine), around, part)
    else:
        _on_side(shape, out, half, part)


@kernel
def of_cone(shape, d, around, part):
    """Base of a cone, as a polygon, or the line from the rim to the tip on the side of d."""
    out, r, height = stack(3), shape[SIZE], shape[SIZE + 1]
    # 1. the base
    if _from_axis(shape, d, out) < -_STANDS:
        _end(shape, 0.25 * height, -1.0, around, part)
        return
    # 2. the line; where d points along the axis any side will do
    if norm(out) < LEVEL:
        for i in range(3):
            out[i] = shape[AXES + 3 * i]
    size = norm(out)
    part[COUNT], part[PART_NUMBER], part[IS_FACE] = 2, 0, 0.0
    for i in range(3):
        u = shape[AXES + 3 * i + 2]
        part[POINTS + i] = shape[CENTRE + i] - 0.25 * height * u + r / size * out[i]
        part[POINTS + 3 + i] = shape[CENTRE + i] + 0.75 * height * u
