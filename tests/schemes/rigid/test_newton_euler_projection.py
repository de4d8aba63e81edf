"""Projection of rigid bodies on joints and contacts ([Notes], chapter 13)."""

import numpy as np
import pytest

import nsds
from nsds.model import joints, shapes
from nsds.status import CONVERGED, INEXACT
from tests.scenes import SCENES

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
    rows = nsds.simulate(double_pendulum(), t_end=2.0, h=1e-3, scheme=nsds.moreau_jean())
    assert abs(rows["ball"]["y"]).max() > 1e3 * TOL


def test_projection_is_least_in_its_metric():
    """``M dq`` of a step is in the range of ``H^T``: the bodies of a ball joint move so that their mass-weighted displacements balance."""
    h, start = 1e-2, double_pendulum()
    start["a"]["v"][:3], start["b"]["v"][:3] = [0, 0.3, -1.0], [0, 1.0, -3.0]
    start = nsds.step(start, 1e-6)  # velocities that the joints allow
    plain = nsds.step(start, h, scheme=nsds.moreau_jean())
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


def stack(e, n=3, rigid=True):
    """Balls above each other that fall on a floor: rigid bodies, or the same as Lagrangian system of their heights."""
    heights, g = 0.11 + 0.21 * np.arange(n), 9.81
    if rigid:
        q, ball = np.zeros((n, 7)), shapes.sphere(0.1)
        q[:, 2], q[:, 3] = heights, 1
        return nsds.system(
            balls=nsds.rigid_bodies(1.0, 0.004, q=q, v=np.zeros((n, 6)), fext=[0, 0, -g]),
            contacts=nsds.collisions({"balls": ball}, nsds.newton_impact(e), world=shapes.plane(), margin=0.02),
        )
    H = np.eye(n) - np.eye(n, k=-1)
    relation = nsds.lagrangian_linear_relation(H=H, b=-np.array([0.1, *[0.2] * (n - 1)]))
    return nsds.system(
        balls=nsds.lagrangian_linear(M=np.ones(n), q=heights, v=np.zeros(n), fext=np.full(n, -g)),
        contacts=nsds.interaction(relation, nsds.newton_impact(e), on="balls"),
    )


SCHEMES = {
    "all": nsds.moreau_jean_direct_projection(constraint_tol=1e-10),
    "active": nsds.moreau_jean_direct_projection(constraint_tol=1e-10, contacts="active"),
    "combined": nsds.moreau_jean_combined_projection(constraint_tol=1e-10, metric="mass"),
}


@pytest.mark.parametrize("e", [0.0, 0.5])
@pytest.mark.parametrize("name", list(SCHEMES))
def test_rigid_bodies_move_as_the_lagrangian_system_of_their_heights(name, e):
    rows, plain = (nsds.simulate(stack(e, rigid=rigid), t_end=0.3, h=4e-3, scheme=SCHEMES[name]) for rigid in (True, False))
    np.testing.assert_allclose(rows["balls"]["q"][..., 2], plain["balls"]["q"], rtol=0, atol=2e-9)
    np.testing.assert_allclose(rows["balls"]["v"][..., 2], plain["balls"]["v"], rtol=0, atol=2e-7)


@pytest.mark.parametrize("e", [0.0, 0.5])
def test_what_is_projected(e):
    """All: no gap is negative. Active: none of a contact that has an impulse. Combined: none, and that of contacts that press is 0."""
    runs = {name: nsds.simulate(stack(e), t_end=0.6, h=4e-3, scheme=scheme)["contacts"] for name, scheme in SCHEMES.items()}
    y = {name: run["y"][1:] for name, run in runs.items()}
    pressing = {name: run["lambda"][1:].reshape(y[name].shape) > 0 for name, run in runs.items()}
    assert y["all"].min() >= -1e-10
    assert y["combined"].min() >= -1e-10
    assert y["active"].min() < -1e-3  # for one step, before the impact
    assert y["active"][pressing["active"]].min() >= -1e-10
    assert abs(y["combined"][pressing["combined"]]).max() <= 1e-10
    assert all(mask.any() for mask in pressing.values())


