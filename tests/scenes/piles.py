"""Things that are piled, stacked, leant, tipped, poured and tumbled."""

import math

import numpy as np

import nsds
from nsds.model import shapes
from tests.scenes.model import G, Model, close, depth, heights, scene, tilt, turn, turned_by, variant

COARSE = (1e-2, 1e-3)


STILL = 1e-8  # of its size, or radians: by what a thing that was drawn at rest, exactly touching, may move


def creep(h, rows):
    """How far a pile may creep that is solved to a residual of 1e-4: that part of the velocity which its weight gains in a step."""
    return 1e-4 * G * h * rows["t"][-1]


def standing(rows, name, tolerance, angle=1e-3):
    """Facts of what was drawn at rest: it stands where it was, as it was."""
    q = rows[name]["q"]
    return {
        "it stays where it was": close(q[..., :3], q[0][..., :3], tolerance),
        "it does not turn": close(turned_by(rows, name), 0, angle),
    }


@scene(t_end=1.0, short=0.3, rest=0.5)
def card_house(mu=0.6, storeys=2):
    """Cards of 0.3 mm that lean on each other in pairs, with cards across, in storeys: all drawn exactly touching."""
    length, width, thick, lean = 0.088, 0.063, 3e-4, 0.3
    model = Model(mu=mu)
    card = shapes.box([thick, width, length])
    c, s = math.cos(lean), math.sin(lean)
    rise = length * c + thick * s  # height of a pair, from its lower to its upper edges
    half = (length * s + thick * c) / 2
    base = 2 * 2 * half + 0.001
    q, level = [], 0.0
    for storey in range(storeys):
        n_pairs = storeys - storey
        for k in range(n_pairs):
            middle = (k - (n_pairs - 1) / 2) * base
            for sign in (1, -1):
                q.append([middle - sign * half, 0, level + rise / 2, *turn([0, 1, 0], sign * lean)])
        level += rise
        if storey < storeys - 1:
            for k in range(n_pairs - 1):
                q.append([(k - (n_pairs - 2) / 2) * base, 0, level + thick / 2, *turn([0, 1, 0], math.pi / 2)])
            level += thick
    model.bodies("cards", card, np.array(q), mass=1.8e-3)

    def facts(rows, h):
        return standing(rows, "cards", 20 * G * h**2 + 1e-4, 0.02 + 20 * G * h**2 / length)

    return model.record(), facts


@scene(t_end=1.0, short=0.1, rest=0.5)
def masonry_arch(n=9, mu=0.7):
    """A half circle of voussoirs between two abutments, drawn exactly touching."""
    inner, outer, deep = 1.0, 1.4, 0.4
    model = Model(mu=mu)
    for k in range(n):
        a, b = math.pi * k / n, math.pi * (k + 1) / n
        corners = [[r * math.cos(w), y, r * math.sin(w)] for r in (inner, outer) for w in (a, b) for y in (-deep / 2, deep / 2)]
        stone = shapes.convex(corners)
        centre = shapes.centre_of_mass(stone)
        own = shapes.convex(np.array(corners) - centre)
        model.body(f"stone{k}", own, centre, mass=2000 * shapes.volume(own))

    def facts(rows, h):
        return {
            f"stone {k} {fact}": holds for k in range(n) for fact, holds in standing(rows, f"stone{k}", 20 * G * h**2 + 1e-3, 0.01).items()
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.1, rest=0.5)
def brick_wall(rows_of_bricks=5, columns=4, mu=0.6):
    """A wall of bricks in running bond, drawn exactly touching."""
    length, width, height = 0.24, 0.115, 0.071
    model = Model(mu=mu)
    at = [[(k + 0.5 * (r % 2)) * length, 0, (r + 0.5) * height] for r in range(rows_of_bricks) for k in range(columns)]
    model.bodies("bricks", shapes.box([length, width, height]), np.array(at), mass=3.5)
    return model.record(), lambda rows, h: standing(rows, "bricks", creep(h, rows), creep(h, rows) / height)


