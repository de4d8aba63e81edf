"""Dry friction that slides, alone in a relation whose H or rate changes in the motion, beside closed forms."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import nsds
from nsds.status import EVENT, is_event


def run(system, t_end, h, **options):
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(**options), progress=False)


def belt(t, q, z, out):
    out[0] = q[0] + math.cos(t)


def along(t, q, z, out):
    out[0, 0] = 1.0


def minus_its_speed(t, q, z, out):
    out[0] = -math.sin(t)


def speed(t, z, out):
    out[0] = math.sin(t)


BELTS = {
    "differences": nsds.rheonomous(belt, m=1),
    "derivatives": nsds.rheonomous(belt, along, minus_its_speed, m=1),
    "speed": nsds.prescribed_velocity([0], speed),
}


@pytest.mark.parametrize("flow", ["auto", "radau"])
@pytest.mark.parametrize("by", BELTS)
def test_a_block_on_a_belt_that_swings(by, flow):
    """``v' = f sgn(sin t - v)``, f = 1/2: it slides, sticks from ``sin t = t / 2`` to ``cos t = -1/2``, and slides on."""
    block = nsds.lagrangian_linear(M=[[2.0]], q=[-1.0], v=[0.0])
    rows = run(nsds.system(block=block, belt=nsds.interaction(BELTS[by], nsds.dry_friction(1.0), on="block")), 5.0, 0.25, flow=flow)
    t, sticks, slides = rows["t"], brentq(lambda t: math.sin(t) - 0.5 * t, 1.0, 3.0, xtol=1e-15), 2.0 * math.pi / 3.0
    v = np.where(t < sticks, 0.5 * t, np.where(t < slides, np.sin(t), math.sin(slides) - 0.5 * (t - slides)))
    # speeds are those of the differences where nothing else is given
    np.testing.assert_allclose(rows["block"]["v"][:, 0], v, rtol=0, atol=1e-8)
    np.testing.assert_allclose(t[rows["status"] > EVENT], [sticks, slides], rtol=0, atol=1e-7)
    assert is_event(rows["status"]).sum() == 4


def lever(q, z, out):
    out[0] = math.sin(q[0])


def its_slope(q, z, out):
    out[0, 0] = math.cos(q[0])


@pytest.mark.parametrize("flow", ["auto", "radau"])
@pytest.mark.parametrize("H", [None, its_slope], ids=["differences", "derivatives"])
def test_friction_on_a_lever_whose_arm_changes(H, flow):
    """``y = sin q``: the work of friction is ``-f y``, and the lever stops where that is its energy."""
    f, v = 0.9, 1.2
    arm = nsds.lagrangian(mass=[1.0], q=[0.0], v=[v])
    rows = run(nsds.system(arm=arm, brake=nsds.interaction(nsds.scleronomous(lever, H, m=1), nsds.dry_friction(f), on="arm")), 3.0, 0.1,
               flow=flow)  # fmt: skip
    q, u = rows["arm"]["q"][:, 0], rows["arm"]["v"][:, 0]
    np.testing.assert_allclose(u**2 + 2.0 * f * np.sin(q), v * v, rtol=0, atol=1e-8)
    assert q[-1] == pytest.approx(math.asin(v * v / (2.0 * f)), abs=1e-7)
    assert is_event(rows["status"]).sum() == 2


def spring(t, q, v, z, out):
    out[0] = q[0]


def fast_belt(t, q, z, out):
    out[0] = q[0] - z[0] * t


@pytest.mark.parametrize("V", [0.2, 2e5])
def test_a_block_that_a_fast_belt_takes_through_zero(V):
    """``lambda = q`` of a spring as long as it sticks, however far the belt has run."""
    block = nsds.lagrangian(mass=[1.0], fint=spring, q=[-2.5 * V], v=[V])
    drag = nsds.interaction(nsds.rheonomous(fast_belt, m=1, z=[V]), nsds.dry_friction(5.0 * V), on="block")
    rows = run(nsds.system(block=block, drag=drag), 7.0, 0.25)
    assert is_event(rows["status"]).sum() == 0
    np.testing.assert_allclose(rows["drag"]["lambda"] / V, rows["t"] - 2.5, rtol=0, atol=1e-6)
