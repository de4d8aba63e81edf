"""A planetary gear: a motor on the sun, a fan on the carrier, planets that roll between sun and ring."""

import math

import numpy as np

from nsds.model import joints
from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.laws import equality, force_law
from nsds.model.rigid_bodies import rigid_bodies
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 0.6, "h": 5e-4}

SUN, PLANET = 0.024, 0.018  # pitch radii (m)
RING, PINS = SUN + 2 * PLANET, SUN + PLANET
_WIDTH, _DENSITY, _CARRIER = 0.02, 7800.0, 0.6  # of the wheels (m, kg/m³), mass of the carrier (kg)


def _fan(t, y, ydot, z, out):
    """Moment that opposes the motion, z[0] at rest and z[1] more by speed."""
    out[0] = -z[0] - z[1] * ydot[0]


def planetary_gear(torque=0.8, load=0.6, drag=0.02, n=3):
    """Sun, carrier and planets on hinges about z, at rest; the ring is the world.

    Parameters
    ----------
    torque : float
        On the sun (N m).
    load, drag : float
        Moment on the carrier against its motion, at rest, and by its speed (N m, N m s).
    n : int
        Planets.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``sun``, ``carrier`` and ``planets``, an array of n, hinges, the gears ``to_sun`` and
        ``to_ring``, and ``fan``.

    Notes
    -----
    Willis: the sun turns ``1 + r_ring / r_sun`` times as fast as the carrier, so that all has the inertia of one wheel, whose speed tends
    to its end exponentially.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.planetary_gear(), t_end=0.1, h=5e-4)
    >>> float((rows["sun"]["v"][-1, 5] / rows["carrier"]["v"][-1, 5]).round(9))  # 1 + 60 / 24
    3.5
    """
    z, hold = [0, 0, 1], equality()
    angles = 2 * math.pi * np.arange(n) / n
    at = PINS * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    parts = {f"pin_{i}": interaction(joints.hinge(at[i], z), hold, on=(f"planets[{i}]", "carrier")) for i in range(n)}
    return system(
        sun=_wheel(_mass(SUN), SUN, [0, 0, 0, 1, 0, 0, 0], mext=[0, 0, torque]),
        carrier=_wheel(_CARRIER, PINS, [0, 0, 0, 1, 0, 0, 0]),
        planets=_wheel(_mass(PLANET), PLANET, np.column_stack([at, np.tile([1.0, 0, 0, 0], (n, 1))])),
        axis_of_sun=interaction(joints.hinge([0, 0, 0], z), hold, on="sun"),
        axis_of_carrier=interaction(joints.hinge([0, 0, 0], z), hold, on="carrier"),
        **parts,
        to_sun=interaction(joints.gear(z, PLANET, SUN), hold, on=("planets", "sun")),
        to_ring=interaction(joints.gear(z, PLANET, -RING), hold, on="planets"),
        fan=interaction(joints.hinge_angle(z), force_law(_fan, z=[load, drag]), on="carrier"),
    )


def _mass(radius):
    return _DENSITY * _WIDTH * math.pi * radius**2


def _wheel(mass, radius, q, **forces):
    return rigid_bodies(mass, mass * radius**2 / 4 * np.array([1, 1, 2]), q=q, v=np.zeros((*np.shape(q)[:-1], 6)), **forces)


def speed_and_force(t, torque=0.8, load=0.6, drag=0.02, n=3):
    """(speed of the carrier (rad/s), force of a tooth of the sun on a planet (N)) at times t."""
    ratio, planet = 1 + RING / SUN, 1 - RING / PLANET
    sun, carrier = _mass(SUN) * SUN**2 / 2, _CARRIER * PINS**2 / 2
    inertia = sun * ratio**2 + n * _mass(PLANET) * (PLANET**2 / 2 * planet**2 + PINS**2) + carrier
    rate, end = drag / inertia, (ratio * torque - load) / drag
    return end * (1 - np.exp(-rate * t)), (torque - sun * ratio * end * rate * np.exp(-rate * t)) / (n * SUN)


def draw(system, trajectory):
    """Speeds, and the force of the sun's tooth on the first planet."""
    drawing, axes = figure(2, sharex=True)
    time_series(trajectory, "sun.v[5]", "carrier.v[5]", "planets.v[5]", ax=axes[0]).set_ylabel("speed (rad/s)")
    axes[1].plot(trajectory["t"][1:], -trajectory["to_sun"]["lambda"].reshape(len(trajectory), -1)[1:, 0] / np.diff(trajectory["t"]))
    axes[1].set(ylabel="tooth (N)", xlabel="t (s)")
    return drawing
