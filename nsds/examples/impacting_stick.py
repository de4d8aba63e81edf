"""A stick that hits the floor at a slant: Newton's restitution with friction gains energy (Kane and Levinson 1985)."""

import math

from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.lagrangian import lagrangian
from nsds.model.laws import newton_impact_friction
from nsds.model.relations_lagrangian import scleronomous
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.moreau_jean import moreau_jean

RUN = {"t_end": 0.2, "h": 1e-4, "scheme": moreau_jean(q_star=0.0)}


def lower_end(q, z, out):
    """Height of the lower end, z = (half of the length); nothing for the tangent."""
    out[0], out[1] = q[1] - z[0] * math.cos(q[2]), 0.0


def lower_end_by_q(q, z, out):
    """Normal and tangent velocities of the lower end are these rows times v."""
    out[0, 0], out[0, 1], out[0, 2] = 0.0, 1.0, z[0] * math.sin(q[2])
    out[1, 0], out[1, 1], out[1, 2] = -1.0, 0.0, -z[0] * math.cos(q[2])


def impacting_stick(e=1.0, mu=0.01, angle=math.pi / 4, rotation=0.1, length=1.0):
    """Stick of 1 kg above the floor, gravity 10 m/s²; q = (x, y, angle from the vertical) of its centre.

    Parameters
    ----------
    e, mu : float
        Restitution and friction of its lower end.
    angle, rotation : float
        Angle and angular velocity at the start (rad, rad/s).
    length : float
        Of the stick (m).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``stick`` and ``floor``; the lower end starts 1 cm above the floor.

    Notes
    -----
    The numbers are those of the case ImpactingStick of the reference collection.

    Examples
    --------
    The first impact reverses the slip, and the stick has more energy after it (J):

    >>> import numpy as np, nsds
    >>> rows = nsds.simulate(nsds.examples.impacting_stick(), **nsds.examples.EXAMPLES["impacting_stick"].run)
    >>> q, v = rows["stick"]["q"], rows["stick"]["v"]
    >>> energy = (v**2 @ [1, 1, 1 / 12]) / 2 + 10 * q[:, 1]
    >>> slip = rows["floor"]["ydot"][:, 1]
    >>> slip[[603, 604]].round(3), np.diff(energy[[603, 604]]).round(5)
    (array([ 0.465, -0.087]), array([0.00071]))
    """
    half = length / 2
    return system(
        stick=lagrangian(
            mass=[1.0, 1.0, length**2 / 12],
            fext=[0.0, -10.0, 0.0],
            q=[half * math.sin(angle), half * math.cos(angle) + 0.01, angle],
            v=[-0.5, 0.1, rotation],
        ),
        floor=interaction(scleronomous(lower_end, lower_end_by_q, m=2, z=[half]), newton_impact_friction(e, mu), on="stick"),
    )


def draw(system, trajectory):
    """Height of the lower end, its normal and tangent velocity, and impulses."""
    drawing, axes = figure(3, sharex=True)
    time_series(trajectory, "floor.y[0]", ax=axes[0])
    time_series(trajectory, "floor.ydot", ax=axes[1])
    time_series(trajectory, "floor.lambda", ax=axes[2])
    return drawing
