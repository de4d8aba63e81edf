"""Netlists are read as SPICE reads them, what is not supported is refused by line and name, and equations are those of the elements."""

from fractions import Fraction

import numpy as np
import pytest

import nsds
from nsds.circuits.equations import reduced
from nsds.circuits.netlist import read
from nsds.circuits.waveforms import driven_bounds, value_of
from tests.circuits.netlists import EXAMPLES

MODELS = ".model DI D\n.model SWI SW(Vt=0.5)\n"


def elements(text, **params):
    return read(f"title\n{text}", params).elements


@pytest.mark.parametrize(
    ("word", "value"),
    [("1k", "1000"), ("4.7u", "0.0000047"), ("1MEG", "1000000"), ("3m", "0.003"), ("1e-3", "0.001"), ("10pF", "1e-11"), ("2.5kOhm", "2500"),
     (".5", "0.5"), ("1.5E2n", "1.5e-7"), ("{a*2}", "6"), ("{(a+1)/b}", "8"), ("a", "3"),
     ("{a*50u}", "150e-6"), ("{ 2k + 1.5E2n*(1 - b) }", "2000.000000075"), ("a*1MEGOhm", "3000000")],
)  # fmt: skip
def test_numbers_are_exact(word, value):
    assert elements(f".param a=3 b={{1/2}}\nR1 x 0 {word}")[0].value == Fraction(value)


def test_a_source_of_zero_volts_is_a_wire():
    rest = "R1 b c 2\nC1 c d 1u\nR2 d 0 3\nR3 a d 5"
    with_it, without = (
        reduced(elements(f"V0 a 0 SIN(0 1 50)\n{wire}{rest}")) for wire in ("V1 a b 0\nV2 e 0 0\nR4 e d 1\n", "R0 a b 0\nR4 0 d 1\n")
    )
    for one, other in ((with_it.rates["C1"], without.rates["C1"]), (with_it.voltages["d"], without.voltages["d"])):
        assert {key: c for key, c in one.items() if c} == other


def test_expressions_stand_in_waves_too():
    wave = elements(".param D=0.25\nV1 a 0 PULSE(0 1 { (1 - D)*20u } 0 0 {D*20u} 20u)")[0].value
    assert wave == elements("V1 a 0 PULSE(0 1 15u 0 0 5u 20u)")[0].value


def test_a_title_that_could_be_an_element_is_told():
    with pytest.warns(UserWarning, match="so 'V1 a 0 5' is no element of it") as found:
        nsds.circuit("V1 a 0 5\nR1 a 0 1\n")
    assert found[0].filename == __file__


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("title", ["", "half-wave rectifier", "Voltage divider", "D1 a 0 DI", "* V1 a 0 5"])
def test_titles_are_words(title):
    nsds.circuit(f"{title}\nV1 a 0 5\nR1 a 0 1\n")


def test_a_netlist_with_comments_continued_lines_and_subcircuits():
    text = "* comment\nV1 a 0\n+ SIN(0 1\n+ 50) ; more\nX1 a b CELL\nX2 b 0 CELL\n"
    text += ".subckt CELL p q\nR1 p m {r}\nC1 m q 1u IC=2\n.ends\n.param r=1k"
    found = elements(text, r=50.0)
    assert [e.name for e in found] == ["V1", "X1.R1", "X1.C1", "X2.R1", "X2.C1"]
    assert found[1].nodes == ("a", "x1.m")
    assert found[4].nodes == ("x2.m", "0")
    assert found[1].value == 50
    assert found[2].start == 2


CELL = (
    ".subckt CELL p q params: r=1k v = {2*base}\nR1 p m {r}\nD1 m q DI\n.model DI D(Vfwd={half})\n.param half={v/2}\n.ends\n.param base=4\n"
)


def test_parameters_of_a_subcircuit_are_those_of_its_line():
    first, second = (elements(f"{CELL}X1 a 0 CELL\nX2 a 0 CELL r = {{3*base}} v=1")[k : k + 2] for k in (0, 2))
    assert [first[0].value, first[1].value["vfwd"]] == [1000, 4]
    assert [second[0].value, second[1].value["vfwd"]] == [12, Fraction(1, 2)]
    assert elements(f"{CELL}X1 a 0 CELL", base=10.0)[1].value["vfwd"] == 10


