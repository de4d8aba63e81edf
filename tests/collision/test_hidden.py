"""Contacts that a neighbouring face or body hides: those of shapes that abut are those of one surface."""

import numpy as np
import pytest

import nsds
from nsds.collision import kinds
from nsds.collision.hidden import support
from nsds.maths.rotations import turned
from nsds.model import shapes

TILE = [0.5, 2.0, 0.2]
UPRIGHT = [1.0, 0, 0, 0]


def normals_at_the_start(body, world, at):
    """Normals (n, 3) of the contacts with each shape of the world, and the record's gaps."""
    system = nsds.system(
        body=nsds.rigid_bodies(1.0, np.eye(3), q=[*at, *UPRIGHT], v=np.zeros(6)),
        contacts=nsds.collisions({"body": body}, nsds.newton_impact(0.0), world=world, margin=1e-3),
    )
    found = nsds.simulate(system, t_end=1e-3, h=1e-3, scheme=nsds.moreau_jean(), progress=False)["contacts"][0]
    n = found["n"]
    return {int(b): found["normal"][:n][found["b"][:n] == b] for b in found["b"][:n]}


def points_of(shape):
    """Points among which is the farthest of a shape in any direction, to 1e-3 of its size."""
    name, (x, y, z) = shape["shape"], shape["size"]
    u = np.random.default_rng(0).normal(size=(20000, 3))
    u /= np.linalg.norm(u, axis=1)[:, None]
    around = u[:, :2] / np.linalg.norm(u[:, :2], axis=1)[:, None]
    if name in ("convex", "mesh", "polygon"):
        return shape["vertices"]
    if name == "box":
        return np.array(np.meshgrid([-x, x], [-y, y], [-z, z])).reshape(3, -1).T / 2
    if name in ("sphere", "disk"):
        return x * u
    if name == "capsule":
        return x * u + np.sign(u[:, 2:]) * [0, 0, y / 2]
    if name == "cylinder":
        return np.column_stack([x * around, np.sign(u[:, 2]) * y / 2])
    if name == "cone":
        return np.vstack([np.column_stack([x * around, np.full(len(u), -y / 4)]), [[0, 0, 0.75 * y]]])
    assert name == "stadium"
    return y * u + np.sign(u[:, :1]) * [x - y, 0, 0]


SOLIDS = {
    "sphere": shapes.sphere(0.3), "capsule": shapes.capsule(0.2, 0.5), "cylinder": shapes.cylinder(0.3, 0.8), "box": shapes.box([1, 2, 3]),
    "cone": shapes.cone(0.4, 0.9), "convex": shapes.convex(np.random.default_rng(2).normal(size=(12, 3))), "disk": shapes.disk(0.3),
    "stadium": shapes.stadium(0.2, 0.7), "polygon": shapes.polygon([[0, 0], [2, 0], [1, 1]]),
}  # fmt: skip


@pytest.mark.parametrize("name", [k for k, row in kinds.SHAPES.items() if not (row.is_of_world or row.is_endless or k == "mesh")])
def test_the_support_of_a_shape_is_its_farthest_point(name):
    shape, rng = SOLIDS[name], np.random.default_rng(1)
    is_flat = kinds.SHAPES[name].is_planar
    code, size = np.array([kinds.NAMES.index(name)]), np.array(shape["size"], float)
    if "vertices" in shape:
        size[1:] = 0, len(shape["vertices"])
    vertices = np.array(shape.get("vertices", np.zeros((0, 3))))
    for _ in range(20):
        p, x, d = rng.normal(size=4), rng.normal(size=3), rng.normal(size=3)
        if is_flat:
            p[1:3] = x[2] = d[2] = 0.0
        p, d = p / np.linalg.norm(p), d / np.linalg.norm(d)
        got = support(code, size, np.array([*x, *p]), vertices.ravel(), 0, d)
        points = x + turned(np.broadcast_to(p, (len(points_of(shape)), 4)), points_of(shape))
        most = (points @ d).max()
        assert most - 1e-12 <= got <= most + 2e-3 * np.ptp(points, axis=0).max()


def test_what_has_no_end_has_none_but_across():
    plane = np.array([kinds.PLANE]), np.zeros(3), np.array([1.0, 2, 3, *UPRIGHT]), np.zeros(0), 0
    assert support(*plane, np.array([0.0, 0, 1])) == 3.0
    assert support(*plane, np.array([0.0, 0.6, 0.8])) == np.inf


@pytest.mark.parametrize("rise", [0.0, -1e-7, -1e-4, -1e-3])
def test_the_side_of_a_tile_behind_another_one_is_no_surface(rise):
    """A box on one tile whose front edge is just before the next one, which is flush or lower: normals are upwards alone."""
    world = [shapes.box(TILE, position=[0, 0, -0.1]), shapes.box(TILE, position=[0.5, 0, -0.1 + rise])]
    found = normals_at_the_start(shapes.box([0.3, 0.2, 0.1]), world, [0.25 - 0.15 - 5e-4, 0.1, 0.05 - 1e-9])
    assert len(found[1]) == 4
    for normals in found.values():
        np.testing.assert_allclose(normals, [[0, 0, 1]] * len(normals), rtol=0, atol=1e-12)


