"""The time loop, recording, progress, interruption and failure policy, for all schemes."""

import math
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np

from nsds import _checks, _jit
from nsds._jit.cache import fingerprint
from nsds.maths.times import ROUNDED
from nsds.model.function_checks import function_names, has_functions
from nsds.model.functions import Raised, offered, warn_of_globals
from nsds.model.layout import state_fields
from nsds.model.records import N_ITER, RESIDUAL, STATUS, STEP, T0, T, copied, memory
from nsds.model.validation import valid
from nsds.results.storage import computed_with
from nsds.results.trajectories import SimulationError, SimulationInterrupted
from nsds.schemes.memory import calls_of, memory_of
from nsds.schemes.problem.tables import blame_row
from nsds.schemes.run import split_runs
from nsds.schemes.run.cores import THREADS_FROM, cores, shares
from nsds.schemes.run.ensembles import simulate_in_pieces
from nsds.schemes.run.interrupts import Interrupts, first_chunk, next_chunk
from nsds.schemes.run.preparation import has_event_rows, key_of, number_of_steps, put_back, range_of, run_from, steps_between
from nsds.schemes.run.progress import Progress
from nsds.schemes.run.recording import (
    DONE,
    FAILED,
    ROW,
    ROW_N_ITER,
    ROW_RESIDUAL,
    ROW_STATUS,
    ROW_STEP,
    ROW_T,
    STARTED,
    STOPPED,
    Recorder,
)
from nsds.schemes.run.sampled_control import BROKEN, HELD, SWITCHED, act
from nsds.schemes.run.stop_conditions import Until
from nsds.schemes.run.tiles import tiles_of
from nsds.schemes.run.warnings import (
    Births,
    warn_of_edges,
    warn_of_hand_overs,
    warn_of_open_starts,
    warn_of_overlaps,
    warn_of_passing,
    warn_of_penetration,
    warn_of_violations,
)
from nsds.status import CAPACITY, CONVERGED, EVENT, INEXACT, NON_FINITE, PAUSED, advice

_ROWS_OF_EVENT = 2  # least room for a step to start
_EVENTS_TO_PAUSE = 4096  # of a member, between two checks for Ctrl-C


