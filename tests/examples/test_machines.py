"""The examples of machines against kinematics, balances and closed forms."""

import importlib
import math

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import nsds
from tests.examples.test_rigid_examples import run

_NAMES = ("eccentric_cam", "suspended_car", "gas_piston", "jammed_motor", "solenoid_valve", "planetary_gear", "gripper", "door_latch",
          "compass_walker")  # fmt: skip
cam, car, piston, motor, valve, gear, gripper, latch, walker = (importlib.import_module(f"nsds.examples.{name}") for name in _NAMES)


def test_a_piston_gets_from_its_gas_what_it_gave():
    """Beside one coordinate, whose speed at an angle the energy says, and whose time is a quadrature."""
    speed = 80.0
    _, rows = run("gas_piston", {"speed": speed})
    angle = np.unwrap(2 * np.arctan2(rows["crank"]["q"][:, 5], rows["crank"]["q"][:, 3]), period=4 * np.pi)
    inertia, work = piston.inertia_and_work(angle)
    energy = inertia * rows["crank"]["v"][:, 4] ** 2 / 2 + work
    np.testing.assert_allclose(energy, energy[0], rtol=2e-4)

    def pace(at):
        inertia, work = piston.inertia_and_work(at)
        return np.sqrt(inertia / (2 * (energy[0] - work)))

    one, _ = quad(pace, 0, 2 * np.pi, epsabs=1e-10, limit=200)
    turns = np.interp(2 * np.pi * np.arange(1, 4), angle, rows["t"])
    np.testing.assert_allclose(turns, one * np.arange(1, 4), rtol=1e-4)
    assert all(abs(rows[name]["y"]).max() < 1e-11 for name in ("bearing", "pin", "wrist", "guide"))


def test_a_follower_is_pressed_by_its_spring_less_its_inertia():
    speed, h = 60.0, 2e-4
    _, rows = run("eccentric_cam", t_end=0.3)
    given = rows["contacts"]["lambda"][1:, :, 0].sum(axis=1).reshape(-1, 30).sum(axis=1)  # it closes anew now and then
    wanted = h * cam.contact_force(rows["t"][1:] - h / 2, speed).reshape(-1, 30).sum(axis=1)
    np.testing.assert_allclose(given[1:], wanted[1:], rtol=5e-3)
    lift = cam.RADIUS + cam.ECCENTRICITY * np.cos(speed * rows["t"]) + 0.005
    np.testing.assert_allclose(rows["follower"]["q"][:, 2], lift, atol=2e-4)


@pytest.mark.parametrize(("share", "parts"), [(0.98, False), (1.02, True)])
def test_a_follower_parts_from_its_cam_above_a_speed(share, parts):
    _, rows = run("eccentric_cam", {"speed": share * cam.parting_speed()}, t_end=0.1, h=5e-5)
    gap = np.where(rows["contacts"]["n"] > 0, rows["contacts"]["y"].max(axis=1), np.inf)
    assert (gap > 1e-5).any() == parts


def test_a_car_stands_on_its_springs_as_its_levers_say_and_rises_by_the_step():
    h, weight = 1e-3, car.CHASSIS * car.GRAVITY
    _, rows = run("suspended_car")
    springs = np.stack([rows[f"spring_{i}"]["lambda"] for i in range(4)], axis=1) / h
    before = slice(1, 100)
    np.testing.assert_allclose(springs[before], np.broadcast_to(car.loads(), (99, 4)), rtol=1e-6)
    np.testing.assert_allclose(car.loads().sum(), weight)
    heights = rows["chassis"]["q"][:, 2]
    np.testing.assert_allclose(heights[:100], heights[0], atol=1e-6)
    assert heights[-1] - heights[0] == pytest.approx(car.STEP, abs=3e-3)
    np.testing.assert_allclose(rows["wheels"]["q"][-1, :, 2], car.RADIUS + car.STEP, atol=1e-3)
    speed = rows["chassis"]["v"][:, 0]
    np.testing.assert_allclose(rows["wheels"]["v"][-1, :, 4] * car.RADIUS, speed[-1], rtol=1e-2)  # they roll
    ledger = nsds.energy(car.suspended_car(), rows)
    total = ledger["kinetic"] + ledger["potential"]
    assert total[-1] < total[0]


