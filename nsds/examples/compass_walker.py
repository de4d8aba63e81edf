"""A biped walks down a slope without a motor: two legs on a hip, whose feet strike the ground in turn."""

import math

import numpy as np

from nsds.model import joints
from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.control import sampled_control
from nsds.model.interactions import interaction
from nsds.model.laws import equality, newton_impact_friction
from nsds.model.planar_bodies import planar_bodies
from nsds.model.shapes import half_plane, polygon
from nsds.pictures.plotting import snapshots

RUN = {"t_end": 3.0, "h": 5e-4}

GRAVITY, SLOPE = 9.81, math.radians(3.0)
BELOW, ABOVE = 0.5, 0.5  # of a leg's centre of mass: to its foot, to the hip (m)
LEG, INERTIA, HIP = 5.0, 0.02, 10.0  # mass and moment of inertia of a leg, mass of the hip (kg, kg m²)
# Just after a strike, in the walk that repeats itself: half the angle between the legs (rad), rates of stance and swing leg (rad/s).
WALK, PERIOD = (0.27252185, 1.09150244, 0.39420246), 0.74375015


def _gait(t, x, state, z, u):
    """The foot that swings touches nothing while it passes the other leg, and the ground from when it is ahead and above it."""
    stance = int(state[0])
    swing = 1 - stance
    s, c = math.sin(2 * math.atan2(x[7 * swing + 6], x[7 * swing + 3])), math.cos(2 * math.atan2(x[7 * swing + 6], x[7 * swing + 3]))
    ahead, height, k = x[7 * swing] - x[7 * stance], x[7 * swing + 1] - z[0] * c, 14 + 6 * swing
    if ahead > 0.0 and height > z[1]:
        u[swing] = 1.0
    elif u[swing] == 1.0 and abs(x[k] + x[k + 5] * z[0] * c) + abs(x[k + 1] + x[k + 5] * z[0] * s) < z[1]:
        u[stance], state[0] = 0.0, swing  # it stands


def compass_walker(mu=0.8, push=0.0):
    """Two straight legs with point feet and a heavy hip in the plane; x points down the slope, the coordinates are its own.

    Parameters
    ----------
    mu : float
        Friction of the feet.
    push : float
        Of the rate of the stance leg at the start beside that of the repeated walk (rad/s).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``legs``, an array of two, the first of which stands, ``hip``, the hinges ``hip_joint`` and ``axle``,
        ``contacts`` and the controller ``gait``.

    Notes
    -----
    Legs that do not bend scuff the ground as they pass each other; here the foot that swings is not there in the meantime, as in the
    literature (Goswami, Thuilot, Espiau, International Journal of Robotics Research 17, 1998, 1282–1301). Each strike takes the energy
    that the slope has given; a walk that is disturbed a little finds back.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.compass_walker(), t_end=3.0, h=5e-4)
    >>> float((rows["hip"]["q"][-1, 0] - rows["hip"]["q"][0, 0]).round(2))  # four steps of 0.54 m
    2.17
    """
    # 1. the hip and its velocity in the state of the repeated walk, seen along the slope
    half, stands, swings = WALK
    z, hip = [0, 0, 1], np.array([-math.sin(half), math.cos(half)]) * (BELOW + ABOVE)
    rates = np.array([stands + push, swings])
    v_hip = rates[0] * (BELOW + ABOVE) * np.array([math.cos(half), math.sin(half)])
    # 2. legs from the hip downwards, with the velocities that follow from its own and their rotation
    q, v = np.zeros((2, 3)), np.zeros((2, 3))
    for i, angle in enumerate((-half, half)):  # from the normal, towards the valley
        along = np.array([math.sin(angle), math.cos(angle)])
        q[i], v[i] = [*(hip - ABOVE * along), -angle], [*(v_hip - ABOVE * rates[i] * np.array([along[1], -along[0]])), -rates[i]]
    leg = polygon([[0.0, -BELOW], [0.03, ABOVE], [-0.03, ABOVE]])
    return system(
        gravity=[GRAVITY * math.sin(SLOPE), -GRAVITY * math.cos(SLOPE), 0],
        legs=planar_bodies(LEG, INERTIA, q=q, v=v),
        hip=planar_bodies(HIP, 0.1, q=[*hip, 0], v=[*v_hip, 0]),
        hip_joint=interaction(joints.hinge([*hip, 0], z), equality(), on=("legs[0]", "legs[1]")),
        axle=interaction(joints.hinge([*hip, 0], z), equality(), on=("hip", "legs[0]")),
        contacts=collisions({"legs": leg}, newton_impact_friction(e_n=0.0, mu=mu), world=half_plane(), pairs=[("legs", "world")],
                            enabled=[True, False, True]),
        gait=sampled_control(_gait, reads=("legs.q", "legs.v"), writes="contacts.enabled", state=[0.0], z=[BELOW, 1e-3]),
    )  # fmt: skip


def strikes(rows):
    """Indices of the rows in which the legs exchange their tasks."""
    return np.flatnonzero(np.diff(rows["gait"]["state"][:, 0])) + 1


def draw(system, trajectory):
    """The walker at four times."""
    return snapshots(system, trajectory, 4)
