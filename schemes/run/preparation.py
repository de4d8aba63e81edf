"""Preparation of a run: made once for a layout, parameters, scheme, step and solver, and kept for runs that differ in the state only."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._jit import kernel, tiny
from nsds.circuits.waveforms import AFTER, BEFORE, contradiction, places_of_pieces, waves_in
from nsds.model.functions import Watch, watch
from nsds.model.layout import state_fields, table
from nsds.model.records import RESIDUAL, STEP, T0, T, are_circuits, copied, lines_of, memory
from nsds.model.rigid_bodies import UNIT
from nsds.model.system_kinds import COLLISIONS, CONTROL, NAMES, RELATIONS, RIGID_BODIES, SYSTEMS
from nsds.model.validation import OUT_OF_PLANE, bounds_of_words, runnable
from nsds.schemes import table as schemes
from nsds.schemes.run import sampled_control
from nsds.schemes.run.recording import DONE, FAILED, ROW, STARTED, STOPPED
from nsds.schemes.run.warnings import looked_at
from nsds.status import CAPACITY, NOT_COMPUTED, PAUSED

SHORTEST = 2.0**-300  # s: least step, so that its square and the inverse of that are finite, also times states
MOST_STEPS = 2**53  # times are t0 + step h: whole numbers up to there are floats, too
_WHOLE = 1e-6  # of a step: a smaller remainder beyond a whole number of steps is part of the last one
LAST = 2**62  # the number of the last step, from which the remaining ones are counted back
# Ranges [first, end) of entries of a record, and their kind: as they were when the run was prepared, or numbers or integers within bounds,
# or what the preparation has set, or a unit quaternion.
STRETCH = table("first", "end", "kind")
SAME, NUMBERS, WHOLE, SET, QUATERNION = range(5)
_STANDS_STILL = 2  # in place of the flag that the scheme has started
_FREE = ("p", "u", "z", "fext", "mext", "b")  # of systems, besides their state: written, or read in each step at their place in a record


class Run(NamedTuple):
    """Records being simulated in place, their memory, the tables of the scheme, and a function that prepares other records likewise."""

    records: np.ndarray
    mem: np.ndarray
    prepared: NamedTuple
    controls: NamedTuple
    solver: int
    solver_options: NamedTuple
    prepare: Callable
    watched: Watch | None  # what checks the user's functions, if something does
    looked_at: NamedTuple  # `LookedAt` by warnings


def has_event_rows(stepper):
    """Whether a scheme saves rows at events, besides those after its steps."""
    return getattr(stepper, "EVENT_ROWS", False)


def prepare_run(owner, system, h, scheme, solver, check, between=None):
    """(`Run` from the state of a system, options of its scheme); between: step of the others, if h is that of a last, shorter one."""
    # 1. records, scheme and solver
    records = copied(runnable(owner, system)).reshape(-1)
    h = _checks.number(owner, "h", h, above=0.0)
    if h < SHORTEST:
        raise ValueError(f"{owner}: h must be at least {SHORTEST:.3g}, as its square is needed, got {h}")
    contradicting = contradiction(records) if are_circuits(records) else ""
    if contradicting:
        raise ValueError(f"{owner}: {contradicting}")
    module, options = schemes.chosen(scheme, records, solver)
    method, solver_options, address = schemes.solver_of(solver, records, options)
    # 2. clock: times are t0 + step h, unless the record does not fit that
    anchored = records["t0"] + records["step"] * h == records["t"]
    records["t0"] = np.where(anchored, records["t0"], records["t"])
    records["step"] = np.where(anchored, records["step"], 0)
    # 3. tables; other records of the same model can be prepared in their place
    watched = Watch() if check else None

    def prepare(records):
        mem, token = memory(records), watch.set(watched)
        try:
            prepared = module.prepare(records, mem, options, h, method)
            controls = sampled_control.prepare(owner, records, between or h)
        finally:
            watch.reset(token)
        return Run(records, mem, prepared, controls, address, solver_options, prepare, watched, looked_at(records, prepared))

    return prepare(records), options


class Admission(NamedTuple):
    """Allowed differences of a record from the one for which a run was prepared: ranges of entries, and bounds of each."""

    stretches: np.ndarray  # STRETCH
    low: np.ndarray  # (entries,)
    high: np.ndarray
    whole_low: np.ndarray  # the same memory as int64, for integer entries
    whole_high: np.ndarray


def _admission_of(records):
    """`Admission` of records like these."""
    model, sources = records["model"][0], ()
    if are_circuits(records):
        parts = [name for name in records.dtype.names if "z" in (records.dtype[name].names or ())]
        free = [tuple(sorted(set.intersection(*map(set, map(places_of_pieces, records[name]["z"]))))) for name in parts]
        sources = tuple((name, (places, (BEFORE, AFTER))) for name, places in zip(parts, free, strict=True))
    return _admission(records.dtype, model, sources)


@lru_cache(maxsize=64)
def _admission(dtype, model, sources):
    """`Admission` of records: their clock, state and inputs may change, all else has been used in the preparation.

    sources: of circuits, (part, (places in its z that may change, those that schemes set)); others are in matrices of event-driven schemes.
    """
    # 1. all entries must be the same, but the residual
    low, high = np.zeros(dtype.itemsize // 8), np.zeros(dtype.itemsize // 8)
    whole_low, whole_high, kind = low.view(np.int64), high.view(np.int64), np.full(low.size, SAME)
    kind[RESIDUAL], whole_low[RESIDUAL], whole_high[RESIDUAL] = WHOLE, np.iinfo(np.int64).min, np.iinfo(np.int64).max  # of any bits
    # 2. fields that may change, with their bounds; of rates of sources in a circuit, windows of the scheme
    changing, sources, kinds = _changing(dtype, model), dict(sources), {line[0]: line[1] for line in lines_of(model)}
    for name, (start, count, stride, fields) in bounds_of_words(dtype, model).items():
        for each in fields:
            if name and each.field not in changing.get(name, ()):
                continue
            words = start + each.start + stride * np.arange(count)[:, None] + np.arange(each.size)
            kind[words] = NUMBERS if each.kind == "f" else WHOLE
            for bounds, bound in ((low, each.low), (high, each.high)):
                (bounds if each.kind == "f" else bounds.view(np.int64))[words] = bound
            if kinds.get(name) == RIGID_BODIES and each.field == "q":
                kind[words[:, 3:]] = QUATERNION
            if name and "planar" in dtype[name].base.names and each.field in OUT_OF_PLANE:
                out = words[:, OUT_OF_PLANE[each.field]]
                low[out], high[out] = 0.0, 0.0
            if name in sources and each.field == "z":
                free, windows = sources[name]
                kind[np.delete(words, free, axis=1)] = SAME
                kind[words[:, windows]] = SET
    # 3. consecutive entries of one kind are one range
    ends = np.append(np.flatnonzero(np.diff(kind)) + 1, kind.size)
    stretches = np.zeros(ends.size, STRETCH)
    stretches["end"], stretches["first"][1:], stretches["kind"] = ends, ends[:-1], kind[ends - 1]
    return Admission(stretches, low, high, whole_low, whole_high)


def _changing(dtype, model):
    """{part: fields that may change between runs}."""
    example = np.zeros((), dtype)
    example["model"] = model
    changing = {name: set(fields) for name, fields in state_fields(example)}
    of_circuit = {"b"} if are_circuits(example) else set()  # prepared beside the waves of its sources
    for name, kind, *_ in lines_of(model):
        if kind in SYSTEMS:
            changing[name] |= set(_FREE) - of_circuit
        elif kind in (CONTROL, COLLISIONS, *RELATIONS) and "F" not in dtype[name].base.names:  # F z is a constant that is prepared
            changing[name].add("z")
        elif kind == NAMES:
            changing[name] = {"z"}
    return changing


@kernel
def admit(first, last, h, may, n_steps, given, igiven, mems, imems, reached):
    """Copy the states of members first..last from ``given``, to be marched by n_steps[m]; a member that differs in more is stopped.

    Stopped with NOT_COMPUTED: a parameter differs from that of ``mems``, a value is out of its range, or the clock cannot go on. The scheme
    does not restart on a member in the state of its last step, nor on one with 0 steps.
    """
    for m in range(first, last):
        mem, imem, inew = mems[m], imems[m], igiven[m]
        differing = 0
        for i in range(imem.size):
            differing |= inew[i] ^ imem[i]
        goes_on = differing == 0 and reached[m, STARTED] == 1 and reached[m, STOPPED] == 0 and reached[m, FAILED] == 0
        is_good = goes_on or _take_state(may, given[m], inew, mem, imem)
        if n_steps[m] > 0 and mem[T0] + imem[STEP] * h != mem[T]:
            mem[T0], imem[STEP] = mem[T], 0
        is_good &= imem[STEP] <= MOST_STEPS - n_steps[m] and not _is_lost(mem[T], h)
        if not goes_on:
            reached[m, STARTED] = 0 if n_steps[m] > 0 else _STANDS_STILL
        reached[m, ROW], reached[m, DONE], reached[m, FAILED] = 0, LAST - n_steps[m], 0
        reached[m, STOPPED] = 0 if is_good else NOT_COMPUTED


@kernel
def _take_state(may, new, inew, mem, imem):
    """Copy the entries that may differ into mem. False if others differ, or a value is out of its range."""
    is_good, differing = True, 0
    for k in range(may.stretches.size):
        s = may.stretches[k]
        if s.kind == SAME:
            for i in range(s.first, s.end):
                differing |= inew[i] ^ imem[i]
        elif s.kind == NUMBERS:
            for i in range(s.first, s.end):
                is_good &= may.low[i] <= new[i] and new[i] <= may.high[i]
                imem[i] = inew[i]
        elif s.kind == QUATERNION:
            square = 0.0
            for i in range(s.first, s.end):
                is_good &= may.low[i] <= new[i] and new[i] <= may.high[i]
                square += new[i] * new[i]
                imem[i] = inew[i]
            is_good &= abs(math.sqrt(square) - 1.0) <= UNIT
        elif s.kind == WHOLE:
            for i in range(s.first, s.end):
                is_good &= may.whole_low[i] <= inew[i] and inew[i] <= may.whole_high[i]
                imem[i] = inew[i]
    return is_good and differing == 0


@tiny
def _is_lost(t, h):
    """Whether a step is less than the distance of times."""
    return t != 0.0 and h < math.ldexp(1.0, math.frexp(abs(t))[1] - 53)


GOOD, OPEN, FAILURE, SHORT, REFUSED = range(5)
_NOWHERE = np.zeros(0, np.int64)  # places at which starts note a choice


@kernel
def outcome_of(first, last, reached, iworks, places):
    """The worst that happened to members first..last: GOOD, FAILURE of a step, SHORT of room or paused, REFUSED by `admit`.

    OPEN where a start has chosen among several solutions, which iworks note at some places.
    """
    worst = GOOD
    for m in range(first, last):
        stopped = reached[m, STOPPED]
        if stopped == NOT_COMPUTED:
            worst = REFUSED
        elif stopped in (CAPACITY, PAUSED):
            worst = max(worst, SHORT)
        elif stopped != 0 or reached[m, FAILED] != 0:
            worst = max(worst, FAILURE)
        else:
            for k in range(places.size):
                worst = max(worst, OPEN) if iworks[m, places[k]] > 0 else worst
    return worst


class Kept:
    """A run with a copy of its preparation, for systems that differ from the first one in clock, state and inputs only."""

    def __init__(self, run, scheme, shape):
        records, p = run.records, run.prepared
        self.run, self.scheme, self.shape, self.dtype = run, scheme, shape, records.dtype
        self.given, self.n_steps = np.zeros_like(run.mem), np.ones(records.size, np.int64)
        self.given_words, self.words = self.given.reshape(-1), run.mem.reshape(-1)
        self.waves = waves_in(self.given.view(self.dtype).reshape(-1), records) if are_circuits(records) else []
        self.reached = np.zeros((records.size, 5), np.int64)
        self._at_first, self._all = (p.work.copy(), p.iwork.copy()), self.admission(0, records.size)

    def read(self, system):
        """Note the entries of a system of the dtype and the shape of the run's."""
        try:
            self.given_words[...] = np.frombuffer(system)
        except (TypeError, ValueError, BufferError):  # not contiguous
            self.given_words[...] = memory(copied(system)).reshape(-1)

    def admission(self, first, last):
        """Arguments of `admit`."""
        run, given = self.run, self.given
        may = _admission_of(run.records)
        return (first, last, run.prepared.options.h, may, self.n_steps, given, given.view(np.int64), run.mem, run.mem.view(np.int64),
                self.reached)  # fmt: skip

    def starts_from(self, system):
        """Whether the run can begin from a system: then it has its state, and work memory as it was prepared."""
        self.read(system)
        if any((each != self.waves[0]).any() for each in self.waves[1:]):  # a contradiction, if `admit` finds all else as it was
            return False
        self.n_steps[:] = 1
        admit(*self._all)
        p = self.run.prepared
        p.work[...], p.iwork[...] = self._at_first
        return outcome_of(0, self.n_steps.size, self.reached, p.iwork, _NOWHERE) == GOOD


