"""Choices at events against plain twins: which way slip begins, what comes to its cone together, slip that turns, rows at the start."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import nsds
from nsds.status import FRICTION, JUMP, is_event
from tests.strategies import examples

G = 9.81
linear = nsds.lagrangian_linear_relation


def run(system, t_end, h=0.01, **options):
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(**options), progress=False)


def changes(rows, bit=FRICTION):
    return np.flatnonzero(is_event(rows["status"]) & (rows["status"] & bit > 0))


# --------------------------------------------------------------------------------------- which way slip begins (`_align`)
def plate(mass, force, normal, mu):
    """Feet at rest on a floor, whose tangential motions, two of each, have one mass matrix; each is pressed by a force of its own."""
    n = normal.size
    M = np.zeros((3 * n, 3 * n))
    M[: 2 * n, : 2 * n], M[2 * n :, 2 * n :] = mass, np.eye(n)
    H = np.zeros((3 * n, 3 * n))
    for k in range(n):
        H[3 * k, 2 * n + k] = H[3 * k + 1, 2 * k] = H[3 * k + 2, 2 * k + 1] = 1.0
    feet = nsds.lagrangian_linear(M=M, fext=[*force, *-normal], q=np.zeros(3 * n), v=np.zeros(3 * n))
    law = nsds.newton_impact_friction(e_n=np.zeros(n), mu=mu, dimension=3)
    return nsds.system(feet=feet, floor=nsds.interaction(linear(H=H), law, on="feet"))


def friction_of_least_energy(mass, force, limit):
    """The friction in its discs for which the energy of acceleration is least, by projected gradients with Nesterov's momentum."""
    W, x = np.linalg.inv(mass), np.zeros(force.size)
    y, s, step = x, 1.0, 1.0 / np.linalg.norm(W, 2)
    for _ in range(20_000):
        z = (y - step * W @ (force + y)).reshape(-1, 2)
        size = np.linalg.norm(z, axis=1, keepdims=True)
        new = (z * np.minimum(1.0, limit[:, None] / np.maximum(size, 1e-300))).ravel()
        if abs(new - x).max() < 1e-15:
            break
        s_new = (1 + math.sqrt(1 + 4 * s * s)) / 2
        y = new + (s - 1) / s_new * (new - x)
        if (y - new) @ (new - x) < 0:
            y, s_new = new, 1.0
        x, s = new, s_new
    return x


