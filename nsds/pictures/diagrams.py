"""Pictures of results of `nsds.analysis`: diagrams and charts of sweeps, branches of orbits, multipliers, basins of attraction."""

import numpy as np

from nsds import _checks
from nsds.pictures.axes import legend_beside, on_axes, own_or_new
from nsds.status import CONVERGED

_ON_CIRCLE = 1e-6  # tolerance of the unit circle: special points have a multiplier on it
_MARKS = {
    "fold": "s",
    "period_doubling": "o",
    "neimark_sacker": "D",
    "branch_point": "*",
    "corner": "^",
    "border": "P",
    "stick": "<",
    "sliding": ">",
    "jump": "d",
    "grazing": "v",
    "rest": "h",
    "lost": "x",
}
_PALETTE, _N_COLOURS = "tab20", 20
_PLAIN, _BLANK = "0.6", "1.0"  # greys of motions that do not repeat, and of values not computed
_MOST_PERIODS = 12  # periods with colours of their own


def _rows(owner, rows, maker, *fields):
    if not isinstance(rows, (np.ndarray, np.void)) or rows.size == 0 or not set(fields) <= set(rows.dtype.names or ()):
        raise TypeError(f"{owner}: rows must come from {maker}, got {_checks.shortened(rows)}")


@on_axes
def diagram(rows, coordinate=0, *, ax=None):
    """Draw a sweep: a bifurcation diagram of one parameter, a colour for each direction, or a chart of periods over two.

    Parameters
    ----------
    rows : numpy.ndarray
        From `nsds.sweep`.
    coordinate : int
        Which state of the points; not of charts.

    Raises
    ------
    TypeError, ValueError
        Rows of something else; a coordinate that there is not.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> def logistic(x, p, out):
    ...     out[0] = p[0] * x[0] * (1 - x[0])
    >>> rows = nsds.sweep(nsds.iterated_map(logistic, x=[0.6], p=[2.5]), vary={"p[0]": np.linspace(2.8, 4.0, 100)})
    >>> nsds.plotting.diagram(rows).get_ylabel()
    'x[0]'
    """
    owner = "diagram"
    _rows(owner, rows, "nsds.sweep", "parameters", "x", "n_points", "n_periods", "status")
    if rows["parameters"].shape[-1] == 2:
        return _chart(owner, rows, ax)
    coordinate = _checks.integer(owner, "coordinate", coordinate, low=0, high=rows["x"].shape[-1] - 1)
    ax = own_or_new(owner, ax)
    for k, of_direction in enumerate(np.atleast_2d(rows)):
        is_there = np.arange(of_direction["x"].shape[1]) < of_direction["n_points"][:, None]
        values = np.broadcast_to(of_direction["parameters"], is_there.shape)
        ax.plot(values[is_there], of_direction["x"][..., coordinate][is_there], ".", markersize=1.5, color=f"C{k}", rasterized=True)
    ax.set(xlabel="parameter", ylabel=f"x[{coordinate}]")
    return ax


def _chart(owner, rows, ax):
    """Chart of periods over two parameters: a colour for each, up to a number; motions that do not repeat are grey."""
    if rows.ndim != 2:
        raise ValueError(f"{owner}: rows of two parameters must have two axes, got the shape {rows.shape}")
    ax, periods = own_or_new(owner, ax), np.minimum(rows["n_periods"], _MOST_PERIODS)
    names = [f"{n}" for n in range(1, _MOST_PERIODS)] + [f"{_MOST_PERIODS} and more"]
    labels = np.where(rows["status"] == CONVERGED, periods - 1, -2)
    _coloured(ax, rows["parameters"][:, 0, 0], rows["parameters"][0, :, 1], labels, names)
    ax.set(xlabel="first parameter", ylabel="second parameter")
    return ax


