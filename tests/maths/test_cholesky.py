"""Nested dissection and factors in dense fronts against dense NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nsds.maths import cholesky
from nsds.maths.dissection import dissect
from tests.strategies import examples

seeds = st.integers(0, 2**32 - 1)


def grid(*shape):
    """Stencil of all neighbours on a grid, corners too: symmetric, positive definite."""
    A = sp.csr_array([[1.0]])
    for m in shape:
        A = sp.kron(A, sp.diags_array([np.ones(m - 1), np.full(m, 2.5), np.ones(m - 1)], offsets=[-1, 0, 1]), format="csr")
    return A


def random_matrix(seed):
    """Positive definite, sparse, in general of several pieces, some unknowns with the neighbours of others."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 160))
    A = np.where(rng.uniform(size=(n, n)) < rng.uniform(0, 3) / n, rng.normal(size=(n, n)), 0.0)
    A = np.kron(A + A.T, np.ones((2, 2))) if rng.uniform() < 0.5 else A + A.T
    A += np.diag(1.0 + abs(A).sum(axis=1))
    A += np.triu(np.where(rng.uniform(size=A.shape) < 0.5 / len(A), 1e-20, 0.0), 1)  # of rounding, on one side
    last = rng.permutation(len(A))[: int(rng.integers(0, len(A) + 1)) if rng.uniform() < 0.7 else 0]
    return A, last, rng


def factors(A, last):
    planned = cholesky.plan(sp.csr_array(A), last)
    data = np.full(planned.size, np.nan)
    return planned, data, cholesky.factorise(sp.csr_array(A), planned, data)


@examples(60)
@given(seeds)
def test_solutions_are_those_of_dense_algebra(seed):
    A, last, rng = random_matrix(seed)
    n, b = len(A), rng.normal(size=len(A)) * (rng.uniform(size=len(A)) < 0.5)
    _, data, index = factors(A, last)
    work, iwork = np.concatenate([[0.5], data, b, np.full(2 * n, np.nan)]), np.concatenate([[7, 7], index])
    at = 1 + data.size
    cholesky.solve(n, 1, 2, work, iwork, at, at + n, at + 2 * n)
    np.testing.assert_allclose(work[at + n : at + 2 * n], np.linalg.solve(A, b), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(work[at : at + n], b)


@examples(40)
@given(seeds)
def test_the_inverse_of_the_last_unknowns_is_kept(seed):
    A, last, rng = random_matrix(seed)
    n = len(A)
    _, data, index = factors(A, last)
    work = np.concatenate([data, np.zeros(n)])
    assert cholesky.keeps_inverse(0, index) == (last.size > 0)
    inverse, wanted = np.linalg.inv(A), np.zeros(n)
    for unknown in rng.permutation(last)[:3]:
        cholesky.add_kept_column(n, 0, 0, int(unknown), 2.0, data.size, work, index)
        wanted[last] += 2.0 * inverse[last, unknown]
    np.testing.assert_allclose(work[data.size :], wanted, rtol=0, atol=1e-13)
    cholesky.clear_kept(n, 0, data.size, work, index)
    assert not work[data.size :].any()


@examples(40)
@given(seeds)
def test_fronts_hold_the_whole_factor(seed):
    """Each unknown is in one front; what elimination fills in lies in the rows below; halves meet only in what separates them."""
    A, last, _ = random_matrix(seed)
    planned = cholesky.plan(sp.csr_array(A), last)
    order = np.concatenate([front.unknowns for front in planned.fronts])
    assert sorted(order) == list(range(len(A)))
    if last.size:
        np.testing.assert_array_equal(planned.fronts[-1].unknowns, last)
    L, end = np.linalg.cholesky(A[np.ix_(order, order)]), 0
    for front, below in zip(planned.fronts, planned.below, strict=True):
        begin, end = end, end + front.unknowns.size
        assert set(np.flatnonzero((L[end:, begin:end] != 0).any(axis=1)) + end) <= set(below)


def test_a_cube_is_cut_through_its_middle():
    """27-point stencil of m^3 points: the last separator has about m^2 points, and the factor far fewer entries than a band."""
    m = 20
    A = grid(m, m, m)
    fronts = dissect(A, np.zeros(0, np.int64))
    assert fronts[-1].unknowns.size <= 1.2 * m**2
    assert cholesky.plan(A, np.zeros(0, np.int64)).size < 0.6 * m**3 * m**2


def test_indefinite_matrices_are_refused():
    A = np.diag(np.ones(60)) + np.diag(np.full(59, 0.7), 1) + np.diag(np.full(59, 0.7), -1)
    with pytest.raises(np.linalg.LinAlgError):
        factors(A, np.arange(3))


@pytest.mark.parametrize(("matrix", "wide"), [(grid(400), False), (grid(30, 40), False), (grid(9, 9, 9), True)])
def test_what_is_far_from_a_band(matrix, wide):
    shuffled = np.random.default_rng(0).permutation(matrix.shape[0])
    assert cholesky.is_wide(matrix[shuffled][:, shuffled]) == wide
