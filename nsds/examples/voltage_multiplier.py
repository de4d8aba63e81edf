"""A cascade of capacitors and ideal diodes that makes a high voltage of a low one (Cockcroft and Walton 1932), as a netlist.

References: Kuffel, Zaengl and Kuffel, "High Voltage Engineering: Fundamentals", Newnes 2000, 2.1: ripple and drop of the voltage.
"""

from nsds import _checks
from nsds.circuits import circuit, voltage
from nsds.pictures.plotting import legend_beside
from nsds.schemes.options.event_driven import event_driven

RUN = {"t_end": 0.15, "h": 1e-5, "scheme": event_driven()}

AMPLITUDE, FREQUENCY = 10.0, 1000.0  # V, Hz


def voltage_multiplier(stages=3, capacitance=1e-6, load=3e6):
    """Cascade of doublers behind a source of 10 V at 1 kHz: each lifts the voltage by 20 V.

    Parameters
    ----------
    stages : int
        Doublers, of two capacitors and two diodes each.
    capacitance : float
        Of each capacitor (F).
    load : float
        Resistance at the output (Ohm).

    Returns
    -------
    numpy.ndarray, shape ()
        Record of the circuit; the output is the node ``s3`` of three stages, with ``s1``, ``s2`` below.

    Notes
    -----
    A load that takes the charge q in a period makes a ripple of ``n (n + 1) / 2 q / C``, and lowers the voltage by at most
    ``(4 n^3 + 3 n^2 - n) / 6 q / C``.

    Examples
    --------
    Ripple over that of the formula:

    >>> import nsds
    >>> multiplier = nsds.examples.voltage_multiplier()
    >>> rows = nsds.simulate(multiplier, **nsds.examples.EXAMPLES["voltage_multiplier"].run)
    >>> output = nsds.circuits.voltage(multiplier, rows[rows["t"] > 0.148], "s3")
    >>> q = output.mean() / 3e6 / 1000
    >>> round(float((output.max() - output.min()) / (6 * q / 1e-6)), 2)
    0.99
    """
    stages = _checks.integer("voltage_multiplier", "stages", stages, 1)
    capacitance, load = (
        _checks.number("voltage_multiplier", name, value, above=0.0) for name, value in (("capacitance", capacitance), ("load", load))
    )
    lines = ["multiplier", f"vs p0 0 sin(0 {AMPLITUDE} {FREQUENCY})", ".model ideal d", f"rl s{stages} 0 {load}"]
    for k in range(stages):  # the pumped column p0, p1, ... and the smooth one 0, s1, ...
        below = f"s{k}" if k > 0 else "0"
        lines += [f"ca{k} p{k} p{k + 1} {capacitance}", f"da{k} {below} p{k + 1} ideal"]
        lines += [f"db{k} p{k + 1} s{k + 1} ideal", f"cb{k} {below} s{k + 1} {capacitance}"]
    return circuit("\n".join(lines))


def draw(system, trajectory):
    """Voltages of the smooth column from the start on, and the output in the last five periods."""
    import matplotlib.pyplot as plt

    drawing, (start, ripple) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    stages = system["devices"]["y"].size // 2
    for k in range(1, stages + 1):
        start.plot(1e3 * trajectory["t"], voltage(system, trajectory, f"s{k}"), label=f"s{k}")
    start.set(xlabel="t (ms)", ylabel="voltage (V)")
    legend_beside(start)
    last = trajectory[trajectory["t"] > trajectory["t"][-1] - 5.0 / FREQUENCY]
    ripple.plot(1e3 * last["t"], voltage(system, last, f"s{stages}"))
    ripple.set(xlabel="t (ms)", ylabel=f"voltage of s{stages} (V)")
    return drawing
