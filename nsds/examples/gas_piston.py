"""A piston that compresses gas: crank with a flywheel, rod, and a piston on a gas spring."""

import numpy as np

from nsds.model import joints
from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.laws import equality, force_law
from nsds.model.rigid_bodies import rigid_bodies
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 0.4, "h": 2e-4}

CRANK, ROD, CLEARANCE, AREA = 0.04, 0.12, 0.012, 5e-3  # lengths (m) and area (m²)
PRESSURE, EXPONENT = 1e5, 1.4  # around the piston (Pa), of the gas
FLYWHEEL, ROD_MASS, ROD_INERTIA, PISTON = 0.05, 0.4, 5e-4, 0.6  # inertia about the axis (kg m²), kg, about the middle, kg


def _gas(t, y, ydot, z, out):
    """Force along the displacement of the piston from its outer dead centre: z[0] is that of the pressure there, z[1] the gas column."""
    out[0] = -z[0] * ((z[1] / (z[1] - y[0])) ** z[2] - 1.0)


def gas_piston(speed=80.0):
    """Crank about y, rod and piston along z, which begin at the outer dead centre, where the gas has the pressure of the surroundings.

    Parameters
    ----------
    speed : float
        Angular velocity of the crank at the start (rad/s); it must do for the compression.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``crank``, ``rod``, ``piston``, the joints ``bearing``, ``pin``, ``wrist`` and ``guide``, and ``gas``.

    Notes
    -----
    Nothing is lost: the flywheel gives to the gas and gets back. The joints are as many as the motion leaves: 18 coordinates, 17
    equations.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.gas_piston(), t_end=0.06, h=2e-4)
    >>> float(rows["gas"]["y"].max().round(4))  # twice the crank
    0.08
    """
    # 1. positions and velocities at the outer dead centre, where the crank and the rod are in line
    pin, wrist = np.array([0.0, 0, -CRANK]), np.array([0.0, 0, ROD - CRANK])
    rate = np.array([0.0, speed, 0])
    v_pin, turn = np.cross(rate, pin), np.array([0.0, speed * CRANK / ROD, 0])  # the wrist is at rest
    column, across = 2 * CRANK + CLEARANCE, [0, 1, 0]
    gas = force_law(_gas, z=[PRESSURE * AREA, column, EXPONENT])
    return system(
        crank=rigid_bodies(2.0, [FLYWHEEL] * 3, q=[0, 0, 0, 1, 0, 0, 0], v=[0, 0, 0, *rate]),
        rod=rigid_bodies(ROD_MASS, [ROD_INERTIA] * 3, q=[*(pin + wrist) / 2, 1, 0, 0, 0], v=[*v_pin / 2, *turn]),
        piston=rigid_bodies(PISTON, 1e-3, q=[*wrist, 1, 0, 0, 0], v=[0] * 6),
        bearing=interaction(joints.hinge([0, 0, 0], across), equality(), on="crank"),
        pin=interaction(joints.ball_joint(pin), equality(), on=("crank", "rod")),
        wrist=interaction(joints.hinge(wrist, across), equality(), on=("rod", "piston")),
        guide=interaction(joints.cylindrical(wrist, [0, 0, 1]), equality(), on="piston"),
        gas=interaction(joints.slide_along([0, 0, 1]), gas, on="piston"),
    )


def inertia_and_work(angle):
    """(inertia of all that moves, seen from the crank (kg m²), work that the gas has taken (J)), at angles from the outer dead centre."""
    s, c = np.sin(angle), -np.cos(angle)
    root = np.sqrt(ROD**2 - (CRANK * s) ** 2)
    z, dz = CRANK * c + root, CRANK * s - CRANK**2 * s * -c / root
    lean = CRANK * -c / root  # how fast the rod turns when the crank turns by 1
    x_rod, z_rod = -CRANK * -c / 2, (CRANK * s + dz) / 2
    inertia = FLYWHEEL + ROD_MASS * (x_rod**2 + z_rod**2) + ROD_INERTIA * lean**2 + PISTON * dz**2
    column = 2 * CRANK + CLEARANCE
    way = z - (ROD - CRANK)
    work = PRESSURE * AREA * (column / (EXPONENT - 1) * ((column / (column - way)) ** (EXPONENT - 1) - 1) - way)
    return inertia, work


def draw(system, trajectory):
    """Displacement of the piston, force of the gas, speed of the crank."""
    drawing, axes = figure(3, sharex=True)
    time_series(trajectory, "gas.y", ax=axes[0]).set_ylabel("piston (m)")
    time_series(trajectory, "gas.lambda", ax=axes[1]).set_ylabel("gas (N s)")
    time_series(trajectory, "crank.v[4]", ax=axes[2]).set_ylabel("crank (rad/s)")
    return drawing
