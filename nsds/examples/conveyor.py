"""A belt conveyor: parcels are put on it one after the other, slip until they have its speed, and are taken off at its end."""

import numpy as np

from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.control import sampled_control
from nsds.model.laws import newton_impact_friction
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import box, inertia
from nsds.pictures.plotting import figure

RUN = {"t_end": 5.0, "h": 2e-3}

_GRAVITY, _EDGE = 9.81, 0.2  # of the parcels (m)


def _handle(t, x, state, z, u):
    """A parcel is put on each z[0] seconds, and removed beyond x = z[1]."""
    for i in range(u.size):
        if i == int(state[0]) and t > state[0] * z[0] - 1e-9:
            u[i] = 1.0
            state[0] += 1.0
        elif u[i] != 0.0 and x[7 * i] > z[1]:
            u[i] = 0.0


def conveyor(n=6, speed=1.0, mu=0.2, interval=0.7, length=2.0):
    """Parcels that begin at rest on a belt, which carries them from x = 0 to its end.

    Parameters
    ----------
    n : int
        Parcels.
    speed : float
        Of the belt (m/s).
    mu : float
        Friction between parcels and belt.
    interval : float
        From one parcel to the next (s).
    length : float
        From where parcels are put on to where they are taken off (m).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``parcels``, an array, ``contacts`` and the controller ``hands``.

    Notes
    -----
    A parcel slips for ``speed / (mu g)`` seconds, over ``speed^2 / (2 mu g)`` of the belt, which takes as much energy as it gives. The
    belt is a shape of the world whose surface moves.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.conveyor(n=2), t_end=1.0, h=2e-3)
    >>> rows["parcels"]["v"][-1, :, 0].round(3)
    array([1.   , 0.589])
    """
    parcel, mass = box([_EDGE] * 3), 2.0
    q = np.tile([0, 0, _EDGE / 2, 1.0, 0, 0, 0], (n, 1))
    band = box([length + 4 * _EDGE, 2 * _EDGE, 0.02], position=[length / 2, 0, -0.01])
    return system(
        gravity=[0, 0, -_GRAVITY],
        parcels=rigid_bodies(mass, inertia(parcel, mass), q=q, v=np.zeros((n, 6)), alive=False),
        contacts=collisions(
            {"parcels": parcel}, newton_impact_friction(e_n=0.0, mu=mu), world=band, surface_velocity={"world": [speed, 0, 0]}
        ),
        hands=sampled_control(_handle, reads="parcels.q", writes="parcels.alive", state=[0.0], z=[interval, length]),
    )


def draw(system, trajectory):
    """Places and speeds of the parcels, and how many there are."""
    drawing, axes = figure(3, sharex=True)
    for i in range(trajectory["parcels"].shape[1]):
        there = np.where(trajectory["parcels"]["alive"][:, i], 1.0, np.nan)
        axes[0].plot(trajectory["t"], there * trajectory["parcels"]["q"][:, i, 0])
        axes[1].plot(trajectory["t"], there * trajectory["parcels"]["v"][:, i, 0])
    axes[0].set_ylabel("place (m)")
    axes[1].set_ylabel("speed (m/s)")
    axes[2].plot(trajectory["t"], trajectory["parcels"]["alive"].sum(axis=1))
    axes[2].set(ylabel="parcels", xlabel="t (s)")
    return drawing
