"""Clock of event-driven steps: times at which a step has to stop, and counts of events; common to all families of systems.

p is a row of a table with the columns `CLOCK` of the work memory, and `COUNTS` of the integer one.
"""

import math

from nsds._jit import tiny
from nsds.maths.times import ROUNDED, is_later, is_same
from nsds.status import (
    ACCUMULATION,
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
    TIME_EVENT,
    TOO_MANY_EVENTS,
)

# tail: end of an accumulation; event: time of the last one; mark: time from which steps are counted, counted: events; reached: time of the
# last step, stride: the longest one so far; handed, handed_to: length and end of the interval that was last handed over to time stepping, s
CLOCK = ("tail", "event", "mark", "counted", "reached", "stride", "handed", "handed_to")
# pending: an event is due; next_time: of those known in advance; events since the last row, and at one time; steps since the mark
COUNTS = ("pending", "next_time", "n_events", "n_still", "n_steps")
AT_EVENT, AT_START, AT_PAUSE = 1, 2, 3  # values of pending
NEVER, ALWAYS, USUAL = range(3)  # the option hybrid
# Steps after which a motion without progress fails. Progress is that part of the time between rows, of long rows so many of the longest
# steps so far, but at least the second part of the row.
_PATIENCE, _CRAWL, _STRIDES, _LEAST = 20_000, 1e-3, 20.0, 1e-6
_MOST_STEPS, _ENTRIES = 4096, 2**20  # of a motion between two checks for Ctrl-C, and entries of their matrices
MOST_STILL = 64  # events at one time
SUBSTEPS = 64  # of an interval that is handed over to time stepping
_FIRST, _LONGER, _RESOLVED = 2.0**-10, 4.0, 2.0**-36  # its length, of h; growth of the next one; least length, of the time
_FEWER = 16.0  # events and steps than otherwise are allowed soon after it


@tiny
def wind_up(t, h, times, p, memory):
    """Begin at t: the start is pending, times until then are over, no events have been, and nothing was handed over."""
    work, iwork = memory.work, memory.iwork
    work[p.handed], work[p.handed_to], work[p.mark] = 0.0, -math.inf, t
    work[p.counted], work[p.reached], work[p.stride] = t, t, 0.0
    iwork[p.pending], iwork[p.n_events], iwork[p.n_still], iwork[p.n_steps], iwork[p.next_time] = AT_START, 0, 0, 0, 0
    while iwork[p.next_time] < times.size and not is_later(times[iwork[p.next_time]], t, h):
        iwork[p.next_time] += 1


@tiny
def at_row(time, t_new, h):
    """A time that is known in advance; that of the next row where it is the same up to rounding, so that nothing moves in between."""
    return t_new if is_same(time, t_new, h) else time


@tiny
def next_stop(t, t_new, h, times, p, memory):
    """The next time that is known in advance: of a row, of an event, of the end of an accumulation; the last row may have been there."""
    until = t_new
    if memory.iwork[p.next_time] < times.size:
        until = min(until, max(t, at_row(times[memory.iwork[p.next_time]], t_new, h)))
    return min(until, max(memory.work[p.tail], t)) if memory.work[p.tail] > -math.inf else until


@tiny
def strikes(t, h, times, p, iwork):
    """Whether t is the next time known in advance, which then is over, as are others that are the same up to rounding."""
    k = iwork[p.next_time]
    while iwork[p.next_time] < times.size and not is_later(times[iwork[p.next_time]], t, h):
        iwork[p.next_time] += 1
    return iwork[p.next_time] > k


@tiny
def is_pending(p, iwork):
    """Whether a step begins with an event, or at the start; a controller may have changed inputs, but not since a pause."""
    if iwork[p.pending] == AT_PAUSE:
        iwork[p.pending] = 0
    elif iwork[p.pending] == 0 and p.is_controlled != 0:
        iwork[p.pending] = AT_START
    return iwork[p.pending] != 0


@tiny
def steps_to_pause(entries):
    """After how many steps of a motion that read so many entries a step between rows pauses, so that Ctrl-C is heard."""
    return min(_MOST_STEPS, max(1, _ENTRIES // (entries + 1)))


@tiny
def crawls(t, h, effort, p, memory):
    """Count a step of the motion, as ``effort``; returns whether many have made no progress, with events between them or without."""
    work, iwork = memory.work, memory.iwork
    iwork[p.n_steps] += effort
    less = fewer(t, h, p, work)
    work[p.stride], work[p.reached] = max(work[p.stride], t - work[p.reached]), t
    enough = max(min(_CRAWL * h, _STRIDES * work[p.stride]), _LEAST * h)
    if t - work[p.mark] > max(enough, work[p.handed] if less > 1.0 else 0.0):
        work[p.mark], iwork[p.n_steps] = t, 0
    return iwork[p.n_steps] > _PATIENCE / less


@tiny
def count_event(t, h, p, memory):
    """One event more, at t, since the last row, or since the motion has got on where rows are long."""
    work, iwork = memory.work, memory.iwork
    if t - work[p.counted] > max(_CRAWL * h, _STRIDES * work[p.stride]):
        work[p.counted], iwork[p.n_events] = t, 0
    iwork[p.n_events] += 1
    iwork[p.n_still] = iwork[p.n_still] + 1 if t - work[p.event] <= ROUNDED * max(abs(t), h) else 0
    work[p.event] = t


@tiny
def begin_event(t, h, times, p, memory):
    """(whether it is the start, bits) of what is pending at t: a time known in advance, the end of an accumulation, which then are over."""
    is_start, bits = memory.iwork[p.pending] == AT_START, 0
    memory.iwork[p.pending] = 0
    if strikes(t, h, times, p, memory.iwork):
        bits = TIME_EVENT
    if -math.inf < memory.work[p.tail] <= t:
        memory.work[p.tail] = -math.inf
        bits |= ACCUMULATION
    return is_start, bits


@tiny
def are_too_many(t, options, p, memory):
    """Whether there are more events than max_events between two rows, or too many at one time."""
    return memory.iwork[p.n_events] > options.max_events / fewer(t, options.h, p, memory.work) or memory.iwork[p.n_still] > MOST_STILL


@tiny
def fewer(t, h, p, work):
    """Divisor of the allowed numbers of events and steps: fewer soon after an interval of time stepping."""
    return _FEWER if t - work[p.handed_to] <= h else 1.0


@tiny
def is_handed_over(status):
    """Whether time stepping may go on where an event, or a smooth motion, ended with this status."""
    no_modes = status in (MAX_ITER, STALLED, RAY, SINGULAR, NEWTON, SINGULAR_STEP)
    return no_modes or status in (STEP_COLLAPSED, TOO_MANY_EVENTS, PAINLEVE)


@tiny
def reason(status):
    """Bit of a row that gives the reason for time stepping."""
    if status == TOO_MANY_EVENTS:
        return AFTER_MANY_EVENTS
    if status == STEP_COLLAPSED:
        return AFTER_SHORT_STEPS
    return AFTER_JAM if status == PAINLEVE else AFTER_NO_MODES


@tiny
def note_length(t, status, h, p, work):
    """Length of an interval that begins at t: 2^-10 h in work[handed], soon after another four times its length, up to h.

    Difficulties that show only after many events or steps recur soon within h, so that few such intervals are in it.
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
    """End of the interval that begins at t; extended to ``until`` if the remainder would be negligible."""
    return until if t + 1.5 * work[p.handed] >= until else t + work[p.handed]