def _coloured(ax, x, y, labels, names):
    """A map of labels (x, y), with a legend of those that occur: -1 is grey, less is white."""
    import matplotlib as mpl

    wheel = mpl.colormaps[_PALETTE](np.arange(len(names)) % _N_COLOURS)
    colours = np.array([mpl.colors.to_rgba(_BLANK), mpl.colors.to_rgba(_PLAIN), *wheel])
    ax.pcolormesh(x, y, colours[np.maximum(labels, -2) + 2].transpose(1, 0, 2), shading="nearest", rasterized=True)
    for k, name in enumerate(["none", *names][: _N_COLOURS + 1], start=-1):
        if (labels == k).any():
            ax.plot([], [], "s", color=colours[k + 2], label=name)
    legend_beside(ax)


@on_axes
def basin_map(found, grid, *, ax=None):
    """Draws basins of attraction over two initial values: a colour for each attractor; grey: no repetition, white: the run ended.

    Parameters
    ----------
    found : Basins
        From `nsds.basins`.
    grid : dict of str to array_like
        The grid that it was called with, of two axes.

    Raises
    ------
    TypeError, ValueError
        Something else than basins over this grid.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> def pendulum(x, p, out):
    ...     out[1] = x[1] - 0.3 * np.sin(x[0]) - 0.2 * x[1]
    ...     out[0] = x[0] + out[1]
    >>> grid = {"x[0]": np.linspace(-9, 9, 19), "x[1]": np.linspace(-3, 3, 13)}
    >>> found = nsds.basins(nsds.iterated_map(pendulum, x=[0.1, 0.0]), grid=grid)
    >>> nsds.plotting.basin_map(found, grid).get_xlabel()
    'x[0]'
    """
    owner = "basin_map"
    if not hasattr(found, "labels") or not hasattr(found, "attractors"):
        raise TypeError(f"{owner}: found must come from nsds.basins, got {_checks.shortened(found)}")
    if not isinstance(grid, dict) or len(grid) != 2:
        raise TypeError(f"{owner}: grid must be a dict of two initial values to what they take, got {_checks.shortened(grid)}")
    x, y = (_checks.array(owner, f"grid[{name!r}]", values, n_dims=1) for name, values in grid.items())
    if found.labels.shape != (x.size, y.size):
        raise ValueError(f"{owner}: the labels have shape {found.labels.shape}, the grid has {(x.size, y.size)}")
    ax = own_or_new(owner, ax)
    periods = found.attractors["n_periods"].tolist()
    _coloured(ax, x, y, found.labels, [f"{k}: period {n}" for k, n in enumerate(periods)])
    ax.set(**dict(zip(("xlabel", "ylabel"), grid, strict=True)))
    return ax


@on_axes
def branch(rows, coordinate=0, *, ax=None):
    """Draw a branch of periodic orbits over its parameter: stable parts as a line, others dashed, special points marked.

    Parameters
    ----------
    rows : numpy.ndarray (points,)
        From `nsds.continue_orbit`.
    coordinate : int
        Which state.
    ax : matplotlib axes, optional
        New ones by default; several branches may share one.

    Raises
    ------
    TypeError, ValueError
        Rows of something else; a coordinate that there is not.

    Examples
    --------
    >>> import nsds
    >>> def logistic(x, p, out):
    ...     out[0] = p[0] * x[0] * (1 - x[0])
    >>> rows = nsds.continue_orbit(nsds.iterated_map(logistic, x=[0.6], p=[2.5]), parameter="p[0]", until=3.5)
    >>> [text.get_text() for text in nsds.plotting.branch(rows).get_legend().get_texts()]
    ['stable', 'unstable', 'period doubling']
    """
    owner = "branch"
    _rows(owner, rows, "nsds.continue_orbit", "parameter", "x", "multipliers", "branch", "kind")
    coordinate = _checks.integer(owner, "coordinate", coordinate, low=0, high=rows["x"].shape[-1] - 1)
    # 1. parts between points are stable if both neighbours are; special points have a multiplier on the circle
    ax, x = own_or_new(owner, ax), rows["x"][:, coordinate]
    unstable = (abs(rows["multipliers"]) > 1.0 + _ON_CIRCLE).any(axis=1)
    between = unstable[1:] | unstable[:-1]  # of special points the multipliers lie on the circle: their neighbours decide
    # 2. one line for the stable parts and one for the others, with gaps between branches
    for wanted, style, name in ((False, "-", "stable"), (True, "--", "unstable")):
        chosen = np.flatnonzero((between == wanted) & (rows["branch"][1:] == rows["branch"][:-1]))
        gaps = np.full(chosen.size, np.nan)
        ends = (np.stack([values[chosen], values[chosen + 1], gaps], axis=1).ravel() for values in (rows["parameter"], x))
        if chosen.size:
            ax.plot(*ends, style, color="black", linewidth=1.2, label=name)
    _mark(ax, rows["kind"], rows["parameter"], x)
    ax.set(xlabel="parameter", ylabel=f"x[{coordinate}]")
    return ax


