"""Periodic orbits: Newton's method on a section, Floquet multipliers, tables of orbits."""

import math
from contextlib import closing

import numpy as np
from scipy.linalg import lapack, matrix_balance

from nsds import _checks
from nsds.analysis.krylov import largest_multipliers, newton_step, order
from nsds.analysis.maps import section_of
from nsds.analysis.paths import ROUNDING
from nsds.analysis.sections import difference
from nsds.results.description import result_dtype
from nsds.status import CONVERGED, advice

_HALVINGS = 8
_FAR = 1e9  # times the first state, or 1: a motion farther away has diverged
_APART = 2.0**20  # ratio of the units of states beyond which Newton's equations are balanced
_SINGULAR = 1e-13  # reciprocal condition of Newton's equations below which they count as singular
_STRETCH = 4.0  # factor by which a Newton step may change a period: a larger one would lead to runs without end
_ONWARD = 16  # orbits over which a motion leads on at most where Newton's method does not
_LATER = (0.29, 0.21, 0.29)  # of a period, one after the other: times of starts of further attempts to find a cycle
_MULTIPLES = (1.5, 2.0, 3.0)  # of the time in which a state closes on another branch: tries for the period
_SHORT = 2.0**-17  # of a period: step of finite differences in time
_WITHIN = 0.38  # of a period: where a state is not that at the start, unless it rests
_FARTHER = 10.0  # times the residual
_FEWEST = 4  # states of a system some multipliers of which are asked for, and two more than are found at once


def orbit_dtype(n, parameter=("parameter", "<f8")):
    """Fields of a table of orbits of n states."""
    return result_dtype(
        [("x", "<f8", (n,)), parameter, ("period", "<f8"), ("residual", "<f8"), ("monodromy", "<f8", (n, n)),
         ("multipliers", "<c16", (n,)), ("log_det", "<f8"), ("error", "<f8"), ("n_impacts", "<i8"), ("n_events", "<i8"), ("slowest", "<f8"),
         ("n_together", "<i8"), ("n_untreated", "<i8"), ("n_iter", "<i8"), ("status", "<i8")]
    )  # fmt: skip


def filled(rows, section, k, x, values, returned, n_iter):
    """Row k of a table of orbits, from the result of the section at x."""
    # 1. orbit and its residual
    row, residual = rows[k], abs(difference(returned.ends[0], x, section.modulo)).max()
    if returned.error is None:
        returned = section.resolved(x, values, returned)
    # 2. derivatives and counters
    M = returned.maps[0]
    row["x"], row["period"] = x, section.period(*values) * section.n_periods
    given = row.dtype.names[1]  # "parameter", or "parameters"
    row[given] = np.reshape(values, row[given].shape) if section.names else math.nan
    row["residual"], row["error"] = residual, returned.error[0]
    row["monodromy"] = M
    row["multipliers"] = multipliers_of(M)
    row["log_det"], row["slowest"] = returned.log_det[0], returned.slowest[0]
    for name, numbers in (("n_impacts", "impacts"), ("n_events", "events"), ("n_together", "together"), ("n_untreated", "untreated")):
        row[name] = int(getattr(returned, numbers)[0])
    row["n_iter"], row["status"] = n_iter, returned.status[0]
    return row


def multipliers_of(M):
    """Eigenvalues of M, the largest first, of a complex pair that with the positive imaginary part first; NaN where M is not finite."""
    if not np.isfinite(M).all():
        return np.full(len(M), math.nan)
    real, imag, _, _, failed = lapack.dgeev(M, compute_vl=False, compute_vr=False)
    if failed:
        raise np.linalg.LinAlgError("the multipliers of an orbit are not found")
    multipliers = real + 1j * imag
    return multipliers[order(multipliers)]


