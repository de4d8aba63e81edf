"""Projection of rigid bodies on joints and contacts ([Notes], chapter 13)."""

import numpy as np
import pytest

import nsds
from nsds.model import joints, shapes

TOL = 1e-11


def double_pendulum():
    body = {"mass": 1.0, "inertia": [0.1, 0.2, 0.15], "v": np.zeros(6), "fext": [0, 0, -9.81]}
    return nsds.system(
        a=nsds.rigid_bodies(q=[0.5, 0, 0, 1, 0, 0, 0], **body),
        b=nsds.rigid_bodies(q=[1.5, 0, 0, 1, 0, 0, 0], **body),
        hinge=nsds.interaction(joints.hinge(point=[0, 0, 0], axis=[0, 1, 0]), nsds.equality(), on="a"),
        ball=nsds.interaction(joints.ball_joint([1, 0, 0]), nsds.equality(), on=("a", "b")),
    )


@pytest.mark.parametrize("metric", ["mass", "identity"])
def test_joints_stay_closed_and_quaternions_unit(metric):
    scheme = nsds.moreau_jean_direct_projection(constraint_tol=TOL, metric=metric)
    rows = nsds.simulate(double_pendulum(), t_end=20.0, h=1e-3, scheme=scheme, save_every=10)
    assert max(abs(rows[name]["y"]).max() for name in ("hinge", "ball")) <= TOL
    for name in "ab":
        assert abs(np.linalg.norm(rows[name]["q"][:, 3:], axis=1) - 1).max() < 1e-15


def test_without_it_joints_drift():
    rows = nsds.simulate(double_pendulum(), t_end=2.0, h=1e-3)
    assert abs(rows["ball"]["y"]).max() > 1e3 * TOL


def test_projection_is_least_in_its_metric():
    """``M dq`` of a step is in the range of ``H^T``: the bodies of a ball joint move so that their mass-weighted displacements balance."""
    h, start = 1e-2, double_pendulum()
    start["a"]["v"][:3], start["b"]["v"][:3] = [0, 0.3, -1.0], [0, 1.0, -3.0]
    start = nsds.step(start, 1e-6)  # velocities that the joints allow
    plain = nsds.step(start, h)
    moved = nsds.step(start, h, scheme=nsds.moreau_jean_direct_projection(constraint_tol=TOL, max_rounds=1000))
    np.testing.assert_array_equal(plain["b"]["v"], moved["b"]["v"])
    x, y = moved["b"]["q"][:3] - plain["b"]["q"][:3], moved["ball"]["y"]
    assert abs(y).max() <= TOL
    assert 0 < np.linalg.norm(x) <= 2 * np.linalg.norm(plain["ball"]["y"])


def test_penetrating_balls_are_pushed_apart():
    ball, n = shapes.sphere(0.1), 5
    q = np.zeros((n, 7))
    q[:, 2], q[:, 3] = 0.1 + 0.21 * np.arange(n), 1
    system = nsds.system(
        balls=nsds.rigid_bodies(1.0, 0.004, q=q, v=np.zeros((n, 6)), fext=[0, 0, -9.81]),
        contacts=nsds.collisions({"balls": ball}, nsds.newton_impact_friction(0.0, 0.3), world=shapes.plane()),
    )
    scheme = nsds.moreau_jean_direct_projection(constraint_tol=1e-10)
    rows, plain = (nsds.simulate(system, t_end=0.5, h=2e-3, scheme=choice) for choice in (scheme, nsds.moreau_jean()))
    assert plain["contacts"]["y"].min() < -1e-5
    assert rows["contacts"]["y"].min() >= -1e-10
    np.testing.assert_allclose(rows["balls"]["q"][-1, :, 2], 0.1 + 0.2 * np.arange(n), rtol=0, atol=1e-4)


def test_refusals():
    with pytest.raises(ValueError, match="contacts='active' is for Lagrangian systems"):
        nsds.simulate(double_pendulum(), t_end=0.1, h=0.01, scheme=nsds.moreau_jean_direct_projection(contacts="active"))
    with pytest.raises(ValueError, match="this scheme is for Lagrangian systems"):
        nsds.simulate(double_pendulum(), t_end=0.1, h=0.01, scheme=nsds.moreau_jean_combined_projection())
