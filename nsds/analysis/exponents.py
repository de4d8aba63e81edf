"""Lyapunov exponents: growth of tangent vectors along a run, made orthonormal at sections."""

import math

import numpy as np

from nsds import _checks
from nsds.analysis.maps import IteratedMap, Iterates
from nsds.analysis.tangent import EVENTS, IMPACTS, LOG_DET, TIME, TOGETHER, UNTREATED
from nsds.analysis.tangent_run import require_long, rows_for
from nsds.analysis.tangent_steps import carried
from nsds.model.validation import valid
from nsds.results.description import result_dtype


def lyapunov(system, *, period=None, n_periods=1000, transient=100, n_exponents=None, blocks=16, scheme=None, h=None):
    """Spectrum of Lyapunov exponents of the motion of a system, or of each member of an ensemble; or of a map.

    Parameters
    ----------
    system : numpy.ndarray, or map from `nsds.iterated_map`
        A record, or an array of records.
    period : float, or array_like of the shape of the system
        Time between sections, where tangent vectors are made orthonormal: for a forced system the period of the excitation.
    n_periods, transient : int
        Sections that count, and those before them, during which the vectors align with their directions.
    n_exponents : int, optional
        Number of exponents, the largest ones; all by default.
    blocks : int
        Number of blocks; errors are those of the means of the blocks.
    scheme : numpy.ndarray, optional
        ``nsds.event_driven(...)`` with other options than its defaults; with h a time-stepping scheme, by default that of `nsds.simulate`.
    h : float, optional
        Step of a time-stepping scheme, of which a period has a whole number: the derivatives are then those of what it computes.
        Leave it out for event-driven motions.

    Returns
    -------
    numpy.ndarray, of the shape of the system
        exponents (k,), per unit of time (of maps per iteration), the largest first, -inf of directions that the motion loses, as those off
        a surface on which it slides; errors (k,), of one standard deviation, NaN of these; rate, the mean growth of volumes, summed along
        the run without the vectors; sum_error, of all exponents against it (NaN where k is less than all);
        n_impacts, n_events, n_together and n_untreated as of `nsds.floquet`; time that counts; status, that of a run that ended early.

    Raises
    ------
    ValueError, TypeError
        Arguments that do not fit; a system without tangent map (rigid bodies in space, sampled control).

    Notes
    -----
    Between events derivatives have as many rows as change the map over the first four sections by less than 1e-8 of its largest number (see
    `nsds.floquet`). Vectors pass events by saltation matrices (Müller 1995). With a step h derivatives of steps carry them, whose impacts
    do not move in time (see `nsds.sensitivity`): what is chaotic by the times of its impacts alone has no exponent above 0 there.
    Ctrl-C ends the run, and gives what the blocks so far say.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> def bounce(x, p, out):
    ...     out[0], out[1] = x[0] + x[1], 0.5 * x[1] - 10 * np.cos(x[0] + x[1])
    >>> table = nsds.iterated_map(bounce, x=[0.1, 0.2], modulo=[2 * np.pi, 2 * np.pi])
    >>> found = nsds.lyapunov(table, n_periods=500)
    >>> bool(found["exponents"][0] > 1), bool(abs(found["exponents"].sum() - np.log(0.5)) < 1e-8)
    (True, True)
    """
    # 1. arguments
    owner = "lyapunov"
    n_periods, transient = _checks.integer(owner, "n_periods", n_periods, low=1), _checks.integer(owner, "transient", transient, low=0)
    blocks = _checks.integer(owner, "blocks", blocks, low=2)
    if n_exponents is not None:
        n_exponents = _checks.integer(owner, "n_exponents", n_exponents, low=1)
    # 2. transient, then the growth of the vectors block by block; after Ctrl-C the blocks so far count
    run = _Vectors(owner, system, period, scheme, h, n_exponents)
    samples = []
    try:
        run.advance(transient)
        samples.append(run.sample())
        for count in np.diff(np.linspace(0, n_periods, min(blocks, n_periods) + 1).astype(int)):
            run.advance(int(count))
            samples.append(run.sample())
    except KeyboardInterrupt:
        if len(samples) < 2:
            raise
    return _spectra(run, samples)


