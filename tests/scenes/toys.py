"""Chains, pendulums, tops, walkers and other things that swing, roll and click."""

import math

import numpy as np

import nsds
from nsds.model import joints, shapes
from tests.scenes.model import FINE, G, Model, close, depth, heights, scene, tilt, turn, variant, violation
from tests.scenes.piles import standing

ACROSS = [0, 1, 0]


def links(model, n, length, start, direction, mass, name="link", radius=0.01, shape=None, collides=False):
    """A row of n links from a point along a direction, each on a ball joint with the one before, the first with the world."""
    direction = np.asarray(direction, dtype=float)
    pole = np.cross([0, 0, 1.0], direction)
    angle = math.acos(np.clip(direction[2], -1, 1))
    pose = turn(pole, angle) if np.linalg.norm(pole) > 1e-12 else np.array([1.0, 0, 0, 0])
    at = [np.asarray(start) + direction * length * (k + 0.5) for k in range(n)]
    shape = shapes.capsule(radius, length) if shape is None else shape
    for k in range(n):
        model.body(f"{name}{k}", shape, at[k], mass=mass, turned=pose, collides=collides)
        on = f"{name}{k}" if k == 0 else (f"{name}{k}", f"{name}{k - 1}")
        model.join(f"{name}_joint{k}", joints.ball_joint(np.asarray(start) + direction * length * k), on)


def joints_hold(rows, n, tolerance, name="link"):
    worst = max(violation(rows, f"{name}_joint{k}") for k in range(n))
    return {"the joints hold": worst < tolerance}


@scene(t_end=1.0, short=0.3, rest=0.5)
def chain_under_tension(n=10, load=100.0):
    """A chain of ten links hangs straight, with a hundred times the weight of a link at its end."""
    model = Model(ground=False)
    links(model, n, 0.1, [0, 0, 0], [0, 0, -1], 1.0)
    model.body("load", shapes.box([0.3] * 3), [0, 0, -0.1 * n - 0.15], mass=load, collides=False)
    model.join("hook", joints.ball_joint([0, 0, -0.1 * n]), ("load", f"link{n - 1}"))

    def facts(rows, h):
        weight = rows["hook"]["lambda"][-1]
        return joints_hold(rows, n, 1e-9) | {
            "the load stays": close(rows["load"]["q"][-1, :3], rows["load"]["q"][0, :3], 1e-9),
            "the hook bears it": close(np.linalg.norm(weight), load * G * h, 1e-6 * load * G * h),
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.3)
def hanging_chain(n=30):
    """A chain of thirty links, held level at one end, swings down."""
    model = Model(ground=False)
    links(model, n, 0.1, [0, 0, 0], [1, 0, 0], 0.2)

    def facts(rows, h):
        end = rows[f"link{n - 1}"]["q"]
        return joints_hold(rows, n, 60 * h**2 + 60 * h**2 * n + 1e-9) | {
            "it stays in its plane": close(end[:, 1], 0, 1e-6),
            "it swings": end[-1, 2] < -0.2,
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.3)
def crane_with_a_swinging_load():
    """A jib turns by a motor moment; a load of half a tonne hangs on it by a chain of eight links."""
    model = Model(ground=False)
    model.body("jib", shapes.box([4.0, 0.2, 0.2]), [2, 0, 0], mass=200.0, mext=[0, 0, 500.0], collides=False)
    model.join("slewing", joints.hinge([0, 0, 0], [0, 0, 1]), "jib")
    n = 8
    links(model, n, 0.25, [4, 0, 0], [0, 0, -1], 2.0)
    model.parts["link_joint0"] = nsds.interaction(joints.ball_joint([4, 0, 0]), nsds.equality(), on=("link0", "jib"))
    model.body("load", shapes.box([0.5] * 3), [4, 0, -2.25], mass=500.0, collides=False)
    model.join("hook", joints.ball_joint([4, 0, -2.0]), ("load", f"link{n - 1}"))

    def facts(rows, h):
        q = rows["load"]["q"]
        return joints_hold(rows, n, 30 * h**2 + 1e-9) | {"it follows": q[-1, 1] > 0.001, "it hangs": close(q[:, 2], -2.25, 0.05)}

    return model.record(), facts


