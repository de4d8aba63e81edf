"""Small dense matrices in kernels."""

import numpy as np
import pytest

from nsds.maths.dense import eliminate, invert_6


@pytest.mark.parametrize("seed", range(5))
def test_an_inverse_is_one_also_where_pivots_are_zero(seed):
    A = np.random.default_rng(seed).normal(size=(6, 6))
    A[range(6), range(6)] = 0.0
    inverse = np.zeros(36)
    assert invert_6(A.ravel().copy(), inverse)
    np.testing.assert_allclose(inverse.reshape(6, 6) @ A, np.eye(6), atol=1e-11 * np.linalg.cond(A))


@pytest.mark.parametrize("entry", [0.0, np.nan, np.inf])
def test_a_singular_matrix_has_none(entry):
    A = np.eye(6)
    A[3, 3] = entry
    assert not invert_6(A.ravel(), np.zeros(36))


@pytest.mark.parametrize("n", [1, 4, 6])
def test_elimination_solves_and_names_what_is_singular(n):
    rng = np.random.default_rng(n)
    A, x = np.zeros((6, 6)), rng.normal(size=6)
    A[:n, :n] = rng.normal(size=(n, n))
    A[0, 0] = 0.0 if n > 1 else 2.0  # rows are exchanged
    b = A[:n, :n] @ x[:n]
    assert eliminate(n, 6, A.ravel().copy(), b)
    np.testing.assert_allclose(b, x[:n], atol=1e-12)
    A[n - 1] = 0.0
    assert not eliminate(n, 6, A.ravel(), x)
