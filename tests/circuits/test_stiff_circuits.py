"""Circuits whose fastest time constant is nothing beside rows and motions: leaks behind inductors, capacitors behind milliohms."""

import time

import numpy as np
import pytest
from scipy.optimize import brentq

import nsds
from nsds.model.layout import table
from nsds.schemes.event_driven import collocation
from tests.memories import memory_with

OMEGA = 100 * np.pi
BRIDGE = ["V1 a 0 SIN(0 100 50)", "D1 a p DR", "D2 0 p DR", "D3 n a DR", "D4 n 0 DR", "L1 p m 20m", "R1 m n 10"]


def rectified(t, R, L):
    """Current of a load behind an ideal bridge at 100 abs(sin), from 0 on: half a period after the other."""
    size, angle, T, half = 100 / np.hypot(R, OMEGA * L), np.arctan2(OMEGA * L, R), L / R, 0.01
    steady, start = np.empty_like(t), 0.0
    for k in range(int(t.max() / half) + 1):
        here, late = (t >= k * half) & (t <= (k + 1) * half), t - k * half
        free = start - size * np.sin(-angle)
        steady[here] = size * np.sin(OMEGA * late[here] - angle) + free * np.exp(-late[here] / T)
        start = size * np.sin(np.pi - angle) + free * np.exp(-half / T)
    return steady


def six_pulses(leak):
    """A six-pulse rectifier behind the inductors of its source, whose output floats but for a resistor."""
    phases = [line for x, angle in (("a", 0), ("b", -120), ("c", 120)) for line in (
        f"V{x} {x} 0 SIN(0 325 50 0 0 {angle})", f"L{x} {x} {x}1 1m", f"Dp{x} {x}1 p DR", f"Dn{x} n {x}1 DR",
    )]  # fmt: skip
    return nsds.circuit([*phases, "L1 p q 10m", "R1 q n 10", *leak, ".model DR D"])


def test_a_commutation_beside_a_leak_is_that_without_it():
    """A time constant of 1 ns: in a part of it, the sources that decide who conducts change by rounding."""
    currents = []
    for circuit in (six_pulses(["R2 n 0 1Meg"]), six_pulses([])):
        rows = nsds.simulate(circuit, t_end=4e-3, h=1e-4, scheme=nsds.event_driven(), progress=False)
        currents.append(nsds.circuits.current(circuit, rows, "La")[rows["status"] == 0])
    assert abs(currents[0] - currents[1]).max() < 1e-4 * abs(currents[1]).max()


@pytest.mark.parametrize("flow", ["auto", "radau"])
@pytest.mark.parametrize(("ron", "roff"), [(1e-3, 1e9), (1e-2, 1e6), (1e-6, 1e8), (1e-3, 1e12)])
def test_an_inductive_load_behind_a_bridge_that_leaks(ron, roff, flow):
    """Time constants of 2e-8 to 2e-14 s, currents by the closed form up to what Ron takes."""
    circuit = nsds.circuit([*BRIDGE, f".model DR D(Ron={ron} Roff={roff})"])
    began = time.perf_counter()
    rows = nsds.simulate(circuit, t_end=0.05, h=1e-3, scheme=nsds.event_driven(flow=flow))
    assert time.perf_counter() - began < 60.0
    i = nsds.circuits.current(circuit, rows, "L1")
    assert abs(i - rectified(rows["t"], 10 + 2 * ron, 20e-3)).max() < 1e-4 + 2 * ron + 400 / roff


@pytest.mark.parametrize("flow", ["auto", "radau"])
def test_driven_switches_with_leaks_and_a_freewheeling_diode(flow):
    """A buck converter: the mean of the voltage is duty times 12 V, less what resistances take."""
    netlist = ["V1 in 0 12", "VG g 0 PULSE(0 1 0 0 0 5u 10u)", "S1 in sw g 0 SW1", "D1 0 sw DR", "L1 sw out 100u", "C1 out 0 10u",
               "R1 out 0 5", ".model SW1 SW(Vt=0.5 Ron=1m Roff=1e9)", ".model DR D(Ron=1m Roff=1e9)"]  # fmt: skip
    circuit = nsds.circuit(netlist, integrals=["v(out)"])
    rows = nsds.simulate(circuit, t_end=2e-3, h=1e-5, scheme=nsds.event_driven(flow=flow))
    assert nsds.circuits.mean(circuit, rows, "v(out)", 1e-3, 2e-3) == pytest.approx(6.0 * 5 / 5.001, rel=1e-4)


