"""Rows of a circuit are limits from one side of everything: sources, states, multipliers, switches; events are those between rows."""

import numpy as np
import pytest

import nsds
from nsds.circuits.readings import Readings

DIODE = ".model DI D"
EVENTS = nsds.event_driven()

STEPS = {
    "diode": ["V1 in 0 PULSE(5 -48 1m 0 0 1.5m 2.5m)", "D1 in out DI", "R1 out 0 10", DIODE],
    "with a knee": ["V1 in 0 PULSE(5 -48 1m 0 0 1.5m 2.5m)", "D1 in out DI", "R1 out 0 10", ".model DI D(Ron=1 Roff=1k Vfwd=0.7)"],
    "into a capacitor": ["V1 in 0 PULSE(5 -48 1m 0 0 1.5m 2.5m)", "R2 in a 1", "D1 a out DI", "R1 out 0 10", "C1 out 0 10u", DIODE],
    "freewheel": ["V1 in 0 PULSE(5 0 1m 0 0 1.5m 2.5m)", "D1 in a DI", "D2 0 a DI", "L1 a out 1m", "R1 out 0 10", DIODE],
    "current": ["I1 0 a PULSE(1 -1 1m 0 0 1.5m 2.5m)", "R1 a 0 5", "D1 a b DI", "R2 b 0 5", DIODE],
    "switch": ["V1 in 0 5", "VG g 0 PULSE(1 0 1m 0 0 1.5m 2.5m)", "S1 in a g 0 SM", "D1 0 a DI", "L1 a out 1m", "R1 out 0 10", DIODE,
               ".model SM SW(Vt=0.5)"],
}  # fmt: skip


@pytest.mark.parametrize("h", [2e-4, 0.9e-3])
@pytest.mark.parametrize("case", STEPS)
def test_laws_hold_at_both_sides_of_a_step(case, h, capsys):
    """At each row currents balance, no diode has a voltage or current of the wrong sign, and ``(v - Vfwd) i = 0`` of an ideal one."""
    circuit = nsds.circuit(STEPS[case])
    rows = nsds.simulate(circuit, t_end=5e-3, h=h, scheme=EVENTS)[1:]  # the first is what the record holds
    assert (np.diff(rows["t"]) == 0).sum() >= 3
    of = Readings("test", circuit, rows)
    assert nsds.circuits.balance.unbalanced(circuit, rows)[0] < 1e-9
    v, ideal = of.voltages_across(of.known), case != "with a knee"
    for place, name in enumerate(of.element_names):
        if name[0] == "D" and ideal:
            i = of.current(name)
            assert i.min() >= -1e-9
            assert v[:, place].max() <= 1e-9
            assert abs(v[:, place] * i).max() <= 1e-9
    nsds.report(circuit, rows)
    assert float(capsys.readouterr().out.split("violated by at most ")[1].split()[0]) < 1e-9


def test_a_source_that_steps_has_both_values_in_a_pair_of_rows():
    circuit = nsds.circuit(["V1 in 0 PULSE(5 -48 1m)", "R1 in 0 1"])
    rows = nsds.simulate(circuit, t_end=2e-3, h=4e-4, scheme=EVENTS)
    at = np.flatnonzero(rows["t"] == 1e-3)
    assert nsds.circuits.voltage(circuit, rows, "in")[at].tolist() == [5.0, -48.0]


def test_a_row_of_a_step_has_the_source_of_the_step():
    """By steps lambda of a row is of the step that ends there: the source that steps then has not yet."""
    circuit = nsds.circuit(["V1 in 0 PULSE(5 -48 1m)", "D1 in out DI", "R1 out 0 10", DIODE])
    rows = nsds.simulate(circuit, t_end=2e-3, h=1e-4)
    assert nsds.circuits.balance.unbalanced(circuit, rows[1:])[0] < 1e-12
    assert nsds.circuits.voltage(circuit, rows, "in")[10] == 5.0
    assert nsds.circuits.voltage(circuit, rows, "in")[11] == -48.0


