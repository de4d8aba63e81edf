"""Machines: guides, presses, grippers, linkages, gears, joints with stops and friction."""

import math

import numpy as np

import nsds
from nsds.model import joints, shapes
from tests.scenes.model import FINE, G, Model, close, depth, heights, scene, tilt, turned_by, variant, violation


@scene(t_end=1.0, short=0.4, rest=0.5)
def guided_box(mu=0.3, side=1.0, drop=0.1):
    """A box on a vertical guide falls to the ground and rests."""
    model = Model(mu=mu)
    model.body("box", shapes.box([side] * 3), [0, 0, side / 2 + drop], mass=side**3)
    model.join("guide", joints.prismatic([0, 0, 1]), "box")

    def facts(rows, h):
        z, weight = heights(rows, "box"), side**3 * G * h
        late = rows["t"] > 0.8 * rows["t"][-1]
        carried = rows["contacts"]["lambda"][late][:, :, 0].sum(axis=1)
        reach = math.sqrt(2 * G * drop) * h + 2 * G * h**2
        return {
            "it lies on the ground": close(z[-1], side / 2, reach),
            "the ground carries its weight": close(carried, weight, 1e-6 * weight),
            "it stays upright": close(turned_by(rows, "box"), 0, 1e-7),
        }

    return model.record(), facts


variant("guided_box_without_friction", "guided_box", mu=0.0)
variant("guided_box_of_a_micrometre", "guided_box", side=1e-6, drop=1e-7, t_end=1e-3, short=4e-4, rest=5e-4, steps=(1e-5, 1e-6, 1e-7))
variant("guided_box_of_a_kilometre", "guided_box", side=1e3, drop=1e2, t_end=30.0, short=12.0, rest=15.0, steps=(0.3, 3e-2, 3e-3))


@scene(t_end=1.0, short=0.3, rest=0.6)
def press(force=1e3):
    """A ram on a guide comes down on a box that lies on the ground, and presses it."""
    model = Model(mu=0.4)
    model.body("part", shapes.box([0.2, 0.2, 0.1]), [0, 0, 0.05], mass=2.0)
    model.body("ram", shapes.box([0.3, 0.3, 0.2]), [0, 0, 0.25], mass=5.0, fext=[0, 0, -force - 5.0 * G])
    model.join("guide", joints.prismatic([0, 0, 1]), "ram")

    def facts(rows, h):
        speed = math.sqrt(2 * 0.05 * (force / 5.0 + G))
        reach = 2 * speed * h + 8 * (force / 5.0) * h**2
        return {
            "the part lies on the ground": close(heights(rows, "part")[-1], 0.05, reach),
            "the ram lies on the part": close(heights(rows, "ram")[-1], 0.2, 2 * reach),
            "the part has not slipped": close(rows["part"]["q"][-1, :2], 0, 1e-6),
        }

    return model.record(), facts


def lift(t, z, out):
    """Force on the hand: what it bears, z[0], and z[1] up for z[2] seconds, then down for as long."""
    out[0], out[1], out[2] = 0.0, 0.0, z[0]
    if t < z[2]:
        out[2] += z[1]
    elif t < 2 * z[2]:
        out[2] -= z[1]


@scene(t_end=1.0, short=0.6)
def gripper(pressed=0.0, mu=0.5, squeeze=50.0, size=1.0):
    """Two fingers, drawn exactly touching, press a box and lift it; two guides carry them on the hand."""
    model = Model(mu=mu, ground=False)
    side = 0.1 * size
    model.body("part", shapes.box([side] * 3), [0, 0, 0], mass=0.5)
    total = 0.5 + 2 * 0.2 + 1.0
    weights = (total - 1.0) * G  # of what hangs on the hand; its own is left out
    model.body("hand", shapes.box([3 * side, side, side]), [0, 0, 2 * side], collides=False, fext=lift, z=[weights, 2.0 * total, 0.3])
    finger = shapes.box([side / 2, side, side])
    for name, sign in (("left", -1), ("right", 1)):
        at = [sign * (0.75 * side - pressed), 0, 0]
        model.body(name, finger, at, mass=0.2, fext=[-sign * squeeze, 0, -0.2 * G])
        model.join("guide_" + name, joints.prismatic([1, 0, 0]), (name, "hand"))
    model.join("column", joints.prismatic([0, 0, 1]), "hand")

    def facts(rows, h):
        part, hand = rows["part"]["q"], rows["hand"]["q"]
        rise = (hand[:, 2] - hand[0, 2]) - (part[:, 2] - part[0, 2])
        return {
            "the part does not turn": close(turned_by(rows, "part"), 0, 1e-6),
            "the part does not slip": close(rise, 0, 1e-9 * size if pressed >= 0 else 8 * G * h**2),
            "it has been lifted": part[-1, 2] > 0.1,
        }

    return model.record(), facts


