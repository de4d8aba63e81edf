"""Closest points of two solids whose rims, edges or vertices face each other: Newton's method for the optimality of the distance.

Along the normal n from b to a, p are the lowest points of a and q the highest of b, one or two of each: a vertex, a point of a rim, or both
ends of an edge or of a line on the side, which are equally far then:

    (1 - s) p_1(n) + s p_2(n) - (1 - t) q_1(n) - t q_2(n) = distance n,     n . (p_1 - p_2) = 0,     n . (q_1 - q_2) = 0,     |n| = 1

with s and t in [0, 1]. A solution whose distance is that along n of all points is the only one: the separation is concave in n. So is the
normal of a face that the lowest points of the other shape are above. Searches by support functions come near to it, as the square root of
their tolerance where a rim is one of both, and not even that where a line on the side is along an edge.
"""

import math
from typing import NamedTuple

from numpy.typing import NDArray

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.geometry import FACE, FACES, N_FACES, VERTICES
from nsds.collision.kinds import RIMMED, meridian
from nsds.collision.parts import AXES, BLOCK, CENTRE, FLAT_KIND, KIND, SIZE
from nsds.collision.support import radius, separation
from nsds.maths.dense import eliminate
from nsds.maths.vectors import cross, dot, times, times_transposed

_ROUNDS, _QUADRATIC = 12, 1e-9  # iterations; error, of the sizes, from which one more reaches rounding
_SAME, _ROUNDING = 1e-12, 1e-14  # of the sizes: distances that are equal, and those that differ by rounding
_NEAR, _LEVEL = 0.99, 0.15  # cosine to the first normal, at least; sine to it of what may be across the right one, at most
_ALIGNED = 1e-2  # sine between two lines that are nearly parallel, at most
_N = 6  # unknowns, at most: n, the distance, s, t
_POINT, _PAIR, _SQUARE = 12, 24, 36  # entries of a point and its derivative by n, of two of them, and of a matrix
_EDGES = 3  # of a polyhedron that are tried: those that are nearest to the closest point found


class Two(NamedTuple):
    """Two solids, and two points of each with their derivatives by n."""

    a: NDArray
    b: NDArray
    geometry: NDArray
    p: NDArray  # (PAIR,) of a
    q: NDArray  # (PAIR,) of b


@tiny
def _turned(shape, sense, r, along, n, out):
    """The point at the radius r and the height ``along`` of a shape that is farthest along sense n. Out: it, and its derivative by n."""
    length, m, u = 0.0, stack(3), stack(3)
    for i in range(3):
        u[i] = shape[AXES + 3 * i + 2]
    axial = dot(u, n)
    for i in range(3):
        m[i] = n[i] - axial * u[i]
        length += m[i] * m[i]
    length = max(math.sqrt(length), 1e-300)
    for i in range(3):
        m[i] /= length
    for i in range(3):
        out[i] = shape[CENTRE + i] + along * u[i] + sense * r * m[i]
        for k in range(3):
            out[3 + 3 * i + k] = sense * r * ((1.0 if i == k else 0.0) - u[i] * u[k] - m[i] * m[k]) / length


@tiny
def _points_of(shape, sense, n, out):
    """Both ends of the line of a shape that is farthest along sense n. Out: two points; those of a polyhedron are given, and stay.

    Returns a size of the shape.
    """
    if shape[BLOCK] > 0.0:
        return abs(out[0] - out[_POINT]) + abs(out[1] - out[_POINT + 1]) + abs(out[2] - out[_POINT + 2])
    r, low, s, high = meridian(int(shape[KIND]), view(shape, SIZE, 3))
    _turned(shape, sense, r, low, n, view(out, 0, _POINT))
    _turned(shape, sense, s, high, n, view(out, _POINT, _POINT))
    return shape[SIZE] + high - low


