"""A full-wave rectifier: an LC tank behind four ideal diodes ([Notes], 9.5)."""

from nsds.model.complementarity_system import linear_complementarity_system
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 5e-3, "h": 1e-6, "scheme": euler_moreau(theta=0.5)}


def diode_bridge(voltage=10.0, capacitance=1e-6, inductance=1e-2, resistance=1e3):
    """LC tank that feeds a resistor through a bridge of four diodes: x = (voltage, current) of the tank.

    y and lambda of the diodes: of R1 and F2 current and reverse voltage, of F1 and R2 reverse voltage and current.

    Parameters
    ----------
    voltage : float
        Voltage of the capacitor at the start (V).
    capacitance, inductance : float
        Of the tank (F, H).
    resistance : float
        Load (Ohm).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``plant`` and ``switches``.

    Examples
    --------
    >>> import nsds
    >>> bridge = nsds.examples.diode_bridge()
    >>> rows = nsds.simulate(bridge, **nsds.examples.EXAMPLES["diode_bridge"].run)
    >>> load = rows["switches"]["lambda"][1:, :2].sum(axis=1)  # voltage over the resistor: it has one sign
    >>> bool(load.min() > -1e-12)
    True
    """
    c, g = 1 / capacitance, 1 / resistance
    return linear_complementarity_system(
        A=[[0, -c], [1 / inductance, 0]],
        B=[[0, 0, -c, c], [0, 0, 0, 0]],
        C=[[0, 0], [0, 0], [-1, 0], [1, 0]],
        D=[[g, g, -1, 0], [g, g, 0, -1], [1, 0, 0, 0], [0, 1, 0, 0]],
        x=[voltage, 0],
    )


def draw(system, trajectory):
    """Voltage and current of the tank, reverse voltages of R1 and F2, currents of F1 and R2."""
    drawing, axes = figure(4, sharex=True)
    for ax, name, unit in zip(axes[:2], ("plant.x[0]", "plant.x[1]"), ("voltage (V)", "current (A)"), strict=True):
        time_series(trajectory, name, ax=ax).set_ylabel(unit)
    for ax, numbers, unit in zip(axes[2:], ((0, 1), (2, 3)), ("reverse voltage (V)", "diode current (A)"), strict=True):
        time_series(trajectory, *(f"switches.lambda[{i}]" for i in numbers), ax=ax).set_ylabel(unit)
    return drawing
