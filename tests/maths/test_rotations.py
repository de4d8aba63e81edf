"""Rotations against scipy, series in extended precision, finite differences and their definitions."""

import math
from fractions import Fraction

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from nsds.maths import rotations as rot
from tests.strategies import examples, generators

EPS = np.finfo(float).eps
LEAST = 4 * np.finfo(float).smallest_subnormal  # rounding of the smallest numbers
lengths = st.one_of(st.floats(-12, 0).map(lambda e: 10.0**e), st.floats(0.0, 3.14), st.sampled_from([0.0, 1e-170, 1e-8, math.pi - 1e-9]))


def direction(rng, n=3):
    x = rng.normal(size=n)
    return x / np.linalg.norm(x)


def written(function, size, *arguments):
    out = np.full(size, np.nan)
    function(*arguments, out)
    return out


def skew(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def series(w, shift):
    """``sum of w~^k / (k + shift)!`` in extended precision: exp for shift 0, dexp for shift 1 ([Notes], eq. 11.101, 11.110)."""
    W, term, total = skew(w).astype(np.longdouble), np.eye(3, dtype=np.longdouble), np.zeros((3, 3), np.longdouble)
    for k in range(1, 60):
        total += term
        term = term @ W / (k + shift)
    return total


def naive_product(p, q):
    """[Notes], eq. 11.126."""
    return np.concatenate([[p[0] * q[0] - p[1:] @ q[1:]], p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])])


def naive_rotation(p):
    """``p . (0, x) . p*`` for the three axes ([Notes], eq. 11.135)."""
    conjugate = p * [1, -1, -1, -1]
    return np.column_stack([naive_product(naive_product(p, np.array([0, *e])), conjugate)[1:] for e in np.eye(3)])


def scipy_rotation(p):
    return Rotation.from_quat([p[1], p[2], p[3], p[0]])


@examples(60)
@given(generators)
def test_product_and_its_matrices(rng):
    p, q, r = rng.normal(size=(3, 4))
    expected = naive_product(p, q)
    assert written(rot.product, 4, p, q) == pytest.approx(expected, abs=1e-14)
    assert written(rot.left_matrix, 16, p).reshape(4, 4) @ q == pytest.approx(expected, abs=1e-14)
    assert written(rot.right_matrix, 16, q).reshape(4, 4) @ p == pytest.approx(expected, abs=1e-14)
    both = written(rot.product, 4, expected, r), written(rot.product, 4, p, naive_product(q, r))
    assert both[0] == pytest.approx(both[1], abs=1e-13)
    for given_out, other in ((p.copy(), q), (q.copy(), p)):  # the result may take an argument's place
        arguments = (given_out, other) if given_out[0] == p[0] else (other, given_out)
        rot.product(*arguments, given_out)
        assert given_out == pytest.approx(expected, abs=1e-14)


@examples(60)
@given(generators)
def test_rotation_of_vectors(rng):
    p, q = direction(rng, 4), direction(rng, 4)
    x = rng.normal(size=3)
    R = written(rot.rotation_matrix, 9, p).reshape(3, 3)
    assert pytest.approx(naive_rotation(p), abs=4 * EPS) == R
    assert pytest.approx(scipy_rotation(p).as_matrix(), abs=8 * EPS) == R
    assert pytest.approx(np.eye(3), abs=8 * EPS) == R.T @ R
    turned = written(rot.rotate, 3, p, x)
    assert turned == pytest.approx(R @ x, abs=1e-14)
    assert written(rot.rotate_back, 3, p, x) == pytest.approx(R.T @ x, abs=1e-14)
    assert written(rot.rotate, 3, q, turned) == pytest.approx(written(rot.rotate, 3, naive_product(q, p), x), abs=1e-14)
    rot.rotate_back(p, turned, turned)
    assert turned == pytest.approx(x, abs=1e-14)


@examples(20)
@given(generators)
def test_rotation_of_arrays_of_vectors(rng):
    p, x = np.array([[direction(rng, 4)] for _ in range(2)]), rng.normal(size=(3, 3))
    R = np.array([naive_rotation(each[0]) for each in p])
    assert rot.turned(p, x) == pytest.approx(x @ R.swapaxes(1, 2), abs=1e-14)
    assert rot.turned_back(p, x) == pytest.approx(x @ R, abs=1e-14)


