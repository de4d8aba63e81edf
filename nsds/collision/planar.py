"""Contacts of shapes in the plane z = 0: disks, polygons and stadia with each other and with half planes.

Polygons and stadia are *outlines*: all points within a radius, 0 of a polygon, of a convex core with corners, two of a stadium. Where an
edge of one core faces an edge of the other, contacts are the corners of each above the other's edge, two at most: each is a corner
against an edge, whichever of the two edges is the reference, and its feature is the number of the corner, for the second shape plus
_CORNERS. Where a corner is nearest to a corner, that pair is a contact as well, with the number of the first shape's plus 2 _CORNERS.
"""

import math

from nsds._jit import kernel, stack, tiny
from nsds.collision.edge_on import WIDTH, add_normal, does_touch
from nsds.collision.frames import FIELDS, TINY, put
from nsds.maths.vectors import norm

_CORNERS = 1 << 20  # more than a shape has
_ALIKE = 1e-9  # fraction of the sizes by which an edge of the second shape must separate more to be preferred to one of the first
_WITHIN = 1e-7  # fraction of an edge by which a corner may lie beyond its end
_NEARER = 1.0 - 1e-9  # factor of a distance below which another pair is nearer by more than rounding


@tiny
def _turn(pose, s):
    """(cosine, sine) of the angle of shape s."""
    p, r = pose[7 * s + 3], pose[7 * s + 6]
    return p * p - r * r, 2.0 * p * r


@tiny
def _radius(size, s):
    """Radius about the core of an outline."""
    return size[3 * s + 1] if size[3 * s + 2] == 0.0 else 0.0


@tiny
def _n_corners(size, s):
    """Number of corners of the core of an outline."""
    return 2 if size[3 * s + 2] == 0.0 else int(size[3 * s + 2])


@tiny
def _corner(size, vertices, s, k):
    """(x, y) of corner k of an outline's core in its own axes; k is taken modulo their number."""
    n = _n_corners(size, s)
    k = k - n if k >= n else k + n if k < 0 else k
    if size[3 * s + 2] == 0.0:
        return (size[3 * s] - size[3 * s + 1]) * (2.0 * k - 1.0), 0.0
    at = 3 * (int(size[3 * s + 1]) + k)
    return vertices[at], vertices[at + 1]


@tiny
def _placed_corner(size, pose, vertices, s, k):
    """As `_corner`, in the world."""
    c, d = _turn(pose, s)
    x, y = _corner(size, vertices, s, k)
    return pose[7 * s] + c * x - d * y, pose[7 * s + 1] + d * x + c * y


@tiny
def _put(found, count, margin, feature, gap, nx, ny, x, y):
    """Adds a contact of normal (nx, ny) at (x, y) on the first shape; returns the number of contacts."""
    normal = stack(3)
    normal[0], normal[1], normal[2] = nx, ny, 0.0
    return put(found, count, margin, feature, gap, normal, x, y, 0.0)


@tiny
def disk_disk(size, pose, a, b, margin, found):
    """``gap = |x_a - x_b| - r_a - r_b``; y is the normal of disks with one centre."""
    nx, ny = pose[7 * a] - pose[7 * b], pose[7 * a + 1] - pose[7 * b + 1]
    distance, r = math.sqrt(nx * nx + ny * ny), size[3 * a]
    nx, ny = (nx / distance, ny / distance) if distance > TINY else (0.0, 1.0)
    return _put(found, 0, margin, 0.0, distance - r - size[3 * b], nx, ny, pose[7 * a] - r * nx, pose[7 * a + 1] - r * ny)


@tiny
def _height(pose, b, x, y):
    """(nx, ny, height of a point above half plane b)."""
    c, d = _turn(pose, b)
    return -d, c, c * (y - pose[7 * b + 1]) - d * (x - pose[7 * b])


@tiny
def disk_half_plane(size, pose, a, b, margin, found):
    """``gap = n . (x_a - x_b) - r``."""
    r = size[3 * a]
    nx, ny, height = _height(pose, b, pose[7 * a], pose[7 * a + 1])
    return _put(found, 0, margin, 0.0, height - r, nx, ny, pose[7 * a] - r * nx, pose[7 * a + 1] - r * ny)