def _with_multipliers(section, x, values, n_iter, count):
    """Result at x with the count largest multipliers, without the monodromy."""
    n = section.n
    returned = section.returns(x[None], [values], derive=False)
    require_run(section.owner, returned, x)
    row = np.zeros((), result_dtype(
        [("x", "<f8", (n,)), ("parameter", "<f8"), ("period", "<f8"), ("residual", "<f8"), ("multipliers", "<c16", (count,)),
         ("error", "<f8"), ("n_impacts", "<i8"), ("n_events", "<i8"), ("n_iter", "<i8"), ("status", "<i8")]
    ))  # fmt: skip
    row["x"], row["parameter"], row["period"] = x, math.nan, section.period(*values) * section.n_periods
    row["residual"] = abs(difference(returned.ends[0], x, section.modulo)).max()
    row["multipliers"], row["error"] = largest_multipliers(section, x, values, count)
    row["n_impacts"], row["n_events"], row["n_iter"], row["status"] = returned.impacts[0], returned.events[0], n_iter, returned.status[0]
    return row


def _count_of(section, n_multipliers):
    """Checked number of multipliers; None where all are wanted."""
    if n_multipliers is None:
        return None
    if section.n < _FEWEST:
        raise ValueError(f"{section.owner}: n_multipliers is for at least {_FEWEST} states, this system has {section.n}: leave it out")
    return _checks.integer(section.owner, "n_multipliers", n_multipliers, low=1, high=section.n - _FEWEST + 1)


def floquet(system, *, period=None, n_periods=1, scheme=None, h=None, n_multipliers=None):
    """Monodromy matrix and multipliers of the motion from the state of a system, over a number of periods.

    Parameters
    ----------
    system : numpy.ndarray, or map from `nsds.iterated_map`
        A record, whose state is on an orbit: `nsds.orbit` finds one.
    period : float
        Period of the excitation of the system; maps have none.
    n_periods : int
        Periods after which the orbit closes; of maps the iterations.
    scheme : numpy.ndarray, optional
        ``nsds.event_driven(...)`` with other options than its defaults; with h a time-stepping scheme, by default that of `nsds.simulate`.
    h : float, optional
        Step of a time-stepping scheme, of which an orbit has a whole number: the derivatives are then those of what it computes.
        Leave it out for event-driven motions.
    n_multipliers : int, optional
        So many of the largest multipliers, by products of the monodromy with vectors (Arnoldi's method of ARPACK): for systems with more
        than some 100 states, as nothing of n x n numbers is computed. By default all.

    Returns
    -------
    numpy.ndarray, shape ()
        x (n,), all coordinates and then all velocities, or all states; parameter, NaN here; period, of the orbit; residual, by how much the
        orbit does not close, or its next turn is another one, on another branch of a hysteresis; monodromy (n, n); multipliers (n,), the
        largest first; log_det, the logarithm of its determinant as it was
        summed along the motion; error, an estimate of that of the monodromy, relative to its largest number or 1 (see Notes); n_impacts,
        n_events; slowest, the smallest rate of a guard at its event, 0 where a contact grazes; n_together, events at which several guards
        came to zero, so that the derivative is one of several; n_untreated, events whose saltation matrix is not known (multiple impacts,
        state jumps of first-order systems); n_iter; status. With n_multipliers x, parameter, period, residual, multipliers, error, here the
        largest residual ``||M v - mu v||`` of their vectors of length 1, n_impacts, n_events, n_iter, status.

    Raises
    ------
    ValueError, TypeError
        Arguments that do not fit; a system without tangent map (rigid bodies in space, sampled control); multipliers that ARPACK does not
        find, as those of which very many are as large.

    Notes
    -----
    Between events the derivatives are exact where the motion is linear, and error is 0. Else they are of fourth order in the rows of the
    orbit, 128 at first, which are doubled until the monodromy changes by less than 1e-8 of its largest number, which is error; where it no
    longer falls, for noise of finite differences, or with 16384 rows, error is larger and says so. With n_multipliers a product is a
    central difference of two runs, shorter where these have other events, to some 1e-10. At events derivatives have saltation matrices
    (Leine and Nijmeijer 2004). Where relations leave ``H`` or ``h_t`` to finite differences, these matrices have some 1e-7 of noise, and
    special points of branches as much; some 1e-12 where both are given. ``log_det`` against the determinant does not see all errors of
    these; the trace does. Of guards that come to zero together the first alone is followed, and of impacts that accumulate the flights that
    are left out are not. Where a motion begins on a surface on which lambda keeps it (it slides or sticks, a contact or a diode is
    closed), states beside it come back at once, along what lambda acts: one multiplier is 0, or two of a gap and its rate, and log_det is
    -inf. Of a contact that sticks, the derivatives by its gap are for states that it leaves closed. Surfaces to which lambda does not lead
    back, as it acts on a higher derivative, are counted in n_untreated. From exactly where sliding ends derivatives are one-sided, for
    states from which the motion goes on without it; multipliers of an orbit are the same. With a step h events are steps
    in which what is active changes, of which slowest tells nothing, and n_untreated counts columns of derivatives across such a change;
    impacts do not move in time: see `nsds.sensitivity`.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> def drive(t, z, out):
    ...     out[0] = np.cos(z[0] * t)
    >>> system = nsds.system(
    ...     mass=nsds.lagrangian_linear(M=[[1.0]], C=[[0.1]], K=[[1.0]], fext=drive, q=[0.5], v=[0.0], z=[2.8]),
    ...     stop=nsds.interaction(nsds.lagrangian_linear_relation(H=[[-1.0]], b=[10.0]), nsds.newton_impact(0.8), on="mass"),
    ... )
    >>> T = 2 * np.pi / 2.8
    >>> multipliers = nsds.floquet(system, period=T)["multipliers"]  # without impacts those of the free motion
    >>> bool(abs(np.prod(multipliers) - np.exp(-0.1 * T)) < 1e-14)
    True
    """
    with closing(section_of("floquet", system, period, n_periods, scheme, [], h)) as section:
        count = _count_of(section, n_multipliers)
        if count is not None:
            return _with_stray(section, _with_multipliers(section, section.x, section.values, 0, count))
        returned = section.returns(section.x[None], [section.values])
        row = filled(np.zeros(1, orbit_dtype(section.n)), section, 0, section.x, section.values, returned, 0)
        return _with_stray(section, row.copy().reshape(()))


