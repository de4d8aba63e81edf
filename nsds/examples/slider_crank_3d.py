"""A slider-crank in space: the crank turns across the path of the slider (Haug 1989)."""

import math

import numpy as np

from nsds.maths.rotations import turned_back
from nsds.model import joints
from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.laws import equality
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import box, capsule
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 2.0, "h": 5e-4}

_CENTRE = np.array([0.0, 0.1, 0.12])  # of the crank (m)
_CRANK, _ROD, _GRAVITY = 0.08, 0.3, 9.81
LINKS = {
    "crank": capsule(0.008, _CRANK),
    "rod": capsule(0.006, _ROD, orientation=[math.sqrt(0.5), 0, math.sqrt(0.5), 0]),
    "slider": box([0.06, 0.03, 0.03]),
}  # for pictures


def slider_crank_3d(speed=6.0):
    """Crank about x, rod, and slider along x, held by two hinges, a ball joint and a cylindrical joint; it runs on its own weight.

    Parameters
    ----------
    speed : float
        Angular velocity of the crank at the start, where it points up (rad/s).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``crank``, ``rod``, ``slider`` and the joints ``pivot``, ``pin``, ``fork`` and ``guide``.

    Notes
    -----
    The dimensions and masses are those of Haug's mechanism (Computer Aided Kinematics and Dynamics of Mechanical Systems, 1989), a
    benchmark of multibody codes; here the rod has a hinge at the slider, which is free to turn about its path. 18 coordinates, 17
    equations: one degree of freedom is left.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.slider_crank_3d(), t_end=0.5, h=1e-3)
    >>> rows["slider"]["q"][[0, 500], 0].round(3)
    array([0.2  , 0.185])
    """
    # 1. positions: the crank up, the rod from its top to the slider
    top, slider = _CENTRE + np.array([0.0, 0.0, _CRANK]), np.array([0.2, 0.0, 0.0])
    along = (slider - top) / _ROD
    half = np.array([1 + along[0], 0.0, -along[2], along[1]])  # turns x to the direction of the rod
    rod_quaternion = half / np.linalg.norm(half)
    axis = np.cross([1.0, 0, 0], along)  # of the hinge at the slider
    axis /= np.linalg.norm(axis)
    # 2. velocities which all joints allow
    crank_twist = np.array([speed, 0.0, 0.0])
    v_top = np.cross(crank_twist, top - _CENTRE)
    # The slider moves with (s, 0, 0) and turns by (a, 0, 0); the rod turns by that and by b about its hinge.
    columns = np.stack([[1.0, 0, 0], np.cross([1.0, 0, 0], top - slider), np.cross(axis, top - slider)], axis=1)
    s, a, b = np.linalg.solve(columns, v_top)
    rod_twist = np.array([a, 0, 0]) + b * axis
    v_rod = np.array([s, 0, 0]) + np.cross(rod_twist, (top - slider) / 2)
    parts = {
        "crank": (0.12, [1e-5, 1e-4, 1e-4], (_CENTRE + top) / 2, [1, 0, 0, 0], v_top / 2, crank_twist),
        "rod": (0.5, [4e-4, 4e-3, 4e-3], (top + slider) / 2, rod_quaternion, v_rod, turned_back(rod_quaternion, rod_twist)),
        "slider": (2.0, [1e-4, 1e-4, 1e-4], slider, [1, 0, 0, 0], [s, 0, 0], [a, 0, 0]),
    }
    return system(
        gravity=[0, 0, -_GRAVITY],
        **{
            name: rigid_bodies(mass, moments, q=[*x, *p], v=[*velocity, *twist])
            for name, (mass, moments, x, p, velocity, twist) in parts.items()
        },
        pivot=interaction(joints.hinge(_CENTRE, [1, 0, 0]), equality(), on="crank"),
        pin=interaction(joints.ball_joint(top), equality(), on=("crank", "rod")),
        fork=interaction(joints.hinge(slider, axis), equality(), on=("rod", "slider")),
        guide=interaction(joints.cylindrical(slider, [1, 0, 0]), equality(), on="slider"),
    )


def draw(system, trajectory):
    """Displacement of the slider, angular velocity of the crank, and by how far the joints have opened."""
    drawing, axes = figure(3, sharex=True)
    time_series(trajectory, "slider.q[0]", ax=axes[0]).set_ylabel("slider (m)")
    time_series(trajectory, "crank.v[3]", ax=axes[1]).set_ylabel("crank (rad/s)")
    time_series(trajectory, "pin.y", ax=axes[2]).set_ylabel("joint (m)")
    return drawing