@kernel
def outline_half_plane(size, pose, vertices, a, b, margin, found):
    """Contacts at the lowest corner and the lower of its neighbours: a third one never carries load."""
    # 1. lowest corner
    n, r, lowest, least, count = _n_corners(size, a), _radius(size, a), 0, math.inf, 0
    for k in range(n):
        x, y = _placed_corner(size, pose, vertices, a, k)
        height = _height(pose, b, x, y)[2]
        lowest, least = (k, height) if height < least else (lowest, least)
    # 2. the lower of its two neighbours
    second, least = -1, math.inf
    for step in range(-1, 2, 2):
        k = (lowest + step + n) % n
        x, y = _placed_corner(size, pose, vertices, a, k)
        height = _height(pose, b, x, y)[2]
        second, least = (k, height) if height < least else (second, least)
    # 3. contacts of both
    for end in range(2):
        k = lowest if end == 0 else second
        x, y = _placed_corner(size, pose, vertices, a, k)
        nx, ny, height = _height(pose, b, x, y)
        count = _put(found, count, margin, float(k), height - r, nx, ny, x - r * nx, y - r * ny)
    return count


@kernel
def disk_outline(size, pose, vertices, a, b, margin, found):
    """Signed distance of the centre to the core, less the radii; a centre inside the core leaves by the nearest edge."""
    # 1. centre of the disk in the axes of the outline
    c, d = _turn(pose, b)
    dx, dy = pose[7 * a] - pose[7 * b], pose[7 * a + 1] - pose[7 * b + 1]
    x, y, r = c * dx + d * dy, c * dy - d * dx, size[3 * a]
    nearest, inside, depth, nx, ny, mx, my = math.inf, True, -math.inf, 0.0, 1.0, 0.0, 1.0
    # 2. distance to each edge as a segment (outside), and height above its line (inside)
    for k in range(_n_corners(size, b)):
        px, py = _corner(size, vertices, b, k)
        qx, qy = _corner(size, vertices, b, k + 1)
        ex, ey, ux, uy = qx - px, qy - py, x - px, y - py
        length = math.sqrt(ex * ex + ey * ey)
        height = (ey * ux - ex * uy) / length  # above the edge, along its outward normal
        inside = inside and height < 0.0
        if height > depth:
            depth, mx, my = height, ey / length, -ex / length
        part = min(max((ux * ex + uy * ey) / (length * length), 0.0), 1.0)
        ux, uy = ux - part * ex, uy - part * ey
        distance = math.sqrt(ux * ux + uy * uy)
        if distance < nearest:
            nearest, nx, ny = distance, ux, uy
    # 3. outside: towards the closest point; inside: the normal of the edge with the least depth
    if inside or not nearest > TINY:
        nx, ny, nearest = mx, my, depth
    else:
        nx, ny = nx / nearest, ny / nearest
    # 4. back to the world
    nx, ny = c * nx - d * ny, d * nx + c * ny
    return _put(found, 0, margin, 0.0, nearest - r - _radius(size, b), nx, ny, pose[7 * a] - r * nx, pose[7 * a + 1] - r * ny)


@tiny
def _lowest_along(size, pose, vertices, s, nx, ny):
    """(lowest corner of a core along a direction of the world, its height)."""
    c, d = _turn(pose, s)
    ux, uy = c * nx + d * ny, c * ny - d * nx
    best, least = 0, math.inf
    for k in range(_n_corners(size, s)):
        x, y = _corner(size, vertices, s, k)
        height = ux * x + uy * y
        best, least = (k, height) if height < least else (best, least)
    return best, least + nx * pose[7 * s] + ny * pose[7 * s + 1]


