"""Kernels of the solvers against plain NumPy: iterates after k steps, factors, dictionaries, proofs."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from nsds import solvers, status
from nsds.solvers import table
from nsds.solvers.box import band, forms, newton_fb, signature, tableau
from nsds.solvers.box.signature import Options
from tests import reference_solvers as twins
from tests.strategies import DEFINITE, examples, generators, problems

NEVER = 1e-300  # a tolerance that stops no iteration


def solve(p, method, tol=1e-10, max_iter=None, **options):
    return solvers.solve_relay(p.M, p.q, p.lower, p.upper, method, tol, max_iter, on_failure="continue", **options)


def random_rows(rng, n, density=0.5):
    """A matrix with symmetric pattern and full diagonal, dense and as (row, column, data)."""
    M = np.where(rng.uniform(size=(n, n)) < density, rng.normal(size=(n, n)), 0.0)
    row, column, data, _ = forms.compressed_rows(forms.matrix("", "", sp.csr_array(M)))
    return M, row, column, data


@examples(60)
@given(generators, st.integers(1, 7))
def test_products_entries_and_the_merit(rng, n):
    M, row, column, data = random_rows(rng, n)
    q, z, w = rng.normal(size=n), rng.normal(size=n), np.empty(n)
    lower, upper = np.sort(rng.normal(size=(2, n)), axis=0)
    signature.multiply(row, column, data, q, z, w)
    np.testing.assert_allclose(w, M @ z + q)
    z = np.clip(z, lower, upper)
    merit, most = signature.residual(1e-10, 0.0, signature.Problem(row, column, data, q, lower, upper), z, w)[:2]
    assert merit == pytest.approx(twins.relative_error(M, q, z, lower, upper))
    assert most >= merit
    assert [signature.diagonal(row, column, data, i) for i in range(n)] == np.diag(M).tolist()
    assert [[signature.entry(row, column, data, i, j) for j in column[row[i] : row[i + 1]]] for i in range(n)] == [
        M[i, column[row[i] : row[i + 1]]].tolist() for i in range(n)
    ]


@examples(60)
@given(generators, st.integers(1, 7))
def test_exact_products_see_what_rounding_hides(rng, n):
    """Entries of very different size that nearly cancel, against Python's fractions."""
    M, row, column, data = random_rows(rng, n, density=1.0)
    z, w = 10.0 ** rng.uniform(0, 12, size=n), np.empty(n)
    q = -(M @ z) + rng.normal(size=n)
    signature.multiply_exactly(signature.Problem(row, column, data, q, np.full(n, -np.inf), np.full(n, np.inf)), z, w)
    exact = [float(sum((Fraction(a) * Fraction(b) for a, b in zip(M[i], z, strict=True)), Fraction(q[i]))) for i in range(n)]
    np.testing.assert_allclose(w, exact, rtol=1e-14, atol=1e-30 * abs(M @ z).max())


def test_a_merit_that_rounding_makes_zero_is_not_believed():
    """``w = -1 + z_1 - z_2`` with z = 1e17 both: 0 in floating point, -1 in truth."""
    M, q, z = np.array([[1.0, -1], [-1, 1]]), np.array([-1.0, 0.5]), np.full(2, 1e17)
    row, column, data, _ = forms.compressed_rows(M)
    lower, upper, w, info = np.zeros(2), np.full(2, np.inf), np.zeros(2), np.zeros(3)
    merit, most = signature.residual(1e-10, 0.0, signature.Problem(row, column, data, q, lower, upper), z, w)[:2]
    assert merit == 0.0 < 1e-10 < most
    options = Options(1e-10, 0.0, 0.0, 0.0, 0.0, 0.1)
    code = signature.conclude(status.CONVERGED, 1, row, column, data, q, lower, upper, options, z, w, info)
    assert (code, w.tolist()) == (status.STALLED, [-1.0, 0.5])