variant("gripper_pressed_in", "gripper", pressed=1e-12)
variant("gripper_that_hovers", "gripper", pressed=-1e-6)


@scene(t_end=2.0, short=0.5)
def four_bar_with_stops():
    """Planar four-bar linkage in space, with redundant hinges; a motor moment turns the crank to and fro between its stops."""
    model = Model(ground=False)
    axis = [0, 1, 0]
    a, b = np.array([0.0, 0, 0.2]), np.array([0.5, 0, 0.4])
    ends = {"crank": (np.zeros(3), a), "coupler": (a, b), "rocker": (b, np.array([0.4, 0, 0.0]))}
    for name, (start, end) in ends.items():
        along = end - start
        length = np.linalg.norm(along)
        forces = {"mext": [0.0, 1.5, 0.0]} if name == "crank" else {}
        angle = math.atan2(along[0], along[2])
        model.body(
            name,
            shapes.capsule(0.02, length),
            (start + end) / 2,
            mass=0.5,
            turned=[math.cos(angle / 2), 0, math.sin(angle / 2), 0],
            collides=False,
            **forces,
        )
    model.join("pivot", joints.hinge([0, 0, 0], axis), "crank")
    model.join("elbow", joints.hinge(a, axis), ("crank", "coupler"))
    model.join("knee", joints.hinge(b, axis), ("coupler", "rocker"))
    model.join("foot", joints.hinge([0.4, 0, 0], axis), "rocker")
    model.join("stops", joints.hinge_angle(axis, lower=-0.5, upper=0.6), "crank", nsds.newton_impact(0.3))

    def facts(rows, h):
        gaps = rows["stops"]["y"]
        return {
            "the stops hold": gaps.min() > -20 * h,
            "the hinges hold": max(violation(rows, name) for name in ("pivot", "elbow", "knee", "foot")) < 30 * h**2 + 1e-9,
            "it stays in its plane": close([rows[n]["q"][-1, 1] for n in ends], 0, 1e-9),
        }

    return model.record(), facts


@scene(t_end=1.0, steps=FINE, short=0.3)
def slider_with_clearance():
    """Crank, rod and a slider with a clearance of 1 mm between two plates."""
    clearance, half = 1e-3, 0.025
    plates = [shapes.plane([0, 0, 1], -half - clearance), shapes.plane([0, 0, -1], -half - clearance)]
    model = Model(mu=0.05, e=0.2, ground=False, world=plates)
    rod = [math.sqrt(0.5), 0, math.sqrt(0.5), 0]
    model.body("crank", shapes.capsule(0.01, 0.15), [0.075, 0, 0], mass=0.2, turned=rod, v=[0, 0, -0.75, 0, 10.0, 0], collides=False)
    model.body("rod", shapes.capsule(0.01, 0.3), [0.3, 0, 0], mass=0.2, turned=rod, v=[0, 0, -0.75, 0, -5.0, 0], collides=False)
    model.body("slider", shapes.box([0.1, 0.05, 0.05]), [0.45, 0, 0], mass=0.4)
    model.join("bearing", joints.hinge([0, 0, 0], [0, 1, 0]), "crank")
    model.join("pin", joints.hinge([0.15, 0, 0], [0, 1, 0]), ("crank", "rod"))
    model.join("gudgeon", joints.hinge([0.45, 0, 0], [0, 1, 0]), ("rod", "slider"))

    def facts(rows, h):
        q = rows["slider"]["q"]
        return {
            "the slider stays in its guide": abs(q[:, 2]).max() < clearance + 3 * h,
            "it moves by the crank": 0.12 < q[:, 0].min() < 0.46 and q[:, 0].max() < 0.47,
            "nothing leaves the plane": close(q[:, 1], 0, 1e-6),
        }

    return model.record(), facts


def latch_spring(t, q, v, z, out):
    """A spring along the axis of the world in which the bolt slides on the door that is nearly closed: z = (stiffness, rest, damping)."""
    out[0], out[1], out[2] = z[0] * (q[0] - z[1]) + z[2] * v[0], 0.0, 0.0


