"""Free-boundary problems of partial differential equations beside trees, closed forms and similarity solutions."""

import numpy as np
import pytest
from scipy.optimize import minimize

import nsds
from nsds.examples import EXAMPLES
from nsds.examples.american_put import STRIKE, prices
from nsds.examples.hertz_roller import hertz, nodes
from nsds.examples.membrane_obstacle import FREE_BOUNDARY, at_rest
from nsds.examples.water_network import pipes


def rows_of(name, **parameters):
    example = EXAMPLES[name]
    rows = nsds.simulate(example.build(**parameters), **example.run)
    assert (rows["status"] == 0).all()
    return rows


def by_a_tree(price, rate=0.06, volatility=0.2, steps=1000):
    """Value of the put by the binomial tree of Cox, Ross and Rubinstein."""
    up, discount = np.exp(volatility / steps**0.5), np.exp(-rate / steps)
    p = (1 / discount - 1 / up) / (up - 1 / up)
    value = np.maximum(STRIKE - price * up ** (steps - 2.0 * np.arange(steps + 1)), 0.0)
    for m in range(steps - 1, -1, -1):
        value = np.maximum(discount * (p * value[:-1] + (1 - p) * value[1:]), STRIKE - price * up ** (m - 2.0 * np.arange(m + 1)))
    return value[0]


def test_an_american_put_is_worth_what_trees_say():
    value = rows_of("american_put", n=479)["option"]["x"][-1]
    for price, published in ((36, 4.478), (38, 3.250), (40, 2.314), (42, 1.617), (44, 1.110)):  # of Longstaff and Schwartz: 50 dates
        found = np.interp(price, prices(479), value)
        assert found == pytest.approx(by_a_tree(price), abs=2e-3)
        assert published < found < published + 0.01


def test_a_membrane_leaves_the_ball_at_the_exact_radius():
    rows, width = rows_of("membrane_obstacle", n=39), 0.1
    radius = np.hypot(*np.meshgrid(*(np.linspace(-2, 2, 41)[1:-1],) * 2)).reshape(-1)
    touches = rows["ball"]["lambda"][-1] > 0
    assert radius[touches].max() < FREE_BOUNDARY + width
    assert radius[~touches].min() > FREE_BOUNDARY - width
    np.testing.assert_allclose(rows["membrane"]["x"][-1], at_rest(radius), rtol=0, atol=3e-3)


def test_a_rod_melts_as_neumann_says():
    """Enthalpy by finite volumes: the front to a part of their width, the temperature by the similarity solution."""
    rows = rows_of("melting_front", n=399)
    for k in (40, 100):
        melted = 0.01 * (0.5 + (1.0 - rows["phases"]["lambda"][k]).sum())
        assert melted == pytest.approx(nsds.examples.melting_front_exact(rows["t"][k]), abs=2e-3)
    solid = rows["phases"]["lambda"][1:]
    assert ((solid >= 0) & (solid <= 1)).all()
    assert ((solid > 0) & (solid < 1)).sum(axis=1).max() <= 2


@pytest.mark.parametrize(("slope", "source"), [(1.0, 0.35), (0.5, 0.8)])
def test_a_heap_of_sand_grows_as_prigozhin_says(slope, source):
    """A triangle of the volume that was poured, until it reaches the nearer edge, over which all else falls."""
    rows, places, edge = rows_of("sandpile", n=39, slope=slope, source=source), np.arange(1, 40) / 40, min(source, 1 - source)
    for t, heights in zip(rows["t"], rows["heap"]["x"], strict=True):
        height = slope * edge
        if t < slope * edge**2:
            assert heights.sum() / 40 == pytest.approx(t, abs=1e-12)
            assert heights.max() == pytest.approx((slope * t) ** 0.5, abs=slope / 80)
            height = heights.max()
        exact = np.maximum(height - slope * abs(places - source), 0.0)
        np.testing.assert_allclose(heights, exact, rtol=0, atol=slope / 40 if t < slope * edge**2 else 1e-12)
        assert abs(np.diff(heights)).max() <= (1 + 1e-12) * slope / 40


@pytest.mark.parametrize(("demand", "n_closed"), [(0.01, 1), (0.03, 0), (0.06, 2)])
def test_water_flows_with_the_least_content(demand, n_closed):
    """At rest the flows minimise what Collins and others call content, of all that satisfy the demand and go forwards through valves."""
    record = EXAMPLES["water_network"].build(demand=demand, swing=0.0)
    rows = nsds.simulate(record, t_end=400.0, h=2.0, scheme=nsds.euler_moreau())
    assert (rows["status"] == 0).all()
    flows, (found, has_valve) = rows["water"]["x"][-1, 18:], pipes(3)
    balance = np.zeros((18, len(found)))
    for k, (first, last, _, _) in enumerate(found):
        balance[int(last), k] = 1.0
        if first >= 0:
            balance[int(first), k] = -1.0
    np.testing.assert_allclose(balance @ flows, demand, atol=1e-6)
    least = minimize(
        lambda q: (found[:, 2] * abs(q) ** 3 / 3 - found[:, 3] * q).sum(), flows[0] * np.full(len(found), 0.1),
        jac=lambda q: found[:, 2] * abs(q) * q - found[:, 3], bounds=[(0 if valve else None, None) for valve in has_valve],
        constraints={"type": "eq", "fun": lambda q: balance @ q - demand, "jac": lambda q: balance}, method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )  # fmt: skip
    np.testing.assert_allclose(flows, least.x, rtol=0, atol=1e-4 * flows.max())
    assert (rows["valves"]["lambda"][-1] > 0).sum() == n_closed


def test_a_roller_presses_as_hertz_says():
    rows = rows_of("hertz_roller", n=16, bed=40.0)
    half, peak = hertz(70.0)
    force, x = rows["contact"]["lambda"][-1], nodes(16)
    pressure, width = force / (x[1] - x[0]), x[1] - x[0]
    assert force.sum() == pytest.approx(70.0, rel=1e-9)
    assert abs(x[force > 0]).max() == pytest.approx(half, abs=1.01 * width)
    inside = abs(x) < 0.9 * half
    np.testing.assert_allclose(pressure[inside], peak * np.sqrt(1.0 - (x[inside] / half) ** 2), rtol=0, atol=5e-3 * peak)
    # no force where there is a gap
    gap = rows["contact"]["y"][-1]
    assert abs(force * gap).max() < 1e-6 * force.max() * gap.max()
