"""Motions that events interrupt, by either integrator, against closed forms: nothing of them is lost or done twice."""

import numpy as np
import pytest
from scipy.optimize import brentq

import nsds
from nsds.schemes.event_driven import radau5
from nsds.status import is_event
from tests.schemes.event_driven.test_stiff_flow import PLACES, circle, taken


def run(system, t_end, h, **options):
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(**options), progress=False)


def driven(t, x, z, out):
    out[0], out[1] = x[1], z[0] * (2 * t - x[1])


@pytest.mark.parametrize("flow", ["dopri5", "radau"])
@pytest.mark.parametrize("rtol", [1e-6, 1e-9])
@pytest.mark.parametrize("rate", [1.0, 30.0])
def test_a_drive_that_breaks_loose(flow, rtol, rate):
    """``w' = i - s``, s in Sgn(w), ``i' = k (2 t - i)`` from 0: w sticks until i = 1, then is the integral of i - 1."""

    def current(t):
        return 2 * t - 2 / rate + 2 / rate * np.exp(-rate * t)

    def moved(t):
        return t**2 - (2 / rate + 1) * t - 2 / rate**2 * np.exp(-rate * t)

    release = brentq(lambda t: current(t) - 1, 0.1, 2)
    law = nsds.interaction(nsds.first_order_linear_relation(C=[[1, 0]], B=[[1], [0]]), nsds.relay(-1, 1), on="a")
    rows = run(nsds.system(a=nsds.first_order(driven, x=[0.0, 0.0], z=[rate]), friction=law), 3.0, 0.1, flow=flow, rtol=rtol)
    t, x = rows["t"], rows["a"]["x"]
    np.testing.assert_allclose(x[:, 1], current(t), atol=1e2 * rtol)
    np.testing.assert_allclose(x[:, 0], np.where(t > release, moved(t) - moved(release), 0), atol=1e3 * rtol)
    np.testing.assert_allclose(t[is_event(rows["status"])], release, atol=1e2 * rtol)


def leak(t, x, z, out):
    out[0], out[1] = x[1], -x[0] - z[0] * (x[1] - np.cos(3 * t))


@pytest.mark.parametrize("stiffness", [1.0, 100.0])
@pytest.mark.parametrize("lower", [0.0, -0.4])
def test_a_diode_or_relay_that_switches_again_and_again(stiffness, lower):
    """Both integrators agree at all rows and events, of a row that is held in between (relay) and of one that opens (diode)."""
    law = nsds.complementarity() if lower == 0.0 else nsds.relay(lower, -lower)
    relation = nsds.first_order_linear_relation(C=[[1, 0.1]], B=[[0], [1]])
    system = nsds.system(a=nsds.first_order(leak, x=[0.0, 0.0], z=[stiffness]), law=nsds.interaction(relation, law, on="a"))
    rows, other = (run(system, 6.0, 0.25, flow=flow, rtol=1e-9) for flow in ("dopri5", "radau"))
    assert is_event(rows["status"]).sum() >= 8
    assert len(rows) == len(other)
    np.testing.assert_allclose(other["t"], rows["t"], atol=1e-7)
    np.testing.assert_allclose(other["a"]["x"], rows["a"]["x"], atol=1e-6)


def test_dense_output_that_meets_the_rate_at_the_start():
    """A polynomial of order 4 through the start and all stages whose slope at 0 is ``h x'``, of order 4 within the step."""
    inside, theta = [], np.linspace(0, 1, 21)
    for h in (0.4, 0.2, 0.1):
        x = np.array([1.0, 0.0])
        _, _, poly = taken(0.0, x, h, circle)
        p, work = np.zeros(1, PLACES), np.concatenate([poly.ravel(), np.zeros(2), circle(0.0, x)])
        radau5.meet_rate(2, h, 10, p[0], work)
        met = work[:10].reshape(5, 2)
        np.testing.assert_allclose(met[1], h * np.array(circle(0.0, x)), rtol=1e-15)
        c = np.array([0, *radau5.C])
        np.testing.assert_allclose(c[:, None] ** np.arange(5) @ met, c[:, None] ** np.arange(4) @ poly, atol=1e-14)
        inside.append(abs(theta[:, None] ** np.arange(5) @ met - np.array([np.cos(h * theta), -np.sin(h * theta)]).T).max())
    assert (abs(np.log2(np.divide(inside[:-1], inside[1:])) - 4) < 0.1).all()