def test_names_inside_a_subcircuit_are_its_own():
    text = "".join(f".subckt C{k} p\n.param r={k}\n.model DI D(Vfwd={k})\nR1 p m {{r}}\nD1 m 0 DI\n.ends\n" for k in (1, 2))
    found = elements(f"{text}.param r=3\n.model DI D(Vfwd=3)\nX1 a C1\nX2 a C2\nR1 a m {{r}}\nD1 m 0 DI")
    assert [e.value if e.kind == "R" else e.value["vfwd"] for e in found] == [1, 1, 2, 2, 3, 3]


def test_parameters_stand_in_any_order():
    assert elements("R1 a 0 {b}\nD1 a 0 DI\n.model DI D(Vfwd={b})\n.param b={2*c}\n.param c=1k5")[0].value == 3000


@pytest.mark.parametrize(
    ("line", "plain"),
    [("DC 0 AC 1 SIN(0 1 50)", "SIN(0 1 50)"), ("5 PULSE(0 1 0 0 0 1 2)", "PULSE(0 1 0 0 0 1 2)"), ("SIN(0 1 50) AC 1 90", "SIN(0 1 50)"),
     ("DC 5 AC 1", "5"), ("5 AC 1 0", "5"), ("AC 1", "0")],
)  # fmt: skip
def test_what_a_source_is_for_other_analyses_is_not_read(line, plain):
    assert elements(f"V1 a 0 {line}") == elements(f"V1 a 0 {plain}")


@pytest.mark.parametrize(
    ("line", "plain"),
    [("R1 a 0 R = 1k", "R1 a 0 1k"), ("C1 a 0 C=1u IC = 2", "C1 a 0 1u IC=2"), ("C1 a 0 IC=2 1u", "C1 a 0 1u IC=2"),
     ("V1 a 0 DC=5", "V1 a 0 5"), ("V1 a 0 dc = 0 SINE(0 1 50)", "V1 a 0 SIN(0 1 50)"), (".param p=1k, q = {p*2}\nR1 a 0 {q}", "R1 a 0 2k"),
     ("C1 a 0 1u\nC2 b 0 1u\n.ic V(a) = 1, V(b)=2", "C1 a 0 1u IC=1\nC2 b 0 1u IC=2"), ("V1 a 0 {am}\n.param am=2", "V1 a 0 2"),
     ("V1 a 0 am\n.param am=2", "V1 a 0 2")],
)  # fmt: skip
def test_values_are_stated_in_several_ways(line, plain):
    assert elements(line) == elements(plain)


def test_an_element_has_a_resistor_of_its_own():
    """Rser is a resistor at the second node, which .ic sees through."""
    found = elements("V1 a 0 5 Rser=1\nC1 a b 1u Rser={r*2}\nL1 b 0 1m IC=3 Rser=4\n.param r=3\n.ic V(a)=5 V(b)=1")
    assert [(e.name, e.kind, e.nodes, e.start) for e in found] == [
        ("V1", "V", ("a", "v1:rser"), None), ("V1:Rser", "R", ("v1:rser", "0"), None),
        ("C1", "C", ("a", "c1:rser"), 4), ("C1:Rser", "R", ("c1:rser", "b"), None),
        ("L1", "L", ("b", "l1:rser"), 3), ("L1:Rser", "R", ("l1:rser", "0"), None),
    ]  # fmt: skip
    assert [e.value for e in found[1::2]] == [1, 6, 4]


def test_global_nodes_are_seen_in_subcircuits():
    found = elements(".global VCC\n.subckt S o\nR1 vcc m 1\nR2 m o 1\n.ends\nX1 a S\nV1 vcc 0 5")
    assert [e.nodes for e in found] == [("vcc", "x1.m"), ("x1.m", "a"), ("vcc", "0")]


