"""Scenes of public issue reports of other engines, each with what is right there, at lengths of millimetres, metres and kilometres.

Times are scaled by the root of lengths, so that gravity and all angles stay; velocities and errors are in these units.
"""

import math

import numpy as np
import pytest

import nsds
from nsds.model import joints, shapes
from tests.collision.test_collision_convex import terrain
from tests.schemes.rigid.test_ghosts import as_mesh, hull

G, UPRIGHT = 9.81, (1.0, 0, 0, 0)
BLOCK = (0.3, 0.2, 0.1)
SCALES = [1e-3, 1.0, 1e3]


class Scene:
    """Bodies on a ground, in units of a length; inertias of their shapes unless given."""

    def __init__(self, scale, world, mu, e=0.0, slope=0.0):
        self.scale, self.unit, self.world, self.law = scale, math.sqrt(scale), world, nsds.newton_impact_friction(e, mu)
        self.gravity, self.parts, self.shapes = [G * math.sin(slope), 0, -G * math.cos(slope)], {}, {}

    def body(self, name, shape, x, v=(0, 0, 0), omega=(0, 0, 0), q=UPRIGHT, mass=1.0, solid=None):
        m, v = mass * self.scale**3, [*np.multiply(v, self.unit), *np.divide(omega, self.unit)]
        inertia = shapes.inertia(shape if solid is None else solid, m)
        self.parts[name], self.shapes[name] = nsds.rigid_bodies(m, inertia, q=[*np.multiply(x, self.scale), *q], v=v), shape

    def run(self, t_end, h, scheme=None):
        """{name: (x, v)} of all rows, in units of the length."""
        system = nsds.system(gravity=self.gravity, **self.parts, contacts=nsds.collisions(self.shapes, self.law, world=self.world))
        rows = nsds.simulate(system, t_end=t_end * self.unit, h=h * self.unit, scheme=scheme)
        assert scheme is not None or not rows["status"].any()
        in_units = np.array([1 / self.unit] * 3 + [self.unit] * 3)
        return {name: (rows[name]["q"] / ([self.scale] * 3 + [1] * 4), rows[name]["v"] * in_units) for name in self.shapes}


def block(scale):
    return shapes.box(np.multiply(BLOCK, scale))


def tiles(scale):
    return terrain(12, lambda x, y: 0.0, size=6.0 * scale)


@pytest.mark.parametrize("scale", SCALES)
def test_a_mesh_on_a_mesh_does_not_creep_down_a_slope(scale):
    """newton-physics/newton 1138: with friction of 1 boxes of triangles slid down a slope of two degrees."""
    scene = Scene(scale, tiles(scale), 1.0, slope=math.radians(2.0))
    scene.body("box", as_mesh(hull(np.multiply(BLOCK, scale))), [0.01, 0.02, 0.05], solid=block(scale))
    x, _ = scene.run(2.0, 5e-3)["box"]
    np.testing.assert_allclose(x, [x[0]] * len(x), atol=1e-9)


@pytest.mark.parametrize("scale", SCALES)
def test_a_mesh_slides_down_a_mesh_as_on_a_plane(scale):
    """The same: ``v = g (sin a - mu cos a) t``, whatever the floor is made of."""
    scene = Scene(scale, tiles(scale), 0.3, slope=math.radians(30.0))
    scene.body("box", as_mesh(hull(np.multiply(BLOCK, scale))), [-2, 0.02, 0.05], solid=block(scale))
    _, v = scene.run(0.9, 3e-3)["box"]
    np.testing.assert_allclose(v[-1], [0.9 * G * (0.5 - 0.3 * math.sqrt(0.75)), 0, 0, 0, 0, 0], atol=1e-6)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("scheme", [None, nsds.event_driven()], ids=["rattle", "event_driven"])
def test_a_box_that_is_launched_along_a_plane_does_not_tip(scale, scheme):
    """Genesis-Embodied-AI/genesis-world 3115: it stops after ``v^2 / (2 mu g)``, level."""
    scene = Scene(scale, shapes.plane(), 0.5)
    scene.body("box", shapes.box([0.1 * scale] * 3), [0, 0, 0.05], [6.0, 0, 0])
    x, v = scene.run(1.6, 5e-3, scheme)["box"]
    assert x[-1, 0] == pytest.approx(36 / G, rel=1e-5)
    assert abs(x[:, 4:]).max() < 1e-6
    assert abs(v[-1]).max() < 1e-9


