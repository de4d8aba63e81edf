"""Runs with tangent maps: a system, or an ensemble, that is marched event by event with the derivatives of its state."""

import numpy as np

from nsds import _checks
from nsds._jit.cache import fingerprint
from nsds.analysis import affine, mechanics, switched
from nsds.analysis.parameters import state_words
from nsds.analysis.tangent import (
    AT_CROSSINGS,
    AT_IMPACTS,
    AT_TIMES,
    CROSSINGS,
    DONE,
    IMPACTS,
    N_NOTES,
    POINTS,
    SLOWEST,
    STOPPED,
    Changes,
    Members,
    Plan,
    Scratch,
    Tangent,
    address_of_evaluate,
    march_of,
    scratch_size,
)
from nsds.model.records import memory
from nsds.schemes.event_driven import filippov, first_order, lagrangian
from nsds.schemes.event_driven.scheme import event_driven
from nsds.schemes.run.interrupts import Interrupts
from nsds.schemes.run.preparation import key_of, prepare_run, put_back, run_from
from nsds.schemes.run.simulation import shares

ROWS = 128  # of a period of a motion that is not linear
_FAMILIES = {lagrangian: mechanics, first_order: affine, filippov: switched}


class Carried:
    """A run of an ensemble over sections, one period after the other, with its tangent map where it has columns.

    ``columns`` (members, n, columns), ``notes`` and ``growth`` as in `nsds.analysis.tangent`. One that is to be kept takes
    what another has prepared, and leaves it to the next with `release`. With a number of sections their maps are kept
    apart: ``maps`` (members, sections, n, columns).
    """

    def __init__(self, owner, system, period, scheme=None, *, n_columns=None, orthonormal=False, parameters=(), rows=None, keep=False,
                 sections=0):  # fmt: skip
        scheme = event_driven() if scheme is None else scheme
        if getattr(scheme, "dtype", None) is None or scheme.dtype.names is None or scheme["scheme"].item() != b"event_driven":
            raise ValueError(f"{owner}: scheme must be nsds.event_driven(...), got {_checks.shortened(scheme)}")
        periods = np.broadcast_to(np.asarray(period, float), np.size(system)).astype(float)
        shortest, self._keep = float(periods.min()), keep
        run = self._begin(owner, system, shortest, scheme)
        self.owner, self.family, flow, self.is_linear = owner, *_treated(owner, run.prepared)
        n = int(flow["n"][0])
        own = int(flow["n_own"][0]) if self.family is affine else n
        members, total = run.records.size, n + len(parameters)
        width = total if n_columns is None or parameters else n_columns
        if width > 0 and scheme["hybrid"]:
            raise ValueError(f"{owner}: an interval that is stepped in time has no tangent map; use nsds.event_driven(hybrid=False)")
        if width > 0 and self.family is mechanics and run.prepared.tables.newton.plan["impact_law"][0]:
            raise ValueError(f"{owner}: impacts by the laws multiple_impact and poisson_impact have no tangent map; use nsds.newton_impact")
        self.rows = rows or (ROWS if width > 0 and (parameters or not self.is_linear) else 1)
        if self.rows > 1:
            self.release()
            run = self._begin(owner, system, shortest / self.rows, scheme)
        self.run, self.h, p = run, periods / self.rows, run.prepared
        evaluate = address_of_evaluate(p, self.family) if width > 0 else 0
        self.plan = Plan(n, len(parameters), width, own, self.rows, int(orthonormal), AT_TIMES, n + 2, evaluate, 0, 0)
        self.changes = changes_of(owner, system, shortest / self.rows, scheme, run, parameters)
        self.columns = np.zeros((members, n, width))
        self.columns[:] = np.eye(n, width)
        self.growth, self.notes = np.zeros((members, width)), np.zeros((members, N_NOTES))
        self.notes[:, SLOWEST] = np.inf
        self.reached = np.zeros((members, 4), np.int64)
        scratch, self.maps = np.zeros((members, scratch_size(n, total))), np.zeros((members, sections, n, width))
        self._tangent = Tangent(
            self.columns.reshape(members, -1), self.growth, self.notes, self.reached, scratch, self.maps.reshape(members, -1)
        )
        self._memory = Scratch(run.mem, run.mem.view(np.int64), p.work, p.iwork)
        self._spare = [copy_of(self._memory) for _ in range(2)]
        self.points, self.skipped, self.varied = np.zeros((members, 0)), np.zeros(members), np.zeros((members, 0))
        self.n_done, self.words = 0, state_words(run.records)
        self._initial = copy_of(self._memory)

    def _begin(self, owner, system, h, scheme):
        self._key = key_of(system, h, scheme, None) if self._keep else None
        run, _, self._kept = run_from(owner, system, h, scheme, None, False, self._key)
        return run

    def release(self):
        """Leave what was prepared to other runs; this one is at its end."""
        if self._kept is not None:
            put_back(self._key, self._kept)

    def record(self, room, *, at=AT_TIMES, skipped=0, surface=None, varied=None):
        """Write down so many points from now on: at sections in time, at impacts, or crossings of a `Surface`, the first ones skipped.

        varied (members, k): the numbers that the function of the surface takes.
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
        """Begin anew at the time of the system, from states (members, n), with periods; change: (words, values) of the records."""
        for now, before in zip(self._memory, self._initial, strict=True):
            now[...] = before
        for words, values in change:
            self.run.mem[:, words] = np.reshape(values, (-1, 1))
        if states is not None:
            self.run.mem[:, self.words] = states
        if periods is not None:
            self.h = np.asarray(periods, float) / self.rows
        self.columns[:] = np.eye(*self.columns.shape[1:])
        self.growth[:], self.notes[:], self.reached[:], self.n_done = 0.0, 0.0, 0, 0
        self.notes[:, SLOWEST] = np.inf

    def advance(self, n_sections):
        """March on over so many sections; members whose run has failed stay where they are. Raises KeyboardInterrupt."""
        p, march = self.run.prepared, march_of(self.run.prepared, self.family)
        self.n_done += n_sections * self.plan.every
        members = Members(*self._memory, self.h, self.points, self.skipped, self.varied)

        def chunk(first, last):
            march(first, last, self.n_done, self.plan, members, p.tables, p.functions, self.run.solver, self.run.solver_options, p.options,
                  self._tangent, self.changes, *self._spare)  # fmt: skip

        with Interrupts() as interrupts, shares(self.run.records.size) as in_shares, interrupts.at_once():
            in_shares(chunk)

    def edition(self):
        """Fingerprint of the compiled code."""
        return fingerprint(march_of(self.run.prepared, self.family), {})

    @property
    def status(self):
        """Of each member the status that ended its run, or 0."""
        return self.reached[:, STOPPED]

    def states(self):
        """States of all members (members, n_own), as they are."""
        return self.run.mem[:, self.words].copy()


def _treated(owner, prepared):
    """(family, table of the flow, whether motions are linear) of what is prepared; refuses systems without a tangent map."""
    family, tables = _FAMILIES.get(prepared.stepper), prepared.tables
    if family is None:
        raise ValueError(f"{owner}: rigid bodies in space are not treated: state the system by nsds.lagrangian")
    flow = tables.flow.plan if family is affine else tables.flow
    if flow["is_controlled"][0]:
        raise ValueError(f"{owner}: systems with nsds.sampled_control are not treated")
    return family, flow, family is affine or (family is mechanics and bool(flow["is_linear"][0]))


def copy_of(scratch):
    """A copy of the memory of all members."""
    mem = scratch.mem.copy()
    return Scratch(mem, mem.view(np.int64), scratch.work.copy(), scratch.iwork.copy())


def changes_of(owner, system, h, scheme, run, parameters):
    """What a change of each parameter does to the memory: words that differ once the changed systems are prepared."""
    deltas, lists = [], {"mem": [], "work": []}
    for parameter in parameters:
        value = parameter.of(run.records[0])
        delta = 2.0**-17 * max(1.0, abs(value))
        middle = parameter.beside(run.records[0], delta)
        deltas.append(delta)
        for sign in (-1.0, 1.0):
            changed = parameter.put(np.array(system).reshape(-1), middle + sign * delta)
            other, _ = prepare_run(owner, changed, h, scheme, None, False)
            for name, ours, theirs in (("mem", memory(run.records), other.mem), ("work", run.prepared.work, other.prepared.work)):
                at = np.flatnonzero(~((ours[0] == theirs[0]) | (np.isnan(ours[0]) & np.isnan(theirs[0]))))
                lists[name].append((at, theirs[0, at]))
    pieces = []
    for found in lists.values():
        pieces.append(np.cumsum([0, *(at.size for at, _ in found)]))
        pieces.append(np.concatenate([np.zeros(0, np.int64), *(at for at, _ in found)]))
        pieces.append(np.concatenate([np.zeros(0), *(values for _, values in found)]))
    return Changes(np.array(deltas), *pieces)
