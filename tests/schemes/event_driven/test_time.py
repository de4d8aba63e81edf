"""Rows, edges of sources and times that are known in advance: where they fall together up to rounding, and that every run ends."""

import math
import signal
import threading
import time

import numpy as np
import pytest

import nsds
from nsds.status import STEP_COLLAPSED, TIME_EVENT, is_event

DIODE = ".model DI D"


def _square_wave(f, rise=0.0, duty=0.5):
    return f"V1 in 0 PULSE(-1 1 0 {rise} {rise} {duty / f - rise} {1.0 / f})"


@pytest.mark.parametrize("f", [50, 60, 1e3, 1e5])
@pytest.mark.parametrize("n", [10, 20, 100])
def test_rows_on_the_edges_of_a_square_wave(f, n):
    """Rows are within rounding of the edges, before and after them: each edge is one event, and the diode leaves ``max(v, 0)``."""
    circuit = nsds.circuit([_square_wave(f), "D1 in out DI", "R1 out 0 1k", DIODE])
    rows = nsds.simulate(circuit, t_end=10 / f, h=1.0 / f / n, scheme=nsds.event_driven())
    halves = rows["t"] * f * 2
    assert np.sum(~is_event(rows["status"])) == 10 * n + 1
    edges = rows[(rows["status"] & TIME_EVENT) != 0]
    edges = edges[is_event(edges["status"])]
    assert np.array_equal(np.round(edges["t"] * f * 2), np.arange(1, 20))
    assert np.all(abs(edges["t"] * f * 2 - np.arange(1, 20)) < 1e-12)
    away = abs(halves - np.round(halves)) > 1e-6
    wanted = (np.floor(halves[away]) % 2 == 0).astype(float)
    assert np.array_equal(nsds.circuits.voltage(circuit, rows[away], "out"), wanted)


@pytest.mark.parametrize("f", [1e3, 1e5])
@pytest.mark.parametrize("rise", [1e-9])
@pytest.mark.parametrize(("n", "duty"), [(20, 0.5), (7, 0.37), (13, 0.37)])
def test_fast_edges_are_events_on_rows_or_between(f, rise, n, duty):
    """Both ends of an edge are events, and the diode switches within it; times of which t has no more digits do not matter."""
    circuit = nsds.circuit([_square_wave(f, rise, duty), "D1 in out DI", "R1 out 0 1k", DIODE])
    rows = nsds.simulate(circuit, t_end=5 / f, h=1.0 / f / n, scheme=nsds.event_driven())
    given, got = (nsds.circuits.voltage(circuit, rows, node) for node in ("in", "out"))
    slope = 2.0 / rise
    assert abs(got - np.maximum(given, 0.0)).max() <= 2.0 * slope * math.ulp(5 / f)
    switchings = is_event(rows["status"]) & ((rows["status"] & (nsds.status.CLOSED | nsds.status.OPENED)) != 0)
    assert np.sum(switchings & (rows["t"] > 0)) == 10  # of five pulses


@pytest.mark.parametrize("h", [1e-5, 2.5e-6, 2e-6, 1e-6, 5e-7, 3e-7])
def test_peak_detector_does_not_depend_on_rows(h):
    """To 50 / 11 V with 100 / 11 us while the source is up, to 0 with 100 us while it is down."""
    circuit = nsds.circuit(["V1 a 0 PULSE(0 5 0 0 0 5u 10u)", "R1 a b 10", "D1 b c DI", "C1 c 0 1u", "R2 c 0 100", DIODE])
    rows = nsds.simulate(circuit, t_end=6e-5, h=h, scheme=nsds.event_driven())
    v, at = 0.0, 0
    for _ in range(6):
        v, at = (50 / 11 + (v - 50 / 11) * math.exp(-5 / (100 / 11))) * math.exp(-5 / 100), at + 1e-5
    row = rows[abs(rows["t"] - 6e-5) < 1e-12]
    assert abs(nsds.circuits.voltage(circuit, row[:1], "c")[0] - v) < 1e-11


def _times(n, step):
    """Multiples of a step as they come by adding it up: off its multiples by rounding, to both sides."""
    return np.cumsum(np.full(n, step))


def test_times_that_are_given_fall_on_rows_of_functions():
    """x' = +-1 by turns, whose sign changes at given times that are rows but for rounding: x is a triangle."""
    times = _times(20, 0.1)

    def f(t, x, z, out):
        out[0] = 1.0 if math.floor(t / 0.1) % 2 == 0 else -1.0

    system = nsds.system(part=nsds.first_order(f, x=[0.5]))
    rows = nsds.simulate(system, t_end=2.0, h=0.02, scheme=nsds.event_driven(time_events=times))
    struck = rows[is_event(rows["status"]) & ((rows["status"] & TIME_EVENT) != 0)]
    assert np.sum(~is_event(rows["status"])) == 101
    assert 19 <= struck.size <= 20  # the last one is the end
    phase = (rows["t"] + 1e-12) % 0.2
    assert abs(rows["part"]["x"][:, 0] - 0.5 - np.minimum(phase, 0.2 - phase)).max() < 1e-9