@scene(t_end=1.0, short=0.3)
def bridge_of_planks(n=8):
    """Planks that are hinged to each other hang between two banks, and a box is dropped on them."""
    model = Model(mu=0.5, ground=False, pairs=[("box", f"plank{k}") for k in range(n)])
    length = 0.3
    for k in range(n):
        model.body(f"plank{k}", shapes.box([length, 0.8, 0.03]), [length * (k + 0.5), 0, 0], mass=3.0)
        model.join(f"hinge{k}", joints.hinge([length * k, 0, 0], ACROSS), f"plank{k}" if k == 0 else (f"plank{k}", f"plank{k - 1}"))
    model.join("bank", joints.slide_along([0, 0, 1], point=[length * n, 0, 0]), f"plank{n - 1}")
    model.body("box", shapes.box([0.2] * 3), [1.0, 0.05, 0.3], mass=5.0)

    def facts(rows, h):
        worst = max(violation(rows, f"hinge{k}") for k in range(n))
        planks = np.stack([rows[f"plank{k}"]["q"][:, :3] for k in range(n)], axis=1)
        box = rows["box"]["q"][:, :3]
        nearest = np.linalg.norm(planks - box[:, None], axis=2).min(axis=1)
        above = np.array([box[i, 2] - planks[i, :, 2].min() for i in range(len(box))])
        return {
            "the hinges hold": worst < 200 * h**2 + 1e-9,
            "the box does not fall through": bool((above > -0.05).all()) and nearest.max() < 1.0,
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.4)
def pendulum_against_a_wall():
    """A rod on a hinge, with a ball at its end, swings against a wall."""
    model = Model(mu=0.2, e=0.5, ground=False, world=[shapes.plane([1, 0, 0], -0.2)])
    ball = shapes.sphere(0.1, position=[0, 0, -0.5])
    model.body("rod", [ball], [0, 0, -0.5], inertia=[0.1, 0.1, 0.01], turned=turn(ACROSS, 0.0), v=[-1.0, 0, 0, 0, 2.0, 0])
    model.join("hinge", joints.hinge([0, 0, 0], ACROSS), "rod")

    def facts(rows, h):
        return {"the hinge holds": violation(rows, "hinge") < 20 * h**2 + 1e-9, "it does not go through": depth(rows).max() < 4 * h}

    return model.record(), facts


@scene(t_end=2.0, short=0.6)
def newtons_cradle(n=5, e=1.0):
    """Five balls on hinges, drawn exactly touching; the first is let go from one side, without friction or loss."""
    radius, length = 0.02, 0.2
    model = Model(mu=0.0, e=e, ground=False)
    ball = shapes.sphere(radius)
    for k in range(n):
        angle = 0.5 if k == 0 else 0.0
        at = [2 * radius * k - length * math.sin(angle), 0, -length * math.cos(angle)]
        model.body(f"ball{k}", ball, at, mass=0.1)
        model.join(f"string{k}", joints.hinge([2 * radius * k, 0, 0], ACROSS), f"ball{k}")

    def facts(rows, h):
        speed = np.stack([np.linalg.norm(rows[f"ball{k}"]["v"][:, :3], axis=1) for k in range(n)])
        top = math.sqrt(2 * G * length * (1 - math.cos(0.5)))
        return {
            "none is faster than the first": speed.max() < 1.02 * top + 2 * h,
            "the strings hold": max(violation(rows, f"string{k}") for k in range(n)) < 20 * h**2 + 1e-9,
        }

    return model.record(), facts


@scene(t_end=1.0, steps=FINE, short=0.15)
def tippe_top():
    """A ball whose centre of mass lies below its centre, with a stem, spins on the table."""
    radius, below = 0.015, 0.0025
    ball = shapes.sphere(radius, position=[0, 0, below])
    stem = shapes.capsule(0.003, 0.006, position=[0, 0, below + radius])
    model = Model(mu=0.3)
    lean = 0.1
    up = np.array([math.sin(lean), 0, math.cos(lean)])
    model.body(
        "top",
        [ball, stem],
        np.array([0, 0, radius]) - below * up,
        mass=6e-3,
        inertia=[8e-7, 8e-7, 7e-7],
        turned=turn(ACROSS, lean),
        v=[0, 0, 0, 0, 0, 180.0],
    )

    def facts(rows, h):
        q, v = rows["top"]["q"], rows["top"]["v"]
        kinetic = 0.5 * 6e-3 * (v[:, :3] ** 2).sum(axis=1) + 0.5 * (np.array([8e-7, 8e-7, 7e-7]) * v[:, 3:] ** 2).sum(axis=1)
        energy = kinetic + 6e-3 * G * q[:, 2]
        return {"it stays on the table": close(q[:, 2], radius, 2 * below + 0.01), "energy falls": energy.max() < energy[0] * (1 + 20 * h)}

    return model.record(), facts


