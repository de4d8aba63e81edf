"""The ball as a rigid body, under relations, joints and contacts of all kinds, and bodies of other shapes that lie flat.

A law of one row acts on one coordinate, which may be the path of a ball, the angle of a rotor of unit inertia, or what a gear couples: all
of them have the same motion. What lies flat slides as the ball would without rotation.
"""

import numpy as np

import nsds
from nsds import joints, shapes
from nsds.model.laws import LAWS
from nsds.model.system_kinds import NEWTON_EULER
from tests.cells import laws
from tests.cells.laws import END, FORCE, GAP, MASS, RADIUS, Cell
from tests.pairs import ABOVE, BELOW

_SPEED, _RATE = np.array([0.3, -0.2, 0.4]), np.array([1.0, 2.0, -3.0])  # m/s, m/s^2, of axes that move
_OPEN = {"moreau_jean": 1e-4, "d1_minus_linear": 1e-3}  # of positions that are not corrected; 1e-7 where they are
_LOW = {"moreau_jean": 2e-3, "d1_minus_linear": 2e-3}  # m, of the step in which they strike; 1e-4 where it is corrected
_AWAY, _RESTS = 5.0, 0.2  # m, of the fixed point of a distance; s, from when on what fell lies
_BELT = 0.3  # m/s, of surfaces that move along x


# ------------------------------------------------------------------------------------------------------- functions of users
# z of relations: H (3,), the offset, s (3,), a (3,); of contacts: the gap at the start and the radius.
def _gap_and_point(t, q, z, out):
    out[0] = q[2] + z[0]
    out[1], out[2], out[3] = q[0], q[1], q[2] - z[1]
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def _gap_between(t, q, z, out):
    out[0] = q[2] - q[9] + z[0]
    out[1], out[2], out[3] = q[0], q[1], q[2] - z[1]
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def _coordinate(t, q, z, out):
    out[0] = z[3]
    for j in range(3):
        out[0] += z[j] * (q[j] - t * (z[4 + j] + 0.5 * t * z[7 + j]))


def _coordinate_by_q(t, q, z, out):
    for j in range(7):
        out[0, j] = z[j] if j < 3 else 0.0


def _coordinate_by_t(t, q, z, out):
    out[0] = 0.0
    for j in range(3):
        out[0] -= z[j] * (z[4 + j] + t * z[7 + j])


def _coordinate_between(t, q, z, out):
    out[0] = z[3]
    for j in range(3):
        out[0] += z[j] * (q[j] - q[7 + j])


def _velocity(t, z, out):
    out[0] = z[0] + t * z[1]


# ------------------------------------------------------------------------------------------------------- the ball
def _ball(v, rate=None):
    force = FORCE[:3] if rate is None else FORCE[:3] + rate
    return nsds.rigid_bodies(1.0, np.eye(3) * MASS[3], q=[0.0, 0, 0, 1, 0, 0, 0], v=v, fext=force)


def _carrier(speed):
    """A body that nothing stops, around the origin."""
    return nsds.rigid_bodies(np.inf, 1.0, q=[0.0, 0, 0, 1, 0, 0, 0], v=[*speed, 0, 0, 0])


def _on_ball(relation, law, speed=None, rate=None, carried=False):
    """The ball under a relation, seen from axes that move; carried: which are those of a second body."""
    moving = np.zeros(3) if speed is None else speed

    def system():
        parts = {"ball": _ball(law.start + np.r_[moving, 0, 0, 0], rate)} | ({"carrier": _carrier(moving)} if carried else {})
        return nsds.system(**parts, law=nsds.interaction(relation, law.made, on=tuple(parts) if carried else "ball"))

    return system


def _required_of_ball(name, law, speed=None, rate=None):
    speed, rate = (np.zeros(3) if value is None else value for value in (speed, rate))

    def require(scheme, rows):
        laws.require_law(law, scheme, rows)
        (q, v), last = laws.twin(name), rows["ball"][-1]
        place, velocity = last["q"][:3] - END * (speed + 0.5 * END * rate), last["v"] - np.r_[speed + END * rate, 0, 0, 0]
        laws.require_motion((place, velocity * laws.ARM), (q[:3], v * laws.ARM))

    return require