@scene(t_end=1.0, short=0.3, rest=0.5)
def stack_of_mass_ratio_1000(ratio=1000.0, side=0.1):
    """A box of a tonne on a box of a kilogram, on the ground."""
    model = Model(mu=0.5)
    model.body("light", shapes.box([side] * 3), [0, 0, side / 2], mass=1.0)
    model.body("heavy", shapes.box([side] * 3), [0, 0, 1.5 * side], mass=ratio)

    def facts(rows, h):
        return {
            name + ": " + fact: holds for name in ("light", "heavy") for fact, holds in standing(rows, name, STILL * side, STILL).items()
        }

    return model.record(), facts


variant("stack_of_mass_ratio_million", "stack_of_mass_ratio_1000", ratio=1e6)
variant("stack_of_a_micrometre", "stack_of_mass_ratio_1000", side=1e-6, t_end=1e-2, short=3e-3, rest=5e-3, steps=(3e-5, 3e-6, 3e-7))
variant("stack_of_a_kilometre", "stack_of_mass_ratio_1000", side=1e3, t_end=100.0, short=30.0, rest=50.0, steps=(1.0, 0.1, 0.01))


@scene(t_end=1.0, short=0.3, rest=0.5)
def five_boxes_each_ten_times_heavier():
    """A tower in which each box weighs ten times the one below."""
    model = Model(mu=0.5)
    at = [[0, 0, 0.05 + 0.1 * k] for k in range(5)]
    model.bodies("boxes", shapes.box([0.1] * 3), np.array(at), mass=10.0 ** np.arange(5))
    return model.record(), lambda rows, h: standing(rows, "boxes", 0.1 * STILL, STILL)


@scene(t_end=2.0, short=0.4)
def ball_in_a_mesh_bowl(mu=0.3):
    """A ball rolls in a bowl of triangles until it lies at its bottom."""
    n, m, radius = 12, 6, 0.5
    vertices = [[0.0, 0.0, 0.0]]
    for i in range(1, m + 1):
        r = radius * i / m
        vertices += [[r * math.cos(2 * math.pi * k / n), r * math.sin(2 * math.pi * k / n), r**2] for k in range(n)]
    triangles = [[0, 1 + k, 1 + (k + 1) % n] for k in range(n)]
    for i in range(m - 1):
        a, b = 1 + i * n, 1 + (i + 1) * n
        for k in range(n):
            j = (k + 1) % n
            triangles += [[a + k, b + k, b + j], [a + k, b + j, a + j]]
    bowl = shapes.mesh(vertices, triangles)
    model = Model(mu=mu, ground=False, world=[bowl])
    model.body("ball", shapes.sphere(0.05), [0.3, 0, 0.2], mass=0.5)

    def facts(rows, h):
        q = rows["ball"]["q"]
        floor = np.hypot(q[:, 0], q[:, 1]) ** 2
        return {"it stays in the bowl": bool((q[:, 2] > floor - 0.01 - 4 * h).all()), "it stays within its rim": abs(q[:, :2]).max() < 0.45}

    return model.record(), facts


def drum_walls(n, radius, length):
    """Plates of a drum about y, as shapes of one body."""
    width = 2 * radius * math.tan(math.pi / n) + 0.02
    plates = []
    for k in range(n):
        angle = 2 * math.pi * k / n
        at = [(radius + 0.01) * math.cos(angle), 0, (radius + 0.01) * math.sin(angle)]
        plates.append(shapes.box([0.02, length, width], position=at, orientation=turn([0, 1, 0], -angle)))
    for sign in (-1, 1):
        plates.append(shapes.box([2.6 * radius, 0.02, 2.6 * radius], position=[0, sign * (length / 2 + 0.01), 0]))
    return plates


