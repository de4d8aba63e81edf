"""Every solver of the table: the definition of the solution, agreement with slow twins, invariances, truth about what was not solved."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nsds import solvers, status
from nsds.solvers import table
from nsds.solvers.box import forms
from nsds.solvers.box.signature import Options, Problem
from tests import reference_solvers as twins
from tests.strategies import DEFINITE, SOLVABLE, Drawn, draw_problem, examples, generators, problems

METHODS = list(solvers.methods("relay"))
methods = st.sampled_from(METHODS)
_P = {*DEFINITE, "m_matrix", "chain"}
_SYMMETRIC = {"positive_definite", "chain"}
# Families of problems that a method solves, whatever the bounds, from any guess. Others it may solve, or say that it did not.
PROMISED = {
    "auto": set(SOLVABLE),
    "direct": set(),  # only from a guess on the right sides, see below
    "newton_min": _P,
    "proximal": set(SOLVABLE),
    "lemke": set(SOLVABLE),
    "murty": _P,
    "bard": _P,
    "enumerate": set(SOLVABLE),
    "newton_fb": set(SOLVABLE),
    "interior_point": _P,
    "qp": _SYMMETRIC,
    "pgs": _SYMMETRIC | {"m_matrix"},
    "psor": _SYMMETRIC,
    "rpgs": _SYMMETRIC | {"m_matrix"},
    "nsgs": _SYMMETRIC | {"m_matrix"},
    "cpg": _SYMMETRIC,
    "latin": _P,
}


def promised(method, family):
    return family in PROMISED[method]


def solve(p, method, *, tol=1e-10, z0=None, on_failure="continue", max_iter=None, **options):
    return solvers.solve_relay(p.M, p.q, p.lower, p.upper, method, tol, max_iter, z0, on_failure, **options)


def solve_by_kernel(p, method, scratch, tol=1e-10, z0=None, max_iter=0):
    """Through the signature, with scratch that may have been used before."""
    problem, n = forms.box("test", p.M, p.q, p.lower, p.upper, False)[0], len(p.q)
    z, w, info = np.zeros(n) if z0 is None else z0.copy(), np.zeros(n), np.zeros(3)
    options = Options(tol, float(max_iter), 0.0, 0.0, 0.0, 0.1)
    code = table.find(method, "relay").kernel(problem, options, z, w, info, *scratch)
    return solvers.Solution(z, w, code, int(info[0]), info[1], method)


def new_scratch(p, method):
    return table.scratch(table.find(method, "relay"), len(p.q), *forms.compressed_rows(p.M)[:2])


def assert_same(z, other, p, tol):
    """Two approximate solutions of a definite problem."""
    errors = sum(np.linalg.norm(tol * twins.terms(p.M, p.q, x) + twins.rounding(p.M, p.q, x)) for x in (z, other))
    assert np.linalg.norm(z - other) <= twins.distance_bound(p.M) * errors


def assert_truthful(p, s, tol=1e-10):
    """CONVERGED means what the definition says, up to tol and the rounding of w; anything else that it does not hold."""
    assert np.isfinite([*s.z, *s.w]).all()
    assert (s.z >= p.lower).all()
    assert (s.z <= p.upper).all()
    size, noise = twins.terms(p.M, p.q, s.z), twins.rounding(p.M, p.q, s.z)
    error = twins.errors(*p.data[:2], s.z, *p.data[2:])
    np.testing.assert_array_less(abs(s.w - p.M @ s.z - p.q), noise + 1e-300)
    if s.status != status.CONVERGED:
        tol = tol / np.sqrt(len(p.q))
        data = np.where((p.q == 0.0) | (abs(p.q) >= 0.01 * size), size, abs(p.q))
        assert not (error <= tol * data - noise).all()
        return
    assert (error <= tol * size + noise).all()
    assert abs(s.residual - twins.relative_error(*p.data[:2], s.z, *p.data[2:])) <= 1e-10


def test_every_method_is_promised_something():
    assert set(PROMISED) == set(METHODS) == set(solvers.methods("qp")) - {"cao_ferris", "interior_sparse"}
    assert list(solvers.methods("lcp")) == list(solvers.methods("mlcp")) == METHODS


@examples(1000)
@given(problems((*SOLVABLE, "optimality_conditions", "indefinite")), methods)
def test_solution_satisfies_its_definition(p, method):
    s = solve(p, method)
    assert s.method == method or (method == "auto" and s.method.startswith("auto: "))
    assert s.status == status.CONVERGED or not promised(method, p.family)
    assert_truthful(p, s)


@examples(300)
@given(problems(("optimality_conditions",), kinds=("lcp", "relay")), st.sampled_from(["auto", "lemke", "enumerate"]))
def test_zeros_on_the_diagonal_are_no_obstacle(p, method):
    s = solve(p, method, on_failure="raise")
    assert_truthful(p, s)


@examples(300)
@given(problems(DEFINITE), methods)
def test_agrees_with_the_twin_that_tries_everything(p, method):
    if promised(method, p.family):
        assert_same(solve(p, method, tol=1e-12, on_failure="raise").z, twins.solve_by_enumeration(*p.data, tol=1e-12), p, 1e-12)


@examples(300)
@given(problems(("redundant", "degenerate", "stack")), methods)
def test_velocities_of_redundant_problems_are_unique(p, method):
    """z is not unique where M = H H^T is singular; w is, since ``|H^T (z - z')|^2 = (z - z')^T (w - w') <= errors of complementarity``."""
    s = solve(p, method)
    if s.status == status.CONVERGED:
        z = twins.solve_by_enumeration(*p.data, tol=1e-10)
        w = p.M @ z + p.q
        allowed = 1e-10 * (np.linalg.norm(twins.terms(p.M, p.q, z)) + np.linalg.norm(twins.terms(p.M, p.q, s.z)))
        gap = allowed * (abs(s.z).sum() + abs(z).sum() + abs(s.w).sum() + abs(w).sum() + allowed)
        np.testing.assert_allclose(s.w, w, rtol=0, atol=np.sqrt(2 * gap * np.linalg.norm(p.M, 2)) + 1e-12)


@examples(300)
@given(problems(DEFINITE), methods, generators)
def test_permutation_permutes_the_solution(p, method, rng):
    if promised(method, p.family):
        order = rng.permutation(len(p.q))
        permuted = p._replace(M=p.M[np.ix_(order, order)], q=p.q[order], lower=p.lower[order], upper=p.upper[order])
        z = solve(p, method, tol=1e-12, on_failure="raise").z
        assert_same(solve(permuted, method, tol=1e-12, on_failure="raise").z, z[order], permuted, 1e-12)


@examples(300)
@given(problems(DEFINITE), methods, generators)
def test_positive_diagonal_scaling_scales_the_solution(p, method, rng):
    """``S M S``, ``S q`` and bounds over S have the solution ``S^-1 z``, and the same merit."""
    if promised(method, p.family):
        S = 2.0 ** rng.integers(-6, 7, size=len(p.q))
        scaled = p._replace(M=S[:, None] * p.M * S, q=S * p.q, lower=p.lower / S, upper=p.upper / S)
        z = solve(p, method, tol=1e-12, on_failure="raise").z
        s = solve(scaled, method, tol=1e-12, on_failure="raise")
        assert_same(S * s.z, z, p, 1e-12)


@examples(300)
@given(problems(DEFINITE), methods, generators)
def test_first_guess_does_not_change_the_answer_of_definite_problems(p, method, rng):
    if promised(method, p.family):
        cold = solve(p, method, tol=1e-12, on_failure="raise").z
        for z0 in (rng.normal(size=len(p.q)), np.full(len(p.q), 1e-300), cold):
            assert_same(solve(p, method, tol=1e-12, z0=z0, on_failure="raise").z, cold, p, 1e-12)


@examples(300)
@given(problems(DEFINITE), methods)
def test_the_solution_as_guess_is_found_again(p, method):
    z = twins.solve_by_enumeration(*p.data, tol=1e-12)
    if method == "direct":
        assert solve(p, method, z0=z).status == status.CONVERGED
    elif promised(method, p.family):
        assert_same(solve(p, method, tol=1e-12, z0=z, on_failure="raise").z, z, p, 1e-12)


@examples(200)
@given(problems(DEFINITE, kinds=("lcp",)), methods)
def test_an_lcp_is_a_box_problem_with_bounds_0_and_infinity(p, method):
    lcp = solvers.solve_lcp(p.M, p.q, method, on_failure="continue")
    mlcp = solvers.solve_mlcp(p.M, p.q, 0.0, np.inf, method, on_failure="continue")
    assert lcp[2:] == mlcp[2:]
    np.testing.assert_array_equal(lcp.z, mlcp.z)
    n = len(p.q)
    blocks = {"A": np.zeros((0, 0)), "B": p.M, "C": np.zeros((0, n)), "D": np.zeros((n, 0)), "a": [], "b": p.q}
    np.testing.assert_array_equal(solvers.solve_mlcp(**blocks, method=method, on_failure="continue").z, lcp.z)


@examples(200)
@given(problems(DEFINITE, kinds=("relay",)), methods)
def test_bounds_out_of_reach_are_no_bounds(p, method):
    """Upper bounds that the solution keeps away from do not change it."""
    if promised(method, p.family):
        free = p._replace(lower=np.zeros(len(p.q)), upper=np.full(len(p.q), np.inf))
        z = solve(free, method, tol=1e-12, on_failure="raise").z
        bounded = free._replace(upper=z + 1.0)
        assert_same(solve(bounded, method, tol=1e-12, on_failure="raise").z, z, free, 1e-12)


@examples(200)
@given(problems(("positive_definite",)), methods, generators)
def test_sparse_and_dense_give_the_same(p, method, rng):
    if promised(method, p.family):
        M = np.where(rng.uniform(size=p.M.shape) < 0.5, p.M, 0.0)
        p = p._replace(M=M + M.T + np.diag(1 + abs(M).sum(axis=1) + abs(M).sum(axis=0)))
        dense = solve(p, method, tol=1e-12, on_failure="raise")
        for storage in (sp.csr_array, sp.csc_array, sp.coo_array, sp.bsr_array):
            np.testing.assert_allclose(solve(p._replace(M=storage(p.M)), method, tol=1e-12).z, dense.z, atol=1e-10)


@examples(400)
@given(problems(), methods, generators)
def test_kept_scratch_gives_the_same_bits(p, method, rng):
    """Several q with one M: scratch that is kept as the last call left it, and scratch that is cleared before each call."""
    kept = new_scratch(p, method)
    z0 = rng.normal(size=len(p.q))
    for q in (p.q, p.q, p.q + 1e-3 * p.M @ rng.uniform(size=len(p.q)), p.M @ -np.ones(len(p.q)), p.q):
        p = p._replace(q=q)
        a, b = solve_by_kernel(p, method, kept, z0=z0), solve_by_kernel(p, method, new_scratch(p, method), z0=z0)
        assert (a.status, a.n_iter, a.z.tobytes()) == (b.status, b.n_iter, b.z.tobytes())


@examples(200)
@given(problems(DEFINITE), methods, generators)
def test_scratch_of_another_matrix_is_declared(p, method, rng):
    """``iwork[0] = 0`` says that M has changed: nothing of the last one is used."""
    scratch = new_scratch(p, method)
    solve_by_kernel(p, method, scratch)
    p = p._replace(M=p.M + np.diag(rng.uniform(1, 2, size=len(p.q))))
    scratch[1][0] = 0
    assert solve_by_kernel(p, method, scratch).z.tobytes() == solve_by_kernel(p, method, new_scratch(p, method)).z.tobytes()


@examples(200)
@given(problems([*SOLVABLE, "chain"]), methods)
def test_methods_keep_to_their_scratch(p, method):
    """What lies behind the words that ``work_size`` asks for stays as it is."""
    sizes = [part.size for part in new_scratch(p, method)]
    longer = [np.full(size + 64, 77, kind) for size, kind in zip(sizes, (float, np.int64), strict=True)]
    scratch = [part[:size] for part, size in zip(longer, sizes, strict=True)]
    scratch[1][0] = 0
    solve_by_kernel(p, method, scratch)
    for part, size in zip(longer, sizes, strict=True):
        assert (part[size:] == 77).all()


@pytest.mark.parametrize("method", METHODS)
def test_equations_only_are_a_linear_system(method):
    rng = np.random.default_rng(5)
    A = rng.normal(size=(7, 7))
    M, q = A @ A.T + np.eye(7), rng.normal(size=7)
    s = solvers.solve_mlcp(M, q, -np.inf, np.inf, method, tol=1e-13)
    np.testing.assert_allclose(s.z, np.linalg.solve(M, -q), rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_equal_bounds_fix_a_z(method):
    M, q = np.array([[3.0, 1], [1, 2]]), np.array([-1.0, -4.0])
    s = solvers.solve_relay(M, q, [0.5, -9], [0.5, 9], method, z0=[0.5, 1.0])
    np.testing.assert_allclose(s.z, [0.5, 1.75], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("q", [[], np.zeros(0)])
def test_nothing_to_solve_is_solved(method, q):
    for M in (np.zeros((0, 0)), sp.csr_array((0, 0))):
        s = solvers.solve_lcp(M, q, method)
        assert (s.status, s.residual, s.z.size, s.w.size) == (status.CONVERGED, 0.0, 0, 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("q", "z", "w"), [(-6.0, 3.0, 0.0), (6.0, 0.0, 6.0), (0.0, 0.0, 0.0)])
def test_one_unknown(method, q, z, w):
    s = solvers.solve_lcp([[2.0]], [q], method, z0=[z])
    np.testing.assert_allclose([s.z[0], s.w[0]], [z, w], atol=1e-9)


# What cannot be solved is said.


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("M", "q", "proved"),
    [
        ([[1.0, -1], [-1, 1]], [-1.0, -1], True),
        ([[0.0]], [-1.0], True),
        ([[0.0, 0], [0, 1]], [-1.0, 1], True),
        ([[-1.0]], [-1.0], True),
        (-np.ones((11, 11)), -np.ones(11), True),
        (np.kron(np.eye(40), [[1.0, -1], [-1, 1]]), -np.ones(80), True),
        (sp.csr_array(np.kron(np.eye(40), [[1.0, -1], [-1, 1]])), -np.ones(80), True),
        ([[1.0, -1, 3], [2, -1, 3], [-1, -2, 0]], -np.ones(3), True),  # Kostreva (1979), example 2: cycles under careless ties
        ([[1.0, -1], [-1, 1]], [-1.0, 0.5], True),  # interior points grow until q is rounding
        ([[0.0, 1], [1, 0]], [1.0, -1], False),  # feasible, without a solution: z_2 > 0 asks z_1 = 1, whose w_1 = 1 + z_2 > 0
    ],
)
def test_infeasible_problems_are_reported(method, M, q, proved):
    s = solvers.solve_lcp(M, q, method, on_failure="continue", max_iter=2000)
    assert s.status != status.CONVERGED
    assert s.residual > 1e-3  # an error of the size of q, which is at least a hundredth of the terms, or the scale itself
    assert status.advice(s.status)
    if method in ("auto", "lemke"):
        assert (s.status == status.INFEASIBLE) == proved
    with pytest.raises(solvers.SolverError, match=method) as caught:
        solvers.solve_lcp(M, q, method, max_iter=2000)
    assert caught.value.solution.status == s.status


@pytest.mark.parametrize("method", METHODS)
def test_contradictory_equations_are_reported(method):
    s = solvers.solve_mlcp(np.ones((2, 2)), [1.0, 2.0], -np.inf, np.inf, method, on_failure="continue", max_iter=2000)
    assert s.status != status.CONVERGED
    assert s.residual > 1e-3  # an error of the size of q, which is at least a hundredth of the terms, or the scale itself
    if method in ("auto", "lemke"):
        assert s.status == status.INFEASIBLE


@examples(1000)
@given(generators, st.integers(1, 12), methods, st.booleans())
def test_nothing_false_is_claimed_of_any_matrix(rng, n, method, bounded):
    """Random, singular, indefinite and badly scaled, from any first guess, with equations and bounds."""
    M = rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < rng.uniform())
    S, scale = 10.0 ** rng.uniform(-4, 4, size=n), 10.0 ** rng.uniform(-8, 8)
    M, q = S[:, None] * M * S, S * rng.normal(size=n) * scale
    lower = np.where(rng.uniform(size=n) < 0.2, -np.inf, 0.0)
    upper = np.where(bounded & (rng.uniform(size=n) < 0.5), scale / S, np.inf)
    s = solvers.solve_relay(M, q, lower, upper, method, z0=abs(rng.normal(size=n)), max_iter=300, on_failure="continue")
    assert_truthful(Drawn(M, q, lower, upper, "any", "mixed"), s)


@examples(300)
@given(problems(), generators)
def test_default_solves_badly_scaled_problems(p, rng):
    S = 10.0 ** rng.uniform(-4, 4, size=len(p.q))
    p = p._replace(M=S[:, None] * p.M * S, q=S * p.q, lower=p.lower / S, upper=p.upper / S)
    s = solve(p, "auto")
    assert s.status == status.CONVERGED
    assert_truthful(p, s)


@examples(300)
@given(problems(("indefinite", "optimality_conditions")))
def test_infeasible_is_only_said_where_there_is_no_solution(p):
    for method in ("auto", "lemke", "interior_point", "qp", "murty"):
        if solve(p, method).status == status.INFEASIBLE:
            assert twins.solve_by_enumeration(*p.data, tol=1e-9) is None


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("auto", "enumerate", "direct")])
def test_iteration_limit_is_kept(method):
    rng = np.random.default_rng(1)
    A = rng.normal(size=(30, 30))
    s = solvers.solve_lcp(A @ A.T + np.eye(30), 10 * rng.normal(size=30), method, max_iter=1, tol=1e-14, on_failure="continue")
    assert s.n_iter == 1
    assert s.status == status.MAX_ITER


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
            z, w, info = np.ones(n), np.zeros(n), np.zeros(3)
            scratch = table.scratch(table.find(method, "relay"), n, row, column)
            options = Options(1e-10, 50.0, 0.0, 0.0, 0.0, 0.1)
            problem = Problem(row, column, A.reshape(-1), b, np.zeros(n), np.full(n, np.inf))
            assert table.find(method, "relay").kernel(problem, options, z, w, info, *scratch) != status.CONVERGED


