"""Robots from their descriptions (URDF, extra ``urdf``): links as rigid bodies, joints with what acts on them, collision shapes."""

import re
from itertools import combinations
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.maths.rotations import quaternion_of
from nsds.model import joints, shapes
from nsds.model.collisions import collisions
from nsds.model.interactions import interaction
from nsds.model.laws import HELD, MAKERS, dry_friction, equality, newton_impact, spring_damper
from nsds.model.mimics import couplings
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.urdf import HELD_STILL, OWNER, TURNING, WITH_COORDINATE, WORLD, motion, read

_CONTACTS = "contacts"
_LIGHT = 1e-9  # of the least mass beyond it, and of its inertia: what a link without inertia between two joints gets
# Of the largest inertia about a joint, or beyond it: what a moment may lack by rounding; up to what there is none; what it then gets
_ROUND, _NONE, _LEAST = 1e-9, 1e-12, 1e-8


def robot(urdf, *, q=None, v=None, position=(0, 0, 0), orientation=(1, 0, 0, 0), fixed=True, motors=None, e=0.0, law=None, world=(),
          self_contacts=False, folder=None):  # fmt: skip
    """Parts of a robot from its description in URDF: ``nsds.system(gravity=[0, 0, -9.81], **nsds.robot("arm.urdf"))``.

    Links that fixed joints join are one rigid body, under the name of the first of them that has a mass; its origin is their common centre
    of mass, its axes are those of that link. Under the name of a joint is what holds it, under that name with ``_stops``, ``_damping``,
    ``_friction`` and ``_motor`` what acts on its coordinate. Coordinates count from the start: y of a motor is q less the one given
    here. A joint that has the name of a link gets ``_joint`` behind it, and what may not stand in a Python name becomes ``_``.

    Parameters
    ----------
    urdf : str or path
        The file, or its text.
    q, v : dict of str to float, optional
        Positions and velocities of joints at the start (rad and rad/s, m and m/s). Of a joint that is not named 0, or the stop nearest to
        it; of one that mimics another what this has times the multiplier, and the offset.
    position, orientation : array_like (3,) and (4,)
        Of the root link, in the world (m; unit quaternion, scalar first).
    fixed : bool
        Whether the root link is fixed in the world; else it floats.
    motors : dict of str to law, optional
        Joint -> law of its coordinate, as `nsds.force_law` of a servo, `nsds.spring_damper`, `nsds.relay`.
    e : float
        Restitution of the joints' stops.
    law : dict, optional
        Of contacts, as for `nsds.collisions`: makes the part ``contacts`` of all collision shapes. A robot without it touches nothing.
    world : shape or sequence of shapes
        Shapes that do not move, besides the root. A body that a joint connects to the root is not tested against the world.
    self_contacts : bool
        Whether bodies of the robot that no joint joins touch each other.
    folder : path, optional
        Where mesh files are looked for, and above it; beside the URDF file if not given.

    Returns
    -------
    dict
        Parts for `nsds.system`, by name.

    Raises
    ------
    TypeError, ValueError
        What cannot be read; loops, mimic joints that nothing can couple, links on which something acts that have no inertia, starts beyond
        a stop and missing meshes, with the names of the link or joint, and the amount.
    ImportError
        yourdfpy, which reads URDF (extra ``urdf``), is not installed.

    Notes
    -----
    Inertias are shifted from their own frames to the body's and turned. Read are joints with origin, axis, limit (lower and upper),
    mimic (under the name of the joint with ``_mimic``, see below), dynamics (damping: `nsds.spring_damper`, friction:
    `nsds.dry_friction`) and inertial and collision elements: box, capsule, cylinder, sphere, and meshes as their convex hulls. Of limits
    velocity and effort are not, nor are calibration, safety controllers and transmissions: a motor has bounds of its own law.

    Joints with the world follow each other by `nsds.joints.coupler`. On a body that moves those follow each other that share a body, or
    have others that mimic the same joint between them: hinges with parallel axes by `nsds.joints.gear` of two wheels about the pivots,
    parts with ``_wheel`` and ``_second_wheel`` in their names, sliding joints by a part with ``_wedge``. These have 1e-4 of the mass of the
    lighter body beside them.

    What exporters leave open: a joint whose stops coincide is held there, and one whose limit has neither, as the format has 0 for both. A
    link without inertia at an end, on which nothing acts, is left out with its joint; one between two joints has 1e-9 of the mass and
    inertia beyond it.
    Moments of inertia of 0, up to rounding, are 1e-8 of the largest about a joint or of what is beyond it. Meshes lie in the folder or
    above it, under ``package://name/path`` with the name of the package or without. A parent ``world`` need not be described.

    Examples
    --------
    >>> import nsds
    >>> pendulum = nsds.robot('''
    ... <robot name="pendulum">
    ...   <link name="ceiling"/>
    ...   <link name="rod">
    ...     <inertial>
    ...       <origin xyz="0 0 -0.5"/> <mass value="2"/> <inertia ixx="0.1" iyy="0.1" izz="0.01"/>
    ...     </inertial>
    ...   </link>
    ...   <joint name="pivot" type="continuous">
    ...     <parent link="ceiling"/> <child link="rod"/> <axis xyz="0 1 0"/>
    ...   </joint>
    ... </robot>''', q={"pivot": 0.5})
    >>> list(pendulum)
    ['rod', 'pivot']
    >>> rows = nsds.simulate(nsds.system(gravity=[0, 0, -9.81], **pendulum), t_end=1.0, h=1e-3)
    >>> rows["rod"]["q"][-1, :3].round(4)
    array([ 0.1645,  0.    , -0.4722])
    """
    # 1. fixed shapes, and the tree of links and joints
    world = [world] if isinstance(world, dict) else world
    if not isinstance(world, (list, tuple)):
        raise TypeError(f"{OWNER}: world must be a shape from nsds.shapes or a list of them, got {_checks.shortened(world)}")
    for k, shape in enumerate(world):
        shapes.require_shape(f"{OWNER}: world[{k}]", shape)
    tree = read(urdf, folder)
    # 2. initial pose and velocity of each link
    q, v = (_by_joint(tree, name, values) for name, values in (("q", q), ("v", v)))
    motors, e = _motors(tree, motors), _checks.number(OWNER, "e", e, low=0.0, high=1.0)
    frames = _frames(tree, q, v, *_root_pose(position, orientation))
    # 3. bodies: links that fixed joints connect are one
    needed = {*motors, *(joint.mimic[0] for joint in tree.joints if joint.mimic is not None)}
    bodies, holder = _bodies(tree, frames, _checks.flag(OWNER, "fixed", fixed), needed, law is not None)
    tree = tree._replace(joints=[joint for joint in tree.joints if joint.child in holder])
    names, labels = _names(tree, bodies)
    parts = {names[body.link]: body.part for body in bodies}
    # 4. interactions of each joint: the joint itself, stops, damping, friction, motor; joints that follow others
    for joint in tree.joints:
        if joint.type != "fixed":
            on = [names[holder[link]] for link in (joint.child, joint.parent) if holder[link] != WORLD]
            on = on[0] if len(on) == 1 else tuple(on)
            for ending, relation, own in _rows(joint, frames[joint.child], q[joint.name], e, motors):
                parts[labels[joint.name] + ending] = interaction(relation, own, on=on)
    parts |= couplings(tree, frames, v, {body.link: body for body in bodies}, holder, names, labels)
    # 5. contacts of the collision shapes
    if law is not None:
        parts[_CONTACTS] = _contacts(tree, frames, bodies, holder, names, law, world, _checks.flag(OWNER, "self_contacts", self_contacts))
    return parts


