"""Netlists as people write them: values, models without Roff, sines that wait, capacitors without IC, op-amps behind capacitors."""

import numpy as np
import pytest

import nsds
from nsds.circuits.netlist import read
from nsds.circuits.waveforms import HEAD, SIN, packed, wave

MICRO, MU, OMEGA, OHM = "\u00b5", "\u03bc", "\u03a9", "\u2126"
SCHEMES = (None, nsds.event_driven())


def value(word, line="R1 a 0"):
    return float(read([f"{line} {word}"], {}).elements[0].value)


@pytest.mark.parametrize(
    ("word", "wanted"),
    [("4k7", 4700.0), ("1u5", 1.5e-6), ("2meg2", 2.2e6), ("0n47", 0.47e-9), ("4K7Ohm", 4700.0), (f"1{MICRO}", 1e-6), (f"1{MU}", 1e-6),
     (f"3{MICRO}3", 3.3e-6), (f"10{MICRO}F", 1e-5), (f"10{MU}F", 1e-5), ("1mil", 25.4e-6), ("2MILS", 50.8e-6), (f"4.7k{OMEGA}", 4700.0),
     (f"10{OHM}", 10.0), (f"1Meg{OMEGA}", 1e6), ("10V", 10.0), ("2.5e-3k", 2.5), ("1e3Hz", 1000.0), ("5Volts", 5.0), ("100mH", 0.1),
     ("{4k7*2}", 9400.0), (f"{{10{MICRO} + 1u5}}", 11.5e-6), ("{1/4k}", 0.25e-3), ("-4k7", -4700.0), ("{2*(1mil+1k)}", 2000.0000508)],
)  # fmt: skip
def test_values_are_those_that_are_meant(word, wanted):
    assert value(word) == pytest.approx(wanted, rel=1e-15)


@pytest.mark.parametrize(
    "word", ["4R7", "1.5k3", "1e3k5", "4k7k2", "1_000", "0x10", "1micro", "2milli", "1.2.3", "3%", "1e999", "1e99999999", "4,7k", "10°",
             "1e-400", "1e308k", "{1e200*1e200}"]
)  # fmt: skip
def test_what_is_no_number_of_spice_is_refused_by_line(word):
    with pytest.raises(ValueError, match=r"line 1 of the netlist, 'R1'"):
        value(word)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_files_of_other_programs_are_read(tmp_path, encoding):
    file = tmp_path / "net.cir"
    file.write_bytes(f"title\nC1 a 0 10{MICRO}F\n".encode(encoding))
    assert float(read(file, {}).elements[0].value) == 1e-5


def test_expressions_in_models_keep_their_parentheses():
    found = read([".param a=1 b=4", "D1 x 0 M", ".model M D(Ron={(a+1)/b} Roff={2*(a+b)})"], {}).elements[0].value
    assert [float(found[name]) for name in ("ron", "roff")] == [0.5, 10.0]


@pytest.mark.parametrize(
    ("model", "Ron", "drop"),
    [("D(Ron=1)", 1, 0), ("D(Ron=5 Vfwd=0.7)", 5, 0.7), ("D(Ron=3 Vrev=50)", 3, 0), ("SW(Vt=0.5 Ron=20)", 20, 0),
     ("D(Ron=2 Roff=1e12)", 2, 0)],
)  # fmt: skip
def test_without_Roff_a_device_blocks(model, Ron, drop):
    device = "D1 a b M" if model[0] == "D" else "S1 a b g 0 M"
    circuit = nsds.circuit(["V1 a 0 PULSE(5 -5 1m)", "Vg g 0 PULSE(1 0 1m)", device, "R1 b 0 1k", "C1 b 0 1n", f".model M {model}"])
    rows = nsds.simulate(circuit, t_end=2e-3, h=1e-4, scheme=nsds.event_driven())
    i = nsds.circuits.current(circuit, rows, "R1")
    assert i[rows["t"] < 1e-3][-1] == pytest.approx((5 - drop) / (1000 + Ron), rel=1e-9)
    assert abs(i[-1]) < 1e-7


def rc_of_sine(t, amplitude, omega, phase, tau, start):
    """Voltage of C in RC on ``amplitude sin(omega t + phase)``, from start at t = 0: closed form."""
    size, lag = amplitude / np.hypot(1, omega * tau), np.arctan(omega * tau)
    return size * np.sin(omega * t + phase - lag) + (start - size * np.sin(phase - lag)) * np.exp(-t / tau)


