"""Grains in a drum that turns: they are carried up and slide down a slope (Mellmann 2001)."""

import math

import numpy as np

from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.laws import newton_impact_friction
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import inertia, plane, sphere, tube
from nsds.pictures.plotting import snapshots

RUN = {"t_end": 1.5, "h": 5e-4, "solver": "bodies", "save_every": 20, "fields": ["grains", "drum"]}

GRAIN = 0.0025  # radius (m)
_GRAVITY, _DENSITY, _WIDTH = 9.81, 2500.0, 10 * GRAIN


def rotating_drum(n=200, spin=3.0, mu=0.3, e=0.3, filling=0.35):
    """Glass beads in a drum about y that turns for ever: its mass is infinite. The end caps, planes, stand still.

    Parameters
    ----------
    n : int
        Grains; the drum is as large as the filling asks.
    spin : float
        Angular velocity of the drum about y (rad/s).
    mu, e : float
        Friction and restitution.
    filling : float
        Part of the drum that the grains, at rest, take up.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``drum``, ``grains``, an array, and ``contacts``.

    Notes
    -----
    The regime follows from the Froude number ``spin² radius / g`` and the friction of the wall (Mellmann, Powder Technology 118, 251,
    2001): here the grains roll and avalanche, and their centre stays on the side that moves up.

    Examples
    --------
    >>> import nsds
    >>> system = nsds.examples.rotating_drum(n=50)
    >>> rows = nsds.simulate(system, **nsds.examples.EXAMPLES["rotating_drum"].run | {"t_end": 0.1})
    >>> rows["grains"]["q"].shape
    (11, 50, 7)
    """
    # 1. grains on a lattice within the drum, with velocities that differ
    grain, mass = sphere(GRAIN), _DENSITY * 4 / 3 * math.pi * GRAIN**3
    radius = drum_radius(n, filling)
    q, v = np.zeros((n, 7)), np.zeros((n, 6))
    q[:, :3], q[:, 3] = _lattice(n, radius), 1.0
    v[:, :3] = np.random.default_rng(0).normal(scale=0.01, size=(n, 3))  # so that columns of the lattice do not stand
    # 2. the drum as a tube about y between two planes
    wall = tube(radius, orientation=[math.sqrt(0.5), -math.sqrt(0.5), 0, 0])  # along y
    caps = [plane([0, side, 0], offset=-_WIDTH / 2) for side in (1, -1)]
    return system(
        gravity=[0, 0, -_GRAVITY],
        drum=rigid_bodies(math.inf, 1.0, q=[0, 0, 0, 1, 0, 0, 0], v=[0, 0, 0, 0, spin, 0]),
        grains=rigid_bodies(mass, inertia(grain, mass), q=q, v=v),
        contacts=collisions(
            {"grains": grain, "drum": wall},
            newton_impact_friction(e_n=e, mu=mu),
            world=caps,
            pairs=[("grains", "grains"), ("grains", "drum"), ("grains", "world")],
        ),
    )


def drum_radius(n, filling=0.35):
    """Radius of the drum (m) of which n grains, packed with a density of 0.6, take up the part ``filling``."""
    return math.sqrt(n * 4 / 3 * GRAIN**3 / (0.6 * filling * _WIDTH))


def _lattice(n, radius):
    """Centres (n, 3) of grains that do not touch, from the bottom of the drum upwards."""
    step = 2.05 * GRAIN
    count = int(radius / step) + 1
    across = step * np.arange(-count, count + 1)
    along = step * (np.arange(int(_WIDTH / step)) - (int(_WIDTH / step) - 1) / 2)
    x, y, z = (axis.ravel() for axis in np.meshgrid(across, along, across, indexing="ij"))
    inside = np.hypot(x, z) < radius - 1.05 * GRAIN
    places = np.stack([x, y, z], axis=1)[inside]
    return places[np.lexsort(places.T)][:n]


def draw(system, trajectory):
    """The drum at three times."""
    return snapshots(system, trajectory, 3, elev=12, azim=-75)
