"""Sources by their formulas, alone and in runs: EXP, SFFM, AM, sines of negative frequency, PWL that repeats; and switches they close."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsds
from nsds.circuits.netlist import read
from nsds.circuits.waveforms import value_of

PI = np.pi


def exponential(t, low, high, rise, tau, fall, tau_fall):
    """SPICE's EXP."""
    there, back = (np.where(t > at, 1 - np.exp(-np.maximum(t - at, 0) / each), 0) for at, each in ((rise, tau), (fall, tau_fall)))
    return low + (high - low) * (there - back)


def modulated(t, amplitude, offset, signal, carrier, delay):
    """HSPICE's AM."""
    late = np.maximum(t - delay, 0)
    return amplitude * (offset + np.sin(2 * PI * signal * late)) * np.sin(2 * PI * carrier * late)


FORMULAS = {
    "EXP(1 5 1m 0.5m 3m 1m)": lambda t: exponential(t, 1, 5, 1e-3, 5e-4, 3e-3, 1e-3),
    "EXP(2 -1 0 0.5m 1m 2m)": lambda t: exponential(t, 2, -1, 0, 5e-4, 1e-3, 2e-3),
    "SFFM(1 2 1k 5 100)": lambda t: 1 + 2 * np.sin(2e3 * PI * t + 5 * np.sin(200 * PI * t)),
    "SFFM(0 3 1k -0.3 2k)": lambda t: 3 * np.sin(2e3 * PI * t - 0.3 * np.sin(4e3 * PI * t)),
    "SFFM(0 1 1k 60 70)": lambda t: np.sin(2e3 * PI * t + 60 * np.sin(140 * PI * t)),
    "SFFM(1 2 1k 0 100)": lambda t: 1 + 2 * np.sin(2e3 * PI * t),
    "AM(2 0.5 100 1k 1m)": lambda t: modulated(t, 2, 0.5, 100, 1e3, 1e-3),
    "AM(2 0.5 1k 1k)": lambda t: modulated(t, 2, 0.5, 1e3, 1e3, 0),
    "AM(1 -2 3k 1k 0.2m)": lambda t: modulated(t, 1, -2, 3e3, 1e3, 2e-4),
    "SINE(1 2 -1k 0 100 30)": lambda t: 1 + 2 * np.exp(-100 * t) * np.sin(-2e3 * PI * t + PI / 6),
    "PWL(0 0 1m 2, 1.5m -1 2m 0) r=0 td=0.5m": lambda t: np.interp(np.maximum(t - 5e-4, 0) % 2e-3, [0, 1e-3, 1.5e-3, 2e-3], [0, 2, -1, 0]),
    "PWL REPEAT FOREVER (0 0 1m 2 1.5m -1 2m 0) ENDREPEAT": lambda t: np.interp(t % 2e-3, [0, 1e-3, 1.5e-3, 2e-3], [0, 2, -1, 0]),
}


@pytest.mark.parametrize("wave", FORMULAS)
def test_waves_are_their_formulas(wave):
    t = np.linspace(0.0, 5e-3, 701)
    found = value_of(read([f"V1 a 0 {wave}"], {}).elements[0].value, t)
    np.testing.assert_allclose(found, FORMULAS[wave](t), rtol=0, atol=1e-13)


@pytest.mark.parametrize("wave", FORMULAS)
def test_waves_drive_a_circuit_event_by_event(wave):
    """A low-pass beside SciPy's integration of its one equation; and a capacitor that the source charges without a resistor."""
    circuit = nsds.circuit([f"V1 in 0 {wave}", "R1 in out 1k", "C1 out 0 1u IC=0", "C2 in 0 1u"])
    rows = nsds.simulate(circuit, t_end=5e-3, h=9.3e-5, scheme=nsds.event_driven())
    rows = rows[rows["status"] & nsds.status.EVENT == 0]  # at no corner of a wave
    formula, t, d = FORMULAS[wave], rows["t"], 1e-8
    solved = solve_ivp(lambda t, v: (formula(t) - v) / 1e-3, (0, 5e-3), [0.0], "DOP853", t, rtol=1e-9, atol=1e-10, max_step=2e-5)
    np.testing.assert_allclose(nsds.circuits.voltage(circuit, rows, "in"), formula(t), rtol=0, atol=1e-13)
    np.testing.assert_allclose(nsds.circuits.voltage(circuit, rows, "out"), solved.y[0], rtol=0, atol=2e-7)
    rate = (formula(t + d) - formula(t - d))[1:-1] / (2 * d)
    np.testing.assert_allclose(nsds.circuits.current(circuit, rows, "C2")[1:-1], 1e-6 * rate, rtol=0, atol=1e-5 * abs(1e-6 * rate).max())


@pytest.mark.parametrize("amplitude", [5.0, -5.0])
def test_a_switch_closes_where_an_exponential_comes_to_its_threshold(amplitude):
    """Up to 2.5 V after ln 2 time constants, and down again as the two exponentials have it; thousands of time constants later nothing."""
    a = amplitude
    circuit = nsds.circuit([
        f"V1 g 0 EXP(0 {a} 1m 0.1m 2m 0.2m)", "V2 in 0 1", f"S1 in out {'g 0' if a > 0 else '0 g'} SX", "R1 out 0 1",
        "V3 x 0 EXP(0 1 0 1n 1u 1n)", "S2 in y x 0 SX", "R2 y 0 1", ".model SX SW(Vt=2.5)",
    ])  # fmt: skip
    rows = nsds.simulate(circuit, t_end=5e-3, h=1e-3, scheme=nsds.event_driven())
    v, t = nsds.circuits.voltage(circuit, rows, "out"), rows["t"]
    changes = t[1:][np.diff(v) != 0]
    np.testing.assert_allclose(changes, [1e-3 + 1e-4 * np.log(2), 2e-3 + 2e-4 * np.log(2)], rtol=0, atol=1e-7 * 1e-3 + 1e-8)
    assert rows.size < 200


BAD = {
    "EXP(0 5 1u 2u)": "EXP has 6 numbers; got 4",
    "EXP(0 5 1u 0 2u 1u)": "the time constants of EXP must be positive",
    "EXP(0 5 2u 1u 1u 1u)": "td2 not before td1",
    "SFFM(0 1 1k 1e3 10)": "the index of SFFM must be at most 400",
    "AM(1 1 1k)": "AM has 4 to 5 numbers",
    "PWL(0 0 1 1) r=0.5": "repeats from its beginning, r=0",
    "PWL(-1 0 1 1) r=0": "what repeats must end after 0",
    "SIN(0 1 50) td=1": "td= and r= belong to PWL",
    "EXPO(0 1)": "'EXPO' is not supported; sources are DC, SIN, PULSE, PWL, EXP, SFFM, AM; did you mean 'EXP'?",
}


@pytest.mark.parametrize("wave", BAD)
def test_what_is_wrong_is_named(wave):
    with pytest.raises(ValueError, match="line 1 of the netlist, 'V1'") as error:
        nsds.circuit([f"V1 a 0 {wave}", "R1 a 0 1"])
    assert BAD[wave] in str(error.value)
