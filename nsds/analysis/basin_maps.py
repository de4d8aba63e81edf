"""Basins of attraction: the attractor reached from each initial state of a grid."""

import math
from contextlib import closing
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.analysis.maps import IteratedMap, Iterates, place_in_map, section_of
from nsds.analysis.orbits import multipliers_of
from nsds.analysis.parameters import Parameter, one_record
from nsds.analysis.sections import difference
from nsds.analysis.tangent_run import require_long
from nsds.analysis.tangent_steps import carried
from nsds.schemes.run.progress import Progress
from nsds.status import CONVERGED

UNDECIDED, ENDED, NOT_RUN = -1, -2, -3  # labels of starts without an attractor
_MEMBERS = 2**15  # members that run at once
_MOST = 10_000  # attractors at most
_LONGER = 4  # multiple of the transient for which the first motion to an attractor is run again, so that it has settled


class Basins(NamedTuple):
    """Result of `nsds.basins`."""

    labels: np.ndarray
    attractors: np.ndarray


def basins(system, *, grid, period=None, transient=300, keep=16, tol=1e-4, scheme=None, h=None, progress=None):
    """Attractors reached from each initial state of a grid: labels, and a table of the periodic attractors.

    Parameters
    ----------
    system : numpy.ndarray, or map from `nsds.iterated_map`
        A record, or a map; variables that are not on the grid start at its values.
    grid : dict of str to array_like
        Two or more initial values, with the values of each: ``{"mass.q[0]": values, "mass.v[0]": values}``, of maps ``"x[0]"``.
    period : float
        Period of the excitation of the system. Maps have none.
    transient, keep : int
        Periods before the motion is judged, and those in which it has to repeat twice.
    tol : float
        States that are no further apart, relative to 1 or their size, are the same.
    scheme : numpy.ndarray, optional
        ``nsds.event_driven(...)`` with other options than its defaults; with h a time-stepping scheme, by default that of `nsds.simulate`.
    h : float, optional
        Step of a time-stepping scheme, of which a period has a whole number. Leave it out for event-driven motions.
    progress : bool, optional
        Progress bar; by default on a terminal.

    Returns
    -------
    Basins
        ``labels``, of the shape of the grid: numbers of attractors; -1 where the motion does not repeat (it is chaotic, or has not
        settled), -2 where it drifts to infinity or its run ends early, -3 where Ctrl-C left it undone. ``attractors``, a structured array:
        label, n_periods, x (keep // 2, n), the points of the orbit, NaN behind them; fraction, of the grid, and error, of one standard
        deviation ``(fraction (1 - fraction) / starts)^(1/2)``, were the starts random; multipliers (n,) of the orbit, the largest first:
        one outside the unit circle tells that a start lies on an orbit that attracts nothing; NaN where there is no tangent map (see
        `nsds.floquet`).

    Raises
    ------
    ValueError, TypeError
        Arguments that do not fit; names that are no numbers of the system.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> def cubic(x, p, out):
    ...     out[0] = 1.5 * x[0] - 0.5 * x[0] ** 3
    >>> found = nsds.basins(nsds.iterated_map(cubic, x=[0.0]), grid={"x[0]": np.linspace(-1.6, 1.5, 32)})
    >>> found.attractors["x"][:, 0, 0].round(6).tolist(), found.attractors["fraction"].tolist()
    ([-1.0, 0.0, 1.0], [0.5, 0.03125, 0.46875])
    >>> found.attractors["multipliers"].real.ravel().round(6).tolist()  # the start at 0 stays there
    [0.0, 1.5, 0.0]
    """
    # 1. arguments
    owner = "basins"
    transient, keep = _checks.integer(owner, "transient", transient, low=0), _checks.integer(owner, "keep", keep, low=2)
    tol = _checks.number(owner, "tol", tol, above=0.0)
    if progress is not None:
        progress = _checks.flag(owner, "progress", progress)
    if not isinstance(grid, dict) or not grid:
        raise TypeError(f"{owner}: grid must be a dict of initial values to what they take, got {_checks.shortened(grid)}")
    axes = [_checks.array(owner, f"grid[{name!r}]", values, n_dims=1) for name, values in grid.items()]
    if any(axis.size == 0 for axis in axes):
        raise ValueError(f"{owner}: grid must have at least one value on each axis")
    # 2. starts, in the order of the grid
    of = _OfMap if isinstance(system, IteratedMap) else _OfSystem
    runs = of(owner, system, list(grid), period, scheme, h)
    starts = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    labels, found = np.full(len(starts), NOT_RUN), []
    # 3. in batches; after Ctrl-C the batches that are finished count
    with Progress(progress, len(starts)) as shown:
        try:
            for first in range(0, len(starts), _MEMBERS):
                part = slice(first, first + _MEMBERS)
                labels[part] = _labelled(runs, starts[part], transient, keep, tol, found)
                shown.update(len(starts[part]))
        except KeyboardInterrupt:
            if not (labels != NOT_RUN).any():
                raise
    return Basins(labels.reshape([axis.size for axis in axes]), _table(found, labels, keep))


class _OfMap:
    """Runs of a map from starts (members, axes)."""

    def __init__(self, owner, system, names, period, scheme, h):
        if period is not None or scheme is not None or h is not None:
            raise ValueError(f"{owner}: a map has neither period nor scheme nor step: leave them out")
        self.owner, self.system, self.modulo = owner, system, system.turns
        self.places = [place_in_map(owner, "grid", system, name, "x") for name in names]

    def points(self, starts, transient, keep):
        """(points (members, keep, n), whether each run went on)."""
        states = np.repeat(self.system.x[None], len(starts), axis=0)
        states[:, self.places] = starts
        run = Iterates(self.system, states, np.repeat(self.system.p[None], len(starts), axis=0), n_points=keep)
        run.advance(transient + keep, transient)
        return run.points, run.status == CONVERGED

    def multipliers(self, _start, x, n_periods):
        """Multipliers of the orbit of n_periods through x."""
        section = section_of(self.owner, self.system, None, n_periods, None, [])
        return multipliers_of(section.returns(x[None], [section.values]).maps[0])


