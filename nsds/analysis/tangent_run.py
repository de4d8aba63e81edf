"""Runs with tangent maps: a system, or an ensemble, simulated event by event with the derivatives of its state."""

import math
import time
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._jit import bound, kernel
from nsds._jit.cache import fingerprint
from nsds.analysis import event_general, event_linear, event_mechanics
from nsds.analysis.parameters import branch_words, state_words
from nsds.analysis.tangent import (
    AT_CROSSINGS,
    AT_IMPACTS,
    AT_TIMES,
    CROSSINGS,
    DONE,
    HALTED,
    IMPACTS,
    N_NOTES,
    N_REACHED,
    POINTS,
    SIZES,
    SLOWEST,
    STOPPED,
    UNITS,
    VECTORS,
    Changes,
    Members,
    Plan,
    Scratch,
    Tangent,
    address_of_evaluate,
    copy_vector,
    march_of,
    scratch_size,
)
from nsds.model.records import memory
from nsds.schemes.event_driven import general, lagrangian, linear
from nsds.schemes.memory import require_affordable
from nsds.schemes.options.event_driven import event_driven
from nsds.schemes.run.cores import shares
from nsds.schemes.run.interrupts import CHUNK_SECONDS, Interrupts, first_chunk, next_chunk
from nsds.schemes.run.preparation import SHORTEST, Kept, key_of, may_keep, prepare_run, put_back, taken
from nsds.schemes.table import is_event_driven

_FIRST = 64  # rows until the first check for Ctrl-C, at most
ROWS = 128  # rows of a section of a nonlinear motion, at first
_MOST_ROWS = 2**14  # rows of a section, at most
_ACCURATE = 1e-8  # change of derivatives, relative to the largest or 1, below which doubling the rows has converged
_NOISE = 1e-5  # a smaller change that no longer falls is noise of finite differences
_APART = 2.0**20  # ratio of the sizes of states beyond which they have units of their own
_TRIAL = 4  # sections by which the rows of a long run are chosen
_INSTEAD = "nsds.orbit and nsds.floquet with a step h take n_multipliers, and then products with vectors alone"
_FAMILIES = {lagrangian: event_mechanics, linear: event_linear, general: event_general}


def require_long(owner, periods):
    """Refuse a period, or several, whose sections are too short for their rows."""
    shortest = np.min(periods)
    if shortest < SHORTEST * ROWS:
        raise ValueError(f"{owner}: period must be at least {SHORTEST * ROWS:.3g}, got {shortest}")


class Words(NamedTuple):
    """Offsets of a number in the records and, up to its sign, in the prepared memory."""

    mem: np.ndarray
    work: np.ndarray
    sign: np.ndarray


@kernel
def rewind(first, last, n, k, initial, now, tangent):
    """Resets members first..last to their initial state, with identity columns (n, k)."""
    # 1. memory of the run
    for m in range(first, last):
        copy_vector(initial.mem[m], now.mem[m])
        copy_vector(initial.work[m], now.work[m])
        copy_vector(initial.iwork[m], now.iwork[m])
        # 2. counters; the slowest event starts at infinity, as it is a minimum
        notes, columns = tangent.notes[m], tangent.columns[m]
        for i in range(notes.size):
            notes[i] = math.inf if i == SLOWEST else 0.0
        for i in range(tangent.growth.shape[1]):
            tangent.growth[m, i] = 0.0
        for i in range(tangent.reached.shape[1]):
            tangent.reached[m, i] = 0
        # 3. tangent vectors: unit vectors
        for i in range(n):
            for j in range(k):
                columns[i * k + j] = 1.0 if i == j else 0.0