@scene(t_end=1.0, steps=FINE, short=0.2)
def rattleback():
    """Half an ellipsoid, as a hull of some hundred corners, whose principal axes are skew to its shape, spins the wrong way."""
    a, b, c = 0.1, 0.02, 0.015
    angles = [(u, w) for w in np.linspace(0, math.pi / 2, 7) for u in np.linspace(0, 2 * math.pi, 24, endpoint=False)]
    corners = np.array([[a * math.cos(w) * math.cos(u), b * math.cos(w) * math.sin(u), -c * math.sin(w)] for u, w in angles])
    hull = shapes.convex(corners + np.array([0, 0, 0.006]))
    inertia = np.diag([2e-6, 5e-5, 5e-5])
    s, k = math.sin(0.08), math.cos(0.08)
    R = np.array([[k, -s, 0], [s, k, 0], [0, 0, 1.0]])
    model = Model(mu=0.6)
    model.body("stone", hull, [0, 0, 0.009], mass=0.03, inertia=R @ inertia @ R.T, v=[0, 0, 0, 0.1, 0, -5.0])

    def facts(rows, h):
        return {
            "it stays on the table": close(heights(rows, "stone"), 0.009, 0.01),
            "it does not tip over": tilt(rows, "stone").max() < 0.5,
        }

    return model.record(), facts


@scene(t_end=2.0, short=0.4)
def rimless_wheel(slope=0.15, n=8):
    """A wheel of eight spokes walks down a slope."""
    up, down = np.array([-math.sin(slope), 0, math.cos(slope)]), np.array([-math.cos(slope), 0, -math.sin(slope)])
    length = 0.3
    spokes = [
        shapes.capsule(
            0.01,
            length - 0.01,
            position=[(length - 0.01) / 2 * math.cos(w), 0, (length - 0.01) / 2 * math.sin(w)],
            orientation=turn(ACROSS, math.pi / 2 - w),
        )
        for w in 2 * math.pi * np.arange(n) / n + math.pi / n
    ]
    model = Model(mu=0.9, ground=False, world=[shapes.plane(up)])
    height = (length - 0.01) * math.cos(math.pi / n) + 0.01
    model.body(
        "wheel", spokes, height * up, mass=2.0, inertia=[0.05, 0.1, 0.05], turned=turn(ACROSS, -slope), v=[*(1.2 * down), 0, -4.0, 0]
    )

    def facts(rows, h):
        q = rows["wheel"]["q"]
        way, high = (q[:, :3] - q[0, :3]) @ down, q[:, :3] @ up
        return {
            "it walks down": way[-1] > 0.3 * rows["t"][-1],
            "it stays on the slope": high.min() > length * math.cos(math.pi / n) - 4 * h - 0.01 and high.max() < length + 0.1,
            "it goes straight on": close(q[:, 1], 0, 1e-3),
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.4)
def walking_biped(slope=0.06):
    """Two legs on a hinge at the hip, with round feet, walk down a slope, the feet of the inner pair beside the others."""
    up, down = np.array([-math.sin(slope), 0, math.cos(slope)]), np.array([-math.cos(slope), 0, -math.sin(slope)])
    length, radius = 0.4, 0.08
    model = Model(mu=0.8, ground=False, world=[shapes.plane(up)], pairs=[("outer", "world"), ("inner", "world")])
    hip = (length * math.cos(0.2) + radius) * up
    for name, sign, sides in (("outer", 1, (-0.15, 0.15)), ("inner", -1, (-0.05, 0.05))):
        angle = sign * 0.2
        pose = turn(ACROSS, angle - slope)
        along = np.array([math.sin(angle - slope), 0, math.cos(angle - slope)])
        feet = [shapes.sphere(radius, position=[0, y, -length / 2]) for y in sides]
        rate = sign * 0.4
        v = 0.4 * down - length / 2 * np.cross([0, rate, 0], along)
        model.body(name, feet, hip - length / 2 * along, mass=1.5, inertia=[0.05, 0.05, 0.02], turned=pose, v=[*v, 0, rate, 0])
    model.join("hip", joints.hinge(hip, ACROSS), ("outer", "inner"))

    def facts(rows, h):
        high = rows["outer"]["q"][:, :3] @ up
        return {
            "the hip holds": violation(rows, "hip") < 40 * h**2 + 1e-9,
            "the feet stay above the slope": depth(rows).max() < 4 * h,
            "finite": high.max() < 1.0,
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.3)
def ratchet():
    """A toothed wheel, driven to and fro, and a pawl with a spring that lets it turn one way only."""
    n, radius = 12, 0.2
    teeth = [
        shapes.box([0.06, 0.05, 0.01], position=[radius * math.cos(w), 0, radius * math.sin(w)], orientation=turn(ACROSS, -w - 0.5))
        for w in 2 * math.pi * np.arange(n) / n
    ]
    model = Model(mu=0.1, ground=False, pairs=[("wheel", "pawl")])
    model.body("wheel", teeth, [0, 0, 0], mass=2.0, inertia=[0.03, 0.05, 0.03], mext=to_and_fro, z=[1.0, 2.0])
    model.body("pawl", shapes.capsule(0.01, 0.2), [0.1, 0, 0.26], mass=0.1, turned=turn(ACROSS, math.pi / 2 + 0.25))
    model.join("axle", joints.hinge([0, 0, 0], ACROSS), "wheel")
    model.join("pin", joints.hinge([0.2, 0, 0.24], ACROSS), "pawl")

    def facts(rows, h):
        return {"the axle holds": violation(rows, "axle") < 40 * h**2 + 1e-9, "the pin holds": violation(rows, "pin") < 40 * h**2 + 1e-9}

    return model.record(), facts


