"""Rays through scenes: where they meet shapes of all kinds, against plain NumPy; surfaces without gaps; what is not seen; refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import nsds
from nsds import shapes
from nsds.collision.kinds import SHAPES
from tests import reference_collision, reference_rays
from tests.collision.test_collision import random_shape
from tests.strategies import examples, generators

FLAT = tuple(name for name, shape in SHAPES.items() if shape.is_planar)
LAW = nsds.newton_impact(0.0)
UNMOVED = [0, 0, 0, 1, 0, 0, 0]


def drawn(kind, rng):
    """A shape of about unit size at a random pose."""
    at, angle = {"position": rng.normal(size=2)}, {"angle": rng.uniform(-4, 4)}
    radius, length = rng.uniform(0.2, 1.0, size=2)
    if kind == "disk":
        return shapes.disk(radius, **at)
    if kind == "stadium":
        return shapes.stadium(radius, length, **at, **angle)
    if kind == "polygon":
        return shapes.polygon(rng.normal(size=(rng.integers(3, 12), 2)), **at, **angle)
    return shapes.half_plane(rng.normal(size=2), rng.normal()) if kind == "half_plane" else random_shape(kind, rng)


def scene(parts, q=UNMOVED):
    """Shapes on a body of their own each, or in the world, none of which meet; a system has a body, which else is not alive."""
    world = [s for s in parts if SHAPES[s["shape"]].is_of_world]
    moving = [[s] for s in parts if not SHAPES[s["shape"]].is_of_world] or None
    is_flat = SHAPES[parts[0]["shape"]].is_planar
    count, more = (len(moving), {}) if moving else (1, {"alive": False})
    q = np.broadcast_to(q, (count, 7))
    if is_flat:
        q = np.stack([q[:, 0], q[:, 1], 2 * np.arctan2(q[:, 6], q[:, 3])], axis=1)
        bodies = nsds.planar_bodies(1.0, 1.0, q=q, v=np.zeros((count, 3)), **more)
    else:
        bodies = nsds.rigid_bodies(1.0, 1.0, q=q, v=np.zeros((count, 6)), count=count, **more)
    moving = moving or (shapes.disk(1e-9) if is_flat else shapes.sphere(1e-9))
    return nsds.system(bodies=bodies, contacts=nsds.collisions({"bodies": moving}, LAW, world=world, pairs=[]))


def aimed(shape, rng, n=12):
    """Rays at a shape and beside it, and some that begin in it."""
    towards = shape["pose"][:3] + rng.normal(size=(n, 3)) * rng.choice([0.1, 0.5, 1.0], size=(n, 1))
    origins = towards + rng.normal(size=(n, 3)) * rng.choice([0.05, 1.0, 5.0], size=(n, 1))
    if shape["shape"] in FLAT:
        origins[:, 2] = towards[:, 2] = 0
    directions = towards - origins
    return origins, directions / np.linalg.norm(directions, axis=1)[:, None]


def gradient(shape, x, step=1e-6):
    """Of the level of a shape, in the world."""
    R = reference_collision.axes(shape)
    x = R.T @ (x - shape["pose"][:3])
    axes = step * np.eye(3)
    slopes = [reference_rays.level(shape, x + axis) - reference_rays.level(shape, x - axis) for axis in axes]
    return R @ slopes / np.linalg.norm(slopes)


@pytest.mark.parametrize("kind", [name for name in SHAPES if name != "mesh"])
@examples(20)
@given(rng=generators)
def test_rays_meet_a_shape_where_its_level_is_zero_and_nowhere_before(kind, rng):
    shape = drawn(kind, rng)
    origins, directions = aimed(shape, rng)
    seen = nsds.rays(scene([shape]), origins, directions * rng.uniform(0.1, 10, size=(12, 1)))
    for x, d, ray in zip(origins, directions, seen, strict=True):
        expected, nearness = reference_rays.first(shape, x, d)
        if nearness < 1e-7:
            continue
        assert np.isclose(ray["distance"], expected, rtol=1e-9, atol=1e-9)
        assert (ray["shape"] >= 0) == np.isfinite(expected)
        if np.isfinite(expected):
            local, _ = reference_rays.in_axes(shape, ray["point"], d)
            assert abs(reference_rays.level(shape, local)) < 1e-12 * (1 + abs(x).max() + expected)
            np.testing.assert_allclose(ray["point"], x + expected * d, atol=1e-8)
            np.testing.assert_allclose(ray["normal"], gradient(shape, ray["point"]), atol=1e-5)
            is_inside = reference_rays.level(shape, reference_rays.in_axes(shape, x, d)[0]) < 0
            assert kind == "tube" or is_inside == (ray["normal"] @ d > 0)  # which is open at its ends


@examples(30)
@given(rng=generators)
def test_a_mesh_is_all_its_triangles(rng):
    """Not convex, of several layers."""
    n = 6
    shape = shapes.height_map(rng.normal(size=(n, n)), [2.0, 2.0], position=rng.normal(size=3), orientation=rng.normal(size=4))
    origins, directions = aimed(shape, rng)
    seen = nsds.rays(scene([shape]), origins, directions)
    for x, d, ray in zip(origins, directions, seen, strict=True):
        expected, nearness = reference_rays.first(shape, x, d)
        assert nearness < 1e-9 or np.isclose(ray["distance"], expected, rtol=1e-9, atol=1e-9)
        if ray["shape"] >= 0:
            R, middle = reference_collision.axes(shape), shape["pose"][:3]
            corners = shape["vertices"][shape["triangles"]] @ R.T + middle
            across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            across /= np.linalg.norm(across, axis=1)[:, None]
            is_on = abs(((ray["point"] - corners[:, 0]) * across).sum(axis=1)) < 1e-9
            assert any(np.allclose(ray["normal"], n, atol=1e-9) for n in across[is_on])


@examples(30)
@given(rng=generators)
def test_a_mesh_and_the_hull_of_its_vertices_are_seen_alike(rng):
    hull = random_shape("convex", rng)
    pose = {"position": hull["pose"][:3], "orientation": hull["pose"][3:]}
    surface = shapes.mesh(hull["vertices"], hull["triangles"], **pose)
    rays = aimed(hull, rng, 40)
    one, other = nsds.rays(scene([hull]), *rays), nsds.rays(scene([surface]), *rays)
    np.testing.assert_array_equal(one["shape"], other["shape"])
    for field in ("distance", "point", "normal"):
        np.testing.assert_allclose(one[field], other[field], atol=1e-8)


@examples(15)
@given(rng=generators, is_flat=st.booleans())
def test_of_many_shapes_the_nearest_is_seen(rng, is_flat):
    kinds = [kind for kind in SHAPES if (kind in FLAT) == is_flat]
    solids = [drawn(kind, rng) for kind in rng.permutation([k for k in kinds if not SHAPES[k].is_of_world] * 2)]
    parts = [*solids, shapes.half_plane(offset=-3.0) if is_flat else shapes.plane(offset=-3.0)]
    origins, directions = aimed(parts[0], rng, 20)
    seen = nsds.rays(scene(parts), origins, directions)
    for x, d, ray in zip(origins, directions, seen, strict=True):
        distances, nearness = np.transpose([reference_rays.first(shape, x, d) for shape in parts])
        if nearness.min() > 1e-7:
            assert np.isclose(ray["distance"], distances.min(), rtol=1e-9, atol=1e-9)
            nearest = distances.argmin() if np.isfinite(distances).any() else -1
            assert ray["shape"] == nearest
            assert ray["body"] == (nearest if nearest < len(solids) else -1)


@pytest.mark.parametrize("kind", SHAPES)
@examples(10)
@given(rng=generators, scale=st.sampled_from([1e-6, 1e-3, 1.0, 1e6]))
def test_a_scene_that_is_turned_moved_and_grown_is_seen_alike(kind, rng, scale):
    shape = drawn(kind, rng)
    origins, directions = aimed(shape, rng, 30)
    turn, shift = Rotation.random(random_state=rng.integers(2**31)), rng.normal(size=3)
    if kind in FLAT:
        turn, shift = Rotation.from_rotvec([0, 0, rng.uniform(-4, 4)]), shift * [1, 1, 0]
    R, before = turn.as_matrix(), nsds.rays(scene([shape]), origins, directions)
    grown = shape | {"size": shape["size"] * scale, "pose": np.concatenate([shape["pose"][:3] * scale, shape["pose"][3:]])}
    if "vertices" in shape:
        grown |= {"size": shape["size"] * [scale, 1, 1], "vertices": shape["vertices"] * scale}
    if SHAPES[kind].is_of_world:
        p = turn * Rotation.from_quat(np.roll(shape["pose"][3:], -1))
        x = scale * (R @ shape["pose"][:3] + shift)
        grown, q = grown | {"pose": np.concatenate([x, np.roll(p.as_quat(), 1)])}, UNMOVED
    else:
        q = np.concatenate([scale * shift, np.roll(turn.as_quat(), 1)])
    after = nsds.rays(scene([grown], q), scale * (origins @ R.T + shift), directions @ R.T)
    assert (before["shape"] == after["shape"]).mean() >= 0.95  # rays that graze may do so on either side
    same = (before["shape"] == after["shape"]) & (before["shape"] >= 0)
    np.testing.assert_allclose(after["distance"][same] / scale, before["distance"][same], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(after["normal"][same], before["normal"][same] @ R.T, atol=1e-5)
    np.testing.assert_allclose(after["point"][same] / scale, before["point"][same] @ R.T + shift, atol=1e-7)


def bumpy(rng, n=60):
    """A closed surface about the origin that is not convex."""
    x = rng.normal(size=(n, 3))
    x /= np.linalg.norm(x, axis=1)[:, None]
    return x * rng.uniform(0.5, 1.0, size=(n, 1)), shapes.convex(x)["triangles"]


def through_edges(vertices, triangles):
    """Vertices, middles of edges, and other points of edges."""
    a, b = vertices[triangles].reshape(-1, 3), vertices[np.roll(triangles, -1, axis=1)].reshape(-1, 3)
    return np.concatenate([vertices, (a + b) / 2, a + (b - a) / 3, a + 1e-9 * (b - a)])


@examples(10)
@given(rng=generators, scale=st.sampled_from([1e-6, 1.0, 1e6]), turned=st.booleans())
def test_closed_surfaces_have_no_gaps_at_vertices_and_edges(rng, scale, turned):
    """From within every ray comes out, and towards the middle every ray comes in, also through an edge or vertex."""
    vertices, triangles = bumpy(rng)
    orientation = rng.normal(size=4) if turned else [1, 0, 0, 0]
    shape = shapes.mesh(scale * vertices, triangles, orientation=orientation)
    targets = scale * through_edges(vertices, triangles) @ reference_collision.axes(shape).T
    system, length = scene([shape]), np.linalg.norm(targets, axis=1)
    out, back = nsds.rays(system, [0, 0, 0], targets), nsds.rays(system, 10 * targets, -targets)
    for seen, distance in ((out, length), (back, 9 * length)):
        assert (seen["shape"] == 0).all()
        np.testing.assert_allclose(seen["distance"], distance, rtol=1e-6)
        assert ((seen["normal"] * targets).sum(axis=1) > 0).all()
    beside = 0.1 * scale * rng.normal(size=3) / 3
    assert (nsds.rays(system, beside, targets - beside)["shape"] == 0).all()


def test_rays_down_the_columns_of_a_grid_meet_it():
    heights = np.random.default_rng(0).integers(0, 3, (9, 9)) / 4
    terrain = shapes.height_map(heights, [8.0, 8.0])
    x, y = np.meshgrid(np.arange(-4, 4.25, 0.25), np.arange(-4, 4.25, 0.25))
    above = np.column_stack([x.ravel(), y.ravel(), np.full(x.size, 5.0)])
    down, up = nsds.rays(scene([terrain]), above, [0, 0, -1]), nsds.rays(scene([terrain]), above * [1, 1, -1], [0, 0, 1])
    assert (down["shape"] == 0).all()
    np.testing.assert_array_equal(down["point"], up["point"])
    at_nodes = (above[:, :2] % 1 == 0).all(axis=1)
    i, j = (above[at_nodes, :2] + 4).astype(int).T
    np.testing.assert_array_equal(down["point"][at_nodes, 2], heights[i, j])
    assert (down["normal"][:, 2] > 0).all()
    assert (up["normal"][:, 2] > 0).all()  # from below: the normal tells from which side


@pytest.mark.parametrize(("shape", "origin", "direction", "distance", "normal"), [
    (shapes.cylinder(0.5, 2.0), [0.2, 0, 3], [0, 0, -1], 2, [0, 0, 1]),
    (shapes.cylinder(0.5, 2.0), [0.5, 0, 3], [0, 0, -1], 2, [0, 0, 1]),  # along its wall
    (shapes.cylinder(0.5, 2.0), [0.5001, 0, 3], [0, 0, -1], np.inf, None),
    (shapes.cylinder(0.5, 2.0), [0, 0, 0], [0, 0, -1], 1, [0, 0, -1]),
    (shapes.capsule(0.5, 2.0), [0, 0, 3], [0, 0, -1], 1.5, [0, 0, 1]),
    (shapes.capsule(0.5, 2.0), [3, 0, 1], [-1, 0, 0], 2.5, [1, 0, 0]),
    (shapes.cone(1.0, 4.0), [0, 0, 5], [0, 0, -1], 2, [0, 0, 1]),  # at the tip
    (shapes.cone(1.0, 4.0), [0.5, 0, -5], [0, 0, 1], 4, [0, 0, -1]),
    (shapes.cone(1.0, 4.0), [0.5, 0, 5], [0, 0, -1], 4, np.array([4, 0, 1]) / np.sqrt(17)),
    (shapes.cone(1.0, 4.0), [0, 0, -0.5], [0, 0, 1], 3.5, [0, 0, 1]),
    (shapes.cone(1.0, 4.0), [0, 0, 5], [0, 0, 1], np.inf, None),  # away from the tip, where the other half would be
    (shapes.cone(1.0, 4.0), [-5, 0, 8.1], [1, 0, -1], np.inf, None),  # through that, and past the cone
    (shapes.cone(1.0, 4.0), [1, 0, 3], [-1, 0, -4], np.sqrt(17) / 2, np.array([4, 0, 1]) / np.sqrt(17)),  # parallel to a line of its side
    (shapes.cone(1.0, 4.0), [-1, 0, 5], [1, 0, -4], 0.75 * np.sqrt(17), np.array([-4, 0, 1]) / np.sqrt(17)),
    (shapes.cone(1.0, 4.0), [0, 0, 3.5], [1, 0, -4], np.inf, None),
    (shapes.box([2, 2, 2]), [3, 1, 0], [-1, 0, 0], 2, [1, 0, 0]),  # in the plane of a face
    (shapes.box([2, 2, 2]), [3, 1.0000001, 0], [-1, 0, 0], np.inf, None),
    (shapes.box([2, 2, 2]), [3, 3, 3], [-1, -1, -1], 2 * np.sqrt(3), None),  # at a vertex
    (shapes.sphere(1.0), [3, 1, 0], [-1, 0, 0], 3, [0, 1, 0]),  # a tangent
    (shapes.sphere(1.0), [0, 0, 0], [0, 2, 0], 1, [0, 1, 0]),
    (shapes.sphere(1.0), [3, 0, 0], [1, 0, 0], np.inf, None),
    (shapes.plane(), [1e6, 0, 2], [0, 0, -1], 2, [0, 0, 1]),
    (shapes.plane(), [0, 0, 2], [1, 0, 0], np.inf, None),
    (shapes.plane(), [0, 0, -2], [1, 0, 0], np.inf, None),
    (shapes.plane(), [0, 0, -2], [0, 0, 1], 2, [0, 0, 1]),
    (shapes.tube(1.0, 4.0), [0, 0, 0], [1, 0, 0], 1, [-1, 0, 0]),
    (shapes.tube(1.0, 4.0), [5, 0, 0], [-1, 0, 0], 4, [-1, 0, 0]),
    (shapes.tube(1.0, 4.0), [0, 0, 5], [0, 0, -1], np.inf, None),
    (shapes.tube(1.0, 4.0), [-1.5, 0, 3.5], [1, 0, -1], 2.5 * np.sqrt(2), [-1, 0, 0]),  # in at its open end
    (shapes.tube(1.0), [0, 0, 1e3], [1, 0, 0], 1, [-1, 0, 0]),
    (shapes.disk(1.0), [3, 0, 0], [-1, 0, 0], 2, [1, 0, 0]),
    (shapes.stadium(0.5, 2.0), [0, 3, 0], [0, -1, 0], 2.5, [0, 1, 0]),
    (shapes.stadium(0.5, 2.0), [9, 0, 0], [-1, 0, 0], 7.5, [1, 0, 0]),
    (shapes.rectangle([2.0, 4.0]), [3, 0, 0], [-1, 0, 0], 2, [1, 0, 0]),
    (shapes.half_plane(), [3, 1, 0], [0, -2, 0], 1, [0, 1, 0]),
])  # fmt: skip
def test_rays_along_faces_axes_and_tangents(shape, origin, direction, distance, normal):
    seen = nsds.rays(scene([shape]), origin, direction)[0]
    assert np.isclose(seen["distance"], distance, rtol=1e-14)
    if normal is not None:
        np.testing.assert_allclose(seen["normal"], normal, atol=1e-12)


def test_rounding_is_that_of_the_way_to_a_shape_and_not_of_its_square():
    ball = shapes.sphere(1e-3, position=[1e6, 0, 0])
    seen = nsds.rays(scene([ball]), [[0, 0, 0], [0, 5e-4, 0], [0, 1.001e-3, 0]], [[1, 0, 0]])
    assert seen["shape"].tolist() == [0, 0, -1]
    np.testing.assert_allclose(np.linalg.norm(seen["point"][:2] - [1e6, 0, 0], axis=1), 1e-3, atol=2e-10)
    np.testing.assert_allclose(seen["normal"][1], [-np.sqrt(0.75), 0.5, 0], atol=1e-6)


def rows_of_balls(alive=None, enabled=None):
    """Three balls on a line, in two parts, over a plane of another part of collisions."""
    q = np.column_stack([[1.0, 2.0], np.zeros(2), np.ones(2), np.tile(UNMOVED[3:], (2, 1))])
    ball = shapes.sphere(0.1)
    return nsds.system(
        near=nsds.rigid_bodies(1.0, 1.0, q=q, v=np.zeros((2, 6)), count=2, alive=alive),
        far=nsds.rigid_bodies(1.0, 1.0, q=[3, 0, 1, 1, 0, 0, 0], v=[0] * 6),
        contacts=nsds.collisions({"far": ball, "near": ball}, LAW, world=shapes.plane([-1, 0, 0], -4.0), enabled=enabled),
        ground=nsds.collisions({"far": shapes.sphere(0.5)}, LAW, world=shapes.plane()),
    )


def seen_first(system, **options):
    """(part, shape, body, distance) along x."""
    return tuple(nsds.rays(system, [0, 0, 1], [1, 0, 0], **options)[0].tolist()[:4])


def test_what_is_not_there_is_not_seen():
    """Shapes of collisions are counted in the order of its parts, bodies in that of the system."""
    assert seen_first(rows_of_balls()) == (0, 1, 0, 0.9)
    assert seen_first(rows_of_balls(alive=[False, True])) == (0, 2, 1, 1.9)
    assert seen_first(rows_of_balls(enabled=[1, 0, 1, 1])) == (0, 2, 1, 1.9)
    assert seen_first(rows_of_balls(alive=[False, False])) == (1, 0, 2, 2.5)
    assert seen_first(rows_of_balls(alive=[False, False]), name="contacts") == (0, 0, 2, 2.9)
    assert seen_first(rows_of_balls(enabled=[0, 0, 0, 1]), name="contacts") == (0, 3, -1, 4.0)
    assert seen_first(rows_of_balls(), name="ground") == (1, 0, 2, 2.5)


def test_what_is_ignored_is_not_seen():
    system = rows_of_balls()
    assert seen_first(system, ignore="near") == (1, 0, 2, 2.5)
    assert seen_first(system, ignore=0) == (0, 2, 1, 1.9)
    assert seen_first(system, ignore=["far", 0, 1]) == (0, 3, -1, 4.0)
    assert seen_first(system, ignore=("far", "near", "world")) == (-1, -1, -1, np.inf)


def test_reach_ends_rays_and_counts_the_end():
    system = rows_of_balls()
    assert seen_first(system, reach=0.9)[3] == 0.9
    assert seen_first(system, reach=np.nextafter(0.9, 0)) == (-1, -1, -1, np.inf)
    missed = nsds.rays(system, [0, 0, 1], [1, 0, 0], reach=0.0)
    assert np.isnan(missed["point"]).all()
    assert np.isnan(missed["normal"]).all()


def test_members_of_an_ensemble_have_rays_of_their_own_or_the_same():
    one, other = rows_of_balls(), rows_of_balls()
    other["near"]["q"][0, 0] = 0.5
    origins, directions = [[0, 0, 1], [1, 0, 5]], [[1, 0, 0], [0, 0, -1]]
    both = np.stack([one, other])
    seen = nsds.rays(both, origins, directions)
    own = nsds.rays(both, [origins, origins[::-1]], [directions, directions[::-1]])
    assert seen.shape == own.shape == (2, 2)
    for member, system in enumerate((one, other)):
        alone = nsds.rays(system, origins, directions)
        assert seen[member].tobytes() == alone.tobytes()
        assert own[member, :: 1 - 2 * member].tobytes() == alone.tobytes()
    assert seen["distance"].tolist() == [[0.9, 3.9], [0.4, 5.0]]
    assert nsds.rays(one, np.zeros((0, 3)), [1, 0, 0]).shape == (0,)


def test_rays_see_a_scene_as_it_was():
    system = nsds.examples.sliding_ball()
    trajectory = nsds.simulate(system, t_end=0.1, h=5e-3)
    row = nsds.restart(system, trajectory[-1])
    place = trajectory[-1]["ball"]["q"][:3]
    seen = nsds.rays(row, place + np.array([0, 0, 1]), [0, 0, -1])[0]
    assert seen["body"] == 0
    assert np.isclose(seen["distance"], 1 - 0.028575)


def test_what_is_bad_is_refused():
    system, flat = rows_of_balls(), scene([shapes.disk(1.0)])
    ball = nsds.system(ball=nsds.rigid_bodies(1.0, 1.0, q=UNMOVED, v=[0] * 6))
    ways = [[1, 0, 0], [0, 0, 0]]
    mixed = nsds.system(
        body=nsds.rigid_bodies(1.0, 1.0, q=UNMOVED, v=[0] * 6), disk=nsds.planar_bodies(1.0, 1.0, q=[3, 0, 0], v=[0] * 3),
        a=nsds.collisions({"body": shapes.sphere(1.0)}, LAW), b=nsds.collisions({"disk": shapes.disk(1.0)}, LAW),
    )  # fmt: skip
    for record, arguments, options, message in [
        (ball, ([0, 0, 0], [1, 0, 0]), {}, "rays: the system must have a part of nsds.collisions, got ball"),
        (system, (np.zeros((2, 3)), ways), {}, r"rays: directions must not be zero, got \[0, 0, 0\] at index 1"),
        (system, ([0, 0, np.nan], [1, 0, 0]), {}, "rays: origins must be finite, got nan"),
        (system, (np.zeros((2, 3)), np.ones((3, 3))), {}, "rays: directions must be as many as origins, 2, or one, got 3"),
        (system, ([0, 0], [1, 0]), {}, r"rays: origins must have shape \(n, 3\), got \(2,\)"),
        (np.stack([system] * 2), (np.zeros((3, 4, 3)), [1, 0, 0]), {}, r"shape \(n, 3\) or \(\*members, n, 3\), got \(3, 4, 3\)"),
        (system, ([0, 0, 0], [1, 0, 0]), {"name": "near"}, "name must be a part of nsds.collisions, contacts, ground, got 'near'"),
        (
            system,
            ([0, 0, 0], [1, 0, 0]),
            {"ignore": "wall"},
            "ignore must be names of parts of bodies, near, far, or 'world'.* 'wall'",
        ),
        (system, ([0, 0, 0], [1, 0, 0]), {"ignore": [3]}, "ignore must be .* 0 to 2, got 3"),
        (mixed, ([0, 0, 0], [1, 0, 0]), {}, "name must choose between shapes in the plane, 'b', and in space, 'a'"),
        (flat, ([0, 0, 1], [1, 0, 0]), {}, "origins must lie in the plane z = 0 of the shapes, got z = 1"),
        (flat, ([0, 0], [1, 0, 1e-9]), {}, "directions must lie in the plane z = 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            nsds.rays(record, *arguments, **options)
    assert nsds.rays(flat, [3, 0], [[-1, 0]])["distance"] == 2
    assert nsds.rays(mixed, [-9, 0], [1, 0], name="b")["body"] == 1
