"""A hopper is filled, grain by grain, and emptied through its gate: bodies that are born and die, a shape that is taken away."""

import math

import numpy as np

from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.control import sampled_control
from nsds.model.laws import newton_impact_friction
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import box, inertia, sphere
from nsds.pictures.plotting import snapshots

RUN = {"t_end": 3.4, "h": 2e-3, "solver": "bodies"}

_GRAVITY, _RADIUS, _DENSITY = 9.81, 0.04, 2000.0
_MOUTH, _OPENING, _SLOPE = 0.6, 0.24, math.radians(50)  # edges of the square mouth and outlet (m), slope of the walls
_SPOUT, _GONE = 0.8, -0.6  # heights above the gate where grains are born, and below which they are removed (m)


def _supply(t, x, state, z, u):
    """Grains are born in turn, one each z[0] seconds, and die below z[1]."""
    for i in range(u.size):
        if i == int(state[0]) and t > state[0] * z[0] - 1e-9:
            u[i] = 1.0
            state[0] += 1.0
        elif u[i] != 0.0 and x[7 * i + 2] < z[1]:
            u[i] = 0.0


def _gate(t, x, state, z, u):
    """The gate, the last shape, is there until z[0]."""
    if t > z[0] - 1e-9:
        u[u.size - 1] = 0.0


def grain_hopper(n=24, interval=0.07, opens=2.4, mu=0.3):
    """Grains fall from a spout into a hopper; at a time its gate opens.

    Parameters
    ----------
    n : int
        Grains.
    interval : float
        From one birth to the next (s).
    opens : float
        Time at which the gate is taken away (s).
    mu : float
        Friction, of grains and walls.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``grains``, an array, ``contacts`` and the controllers ``supply`` and ``gate``.

    Notes
    -----
    All grains wait at the spout, until their time has come. Once they lie still, walls and gate carry their weight: what grains get from
    each other cancels in the sum of their impulses p.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.grain_hopper(n=4), t_end=0.3, h=2e-3)
    >>> rows["grains"]["alive"].sum(axis=1)[[0, 36, 71, 150]].tolist()
    [1, 2, 3, 4]
    """
    # 1. grains wait at the spout with the velocity of their birth, not yet alive
    grain, rng = sphere(_RADIUS), np.random.default_rng(1)
    mass = _DENSITY * 4 / 3 * math.pi * _RADIUS**3
    q, v = np.zeros((n, 7)), np.zeros((n, 6))
    q[:, 2], q[:, 3] = _SPOUT, 1.0
    v[:, :2], v[:, 2] = 0.2 * rng.normal(size=(n, 2)), -1.0
    # 2. four inclined walls, as boxes whose upper faces are the surfaces of the funnel, and the gate below
    length, c, s = (_MOUTH - _OPENING) / 2 / math.cos(_SLOPE), math.cos(_SLOPE / 2), math.sin(_SLOPE / 2)
    middle, height = (_MOUTH + _OPENING) / 4, length * math.sin(_SLOPE) / 2
    lift = np.array([-math.sin(_SLOPE), math.cos(_SLOPE)]) * 0.01  # half the thickness lies behind the surface
    out, up = middle - lift[0], height - lift[1]
    sides = [([out, 0, up], [c, 0, -s, 0]), ([-out, 0, up], [c, 0, s, 0]), ([0, out, up], [c, s, 0, 0]), ([0, -out, up], [c, -s, 0, 0])]
    walls = [box([length, _MOUTH, 0.02] if k < 2 else [_MOUTH, length, 0.02], position=x, orientation=p) for k, (x, p) in enumerate(sides)]
    gate = box([_OPENING, _OPENING, 0.02], position=[0, 0, -0.01])
    return system(
        gravity=[0, 0, -_GRAVITY],
        grains=rigid_bodies(mass, inertia(grain, mass), q=q, v=v, alive=False),
        contacts=collisions({"grains": grain}, newton_impact_friction(e_n=0.1, mu=mu), world=[*walls, gate], enabled=True),
        supply=sampled_control(_supply, reads="grains.q", writes="grains.alive", state=[0.0], z=[interval, _GONE]),
        gate=sampled_control(_gate, reads="grains.alive", writes="contacts.enabled", z=[opens]),
    )


def draw(system, trajectory):
    """The hopper at four times."""
    return snapshots(system, trajectory[trajectory["t"] < 2.8], 4, elev=35.0)
