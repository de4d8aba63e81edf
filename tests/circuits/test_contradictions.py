"""Sources that diodes alone short-circuit: a run ends where that begins and says so, and one that only comes to the verge of it goes on."""

import math

import numpy as np
import pytest

import nsds

RATES = (200.0, 1e3, 30e3)  # Hz


def _diodes(*models):
    return [f".model {name} D({numbers})" for name, numbers in models]


@pytest.mark.parametrize("frequency", RATES)
@pytest.mark.parametrize("threshold", [6.6, 1.2])
def test_a_source_that_rises_beyond_what_diodes_in_series_block_ends_the_run_there(frequency, threshold):
    """The loop of V1, D1, D2 and D0 blocks so many volts; beyond, no currents balance it, though at the verge any do."""
    reverse = (threshold - 0.6) / 2.0
    lines = [f"V1 n0 0 SIN(0 9.73 {frequency})", "R1 n1 n0 136", "R2 n2 n1 214", "R3 n5 n2 77", "RL n5 0 3k"]
    circuit = nsds.circuit([*lines, "D0 0 n5 DZ", "D1 n1 n0 DZ", "D2 n1 n5 DZ", *_diodes(("DZ", f"Vfwd=0.6 Vrev={reverse}"))])
    with pytest.raises(nsds.SimulationError, match="short-circuited") as caught:
        nsds.simulate(circuit, t_end=1 / frequency, h=0.01 / frequency, scheme=nsds.event_driven())
    begins = math.asin(threshold / 9.73) / (2 * math.pi * frequency)
    np.testing.assert_allclose(caught.value.t, begins, rtol=1e-9)


@pytest.mark.parametrize("edge", ["1n", "2u", "30u"])
def test_a_short_circuit_at_the_start_is_said_whatever_the_source_does_soon(edge):
    lines = [f"V1 n0 0 PULSE(-1.6 7 0 {edge} {edge} 300u 800u)", "R1 n1 n0 3", "R2 n3 n1 237", "RL n3 0 85", "C1 n1 0 0.36u", "C2 n3 n1 4u"]
    circuit = nsds.circuit([*lines, "D1 n3 n0 DZ", "D4 0 n3 DI", *_diodes(("DZ", "Vfwd=0.6 Vrev=3"), ("DI", ""))])
    with pytest.raises(nsds.SimulationError, match="short-circuited") as caught:
        nsds.simulate(circuit, t_end=2e-4, h=1e-5, scheme=nsds.event_driven())
    assert caught.value.t == 0.0


@pytest.mark.parametrize("scheme", [nsds.euler_moreau(), nsds.event_driven()])
@pytest.mark.parametrize("steps", [600, 6000, 12_000])
def test_the_end_of_a_slope_is_the_value_there_whatever_rounding_of_time(scheme, steps):
    """A diode across a source that comes back to 0: what rounding leads beyond that short-circuits it."""
    circuit = nsds.circuit(["V1 n0 0 PULSE(0 -1.35 200u 30u 30u 200u 600u)", "R1 n0 0 8", "D1 n0 0 DI", *_diodes(("DI", ""))])
    rows = nsds.simulate(circuit, t_end=6e-3, h=6e-3 / steps, scheme=scheme)
    assert nsds.circuits.voltage(circuit, rows, "n0").max() == 0.0
    assert not (rows["status"] & 31).any()
