"""Steps whose plain Newton iteration fails: gains that are steep at 0, super-twisting, saturations, exponential diodes, in any units."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq

import nsds

H = 0.01
TOL, NOTHING = 1e-8, 1e-80  # the scheme's tolerance is 1e-10, relative to terms of the step; far below all units
SCALES = [1.0, 1e-6, 1e6]
SCHEMES = {
    "implicit": nsds.euler_moreau(),
    "mean": nsds.euler_moreau(theta=0.5),
    "midpoint": nsds.euler_moreau(theta=0.5, midpoint=True),
}


def state(t, x, lam, z, out):
    out[0] = x[0]


def pushed_by_power(t, x, lam, z, out):
    out[0] = z[0] * abs(x[0]) ** z[1] * lam[0]


def no_rate(t, x, z, out):
    out[0] = 0.0


def drawn_by_power(t, x, z, out):
    out[0] = -z[0] * math.copysign(abs(x[0]) ** z[1], x[0])


def saturated(t, x, z, out):
    out[0] = -z[0] * math.tanh(x[0] / z[1])


def super_twisting(t, x, z, out):
    out[0] = -z[0] * math.copysign(math.sqrt(abs(x[0])), x[0]) + x[1]
    out[1] = z[1] * math.sin(t)


def rectified(t, x, z, out):
    out[0] = (1e-12 * (math.exp((5.0 * math.sin(100.0 * math.pi * t) - x[0]) / 0.026) - 1.0) - x[0] / 1e3) / 1e-4


def run(part, t_end, scheme=None, h=H, **interactions):
    return nsds.simulate(nsds.system(part=part, **interactions), t_end=t_end, h=h, scheme=scheme or nsds.euler_moreau())


def root_of(last, gain, power):
    """Solution of ``x + h gain |x|^power sgn(x) = last`` in terms of the rate ``|x|^power``, which may be far below last."""
    if abs(last) < NOTHING:
        return 0.0
    sign, size = math.copysign(1.0, last), abs(last)
    rate = brentq(lambda s: s ** (1.0 / power) + H * gain * s - size, 0.0, size / (H * gain), xtol=1e-300, rtol=1e-14)
    return sign * rate ** (1.0 / power)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("power", [1 / 2, 1 / 3])
@pytest.mark.parametrize("by_relay", [False, True])
def test_implicit_steps_with_a_gain_that_is_steep_at_zero(by_relay, power, scale):
    """x' = -|x|^p sgn(x) comes to 0 in finite time; each step is the root of its equation."""
    gain = scale ** (1.0 - power)
    if by_relay:
        relation = nsds.first_order_relation(state, pushed_by_power, m=1, z=[gain, power])
        relay = nsds.interaction(relation, nsds.relay(-1, 1), on="part")
        rows = run(nsds.first_order(no_rate, x=[scale]), 2.5, relay=relay)
    else:
        rows = run(nsds.first_order(drawn_by_power, x=[scale], z=[gain, power]), 2.5)
    x = rows["part"]["x"].ravel()
    assert (rows["status"] == 0).all()
    assert abs(x[-1]) < 1e-12 * scale
    for last, new in itertools.pairwise(x):
        expected = root_of(last, gain, power)
        assert abs(new - expected) <= TOL * abs(last) + NOTHING


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("scale", SCALES)
def test_super_twisting_comes_to_rest(scale, scheme):
    """The disturbance 0.4 sin(t) is below 1.1: x and its rate vanish in finite time, and stay within what a step may move them."""
    part = nsds.first_order(super_twisting, x=[scale, 0.5 * scale], z=[1.5 * math.sqrt(scale), 0.4 * scale])
    relation = nsds.first_order_linear_relation([[1.0, 0.0]], [[0.0], [1.1 * scale]])
    rows = run(part, 6.0, SCHEMES[scheme], relay=nsds.interaction(relation, nsds.relay(-1, 1), on="part"))
    x = rows["part"]["x"]
    assert (abs(x[-100:, 0]) < H**2 * scale).all()
    assert (abs(x[-100:, 1]) < 2 * H * scale).all()


@pytest.mark.parametrize("width", [1e-4, 1e-7])
@pytest.mark.parametrize("scale", SCALES)
def test_saturation_within_a_step(scale, width):
    rows = run(nsds.first_order(saturated, x=[scale], z=[scale, width * scale]), 1.5)
    x = rows["part"]["x"].ravel() / scale
    error = abs(x[1:] + H * np.tanh(x[1:] / width) - x[:-1])
    assert (error <= TOL * (1 + H / width) * abs(x[:-1]) + NOTHING).all()  # of terms: slope times state
    assert abs(x[-1]) < width


def test_a_rectifier_with_an_exponential_diode():
    """Half a wave charges the capacitor to the peak less about 0.65 V, where steps in time of a tenth give the same."""
    coarse, fine = (run(nsds.first_order(rectified, x=[0.0]), 0.01, h=h)["part"]["x"].max() for h in (1e-4, 1e-5))
    assert coarse == pytest.approx(fine, rel=0.02)
    assert 4.0 < coarse < 4.6


def test_a_step_without_a_solution_fails_as_before():
    """x - h x^2 - h = x_k has no root where x_k > 1 / (4 h) - h: that is told, and in not many more iterations."""

    def growing(t, x, z, out):
        out[0] = x[0] ** 2 + 1.0

    system = nsds.system(part=nsds.first_order(growing, x=[100.0]))
    rows = nsds.simulate(system, t_end=H, h=H, on_failure="continue")
    assert rows["status"][-1] == nsds.status.NEWTON
    assert rows["n_iter"][-1] == 50
