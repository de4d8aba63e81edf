"""Joints of robots that mimic others: couplers with the world, and on a body that moves wheels or a wedge between the two joints.

A relation has two bodies, and joints that follow each other on a body that moves have three: that body and the two that it carries. A light
part between them makes two relations of this one, exactly:

- wheels about the pivots of two hinges with parallel axes, fixed to the bodies that turn, which roll on each other as a pair of gears does;
- a wedge that slides across the axes of two sliding joints, along whose slopes both bodies slide.
"""

import numpy as np

from nsds.maths.rotations import perpendicular, quaternion_of
from nsds.model import joints
from nsds.model.interactions import interaction
from nsds.model.laws import equality
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.urdf import OWNER, TURNING, WORLD

_LIGHT = 1e-4  # mass and inertia of wheels and wedges, of those of the lighter body beside them: lighter ones make hard problems
_PARALLEL = 1e-6  # sine of the angle between axes
_ELSE = "without <mimic> it moves on its own, or follows by a motor"


def couplings(tree, frames, rates, bodies, holder, names, labels):
    """Parts by which joints follow those that they mimic, or others that mimic the same one and share a body with them.

    rates: velocities of joints at the start; bodies: {link: body}; holder, names, labels: as in `nsds.model.robots`.
    """
    parts, leaders = {}, {joint.name: [(joint, 1.0)] for joint in tree.joints}
    waiting = [joint for joint in tree.joints if joint.mimic is not None]
    while waiting:
        # 1. the next joint that has a body in common with one that is coupled already
        pairs = ((joint, *other) for joint in waiting for other in leaders[joint.mimic[0]])
        found = ((*pair, shared) for pair in pairs if (shared := _shared(*pair[:2], holder)))
        chosen = next(found, None)
        if chosen is None:
            raise ValueError(
                f"{OWNER}: joint '{waiting[0].name}' mimics '{waiting[0].mimic[0]}', and no body has both, nor it and another that does; "
                f"{_ELSE}"
            )
        joint, leader, factor, carrier = chosen
        waiting.remove(joint)
        leaders[joint.mimic[0]].append((joint, joint.mimic[1]))
        # 2. parts between them
        ratio, label = joint.mimic[1] / factor, f"{labels[joint.name]}_mimic"
        if carrier == WORLD:
            kinds = [("angle" if each.type in TURNING else "translation", frames[each.child].R @ each.axis) for each in (leader, joint)]
            on = names[holder[leader.child]], names[holder[joint.child]]
            parts[label] = interaction(joints.coupler(*kinds, ratio=ratio), equality(), on=on)
            continue
        sides = [_Side(tree, each, carrier, frames, bodies, holder, names) for each in (leader, joint)]
        if leader.type in TURNING and joint.type in TURNING:
            parts |= _wheels(label, joint, leader, ratio, sides)
        elif leader.type not in TURNING and joint.type not in TURNING:
            parts |= _wedge(label, ratio, rates[joint.name], sides, frames[carrier], names[carrier])
        else:
            raise ValueError(
                f"{OWNER}: joint '{joint.name}' mimics '{leader.name}', one turns, one slides, and link '{carrier}' between them moves: "
                f"both must turn or both must slide; {_ELSE}"
            )
    return parts


def _shared(joint, other, holder):
    """The body that two joints have in common, one that moves where there are two; None if there is none."""
    common = {holder[joint.parent], holder[joint.child]} & {holder[other.parent], holder[other.child]}
    return min(common, key=lambda link: link == WORLD, default=None)


class _Side:
    """One of the two joints, as seen from the body that has both: the body on its other end, and the axis along which this one moves."""

    def __init__(self, tree, joint, carrier, frames, bodies, holder, names):
        is_outwards = holder[joint.parent] == carrier
        self.link = holder[joint.child if is_outwards else joint.parent]
        self.frame = frames[tree.root if self.link == WORLD else self.link]
        self.part = None if self.link == WORLD else names[self.link]
        self.pivot = frames[joint.child].x
        self.axis = (1.0 if is_outwards else -1.0) * (frames[joint.child].R @ joint.axis)
        self.share = np.inf if self.link == WORLD else bodies[self.link].share

    def beside(self, part):
        """Parts that an interaction of a part with this body is on: of the world the part alone."""
        return part if self.part is None else (part, self.part)


def _light(sides):
    """(mass, moment of inertia) of a part between two bodies."""
    return tuple(_LIGHT * np.minimum(sides[0].share, sides[1].share))


def _placed(inertia, frame, x, v):
    """A light body with the axes of a frame at x, with the velocity v."""
    p = np.empty(4)
    quaternion_of(frame.R.ravel(), p)
    return rigid_bodies(*inertia, q=[*x, *p], v=[*v, *(frame.R.T @ frame.omega)])


def _wheels(label, joint, leader, ratio, sides):
    """Two wheels about the pivots, fixed to the bodies that turn, one with each."""
    first, second = sides
    apart = np.linalg.norm(np.cross(first.axis, second.pivot - first.pivot))
    along = first.axis @ second.axis
    if abs(along) < 1.0 - _PARALLEL or apart == 0.0:
        raise ValueError(
            f"{OWNER}: joint '{joint.name}' mimics '{leader.name}', and the link between them moves: "
            f"the axes must be parallel, and apart; {_ELSE}"
        )
    parts, wheels = {}, (f"{label}_wheel", f"{label}_second_wheel")
    for wheel, side in zip(wheels, sides, strict=True):
        v = side.frame.v + np.cross(side.frame.omega, side.pivot - side.frame.x)
        parts[wheel] = _placed(_light(sides), side.frame, side.pivot, v)
        parts[f"{wheel}_fixed"] = interaction(joints.fixed_joint(), equality(), on=side.beside(wheel))
    # ratio (angle of the first) = angle of the second, each on the body between them
    parts[label] = interaction(joints.gear(first.axis, ratio * apart, -along * apart), equality(), on=wheels)
    return parts


def _wedge(label, ratio, rate, sides, frame, carrier):
    """A wedge that slides across both axes, by the displacement of the second body, which is ratio times that of the first."""
    across, wedge = np.cross(sides[0].axis, sides[1].axis), f"{label}_wedge"
    if np.linalg.norm(across) < _PARALLEL:
        perpendicular(sides[0].axis, across)
    across = across / np.linalg.norm(across)
    parts = {wedge: _placed(_light(sides), frame, frame.x, frame.v + rate * across)}
    parts[f"{wedge}_slide"] = interaction(joints.prismatic(across), equality(), on=(wedge, carrier))
    for name, side, factor in zip((f"{label}_slope", label), sides, (ratio, 1.0), strict=True):
        parts[name] = interaction(joints.slide_along(across + factor * side.axis), equality(), on=side.beside(wedge))
    return parts
