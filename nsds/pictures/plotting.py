"""Pictures of trajectories and comparisons (extra ``plot``): functions that take and return matplotlib axes, and the points they draw."""

import re

import numpy as np

from nsds import _checks
from nsds.pictures.axes import figure, legend_beside, on_axes, own_or_new
from nsds.pictures.diagrams import basin_map, bifurcation_curve, branch, diagram, multipliers
from nsds.pictures.scenes import animate, animate_plane, scene, snapshots
from nsds.results.trajectories import is_mechanical, require_rows
from nsds.status import CONVERGED

__all__ = [
    "animate", "animate_plane", "basin_map", "bifurcation", "bifurcation_curve", "branch", "diagram", "figure", "impact_points",
    "legend_beside", "map_points", "multipliers", "own_or_new", "performance_profile", "performance_ratios", "phase_plane", "scene",
    "snapshots", "stroboscopic_points", "time_series", "values",
]  # fmt: skip


def __dir__():
    return __all__


_NAME = re.compile(r"(\w+)\.(\w+)(?:\[(\d+)\])?")
_LABELS = {
    "q": "coordinate (m)",
    "v": "velocity (m/s)",
    "p": "impulse (N s)",
    "y": "gap (m)",
    "ydot": "gap rate (m/s)",
    "lambda": "impulse (N s)",
    "x": "state",
    "r": "input",
    "u": "control",
}
_MOST_POINTS = 1e8
_LEAST = {"time": 1e-9, "n_iter": 1.0, "residual": 1e-16, "res_q": 1e-16, "res_rho": 1e-16}  # smaller values count as equal in comparisons
_FIRST_ORDER_LABELS = _LABELS | {"y": "output", "lambda": "multiplier"}


def _part(owner, trajectory, what, name, *fields):
    """Rows of a part that has some fields."""
    held = [part for part in trajectory.dtype.names if set(fields) <= set(trajectory.dtype[part].base.names or ())]
    if not isinstance(name, str) or name not in held:
        wanted = f"recorded with {' and '.join(fields)}" if fields else "recorded"
        got = f"{_checks.shortened(name)}{_checks.meant(name, held)}"
        raise ValueError(f"{owner}: {what} must be one of the parts {wanted}, {', '.join(held) or 'none'}, got {got}")
    return trajectory[name]


def _time(owner, field, value):
    return value if isinstance(value, float) and value == -np.inf else _checks.number(owner, field, value)


def values(trajectory, name):
    """Columns (rows, k) of a name such as ``"ball.q"``, ``"ball.q[0]"`` or ``"floor.lambda"``.

    Raises
    ------
    ValueError
        The trajectory does not hold it.

    Examples
    --------
    >>> import nsds
    >>> trajectory = nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=0.01)
    >>> nsds.plotting.values(trajectory, "ball.q[0]").shape
    (101, 1)
    """
    trajectory = require_rows("plotting", trajectory, (1,))
    match = _NAME.fullmatch(_checks.text("plotting", "name", name))
    part, field, index = match.groups() if match else (None, None, None)
    if part not in (trajectory.dtype.names or ()) or field not in (trajectory.dtype[part].base.names or ()):
        held = [f"{p}.{f}" for p in trajectory.dtype.names for f in trajectory.dtype[p].base.names or ()]
        likely = _checks.meant(name.partition("[")[0], held)
        raise ValueError(
            f"plotting: name must be one that the trajectory has, got {_checks.shortened(name)}; it holds {', '.join(held)}{likely}"
        )
    columns = trajectory[part][field].reshape(trajectory.shape[0], -1)
    if index is not None and int(index) >= columns.shape[1]:
        raise ValueError(f"plotting: name: the index must be below {columns.shape[1]}, got {_checks.shortened(name)}")
    return columns if index is None else columns[:, [int(index)]]


