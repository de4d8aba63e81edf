"""The D1- scheme on rigid bodies against a plain twin, closed forms and the event-driven scheme."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import nsds
from nsds.examples.euler_disk import euler_disk, tilts
from tests import reference_newton_euler as twin
from tests.schemes.rigid.test_newton_euler import JOINTS, TOP, Scene, quaternion_at
from tests.schemes.rigid.test_newton_euler_generalised_alpha import orders
from tests.strategies import examples, generators

GRAVITY, RADIUS = 9.81, 0.1
LEVELS = ("acceleration", "velocity")


@pytest.mark.parametrize("second", JOINTS)
@settings(examples(2), phases=[Phase.explicit, Phase.generate])
@given(rng=generators, first=st.sampled_from(list(JOINTS)), bushing=st.booleans())
def test_twin(second, rng, first, bushing):
    scene = Scene(rng, bushing)
    scene.add_joint(first, "ab")
    scene.add_joint(second, "b")
    if first == "none":
        scene.add_contacts(mu=0.0)
    record = nsds.consistent(nsds.system(**scene.parts), tol=1e-13)
    q, v = ([record[name][field].copy() for name in "ab"] for field in "qv")
    for k in range(3):
        record = nsds.step(record, 0.01, scheme=nsds.d1_minus_linear(level="acceleration"), solver=nsds.solvers.solver(tol=1e-12))
        q, v = twin.d1_step(scene.bodies, scene.equations, scene.contacts, 0.01 * k, q, v, 0.01)
        for i, name in enumerate("ab"):
            for field, wanted in (("q", q), ("v", v)):
                np.testing.assert_allclose(record[name][field], wanted[i], rtol=0, atol=1e-6, err_msg=f"{name}.{field}, step {k}")


@pytest.mark.parametrize("level", LEVELS)
def test_a_free_top_is_of_order_two(level):
    def error(h):
        system = nsds.system(top=nsds.rigid_bodies(v=[0, 0, 0, 0.8, 0, 2.0], **TOP))
        top = nsds.simulate(system, t_end=2.0, h=h, scheme=nsds.d1_minus_linear(level))["top"]
        assert abs(np.linalg.norm(top["q"][:, 3:], axis=1) - 1).max() < 1e-14
        return (abs(top["q"][-1, 3:] - quaternion_at(2.0)).max(),)

    found, _ = orders(error, (0.02, 0.01, 0.005))
    np.testing.assert_allclose(found, 2.0, atol=0.1)


def under(t, q, z, out):
    """A sphere of radius z[0] over the plane."""
    out[0] = q[2] - z[0]
    out[1], out[2], out[3] = q[0], q[1], q[2] - z[0]
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def ball(v, law, detected=False):
    """A sphere on a table, by a function of its gap or by its shape."""
    part = nsds.rigid_bodies(1.0, 0.4 * RADIUS**2, q=[0, 0, RADIUS, 1, 0, 0, 0], v=v, fext=[0, 0, -GRAVITY])
    if detected:
        floor = nsds.collisions({"ball": nsds.shapes.sphere(RADIUS)}, law, world=nsds.shapes.plane())
    else:
        floor = nsds.interaction(nsds.contact_point(under, z=[RADIUS]), law, on="ball")
    return nsds.system(ball=part, floor=floor)


@pytest.mark.parametrize("level", LEVELS)
def test_a_ball_that_slides_with_spin_follows_its_parabola(level):
    """Its slip keeps its direction, and friction is constant: that is exact, and the spin about the vertical stays."""
    mu, v = 0.1, np.array([2.0, 1.0, 0.0, -1.0, 3.0, 4.0])
    system, t = ball(v, nsds.newton_impact_friction(0.0, mu)), 0.5
    slip = np.array([v[0] - RADIUS * v[4], v[1] + RADIUS * v[3]])
    pull = -mu * GRAVITY * slip / np.linalg.norm(slip)

    last = nsds.simulate(system, t_end=t, h=0.02, scheme=nsds.d1_minus_linear(level))["ball"][-1]
    turned = twin.matrix(last["q"][3:]) @ last["v"][3:]
    arm = 2.5 / RADIUS * np.array([pull[1], -pull[0]]) * t
    np.testing.assert_allclose(last["q"][:2], v[:2] * t + pull * t**2 / 2, atol=1e-9)
    np.testing.assert_allclose(turned, v[3:] + np.append(arm, 0.0), atol=1e-9)


def test_friction_brings_a_ball_to_roll_as_it_was_given_by_its_shape():
    """5/7 of its speed is left (Coriolis), and lambda of the list is the weight times h."""
    law, h = nsds.newton_impact_friction(0.0, 0.2), 1e-3
    runs = [nsds.simulate(ball([1.0, 0, 0, 0, 0, 0], law, detected), t_end=0.5, h=h, scheme=nsds.d1_minus_linear()) for detected in (0, 1)]
    for rows in runs:
        assert rows["ball"]["v"][-1, 0] == pytest.approx(5 / 7, abs=2e-3)
        assert rows["ball"]["v"][-1, 4] * RADIUS == pytest.approx(rows["ball"]["v"][-1, 0], abs=1e-9)
        np.testing.assert_allclose(rows["ball"]["p"][1:, 2], GRAVITY * h, rtol=1e-9)
    np.testing.assert_allclose(runs[0]["ball"]["q"], runs[1]["ball"]["q"], atol=1e-12)
    assert (runs[1]["floor"]["n"] == 1).all()
    np.testing.assert_allclose(runs[1]["floor"]["lambda"][1:, 0, 0], GRAVITY * h, rtol=1e-9)
    np.testing.assert_allclose(runs[1]["floor"]["normal"][:, 0], np.tile([0.0, 0, 1], (len(runs[1]), 1)), atol=1e-12)


@pytest.mark.parametrize(("level", "detected"), [("acceleration", False), ("velocity", True)])
def test_rolling_friction_holds_a_ball(level, detected):
    """Of a ball that rolls, mu_r g / (1.4 r) per unit of time is lost."""
    mu_r, v = 0.002, 0.5
    law = nsds.newton_impact_rolling_friction(0.0, 0.3, mu_r)
    rows = nsds.simulate(ball([v, 0, 0, 0, v / RADIUS, 0], law, detected), t_end=1.0, h=1e-3, scheme=nsds.d1_minus_linear(level))
    assert rows["ball"]["v"][-1, 0] == pytest.approx(v - mu_r * GRAVITY / (1.4 * RADIUS), abs=2e-3)


@pytest.mark.parametrize("level", LEVELS)
def test_a_box_falls_tilted_and_comes_to_rest_on_its_side(level):
    """Energy never grows but by what a step falls into the plane; what rests carries the weight."""
    box, h = nsds.shapes.box([0.2, 0.3, 0.1]), 5e-4
    mass, inertia = 2.0, nsds.shapes.inertia(box, 2.0)
    p = np.r_[np.cos(0.1), 0.6 * np.sin(0.1), 0.8 * np.sin(0.1), 0.0]
    system = nsds.system(
        gravity=[0, 0, -GRAVITY],
        box=nsds.rigid_bodies(mass, inertia, q=[0, 0, 0.12, *p], v=[0.3, 0, 0, 0, 0, 0.5]),
        floor=nsds.collisions({"box": box}, nsds.newton_impact_friction(0.0, 0.5), world=nsds.shapes.plane()),
    )
    rows = nsds.simulate(system, t_end=1.5, h=h, scheme=nsds.d1_minus_linear(level))
    assert (rows["status"] == 0).all()
    v, q = rows["box"]["v"], rows["box"]["q"]
    energy = mass * (v[:, :3] ** 2).sum(axis=1) / 2 + np.einsum("ij,jk,ik->i", v[:, 3:], inertia, v[:, 3:]) / 2 + mass * GRAVITY * q[:, 2]
    assert np.diff(energy).max() < 1e-3 * energy[0]
    assert abs(v[-1]).max() < 1e-6
    assert q[-1, 2] == pytest.approx(0.05, abs=2e-3)
    assert rows["box"]["p"][-1, 2] == pytest.approx(mass * GRAVITY * h, rel=1e-6)
    assert rows["floor"]["n"][-1] == 4


def test_a_coin_goes_on_round_its_rim():
    """Steady rolling without losses; its contact runs along a circle."""

    def error(h):
        rows = nsds.simulate(euler_disk(tilt=0.4, mu_r=0.0), t_end=0.5, h=h, scheme=nsds.d1_minus_linear())
        assert rows["contacts"]["y"].min() > -1e-5
        return abs(tilts(rows)[-1] - 0.4)

    coarse, fine = error(5e-4), error(2.5e-4)
    assert fine < 0.3 * coarse < 3e-5


def test_steps_one_by_one_are_those_of_a_run():
    """What was active is in the record: in the list of contacts, of shapes."""
    record = ball([1.0, 0.2, -0.3, 1.0, 0, 2.0], nsds.newton_impact_friction(0.5, 0.2), True)
    rows = nsds.simulate(record, t_end=0.3, h=1e-2, scheme=nsds.d1_minus_linear("velocity"))
    for row in rows[1:]:
        record = nsds.step(record, 1e-2, scheme=nsds.d1_minus_linear("velocity"))
        np.testing.assert_array_equal(record["ball"]["q"], row["ball"]["q"])
