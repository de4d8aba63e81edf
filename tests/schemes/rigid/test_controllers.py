"""Sampled controllers that read contacts and joints and drive several bodies, against closed forms."""

import numpy as np
import pytest

import nsds
from nsds import joints
from tests.schemes.rigid.test_control import AT_ORIGIN, AT_REST, over_schemes, run

UPRIGHT, ALONG_X = [1, 0, 0, 0], np.eye(6)[:, :1]
WANTED, GAIN, H = 12.0, 0.3, 0.01


def face(t, q, z, out):
    """The finger's face against an object whose own lies at z[0]."""
    out[0], out[1], out[4] = z[0] - q[0], z[0], -1.0


def hold(t, x, state, z, u):
    """Integral of the error of the normal force, of which x[0] is the impulse of a step."""
    u[0] += z[1] * (z[0] - x[0] / z[2])


def finger(**parts):
    slide = nsds.interaction(joints.prismatic([1, 0, 0]), nsds.equality(), on="finger")
    part = nsds.rigid_bodies(0.2, 1e-3, q=AT_ORIGIN, v=AT_REST, T=ALONG_X, u=[2.0], u_frame="inertial")
    return nsds.system(finger=part, slide=slide, **parts)


@over_schemes
def test_a_gripper_finger_finds_its_force(scheme):
    """A finger at rest presses with what drives it: ``F+ = F + g (F* - F)``, so the error falls by 1 - g from sample to sample.

    The start holds no force yet: the first call sees none.
    """
    is_exact = scheme["scheme"] == b"event_driven"  # whose lambda of what stays closed is a force
    touch = nsds.interaction(nsds.contact_point(face, z=[0.0]), nsds.newton_impact(0.0), on="finger")
    z = [WANTED, GAIN, 1.0 if is_exact else H]
    loop = nsds.sampled_control(hold, reads="touch.lambda", writes="finger", z=z)
    system = finger(touch=touch, loop=loop)
    rows = run(system, 0.3, H, scheme)
    assert rows["finger"]["u"][0, 0] == pytest.approx(2.0 + GAIN * WANTED)
    k = np.arange(rows.size)
    np.testing.assert_allclose(WANTED - rows["finger"]["u"][:, 0], (WANTED - 2.0 - GAIN * WANTED) * (1 - GAIN) ** k, atol=1e-9)
    np.testing.assert_allclose(rows["finger"]["q"][:, 0], 0.0, atol=1e-9)


def count_and_hold(t, x, state, z, u):
    """Of contacts found: their number, then all their impulses, of which the first few are theirs."""
    n, press = int(x[0]), 0.0
    for i in range(n):
        press += x[1 + 3 * i]
    state[0] = n
    u[0] += z[1] * (z[0] - press / z[2])


def test_forces_of_contacts_that_are_found_are_read():
    """A box against a wall has four contacts, which share the force."""
    box = nsds.shapes.box([0.1, 0.1, 0.1])
    wall = nsds.shapes.plane([-1, 0, 0], -0.05)
    contacts = nsds.collisions({"finger": box}, nsds.newton_impact_friction(0.0, 0.3), world=wall, capacity=8)
    system = finger(contacts=contacts, loop=nsds.sampled_control(
        count_and_hold, reads=["contacts.n", "contacts.lambda"], writes="finger", state=[0.0], z=[WANTED, GAIN, H]))  # fmt: skip
    rows = run(system, 0.3, H)
    np.testing.assert_array_equal(rows["loop"]["state"][:, 0], 4.0)
    k = np.arange(rows.size)
    np.testing.assert_allclose(WANTED - rows["finger"]["u"][:, 0], (WANTED - 2.0 - GAIN * WANTED) * (1 - GAIN) ** k, atol=1e-8)


def servo(t, x, state, z, u):
    """PD on the angle between two bodies about z, which it turns against each other: x holds their q and v, (2, 13)."""
    angle = 2.0 * np.arctan2(x[19], x[16]) - 2.0 * np.arctan2(x[6], x[3])
    torque = -z[0] * (angle - z[1]) - z[2] * (x[25] - x[12])
    u[0], u[1] = -torque, torque


