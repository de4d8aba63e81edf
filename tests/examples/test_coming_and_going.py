"""The examples in which bodies are born and die, or bonds are switched, against balances and closed forms."""

import importlib

import numpy as np
import pytest

import nsds
from tests.examples.test_rigid_examples import run

G = 9.81
clutches, dock = (importlib.import_module(f"nsds.examples.{name}") for name in ("clutch", "docking"))


def test_a_hopper_bears_what_has_fallen_into_it_and_empties_through_its_gate():
    """What grains get from each other cancels; over any time, what the walls give is the change of momentum and the weight meanwhile."""
    system, rows = run("grain_hopper")
    grains, mass, h, n = rows["grains"], system["grains"]["mass"][0], 2e-3, system["grains"].size
    given = grains["p"][:, :, 2].sum(axis=1)
    is_there = grains["alive"][:-1] == 1  # in the step that ends at the next row
    gained = (np.diff(grains["v"][:, :, 2], axis=0) * is_there).sum(axis=1)
    np.testing.assert_allclose(given[1:], mass * (gained + G * h * is_there.sum(axis=1)), atol=1e-11)
    resting = slice(1100, 1200)
    assert (grains["alive"][resting] == 1).all()
    np.testing.assert_allclose(given[resting].sum(), 100 * h * n * mass * G, rtol=2e-2)
    assert (grains["q"][resting, :, 2] > 0).all()
    assert (np.diff(grains["alive"].sum(axis=1)) <= 1).all()
    assert grains["alive"][-1].sum() < n / 2
    assert not grains["p"][1:][grains["alive"][:-1] == 0].any()


@pytest.mark.parametrize(("speed", "mu"), [(1.0, 0.2), (0.8, 0.4)])
def test_parcels_slip_until_they_have_the_speed_of_the_belt(speed, mu):
    h, interval, length = 2e-3, 0.7, 1.6
    system, rows = run("conveyor", {"n": 3, "speed": speed, "mu": mu, "length": length}, t_end=3.8)
    parcels, slips = rows["parcels"], speed / (mu * G)
    assert (parcels["q"][:, :, 2] < 0.1 + 1e-9).all()
    for i in range(3):
        there = np.flatnonzero(parcels["alive"][:, i])
        t, x, v = rows["t"][there] - rows["t"][there[0]], parcels["q"][there, i, 0], parcels["v"][there, i, 0]
        assert rows["t"][there[0]] == pytest.approx(i * interval)
        np.testing.assert_allclose(v, np.minimum(mu * G * t, speed), atol=1e-9 + 2 * mu * G * h * (abs(t - slips) < h).max())
        np.testing.assert_allclose(x[-1], speed * (t[-1] - slips / 2), atol=speed * h)
        assert t[-1] == pytest.approx(length / speed + slips / 2, abs=2 * h)
    ledger = nsds.energy(system, rows)
    taken = 3 * 2.0 * speed**2 / 2  # kinetic energy that they take along, and height that the first did not bring: it was there
    assert ledger["switching"].sum() == pytest.approx(-taken - 2.0 * G * 0.1, rel=1e-6)
    assert ledger["contact"].sum() == pytest.approx(taken, rel=1e-6)


def test_a_clutch_slips_as_long_as_its_torque_says_and_takes_the_difference():
    system, rows = run("clutch")
    turning, h = rows["wheels"]["v"][:, :, 5], 2e-3
    closes = round(0.5 / h)
    seconds, loss = clutches.slip(turning[closes, 0], 4.0)
    slips = abs(turning[:, 0] - turning[:, 1]) > 1e-9
    last = np.flatnonzero(slips & (rows["t"] > 0.5) & (rows["t"] < 2.4))[-1]
    assert rows["t"][last] - 0.5 == pytest.approx(seconds, abs=h)
    assert nsds.energy(system, rows)["contact"].sum() == pytest.approx(-loss, rel=1e-6)
    np.testing.assert_allclose(turning[-1, 1], turning[round(2.5 / h), 1], atol=1e-12)  # it is open
    held = rows["clutch"]["lambda"][last + 2 : round(2.5 / h)] / h
    np.testing.assert_allclose(abs(held), clutches.DRIVE * 0.2 / 0.5, rtol=1e-9)  # the load's share


def test_a_shuttle_that_has_docked_turns_with_the_station_as_momentum_says():
    _, rows = run("docking")
    spin, drift = dock.spin(0.25)
    for part in ("station", "shuttle"):
        np.testing.assert_allclose(rows[part]["v"][-1, 5], spin, rtol=1e-3)
    momentum = 8.0 * rows["station"]["v"][:, :3] + 2.0 * rows["shuttle"]["v"][:, :3]
    assert abs(momentum - momentum[0]).max() < 1e-14
    np.testing.assert_allclose(momentum[-1, 0] / 10.0, drift, rtol=1e-12)
    captured = rows["latch"]["enabled"].argmax()
    assert abs(rows["latch"]["y"][captured, 0]) <= 0.02 < abs(rows["latch"]["y"][captured - 1, 0])
    assert not rows["latch"]["lambda"][: captured + 1].any()
    assert (rows["station"]["v"][: captured + 1] == 0).all()