def test_a_motor_jams_with_the_current_of_its_armature_alone():
    """Beside exponentials, and beside the same record event by event."""
    _, rows = run("jammed_motor")
    current, speed = rows["motor"]["v"].T
    late = rows["t"] > 0.4 - motor.PERIOD
    np.testing.assert_allclose([current[late].min(), current[late].max()], motor.jammed_current(), rtol=5e-3)
    assert current.min() >= -1e-12
    assert abs(speed[rows["t"] > 0.2]).max() < 1e-12
    corners = motor.PERIOD * np.arange(1, 160) * motor.DUTY
    exact = nsds.simulate(motor.jammed_motor(), t_end=0.4, h=2e-4, scheme=nsds.event_driven(time_events=corners))
    hit, first = (int((each["stop"]["lambda"] > 1e-3).argmax()) for each in (rows, exact))
    assert rows["t"][hit] == pytest.approx(exact["t"][first], abs=10 * 2e-5)
    assert speed[hit - 1] == pytest.approx(exact["motor"]["v"][first - 1, 1], rel=2e-3)
    assert exact["stop"]["lambda"][first] == pytest.approx(motor.INERTIA * exact["motor"]["v"][first - 1, 1], rel=1e-9)
    np.testing.assert_allclose(exact["motor"]["v"][-1], [motor.jammed_current()[0], 0], atol=1e-9)


def test_a_valve_leaves_its_seats_where_current_and_spring_balance():
    """And meets them when the same record does event by event."""
    h = 2e-5
    _, rows = run("solenoid_valve", t_end=0.15)
    opens, drops = valve.departures()
    held = {name: rows["t"][1:][rows[name]["lambda"][1:] > 0] for name in ("open", "closed")}
    assert held["open"][held["open"] < 0.05].max() == pytest.approx(opens, abs=3 * h)
    assert held["closed"].max() == pytest.approx(drops, abs=6 * h)
    exact = nsds.simulate(valve.solenoid_valve(), t_end=0.15, h=2e-4, scheme=nsds.event_driven(time_events=[valve.OFF]))
    closes, strikes = (
        exact["t"][(exact["t"] > after) & (exact[name]["lambda"] > 1e-3)][0] for name, after in (("closed", 0), ("open", 0.1))
    )
    assert held["closed"].min() == pytest.approx(closes, abs=5 * h)
    assert held["open"][held["open"] > 0.1].min() == pytest.approx(strikes, abs=10 * h)


@pytest.mark.parametrize("n", [2, 3])
def test_a_planetary_gear_runs_up_as_one_wheel(n):
    _, rows = run("planetary_gear", {"n": n}, t_end=0.3)
    carrier, planets = rows["carrier"]["v"][:, 5], rows["planets"]["v"][:, :, 5]
    speed, _ = gear.speed_and_force(rows["t"], n=n)
    np.testing.assert_allclose(carrier, speed, rtol=3e-4)
    np.testing.assert_allclose(rows["sun"]["v"][:, 5], (1 + gear.RING / gear.SUN) * carrier, atol=1e-8)
    np.testing.assert_allclose(planets, np.stack([(1 - gear.RING / gear.PLANET) * carrier] * n, axis=1), atol=1e-8)
    _, force = gear.speed_and_force(rows["t"][1:] - 2.5e-4, n=n)
    np.testing.assert_allclose(rows["to_sun"]["lambda"][1:] / -5e-4, np.stack([force] * n, axis=1), rtol=1e-3)
    assert max(abs(rows[name]["y"]).max() for name in ("to_sun", "to_ring")) < 1e-12


@pytest.mark.parametrize(("share", "mu"), [(1.02, 0.5), (0.97, 0.5), (0.9, 0.3), (0.7, 0.5)])
def test_a_gripper_holds_what_its_friction_can_carry(share, mu):
    press = share * gripper.BLOCK * (gripper.GRAVITY + 2.0) / (2 * mu)
    _, rows = run("gripper", {"press": press, "mu": mu}, t_end=0.26)
    pulls = slice(210, 251)
    for part, wanted in zip(("block", "hand"), gripper.accelerations(press, mu=mu), strict=True):
        v = rows[part]["v"][pulls, 2]
        assert (v[-1] - v[0]) / 0.04 == pytest.approx(wanted, rel=5e-3, abs=1e-9)
    assert abs(rows["block"]["q"][200] - rows["block"]["q"][0]).max() < 1e-9


