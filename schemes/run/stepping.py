"""Single steps: everything a step needs is prepared once, so that a call costs little more than the step."""

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from nsds import _checks
from nsds._jit import bound
from nsds.model.collisions import with_room
from nsds.model.function_checks import has_functions
from nsds.model.functions import Raised, offered
from nsds.model.records import memory, model_of
from nsds.model.system_kinds import collisions_of
from nsds.model.validation import valid
from nsds.results.trajectories import ROW_HEAD, SimulationError
from nsds.schemes import table as schemes
from nsds.schemes.problem.branches import places_of_open
from nsds.schemes.run import split_runs
from nsds.schemes.run.cores import THREADS_FROM, cores, together
from nsds.schemes.run.interrupts import first_chunk
from nsds.schemes.run.preparation import (
    FAILURE,
    GOOD,
    LAST,
    MOST_STEPS,
    OPEN,
    REFUSED,
    SHORT,
    Kept,
    admit,
    has_event_rows,
    key_of,
    may_keep,
    number_of_steps,
    outcome_of,
    prepare_run,
    put_back,
    taken,
)
from nsds.schemes.run.recording import DONE, FAILED, ROW, STARTED, STOPPED
from nsds.schemes.run.simulation import arguments_of_march, checked_again, march_of, run_through
from nsds.schemes.run.warnings import warn_of_edges, warn_of_hand_overs, warn_of_open_starts, warn_of_overlaps, warn_of_penetration
from nsds.status import CAPACITY, EVENT, PAUSED

_CHUNK = 1000  # steps between two checks for Ctrl-C, at most
_BRIEF = 2e-5  # seconds: shorter calls keep Python's lock
_MOST_PREPARATIONS = 100  # in a call: each gives the records more room
_WIDTH = len(ROW_HEAD)  # entries of a row without saved fields
_ROWS, _EVENTS = 2, 64  # room for rows: of steps, and where events have rows
_NOTHING = np.zeros(0, np.int32)


def stepper(system, h, *, scheme=None, solver=None, on_failure="raise", functions=None):
    """Prepare steps of size h once: ``advance = nsds.stepper(system, h)``, then ``system = advance(system)`` as often as wanted.

    For loops that look at the system, or change it, between steps: controllers, environments of reinforcement learning, coupling to other
    programs. A call of a small model costs a microsecond or two, and gives the bits of `simulate` and `step`.

    Parameters
    ----------
    system : numpy.ndarray
        A record from `nsds.system`, or an array of such records; it is not changed.
    h : float
        Step size, of all members.
    scheme, solver, on_failure, functions
        See `simulate`; one scheme for all systems. Under `nsds.event_driven` a step is what lies between two rows, whatever events it has.

    Returns
    -------
    callable
        ``advance(system, n=1, *, out=None)``: a new record, or ensemble, ``n`` steps later. For an ensemble n may be an array of its shape:
        each member makes its own number of steps, from its own time; one with 0 remains as it is. ``out``: a record or ensemble of the same
        type that takes the result, and is returned; it may be ``system`` itself.

        Between calls clock, states, ``u``, ``z``, ``fext``, ``mext`` and ``b`` of systems may be changed freely; where other fields differ
        from those of the call before, what depends on them is prepared again, which costs as much as `stepper` does. Records of
        `nsds.collisions` that run out of room come back larger. A call that fails leaves ``out`` as it was.

        One stepper serves one thread at a time, and several steppers as many threads: steps are made without Python's lock, but for
        calls of a few microseconds, of which most is Python's own.

    Raises
    ------
    ValueError, TypeError
        As `simulate`; a system of another model or shape.
    SimulationError
        A step failed and ``on_failure="raise"``.

    Warns
    -----
    RuntimeWarning
        A first step of relays that may begin at either bound, of which lambda of the record chooses none (`nsds.relay`); intervals that
        `nsds.event_driven` hands over to time stepping.

    Notes
    -----
    What a scheme knows of the last step beside the record goes on where the system comes back as that step left it: the bits are those of
    one run. Where something was changed the scheme restarts, as `simulate` does from a record; only `nsds.generalised_alpha` of rigid
    bodies, whose accelerations are not in the record, then differs in the last digits from a run that saw no restart.

    Examples
    --------
    >>> import nsds
    >>> cart = nsds.system(cart=nsds.lagrangian(mass=[1.0], q=[0.0], v=[1.0], u=[0.0]))
    >>> advance = nsds.stepper(cart, h=0.01)
    >>> for _ in range(100):
    ...     cart["cart"]["u"] = -cart["cart"]["v"]
    ...     cart = advance(cart)
    >>> float(cart["t"]), float(cart["cart"]["v"][0].round(3))
    (1.0, 0.366)
    """
    offered("stepper", functions)
    return made("stepper", system, h, scheme, solver, on_failure)


