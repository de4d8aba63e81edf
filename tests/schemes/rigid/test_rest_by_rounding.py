"""Mechanisms at rest, whose velocities are rounding: no step fails for it, whatever the units and whatever moves beside them."""

import numpy as np
import pytest

import nsds
from nsds import joints

Z = [0, 0, 1]
UNITS = [(1, 1, 1), (1e3, 1, 1), (1, 1e-6, 1), (1, 1e6, 1), (1, 1, 1e-6), (1, 1, 1e6)]  # of length, mass and time
SCHEMES = {"rattle": nsds.rattle(), "moreau_jean": nsds.moreau_jean(), "projection": nsds.moreau_jean_combined_projection()}


def failures(system, t_end, h, scheme=None):
    rows = nsds.simulate(system, t_end=t_end, h=h, scheme=scheme, on_failure="continue")
    return int(nsds.status.has_failed(rows["status"]).sum()), rows


@pytest.mark.parametrize("h", [4e-3, 1e-2, 2e-2])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_door_that_its_brake_stops_rests(h, scheme):
    """It stops after ``J w / M`` of time, having turned by ``J w^2 / (2 M)``; w is then no more than rounding of its place."""
    J = 1.7 + 20 * 0.45**2
    system = nsds.system(
        door=nsds.rigid_bodies(20.0, [1.7, 1.7, 1.7], q=[0.45, 0, 0, 1, 0, 0, 0], v=[0, 1.35, 0, 0, 0, 3.0]),
        pin=nsds.interaction(joints.hinge(point=[0, 0, 0], axis=Z), nsds.equality(), on="door"),
        brake=nsds.interaction(joints.hinge_angle(axis=Z), nsds.dry_friction(5.0), on="door"),
    )
    n_failed, rows = failures(system, 6.0, h, SCHEMES[scheme])
    assert n_failed == 0
    if scheme == "rattle":  # the others hold the hinge for velocities, or move the door back onto it
        assert abs(rows["brake"]["y"][-1].item() - J * 9 / 10) < 3 * h
    assert abs(rows["door"]["v"][-1]).max() < 1e-10


def wheels(length, mass, time, v):
    """A wheel that its brake holds, whose centre has a velocity, beside one that a motor turns."""
    inertia, torque = mass * length**2, 0.02 * mass * length**2 / time**2
    return nsds.system(
        wheel=nsds.planar_bodies(0.1 * mass, 2e-4 * inertia, q=[0.1 * length, 0, 0], v=[0, v * length / time, 0]),
        hinge=nsds.interaction(joints.hinge([0.1 * length, 0, 0], Z), nsds.equality(), on="wheel"),
        driver=nsds.planar_bodies(0.1 * mass, 1e-4 * inertia, q=[0, 0, 0], v=[0, 0, 6.0 / time]),
        pivot=nsds.interaction(joints.hinge([0, 0, 0], Z), nsds.equality(), on="driver"),
        brake=nsds.interaction(joints.hinge_angle(Z), nsds.dry_friction(torque), on="wheel"),
        motor=nsds.interaction(nsds.prescribed_velocity([5], 6.0 / time), nsds.equality(), on="driver"),
    )


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("v", [0.0, 1e-3, 1e-12, 1e-27])
def test_a_wheel_at_rest_beside_one_that_turns(v, scheme):
    for length, mass, time in UNITS:
        n_failed, rows = failures(wheels(length, mass, time, v), 0.02 * time, 1e-3 * time, SCHEMES[scheme])
        assert n_failed == 0
        assert abs(rows["wheel"]["v"][-1]).max() <= 1e-11 * max(length, 1.0) / time
        np.testing.assert_allclose(rows["driver"]["v"][-1, -1], 6.0 / time, rtol=1e-9)


@pytest.mark.parametrize("v", [0.0, 1e-3, 1e-12, 1e-17])
def test_a_loop_that_its_brake_holds_beside_a_body_that_turns(v):
    P, parts = np.array([[0, 0], [0, 0.3], [0.8, 0.3], [0.8, 0]]), {}
    for k in range(3):
        parts[f"link{k}"] = nsds.planar_bodies(1.0, 0.02, q=[*(P[k] + P[k + 1]) / 2, 0], v=[v, -v, v])
    for k in range(4):
        on = "link0" if k == 0 else "link2" if k == 3 else (f"link{k - 1}", f"link{k}")
        parts[f"joint{k}"] = nsds.interaction(joints.hinge([*P[k], 0], Z), nsds.equality(), on=on)
    parts["brake"] = nsds.interaction(joints.hinge_angle(Z), nsds.dry_friction(0.5), on="link0")
    parts["wheel"] = nsds.planar_bodies(1.0, 0.02, q=[5, 0, 0], v=[0, 0, 6])
    parts["pivot"] = nsds.interaction(joints.hinge([5, 0, 0], Z), nsds.equality(), on="wheel")
    for scheme in SCHEMES.values():
        assert failures(nsds.system(**parts), 0.02, 1e-3, scheme)[0] == 0


def test_what_is_not_solved_fails_all_the_same():
    """Rounding of the state excuses no iteration that is cut short: a body that tumbles moves far beside it."""
    body = nsds.rigid_bodies(1.0, [1.0, 2.0, 3.0], q=[0, 0, 0, 1, 0, 0, 0], v=[0, 0, 0, 30.0, 20.0, 10.0])
    n_failed, rows = failures(nsds.system(body=body), 0.05, 1e-2, nsds.moreau_jean(theta=1.0, newton_max_iter=1))
    assert n_failed + int((rows["status"] == nsds.status.INEXACT).sum()) == 5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("drop", [0.02, 0.03, 0.05])
def test_what_falls_flat_does_not_tumble(drop, scheme):
    """A box bounces on all corners until it rests: an impulse of rounding at a corner in flight carries nothing."""
    box = nsds.shapes.box([0.5, 0.6, 0.4])
    body = nsds.rigid_bodies(1.0, 0.4 * 0.1**2, q=[0, 0, 0.2 + drop, 1, 0, 0, 0], v=[0.5, 0, -0.5, 0, 0, 0], fext=[0.3, 0, -9.81])
    system = nsds.system(body=body, floor=nsds.collisions({"body": box}, nsds.newton_impact(0.4), world=nsds.shapes.plane()))
    n_failed, rows = failures(system, 0.4, 1e-3, SCHEMES[scheme])
    assert n_failed == 0
    assert abs(rows["body"]["v"][:, 3:]).max() < 1e-9
    np.testing.assert_allclose(rows["body"]["q"][-1, 2], 0.2, atol=2e-3)
