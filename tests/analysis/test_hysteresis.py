"""Orbits and diagrams of laws with hysteresis, which are on one of several branches at a state: that belongs to what has to come back."""

import math

import numpy as np
import pytest

import nsds


def wave(t, z, out):
    out[0] = z[0] * math.cos(t)


def thermostat(x, amplitude=0.0, width=0.5):
    """``x' = -x + 2 u + amplitude cos t``, u = -1 above the width, +1 below minus the width, in between as before."""
    part = nsds.first_order_linear([[-1.0]], b=wave, x=[x], z=[amplitude])
    relation = nsds.first_order_linear_relation([[1.0]], [[2.0]], D=[[-width]])
    return nsds.system(part=part, heater=nsds.interaction(relation, nsds.relay(-1.0, 1.0), on="part"))


PERIOD = 2 * math.log(2.5 / 1.5)
RISE_AND_FALL = math.log(2.0 / 1.5) + math.log(2.5 / 2.0)  # from 0 with u = 1 to 0 with u = -1


@pytest.mark.parametrize(("x", "guess"), [(0.0, 1.1), (0.1, 0.9), (-0.2, 1.0), (0.0, 0.5), (0.1, 0.4)])
def test_a_thermostat_has_one_period(x, guess):
    """``2 ln(2.5 / 1.5)``; the state alone comes back within it, too, with the heater switched over."""
    found = nsds.orbit(thermostat(x), period=guess * PERIOD, free_period=True)
    assert found["period"] == pytest.approx(PERIOD, rel=1e-9)
    assert found["multipliers"] == pytest.approx([1.0], abs=1e-9)
    assert found["n_events"] == 2


def test_a_state_that_comes_back_on_another_branch_is_no_orbit():
    for given in ({}, {"h": RISE_AND_FALL / 400}):
        with pytest.raises(ValueError, match="on another branch"):
            nsds.orbit(thermostat(0.0), period=RISE_AND_FALL, tol=1e-11 if not given else 1e-2, **given)
    with pytest.raises(ValueError, match="on another branch"):
        nsds.continue_orbit(thermostat(0.0), parameter="heater.upper", until=1.2, period=RISE_AND_FALL)
    assert nsds.floquet(thermostat(0.0), period=RISE_AND_FALL)["residual"] > 0.1
    assert nsds.floquet(thermostat(0.0), period=PERIOD)["residual"] < 1e-12


@pytest.mark.parametrize("x", [-1.0, 0.2, 1.0])
@pytest.mark.parametrize("n_periods", [1, 2, 3])
def test_a_driven_relay_switches_an_even_number_of_times(x, n_periods):
    """In each period up and down; where it is not in step with the drive there is no orbit."""
    found = nsds.orbit(thermostat(x, 3.0), period=2 * math.pi, n_periods=n_periods)
    assert found["n_events"] == 2 * n_periods
    with pytest.raises(ValueError, match=r"orbit: (no orbit|the motion)"):
        nsds.orbit(thermostat(x, 1.0), period=2 * math.pi, n_periods=n_periods)


@pytest.mark.parametrize("pieces", [4, 40])
def test_a_sweep_goes_on_from_the_branch_of_the_value_before(pieces):
    """``x' = -x + p + u / 4``, u = -1 above x = 1 and +1 below -1: a drive p to and fro switches at p = 3/4 upwards, at -3/4 downwards."""
    part = nsds.first_order_linear([[-1.0]], b=[0.0], x=[-1.0])
    relation = nsds.first_order_linear_relation([[1.0]], [[0.25]], D=[[-1.0]])
    system = nsds.system(part=part, relay=nsds.interaction(relation, nsds.relay(-1.0, 1.0), on="part"))
    values = np.linspace(-2.0, 2.0, pieces + 1)
    rows = nsds.sweep(system, vary={"part.b[0]": values}, period=1.0, direction=[1, -1], transient=60, keep=4)
    upwards, downwards = (rows["x"][k, :, -1, 0] for k in range(2))
    np.testing.assert_allclose(upwards, values + np.where(values < 0.75, 0.25, -0.25), rtol=0, atol=1e-9)
    np.testing.assert_allclose(downwards, values + np.where(values > -0.75, -0.25, 0.25), rtol=0, atol=1e-9)


@pytest.mark.parametrize("voltage", [4.0, 5.5, 6.5, 8.0])
@pytest.mark.parametrize("slope", [0.0, 0.5])
def test_a_buck_converter_with_peak_current_control(voltage, slope):
    """A latch, set by a clock and reset at the peak of the current: multiplier ``-(m2 - mc) / (m1 + mc)`` (Deane and Hamill 1990), so that
    orbits of one period double at a duty ratio of 1/2 without a ramp.
    """
    reference = f"V4 ref 0 PULSE(-4 {-4 - slope} 0 1 0 0 1)" if slope else "V4 ref 0 -4"
    netlist = ["E1 sw 0 TABLE {V(c)} = (0,0) (0,12)", "L1 sw out 8 IC=1", f"V2 out 0 {voltage}", reference, "R9 c 0 1"]
    circuit = nsds.circuit([*netlist, "B1 c 0 V=V(ref)-I(L1)+0.5*V(sw)+V(clk)", "V3 clk 0 PULSE(0 100 0 0 0 1e-5 1)"])
    found = nsds.orbit(circuit, period=1.0)
    rises, falls, duty = (12 - voltage) / 8, voltage / 8, voltage / 12
    assert found["multipliers"][0] == pytest.approx(-(falls - slope) / (rises + slope), abs=1e-9)
    assert found["x"][0] == pytest.approx(2.0 - (rises + slope) * duty, abs=1e-9)
    assert (found["n_events"], found["n_untreated"]) == (2, 0)
