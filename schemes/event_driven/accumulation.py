"""Accumulations of events, infinitely many in a finite time: times of flight, and the limit of switches of first-order systems.

Contacts that come to rest have a test of their own, see `nsds.schemes.event_driven.impacts`.

p is a row of a table with the columns n, m, x, tail and `HISTORY` of the work memory, and mode, fired, near, frozen, culprit of the
integer one.
"""

import numpy as np

from nsds._jit import kernel, tiny

# By row and mode that it left, of m rows and n states: last event, two times of flight, the longest one, s; the state then, of some.
HISTORY = {"last": "3m", "flight": "3m", "flight_before": "3m", "longest": "3m", "x_last": "hn", "x_of": "h"}
_STATES = 192  # that are kept, at most: of more rows and modes, those of the last ones, in h slots; x_of: whose they are
_SAME_RATIO = 1e-3  # relative to 1 - q: by how much two ratios q of an accumulation may differ
_STEEPEST = 1e-3  # ratio of two flights: less is the end of a pause, not a flight of a falling sequence
_ROUNDING = 2.0**-50  # of a difference of times
FALLEN = 0.1  # of the longest flight of a falling sequence: those next to a row that is nearly zero are shorter


def slots_of(m):
    """Number of states that are kept of m rows."""
    return min(3 * m, _STATES)


@kernel
def forget_accumulations(p, memory):
    """No events have been."""
    work = memory.work
    for k in range(3 * p.m):
        work[p.last + k], work[p.flight + k], work[p.flight_before + k], work[p.longest + k] = -np.inf, np.inf, np.inf, 0.0
    work[p.tail], memory.iwork[p.frozen] = -np.inf, 0


@tiny
def note_flight(t, k, p, work):
    """Times of flight, the last one first, of a contact or row in a mode k whose event is at t."""
    d, before, earlier = t - work[p.last + k], work[p.flight + k], work[p.flight_before + k]
    work[p.last + k], work[p.flight + k], work[p.flight_before + k] = t, d, before
    return d, before, earlier


@kernel
def follow_accumulations(t, threshold, p, memory):
    """Sum accumulations: if the same event recurs in short times that fall by one ratio q, wait at the limit until they would have ended.

    The tail ``d q / (1 - q)`` is summed, and so is the remaining change of the state. Flights are short against the longest one of the
    sequence in which each is shorter than the one before: periods that approach a limit other than zero are not. In: near, 1 of rows whose
    y is so small between their events that it will soon count as zero: an accumulation with such a row can hardly be followed further.
    """
    work, iwork = memory.work, memory.iwork
    n = p.n
    # 1. times between the last events of this row from this mode
    for i in range(p.m):
        if iwork[p.fired + i] == 0:
            continue
        k = 3 * i + iwork[p.mode + i]
        d, d_1, d_2 = note_flight(t, k, p, work)
        # short against the longest flight so far, or next to a row whose y is as good as zero
        is_short = d <= threshold * work[p.longest + k]
        for other in range(3 * p.m):
            is_near = iwork[p.near + other // 3] != 0 and work[p.last + other] >= t - d
            is_short |= is_near and d <= FALLEN * work[p.longest + k]
        falls = 0.0 < d < d_1 and d_1 < d_2 < np.inf and is_short and work[p.tail] <= t
        q = d / d_1 if falls else 1.0
        # 2. two equal ratios, more than rounding of t away from 1: geometric series of times and states
        slot = k % min(3 * p.m, _STATES)
        is_known = _ROUNDING * abs(t) <= _SAME_RATIO * (1.0 - q) * d and work[p.x_of + slot] == k
        if falls and is_known and abs(q - d_1 / d_2) <= _SAME_RATIO * (1.0 - q):
            work[p.tail], iwork[p.frozen], iwork[p.culprit] = t + d * q / (1.0 - q), 1, i
            for j in range(n):
                work[p.x + j] += (work[p.x + j] - work[p.x_last + slot * n + j]) * q / (1.0 - q)
            # all rows that switched in this flight do so at its limit
            for other in range(p.m):
                for mode in range(3):
                    iwork[p.fired + other] |= 1 if work[p.last + 3 * other + mode] >= t - d else 0
        # 3. history; a longer flight, or one after a pause, begins another sequence
        if not _STEEPEST * d_1 < d < d_1 < np.inf:
            work[p.longest + k] = d if d < np.inf else 0.0
        work[p.x_of + slot] = k
        for j in range(n):
            work[p.x_last + slot * n + j] = work[p.x + j]