class Carried:
    """A run of an ensemble over sections, one period after the other, with its tangent map if it has columns.

    ``columns`` (members, n, columns), ``notes`` and ``growth`` as in `nsds.analysis.tangent`. With ``sections`` their maps are stored
    separately: ``maps`` (members, sections, n, columns).
    """

    def __init__(self, owner, system, period, scheme=None, *, n_columns=None, orthonormal=False, parameters=(), rows=None, sections=0):
        # 1. scheme: event-driven throughout, as an interval that is stepped in time has no tangent map
        scheme = event_driven() if scheme is None else scheme
        if not is_event_driven(scheme):
            raise ValueError(f"{owner}: scheme must be nsds.event_driven(...), got {_checks.shortened(scheme)}")
        scheme = scheme.copy()
        scheme["hybrid"] = False  # an interval that is stepped in time has no tangent map
        # 2. prepare the run; shapes of the tangent map
        periods = np.broadcast_to(np.asarray(period, float), np.size(system)).astype(float)
        shortest = float(periods.min())
        run, options = prepare_run(owner, system, shortest / (rows or 1), scheme, None, False)
        self.owner, self.family, flow, self.is_linear = owner, *_treated(owner, run.prepared)
        if parameters and self.family is event_linear:
            # its operators of a mode are made when the mode begins: only functions follow a parameter at once
            scheme["flow"] = "dopri5"
            run, options = prepare_run(owner, system, shortest / (rows or 1), scheme, None, False)
            self.family, flow, self.is_linear = _treated(owner, run.prepared)
        n = int(flow["n"][0])
        own = int(flow["n_own"][0]) if self.family is event_linear else n
        members, total = run.records.size, n + len(parameters)
        width = total if n_columns is None or parameters else n_columns
        self.without_map = _without_map(self.family, run.prepared)
        # 3. rows: one where derivatives between events are exact, else ROWS of them, for which the run is prepared again
        self.is_exact = self.is_linear and not parameters  # derivatives between events are, with one row
        if width > 0 and self.without_map:
            raise ValueError(f"{owner}: {self.without_map}")
        self.rows = rows or (ROWS if width > 0 and not self.is_exact else 1)
        if self.rows > (rows or 1):
            run, options = prepare_run(owner, system, shortest / self.rows, scheme, None, False)
        self.run, self.options, self.h, p = run, options, periods / self.rows, run.prepared
        # 4. plan of the tangent map, changes of parameters, offsets of the state
        evaluate = address_of_evaluate(p, self.family) if width > 0 else 0
        self.plan = Plan(n, len(parameters), width, own, self.rows, int(orthonormal), AT_TIMES, n + 2, evaluate, 0, 0)
        self.changes = changes_of(owner, system, shortest / self.rows, scheme, run, parameters)
        self.words = state_words(run.records)
        self._allocate(members, sections, True)

    def _allocate(self, members, sections, has_matrices):
        """Allocates the tangent maps, and copies of the memory of the run; has_matrices: scratch for derivatives."""
        n, total, width, p = self.plan.n, self.plan.n + self.plan.n_parameters, self.plan.n_columns, self.run.prepared
        room = scratch_size(n, total, has_matrices)
        require_affordable(f"{self.owner}: the derivatives of {n} states, with scratch,", room, _INSTEAD)
        self.columns, self.growth = np.zeros((members, n, width)), np.zeros((members, width))
        self.notes, self.reached = np.zeros((members, N_NOTES)), np.zeros((members, N_REACHED), np.int64)
        scratch, self.maps = np.zeros((members, room)), np.zeros((members, sections, n, width))
        self._tangent = Tangent(
            self.columns.reshape(members, -1), self.growth, self.notes, self.reached, scratch, self.maps.reshape(members, -1)
        )
        self._memory = Scratch(self.run.mem, self.run.mem.view(np.int64), p.work, p.iwork)
        self._initial, self._spare = copy_of(self._memory), [copy_of(self._memory) for _ in range(2)]
        self.points, self.skipped, self.varied = np.zeros((members, 0)), np.zeros(members), np.zeros((members, 0))
        self._section, self._n_sections, self._kept, self._branch_words = None, 0, None, branch_words(self.run.records)
        self._vectors = scratch[:, 1 : 1 + VECTORS * total].reshape(members, VECTORS, total)
        self._vectors[:, UNITS] = 1.0
        self.restart()
        if width > 0:
            self._note_sizes()

    def _note_sizes(self):
        """Note how large the states are in a section, by a run without derivatives: what is small may have a small unit.

        Where sizes are far apart, tangent maps are computed in units of them, powers of 2.
        """
        plan = self.plan
        self.plan = plan._replace(n_columns=0)
        try:
            self.advance(1)
        finally:
            self.plan = plan
        sizes = self._vectors[:, SIZES]
        units = np.exp2(np.floor(np.log2(np.where(sizes > 0.0, sizes, 1.0))))
        apart = units.max(axis=1) > _APART * units.min(axis=1)
        self._vectors[:, UNITS] = np.where(apart[:, None], units, 1.0)
        self.restart()

    def in_units(self, columns):
        """Columns of tangent maps, or of maps that these make, in the units of the states."""
        units = self._vectors[: len(columns), UNITS]
        return columns * units[:, None, : columns.shape[2]] / units[:, : columns.shape[1], None]

    def record(self, room, *, at=AT_TIMES, skipped=0, surface=None, varied=None):
        """Records up to ``room`` points from now on: at sections in time, at impacts, or crossings of a `Surface`, after the skipped ones.

        varied (members, k): the parameters that the function of the surface takes.
        """
        address, crossing = (0, 0) if surface is None else (surface.address, surface.crossing)
        width = 2 + self.plan.n * (2 if at == AT_IMPACTS else 1)
        self.plan = self.plan._replace(section=at, width=width, surface=address, crossing=crossing)
        self.points = np.zeros((self.run.records.size, room * self.plan.width))
        self.reached[:, POINTS] = 0
        self.varied = np.zeros((self.run.records.size, 0)) if varied is None else np.ascontiguousarray(varied, float)
        passed = {AT_TIMES: self.reached[:, DONE] / self.rows, AT_IMPACTS: self.notes[:, IMPACTS], AT_CROSSINGS: self.notes[:, CROSSINGS]}
        self.skipped = passed[at] + skipped

    def recorded(self, m):
        """Points of a member: t, impacts so far, states (points, n), at impacts also the states after them."""
        points = self.points[m, : self.reached[m, POINTS] * self.plan.width].reshape(-1, self.plan.width)
        own = 2 + self.plan.n_own
        return points[:, 0], points[:, 1], points[:, 2:own], points[:, 2 + self.plan.n : own + self.plan.n]

    def restart(self, states=None, periods=None, change=()):
        """Restarts at the time of the system, from states (members, n), with periods; change: pairs of `Words` and values (members,).

        Arguments that are not given keep their values of the last restart.
        """
        self._set_out(states, periods, change)
        rewind(0, self.run.records.size, *self._of_rewind())
        self.n_done = 0

    def _set_out(self, states, periods, change):
        # initial memory: changed parameters, states, lengths of sections
        for words, values in change:
            self._kept = None  # its work memory is that of the numbers before
            self._initial.mem[:, words.mem] = values[:, None]
            self._initial.work[:, words.work] = words.sign * values[:, None]
        if states is not None:
            self._initial.mem[:, self.words] = states
        if periods is not None:
            np.divide(periods, self.rows, out=self.h)

    def _of_rewind(self):
        return self.plan.n, self.plan.n_columns, self._initial, self._memory, self._tangent

    def _marching(self, until):
        """The compiled loop, and its arguments except the range of members."""
        p, members = self.run.prepared, Members(*self._memory, self.h, self.points, self.skipped, self.varied)
        given = until, self.plan, members, p.tables, p.functions, self.run.solver, self.run.solver_options, p.options
        return march_of(p, self.family), (*given, self._tangent, self.changes, *self._spare)

    def advance(self, n_sections):
        """Runs over n_sections; members whose run has failed stay where they are. Raises KeyboardInterrupt."""
        n_before, n = self.n_done, first_chunk(_FIRST, self.run.records.nbytes)
        self.n_done += n_sections * self.plan.every
        # chunks that last about as long as a user waits for Ctrl-C
        with Interrupts() as interrupts, shares(self.run.records.size) as in_shares:
            while n_before < self.n_done:
                began, until = time.perf_counter(), min(n_before + n, self.n_done)
                march, arguments = self._marching(until)
                with interrupts.at_once():
                    in_shares(lambda first, last, march=march, arguments=arguments: march(first, last, *arguments))
                interrupts.raise_noted()
                if not self.reached[:, HALTED].any():
                    n_before, n = until, next_chunk(until - n_before, time.perf_counter() - began)

    def section(self, states, periods, change=()):
        """`restart`, and march over one section. Raises KeyboardInterrupt.

        From the third time on, where that is short, by a call whose arguments are not checked again, on one core: to wake a thread takes
        longer than a few members do.
        """
        self._set_out(states, periods, change)
        self._n_sections += 1
        if self._section is not None:
            self.n_done = self.plan.every
            self._section()
            if self.reached[:, HALTED].any():
                self.n_done = 0
                self.advance(1)
            return
        began, n, self.n_done = time.perf_counter(), self.run.records.size, 0
        rewind(0, n, *self._of_rewind())
        self.advance(1)
        if self._n_sections > 1 and time.perf_counter() - began < CHUNK_SECONDS:
            march, arguments = self._marching(self.n_done)
            self._section = bound((rewind, (0, n, *self._of_rewind())), (march, (0, n, *arguments)))

    def starts_from(self, system, periods):
        """Whether the run can restart from another system that differs in its clock, state and inputs only."""
        if not self._kept.starts_from(system):
            return False
        for now, before in zip(self._memory, self._initial, strict=True):
            before[...] = now
        self._set_out(None, periods, ())
        return True

    def keep(self, key):
        """Keeps the run for another system if that is worth it: see `kept_run`."""
        if not may_keep(key, self.run):
            return
        if self._kept is None:
            self.restart()
            self._kept = Kept(self.run, self.options, self.run.records.shape)
        put_back(key, self)

    def edition(self):
        """Fingerprint of the compiled code."""
        return fingerprint(march_of(self.run.prepared, self.family), {})

    @property
    def status(self):
        """Status of each member that ended its run, or 0."""
        return self.reached[:, STOPPED]

    def states(self):
        """Present states of all members (members, n_own)."""
        return self.run.mem[:, self.words].copy()

    def branches(self):
        """Present branches of all members (members, rows): multipliers, of systems whose laws may have hysteresis."""
        return self.run.mem[:, self._branch_words].copy()

    def follow(self, branches):
        """Later restarts begin on these branches."""
        self._kept = None  # it is that of the branches before
        self._initial.mem[:, self._branch_words] = branches