@pytest.mark.parametrize("scale", SCALES)
def test_a_foot_dropped_on_its_edge_falls_onto_a_face(scale):
    """dimforge/rapier 934: dropped from 5 cm beside its unstable balance it settled back onto the edge."""
    angle = math.radians(77.47)
    height = 0.05 + 0.0675 * math.sin(angle) + 0.015 * math.cos(angle)
    scene = Scene(scale, shapes.plane(), 1.0)
    q = [math.cos(angle / 2), math.sin(angle / 2), 0, 0]
    scene.body("foot", shapes.box(np.multiply([0.094, 0.135, 0.03], scale)), [0, 0, height], q=q)
    x, v = scene.run(3.0, 5e-3)["foot"]
    assert min(abs(x[-1, 2] - half) for half in (0.047, 0.0675, 0.015)) < 1e-5
    assert abs(v[-1]).max() < 1e-6


@pytest.mark.parametrize("scale", SCALES)
def test_a_ball_that_spins_rolls_over_the_edges_of_triangles(scale):
    """dimforge/rapier 404, jrouwe/JoltPhysics 1155, godotengine/godot 50463: no edge of a level mesh is felt."""
    scene = Scene(scale, tiles(scale), 0.5)
    scene.body("ball", shapes.sphere(0.1 * scale), [-2.7, 0.01, 0.1], [3.0, 0.2, 0], [-2.0, 30.0, 20.0])
    x, v = scene.run(1.5, 4e-3)["ball"]
    np.testing.assert_allclose(x[:, 2], 0.1, atol=1e-9)
    np.testing.assert_allclose(v[:, :2], [[3.0, 0.2]] * len(v), atol=1e-9)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["marble", "wheel"])
def test_what_rolls_fast_neither_sinks_nor_bounces(scale, kind):
    """avianphysics/avian 1023: a marble of 16 mm at 1 m/s and 60 Hz; Autodesk/synthesis 490: a wheel, on a box."""
    radius, speed, h = (0.008, 1.0, 1 / 60) if kind == "marble" else (0.3, 10.0, 1 / 200)
    floor = shapes.plane() if kind == "marble" else shapes.box([60 * scale, 2 * scale, scale], position=[25 * scale, 0, -0.5 * scale])
    scene, c = Scene(scale, floor, 0.8), math.sqrt(0.5)
    if kind == "marble":
        scene.body("round", shapes.sphere(radius * scale), [0, 0, radius], [speed, 0, 0], [0, speed / radius, 0])
    else:
        shape = shapes.cylinder(radius * scale, 0.1 * scale)
        scene.body("round", shape, [0, 0, radius], [speed, 0, 0], [0, 0, speed / radius], q=[c, -c, 0, 0])
    x, v = scene.run(2.0, h)["round"]
    np.testing.assert_allclose(x[:, 2], radius, rtol=1e-6)
    np.testing.assert_allclose(v[:, 0], speed, rtol=1e-9)


@pytest.mark.parametrize("scale", SCALES)
def test_an_elastic_ball_from_ten_metres_keeps_its_energy(scale):
    """bulletphysics/bullet3 1530."""
    scene = Scene(scale, shapes.plane(), 0.0, e=1.0)
    scene.body("ball", shapes.sphere(0.1 * scale), [0, 0, 10.1])
    x, v = scene.run(8.7, 2e-3)["ball"]
    np.testing.assert_allclose(v[:, 2] ** 2 / 2 + G * (x[:, 2] - 0.1), 10 * G, rtol=1e-9)


@pytest.mark.parametrize("scale", SCALES)
def test_two_cards_that_lean_on_each_other_stand(scale):
    """st-tech/ppf-contact-solver 147: friction of 0.5 holds cards that lean by 20 degrees, ``tan(a) / 2 < mu``."""
    a, thickness, length = math.radians(20.0), 0.002, 0.09
    x, z = (math.sin(a) * length + math.cos(a) * thickness) / 2, (math.cos(a) * length + math.sin(a) * thickness) / 2
    scene = Scene(scale, shapes.plane(), 0.5)
    card = shapes.box(np.multiply([thickness, 0.06, length], scale))
    for name, side in (("left", -1), ("right", 1)):
        scene.body(name, card, [side * x, 0, z], q=[math.cos(a / 2), 0, -side * math.sin(a / 2), 0], mass=0.005)
    for x, _ in scene.run(1.0, 2e-3).values():
        np.testing.assert_allclose(x[:, :3], [x[0, :3]] * len(x), atol=1e-9)


