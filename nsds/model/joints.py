"""Joints: rows of equations between two bodies, or between a body and the world, and the coordinates that they leave free.

The first part of an interaction is A, the second B; without a second part B is the world, at the origin with R_B = 1. With
``r = x_A + R_A a - x_B`` each row is one of

========  ==================================================================================================
POINT     ``y = (r - R_B b) . R_B w - offset``: a point of A along an axis of B
ALIGN     ``y = R_A u . R_B w - offset``: an axis of A and one of B
ANGLE     ``y = angle - offset``, by which A has turned against B about ``R_B w``, from ``R_B b`` to ``R_A u``
COUPLER   ``y = ratio coordinate_A - coordinate_B - offset``, each a translation or an angle on an axis fixed in the world
DISTANCE  ``y = |r - R_B b| - offset`` of a point of A from one of B, ``-|r - R_B b| - offset`` where u is not zero
GEAR      ``y = r_A (angle - direction) - r_B direction - offset``, angle as above, direction that of the line from B's centre to A's
========  ==================================================================================================

The multiplier of a row acts on A with its sign, and on B with the opposite one.
"""

import numpy as np

from nsds import _checks
from nsds._docstrings import with_sections
from nsds.maths.rotations import perpendicular, turned, turned_back
from nsds.model.fields import floats, integers
from nsds.model.system_kinds import NEWTON_EULER, RELATIONS, Relation

__all__ = [
    "ball_joint", "coupler", "cylindrical", "distance", "fixed_joint", "gear", "hinge", "hinge_angle", "planar", "prismatic",
    "slide_along", "universal",
]  # fmt: skip


def __dir__():
    return __all__


POINT, ALIGN, ANGLE, COUPLER, DISTANCE, GEAR = range(6)
ANGULAR = (ANGLE, COUPLER, GEAR)  # rows with angles that change in time
_FRAMES = ("world", "body")
_ACROSS = 1e-9  # cosine of two axes that count as orthogonal
_GEOMETRY = {"row": integers("m", low=0, high=GEAR), "offset": floats("m")} | dict.fromkeys("aubw", floats("m", 3))
# Joint -> (axes of B along which a point of A is constrained; pairs of an axis of A and one of B that stay orthogonal). e is the joint's
# axis, s and t are orthogonal to it, s along a second axis if there is one; without an axis they are those of the world. The gradients of
# three pairs are orthogonal at the start.
HELD = {
    "ball_joint": ("est", ()),
    "universal": ("est", ("es",)),
    "hinge": ("est", ("es", "et")),
    "fixed_joint": ("est", ("es", "st", "te")),
    "prismatic": ("st", ("es", "st", "te")),
    "cylindrical": ("st", ("es", "et")),
    "planar": ("e", ("es", "et")),
}
# The same between bodies that move in the plane z = 0: t is z, unless e is.
_HELD_IN_PLANE = {
    "ball_joint": ("es", ()),
    "hinge": ("st", ()),
    "fixed_joint": ("es", ("es",)),
    "prismatic": ("s", ("es",)),
}
RELATIONS["joint"] = Relation((NEWTON_EULER,), "joint", fields={"angle": floats("m", 2), "geometry": _GEOMETRY})  # all that follow


_FRAME = """frame : {"world", "body"}
    Whether they are given in inertial coordinates or in those of body A."""
_RAISES = """TypeError, ValueError
    Wrong shape, NaN or infinity, a zero axis, or an unknown frame."""
_in_frame = with_sections(Parameters=_FRAME, Raises=_RAISES)


def ball_joint(point, frame="world"):
    """A point of A stays on a point of B: three equations, three free rotations (a spherical joint, or knee).

    Parameters
    ----------
    point : array_like (3,)
        The common point at the start.
    frame : {"world", "body"}
        Whether it is given in inertial coordinates or in those of body A, from its centre of mass.

    Returns
    -------
    dict
        A relation with m = 3: the distance of the two points along three axes that are fixed in B.

    Raises
    ------
    TypeError, ValueError
        Wrong shape, NaN or infinity, or an unknown frame.

    Examples
    --------
    >>> from nsds import joints
    >>> joints.ball_joint([0.0, 0.0, 1.0])["m"]
    3
    """
    return _joint("ball_joint", frame, point=point)


