"""Tangent maps along a run by time stepping: derivatives of each step at constant active set.

A step is a map of the state, ``x_{k+1} = Phi(x_k, p)``, smooth as long as the same constraints are active and the same bounds are reached:
there the implicit function theorem, of the one-step problem with these, says what its derivative is. Here it is the central difference of
the step itself, at neighbouring states and parameters; exact to rounding where a step is linear, which it is for linear systems without
friction in a plane. If one side has another active set, the difference is one-sided.

As an impact lies at the end of a step whatever the state, its time does not move: these are derivatives of the scheme, and
in general **not** those of the motion which it approximates, however short its steps are. Those are in `nsds.analysis.tangent`.
"""

import math
import warnings
from typing import NamedTuple

import numpy as np

from nsds import _checks, _jit
from nsds._jit import kernel, tiny, view
from nsds.analysis.parameters import state_words
from nsds.analysis.tangent import (
    AT_TIMES,
    DONE,
    EVENTS,
    IMPACTS,
    LOG_DET,
    SIZES,
    SMALL,
    STARTED,
    STOPPED,
    TIME,
    TOGETHER,
    UNTREATED,
    VECTORS,
    Changes,
    Members,
    Plan,
    apply_map,
    copy_vector,
    log_of_determinant,
    note_sizes,
    orthonormalise,
    put_change,
    set_apart,
    write_point,
)
from nsds.analysis.tangent_run import Carried, changes_of
from nsds.model.laws import LAWS
from nsds.model.records import STEP, T0, T, model_of
from nsds.model.system_kinds import LAGRANGIAN, NEWTON_EULER, family, split
from nsds.schemes.memory import Calls, Memory, calls_of, memory_of
from nsds.schemes.run.preparation import prepare_run
from nsds.schemes.run.simulation import name_of
from nsds.schemes.table import is_event_driven
from nsds.status import CONVERGED, INEXACT

_DIFFERENCE = 2.0**-17  # finite difference, relative to 1 or the variable, or to its size where that is small throughout
_SHORTER = 2.0**-7  # factor of the difference if an active set changes within it
AT_BOUND = 1e-9  # relative distance within which a multiplier is at its bound
_PHASE = 1e-9  # of a step: accepted deviation of a period from a whole number of steps
_MOST_STEPS = 2**31 - 1  # of a section, the largest count of the time loop
_DENSE, _ENOUGH = 4, 64  # mean number of steps between events, over at least so many steps, below which steps are too long


class Rows(NamedTuple):
    """Multipliers, by their offsets in the memory, and the bounds at which constraints become active."""

    at: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Step(NamedTuple):
    """Scheme, functions and memory with which derivatives of the steps of one member are computed."""

    plan: Plan
    words: np.ndarray  # offsets of the state
    changes: Changes
    work: np.ndarray  # scratch as prepared
    iwork: np.ndarray
    one: Memory  # memory before the step
    other: Memory  # a copy, for the differences
    tables: NamedTuple
    calls: Calls
    options: NamedTuple


@tiny
def _side(value, low, high):
    """-1 at the lower bound, 1 at the upper one, else 0."""
    if value <= low + AT_BOUND * abs(low):
        return -1
    return 1 if value >= high - AT_BOUND * abs(high) else 0


@tiny
def _is_solved(status):
    """Whether a step has a result."""
    return status in (CONVERGED, INEXACT)


@kernel
def _is_alike(one, other, rows):
    """Whether the same multipliers are at their bounds in two memories."""
    for k in range(rows.at.size):
        i = rows.at[k]
        if _side(one[i], rows.low[k], rows.high[k]) != _side(other[i], rows.low[k], rows.high[k]):
            return False
    return True


@kernel
def _note_events(before, after, rows, notes):
    """Counts a step in which the active set has changed, and the contacts that have closed."""
    changed = 0
    for k in range(rows.at.size):
        i = rows.at[k]
        was, now = _side(before[i], rows.low[k], rows.high[k]), _side(after[i], rows.low[k], rows.high[k])
        changed += 1 if was != now else 0
        notes[IMPACTS] += 1.0 if was == -1 and now == 0 and rows.low[k] == 0.0 else 0.0
    notes[EVENTS] += 1.0 if changed > 0 else 0.0
    notes[TOGETHER] += 1.0 if changed > 1 else 0.0