def step(system, h, *, scheme=None, solver=None, on_failure="raise", check=False, functions=None):
    """One step: a new record (or ensemble) at ``t + h``. What it prepares is kept for the next call; `stepper` spares the look for it.

    Parameters
    ----------
    system, scheme, solver, on_failure, check, functions
        See `simulate`.
    h : float
        Step size, of all members.

    Returns
    -------
    numpy.ndarray
        Record with the new state, and status, n_iter and residual of the step.

    Examples
    --------
    >>> import nsds
    >>> ball = nsds.step(nsds.examples.bouncing_ball(), h=0.1)
    >>> float(ball["t"]), float(ball["ball"]["v"][0].round(3))
    (0.1, -0.981)
    """
    # 1. systems with schemes of their own
    offered("step", functions)
    if isinstance(scheme, dict):
        system = valid("step", system)
        groups = split_runs.groups_of("step", system, scheme)
        settings = {"solver": solver, "on_failure": on_failure, "check": check}
        pieces = [step(split_runs.part_of(system, names), h, scheme=options, **settings) for options, names in groups]
        return split_runs.joined_records(system, pieces)
    # 2. a checked run has no stepper, and event by event each step starts from the record alone
    key = key_of(system, h, scheme, solver) if check is False and isinstance(on_failure, str) else None
    if key is None or schemes.is_event_driven(scheme):
        run, _ = run_through("step", system, h, scheme, solver, on_failure, check=check)
        return run.records.reshape(np.shape(system)).copy()  # the run may be kept, and its records written again
    # 3. stepper of an earlier call, which returns to the store
    key = (*key, on_failure)
    advance = taken(key) or made("step", system, h, scheme, solver, on_failure)
    result = advance(system)
    if may_keep(key, advance.kept.run):
        put_back(key, advance)
    return result


def made(*settings):
    """The `Stepper` of some settings: owner, system, h, scheme, solver, on_failure."""
    owner, system, h, scheme, solver, on_failure = settings
    if isinstance(scheme, dict):
        raise ValueError(f"{owner}: expected one scheme for all systems, got a dict")
    _checks.choice(owner, "on_failure", on_failure, ("raise", "warn", "continue"))
    run, options = prepare_run(owner, system, h, scheme, solver, False)
    return Stepper(settings, run, options)