@over_schemes
def test_a_servo_between_two_bodies_is_the_map_of_the_double_integrator(scheme):
    """Its torque on one comes back from the other: the angle between them has the inertia ``1 / (1/J + 1/j)``, their momentum stays."""
    J, j, h, every, aim, k, c = 0.5, 0.2, 0.01, 3, 0.8, 4.0, 0.9
    about = np.eye(6)[:, 5:]
    parts = {
        name: nsds.rigid_bodies(1.0, [1, 1, value], q=[0, 0, i, *UPRIGHT], v=AT_REST, T=about, u=[0.0])
        for i, (name, value) in enumerate({"table": J, "arm": j}.items())
    }
    loop = nsds.sampled_control(servo, reads=["table", "arm"], writes=["table", "arm"], period=every * h, z=[k, aim, c])
    rows = run(nsds.system(**parts, loop=loop), 0.6, h, scheme)
    spin = J * rows["table"]["v"][:, 5] + j * rows["arm"]["v"][:, 5]
    np.testing.assert_allclose(spin, 0.0, atol=1e-12)
    angle, rate, P = 0.0, 0.0, every * h
    for row in rows[::every]:
        found = [2 * np.arctan2(row[name]["q"][6], row[name]["q"][3]) for name in parts]
        assert found[1] - found[0] == pytest.approx(angle, abs=1e-9)
        a = (-k * (angle - aim) - c * rate) * (1 / J + 1 / j)
        angle, rate = angle + P * rate + P**2 / 2 * a, rate + P * a


def balance(t, x, state, z, u):
    """PD with an integral on the angle about y of one arm."""
    angle = 2.0 * np.arctan2(x[5], x[3])
    state[0] += z[2] * angle
    u[0] = -z[0] * angle - z[1] * x[11] - state[0]


def test_a_servo_arm_carries_its_weight_in_the_end():
    """Held level by its motor, whose gains put three poles at 10 / s: the moment is ``m g l``, the hinge carries the weight."""
    m, reach, g, h = 2.0, 0.4, 9.81, 2e-3
    arm = nsds.rigid_bodies(m, [0.01, 0.05, 0.05], q=[reach, 0, 0, *UPRIGHT], v=AT_REST, T=np.eye(6)[:, 4:5], u=[0.0])
    pivot = nsds.interaction(joints.hinge([0, 0, 0], [0, 1, 0]), nsds.equality(), on="arm")
    loop = nsds.sampled_control(balance, reads="arm", writes="arm", period=2 * h, state=[0.0], z=[111.0, 11.1, 1.48])
    last = run(nsds.system(gravity=[0, 0, -g], arm=arm, pivot=pivot, loop=loop), 4.0, h)[-1]
    assert abs(last["arm"]["q"][5]) < 1e-9
    assert last["arm"]["u"][0] == pytest.approx(-m * g * reach, rel=1e-8)
    np.testing.assert_allclose(last["arm"]["p"][:3] / h, [0, 0, m * g], atol=1e-7)


# --- collisions where systems have schemes of their own -----------------------------------------------------------------------------
def test_contacts_stay_with_the_bodies_of_their_scheme():
    """Two balls on a plane, the second of them in contacts, and one that falls."""
    ball, mass = nsds.shapes.sphere(0.1), 1.0
    parts = {name: nsds.rigid_bodies(mass, 0.004, q=[i, 0, 0.1, *UPRIGHT], v=AT_REST) for i, name in enumerate(("falls", "free", "rests"))}
    contacts = nsds.collisions({"rests": ball}, nsds.newton_impact(0.0), world=nsds.shapes.plane())
    system = nsds.system(gravity=[0, 0, -10.0], **parts, contacts=contacts)
    schemes = {"falls": nsds.rattle(), "free": nsds.moreau_jean(), "rests": nsds.moreau_jean()}
    rows = nsds.simulate(system, t_end=0.2, h=0.01, scheme=schemes)
    np.testing.assert_allclose([rows[name]["q"][-1, 2] for name in parts], [-0.1, -0.1, 0.1], atol=1e-12)
    np.testing.assert_allclose(rows["contacts"]["lambda"][1:, 0, ...], 0.1, atol=1e-12)
    after = nsds.step(system, 0.01, scheme=schemes)
    np.testing.assert_array_equal(after["contacts"]["shape_body"], system["contacts"]["shape_body"])
    assert after["rests"]["q"][2] == pytest.approx(0.1, abs=1e-14)
    both = nsds.system(**parts, contacts=nsds.collisions({"falls": ball, "rests": ball}, nsds.newton_impact(0.0)))
    with pytest.raises(ValueError, match=r"'contacts' links 'falls' \(rattle\) and 'rests' \(moreau_jean\)"):
        nsds.simulate(both, t_end=0.1, h=0.01, scheme=schemes)