@scene(t_end=1.0, short=0.5, rest=0.8)
def door_with_latch():
    """A door falls shut against its stop, and a bolt with a spring snaps in behind the strike."""
    strike = shapes.box([0.04, 0.02, 0.1], position=[0.83, 0.03, 0])
    model = Model(mu=0.2, ground=False, world=[strike])
    angle = 0.5
    c, s = math.cos(angle), math.sin(angle)
    pose = [math.cos(angle / 2), 0, 0, math.sin(angle / 2)]
    model.body(
        "door",
        shapes.box([0.78, 0.03, 1.0]),
        [0.39 * c, 0.39 * s, 0],
        mass=10.0,
        turned=pose,
        v=[0.78 * s, -0.78 * c, 0, 0, 0, -2.0],
        collides=False,
        fext=[0, -2.0, 0],
    )
    reach = 0.80
    model.body(
        "bolt",
        shapes.sphere(0.015),
        [reach * c, reach * s, 0],
        mass=0.1,
        turned=pose,
        v=[2 * reach * s, -2 * reach * c, 0, 0, 0, -2.0],
        fext=[0, 0, 0],
        fint=latch_spring,
        z=[2000.0, reach, 2.0],
    )
    model.join("hinge", joints.hinge([0, 0, 0], [0, 0, 1]), "door")
    model.join("closed", joints.hinge_angle([0, 0, 1], lower=-angle), "door", nsds.newton_impact(0.0))
    model.join("slot", joints.prismatic([c, s, 0]), ("bolt", "door"))
    model.join("travel", joints.slide_along([c, s, 0], lower=-0.05, upper=0.0), ("bolt", "door"), nsds.newton_impact(0.0))

    def facts(rows, h):
        q = rows["door"]["q"]
        opening = 2 * np.arctan2(q[:, 6], q[:, 3])
        return {"the door is shut": close(opening[-1], 0, 3 * h), "the stop holds": opening.min() > -3 * h, "finite": np.isfinite(q).all()}

    return model.record(), facts


@scene(t_end=1.0, short=0.3, rest=0.5)
def wedge_that_jams(mu=0.5, half_angle=0.1):
    """A wedge is pushed down into a slot of two plates; it jams, and stays when the push ends, for its half angle is below friction's."""
    c, s = math.cos(half_angle), math.sin(half_angle)
    plates = [shapes.plane([c, 0, s], 0.0), shapes.plane([-c, 0, s], 0.0)]
    model = Model(mu=mu, ground=False, world=plates)
    top, bottom = 0.3 * math.tan(half_angle), 0.1 * math.tan(half_angle)
    corners = [[sx * w, sy * 0.05, z] for w, z in ((top, 0.3), (bottom, 0.1)) for sx in (-1, 1) for sy in (-1, 1)]
    wedge = shapes.convex(corners)
    centre = shapes.centre_of_mass(wedge)
    own = shapes.convex(np.array(corners) - centre)
    model.body("wedge", own, centre, mass=1.0, fext=push_down, z=[G, 200.0, 0.2])

    def facts(rows, h):
        z = heights(rows, "wedge")
        return {"it stays where it was": close(z, z[0], 1e-3 + 400 * h**2), "upright": close(tilt(rows, "wedge"), 0, 1e-3)}

    return model.record(), facts


def push_down(t, z, out):
    """Weight z[0], and a push z[1] until z[2]."""
    out[0], out[1], out[2] = 0.0, 0.0, -z[0]
    if t < z[2]:
        out[2] -= z[1]


