"""What solvers claim: the merit has no units, "proved" is proved, results read well, numbers are finite, work is bounded."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from nsds import solvers, status
from nsds.solvers.box import enumeration, forms, signature
from nsds.solvers.box.signature import Options
from tests import reference_solvers as twins
from tests.strategies import DEFINITE, SOLVABLE, examples, generators, problems

METHODS = list(solvers.methods("relay"))
PIVOTING = ["auto", "newton_min", "lemke", "murty", "bard", "enumerate"]


def in_units(p, R, C):
    return p._replace(M=R[:, None] * p.M * C, q=R * p.q, lower=p.lower / C, upper=p.upper / C)


def solve(p, method="auto", **options):
    return solvers.solve_relay(p.M, p.q, p.lower, p.upper, method, on_failure="continue", **options)


# Units.


@examples(200)
@given(problems((*SOLVABLE, "indefinite")), generators)
def test_the_merit_has_no_units(p, rng):
    """Powers of two change no bit of it, at any z."""
    n = len(p.q)
    R, C = 2.0 ** rng.integers(-40, 41, size=(2, n))
    z = np.clip(np.where(rng.uniform(size=n) < 0.5, rng.normal(size=n), 0.0), p.lower, p.upper)
    merits = []
    for problem, point in ((p, z), (in_units(p, R, C), z / C)):
        row, column, data, _ = forms.compressed_rows(problem.M)
        w, info = np.zeros(n), np.zeros(3)
        options = Options(1e-10, 0.0, 0.0, 0.0, 0.0, 0.1)
        arguments = (row, column, data, problem.q, problem.lower, problem.upper, options, point.copy(), w, info)
        merits.append((signature.conclude(status.MAX_ITER, 1, *arguments), info[1]))
    assert merits[0] == merits[1]


@examples(300)
@given(problems((*SOLVABLE, "optimality_conditions")), st.sampled_from(PIVOTING), generators)
def test_other_units_of_rows_and_unknowns_give_the_same_verdict(p, method, rng):
    R, C = 2.0 ** rng.choice([-20, 0, 20], size=(2, len(p.q)))
    if method != "auto" and p.family not in DEFINITE:
        return  # where rounding may decide about a pivot
    s, scaled = solve(p, method), solve(in_units(p, R, C), method)
    assert (s.status == status.CONVERGED) == (scaled.status == status.CONVERGED)
    if s.status == status.CONVERGED:
        error = twins.errors(p.M, p.q, C * scaled.z, p.lower, p.upper)
        assert (error <= 2e-10 * twins.terms(p.M, p.q, C * scaled.z)).all()


@pytest.mark.parametrize("method", [m for m in METHODS if m != "direct"])
@pytest.mark.parametrize("size", [1e-12, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("kind", ["lcp", "relay"])
def test_tiny_and_large_entries_are_solved_as_well(method, size, kind):
    """The same relative error whatever the unit of w and of z."""
    p = solvers.generate("positive_definite", 5, 3, kind)
    exact = twins.solve_by_enumeration(p.M, p.q, *forms.bounds("", 5, p.lower, p.upper), tol=1e-13)
    for M, q, unit in ((p.M * size, p.q * size, 1.0), (p.M, p.q * size, size), (p.M / size, p.q, size)):
        s = solvers.solve_relay(M, q, p.lower * unit, p.upper * unit, method)
        np.testing.assert_allclose(s.z, exact * unit, atol=1e-7 * abs(exact).max() * unit)


def test_a_residual_that_is_small_only_in_its_unit_is_not_convergence():
    assert solvers.solve_lcp([[0.0]], [-1e-11], on_failure="continue").status == status.INFEASIBLE
    M, q = np.array([[2e-6, 1e-6], [-1e-6, 3e-6]]), np.array([-1e-6, 3e-3])
    s = solvers.solve_relay(M, q, -1.0, 1.0)
    np.testing.assert_allclose(s.z, [1.0, -1.0])


def test_grown_unknowns_that_hide_q_solve_nothing():
    """``z = t (1, 1)`` makes ``w = -1`` as small beside its terms as one likes, alone, beside a solved row, or weakly linked to one."""
    for link in (0.0, 1e-20, 1e-3):
        M = np.array([[1.0, -1, 0], [-1, 1, 0], [0, link, 1]])
        row, column, data, _ = forms.compressed_rows(M)
        for t in (1e8, 1e11, 1e13, 1e15, 1e17):
            z = np.array([t, t, max(1 - link * t, 0.0)])
            w, info = np.zeros(3), np.zeros(3)
            arguments = (
                row,
                column,
                data,
                -np.ones(3),
                np.zeros(3),
                np.full(3, np.inf),
                Options(1e-10, 0.0, 0.0, 0.0, 0.0, 0.1),
                z,
                w,
                info,
            )
            assert signature.conclude(status.CONVERGED, 1, *arguments) != status.CONVERGED
            assert info[1] > 0.1


def test_an_equation_that_holds_by_chance_backs_no_other():
    """Of grown z that are whole multiples of a power of two some rows hold exactly, and no z has the signs: y^T M <= 0 and y^T q < 0."""
    A = np.triu([[0.0, -1, 2, 2, -1, -2], [0, 0, -2, 2, 2, 1], [0, 0, 0, -2, -1, 1], [0, 0, 0, 0, 2, 2], [0, 0, 0, 0, 0, -1], [0] * 6])
    M, q, y = A - A.T, np.array([-1.0, 2, -1, -2, 1, -2]), np.array([1.0, 1, 2, 0, 1, 1])
    assert (y @ M <= 0.0).all()
    assert y @ q < 0.0
    row, column, data, _ = forms.compressed_rows(M)
    for t in 2.0 ** np.arange(30, 56):
        z, w, info = t * y + np.r_[-1.0, 0, 0, 0, 0, 0], np.zeros(6), np.zeros(3)
        arguments = (row, column, data, q, np.zeros(6), np.full(6, np.inf), Options(1e-10, 0.0, 0.0, 0.0, 0.0, 0.1), z, w, info)
        assert signature.conclude(status.CONVERGED, 1, *arguments) != status.CONVERGED


def claims_convergence(M, q, lower, upper, z):
    row, column, data, _ = forms.compressed_rows(np.array(M))
    options = Options(1e-10, 0.0, 0.0, 0.0, 0.0, 0.1)
    arguments = (row, column, data, np.array(q), lower, upper, options, np.array(z), np.zeros(len(q)), np.zeros(3))
    return signature.conclude(status.CONVERGED, 1, *arguments) == status.CONVERGED


@pytest.mark.parametrize("link", [0.0, 1e-3])
@pytest.mark.parametrize("load", [1.0, 1e3])
@pytest.mark.parametrize("t", 2.0 ** np.arange(20, 60, 4))
def test_grown_unknowns_that_hide_z_at_a_bound_solve_nothing(t, load, link):
    """Two rows whose sum is ``-z_2 = -1``, and all of q is 0: z_2 at its bound is the data, and the second row knows nothing of it."""
    M = np.array([[-1.0, -1, -load], [1, 1, load - 1], [link, 1, -1]])
    z = [-(t + load), t, 1.0]
    assert not claims_convergence(M, np.zeros(3), np.array([-np.inf, 0, 1]), np.array([np.inf, np.inf, 2]), z)


def test_unknowns_that_bounds_fix_at_zero_give_no_unit_to_rows():
    """``2.4 - 10^12 z_2 = 0`` with z_2 = 0 by equal bounds: large numbers of the other rows, and of z_1, say nothing about 2.4."""
    M = np.zeros((4, 4))
    M[0, 2], M[2, 0], M[1, 1:], M[2, 1], M[3, 1] = -(2.0**40), 2.0**40, [2.0**-63, 8.0, -0.25], -8.0, 0.25
    q, lower, upper = [2.4, 0.0, -(2.0**33), 2.0**28], [-np.inf, -np.inf, 0.0, -1e-9], [np.inf, np.inf, 0.0, 0.0]
    assert solvers.solve_relay(M, q, lower, upper, on_failure="continue").status == status.INFEASIBLE


def test_a_row_whose_q_is_rounding_is_judged_by_its_terms_where_these_are_larger():
    """``-0.7 z_1 - 0.7 z_2 >= 6e-16`` is missed by all of its terms at (1, 0), whatever z_2 the row above would allow."""
    for q in (-6e-16, -6e-20):
        assert not claims_convergence([[1e11, 0.7], [-0.7, -0.7]], [-1e11, q], np.zeros(2), np.full(2, np.inf), [1.0, 0.0])


def test_an_equation_that_nearly_holds_lets_other_rows_err_by_rounding_only():
    """Rows 0 and 1 contradict each other by 6e-5 of q; the third, of 6e-9 of the terms, is met to 10^-8."""
    M = 3.939335068705749e218 * np.array([[4, -2, -2, -2, -2], [-4, 2, 2, 2, 2], [-2, -1, 5, -1, 1], [-2, 2, -1, 2, 1], [-2, 1, 1, 1, 1]])
    q = [0.0, -2.781286203085177e95, -4.871076877139018e99, 4.871076877139018e99, 4.871076877139018e99]
    z = [2.2326145295285289e-111, 2.9768193706439807e-111, 1.4884096884132529e-111, 0.0, 0.0]
    assert not claims_convergence(M, q, np.zeros(5), np.full(5, np.inf), z)


@pytest.mark.parametrize("method", ["auto", "proximal"])
def test_rows_that_contradict_each_other_where_others_make_z_grow_are_not_met(method):
    """Kahan's matrix, in which row 7 is -row 2: their sum asks for z_7 <= -10^-3, and z grows to 4e8 by the rows below."""
    M = 0.6 ** np.arange(11)[:, None] * np.eye(11) - 0.8 * np.triu(np.ones((11, 11)), 1)
    M[7] = -M[2]
    s = solvers.solve_lcp(M, [0, 2, 0, 3, 1, 2, -3, -1e-3, 0, -2, 3], method=method, on_failure="continue")
    assert s.status != status.CONVERGED


