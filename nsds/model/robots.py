"""Robots from their descriptions (URDF, extra ``urdf``): links as rigid bodies, joints with what acts on them, collision shapes."""

import io
import os
import re
from itertools import combinations
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from nsds import _checks
from nsds.maths.rotations import exp_rotation, quaternion_of
from nsds.model import joints, shapes
from nsds.model.collisions import collisions
from nsds.model.interactions import interaction
from nsds.model.laws import HELD, MAKERS, dry_friction, equality, newton_impact, spring_damper
from nsds.model.rigid_bodies import rigid_bodies

_OWNER = "robot"
_TYPES = ("fixed", "revolute", "continuous", "prismatic", "floating", "planar")
_TURNING, _WITH_COORDINATE, _WITH_STOPS = ("revolute", "continuous"), ("revolute", "continuous", "prismatic"), ("revolute", "prismatic")
_WORLD, _CONTACTS = "world", "contacts"


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
        Positions and velocities of joints at the start (rad and rad/s, m and m/s); 0 where a joint is not named.
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
        What cannot be read; loops, mimic joints, links that move and have no inertia, starts beyond a stop and missing meshes, with the
        names of the link or joint, and the amount.
    ImportError
        yourdfpy, which reads URDF (extra ``urdf``), is not installed.

    Notes
    -----
    Inertias are shifted from their own frames to the body's and turned. Read are joints with origin, axis, limit (lower and upper),
    dynamics (damping: `nsds.spring_damper`, friction: `nsds.dry_friction`) and inertial and collision elements: box, cylinder, sphere, and
    meshes as their convex hulls. Of limits velocity and effort are not, nor are calibration, safety controllers and transmissions: a motor
    has bounds of its own law.

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
        raise TypeError(f"{_OWNER}: world must be a shape from nsds.shapes or a list of them, got {_checks.shortened(world)}")
    for k, shape in enumerate(world):
        shapes.require_shape(f"{_OWNER}: world[{k}]", shape)
    tree = _tree(*_read(urdf, folder))
    # 2. initial pose and velocity of each link
    q, v = (_by_joint(tree, name, values) for name, values in (("q", q), ("v", v)))
    motors, e = _motors(tree, motors), _checks.number(_OWNER, "e", e, low=0.0, high=1.0)
    frames = _frames(tree, q, v, *_root_pose(position, orientation))
    # 3. bodies: links that fixed joints connect are one
    bodies, holder = _bodies(tree, frames, _checks.flag(_OWNER, "fixed", fixed))
    names, labels = _names(tree, bodies)
    parts = {names[body.link]: body.part for body in bodies}
    # 4. interactions of each joint: the joint itself, stops, damping, friction, motor
    for joint in tree.joints:
        if joint.type != "fixed":
            on = [names[holder[link]] for link in (joint.child, joint.parent) if holder[link] != _WORLD]
            on = on[0] if len(on) == 1 else tuple(on)
            for ending, relation, own in _rows(joint, frames[joint.child], q[joint.name], e, motors):
                parts[labels[joint.name] + ending] = interaction(relation, own, on=on)
    # 5. contacts of the collision shapes
    if law is not None:
        parts[_CONTACTS] = _contacts(tree, frames, bodies, holder, names, law, world, _checks.flag(_OWNER, "self_contacts", self_contacts))
    return parts


class _Joint(NamedTuple):
    name: str
    type: str
    parent: str
    child: str
    origin: np.ndarray  # (4, 4), of the child in the axes of the parent
    axis: np.ndarray  # (3,), in axes of the child
    lower: float  # None without stops
    upper: float
    damping: float
    friction: float


class _Tree(NamedTuple):
    root: str
    links: dict  # name -> link as yourdfpy has it
    joints: list  # parents before children
    find: object  # the file of a mesh, from its name in the description


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
    centre: np.ndarray  # in the world
    part: dict