@scene(t_end=2.0, steps=COARSE, short=0.15)
def dice_in_a_drum(mu=0.4, speed=3.0):
    """Nine dice tumble in a drum of twelve plates that turns."""
    model = Model(mu=mu, ground=False, pairs=[("dice", "dice"), ("dice", "drum")])
    model.body("drum", drum_walls(12, 0.15, 0.2), [0, 0, 0], mass=np.inf, inertia=1.0, v=[0, 0, 0, 0, speed, 0])
    at = np.array([[0.05 * (i - 1), 0.05 * (j - 1), -0.10 + 0.04 * ((i + j) % 3)] for i in range(3) for j in range(3)])
    model.bodies("dice", shapes.box([0.03] * 3), at, mass=0.03)

    def facts(rows, h):
        q = rows["dice"]["q"]
        return {
            "the dice stay in the drum": np.hypot(q[..., 0], q[..., 2]).max() < 0.16 and abs(q[..., 1]).max() < 0.1,
            "the drum turns on": close(rows["drum"]["v"][-1, 4], speed, 1e-12),
        }

    return model.record(), facts


@scene(t_end=2.0, steps=COARSE, short=0.1)
def hopper(mu=0.4):
    """Sixty-four balls run out of a hopper of four inclined plates."""
    plates = []
    for axis, sign in ((0, 1), (0, -1), (1, 1), (1, -1)):
        direction = [0, 1, 0] if axis == 0 else [-1, 0, 0]
        at = [0.0, 0.0, 0.3]
        at[axis] = sign * 0.27
        lengths = [0.02, 0.6, 0.5] if axis == 0 else [0.6, 0.02, 0.5]
        plates.append(shapes.box(lengths, position=at, orientation=turn(direction, sign * 0.6)))
    model = Model(mu=mu, world=plates)
    at = np.array([[0.05 * (i - 1.5), 0.05 * (j - 1.5), 0.45 + 0.05 * k] for i in range(4) for j in range(4) for k in range(4)])
    at += 1e-3 * np.sin(np.arange(at.size)).reshape(at.shape)
    model.bodies("balls", shapes.sphere(0.02), at, mass=0.03)

    def facts(rows, h):
        z = heights(rows, "balls")
        return {
            "no ball falls through the ground": z.min() > 0.02 - 3.2 * h - 0.002,
            "balls run out": rows["t"][-1] < 0.5 or (z[-1] < 0.1).sum() > 8,
        }

    return model.record(), facts


@scene(t_end=1.2, steps=COARSE, short=0.2)
def dominoes():
    """The dominoes of the examples, with the default solver."""
    record = nsds.examples.dominoes(n=8)

    def facts(rows, h):
        return {"all fall": rows["t"][-1] < 1.0 or (heights(rows, "dominoes")[-1] < 0.02).all(), "none sinks": depth(rows).max() < 3 * h}

    return record, facts


def scattered_spheres(radius, grid, spacing, scatter, seed=1):
    """Centres of spheres on a grid, scattered."""
    at = spacing * np.stack(np.meshgrid(*(np.arange(n) for n in grid), indexing="ij"), axis=-1).reshape(-1, 3)
    at[:, :2] -= at[:, :2].mean(axis=0)
    at[:, 2] += radius + scatter
    return at + np.random.default_rng(seed).uniform(-scatter, scatter, at.shape)


def kinetic(v, mass=4.0, radius=0.1):
    """Kinetic energy of spheres."""
    return 0.5 * mass * ((v[:, :3] ** 2).sum() + 0.4 * radius**2 * (v[:, 3:] ** 2).sum())