@pytest.mark.parametrize("name", ["active", "combined"])
def test_projections_of_interactions_and_friction(name):
    """A rod on a hinge swings against a stop; a box with a spin falls on its corners and slides to rest."""
    box = shapes.box([0.2, 0.3, 0.4])
    tilted = np.array([0, 0, 0.3, np.cos(0.2), np.sin(0.2), 0, 0])
    system = nsds.system(
        rod=nsds.rigid_bodies(1.0, [0.01, 0.1, 0.1], q=[0.5, 3, 0, 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -9.81]),
        box=nsds.rigid_bodies(1.0, [0.02, 0.016, 0.01], q=tilted, v=[0.3, 0, 0, 0, 0, 1.0], fext=[0, 0, -9.81]),
        hinge=nsds.interaction(joints.hinge([0, 3, 0], [0, 1, 0]), nsds.equality(), on="rod"),
        stop=nsds.interaction(joints.hinge_angle([0, -1, 0], lower=-0.4), nsds.newton_impact(0.3), on="rod"),
        contacts=nsds.collisions({"box": box}, nsds.newton_impact_friction(0.0, 0.5), world=shapes.plane()),
    )
    rows = nsds.simulate(system, t_end=1.5, h=2e-3, scheme=SCHEMES[name])
    assert (rows["status"] == 0).all()
    assert abs(rows["hinge"]["y"]).max() <= 1e-10
    struck = rows["stop"]["lambda"] > 0
    assert struck.any()
    assert rows["stop"]["y"][struck if name == "active" else slice(None)].min() >= -1e-10
    gaps, lam = rows["contacts"]["y"], rows["contacts"]["lambda"].reshape(*rows["contacts"]["y"].shape, -1)
    if name == "combined":
        assert gaps.min() >= -1e-10
        assert abs(rows["stop"]["y"][struck]).max() <= 1e-10
        assert abs(gaps[-1][lam[-1, :, 0] > 0]).max() <= 1e-10
    assert abs(rows["box"]["v"][-1]).max() < 1e-6


def test_contacts_that_contradict_each_other_are_not_violated():
    """The door between its latch and its stops: no position closes all that pressed in one step, whose impulses are inexact."""
    scene = SCENES["door_with_latch"]
    h = max(scene.steps)
    rows = nsds.simulate(scene.build()[0], t_end=40 * h, h=h, scheme=nsds.moreau_jean_combined_projection())
    assert np.isin(rows["status"], (CONVERGED, INEXACT)).all()
    assert (rows["status"] == INEXACT).sum() <= 1


def test_contacts_that_no_velocity_allows_are_left_to_positions():
    """A ball is driven into a wall by a prescribed velocity: the contact cannot join the step."""
    drive = nsds.prescribed_velocity([0], [1.0])
    system = nsds.system(
        ball=nsds.rigid_bodies(1.0, 0.004, q=[-0.105, 0, 0, 1, 0, 0, 0], v=[1.0, 0, 0, 0, 0, 0]),
        drive=nsds.interaction(drive, nsds.equality(), on="ball"),
        wall=nsds.collisions({"ball": shapes.sphere(0.1)}, nsds.newton_impact(0.0), world=shapes.plane([-1, 0, 0])),
    )
    before = nsds.step(system, 4e-3, scheme=SCHEMES["combined"])
    after = nsds.step(before, 2e-3, scheme=nsds.moreau_jean_combined_projection(gamma=0.0))
    assert after["status"] == 0
    np.testing.assert_allclose(after["ball"]["v"][0], 1.0, rtol=1e-12)
    assert after["ball"]["q"][0] <= -0.1 + 1e-10


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("shape", ["box", "cylinder"])
def test_what_tips_over_its_edge_does_so_in_any_units(shape, unit):
    """Lengths in units of 1 m / unit: rounding of large numbers is no violation, and what should be lifted is not turned instead."""
    solid, lean = (
        (shapes.box([0.3 * unit, 0.2 * unit, 0.1 * unit]), 1.16) if shape == "box" else (shapes.cylinder(0.1 * unit, 0.3 * unit), 0.9)
    )
    pose, inertia = [np.cos(lean / 2), np.sin(lean / 2), 0, 0], shapes.inertia(solid, 1.0)
    system = nsds.system(
        gravity=[0, 0, -9.81 * unit],
        solid=nsds.rigid_bodies(1.0, inertia, q=[0, 0, 0.25 * unit, *pose], v=np.zeros(6)),
        contacts=nsds.collisions({"solid": solid}, nsds.newton_impact_friction(e_n=0.0, mu=0.5), world=shapes.plane()),
    )
    rows = nsds.simulate(system, t_end=1.0, h=2e-3, scheme=nsds.moreau_jean_combined_projection())
    assert rows["contacts"]["y"].min() > -max(1e-10, 1e-14 * unit)
    height = rows["solid"]["q"][-1, 2] / unit
    assert min(abs(height - 0.05), abs(height - 0.1)) < 1e-3