def to_and_fro(t, z, out):
    """A moment about y of amplitude z[0] and frequency z[1]."""
    out[0], out[1], out[2] = 0.0, z[0] * math.sin(2.0 * math.pi * z[1] * t), 0.0


@scene(t_end=0.4, short=0.3)
def scissors_lift(stages=3):
    """A scissors lift of three stages with redundant hinges, pushed at its foot, lifts a platform."""
    model = Model(ground=False)
    half, angle = 0.5, 0.5
    c, s = half * math.cos(angle), half * math.sin(angle)
    for k in range(stages):
        z = s * (2 * k + 1)
        for name, sign in (("a", 1), ("b", -1)):
            forces = {"fext": [-4500.0, 0, -5 * G]} if (k, name) == (0, "b") else {}
            model.body(
                f"{name}{k}",
                shapes.box([2 * half, 0.05, 0.05]),
                [0, 0, z],
                mass=5.0,
                turned=turn(ACROSS, -sign * angle),
                collides=False,
                **forces,
            )
        model.join(f"cross{k}", joints.hinge([0, 0, z], ACROSS), (f"a{k}", f"b{k}"))
        if k:
            model.join(f"left{k}", joints.hinge([-c, 0, 2 * s * k], ACROSS), (f"a{k}", f"b{k - 1}"))
            model.join(f"right{k}", joints.hinge([c, 0, 2 * s * k], ACROSS), (f"b{k}", f"a{k - 1}"))
    model.join("foot", joints.hinge([-c, 0, 0], ACROSS), "a0")
    model.join("roller", joints.slide_along([0, 0, 1], point=[c, 0, 0]), "b0")
    model.body("platform", shapes.box([1.0, 0.5, 0.05]), [0, 0, 2 * s * stages + 0.025], mass=20.0, collides=False)
    model.join("guide", joints.prismatic([0, 0, 1]), "platform")
    model.join("bearing", joints.slide_along([0, 0, 1], point=[-c, 0, 2 * s * stages]), (f"b{stages - 1}", "platform"))

    def facts(rows, h):
        names = [n for n in rows.dtype.names if n.startswith(("cross", "left", "right", "foot", "roller", "guide", "bearing"))]
        return {
            "the joints hold": max(violation(rows, n) for n in names) < 1e3 * h**2 + 1e-9,
            "the platform moves with the arms": close(
                heights(rows, "platform") - 0.025, rows[f"cross{stages - 1}"]["y"][:, 0] * 0 + top_of(rows, stages), 1e3 * h**2 + 1e-6
            ),
        }

    return model.record(), facts


def top_of(rows, stages):
    """Height of the upper end of the last arm of a scissors lift."""
    p = rows[f"b{stages - 1}"]["q"]
    angle = 2 * np.arctan2(p[:, 5], p[:, 3])
    return p[:, 2] + 0.5 * np.sin(angle)


