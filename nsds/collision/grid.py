"""Cell lists of balls of any size: one grid for each power of two of the diameters, its cells as large as its largest ball.

Cells are listed by counting sort. A grid is stored densely if memory suffices; the rows of a larger one are hashed,
so that memory is linear in the number of balls wherever they are. A ball searches in each grid the cells whose balls it could touch.
"""

import math
from typing import NamedTuple

from nsds._jit import kernel, tiny, view
from nsds.collision.frames import TINY, WORLD
from nsds.collision.groups import groups_meet
from nsds.collision.kinds import bound

LEVELS = 32
REALS = 8  # per level: origin (3), 1 / cell, largest radius, upper corner until the cells are laid out (3)
WORDS = 8  # per level: balls, first entry, first slot, slots, n_x, n_y, n_z, is hashed
LIMIT = 256  # neighbours of one ball that are gathered; beyond, all shapes are tested
_FARTHEST = float(1 << 40)  # largest number of cells of one grid along one axis


def slots(ns):
    """Upper bound of the stored cells of the grids of ns balls."""
    return 4 * ns + 8 * LEVELS


@kernel
def measure(kind, size, pose, reach, radius, unbounded):
    """Radii of the balls that contain the shapes and their reach, rounded up.

    Infinite for an unbounded shape, -1 where the position is not finite. Returns (number of unbounded shapes, largest finite radius).
    Out: radius (ns,); unbounded (ns,), the numbers of the unbounded shapes.
    """
    count, largest = 0, 0.0
    for s in range(kind.size):
        # rounding: relative to the radius, and to the coordinates, whose differences are computed later
        far = abs(pose[7 * s]) + abs(pose[7 * s + 1]) + abs(pose[7 * s + 2])
        r = (bound(kind, size, s) + reach[s]) * (1.0 + 1e-12) + 4e-15 * far
        if not far < math.inf:
            radius[s] = -1.0
        elif r < math.inf:
            radius[s] = r
            largest = max(largest, r)
        else:
            radius[s], unbounded[count] = math.inf, s
            count += 1
    return count, largest


@tiny
def _level(r, top):
    """Level of a radius, 0 for the largest: how many powers of two it is below the exponent ``top``."""
    return min(max(top - math.frexp(r)[1], 0), LEVELS - 1)


@kernel
def _extents(pose, radius, top, level, reals, words):
    """Level of each ball; for each level its number of balls, lower corner, largest radius and, for now, upper corner. Out: level (ns,)."""
    # 1. empty levels
    for k in range(LEVELS):
        words[WORDS * k] = 0
        for i in range(3):
            reals[REALS * k + i], reals[REALS * k + 5 + i] = math.inf, -math.inf
        reals[REALS * k + 4] = 0.0
    # 2. count and bound; the level of a radius equal to the previous one is reused
    last, k = -1.0, 0
    for s in range(radius.size):
        r = radius[s]
        if 0.0 <= r < math.inf:
            if r != last:
                k, last = _level(r, top), r
            level[s] = k
            words[WORDS * k] += 1
            at = REALS * k
            reals[at + 4] = max(reals[at + 4], r)
            for i in range(3):
                x = pose[7 * s + i]
                reals[at + i], reals[at + 5 + i] = min(reals[at + i], x), max(reals[at + 5 + i], x)


@kernel
def _lay_out(reals, words, number):
    """Cells of the levels that have balls, compacted to the front; returns (number of levels, number of slots). Out: number (LEVELS,)."""
    n_levels, n_slots, n_entries = 0, 0, 0
    for k in range(LEVELS):
        balls = words[WORDS * k]
        if balls > 0:
            # 1. compact number of this level; reading index ahead of the writing one, so that it is done in place
            number[k] = n_levels
            source, at, to = REALS * k, REALS * n_levels, WORDS * n_levels
            n_levels += 1
            # 2. slots: a power of two, at least twice the balls, so that a hash is a mask
            inverse, cells = 1.0 / max(2.0 * reals[source + 4], TINY), 1.0
            size = 8
            while size < 2 * balls:
                size *= 2
            words[to], words[to + 1], words[to + 2], words[to + 3] = balls, n_entries, n_slots, size
            # 3. cells along each axis, as large as the largest ball, and the origin
            for i in range(3):
                along = min(math.floor((reals[source + 5 + i] - reals[source + i]) * inverse) + 1.0, _FARTHEST)
                words[to + 4 + i] = int(along)
                cells *= along
                reals[at + i] = reals[source + i]
            reals[at + 3], reals[at + 4] = inverse, reals[source + 4]
            # 4. more cells than slots: rows are hashed
            words[to + 7] = 1 if cells > size else 0
            n_slots, n_entries = n_slots + size, n_entries + balls
    return n_levels, n_slots