def simulate(system, *, t_end, h, scheme=None, solver=None, save_every=1, t_eval=None, fields=None, progress=None, on_failure="raise",
             until=None, callback=None, callback_every=1, out=None, check=False, functions=None, store=None, client=None,
             mapped=False):  # fmt: skip
    """March a system, or every member of an ensemble, from its time to ``t_end``.

    Parameters
    ----------
    system : numpy.ndarray
        A record from `nsds.system`, or an array of such records; it is not changed.
    t_end : float
        Where the run ends: it takes the fewest steps of size h that reach t_end, the last of which is shorter where h does not divide the
        time. What is beyond a whole number of steps by less than a millionth of one is part of the last one.
    h : float or array_like
        Step size; of `nsds.event_driven` the time between rows. Of an ensemble also one for each member: those with the same step run
        together, one group after the other, and a member with fewer rows than others has the status NOT_COMPUTED in those that it lacks.
    scheme : numpy.ndarray, or dict of str to numpy.ndarray, optional
        For instance ``nsds.moreau_jean(theta=0.5)``; by default `nsds.rattle` for rigid bodies, Moreau–Jean for Lagrangian
        and `nsds.euler_moreau` for first-order systems. A dict gives each system its own, which no interaction may link to
        one with another.
    solver : str or numpy.ndarray, optional
        Method for the one-step problems: a name from `nsds.solvers.methods`, of kind "relay", for rigid bodies "rigid", for Lagrangian
        systems with friction "lagrangian_plane" and its like; or a record from `nsds.solvers.solver`.
    save_every : int
        Save every that many steps; the initial and the last state are always saved.
    t_eval : array_like, optional
        Times, ascending, up to t_end: save the steps that reach them, in place of every one; the initial and the last state besides.
        Nothing is interpolated, between steps there may be an impact.
    fields : sequence of str, optional
        What to save, as ``"ball"`` (its state) or ``"ball.q"``; all state by default. Any numeric field of the record may be named.
    progress : bool, optional
        Progress bar; by default on a terminal when the run takes longer than half a second.
    on_failure : "raise", "warn" or "continue"
        What to do when a step is not solved or becomes NaN. The status of every step is in the trajectory. A step that is solved less
        well than asked, but well enough to make sense, has not failed: its status is INEXACT, its residual says how well, and
        `nsds.report` counts such rows.
    until : str or function, optional
        Ends the run at the first saved row after the initial one at which it holds, as ``"ball.q[0] < 0.1"``; of an ensemble each member
        at its own, whose further rows have the status `nsds.status.NOT_COMPUTED`. Or a function ``until(rows)``, which gets some of the
        saved rows and returns an array of bool, one for each. Times are those of saved rows; to stop at an impact exactly use
        `nsds.event_driven`.
    callback : function ``callback(system)``, optional
        Called with a copy of the system, or ensemble, after every ``callback_every`` steps; what is true of what it returns ends the run,
        whose last state is then the one that it was given. What it raises ends the run too. To change the system use `nsds.stepper`.
    callback_every : int
        Steps from one call to the next.
    out : numpy.ndarray, optional
        Where the rows are written, in place of a new array: a result of the same run before, or an array of its type and shape. What this
        returns shares its memory, unless the room of detected contacts grows. Memory that was used before takes the rows two times faster.
    check : bool
        Run the user's functions in Python, and check them: one that reads or writes out of the range of its arguments, writes into another
        than the last, or raises, ends the run with a SimulationError that names part, function, index and time. Slow: for a function that
        one does not trust, or a run that ends in NaN.
    functions : sequence of functions, optional
        User functions that the record names and this process has not seen yet, as of one that was loaded from a file. Those of modules
        that are imported are found without; a record never decides what is imported.
    store : str or Path, optional
        Of large ensembles: a folder for what is computed, some members at a time, as of `nsds.sweep`. Where the same run is asked for
        again, finished pieces are read and the others computed. All members are through before a failure is told.
    client : distributed.Client, optional
        These pieces are computed on the workers of this cluster, as of `nsds.sweep`.
    mapped : bool
        The trajectory is an array over a file in the store, as of `nsds.sweep`: it may be larger than the memory.

    Returns
    -------
    numpy.ndarray
        Structured array (rows,), for an ensemble (members, rows), with t, step, status, n_iter, residual, and one field per part: q, v of
        Lagrangian systems; x, r and a constant u of first-order ones; y, lambda (of the step that ends at t) of interactions, on
        Lagrangian systems also ydot, active; state of controllers. t is the time of the state in a row: under all schemes multiples of h
        after the start, and t_end in the last row, so that a run which begins from it goes on without a gap. Row 0 is the initial state.
        Where steps between two rows are not saved, status is that of the last step that failed, else INEXACT if a step was; n_iter the sum,
        residual the maximum. Under `nsds.event_driven` there are also rows at events.

    Raises
    ------
    ValueError, TypeError
        Arguments that do not fit; a singular iteration matrix.
    SimulationError
        A step failed and ``on_failure="raise"``; the trajectory so far is on the exception.
    SimulationInterrupted
        Ctrl-C; the trajectory so far is on the exception.
    MemoryError
        More rows than the machine has memory for.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> trajectory = nsds.simulate(nsds.examples.bouncing_ball(), t_end=10.0, h=5e-3)
    >>> trajectory["ball"]["q"].shape
    (2001, 3)
    >>> float(trajectory["floor"]["lambda"].max().round(3))
    8.437
    """
    # 1. settings that all kinds of runs share
    offered("simulate", functions)
    settings = {"t_end": t_end, "solver": solver, "save_every": save_every, "t_eval": t_eval, "progress": progress,
                "on_failure": on_failure, "check": check}  # fmt: skip
    # 2. pieces of an ensemble, in a store or on a cluster
    if store is not None or client is not None or mapped is not False:
        why = "members run piece by piece, with what is text or numbers; expected no store"
        _refuse(why, callback=callback, out=out, until=None if isinstance(until, str) else until, check=check or None)
        if isinstance(scheme, dict) or _checks.shape_of("simulate", "h", h):
            raise ValueError("simulate: store goes with one scheme and one step h for all members")
        settings = {"t_end": t_end, "h": h, "scheme": scheme, "solver": solver, "save_every": save_every, "t_eval": t_eval}
        settings |= {"fields": _paths("simulate", fields), "until": until}
        return simulate_in_pieces((simulate, edition), system, store, client, mapped, progress, on_failure, **settings)
    # 3. members with steps of their own, or systems with schemes of their own: one run each
    if _checks.shape_of("simulate", "h", h):
        _refuse("several steps run one after the other; expected one step", callback=callback, out=out)
        return _with_own_steps(valid("simulate", system), h, scheme=scheme, fields=fields, until=until, **settings)
    if isinstance(scheme, dict):
        _refuse("several schemes run one after the other; expected one scheme", callback=callback, until=until, out=out)
        system, settings["h"] = valid("simulate", system), h
        groups = split_runs.groups_of("simulate", system, scheme)
        pieces = [
            simulate(split_runs.part_of(system, names), scheme=options, fields=split_runs.fields_of(fields, names), **settings)
            for options, names in groups
        ]
        return split_runs.joined_rows(system, pieces)
    # 4. a plain run
    t_end = _checks.number("simulate", "t_end", t_end)
    pauses = pauses_of("simulate", t_eval, save_every, until, callback, callback_every)
    _, recorder = run_through("simulate", system, h, scheme, solver, on_failure, t_end, save_every, fields, progress, check=check,
                              pauses=pauses, out=out)  # fmt: skip
    return _shaped(system, recorder.block())