def test_q_that_is_lost_in_twice_the_digits_is_not_met():
    """``z = t (1, 1)`` of the test above, and q of 10^-80 of the terms."""
    row, column, data, _ = forms.compressed_rows(np.array([[1.0, -1], [-1, 1]]))
    z, w, info = np.ones(2), np.zeros(2), np.zeros(3)
    arguments = (
        row,
        column,
        data,
        np.full(2, -1e-80),
        np.zeros(2),
        np.full(2, np.inf),
        Options(1e-10, 0.0, 0.0, 0.0, 0.0, 0.1),
        z,
        w,
        info,
    )
    assert signature.conclude(status.CONVERGED, 1, *arguments) != status.CONVERGED


@pytest.mark.parametrize("n", [1000, 30_000])
def test_rows_of_a_long_chain_hold_although_their_data_is_small(n):
    """Loaded everywhere, z grows with n^2; each row is met to rounding of its terms."""
    p = solvers.generate("chain", n)
    assert solvers.solve_lcp(p.M, -np.ones(n)).status == status.CONVERGED


@pytest.mark.parametrize("n", [3, 30, 300])
def test_rows_whose_own_data_is_rounding_are_judged_by_their_terms(n):
    """A chain that is loaded at one end; the rest of q is what is left of a sum that cancels."""
    M = 2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    q = 1e-19 * np.random.default_rng(0).normal(size=n)
    q[0] = -1e-2
    s = solvers.solve_lcp(M, q)
    assert s.status == status.CONVERGED
    np.testing.assert_allclose(s.z, np.linalg.solve(M, -q), rtol=1e-9)


