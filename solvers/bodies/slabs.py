"""Slabs of bodies across the longest axis of a cloud of contacts, and an order of contacts in which slabs can be swept at the same time.

Contacts within slab s are group s; those between slabs s and s + 1 are a group of their own; all others, which are few, are the last group.
Groups within slabs do not touch each other's bodies (phase 0), nor do groups between slabs s and s + 1 for all even s (phase 1), nor those
for all odd s (phase 2). The world, and bodies that cannot be moved, belong to no slab: they link nothing.
"""

import math

from nsds._jit import kernel, stack, tiny, view

PHASES = 4
NONE = -1
_MOST, _SMALLEST = 16, 512  # slabs, and contacts of one
_BUCKETS = 4096
COUNTS = _BUCKETS + 1  # integers of scratch of `cut`
GROUPS = 2 * _MOST + 1  # of begin, at most
SCRATCH = _BUCKETS + 1  # integers that `cut` needs
SETS = 3  # integers of scratch of `set_apart`, for each contact


@tiny
def count(n_contacts):
    """Number of slabs for so many contacts; twice as many groups."""
    return min(max(n_contacts // _SMALLEST, 1), _MOST)


@tiny
def phase(n_groups, p):
    """First group of phase p, up to p = 4."""
    n = n_groups // 2
    return 0 if p == 0 else n if p == 1 else n + n // 2 if p == 2 else 2 * n - 1 if p == 3 else 2 * n


@tiny
def _movable(i, inverse):
    size = 0.0
    for k in range(10):
        size += abs(inverse[10 * i + k])
    return size > 0.0


@kernel
def _longest(slab, x):
    """(axis, least, greatest) coordinate of the bodies with a slab along the axis where they differ most."""
    axis, low, high = 0, stack(3), stack(3)
    for k in range(3):
        low[k], high[k] = math.inf, -math.inf
    for i in range(slab.size):
        for k in range(3 if slab[i] != NONE else 0):
            low[k], high[k] = min(low[k], x[3 * i + k]), max(high[k], x[3 * i + k])
    for k in range(1, 3):
        if high[k] - low[k] > high[axis] - low[axis]:
            axis = k
    return axis, low[axis], high[axis]


@kernel
def cut(n_slabs, body, x, inverse, slab, counts):
    """Slab of each body, NONE of those that cannot be moved or touch nothing: slabs of equally many ends of contacts.

    body (2 n,), -1: the world; x (3 n_bodies,): where bodies are; inverse (10 n_bodies,). Out: slab (n_bodies,). Work: counts (SCRATCH,).
    """
    # 1. bodies in contact that can be moved
    for i in range(slab.size):
        slab[i] = NONE
    for c in range(body.size):
        i = body[c]
        if i >= 0 and slab[i] == NONE and _movable(i, inverse):
            slab[i] = 0
    # 2. buckets along the longest axis, and the ends of contacts in each
    axis, least, greatest = _longest(slab, x)
    scale = _BUCKETS / (greatest - least) if greatest > least else 0.0
    for k in range(_BUCKETS + 1):
        counts[k] = 0
    for i in range(slab.size):
        if slab[i] != NONE:
            slab[i] = min(int((x[3 * i + axis] - least) * scale), _BUCKETS - 1)
    for c in range(body.size):
        i = body[c]
        if i >= 0 and slab[i] != NONE:
            counts[slab[i] + 1] += 1
    # 3. slabs by the ends below
    for k in range(_BUCKETS):
        counts[k + 1] += counts[k]
    total = max(counts[_BUCKETS], 1)
    for i in range(slab.size):
        if slab[i] != NONE:
            slab[i] = counts[slab[i]] * n_slabs // total


@tiny
def group(n_slabs, s, t):
    """Group of a contact between slabs s and t."""
    low, high = min(s, t), max(s, t)
    if low in (NONE, high):
        return max(high, 0)
    if high > low + 1:
        return 2 * n_slabs - 1
    return n_slabs + low // 2 + (n_slabs // 2 if low & 1 else 0)


@kernel
def order(n_slabs, body, slab, place, begin):
    """Out: place (n,): which contact is swept as the i-th; begin (2 n_slabs + 1,): group g is ``place[begin[g]:begin[g + 1]]``.

    Contacts of a group stay in the order given.
    """
    for g in range(begin.size):
        begin[g] = 0
    n = body.size // 2
    for c in range(n):
        begin[_group_of(c, n_slabs, body, slab) + 1] += 1
    for g in range(2 * n_slabs):
        begin[g + 1] += begin[g]
    for g in range(2 * n_slabs, 0, -1):
        begin[g] = begin[g - 1]  # where the next contact of group g - 1 goes, for a moment
    for c in range(n):
        g = _group_of(c, n_slabs, body, slab)
        place[begin[g + 1]] = c
        begin[g + 1] += 1


@tiny
def _group_of(c, n_slabs, body, slab):
    a, b = body[2 * c], body[2 * c + 1]
    return group(n_slabs, slab[a] if a >= 0 else NONE, slab[b] if b >= 0 else NONE)


@kernel
def set_apart(width, body, inverse, begin, place, free, scratch):
    """Reorders the contacts of each group, so that most sets of ``width`` in a row share no body that can be moved. In/out: place.

    Each contact enters the first set that is not full and behind those of its bodies; sets that stay incomplete come last.
    Work: free (n_bodies,), scratch (SETS n,).
    """
    n = place.size
    chosen, size, sorted_place = view(scratch, 0, n), view(scratch, n, n), view(scratch, 2 * n, n)
    for g in range(begin.size - 1):
        first, last, lowest = begin[g], begin[g + 1], 0
        # 1. nothing is in any set
        for i in range(first, last):
            size[i] = 0
            for side in range(2):
                if body[2 * place[i] + side] >= 0:
                    free[body[2 * place[i] + side]] = 0
        # 2. set of each contact
        for i in range(first, last):
            at, a, b = lowest, body[2 * place[i]], body[2 * place[i] + 1]
            at = max(at, free[a] if a >= 0 else 0, free[b] if b >= 0 else 0)
            while size[first + at] == width:
                at += 1
            chosen[i] = at
            size[first + at] += 1
            for side in range(2):
                j = a if side == 0 else b
                if j >= 0 and _movable(j, inverse):
                    free[j] = at + 1
            while first + lowest < last and size[first + lowest] == width:
                lowest += 1
        # 3. where each begins, of complete sets first
        end = first
        for is_complete in (True, False):
            for at in range(first, last):
                if size[at] >= 0 and (size[at] == width) == is_complete:
                    end, size[at] = end + size[at], -end - 1
        # 4. the new order
        for i in range(first, last):
            at = first + chosen[i]
            sorted_place[-size[at] - 1] = place[i]
            size[at] -= 1
        for i in range(first, last):
            place[i] = sorted_place[i]
