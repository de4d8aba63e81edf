"""Gravity and control of rigid bodies under every scheme: the same as forces that say so, and closed forms."""

import numpy as np
import pytest
from hypothesis import given

import nsds
from tests.model.test_joints import configuration
from tests.reference_newton_euler import matrix
from tests.schemes.rigid.test_newton_euler import spd
from tests.strategies import examples, generators

SCHEMES = {
    "moreau_jean": nsds.moreau_jean(),
    "rattle": nsds.rattle(),
    "generalised_alpha": nsds.generalised_alpha(),
    "event_driven": nsds.event_driven(),
}
G = np.array([0.3, -0.2, -9.81])
AT_ORIGIN, AT_REST = [0.0, 0, 0, 1, 0, 0, 0], np.zeros(6)
over_schemes = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)


def body(mass=2.0, inertia=(0.1, 0.2, 0.3), q=AT_ORIGIN, v=AT_REST, **more):
    return nsds.rigid_bodies(mass, inertia, q=q, v=v, **more)


def run(system, t_end, h, scheme=None):
    rows = nsds.simulate(system, t_end=t_end, h=h, scheme=scheme)
    assert (rows["status"] == 0).all()
    return rows


# --- gravity ------------------------------------------------------------------------------------------------------------------------
def thrown(**more):
    return {"q": [0, 0, 1, 0.6, 0, 0.8, 0], "v": [1.0, 0, 2, 0.3, 1, 2], **more}


def push(t, z, out):
    out[0] = z[0]


@over_schemes
def test_gravity_is_the_weight_of_every_body(scheme):
    """Of an array, beside forces that are numbers, functions, or none; what has infinite mass does not fall."""
    masses = np.array([0.5, 4.0])
    q, v = np.tile(thrown()["q"], (2, 1)), np.tile(thrown()["v"], (2, 1))
    given = nsds.system(
        gravity=G, plain=body(**thrown()), pushed=body(**thrown(), fext=push, z=[3.0]), pair=body(masses, q=q, v=v, fext=[1.0, 0, 0]),
        wall=body(np.inf, v=[1.0, 0, 0, 0, 0, 0]),
    )  # fmt: skip
    rows = run(given, 0.2, 0.02, scheme)
    t, v0, push_rate = rows["t"][:, None], np.array(thrown()["v"][:3]), np.array([3.0 / 2.0, 0, 0])
    fallen = thrown()["q"][:3] + v0 * t + G * t**2 / 2
    np.testing.assert_allclose(rows["plain"]["q"][:, :3], fallen, atol=1e-10)
    for i, m in enumerate(masses):
        np.testing.assert_allclose(rows["pair"]["q"][:, i, :3], fallen + t**2 / (2 * m) * [1, 0, 0], atol=1e-10)
    np.testing.assert_allclose(rows["pushed"]["v"][:, :3], v0 + (G + push_rate) * t, atol=1e-10)
    np.testing.assert_array_equal(rows["wall"]["v"], np.broadcast_to([1.0, 0, 0, 0, 0, 0], (rows.size, 6)))
    assert abs(rows["wall"]["q"][-1, 0] - 0.2) < 1e-14


def test_gravity_has_a_potential_and_is_told():
    system = nsds.system(gravity=G, box=body(**thrown()))
    ledger = nsds.energy(system, run(system, 0.5, 0.01, nsds.rattle()))
    total = ledger["kinetic"] + ledger["potential"]
    np.testing.assert_allclose(total, total[0], rtol=1e-11)  # 50 steps, each of which ends Newton's iteration at 1e-12
    assert ledger["potential"][0] == pytest.approx(2.0 * 9.81)
    assert not ledger["forces"].any()
    assert nsds.describe(system).title.endswith("gravity [0.3 -0.2 -9.81] m/s²")


def test_gravity_is_one_number_of_the_record_that_may_change():
    """Of each member of an ensemble, between steps, and after a restart."""
    system = nsds.system(gravity=[0, 0, -9.81], box=body(q=[0, 0, 1, 1, 0, 0, 0]))
    worlds = np.repeat(system, 3)
    worlds["gravity"][:, 2] = heights = [-9.81, -1.62, 0.0]
    rows = nsds.simulate(worlds, t_end=0.1, h=0.01)
    np.testing.assert_allclose(rows["box"]["q"][:, -1, 2], 1 + np.array(heights) * 0.005, atol=1e-14)
    again = nsds.simulate(nsds.restart(worlds[1], rows[1, 4]), t_end=0.1, h=0.01)
    assert again.tobytes() == rows[1, 4:].tobytes()
    advance, speed = nsds.stepper(system, h=0.01), 0.0
    for g in (-9.81, 3.0, 0.5):
        system["gravity"] = [0, 0, g]
        system, speed = advance(system), speed + 0.01 * g
        assert system["box"]["v"][2] == pytest.approx(speed, abs=1e-15)
    mixed = nsds.simulate(nsds.system(gravity=G, a=body(), b=body()), t_end=0.1, h=0.1, scheme={"a": nsds.rattle()})
    np.testing.assert_allclose(mixed["a"]["v"][-1], mixed["b"]["v"][-1], atol=1e-15)


