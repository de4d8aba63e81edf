"""A two-link arm whose tip is to follow a circle, through which a wall goes."""

import math

import numpy as np

from nsds._jit import kernel
from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.lagrangian import lagrangian
from nsds.model.laws import newton_impact
from nsds.model.relations_lagrangian import scleronomous
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 4.0, "h": 1e-3}

_GRAVITY = 9.81
_CENTRE, _RADIUS, _SPEED = (1.1, 0.2), 0.4, math.pi  # circle of the tip (m, rad/s)


def mass_matrix(q, z, out):
    """M(q) of two uniform links, q = angles from the horizontal, z = (mass, length of each, and what `control` wants)."""
    inertia = z[0] * z[1] ** 2
    out[0, 0], out[1, 1] = 4.0 / 3.0 * inertia, inertia / 3.0
    out[0, 1] = out[1, 0] = inertia / 2.0 * math.cos(q[0] - q[1])


def centrifugal(q, v, z, out):
    """Terms with squares of the velocities."""
    arm = z[0] * z[1] ** 2 / 2.0 * math.sin(q[0] - q[1])
    out[0], out[1] = arm * v[1] ** 2, -arm * v[0] ** 2


def weight(t, q, v, z, out):
    """Moments of the weights."""
    out[0], out[1] = 1.5 * z[0] * _GRAVITY * z[1] * math.cos(q[0]), 0.5 * z[0] * _GRAVITY * z[1] * math.cos(q[1])


@kernel
def circle(t):
    """Wanted position, velocity and acceleration of the tip."""
    c, s = -_RADIUS * math.cos(_SPEED * t), _RADIUS * math.sin(_SPEED * t)
    return _CENTRE[0] + c, _CENTRE[1] + s, _SPEED * s, -_SPEED * c, -(_SPEED**2) * c, -(_SPEED**2) * s


def control(t, q, v, z, out):
    """Computed torque: the acceleration of the tip becomes ``a + k_d (v - p') + k_p (p - tip)``; z = (mass, length, k_p, k_d)."""
    half, k_p, k_d = z[0] / 2.0, z[2], z[3]
    c0, s0, c1, s1 = z[1] * math.cos(q[0]), z[1] * math.sin(q[0]), z[1] * math.cos(q[1]), z[1] * math.sin(q[1])
    # 1. acceleration of the tip that lets its error decay, the centripetal accelerations of the links subtracted
    p_x, p_y, v_x, v_y, a_x, a_y = circle(t)
    a_x += k_d * (v_x + s0 * v[0] + s1 * v[1]) + k_p * (p_x - c0 - c1) + c0 * v[0] ** 2 + c1 * v[1] ** 2
    a_y += k_d * (v_y - c0 * v[0] - c1 * v[1]) + k_p * (p_y - s0 - s1) + s0 * v[0] ** 2 + s1 * v[1] ** 2
    # 2. inverse kinematics: angular accelerations of the links
    determinant = c0 * s1 - s0 * c1
    first, second = (c1 * a_x + s1 * a_y) / determinant, -(c0 * a_x + s0 * a_y) / determinant
    # 3. inverse dynamics: torques of the motors
    inertia, coupling, twist = 2.0 / 3.0 * half * z[1] ** 2, half * (c0 * c1 + s0 * s1), half * (s0 * c1 - c0 * s1)
    on_first = 4.0 * inertia * first + coupling * second + twist * v[1] ** 2 + 3.0 * half * _GRAVITY * c0
    on_second = coupling * first + inertia * second - twist * v[0] ** 2 + half * _GRAVITY * c1
    out[0], out[1] = on_first + on_second, on_second


def wall_gap(q, z, out):
    """Distance of the tip from the wall, z = (length, where the wall is)."""
    out[0] = z[1] - z[0] * (math.cos(q[0]) + math.cos(q[1]))


def wall_gap_by_q(q, z, out):
    """Its derivative by q."""
    out[0, 0], out[0, 1] = z[0] * math.sin(q[0]), z[0] * math.sin(q[1])


def two_link_manipulator(wall=1.3, e=0.5, mass=1.0, length=1.0, k_p=100.0, k_d=20.0):
    """Arm of two uniform links whose computed torques move its tip along a circle, which goes beyond a vertical wall.

    Parameters
    ----------
    wall : float
        Where the wall is (m); the circle goes from 0.7 to 1.5 m.
    e : float
        Restitution of the tip.
    mass, length : float
        Of each link (kg, m); the circle is within reach from 0.77 m on.
    k_p, k_d : float
        Gains of the controller (1/s², 1/s).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``arm`` (q = angles of the links from the horizontal, T and u the torques of the motors) and ``wall``.

    Examples
    --------
    Until it hits the wall, the tip follows the circle as closely as the scheme is accurate:

    >>> import numpy as np, nsds
    >>> rows = nsds.simulate(nsds.examples.two_link_manipulator(), t_end=0.5, h=1e-3)
    >>> tip = np.cos(rows["arm"]["q"]).sum(axis=1)
    >>> bool(abs(tip - 1.1 + 0.4 * np.cos(np.pi * rows["t"])).max() < 2e-5)
    True
    """
    # inverse kinematics of the start: the tip on its circle, with its velocity
    x, y, v_x, v_y, _, _ = getattr(circle, "py_func", circle)(0.0)
    direction, half_opening = math.atan2(y, x), math.acos(math.hypot(x, y) / (2 * length))
    q = np.array([direction + half_opening, direction - half_opening])
    by_q = length * np.array([-np.sin(q), np.cos(q)])
    return system(
        arm=lagrangian(
            mass_matrix,
            weight,
            centrifugal,
            q=q,
            v=np.linalg.solve(by_q, [v_x, v_y]),
            z=[mass, length, k_p, k_d],
            T=[[1, -1], [0, 1]],
            u=control,
        ),
        wall=interaction(scleronomous(wall_gap, wall_gap_by_q, m=1, z=[length, wall]), newton_impact(e), on="arm"),
    )


def draw(system, trajectory):
    """Path of the tip with the wall, its distance from the wall, and impulses."""
    drawing, axes = figure(3, height=3.2)
    q, (length, wall) = trajectory["arm"]["q"], system["wall"]["z"]
    axes[0].plot(length * np.cos(q).sum(axis=1), length * np.sin(q).sum(axis=1), linewidth=0.8)
    axes[0].axvline(wall, color="C1", linewidth=0.8)
    axes[0].set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
    time_series(trajectory, "wall.y", ax=axes[1])
    time_series(trajectory, "wall.lambda", ax=axes[2])
    return drawing
