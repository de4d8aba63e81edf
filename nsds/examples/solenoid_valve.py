"""A solenoid valve closes against its spring, and opens when its coil is short-circuited: circuit and mechanism in one record."""

import math

from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.lagrangian import lagrangian
from nsds.model.laws import newton_impact
from nsds.model.relations_lagrangian import lagrangian_linear_relation
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 0.2, "h": 2e-5}

MASS, STROKE = 0.03, 3e-3  # of the plunger (kg), its displacement (m)
LEAST, MORE, REACH = 8e-3, 40e-3, 1e-3  # L(x) = LEAST + MORE REACH / (REACH + x) (H, H, m)
RESISTANCE, VOLTAGE, OFF = 10.0, 12.0, 0.1  # of the coil (Ohm, V), when it is switched off (s)
STIFFNESS, PRELOAD, DAMPING = 600.0, 0.4, 0.3  # of the spring where the valve is open (N/m, N, N s/m)


def _slope(x):
    """L'(x), by which current draws the plunger in."""
    return -MORE * REACH / (REACH + x) ** 2


def _mass(q, z, out):
    """Inductance and mass."""
    out[0, 0], out[0, 1] = LEAST + MORE * REACH / (REACH + q[1]), 0.0
    out[1, 0], out[1, 1] = 0.0, MASS


def _induction(q, v, z, out):
    """Voltage of the plunger's motion, and the force of the current."""
    slope = -MORE * REACH / (REACH + q[1]) ** 2
    out[0], out[1] = slope * v[1] * v[0], -slope * v[0] * v[0] / 2


def _coil_and_spring(t, q, v, z, out):
    """Resistance and supply, which is on before z[0]; spring and damper."""
    out[0] = RESISTANCE * v[0] - (VOLTAGE if t < z[0] else 0.0)
    out[1] = -STIFFNESS * (STROKE - q[1]) - PRELOAD + DAMPING * v[1]


def solenoid_valve(e=0.3):
    """Coil and plunger between two seats: coordinates are the charge that has flowed (A s) and the gap (m); open and without current.

    Parameters
    ----------
    e : float
        Restitution of the seat of the open valve; on the other it does not bounce.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``valve``, ``v`` of which is current (A) and speed (m/s), and the seats ``closed`` and ``open``.

    Notes
    -----
    A charge is a coordinate, its current a velocity, an inductance a mass: ``(L(x) i)' + R i = u``,
    ``m x'' = i² L'(x) / 2 + k (s - x) + F - c x'``.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.solenoid_valve(), t_end=0.05, h=2e-5)
    >>> float(rows["t"][(rows["closed"]["lambda"] > 0).argmax()].round(3)), bool(rows["valve"]["q"][-1, 1] < 1e-6)
    (0.014, True)
    """
    row = lagrangian_linear_relation
    return system(
        valve=lagrangian(_mass, fgyr=_induction, fint=_coil_and_spring, q=[0, STROKE], v=[0, 0], z=[OFF]),
        closed=interaction(row([[0, 1]]), newton_impact(0.0), on="valve"),
        open=interaction(row([[0, -1]], b=[STROKE]), newton_impact(e), on="valve"),
    )


def departures():
    """Times (s) at which the plunger leaves the open seat, and the closed one after a long hold: where current and spring balance."""
    leaves = math.sqrt(-2 * PRELOAD / _slope(STROKE))
    drops = math.sqrt(-2 * (PRELOAD + STIFFNESS * STROKE) / _slope(0.0))
    slow, fast = ((LEAST + MORE * REACH / (REACH + x)) / RESISTANCE for x in (0.0, STROKE))
    return -fast * math.log(1 - leaves * RESISTANCE / VOLTAGE), OFF + slow * math.log(VOLTAGE / RESISTANCE / drops)


def draw(system, trajectory):
    """Current and gap."""
    drawing, axes = figure(2, sharex=True)
    time_series(trajectory, "valve.v[0]", ax=axes[0]).set_ylabel("current (A)")
    time_series(trajectory, "valve.q[1]", ax=axes[1]).set_ylabel("gap (m)")
    return drawing