@pytest.mark.parametrize(("line", "end"), [(".tran 1u 2m uic", 2e-3), (".tran 2m UIC", 2e-3), (".tran 0 2m 0 1u uic", 2e-3)])
def test_the_end_of_a_run(line, end):
    assert read(f"title\nR1 a 0 1\n{line}", {}).t_end == end


def test_a_node_may_be_named_like_a_table():
    assert elements("E1 stable 0 a 0 2")[0].kind == "E"


def test_nodes_without_ic_are_at_zero():
    """C1 goes on from 5 V through 2 kOhm, also where .ic names one of its nodes."""
    circuit = nsds.circuit("title\n.ic V(a)=5\nC1 b a 1u\nR1 b 0 1k\nR2 a 0 1k\n")
    rows = nsds.simulate(circuit, t_end=2e-3, h=1e-4, scheme=nsds.event_driven())
    across = nsds.circuits.voltage(circuit, rows, "a", "b")
    np.testing.assert_allclose(across, 5 * np.exp(-rows["t"] / 2e-3), rtol=1e-12)


def test_lines_of_other_programs_change_nothing():
    rest = "V1 a 0 1\nR1 a 0 1\n"
    assert elements(f".options reltol=1e-4\n{rest}.meas tran x MAX V(a)\n.temp 27") == elements(rest)


def test_lines_and_tuples_are_a_netlist_too():
    text = nsds.circuit("title\nV1 a 0 5\nR1 a b 1k\nC1 b 0 1u IC=1\n")
    assert nsds.circuit([("V1", "a", 0, 5), ("R1", "a", "b", 1e3), "C1 b 0 1u IC=1"]).tobytes() == text.tobytes()


def test_a_file_is_a_netlist_too(tmp_path):
    path = tmp_path / "rectifier.cir"
    path.write_text(EXAMPLES["rectifier"])
    for given in (path, str(path)):
        assert nsds.circuit(given).tobytes() == nsds.circuit(EXAMPLES["rectifier"]).tobytes()


