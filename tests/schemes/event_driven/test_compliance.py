"""Compliant contacts, springs, and forces between bodies, event by event, against closed forms and SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import nsds
from nsds.status import CLOSED, OPENED
from tests.schemes.event_driven.test_event_driven import G, happened, linear, run
from tests.strategies import examples

TIGHT = {"rtol": 1e-12, "atol": 1e-14}


def ball_on(relation, q=1.0, law=None, **terms):
    ball = nsds.lagrangian_linear(M=[1.0], fext=[-G], q=[q], v=[0.0], **terms)
    return nsds.system(ball=ball, floor=nsds.interaction(relation, law or nsds.complementarity(), on="ball"))


@pytest.mark.parametrize("stiffness", [1e2, 1e4, 1e7])
def test_a_ball_on_a_linear_floor(stiffness):
    """It flies for ``sqrt(2 y / g)`` and twice that; contacts last ``2 (pi - atan(v w / g)) / w``."""
    rows = run(ball_on(linear(H=[[1.0]], D=[[1 / stiffness]])), 2.0, h=0.05, **TIGHT)
    flight, w = math.sqrt(2 / G), math.sqrt(stiffness)
    touches = 2 * (math.pi - math.atan(G * flight * w / G)) / w
    begins = flight + (2 * flight + touches) * np.arange(3)
    closing, opening = happened(rows, CLOSED)[0]["t"], happened(rows, OPENED)[0]["t"]
    np.testing.assert_allclose(closing, begins[begins < 2.0], rtol=1e-10)
    np.testing.assert_allclose(opening, (begins + touches)[: len(opening)], rtol=1e-10)
    assert rows["floor"]["lambda"].min() > -1e-9
    np.testing.assert_allclose(rows["floor"]["y"][rows["floor"]["active"] > 0], 0.0, atol=1e-12)
    resting = rows["floor"]["active"] > 0
    np.testing.assert_allclose(rows["floor"]["lambda"][resting], -stiffness * rows["ball"]["q"][resting, 0], atol=1e-9 * stiffness)


@pytest.mark.parametrize("q", [0.0, -0.01])
def test_a_ball_that_touches_at_the_start_vibrates(q):
    """``y = -g/k + (q + g/k) cos w t``: where it is let go as it touches, the floor is felt from the start."""
    k = 1e3
    rows = run(ball_on(linear(H=[[1.0]], D=[[1 / k]]), q=q), 1.0, h=0.05, **TIGHT)
    np.testing.assert_allclose(rows["ball"]["q"][:, 0], -G / k + (q + G / k) * np.cos(math.sqrt(k) * rows["t"]), atol=1e-11)
    assert not happened(rows, OPENED)[0].size


def rubber(q, lam, z, out):
    out[0] = q[0] + z[0] * lam[0] + z[1] * lam[0] ** 3


def hertz(q, lam, z, out):
    out[0] = q[0] + z[0] * max(lam[0], 0.0) ** (2.0 / 3.0)


@pytest.mark.parametrize("law", ["rubber", "hertz"])
def test_a_ball_on_a_nonlinear_floor(law):
    """Against SciPy with its events; how long the force acts, and that no energy is lost."""
    relation = nsds.compliant(rubber, m=1, z=[1e-3, 1e-8]) if law == "rubber" else nsds.compliant(hertz, m=1, z=[1e-3])
    rows = run(ball_on(relation), 1.5, h=0.05, rtol=1e-11, atol=1e-13)

    def force(y):
        if law == "hertz":
            return (max(-y, 0.0) / 1e-3) ** 1.5
        roots = np.roots([1e-8, 0.0, 1e-3, min(y, 0.0)])
        return roots[np.argmin(abs(roots.imag))].real

    def touches(t, x):
        return x[0]

    flight = math.sqrt(2 / G)
    x = solve_ivp(lambda t, x: [x[1], force(x[0]) - G], (0, 1), [0.0, -G * flight], "DOP853", events=touches, rtol=1e-12, atol=1e-13)
    lasts = x.t_events[0][x.t_events[0] > 1e-6][0]
    np.testing.assert_allclose(happened(rows, CLOSED)[0]["t"][0], flight, rtol=1e-12)
    np.testing.assert_allclose(happened(rows, OPENED)[0]["t"][0], flight + lasts, rtol=1e-8)
    np.testing.assert_allclose(rows["ball"]["q"].max(), 1.0, atol=1e-8)


def test_a_force_of_its_own_input():
    """``lagrangian_relation``: the floor pushes with ``g(q, lambda)``, here twice as hard."""

    def output(t, q, lam, z, out):
        out[0] = q[0] + 1e-3 * lam[0]

    def push(t, q, lam, z, out):
        out[0] = 2.0 * lam[0]

    rows = run(ball_on(nsds.lagrangian_relation(output, push, m=1), q=0.0), 0.5, h=0.05, **TIGHT)
    np.testing.assert_allclose(rows["ball"]["q"][:, 0], -G / 2e3 * (1 - np.cos(math.sqrt(2e3) * rows["t"])), atol=1e-11)


@examples(12)
@given(st.integers(0, 10**6))
def test_coupled_floors_obey_their_law_and_keep_energy(seed):
    """A point on several springs that press on each other, beside a rigid wall: the law in each row, and the energy of springs in it."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 4))
    A = rng.normal(size=(m, m))
    D = (A @ A.T + 0.1 * np.eye(m)) * 10.0 ** rng.uniform(-4, -1)
    H = rng.normal(size=(m, 2))
    b = rng.uniform(-0.2, 0.2, size=m)
    K = np.diag(rng.uniform(5, 50, 2))
    fext = rng.normal(size=2)
    part = nsds.lagrangian_linear(M=[1.0, 2.0], K=K, fext=fext, q=rng.normal(size=2) * 0.3, v=rng.normal(size=2))
    wall = nsds.interaction(linear(H=[[1.0, 0.3]], b=[0.5]), nsds.newton_impact(e=1.0), on="part")
    springs = nsds.interaction(linear(H=H, b=b, D=D), nsds.complementarity(), on="part")
    rows = run(nsds.system(part=part, springs=springs, wall=wall), 2.0, h=0.02, rtol=1e-10)
    q, v = rows["part"]["q"], rows["part"]["v"]
    lam, y = (rows["springs"][name].reshape(len(rows), m) for name in ("lambda", "y"))
    assert lam.min() > -1e-7
    assert y.min() > -1e-9
    assert abs(lam * y).max() < 1e-7
    energy = 0.5 * (v**2 @ [1.0, 2.0]) + 0.5 * np.einsum("ti,ij,tj->t", q, K, q) - q @ fext
    energy += 0.5 * np.einsum("ti,ij,tj->t", lam, D, lam)
    assert np.ptp(energy) < 1e-9 * len(rows) * (1 + abs(energy).max())