@scene(t_end=1.0, short=0.4)
def catapult():
    """A heavy box falls on one end of a lever, and throws a ball that lies in a pan on the other."""
    model = Model(mu=0.5)
    lever = [
        shapes.box([2.0, 0.2, 0.04]),
        shapes.box([0.02, 0.2, 0.06], position=[-0.99, 0, 0.05]),
        shapes.box([0.02, 0.2, 0.06], position=[-0.85, 0, 0.05]),
    ]
    model.body("lever", lever, [0, 0, 0.3], mass=4.0, inertia=[0.02, 1.35, 1.35])
    model.join("axle", joints.hinge([0.3, 0, 0.3], ACROSS), "lever")
    model.join("stop", joints.hinge_angle(ACROSS, lower=-0.17), "lever", nsds.newton_impact(0.0))
    model.body("ball", shapes.sphere(0.05), [-0.92, 0, 0.37], mass=0.2)
    model.body("weight", shapes.box([0.3] * 3), [0.8, 0, 0.8], mass=40.0)

    def facts(rows, h):
        return {
            "it throws the ball": rows["t"][-1] < 0.8 or heights(rows, "ball").max() > 0.8,
            "the axle holds": violation(rows, "axle") < 100 * h**2 + 1e-9,
            "nothing falls through": min(heights(rows, n).min() for n in ("ball", "weight")) > 0.03 - 8 * h,
        }

    return model.record(), facts


@scene(t_end=1.0, steps=FINE, short=0.3)
def ball_on_a_turntable():
    """A ball rolls on a disc that nothing stops, which spins."""
    model = Model(mu=0.5, ground=False)
    model.body("table", shapes.cylinder(1.0, 0.1), [0, 0, -0.05], mass=np.inf, inertia=1.0, v=[0, 0, 0, 0, 0, 2.0])
    model.body("ball", shapes.sphere(0.05), [0.3, 0, 0.05], mass=0.1)

    def facts(rows, h):
        q = rows["ball"]["q"]
        return {
            "it stays on the table": close(q[:, 2], 0.05, 20 * G * h**2 + 1e-9),
            "it is carried along": np.hypot(*q[-1, :2]) < 1.0 and abs(q[-1, 1]) > 1e-3,
        }

    return model.record(), facts


@scene(t_end=1.0, steps=FINE, short=0.3)
def spinning_top(spin=100.0):
    """A top on a ball joint nods and turns under its weight."""
    model = Model(ground=False)
    lean = 0.5
    up = np.array([math.sin(lean), 0, math.cos(lean)])
    model.body("top", shapes.cylinder(0.1, 0.02), 0.1 * up, mass=1.0, turned=turn(ACROSS, lean), v=[0, 0, 0, 0, 0, spin], collides=False)
    model.join("point", joints.ball_joint([0, 0, 0]), "top")

    def facts(rows, h):
        nod = tilt(rows, "top")
        along, across = 0.005, 0.0025 + 0.02**2 / 12 + 0.01
        nods = 2 * across * 0.1 * G * math.sin(lean) / (along * spin) ** 2  # of a fast top let go at rest
        turned = (h * spin) ** 2
        return {
            "the point holds": violation(rows, "point") < 0.1 * turned,
            "it nods and does not fall": nod.min() > lean - 0.01 and nod.max() < lean + 1.2 * nods + 4 * turned,
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.3, rest=0.5)
def redundant_frame():
    """A square of four bars with rigid corners, one more than needed, hangs on two pivots of the ground."""
    model = Model(ground=False)
    ends = [([0, 0, 0], [1, 0, 0]), ([1, 0, 0], [1, 0, -1]), ([1, 0, -1], [0, 0, -1]), ([0, 0, -1], [0, 0, 0])]
    for k, (a, b) in enumerate(ends):
        a, b = np.array(a, float), np.array(b, float)
        model.body(f"bar{k}", shapes.box(0.05 + abs(b - a)), (a + b) / 2, mass=2.0, collides=False)
    for k in range(4):
        model.join(f"corner{k}", joints.fixed_joint(), (f"bar{k}", f"bar{(k + 1) % 4}"))
    model.join("left", joints.hinge([0, 0, 0], ACROSS), "bar0")
    model.join("right", joints.hinge([1, 0, 0], ACROSS), "bar0")

    def facts(rows, h):
        return {f"bar {k}: {fact}": holds for k in range(4) for fact, holds in standing(rows, f"bar{k}", 1e-9, 1e-7).items()}

    return model.record(), facts


variant("chain_under_great_tension", "chain_under_tension", load=1e4)
