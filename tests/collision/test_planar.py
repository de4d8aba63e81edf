"""Contacts of shapes in the plane: distances, normals and points as they are defined, against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds.collision import COMPILED, NAMES
from nsds.collision.kinds import PLANAR
from nsds.model import shapes
from tests import reference_planar as twin
from tests.collision.test_collision import Found
from tests.strategies import examples, generators

PAIRS = sorted(tuple(NAMES[k] for k in pair) for pair in COMPILED if set(pair) <= set(PLANAR))
OUTLINES = {"polygon", "stadium"}
_CORNERS = 1 << 20  # as in `nsds.collision.planar`


def random_shape(kind, rng):
    """A shape of about unit size at a random pose."""
    at = {"position": rng.normal(size=2), "angle": rng.uniform(-6, 6)}
    radius, length = rng.uniform(0.2, 1.0, size=2)
    if kind == "disk":
        return shapes.disk(radius, position=at["position"])
    if kind == "half_plane":
        return shapes.half_plane(rng.normal(size=2), rng.normal())
    if kind == "stadium":
        return shapes.stadium(radius, length, **at)
    if rng.random() < 0.3:
        return shapes.rectangle(rng.uniform(0.3, 2.0, size=2), **at)
    return shapes.polygon(0.6 * rng.normal(size=(rng.integers(3, 12), 2)), **at)


def near(pair, rng, low=0.0, high=0.3):
    """A random pair whose distance is within [low, high] but for 1e-6, half of those with edges turned alike, where edges meet."""
    a, b = (random_shape(kind, rng) for kind in pair)
    if set(pair) <= OUTLINES and rng.random() < 0.5:
        angle = (
            2 * np.arctan2(b["pose"][6], b["pose"][3]) + rng.integers(0, 4) * np.pi / 2 + rng.choice([0.0, 1e-9, 1e-3, 0.1]) * rng.normal()
        )
        a = a | {"pose": np.concatenate([a["pose"][:3], [np.cos(angle / 2), 0, 0, np.sin(angle / 2)]])}
    wanted, turn = rng.uniform(low, high), rng.uniform(0, 2 * np.pi)
    direction = twin.frame(b)[1][:, 1] if pair[1] == "half_plane" else np.array([np.cos(turn), np.sin(turn)])
    far, close, x = 8.0, 0.0, b["pose"][:2]
    if pair[1] == "half_plane":
        far, close = 16.0, -16.0
    for _ in range(24):
        middle = (far + close) / 2
        a = a | {"pose": np.concatenate([x + middle * direction, a["pose"][2:]])}
        far, close = (middle, close) if twin.distance(a, b) >= wanted else (far, middle)
    return a, b


def check_geometry(found, a, b, tolerance=1e-9):
    """Normals are unit, in the plane and point to a; points lie on cores, as far as the radii, and one of the two is the corner named."""
    assert np.allclose(np.linalg.norm(found.normal, axis=1), 1, atol=1e-12)
    assert not found.normal[:, 2].any()
    assert not found.point[:, 2].any()
    assert (np.diff(found.feature) > 0).all()
    normal, (x, r_a) = found.normal[:, :2], twin.core(a)
    on_a = found.point[:, :2] + r_a * normal
    assert (twin.from_edges(on_a, x) < tolerance).all()
    if b["shape"] == "half_plane":
        at, R = twin.frame(b)
        assert np.allclose((found.other[:, :2] - at) @ R[:, 1], 0, atol=tolerance)
        assert np.allclose(normal, R[:, 1])
        assert np.allclose(on_a, x[found.feature], atol=tolerance)
        return
    y, r_b = twin.core(b)
    on_b = found.other[:, :2] - r_b * normal
    assert (twin.from_edges(on_b, y) < tolerance).all()
    if "disk" not in (a["shape"], b["shape"]):
        for feature, one, other in zip(found.feature, on_a, on_b, strict=True):
            which, corner = divmod(feature, _CORNERS)
            assert np.allclose(*((y[corner], other) if which == 1 else (x[corner], one)), atol=tolerance)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@examples(80)
@given(rng=generators)
def test_gap_is_the_distance_of_shapes_that_are_apart_or_whose_cores_are(pair, rng):
    a, b = near(pair, rng, low=-0.15)
    distance = twin.distance(a, b)
    for reach in (0.3, 0.1):
        found = Found([a, b], reach)
        if twin.least_overlap(a, b) < -1e-7 and distance < reach - 1e-9:
            assert np.isclose(found.gap.min(), distance, atol=1e-8)
            check_geometry(found, a, b)
            assert len(found) <= 3
        elif distance > reach + 1e-9:
            assert len(found) == 0


@pytest.mark.parametrize("pair", [p for p in PAIRS if set(p) & OUTLINES and "half_plane" not in p], ids="-".join)
@examples(150)
@given(rng=generators, depth=st.floats(1e-6, 0.2))
def test_cores_that_overlap_part_along_the_least_overlap(pair, rng, depth):
    a, b = near(pair, rng, low=-depth, high=-depth) if "polygon" in pair else near(pair, rng, low=-0.5, high=-0.3)
    overlap, found = twin.least_overlap(a, b), Found([a, b], 0.01)
    if overlap > 1e-9:
        assert (found.gap < 0).any()
        n, gap = found.normal[0, :2], twin.distance(a, b)
        assert np.isclose(((twin.core(b)[0] @ n).max() - (twin.core(a)[0] @ n).min()), overlap, atol=1e-8)
        assert found.gap.min() >= gap - 1e-8
        check_geometry(found, a, b)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@examples(25)
@given(rng=generators)
def test_contacts_move_with_the_shapes(pair, rng):
    a, b = near(pair, rng, low=-0.1, high=0.1)
    angle, translation = rng.uniform(-3, 3), rng.normal(size=2)
    before, after = Found([a, b], 0.2), Found([twin.moved(a, angle, translation), twin.moved(b, angle, translation)], 0.2)
    assert (before.feature == after.feature).all()
    R = twin.turned(angle)
    assert np.allclose(before.gap, after.gap, atol=1e-9)
    assert np.allclose(before.normal[:, :2] @ R.T, after.normal[:, :2], atol=1e-7)
    assert np.allclose(before.point[:, :2] @ R.T + translation, after.point[:, :2], atol=1e-7)


@pytest.mark.parametrize("size", [1e-6, 1e6])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@examples(25)
@given(rng=generators)
def test_contacts_grow_with_the_shapes(pair, size, rng):
    def grown(shape):
        pose = np.concatenate([size * shape["pose"][:3], shape["pose"][3:]])
        if "vertices" not in shape:
            return shape | {"size": size * shape["size"], "pose": pose}
        return shape | {"size": shape["size"] * [size, 1, 1], "pose": pose, "vertices": size * shape["vertices"]}

    a, b = near(pair, rng, low=-0.1, high=0.1)
    before, after = Found([a, b], 0.2), Found([grown(a), grown(b)], 0.2 * size)
    assert (before.feature == after.feature).all()
    assert np.allclose(before.normal, after.normal, atol=1e-9)
    assert np.allclose(size * before.gap, after.gap, atol=1e-9 * size)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@examples(25)
@given(rng=generators)
def test_the_other_order_turns_normals_round_and_moves_points_across(pair, rng):
    a, b = near(pair, rng, low=0.01, high=0.1)
    one, other = Found([a, b], 0.2), Found([b, a], 0.2)
    assert np.isclose(one.gap.min(), other.gap.min(), atol=1e-9)
    if pair[0] != pair[1]:
        assert np.allclose(one.normal, -other.normal)
        assert np.allclose(one.other, other.point)
        assert np.allclose(one.gap, other.gap)


class TestKnownContacts:
    def test_a_box_flat_on_a_line_stands_on_two_corners(self):
        found = Found([shapes.rectangle([2, 1], position=[3, 0.5]), shapes.half_plane()], 0.01)
        assert len(found) == 2
        assert np.allclose(np.sort(found.point[:, 0]), [2, 4])
        assert np.allclose(found.gap, 0)

    @pytest.mark.parametrize("gap", [-0.01, 0.0, 0.01])
    @pytest.mark.parametrize("order", [1, -1])
    def test_a_box_on_a_wider_one_has_its_two_corners(self, gap, order):
        found = Found([shapes.rectangle([1, 1], position=[0.1, 1 + gap]), shapes.rectangle([2, 1])][::order], 0.02)
        assert len(found) == 2
        assert np.allclose(found.gap, gap)
        assert np.allclose(found.normal, [0, order, 0])
        assert np.allclose(np.sort(found.point[:, 0]), [-0.4, 0.6])

    def test_a_box_that_hangs_over_has_a_corner_of_each(self):
        found = Found([shapes.rectangle([1, 1], position=[0.3, 1]), shapes.rectangle([1, 1])], 0.02)
        assert np.allclose(np.sort(found.point[:, 0]), [-0.2, 0.5])
        assert (found.feature < _CORNERS).tolist() == [True, False]

    def test_corners_that_pass_each_other_are_as_far_as_they_are(self):
        found = Found([shapes.rectangle([1, 1]), shapes.rectangle([1, 1], position=[1.03, 1.04])], 0.2)
        assert np.allclose(found.gap, [0.05])
        assert np.allclose(found.normal, [[-0.6, -0.8, 0]])

    @pytest.mark.parametrize("turn", [0.0, 1e-9, 1e-3, 1.0])
    def test_stadia_in_one_line_meet_with_their_ends(self, turn):
        found = Found(
            [shapes.stadium(0.1, 1.0), shapes.stadium(0.1, 1.0, position=[0.6 + 0.5 * np.cos(turn), 0.5 * np.sin(turn)], angle=turn)], 0.3
        )
        assert np.isclose(found.gap.min(), -0.1)
        assert np.allclose(found.normal[found.gap.argmin()], [-1, 0, 0])

    def test_a_stadium_lies_on_a_box_with_two_contacts(self):
        found = Found([shapes.stadium(0.1, 1.0, position=[0.3, 0.6]), shapes.rectangle([1, 1])], 0.01)
        assert np.allclose(np.sort(found.point[:, 0]), [-0.2, 0.5])
        assert np.allclose(found.point[:, 1], 0.5)
        assert np.allclose(found.gap, 0)

    @examples(30)
    @given(rng=generators)
    def test_features_of_resting_boxes_do_not_change_when_they_shake(self, rng):
        lower, x = shapes.rectangle([1, 1]), np.array([rng.uniform(0.05, 0.4), 1.0])
        first = Found([lower, shapes.rectangle([1, 1], position=x)], 0.02)
        for _ in range(10):
            moved = shapes.rectangle([1, 1], position=x + 1e-4 * rng.normal(size=2), angle=1e-4 * rng.normal())
            assert Found([lower, moved], 0.02).feature.tolist() == first.feature.tolist()
        assert len(first) == 2

    def test_disks_with_one_centre_part_along_y(self):
        found = Found([shapes.disk(1), shapes.disk(2)], 0)
        assert found.gap == [-3]
        assert (found.normal == [0, 1, 0]).all()