def _with_stray(section, row):
    """The row; of a motion that comes back on another branch of a law with hysteresis the residual is by how much its next turn differs."""
    if row["residual"] <= ROUNDING and row["status"] == CONVERGED:
        row["residual"] = max(row["residual"], section.strays(section.x, section.values))
    return row


def orbit(
    system, *, period=None, free_period=False, n_periods=1, settle=0, tol=1e-11, max_iter=30, scheme=None, h=None, n_multipliers=None
):
    """A periodic orbit of a system, or of a map, by Newton's method.

    Parameters
    ----------
    system, period, n_periods, scheme, h
        See `nsds.floquet`; the state of the system is where Newton's method starts.
    n_multipliers : int, optional
        See `nsds.floquet`; with it the equations of Newton's steps are solved by products with vectors, too (Newton–Krylov).
    free_period : bool
        For autonomous systems: the period is only a first guess, and is found too. One multiplier is then 1.
    settle : int
        Orbits (n_periods periods each) that are run first, towards an attractor.
    tol : float
        Largest difference between end and start, relative to 1 or the state.
    max_iter : int
        Steps of Newton's method.

    Returns
    -------
    numpy.ndarray, shape ()
        As of `nsds.floquet`, at a point of the orbit at the system's own time.

    Raises
    ------
    ValueError
        No orbit is found: the message has the residual and the largest multiplier there, which is above 1 where the motion is chaotic. With
        free_period, the state found is one of rest.

    Examples
    --------
    >>> import nsds
    >>> follower = nsds.examples.cam_follower(rpm=700.0, q=1.3, v=-66.0)
    >>> found = nsds.orbit(follower, period=60 / 700)
    >>> found["x"].round(5).tolist(), int(found["n_impacts"])
    ([1.32791, -66.20684], 1)
    >>> found["monodromy"].trace().round(6).item()
    0.602722
    """
    # 1. the section; a free period is its one parameter
    owner = "orbit"
    with closing(section_of(owner, system, period, n_periods, scheme, [], h)) as section:
        if _checks.flag(owner, "free_period", free_period):
            if period is None:
                raise ValueError(f"{owner}: free_period is for systems, not for maps")
            if h is not None:
                raise ValueError(f"{owner}: free_period is for event-driven motions: a period has a whole number of steps h")
            if n_multipliers is not None:
                raise ValueError(f"{owner}: free_period wants all multipliers: leave n_multipliers out")
            section.values, section.period = np.array([section.period()]), lambda period: period
        # 2. arguments, and the transient
        settle, max_iter = _checks.integer(owner, "settle", settle, low=0), _checks.integer(owner, "max_iter", max_iter, low=1)
        tol, x = _checks.number(owner, "tol", tol, above=0.0), section.x
        for _ in range(settle):
            returned = section.follow(x, section.values)
            require_run(owner, returned, x, section.x)
            x = returned.ends[0]
        # 3. Newton's method, then the row of the table
        count = _count_of(section, n_multipliers)
        if free_period:
            x, returned, residual, n_iter = _closed(
                section, x, tol, lambda x: _cycle(section, x, section.values, tol, max_iter), _MULTIPLES
            )
        else:
            x, returned, residual, n_iter = _closed(
                section, x, tol, lambda x: newton(section, x, section.values, tol, max_iter, derive=count is None), (1.0,)
            )
        if free_period and not _moves(section, x, residual):
            raise ValueError(
                f"{owner}: no orbit with a period of its own was found: the system rests at the state {x.tolist()}, to which it returns "
                "after any time; start from a state of the cycle, with settle=0 if it repels"
            )
        if count is not None:
            return _with_multipliers(section, x, section.values, n_iter, count)
        rows = np.zeros(1, orbit_dtype(section.n))
        return filled(rows, section, 0, x, section.values, returned, n_iter).copy().reshape(())


