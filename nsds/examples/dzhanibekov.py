"""A wing nut that spins about its middle axis turns over again and again (Euler 1758; seen in orbit by Dzhanibekov 1985)."""

from nsds.model.assembly import system
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import box, cylinder
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 20.0, "h": 1e-3}

_SIDE = (0.7071067811865476, 0.7071067811865476, 0.0, 0.0)  # a quarter turn about x
NUT = {"nut": [cylinder(0.012, 0.05, orientation=_SIDE), box([0.09, 0.006, 0.02], position=[0, 0.02, 0])]}  # for pictures


def dzhanibekov(spin=6.0, disturbance=0.01):
    """Wing nut that turns over: a free rigid body that spins about the axis of its middle moment of inertia, which is unstable.

    Parameters
    ----------
    spin : float
        Angular velocity about the middle axis, y of the body (rad/s).
    disturbance : float
        Angular velocity about the axis of the smallest moment, x of the body (rad/s), which grows until the nut has turned over.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the part ``nut``, without gravity.

    Notes
    -----
    Euler's equations have the solution ``Omega_y = spin sn(lambda t + K | m)`` where the disturbance is about x (Landau and Lifshitz,
    Mechanics, section 37): the nut turns over every ``2 K(m) / lambda``.

    Examples
    --------
    It has turned over after three seconds, and spins the other way:

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.dzhanibekov(), t_end=6.0, h=1e-3)
    >>> rows["nut"]["v"][[0, 6000], 4].round(1)
    array([ 6., -6.])
    """
    moments = [1.0e-5, 1.5e-5, 2.3e-5]  # kg m²
    return system(nut=rigid_bodies(0.05, moments, q=[0, 0, 0, 1, 0, 0, 0], v=[0, 0, 0, disturbance, spin, 0]))


def draw(system, trajectory):
    """Angular velocities in axes of the body."""
    drawing, axes = figure(2, sharex=True)
    time_series(trajectory, "nut.v[4]", ax=axes[0]).set_ylabel("about the middle axis (rad/s)")
    time_series(trajectory, "nut.v[3]", "nut.v[5]", ax=axes[1]).set_ylabel("about the others (rad/s)")
    return drawing