def chain_on_a_roll(length, scheme):
    """Positions, in units of length, of a chain that slips down from a roll; gravity is the same, so times are in its square root."""
    n, radius, link = 8, 0.008, 0.04
    capsule, steps = shapes.capsule(radius * length, 0.018 * length), (np.arange(n + 1) - 3) * link
    bend = (0.1 + radius) / np.cos(0.5 * link / (0.1 + radius))  # so that the middles of the links touch the roll
    arc = bend * np.pi / 2
    along = np.clip(steps, -arc, arc) / bend
    points = bend * np.column_stack([np.sin(along), 0 * along, np.cos(along)])
    points[:, 2] -= np.maximum(abs(steps) - arc, 0.0)
    parts, mass = {}, shapes.volume(capsule) * 1000.0
    for k in range(n):
        angle = np.arctan2(*(points[k + 1] - points[k])[[0, 2]])
        q = np.r_[length * (points[k] + points[k + 1]) / 2, np.cos(angle / 2), 0, np.sin(angle / 2), 0]
        parts[f"link{k}"] = nsds.rigid_bodies(mass, shapes.inertia(capsule, mass), q=q, v=np.zeros(6))
        if k > 0:
            joint = joints.ball_joint(length * points[k])
            parts[f"joint{k}"] = nsds.interaction(joint, nsds.equality(), on=(f"link{k - 1}", f"link{k}"))
    roll = shapes.cylinder(0.1 * length, 0.1 * length, orientation=[np.sqrt(0.5), np.sqrt(0.5), 0, 0])
    contacts = nsds.collisions({f"link{k}": capsule for k in range(n)}, nsds.newton_impact_friction(0.0, mu=0.2), world=roll)
    system, h = nsds.system(gravity=[0, 0, -9.81], contacts=contacts, **parts), 2e-3 * np.sqrt(length)
    rows = nsds.simulate(system, t_end=100 * h, h=h, scheme=scheme)
    return np.array([rows[f"link{k}"]["q"][:, :3] / length for k in range(n)])


@pytest.mark.parametrize(
    "scheme", [nsds.moreau_jean_combined_projection(), nsds.moreau_jean_direct_projection(), nsds.generalised_alpha()],
    ids=lambda one: one["scheme"].item().decode(),
)  # fmt: skip
def test_motions_scale_with_lengths(scheme):
    """Whatever the unit, bodies are moved in the same proportion of masses, and violations are judged by lengths."""
    wanted = chain_on_a_roll(1.0, scheme)
    assert abs(wanted[:, -1] - wanted[:, 0]).max() > 5e-3
    for length in (2.0**-20, 2.0**10, 2.0**20):
        np.testing.assert_allclose(chain_on_a_roll(length, scheme), wanted, atol=1e-7)