BAD = {
    "B1 a 0 V=V(a)*V(a)": "line 2 of the netlist, 'B1': behavioural sources are not supported but sums of voltages and currents",
    "B1 a 0 V=exp(V(b))": "behavioural sources are not supported but sums",
    "B1 a 0 V=2/I(V1)": "behavioural sources are not supported but sums",
    "B1 a 0 V={if(V(b)>0,1,0)}": "behavioural sources are not supported but sums",
    "B1 a 0 V={V(b)>0 ? 1 : 0}": "what has corners is a switch, a diode, or E with a TABLE",
    "B1 a 0 V=tanh(V(b))": "behavioural sources are not supported but sums",
    "G1 a 0 VALUE={V(b)*time}": "'time' is no number and no parameter; parameters are: none",
    "E1 a 0 LAPLACE {V(b)} {1/(1+s)}": "LAPLACE is not supported: write the filter as a circuit",
    "T1 a 0 b 0 Z0=50 TD=1n": "transmission lines (write a ladder of inductors and capacitors) are not supported",
    "B1 a 0 V=sin(time)": "'time' is no number and no parameter",
    "B1 a 0 2": "expected V={expression} or I={expression}",
    "E1 a 0 POLY(2) b 0 c 0 0 0 0 0 1": "behavioural sources are not supported but sums",
    "F1 a 0 POLY(2) V1": "expected POLY(n), n controls and coefficients",
    "R1 a 0 {cube(2)}": "the function cube is not known, these are: sqrt",
    "R1 a 0 {sqrt(-1)}": "sqrt has no value at -1",
    ".func twice x": "expected name(argument, ...) {expression}",
    ".func twice(x) {2*x}\nR1 a 0 {twice(1,2)}": "twice has 1 arguments, got 2",
    "M1 a b 0 0 NMOS": "line 2 of the netlist, 'M1': transistors",
    "Y1 a 0 1": "no element that is known",
    "R1 a 0": "expected 2 nodes and more",
    "R1 a 0 1k tc=1": "'tc=1' is not supported",
    "R1 a 0 abc": "'abc' is no number and no parameter",
    "R1 a 0 {1/0}": "no number, parameter or expression",
    "C1 a 0 -1u": "must be positive",
    "C1 a 0 1u IC=x": "'x' is no number and no parameter",
    "D1 a 0 DX": "there is no .model DX D",
    "V1 a 0 SIN(0 1)": "SIN has 3 to 6 numbers",
    "V1 a 0 PWL(0 1 2)": "in pairs",
    "R1 a 0 1k Rser=1": "'Rser=1' is not supported",
    "V1 a 0 1 2": "'1' is not supported; sources are DC, SIN",
    ".tran uic": "expected a step and an end, or an end",
    "V1 a 0 PWL(0 1 -1 2)": "must not fall",
    "V1 a 0 PULSE(0 1 0 1 1 1 2)": "fit into the period",
    "E1 o 0 TABLE {V(p)} = (0,1)": "two corners",
    "E1 o 0 TABLE {V(p)} = (0,1) (0,1)": "differ in y",
    "K1 L1 L2 1": "names the inductor 'L1', which there is not",
    "F1 a 0 V9 2": "names the voltage source 'V9'",
    "X1 a b CELL": "there is no .subckt CELL",
    ".include other.cir": ".include is not supported",
    ".tran 1u 1m": "UIC must end it",
    ".ic V(q)=3": ".ic names V(q), which is no node",
    ".ic V(b)=3\nV1 a 0 1\nC1 a b 1u\nR1 b 0 1": ".ic names one node of 'C1', and not V(a), where a source is",
    ".param a={b} b={a}": "'a' is no number and no parameter",
    ".subckt CELL p r=1\nR1 p 0 {r}\n.ends\nX1 a CELL q=2": "the subcircuit has no parameter 'q', these are: r",
    ".model DI D(IS=1e-14)": "parameter 'is' of a model D is not supported",
    ".model NM NMOS": "models are of kind D or SW",
    ".subckt A p": ".subckt has no .ends",
    "R1 a 0 1\nr1 a 0 1": "two elements of the name",
    "V1 a 0 1\nV2 a 0 2": "circuit: constant sources (V1, V2): a loop of voltages, or a cut set of currents, that elements give already, "
    "contradict each other",
    "I1 a 0 1": "constant sources (I1): a loop of voltages, or a cut set of currents, that elements give already, contradict each other",
    "V1 a a 1": "constant sources (V1): a loop of voltages, or a cut set of currents, that elements give already, contradict each other",
    "V1 a 0 5\nC1 a 0 1u IC=3": "IC=3 contradicts constant sources (V1), with which",
    "V1 a 0 SIN(1 1 50)\nC1 a 0 1u IC=0": "IC=0 contradicts V1",
    "V1 a 0 PULSE(0 1 0 0 0 1 2)\nC1 a 0 1u": "the source steps",
    "V1 a 0 1\nL1 a 0 1\nL2 b 0 1\nK1 L1 L2 1.5": "must be in [-1, 1]",
    MODELS + "V1 a 0 1\nR1 a b 1\nS1 b 0 b 0 SWI": "the control of switch 'S1' must be a sum of sources",
}


@pytest.mark.parametrize("element", ["R1 a a 5", "C1 a a 1u", "D1 a a DI", "R1 0 0 1"])
def test_what_lies_between_a_node_and_itself_changes_nothing(element):
    circuit = nsds.circuit([element, "V1 a 0 1", "R2 a 0 2", ".model DI D"])
    rows = nsds.simulate(circuit, t_end=1e-3, h=1e-4)
    assert [nsds.circuits.current(circuit, rows, name)[-1] for name in (element[:2], "V1", "R2")] == [0.0, -0.5, 0.5]


@pytest.mark.parametrize("text", BAD)
def test_what_is_wrong_is_named(text):
    with pytest.raises(ValueError, match="circuit: ") as error:
        nsds.circuit(f"title\n{text}\nR9 a 0 1\n" if "contradict" not in BAD[text] else f"title\n{text}\n")
    assert BAD[text] in str(error.value)