class _Frame(NamedTuple):
    """Pose of the axes of a link at the start, and its velocity, in the world."""

    R: np.ndarray
    x: np.ndarray
    omega: np.ndarray
    v: np.ndarray

    def at(self, origin):
        """(R, x) of a frame given in the axes of this one, (4, 4)."""
        return (self.R, self.x) if origin is None else (self.R @ origin[:3, :3], self.x + self.R @ origin[:3, 3])


class _Body(NamedTuple):
    link: str  # whose axes it has
    head: str  # the link at the joint that holds it
    centre: np.ndarray  # in the world
    part: dict
    share: tuple  # (mass, moment of inertia) of which links without inertia between it and the root get a small part


def _by_joint(tree, name, values):
    """{joint: its value at the start}: 0, or the stop nearest to it, where none is given; that of one that follows another by that."""
    known = {joint.name: joint for joint in tree.joints if joint.type in WITH_COORDINATE}
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise TypeError(f"{OWNER}: {name} must be a dict from names of joints to numbers, got {_checks.shortened(values)}")
    # 1. values that are given
    result = dict.fromkeys((joint.name for joint in tree.joints), 0.0)
    if name == "q":
        result |= {key: min(max(0.0, joint.lower), joint.upper) for key, joint in known.items() if joint.lower is not None}
    for joint, value in values.items():
        if joint not in known:
            raise ValueError(
                f"{OWNER}: {name}: there is no joint {_checks.shortened(joint)} with a coordinate; these are: {', '.join(known)}"
            )
        result[joint] = _checks.number(f"{OWNER}: {name}", f"of '{joint}'", value)
    # 2. those of joints that follow
    for joint in known.values():
        if joint.mimic is not None:
            leader, multiplier, offset = joint.mimic
            wanted = multiplier * result[leader] + (offset if name == "q" else 0.0)
            if joint.name in values and abs(result[joint.name] - wanted) > 1e-9 * (abs(wanted) + abs(result[joint.name])):
                raise ValueError(
                    f"{OWNER}: {name} of '{joint.name}', which mimics '{leader}', must be {wanted:g}, got {result[joint.name]:g}"
                )
            result[joint.name] = wanted
    return result