@examples(60)
@given(generators, lengths)
def test_exponentials(rng, length):
    w = length * direction(rng)
    p, R = written(rot.exp_quaternion, 4, w), written(rot.exp_rotation, 9, w).reshape(3, 3)
    exact = series(w, 0)
    assert abs(np.linalg.norm(p) - 1) <= 2 * EPS
    assert abs(R - exact).max() <= 4 * EPS
    assert abs((R - R.T) / 2 - (exact - exact.T) / 2).max() <= 4 * EPS * length  # small rotations are relatively exact
    assert naive_rotation(p) == pytest.approx(R, abs=8 * EPS)
    assert scipy_rotation(p).as_rotvec() == pytest.approx(w, rel=1e-13, abs=1e-200) or length > 3


@examples(60)
@given(generators, lengths)
def test_logarithms_invert_exponentials(rng, length):
    w = length * direction(rng)
    p, R = written(rot.exp_quaternion, 4, w), written(rot.exp_rotation, 9, w)
    near = 8 * EPS * length
    assert np.linalg.norm(written(rot.log_quaternion, 3, p) - w) <= near
    assert np.linalg.norm(written(rot.log_quaternion, 3, -p) - w) <= near
    assert np.linalg.norm(written(rot.log_rotation, 3, R) - w) <= 2 * near


@examples(60)
@given(generators)
def test_a_half_turn_has_one_of_two_logarithms(rng):
    axis = direction(rng)
    R = 2 * np.outer(axis, axis) - np.eye(3)
    w = written(rot.log_rotation, 3, R.ravel())
    assert min(np.linalg.norm(w - math.pi * axis), np.linalg.norm(w + math.pi * axis)) <= 16 * EPS
    p = written(rot.quaternion_of, 4, R.ravel())
    assert naive_rotation(p) == pytest.approx(R, abs=8 * EPS)


@examples(60)
@given(generators)
def test_quaternion_of_a_rotation(rng):
    p = direction(rng, 4) if rng.uniform() < 0.5 else np.roll([1.0, *rng.choice([0.0, 1e-9], 3)], rng.integers(4))
    found = written(rot.quaternion_of, 4, naive_rotation(p).ravel())
    assert found * np.sign(found @ p) == pytest.approx(p, abs=8 * EPS)


@examples(80)
@given(generators, st.one_of(lengths, st.floats(math.pi, 6.0)))
def test_differential_of_the_exponential(rng, length):
    w = length * direction(rng)
    D, inverse = written(rot.dexp, 9, w).reshape(3, 3), written(rot.dexp_inverse, 9, w).reshape(3, 3)
    exact = series(w, 1)
    assert abs(D - exact).max() <= 8 * EPS
    assert abs((D - D.T) / 2 - (exact - exact.T) / 2).max() <= 8 * EPS * length + LEAST
    condition = np.linalg.norm(inverse, 2)
    assert abs(D @ inverse - np.eye(3)).max() <= 32 * EPS * condition
    body = written(rot.dexp, 9, -w).reshape(3, 3)
    assert abs(body - D.T).max() == 0
    assert abs(series(w, 0) @ body - D).max() <= 32 * EPS


@examples(40)
@given(generators, st.floats(0.0, 3.0))
def test_angular_velocity_of_the_exponential(rng, length):
    """Central differences of ``R = exp(w~)``: ``Rdot = omega~ R``."""
    w, rate, eps = length * direction(rng), rng.normal(size=3), 1e-5
    change = (series(w + eps * rate, 0) - series(w - eps * rate, 0)) / (2 * eps)
    spin = change @ series(w, 0).T
    omega = written(rot.dexp, 9, w).reshape(3, 3) @ rate
    assert abs(spin - skew(omega)).max() <= 1e-8


def exact_sum(x2, first, next_over_this, terms=40):
    """Sum of a series in rational arithmetic."""
    total, term, x2 = Fraction(0), Fraction(first), Fraction(x2)
    for k in range(terms):
        total += term
        term *= x2 * next_over_this(k)
    return total


@examples(80)
@given(
    st.one_of(st.floats(0.0, 4.0), st.floats(-30, 0.5).map(lambda e: 10.0**e), st.sampled_from([0.0, 1e-320, 0.999e-3, 1e-3, 1 - EPS, 1.0]))
)
def test_ratios_are_relatively_exact(x2):
    sine = exact_sum(x2, 1, lambda k: Fraction(-1, (2 * k + 2) * (2 * k + 3)))
    remainder = exact_sum(x2, Fraction(1, 6), lambda k: Fraction(-1, (2 * k + 4) * (2 * k + 5)))
    # sin(x) - x cos(x) has the terms 2k / (2k+1)!
    difference = exact_sum(x2, Fraction(1, 3), lambda k: Fraction(-(k + 2), (k + 1) * (2 * k + 4) * (2 * k + 5)))
    assert abs(Fraction(rot.sine_ratio(x2)) / sine - 1) <= 4 * EPS
    assert abs(rot.cosine(x2) - float(exact_sum(x2, 1, lambda k: Fraction(-1, (2 * k + 1) * (2 * k + 2))))) <= 4 * EPS
    assert abs(Fraction(rot.sine_remainder(x2)) / remainder - 1) <= 12 * EPS
    assert abs(Fraction(rot.cotangent_remainder(x2)) / (difference / sine / 4) - 1) <= 12 * EPS


