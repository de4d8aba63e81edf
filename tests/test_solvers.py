"""Solvers of the table: the definition of the solution, agreement with slow twins, invariances, and truth about what was not solved."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds import solvers, status
from nsds.solvers import table
from nsds.solvers.signature import conclude, diagonal, is_complementarity, multiply, residual
from nsds.solvers.solve import _compressed_rows
from tests import reference_lcp
from tests.strategies import KINDS, P_KINDS, examples, generators, problems

METHODS = list(solvers.methods())
methods = st.sampled_from(METHODS)
NOT_PROMISED = {  # kinds of problems that a method may fail on; a method that is not named here solves them all
    "lcp_newton_min": {"redundant", "degenerate", "optimality conditions"},
    "lcp_proximal": {"optimality conditions"},
    "lcp_pgs": {"unsymmetric P", "redundant", "degenerate", "optimality conditions"},
}
EXACT = [name for name in METHODS if name != "lcp_pgs"]
PIVOTING = ["lcp_auto", "lcp_lemke", "lcp_enumerate"]
REFERENCE_PROBLEMS = Path(__file__).resolve().parents[2] / "shared" / "problems"


def promised(method, kind):
    return kind not in NOT_PROMISED.get(method, ())


def solve(M, q, method, equation=None, *, upper=None, lower=None, tol=1e-10, max_iter=0, z0=None, scratch=None):
    """Through the kernels' signature, where rows can be equations."""
    module, n = table.METHODS[method], len(q)
    row, column, data = _compressed_rows(M, n)
    if lower is None:
        lower = np.where(np.zeros(n, bool) if equation is None else equation, -np.inf, 0.0)
    upper = np.full(n, np.inf) if upper is None else upper
    z, w, info = np.zeros(n) if z0 is None else z0.copy(), np.zeros(n), np.zeros(2)
    n_work, n_iwork = module.work_size(n, row, column)
    work, iwork = scratch or (np.zeros(n_work), np.zeros(max(n_iwork, 1), np.int64))
    options = np.array([tol, float(max_iter)])
    code = getattr(module, method)(row, column, data, np.asarray(q, float), lower, upper, options, z, w, info, work, iwork)
    return solvers.Solution(z, w, code, int(info[0]), info[1], method)


def new_scratch(M, method):
    row, column, _ = _compressed_rows(M, len(M))
    n_work, n_iwork = table.METHODS[method].work_size(len(M), row, column)
    return np.zeros(n_work), np.zeros(max(n_iwork, 1), np.int64)


def assert_truthful(p, s, tol=1e-10):
    """CONVERGED means what the definition says, up to tol and the rounding of w; anything else that it does not hold."""
    noise = np.linalg.norm(reference_lcp.rounding(p.M, p.q, s.z))
    allowed = tol * (1 + np.linalg.norm(p.q))
    error = reference_lcp.natural(p.M, p.q, s.z, p.equation)
    if s.status != status.CONVERGED:
        assert not np.linalg.norm(error) <= allowed - noise
        return
    assert np.linalg.norm(error) <= allowed + noise
    np.testing.assert_array_less(abs(s.w - p.M @ s.z - p.q), reference_lcp.rounding(p.M, p.q, s.z) + 1e-300)
    z, w = s.z[~p.equation], s.w[~p.equation]
    assert (z >= 0).all()
    assert (w >= -allowed).all()
    assert (abs(z * w) <= allowed * np.maximum(z, abs(w))).all()
    assert (abs(s.w[p.equation]) <= allowed).all()
    assert abs(s.residual - reference_lcp.merit(p.M, p.q, s.z, p.equation)) <= noise


@examples(400)
@given(problems(), methods)
def test_solution_satisfies_its_definition(p, method):
    s = solvers.solve_lcp(p.M, p.q, method, on_failure="return")
    assert s.method == method
    assert s.status == status.CONVERGED or not promised(method, p.kind)
    assert_truthful(p, s)


