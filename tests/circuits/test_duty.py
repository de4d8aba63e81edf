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


SCHEMES = {
    "implicit": nsds.euler_moreau(),
    "midpoint": nsds.euler_moreau(theta=0.5, gamma=0.5, midpoint=True),
    "relation": nsds.euler_moreau(theta=1.0, gamma=0.5, gamma_for_relation=True),
    "held": nsds.zero_order_hold(),
}


def _divider(rise, delay="103.4u"):
    """Two thirds of a step fall on C1, and C2 is discharged by R1."""
    return nsds.circuit([f"V1 in 0 PULSE(0 1 {delay} {rise} {rise} 200u 1)", "C1 in out 1u", "C2 out 0 2u", "R1 out 0 100"])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("rise", ["1n", "3u", "30u"])
def test_charges_that_follow_an_edge_without_a_resistor_are_those_of_the_edge(scheme, rise):
    """However short it is, and wherever in a step: then they are a step or two early or late, of the 150 in which C2 is discharged."""
    circuit = _divider(rise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact, by_steps = (nsds.circuits.voltage(circuit, nsds.simulate(circuit, t_end=2e-4, h=2e-6, scheme=each), "out")[-1]
                           for each in (nsds.event_driven(), SCHEMES[scheme]))  # fmt: skip
    assert by_steps == pytest.approx(exact, rel=3.0 / 150)


def test_weights_of_both_ends_of_a_step_are_warned_of_at_edges():
    with pytest.warns(RuntimeWarning, match="its edge at t = 0.0001034.*their charges or fluxes will be wrong"):
        nsds.simulate(_divider("1n"), t_end=2e-4, h=1e-5, scheme=nsds.euler_moreau(theta=0.5))


def test_a_diode_gets_the_charge_of_an_edge():
    """A charge pump: C1 drives C2 through D2 as the source rises by 5 V, whichever part of a step that takes."""
    pump = ["V1 in 0 PULSE(0 5 103.4u {0} {0} 100u 1)", "C1 in a 1u", "D1 0 a DI", "D2 a out DI", "C2 out 0 1u", ".model DI D"]
    for rise in ("1n", "20u"):
        circuit = nsds.circuit([line.format(rise) for line in pump])
        rows = nsds.simulate(circuit, t_end=1.5e-4, h=1e-5)
        assert nsds.circuits.voltage(circuit, rows, "out")[-1] == pytest.approx(2.5, rel=1e-9)


def test_a_stepper_gives_the_charge_of_an_edge_too():
    """Also where a record of another run is given, which knows nothing of its steps."""
    circuit = _divider("1n")
    run, state = nsds.stepper(circuit, 1e-5), circuit
    for _ in range(20):
        state = run(state)
    rows = nsds.simulate(circuit, t_end=2e-4, h=1e-5)
    assert state["circuit"]["x"].tolist() == rows["circuit"]["x"][-1].tolist()
    again = nsds.simulate(state, t_end=3e-4, h=1e-5, scheme=nsds.event_driven(flow="dopri5"))  # rates are those at once there
    whole = nsds.simulate(nsds.restart(circuit, rows[-1]), t_end=3e-4, h=1e-5, scheme=nsds.event_driven())
    assert again["circuit"]["x"][-1] == pytest.approx(whole["circuit"]["x"][-1], rel=1e-6)


def test_a_stepper_says_so_too():
    with pytest.warns(RuntimeWarning, match="off by 20 %"):
        nsds.stepper(_pulses(0.25), 1e-6)
