"""Sliding along the intersection of two and three surfaces, by all flows and in all units, beside closed forms."""

import math

import numpy as np
import pytest

import nsds
from nsds.status import is_event

UNITS = [(1.0, 1.0), (1e-6, 1.0), (1e6, 1.0), (1e6, 1e-6)]  # of length, of time


def run(system, t_end, h, **options):
    rows = nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(**options), progress=False)
    return rows[~is_event(rows["status"])]


def plane_and_sphere(t, x, z, out):
    a, b, c = x[0] / z[0], x[1] / z[0], x[2] / z[0]
    out[0], out[1] = b * b + (a + 1.5) ** 2 + (c - 1.0) ** 2 - 8.0, b


def pushes(t, lam, z, out):
    out[0], out[1], out[2] = z[0] / z[1] * lam[0], z[0] / z[1] * lam[1], 0.0


def climbs(t, x, z, out):
    out[0], out[1], out[2] = 0.0, 0.0, z[0] / z[1]


@pytest.mark.parametrize("flow", ["dopri5", "radau"])
@pytest.mark.parametrize("units", UNITS)
def test_a_sphere_and_a_plane(flow, units):
    """``x' = sgn S, y' = -sgn y, z' = 1``: on the sphere S = 0 from t1, where it meets y = 0 from 2 on, and off it, along it, at 3."""
    L, T = units
    plant = nsds.first_order(climbs, x=np.array([2.0, -2.0, 0.0]) * L, z=[L, T])
    switches = nsds.interaction(nsds.type1_relation(plane_and_sphere, pushes, m=2, z=[L, T]), nsds.relay(), on="plant")
    rows = run(nsds.system(plant=plant, switches=switches), 5.0 * T, 0.1 * T, flow=flow)
    t, t1 = rows["t"] / T, (13 - math.sqrt(58)) / 6
    y = np.minimum(t - 2.0, 0.0)
    on = -1.5 + np.sqrt(np.maximum(8.0 - y * y - (t - 1.0) ** 2, 0.0))
    x = np.where(t <= t1, 2.0 - t, np.where(t <= 3.0, on, 3.5 - t))
    np.testing.assert_allclose(rows["plant"]["x"] / L, np.stack([x, y, t], axis=1), rtol=0, atol=2e-9)


B = np.array([[1.2, 0.3, -0.2], [-0.3, 1.1, 0.25], [0.2, -0.3, 1.3]])


def wind(t, z, out):
    for i in range(3):
        out[i] = z[0] / z[1] * (0.3 * math.sin((1 + i) * t / z[1]) + 0.4)


@pytest.mark.parametrize("flow", ["dopri5", "radau"])
@pytest.mark.parametrize("units", UNITS)
def test_what_slides_along_three_surfaces_stands_still(flow, units):
    """``x' = b(t) - B sgn x`` comes to x = 0, one state after the other, and lambda is ``-B^-1 b(t)`` from then on."""
    L, T = units
    plant = nsds.first_order_linear(np.zeros((3, 3)), b=wind, x=np.array([1.0, -0.7, 0.5]) * L, z=[L, T])
    relation = nsds.first_order_linear_relation(C=np.eye(3), B=B * L / T)
    rows = run(nsds.system(plant=plant, switches=nsds.interaction(relation, nsds.relay(), on="plant")), 8.0 * T, 0.1 * T, flow=flow)
    rows = rows[rows["t"] > 4.0 * T]
    assert abs(rows["plant"]["x"]).max() < 1e-12 * L
    b = 0.3 * np.sin(np.outer(rows["t"] / T, [1, 2, 3])) + 0.4
    np.testing.assert_allclose(rows["switches"]["lambda"], -np.linalg.solve(B, b.T).T, rtol=0, atol=1e-9)
