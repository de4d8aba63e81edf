"""Poisson's law: known impacts, its definition, and what holds for every impact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds.solvers import solve_lcp, solve_poisson_impact
from tests.reference_impact import poisson
from tests.solvers.impact.test_multiple_impact import THREE, chain, random_impact
from tests.strategies import examples, generators


def by_two_problems(W, u, e):
    """The law by two complementarity problems that are solved by enumeration."""
    P_C = solve_lcp(W, u, method="enumerate").z
    u_C = u + W @ P_C
    P_E = e * P_C + solve_lcp(W, u_C + W @ (e * P_C), method="enumerate").z
    return u_C + W @ P_E, P_C + P_E


def test_known_impacts():
    """A cradle of three balls; one that hits a wall; a ball that is thrown between two which move apart."""
    assert solve_poisson_impact(**THREE, e=1.0).v == pytest.approx([-1 / 3, 2 / 3, 2 / 3])
    s = solve_poisson_impact(W=[[0.5]], u=[-2.0], e=0.3)
    assert (s.u.item(), s.P.item(), s.v) == (pytest.approx(0.6), pytest.approx(5.2), None)
    s = solve_poisson_impact(np.eye(4), chain(4), [1.0, 0.0, 0.0, -1.0], 1.0)  # compression ends at rest: all impulses are returned
    np.testing.assert_allclose(s.v, [-1.0, 0.0, 0.0, 1.0], rtol=0, atol=1e-12)


@given(generators, st.booleans())
@examples(60)
def test_what_holds_for_every_impact(rng, is_common):
    """The definition; u+ >= 0, momentum; the energy does not grow with one e for all; without restitution the plastic impact."""
    M, H, v, e, *_ = random_impact(rng)
    e = np.full(len(H), e[0]) if is_common else e
    W, u = H @ np.linalg.solve(M, H.T), H @ v
    s = solve_poisson_impact(M, H, v, e)
    wanted, P = by_two_problems(W, u, e)
    np.testing.assert_allclose(s.u, wanted, rtol=0, atol=1e-8 * abs(u).max())
    np.testing.assert_allclose(s.P, P, rtol=0, atol=1e-8 * (1 + P.max()))
    assert (s.u >= -1e-9 * abs(u).max()).all()
    np.testing.assert_allclose(M @ (s.v - v), H.T @ s.P, rtol=0, atol=1e-11 * (1 + abs(M @ v).max() + P.max()))
    if is_common:
        assert s.v @ M @ s.v <= v @ M @ v * (1 + 1e-9)
    plastic = solve_poisson_impact(M, H, v, 0.0)
    np.testing.assert_allclose(plastic.P, solve_lcp(W, u).z, rtol=0, atol=1e-8 * (1 + P.max()))


def inclined_rod(u_t, e, mu, angle=np.pi / 4):
    """W and u of a slender rod of mass and length 1 that falls on its end with speed 1, inclined."""
    arm = 0.5 * np.array([-np.cos(angle), np.sin(angle)])
    return np.eye(2) + 12 * np.outer(arm, arm), np.array([-1.0, u_t]), e, mu


@pytest.mark.parametrize(("u_t", "mu", "slips"), [(-0.2, 1.0, False), (2.0, 0.2, True)])
def test_a_rod_that_falls_on_its_end(u_t, mu, slips):
    """In closed form: its end sticks in both phases, or slips one way in both."""
    W, u, e, mu = inclined_rod(u_t, 0.5, mu)
    if slips:
        pull = np.array([1.0, -mu])
        normal = 1.0 / (W[0] @ pull)
        P = (1 + e) * normal * pull
    else:
        P = np.linalg.solve(W, -u)
        given_back = e * P[0]
        P = P + given_back * np.array([1.0, -W[1, 0] / W[1, 1]])
    s = solve_poisson_impact(W=W, u=u, e=e, mu=mu, dimension=2)
    np.testing.assert_allclose(s.P, P, rtol=1e-9)
    np.testing.assert_allclose(s.u, u + W @ P, rtol=0, atol=1e-9)
    assert (s.u[1] > 0.1) if slips else abs(s.u[1]) < 1e-9


def test_friction_may_turn_between_the_phases():
    """The rod sticks in compression, for which friction has to push one way, and in expansion the other way: so much is no one slip."""
    W, u, e, mu = inclined_rod(0.7, 1.0, 1.0)
    s = solve_poisson_impact(W=W, u=u, e=e, mu=mu, dimension=2)
    P_C = np.linalg.solve(W, -u)
    np.testing.assert_allclose(s.P - P_C, e * P_C[0] * np.array([1.0, -W[1, 0] / W[1, 1]]), rtol=1e-8)
    assert P_C[1] < 0.0 < s.P[1] - P_C[1]
    assert abs(s.u[1]) < 1e-9


@given(generators, st.integers(2, 3))
@examples(60)
def test_what_holds_for_every_impact_with_friction(rng, d):
    """u+ >= 0, P in its cone, momentum; the energy does not grow with one e; the twin where friction is moderate, so that it is unique."""
    nc = int(rng.integers(1, 4))
    H, half = rng.normal(size=(nc * d, nc * d + 2)), np.eye(nc * d + 2) + 0.2 * rng.normal(size=(nc * d + 2, nc * d + 2))
    M, v, is_moderate = half @ half.T, rng.normal(size=nc * d + 2), bool(rng.integers(2))
    mu, e = rng.uniform(0.0, 0.2 if is_moderate else 1.5, nc), np.full(nc, rng.choice([0.0, 1.0, rng.uniform()]))
    s = solve_poisson_impact(M, H, v, e, mu, dimension=d, on_failure="continue")
    size = abs(H @ v).max()
    if not s.success and not is_moderate:
        return  # large friction may leave no solution
    assert s.success
    assert (s.u[::d] >= -1e-8 * size).all()
    normal, tangential = s.P[::d], np.linalg.norm(s.P.reshape(nc, d)[:, 1:], axis=1)
    assert (normal >= -1e-9 * (1 + s.P.max())).all()
    assert (tangential <= mu * normal + 1e-8 * (1 + s.P.max())).all()
    np.testing.assert_allclose(M @ (s.v - v), H.T @ s.P, rtol=0, atol=1e-10 * (1 + abs(M @ v).max() + abs(s.P).max()))
    assert s.v @ M @ s.v <= v @ M @ v * (1 + 1e-8)
    if is_moderate:
        wanted, P = poisson(H @ np.linalg.solve(M, H.T), H @ v, e, mu, d)
        np.testing.assert_allclose(s.u, wanted, rtol=0, atol=1e-6 * size)
        np.testing.assert_allclose(s.P, P, rtol=0, atol=1e-5 * (1 + P.max()))


@pytest.mark.parametrize(("change", "error", "words"), [
    ({"e": 2.0}, ValueError, r"e must be in \[0, 1\]"), ({"e": None}, TypeError, "e must be an array"),
    ({"u": [1.0]}, ValueError, "give M, H and v, or W and u"), ({"H": [[1.0]]}, ValueError, "H must have 3 columns"),
    ({"mu": 0.1}, ValueError, "friction wants dimension=2 or 3"), ({"dimension": 4}, ValueError, "dimension must be at most 3"),
    ({"dimension": 3}, ValueError, "dimension=3 wants 3 rows of each contact, got 2 rows"),
    ({"mu": [0.1, 0.1], "dimension": 2}, ValueError, "mu must be a number or have shape"),
    ({"tol": 0.0}, ValueError, "tol must be above"), ({"on_failure": 1}, ValueError, "on_failure must be"),
])  # fmt: skip
def test_bad_inputs_are_named(change, error, words):
    with pytest.raises(error, match=f"solve_poisson_impact: {words}"):
        solve_poisson_impact(**{**THREE, "e": 0.5} | change)