_kept = {}
_MOST, _LARGEST = 8, 2**23  # runs, and bytes of each


def key_of(system, h, scheme, solver):
    """Key of all, besides parameters, that decides whether a run can serve a system; None if that is not known."""
    if not isinstance(system, (np.ndarray, np.void)) or not (type(h) is int or isinstance(h, float)):
        return None
    if not all(x is None or type(x) in (str, np.ndarray) for x in (scheme, solver)):
        return None
    options = [(x.dtype, x.tobytes()) if type(x) is np.ndarray else x for x in (scheme, solver)]
    return system.dtype, system.shape, h, *options, _checks.may_use_threads()  # of rigid bodies, which plan for them


def taken(key):
    """The run kept under a key, which is then its taker's alone; None where there is none."""
    return _kept.pop(key, None)


def may_keep(key, run):
    """Whether a run is worth keeping: of large ones the preparation is a small part."""
    p, dtype = run.prepared, run.records.dtype
    return key is not None and dtype == key[0] and 4 * (run.mem.nbytes + p.work.nbytes + p.iwork.nbytes) <= _LARGEST


def run_from(owner, system, h, scheme, solver, check, key, between=None):
    """(`Run` from the state of a system, options of its scheme, `Kept` of it): one that is kept under the key, where it can begin there.

    Kept is None of runs that are not worth it, or have no key; `put_back` ends the use of others.
    """
    kept = taken(key)
    if kept is not None and kept.starts_from(system):
        return kept.run, kept.scheme, kept
    run, options = prepare_run(owner, system, h, scheme, solver, check, between)
    return run, options, Kept(run, options, np.shape(system)) if may_keep(key, run) else None


