"""A column of beads that falls on the floor and comes to rest: many contacts that close together."""

import numpy as np

from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.laws import newton_impact
from nsds.model.relations_lagrangian import lagrangian_linear_relation
from nsds.model.systems import lagrangian_linear
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 2.0, "h": 5e-4}


def column_of_beads(count=10, e=0.9, height=1.0, gap=0.05):
    """Beads of radius 0.1 m and mass 1 kg above one another; one coordinate each, the height of the centre.

    Parameters
    ----------
    count : int
        Number of beads, at least 2.
    e : float
        Restitution of all contacts.
    height : float
        Height of the lowest centre at the start (m).
    gap : float
        Distance between neighbours at the start (m).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the array part ``beads`` and the interactions ``floor`` and ``gaps``.

    Examples
    --------
    >>> import nsds
    >>> nsds.examples.column_of_beads(count=4)["gaps"]["element"].tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    radius = 0.1
    heights = height + (2 * radius + gap) * np.arange(count)
    return system(
        beads=lagrangian_linear(M=1.0, fext=-9.81, q=heights, v=0.0, count=count),
        floor=interaction(lagrangian_linear_relation(H=[[1.0]], b=[-radius]), newton_impact(e), on="beads[0]"),
        gaps=interaction(lagrangian_linear_relation(H=[[-1.0, 1.0]], b=[-2 * radius]), newton_impact(e), on=("beads[:-1]", "beads[1:]")),
    )


def draw(system, trajectory):
    """Heights of all beads."""
    drawing, ax = figure(1)
    time_series(trajectory, "beads.q", ax=ax)
    ax.set_ylabel("height (m)")
    return drawing
