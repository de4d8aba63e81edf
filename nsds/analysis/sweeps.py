"""Bifurcation diagrams and charts: points of a section over one or two parameters, with the period after which they repeat."""

import math

import numpy as np

from nsds import _checks
from nsds.analysis.maps import IteratedMap, Iterates, place_in_map
from nsds.analysis.parameters import Parameter, one_record
from nsds.analysis.sections import difference
from nsds.analysis.surfaces import Surface
from nsds.analysis.tangent import AT_CROSSINGS, AT_IMPACTS, AT_TIMES
from nsds.analysis.tangent_run import Carried
from nsds.model.function_checks import function_names
from nsds.model.functions import functions_named, offered
from nsds.results.description import result_dtype
from nsds.schemes.run.jobs import Piece, finish_all, names_of, places_of, store_of
from nsds.status import CONVERGED, NOT_COMPUTED, NOT_CROSSED

_PIECES = 64  # least number of pieces of a diagram with so many values
_ROWS = 32  # rows of a period, between which crossings are located
_AT = {"stroboscopic": AT_TIMES, "impact": AT_IMPACTS}


def sweep(system, *, vary, period=None, record="stroboscopic", crossing=1, transient=200, keep=32, direction=(1, -1), tol=1e-6,
          scheme=None, store=None, client=None, mapped=False, progress=None):  # fmt: skip
    """Attractors of a forced system, or a map, over a range of one parameter or of two.

    Parameters
    ----------
    system : numpy.ndarray, or map from `nsds.iterated_map`
        A record.
    vary : dict of str to array_like
        One parameter or two, ``{"part.field[i]": values}`` (of maps ``"p[i]"``), with the values that each takes.
    period : float, or function of the parameters
        Period of the excitation: a number, or a function ``period(value)``, of two parameters ``period(first, second)``. Maps have none.
        For an autonomous system a time in which it crosses the section at least once: a run lasts as many periods as there are
        points, with those that are not recorded.
    record : str or function ``record(t, x, p, out)``
        Points are states once a period, at the system's own phase, "stroboscopic"; or "impact", at impacts, before and after each; or where
        a function is zero, located to rounding. A plain Python function, which is compiled: of the state x (n,), all coordinates and then
        all velocities, or all states, and p, the values of what is varied, it writes a number into ``out`` (1,). What jumps over zero at
        an impact does not cross it; of crossings in pairs both may be missed that are within a 32nd of a period.
    crossing : 1, -1 or 0
        Whether such a function has to rise where it is zero, or to fall, or either.
    transient, keep : int
        Periods (impacts, crossings) that are not recorded, and points that are.
    direction : sequence of 1 and -1, or None
        One parameter: the values are taken one after the other, upwards (1) or downwards (-1) as they are listed, each run starting from
        the last state of the one before, so that coexisting branches are followed. None: each value starts from the
        state of the system, all at once; so do the values of two parameters.
    tol : float
        Points no further apart, relative to 1 or their size, are the same when the period is determined.
    scheme : numpy.ndarray, optional
        ``nsds.event_driven(...)`` with other options than its defaults.
    store : str or Path, optional
        Folder for the results, piece by piece. A piece is a file with checksums, named by all that decides its content: where the
        same sweep is called again, finished pieces are read and the others computed.
    client : distributed.Client, optional
        Pieces are computed on the workers of this cluster, which see ``store`` under the same path (extra ``distributed``), with the bits
        that one process gives. Workers of one thread each serve best, as each piece runs on one core. Values that are taken one after the
        other cannot be shared out: pass direction=None. A worker that dies is replaced three times a piece; where the scheduler dies, call
        `sweep` again.
    mapped : bool
        The result is an array over a file in the store, of which only the parts in use are in memory: `numpy.memmap`.
    progress : bool, optional
        Progress bar; by default on a terminal.

    Returns
    -------
    numpy.ndarray
        Structured array (directions, values), in the order in which the values are given; without directions (values,), of two
        parameters (values, values). Fields: parameters (1 or 2,); t and x (keep, n), points as they come, NaN where there are none;
        x_after, at impacts; n_points; n_periods, after which the points repeat, 0 where they do not within half of those that are kept
        (of impacts and crossings: their number); n_impacts, in these periods, in all kept ones where they do not repeat; status, that of
        `nsds.simulate` where the run ended early, NOT_CROSSED where there are no points, NOT_COMPUTED after Ctrl-C.

    Raises
    ------
    ValueError, TypeError
        Arguments that do not fit; parameters that name no field; impacts, or crossings, that are to be recorded where there are none.
    OSError
        The store cannot be written.
    ImportError
        A client without the package ``distributed``.

    See Also
    --------
    nsds.plotting.diagram : its picture.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> def logistic(x, p, out):
    ...     out[0] = p[0] * x[0] * (1 - x[0])
    >>> rows = nsds.sweep(nsds.iterated_map(logistic, x=[0.6], p=[2.5]), vary={"p[0]": [2.9, 3.2, 3.5, 3.9]})
    >>> rows["n_periods"].tolist()
    [[1, 2, 4, 0], [1, 2, 4, 0]]
    """
    # 1. arguments
    owner = "sweep"
    transient, keep = _checks.integer(owner, "transient", transient, low=0), _checks.integer(owner, "keep", keep, low=1)
    crossing = _checks.integer(owner, "crossing", crossing, low=-1, high=1)
    surface = Surface(owner, record, crossing) if callable(record) else None
    moment = AT_CROSSINGS if surface is not None else _AT[_checks.choice(owner, "record", record, tuple(_AT))]
    if surface is None and crossing != 1:
        raise ValueError(f"{owner}: crossing goes with a function record(t, x, p, out), got record={_checks.shortened(record)}")
    tol = _checks.number(owner, "tol", tol, above=0.0)
    if progress is not None:
        progress = _checks.flag(owner, "progress", progress)
    # 2. parameters, directions, store
    names, values = _varied(owner, vary)
    signs = _signs(owner, direction) if len(names) == 1 else None
    kept = store_of(owner, store, client, mapped)
    settings = transient, keep, moment, tol
    # 3. runs of a map or of a system
    if isinstance(system, IteratedMap):
        if period is not None or scheme is not None or moment != AT_TIMES:
            raise ValueError(f"{owner}: a map has neither period nor scheme nor impacts nor sections: leave them out")
        runs = _OfMap(owner, system, names, settings)
    else:
        system = one_record(owner, system)
        if period is None:
            raise ValueError(f"{owner}: period is missing: that of what drives the system, a number or a function of the parameter")
        runs = _OfSystem(owner, system, names, settings, scheme, period, surface)
    # 4. grid of values, divided into pieces: in sequence along a direction, or independent
    grid = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1)
    grid = grid if signs is None else np.stack([grid] * len(signs))
    shape, points, blank = grid.shape[:-1], grid.reshape(-1, len(names)), runs.table((1,))
    places = _places(values[0].size, signs) if signs else places_of(len(points), runs.bytes)
    pieces = [Piece(points[place], runs.periods(points[place]), bool(signs) and k > 0) for k, place in enumerate(places)]
    files = names_of(runs, pieces, kept)
    # 5. result, filled as pieces finish; after Ctrl-C with those that did
    rows = kept.array(files, shape, blank.dtype) if mapped else np.zeros(shape, blank.dtype)
    rows[...] = blank
    rows["parameters"], rows["status"], at = grid, NOT_COMPUTED, rows.reshape(-1)
    try:
        for k, found in finish_all(runs, pieces, files, kept, client, progress):
            at[places[k]] = found
    except KeyboardInterrupt:
        if not (rows["status"] != NOT_COMPUTED).any():
            raise
    if (rows["status"] == NOT_CROSSED).all():
        what = "'impact', and there is none" if surface is None else f"{record.__name__}, which is not crossed"
        raise ValueError(f"{owner}: record is {what} at any value: look at the system, or record='stroboscopic'")
    return rows