@scene(t_end=1.0, short=0.5)
def gear_with_backlash():
    """A motor drives a gear, which drives a hub through a play of 0.02 rad, against a brake."""
    model = Model(ground=False)
    wheel = shapes.cylinder(0.1, 0.02)
    model.body("motor", wheel, [0, 0, 0], mass=1.0, mext=[0, 0, 0.5], collides=False)
    model.body("gear", shapes.cylinder(0.2, 0.02), [0.3, 0, 0], mass=2.0, collides=False)
    model.body("hub", wheel, [0.3, 0, 0.1], mass=1.0, collides=False)
    for name, x in (("motor", 0.0), ("gear", 0.3), ("hub", 0.3)):
        model.join("axle_" + name, joints.hinge([x, 0, 0], [0, 0, 1]), name)
    model.join("teeth", joints.coupler(("angle", [0, 0, 1]), ("angle", [0, 0, 1]), ratio=-0.5), ("motor", "gear"))
    model.join("play", joints.hinge_angle([0, 0, 1], lower=-0.01, upper=0.01), ("hub", "gear"), nsds.newton_impact(0.3))
    model.join("brake", joints.hinge_angle([0, 0, 1]), "hub", nsds.dry_friction(0.2))

    def facts(rows, h):
        play = rows["play"]["y"]
        rate = rows["motor"]["v"][-1, 5], rows["gear"]["v"][-1, 5]
        return {
            "the play is kept": play.min() > -10 * h,
            "the gears mesh": close(rate[1], -0.5 * rate[0], 1e-6 * abs(rate[0]) + 1e-9),
            "it turns": rate[0] > 1.0,
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.4)
def belt_drive():
    """Two pulleys on a belt, one lifts a weight by a rack; the slip clutch of the other gives way."""
    model = Model(ground=False)
    for name, x, radius in (("driver", 0.0, 0.1), ("driven", 1.0, 0.2)):
        model.body(
            name,
            shapes.cylinder(radius, 0.05),
            [x, 0, 0],
            mass=1.0,
            turned=[math.sqrt(0.5), math.sqrt(0.5), 0, 0],
            collides=False,
            mext=[0, 0, -2.0] if name == "driver" else None,
        )
        model.join("axle_" + name, joints.hinge([x, 0, 0], [0, 1, 0]), name)
    model.body("load", shapes.box([0.1, 0.1, 0.1]), [1.2, 0, -0.5], mass=1.0, collides=False)
    model.join("guide", joints.prismatic([0, 0, 1]), "load")
    model.join("belt", joints.coupler(("angle", [0, 1, 0]), ("angle", [0, 1, 0]), ratio=0.5), ("driver", "driven"))
    model.join("rope", joints.coupler(("angle", [0, 1, 0]), ("translation", [0, 0, 1]), ratio=-0.2), ("driven", "load"))
    model.join("brake", joints.hinge_angle([0, 1, 0]), "driven", nsds.dry_friction(0.3))

    def facts(rows, h):
        rate, speed = rows["driven"]["v"][-1, 5], rows["load"]["v"][-1, 2]
        return {
            "the rope holds": close(abs(speed), 0.2 * abs(rate), 1e-6 + 1e-6 * abs(speed)),
            "the pulleys turn alike": close(rows["driver"]["v"][-1, 5], 2 * rate, 1e-6 + 1e-6 * abs(rate)),
        }

    return model.record(), facts


@scene(t_end=2.0, short=0.3, rest=1.0)
def cart_on_wheels(slope=0.0):
    """A cart on four wheels, drawn exactly touching, stands on the ground or rolls down a slope."""
    ground = shapes.plane([-math.sin(slope), 0, math.cos(slope)], 0.0)
    model = Model(mu=0.8, ground=False, world=[ground])
    up, down = np.array([-math.sin(slope), 0, math.cos(slope)]), np.array([-math.cos(slope), 0, -math.sin(slope)])
    pose = [math.cos(slope / 2), 0, -math.sin(slope / 2), 0]
    model.body("chassis", shapes.box([0.6, 0.3, 0.1]), 0.15 * up, mass=10.0, turned=pose, collides=False)
    across = np.array([0, 1.0, 0])
    side = [math.sqrt(0.5), math.sqrt(0.5), 0, 0]
    for i, (x, y) in enumerate(((0.25, 0.2), (0.25, -0.2), (-0.25, 0.2), (-0.25, -0.2))):
        at = 0.1 * up - x * down + y * across
        model.body(f"wheel{i}", shapes.cylinder(0.1, 0.05), at, mass=1.0, turned=side)
        model.join(f"axle{i}", joints.hinge(at, across), (f"wheel{i}", "chassis"))

    def facts(rows, h):
        lam, n = rows["contacts"]["lambda"][-1, :, 0], rows["contacts"]["a"][-1]
        wheels = {int(a) for a, force in zip(n, lam, strict=True) if force > 0}
        total, q = 14.0, rows["chassis"]["q"]
        way = (q[-1, :3] - q[0, :3]) @ down
        reduced = total + 4 * 0.5  # wheels roll: half their mass more
        wanted = 0.5 * total * G * math.sin(slope) / reduced * rows["t"][-1] ** 2
        return {
            "all four wheels press": len(wheels) == 4,
            "it rolls as it should": close(way, wanted, 0.02 * wanted + 2 * h * wanted + 1e-9),
            "nothing sinks": depth(rows)[-1] < 8 * G * h**2 + 1e-9,
        }

    return model.record(), facts


