"""Complementarity problems and variational inequalities of user functions: the classical collection, definitions, twins, refusals."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from nsds import solvers
from nsds.solvers import SolverError, solve_avi, solve_lcp, solve_mcp, solve_ncp, solve_soclcp, solve_vi
from nsds.solvers.nonlinear.newton import fb_row
from nsds.solvers.nonlinear.signature import project_cone
from nsds.status import MAX_ITER, NON_FINITE
from tests.reference_nonlinear import extragradient, natural_residual, newton_fb, newton_min, onto_cones
from tests.solvers.nonlinear.problems import CASES, josephy
from tests.strategies import examples, generators

WITH_BOUNDS = [name for name in solvers.methods("ncp") if name != "auto"]
OVER_CONES = [name for name in solvers.methods("soclcp") if name != "auto"]


def affine(z, p, out):
    """``M z + q`` of ``p = (q, M)``."""
    n = z.size
    for i in range(n):
        out[i] = p[i]
        for j in range(n):
            out[i] += p[n + i * n + j] * z[j]


def matrix(z, p, out):
    n = z.size
    for i in range(n):
        for j in range(n):
            out[i, j] = p[n + i * n + j]


def with_cubes(z, p, out):
    """``M z + z^3 + q``, which is strongly monotone with M."""
    affine(z, p, out)
    for i in range(z.size):
        out[i] += z[i] ** 3


def monotone(rng, n):
    """(M, q), M positive definite and unsymmetric."""
    half = rng.normal(size=(n, n))
    skew = rng.normal(size=(n, n))
    return half @ half.T / n + 0.5 * np.eye(n) + skew - skew.T, rng.normal(size=n)


def packed(M, q):
    return np.concatenate([q, M.ravel()])


@pytest.mark.parametrize(("name", "k"), [(name, k) for name, case in CASES.items() for k in range(len(case.guesses))])
def test_classical_collection(name, k):
    case = CASES[name]
    s = solve_mcp(case.F, case.guesses[k], case.lower, case.upper)
    assert s.success
    w = np.zeros(s.z.size)
    case.F(s.z, w)
    np.testing.assert_allclose(s.w, w, rtol=1e-12, atol=1e-14)
    assert natural_residual(w, s.z, case.lower, case.upper) < 1e-7
    assert (s.z >= case.lower).all()
    assert (s.z <= case.upper).all()
    if case.solutions is not None:
        assert min(abs(s.z - solution).max() for solution in case.solutions) < 2e-5  # as many digits as the literature has


@pytest.mark.parametrize("method", WITH_BOUNDS)
def test_methods_find_the_solution_of_monotone_problems(method):
    rng = np.random.default_rng(3)
    for n in (1, 4, 8):
        M, q = monotone(rng, n)
        s = solve_mcp(with_cubes, np.zeros(n), -0.5, [0.3] * (n - 1) + [np.inf], parameters=packed(M, q), method=method, tol=1e-9)
        other = solve_mcp(with_cubes, np.ones(n), -0.5, [0.3] * (n - 1) + [np.inf], parameters=packed(M, q))
        np.testing.assert_allclose(s.z, other.z, rtol=0, atol=1e-7)
        assert s.method == method


@given(generators)
@examples(40)
def test_affine_problems_are_linear_ones(rng):
    """An F that is M z + q gives what the solvers for linear problems give: bounds, polyhedra."""
    n = int(rng.integers(1, 6))
    M, q = monotone(rng, n)
    p = packed(M, q)
    s = solve_ncp(affine, rng.normal(size=n), jac=matrix, parameters=p)
    np.testing.assert_allclose(s.z, solve_lcp(M, q).z, rtol=0, atol=1e-8)
    np.testing.assert_allclose(solve_ncp(affine, np.ones(n), parameters=p).z, s.z, rtol=0, atol=1e-8)
    m = int(rng.integers(1, 4))
    G = rng.normal(size=(m, n))
    g = G @ rng.normal(size=n) - rng.uniform(0, 1, m)
    v = solve_vi(affine, rng.normal(size=n), G=G, g=g, parameters=p)
    np.testing.assert_allclose(v.z, solve_avi(M, q, G, g).z, rtol=0, atol=1e-7)
    np.testing.assert_allclose(v.w, M @ v.z + q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(v.w, G.T @ v.multipliers, rtol=0, atol=1e-7)


@pytest.mark.parametrize("method", WITH_BOUNDS)
def test_variational_inequality_with_equations(method):
    """The nearest point to a given one of a simplex."""
    point = np.array([0.9, 0.8, -0.5])
    p = packed(np.eye(3), -point)
    s = solve_vi(affine, np.zeros(3), lower=0, A=np.ones((1, 3)), b=[1.0], parameters=p, method=method, tol=1e-8)
    np.testing.assert_allclose(s.z, [0.55, 0.45, 0.0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(s.multipliers, [-0.35], rtol=0, atol=1e-6)


@given(generators, st.sampled_from(["auto", *OVER_CONES]))
@examples(40)
def test_second_order_cones(rng, method):
    """z in K, w in its dual cone, and orthogonal, cone by cone; auto and the others agree."""
    sizes = rng.integers(1, 5, size=int(rng.integers(1, 4)))
    mu = rng.uniform(0.3, 2.0, sizes.size)
    M, q = monotone(rng, int(sizes.sum()))
    s = solve_soclcp(M, q, sizes, mu, method=method, tol=1e-9)
    np.testing.assert_allclose(s.w, M @ s.z + q, rtol=0, atol=1e-12 * (1 + abs(q).max()))
    for z, w, m in zip(np.split(s.z, np.cumsum(sizes)[:-1]), np.split(s.w, np.cumsum(sizes)[:-1]), mu, strict=True):
        assert np.linalg.norm(z[1:]) <= m * z[0] + 1e-7
        assert m * np.linalg.norm(w[1:]) <= w[0] + 1e-6
        assert abs(z @ w) < 1e-6
    if method != "auto":
        np.testing.assert_allclose(s.z, solve_soclcp(M, q, sizes, mu).z, rtol=0, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-30, 1e-8, 1e8, 1e30])
def test_units_of_the_function_do_not_count(unit):
    M, q = monotone(np.random.default_rng(11), 5)
    s = solve_ncp(affine, np.ones(5), parameters=packed(M, q))
    other = solve_ncp(affine, np.ones(5), parameters=unit * packed(M, q))
    assert s.n_iter == other.n_iter > 1
    np.testing.assert_allclose(other.z, s.z, rtol=0, atol=1e-10)


def test_variational_inequality_over_cones():
    rng = np.random.default_rng(5)
    M, q = monotone(rng, 5)
    s = solve_vi(affine, np.zeros(5), cones=[3, 2], parameters=packed(M, q))
    np.testing.assert_allclose(s.z, onto_cones(s.z - s.w, [3, 2]), rtol=0, atol=1e-8)
    np.testing.assert_allclose(s.z, solve_soclcp(M, q, [3, 2]).z, rtol=0, atol=1e-8)


def test_twins_of_newtons_method():
    """Full steps near a solution, on both maps, and the extragradient method with a fixed step."""
    M, q = monotone(np.random.default_rng(7), 6)
    p = packed(M, q)
    solution = solve_ncp(with_cubes, np.zeros(6), parameters=p, tol=1e-12).z
    near = solution + 0.01
    unit = 1 / abs(M + np.diag(3 * near**2)).max(axis=1)  # in which the kernels take F
    F, jac = (lambda z: unit * (M @ z + z**3 + q)), (lambda z: unit[:, None] * (M + np.diag(3 * z**2)))
    for method, twin in (("newton_fb", newton_fb), ("newton_natural", newton_min)):
        s = solve_ncp(with_cubes, near, parameters=p, method=method, max_iter=2, tol=1e-15, on_failure="continue")
        np.testing.assert_allclose(s.z, np.maximum(twin(F, jac, near, 2), 0.0), rtol=0, atol=1e-7)
    rho = 0.3 / np.linalg.norm(jac(solution + 1), 2)
    np.testing.assert_allclose(extragradient(F, lambda x: np.maximum(x, 0), near, rho, 5000), solution, rtol=0, atol=1e-6)


def test_newton_converges_quadratically():
    errors = []
    for n_iter in range(1, 6):
        s = solve_ncp(josephy, [1.3, 0.1, 0.1, 0.6], method="newton_fb", max_iter=n_iter, tol=1e-15, on_failure="continue")
        errors.append(abs(s.z - [math.sqrt(1.5), 0, 0, 0.5]).max())
    assert errors[-1] < 1e-12
    assert all(after < 20 * before**2 + 1e-12 for before, after in pairwise(errors))


@given(generators)
@examples(60)
def test_derivatives_of_the_map_with_bounds(rng):
    lower, upper = rng.choice([-np.inf, -1.0]), rng.choice([np.inf, 1.0])
    z, F = rng.uniform(-2, 2, 2)
    value, by_z, by_F = fb_row(lower, upper, z, F)
    h = 1e-6
    assert by_z == pytest.approx((fb_row(lower, upper, z + h, F)[0] - fb_row(lower, upper, z - h, F)[0]) / (2 * h), abs=1e-6)
    assert by_F == pytest.approx((fb_row(lower, upper, z, F + h)[0] - fb_row(lower, upper, z, F - h)[0]) / (2 * h), abs=1e-6)
    assert min(by_z, by_F) >= 0.0
    solves = abs(z - np.clip(z - F, lower, upper)) < 1e-12
    assert (abs(value) < 1e-12) == solves


@given(generators)
@examples(40)
def test_projection_onto_a_cone(rng):
    x = rng.normal(size=int(rng.integers(1, 6))) * rng.choice([0.0, 1.0, 10.0])
    found = x.copy()
    project_cone(found)
    np.testing.assert_allclose(found, onto_cones(x, [x.size]), rtol=0, atol=1e-14)


def test_functions_that_do_not_compile_run_in_python():
    """An F with SciPy's functions, and what such a function raises."""

    def F(z, out):
        out[:] = gammaln(z + 1.0) - 1.0

    s = solve_ncp(F, [2.0])
    assert gammaln(s.z[0] + 1.0) == pytest.approx(1.0, abs=1e-9)
    calls = []

    def failing(z, out):
        calls.append(1)
        if len(calls) > 3:
            raise ZeroDivisionError("of the user")
        out[0] = z[0] - 1

    with pytest.raises(ZeroDivisionError, match="of the user"):
        solve_ncp(failing, [0.0])


