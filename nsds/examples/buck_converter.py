"""A buck converter with its amplifier, comparator and two transistors, all of them piecewise linear ([Notes], 9.5)."""

import math

import numpy as np

from nsds._jit import kernel
from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import complementarity
from nsds.model.relations_first_order import first_order_linear_relation
from nsds.pictures.plotting import figure, legend_beside, time_series
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 2e-6, "h": 5e-11, "scheme": euler_moreau(theta=1.0)}

_SUPPLY, _DIODE, _RISE = 3.0, 0.8, 1e-4  # voltages of supply and diode thresholds (V); time in which the reference rises (s)
_LOW, _HIGH = -0.1, 0.1  # corners of the comparator
_SLOPE = _SUPPLY / (_HIGH - _LOW)


@kernel
def _ramp(t):
    """Saw tooth of the comparator: up to 2.25 V in 1.655 us, flat for 1 ns, down in 10 ns, zero until 1.6667 us."""
    phase = t % 1.6667e-6
    if phase < 1.655e-6:
        return 2.25 * phase / 1.655e-6
    return 2.25 * min(1.0, max(0.0, 1.0 - (phase - 1.656e-6) / 1e-8))


def buck_source(t, z, out):
    """b: the diode's threshold in the inductor, and the reference, which rises at first; z = (threshold / L, gain of the reference)."""
    out[0], out[1], out[2], out[3], out[4] = 0.0, -z[0], 0.0, 0.0, z[1] * min(t / _RISE, 1.0)


def buck_thresholds(t, z, out):
    """e: thresholds z of the twelve components, the first two minus the ramp."""
    for i in range(12):
        out[i] = z[i]
    out[0] -= _ramp(t)
    out[1] -= _ramp(t)


def buck_converter(load=10.0, reference=1.8):
    """Converter from 3 V down to the reference: x = (output voltage, inductor current, two filter states, amplifier voltage).

    The comparator's output is ``15 (lambda_0 - lambda_1)``; lambda_2 to lambda_9 are the pieces of the two transistors,
    ``lambda_11 - 0.8`` is the voltage between them.

    Parameters
    ----------
    load : float
        Resistance (Ohm).
    reference : float
        Voltage wanted (V).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``circuit`` and ``switches``.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.buck_converter(), **nsds.examples.EXAMPLES["buck_converter"].run)
    >>> float(rows["circuit"]["x"][-1, 0].round(6))  # V, after 2 us
    0.01992
    """
    # 1. inductor, output capacitor, time constant and gain of the amplifier, resistors and capacitors of its filter
    L, Co, tau_amplifier = 1e-5, 2.2e-5, 1 / (2 * 3.14159 * 3e7)  # the study truncates pi
    G = 1e4 / tau_amplifier
    r11, r21, c11, r12, c21 = 15580.0, 5.613e6, 2e-11, 227800.0, 1.9e-12
    beta = 1 / r11 + 1 / r12
    alpha = beta + 1 / r21
    tau1, tau2 = r11 * c11, r21 * c21
    x21, x11 = 1 / (alpha * r21), 1 / (alpha * r11)
    # 2. state matrix, with the voltage of the inner node of the filter eliminated by alpha
    A = [
        [-1 / (load * Co) - beta * x21 / Co, 1 / Co, x21 / r11 / Co, -beta * x21 / Co, beta * x21 / Co],
        [-1 / L, 0, 0, 0, 0],
        [(1 - beta / alpha) / tau1, 0, (x11 - 1) / tau1, x21 / tau1, -x21 / tau1],
        [-beta / alpha / tau2, 0, x11 / tau2, (x21 - 1) / tau2, -(x21 - 1) / tau2],
        [-G * beta / alpha, 0, G * x11, G * x21, -G * x21 - 1 / tau_amplifier],
    ]
    # 3. inputs and outputs: lambda_11 feeds the inductor, y_0 and y_1 read the amplifier, y_11 the inductor's current
    B, C = np.zeros((5, 12)), np.zeros((12, 5))
    B[1, 11] = 1 / L
    C[0, 4] = C[1, 4] = C[11, 1] = 1.0
    D, e = _transistors()
    return system(
        circuit=first_order_linear(A, buck_source, x=np.zeros(5), z=[_DIODE / L, G * reference]),
        switches=interaction(first_order_linear_relation(C, B, D, e=buck_thresholds, z=e), complementarity(), on="circuit"),
    )


def _transistors():
    """D and thresholds: comparator (0, 1), four pieces of either transistor (2 to 5, 6 to 9), diodes (10, 11)."""
    # 1. the law of a transistor is the difference of two squares, each approximated by two pieces: corners and slopes
    threshold, half_gain = 2.0, 5.0  # V, A/V²
    corner = (_SUPPLY - threshold) / (2 * (1 + math.sqrt(2)))
    corners = np.tile([0, (1 + math.sqrt(2)) * corner], 2)
    slopes = np.array([2, 4 * math.sqrt(2), -2, -4 * math.sqrt(2)]) * corner
    second = np.array([0.0, 0, 1, 1])  # pieces that look at the drain
    p, n = slice(2, 6), slice(6, 10)
    # 2. gates behind the comparator, drains at the node between the transistors
    D, e = np.eye(12), np.zeros(12)
    D[p, 0] = D[n, 1] = _SLOPE
    D[p, 1] = D[n, 0] = -_SLOPE
    D[p, 11], D[n, 11] = -second, second
    # 3. balance of the currents at that node, and the two diodes
    D[11, p], D[11, n] = -half_gain * slopes, half_gain * slopes
    D[10:, 10:] = [[0, -1], [1, 0]]
    # 4. thresholds of the twelve components
    e[:2] = _LOW, _HIGH
    e[p] = threshold - _SUPPLY * (1 - second) + _DIODE * second + corners
    e[n] = threshold - _DIODE * second + corners
    e[10] = _SUPPLY + 2 * _DIODE
    return D, e


def draw(system, trajectory):
    """Ramp against amplifier, output of the comparator, voltage between the transistors, and what comes out."""
    drawing, axes = figure(4, sharex=True, height=2.0)
    t, lam = trajectory["t"], trajectory["switches"]["lambda"]
    axes[0].plot(t, [_ramp(time) for time in t], label="ramp")
    axes[0].plot(t, trajectory["circuit"]["x"][:, 4], label="amplifier")
    axes[0].set_ylabel("voltage (V)")
    legend_beside(axes[0])
    axes[1].plot(t, _SLOPE * (lam[:, 0] - lam[:, 1]))
    axes[1].set_ylabel("comparator (V)")
    axes[2].plot(t, lam[:, 11] - _DIODE)
    axes[2].set_ylabel("drain (V)")
    time_series(trajectory, "circuit.x[1]", ax=axes[3]).set_ylabel("inductor (A)")
    return drawing
