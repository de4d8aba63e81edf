"""Slip in space: where it begins, in which direction, and what sticks while it does not; friction never drives."""

import math

import numpy as np
import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

import nsds
from nsds.status import EVENT, FRICTION, JUMP, VIOLATED
from tests.benchmarks.fuzz_events import fault_of, random_system
from tests.benchmarks.fuzz_events import gain_of as gain_of_points
from tests.random_bodies import gain_of, random_bodies
from tests.scenes.mechanisms import gripper
from tests.schemes.event_driven.test_event_driven import G, happened, run
from tests.strategies import examples

LAW = nsds.newton_impact_friction(e_n=0.0, mu=0.4, dimension=3)


# ------------------------------------------------------------------------------------------------------- friction brakes
@examples(12)
@example(832935)  # a point on a spring that begins to slip: slowly, and not against the pull that held it
@given(st.integers(0, 10**6))
def test_points_in_space_are_braked_by_friction(seed):
    """In each row the power of friction is none or negative, and the energy never rises."""
    system, _ = random_system(seed, in_space=True)
    rows = run(system, 0.4, h=0.01, max_events=5000)
    smooth = (rows["status"] & (EVENT | JUMP)) != EVENT | JUMP
    u, r = (rows["floor"][name][smooth].reshape(smooth.sum(), -1, 3)[:, :, 1:] for name in ("ydot", "lambda"))
    assert (u * r).sum(axis=2).max() <= 1e-8
    assert gain_of_points(system, rows) < 1e-7


@examples(9)
@given(st.integers(0, 10**4).map(lambda n: n // 2 * 3 + n % 2))
def test_random_boxes_and_capsules_gain_no_energy(seed):
    """No run ends before its time but of bodies that start inside each other."""
    system = random_bodies(seed)
    try:
        rows = run(system, 0.5, h=0.01, max_events=5000)
    except nsds.SimulationError as error:
        if (error.status, error.step) != (VIOLATED, 1):
            raise
        reject()
    assert gain_of(rows, system) < 1e-5


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 7, 10, 13])
def test_these_bodies_gain_no_energy(seed):
    system = random_bodies(seed)
    assert gain_of(run(system, 1.0, h=0.01, max_events=5000), system) < 1e-7


@pytest.mark.parametrize("seed", [800089, 800705, 800913, 801953])
def test_slip_ends_where_its_direction_is_that_of_the_error_of_a_step(seed):
    """Points that slip, slow down and stick, from rest at the start, too: runs whose steps once became too short."""
    assert fault_of(seed, t_end=1.1, in_space=True) == ""


