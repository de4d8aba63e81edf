"""Circuits in time: checkpoints of exact solutions in the limit of ideal elements, and what holds in every row."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds import status
from nsds.circuits.netlist import read
from tests.benchmarks.peer_ngspice import compare
from tests.circuits.netlists import BOOST, BRIDGE, EXAMPLES, MODELS, OSCILLATOR, RECTIFIER, random_converter
from tests.paths import CIRCUITS
from tests.strategies import examples, many

# name, step, strong columns, their largest error in the limit of that step (case.md), from exact event-driven solutions
STEPPED = {
    "halfwave_rc": (1e-5, ("v_out",), 1.8e-4), "boost_ccm_dcm": (1e-7, ("v_out", "i_L1"), 2.7e-3), "flyback_k1": (5e-8, ("v_out",), 5.9e-4),
    "relaxation_oscillator": (1e-6, ("v_q",), 1.9e-3), "six_pulse_rl": (1e-5, ("i_LA", "i_LB", "i_LC", "i_L1"), 9.0e-3),
    "zener_clipper": (1e-6, ("v_out",), 3.6e-3),
}  # fmt: skip


SCHEMES, EVENTS = ("euler_moreau", "event_driven"), nsds.event_driven()


def reading(circuit, rows, column):
    what, name = column.split("_", 1)
    return (nsds.circuits.voltage if what == "v" else nsds.circuits.current)(circuit, rows, name)


def test_a_rectifier_is_of_first_order_by_steps():
    """v(out) is that of the source, from ``tan(omega t_off) = -omega R C`` on ``v_off exp(-(t - t_off) / RC)``."""
    circuit, errors = nsds.circuit(RECTIFIER), []
    t_off = (np.pi - np.arctan(100 * np.pi * 0.01)) / (100 * np.pi)
    for h in (1e-4, 5e-5):
        rows = nsds.simulate(circuit, t_end=0.02, h=h)
        t, expected = rows["t"], 10 * np.sin(100 * np.pi * rows["t"])
        late = t > t_off
        expected[late] = 10 * np.sin(100 * np.pi * t_off) * np.exp(-(t[late] - t_off) / 0.01)
        errors.append(abs(nsds.circuits.voltage(circuit, rows, "out") - expected).max())
    assert errors[1] < 0.01
    assert 1.5 < errors[0] / errors[1] < 2.5


def test_a_boost_converter_by_steps():
    """Checkpoints of the exact solution (case boost_ccm_dcm, independent event-driven program, 1e-10)."""
    circuit = nsds.circuit(BOOST)
    rows = nsds.simulate(circuit, t_end=4e-3, h=1e-7, save_every=10)
    v, i = nsds.circuits.voltage(circuit, rows, "out"), nsds.circuits.current(circuit, rows, "L1")
    for start, end, v_mean, i_mean in ((1800, 2000, 22.5824496057, 2.31960508654), (3800, 4000, 32.524814958, 0.475369585587)):
        assert abs(v[start:end].mean() - v_mean) < 3e-3 * 33.6
        assert abs(i[start:end].mean() - i_mean) < 3e-2 * 10.3
    assert nsds.circuits.current(circuit, rows, "D1").min() > -1e-9


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_laws_of_circuits_hold_in_every_row(name, scheme):
    """Kirchhoff's law of currents at every node, the balance of power, and no diode against its direction."""
    circuit = nsds.circuit(EXAMPLES[name])
    if scheme == "event_driven":
        rows = nsds.simulate(circuit, t_end=2e-3, h=1e-5, scheme=EVENTS)[1:]
    else:
        rows = nsds.simulate(circuit, t_end=2e-3, h=1e-6 if name != "boost" else 1e-7, save_every=10)[1:]
    require_laws(circuit, rows[rows["status"] != status.EVENT], EXAMPLES[name])


def require_laws(circuit, rows, netlist):
    """What holds of voltages and currents in every row."""
    balance, power, elements = {}, np.zeros(rows.size), read(netlist, {}).elements
    currents = [nsds.circuits.current(circuit, rows, element.name) for element in elements]
    voltages = [nsds.circuits.voltage(circuit, rows, *element.nodes[:2]) for element in elements]
    largest, highest = (max(1e-12, abs(np.array(each)).max()) for each in (currents, voltages))
    for element, i, v in zip(elements, currents, voltages, strict=True):
        a, b = element.nodes[:2]
        power += i * v
        for node, sign in ((a, 1), (b, -1)):
            balance[node] = balance.get(node, 0) + sign * i
        if element.kind == "D" and "vrev" not in element.value:
            assert i.min() >= -1e-9 * largest
            assert v.max() <= 1e-9 * highest
            assert abs(i * v).max() <= 1e-9 * largest * highest
    assert max(abs(each).max() for each in balance.values()) <= 1e-12 * largest
    assert abs(power).max() <= 1e-10 * largest * highest


