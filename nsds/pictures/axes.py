"""Matplotlib axes: new ones, or those of a user."""

from nsds import _checks
from nsds._docstrings import with_sections
from nsds.pictures.scenes import require_matplotlib

_MOST_AXES = 1000
_AX = """ax : matplotlib axes, optional
    New ones by default."""
on_axes = with_sections(Parameters=_AX, Returns="matplotlib axes")  # of what draws on the axes of a user, or new ones


def figure(rows=1, *, sharex=False, height=2.6):
    """New figure with axes below one another; returns (figure, axes), axes being one or an array.

    Raises
    ------
    ImportError
        matplotlib is not installed; the message names the extra.
    """
    require_matplotlib()
    rows, sharex = _checks.integer("figure", "rows", rows, low=1, high=_MOST_AXES), _checks.flag("figure", "sharex", sharex)
    height = _checks.number("figure", "height", height, above=0.0)
    import matplotlib.pyplot as plt

    return plt.subplots(rows, 1, sharex=sharex, figsize=(8.0, max(4.5, height * rows)), layout="constrained")


def own_or_new(owner, ax):
    """The axes given by a user, or new ones."""
    if ax is not None and not hasattr(ax, "plot"):
        raise TypeError(f"{owner}: ax must be matplotlib axes, got {_checks.shortened(ax)}")
    return figure()[1] if ax is None else ax


def legend_beside(ax):
    """Legend to the right of the axes, off the curves, if the figure's layout makes room for it; else where it covers least."""
    if ax.figure.get_layout_engine() is None:
        return ax.legend()
    return ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2, fontsize="small", frameon=False)