def refined(derivatives, rows, shortest):
    """(result, error (members,), rows) of runs with tangent maps, whose rows are doubled until the derivatives have converged.

    derivatives: a function of rows that gives (result, derivatives (members, n, k)); rows: at first, 2 or more; shortest: the shortest
    section. The error is the change since half as many rows, relative to the largest derivative, or 1; NaN where the run has failed.
    """
    # 1. with half the rows and with these: a first estimate of the error
    rows = max(2, rows)
    (_, coarse), (result, fine) = derivatives(rows // 2), derivatives(rows)
    error = _change(coarse, fine)
    # 2. double until all members are accurate, or the change no longer falls because it is noise
    while (error > _ACCURATE).any() and 2 * rows <= min(_MOST_ROWS, shortest / SHORTEST):
        finer_result, finer = derivatives(2 * rows)
        change = _change(fine, finer)
        if np.fmax.reduce(error) <= _NOISE and not np.fmax.reduce(change) <= 0.5 * np.fmax.reduce(error):
            break
        rows, result, fine, error = 2 * rows, finer_result, finer, change
    return result, error, rows


def _change(coarse, fine):
    """Largest change of each member, relative to the largest derivative, or 1; infinite where only the coarse ones are NaN."""
    change = abs(fine - coarse).max(axis=(1, 2)) / np.maximum(1.0, abs(fine).max(axis=(1, 2)))
    return np.where(np.isnan(change) & np.isfinite(fine).all(axis=(1, 2)), np.inf, change)


def rows_for(run, again):
    """Number of rows of a section that suffices for the first sections of a run; again: a function of rows that makes an equal run."""
    if run.is_exact:
        return run.rows

    def derivatives(rows):
        trial = again(rows)
        trial.advance(_TRIAL)
        return None, trial.in_units(trial.columns)

    return refined(derivatives, run.rows, run.h.min() * run.rows)[2]


def kept_run(owner, systems, periods, scheme, n_columns, rows):
    """(a `Carried`, a key under which it may be kept): a kept one that can restart from these systems, or a new one."""
    key = key_of(systems, float(min(periods)), scheme, None)
    key = None if key is None else (*key, n_columns, rows)
    run = None if key is None else taken(key)
    if run is None or not run.starts_from(systems, periods):
        run = Carried(owner, systems, periods, scheme, n_columns=n_columns, rows=rows)
    run.owner = owner
    return run, key


def _treated(owner, prepared):
    """(family, table of the flow, whether motions are linear) of a prepared run; refuses systems without a tangent map."""
    family, tables = _FAMILIES.get(prepared.stepper), prepared.tables
    if family is None:
        raise ValueError(f"{owner}: rigid bodies in space are not treated: state the system by nsds.lagrangian")
    flow = tables.flow.plan if family is event_linear else tables.flow
    if flow["is_controlled"][0]:
        raise ValueError(f"{owner}: systems with nsds.sampled_control are not treated")
    return family, flow, family is event_linear or (family is event_mechanics and bool(flow["is_linear"][0]))


def _without_map(family, prepared):
    """Reason why a run has no tangent map; empty if it has one."""
    if family is event_mechanics and prepared.tables.newton.plan["impact_law"][0]:
        return "impacts by the laws multiple_impact and poisson_impact have no tangent map; use nsds.newton_impact"
    return ""


def copy_of(scratch):
    """A copy of the memory of all members."""
    mem = scratch.mem.copy()
    return Scratch(mem, mem.view(np.int64), scratch.work.copy(), scratch.iwork.copy())


def is_same(one, other):
    """Whether entries are equal, or both NaN."""
    return (one == other) | (np.isnan(one) & np.isnan(other))


def _require_alike(owner, parameters, run, tables):
    """Refuses parameters that are 0 where steps leave zeros out: a change would be seen in part."""
    zeros = [each.path for each in parameters if each.of(run.records[0]) == 0.0]
    if zeros and not all(one.tobytes() == other.tobytes() for one, other in zip(*map(_arrays, (run.prepared.tables, tables)), strict=True)):
        raise ValueError(f"{owner}: parameters: steps leave out what is 0, here one of {', '.join(zeros)}: take a small number, as 1e-9")


def _arrays(tables):
    """All arrays of tables, of those within them, too."""
    if isinstance(tables, tuple):
        return [array for each in tables for array in _arrays(each)]
    return [np.asarray(tables)]


def changes_of(owner, system, h, scheme, run, parameters):
    """Effect of a change of each parameter on the memory: entries that differ once the changed systems are prepared."""
    # 1. systems with each parameter a little less and a little more, prepared side by side; entries that differ are its effect
    deltas, lists, changed = [], {"mem": [], "work": []}, np.repeat(np.array(system).reshape(-1)[:1], 2 * len(parameters))
    for k, parameter in enumerate(parameters):
        value = parameter.of(run.records[0])
        delta = 2.0**-17 * max(1.0, abs(value))
        middle = parameter.beside(run.records[0], delta)
        deltas.append(delta)
        parameter.put(changed[2 * k : 2 * k + 2], middle + delta * np.array([-1.0, 1.0]))
    if parameters:
        other, _ = prepare_run(owner, changed, h, scheme, None, False)
        _require_alike(owner, parameters, run, other.prepared.tables)
        for name, ours, theirs in (("mem", memory(run.records), other.mem), ("work", run.prepared.work, other.prepared.work)):
            for row in theirs:
                at = np.flatnonzero(~is_same(ours[0], row))
                lists[name].append((at, row[at]))
    # 2. lists of all rows one after the other, with their ends
    pieces = []
    for found in lists.values():
        pieces.append(np.cumsum([0, *(at.size for at, _ in found)]))
        pieces.append(np.concatenate([np.zeros(0, np.int64), *(at for at, _ in found)]))
        pieces.append(np.concatenate([np.zeros(0), *(values for _, values in found)]))
    return Changes(np.array(deltas), *pieces)