@_in_frame
def universal(point, axis, second_axis, frame="world"):
    """A point of A stays on one of B, and an axis of A across one of B: four equations, two free rotations (a Cardan joint).

    Parameters
    ----------
    point : array_like (3,)
        The common point at the start.
    axis, second_axis : array_like (3,)
        Directions at the start of the axis that is fixed in A and of that fixed in B, across each other, of any length but zero: the arms
        of the cross between them.

    Returns
    -------
    dict
        A relation with m = 4: the distance of the two points along three axes that are fixed in B, and a cosine.

    Raises
    ------
    TypeError, ValueError
        Wrong shape, NaN or infinity, a zero axis, axes that are not across each other, or an unknown frame.

    Examples
    --------
    >>> from nsds import joints
    >>> joints.universal(point=[0, 0, 1], axis=[0, 1, 0], second_axis=[1, 0, 0])["m"]
    4
    """
    relation = _joint("universal", frame, point=point, axis=axis, second_axis=second_axis)
    cosine = relation["axis"] @ relation["second_axis"]
    if abs(cosine) > _ACROSS:
        raise ValueError(f"universal: axis and second_axis must be across each other, got an angle of {np.degrees(np.arccos(cosine)):.9g}°")
    return relation


@_in_frame
def hinge(point, axis, frame="world"):
    """A turns against B about an axis: five equations, one free rotation (a revolute joint, or pivot).

    Parameters
    ----------
    point : array_like (3,)
        A point of the axis at the start.
    axis : array_like (3,)
        Direction of the axis at the start, of any length but zero.

    Returns
    -------
    dict
        A relation with m = 5: the distance of the points of A and B along the axis and across, and two cosines of axes.

    Examples
    --------
    >>> from nsds import joints
    >>> joints.hinge(point=[0, 0, 1], axis=[0, 1, 0])["m"]
    5
    """
    return _joint("hinge", frame, point=point, axis=axis)


@_in_frame
def prismatic(axis, frame="world"):
    """A slides against B along an axis and does not turn: five equations, one free translation.

    Parameters
    ----------
    axis : array_like (3,)
        Direction at the start, of any length but zero.
    frame : {"world", "body"}
        Whether it is given in inertial coordinates or in those of body A.

    Returns
    -------
    dict
        A relation with m = 5: the displacement of A's centre of mass across the axis, and three cosines of axes. The relative
        orientation is that of the start.

    Examples
    --------
    >>> from nsds import joints
    >>> joints.prismatic(axis=[1, 0, 0])["m"]
    5
    """
    return _joint("prismatic", frame, axis=axis)


@_in_frame
def cylindrical(point, axis, frame="world"):
    """A slides along an axis and turns about it: four equations, one free translation and one free rotation.

    Parameters
    ----------
    point : array_like (3,)
        A point of the axis at the start.
    axis : array_like (3,)
        Direction of the axis at the start, of any length but zero.

    Returns
    -------
    dict
        A relation with m = 4: the displacement of A's point across the axis, and two cosines of axes.

    Examples
    --------
    >>> from nsds import joints
    >>> joints.cylindrical(point=[0, 0, 1], axis=[0, 1, 0])["m"]
    4
    """
    return _joint("cylindrical", frame, point=point, axis=axis)


@_in_frame
def planar(point, axis, frame="world"):
    """A slides on a plane of B and turns about its normal: three equations, two free translations and one free rotation.

    Parameters
    ----------
    point : array_like (3,)
        A point of A, and of the plane, at the start.
    axis : array_like (3,)
        Normal of the plane at the start, of any length but zero.

    Returns
    -------
    dict
        A relation with m = 3: the displacement of A's point along the normal, and two cosines of axes.

    Examples
    --------
    >>> from nsds import joints
    >>> joints.planar(point=[0, 0, 1], axis=[0, 0, 1])["m"]
    3
    """
    return _joint("planar", frame, point=point, axis=axis)


