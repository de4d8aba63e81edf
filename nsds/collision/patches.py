"""Contacts between two facing parts of surfaces: corners of one clipped by the sides of the other, with persistent names."""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.features import FLAT, facing
from nsds.collision.frames import FIELDS, MOST, turn_round
from nsds.collision.parts import BLOCK, COUNT, FLAT_KIND, IS_FACE, KIND, MOST_CORNERS, PART_NORMAL, PART_NUMBER, POINTS
from nsds.collision.planes import STEEP
from nsds.collision.polygons import VERTEX, clip
from nsds.collision.support import lowest
from nsds.maths.vectors import cross, dot, norm

ROOM = 256  # contacts of two shapes before they are reduced
LISTED = FIELDS * ROOM
MOST_OF_PATCH = 2 * MOST_CORNERS + 1
_ALONG = 1e-2  # sine between two lines that lie alongside
_TILTED = 0.995  # cosine between two faces, and between them and the normal, from which they lie on each other with a tilt: 0.1 rad
_LOWER = 1e-7  # fraction of the smaller shape: by how much the closest points must be nearer than corners to be a contact of their own
_SAME = 1e-6  # fraction of the smaller shape: contacts nearer to each other are one
_LOWER_OF_CURVED, _ROUNDING = 1e-12, 1e-15  # the same of points and lines of curved surfaces, whose normals are exact; of coordinates
_ACROSS = 1e-9  # difference of such a normal from that of a face up to which it is that of the face
_ROUND = 32  # corners of a circular face on which another shape stands; 8 for one that stands
_NAMES = 1 << 10  # names of edges
_CUT = 1 << 9  # names from here on are those of cuts
_SECOND = 1 << 52  # feature: which of both faces is the reference
_KEPT = 1 << 16  # numbers of faces in a feature are taken modulo this
_LINE = POINTS + 6  # entries of a part that is a line
_HEIGHTS, _POLYGON = 2 * MOST_CORNERS + 2, VERTEX * (2 * MOST_CORNERS + 2)


@tiny
def add(found, n, margin, feature, gap, normal, point):
    """Adds a contact unless its gap exceeds the margin or there is no room; returns the number of contacts."""
    if not gap <= margin or n >= ROOM:
        return n
    at = n * FIELDS
    found[at], found[at + 1] = feature, gap
    for i in range(3):
        found[at + 2 + i], found[at + 5 + i] = normal[i], point[i]
    return n + 1


@tiny
def base_of(of_a, of_b):
    """First feature of the contacts between two parts."""
    return (of_a[PART_NUMBER] % _KEPT * _KEPT + of_b[PART_NUMBER] % _KEPT) * _NAMES * _NAMES


@kernel
def patch(a, b, of_a, of_b, geometry, n, gap, point, margin, small, found, count):
    """Adds the contacts of two shapes across a normal n from b to a; returns their number.

    In: of_a, of_b (PART,): the facing parts; gap, point: the closest points, a contact of their own unless corners are as near.
    """
    first, lowest_gap = count, math.inf
    base = base_of(of_a, of_b)
    turned = stack(3)
    for i in range(3):
        turned[i] = -n[i]
    # 1. a line on a curved side of one lies alongside an edge of the other
    count = _along_edge(a, b, of_a, of_b, n, margin, found, count)
    # 2. a stands on a face of b, b on one of a, two faces or a line and a face nearly so, or two lines lie alongside. A circular face is
    # refined before it clips
    if count > first:
        pass
    elif _stands_on(of_b, a, geometry, n, gap, _lower(b, a, of_a, small)):
        facing(b, geometry, n, _ROUND, of_b)
        count = clipped(of_a, of_b, base, margin, small, found, count)
    elif _stands_on(of_a, b, geometry, turned, gap, _lower(a, b, of_b, small)):
        facing(a, geometry, turned, _ROUND, of_a)
        count = clipped_by_first(of_a, of_b, base, margin, small, found, count)
    elif _lies_tilted(of_a, of_b, n):
        facing(b, geometry, n, _ROUND, of_b)
        count = _clipped_along(of_a, of_b, base, n, margin, small, found, count)
    elif _leans_on(of_a, of_b, turned):
        facing(a, geometry, turned, _ROUND, of_a)
        count = _clipped_along(of_b, of_a, _SECOND + base, turned, margin, small, found, count)
        turn_round(view(found, FIELDS * first, FIELDS * (ROOM - first)), count - first)
    elif of_a[COUNT] == 2 and of_b[COUNT] == 2:
        count = _side_by_side(of_a, of_b, base, n, margin, found, count)
    # 3. the closest points, where no corner is as near
    for k in range(first, count):
        lowest_gap = min(lowest_gap, found[FIELDS * k + 1])
    if not lowest_gap <= gap + _LOWER * small:
        count = add(found, count, margin, -1.0 - of_b[PART_NUMBER], gap, n, point)
    return count