def _read(urdf, folder):
    """(description as yourdfpy reads it, finder of meshes)."""
    # 1. text of the file, as XML: errors of the file are told apart from those of the reader
    if not isinstance(urdf, (str, os.PathLike)) or not str(urdf):
        raise TypeError(f"{_OWNER}: urdf must be the name of a file, or its text, got {_checks.shortened(urdf)}")
    folder = None if folder is None else _checks.path(_OWNER, "folder", folder)
    is_text = isinstance(urdf, str) and urdf.lstrip().startswith("<")
    try:
        text = urdf.strip().encode() if is_text else Path(urdf).read_bytes()
        root = ElementTree.fromstring(text)
        if root.tag.startswith("{"):  # a namespace, which some exporters state and no reader heeds
            for element in root.iter():
                element.tag = element.tag.rpartition("}")[2]
            text = ElementTree.tostring(root)
    except (OSError, ValueError, ElementTree.ParseError) as error:
        raise ValueError(f"{_OWNER}: urdf cannot be read: {error}") from None
    if root.tag != "robot":
        raise ValueError(f"{_OWNER}: urdf must have the root element <robot>, got <{_checks.shortened(root.tag)[1:-1]}>")
    # 2. names, which yourdfpy does not check
    _require_named(root)
    _checks.require_package("yourdfpy", "yourdfpy trimesh", f"{_OWNER}: descriptions are read by yourdfpy")
    from yourdfpy import urdf as library

    # 3. description, with whatever errors the reader raises on one that is incomplete
    try:
        description = library.URDF.load(io.BytesIO(text), build_scene_graph=False).robot
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{_OWNER}: urdf cannot be read by yourdfpy: {error}") from error
    folder = folder if folder is not None else "" if is_text else os.path.dirname(os.path.abspath(urdf))
    return description, lambda name: library.filename_handler_magic(name, folder)


def _require_named(root):
    """Refuses links and joints without a unique name."""
    root.attrib.setdefault("name", "")
    for tag in ("link", "joint"):
        seen = set()
        for element in root.findall(tag):
            name = element.get("name")
            if not name or name in seen:
                raise ValueError(
                    f"{_OWNER}: urdf: each {tag} must have a name of its own, got {'none' if not name else repr(name) + ' twice'}"
                )
            seen.add(name)
            for end in ("parent", "child") if tag == "joint" else ():
                if element.find(end) is None or not element.find(end).get("link"):
                    raise ValueError(f"{_OWNER}: urdf: joint '{name}' must have <{end} link=...>")


def _tree(description, find):
    """`_Tree` of a description whose links are connected, each by one joint."""
    # 1. the joint above each link: two would close a loop
    links = {link.name: link for link in description.links}
    known = [_joint(joint, links) for joint in description.joints]
    above = {}
    for joint in known:
        if joint.child in above:
            raise ValueError(
                f"{_OWNER}: link '{joint.child}' is the child of joints '{above[joint.child].name}' and '{joint.name}': a loop; a "
                "description is a tree, which an nsds.interaction of two of its links closes"
            )
        above[joint.child] = joint
    # 2. one root
    roots = [name for name in links if name not in above]
    if len(roots) != 1:
        what = f"{', '.join(map(repr, roots))} have none" if roots else f"each of {', '.join(map(repr, above))} has one: a loop"
        raise ValueError(f"{_OWNER}: urdf must have one root, a link that is no joint's child, but {what}")
    # 3. order from the root outwards; joints that are not reached form a loop of their own
    ordered, reached = [], [roots[0]]
    for link in reached:
        below = [joint for joint in known if joint.parent == link]
        ordered += below
        reached += [joint.child for joint in below]
    left = [joint.name for joint in known if joint.parent not in reached]
    if left:
        raise ValueError(f"{_OWNER}: joints {', '.join(map(repr, left))} are a loop, which nothing joins to the root '{roots[0]}'")
    return _Tree(roots[0], links, ordered, find)


def _joint(joint, links):
    # 1. ends and type
    where = f"{_OWNER}: joint '{joint.name}'"
    for end in ("parent", "child"):
        if getattr(joint, end) not in links:
            raise ValueError(f"{where}: there is no link '{getattr(joint, end)}'")
    if joint.type not in _TYPES:
        raise ValueError(f"{where}: type must be one of {', '.join(_TYPES)}, got {joint.type!r}")
    if joint.mimic is not None:
        raise ValueError(
            f"{where} mimics '{joint.mimic.joint}', and there is no relation between the coordinates of two joints; without <mimic> it "
            "moves on its own, or follows by a motor"
        )
    # 2. axis and stops
    axis = _checks.array(where, "axis", joint.axis, shape=(3,))
    if joint.type not in ("fixed", "floating") and not axis.any():
        raise ValueError(f"{where}: axis must not be zero")
    lower = upper = None
    if joint.type in _WITH_STOPS:
        if joint.limit is None:
            raise ValueError(f"{where} is {joint.type} and has no <limit lower=... upper=...>; one that turns freely is continuous")
        lower, upper = (_checks.number(where, end, getattr(joint.limit, end) or 0.0) for end in ("lower", "upper"))
        if not lower < upper:
            raise ValueError(f"{where}: lower must be below upper, got {lower} and {upper}")
    # 3. losses, which only joints with a coordinate have
    losses = [0.0, 0.0]
    if joint.dynamics is not None and joint.type in _WITH_COORDINATE:
        for k, name in enumerate(("damping", "friction")):
            losses[k] = _number(where, name, getattr(joint.dynamics, name))
    origin = np.eye(4) if joint.origin is None else _checks.array(where, "origin", joint.origin)
    length = np.linalg.norm(axis)
    return _Joint(joint.name, joint.type, joint.parent, joint.child, origin, axis / (length or 1.0), lower, upper, *losses)