@pytest.mark.parametrize("rise", [1e-4, 1e-3, 1e-2])
def test_the_side_of_a_tile_that_is_higher_is_one(rise):
    world = [shapes.box(TILE, position=[0, 0, -0.1]), shapes.box(TILE, position=[0.5, 0, -0.1 + rise])]
    found = normals_at_the_start(shapes.box([0.3, 0.2, 0.1]), world, [0.25 - 0.15 - 1e-6, 0.1, 0.05])
    np.testing.assert_allclose(found[2], [[-1, 0, 0]] * len(found[2]), rtol=0, atol=1e-12)
    assert len(found[1]) == 4
    assert len(found[2]) >= 2


def test_walls_and_floor_of_a_corner_all_hold():
    """A box in the corner of three boxes, which hide parts of each other's sides, not the corner."""
    world = [
        shapes.box([2, 2, 0.2], position=[0, 0, -0.1]),
        shapes.box([0.2, 2, 2], position=[-0.1, 0, 1]),
        shapes.box([2, 0.2, 2], position=[1, -1.1, 1]),
    ]
    found = normals_at_the_start(shapes.box([0.2, 0.2, 0.2]), world, [0.1, -0.9, 0.1])
    assert [len(found[b]) for b in (1, 2, 3)] == [4, 4, 4]


def test_a_ball_in_a_groove_is_held_by_both_edges():
    world = [shapes.box([1, 1, 0.2], position=[side * 0.505, 0, -0.1]) for side in (-1, 1)]
    r = 0.1
    found = normals_at_the_start(shapes.sphere(r), world, [0, 0, np.sqrt(r**2 - 0.005**2)])
    np.testing.assert_allclose(found[1][0], [0.05, 0, np.sqrt(1 - 0.05**2)], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found[2][0], [-0.05, 0, np.sqrt(1 - 0.05**2)], rtol=0, atol=1e-9)


def test_a_box_that_rests_on_two_flush_tiles_is_held_by_both():
    world = [shapes.box(TILE, position=[side * 0.25, 0, -0.1]) for side in (-1, 1)]
    found = normals_at_the_start(shapes.box([0.3, 0.2, 0.1]), world, [0, 0, 0.05])
    assert len(found[1]) == len(found[2]) == 4


def test_a_body_of_two_boxes_that_abut_slides_over_a_post():
    """The post is under the first box and before the second one, whose side at the seam is no surface."""
    both = [shapes.box([0.2, 0.2, 0.1], position=[side * 0.1, 0, 0]) for side in (-1, 1)]
    system = nsds.system(
        body=nsds.rigid_bodies(1.0, np.eye(3), q=[0, 0, 0.05, *UPRIGHT], v=[0, 0, 0, 0, 0, 0]),
        contacts=nsds.collisions(
            {"body": both}, nsds.newton_impact(0.0), world=shapes.box([0.05, 0.3, 0.2], position=[-0.0255, 0, -0.1]), margin=1e-3
        ),
    )
    found = nsds.simulate(system, t_end=1e-3, h=1e-3, scheme=nsds.moreau_jean(), progress=False)["contacts"][0]
    normals = found["normal"][: found["n"]]
    np.testing.assert_allclose(normals, [[0, 0, 1]] * len(normals), rtol=0, atol=1e-12)
    assert set(found["a"][: found["n"]]) == {0}


@pytest.mark.parametrize("slope", [1e-2, 2e-2, 4e-2])
def test_a_box_on_one_side_of_a_gentle_ridge_is_held_at_its_corners_too(slope):
    """The ridge parts both shapes, and yet it hides nothing of what goes on in nearly its plane, or the box tilts into it."""
    vertices = [[x, y, -slope * abs(x)] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 1.0)]
    ridge = shapes.mesh(vertices, [[0, 2, 3], [0, 3, 1], [2, 4, 5], [2, 5, 3]])
    half = 0.5 * np.arctan(0.99 * slope)
    system = nsds.system(
        body=nsds.rigid_bodies(1.0, np.eye(3), q=[0, 0, 0.05 - 1e-6, np.cos(half), 0, np.sin(half), 0], v=np.zeros(6)),
        contacts=nsds.collisions({"body": shapes.box([0.3, 0.2, 0.1])}, nsds.newton_impact(0.0), world=ridge, margin=1e-3),
    )
    found = nsds.simulate(system, t_end=1e-3, h=1e-3, scheme=nsds.moreau_jean(), progress=False)["contacts"][0]
    assert np.count_nonzero(found["point"][: found["n"], 0] > 0.14) == 2