@on_axes
def time_series(trajectory, *names, ax=None):
    """Draw named columns of one trajectory against time.

    Parameters
    ----------
    trajectory : numpy.ndarray (rows,)
        From `nsds.simulate`.
    *names : str
        ``"ball.q"`` (all components), ``"ball.q[0]"``, ``"floor.lambda"``; impulses are drawn as needles where they act, multipliers of
        first-order systems as lines. Multipliers and outputs are those of the step that ends at t: where the first row has no step behind
        it, they begin with the next.
    ax : matplotlib axes, optional
        New ones by default. Given ones keep what they have; the time axis is named where it has numbers.

    Examples
    --------
    >>> import nsds
    >>> trajectory = nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=0.01)
    >>> nsds.plotting.time_series(trajectory, "ball.q[0]").get_xlabel()
    't (s)'
    """
    # 1. columns
    trajectory = require_rows("time_series", trajectory, (1,))
    if not names:
        raise TypeError('time_series: names of columns are wanted, as "ball.q", got none')
    columns_of = {name: values(trajectory, name) for name in names}
    ax = own_or_new("time_series", ax)
    t = trajectory["t"]
    mechanical = is_mechanical(trajectory)
    # 2. impulses as needles, everything else as lines; multipliers begin with the first step
    for name in names:
        columns, field = columns_of[name], _NAME.fullmatch(name)[2]
        first = int(not mechanical and field in ("lambda", "y") and trajectory["step"][0] == 0 and t.size > 1)
        for i in range(columns.shape[1]):
            label = name if columns.shape[1] == 1 else f"{name}[{i}]"
            if mechanical and field == "lambda":
                acts = columns[:, i] != 0
                color = f"C{len(ax.get_legend_handles_labels()[0])}"
                ax.vlines(t[acts], 0, columns[acts, i], label=label, color=color, linewidth=0.8)
                ax.update_datalim([(t[0], 0.0), (t[-1], 0.0)])
                ax.autoscale_view()
            else:
                ax.plot(t[first:], columns[first:, i], label=label, linewidth=1.0)
    # 3. labels
    if ax.xaxis.get_tick_params().get("labelbottom", True):
        ax.set_xlabel("t (s)")
    kinds = {_NAME.fullmatch(name)[2] for name in names}
    labels = _LABELS if mechanical else _FIRST_ORDER_LABELS
    ax.set_ylabel(names[0] if len(names) == 1 else labels.get(kinds.pop(), "") if len(kinds) == 1 else "")
    if 1 < len(ax.get_legend_handles_labels()[0]) <= 6:
        legend_beside(ax)
    return ax


@on_axes
def phase_plane(trajectory, part, coordinate=0, *, other=None, after=-np.inf, ax=None):
    """Draw velocity against coordinate of one degree of freedom, or one state of a first-order system against another.

    Jumps of the velocity (impacts) are not joined.

    Parameters
    ----------
    trajectory : numpy.ndarray (rows,)
        From `nsds.simulate`.
    part : str
        Name of a system.
    coordinate : int
        Which of its coordinates; of a first-order system which of its states is drawn to the right.
    other : int, optional
        Of a first-order system the state that is drawn upwards, by default the one after that; of elements of an array part states are
        counted through all of them.
    after : float
        Draw only rows with t >= after, to leave out a transient.

    Examples
    --------
    >>> import nsds
    >>> trajectory = nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=0.01)
    >>> nsds.plotting.phase_plane(trajectory, "ball").get_ylabel()
    'ball.v[0]'
    """
    trajectory, owner = require_rows("phase_plane", trajectory, (1,)), "phase_plane"
    # 1. a first-order system: one state against another
    rows = trajectory[trajectory["t"] >= _time(owner, "after", after)]
    if isinstance(part, str) and part in trajectory.dtype.names and "x" in (trajectory.dtype[part].base.names or ()):
        size = trajectory[part]["x"][0].size
        i = _checks.integer(owner, "coordinate", coordinate, low=0, high=size - 1)
        j = (i + 1) % size if other is None else _checks.integer(owner, "other", other, low=0, high=size - 1)
        ax = own_or_new(owner, ax)
        ax.plot(values(rows, f"{part}.x[{i}]"), values(rows, f"{part}.x[{j}]"), linewidth=0.8)
        ax.set(xlabel=f"{part}.x[{i}]", ylabel=f"{part}.x[{j}]")
        return ax
    # 2. a mechanical system: velocity against coordinate, with gaps at impacts
    _part(owner, trajectory, "part", part, "q", "v")
    if other is not None:
        raise ValueError(
            f"{owner}: other is for first-order systems, '{part}' has coordinates and velocities, got {_checks.shortened(other)}"
        )
    size = trajectory[part]["q"][0].size
    coordinate = _checks.integer(owner, "coordinate", coordinate, low=0, high=size - 1)
    ax = own_or_new(owner, ax)
    q, v = (values(rows, f"{part}.{field}[{coordinate}]")[:, 0].copy() for field in ("q", "v"))
    jumps = 1 + np.flatnonzero((v[1:] > 0) & (v[:-1] < 0) & (np.diff(v) > 20 * np.median(abs(np.diff(v)))))
    ax.plot(np.insert(q, jumps, np.nan), np.insert(v, jumps, np.nan), linewidth=0.8)
    ax.set(xlabel=f"{part}.q[{coordinate}]", ylabel=f"{part}.v[{coordinate}]")
    return ax


