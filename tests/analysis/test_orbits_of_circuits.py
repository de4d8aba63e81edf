"""Orbits and multipliers of circuits and other first-order systems that switch, beside closed forms: converters, rectifiers, a clock."""

import numpy as np
import pytest
from scipy.linalg import expm

import nsds

T, L, C = 2e-5, 1e-4, 2e-5


def boost(duty, load):
    """A boost converter from 12 V, and the places of the voltage of C and the current of L in its state."""
    circuit = nsds.circuit([
        "V1 in 0 12", "L1 in sw 100u", "S1 sw 0 g 0 SX", "D1 sw out DX", "C1 out 0 20u", f"R1 out 0 {load}",
        f"Vg g 0 PULSE(0 1 0 0 0 {duty * T} {T})", ".model SX SW(Vt=0.5)", ".model DX D",
    ])  # fmt: skip
    states = circuit["names"]["state_names"].item().decode().split()
    return circuit, [states.index("C1"), states.index("L1")]


def test_a_converter_in_continuous_conduction():
    """Two linear modes, each for its part of the period: state and monodromy are those of the products of their exponentials."""
    circuit, places = boost(0.4, 10.0)
    found = nsds.orbit(circuit, period=T, settle=300)
    closed, opened = [[-1 / (10 * C), 0, 0], [0, 0, 12 / L]], [[-1 / (10 * C), 1 / C, 0], [-1 / L, 0, 12 / L]]
    whole = expm(0.6 * T * np.array([*opened, [0, 0, 0]])) @ expm(0.4 * T * np.array([*closed, [0, 0, 0]]))
    np.testing.assert_allclose(found["x"][places], np.linalg.solve(np.eye(2) - whole[:2, :2], whole[:2, 2]), rtol=1e-10)
    np.testing.assert_allclose(found["monodromy"][np.ix_(places, places)], whole[:2, :2], rtol=0, atol=1e-12)
    assert found["n_untreated"] == 0


def test_a_converter_in_discontinuous_conduction_has_lost_one_direction():
    """The current is 0 at the end of each period, whatever it was; the derivative by the voltage is that of runs beside each other."""
    circuit, (v, i) = boost(0.3, 400.0)
    found = nsds.orbit(circuit, period=T, settle=3000)

    def after(voltage):
        circuit["circuit"]["x"][[v, i]] = voltage, 0.0
        return nsds.simulate(circuit, t_end=T, h=T, scheme=nsds.event_driven())["circuit"]["x"][-1, v]

    at, d = found["x"][v], 1e-4
    np.testing.assert_allclose(np.sort(abs(found["multipliers"])), [0.0, (after(at + d) - after(at - d)) / (2 * d)], rtol=0, atol=1e-9)
    assert found["n_untreated"] == 0


@pytest.mark.parametrize("start", [0.0, 2.3])
@pytest.mark.parametrize("resistance", [None, 1e-3, 1.0])
def test_a_capacitor_that_a_source_charges_forgets_its_voltage(start, resistance):
    """While the diode conducts the voltage is that of the source, or comes close to it."""
    series = ["V1 in 0 SIN(0 10 50)"] if resistance is None else ["V1 i 0 SIN(0 10 50)", f"R2 i in {resistance}"]
    circuit = nsds.circuit([*series, "D1 in out DX", "C1 out 0 100u", "R1 out 0 100", ".model DX D"])
    circuit["circuit"]["x"] = start
    found = nsds.orbit(circuit, period=0.02)
    assert abs(found["monodromy"]).max() < 1e-12
    assert found["n_events"] == 2
    assert found["n_untreated"] == 0


def test_a_current_that_freewheels_decays_by_its_load():
    circuit = nsds.circuit(["V1 in 0 SIN(0 10 50)", "D1 in a DX", "D2 0 a DX", "L1 a b 10m", "R1 b 0 2", ".model DX D"])
    found = nsds.orbit(circuit, period=0.02)
    np.testing.assert_allclose(found["multipliers"], [np.exp(-2 / 10e-3 * 0.02)], rtol=1e-12)


def bilinear(k, damping):
    """``x'' + damping x' + x = 0`` for x < 0, and ``+ k x`` beyond, from (-1, 0)."""
    part = nsds.first_order_linear([[0.0, 1.0], [-1.0, -damping]], x=[-1.0, 0.0])
    relation = nsds.first_order_linear_relation([[-(k - 1.0), 0.0]], [[0.0], [-1.0]], D=[[1.0]])
    return nsds.system(part=part, spring=nsds.interaction(relation, nsds.complementarity(), on="part"))


def test_a_bilinear_spring():
    """Half a turn at each frequency; the monodromy is the product of the rotations, and of damped ones the exponents sum up to -c."""
    quarter, half = expm(np.array([[0, 1], [-1, 0]]) * np.pi / 2), expm(np.array([[0, 1], [-9, 0]]) * np.pi / 3)
    found = nsds.floquet(bilinear(9.0, 0.0), period=np.pi + np.pi / 3)
    np.testing.assert_allclose(found["monodromy"], quarter @ half @ quarter, rtol=0, atol=1e-12)
    exponents = nsds.lyapunov(bilinear(9.0, 0.1), period=1.0, n_periods=200, transient=50)["exponents"]
    assert exponents.sum() == pytest.approx(-0.1, rel=1e-10)


@pytest.mark.parametrize(("zeta", "f"), [(0.1, 1.0), (0.03, 0.2)])
def test_the_clock_of_Andronov(zeta, f):
    """``x'' + 2 zeta x' + x = f sgn x'``: period 2 pi / w, amplitude f coth(pi zeta / 2 w), multiplier exp(-2 pi zeta / w)."""
    w = np.sqrt(1 - zeta**2)
    amplitude, period = f / np.tanh(np.pi * zeta / (2 * w)), 2 * np.pi / w
    system = nsds.system(
        part=nsds.first_order_linear([[0.0, 1.0], [-1.0, -2 * zeta]], x=[0.3 * amplitude, 0.95 * amplitude]),
        escapement=nsds.interaction(nsds.first_order_linear_relation([[0.0, 1.0]], [[0.0], [-f]]), nsds.relay(-1, 1), on="part"),
    )
    found = nsds.orbit(system, period=1.01 * period, free_period=True, settle=3)
    assert found["period"] == pytest.approx(period, rel=1e-9)
    np.testing.assert_allclose(np.sort(abs(found["multipliers"])), [np.exp(-zeta * period), 1.0], rtol=0, atol=1e-8)
    system["part"]["x"] = found["x"]
    rows = nsds.simulate(system, t_end=period, h=period / 64, scheme=nsds.event_driven())
    assert abs(rows["part"]["x"][:, 0]).max() == pytest.approx(amplitude, rel=1e-9)