def _motors(tree, motors):
    motors = {} if motors is None else motors
    known = [joint.name for joint in tree.joints if joint.type in WITH_COORDINATE]
    if not isinstance(motors, dict):
        raise TypeError(f"{OWNER}: motors must be a dict from names of joints to laws, got {_checks.shortened(motors)}")
    for joint, law in motors.items():
        if joint not in known:
            raise ValueError(
                f"{OWNER}: motors: there is no joint {_checks.shortened(joint)} with a coordinate; these are: {', '.join(known)}"
            )
        _checks.made(OWNER, f"motors: the law of '{joint}'", law, "law", HELD, MAKERS)
    return motors


def _root_pose(position, orientation):
    pose = shapes._shape(OWNER, [0, 0, 0], position, orientation)["pose"]
    return shapes._rotation(pose[3:]), pose[:3]


def _frames(tree, q, v, R, x):
    """{link: `_Frame`} at the start, from the root outwards."""
    frames = {tree.root: _Frame(R, x, np.zeros(3), np.zeros(3))}
    for joint in tree.joints:
        parent = frames[joint.parent]
        R, x = parent.at(joint.origin @ motion(joint, q[joint.name]))
        rate, omega, slide = v[joint.name] * (R @ joint.axis), parent.omega, np.zeros(3)
        if joint.type in TURNING:
            omega = omega + rate
        elif joint.type == "prismatic":
            slide = rate
        frames[joint.child] = _Frame(R, x, omega, parent.v + np.cross(parent.omega, x - parent.x) + slide)
    return frames


def _bodies(tree, frames, fixed, needed, touches):
    """([`_Body`, ...], {link: the link that gives its body the name, or `WORLD`}).

    Links without inertia at an end, on which nothing acts, are left out with their joint. needed: names of joints on which something acts;
    touches: whether collision shapes are used.
    """
    # 1. groups of links connected by fixed joints, by their first link
    above = {joint.child: joint for joint in tree.joints}
    groups, first = {}, {}
    for link in (tree.root, *(joint.child for joint in tree.joints)):
        joined = link in above and above[link].type == "fixed"
        first[link] = first[above[link].parent] if joined else link
        groups.setdefault(first[link], []).append(link)
    # 2. one body for each group, from the ends inwards; a fixed root belongs to the world
    bodies, left_out, beyond = {}, [], {head: [] for head in groups}
    for head, links in reversed(groups.items()):
        joint = above.get(head)
        if fixed and joint is None:
            continue
        has_shapes = touches and any(tree.links[link].collisions for link in links)
        if joint is None or joint.name in needed or has_shapes or beyond[head] or _has_mass(tree, links):
            bodies[head] = _body(tree, frames, links, joint, beyond[head])
            if joint is not None and joint.type != "floating":
                beyond[first[joint.parent]].append(bodies[head])
        else:
            left_out.append((links, joint))
    if left_out and not bodies:
        _body(tree, frames, *left_out[-1], [])  # raises an error, with the names
    if not bodies:
        raise ValueError(f"{OWNER}: link '{tree.root}' is fixed, and no joint moves: fixed=False lets it float")
    # 3. from the root outwards
    holder = dict.fromkeys(groups[tree.root], WORLD) if fixed else {}
    for head in [head for head in groups if head in bodies]:
        holder |= dict.fromkeys(groups[head], bodies[head].link)
    return [bodies[head] for head in groups if head in bodies], holder


