"""Times at which an event-driven step has to stop, and how many events there have been: what all families of systems have in common.

p is a row of a table with the columns pending, next_time, n_events and n_still of the integer work memory, event and tail of the other.
"""

import math

from nsds._jit import tiny

AT_EVENT, AT_START = 1, 2  # what is pending
STEPS = 10**9  # of a motion between two rows: a bound that is never met
_STILL = 2.0**-48  # of the time: events that are no further apart are at one time
_MOST_STILL = 64  # of them


@tiny
def wind_up(t, times, p, iwork):
    """Begin at t: the start is pending, times until then are over, and no events have been."""
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
def are_too_many(max_events, p, iwork):
    """Whether there are more events than that between two rows, or too many at one time."""
    return iwork[p.n_events] > max_events or iwork[p.n_still] > _MOST_STILL
