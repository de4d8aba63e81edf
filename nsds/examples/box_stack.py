"""A tower of boxes that falls a little and stands: contacts between faces, with more forces than equations."""

import numpy as np

from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.laws import newton_impact_friction
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import box, inertia, plane
from nsds.pictures.plotting import snapshots

RUN = {"t_end": 1.0, "h": 1e-3, "solver": "bodies"}

_GRAVITY, _MASS, _SIDE = 9.81, 1.0, 0.1


def box_stack(n=6, drop=0.005, mu=0.5, offset=0.1):
    """Tower of equal boxes, each let go above the one below: it lands, comes to rest, and each box carries the weight of those above.

    Parameters
    ----------
    n : int
        Boxes.
    drop : float
        Gap below each box at the start (m).
    mu : float
        Friction.
    offset : float
        Sideways step from box to box, to and fro, as a fraction of the side; the tower stands below 1/2.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``boxes``, an array, and ``contacts``.

    Notes
    -----
    Four contacts under each box, with three components each, are more unknowns than its six equations: the forces are not unique, but
    their sum is.

    Examples
    --------
    >>> import nsds
    >>> system = nsds.examples.box_stack(n=3)
    >>> rows = nsds.simulate(system, **nsds.examples.EXAMPLES["box_stack"].run)
    >>> rows["boxes"]["q"][-1, :, 2].round(2)  # heights of the centres
    array([0.05, 0.15, 0.25])
    """
    shape = box([_SIDE] * 3)
    q = np.zeros((n, 7))
    q[:, 0] = offset * _SIDE * (np.arange(n) % 2)
    q[:, 2] = _SIDE / 2 + _SIDE * np.arange(n) + drop * np.arange(1, n + 1)
    q[:, 3] = 1.0
    return system(
        gravity=[0, 0, -_GRAVITY],
        boxes=rigid_bodies(_MASS, inertia(shape, _MASS), q=q, v=np.zeros((n, 6))),
        contacts=collisions({"boxes": shape}, newton_impact_friction(e_n=0.0, mu=mu), world=plane()),
    )


def draw(system, trajectory):
    """The tower at the start and at the end."""
    return snapshots(system, trajectory, 2)
