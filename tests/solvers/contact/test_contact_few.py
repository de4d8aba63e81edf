"""Few contacts in the plane, solved directly: against enumeration, with the merit of all methods, and what it leaves to others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds.solvers import table
from nsds.solvers.contact import few
from nsds.solvers.contact.signature import EQUATION, N_INFO, Options, Problem, merit
from nsds.status import CONVERGED, UNSUITED
from tests.strategies import examples, generators

OPTIONS = Options(1e-10, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-4, 0.1)


def problem(rng, n, symmetric=True, rows=None):
    """n contacts, rows without friction and equations, all of them linked; W (2 n, 2 n)."""
    disk = rng.choice([EQUATION, 0, 1, 1, 1], size=n)
    H = rng.normal(size=(2 * n, rows or 2 * n + 1))
    W = H @ H.T + (0.1 * np.eye(2 * n) if rows is None else 0.0)
    if not symmetric:
        W += 0.2 * rng.normal(size=W.shape)
    q, mu = rng.normal(size=2 * n), np.zeros(2 * n)
    mu[::2] = np.where(disk == 1, rng.choice([0.0, 0.2, 0.6], size=n), 0.0)
    for c in np.flatnonzero(disk == 0):
        i = 2 * c + 1
        W[i] = W[:, i] = q[i] = 0.0
        W[i, i] = W[i - 1, i - 1]
    blocks = W.reshape(n, 2, n, 2).transpose(0, 2, 1, 3).reshape(-1).copy()
    return Problem(disk, mu, np.arange(n + 1) * n, np.tile(np.arange(n), n), blocks, q)


def solved(kernel, room, problem, r):
    """(status, r, u, info) of one call."""
    r, u, info = r.copy(), np.zeros(r.size), np.zeros(N_INFO)
    status = kernel(problem, OPTIONS, r, u, info, np.full(max(room[0], 1), np.nan), np.full(max(room[1], 1), -7))
    return status, r, u, info


@pytest.mark.parametrize("symmetric", [True, False])
@examples(300)
@given(rng=generators, n=st.integers(1, few.LARGEST), warm=st.booleans())
def test_it_finds_what_enumeration_finds(symmetric, rng, n, warm):
    given_ = problem(rng, n, symmetric)
    method = table.find("enumerate", "fc2d")
    known, wanted, _, _ = solved(method.kernel, method.work_size(2, *given_[2:4]), given_, np.zeros(2 * n))
    guess = wanted + 1e-3 * rng.normal(size=2 * n) if warm else np.zeros(2 * n)
    status, r, u, info = solved(few.few, few.room(), given_, guess)
    assert status in (CONVERGED, UNSUITED)
    if status == UNSUITED:
        np.testing.assert_array_equal(r, guess)
        return
    fresh = np.zeros(2 * n)
    error = merit(False, given_, r, fresh)
    assert info[1] == pytest.approx(error, rel=1e-6, abs=1e-15)
    assert error <= OPTIONS.tol
    np.testing.assert_allclose(u, fresh, atol=1e-12)
    if known == CONVERGED and symmetric and given_[1].max() == 0.0:  # without friction u is unique
        _, _, other, _ = solved(method.kernel, method.work_size(2, *given_[2:4]), given_, np.zeros(2 * n))
        np.testing.assert_allclose(u, other, atol=1e-7)


def test_most_problems_need_nothing_else():
    """From no impulses at all: nine of ten, and a single contact always."""
    rng, failed = np.random.default_rng(1), 0
    for _ in range(300):
        n = int(rng.integers(1, few.LARGEST + 1))
        one = problem(rng, n)
        status, *_ = solved(few.few, few.room(), one, np.zeros(2 * n))
        failed += status != CONVERGED
        assert n > 1 or status == CONVERGED
    assert failed <= 30


def test_what_rounding_hides_and_what_is_redundant_is_left_to_others():
    rng = np.random.default_rng(3)
    for _ in range(50):
        given_ = problem(rng, 4, rows=3)  # more rows than coordinates
        status, r, _, _ = solved(few.few, few.room(), given_, np.zeros(8))
        assert status in (CONVERGED, UNSUITED)
        if status == CONVERGED:
            assert merit(True, given_, r, np.zeros(8)) <= 1e-9
    disk, mu, row, column, W, q = problem(rng, 1)
    status, *_ = solved(few.few, few.room(), Problem(np.array([1]), np.array([0.3, 0]), row, column, 0 * W, q - 10), np.zeros(2))
    assert status == UNSUITED  # nothing can be pushed
    for strange in (1e-200 * q, np.full(2, np.nan), np.full(2, -np.inf)):
        status, *_ = solved(few.few, few.room(), Problem(disk, mu, row, column, W, strange), np.zeros(2))
        assert status == UNSUITED
