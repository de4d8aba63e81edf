"""Map of a forced system from one section to the next, with its derivatives: its fixed points are periodic orbits."""

import math
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.analysis.parameters import Parameter, branch_words, label_of, state_of
from nsds.analysis.paths import ROUNDING
from nsds.analysis.tangent import AT_IMPACTS, EVENTS, IMPACTS, LOG_DET, SLOWEST, TOGETHER, UNTREATED
from nsds.analysis.tangent_run import Words, is_same, kept_run, refined, require_long
from nsds.analysis.tangent_steps import carried, whole_steps
from nsds.model.records import memory, model_of
from nsds.model.system_kinds import LAGRANGIAN, family
from nsds.model.validation import valid
from nsds.status import CONVERGED

_SHORTER, _BY = 6, 16.0  # number of finite differences by the parameter, and ratio of successive ones
_BENDS = 1e-3  # of a difference: accepted deviation of its halves
_ALONG, _CLOSES = (1.0 / 64.0, 1.0 / 7.0), 1e-4  # of an orbit: later states of a cycle; residual there, relative to their distance
_PARTS, _STRAYS = 3, 1e-6  # of an orbit, after one of which the next turn is compared with it; accepted deviation
_OF_STATE = ("q", "v", "p", "x", "r", "y", "ydot", "lambda")  # fields of the state, and quantities that follow from it
_TIMES = (0.5, 0.29, 0.79)  # of an orbit: times of alternative sections


class Returned(NamedTuple):
    """Result of a map, of each member."""

    ends: np.ndarray  # (members, n)
    maps: np.ndarray  # (members, n, n): derivatives by the state
    status: np.ndarray
    impacts: np.ndarray
    events: np.ndarray
    slowest: np.ndarray  # smallest rate of a guard at its event: 0 at a grazing
    log_det: np.ndarray  # logarithm of the determinant of the derivatives, summed along the run
    together: np.ndarray  # events at which several guards crossed zero
    untreated: np.ndarray  # events whose saltation matrix is not known
    error: np.ndarray | None = None  # of the derivatives, relative to the largest or 1, if it was estimated