def _refuse(why, **given):
    """Refuse arguments that do not apply to runs made in sequence."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"simulate: {name}: {why}, or no {name}")


def _with_own_steps(system, h, **settings):
    """The rows of an ensemble whose members have steps of their own."""
    pieces, records = [], system.reshape(-1)
    for step, members in split_runs.members_by_step("simulate", system, h):
        try:
            pieces.append((members, simulate(records[members], h=step, **settings)))
        except SimulationError as e:
            rows = split_runs.joined_members(system.shape, [*pieces, (members, e.trajectory)])
            raise SimulationError(rows, int(members[e.member]), e.step, e.t, e.status, e.residual, e.cause) from e.__cause__
        except KeyboardInterrupt as e:
            pieces += [(members, e.trajectory)] if isinstance(e, SimulationInterrupted) else []
            if not pieces:
                raise
            rows = split_runs.joined_members(system.shape, pieces)
            raise SimulationInterrupted(rows, rows.shape[-1], ".trajectory") from None
    return split_runs.joined_members(system.shape, pieces)


def run_through(owner, system, h, scheme, solver, on_failure, t_end=None, save_every=1, fields=None, progress=False, file=None,
                check=False, n_steps=1, pauses=None, out=None):  # fmt: skip
    """(the run at its end, the recorder with its rows): to t_end, or n_steps; a run without a file may serve another one later."""
    # 1. arguments
    save_every = _checks.integer(owner, "save_every", save_every, low=1)
    _checks.choice(owner, "on_failure", on_failure, ("raise", "warn", "continue"))
    if progress is not None:
        progress = _checks.flag(owner, "progress", progress)
    fields = _paths(owner, fields)
    # 2. a kept run of the same layout, or a new one
    key = key_of(system, h, scheme, solver) if file is None and check is False else None
    run, scheme, kept = run_from(owner, system, h, scheme, solver, _checks.flag(owner, "check", check), key)
    if has_functions(run.records):
        warn_of_globals(owner, function_names(run.records))
    # 3. number of steps, and rows
    n_steps = number_of_steps(owner, run.records, t_end, h, n_steps)
    if file is not None and has_event_rows(run.prepared.stepper):
        raise ValueError(f"{owner}: the number of rows of an event-driven run is not known in advance; use nsds.simulate")
    rows_at = None if pauses is None or pauses.times is None else _steps_at(owner, pauses.times, run.records, t_end, h, n_steps)
    if out is not None and has_event_rows(run.prepared.stepper):
        raise ValueError(f"{owner}: the number of rows of an event-driven run is not known in advance, so it takes no array out")
    # 4. a last step of other length is prepared in advance, so that it fails before the run
    last = None
    if t_end is not None:
        if run.looked_at.has_sources and not has_event_rows(run.prepared.stepper):
            warn_of_edges(run.records, run.prepared.options.h, t_end)
        last = _LastStep.needed(owner, run, n_steps, t_end, np.shape(system), (scheme, solver, check), key is not None)
    # 5. recorder, and settings that a file stores
    recorder = Recorder(run.records, fields, n_steps, save_every, file, rows_at)
    if out is not None:
        recorder.write_into(owner, out, np.shape(system))
    settings = {"t_end": t_end, "h": float(h), "scheme": scheme, "solver": solver, "save_every": save_every, "fields": fields}
    settings["on_failure"] = on_failure
    if pauses is not None:
        settings["t_eval"] = None if pauses.times is None else pauses.times.tolist()
        settings["until"] = None if pauses.until is None else pauses.until.text or False
    # 6. march
    try:
        with Interrupts() as interrupts, Raised() if has_functions(run.records) and run.watched is None else nullcontext() as raised:
            try:
                if file is not None:
                    records = copied(_shaped(system, run.records))
                    file.open(records, recorder.dtype, settings, recorder.n_rows, computed_with(edition(run)))
                run = _march(run, recorder, n_steps, last, progress, on_failure == "raise", interrupts, pauses, np.shape(system), raised)
            finally:
                recorder.close()
    except KeyboardInterrupt:
        place = ".trajectory" if file is None else file.path
        raise SimulationInterrupted(recorder.block().reshape(*np.shape(system), -1), recorder.n_reached, place) from None
    # 7. errors of user functions, warnings, failure policy
    if run.watched is not None and run.watched.error is not None:
        _raise_watched(run, recorder, np.shape(system))
    if raised is not None and raised.error is not None:
        _raise_again(raised, recorder, owner, np.shape(system), run.prepared.options.h, scheme, solver)
    if t_end is not None:
        warn_of_violations(run.looked_at.bilateral, recorder.initial)
    warn_of_open_starts(run.records, run.prepared, run.looked_at.open_places)
    if file is None and has_event_rows(run.prepared.stepper):
        warn_of_hand_overs(recorder.block())
    _report_failure(run, recorder, np.shape(system), on_failure)
    # 8. runs return to where the next one looks for them
    if kept is not None and (run is kept.run or (last is not None and last.before is kept.run)):
        put_back(key, kept)
    if last is not None and last.kept is not None and run is last.kept.run:
        put_back(last.key, last.kept)
    return run, recorder


class _LastStep:
    """The last step of a run, which ends at t_end, and is shorter than the others; by rounding of one it may be longer.

    before: the run that made the others; kept, key: the run that makes this one, to be kept for another run, and its key.
    """

    def __init__(self, owner, t_end, length, shape, settings, may_keep):
        self._owner, self._t_end, self._length, self._shape = owner, t_end, length, shape
        self._settings, self._may_keep = settings, may_keep
        self.before = self.kept = self.key = None

    @classmethod
    def needed(cls, owner, run, n_steps, t_end, *others):
        """The last of n_steps, where steps of the length h do not end at t_end, up to rounding; else None."""
        records, h = run.records, run.prepared.options.h
        first, last = range_of(records["t0"] + (records["step"] + n_steps) * h)
        rounding = ROUNDED * max(abs(t_end), *map(abs, range_of(records["t"])), h)
        if first >= t_end - rounding and last <= t_end + rounding:
            return None
        if last - first > rounding:
            raise ValueError(
                f"{owner}: members of an ensemble begin at different times, from {records['t'].min():.9g} to {records['t'].max():.9g}, so "
                f"that their last steps to t_end = {t_end:.9g} have different lengths: expected one time"
            )
        return cls(owner, t_end, float(t_end - (records["t0"][0] + (records["step"][0] + n_steps - 1) * h)), *others)

    def run_from(self, run, recorder):
        """The run that makes the last step: of event-driven schemes the same one, whose rows may be anywhere."""
        self.before, steps, h = run, run.records["step"] + 1, run.prepared.options.h
        if not has_event_rows(run.prepared.stepper):
            h, (scheme, solver, check) = self._length, self._settings
            system = run.records.reshape(self._shape)
            self.key = key_of(system, h, scheme, solver) if self._may_keep else None
            run, _, self.kept = run_from(self._owner, system, h, scheme, solver, check, self.key, run.prepared.options.h)
            recorder.reached[:, STARTED] = 0
        run.records["step"] = steps - 1
        run.records["t0"] = [_start_of(self._t_end, step, h) for step in steps.tolist()]
        return run


def _start_of(t_end, step, h):
    """The time from which so many steps lead to t_end, in all its digits where there is one."""
    start = t_end - step * h
    around = (start, math.nextafter(start, math.inf), math.nextafter(start, -math.inf))
    return next((t for t in around if t + step * h == t_end), start)


class _Pauses(NamedTuple):
    """Stops of a run in Python: rows at times, None if these are many, a condition, and a callback."""

    times: np.ndarray | None
    until: Until | None
    callback: Callable | None
    every: int


def pauses_of(owner, t_eval, save_every, until, callback, every):
    """`_Pauses` of a user's arguments."""
    every = _checks.integer(owner, "callback_every", every, low=1)
    if callback is not None:
        _checks.takes(owner, "callback", callback, "system")
    until = None if until is None else Until(owner, until)
    if t_eval is None:
        return _Pauses(None, until, callback, every)
    times = _checks.array(owner, "t_eval", t_eval, n_dims=1)
    if times.size == 0 or (np.diff(times) < 0).any():
        raise ValueError(f"{owner}: t_eval must be ascending times, got {_checks.shortened(t_eval)}")
    if save_every != 1:
        raise ValueError(f"{owner}: t_eval says which steps are saved; it goes with save_every=1, got {save_every}")
    return _Pauses(times, until, callback, every)


