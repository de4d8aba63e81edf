"""Orbits and multipliers by products with vectors: against closed forms of a long chain, and against the matrices of a short one."""

import math
import re

import numpy as np
import pytest
import scipy.sparse as sp

import nsds

T = 2 * math.pi


def drive(t, z, out):
    out[0] = 0.5 * math.cos(t)


def chain(n, distance):
    """Masses on springs and dampers, the first one driven, with a stop so far away."""
    K = 4.0 * sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()
    masses = nsds.lagrangian_linear(M=sp.eye_array(n).tocsr(), K=K, C=0.3 * K, fext=drive, q=np.zeros(n), v=np.zeros(n))
    stop = nsds.lagrangian_linear_relation(H=sp.csr_array(-sp.eye_array(1, n)), b=[distance])
    return nsds.system(masses=masses, stop=nsds.interaction(stop, nsds.newton_impact(0.5), on="masses"))


def test_multipliers_of_400_states_are_those_of_each_mode():
    """Each mode is an oscillator, and a step of Moreau and Jean of it a 2 x 2 matrix."""
    n, steps, h, theta = 200, 16, T / 16, 0.75
    stiffness = 16 * np.sin(np.arange(1, n + 1) * math.pi / 2 / (n + 1)) ** 2
    expected = []
    for k in stiffness:
        m_hat = 1 + h * theta * 0.3 * k + (h * theta) ** 2 * k
        v = np.array([-h * k, m_hat - h * 0.3 * k - h**2 * theta * k]) / m_hat
        expected.extend(np.linalg.eigvals(np.array([[1.0, 0.0] + h * theta * v + [0.0, h * (1 - theta)], v])) ** steps)
    expected = np.array(expected)[np.argsort(-abs(np.array(expected)))[:4]]
    found = nsds.orbit(chain(n, 10.0), period=T, h=h, scheme=nsds.moreau_jean(theta=theta), n_multipliers=4)
    assert found["residual"] < 1e-11
    assert found["error"] < 1e-9
    distances = abs(found["multipliers"][:, None] - expected)
    assert distances.min(axis=1).max() < 1e-9
    assert distances.min(axis=0).max() < 1e-9
    assert "monodromy" not in found.dtype.names


@pytest.mark.parametrize("h", [T / 64, None])
def test_products_find_the_orbit_and_multipliers_of_the_matrix(h):
    system, settings = chain(6, 0.05), {"period": T, "h": h, "settle": 30}
    usual, found = nsds.orbit(system, **settings), nsds.orbit(system, **settings, n_multipliers=3)
    assert usual["n_events"] == found["n_events"] > 0
    np.testing.assert_allclose(found["x"], usual["x"], atol=1e-9)
    np.testing.assert_allclose(found["multipliers"], usual["multipliers"][:3], atol=1e-7)
    assert found["error"] < 1e-7


def test_of_a_map():
    def contraction(x, p, out):
        for i in range(x.size):
            out[i] = p[0] - x[i] / (i + 2.0) + 0.1 * x[i] ** 2

    found = nsds.orbit(nsds.iterated_map(contraction, x=np.zeros(8), p=[0.3]), n_multipliers=2)
    slopes = -1.0 / np.arange(2, 10) + 0.2 * found["x"]
    np.testing.assert_allclose(found["multipliers"], slopes[np.argsort(-abs(slopes))[:2]], atol=1e-9)


def test_bad_numbers_of_multipliers():
    system = chain(6, 10.0)
    for count, message in ((10, "floquet: n_multipliers must be at most 9, got 10"), (0, "at least 1"), (2.5, "whole number")):
        with pytest.raises((ValueError, TypeError), match=message):
            nsds.floquet(system, period=T, h=T / 16, n_multipliers=count)
    with pytest.raises(ValueError, match="n_multipliers is for at least 4 states, this system has 2"):
        nsds.floquet(chain(1, 10.0), period=T, h=T / 16, n_multipliers=1)
    with pytest.raises(ValueError, match="free_period wants all multipliers"):
        nsds.orbit(system, period=T, free_period=True, n_multipliers=2)


def test_derivatives_of_many_states_are_refused_by_their_size():
    system, steps = chain(4000, 10.0), {"h": T / 16}
    for function, arguments in (
        (nsds.floquet, {"period": T}),
        (nsds.sensitivity, {"t_end": T}),
        (nsds.gradient, {"t_end": T, "rows": 1, "objective": lambda x: x[0], "scheme": nsds.moreau_jean_direct_projection()}),
        (nsds.lyapunov, {"period": T, "n_exponents": 1}),
    ):
        with pytest.raises(
            ValueError, match=f"{function.__name__}: the derivatives of 8000 states, .* would be dense, 3.07 GB; .*n_multipliers"
        ):
            function(system, **arguments, **steps)


def test_multipliers_that_can_hardly_be_told_apart_are_right_or_end_the_search():
    """In a very short time all are about 1: whether ARPACK finds the largest is by rounding."""
    period, refused = 2e-5, ""
    try:
        found = np.array(nsds.floquet(chain(100, 10.0), period=period, h=1e-5, n_multipliers=2)["multipliers"])
    except ValueError as error:
        refused = str(error)
    if refused:
        assert re.match(r"floquet: ARPACK found \d of the 3 largest multipliers", refused)
    else:
        square = 16.0 * math.sin(math.pi / 202.0) ** 2  # of the lowest frequency
        decay, omega = -0.15 * square, math.sqrt(square - (0.15 * square) ** 2)
        np.testing.assert_allclose(found, np.exp(np.array([decay + 1j * omega, decay - 1j * omega]) * period), rtol=0.0, atol=1e-9)