def _number(where, name, text):
    """A nonnegative number from an attribute that yourdfpy leaves as text."""
    try:
        value = 0.0 if text is None else float(text)
    except ValueError:
        raise ValueError(f"{where}: {name} must be a number, got {text!r}") from None
    return _checks.number(where, name, value, low=0.0)


def _by_joint(tree, name, values):
    """{joint: its value at the start}."""
    known = [joint.name for joint in tree.joints if joint.type in _WITH_COORDINATE]
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise TypeError(f"{_OWNER}: {name} must be a dict from names of joints to numbers, got {_checks.shortened(values)}")
    result = dict.fromkeys((joint.name for joint in tree.joints), 0.0)
    for joint, value in values.items():
        if joint not in known:
            raise ValueError(
                f"{_OWNER}: {name}: there is no joint {_checks.shortened(joint)} with a coordinate; these are: {', '.join(known)}"
            )
        result[joint] = _checks.number(f"{_OWNER}: {name}", f"of '{joint}'", value)
    return result


def _motors(tree, motors):
    motors = {} if motors is None else motors
    known = [joint.name for joint in tree.joints if joint.type in _WITH_COORDINATE]
    if not isinstance(motors, dict):
        raise TypeError(f"{_OWNER}: motors must be a dict from names of joints to laws, got {_checks.shortened(motors)}")
    for joint, law in motors.items():
        if joint not in known:
            raise ValueError(
                f"{_OWNER}: motors: there is no joint {_checks.shortened(joint)} with a coordinate; these are: {', '.join(known)}"
            )
        _checks.made(_OWNER, f"motors: the law of '{joint}'", law, "law", HELD, MAKERS)
    return motors


def _root_pose(position, orientation):
    pose = shapes._shape(_OWNER, [0, 0, 0], position, orientation)["pose"]
    return shapes._rotation(pose[3:]), pose[:3]


def _frames(tree, q, v, R, x):
    """{link: `_Frame`} at the start, from the root outwards."""
    frames, turn = {tree.root: _Frame(R, x, np.zeros(3), np.zeros(3))}, np.empty(9)
    for joint in tree.joints:
        parent = frames[joint.parent]
        R, x = parent.at(joint.origin)
        axis, omega, slide = R @ joint.axis, parent.omega, np.zeros(3)
        if joint.type in _TURNING:
            exp_rotation(q[joint.name] * joint.axis, turn)
            R, omega = R @ turn.reshape(3, 3), omega + v[joint.name] * axis
        elif joint.type == "prismatic":
            x, slide = x + q[joint.name] * axis, v[joint.name] * axis
        frames[joint.child] = _Frame(R, x, omega, parent.v + np.cross(parent.omega, x - parent.x) + slide)
    return frames


def _bodies(tree, frames, fixed):
    """([`_Body`, ...], {link: the link that gives its body the name, or `_WORLD`})."""
    # 1. groups of links connected by fixed joints, by their first link
    above = {joint.child: joint for joint in tree.joints}
    groups, first = {}, {}
    for link in (tree.root, *(joint.child for joint in tree.joints)):
        joined = link in above and above[link].type == "fixed"
        first[link] = first[above[link].parent] if joined else link
        groups.setdefault(first[link], []).append(link)
    # 2. one body for each group; a fixed root belongs to the world
    bodies, holder = [], {}
    for head, links in groups.items():
        if fixed and head == tree.root:
            holder |= dict.fromkeys(links, _WORLD)
            continue
        body = _body(tree, frames, links, above.get(head))
        bodies.append(body)
        holder |= dict.fromkeys(links, body.link)
    return bodies, holder


