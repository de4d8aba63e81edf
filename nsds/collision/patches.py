"""Contacts between two parts of surfaces that look at each other: corners of one clipped by the sides of the other, with stable names."""

import numpy as np

from nsds.collision.frames import MOST
from nsds.collision.planes import STEEP

FLAT = 1.0 - 5e-7  # cosine between the normal of a contact and that of a face on which it may be
_ALONG = 1e-2  # sine between two lines that lie along each other
_LOWER = 1e-7  # of the smaller shape: how much nearer the closest points must be than corners are to be a contact of their own
_SAME = 1e-6  # of the smaller shape: contacts that are nearer to each other are one
_ROUND = 32  # corners of a round face that others stand on; 8 of one that stands
_NAMES = 10  # bits of the name of an edge
_SECOND = 1 << 52  # feature: which of both faces is stood on
_KEPT = 1 << 16  # numbers of faces in a feature are counted up to there


def patch(a, b, n, closest, margin, small):
    """Contacts of two shapes across a normal from b to a.

    Parameters
    ----------
    a, b : `nsds.collision.facing.Placed` or `nsds.collision.facing.Facing`
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
    found, base = [], (of_a.number % _KEPT * _KEPT + of_b.number % _KEPT) << 2 * _NAMES
    if closest is None or _stands_on(of_b, a, n, closest[0], small):
        face = b.facing(n, _ROUND)
        for point, height, name in _clipped(of_a.points, face, small):
            found.append((base + name, height, face.normal, point))
    elif _stands_on(of_a, b, -n, closest[0], small):
        face = a.facing(-n, _ROUND)
        for point, height, name in _clipped(of_b.points, face, small):
            found.append((_SECOND + base + name, height, -face.normal, point - height * face.normal))
    elif len(of_a.points) == 2 and len(of_b.points) == 2:
        found = _side_by_side(of_a.points, of_b.points, n)
    found = [one for one in found if one[1] <= margin]
    if closest is not None and closest[0] <= margin and not any(gap <= closest[0] + _LOWER * small for _, gap, *_ in found):
        found.append((-1 - of_b.number, closest[0], n, closest[1]))
    return found


def _stands_on(face, other, n, gap, small):
    """Whether a face is across a normal out of it, and as far from the other shape along its own as along that one."""
    if face.normal is None or face.normal @ n < FLAT:
        return False
    return other.lowest(face.normal) - face.normal @ face.points[0] >= gap - _LOWER * small


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
        polygon = _cut(polygon, beyond, (1 << _NAMES - 1) + i) if len(points) > 2 else _shortened(polygon, beyond, i, _SAME * small)
    for k, (u, v, height, name) in enumerate(polygon):
        before = polygon[k - 1][3] if len(points) > 2 else 0
        yield face.points[0] + np.array([u, v, height]) @ axes, height, (before % (1 << _NAMES) << _NAMES) + name % (1 << _NAMES)


def _cut(polygon, beyond, name):
    """The part of a polygon that is not beyond a side; the cut is an edge of that name (Sutherland and Hodgman)."""
    result = []
    for i, p in enumerate(polygon):
        j = (i + 1) % len(polygon)
        if beyond[i] <= 0:
            result.append(p)
        if (beyond[i] <= 0) != (beyond[j] <= 0):
            result.append((*_between(p, polygon[j], beyond[i], beyond[j]), name if beyond[i] <= 0 else p[3]))
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
    return [(end, n @ (x - y), n, x) for end, (x, y) in enumerate(points)]


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
