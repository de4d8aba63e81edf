"""A chopper: an ideal switch that a clock opens and closes, and a diode that takes over (after Acary, Bonnefon, Brogliato 2010)."""

from nsds.assembly import system
from nsds.first_order import first_order_linear
from nsds.interactions import interaction
from nsds.laws import mixed_complementarity
from nsds.plotting import figure, time_series
from nsds.relations import first_order_linear_relation
from nsds.schemes.euler_moreau import euler_moreau

RUN = {"t_end": 5e-3, "h": 1e-6, "scheme": euler_moreau(theta=1.0)}


def is_closed(t, period, duty):
    """1 while the switch is closed, else 0."""
    phase = t / period + 1e-9  # instants that should be equal are not, in floating point
    return 1.0 if phase - int(phase) < duty else 0.0


def switch_source(t, z, out):
    """e = (-c E, 0): while the switch is closed, the node has the voltage of the source; z = (E, period, duty, 1 Ohm)."""
    closed = 1.0 if t / z[1] + 1e-9 - int(t / z[1] + 1e-9) < z[2] else 0.0
    out[0], out[1] = -closed * z[0], 0.0


def switch_feedthrough(t, z, out):
    """D: its first row is ``c v = ...`` or ``(1-c) i = 0``, its second takes the switch's current from that of the diode."""
    closed = 1.0 if t / z[1] + 1e-9 - int(t / z[1] + 1e-9) < z[2] else 0.0
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = (1.0 - closed) * z[3], closed, -1.0, 0.0


def ideal_switch():
    pass