# What is said to be proved.


def box_has_a_point(M, q, lower, upper):
    at_least, at_most = upper == np.inf, lower == -np.inf
    rows, sides = np.vstack([-M[at_least], M[at_most]]), np.r_[q[at_least], -q[at_most]]
    return linprog(np.zeros(len(q)), rows, sides, bounds=np.c_[lower, upper]).status == 0


def random_avi(rng):
    n, m = rng.integers(1, 5, size=2)
    M, G = rng.integers(-2, 3, size=(n, n)).astype(float), rng.integers(-2, 3, size=(m, n)).astype(float)
    return M - M.T + (M @ M.T) * rng.integers(0, 2), rng.integers(-2, 3, size=n), G, rng.integers(-2, 3, size=m)


@examples(300)
@given(generators, st.sampled_from(["auto", "cao_ferris", "lemke"]))
def test_monotone_inequalities_are_solved_or_have_no_point(rng, method):
    """z and multipliers that satisfy all inequalities exist, or a linear programme finds that they do not; then there is a solution too."""
    M, q, G, g = random_avi(rng)
    n, m = len(q), len(g)
    s = solvers.solve_avi(M, q, G, g, method, on_failure="continue")
    whole = np.block([[M, -G.T], [G, np.zeros((m, m))]])
    lower = np.r_[np.full(n, -np.inf), np.zeros(m)]
    feasible = box_has_a_point(whole, np.r_[q, -g].astype(float), lower, np.full(n + m, np.inf))
    assert not (feasible and s.status == status.INFEASIBLE)
    if method == "auto":
        assert s.status == (status.CONVERGED if feasible else status.INFEASIBLE)


