"""A chopper: an ideal switch that a clock opens and closes, and a diode that takes over (after Acary, Bonnefon, Brogliato 2010)."""

from nsds._jit import kernel
from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import mixed_complementarity
from nsds.model.relations_first_order import first_order_linear_relation
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 5e-3, "h": 1e-6, "scheme": euler_moreau(theta=1.0)}


@kernel
def _is_closed(t, period, duty):
    """1 while the switch is closed, else 0."""
    phase = t / period + 1e-9  # what is a whole number of periods may be one rounding below it
    return 1.0 if phase - int(phase) < duty else 0.0


def switch_feedthrough(t, z, out):
    """D, for z = (source voltage, period, duty)."""
    closed = _is_closed(t, z[1], z[2])
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = 1.0 - closed, closed, -1.0, 0.0


def switch_source(t, z, out):
    """e, for z = (source voltage, period, duty)."""
    out[0], out[1] = -_is_closed(t, z[1], z[2]) * z[0], 0.0


def ideal_switch(source=12.0, period=1e-4, duty=0.4, inductance=1e-4, capacitance=1e-4, resistance=5.0):
    """Step-down chopper: source, ideal switch, diode, inductor, and a load with a capacitor; x = (current, voltage of the load).

    lambda is the current i of the switch and the voltage v of the node behind it, which is the reverse voltage of the diode. With c = 1
    while the switch is closed, else 0, and E the source:

        0 = c (v - E) + (1 - c) i        the switch: no voltage over it, or no current
        0 <= x_0 - i  ⟂  v >= 0          the diode carries the rest of the inductor's current

    Parameters
    ----------
    source : float
        Voltage of the source (V).
    period, duty : float
        Of the clock (s); the switch is closed for the first part of the period, ``duty`` of it.
    inductance, capacitance, resistance : float
        Of inductor and load (H, F, Ohm).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``filter`` and ``switches``.

    Examples
    --------
    The current of the inductor falls to zero in each period, so the mean voltage depends on the load (Erickson, Maksimović, eq. 5.36):

    >>> import numpy as np, nsds
    >>> rows = nsds.simulate(nsds.examples.ideal_switch(), **nsds.examples.EXAMPLES["ideal_switch"].run)
    >>> K, duty = 2 * 1e-4 / (5.0 * 1e-4), 0.4
    >>> mean = rows["filter"]["x"][-1000:, 1].mean()
    >>> bool(abs(mean - 12.0 * 2 / (1 + np.sqrt(1 + 4 * K / duty**2))) < 0.1)
    True
    """
    c, l = 1 / capacitance, 1 / inductance
    return system(
        filter=first_order_linear(A=[[0, -l], [c, -c / resistance]], x=[0, 0]),
        switches=interaction(
            first_order_linear_relation(
                C=[[0, 0], [1, 0]], B=[[0, l], [0, 0]], D=switch_feedthrough, e=switch_source, z=[source, period, duty]
            ),
            mixed_complementarity(1),
            on="filter",
        ),
    )


def draw(system, trajectory):
    """The last five periods: voltage of the load, currents, and voltage behind the switch."""
    drawing, axes = figure(3, sharex=True)
    last = trajectory[trajectory["t"] >= trajectory["t"][-1] - 5 * system["switches"]["z"][1]]
    for ax, names, label in zip(
        axes,
        (["filter.x[1]"], ["filter.x[0]", "switches.lambda[0]"], ["switches.lambda[1]"]),
        ("load (V)", "current (A)", "behind the switch (V)"),
        strict=True,
    ):
        time_series(last, *names, ax=ax).set_ylabel(label)
    return drawing
