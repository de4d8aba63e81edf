"""Solvers of the table: the definition of the solution, agreement, invariances, and truth about what was not solved."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import nsds
from nsds import solvers, status
from nsds.solvers import lcp_newton_min, table
from nsds.solvers.signature import conclude, diagonal, multiply, residual
from nsds.solvers.solve import _compressed_rows
from tests import reference

METHODS = list(solvers.methods())
EXACT = [name for name in METHODS if name != "lcp_pgs"]
seeds = st.integers(0, 2**32 - 1)
methods = st.sampled_from(METHODS)


def merit(M, q, z, bilateral=None):
    """The shared merit in plain NumPy."""
    w = M @ z + q
    natural = np.where(np.zeros(len(q), bool) if bilateral is None else bilateral, w, np.minimum(z, w))
    return np.linalg.norm(natural) / (1 + np.linalg.norm(q))


def spd(rng, n, rank=None):
    """Symmetric, positive definite, or semidefinite of the given rank; dominant enough for every method to converge fast."""
    A = rng.normal(size=(n, rank or n))
    return A @ A.T / max(n, 1) + (0.5 * np.eye(n) if rank is None else 0.0)


def problem(seed, n_max=8):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, n_max + 1))
    return spd(rng, n), rng.normal(size=n), rng


@settings(max_examples=150)
@given(seeds, methods)
def test_solution_satisfies_its_definition(seed, method):
    M, q, _ = problem(seed)
    s = solvers.solve_lcp(M, q, method)
    assert (s.status, s.method) == (status.CONVERGED, method)
    np.testing.assert_allclose(s.w, M @ s.z + q, atol=1e-12)
    tolerance = 1e-10 * (1 + np.linalg.norm(q)) * 1.001
    assert s.z.min() >= 0
    assert s.w.min() >= -tolerance
    assert np.minimum(s.z, s.w).max() <= tolerance
    assert s.residual == pytest.approx(merit(M, q, s.z), abs=1e-15)


@settings(max_examples=100)
@given(seeds, methods)
def test_agrees_with_the_twin_that_tries_everything(seed, method):
    M, q, _ = problem(seed)
    twin = reference.solve_box_by_enumeration(M, q, np.zeros(len(q), bool))
    np.testing.assert_allclose(solvers.solve_lcp(M, q, method, tol=1e-12).z, twin, atol=1e-9)


@settings(max_examples=60)
@given(seeds, st.sampled_from(["lcp_auto", "lcp_newton_min", "lcp_lemke", "lcp_enumerate"]))
def test_unsymmetric_p_matrices(seed, method):
    """Positive definite, not symmetric: a P-matrix with one solution for every q."""
    M, q, rng = problem(seed)
    A = rng.normal(size=M.shape)
    M = M + A - A.T
    twin = reference.solve_box_by_enumeration(M, q, np.zeros(len(q), bool))
    np.testing.assert_allclose(solvers.solve_lcp(M, q, method).z, twin, atol=1e-8)


@settings(max_examples=60)
@given(seeds, methods)
def test_permutation_permutes_the_solution(seed, method):
    M, q, rng = problem(seed)
    order = rng.permutation(len(q))
    z = solvers.solve_lcp(M, q, method, tol=1e-12).z
    np.testing.assert_allclose(solvers.solve_lcp(M[np.ix_(order, order)], q[order], method, tol=1e-12).z, z[order], atol=1e-9)


@settings(max_examples=60)
@given(seeds, methods)
def test_positive_diagonal_scaling_scales_the_solution(seed, method):
    M, q, rng = problem(seed)
    S = 10.0 ** rng.uniform(-3, 3, size=len(q))
    z = solvers.solve_lcp(M, q, method, tol=1e-12).z
    scaled = solvers.solve_lcp(S[:, None] * M * S, S * q, method, tol=1e-14, on_failure="return")
    np.testing.assert_allclose(S * scaled.z, z, atol=1e-5)


@settings(max_examples=60)
@given(seeds, methods)
def test_first_guess_does_not_change_the_answer_for_p_matrices(seed, method):
    M, q, rng = problem(seed)
    cold = solvers.solve_lcp(M, q, method, tol=1e-12).z
    for z0 in (abs(rng.normal(size=len(q))), np.full(len(q), 1e-300), cold):
        np.testing.assert_allclose(solvers.solve_lcp(M, q, method, tol=1e-12, z0=z0).z, cold, atol=1e-9)


@settings(max_examples=60)
@given(seeds, methods)
def test_sparse_and_dense_give_the_same(seed, method):
    M, q, rng = problem(seed)
    M = np.where(rng.uniform(size=M.shape) < 0.5, M, 0.0)
    M = M + M.T + np.diag(1 + abs(M).sum(axis=1) + abs(M).sum(axis=0))
    dense = solvers.solve_lcp(M, q, method, tol=1e-12)
    for storage in (sp.csr_array, sp.csc_array, sp.coo_array):
        np.testing.assert_allclose(solvers.solve_lcp(storage(M), q, method, tol=1e-12).z, dense.z, atol=1e-10)


@settings(max_examples=60)
@given(seeds, st.sampled_from(METHODS))
def test_redundant_constraints_of_consistent_problems(seed, method):
    """``M = H H^T``, more rows than columns, ``q = H v``: what contacts of one body give. z is not unique, H^T z is."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    H, v = rng.normal(size=(m, n)), rng.normal(size=n)
    M, q = H @ H.T, H @ v
    s = solvers.solve_lcp(M, q, method, on_failure="return", max_iter=200_000 if method == "lcp_pgs" else 0)
    if s.status != status.CONVERGED:  # a cone without interior may only be approached
        assert method in ("lcp_newton_min", "lcp_pgs")
        return
    twin = solvers.solve_lcp(M, q, "lcp_enumerate").z
    np.testing.assert_allclose(H.T @ s.z, H.T @ twin, atol=1e-6)


