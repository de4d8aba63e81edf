"""Event-driven motions are the limits of time stepping, with its order."""

import pytest

from tests.models_of_limits import LIMITS, errors_of, slope_of


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_time_stepping_approaches_the_event_driven_motion_with_its_order(limit):
    errors = errors_of(limit)
    assert errors[-1] < 0.05
    assert (errors[1:] < errors[:-1]).all()
    assert slope_of(limit, errors) == pytest.approx(limit.order, abs=0.15)
