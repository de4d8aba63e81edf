"""Machines whose motion is known, as rigid bodies: tops, pendulums, loops, arms with dry friction; schemes to their orders."""

import math

import numpy as np
import pytest

import nsds
from nsds.model import joints
from tests.paths import MACHINES

pytestmark = pytest.mark.skipif(not MACHINES.is_dir(), reason="the collection of machines is not part of the package")

TIGHT = {"newton_tol": 1e-13, "constraint_tol": 1e-13}
SECOND_ORDER = nsds.generalised_alpha(**TIGHT)
GRAVITY = 9.81
EQUAL = nsds.equality()


def reference(name):
    with np.load(MACHINES / name / "ref.npz") as stored:
        return dict(stored)


def body(mass, inertia, q, v, down=(0, 0, -1)):
    return nsds.rigid_bodies(mass, inertia, q=q, v=v, fext=mass * GRAVITY * np.array(down))


def errors(system, paths, times, steps, scheme=SECOND_ORDER):
    """Largest error of positions, with the sign of the quaternion as it is, at these times, for each step. paths: name -> (t, q)."""
    found = []
    for h in steps:
        rows = nsds.simulate(system, t_end=max(times), h=h, scheme=scheme)
        assert (rows["status"] == 0).all()
        worst = 0.0
        for name, (t, q) in paths.items():
            wanted, at = np.array([q[np.flatnonzero(np.isclose(t, each))[0]] for each in times]), np.rint(np.array(times) / h).astype(int)
            signs = np.sign((rows[name]["q"][at, 3:] * wanted[:, 3:]).sum(axis=1))[:, None]
            worst = max(
                worst, abs(rows[name]["q"][at, :3] - wanted[:, :3]).max(), abs(signs * rows[name]["q"][at, 3:] - wanted[:, 3:]).max()
            )
        for name in (name for name in rows.dtype.names if name.startswith("joint")):
            assert abs(rows[name]["y"]).max() <= 1.1e-13 + 1e-10 * (scheme["constraint_tol"] > 1e-12)
        found.append(worst)
    return np.array(found)


def test_a_heavy_top_nutates():
    r = reference("heavy_top_nutation")
    system = nsds.system(
        top=body(1.0, [0.03, 0.03, 0.02], r["q"][0], r["v"][0]),
        joint=nsds.interaction(joints.ball_joint([0, 0, 0]), EQUAL, on="top"),
    )
    found = errors(system, {"top": (r["t"], r["q"])}, (1.0, 5.0), (1e-3, 5e-4))
    assert found[0] < 5e-3  # after 32 turns
    assert found[0] / found[1] == pytest.approx(4.0, abs=0.1)


def test_a_body_swings_on_a_tilted_hinge():
    r = reference("hinge_pendulum_3d")
    inertia = [[0.05, 0.01, -0.008], [0.01, 0.08, 0.012], [-0.008, 0.012, 0.06]]
    system = nsds.system(
        body=body(2.0, inertia, r["q"][0], r["v"][0]),
        joint=nsds.interaction(joints.hinge([0, 0, 0], [0, math.cos(0.3), math.sin(0.3)]), EQUAL, on="body"),
    )
    found = errors(system, {"body": (r["t"], r["q"])}, (1.0, 2.5), (1.25e-3, 6.25e-4))
    assert found[0] < 1e-3
    assert found[0] / found[1] == pytest.approx(4.0, abs=0.4)


def four_bar(r, run):
    lengths, masses = {"crank": 0.3, "coupler": 0.8, "rocker": 0.6}, {"crank": 1.0, "coupler": 2.0, "rocker": 1.5}
    bodies, ends = {}, {}
    for name, L in lengths.items():
        m, q = masses[name], r[f"{run}_q_{name}"][0]
        bodies[name] = body(m, [1e-3, m * L * L / 12, m * L * L / 12], q, r[f"{run}_v_{name}"][0], (0, -1, 0))
        angle = 2 * math.atan2(q[6], q[3])
        ends[name] = q[:3] + L / 2 * np.array([math.cos(angle), math.sin(angle), 0])
    sides = {
        (0, 0, 0): "crank",
        tuple(ends["crank"]): ("crank", "coupler"),
        tuple(ends["coupler"]): ("coupler", "rocker"),
        (0.7, 0, 0): "rocker",
    }
    hinges = {f"joint_{i}": nsds.interaction(joints.hinge(point, [0, 0, 1]), EQUAL, on=on) for i, (point, on) in enumerate(sides.items())}
    return nsds.system(**bodies, **hinges)


