"""Forces between bodies: springs, dampers, functions, bushings and gears against closed forms, ordinary integration, and each other."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsds
from nsds import joints

SCHEMES = {"moreau_jean": nsds.moreau_jean(), "rattle": nsds.rattle(), "generalised_alpha": nsds.generalised_alpha()}
Z, AT_ORIGIN = [0, 0, 1], [0.0, 0, 0, 1, 0, 0, 0]
MASSES, STIFFNESS, DAMPING, LENGTH = (1.0, 3.0), 80.0, 1.5, 0.8
PLACES, SPEEDS = np.array([[0, 0, 0], [1, 0.2, -0.3]]), np.array([[0.5, 1, 2], [0.1, -0.6, 0.4]])


def run(system, t_end, h, scheme=None, **options):
    rows = nsds.simulate(system, t_end=t_end, h=h, scheme=scheme, **options)
    assert (rows["status"] == 0).all()
    return rows


def linear(t, y, ydot, z, out):
    out[0] = -z[0] * y[0] - z[1] * ydot[0]


def height(t, q, z, out):
    out[0] = q[2] - z[0]


def two_masses(law, inertia=1.0):
    """Problem A of the case spring_damper_between_bodies."""
    q, v = np.zeros((2, 7)), np.zeros((2, 6))
    q[:, :3], q[:, 3], v[:, :3] = PLACES, 1.0, SPEEDS
    masses = nsds.rigid_bodies(MASSES, inertia, q=q, v=v, fext=np.outer(MASSES, [0, 0, -9.81]))
    line = joints.distance(*PLACES, length=LENGTH)
    return nsds.system(masses=masses, spring=nsds.interaction(line, law, on=("masses[0]", "masses[1]")))


def exact(t):
    """Positions by DOP853."""

    def rate(t, s):
        x, v = s[:6].reshape(2, 3), s[6:].reshape(2, 3)
        r = np.linalg.norm(x[1] - x[0])
        u = (x[1] - x[0]) / r
        pull = (STIFFNESS * (r - LENGTH) + DAMPING * (v[1] - v[0]) @ u) * u
        a = np.stack([pull / MASSES[0], -pull / MASSES[1]]) - [0, 0, 9.81]
        return np.concatenate([v.ravel(), a.ravel()])

    s = np.concatenate([PLACES.ravel(), SPEEDS.ravel()])
    return solve_ivp(rate, (0, t), s, method="DOP853", rtol=1e-12, atol=1e-12).y[:6, -1].reshape(2, 3)


@pytest.mark.parametrize("name", SCHEMES)
def test_two_masses_on_a_spring_with_a_damper_to_second_order(name):
    """The centre of mass moves on its parabola: the forces are equal and opposite to rounding."""
    wanted, found = exact(1.0), []
    for h in (4e-3, 2e-3):
        rows = run(two_masses(nsds.spring_damper(STIFFNESS, DAMPING)), 1.0, h, SCHEMES[name])
        found.append(abs(rows["masses"]["q"][-1, :, :3] - wanted).max())
        momentum = np.einsum("i,tik->tk", MASSES, rows["masses"]["v"][:, :, :3]) + 4 * 9.81 * np.outer(rows["t"], Z)
        np.testing.assert_allclose(momentum, momentum[:1] + 0 * momentum, atol=1e-11)
    assert found[1] < 5e-5
    assert found[0] / found[1] == pytest.approx(4.0, abs=0.2)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_function_is_the_spring_that_it_states(name):
    springs = [nsds.spring_damper(STIFFNESS, DAMPING), nsds.force_law(linear, z=[STIFFNESS, DAMPING])]
    one, other = (run(two_masses(law), 0.5, 5e-3, SCHEMES[name]) for law in springs)
    np.testing.assert_allclose(one["masses"]["q"], other["masses"]["q"], atol=1e-8)
    np.testing.assert_allclose(one["spring"]["lambda"], other["spring"]["lambda"], atol=1e-8)


@pytest.mark.parametrize(
    "scheme", [nsds.moreau_jean(form="explicit"), nsds.moreau_jean(theta=1.0, q_star=0.0), nsds.moreau_jean_direct_projection()]
)
def test_other_forms_to_first_order(scheme):
    rows = run(two_masses(nsds.spring_damper(STIFFNESS, DAMPING)), 0.5, 1e-3, scheme)
    np.testing.assert_allclose(rows["masses"]["q"][-1, :, :3], exact(0.5), atol=5e-3)


def test_parameters_belong_to_one_of_relation_and_law():
    relation = nsds.newton_euler_relation(height, m=1, z=[1.0])
    with pytest.raises(ValueError, match="relation and law both have parameters z"):
        nsds.interaction(relation, nsds.force_law(linear, z=[1.0, 2.0]), on="masses[0]")


def test_the_smallest_step_of_a_stiff_spring_is_not_its_period():
    """``omega h = 1e3``: Newton's matrix knows both bodies; the spring comes to rest as a rod."""
    rows = run(two_masses(nsds.spring_damper(1e10)), 1.0, 0.01, nsds.moreau_jean(theta=1.0))
    assert rows["n_iter"][1:].max() < 12
    assert abs(rows["spring"]["y"][5:]).max() < 1e-6


