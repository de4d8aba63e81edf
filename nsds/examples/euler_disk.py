"""Euler's disk: a coin that rolls round on its rim, ever faster as it settles (Moffatt 2000)."""

import math

import numpy as np

from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.laws import newton_impact_rolling_friction
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import cylinder, inertia, plane
from nsds.pictures.plotting import figure
from nsds.solvers.table import solver

RUN = {"t_end": 2.0, "h": 1e-4, "solver": solver("bodies", tol=1e-6)}

_GRAVITY, _MASS, _RADIUS, _THICKNESS = 9.81, 0.4, 0.0375, 0.013  # the toy of that name (SI)


def euler_disk(tilt=0.4, mu=0.5, mu_r=4e-4):
    """Coin on a table, tilted, that rolls on its rim about a centre at rest, and loses energy to rolling friction.

    Parameters
    ----------
    tilt : float
        Angle between the coin and the table at the start (rad).
    mu, mu_r : float
        Friction, and rolling friction (m), which takes the power ``mu_r m g`` times the angular velocity.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``coin`` and ``contacts``. It starts in the steady motion without losses.

    Notes
    -----
    In steady motion the coin turns about the line from its centre to the point of contact, which itself goes round with the rate W,
    ``W² sin(tilt) = 4 g / R`` for a thin coin; so W grows without bound as the tilt goes to zero (Moffatt, Nature 404, 833, 2000;
    Le Saux, Leine and Glocker, J. Nonlinear Sci. 15, 27, 2005). That of a thick one, from which this one starts, is `precession`.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.euler_disk(), t_end=0.2, h=2e-4)
    >>> bool(abs(rows["coin"]["q"][:, :2]).max() < 1e-3)  # the centre stays
    True
    """
    across, along = inertia(cylinder(_RADIUS, _THICKNESS), _MASS).diagonal()[1:]
    half, s, c = _THICKNESS / 2, math.sin(tilt), math.cos(tilt)
    turn = precession(tilt)
    # Body axes: x to the lowest point of the rim, z along the axis. The coin turns by w about the line to the contact, (R, 0, -half).
    w = -turn * s / _RADIUS
    shape = cylinder(_RADIUS, _THICKNESS)
    height = _RADIUS * s + half * c
    return system(
        gravity=[0, 0, -_GRAVITY],
        coin=rigid_bodies(
            _MASS,
            [across, across, along],
            q=[0, 0, height, math.cos(tilt / 2), 0, math.sin(tilt / 2), 0],
            v=[0, 0, 0, w * _RADIUS, 0, -w * half],
        ),
        contacts=collisions({"coin": shape}, newton_impact_rolling_friction(e_n=0.0, mu=mu, mu_r=mu_r), world=plane()),
    )


def precession(tilt):
    """Rate (rad/s) with which the point of contact goes round in steady motion at this tilt (rad), the centre at rest, without losses."""
    across, along = inertia(cylinder(_RADIUS, _THICKNESS), _MASS).diagonal()[1:]
    half, s, c = _THICKNESS / 2, np.sin(tilt), np.cos(tilt)
    moment = _MASS * _GRAVITY * (_RADIUS * c - half * s)
    return np.sqrt(moment * _RADIUS / s / (across * _RADIUS * c - along * half * s))


def tilts(trajectory):
    """Angle between coin and table at each row (rad)."""
    p = trajectory["coin"]["q"][:, 3:]
    return 2 * np.arcsin(np.minimum(np.hypot(p[:, 1], p[:, 2]), 1.0))


def draw(system, trajectory):
    """Tilt and height of the centre."""
    drawing, axes = figure(2, sharex=True)
    axes[0].plot(trajectory["t"], tilts(trajectory))
    axes[0].set_ylabel("tilt (rad)")
    axes[1].plot(trajectory["t"], trajectory["coin"]["q"][:, 2])
    axes[1].set(xlabel="t (s)", ylabel="height (m)")
    return drawing
