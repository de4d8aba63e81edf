"""Circuits in time: checkpoints of exact solutions in the limit of ideal elements, and what holds in every row."""

import numpy as np
import pytest

import nsds
from tests.circuits.netlists import BOOST, BRIDGE, EXAMPLES, RECTIFIER
from tests.paths import CIRCUITS

# name, step, strong columns, their largest error in the limit of that step (case.md), from exact event-driven solutions
STEPPED = {
    "halfwave_rc": (1e-5, ("v_out",), 1.8e-4), "boost_ccm_dcm": (1e-7, ("v_out", "i_L1"), 2.7e-3), "flyback_k1": (5e-8, ("v_out",), 5.9e-4),
    "relaxation_oscillator": (1e-6, ("v_q",), 1.9e-3), "six_pulse_rl": (1e-5, ("i_LA", "i_LB", "i_LC", "i_L1"), 9.0e-3),
    "zener_clipper": (1e-6, ("v_out",), 3.6e-3),
}  # fmt: skip


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


@pytest.mark.parametrize("name", EXAMPLES)
def test_laws_of_circuits_hold_in_every_row(name):
    """Kirchhoff's law of currents at every node, the balance of power, and no diode against its direction."""
    circuit = nsds.circuit(EXAMPLES[name])
    rows = nsds.simulate(circuit, t_end=2e-3, h=1e-6 if name != "boost" else 1e-7, save_every=10)[1:]
    from nsds.circuits.netlist import read

    balance, power, largest = {}, np.zeros(rows.size), 0.0
    for element in read(EXAMPLES[name], {}).elements:
        i = nsds.circuits.current(circuit, rows, element.name)
        a, b = element.nodes[:2]
        v = nsds.circuits.voltage(circuit, rows, a, b)
        power += i * v
        largest = max(largest, abs(i).max())
        for node, sign in ((a, 1), (b, -1)):
            balance[node] = balance.get(node, 0) + sign * i
        if element.kind == "D" and "vrev" not in element.value:
            assert i.min() >= -1e-9 * largest
            assert v.max() <= 1e-9 * abs(v).max()
            assert abs(i * v).max() <= 1e-9 * largest * abs(v).max()
    assert max(abs(each).max() for each in balance.values()) <= 1e-12 * largest
    assert abs(power).max() <= 1e-10 * largest * 30


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


def test_bounds_that_are_functions_of_time_are_refused_where_nothing_reads_them():
    circuit = nsds.circuit(BOOST)
    with pytest.raises(ValueError, match="higher_order_sweeping: interaction 'devices' has bounds"):
        nsds.simulate(circuit, t_end=1e-5, h=1e-7, scheme=nsds.higher_order_sweeping())


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
