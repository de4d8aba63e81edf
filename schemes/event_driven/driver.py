"""The event loop of all families: a motion from stop to stop, events in rows of their own, hand-over to time stepping.

A family is a module whose functions take the places of the names of `HOOKS`:

==============  ====================================================================================================================
``plan_of``     row of the table with the columns of `nsds.schemes.event_driven.event_times`, of the tables
``settle``      what happens at a time: impact, jump, modes. (CONVERGED, EVENT with bits), or a status that ends the run, and bits
``next_stop``   the next time at which the motion has to stop: of a row, of what is known in advance, of the end of an accumulation
``advance``     one step of the motion towards a stop. (status, time reached, whether an event is there, how many steps it counts as)
``update``      the row: outputs and forces at the state, into the record. A status
``goes_on``     whether time stepping goes on after a status
``hand_over``   time stepping up to where events can be followed again. EVENT with bits, or a status that ends the run
``note_event``  before the row in front of an event is returned
``finish``      before any row is returned
``entries``     entries that a step of the motion reads, about
``at_fault``    events since the last row from which on a motion that does not get on has too many of them
==============  ====================================================================================================================
"""

from nsds._jit import kernel, specialised, tiny
from nsds.model.records import T
from nsds.schemes.event_driven import event_times
from nsds.schemes.event_driven.event_times import AT_EVENT, AT_PAUSE, crawls, is_pending, steps_to_pause
from nsds.status import CONVERGED, EVENT, PAUSED, STEP_COLLAPSED, TOO_MANY_EVENTS

HOOKS = ("plan_of", "settle", "next_stop", "advance", "update", "goes_on", "hand_over", "note_event", "finish", "entries", "at_fault")


def driven(family, **hooks):
    """The kernel ``step`` of a family; hooks: those of `HOOKS` that are not as below.

    There the plan is the first row of ``s.flow``, and nothing is handed over or noted.
    """
    hooks = {
        "plan_of": _plan_of,
        "next_stop": _next_stop,
        "goes_on": _never,
        "hand_over": _ends,
        "note_event": _nothing,
        "finish": _nothing,
        "entries": _square,
        "at_fault": 1,
    } | hooks
    assert hooks.keys() == set(HOOKS), f"{family}: hooks {sorted(hooks)}"
    return kernel(specialised(_step, family, **hooks))


def _step(t_new, s, calls, options, memory):
    """From the state in mem to that at t_new, or before or after an event, at a time in mem. Returns (status, steps of the motion, 0).

    status is EVENT with bits of what happened at an event; PAUSED, with the time in mem, if the next call is to continue.
    """
    mem, iwork = memory.mem, memory.iwork
    p, t, n, spent = plan_of(s), mem[T], 0, 0  # noqa: F821
    status, has_ended, most = CONVERGED, False, steps_to_pause(entries(p))  # noqa: F821
    # 1. the event at which the last call ended
    if is_pending(p, iwork):
        status, bits = settle(t, s, calls, options, memory)  # noqa: F821
        status, has_ended = status | bits, status != CONVERGED or bits != 0
    # 2. motion, up to t_new, an event, or a pause in which the caller checks for interrupts
    while not has_ended:
        if t >= t_new:
            iwork[p.n_events], has_ended = 0, True
            status = update(t, s, calls.functions, options, memory)  # noqa: F821
        elif spent >= most:
            iwork[p.pending], mem[T], status, has_ended = AT_PAUSE, t, PAUSED, True
        else:
            until = next_stop(t, t_new, options.h, s, memory)  # noqa: F821
            status, t, is_event, effort = advance(t, until, s, calls.functions, options, memory)  # noqa: F821
            n, spent = n + 1, spent + effort
            if status == CONVERGED and crawls(t, options.h, effort, p, memory):
                status = TOO_MANY_EVENTS if iwork[p.n_events] >= at_fault else STEP_COLLAPSED  # noqa: F821
            if status != CONVERGED:
                mem[T], has_ended = t, True
            # the state before the event is recorded; the next call handles it
            elif is_event or (t >= until and until < t_new):
                iwork[p.pending], mem[T], has_ended = AT_EVENT, t, True
                status = update(t, s, calls.functions, options, memory)  # noqa: F821
                note_event(s, memory)  # noqa: F821
                status = EVENT if status == CONVERGED else status
    # 3. failures that time stepping may pass
    if goes_on(status, options, s, iwork):  # noqa: F821
        status = hand_over(t_new, status, s, calls, options, memory)  # noqa: F821
    finish(s, memory)  # noqa: F821
    return status, n, 0.0


@tiny
def _plan_of(s):
    """The row of the table of the flow."""
    return s.flow[0]


@tiny
def _square(p):
    """Entries of a matrix of all states."""
    return p.n * p.n


@tiny
def _next_stop(t, t_new, h, s, memory):
    """The next time at which the motion has to stop."""
    return event_times.next_stop(t, t_new, h, s.times, s.flow[0], memory)


@tiny
def _never(status, options, s, iwork):
    """Nothing is handed over."""
    return False


@tiny
def _ends(t_new, why, s, calls, options, memory):
    """The run ends with the status that it has."""
    return why


@tiny
def _nothing(s, memory):
    """Nothing to note."""
