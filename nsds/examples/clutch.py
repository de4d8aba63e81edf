"""A clutch between a flywheel and a load: it slips until both turn alike, and is opened again."""

import numpy as np

from nsds.model import joints
from nsds.model.assembly import system
from nsds.model.control import sampled_control
from nsds.model.interactions import interaction
from nsds.model.laws import dry_friction, equality
from nsds.model.rigid_bodies import rigid_bodies
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 3.0, "h": 2e-3}

INERTIAS, DRIVE = (0.3, 0.2), 0.5  # of flywheel and load (kg m²), moment on the flywheel (N m)


def _pedal(t, x, state, z, u):
    """Closed from z[0] to z[1]."""
    u[0] = 1.0 if z[0] - 1e-9 < t < z[1] - 1e-9 else 0.0


def clutch(speed=20.0, torque=4.0, closes=0.5, opens=2.5):
    """A driven flywheel, a load at rest beside it, and a clutch of dry friction that the pedal switches.

    Parameters
    ----------
    speed : float
        Of the flywheel at the start (rad/s).
    torque : float
        That the clutch can bear (N m).
    closes, opens : float
        Times of the pedal (s).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``wheels``, an array of two, ``bearings``, ``clutch`` and the controller ``pedal``.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.clutch(), t_end=2.0, h=2e-3)
    >>> rows["wheels"]["v"][-1, :, 5].round(9)
    array([14., 14.])
    """
    v = np.zeros((2, 6))
    v[0, 5] = speed
    wheel = [[0.5 * moment, 0.5 * moment, moment] for moment in INERTIAS]
    q = np.array([[0, 0, 0.05 * k, 1.0, 0, 0, 0] for k in range(2)])
    return system(
        wheels=rigid_bodies(10.0, wheel, q=q, v=v, mext=[[0, 0, DRIVE], [0, 0, 0]]),
        bearings=interaction(joints.hinge([0, 0, 0], [0, 0, 1]), equality(), on="wheels"),
        clutch=interaction(joints.hinge_angle([0, 0, 1]), dry_friction(torque), on=("wheels[0]", "wheels[1]"), enabled=False),
        pedal=sampled_control(_pedal, reads="wheels.v", writes="clutch.enabled", z=[closes, opens]),
    )


def slip(speed, torque):
    """(seconds that the clutch slips, energy that it takes (J)) from when it closes on a flywheel of some speed and a load at rest."""
    flywheel, load = INERTIAS
    rate = torque / load - (DRIVE - torque) / flywheel
    return speed / rate, torque * speed**2 / (2 * rate)


def draw(system, trajectory):
    """Both speeds, and the moment of the clutch."""
    drawing, axes = figure(2, sharex=True)
    time_series(trajectory, "wheels.v[5]", "wheels.v[11]", ax=axes[0]).set_ylabel("flywheel and load (rad/s)")
    time_series(trajectory, "clutch.lambda", ax=axes[1]).set_ylabel("impulse (N m s)")
    return drawing