@examples(150)
@given(problems(P_KINDS[:2]), methods)
def test_agrees_with_the_twin_that_tries_everything(p, method):
    if not promised(method, p.kind):
        return
    z = reference_lcp.solve_by_enumeration(p.M, p.q, p.equation, tol=1e-12)
    s = solvers.solve_lcp(p.M, p.q, method, tol=1e-12)
    errors = 2e-12 * (1 + np.linalg.norm(p.q)) + 2 * np.linalg.norm(reference_lcp.rounding(p.M, p.q, z))
    np.testing.assert_allclose(s.z, z, rtol=0, atol=reference_lcp.distance_bound(p.M) * errors)


@examples(150)
@given(problems(("redundant", "degenerate")), methods)
def test_velocities_of_redundant_problems_are_unique(p, method):
    """z is not unique where M = H H^T is singular; w is, since ``|H^T (z - z')|^2 = (z - z')^T (w - w') <= errors of complementarity``."""
    s = solvers.solve_lcp(p.M, p.q, method, on_failure="return")
    if s.status != status.CONVERGED:
        assert not promised(method, p.kind)
        return
    z = reference_lcp.solve_by_enumeration(p.M, p.q, p.equation, tol=1e-10)
    w = p.M @ z + p.q
    allowed = 2e-10 * (1 + np.linalg.norm(p.q))
    gap = allowed * (s.z.sum() + z.sum() + abs(s.w).sum() + abs(w).sum() + allowed)
    np.testing.assert_allclose(s.w, w, rtol=0, atol=np.sqrt(gap * np.linalg.norm(p.M, 2)))


@examples(100)
@given(problems())
def test_lemke_agrees_with_its_twin(p):
    s = solvers.solve_lcp(p.M, p.q, "lcp_lemke", on_failure="return")
    z, found = reference_lcp.solve_by_lemke(p.M, p.q)
    assert found == (s.status == status.CONVERGED)
    assert reference_lcp.merit(p.M, p.q, z, p.equation) < 1e-9


@examples(40)
@given(problems(("positive definite", "M-matrix")), st.integers(1, 5))
def test_sweeps_agree_with_their_twin(p, n_sweeps):
    s = solve(p.M, p.q, "lcp_pgs", tol=1e-300, max_iter=n_sweeps)
    assert s.n_iter <= n_sweeps
    np.testing.assert_allclose(s.z, reference_lcp.solve_by_sweeps(p.M, p.q, p.equation, s.n_iter), rtol=1e-12, atol=1e-13)


@examples(80)
@given(problems(P_KINDS[:2]), methods, generators)
def test_permutation_permutes_the_solution(p, method, rng):
    if not promised(method, p.kind):
        return
    order = rng.permutation(len(p.q))
    z = solvers.solve_lcp(p.M, p.q, method, tol=1e-12).z
    permuted = solvers.solve_lcp(p.M[np.ix_(order, order)], p.q[order], method, tol=1e-12).z
    errors = 2e-12 * (1 + np.linalg.norm(p.q)) + 2 * np.linalg.norm(reference_lcp.rounding(p.M, p.q, z))
    np.testing.assert_allclose(permuted, z[order], rtol=0, atol=reference_lcp.distance_bound(p.M) * errors)


@examples(120)
@given(problems(P_KINDS[:2]), methods, generators)
def test_positive_diagonal_scaling_scales_the_solution(p, method, rng):
    """``S M S``, ``S q`` has the solution ``S^-1 z``; an error m of the scaled natural map is at most 64 m of the other."""
    if not promised(method, p.kind):
        return
    S = 2.0 ** rng.integers(-6, 7, size=len(p.q))
    z = solvers.solve_lcp(p.M, p.q, method, tol=1e-12).z
    s = solvers.solve_lcp(S[:, None] * p.M * S, S * p.q, method, tol=1e-12)
    errors = 1e-12 * (2 + np.linalg.norm(p.q) + 64 * np.linalg.norm(S * p.q)) * 64
    np.testing.assert_allclose(S * s.z, z, rtol=0, atol=reference_lcp.distance_bound(p.M) * errors)