def _closed(section, x, tol, find, multiples):
    """Result of find(x), of an orbit whose next turn is the same; tried again from the branch on which it ends, and multiples of it.

    A residual above tol is refused, and what ends on other branches again and again.
    """
    for multiple in (*multiples, None):
        x, returned, residual, n_iter = find(x)
        if not residual <= tol:
            refuse(section.owner, section, x, returned, residual)
        if multiple is None or section.strays(x, section.values) == 0.0:
            break
        section.follow(x, section.values)
        if multiple != 1.0:
            section.values = multiple * section.values
    section.require_branch(x, section.values)
    return x, returned, residual, n_iter


def require_run(owner, returned, x, first=None):
    """Raises a ValueError if a run has failed, or diverged from a first state."""
    if returned.status[0] != CONVERGED:
        raise ValueError(f"{owner}: the motion from the state {x.tolist()} ends: {advice(int(returned.status[0]))}")
    if not np.isfinite(returned.ends).all() or (first is not None and abs(returned.ends).max() > _FAR * max(1.0, abs(first).max())):
        raise ValueError(f"{owner}: the motion from the state {x.tolist()} drifts to infinity")


def refuse(owner, section, x, returned, residual):
    """Raises the ValueError that no orbit was found, with the residual and the largest multiplier."""
    require_run(owner, returned, x)
    largest = f"the largest multiplier {abs(np.linalg.eigvals(returned.maps[0])).max():.3g}: " if returned.maps.size else ""
    if residual <= ROUNDING:
        raise ValueError(
            f"{owner}: the orbit of {section.n_periods} periods at the state {x.tolist()} closes to {residual:.3g}, not to tol: "
            f"what is left is rounding, or noise of finite differences; give functions for derivatives, or a larger tol"
        )
    raise ValueError(
        f"{owner}: no orbit of {section.n_periods} periods was found: the residual is {residual:.3g} at the state {x.tolist()}, "
        f"{largest}the motion may be chaotic, or have another period"
    )


def off_of(section, x, returned):
    """(end less start, largest difference relative to 1 or the state); (None, infinity) if there is no end."""
    if returned.status[0] != CONVERGED:
        return None, math.inf
    off = difference(returned.ends[0], x, section.modulo)
    residual = (abs(off) / np.maximum(1.0, abs(x))).max()
    return (off, residual) if residual < math.inf else (None, math.inf)


