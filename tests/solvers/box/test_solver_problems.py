"""Problems that carry a name or a structure: chains, stacks, worst cases of pivoting, the literature's examples, collected problems."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nsds import solvers, status
from nsds.solvers import table
from nsds.solvers.box import forms
from tests import reference_solvers as twins
from tests.paths import PROBLEMS
from tests.strategies import examples, generators

METHODS = list(solvers.methods("lcp"))
FINITE = ["auto", "newton_min", "proximal", "lemke", "murty", "bard", "enumerate", "newton_fb", "interior_point"]
SPARSE = ["newton_min", "proximal", "auto", "direct", "interior_point", "newton_fb", "qp", "pgs", "psor", "rpgs", "nsgs", "cpg", "latin"]


def lcp_merit(M, q, z):
    return twins.merit(M, q, z, np.zeros(len(q)), np.full(len(q), np.inf))


# Structure: chains, rings, trees, stacks.


def chain(n, rng, closed=False):
    """Delassus matrix of a column of n contacts (a ring when closed), as sparse rows."""
    W = solvers.FAMILIES["chain"](rng, n)[0].tolil()
    if closed:
        W[0, n - 1] = W[n - 1, 0] = -0.3
    return W.tocsr()


def loads(n, rng):
    return rng.normal(size=n), -abs(rng.normal(size=n)), np.zeros(n), np.eye(n)[0] * -1e-2


@pytest.mark.parametrize("method", ["auto", "newton_min", "proximal", "interior_point", "qp"])
@pytest.mark.parametrize("n", [1, 2, 7, 50, 500])
@pytest.mark.parametrize("closed", [False, True])
def test_chains_are_solved(method, n, closed):
    rng = np.random.default_rng(n)
    M = chain(n, rng, closed and n > 2)
    for q in loads(n, rng):
        s = solvers.solve_lcp(M, q, method, tol=1e-9)  # rounding of w, where random q makes z of order n^2
        assert lcp_merit(M, q, s.z) <= 1.01e-9
        assert s.n_iter <= 60 or method == "qp"


@examples(60)
@given(generators, st.integers(1, 9), st.booleans())
def test_short_chains_agree_with_enumeration(rng, n, closed):
    M = chain(n, rng, closed and n > 2)
    for q in loads(n, rng):
        expected = solvers.solve_lcp(M, q, "enumerate", tol=1e-12).z
        np.testing.assert_allclose(solvers.solve_lcp(M, q, "newton_min", tol=1e-12).z, expected, atol=1e-9)


@pytest.mark.parametrize("method", SPARSE)
def test_work_of_chains_is_linear(method):
    rows = [forms.compressed_rows(forms.matrix("", "", chain(n, np.random.default_rng(0))))[:2] for n in (1000, 10_000)]
    sizes = [table.find(method, "relay").work_size(row.size - 1, row, column) for row, column in rows]
    assert sizes[1][0] <= 10 * sizes[0][0] + 100
    assert sizes[1][1] <= 10 * sizes[0][1] + 100


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_long_chain_in_any_order(shuffled):
    n, rng = 100_000, np.random.default_rng(0)
    M, q = solvers.FAMILIES["chain"](rng, n)
    if shuffled:
        order = rng.permutation(n)
        M, q = M[order][:, order], q[order]
    s = solvers.solve_lcp(M, q, tol=1e-9)
    assert lcp_merit(M, q, s.z) <= 1.01e-9


@pytest.mark.parametrize("n_children", [1, 2, 5])
def test_branching_trees_are_solved(n_children):
    """Each contact is linked to its parent; elimination fills the envelope, the answer stays exact."""
    n, rng = 127, np.random.default_rng(3)
    M = sp.lil_array((n, n))
    M.setdiag(1.0 + n_children)
    for child in range(1, n):
        parent = (child - 1) // n_children
        M[child, parent] = M[parent, child] = -rng.uniform(0.5, 0.9)
    q = rng.normal(size=n)
    s = solvers.solve_lcp(M.tocsr(), q, "newton_min", tol=1e-12)
    np.testing.assert_allclose(s.z, solvers.solve_lcp(M.tocsr(), q, "lemke", tol=1e-12).z, atol=1e-10)


def stack(n_blocks, n_contacts):
    """H of blocks on top of each other that translate and turn; more than two contacts between two blocks are redundant."""
    H = sp.lil_array((n_blocks * n_contacts, 2 * n_blocks))
    for block in range(n_blocks):
        for k, x in enumerate(np.linspace(-1, 1, n_contacts)):
            H[block * n_contacts + k, [2 * block, 2 * block + 1]] = 1.0, x
            if block:
                H[block * n_contacts + k, [2 * block - 2, 2 * block - 1]] = -1.0, -x
    return H.tocsr()


@pytest.mark.parametrize("method", ["auto", "proximal"])
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
        assert lcp_merit(W, q, solvers.solve_lcp(W, q, method).z) <= 1.01e-10


def test_proximal_steps_share_the_load():
    """From z = 0 the multipliers of redundant constraints are those of least norm, here equal ones; elimination loads the first."""
    M, q = np.ones((4, 4)), -np.ones(4)
    np.testing.assert_allclose(solvers.solve_lcp(M, q, "proximal").z, np.full(4, 0.25), rtol=1e-6)
    np.testing.assert_allclose(solvers.solve_lcp(M, q, "newton_min").z, [1, 0, 0, 0], atol=1e-14)


@pytest.mark.parametrize("family", ["unsymmetric", "redundant", "degenerate", "optimality_conditions", "stack"])
@pytest.mark.parametrize("kind", ["lcp", "relay"])
@pytest.mark.parametrize("n", [30, 64, 120, 257])
def test_default_solves_larger_problems(family, kind, n):
    for seed in range(2):
        p = solvers.generate(family, n, seed, kind)
        s = solvers.solve_relay(p.M, p.q, p.lower, p.upper)
        assert twins.merit(*p[1:3], s.z, *p[3:]) <= 1e-10 + np.linalg.norm(twins.rounding(p.M, p.q, s.z))


# Problems that carry a name in the literature.


def test_murty_2_8():
    """Murty, Linear Complementarity, example 2.8."""
    M = np.array([[1.0, -1, -1, -1], [-1, 1, -1, -1], [1, 1, 2, 0], [1, 1, 0, 2]])
    q = np.array([3.0, 5, -9, -5])
    for method in ("auto", "lemke", "enumerate"):
        assert lcp_merit(M, q, solvers.solve_lcp(M, q, method).z) < 1e-14
    np.testing.assert_allclose(solvers.solve_lcp(M, q, "lemke").z, [2, 1, 3, 1], rtol=1e-14)


def test_murty_2_9():
    """Murty, example 2.9: M and q are negative: Lemke's method ends on a ray; the first row proves that there is no solution."""
    M = np.array([[-1.0, 0, -3], [1, -2, -5], [-2, -1, -2]])
    assert solvers.solve_lcp(M, [-3, -2, -1], "lemke", on_failure="continue").status == status.INFEASIBLE