def test_forces_that_are_almost_gyroscopic():
    """D whose diagonal is by 1e9 smaller than its skew part: no pivot."""
    D = 1e-3 * np.array([[1e-9, 1.0], [-1.0, 1e-9]])
    part = nsds.lagrangian_linear(M=[1.0, 1.0], q=[-1e-3, 1e-3], v=[0.0, 0.0])
    springs = nsds.interaction(linear(H=np.eye(2), D=D), nsds.complementarity(), on="part")
    rows = run(nsds.system(part=part, springs=springs), 1e-3, h=1e-3)
    np.testing.assert_allclose(rows["springs"]["lambda"], np.linalg.solve(D, -rows["part"]["q"].T).T, rtol=1e-13)


def test_springs_and_forces_between_bodies():
    """Two balls on a spring: ``y = 0.1 cos 10 t``; a servo on a door against SciPy."""
    balls = nsds.rigid_bodies(2.0, 0.1, q=[[0, 0, 0, 1, 0, 0, 0], [1.1, 0, 0, 1, 0, 0, 0]], v=[[0.0] * 6] * 2)
    way = nsds.joints.distance([0, 0, 0], [1.1, 0, 0], length=1.0)
    spring = nsds.interaction(way, nsds.spring_damper(100.0), on=("balls[0]", "balls[1]"))
    rows = run(nsds.system(balls=balls, spring=spring), 1.0, **TIGHT)
    np.testing.assert_allclose(rows["spring"]["y"], 0.1 * np.cos(10 * rows["t"]), atol=1e-11)
    np.testing.assert_allclose(rows["spring"]["lambda"], -10 * np.cos(10 * rows["t"]), atol=1e-9)
    np.testing.assert_allclose(rows["balls"]["p"][:, 1, 0], rows["spring"]["lambda"], atol=1e-12)

    def servo(t, y, ydot, z, out):
        out[0] = z[0] * (z[1] - y[0]) - z[2] * ydot[0]

    door = nsds.rigid_bodies(10.0, [1.0, 1.0, 1.0], q=[0.5, 0, 0, 1, 0, 0, 0], v=[0.0] * 6)
    hinge = nsds.interaction(nsds.joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="door")
    force = nsds.interaction(nsds.joints.hinge_angle([0, 0, 1]), nsds.force_law(servo, z=[40.0, 0.5, 20.0]), on="door")
    rows = run(nsds.system(door=door, hinge=hinge, servo=force), 1.0, **TIGHT)
    x = solve_ivp(lambda t, x: [x[1], (20 - 40 * x[0] - 20 * x[1]) / 3.5], (0, 1), [0, 0], "DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    np.testing.assert_allclose(rows["servo"]["y"][-1], x[0], atol=1e-10)


def test_what_is_rigid_in_some_directions_is_refused():
    with pytest.raises(ValueError, match=r"'floor'.*positive definite"):
        run(ball_on(linear(H=[[1.0], [1.0]], D=[[1e-3, 0.0], [0.0, 0.0]])), 1.0)
    with pytest.raises(ValueError, match=r"'floor'.*ydot that depends on lambda"):
        run(ball_on(linear(H=[[1.0]], D=[[1e-3]]), law=nsds.newton_impact(e=0.0)), 1.0)
    with pytest.raises(ValueError, match="compliance"):
        run(ball_on(linear(H=[[1.0]], D=[[1e-3]])), 1.0, flow="exact")
