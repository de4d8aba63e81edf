"""A door falls into its latch, or bounces off it: a bevelled bolt on a spring, which the edge of a strike pushes back."""

import math

import numpy as np

from nsds.model import joints
from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.interactions import interaction
from nsds.model.laws import equality, force_law, newton_impact
from nsds.model.planar_bodies import planar_bodies
from nsds.model.shapes import polygon
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 0.9, "h": 1e-4}

WIDTH, GAP, THROW, BACK, FLAT = 0.8, 0.003, 0.012, 0.008, 0.002  # of the door, to the strike, of the bolt, its faces (m)
DOOR, BOLT = 4.0, 0.05  # inertia of the door about its hinge (kg m²), mass of the bolt (kg)
STIFFNESS, PRELOAD = 1500.0, 4.0  # of the spring (N/m, N)
STRIKE = WIDTH + GAP  # distance of its edge from the hinge (m)
_ANGLE, _SHUT, _PULL = -0.08, 0.0125, 3.0  # of the door at the start, where the frame stops it (rad), on the handle (N m)


def _spring(t, y, ydot, z, out):
    """Pushes the bolt out."""
    out[0] = z[0] - z[1] * y[0]


def _handle(t, z, out):
    """Somebody pulls at the door from z[0] on, without turning the handle."""
    out[2] = -z[1] if t > z[0] else 0.0


def door_latch(speed=0.5, pulls=0.6):
    """A door in plan view, ajar, with its hinge at the origin, a bolt that slides along it, and the strike, a sharp edge.

    Parameters
    ----------
    speed : float
        Of the door at the start (rad/s); it closes counterclockwise.
    pulls : float
        When somebody begins to pull it open (s).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``door`` and ``bolt``, ``hinge``, ``guide``, ``spring``, the stops ``frame`` and ``end``, and ``contacts``.

    Notes
    -----
    No friction, so that the strike takes from the door the work of the spring, while it pushes the bolt back, and what is lost when it
    hits the bevel: `least_speed`. Behind the edge the bolt springs out, and its flat back holds the door.

    Examples
    --------
    >>> import nsds
    >>> for speed in (0.2, 0.5):
    ...     rows = nsds.simulate(nsds.examples.door_latch(speed), t_end=0.9, h=1e-4)
    ...     float(nsds.in_plane(rows["door"])[0][-1, 2].round(2)) > 0
    False
    True
    """
    c, s = math.cos(_ANGLE), math.sin(_ANGLE)
    # 1. shapes: the bolt in the frame of its tip, with bevel and flat, and the edge of the strike
    tip, half, long = WIDTH + THROW, WIDTH / 2, 0.06
    bolt = polygon(
        np.array([[tip - long, -BACK], [tip, -BACK], [tip, FLAT], [tip - THROW, FLAT + THROW], [tip - long, FLAT + THROW]]) - [tip, 0]
    )
    edge = polygon([[STRIKE, 0.0], [STRIKE + 0.05, -0.04], [STRIKE + 0.05, 0.0]])
    # 2. door and bolt turn about the hinge; the bolt slides along the door, up to the end of its displacement
    along, z = [c, s, 0], [0, 0, 1]
    return system(
        door=planar_bodies(
            3 * DOOR / WIDTH**2, DOOR / 4, q=[half * c, half * s, _ANGLE], v=[-half * s * speed, half * c * speed, speed],
            mext=_handle, z=[pulls, _PULL],
        ),
        bolt=planar_bodies(BOLT, 1e-5, q=[tip * c, tip * s, _ANGLE], v=[-tip * s * speed, tip * c * speed, speed]),
        hinge=interaction(joints.hinge([0, 0, 0], z), equality(), on="door"),
        guide=interaction(joints.prismatic(along), equality(), on=("bolt", "door")),
        spring=interaction(joints.slide_along(along), force_law(_spring, z=[PRELOAD, STIFFNESS]), on=("bolt", "door")),
        end=interaction(joints.slide_along(along, upper=0.0), newton_impact(0.0), on=("bolt", "door")),
        frame=interaction(joints.hinge_angle(z, upper=_SHUT - _ANGLE), newton_impact(0.0), on="door"),
        contacts=collisions({"bolt": bolt}, newton_impact(0.0), world=edge),
    )  # fmt: skip


def least_speed():
    """Speed (rad/s) from which on the door falls into its latch: it pays for the spring, and for the impact on the bevel."""
    # 1. work of the spring until the bolt is pushed back
    way = THROW - GAP  # of the bolt, where its flat end passes the edge
    work = PRELOAD * way + STIFFNESS * way**2 / 2
    inertia = DOOR + BOLT * (WIDTH + THROW) ** 2 + 1e-5
    # 2. impact on the bevel, seen from the door: y = FLAT + (tip - x), and the edge is on a circle about the hinge, x^2 + y^2 = STRIKE^2.
    offset = FLAT + WIDTH + THROW
    x = (offset + math.sqrt(2 * STRIKE**2 - offset**2)) / 2
    by_angle, by_bolt = (x - (offset - x)) / math.sqrt(2), 1 / math.sqrt(2)
    lost = by_angle**2 / (by_angle**2 / inertia + by_bolt**2 / BOLT)
    return math.sqrt(2 * work / (inertia - lost))


def held_angle():
    """Angle (rad) of the door at which the back of the bolt lies against the edge."""
    return math.asin(BACK / STRIKE)


def draw(system, trajectory):
    """Angle of the door, displacement of the bolt, impulses of the strike."""
    drawing, axes = figure(3, sharex=True)
    axes[0].plot(trajectory["t"], 2 * np.arctan2(trajectory["door"]["q"][:, 6], trajectory["door"]["q"][:, 3]))
    axes[0].set(ylabel="door (rad)")
    time_series(trajectory, "spring.y", ax=axes[1]).set_ylabel("bolt (m)")
    axes[2].plot(trajectory["t"], trajectory["contacts"]["lambda"][:, :, 0].sum(axis=1))
    axes[2].set(ylabel="strike (N s)", xlabel="t (s)")
    return drawing
