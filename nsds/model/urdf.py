"""Descriptions of robots in URDF (extra ``urdf``): a tree of links and joints, read by yourdfpy, with what exporters write besides."""

import io
import os
import warnings
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from nsds import _checks
from nsds.maths.rotations import exp_rotation

OWNER = "robot"
TURNING, WITH_COORDINATE = ("revolute", "continuous"), ("revolute", "continuous", "prismatic")
HELD_STILL = "held"  # the type of a joint whose stops coincide
_TYPES = ("fixed", "revolute", "continuous", "prismatic", "floating", "planar", "spherical")
_WITH_STOPS = ("revolute", "prismatic")
WORLD = "world"  # a parent that is a link without being described
# What is read of a description, by element; the rest is left out before yourdfpy sees it, which refuses what it does not know.
_READ = {
    "robot": ("link", "joint"),
    "link": ("inertial", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}


class Joint(NamedTuple):
    """A joint; one that has a coordinate and cannot move is held, with its value in the origin."""

    name: str
    type: str
    parent: str
    child: str
    origin: np.ndarray  # (4, 4), of the child in the axes of the parent
    axis: np.ndarray  # (3,), in axes of the child
    lower: float | None  # None without stops; of a held joint its value
    upper: float | None
    damping: float
    friction: float
    mimic: tuple | None  # (joint, multiplier, offset) of a coordinate that follows another


class Tree(NamedTuple):
    """Links and joints from the root outwards."""

    root: str
    links: dict  # name -> link as yourdfpy has it
    joints: list  # parents before children
    capsules: set  # (link, number) of the collision elements that are capsules, read as cylinders
    find: object  # the file of a mesh, from its name in the description


def read(urdf, folder):
    """`Tree` of a file, or of its text; folder: where meshes are looked for, beside the file if None."""
    # 1. text of the file, as XML: errors of the file are told apart from those of the reader
    if not isinstance(urdf, (str, os.PathLike)) or not str(urdf):
        raise TypeError(f"{OWNER}: urdf must be the name of a file, or its text, got {_checks.shortened(urdf)}")
    folder = None if folder is None else _checks.path(OWNER, "folder", folder)
    is_text = isinstance(urdf, str) and urdf.lstrip().startswith("<")
    try:
        text = urdf.encode() if is_text else Path(urdf).read_bytes()
        root = ElementTree.fromstring(text[max(text.find(b"<?xml"), 0) :].strip())  # comments before the declaration are not allowed
    except (OSError, ValueError, ElementTree.ParseError) as error:
        raise ValueError(f"{OWNER}: urdf cannot be read: {error}") from None
    # 2. what is not for the reader
    capsules = _simplified(root)
    _checks.require_package("yourdfpy", "yourdfpy trimesh", f"{OWNER}: descriptions are read by yourdfpy")
    from yourdfpy import urdf as library

    # 3. description, with whatever errors the reader raises on one that is incomplete
    try:
        description = library.URDF.load(io.BytesIO(ElementTree.tostring(root)), build_scene_graph=False).robot
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{OWNER}: urdf cannot be read by yourdfpy: {error}") from error
    folder = folder if folder is not None else "" if is_text else os.path.dirname(os.path.abspath(urdf))
    return _tree(description, capsules, lambda name: _found(name, folder))


def _simplified(root):
    """{(link, number)} of capsules, which the reader does not know: they become cylinders. In/out: root, the description as XML.

    Left are the elements that are read, without a namespace, which some exporters state; links and joints have names of their own.
    """
    # 1. tags
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.rpartition("}")[2]
    if root.tag != "robot":
        raise ValueError(f"{OWNER}: urdf must have the root element <robot>, got <{_checks.shortened(root.tag)[1:-1]}>")
    root.attrib.setdefault("name", "robot")
    for element in [root, *root.findall("link"), *root.findall("joint")]:
        for child in [child for child in element if child.tag not in _READ[element.tag]]:
            element.remove(child)
    # 2. names, which the reader does not check; a world that joints name is a link
    _require_named(root)
    links = {link.get("name") for link in root.findall("link")}
    if WORLD not in links and any(joint.find("parent").get("link") == WORLD for joint in root.findall("joint")):
        ElementTree.SubElement(root, "link", name=WORLD)
    # 3. capsules
    capsules = set()
    for link in root.findall("link"):
        for number, collision in enumerate(link.findall("collision")):
            for capsule in collision.findall("geometry/capsule"):
                capsule.tag = "cylinder"
                capsules.add((link.get("name"), number))
    return capsules


def _require_named(root):
    """Refuses links and joints without a unique name."""
    for tag in ("link", "joint"):
        seen = set()
        for element in root.findall(tag):
            name = element.get("name")
            if not name or name in seen:
                raise ValueError(
                    f"{OWNER}: urdf: each {tag} must have a name of its own, got {'none' if not name else repr(name) + ' twice'}"
                )
            seen.add(name)
            for end in ("parent", "child") if tag == "joint" else ():
                if element.find(end) is None or not element.find(end).get("link"):
                    raise ValueError(f"{OWNER}: urdf: joint '{name}' must have <{end} link=...>")


def _found(name, folder):
    """The file of a mesh, in the folder or above it, with the name of its package or without; the name itself where there is none."""
    scheme, mark, place = name.rpartition("://")
    place = Path(place)
    if scheme == "file" or place.is_absolute():
        return str(place)
    inner = Path(*place.parts[1:]) if mark and len(place.parts) > 1 else place
    for base in (Path(folder).resolve(), *Path(folder).resolve().parents):
        for path in (base / place, base / inner):
            if path.is_file():
                return str(path)
    return name


def _tree(description, capsules, find):
    """`Tree` of a description whose links are connected, each by one joint."""
    # 1. the joint above each link: two would close a loop
    links = {link.name: link for link in description.links}
    known, above = [], {}
    for described in description.joints:
        joint = _joint(described, links)
        known.append(joint)
        if joint.child in above:
            raise ValueError(
                f"{OWNER}: link '{joint.child}' is the child of joints '{above[joint.child].name}' and '{joint.name}': a loop; a "
                "description is a tree, which an nsds.interaction of two of its links closes"
            )
        above[joint.child] = joint
    # 2. one root
    roots = [name for name in links if name not in above]
    if not links:
        raise ValueError(f"{OWNER}: urdf must have a <link>, got none")
    if len(roots) != 1:
        what = f"{', '.join(map(repr, roots))} have none" if roots else f"each of {', '.join(map(repr, above))} has one: a loop"
        raise ValueError(f"{OWNER}: urdf must have one root, a link that is no joint's child, but {what}")
    # 3. order from the root outwards; joints that are not reached form a loop of their own
    ordered, reached = [], [roots[0]]
    for link in reached:
        below = [joint for joint in known if joint.parent == link]
        ordered += below
        reached += [joint.child for joint in below]
    left = [joint.name for joint in known if joint.parent not in reached]
    if left:
        raise ValueError(f"{OWNER}: joints {', '.join(map(repr, left))} are a loop, which nothing joins to the root '{roots[0]}'")
    return Tree(roots[0], links, _following(ordered), capsules, find)


def _joint(joint, links):
    # 1. ends and type
    where = f"{OWNER}: joint '{joint.name}'"
    for end in ("parent", "child"):
        if getattr(joint, end) not in links:
            raise ValueError(f"{where}: there is no link '{getattr(joint, end)}'")
    if joint.type not in _TYPES:
        raise ValueError(f"{where}: type must be one of {', '.join(_TYPES)}, got {joint.type!r}")
    # 2. axis and stops
    axis = _checks.array(where, "axis", joint.axis, shape=(3,))
    if joint.type not in ("fixed", "floating", "spherical") and not axis.any():
        raise ValueError(f"{where}: axis must not be zero")
    lower, upper = _stops(where, joint)
    # 3. losses, which only joints with a coordinate have
    losses = [0.0, 0.0]
    if joint.dynamics is not None and joint.type in WITH_COORDINATE:
        for k, name in enumerate(("damping", "friction")):
            losses[k] = _number(where, name, getattr(joint.dynamics, name))
    # 4. coordinate that it follows
    mimic = None
    if joint.mimic is not None and joint.type in WITH_COORDINATE:
        mimic = joint.mimic.joint, *(_checks.number(where, name, getattr(joint.mimic, name)) for name in ("multiplier", "offset"))
    origin = np.eye(4) if joint.origin is None else _checks.array(where, "origin", joint.origin)
    length = np.linalg.norm(axis)
    made = Joint(joint.name, joint.type, joint.parent, joint.child, origin, axis / (length or 1.0), lower, upper, *losses, mimic)
    return held(made, lower) if lower is not None and lower == upper else made


def _stops(where, joint):
    """(lower, upper) of a joint; None of one that has no stops."""
    if joint.type not in _WITH_STOPS:
        return None, None
    if joint.limit is None:
        raise ValueError(f"{where} is {joint.type} and has no <limit lower=... upper=...>; one that turns freely is continuous")
    if joint.limit.lower is None and joint.limit.upper is None:
        warnings.warn(f"{where}: its <limit> has neither lower nor upper, which are then 0: it is held at 0", stacklevel=6)
    lower, upper = (_checks.number(where, end, getattr(joint.limit, end) or 0.0) for end in ("lower", "upper"))
    if lower > upper:
        warnings.warn(f"{where}: lower is above upper, {lower:g} and {upper:g}: it has no stops", stacklevel=6)
        return None, None
    return lower, upper


def held(joint, value):
    """The joint held at a value of its coordinate, which both of its stops are."""
    return joint._replace(type=HELD_STILL, origin=joint.origin @ motion(joint, value), lower=value, upper=value, mimic=None)


def motion(joint, value):
    """(4, 4): axes of the child of a joint with a coordinate, in those that it has at 0."""
    result = np.eye(4)
    if joint.type in TURNING:
        turn = np.empty(9)
        exp_rotation(value * joint.axis, turn)
        result[:3, :3] = turn.reshape(3, 3)
    elif joint.type == "prismatic":
        result[:3, 3] = value * joint.axis
    return result


def _following(joints):
    """The joints with mimics resolved: each names the last joint of its chain, ``q = multiplier q_last + offset``.

    A joint that mimics a held one, or with the multiplier 0, is held.
    """
    known, result = {joint.name: joint for joint in joints}, []
    for joint in joints:
        leader, multiplier, offset, chain = joint, 1.0, 0.0, [joint.name]
        while leader.mimic is not None:
            name, factor, shift = leader.mimic
            if name not in known or (known[name].type not in (*WITH_COORDINATE, HELD_STILL)):
                raise ValueError(f"{OWNER}: joint '{leader.name}' mimics '{name}', and there is no joint '{name}' with a coordinate")
            if name in chain:
                raise ValueError(f"{OWNER}: joints {', '.join(map(repr, chain))} mimic each other in a loop")
            leader, multiplier, offset = known[name], multiplier * factor, offset + multiplier * shift
            chain.append(name)
        if leader is not joint and (multiplier == 0 or leader.type == HELD_STILL):
            joint = held(joint, offset + (multiplier * leader.lower if multiplier else 0.0))
        elif leader is not joint:
            joint = joint._replace(mimic=(leader.name, multiplier, offset))
        result.append(joint)
    return result


def _number(where, name, text):
    """A nonnegative number from an attribute that yourdfpy leaves as text."""
    try:
        value = 0.0 if text is None else float(text)
    except ValueError:
        raise ValueError(f"{where}: {name} must be a number, got {text!r}") from None
    return _checks.number(where, name, value, low=0.0)
