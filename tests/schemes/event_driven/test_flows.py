"""The pieces that flows are made of: Dormand and Prince's pair against SciPy's, interpolation, and the search for roots."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import RK45

from nsds._jit import specialised
from nsds.maths import polynomials
from nsds.maths.polynomials import FORCE_DEGREE, FORCE_NODES, GUARD_DEGREE, GUARD_NODES, NO_ROOT
from nsds.model.layout import table
from nsds.schemes.event_driven import dopri5
from nsds.schemes.event_driven.impacts import _dies_out
from nsds.schemes.event_driven.tables import place_flow
from nsds.schemes.memory import Allocator
from nsds.schemes.problem.rows import CONSTRAINT
from nsds.status import CONVERGED
from tests.memories import memory_with
from tests.strategies import examples


def pendulum(t, x):
    return np.array([x[1], -np.sin(x[0]) + 0.3 * np.cos(2 * t)])


def taken(t, x, h, f=pendulum, rtol=1e-6, atol=1e-9):
    """(new state, error, coefficients of the dense output, stages) of one step."""
    n, work, p = x.size, np.zeros(100), np.zeros(1, table("n", "x", "k", "x_new", "poly", "atol"))
    k, new, poly, tolerances = 10, 60, 70, 90
    p[0] = n, 0, k, new, poly, tolerances
    work[:n], work[tolerances : tolerances + n] = x, atol
    work[k : k + n] = f(t, x)

    def derivative(t, at, out, *_):
        work[out : out + n] = f(t, work[at : at + n])
        return CONVERGED

    step = specialised(dopri5._take_step, "here", derivative=derivative, time_in_step=lambda t, theta, h: t + theta * h)
    status, error = step(t, h, SimpleNamespace(flow=p), None, SimpleNamespace(rtol=rtol), memory_with(work))
    assert status == CONVERGED
    return work[new : new + n].copy(), error, work[poly : poly + 5 * n].reshape(5, n).copy(), work[k : k + 7 * n].reshape(7, n).copy()


def test_a_step_is_that_of_the_pair_as_scipy_has_it():
    x, h = np.array([1.0, 0.5]), 0.2
    new, error, _, k = taken(0.3, x, h)
    stages = [pendulum(0.3, x)]
    for row, c in zip(RK45.A[1:], RK45.C[1:], strict=True):
        stages.append(pendulum(0.3 + c * h, x + h * np.dot(row[: len(stages)], stages)))
    expected = x + h * np.dot(RK45.B, stages)
    stages.append(pendulum(0.3 + h, expected))
    scale = 1e-9 + 1e-6 * np.maximum(abs(x), abs(expected))
    np.testing.assert_allclose(new, expected, rtol=1e-14)
    np.testing.assert_allclose(k, stages, rtol=1e-13)
    np.testing.assert_allclose(error, np.sqrt(np.mean((h * np.dot(RK45.E, stages) / scale) ** 2)), rtol=1e-8)


def circle(t, x):
    return np.array([x[1], -x[0]])


def test_orders_of_the_step_and_of_its_dense_output():
    """Local errors: h^6 of the solution, h^5 within the step."""
    ends, inside, theta = [], [], np.linspace(0, 1, 21)
    for h in (0.4, 0.2, 0.1):
        new, _, poly, _ = taken(0.0, np.array([1.0, 0.0]), h, circle)
        ends.append(abs(new - [np.cos(h), -np.sin(h)]).max())
        exact = np.array([np.cos(h * theta), -np.sin(h * theta)]).T
        inside.append(abs(theta[:, None] ** np.arange(5) @ poly - exact).max())
    assert (np.log2(np.divide(ends[:-1], ends[1:])) > 5.7).all()
    assert (np.log2(np.divide(inside[:-1], inside[1:])) > 4.7).all()


def test_dense_output_meets_both_ends_with_their_slopes():
    new, _, poly, k = taken(0.3, np.array([1.0, 0.5]), 0.2)
    np.testing.assert_allclose(poly.sum(axis=0), new, rtol=1e-14)
    np.testing.assert_allclose(poly[1], 0.2 * k[0], rtol=1e-13)
    np.testing.assert_allclose(np.arange(5) @ poly, 0.2 * k[6], rtol=1e-12)


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_step_control_keeps_the_error_in_proportion_to_the_tolerance(rtol):
    t, x, work = 0.0, np.array([1.0, 0.0]), np.zeros(8)
    work[:2], work[2:4], work[4:6] = x, circle(0, x), rtol
    h, last, rejected = dopri5.first_step(2, 1.0, 0, 2, rtol, 4, work), 1.0, 0
    while t < 10.0:
        new, error, _, _ = taken(t, x, min(h, 10.0 - t), circle, rtol, rtol)
        if error <= 1.0:
            t, x = t + min(h, 10.0 - t), new
        rejected += error > 1.0
        h *= dopri5.factor(error, last)
        last = error if error <= 1.0 else last
    assert abs(x - [np.cos(10), -np.sin(10)]).max() < 20 * rtol
    assert rejected < 10


def test_what_is_not_finite_shortens_the_step():
    assert dopri5.factor(np.nan, 1.0) == dopri5.factor(np.inf, 1.0) == 0.2


def interpolated(values):
    """(coefficients of the polynomial through values (nodes, n), what may be missing)."""
    d, n = FORCE_DEGREE, values.shape[1]
    work = np.zeros(2 * (d + 1) * n + d + 1)
    work[: values.size] = values.ravel()
    missing = polynomials.interpolate_force(n, 0, 0.0, values.size, 2 * values.size, work)
    return work[values.size : 2 * values.size].reshape(d + 1, n), missing


def test_forces_are_interpolated_to_rounding_and_kinks_are_seen():
    theta = np.linspace(0, 1, 57)
    poly, missing = interpolated(np.array([np.cos(1.5 * FORCE_NODES), np.full(FORCE_DEGREE + 1, 3.0)]).T)
    exact = np.array([np.cos(1.5 * theta), np.full(57, 3.0)]).T
    assert missing < 1e-14
    assert abs(theta[:, None] ** np.arange(FORCE_DEGREE + 1) @ poly - exact).max() < 8e-15
    assert (poly[1:, 1] == 0).all()  # a constant stays one
    assert interpolated(abs(FORCE_NODES - 0.37)[:, None])[1] > 1e-4


def test_guards_are_interpolated():
    work, d = np.zeros(40), GUARD_DEGREE
    work[: d + 1] = np.sin(1 + GUARD_NODES)
    polynomials.interpolate_guard(0, 10, 30, work)
    theta = np.linspace(0, 1, 33)
    np.testing.assert_allclose(theta[:, None] ** np.arange(d + 1) @ work[10 : 11 + d], np.sin(1 + theta), atol=1e-9)


def root_of(coefficients, zeros=0, begin=0.0):
    work = np.array(coefficients, float)
    return polynomials.first_root(work.size - 1, 0, zeros, begin, 1.0, work)


def test_a_falling_ball_is_found_in_one_step():
    assert root_of([1.0, 0.0, -4.0]) == 0.5
    assert root_of([1.0, 0.0, -0.5]) == NO_ROOT


def test_a_root_at_the_start_is_no_event():
    assert root_of([0.0, 1e-20, -4e-20], zeros=1) == pytest.approx(0.25, rel=1e-15)  # a tiny flight, to full precision
    assert root_of([0.0, 0.0, 1.0], zeros=2) == NO_ROOT
    assert root_of([0.0, -1.0], zeros=1) == 0.0  # goes below at once
    assert root_of([0.0, 0.0], zeros=2) == NO_ROOT  # rests


@pytest.mark.parametrize("apart", [0.0, 1e-7, 1e-5, 1e-3])
def test_near_double_roots(apart):
    """Two roots that lie so close that no sampling separates them; and a minimum that just stays above zero."""
    middle = 0.4371
    p = np.polynomial.Polynomial.fromroots([middle - apart / 2, middle + apart / 2, 1.7]) * -1
    assert root_of(p.coef) == pytest.approx(middle - apart / 2, abs=3e-8)
    assert root_of((p + np.array([1e-9])).coef) == (NO_ROOT if apart < 1e-4 else pytest.approx(middle, abs=apart))


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=7), st.lists(st.floats(0.01, 3), max_size=2), st.floats(0.01, 100))
def test_the_first_root_is_never_passed(real, imaginary, scale):
    """The definition: positive up to what is found, and zero there, up to rounding."""
    real = [r for r in real if abs(r) > 1e-3]
    p = np.polynomial.Polynomial([scale])
    for root in [*real, *(1j * b for b in imaginary), *(-1j * b for b in imaginary)]:
        p *= np.polynomial.Polynomial([-root, 1.0])
    coefficients = p.coef.real * np.sign(p.coef.real[0])
    inside = sorted(r for r in real if 0 < r <= 1)
    found, noise = root_of(coefficients), 1e-13 * abs(coefficients).sum()
    if found == NO_ROOT:
        assert not inside or np.polynomial.Polynomial(coefficients)(np.array(inside)).max() > -noise
        theta = np.linspace(0, 1, 101)
        assert np.polynomial.Polynomial(coefficients)(theta).min() > -noise
    else:
        at_most = 1e5 * noise  # up to 1e-8 of its terms: the march to a root of high multiplicity ends when its iterations do
        assert abs(np.polynomial.Polynomial(coefficients)(found)) <= at_most
        before = np.linspace(0, found, 101)
        assert np.polynomial.Polynomial(coefficients)(before).min() > -noise


# ---------------------------------------------------------------------------------------------------- slow impacts in a row
def dies_at(times, speeds):
    """The impact at which a run is said to die out, counted from 1, as it is defined; None where it does not."""
    for n in (2**k for k in range(3, 20) if 2**k <= len(times)):
        half, first, last = n // 2, times[n // 2 - 1] - times[0], times[n - 1] - times[n // 2 - 1]
        if last < first and max(speeds[half:n]) <= 0.5 * max(speeds[:half]):
            return n
    return None


@examples(60)
@given(st.floats(0.5, 1.1), st.floats(0.5, 1.1), st.integers(0, 2**32 - 1))
def test_runs_of_slow_impacts_die_out_as_defined(ratio, shrink, seed):
    """Speeds fall by a ratio and times between impacts by another, unevenly; faster ones begin the run anew."""
    rng = np.random.default_rng(seed)
    speeds = 0.9 * ratio ** np.arange(64) * rng.uniform(0.2, 1.0, 64)
    speeds /= max(1.0, speeds.max())
    times = np.cumsum(shrink ** np.arange(64) * rng.uniform(0.2, 1.0, 64))
    work, iwork = Allocator(1), Allocator(1)
    f = place_flow(1, 2, np.zeros(1, CONSTRAINT), False, work, iwork)[0]
    memory = memory_with(work.array()[0], iwork.array(np.int64)[0])
    work = memory.work
    work[f["speed"]] = 1.0
    for before in range(3):  # faster than slow
        work[f["approach"]] = 2.0
        assert not _dies_out(0, -1.0 + before, 1.0, f, memory)
    found = None
    for n, (t, u) in enumerate(zip(times, speeds, strict=True), 1):
        work[f["approach"]] = u
        if _dies_out(0, t, 1.0, f, memory):
            found = n
            break
    assert found == dies_at(times, speeds)
