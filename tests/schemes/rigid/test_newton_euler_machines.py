"""Machines whose motion is known, as rigid bodies: tops, pendulums, loops, arms with dry friction; schemes to their orders."""

import math

import numpy as np
import pytest

import nsds
from nsds.model import joints
from tests.paths import MACHINES
from tests.schemes.rigid.test_forces import two_masses

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


BOTH = pytest.mark.parametrize("scheme", [None, SECOND_ORDER], ids=["default", "alpha"])


def errors(system, paths, times, steps, scheme):
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
            assert abs(rows[name]["y"]).max() <= 1e-12
        found.append(worst)
    return np.array(found)


@BOTH
def test_a_heavy_top_nutates(scheme):
    r = reference("heavy_top_nutation")
    system = nsds.system(
        top=body(1.0, [0.03, 0.03, 0.02], r["q"][0], r["v"][0]),
        joint=nsds.interaction(joints.ball_joint([0, 0, 0]), EQUAL, on="top"),
    )
    found = errors(system, {"top": (r["t"], r["q"])}, (1.0, 5.0), (1e-3, 5e-4), scheme)
    assert found[0] < 5e-3  # after 32 turns
    assert found[0] / found[1] == pytest.approx(4.0, abs=0.1)


@BOTH
def test_a_body_swings_on_a_tilted_hinge(scheme):
    r = reference("hinge_pendulum_3d")
    inertia = [[0.05, 0.01, -0.008], [0.01, 0.08, 0.012], [-0.008, 0.012, 0.06]]
    system = nsds.system(
        body=body(2.0, inertia, r["q"][0], r["v"][0]),
        joint=nsds.interaction(joints.hinge([0, 0, 0], [0, math.cos(0.3), math.sin(0.3)]), EQUAL, on="body"),
    )
    found = errors(system, {"body": (r["t"], r["q"])}, (1.0, 2.5), (1.25e-3, 6.25e-4), scheme)
    assert found[0] < 1e-3
    assert found[0] / found[1] == pytest.approx(4.0, abs=0.4)


def parts_of_four_bar(r, run):
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
    return bodies | hinges


def four_bar(r, run):
    return nsds.system(**parts_of_four_bar(r, run))


@BOTH
def test_a_four_bar_of_hinges_that_are_redundant(scheme):
    r = reference("four_bar_three_bodies")
    paths = {name: (r["t"], r[f"free_q_{name}"]) for name in ("crank", "coupler", "rocker")}
    found = errors(four_bar(r, "free"), paths, (1.0,), (1e-3, 5e-4), scheme)
    assert found[0] < 3e-5
    assert found[0] / found[1] == pytest.approx(4.0, abs=0.3)


def motor(t, y, ydot, z, out):
    out[0] = 12 + 4 * math.sin(3 * t) - ydot[0]


def with_motor(r):
    return parts_of_four_bar(r, "torque") | {
        "motor": nsds.interaction(joints.hinge_angle([0, 0, 1]), nsds.force_law(motor), on="crank"),
    }


