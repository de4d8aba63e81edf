"""Programmes of which parts are nothing but rounding of their data, or nothing at all."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, diags_array

from nsds import solvers

ULP = 2.0**-52


def transport(rng, n_nodes, with_rounding):
    """Cheapest flows along random arcs, of 10 to 100 from the first node to the last; right sides of all others are 0, or rounding."""
    begin, end = rng.integers(0, n_nodes, (2, 4 * n_nodes))
    begin, end = np.r_[begin, np.arange(n_nodes - 1)], np.r_[end, np.arange(1, n_nodes)]
    begin, end = begin[begin != end], end[begin != end]
    arcs = np.arange(begin.size)
    A = csr_array((np.r_[np.ones(arcs.size), -np.ones(arcs.size)], (np.r_[begin, end], np.r_[arcs, arcs])), shape=(n_nodes, arcs.size))
    b = np.zeros(n_nodes)
    b[0] = rng.integers(10, 100)
    b[-1] = -b[0]
    b[1:-1] = with_rounding * rng.integers(-8, 9, n_nodes - 2) * 16 * ULP
    P = diags_array(np.where(rng.uniform(size=arcs.size) < 0.2, 0.01, 0.0)).tocsr()
    return {"P": P, "c": rng.integers(1, 9, arcs.size).astype(float), "A": A, "b": b, "lower": 0.0}


@pytest.mark.parametrize("n_nodes", [6, 20])
def test_right_sides_that_are_rounding(n_nodes):
    """The minimum is that with 0 in place of the rounding, though that contradicts where nothing flows, or where rows depend on others."""
    for seed in range(4):
        exact, rounded = (transport(np.random.default_rng([n_nodes, seed]), n_nodes, what) for what in (False, True))
        expected, s = solvers.solve_qp(**exact), solvers.solve_qp(**rounded)
        values = [0.5 * x @ exact["P"] @ x + exact["c"] @ x for x in (expected.z, s.z)]
        assert abs(values[1] - values[0]) <= 1e-9 * values[0]
        assert abs(rounded["A"] @ s.z - rounded["b"]).max() <= 1e-12 * rounded["b"][0]


@pytest.mark.parametrize("method", ["auto", "lemke", "interior_sparse"])
@pytest.mark.parametrize("bits", [-47, -50])
def test_rounding_beside_unknowns_that_are_small(method, bits):
    """``x_0 + x_1 = -2^bits`` with x >= 0 beside 1e5; by other rows x_0 and x_1 are up to 1e-4, of which that is less than tol."""
    A = np.zeros((4, 5))
    A[0, :2], A[1, [0, 2]], A[2, [1, 3]], A[3, 4] = 1.0, [1e4, 1.0], [1e4, 1.0], 1.0
    s = solvers.solve_qp(np.zeros((5, 5)), np.ones(5), A=A, b=[-(2.0**bits), 1.0, 1.0, 1e5], lower=0.0, method=method)
    np.testing.assert_allclose(s.z, [0.0, 0.0, 1.0, 1.0, 1e5], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["auto", "lemke"])
def test_multipliers_that_are_rounding_do_not_confirm_each_other(method, seed):
    """Production and stocks of 12 periods and 5 goods with hardly any cost: many multipliers are 0, or 1e-31, and agree with each other."""
    rng = np.random.default_rng(seed + 4)
    T, m = 12, 5
    goods, made, kept, sold = np.eye(m), *(np.eye(3)[k] for k in range(3))
    within = np.kron(np.eye(T), np.kron(kept - made + sold, goods))
    A = within - np.kron(np.eye(T, k=-1), np.kron(kept, goods))
    use = rng.integers(1, 4, (T, m)) * 0.1 * rng.integers(1, 10, (T, 1))
    made_at, kept_at, sold_at = (np.kron(np.eye(T), np.kron(x, goods)) for x in (made, kept, sold))
    G = -np.vstack([np.repeat(np.eye(T), m, 1) * use.ravel() @ made_at, np.kron(np.eye(T), np.ones(m)) @ kept_at, sold_at])
    g = -np.r_[rng.integers(5, 20, T), rng.integers(5, 50, T), rng.integers(1, 9, T * m)].astype(float)
    c = 0.01 * rng.integers(0, 3, T * m) @ made_at - 0.1 * rng.integers(1, 9, T * m) @ sold_at
    P = np.diag(np.r_[rng.integers(0, 2, m), np.zeros(3 * m * T - m)].astype(float))
    s = solvers.solve_qp(P, c, G, g, A, np.zeros(T * m), lower=0.0, method=method)
    slope = P @ s.z + c
    best = linprog(slope, A_ub=-G, b_ub=-g, A_eq=A, b_eq=np.zeros(T * m), bounds=(0.0, None)).fun
    assert abs(slope @ s.z - best) <= 1e-9 * abs(best)


def test_small_right_sides_that_are_data_are_met():
    """A row that asks for 1e-12 beside others that ask for 1 gets it, to the tolerance."""
    for n in (3, 40):
        A, b = np.eye(n), np.ones(n)
        b[1] = 1e-12
        s = solvers.solve_qp(np.zeros((n, n)), np.ones(n), A=A, b=b, lower=0.0)
        assert abs(s.z[1] - 1e-12) <= 1e-22


@pytest.mark.parametrize("n_blends", [1, 5])
def test_parts_that_are_nothing_as_are_their_multipliers(n_blends):
    """Blends that nothing asks for: ``sum x = y <= 0 · v``, so that x, and what is between them and others, is all 0."""
    rng = np.random.default_rng(n_blends)
    k = 4
    n = n_blends * k + 3
    A = np.zeros((n_blends + 1, n))
    for i in range(n_blends):
        A[i, i * k : (i + 1) * k] = rng.integers(90, 110, k)
        A[i, -1] = 0.0
    A[-1, -3:] = 1.0
    G = np.hstack([np.tile(rng.uniform(1.0, 2.0, k), n_blends), [0.002, 0.0, -0.001]])[None, :]
    c = np.r_[np.zeros(n - 3), 1.0, 2.0, 3.0]
    s = solvers.solve_qp(np.zeros((n, n)), c, G, [-5.0], A, np.r_[np.zeros(n_blends), 7.0], lower=0.0, method="interior_sparse")
    np.testing.assert_allclose(s.z, np.r_[np.zeros(n - 3), 7.0, 0.0, 0.0], atol=1e-12)


def test_little_that_is_asked_of_one_is_much_of_others():
    """Equations that pass 1e-9 on in growing amounts, beside one that asks for 1: rows miss no more than rounding of their terms."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        A = np.diag(rng.uniform(0.5, 2.0, 12)) - np.diag(rng.uniform(0.5, 2.0, 11) * 10.0 ** rng.integers(0, 3, 11), -1)
        b = np.r_[1e-9, 1e-19 * rng.integers(1, 9), np.zeros(9), 1.0]
        s = solvers.solve_qp(np.zeros((12, 12)), rng.integers(1, 5, 12).astype(float), A=A, b=b)
        assert (abs(A @ s.z - b) <= 4 * ULP * (abs(A) @ abs(s.z) + b)).all()
