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