def newton(section, x, values, tol, max_iter, derive=True):
    """Newton's method at fixed parameters, with step halving: (x, result of the section, residual, steps).

    derive: whether its equations have the matrix of derivatives, or are solved by products of it with vectors. For a small state it
    continues until the residual is small relative to that, too, or no longer falls. Where no step lessens a larger residual, as at a kink
    of the map, where a motion begins to stick, the motion itself leads on, over more and more of its periods.
    """
    returned = section.returns(x[None], [values], derive=derive)
    (off, residual), n_iter, periods = off_of(section, x, returned), 0, 1
    best = x, returned, residual
    while off is not None and n_iter < max_iter:
        is_found = residual <= tol
        if is_found and abs(off).max() <= tol * abs(x).max():
            break
        n_iter += 1
        # full step first; once tol is met, only one more try per step: the rest is refinement
        step = _solved(returned.maps[0] - np.eye(section.n), off) if derive else newton_step(section, x, values, off)
        for halving in range(1 if is_found else _HALVINGS):
            trial = x - step * 0.5**halving
            result = section.returns(trial[None], [values], derive=derive)
            off_trial, left = off_of(section, trial, result)
            if left < residual:
                break
        else:
            if residual <= ROUNDING or periods > _ONWARD:
                break
            trial, periods = _later(section, x, values, periods), 2 * periods
            result = section.returns(trial[None], [values], derive=derive)
            off_trial, left = off_of(section, trial, result)
        x, returned, off, residual = trial, result, off_trial, left
        best = (x, returned, residual) if residual < best[2] else best
    return *best, n_iter


def _later(section, x, values, periods):
    """State of a motion so many of its periods after x."""
    for _ in range(periods):
        x = section.follow(x, values).ends[0]
    return x


def _solved(A, b):
    """Solution of ``A x = b``, of states of any units; if A is singular to rounding, the least-squares solution of least norm."""
    units = np.ones(len(b))
    if np.isfinite(A).all():
        balanced, (scale, _) = matrix_balance(A, permute=False, separate=True)
        if scale.max() > _APART * scale.min():
            A, b, units = balanced, b / scale, scale
    factors, pivots, _ = lapack.dgetrf(A)
    if lapack.dgecon(factors, abs(A).sum(axis=0).max())[0] > _SINGULAR:
        return units * lapack.dgetrs(factors, pivots, b)[0]
    return units * np.linalg.lstsq(A, b, rcond=None)[0]


def _cycle(section, x, values, tol, max_iter):
    """`newton_and_period`; if it fails, from later states of the motion: an event near the start may fall on either side of it."""
    first = newton_and_period(section, x, values, tol, max_iter)
    for part in _LATER if not first[2] <= tol else ():
        later = section.follow(x, part * values)
        x = later.ends[0]
        if later.status[0] != CONVERGED:
            break
        found = newton_and_period(section, x, values, tol, max_iter)
        if found[2] <= tol:
            return found
    return first


def _moves(section, x, residual):
    """Whether the state within the period is farther from that at its start than the one at its end."""
    within = section.returns(x[None], [_WITHIN * section.values], derive=False)
    return off_of(section, x, within)[1] > _FARTHER * residual + 2.0**-50


def newton_and_period(section, x, values, tol, max_iter):
    """`newton` with unknown period: the state moves only across the motion. Leaves the period in section.values."""
    period = values[0]
    returned = section.returns(x[None], [[period]])
    residual, n_iter = off_of(section, x, returned)[1], 0
    while not residual <= tol and n_iter < max_iter and math.isfinite(residual):
        n_iter += 1
        # 1. derivative of the end by the period, and the direction of the motion at the start
        delta = _SHORT * period
        around = section.returns(np.array([x, x]), [[period + delta], [period - delta]], derive=False).ends
        start = section.returns(x[None], [[delta]], derive=False).ends[0] - x
        by_period = (around[0] - around[1]) / (2.0 * delta)
        # 2. bordered Newton equations: a phase condition removes the freedom along the orbit
        bordered = np.block([[returned.maps[0] - np.eye(section.n), by_period[:, None]], [start[None] / delta, np.zeros((1, 1))]])
        if not np.isfinite(bordered).all():
            break
        step = np.linalg.lstsq(bordered, np.append(returned.ends[0] - x, 0.0), rcond=None)[0]
        # 3. step halving; a step that changes the period too much is not tried
        for halving in range(_HALVINGS):
            trial, length = x - step[:-1] * 0.5**halving, period - step[-1] * 0.5**halving
            if not period / _STRETCH < length < period * _STRETCH:
                continue
            result = section.returns(trial[None], [[length]])
            left = off_of(section, trial, result)[1]
            if left < residual:
                break
        else:
            break
        x, period, returned, residual = trial, length, result, left
    section.values = np.array([period])
    return x, returned, residual, n_iter
