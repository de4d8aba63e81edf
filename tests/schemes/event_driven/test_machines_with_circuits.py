"""Circuits and mechanisms in one record, event-driven, against two programs: diodes, chopped sources, stops, sticking."""

import math

import numpy as np
import pytest

import nsds
from nsds.status import ACCUMULATION, JUMP, OPENED, is_event
from tests.paths import MACHINES
from tests.schemes.lagrangian.test_machines_with_circuits import induction, mass

needs_machines = pytest.mark.skipif(not MACHINES.is_dir(), reason="the collection of machines is not part of the package")
PERIOD = 0.01
row = nsds.lagrangian_linear_relation


def chopped(t, z, out):
    """12 V in the first 0.4 of each 10 ms, from the start of it on; corners are met in spite of rounding, as those of time_events."""
    phase = t * 100.0 * (1 + 2.0**-50)
    out[0] = 12.0 if phase - math.floor(phase) < 0.4 else 0.0


def motor_run(t_end, h=2e-4):
    """Coordinates (charge, angle): a diode keeps the current from turning, dry friction, a stop at 12 rad."""
    L, R, K, J = 5e-3, 1.2, 0.08, 2e-4
    system = nsds.system(
        motor=nsds.lagrangian_linear(np.diag([L, J]), C=[[R, K], [-K, 1e-4]], fext=chopped, q=[0, 0], v=[0, 0]),
        diode=nsds.interaction(row([[1, 0]]), nsds.relay(0.0, np.inf), on="motor"),
        friction=nsds.interaction(row([[0, 1]]), nsds.dry_friction(0.02), on="motor"),
        stop=nsds.interaction(row([[0, -1]], b=[12.0]), nsds.newton_impact(0.0), on="motor"),
    )
    corners = [(k + part) * PERIOD for k in range(round(t_end / PERIOD) + 1) for part in (0.0, 0.4)][1:]
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(time_events=corners))


def events_of(rows, bit):
    return rows[is_event(rows["status"]) & (rows["status"] & bit > 0)]


def test_a_motor_on_a_chopped_supply_runs_into_a_stop():
    rows = motor_run(0.4)
    hit = events_of(rows, JUMP)
    np.testing.assert_allclose(hit["t"], [0.19837366071849], rtol=0, atol=1e-9)
    np.testing.assert_allclose(hit["stop"]["lambda"], [0.017920587742], rtol=1e-8)
    assert rows["motor"]["v"][-1, 0] == pytest.approx(1.60796978145, abs=1e-9)
    starts = rows["t"][rows["motor"]["v"][:, 1] > 0][0]
    assert 0.00010549086660121 <= starts <= 3e-4
    assert rows["motor"]["v"][:, 0].min() >= -1e-12
    assert abs(rows["motor"]["v"][rows["t"] > 0.19838, 1]).max() < 1e-12


@pytest.mark.reference
@needs_machines
def test_the_motor_in_full():
    with np.load(MACHINES / "dc_motor_freewheel_jam" / "ref.npz") as file:
        reference = dict(file)
    rows = motor_run(0.4)
    grid = rows[~is_event(rows["status"])]
    for ours, column in ((grid["motor"]["v"][:, 0], "i"), (grid["motor"]["v"][:, 1], "omega"), (grid["motor"]["q"][:, 1], "theta")):
        np.testing.assert_allclose(ours, reference[column], rtol=0, atol=1e-9 * max(1.0, abs(reference[column]).max()), err_msg=column)
    current = rows["motor"]["v"][:, 0]
    stops = rows["t"][1:][(current[1:] <= 1e-12) & (current[:-1] > 1e-12)]
    np.testing.assert_allclose(stops, reference["t_current_zero"], rtol=0, atol=1e-9)


# ------------------------------------------------------------------------------------------------------------ solenoid
def springs(t, q, v, z, out):
    voltage = 12.0 if t < 0.15 else 0.0
    out[0], out[1] = 8.0 * v[0] - voltage, -400.0 * (4e-3 - q[1]) - 0.5 + 0.2 * v[1]


def solenoid_run(t_end=0.3, h=2e-4):
    """Coordinates (charge, gap) between two stops, closed with e = 0, open with e = 0.4."""
    system = nsds.system(
        core=nsds.lagrangian(mass, fgyr=induction, fint=springs, q=[0, 4e-3], v=[0, 0]),
        closed=nsds.interaction(row([[0, 1]]), nsds.newton_impact(0.0), on="core"),
        open=nsds.interaction(row([[0, -1]], b=[4e-3]), nsds.newton_impact(0.4), on="core"),
    )
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(rtol=1e-12, atol=1e-15, time_events=[0.15]))


def test_a_solenoid_closes_and_opens():
    rows = solenoid_run()
    leaves, hits = events_of(rows, OPENED), events_of(rows, JUMP)
    np.testing.assert_allclose(leaves["t"][:2], [0.001202204959, 0.159945338063], rtol=0, atol=1e-8)
    np.testing.assert_allclose(leaves["core"]["v"][:2, 0], [0.7453559925, 0.3055050463], rtol=0, atol=1e-7)
    times = [0.0178931959, 0.177742850253, 0.199878284773, 0.21186405382, 0.217021443418, 0.219105539486, 0.21993958621]
    speeds = [-0.7812757164, 0.4330089852, 0.1674159779, 0.06586266897, 0.02616324134, 0.01043622238, 0.004169848379]
    np.testing.assert_allclose(hits["t"][: len(times)], times, rtol=0, atol=1e-8)
    before = rows[np.flatnonzero(is_event(rows["status"]) & (rows["status"] & JUMP > 0)) - 1]
    np.testing.assert_allclose(before["core"]["v"][: len(speeds), 1], speeds, rtol=0, atol=1e-7)
    left = (
        0.8 * 2.5e-7 / 10 / 0.6
    )  # the reference stops at 1e-7 m/s; its last impact may be as fast as 2.5e-7, and pressed on with 10 m/s^2
    np.testing.assert_allclose(events_of(rows, ACCUMULATION)["t"], [0.2204953103], rtol=0, atol=left)
    assert rows["core"]["q"][-1, 1] == pytest.approx(4e-3, abs=1e-14)


@pytest.mark.reference
@needs_machines
def test_the_solenoid_in_full():
    with np.load(MACHINES / "solenoid_core_stops" / "ref.npz") as file:
        reference = dict(file)
    rows = solenoid_run()
    grid = rows[~is_event(rows["status"])]
    for ours, column in ((grid["core"]["q"][:, 1], "x"), (grid["core"]["v"][:, 1], "v"), (grid["core"]["v"][:, 0], "i")):
        np.testing.assert_allclose(ours, reference[column], rtol=0, atol=1e-7, err_msg=column)
    hits = events_of(rows, JUMP)["t"][1:]
    n = len(reference["t_open_impacts"])
    np.testing.assert_allclose(hits[:n], reference["t_open_impacts"][: len(hits)], rtol=0, atol=1e-8)
