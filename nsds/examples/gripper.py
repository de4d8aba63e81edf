"""A gripper lifts a block by friction: two fingers on guides press on it, a hoist pulls the hand up."""

import numpy as np

from nsds.model import joints
from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.control import sampled_control
from nsds.model.interactions import interaction
from nsds.model.laws import equality, force_law, newton_impact_friction
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import box, inertia, plane
from nsds.pictures.plotting import snapshots

RUN = {"t_end": 0.6, "h": 1e-3}

GRAVITY = 9.81
BLOCK, HAND, FINGER = 1.0, 2.0, 0.25  # masses (kg)
_SIDE, _PAD, _OPEN, _STARTS = 0.06, [0.01, 0.04, 0.08], 0.02, 0.2  # of block and fingers (m), opening (m), start of the hoist (s)
HULLS = {"hand": box([0.2, 0.06, 0.03])}  # for pictures


def _press(t, y, ydot, z, out):
    """A constant force of the finger's drive."""
    out[0] = z[0]


def _hoist(t, x, state, z, u):
    """The weight of the hand before z[0], then what gives hand and block an acceleration; z[1] and z[2] are these forces."""
    u[0] = z[1] if t < z[0] - 1e-9 else z[2]


def gripper(press=14.0, lift=2.0, mu=0.5):
    """A block on the ground, a hand above it on a vertical guide, and two fingers that slide in the hand.

    Parameters
    ----------
    press : float
        Force of each finger (N).
    lift : float
        Acceleration for which the hoist pulls, if the hand holds the block (m/s²).
    mu : float
        Friction.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``block``, ``hand``, ``fingers``, an array of two, ``rail``, guides, drives, ``contacts`` and the controller
        ``hoist``.

    Notes
    -----
    The block goes along as long as ``2 mu F >= m (g + a)``. With less it slips and is left behind, or stays on the ground below
    ``2 mu F = m g``.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.gripper(), t_end=0.6, h=1e-3)
    >>> rows["block"]["v"][-1, 2].round(2), rows["hand"]["v"][-1, 2].round(2)  # 0.4 s at 2 m/s²
    (np.float64(0.8), np.float64(0.8))
    """
    # 1. places of hand and fingers, the fingers open on both sides of the block
    body, pad, at = box([_SIDE] * 3), box(_PAD), _SIDE / 2 + _OPEN + _PAD[0] / 2
    height, upright = 0.14, [1.0, 0, 0, 0]
    moved = HAND + 2 * FINGER
    q = np.array([[side * at, 0, _SIDE / 2 + 0.01, *upright] for side in (-1, 1)])
    # 2. each finger slides along the hand and is pressed inwards
    drives = {}
    for i, inward in enumerate((1.0, -1.0)):
        on = (f"fingers[{i}]", "hand")
        drives[f"guide_{i}"] = interaction(joints.prismatic([1, 0, 0]), equality(), on=on)
        drives[f"drive_{i}"] = interaction(joints.slide_along([inward, 0, 0]), force_law(_press, z=[press]), on=on)
    return system(
        gravity=[0, 0, -GRAVITY],
        block=rigid_bodies(BLOCK, inertia(body, BLOCK), q=[0, 0, _SIDE / 2, *upright], v=[0] * 6),
        hand=rigid_bodies(HAND, 0.01, q=[0, 0, height, *upright], v=[0] * 6, T=np.eye(6)[:, 2:3], u=[moved * GRAVITY]),
        fingers=rigid_bodies(FINGER, inertia(pad, FINGER), q=q, v=np.zeros((2, 6))),
        rail=interaction(joints.prismatic([0, 0, 1]), equality(), on="hand"),
        **drives,
        contacts=collisions(
            {"block": body, "fingers": pad}, newton_impact_friction(e_n=0.0, mu=mu),
            world=plane(), pairs=[("block", "world"), ("block", "fingers")],
        ),
        hoist=sampled_control(
            _hoist, reads="hand", writes="hand", z=[_STARTS, moved * GRAVITY, (moved + BLOCK) * (GRAVITY + lift)]
        ),
    )  # fmt: skip


def accelerations(press, lift=2.0, mu=0.5):
    """(of the block, of the hand) (m/s²) while the hoist pulls and the fingers are beside the block."""
    grip, moved = 2 * mu * press, HAND + 2 * FINGER
    if grip >= BLOCK * (GRAVITY + lift):
        return lift, lift
    pull = (moved + BLOCK) * (GRAVITY + lift)
    return max(grip / BLOCK - GRAVITY, 0.0), (pull - grip) / moved - GRAVITY


def draw(system, trajectory):
    """The gripper at three times."""
    return snapshots(system, trajectory, 3, shapes=HULLS, elev=5.0)