def _beside_template(j, side, delta, t, y, stepped):
    """The state y after the step to t with state, or parameter, j changed by delta; returns the status. ``one``: memory before the step."""
    plan, words, one, other = stepped.plan, stepped.words, stepped.one, stepped.other
    # 1. memory before the step; scratch as prepared, since a step may use what its predecessor left there
    copy_vector(one.mem, other.mem)
    copy_vector(stepped.work, other.work)
    copy_vector(stepped.iwork, other.iwork)
    # 2. the change
    if j < plan.n:
        other.mem[words[j]] = one.mem[words[j]] + (delta if side == 1 else -delta)
    else:
        put_change(2 * (j - plan.n) + side, stepped.changes, other)
    # 3. the step
    status = start(one.mem[T], stepped.tables, stepped.calls.functions, stepped.options, other)  # noqa: F821
    if status == 0:
        status, _, _ = step_(t, stepped.tables, stepped.calls, stepped.options, other)  # noqa: F821
    for i in range(plan.n):
        y[i] = other.mem[words[i]]
    return status


def _differentiate_step_template(t, now, out, w, rows, stepped):
    """Derivatives of the state after the step to t, which is in ``now``, by states and parameters, n rows into out.

    Returns the number of columns with another active set on both sides: these are differences across the change.
    """
    plan, words, changes, one, other = stepped.plan, stepped.words, stepped.changes, stepped.one, stepped.other
    n, N, lost = plan.n, plan.n + plan.n_parameters, 0
    low, high, sizes = view(w, 1, N), view(w, N + 1, N), view(w, SIZES * N + 1, N)
    for j in range(N):
        delta = changes.delta[j - n] if j >= n else 0.0
        if j < n:
            delta = _DIFFERENCE * (max(sizes[j], abs(one.mem[words[j]])) if 0.0 < sizes[j] < SMALL else max(1.0, abs(one.mem[words[j]])))
        is_low, is_high = False, False
        # 1. both sides; a shorter difference if either has another active set
        for shorter in range(2 if j < n else 1):
            delta *= 1.0 if shorter == 0 else _SHORTER
            status = beside(j, 0, delta, t, low, stepped)  # noqa: F821
            is_low = _is_solved(status) and _is_alike(now, other.mem, rows)
            status = beside(j, 1, delta, t, high, stepped)  # noqa: F821
            is_high = _is_solved(status) and _is_alike(now, other.mem, rows)
            if is_low and is_high:
                break
        lost += 0 if is_low or is_high else 1
        # 2. central, or one-sided from the side with the active set of the step
        is_central = is_low == is_high
        for i in range(n):
            above = high[i] if is_high or is_central else now[words[i]]
            below = low[i] if is_low or is_central else now[words[i]]
            out[i * N + j] = (above - below) / (2.0 * delta if is_central else delta)
    return lost


