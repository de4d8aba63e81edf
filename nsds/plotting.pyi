"""Types of a public module. Made from the docstrings by ``python -m tests.stubs``."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

__all__ = [
    "animate",
    "animate_plane",
    "basin_map",
    "bifurcation",
    "bifurcation_curve",
    "branch",
    "diagram",
    "figure",
    "impact_points",
    "legend_beside",
    "map_points",
    "multipliers",
    "own_or_new",
    "performance_profile",
    "performance_ratios",
    "phase_plane",
    "scene",
    "snapshots",
    "stroboscopic_points",
    "time_series",
    "values",
]

def animate(
    system: np.ndarray | dict[str, Any],
    trajectory: np.ndarray,
    path: str | PathLike[str],
    *,
    fps: float = ...,
    speed: float = ...,
    shapes: dict[str, Any] | None = ...,
    box: ArrayLike | None = ...,
    elev: float | None = ...,
    azim: float | None = ...,
    inches: float = ...,
    dpi: float = ...,
) -> int: ...
def animate_plane(
    trajectory: np.ndarray,
    lines: Callable[..., Any],
    path: str | PathLike[str],
    *,
    fps: float = ...,
    speed: float = ...,
    box: ArrayLike | None = ...,
    inches: float = ...,
    dpi: float = ...,
) -> int: ...
def basin_map(found: Any, grid: dict[str, Any], *, ax: Axes | None = ...) -> Any: ...
def bifurcation(parameter: ArrayLike, points: Sequence[Any], *, ax: Axes | None = ...) -> Any: ...
def bifurcation_curve(rows: np.ndarray, *, ax: Axes | None = ...) -> Any: ...
def branch(rows: np.ndarray, coordinate: int = ..., *, ax: Axes | None = ...) -> Any: ...
def diagram(rows: np.ndarray, coordinate: int = ..., *, ax: Axes | None = ...) -> Any: ...
def figure(rows: int = ..., *, sharex: Any = ..., height: float = ...) -> tuple[Figure, Any]: ...
def impact_points(trajectory: np.ndarray, part: str, contact: str, *, after: float = ...) -> np.ndarray: ...
def legend_beside(ax: Axes) -> Any: ...
def map_points(points: np.ndarray, coordinate: int = ..., *, ax: Axes | None = ...) -> Any: ...
def multipliers(rows: np.ndarray, *, ax: Axes | None = ...) -> Any: ...
def own_or_new(owner: Any, ax: Axes) -> Any: ...
def performance_profile(profile: np.ndarray, measure: str = ..., *, ax: Axes | None = ...) -> Any: ...
def performance_ratios(profile: np.ndarray, measure: str = ...) -> np.ndarray: ...
def phase_plane(
    trajectory: np.ndarray, part: str, coordinate: int = ..., *, other: int | None = ..., after: float = ..., ax: Axes | None = ...
) -> Any: ...
def scene(
    system: np.ndarray | dict[str, Any],
    row: np.ndarray | dict[str, Any] | None = ...,
    *,
    ax: Axes | None = ...,
    shapes: dict[str, Any] | None = ...,
    box: ArrayLike | None = ...,
    elev: float | None = ...,
    azim: float | None = ...,
) -> Any: ...
def snapshots(
    system: np.ndarray | dict[str, Any],
    trajectory: np.ndarray,
    count: int = ...,
    *,
    shapes: dict[str, Any] | None = ...,
    elev: float | None = ...,
    azim: float | None = ...,
) -> Figure: ...
def stroboscopic_points(trajectory: np.ndarray, part: str, *, period: float, after: float = ...) -> np.ndarray: ...
def time_series(trajectory: np.ndarray, *names: Any, ax: Axes | None = ...) -> Any: ...
def values(trajectory: np.ndarray, name: str) -> np.ndarray: ...
