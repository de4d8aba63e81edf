"""Closest points of two solids whose rims, edges or vertices face each other: Newton's method for the optimality of the distance.

Along the normal n from b to a, p are the lowest points of a and q the highest of b, one or two of each: a vertex, a point of a rim, or both
ends of an edge or of a line on the side, which are equally far then:

    (1 - s) p_1(n) + s p_2(n) - (1 - t) q_1(n) - t q_2(n) = distance n,     n . (p_1 - p_2) = 0,     n . (q_1 - q_2) = 0,     |n| = 1

with s and t in [0, 1]. A solution whose distance is that along n of all points is the only one: the separation is concave in n. Searches by
support functions come near to it, as the square root of their tolerance where a rim is one of both.
"""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.kinds import RIMMED, SPANNED, meridian
from nsds.collision.parts import AXES, CENTRE, FLAT_KIND, KIND, SIZE
from nsds.collision.support import radius, separation
from nsds.maths.dense import invert_6
from nsds.maths.vectors import dot

_ROUNDS, _SAME, _NEAR = 12, 1e-12, 0.99  # iterations; of the sizes: distances that are equal; cosine to the first normal, at least
_N = 6  # unknowns, at most: n, the distance, s, t
_POINT, _PAIR, _SQUARE = 12, 24, 36  # entries of a point and its derivative by n, of two of them, and of a matrix


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
    """Both ends of the line of a shape that is farthest along sense n. Out: two points. Returns the size of the shape."""
    r, low, s, high = meridian(int(shape[KIND]), view(shape, SIZE, 3))
    _turned(shape, sense, r, low, n, view(out, 0, _POINT))
    _turned(shape, sense, s, high, n, view(out, _POINT, _POINT))
    return shape[SIZE] + high - low


@kernel
def _iterate(a, b, first_a, first_b, many_a, many_b, n, shares):
    """Newton's method from n. In/out: n; out: shares (2,), s and t. Returns the distance of the points, NaN without a solution."""
    p, q, A, inverse, x, distance = stack(_PAIR), stack(_PAIR), stack(_SQUARE), stack(_SQUARE), stack(_N), 0.0
    shares[0] = shares[1] = 0.5
    m = 4 + (1 if many_a == 2 else 0) + (1 if many_b == 2 else 0)
    for turn in range(_ROUNDS):
        # 1. weights of the points
        size = _points_of(a, -1.0, n, p) + _points_of(b, 1.0, n, q)
        for i in range(3 if turn == 0 else 0):
            distance += n[i] * (p[_POINT * first_a + i] - q[_POINT * first_b + i])
        for i in range(_N * _N):
            A[i] = 1.0 if i % (_N + 1) == 0 and i >= m * _N else 0.0
        for i in range(3):
            x[i] = -distance * n[i]
            A[_N * i + 3] = -n[i]
            A[_N * i + i] = -distance
            A[_N * 3 + i] = 2.0 * n[i]
        x[3] = dot(n, n) - 1.0
        # 2. equations, and their derivatives
        for side in range(2):
            points, sense, first = (p, 1.0, first_a) if side == 0 else (q, -1.0, first_b)
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
        if turn > 0 and error <= _SAME * size:
            return distance
        if not invert_6(A, inverse):
            return math.nan
        for k in range(m):
            for i in range(3):
                n[i] -= inverse[_N * i + k] * x[k]
            distance -= inverse[_N * 3 + k] * x[k]
            if many_a == 2:
                shares[0] -= inverse[_N * 4 + k] * x[k]
            if many_b == 2:
                shares[1] -= inverse[_N * (m - 1) + k] * x[k]
    return math.nan


@kernel
def polished(a, b, geometry, gap, n, point):
    """Distance of two solids of revolution, one with a rim, by the closest points nearest to those found; as given where these are none.

    In/out: n (3,), from b to a, and point (3,) of a.
    """
    both = (1 << int(a[KIND])) | (1 << int(b[KIND]))
    if a[KIND] == FLAT_KIND or b[KIND] == FLAT_KIND or both & ~SPANNED != 0 or both & RIMMED == 0:
        return gap
    p, d, shares, rounds = stack(_PAIR), stack(3), stack(2), radius(a) + radius(b)
    found = separation(a, b, geometry, n)
    for many in range(4):
        for first in range(4):
            many_a, many_b, first_a, first_b = 1 + many % 2, 1 + many // 2, first % 2, first // 2
            if (many_a == 2 and first_a == 1) or (many_b == 2 and first_b == 1):
                continue  # both points, in either order
            for i in range(3):
                d[i] = n[i]
            distance = _iterate(a, b, first_a, first_b, many_a, many_b, d, shares)
            size = _points_of(a, -1.0, d, p)
            is_within = min(shares[0], shares[1]) >= 0.0 and max(shares[0], shares[1]) <= 1.0
            if not (distance - rounds >= found - _SAME * size and is_within and dot(d, n) > _NEAR):
                continue
            if abs(separation(a, b, geometry, d) - (distance - rounds)) > 10.0 * _SAME * size:
                continue
            for i in range(3):
                n[i] = d[i]
                along = p[_POINT * first_a + i]
                if many_a == 2:
                    along += shares[0] * (p[_POINT + i] - p[i])
                point[i] = along - radius(a) * n[i]
            return distance - rounds
    return gap