@examples(100)
@given(generators, st.integers(1, 12), st.integers(0, 4))
def test_band_factors_solve_like_numpy(rng, n, width):
    """Rows and columns of a subset; unsymmetric, with zeros on the diagonal."""
    M = rng.normal(size=(n, n)) * (abs(np.subtract.outer(np.arange(n), np.arange(n))) <= width)
    M[rng.uniform(size=(n, n)) < 0.2] = 0.0
    row, column, data, _ = forms.compressed_rows(forms.matrix("", "", sp.csr_array(M)))
    inside = rng.uniform(size=n) < 0.8
    member, b = np.r_[np.flatnonzero(inside), np.zeros(n, np.int64)], inside.sum()
    place = np.where(inside, np.cumsum(inside) - 1, -1)
    half = band.half_width(n, row, column)
    assert half == band.measure(n, row, column) <= width
    A, pivots, x = np.zeros(band.room(n, half)), np.zeros(n, np.int64), rng.normal(size=n)
    band.fill(b, half, row, column, data, member, place, A)
    part, rhs = M[np.ix_(inside, inside)], x[:b].copy()
    regular = band.factorise(b, half, A, pivots)
    assert regular or np.linalg.matrix_rank(part) < b
    if regular and b and np.linalg.cond(part) < 1e8:
        band.substitute(b, half, A, pivots, x)
        np.testing.assert_allclose(part @ x[:b], rhs, atol=1e-6)


def test_a_column_without_a_pivot_is_noticed():
    row, column, data, _ = forms.compressed_rows(np.array([[0.0, 1], [0, 1]]))
    A, pivots = np.zeros(band.room(2, 1)), np.zeros(2, np.int64)
    band.fill(2, 1, row, column, data, np.arange(2), np.arange(2), A)
    assert not band.factorise(2, 1, A, pivots)
    x = np.array([3.0, 3.0])
    band.substitute(2, 1, A, pivots, x)
    assert x.tolist() == [0.0, 3.0]  # the unknown without a pivot is 0, the other solves its equation


def test_a_direct_solution_leaves_what_its_basis_leaves_open():
    """Twice the same equation ``z_1 + z_2 = -2``: one unknown keeps its value; twice the same contact likewise."""
    s = solvers.solve_mlcp(np.ones((2, 2)), [2.0, 2.0], -np.inf, np.inf, "direct", z0=[-0.25, -0.75])
    assert sorted(s.z) == [-1.25, -0.75]
    s = solvers.solve_lcp(np.ones((2, 2)), [-2.0, -2.0], "direct", z0=[0.25, 0.75])
    assert sorted(s.z) == [0.75, 1.25]
    s = solvers.solve_mlcp(np.ones((2, 2)), [2.0, 3.0], -np.inf, np.inf, "direct", z0=[-0.25, -0.75], on_failure="continue")
    assert s.status == status.SINGULAR


@examples(150)
@given(generators, st.integers(1, 7), st.lists(st.tuples(st.integers(0, 6), st.integers(0, 7), st.floats(-2, 2)), max_size=6))
def test_the_dictionary_keeps_its_equation(rng, n, steps):
    """Whatever is exchanged and moved: ``w = M z + q``, in the scaled variables."""
    M, row, column, data = random_rows(rng, n)
    S = 10.0 ** rng.integers(-4, 5, size=n)
    M, data = S[:, None] * M * S, data * S[np.repeat(np.arange(n), np.diff(row))] * S[column]
    q, lower, upper = rng.normal(size=n), np.where(rng.uniform(size=n) < 0.5, 0.0, -np.inf), np.full(n, np.inf)
    n_work, n_iwork = tableau.work_size(n, row, column)
    work, iwork = np.zeros(n_work), np.zeros(n_iwork, np.int64)
    size = tableau.fill(signature.Problem(row, column, data, q, lower, upper), work, iwork)
    T, x, y, R, C = np.split(work, np.cumsum([n * (n + 1), n, n + 1, n, n]))[:5]
    basic, nonbasic, place = np.split(iwork, [n, 2 * n + 1])
    scaled = abs(R[:, None] * M * C)
    assert all(0.02 < m < 50 for m in [*scaled.max(axis=0), *scaled.max(axis=1)] if m > 0)
    np.testing.assert_allclose(T.reshape(n, n + 1)[:, :n], R[:, None] * M * C)
    for r, c, change in steps:
        r, c = r % n, c % n
        tableau.move(n, c, change, work, iwork)
        if abs(T[r * (n + 1) + c]) > 1e-3:
            tableau.exchange(n, r, c, work, iwork)
        values = np.zeros(2 * n + 1)
        values[basic], values[nonbasic] = x, y
        assert sorted([*basic, *nonbasic]) == list(range(2 * n + 1))
        assert [place[v] for v in basic] == list(range(n))
        z, w = values[n : 2 * n] * C * size, values[:n] / R * size
        np.testing.assert_allclose(R * (M @ z + q), R * w, atol=1e-6 * size * (1 + abs(values).max()) * (1 + scaled.max()))


