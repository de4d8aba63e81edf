"""Contacts of pairs: distances, normals and points as they are defined, against optimisation over the points of both shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from nsds import collision
from nsds._jit import kernel
from nsds.collision import COMPILED, NAMES, SUPPORTED, narrow
from nsds.collision.frames import FIELDS, MOST, turn_round
from nsds.collision.general import GeneralPairs
from nsds.collision.groups import mask_of
from nsds.collision.kinds import BOX, PLANAR, SPHERE
from nsds.collision.spheres import sphere_box
from nsds.model import shapes
from tests import reference_collision as twin
from tests.strategies import examples, generators

PAIRS = sorted(tuple(NAMES[k] for k in pair) for pair in COMPILED if not set(pair) & set(PLANAR))  # in the plane: test_planar.py
BOUNDED = [pair for pair in PAIRS if set(pair) <= set(twin.CORES)]


class Found:
    """Contacts that `detect` finds between shapes, one on each body: arrays a, b, feature, normal, point, gap."""

    def __init__(self, parts, reach, body=None, detect=collision.detect, capacity=64):
        ns = len(parts)
        kind = np.array([NAMES.index(s["shape"]) for s in parts])
        size, pose = np.array([s["size"] for s in parts]), np.concatenate([s["pose"] for s in parts])
        vertices, triangles = np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64)
        for s, row in zip(parts, size, strict=True):
            if "vertices" in s:
                row[1] = len(vertices)
                triangles = np.concatenate([triangles, s["triangles"] + len(vertices)])
                vertices = np.concatenate([vertices, s["vertices"]])
        general = GeneralPairs(kind, size, vertices, triangles, {(k, l) for k in kind.tolist() for l in kind.tolist() if k <= l})
        body = np.arange(ns) if body is None else np.array(body)
        reaches, groups, all_meet = np.full(ns, reach / 2), np.zeros(ns, np.int64), mask_of(np.ones((1, 1), bool))
        floats, ints = collision.work_size(ns)
        keys, reals = np.empty((3, capacity), dtype=np.int64), [np.empty(3 * capacity), np.empty(3 * capacity), np.empty(capacity)]
        work = np.full(floats, np.nan), np.full(ints, -7)
        placed, out = collision.Shapes(kind, size.ravel(), pose, body, reaches, groups, all_meet), collision.Contacts(*keys, *reals)
        n = detect(placed, vertices.ravel(), general.address, out, *work)
        assert n <= capacity
        self.a, self.b, self.feature = keys[:, :n]
        self.normal, self.point, self.gap = reals[0][: 3 * n].reshape(n, 3), reals[1][: 3 * n].reshape(n, 3), reals[2][:n]
        self.other = self.point - self.gap[:, None] * self.normal

    def __len__(self):
        return len(self.gap)


def random_shape(kind, rng):
    """A shape of about unit size at a random pose."""
    at = {"position": rng.normal(size=3), "orientation": rng.normal(size=4)}
    radius, length = rng.uniform(0.2, 1.0, size=2)
    if kind == "sphere":
        return shapes.sphere(radius, position=at["position"])
    if kind == "plane":
        return shapes.plane(rng.normal(size=3), rng.normal())
    if kind == "tube":
        return shapes.tube(rng.uniform(1.0, 2.0), 3.0 if rng.random() < 0.5 else None, **at)
    if kind == "box":
        return shapes.box(rng.uniform(0.3, 2.0, size=3), **at)
    if kind in ("convex", "mesh"):
        hull = shapes.convex(0.5 * rng.normal(size=(rng.integers(5, 20), 3)), **at)
        return hull if kind == "convex" else shapes.mesh(hull["vertices"], hull["triangles"], **at)
    return getattr(shapes, kind)(radius, length, **at)


def near(pair, rng, low=0.0, high=0.3):
    """A random pair whose distance is about within [low, high]: the first is moved along a random line until it is."""
    a, b = (random_shape(kind, rng) for kind in pair)
    wanted, direction = rng.uniform(low, high), rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    if pair[1] == "plane":
        direction = twin.axes(b)[:, 2]
    if pair[1] == "tube":
        inside = twin.axes(b) @ [*(direction[:2] / np.linalg.norm(direction[:2])), 0]
        x = b["pose"][:3] + (b["size"][0] - a["size"][0] - wanted) * inside + rng.uniform(-1.4, 1.4) * twin.axes(b)[:, 2]
        return a | {"pose": np.concatenate([x, a["pose"][3:]])}, b
    step, x = 8.0, b["pose"][:3] - 8.0 * direction if pair[1] == "plane" else b["pose"][:3]
    for _ in range(20):
        trial = a | {"pose": np.concatenate([x + step * direction, a["pose"][3:]])}
        if twin.distance(trial, b) >= wanted:
            a, step = trial, step
        else:
            x = x + step * direction
        step /= 2
    return a, b


def box_like(pair, rng):
    """As `near`; half of the boxes and capsules are turned alike, which is where faces and edges meet."""
    a, b = near(pair, rng)
    if rng.random() < 0.5:
        turn = Rotation.from_rotvec(rng.choice([0.0, 1e-9, 1e-3, 0.1]) * rng.normal(size=3)).as_matrix()
        quarter = Rotation.from_euler("xyz", rng.integers(0, 4, size=3) * 90, degrees=True).as_matrix()
        p = np.roll(Rotation.from_matrix(turn @ twin.axes(b) @ quarter).as_quat(), 1)
        a = a | {"pose": np.concatenate([a["pose"][:3], p])}
    return a, b


def check_geometry(found, a, b, tolerance=1e-9):
    """Normals have length 1 and point to a; points lie on the surfaces, a gap apart, or within a capsule on a ball along its axis."""
    assert np.allclose(np.linalg.norm(found.normal, axis=1), 1, atol=1e-12)
    for shape, points in ((a, found.point), (b, found.other)):
        outside = np.array([twin.signed_distance(shape, x) for x in points])
        if shape["shape"] == "capsule":
            assert (outside < tolerance).all()
            assert abs(outside[found.gap.argmin()]) < tolerance
        else:
            assert np.allclose(outside, 0, atol=tolerance)
    assert (np.diff(found.feature) > 0).all()


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@examples(25)
@given(rng=generators)
def test_gap_is_the_distance_of_shapes_that_are_apart(pair, rng):
    a, b = box_like(pair, rng) if set(pair) <= {"box", "capsule"} else near(pair, rng)
    distance = twin.distance(a, b)
    for reach in (0.3, 0.1):
        found = Found([a, b], reach)
        if 1e-6 < distance < reach - 1e-9:
            assert np.isclose(found.gap.min(), distance, atol=1e-8)
            check_geometry(found, a, b)
        elif distance > reach + 1e-9:
            assert len(found) == 0


@pytest.mark.parametrize("pair", [p for p in PAIRS if p != ("box", "box")], ids="-".join)
@examples(25)
@given(rng=generators)
def test_gap_is_the_distance_of_shapes_that_overlap_a_little(pair, rng):
    """As long as the axes of capsules and the centres of spheres stay outside of the other shape."""
    a, b = near(pair, rng, low=-0.1, high=0.0)
    distance = twin.distance(a, b)
    found = Found([a, b], 0.01)
    if distance < 0.01:
        assert np.isclose(found.gap.min(), distance, atol=1e-8)
        check_geometry(found, a, b)


@examples(40)
@given(rng=generators)
def test_a_sphere_near_a_cylinder_is_as_far_as_its_closest_point(rng):
    a, b = near(("sphere", "cylinder"), rng)
    found = Found([a, b], 0.4)
    if twin.distance(a, b) > -0.1:
        assert np.isclose(found.gap.min(), twin.distance_to_cylinder(b, a["pose"][:3]) - a["size"][0], atol=1e-6)


@examples(100)
@given(rng=generators, depth=st.floats(0.001, 0.2))
def test_overlapping_boxes_part_along_an_axis_of_about_the_least_overlap(rng, depth):
    a, b = box_like(("box", "box"), rng)
    n = a["pose"][:3] - b["pose"][:3]
    a = a | {"pose": a["pose"] - np.concatenate([(depth + 0.3) * n / np.linalg.norm(n), np.zeros(4)])}
    least, found = twin.least_overlap(a, b), Found([a, b], 0.01)
    if least > 1e-9:
        smallest = min(a["size"].min(), b["size"].min()) / 2
        assert len(found) > 0
        assert (found.gap < 0).any() or len(found) == 1
        across = twin.overlap(a, b, found.normal[0])
        assert across <= least + 0.021 * smallest
        assert found.gap.min() >= -across - 1e-9
        assert all(abs(twin.signed_distance(a, x)) < 1e-9 for x in found.point) or len(found) == 1


@pytest.mark.parametrize("pair", [("sphere", "box"), ("sphere", "cylinder"), ("capsule", "box"), ("capsule", "capsule")], ids="-".join)
@examples(60)
@given(rng=generators)
def test_a_shape_deep_in_another_leaves_by_the_gap_along_the_normal(pair, rng):
    a, b = (random_shape(kind, rng) for kind in pair)
    a = a | {"pose": np.concatenate([b["pose"][:3] + 0.1 * rng.normal(size=3), a["pose"][3:]])}
    found = Found([a, b], 0.0)
    assert len(found) > 0
    k = found.gap.argmin()
    assert found.gap[k] < 0
    a = a | {"pose": a["pose"] + np.concatenate([(1e-6 - found.gap[k]) * found.normal[k], np.zeros(4)])}
    outside = twin.distance(a, b)
    if pair[0] == "sphere":
        assert outside >= 0
    else:  # an axis that cuts the other shape leaves by one way of several that are about as short
        assert outside > 0.2 * found.gap[k]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@examples(15)
@given(rng=generators)
def test_contacts_move_with_the_shapes(pair, rng):
    a, b = near(pair, rng, low=-0.1, high=0.1)
    rotation, translation = Rotation.random(random_state=rng.integers(2**31)).as_matrix(), rng.normal(size=3)
    before = Found([a, b], 0.2)
    after = Found([twin.moved(a, rotation, translation), twin.moved(b, rotation, translation)], 0.2)
    assert (before.feature == after.feature).all()
    assert np.allclose(before.gap, after.gap, atol=1e-9)
    assert np.allclose(before.normal @ rotation.T, after.normal, atol=1e-7)
    assert np.allclose(before.point @ rotation.T + translation, after.point, atol=1e-7)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@examples(15)
@given(rng=generators)
def test_the_other_order_turns_normals_round_and_moves_points_across(pair, rng):
    a, b = near(pair, rng, low=0.0, high=0.1)
    one, other = Found([a, b], 0.2), Found([b, a], 0.2)
    assert np.isclose(one.gap.min(), other.gap.min(), atol=1e-9)
    if pair[0] != pair[1]:
        assert np.allclose(one.normal, -other.normal)
        assert np.allclose(one.other, other.point)
        assert np.allclose(one.gap, other.gap)
    fixed = Found([b, a], 0.2, body=[-1, 0])  # what is fixed comes second
    assert (fixed.a == 1).all()
    assert (fixed.b == 0).all()
    assert np.allclose(fixed.gap, one.gap)


@kernel
def box_sphere(size, pose, a, b, margin, found):
    """`sphere_box` as it would be written with the box first: a turned round."""
    n = sphere_box(size, pose, b, a, margin, found)
    turn_round(found, n)
    return n


TURNED = narrow._with((BOX, SPHERE), box_sphere, narrow._in_order)


@examples(25)
@given(rng=generators)
def test_a_kernel_may_have_either_kind_first(rng):
    a, b = near(("sphere", "box"), rng, low=-0.1, high=0.1)
    size, pose, none = np.concatenate([a["size"], b["size"]]), np.concatenate([a["pose"], b["pose"]]), np.zeros(0)
    one, other = np.zeros((2, MOST * FIELDS))
    n = TURNED(np.array([SPHERE, BOX]), size, pose, (0, none, 0), 0, 1, 0.2, one)
    assert n == sphere_box(size, pose, 0, 1, 0.2, other) == 1
    np.testing.assert_allclose(one, other, atol=1e-14)


class TestKnownContacts:
    def test_a_sphere_in_the_centre_of_another(self):
        found = Found([shapes.sphere(1), shapes.sphere(2)], 0)
        assert found.gap == [-3]
        assert (found.normal == [0, 0, 1]).all()

    def test_a_box_flat_on_a_plane_stands_on_four_vertices(self):
        found = Found([shapes.box([1, 2, 3], position=[0, 0, 1.5]), shapes.plane()], 0.01)
        assert found.feature.tolist() == [0, 1, 2, 3]
        assert np.allclose(found.gap, 0)
        assert np.allclose(found.point[:, 2], 0)

    @pytest.mark.parametrize("gap", [-0.01, 0.0, 0.01])
    def test_a_box_on_a_box_has_the_four_corners_of_the_smaller(self, gap):
        found = Found([shapes.box([1, 1, 1], position=[0.1, 0, 1 + gap]), shapes.box([2, 2, 1])], 0.02)
        assert len(found) == 4
        assert np.allclose(found.gap, gap)
        assert np.allclose(found.normal, [0, 0, 1])
        assert np.allclose(np.sort(found.point[:, 0]), [-0.4, -0.4, 0.6, 0.6])

    def test_a_box_on_a_box_of_the_same_size_turned_by_an_eighth_has_eight_corners(self):
        turned = [np.cos(np.pi / 8), 0, 0, np.sin(np.pi / 8)]
        found = Found([shapes.box([1, 1, 1], position=[0, 0, 1.01], orientation=turned), shapes.box([1, 1, 1])], 0.02)
        assert len(found) == 8
        assert np.allclose(np.hypot(*found.point[:, :2].T), 0.5 / np.cos(np.pi / 8))

    @examples(30)
    @given(rng=generators)
    def test_features_of_resting_boxes_do_not_change_when_they_shake(self, rng):
        lower = shapes.box([1, 1, 1])
        x = np.array([*rng.uniform(0.05, 0.4, size=2), 1.0])
        first = Found([lower, shapes.box([1, 1, 1], position=x)], 0.02)
        for _ in range(10):
            p = np.array([1, *(1e-4 * rng.normal(size=3))])
            again = Found([lower, shapes.box([1, 1, 1], position=x + 1e-4 * rng.normal(size=3), orientation=p)], 0.02)
            assert again.feature.tolist() == first.feature.tolist()
        assert len(first) == 4

    def test_crossed_edges_have_one_contact(self):
        eighth = [np.cos(np.pi / 8), np.sin(np.pi / 8), 0, 0]
        other = [np.cos(np.pi / 8), 0, np.sin(np.pi / 8), 0]
        height = np.sqrt(2) + 0.01
        found = Found([shapes.box([2, 1, 1], orientation=eighth), shapes.box([1, 2, 1], position=[0, 0, height], orientation=other)], 0.1)
        assert len(found) == 1
        assert np.allclose(found.gap, 0.01)
        assert np.allclose(found.normal, [0, 0, -1])
        assert np.allclose(found.point, [0, 0, np.sqrt(0.5)])

    def test_corners_that_pass_each_other_are_as_far_as_they_are(self):
        found = Found([shapes.box([1, 1, 1]), shapes.box([1, 1, 1], position=[1.03, 1.04, 1.12])], 0.2)
        assert np.allclose(found.gap, [0.13])
        assert np.allclose(found.normal, -np.array([[3, 4, 12]]) / 13)

    def test_a_capsule_lies_on_a_box_with_two_contacts(self):
        lying = [np.sqrt(0.5), 0, np.sqrt(0.5), 0]
        found = Found([shapes.capsule(0.1, 1.0, position=[0.3, 0, 0.6], orientation=lying), shapes.box([1, 1, 1])], 0.01)
        assert found.feature.tolist() == [1, 2]
        assert np.allclose(np.sort(found.point[:, 0]), [-0.2, 0.5])
        assert np.allclose(found.gap, 0)

    @pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 2])
    def test_a_capsule_along_an_edge_has_two_contacts(self, angle):
        """At angle 0 and at a quarter turn the axis is above the border of a face, beyond it or within it by rounding."""
        rng, place = np.random.default_rng(1), np.array([0, 0.5, 0.5]) + 0.1 * np.array([0, np.sin(angle), np.cos(angle)])
        for _ in range(20):
            turn = Rotation.random(random_state=rng)
            whole, along = (each.as_quat(scalar_first=True) for each in (turn, turn * Rotation.from_rotvec([0, np.pi / 2, 0])))
            lying = shapes.capsule(0.1, 0.6, position=turn.apply(place), orientation=along)
            found = Found([lying, shapes.box([1, 1, 1], orientation=whole)], 0.01)
            assert len(found) == 2
            np.testing.assert_allclose(np.sort(turn.inv().apply(found.other)[:, 0]), [-0.3, 0.3], atol=1e-12)
            np.testing.assert_allclose(found.gap, 0, atol=1e-12)

    def test_parallel_capsules_have_two_contacts_and_crossed_ones_one(self):
        lower = shapes.capsule(0.1, 1.0)
        beside = Found([lower, shapes.capsule(0.1, 1.0, position=[0.2, 0, 0.4])], 0.01)
        assert beside.feature.tolist() == [1, 2]
        assert np.allclose(beside.point[:, 2], [-0.1, 0.5])
        lying = [np.sqrt(0.5), 0, np.sqrt(0.5), 0]
        crossed = Found([lower, shapes.capsule(0.1, 1.0, position=[0, 0.21, 0], orientation=lying)], 0.1)
        assert crossed.feature.tolist() == [0]
        assert np.allclose(crossed.gap, 0.01)

    def test_a_cylinder_stands_on_four_points_and_rolls_on_two(self):
        standing = Found([shapes.cylinder(0.5, 1.0, position=[0, 0, 0.5]), shapes.plane()], 0.01)
        assert standing.feature.tolist() == [1, 2, 3, 4]
        assert np.allclose(standing.gap, 0)
        lying = [np.sqrt(0.5), 0, np.sqrt(0.5), 0]
        rolling = Found([shapes.cylinder(0.5, 1.0, position=[0, 0, 0.5], orientation=lying), shapes.plane()], 0.01)
        assert rolling.feature.tolist() == [0, 5]
        assert np.allclose(rolling.gap, 0)

    def test_a_sphere_beyond_the_end_of_a_tube_is_free(self):
        tube = shapes.tube(1.0, 2.0)
        assert len(Found([shapes.sphere(0.2, position=[0.9, 0, 0.9]), tube], 0.0)) == 1
        assert len(Found([shapes.sphere(0.2, position=[0.9, 0, 1.1]), tube], 0.0)) == 0
        assert len(Found([shapes.sphere(0.2, position=[1.3, 0, 0.9]), tube], 0.0)) == 0


FLAT = {
    "disk": shapes.disk(0.5),
    "stadium": shapes.stadium(0.3, 0.5),
    "polygon": shapes.rectangle([1.0, 0.5]),
    "half_plane": shapes.half_plane(),
}


def test_only_pairs_in_the_table_have_contacts():
    for a in NAMES:
        for b in NAMES:
            rng = np.random.default_rng(1)
            parts = [
                (FLAT[kind] if kind in FLAT else random_shape(kind, rng)) | {"pose": np.array([0, 0, 0, 1.0, 0, 0, 0])} for kind in (a, b)
            ]
            if "mesh" in (a, b):  # there is nothing within its surface
                parts[0]["pose"][2] += 3.0
            known = tuple(sorted((NAMES.index(a), NAMES.index(b)))) in SUPPORTED
            assert (len(Found(parts, 10.0)) > 0) == known
            if known:
                collision.require_supported(a, b)
            else:
                with pytest.raises(ValueError, match=f"between a {a} and a {b}"):
                    collision.require_supported(a, NAMES.index(b))
    with pytest.raises(ValueError, match="got 'pyramid'"):
        collision.require_supported("pyramid", "box")