def _steps_at(owner, times, records, t_end, h, n_steps):
    """The steps that reach some times, and the last one."""
    t = records["t"][0]
    if times.size and (times[0] < t or times[-1] > t_end):
        raise ValueError(
            f"{owner}: t_eval must lie between the system's time {t:g} and t_end = {t_end:g}, got {times[0]:g} to {times[-1]:g}"
        )
    steps = np.unique(np.append(np.clip(steps_between(t, times, h), 0, n_steps), n_steps)).astype(np.int64)
    return steps[steps > 0]


def _paths(owner, fields):
    if fields is None or isinstance(fields, str):
        return fields
    fields = fields.tolist() if isinstance(fields, np.ndarray) else fields
    if not isinstance(fields, (list, tuple, set, frozenset)) or not all(isinstance(path, str) for path in fields):
        raise TypeError(f'{owner}: fields must be texts such as "ball" or "ball.q", got {_checks.shortened(fields)}')
    return [str(path) for path in fields]


def _shaped(system, rows):
    """Rows (members, ...) with the shape of the system in place of the members."""
    return rows.reshape((*np.shape(system), *rows.shape[1:]))


@_jit.tiny
def _no_opening(t, tables, calls, options, memory):
    """The first row is that which `start` leaves."""


def _march_template(first, last, until, n_total, save_every, stop, first_row, sources, reached, tables, functions, controls, solver,
                    solver_options, options, mems, imems, works, iworks, rows, irows, width):  # fmt: skip
    """Steps up to number ``until`` of members first..last, each recorded when it is due. Written once; each scheme gets its copy.

    If the scheme has rows ``at_events``, a step may also end at an event, whose row is saved; the next continues from there.
    """
    h = options.h
    controllers, where, control_functions, scratch = controls
    for m in range(first, last):
        mem, imem, address, row, irow = mems[m], imems[m], functions[m], rows[m], irows[m]
        memory, calls = memory_of((mem, imem, works[m], iworks[m])), calls_of((address, solver, solver_options))
        at, done, stopped, n_events = (reached[m, ROW] - first_row) * width, reached[m, DONE], reached[m, STOPPED], 0
        # 1. start of a member: scheme, controllers, first row
        if reached[m, STARTED] == 0 and stopped == 0:
            reached[m, STARTED], done_by_control = 1, HELD
            stopped = start(mem[T], tables, address, options, memory)  # noqa: F821
            if controllers.size > 0 and stopped == 0:
                done_by_control = act(mem[T], h, controllers, where, control_functions[m], mem, imem, scratch[m])
            if done_by_control == BROKEN:
                imem[STATUS] = NON_FINITE
            if at_events and stopped == 0:  # noqa: F821
                opening(mem[T], tables, calls, options, memory)  # noqa: F821
            if reached[m, ROW] == 0 and stopped == 0:
                irow[ROW_STATUS], irow[ROW_N_ITER], row[ROW_RESIDUAL] = imem[STATUS], imem[N_ITER], mem[RESIDUAL]
                reached[m, FAILED] = 1 if imem[STATUS] != CONVERGED and imem[STATUS] != INEXACT and imem[STATUS] < EVENT else 0
                at = _save(at, width, sources, mem, imem, row, irow)
            # its row has the impulses before: only now the scheme restarts with the flags of the controller
            if done_by_control == SWITCHED:
                stopped = start(mem[T], tables, address, options, memory)  # noqa: F821
        while done < until and stopped == 0:
            if at_events and at + _ROWS_OF_EVENT * width > row.size:  # noqa: F821
                stopped = CAPACITY
                break
            # 2. one step; times are multiples of h from t0, so that no rounding accumulates
            k = imem[STEP] + 1
            t = mem[T0] + k * h
            status, n_iter, residual = step_(t, tables, calls, options, memory)  # noqa: F821
            # no room for contacts: nothing has changed, and the step is repeated with more room
            if status == CAPACITY:
                stopped = status
                break
            if at_events and status == PAUSED:  # noqa: F821
                irow[at + ROW_N_ITER] += n_iter
                stopped = status
                break
            # 3. event: its row, at the time in mem
            imem[STATUS], imem[N_ITER], mem[RESIDUAL] = status, n_iter, residual
            if at_events and status >= EVENT:  # noqa: F821
                irow[at + ROW_STATUS], irow[at + ROW_N_ITER] = status, irow[at + ROW_N_ITER] + n_iter
                at = _save(at, width, sources, mem, imem, row, irow)
                n_events += 1
                stopped = PAUSED if n_events == _EVENTS_TO_PAUSE else 0
                continue
            # 4. clock, and controllers at their instants
            imem[STEP] = k
            if not at_events or status in (CONVERGED, INEXACT):  # noqa: F821
                mem[T] = t
            done_by_control = act(t, h, controllers, where, control_functions[m], mem, imem, scratch[m]) if controllers.size > 0 else HELD
            if done_by_control == BROKEN:
                status = imem[STATUS] = NON_FINITE
            # 5. statistics of the row: of several steps the worst status, the sum of iterations, the largest residual
            done += 1
            irow[at + ROW_N_ITER] += n_iter
            row[at + ROW_RESIDUAL] = max(row[at + ROW_RESIDUAL], residual)
            if status != CONVERGED and (status != INEXACT or irow[at + ROW_STATUS] == CONVERGED):
                irow[at + ROW_STATUS] = status
            if status != CONVERGED and status != INEXACT:
                stopped, reached[m, FAILED] = status if stop else 0, 1
            # 6. row
            if done % save_every == 0 or done == n_total or stopped != 0:
                at = _save(at, width, sources, mem, imem, row, irow)
            # 7. restart after a controller has set a flag
            if done_by_control == SWITCHED and stopped == 0:
                stopped = start(mem[T], tables, address, options, memory)  # noqa: F821
        reached[m, ROW], reached[m, DONE], reached[m, STOPPED] = first_row + at // width, done, stopped