TARGET = np.array([1.0])


def of_a_constant(z, out):
    out[0] = z[0] - TARGET[0]


def test_a_constant_that_changes_counts(monkeypatch):
    assert solve_ncp(of_a_constant, [0.0]).z == pytest.approx([1.0])
    monkeypatch.setitem(globals(), "TARGET", np.array([2.0]))
    assert solve_ncp(of_a_constant, [0.0]).z == pytest.approx([2.0])


class Shifted:
    """A callable that is no plain function."""

    def __init__(self, by):
        self.by = by

    def __call__(self, z, out):
        out[0] = z[0] - self.by


def test_callables_of_all_kinds():
    assert solve_ncp(Shifted(3.0), [0.0]).z == pytest.approx([3.0])
    assert solve_ncp(Shifted(4.0).__call__, [0.0]).z == pytest.approx([4.0])


def test_failures_have_a_status():
    def without_solution(z, out):
        out[0] = -1.0 - z[0]

    s = solve_ncp(without_solution, [0.0], on_failure="continue")
    assert not s.success
    assert s.residual > 0.1
    with pytest.raises(SolverError):
        solve_ncp(without_solution, [0.0])

    def logarithm(z, out):
        out[0] = math.log(z[0] - 1.0) if z[0] > 1.0 else math.nan

    assert solve_ncp(logarithm, [0.5], method="newton_fb", on_failure="continue").status == NON_FINITE
    assert solve_ncp(logarithm, [5.0]).z == pytest.approx([2.0])
    assert solve_ncp(josephy, [100.0] * 4, method="newton_fb", max_iter=3, on_failure="continue").status == MAX_ITER