@scene(t_end=2.0, steps=COARSE, short=0.3)
def spheres_in_a_box(capacity=None, mu=0.6):
    """A hundred spheres of 4 kg settle in a box."""
    walls = [shapes.plane(n, -0.56) for n in ([1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0])]
    model = Model(mu=mu, world=walls, capacity=capacity)
    model.bodies("spheres", shapes.sphere(0.1), scattered_spheres(0.1, (5, 5, 4), 0.21, 0.004), mass=4.0)

    def facts(rows, h):
        q, v = rows["spheres"]["q"], rows["spheres"]["v"]
        fallen = 4.0 * G * (q[0, :, 2] - q[-1, :, 2]).sum()
        return {
            "they stay in the box": abs(q[..., :2]).max() < 0.56 - 0.1 + 0.05 and q[..., 2].min() > 0.05,
            "none is fast": np.linalg.norm(v[..., :3], axis=-1).max() < 4.5 and np.linalg.norm(v[..., 3:], axis=-1).max() < 30,
            "all but some that roll come to rest": rows["t"][-1] < 1.5 or kinetic(v[-1]) < 0.01 * fallen,
        }

    return model.record(), facts


variant("spheres_in_a_box_with_room", "spheres_in_a_box", capacity=513)


@scene(t_end=1.0, steps=COARSE, short=0.05)
def stacked_cylinders(capacity=150):
    """Eighteen short cylinders, three by two by three, stand on each other."""
    model = Model(mu=0.5, capacity=capacity)
    at = np.array([[0.25 * i, 0.25 * j, 0.1 + 0.2 * k + 1e-3 * (k + 1)] for i in range(3) for j in range(2) for k in range(3)])
    model.bodies("cylinders", shapes.cylinder(0.1, 0.2), at, mass=2.0)
    return model.record(), lambda rows, h: standing(rows, "cylinders", 4e-3 + 0.2 * 3 * h, 0.02 + 2 * h)


@scene(t_end=1.5, steps=COARSE, short=0.25)
def tipping_books(n=6):
    """Books on a shelf tip over, one against the other, until they lean on the end."""
    model = Model(mu=0.3, world=[shapes.plane([-1, 0, 0], -0.5)])
    lean, size = 0.15, [0.03, 0.15, 0.22]
    c, s = math.cos(lean), math.sin(lean)
    q = []
    for k in range(n):
        corner = 0.1 + 0.045 * k  # its lower right edge stands on the shelf
        q.append([corner - c * size[0] / 2 + s * size[2] / 2, 0, s * size[0] / 2 + c * size[2] / 2, *turn([0, 1, 0], lean)])
    model.bodies("books", shapes.box(size), np.array(q), mass=0.8)

    def facts(rows, h):
        q = rows["books"]["q"]
        return {
            "they stay on the shelf": q[..., 2].min() > 0.0,
            "none goes through the end": q[..., 0].max() < 0.5,
            "in plane": close(q[..., 1], 0, 0.02),
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.3)
def box_on_an_incline(factor=1.0, mu=0.5, e=0.0):
    """A box on a plane at the angle of friction times a factor: below it rests, above it slides."""
    slope = factor * math.atan(mu) if mu else 0.3
    up, down = np.array([-math.sin(slope), 0, math.cos(slope)]), np.array([-math.cos(slope), 0, -math.sin(slope)])
    model = Model(mu=mu, e=e, ground=False, world=[shapes.plane(up)])
    model.body("box", shapes.box([0.2, 0.2, 0.1]), 0.05 * up, turned=turn([0, 1, 0], -slope))

    def facts(rows, h):
        q, t = rows["box"]["q"], rows["t"][-1]
        rate = G * max(math.sin(slope) - mu * math.cos(slope), 0.0) if factor > 1 or not mu else 0.0
        way = (q[-1, :3] - q[0, :3]) @ down
        return {
            "it slides as far as it should": close(way, rate * t**2 / 2, rate * t * h + 1e-9 + 8 * G * h**2 * (factor != 1)
                                                  + (1e-6 * t**2 if factor == 1 else 0)),
            "it does not turn": close(turned_by(rows, "box"), 0, 1e-4 + 50 * h**2),
            "it does not sink": depth(rows).max() < 8 * G * h**2 + 1e-9,
        }  # fmt: skip

    return model.record(), facts


variant("box_below_the_angle_of_friction", "box_on_an_incline", factor=0.99, rest=0.5)
variant("box_above_the_angle_of_friction", "box_on_an_incline", factor=1.05)
variant("box_on_an_incline_without_friction", "box_on_an_incline", mu=0.0)