def _has_mass(tree, links):
    inertials = (tree.links[link].inertial for link in links)
    return any(inertial is not None and inertial.mass != 0 for inertial in inertials)


def _body(tree, frames, links, joint, beyond):
    """Body of connected links: ``J = sum R I R^T + m (|d|^2 1 - d d^T)`` about the common centre of mass.

    beyond: bodies that joints connect to it, away from the root.
    """
    # 1. links with mass
    masses = [(link, *_inertia(link, tree.links[link].inertial, frames[link])) for link in links]
    masses = [each for each in masses if each[1] > 0]
    if not masses and (joint is None or not beyond):
        moves = "the root floats (fixed=False)" if joint is None else f"joint '{joint.name}' lets it move"
        raise ValueError(f"{OWNER}: link '{links[0]}' has no inertia, and {moves}")
    # 2. common centre and inertia (parallel axes), or a small part of what is beyond
    least = tuple(min((body.share[k] for body in beyond), default=0.0) for k in range(2))
    small = _LIGHT * least[1]
    if masses:
        name, mass = masses[0][0], sum(m for _, m, *_ in masses)
        centre, J = sum(m * c for _, m, c, _ in masses) / mass, np.zeros((3, 3))
        for _, m, c, own in masses:
            d = c - centre
            J += own + m * (d @ d * np.eye(3) - np.outer(d, d))
        holds = [joint.child] if joint is not None and joint.type != "floating" else []
        ends = [frames[link].x for link in (*holds, *(body.head for body in beyond))]
        J, about = _made_positive(name, J, mass * max((np.sum((centre - x) ** 2) for x in ends), default=0.0), small)
        share = mass, about
    else:
        name, centre, share = links[0], frames[links[0]].x, least
        mass, J = _LIGHT * least[0], small * np.eye(3)
    # 3. the body in the axes of its first link with mass
    frame, p = frames[name], np.empty(4)
    quaternion_of(frame.R.ravel(), p)
    velocity = frame.v + np.cross(frame.omega, centre - frame.x)
    J = frame.R.T @ J @ frame.R
    part = rigid_bodies(mass, (J + J.T) / 2, q=[*centre, *p], v=[*velocity, *(frame.R.T @ frame.omega)])
    return _Body(name, links[0], centre, part, share)


def _made_positive(name, J, arm, small):
    """(J, largest moment of inertia about a joint), where an exporter's moments of 0, up to rounding, are small ones.

    arm: mass times the square of the largest distance from a joint; small: moment of inertia where there is none at all.
    """
    moments, axes = np.linalg.eigh((J + J.T) / 2)
    about = max(moments[-1] + arm, small / _LEAST)
    if moments[0] < -_ROUND * about or about == 0:
        raise ValueError(f"{OWNER}: link '{name}': inertia must be positive definite, got the least eigenvalue {moments[0]:.6g}")
    if moments[0] > _NONE * about:
        return J, about
    return axes @ np.diag(np.maximum(moments, _LEAST * about)) @ axes.T, about


def _inertia(link, inertial, frame):
    """(mass, centre of mass, inertia about it) of a link, in the world; zero for a link without inertia."""
    if inertial is None:
        return 0.0, frame.x, np.zeros((3, 3))
    where = f"{OWNER}: link '{link}'"
    if inertial.mass is None or inertial.inertia is None:
        raise ValueError(f"{where}: <inertial> must have <mass> and <inertia>, has no <{'mass' if inertial.mass is None else 'inertia'}>")
    mass = _checks.number(where, "mass", inertial.mass, low=0.0)
    R, centre = frame.at(inertial.origin)
    return mass, centre, R @ _checks.array(where, "inertia", inertial.inertia) @ R.T