def stroboscopic_points(trajectory, part, *, period, after=-np.inf):
    """State of a system once a period: the saved rows nearest to ``t = k period``, k whole.

    Parameters
    ----------
    trajectory : numpy.ndarray (rows,)
        From `nsds.simulate`.
    part : str
        Name of a system.
    period : float
        Time between points (s), at least the distance of saved rows.
    after : float
        Leave out points before this time.

    Returns
    -------
    numpy.ndarray (points,)
        Rows of ``trajectory[part]``.

    Examples
    --------
    >>> import nsds
    >>> trajectory = nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=0.01)
    >>> len(nsds.plotting.stroboscopic_points(trajectory, "ball", period=0.25))
    5
    """
    owner = "stroboscopic_points"
    trajectory, period = require_rows(owner, trajectory, (1,)), _checks.number(owner, "period", period, above=0.0)
    t, after, rows = trajectory["t"], _time(owner, "after", after), _part(owner, trajectory, "part", part)
    if (t[-1] - t[0]) / period > _MOST_POINTS:
        raise ValueError(f"{owner}: period must be at least the distance of saved rows, got {period:g}")
    after = min(after, t[-1] + 2 * period)  # any later, there are none
    strobes = period * np.arange(np.ceil(max(after, t[0]) / period - 1e-9), np.floor(t[-1] / period + 1e-9) + 1)
    return rows[np.abs(np.searchsorted((t[1:] + t[:-1]) / 2, strobes))]


def impact_points(trajectory, part, contact, *, after=-np.inf):
    """State of a system just after each impact: rows in which the impulse of ``contact`` sets in.

    Parameters
    ----------
    trajectory : numpy.ndarray (rows,)
        From `nsds.simulate`, every step saved.
    part, contact : str
        Names of a system and of an interaction with one constraint.
    after : float
        Leave out impacts before this time.

    Returns
    -------
    numpy.ndarray (impacts,)
        Fields t, q and v.

    Examples
    --------
    >>> import nsds
    >>> trajectory = nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=0.01)
    >>> nsds.plotting.impact_points(trajectory, "ball", "floor")["t"]
    array([0.46])
    """
    owner = "impact_points"
    trajectory, after = require_rows(owner, trajectory, (1,)), _time(owner, "after", after)
    _part(owner, trajectory, "part", part, "q", "v")
    pressing = _part(owner, trajectory, "contact", contact, "lambda")["lambda"] > 0
    if pressing.ndim > 1:
        raise ValueError(f"{owner}: contact must have one constraint, '{contact}' has shape {pressing.shape[1:]}")
    rows = trajectory[1:][pressing[1:] & ~pressing[:-1] & (trajectory["t"][1:] >= after)]
    state = rows[part]
    result = np.zeros(rows.shape, [("t", "<f8"), ("q", state.dtype["q"]), ("v", state.dtype["v"])])
    result["t"], result["q"], result["v"] = rows["t"], state["q"], state["v"]
    return result


@on_axes
def map_points(points, coordinate=0, *, ax=None):
    """Draw points of a stroboscopic or impact map: velocity against coordinate.

    Parameters
    ----------
    points : numpy.ndarray (points,)
        From `stroboscopic_points` or `impact_points`.
    coordinate : int
        Which coordinate.

    Examples
    --------
    >>> import nsds
    >>> trajectory = nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=0.01)
    >>> points = nsds.plotting.stroboscopic_points(trajectory, "ball", period=0.1)
    >>> nsds.plotting.map_points(points).get_xlabel()
    'q[0]'
    """
    owner = "map_points"
    if not isinstance(points, np.ndarray) or not {"q", "v"} <= set(points.dtype.names or ()) or points["q"].ndim != 2:
        raise TypeError(f"{owner}: points must come from stroboscopic_points or impact_points, got {_checks.shortened(points)}")
    coordinate = _checks.integer(owner, "coordinate", coordinate, low=0, high=points["q"].shape[1] - 1)
    ax = own_or_new(owner, ax)
    ax.plot(points["q"][:, coordinate], points["v"][:, coordinate], ".", markersize=2, color="black")
    ax.set(xlabel=f"q[{coordinate}]", ylabel=f"v[{coordinate}]")
    return ax


