"""Voltage multipliers and charge pumps of ideal diodes: many diodes that begin and cease to conduct at nearly one time, and tiny leaks."""

import numpy as np
import pytest

import nsds
from nsds.status import ACCUMULATION

SINE, TRIANGLE, SQUARE = "sin(0 10 1k)", "pulse(-10 10 0 250u 250u 250u 1m)", "pulse(-10 10 0 0 0 0.5m 1m)"
EDGES = "pulse(-10 10 0 1n 1n 0.5m 1m)"


def cockcroft_walton(stages, capacitors, load, source, resistance=None):
    """A ladder of capacitors and diodes; (netlist, output)."""
    lines = ["multiplier", f"vs {'in' if resistance is None else 'source'} 0 {source}", ".model d d", f"rl s{stages} 0 {load}"]
    lines += [] if resistance is None else [f"rs source in {resistance}"]
    pumped, smooth = ["in", *(f"c{k}" for k in range(1, stages + 1))], ["0", *(f"s{k}" for k in range(1, stages + 1))]
    for k in range(stages):
        lines += [f"ca{k} {pumped[k]} {pumped[k + 1]} {capacitors[2 * k]}", f"da{k} {smooth[k]} {pumped[k + 1]} d"]
        lines += [f"db{k} {pumped[k + 1]} {smooth[k + 1]} d", f"cb{k} {smooth[k]} {smooth[k + 1]} {capacitors[2 * k + 1]}"]
    return "\n".join(lines), f"s{stages}"


def quadrupler(capacitors, load, source, resistance):
    """Two doublers, one of each sign; (netlist, output)."""
    lines = ["quadrupler", f"vs source 0 {source}", f"rs source a {resistance}", ".model d d", f"rl pp m {load}", "d1 a p d", "d2 m a d"]
    lines += [f"c1 p 0 {capacitors[0]}", f"c2 0 m {capacitors[1]}", f"c3 a x {capacitors[2]}", "d3 p x d", "d4 x pp d"]
    return "\n".join([*lines, f"c4 p pp {capacitors[3]}"]), "pp"


def dickson(capacitors, load, source, resistance):
    """A pump with two clocks of opposite sign; (netlist, output)."""
    lines = ["pump", "vd dd 0 5", "rd dd n0 10", f"vs source 0 {source}", f"rs source p {resistance}", "e1 q 0 p 0 -1", ".model d d"]
    for k, capacitor in enumerate(capacitors):
        lines += [f"d{k} n{k} n{k + 1} d", f"c{k} n{k + 1} {'p' if k % 2 else 'q'} {capacitor}"]
    return "\n".join([*lines, f"do n{len(capacitors)} out d", "co out 0 22u", f"ro out 0 {load}"]), "out"


PUMPS = {
    "triangle, hardly any load": cockcroft_walton(5, ["86.4u"] * 10, "12.5g", TRIANGLE, 1),
    "triangle": cockcroft_walton(5, ["54.2u"] * 10, "41.1k", TRIANGLE, 0.1),
    "triangle, unequal": cockcroft_walton(3, ["146n", "594n", "15.8n", "324n", "464n", "282n"], "36.1meg", TRIANGLE, 0.1),
    "sine, large load": cockcroft_walton(2, ["10u"] * 4, "1k", SINE),
    "quadrupler, straight pieces": quadrupler(["42.6u"] * 4, "3.47k", "pulse(-10 10 0 500u 500u 0 1m)", 0.1),
    "quadrupler, steps": quadrupler(["37.1n"] * 4, "817k", SQUARE, 1),
    "quadrupler, steps of a nanosecond": quadrupler(["497n"] * 4, "572k", EDGES, 1),
    "quadrupler, unequal, steps of a nanosecond": quadrupler(["175u", "3.14u", "134u", "120u"], "106k", EDGES, 1),
    "pump, steps": dickson(["6.4u", "7.19u", "1.35u", "1.37u", "109u"], "373k", SQUARE, 100),
}


def run(circuit, t_end):
    rows = nsds.simulate(circuit, t_end=t_end, h=1e-5, scheme=nsds.event_driven())
    assert not (rows["status"] & ACCUMULATION).any()  # periods that settle are none
    return rows


@pytest.mark.parametrize("name", PUMPS)
def test_a_pump_obeys_its_diodes_and_is_the_limit_of_steps(name):
    """No diode conducts backwards or has a forward voltage, in any row of a step; the output is that of many short implicit steps."""
    netlist, output = PUMPS[name]
    circuit = nsds.circuit(netlist)
    rows = run(circuit, 5e-3)
    steps = nsds.simulate(circuit, t_end=5e-3, h=1e-6, scheme=nsds.euler_moreau(), save_every=10)
    y, lam = rows["devices"]["y"][rows["status"] == 0][1:], rows["devices"]["lambda"][rows["status"] == 0][1:]
    assert y.min() >= -1e-9 * abs(y).max()
    assert lam.min() >= -1e-9 * abs(lam).max()
    assert (y * lam <= 1e-9 * abs(y).max() * abs(lam).max()).all()
    after = np.searchsorted(rows["t"], steps["t"] + 1e-12, side="right") - 1
    found, expected = (nsds.circuits.voltage(circuit, each, output) for each in (rows, steps))
    assert np.median(abs(found[after] - expected)) < 2e-3 * abs(expected).max()


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_multiplier_without_losses_reaches_its_multiple(stages):
    """2 n times the amplitude: charge is lost through a gigaohm alone, and the periods of each diode settle to that of the source."""
    netlist, output = cockcroft_walton(stages, ["100u"] * (2 * stages), "1g", SINE)
    circuit = nsds.circuit(netlist)
    rows = run(circuit, 0.12)
    reached = nsds.circuits.voltage(circuit, rows, output)
    assert reached[-1] == pytest.approx(20.0 * stages, rel=2e-2)
    assert reached.max() < 20.0 * stages * (1 + 1e-9)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_a_multiplier_has_the_ripple_and_the_drop_of_its_load(stages):
    """A load that takes q in a period: a ripple of n (n + 1) / 2 q / C, and a drop of at most (4 n^3 + 3 n^2 - n) / 6 q / C.

    Kuffel, Zaengl and Kuffel, High Voltage Engineering (2000), 2.1: all charge passes at once, so that the ripple is too large by the part
    of a period in which diodes conduct, which goes to 0 with the load.
    """
    capacitance, load = 1e-6, 2e7
    circuit = nsds.examples.voltage_multiplier(stages=stages, capacitance=capacitance, load=load)
    rows = nsds.simulate(circuit, t_end=0.03 * stages**2, h=1e-5, scheme=nsds.event_driven())
    output = nsds.circuits.voltage(circuit, rows[rows["t"] > rows["t"][-1] - 2e-3], f"s{stages}")
    unit = output.mean() / load / 1e3 / capacitance
    assert np.ptp(output) == pytest.approx(stages * (stages + 1) / 2 * unit, rel=1.5e-2)
    drop = (20.0 * stages - output.max()) / unit
    most = (4 * stages**3 + 3 * stages**2 - stages) / 6
    assert 0.92 * most < drop < 1.001 * most