@examples(200)
@given(problems(("positive_definite", "unsymmetric", "m_matrix"), kinds=("lcp", "mlcp")))
def test_newton_min_takes_the_steps_of_its_twin(p):
    expected = twins.solve_by_blocks(*p.data)
    if expected is not None:
        s = solve(p, "newton_min")
        assert s.n_iter == (expected[1] if len(p.q) > 1 else 1)
        np.testing.assert_allclose(s.z, expected[0], atol=1e-9)


@examples(200)
@given(problems(DEFINITE))
def test_murty_takes_the_steps_of_its_twin(p):
    z, n_iter = twins.solve_by_least_index(*p.data)
    s = solve(p, "murty")
    assert s.n_iter == n_iter
    np.testing.assert_allclose(s.z, z, atol=1e-9)


@examples(200)
@given(problems((*DEFINITE, "redundant", "degenerate", "optimality_conditions", "indefinite"), kinds=("lcp",)))
def test_lemke_agrees_with_its_twin(p):
    s = solve(p, "lemke")
    z, found = twins.solve_by_lemke(p.M, p.q)
    if p.family == "indefinite":  # either may follow another path
        return
    assert found == (s.status == status.CONVERGED)
    assert twins.merit(*p.data[:2], z, *p.data[2:]) < 1e-9


@examples(150)
@given(problems(("positive_definite", "m_matrix", "chain")), st.integers(1, 5), st.sampled_from(["pgs", "psor", "rpgs"]))
def test_sweeps_agree_with_their_twin(p, n_sweeps, method):
    s = solve(p, method, tol=NEVER, max_iter=n_sweeps)
    assert s.n_iter <= n_sweeps
    omega, rho = {"pgs": (1.0, 0.0), "psor": (1.3, 0.0), "rpgs": (1.0, 0.1)}[method]
    np.testing.assert_allclose(s.z, twins.solve_by_sweeps(*p.data, s.n_iter, omega, rho), rtol=1e-12, atol=1e-13)


@examples(60)
@given(problems(("positive_definite", "m_matrix")), st.floats(0.5, 1.5))
def test_weights_reach_the_sweeps(p, weight):
    s = solve(p, "psor", tol=NEVER, max_iter=2, weight=weight)
    np.testing.assert_allclose(s.z, twins.solve_by_sweeps(*p.data, s.n_iter, omega=weight), rtol=1e-12, atol=1e-13)
    s = solve(p, "rpgs", tol=NEVER, max_iter=2, weight=weight)
    np.testing.assert_allclose(s.z, twins.solve_by_sweeps(*p.data, s.n_iter, rho=weight), rtol=1e-12, atol=1e-13)


@examples(60)
@given(problems(("positive_definite", "m_matrix"), largest=7), st.integers(1, 3), st.integers(1, 4))
def test_block_sweeps_agree_with_their_twin(p, n_sweeps, size):
    s = solve(p, "nsgs", tol=NEVER, max_iter=n_sweeps, block=size)
    np.testing.assert_allclose(s.z, twins.solve_by_block_sweeps(*p.data, s.n_iter, size), atol=1e-9)


