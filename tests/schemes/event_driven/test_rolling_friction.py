"""Rolling friction by events: wheels and spheres that slide, roll and come to rest, against closed forms and SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import nsds
from nsds.status import EVENT, FRICTION, JUMP
from tests.schemes.event_driven.test_event_driven import FLOWS, G, happened, run
from tests.strategies import examples

M, R = 2.0, 0.3


def wheel(v, tilt=0.0, mu=0.5, mu_r=0.01, unit=1.0):
    """A disk on an incline: way down it, height and angle; unit: of length, of which all lengths are so many."""
    r, g = R / unit, G / unit
    part = nsds.lagrangian_linear(
        M=[M, M, 0.5 * M * r * r], fext=[M * g * math.sin(tilt), -M * g * math.cos(tilt), 0], q=[0, 0, 0], v=[v[0] / unit, 0, v[1]]
    )
    law = nsds.newton_impact_rolling_friction(e_n=0.0, mu=mu, mu_r=mu_r / unit, dimension=2)
    floor = nsds.interaction(nsds.lagrangian_linear_relation(H=[[0, 1, 0], [1, 0, r], [0, 0, 1]]), law, on="wheel")
    return nsds.system(wheel=part, floor=floor)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("flow", FLOWS)
def test_a_wheel_slides_then_rolls_then_rests(flow, unit):
    """Slip ends at ``v - mu g t + R omega = 0``; rolling has ``a = -mu_r m g / (R (m + I / R^2))``."""
    rows = run(wheel([1.0, 0.0], unit=unit), 4.0, flow=flow, atol=1e-12 / unit)
    turned = (-R * 0.5 + 0.01) * G / (0.5 * R * R)
    rolls = 1.0 / (0.5 * G - R * turned)
    v, a = 1.0 - 0.5 * G * rolls, 0.01 * G / (1.5 * R)
    np.testing.assert_allclose(happened(rows, FRICTION)[0]["t"], [rolls, rolls + v / a], rtol=1e-12)
    np.testing.assert_allclose(rows["wheel"]["q"][-1, 0] * unit, rolls - 0.25 * G * rolls**2 + v**2 / (2 * a), rtol=1e-12)
    np.testing.assert_array_equal(rows["floor"]["active"][-1], [1, 1, 1])
    assert abs(rows["wheel"]["v"][-1]).max() < 1e-14


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("mu", [0.2, 0.05])
def test_a_wheel_on_an_incline_begins_to_roll_where_that_is_steeper_than_its_resistance(flow, mu):
    """It rests where ``tan <= mu_r / R``; else it rolls, or slides and turns where friction is too small to roll."""
    rows = run(wheel([0.0, 0.0], tilt=math.atan(0.99 * 0.01 / R), mu=mu), 1.0, flow=flow)
    assert abs(rows["wheel"]["q"]).max() < 1e-15
    tilt = 0.2
    rows = run(wheel([0.0, 0.0], tilt=tilt, mu=mu), 1.0, flow=flow)
    a = (math.sin(tilt) - 0.01 * math.cos(tilt) / R) / 1.5
    slides = math.sin(tilt) - a > mu * math.cos(tilt)
    a, turn = (math.sin(tilt) - mu * math.cos(tilt), -(R * mu - 0.01) * math.cos(tilt) / (0.5 * R * R)) if slides else (a, -a / R)
    assert slides == (mu == 0.05)
    np.testing.assert_allclose(rows["wheel"]["q"][-1, ::2], [0.5 * G * a, 0.5 * G * turn], rtol=1e-11)


def test_a_wheel_without_friction_still_resists_rolling():
    """mu = 0: it slides on, and its turning ends at ``I omega / (mu_r m g)``."""
    rows = run(wheel([1.0, 5.0], mu=0.0), 4.0)
    np.testing.assert_allclose(happened(rows, FRICTION)[0]["t"], [0.5 * R * R * 5.0 / (0.01 * G)], rtol=1e-12)
    np.testing.assert_allclose(rows["wheel"]["v"][-1], [1.0, 0.0, 0.0], atol=1e-14)


def test_a_sphere_rolls_on_a_curved_path_until_it_rests():
    """Across an incline, against SciPy: the force ``mu_r N / R`` against the velocity on the mass ``m + I / R^2``."""
    tilt, mu_r, mass = 0.05, 0.02, 1.4
    ball = nsds.rigid_bodies(1.0, 0.4 * R * R, q=[0, 0, R, 1, 0, 0, 0], v=[0, 1.0, 0, -1.0 / R, 0, 0],
                             fext=[G * math.sin(tilt), 0, -G * math.cos(tilt)])  # fmt: skip
    law = nsds.newton_impact_rolling_friction(e_n=0.0, mu=0.6, mu_r=mu_r)
    hits = nsds.collisions({"ball": nsds.shapes.sphere(R)}, law, world=nsds.shapes.plane())
    rows = run(nsds.system(ball=ball, hits=hits), 6.0, rtol=1e-10)

    def rate(t, x):
        force = -mu_r * G * math.cos(tilt) / R * x[2:] / np.hypot(*x[2:])
        return [*x[2:], (G * math.sin(tilt) + force[0]) / mass, force[1] / mass]

    def stops(t, x):
        return np.hypot(*x[2:]) - 1e-6

    stops.terminal = True
    x = solve_ivp(rate, (0, 20), [0, 0, 0, 1.0], "DOP853", events=stops, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(happened(rows, FRICTION)[0]["t"], [x.t[-1]], atol=1e-5)
    np.testing.assert_allclose(rows["ball"]["q"][-1, :2], x.y[:2, -1], atol=1e-9)
    assert abs(rows["ball"]["v"][-1]).max() < 1e-10
    moment = np.linalg.norm(rows["hits"]["lambda"][-1, 0, 3:])
    assert moment == pytest.approx(G * math.sin(tilt) * R, rel=1e-9)


def test_a_box_that_rests_on_a_face_tips_later():
    """Where its weight acts 7 mm outside its face, four corners of mu_r = 10 mm hold it, and those of 5 mm do not."""
    size, tilt = np.array([0.1, 0.1, 0.45]), 0.25
    for mu_r, stays in ((0.01, True), (0.005, False)):
        box = nsds.rigid_bodies(1.0, (np.sum(size**2) - size**2) / 12, q=[0, 0, 0.225, 1, 0, 0, 0], v=[0.0] * 6,
                                fext=[G * math.sin(tilt), 0, -G * math.cos(tilt)])  # fmt: skip
        law = nsds.newton_impact_rolling_friction(e_n=0.0, mu=0.6, mu_r=mu_r)
        hits = nsds.collisions({"box": nsds.shapes.box(size)}, law, world=nsds.shapes.plane())
        rows = run(nsds.system(box=box, hits=hits), 0.2)
        assert (abs(rows["box"]["v"][-1]).max() < 1e-9) == stays


@examples(25)
@given(st.integers(0, 10**6))
def test_moments_obey_their_law_and_time_stepping_has_this_limit(seed):
    """Of a wheel that is thrown, pushed and turned: complementarity in each row, no energy gained, and Moreau's steps come near."""
    rng = np.random.default_rng(seed)
    mu, mu_r, e, push, moment = rng.uniform(0, 1), rng.uniform(0, 0.1), rng.uniform(0, 0.8), rng.uniform(-8, 8), rng.uniform(-1, 1)
    law = nsds.newton_impact_rolling_friction(e_n=e, mu=mu, mu_r=mu_r, dimension=2)
    height, v = rng.uniform(0, 0.2), rng.normal(size=3)
    part = nsds.lagrangian_linear(M=[M, M, 0.5 * M * R * R], fext=[push, -M * G, moment], q=[0, height, 0], v=v)
    H = [[0, 1, 0], [1, 0, R], [0, 0, 1]]
    system = nsds.system(wheel=part, floor=nsds.interaction(nsds.lagrangian_linear_relation(H=H), law, on="wheel"))
    rows = run(system, 1.0, h=0.02)
    smooth = rows[(rows["status"] & (EVENT | JUMP)) != EVENT | JUMP]
    lam, u = smooth["floor"]["lambda"], smooth["floor"]["ydot"]
    for j, limit in ((1, mu), (2, mu_r)):
        assert (abs(lam[:, j]) <= limit * lam[:, 0] + 1e-9).all()
        moves = abs(u[:, j]) > 1e-7
        np.testing.assert_allclose(lam[moves, j], -limit * lam[moves, 0] * np.sign(u[moves, j]), atol=1e-9)
    q, v = rows["wheel"]["q"], rows["wheel"]["v"]
    energy = 0.5 * v**2 @ [M, M, 0.5 * M * R * R] - q @ [push, -M * G, moment]
    assert np.diff(energy).max() < 1e-8
    steps = nsds.simulate(system, t_end=1.0, h=1e-4)
    assert (abs(steps["wheel"]["q"][-1] - q[-1]) <= 0.02 * (1 + abs(q[-1]))).all()
