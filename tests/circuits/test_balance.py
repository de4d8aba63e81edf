"""Where the energy of a circuit went, and what the report says of it."""

import io

import numpy as np
import pytest

import nsds
from nsds.circuits.balance import unbalanced
from tests.circuits.netlists import BOOST, BRIDGE, EXAMPLES, RECTIFIER

EVENTS, BALANCED = nsds.event_driven(), nsds.euler_moreau(theta=0.5, gamma=0.5, gamma_for_relation=True)
TRANSFORMER = """two windings that share 90 % of their flux
V1 in 0 SIN(0 10 50)
R1 in a 1
L1 a 0 1m
L2 b 0 4m
K1 L1 L2 0.9
R2 b 0 100
"""


def works(ledger):
    return {name: ledger[name].sum() for name in ("sources", "resistors", "devices", "numerical")}


def printed(rows, circuit, **options):
    out = io.StringIO()
    nsds.report(circuit, rows, file=out, **options)
    return {line[:17].strip(): line[18:] for line in out.getvalue().splitlines()[1:]}


def test_a_capacitor_charged_by_a_source_takes_half_of_what_it_delivers():
    """``C V^2 (1 - s)`` delivered and ``C V^2 (1 - s)^2 / 2`` stored, s = exp(-t / RC): by events to the error of sums over rows."""
    circuit = nsds.circuit([("V1", "in", 0, 5.0), ("R1", "in", "out", 1e3), ("C1", "out", 0, 1e-6)])
    s, full, errors = np.exp(-2.0), 25e-6, []
    for h in (2e-5, 1e-5):
        ledger = nsds.circuits.energy(circuit, nsds.simulate(circuit, t_end=2e-3, h=h, scheme=EVENTS))
        assert abs(ledger["stored"][-1] - full * (1 - s) ** 2 / 2) < 1e-12 * full
        assert abs(ledger["resistors"].sum() + full * (1 - s**2) / 2) < 2e-4 * full
        errors.append(abs(ledger["sources"].sum() - full * (1 - s)))
        leading = (h / 1e-3) ** 2 / 12 * full * (2 * (1 - s**2) - (1 - s))  # of the trapezoidal rule
        assert abs(ledger["numerical"].sum() - leading) < 1e-3 * leading
    assert 3.9 < errors[0] / errors[1] < 4.1


@pytest.mark.parametrize("theta", [0.5, 0.75, 1.0])
def test_the_scheme_dissipates_the_jumps_of_its_states(theta):
    """``-(theta - 1/2) (C dv^2 + L di^2)`` in each step, with L = 1e-4 and C = 47e-6; ideal devices take nothing where theta = gamma."""
    circuit, scheme = nsds.circuit(BOOST), nsds.euler_moreau(theta=theta, gamma=theta, gamma_for_relation=True)
    rows = nsds.simulate(circuit, t_end=4e-4, h=1e-6, scheme=scheme)
    ledger = nsds.circuits.energy(circuit, rows, theta)
    di, dv = (np.diff(nsds.circuits.current(circuit, rows, "L1")), np.diff(nsds.circuits.voltage(circuit, rows, "out")))
    expected = -(theta - 0.5) * (47e-6 * dv**2 + 1e-4 * di**2)
    assert np.allclose(ledger["numerical"][1:], expected, rtol=1e-9, atol=1e-16)
    assert abs(ledger["devices"]).sum() < 1e-12 * ledger["sources"].sum()
    assert ledger["resistors"].max() <= 0.0


def test_windings_that_are_coupled_store_energy_together():
    circuit = nsds.circuit(TRANSFORMER)
    rows = nsds.simulate(circuit, t_end=0.02, h=1e-5, scheme=BALANCED)
    ledger = nsds.circuits.energy(circuit, rows, 0.5)
    one, two = (nsds.circuits.current(circuit, rows, name) for name in ("L1", "L2"))
    assert np.allclose(ledger["stored"], (1e-3 * one**2 + 4e-3 * two**2) / 2 + 0.9 * 2e-3 * one * two, rtol=1e-12, atol=1e-18)
    assert abs(ledger["numerical"]).max() < 1e-12 * ledger["stored"].max()


