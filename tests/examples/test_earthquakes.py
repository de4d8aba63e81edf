"""Earthquakes of blocks on springs: slip of one block in closed form, and sizes by the law of Gutenberg and Richter."""

import numpy as np
import pytest
from scipy.optimize import brentq

import nsds
from nsds.examples import burridge_knopoff, burridge_knopoff_moments


def test_a_block_slips_alone_as_its_linear_equation_says():
    """``v'' - 2 alpha v' + (2 l^2 + 1) v = speed`` from rest at the limit of friction, until v is 0 again; its neighbours stay.

    Friction is 1 - 2 alpha v, but for the square of 2 alpha v, which is below 1e-4.
    """
    l, alpha, speed = 10.0, 2.5, 1e-3
    system = burridge_knopoff(n=3, l=l, alpha=alpha, speed=speed)
    system["blocks"]["q"] = 1.0 / (1.0 + 2.0 * l**2) * np.array([0.0, -1.0, 0.0])
    rows = nsds.simulate(system, t_end=0.5, h=5e-4)
    square = 2.0 * l**2 + 1.0
    omega = np.sqrt(square - alpha**2)

    def velocity(t):
        return speed / square * (1.0 - np.exp(alpha * t) * (np.cos(omega * t) - alpha / omega * np.sin(omega * t)))

    end = brentq(velocity, 0.5 * np.pi / omega, 2.0 * np.pi / omega)
    t = rows["t"]
    expected = np.where(t < end, velocity(t), 0.0)
    np.testing.assert_allclose(rows["blocks"]["v"], np.outer(expected, [0, 1, 0]), rtol=0, atol=1e-2 * expected.max())
    assert burridge_knopoff_moments(rows) == pytest.approx(np.trapezoid(expected, t), rel=1e-2)


def test_sizes_of_earthquakes_obey_the_law_of_gutenberg_and_richter():
    """b = 1 of small ones, for alpha = 2.5 and l = 10; those that run along the fault are more than that (Carlson and Langer 1989).

    Of b the standard deviation is b / sqrt(earthquakes). The fault slips as fast as the plate moves but for what the largest let loose.
    """
    speed, h, least, most = 0.01, 0.05, 3e-3, 0.3
    rows = nsds.simulate(burridge_knopoff(n=300, speed=speed), t_end=800.0, h=h, fields=["blocks.v"])
    assert (rows["status"] == 0).all()
    rows = rows[round(150.0 / h) :]  # the first large ones have taken away how the blocks lay at the start
    moments = burridge_knopoff_moments(rows)
    # 1. small ones: likelihood of M^-b dM / M between two moments
    sizes, span = np.log(moments[(moments > least) & (moments < most)] / least), np.log(most / least)
    b = brentq(lambda b: 1.0 / b - span / np.expm1(b * span) - sizes.mean(), 0.01, 10.0)
    assert sizes.size > 80
    assert b == pytest.approx(1.0, abs=3.0 / np.sqrt(sizes.size))
    # 2. large ones, which do nearly all of the slip
    large = moments[moments > 30.0]
    assert large.size > 3 * ((moments > 1.0) & (moments < 10.0)).sum()
    assert large.sum() > 0.95 * moments.sum()
    assert moments.sum() == pytest.approx(speed * (rows["t"][-1] - rows["t"][0]) * 300, abs=1.5 * large.max())