def test_a_netlist_without_a_ground_is_told():
    with pytest.warns(UserWarning, match="no element is at the ground, node 0 or gnd") as found:
        nsds.circuit(["V1 a b 1", "R1 a b 1"])
    assert found[0].filename == __file__


SUMS = [
    ("B1 a 0 V={2*V(p,q)-V(q)/4}", "E1 a m p q 2\nE2 m 0 0 q 0.25"),
    ("B1 a 0 V = 2 * V(p, q) - k * V(q)\n.param k=0.25", "E1 a m p q 2\nE2 m 0 0 q 0.25"),
    ("B1 a 0 I={V(p)/2 + 3*I(V1) - 1}", "G1 a 0 p 0 0.5\nF1 a 0 V1 3\nI1 0 a 1"),
    ("B1 a 0 I=I(R8)", "G1 a 0 q 0 0.25"),
    ("E1 a 0 VALUE={ 2*(V(p) - V(q)) + 1 }", "E1 a m p q 2\nV9 m 0 1"),
    ("E1 a 0 vol='twice(V(p))'\n.func twice(x) {2*x}", "E1 a 0 p 0 2"),
    ("G1 a 0 VALUE {V(p)*g}\n.param g=2", "G1 a 0 p 0 2"),
    ("E1 a 0 POLY(2) (p,0) (q,0) 1 2 3", "E1 a m p 0 2\nE2 m n q 0 3\nV9 n 0 1"),
    ("E1 a 0 (p, q) 2", "E1 a 0 p q 2"),
    ("G1 a 0 POLY(1) p q 2", "G1 a 0 p q 2"),
    ("F1 a 0 POLY(2) V1 V2 0 2 3 0", "F1 a 0 V1 2\nF2 a 0 V2 3"),
    ("H1 a 0 POLY(1) V1 1 2", "H1 a m V1 2\nV9 m 0 1"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "plain"), SUMS)
def test_sources_that_are_sums_are_those_of_one_term_each(line, plain):
    """Rows of the equations, but for names of the source itself, are equal in exact fractions."""
    rest = "\nV1 p 0 SIN(0 1 50)\nV2 r 0 SIN(0 1 60)\nR2 r 0 2\nR1 p q 3\nC1 q 0 1u\nR8 q 0 4\nR9 a 0 5\nL1 a 0 1m"
    one, other = (reduced(elements(text + rest)) for text in (line, plain))
    for states, of in ((one.rates, other.rates), ({"a": one.voltages["a"]}, {"a": other.voltages["a"]})):
        for name, row in states.items():
            assert {key: c for key, c in row.items() if c} == {key: c for key, c in of[name].items() if c}


def test_subcircuits_inside_others_are_seen_there_only():
    text = ".subckt OUT p q\n.subckt IN c d\nR1 c m 2\nR2 m d 3\n.ends IN\nX2 p q IN\n.ends OUT\nX1 a 0 OUT\n"
    assert [(e.name, e.nodes, e.value) for e in elements(text)] == [
        ("X1.X2.R1", ("a", "x1.x2.m"), 2), ("X1.X2.R2", ("x1.x2.m", "0"), 3),
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"there is no \.subckt IN"):
        elements(f"{text}X3 a 0 IN")


@pytest.mark.parametrize(
    ("word", "value"),
    [("{sqrt(2)*230}", 230 * 2**0.5), ("{2*pi*50}", 100 * np.pi), ("{2**3}", 8), ("{2^-2}", 0.25), ("{max(1k,3)}", 1000), ("'2*a'", 6),
     ("{sq(a)+sq(2)}", 13), ("{atan(1)*4}", np.pi)],
)  # fmt: skip
def test_functions_of_parameters(word, value):
    found = elements(f".param a=3\n.func sq(x) = {{x*x}}\nR1 x 0 {word}")[0].value
    assert float(found) == pytest.approx(value, rel=1e-15)


def test_commands_and_comments_of_other_programs_are_passed_over():
    rest = "V1 a 0 1\nR1 a 0 1\n"
    text = "V1 a 0 1 $ a source\nR1 a 0 1 // a load\n.op\n.nodeset v(a)=1\n.control\nrun\nplot v(a)\n.endc\n"
    assert elements(text) == elements(rest)