class SectionMap:
    """Map of a forced system from one time to the same phase n_periods periods later."""

    met = "corner"  # special point at which a margin of the orbit is zero

    def __init__(self, owner, system, period, n_periods, scheme, names, h=None, delay=0.0):
        self.delay = delay  # of the section after the time of the user's system
        self.owner, self.system, self.scheme, self.n_periods, self.names, self.h = owner, system, scheme, n_periods, names, h
        self.phases = "stick" if family(model_of(system)) == LAGRANGIAN else "sliding"  # phase that begins where events change
        self.period = _period_of(owner, period, names)
        self.parameters = [Parameter(owner, label_of(names), self.system, name) for name in names]
        self.values = np.array([parameter.of(self.system) for parameter in self.parameters])
        self._pools, self._keys, self._words = {}, {}, None if names else []
        self.x = state_of(self.system)
        self.n = self.x.size
        self.modulo = None  # periods of states that are angles
        self.rows = None  # rows of runs with derivatives, if more than at first
        self.before = None  # the section at the time of the user's system, where this one is at a later time

    def _systems(self, members, values):
        systems = np.repeat(self.system.reshape(1), members)
        for parameter, column in zip(self.parameters, np.transpose(values), strict=bool(self.parameters)):
            parameter.put(systems, column)
        return systems

    def _pool(self, members, n_columns, values, rows=None):
        systems = self._systems(members, values)
        return carried(self.owner, systems, self._lengths(values), self.scheme, self.h, n_columns=n_columns, rows=rows)

    def _lengths(self, values):
        """Lengths of the sections in time."""
        return [self.period(*each) * self.n_periods for each in values]

    def _at(self, values, n_columns):
        """A run at these values (members, k), a prepared one if the values are only in the records, and the arguments of its restart."""
        if self._words is None:
            self._words = self._words_of_parameters()
        rows = self.rows if n_columns is None else None
        key, lengths = (len(values), n_columns, rows), self._lengths(values)
        # 1. a parameter changes more than copies of itself: prepare the run at each call
        if len(self._words) < len(self.names):
            self._pools[key] = self._pool(len(values), n_columns, values, rows)
        # 2. otherwise one run for each shape of the call, the event-driven ones also kept for other sections
        elif key not in self._pools and self.h is None:
            self._pools[key], self._keys[key] = kept_run(self.owner, self._systems(key[0], values), lengths, self.scheme, n_columns, rows)
        elif key not in self._pools:
            self._pools[key] = self._pool(len(values), n_columns, values, rows)
        return self._pools[key], lengths, zip(self._words, np.transpose(values), strict=False)

    def _words_of_parameters(self):
        """Offsets of each parameter; [] if one changes prepared memory by more than copies of itself."""
        words = []
        for k in range(len(self.names)):
            # prepare the run with two values of the parameter: the entries that differ must be copies of it, up to a sign
            given = [self.values.copy() for _ in range(2)]
            given[1][k] += max(1.0, abs(self.values[k])) * 2.0**-10
            one, other = (self._pool(1, 0, [values]).run for values in given)
            at = np.flatnonzero(~is_same(one.prepared.work[0], other.prepared.work[0]))
            sign = np.sign(other.prepared.work[0, at] * given[1][k])
            copies = [run.prepared.work[0, at] == sign * values[k] for run, values in zip((one, other), given, strict=True)]
            if not (np.all(copies) and np.array_equal(one.prepared.iwork, other.prepared.iwork)):
                return []
            words.append(Words(np.flatnonzero(~is_same(one.mem[0], other.mem[0])), at, sign))
        return words

    def returns(self, states, values, *, derive=True):
        """Ends of sections that start from states (members, n) at parameters (members,), as `Returned`."""
        run, lengths, change = self._at(np.asarray(values, float), None if derive else 0)
        return self._returned(run, states, lengths, change)

    def resolved(self, x, values, returned):
        """Result of the section at x with an estimate of the error of its derivatives, with as many rows as they need.

        Later runs use the same number of rows.
        """
        run, lengths, _ = self._at(np.array([values]), None)
        if run.is_exact:
            return returned._replace(error=np.zeros(1))

        def derivatives(rows):
            self.rows = rows
            again = returned if rows == run.rows else self.returns(x[None], [values])
            return again, run.in_units(again.maps[:1])

        result, error, self.rows = refined(derivatives, run.rows, lengths[0])
        return result._replace(error=error)

    def _returned(self, run, states, lengths, change):
        run.section(states, lengths, change)
        notes = run.notes.copy()
        counts = [notes[:, k] for k in (IMPACTS, EVENTS, SLOWEST, LOG_DET, TOGETHER, UNTREATED)]
        maps = run.columns[:, : self.n, : self.n].copy()  # the sources of a circuit, which time gives, come behind
        return Returned(run.states(), maps, run.status.copy(), *counts)

    def with_slopes(self, x, values, delta):
        """Result of the section at x, and the derivative (n,) of its end by its one parameter, from differences of this half width.

        Near a grazing, one side has other events, or speeds go as the root of the distance: the differences are then shortened, and
        at last one-sided.
        """
        # 1. shorten the difference until both sides have the same events and its halves agree
        for _ in range(_SHORTER):
            returned = self.returns(np.array([x, x, x]), [values, values + delta, values - delta])
            used, delta = delta, delta / _BY
            middle, high, low = returned.ends
            bend, change = abs(high - 2.0 * middle + low).max(), abs(high - low).max()
            is_smooth = bend <= max(_BENDS * change, ROUNDING * max(1.0, abs(middle).max()))
            if (returned.events == returned.events[0]).all() and is_smooth:
                break
        # 2. a side with other events is replaced by the middle
        high, low = (k if returned.events[k] == returned.events[0] else 0 for k in (1, 2))
        high, low = (high, low) if high or low else (1, 2)
        width = ((high == 1) + (low == 2)) * used
        return returned, difference(returned.ends[high], returned.ends[low], self.modulo) / width

    def follow(self, x, values):
        """Result of the section from x; later runs begin on the branch on which it ends: laws with hysteresis have several at a state."""
        run, lengths, change = self._at(np.array([values]), 0)
        returned = self._returned(run, x[None], lengths, change)
        branch = run.branches()[0]
        memory(self.system.reshape(1))[0, branch_words(self.system)] = branch
        for pool in self._pools.values():
            pool.follow(branch)
        return returned

    def strays(self, x, values):
        """By how much the motion of the next turn differs from that of the orbit from x; 0 if they are the same.

        They are not where a law with hysteresis is on another branch at the end: the state closes, and the motion goes another way.
        """
        if not branch_words(self.system).size:
            return 0.0
        # 1. a part of the orbit, and the same part of the next turn without a restart
        (length,) = self._lengths([values])
        steps = _PARTS if self.h is None else whole_steps(self.owner, length, self.h)[0]
        parts = next(k for k in range(min(2, steps), steps + 1) if steps % k == 0)
        run = carried(self.owner, self._systems(1, [values]), [length / parts], self.scheme, self.h, n_columns=0)
        run.restart(x[None])
        run.advance(1)
        early = run.states()[0]
        run.advance(parts)
        if run.status[0] != CONVERGED:
            return math.inf
        # 2. the same up to what an orbit that is found to rounding grows to
        sizes = np.maximum(abs(early), abs(x))
        off = abs(run.states()[0] - early)
        return off.max() if (off > _STRAYS * sizes + ROUNDING * sizes.max()).any() else 0.0

    def require_branch(self, x, values):
        """Refuses a state to which the motion comes back on another branch of a law with hysteresis."""
        if self.strays(x, values) > 0.0:
            raise ValueError(
                f"{self.owner}: the motion from the state {x.tolist()} comes back to it on another branch of a law with hysteresis, and "
                "goes on in another way: it is no orbit, or one of a multiple of this period"
            )

    def require(self, k, value):
        """Refuses a value of a parameter outside its range."""
        valid(self.owner, self.parameters[k].put(self.system.reshape(1).copy(), value).reshape(()))

    def close(self):
        """Returns prepared runs to the pool for other sections."""
        for of_pool, key in self._keys.items():
            self._pools[of_pool].keep(key)

    def margins(self, x, values, corners):
        """Differences of the phases of impacts and corners, for each impact and corner, in (-1/2, 1/2]."""
        if not corners.size:
            return []
        phase = self.impact_times(x, values)[:, None] * self.n_periods + self.delay / self.period(*values) - corners
        return (phase - np.round(phase)).reshape(-1).tolist()

    def impact_times(self, x, values):
        """Times of the impacts of the section from x, as fractions of its length."""
        recorded, length = self._impacts(x, values)
        return (recorded[0] - self.system["t"]) / length

    def least_jump(self, x, values):
        """Least jump of a state at an impact of the section from x; infinity without impacts."""
        (_, _, before, after), _ = self._impacts(x, values)
        return abs(after - before).max(axis=1).min(initial=math.inf)

    def _impacts(self, x, values):
        """(record at the impacts of the section from x, its length)."""
        # 1. a run without derivatives counts the impacts
        run, lengths, change = self._at(np.array([values]), 0)
        run.section(x[None], lengths, change)
        count = int(run.notes[0, IMPACTS])
        # 2. the same run again records them
        run.restart()
        run.record(count, at=AT_IMPACTS)
        run.advance(1)
        result = run.recorded(0)
        run.record(0)
        return result, lengths[0]

    def _onward(self, x, values, length):
        """(state a time ``length`` after x at the time of the section, the map to it, the record there)."""
        run, _, change = self._at(np.array([values]), None)
        returned = self._returned(run, x[None], [length], change)
        return returned.ends[0], returned.maps[0], run.run.records[0].copy()

    def require_drive(self, x, values):
        """Refuses the cycle of an autonomous system: it closes from each of its states, after the same time."""
        length = self._lengths([values])[0]
        # two later states that close as well: then any phase does
        for part in _ALONG:
            later, _, _ = self._onward(x, values, part * length)
            returned, moved = self.returns(later[None], [values]), np.linalg.norm(later - x)
            if not (returned.status[0] == CONVERGED and moved > 0.0 and np.linalg.norm(returned.ends[0] - later) <= _CLOSES * moved):
                return
        raise ValueError(
            f"{self.owner}: nothing drives the system: the orbit from {x.tolist()} closes from each of its states, and its period "
            f"changes with the parameter, which is not supported; nsds.orbit(..., free_period=True) finds the cycle at one value"
        )

    def require_parameters(self):
        """Refuses parameters that orbits determine: the state, and quantities that follow from it."""
        for parameter in self.parameters:
            if parameter.field in _OF_STATE:
                raise ValueError(f"{self.owner}: {parameter.label} must be no state, which an orbit has, got {parameter.path!r}")

    def over(self, n_periods):
        """Section of orbits of another number of periods of the same system."""
        section = SectionMap(self.owner, self.system, self.period, n_periods, self.scheme, self.names, self.h, self.delay)
        section.before = None if self.before is None else self.before.over(n_periods)
        section.rows = None if self.rows is None else self.rows * max(1, n_periods // self.n_periods)
        return section

    def other_times(self, x, values):
        """Times at which alternative sections cross the orbit from x, as fractions of it, the best first: farthest from impacts."""
        times = np.sort(self.impact_times(x, values))
        if not times.size:
            return list(_TIMES)
        gaps = np.diff(times, append=times[0] + 1.0)
        return [(times[gaps.argmax()] + 0.5 * gaps.max()) % 1.0, *_TIMES]

    def later(self, part, points):
        """(section at a later time, states of orbits there), for some (state, values); (None, None) if a motion does not get there."""
        length = part * self._lengths([points[-1][1]])[0]
        found = [self._onward(x, values, length) for x, values in points]
        if not all(np.isfinite(state).all() for state, _, _ in found):
            return None, None
        system = found[-1][2]
        for parameter, value in zip(self.parameters, self.values, strict=True):
            parameter.put(system.reshape(1), value)
        section = SectionMap(self.owner, system, self.period, self.n_periods, self.scheme, self.names, self.h, self.delay + length)
        section.before, section.values, section.rows = self if self.before is None else self.before, self.values, self.rows
        return section, [state for state, _, _ in found]

    def home(self, x, values):
        """(state of the orbit through x at the time of the user's system, values, derivatives there; None if they are those at x)."""
        if self.before is None:
            return x, values, None
        length = self._lengths([values])[0]
        rest = (length - self.delay) % length
        at_home, back, _ = self._onward(x, values, rest)
        _, forth, _ = self.before._onward(at_home, values, length - rest)
        return at_home, values, back @ forth

    def away(self, x, values):
        """State, at the time of the section, of the orbit that is at x at the time of the user's system."""
        if self.before is None:
            return x
        length = self._lengths([values])[0]
        return self.before._onward(x, values, self.delay % length)[0]


def _period_of(owner, period, names):
    """A function of the parameters that gives the period."""
    if callable(period) and names:
        _checks.takes(owner, "period", period, ", ".join(f"value_{k}" for k in range(len(names))) if len(names) > 1 else "value")
        return lambda *values: _checks.number(owner, "period(value)", period(*values), above=0.0)
    number = _checks.number(owner, "period", period, above=0.0)
    require_long(owner, number)
    return lambda *_: number


def difference(ends, states, modulo):
    """``ends - states`` (members, n), for angles modulo their period."""
    result = ends - states
    if modulo is None:
        return result
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = np.where(modulo > 0, np.round(result / modulo), 0.0)
    return result - turns * modulo
