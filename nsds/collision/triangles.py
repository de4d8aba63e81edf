"""Cleaning of triangle meshes: degenerate, duplicate and inverted triangles, and neighbours across edges.

A triangle passes its edges counterclockwise, seen from outside. Where a surface continues, two triangles pass an edge in opposite senses.
"""

import numpy as np

_FLAT = 1e-12  # fraction of the square of the longest edge: triangles of no larger area are degenerate
_HOLLOW = 1e-9  # fraction of the cube of its extent: a surface of no larger volume encloses none


class Edges:
    """Edges of triangles (k, 3): starts and ends (3 k,) in the order of passing; edge (3 k,), their numbers; count, how often each occurs.

    sense (3 k,) is 1 where an edge is passed from the smaller vertex to the larger, else -1; balance, the sum over each edge, is 0 where a
    surface is closed.
    """

    def __init__(self, triangles):
        self.starts, self.ends = triangles.ravel(), np.roll(triangles, -1, axis=1).ravel()
        low, high = np.minimum(self.starts, self.ends), np.maximum(self.starts, self.ends)
        _, self.edge, self.count = np.unique(low * (1 + triangles.max()) + high, return_inverse=True, return_counts=True)
        self.sense = np.where(self.starts == low, 1, -1)
        self.balance = np.bincount(self.edge, self.sense).astype(np.int64)

    def pairs(self):
        """(one, other): the places in the list of the edges that are passed twice."""
        order = np.argsort(self.edge, kind="stable")  # those of one edge lie side by side
        first = (np.cumsum(self.count) - self.count)[self.count == 2]
        return order[first], order[first + 1]


def across_of(vertices, triangles):
    """Normals of triangles (k, 3), as long as twice their areas."""
    corners = vertices[triangles]
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


def mended(vertices, triangles):
    """Distinct triangles with an area, with one vertex for each position; inner walls between solids are removed.

    The neighbour of a degenerate triangle whose middle corner is on an edge is divided there, so that a closed surface stays closed.
    """
    # 1. one vertex for each position; -0.0 + 0.0 is 0.0, so that both zeros are the same one
    _, first, number = np.unique(vertices + 0.0, axis=0, return_index=True, return_inverse=True)
    triangles = first[number.reshape(-1)][triangles]
    triangles = triangles[(triangles != np.roll(triangles, 1, axis=1)).all(axis=1)]
    # 2. degenerate triangles
    sound = _has_area(vertices, triangles)
    if not sound.all():
        triangles = _divided(vertices, triangles[sound], triangles[~sound])
    # 3. duplicates, compared with the least corner first; the order of the rest stays
    least = triangles.argmin(axis=1, keepdims=True) if len(triangles) else np.zeros((0, 1), np.int64)
    rolled = np.take_along_axis(triangles, (least + np.arange(3)) % 3, axis=1)
    triangles = triangles[np.sort(np.unique(rolled, axis=0, return_index=True)[1])]
    return triangles[~_is_surplus(triangles)]


def _has_area(vertices, triangles):
    corners = vertices[triangles]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1, initial=0.0)
    return np.linalg.norm(across_of(vertices, triangles), axis=1) > _FLAT * longest**2


def _divided(vertices, triangles, flat):
    """The triangles, divided at the middle corner of a degenerate one that fills the slit beside an edge."""
    # 1. triangles that pass each edge, by direction
    rows, owner = [tuple(t) for t in triangles.tolist()], {}
    for number, row in enumerate(rows):
        for i in range(3):
            owner.setdefault((row[i], row[i - 2]), []).append(number)
    # 2. until a sweep changes nothing: a division can open the edge that the next degenerate triangle needs
    left, n_left = [tuple(t) for t in flat.tolist()], -1
    while len(left) != n_left:
        n_left, waiting = len(left), []
        for row in left:
            lengths = [np.linalg.norm(vertices[row[i - 2]] - vertices[row[i]]) for i in range(3)]
            i = int(np.argmax(lengths))
            # longest edge, from a to b, with the middle corner between
            a, b, middle = row[i], row[i - 2], row[i - 1]
            if len(owner.get((b, a), ())) <= len(owner.get((a, b), ())):  # nothing is open there, yet
                waiting.append(row)
                continue
            # 3. divide the triangle across that edge in two
            number = owner[b, a].pop()
            top = next(corner for corner in rows[number] if corner not in (a, b))
            owner[a, top].remove(number)
            owner[a, top].append(len(rows))
            for edge, whose in (((b, middle), number), ((middle, top), number), ((middle, a), len(rows)), ((top, middle), len(rows))):
                owner.setdefault(edge, []).append(whose)
            rows[number] = (b, middle, top)
            rows.append((middle, a, top))
        left = waiting
    return np.array(rows, np.int64).reshape(-1, 3)