def fixed_joint():
    """A and B keep their relative position and orientation of the start: six equations.

    Returns
    -------
    dict
        A relation with m = 6: the displacement of A's centre of mass along three axes of B, and three cosines of axes.

    Examples
    --------
    >>> from nsds import joints
    >>> joints.fixed_joint()["m"]
    6
    """
    return _joint("fixed_joint", "world")


def coupler(first, second, ratio):
    """A coordinate of B follows one of A, ``ratio first = second``: gears, racks and screws, one equation.

    A coordinate is the angle by which a body has turned since the start about an axis that is fixed in the world, or the path of its centre
    of mass along such an axis. The coupler does not hold the axes: a body that has an angle needs a hinge or a cylindrical joint with the
    world. On one part only, both coordinates are its own, as of a screw.

    Parameters
    ----------
    first, second : pair (kind, axis)
        ``("angle", axis)`` or ``("translation", axis)`` with the axis (3,) in inertial coordinates, of any length but zero: of A, and of B.
    ratio : float
        Change of the second coordinate by change of the first, not zero. A pair of gears with r_A and r_B: ``-r_A / r_B``; a screw:
        displacement per radian.

    Returns
    -------
    dict
        A relation with m = 1: ``y = ratio first - second``, zero at the start.

    Raises
    ------
    TypeError, ValueError
        A coordinate that cannot be read, wrong shape, NaN or infinity, a zero axis, or a zero ratio.

    Examples
    --------
    >>> from nsds import joints
    >>> gears = joints.coupler(("angle", [0, 0, 1]), ("angle", [0, 0, 1]), ratio=-0.5)
    >>> screw = joints.coupler(("angle", [0, 0, 1]), ("translation", [0, 0, 1]), ratio=1e-3)
    """
    owner, result = "coupler", {"relation": "joint", "m": 1, "n": None, "joint": "coupler"}
    for name, value in (("first", first), ("second", second)):
        is_pair = isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[0], str)
        if not is_pair or value[0] not in ("angle", "translation"):
            raise TypeError(f'coupler: {name} must be ("angle", axis) or ("translation", axis), got {_checks.shortened(value)}')
        result[name] = value[0], _direction(owner, f"the axis of {name}", value[1])
    result["ratio"] = _checks.number(owner, "ratio", ratio)
    if result["ratio"] == 0:
        raise ValueError("coupler: ratio must not be zero, got 0.0")
    return result


def hinge_angle(axis, lower=None, upper=None, frame="world"):
    """The rotation angle of A relative to B since the start, about an axis of B: a coordinate, or its stops.

    Parameters
    ----------
    axis : array_like (3,)
        Direction at the start, of any length but zero; the angle is positive by the right hand.
    lower, upper : float, optional
        Stops in radians, beyond pi if need be: ``y = angle - lower``, ``y = upper - angle``. With both m = 2; with neither y is the angle.
    frame : {"world", "body"}
        Whether the axis is given in inertial coordinates or in those of body A.

    Returns
    -------
    dict
        A relation with m = 1 or 2, for a unilateral law where it has stops, for a law of ydot as friction in the joint where it has none.
        The joint itself is another interaction.

    Raises
    ------
    TypeError, ValueError
        Wrong shape, NaN or infinity, a zero axis, stops in the wrong order, or an unknown frame.

    Examples
    --------
    >>> from nsds import joints
    >>> joints.hinge_angle(axis=[0, 1, 0], lower=-0.5, upper=2.0)["m"]
    2
    """
    return _coordinate("hinge_angle", lower, upper, frame, axis=axis)