def _of_ball(name, law):
    """Cells of relations that functions or numbers state."""
    if LAWS[law.made["law"]].blocks or name == "newton_impact":
        still, between = (nsds.contact_point(gap, z=[GAP, RADIUS]) for gap in (_gap_and_point, _gap_between))
        yield Cell(name, "contact_point", "", _on_ball(still, law), _required_of_ball(name, law))
        moving = _on_ball(between, law, _SPEED, carried=True), _required_of_ball(name, law, _SPEED)
        yield Cell(name, "contact_point", "between two bodies", *moving)
        if name != "newton_impact":
            return
    offset = GAP if name == "newton_impact" else 0.0
    z, relation = np.r_[law.H[0, :3], offset], "newton_euler_relation"
    at_rest, moving = np.r_[z, np.zeros(6)], np.r_[z, _SPEED, _RATE]
    if name != "force_law":  # whose function and that of a relation have one z
        given = {"jac": _coordinate_by_q, "h_t": _coordinate_by_t}
        for kind, made, carried, speed, rate in (
            ("", nsds.newton_euler_relation(_coordinate, m=1, z=at_rest), False, None, None),
            ("with derivatives", nsds.newton_euler_relation(_coordinate, m=1, z=at_rest, **given), False, None, None),
            ("of time", nsds.newton_euler_relation(_coordinate, h_t=_coordinate_by_t, m=1, z=moving), False, _SPEED, _RATE),
            ("between two bodies", nsds.newton_euler_relation(_coordinate_between, m=1, z=z), True, _SPEED, None),
        ):
            yield Cell(name, relation, kind, _on_ball(made, law, speed, rate, carried), _required_of_ball(name, law, speed, rate))
    if not law.closes and not law.pull:
        row, relation = law.row, "prescribed_velocity"
        for kind, made, carried, speed, rate in (
            ("", nsds.prescribed_velocity([row]), False, None, None),
            ("a number", nsds.prescribed_velocity([row], _SPEED[row]), False, _SPEED, None),
            ("of time", nsds.prescribed_velocity([row], _velocity, z=[_SPEED[row], _RATE[row]]), False, _SPEED, _RATE),
            ("between two bodies", nsds.prescribed_velocity([row]), True, None, None),
        ):
            yield Cell(name, relation, kind, _on_ball(made, law, speed, rate, carried), _required_of_ball(name, law, speed, rate))
        motor = _rotor(nsds.prescribed_velocity([5]), law)
        yield Cell(name, relation, "of a rotation", motor, _required_of_coordinate(name, law, has_y=False))


# ------------------------------------------------------------------------------------------------------- coordinates of joints
def _rotor(relation, law):
    """A rotor of unit inertia in a hinge about z, on whose angle the law acts."""

    def system():
        v = law.start[law.row]
        rotor = nsds.rigid_bodies(1.0, 1.0, q=[0, 0, 0, 1, 0, 0, 0], v=[0, 0, 0, 0, 0, v], mext=[0, 0, FORCE[law.row]])
        hinge = nsds.interaction(joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="rotor")
        return nsds.system(rotor=rotor, hinge=hinge, law=nsds.interaction(relation, law.made, on="rotor"))

    return system


def _pair(relation, law, slides=False):
    """Two rotors beside each other, or a rack and a rotor, each with half of what moves the coordinate that the law acts on."""

    def system():
        force, v, parts = FORCE[law.row], 0.5 * law.start[law.row], {}
        for k, name in enumerate(("one", "other")):
            q, is_rack = [2.0 * k, 0, 0, 1, 0, 0, 0], slides and k == 0
            twist = [v, 0, 0, 0, 0, 0] if is_rack else [0, 0, 0, 0, 0, v]
            load = {"fext": [force, 0, 0]} if is_rack else {"mext": [0, 0, force]}
            parts[name] = nsds.rigid_bodies(2.0, 2.0, q=q, v=twist, **load)
            guide = joints.prismatic([1, 0, 0]) if is_rack else joints.hinge(q[:3], [0, 0, 1])
            parts[f"guide_{name}"] = nsds.interaction(guide, nsds.equality(), on=name)
        return nsds.system(**parts, law=nsds.interaction(relation, law.made, on=("one", "other")))

    return system