@_jit.inlined
def _save(at, width, sources, mem, imem, row, irow):
    """Fill the row that begins at entry ``at`` with the recorded entries, clear the head of the next, and return its offset."""
    row[at + ROW_T], irow[at + ROW_STEP] = mem[T], imem[STEP]
    behind_head = at + ROW_RESIDUAL + 1
    for i in range(sources.size):
        row[behind_head + i] = mem[sources[i]]
    at += width
    if at < row.size:
        irow[at + ROW_STATUS], irow[at + ROW_N_ITER], row[at + ROW_RESIDUAL] = 0, 0, 0.0
    return at


def arguments_of_march(run, first, last, until, n_total, save_every, stop, first_row, sources, reached, rows, width):
    """Arguments of the time loop of a run, in order: see `_march_template`."""
    p = run.prepared
    return (first, last, until, n_total, save_every, stop, first_row, sources, reached, p.tables, p.functions, tuple(run.controls),
            run.solver, run.solver_options, p.options, run.mem, run.mem.view(np.int64), p.work, p.iwork, rows, rows.view(np.int64),
            width)  # fmt: skip


_marches, _entries = {}, {}


def name_of(stepper):
    """Name of the modules that start and step; the event loop, which is one for all, belongs to the module that starts it."""
    modules = dict.fromkeys((stepper.start.__module__, stepper.step.__module__))
    return "_".join(name.removeprefix("nsds.schemes.").replace(".", "_") for name in modules if not name.endswith(".driver"))