def slide_along(axis, lower=None, upper=None, point=None, frame="world"):
    """The displacement of a point of A relative to B since the start, along an axis of B: a coordinate, or its stops.

    Parameters
    ----------
    axis : array_like (3,)
        Direction at the start, of any length but zero.
    lower, upper : float, optional
        Stops in metres: ``y = displacement - lower``, ``y = upper - displacement``. With both m = 2; with neither y is the displacement.
    point : array_like (3,), optional
        The point of A at the start where the multiplier acts; A's centre of mass if not given.
    frame : {"world", "body"}
        Whether axis and point are given in inertial coordinates or in those of body A.

    Returns
    -------
    dict
        A relation with m = 1 or 2, for a unilateral law where it has stops, for a law of ydot as friction in the joint where it has none.
        The joint itself is another interaction.

    Raises
    ------
    TypeError, ValueError
        Wrong shape, NaN or infinity, a zero axis, stops in the wrong order, or an unknown frame.

    Examples
    --------
    >>> from nsds import joints
    >>> joints.slide_along(axis=[1, 0, 0], lower=0.0)["m"]
    1
    """
    geometry = {} if point is None else {"point": point}
    return _coordinate("slide_along", lower, upper, frame, axis=axis, **geometry)


def distance(point, second, length=None, lower=None, upper=None, frame="world"):
    """The distance of a point of A from a point of B: of springs, dampers and winches; a rod without mass; a rope, or what keeps apart.

    Parameters
    ----------
    point, second : array_like (3,)
        The points of A and of B at the start.
    length : float, optional
        What y counts from, ``y = distance - length``: the length of a spring without load. The distance at the start if not given.
    lower, upper : float, optional
        Stops in metres, instead of a length: ``y = distance - lower``, ``y = upper - distance``, the last of which is a rope.
    frame : {"world", "body"}
        Whether the points are given in inertial coordinates or in those of body A.

    Returns
    -------
    dict
        A relation with m = 1 or 2: under `nsds.spring_damper` or `nsds.force_law` a force along the line of the points, under
        `nsds.equality` a rod, with stops for a unilateral law.

    Raises
    ------
    TypeError, ValueError
        Wrong shape, NaN or infinity, points that coincide, a length together with stops, stops in the wrong order, or an unknown frame.

    Examples
    --------
    >>> from nsds import joints
    >>> spring = joints.distance([0, 0, 0], [0, 0, 1.0], length=0.8)
    >>> rope = joints.distance([0, 0, 0], [0, 0, 1.0], upper=1.5)
    """
    relation = _coordinate("distance", lower, upper, frame, point=point, second=second)
    apart = np.linalg.norm(relation["point"] - relation["second"])
    if apart == 0:
        raise ValueError(f"distance: point and second must be apart, which gives the line of the force, got {relation['point'].tolist()}")
    if length is not None and "lower" not in relation and "upper" not in relation:
        return relation | {"length": _checks.number("distance", "length", length)}
    if length is not None:
        raise ValueError("distance: length is what y counts from without stops; give lower and upper, or length")
    return relation | {"length": apart}


def gear(axis, radius, second_radius, frame="world"):
    """Wheels A and B roll on each other at their pitch circles, wherever their centres are: planets, and pinions on a wheel that moves.

    The wheels' centres of mass are those of their circles. The gear does not hold them: each wheel has a hinge with the world or with a
    carrier. `coupler` is for axes that are fixed in the world.

    Parameters
    ----------
    axis : array_like (3,)
        Direction of the axes of both wheels at the start, of any length but zero.
    radius, second_radius : float
        Of A's and of B's pitch circle (m); negative for a ring that the other one runs in.
    frame : {"world", "body"}
        Whether the axis is given in inertial coordinates or in those of body A.

    Returns
    -------
    dict
        A relation with m = 1: ``y = radius (angle_A - direction) + second_radius (angle_B - direction)``, with the direction of the line
        of centres and angles since the start: the path by which one circle slips on the other. Its multiplier under `nsds.equality` is the
        impulse of the tooth force.

    Raises
    ------
    TypeError, ValueError
        Wrong shape, NaN or infinity, a zero axis or radius, or an unknown frame; in `nsds.system`, centres on one axis.

    Examples
    --------
    A planet of radius 0.02 in a ring that is fixed in the world, around the origin:

    >>> from nsds import joints
    >>> joints.gear([0, 0, 1], 0.02, -0.07)["m"]
    1
    """
    relation = _rows_of("gear", 1, frame, axis=axis)
    for name, value in (("radius", radius), ("second_radius", second_radius)):
        relation[name] = _checks.number("gear", name, value)
        if relation[name] == 0:
            raise ValueError(f"gear: {name} must not be zero, got 0.0")
    return relation


