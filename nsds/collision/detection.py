"""All contacts of a set of shapes: neighbours from cell lists, contacts of each pair, one sorted list."""

import math
from typing import NamedTuple

from numba import float64, int64, types
from numpy.typing import NDArray

from nsds._jit import caller, each, inlined, kernel, on_demand, parallel, tiny, view
from nsds.collision.frames import FIELDS, MOST, WORLD
from nsds.collision.grid import LEVELS, LIMIT, REALS, WORDS, build, gather, measure, meet, slots
from nsds.collision.kinds import HALF_PLANE, PLANE
from nsds.collision.narrow import contacts_of_pair, other_pairs
from nsds.collision.touching import NEVER, PATH, START, first_touch

_CHUNKS = 16  # chunks of shapes that threads process
_FEW = 16  # number of shapes up to which all pairs are tested, without cells
_STORED = 8  # neighbours per shape that are stored between the counting and the writing pass


def work_size(ns):
    """Lengths of the work arrays of `detect` and `detect_parallel`: (float64, int64).

    Examples
    --------
    >>> from nsds.collision import work_size
    >>> floats, ints = work_size(1000)
    """
    floats = 5 * ns + LEVELS * REALS + _CHUNKS * MOST * FIELDS
    return floats, (4 + _STORED) * ns + LEVELS * WORDS + slots(ns) + 1 + _CHUNKS * (1 + LIMIT)


class Shapes(NamedTuple):
    """Shapes in the world."""

    kind: NDArray  # (ns,)
    size: NDArray  # (3 ns,)
    pose: NDArray  # (7 ns,), in the world
    body: NDArray  # (ns,), -1 for the world
    reach: NDArray  # (ns,), in m
    group: NDArray  # (ns,): with the mask, which pairs are tested, see `nsds.collision.groups`
    mask: NDArray


class Contacts(NamedTuple):
    """Output arrays of `detect`: the list of contacts."""

    a: NDArray  # shapes, a < b, or b on the world
    b: NDArray
    feature: NDArray  # which vertex, edge or end
    normal: NDArray  # (3 n,), from b to a
    point: NDArray  # (3 n,), on a; that on b is ``point - gap normal``
    gap: NDArray


class Scratch(NamedTuple):
    """Views of the work arrays."""

    radius: NDArray  # (ns,): of the bounding balls of the shapes
    packed: NDArray  # (4 ns,): centres and radii of the balls, in the order of the cells
    reals: NDArray  # (LEVELS * REALS,): the grids
    words: NDArray  # (LEVELS * WORDS,): integers of the grids
    key: NDArray  # (ns,): shape of each packed ball
    begin: NDArray  # first entry of each cell
    unbounded: NDArray  # (ns,): the unbounded shapes
    place: NDArray  # (ns + 1,): index of the first contact of each shape
    kept: NDArray  # ((1 + _STORED) ns,): the level of each ball, then its neighbours
    near: NDArray  # _CHUNKS (1 + LIMIT): neighbours of one shape
    found: NDArray  # _CHUNKS MOST FIELDS: contacts of one pair


@inlined
def _partition(ns, work, iwork):
    """Views of the work arrays; inlined, because parallel loops must see how the arrays that they use are made."""
    i, words, table = LEVELS * REALS, LEVELS * WORDS, LEVELS * WORDS + _CHUNKS * (1 + LIMIT)
    return Scratch(
        view(work, 0, ns),
        view(work, ns, 4 * ns),
        view(work, 5 * ns, i),
        view(iwork, 0, words),
        view(iwork, table, ns),
        view(iwork, table + (4 + _STORED) * ns + 1, iwork.size - table - (4 + _STORED) * ns - 1),
        view(iwork, table + ns, ns),
        view(iwork, table + 2 * ns, ns + 1),
        view(iwork, table + 3 * ns + 1, (1 + _STORED) * ns),
        view(iwork, words, _CHUNKS * (1 + LIMIT)),
        view(work, 5 * ns + i, _CHUNKS * MOST * FIELDS),
    )


@tiny
def _write(shapes, others, s, t, at, found, out):
    """Writes the contacts of shapes s and t from index ``at`` on, up to the capacity; returns their number, written or not."""
    n = contacts_of_pair(shapes.kind, shapes.size, shapes.pose, s, t, shapes.reach[s] + shapes.reach[t], others, found)
    for k in range(min(n, out.a.size - min(at, out.a.size))):
        c, f = at + k, FIELDS * k
        out.a[c], out.b[c], out.feature[c], out.gap[c] = s, t, int(found[f]), found[f + 1]
        for i in range(3):
            out.normal[3 * c + i], out.point[3 * c + i] = found[f + 2 + i], found[f + 5 + i]
    return n


