"""Basins of attraction: what each initial state of a grid settles to."""

import math
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.analysis.carried import Carried
from nsds.analysis.maps import IteratedMap, Iterates, place_in_map
from nsds.analysis.parameters import Parameter, one_record
from nsds.analysis.sections import difference
from nsds.schemes.run.pieces import bar
from nsds.status import CONVERGED

UNDECIDED, ENDED, NOT_RUN = -1, -2, -3  # labels that are no attractors
_MEMBERS = 2**15  # that run at once
_MOST = 10_000  # attractors


class Basins(NamedTuple):
    """What `nsds.basins` gives."""

    labels: np.ndarray
    attractors: np.ndarray


def basins(system, *, grid, period=None, transient=300, keep=16, tol=1e-4, scheme=None, progress=None):
    """What each initial state of a grid settles to: labels, and a table of the periodic attractors.

    Parameters
    ----------
    system : numpy.ndarray, or map from `nsds.iterated_map`
        A record, or a map; what is not on the grid starts as it says.
    grid : dict of str to array_like
        Two initial values, or more, and those that each takes: ``{"mass.q[0]": values, "mass.v[0]": values}``, of maps ``"x[0]"``.
    period : float
        Of what drives the system. Maps have none.
    transient, keep : int
        Periods before the motion is judged, and those in which it has to repeat twice.
    tol : float
        States that are no further apart, relative to 1 or their size, are the same.
    scheme, progress
        See `nsds.sweep`.

    Returns
    -------
    Basins
        ``labels``, of the shape of the grid: numbers of attractors; -1 where the motion does not repeat (it is chaotic, or has not
        settled), -2 where it drifts to infinity or its run ends early, -3 where Ctrl-C left it undone. ``attractors``, a structured array:
        label, n_periods, x (keep // 2, n), the points of the orbit, NaN behind them, and fraction, of the grid.

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
    """
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
    runs = _runs_of(owner, system, list(grid), period, scheme)
    starts = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    labels, found = np.full(len(starts), NOT_RUN), []
    with bar(progress, len(starts)) as shown:
        try:
            for first in range(0, len(starts), _MEMBERS):
                part = slice(first, first + _MEMBERS)
                labels[part] = _labelled(*runs(starts[part], transient, keep), tol, found)
                shown.update(len(starts[part]))
        except KeyboardInterrupt:
            if not (labels != NOT_RUN).any():
                raise
    return Basins(labels.reshape([axis.size for axis in axes]), _table(found, labels, keep))


def _runs_of(owner, system, names, period, scheme):
    """A function of (starts, transient, keep) that gives (points (members, keep, n), whether each run went on, modulo)."""
    if isinstance(system, IteratedMap):
        if period is not None or scheme is not None:
            raise ValueError(f"{owner}: a map has neither period nor scheme: leave them out")
        places = [place_in_map(owner, "grid", system, name, "x") for name in names]

        def of_map(starts, transient, keep):
            states = np.repeat(system.x[None], len(starts), axis=0)
            states[:, places] = starts
            run = Iterates(system, states, np.repeat(system.p[None], len(starts), axis=0), n_points=keep)
            run.advance(transient + keep, transient)
            return run.points, run.status == CONVERGED, system.turns

        return of_map
    record = one_record(owner, system)
    if period is None:
        raise ValueError(f"{owner}: period is missing: that of what drives the system")
    period = _checks.number(owner, "period", period, above=0.0)
    parameters = [Parameter(owner, "grid", record, name) for name in names]

    def of_system(starts, transient, keep):
        systems = np.repeat(record.reshape(1), len(starts))
        for parameter, column in zip(parameters, starts.T, strict=True):
            parameter.put(systems, column)
        run = Carried(owner, systems, period, scheme, n_columns=0)
        run.advance(transient)
        run.record(keep)
        run.advance(keep)
        points = run.points.reshape(len(starts), keep, -1)[:, :, 2 : 2 + run.plan.n_own]
        return points, run.status == CONVERGED, None

    return of_system


def _labelled(points, goes_on, modulo, tol, found):
    """Labels of members with these points; attractors that are new are added to those found, (n_periods, points)."""
    members, keep, _ = points.shape
    labels = np.where(goes_on & np.isfinite(points).all(axis=(1, 2)), UNDECIDED, ENDED)
    periods = np.zeros(members, int)
    for k in range(keep // 2, 0, -1):
        off = abs(difference(points[:, k:], points[:, :-k], modulo)) / np.maximum(1.0, abs(points[:, k:]))
        periods[(off[:, -max(k, keep // 4) :] <= tol).all(axis=(1, 2))] = k
    open_ones = np.flatnonzero((labels == UNDECIDED) & (periods > 0))
    label = 0
    while open_ones.size and label < _MOST:
        if label == len(found):
            one = open_ones[0]
            found.append((periods[one], points[one, keep - periods[one] :].copy()))
        k, orbit = found[label]
        last = points[open_ones, -1][:, None]
        near = (abs(difference(last, orbit[None], modulo)) <= 10.0 * tol * np.maximum(1.0, abs(orbit))).all(axis=2).any(axis=1)
        near &= periods[open_ones] == k
        labels[open_ones[near]] = label
        open_ones, label = open_ones[~near], label + 1
    return labels


def _table(found, labels, keep):
    n = found[0][1].shape[1] if found else 0
    rows = np.zeros(len(found), [("label", "<i8"), ("n_periods", "<i8"), ("x", "<f8", (keep // 2, n)), ("fraction", "<f8")])
    rows["x"] = math.nan
    for label, (k, orbit) in enumerate(found):
        rows[label]["label"], rows[label]["n_periods"], rows[label]["fraction"] = label, k, (labels == label).mean()
        rows[label]["x"][:k] = orbit
    return rows