PERIODIC = {
    "resistive bridge": ["V1 a b SIN(0 10 50)", "D1 a p DI", "D2 b p DI", "D3 0 a DI", "D4 0 b DI", "R1 p 0 10"],
    "capacitor": ["V1 in 0 SIN(0 10 50)", "D1 in out DI", "C1 out 0 100u IC=0", "R1 out 0 100"],
    "inductor": ["V1 in 0 SIN(0 10 50)", "D1 in a DI", "L1 a out 20m", "R1 out 0 10"],
}


@pytest.mark.parametrize("model", ["D", "D(Ron=10m)", "D(Ron=1m Vfwd=0.7)", "D(Ron=1m Roff=1k Vfwd=0.7)"])
@pytest.mark.parametrize("case", PERIODIC)
def test_instants_do_not_depend_on_rows(case, model):
    """Rows on zero crossings, between them and far apart; each diode turns on and off once a period."""
    circuit = nsds.circuit([*PERIODIC[case], f".model DI {model}"])
    found = [nsds.circuits.events(circuit, nsds.simulate(circuit, t_end=0.0975, h=h, scheme=EVENTS)) for h in (0.13e-3, 1e-3, 3.3e-3)]
    for name in set(found[0]["device"]):
        first, *others = [each[each["device"] == name] for each in found]
        assert first["state"].tolist() == ([1, 0] * 5)[: first.size]
        assert first.size >= 9
        for each in others:
            assert each["state"].tolist() == first["state"].tolist()
            np.testing.assert_allclose(each["t"], first["t"], rtol=0, atol=1e-9)


def test_diodes_at_zero_without_current_do_not_conduct():
    """Before a pulse, and between two of them."""
    circuit = nsds.circuit(["V1 in 0 PULSE(0 5 1m 0 0 1m 3m)", "D1 in out DI", "R1 out 0 10", DIODE])
    rows = nsds.simulate(circuit, t_end=5.5e-3, h=2e-3, scheme=EVENTS)
    assert [(round(e["t"], 9), e["state"]) for e in nsds.circuits.events(circuit, rows)] == [(1e-3, 1), (2e-3, 0), (4e-3, 1), (5e-3, 0)]


def test_an_amplifier_leaves_its_rails_when_it_does():
    """Gain 2 between rails of 10 V by resistors: ``|v_i| = 5``, whatever the distance of rows."""
    lines = ["V1 i 0 SIN(0 10 1)", "R1 i n 1k", "R2 n o 2k", "E1 o 0 TABLE {V(0,n)} = (-1n,-10) (1n,10)"]
    circuit, t = nsds.circuit(lines), np.arcsin(0.5) / (2 * np.pi)
    for h in (0.01, 0.25, 1.0):
        events = nsds.circuits.events(circuit, nsds.simulate(circuit, t_end=1.0, h=h, scheme=EVENTS))
        np.testing.assert_allclose(events["t"], [t, 0.5 - t, 0.5 + t, 1 - t], rtol=0, atol=1e-9)
        assert events["state"].tolist() == [-1, 0, 1, 0]


CONTRADICTIONS = {
    "current into a diode": ["I1 0 a 1", "D1 0 a DI", "V1 x 0 1", "R1 x y 1", "D2 y 0 DI", DIODE],
    "voltage across a diode": ["V1 a 0 PULSE(-1 1 1m)", "D1 a 0 DI", "R1 a y 1", "D2 y 0 DI", DIODE],
}


@pytest.mark.parametrize("scheme", [None, EVENTS], ids=("steps", "events"))
@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_contradiction_names_its_device(case, scheme):
    circuit = nsds.circuit(CONTRADICTIONS[case])
    with pytest.raises(nsds.SimulationError, match=r"failed: D1\b.*a source of voltage is short-circuited, or one of current"):
        nsds.simulate(circuit, t_end=2e-3, h=1e-4, scheme=scheme)