@kernel
def _write_all(shapes, radius, others, s, at, found, out):
    """Contacts of shape s with all others, used for few shapes, too many neighbours or an unbounded shape; returns their number."""
    pose, n = shapes.pose, 0
    if shapes.body[s] == WORLD or radius[s] < 0.0:
        return 0
    for t in range(radius.size):
        if (t > s or shapes.body[t] == WORLD) and radius[t] >= 0.0 and meet(shapes, s, t):
            # bounding balls first: the pair test costs far more
            dx, dy, dz = pose[7 * s] - pose[7 * t], pose[7 * s + 1] - pose[7 * t + 1], pose[7 * s + 2] - pose[7 * t + 2]
            if dx * dx + dy * dy + dz * dz <= (radius[s] + radius[t]) ** 2:
                n += _write(shapes, others, s, t, at + n, found, out)
    return n


@tiny
def _write_near(shapes, radius, others, s, near, at, found, out):
    """Contacts of shape s with its neighbours, or with all shapes where these exceed LIMIT, from index ``at`` on; returns their number."""
    if near[0] > LIMIT:
        return _write_all(shapes, radius, others, s, at, found, out)
    count = 0
    for i in range(1, near[0] + 1):
        count += _write(shapes, others, s, near[i], at + count, found, out)
    return count


@tiny
def _look_over(shapes, v):
    """Broad phase: measures the bounding balls and lists them by cells; returns (unbounded shapes, largest finite radius, grids)."""
    n_unbounded, largest = measure(shapes.kind, shapes.size, shapes.pose, shapes.reach, v.radius, v.unbounded)
    return n_unbounded, largest, build(shapes.pose, shapes.body, largest, v)


@kernel
def detect(shapes, vertices, general, out, work, iwork):
    """Contacts of all pairs with ``gap <= reach_a + reach_b``; returns their number, which may exceed the capacity.

    In: shapes; vertices (3 nv) of polyhedra; general: address from `nsds.collision.general`, 0 where no pair needs it. Out: contacts up to
    the capacity ``out.a.size``, in the order of (a, b, feature). Work: see `work_size`.
    """
    kind, pose, reach = shapes.kind, shapes.pose, shapes.reach
    v, total = _partition(kind.size, work, iwork), 0
    others = (other_pairs(kind), vertices, general)
    # 1. few shapes: all pairs, cheaper than cells
    if kind.size <= _FEW:
        measure(kind, shapes.size, pose, reach, v.radius, v.unbounded)
        for s in range(kind.size):
            total += _write_all(shapes, v.radius, others, s, total, v.found, out)
        return total
    # 2. broad phase, then the neighbours of each shape in the order of its number: the list comes out sorted
    n_unbounded, largest, grids = _look_over(shapes, v)
    for s in range(kind.size):
        gather(s, shapes, v, largest, grids, n_unbounded, v.near)
        total += _write_near(shapes, v.radius, others, s, v.near, total, v.found, out)
    return total


