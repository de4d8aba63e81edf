"""Sparse LU factors of planned patterns against SuperLU and dense NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import splu

from nsds.maths import sparse_lu
from tests.strategies import examples

seeds = st.integers(0, 2**32 - 1)


def line(n):
    return sp.diags_array([-np.ones(n - 1), np.full(n, 2.1), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()


def plane(k):
    return (sp.kron(line(k), sp.eye_array(k)) + sp.kron(sp.eye_array(k), line(k))).tocsr()


def solved(A, b, plan):
    """(x, backward error, perturbed pivots, row of the first) by the kernels; memory of others lies around theirs and stays."""
    A, n = sp.csr_array(A), b.size
    A.sum_duplicates()
    np.testing.assert_array_equal(A.indices, plan.column)
    work = np.concatenate([[7.0], A.data, b, np.full(n, np.nan), np.full(plan.size, np.nan), [8.0]])
    iwork = np.concatenate([[7], plan.index, [8]])
    at_b = 1 + plan.nnz
    weak = sparse_lu.factorise(1, at_b + 2 * n, 1, work, iwork)
    error = sparse_lu.solve(1, at_b + 2 * n, 1, at_b, at_b + n, work, iwork)
    np.testing.assert_array_equal(work[at_b : at_b + n], b)
    assert (work[0], work[-1], iwork[0], iwork[-1]) == (7.0, 8.0, 7, 8)
    return work[at_b + n : at_b + 2 * n], error, weak, sparse_lu.weak_row(1, iwork)


def random_matrix(rng, n):
    """Unsymmetric, with a full diagonal that dominates its row, and units of rows and columns that differ."""
    A = np.where(rng.uniform(size=(n, n)) < rng.uniform(0, 4) / n, rng.normal(size=(n, n)), 0.0)
    np.fill_diagonal(A, 0.0)
    A += np.diag((0.5 + abs(A).sum(axis=1)) * rng.choice([-1.0, 1.0], n))
    return A * 10.0 ** rng.uniform(-3, 3, (n, 1)) * 10.0 ** rng.uniform(-3, 3, n)


def saddle(rng, n, m):
    """``[[M, H^T], [H, 0]]`` with M positive definite and independent rows of H that may share unknowns."""
    M = random_matrix(rng, n)
    M = abs(np.diag(M)).min() * np.eye(n) + M @ M.T
    M = np.where(abs(M) > 0, M, 0.0)
    H = np.where(rng.uniform(size=(m, n)) < 2.0 / n, rng.normal(size=(m, n)), 0.0)
    H[np.arange(m), rng.permutation(n)[:m]] += 3.0
    return M, H


@examples(60)
@given(seeds)
def test_solutions_are_those_of_superlu(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    A, b = sp.csc_array(random_matrix(rng, n)), rng.normal(size=n)
    x, error, weak, row = solved(A, b, sparse_lu.plan(A))
    assert (weak, row) == (0, -1)
    assert error <= 1e-15
    unit = abs(splu(A).solve(b)) + 1e-300
    np.testing.assert_allclose(x / unit, splu(A).solve(b) / unit, rtol=0, atol=1e-8)


@examples(60)
@given(seeds)
def test_rows_are_permuted_until_the_diagonal_is_full(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    A = sp.csr_array(random_matrix(rng, n)[rng.permutation(n)])
    _, error, weak, _ = solved(A, rng.normal(size=n), sparse_lu.plan(A))
    assert weak == 0
    assert error <= 1e-13


@examples(60)
@given(seeds)
def test_saddle_points_have_pivots_whatever_is_active(seed):
    """Rows of inactive constraints are those of the identity; one plan serves all active sets."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    m = int(rng.integers(1, n + 1))
    M = np.eye(n) + plane(7).toarray()[:n, :n]
    _, H = saddle(rng, n, m)
    pattern = sp.block_array([[sp.csr_array(M), sp.csr_array(H.T)], [sp.csr_array(H), sp.eye_array(m)]]).tocsr()
    plan = sparse_lu.plan(pattern, last_after=np.arange(n, n + m))
    for _ in range(3):
        active = rng.uniform(size=m) < 0.6
        dense = np.block([[M, H.T], [active[:, None] * H, np.diag(1.0 - active)]])
        A = sp.csr_array(pattern)
        A.data = dense[np.repeat(np.arange(n + m), np.diff(plan.row)), plan.column]
        b = rng.normal(size=n + m)
        x, error, weak, _ = solved(A, b, plan)
        assert weak == 0
        assert error <= 1e-14
        np.testing.assert_allclose(dense @ x, b, rtol=0, atol=1e-12 * abs(dense).sum(axis=1).max() * abs(x).max())


@pytest.mark.parametrize(("matrix", "fill"), [(line(3000), 2), (plane(40), 40)])
def test_lines_and_planes_fill_little(matrix, fill):
    plan = sparse_lu.plan(matrix)
    assert plan.fill <= fill * matrix.shape[0]
    b = np.random.default_rng(0).normal(size=matrix.shape[0])
    x, error, _, _ = solved(matrix, b, plan)
    assert error <= 1e-15
    np.testing.assert_allclose(matrix @ x, b, rtol=0, atol=1e-13)


def test_a_relay_on_each_node_of_a_line_stays_a_line():
    n = 2000
    identity = sp.eye_array(n)
    A = sp.block_array([[line(n), -identity], [identity, None]]).tocsr()
    plan = sparse_lu.plan(A, last_after=np.arange(n, 2 * n))
    assert plan.fill <= 4 * 2 * n
    _, error, weak, _ = solved(A, np.ones(2 * n), plan)
    assert weak == 0
    assert error <= 1e-15


