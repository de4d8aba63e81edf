"""A car on four suspended wheels rolls over a step."""

import numpy as np

from nsds.model import joints
from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.interactions import interaction
from nsds.model.laws import equality, newton_impact_friction, spring_damper
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import box, inertia, plane, sphere
from nsds.pictures.plotting import snapshots

RUN = {"t_end": 1.6, "h": 1e-3}

GRAVITY, RADIUS, STEP = 9.81, 0.25, 0.04  # of the wheels, height of the step (m)
CHASSIS, HUB, WHEEL = 240.0, 4.0, 8.0  # masses (kg)
STIFFNESS, DAMPING, STRUT = 12000.0, 900.0, 0.4  # of each spring (N/m, N s/m), its length at the start (m)
BASE, TRACK, AHEAD = 1.6, 1.0, 0.1  # between axles and sides; how far the centre of mass is before the middle (m)


def suspended_car(speed=3.0):
    """Chassis, four hubs on vertical guides with spring and damper, four wheels with friction; it begins at rest on its springs.

    Parameters
    ----------
    speed : float
        At the start, at which the wheels roll (m/s).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``chassis``, ``hubs`` and ``wheels``, arrays of four, front ones first, ``guides``, ``axles``, ``springs`` and
        ``contacts``.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.suspended_car(), t_end=0.1, h=1e-3)
    >>> rows["chassis"]["q"][[0, -1], 2].round(3)
    array([0.65, 0.65])
    """
    # 1. positions of the wheels, and velocities with which they roll
    at = np.array([[x - AHEAD, y, 0] for x in (BASE / 2, -BASE / 2) for y in (TRACK / 2, -TRACK / 2)])
    body, tyre = box([2.2, 0.9, 0.3]), sphere(RADIUS)
    height = RADIUS + STRUT
    places = at + np.array([0, 0, RADIUS])
    upright = np.tile([1.0, 0, 0, 0], (4, 1))
    v = np.tile([speed, 0, 0, 0, 0, 0], (4, 1))
    rolling = v + np.array([0, 0, 0, 0, speed / RADIUS, 0])
    # 2. of each wheel: guide, axle, and a spring whose free length carries its load at rest
    parts = {}
    for i, load in enumerate(loads()):
        mount, on = places[i] + [0, 0, STRUT], (f"hubs[{i}]", "chassis")
        strut = joints.distance(places[i], mount, length=STRUT + load / STIFFNESS)
        parts[f"guide_{i}"] = interaction(joints.prismatic([0, 0, 1]), equality(), on=on)
        parts[f"spring_{i}"] = interaction(strut, spring_damper(STIFFNESS, DAMPING), on=on)
        parts[f"axle_{i}"] = interaction(joints.hinge(places[i], [0, 1, 0]), equality(), on=(f"wheels[{i}]", f"hubs[{i}]"))
    return system(
        gravity=[0, 0, -GRAVITY],
        chassis=rigid_bodies(CHASSIS, inertia(body, CHASSIS), q=[0, 0, height, 1, 0, 0, 0], v=[speed, 0, 0, 0, 0, 0]),
        hubs=rigid_bodies(HUB, 0.05, q=np.column_stack([places, upright]), v=v),
        wheels=rigid_bodies(WHEEL, 0.5 * WHEEL * RADIUS**2, q=np.column_stack([places, upright]), v=rolling),
        **parts,
        contacts=collisions(
            {"wheels": tyre}, newton_impact_friction(e_n=0.0, mu=0.8),
            world=[plane(), box([10.0, 4.0, STEP], position=[7.0, 0, STEP / 2])], pairs=[("wheels", "world")],
        ),
    )  # fmt: skip


def loads():
    """Force of each spring at rest (N): the weight of the chassis by its levers."""
    front = 0.5 + AHEAD / BASE
    return CHASSIS * GRAVITY / 2 * np.array([front, front, 1 - front, 1 - front])


def draw(system, trajectory):
    """The car at four times."""
    return snapshots(system, trajectory, 4, shapes={"chassis": box([2.2, 0.9, 0.3])}, elev=10.0)
