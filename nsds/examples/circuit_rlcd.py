"""A resonant circuit with one diode, stepped so that no energy is made or lost by the discretisation."""

import math

import numpy as np

from nsds.model.complementarity_system import linear_complementarity_system
from nsds.model.validation import valid
from nsds.pictures.plotting import figure, legend_beside, time_series
from nsds.results.trajectories import of_system
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 5.0, "h": 5e-2, "scheme": euler_moreau(theta=0.5, gamma=0.5, gamma_for_relation=True)}


def circuit_rlcd(inductance=1.0, capacitance=1 / (4 * math.pi**2), resistance=10.0, charge=1.0, current=1.0):
    """LC circuit whose capacitor can discharge through a resistor and a diode: x = (charge, current), lambda is the diode's current.

    Parameters
    ----------
    inductance, capacitance, resistance : float
        Of the three elements (H, F, Ohm).
    charge, current : float
        State at the start (C, A).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``plant`` and ``switches``.

    Examples
    --------
    What is stored and what the resistor took add up to the same at every row:

    >>> import numpy as np, nsds
    >>> circuit = nsds.examples.circuit_rlcd()
    >>> rows = nsds.simulate(circuit, **nsds.examples.EXAMPLES["circuit_rlcd"].run)
    >>> stored, dissipated = nsds.examples.circuit_rlcd_energies(circuit, rows)
    >>> bool(np.ptp(stored + dissipated) < 1e-12)
    True
    """
    return linear_complementarity_system(
        A=[[0, -1], [1 / (inductance * capacitance), 0]], B=[[1], [0]], C=[[1 / capacitance, 0]], D=[[resistance]], x=[charge, current]
    )


def circuit_rlcd_energies(system, trajectory):
    """Energy stored in capacitor and inductor, and energy that the resistor took until then (J), of every row; two arrays.

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        The record that was simulated.
    trajectory : numpy.ndarray (rows,)
        Every step saved.

    Examples
    --------
    >>> import nsds
    >>> circuit = nsds.examples.circuit_rlcd(charge=0.0, current=2.0)
    >>> float(nsds.examples.circuit_rlcd_energies(circuit, nsds.simulate(circuit, t_end=1.0, h=0.1))[0][0])
    2.0
    """
    system = valid("circuit_rlcd_energies", system)
    trajectory = of_system("circuit_rlcd_energies", system, trajectory)
    x, lam = trajectory["plant"]["x"], trajectory["switches"]["lambda"]
    elastance, resistance = system["switches"]["C"][0, 0], system["switches"]["D"][0, 0]
    inductance = elastance / system["plant"]["A"][1, 0]
    power = resistance * lam[1:] ** 2
    return (elastance * x[:, 0] ** 2 + inductance * x[:, 1] ** 2) / 2, np.append(0.0, np.cumsum(np.diff(trajectory["t"]) * power))


def draw(system, trajectory):
    """Charge and current, current of the diode, and where the energy is."""
    drawing, axes = figure(3, sharex=True)
    time_series(trajectory, "plant.x", ax=axes[0]).set_ylabel("charge (C), current (A)")
    time_series(trajectory, "switches.lambda", ax=axes[1]).set_ylabel("diode current (A)")
    stored, dissipated = circuit_rlcd_energies(system, trajectory)
    for energy, label in ((stored, "stored"), (dissipated, "dissipated"), (stored + dissipated, "sum")):
        axes[2].plot(trajectory["t"], energy, label=label)
    axes[2].set(xlabel="t (s)", ylabel="energy (J)")
    legend_beside(axes[2])
    return drawing