@examples(80)
@given(problems(P_KINDS[:2]), methods, generators)
def test_first_guess_does_not_change_the_answer_for_p_matrices(p, method, rng):
    if not promised(method, p.kind):
        return
    cold = solvers.solve_lcp(p.M, p.q, method, tol=1e-12).z
    errors = 2e-12 * (1 + np.linalg.norm(p.q)) + 2 * np.linalg.norm(reference_lcp.rounding(p.M, p.q, cold))
    for z0 in (abs(rng.normal(size=len(p.q))), np.full(len(p.q), 1e-300), cold):
        warm = solvers.solve_lcp(p.M, p.q, method, tol=1e-12, z0=z0).z
        np.testing.assert_allclose(warm, cold, rtol=0, atol=reference_lcp.distance_bound(p.M) * errors)


@examples(60)
@given(problems(("positive definite",)), methods, generators)
def test_sparse_and_dense_give_the_same(p, method, rng):
    M = np.where(rng.uniform(size=p.M.shape) < 0.5, p.M, 0.0)
    M = M + M.T + np.diag(1 + abs(M).sum(axis=1) + abs(M).sum(axis=0))
    dense = solvers.solve_lcp(M, p.q, method, tol=1e-12)
    for storage in (sp.csr_array, sp.csc_array, sp.coo_array):
        np.testing.assert_allclose(solvers.solve_lcp(storage(M), p.q, method, tol=1e-12).z, dense.z, atol=1e-10)


# Rows that are equations, and bounds: through the signature of the kernels.


@examples(200)
@given(problems(P_KINDS[:2], equations=True), methods)
def test_equations_among_the_rows(p, method):
    s = solve(p.M, p.q, method, p.equation, tol=1e-12)
    assert_truthful(p, s, tol=1e-12)
    if promised(method, p.kind):
        assert s.status == status.CONVERGED
        z = reference_lcp.solve_by_enumeration(p.M, p.q, p.equation, tol=1e-12)
        errors = 2e-12 * (1 + np.linalg.norm(p.q)) + 2 * np.linalg.norm(reference_lcp.rounding(p.M, p.q, z))
        np.testing.assert_allclose(s.z, z, rtol=0, atol=reference_lcp.distance_bound(p.M) * errors)


@examples(100)
@given(problems(("redundant", "degenerate"), equations=True), methods)
def test_redundant_equations(p, method):
    """Consistent: ``q = H v`` lies in the range of M, and so does every part of it."""
    s = solve(p.M, p.q, method, p.equation)
    assert_truthful(p, s)
    assert s.status == status.CONVERGED or method in ("lcp_newton_min", "lcp_pgs", "lcp_lemke", "lcp_enumerate")


@pytest.mark.parametrize("method", METHODS)
def test_equations_only_are_a_linear_system(method):
    rng = np.random.default_rng(5)
    A = rng.normal(size=(7, 7))
    M, q = A @ A.T + np.eye(7), rng.normal(size=7)
    s = solve(M, q, method, np.ones(7, bool), tol=1e-13)
    assert s.status == status.CONVERGED
    np.testing.assert_allclose(s.z, np.linalg.solve(M, -q), rtol=1e-9)


def test_lemke_names_equations_without_a_unique_solution():
    s = solve(np.ones((3, 3)), np.array([1.0, 2.0, -1.0]), "lcp_lemke", np.array([True, True, False]))
    assert s.status == status.SINGULAR


@pytest.mark.parametrize("method", [m for m in EXACT if m != "lcp_auto"])
def test_finite_bounds_are_refused_by_methods_that_ignore_them(method):
    s = solve(np.eye(2), np.array([-3.0, 1.0]), method, upper=np.array([1.0, np.inf]))
    assert s.status == status.UNSUITED


@pytest.mark.parametrize("method", ["lcp_pgs", "lcp_auto"])
def test_finite_bounds_are_kept_by_methods_that_know_them(method):
    s = solve(np.array([[2.0, 1], [1, 2]]), np.array([-9.0, 1.0]), method, lower=-np.ones(2), upper=np.ones(2))
    assert s.status == status.CONVERGED
    np.testing.assert_allclose(s.z, [1.0, -1.0], atol=1e-9)


# Structure: chains, rings, trees, stacks.