def _is_surplus(triangles):
    """Which triangles occur in both orientations, of which one, or both, do not belong to a surface.

    One, where the other continues its neighbours; both in walls that end at others, as between solids that lie face to face.
    """
    if not len(triangles):
        return np.zeros(0, bool)
    # 1. pairs of triangles with the same corners
    _, same, count = np.unique(np.sort(triangles, axis=1), axis=0, return_inverse=True, return_counts=True)
    is_double = (count == 2)[same.reshape(-1)]
    if not is_double.any():
        return is_double
    # 2. walls: connected sets of doubles; a wall with a free rim is a plate, one that ends at others is inside
    edges = Edges(triangles)
    doubles = np.bincount(edges.edge, np.repeat(is_double, 3)).astype(np.int64)
    of_wall = np.repeat(is_double, 3)
    wall = _components(len(triangles), np.flatnonzero(of_wall) // 3, edges.edge[of_wall])
    ends_free, ends_at_others = of_wall & ((doubles == 2) & (edges.count == 2))[edges.edge], of_wall & (edges.count > doubles)[edges.edge]
    walls = np.setdiff1d(wall[np.flatnonzero(ends_at_others) // 3], wall[np.flatnonzero(ends_free) // 3])
    # 3. of each pair the one that continues more neighbours stays; without any, both go if they are of an inner wall
    fits = (edges.balance[edges.edge] == -edges.sense).reshape(-1, 3).sum(axis=1)
    most = np.zeros(len(count), np.int64)
    np.maximum.at(most, same.reshape(-1), fits)
    goes_on = most[same.reshape(-1)]
    return is_double & np.where(goes_on > 0, fits < goes_on, np.isin(wall, walls))


def _components(n, members, groups):
    """Connected components, named by their least member, of n items: members[i] belongs to groups[i], and a group is connected."""
    label, n_groups = np.arange(n), 1 + groups.max(initial=-1)
    # label propagation with pointer jumping: the number of sweeps grows with the logarithm of the diameter
    while True:
        least = np.full(n_groups, n)
        np.minimum.at(least, groups, label[members])
        new = label.copy()
        np.minimum.at(new, label[members], least[groups])
        np.minimum.at(new, members, least[groups])
        new = new[new]
        if (new == label).all():
            return label
        label = new


def turned(vertices, triangles):
    """Triangles oriented against most, by area, of the surface that they continue (k,); none of a one-sided surface."""
    edges, n = Edges(triangles), len(triangles)
    one, other = edges.pairs()
    is_against = edges.sense[one] == edges.sense[other]
    if not is_against.any():
        return np.zeros(n, bool)
    # each triangle as it is, and turned, n later: which of them go together
    a, b = one // 3, other // 3
    members = np.concatenate([a, b + n * is_against, a + n, b + n * ~is_against])
    label = _components(2 * n, members, np.tile(np.arange(a.size), 4) + np.repeat([0, a.size], 2 * a.size))
    # the orientation of the larger area wins in each component; equal areas by number
    weight = np.bincount(label[:n], np.linalg.norm(across_of(vertices, triangles), axis=1), 2 * n)
    here, there = label[:n], label[n:]
    return (weight[here] < weight[there]) | ((weight[here] == weight[there]) & (here > there))


def is_inside_out(vertices, triangles):
    """Triangles (k,) of closed surfaces that enclose a negative volume, except hollows in others."""
    # 1. closed components and their signed volumes
    edges = Edges(triangles)
    part = _components(len(triangles), np.arange(3 * len(triangles)) // 3, edges.edge)
    parts, part = np.unique(part, return_inverse=True)
    is_closed = np.bincount(part, np.abs(edges.balance)[edges.edge].reshape(-1, 3).sum(axis=1)) == 0
    volume = np.zeros(len(parts))
    corners = vertices[triangles] - vertices[triangles[:, 0]].mean(axis=0)
    np.add.at(volume, part, np.linalg.det(corners) / 6)
    size = np.ptp(corners.reshape(-1, 3), axis=0).max()
    is_closed &= abs(volume) > _HOLLOW * size**3
    # 2. the sign of the whole decides what is outside
    sense = np.where(is_closed & (volume[is_closed].sum() < 0), -1, 1)
    # 3. a component of the other sign is a hollow if an odd number of others is around it, by winding numbers
    for p in np.flatnonzero(is_closed & (sense * volume < 0)):
        others = is_closed[part] & (part != p)
        around = _winding(vertices[triangles[others]] - vertices[triangles[part == p][0, 0]]) * sense[part[others]]
        if round(around.sum()) % 2 == 0:
            sense[p] *= -1
    return sense[part] < 0


def _winding(corners):
    """Solid angles of triangles about the origin, as fractions of the full one (van Oosterom and Strackee 1983)."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    below = la * lb * lc + (a * b).sum(axis=1) * lc + (b * c).sum(axis=1) * la + (c * a).sum(axis=1) * lb
    return np.arctan2(np.linalg.det(corners), below) / (2 * np.pi)


def beyond(vertices, triangles, normals, edges):
    """The triangle beyond each edge (k, 3), -1 if there is none: of several the first outside in the sense of turning about the edge.

    normals (k, 3) are unit vectors; edges: `Edges` of the triangles.
    """
    # 1. edges of two triangles: the other one, if it continues the surface
    result = np.full(triangles.size, -1)
    one, other = edges.pairs()
    goes_on = edges.sense[one] != edges.sense[other]
    one, other = one[goes_on], other[goes_on]
    result[one], result[other] = other // 3, one // 3
    # 2. edges of more: the least angle about the edge, on the outer side
    many = np.flatnonzero((edges.count > 2)[edges.edge])
    many = many[np.argsort(edges.edge[many], kind="stable")]
    for group in np.split(many, np.flatnonzero(np.diff(edges.edge[many])) + 1):
        for here in group:
            others = group[edges.sense[group] != edges.sense[here]]
            if not others.size:
                continue
            along, n = vertices[edges.ends[here]] - vertices[edges.starts[here]], normals[here // 3]
            inwards = -np.cross(normals[others // 3], along)  # they pass the edge in the opposite sense
            angle = np.arctan2(inwards @ n, inwards @ np.cross(n, along / np.linalg.norm(along)))
            result[here] = others[np.argmin(np.where(angle > 1e-9, angle, angle + 2 * np.pi))] // 3
    return result.reshape(-1, 3)