def _along_a_line(relation, law):
    """A ball that moves along a line, and does not turn."""

    def system():
        axis = np.eye(3)[law.row]
        v, force = np.r_[axis * law.start[law.row], 0, 0, 0], axis * FORCE[law.row]
        ball = nsds.rigid_bodies(1.0, 1.0, q=[0, 0, 0, 1, 0, 0, 0], v=v, fext=force)
        return nsds.system(ball=ball, law=nsds.interaction(relation, law.made, on="ball"))

    return system


def _required_of_coordinate(name, law, has_y=True):
    def require(scheme, rows):
        laws.require_law(law, scheme, rows)
        q, v = laws.twin(name)
        y, ydot = rows["law"]["y"].reshape(-1), rows["law"]["ydot"].reshape(-1)
        expected = q[law.row] if has_y else 0.0
        laws.require_motion((y[-1] - y[0], ydot[-1]), (expected, v[law.row]), "the coordinate and its rate")

    return require


def _of_joints(name, law):
    """Cells of the coordinates of joints."""
    stop = {"lower": -GAP} if name == "newton_impact" else {}
    axis = np.eye(3)[law.row]
    slide = joints.slide_along(axis, **stop)
    of_point = joints.slide_along(axis, point=0.05 * axis, frame="body", **stop)
    yield Cell(name, "joint", "slide_along", _on_ball(slide, law), _required_of_ball(name, law))
    yield Cell(name, "joint", "slide_along, of a point", _along_a_line(of_point, law), _required_of_coordinate(name, law))
    between = _on_ball(slide, law, _SPEED, carried=True), _required_of_ball(name, law, _SPEED)
    yield Cell(name, "joint", "slide_along, between two bodies", *between)
    require = _required_of_coordinate(name, law)
    yield Cell(name, "joint", "hinge_angle", _rotor(joints.hinge_angle([0, 0, 1], **stop), law), require)
    length = {"lower": _AWAY - GAP} if stop else {}
    yield Cell(name, "joint", "distance", _along_a_line(joints.distance([0, 0, 0], -_AWAY * axis, **length), law), require)
    if stop:
        return
    yield Cell(name, "joint", "gear", _pair(joints.gear([0, 0, 1], 1.0, 1.0), law), require)
    gears = joints.coupler(("angle", [0, 0, 1]), ("angle", [0, 0, -1]), ratio=1.0)
    yield Cell(name, "joint", "coupler", _pair(gears, law), require)
    rack = joints.coupler(("translation", [1, 0, 0]), ("angle", [0, 0, -1]), ratio=1.0)
    yield Cell(name, "joint", "coupler, of a rack", _pair(rack, law, slides=True), require)
    if name == "equality":
        for joint, made in HOLDING.items():
            yield Cell(name, "joint", joint, _held(made), _required_to_hold)


_POINT, _AXIS, _PULL, _MASSES = [0.3, 0.2, 0.1], [0.0, 0.6, 0.8], np.array([0.5, -1.0, 0.7]), (1.0, 2.5)
HOLDING = {
    "ball_joint": lambda: joints.ball_joint(_POINT),
    "universal": lambda: joints.universal(_POINT, _AXIS, [1.0, 0, 0]),
    "hinge": lambda: joints.hinge(_POINT, _AXIS),
    "prismatic": lambda: joints.prismatic(_AXIS),
    "cylindrical": lambda: joints.cylindrical(_POINT, _AXIS),
    "planar": lambda: joints.planar(_POINT, _AXIS),
    "fixed_joint": joints.fixed_joint,
}


def _held(made):
    """Two bodies that float, joined, one of which a force pulls."""

    def system():
        one = nsds.rigid_bodies(_MASSES[0], [0.02, 0.03, 0.04], q=[0, 0, 0, 1, 0, 0, 0], v=np.zeros(6), fext=_PULL)
        other = nsds.rigid_bodies(_MASSES[1], [0.1, 0.12, 0.15], q=[0.6, 0.1, 0.3, 1, 0, 0, 0], v=np.zeros(6))
        return nsds.system(one=one, other=other, law=nsds.interaction(made(), nsds.equality(), on=("one", "other")))

    return system


