"""Answers of contact solvers are true: scale-free, beyond rounding, whatever grows without bound, and proved where there is no solution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds import solvers, status
from nsds.solvers import table
from nsds.solvers.contact import forms, infeasible, signature
from nsds.solvers.faces import contact as contact_solve
from tests import reference_contact as ref
from tests.strategies import examples, generators

SOME = ["auto", "nsgs", "newton_jm", "interior_point"]  # that the others share their code with
ZEROS_AND_A_LAPLACIAN = np.zeros((5, 5))
ZEROS_AND_A_LAPLACIAN[1:4, 1:4] = [[5, -4, -1], [-4, 4, 0], [-1, 0, 1]]


def solve(p, method="auto", **options):
    kind = {(2, 1): solvers.solve_fc2d, (3, 2): solvers.solve_fc3d}[p.d, int(p.disk[0])]
    return kind(p.W, p.q, p.mu[:, 0], method, on_failure="continue", **options)


def one(W, q, mu):
    """Contacts with one coefficient."""
    d = 2 if len(q) % 3 else 3
    n = len(q) // d
    return ref.Drawn(d, np.full(n, d - 1), np.full((n, 2), mu) * [1, 0], np.array(W, float), np.array(q, float))


# ---------------------------------------------------------------------------------------------------------------------- the merit


def plain_merit(exactly, p, r):
    problem = signature.Problem(p.disk, p.mu.ravel(), *forms.block_rows(p.W, p.d), p.q)
    return signature.merit(exactly, problem, r, np.zeros(r.size))


@examples(150)
@given(generators, st.sampled_from([(2, 1), (3, 2), (3, 1), (5, 2)]), st.integers(1, 4), st.floats(0, 12))
def test_the_merit_is_that_of_the_twin_and_exact_where_asked(rng, kind, n, growth):
    """r up to 1e12 times what is usual: the exact merit keeps its digits, those that r itself has."""
    d, disk = kind
    W, q = rng.normal(size=(n * d, n * d)), rng.normal(size=n * d)
    disks = np.where(rng.uniform(size=n) < 0.2, ref.EQUATION, disk)
    p = ref.Drawn(d, disks, 10.0 ** rng.uniform(-2, 3, size=(n, 2)) * [1, disk < d - 1], W, q)
    r = rng.normal(size=n * d) * 10.0**growth
    for c, (at, T, *_, mu, _, _) in enumerate(p.contacts()):
        if rng.uniform() < 0.5 and disks[c] != ref.EQUATION:  # slides, up to the rounding of mu r_N
            x = r[at]
            x[0] = abs(x[0])
            x[T] *= mu * x[0] / np.linalg.norm(x[T])
    expected = ref.merit(p, r)
    if growth < 2:
        assert abs(plain_merit(False, p, r) - expected) <= 1e-9 * (1 + expected)
    # the twin has 11 bits more, and loses 40
    assert abs(plain_merit(True, p, r) - expected) <= 1e-11 * expected + 1e-17 * (1 + p.mu.max()) * 10.0**growth * 10 * n


@examples(60)
@given(generators, st.sampled_from(["definite", "redundant"]), st.sampled_from([(2, 1), (3, 2)]), st.integers(1, 5), st.sampled_from(SOME))
def test_the_verdict_does_not_depend_on_units(rng, family, kind, n, method):
    p = ref.draw_contacts(family, *kind, n, int(rng.integers(2**32)))
    plain = solve(p, method, max_iter=200)
    for a, b in ((1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6), (1e6, 1e-6), (1e-6, 1e6)):
        other = solve(p._replace(W=a * p.W, q=b * p.q), method, max_iter=200)
        r = other.r * (a / b)
        assert other.status == plain.status
        # as good when it is judged in the first units
        assert abs(ref.merit(p, r) - other.residual) <= 1e-12 + 1e-9 * other.residual + ref.merit_rounding(p, r)


@pytest.mark.parametrize("method", SOME)
@pytest.mark.parametrize(("e_W", "e_q"), [(0, -310), (-310, 0), (-300, 0), (300, 0), (0, 300), (-160, -160), (200, -100)])
def test_numbers_of_extreme_size_are_solved(method, e_W, e_q):
    p = one([[2.0, 0.3], [0.3, 1.0]], [-4.0, 3.0], 0.5)
    s = solve(p._replace(W=p.W * 10.0**e_W, q=p.q * 10.0**e_q), method)
    if e_q - e_W < 307:
        assert s.status == status.CONVERGED
        np.testing.assert_allclose(s.r * 10.0 ** ((e_W - e_q) / 2) * 10.0 ** ((e_W - e_q) / 2), [4 / 1.85, -2 / 1.85], rtol=1e-6)
    else:  # no number is as large as its r
        assert s.status != status.CONVERGED
    assert np.isfinite([*s.r, *s.u, s.residual]).all()


@pytest.mark.parametrize("method", solvers.methods("fc2d"))
@pytest.mark.parametrize(("W", "q", "mu"), [
    (np.zeros((2, 2)), [-1, 2], 0.5),
    (np.zeros((4, 4)), [-1, 2, 1, 1], 1000.0),
    (np.diag([0.0, 1.0]), [-1e-3, 0.5], 0.5),
])  # fmt: skip
def test_impulses_without_bound_solve_nothing(method, W, q, mu):
    s = solve(one(W, q, mu), method, max_iter=300)
    assert s.status == status.INFEASIBLE
    assert s.residual > 0.1 * abs(min(q)) / np.linalg.norm(q)
    assert not s.success
    assert "proved" in s.message


@pytest.mark.parametrize("mu", [1e3, 1e10])
@pytest.mark.parametrize("method", ["auto", "nsgs"])
def test_large_friction_hides_no_penetration(method, mu):
    """``||r - P_K(r - uhat)||`` is ``|u_N| / (1 + mu^2)^(1/2)`` for r = 0, however deep u_N goes."""
    p = one(np.eye(2), [-1.0, 0.0], mu)
    assert np.isclose(plain_merit(False, p, np.zeros(2)), 1.0)
    s = solve(p, method)
    assert s.status == status.CONVERGED
    np.testing.assert_allclose(s.r, [1.0, 0.0], atol=1e-8)


def test_no_impulse_is_no_solution_because_numbers_are_small():
    for size in (1e-30, 1e-11, 1.0):
        s = solvers.solve_generic(np.zeros((3, 3)), [-size, 0, 0], [("lcp", 1), ("friction", 2, 0.5)], on_failure="continue")
        assert s.status == status.INFEASIBLE
        assert np.isclose(s.residual, 1.0)


def test_without_velocities_nothing_acts():
    for method in ("auto", "nsgs", "lemke", "interior_point"):
        s = solvers.solve_fc2d(np.eye(4), np.zeros(4), 0.5, method, r0=[1.0, 0.2, 3.0, 0.1])
        assert (s.r == 0).all()
    H = np.array([[1.0, 0, -1, 0], [0, 1, 0, 1]])  # a rod under tension of its own, which moves nothing
    s = solvers.solve_fc2d(H.T @ H, np.zeros(4), 0.5, r0=[1.0, 0.25, 1.0, -0.25])
    np.testing.assert_array_equal(s.r, [1.0, 0.25, 1.0, -0.25])


# ---------------------------------------------------------------------------------------------------------------------- auto


@pytest.mark.parametrize("method", ["auto", "newton_jm", "proximal"])
def test_a_bad_point_is_no_trap(method):
    """Sweeps run away along a motion without resistance, and leave a point whose residual is small by chance."""
    blocks = [("equality", 3), ("friction", 2, 0.5)]
    s = solvers.solve_generic(ZEROS_AND_A_LAPLACIAN, [0, -2, 4, -2, 1], blocks, method=method)
    assert s.status == status.CONVERGED
    assert abs(s.z).max() < 100.0
    w = ZEROS_AND_A_LAPLACIAN @ s.z + [0, -2, 4, -2, 1]
    np.testing.assert_allclose(w[:4], 0.0, atol=1e-6)
    np.testing.assert_allclose(s.z[4], -0.5 * s.z[3], atol=1e-6)


@pytest.mark.parametrize("limit", [1, 7, 50, 400])
def test_max_iter_limits_all_methods_of_auto_together(limit):
    s = solve(one([[1.0, 2.0], [0.0, 0.0]], [-1.0, 1.0], 0.4999), max_iter=limit)
    assert s.n_iter <= 2 * limit + 2  # a path from the guess and one from no impulses


@pytest.mark.parametrize("method", solvers.methods("fc2d"))
def test_the_best_point_is_finite_and_no_worse_than_the_guess(method):
    rng = np.random.default_rng(7)
    for _ in range(20):
        W = rng.normal(size=(6, 6)) * 10.0 ** rng.uniform(-100, 100)
        np.fill_diagonal(W, abs(np.diag(W)) * (rng.uniform(size=6) < 0.7))
        p = ref.Drawn(2, np.ones(3, int), np.full((3, 2), 0.7) * [1, 0], W, rng.normal(size=6) * 10.0 ** rng.uniform(-320, 100))
        s = solve(p, method, max_iter=50)
        assert np.isfinite([*s.r, *s.u]).all()
        assert not np.isnan(s.residual)


# ---------------------------------------------------------------------------------------------------------------------- infeasible


@examples(80)
@given(generators, st.sampled_from([2, 3]), st.integers(2, 5), st.sampled_from(["squeezed", "rows", "equations"]))
def test_what_cannot_be_solved_is_proved(rng, d, n, how):
    """A body that is pushed together from all sides; a row that no impulse makes positive; equations that contradict each other."""
    mu = rng.uniform(0, 1, size=n)
    if how == "squeezed":  # s_N > 0 with H s_N = 0, and q_N < 0 there
        H = rng.normal(size=(d * n, d * n))
        normal, weight = np.arange(n) * d, rng.uniform(0.5, 2, size=n)
        H[:, normal[-1]] = -H[:, normal[:-1]] @ weight[:-1] / weight[-1]
        W, q = H.T @ H, rng.normal(size=d * n)
        q[normal] = -rng.uniform(0.1, 1, size=n)
    elif how == "rows":
        W, q = rng.normal(size=(d * n, d * n)), rng.normal(size=d * n)
        W[0] = 0.0
        W[0, ::d] = -rng.uniform(1.5, 3, size=n)
        W[0, 1::d] = rng.uniform(-0.9, 0.9, size=n)
        W[0, 0] = W[0, 1] = 0.0
        np.fill_diagonal(W, abs(np.diag(W)))
        q[0] = -1.0
    else:
        a = rng.normal(size=d * n + 2)
        M = np.outer(a, a) + np.diag(np.r_[0.0, 0.0, rng.uniform(size=d * n)])
        M[1], M[:, 1] = 2 * M[0], 2 * M[:, 0]
        M[1, 1] = 4 * M[0, 0]
        q = np.r_[1.0, 1.0, rng.normal(size=d * n)]
        s = solvers.solve_generic(M, q, [("equality", 2), *(("friction", d, m) for m in mu)], max_iter=100, on_failure="continue")
        assert s.status == status.INFEASIBLE
        return
    for method in ("auto", "nsgs"):
        s = (solvers.solve_fc2d if d == 2 else solvers.solve_fc3d)(W, q, mu, method, max_iter=100, on_failure="continue")
        assert s.status == status.INFEASIBLE


@examples(150)
@given(generators, st.sampled_from([(2, 1), (3, 2), (5, 2)]), st.integers(1, 4), st.sampled_from([0.0, 1.0, 30.0]))
def test_what_has_a_solution_is_never_called_infeasible(rng, kind, n, most):
    """q is made for an r and u that obey the law; any matrix, also singular ones, and the proofs are asked for at any r."""
    d, disk = kind
    rank = int(rng.integers(0, d * n + 1))
    G, F = rng.normal(size=(2, d * n, rank))
    W = G @ G.T if rng.uniform() < 0.5 else G @ F.T
    mu, r, u = rng.uniform(0, 1, size=(n, 2)) * most * [1, disk < d - 1], np.zeros(d * n), np.zeros(d * n)
    for c in range(n):
        pressed = rng.uniform() < 0.7
        r[c * d], u[c * d] = (rng.uniform(), 0.0) if pressed else (0.0, rng.uniform())
        for m, part in ((mu[c, 0], slice(c * d + 1, c * d + 1 + disk)), (mu[c, 1], slice(c * d + 1 + disk, c * d + d))):
            t = rng.normal(size=part.stop - part.start)
            t /= np.linalg.norm(t) or 1.0
            sliding = rng.uniform() < 0.5
            r[part] = m * r[c * d] * t * (1.0 if sliding else rng.uniform())
            u[part] = -t * rng.uniform() if sliding or not pressed else 0.0
    problem = signature.Problem(np.full(n, disk), mu.ravel(), *forms.block_rows(W, d), u - W @ r)
    for guess in (np.zeros(d * n), r, 1e9 * rng.normal(size=d * n)):
        assert not infeasible.is_infeasible(problem, guess)


def test_slip_that_no_force_changes_is_part_of_the_proof():
    """Painlevé: ``u_N = (1 - 2 mu) r_N - 1`` while it slides forwards, as it must; below mu = 1/2 there is a solution."""
    W, q = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([-1.0, 1.0])
    assert solve(one(W, q, 0.5)).status == status.INFEASIBLE
    assert solve(one(W, q, 0.6)).status == status.INFEASIBLE
    s = solve(one(W, q, 0.4))
    assert s.status == status.CONVERGED
    np.testing.assert_allclose(s.r, [5.0, -2.0], rtol=1e-6)


def test_advice_fits_contacts_in_space():
    W = np.array([[1.0, 0, 4, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0] * 5, [0] * 5])[:3, :3]
    s = solvers.solve_fc3d(W, [-1.0, 0.3, 0.1], 0.5, max_iter=30, on_failure="continue")
    assert "lemke" not in s.message
    s = solvers.solve_generic(np.diag([1.0, -1.0, 1.0]), [-1.0, 3, 0], [("friction", 3, 0.5)], "nsgs", max_iter=2, on_failure="continue")
    assert "lemke" not in s.message


@pytest.mark.parametrize("method", solvers.methods("fc3d"))
def test_impulses_that_move_nothing_are_not_taken_for_small(method):
    """M = 0: w = q is positive, so that r = 0; there is no unit in which r = 1 is little."""
    q = [0.0, 0.0, 0.0, 0.0, 1e8]
    s = solvers.solve_generic(np.zeros((5, 5)), q, [("friction", 3, 0.9), ("lcp", 2)], method, max_iter=50, on_failure="continue")
    assert s.status != status.CONVERGED or not s.z.any()


@pytest.mark.parametrize("method", solvers.methods("fc2d"))
@pytest.mark.parametrize("size", [1e150, 1e-310])
def test_answers_too_large_to_be_written_down_are_not_given(method, size):
    W = size * np.array([[0.0, 0, 0, 0], [0.94, 0, -0.23, 0.19], [0, 2.0, 0.18, 0.25], [0, 0.17, -0.7, 0]])
    q = [-3.5, 0.07, -2.1, -2.9] if size < 1.0 else [-3.5e160, 7.1e158, -2.1e160, -2.9e160]
    s = solvers.solve_generic(W, q, [("friction", 2, 0.55), ("lcp", 2)], method, max_iter=100, on_failure="continue")
    assert np.isfinite(s.z).all()
    assert np.isfinite(s.w).all()
    assert np.isfinite(s.residual)


def test_auto_goes_on_to_other_methods_where_its_own_have_failed():
    """As after a failure of a problem that can be solved: the first method that is for such contacts and has a solution."""
    problem = contact_solve.contacts("test", "fc3d", np.diag([2.0, 1.0, 1.0]), [-1.0, 0.3, 0.0], 0.5, 0.0)
    _, options = table.asked("test", "fc3d", "auto", 1e-8, None, {})
    failed = solvers.ContactSolution(np.zeros(3), problem.q, status.STALLED, 5, 1.0, 1.0, "auto: nsgs", None)
    s = contact_solve._by_others(failed, problem, options, 0.0)
    assert (s.status, s.method) == (status.CONVERGED, "auto: newton_natural")
    assert s.n_iter > 5
    assert s.res_rho <= 1e-8
    np.testing.assert_allclose(s.u, np.diag([2.0, 1.0, 1.0]) @ s.r + problem.q, atol=1e-12)
