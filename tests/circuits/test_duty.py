"""Sources whose edges lie within steps of time stepping: what is said of it, and that it is true."""

import warnings

import pytest

import nsds


def _pulses(duty, period=1e-5, delay=0.0, rise=0.0):
    return nsds.circuit([f"V1 in 0 PULSE(0 1 {delay} {rise} {rise} {duty * period - rise} {period})", "R1 in out 1k", "C1 out 0 1u IC=0"])


def _said(circuit, h, scheme=None, t_end=1e-4):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        nsds.simulate(circuit, t_end=t_end, h=h, scheme=scheme)
    return [str(each.message) for each in said if "edges of a source" in str(each.message)]


@pytest.mark.parametrize(("duty", "h", "off"), [(0.25, 1e-6, 20), (0.25, 2e-6, 20), (0.33, 2e-6, 39), (0.337, 1e-7, 2.1), (0.5, 2e-6, 20)])
def test_pulses_that_steps_round_are_told_by_how_much(duty, h, off):
    """What is said is what the capacitor gets in a period, whose voltage is next to nothing."""
    circuit = _pulses(duty)
    (said,) = _said(circuit, h)
    assert f"off by {off} %" in said
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = nsds.simulate(circuit, t_end=1e-5, h=h)
    taken = nsds.circuits.voltage(circuit, rows, "out")[-1] * 1e-3 / 1e-5  # of the period, by RC
    assert abs(100 * abs(taken / duty - 1) - off) < 1.0


@pytest.mark.parametrize(("duty", "h"), [(0.25, 5e-7), (0.33, 1e-7), (0.5, 1e-6), (0.5, 5e-6)])
@pytest.mark.parametrize("rise", [0.0, 1e-9])
@pytest.mark.parametrize("delay", [0.0, 3e-5, 3.2e-6 + 8e-7])
def test_steps_that_end_at_all_edges_are_not_warned_of(duty, h, rise, delay):
    if abs(delay / h - round(delay / h)) < 1e-6:
        assert _said(_pulses(duty, delay=delay, rise=rise), h) == []


def test_what_steps_once_or_is_slow_or_followed_by_events_is_not_warned_of():
    once = nsds.circuit(["V1 in 0 PWL(0 0 33.3u 0 33.3u 1)", "R1 in out 1k", "C1 out 0 1u IC=0"])
    ramps = nsds.circuit(["V1 in 0 PULSE(0 1 0 3.3u 3.3u 1u 10u)", "R1 in out 1k", "C1 out 0 1u IC=0"])
    assert _said(once, 1e-6) == []
    assert _said(ramps, 1e-6) == []
    assert _said(_pulses(0.25), 1e-6, nsds.event_driven()) == []


def test_charges_that_follow_an_edge_without_a_resistor_are_warned_of():
    """Half of a step falls on each of two equal capacitors; steps longer than the edge give all of it to the second, and say so."""
    circuit = nsds.circuit(["V1 a 0 PULSE(0 10 100u 1n 1n 1 2)", "C0 a b 1u", "C1 b 0 1u", "R1 b 0 1meg"])
    with pytest.warns(RuntimeWarning, match="its edge at t = 0.0001,.*their charges or fluxes will be wrong"):
        rows = nsds.simulate(circuit, t_end=2e-4, h=1e-5)
    assert nsds.circuits.voltage(circuit, rows, "b")[-1] == pytest.approx(10.0, rel=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = nsds.simulate(circuit, t_end=2e-4, h=1e-5, scheme=nsds.event_driven())
        assert nsds.circuits.voltage(circuit, rows, "b")[-1] == pytest.approx(5.0, rel=1e-3)
        slow = nsds.circuit(["V1 a 0 PULSE(0 10 100u 50u 50u 1 2)", "C0 a b 1u", "C1 b 0 1u", "R1 b 0 1meg"])
        rows = nsds.simulate(slow, t_end=2e-4, h=1e-5)
        assert nsds.circuits.voltage(slow, rows, "b")[-1] == pytest.approx(5.0, rel=1e-3)


def test_a_stepper_says_so_too():
    with pytest.warns(RuntimeWarning, match="off by 20 %"):
        nsds.stepper(_pulses(0.25), 1e-6)