@scene(t_end=1.0, short=0.3, rest=0.5)
def box_in_a_corner(mu=0.3, size=1.0):
    """A box touches the ground and two walls, and is pushed into the corner."""
    model = Model(mu=mu, world=[shapes.plane([1, 0, 0]), shapes.plane([0, 1, 0])])
    model.body("box", shapes.box([0.2 * size] * 3), np.full(3, 0.1 * size), mass=1.0, fext=[-20, -20, -G])
    return model.record(), lambda rows, h: standing(rows, "box", STILL * size, STILL)


variant("box_in_a_corner_without_friction", "box_in_a_corner", mu=0.0)


@scene(t_end=1.0, short=0.3, rest=0.6)
def ball_jammed_between_planes(mu=0.5, half_angle=0.2):
    """A ball is pressed into a V of two planes; steep enough that friction holds it when the push is over."""
    c, s = math.cos(half_angle), math.sin(half_angle)
    planes = [shapes.plane([c, 0, s]), shapes.plane([-c, 0, s])]
    model = Model(mu=mu, ground=False, world=planes)
    model.body("ball", shapes.sphere(0.1), [0, 0, 0.1 / s], fext=[0, 0, -100.0])
    return model.record(), lambda rows, h: standing(rows, "ball", 400 * h**2 + 1e-9, 1e-3)


@scene(t_end=1.0, short=0.4)
def billiards_break(e=0.95):
    """The cue ball breaks fifteen balls that are drawn exactly touching."""
    radius = 0.0286
    model = Model(mu=0.05, e=e)
    at = [[-0.5, 0.001, radius]]
    for row in range(5):
        at += [[row * math.sqrt(3) * radius, (2 * k - row) * radius, radius] for k in range(row + 1)]
    v = np.zeros((16, 6))
    v[0, 0] = 5.0
    model.bodies("balls", shapes.sphere(radius), np.array(at), mass=0.17, v=v)

    def facts(rows, h):
        speed = np.linalg.norm(rows["balls"]["v"][..., :3], axis=-1)
        return {
            "no ball is faster than the cue": speed.max() < 5.0 + 1e-6,
            "the balls scatter": rows["t"][-1] < 0.3 or (speed[-1, 1:] > 0.05).sum() > 5,
            "they stay on the table": heights(rows, "balls").min() > radius - 1e-3 - 4 * G * h**2,
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.5)
def coin_toss():
    """A spinning coin falls on the table and clatters to rest."""
    model = Model(mu=0.3, e=0.3)
    model.body("coin", shapes.cylinder(0.012, 0.002), [0, 0, 0.15], mass=5e-3, v=[0.1, 0, 0.5, 20, 5, 0])

    def facts(rows, h):
        z = heights(rows, "coin")
        low = z - 0.012 * np.sin(tilt(rows, "coin")) - 0.001 * abs(np.cos(tilt(rows, "coin")))
        return {"it is on the table": low[-1] < 2e-3, "not through it": low.min() > -2.5 * h, "it does not fly higher": z.max() < 0.18}

    return model.record(), facts


@scene(t_end=1.0, short=0.5)
def rolling_barrel(slope=0.2):
    """A barrel rolls down an incline without slipping."""
    up, down = np.array([-math.sin(slope), 0, math.cos(slope)]), np.array([-math.cos(slope), 0, -math.sin(slope)])
    model = Model(mu=0.6, ground=False, world=[shapes.plane(up)])
    model.body("barrel", shapes.cylinder(0.3, 0.8), 0.3 * up, mass=50.0, turned=turn([1, 0, 0], math.pi / 2))

    def facts(rows, h):
        q, t = rows["barrel"]["q"], rows["t"][-1]
        wanted = G * math.sin(slope) * t**2 / 3
        return {"it rolls": close((q[-1, :3] - q[0, :3]) @ down, wanted, 0.02 * wanted + 2 * h), "straight on": close(q[:, 1], 0, 1e-6)}

    return model.record(), facts


