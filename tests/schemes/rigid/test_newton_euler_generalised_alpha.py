"""Generalised-alpha of rigid bodies against a plain twin, closed forms, and the system of their heights."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import nsds
from nsds.model import joints, shapes
from tests import reference_newton_euler as twin
from tests.model.test_joints import turn
from tests.schemes.rigid.test_newton_euler import JOINTS, TOP, Scene, quaternion_at
from tests.schemes.rigid.test_newton_euler_bounds import driven_ball, wheel
from tests.schemes.rigid.test_newton_euler_projection import double_pendulum, stack
from tests.strategies import examples, generators

GRAVITY = 9.81
TIGHT = {"newton_tol": 1e-13, "newton_max_iter": 200, "constraint_tol": 1e-13}
RHOS = [0.0, 0.5, 0.8, 1.0]


def rope(t, q, z, out):
    """Half the squared distance of two centres is z0 + z1 t."""
    out[0] = 0.5 * ((q[0] - q[7]) ** 2 + (q[1] - q[8]) ** 2 + (q[2] - q[9]) ** 2) - z[0] - z[1] * t


def rope_by_t(t, q, z, out):
    out[0] = -z[1]


def add_rope(scene):
    z = np.array([((scene.q[0][:3] - scene.q[1][:3]) ** 2).sum() / 2, scene.rng.normal()])
    relation = nsds.newton_euler_relation(rope, h_t=rope_by_t, m=1, z=z)
    scene.parts["rope"] = nsds.interaction(relation, nsds.equality(), on=("a", "b"))
    scene.equations.append(twin.Equations(0, 1, lambda t, q_a, q_b: scene.evaluated(rope, 1, t, [*q_a, *q_b], z)))


def compare(scene, n_steps, rho, h=0.02):
    """n_steps of the package and of the twin from the consistent start of a scene."""
    scheme = nsds.generalised_alpha(rho=rho, **TIGHT)
    record = nsds.consistent(nsds.system(**scene.parts), tol=1e-13)
    q, v = ([record[name][field].copy() for name in "ab"] for field in "qv")
    solver = nsds.solvers.solver(tol=1e-12)
    rows = nsds.simulate(record, t_end=n_steps * h, h=h, scheme=scheme, solver=solver, fields=["a", "b", "a.p", "b.p"])
    a = twin.start_accelerations(scene.bodies, scene.equations, 0.0, q, v)
    accelerations = a, a
    for k in range(n_steps):
        q, v, p, accelerations = twin.alpha_step(scene.bodies, scene.equations, scene.contacts, k * h, q, v, accelerations, h, rho)
        for i, name in enumerate("ab"):
            for field, wanted in (("q", q), ("v", v), ("p", p)):
                np.testing.assert_allclose(rows[name][field][k + 1], wanted[i], rtol=0, atol=1e-7, err_msg=f"{name}.{field}, step {k}")


@pytest.mark.parametrize("second", JOINTS)
@settings(examples(2), phases=[Phase.explicit, Phase.generate])
@given(rng=generators, rho=st.sampled_from(RHOS), first=st.sampled_from(list(JOINTS)), bushing=st.booleans())
def test_twin_with_joints(second, rng, rho, first, bushing):
    scene = Scene(rng, bushing)
    scene.add_joint(first, "ab")
    scene.add_joint(second, "b")
    if first == "none":
        add_rope(scene)
    compare(scene, 3, rho)


@pytest.mark.parametrize("kind", JOINTS)
@settings(examples(6), phases=[Phase.explicit, Phase.generate])
@given(rng=generators, rho=st.sampled_from(RHOS))
def test_twin_with_contacts(kind, rng, rho):
    scene = Scene(rng, False)
    scene.add_joint(kind, "b")
    scene.add_contacts()
    compare(scene, 2, rho)


def test_twin_of_contacts_that_push_bodies_into_each_other():
    scene = Scene(np.random.default_rng(10823), False)
    scene.add_joint("ball", "b")
    scene.add_contacts()
    compare(scene, 3, 1.0)


def orders(error, steps):
    """Orders of convergence between steps that are halved, for every component of error(h)."""
    errors = np.array([error(h) for h in steps])
    return np.log2(errors[:-1] / errors[1:]), errors


@pytest.mark.parametrize("rho", RHOS)
def test_a_free_top_is_of_order_two(rho):
    def error(h):
        system = nsds.system(top=nsds.rigid_bodies(v=[0, 0, 0, 0.8, 0, 2.0], **TOP))
        top = nsds.simulate(system, t_end=2.0, h=h, scheme=nsds.generalised_alpha(rho=rho, **TIGHT))["top"]
        assert abs(np.linalg.norm(top["q"][:, 3:], axis=1) - 1).max() < 1e-14
        energy = (top["v"][:, 3:] ** 2 @ TOP["inertia"]) / 2
        return abs(top["q"][-1, 3:] - quaternion_at(2.0)).max(), abs(energy - energy[0]).max()

    found, errors = orders(error, (0.02, 0.01, 0.005))
    np.testing.assert_allclose(found[:, 0], 2.0, atol=0.1)
    assert errors[-1, 1] < 1e-12 if rho == 1.0 else (found[:, 1] > 1.9).all()  # without damping the energy is kept
    assert errors[-1, 1] < 1e-4  # of 2.8 J


AXIS = np.array([0.0, math.cos(0.3), math.sin(0.3)])
ARM = 0.1 * AXIS + 0.5 * np.array([0.0, math.sin(0.3), -math.cos(0.3)])  # the centre of mass where the pendulum hangs
INERTIA = np.array([[0.05, 0.01, -0.008], [0.01, 0.08, 0.012], [-0.008, 0.012, 0.06]])


def pendulum(angle):
    """A body of 2 kg on one tilted hinge, and its angle in time: ``2 asin(k sn(w t + K, k))`` from rest."""
    p = turn(AXIS, angle)
    system = nsds.system(
        body=nsds.rigid_bodies(2.0, INERTIA, q=[*(twin.matrix(p) @ ARM), *p], v=np.zeros(6), fext=[0, 0, -2 * GRAVITY]),
        hinge=nsds.interaction(joints.hinge([0, 0, 0], AXIS), nsds.equality(), on="body"),
    )
    m = math.sin(angle / 2) ** 2
    w = math.sqrt(2 * GRAVITY * math.cos(0.3) * 0.5 / (AXIS @ INERTIA @ AXIS + 2 * 0.25))
    return system, lambda t: 2 * np.arcsin(math.sqrt(m) * ellipj(w * t + ellipk(m), m)[0])


@pytest.mark.parametrize("rho", RHOS)
def test_a_pendulum_on_a_hinge_is_of_order_two_and_on_its_joint(rho):
    system, angle = pendulum(2.0)

    def error(h):
        rows = nsds.simulate(system, t_end=2.0, h=h, scheme=nsds.generalised_alpha(rho=rho, **TIGHT))
        assert abs(rows["hinge"]["y"]).max() <= 1e-13
        assert abs(rows["hinge"]["ydot"]).max() <= 1e-12
        turns = [turn(AXIS, each) for each in angle(rows["t"])]
        x = np.array([twin.matrix(p) @ ARM for p in turns])
        q = rows["body"]["q"]
        sign = np.sign((q[:, 3:] * turns).sum(axis=1))[:, None]
        return abs(q[:, :3] - x).max(), abs(q[:, 3:] - sign * turns).max()

    found, _ = orders(error, (5e-3, 2.5e-3, 1.25e-3))
    np.testing.assert_allclose(found[-1], 2.0, atol=0.1)


def test_a_heavy_top_is_of_order_two():
    """Spin and the momentum about gravity are kept, and the inclination follows Euler's equations."""
    m, arm, I, spin, tilt = 1.0, 0.3, np.array([0.03, 0.03, 0.02]), 40.0, 0.9
    I_1 = I[0] + m * arm**2
    p = turn([1, 0, 0], tilt)
    R = twin.matrix(p)
    rates = np.array([0.0, math.sin(tilt), spin])  # phi' = 1, psi' = spin - cos(tilt)
    q = [*(R @ [0, 0, arm]), *p]
    system = nsds.system(
        top=nsds.rigid_bodies(m, I, q=q, v=[*(R @ np.cross(rates, [0, 0, arm])), *rates], fext=[0, 0, -m * GRAVITY]),
        tip=nsds.interaction(joints.ball_joint([0, 0, 0]), nsds.equality(), on="top"),
    )
    L = I_1 * math.sin(tilt) ** 2 + I[2] * spin * math.cos(tilt)

    def motion(t, x):
        sine, cosine = math.sin(x[0]), math.cos(x[0])
        turning = (L - I[2] * spin * cosine) / (I_1 * sine**2)
        return x[1], (I_1 * turning**2 * cosine - I[2] * spin * turning + m * GRAVITY * arm) * sine / I_1

    exact = solve_ivp(motion, (0, 0.5), [tilt, 0.0], rtol=1e-11, atol=1e-12).y[0, -1]

    def error(h):
        rows = nsds.simulate(system, t_end=0.5, h=h, scheme=nsds.generalised_alpha(**TIGHT))
        top = rows["top"]
        np.testing.assert_allclose(top["v"][:, 5], spin, rtol=1e-11)
        assert abs(rows["tip"]["y"]).max() <= 1e-13
        along = [np.cross(m * x[:3], w[:3])[2] + (twin.matrix(x[3:]) @ (I * w[3:]))[2] for x, w in zip(top["q"], top["v"], strict=True)]
        return abs(math.acos(twin.matrix(top["q"][-1, 3:])[2, 2]) - exact), abs(np.array(along) - L).max()

    found, _ = orders(error, (2e-3, 1e-3, 5e-4))
    np.testing.assert_allclose(found[:, 0], 2.0, atol=0.1)
    assert (found[:, 1] > 1.8).all()


