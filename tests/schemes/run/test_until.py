"""A condition ends a run at the first row at which it holds; rows before are those of the run without it."""

import math

import numpy as np
import pytest

import nsds

BALL = nsds.examples.bouncing_ball()


def test_rows_end_where_the_condition_holds():
    whole = nsds.simulate(BALL, t_end=3.0, h=1e-3)
    for text, holds in (("ball.q[0] < 0.2", whole["ball"]["q"][:, 0] < 0.2), ("floor.lambda >= 1.0", whole["floor"]["lambda"] >= 1.0)):
        rows = nsds.simulate(BALL, t_end=3.0, h=1e-3, until=text)
        assert rows.size == holds.argmax() + 1
        np.testing.assert_array_equal(rows, whole[: rows.size])
    assert nsds.simulate(BALL, t_end=0.2, h=1e-3, until="ball.q[0] < 0.2").size == 201


def test_rows_that_are_far_apart():
    every = nsds.simulate(BALL, t_end=3.0, h=1e-3, save_every=100)
    rows = nsds.simulate(BALL, t_end=3.0, h=1e-3, save_every=100, until="ball.q[0] < 0.3")
    np.testing.assert_array_equal(rows, every[: int((every["ball"]["q"][:, 0] < 0.3).argmax()) + 1])


def test_members_end_each_at_their_own_row():
    members = np.repeat(BALL, 3)
    members["ball"]["q"][:, 0] = [1.0, 0.5, 20.0]
    rows = nsds.simulate(members, t_end=1.0, h=1e-3, until=lambda rows: rows["ball"]["q"][:, 0] < 0.2)
    ends = [math.ceil(1e3 * math.sqrt(2 * (q - 0.2) / 9.81)) for q in (1.0, 0.5)]
    assert np.abs(np.count_nonzero(rows["status"] == 0, axis=1) - [ends[0] + 1, ends[1] + 1, 1001]).max() <= 1
    assert np.isnan(rows["t"][1, -1])
    nsds.report(members, rows)


def test_saved_rows_events_and_restart():
    rows = nsds.simulate(BALL, t_end=3.0, h=1e-3, save_every=10, until="ball.q[0] < 0.2")
    assert rows["step"][-1] == 410
    going_on = nsds.simulate(nsds.restart(BALL, rows[-1]), t_end=1.0, h=1e-3)
    np.testing.assert_array_equal(going_on["ball"][-1], nsds.simulate(BALL, t_end=1.0, h=1e-3)["ball"][-1])
    events = nsds.simulate(BALL, t_end=3.0, h=0.1, scheme=nsds.event_driven(), until="floor.y <= 1e-12")
    assert events["t"][-1] == pytest.approx(math.sqrt(2 / 9.81), abs=1e-12)


def shrinks(t, x, z, out):
    out[0] = -1.0 if x[0] > 0 else 1 / (x[0] - x[0])


def test_what_happens_after_the_end_does_not_count():
    tank = nsds.system(tank=nsds.first_order(shrinks, x=[1.0]))
    with pytest.raises(nsds.SimulationError):
        nsds.simulate(tank, t_end=2.0, h=0.01)
    rows = nsds.simulate(tank, t_end=2.0, h=0.01, until="tank.x[0] < 0.5")
    assert rows["t"][-1] == pytest.approx(0.51, abs=0.011)
    assert (rows["status"] == 0).all()


@pytest.mark.parametrize(
    ("until", "words"),
    [
        ("ball", "until must compare"),
        ("ball.q[0] < low", "until must compare"),
        ("ball.w < 1", r"until must name what is saved, ball\.q"),
        ("ball.q < 1", "3 numbers, of which one is to be named"),
        (lambda rows: 1.0, "one for each row"),
        (lambda rows: np.zeros(rows.size), "array of bool"),
    ],
)
def test_bad_conditions_are_refused(until, words):
    with pytest.raises(ValueError, match=words):
        nsds.simulate(BALL, t_end=0.1, h=1e-2, until=until)