def test_a_switch_takes_the_current_of_the_diode_beside_it():
    """A leg of switches with diodes: in the dead time the inductor's current flows through a diode."""
    legs = [("V1", "d", 0, 10.0), ("S1", "d", "o", "g1", 0, "SWI"), ("DB1", "o", "d", "DI"), ("S2", "o", 0, "g2", 0, "SWI"),
            ("DB2", 0, "o", "DI"), ("R1", "o", "x", 1.0), ("L1", "x", 0, 1e-3), ("VG1", "g1", 0, "PULSE(0 1 0 0 0 40u 100u)"),
            ("VG2", "g2", 0, "PULSE(0 1 50u 0 0 40u 100u)"), ".model DI D", ".model SWI SW(Vt=0.5)"]  # fmt: skip
    circuit = nsds.circuit(legs)
    rows = nsds.simulate(circuit, t_end=2e-4, h=1e-6)
    i = {name: nsds.circuits.current(circuit, rows, name) for name in ("S1", "S2", "DB1", "DB2", "L1")}
    assert np.allclose(i["S1"] - i["DB1"] - i["S2"] + i["DB2"], i["L1"], rtol=0, atol=1e-12)
    at = [20, 45, 70, 95, 120]
    assert np.allclose(i["S1"][at], i["L1"][at] * [1, 0, 0, 0, 1])
    assert np.allclose(i["DB2"][at], i["L1"][at] * [0, 1, 0, 1, 0])
    assert np.allclose(i["S2"][at], -i["L1"][at] * [0, 0, 1, 0, 0])
    assert (i["DB1"][at] == 0).all()


def test_members_of_an_ensemble_differ_in_parameters():
    netlist = RECTIFIER.replace("R1 out 0 100", "R1 out 0 {load}\n.param load=100")
    circuits = np.stack([nsds.circuit(netlist, {"load": load}) for load in (50.0, 100.0)])
    rows = nsds.simulate(circuits, t_end=0.02, h=1e-4)
    for m in range(2):
        alone = nsds.simulate(circuits[m], t_end=0.02, h=1e-4)
        assert (alone["circuit"]["x"] == rows["circuit"]["x"][m]).all()


def test_names_that_are_not_there_are_refused():
    circuit = nsds.circuit(BRIDGE)
    rows = nsds.simulate(circuit, t_end=1e-3, h=1e-4)
    with pytest.raises(ValueError, match="voltage: there is no node 'q'; there are: a, b, p, n, 0"):
        nsds.circuits.voltage(circuit, rows, "q")
    with pytest.raises(ValueError, match="current: there is no element 'R7'"):
        nsds.circuits.current(circuit, rows, "R7")
    with pytest.raises(ValueError, match="integrals must be 'v\\(node\\)'"):
        nsds.circuit(BRIDGE, integrals=["p(R1)"])
    with pytest.raises(ValueError, match="mean: reading must be one of the circuit's integrals, of which there are none, got 'v\\(p\\)'"):
        nsds.circuits.mean(circuit, rows, "v(p)", 0.0, 1.0)


def test_bounds_that_are_functions_of_time_are_refused_where_nothing_reads_them():
    circuit = nsds.circuit(BOOST)
    with pytest.raises(ValueError, match="higher_order_sweeping: interaction 'devices' has bounds"):
        nsds.simulate(circuit, t_end=1e-5, h=1e-7, scheme=nsds.higher_order_sweeping())