@pytest.mark.parametrize("method", ["auto", "lemke"])
def test_an_inequality_that_was_called_infeasible(method):
    s = solvers.solve_avi([[0, 1], [-1, 0]], [0, 0], G=[[0, -1]], g=[-1], method=method)
    assert abs(s.z).max() == 0.0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"P": [[0.0]], "c": [-1.0]}, status.UNBOUNDED),
        ({"P": [[0.0]], "c": [-1.0], "upper": 5.0}, status.CONVERGED),
        ({"P": [[0.0]], "c": [-1.0], "lower": 0.0}, status.UNBOUNDED),
        ({"P": [[1.0, 0], [0, 0]], "c": [0.0, 1.0], "G": [[1.0, 1.0]], "g": [0.0]}, status.CONVERGED),
        ({"P": [[1.0, 0], [0, 0]], "c": [0.0, -1.0], "G": [[1.0, 1.0]], "g": [0.0]}, status.UNBOUNDED),
        ({"P": np.eye(2), "c": [0.0, 0.0], "G": [[1.0, 0], [-1.0, 0]], "g": [1.0, 1.0]}, status.INFEASIBLE),
        ({"P": np.zeros((2, 2)), "c": [-1.0, 0.0], "G": [[1.0, 0], [-1.0, 0]], "g": [1.0, 1.0]}, status.INFEASIBLE),
        ({"P": np.zeros((2, 2)), "c": [-1.0, 0.0], "A": [[1.0, 1], [1.0, 1]], "b": [0.0, 1.0]}, status.INFEASIBLE),
    ],
)
def test_programs_without_a_point_and_without_a_lowest_one_are_told_apart(arguments, expected):
    s = solvers.solve_qp(**arguments, on_failure="continue")
    assert s.status == expected
    assert ("falls without end" in s.message) == (expected == status.UNBOUNDED)


def test_constraints_that_contradict_each_other_by_rounding_beside_the_cost_have_points():
    """``y = 2 x`` but for 1e-17, while the cost is least near 1; and it falls without end along a third unknown, or has a lowest point."""
    rows = {"G": [[-(2.0**-13), 2.0**-14, 0.0]], "g": [2.7e-22], "A": [[-0.4, 0.2, 0.0], [-0.2, 0.1, 0.0]], "b": [-2.2e-18, -1.1e-18]}
    for own, expected in ((0.0, status.UNBOUNDED), (1.0, status.CONVERGED)):
        P = [[4.0, -4.0, 0.0], [-4.0, 8.0, 0.0], [0.0, 0.0, own]]
        assert solvers.solve_qp(P, [2.26, -7.13, -1.0], lower=0.0, on_failure="continue", **rows).status == expected


def test_no_objective_falls_without_end_where_a_point_is_wanting_by_rounding_only():
    """``z_0 + z_2 + z_3 = -2`` wants z_0 1e-3 above its bound of 1e8, which the search for a point tolerates; and z_1 is bounded."""
    bounds = {"lower": [-1e8, -np.inf, -1.001, -1e8], "upper": [99999999.0, np.inf, -1.001, -1e8]}
    P, c = np.zeros((4, 4)), np.array([-2.0, -2, -5, 3])
    P[2:, 2:] = [[13, 6], [6, 9]]
    G, g = np.array([[1.0, -1, -1, 0], [2.0**20, -(2.0**20), -(2.0**20), 0], [-2, -2, 2, 0]]), [-3.0, -3 * 2.0**20, 8.0]
    s = solvers.solve_qp(1e8 * P, 1e8 * c, G, g, [[1.0, 0, 1, 1]], [-2.0], **bounds, on_failure="continue")
    assert s.status != status.UNBOUNDED


@examples(200)
@given(generators)
def test_linear_programmes_get_the_verdict_of_highs(rng):
    n, m = rng.integers(1, 5, size=2)
    c, G, g = rng.integers(-2, 3, size=n), rng.integers(-2, 3, size=(m, n)), rng.integers(-2, 3, size=m)
    s = solvers.solve_qp(np.zeros((n, n)), c, G, g, lower=0.0, on_failure="continue")
    other = linprog(c, -G, -g, bounds=(0, None))
    feasible = linprog(np.zeros(n), -G, -g, bounds=(0, None)).status == 0
    expected = status.CONVERGED if other.status == 0 else status.UNBOUNDED if feasible else status.INFEASIBLE
    assert s.status == expected