@examples(40)
@given(st.integers(0, 10**6))
def test_slip_begins_as_friction_of_least_energy_has_it(seed):
    """Some feet stick, others begin to slip along their accelerations, which depend on the friction of all."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    root = rng.normal(size=(2 * n, 2 * n))
    mass = np.eye(2 * n) + 0.5 * root @ root.T / n
    force, normal, mu = 3 * rng.normal(size=2 * n), 1 + 3 * rng.random(n), 0.2 + rng.random(n)
    rows = run(plate(mass, force, normal, mu), 0.01)
    expected = friction_of_least_energy(mass, force, mu * normal)
    found = rows["floor"]["lambda"][0].reshape(n, 3)
    np.testing.assert_allclose(found[:, 0], normal, rtol=1e-12)
    np.testing.assert_allclose(found[:, 1:].ravel(), expected, atol=2e-7 * abs(force).max())


# ---------------------------------------------------------------------------- what comes to its cone together (`start_together`)
def rising(t, z, out):
    out[0], out[1], out[2], out[3], out[4] = z[0] * t, 0.0, -G, 0.0, z[1]


@examples(10)
@given(st.floats(1.0, 4.0), st.floats(-4.0, 4.0))
def test_feet_that_share_a_load_slip_together(rate, leaning):
    """A bar on two feet is pulled along their line by ``rate t``: both slip at ``mu m g / rate``, in one event."""
    H = [row for s in (-1.0, 1.0) for row in ([0, 0, 1, 0, s], [1, 0, 0, 0, 0], [0, 1, 0, s, 0])]
    body = nsds.lagrangian_linear(M=np.ones(5), fext=rising, q=np.zeros(5), v=np.zeros(5), z=[rate, leaning])
    law = nsds.newton_impact_friction(e_n=[0.0, 0.0], mu=[0.2, 0.2], dimension=3)
    rows = run(nsds.system(bar=body, feet=nsds.interaction(linear(H=H), law, on="bar")), 0.2 * G / rate + 0.05)
    events = changes(rows)
    assert events.size == 1
    np.testing.assert_allclose(rows["t"][events], 0.2 * G / rate, rtol=1e-8)
    forces = rows["feet"]["lambda"][events[0]].reshape(2, 3)
    np.testing.assert_allclose(forces[:, 1], -0.2 * forces[:, 0], rtol=1e-6)
    beyond = rows["t"][-1] - rows["t"][events[0]]
    np.testing.assert_allclose(rows["bar"]["v"][-1][0], rate * beyond**2 / 2, rtol=1e-5)


# ------------------------------------------------------------------------------------------------- slip that turns (`turns`)
@examples(15)
@example(-1e-4)
@example(1e-5)
@given(st.floats(-0.2, 0.2).filter(lambda beside: abs(beside) > 1e-5))
def test_slip_that_nearly_stops_turns(beside):
    """A point that a force stops and drives back: for a moment its slip is small, and its direction turns fast; against SciPy."""
    mu, pull = 0.2, np.array([-5.0, 0.0])
    point = nsds.lagrangian_linear(M=np.ones(3), fext=[*pull, -G], q=np.zeros(3), v=[1.0, beside, 0.0])
    law = nsds.newton_impact_friction(e_n=0.0, mu=mu, dimension=3)
    H = [[0, 0, 1.0], [1.0, 0, 0], [0, 1.0, 0]]
    rows = run(nsds.system(point=point, floor=nsds.interaction(linear(H=H), law, on="point")), 0.4)
    x = solve_ivp(lambda t, x: [*x[2:], *(pull - mu * G * x[2:] / np.hypot(*x[2:]))], (0, 0.4), [0, 0, 1.0, beside], "DOP853",
                  rtol=1e-12, atol=1e-13).y[:, -1]  # fmt: skip
    assert not changes(rows).size
    np.testing.assert_allclose(rows["point"]["q"][-1][:2], x[:2], atol=2e-8)
    np.testing.assert_allclose(rows["point"]["v"][-1][:2], x[2:], atol=2e-7)


# ------------------------------------------------------------------------------------------------------- rows and their forces
def stack(v=0.0):
    """Two balls, one on the other, on a floor; the upper one has a velocity."""
    balls = nsds.lagrangian_linear(M=np.ones(2), fext=[-G, -G], q=[0.0, 0.0], v=[0.0, v])
    return nsds.system(balls=balls, touch=nsds.interaction(linear(H=[[1.0, 0.0], [-1.0, 1.0]]), nsds.newton_impact(e=0.0), on="balls"))


@pytest.mark.parametrize("flow", ["exact", "dopri5"])
def test_the_first_row_has_the_forces_of_what_touches(flow):
    rows = run(stack(), 0.05, flow=flow)
    np.testing.assert_allclose(rows["touch"]["lambda"].reshape(len(rows), 2), [[2 * G, G]] * len(rows), rtol=1e-12)
    assert rows["touch"]["active"][0].all()
    assert not is_event(rows["status"]).any()


def test_the_first_row_is_that_before_an_impact_at_the_start():
    rows = run(stack(v=-1.0), 0.05)
    assert rows["balls"]["v"][0][1] == -1.0
    assert not rows["touch"]["lambda"][0].any()
    assert rows["status"][1] & JUMP
    np.testing.assert_allclose(rows["touch"]["lambda"][1].ravel(), [1.0, 1.0], rtol=1e-12)
    np.testing.assert_allclose(rows["touch"]["lambda"][2].ravel(), [2 * G, G], rtol=1e-12)


def test_the_first_row_of_a_box_has_its_weight():
    box = nsds.rigid_bodies(1.5, 0.1, q=[0, 0, 0.1, 1, 0, 0, 0], v=[0] * 6, fext=[2.0, 0, -1.5 * G])
    law = nsds.newton_impact_friction(e_n=0.0, mu=0.5, dimension=3)
    rows = run(nsds.system(box=box, hits=nsds.collisions({"box": nsds.shapes.box([0.6, 0.4, 0.2])}, law, world=nsds.shapes.plane())), 0.02)
    for row in rows:
        forces = row["hits"]["lambda"].reshape(-1, 3)[: int(row["hits"]["n"])]
        np.testing.assert_allclose(forces[:, 0].sum(), 1.5 * G, rtol=1e-10)
        np.testing.assert_allclose(np.hypot(*forces[:, 1:].sum(axis=0)), 2.0, rtol=1e-10)
        np.testing.assert_allclose(row["box"]["p"], [-2.0, 0, 1.5 * G, 0, 0, 0], atol=1e-9)


def test_generalised_forces_are_those_of_the_contacts():
    """``p = H^T lambda`` in each row, of forces or of impulses; 0 in flight."""
    H = np.array([[1.0, 0.0], [-1.0, 1.0]])
    balls = nsds.lagrangian_linear(M=np.ones(2), fext=[-G, -G], q=[0.0, 0.3], v=[0.0, 0.0])
    system = nsds.system(balls=balls, touch=nsds.interaction(linear(H=H), nsds.newton_impact(e=0.5), on="balls"))
    rows = nsds.simulate(system, t_end=2.0, h=0.05, scheme=nsds.event_driven(), fields=["balls", "balls.p", "touch"])
    np.testing.assert_allclose(rows["balls"]["p"], rows["touch"]["lambda"].reshape(len(rows), 2) @ H, atol=1e-12)
    jumps = changes(rows, JUMP)
    assert jumps.size > 5
    np.testing.assert_allclose(
        rows["balls"]["p"][jumps], (rows["balls"]["v"][jumps] - rows["balls"]["v"][jumps - 1]), atol=1e-5
    )  # the last one closes
    sphere = nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 0.5, 1, 0, 0, 0], v=[0.4, 0, 0, 0, 0, 0], fext=[0, 0, -G])
    law = nsds.newton_impact_friction(e_n=0.5, mu=0.3, dimension=3)
    scene = nsds.system(ball=sphere, hits=nsds.collisions({"ball": nsds.shapes.sphere(0.2)}, law, world=nsds.shapes.plane()))
    rows = run(scene, 1.0)
    first = changes(rows, JUMP)
    jump = rows["ball"]["v"][first] - rows["ball"]["v"][first - 1]
    np.testing.assert_allclose(rows["ball"]["p"][first], jump * [1, 1, 1, 0.1, 0.1, 0.1], atol=1e-5)
    assert not rows["ball"]["p"][: first[0]].any()
    assert not rows["ball"]["p"][(rows["hits"]["n"] == 0)].any()