def test_a_rectifier_by_events_is_exact():
    """Switch-off where ``tan(omega t) = -omega R C``, v(out) as in the test above; the current jumps to ``C omega V`` at the start."""
    circuit = nsds.circuit(RECTIFIER, integrals=["v(out)", "i(D1)"])
    rows, omega = nsds.simulate(circuit, t_end=0.06, h=1e-3, scheme=EVENTS), 100 * np.pi
    found = nsds.circuits.events(circuit, rows)
    t_off = (np.pi - np.arctan(omega * 0.01)) / omega
    assert found["state"].tolist() == [1, 0, 1, 0, 1, 0]
    assert set(found["device"].tolist()) == {"D1"}
    np.testing.assert_allclose(found["t"][[0, 1, 3, 5]], [0, t_off, t_off + 0.02, t_off + 0.04], rtol=1e-13, atol=1e-16)
    assert abs(nsds.circuits.current(circuit, rows, "D1")[1] - 1e-4 * omega * 10) < 1e-14
    v, t = nsds.circuits.voltage(circuit, rows, "out"), rows["t"]
    late = (t >= t_off) & (t < found["t"][2])
    np.testing.assert_allclose(v[late], 10 * np.sin(omega * t_off) * np.exp(-(t[late] - t_off) / 0.01), rtol=1e-12)
    for reading, mean in (("v(out)", 5.70703024089), ("i(D1)", 0.0570703024089)):  # case halfwave_rc
        assert abs(nsds.circuits.mean(circuit, rows, reading, 0.04, 0.06) / mean - 1) < 1e-11


def test_a_boost_converter_by_events():
    """Means of continuous and discontinuous conduction (case boost_ccm_dcm)."""
    circuit = nsds.circuit(BOOST, integrals=["v(out)", "i(L1)"])
    rows = nsds.simulate(circuit, t_end=4e-3, h=2e-4, scheme=EVENTS)
    found = nsds.circuits.events(circuit, rows)
    np.testing.assert_allclose(found["t"][:4], [1e-5, 2e-5, 3e-5, 4e-5], rtol=1e-13)
    for start, v, i in ((1.8e-3, 22.5824496057, 2.31960508654), (3.8e-3, 32.524814958, 0.475369585587)):
        assert abs(nsds.circuits.mean(circuit, rows, "v(out)", start, start + 2e-4) / v - 1) < 1e-11
        assert abs(nsds.circuits.mean(circuit, rows, "I( L1 )", start, start + 2e-4) / i - 1) < 1e-11


def test_an_amplifier_that_oscillates_by_events():
    """Instants of its flips (case relaxation_oscillator)."""
    circuit = nsds.circuit(OSCILLATOR)
    found = nsds.circuits.events(circuit, nsds.simulate(circuit, t_end=0.01, h=1e-3, scheme=EVENTS))
    assert found["state"].tolist() == [1, -1, 1, -1, 1, -1, 1]
    expected = [0, 0.00155814461805, 0.00329274567343, 0.00479682307021, 0.0065314241256, 0.00803550152238, 0.00977010257776]
    np.testing.assert_allclose(found["t"], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("scheme", "h", "late"), [(nsds.event_driven(), 1e-6, 1e-9), (nsds.euler_moreau(), 1e-7, 5e-7)])
@pytest.mark.parametrize("start", [1.0, -2.0])
@pytest.mark.filterwarnings("ignore:E1 may begin at either bound:RuntimeWarning")
def test_a_triangle_generator_is_at_a_rail_from_the_start(start, scheme, h, late):
    """A Schmitt trigger with an integrator behind it: 0.1 V/us from 5 to -5 V and back; between its rails it may be, but does not stay."""
    circuit = nsds.circuit(["E1 sq 0 TABLE {V(p,0)} = (0,-10) (0,10)", "R1 tri p 10k", "R2 sq p 20k",
                            "E2 tri 0 TABLE {V(0,q)} = (0,-15) (0,15)", "R3 sq q 10k", f"C1 tri q 10n IC={start}"])  # fmt: skip
    rows = nsds.simulate(circuit, t_end=3e-4, h=h, scheme=scheme)
    v, t = nsds.circuits.voltage(circuit, rows, "sq")[1:], rows["t"][1:]
    np.testing.assert_allclose(abs(v), 10.0, atol=1e-9)
    flips = t[1:][np.diff(np.sign(v)) != 0]
    first = 1e-5 * (5 - start if v[0] < 0 else 5 + start)
    np.testing.assert_allclose(flips, first + 1e-4 * np.arange(3)[: len(flips)], atol=late)
    assert len(flips) == 3


def test_a_switch_that_compares_a_sine_with_a_triangle():
    """Pulse width modulation without a grid of switchings: by events, and the limit of steps."""
    netlist = ["V1 d 0 100", "VT t 0 PULSE(-1 1 0 50u 50u 0 100u)", "VS s 0 SIN(0 0.8 1k)", "S1 d o s t SC", "D2 0 o DI", "R1 o x 1",
               "L1 x 0 1m", ".model SC SW(Vt=0)", ".model DI D"]  # fmt: skip
    circuit = nsds.circuit(netlist)
    exact = nsds.circuits.current(circuit, nsds.simulate(circuit, t_end=1e-3, h=1e-3, scheme=EVENTS), "L1")[-1]
    assert nsds.circuits.current(circuit, nsds.simulate(circuit, t_end=1e-3, h=1e-4, scheme=EVENTS), "L1")[-1] == pytest.approx(
        exact, rel=1e-13
    )
    for h in (4e-6, 1e-6, 2.5e-7):
        assert abs(nsds.circuits.current(circuit, nsds.simulate(circuit, t_end=1e-3, h=h), "L1")[-1] - exact) < 1e4 * h * exact