@tiny
def cell(x, origin, inverse, number):
    """Cell of a coordinate, from 0 to number - 1; coordinates beyond belong to the last."""
    return int(min(max(math.floor((x - origin) * inverse), 0.0), float(number - 1)))


@tiny
def row_slot(words, at, j, k):
    """Slot of the first cell of row (j, k), before reduction to the number of slots."""
    if words[at + 7] == 0:
        return (k * words[at + 5] + j) * words[at + 4]
    mixed = (j * 6364136223846793005 + k * 1442695040888963407) ^ (k << 21)
    return (mixed ^ (mixed >> 32)) & 0x7FFFFFFF


@kernel
def build(pose, body, largest, v):
    """Lists the balls by their cells (counting sort); returns the number of grids.

    In: v.radius. Out: reals, words: the grids; begin (slots + 1): first entry of each cell; key: numbers of the balls in the order of the
    cells, plus ns for those of the world; packed. Work: kept.
    """
    radius, reals, words, level, begin, key, packed = v.radius, v.reals, v.words, v.kept, v.begin, v.key, v.packed
    ns, number = radius.size, view(begin, 0, LEVELS)
    # 1. levels and their cells
    _extents(pose, radius, math.frexp(largest)[1], level, reals, words)
    n_levels, n_slots = _lay_out(reals, words, number)
    for s in range(ns):
        if 0.0 <= radius[s] < math.inf:
            level[s] = number[level[s]]
    # 2. slot of each ball, and the number of balls in each slot, counted one entry later
    for k in range(n_slots + 1):
        begin[k] = 0
    for s in range(ns):
        if 0.0 <= radius[s] < math.inf:
            at, to = REALS * level[s], WORDS * level[s]
            i = cell(pose[7 * s], reals[at], reals[at + 3], words[to + 4])
            j = cell(pose[7 * s + 1], reals[at + 1], reals[at + 3], words[to + 5])
            k = cell(pose[7 * s + 2], reals[at + 2], reals[at + 3], words[to + 6])
            level[s] = words[to + 2] + ((row_slot(words, to, j, k) + i) & (words[to + 3] - 1))
            begin[level[s] + 1] += 1
    # 3. prefix sum: first entry of each slot
    for k in range(n_slots):
        begin[k + 1] += begin[k]
    # 4. distribute the balls; positions are packed beside each other, since the search reads them in this order
    for s in range(ns):
        if 0.0 <= radius[s] < math.inf:
            at = begin[level[s]]
            begin[level[s]] = at + 1
            key[at] = s + ns if body[s] == WORLD else s
            packed[4 * at], packed[4 * at + 1], packed[4 * at + 2] = pose[7 * s], pose[7 * s + 1], pose[7 * s + 2]
            packed[4 * at + 3] = radius[s]
    # 5. restore the first entries
    for k in range(n_slots, 0, -1):
        begin[k] = begin[k - 1]  # each had moved on to the end of its cell
    begin[0] = 0
    return n_levels


@tiny
def meet(shapes, a, b):
    """Whether shapes a and b may touch: they are of different bodies, and their groups are tested."""
    return shapes.body[a] != shapes.body[b] and groups_meet(shapes.group[a], shapes.group[b], shapes.mask)


class _Ball(NamedTuple):
    """Ball of the shape whose neighbours are looked for."""

    shape: int
    x: float
    y: float
    z: float
    r: float


class _Row(NamedTuple):
    """Entries of a row of cells, from first to last; only: the slots have others too, those of the row (j, k) count."""

    first: int
    last: int
    only: bool
    j: int
    k: int