@kernel
def _iterate(two, firsts, numbers, n, shares):
    """Newton's method from n. In/out: n; out: shares (2,), s and t. Returns the distance of the points, NaN without a solution.

    firsts, numbers: which of the points of a and b is the first, and how many are used.
    """
    A, x, distance, (first_a, first_b), (many_a, many_b) = stack(_SQUARE), stack(_N), 0.0, firsts, numbers
    shares[0] = shares[1] = 0.5
    m = 4 + (1 if many_a == 2 else 0) + (1 if many_b == 2 else 0)
    for turn in range(_ROUNDS):
        # 1. weights of the points
        size = _points_of(two.a, -1.0, n, two.p) + _points_of(two.b, 1.0, n, two.q)
        for i in range(3 if turn == 0 else 0):
            distance += n[i] * (two.p[_POINT * first_a + i] - two.q[_POINT * first_b + i])
        for i in range(_N * _N):
            A[i] = 0.0
        for i in range(3):
            x[i] = -distance * n[i]
            A[_N * i + 3] = -n[i]
            A[_N * i + i] = -distance
            A[_N * 3 + i] = 2.0 * n[i]
        x[3] = dot(n, n) - 1.0
        # 2. equations, and their derivatives
        for side in range(2):
            points, sense, first = (two.p, 1.0, first_a) if side == 0 else (two.q, -1.0, first_b)
            many, column = (many_a, 4) if side == 0 else (many_b, m - 1)
            for e in range(many):
                at, weight = _POINT * ((first + e) % 2), sense
                if many == 2:
                    weight *= shares[side] if e == 1 else 1.0 - shares[side]
                for i in range(3):
                    x[i] += weight * points[at + i]
                    for k in range(3):
                        A[_N * i + k] += weight * points[at + 3 + 3 * i + k]
                    if many == 2:
                        change = 1.0 if e == 1 else -1.0
                        A[_N * i + column] += sense * change * points[at + i]
                        A[_N * column + i] += change * points[at + i]
                        x[column] = (x[column] if i > 0 or e > 0 else 0.0) + change * n[i] * points[at + i]
        # 3. the step
        error = 0.0
        for i in range(m):
            error = max(error, abs(x[i]))
        if not eliminate(m, _N, A, x):
            return math.nan
        for i in range(3):
            n[i] -= x[i]
        distance -= x[3]
        shares[0] -= x[4] if many_a == 2 else 0.0
        shares[1] -= x[m - 1] if many_b == 2 else 0.0
        if error <= _QUADRATIC * size:
            return distance
    return math.nan


@kernel
def _by_points(two, found, n, point):
    """Closest points among those of both solids; n: near the normal; found: a separation that they have at least.

    In/out: n (3,); out: point (3,) of a. Returns the distance, minus infinity where none of them are the closest.
    """
    a, b, d, shares, rounds = two.a, two.b, stack(3), stack(2), radius(two.a) + radius(two.b)
    size = _points_of(a, -1.0, n, two.p) + _points_of(b, 1.0, n, two.q)
    fall_a, fall_b = _fall(two.p, n), -_fall(two.q, n)
    is_aligned = _are_aligned(two.p, two.q)
    for turn in range(4):
        # both points of both first, but of lines nearly along each other ends of one: where these cross is nearly undetermined
        many = (turn + 1) % 4 if is_aligned else 3 - turn
        for first in range(4):
            many_a, many_b, first_a, first_b = 1 + many % 2, 1 + many // 2, first % 2, first // 2
            if (many_a == 2 and first_a == 1) or (many_b == 2 and first_b == 1):
                continue  # both points, in either order
            if not (_may_be(fall_a, many_a, first_a) and _may_be(fall_b, many_b, first_b)):
                continue
            for i in range(3):
                d[i] = n[i]
            distance = _iterate(two, (first_a, first_b), (many_a, many_b), d, shares) - rounds
            is_within = min(shares[0], shares[1]) >= -_SAME and max(shares[0], shares[1]) <= 1.0 + _SAME
            if not (distance >= found - _SAME * size and is_within and dot(d, n) > _NEAR) or abs(dot(d, d) - 1.0) > _SAME:
                continue
            _points_of(a, -1.0, d, two.p)
            if abs(separation(a, b, two.geometry, d) - distance) > _ROUNDING * (
                size + abs(a[CENTRE]) + abs(a[CENTRE + 1]) + abs(a[CENTRE + 2])
            ):
                continue
            for i in range(3):
                n[i] = d[i]
                along = two.p[_POINT * first_a + i]
                if many_a == 2:
                    along += shares[0] * (two.p[_POINT + i] - two.p[i])
                point[i] = along - radius(a) * n[i]
            return distance
    return -math.inf


@tiny
def _fall(points, n):
    """By how much the second of two points is above the first along n, per length between them."""
    height, square = 0.0, 1e-300
    for i in range(3):
        d = points[_POINT + i] - points[i]
        height, square = height + d * n[i], square + d * d
    return height / math.sqrt(square)


@tiny
def _are_aligned(p, q):
    """Whether the lines through two points each are nearly parallel."""
    u, v, w = stack(3), stack(3), stack(3)
    for i in range(3):
        u[i], v[i] = p[_POINT + i] - p[i], q[_POINT + i] - q[i]
    cross(u, v, w)
    return dot(w, w) <= _ALIGNED**2 * dot(u, u) * dot(v, v)


