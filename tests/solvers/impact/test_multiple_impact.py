"""The law of multiple impacts: exact limits, twins, and what holds for every impact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds.solvers import SolverError, solve_multiple_impact
from nsds.status import CONVERGED, MAX_ITER
from tests.paths import ANALYSIS
from tests.reference_impact import deformation_form, impulse_form, small_steps, stronge
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


def with_friction(rng, d, most=0.7):
    """W, u, e, mu, stiffness, exponent of a few contacts of d rows."""
    nc = int(rng.integers(1, 4))
    H = rng.normal(size=(nc * d, nc * d + 2))
    mu, e = rng.uniform(0, most, nc), rng.choice([1.0, 0.5, rng.uniform(0.3, 1)], nc)
    return H @ H.T / (nc * d), rng.normal(size=nc * d), e, mu, 10 ** rng.uniform(-0.5, 0.5, nc), rng.choice([1.0, 1.5])


@given(generators)
@examples(60)
def test_one_contact_with_friction_has_stronges_restitution(rng):
    """In closed form: slip, its end, stick or slip the other way, whatever the force law is."""
    half = rng.normal(size=(2, 2))
    W, mu, e = half @ half.T + 0.2 * np.eye(2), rng.uniform(0, 1), rng.uniform(0.1, 1)
    if W[0, 0] - mu * abs(W[0, 1]) < 0.05:
        return  # friction that drives a contact into itself
    u = np.array([-rng.uniform(0.2, 1), rng.choice([0.0, rng.normal()])])
    s = solve_multiple_impact(W=W, u=u, e=e, mu=mu, dimension=2, exponent=rng.choice([1.0, 1.5, 2.0]))
    wanted, P = stronge(W, u, e, mu)
    np.testing.assert_allclose(s.u, wanted, rtol=0, atol=1e-8)
    np.testing.assert_allclose(s.P, P, rtol=0, atol=1e-8 * (1 + P.max()))


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_twin_in_small_steps_of_several_contacts_with_friction(seed, d):
    rng = np.random.default_rng(seed)
    W, u, e, mu, stiffness, exponent = with_friction(rng, d, 0.4)
    u[::d] = -abs(u[::d])
    s = solve_multiple_impact(W=W, u=u, e=e, mu=mu, stiffness=stiffness, exponent=exponent, dimension=d)
    errors = [abs(small_steps(W, u, stiffness, exponent, e, mu, d, ds)[0] - s.u).max() for ds in (8e-3, 2e-3)]
    assert errors[1] < 2e-2
    assert errors[1] < 0.5 * errors[0]


@given(generators, st.integers(2, 3))
@examples(60)
def test_what_holds_for_every_impact_with_friction(rng, d):
    """u+ >= 0, impulses in their cones, energy never grows; 2 v and scaled stiffnesses; tangents turned in space."""
    W, u, e, mu, stiffness, exponent = with_friction(rng, d)
    given_, nc = {"e": e, "mu": mu, "exponent": exponent, "dimension": d}, len(mu)
    s = solve_multiple_impact(W=W, u=u, stiffness=stiffness, **given_)
    size, most = abs(u).max(), 1 + s.P.max()
    assert (s.u[::d] >= -1e-9 * size).all()
    tangential = np.linalg.norm(s.P.reshape(nc, d)[:, 1:], axis=1)
    assert (tangential <= mu * s.P[::d] + 1e-7 * most).all()
    assert s.P @ (s.u + u) <= 1e-9 * most
    exact = {"rtol": 0, "atol": (1e-8 if d == 2 else 1e-5) * size}
    np.testing.assert_allclose(solve_multiple_impact(W=W, u=2 * u, stiffness=stiffness, **given_).u, 2 * s.u, **exact)
    np.testing.assert_allclose(solve_multiple_impact(W=W, u=u, stiffness=3 * stiffness, **given_).u, s.u, **exact)
    if d == 3:
        angle = rng.uniform(0, 6)
        turn = np.kron(np.eye(nc), [[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]])
        turned = solve_multiple_impact(W=turn @ W @ turn.T, u=turn @ u, stiffness=stiffness, **given_)
        np.testing.assert_allclose(turned.u, turn @ s.u, **exact)


def test_without_friction_tangents_play_no_part():
    H = chain(3)
    rows = np.zeros((4, 6))
    rows[::2, ::2], rows[1::2, 1::2] = H, H
    s = solve_multiple_impact(np.eye(6), rows, [1, 0.5, 0, 0, 0, 0], 0.5, exponent=1.5, dimension=2)
    plain = solve_multiple_impact(np.eye(3), H, [1, 0, 0], 0.5, exponent=1.5)
    assert s.v[::2].tobytes() == plain.v.tobytes()
    assert s.v[1::2].tolist() == [0.5, 0.0, 0.0]


def test_masses_that_differ_by_turns_take_steps_as_the_square_root_of_their_ratio():
    """A light ball bounces to and fro between heavy ones; a ratio of 1e12 would take ten million steps."""
    steps = []
    for ratio in (1e6, 1e8):
        masses = np.where(np.arange(10) % 2, ratio, 1.0)
        s = solve_multiple_impact(np.diag(masses), chain(10), np.eye(10)[0], 1.0)
        steps.append(s.n_iter)
        assert s.v @ (masses * s.v) == pytest.approx(1.0, rel=1e-8)
    assert 5 < steps[1] / steps[0] < 20
    masses = np.where(np.arange(10) % 2, 1.0, 1e12)
    assert solve_multiple_impact(np.diag(masses), chain(10), np.eye(10)[0], 1.0, on_failure="continue").status == MAX_ITER


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
    ({"mu": 0.5}, ValueError, "friction wants dimension=2 or 3"),
    ({"dimension": 3}, ValueError, "dimension=3 wants 3 rows of each contact, got 2 rows"),
    ({"on_failure": "no"}, ValueError, "on_failure must be"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "words"), BAD)
def test_bad_inputs_are_named(change, error, words):
    with pytest.raises(error, match=f"solve_multiple_impact: {words}"):
        solve_multiple_impact(**GOOD | change)