@tiny
def _scan(ball, entries, grid, words, shapes, v, near):
    """Adds the neighbours of a ball among the entries of a row. In/out: near."""
    packed, key, ns = v.packed, v.key, v.radius.size
    (a, x, y, z, r), (first, last, only, j, k) = ball, entries
    for e in range(first, last):
        at = 4 * e
        dx, dy, dz, reach = packed[at] - x, packed[at + 1] - y, packed[at + 2] - z, packed[at + 3] + r
        if (dx * dx + dy * dy + dz * dz <= reach * reach) & (key[e] > a):
            b = key[e] if key[e] < ns else key[e] - ns
            if meet(shapes, a, b) and (
                not only
                or (
                    cell(packed[at + 1], grid[1], grid[3], words[5]) == j  # two rows may share cells
                    and cell(packed[at + 2], grid[2], grid[3], words[6]) == k
                )
            ):
                _append(near, b)


@tiny
def _append(near, b):
    near[0] += 1
    if near[0] <= LIMIT:
        near[near[0]] = b


@tiny
def _look(ball, grid, words, shapes, v, near):
    """Adds the neighbours of a ball in one grid, row by row, or over the whole grid if that is cheaper. In/out: near."""
    # 1. range of cells, one ball and rounding farther on each side
    _, x, y, z, r = ball
    size, wide = words[3], r + grid[4]
    i0, i1 = cell(x - wide - _off(grid[0]), grid[0], grid[3], words[4]), cell(x + wide + _off(grid[0]), grid[0], grid[3], words[4])
    j0, j1 = cell(y - wide - _off(grid[1]), grid[1], grid[3], words[5]), cell(y + wide + _off(grid[1]), grid[1], grid[3], words[5])
    k0, k1 = cell(z - wide - _off(grid[2]), grid[2], grid[3], words[6]), cell(z + wide + _off(grid[2]), grid[2], grid[3], words[6])
    # 2. the whole grid where that is less than the rows
    rows = float(j1 - j0 + 1) * float(k1 - k0 + 1)
    whole = rows > words[0] or rows * float(i1 - i0 + 1) > size
    if whole:
        j1, k1 = j0, k0
    hashed = words[7] != 0 and not whole
    # 3. row by row; a hashed row may share its slots with another, so that cells are compared
    for k in range(k0, k1 + 1):
        for j in range(j0, j1 + 1):
            start = (row_slot(words, 0, j, k) + i0) & (size - 1)
            end = start + i1 - i0 + 1
            for turn in range(2 if end > size and not whole else 1):  # a row that meets the last slot goes on at the first
                low, high = words[1], words[1] + words[0]
                if not whole:
                    low = v.begin[words[2] + (start if turn == 0 else 0)]
                    high = v.begin[words[2] + (min(end, size) if turn == 0 else end - size)]
                _scan(ball, _Row(low, high, hashed, j, k), grid, words, shapes, v, near)


@tiny
def _off(origin):
    """Bound of the rounding error of a coordinate when the origin is subtracted."""
    return 1e-15 * abs(origin)


@kernel
def gather(a, shapes, v, largest, grids, n_unbounded, near):
    """Neighbours of shape a that are tested with it: of larger number or on the world, sorted.

    In: the shapes, and the results of `measure` and `build` in v. Out: near (1 + LIMIT): count, then numbers; a count above LIMIT means
    that all shapes are to be tested.
    """
    pose, body = shapes.pose, shapes.body
    r = v.radius[a]
    ball = _Ball(a, pose[7 * a], pose[7 * a + 1], pose[7 * a + 2], r)
    # 1. fixed shapes are found from the other side; an unbounded one is tested against all
    near[0] = 0
    if body[a] == WORLD or r < 0.0:
        return
    if r > largest:
        near[0] = LIMIT + 1
        return
    # 2. all grids, then the unbounded shapes, which are in none
    for g in range(grids):
        _look(ball, view(v.reals, REALS * g, REALS), view(v.words, WORDS * g, WORDS), shapes, v, near)
    for u in range(n_unbounded):
        b = v.unbounded[u]
        if (b > a or body[b] == WORLD) and meet(shapes, a, b):
            _append(near, b)
    # 3. sort by insertion: the lists are short, and the order of contacts does not depend on the cells
    for i in range(2, min(near[0], LIMIT) + 1):
        b, at = near[i], i
        while at > 1 and near[at - 1] > b:
            near[at] = near[at - 1]
            at -= 1
        near[at] = b