@scene(t_end=1.0, short=0.3)
def ladder_against_a_wall(mu=0.5, angle=0.6):
    """A ladder leans against a wall; friction holds it at this angle."""
    length = 4.0
    model = Model(mu=mu, world=[shapes.plane([1, 0, 0])])
    s, c = math.sin(angle), math.cos(angle)
    model.body(
        "ladder", shapes.capsule(0.03, length), [length / 2 * s + 0.03, 0, length / 2 * c + 0.03], mass=12.0, turned=turn([0, 1, 0], -angle)
    )
    sticks = math.tan(angle) < 2 * mu / (1 - mu**2)

    def facts(rows, h):
        return (
            standing(rows, "ladder", 20 * G * h**2 + 1e-6, 1e-4 + 20 * G * h**2)
            if sticks
            else {"it slips": tilt(rows, "ladder")[-1] > angle + 0.05 * min(rows["t"][-1], 1.0) ** 2}
        )

    return model.record(), facts


variant("ladder_that_slips", "ladder_against_a_wall", mu=0.2)
variant("ladder_without_friction", "ladder_against_a_wall", mu=0.0)


@scene(t_end=1.0, short=0.3, rest=0.5)
def tower_of_capsules():
    """A log pile: four layers of two capsules each, crosswise."""
    model = Model(mu=0.5)
    q = []
    for layer in range(4):
        for side in (-0.1, 0.1):
            if layer % 2:
                q.append([side, 0, 0.05 + 0.1 * layer, *turn([1, 0, 0], math.pi / 2)])
            else:
                q.append([0, side, 0.05 + 0.1 * layer, *turn([0, 1, 0], math.pi / 2)])
    model.bodies("logs", shapes.capsule(0.05, 0.4), np.array(q), mass=3.0)
    return model.record(), lambda rows, h: standing(rows, "logs", 40 * G * h**2 + 1e-6, 1e-3 + 20 * G * h**2)


@scene(t_end=1.0, short=0.3, rest=0.5)
def four_legged_table(load=True):
    """A table on four legs, drawn exactly touching, with a vase on it."""
    model = Model(mu=0.5)
    top = shapes.box([1.0, 0.6, 0.04], position=[0, 0, 0.35])
    legs = [shapes.box([0.05, 0.05, 0.7], position=[x, y, -0.02]) for x in (-0.45, 0.45) for y in (-0.25, 0.25)]
    model.body("table", [top, *legs], [0, 0, 0.37], mass=20.0, inertia=[1.5, 2.5, 2.5])
    if load:
        model.body("vase", shapes.cylinder(0.08, 0.3), [0.3, 0.1, 0.74 + 0.15], mass=3.0)

    def facts(rows, h):
        result = standing(rows, "table", STILL, STILL)
        if load:
            result |= {
                "the vase: " + fact: holds for fact, holds in standing(rows, "vase", 16 * G * h**2 + 1e-9, 1e-4 + 100 * G * h**2).items()
            }
        return result

    return model.record(), facts


@scene(t_end=0.5, short=0.2, rest=0.2)
def box_at_rest(mu=0.3, side=0.2, h_scale=1.0):
    """A box drawn exactly on the ground."""
    model = Model(mu=mu)
    model.body("box", shapes.box([side] * 3), [0, 0, side / 2], mass=side**3 * 1000)
    return model.record(), lambda rows, h: standing(rows, "box", STILL * side, STILL)


variant("box_at_rest_without_friction", "box_at_rest", mu=0.0)
variant("box_at_rest_of_a_micrometre", "box_at_rest", side=1e-6, t_end=5e-3, short=2e-3, rest=2e-3, steps=(3e-5, 3e-6, 3e-7))
variant("box_at_rest_of_a_kilometre", "box_at_rest", side=1e3, t_end=30.0, short=12.0, rest=15.0, steps=(0.5, 5e-2, 5e-3))


