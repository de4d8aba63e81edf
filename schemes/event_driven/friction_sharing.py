"""Distribution of friction among linearly dependent sticking constraints (statically indeterminate), which the motion does not determine.

Changes of forces that change no acceleration are added to a solution, ``lambda + sum_k s_k S_k``: those with the least sum of
``|lambda_t|^2 / w``, ``w = mu lambda_n`` of each contact, then those with the least maximum of ``|lambda_t| / w``. So a contact reaches its
cone only when the others cannot relieve it, and its force is opposite to the slip that begins there. One shift at a time: with several
shifts the maximum need not be the least.
"""

import math

from nsds._jit import kernel, tiny
from nsds.model.layout import ABSENT
from nsds.schemes.mechanics.tables import HELD, REDUNDANT, SLIP
from nsds.schemes.problem.disks import begins_disk, unit_of

_SWEEPS, _SAME = 400, 1e-14  # over the shifts at most, until none changes more than that part of the largest force
_MORE_SWEEPS = 8
_NOTHING = 1e-20  # relative to the squares of the changes by a shift
_UNLOADED = 1e-18  # square of the part of its capacity below which the friction of a contact is rounding
_HALVINGS = 56  # bisections between the optima of two contacts
_CARRIES = 1e-6  # of the largest force: contacts that carry less get nearly no share of friction
_INSIDE = 1.0 - 1e-6  # of its capacity: friction that is clearly less
_LEAST = 1e-200  # force, if there is none at all


@kernel
def find_shifts(s, memory):
    """Changes of forces without acceleration, one of each tangent that is REDUNDANT in a contact that carries: 1 of it, and

        -A^-1 W_k   of the HELD rows

    None where redundant contacts carry given forces. Out: the tangents' places in the list in iwork[shifted:], the rest in work[shift:].
    """
    iwork, f, p, n = memory.iwork, s.flow[0], s.newton.plan[0], 0
    for b in range(iwork[f.count] if iwork[f.carries] == 0 else 0):
        if iwork[f.mode + iwork[p.active + b]] == REDUNDANT and _sticks(b, s, iwork):
            _find_shift(n, b, s, memory)
            n += 1
    iwork[f.n_shifts] = n


@kernel
def _find_shift(n, b, s, memory):
    """The n-th shift: by the row at place b of the list. Out: its part of shifted and shift."""
    work, iwork = memory.work, memory.iwork
    f, p, m = s.flow[0], s.newton.plan[0], iwork[s.flow[0].n_equations]
    iwork[f.shifted + n], to = b, f.shift + n * m
    for e in range(m):
        work[to + e] = 0.0
    for e in range(m):
        a = iwork[f.row + e]
        for k in range(iwork[p.sub_row + a], iwork[p.sub_row + a + 1]):
            for r in range(m if iwork[p.sub_column + k] == b else 0):
                work[to + r] -= work[f.matrix + r * m + e] * work[p.W + k]


@kernel
def spread(s, memory):
    """Replace the forces of contacts at rest by those of least norm with the same effect, if these are within all cones.

    After `factorise`. In/out: kept. Not where a contact slips, or has a force at the edge.
    """
    work, iwork = memory.work, memory.iwork
    f, p, n = s.flow[0], s.newton.plan[0], 0
    # 1. shifts by all redundant rows, and the forces at hand
    for a in range(iwork[f.count]):
        i = iwork[p.active + a]
        if s.newton.constraints[i].component > 0 and iwork[f.mode + i] == SLIP:
            return
        work[p.z + a] = work[f.kept + i] if _is_of_contact(i, s) else 0.0
        if iwork[f.mode + i] == REDUNDANT and _is_of_contact(i, s):
            _find_shift(n, a, s, memory)
            n += 1
    # 2. one shift at a time
    for _ in range(_SWEEPS):
        largest, moved = _largest(s, memory), 0.0
        for k in range(n):
            way = _to_least_norm(k, s, memory)
            _shift(way, k, s, memory)
            moved = max(moved, abs(way))
        if moved <= _SAME * largest:
            break
    # 3. forces within all cones
    if _are_within_cones(s, memory):
        for a in range(iwork[f.count]):
            if _is_of_contact(iwork[p.active + a], s):
                work[f.kept + iwork[p.active + a]] = work[p.z + a]