def test_a_double_pendulum_of_bodies_is_of_order_two_and_keeps_its_energy():
    def run(h):
        rows = nsds.simulate(double_pendulum(), t_end=1.0, h=h, scheme=nsds.generalised_alpha(**TIGHT))
        assert max(abs(rows[name]["y"]).max() for name in ("hinge", "ball")) <= 1e-13
        return rows

    def energy(rows):
        return sum((rows[b]["v"][:, :3] ** 2).sum(axis=1) / 2 + rows[b]["v"][:, 3:] ** 2 @ [0.05, 0.1, 0.075] + GRAVITY * rows[b]["q"][:, 2]
                   for b in "ab")  # fmt: skip

    runs = [run(h) for h in (8e-3, 4e-3, 2e-3, 1e-3)]
    steps = [abs(fine["b"]["q"][-1] - coarse["b"]["q"][-1]).max() for coarse, fine in pairwise(runs)]
    np.testing.assert_allclose(np.log2(np.array(steps[:-1]) / steps[1:]), 2.0, atol=0.25)
    drifts = [abs(energy(rows) - energy(rows)[0]).max() for rows in runs]
    assert drifts[-1] < 1e-3
    assert drifts[1] / drifts[-1] > 12


def test_a_spring_is_of_order_two_and_a_stiff_one_is_damped():
    """``m x'' = -k x``; with rho = 0 what a step does not resolve is gone after a step or two."""

    def bound(k, h, t_end, rho):
        K = np.zeros((6, 7))
        K[0, 0] = k
        system = nsds.system(body=nsds.rigid_bodies(1.0, 1.0, q=[0.1, 0, 0, 1, 0, 0, 0], v=np.zeros(6), K=K))
        return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.generalised_alpha(rho=rho, **TIGHT))["body"]["q"][:, 0]

    found, _ = orders(lambda h: (abs(bound(25.0, h, 1.0, 0.8)[-1] - 0.1 * math.cos(5.0)),), (0.02, 0.01, 0.005))
    np.testing.assert_allclose(found, 2.0, atol=0.1)
    assert abs(bound(1e10, 0.01, 0.2, 0.0)[-1]) < 1e-6
    assert abs(bound(1e10, 0.01, 0.2, 1.0)[-1]) > 0.05