@scene(t_end=1.0, short=0.5)
def ball_that_bounces_for_ever():
    """A ball without any loss: e = 1, mu = 0, on the ground and between two walls."""
    model = Model(mu=0.0, e=1.0, world=[shapes.plane([1, 0, 0], -0.5), shapes.plane([-1, 0, 0], -0.5)])
    model.body("ball", shapes.sphere(0.1), [0, 0, 0.5], v=[3, 0, 0, 0, 0, 0])

    def facts(rows, h):
        q = rows["ball"]["q"]
        return {
            "it keeps its speed across": close(abs(rows["ball"]["v"][:, 0]), 3.0, 1e-9),
            "it stays between": abs(q[:, 0]).max() < 0.4 + 3 * h,
        }

    return model.record(), facts


@scene(t_end=1.0, steps=COARSE, short=0.1)
def balls_in_a_drum(n=5, speed=2.0):
    """Balls tumble in a round drum that turns."""
    model = Model(mu=0.5, ground=False, pairs=[("balls", "balls"), ("balls", "drum")])
    along = turn([1, 0, 0], math.pi / 2)
    model.body("drum", shapes.tube(0.3, orientation=along), [0, 0, 0], mass=np.inf, inertia=1.0, v=[0, 0, 0, 0, speed, 0])
    at = np.array([[0.065 * (i - (n - 1) / 2), 0, -0.15 + 0.065 * j] for i in range(n) for j in range(n)])
    at[:, 1] += 1e-3 * np.sin(np.arange(len(at)))
    model.bodies("balls", shapes.sphere(0.03), at, mass=0.1)

    def facts(rows, h):
        q = rows["balls"]["q"]
        return {"the balls stay in the drum": np.hypot(q[..., 0], q[..., 2]).max() < 0.27 + 3 * h}

    return model.record(), facts


@scene(t_end=1.0, short=0.3, rest=0.5)
def pyramid_of_balls(mu=0.5):
    """Fourteen balls in a square pyramid, drawn exactly touching, between four walls."""
    radius = 0.1
    walls = [shapes.plane(n, -3 * radius) for n in ([1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0])]
    model = Model(mu=mu, world=walls)
    at = [
        [(2 * i - k) * radius, (2 * j - k) * radius, radius + math.sqrt(2) * radius * (2 - k)]
        for k in range(3)
        for i in range(k + 1)
        for j in range(k + 1)
    ]
    model.bodies("balls", shapes.sphere(radius), np.array(at), mass=4.0)
    return model.record(), lambda rows, h: standing(rows, "balls", 20 * G * h**2 + 1e-9, 1e-3 + 40 * G * h**2)


variant("pyramid_of_balls_without_friction", "pyramid_of_balls", mu=0.0)


@scene(t_end=1.0, short=0.3)
def rod_that_slides_on_its_end(mu=1.8, lean=0.5):
    """A rod slides on one end over the ground, leaning back, with so much friction that it jams (Painlevé 1895)."""
    length = 1.0
    s, c = math.sin(lean), math.cos(lean)
    model = Model(mu=mu)
    model.body(
        "rod",
        shapes.capsule(0.01, length),
        [length / 2 * s, 0, length / 2 * c + 0.01],
        mass=1.0,
        turned=turn([0, 1, 0], lean),
        v=[-3.0, 0, 0, 0, 0, 0],
    )

    def facts(rows, h):
        low = heights(rows, "rod") - length / 2 * abs(np.cos(tilt(rows, "rod"))) - 0.01
        return {"it does not go through the ground": low.min() > -8 * h, "it does not fly off": heights(rows, "rod").max() < 1.5}

    return model.record(), facts


