"""A double pendulum beside a wall that both of its masses hit."""

import math

from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.lagrangian import lagrangian
from nsds.model.laws import newton_impact
from nsds.model.relations_lagrangian import scleronomous
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 5.0, "h": 5e-4}

_GRAVITY = 10.0


def mass_matrix(q, z, out):
    """M(q); z = (mass, length) of the second pendulum, those of the first are 1."""
    out[0, 0], out[1, 1] = 1.0 + z[0], z[0] * z[1] ** 2
    out[0, 1] = out[1, 0] = z[0] * z[1] * math.cos(q[0] - q[1])


def centrifugal(q, v, z, out):
    """Terms with squares of the velocities."""
    arm = z[0] * z[1] * math.sin(q[0] - q[1])
    out[0], out[1] = arm * v[1] ** 2, -arm * v[0] ** 2


def weight(t, q, v, z, out):
    """Moments of the weights."""
    out[0], out[1] = (1.0 + z[0]) * _GRAVITY * math.sin(q[0]), z[0] * _GRAVITY * z[1] * math.sin(q[1])


def force_by_q(t, q, v, z, out):
    """Derivative of `weight` and `centrifugal` by q."""
    arm = z[0] * z[1] * math.cos(q[0] - q[1])
    out[0, 0], out[0, 1] = arm * v[1] ** 2 + (1.0 + z[0]) * _GRAVITY * math.cos(q[0]), -arm * v[1] ** 2
    out[1, 0], out[1, 1] = -arm * v[0] ** 2, arm * v[0] ** 2 + z[0] * _GRAVITY * z[1] * math.cos(q[1])


def force_by_v(t, q, v, z, out):
    """Derivative of `centrifugal` by v."""
    arm = z[0] * z[1] * math.sin(q[0] - q[1])
    out[0, 0] = out[1, 1] = 0.0
    out[0, 1], out[1, 0] = 2.0 * arm * v[1], -2.0 * arm * v[0]


def first_gap(q, z, out):
    """Distance of the first mass from the wall."""
    out[0] = math.sin(q[0])


def first_gap_by_q(q, z, out):
    """Its derivative by q."""
    out[0, 0], out[0, 1] = math.cos(q[0]), 0.0


def second_gap(q, z, out):
    """Distance of the second mass from the wall, z = (length)."""
    out[0] = math.sin(q[0]) + z[0] * math.sin(q[1])


def second_gap_by_q(q, z, out):
    """Its derivative by q."""
    out[0, 0], out[0, 1] = math.cos(q[0]), z[0] * math.cos(q[1])


def double_pendulum(first=0.1, second=0.2, e_first=1.0, e_second=0.0, mass=1.0, length=1.0):
    """Double pendulum whose masses hit a vertical wall below the pivot; q = angles of the rods from the vertical, gravity is 10 m/s².

    Parameters
    ----------
    first, second : float
        Angles at the start (rad).
    e_first, e_second : float
        Restitution of the masses.
    mass, length : float
        Of the second pendulum (kg, m). Those of the first are 1.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``pendulum``, ``first_wall`` and ``second_wall``.

    Notes
    -----
    The start and the restitutions are those of the case DoublePendulum of the reference collection.

    Examples
    --------
    Impacts of each mass:

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.double_pendulum(), t_end=5.0, h=5e-4)
    >>> [int((rows[wall]["lambda"] > 0).sum()) for wall in ("first_wall", "second_wall")]
    [7, 3]
    """
    return system(
        pendulum=lagrangian(mass_matrix, weight, centrifugal, None, force_by_q, force_by_v, q=[first, second], v=[0, 0], z=[mass, length]),
        first_wall=interaction(scleronomous(first_gap, first_gap_by_q, m=1), newton_impact(e_first), on="pendulum"),
        second_wall=interaction(scleronomous(second_gap, second_gap_by_q, m=1, z=[length]), newton_impact(e_second), on="pendulum"),
    )


def draw(system, trajectory):
    """Distances of both masses from the wall, angular velocities, and impulses."""
    drawing, axes = figure(3, sharex=True)
    time_series(trajectory, "first_wall.y", "second_wall.y", ax=axes[0])
    time_series(trajectory, "pendulum.v", ax=axes[1]).set_ylabel("velocity (rad/s)")
    time_series(trajectory, "first_wall.lambda", "second_wall.lambda", ax=axes[2])
    return drawing