@tiny
def _is_of_contact(i, s):
    """Whether a row is of a contact."""
    c = s.newton.constraints[i]
    return c.lower == ABSENT and c.bilateral == 0


@kernel
def _to_least_norm(k, s, memory):
    """Distance along a shift at which the sum of the squares of the forces of contacts is least."""
    f, p, slope, bend = s.flow[0], s.newton.plan[0], 0.0, 0.0
    for a in range(memory.iwork[f.count]):
        i = memory.iwork[p.active + a]
        if _is_of_contact(i, s):
            S = _of_shift(k, a, f, memory) / unit_of(s.newton.constraints[i], memory.work)
            slope += S * memory.work[p.z + a] / unit_of(s.newton.constraints[i], memory.work)
            bend += S * S
    return -slope / bend


@kernel
def _are_within_cones(s, memory):
    """Whether the listed forces of contacts press, and their friction is less than they allow."""
    work, iwork = memory.work, memory.iwork
    f, p, are = s.flow[0], s.newton.plan[0], True
    for a in range(iwork[f.count]):
        i = iwork[p.active + a]
        c = s.newton.constraints[i]
        if _is_of_contact(i, s) and c.component == 0:
            are &= work[p.z + a] >= 0.0
        elif _is_of_contact(i, s) and begins_disk(c):
            other = work[p.z + a + 1] if c.tangents == 2 else 0.0
            are &= math.hypot(work[p.z + a], other) <= _INSIDE * work[c.mu] * work[p.z + iwork[p.local + i - c.component]]
    return are


@tiny
def _sticks(a, s, iwork):
    """Whether the a-th row of the list is a tangent that does not slip, of a contact that carries."""
    f, i = s.flow[0], iwork[s.newton.plan[0].active + a]
    c, mode = s.newton.constraints[i], iwork[s.flow[0].mode + i]
    return c.lower == ABSENT and c.component > 0 and mode in (HELD, REDUNDANT) and iwork[f.mode + i - c.component] == HELD


@kernel
def share(is_whole, s, memory):
    """Distribute friction among linearly dependent tangents. In/out: multipliers in work[p.z:].

    is_whole: whether they are forces, whose normal components limit the friction; coefficients of higher order of linear motions are
    distributed likewise, but by least squares only, which is linear in them.
    """
    iwork = memory.iwork
    f = s.flow[0]
    _list_sticking(s, iwork)
    if is_whole:
        _note_loads(s, memory)
    for _ in range(_SWEEPS):
        largest, moved = _largest(s, memory), 0.0
        for k in range(iwork[f.n_shifts]):
            way = _to_least_squares(k, s, memory)
            _shift(way, k, s, memory)
            moved = max(moved, abs(way))
        if moved <= _SAME * largest:
            break
    for _ in range(_MORE_SWEEPS if iwork[f.n_shifts] > 1 else 1):
        for k in range(iwork[f.n_shifts] if f.is_linear == 0 else 0):
            _shift(_to_least_load(k, s, memory), k, s, memory)


@tiny
def _list_sticking(s, iwork):
    """Sticking tangents, and the first ones of sticking disks, by their places. Out: stuck, disks."""
    f, p = s.flow[0], s.newton.plan[0]
    n, n_disks = 0, 0
    for a in range(iwork[f.count]):
        if _sticks(a, s, iwork):
            iwork[f.stuck + n], n = a, n + 1
            if begins_disk(s.newton.constraints[iwork[p.active + a]]):
                iwork[f.disks + n_disks], n_disks = a, n_disks + 1
    iwork[f.n_stuck], iwork[f.n_disks] = n, n_disks