def mixed(seed):
    """Some rows are equations, well posed."""
    M, q, rng = problem(seed)
    return M, q, rng.uniform(size=len(q)) < 0.4


def solve_mixed(M, q, bilateral, method, max_iter=0.0):
    n = len(q)
    row, column, data = _compressed_rows(M, n)
    lower, upper = np.where(bilateral, -np.inf, 0.0), np.full(n, np.inf)
    z, w, info = np.zeros(n), np.zeros(n), np.zeros(2)
    sizes = table.METHODS[method].work_size(n, row, column)
    solve = getattr(table.METHODS[method], method)
    options = np.array([1e-12, max_iter])
    code = solve(row, column, data, q, lower, upper, options, z, w, info, np.zeros(sizes[0]), np.zeros(sizes[1], np.int64))
    return code, z, info[1]


@settings(max_examples=100)
@given(seeds, methods)
def test_equations_among_the_rows(seed, method):
    M, q, bilateral = mixed(seed)
    code, z, reported = solve_mixed(M, q, bilateral, method)
    assert code == status.CONVERGED
    assert merit(M, q, z, bilateral) <= 1e-12
    assert reported <= 1e-12
    np.testing.assert_allclose(z, reference.solve_box_by_enumeration(M, q, bilateral), atol=1e-8)


def chain(n, rng=None, closed=False):
    """Delassus matrix of a column of n contacts (a ring when closed), as sparse rows."""
    rng = rng or np.random.default_rng(0)
    inverse_mass = rng.uniform(0.5, 2.0, size=n + 1)
    H = sp.diags_array([-np.ones(n), np.ones(n)], offsets=[0, 1], shape=(n, n + 1)).tocsr()
    W = (H @ sp.diags_array(inverse_mass) @ H.T).tolil()
    if closed:
        W[0, n - 1] = W[n - 1, 0] = -0.3
    return W.tocsr()