def test_gravity_elsewhere_is_named():
    for part, family in ((nsds.lagrangian_linear(M=[1.0], q=[0.0], v=[0.0]), "Lagrangian"),
                         (nsds.first_order_linear([-1.0], x=[0.0]), "first-order")):  # fmt: skip
        with pytest.raises(ValueError, match=f"system: gravity is an acceleration in space of rigid bodies; 'part' is {family}"):
            nsds.system(gravity=G, part=part)
    with pytest.raises(ValueError, match=r"system: gravity must have shape \(3,\), got \(2,\)"):
        nsds.system(gravity=[0.0, -9.81], part=body())
    system = nsds.system(gravity=G, part=body())
    system["gravity"][1] = np.nan
    with pytest.raises(ValueError, match="step: gravity must be finite, got nan at entry 1"):
        nsds.step(system, 0.1)


# --- control ------------------------------------------------------------------------------------------------------------------------
@examples(10)
@given(rng=generators)
def test_a_step_is_that_of_the_theta_method_with_the_wrench_T_u(rng):
    """``M (v+ - v) = h (F + F+) / 2`` in both frames, of bodies of an array with weights and controls of their own."""
    n, h, mass, inertia = 3, 0.05, rng.uniform(0.5, 2, size=3), np.array([spd(rng) for _ in range(3)])
    q, v = np.array([configuration(rng) for _ in range(n)]), 0.3 * rng.normal(size=(n, 6))
    T, u = rng.normal(size=(n, 6, 2)), rng.normal(size=(n, 2))
    for frame in ("body", "inertial"):
        bodies = nsds.rigid_bodies(mass, inertia, q=q, v=v, T=T, u=u, u_frame=frame)
        new = nsds.step(nsds.system(gravity=G, bodies=bodies), h, scheme=nsds.moreau_jean(theta=0.5))["bodies"]
        for i in range(n):

            def wrench(p, w, i=i, frame=frame):
                f, moment, R = *np.split(T[i] @ u[i], 2), matrix(p)
                f, moment = (R @ f, moment) if frame == "body" else (f, R.T @ moment)
                return np.concatenate([f + mass[i] * G, moment - np.cross(w[3:], inertia[i] @ w[3:])])

            change = new["v"][i] - v[i]
            change = np.concatenate([mass[i] * change[:3], inertia[i] @ change[3:]])
            both = wrench(q[i, 3:], v[i]) + wrench(new["q"][i, 3:], new["v"][i])
            np.testing.assert_allclose(change, h / 2 * both, atol=1e-10)


@over_schemes
def test_a_thruster_turns_with_its_body(scheme):
    """``v = F / (m w) (sin w t, 1 - cos w t)`` at the rate w about z, to second order; F and w are those of the body."""
    force, rate, mass, found = 3.0, 4.0, 2.0, []
    for h in (0.02, 0.01):
        system = nsds.system(disk=body(mass, v=[0, 0, 0, 0, 0, rate], T=np.eye(6)[:, :1], u=[force]))
        rows = run(system, 1.0, h, scheme)
        wanted = force / (mass * rate) * np.array([np.sin(rate), 1 - np.cos(rate)])
        found.append(abs(rows["disk"]["v"][-1, :2] - wanted).max())
    assert found[1] < 1e-4
    assert found[1] < 1e-9 or found[0] / found[1] == pytest.approx(4.0, abs=0.1)


@over_schemes
def test_a_moment_in_the_room_does_not_turn_with_the_body(scheme):
    """The momentum of rotation grows by ``t M`` whatever the body does."""
    moment, errors = np.array([0.2, -0.1, 0.3]), []
    system = nsds.system(top=body(v=[0, 0, 0, 1.0, 0.5, 2.0], u=[0, 0, 0, *moment], u_frame="inertial"))
    for h in (0.01, 0.005):
        last = run(system, 0.5, h, scheme)["top"][-1]
        spin = matrix(last["q"][3:]) @ (np.diag([0.1, 0.2, 0.3]) @ last["v"][3:])
        errors.append(abs(spin - [0.1, 0.1, 0.6] - 0.5 * moment).max())
    assert errors[1] < 1e-5
    assert errors[1] < 1e-9 or errors[0] / errors[1] > 3.8


