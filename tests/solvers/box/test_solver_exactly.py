"""What is claimed of a problem is true: solved, or without a solution, as exact arithmetic and rounding of the data have it."""

import numpy as np
import pytest

from nsds import solvers, status
from nsds.solvers.box import confirm, forms, signature
from tests import random_problems
from tests.benchmarks import fuzz, fuzz_boxes

# Of what was once claimed wrongly.
SEEDS = (2568, 8233, 201697, 211218, 244240, 277555, 433356, 454940, 539842, 842138, 873036, 443636, 1021322)
SEEDS += (1083204, 1115872, 1117212, 1131291, 1133538, 1141760, 1257467, 1330307, 1365379, 1455451, 1530676, 1553483)
SEEDS += (1600377, 1644082, 1682466, 3049761, 3145400)

FUZZED = (3785844, 3790946, 3795356, 3796335, 3802591, 3828504, 3831266, 3840954, 3846870, 3917215, 3932941)  # `fuzz` of seed 0


FUZZED_2 = (306757, 466855, 695059, 695652, 721243)  # of seed 2


@pytest.mark.parametrize(("seed", "k"), [*((0, k) for k in FUZZED), *((2, k) for k in FUZZED_2), (3, 2696), (3, 508046), (7, 6228)])
def test_a_block_in_other_units_makes_no_data_rounding(seed, k):
    """Rows that have nothing of their z in common with those whose q are larger, or through a w that is not asked to be 0, or a z of 0."""
    assert fuzz.examine(seed, k, fuzz_boxes.KINDS, list(fuzz_boxes.KINDS), 30.0)[-1] == ""


def test_the_judge_of_random_calls_judges_what_falls_without_end():
    """A programme that is UNBOUNDED, as is true."""
    _, _, claim, _, complaint = fuzz.examine(3, 35, fuzz_boxes.KINDS, list(fuzz_boxes.KINDS), 30.0)
    assert (claim, complaint) == (status.UNBOUNDED, "")


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e19])
@pytest.mark.parametrize("link", [0.0, 2e-3, 1.0])
def test_a_link_to_an_unknown_that_is_0_makes_no_row_large(link, unit):
    """``z_0 + link z_2 = 1`` and ``z_0 <= 0`` are missed by all of it at (1, 0), whatever z_2 = 0 might be, which z_3 carries instead."""
    M = np.array([[1.0, 0, link, 0], [-1, 0, 0, 0], [0, 0, 1e-11, 1e-11], [0, 0, 1e-11, 1e-11]])
    q, lower = np.r_[-1.0, 0.0, -1e-11 * unit, -1e-11 * unit], np.r_[-np.inf, 0.0, -np.inf, -np.inf]
    row, column, data, _ = forms.compressed_rows(M)
    z, w, info = np.array([1.0, 0.0, 0.0, unit]), np.zeros(4), np.zeros(3)
    arguments = (row, column, data, q, lower, np.full(4, np.inf), signature.Options(1e-10, 0.0, 0.0, 0.0, 0.0, 0.1), z, w, info)
    assert signature.conclude(status.CONVERGED, 1, *arguments) != status.CONVERGED