def test_falling_balls_are_the_lagrangian_system_of_their_heights():
    rows, plain = (nsds.simulate(stack(0.0, rigid=rigid), t_end=0.5, h=4e-3, scheme=nsds.generalised_alpha()) for rigid in (True, False))
    np.testing.assert_allclose(rows["balls"]["q"][..., 2], plain["balls"]["q"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(rows["balls"]["v"][..., 2], plain["balls"]["v"], rtol=0, atol=1e-8)
    lam = rows["contacts"]["lambda"][-1].ravel()
    np.testing.assert_allclose(np.sort(lam[lam > 0]), GRAVITY * 4e-3 * np.array([1, 2, 3]), rtol=1e-6)


def test_a_ball_bounces_with_its_restitution():
    """Momentum of each step is that of weight and impulse, and the heights of the bounces fall by e^2."""
    q, h = np.array([0, 0, 0.6, 1, 0, 0, 0]), 1e-3
    system = nsds.system(
        ball=nsds.rigid_bodies(1.0, 0.004, q=q, v=np.zeros(6), fext=[0, 0, -GRAVITY]),
        floor=nsds.collisions({"ball": shapes.sphere(0.1)}, nsds.newton_impact_friction(0.8, 0.3), world=shapes.plane()),
    )
    rows = nsds.simulate(system, t_end=1.5, h=h, scheme=nsds.generalised_alpha())
    ball, floor = rows["ball"], rows["floor"]
    assert floor["y"].min() >= -1e-10
    np.testing.assert_allclose(np.diff(ball["v"][:, 2]) + GRAVITY * h, ball["p"][1:, 2], rtol=0, atol=1e-12)
    np.testing.assert_allclose(floor["lambda"].reshape(len(rows), -1, 3).sum(axis=1)[1:, 0], ball["p"][1:, 2], rtol=0, atol=1e-12)
    first, second = np.flatnonzero(ball["p"][:, 2] > 0)[:2]
    assert ball["v"][first, 2] == pytest.approx(-0.8 * ball["v"][first - 1, 2], rel=1e-10)
    assert ball["q"][first:second, 2].max() - 0.1 == pytest.approx(0.5 * 0.64, rel=0.01)


@pytest.mark.parametrize(("limit", "rolls"), [(0.2, True), (2.0, False)])
def test_friction_and_motors_are_impulses(limit, rolls):
    h = 1e-3
    rows = nsds.simulate(driven_ball(limit), t_end=0.1, h=h, scheme=nsds.generalised_alpha())
    acceleration = limit / 0.1 / (1.0 + 0.004 / 0.01) if rolls else 0.4 * GRAVITY
    np.testing.assert_allclose(rows["ball"]["v"][:, 0], acceleration * rows["t"], rtol=0, atol=1e-8)
    assert (rows["motor"]["lambda"] <= limit * h + 1e-12).all()
    contact = rows["floor"]["lambda"][1:]
    assert (np.hypot(contact[:, 1], contact[:, 2]) <= 0.4 * contact[:, 0] + 1e-12).all()


def test_a_brake_stops_a_wheel():
    rows = nsds.simulate(wheel(3.0, nsds.relay(-4.0, 1.0)), t_end=3.0, h=1e-2, scheme=nsds.generalised_alpha())
    np.testing.assert_allclose(rows["wheel"]["v"][:, 5], np.maximum(3.0 - 2.0 * rows["t"], 0.0), rtol=0, atol=1e-9)


@pytest.mark.parametrize("law", [nsds.relay(-0.3, 0.2), nsds.relay(-0.1, 0.2), nsds.relay(0.0, 0.2)], ids=["hold", "less", "push"])
def test_bounds_that_are_not_opposite_move_bodies_by_their_force_alone(law):
    """Two bodies on a slide, that tumble, under a relay, and under what it comes to: dry friction that holds, or a constant push."""

    def of_slide(scheme, law):
        axis, x, v, turn = [1, 1, 0], np.array([0.5, 0.1, 0]), np.array([0.1, 0.2, -0.1]), np.array([0.5, -0.3, 0.2])
        system = nsds.system(
            a=nsds.rigid_bodies(1.0, [0.02, 0.03, 0.04], q=[0, 0, 0, 1, 0, 0, 0], v=[*v, *turn]),
            b=nsds.rigid_bodies(2.0, [0.05, 0.03, 0.06], q=[*x, 1, 0, 0, 0], v=[*(v + np.cross(turn, x)), *turn]),
            slide=nsds.interaction(joints.prismatic(axis), nsds.equality(), on=("a", "b")),
            drive=nsds.interaction(joints.slide_along(axis), law, on=("a", "b")),
        )
        return nsds.simulate(system, t_end=0.1, h=2e-3, scheme=scheme)

    rows, same = of_slide(nsds.generalised_alpha(), law), of_slide(nsds.rattle(), law)
    np.testing.assert_allclose(rows["drive"]["y"], same["drive"]["y"], rtol=0, atol=5e-5)  # creep of order h under rattle
    np.testing.assert_allclose(rows["a"]["q"], same["a"]["q"], rtol=0, atol=5e-5)


def test_a_drive_that_varies_is_followed():
    drive = nsds.prescribed_velocity([5], 0.0, amplitude=2.0, omega=3.0)
    system = wheel(2.0, nsds.equality(), drive)
    rows = nsds.simulate(system, t_end=1.0, h=1e-2, scheme=nsds.generalised_alpha(**TIGHT))
    np.testing.assert_allclose(rows["wheel"]["v"][:, 5], 2.0 * np.cos(3.0 * rows["t"]), rtol=0, atol=1e-12)
    moments = rows["extra"]["lambda"][5:] / 1e-2
    np.testing.assert_allclose(moments, -2.0 * 2.0 * 3.0 * np.sin(3.0 * rows["t"][5:]), rtol=0, atol=0.1)


def test_resting_boxes_stay_and_records_grow():
    """A box on a plane and one on it; a record with room for one contact gets more."""
    box = shapes.box([0.2, 0.2, 0.1])
    q = np.zeros((2, 7))
    q[:, 2], q[:, 3] = [0.05, 0.15], 1
    system = nsds.system(
        boxes=nsds.rigid_bodies(1.0, shapes.inertia(box, 1.0), q=q, v=np.zeros((2, 6)), fext=[0.5, 0, -GRAVITY]),
        contacts=nsds.collisions({"boxes": box}, nsds.newton_impact_friction(0.0, 0.4), world=shapes.plane(), capacity=1),
    )
    rows = nsds.simulate(system, t_end=0.5, h=5e-3, scheme=nsds.generalised_alpha())
    assert abs(rows["boxes"]["v"]).max() < 1e-7
    assert abs(rows["boxes"]["q"] - q).max() < 1e-8
    assert rows["contacts"]["n"].min() >= 8


def test_a_restart_goes_on():
    """With accelerations of its state: as accurate, though not the same bits."""
    scheme = nsds.generalised_alpha(**TIGHT)
    rows = nsds.simulate(double_pendulum(), t_end=0.4, h=1e-3, scheme=scheme)
    half = nsds.restart(double_pendulum(), rows[200])
    again = nsds.simulate(half, t_end=0.4, h=1e-3, scheme=scheme)
    np.testing.assert_allclose(again["b"]["q"][-1], rows["b"]["q"][-1], rtol=0, atol=1e-5)
