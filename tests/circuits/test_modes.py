"""Which devices conduct, event by event: what was held is let go when a source steps, and pairs of diodes that answer each other."""

import numpy as np
import pytest

import nsds

T_STEP = 165e-6
# A source that goes to 2 and steps down, and what keeps 2 V, or 2 A through 1 ohm, and loses it in 10 ms: nodes between which that is seen.
VOLTAGE, CURRENT = "V1 a {} PULSE(0 2 10u 50u 0 105u 1)", "I1 {} a PULSE(0 2 10u 50u 0 105u 1)"
BRIDGE = ["D1 a p DI", "D2 b p DI", "D3 n a DI", "D4 n b DI", "RG n 0 1", "RB b 0 1meg"]
KEPT = {
    "diode": ([VOLTAGE.format(0), "D1 a b DI", "C1 b 0 1u", "R1 b 0 10k"], ("b", "0")),
    "two diodes": ([VOLTAGE.format(0), "D1 a b DI", "D2 b c DI", "C1 b 0 1u", "R1 b 0 10k", "C2 c 0 2u", "R2 c 0 5k"], ("c", "0")),
    "diodes in series": ([VOLTAGE.format(0), "D1 a m DI", "D2 m b DI", "C1 b 0 1u", "R1 b 0 10k"], ("b", "0")),
    "diodes in parallel": ([VOLTAGE.format(0), "D1 a b DI", "D2 a b DI", "C1 b 0 1u", "R1 b 0 10k"], ("b", "0")),
    "bridge": ([VOLTAGE.format("b"), *BRIDGE, "C1 p n 1u", "R1 p n 10k"], ("p", "n")),
    "switch that opens then": (
        [VOLTAGE.format(0), "VG g 0 PULSE(1 0 165u 0 0 1 2)", "S1 a b g 0 SI", "C1 b 0 1u", "R1 b 0 10k"], ("b", "0")),
    "switch and diode": (
        [VOLTAGE.format(0), "VG g 0 PULSE(1 0 165u 0 0 1 2)", "S1 a m g 0 SI", "D1 m b DI", "C1 b 0 1u", "R1 b 0 10k"], ("b", "0")),
    "inductor": ([CURRENT.format(0), "D1 0 a DI", "L1 a b 10m", "R1 b 0 1"], ("b", "0")),
    "inductor behind a bridge": ([CURRENT.format("b"), *BRIDGE, "L1 p m 10m", "R1 m n 1"], ("m", "n")),
}  # fmt: skip
MODELS = [".model DI D", ".model SI SW(Vt=0.5)"]


def voltage(circuit, rows, nodes):
    return nsds.circuits.voltage(circuit, rows, nodes[0]) - nsds.circuits.voltage(circuit, rows, nodes[1])


@pytest.mark.parametrize("fall", ["0", "1n"])
@pytest.mark.parametrize("name", KEPT)
def test_a_step_of_the_source_leaves_charges_and_fluxes(name, fall):
    """A diode conducts one way, so that nothing flows back: 2 exp(-t / 10 ms) from the step on, as from a fall that takes its time."""
    netlist, nodes = KEPT[name]
    circuit = nsds.circuit([line.replace("50u 0 105u", f"50u {fall} 105u") for line in netlist] + MODELS)
    rows = nsds.simulate(circuit, t_end=9e-4, h=7e-5, scheme=nsds.event_driven())
    late = rows["t"] > T_STEP + 2e-9
    expected = 2.0 * np.exp(-(rows["t"][late] - T_STEP) / 10e-3)
    assert late.sum() > 8
    np.testing.assert_allclose(voltage(circuit, rows, nodes)[late], expected, atol=1e-6)
    np.testing.assert_allclose(voltage(circuit, rows, nodes)[abs(rows["t"] - T_STEP) < 1e-12][0], 2.0, atol=1e-9)


def test_a_source_that_steps_up_charges_no_capacitor():
    """What would have to jump is an error that names it, not a state."""
    circuit = nsds.circuit(["V1 a 0 PULSE(1 2 50u 0 0 1 2)", "D1 a b DI", "C1 b 0 1u IC=1", "R1 b 0 10k", *MODELS])
    with pytest.raises(nsds.SimulationError, match=r"D1: charges or fluxes would jump, of .*C1"):
        nsds.simulate(circuit, t_end=1e-4, h=1e-5, scheme=nsds.event_driven())