def test_rounding_of_the_data_explains_to_kernels_what_it_does_in_rational_numbers():
    """No more, and no less but for a sum of terms, of which kernels see the largest."""
    tol, refused, explained_only = 1e-10, 0, 0
    for seed in range(600):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 6))
        M = rng.integers(-2, 3, (n, n)) * 10.0 ** rng.choice([-14, -7, 0, 0, 0, 7], (n, n))
        z = rng.integers(-2, 3, n) * 10.0 ** rng.choice([-14, -7, 0, 0, 7], n)
        lower, upper = np.where(rng.random(n) < 0.5, z, -np.inf), np.where(rng.random(n) < 0.3, z, np.inf)
        q = -M @ z + (rng.random(n) < 0.4) * 10.0 ** rng.uniform(-24, 0, n)
        row, column, data, _ = forms.compressed_rows(M)
        is_more = signature.is_more_than_rounding(tol, signature.Problem(row, column, data, q, lower, upper), z, np.zeros(n))
        exact = [*map(random_problems.exactly, (M, q, lower, upper, z))]
        errors, terms, _, is_slack = zip(*random_problems.row_errors(*exact), strict=True)
        explained = random_problems.explained_by_rounding(*exact, terms, is_slack)
        rows = [*zip(errors, terms, explained, strict=True)]
        refused += is_more
        if is_more:
            assert any(error > tol * size * 0.999 and error > small * 0.999 / n for error, size, small in rows)
        else:
            assert all(error <= tol * size * 1.001 or error <= small for error, size, small in rows)
            explained_only += any(error > tol * size * 1.001 for error, size, _ in rows)
    assert refused > 20
    assert explained_only > 20


@pytest.mark.parametrize("method", ["auto", "lemke", "newton_fb", "enumerate", "interior_point"])
def test_an_entry_that_is_rounding_makes_no_data_of_another_row_rounding(method):
    """Row 1 would ask for z_0 of 1e16, and so say that the 0.2 of row 0 is nothing: z_0 = 0 misses row 0 by all of it."""
    for part in (-2.7e-17, 2.7e-17, 1e-20):
        s = solvers.solve_mlcp([[0.7, 0.0], [part, 0.0]], [-0.2, -0.3], [0.0, -np.inf], [1.0, 0.0], method, on_failure="continue")
        assert s.status != status.CONVERGED or abs(s.z[0] - 2.0 / 7.0) <= 1e-9


@pytest.mark.parametrize("method", ["auto", "lemke", "bard", "enumerate", "newton_min", "newton_fb"])
@pytest.mark.parametrize("q", [1e-310, 1e-200, 1e-20])
def test_an_unknown_that_is_fixed_tells_nothing_of_other_rows(method, q):
    """Row 1 wants z_1 = q, beside z_0 of 1; row 2, whose z is 0 by its bounds, holds for any q."""
    M, lower, upper = [[1.0, 2.0, 0.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]], [-2.0, 0.0, 0.0], [-1.0, np.inf, 0.0]
    s = solvers.solve_mlcp(M, [-q, -q, -q], lower, upper, method, on_failure="continue")
    assert s.status != status.CONVERGED or abs(s.z[1] - q) <= 1e-9 * q
    assert method not in ("auto", "newton_min", "enumerate") or s.status == status.CONVERGED


@pytest.mark.parametrize("method", ["auto", "newton_fb", "interior_point", "proximal"])
def test_rows_without_data_do_not_hide_what_others_lack(method):
    """Equations of which ``y M = 0`` and ``y q < 0``, one with q = 0, in units of rows and unknowns that are powers of two."""
    n_asked = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 6))
        M, q, lower, upper = random_problems._contradictory_rows(rng, n)
        if (q == 0.0).any():
            n_asked += 1
            assert solvers.solve_mlcp(M, q, lower, upper, method, on_failure="continue").status != status.CONVERGED
    assert n_asked > 10


@pytest.mark.parametrize("method", ["auto", "interior_point", "newton_fb", "proximal", "newton_min", "lemke"])
@pytest.mark.parametrize("tol", [1e-10, 1e-6])
def test_what_rows_without_data_miss_is_small_beside_natural_unknowns(method, tol):
    """``2 a + 7 b + c = 0`` and ``2 a + 7 b + 2 c = 0``, but ``c >= 1 / 16``: with a and b of 1e8 it is little of the terms."""
    M, q = [[2.0, 7.0, 1.0], [-2.0, -7.0, -2.0], [0.0, 0.0, 1.0]], [0.0, 0.0, -0.0625]
    s = solvers.solve_mlcp(M, q, [-np.inf, -np.inf, 0.0], np.inf, method, tol=tol, on_failure="continue")
    assert s.status != status.CONVERGED