def _required_to_hold(scheme, rows):
    """The momentum is that of the force, and the joint stays closed."""
    momentum = _MASSES[0] * rows["one"]["v"][-1, :3] + _MASSES[1] * rows["other"]["v"][-1, :3]
    np.testing.assert_allclose(momentum, END * _PULL, atol=1e-9, err_msg="the momentum of both bodies")
    assert abs(rows["law"]["y"]).max() < _OPEN.get(scheme, 1e-7), "the joint opens"


# ------------------------------------------------------------------------------------------------------- detected contacts
_BALL, _LEVEL = shapes.sphere(RADIUS), shapes.height_map(np.zeros((3, 3)), [4.0, 4.0])
FLAT = ("box", "capsule", "cylinder", "cone", "convex", "mesh")
_FLOORS = {"plane": shapes.plane(), "box": BELOW["box"][0], "mesh": BELOW["mesh"][0], "height map": _LEVEL}


def _of_contacts(name, law):
    """Cells of detected contacts, in space and in the plane."""
    is_planar, ball = "plane" in name, (_BALL, RADIUS)
    rolls, lies = _required_of_round(name), _required_of_flat(name, law)
    if not is_planar:
        for floor, world in _FLOORS.items():
            yield Cell(name, "collisions", f"sphere on a {floor}", _set_down(*ball, law, world, rolls=True), rolls)
        yield Cell(name, "collisions", "sphere on a body", _set_down(*ball, law, None, rolls=True), rolls)
        yield Cell(name, "collisions", "spheres of an array", _set_down(*ball, law, shapes.plane(), rolls=True, count=2), rolls)
        for kind in FLAT:
            yield Cell(name, "collisions", f"{kind} on a plane", _set_down(*ABOVE[kind][:2], law, shapes.plane()), lies)
        for floor in ("mesh", "height map"):
            yield Cell(name, "collisions", f"box on a {floor}", _set_down(*ABOVE["box"][:2], law, _FLOORS[floor]), lies)
    if law.mu[0] > 0.0:
        yield from _of_belts(name, law, is_planar)
    if is_planar or name == "newton_impact":
        rolls, lies = _required_of_round(name, True), _required_of_flat(name, law, True)
        for floor, world in (("half-plane", shapes.half_plane()), ("polygon", BELOW["polygon"][0])):
            disk = _set_down_in_the_plane(shapes.disk(RADIUS), RADIUS, law, world, rolls=True)
            yield Cell(name, "collisions", f"disk on a {floor}", disk, rolls)
            for kind in ("stadium", "polygon"):
                yield Cell(name, "collisions", f"{kind} on a {floor}", _set_down_in_the_plane(*ABOVE[kind][:2], law, world), lies)


def _of_belts(name, law, is_planar):
    """Cells of contacts with a surface that moves, on which bodies move as on the ground."""
    rolls, lies = _required_of_round(name, is_planar, _BELT), _required_of_flat(name, law, is_planar, _BELT)
    if is_planar:
        disk = _set_down_in_the_plane(shapes.disk(RADIUS), RADIUS, law, shapes.half_plane(), rolls=True, belt=_BELT)
        yield Cell(name, "collisions", "disk on a belt", disk, rolls)
        belt = _set_down_in_the_plane(*ABOVE["polygon"][:2], law, shapes.half_plane(), belt=_BELT)
        yield Cell(name, "collisions", "polygon on a belt", belt, lies)
    else:
        yield Cell(name, "collisions", "sphere on a belt", _set_down(_BALL, RADIUS, law, shapes.plane(), rolls=True, belt=_BELT), rolls)
        yield Cell(name, "collisions", "box on a belt", _set_down(*ABOVE["box"][:2], law, shapes.plane(), belt=_BELT), lies)