def _joint(name, frame, **geometry):
    along, pairs = HELD[name]
    return _rows_of(name, len(along) + len(pairs), frame, **geometry)


def _rows_of(name, m, frame, **geometry):
    _checks.choice(name, "frame", frame, _FRAMES)
    result = {"relation": "joint", "m": m, "n": None, "joint": name, "frame": frame}
    for key, value in geometry.items():
        result[key] = _direction(name, key, value) if key in ("axis", "second_axis") else _checks.array(name, key, value, shape=(3,))
    return result


def _coordinate(name, lower, upper, frame, **geometry):
    stops = {key: _checks.number(name, key, value) for key, value in (("lower", lower), ("upper", upper)) if value is not None}
    if len(stops) == 2 and not stops["lower"] < stops["upper"]:
        raise ValueError(f"{name}: lower must be below upper, got {lower} and {upper}")
    return _rows_of(name, max(len(stops), 1), frame, **geometry) | stops


def _direction(owner, field, value):
    """The unit vector along an axis."""
    axis = _checks.array(owner, field, value, shape=(3,))
    largest = abs(axis).max()
    if largest == 0:
        raise ValueError(f"{owner}: {field} must not be zero, got {axis.tolist()}")
    axis = axis / largest
    return axis / np.linalg.norm(axis)


def resolve(relation, q_a, q_b=None):
    """The rows of a joint for the configurations that the bodies start from.

    Parameters
    ----------
    relation : dict
        From one of the functions of this module.
    q_a, q_b : array_like (..., 7)
        Positions of the centres of mass and unit quaternions; q_b only where the joint has a second body.

    Returns
    -------
    dict
        With the leading shape of the configurations: ``row`` (..., m), the kinds of rows; ``a`` and ``u`` (..., m, 3) in axes of A, ``b``
        and ``w`` (..., m, 3) in axes of B, of the world without B; ``offset`` (..., m). Only where there are angles also ``angle``
        (..., m, 2), which changes in time: by what A and B have turned, many turns included.

    Examples
    --------
    >>> import numpy as np
    >>> from nsds import joints
    >>> rows = joints.resolve(joints.ball_joint([0.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0]))
    >>> rows["a"][0], rows["b"][0]
    (array([0. , 0. , 0.5]), array([0., 0., 1.]))
    """
    # 1. relation and configurations
    if not isinstance(relation, dict) or not {"joint", "m"} <= set(relation):
        raise TypeError(f"resolve: relation must come from a function of nsds.joints, got {_checks.shortened(relation)}")
    has_b = q_b is not None
    q_a, q_b = _configurations("q_a", q_a), _configurations("q_b", q_b if has_b else [0, 0, 0, 1, 0, 0, 0])
    try:
        shape = np.broadcast_shapes(q_a.shape[:-1], q_b.shape[:-1])
    except ValueError:
        raise ValueError(f"resolve: q_a and q_b must be of as many bodies, got shapes {q_a.shape} and {q_b.shape}") from None
    # 2. rows in axes of both bodies; a coupler on one body has both coordinates on that body
    bodies = q_a[..., None, :3], q_a[..., None, 3:], q_b[..., None, :3], q_b[..., None, 3:]
    if relation["joint"] == "gear":
        rows = _geared(relation, *bodies)
    elif relation["joint"] == "coupler":
        rows = _coupled(relation, *(bodies if has_b else bodies[:2] * 2))
    else:
        rows = _placed(relation, *bodies)
    # 3. one copy for each configuration, and the angles, which start at 0
    m = relation["m"]
    sizes = {"row": (m,), "a": (m, 3), "u": (m, 3), "b": (m, 3), "w": (m, 3), "offset": (m,)}
    result = {key: np.broadcast_to(rows[key], shape + size).copy() for key, size in sizes.items()}
    if np.isin(rows["row"], ANGULAR).any():
        result["angle"] = np.zeros((*shape, m, 2))
    return result