def test_times_that_are_given_fall_on_rows_of_mechanics():
    """Each given time is one event, whether the row there is later or earlier by rounding."""
    ball = nsds.lagrangian(mass=[1.0], q=[1.0], v=[0.0], fext=[-1.0])
    system = nsds.system(ball=ball)
    times = _times(20, 0.1)
    rows = nsds.simulate(system, t_end=1.95, h=0.05, scheme=nsds.event_driven(time_events=times))
    struck = rows[is_event(rows["status"]) & ((rows["status"] & TIME_EVENT) != 0)]
    assert struck.size == 19
    assert np.sum(rows["status"] == nsds.status.EVENT) == 19
    assert abs(rows["ball"]["q"][:, 0] - 1.0 + rows["t"] ** 2 / 2).max() < 1e-12


def test_several_times_that_are_one_up_to_rounding_are_one_event():
    times = [0.3, math.nextafter(0.3, 1), 0.1 + 0.2]
    rows = nsds.simulate(nsds.system(ball=nsds.lagrangian(mass=[1.0], q=[1.0], v=[0.0])), t_end=1.0, h=0.1,
                         scheme=nsds.event_driven(time_events=times))  # fmt: skip
    assert np.sum(is_event(rows["status"]) & ((rows["status"] & TIME_EVENT) != 0)) == 1


def _charged(resistance, voltage="1"):
    return nsds.circuit([f"V1 in 0 {voltage}", f"R1 in out {resistance}", "C1 out 0 1u IC=0"])


def test_a_motion_that_does_not_get_on_ends_with_the_name_of_what_is_fast():
    """An oscillation of 6e-15 s that nothing damps, beside rows of 1 ms: 1e11 steps of the series."""
    began = time.perf_counter()
    circuit = nsds.circuit(["V1 in 0 1", "L1 in out 1f", "C1 out 0 1f"])
    with pytest.raises(nsds.SimulationError, match=r"(C1|L1): with a time constant of 1e-15 s") as caught:
        nsds.simulate(circuit, t_end=1e-2, h=1e-3, scheme=nsds.event_driven())
    assert caught.value.status == STEP_COLLAPSED
    assert time.perf_counter() - began < 60
    assert caught.value.trajectory["t"][0] == 0.0


def test_a_time_constant_that_moves_nothing_is_stepped_over():
    """1e-15 s behind a sine of 50 Hz, beside rows of 1 ms."""
    circuit = _charged("1n", "SIN(0 1 50)")
    rows = nsds.simulate(circuit, t_end=1e-2, h=1e-3, scheme=nsds.event_driven())
    assert abs(nsds.circuits.voltage(circuit, rows, "out") - np.sin(100 * np.pi * rows["t"])).max() < 1e-11


def test_long_work_between_two_rows_is_paused_without_a_trace():
    """v of an RC element behind a sine, in thousands of its time constants between two rows."""
    w, tau = 2 * math.pi * 50, 1e-6
    rows = nsds.simulate(_charged("1", "SIN(0 1 50)"), t_end=0.2, h=0.1, scheme=nsds.event_driven())
    rows = rows[rows["t"] > 0]
    assert rows["n_iter"].min() > 2 * 4096
    t = rows["t"]
    wanted = (np.sin(w * t) - w * tau * np.cos(w * t)) / (1 + (w * tau) ** 2)
    assert abs(nsds.circuits.voltage(_charged("1", "SIN(0 1 50)"), rows, "out") - wanted).max() < 1e-10


def test_pauses_of_mechanics_leave_no_trace():
    """An oscillator that turns 16 000 times between two rows."""
    w = 1e5
    system = nsds.system(mass=nsds.lagrangian_linear(M=[1.0], K=[[w**2]], q=[1.0], v=[0.0]))
    rows = nsds.simulate(system, t_end=2.0, h=1.0, scheme=nsds.event_driven())
    assert rows["n_iter"][1:].min() > 2 * 4096
    assert abs(rows["mass"]["q"][:, 0] - np.cos(w * rows["t"])).max() < 1e-7


def test_ctrl_c_is_heard_between_two_rows():
    """A row that takes ten seconds is left within a second of Ctrl-C, with the rows before it."""
    circuit = _charged("1", "SIN(0 1 50)")
    nsds.simulate(circuit, t_end=1e-3, h=1e-3, scheme=nsds.event_driven())  # compiled
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.perf_counter()
    try:
        timer.start()
        with pytest.raises(nsds.SimulationInterrupted) as caught:
            nsds.simulate(circuit, t_end=200.0, h=100.0, scheme=nsds.event_driven())
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, handler)
    assert time.perf_counter() - began < 10.0
    assert np.array_equal(caught.value.trajectory["t"], [0.0, 0.0])  # the start, and what the source is then
