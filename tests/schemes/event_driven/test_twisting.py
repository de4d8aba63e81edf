"""Two relays whose events accumulate: the twisting controller ``x1' = x2, x2' = -a sgn x1 - b sgn x2``, a > b > 0."""

import math

import numpy as np
import pytest

import nsds
from nsds.status import ACCUMULATION, EVENT


def rest(a, b, v):
    """Time at which the motion from (0, v) comes to rest: times of flight and speeds fall by one ratio."""
    q = math.sqrt((a - b) / (a + b))
    return v * (1 / (a + b) + q / (a - b)) / (1 - q)


def field(t, x, z, out):
    out[0], out[1] = x[1], 0.0


@pytest.mark.parametrize("accumulation", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize(("a", "b", "v"), [(3.0, 1.0, 1.0), (2.0, 1.5, -0.3), (50.0, 5.0, 20.0)])
@pytest.mark.parametrize("exact", [True, False])
def test_twisting_comes_to_rest(accumulation, a, b, v, exact):
    """The last event is at the limit of the switches, a row says so, and the state is 0 from then on."""
    B = [[0.0, 0.0], [a, b]]
    if exact:
        system = nsds.linear_complementarity_system(A=[[0, 1], [0, 0]], B=B, C=np.eye(2), x=[0, v], law=nsds.relay())
        name = "plant"
    else:
        relation = nsds.first_order_linear_relation(C=np.eye(2), B=B)
        system = nsds.system(plant=nsds.first_order(field, x=[0.0, v]), law=nsds.interaction(relation, nsds.relay(-1, 1), on="plant"))
        name = "plant"
    T = rest(a, b, abs(v))
    scheme = nsds.event_driven(accumulation=accumulation)
    rows = nsds.simulate(system, t_end=1.2 * T, h=0.05 * T, scheme=scheme, progress=False)
    events = rows[rows["status"] > EVENT]
    assert events["t"][-1] == pytest.approx(T, abs=1e-9 * T if exact else 1e-6 * T)
    assert events["status"][-1] & ACCUMULATION
    assert abs(rows[name]["x"][rows["t"] > T * (1 + 1e-6)]).max() < (1e-12 if exact else 1e-9) * abs(v)


def observed(t, x, z, out):
    """A driven pendulum, and a copy of it."""
    out[0], out[1] = x[1], math.cos(2 * t) - math.sin(x[0])
    out[2], out[3] = x[3], math.cos(2 * t) - math.sin(x[2])


def estimation_error(t, x, lam, z, out):
    out[0] = x[2] - x[0]


def super_twisting(t, x, lam, z, out):
    out[0] = out[1] = 0.0
    out[2], out[3] = 1.5 * math.sqrt(z[0] * abs(x[2] - x[0])) * lam[0], 1.1 * z[0] * lam[0]


@pytest.mark.parametrize(("x", "gain"), [([1.0, 0, 0, 0], 5.0), ([1.0, 0, 1, 0.5], 5.0), ([0, 1.0, 1e-3, 0], 50.0)])
def test_a_super_twisting_observer_reaches_its_plant(x, gain):
    """Reaching is an accumulation of few switches, for all distances of rows, after which the observer has the states of the plant.

    The error is a difference of states that are not small: below their tolerance its switches would be those of rounding, for ever.
    """
    relation = nsds.first_order_relation(estimation_error, super_twisting, m=1, z=[gain])
    system = nsds.system(both=nsds.first_order(observed, x=x), law=nsds.interaction(relation, nsds.relay(-1, 1), on="both"))
    for h in (0.5, 0.1, 0.02):
        rows = nsds.simulate(system, t_end=3.0, h=h, scheme=nsds.event_driven(), progress=False)
        switches, state = rows[rows["status"] > EVENT], rows["both"]["x"][-1]
        assert len(switches) < 20
        assert switches["status"][-1] & ACCUMULATION
        assert abs(state[:2] - state[2:]).max() < 1e-7


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_small_oscillation_beside_a_large_offset_goes_on(offset):
    """``x'' = -sgn(x - offset)`` from speed 1e-3: periods of 4e-3, though their excursions are below rtol of the offset."""
    relation = nsds.first_order_linear_relation(C=[[1.0, 0.0]], B=[[0.0], [1.0]], e=[-offset])
    system = nsds.system(clock=nsds.first_order(field, x=[offset, 1e-3]), law=nsds.interaction(relation, nsds.relay(-1, 1), on="clock"))
    rows = nsds.simulate(system, t_end=0.021, h=0.01, scheme=nsds.event_driven(), progress=False)
    assert rows["clock"]["x"][-1, 1] == pytest.approx(1e-3 - 1e-3, abs=1e-5)
    assert not (rows["status"] & ACCUMULATION).any()
