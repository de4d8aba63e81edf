"""An eccentric lifts a flat follower against a spring: the force of their contact, and the speed from which on they part."""

import math

import numpy as np

from nsds.model import joints
from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.interactions import interaction
from nsds.model.laws import equality, newton_impact, spring_damper
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import box, inertia, sphere
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 0.5, "h": 2e-4}

MASS, STIFFNESS, DAMPING = 0.4, 2000.0, 4.0  # of the follower (kg) and its spring (N/m, N s/m)
RADIUS, ECCENTRICITY, PRELOAD, GRAVITY = 0.03, 0.008, 0.01, 9.81  # compression of the spring where the follower is lowest (m)


def eccentric_cam(speed=60.0):
    """A disc that turns about an axis beside its centre, a follower on a guide above it, and a spring between follower and housing.

    Parameters
    ----------
    speed : float
        Of the cam (rad/s), which nothing stops.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``cam``, ``follower``, ``housing``, ``guide``, ``spring`` and ``contacts``.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.eccentric_cam(), t_end=0.1, h=2e-4)
    >>> float(rows["follower"]["q"][:, 2].max().round(4)) - 0.043  # the highest point is there at the start
    0.0
    """
    plate, top = box([0.06, 0.06, 0.01]), RADIUS + ECCENTRICITY + 0.005
    high = top + 0.1
    cam = sphere(RADIUS, position=[0, 0, ECCENTRICITY])
    spring = joints.distance([0, 0, top], [0, 0, high], length=0.1 + 2 * ECCENTRICITY + PRELOAD)
    return system(
        gravity=[0, 0, -GRAVITY],
        cam=rigid_bodies(np.inf, 1.0, q=[0, 0, 0, 1, 0, 0, 0], v=[0, 0, 0, 0, speed, 0]),
        follower=rigid_bodies(MASS, inertia(plate, MASS), q=[0, 0, top, 1, 0, 0, 0], v=[0] * 6),
        housing=rigid_bodies(np.inf, 1.0, q=[0, 0, high, 1, 0, 0, 0], v=[0] * 6),
        guide=interaction(joints.prismatic([0, 0, 1]), equality(), on=("follower", "housing")),
        spring=interaction(spring, spring_damper(STIFFNESS, DAMPING), on=("follower", "housing")),
        contacts=collisions({"cam": cam, "follower": plate}, newton_impact(0.0)),
    )


def contact_force(t, speed):
    """Force (N) of the contact at times t, as long as it does not part: that of weight, spring, damper and inertia."""
    lift, rate = ECCENTRICITY * np.cos(speed * t), -ECCENTRICITY * speed * np.sin(speed * t)
    return MASS * (GRAVITY - speed**2 * lift) + STIFFNESS * (PRELOAD + ECCENTRICITY + lift) + DAMPING * rate


def parting_speed():
    """Speed of the cam (rad/s) from which on the follower leaves it: the least of its force, an offset and a wave, becomes zero."""
    offset = MASS * GRAVITY + STIFFNESS * (PRELOAD + ECCENTRICITY)
    # |k - m w² + i c w| e = offset, a quadratic equation for w²
    a, b, c = MASS**2, DAMPING**2 - 2 * MASS * STIFFNESS, STIFFNESS**2 - (offset / ECCENTRICITY) ** 2
    return math.sqrt((-b + math.sqrt(b * b - 4 * a * c)) / (2 * a))


def draw(system, trajectory):
    """Place of the follower and impulses of the contact."""
    drawing, axes = figure(2, sharex=True)
    time_series(trajectory, "follower.q[2]", ax=axes[0]).set_ylabel("follower (m)")
    axes[1].plot(trajectory["t"], trajectory["contacts"]["lambda"][:, :, 0].sum(axis=1))
    axes[1].set(ylabel="contact (N s)", xlabel="t (s)")
    return drawing
