"""Contacts of hulls, meshes and other pairs without a kernel: distances as defined, resting bodies, refusals; overlap at the start."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import nsds
from nsds.collision import GENERAL, NAMES
from nsds.collision.edge_on import WIDTH
from nsds.collision.kinds import MESH
from nsds.model import shapes
from tests import reference_collision as twin
from tests.collision.test_collision import Found, random_shape
from tests.strategies import examples, generators

CONVEX_PAIRS = sorted(tuple(NAMES[k] for k in pair) for pair in GENERAL if MESH not in pair)
MESH_PAIRS = sorted(tuple(NAMES[k] for k in pair) for pair in GENERAL if MESH in pair)
WITH_SOLIDS = [pair for pair in MESH_PAIRS if pair != ("mesh", "mesh")]  # corners of two meshes in each other are left in several ways
GRAVITY = 9.81
SET_DOWN = 1e-9  # so deep that rounding does not decide what touches
EXACT = {"h": 1e-3, "solver": nsds.solvers.solver("nsgs", tol=1e-12, max_iter=10000)}


def apart(pair, rng, gap):
    """A random pair, and the direction in which the first is so far from the second: the ends of both along it are opposite."""
    a, b = (random_shape(kind, rng) for kind in pair)
    shape = (a, b)[rng.integers(2)]
    d = rng.normal(size=3)
    if rng.random() < 0.5 and shape["shape"] != "sphere":  # across a face or a side
        own = ConvexHull(shape["vertices"]).equations[0, :3] if "vertices" in shape else np.eye(3)[[2, 0]][rng.integers(2)]
        if shape["shape"] == "cone":  # out of its base or its side
            own = np.array([[0, 0, -1.0], [shape["size"][1], 0, shape["size"][0]]])[rng.integers(2)] * (1 if shape is b else -1)
        d = twin.axes(shape) @ own
    d /= np.linalg.norm(d)
    x = a["pose"][:3] + twin.farthest(b, d) + gap * d - twin.farthest(a, -d)
    return a | {"pose": np.concatenate([x, a["pose"][3:]])}, b, d


def box_hull(lengths, **at):
    """A box as a hull of its vertices, in the order of the features of boxes on planes."""
    i = np.arange(8)
    return shapes.convex((np.stack([i & 1, i >> 1 & 1, i >> 2], axis=1) - 0.5) * lengths, **at)


@pytest.mark.parametrize("pair", CONVEX_PAIRS + MESH_PAIRS, ids="-".join)
@examples(30)
@given(rng=generators, gap=st.sampled_from([0.2, 1e-3, 1e-6]))
def test_the_least_gap_is_the_distance_and_its_points_are_on_both_surfaces(pair, rng, gap):
    a, b, d = apart(pair, rng, gap)
    found = Found([a, b], 0.3)
    k = found.gap.argmin()
    np.testing.assert_allclose(found.gap[k], gap, atol=1e-6 + 2e-5 * gap)
    np.testing.assert_allclose(found.normal[k], d, atol=1e-6 / gap + 3e-5)
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1, atol=1e-9)
    for shape, x in ((a, found.point[k]), (b, found.other[k])):
        np.testing.assert_allclose(twin.signed_distance(shape, x), 0, atol=1e-5)
    assert len(Found([a, b], gap - 2e-6)) == 0


@pytest.mark.parametrize("pair", CONVEX_PAIRS, ids="-".join)
@examples(30)
@given(rng=generators, depth=st.sampled_from([1e-6, 1e-3, 0.05]))
def test_the_deepest_gap_is_the_overlap_along_its_normal_which_is_nearly_the_least(pair, rng, depth):
    a, b, _ = apart(pair, rng, -depth)
    found = Found([a, b], 0.1)
    k = found.gap.argmin()
    assert -depth - 1e-6 <= found.gap[k] <= depth + 1e-6
    # the normal is between those of all faces that show the overlap, to WIDTH
    assert -1e-6 - WIDTH <= twin.separation(a, b, found.normal[k]) - found.gap[k] <= 1e-6
    for shape, x in ((a, found.point[k]), (b, found.other[k])):
        np.testing.assert_allclose(twin.signed_distance(shape, x), 0, atol=1e-5)


@pytest.mark.parametrize("pair", MESH_PAIRS, ids="-".join)
@examples(40)
@given(rng=generators, depth=st.sampled_from([1e-4, 1e-3, 1e-2]))
def test_what_overlaps_a_mesh_has_contacts(pair, rng, depth):
    """At its edges and corners, too, where a rim or tip that had come through them had none."""
    a, b, _ = apart(pair, rng, -depth)
    assert len(Found([a, b], 0.15)) >= 1


@examples(60)
@given(rng=generators, gap=st.sampled_from([0.2, 1e-2, 1e-4, -1e-4, -1e-2, -0.1]))
def test_hulls_and_boxes_are_as_far_as_their_differences_are_from_the_origin(rng, gap):
    a, b, _ = apart(("convex", ("convex", "box")[rng.integers(2)]), rng, gap)
    expected = twin.hull_distance(twin.corners(a), twin.corners(b))
    np.testing.assert_allclose(Found([a, b], 0.5).gap.min(), expected, atol=2e-7)


@pytest.mark.parametrize("pair", CONVEX_PAIRS + WITH_SOLIDS, ids="-".join)
@examples(15)
@given(rng=generators, gap=st.sampled_from([0.1, 1e-3, -1e-3]))
def test_contacts_move_with_the_shapes_and_turn_round_with_their_order(pair, rng, gap):
    a, b, _ = apart(pair, rng, gap)
    rotation, translation = Rotation.random(random_state=rng.integers(2**31)).as_matrix(), rng.normal(size=3)
    before = Found([a, b], 0.15)
    after = Found([twin.moved(a, rotation, translation), twin.moved(b, rotation, translation)], 0.15)
    other = Found([b, a], 0.15)
    k, l, m = (found.gap.argmin() for found in (before, after, other))
    assert len(before) >= 1
    np.testing.assert_allclose([after.gap[l], other.gap[m]], before.gap[k], atol=1e-6)
    np.testing.assert_allclose(after.normal[l], rotation @ before.normal[k], atol=1e-4)
    np.testing.assert_allclose(other.normal[m], -before.normal[k], atol=1e-4)
    if pair[0] != pair[1]:
        np.testing.assert_allclose(np.sort(other.gap), np.sort(before.gap), atol=1e-9)
        np.testing.assert_allclose(other.other[m], before.point[k], atol=1e-9)


@examples(15)
@given(rng=generators, gap=st.sampled_from([0.1, 1e-3]))
def test_contacts_of_meshes_turn_round_with_their_order(rng, gap):
    a, b, _ = apart(("mesh", "mesh"), rng, gap)
    found, other = Found([a, b], 0.15), Found([b, a], 0.15)
    k, m = found.gap.argmin(), other.gap.argmin()
    np.testing.assert_allclose(other.gap[m], found.gap[k], atol=1e-9)
    np.testing.assert_allclose(other.normal[m], -found.normal[k], atol=1e-6)
    np.testing.assert_allclose(other.other[m], found.point[k], atol=1e-9)


def stone(rng, n=12):
    """Hull of random points, with its centre of mass at the origin."""
    points = rng.normal(size=(n, 3)) * [0.12, 0.1, 0.08]
    return shapes.convex(points, position=-shapes.centre_of_mass(shapes.convex(points)))


def prism(n, radius, height, **at):
    """Right prism over a regular polygon of n corners."""
    angle = 2 * np.pi * np.arange(n) / n
    ring = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return shapes.convex(np.vstack([np.column_stack([ring, np.full(n, z)]) for z in (-height / 2, height / 2)]), **at)


def terrain(n, height, size=2.0):
    """Mesh of 2 n^2 triangles over a square, at a height that is a function of x and y."""
    x = np.linspace(-size / 2, size / 2, n + 1)
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    corner = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    right, above, across = corner + n + 1, corner + 1, corner + n + 2
    triangles = np.concatenate([np.stack([corner, right, across], axis=1), np.stack([corner, across, above], axis=1)])
    return shapes.mesh(np.column_stack([grid, [height(*xy) for xy in grid]]), triangles)


def falling(shape, world, q, v=(0, 0, 0, 0, 0, 0), *, mu=0.3, mass=1.0, **options):
    """System of a body of one shape and of what does not move."""
    body = nsds.rigid_bodies(mass, shapes.inertia(shape, mass), q=q, v=v, fext=[0, 0, -mass * GRAVITY])
    law = nsds.newton_impact_friction(e_n=0.0, mu=mu)
    return nsds.system(body=body, contacts=nsds.collisions({"body": shape}, law, world=world, **options))


SIDES = np.array([0.4, 0.3, 0.2])
FLOORS = {"plane": shapes.plane(), "box": shapes.box([4, 4, 1], position=[0, 0, -0.5]), "hull": box_hull([4, 4, 1], position=[0, 0, -0.5])}


@pytest.mark.parametrize("floor", FLOORS)
@examples(20)
@given(rng=generators, gap=st.sampled_from([0.02, 0.0, -0.01]), tilt=st.sampled_from([0.0, 1e-6, 1e-2, 0.5]))
def test_a_hull_of_the_corners_of_a_box_has_the_contacts_of_the_box(floor, rng, gap, tilt):
    p = np.array([1, *(tilt * rng.normal(size=2)), rng.normal()])
    at = {"position": [*rng.uniform(-1, 1, size=2), 0.0], "orientation": p}  # above the middle of the floor
    rise = gap - twin.lowest_height(shapes.box(SIDES, **at), np.array([0, 0, 1.0]), np.zeros(3))
    at["position"][2] += rise
    one, other = Found([box_hull(SIDES, **at), FLOORS[floor]], 0.05), Found([shapes.box(SIDES, **at), FLOORS[floor]], 0.05)
    np.testing.assert_allclose(one.gap.min(), gap, atol=1e-9)
    np.testing.assert_allclose(one.normal, np.broadcast_to([0, 0, 1.0], one.normal.shape), atol=1e-6)
    assert len(one) == len(other)
    for a, b in ((one.gap, other.gap), (one.point, other.point)):
        np.testing.assert_allclose(a[np.lexsort(one.point.T)], b[np.lexsort(other.point.T)], atol=1e-9)
    if floor == "plane":
        assert (one.feature == other.feature).all()


@pytest.mark.parametrize("floor", FLOORS)
def test_a_hull_box_lies_still_on_four_contacts_and_slides_as_the_box_does(floor):
    still = nsds.simulate(falling(box_hull(SIDES), FLOORS[floor], [0, 0, 0.1 - SET_DOWN, 1, 0, 0, 0], margin=1e-3), t_end=0.2, **EXACT)
    assert (still["contacts"]["n"] == 4).all()
    assert abs(still["body"]["v"]).max() < 1e-9
    np.testing.assert_allclose(still["contacts"]["lambda"][-1, :4, 0].sum(), GRAVITY * 1e-3, rtol=1e-9)
    runs = [
        nsds.simulate(
            falling(shape, FLOORS[floor], [0, 0, 0.1 - SET_DOWN, 1, 0, 0, 0], [1.0, 0, 0, 0, 0, 0], margin=1e-3), t_end=0.3, **EXACT
        )["body"]
        for shape in (box_hull(SIDES), shapes.box(SIDES))
    ]
    np.testing.assert_allclose(runs[0]["q"], runs[1]["q"], atol=1e-4)
    np.testing.assert_allclose(runs[0]["v"][200, 0], 1.0 - 0.3 * GRAVITY * 0.2, atol=2e-2)


def test_a_tilted_hull_box_falls_as_the_box_does():
    q = np.array([0, 0, 0.45, 0.9, 0.2, 0.3, 0.1])
    q[3:] /= np.linalg.norm(q[3:])
    for floor in FLOORS.values():
        how = {"t_end": 0.6, "h": 1e-3, "scheme": nsds.moreau_jean()}
        runs = [nsds.simulate(falling(shape, floor, q), **how)["body"] for shape in (box_hull(SIDES), shapes.box(SIDES))]
        np.testing.assert_allclose(runs[0]["q"], runs[1]["q"], atol=2e-3)


@pytest.mark.parametrize("floor", FLOORS)
def test_a_prism_with_many_corners_stands_still_on_some_of_them_all_round(floor):
    run = nsds.simulate(falling(prism(40, 0.2, 0.1), FLOORS[floor], [0, 0, 0.05 - SET_DOWN, 1, 0, 0, 0], margin=1e-3), t_end=0.05, **EXACT)
    assert (run["contacts"]["n"] >= 15).all()
    assert (run["contacts"]["n"] <= 16).all()
    assert abs(run["body"]["v"]).max() < 1e-9
    points = run["contacts"]["point"][-1, : run["contacts"]["n"][-1], :2]
    angle = np.sort(np.arctan2(points[:, 1], points[:, 0]))
    assert np.diff([*angle, angle[0] + 2 * np.pi]).max() < np.pi / 4


@pytest.mark.parametrize("floor", ["plane", "hull"])
@pytest.mark.parametrize("seed", range(2))
def test_a_tumbling_stone_comes_to_rest_on_a_face(floor, seed):
    """It overlaps by less than the way of one step at the speed of its fall, and lies on three points or more."""
    rng, h = np.random.default_rng(seed), 1e-3
    shape = stone(rng)
    v = [0.3, -0.2, 0, *rng.normal(size=3)]
    run = nsds.simulate(falling(shape, FLOORS[floor], [0, 0, 0.4, 1, 0, 0, 0], v, mu=0.6), t_end=2.0, h=h)
    assert (run["status"] == 0).all()
    height = [twin.lowest_height(twin.moved(shape, Rotation.from_quat(np.roll(q[3:], -1)).as_matrix(), q[:3]), np.eye(3)[2], np.zeros(3))
              for q in run["body"]["q"]]  # fmt: skip
    assert min(height) > -h * np.sqrt(2 * GRAVITY * 0.4)
    assert abs(run["body"]["v"][-1]).max() < 1e-3
    assert run["contacts"]["n"][-1] >= 3


def icosphere(radius, **at):
    """Mesh of the hull of points that are spread over a ball."""
    k = np.arange(32) + 0.5
    z, angle = 1 - k / 16, np.pi * (1 + np.sqrt(5)) * k
    hull = shapes.convex(radius * np.stack([np.sqrt(1 - z**2) * np.cos(angle), np.sqrt(1 - z**2) * np.sin(angle), z], axis=1))
    return shapes.mesh(hull["vertices"], hull["triangles"], **at)


@pytest.mark.parametrize(("floor", "t_end"), [("plane", 2.4), ("box", 1.0)])
def test_a_mesh_comes_to_rest_on_a_plane_and_on_a_box(floor, t_end):
    run = nsds.simulate(falling(icosphere(0.1), FLOORS[floor], [0, 0, 0.12, 1, 0, 0, 0], mu=0.5), t_end=t_end, h=2e-3)
    assert (run["status"] == 0).all()
    assert 0.085 < run["body"]["q"][-1, 2] < 0.1
    assert abs(run["body"]["v"][-1]).max() < (0.1 if floor == "plane" else 1.0)


def test_a_ball_rolls_over_the_joints_of_flat_triangles_as_on_a_plane():
    ball = shapes.sphere(0.1)
    v = [0.8, 0.5, 0, 0, 0, 0]
    runs = [
        nsds.simulate(falling(ball, floor, [-0.3, -0.3, 0.1, 1, 0, 0, 0], v), t_end=0.8, h=1e-3)
        for floor in (terrain(8, lambda x, y: 0.0), shapes.plane())
    ]
    np.testing.assert_allclose(runs[0]["body"]["q"], runs[1]["body"]["q"], atol=1e-4)


def test_a_box_slides_over_the_joints_of_flat_triangles_as_on_a_plane():
    runs = [
        nsds.simulate(falling(shapes.box(SIDES), floor, [-0.3, -0.3, 0.1, 1, 0, 0, 0], [1.0, 0.4, 0, 0, 0, 0]), t_end=0.4, h=1e-3)
        for floor in (terrain(8, lambda x, y: 0.0), shapes.plane())
    ]
    np.testing.assert_allclose(runs[0]["body"]["q"], runs[1]["body"]["q"], atol=1e-4)


def test_a_ball_comes_to_rest_in_a_bowl_of_triangles_on_its_surface():
    run = nsds.simulate(
        falling(shapes.sphere(0.1), terrain(12, lambda x, y: x**2 + y**2), [0.3, 0.1, 0.4, 1, 0, 0, 0], mu=0.5), t_end=1.0, h=1e-3
    )
    y, n = run["contacts"]["y"], run["contacts"]["n"]
    gaps = y * (np.arange(y.shape[1]) < n[:, None])
    assert (run["status"] == 0).all()
    assert gaps.min() > -5e-3
    assert np.linalg.norm(run["body"]["q"][-1, :2]) < 0.35


def test_sphere_over_a_ridge_and_beside_a_valley():
    """On a roof of two slopes the ball touches the ridge alone; in the valley both slopes."""
    vertices = [[-1, 0, 0], [1, 0, 0], [-1, 1, -1], [1, 1, -1], [-1, -1, -1], [1, -1, -1]]
    triangles = [[0, 1, 3], [0, 3, 2], [0, 5, 1], [0, 4, 5]]
    ridge = Found([shapes.sphere(0.1, position=[0, 0.01, 0.11]), shapes.mesh(vertices, triangles)], 0.02)
    assert len(ridge) == 1
    np.testing.assert_allclose(ridge.other, [[0, 0, 0]], atol=1e-9)
    valley = np.array(vertices) * [1, 1, -1]
    both = Found([shapes.sphere(0.1, position=[0, 0, 0.1 * np.sqrt(2)]), shapes.mesh(valley, triangles)], 0.02)
    np.testing.assert_allclose(both.gap, 0, atol=1e-9)
    np.testing.assert_allclose(sorted(both.normal[:, 1]), [-np.sqrt(0.5), np.sqrt(0.5)], atol=1e-9)


def test_cylinders_stand_and_lie_on_boxes_and_each_other():
    drum = shapes.cylinder(0.2, 0.3)
    lying = [np.sqrt(0.5), 0, np.sqrt(0.5), 0]
    standing = nsds.simulate(falling(drum, FLOORS["box"], [0, 0, 0.15 - SET_DOWN, 1, 0, 0, 0], margin=1e-3), t_end=0.1, **EXACT)
    assert abs(standing["body"]["v"]).max() < 1e-9
    rolling = nsds.simulate(falling(drum, FLOORS["box"], [0, 0, 0.2, *lying], [0, 1.0, 0, 0, 0, 5.0]), t_end=0.5, h=1e-3)
    np.testing.assert_allclose(rolling["body"]["q"][:, 2], 0.2, atol=1e-4)
    beside = Found([shapes.cylinder(0.1, 1.0, position=[0.2, 0, 0.4]), shapes.cylinder(0.1, 1.0)], 0.01)
    np.testing.assert_allclose(np.sort(beside.point[:, 2]), [-0.1, 0.5], atol=1e-9)
    np.testing.assert_allclose(beside.gap, 0, atol=1e-9)


@pytest.mark.parametrize("floor", FLOORS)
def test_cones_stand_on_their_base_and_lie_on_their_side(floor):
    """On points all round, and on tip and rim; upside down the tip alone touches."""
    cone, r, height = shapes.cone(0.2, 0.4), 0.2, 0.4
    standing = nsds.simulate(falling(cone, FLOORS[floor], [0, 0, height / 4 - SET_DOWN, 1, 0, 0, 0], margin=1e-3), t_end=0.1, **EXACT)
    assert abs(standing["body"]["v"]).max() < 1e-9
    np.testing.assert_allclose(standing["contacts"]["lambda"][-1, :, 0].sum(), GRAVITY * 1e-3, rtol=1e-9)
    slope = np.arctan(r / height)
    down = np.array([np.cos(np.pi / 4 + slope / 2), 0, np.sin(np.pi / 4 + slope / 2), 0])
    z = 0.75 * height * np.sin(slope) - SET_DOWN
    lying = nsds.simulate(falling(cone, FLOORS[floor], [0, 0, z, *down], mu=0.6, margin=1e-3), t_end=0.1, **EXACT)
    assert abs(lying["body"]["v"]).max() < 1e-9
    n = lying["contacts"]["n"][-1]
    x = np.sort(lying["contacts"]["point"][-1, :n, 0])
    np.testing.assert_allclose(np.ptp(x), np.hypot(r, height), rtol=1e-6)
    tip = Found([shapes.cone(r, height, position=[0.1, 0.2, 0.75 * height + 0.003], orientation=[0, 1, 0, 0]), FLOORS[floor]], 0.01)
    np.testing.assert_allclose([*tip.gap, *tip.point[0]], [0.003, 0.1, 0.2, 0.003], atol=1e-12)


def test_geometry_is_stored_once_and_runs_are_the_same_from_files_and_in_ensembles(tmp_path):
    pytest.importorskip("h5py")
    shape = stone(np.random.default_rng(3))
    q = np.array([[0, 0, 0.3, 1, 0, 0, 0], [0, 0, 0.6, 1, 0, 0, 0]])
    bodies = nsds.rigid_bodies(1.0, shapes.inertia(shape, 1.0), q=q, v=np.zeros((2, 6)), fext=[0, 0, -GRAVITY])
    law = nsds.newton_impact_friction(e_n=0.0, mu=0.5)
    world = [shapes.plane(), shape | {"pose": np.array([1, 0, 0, 1.0, 0, 0, 0])}]
    system = nsds.system(stones=bodies, contacts=nsds.collisions({"stones": shape}, law, world=world))
    assert system["contacts"]["vertices"].shape == shape["vertices"].shape
    whole = nsds.simulate(system, t_end=0.4, h=2e-3)
    nsds.stream(system, tmp_path / "run.h5", t_end=0.2, h=2e-3)
    nsds.resume(tmp_path / "run.h5", t_end=0.4)
    assert (nsds.read_trajectory(tmp_path / "run.h5")["stones"] == whole["stones"]).all()
    ensemble = nsds.simulate(np.array([system, system]), t_end=0.4, h=2e-3)
    assert (ensemble["stones"] == whole["stones"]).all()


@pytest.mark.parametrize("gap", [0.0, 1e-15, -1e-12])
@pytest.mark.parametrize("shift", [0.0, 0.1, 0.5, 0.99])
def test_faces_that_touch_to_rounding_have_the_contacts_of_faces(gap, shift):
    found = Found([box_hull(SIDES), box_hull(SIDES, position=[shift * SIDES[0], 0, -SIDES[2] - gap])], 0.01)
    assert len(found) >= 4
    np.testing.assert_allclose(found.gap, gap, atol=1e-14)
    np.testing.assert_allclose(abs(found.normal), np.broadcast_to([0, 0, 1.0], found.normal.shape), atol=1e-12)


@examples(30)
@given(rng=generators)
def test_faces_on_each_other_keep_their_contacts_whatever_the_rounding(rng):
    """Corners above corners, as of the stones of an arch: one is in the face or beyond it by rounding alone."""
    turned = {"orientation": rng.normal(size=4) * [1, 0, 0, 1]}
    below, names = box_hull(SIDES, **turned), []
    for way in (np.zeros(3), *(1e-9 * rng.normal(size=(5, 3)))):
        found = Found([box_hull(SIDES, position=way + np.array([0, 0, SIDES[2]]), **turned), below], 0.01)
        names.append(found.feature.tolist())
        assert len(found) == 4
    assert all(one == names[0] for one in names)


@pytest.mark.parametrize("shift", [0.8, 0.995])
@pytest.mark.parametrize("depth", [0.05, 1e-3])
def test_what_lies_on_a_mesh_near_its_edge_is_not_held_by_its_side(shift, depth):
    """Deeper behind the side than behind the top, it leaves upwards; a box of triangles has the contacts of a box."""
    table = box_hull([1.0, 1.0, 1.0])
    for shape in (shapes.box([1.0] * 3), shapes.mesh(table["vertices"], table["triangles"])):
        found = Found(
            [shape | {"pose": np.array([shift, 0.1, 1 - depth, 1, 0, 0, 0])}, shapes.mesh(table["vertices"], table["triangles"])], 0.02
        )
        deep = found.gap < 0
        np.testing.assert_allclose(found.gap[deep], -min(depth, 1 - shift), atol=1e-12)
        np.testing.assert_allclose(abs(found.normal[deep]) @ [1.0, 0, 0], float(depth > 1 - shift), atol=1e-12)
        if depth < 1 - shift:
            x = found.point[deep][:, :2]
            np.testing.assert_allclose([x.min(axis=0), x.max(axis=0)], [[shift - 0.5, -0.4], [0.5, 0.5]], atol=1e-12)


def extruded(outline, triangles, width):
    """Mesh of a prism along y over a polygon of the plane of x and z, which is given with its triangles."""
    n, outline, following = len(outline), np.array(outline), np.roll(np.arange(len(outline)), -1)
    vertices = np.vstack([np.insert(outline, 1, y, axis=1) for y in (-width / 2, width / 2)])
    ends = [np.array(triangles), np.array(triangles)[:, ::-1] + n]
    sides = [np.stack(side, axis=1) for side in ((np.arange(n), n + np.arange(n), following), (following, n + np.arange(n), n + following))]
    return shapes.mesh(vertices, np.vstack([*ends, *sides]))


def test_a_mesh_hangs_in_a_slot_of_another_as_boxes_do():
    """A T falls into the slot of a U, both with concave edges; its arms carry it."""
    slot = [(-1, 0), (1, 0), (1, 1), (0.3, 1), (0.3, 0.3), (-0.3, 0.3), (-0.3, 1), (-1, 1)]
    hanger = [(-0.2, -0.5), (0.2, -0.5), (0.2, 0), (0.6, 0), (0.6, 0.3), (-0.6, 0.3), (-0.6, 0), (-0.2, 0)]
    u = extruded(slot, [(0, 1, 4), (0, 4, 5), (1, 2, 3), (1, 3, 4), (0, 5, 6), (0, 6, 7)], 1.0)
    t = extruded(hanger, [(0, 1, 2), (0, 2, 7), (2, 3, 4), (2, 4, 7), (7, 4, 5), (7, 5, 6)], 0.6)
    np.testing.assert_allclose([shapes.volume(u), shapes.volume(t)], [1.58, 0.336])
    of_boxes = [
        ([shapes.box([0.4, 0.6, 0.5], position=[0, 0, -0.25]), shapes.box([1.2, 0.6, 0.3], position=[0, 0, 0.15])]),
        [shapes.box([2, 1, 0.3], position=[0, 0, 0.15]), *(shapes.box([0.7, 1, 0.7], position=[x, 0, 0.65]) for x in (-0.65, 0.65))],
    ]
    runs = []
    for shape, world in ((t, [u]), of_boxes):
        body = nsds.rigid_bodies(1.0, shapes.inertia(t, 1.0), q=[0.02, 0, 1.1, 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -GRAVITY])
        law = nsds.newton_impact_friction(e_n=0.0, mu=0.3)
        runs.append(nsds.simulate(nsds.system(body=body, contacts=nsds.collisions({"body": shape}, law, world=world)), t_end=0.4, h=1e-3))
    np.testing.assert_allclose(runs[0]["body"]["q"], runs[1]["body"]["q"], atol=1e-9)
    np.testing.assert_allclose(runs[0]["contacts"]["lambda"][-1, :, 0].sum(), GRAVITY * 1e-3, rtol=1e-6)
    assert abs(runs[0]["body"]["v"][-1]).max() < 1e-9


def test_a_ball_of_triangles_comes_to_rest_in_a_bowl_of_triangles():
    run = nsds.simulate(
        falling(icosphere(0.1), terrain(12, lambda x, y: x**2 + y**2), [0.3, 0.1, 0.4, 1, 0, 0, 0], mu=0.5), t_end=1.0, h=2e-3
    )
    gaps = run["contacts"]["y"] * (np.arange(run["contacts"]["y"].shape[1]) < run["contacts"]["n"][:, None])
    assert (run["status"] == 0).all()
    assert gaps.min() > -5e-3
    assert np.linalg.norm(run["body"]["q"][-1, :2]) < 0.35


def test_overlap_at_the_start_is_told():
    with pytest.warns(UserWarning, match=r"'contacts': 4 contacts overlap.* more than 1%.*by 0\.05 m: convex 0 of body\[0\] and plane 1"):
        nsds.simulate(falling(box_hull(SIDES), shapes.plane(), [0, 0, 0.05, 1, 0, 0, 0]), t_end=0.01, h=1e-3)
    many = np.zeros((30, 7))
    many[:, 2], many[:, 3] = 0.04, 1.0
    many[:, 0] = 0.09 * np.arange(30)
    boxes = nsds.rigid_bodies(1.0, 1.0, q=many, v=np.zeros((30, 6)))
    law = nsds.newton_impact_friction(e_n=0.0, mu=0.3)
    parts = {"boxes": boxes, "contacts": nsds.collisions({"boxes": shapes.box([0.1] * 3)}, law, world=shapes.plane(), capacity=3)}
    with pytest.warns(UserWarning, match="contacts overlap"):  # the room grows first
        rows = nsds.simulate(nsds.system(**parts), t_end=0.002, h=1e-3, scheme=nsds.moreau_jean())
    assert rows["contacts"]["n"][0] == rows["contacts"]["n"][1] > 100
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lying = nsds.simulate(falling(box_hull(SIDES), shapes.plane(), [0, 0, 0.0995, 1, 0, 0, 0]), t_end=0.01, h=1e-3)
        assert (lying["status"] == 0).all()