@examples(40)
@given(generators)
def test_rates(rng):
    q, v, eps = np.concatenate([rng.normal(size=3), direction(rng, 4)]), rng.normal(size=6), 1e-5
    T = written(rot.tangent_map, 42, q).reshape(7, 6)
    Psi = written(rot.rate_matrix, 12, q[3:]).reshape(4, 3)
    assert T @ v == pytest.approx(np.concatenate([v[:3], Psi @ v[3:] / 2]), abs=1e-14)
    assert Psi.T @ Psi == pytest.approx(np.eye(3), abs=1e-14)
    assert (T @ v)[3:] == pytest.approx(naive_product(q[3:], np.array([0, *v[3:]])) / 2, abs=1e-14)
    later, earlier = (written(rot.advance, 4, q[3:], sign * eps * v[3:]) for sign in (1, -1))
    assert (later - earlier) / (2 * eps) == pytest.approx((T @ v)[3:], abs=1e-8)
    spin = (naive_rotation(later) - naive_rotation(earlier)) / (2 * eps)
    assert spin == pytest.approx(naive_rotation(q[3:]) @ skew(v[3:]), abs=1e-8)


@examples(40)
@given(generators)
def test_moment_gradient(rng):
    """Φ(p)ᵀ m is quadratic in p, so that its central differences are exact."""
    p, m = direction(rng, 4), rng.normal(size=3)

    def moment(p):
        return written(rot.rotation_matrix, 9, p).reshape(3, 3).T @ m

    expected = np.column_stack([(moment(p + e) - moment(p - e)) / 2 for e in np.eye(4)])
    found = written(rot.moment_gradient, 12, p, m).reshape(3, 4)
    assert found == pytest.approx(expected, abs=1e-13)
    Omega = rng.normal(size=3)
    rate = found @ written(rot.rate_matrix, 12, p).reshape(4, 3) @ Omega / 2
    M = naive_rotation(p).T @ m
    assert rate == pytest.approx(np.cross(M, Omega), abs=1e-13)


@examples(40)
@given(generators, st.sampled_from([1e-3, 1.0, 1e3]))
def test_perpendicular(rng, length):
    n = length * direction(rng) if rng.uniform() < 0.7 else rng.permutation([0.0, 0.0, rng.choice([-length, length])])
    t = written(rot.perpendicular, 3, n)
    assert abs(t @ n) <= 4 * EPS * length
    assert np.linalg.norm(t) == pytest.approx(1, abs=4 * EPS)


@examples(20)
@given(generators, st.sampled_from([0.0, 1e-20, 1e-12, 0.9e-8, 1.1e-8]))
def test_normalise(rng, away):
    p = rng.normal(size=4)
    if away > 0.0:  # a unit quaternion but for this, and a tiny one
        p *= away if away == 1e-20 else (1 + away) / np.linalg.norm(p)
    expected, norm = p / np.linalg.norm(p), np.linalg.norm(p)
    assert rot.normalise(p) == pytest.approx(norm, rel=4 * EPS)
    assert p == pytest.approx(expected, abs=4 * EPS)
    assert abs(np.linalg.norm(p) - 1) <= 2 * EPS


@numba.njit
def spin(q, w, n):
    """A user's function: kernels take slices, and write where they read."""
    worst = 0.0
    for _ in range(n):
        rot.advance(q[3:], w, q[3:])
        worst = max(worst, abs(np.sqrt((q[3:] ** 2).sum()) - 1.0))
    return worst


def test_a_million_steps_stay_on_the_sphere_and_on_the_exact_rotation():
    q, w, n = np.array([7.0, 8.0, 9.0, 1.0, 0.0, 0.0, 0.0]), np.array([1e-3, -2e-3, 5e-4]), 1_000_000
    assert spin(q, w, n) <= 4 * EPS
    exact = written(rot.exp_quaternion, 4, n * w)
    assert abs(exact @ q[3:]) >= 1 - 1e-15
    assert np.linalg.norm(q[3:] * np.sign(exact @ q[3:]) - exact) <= n * EPS
    assert list(q[:3]) == [7, 8, 9]
