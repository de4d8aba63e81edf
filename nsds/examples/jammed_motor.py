"""A DC motor on a chopped supply runs into a stop and jams: circuit and mechanism in one record."""

import math

import numpy as np

from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.lagrangian import lagrangian_linear
from nsds.model.laws import dry_friction, newton_impact, relay
from nsds.model.relations_lagrangian import lagrangian_linear_relation
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 0.4, "h": 2e-5}

INDUCTANCE, RESISTANCE, CONSTANT = 4e-3, 1.0, 0.06  # of the armature (H, Ohm), of the motor (V s = N m/A)
INERTIA, FRICTION = 2e-4, 0.03  # of the rotor (kg m²), of its bearings (N m)
VOLTAGE, PERIOD, DUTY = 12.0, 5e-3, 0.5  # of the supply (V, s)


def _chopped(t, z, out):
    """The supply is on in the first part of each period, z = (V, s, part)."""
    phase = t / z[1] * (1 + 2.0**-50)
    out[0] = z[0] if phase - math.floor(phase) < z[2] else 0.0


def jammed_motor(stop=10.0, voltage=VOLTAGE):
    """Armature and rotor: coordinates are the charge that has flowed (A s) and the angle (rad); it starts at rest, without current.

    Parameters
    ----------
    stop : float
        Angle at which the rotor meets a stop (rad).
    voltage : float
        Of the supply (V).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``motor``, ``v`` of which is current (A) and speed (rad/s), ``diode``, ``friction`` and ``stop``.

    Notes
    -----
    A charge is a coordinate, its current a velocity, an inductance a mass: ``L i' + R i + K omega = u + e``, ``J omega' = K i - M``. The
    diode beside the armature keeps the current from turning: ``0 <= i``, else e. `nsds.event_driven` finds the events of the same record.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.jammed_motor(), t_end=0.3, h=2e-5)
    >>> rows["motor"]["q"][-1, 1].round(2), bool(abs(rows["motor"]["v"][-1, 1]) < 1e-12)
    (np.float64(10.0), True)
    """
    row = lagrangian_linear_relation
    return system(
        motor=lagrangian_linear(
            np.diag([INDUCTANCE, INERTIA]), C=[[RESISTANCE, CONSTANT], [-CONSTANT, 0.0]],
            fext=_chopped, z=[voltage, PERIOD, DUTY], q=[0, 0], v=[0, 0],
        ),
        diode=interaction(row([[1, 0]]), relay(0.0, np.inf), on="motor"),
        friction=interaction(row([[0, 1]]), dry_friction(FRICTION), on="motor"),
        stop=interaction(row([[0, -1]], b=[stop]), newton_impact(0.0), on="motor"),
    )  # fmt: skip


def jammed_current(voltage=VOLTAGE):
    """(Least, largest) current (A) once the rotor does not turn any more: exponentials that come again after a period."""
    on, off = (math.exp(-RESISTANCE / INDUCTANCE * part * PERIOD) for part in (DUTY, 1 - DUTY))
    largest = voltage / RESISTANCE * (1 - on) / (1 - on * off)
    return largest * off, largest


def draw(system, trajectory):
    """Current, speed and angle."""
    drawing, axes = figure(3, sharex=True)
    time_series(trajectory, "motor.v[0]", ax=axes[0]).set_ylabel("current (A)")
    time_series(trajectory, "motor.v[1]", ax=axes[1]).set_ylabel("speed (rad/s)")
    time_series(trajectory, "motor.q[1]", ax=axes[2]).set_ylabel("angle (rad)")
    return drawing