@pytest.mark.parametrize("volts", [3.62, 3.7, 4.27, 6.0])
def test_a_source_beyond_what_diodes_clamp_is_a_contradiction(volts):
    """0.6 V into 3 V: no motion, however little the source is above 3.6 V, and not 64 events at one time."""
    netlist = [f"V1 a 0 {volts}", "D1 a b DZ", "D2 0 b DZ", "R1 a b 100", ".model DZ D(Vfwd=0.6 Vrev=3)"]
    with pytest.raises(nsds.SimulationError, match=r"D\d: no point satisfies .*: a source of voltage is short-circuited") as raised:
        nsds.simulate(nsds.circuit(netlist), t_end=1e-3, h=1e-4, scheme=nsds.event_driven())
    assert raised.value.status == nsds.status.INFEASIBLE


@pytest.mark.parametrize(("resistance", "drop"), [(1e-3, 0.0), (0.1, 0.6), (1.0, 0.0)])
@pytest.mark.parametrize("pair", ["D1 c x DI\nD2 x c DI", "D1 c x DI\nD2 c x DI", "D1 c m DI\nD2 x m DI\nD3 m c DI\nD4 m x DI"])
@pytest.mark.parametrize("load", ["R2 x 0 1k", "C2 x 0 1u\nR2 x 0 1k", "L2 x y 1m\nR2 y 0 10"])
def test_pairs_of_diodes_behind_a_switch(load, pair, resistance, drop):
    """Side by side, either way, and in two branches: where one takes over from the other both are at zero, and rounding decides nothing."""
    models = f".model DI D(Vfwd={drop})\n.model SR SW(Vt=0.5 Ron={resistance} Roff=1e6)"
    netlist = f"V1 a 0 SIN(0 5 1k)\nVG g 0 PULSE(0 1 0.1m 0 0 0.4m 1m)\nS1 a b g 0 SR\nR1 b c 1\n{pair}\n{load}\n{models}"
    circuit = nsds.circuit(netlist.splitlines())
    rows = nsds.simulate(circuit, t_end=2.3e-3, h=1e-4, scheme=nsds.event_driven())
    stepped = nsds.simulate(circuit, t_end=2.3e-3, h=1e-6)
    expected = np.interp(rows["t"], stepped["t"], nsds.circuits.voltage(circuit, stepped, "x"))
    error = abs(nsds.circuits.voltage(circuit, rows, "x") - expected)
    assert np.median(error) < 0.01 * max(abs(expected).max(), 1e-3)  # beside jumps of the voltage, which steps see a step late


@pytest.mark.parametrize("h", [1e-3, 2e-4, 1e-4, 5e-5])
@pytest.mark.parametrize("amplitude", [10, 3.3])
def test_a_switch_opens_where_all_currents_are_zero(h, amplitude):
    """At 10 and 30 ms its source, and with it all voltages, are 0 up to rounding, of which nothing may be proved."""
    netlist = [
        f"V1 a 0 SIN(0 {amplitude} 50)", "VG g 0 PULSE(0 1 1m 0 0 9m 20m)", "S1 a x g 0 SI", "D1 x p DI", "R1 p n 20", "RA a p 100k",
        "D4 n 0 DI", "RB n 0 100k",
    ]  # fmt: skip
    circuit = nsds.circuit(netlist + MODELS)
    rows = nsds.simulate(circuit, t_end=0.04, h=h, scheme=nsds.event_driven())
    t, v = rows["t"], nsds.circuits.voltage(circuit, rows, "n")
    closed = (t > 1.01e-3) & (t < 9.99e-3)  # the load is 0, and n at the diode's 0 V
    assert closed.any()
    np.testing.assert_allclose(v[closed], 0.0, atol=1e-9)
    np.testing.assert_allclose(v[abs(t - 0.03) < 1e-9], 0.0, atol=1e-9)