def two(z, out):
    out[0], out[1] = z[0] - 1.0, z[1] - 1.0


BAD = [
    (solve_ncp, {"F": None}, TypeError, r"solve_ncp: F must be a function F\(z, out\)"),
    (solve_ncp, {"F": lambda z: z}, TypeError, r"solve_ncp: expected a function F\(z, out\)"),
    (solve_ncp, {"F": lambda z, out: z}, TypeError, "must write its result into out"),
    (solve_ncp, {"parameters": [1.0]}, TypeError, r"expected a function F\(z, p, out\)"),
    (solve_ncp, {"parameters": [[1.0]], "F": affine}, ValueError, "solve_ncp: parameters must be an array of 1"),
    (solve_ncp, {"z0": [[0.0]]}, ValueError, "solve_ncp: z0 must be an array of 1"),
    (solve_ncp, {"z0": [0.0, np.nan]}, ValueError, "solve_ncp: z0 must be finite"),
    (solve_ncp, {"z0": [0.0]}, ValueError, r"solve_ncp: F\(z, out\) fails at z0, with 1 unknowns"),
    (solve_ncp, {"z0": []}, ValueError, "solve_ncp: z0 must have at least one entry"),
    (solve_ncp, {"jac": 3}, TypeError, r"solve_ncp: jac must be a function jac\(z, out\)"),
    (solve_ncp, {"method": "lemke"}, ValueError, "solve_ncp: method must be one of auto, newton_fb"),
    (solve_ncp, {"tol": 0.0}, ValueError, "solve_ncp: tol must be above 0"),
    (solve_ncp, {"max_iter": 0}, ValueError, "solve_ncp: max_iter must be at least 1"),
    (solve_ncp, {"on_failure": "no"}, ValueError, "solve_ncp: on_failure must be"),
    (solve_mcp, {"lower": [0.0]}, ValueError, "solve_mcp: lower must"),
    (solve_mcp, {"lower": 1.0, "upper": 0.0}, ValueError, "solve_mcp: lower"),
    (solve_vi, {"G": [[1.0, 0.0]]}, ValueError, "solve_vi: G and g belong together"),
    (solve_vi, {"A": [[1.0]], "b": [0.0]}, ValueError, "solve_vi: A must have shape"),
    (solve_vi, {"cones": [1]}, ValueError, "solve_vi: cones must be sizes of at least 1 whose sum is 2"),
    (solve_vi, {"cones": [2.0]}, TypeError, "solve_vi: cones must be whole numbers"),
    (solve_vi, {"cones": [2], "lower": 0.0}, ValueError, "solve_vi: cones go with no bounds"),
    (solve_vi, {"cones": [2], "method": "josephy"}, ValueError, "solve_vi: method must be one of auto, newton_natural"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "change", "error", "words"), BAD)