def in_plane(relation):
    """The rows in the plane z = 0 of a joint between bodies that move in it.

    Parameters
    ----------
    relation : dict
        From one of the functions of this module.

    Returns
    -------
    dict
        The same with the rows that are left: two of a hinge about z, of a ball_joint, or of a prismatic joint along an axis in the plane,
        three of a fixed_joint, all of a coordinate.

    Raises
    ------
    TypeError, ValueError
        Not such a relation; an axis, point or direction that does not fit the plane, or a joint that leaves it.

    Examples
    --------
    >>> from nsds import joints
    >>> joints.in_plane(joints.hinge(point=[0, 1, 0], axis=[0, 0, 1]))["m"]
    2
    """
    if not isinstance(relation, dict) or not {"joint", "m"} <= set(relation):
        raise TypeError(f"in_plane: relation must come from a function of nsds.joints, got {_checks.shortened(relation)}")
    # 1. joints that can move in the plane
    name = relation["joint"]
    if name in HELD and name not in _HELD_IN_PLANE:
        raise ValueError(f"{name} takes bodies out of the plane z = 0; between planar bodies are: {', '.join(_HELD_IN_PLANE)}")
    # 2. axes: along z for rotations about it, in the plane for others; points in the plane
    axes = {"axis": (relation["axis"], name in _ABOUT_Z)} if "axis" in relation else {}
    if name == "coupler":
        axes = {f"the axis of {side}": (relation[side][1], relation[side][0] == "angle") for side in ("first", "second")}
    for field, (axis, is_normal) in axes.items():
        if axis[:2].any() if is_normal else axis[2] != 0:
            wanted = "along z, the normal of the plane" if is_normal else "in the plane, 0 along z"
            raise ValueError(f"{name}: {field} between planar bodies must be {wanted}, got {axis.tolist()}")
    for field in ("point", "second"):
        if field in relation and not isinstance(relation[field], tuple) and relation[field][2] != 0:
            raise ValueError(f"{name}: {field} between planar bodies must be in the plane z = 0, got {relation[field].tolist()}")
    # 3. the rows in the plane
    along, pairs = _HELD_IN_PLANE.get(name, ((), ()))
    return relation | {"planar": True, "m": len(along) + len(pairs) or relation["m"]}


_ABOUT_Z = ("hinge", "hinge_angle", "gear")


def _configurations(name, q):
    q = _checks.array("resolve", name, q, at_least=1)
    if q.shape[-1] != 7:
        raise ValueError(f"resolve: {name} must have shape (..., 7), got {q.shape}")
    return q


def _placed(relation, x_a, p_a, x_b, p_b):
    """Rows of the geometry given at the start, in axes of the bodies."""
    # 1. directions and points in inertial axes
    kinds, u, b, w, offset = (np.array(column) for column in zip(*_rows(relation), strict=True))
    given_in_body = relation["frame"] == "body"
    u, b, w = (turned(p_a, d) if given_in_body else d for d in (u, b, w))
    point = relation.get("point", x_a)
    second = relation.get("second", point)
    if given_in_body and "point" in relation:
        point, second = x_a + turned(p_a, point), x_a + turned(p_a, second)
    # 2. in axes of each body, in which they are constant
    is_point = np.isin(kinds, (POINT, DISTANCE))[:, None]
    return {
        "row": kinds.astype(np.int64),
        "a": np.where(is_point, turned_back(p_a, point - x_a), 0.0),
        "u": turned_back(p_a, u),
        "b": turned_back(p_b, np.where(is_point, second - x_b, b)),
        "w": turned_back(p_b, w),
        "offset": offset,
    }