@parallel
def detect_parallel(shapes, vertices, general, out, work, iwork):
    """As `detect`, with the same bits, on all cores: contacts are counted, then written to their indices. Not for pairs of `general`."""
    ns = shapes.kind.size
    v = _partition(ns, work, iwork)
    place, kept = v.place, v.kept
    # 1. broad phase
    n_unbounded, largest, grids = _look_over(shapes, v)
    others = (other_pairs(shapes.kind), vertices, general)
    nowhere, none = view(iwork, 0, 0), view(work, 0, 0)
    place[0] = 0
    # 2. count the contacts of each shape, without writing; neighbours are stored, so that few shapes gather them twice
    for chunk in each(_CHUNKS):
        near, found = view(v.near, chunk * (1 + LIMIT), 1 + LIMIT), view(v.found, chunk * MOST * FIELDS, MOST * FIELDS)
        for s in range(chunk * ns // _CHUNKS, (chunk + 1) * ns // _CHUNKS):
            gather(s, shapes, v, largest, grids, n_unbounded, near)
            for i in range(min(near[0], _STORED) + 1):
                kept[(1 + _STORED) * s + i] = near[i]
            counted = Contacts(nowhere, nowhere, nowhere, none, none, none)
            place[s + 1] = _write_near(shapes, v.radius, others, s, near, place[0], found, counted)
    # 3. prefix sum: first index of each shape, independent of the number of threads
    for s in range(ns):
        place[s + 1] += place[s]
    # 4. write; shapes with more neighbours than are stored gather them again
    for chunk in each(_CHUNKS):
        near, found = view(v.near, chunk * (1 + LIMIT), 1 + LIMIT), view(v.found, chunk * MOST * FIELDS, MOST * FIELDS)
        for s in range(chunk * ns // _CHUNKS, (chunk + 1) * ns // _CHUNKS):
            if place[s + 1] > place[s]:
                if kept[(1 + _STORED) * s] > _STORED:
                    gather(s, shapes, v, largest, grids, n_unbounded, near)
                else:
                    for i in range(kept[(1 + _STORED) * s] + 1):
                        near[i] = kept[(1 + _STORED) * s + i]
                _write_near(shapes, v.radius, others, s, near, place[s], found, out)
    return place[ns]


class Touches(NamedTuple):
    """Priorities of moving bodies: which gives way to which, and when; bodies that joints connect are one unit, named by its first body."""

    unit: NDArray
    held: NDArray  # not 0: by joints, which would open; half spaces, which nothing can pass, do not stop them
    rank: NDArray  # of units: the lower one gives way; infinite: gives way to nothing
    is_new: NDArray  # not 0: paths that have changed; only the shapes of these bodies are tested
    when: NDArray  # in and out, of units: the first time, NEVER without one,
    partner: NDArray  # and the body that they give way to: WORLD for a fixed one or the unit itself


@kernel
def first_touches(is_first, shapes, moving, touches, work, iwork):
    """First touch of each unit of bodies with one to which it gives way, on the paths that start at the poses of the shapes.

    In: is_first: all paths are new; shapes, see `detect`; moving (`nsds.collision.touching`). In and out: touches. Work: as for `detect`.
    """
    # 1. few shapes, or few new paths: all pairs
    v, n = _partition(shapes.kind.size, work, iwork), shapes.kind.size
    if n <= _FEW or not is_first:
        measure(shapes.kind, shapes.size, shapes.pose, shapes.reach, v.radius, v.unbounded)
        for s in range(n):
            _note_all(is_first, shapes, v.radius, moving, touches, s)
        return
    # 2. broad phase with balls that hold the whole path (reach)
    n_unbounded, largest, grids = _look_over(shapes, v)
    for s in range(n):
        gather(s, shapes, v, largest, grids, n_unbounded, v.near)
        if v.near[0] > LIMIT:
            _note_all(True, shapes, v.radius, moving, touches, s)
        else:
            for i in range(1, v.near[0] + 1):
                _note_touch(moving, touches, s, v.near[i])


@kernel
def _note_all(is_first, shapes, radius, moving, touches, s):
    """Tests shape s, if its path is new, against all others; in the first pass only against later shapes and the world."""
    b = shapes.body[s]
    for t in range(radius.size if b != WORLD and radius[s] >= 0.0 and touches.is_new[b] != 0 else 0):
        if (not is_first or t > s or shapes.body[t] == WORLD) and radius[t] >= 0.0 and meet(shapes, s, t):
            # bounding balls of the paths
            far = 0.0
            for i in range(3):
                far += (shapes.pose[7 * s + i] - shapes.pose[7 * t + i]) ** 2
            if far <= (radius[s] + radius[t]) ** 2:
                _note_touch(moving, touches, s, t)


@kernel
def _note_touch(moving, touches, s, t):
    """Records the touch of shapes s and t, if it is the earliest of the unit that gives way. In and out: touches."""
    # 1. the common part of both paths, and which unit gives way; ties of rank by number, so that one of them does
    a, b = moving.body[s], moving.body[t]
    begin, one, other = moving.path[PATH * a + START], touches.unit[a], WORLD
    gives_way = True
    if b != WORLD:
        begin, other = max(begin, moving.path[PATH * b + START]), touches.unit[b]
        gives_way = touches.rank[one] < touches.rank[other] or (touches.rank[one] == touches.rank[other] and one > other)
    u, partner = (one, b) if gives_way else (other, a)
    # 2. pairs that need no test
    is_half_space = moving.kind[t] == PLANE or moving.kind[t] == HALF_PLANE
    if touches.rank[u] == math.inf or (is_half_space and (moving.is_corrected != 0 or touches.held[a] != 0)):
        return
    # 3. earliest touch of this unit; a touch within the unit has no partner
    when = first_touch(moving, s, t, begin)
    if when < min(touches.when[u], NEVER):
        touches.when[u], touches.partner[u] = when, WORLD if one == other else partner


_floats, _integers = float64[::1], int64[::1]
SHAPES = types.NamedTuple((_integers, _floats, _floats, _integers, _floats, _integers, _integers), Shapes)
CONTACTS = types.NamedTuple((*(_integers,) * 3, *(_floats,) * 3), Contacts)
SIGNATURE = int64(SHAPES, _floats, int64, CONTACTS, _floats, _integers)  # of `detect`
call_detect = caller(SIGNATURE)
address_of_detect = on_demand(SIGNATURE, detect)
address_of_detect_parallel = on_demand(SIGNATURE, detect_parallel)


@kernel
def inherit(keys, old_keys, d, old, new):
    """Values of persistent contacts, ``new_c = old_c'`` where (a, b, feature) are the same, else 0; both lists are sorted.

    In: keys of the new and of the old contacts, (a, b, feature); old (d n_old). Out: new (d n). Returns the number of persistent ones.
    """
    (a, b, feature), (old_a, old_b, old_feature), k, same = keys, old_keys, 0, 0
    # both lists are sorted by the same key: one pass over either
    for c in range(a.size):
        while k < old_a.size and before(old_a[k], old_b[k], old_feature[k], a[c], b[c], feature[c]):
            k += 1
        known = k < old_a.size and old_a[k] == a[c] and old_b[k] == b[c] and old_feature[k] == feature[c]
        for i in range(d):
            new[d * c + i] = old[d * k + i] if known else 0.0
        same += 1 if known else 0
    return same


@tiny
def before(a, b, feature, a_2, b_2, feature_2):
    """Whether one key (a, b, feature) comes before another."""
    return a < a_2 or (a == a_2 and (b < b_2 or (b == b_2 and feature < feature_2)))