def test_murty_2_11():
    """Murty, example 2.11: whether Lemke's method ends on a ray depends on the column of t; for ours it solves the problem."""
    M, q = np.array([[-1.5, 2], [-4, 4]]), np.array([-5.0, 17])
    for method in ("auto", "lemke", "enumerate"):
        assert lcp_merit(M, q, solvers.solve_lcp(M, q, method).z) < 1e-14


@pytest.mark.parametrize("method", FINITE)
def test_kostreva_1(method):
    """Kostreva (1979), example 1: a P-matrix on which Lemke's method cycles under careless ties, and exchanging all wrong signs too."""
    M = np.array([[1.0, 2, 0], [0, 1, 2], [2, 0, 1]])
    np.testing.assert_allclose(solvers.solve_lcp(M, -np.ones(3), method).z, np.full(3, 1 / 3), rtol=1e-7)


@pytest.mark.parametrize("method", FINITE)
def test_murty_exponential(method):
    """Murty (1978): pivoting may take 2^n - 1 steps; z is the last unit vector."""
    p = solvers.generate("murty", 8)
    s = solvers.solve_lcp(p.M, p.q, method, max_iter=1000)
    np.testing.assert_allclose(s.z, np.eye(8)[-1], atol=1e-9)
    if method == "murty":
        assert s.n_iter >= 2**7


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("direct", "cpg")])
def test_fathi(method):
    """Fathi (1979): positive definite, symmetric; z is the first unit vector; ill-conditioned."""
    p = solvers.generate("fathi", 8)
    s = solvers.solve_lcp(p.M, p.q, method, max_iter=200_000)
    np.testing.assert_allclose(s.z, np.eye(8)[0], atol=1e-6)