@kernel
def _parting(size, pose, vertices, a, b):
    """(edge of the core of a with the largest separation from that of b, separation); negative where the cores overlap."""
    best, most = 0, -math.inf
    for k in range(_n_corners(size, a)):
        px, py = _placed_corner(size, pose, vertices, a, k)
        qx, qy = _placed_corner(size, pose, vertices, a, k + 1)
        length = math.sqrt((qx - px) ** 2 + (qy - py) ** 2)
        nx, ny = (qy - py) / length, (px - qx) / length
        height = _lowest_along(size, pose, vertices, b, nx, ny)[1] - (nx * px + ny * py)
        best, most = (k, height) if height > most else (best, most)
    return best, most


@tiny
def _half_width(size, pose, vertices, a, b, nx, ny):
    """Half of the smaller extent of two cores along a direction of the world."""
    least = math.inf
    for side in range(2):
        s = a if side == 0 else b
        low, high = _lowest_along(size, pose, vertices, s, nx, ny)[1], -_lowest_along(size, pose, vertices, s, -nx, -ny)[1]
        least = min(least, 0.5 * (high - low))
    return least


@tiny
def _facing(size, pose, vertices, s, nx, ny):
    """Edge of a core that faces most against a direction: the number of its first corner."""
    k = _lowest_along(size, pose, vertices, s, nx, ny)[0]
    x, y = _placed_corner(size, pose, vertices, s, k)
    slopes = stack(2)
    for side in range(2):
        px, py = _placed_corner(size, pose, vertices, s, k + 2 * side - 1)
        px, py = px - x, py - y
        slopes[side] = (px * nx + py * ny) / math.sqrt(px * px + py * py)
    return k - 1 if slopes[0] < slopes[1] else k


@kernel
def _edge_on(size, pose, vertices, one, other, edge, width, n):
    """Whether several edges separate two touching polygons as much as the best one, ``edge`` of ``one``.

    Out: n (3,), out of the one: between the normals of these edges, see `nsds.collision.edge_on`.
    """
    best, face, is_between, most = stack(3), stack(3), False, 0.0
    # edges of both polygons, beginning with the best one, with which the others are compared
    best[2], face[2], n[2] = 0.0, 0.0, 0.0
    for turn in range(2):
        shape, beyond, sense = (one, other, 1.0) if turn == 0 else (other, one, -1.0)
        for step in range(_n_corners(size, shape)):
            k = edge + step if turn == 0 else step  # the best comes first
            px, py = _placed_corner(size, pose, vertices, shape, k)
            qx, qy = _placed_corner(size, pose, vertices, shape, k + 1)
            length = math.sqrt((qx - px) ** 2 + (qy - py) ** 2)
            nx, ny = (qy - py) / length, (px - qx) / length
            height = _lowest_along(size, pose, vertices, beyond, nx, ny)[1] - (nx * px + ny * py)
            face[0], face[1] = sense * nx, sense * ny
            if turn == 0 and step == 0:
                most, best[0], best[1], n[0], n[1] = height, nx, ny, nx, ny
            else:
                is_between = add_normal(best, face, most - height, width, n) or is_between
    length = norm(n)
    n[0], n[1] = n[0] / length, n[1] / length
    return is_between


@tiny
def _turn_to(sense, n, beyond, found, count):
    """Sets the normal of all contacts of two polygons whose gap is at most ``beyond``."""
    for k in range(count):
        at = FIELDS * k
        if found[at + 1] <= beyond:
            found[at + 2], found[at + 3] = sense * n[0], sense * n[1]