def _varied(owner, vary):
    if not isinstance(vary, dict) or len(vary) not in (1, 2):
        raise TypeError(f"{owner}: vary must be a dict of one parameter or two to values, got {_checks.shortened(vary)}")
    values = [_checks.array(owner, f"vary[{name!r}]", given, n_dims=1) for name, given in vary.items()]
    for name, given in zip(vary, values, strict=True):
        if given.size == 0:
            raise ValueError(f"{owner}: vary[{name!r}] must have at least one value")
    return list(vary), values


def _signs(owner, direction):
    if direction is None:
        return None
    given = [direction] if isinstance(direction, (int, np.integer)) else list(direction) if isinstance(direction, (list, tuple)) else [0]
    if not given or any(isinstance(sign, bool) or sign not in (1, -1) for sign in given):
        raise ValueError(f"{owner}: direction must be None, or of 1 and -1, got {_checks.shortened(direction)}")
    return [int(sign) for sign in given]


def _places(n_values, signs):
    """Indices of the rows of each piece (steps, directions): values one after the other, in all directions at once."""
    order = np.stack([np.arange(n_values)[::sign] + d * n_values for d, sign in enumerate(signs)], axis=1)
    steps = max(1, n_values // _PIECES)
    return [order[k : k + steps] for k in range(0, n_values, steps)]


class _Runs:
    """Runs at other values of parameters: common part of systems and maps."""

    def compute(self, piece, states):
        """(rows (steps, members), last states) of a piece that starts from these states (members, n), None: from the initial state."""
        rows = self.table(piece.periods.shape)
        states = np.repeat(self.start[None], piece.values.shape[1], axis=0) if states is None else states
        # each value starts from the last state of the one before, unless that run has failed
        for row, values, periods in zip(rows, piece.values, piece.periods, strict=True):
            row["parameters"] = values
            ends = self.run(states, values, periods, row)
            kept = np.isfinite(ends).all(axis=1) & np.isin(row["status"], (CONVERGED, NOT_CROSSED))
            states = np.where(kept[:, None], ends, self.start)
        return rows, states


class _OfSystem(_Runs):
    """Runs of a system."""

    def __init__(self, owner, system, names, settings, scheme, period, surface):
        self.owner, self.system, self.names, self.settings, self.scheme, self.surface = owner, system, names, settings, scheme, surface
        self.parameters = [Parameter(owner, "vary", self.system, name) for name in names]
        self.transient, self.keep, self.at, self.tol = settings
        self.period = period if callable(period) else lambda *_: period
        values = np.array([[parameter.of(self.system) for parameter in self.parameters]])
        run = self._prepared(values, self.periods(values))
        self.start, self.n, self.modulo, self.edition = self._ends(run)[0], run.plan.n_own, None, run.edition
        if surface is not None:
            surface.check(float(system["t"]), self.start[: self.n], values[0])
        self.bytes = 3 * (run.run.mem.nbytes + run.run.prepared.work.nbytes + run.run.prepared.iwork.nbytes) + 16 * self.keep * self.n

    def __reduce__(self):
        """Arguments for other processes: with its functions, and the period at its own values, as a function cannot always be pickled."""
        period = float(self.periods(np.array([[parameter.of(self.system) for parameter in self.parameters]]))[0])
        arguments = self.owner, self.system, self.names, self.settings, self.scheme, period, self.surface
        return _restored, (functions_named(function_names(self.system.reshape(1))), arguments)

    def identity(self):
        """Bytes that determine the results, except values and periods."""
        scheme = b"" if self.scheme is None else self.scheme.tobytes()
        surface = b"" if self.surface is None else self.surface.identity()
        return repr((self.system.dtype, self.names, self.settings, self.edition())).encode() + self.system.tobytes() + scheme + surface

    def table(self, shape):
        """Rows of the result."""
        return _table(shape, len(self.names), self.keep, self.n, self.at == AT_IMPACTS)

    def periods(self, values):
        """Periods (...) at values (..., parameters)."""
        rows = values.reshape(-1, values.shape[-1]).tolist()
        periods = [_checks.number(self.owner, "period", self.period(*row), above=0.0) for row in rows]
        return np.reshape(periods, values.shape[:-1])

    def _prepared(self, values, periods):
        systems = np.repeat(self.system.reshape(1), len(values))
        for parameter, column in zip(self.parameters, values.T, strict=True):
            parameter.put(systems, column)
        rows = None if self.surface is None else _ROWS
        return Carried(self.owner, systems, periods, self.scheme, n_columns=0, rows=rows)

    def _ends(self, run):
        """Present states of a run (members, n), and behind them the branches of laws with hysteresis, from which the next ones go on."""
        return np.hstack([run.states(), run.branches()])

    def run(self, states, values, periods, rows):
        """Runs from `_ends` (members, entries) at values (members, parameters); fills the rows and returns the last ones."""
        # 1. transient, then the points: in time, or at impacts and crossings
        run = self._prepared(values, periods)
        run.follow(states[:, self.n :])
        run.restart(states[:, : self.n])
        if self.at == AT_TIMES:
            run.advance(self.transient)
            run.record(self.keep)
            run.advance(self.keep)
        else:
            run.record(self.keep, at=self.at, skipped=self.transient, surface=self.surface, varied=values)
            run.advance(self.transient + self.keep)
        rows["status"] = run.status
        # 2. rows; a run without points has not crossed the section
        for m, row in enumerate(rows):
            t, impacts, x, x_after = run.recorded(m)
            if self.at == AT_IMPACTS:
                row["x_after"][: len(t)] = x_after
            _fill(row, t, x, impacts, self.at == AT_IMPACTS, self.tol, self.modulo)
            if not len(t) and row["status"] == CONVERGED:
                row["status"] = NOT_CROSSED
        return self._ends(run)


def _restored(functions, arguments):
    """Runs of a system received from another process."""
    offered("sweep", functions)
    return _OfSystem(*arguments)


class _OfMap(_Runs):
    """Runs of a map."""

    def __init__(self, owner, iterated, names, settings):
        self.iterated, self.places, self.settings = iterated, [place_in_map(owner, "vary", iterated, name) for name in names], settings
        self.transient, self.keep, _, self.tol = settings
        self.start, self.n, self.modulo = iterated.x, iterated.n, iterated.turns
        self.bytes = 8 * (self.n + 1) * (2 * self.keep + 10 * (self.n + 1))

    def identity(self):
        """See `_OfSystem.identity`."""
        return repr((self.places, self.settings)).encode() + self.iterated.identity()

    def table(self, shape):
        """Rows of the result."""
        return _table(shape, len(self.places), self.keep, self.n, False)

    def periods(self, values):
        """Ones: maps have no periods."""
        return np.ones(values.shape[:-1])

    def run(self, states, values, _periods, rows):
        """See `_OfSystem.run`."""
        p = np.repeat(self.iterated.p[None], len(states), axis=0)
        p[:, self.places] = values
        run = Iterates(self.iterated, states, p, n_points=self.keep)
        run.advance(self.transient + self.keep, self.transient)
        rows["status"] = run.status
        t = self.transient + 1.0 + np.arange(self.keep)
        for m, row in enumerate(rows):
            x = run.points[m, np.isfinite(run.points[m]).all(axis=1)]
            _fill(row, t[: len(x)], x, np.zeros(len(x)), False, self.tol, self.modulo)
        return run.x


def _table(shape, n_parameters, keep, n, at_impacts):
    fields = [("parameters", "<f8", (n_parameters,)), ("t", "<f8", (keep,)), ("x", "<f8", (keep, n))]
    fields += [("x_after", "<f8", (keep, n))] if at_impacts else []
    rows = np.zeros(shape, result_dtype([*fields, ("n_points", "<i8"), ("n_periods", "<i8"), ("n_impacts", "<i8"), ("status", "<i8")]))
    for name, *_ in fields[1:]:
        rows[name] = math.nan
    return rows


def _fill(row, t, x, impacts, at_impacts, tol, modulo):
    """Fills in the points of one run, and the number after which they repeat."""
    row["t"][: len(t)], row["x"][: len(t)], row["n_points"] = t, x, len(t)
    k = row["n_periods"] = _repeats(x, tol, modulo)
    last = len(t) - 1 - k if k else 0
    row["n_impacts"] = (k if k else len(t)) if at_impacts else impacts[-1] - impacts[last] if len(t) else 0


def _repeats(x, tol, modulo):
    """Smallest number of points after which they repeat, tested on the last half of them; 0 if there is none."""
    for k in range(1, len(x) // 2 + 1):
        off = abs(difference(x[k:], x[:-k], modulo)) / np.maximum(1.0, abs(x[k:]))
        if (off[-max(k, len(x) // 4) :] <= tol).all():
            return k
    return 0