@pytest.mark.parametrize("method", ["auto", "interior_point", "newton_fb", "proximal"])
@pytest.mark.parametrize("units", [(0, 0), (25, -26), (-26, 25), (40, -40), (0, -60)])
def test_a_row_in_small_units_tells_sizes_where_no_other_does(method, units):
    """``4 x = y`` and ``y - 4 x >= 2^-12``, in units of rows that are powers of two: z that grow hide what is missing."""
    R = 2.0 ** np.array(units)
    M, q = R[:, None] * np.array([[4.0, -1.0], [-4.0, 1.0]]), R * [0.0, -(2.0**-12)]
    for scale in (1.0, 2.0**-20):
        s = solvers.solve_mlcp(M, scale * q, [-np.inf, 0.0], [np.inf, np.inf], method, on_failure="continue")
        assert s.status != status.CONVERGED


@pytest.mark.parametrize("q", [8.9e-16, -8.9e-16, 2.8e-17])
@pytest.mark.parametrize("others", [0, 3])
def test_rounding_of_equations_proves_nothing_where_no_other_row_tells_sizes(q, others):
    """``1.2 a + 1.1 b + q = 0`` with a, b >= 0, and a = b too but for rounding, beside rows that have data, but of other unknowns."""
    A = np.zeros((2 + others, 2 + others))
    A[0, :2], A[1, :2] = [1.2, 1.1], [1.0, -1.0]
    A[2:, 2:] = np.eye(others)
    b = np.r_[-q, -0.5 * q, np.full(others, 3.0)]
    s = solvers.solve_qp(np.eye(2 + others), np.full(2 + others, -1.0), A=A, b=b, lower=0.0, on_failure="continue")
    if others:  # which say that q is rounding
        assert s.status == status.CONVERGED
        assert abs(s.z[:2]).max() <= 2e-15


@pytest.mark.parametrize("unit", [1.0, 2.0**20, 2.0**43])
@pytest.mark.parametrize("method", ["auto", "lemke", "enumerate", "interior_point", "newton_fb"])
def test_what_rounding_of_the_data_explains_depends_on_no_unit_of_an_unknown(method, unit):
    """``z_0 + z_1 >= small`` beside ``z_1 >= -1``: 4e-14 is more than rounding of a z_1 of 1, in whatever unit z_0 is counted."""
    M = np.array([[1.0, 1.0], [0.0, 1.0]]) * [unit, 1.0]
    s = solvers.solve_lcp(M, [-4e-14, 1.0], method, on_failure="continue")
    assert s.status != status.CONVERGED or M[0] @ s.z == pytest.approx(4e-14, rel=1e-9)
    s = solvers.solve_lcp(M, [-4e-15, 1.0], method, on_failure="continue")
    assert s.status == status.CONVERGED


@pytest.mark.parametrize("t", 2.0 ** np.arange(24, 56, 4))
def test_grown_z_confirm_no_contradiction(t):
    """Rows whose sum asks for ``-gap = 0``, at grown z: what is added to z to take the error out is judged with twice the digits, too."""
    M, y, along = np.array([[1.0, 2.0, -3.0], [2.0, -1.0, -1.0], [-3.0, -1.0, 4.0]]), np.ones(3), np.ones(3)
    assert not (y @ M).any()
    assert not (M @ along).any()
    row, column, data, _ = forms.compressed_rows(M)
    for gap in (1e-3, 1e-6, 3e-8):
        problem = signature.Problem(row, column, data, np.array([-1.0, 2.0, -1.0 - gap]), np.full(3, -np.inf), np.full(3, np.inf))
        assert not confirm.confirmed(1e-10, problem, t * along + [-0.6, 0.8, 0.0])[0]
    problem = problem._replace(q=np.array([-1.0, 2.0, -1.0]))
    assert confirm.confirmed(1e-10, problem, t * along + [-0.6, 0.8, 0.0])[0]