@kernel
def clipped_by_first(of_a, of_b, base, margin, small, found, count):
    """As `clipped`, of the corners of part b within the sides of face a; normals are from b to a, points on a."""
    begin = count
    count = clipped(of_b, of_a, _SECOND + base, margin, small, found, count)
    turn_round(view(found, FIELDS * begin, FIELDS * (ROOM - begin)), count - begin)
    return count


@tiny
def _is_polyhedron(shape):
    """Whether a shape is a box or hull."""
    return shape[KIND] != FLAT_KIND and shape[BLOCK] > 0.0


@tiny
def _is_curved(shape, part):
    """Whether a part is a point or line of a curved surface."""
    return part[IS_FACE] == 0.0 and shape[KIND] != FLAT_KIND and shape[BLOCK] == 0.0


@tiny
def _lower(shape, other, part, small):
    """Distance by which the part of another shape may be farther along the normal of a face of a shape and stands on it."""
    is_exact = _is_polyhedron(shape) and _is_curved(other, part)
    return _LOWER_OF_CURVED * small + _ROUNDING * norm(view(part, POINTS, 3)) if is_exact else _LOWER * small


@kernel
def _stands_on(face, other, geometry, n, gap, lower):
    """Whether a face is across the normal and has, along its own normal, the same distance from the other shape."""
    normal, x = view(face, PART_NORMAL, 3), stack(3)
    if face[IS_FACE] == 0.0 or dot(normal, n) < FLAT:
        return False
    return lowest(other, geometry, normal, x) - dot(normal, view(face, POINTS, 3)) >= gap - lower


@kernel
def _along_edge(a, b, of_a, of_b, n, margin, found, count):
    """Adds the contacts of a line on a curved side with an edge alongside it, which has the normal; returns the number of contacts."""
    edge, turned, begin, base = stack(_LINE), stack(3), count, base_of(of_a, of_b)
    for i in range(3):
        turned[i] = -n[i]
    if _is_curved(a, of_a) and of_a[COUNT] == 2 and _is_polyhedron(b) and _put_edge(of_b, n, edge):
        return _side_by_side(of_a, edge, base, n, margin, found, count)
    if _is_curved(b, of_b) and of_b[COUNT] == 2 and _is_polyhedron(a) and _put_edge(of_a, turned, edge):
        count = _side_by_side(of_b, edge, _SECOND + base, turned, margin, found, count)
        turn_round(view(found, FIELDS * begin, FIELDS * (ROOM - begin)), count - begin)
    return count


@kernel
def _put_edge(face, n, edge):
    """The highest edge of a face along n. Out: edge, a line. False: n is the normal of the face, or the part is none."""
    off, count, top, best, least = 0.0, int(face[COUNT]), -math.inf, 0, math.inf
    for i in range(3):
        off = max(off, abs(face[PART_NORMAL + i] - n[i]))
    if face[IS_FACE] == 0.0 or off <= _ACROSS:
        return False
    # 1. the highest corner
    for k in range(count):
        height = dot(n, view(face, POINTS + 3 * k, 3))
        if height > top:
            top, best = height, k
    # 2. of both edges there the one that falls off less; its ends in the order of the corners
    for side in range(2):
        k = best if side == 0 else (best - 1 if best > 0 else count - 1)
        p, q = view(face, POINTS + 3 * k, 3), view(face, POINTS + 3 * (k + 1 if k + 1 < count else 0), 3)
        fall, square = 0.0, 1e-300
        for i in range(3):
            fall, square = fall + n[i] * (q[i] - p[i]), square + (q[i] - p[i]) ** 2
        if abs(fall) < least * math.sqrt(square):
            least = abs(fall) / math.sqrt(square)
            for i in range(3):
                edge[POINTS + i], edge[POINTS + 3 + i] = p[i], q[i]
    return True


@tiny
def _are_tilted(of_a, of_b, n):
    """Whether both parts are faces that lie on each other but for a small angle."""
    normal, other = view(of_a, PART_NORMAL, 3), view(of_b, PART_NORMAL, 3)
    are_faces = of_a[IS_FACE] != 0.0 and of_b[IS_FACE] != 0.0
    return are_faces and dot(normal, other) < -_TILTED and dot(normal, n) < -_TILTED and dot(other, n) > _TILTED


@tiny
def _lies_tilted(of_a, of_b, n):
    """Whether a face or line lies on a face but for a small angle."""
    return _are_tilted(of_a, of_b, n) or _leans_on(of_b, of_a, n)


@kernel
def beyond_edge(of_a, face, base, n, margin, small, found, count):
    """Adds the contacts on a face of a part that leans over its edge, where n is the normal; returns the number of contacts."""
    return _clipped_along(of_a, face, base, n, margin, small, found, count) if _lies_tilted(of_a, face, n) else count


