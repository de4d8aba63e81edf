"""Factors of sparse matrices, and matrices that have none."""

import numpy as np
import pytest
from scipy.sparse import csc_array, diags_array, random_array

from nsds.maths.superlu import factorise


def test_factors_solve():
    rng = np.random.default_rng(1)
    for zeros in (0, 1):  # on the diagonal
        A = (random_array((30, 30), density=0.1, rng=rng) + diags_array(np.r_[np.zeros(zeros), np.ones(30 - zeros)])).tolil()
        A[0, 1] = A[1, 0] = 1.0
        A = A.tocsc()
        b = rng.normal(size=30)
        assert abs(A @ factorise(A).solve(b) - b).max() <= 1e-10 * abs(b).max()


def test_patterns_without_a_full_diagonal_are_refused():
    """21 rows of 40 share 20 columns: no order of rows fills the diagonal with entries. Stored zeros are none."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        A = np.zeros((40, 40))
        A[:21, :20] = rng.normal(size=(21, 20))
        A[21:] = rng.normal(size=(19, 40)) * (rng.random((19, 40)) < 0.3)
        rows, columns = np.indices(A.shape)
        for matrix in (csc_array(A), csc_array((A.ravel(), (rows.ravel(), columns.ravel()))), csc_array(A.T)):
            with pytest.raises(RuntimeError, match="singular"):
                factorise(matrix)