@pytest.mark.parametrize("scale", SCALES)
def test_a_thousand_times_heavier_box_rests_on_light_ones(scale):
    """Stacks of boxes whose masses are far apart, which sweeps let sink."""
    scene = Scene(scale, shapes.plane(), 0.5)
    for k in range(4):
        scene.body(f"box{k}", shapes.box([0.2 * scale] * 3), [0.001 * k, 0, 0.1 + 0.2 * k], mass=1000.0 if k == 3 else 1.0)
    for x, _ in scene.run(2.0, 5e-3).values():
        np.testing.assert_allclose(x[:, :3], [x[0, :3]] * len(x), atol=1e-8)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("scheme", "far"), [(None, 1e-3), (nsds.event_driven(), 1e-8)], ids=["rattle", "event_driven"])
def test_a_cue_ball_with_spin_of_all_kinds(scale, scheme, far):
    """The slip u keeps its direction, and v ends at ``v - 2/7 u`` after ``2 |u| / (7 mu g)``: a parabola, then a line."""
    radius, mu, v0, omega = 0.03, 0.2, np.array([1.0, 0]), np.array([40.0, -60.0, 25.0])
    slip = v0 + radius * np.array([-omega[1], omega[0]])
    size = np.linalg.norm(slip)
    t, v_end = 2 * size / (7 * mu * G), v0 - 2 / 7 * slip
    scene = Scene(scale, shapes.plane(), mu)
    scene.body("ball", shapes.sphere(radius * scale), [0, 0, radius], [*v0, 0], omega)
    x, v = scene.run(1.0, 2e-3, scheme)["ball"]
    np.testing.assert_allclose(v[-1, :2], v_end, atol=far)
    np.testing.assert_allclose(x[-1, :2], v0 * t - mu * G * slip / size * t**2 / 2 + v_end * (1 - t), atol=far)


@pytest.mark.parametrize("scale", SCALES)
def test_a_wedge_sticks_between_walls(scale):
    """Where the tangent of its half angle is below friction it stays without being pressed in."""
    a, walls = math.radians(10.0), []
    for side in (-1, 1):
        walls.append(shapes.plane([-side * math.cos(a), 0, math.sin(a)], point=[side * 0.1 * scale, 0, 0]))
    corners = [[s * (0.1 + math.tan(a) * z), y, z] for s in (-1, 1) for y in (-0.1, 0.1) for z in (-0.15, 0.15)]
    scene = Scene(scale, walls, 0.3)
    scene.body("wedge", shapes.convex(np.multiply(corners, scale)), [0, 0, 0], solid=shapes.box([0.2 * scale, 0.2 * scale, 0.3 * scale]))
    x, v = scene.run(1.0, 5e-3)["wedge"]
    assert abs(x[:, :3]).max() < 1e-9
    assert abs(v).max() < 1e-6


@pytest.mark.parametrize("scale", SCALES)
def test_a_cradle_keeps_its_energy_and_balls_do_not_overlap(scale):
    """newton-physics/newton 3177: five elastic balls that touch, on hinges."""
    radius, length, a, parts, balls = 0.02 * scale, 0.2 * scale, 0.5, {}, {}
    for k in range(5):
        x, turn, balls[f"ball{k}"] = 2 * radius * k, a if k == 0 else 0.0, shapes.sphere(radius)
        q = [x - length * math.sin(turn), 0, length - length * math.cos(turn), math.cos(turn / 2), 0, math.sin(turn / 2), 0]
        parts[f"ball{k}"] = nsds.rigid_bodies(scale**3, shapes.inertia(balls[f"ball{k}"], scale**3), q=q, v=np.zeros(6))
        parts[f"hinge{k}"] = nsds.interaction(joints.hinge([x, 0, length], [0, 1, 0]), nsds.equality(), on=f"ball{k}")
    contacts = nsds.collisions(balls, nsds.newton_impact_friction(1.0, 0.0))
    system, unit = nsds.system(gravity=[0, 0, -G], **parts, contacts=contacts), math.sqrt(scale)
    rows = nsds.simulate(system, t_end=2.0 * unit, h=1e-3 * unit)
    ledger = nsds.energy(system, rows)
    E = ledger["kinetic"] + ledger["potential"]
    assert abs(E - E[0]).max() < 1e-3 * scale**3 * G * length * (1 - math.cos(a))
    n, y = rows["contacts"]["n"], rows["contacts"]["y"]
    assert min(y[i, : n[i]].min(initial=0.0) for i in range(len(rows))) > -1e-3 * radius
