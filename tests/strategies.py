"""hypothesis strategies: linear complementarity problems by the property that solvers rely on."""

from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st


class Problem(NamedTuple):
    """``w = M z + q``, ``0 <= z ⟂ w >= 0``; rows marked in ``equation`` ask ``w = 0``, their z is free."""

    M: np.ndarray
    q: np.ndarray
    equation: np.ndarray
    kind: str


def examples(number):
    """The same examples in every run, without a deadline (the first call compiles)."""
    return settings(max_examples=number, deadline=None, derandomize=True)


def _positive_definite(rng, n):
    A = rng.normal(size=(n, n))
    return A @ A.T / n + 0.5 * np.eye(n), rng.normal(size=n)


def _p_unsymmetric(rng, n):
    M, q = _positive_definite(rng, n)
    A = rng.normal(size=(n, n))
    return M + A - A.T, q


def _m_matrix(rng, n):
    """Nonpositive off the diagonal, strictly diagonally dominant."""
    B = rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.5)
    np.fill_diagonal(B, 0.0)
    return np.diag(0.3 + B.sum(axis=1)) - B, rng.normal(size=n)


def _redundant(rng, n):
    """``M = H H^T`` of lower rank and ``q = H v``: what the contacts of a few bodies give; z is not unique, H^T z is."""
    rank = int(rng.integers(1, n + 1))
    H = rng.normal(size=(n, rank))
    return H @ H.T, H @ rng.normal(size=rank)


def _degenerate(rng, n):
    """Redundant, in small integers: repeated rows, equal ratios, z_i = w_i = 0."""
    H = rng.integers(-1, 2, size=(n, int(rng.integers(1, n + 1)))).astype(float)
    H[~H.any(axis=1), 0] = 1.0
    H = H[rng.integers(0, n, size=n)]
    return H @ H.T, H @ rng.integers(-2, 3, size=H.shape[1]).astype(float)


def _optimality_conditions(rng, n):
    """Positive semidefinite, zeros on the diagonal: ``[[P, C], [-C^T, 0]]``, q such that there is a solution."""
    m = n // 2
    P, C = rng.normal(size=(n - m, n - m)), rng.normal(size=(n - m, m))
    M = np.block([[P @ P.T, C], [-C.T, np.zeros((m, m))]])
    pressing = rng.uniform(size=n) < 0.5
    return M, np.where(pressing, 0.0, rng.uniform(size=n)) - M @ np.where(pressing, rng.uniform(size=n), 0.0)


KINDS = {
    "positive definite": _positive_definite,
    "unsymmetric P": _p_unsymmetric,
    "M-matrix": _m_matrix,
    "redundant": _redundant,
    "degenerate": _degenerate,
    "optimality conditions": _optimality_conditions,
}
P_KINDS = ("positive definite", "unsymmetric P", "M-matrix")


@st.composite
def problems(draw, kinds=tuple(KINDS), largest=8, equations=False):
    """A problem that has a solution, and exactly one where its kind is in P_KINDS."""
    kind, n = draw(st.sampled_from(kinds)), draw(st.integers(1, largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    M, q = KINDS[kind](rng, n)
    equation = rng.uniform(size=n) < 0.4 if equations else np.zeros(n, bool)
    return Problem(M, q, equation, kind)


generators = st.integers(0, 2**32 - 1).map(np.random.default_rng)
