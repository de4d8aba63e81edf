"""Poisson's law: known impacts, its definition, and what holds for every impact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds.solvers import solve_lcp, solve_poisson_impact
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


@pytest.mark.parametrize(("change", "error", "words"), [
    ({"e": 2.0}, ValueError, r"e must be in \[0, 1\]"), ({"e": None}, TypeError, "e must be an array"),
    ({"u": [1.0]}, ValueError, "give M, H and v, or W and u"), ({"H": [[1.0]]}, ValueError, "H must have 3 columns"),
    ({"tol": 0.0}, ValueError, "tol must be above"), ({"on_failure": 1}, ValueError, "on_failure must be"),
])  # fmt: skip
def test_bad_inputs_are_named(change, error, words):
    with pytest.raises(error, match=f"solve_poisson_impact: {words}"):
        solve_poisson_impact(**{**THREE, "e": 0.5} | change)
