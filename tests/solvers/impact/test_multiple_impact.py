"""The law of multiple impacts: exact limits, twins, and what holds for every impact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds.solvers import SolverError, solve_multiple_impact
from nsds.status import CONVERGED, MAX_ITER
from tests.paths import ANALYSIS
from tests.reference_impact import deformation_form, impulse_form
from tests.strategies import examples, generators

THREE = {"M": np.eye(3), "H": [[-1, 1, 0], [0, -1, 1]], "v": [1, 0, 0]}
# exponent, e, K_2/K_1, velocities of three equal balls, the first of which hits the others at rest
THREE_BALLS = [
    (1.0, 1.0, 1.0, [-0.130261695064521047, 0.150229569434774089, 0.980032125629746958]),  # in closed form
    (1.5, 1.0, 1.0, [-0.070952353651, 0.076403039071, 0.994549314580]),
    (1.5, 0.5, 1.0, [0.209235475220, 0.218779442186, 0.571985082594]),  # the first contact closes twice
]
CHAIN_OF_TEN = [-0.071085, -0.030274, -0.015833, -0.008886, -0.005127, -0.002986, -0.001738, 0.002672, 0.147390, 0.985866]
COLUMN_OF_TEN = [0.198625, 0.456451, 0.537309, 0.863249, 1.001626, 1.032083, 1.069736, 1.136763, 1.268322, 1.553914]


def chain(n):
    """Directions of the contacts of n balls in a row."""
    return np.diff(np.eye(n), axis=0)


def random_impact(rng):
    """M, H, v, e, stiffness, exponent of an impact that ends: some velocity opens all contacts."""
    n = int(rng.integers(1, 6))
    m = int(rng.integers(1, n + 1))
    while True:
        H, half = rng.normal(size=(m, n)), np.eye(n) + 0.3 * rng.normal(size=(n, n))
        W = H @ np.linalg.solve(half @ half.T, H.T)
        if np.linalg.cond(W) < 50:
            break
    e = rng.choice([1.0, 0.0, 0.5, 0.9, rng.uniform(0.05, 1)], m)
    return half @ half.T, H, rng.normal(size=n), e, 10 ** rng.uniform(-1, 1, m), rng.choice([1.0, 1.5, rng.uniform(1, 2.5)])


@pytest.mark.parametrize(("exponent", "e", "ratio", "wanted"), THREE_BALLS)
def test_three_balls(exponent, e, ratio, wanted):
    s = solve_multiple_impact(**THREE, e=e, stiffness=[1.0, ratio], exponent=exponent)
    np.testing.assert_allclose(s.v, wanted, rtol=0, atol=1e-9)
    assert abs(s.v.sum() - 1.0) < 1e-12
    np.testing.assert_allclose(s.P, [1.0 - s.v[0], s.v[2]], rtol=0, atol=1e-12)


@pytest.mark.reference
@pytest.mark.skipif(not ANALYSIS.is_dir(), reason="the collection is not part of the package")
def test_three_balls_in_full():
    with np.load(ANALYSIS / "lzb_three_balls" / "ref.npz") as file:
        rows = np.array([file[name] for name in ("eta", "e", "k2", "v1", "v2", "v3", "p1", "p2")]).T
    assert len(rows) == 24
    for exponent, e, ratio, *wanted in rows:
        s = solve_multiple_impact(**THREE, e=e, stiffness=[1.0, ratio], exponent=exponent)
        np.testing.assert_allclose([*s.v, *s.P], wanted, rtol=0, atol=1e-8)


def test_cradle_and_column_of_ten_balls():
    """Limits of Hertz's chain: a ball that hits nine at rest; a column that falls on a wall sqrt(2) times as stiff as its contacts."""
    s = solve_multiple_impact(np.eye(10), chain(10), np.eye(10)[0], 1.0, exponent=1.5)
    np.testing.assert_allclose(s.v, CHAIN_OF_TEN, rtol=0, atol=1e-6)
    H, stiffness = np.vstack([np.eye(10)[0], chain(10)]), [np.sqrt(2.0), *[1.0] * 9]
    s = solve_multiple_impact(np.eye(10), H, np.full(10, -0.1 * np.sqrt(98.1)), 1.0, stiffness, 1.5)
    np.testing.assert_allclose(s.v, COLUMN_OF_TEN, rtol=0, atol=2e-6)


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_twin_in_the_form_of_impulses(exponent):
    """The distributing law of the papers, marched in steps of impulse, tends to the same velocities."""
    H = np.vstack([np.eye(3)[0], chain(3)])
    W, u, e, stiffness = H @ H.T, H @ [-1.0, -1.5, -2.0], np.array([0.9, 0.7, 0.8]), np.array([2.0, 1.0, 0.5])
    s = solve_multiple_impact(W=W, u=u, e=e, stiffness=stiffness, exponent=exponent)
    for dP in (1e-2, 1e-3):
        found, P = impulse_form(W, u, stiffness, exponent, e, dP)
        np.testing.assert_allclose(found, s.u, rtol=0, atol=5 * dP)
        np.testing.assert_allclose(P, s.P, rtol=0, atol=5 * dP)


@pytest.mark.parametrize("seed", range(6))
def test_twin_in_the_form_of_deformations(seed):
    """Same velocities by SciPy's integrator; a contact gives back the part e^2 of the work that it took."""
    M, H, v, e, stiffness, exponent = random_impact(np.random.default_rng(seed))
    e = np.maximum(e, 0.2)
    W = H @ np.linalg.solve(M, H.T)
    u, P, absorbed, released = deformation_form(W, H @ v, stiffness, exponent, e)
    s = solve_multiple_impact(M, H, v, e, stiffness, exponent)
    np.testing.assert_allclose(s.u, u, rtol=0, atol=2e-8)
    np.testing.assert_allclose(s.P, P, rtol=0, atol=2e-8 * (1 + P.max()))
    np.testing.assert_allclose(released, e**2 * absorbed, rtol=0, atol=1e-8)