@tiny
def _leans_on(face, line, n):
    """Whether a line lies on a face but for a small angle; n: from the face to the line."""
    if face[IS_FACE] == 0.0 or line[COUNT] != 2 or not dot(view(face, PART_NORMAL, 3), n) > _TILTED:
        return False
    along, length = 0.0, 0.0
    for i in range(3):
        d = line[POINTS + 3 + i] - line[POINTS + i]
        along, length = along + d * face[PART_NORMAL + i], length + d * d
    return along * along < (1.0 - _TILTED * _TILTED) * length


@kernel
def _clipped_along(of_a, of_b, base, n, margin, small, found, count):
    """As `clipped`, with gaps along the normal n of the closest points: of pairs of points of both, so that none is less than theirs.

    A plate that lies on another one with a tilt does not rock on the one point where their edges cross, nor a cone on an end of its side.
    """
    begin, cosine = count, dot(view(of_b, PART_NORMAL, 3), n)
    count = clipped(of_a, of_b, base, margin / cosine, small, found, count)
    for k in range(begin, count):
        found[FIELDS * k + 1] *= cosine
        for i in range(3):
            found[FIELDS * k + 2 + i] = n[i]
    return count


@kernel
def clipped(part, face, base, margin, small, found, count):
    """Adds the corners of a part within the sides of a face, with their heights above it; returns the number of contacts."""
    u, w, d, normal, x = stack(3), stack(3), stack(3), view(face, PART_NORMAL, 3), stack(3)
    polygon, other, heights = stack(_POLYGON), stack(_POLYGON), stack(_HEIGHTS)
    many, sides = int(part[COUNT]), int(face[COUNT])
    # 1. axes u, w in the plane of the face
    for i in range(3):
        u[i] = face[POINTS + 3 + i] - face[POINTS + i]
    length = norm(u)
    for i in range(3):
        u[i] /= length
    cross(normal, u, w)
    # 2. the part as a polygon in these axes
    for k in range(many):
        for i in range(3):
            d[i] = part[POINTS + 3 * k + i] - face[POINTS + i]
        at = VERTEX * k
        polygon[at], polygon[at + 1], polygon[at + 2], polygon[at + 3] = dot(d, u), dot(d, w), dot(d, normal), k
    size = many
    # 3. clip it by each side of the face, in turn
    for side in range(sides):
        p, q = POINTS + 3 * side, POINTS + 3 * (side + 1 if side + 1 < sides else 0)
        x0, y0, x1, y1 = 0.0, 0.0, 0.0, 0.0
        for i in range(3):
            start, end = face[p + i] - face[POINTS + i], face[q + i] - face[POINTS + i]
            x0, y0, x1, y1 = x0 + start * u[i], y0 + start * w[i], x1 + end * u[i], y1 + end * w[i]
        dx, dy = x1 - x0, y1 - y0
        length = max(math.hypot(dx, dy), 1e-300)
        for k in range(size):
            heights[k] = ((polygon[VERTEX * k] - x0) * dy - (polygon[VERTEX * k + 1] - y0) * dx) / length
        if many > 2:
            size = clip(polygon, size, heights, _SAME * small, _CUT + side, other)
        else:
            size = _shortened(polygon, size, heights, 2 + side, _SAME * small, other)
        for k in range(VERTEX * size):
            polygon[k] = other[k]
    # 4. contacts, named by the edges that meet at each corner
    for k in range(size):
        at, before = VERTEX * k, (0.0 if many <= 2 else polygon[VERTEX * (k - 1 if k > 0 else size - 1) + 3])
        for i in range(3):
            x[i] = face[POINTS + i] + polygon[at] * u[i] + polygon[at + 1] * w[i] + polygon[at + 2] * normal[i]
        feature = base + before % _NAMES * _NAMES + polygon[at + 3] % _NAMES
        count = add(found, count, margin, feature, polygon[at + 2], normal, x)
    return count


@tiny
def _between(polygon, p, q, at_p, at_q, out, to):
    """Intersection of the line from p to q with the side, by the signed distances at both ends."""
    part = at_p / (at_p - at_q)
    for i in range(3):
        out[to + i] = polygon[p + i] + part * (polygon[q + i] - polygon[p + i])


@kernel
def _shortened(line, size, beyond, name, tolerance, out):
    """The part of a line or point inside a side; an end that is cut off is named after the side. Returns its size."""
    kept = 0
    for k in range(size):
        kept += 1 if beyond[k] <= tolerance else 0
    if kept == 0:
        return 0
    for k in range(VERTEX * size):
        out[k] = line[k]
    if size == 2 and kept == 1:
        lost = 1 if beyond[0] <= tolerance else 0
        _between(line, 0, VERTEX, beyond[0], beyond[1], out, VERTEX * lost)
        out[VERTEX * lost + 3] = name
    return size