@pytest.mark.parametrize("n", [1, 2, 7, 50, 2000])
@pytest.mark.parametrize("closed", [False, True])
def test_chains_are_solved_exactly(n, closed):
    rng = np.random.default_rng(n)
    M = chain(n, rng, closed and n > 2)
    for q in (rng.normal(size=n), -abs(rng.normal(size=n)), np.zeros(n), np.eye(n)[0] * -1e-2):
        s = solvers.solve_lcp(M, q, "lcp_newton_min", tol=1e-9)
        assert merit(M, q, s.z) <= 1e-9  # rounding of w, where random q makes z of order n^2
        assert s.n_iter <= 60


def test_work_of_chains_is_linear():
    sizes = [lcp_newton_min.work_size(n, *_compressed_rows(chain(n), n)[:2]) for n in (100, 1000)]
    assert sizes[1][0] <= 10 * sizes[0][0] + 20
    assert sizes[1][1] <= 10 * sizes[0][1] + 20


def test_branching_trees_are_solved():
    """Each contact is linked to its parent; elimination fills the envelope, the answer stays exact."""
    n = 127
    rng = np.random.default_rng(3)
    M = sp.lil_array((n, n))
    M.setdiag(3.0)
    for child in range(1, n):
        M[child, (child - 1) // 2] = M[(child - 1) // 2, child] = -rng.uniform(0.5, 0.9)
    q = rng.normal(size=n)
    s = solvers.solve_lcp(M.tocsr(), q, "lcp_newton_min", tol=1e-12)
    np.testing.assert_allclose(s.z, solvers.solve_lcp(M.tocsr(), q, "lcp_lemke", tol=1e-12).z, atol=1e-10)


# Problems that carry a name in the literature.


@pytest.mark.parametrize("method", EXACT)
def test_murty_exponential(method):
    """Murty (1978): lower triangular with 2 below the diagonal, q = -1: Lemke may take 2^n - 1 pivots; z = (0, ..., 0, 1) reversed."""
    n = 8
    M = np.eye(n) + 2 * np.tril(np.ones((n, n)), -1).T
    q = -np.ones(n)
    s = solvers.solve_lcp(M, q, method, max_iter=1000)
    np.testing.assert_allclose(s.z, np.eye(n)[-1], atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_fathi(method):
    """Fathi (1979): positive definite, symmetric counterpart of Murty's problem, M = L L^T; the same kind of worst case."""
    n = 8
    L = np.tril(2.0 * np.ones((n, n)), -1) + np.eye(n)
    M, q = L @ L.T, -np.ones(n)
    s = solvers.solve_lcp(M, q, method, max_iter=200_000)
    np.testing.assert_allclose(s.z, np.eye(n)[0], atol=1e-7)


@pytest.mark.parametrize("method", ["lcp_auto", "lcp_lemke", "lcp_enumerate", "lcp_newton_min"])
def test_block_exchanges_that_cycle_are_ended(method):
    """Murty, section 4: M = [[1,2,0],[0,1,2],[2,0,1]], q = -1: exchanging all wrong signs at once alternates for ever."""
    M = np.array([[1.0, 2, 0], [0, 1, 2], [2, 0, 1]])
    np.testing.assert_allclose(solvers.solve_lcp(M, -np.ones(3), method).z, np.full(3, 1 / 3), atol=1e-14)


@pytest.mark.parametrize("method", ["lcp_auto", "lcp_lemke", "lcp_enumerate"])
def test_copositive_plus_matrix_without_diagonal(method):
    """A linear programme (maximise x subject to x <= 3) as an LCP: zero diagonal, skew-symmetric."""
    M = np.array([[0.0, 1], [-1, 0]])
    s = solvers.solve_lcp(M, [-1.0, 3.0], method)
    np.testing.assert_allclose(s.z, [3.0, 1.0], atol=1e-14)


def test_lexicographic_ties():
    """Fully degenerate: many equal ratios, many zero entries in q."""
    n = 12
    M = np.ones((n, n)) + np.eye(n)
    q = -np.r_[np.ones(n // 2), np.zeros(n // 2)]
    s = solvers.solve_lcp(M, q, "lcp_lemke")
    assert merit(M, q, s.z) < 1e-12


# What cannot be solved is said.


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("M", "q"), [([[1.0, -1], [-1, 1]], [-1.0, -1]), ([[0.0]], [-1.0]), ([[0.0, 0], [0, 1]], [-1.0, 1]), ([[-1.0]], [-1.0])]
)
def test_infeasible_problems_are_reported(method, M, q):
    s = solvers.solve_lcp(M, q, method, on_failure="return", max_iter=2000)
    assert s.status != status.CONVERGED
    assert s.residual > 0.1
    assert status.advice(s.status)
    with pytest.raises(solvers.SolverError, match=method) as caught:
        solvers.solve_lcp(M, q, method, max_iter=2000)
    assert caught.value.solution.status == s.status


def test_lemke_names_the_ray():
    assert solvers.solve_lcp([[1.0, -1], [-1, 1]], [-1.0, -1], "lcp_lemke", on_failure="return").status == status.RAY


def test_pgs_names_the_vanishing_diagonal():
    assert solvers.solve_lcp([[0.0]], [-1.0], "lcp_pgs", on_failure="return").status == status.SINGULAR


@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_solve_is_solved(method):
    s = solvers.solve_lcp(np.zeros((0, 0)), np.zeros(0), method)
    assert (s.status, s.residual, s.z.size) == (status.CONVERGED, 0.0, 0)


@pytest.mark.parametrize("method", METHODS)
def test_overflow_is_not_called_convergence(method):
    s = solvers.solve_lcp([[1e-200]], [-1e200], method, on_failure="return", max_iter=10)
    assert s.status != status.CONVERGED


@pytest.mark.parametrize("method", [m for m in EXACT if m != "lcp_auto"])
def test_finite_bounds_are_refused_by_methods_that_ignore_them(method):
    M, q = np.eye(2), np.array([-3.0, 1.0])
    row, column, data = _compressed_rows(M, 2)
    sizes = table.METHODS[method].work_size(2, row, column)
    work = np.zeros(sizes[0]), np.zeros(sizes[1], np.int64)
    arrays = np.zeros(2), np.array([1.0, np.inf]), np.array([1e-10, 0.0]), np.zeros(2), np.zeros(2), np.zeros(2)
    assert getattr(table.METHODS[method], method)(row, column, data, q, *arrays, *work) == status.UNSUITED


@pytest.mark.parametrize("method", ["lcp_pgs", "lcp_auto"])
def test_finite_bounds_are_kept_by_methods_that_know_them(method):
    M, q = np.array([[2.0, 1], [1, 2]]), np.array([-9.0, 1.0])
    row, column, data = _compressed_rows(M, 2)
    n_work, n_iwork = table.METHODS[method].work_size(2, row, column)
    z, w, info = np.zeros(2), np.zeros(2), np.zeros(2)
    lower, upper = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    solve = getattr(table.METHODS[method], method)
    code = solve(row, column, data, q, lower, upper, np.array([1e-10, 0]), z, w, info, np.zeros(n_work), np.zeros(n_iwork, np.int64))
    assert code == status.CONVERGED
    np.testing.assert_allclose(z, [1.0, -1.0], atol=1e-9)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["M", "(2, 2)", "(2, 3)"], {"M": np.ones((2, 3)), "q": [1, 2]}),
        (["M", "(3, 3)", "(2, 2)"], {"M": np.eye(2), "q": [1, 2, 3]}),
        (["M", "(3, 3)", "(2, 2)"], {"M": sp.eye_array(2), "q": [1, 2, 3]}),
        (["q", "1 dimensions"], {"M": np.eye(2), "q": [[1, 2]]}),
        (["M", "finite", "nan"], {"M": [[np.nan]], "q": [1]}),
        (["q", "finite", "inf"], {"M": [[1.0]], "q": [np.inf]}),
        (["z0", "(1,)"], {"M": [[1.0]], "q": [1], "z0": [1, 2]}),
        (["method", "simplex", "lcp_lemke"], {"M": [[1.0]], "q": [1], "method": "simplex"}),
        (["tol", "above 0"], {"M": [[1.0]], "q": [1], "tol": 0.0}),
        (["max_iter", "at least 0"], {"M": [[1.0]], "q": [1], "max_iter": -1}),
        (["on_failure", "warn"], {"M": [[1.0]], "q": [1], "on_failure": "warn"}),
    ],
)
def test_bad_arguments_are_named(words, arguments):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        solvers.solve_lcp(**arguments)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@settings(max_examples=40)
@given(seeds)
def test_kernels_agree_with_numpy(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    M, q, z = rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=n)
    lower, upper = np.sort(rng.normal(size=(2, n)), axis=0)
    row, column, data = _compressed_rows(sp.csr_array(np.where(rng.uniform(size=(n, n)) < 0.5, M, 0.0)), n)
    M = sp.csr_array((data, column, row), shape=(n, n)).toarray()
    w = np.empty(n)
    multiply(row, column, data, q, z, w)
    np.testing.assert_allclose(w, M @ z + q)
    expected = np.linalg.norm(z - np.clip(z - (M @ z + q), lower, upper)) / (1 + np.linalg.norm(q))
    assert residual(row, column, data, q, lower, upper, z, w) == pytest.approx(expected)
    assert [diagonal(row, column, data, i) for i in range(n)] == np.diag(M).tolist()