def _set_down(shape, low, law, world, rolls=False, count=None, belt=0.0):
    """A body that falls by `GAP` on what is level, its top at the origin (None: on a body that nothing stops), and moves along x."""

    def system():
        q, v = [0, 0, low + GAP, 1, 0, 0, 0], [law.start[0] + belt, 0, law.start[2], 0, law.start[4] if rolls else 0.0, 0]
        places = [[0, k, *q[2:]] for k in range(count)] if count else q
        body = nsds.rigid_bodies(1.0, np.eye(3) * MASS[4], q=places, v=[v] * count if count else v, fext=FORCE[:3] * [1, 0, 1])
        parts, of = {"body": body}, {"body": shape}
        if world is None:
            parts["carrier"], of["carrier"] = _carrier([0, 0, 0]), BELOW["box"][0]
        surface = {"world": [belt, 0, 0]} if belt else None
        return nsds.system(**parts, law=nsds.collisions(of, law.made, world=() if world is None else world, surface_velocity=surface))

    return system


def _set_down_in_the_plane(shape, low, law, world, rolls=False, belt=0.0):
    """As `_set_down`; y is up."""

    def system():
        v = [law.start[0] + belt, law.start[2], -law.start[4] if rolls else 0.0]
        body = nsds.planar_bodies(1.0, MASS[4], q=[0, low + GAP, 0], v=v, fext=FORCE[[0, 2]])
        surface = {"world": [belt, 0, 0]} if belt else None
        return nsds.system(body=body, law=nsds.collisions({"body": shape}, law.made, world=world, surface_velocity=surface))

    return system


def _seen(rows, is_planar, belt):
    """(path along x and upwards, its rate, rate of rolling, twist) at each row, of the first body of an array, against the belt."""
    body = rows["body"]
    q, v = (body[field].reshape(len(rows), -1, n)[:, 0] for field, n in (("q", 7), ("v", 6)))
    up = 1 if is_planar else 2
    run, speed = belt * np.outer(rows["t"], [1.0, 0.0]), belt * np.array([1.0, 0.0])
    return q[:, [0, up]] - run, v[:, [0, up]] - speed, -v[:, 5] if is_planar else v[:, 4], v


def _required_of_round(name, is_planar=False, belt=0.0):
    """It rolls as the twin does."""

    def require(scheme, rows):
        (right_q, right_v), (q, v, spin, _) = laws.twin(name), _seen(rows, is_planar, belt)
        laws.require_motion((q[-1] - q[0], v[-1]), (right_q[[0, 2]], right_v[[0, 2]]))
        assert abs(spin[-1] - right_v[4]) * RADIUS < 3e-2, "the spin of what rolls"

    return require


def _required_of_flat(name, law, is_planar=False, belt=0.0):
    """It comes to lie and slides as the twin without rotation, braked to rounding by ``mu g``; nothing turns or leaves the ground."""

    def require(scheme, rows):
        (right_q, right_v), (q, v, _, twist) = laws.twin(name, arm=0.0), _seen(rows, is_planar, belt)
        laws.require_motion((q[-1] - q[0], v[-1]), (right_q[[0, 2]], right_v[[0, 2]]))
        late = rows["t"] > _RESTS
        rate = (v[late][-1, 0] - v[late][0, 0]) / (rows["t"][late][-1] - rows["t"][late][0])
        np.testing.assert_allclose(rate, FORCE[0] + law.mu[0] * FORCE[2], atol=1e-3, err_msg="what slides is braked by mu g")
        np.testing.assert_allclose(q[late][:, 1], q[0, 1] - GAP, atol=_LOW.get(scheme, 1e-4), err_msg="the height of what lies")
        np.testing.assert_allclose(twist[:, 3:] * RADIUS, 0.0, atol=1e-2, err_msg="what lies flat does not turn")

    return require


# ------------------------------------------------------------------------------------------------------- all
def rigid_cells():
    """All `Cell` of rigid bodies."""
    for name, law in laws.mechanical_laws().items():
        row = LAWS[law.made["law"]]
        if NEWTON_EULER not in row.families:
            continue
        if "plane" not in name:
            yield from _of_ball(name, law)
            if not row.blocks:
                yield from _of_joints(name, law)
        if row.is_detected:
            yield from _of_contacts(name, law)
