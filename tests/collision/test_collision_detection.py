"""Detection among many shapes: exactly the pairs that looking at all of them gives, in order, whatever the sizes, places and threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from nsds import collision
from nsds.collision.groups import mask_of
from nsds.collision.kinds import BOX, CAPSULE, CONE, CYLINDER, PLANE, SPHERE, TUBE
from tests import reference_collision as twin
from tests.strategies import examples, generators

DETECTORS = [collision.detect, collision.detect_parallel]


class Cloud:
    """Spheres in flat arrays, as kernels have them."""

    def __init__(self, x, radius, reach=0.0, body=None, group=None, meets=None):
        self.x, self.radius, ns = x, np.broadcast_to(radius, len(x)).copy(), len(x)
        self.kind = np.full(ns, SPHERE)
        self.size = np.column_stack([self.radius, np.zeros((ns, 2))])
        self.pose = np.column_stack([x, np.ones(ns), np.zeros((ns, 3))])
        self.body = np.arange(ns) if body is None else body
        self.reach = np.broadcast_to(np.float64(reach), ns).copy()
        self.group = np.zeros(ns, np.int64) if group is None else group
        self.meets = np.ones((1, 1), bool) if meets is None else meets

    def detect(self, detect=collision.detect, capacity=4096):
        """(number, a, b, feature, normal, point, gap); what is not written stays -1."""
        ns = len(self.x)
        keys, reals = np.full((3, capacity), -1), [np.full(3 * capacity, -1.0), np.full(3 * capacity, -1.0), np.full(capacity, -1.0)]
        floats, ints = collision.work_size(ns)
        shapes = self.kind, self.size.ravel(), self.pose.ravel(), self.body, self.reach, self.group, mask_of(self.meets)
        out = collision.Contacts(*keys, *reals)
        n = detect(collision.Shapes(*shapes), np.empty(0), 0, out, np.full(floats, np.nan), np.full(ints, -7))
        return n, *keys, *reals

    def check(self):
        """Both kernels find what the twin finds, with the same bits."""
        expected = twin.sphere_contacts(self.x, self.radius, self.body, self.reach, self.group, self.meets)
        n, a, b, feature, _, _, gap = first = self.detect(capacity=len(expected) + 3)
        assert list(zip(a[:n], b[:n], strict=True)) == [pair[:2] for pair in expected]
        assert np.allclose(gap[:n], [pair[2] for pair in expected], atol=1e-12)
        assert (feature[:n] == 0).all()
        assert all((array[n:] == -1).all() for array in (a, b, feature, gap))
        for one, other in zip(first, self.detect(collision.detect_parallel, len(expected) + 3), strict=True):
            assert np.array_equal(one, other)
        return n


def places(name, n, rng):
    """Centres of unit spheres: crowded, in a layer, along a diagonal, far apart, in clusters far from each other, all in one place."""
    x = rng.uniform(-1, 1, size=(n, 3))
    return {
        "crowded": x * 1.2 * n ** (1 / 3),
        "layer": x * [1.5 * n**0.5, 1.5 * n**0.5, 0.1],
        "diagonal": np.arange(n)[:, None] * np.array([1.0, 1.0, 1.0]) + 0.1 * x,
        "far": x * 1e4 * rng.choice([1, 1e-4], size=(n, 1)),
        "clusters": x * 2 + 1e7 * rng.integers(-1, 2, size=(n, 3)),
        "one": 1e-3 * x,
    }[name]


def quaternions(n, rng):
    """Unit quaternions, scalar first."""
    p = rng.normal(size=(n, 4))
    return p / np.linalg.norm(p, axis=1)[:, None]


@pytest.mark.parametrize("name", ["crowded", "layer", "diagonal", "far", "clusters", "one"])
@examples(8)
@given(rng=generators, n=st.integers(1, 60), ratio=st.sampled_from([1.0, 2.0, 10.0, 1000.0]))
def test_spheres_of_any_sizes_anywhere_have_the_contacts_of_all_pairs(name, rng, n, ratio):
    radius = np.exp(rng.uniform(-np.log(ratio), 0, size=n))
    Cloud(places(name, n, rng), radius, reach=rng.uniform(0, 0.3, size=n) * (rng.random() < 0.5)).check()


@examples(15)
@given(rng=generators, n=st.integers(1, 60), n_groups=st.sampled_from([1, 2, 11, 62, 63, 64, 200]))
def test_bodies_groups_and_the_world(rng, n, n_groups):
    """Shapes of one body, of groups that do not meet, and of the world among themselves have no contacts, however many groups there are."""
    some = rng.random((n_groups, n_groups)) < 0.7
    groups = rng.integers(n_groups, size=n), some | some.T
    Cloud(places("crowded", n, rng), 1.0, 0.1, rng.integers(-1, 8, size=n), *groups).check()


def test_large_clouds_use_the_grid_and_hashed_rows():
    rng = np.random.default_rng(0)
    n = 400
    for x in (places("crowded", n, rng), places("clusters", n, rng), places("diagonal", n, rng)):
        cloud = Cloud(x, rng.uniform(0.3, 1.0, size=n), 0.05)
        assert cloud.check() > 30


@pytest.mark.parametrize("first", [True, False])
def test_a_ball_with_more_neighbours_than_are_gathered(first):
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(400, 3))
    x = 10.1 * direction / np.linalg.norm(direction, axis=1)[:, None]
    order = slice(None, None, 1 if first else -1)
    Cloud(np.vstack([np.zeros(3), x])[order], np.array([10.0] + [0.2] * 400)[order]).check()


@pytest.mark.parametrize("detect", DETECTORS, ids=["serial", "parallel"])
def test_what_exceeds_the_capacity_is_counted_but_not_written(detect):
    cloud = Cloud(places("crowded", 200, np.random.default_rng(1)), 1.0, 0.1)
    n, *arrays = cloud.detect(detect)
    for capacity in (0, 1, n // 2, n - 1, n):
        count, *short = cloud.detect(detect, capacity)
        assert count == n > 100
        for part, whole in zip(short, arrays, strict=True):
            assert np.array_equal(part, whole[: len(part)])


@pytest.mark.parametrize("detect", DETECTORS, ids=["serial", "parallel"])
def test_what_is_nowhere_has_no_contacts_and_disturbs_no_others(detect):
    x = places("crowded", 60, np.random.default_rng(2))
    cloud = Cloud(x, 1.0, 0.1)
    expected = [p[:2] for p in twin.sphere_contacts(x, cloud.radius, cloud.body, cloud.reach, cloud.group, cloud.meets)]
    cloud.pose[7, 0], cloud.pose[8, 1], cloud.pose[9, 2] = np.nan, np.inf, -np.inf
    n, a, b, *_ = cloud.detect(detect)
    kept = [pair for pair in expected if not {7, 8, 9} & set(pair)]
    assert list(zip(a[:n], b[:n], strict=True)) == kept
    assert Cloud(np.empty((0, 3)), 1.0).detect(detect)[0] == 0


@examples(10)
@given(rng=generators, n=st.integers(2, 30))
def test_shapes_of_all_kinds_have_the_contacts_of_each_pair(rng, n):
    """Mixed kinds among planes and tubes, some on the world: what two shapes alone give, put together."""
    cloud = Cloud(places("crowded", n, rng) / 2, 1.0, 0.1, rng.integers(-1, n, size=n))
    kinds = [SPHERE, CAPSULE, CYLINDER, CONE, BOX, PLANE, TUBE]
    cloud.kind, cloud.size = rng.choice(kinds, size=n), rng.uniform(0.3, 1.5, size=(n, 3))
    cloud.size[(cloud.kind == TUBE) & (rng.random(n) < 0.5), 1] = np.inf
    cloud.pose[:, 3:] = quaternions(n, rng)
    count, a, b, feature, normal, point, gap = whole = cloud.detect()
    for one, other in zip(whole, cloud.detect(collision.detect_parallel), strict=True):
        assert np.array_equal(one, other)
    keys = list(zip(a[:count], b[:count], feature[:count], strict=True))
    assert keys == sorted(keys)
    assert len(set(keys)) == count
    at = 0
    for s in range(n):
        for t in range(n):
            if cloud.body[s] != -1 and (cloud.body[t] == -1 or s < t) and cloud.body[s] != cloud.body[t]:
                two = Cloud(cloud.x[[s, t]], 1.0, 0.1, np.array([0, -1 if cloud.body[t] == -1 else 1]))
                two.kind, two.size, two.pose = cloud.kind[[s, t]], cloud.size[[s, t]], cloud.pose[[s, t]]
                m, _, _, features, normals, points, gaps = two.detect()
                assert (a[at : at + m] == s).all()
                assert (b[at : at + m] == t).all()
                assert np.array_equal(feature[at : at + m], features[:m])
                assert np.array_equal(gap[at : at + m], gaps[:m])
                assert np.array_equal(normal[3 * at : 3 * (at + m)], normals[: 3 * m])
                assert np.array_equal(point[3 * at : 3 * (at + m)], points[: 3 * m])
                at += m
    assert at == count


@examples(50)
@given(rng=generators, d=st.integers(1, 3))
def test_contacts_inherit_what_the_same_contacts_had(rng, d):
    def keys():
        return np.unique(rng.integers(0, 4, size=(rng.integers(0, 20), 3)), axis=0)

    now, before = keys(), keys()
    old, new = rng.normal(size=(len(before), d)), np.full((len(now), d), np.nan)
    known = {tuple(key): value for key, value in zip(before, old, strict=True)}
    columns = [np.ascontiguousarray(k.T) for k in (now, before)]
    same = collision.inherit(*(tuple(keys) for keys in columns), d, old.ravel(), new.ravel())
    expected = np.array([known.get(tuple(key), np.zeros(d)) for key in now]).reshape(-1, d)
    assert np.array_equal(new, expected)
    assert same == sum(tuple(key) in known for key in now)


@examples(20)
@given(rng=generators, ns=st.integers(1, 8))
def test_poses_of_shapes_follow_their_bodies(rng, ns):
    def poses(n):
        return np.column_stack(
            [rng.normal(size=(n, 3)), np.roll(Rotation.random(n, random_state=rng.integers(2**31)).as_quat(), 1, axis=1)]
        )

    local, q, body, pose = poses(ns), poses(3), rng.integers(-1, 3, size=ns), np.empty((ns, 7))
    collision.place(body, local.ravel(), q.ravel(), pose.ravel())
    for s in range(ns):
        if body[s] == -1:
            assert np.array_equal(pose[s], local[s])
        else:
            R = Rotation.from_quat(np.roll(q[body[s], 3:], -1))
            assert np.allclose(pose[s, :3], q[body[s], :3] + R.apply(local[s, :3]))
            p = np.roll((R * Rotation.from_quat(np.roll(local[s, 3:], -1))).as_quat(), 1)
            assert np.isclose(abs(p @ pose[s, 3:]), 1)
            assert np.isclose(np.linalg.norm(pose[s, 3:]), 1)