def gauss_seidel_of_a_user(row, column, M, q, lower, upper, options, z, w, info, work, iwork):
    n = q.size
    for i in range(n):
        work[i] = 1.0 / diagonal(row, column, M, i)
    for _ in range(500):
        for i in range(n):
            w_i = q[i]
            for k in range(row[i], row[i + 1]):
                w_i += M[k] * z[column[k]]
            z[i] = max(z[i] - w_i * work[i], 0.0)
    return conclude(status.CONVERGED, 500, row, column, M, q, lower, upper, options, z, w, info)


def test_a_user_may_bring_a_solver():
    M, q, _ = problem(4)
    own = solvers.solver(gauss_seidel_of_a_user, work_size=(1, 0))
    s = solvers.solve_lcp(M, q, gauss_seidel_of_a_user, work_size=(1, 0))
    np.testing.assert_allclose(s.z, solvers.solve_lcp(M, q).z, atol=1e-9)
    system = nsds.examples.column_of_beads(count=4)
    mine = nsds.simulate(system, t_end=0.6, h=1e-3, solver=own)
    usual = nsds.simulate(system, t_end=0.6, h=1e-3)
    np.testing.assert_allclose(mine["beads"]["q"], usual["beads"]["q"], atol=1e-9)
    assert (mine["n_iter"][mine["gaps"]["active"].any(axis=1)] == 500).all()