def chain(n, rng=None, closed=False):
    """Delassus matrix of a column of n contacts (a ring when closed), as sparse rows."""
    rng = rng or np.random.default_rng(0)
    inverse_mass = rng.uniform(0.5, 2.0, size=n + 1)
    H = sp.diags_array([-np.ones(n), np.ones(n)], offsets=[0, 1], shape=(n, n + 1)).tocsr()
    W = (H @ sp.diags_array(inverse_mass) @ H.T).tolil()
    if closed:
        W[0, n - 1] = W[n - 1, 0] = -0.3
    return W.tocsr()


def loads(n, rng):
    return rng.normal(size=n), -abs(rng.normal(size=n)), np.zeros(n), np.eye(n)[0] * -1e-2


@pytest.mark.parametrize("method", ["lcp_auto", "lcp_newton_min", "lcp_proximal"])
@pytest.mark.parametrize("n", [1, 2, 7, 50, 2000])
@pytest.mark.parametrize("closed", [False, True])
def test_chains_are_solved_exactly(method, n, closed):
    rng = np.random.default_rng(n)
    M = chain(n, rng, closed and n > 2)
    for q in loads(n, rng):
        s = solvers.solve_lcp(M, q, method, tol=1e-9)  # rounding of w, where random q makes z of order n^2
        natural = np.minimum(s.z, M @ s.z + q)
        assert np.linalg.norm(natural) <= 1.01e-9 * (1 + np.linalg.norm(q))
        assert s.n_iter <= 60


@examples(60)
@given(generators, st.integers(1, 9), st.booleans())
def test_short_chains_agree_with_enumeration(rng, n, closed):
    M = chain(n, rng, closed and n > 2)
    for q in loads(n, rng):
        expected = solvers.solve_lcp(M, q, "lcp_enumerate", tol=1e-12).z
        np.testing.assert_allclose(solvers.solve_lcp(M, q, "lcp_newton_min", tol=1e-12).z, expected, atol=1e-9)


@pytest.mark.parametrize("method", ["lcp_newton_min", "lcp_proximal", "lcp_auto", "lcp_pgs"])
def test_work_of_chains_is_linear(method):
    sizes = [table.METHODS[method].work_size(n, *_compressed_rows(chain(n), n)[:2]) for n in (1000, 10_000)]
    assert sizes[1][0] <= 10 * sizes[0][0] + 100
    assert sizes[1][1] <= 10 * sizes[0][1] + 100


@pytest.mark.parametrize("n_children", [1, 2, 5])
def test_branching_trees_are_solved(n_children):
    """Each contact is linked to its parent; elimination fills the envelope, the answer stays exact."""
    n = 127
    rng = np.random.default_rng(3)
    M = sp.lil_array((n, n))
    M.setdiag(1.0 + n_children)
    for child in range(1, n):
        parent = (child - 1) // n_children
        M[child, parent] = M[parent, child] = -rng.uniform(0.5, 0.9)
    q = rng.normal(size=n)
    s = solvers.solve_lcp(M.tocsr(), q, "lcp_newton_min", tol=1e-12)
    np.testing.assert_allclose(s.z, solvers.solve_lcp(M.tocsr(), q, "lcp_lemke", tol=1e-12).z, atol=1e-10)


def stack(n_blocks, n_contacts):
    """H of blocks on top of each other that translate and turn; more than two contacts between two blocks are redundant."""
    H = sp.lil_array((n_blocks * n_contacts, 2 * n_blocks))
    for block in range(n_blocks):
        for k, x in enumerate(np.linspace(-1, 1, n_contacts)):
            H[block * n_contacts + k, [2 * block, 2 * block + 1]] = 1.0, x
            if block:
                H[block * n_contacts + k, [2 * block - 2, 2 * block - 1]] = -1.0, -x
    return H.tocsr()


@pytest.mark.parametrize("method", ["lcp_auto", "lcp_proximal"])
@pytest.mark.parametrize("n_contacts", [2, 3, 4])
@pytest.mark.parametrize("n_blocks", [1, 5, 60])
def test_stacks_with_redundant_contacts_are_solved(method, n_contacts, n_blocks):
    """``W = H M^-1 H^T`` of rank at most 2 n_blocks, ``q = H v``."""
    H = stack(n_blocks, n_contacts)
    W = (H @ sp.diags_array(np.tile([1.0, 3.0], n_blocks)) @ H.T).tocsr()
    at_rest, struck = np.tile([-0.01, 0.0], n_blocks), np.zeros(2 * n_blocks)
    struck[-2:] = -1.0, 0.2
    for v in (at_rest, struck, np.random.default_rng(0).normal(size=2 * n_blocks)):
        q = H @ v
        s = solvers.solve_lcp(W, q, method)
        assert np.linalg.norm(np.minimum(s.z, W @ s.z + q)) <= 1.01e-10 * (1 + np.linalg.norm(q))


