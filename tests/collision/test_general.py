"""Kernels for solids and meshes beside their twins in NumPy: parts that look at each other, their contacts, all triangles one by one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from nsds.collision import GENERAL, NAMES, geometry, gjk, solids, support
from nsds.collision.frames import FIELDS, MOST
from nsds.collision.kinds import BOX, CONVEX, MESH
from nsds.collision.parts import PLACED
from nsds.model import shapes
from tests import reference_collision as distances
from tests import reference_patches as twin
from tests.collision.test_collision import Found
from tests.collision.test_collision_convex import FLOORS, apart, prism, stone, terrain
from tests.random_piles import box_of_corners
from tests.strategies import examples, generators

CONVEX_PAIRS = sorted(tuple(sorted(pair)) for pair in GENERAL if MESH not in pair)
SOLIDS = [NAMES[k] for k in sorted({k for pair in GENERAL for k in pair} - {MESH})]


class Pair:
    """Two shapes as kernels have them."""

    def __init__(self, a, b):
        kind = np.array([NAMES.index(s["shape"]) for s in (a, b)])
        size, vertices, triangles = np.array([a["size"], b["size"]]), np.zeros((0, 3)), np.zeros((0, 3), np.int64)
        for s, row in zip((a, b), size, strict=True):
            if "vertices" in s:
                row[1] = len(vertices)
                triangles = np.concatenate([triangles, s["triangles"] + len(vertices)])
                vertices = np.concatenate([vertices, s["vertices"]])
        self.geometry = geometry.geometry_of(kind, size, vertices, triangles)
        pose = np.concatenate([a["pose"], b["pose"]])
        self.words = [np.zeros(PLACED) for _ in range(2)]
        for s, words in enumerate(self.words):
            support.place_shape(kind, size.ravel(), pose, self.geometry, s, words)

    def towards(self):
        """Direction from the middle of the second shape to that of the first, with the bits of the kernel."""
        middles = np.zeros((2, 3))
        for words, middle in zip(self.words, middles, strict=True):
            support.middle_of(words, self.geometry, middle)
        d = middles[0] - middles[1]
        return d / math.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])

    def closest(self, towards, margin, small, triangle=None):
        n, point, b = np.zeros(3), np.zeros(3), self.words[1] if triangle is None else triangle
        gap = solids.closest(self.words[0], b, self.geometry, towards, triangle is not None, margin, small, n, point)
        return gap, n, point


def beside(pair, rng, gap):
    """As `apart`, with the first moved across a little, so that rounding does not decide which corners are above each other."""
    a, b, d = apart(pair, rng, gap)
    shift = 0.1 * np.cross(d, rng.normal(size=3))
    return a | {"pose": a["pose"] + np.concatenate([shift, np.zeros(4)])}, b


def as_twin(shape):
    own = (shape["vertices"], shape["triangles"]) if "vertices" in shape else (None, None)
    kind = NAMES.index(shape["shape"])
    pose = twin.Pose(distances.axes(shape), shape["pose"][:3])
    return (twin.Surface(*own), pose) if kind == MESH else twin.Placed(twin.solid(kind, shape["size"], *own), pose)


def assert_same(found, expected):
    """The same contacts; of places that are as good as equally far either."""
    assert len(found) == len(expected)
    expected = sorted(expected, key=lambda one: one[0])
    np.testing.assert_array_equal(found.feature, [one[0] for one in expected])
    for name, k in (("gap", 1), ("normal", 2), ("point", 3)):
        np.testing.assert_allclose(
            getattr(found, name), np.array([one[k] for one in expected]).reshape(getattr(found, name).shape), atol=1e-9
        )


@pytest.mark.parametrize("pair", CONVEX_PAIRS, ids=lambda pair: "-".join(NAMES[k] for k in pair))
@examples(25)
@given(rng=generators, gap=st.sampled_from([0.1, 1e-3, 0.0, -1e-3]))
def test_contacts_of_solids_are_those_of_the_twin(pair, rng, gap):
    a, b = beside(tuple(NAMES[k] for k in pair), rng, gap)
    one, other, margin = as_twin(a), as_twin(b), 0.15
    small, pair_of = min(one.shape.smallest, other.shape.smallest), Pair(a, b)
    distance, n, point = pair_of.closest(pair_of.towards(), margin, small)
    assert_same(Found([a, b], margin), twin.thinned(twin.patch(one, other, n, (distance, point), margin, small), small))


@pytest.mark.parametrize("kind", SOLIDS)
@examples(15)
@given(rng=generators, gap=st.sampled_from([0.05, 1e-3, 0.0, -1e-3]))
def test_contacts_with_a_mesh_are_those_of_all_its_triangles(kind, rng, gap):
    a, b = beside((kind, "mesh"), rng, gap)
    one, (surface, pose), margin = as_twin(a), as_twin(b), 0.1
    small, pair, words = min(one.shape.smallest, surface.widest), Pair(a, b), np.zeros(PLACED)
    for is_strict in (True, False):
        found = []
        for t in range(len(surface.triangles)):
            face = surface.triangle(pose, t)
            support.place_triangle(pair.words[1], pair.geometry, t, words)
            distance, n, point = pair.closest(words[support.NORMAL : support.NORMAL + 3].copy(), margin, small, words)
            if distance > margin:
                continue
            is_beside = False
            if distance < 0:  # it may be left sooner to the outside of a triangle beside this one
                near = [k for k, other in enumerate(surface.triangles) if k != t and {*other} & {*surface.triangles[t]}]
                ways = [surface.triangle(pose, k).normal for k in near]
                gaps = [support.separation(pair.words[0], words, pair.geometry, way) for way in ways]
                is_beside = max(gaps) > 0.5 * distance
                if is_beside:
                    distance, n, point = pair.closest(ways[np.argmax(gaps)], margin, small, words)
            ridge = surface.ridge(pose, n, t) if face.normal @ n < twin.FLAT else None
            if ridge is not None:
                contacts = twin.patch(one, ridge, n, (distance, point), margin, small) + twin.beyond_edge(one, face, n, margin, small)
            elif face.normal @ (one.middle - face.points[0]) > 0 and not (is_beside and is_strict):
                contacts = twin.patch(one, face, face.normal, None, margin, small)
            else:
                continue
            found += [contact for contact in contacts if contact[1] >= -0.25 * small]
        if found:
            break
    result, expected = Found([a, b], margin), twin.thinned(found, small)
    assert len(result) == len(expected)
    # Edges have other numbers in the twin: places and gaps are compared, in an order of their own.
    points, gaps = np.array([one[3] for one in expected]).reshape(-1, 3), np.array([one[1] for one in expected])
    order, other = (np.lexsort(np.round(x, 6).T) for x in (result.point, points))
    np.testing.assert_allclose(result.point[order], points[other], atol=1e-9)
    np.testing.assert_allclose(result.gap[order], gaps[other], atol=1e-9)


def plate(kind, rng, thickness):
    """A square plate of 1 m, level but for a tilt of 1e-4, as a hull or a closed mesh; turned about the vertical."""
    shape = box_of_corners(kind, [1.0, 1.0, thickness])
    turned = np.array([1.0, *rng.normal(size=2) * 5e-5, rng.normal()])
    return shape | {"pose": np.concatenate([np.zeros(3), turned / np.linalg.norm(turned)])}


@pytest.mark.parametrize("kind", ["convex", "mesh"])
@pytest.mark.parametrize("depth", [2e-5, 5e-5])
@examples(20)
@given(rng=generators)
def test_thin_plates_on_each_other_touch_in_many_places_and_never_deeply(kind, depth, rng):
    """Of each of two plates of 10 mm half lies on the other: no contact is deeper than they overlap, whatever sides face each other.

    Edges that cross are one contact, on which a plate rocks; the faces have a polygon, which is not a line.
    """
    a, b = (plate(kind, rng, 0.01) for _ in range(2))
    a["pose"][:3] = 0.5 * rng.choice([-1, 1]), 0, 0.01 - depth
    found = Found([a, b], 0.02)
    assert len(found) >= 3
    assert found.gap.min() >= -depth - 2e-3  # the tilt times half a plate, many times
    np.testing.assert_allclose(found.normal[found.gap < 0, 2], 1, atol=1e-5)
    upright = found.point[found.normal[:, 2] > 0.5, :2]
    spread = np.linalg.svd(upright - upright.mean(axis=0))[1]
    assert spread[-1] > 0.1


@examples(20)
@given(rng=generators)
def test_a_box_of_triangles_stands_on_flat_tiles_at_its_underside_alone(rng):
    """Its upright sides would cut the edges of tiles at any height: such contacts jump as it slides."""
    box, tiles = plate("mesh", rng, 1.0), terrain(6, lambda x, y: 0.0, size=4.0)
    box["pose"] = np.array([*rng.uniform(-1, 1, size=2), 0.5, *np.array([1.0, 0, 0, rng.normal()])])
    box["pose"][3:] /= np.linalg.norm(box["pose"][3:])
    found = Found([box, tiles], 0.6)
    upright = found.normal[:, 2] > 1e-3  # corners of tiles before its sides are hidden later
    assert upright.sum() >= 3
    np.testing.assert_allclose(found.normal[upright, 2], 1, atol=1e-9)
    np.testing.assert_allclose(found.gap[upright], 0, atol=1e-9)


@examples(15)
@given(rng=generators, order=st.sampled_from([1, -1]))
def test_contacts_of_boxes_of_triangles_lie_on_both_of_them(rng, order):
    """A corner of one pressed a little into a face of the other: triangles beside each other, far from it, do not touch."""
    half, depth = 0.5 * rng.uniform(0.7, 1.0, size=(2, 3)), 2e-3
    turn = Rotation.random(random_state=rng.integers(2**31))
    corner = turn.apply(half[1] * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]))
    lowest = corner[corner[:, 2].argmin()]
    place = np.array([*rng.uniform(-0.3, 0.3, size=2), half[0, 2] - depth]) - lowest
    turned = np.r_[turn.as_quat()[3], turn.as_quat()[:3]]
    boxes = [box_of_corners("mesh", 2 * half[0]), box_of_corners("mesh", 2 * half[1]) | {"pose": np.concatenate([place, turned])}]
    found = Found(boxes[::order], 0.5)
    assert found.gap.min() == pytest.approx(-depth, abs=1e-9)
    for gap, normal, point in zip(found.gap, found.normal.reshape(-1, 3), found.point.reshape(-1, 3), strict=True):
        on = (point, point - gap * normal)[::order]
        assert (abs(on[0]) < half[0] + 1.01 * depth).all()
        assert (abs(turn.inv().apply(on[1] - place)) < half[1] + 1.01 * depth).all()


@examples(50)
@given(rng=generators, depth=st.sampled_from([0.3, 0.05, 1e-3, 1e-6]))
def test_the_least_overlap_of_hulls_is_the_nearest_face_of_their_differences(rng, depth):
    a, b, d = apart(("convex", "convex"), rng, -depth)
    pair, S, n, point = Pair(a, b), np.zeros(gjk.SIMPLEX), np.zeros(3), np.zeros(3)
    core = gjk.apart(*pair.words, pair.geometry, d, np.inf, n, point, S)
    expected = distances.hull_distance(distances.corners(a), distances.corners(b))
    assert (core == gjk.WITHIN) == (expected < 0)
    if expected >= 0:  # they are apart, though not in the direction d
        return
    gjk.least_overlap(*pair.words, pair.geometry, S, 1.0, n)
    np.testing.assert_allclose(np.linalg.norm(n), 1, atol=1e-12)
    np.testing.assert_allclose(support.separation(*pair.words, pair.geometry, n), expected, atol=1e-8)


@examples(40)
@given(rng=generators, gap=st.sampled_from([1.0, 1e-2, 1e-5]))
def test_the_distance_of_hulls_is_that_of_the_origin_from_their_differences(rng, gap):
    a, b, d = apart(("convex", "convex"), rng, gap)
    pair, S, n, point = Pair(a, b), np.zeros(gjk.SIMPLEX), np.zeros(3), np.zeros(3)
    core = gjk.apart(*pair.words, pair.geometry, rng.normal(size=3), np.inf, n, point, S)
    np.testing.assert_allclose(core, distances.hull_distance(distances.corners(a), distances.corners(b)), atol=1e-9)
    np.testing.assert_allclose(support.separation(*pair.words, pair.geometry, n), core, atol=1e-9)
    far = gjk.apart(*pair.words, pair.geometry, d, 0.5 * gap, n, point, S)
    assert far > 0.5 * gap  # so much is known when it is given up


def random_mesh(rng):
    n = int(rng.integers(1, 9))
    return terrain(n, lambda x, y: float(rng.normal()), size=1.0)


@examples(25)
@given(rng=generators)
def test_the_tree_of_a_mesh_has_each_triangle_once_within_its_boxes(rng):
    mesh = random_mesh(rng)
    size, x, triangles = mesh["size"], mesh["vertices"], mesh["triangles"]
    table = geometry.geometry_of(np.array([MESH]), size[None], x, triangles)
    block = int(table[1])
    nodes, order = int(table[block + geometry.NODES]), int(table[block + geometry.ORDER])

    def members(box):
        low, high, first, count = *np.split(table[nodes + geometry.NODE * box :][:6], 2), *table[nodes + geometry.NODE * box + 6 :][:2]
        if count:
            inside = table[order + int(first) :][: int(count)].astype(int).tolist()
        else:
            inside = members(int(first)) + members(int(first) + 1)
        assert (x[triangles[inside]] >= low).all()
        assert (x[triangles[inside]] <= high).all()
        return inside

    assert sorted(members(0)) == list(range(len(triangles)))


@examples(25)
@given(rng=generators)
def test_triangles_know_what_is_beyond_their_edges_and_around_their_vertices(rng):
    mesh = random_mesh(rng)
    size, x, triangles = mesh["size"], mesh["vertices"], mesh["triangles"].tolist()
    table = geometry.geometry_of(np.array([MESH]), size[None], x, mesh["triangles"])
    block = int(table[1])
    rows = table[int(table[block + geometry.FACES]) :][: geometry.TRIANGLE * len(triangles)].reshape(-1, geometry.TRIANGLE)
    beyond = {(triangle[i], triangle[(i + 1) % 3]): t for t, triangle in enumerate(triangles) for i in range(3)}
    for t, triangle in enumerate(triangles):
        for i in range(3):
            other = beyond.get((triangle[(i + 1) % 3], triangle[i]), -1)
            assert rows[t, 6 + i] == other
            assert other < 0 or rows[t, 9 + i] in rows[other, 9:]
    fans, listed = int(table[block + geometry.FANS]), int(table[block + geometry.FAN_LIST])
    for v in range(len(x)):
        own = table[listed + int(table[fans + v]) : listed + int(table[fans + v + 1])]
        assert sorted(own.tolist()) == [t for t, triangle in enumerate(triangles) if v in triangle]


def test_shapes_that_are_alike_share_their_block():
    rng = np.random.default_rng(0)
    hull = stone(rng)
    kind, size = np.array([BOX, CONVEX, BOX, CONVEX, BOX]), np.array([[1, 2, 3], hull["size"], [1, 2, 3], hull["size"], [3, 2, 1.0]])
    table = geometry.geometry_of(kind, size, hull["vertices"], hull["triangles"])
    starts = table[1:6]
    assert starts[0] == starts[2] != starts[4]
    assert starts[1] == starts[3]
    assert table[0] == table.size


def test_faces_with_very_many_corners_stand_on_some_of_them_all_round():
    found = Found([prism(200, 0.2, 0.1, position=[0, 0, 0.05]), FLOORS["hull"]], 1e-3)
    assert len(found) == MOST
    angle = np.sort(np.arctan2(found.point[:, 1], found.point[:, 0]))
    assert np.diff([*angle, angle[0] + 2 * np.pi]).max() < np.pi / 4
    np.testing.assert_allclose(np.linalg.norm(found.point[:, :2], axis=1), 0.2, atol=1e-9)


def test_what_lies_on_very_many_triangles_has_contacts_on_all_sides():
    found = Found([shapes.box([1.5, 1.5, 0.1], position=[0.01, 0.02, 0.05]), terrain(60, lambda x, y: 0.0)], 1e-3)
    assert len(found) == MOST
    np.testing.assert_allclose(found.gap, 0, atol=1e-12)
    for side in (-1, 1):
        for axis in range(2):
            assert (side * found.point[:, axis]).max() > 0.7
    assert FIELDS * MOST <= 128


@pytest.mark.parametrize("turned_round", [False, True])
@pytest.mark.parametrize("lean", [-0.03, 0.03])
@pytest.mark.parametrize("kind", ["cylinder", "cone"])
@pytest.mark.parametrize("below", ["hull", "mesh"])
def test_what_leans_over_the_edge_of_a_face_by_its_side_touches_at_the_edge_and_at_its_end(below, kind, lean, turned_round):
    """With one of them alone a cone that rocks on a box sank into it by its other end, step by step."""
    block = shapes.convex(np.array([[x, y, z] for x in (0.0, 1.0) for y in (-0.5, 0.5) for z in (-0.2, 0.0)]))
    if below == "mesh":
        block = shapes.mesh(block["vertices"], block["triangles"])
    # 1. a line of the side in the plane y = 0, a third of it beyond the edge x = 0 of the face z = 0, and tilted
    angle = math.pi / 2 + lean + (math.atan2(0.1, 0.4) if kind == "cone" else 0.0)
    shape = getattr(shapes, kind)(0.1, 0.4, orientation=[math.cos(angle / 2), 0, math.sin(angle / 2), 0])
    line = as_twin(shape).facing(np.array([0.0, 0.0, -1.0]), 8).points
    out, end = line[np.argsort(line[:, 0])]
    edge = out + (end - out) / 3
    shape["pose"][:3] -= edge + min(0.0, (end - edge)[2]) * np.array([0, 0, 1])
    # 2. gaps along the normal, which is across the line where that touches the edge, and across the face where its end touches
    found = Found([shape, block] if not turned_round else [block, shape], 0.1)
    rise, cosine = abs(end - edge)[2], math.cos(lean) if end[2] > edge[2] else 1.0
    np.testing.assert_allclose(np.sort(found.gap), [0.0, rise * cosine], atol=1e-6)
    np.testing.assert_allclose(np.sort(found.point[:, 0]), [0.0, (end - edge)[0]], atol=1e-3)


TURNED = [pair for pair in CONVEX_PAIRS if {NAMES[k] for k in pair} & {"cylinder", "cone"}]


def in_units(shape, unit):
    """A shape in units of another length."""
    lengths = np.array([unit, 1.0, 1.0]) if "vertices" in shape else unit
    own = {"vertices": unit * shape["vertices"]} if "vertices" in shape else {}
    return shape | own | {"size": lengths * shape["size"], "pose": shape["pose"] * np.array([unit] * 3 + [1.0] * 4)}


@pytest.mark.parametrize("pair", TURNED, ids=lambda pair: "-".join(NAMES[k] for k in pair))
@examples(40)
@given(rng=generators, gap=st.sampled_from([0.1, 1e-3, 1e-6, -1e-7, -1e-3]), unit=st.sampled_from([1.0, 1e-3, 1e3]))
def test_what_has_a_rim_has_its_distance_to_rounding(pair, rng, gap, unit):
    """The separation along the normal is the distance, and less along all others nearby: 1e-7 off the normal costs 1e-14 at most."""
    a, b, _ = apart(tuple(NAMES[k] for k in pair), rng, gap)
    shapes_as_words = Pair(in_units(a, unit), in_units(b, unit))
    one, other = shapes_as_words.words
    towards = shapes_as_words.towards()
    small = min(support.smallest_of(one, shapes_as_words.geometry), support.smallest_of(other, shapes_as_words.geometry))
    distance, n, _ = shapes_as_words.closest(towards, unit, small)
    best = support.separation(one, other, shapes_as_words.geometry, n)
    assert abs(distance - best) <= 1e-13 * unit
    for _ in range(20):
        near = n + 10 ** rng.uniform(-7, -2) * rng.normal(size=3)
        assert support.separation(one, other, shapes_as_words.geometry, near / np.linalg.norm(near)) <= best + 1e-12 * unit


def on_edge(kind, hull, angle, spin, gap):
    """A cylinder, cone or capsule of 0.16 m and a box: its side is along an edge, the normal turned from that of a face by an angle."""
    box = shapes.box([1, 1, 1], position=[-0.5, 0, -0.5])
    if hull:
        box = shapes.convex(np.array([[x, y, z] for x in (-1, 0) for y in (-0.5, 0.5) for z in (-1, 0)], float))
    radius, length, n = 0.1, 0.16, np.array([np.sin(angle), 0, np.cos(angle)])
    # the side along y, through the edge, its lowest line there whatever the spin about the axis
    lean = math.atan2(radius, length) if kind == "cone" else 0.0
    axis = np.cos(lean) * np.array([0.0, 1.0, 0.0]) - np.sin(lean) * n
    turn = Rotation.from_rotvec(spin * axis) * Rotation.align_vectors([axis], [[0.0, 0.0, 1.0]])[0]
    at = (radius + gap) * n
    if kind == "cone":
        at = gap * n - turn.apply(0.75 * length * np.array([0, 0, 1.0])) + np.array([0, 0.1, 0])  # its tip is on the edge
    solid = getattr(shapes, kind)(radius, length)
    return solid | {"pose": np.concatenate([at, np.roll(turn.as_quat(), 1)])}, box, n


@pytest.mark.parametrize(("kind", "hull"), [("cylinder", False), ("cylinder", True), ("cone", False), ("cone", True), ("capsule", True)])
@examples(60)
@given(
    rng=generators,
    angle=st.sampled_from([0.0, 1e-5, 1e-3, 3e-3, 1e-2, 0.1, 0.7]),
    gap=st.sampled_from([0.0, 1e-9, -1e-9, -1e-7, 1e-5, 1e-3]),
    unit=st.sampled_from([1.0, 1e-3, 1e3]),
)
def test_what_lies_with_its_side_along_an_edge_touches_there_in_two_places(kind, hull, rng, angle, gap, unit):
    """As it turns about the edge: the normal is that from the edge to the axis, wherever both are in the world."""
    solid, box, n = on_edge(kind, hull, angle, rng.uniform(0, 6), gap)
    turn, shift = Rotation.random(random_state=rng.integers(2**31)), rng.normal(size=3)
    for shape in (solid, box):
        turned = turn * Rotation.from_quat(np.roll(shape["pose"][3:], -1))
        shape["pose"] = np.concatenate([turn.apply(shape["pose"][:3]) + shift, np.roll(turned.as_quat(), 1)])
    found = Found([in_units(solid, unit), in_units(box, unit)], 0.05 * unit)
    assert len(found) == 2
    np.testing.assert_allclose(found.gap, unit * gap, atol=3e-14 * unit)
    np.testing.assert_allclose(found.normal, np.broadcast_to(turn.apply(n), (2, 3)), atol=1e-11)
    length = math.hypot(0.1, 0.16) if kind == "cone" else 0.16
    np.testing.assert_allclose(np.linalg.norm(found.point[1] - found.point[0]), length * unit, rtol=1e-9)


@pytest.mark.parametrize("hull", [False, True])
@examples(60)
@given(
    rng=generators,
    angle=st.sampled_from([1e-4, 1e-3, 0.1, 0.7]),
    gap=st.sampled_from([0.0, -1e-7, 1e-5]),
    moved=st.sampled_from([1e-8, 1e-6]),
)
def test_small_motions_on_an_edge_change_gaps_by_what_they_move_along_the_normal(hull, rng, angle, gap, moved):
    """Contacts stay the same ones: with others in turn, differences of their normals would look like accelerations."""
    solid, box, _ = on_edge("cylinder", hull, angle, rng.uniform(0, 6), gap)
    before = Found([solid, box], 0.05)
    v, w = moved * rng.normal(size=(2, 3))
    turned = Rotation.from_rotvec(w) * Rotation.from_quat(np.roll(solid["pose"][3:], -1))
    after = Found([solid | {"pose": np.concatenate([solid["pose"][:3] + v, np.roll(turned.as_quat(), 1)])}, box], 0.05)
    np.testing.assert_array_equal(after.feature, before.feature)
    rate = ((v + np.cross(w, before.point - solid["pose"][:3])) * before.normal).sum(axis=1)
    np.testing.assert_allclose(after.gap - before.gap, rate, atol=1e-14 + 100 * moved**2)
    np.testing.assert_allclose(after.normal, before.normal, atol=1e-12 + 50 * moved)