@pytest.mark.parametrize("method", ["auto", "lemke", "enumerate", "newton_fb", "interior_point"])
def test_copositive_plus_matrix_without_diagonal(method):
    """A linear programme (maximise x subject to x <= 3) as an LCP: zero diagonal, skew-symmetric."""
    M = np.array([[0.0, 1], [-1, 0]])
    np.testing.assert_allclose(solvers.solve_lcp(M, [-1.0, 3.0], method).z, [3.0, 1.0], atol=1e-8)


@pytest.mark.parametrize("method", ["auto", "enumerate"])
def test_matrix_that_pivoting_does_not_process(method):
    """A bimatrix game: Lemke's method with equal entries in the column of t ends on a ray, though there is a solution."""
    A, q = np.array([[10.0, 20], [30, 15]]), -np.ones(4)
    M = np.kron([[0, 1], [1, 0]], A)
    assert solvers.solve_lcp(M, q, "lemke", on_failure="continue").status == status.RAY
    assert lcp_merit(M, q, solvers.solve_lcp(M, q, method).z) <= 1e-10


@pytest.mark.parametrize("n", [4, 12, 40])
def test_lexicographic_ties(n):
    """Fully degenerate: equal ratios, equal rows, zeros in q: finite, within a pivot for each row and its return."""
    ones = np.ones((n, n))
    for M in (ones + np.eye(n), ones, np.kron(np.eye(n // 2), np.ones((2, 2)))):
        for q in (-np.ones(n), -np.r_[np.ones(n // 2), np.zeros(n // 2)], np.zeros(n)):
            if (M[0] == M[n // 2]).all() and q[0] != q[-1]:
                continue  # contradictory
            s = solvers.solve_lcp(M, q, "lemke")
            assert lcp_merit(M, q, s.z) < 1e-12
            assert s.n_iter <= 2 * n + 1


def test_a_full_wave_rectifier_with_a_singular_block_of_equations():
    """Four ideal diodes round a load: with all of them blocking, the node between two of them has no voltage of its own.

    Unknowns: voltages of the two nodes beside the source's ground, currents of the diodes; the equations alone are singular.
    """
    E = np.array([[1.0, -1, 0, 0], [0, 0, 1, -1]])  # currents of the diodes into the two floating nodes
    for source in (1.0, -1.0):
        M = np.block([[np.zeros((2, 2)), E], [-E.T, 1e-3 * np.eye(4)]])
        q = np.r_[-source, source, 1.5, 0.0, 0.0, 1.5]
        lower = np.r_[-np.inf, -np.inf, np.zeros(4)]
        assert np.linalg.matrix_rank(M[:2, :2]) == 0
        s = solvers.solve_mlcp(M, q, lower, np.inf)
        expected = twins.solve_by_enumeration(M, q, lower, np.full(6, np.inf))
        np.testing.assert_allclose(M @ s.z + q, M @ expected + q, atol=1e-9)


# The collection of solver tests of the Siconos package (numerics/src/LCP/test/data, MLCP/test/data): the small hard ones.

PANG = np.array([[0.0, -1, -1], [1, 0, 0], [-1, 0, 0]])


def test_isolated_solution():
    """lcp_Pang_isolated_sol: z_1 = 1, z_2 = z_3 = 0 is all there is; a perturbation of q takes it away."""
    np.testing.assert_array_equal(solvers.all_solutions(PANG, [0.0, -1, 1]), [[1, 0, 0]])
    np.testing.assert_allclose(solvers.solve_lcp(PANG, [0.0, -1, 1]).z, [1, 0, 0], atol=1e-10)
    s = solvers.solve_lcp(PANG, [-1e-4, -1, 1], on_failure="continue")
    assert (s.status, s.method) == (status.INFEASIBLE, "auto: lemke")


def test_diode_bridge():
    """diodeBridge: the block of the three equations alone has rank 2."""
    M = np.zeros((7, 7))
    M[:3] = [[0, -1e-3, 1e-3, 0, 1, 0, 1], [0, 1e-3, -1e-3, -1, 0, -1, 0], [-1.0025, 0, 0, 0, 0, 10, -10]]
    M[3, 2], M[4, 1], M[5, [0, 2]], M[6, [1, 0]] = -1, 1, [1, -1], [1, -1]
    q = np.r_[0, 0, 0.9975, np.zeros(4)]
    assert np.linalg.matrix_rank(M[:3, :3]) == 2
    s = solvers.solve_mlcp(M, q, np.r_[-np.inf * np.ones(3), np.zeros(4)], np.inf)
    np.testing.assert_allclose(s.w[4:6], 0.985185185, rtol=1e-8)
    np.testing.assert_allclose(s.z[[3, 6]], 0.000985185185, rtol=1e-8)


def test_more_equations_than_free_unknowns():
    """Rectangular: u = v and u + v = 1, and 0 <= v ⟂ u + v - 1 >= 0."""
    s = solvers.solve_mlcp([[1.0, -1], [-1, -1], [1, 1]], [0.0, 1, -1], [-np.inf, 0], np.inf)
    np.testing.assert_allclose(s.z, [0.5, 0.5], atol=1e-12)
    np.testing.assert_allclose(s.w, 0.0, atol=1e-12)


COLLECTED_FILES = sorted(path for kind in ("lcp", "mlcp", "relay") for path in (PROBLEMS / kind).glob("*.npz"))


@pytest.mark.reference
@pytest.mark.skipif(not PROBLEMS.is_dir(), reason="the collection of problems is not at hand")
@pytest.mark.parametrize("path", COLLECTED_FILES, ids=lambda path: path.stem)
def test_collected_problems(path):
    p = solvers.read_problem(path)
    lower, upper = forms.bounds("test", len(p.q), p.lower, p.upper)
    n_bounds = np.isfinite(lower).sum()
    for method in METHODS:
        if method == "enumerate" and n_bounds > 10:
            continue
        s = solvers.solve_relay(p.M, p.q, lower, upper, method, on_failure="continue")
        if s.status == status.CONVERGED:
            noise = twins.rounding(p.M, p.q, s.z) + np.where(p.q == 0.0, 1e-10 * twins.worth(p.M, p.q, lower, upper), 0.0)
            assert (twins.errors(p.M, p.q, s.z, lower, upper) <= 1e-10 * twins.terms(p.M, p.q, s.z) + noise).all()
            assert method != "auto" or twins.merit(p.M, p.q, s.z, lower, upper) <= 1e-10 + np.linalg.norm(noise)
        if method == "auto":
            assert s.status == (status.INFEASIBLE if path.stem == "lcp_Pang_isolated_sol_perturbed" else status.CONVERGED)