def test_proximal_steps_share_the_load():
    """From z = 0 the multipliers of redundant constraints are those of least norm, here equal ones; elimination loads the first."""
    M, q = np.ones((4, 4)), -np.ones(4)
    np.testing.assert_allclose(solvers.solve_lcp(M, q, "lcp_proximal").z, np.full(4, 0.25), rtol=1e-6)
    np.testing.assert_allclose(solvers.solve_lcp(M, q, "lcp_newton_min").z, [1, 0, 0, 0], atol=1e-14)


@pytest.mark.parametrize("kind", ["unsymmetric P", "redundant", "degenerate", "optimality conditions"])
@pytest.mark.parametrize("n", [30, 64, 65, 120])
def test_default_solves_larger_dense_problems(kind, n):
    for seed in range(3):
        M, q = KINDS[kind](np.random.default_rng(seed), n)
        s = solvers.solve_lcp(M, q)
        assert reference_lcp.merit(M, q, s.z, np.zeros(n, bool)) <= 1e-10 + np.linalg.norm(reference_lcp.rounding(M, q, s.z))


# Problems that carry a name in the literature.


def test_murty_2_8():
    """Murty, Linear Complementarity, example 2.8."""
    M = np.array([[1.0, -1, -1, -1], [-1, 1, -1, -1], [1, 1, 2, 0], [1, 1, 0, 2]])
    q = np.array([3.0, 5, -9, -5])
    for method in PIVOTING:
        s = solvers.solve_lcp(M, q, method)
        assert reference_lcp.merit(M, q, s.z, np.zeros(4, bool)) < 1e-14
    np.testing.assert_allclose(solvers.solve_lcp(M, q, "lcp_lemke").z, [2, 1, 3, 1], rtol=1e-14)


def test_murty_2_9():
    """Murty, example 2.9: M and q are negative, and Lemke's method ends on a ray."""
    M = np.array([[-1.0, 0, -3], [1, -2, -5], [-2, -1, -2]])
    assert solvers.solve_lcp(M, [-3, -2, -1], "lcp_lemke", on_failure="return").status == status.RAY


def test_murty_2_11():
    """Murty, example 2.11: whether Lemke's method ends on a ray depends on the column of z0; for ours it solves the problem."""
    M, q = np.array([[-1.5, 2], [-4, 4]]), np.array([-5.0, 17])
    for method in PIVOTING:
        s = solvers.solve_lcp(M, q, method)
        assert reference_lcp.merit(M, q, s.z, np.zeros(2, bool)) < 1e-14


