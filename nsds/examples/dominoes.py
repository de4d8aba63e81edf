"""A row of dominoes: the first is pushed, and a wave runs along the row (Stronge 1987)."""

import numpy as np

from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.laws import newton_impact_friction
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import box, inertia, plane
from nsds.pictures.plotting import snapshots

RUN = {"t_end": 1.2, "h": 5e-4, "solver": "bodies"}

_GRAVITY, _DENSITY = 9.81, 1150.0
SIZE = (0.0075, 0.024, 0.048)  # thickness, width, height (m)


def dominoes(n=12, gap=0.02, push=4.0, mu=0.3):
    """Row of dominoes that knock each other over; the wave soon has a speed of its own, whatever the push was.

    Parameters
    ----------
    n : int
        Dominoes.
    gap : float
        Between two of them (m).
    push : float
        Angular velocity of the first about its lower edge at the start (rad/s).
    mu : float
        Friction, with each other and with the table.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``dominoes``, an array, and ``contacts``.

    Notes
    -----
    Stronge (Proc. R. Soc. A 409, 199, 1987): the speed of the wave is near ``1.5 sqrt(g height)`` for such gaps.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.dominoes(n=4), **nsds.examples.EXAMPLES["dominoes"].run | {"t_end": 0.6})
    >>> (rows["dominoes"]["q"][-1, :, 2] < 0.02).tolist()
    [True, True, True, True]
    """
    shape = box(SIZE)
    mass = _DENSITY * np.prod(SIZE)
    q, v = np.zeros((n, 7)), np.zeros((n, 6))
    q[:, 0] = (gap + SIZE[0]) * np.arange(n)
    q[:, 2], q[:, 3] = SIZE[2] / 2, 1.0
    v[0] = [push * SIZE[2] / 2, 0, push * SIZE[0] / 2, 0, push, 0]  # about the lower edge in front
    return system(
        gravity=[0, 0, -_GRAVITY],
        dominoes=rigid_bodies(mass, inertia(shape, mass), q=q, v=v),
        contacts=collisions({"dominoes": shape}, newton_impact_friction(e_n=0.0, mu=mu), world=plane()),
    )


def draw(system, trajectory):
    """The row at four times."""
    return snapshots(system, trajectory, 4)
