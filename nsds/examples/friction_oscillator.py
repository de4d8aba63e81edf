"""Two masses on springs, one of which rubs on the ground while the other is shaken: dry friction as a relay."""

import math

from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import relay
from nsds.model.relations_first_order import first_order_linear_relation
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 500.0, "h": 5e-2, "scheme": euler_moreau(theta=0.5)}


def shaking(t, z, out):
    """Force z[0] cos(z[1] t) on the first mass."""
    out[0], out[1], out[2], out[3] = 0.0, z[0] * math.cos(z[1] * t), 0.0, 0.0


def friction_oscillator(friction=0.5, amplitude=1.0, omega=0.3, start=1.0):
    """Two unit masses, ``x1'' = -2 x1 + x2 + amplitude cos(omega t)``, ``x2'' = x1 - x2 + lambda``, lambda = -friction sign(x2').

    Parameters
    ----------
    friction : float
        Force at which the second mass slides (N).
    amplitude, omega : float
        Of the force on the first mass (N, rad/s).
    start : float
        Displacement of the first mass at the start (m); all else is zero.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``masses`` (x = displacement and velocity of the first, then of the second) and ``ground``.

    Notes
    -----
    The numbers are those of the case two_dof_friction_oscillator of the reference collection.

    Examples
    --------
    The second mass sticks two thirds of the time, the friction being between its bounds:

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.friction_oscillator(), **nsds.examples.EXAMPLES["friction_oscillator"].run)
    >>> float((abs(rows["masses"]["x"][:, 3]) < 1e-12).mean().round(2)), float((abs(rows["ground"]["lambda"]) < 0.5).mean().round(2))
    (0.66, 0.66)
    """
    return system(
        masses=first_order_linear(
            A=[[0, 1, 0, 0], [-2, 0, 1, 0], [0, 0, 0, 1], [1, 0, -1, 0]], b=shaking, x=[start, 0, 0, 0], z=[amplitude, omega]
        ),
        ground=interaction(first_order_linear_relation(C=[[0, 0, 0, 1]], B=[[0], [0], [0], [1]]), relay(-friction, friction), on="masses"),
    )


def draw(system, trajectory):
    """Displacements, velocity of the mass that rubs, and its friction."""
    drawing, axes = figure(3, sharex=True)
    time_series(trajectory, "masses.x[0]", "masses.x[2]", ax=axes[0]).set_ylabel("displacement (m)")
    time_series(trajectory, "masses.x[3]", ax=axes[1])
    time_series(trajectory, "ground.lambda", ax=axes[2]).set_ylabel("friction (N)")
    return drawing