class Stepper:
    """Result of `stepper`. kept: its `Kept` run."""

    def __init__(self, settings, run, options):
        self._owner, system, *self._settings, self._on_failure = settings
        self._lock, self._n, self._seconds = threading.Lock(), None, 0.0
        self._use(Kept(_started(run, self._on_failure == "raise"), options, np.shape(system)))

    def _use(self, kept):
        """Bind the prepared run to calls: of all members, and of groups of them."""
        run, n_members = kept.run, kept.n_steps.size
        self.kept, self._dtype, self._shape = kept, run.records.dtype, kept.shape
        self._rows = np.zeros((n_members, _EVENTS if has_event_rows(run.prepared.stepper) else _ROWS), ROW_HEAD)
        rows, stop = memory(self._rows).reshape(n_members, -1), self._on_failure == "raise"
        self._has_functions, self._has_threads = has_functions(run.records), _checks.may_use_threads()
        march, kept.n_steps[:] = march_of(run.prepared.stepper), 0
        self._most, self._n, self._total, self._chunk = 0, 0, kept.n_steps.copy(), first_chunk(_CHUNK, run.records.nbytes)

        def calls(first, last):
            marching = march, arguments_of_march(run, first, last, LAST, LAST, LAST, stop, 0, _NOTHING, kept.reached, rows, _WIDTH)
            ending = outcome_of, (first, last, kept.reached, run.prepared.iwork, places_of_open(run.prepared.tables))
            return bound((admit, kept.admission(first, last)), marching, ending), bound(marching, ending)

        bounds = [0, n_members] if n_members == 1 else np.linspace(0, n_members, min(n_members, cores()) + 1).astype(int).tolist()
        self._whole = calls(0, n_members)
        self._shares = [self._whole] if len(bounds) == 2 else [calls(*share) for share in pairwise(bounds)]

    def __call__(self, system, n=1, *, out=None):
        """The system n steps later."""
        # one thread at a time; identity of dtype and n is checked first, since comparing costs more than the step
        with self._lock:
            if n is not self._n:
                self._count(n)
            try:
                is_known = system.dtype is self._dtype and system.shape == self._shape
            except AttributeError:
                is_known = False
            if self._has_threads != _checks.may_use_threads():  # a process that was forked since
                self._prepare(valid(self._owner, system))
            if is_known:
                self.kept.read(system)
            else:
                self._read_other(system)
            outcome = self._march()
            # the rare outcomes: failures, no room, other parameters
            if outcome != GOOD:
                self._attend(outcome)
            if out is None:
                return np.ndarray(self._shape, self._dtype, self.kept.words.copy())
            return self._into(out)

    def _count(self, n):
        """Note how many steps the members are to make."""
        before = self._most
        if np.ndim(n) == 0:
            self._total[:] = self._most = _checks.integer(self._owner, "n", n, low=0, high=MOST_STEPS)
        else:
            steps = _checks.whole_numbers(self._owner, "n", n)
            if steps.shape != self._shape or (steps < 0).any():
                wanted = f"a whole number from 0, or an array of them of shape {self._shape}"
                raise ValueError(f"{self._owner}: n must be {wanted}, got {_checks.shortened(n)}")
            self._total[:] = steps.reshape(-1)
            self._most = int(self._total.max())
        self._seconds *= self._most / max(before, 1)
        self._n = n if type(n) is int else None
        np.minimum(self._total, self._chunk, out=self.kept.n_steps)

    def _march(self):
        if not self._has_functions:
            return self._steps()
        with Raised() as raised:
            outcome = self._steps()
        if raised.error is not None:
            self._raise_again(raised.error)
        return outcome

    def _steps(self):
        outcome = self._in_shares(0)
        for done in range(self._chunk, self._most, self._chunk):
            if outcome > FAILURE or (outcome == FAILURE and self._on_failure == "raise"):
                break
            self.kept.reached[:, DONE], self.kept.reached[:, ROW] = LAST - np.clip(self._total - done, 0, self._chunk), 1
            outcome = self._in_shares(1)
        return outcome

    def _in_shares(self, which):
        """Call the bound function for all members, and again for those that have stopped at an event for want of rows or for Ctrl-C."""
        outcome = self._once(which)
        if has_event_rows(self.kept.run.prepared.stepper):
            while outcome == SHORT and self._is_at_event():
                outcome = self._once(1)
            self._warn_of_hand_overs()
        return outcome

    def _is_at_event(self):
        """Whether members have stopped at an event; they go on with all rows free."""
        reached = self.kept.reached
        at_event = (reached[:, STOPPED] == PAUSED) | ((reached[:, STOPPED] == CAPACITY) & (reached[:, ROW] > 0))
        if at_event.any():
            self._warn_of_hand_overs()
            reached[at_event, STOPPED], reached[at_event, ROW] = 0, 1
        return at_event.any()

    def _warn_of_hand_overs(self):
        """Warn of rows since the last call; the rows of all events are in the same places."""
        saved = self._rows[:, : self.kept.reached[:, ROW].max()]
        if (saved["status"] >= EVENT).any():
            warn_of_hand_overs(saved)
        saved["status"] = 0

    def _once(self, which):
        """Call the bound function for all members; on all cores if the last call took so long that this pays."""
        began = time.perf_counter()
        if len(self._shares) == 1 or self._seconds < THREADS_FROM:
            outcome = self._whole[which](self._seconds < _BRIEF)
            self._seconds = time.perf_counter() - began
            return outcome
        with ThreadPoolExecutor(len(self._shares) - 1) as pool:
            outcome = max(together(pool, [share[which] for share in self._shares]))
        self._seconds = len(self._shares) * (time.perf_counter() - began)
        return outcome

    def _read_other(self, system):
        """Read a system of another dtype; prepare again if its layout differs, as for detected contacts with other room."""
        records = valid(self._owner, system)
        if records.shape != self._shape or records["model"].reshape(-1)[0] != self.kept.run.records["model"][0]:
            raise ValueError(
                f"{self._owner}: expected the model that was prepared, with shape {self._shape}, got "
                f"{'another model' if records.shape == self._shape else f'shape {records.shape}'}"
            )
        if self._with_room(records).dtype != self._dtype:
            self._prepare(records)
        self.kept.read(self._with_room(records))

    def _with_room(self, records):
        """Records with the room for contacts of the prepared ones, if that is larger."""
        names = [line[0] for line in collisions_of(model_of(records))]
        rooms = {name: max(dtype[name]["a"].shape[0] for dtype in (records.dtype, self._dtype)) for name in names}
        return with_room(records, rooms) if names else records

    def _prepare(self, records):
        n_steps = self._total.copy()
        run, options = prepare_run(self._owner, records, *self._settings, False)
        number_of_steps(self._owner, run.records, None, self._settings[0], int(n_steps.max()))
        self._use(Kept(_started(run, self._on_failure == "raise"), options, self._shape))
        self._count(n_steps.reshape(self._shape) if self._shape else int(n_steps[0]))

    def _attend(self, outcome):
        """React to an outcome other than GOOD."""
        for _ in range(_MOST_PREPARATIONS):
            if outcome not in (REFUSED, SHORT):
                break
            records = self._given()
            if outcome == SHORT:
                records = self.kept.run.prepared.stepper.grow(records.reshape(-1)).reshape(self._shape)
            self._prepare(records)
            self.kept.read(self._with_room(records))
            outcome = self._march()
        if outcome == OPEN:
            warn_of_open_starts(self.kept.run.records, self.kept.run.prepared, self.kept.run.looked_at.open_places)
        if outcome == FAILURE and self._on_failure != "continue":
            self._report()

    def _given(self):
        """A copy of the system that was read."""
        return np.ndarray(self._shape, self._dtype, self.kept.given_words.copy())

    def _report(self):
        """Repeat the failed steps, with their rows, as a run that reports the failure."""
        settings, system = (*self._settings, self._on_failure), self._given()
        if (self._total == self._most).all():
            run_through(self._owner, system, *settings, n_steps=self._most)
            return
        failed = (self.kept.reached[:, STOPPED] != 0) | (self.kept.reached[:, FAILED] != 0)
        m = int(failed.argmax())
        try:
            run_through(self._owner, system.reshape(-1)[m], *settings, n_steps=int(self._total[m]))
        except SimulationError as error:
            raise SimulationError(error.trajectory, m, error.step, error.t, error.status, error.residual, error.cause) from None

    def _raise_again(self, raised):
        """Repeat the steps in which a function raised, checked, for an error with part, function and time."""
        self.kept.reached[:, STARTED] = 0
        raise checked_again(raised, self._owner, self._given().reshape(-1), self._shape, *self._settings, self._total) from raised

    def _into(self, out):
        """Put the result into ``out``."""
        if not isinstance(out, np.ndarray) or out.dtype != self._dtype or out.shape != self._shape or not out.flags.carray:
            raise ValueError(
                f"{self._owner}: out must be a writable, contiguous array of shape {self._shape} and of the type of the result, "
                f"got {_checks.shortened(out)}"
            )
        np.frombuffer(out)[...] = self.kept.words
        return out


def _started(run, stop):
    """The run with its time loop compiled, with room for the contacts at its start, and after a warning where these overlap."""
    n_members = run.records.size
    while True:
        reached, rows = np.zeros((n_members, 5), np.int64), np.zeros((n_members, 2 * _WIDTH))
        march = march_of(run.prepared.stepper)
        march(*arguments_of_march(run, 0, n_members, 0, LAST, LAST, stop, 0, _NOTHING, reached, rows, _WIDTH))
        if not (reached[:, STOPPED] == CAPACITY).any():
            warn_of_penetration(run.records)
            warn_of_overlaps(run.records, run.prepared)
            if run.looked_at.has_sources and not has_event_rows(run.prepared.stepper):
                warn_of_edges(run.records, run.prepared.options.h, math.inf)
            return run
        run = run.prepare(run.prepared.stepper.grow(run.records))