def test_a_four_bar_of_hinges_that_are_redundant():
    r = reference("four_bar_three_bodies")
    paths = {name: (r["t"], r[f"free_q_{name}"]) for name in ("crank", "coupler", "rocker")}
    found = errors(four_bar(r, "free"), paths, (1.0,), (1e-3, 5e-4))
    assert found[0] < 3e-5
    assert found[0] / found[1] == pytest.approx(4.0, abs=0.3)


def test_a_slider_crank_in_space():
    r = reference("slider_crank_spatial")
    parts = {"crank": (0.12, [1e-4, 1e-5, 1e-4]), "rod": (0.5, [4e-4, 4e-3, 4e-3]), "slider": (2.0, 1e-4)}
    system = nsds.system(
        **{name: body(m, I, r["q_" + name][0], r["v_" + name][0]) for name, (m, I) in parts.items()},
        joint_0=nsds.interaction(joints.hinge([0, 0.1, 0.12], [1, 0, 0]), EQUAL, on="crank"),
        joint_1=nsds.interaction(joints.ball_joint([0, 0.1, 0.2]), EQUAL, on=("crank", "rod")),
        joint_2=nsds.interaction(joints.ball_joint(r["q_slider"][0][:3]), EQUAL, on=("rod", "slider")),
        joint_3=nsds.interaction(joints.prismatic([1, 0, 0]), EQUAL, on="slider"),
    )
    found = errors(system, {name: (r["t"], r["q_" + name]) for name in parts}, (1.0, 1.5), (5e-4, 2.5e-4))
    assert found[0] < 1e-4
    assert found[0] / found[1] > 3.8


def arm(th_1, th_2):
    """Two rods in a vertical plane, the second on the first, with dry friction in both hinges."""

    def along(angle):
        return np.array([math.sin(angle), 0, -math.cos(angle)])

    def rod(start, angle):
        return body(
            1.0, [1 / 12, 1 / 12, 1e-3], [*(start + along(angle) / 2), math.cos(angle / 2), 0, -math.sin(angle / 2), 0], np.zeros(6)
        )

    elbow, angle = along(th_1), joints.hinge_angle([0, -1, 0])
    return nsds.system(
        one=rod(np.zeros(3), th_1),
        two=rod(elbow, th_1 + th_2),
        joint_0=nsds.interaction(joints.hinge([0, 0, 0], [0, 1, 0]), EQUAL, on="one"),
        joint_1=nsds.interaction(joints.hinge(elbow, [0, 1, 0]), EQUAL, on=("one", "two")),
        friction_0=nsds.interaction(angle, nsds.dry_friction(2.0), on="one"),
        friction_1=nsds.interaction(angle, nsds.relay(-0.8, 0.8), on=("two", "one")),
    )


@pytest.mark.parametrize("h", [1e-3, 2.5e-4])
def test_an_arm_sticks_and_slips_in_its_joints(h):
    """Twenty-six events in eight seconds: a bound of 10 h, and rates that are 0 while a joint sticks."""
    r, system = reference("two_link_joint_friction"), arm(1.8, 0.6)
    every = round(0.005 / h)
    rows = nsds.simulate(system, t_end=8.0, h=h, scheme=nsds.generalised_alpha(), save_every=every)
    start = np.array([1.8, 0.6])
    angles = np.stack([rows["friction_0"]["y"], rows["friction_1"]["y"]], axis=1) + start
    wanted = np.stack([r["theta1"], r["theta2"]], axis=1)
    assert abs(angles - wanted).max() < 10 * h
    stuck = np.stack([r["rate1"], r["rate2"]], axis=1) == 0
    stuck[1:-1] &= stuck[:-2] & stuck[2:]  # not next to an event
    rates = np.stack([rows["friction_0"]["ydot"], rows["friction_1"]["ydot"]], axis=1)
    assert stuck.any(axis=0).all()
    assert abs(rates[stuck]).max() < 1e-9
