"""Shapes of bodies for contact detection: balls, boxes, capsules, cylinders, planes and tubes, placed in the axes of a body.

A shape is a small dict: ``"shape"``, the name of its kind; ``"size"`` (3,), lengths in m, see `nsds.collision.kinds`; ``"pose"`` (7,),
position and unit quaternion, scalar first, in the axes of its body. A body may have several shapes, and several bodies may share one.
"""

import numpy as np

from nsds import _checks
from nsds.rotations import rotation_matrix

_SOLID = ("sphere", "capsule", "cylinder", "box")


def sphere(radius, *, position=(0, 0, 0)):
    """Ball of a radius.

    Parameters
    ----------
    radius : float
        In m, positive.
    position : array_like (3,)
        Centre in the axes of the body.

    Returns
    -------
    dict
        ``shape``, ``size`` and ``pose``.

    Raises
    ------
    TypeError, ValueError
        A radius that is not positive, a position that is not three finite numbers.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.sphere(0.1)["size"]
    array([0.1, 0. , 0. ])
    """
    return _shape("sphere", [_positive("sphere", "radius", radius), 0, 0], position, (1, 0, 0, 0))


def box(lengths, *, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Box, its edges along its axes.

    Parameters
    ----------
    lengths : array_like (3,)
        Full lengths of the edges along x, y and z, in m.
    position, orientation : array_like (3,) and (4,)
        Centre, and unit quaternion, scalar first, that takes the axes of the box to those of the body.

    Returns
    -------
    dict
        ``shape``, ``size`` and ``pose``.

    Raises
    ------
    TypeError, ValueError
        Lengths that are not three positive numbers, a pose that is not finite, a quaternion that is zero.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.box([1, 2, 3], position=[0, 0, 1.5])["pose"]
    array([0. , 0. , 1.5, 1. , 0. , 0. , 0. ])
    """
    lengths = _checks.array("box", "lengths", lengths, shape=(3,))
    if not (lengths > 0).all():
        raise ValueError(f"box: lengths must be positive, got {lengths.tolist()}")
    return _shape("box", lengths, position, orientation)


def capsule(radius, length, *, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Cylinder along z between two half balls.

    Parameters
    ----------
    radius : float
        In m, positive.
    length : float
        Length of the cylinder between the centres of the half balls, in m, positive.
    position, orientation : array_like (3,) and (4,)
        As for `box`.

    Returns
    -------
    dict
        ``shape``, ``size`` and ``pose``.

    Raises
    ------
    TypeError, ValueError
        Lengths that are not positive, a pose that is not finite, a quaternion that is zero.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.capsule(0.1, 1.0)["shape"]
    'capsule'
    """
    return _shape("capsule", [_positive("capsule", "radius", radius), _positive("capsule", "length", length), 0], position, orientation)


def cylinder(radius, length, *, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Solid cylinder along z; it meets spheres and planes only.

    Parameters
    ----------
    radius, length : float
        In m, positive.
    position, orientation : array_like (3,) and (4,)
        As for `box`.

    Returns
    -------
    dict
        ``shape``, ``size`` and ``pose``.

    Raises
    ------
    TypeError, ValueError
        Lengths that are not positive, a pose that is not finite, a quaternion that is zero.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.cylinder(0.5, 0.2)["size"]
    array([0.5, 0.2, 0. ])
    """
    return _shape("cylinder", [_positive("cylinder", "radius", radius), _positive("cylinder", "length", length), 0], position, orientation)


def tube(radius, length=None, *, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Inner wall of a hollow cylinder along z, without caps: a drum for the spheres in it.

    Parameters
    ----------
    radius : float
        In m, positive.
    length : float, optional
        In m, positive; without end if it is not given.
    position, orientation : array_like (3,) and (4,)
        As for `box`.

    Returns
    -------
    dict
        ``shape``, ``size`` and ``pose``.

    Raises
    ------
    TypeError, ValueError
        Lengths that are not positive, a pose that is not finite, a quaternion that is zero.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.tube(2.0)["size"]
    array([ 2., inf,  0.])
    """
    length = np.inf if length is None else _positive("tube", "length", length)
    return _shape("tube", [_positive("tube", "radius", radius), length, 0], position, orientation)


def plane(normal=(0, 0, 1), offset=0.0, *, point=None):
    """Half space below a plane: what has ``n . x <= offset`` is solid, n the unit normal.

    Parameters
    ----------
    normal : array_like (3,)
        Points out of the solid; of any length but zero.
    offset : float
        Distance of the plane to the origin along the normal, in m.
    point : array_like (3,), optional
        A point of the plane, in place of the offset.

    Returns
    -------
    dict
        ``shape``, ``size`` and ``pose``: the plane's z axis is the normal.

    Raises
    ------
    TypeError, ValueError
        A normal that is zero or not three finite numbers, an offset and a point at the same time.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.plane([0, 0, 2], offset=-0.5)["pose"]
    array([ 0. ,  0. , -0.5,  1. ,  0. ,  0. ,  0. ])
    """
    normal = _checks.array("plane", "normal", normal, shape=(3,))
    length = np.linalg.norm(normal)
    if length == 0:
        raise ValueError("plane: normal must not be zero, got [0, 0, 0]")
    normal = normal / length
    offset = _checks.number("plane", "offset", offset)
    if point is None:
        point = offset * normal
    elif offset != 0:
        raise ValueError(f"plane: give the offset or a point, got offset {offset} and point {point!r}")
    # The shortest turn from z to the normal; half a turn about x where they are opposite.
    turn = np.array([1 + normal[2], -normal[1], normal[0], 0.0]) if normal[2] > -1 + 1e-12 else [0.0, 1.0, 0.0, 0.0]
    return _shape("plane", [0, 0, 0], point, turn)


def volume(shape):
    """Volume of a solid shape in m^3.

    Parameters
    ----------
    shape : dict
        A sphere, box, capsule or cylinder.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        The shape is a plane or a tube.

    Examples
    --------
    >>> from nsds import shapes
    >>> round(shapes.volume(shapes.box([1, 2, 3])), 12)
    6.0
    """
    kind, (radius, length, _) = _solid("volume", shape)
    if kind == "sphere":
        return 4 / 3 * np.pi * radius**3
    if kind == "box":
        return float(np.prod(shape["size"]))
    cylinder = np.pi * radius**2 * length
    return cylinder + 4 / 3 * np.pi * radius**3 if kind == "capsule" else cylinder


def inertia(shape, mass):
    """Inertia of a homogeneous solid shape about its centre of mass, in the axes of the body.

    Parameters
    ----------
    shape : dict
        A sphere, box, capsule or cylinder.
    mass : float
        In kg, positive.

    Returns
    -------
    ndarray (3, 3)
        In kg m^2. The position of the shape plays no part: for a body of several shapes, add ``mass (|x|^2 1 - x x^T)`` of each.

    Raises
    ------
    TypeError, ValueError
        The shape is a plane or a tube, the mass is not positive.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.inertia(shapes.box([1, 2, 3]), mass=12.0).diagonal()
    array([13., 10.,  5.])
    """
    kind, (radius, length, _) = _solid("inertia", shape)
    mass = _positive("inertia", "mass", mass)
    if kind == "sphere":
        moments = np.full(3, 0.4 * mass * radius**2)
    elif kind == "box":
        x, y, z = shape["size"] ** 2
        moments = mass / 12 * np.array([y + z, x + z, x + y])
    else:
        ball = mass * (4 / 3 * np.pi * radius**3) / volume(shape) if kind == "capsule" else 0.0
        rod = mass - ball
        # Each half ball has its centre of mass 3/8 of the radius beyond the end of the cylinder.
        across = rod * (radius**2 / 4 + length**2 / 12) + ball * (0.4 * radius**2 + length**2 / 4 + 3 / 8 * radius * length)
        moments = np.array([across, across, rod * radius**2 / 2 + ball * 0.4 * radius**2])
    R = _rotation(shape["pose"][3:])
    return R @ np.diag(moments) @ R.T


def _positive(owner, field, value):
    return _checks.number(owner, field, value, above=0)


def _shape(kind, size, position, orientation):
    position = _checks.array(kind, "position", position, shape=(3,))
    orientation = _checks.array(kind, "orientation", orientation, shape=(4,))
    length = np.linalg.norm(orientation)
    if length == 0:
        raise ValueError(f"{kind}: orientation must be a unit quaternion, scalar first, got {orientation.tolist()}")
    pose = np.concatenate([position, orientation / length]) + 0.0  # no -0
    return {"shape": kind, "size": np.array(size, dtype=np.float64), "pose": pose}


def _solid(owner, shape):
    if shape["shape"] not in _SOLID:
        raise ValueError(f"{owner}: shape must be one of {', '.join(_SOLID)}, got {shape['shape']}")
    return shape["shape"], shape["size"]


def _rotation(p):
    R = np.empty(9)
    rotation_matrix(p, R)
    return R.reshape(3, 3)