@scene(t_end=1.0, steps=COARSE, short=0.1)
def heap_of_capsules():
    """Thirty-six capsules fall on a heap."""
    model = Model(mu=0.5)
    q = [
        [0.12 * (i - 1), 0.12 * (j - 1), 0.1 + 0.12 * k, *turn([1, 0.3 * i, 0.2 * j], 0.4 + i + 2 * j + 3 * k)]
        for i in range(3)
        for j in range(3)
        for k in range(4)
    ]
    model.bodies("capsules", shapes.capsule(0.025, 0.06), np.array(q), mass=0.1)

    def facts(rows, h):
        return {
            "none falls through": heights(rows, "capsules").min() > 0.025 - 4 * h,
            "none is fast": abs(rows["capsules"]["v"][..., :3]).max() < 6,
        }

    return model.record(), facts


@scene(t_end=1.0, short=0.3)
def elevator(speed=1.0):
    """Two boxes, one on the other, stand on a platform that nothing stops, and that rises."""
    model = Model(mu=0.5, ground=False)
    model.body("platform", shapes.box([1, 1, 0.1]), [0, 0, -0.05], mass=np.inf, inertia=1.0, v=[0, 0, speed, 0, 0, 0])
    model.body("lower", shapes.box([0.3] * 3), [0, 0, 0.15], mass=10.0, v=[0, 0, speed, 0, 0, 0])
    model.body("upper", shapes.box([0.2] * 3), [0.02, 0, 0.4], mass=5.0, v=[0, 0, speed, 0, 0, 0])

    def facts(rows, h):
        rise = speed * rows["t"]
        return {name + " rises with it": close(heights(rows, name) - rise, heights(rows, name)[0], STILL) for name in ("lower", "upper")}

    return model.record(), facts


@scene(t_end=1.0, short=0.4)
def conveyor(speed=1.0, mu=0.4):
    """A box is put on a belt that runs, slips, and is carried along."""
    model = Model(mu=mu, ground=False)
    model.body("belt", shapes.box([20, 1, 0.1]), [0, 0, -0.05], mass=np.inf, inertia=1.0, v=[speed, 0, 0, 0, 0, 0])
    model.body("box", shapes.box([0.4, 0.3, 0.2]), [0, 0, 0.1], mass=3.0)

    def facts(rows, h):
        v, t = rows["box"]["v"][:, 0], rows["t"]
        return {
            "it is drawn along by friction": close(v, np.minimum(mu * G * t, speed), 2 * mu * G * h),
            "it lies on the belt": close(heights(rows, "box"), 0.1, STILL + 2 * G * h**2),
        }

    return model.record(), facts


LAWS = {
    "impact": nsds.newton_impact(0.3),
    "friction": nsds.newton_impact_friction(e_n=0.3, mu=0.4),
    "fremond": nsds.fremond_impact(e=0.3, mu=0.4),
    "rolling": nsds.newton_impact_rolling_friction(e_n=0.3, mu=0.4, mu_r=0.005),
}


@scene(t_end=1.5, short=0.5)
def boxes_and_balls_that_fall(law="friction"):
    """Three boxes and three balls fall on the ground, on each other."""
    model = Model(law=LAWS[law])
    boxes = [[0.15 * (k - 1), 0.02 * k, 0.2 + 0.15 * k, *turn([1, 2, 3], 0.3 * k)] for k in range(3)]
    model.bodies("boxes", shapes.box([0.1, 0.12, 0.08]), np.array(boxes), mass=1.0)
    model.bodies("balls", shapes.sphere(0.05), np.array([[0.15 * (k - 1) + 0.03, 0.01, 0.6 + 0.1 * k] for k in range(3)]), mass=0.5)

    def facts(rows, h):
        low = min(heights(rows, "boxes").min() - 0.04, heights(rows, "balls").min() - 0.05)
        return {"none falls through": low > -4 * h, "none flies up": max(heights(rows, name).max() for name in ("boxes", "balls")) < 1.0}

    return model.record(), facts


variant("boxes_and_balls_without_friction", "boxes_and_balls_that_fall", law="impact")
variant("boxes_and_balls_of_fremond", "boxes_and_balls_that_fall", law="fremond")
variant("boxes_and_balls_with_rolling_friction", "boxes_and_balls_that_fall", law="rolling")