def _body(tree, frames, links, joint):
    """Body of connected links: ``J = sum R I R^T + m (|d|^2 1 - d d^T)`` about the common centre of mass."""
    # 1. links with mass
    masses = [(link, *_inertia(link, tree.links[link].inertial, frames[link])) for link in links]
    masses = [each for each in masses if each[1] > 0]
    if not masses:
        moves = "the root floats (fixed=False)" if joint is None else f"joint '{joint.name}' lets it move"
        raise ValueError(f"{_OWNER}: link '{links[0]}' has no inertia, and {moves}")
    # 2. common centre and inertia (parallel axes)
    name, mass = masses[0][0], sum(m for _, m, *_ in masses)
    centre, J = sum(m * c for _, m, c, _ in masses) / mass, np.zeros((3, 3))
    for _, m, c, own in masses:
        d = c - centre
        J += own + m * (d @ d * np.eye(3) - np.outer(d, d))
    least = np.linalg.eigvalsh(J)[0]
    if not least > 0:
        raise ValueError(f"{_OWNER}: link '{name}': inertia must be positive definite, got the least eigenvalue {least:.6g}")
    # 3. the body in the axes of its first link with mass
    frame, p = frames[name], np.empty(4)
    quaternion_of(frame.R.ravel(), p)
    velocity = frame.v + np.cross(frame.omega, centre - frame.x)
    J = frame.R.T @ J @ frame.R
    part = rigid_bodies(mass, (J + J.T) / 2, q=[*centre, *p], v=[*velocity, *(frame.R.T @ frame.omega)])
    return _Body(name, centre, part)


def _inertia(link, inertial, frame):
    """(mass, centre of mass, inertia about it) of a link, in the world; zero for a link without inertia."""
    if inertial is None:
        return 0.0, frame.x, np.zeros((3, 3))
    where = f"{_OWNER}: link '{link}'"
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
        raise ValueError(f"{_OWNER}: urdf: names of links and joints must differ in letters or digits, got more than one '{twice[0]}'")
    return names, labels


def _identifier(name):
    label = re.sub(r"\W", "_", name)
    return f"_{label}" if label[0].isdigit() else label


def _rows(joint, frame, start, e, motors):
    """(ending of the name, relation, law) of a joint, and of the laws on its coordinate."""
    # 1. the joint itself
    axis = frame.R @ joint.axis
    if joint.type == "planar":
        yield "", joints.planar(frame.x, axis), equality()
    if joint.type not in _WITH_COORDINATE:
        return
    turns = joint.type in _TURNING
    yield "", joints.hinge(frame.x, axis) if turns else joints.prismatic(axis), equality()
    # 2. its coordinate, counted from the start: stops, damping, friction, motor
    coordinate = joints.hinge_angle if turns else joints.slide_along
    if joint.lower is not None:
        beyond = max(joint.lower - start, start - joint.upper)
        if beyond > 0:
            raise ValueError(
                f"{_OWNER}: q of joint '{joint.name}' must be within its stops, {joint.lower:g} and {joint.upper:g}, got {start:g}, "
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
        for collision in description.collisions:
            R, x = frames[link].at(collision.origin)
            body = holder[link]
            if body != _WORLD:
                axes = frames[body].R
                R, x = axes.T @ R, axes.T @ (x - centres[body].centre)
            found.setdefault(body, []).append(_shape(f"{_OWNER}: link '{link}'", collision.geometry, R, x, tree.find))
    fixed = found.pop(_WORLD, [])
    if not found:
        raise ValueError(f"{_OWNER}: law is given, and no link that moves has a <collision>")
    # 2. pairs: bodies with the world and with each other, unless a joint connects them
    joined = {frozenset((holder[joint.parent], holder[joint.child])) for joint in tree.joints}
    pairs = [(names[body], _WORLD) for body in found if frozenset((body, _WORLD)) not in joined]
    if self_contacts:
        pairs += [(names[a], names[b]) for a, b in combinations(found, 2) if frozenset((a, b)) not in joined]
    return collisions({names[body]: own for body, own in found.items()}, law, world=[*fixed, *world], pairs=pairs)


def _shape(where, geometry, R, x, find):
    """A collision shape at its pose."""
    p = np.empty(4)
    quaternion_of(R.ravel(), p)
    at = {"position": x, "orientation": p}
    try:
        if geometry.box is not None:
            return shapes.box(geometry.box.size, **at)
        if geometry.cylinder is not None:
            return shapes.cylinder(geometry.cylinder.radius, geometry.cylinder.length, **at)
        if geometry.sphere is not None:
            return shapes.sphere(geometry.sphere.radius, position=x)
        scale = 1.0 if geometry.mesh.scale is None else geometry.mesh.scale
        return shapes.from_file(find(geometry.mesh.filename), scale=scale, hull=True, **at)
    except ValueError as error:
        raise ValueError(f"{where}: <collision>: {error}") from None