@tiny
def _may_be(rise, many, first):
    """Whether one of two points, or both, may be the lowest where the second is so much above the first along about the normal."""
    return abs(rise) <= _LEVEL if many == 2 else (rise >= -_LEVEL if first == 0 else rise <= _LEVEL)


@kernel
def _put_edge(polyhedron, geometry, x, which, out):
    """The edge of a polyhedron that is which-th nearest to x (3,), in the axes of the polyhedron. Out: its ends, two points in the world.

    They stay where they are as n changes. False: there is none.
    """
    block, R = int(polyhedron[BLOCK]), view(polyhedron, AXES, 9)
    first, faces, last, best, one, two = int(geometry[block + VERTICES]), int(geometry[block + FACES]), -1.0, -1.0, -1, -1
    for _ in range(which + 1):
        best, one = math.inf, -1
        for f in range(int(geometry[block + N_FACES])):
            corners, many = int(geometry[faces + FACE * f + 3]), int(geometry[faces + FACE * f + 4])
            for k in range(many):
                # each edge once: in the face that has its ends in the order of their numbers
                i, j = int(geometry[corners + k]), int(geometry[corners + (k + 1 if k + 1 < many else 0)])
                far = _square_from(view(geometry, first + 3 * i, 3), view(geometry, first + 3 * j, 3), x) if i < j else math.inf
                if last < far < best:
                    best, one, two = far, first + 3 * i, first + 3 * j
        last = best
    if one < 0:
        return False
    for e in range(2):
        times(R, view(geometry, one if e == 0 else two, 3), view(out, _POINT * e, 3))
        for i in range(_POINT):
            out[_POINT * e + i] = out[_POINT * e + i] + polyhedron[CENTRE + i] if i < 3 else 0.0
    return True


@tiny
def _square_from(p, q, x):
    """Squared distance of the line between two points from a third one."""
    along, square, far = 0.0, 0.0, 0.0
    for i in range(3):
        along, square = along + (q[i] - p[i]) * (x[i] - p[i]), square + (q[i] - p[i]) ** 2
    share = min(max(along / square, 0.0), 1.0)
    for i in range(3):
        far += (p[i] + share * (q[i] - p[i]) - x[i]) ** 2
    return far


@kernel
def _above(geometry, block, f, x, y):
    """Part of the line from x to y above face f of a polyhedron, in its axes, from a share s to one of t; s > t: none."""
    d, m, at, first, start, end = stack(3), stack(3), int(geometry[block + FACES]) + FACE * f, int(geometry[block + VERTICES]), 0.0, 1.0
    corners, many = int(geometry[at + 3]), int(geometry[at + 4])
    for k in range(many):
        p = first + 3 * int(geometry[corners + k])
        q = first + 3 * int(geometry[corners + (k + 1 if k + 1 < many else 0)])
        for i in range(3):
            d[i] = geometry[q + i] - geometry[p + i]
        cross(d, view(geometry, at, 3), m)
        from_x, from_y = 0.0, 0.0
        for i in range(3):
            from_x += m[i] * (x[i] - geometry[p + i])
            from_y += m[i] * (y[i] - geometry[p + i])
        if from_x > 0.0 and from_y > 0.0:
            return 1.0, 0.0
        if from_x > 0.0:
            start = max(start, from_x / (from_x - from_y))
        if from_y > 0.0:
            end = min(end, from_x / (from_x - from_y))
    return start, end


@tiny
def _put_local(polyhedron, points, e, out):
    """One of two points in the axes of a polyhedron. Out: out (3,)."""
    for i in range(3):
        out[i] = points[_POINT * e + i] - polyhedron[CENTRE + i]
    times_transposed(view(polyhedron, AXES, 9), out, out)


@kernel
def _across_face(two, is_first, found, n, point):
    """As `_by_points`, along the normal of a face that the lowest points of the other solid are above; is_first: a has the faces."""
    polyhedron, other, points, sense = (two.a, two.b, two.q, -1.0) if is_first else (two.b, two.a, two.p, 1.0)
    block, R, local, d, normal = int(polyhedron[BLOCK]), view(polyhedron, AXES, 9), stack(3), stack(3), stack(3)
    x, y = stack(3), stack(3)
    times_transposed(R, n, local)
    for f in range(int(two.geometry[block + N_FACES])):
        at = int(two.geometry[block + FACES]) + FACE * f
        if not sense * dot(view(two.geometry, at, 3), local) > _NEAR:
            continue
        times(R, view(two.geometry, at, 3), normal)
        # 1. the lowest points, one or two
        for i in range(3):
            d[i] = sense * normal[i]
        size = _points_of(other, -sense, d, points)
        rise = _fall(points, normal)
        low, high = 1 if rise < -_SAME else 0, 0 if rise > _SAME else 1
        _put_local(polyhedron, points, low, x)
        _put_local(polyhedron, points, high, y)
        s, t = _above(two.geometry, block, f, x, y)
        if s > t:
            continue
        # 2. they are at the distance of both solids
        gap = separation(two.a, two.b, two.geometry, d)
        if gap < found - _SAME * size:
            continue
        for i in range(3):
            n[i], start, end = d[i], points[_POINT * low + i], points[_POINT * high + i]
            point[i] = start + 0.5 * (s + t) * (end - start) + (gap * n[i] if is_first else 0.0)
        return gap
    return -math.inf