@kernel
def outline_outline(size, pose, vertices, a, b, margin, found):
    """Corners of each core above the facing edge of the other, and the pair of corners nearest to each other."""
    # 1. separating edge, of the second shape only if it is better by more than rounding
    r_a, r_b = _radius(size, a), _radius(size, b)
    edge, parting = _parting(size, pose, vertices, a, b)
    edge_b, parting_b = _parting(size, pose, vertices, b, a)
    is_turned = parting_b > parting + _ALIKE * (size[3 * a] + size[3 * b])
    if max(parting, parting_b) - r_a - r_b > margin:
        return 0
    # 2. reference edge: start (px, py), tangent t, outward normal n; and the facing edge of the other shape
    edge = edge_b if is_turned else edge
    one, other = (b, a) if is_turned else (a, b)
    n_one, n_other = _n_corners(size, one), _n_corners(size, other)
    px, py = _placed_corner(size, pose, vertices, one, edge)
    qx, qy = _placed_corner(size, pose, vertices, one, edge + 1)
    length = math.sqrt((qx - px) ** 2 + (qy - py) ** 2)
    tx, ty = (qx - px) / length, (qy - py) / length
    nx, ny = ty, -tx
    facing = _facing(size, pose, vertices, other, nx, ny)
    # 3. ends of the facing edge in the axes of the reference edge
    along, height, ends, slack, nearest, count = stack(2), stack(2), stack(4), _WITHIN * length, math.inf, 0
    for end in range(2):
        x, y = _placed_corner(size, pose, vertices, other, facing + end)
        along[end], height[end] = tx * (x - px) + ty * (y - py), nx * (x - px) + ny * (y - py)
        ends[2 * end], ends[2 * end + 1] = x, y
    sign = 1.0 if is_turned else -1.0  # the normal points to a
    for end in range(2):  # corners of the other above the edge of the one
        if -slack <= along[end] <= length + slack:
            k = (facing + end + n_other) % n_other
            depth, nearest = height[end], min(nearest, height[end])
            shift = -r_a if is_turned else r_a - depth
            feature = float(k if is_turned else _CORNERS + k)
            x, y = ends[2 * end] + shift * nx, ends[2 * end + 1] + shift * ny
            count = _put(found, count, margin, feature, depth - r_a - r_b, sign * nx, sign * ny, x, y)
    low, high = min(along[0], along[1]), max(along[0], along[1])
    for end in range(2):  # corners of the one below the edge of the other
        at = length * end
        if low < at - slack and at + slack < high:
            depth = height[0] + (at - along[0]) / (along[1] - along[0]) * (height[1] - height[0])
            nearest = min(nearest, depth)
            k = (edge + end) % n_one
            shift = depth - r_a if is_turned else r_a
            feature = float(_CORNERS + k if is_turned else k)
            x, y = px + at * tx + shift * nx, py + at * ty + shift * ny
            count = _put(found, count, margin, feature, depth - r_a - r_b, sign * nx, sign * ny, x, y)
    # 4. polygons that touch edge on edge: common normal, see `nsds.collision.edge_on`
    if r_a + r_b == 0.0 and count > 0:
        n, most, half_width = stack(3), max(parting, parting_b), _half_width(size, pose, vertices, a, b, nx, ny)
        is_near = does_touch(most, half_width) and nearest <= most + WIDTH * half_width
        if is_near and _edge_on(size, pose, vertices, one, other, edge, WIDTH * half_width, n):
            _turn_to(sign, n, most + WIDTH * half_width, found, count)
            return count
    # 5. corner against corner, where the cores are apart
    if max(parting, parting_b) > -_ALIKE * (size[3 * a] + size[3 * b]):
        count = _put_corners(size, pose, vertices, a, b, edge, facing, is_turned, nearest, margin, found, count)
    return count


@kernel
def _put_corners(size, pose, vertices, a, b, edge, facing, is_turned, nearest, margin, found, count):
    """Adds the nearest pair of ends of two edges, if it is nearer than the contacts so far."""
    first, second = (facing, edge) if is_turned else (edge, facing)
    chosen, nx, ny, x, y = -1, 0.0, 0.0, 0.0, 0.0
    for pair in range(4):
        ax, ay = _placed_corner(size, pose, vertices, a, first + (pair & 1))
        bx, by = _placed_corner(size, pose, vertices, b, second + (pair >> 1))
        distance = math.sqrt((ax - bx) ** 2 + (ay - by) ** 2)
        if TINY < distance < _NEARER * nearest:
            chosen, nearest, nx, ny, x, y = first + (pair & 1), distance, (ax - bx) / distance, (ay - by) / distance, ax, ay
    if chosen < 0:
        return count
    n, r = _n_corners(size, a), _radius(size, a)
    return _put(
        found, count, margin, float(2 * _CORNERS + (chosen + n) % n), nearest - r - _radius(size, b), nx, ny, x - r * nx, y - r * ny
    )
