"""Points where a motion crosses a surface that a user states, against closed forms and runs that end there."""

import math
import pickle

import numpy as np
import pytest
from scipy.linalg import expm

import nsds
from nsds.analysis.parameters import state_words
from nsds.analysis.surfaces import Surface
from nsds.model.records import memory
from nsds.status import CONVERGED, NOT_CROSSED
from tests.analysis.models import PERIOD, buck, duffing, impact_oscillator, self_excited, single_impact_orbit


def place(t, x, p, out):
    out[0] = x[0] + 0.4


def turning(t, x, p, out):
    out[0] = x[1]


def moving(t, x, p, out):
    """A surface that depends on time, and on what is varied."""
    out[0] = x[0] + 0.25 + 0.1 * math.cos(p[0] * t)


def ripple(t, x, p, out):
    out[0] = x[1] - 0.55


def far(t, x, p, out):
    out[0] = x[0] + 0.05 + (4.3 - p[0])


@pytest.mark.parametrize(("crossing", "n"), [(1, 1), (-1, 1), (0, 2)])
def test_crossings_of_a_single_impact_orbit(crossing, n):
    """At -0.4 the orbit is once on its way down and once on its way up: its state there is that of the closed form at the same phase."""
    omega = 2.7
    _, phase, state, *_ = single_impact_orbit(0.05, omega, 0.8, 1, 0.0, 0.4)
    start, T = impact_oscillator(0.05, omega, 0.8, 0.0, *state, phase), 2 * math.pi / omega
    (row,) = nsds.sweep(
        start, vary={"mass.z[0]": [omega]}, period=T, record=place, crossing=crossing, transient=4, keep=6, direction=None, progress=False
    )
    assert (row["n_periods"], row["n_impacts"], row["n_points"]) == (n, 1, 6)
    assert abs(row["x"][:, 0] + 0.4).max() < 1e-13
    assert (np.sign(row["x"][:, 1]) == (crossing or np.tile(np.sign(row["x"][:2, 1]), 3))).all()
    for t, x in zip(row["t"], row["x"], strict=True):
        part = (0.4 + t / T) % 1.0
        wanted = single_impact_orbit(0.05, omega, 0.8, 1, 0.0, part)[2]
        np.testing.assert_allclose(x, wanted, atol=1e-11)


def test_crossings_of_a_system_that_nothing_drives():
    """The turning point between impacts: from x = 1 with ``-e u`` back to 1 with u."""
    vary = {"stop.e": [0.5]}
    (row,) = nsds.sweep(self_excited(), vary=vary, period=5.0, record=turning, transient=200, keep=4, direction=None, progress=False)
    assert row["n_periods"] == 1
    found = nsds.orbit(self_excited(x=row["x"][-1, 0]), period=float(row["t"][1] - row["t"][0]), free_period=True)
    np.testing.assert_allclose(row["t"][1:] - row["t"][:-1], found["period"], atol=1e-9)
    flight = expm(np.array([[0.0, 1.0], [-1.0, 0.2]]) * float(found["period"]))
    v = (1.0 - flight[0, 0]) / flight[0, 1]
    A, low, high = np.array([[0.0, 1.0], [-1.0, 0.2]]), 0.0, float(found["period"])
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if (expm(A * middle) @ [1.0, v])[1] < 0 else (low, middle)
    np.testing.assert_allclose(row["x"][:, 0], (expm(A * low) @ [1.0, v])[0], atol=1e-9)


SYSTEMS = {
    "nonlinear": (duffing, "mass.z[0]", 0.5, 2 * math.pi / 1.3, turning),
    "linear, surface of time": (lambda: impact_oscillator(0.05, 2.7, 0.8, x=-0.5), "mass.z[0]", 2.7, 2 * math.pi / 2.7, moving),
    "relay": (nsds.examples.relay_oscillator, "plant.x[0]", 1.0, 7.0, turning),
    "converter": (lambda: buck(15.0, 11.9, 0.56), "plant.x[0]", 11.9, PERIOD, ripple),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_is_recorded_is_the_state_of_a_run_that_ends_there(name):
    """Of all families, and the function is zero there."""
    build, parameter, value, period, surface = SYSTEMS[name]
    system = build()
    exact = nsds.event_driven(rtol=1e-12, atol=1e-14, time_events=[PERIOD * k for k in range(1, 9)] if name == "converter" else [])
    (row,) = nsds.sweep(
        system, vary={parameter: [value]}, period=period, record=surface, crossing=0, transient=1, keep=5, direction=None,
        scheme=exact, progress=False,
    )  # fmt: skip
    assert row["n_points"] == 5
    out = np.zeros(1)
    for t, x in zip(row["t"], row["x"], strict=True):
        end = nsds.step(system.reshape(1), h=t, scheme=exact)
        np.testing.assert_allclose(x, memory(end)[0, state_words(end)], atol=1e-9)
        surface(t, x, np.array([value]), out)
        assert abs(out[0]) < 1e-11


def test_sections_that_are_never_crossed_are_named():
    settings = {"period": lambda omega: 2 * math.pi / omega, "transient": 2, "keep": 3, "direction": None, "progress": False}
    start = impact_oscillator(0.05, 2.6, 0.8, x=-0.5)
    with pytest.raises(ValueError, match=r"record is far, which is not crossed at any value"):
        nsds.sweep(start, vary={"mass.z[0]": [2.6, 2.7]}, record=far, **settings)
    rows = nsds.sweep(start, vary={"mass.z[0]": [2.6, 4.3]}, record=far, crossing=0, **settings)
    assert rows["status"].tolist() == [NOT_CROSSED, CONVERGED]
    assert "section" in nsds.advice(int(rows["status"][0]))


def test_bad_sections():
    settings = {"vary": {"mass.z[0]": [2.6]}, "period": 2.0, "progress": False}
    for options, error, words in (
        ({"record": lambda x: x}, TypeError, r"record\(t, x, p, out\)"),
        ({"record": place, "crossing": 2}, ValueError, "crossing"),
        ({"record": "impact", "crossing": -1}, ValueError, "crossing goes with a function"),
        ({"record": lambda t, x, p, out: x[7]}, ValueError, "record fails at the start"),
    ):
        with pytest.raises(error, match=words):
            nsds.sweep(impact_oscillator(0.05, 2.6, 0.8), **settings, **options)
    with pytest.raises(ValueError, match="a map has neither"):
        nsds.sweep(nsds.iterated_map(lambda x, p, out: None or out.fill(0.5 * x[0]), x=[1.0], p=[1.0]), vary={"p[0]": [1.0]}, record=place)


def test_surfaces_go_to_other_processes():
    one = Surface("test", place, -1)
    other = pickle.loads(pickle.dumps(one))
    assert (other.function, other.crossing, other.identity()) == (one.function, -1, one.identity())
    assert Surface("test", place, 1).identity() != one.identity() != Surface("test", turning, -1).identity()