def test_bad_inputs_are_named(function, change, error, words):
    with pytest.raises(error, match=words):
        function(**{"F": two, "z0": [0.0, 0.0]} | change)


@pytest.mark.parametrize(("change", "words"), [
    ({"cones": [1]}, "cones must be sizes"), ({"cones": [0, 2]}, "cones must be sizes"), ({"mu": 0.0}, "mu must be positive"),
    ({"mu": [1.0, 2.0]}, "mu must be positive"), ({"M": [[1.0]]}, "M must have shape"), ({"q": [[1.0]]}, "q must be an array of 1"),
    ({"z0": [1.0]}, "z0 must have shape"), ({"method": "newton_fb"}, "method must be one of auto, newton_natural"),
])  # fmt: skip
def test_bad_inputs_of_cones_are_named(change, words):
    with pytest.raises(ValueError, match=f"solve_soclcp: {words}"):
        solve_soclcp(**{"M": np.eye(2), "q": np.zeros(2), "cones": [2]} | change)


# Units of unknowns.


def bent(z, p, out):
    """Increasing rows of ``z / p``, in units of 1."""
    a, b = z[0] / p[0], z[1] / p[0]
    out[0] = a + np.exp(b) - 2.0 + a**3
    out[1] = b - 0.3 * a + 0.1


