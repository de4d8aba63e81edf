"""A shuttle docks at a station, off its centre: a latch that closes once it is near enough, and both turn together."""

import numpy as np

from nsds.model import joints
from nsds.model.assembly import system
from nsds.model.control import sampled_control
from nsds.model.interactions import interaction
from nsds.model.laws import spring_damper
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import box
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 16.0, "h": 1e-2}

_MASSES, _INERTIAS = (8.0, 2.0), (6.0, 0.4)  # of station and shuttle (kg, kg m²)
_PORT = np.array([1.0, 0.8, 0.0])  # centre of the shuttle once it has docked, seen from the station (m)
HULLS = {"station": box([1.6, 2.0, 0.6]), "shuttle": box([0.4, 0.4, 0.4])}  # for pictures


def _capture(t, x, state, z, u):
    """The latch closes where the shuttle is no farther than z[0] from its berth, and stays so."""
    if x[0] * x[0] + x[1] * x[1] + x[2] * x[2] <= z[0] * z[0]:
        u[0] = 1.0


def docking(speed=0.25, start=1.0, reach=0.02, stiffness=40.0, damping=25.0):
    """A shuttle comes along x to its berth on a station at rest, where a soft latch takes hold of it.

    Parameters
    ----------
    speed : float
        Of the shuttle (m/s).
    start : float
        Its way to the berth (m).
    reach : float
        Distance from the berth at which the latch closes (m).
    stiffness, damping : float
        Of the latch, for each of the six ways in which the shuttle may move in its berth (N/m, N m/rad and N s/m, N m s/rad).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``station``, ``shuttle``, ``latch`` and the controller ``probe``.

    Notes
    -----
    The latch is drawn where it holds, and the shuttle is moved away after that. It keeps momentum and angular momentum, so both move on
    with a fifth of the shuttle's speed and turn as its momentum about their common centre says.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.docking(), t_end=5.0, h=1e-2)
    >>> float(rows["t"][rows["latch"]["enabled"].argmax()])
    3.93
    """
    (heavy, light), (slow, quick) = _MASSES, _INERTIAS
    latch = spring_damper(stiffness * np.eye(6), damping * np.eye(6))
    result = system(
        station=rigid_bodies(heavy, slow, q=[0, 0, 0, 1, 0, 0, 0], v=[0] * 6),
        shuttle=rigid_bodies(light, quick, q=[*_PORT, 1, 0, 0, 0], v=[-speed, 0, 0, 0, 0, 0]),
        latch=interaction(joints.fixed_joint(), latch, on=("shuttle", "station"), enabled=False),
        probe=sampled_control(_capture, reads="latch.y", writes="latch.enabled", z=[reach]),
    )
    result["shuttle"]["q"][0] += start
    return result


def spin(speed):
    """Angular velocity of both about z (rad/s), and their common velocity along x (m/s), after a shuttle of some speed has docked."""
    (heavy, light), (slow, quick) = _MASSES, _INERTIAS
    reduced = heavy * light / (heavy + light)
    return reduced * speed * _PORT[1] / (slow + quick + reduced * (_PORT @ _PORT)), -light * speed / (heavy + light)


def draw(system, trajectory):
    """Displacement of the shuttle from its berth, force of the latch, and angular velocities of both."""
    drawing, axes = figure(3, sharex=True)
    time_series(trajectory, "latch.y[0]", ax=axes[0]).set_ylabel("way (m)")
    time_series(trajectory, "latch.lambda[0]", ax=axes[1]).set_ylabel("impulse (N s)")
    time_series(trajectory, "station.v[5]", "shuttle.v[5]", ax=axes[2]).set_ylabel("turning (rad/s)")
    return drawing