def test_a_proof_needs_more_than_rounding():
    """``z_2 = 2 10^11`` solves it: the sum of the rows is ``1e-11 z_2 - 2``."""
    M, q = np.array([[1.0, -1], [-1, 1 + 1e-11]]), np.array([-1.0, -1])
    for method in METHODS:
        assert solvers.solve_lcp(M, q, method, max_iter=500, on_failure="continue").status != status.INFEASIBLE
    row, column, data, _ = forms.compressed_rows(M)
    assert not signature.proves_infeasible(
        signature.Problem(row, column, data, q, np.zeros(2), np.full(2, np.inf)), np.ones(2), np.zeros(2)
    )


def test_a_proof_needs_more_than_rounding_beside_small_entries():
    """The rows ``a - b + c`` add up to rounding of 10^6 times z_1, which z_0 = 3 of the first row makes large enough."""
    M = np.array([[1e-6, -1e-6, 0], [-1e-6, 1e6 + 1e-6, 1e6], [0, 1e6, 1e6]])
    q, y = np.array([-3e-6, 3e-6 + 1.5e-11, 0.0]), np.array([-1.0, -1, 1])
    row, column, data, _ = forms.compressed_rows(M)
    lower = np.array([-np.inf, -np.inf, 0.0])
    assert abs(y @ M).max() < 1e-10
    assert y @ q < 0.0
    assert not signature.proves_infeasible(signature.Problem(row, column, data, q, lower, np.full(3, np.inf)), y, np.zeros(3))


def test_a_proof_does_not_end_at_a_soft_link():
    """Springs from 10^-6 to 10^6 in a row: q moves one end by 1, and the rest, which no q acts on, with it; 10^6 times that hides in M."""
    k = np.array([1.0, 1.0, 1e-6, 1e-6, 1e6, 1e6])
    M = np.diag(k + np.append(k[1:], 0.0)) - np.diag(k[1:], 1) - np.diag(k[1:], -1)
    q, lower = np.array([1.0, -1, 0, 0, 0, 0]), np.r_[np.full(3, -np.inf), np.zeros(3)]
    q[1] += 2.0**-53
    z = np.array([0.0, 1, 1, 1, 1, 1])
    assert abs(M @ z + q).max() < 2e-10
    for method in METHODS:
        assert solvers.solve_relay(M, q, lower, np.inf, method, max_iter=500, on_failure="continue").status != status.INFEASIBLE
    row, column, data, _ = forms.compressed_rows(M)
    y = np.array([5e-7, 1e-6, 0.5, 1, 1, 1])
    assert not signature.proves_infeasible(signature.Problem(row, column, data, q, lower, np.full(6, np.inf)), y, np.zeros(6))


# Finite numbers.


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-200, 1e200, 1e300])
def test_numbers_stay_finite(method, size):
    """q that nearly vanishes or overflows; bounds that do not, or none."""
    M = 2 * np.eye(3) + np.ones((3, 3))
    for q in (-size * np.ones(3), size * np.array([1.0, -1, 0])):
        for lower, upper in ((0.0, np.inf), (-1.0, 1.0), (-np.inf, np.inf)):
            s = solvers.solve_relay(M, q, lower, upper, method, max_iter=500, on_failure="continue")
            assert np.isfinite([*s.z, *s.w, s.residual]).all()
            if method in ("auto", "newton_min") and size > 1e-300:
                assert s.status == status.CONVERGED


@pytest.mark.parametrize("method", [m for m in METHODS if m != "direct"])
@pytest.mark.parametrize(("rows", "columns"), [(1e-150, 1e-150), (1e150, 1e-150), (1e120, 1e120), (1e-160, 1e100)])
def test_matrices_of_extreme_size_are_solved(method, rows, columns):
    p = solvers.generate("positive_definite", 4, 1)
    exact = solvers.solve_lcp(p.M, p.q, "enumerate").z
    s = solvers.solve_lcp(rows * p.M * columns, rows * p.q, method)
    np.testing.assert_allclose(s.z * columns, exact, atol=1e-7)