@pytest.mark.parametrize("method", METHODS)
def test_overflow_is_not_called_convergence(method):
    s = solvers.solve_lcp([[1e-200]], [-1e200], method, on_failure="continue", max_iter=10)
    assert s.status != status.CONVERGED
    s = solvers.solve_lcp(np.eye(3), [1e160, -1e153, 1.0], method, z0=np.zeros(3), on_failure="continue", max_iter=10)
    assert s.status != status.CONVERGED or abs(s.z[1] - 1e153) < 1e143


def test_a_vanishing_diagonal_is_named():
    for method in ("pgs", "psor", "cpg"):
        assert solvers.solve_lcp([[0.0]], [-1.0], method, on_failure="continue").status == status.SINGULAR


def test_enumeration_names_its_limit_and_returns_the_best_basis():
    assert solvers.solve_lcp(np.eye(21), -np.ones(21), "enumerate", on_failure="continue").status == status.UNSUITED
    assert solvers.solve_relay(np.eye(13), -np.ones(13), method="enumerate", on_failure="continue").status == status.UNSUITED
    s = solvers.solve_lcp([[0.0, 0], [0, 1]], [-1.0, -1], "enumerate", on_failure="continue")  # nothing solves the first row
    assert s.z.tolist() == [0.0, 1.0]


def test_default_returns_the_best_of_its_attempts():
    p = draw_problem("indefinite", 6, 3, "lcp")._replace(q=-np.ones(6))
    auto = solve(p, "auto")
    assert auto.status not in (status.CONVERGED, status.INFEASIBLE)
    others = [solve(p, method).residual for method in ("lemke", "enumerate", "newton_fb", "interior_point")]
    assert auto.residual == pytest.approx(np.nanmin(others))


def test_lemke_tells_equations_that_leave_z_open_from_those_that_contradict():
    """Consistent and redundant: the rest of z is 0; coupled to an inequality it cannot reach: SINGULAR."""
    assert solvers.solve_mlcp(np.ones((3, 3)), [1.0, 1.0, 2.0], [-np.inf, -np.inf, 0], np.inf, "lemke").status == status.CONVERGED
    M = [[0.0, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert solvers.solve_mlcp(M, [1.0, 1.0, 1.0], [-np.inf, 0, 0], np.inf, "lemke", on_failure="continue").status == status.INFEASIBLE
    M = [[0.0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert solvers.solve_mlcp(M, [-1.0, 1.0, 1.0], [-np.inf, 0, 0], np.inf, "lemke", on_failure="continue").status == status.SINGULAR
