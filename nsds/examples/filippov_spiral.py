"""Filippov's spiral: two relays turn around the origin ever faster and reach it in finite time (Filippov 1988)."""

import numpy as np

from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import relay
from nsds.model.relations_first_order import first_order_relation
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 0.1, "h": 1e-3, "scheme": euler_moreau(theta=0.5)}


def state(t, x, lam, z, out):
    """The outputs y are the states."""
    out[0], out[1] = x[0], x[1]


def state_by_x(t, x, lam, z, out):
    """Derivative of y by x."""
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = 1.0, 0.0, 0.0, 1.0


def nothing(t, x, lam, z, out):
    """Derivatives of y by lambda and of r by x."""
    out[:] = 0.0


def turning(t, x, lam, z, out):
    """r = B lambda with B = gain [[alpha, 1 - alpha], [alpha - 1, alpha]], z = (gain, alpha)."""
    inward, around = z[0] * z[1], z[0] * (1.0 - z[1])
    out[0], out[1] = inward * lam[0] + around * lam[1], inward * lam[1] - around * lam[0]


def turning_by_lam(t, x, lam, z, out):
    """Derivative of r by lambda."""
    inward, around = z[0] * z[1], z[0] * (1.0 - z[1])
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = inward, around, -around, inward


def filippov_spiral(gain=500.0, alpha=0.01, x=3.0, y=3.0):
    """Two relays, each of which mostly pushes the other state: ``x' = B lambda``, lambda = -sign(x), through a fully nonlinear relation.

    Parameters
    ----------
    gain : float
        Speed.
    alpha : float in (0, 1)
        Share of the speed that points inwards.
    x, y : float
        State at the start.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``point`` and ``relays``.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.filippov_spiral(gain=25.0, alpha=0.2), t_end=2.0, h=1e-3)
    >>> bool(abs(rows["point"]["x"][-1]).max() < 1e-12)
    True
    """
    return system(
        point=first_order_linear(A=np.zeros(2), x=[x, y]),
        relays=interaction(
            first_order_relation(state, turning, m=2, C=state_by_x, D=nothing, K=nothing, B=turning_by_lam, z=[gain, alpha]),
            relay(),
            on="point",
        ),
    )


def draw(system, trajectory):
    """The spiral, and both relays against time."""
    drawing, axes = figure(2, height=4.0)
    axes[0].plot(*trajectory["point"]["x"].T, linewidth=0.8)
    axes[0].set(xlabel="x", ylabel="y", aspect="equal")
    time_series(trajectory, "relays.lambda", ax=axes[1])
    return drawing
