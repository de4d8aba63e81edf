"""A full-wave rectifier with a capacitor behind it: two circuits and one interaction over both."""

from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import complementarity
from nsds.model.relations_first_order import first_order_linear_relation
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 5e-3, "h": 1e-6, "scheme": euler_moreau(theta=1.0)}


def filtered_bridge(voltage=10.0, capacitance=1e-6, inductance=1e-2, resistance=1e3, filter_capacitance=3e-7):
    """LC tank, bridge of four diodes, and a load with a filter capacitor.

    lambda holds the currents of the diodes R1, F1 and R2 (components 0, 2, 3) and the reverse voltage of F2 (component 1), y the others.
    The filter is empty at the start, so the tank's voltage jumps in the first step.

    Parameters
    ----------
    voltage : float
        Voltage of the tank at the start (V).
    capacitance, inductance : float
        Of the tank (F, H).
    resistance, filter_capacitance : float
        Of the load (Ohm, F).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``tank`` (voltage, current), ``load`` (voltage) and ``diodes``.

    Examples
    --------
    >>> import nsds
    >>> bridge = nsds.examples.filtered_bridge()
    >>> rows = nsds.simulate(bridge, **nsds.examples.EXAMPLES["filtered_bridge"].run)
    >>> rows["load"]["x"][:2, 0].round(3)  # the charge is shared in the first step, about 10 V 1 uF / 1.3 uF
    array([0.   , 7.686])
    """
    c, f = 1 / capacitance, 1 / filter_capacitance
    return system(
        tank=first_order_linear(A=[[0, -c], [1 / inductance, 0]], x=[voltage, 0]),
        load=first_order_linear(A=[[-f / resistance]], x=[0]),
        diodes=interaction(
            first_order_linear_relation(
                C=[[0, 0, 1], [0, 0, 0], [-1, 0, 1], [1, 0, 0]],
                B=[[0, 0, -c, c], [0, 0, 0, 0], [f, 0, f, 0]],
                D=[[0, -1, 0, 0], [1, 0, 1, -1], [0, -1, 0, 0], [0, 1, 0, 0]],
            ),
            complementarity(),
            on=("tank", "load"),
        ),
    )


def draw(system, trajectory):
    """Voltages of tank and load, and currents of three diodes."""
    drawing, axes = figure(2, sharex=True)
    time_series(trajectory, "tank.x[0]", "load.x[0]", ax=axes[0]).set_ylabel("voltage (V)")
    after = trajectory[2:]  # the currents of the first step, which fill the capacitor, would hide all others
    time_series(after, *(f"diodes.lambda[{i}]" for i in (0, 2, 3)), ax=axes[1]).set_ylabel("diode current (A)")
    return drawing
