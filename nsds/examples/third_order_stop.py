"""Three integrators against a stop: position, velocity and acceleration jump together (Acary, Brogliato, Goeleven 2008)."""

import math

import numpy as np

from nsds.model.complementarity_system import linear_complementarity_system
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.higher_order_sweeping import higher_order_sweeping

RUN = {"t_end": 4.0, "h": 1e-3, "scheme": higher_order_sweeping()}


def push(t, z, out):
    """Towards the stop at first."""
    out[0], out[1], out[2] = 0.0, 0.0, -math.cos(t)


def third_order_stop(position=0.5):
    """``x''' = -cos t + lambda`` with ``x >= 0``: relative degree 3. It comes to rest at the stop, and leaves when the push turns.

    Parameters
    ----------
    position : float
        x at the start; x' and x'' are zero.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``plant`` and ``switches``.

    Examples
    --------
    It rests from t = 1.497 to pi/2, with ``lambda = cos t``:

    >>> import numpy as np, nsds
    >>> rows = nsds.simulate(nsds.examples.third_order_stop(), **nsds.examples.EXAMPLES["third_order_stop"].run)
    >>> rests = (rows["switches"]["y"] == 0) & (rows["t"] > 1.51)
    >>> float(rows["t"][rests].max().round(3)), bool(abs(rows["switches"]["lambda"] - np.cos(rows["t"]))[rests].max() < 1e-9)
    (1.57, True)
    """
    return linear_complementarity_system(A=np.eye(3, k=1), B=[[0], [0], [1]], C=[[1, 0, 0]], b=push, x=[position, 0, 0])


def draw(system, trajectory):
    """Position, velocity and acceleration, and the multiplier where it is no jump."""
    drawing, axes = figure(2, sharex=True)
    time_series(trajectory, "plant.x", ax=axes[0]).set_ylabel("x, x', x''")
    resting = time_series(trajectory, "switches.lambda", ax=axes[1])
    resting.set(ylim=(0, 1), ylabel="lambda at rest")
    return drawing