def test_work_of_a_rectifier_is_that_of_its_readings():
    """By the middle of steps, beside sums of v i of elements by name; a Zener diode takes what its voltages say."""
    for text in (RECTIFIER, EXAMPLES["zener"]):
        circuit = nsds.circuit(text)
        ledger = nsds.circuits.energy(circuit, rows := nsds.simulate(circuit, t_end=1e-3, h=1e-6))
        delivered = -nsds.circuits.voltage(circuit, rows, "in") * nsds.circuits.current(circuit, rows, "V1")
        assert np.allclose(ledger["sources"][1:], 1e-6 * delivered[1:], rtol=1e-12, atol=1e-20)
        diodes = [("D1", "in", "out")] if text is RECTIFIER else [("D1", "m", "out"), ("D2", "m", "0")]
        taken = sum(nsds.circuits.voltage(circuit, rows, a, b) * nsds.circuits.current(circuit, rows, name) for name, a, b in diodes)
        assert np.allclose(ledger["devices"][1:], -1e-6 * taken[1:], rtol=1e-12, atol=1e-18)
        assert (ledger["devices"].sum() < -1e-9) == (text is not RECTIFIER)
        assert works(ledger)["numerical"] < 0.0


def test_a_switch_beside_a_diode_counts_once():
    lines = [("V1", "d", 0, 10.0), ("S1", "d", "o", "g", 0, "SW"), ("D1", "o", "d", "DI"), ("R1", "o", 0, 2.0),
             ("VG", "g", 0, "PULSE(0 1 0 0 0 40u 100u)"), ".model DI D", ".model SW SW(Vt=0.5)"]  # fmt: skip
    circuit = nsds.circuit(lines)
    rows = nsds.simulate(circuit, t_end=1e-3, h=1e-6)
    assert unbalanced(circuit, rows)[0] < 1e-15
    ledger = nsds.circuits.energy(circuit, rows)
    assert abs(ledger["sources"].sum() - 400e-6 * 50.0) < 1e-12
    assert abs(ledger["numerical"]).sum() < 1e-15


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("scheme", ["euler_moreau", "event_driven"])
def test_the_report_of_a_circuit_says_what_holds(name, scheme):
    """Driven switches are judged by their bounds of the time, on both sides of events."""
    circuit = nsds.circuit(EXAMPLES[name])
    rows = nsds.simulate(circuit, t_end=5e-4, h=1e-6, scheme=EVENTS if scheme == "event_driven" else None)
    lines = printed(rows, circuit)
    assert float(lines["devices"].split("at most ")[1].split(" V")[0]) < 1e-9
    assert float(lines["currents"].split("within ")[1].split(" of")[0]) < 1e-14
    assert lines["energy"].endswith("the error of sums over rows" if scheme == "event_driven" else "what the scheme takes")
    assert f"sources {nsds.circuits.energy(circuit, rows)['sources'].sum():.4g}, " in lines["energy"]


def test_the_report_finds_what_breaks_the_laws_of_a_circuit():
    circuit = nsds.circuit(BRIDGE)
    rows = nsds.simulate(circuit, t_end=1e-3, h=1e-5)
    rows["devices"]["lambda"][50, 0] = -3.0
    assert printed(rows, circuit)["devices"] == "laws violated by at most 3.0e+00 V, at t = 0.0005 s"
    circuit["names"]["currents"][0] *= 1.001  # of V1
    worst, node = unbalanced(circuit, rows)
    assert 4e-4 < worst < 6e-4
    assert f"{worst:.1e} of those that cancel, at node {node}" in printed(rows, circuit)["currents"]


def test_a_ledger_needs_every_step():
    circuit = nsds.circuit(RECTIFIER)
    rows = nsds.simulate(circuit, t_end=1e-3, h=1e-5, save_every=10)
    with pytest.raises(ValueError, match="energy: needs every step saved"):
        nsds.circuits.energy(circuit, rows)
    assert printed(rows, circuit)["energy"] == "not shown: needs every step saved (save_every=1)"
    only = nsds.simulate(circuit, t_end=1e-3, h=1e-5, fields=["circuit.x", "devices.lambda"])
    assert printed(only, circuit)["energy"].startswith("stored 0 -> ")
    for fields in (["circuit.x"], ["devices"]):
        assert "not recorded" in printed(nsds.simulate(circuit, t_end=1e-3, h=1e-5, fields=fields), circuit)["energy"]


def test_members_with_switches_of_their_own_are_judged_each_by_its_bounds():
    netlist = BOOST.replace("10u 20u", "{on} 20u").replace(".tran", ".param on=10u\n.tran")
    circuits = np.stack([nsds.circuit(netlist, {"on": on}) for on in (5e-6, 12e-6)])
    rows = nsds.simulate(circuits, t_end=3e-4, h=1e-6)
    lines = printed(rows, circuits)
    assert float(lines["devices"].split("at most ")[1].split(" V")[0]) < 1e-9
    assert "energy" not in lines
    assert float(printed(rows, circuits[::-1])["devices"].split("at most ")[1].split(" V")[0]) > 1.0