def _stepped_march_template(first, last, until, plan, all_members, fresh, words, rows, tables, functions, solver, solver_options, options,
                            tangent, changes, ones, others):  # fmt: skip
    """Steps of members first..last up to number ``until``, with their tangent maps if these have columns, and points of a section."""
    n, N = plan.n, plan.n + plan.n_parameters
    behind, size = VECTORS * N + 1, n * N if plan.n_columns > 0 else 0
    # 1. memory of the member, and copies for the differences
    for m in range(first, last):
        mem, imem, address = all_members.mem[m], all_members.imem[m], functions[m]
        memory = memory_of((mem, imem, all_members.work[m], all_members.iwork[m]))
        reached, notes, w, columns = tangent.reached[m], tangent.notes[m], tangent.scratch[m], tangent.columns[m]
        one = memory_of((ones.mem[m], ones.imem[m], ones.work[m], ones.iwork[m]))
        other = memory_of((others.mem[m], others.imem[m], others.work[m], others.iwork[m]))
        calls = calls_of((address, solver, solver_options))
        stepped = Step(plan, words, changes, fresh.work[m], fresh.iwork[m], one, other, tables, calls, options)
        x, J, spare, product = view(w, 1, N), view(w, behind, size), view(w, behind + 4 * size, size), view(w, behind + 5 * size, size)
        # 2. start of the run
        if reached[STARTED] == 0:
            reached[STARTED] = 1
            reached[STOPPED] = start(mem[T], tables, address, options, memory)  # noqa: F821
        while reached[DONE] < until and reached[STOPPED] == 0:
            k, t_0 = imem[STEP] + 1, mem[T]
            t = mem[T0] + k * options.h
            # 3. the step; the memory before it is kept for the differences
            copy_vector(mem, one.mem)
            status, _, _ = step_(t, tables, calls, options, memory)  # noqa: F821
            if not _is_solved(status):
                reached[STOPPED] = status
                break
            # 4. derivatives of the step, applied to the tangent map
            if plan.n_columns > 0:
                lost = differentiate_step(t, mem, J, w, rows, stepped)  # noqa: F821
                notes[UNTREATED] += lost
                for i in range(n):
                    for j in range(n):
                        spare[i * n + j] = J[i * N + j]
                notes[LOG_DET] += log_of_determinant(n, spare, product)
                apply_map(J, columns, n, N, plan.n_columns, product)
            # 5. accept, note sizes, and count events
            if plan.n_columns == 0:
                for i in range(n):
                    x[i] = one.mem[words[i]]
                note_sizes(x, n, view(w, SIZES * N + 1, N))
                for i in range(n):
                    x[i] = mem[words[i]]
                note_sizes(x, n, view(w, SIZES * N + 1, N))
            imem[STEP], mem[T] = k, t
            _note_events(one.mem, mem, rows, notes)
            notes[TIME] += t - t_0
            reached[DONE] += 1
            # 6. end of a section: store or orthonormalise the map, record the point
            if reached[DONE] % plan.every == 0:
                if tangent.maps.shape[1] > 0:
                    set_apart(n, plan.n_columns, reached[DONE] // plan.every - 1, columns, tangent.maps[m])
                if plan.orthonormal != 0:
                    orthonormalise(n, plan.n_columns, columns, tangent.growth[m], notes[LOG_DET])
                if plan.section == AT_TIMES and reached[DONE] > all_members.skipped[m] * plan.every:
                    for i in range(n):
                        x[i] = mem[words[i]]
                    write_point(t, reached, plan.width, n, x, x, notes, all_members.points[m])


_marches = {}


def _march_of(stepper):
    """Compiled loop that carries tangent maps along the steps of a scheme."""
    name = name_of(stepper)
    if name not in _marches:
        names = {"start": stepper.start, "step_": stepper.step}
        names["beside"] = kernel(_jit.specialised(_beside_template, name, **names))
        names["differentiate_step"] = kernel(_jit.specialised(_differentiate_step_template, name, **names))
        _marches[name] = kernel(_jit.specialised(_stepped_march_template, name, **names))
    return _marches[name]


class Stepped(Carried):
    """`Carried` by time stepping, with a whole number of steps h in a section."""

    def __init__(self, owner, system, period, scheme, h, *, n_columns=None, orthonormal=False, parameters=(), sections=0):
        # 1. one length of sections for all members
        periods = np.broadcast_to(np.asarray(period, float), np.size(system))
        self.owner, length = owner, float(periods[0])
        if (periods != length).any():
            raise ValueError(f"{owner}: with a step h all sections must be of one length, got some from {periods.min()} to {periods.max()}")
        every, h = whole_steps(owner, length, h)
        # 2. prepare the run; refuse systems and schemes without a map of states
        run, _ = prepare_run(owner, system, h, scheme, None, False)
        if family(model_of(run.records)) == NEWTON_EULER:
            raise ValueError(f"{owner}: rigid bodies in space are not treated: state the system by nsds.lagrangian")
        if run.controls.table.size:
            raise ValueError(f"{owner}: systems with nsds.sampled_control are not treated")
        if not getattr(run.prepared.stepper, "IS_ONE_STEP", True):
            raise ValueError(f"{owner}: scheme keeps more than the state from one step to the next: no map of states")
        # 3. plan of the tangent map, changes of parameters, multipliers with bounds
        self.run, self.words, self.rows, self.h, self._length = run, state_words(run.records), every, h, length
        members, n, total = run.records.size, self.words.size, self.words.size + len(parameters)
        width = total if n_columns is None or parameters else n_columns
        self.plan = Plan(n, len(parameters), width, n, every, int(orthonormal), AT_TIMES, n + 2, 0, 0, 0)
        self.changes = changes_of(owner, system, h, scheme, run, parameters)
        self._rows, self._has_warned, self.without_map, self.is_exact = bounded_rows(run.records, h), False, "", True
        self._allocate(members, sections, width > 0)

    def _set_out(self, states, periods, change):
        """See `Carried.restart`; the length of sections remains."""
        if periods is not None and not (np.asarray(periods) == self._length).all():
            raise ValueError(f"{self.owner}: with a step h all sections must be of one length, {self._length}")
        super()._set_out(states, None, change)

    def _marching(self, until):
        """See `Carried._marching`."""
        p, members = self.run.prepared, Members(*self._memory, np.zeros(0), self.points, self.skipped, self.varied)
        given = until, self.plan, members, self._initial, self.words, self._rows, p.tables, p.functions, self.run.solver
        return _march_of(p.stepper), (*given, self.run.solver_options, p.options, self._tangent, self.changes, *self._spare)

    def advance(self, n_sections):
        """See `Carried.advance`."""
        super().advance(n_sections)
        self._warn_of_events()

    def section(self, states, periods, change=()):
        """See `Carried.section`."""
        super().section(states, periods, change)
        self._warn_of_events()

    def _warn_of_events(self):
        """Warns once that events are too close for the step."""
        self._has_warned = self._has_warned or warn_of_events(self.owner, self.h, self.notes[:, EVENTS], self.reached[:, DONE])


def warn_of_events(owner, h, n_events, done):
    """Warn that events of a member are too close for the step, after so many steps of each; returns whether they are."""
    dense = (done >= _ENOUGH) & (_DENSE * n_events > done)
    if dense.any():
        m = int(np.argmax(dense))
        warnings.warn(
            f"{owner}: h = {h:g} is too coarse for the events: what is active changes in {n_events[m]:.0f} of {done[m]} steps; take a "
            "smaller h, or nsds.event_driven()",
            RuntimeWarning,
            stacklevel=4,
        )
    return bool(dense.any())


def carried(owner, system, period, scheme, h, **settings):
    """Run with tangent maps: by time stepping if a step h is given, else event by event."""
    if h is None:
        return Carried(owner, system, period, scheme, **settings)
    h = _checks.number(owner, "h", h, above=0.0)
    if is_event_driven(scheme):
        raise ValueError(f"{owner}: h is the step of a time-stepping scheme: nsds.event_driven has none, leave it out")
    settings.pop("rows", None)
    return Stepped(owner, system, period, scheme, h, **settings)


def whole_steps(owner, length, h):
    """(number of steps in a section of this length, step that divides it exactly): the phase must not drift."""
    if not length / h <= _MOST_STEPS:
        raise ValueError(f"{owner}: h must leave at most {_MOST_STEPS} steps to the section of length {length:g}, got {h}")
    count = max(1, round(length / h))
    off = (count * h - length) / length
    if not abs(count * h - length) <= _PHASE * h * max(1.0, count):
        raise ValueError(
            f"{owner}: h = {h:g} is no divisor of the section of length {length:g}: after {count} steps the phase is off by {off:.2g} of "
            f"it, more in each; take h = {length!r} / {math.ceil(length / h)}"
        )
    return count, length / count


def bounded_rows(records, h):
    """`Rows` of the interactions of a record, whose multipliers are impulses in mechanical systems."""
    at, low, high = [], [], []
    model = model_of(records)
    scale = h if family(model_of(records)) == LAGRANGIAN else 1.0
    # equations are always active: their rows have no bounds
    for name, _, law, *_ in split(model)[1]:
        base, part = records.dtype[name].base, records[name][:1].reshape(-1)
        m = int(np.prod(base["lambda"].shape, dtype=int))
        first = (records.dtype.fields[name][1] + base.fields["lambda"][1]) // 8
        words = first + base.itemsize // 8 * np.arange(part.size)[:, None] + np.arange(m)
        if LAWS[law].bilateral and not LAWS[law].is_bounded:
            continue
        lower, upper = (np.broadcast_to(bound, words.shape) for bound in LAWS[law].bounds(part, m))
        at.append(words.ravel())
        low.append(lower.ravel() * scale)
        high.append(upper.ravel() * scale)
    if not at:
        return Rows(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    return Rows(np.concatenate(at).astype(np.int64), np.concatenate(low), np.concatenate(high))
