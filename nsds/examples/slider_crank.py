"""A slider-crank mechanism with clearance: the four corners of the slider hit the guide and rub on it."""

import math

from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.lagrangian import lagrangian
from nsds.model.laws import newton_impact_friction
from nsds.model.relations_lagrangian import scleronomous
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 0.2, "h": 1e-5}

_CRANK, _ROD = 0.153, 0.306  # lengths (m)
_HALF_LENGTH, _HALF_HEIGHT = 0.05, 0.025  # of the slider (m)
_M1, _M2, _M3 = 0.038, 0.038, 0.076  # masses of crank, rod and slider (kg)
_J1, _J2, _J3 = 7.4e-5, 5.9e-4, 2.7e-6  # and inertias (kg m²)
_GRAVITY = 9.81
_COUPLING = (_M2 / 2 + _M3) * _CRANK * _ROD
_MOMENT_1, _MOMENT_2 = (_M1 / 2 + _M2 + _M3) * _GRAVITY * _CRANK, (_M2 / 2 + _M3) * _GRAVITY * _ROD


def mass_matrix(q, z, out):
    """M(q)."""
    out[:] = 0.0
    out[0, 0], out[1, 1], out[2, 2] = _J1 + (_M1 / 4 + _M2 + _M3) * _CRANK**2, _J2 + (_M2 / 4 + _M3) * _ROD**2, _J3
    out[0, 1] = out[1, 0] = _COUPLING * math.cos(q[1] - q[0])


def centrifugal(q, v, z, out):
    """Terms with squares of the velocities."""
    s = _COUPLING * math.sin(q[0] - q[1])
    out[0], out[1], out[2] = s * v[1] ** 2, -s * v[0] ** 2, 0.0


def weight(t, q, v, z, out):
    """Moments of the weights."""
    out[0], out[1], out[2] = _MOMENT_1 * math.cos(q[0]), _MOMENT_2 * math.cos(q[1]), 0.0


def force_by_q(t, q, v, z, out):
    """Derivative of `weight` and `centrifugal` by q."""
    out[:] = 0.0
    c = _COUPLING * math.cos(q[0] - q[1])
    out[0, 0], out[0, 1] = c * v[1] ** 2 - _MOMENT_1 * math.sin(q[0]), -c * v[1] ** 2
    out[1, 0], out[1, 1] = -c * v[0] ** 2, c * v[0] ** 2 - _MOMENT_2 * math.sin(q[1])


def force_by_v(t, q, v, z, out):
    """Derivative of `centrifugal` by v."""
    out[:] = 0.0
    s = _COUPLING * math.sin(q[0] - q[1])
    out[0, 1], out[1, 0] = 2.0 * s * v[1], -2.0 * s * v[0]


def corners(q, z, out):
    """Gap of each corner, and its coordinate along the guide: upper rear, upper front, lower rear, lower front; z = (clearance)."""
    x, y = _CRANK * math.cos(q[0]) + _ROD * math.cos(q[1]), _CRANK * math.sin(q[0]) + _ROD * math.sin(q[1])
    s, c = math.sin(q[2]), math.cos(q[2])
    for i in range(4):
        side, end = (1.0, -1.0)[i // 2], (-_HALF_LENGTH, _HALF_LENGTH)[i % 2]
        out[2 * i] = _HALF_HEIGHT + z[0] - side * (y + end * s) - _HALF_HEIGHT * c
        out[2 * i + 1] = x + end * c - side * _HALF_HEIGHT * s


def corners_by_q(q, z, out):
    """Derivative of `corners` by q."""
    s, c = math.sin(q[2]), math.cos(q[2])
    for i in range(4):
        side, end = (1.0, -1.0)[i // 2], (-_HALF_LENGTH, _HALF_LENGTH)[i % 2]
        out[2 * i, 0], out[2 * i, 1] = -side * _CRANK * math.cos(q[0]), -side * _ROD * math.cos(q[1])
        out[2 * i, 2] = -side * end * c + _HALF_HEIGHT * s
        out[2 * i + 1, 0], out[2 * i + 1, 1] = -_CRANK * math.sin(q[0]), -_ROD * math.sin(q[1])
        out[2 * i + 1, 2] = -end * s - side * _HALF_HEIGHT * c


def slider_crank(speed=150.0, rotation=-0.01, e=0.4, mu=0.01, clearance=1e-3):
    """Crank, connecting rod and a slider with clearance in its guide; q = their angles (Flores, Leine, Glocker 2010).

    Parameters
    ----------
    speed : float
        Angular velocity of the crank at the start (rad/s); the slider stands still in the middle of the guide, at its outer dead centre.
    rotation : float
        Angular velocity of the slider at the start (rad/s).
    e, mu : float
        Restitution and friction of the corners.
    clearance : float
        Play on each side of the slider (m).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``mechanism`` and ``corners``: gaps ``y[::2]`` and normal impulses ``lambda[::2]`` of the corners upper rear,
        upper front, lower rear, lower front.

    Notes
    -----
    The numbers are those of the cases slider_crank_moreau_jean (``rotation=-0.01``) and SliderCrank-MoreauJeanDirectProjectionOSI
    (``rotation=0``) of the reference collection.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.slider_crank(), t_end=0.01, h=1e-5)
    >>> int((rows["corners"]["lambda"][:, ::2] > 0).any(axis=1).argmax())  # step of the first impact
    270
    """
    return system(
        mechanism=lagrangian(
            mass_matrix, weight, centrifugal, None, force_by_q, force_by_v, q=[0, 0, 0], v=[speed, -speed * _CRANK / _ROD, rotation]
        ),
        corners=interaction(scleronomous(corners, corners_by_q, m=8, z=[clearance]), newton_impact_friction(e, mu), on="mechanism"),
    )


def draw(system, trajectory):
    """Speed of the crank, and gaps and normal impulses of the corners."""
    drawing, axes = figure(3, sharex=True)
    time_series(trajectory, "mechanism.v[0]", ax=axes[0]).set_ylabel("crank (rad/s)")
    time_series(trajectory, *(f"corners.y[{i}]" for i in range(0, 8, 2)), ax=axes[1])
    time_series(trajectory, *(f"corners.lambda[{i}]" for i in range(0, 8, 2)), ax=axes[2])
    return drawing