def test_blocks_of_a_block_sparse_matrix_are_those_of_the_sweeps():
    p = solvers.generate("positive_definite", 12, 3)
    by_hand = solvers.solve_lcp(p.M, p.q, "nsgs", block=4)
    assert solvers.solve_lcp(sp.bsr_array(p.M, blocksize=(4, 4)), p.q, "nsgs").n_iter == by_hand.n_iter
    assert solvers.solve_lcp(sp.bsr_array(p.M, blocksize=(2, 2)), p.q, "nsgs").n_iter != by_hand.n_iter
    assert solvers.solve_lcp(p.M, p.q, "nsgs", block=33, on_failure="continue").status == status.UNSUITED


@examples(100)
@given(problems(("positive_definite", "unsymmetric", "m_matrix")), st.integers(1, 6))
def test_latin_agrees_with_its_twin(p, n_iter):
    s = solve(p, "latin", tol=NEVER, max_iter=n_iter)
    assert s.n_iter <= n_iter
    np.testing.assert_allclose(s.z, twins.solve_by_splitting(*p.data, s.n_iter), atol=1e-9)


@examples(60)
@given(problems(("positive_definite", "chain"), largest=5), st.integers(1, 3))
def test_proximal_steps_agree_with_their_twin(p, n_steps):
    s = solve(p, "proximal", tol=1e-15, max_iter=n_steps)
    np.testing.assert_allclose(s.z, twins.solve_by_proximal_steps(*p.data, s.n_iter), atol=1e-9)


def objective(p, z):
    return z @ p.M @ z / 2 + p.q @ z


@examples(80)
@given(problems(("positive_definite", "redundant", "degenerate", "stack"), kinds=("lcp", "relay")), st.sampled_from(["cpg", "qp"]))
def test_the_objective_falls_from_step_to_step(p, method):
    values = [objective(p, solve(p, method, tol=1e-14, max_iter=k).z) for k in range(1, 12)]
    assert np.diff(values).max() <= 1e-12 * (1 + abs(np.array(values)).max())
    best = objective(p, twins.solve_by_enumeration(*p.data, tol=1e-10))
    assert objective(p, solve(p, method).z) <= best + 1e-7 * (1 + abs(best))


@examples(60)
@given(problems(("positive_definite", "unsymmetric", "redundant", "optimality_conditions"), kinds=("lcp", "relay"), largest=40))
def test_interior_points_stay_inside_and_are_few(p):
    for k in range(1, 6):
        s = solve(p, "interior_point", tol=1e-16, max_iter=k)
        assert ((s.z > p.lower) & (s.z < p.upper)).all() or s.status == status.CONVERGED  # then z may have been put to its bounds
    s = solve(p, "interior_point", tol=1e-8)
    assert s.status == status.CONVERGED
    assert s.n_iter <= 40


def phi(a, b):
    return a + b - np.hypot(a, b)


@examples(100)
@given(problems((*DEFINITE, "indefinite")), generators)
def test_fischer_burmeister_equations_and_their_derivative(p, rng):
    n = len(p.q)
    row, column, data, _ = forms.compressed_rows(p.M)
    z, scale = rng.normal(size=n), np.ones(n)
    w, Phi, along, across = np.zeros((4, n))
    problem = signature.Problem(row, column, data, p.q, p.lower, p.upper)
    newton_fb._equations(problem, scale, z, w, Phi, along, across)
    twin = w.copy()
    with np.errstate(invalid="ignore"):
        twin = np.where(p.upper < np.inf, -phi(p.upper - z, -w), twin)
        twin = np.where(p.lower > -np.inf, phi(z - p.lower, twin), twin)
    np.testing.assert_allclose(Phi, twin, atol=1e-12)
    J = np.diag(along) + across[:, None] * p.M
    for k in range(n):
        shifted, other, unused = z.copy(), np.zeros(n), np.zeros((3, n))
        shifted[k] += 1e-7
        newton_fb._equations(problem, scale, shifted, unused[0], other, unused[1], unused[2])
        np.testing.assert_allclose((other - Phi) / 1e-7, J[:, k], atol=1e-4 * (1 + abs(p.M).max()))