def stiff_ladder(t, capacitance, resistance):
    """Voltages of C1 and C2 by eigenvalues: sine, R1, C1, then 1 kOhm and 1 uF, all from 0."""
    w = 2 * np.pi * 1e3
    A = np.array([[-(1 / resistance + 1e-3) / capacitance, 1e-3 / capacitance], [1e3, -1e3]])
    source = np.array([1 / resistance / capacitance, 0.0])
    forced = np.linalg.solve(1j * w * np.eye(2) - A, source)
    values, vectors = np.linalg.eig(A)
    free = np.linalg.solve(vectors, -forced.imag)
    return ((vectors * free) @ np.exp(np.outer(values, t))).T + np.outer(np.exp(1j * w * t), forced).imag


@pytest.mark.parametrize(("capacitance", "resistance"), [(1e-9, 1e-3), (1e-12, 1e-3), (1e-12, 1e-9), (1e-8, 1.0)])
def test_long_steps_are_as_exact_as_series(capacitance, resistance):
    circuit = nsds.circuit(["V1 in 0 SIN(0 1 1k)", f"R1 in a {resistance}", f"C1 a 0 {capacitance}", "R2 a b 1k", "C2 b 0 1u"])
    for h in (1e-5, 1e-3):
        rows = nsds.simulate(circuit, t_end=5e-3, h=h, scheme=nsds.event_driven())
        found = np.stack([nsds.circuits.voltage(circuit, rows, node) for node in "ab"], axis=1)
        np.testing.assert_allclose(found[1:], stiff_ladder(rows["t"], capacitance, resistance)[1:], atol=2e-12)


def test_events_in_long_steps_are_at_their_times():
    """The diode answers a node that follows the source at once: it switches at zeros of the sine."""
    netlist = ["V1 in 0 SIN(0 1 1k)", "R1 in a 1m", "C1 a 0 1p", "D1 a b DI", "R2 b 0 1k", ".model DI D"]
    circuit = nsds.circuit(netlist)
    rows = nsds.simulate(circuit, t_end=4.2e-3, h=7e-4, scheme=nsds.event_driven())
    found = nsds.circuits.events(circuit, rows)["t"]
    np.testing.assert_allclose(found, 5e-4 * np.arange(9), atol=1e-13)


def test_what_grows_is_not_damped():
    """An amplifier with feedback: exp(t / R C) over five orders, beside a node of a picosecond."""
    netlist = ["E1 o 0 a 0 2", "R1 o a 1k", "C1 a 0 1u IC=1u", "R2 a f 1m", "C2 f 0 1n"]
    circuit = nsds.circuit(netlist)
    rows = nsds.simulate(circuit, t_end=1e-2, h=1e-4, scheme=nsds.event_driven())
    v = nsds.circuits.voltage(circuit, rows, "a")
    rate = np.diff(np.log(v[rows["t"] > 1e-4])) / 1e-4
    np.testing.assert_allclose(rate, rate[0], rtol=1e-9)
    assert rate[0] == pytest.approx(1 / (1e3 * 1.001e-6), rel=1e-5)


def test_tables_of_collocation_reproduce_polynomials():
    points, powers = collocation._points(), np.arange(1, collocation.STAGES + 1)
    values = points[:, None] ** powers
    np.testing.assert_allclose(collocation._SLOPES @ values, powers * points[:, None] ** (powers - 1), atol=1e-9)
    np.testing.assert_allclose(collocation._COEFFICIENTS @ values, np.eye(collocation.STAGES), atol=1e-8)
    # Radau's quadrature: exact to degree 2 s - 2
    weights = np.linalg.solve(values.T / points, 1.0 / powers)
    for degree in range(2 * collocation.STAGES - 1):
        assert weights @ points**degree == pytest.approx(1.0 / (degree + 1), abs=1e-12)