@pytest.mark.parametrize("function", [lambda z: 0, lambda a, b, c, d, e, f, g, h, i, j, k, m: "solved"])
def test_an_unsuitable_solver_is_refused(function):
    with pytest.raises(TypeError, match=r"solver\(row, column, M, q"):
        solvers.solver(function)


@settings(max_examples=40)
@given(seeds, st.sampled_from(["lcp_auto", "lcp_newton_min"]))
def test_a_remembered_factorisation_gives_the_same_bits(seed, method):
    """Several q with one M: scratch that is kept, and scratch that is cleared before each call."""
    M, q, rng = problem(seed)
    n = len(q)
    row, column, data = _compressed_rows(M, n)
    n_work, n_iwork = table.METHODS[method].work_size(n, row, column)
    solve = getattr(table.METHODS[method], method)
    work, iwork = np.zeros(n_work), np.zeros(n_iwork, np.int64)

    def solution(q, work, iwork):
        z, w, info = np.zeros(n), np.zeros(n), np.zeros(2)
        options = np.array([1e-10, 0.0])
        assert solve(row, column, data, q, np.zeros(n), np.full(n, np.inf), options, z, w, info, work, iwork) == status.CONVERGED
        return z.tobytes()

    for right_hand_side in (q, q + 1e-3 * rng.normal(size=n), -abs(q), q):
        assert solution(right_hand_side, work, iwork) == solution(right_hand_side, np.zeros(n_work), np.zeros(n_iwork, np.int64))
