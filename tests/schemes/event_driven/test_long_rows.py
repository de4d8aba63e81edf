"""Rows that are long beside what happens between them: no bound of work counts by the row, and times do not drift."""

import numpy as np
import pytest

import nsds
from nsds.status import OPENED

BRIDGE = ["D1 a p DI", "D2 0 p DI", "D3 n a DI", "D4 n 0 DI", "R1 p n 20", ".model DI D"]
PERIODS = 2500


def rectified(*more, frequency=50.0, **options):
    circuit, t_end = nsds.circuit([f"V1 a 0 SIN(0 10 {frequency})", *BRIDGE, *more]), PERIODS / frequency
    return nsds.simulate(circuit, t_end=t_end, h=t_end, scheme=nsds.event_driven(**options))


@pytest.mark.parametrize("frequency", [50.0, 4321.0])
def test_events_of_thousands_of_periods_in_one_row_are_where_the_source_is_zero(frequency):
    rows = rectified(frequency=frequency)
    times = rows["t"][(rows["status"] & OPENED) > 0]
    np.testing.assert_allclose(times, np.arange(1, times.size + 1) / (2 * frequency), rtol=1e-13)
    assert times.size in (2 * PERIODS - 1, 2 * PERIODS)


def test_a_capacitor_is_charged_alike_in_each_of_thousands_of_periods_in_one_row():
    """At the peaks and at the ends of the charges, in turn, the diodes open: both at the same phase each time."""
    rows = rectified("C1 p n 1m")
    times = rows["t"][(rows["status"] & OPENED) > 0]
    phases = (times * 100.0 + 0.25) % 1.0
    kinds = np.unique(np.round(phases[40:], 9))
    assert kinds.size == 2
    assert abs(times.size - 3 * PERIODS) <= 1


def test_events_are_counted_while_the_motion_does_not_get_on():
    """50 are too many between two rows, but not of 20 steps of the motion where rows are longer."""
    assert (rectified(max_events=50)["t"][-1]) == PERIODS / 50.0


@pytest.mark.parametrize("damping", [1e-4, 3e-5])
def test_a_motion_of_many_steps_at_the_beginning_of_a_very_long_row(damping):
    """Tens of thousands of steps in a ten thousandth of the row: they are as long as they ever were, so that the motion gets on."""
    part = nsds.first_order_linear(A=[[-damping, 1.0], [-1.0, -damping]], x=[1.0, 0.0])
    rows = nsds.simulate(nsds.system(p=part), t_end=1e10, h=1e10, scheme=nsds.event_driven())
    np.testing.assert_allclose(rows["p"]["x"][-1], 0.0, atol=1e-12)