@kernel
def _note_loads(s, memory):
    """``w = mu lambda_n`` of disks, into work[carried:] of their rows."""
    work, iwork = memory.work, memory.iwork
    f, p = s.flow[0], s.newton.plan[0]
    for a in range(iwork[f.count]):
        i = iwork[p.active + a]
        c = s.newton.constraints[i]
        if c.component > 0:
            load = work[c.mu] * work[p.z + iwork[p.local + i - c.component]]
            work[f.carried + i] = max(load, _CARRIES * work[f.force] * unit_of(c, work), _LEAST)


@tiny
def _largest(s, memory):
    """The largest multiplier in the list."""
    largest = 0.0
    for a in range(memory.iwork[s.flow[0].count]):
        largest = max(largest, abs(memory.work[s.newton.plan[0].z + a]))
    return largest


@tiny
def _of_shift(k, a, f, memory):
    """Component of the k-th shift in the a-th row of the list."""
    iwork = memory.iwork
    if iwork[f.shifted + k] == a:
        return 1.0
    return memory.work[f.shift + k * iwork[f.n_equations] + iwork[f.equation + a]] if iwork[f.equation + a] != ABSENT else 0.0


@kernel
def _shift(way, k, s, memory):
    """``lambda + way S_k``: move along a shift."""
    f, p = s.flow[0], s.newton.plan[0]
    for a in range(memory.iwork[f.count]):
        memory.work[p.z + a] += way * _of_shift(k, a, f, memory)


@kernel
def _to_least_squares(k, s, memory):
    """Distance along a shift at which ``sum |lambda_t|^2 / w`` is least."""
    work, iwork = memory.work, memory.iwork
    f, p, slope, bend = s.flow[0], s.newton.plan[0], 0.0, 0.0
    for b in range(iwork[f.n_stuck]):
        a = iwork[f.stuck + b]
        i = iwork[p.active + a]
        S, w = _of_shift(k, a, f, memory), work[f.carried + i] * unit_of(s.newton.constraints[i], work)
        slope += S * work[p.z + a] / w
        bend += S * S / w
    return -slope / bend


@kernel
def _to_least_load(k, s, memory):
    """Distance along a shift at which the largest ``|lambda_t| / w`` is least: between the optima of two contacts."""
    iwork, f = memory.iwork, s.flow[0]
    least, low, high, most = _NOTHING * _most_bent(k, s, memory), 0.0, 0.0, 0.0
    # 1. optimum of each contact alone; of what stands without friction nothing is to be distributed
    for b in range(iwork[f.n_disks]):
        level, slope, bend = _load(0.0, k, iwork[f.disks + b], s, memory)
        if bend > least:
            low, high, most = min(low, -slope / bend), max(high, -slope / bend), max(most, level)
    if most <= _UNLOADED:
        return 0.0
    # 2. bisection by the slope of the largest load, which is a convex function
    for _ in range(_HALVINGS if low < high else 0):
        way, largest, rises = 0.5 * (low + high), -1.0, 0.0
        for b in range(iwork[f.n_disks]):
            level, slope, bend = _load(way, k, iwork[f.disks + b], s, memory)
            if bend > least and level > largest:
                largest, rises = level, slope
        if rises > 0.0:
            high = way
        else:
            low = way
    return 0.5 * (low + high)


@tiny
def _most_bent(k, s, memory):
    """The largest of the second derivatives of `_load`: next to that of others is rounding."""
    most = 0.0
    for b in range(memory.iwork[s.flow[0].n_disks]):
        most = max(most, _load(0.0, k, memory.iwork[s.flow[0].disks + b], s, memory)[2])
    return most


@tiny
def _load(way, k, a, s, memory):
    """``|lambda_t + way S_k|^2 / w^2`` of a sticking disk, with half of its first and second derivatives; a: place of its first tangent."""
    f, p, level, slope, bend = s.flow[0], s.newton.plan[0], 0.0, 0.0, 0.0
    i = memory.iwork[p.active + a]
    w = memory.work[f.carried + i]
    for b in range(a, a + s.newton.constraints[i].tangents):
        S = _of_shift(k, b, f, memory)
        force = memory.work[p.z + b] + way * S
        level += (force / w) ** 2
        slope += force * S / (w * w)
        bend += (S / w) ** 2
    return level, slope, bend