@kernel
def _across_end(two, is_first, found, n, point):
    """As `_by_points`, along the axis of the solid of revolution, of which the highest points of the other one are across the end.

    The points of the polyhedron, a if is_first, are those of its nearest edge.
    """
    turned, points, sense = (two.b, two.p, -1.0) if is_first else (two.a, two.q, 1.0)
    axis, d, x = stack(3), stack(3), stack(3)
    for i in range(3):
        axis[i] = turned[AXES + 3 * i + 2]
    outwards = -1.0 if sense * dot(axis, n) > 0.0 else 1.0
    low_radius, low, high_radius, high = meridian(int(turned[KIND]), view(turned, SIZE, 3))
    rim, end = (high_radius, high) if outwards > 0.0 else (low_radius, -low)
    if not abs(dot(axis, n)) > _NEAR or rim == 0.0:  # a tip
        return -math.inf
    # 1. one point, or the nearest to the axis of a line across it
    for i in range(3):
        d[i] = -sense * outwards * axis[i]
    rise = sense * _fall(points, d)
    share, along, square = (1.0 if rise > 0.0 else 0.0), 0.0, 0.0
    for i in range(3):
        u = points[_POINT + i] - points[i]
        along, square = along - (points[i] - turned[CENTRE + i]) * u, square + u * u
    if abs(rise) <= _SAME:
        share = min(max(along / square, 0.0), 1.0)
    height, far = 0.0, 0.0
    for i in range(3):
        x[i] = points[i] + share * (points[_POINT + i] - points[i])
        height += outwards * axis[i] * (x[i] - turned[CENTRE + i])
    for i in range(3):
        far += (x[i] - turned[CENTRE + i] - outwards * height * axis[i]) ** 2
    # 2. it is across the end, and at the distance of both solids
    gap, size = separation(two.a, two.b, two.geometry, d), rim + end
    is_highest = abs(height - end - gap) <= _ROUNDING * (size + abs(x[0]) + abs(x[1]) + abs(x[2]))
    if far > rim**2 or not is_highest or gap < found - _SAME * size:
        return -math.inf
    for i in range(3):
        n[i] = d[i]
        point[i] = x[i] if is_first else x[i] + gap * n[i]
    return gap


@kernel
def polished(a, b, geometry, gap, n, point):
    """Distance of two solids, one with a rim, by the closest points nearest to those found; minus infinity where these are none.

    The other one is a solid of revolution, too, or a box or hull. In/out: n (3,), from b to a, and point (3,) of a.
    """
    if a[KIND] == FLAT_KIND or b[KIND] == FLAT_KIND or ((1 << int(a[KIND])) | (1 << int(b[KIND]))) & RIMMED == 0:
        return -math.inf
    two, is_first, x = Two(a, b, geometry, stack(_PAIR), stack(_PAIR)), a[BLOCK] > 0.0, stack(3)
    found = separation(a, b, geometry, n) if gap <= 0.0 else -math.inf  # of solids that are apart there is only one solution
    if a[BLOCK] == 0.0 and b[BLOCK] == 0.0:
        return _by_points(two, found, n, point)
    # 1. across a face
    distance = _across_face(two, is_first, found, n, point)
    if distance > -math.inf:
        return distance
    # 2. across an end, or at an edge or corner
    polyhedron, points = (a, two.p) if is_first else (b, two.q)
    for i in range(3):
        x[i] = point[i] - (0.0 if is_first else gap * n[i]) - polyhedron[CENTRE + i]
    times_transposed(view(polyhedron, AXES, 9), x, x)
    for which in range(_EDGES):
        if not _put_edge(polyhedron, geometry, x, which, points):
            break
        distance = _across_end(two, is_first, found, n, point)
        if distance == -math.inf:
            distance = _by_points(two, found, n, point)
        if distance > -math.inf:
            return distance
    return -math.inf