@pytest.mark.parametrize(("delay", "phase"), [(1e-3, 0), (1e-3, 30), (0.37e-3, -90), (0, 30), (2.2e-3, 60)])
@pytest.mark.parametrize("h", [1e-4, 3e-4])
def test_a_sine_that_waits_runs_event_by_event(delay, phase, h):
    """Before the delay the source has the value of its phase."""
    circuit = nsds.circuit([f"V1 in 0 SIN(1 5 1k {delay} 0 {phase})", "R1 in out 1k", "C1 out 0 1u IC=0"])
    rows = nsds.simulate(circuit, t_end=2.3e-3, h=h, scheme=nsds.event_driven())
    t, tau, phi = rows["t"], 1e-3, np.radians(phase)
    first = 1 + 5 * np.sin(phi)
    early = first * (1 - np.exp(-t / tau))
    at_delay = first * (1 - np.exp(-delay / tau))
    late = 1 - np.exp(-(t - delay) / tau) + rc_of_sine(t - delay, 5, 2e3 * np.pi, phi, tau, at_delay)
    np.testing.assert_allclose(nsds.circuits.voltage(circuit, rows, "out"), np.where(t < delay, early, late), rtol=0, atol=1e-12)


def test_a_sine_that_waits_may_charge_a_capacitor_without_a_resistor():
    circuit = nsds.circuit(["V1 in 0 SIN(0 5 1k 1m 0 30)", "C1 in 0 1u", "R1 in 0 1k"])
    rows = nsds.simulate(circuit, t_end=2.3e-3, h=1e-4, scheme=nsds.event_driven())
    v = 5 * np.sin(2e3 * np.pi * np.maximum(rows["t"] - 1e-3, 0) + np.pi / 6)
    np.testing.assert_allclose(nsds.circuits.voltage(circuit, rows, "in"), v, rtol=0, atol=1e-12)


def test_a_waiting_sine_has_both_sides_at_its_beginning():
    z = packed(
        read(["V1 a 0 SIN(1 2 5 3 0 90)"], {}).elements[0].value.parts("V1").values(), np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2))
    )
    assert z[HEAD] == SIN
    assert [wave(3.0, is_left, HEAD, z)[0] for is_left in (True, False)] == [1.0, 3.0]
    assert wave(3.0, False, HEAD, z)[1] == pytest.approx(0.0, abs=1e-12)  # at its crest


DIVIDERS = {
    "divider": (["V1 in 0 9", "C1 in m 1u", "C2 m 0 2u"], {"m": 3.0}),
    "load": (["V1 in 0 9", "C1 in m 1u", "C2 m 0 2u", "R1 m 0 1k"], {"m": 3.0}),
    "sine": (["V1 in 0 SIN(1 8 50 0 0 90)", "C1 in m 1u", "C2 m 0 2u", "R1 m 0 1k"], {"m": 3.0}),
    "three": (["V1 in 0 12", "C1 in a 6u", "C2 a b 3u", "C3 b 0 2u"], {"a": 10.0, "b": 6.0}),
    "ladder": (["V1 in 0 8", "C1 in a 1u", "C2 a 0 1u", "C3 a b 1u", "C4 b 0 1u"], {"a": 3.2, "b": 1.6}),
    "two loops": (["V1 in 0 9", "C1 in m 1u", "C2 m 0 2u", "V2 x 0 4", "C3 x y 1u", "C4 y 0 1u IC=1"], {"m": 3.0, "y": 1.0}),
    "one is given": (["V1 in 0 9", "C1 in m 1u IC=4", "C2 m 0 2u"], {"m": 5.0}),
    "side by side": (["C1 m 0 1u IC=5", "C2 m 0 2u", "R1 m 0 1k"], {"m": 5.0}),
    "controlled": (["V1 in 0 1", "E1 a 0 in 0 9", "C1 a m 1u", "C2 m 0 2u"], {"m": 3.0}),
}


@pytest.mark.parametrize("scheme", SCHEMES, ids=("steps", "events"))
@pytest.mark.parametrize("case", DIVIDERS)
def test_sources_move_one_charge_through_capacitors_in_series(case, scheme):
    lines, wanted = DIVIDERS[case]
    circuit = nsds.circuit(lines)
    rows = nsds.simulate(circuit, t_end=1e-9, h=1e-9, scheme=scheme)
    for node, v in wanted.items():
        np.testing.assert_allclose(nsds.circuits.voltage(circuit, rows, node), v, rtol=1e-5)


def test_a_source_of_current_divides_between_inductors():
    circuit = nsds.circuit(["I1 0 a 3", "L1 a 0 1m", "L2 a 0 2m"])
    rows = nsds.simulate(circuit, t_end=1e-8, h=1e-8)
    assert [nsds.circuits.current(circuit, rows, L)[-1] for L in ("L1", "L2")] == pytest.approx([2.0, 1.0], rel=1e-12)


def test_the_charge_is_that_of_the_source_at_the_start_of_the_run():
    circuit = nsds.circuit(["V1 in 0 PWL(0 0 1 9)", "C1 in m 1u", "C2 m 0 2u"], t=0.5)
    assert circuit["circuit"]["x"].tolist() in ([3.0], [1.5])