@pytest.mark.parametrize("across", [-2.0, -2.01, -2.1])
def test_slip_that_turns_round_in_less_than_a_step_is_followed(across):
    """A point that hardly slips after it fell on an incline is pulled round by its weight, before the first stage of a step of a flight."""
    force = np.array([1.56636514, 2.43946917, -9.37185096])
    point = nsds.lagrangian_linear(M=np.ones(3), fext=force, q=[0, 0, 0.82811434], v=[0.02406853, across, 0.02406853])
    law = nsds.newton_impact_friction(e_n=0.0, mu=0.3, dimension=3)
    floor = nsds.interaction(nsds.lagrangian_linear_relation(H=[[0, 0, 1.0], [1.0, 0, 0], [0, 1.0, 0]]), law, on="points")
    rows = run(nsds.system(points=point, floor=floor), 0.5, h=0.01)
    (after,), _ = happened(rows, JUMP)

    def slips(t, u):
        return force[:2] + 0.3 * force[2] * u / np.hypot(*u)

    exact = solve_ivp(slips, (after["t"], 0.5), after["points"]["v"][:2], "DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(rows["points"]["v"][-1], [*exact, 0.0], rtol=0, atol=1e-8)


def test_slip_that_stays_slow_is_followed_to_its_end():
    """A box on a corner, whose slip turns a hundred times as fast as it slows down; once it took millions of steps of 4e-9 s."""
    system = random_bodies(20024)
    assert gain_of(run(system, 1.5, h=0.01, max_events=400), system) < 1e-7


# ------------------------------------------------------------------------------------------------------------ closed forms
def box(size, v, tilt=0.0, turn=0.0):
    """A box that lies on an incline, in axes of the incline."""
    size = np.array(size)
    down = np.array([math.sin(tilt) * math.cos(turn), math.sin(tilt) * math.sin(turn), -math.cos(tilt)])
    part = nsds.rigid_bodies(1.0, (np.sum(size**2) - size**2) / 12, q=[0, 0, size[2] / 2, 1, 0, 0, 0], v=v, fext=G * down)
    return nsds.system(box=part, hits=nsds.collisions({"box": nsds.shapes.box(size)}, LAW, world=nsds.shapes.plane()))


@pytest.mark.parametrize("turn", [0.0, 0.7, 2.5])
def test_a_box_on_an_incline_begins_to_slip_down_the_steepest_way(turn):
    """All corners at once: ``x = g (sin - mu cos) t^2 / 2``, and no turn."""
    rows = run(box([0.6, 0.4, 0.1], [0] * 6, 0.6, turn), 0.5)
    way = G * (math.sin(0.6) - 0.4 * math.cos(0.6)) * rows["t"] ** 2 / 2
    np.testing.assert_allclose(rows["box"]["q"][:, 0], way * math.cos(turn), atol=1e-9)
    np.testing.assert_allclose(rows["box"]["q"][:, 1], way * math.sin(turn), atol=1e-9)
    np.testing.assert_allclose(abs(rows["box"]["q"][:, 3]), 1.0, atol=1e-12)


def test_a_box_on_an_incline_sticks():
    rows = run(box([0.6, 0.4, 0.1], [0] * 6, 0.3, 0.7), 0.5)
    assert abs(rows["box"]["v"]).max() < 1e-12
    assert not happened(rows, FRICTION)[0].size


def test_a_box_that_spins_flat_stops():
    """On corners at the distance r from the axis: ``I omega / (mu m g r)``."""
    rows = run(box([0.6, 0.4, 0.1], [0, 0, 0, 0, 0, 8.0]), 1.0)
    inertia, r = (0.6**2 + 0.4**2) / 12, math.hypot(0.3, 0.2)
    stop, _ = happened(rows, FRICTION)
    np.testing.assert_allclose(stop["t"][-1], inertia * 8.0 / (0.4 * G * r), rtol=1e-8)
    assert abs(rows["box"]["q"][-1, :2]).max() < 1e-9
    assert abs(rows["box"]["v"][-1]).max() < 1e-12


def three_feet(q, z, out):
    for k in range(3):
        c, s = math.cos(q[2] + 2.0943951023931953 * k), math.sin(q[2] + 2.0943951023931953 * k)
        out[3 * k], out[3 * k + 1], out[3 * k + 2] = q[3] + z[0] * (c * q[4] + s * q[5]), q[0] + z[0] * c, q[1] + z[0] * s


def test_a_stool_that_slides_and_spins():
    """Its feet carry a third each; against SciPy while all of them slip, then it comes to rest."""
    m, I, r, mu = 1.3, 0.05, 0.3, 0.4
    stool = nsds.lagrangian(mass=[m, m, I, m, I, I], fext=[0, 0, 0, -m * G, 0, 0], q=np.zeros(6), v=[1.5, 0.4, 6.0, 0, 0, 0], z=[r])
    feet = nsds.interaction(
        nsds.scleronomous(three_feet, m=9, z=[r]), nsds.newton_impact_friction(e_n=[0.0] * 3, mu=[mu] * 3, dimension=3), on="stool"
    )
    rows = run(nsds.system(stool=stool, feet=feet), 1.0, h=0.01, rtol=1e-10)

    def rate(t, x):
        angle = x[2] + 2 * math.pi / 3 * np.arange(3)
        arm = r * np.array([-np.sin(angle), np.cos(angle)])
        u = x[3:5, None] + x[5] * arm
        d = u / np.linalg.norm(u, axis=0)
        return [*x[3:], *(-mu * G / 3 * d.sum(axis=1)), -mu * m * G / 3 * (arm * d).sum() / I]

    first = happened(rows, FRICTION)[0]["t"][0]
    slide = rows[(rows["t"] < first - 0.01) & (rows["status"] == 0)]
    x = solve_ivp(rate, (0, slide["t"][-1]), [0, 0, 0, 1.5, 0.4, 6.0], "DOP853", slide["t"], rtol=1e-12, atol=1e-12).y.T
    assert len(slide) > 20
    np.testing.assert_allclose(slide["stool"]["q"][:, :3], x[:, :3], atol=1e-8)
    np.testing.assert_allclose(slide["stool"]["v"][:, :3], x[:, 3:], atol=1e-7)
    assert abs(rows["stool"]["v"][-1]).max() < 1e-9


# ----------------------------------------------------------------------------------------- who carries what follows from others
def bar(force):
    """Two feet at x = -1 and 1 that stick; coordinates x, y, z, and angles about z and y, all of mass 1."""
    H = [row for s in (-1.0, 1.0) for row in ([0, 0, 1, 0, s], [1, 0, 0, 0, 0], [0, 1, 0, s, 0])]
    body = nsds.lagrangian_linear(M=np.ones(5), fext=force, q=np.zeros(5), v=np.zeros(5))
    law = nsds.newton_impact_friction(e_n=[0.0, 0.0], mu=[0.5, 0.5], dimension=3)
    return nsds.system(bar=body, feet=nsds.interaction(nsds.lagrangian_linear_relation(H=H), law, on="bar"))


@examples(25)
@given(st.floats(-4, 4), st.floats(-0.5, 0.5), st.floats(-1.5, 1.5), st.floats(-4, 4))
def test_feet_on_a_line_are_loaded_as_evenly_as_can_be(along, across, turning, leaning):
    """What is carried along the line is shared such that the larger ``|lambda_t| / (mu lambda_n)`` is least, found by SciPy here."""
    normal = np.array([G + leaning, G - leaning]) / 2
    t = -np.array([across - turning, across + turning]) / 2

    def largest(share):
        return (np.hypot([share, -along - share], t) / (0.5 * normal)).max()

    best = minimize_scalar(largest, bounds=(-10, 10), method="bounded", options={"xatol": 1e-12})
    rows = run(bar([along, across, -G, turning, leaning]), 0.02, h=0.01)
    if best.fun < 0.999:
        forces = rows["feet"]["lambda"][-1].reshape(2, 3)
        np.testing.assert_allclose(forces[:, 0], normal, atol=1e-9)
        np.testing.assert_allclose(forces[:, 2], t, atol=1e-9)
        assert (np.hypot(forces[:, 1], forces[:, 2]) / (0.5 * normal)).max() <= best.fun + 1e-7
        assert abs(rows["bar"]["v"][-1]).max() < 1e-12
    elif best.fun > 1.001:
        assert abs(rows["bar"]["v"][-1]).max() > 0


@pytest.mark.parametrize("size", [1.0, 1e-4, 1e4])
def test_fingers_on_both_sides_of_a_box_press_at_all_corners_and_hold_it(size):
    """Of eight normal forces five are redundant, without which friction would hold the box at one corner of each finger, where it turns."""
    system, _ = gripper(size=size)
    second = math.sqrt(size)
    rows = nsds.simulate(system, t_end=0.05 * second, h=1e-3 * second, scheme=nsds.event_driven())
    part, hand = rows["part"], rows["hand"]
    np.testing.assert_allclose(part["q"][:, 2], hand["q"][:, 2] - hand["q"][0, 2], rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(part["v"][:, 3:], 0.0, rtol=0, atol=1e-9 / second)
    force = rows["contacts"]["lambda"][:, :8]
    np.testing.assert_allclose(force[:, :4, 0].sum(axis=1), 50.0, rtol=1e-9)
    np.testing.assert_allclose(force[0, :, 0], 12.5, rtol=1e-9)  # of least norm
    assert (np.hypot(force[..., 1], force[..., 2]) <= 0.5 * force[..., 0] * (1 + 1e-9)).all()