def march_of(stepper, again=False):
    """The compiled time loop of schemes with the same start and step; again: to be called with arguments of the types of a call before."""
    key = stepper.start, stepper.step  # modules, which name the loop, may have several
    if key not in _marches:
        name = name_of(stepper)
        names = {"start": stepper.start, "step_": stepper.step, "at_events": has_event_rows(stepper)}
        names["opening"] = getattr(stepper, "opening", _no_opening)
        march = _jit.kernel(_jit.specialised(_march_template, name, **names))
        _marches[key] = _jit.announcing(march, f"kernels of {name}")
    march = _marches[key]
    if not again or not hasattr(march, "overloads"):
        return march
    if _entries.get(key, (0,))[0] != len(march.overloads):
        _entries[key] = len(march.overloads), _jit.compiled(march)
    return _entries[key][1]


def _march(run, recorder, n_steps, last, progress, stop, interrupts, pauses, shape, raised):
    """Run the compiled loop in chunks of a fifth of a second, so that a progress bar moves and Ctrl-C works. Returns the run at its end.

    last: the `_LastStep` of other length, if the last one has one.
    """
    callback, every = (None, n_steps) if pauses is None or pauses.callback is None else (pauses.callback, pauses.every)
    is_ending, before = pauses is not None and pauses.until is not None, None
    done, n, births = 0, first_chunk(max(1, 64 // run.records.size), run.records.nbytes), Births(run.records, run.prepared, recorder.dtype)
    seconds, workers = 0.0, min(run.records.size, cores())  # of work, before it is shared
    try:
        with Progress(progress, n_steps, " steps") as shown, shares(run.records.size) as in_shares:
            # 1. start, first row, and warnings about the start
            _note_state(raised, run, 1)
            given = copied(run.records) if hasattr(run.prepared.stepper, "opening") else None
            run = _advance(run, recorder, in_shares, seconds, interrupts, 0, n_steps, stop)
            recorder.spill()
            warn_of_penetration(run.records, given)
            warn_of_overlaps(run.records, run.prepared)
            # 2. chunks, up to the next row that is due, call of the callback, or the last step
            while done < n_steps and not recorder.is_stopped and not (run.watched and run.watched.error) and not (raised and raised.error):
                interrupts.raise_noted()
                is_last = last is not None and done == n_steps - 1
                if is_last:
                    run = last.run_from(run, recorder)
                due = recorder.next_row(done, n_steps)
                before = copied(run.records) if is_ending and recorder.file is not None and not is_last else None
                began, until = time.perf_counter(), min(done + n, due, recorder.last_step, done + every - done % every)
                until = min(until, n_steps - 1) if last is not None and not is_last else until
                _note_state(raised, run, until - done)
                run = _advance(run, recorder, in_shares, seconds, interrupts, until, due, stop)
                # 3. progress, condition, births
                elapsed, n, done = time.perf_counter() - began, until - done, until
                work = elapsed if seconds < THREADS_FROM else workers * elapsed
                shown.update(n)
                is_over = is_ending and recorder.end_where(pauses.until, before)
                births.note(recorder)
                if is_over:
                    for noted in (raised, run.watched):
                        if noted is not None:
                            noted.error = None  # of steps beyond the end
                    break
                # 4. size of the next chunk, from the time of this one
                n, n_before = next_chunk(n, elapsed), n
                seconds = work * n / n_before
                # 5. callback, and rows into the file
                is_called = callback is not None and done % every == 0 and not recorder.is_stopped
                if is_called and callback(copied(run.records.reshape(shape))):
                    recorder.end_at(run.records)
                    break
                if done < n_steps and not recorder.is_stopped:
                    recorder.spill()
    except KeyboardInterrupt:
        # rows beyond the end may have been computed
        if is_ending:
            recorder.end_where(pauses.until, before)
        raise
    births.warn()
    warn_of_passing(run.records, run.prepared)
    return run


def _advance(run, recorder, in_shares, seconds, interrupts, until, n_steps, stop):
    """Advance all members to the step of number ``until``; if one needs more room than its record has, all grow, and it repeats its step.

    With until = 0 the first row is made of the state at the start.
    """
    while True:
        # 1. compiled loop, and tiles in front of it
        p, march = run.prepared, march_of(run.prepared.stepper, again=until > 0)
        rows = memory(recorder.rows).reshape(run.records.size, -1)
        tiles = tiles_of(run, n_steps, march_of(p.stepper)) if until > 0 else None

        def chunk(first, last, run=run, march=march, rows=rows, tiles=tiles):
            arguments = arguments_of_march(run, first, last, until, n_steps, recorder.save_every, stop, recorder.first, recorder.sources,
                                           recorder.reached, rows, recorder.dtype.itemsize // 8)  # fmt: skip
            if tiles is not None:
                tiles(*arguments)
            march(*arguments)

        # 2. run, with the members distributed over the cores
        with interrupts.at_once():
            in_shares(chunk, seconds)
        stopped = recorder.reached[:, STOPPED]
        if not stopped.any():
            return run
        # 3. paused members continue, after a check for Ctrl-C
        paused, is_short = stopped == PAUSED, stopped == CAPACITY
        if paused.any():
            stopped[paused] = 0
            interrupts.raise_noted()
            continue
        if not is_short.any():
            return run
        # 4. more rows for events, or larger records for contacts
        if has_event_rows(p.stepper) and (recorder.reached[is_short, ROW] > 0).all():
            recorder.extend()
            continue
        records = p.stepper.grow(run.records)
        if records.dtype.itemsize <= run.records.dtype.itemsize:
            raise ValueError(f"{p.stepper.__name__}: records of {run.records.dtype.itemsize} bytes were to grow and did not")
        recorder.grow(records)
        run = run.prepare(records)


def edition(run):
    """Fingerprint of the compiled code that a run consists of, but the solver of its one-step problems."""
    return fingerprint(march_of(run.prepared.stepper), {})[:16]


def _report_failure(run, recorder, shape, on_failure):
    """Apply the failure policy to the rows computed."""
    failure = recorder.failure()
    if failure is None:
        return
    m, row = failure
    cause = _cause(run, m, row) if row["status"] == NON_FINITE else ""
    if hasattr(run.prepared.stepper, "cause_of"):
        cause = cause or run.prepared.stepper.cause_of(run.records, run.prepared, m, row["status"])
    if on_failure == "raise":
        member, kept = None if shape == () else int(m), recorder.block().reshape(*shape, -1)
        raise SimulationError(kept, member, int(row["step"]), row["t"].item(), int(row["status"]), row["residual"].item(), cause)
    if on_failure == "warn":
        at = f"step {row['step']}" if recorder.save_every == 1 else f"before step {row['step']}"
        n_saved = run.records.size * recorder.n_reached
        message = f"{recorder.n_failed} of {n_saved} saved rows have failed steps; the first: {at} (t = {row['t']:.9g}): "
        warnings.warn(message + (cause or advice(row["status"])), RuntimeWarning, stacklevel=4)


def _raise_watched(run, recorder, shape):
    """Raise the error of a checked function, with the rows so far."""
    m, row = recorder.failure() or (0, run.records[0])
    member, kept = None if shape == () else int(m), recorder.block().reshape(*shape, -1)
    raise SimulationError(kept, member, int(row["step"]), row["t"].item(), NON_FINITE, row["residual"].item(), run.watched.error)


def _note_state(raised, run, n_steps):
    """Keep the state from which some steps are made, for `_raise_again`."""
    if raised is not None:
        raised.before = copied(run.records), n_steps


def _raise_again(raised, recorder, owner, shape, h, scheme, solver):
    """Repeat the steps in which a function raised, checked, and raise an error with part, function and time, and the rows before."""
    records, n_steps = raised.before
    error = checked_again(raised.error, owner, records, shape, h, scheme, solver, np.full(records.size, n_steps))
    block = recorder.block()
    error.trajectory = block[:, : np.count_nonzero(block["step"][error.member or 0] < error.step)].reshape(*shape, -1)
    raise error from raised.error


def checked_again(raised, owner, records, shape, h, scheme, solver, counts):
    """The SimulationError of the first of the members whose function raised when each makes its steps again, checked."""
    for m in np.flatnonzero(counts):
        try:
            run_through(owner, records[m], h, scheme, solver, "raise", check=True, n_steps=int(counts[m]))
        except SimulationError as e:
            return SimulationError(e.trajectory, None if shape == () else int(m), e.step, e.t, e.status, e.residual, e.cause)
    raise raised


def _cause(run, m, row):
    """Name the function, row of the one-step problem or part that gave NaN or infinity."""
    cause = run.prepared.stepper.blame(run.records, run.prepared, m) or blame_row(run.records, run.prepared, m)
    if cause:
        return cause
    for name, fields in state_fields(run.records):
        if not all(np.isfinite(run.records[name][field][m]).all() for field in fields):
            more = "; check=True checks the user's functions" if has_functions(run.records) and run.watched is None else ""
            return f"the state of part '{name}' became NaN or infinite{more}"
    return ""