def put_back(key, kept):
    """Keep a run for others; of too many the one that was used least lately is dropped."""
    _kept[key] = kept
    for old in list(_kept)[:-_MOST]:
        _kept.pop(old, None)


def number_of_steps(owner, records, t_end, h, n_steps=1):
    """Fewest steps of size h to t_end; n_steps if that is None."""
    # checks: t_end ahead, h above the rounding of times, equal clocks of members, countable steps
    times = records["t"]
    (earliest, latest), (_, step) = range_of(times), range_of(records["step"])
    if t_end is not None and t_end <= latest:
        raise ValueError(f"{owner}: t_end must be after the system's time {latest}, got {t_end}")
    largest = max(abs(earliest), abs(latest), abs(t_end if t_end is not None else 0.0))
    if h < math.ulp(largest):
        raise ValueError(
            f"{owner}: a step of h = {h:g} is lost in the rounding of times like {largest:g}, which is {math.ulp(largest):.2g}: "
            "take a larger h, or times closer to 0"
        )
    count = n_steps if t_end is None else float(steps_between(latest, t_end, h))
    if t_end is not None and earliest != latest and (steps_between(times, t_end, h) != count).any():
        raise ValueError(f"{owner}: all members of an ensemble must have the same time at the start")
    if step + count > MOST_STEPS:
        raise ValueError(f"{owner}: steps are counted from 0 to 2^53, got {step} before the run and {count:g} in it")
    return max(int(count), 1)


def range_of(values):
    """(least, largest) of an array; of a single system, of which a reduction would take longer, its only entry."""
    return 2 * (values.item(),) if values.size == 1 else (values.min().item(), values.max().item())


def steps_between(t, t_end, h):
    """Fewest steps of size h that reach t_end, as floats."""
    return np.ceil((t_end - t) / h - _WHOLE)