class _OfSystem:
    """Runs of a system, with the interface of `_OfMap`."""

    modulo = None

    def __init__(self, owner, system, names, period, scheme, h):
        self.owner, self.record, self.scheme, self.h = owner, one_record(owner, system), scheme, h
        if period is None:
            raise ValueError(f"{owner}: period is missing: that of what drives the system")
        self.period = _checks.number(owner, "period", period, above=0.0)
        require_long(owner, self.period)
        self.parameters = [Parameter(owner, "grid", self.record, name) for name in names]

    def _systems(self, starts):
        systems = np.repeat(self.record.reshape(1), len(starts))
        for parameter, column in zip(self.parameters, starts.T, strict=True):
            parameter.put(systems, column)
        return systems

    def points(self, starts, transient, keep):
        """See `_OfMap.points`."""
        run = carried(self.owner, self._systems(starts), self.period, self.scheme, self.h, n_columns=0)
        self.without_map = run.without_map
        run.advance(transient)
        run.record(keep)
        run.advance(keep)
        points = run.points.reshape(len(starts), keep, -1)[:, :, 2 : 2 + run.plan.n_own]
        return points, run.status == CONVERGED

    def multipliers(self, start, x, n_periods):
        """See `_OfMap.multipliers`."""
        if self.without_map:
            return np.full(x.size, math.nan)
        (system,) = self._systems(start[None])
        with closing(section_of(self.owner, system, self.period, n_periods, self.scheme, [], self.h)) as section:
            return multipliers_of(section.returns(x[None], [section.values]).maps[0])


class _Attractor(NamedTuple):
    """Points of an orbit (n_periods, n) and its multipliers."""

    points: np.ndarray
    multipliers: np.ndarray


def _labelled(runs, starts, transient, keep, tol, found):
    """Labels of members with these starts; new attractors are appended to ``found``."""
    # 1. run, and detect the period of each motion
    points, goes_on = runs.points(starts, transient, keep)
    labels = np.where(goes_on & np.isfinite(points).all(axis=(1, 2)), UNDECIDED, ENDED)
    periods = _periods(points, runs.modulo, tol)
    # 2. periodic motions: compare with the known attractors one after the other; the first that fits none is a candidate for a new one
    open_ones = np.flatnonzero((labels == UNDECIDED) & (periods > 0))
    label = 0
    while open_ones.size and label < _MOST:
        if label == len(found):
            # 3. a longer run decides whether the candidate is new: a slow transient looks like an orbit of its own
            first, orbit = open_ones[0], _settled(runs, starts[open_ones[0]], transient, keep, tol)
            known = [k for k, one in enumerate(found) if orbit is not None and _is_near(orbit[-1:], one.points, runs.modulo, tol)[0]]
            if orbit is None or known:
                labels[first], open_ones = known[0] if known else UNDECIDED, open_ones[1:]
                continue
            found.append(_Attractor(orbit, runs.multipliers(starts[first], orbit[0], len(orbit))))
            labels[first], open_ones = label, open_ones[1:]
        # 4. all members near this attractor
        near = _is_near(points[open_ones, -1], found[label].points, runs.modulo, tol)
        labels[open_ones[near]] = label
        open_ones, label = open_ones[~near], label + 1
    return labels


def _periods(points, modulo, tol):
    """Periods after which points (members, keep, n) repeat; 0 for motions that do not."""
    members, keep, _ = points.shape
    periods = np.zeros(members, int)
    # from the longest down, so that the shortest period remains; the last points only, which have settled best
    for k in range(keep // 2, 0, -1):
        off = abs(difference(points[:, k:], points[:, :-k], modulo)) / np.maximum(1.0, abs(points[:, k:]))
        periods[(off[:, -max(k, keep // 4) :] <= tol).all(axis=(1, 2))] = k
    return periods


def _settled(runs, start, transient, keep, tol):
    """Points (n_periods, n) of the orbit reached by a longer run from a start; a motion that still settles seems to have others.

    None if it does not repeat.
    """
    points, goes_on = runs.points(start[None], _LONGER * transient, keep)
    (k,) = _periods(points, runs.modulo, tol)
    return points[0, keep - k :].copy() if k and goes_on[0] and np.isfinite(points).all() else None


def _is_near(states, orbit, modulo, tol):
    """Whether each of some states lies at a point of an orbit."""
    off = abs(difference(states[:, None], orbit[None], modulo))
    return (off <= 10.0 * tol * np.maximum(1.0, abs(orbit))).all(axis=2).any(axis=1)


def _table(found, labels, keep):
    n = found[0].multipliers.size if found else 0
    rows = np.zeros(
        len(found),
        [("label", "<i8"), ("n_periods", "<i8"), ("x", "<f8", (keep // 2, n)), ("fraction", "<f8"), ("error", "<f8"),
         ("multipliers", "<c16", (n,))],
    )  # fmt: skip
    rows["x"] = math.nan
    for label, (row, one) in enumerate(zip(rows, found, strict=True)):
        row["label"], row["n_periods"], row["multipliers"] = label, len(one.points), one.multipliers
        row["fraction"] = share = (labels == label).mean()
        row["error"] = math.sqrt(share * (1.0 - share) / labels.size)
        row["x"][: len(one.points)] = one.points
    return rows