def test_a_parameter_that_nothing_names_is_refused():
    with pytest.raises(ValueError, match="names the parameter 'q'"):
        nsds.circuit("title\nR1 a 0 1\n", {"q": 1.0})


def test_equations_of_a_loop_of_capacitors_through_a_source():
    """V - C1 - C2 in a ring: one state, and ``C2 v2' + C1 (v2' - u') + v2 / R = 0`` by hand."""
    found = reduced(elements("V1 a 0 SIN(0 1 50)\nC1 a b 1u\nC2 b 0 3u\nR1 b 0 1k"))
    assert found.states == ("C1",)
    assert found.rates["C1"] == {("x", "C1"): Fraction(-250), ("u", "V1"): Fraction(250), ("du", "V1"): Fraction(3, 4)}


def test_inductors_coupled_perfectly_have_one_state():
    found = reduced(elements("V1 a 0 SIN(0 1 50)\nR1 a b 1\nL1 b 0 4m\nL2 s 0 1m\nK1 L1 L2 1\nR2 s 0 2"))
    assert found.states == ("L1",)  # magnetising current: 4m x' = v(b) = u - i1, v(s) = v(b) / 2, i2 = -v(s) / 2, x = i1 + i2 / 2
    assert found.rates["L1"] == {("u", "V1"): 2000 / 9, ("x", "L1"): -2000 / 9}


@pytest.mark.parametrize(("t", "before", "after"), [(0, 1, 1), (1, 1, 3), (2, 3, 3), (3, 3, 1), (11, 1, 3), (13.0, 3, 1), (14, 1, 1)])
def test_steps_of_a_pulse_have_both_sides(t, before, after):
    pulse = elements("V1 a 0 PULSE(1 3 1 0 0 2 10)")[0].value
    assert value_of(pulse, t) == after
    from nsds.circuits.waveforms import HEAD, packed, wave

    assert wave(float(t), True, HEAD, packed([pulse], np.zeros(0), np.zeros((0, 1)), np.zeros((0, 1))))[0] == before


def test_waves_follow_their_formulas():
    t = np.linspace(0.0, 5.0, 101)
    sine = elements("V1 a 0 SIN(1 2 0.5 1 0.25 30)")[0].value
    angle, late = np.radians(30), t >= 1
    expected = 1 + 2 * np.where(late, np.exp(-0.25 * (t - 1)) * np.sin(np.pi * (t - 1) + angle), np.sin(angle))
    assert np.allclose(value_of(sine, t), expected, rtol=0, atol=1e-15)
    trapezoid = elements("V1 a 0 PULSE(0 1 0 1 1 1 4)")[0].value
    assert np.allclose(value_of(trapezoid, t), np.interp(t % 4, [0, 1, 2, 3, 4], [0, 1, 1, 0, 0]), rtol=0, atol=1e-15)
    pieces = elements("V1 a 0 PWL(1 2 3 -1 4 0)")[0].value
    assert np.allclose(value_of(pieces, t), np.interp(t, [1, 3, 4], [2, -1, 0]), rtol=0, atol=1e-15)


def test_bounds_of_a_driven_switch_and_the_diode_beside_it():
    """While its gate is up, lambda is free or 0; else it is that of the diode alone."""
    text = MODELS + "V1 a 0 5\nR1 a b 1\nS1 b 0 g 0 SWI\nD1 0 b DI\nVG g 0 PULSE(0 1 0 0 0 1 2)\n"
    devices = nsds.circuit(f"title\n{text}")["devices"]
    assert devices["lambda"].shape == ()
    out = np.empty((2, 1))
    for t, expected in (
        (0.5, [-np.inf, np.inf]),
        (1.0, [-np.inf, np.inf]),
        (1.5, [0.0, np.inf]),
        (2.0, [0.0, np.inf]),
        (2.5, [-np.inf, np.inf]),
    ):
        driven_bounds(t, devices["z"], out)
        assert out.ravel().tolist() == expected