def _names(tree, bodies):
    """({link of a body: name of its part}, {joint: name of its part})."""
    names = {body.link: _identifier(body.link) for body in bodies}
    labels = {joint.name: _identifier(joint.name) for joint in tree.joints if joint.type != "fixed"}
    labels = {joint: f"{label}_joint" if label in names.values() else label for joint, label in labels.items()}
    all_names = [*names.values(), *labels.values()]
    twice = [name for name in all_names if all_names.count(name) > 1]
    if twice:
        raise ValueError(f"{OWNER}: urdf: names of links and joints must differ in letters or digits, got more than one '{twice[0]}'")
    return names, labels


def _identifier(name):
    label = re.sub(r"\W", "_", name)
    return f"_{label}" if label[0].isdigit() else label


def _rows(joint, frame, start, e, motors):
    """(ending of the name, relation, law) of a joint, and of the laws on its coordinate."""
    # 1. the joint itself
    axis = frame.R @ joint.axis
    if joint.type == HELD_STILL:
        yield "", joints.fixed_joint(), equality()
    if joint.type == "planar":
        yield "", joints.planar(frame.x, axis), equality()
    if joint.type == "spherical":
        yield "", joints.ball_joint(frame.x), equality()
    if joint.type not in WITH_COORDINATE:
        return
    turns = joint.type in TURNING
    yield "", joints.hinge(frame.x, axis) if turns else joints.prismatic(axis), equality()
    # 2. its coordinate, counted from the start: stops, damping, friction, motor
    coordinate = joints.hinge_angle if turns else joints.slide_along
    if joint.lower is not None:
        beyond = max(joint.lower - start, start - joint.upper)
        if beyond > 0:
            raise ValueError(
                f"{OWNER}: q of joint '{joint.name}' must be within its stops, {joint.lower:g} and {joint.upper:g}, got {start:g}, "
                f"which is {beyond:g} beyond"
            )
        yield "_stops", coordinate(axis, joint.lower - start, joint.upper - start), newton_impact(e)
    if joint.damping > 0:
        yield "_damping", coordinate(axis), spring_damper(0.0, joint.damping)
    if joint.friction > 0:
        yield "_friction", coordinate(axis), dry_friction(joint.friction)
    if joint.name in motors:
        yield "_motor", coordinate(axis), motors[joint.name]


def _contacts(tree, frames, bodies, holder, names, law, world, self_contacts):
    """Part of all collision shapes."""
    # 1. shapes in the axes of their bodies, or of the world
    found, centres = {}, {body.link: body for body in bodies}
    for link, description in tree.links.items():
        for number, collision in enumerate(description.collisions if link in holder else ()):
            R, x = frames[link].at(collision.origin)
            body = holder[link]
            if body != WORLD:
                axes = frames[body].R
                R, x = axes.T @ R, axes.T @ (x - centres[body].centre)
            where, is_capsule = f"{OWNER}: link '{link}'", (link, number) in tree.capsules
            found.setdefault(body, []).append(_shape(where, collision.geometry, is_capsule, R, x, tree.find))
    fixed = found.pop(WORLD, [])
    if not found:
        raise ValueError(f"{OWNER}: law is given, and no link that moves has a <collision>")
    # 2. pairs: bodies with the world and with each other, unless a joint connects them
    joined = {frozenset((holder[joint.parent], holder[joint.child])) for joint in tree.joints}
    pairs = [(names[body], WORLD) for body in found if frozenset((body, WORLD)) not in joined]
    if self_contacts:
        pairs += [(names[a], names[b]) for a, b in combinations(found, 2) if frozenset((a, b)) not in joined]
    return collisions({names[body]: own for body, own in found.items()}, law, world=[*fixed, *world], pairs=pairs)


def _shape(where, geometry, is_capsule, R, x, find):
    """A collision shape at its pose."""
    p = np.empty(4)
    quaternion_of(R.ravel(), p)
    at = {"position": x, "orientation": p}
    try:
        if geometry.box is not None:
            return shapes.box(geometry.box.size, **at)
        if geometry.cylinder is not None:
            make = shapes.capsule if is_capsule else shapes.cylinder
            return make(geometry.cylinder.radius, geometry.cylinder.length, **at)
        if geometry.sphere is not None:
            return shapes.sphere(geometry.sphere.radius, position=x)
        scale = 1.0 if geometry.mesh.scale is None else geometry.mesh.scale
        return shapes.from_file(find(geometry.mesh.filename), scale=scale, hull=True, **at)
    except ValueError as error:
        raise ValueError(f"{where}: <collision>: {error}") from None