def test_where_IC_leaves_a_start_open_it_is_asked_for():
    with pytest.raises(ValueError, match=r"the start of C2 is not determined beside C1, .*: give it IC="):
        nsds.circuit(["V1 in 0 9", "C1 in a 1u IC=4", "C2 a b 1u", "C3 b 0 1u"])


AMPLIFIER = "E1 o 0 TABLE {V(0,n)} = (-1u,-10) (1u,10)"  # a gain of 1e7


@pytest.mark.parametrize(
    ("scheme", "h", "error"), [(nsds.event_driven(), 0.05, 1e-5), (None, 1e-3, 2e-3 * np.pi**2)], ids=("events", "steps")
)
@pytest.mark.parametrize("with_IC", [True, False])
def test_a_charge_amplifier_gains_by_its_capacitors(scheme, h, error, with_IC):
    """``v_o = -C1 / C2 v_i`` between the rails; by steps the sum of rates at their ends, off by at most ``h max|v_o''| / 2`` a second."""
    IC = "IC=0" if with_IC else ""
    circuit = nsds.circuit(["V1 i 0 SIN(0 1 1)", f"C1 i n 2u {IC}", f"C2 n o 1u {IC}", "R1 o 0 1k", AMPLIFIER])
    rows = nsds.simulate(circuit, t_end=1.0, h=h, scheme=scheme)
    np.testing.assert_allclose(nsds.circuits.voltage(circuit, rows, "o"), -2 * np.sin(2 * np.pi * rows["t"]), rtol=0, atol=error)


def test_a_charge_amplifier_at_its_rails():
    """At a rail charge is conserved at the minus input: ``v_n = (C1 v_i + C2 v_o) / (C1 + C2)``, until it is 0 again."""
    circuit = nsds.circuit(["V1 i 0 SIN(0 10 1)", "C1 i n 2u", "C2 n o 1u", AMPLIFIER])
    rows = nsds.simulate(circuit, t_end=1.0, h=0.01, scheme=nsds.event_driven())
    v_i = 10 * np.sin(2 * np.pi * rows["t"])
    v_o = np.clip(-2 * v_i, -10, 10)
    np.testing.assert_allclose(nsds.circuits.voltage(circuit, rows, "o"), v_o, rtol=0, atol=1e-4)
    np.testing.assert_allclose(nsds.circuits.voltage(circuit, rows, "n"), (2 * v_i + v_o) / 3, rtol=0, atol=1e-4)


def test_two_stages_behind_capacitors_and_an_output_on_a_capacitor():
    """Each stage inverts, by 2 and by 3; the second one charges a capacitor to ground, which follows."""
    lines = [
        "V1 i 0 SIN(0 1 1)",
        "C1 i n 2u",
        "C2 n o 1u",
        AMPLIFIER,
        "C3 o p 3u",
        "C4 p q 1u",
        "E2 q 0 TABLE {V(0,p)} = (-1u,-10) (1u,10)",
    ]
    circuit = nsds.circuit([*lines, "C5 q 0 5u"])
    rows = nsds.simulate(circuit, t_end=1.0, h=0.05, scheme=nsds.event_driven())
    np.testing.assert_allclose(nsds.circuits.voltage(circuit, rows, "q"), 6 * np.sin(2 * np.pi * rows["t"]), rtol=0, atol=1e-4)


def test_what_depends_on_the_rate_of_an_output_is_refused():
    circuit = nsds.circuit(["V1 i 0 SIN(0 1 1)", "C1 i n 2u", "C2 n o 1u", "R1 o 0 1k", AMPLIFIER])
    rows = nsds.simulate(circuit, t_end=0.1, h=0.05, scheme=nsds.event_driven())
    with pytest.raises(ValueError, match="current of 'C2' depends on how fast the output of an op-amp changes"):
        nsds.circuits.current(circuit, rows, "C2")
    with pytest.raises(ValueError, match="depends on how fast"):
        nsds.circuits.energy(circuit, rows)
    nsds.report(circuit, rows)  # says so
    with pytest.raises(ValueError, match="depends on how fast"):
        nsds.circuit(["V1 i 0 SIN(0 1 1)", "C1 i n 2u", "C2 n o 1u", AMPLIFIER], integrals="i(C2)")
    with pytest.raises(ValueError, match=r"D[12] depends on how fast the output of E1 changes"):
        nsds.circuit(
            ["V1 i 0 1", "C1 i o 1u", AMPLIFIER, "R1 i n 1", "R2 n o 1", "F1 x 0 V1 1", "D1 x y DI", "R3 y 0 1", "D2 0 x DI", ".model DI D"]
        )
