"""Side of times known in advance on which functions of time are evaluated, where they may jump.

p is a row of a table with the columns t_low, t_high of the work memory and next_time of the integer one.
"""

import math

from nsds._jit import kernel, tiny
from nsds.maths.times import is_same

_NO_TIME = 2.0**-48  # of the time: distance from a known event at which functions are evaluated


@kernel
def open_window(t, h, times, p, memory):
    """Times at which functions are called from t on: between the last event that is known in advance, or t, and the next one."""
    k = memory.iwork[p.next_time]
    is_event = k > 0 and is_same(t, times[k - 1], h)
    memory.work[p.t_low] = max(t, times[k - 1]) + _NO_TIME * max(abs(t), 1e-300) if is_event else t
    memory.work[p.t_high] = times[k] - _NO_TIME * abs(times[k]) if k < times.size else math.inf


@tiny
def clamped(t, p, work):
    """The time at which functions are called for t: between events that are known in advance, at which they may jump."""
    return min(max(t, work[p.t_low]), work[p.t_high])
