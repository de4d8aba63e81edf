"""An oscillator that a relay keeps going ([Notes], 9.5)."""

import math

from nsds.model.complementarity_system import linear_complementarity_system
from nsds.model.laws import relay
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 100.0, "h": 1e-2, "scheme": euler_moreau(theta=0.5)}


def relay_oscillator(velocity=3 / (math.pi * 2**0.5), amplitude=1.0):
    """Three states in a chain with a relay in the loop, ``x''' = -3 x' - 2 x'' - amplitude sign(x)``: relative degree 3, a limit cycle.

    Parameters
    ----------
    velocity : float
        x' at the start; x and x'' are zero.
    amplitude : float
        Bound of lambda.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``plant`` and ``switches``.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> rows = nsds.simulate(nsds.examples.relay_oscillator(), **nsds.examples.EXAMPLES["relay_oscillator"].run)
    >>> int((np.diff(np.sign(rows["switches"]["lambda"][1:])) != 0).sum())
    54
    """
    return linear_complementarity_system(
        A=[[0, 1, 0], [0, 0, 1], [0, -3, -2]], B=[[0], [0], [1]], C=[[1, 0, 0]], x=[0, velocity, 0], law=relay(-amplitude, amplitude)
    )


def draw(system, trajectory):
    """States and relay against time, and the limit cycle in the plane of x and x'."""
    drawing, axes = figure(3)
    time_series(trajectory, "plant.x", ax=axes[0]).set_ylabel("x, x', x''")
    time_series(trajectory, "switches.lambda", ax=axes[1])
    axes[2].plot(*trajectory["plant"]["x"][:, :2].T, linewidth=0.8)
    axes[2].set(xlabel="x", ylabel="x'")
    return drawing