def _rows(relation):
    """Rows (kind, u, b, w, offset), in the frame of the given geometry."""
    # 1. axes of the joint
    none, name = np.zeros(3), relation["joint"]
    if "axis" in relation:
        e, s, t = _frame_in_plane(relation["axis"]) if "planar" in relation else _frame(relation["axis"], relation.get("second_axis"))
    else:
        e, s, t = np.eye(3)
    # 2. coordinates: one row, or one for each stop
    if name == "hinge_angle":
        return [(ANGLE, s, s, sign * e, offset) for sign, offset in _signs(relation)]
    if name == "slide_along":
        return [(POINT, none, none, sign * e, offset) for sign, offset in _signs(relation)]
    if name == "distance":
        line = _direction(name, "the line of the points", relation["point"] - relation["second"])
        return [(DISTANCE, none if sign > 0 else line, none, line, offset) for sign, offset in _signs(relation)]
    # 3. joints: a row for each constrained axis, and for each pair of orthogonal axes
    axes, (along, pairs) = {"e": e, "s": s, "t": t}, (_HELD_IN_PLANE if "planar" in relation else HELD)[name]
    return [(POINT, none, none, axes[w], 0.0) for w in along] + [(ALIGN, axes[u], none, axes[w], 0.0) for u, w in pairs]


def _signs(relation):
    """(sign of the coordinate, offset) of each row: the coordinate, or its distance to each stop."""
    stops = [(1.0, relation["lower"])] if "lower" in relation else []
    stops += [(-1.0, -relation["upper"])] if "upper" in relation else []
    return stops or [(1.0, relation.get("length", 0.0))]


def _coupled(relation, x_a, p_a, x_b, p_b):
    """Row of a coupler: ``a`` is A's axis times the ratio, ``w`` that of B; ``u`` and ``b`` mark rotations, zero for translations."""
    (kind_a, axis_a), (kind_b, w) = relation["first"], relation["second"]
    a = relation["ratio"] * axis_a
    u = turned_back(p_a, _across(a)) if kind_a == "angle" else np.zeros(3)
    b = turned_back(p_b, _across(w)) if kind_b == "angle" else np.zeros(3)
    start_a, start_b = (x_a @ a if kind_a == "translation" else 0.0), (x_b @ w if kind_b == "translation" else 0.0)
    return {"row": np.array([COUPLER]), "a": a, "u": u, "b": b, "w": w, "offset": start_a - start_b}


def _geared(relation, x_a, p_a, x_b, p_b):
    """Row of a gear: ``a`` has the radii; ``u`` of A and ``b`` of B mark the line of centres at the start, ``w`` is B's axis."""
    # 1. line of centres across the axis
    axis = relation["axis"] if relation["frame"] == "world" else turned(p_a, relation["axis"])
    line = x_a - x_b
    line = line - (line * axis).sum(axis=-1, keepdims=True) * axis
    size = np.linalg.norm(line, axis=-1, keepdims=True)
    if not (size > 0).all():
        raise ValueError("gear: the centres of the wheels must not lie on one axis, which has no pitch point")
    # 2. marks in axes of both wheels, from which their angles count
    mark = line / size
    return {
        "row": np.array([GEAR]),
        "a": np.array([relation["radius"], relation["second_radius"], 0.0]),
        "u": turned_back(p_a, mark),
        "b": turned_back(p_b, mark),
        "w": turned_back(p_b, axis),
        "offset": 0.0,
    }


def _across(axis):
    out = np.empty(3)
    perpendicular(axis, out)
    return out


def _frame_in_plane(axis):
    """Axes (e, s, t) of a joint along z, or along an axis in the plane, to which t is normal then."""
    z = np.array([0.0, 0.0, 1.0])
    return (axis, np.array([1.0, 0.0, 0.0]), np.array([0.0, axis[2], 0.0])) if axis[2] != 0 else (axis, np.cross(z, axis), z)


def _frame(axis, second=None):
    s = _across(axis) if second is None else second
    return axis, s, np.cross(axis, s)
