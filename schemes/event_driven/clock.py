"""Times at which an event-driven step has to stop, and how many events there have been: what all families of systems have in common.

p is a row of a table with the columns pending, next_time, n_events and n_still of the integer work memory, event, tail, handed and
handed_to of the other.
"""

import math

from nsds._jit import tiny
from nsds.status import (
    AFTER_JAM,
    AFTER_MANY_EVENTS,
    AFTER_NO_MODES,
    AFTER_SHORT_STEPS,
    MAX_ITER,
    NEWTON,
    PAINLEVE,
    RAY,
    SINGULAR,
    SINGULAR_STEP,
    STALLED,
    STEP_COLLAPSED,
    TOO_MANY_EVENTS,
)

AT_EVENT, AT_START = 1, 2  # what is pending
NEVER, ALWAYS, USUAL = range(3)  # the option hybrid
STEPS = 10**9  # of a motion between two rows: a bound that is never met
_STILL = 2.0**-48  # of the time: events that are no further apart are at one time
_MOST_STILL = 64  # of them
SUBSTEPS = 64  # of an interval that is handed over to time stepping
_FIRST, _LONGER, _RESOLVED = 2.0**-10, 4.0, 2.0**-36  # its length, of h; that of the next one, of the last; of the time, at least
_FEWER = 16.0  # events and steps than else are allowed soon after it


@tiny
def wind_up(t, times, p, work, iwork):
    """Begin at t: the start is pending, times until then are over, no events have been, and nothing was handed over."""
    work[p.handed], work[p.handed_to] = 0.0, -math.inf
    iwork[p.pending], iwork[p.n_events], iwork[p.n_still], iwork[p.next_time] = AT_START, 0, 0, 0
    while iwork[p.next_time] < times.size and times[iwork[p.next_time]] <= t:
        iwork[p.next_time] += 1


@tiny
def next_stop(t, t_new, times, p, work, iwork):
    """The next time that is known in advance: of a row, of an event, of the end of an accumulation; the last row may have been there."""
    until = t_new
    if iwork[p.next_time] < times.size:
        until = min(until, times[iwork[p.next_time]])
    return min(until, max(work[p.tail], t)) if work[p.tail] > -math.inf else until


@tiny
def strikes(t, times, p, iwork):
    """Whether t is the next time known in advance, which then is over."""
    is_now = iwork[p.next_time] < times.size and t >= times[iwork[p.next_time]]
    if is_now:
        iwork[p.next_time] += 1
    return is_now


@tiny
def count_event(t, h, p, work, iwork):
    """One event more, at t."""
    iwork[p.n_events] += 1
    iwork[p.n_still] = iwork[p.n_still] + 1 if t - work[p.event] <= _STILL * max(abs(t), h) else 0
    work[p.event] = t


@tiny
def are_too_many(t, options, p, work, iwork):
    """Whether there are more events than max_events between two rows, or too many at one time."""
    return iwork[p.n_events] > options.max_events / fewer(t, options.h, p, work) or iwork[p.n_still] > _MOST_STILL


@tiny
def fewer(t, h, p, work):
    """By what the numbers of events and steps are divided that are allowed: less soon after an interval of time stepping."""
    return _FEWER if t - work[p.handed_to] <= h else 1.0


@tiny
def is_handed_over(status):
    """Whether time stepping may go on where an event, or a smooth motion, ended with this status."""
    no_modes = status in (MAX_ITER, STALLED, RAY, SINGULAR, NEWTON, SINGULAR_STEP)
    return no_modes or status in (STEP_COLLAPSED, TOO_MANY_EVENTS, PAINLEVE)


@tiny
def reason(status):
    """The bit that says in a row why time was stepped."""
    if status == TOO_MANY_EVENTS:
        return AFTER_MANY_EVENTS
    if status == STEP_COLLAPSED:
        return AFTER_SHORT_STEPS
    return AFTER_JAM if status == PAINLEVE else AFTER_NO_MODES


@tiny
def note_length(t, status, h, p, work):
    """Of an interval that begins at t: 2^-10 h in work[handed], soon after another four times its length, up to h.

    What takes many events or steps to notice comes soon within h, so that few such intervals are in it.
    """
    is_costly = status in (TOO_MANY_EVENTS, STEP_COLLAPSED)
    is_soon = t - work[p.handed_to] <= (h if is_costly else _LONGER * work[p.handed])
    lengthen(t, is_soon, h, p, work)


@tiny
def lengthen(t, is_soon, h, p, work):
    """The length of an interval that begins at t."""
    work[p.handed] = max(_FIRST * h, min(h, _LONGER * work[p.handed]) if is_soon else 0.0, _RESOLVED * abs(t))


@tiny
def end_of_interval(t, until, p, work):
    """Where the interval that begins at t ends: at until where next to nothing would be left over."""
    return until if t + 1.5 * work[p.handed] >= until else t + work[p.handed]
