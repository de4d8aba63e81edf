"""Two genes that regulate each other by step functions of their concentrations (Acary, de Jong, Brogliato 2014)."""

from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import relay
from nsds.model.relations_first_order import type1_relation
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 3.0, "h": 1e-3, "scheme": euler_moreau(theta=0.5)}


def thresholds(t, x, z, out):
    """y: how far the concentrations are below the thresholds z[1] and z[2]."""
    out[0], out[1], out[2], out[3] = z[1] - x[0], z[1] - x[1], z[2] - x[0], z[2] - x[1]


def thresholds_by_x(t, x, z, out):
    """Derivative of y by x."""
    out[:] = 0.0
    out[0, 0] = out[1, 1] = out[2, 0] = out[3, 1] = -1.0


def synthesis(t, lam, z, out):
    """r: each gene is made, at the rate z[0], while the other is above the lower and it is below the upper threshold."""
    out[0], out[1] = z[0] * (1.0 - lam[2]) * lam[1], z[0] * lam[0] * (1.0 - lam[3])


def synthesis_by_lam(t, lam, z, out):
    """Derivative of r by lambda."""
    out[:] = 0.0
    out[0, 1], out[0, 2] = z[0] * (1.0 - lam[2]), -z[0] * lam[1]
    out[1, 0], out[1, 3] = z[0] * (1.0 - lam[3]), -z[0] * lam[0]


def gene_network(first=1.0, second=6.0, rate=40.0, lower=4.0, upper=8.0):
    """Two genes that activate each other and repress themselves: ``x' = -decay x + r(lambda)``, lambda the step functions of x - threshold.

    Parameters
    ----------
    first, second : float
        Concentrations at the start.
    rate : float
        Of synthesis.
    lower, upper : float
        Thresholds of activation and repression.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``genes`` and ``regulation``.

    Examples
    --------
    Both concentrations end on the upper threshold, where the step functions take values between 0 and 1:

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.gene_network(), **nsds.examples.EXAMPLES["gene_network"].run)
    >>> rows["genes"]["x"][-1].round(6), rows["regulation"]["lambda"][-1].round(6)
    (array([8., 8.]), array([1. , 1. , 0.1, 0.7]))
    """
    return system(
        genes=first_order_linear(A=[-4.5, -1.5], x=[first, second]),
        regulation=interaction(
            type1_relation(thresholds, synthesis, m=4, C=thresholds_by_x, B=synthesis_by_lam, z=[rate, lower, upper]),
            relay(0.0, 1.0),
            on="genes",
        ),
    )


def draw(system, trajectory):
    """Concentrations, and step functions of the thresholds."""
    drawing, axes = figure(2, sharex=True)
    time_series(trajectory, "genes.x", ax=axes[0]).set_ylabel("concentration")
    time_series(trajectory, "regulation.lambda", ax=axes[1]).set_ylabel("step function")
    return drawing