@pytest.mark.parametrize("method", EXACT)
def test_kostreva_1(method):
    """Kostreva (1979), example 1: a P-matrix on which Lemke's method cycles under careless ties, and exchanging all wrong signs too."""
    M = np.array([[1.0, 2, 0], [0, 1, 2], [2, 0, 1]])
    np.testing.assert_allclose(solvers.solve_lcp(M, -np.ones(3), method).z, np.full(3, 1 / 3), rtol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_kostreva_2(method):
    """Kostreva (1979), example 2: cycles under careless ties; there is no solution."""
    M = np.array([[1.0, -1, 3], [2, -1, 3], [-1, -2, 0]])
    assert reference_lcp.solve_by_enumeration(M, -np.ones(3), np.zeros(3, bool)) is None
    s = solvers.solve_lcp(M, -np.ones(3), method, on_failure="return")
    assert s.status == (status.RAY if method == "lcp_lemke" else s.status) != status.CONVERGED


@pytest.mark.parametrize("method", EXACT)
def test_murty_exponential(method):
    """Murty (1978): triangular with 2 beside the diagonal, q = -1: pivoting may take 2^n - 1 steps; z is the last unit vector."""
    n = 8
    M = np.eye(n) + 2 * np.triu(np.ones((n, n)), 1)
    s = solvers.solve_lcp(M, -np.ones(n), method, max_iter=1000)
    np.testing.assert_allclose(s.z, np.eye(n)[-1], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_fathi(method):
    """Fathi (1979): positive definite, symmetric counterpart of Murty's problem, M = L L^T; the same kind of worst case."""
    n = 8
    L = np.tril(2.0 * np.ones((n, n)), -1) + np.eye(n)
    s = solvers.solve_lcp(L @ L.T, -np.ones(n), method, max_iter=200_000)
    np.testing.assert_allclose(s.z, np.eye(n)[0], atol=1e-7)


@pytest.mark.parametrize("method", PIVOTING)
def test_copositive_plus_matrix_without_diagonal(method):
    """A linear programme (maximise x subject to x <= 3) as an LCP: zero diagonal, skew-symmetric."""
    M = np.array([[0.0, 1], [-1, 0]])
    np.testing.assert_allclose(solvers.solve_lcp(M, [-1.0, 3.0], method).z, [3.0, 1.0], atol=1e-8)


@pytest.mark.parametrize("method", ["lcp_auto", "lcp_enumerate"])
def test_matrix_that_pivoting_does_not_process(method):
    """A bimatrix game: Lemke's method with equal entries in the column of z0 ends on a ray, though there is a solution."""
    A, q = np.array([[10.0, 20], [30, 15]]), -np.ones(4)
    M = np.kron([[0, 1], [1, 0]], A)
    assert solvers.solve_lcp(M, q, "lcp_lemke", on_failure="return").status == status.RAY
    assert reference_lcp.merit(M, q, solvers.solve_lcp(M, q, method).z, np.zeros(4, bool)) <= 1e-10


@pytest.mark.parametrize("n", [4, 12, 40])
def test_lexicographic_ties(n):
    """Fully degenerate: equal ratios, equal rows, zeros in q: finite, within a pivot for each row and its return."""
    ones = np.ones((n, n))
    for M in (ones + np.eye(n), ones, np.kron(np.eye(n // 2), np.ones((2, 2)))):
        for q in (-np.ones(n), -np.r_[np.ones(n // 2), np.zeros(n // 2)], np.zeros(n)):
            if (M[0] == M[n // 2]).all() and q[0] != q[-1]:
                continue  # contradictory
            s = solvers.solve_lcp(M, q, "lcp_lemke")
            assert reference_lcp.merit(M, q, s.z, np.zeros(n, bool)) < 1e-12
            assert s.n_iter <= 2 * n


@pytest.mark.reference
@pytest.mark.skipif(not REFERENCE_PROBLEMS.is_dir(), reason="the collection of problems is not at hand")
@pytest.mark.parametrize("path", sorted((REFERENCE_PROBLEMS / "lcp").glob("*.npz")), ids=lambda path: path.stem)
def test_collected_problems(path):
    with np.load(path) as stored:
        M, q = stored["M"], stored["q"]
    truth = [assert_collected(M, q, method) for method in METHODS]
    assert truth[METHODS.index("lcp_auto")] == (path.stem != "lcp_Pang_isolated_sol_perturbed")  # this one has no solution


@pytest.mark.reference
@pytest.mark.skipif(not REFERENCE_PROBLEMS.is_dir(), reason="the collection of problems is not at hand")
@pytest.mark.parametrize("path", sorted((REFERENCE_PROBLEMS / "mlcp").glob("*.npz")), ids=lambda path: path.stem)
def test_collected_problems_with_equations(path):
    with np.load(path) as stored:
        M, q, n_equations = stored["M"], stored["q"], int(stored["neq"])
    if M.shape[0] != M.shape[1]:
        with pytest.raises(ValueError, match="M must have shape"):
            solvers.solve_lcp(M, q)
        return
    equation = np.arange(len(q)) < n_equations
    truth = [assert_collected(M, q, method, equation) for method in METHODS if method != "lcp_enumerate" or len(q) < 12]
    assert truth[METHODS.index("lcp_auto")] == (path.stem != "diodeBridge20")  # singular equations, too many bases to try


def assert_collected(M, q, method, equation=None):
    """True when solved; a claim of convergence is checked against plain NumPy."""
    s = solve(M, q, method, equation)
    equation = np.zeros(len(q), bool) if equation is None else equation
    noise = np.linalg.norm(reference_lcp.rounding(M, q, s.z))
    assert s.status != status.CONVERGED or reference_lcp.merit(M, q, s.z, equation) <= 1e-10 + noise
    return s.status == status.CONVERGED


# What cannot be solved is said.


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("M", "q"),
    [
        ([[1.0, -1], [-1, 1]], [-1.0, -1]),
        ([[0.0]], [-1.0]),
        ([[0.0, 0], [0, 1]], [-1.0, 1]),
        ([[-1.0]], [-1.0]),
        (-np.ones((11, 11)), -np.ones(11)),
        (np.kron(np.eye(40), [[1.0, -1], [-1, 1]]), -np.ones(80)),
        (sp.csr_array(np.kron(np.eye(40), [[1.0, -1], [-1, 1]])), -np.ones(80)),
    ],
)
def test_infeasible_problems_are_reported(method, M, q):
    s = solvers.solve_lcp(M, q, method, on_failure="return", max_iter=2000)
    assert s.status != status.CONVERGED
    assert s.residual > 0.1
    assert status.advice(s.status)
    with pytest.raises(solvers.SolverError, match=method) as caught:
        solvers.solve_lcp(M, q, method, max_iter=2000)
    assert caught.value.solution.status == s.status


@examples(400)
@given(generators, st.integers(1, 12), methods)
def test_nothing_false_is_claimed_of_any_matrix(rng, n, method):
    """Random, singular, indefinite and badly scaled, from any first guess."""
    M = rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < rng.uniform())
    S, scale = 10.0 ** rng.uniform(-4, 4, size=n), 10.0 ** rng.uniform(-8, 8)
    M, q = S[:, None] * M * S, S * rng.normal(size=n) * scale
    equation = rng.uniform(size=n) < 0.2
    s = solve(M, q, method, equation, z0=abs(rng.normal(size=n)), max_iter=300)
    noise = np.linalg.norm(reference_lcp.rounding(M, q, s.z)) / (1 + np.linalg.norm(q))
    merit = reference_lcp.merit(M, q, s.z, equation)
    assert s.status != status.CONVERGED or merit <= 1e-10 + noise
    assert s.status != status.CONVERGED or (s.z[~equation] >= 0).all()
    assert s.status == status.CONVERGED or not merit <= 1e-10 - noise


@examples(150)
@given(problems(), generators)
def test_default_solves_badly_scaled_problems(p, rng):
    S = 10.0 ** rng.uniform(-4, 4, size=len(p.q))
    M, q = S[:, None] * p.M * S, S * p.q
    s = solvers.solve_lcp(M, q)
    noise = np.linalg.norm(reference_lcp.rounding(M, q, s.z)) / (1 + np.linalg.norm(q))
    assert reference_lcp.merit(M, q, s.z, p.equation) <= 1e-10 + noise


def test_lemke_names_the_ray():
    assert solvers.solve_lcp([[1.0, -1], [-1, 1]], [-1.0, -1], "lcp_lemke", on_failure="return").status == status.RAY


def test_pgs_names_the_vanishing_diagonal():
    assert solvers.solve_lcp([[0.0]], [-1.0], "lcp_pgs", on_failure="return").status == status.SINGULAR


def test_enumeration_names_its_limit():
    assert solvers.solve_lcp(np.eye(21), -np.ones(21), "lcp_enumerate", on_failure="return").status == status.UNSUITED


def test_enumeration_returns_the_best_basis():
    """``z_2 = 1`` solves the second row; nothing solves the first."""
    s = solvers.solve_lcp([[0.0, 0], [0, 1]], [-1.0, -1], "lcp_enumerate", on_failure="return")
    assert s.z.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("lcp_auto", "lcp_enumerate")])
def test_iteration_limit_is_kept(method):
    rng = np.random.default_rng(1)
    A = rng.normal(size=(30, 30))
    s = solvers.solve_lcp(A @ A.T + np.eye(30), 10 * rng.normal(size=30), method, max_iter=1, tol=1e-14, on_failure="return")
    assert s.n_iter == 1
    assert s.status != status.CONVERGED


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("q", [[], np.zeros(0)])
def test_nothing_to_solve_is_solved(method, q):
    for M in (np.zeros((0, 0)), sp.csr_array((0, 0))):
        s = solvers.solve_lcp(M, q, method)
        assert (s.status, s.residual, s.z.size, s.w.size) == (status.CONVERGED, 0.0, 0, 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("q", "z", "w"), [(-6.0, 3.0, 0.0), (6.0, 0.0, 6.0), (0.0, 0.0, 0.0)])
def test_one_unknown(method, q, z, w):
    s = solvers.solve_lcp([[2.0]], [q], method)
    np.testing.assert_allclose([s.z[0], s.w[0]], [z, w], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_not_solved(method, n, bad):
    """Checked inputs never are; a simulation that explodes hands them to the kernels."""
    M, q = np.eye(n) + 1.0, -np.ones(n)
    for place in range(n):
        spoiled, q_spoiled = M.copy(), q.copy()
        spoiled[place, 0], q_spoiled[place] = bad, bad
        for A, b in ((spoiled, q), (M, q_spoiled)):
            row, column = np.arange(n + 1) * n, np.tile(np.arange(n), n)
            n_work, n_iwork = table.METHODS[method].work_size(n, row, column)
            z, w, info = np.ones(n), np.zeros(n), np.zeros(2)
            scratch = np.zeros(n_work), np.zeros(max(n_iwork, 1), np.int64)
            arguments = (row, column, A.reshape(-1), b, np.zeros(n), np.full(n, np.inf), np.array([1e-10, 50.0]), z, w, info, *scratch)
            assert getattr(table.METHODS[method], method)(*arguments) != status.CONVERGED


@pytest.mark.parametrize("method", METHODS)
def test_overflow_is_not_called_convergence(method):
    s = solvers.solve_lcp([[1e-200]], [-1e200], method, on_failure="return", max_iter=10)
    assert s.status != status.CONVERGED
    n = 3
    s = solvers.solve_lcp(np.eye(n), [1e160, -1e153, 1.0], method, z0=np.zeros(n), on_failure="return", max_iter=10)
    assert s.status != status.CONVERGED or abs(s.z[1] - 1e153) < 1e143


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


@examples(60)
@given(generators, st.integers(1, 7))
def test_kernels_agree_with_numpy(rng, n):
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
    assert not is_complementarity(lower, upper)
    assert is_complementarity(np.where(lower < 0, -np.inf, 0.0), np.full(n, np.inf))


@examples(60)
@given(problems(), methods, generators)
def test_kept_scratch_gives_the_same_bits(p, method, rng):
    """Several q with one M: scratch that is kept as the last call left it, and scratch that is cleared before each call."""
    kept = new_scratch(p.M, method)
    for q in (p.q, p.q, p.q + 1e-3 * p.M @ rng.uniform(size=len(p.q)), p.M @ -np.ones(len(p.q)), p.q):
        a, b = solve(p.M, q, method, scratch=kept), solve(p.M, q, method, scratch=new_scratch(p.M, method))
        assert (a.status, a.n_iter, a.z.tobytes()) == (b.status, b.n_iter, b.z.tobytes())


@examples(60)
@given(problems(P_KINDS[:1]), st.sampled_from(["lcp_auto", "lcp_newton_min", "lcp_proximal"]), generators)
def test_scratch_of_another_matrix_is_declared(p, method, rng):
    """``iwork[0] = 0`` says that M has changed: nothing of the last one is used."""
    scratch = new_scratch(p.M, method)
    solve(p.M, p.q, method, scratch=scratch)
    M = p.M + np.diag(rng.uniform(1, 2, size=len(p.q)))
    scratch[1][0] = 0
    assert solve(M, p.q, method, scratch=scratch).z.tobytes() == solve(M, p.q, method).z.tobytes()


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
    M, q = KINDS["positive definite"](np.random.default_rng(4), 5)
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
