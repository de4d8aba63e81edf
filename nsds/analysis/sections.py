"""The map of a forced system from one section to the next, whose orbits are analysed, with its derivatives."""

from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.analysis.parameters import Parameter, label_of, state_of
from nsds.analysis.stepped import carried
from nsds.analysis.tangent import AT_IMPACTS, EVENTS, IMPACTS, LOG_DET, SLOWEST, TOGETHER, UNTREATED
from nsds.model.kinds import LAGRANGIAN, family
from nsds.model.records import model_of
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

    def __init__(self, owner, system, period, n_periods, scheme, names, h=None):
        self.owner, self.system, self.scheme, self.n_periods, self.names, self.h = owner, system, scheme, n_periods, names, h
        self.phases = "stick" if family(model_of(system)) == LAGRANGIAN else "sliding"  # what begins where the number of events changes
        self.period = _period_of(owner, period)
        self.parameters = [Parameter(owner, label_of(names), self.system, name) for name in names]
        self.values = np.array([parameter.of(self.system) for parameter in self.parameters])
        self._pools, self._words = {}, None
        self.x = state_of(self.system)
        self.n = self.x.size
        self.modulo = np.zeros(self.n)

    def _pool(self, members, n_columns, values):
        systems = np.repeat(self.system.reshape(1), members)
        for parameter, column in zip(self.parameters, np.transpose(values), strict=bool(self.parameters)):
            parameter.put(systems, column)
        keep = bool(self._words or not self.names)
        return carried(self.owner, systems, self._lengths(values), self.scheme, self.h, n_columns=n_columns, keep=keep)

    def _lengths(self, values):
        """Of sections, in time."""
        return [self.period(*each) * self.n_periods for each in values]

    def _at(self, states, values, n_columns):
        """A run from these states (members, n) at these values (members, k): a prepared one, where they are in the records alone."""
        if self._words is None:
            self._words = self._words_of_parameters()
        key = len(values), n_columns
        if key not in self._pools or len(self._words) < len(self.names):
            self._pools[key] = self._pool(*key, values)
        self._pools[key].restart(states, self._lengths(values), zip(self._words, np.transpose(values), strict=False))
        return self._pools[key]

    def _words_of_parameters(self):
        """Where in the records each parameter lies; [] where one changes what is prepared, too."""
        words = []
        for k in range(len(self.names)):
            changed = self.values.copy()
            changed[k] += max(1.0, abs(changed[k])) * 2.0**-10
            one, other = (self._pool(1, 0, [values]) for values in (self.values, changed))
            same = one.run.prepared.work.shape == other.run.prepared.work.shape
            if not (same and np.array_equal(one.run.prepared.work, other.run.prepared.work, equal_nan=True)):
                return []
            words.append(np.flatnonzero(one.run.mem[0] != other.run.mem[0]))
        return words

    def returns(self, states, values, *, derive=True):
        """Ends of sections that start from states (members, n) at values (members,) of the parameter, as `Returned`."""
        run = self._at(np.asarray(states, float), np.asarray(values, float), None if derive else 0)
        with on_one_core():  # a few members: to wake a thread takes longer than they do
            run.advance(1)
        return _returned(run, run.columns[:, : self.n, : self.n].copy())  # the sources of a circuit, which time gives, come behind

    def with_slopes(self, x, values, delta):
        """What the section returns from x, and the derivative (n,) of its end by its one parameter, from differences of this half width.

        Near a grazing there are other events on one side: differences are then shorter, and at last from the other side alone.
        """
        for _ in range(_SHORTER):
            returned = self.returns(np.array([x, x, x]), [values, values + delta, values - delta])
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

    def margins(self, x, values, corners):
        """By how much the phases of impacts lie behind those of corners, for each impact and corner, in (-1/2, 1/2]."""
        if not corners.size:
            return []
        phase = self._impact_times(x, values)[:, None] * self.n_periods - corners
        return (phase - np.round(phase)).reshape(-1).tolist()

    def _impact_times(self, x, values):
        """When the impacts of the section from x are, as parts of it."""
        start, given = x[None], np.array([values])
        run = self._at(start, given, 0)
        run.advance(1)
        count = int(run.notes[0, IMPACTS])
        run = self._at(start, given, 0)
        run.record(count, at=AT_IMPACTS)
        run.advance(1)
        result = (run.recorded(0)[0] - self.system["t"]) / self._lengths(given)[0]
        run.record(0)
        return result


def _returned(run, maps):
    notes = run.notes
    return Returned(
        run.states(), maps, run.status.copy(), *(notes[:, k].copy() for k in (IMPACTS, EVENTS, SLOWEST, LOG_DET, TOGETHER, UNTREATED))
    )


def _period_of(owner, period):
    """A function of the parameters that gives the period."""
    if callable(period):
        return lambda *values: _checks.number(owner, "period(value)", period(*values), above=0.0)
    number = _checks.number(owner, "period", period, above=0.0)
    return lambda *_: number


def difference(ends, states, modulo):
    """``ends - states`` (members, n), the nearest one of coordinates that are angles."""
    result = ends - states
    if not np.any(modulo):
        return result
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = np.where(modulo > 0, np.round(result / modulo), 0.0)
    return result - turns * modulo