variant("cart_on_a_slope", "cart_on_wheels", slope=0.2, rest=None)


@scene(t_end=2.0, short=0.5)
def seesaw():
    """A plank on a hinge, a box of 1 kg lies on one end and one of 2 kg is dropped on the other."""
    model = Model(mu=0.5)
    model.body("plank", shapes.box([2.0, 0.3, 0.05]), [0, 0, 0.4], mass=5.0)
    model.join("hinge", joints.hinge([0, 0, 0.4], [0, 1, 0]), "plank")
    model.body("light", shapes.box([0.2] * 3), [-0.8, 0, 0.525], mass=1.0)
    model.body("heavy", shapes.box([0.2] * 3), [0.8, 0, 0.8], mass=2.0)

    def facts(rows, h):
        return {
            "the plank keeps its hinge": violation(rows, "hinge") < 10 * h**2 + 1e-9,
            "nothing falls through the ground": min(heights(rows, n).min() for n in ("plank", "light", "heavy")) > 0.0,
            "the heavy end is down": rows["heavy"]["q"][-1, 2] < 0.6,
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.3)
def screw_jack(pitch=2e-3):
    """A moment turns a screw that lifts a load of a tonne; the screw weighs as good as nothing beside it."""
    model = Model(ground=False)
    model.body("screw", shapes.cylinder(0.02, 0.5), [0, 0, 0], mass=2.0, mext=[0, 0, 5.0], collides=False)
    model.body("load", shapes.box([0.5, 0.5, 0.5]), [0, 0, 0.5], mass=1000.0, collides=False)
    model.join("bearing", joints.hinge([0, 0, 0], [0, 0, 1]), "screw")
    model.join("guide", joints.prismatic([0, 0, 1]), "load")
    lead = pitch / (2 * math.pi)
    model.join("thread", joints.coupler(("angle", [0, 0, 1]), ("translation", [0, 0, 1]), ratio=lead), ("screw", "load"))

    def facts(rows, h):
        spin, rise = rows["screw"]["v"][-1, 5], rows["load"]["v"][-1, 2]
        I = 0.5 * 2.0 * 0.02**2
        rate = (5.0 - 1000 * G * lead) / (I + 1000 * lead**2)
        return {
            "the thread holds": close(rise, lead * spin, 1e-6 * abs(rise) + 1e-12),
            "it turns as the moment wants": close(spin, rate * rows["t"][-1], 1e-3 * rate * rows["t"][-1]),
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.4)
def braked_hinge_with_stop():
    """A heavy flap with a strong brake in its hinge swings against a stop."""
    model = Model(ground=False)
    model.body("flap", shapes.box([1.0, 0.2, 0.1]), [0.5, 0, 0], mass=1000.0, collides=False)
    model.join("hinge", joints.hinge([0, 0, 0], [0, 1, 0]), "flap")
    model.join("stop", joints.hinge_angle([0, 1, 0], lower=-0.2, upper=0.3), "flap", nsds.newton_impact(0.5))
    model.join("brake", joints.hinge_angle([0, 1, 0]), "flap", nsds.dry_friction(3000.0))

    def facts(rows, h):
        return {"the stop holds": rows["stop"]["y"].min() > -5 * h, "the hinge holds": violation(rows, "hinge") < 10 * h**2 + 1e-9}

    return model.record(), facts


def spring_to_the_origin(t, q, v, z, out):
    """A spring of stiffness z[0] between the centre and a point at x = z[1]."""
    out[0], out[1], out[2] = z[0] * (q[0] - z[1]), z[0] * q[1], z[0] * q[2]


@scene(t_end=1.0, short=0.3, scheme=nsds.moreau_jean(theta=1.0))
def stiff_spring_at_a_ball_joint():
    """A body on a ball joint, held by a spring of 10^4 N/m."""
    model = Model(ground=False)
    model.body(
        "body",
        shapes.box([0.2, 0.1, 0.1]),
        [0.3, 0, 0],
        mass=1.0,
        collides=False,
        v=[0, 0.3, 0, 0, 0, 1.0],
        fint=spring_to_the_origin,
        z=[1e4, 0.3],
    )
    model.join("joint", joints.ball_joint([0, 0, 0]), "body")

    def facts(rows, h):
        return {"the joint holds": violation(rows, "joint") < 0.5 * 0.3 * h, "it stays near": close(rows["body"]["q"][:, 1:3], 0, 0.1)}

    return model.record(), facts


