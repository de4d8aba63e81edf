"""Products and solves with stored matrices against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nsds.model.layout import DENSE, DIAGONAL, SPARSE
from nsds.schemes.linear_algebra import FRONTS, SingularMatrixError, apply_inverse, inverse_of, invert, invert_in_place, subtract_product
from tests.memories import memory_with
from tests.strategies import examples

seeds = st.integers(0, 2**32 - 1)


def random_matrix(seed, kind, dominant=True):
    """A well-conditioned matrix, in general unsymmetric; sparse ones have structural zeros."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    A = rng.normal(size=(n, n))
    if kind == DIAGONAL:
        A = np.diag(np.diag(A) + np.copysign(0.5, np.diag(A)))
    elif kind == SPARSE:
        A = np.where(rng.uniform(size=(n, n)) < 0.4, A, 0.0)
    if dominant and kind != DIAGONAL:
        A = A + np.diag(1.0 + abs(A).sum(axis=1))
    return A, rng


def stored(A, kind):
    """The words of a matrix in a record: diagonal, rows, or indptr, indices, data as integers and floats side by side."""
    if kind == DIAGONAL:
        return np.diag(A).copy(), 0
    if kind == DENSE:
        return A.reshape(-1).copy(), 0
    rows = sp.csr_array(A)
    integers = np.concatenate([rows.indptr, rows.indices]).astype(np.int64)
    return np.concatenate([integers.view(np.float64), rows.data]), rows.nnz


def inverted(A, kind):
    """Work memory of an inverse; two members and three elements, of which (1, 2) is A."""
    n = len(A)
    if kind == SPARSE:
        matrices = [[sp.csr_array(np.eye(n) * (i + j + 1)) for j in range(3)] for i in range(2)]
        matrices[1][2] = sp.csr_array(A)
    else:
        matrices = np.tile(np.eye(n), (2, 3, 1, 1))
        matrices[1, 2] = A
        matrices = np.diagonal(matrices, axis1=-2, axis2=-1) if kind == DIAGONAL else matrices
    data, index, n_lower, n_upper = invert(kind, matrices)
    return data[1, 2], index[1, 2], n_lower, n_upper


def solve(A, b, kind):
    n = len(A)
    data, index, n_lower, n_upper = inverted(A, kind)
    work = np.concatenate([np.zeros(2), data, b, np.full(2 * n, np.nan)])
    at = 2 + data.size
    iwork = np.concatenate([[7], index]).astype(np.int64)
    apply_inverse(kind, n, n_lower, n_upper, 2, 1, work, iwork, at, at + n, at + 2 * n)
    return work[at + n : at + 2 * n]


@examples(60)
@given(seeds, st.sampled_from([DIAGONAL, DENSE, SPARSE]))
def test_inverse_is_applied(seed, kind):
    A, rng = random_matrix(seed, kind)
    b = rng.normal(size=len(A))
    np.testing.assert_allclose(solve(A, b, kind), np.linalg.solve(A, b), rtol=1e-9, atol=1e-11)


@examples(60)
@given(seeds, st.sampled_from([DIAGONAL, DENSE, SPARSE]), st.floats(-3, 3))
def test_product_is_subtracted(seed, kind, factor):
    A, rng = random_matrix(seed, kind, dominant=False)
    n = len(A)
    words, nnz = stored(A, kind)
    mem = np.concatenate([np.zeros(3), words])
    work = rng.normal(size=2 * n + 1)
    expected = work[n + 1 :] - factor * A @ work[1 : n + 1]
    subtract_product(kind, n, nnz, mem, mem.view(np.int64), 3, factor, work, 1, n + 1)
    np.testing.assert_allclose(work[n + 1 :], expected, atol=1e-12)


def test_sparse_matrix_that_needs_pivoting():
    A = np.array([[0.0, 2, 0, 1], [1, 0, 0, 0], [0, 1, 0, 3], [0, 0, 5, 1e-9]])
    b = np.array([1.0, 2, 3, 4])
    np.testing.assert_allclose(solve(A, b, SPARSE), np.linalg.solve(A, b), rtol=1e-12)


def test_large_dense_matrices():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(80, 80)) + 30 * np.eye(80)
    b = rng.normal(size=80)
    np.testing.assert_allclose(solve(A, b, DENSE), np.linalg.solve(A, b), rtol=1e-9)