@given(generators)
@examples(60)
def test_what_holds_for_every_impact(rng):
    """u+ >= 0, P >= 0, momentum; energy never grows, is kept for e = 1; only ratios of stiffnesses, u and the order of contacts count."""
    M, H, v, e, stiffness, exponent = random_impact(rng)
    s = solve_multiple_impact(M, H, v, e, stiffness, exponent)
    size = abs(H @ v).max()
    assert s.success
    assert (s.u >= -2e-11 * size).all()
    assert (-1e-11 * s.P.max() <= s.P).all()
    np.testing.assert_allclose(M @ (s.v - v), H.T @ s.P, rtol=0, atol=1e-12 * (1 + abs(M @ v).max() + s.P.max()))
    before, after = v @ M @ v, s.v @ M @ s.v
    assert after <= before * (1 + 1e-9)
    lossless = solve_multiple_impact(M, H, v, 1.0, stiffness, exponent)
    assert lossless.v @ M @ lossless.v == pytest.approx(before, rel=1e-8)
    exact = {"rtol": 0, "atol": 1e-8 * size}
    np.testing.assert_allclose(solve_multiple_impact(M, H, 2 * v, e, stiffness, exponent).u, 2 * s.u, **exact)
    np.testing.assert_allclose(solve_multiple_impact(M, H, v, e, 2 * stiffness, exponent).u, s.u, **exact)
    order = rng.permutation(len(H))
    again = solve_multiple_impact(M, H[order], v, e[order], stiffness[order], exponent)
    np.testing.assert_allclose(again.u, s.u[order], **exact)


@given(st.floats(0.0, 1.0), st.floats(0.01, 100.0), st.floats(1.0, 3.0))
@examples(30)
def test_contacts_that_do_not_meet_obey_newtons_law(e, stiffness, exponent):
    s = solve_multiple_impact(W=np.diag([2.0, 0.5, 1.0]), u=[-1.0, -3.0, 2.0], e=e, stiffness=[stiffness, 1.0, 1.0], exponent=exponent)
    np.testing.assert_allclose(s.u, [e, 3.0 * e, 2.0], rtol=1e-15)
    np.testing.assert_allclose(s.P, [(1 + e) / 2, 6.0 * (1 + e), 0.0], rtol=1e-15)


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_without_restitution_all_stay_together(exponent):
    s = solve_multiple_impact(np.eye(4), chain(4), [3.0, 1.0, 0.5, -2.0], 0.0, [1.0, 5.0, 0.3], exponent)
    np.testing.assert_allclose(s.v, 0.625, rtol=0, atol=1e-10)


def test_a_long_chain_does_not_stumble_over_forces_that_are_noise():
    """Far contacts of a chain feel forces of 1e-30."""
    s = solve_multiple_impact(np.eye(40), chain(40), np.eye(40)[0], 0.9)
    assert s.status == CONVERGED
    assert s.u.min() > -1e-10
    assert s.v.sum() == pytest.approx(1.0, abs=1e-12)


def test_no_impact_and_one_that_never_ends():
    s = solve_multiple_impact(W=np.eye(2), u=[0.0, 1.0], e=1.0)
    assert (s.u.tolist(), s.P.tolist(), s.n_iter) == ([0.0, 1.0], [0.0, 0.0], 0)
    between_walls = {"M": [[1.0]], "H": [[1.0], [-1.0]], "v": [1.0]}
    assert solve_multiple_impact(**between_walls, e=0.5).v == pytest.approx([0.0], abs=1e-10)
    assert solve_multiple_impact(**between_walls, e=1.0, on_failure="continue").status == MAX_ITER
    with pytest.raises(SolverError, match="does not end"):
        solve_multiple_impact(**between_walls, e=1.0)


GOOD = {**THREE, "e": 0.5}
BAD = [
    ({"M": None}, ValueError, "give M, H and v, or W and u"), ({"W": np.eye(2)}, ValueError, "give M, H and v, or W and u"),
    ({"M": np.diag([1.0, 1.0, -1.0])}, ValueError, "M must be positive definite"),
    ({"M": np.eye(3) + np.eye(3, k=1)}, ValueError, "M must be symmetric"), ({"M": np.eye(2)}, ValueError, "M must have shape"),
    ({"H": [[1.0]]}, ValueError, "H must have 3 columns"), ({"v": [[1.0]]}, ValueError, "v must be an array of 1"),
    ({"v": [np.nan, 0, 0]}, ValueError, "v must be finite"), ({"e": None}, TypeError, "e must be an array"),
    ({"e": 1.1}, ValueError, r"e must be in \[0, 1\]"), ({"e": [0.5]}, ValueError, "e must be a number or have shape"),
    ({"stiffness": 0.0}, ValueError, "stiffness must be positive"), ({"stiffness": [1, -1]}, ValueError, "stiffness must be in"),
    ({"stiffness": "a"}, TypeError, "stiffness must be an array"), ({"exponent": 0.5}, ValueError, "exponent must be in"),
    ({"exponent": [1.0]}, ValueError, "exponent must be a number"), ({"tol": 0.0}, ValueError, "tol must be above"),
    ({"on_failure": "no"}, ValueError, "on_failure must be"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "words"), BAD)
def test_bad_inputs_are_named(change, error, words):
    with pytest.raises(error, match=f"solve_multiple_impact: {words}"):
        solve_multiple_impact(**GOOD | change)
