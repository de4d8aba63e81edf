"""The map of a forced system from one section to the next, whose orbits are analysed, with its derivatives."""

import math
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.analysis.carried import Carried
from nsds.analysis.parameters import Parameter, state_of, state_words
from nsds.analysis.tangent import AT_IMPACTS, EVENTS, IMPACTS, LOG_DET, SLOWEST, TOGETHER, UNTREATED
from nsds.model.records import memory
from nsds.schemes.run.simulation import on_one_core

_SHORTER, _BY = 6, 16.0  # differences by the parameter, and how much shorter each is than the one before


class Returned(NamedTuple):
    """What a map gave, of each member."""

    ends: np.ndarray  # (members, n)
    maps: np.ndarray  # (members, n, n): derivatives by the state
    status: np.ndarray
    impacts: np.ndarray
    events: np.ndarray
    slowest: np.ndarray  # the smallest rate of a guard at its event: 0 where a contact grazes
    log_det: np.ndarray  # of the derivatives, as it was summed along the run
    together: np.ndarray  # events at which several guards came to zero
    untreated: np.ndarray  # events whose saltation matrix is not known


class SectionMap:
    """The map of a forced system from one time to the same phase later: n_periods periods of it."""

    met = "corner"  # what an orbit comes to where one of its margins is zero

    def __init__(self, owner, system, period, n_periods, scheme, path):
        self.owner, self.system, self.scheme, self.n_periods = owner, system, scheme, n_periods
        self.period = _period_of(owner, period)
        self.parameter = None if path is None else Parameter(owner, "parameter", self.system, path)
        self.value = math.nan if path is None else self.parameter.of(self.system)
        self._pools, self._is_plain, self._state = {}, None, state_words(self.system)
        self.x = state_of(self.system)
        self.n = self.x.size
        self.modulo = np.zeros(self.n)

    def record(self, x, value):
        """The record of a state and a value of the parameter."""
        result = self.system.reshape(1).copy()
        if self.parameter is not None:
            self.parameter.put(result, value)
        memory(result)[0, self._state] = x
        return result.reshape(())

    def _pool(self, members, n_columns, values):
        systems = np.repeat(self.system.reshape(1), members)
        if self.parameter is not None:
            self.parameter.put(systems, values)
        periods = [self.period(value) * self.n_periods for value in values]
        return Carried(self.owner, systems, periods, self.scheme, n_columns=n_columns, keep=self.parameter is None or bool(self._is_plain))

    def _at(self, states, values, n_columns):
        """A run from these states at these values: a prepared one, where the parameter is in the records alone."""
        key = len(values), n_columns
        if self.parameter is None:
            if key not in self._pools:
                self._pools[key] = self._pool(*key, values)
            self._pools[key].restart(states, [self.period(value) * self.n_periods for value in values])
            return self._pools[key]
        if self._is_plain is None:
            one, other = (self._pool(1, 0, [self.value + change]) for change in (0.0, max(1.0, abs(self.value)) * 2.0**-10))
            same = one.run.prepared.work.shape == other.run.prepared.work.shape
            self._is_plain = same and np.array_equal(one.run.prepared.work, other.run.prepared.work, equal_nan=True)
            self._words = np.flatnonzero(one.run.mem[0] != other.run.mem[0])
        if key not in self._pools or not self._is_plain:
            self._pools[key] = self._pool(*key, values)
        periods = [self.period(value) * self.n_periods for value in values]
        self._pools[key].restart(states, periods, [(self._words, values)] if self._is_plain else ())
        return self._pools[key]

    def returns(self, states, values, *, derive=True):
        """Ends of sections that start from states (members, n) at values (members,) of the parameter, as `Returned`."""
        run = self._at(np.asarray(states, float), list(values), None if derive else 0)
        with on_one_core():  # a few members: to wake a thread takes longer than they do
            run.advance(1)
        return _returned(run, run.columns[:, : self.n, : self.n].copy())  # the sources of a circuit, which time gives, come behind

    def with_slopes(self, x, value, delta):
        """What the section returns from x, and the derivative (n,) of its end by the parameter, from differences of this half width.

        Near a grazing there are other events on one side: differences are then shorter, and at last from the other side alone.
        """
        for _ in range(_SHORTER):
            returned = self.returns(np.array([x, x, x]), [value, value + delta, value - delta])
            used, delta = delta, delta / _BY
            if (returned.events == returned.events[0]).all():
                break
        high, low = (k if returned.events[k] == returned.events[0] else 0 for k in (1, 2))
        high, low = (high, low) if high or low else (1, 2)
        width = ((high == 1) + (low == 2)) * used
        return returned, difference(returned.ends[high], returned.ends[low], self.modulo) / width

    def close(self):
        """Leave what was prepared to other sections."""
        for pool in self._pools.values():
            pool.release()

    def margins(self, x, value, corners):
        """By how much the phases of impacts lie behind those of corners, for each impact and corner, in (-1/2, 1/2]."""
        if not corners.size:
            return []
        phase = self._impact_times(x, value)[:, None] * self.n_periods - corners
        return (phase - np.round(phase)).reshape(-1).tolist()

    def _impact_times(self, x, value):
        """When the impacts of the section from x are, as parts of it."""
        run = self._at(x[None], [value], 0)
        run.advance(1)
        count = int(run.notes[0, IMPACTS])
        run.restart(x[None], run.h * run.rows, [(self._words, [value])] if self._is_plain else ())
        run.record(count, at=AT_IMPACTS)
        run.advance(1)
        result = (run.recorded(0)[0] - self.system["t"]) / (self.period(value) * self.n_periods)
        run.record(0)
        return result


def _returned(run, maps):
    notes = run.notes
    return Returned(
        run.states(), maps, run.status.copy(), *(notes[:, k].copy() for k in (IMPACTS, EVENTS, SLOWEST, LOG_DET, TOGETHER, UNTREATED))
    )


def _period_of(owner, period):
    """A function of the parameter that gives the period."""
    if callable(period):
        return lambda value: _checks.number(owner, "period(value)", period(value), above=0.0)
    number = _checks.number(owner, "period", period, above=0.0)
    return lambda value: number


def difference(ends, states, modulo):
    """``ends - states`` (members, n), the nearest one of coordinates that are angles."""
    result = ends - states
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = np.where(modulo > 0, np.round(result / modulo), 0.0)
    return result - turns * modulo
