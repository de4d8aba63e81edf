"""What bodies meet in a step in which they turn by a radian, or are thrown: by the default none ends deep within another."""

import numpy as np
import pytest

import nsds
from nsds import shapes
from tests.random_piles import run

DEEPEST = 1e-2  # of the size of a body: by no more are bodies pushed out of each other in a step


@pytest.mark.parametrize("seed", [504, 531, 671, 916])
def test_piles_of_bodies_that_turn_by_a_radian_in_a_step_end_without_overlap(seed):
    """As `test_random_piles`: of the weight times a body's size, and of that size."""
    gain, overlap, rows = run(seed)
    assert not rows["status"].any()
    assert gain < 1e-2
    assert overlap < DEEPEST


@pytest.mark.parametrize(
    "shape", [shapes.cylinder(0.03, 0.1), shapes.capsule(0.02, 0.08), shapes.cone(0.04, 0.1), shapes.box([0.1, 0.08, 0.06])]
)
def test_a_body_that_tumbles_onto_a_plane_is_never_deep_in_it(shape):
    """Dropped at 3 m/s, turning by 0.3 to 0.8 radians in a step: by less than a hundredth of its length, and it gains no energy."""
    h, mass, rng = 1e-2, 1.0, np.random.default_rng(0)
    inertia = np.eye(3) * shapes.inertia(shape, mass)
    contacts = nsds.collisions({"body": shape}, nsds.newton_impact_friction(0.0, 0.3), world=shapes.plane())
    for _ in range(10):
        p, w = rng.normal(size=4), rng.normal(size=3)
        q, omega = [0, 0, 0.12, *(p / np.linalg.norm(p))], w * rng.uniform(30.0, 80.0) / np.linalg.norm(w)
        body = nsds.rigid_bodies(mass, inertia, q=q, v=[0, 0, -3.0, *omega])
        rows = nsds.simulate(nsds.system(gravity=[0, 0, -9.81], body=body, contacts=contacts), t_end=30 * h, h=h)
        v, c = rows["body"]["v"], rows["contacts"]
        turning = np.einsum("ti,ij,tj->t", v[:, 3:], inertia, v[:, 3:])
        energy = 0.5 * mass * (v[:, :3] ** 2).sum(axis=1) + 0.5 * turning + mass * 9.81 * rows["body"]["q"][:, 2]
        assert not nsds.status.has_failed(rows["status"]).any()
        assert (c["lambda"] > 0).any()
        assert (energy <= energy[0] * (1 + 1e-9)).all()
        assert min(row["y"][: row["n"]].min(initial=0.0) for row in c) > -DEEPEST * 0.1


@pytest.mark.parametrize("masses", [(1.0, 1.0, 1.0), (10.0, 1.0, 5.0)])
@pytest.mark.parametrize("make", [lambda: shapes.sphere(0.05), lambda: shapes.box([0.1, 0.1, 0.1]), lambda: shapes.cylinder(0.05, 0.1)])
def test_a_body_that_another_throws_does_not_end_within_a_third(make, masses):
    """Three in a row: the second rests, 1 cm before the third, and is thrown by 5 cm in the step in which the first one comes."""
    h, shape = 1e-2, make()
    bodies = {
        f"b{k}": nsds.rigid_bodies(
            m, np.eye(3) * shapes.inertia(shape, m), q=[x, 0, 0, 1, 0, 0, 0], v=[8.0 if k == 0 else 0.0, 0, 0, 0, 0, 0]
        )
        for k, (m, x) in enumerate(zip(masses, (-0.13, 0.0, 0.11), strict=True))
    }
    contacts = nsds.collisions(dict.fromkeys(bodies, shape), nsds.newton_impact_friction(0.0, 0.0))
    rows = nsds.simulate(nsds.system(**bodies, contacts=contacts), t_end=5 * h, h=h)
    momentum = sum(m * rows[name]["v"][:, 0] for name, m in zip(bodies, masses, strict=True))
    energy = sum(0.5 * m * (rows[name]["v"][:, :3] ** 2).sum(axis=1) for name, m in zip(bodies, masses, strict=True))
    assert not rows["status"].any()
    np.testing.assert_allclose(momentum, momentum[0], rtol=1e-9)
    assert (np.diff(energy) <= 1e-9 * energy[0]).all()
    assert rows["b2"]["v"][-1, 0] > 0.1
    for row in rows["contacts"]:
        assert row["y"][: row["n"]].min(initial=0.0) > -DEEPEST * 0.1


def test_what_falls_together_is_stopped_together():
    """70 columns of three spheres land in one step, in which each strikes the one below: it is solved once, and nothing overlaps."""
    h, radius, gap = 5e-3, 0.1, 1e-3
    x, y, k = (a.ravel() for a in np.meshgrid(np.arange(10), np.arange(7), np.arange(3)))
    q = np.zeros((x.size, 7))
    q[:, 0], q[:, 1], q[:, 2], q[:, 3] = 0.5 * x, 0.5 * y, (2 * k + 1) * radius + (k + 1) * gap, 1.0
    balls = nsds.rigid_bodies(1.0, 0.4 * radius**2, q=q, v=np.tile([0, 0, -1.0, 0, 0, 0], (x.size, 1)), count=x.size)
    contacts = nsds.collisions({"balls": shapes.sphere(radius)}, nsds.newton_impact_friction(0.0, 0.3), world=shapes.plane())
    rows = nsds.simulate(nsds.system(gravity=[0, 0, -9.81], balls=balls, contacts=contacts), t_end=h, h=h)
    assert not rows["status"].any()
    assert rows["n_iter"][-1] == 2
    assert rows["contacts"]["n"][-1] == x.size
    assert rows["contacts"]["y"][-1].min() > -1e-3 * radius
