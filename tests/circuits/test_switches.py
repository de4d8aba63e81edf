"""Switches with hysteresis: they close above Vt + Vh, open below Vt - Vh, and keep their state in between."""

import numpy as np
import pytest

import nsds
from nsds.circuits.netlist import read
from nsds.circuits.waveforms import value_of

T_END, H = 3.9e-3, 1.3e-4
CONTROLS = {
    "triangle": "PULSE(0 1 0 1m 1m 0 2m)",
    "steps": "PULSE(0 1 0.5m 0 0 1m 2m)",
    "fast edges": "PULSE(1 0 0.5m 1n 1n 1m 2m)",
    "pulses within": "PULSE(0.4 0.6 0.5m 0.1m 0.1m 0.2m 1m)",
    "pulses that end within": "PULSE(0.4 0.9 0.5m 0.1m 0.1m 0.2m 1m)",
    "sine": "SIN(0.5 1 500)",
    "cosine": "SIN(0.4 1 500 0 0 90)",
    "sine that waits": "SIN(0.5 -1 700 1m)",
    "small sine": "SIN(0.5 0.19 500)",
    "sine that opens never": "SIN(0.69 0.3 500)",
    "pieces": "PWL(0 0.6 1m 0.4 2m 1 3m 0)",
    "pieces that stay within": "PWL(0 0 1m 1 2m 0.4 3m 0.6 4m 0.31)",
    "constant": "0.6",
}
FINE = np.linspace(0.0, T_END, 390_001)


def switched(control, start="", model="SW(Vt=0.5 Vh=0.2)", t=0.0):
    return nsds.circuit([f"VG g 0 {control}", "V1 in 0 10", f"S1 in out g 0 SW1 {start}", "R1 out 0 1k", f".model SW1 {model}"], t=t)


def by_definition(control, is_on=False):
    """Whether the switch is closed at the times of FINE."""
    (source,) = read([f"VG g 0 {control}"], {}).elements
    u = value_of(source.value, FINE)
    beyond = np.where(u > 0.7, 1, np.where(u < 0.3, 0, -1))
    beyond[0] = int(is_on) if beyond[0] < 0 else beyond[0]
    last = np.maximum.accumulate(np.where(beyond >= 0, np.arange(u.size), 0))
    return beyond[last] == 1


@pytest.mark.parametrize(
    ("control", "start"),
    [*((name, "") for name in CONTROLS), ("pieces", "on"), ("pulses within", "ON"), ("constant", "on"), ("sine", "off")],
)
def test_a_switch_keeps_its_state_between_both_thresholds(control, start):
    """Event by event its changes are at their times, also from rows between; by steps at the end of theirs."""
    circuit, closed = switched(CONTROLS[control], start), by_definition(CONTROLS[control], start.lower() == "on")
    changes = FINE[1:][closed[1:] != closed[:-1]]
    by_events, by_steps = (
        nsds.simulate(circuit, t_end=T_END, h=h, scheme=scheme) for h, scheme in ((H, nsds.event_driven()), (1e-5, None))
    )
    is_on = nsds.circuits.voltage(circuit, by_events, "out") > 5.0
    at = np.flatnonzero(is_on[1:] != is_on[:-1]) + 1
    np.testing.assert_allclose(by_events["t"][at[by_events["t"][at] > 0]], changes, rtol=0, atol=2.0 * FINE[1])
    for rows in (by_events[np.count_nonzero(by_events["t"] == 0) - 1 :], by_steps[1:]):
        far = abs(rows["t"][:, None] - changes).min(axis=1, initial=1.0) > 1e-8
        at = np.round(rows["t"] / FINE[1]).astype(int)
        assert (nsds.circuits.voltage(circuit, rows, "out") > 5.0)[far].tolist() == closed[at][far].tolist()
        assert (nsds.circuits.current(circuit, rows, "S1") > 5e-3)[far].tolist() == closed[at][far].tolist()


def test_a_run_goes_on_with_the_state_that_a_switch_has():
    """From a row, and from a circuit that begins later, in a part of the control that lies between both thresholds."""
    control = CONTROLS["pieces that stay within"]
    circuit = switched(control)
    rows = nsds.simulate(circuit, t_end=3e-3, h=1e-4, scheme=nsds.event_driven())
    for begin in (nsds.restart(circuit, rows[-1]), switched(control, t=3e-3)):
        on = nsds.simulate(begin, t_end=3.5e-3, h=1e-4, scheme=nsds.event_driven())
        assert nsds.circuits.voltage(circuit, on, "out")[1:].tolist() == [10.0] * (on.size - 1)


def test_a_switch_controlled_by_a_current():
    """The current of a source drives through another one, and the switch beside: 1 mA closes it, 0.4 mA opens it."""
    lines = ["I1 0 a PULSE(0 2m 0 1m 1m 0 2m)", "VS a 0 0", "V1 in 0 10", "W1 in out VS CS off", "R1 out 0 1k",
             ".model CS CSW(It=0.7m Ih=0.3m)"]  # fmt: skip
    circuit = nsds.circuit(lines)
    rows = nsds.simulate(circuit, t_end=2e-3, h=1e-4, scheme=nsds.event_driven())
    on = nsds.circuits.voltage(circuit, rows, "out") > 5.0
    np.testing.assert_allclose(rows["t"][1:][on[1:] != on[:-1]], [0.5e-3, 1.8e-3], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["VG g 0 1", "S1 a 0 g 0 SW1", ".model SW1 SW(Vh=-0.1)"], "line 4.*a negative Vh"),
        (["VG g 0 1", "W1 a 0 VG SW1", ".model SW1 CSW(Ih=-0.1)"], "line 4.*a negative Ih"),
        (["VG g 0 1", "S1 a 0 g 0 SW1 up", ".model SW1 SW(Vh=0.1)"], "line 3.*name of a model alone, got 'SW1 up'"),
        (["VG g 0 1", "W1 a 0 VH SW1", ".model SW1 CSW(Ih=0.1)"], "'W1' names the voltage source 'VH'"),
        (["VG g 0 1", "W1 a 0 VG SW1", ".model SW1 SW(Vh=0.1)"], "there is no .model SW1 CSW"),
        (["VG g 0 SIN(0 1 50 0 3)", "S1 a 0 g 0 SW1", ".model SW1 SW(Vh=0.1)"], "'S1', which has hysteresis, must be one source"),
        (
            ["VG g h SIN(0 1 50)", "VH h 0 SIN(0 1 70)", "S1 a 0 g 0 SW1", ".model SW1 SW(Vh=0.1)"],
            "'S1', which has hysteresis, must be one",
        ),
    ],
)
def test_what_is_no_switch_or_has_no_known_state_is_refused(lines, said):
    with pytest.raises(ValueError, match=said):
        nsds.circuit(["V1 a 0 1", *lines])