@kernel
def _side_by_side(of_a, of_b, base, n, margin, found, count):
    """Adds both ends of the common part of two lines that lie alongside; nothing for other lines."""
    u, v, x, y, d = stack(3), stack(3), stack(3), stack(3), stack(3)
    # 1. unit vectors; lines that cross have one closest point, which is not added here
    for i in range(3):
        u[i], v[i] = of_a[POINTS + 3 + i] - of_a[POINTS + i], of_b[POINTS + 3 + i] - of_b[POINTS + i]
    length, other = norm(u), norm(v)
    for i in range(3):
        u[i], v[i], d[i] = u[i] / length, v[i] / other, of_b[POINTS + i] - of_a[POINTS + i]
    cross(u, v, x)
    if norm(x) > _ALONG:
        return count
    # 2. common interval, in coordinates along the first line
    start, along = dot(d, u), dot(u, v)
    low, high = max(0.0, min(start, start + other * along)), min(length, max(start, start + other * along))
    if low >= high:
        return count
    # 3. a contact at each of its ends
    for end in range(2):
        s, gap = (low if end == 0 else high), 0.0
        for i in range(3):
            x[i] = of_a[POINTS + i] + s * u[i]
            y[i] = of_b[POINTS + i] + (s - start) / along * v[i]
            gap += n[i] * (x[i] - y[i])
        count = add(found, count, margin, base + end, gap, n, x)
    return count


@kernel
def _sorted_once(found, n):
    """Sorts contacts by feature and keeps the lowest of each; returns the number kept."""
    one, left = stack(FIELDS), 0
    for k in range(n):
        for i in range(FIELDS):
            one[i] = found[FIELDS * k + i]
        # 1. place by insertion
        at = left
        while at > 0 and found[FIELDS * (at - 1)] > one[0]:
            at -= 1
        # 2. a feature that is there already: the lower gap stays
        if at > 0 and found[FIELDS * (at - 1)] == one[0]:
            if one[1] < found[FIELDS * (at - 1) + 1]:
                for i in range(FIELDS):
                    found[FIELDS * (at - 1) + i] = one[i]
            continue
        for later in range(left - at):
            for i in range(FIELDS):
                found[FIELDS * (left - later) + i] = found[FIELDS * (left - later - 1) + i]
        for i in range(FIELDS):
            found[FIELDS * at + i] = one[i]
        left += 1
    return left


@tiny
def _distance(found, k, l, small):
    """Distance of two contacts; a difference of normals counts as one of position times the size of the smaller shape."""
    square = 0.0
    for i in range(3):
        square += (found[FIELDS * k + 5 + i] - found[FIELDS * l + 5 + i]) ** 2
        square += (small * (found[FIELDS * k + 2 + i] - found[FIELDS * l + 2 + i])) ** 2
    return math.sqrt(square)


@kernel
def thinned(found, n, small, out):
    """Reduces contacts to MOST: sorted, each place once; the lowest first, then one after the other the farthest from those chosen.

    Out: out (MOST FIELDS); returns their number.
    """
    # 1. one contact for each feature, and for each place
    n = _sorted_once(found, n)
    far, lowest_gap, chosen = stack(ROOM), math.inf, 0
    for k in range(n):
        far[k] = math.inf
        for l in range(k):
            if _distance(found, k, l, small) < _SAME * small:
                far[k] = -math.inf  # this place is there already
        lowest_gap = min(lowest_gap, found[FIELDS * k + 1])
    # 2. the first of the lowest, so that rounding among equal ones does not change the choice
    highest_low = math.inf
    for k in range(n):
        highest_low = min(highest_low, found[FIELDS * k + 1] if far[k] > 0.0 else math.inf)
    best, best_k = math.inf, n
    for k in range(n):
        if best_k == n and far[k] > 0.0 and found[FIELDS * k + 1] <= highest_low + _SAME * small:
            best_k = k
    # 3. farthest-point selection; height counts against a contact, so that high ones come last
    while best_k < n and chosen < MOST:
        for i in range(FIELDS):
            out[FIELDS * chosen + i] = found[FIELDS * best_k + i]
        chosen += 1
        for k in range(n):
            far[k] = min(far[k], _distance(found, k, best_k, small)) if far[k] > -math.inf else far[k]
        far[best_k] = -math.inf
        best, best_k = -math.inf, n
        for k in range(n):
            if far[k] > -math.inf and far[k] - STEEP * (found[FIELDS * k + 1] - lowest_gap) > best:
                best, best_k = far[k] - STEEP * (found[FIELDS * k + 1] - lowest_gap), k
    return chosen