@pytest.mark.parametrize("scheme", [nsds.rattle(), SECOND_ORDER], ids=["rattle", "alpha"])
def test_a_motor_turns_a_four_bar(scheme):
    """Of the case with a torque: the angle of the crank after two seconds and three turns."""
    r, far = reference("four_bar_three_bodies"), []
    system = nsds.system(**with_motor(r))
    for h in (1e-3, 5e-4):
        rows = nsds.simulate(system, t_end=2.0, h=h, scheme=scheme)
        assert (rows["status"] == 0).all()
        far.append(abs(rows["motor"]["y"][[len(rows) // 2, -1]] + 1.0 - r["torque_crank"][[200, 400]]).max())
    assert far[0] < 5e-3
    assert far[0] / far[1] == pytest.approx(4.0, abs=0.4)


@pytest.mark.reference
def test_springs_to_the_tolerance_of_the_case():
    """Of spring_damper_between_bodies: point masses at all times; bodies, whose motion is sensitive, after two seconds and eight."""
    r = reference("spring_damper_between_bodies")
    rows = nsds.simulate(two_masses(nsds.spring_damper(80.0, 1.5)), t_end=8.0, h=1e-4, scheme=nsds.rattle(), save_every=100)
    assert max(abs(rows["masses"]["q"][:, i, :3] - r[f"x{i + 1}"]).max() for i in range(2)) < 1e-6
    coarse, fine = (
        nsds.simulate(off_centre(r), t_end=8.0, h=h, scheme=nsds.rattle(newton_tol=1e-14), save_every=round(0.01 / h))["bodies"]["q"]
        for h in (1e-4, 5e-5)
    )
    q = (4 * fine - coarse) / 3  # what is left of an error of second order is of fourth, as the step is the same backwards
    for at, tolerance in ((200, 1e-8), (800, 1e-6)):
        assert max(abs(q[at, i] - r[f"rb_q{i + 1}"][at]).max() for i in range(2)) < tolerance


def off_centre(r):
    """Two bodies on a spring between points that are not their centres of mass."""
    q, arms = np.stack([r["rb_q1"][0], r["rb_q2"][0]]), np.array([[0.2, 0.1, 0], [-0.15, 0, 0.1]])
    ends = q[:, :3] + nsds.rotations.turned(q[:, 3:], arms)
    bodies = nsds.rigid_bodies([2.0, 1.5], [[0.05, 0.08, 0.11], [0.04, 0.03, 0.02]], q=q, v=[r["rb_v1"][0], r["rb_v2"][0]])
    spring = nsds.interaction(joints.distance(*ends, length=1.2), nsds.spring_damper(60.0), on=("bodies[0]", "bodies[1]"))
    return nsds.system(bodies=bodies, spring=spring)


@pytest.mark.parametrize("scheme", [nsds.moreau_jean(), nsds.rattle(), SECOND_ORDER], ids=["moreau_jean", "rattle", "alpha"])
def test_a_spring_off_centre_between_two_bodies(scheme):
    r, far = reference("spring_damper_between_bodies"), []
    system = off_centre(r)
    for h in (2e-3, 1e-3):
        rows = nsds.simulate(system, t_end=2.0, h=h, scheme=scheme)
        assert (rows["status"] == 0).all()
        far.append(max(abs(rows["bodies"]["q"][-1, i] - r[f"rb_q{i + 1}"][200]).max() for i in range(2)))
        momentum = (rows["bodies"]["v"][..., :3] * np.array([2.0, 1.5])[:, None]).sum(axis=1)
        np.testing.assert_allclose(momentum, [[0, 0, 0.3]] * len(rows), atol=1e-12)
        ledger = nsds.energy(system, rows)
        np.testing.assert_allclose(ledger["kinetic"] + ledger["potential"], r["rb_energy"][0], atol=2e-3)
    assert far[1] < 1e-3
    assert far[0] / far[1] == pytest.approx(4.0, abs=0.2)


@BOTH
def test_a_slider_crank_in_space(scheme):
    r = reference("slider_crank_spatial")
    parts = {"crank": (0.12, [1e-4, 1e-5, 1e-4]), "rod": (0.5, [4e-4, 4e-3, 4e-3]), "slider": (2.0, 1e-4)}
    system = nsds.system(
        **{name: body(m, I, r["q_" + name][0], r["v_" + name][0]) for name, (m, I) in parts.items()},
        joint_0=nsds.interaction(joints.hinge([0, 0.1, 0.12], [1, 0, 0]), EQUAL, on="crank"),
        joint_1=nsds.interaction(joints.ball_joint([0, 0.1, 0.2]), EQUAL, on=("crank", "rod")),
        joint_2=nsds.interaction(joints.ball_joint(r["q_slider"][0][:3]), EQUAL, on=("rod", "slider")),
        joint_3=nsds.interaction(joints.prismatic([1, 0, 0]), EQUAL, on="slider"),
    )
    found = errors(system, {name: (r["t"], r["q_" + name]) for name in parts}, (1.0, 1.5), (5e-4, 2.5e-4), scheme)
    assert found[0] < 1e-4
    assert found[0] / found[1] > 3.8


def along(angle):
    """Direction of a rod in a vertical plane, from the vertical."""
    return np.array([math.sin(angle), 0, -math.cos(angle)])


def rods(angle, other):
    """Two rods in a vertical plane, at angles to the vertical, the second on the first, and their hinges."""

    def rod(start, angle):
        return body(
            1.0, [1 / 12, 1 / 12, 1e-3], [*(start + along(angle) / 2), math.cos(angle / 2), 0, -math.sin(angle / 2), 0], np.zeros(6)
        )

    elbow = along(angle)
    return {
        "one": rod(np.zeros(3), angle),
        "two": rod(elbow, other),
        "joint_0": nsds.interaction(joints.hinge([0, 0, 0], [0, 1, 0]), EQUAL, on="one"),
        "joint_1": nsds.interaction(joints.hinge(elbow, [0, 1, 0]), EQUAL, on=("one", "two")),
    }


def arm(th_1, th_2):
    """Two rods with dry friction in both hinges; th_2 is relative."""
    angle = joints.hinge_angle([0, -1, 0])
    return nsds.system(
        **rods(th_1, th_1 + th_2),
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


def centre(t, q, z, out):
    """A point mass on the plane z = 0."""
    out[0] = q[2]
    out[1], out[2], out[3] = q[0], q[1], q[2]
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def test_a_body_slides_in_a_curve_and_stops():
    """The case incline_curved_stop: x downhill, y across; order 1, the stop within two steps, at rest the force of the weight."""
    slope, mass, mu, speed = 0.4, 1.3, 0.6, 4.0
    stop, end = 1.03575625931202, np.array([-0.00821759517641119, 1.30735177831326])
    weight = mass * 9.81 * np.array([np.sin(slope), 0, -np.cos(slope)])
    system = nsds.system(
        block=nsds.rigid_bodies(
            mass, np.eye(3), q=[0, 0, 0, 1, 0, 0, 0], v=[speed * np.cos(2), speed * np.sin(2), 0, 0, 0, 0], fext=weight
        ),
        plane=nsds.interaction(nsds.contact_point(centre), nsds.newton_impact_friction(0.0, mu), on="block"),
    )
    far = []
    for h in (4e-3, 2e-3):
        rows = nsds.simulate(system, t_end=1.5, h=h, scheme=nsds.moreau_jean(theta=1.0))
        moves = np.linalg.norm(rows["block"]["v"], axis=1) > 1e-12
        assert abs(rows["t"][moves][-1] - stop) < 2 * h
        np.testing.assert_allclose(rows["block"]["p"][-1, :3] / h, -weight, atol=1e-8)
        far.append(np.linalg.norm(rows["block"]["q"][-1, :2] - end))
    assert far[1] < 2e-3 * speed * 2
    assert 1.9 < far[0] / far[1] < 2.1


def tip(t, q, z, out):
    """The end of a rod of length 1 and a wall at x = z[0]."""
    x, y = q[0] - (q[4] * q[6] + q[3] * q[5]), q[1] - (q[5] * q[6] - q[3] * q[4])
    out[0] = z[0] - x
    out[1], out[2], out[3] = x, y, q[2] - 0.5 + q[4] * q[4] + q[5] * q[5]
    out[4], out[5], out[6] = -1.0, 0.0, 0.0


def test_a_double_pendulum_of_bodies_strikes_a_rough_wall():
    """The first impact of the case double_pendulum_wall_friction: its time within a step, its impulses to first order."""
    wall = nsds.interaction(nsds.contact_point(tip, z=[0.3]), nsds.newton_impact_friction(0.6, 0.3), on="two")
    system = nsds.system(**rods(-1.2, -0.4), wall=wall)
    far = []
    for h in (1e-3, 1e-4):
        rows = nsds.simulate(system, t_end=0.7, h=h)
        impulse = rows["wall"]["lambda"]
        first = int(np.argmax(impulse[:, 0] > 0))
        sideways = np.linalg.norm(impulse[first, 1:])
        assert abs(rows["t"][first] - 0.675729689747) < 2 * h
        assert sideways == pytest.approx(0.3 * impulse[first, 0], rel=1e-7)
        far.append(max(abs(impulse[first, 0] - 3.615867911), abs(sideways - 1.084760373)))
        assert far[-1] < 10 * h  # where in its step the impact falls makes more of the error than h


def rim(t, q, z, out):
    """The lowest point of a thin disc of radius z[0] about the third axis of its body."""
    n_x, n_y, n_z = 2 * (q[4] * q[6] + q[3] * q[5]), 2 * (q[5] * q[6] - q[3] * q[4]), 1 - 2 * (q[4] * q[4] + q[5] * q[5])
    s = math.sqrt(1 - n_z * n_z)
    out[0] = q[2] - z[0] * s
    out[1], out[2], out[3] = q[0] + z[0] * n_z * n_x / s, q[1] + z[0] * n_z * n_y / s, out[0]
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


@pytest.mark.parametrize("scheme", [nsds.moreau_jean(), nsds.generalised_alpha()], ids=["moreau_jean", "alpha"])
def test_a_thin_disc_rolls_in_a_circle(scheme):
    """Steady precession of the case rolling_disc_precession, with friction: order 1."""
    mass, R, w3, theta, rate = 1.2, 0.25, -2.25922149960554, 1.0, 6.0
    r, A = R * w3 / rate, mass * R**2 / 4
    system = nsds.system(
        disc=nsds.rigid_bodies(
            mass, np.diag([A, A, 2 * A]), q=[0, 0, R * np.sin(theta), np.cos(theta / 2), np.sin(theta / 2), 0, 0],
            v=[-R * w3, 0, 0, 0, rate * np.sin(theta), w3], fext=[0, 0, -mass * 9.81],
        ),
        plane=nsds.interaction(nsds.contact_point(rim, z=[R]), nsds.newton_impact_friction(0.0, 1.0), on="disc"),
    )  # fmt: skip
    far = []
    for h in (2e-3, 1e-3):
        rows = nsds.simulate(system, t_end=1.0, h=h, scheme=scheme)
        q, lam = rows["disc"]["q"][-1], rows["plane"]["lambda"][1:]
        tilt = np.arccos(1 - 2 * (q[4] ** 2 + q[5] ** 2))
        far.append(np.linalg.norm(q[:2] - [-r * np.sin(6.0), r * (np.cos(6.0) - 1)]) + abs(tilt - theta))
        assert np.median(np.linalg.norm(lam[:, 1:], axis=1) / lam[:, 0]) == pytest.approx(0.345447, abs=0.02)
    assert far[1] < 50 * h
    assert 1.9 < far[0] / far[1] < 2.1
