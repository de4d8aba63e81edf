"""Sparse elimination by blocks against dense matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds.solvers.contact import block_lu
from nsds.solvers.contact.signature import Problem
from tests.strategies import examples, generators


@pytest.mark.parametrize("d", [2, 3, 5, 6])
def test_elimination_solves_the_matrix(d):
    @examples(40)
    @given(rng=generators, n=st.integers(1, 12), density=st.sampled_from([0.0, 0.2, 1.0]))
    def check(rng, n, density):
        joined = np.triu(rng.random((n, n)) < density, 1)
        joined = joined + joined.T + np.eye(n, dtype=bool)
        row, column = np.r_[0, joined.sum(1).cumsum()], np.nonzero(joined)[1]
        W, eta = rng.normal(size=(len(column), d, d)), rng.random(n)
        A, B = rng.normal(size=(n, d, d)), 5.0 * n * np.eye(d) + rng.normal(size=(n, d, d))
        A[rng.random(n) < 0.3] = 0.0  # open contacts
        if d == 6:  # blocks of bodies, as they are
            W[np.repeat(np.arange(n), np.diff(row)) == column] += B
            A[:], B[:], eta[:] = np.eye(d), 0.0, 0.0
        dense = np.zeros((n, d, n, d))
        for i in range(n):
            for k in range(row[i], row[i + 1]):
                dense[i, :, column[k]] = A[i] @ (W[k] + (column[k] == i) * eta[i] * np.eye(d)) + (column[k] == i) * B[i]
        dense = dense.reshape(n * d, n * d)
        floats, integers = block_lu.work_size(block_lu.float_room, d, row, column)
        symbols, factors = np.zeros(integers, np.int64), np.zeros(floats)
        n_upper = block_lu.pattern(block_lu.UNLIMITED, row, column, symbols)
        assert (floats, integers) == (block_lu.float_room(d, n, n_upper), block_lu.integer_room(n, n_upper))
        problem = Problem(np.full(n, d - 1), np.zeros(2 * n), row, column, W.ravel(), np.zeros(n * d))
        x = rng.normal(size=n * d)
        expected = np.linalg.solve(dense, x)
        if d == 6:
            assert block_lu.factorise_bodies(problem, n_upper, symbols, factors)
        else:
            assert block_lu.factorise(d, problem, eta, A.ravel(), B.ravel(), n_upper, symbols, factors)
        block_lu.substitute(d, row, n_upper, symbols, factors, x)
        np.testing.assert_allclose(x, expected, atol=1e-13 * np.linalg.cond(dense))

    check()


def test_scratch_that_is_too_small_and_singular_blocks():
    row, column = np.array([0, 2, 4]), np.array([0, 1, 0, 1])
    assert block_lu.pattern(block_lu.UNLIMITED, row, column, np.zeros(3, np.int64)) == -1
    symbols = np.zeros(block_lu.integer_room(2, 1), np.int64)
    assert block_lu.pattern(block_lu.UNLIMITED, row, column, symbols) == 1
    assert block_lu.pattern(1, row, column, symbols) == 1  # one product of two blocks,
    assert block_lu.pattern(0, row, column, symbols) == -1  # which may be too much
    problem = Problem(np.ones(2, np.int64), np.zeros(4), row, column, np.ones(16), np.zeros(4))
    assert not block_lu.factorise(2, problem, np.zeros(2), np.ones(8), np.zeros(8), 1, symbols, np.zeros(100))