def test_a_z_whose_parts_are_all_at_bounds_is_confirmed_as_it_is():
    """There is nothing to refine: rows of ``(2, 1; 1, 2)`` with z = 0 are met, or missed by what q lacks."""
    row, column, data, _ = forms.compressed_rows(np.array([[2.0, 1.0], [1.0, 2.0]]))
    for q, is_solution in (([1.0, 3.0], True), ([-1e-3, 3.0], False)):
        problem = signature.Problem(row, column, data, np.array(q), np.zeros(2), np.full(2, np.inf))
        assert confirm.confirmed(1e-10, problem, np.zeros(2))[0] == is_solution


@pytest.mark.parametrize("cost", [1.0, -5e-16, 1e-40, -1e30])
@pytest.mark.parametrize("load", [1.0, 1e9, 1e-30])
@pytest.mark.parametrize("method", ["auto", "lemke", "interior_sparse", "newton_fb"])
def test_units_of_costs_are_not_those_of_constraints(cost, load, method):
    """The least ``cost z`` with ``-load <= 128 z <= load``: at the end that the sign of the cost tells, whatever its size."""
    s = solvers.solve_qp([[0.0]], [cost], [[-128.0], [128.0]], [-load, -load], method=method, lower=-load, on_failure="continue")
    assert s.status == status.CONVERGED or method == "newton_fb"
    if s.status == status.CONVERGED:
        assert s.z[0] * np.sign(cost) == pytest.approx(-load / 128.0, rel=1e-9)
        assert s.multipliers.sum() == pytest.approx(abs(cost) / 128.0, rel=1e-9)


@pytest.mark.parametrize("unit", [1.0, 2.0**-60, 2.0**70])
def test_the_only_data_of_linked_rows_tell_their_unit(unit):
    """Two problems that nothing links, each with its unit: what one is worth makes no rounding of the other's data."""
    M = np.zeros((5, 5))
    M[:2, :2], M[2:, 2:] = [[2.0, 1.0], [1.0, 2.0]], [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]
    s = solvers.solve_mlcp(M, np.r_[-3.0, -3.0, -unit, 0.0, -unit], 0.0, np.inf, on_failure="continue")
    assert s.status == status.INFEASIBLE  # (1, 1, 1) M = 0
    M[4, 4] = 2.0
    s = solvers.solve_mlcp(M, np.r_[-3.0, -3.0, -unit, 0.0, -unit], 0.0, np.inf)
    assert s.z == pytest.approx(np.r_[1.0, 1.0, np.array([4.0, 3.0, 2.0]) * unit], rel=1e-9)


def test_random_problems_of_few_unknowns():
    """No false claim; `tests.random_problems` has a million of them."""
    with np.errstate(all="ignore"):
        for seed in (*range(300), *SEEDS):
            *_, false, _ = random_problems.tried(seed)
            assert not false, f"{seed}: {false}"


def test_random_problems_are_judged():
    """The judge sees a row that is missed, a contradiction that is solved, and one that is claimed where there is a solution."""
    M, q, lower, upper = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-3.0, -3.0]), np.zeros(2), np.full(2, np.inf)
    assert not random_problems.judge_rows(status.CONVERGED, random_problems.ANY, M, q, lower, upper, np.ones(2))
    assert random_problems.judge_rows(status.CONVERGED, random_problems.ANY, M, q, lower, upper, np.array([1.0, 1.0 + 1e-7]))
    assert random_problems.judge_rows(status.INFEASIBLE, random_problems.ANY, M, q, lower, upper, np.zeros(2))
    assert random_problems.judge_rows(status.CONVERGED, random_problems.CONTRADICTORY, M, q, lower, upper, np.ones(2))
    W, mu = np.eye(2), np.array([0.5])
    for r, is_false in (([1.0, 0.5], False), ([1.0, 0.4], True), ([0.9, 0.45], True)):
        q = np.array([-1.0, -3.0])
        assert bool(random_problems.judge_contacts(status.CONVERGED, random_problems.ANY, 2, W, q, mu, np.array(r))) == is_false