@pytest.mark.parametrize(("netlist", "message"), [
    (["V1 a 0 1", "R1 a b 1", "L1 b c 1m", "S1 c 0 g 0 SWI", "VG g 0 PULSE(0 1 0 0 0 1m 2m)", ".model SWI SW(Vt=0.5)"],
     "S1: charges or fluxes would jump, of L1: an inductor has no path left; nsds"),
    (["V1 a 0 1", "R1 c 0 1k", "C1 a c 1m", "S1 c 0 g 0 SWI", "VG g 0 PULSE(0 1 1m 0 0 1m 2m)", ".model SWI SW(Vt=0.5)"],
     "S1: charges or fluxes would jump, of C1: a capacitor is short-circuited; nsds"),
    ([".subckt coil a b", "L1 a b 1m", ".ends", "V1 a 0 12", "S1 a m g 0 SWI", "X1 m out coil", "C1 out 0 47u", "R1 out 0 10",
      "VG g 0 PULSE(0 1 0 0 0 1m 2m)", ".model SWI SW(Vt=0.5)"],
     "S1: charges or fluxes would jump, of X1.L1: an inductor has no path left; nsds"),
])  # fmt: skip
def test_an_inductor_without_a_path_and_a_short_circuit_of_a_capacitor_end_the_run(netlist, message):
    with pytest.raises(nsds.SimulationError, match=message) as error:
        nsds.simulate(nsds.circuit(netlist), t_end=4e-3, h=1e-4, scheme=EVENTS)
    assert error.value.t == pytest.approx(1e-3)


@pytest.mark.parametrize(("netlist", "message"), [
    (["C1 a 0 1u IC=10", "C2 b 0 2u", "D1 a b DI", "R1 b 0 10k", ".model DI D"], "D1: charges or fluxes would jump, of C1, C2: a cap"),
    (["L1 a 0 1m IC=1", "D1 a 0 DI", "R1 b 0 10", "V1 b 0 1", ".model DI D"], "D1: charges or fluxes would jump, of L1: an inductor"),
])  # fmt: skip
def test_a_start_that_asks_for_a_jump_is_named_as_one(netlist, message):
    """A diode between capacitors of 10 V and 0 V; an inductor with a current that its diode does not let pass."""
    circuit = nsds.circuit(netlist)
    with pytest.raises(nsds.SimulationError, match=message):
        nsds.simulate(circuit, t_end=1e-3, h=1e-4, scheme=EVENTS)
    rows = nsds.simulate(circuit, t_end=1e-3, h=1e-4, scheme=EVENTS, on_failure="continue")
    assert (rows["status"][1:] == status.IMPULSE).all()
    assert (nsds.simulate(circuit, t_end=1e-3, h=1e-4)["status"] == 0).all()  # implicit Euler takes the jump


def test_a_diode_across_a_source_is_named():
    with pytest.raises(nsds.SimulationError, match="D1: a source of voltage is short-circuited"):
        nsds.simulate(nsds.circuit(["V1 a 0 5", "D1 a 0 DI", ".model DI D"]), t_end=1e-3, h=1e-4, scheme=EVENTS)


@examples(25)
@given(
    st.lists(
        st.tuples(st.sampled_from("RRRCCLDDD"), st.integers(0, 4), st.integers(0, 4), st.sampled_from([0.5, 1.0, 2.0, 3.0])),
        min_size=4, max_size=9,
    )
)  # fmt: skip
def test_random_networks_obey_their_laws(drawn):
    """A source of 1 V at 1 Hz behind 1 Ohm, in a ladder of resistors, with elements in any place: by steps, in all of them."""
    lines = ["V1 s 0 SIN(0.2 1 1)", "R90 s n0 1", *(f"R9{k + 1} n{k} n{k + 1} {k + 1}" for k in range(4)), "R98 n4 0 2", ".model DI D"]
    for k, (kind, a, b, value) in enumerate(drawn):
        if a != b:
            lines.append(f"{kind}{k} n{a} {'0' if b == 4 else f'n{b}'} {'DI' if kind == 'D' else value / 4 if kind in 'CL' else value}")
    circuit = nsds.circuit(lines)
    rows = nsds.simulate(circuit, t_end=1.0, h=0.02)[1:]
    require_laws(circuit, rows, "\n".join(["title", *lines]))