def test_blocks_of_the_stages_solve_the_equations_of_collocation():
    """``(A^-1 - h R) stages = rest`` as by a dense solver, of three states with times from a nanosecond on, one without rate."""
    stages, h, n = collocation.STAGES, 1e-3, 3
    R = np.array([[-1e9, 1e3, 2.0], [5.0, -40.0, 7.0], [0.0, 0.0, 0.0]])
    names = ("rate", "constant", "stages", "stage_size", "stage_value", "stage_rest", "inverted")
    sizes = (n * n, n, collocation.BLOCKS * n**2, stages * n, stages * n, stages * n, 1)
    places = dict(zip(names, np.cumsum([0, *sizes[:-1]]), strict=True)) | {"n": n, "n_stages": stages * n}
    places |= {"rate_row": 0, "rate_end": n, "rate_column": 2 * n, "stage_pivots": 2 * n + n * n}
    plan = np.zeros(1, table(*places))
    for name, place in places.items():
        plan[name] = place
    p = plan[0]
    memory = memory_with(np.zeros(sum(sizes)), np.zeros(2 * n + n * n + stages * n, np.int64))
    memory.iwork[: 2 * n] = 0, 3, 6, 3, 6, 6  # the last state has no rate
    memory.iwork[2 * n : 2 * n + n * n] = np.tile(np.arange(n), n)
    memory.work[places["rate"] : places["rate"] + n * n] = R.ravel()
    rest = np.random.default_rng(1).standard_normal(stages * n)
    rest[n - 1 :: n] = 0.0
    memory.work[places["stage_rest"] : places["stage_rest"] + stages * n] = rest
    assert collocation._invert(h, p, memory)
    collocation._add_solution(p, memory)
    wanted = np.linalg.solve(np.kron(collocation._SLOPES, np.eye(n)) - h * np.kron(np.eye(stages), R), rest)
    found = memory.work[places["stage_value"] : places["stage_value"] + stages * n]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13 * abs(wanted).max())


def test_the_stages_are_inverted_by_blocks():
    """Products of three loops: of a filter with 16 states those of all stages at once are 13 times as many."""
    heights = np.diff(collocation._BEGIN)
    assert heights.max() == 2
    assert (heights**2).sum() == collocation.BLOCKS
    assert 13 * (heights**3).sum() < collocation.STAGES**3
    np.testing.assert_allclose(collocation._Q @ collocation._T @ collocation._Q.T, collocation._SLOPES, atol=1e-13)
    np.testing.assert_allclose(collocation._Q @ collocation._Q.T, np.eye(collocation.STAGES), atol=1e-14)


def test_a_current_that_is_rounding_of_what_cancels_in_it_ends_in_time():
    """Through 30 nOhm: a part of 1e-9 of the terms of the current; it ends where ``C v' + v / R`` of the rest asks for no more."""
    netlist = ["V1 a 0 SIN(0 2.59 500)", "R1 a b 141.73", "R2 b 0 173.7", "D1 0 b DR", "C1 a b 3.67u",
               ".model DR D(Ron=29.6n Roff=5.62e10 Vfwd=0.4)"]  # fmt: skip
    circuit = nsds.circuit(netlist)
    rows = nsds.simulate(circuit, t_end=2e-3, h=1e-5, scheme=nsds.event_driven())
    opened = rows["t"][(rows["status"] >= nsds.status.EVENT) & (rows["status"] & nsds.status.OPENED > 0)]
    w = 2 * np.pi * 500

    def current(t):
        return 0.4 / 173.7 + (0.4 + 2.59 * np.sin(w * t)) / 141.73 + 3.67e-6 * 2.59 * w * np.cos(w * t)

    assert opened[-1] == pytest.approx(brentq(current, 1.2e-3, 1.9e-3), abs=1e-8)
    assert rows["devices"]["lambda"].min() > -1e-4


def test_time_constants_that_are_nine_decades_apart():
    """A ramp behind 20 fF, 2 pF and 40 nF from 0: what the stages' matrix leaves of digits is refined."""
    netlist = ["V1 a 0 PULSE(0 1.34 200u 30u 30u 300u 1m)", "R1 a b 20.8", "R2 b c 41.5", "R3 c d 2.28", "R4 d e 641", "R5 e f 1.36",
               "R6 f 0 25.8", "D1 c f DR", "D2 0 c DI", "C1 0 d 1.59e-12", "C2 d 0 4.16e-08", "C3 c a 2.09e-14", ".model DI D",
               ".model DR D(Ron=3.51u Roff=833meg Vfwd=0.4)"]  # fmt: skip
    circuit = nsds.circuit(netlist)
    rows = nsds.simulate(circuit, t_end=5e-4, h=1e-5, scheme=nsds.event_driven())
    conductance = np.array([[1 / 62.3 + 1 / 644.64, -1 / 644.64, 1.0], [-1 / 644.64, 1 / 644.64 + 1 / 25.8, -1.0], [1.0, -1.0, -3.51e-6]])
    expected = np.linalg.solve(conductance, [1.34 / 62.3, 0.0, 0.4])  # at rest with D1 conducting: v(c), v(f), its current
    assert nsds.circuits.voltage(circuit, rows, "c")[-1] == pytest.approx(expected[0], rel=1e-6)
    assert rows["t"][-1] == 5e-4