def rope():
    """A ball falls from beside its rope, of length 1."""
    ball = nsds.rigid_bodies(1.0, 1.0, q=[0.6, 0, 0, 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -9.81])
    line = joints.distance([0.6, 0, 0], [0, 0, 0], upper=1.0)
    return nsds.system(ball=ball, rope=nsds.interaction(line, nsds.newton_impact(0.0), on="ball"))


def test_a_rope_is_slack_then_taut():
    """Free fall through 0.8, then a pendulum that has kept the velocity across the rope."""
    h = 1e-3
    rows = run(rope(), 0.6, h)
    x, z = rows["ball"]["q"][:, 0], rows["ball"]["q"][:, 2]
    fall = math.sqrt(2 * 0.8 / 9.81)
    slack = rows["t"] < fall - h
    assert not rows["rope"]["lambda"][slack].any()
    np.testing.assert_allclose(x[slack], 0.6, atol=1e-12)
    assert abs(np.hypot(x, z)[rows["t"] > fall + h] - 1.0).max() < 20 * h
    speed = np.linalg.norm(rows["ball"]["v"][:, :3], axis=1)
    after = int(np.argmax(rows["t"] > fall + 2 * h))
    assert speed[after] == pytest.approx(0.6 * 9.81 * fall, rel=2e-2)


def test_a_hinge_with_a_damper_slows_down_by_the_factor_of_the_midpoint_rule():
    J, c, h = 0.4, 3.0, 0.05
    body = nsds.rigid_bodies(2.0, [0.1, 0.2, J], q=AT_ORIGIN, v=[0, 0, 0, 0, 0, 5.0])
    parts = {
        "body": body,
        "hinge": nsds.interaction(joints.hinge([0, 0, 0], Z), nsds.equality(), on="body"),
        "damper": nsds.interaction(joints.hinge_angle(Z), nsds.spring_damper(0.0, c), on="body"),
    }
    rows = run(nsds.system(**parts), 1.0, h)
    factor = (1 - h * c / (2 * J)) / (1 + h * c / (2 * J))
    np.testing.assert_allclose(rows["body"]["v"][:, 5], 5.0 * factor ** rows["step"], atol=1e-12)


