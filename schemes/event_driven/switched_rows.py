"""Rows of first-order systems at events, of linear systems and in general: modes, and elimination of the multipliers of HELD rows.

A row is LOWER or UPPER, lambda at that bound and ``y >= 0`` or ``y <= 0``; or HELD, ``y = 0`` and lambda between its bounds: a
conducting diode, a sliding relay.
"""

import math
from typing import NamedTuple

from nsds._jit import kernel, tiny
from nsds.model.layout import ABSENT
from nsds.status import CLOSED, OPENED, SWITCHED

LOWER, UPPER, HELD = range(3)


@tiny
def mode_at(z, lower, upper, w):
    """The mode of a row whose multiplier z is exactly at a bound, or between them; equal bounds leave the sign of w."""
    if lower == upper:
        return LOWER if w > 0.0 else UPPER
    return LOWER if z == lower else UPPER if z == upper else HELD


@tiny
def bounds_away_from_zero(w, lower, upper):
    """(lower, upper) of a row without lambda whose w is not zero: it keeps its sign for a moment, which fixes lambda at the other bound."""
    if w > 0.0 and lower > -math.inf:
        return lower, lower
    if w < 0.0 and upper < math.inf:
        return upper, upper
    return lower, upper


@tiny
def bounds_of_impulse(lower, upper):
    """(lower, upper) of the impulse of a row in a jump: bounded multipliers have none to that side."""
    return 0.0 if lower > -math.inf else -math.inf, 0.0 if upper < math.inf else math.inf


@tiny
def changes(p, iwork):
    """Bits of the rows whose mode is another than before the event. Out: culprit, the last of them."""
    bits = 0
    for i in range(p.m):
        mode, before = iwork[p.mode + i], iwork[p.before + i]
        if mode != before:
            bits |= CLOSED if mode == HELD else OPENED if before == HELD else SWITCHED
            iwork[p.culprit] = i
    return bits


class Rows(NamedTuple):
    """Places in the work memory of rows ``P lambda + X + K = 0``, P (m, m), X of width columns, ``stride`` apart, and their rounding."""

    m: int
    P: int
    X: int
    width: int
    stride: int
    K: int
    size: int  # the largest terms of each row of P
    row: int  # integers: the numbers of the rows, exchanged with them; ABSENT: they stay
    column: int  # integers: the numbers of the columns of P, exchanged with them
    no_pivot: float  # relative to the size of a row: entries up to it are no pivots
    no_entry: float  # relative to both terms: differences up to it are 0


@kernel
def subtract(a, k, count, e, work):
    """Subtract row k, whose pivot is 1, from row a until its entry there is 0; rounding of either becomes 0."""
    factor = work[e.P + a * e.m + k]
    if factor == 0.0:
        return
    work[e.size + a] = max(work[e.size + a], abs(factor) * work[e.size + k])
    for b in range(count):
        work[e.P + a * e.m + b] = _difference(work[e.P + a * e.m + b], factor * work[e.P + k * e.m + b], e.no_entry) if b != k else 0.0
    for j in range(e.width):
        work[e.X + a * e.stride + j] = _difference(work[e.X + a * e.stride + j], factor * work[e.X + k * e.stride + j], e.no_entry)
    work[e.K + a] -= factor * work[e.K + k]


@tiny
def _difference(a, b, no_entry):
    """``a - b``, 0 where that is rounding of them."""
    return a - b if abs(a - b) > no_entry * (abs(a) + abs(b)) else 0.0


@kernel
def pivot(done, count, e, memory):
    """Gauss–Jordan elimination with full pivoting, from row ``done`` up to the last pivot. Returns the number of solved rows."""
    work, iwork = memory.work, memory.iwork
    while done < count:
        # 1. pivot: largest entry relative to the size of its row, so that rows of any scale compete
        best, row, column = e.no_pivot, done, done
        for a in range(done, count):
            for b in range(done, count):
                entry = abs(work[e.P + a * e.m + b])
                if entry > best * work[e.size + a]:
                    best, row, column = entry / work[e.size + a], a, b
        if best == e.no_pivot:
            break
        # 2. exchange rows and columns
        for b in range(count):
            work[e.P + row * e.m + b], work[e.P + done * e.m + b] = work[e.P + done * e.m + b], work[e.P + row * e.m + b]
        for j in range(e.width):
            first, second = e.X + row * e.stride + j, e.X + done * e.stride + j
            work[first], work[second] = work[second], work[first]
        for at in (e.K, e.size):
            work[at + row], work[at + done] = work[at + done], work[at + row]
        if e.row != ABSENT:
            iwork[e.row + row], iwork[e.row + done] = iwork[e.row + done], iwork[e.row + row]
        for a in range(count):
            work[e.P + a * e.m + column], work[e.P + a * e.m + done] = work[e.P + a * e.m + done], work[e.P + a * e.m + column]
        iwork[e.column + column], iwork[e.column + done] = iwork[e.column + done], iwork[e.column + column]
        # 3. scale, and subtract from all others
        reciprocal = 1.0 / work[e.P + done * e.m + done]
        for b in range(count):
            work[e.P + done * e.m + b] *= reciprocal
        for j in range(e.width):
            work[e.X + done * e.stride + j] *= reciprocal
        work[e.K + done] *= reciprocal
        work[e.size + done] *= abs(reciprocal)
        for a in range(count):
            if a != done:
                subtract(a, done, count, e, work)
        done += 1
    return done