@pytest.mark.parametrize("size", [1e-310, 1e290, 1e300])
def test_z_at_a_bound_is_there_in_any_unit(size):
    """Bounds that vanish beside q lose digits in common units; what is returned is the bound that was given."""
    lower, upper = np.array([-0.3, -0.7, 0.1]), np.array([1 / 3, 0.9, 0.2])
    s = solvers.solve_relay(np.diag([1.0, 1e-12, 0]), size * np.array([1.0, -1, -1]), lower, upper)
    if size > 1:
        np.testing.assert_array_equal(s.z, [-0.3, 0.9, 0.2])
    assert twins.errors(np.diag([1.0, 1e-12, 0]), size * np.array([1.0, -1, -1]), s.z, lower, upper).max() <= 1e-9 * size


def test_w_is_that_of_the_bounds_that_were_given():
    """q of other rows is 10^300 times larger, so that bounds keep few digits in common units."""
    M, lower, upper = np.array([[0.0, 1], [0, 1]]), np.full(2, -1 / 3), np.array([0.1, 0.7])
    s = solvers.solve_relay(M, [0.0, -1e300], lower, upper)
    np.testing.assert_array_equal(s.z, [-1 / 3, 0.7])
    assert s.w[0] == 0.7


def test_rows_of_zeros_take_no_digits_from_others():
    s = solvers.solve_lcp([[4.0, 0], [0, 0]], [2e-310, 2e-310])
    np.testing.assert_array_equal(s.w, [2e-310, 2e-310])


# Work.


def test_default_limits_follow_from_the_cost_of_an_iteration():
    assert signature.affordable(200, 10.0) == 200
    assert signature.affordable(200, 1e8) * 1e8 <= 4.1e9
    assert signature.affordable(200, 1e300) == 1


def test_thorough_looks_of_enumeration_are_counted():
    """All bases of ten unknowns; of twenty, as many as the work of a few seconds allows."""
    assert enumeration.thorough_looks(10, 2**10) == 2**10
    assert enumeration.thorough_looks(20, 2**20) * 20**4 <= 4e9
    s = solvers.solve_lcp(np.zeros((12, 12)), -np.ones(12), "enumerate", on_failure="continue")
    assert (s.status, s.n_iter) == (status.STALLED, 2**12)


def test_enumeration_finds_a_solution_behind_its_thorough_looks():
    n = 17
    M = 4.0 * np.eye(n) + np.triu(np.ones((n, n)), 1) / n
    s = solvers.solve_lcp(M, -np.ones(n), "enumerate")
    assert s.n_iter > enumeration.thorough_looks(n, 2**n)
    np.testing.assert_allclose(M @ s.z, np.ones(n), rtol=1e-14)


def test_enumeration_is_limited_by_max_iter():
    s = solvers.solve_lcp([[0.0, 0], [0, 1]], [-1.0, -1], "enumerate", max_iter=1, on_failure="continue")
    assert (s.status, s.n_iter) == (status.MAX_ITER, 1)


# Results.


def test_results_read_well():
    s = solvers.solve_lcp([[2, 1], [1, 2]], [-5, -6])
    assert s.success
    assert s.message == "converged"
    assert repr(s).splitlines()[0] == "Solution: converged"
    assert "auto: newton_min" in repr(s)
    failed = solvers.solve_lcp([[0.0]], [-1.0], "pgs", on_failure="continue")
    assert not failed.success
    assert failed.message == "zero pivot: constraints are redundant or a diagonal entry vanishes; try proximal or lemke"
    assert len(repr(solvers.solve_lcp(np.eye(1000), -np.ones(1000)))) < 500


def test_a_method_is_not_advised_to_try_itself():
    for method in METHODS:
        s = solvers.solve_lcp([[0.0, 1], [1, 0]], [1.0, -1], method, on_failure="continue", max_iter=100)
        assert method not in s.message.partition("; try ")[2].split(" or ")


def test_failures_raise_warn_or_go_on():
    with pytest.raises(solvers.SolverError, match="lemke: no z within its bounds") as caught:
        solvers.solve_lcp([[0.0]], [-1.0])
    kept = pickle.loads(pickle.dumps(caught.value))
    assert str(kept) == str(caught.value)
    assert kept.solution.status == status.INFEASIBLE
    with pytest.warns(RuntimeWarning, match="no z within its bounds"):
        s = solvers.solve_lcp([[0.0]], [-1.0], on_failure="warn")
    assert s.status == status.INFEASIBLE


def test_a_record_of_a_solver_takes_the_place_of_a_name():
    s = solvers.solve_lcp([[2.0]], [-1.0], solvers.solver("pgs", max_iter=7))
    assert (s.method, s.z.tolist()) == ("pgs", [0.5])