def bent_slopes(z, p, out):
    a, b = z[0] / p[0], z[1] / p[0]
    out[0], out[1], out[2], out[3] = (1.0 + 3.0 * a**2) / p[0], np.exp(b) / p[0], -0.3 / p[0], 1.0 / p[0]


def bent_slopes_matrix(z, p, out):
    a, b = z[0] / p[0], z[1] / p[0]
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = (1.0 + 3.0 * a**2) / p[0], np.exp(b) / p[0], -0.3 / p[0], 1.0 / p[0]


def of_squares(z, p, out):
    """The problem of Kojima and Shindo, whose slopes vanish at 0 in part; its solutions are (1, 0, 3, 0) and (sqrt(3 / 2), 0, 0, 1 / 2)."""
    a, b, c, d = z[0] / p[0], z[1] / p[0], z[2] / p[0], z[3] / p[0]
    out[0] = 3 * a * a + 2 * a * b + 2 * b * b + c + 3 * d - 6
    out[1] = 2 * a * a + a + b * b + 10 * c + 2 * d - 2
    out[2] = 3 * a * a + a * b + 2 * b * b + 2 * c + 9 * d - 9
    out[3] = a * a + 3 * b * b + 2 * c + 3 * d - 3


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e-6, 1e-3, 1e6])
def test_solutions_do_not_depend_on_units_of_unknowns(unit):
    """From 0; F of 1 is nothing beside a Jacobian of 10^12, but no solution."""
    wanted = solvers.solve_ncp(bent, [0.0, 0.0], parameters=[1.0]).z
    for jac, pattern in ((None, None), (bent_slopes_matrix, None), (bent_slopes, ([0, 2, 4], [0, 1, 0, 1]))):
        s = solvers.solve_ncp(bent, [0.0, 0.0], jac, [unit], pattern=pattern)
        np.testing.assert_allclose(s.z / unit, wanted, rtol=1e-8)
    s = solvers.solve_vi(bent, [0.0, 0.0], -unit, 0.05 * unit, G=[[-1.0, -1.0]], g=[-0.5 * unit], parameters=[unit])
    np.testing.assert_allclose(
        s.z / unit, solvers.solve_vi(bent, [0.0, 0.0], -1, 0.05, [[-1.0, -1.0]], [-0.5], parameters=[1.0]).z, rtol=1e-8
    )
    z = solvers.solve_ncp(of_squares, np.zeros(4), parameters=[unit]).z / unit
    assert min(abs(z - [1, 0, 3, 0]).max(), abs(z - [np.sqrt(1.5), 0, 0, 0.5]).max()) < 1e-7


def test_a_start_at_the_solution_stays_one_although_rounding_is_left():
    """``(1 + z) - 1.1`` at 0.1, and 0.3 - 0.1 - 0.2 in place of 0: no units can be told from these."""

    def cancelling(z, out):
        out[0], out[1] = (1.0 + z[0]) - 1.0 + 0.3 - 0.1 - 0.2, z[1] ** 3 + z[1]

    s = solvers.solve_mcp(cancelling, [0.0, 0.0], -np.inf, np.inf)
    assert s.status == 0
    assert abs(s.z).max() < 1e-15