def test_a_singular_matrix_is_told_with_its_row():
    """One that has a solution gets one; one that has none leaves a residual."""
    A = sp.csr_array([[2.0, -1.0, -1.0], [-1.0, 2.0, -1.0], [-1.0, -1.0, 2.0]])
    plan = sparse_lu.plan(A)
    x, error, weak, row = solved(A, np.array([1.0, 0.0, -1.0]), plan)
    assert weak == 1
    assert 0 <= row < 3
    assert error <= 1e-14
    np.testing.assert_allclose(A @ x, [1.0, 0.0, -1.0], atol=1e-14)
    assert not solved(A, np.array([1.0, 1.0, 1.0]), plan)[1] <= 100 * sparse_lu.SOLVED


def test_a_pivot_that_cancels_is_mended():
    """Regular, but without row exchanges a pivot on the diagonal is rounding."""
    A = sp.csr_array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    b = np.array([1.0, 2.0, 3.0])
    x, error, _, _ = solved(A, b, sparse_lu.plan(A))
    assert error <= 1e-15
    np.testing.assert_allclose(x, np.linalg.solve(A.toarray(), b), rtol=1e-13)


def test_rows_of_a_singular_pattern_are_named():
    A = sp.csr_array(([1.0, 1.0, 1.0, 1.0], ([0, 0, 1, 2], [0, 1, 2, 2])), shape=(3, 3))
    with pytest.raises(sparse_lu.SingularPatternError, match=r"rows \[[12]\]"):
        sparse_lu.plan(A)


def test_stored_zeros_count_and_duplicates_are_one_entry():
    A = sp.coo_array(([1.0, 1.0, 0.0, 2.0], ([0, 0, 0, 1], [0, 0, 1, 1])), shape=(2, 2))
    plan = sparse_lu.plan(A)
    assert plan.nnz == 3
    np.testing.assert_array_equal(plan.row, [0, 2, 3])


def test_what_dies_out_below_the_smallest_numbers_is_no_error():
    """x falls by a factor along a line, until its digits are lost and it vanishes."""
    A, b = line(3000) + 2 * sp.eye_array(3000), np.zeros(3000)
    b[0] = 1e-3
    x, error, _, _ = solved(A, b, sparse_lu.plan(A))
    assert error <= 1e-15
    assert x[-1] == 0.0


def test_nan_is_told():
    A = line(5)
    A.data[3] = np.nan
    assert np.isnan(solved(A, np.ones(5), sparse_lu.plan(A))[1])


def test_no_unknowns():
    plan = sparse_lu.plan(sp.csr_array((0, 0)))
    assert (plan.nnz, plan.fill) == (0, 0)


@examples(40)
@given(seeds)
def test_factors_of_changed_rows_are_those_from_scratch_to_the_bit(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    A = sp.csr_array(random_matrix(rng, n))
    A.sum_duplicates()
    plan = sparse_lu.plan(A)
    work, iwork = np.concatenate([A.data, np.zeros(plan.size)]), plan.index.copy()
    sparse_lu.factorise(0, plan.nnz, 0, work, iwork)
    m = plan.fill // 2
    for _ in range(4):
        # some rows change, and one of them becomes singular, or is no longer
        for i in rng.choice(n, int(rng.integers(0, 3))):
            row = slice(plan.row[i], plan.row[i + 1])
            work[row] = rng.choice([0.0, 1.0]) * A.data[row] * rng.normal(size=row.stop - row.start)
        weak = sparse_lu.factorise(0, plan.nnz, 0, work, iwork)
        again, index = np.concatenate([work[: plan.nnz], np.zeros(plan.size)]), plan.index.copy()
        assert weak == sparse_lu.factorise(0, plan.nnz, 0, again, index)
        assert sparse_lu.weak_row(0, iwork) == sparse_lu.weak_row(0, index)
        np.testing.assert_array_equal(work[plan.nnz : plan.nnz + 2 * m + n], again[plan.nnz : plan.nnz + 2 * m + n])
    # nothing has changed
    sparse_lu.factorise(0, plan.nnz, 0, work, iwork)
    assert sparse_lu.effort(0, iwork) == plan.fill + n


def test_a_change_is_followed_as_far_as_factors_feel_it():
    """Pivots of a line forget those far before them: a change at one end is not felt at the other."""
    n = 3000
    A = line(n) + 2.0 * sp.eye_array(n)
    plan = sparse_lu.plan(A)
    work, iwork = np.concatenate([sp.csr_array(A).data, np.zeros(plan.size)]), plan.index.copy()
    sparse_lu.factorise(0, plan.nnz, 0, work, iwork)
    of_all = sparse_lu.effort(0, iwork) - plan.fill - n
    work[0] *= 2.0
    sparse_lu.factorise(0, plan.nnz, 0, work, iwork)
    assert 0 < sparse_lu.effort(0, iwork) - plan.fill - n < 0.05 * of_all


@pytest.mark.parametrize("width", [1, 3])
def test_a_full_band_is_eliminated_in_its_order_and_fills_in_nothing(width):
    n = 40
    band = sp.diags_array([np.ones(n - abs(k)) for k in range(-width, width + 1)], offsets=range(-width, width + 1))
    plan = sparse_lu.plan(band + 9.0 * sp.eye_array(n))
    assert plan.fill == band.nnz - n
    np.testing.assert_array_equal(plan.column, sp.csr_array(band).indices)
    x, error, _, _ = solved(band + 9.0 * sp.eye_array(n), np.ones(n), plan)
    assert error <= 1e-15
    assert (x > 0.0).all()