class _Vectors:
    """Tangent vectors of an ensemble of systems, or of a map."""

    def __init__(self, owner, system, period, scheme, h, k):
        self.is_map = isinstance(system, IteratedMap)
        # 1. a map: no time between its iterations
        if self.is_map:
            if period is not None or scheme is not None or h is not None:
                raise ValueError(f"{owner}: a map has neither period nor scheme nor step: leave them out")
            self.shape, self.n = (), system.n
        else:
            # 2. a system: periods of the members
            system = valid(owner, system)
            if period is None:
                raise ValueError(f"{owner}: period is missing: the time between sections")
            self.shape = np.shape(system)
            periods = _checks.array(owner, "period", period)
            if periods.ndim and periods.shape != self.shape:
                raise ValueError(f"{owner}: period must be a number, or of the shape {self.shape} of the system, got {periods.shape}")
            if not (periods > 0).all():
                raise ValueError(f"{owner}: period must be above 0, got {periods.min()}")
            require_long(owner, periods)

            # 3. rows that the tangent map needs, from a trial run
            def with_rows(rows, orthonormal):
                return carried(owner, system, periods.reshape(-1), scheme, h, n_columns=k, orthonormal=orthonormal, rows=rows)

            run = with_rows(None, True)
            rows = rows_for(run, lambda rows: with_rows(rows, False))
            run = run if rows == run.rows else with_rows(rows, True)
            self.n = run.plan.n_own
        # 4. number of vectors
        if k is not None and k > self.n:
            raise ValueError(f"{owner}: n_exponents must be at most the number of states {self.n}, got {k}")
        self.k = k or self.n
        if self.is_map:
            run = Iterates(system, system.x[None], system.p[None], n_columns=self.k, orthonormal=True)
            self.n_done = 0
        # vectors of no special direction, as motions may lose a unit vector
        if self.k < self.n:
            run.columns[:, : self.n] = np.linalg.qr(np.random.default_rng(0).normal(size=(self.n, self.k)))[0]
        self.run = run

    def advance(self, count):
        self.run.advance(count)
        self.n_done = self.n_done + count if self.is_map else 0

    def sample(self):
        """(growth and log_det since the last sample, time, impacts, events, together, untreated so far), each (members, ...)."""
        log_det = self.run.log_det if self.is_map else self.run.notes[:, LOG_DET]
        grown = self.run.growth[:, : self.k].copy(), log_det.copy()
        self.run.growth[:] = log_det[:] = 0.0
        if self.is_map:
            nothing = np.zeros(1)
            return *grown, np.full(1, float(self.n_done)), nothing, nothing, nothing, nothing
        return *grown, *self.run.notes[:, [TIME, IMPACTS, EVENTS, TOGETHER, UNTREATED]].copy().T


def _spectra(run, samples):
    """Table of exponents, from the samples between blocks."""
    k, members = run.k, len(samples[0][0])
    # 1. table
    result = np.zeros(
        members,
        result_dtype([("exponents", "<f8", (k,)), ("errors", "<f8", (k,)), ("rate", "<f8"), ("sum_error", "<f8"), ("n_impacts", "<i8"),
         ("n_events", "<i8"), ("n_together", "<i8"), ("n_untreated", "<i8"), ("time", "<f8"), ("status", "<i8")]),
    )  # fmt: skip
    # 2. rates of each block; exponents over all blocks, their errors from the spread of the blocks, weighted by time
    growth, log_det, time = (np.array([one[k] for one in samples]) for k in range(3))
    passed = np.diff(time, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = growth[1:] / passed[..., None]
        weights = passed / passed.sum(axis=0)
        result["exponents"] = growth[1:].sum(axis=0) / (time[-1] - time[0])[:, None]
        spread = (weights[..., None] * (means - result["exponents"]) ** 2).sum(axis=0)
        result["errors"] = np.sqrt(spread / max(len(samples) - 2, 1))
        # 3. growth of volumes, summed independently of the vectors, checks the sum of the exponents
        result["rate"] = log_det[1:].sum(axis=0) / (time[-1] - time[0])
        result["sum_error"] = result["exponents"].sum(axis=1) - result["rate"] if k == run.n else math.nan  # NaN, too, of what sticks
    for column, name in enumerate(("n_impacts", "n_events", "n_together", "n_untreated"), start=3):
        result[name] = samples[-1][column] - samples[0][column]
    result["time"], result["status"] = time[-1] - time[0], run.run.status
    # 4. largest first
    order = np.argsort(-result["exponents"], axis=1, kind="stable")
    for name in ("exponents", "errors"):
        result[name] = np.take_along_axis(result[name], order, axis=1)
    return result.reshape(run.shape)[()]
