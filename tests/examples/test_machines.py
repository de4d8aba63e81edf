"""The examples of machines against kinematics, balances and closed forms."""

import importlib

import numpy as np
import pytest
from scipy.integrate import quad

import nsds
from tests.examples.test_rigid_examples import run

cam, car, piston = (importlib.import_module(f"nsds.examples.{name}") for name in ("eccentric_cam", "suspended_car", "gas_piston"))


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