@examples(300)
@given(
    problems(("indefinite", "optimality_conditions"), kinds=("lcp", "mlcp", "mixed")), st.sampled_from(["lemke", "interior_point", "qp"])
)
def test_infeasible_means_that_a_linear_programme_has_no_point(p, method):
    """Signs of w and bounds of z alone are contradictory."""
    if solve(p, method).status == status.INFEASIBLE:
        at_least, at_most = p.upper == np.inf, p.lower == -np.inf
        G, g = np.vstack([-p.M[at_least], p.M[at_most]]), np.r_[p.q[at_least], -p.q[at_most]]
        assert linprog(np.zeros(len(p.q)), G, g, bounds=list(zip(p.lower, p.upper, strict=True))).status == 2


def test_a_direct_solution_keeps_its_factors():
    """From the second call on only the right-hand side changes; a new matrix is declared by ``iwork[0] = 0``."""
    M, lower, upper = np.array([[0.0, 1], [1, 0]]), np.full(2, -np.inf), np.full(2, np.inf)
    row, column, data, _ = forms.compressed_rows(M)
    method = table.find("direct", "relay")
    work, iwork = table.scratch(method, row.size - 1, row, column)
    for q in ([1.0, 2.0], [-3.0, 5.0]):
        z, w, info = np.zeros(2), np.zeros(2), np.zeros(3)
        options = Options(1e-12, 0.0, 0.0, 0.0, 0.0, 0.1)
        problem = signature.Problem(row, column, data, np.array(q), lower, upper)
        assert method.kernel(problem, options, z, w, info, work, iwork) == status.CONVERGED
        np.testing.assert_allclose(z, [-q[1], -q[0]])
        assert iwork[0] > 0
    kept = iwork.copy()
    data[:] = [0.0, 2.0, 2.0, 0.0]
    iwork[0] = 0
    problem = signature.Problem(row, column, data, np.array([1.0, 2.0]), lower, upper)
    method.kernel(problem, options, z, w, info, work, iwork)
    np.testing.assert_allclose(z, [-1.0, -0.5])
    assert (iwork == kept).all()


@pytest.mark.parametrize("method", solvers.methods("relay"))
@pytest.mark.parametrize("size", [1e-155, 1e-170, 1e155])
@pytest.mark.parametrize("bounds", [(0.0, np.inf), (-np.inf, np.inf), (-1.0, 1.0)], ids=["lcp", "equations", "relay"])
def test_every_method_ends_on_singular_matrices_of_extreme_size(method, size, bounds):
    """Squares of the entries vanish or overflow; whatever a method makes of it, it ends and says truthfully how."""
    s = solvers.solve_relay(np.full((2, 2), size), [1.0, -1.0], *bounds, method, on_failure="continue")
    assert s.status != status.CONVERGED or s.residual <= 1e-10


@pytest.mark.parametrize("entry", [0.0, 1e-320, 1e-200, 1e-155, 1.0, 1e155, 1e200, np.nan])
def test_the_dampings_of_newton_fb_can_be_multiplied(entry):
    """From the least to the largest by factors of 10: a least one of 0 would never get there."""
    least, most = newton_fb._dampings(np.array([entry]))
    assert 0.0 < least < most < np.inf


@pytest.mark.parametrize("dense", [True, False])
def test_blocks_are_joined_alike_as_an_array_and_sparse(dense):
    rng = np.random.default_rng(0)
    A, B, C = rng.normal(size=(2, 2)), rng.normal(size=(2, 3)), rng.normal(size=(3, 2))
    rows = [[A, B], [C, None]] if dense else [[sp.coo_array(A), B], [C, None]]
    joined = forms.joined(rows)
    assert isinstance(joined, np.ndarray) == dense
    np.testing.assert_array_equal(forms.dense(joined), np.block([[A, B], [C, np.zeros((3, 3))]]))


@pytest.mark.parametrize(
    ("numbers", "moderate"),
    [([], True), ([0.0, 1e50, -1e-50], True), ([1.0, 1e51], False), ([-1e-51], False), ([0.0, -1e60], False), ([np.nan], False)],
)
def test_numbers_of_extreme_sizes_are_found(numbers, moderate):
    for may_be_infinite in (True, False):
        assert forms._are_moderate(may_be_infinite, np.array(numbers, float)) == moderate
        assert forms._are_moderate(may_be_infinite, np.array([*numbers, -np.inf])) == (moderate and may_be_infinite)