def test_a_bushing_bears_a_body_where_its_stiffness_says():
    """Six rows that depend on each other: ``K y`` is the load; angles are small, so that cosines are angles."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(6, 6))
    K = 1e5 * (np.eye(6) + 0.2 * root @ root.T)
    load, moment = np.array([3.0, -2.0, -9.81]), np.array([0.2, 0.1, -0.3])
    body = nsds.rigid_bodies(1.0, [0.1, 0.2, 0.3], q=AT_ORIGIN, v=np.zeros(6), fext=load, mext=moment)
    bushing = nsds.interaction(joints.fixed_joint(), nsds.spring_damper(K, 0.05 * K), on="body")
    rows = run(nsds.system(body=body, bushing=bushing), 2.0, 5e-3, nsds.moreau_jean(theta=1.0))
    last = rows[-1]
    assert abs(last["body"]["v"]).max() < 1e-9
    np.testing.assert_allclose(last["bushing"]["lambda"], -5e-3 * K @ last["bushing"]["y"], atol=1e-12)
    np.testing.assert_allclose(last["bushing"]["lambda"][:3], -5e-3 * load, atol=1e-10)


def test_the_ledger_has_what_springs_hold_and_dampers_take():
    """The midpoint rule keeps the energy of a linear spring on a line; a damper takes ``h c ydot^2``."""
    q = [AT_ORIGIN, [1.2, 0, 0, 1, 0, 0, 0]]
    balls = nsds.rigid_bodies([1.0, 2.0], 0.1, q=q, v=np.zeros((2, 6)))
    line = joints.distance([0, 0, 0], [1.2, 0, 0], length=1.0)
    for law, work in ((nsds.spring_damper(50.0, 0.4), "damping"), (nsds.force_law(linear, z=[50.0, 0.4]), "internal")):
        system = nsds.system(balls=balls, spring=nsds.interaction(line, law, on=("balls[0]", "balls[1]")))
        rows = run(system, 1.0, 1e-2, nsds.moreau_jean(newton_tol=1e-15))
        ledger = nsds.energy(system, rows)
        assert abs(ledger["numerical"]).max() < 1e-12
        total = ledger["kinetic"] + ledger["potential"]
        assert total[0] == pytest.approx(1.0 if work == "damping" else 0.0, abs=1e-12)
        assert total[-1] - total[0] == pytest.approx(ledger[work].sum(), abs=1e-11)
        assert not ledger["contact"].any()


# A planetary gear: rates in closed form, in the case planetary_gear.


def load(t, y, ydot, z, out):
    out[0] = -2.0 - 0.02 * ydot[0]


def wheel(mass, radius, q, **forces):
    return nsds.rigid_bodies(mass, mass * radius**2 / 4 * np.array([1, 1, 2]), q=q, v=np.zeros((*np.shape(q)[:-1], 6)), **forces)


def planetary():
    hinge, angles = nsds.equality(), 2 * math.pi * np.arange(3) / 3
    at = 0.05 * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    parts = {
        "sun": wheel(0.5, 0.03, AT_ORIGIN, mext=[0, 0, 1.5]),
        "carrier": wheel(0.8, 0.05, AT_ORIGIN),
        "planets": wheel(0.2, 0.02, [[*x, 1.0, 0, 0, 0] for x in at]),
        "axis_sun": nsds.interaction(joints.hinge([0, 0, 0], Z), hinge, on="sun"),
        "axis_carrier": nsds.interaction(joints.hinge([0, 0, 0], Z), hinge, on="carrier"),
        "to_sun": nsds.interaction(joints.gear(Z, 0.02, 0.03), hinge, on=("planets", "sun")),
        "to_ring": nsds.interaction(joints.gear(Z, 0.02, -0.07), hinge, on="planets"),
        "load": nsds.interaction(joints.hinge_angle(Z), nsds.force_law(load), on="carrier"),
    }
    pins = {f"pin_{i}": nsds.interaction(joints.hinge(at[i], Z), hinge, on=(f"planets[{i}]", "carrier")) for i in range(3)}
    return nsds.system(**parts, **pins)


@pytest.mark.parametrize("name", ["moreau_jean", "rattle"])
def test_a_planetary_gear_under_torque(name):
    """Ratios to rounding in every step, rates to second order, the load of the teeth: six rows, of which two are redundant."""
    h, tau = 2e-3, 0.2875
    rows = run(planetary(), 0.1, h, SCHEMES[name])
    carrier, sun, planets = rows["carrier"]["v"][:, 5], rows["sun"]["v"][:, 5], rows["planets"]["v"][:, :, 5]
    rate = 150 * (1 - np.exp(-rows["t"] / tau))
    np.testing.assert_allclose(carrier, rate, rtol={"moreau_jean": 2e-2, "rattle": 5e-5}[name])
    np.testing.assert_allclose(sun, 10 / 3 * carrier, atol=1e-9)
    np.testing.assert_allclose(planets, -2.5 * carrier[:, None] * np.ones(3), atol=1e-9)
    assert abs(rows["to_sun"]["y"]).max() < {"moreau_jean": 1e-4, "rattle": 1e-12}[name]
    inertia = 0.5 * 0.03**2 / 2
    teeth = -(1.5 - inertia * 10 / 3 * 150 / tau * np.exp(-(rows["t"] - h / 2) / tau)) / 0.09
    carried = rows["to_sun"]["lambda"][5:] / h  # of each tooth
    np.testing.assert_allclose(carried, np.stack([teeth[5:]] * 3, axis=1), rtol=2e-2 if name == "moreau_jean" else 2e-3)


def test_a_motor_on_a_coordinate_that_a_joint_holds_is_refused():
    """Across the axis of a hinge, seen from either body; about the axis, and on what only a chain holds, it is not. So is friction."""
    bodies = nsds.rigid_bodies([1.0, 2.0], 1.0, q=[[0.3, 0.2, 0, 1, 0, 0, 0], [1.0, -0.4, 0.5, 0.6, 0.8, 0, 0]], v=np.zeros((2, 6)))
    both = ("bodies[0]", "bodies[1]")
    for on in (both, both[::-1]):
        parts = {"bodies": bodies, "hinge": nsds.interaction(joints.hinge([0.5, 0, 0], Z), nsds.equality(), on=both)}
        for make, axis, is_free in (
            (joints.hinge_angle, [1, 0, 0], False), (joints.hinge_angle, Z, True), (joints.slide_along, Z, False),
            (joints.slide_along, [0, 1, 0], True),
        ):  # fmt: skip
            motors = [nsds.interaction(make(axis), law, on=on) for law in (nsds.spring_damper(1.0), nsds.relay(), nsds.dry_friction(1.0))]
            if is_free:
                nsds.system(**parts, motor=motors[0], relay=motors[1], friction=motors[2])
            for motor in () if is_free else motors:
                with pytest.raises(ValueError, match="interaction 'motor': the coordinate of row 0 cannot change, joint 'hinge' holds it"):
                    nsds.system(**parts, motor=motor)


def test_a_joint_that_does_not_close_is_named():
    system = planetary()
    system["planets"]["q"][1, 0] += 1e-3
    with pytest.warns(RuntimeWarning, match=r"the bilateral constraint 'pin_1', row \d, is violated at the start, y = -?0\.001"):
        nsds.simulate(system, t_end=2e-3, h=2e-3, on_failure="continue")