@on_axes
def bifurcation(parameter, points, *, ax=None):
    """Draw a bifurcation diagram: for each value of a parameter all its points.

    Parameters
    ----------
    parameter : array_like (members,)
        Values of the parameter.
    points : sequence of array_like, one for each member
        For instance one coordinate of `stroboscopic_points`.

    Examples
    --------
    >>> import nsds
    >>> len(nsds.plotting.bifurcation([1.0, 2.0], [[0.1], [0.1, 0.3]]).lines[0].get_xdata())
    3
    """
    owner = "bifurcation"
    # one set of points for each value
    parameter = _checks.array(owner, "parameter", parameter, at_least=1, n_dims=1)
    is_sequence = isinstance(points, (list, tuple)) or (isinstance(points, np.ndarray) and points.ndim > 0)
    if not is_sequence or len(points) != parameter.size:
        given = f"{len(points)} of them" if is_sequence else _checks.shortened(points)
        raise ValueError(f"{owner}: points must be a sequence of {parameter.size}, one for each value of the parameter, got {given}")
    columns = [np.zeros(0), *(_checks.array(owner, f"points[{i}]", column, at_least=1, n_dims=1) for i, column in enumerate(points))]
    ax = own_or_new(owner, ax)
    repeated = np.repeat(parameter, [column.size for column in columns[1:]])
    ax.plot(repeated, np.concatenate(columns), ".", markersize=1.5, color="black")
    return ax


def performance_ratios(profile, measure="time"):
    """Cost of each method relative to the best one, by problem.

    Parameters
    ----------
    profile : numpy.ndarray (problems, methods)
        From `nsds.solvers.profile` or `nsds.solvers.profile_contacts`.
    measure : "time", "n_iter" or "residual"; of contacts "res_q" or "res_rho" instead of "residual"
        Of time and iterations, what is not solved counts as infinite; residuals (accuracy) count from 1e-16 to 1, whatever the status.

    Returns
    -------
    numpy.ndarray (problems, methods)
        NaN for problems that no method solved.

    Examples
    --------
    >>> import nsds
    >>> result = nsds.solvers.profile([nsds.solvers.generate("chain", 20)], ["pgs", "newton_min"], seconds=0)
    >>> nsds.plotting.performance_ratios(result, "n_iter").min()
    np.float64(1.0)
    """
    if not isinstance(profile, np.ndarray) or profile.ndim != 2 or not {"status", "time"} <= set(profile.dtype.names or ()):
        raise TypeError(f"performance_ratios: profile must come from nsds.solvers.profile, got {_checks.shortened(profile)}")
    _checks.choice("performance_ratios", "measure", measure, [name for name in _LEAST if name in profile.dtype.names])
    spent = np.maximum(profile[measure].astype(float), _LEAST[measure])
    failed = profile["status"] != CONVERGED if measure in ("time", "n_iter") else ~(spent <= 1.0)
    spent = np.where(failed, np.inf, spent)
    best = spent.min(axis=1, keepdims=True)
    return spent / np.where(best < np.inf, best, np.nan)


@on_axes
def performance_profile(profile, measure="time", *, ax=None):
    """Draws for each method the fraction of problems solved within a factor of the best method (Dolan, Moré 2002).

    Parameters
    ----------
    profile : numpy.ndarray (problems, methods)
        From `nsds.solvers.profile` or `nsds.solvers.profile_contacts`; problems that no method solved are left out.
    measure : str
        See `performance_ratios`.

    Examples
    --------
    >>> import nsds
    >>> problems = [nsds.solvers.generate("positive_definite", 5, seed) for seed in range(4)]
    >>> result = nsds.solvers.profile(problems, ["lemke", "pgs"], seconds=0)
    >>> nsds.plotting.performance_profile(result).get_ylabel()
    'share of problems'
    """
    ax = own_or_new("performance_profile", ax)
    # 1. problems that some method has solved
    ratios = performance_ratios(profile, measure)
    ratios = ratios[~np.isnan(ratios).any(axis=1)]
    largest = 2 * ratios[ratios < np.inf].max(initial=1.0)
    # 2. a step function for each method
    for k in range(profile.shape[1]):
        reached = np.sort(ratios[ratios[:, k] < np.inf, k])
        x = np.concatenate([[1.0], reached, [largest]])
        shares = np.concatenate([[0], np.arange(1, reached.size + 1), [reached.size]]) / max(len(ratios), 1)
        style = ("-", "--", ":", "-.")[k // 10 % 4]
        ax.step(x, shares, where="post", label=str(profile["method"][0, k]), linestyle=style, linewidth=1.0)
    ax.set(xscale="log", xlim=(1, largest), ylim=(0, 1.02), xlabel=f"{measure} / that of the best method", ylabel="share of problems")
    ax.legend(fontsize="small", ncols=2)
    return ax