@scene(t_end=1.0, short=0.3)
def clutch():
    """A spinning disc takes another along by dry friction of 2 N m, until both turn alike."""
    model = Model(ground=False, g=0.0)
    disc = shapes.cylinder(0.2, 0.02)
    model.body("driving", disc, [0, 0, 0], mass=2.0, v=[0, 0, 0, 0, 0, 20.0], collides=False)
    model.body("driven", disc, [0, 0, 0.05], mass=2.0, collides=False)
    model.join("shaft", joints.hinge([0, 0, 0], [0, 0, 1]), "driving")
    model.join("output", joints.hinge([0, 0, 0], [0, 0, 1]), "driven")
    model.join("lining", joints.hinge_angle([0, 0, 1]), ("driven", "driving"), nsds.dry_friction(2.0))

    def facts(rows, h):
        a, b = rows["driving"]["v"][:, 5], rows["driven"]["v"][:, 5]
        I, t = 0.5 * 2.0 * 0.2**2, rows["t"]
        return {
            "the momentum stays": close(a + b, 20.0, 1e-9),
            "it slips at its limit": close(b, np.minimum(2.0 / I * t, 10.0), 2.0 / I * h + 1e-9),
            "both turn alike": close(a[-1], b[-1], 1e-9) or t[-1] < 0.21,
        }

    return model.record(), facts


@scene(t_end=2.0, short=0.4)
def arm_at_a_wall():
    """An arm of two links is driven against a wall by moments in its hinges, slides along it and holds."""
    model = Model(mu=0.3, ground=False, world=[shapes.plane([-1, 0, 0], -0.7)], pairs=[("fore", "world")])
    model.body(
        "upper", shapes.capsule(0.03, 0.5), [0.25, 0, 0], mass=2.0, turned=[math.sqrt(0.5), 0, math.sqrt(0.5), 0], mext=[0, -12.0, 0]
    )
    model.body("fore", shapes.capsule(0.03, 0.5), [0.5, 0, 0.25], mass=1.0, mext=[0, 4.0, 0])
    model.join("shoulder", joints.hinge([0, 0, 0], [0, 1, 0]), "upper")
    model.join("elbow", joints.hinge([0.5, 0, 0], [0, 1, 0]), ("fore", "upper"))
    model.join("brake", joints.hinge_angle([0, 1, 0]), "upper", nsds.dry_friction(1.0))
    model.join("stops", joints.hinge_angle([0, 1, 0], lower=-1.0, upper=1.5), ("fore", "upper"), nsds.newton_impact(0.0))

    def facts(rows, h):
        return {
            "it does not go through the wall": depth(rows).max() < 10 * h,
            "its joints hold": max(violation(rows, name) for name in ("shoulder", "elbow")) < 200 * h**2 + 1e-9,
            "its stops hold": rows["stops"]["y"].min() > -20 * h,
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.3, rest=0.5)
def vise(mu=0.5):
    """A screw presses a plate through its nut against a block that stands by a wall; the block is held above the ground."""
    model = Model(mu=mu, ground=False, world=[shapes.plane([1, 0, 0], 0.0)])
    model.body("block", shapes.box([0.1] * 3), [0.05, 0, 0], mass=1.0)
    model.body("jaw", shapes.box([0.04, 0.1, 0.1]), [0.12, 0, 0], mass=2.0, fext=[0, 0, 0])
    model.body(
        "screw",
        shapes.cylinder(0.01, 0.2),
        [0.3, 0, 0],
        mass=0.5,
        turned=[math.sqrt(0.5), 0, math.sqrt(0.5), 0],
        mext=[0, 0, -0.5],
        collides=False,
        fext=[0, 0, 0],
    )
    model.join("guide", joints.prismatic([1, 0, 0]), "jaw")
    model.join("bearing", joints.hinge([0.3, 0, 0], [1, 0, 0]), "screw")
    model.join("thread", joints.coupler(("angle", [1, 0, 0]), ("translation", [1, 0, 0]), ratio=5e-3), ("screw", "jaw"))

    def facts(rows, h):
        q = rows["block"]["q"]
        return {"the block is held": close(q[:, :3], q[0, :3], 1e-8), "it does not turn": close(turned_by(rows, "block"), 0, 1e-7)}

    return model.record(), facts