@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_random_converters_obey_their_laws_event_by_event(seed):
    """Modes that only terms of high order tell apart, states at rest whose guards are rounding, currents that decay by 16 digits."""
    for k in range(seed, seed + many(100)):
        netlist = random_converter(np.random.default_rng(k))
        circuit = nsds.circuit(netlist)
        rows = nsds.simulate(circuit, t_end=5e-3, h=1e-4, scheme=EVENTS)[1:]
        require_laws(circuit, rows[rows["status"] != status.EVENT], netlist)


def test_a_cascade_of_diodes_that_all_begin_at_zero():
    """Two stages of Cockcroft and Walton: D4 conducts from the start, by the third derivative of its voltage."""
    netlist = """cascade
V1 a 0 SIN(0 10 50)
R0 a a0 10
C1 a0 b 10u
D1 0 b DI
D2 b c DI
C2 c 0 10u
C3 b d 10u
D3 c d DI
D4 d e DI
C4 e c 10u
R1 e 0 50k
"""
    circuit = nsds.circuit(netlist + MODELS)
    rows = nsds.simulate(circuit, t_end=0.2, h=1e-3, scheme=EVENTS)
    require_laws(circuit, rows[1:][rows["status"][1:] != status.EVENT], netlist + MODELS)
    assert nsds.circuits.current(circuit, rows, "D4")[rows["t"] == 1e-3] > 0
    steps = nsds.simulate(circuit, t_end=0.2, h=1e-5, save_every=100)
    by_steps, by_events = (nsds.circuits.voltage(circuit, each, "e")[-1] for each in (steps, rows))
    assert by_steps == pytest.approx(by_events, rel=2e-4)


@pytest.mark.reference
@pytest.mark.parametrize("name", STEPPED)
def test_cases_by_events(name):
    """All columns 1e-8 of their largest magnitude, instants 1e-9 of the horizon, means 1e-8."""
    reference = np.load(CIRCUITS / name / "ref.npz")
    circuit, t = nsds.circuit(CIRCUITS / name / "circuit.cir"), reference["t"]
    t_end, h = circuit["names"]["t_end"].item(), (t[1] - t[0]) / 2
    rows = nsds.simulate(circuit, t_end=t_end, h=h, scheme=EVENTS)
    at = np.searchsorted(rows["t"], t + 1e-12 * t_end, side="right") - 1
    for column in [key for key in reference if key[:2] in ("v_", "i_")]:
        assert abs(reading(circuit, rows, column)[at] - reference[column]).max() <= 1e-8 * abs(reference[column]).max()
    found = nsds.circuits.events(circuit, rows)
    names = np.array(circuit["names"]["device_names"].item().decode().split())
    columns = reference["event_t"], names[reference["event_device"].astype(int)], reference["event_state"]
    expected = np.array(list(zip(*columns, strict=True)), found.dtype)
    found = found[found["t"] < (1 - 1e-9) * t_end]  # the last corner of the source may be the end
    for events in (found, expected):
        events.sort(order="device", kind="stable")
    assert (found["device"] == expected["device"]).all()
    assert (found["state"] == expected["state"]).all()
    assert abs(found["t"] - expected["t"]).max() <= 1e-9 * t_end


@pytest.mark.reference
@pytest.mark.parametrize("name", STEPPED)
def test_cases_by_steps(name):
    h, columns, error = STEPPED[name]
    circuit, reference, errors = nsds.circuit(CIRCUITS / name / "circuit.cir"), np.load(CIRCUITS / name / "ref.npz"), []
    for step in (h, h / 2):
        rows = nsds.simulate(circuit, t_end=circuit["names"]["t_end"].item(), h=step)
        at = np.round(reference["t"] / step).astype(int)
        found = {column: reading(circuit, rows, column)[at] for column in columns}
        errors.append(max(abs(found[column] - reference[column]).max() / abs(reference[column]).max() for column in columns))
    assert errors[0] <= 1.5 * error
    assert name == "relaxation_oscillator" or 1.5 < errors[0] / errors[1] < 2.5


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
@pytest.mark.parametrize("name", EXAMPLES)
def test_ngspice_gives_the_same_but_for_what_its_elements_drop(name):
    """7 mV of 10 V at a diode, two of them in a bridge or a clipper."""
    assert compare(name)[0] < 3e-3