@on_axes
def bifurcation_curve(rows, *, ax=None):
    """Draw a curve of bifurcations in the plane of its two parameters, points at which there is another one marked.

    Parameters
    ----------
    rows : numpy.ndarray (points,)
        From `nsds.continue_bifurcation`.
    ax : matplotlib axes, optional
        New ones by default; several curves may share one.

    Raises
    ------
    TypeError
        Rows of something else.

    Examples
    --------
    >>> import nsds
    >>> def cubic(x, p, out):
    ...     out[0] = x[0] + p[0] + p[1] * x[0] - x[0] ** 3
    >>> rows = nsds.continue_bifurcation(
    ...     nsds.iterated_map(cubic, x=[0.58], p=[-0.38, 1.0]), kind="fold", parameters=("p[0]", "p[1]"), until=2.0
    ... )
    >>> nsds.plotting.bifurcation_curve(rows).get_ylabel()
    'second parameter'
    """
    owner = "bifurcation_curve"
    _rows(owner, rows, "nsds.continue_bifurcation", "parameters", "multipliers", "kind")
    ax = own_or_new(owner, ax)
    ax.plot(*rows["parameters"].T, color="black", linewidth=1.2)
    _mark(ax, rows["kind"], *rows["parameters"].T)
    ax.set(xlabel="first parameter", ylabel="second parameter")
    return ax


def _mark(ax, kinds, x, y):
    """Marks special points, with a legend beside the picture."""
    for kind, mark in _MARKS.items():
        here = kinds == kind
        if here.any():
            ax.plot(x[here], y[here], mark, markersize=6, label=kind.replace("_", " "))
    if ax.get_legend_handles_labels()[1]:
        legend_beside(ax)


@on_axes
def multipliers(rows, *, ax=None):
    """Draw Floquet multipliers of orbits in the complex plane, with the unit circle, outside of which an orbit is unstable.

    Parameters
    ----------
    rows : numpy.ndarray
        From `nsds.orbit`, `nsds.floquet` or `nsds.continue_orbit`.

    Raises
    ------
    TypeError
        Rows of something else.

    Examples
    --------
    >>> import nsds
    >>> def logistic(x, p, out):
    ...     out[0] = p[0] * x[0] * (1 - x[0])
    >>> found = nsds.orbit(nsds.iterated_map(logistic, x=[0.6], p=[2.5]))
    >>> nsds.plotting.multipliers(found).lines[1].get_xdata().round(9).tolist()
    [-0.5]
    """
    _rows("multipliers", rows, "nsds.orbit, nsds.floquet or nsds.continue_orbit", "multipliers")
    ax, found = own_or_new("multipliers", ax), np.ravel(rows["multipliers"])
    angle = np.linspace(0.0, 2 * np.pi, 361)
    ax.plot(np.cos(angle), np.sin(angle), color="0.6", linewidth=0.8)
    ax.plot(found.real, found.imag, ".", color="black")
    ax.set(xlabel="real part", ylabel="imaginary part", aspect="equal")
    return ax