def test_the_work_of_a_control_is_that_of_forces():
    system = nsds.system(gravity=G, top=body(**thrown(), u=[1, 2, 3, 0.1, 0.2, 0.3]))
    ledger = nsds.energy(system, run(system, 0.5, 1e-3, nsds.rattle()))
    gained = ledger["kinetic"][-1] + ledger["potential"][-1] - ledger["kinetic"][0] - ledger["potential"][0]
    assert gained > 1.0
    assert ledger["forces"].sum() == pytest.approx(gained, rel=1e-6)


def hover(t, x, state, z, u):
    """Position and velocity along z of each of two bodies, x of (2, 13)."""
    for i in range(2):
        u[i] = z[2] - z[0] * (x[13 * i + 2] - i) - z[1] * x[13 * i + 9]


@over_schemes
def test_sampled_feedback_is_the_map_of_the_double_integrator(scheme):
    """``x+ = x + P v + P^2 a / 2``, ``v+ = v + P a`` with a held over a period P: exact, as motions with a constant force are."""
    k, c, m, h, every = 30.0, 8.0, 2.0, 0.01, 4
    q = np.tile(AT_ORIGIN, (2, 1))
    q[:, 2] = [0.4, 0.7]
    system = nsds.system(
        gravity=[0, 0, -9.81],
        drones=body(m, q=q, v=np.zeros((2, 6)), T=[[0.0], [0], [1], [0], [0], [0]], u=[[0.0], [0.0]], u_frame="inertial"),
        pilot=nsds.sampled_control(hover, reads="drones", writes="drones", period=every * h, z=[k, c, m * 9.81]),
    )
    rows = run(system, 0.4, h, scheme)
    x, v, P = np.array([0.4, 0.7]), np.zeros(2), every * h
    for row in rows[::every]:
        np.testing.assert_allclose(row["drones"]["q"][:, 2], x, atol=1e-10)
        a = (-k * (x - [0, 1]) - c * v) / m
        np.testing.assert_allclose(row["drones"]["u"][:, 0], m * (a + 9.81), atol=1e-8)
        x, v = x + P * v + P**2 / 2 * a, v + P * a


def test_controls_change_between_steps_of_a_stepper():
    """At no cost of preparing anew: the bits are those of a record with that control from the start."""
    system = nsds.system(cart=body(u=np.zeros(6)))
    advance, speed = nsds.stepper(system, h=0.1), 0.0
    for push in (1.0, -3.0, 0.5):
        system["cart"]["u"][0] = push
        fresh = nsds.step(system, 0.1)
        system, speed = advance(system), speed + 0.1 * push / 2.0
        assert system.tobytes() == fresh.tobytes()
        assert system["cart"]["v"][0] == pytest.approx(speed, abs=1e-15)


@pytest.mark.parametrize(("changes", "words"), [
    ({"u": np.zeros(5)}, "the length of u is not clear: 6 from T \\(the identity\\), 5 from u"),
    ({"T": np.zeros((6, 2)), "u": np.zeros(3)}, "the length of u is not clear: 2 from T, 3 from u"),
    ({"T": np.zeros((3, 2)), "u": np.zeros(2)}, r"T must have shape \(6, n_u\), got \(3, 2\)"),
    ({"T": np.zeros((6, 2))}, "T is the weight of u, which is missing"),
    ({"u": np.zeros(6), "u_frame": "world"}, "u_frame must be 'body' or 'inertial', got 'world'"),
])  # fmt: skip
def test_wrong_controls_are_named(changes, words):
    with pytest.raises(ValueError, match=f"rigid_bodies: {words}"):
        body(**changes)


def test_what_is_no_control_is_named():
    with pytest.raises(TypeError, match=r"rigid_bodies: u must be numbers; a force that is a function of the state is fint"):
        body(u=push)
    with pytest.raises(ValueError, match=r"'body' has no constant control u to write; give it u=numpy.zeros\(n_u\)"):
        nsds.system(body=body(), loop=nsds.sampled_control(hover, reads="body", writes="body"))
    six = nsds.system(six=body(q=[AT_ORIGIN] * 6, v=np.zeros((6, 6)), u=np.arange(6.0)))  # as many bodies as there are inputs
    np.testing.assert_array_equal(six["six"]["u"], np.tile(np.arange(6.0), (6, 1)))