def test_factors_of_a_chain_stay_sparse():
    n = 500
    A = sp.diags_array([-np.ones(n - 1), 4 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    _, _, n_lower, n_upper = invert(SPARSE, [[A.tocsr()]])
    assert n_lower + n_upper <= 2.1 * n


@pytest.mark.parametrize("kind", [DIAGONAL, DENSE, SPARSE])
def test_singular_matrices_are_located(kind):
    A = np.diag([1.0, 0.0, 2.0])
    with pytest.raises(SingularMatrixError) as caught:
        inverted(A, kind)
    assert tuple(caught.value.where)[:2] == (1, 2)


def test_nearly_singular_matrices_are_refused():
    with pytest.raises(SingularMatrixError):
        invert(DENSE, np.array([[[[1.0, 1.0], [1.0, 1.0 + 1e-16]]]]))


@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_inverse_in_place_is_that_of_numpy(seed, n):
    """Rows of very different sizes, zeros on the diagonal; a matrix that is singular up to rounding is refused."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-9, 9, (n, 1))
    A[np.diag_indices(n)] *= rng.uniform(size=n) < 0.5
    if np.linalg.cond(A / abs(A).max(axis=1, keepdims=True).clip(1e-300)) > 1e8:
        return
    work = np.concatenate([A.ravel(), abs(A).sum(axis=1)])
    assert invert_in_place(n, 0, n * n, memory_with(work, np.zeros(n, np.int64)), 0)
    np.testing.assert_allclose(work[: n * n].reshape(n, n) @ A, np.eye(n), atol=1e-6)
    A[-1] = -0.5 * A[0] if n > 1 else 0.0
    work = np.concatenate([A.ravel(), abs(A).sum(axis=1)])
    assert not invert_in_place(n, 0, n * n, memory_with(work, np.zeros(n, np.int64)), 0)


@examples(20)
@given(st.integers(0, 2**32 - 1))
def test_inverse_in_place_of_rows_far_from_each_other_keeps_zeros(seed):
    """Blocks in any order of rows and columns: the inverse is that of each block, and zero elsewhere."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, 5)
    n, order, owner = sizes.sum(), rng.permutation(sizes.sum()), np.repeat(np.arange(5), sizes)
    blocks = np.where(owner[:, None] == owner, np.tril(np.triu(rng.normal(size=(n, n)), -1), 1), 0.0) + 4.0 * np.eye(n)
    A = blocks[order][:, order]
    work = np.concatenate([A.ravel(), abs(A).sum(axis=1)])
    assert invert_in_place(n, 0, n * n, memory_with(work, np.zeros(n, np.int64)), 0)
    found = work[: n * n].reshape(n, n)
    np.testing.assert_allclose(found, np.linalg.inv(A), rtol=0, atol=1e-13)
    assert (found[owner[order][:, None] != owner[order]] == 0.0).all()
    A[rng.integers(n), rng.integers(n)] = np.nan
    work = np.concatenate([A.ravel(), abs(A).sum(axis=1)])
    assert not invert_in_place(n, 0, n * n, memory_with(work, np.zeros(n, np.int64)), 0)


def wide_matrices(n_members, n_elements):
    """Symmetric positive definite matrices far from a band, all with one pattern."""
    line = sp.diags_array([np.ones(8), np.full(9, 2.5), np.ones(8)], offsets=[-1, 0, 1])
    cube = sp.kron(sp.kron(line, line), line, format="csr")
    return [[cube + (1.0 + i + 10 * j) * sp.eye_array(cube.shape[0]) for j in range(n_elements)] for i in range(n_members)]


def inverse_of_fields(matrices, last):
    """`inverse_of` a part with these matrices as M."""
    n, rows = matrices[0][0].shape[0], [[matrix.tocsr() for matrix in member] for member in matrices]
    nnz = rows[0][0].nnz
    field = np.dtype([("indptr", np.int64, n + 1), ("indices", np.int64, nnz), ("data", float, nnz)])
    records = np.zeros((len(rows), len(rows[0])), [("M", field)])
    for where in np.ndindex(records.shape):
        for key in ("indptr", "indices", "data"):
            records["M"][key][where] = getattr(rows[where[0]][where[1]], key)
    part = np.zeros((), [(name, np.int64) for name in ("n", "count", "M", "M_kind")])
    part["n"], part["count"], part["M_kind"] = n, len(rows[0]), SPARSE
    return inverse_of(records, part, "body", [(1.0, "M")], "M is singular", last)


@pytest.mark.parametrize("last", [[], [3, 700, 5]])
def test_wide_symmetric_matrices_are_factorised_in_fronts(last):
    matrices = wide_matrices(2, 2)
    kind, data, index, n_lower, n_upper = inverse_of_fields(matrices, last)
    assert kind == FRONTS
    b = np.random.default_rng(0).normal(size=729)
    for where in np.ndindex(2, 2):
        work = np.concatenate([data[where], b, np.zeros(2 * b.size)])
        at = data[where].size
        apply_inverse(kind, b.size, n_lower, n_upper, 0, 0, work, index[where], at, at + b.size, at + 2 * b.size)
        assert abs(matrices[where[0]][where[1]] @ work[at + b.size : at + 2 * b.size] - b).max() < 1e-13


@pytest.mark.parametrize("change", ["unsymmetric", "indefinite"])
def test_other_wide_matrices_have_triangular_factors(change):
    A = wide_matrices(1, 1)[0][0].tolil()
    if change == "unsymmetric":
        A[0, 1] += 0.5
    else:
        A[5, 5] = -4.0
    assert inverse_of_fields([[A.tocsr()]], [3])[0] == SPARSE