@pytest.mark.parametrize(("share", "latches"), [(0.98, False), (1.02, True), (2.0, True)])
def test_a_door_falls_into_its_latch_from_a_speed_on(share, latches):
    _, rows = run("door_latch", {"speed": share * latch.least_speed(), "pulls": 0.9}, t_end=1.3)
    angle = nsds.in_plane(rows["door"])[0][:, 2]
    if latches:
        assert angle[-1] == pytest.approx(latch.held_angle(), abs=2e-5)
        assert rows["spring"]["y"][-1] == pytest.approx(0.0, abs=1e-4)
    else:
        assert angle.max() < 0
        assert angle[-1] < -0.1
    assert rows["spring"]["y"].min() >= -(latch.THROW - latch.GAP) * 1.02 * share


def walked(states, push):
    """(half angle, rates of stance and swing leg) after a step, and its seconds: minimal coordinates, an impact on the new foot."""
    g, slope, a, b = walker.GRAVITY, walker.SLOPE, walker.BELOW, walker.ABOVE
    m, J, hip, long = walker.LEG, walker.INERTIA, walker.HIP, walker.BELOW + walker.ABOVE

    def mass(angles):
        """Of hip x, y and both angles from the normal; a leg's centre is at hip - b (sin, cos)."""
        M = np.diag([hip, hip, J, J])
        for i, angle in enumerate(angles):
            P = np.zeros((2, 4))
            P[:, :2], P[:, 2 + i] = np.eye(2), [-b * math.cos(angle), b * math.sin(angle)]
            M += m * P.T @ P
        return M

    def rate(t, s):
        stance, w = s[0], s[2]
        G = np.array([[long * math.cos(stance), 0], [-long * math.sin(stance), 0], [1, 0], [0, 1]])
        bent = np.array([-long * math.sin(stance), -long * math.cos(stance), 0, 0]) * w**2
        force = np.array([(hip + 2 * m) * g * math.sin(slope), -(hip + 2 * m) * g * math.cos(slope), 0, 0])
        for i in range(2):
            force[:2] -= m * b * s[2 + i] ** 2 * np.array([math.sin(s[i]), math.cos(s[i])])
            force[2 + i] = -b * m * g * math.sin(s[i] + slope)
        M = mass(s[:2])
        return np.r_[s[2:], np.linalg.solve(G.T @ M @ G, G.T @ (force - M @ bent))]

    def foot_down(t, s):
        return s[0] + s[1] if s[0] > 0.05 else -1.0

    foot_down.terminal, foot_down.direction = True, 1
    half, w, swings = states
    end = solve_ivp(rate, (0, 3), [-half, half, w + push, swings], events=foot_down, rtol=1e-9, atol=1e-10, max_step=0.05)
    stance, swing, w, swings = end.y[:, -1]
    v = np.array([long * math.cos(stance) * w, -long * math.sin(stance) * w, w, swings])
    H = np.array([[1, 0, 0, -long * math.cos(swing)], [0, 1, 0, long * math.sin(swing)]])
    by_force = np.linalg.solve(mass((stance, swing)), H.T)
    v -= by_force @ np.linalg.solve(H @ by_force, H @ v)
    assert a == b
    return (-swing, v[3], v[2]), end.t[-1]


@pytest.mark.parametrize("push", [0.0, -0.05])
def test_a_biped_walks_as_in_minimal_coordinates(push):
    """Times of its strikes and lengths of its steps; without a push all are the same."""
    _, rows = run("compass_walker", {"push": push}, t_end=2.5)
    at, states, t = walker.strikes(rows), walker.WALK, 0.0
    for k in range(3):
        states, seconds = walked(states, push if k == 0 else 0.0)
        t += seconds
        assert rows["t"][at[k]] == pytest.approx(t, abs=6e-3)
        if push == 0:
            np.testing.assert_allclose(states, walker.WALK, atol=1e-6)
            assert seconds == pytest.approx(walker.PERIOD, abs=1e-6)
    first, second = (rows["hip"]["q"][at[k], 0] for k in (0, 1))
    wanted = 2 * math.sin(walker.WALK[0])
    assert second - first == pytest.approx(wanted, abs=4e-3 if push == 0 else 0.1)