@pytest.mark.parametrize("length", [2.0**-20, 1.0, 2.0**20])
def test_a_ball_between_walls_that_nearly_face_each_other_stays(length):
    """It presses on both, 1e-7 of its size before them, and closing both gaps would pull it down by a thousand times that."""
    normal, ball = np.array([1.0, 0.0, 1e-3]) / np.hypot(1.0, 1e-3), shapes.sphere(0.1 * length)
    walls = [shapes.plane(normal * [side, 1, 1], -(0.1 + 1e-7) * length) for side in (1, -1)]
    system = nsds.system(
        ball=nsds.rigid_bodies(1.0, shapes.inertia(ball, 1.0), q=[0, 0, 0, 1, 0, 0, 0], v=[0, 0, -length, 0, 0, 0]),
        contacts=nsds.collisions({"ball": ball}, nsds.newton_impact(0.0), world=walls),
    )
    rows = nsds.simulate(system, t_end=2e-3, h=1e-3, scheme=nsds.moreau_jean_combined_projection(theta=1.0))
    assert (rows["contacts"]["lambda"][1, :2] > 0.0).all()
    assert abs(rows["ball"]["q"][:, 2]).max() < 1e-9 * length


def disks_or_spheres(planar):
    """Two on a belt whose hinge has a brake and a stop from which it rebounds, and a third that a spring draws along."""
    mass, moment, x, v = [1.0, 0.7, 2.0], 4e-3, [[0, 0.1], [0.22, 0.12], [0.5, 0.3]], [[1, 0, 3], [-0.5, 0.2, -2], [-1, 0, 10]]
    if planar:
        bodies = {f"b{i}": nsds.planar_bodies(m, m * moment, q=[*x[i], 0], v=v[i]) for i, m in enumerate(mass)}
        shape, world = shapes.disk(0.1), [shapes.half_plane(), shapes.half_plane([1, 0], -0.3), shapes.half_plane([-1, 0], -0.7)]
    else:
        bodies = {
            f"b{i}": nsds.rigid_bodies(m, m * moment, q=[*x[i], 0, 1, 0, 0, 0], v=[*v[i][:2], 0, 0, 0, v[i][2]]) for i, m in enumerate(mass)
        }
        shape, world = shapes.sphere(0.1), [shapes.plane([0, 1, 0]), shapes.plane([1, 0, 0], -0.3), shapes.plane([-1, 0, 0], -0.7)]
    z, hinged = [0, 0, 1], ("b0", "b1")
    spring = joints.distance([0.22, 0.12, 0], [0.5, 0.3, 0], length=0.25)
    return nsds.system(
        gravity=[0, -9.81, 0],
        **bodies,
        hinge=nsds.interaction(joints.hinge([0.11, 0.11, 0], z), nsds.equality(), on=hinged),
        brake=nsds.interaction(joints.hinge_angle(z), nsds.dry_friction(0.05), on=hinged),
        stops=nsds.interaction(joints.hinge_angle(z, lower=-0.4, upper=0.3), nsds.newton_impact(0.4), on=hinged),
        spring=nsds.interaction(spring, nsds.spring_damper(20.0, 0.3), on=("b1", "b2")),
        contacts=nsds.collisions(
            dict.fromkeys(bodies, shape), nsds.newton_impact_friction(0.5, 0.4), world=world,
            pairs=[("b0", "world"), ("b1", "world"), ("b2", "world"), ("b0", "b2"), ("b1", "b2")],
        ),
    )  # fmt: skip


def test_a_stop_that_opens_is_not_closed_again():
    """An impulse that rounding leaves is no pressure: the same machine in the plane and in space moves alike."""
    plane, space = (
        nsds.simulate(disks_or_spheres(planar), t_end=0.3, h=2e-3, scheme=nsds.moreau_jean_combined_projection())
        for planar in (True, False)
    )
    assert (plane["stops"]["lambda"][:, 1] > 1e-3).any()
    assert (plane["stops"]["y"][1:, 1] > 1e-3).any()
    for name in ("b0", "b1", "b2"):
        np.testing.assert_allclose(plane[name]["q"], space[name]["q"], rtol=0, atol=1e-8)
