"""Newton's method on the four forms of the law of contact, and proximal points around it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds.solvers.contact import alart_curnier, block_lu, fischer_burmeister, natural_map, newton, proximal, signature
from nsds.solvers.contact.alart_curnier import ALART_CURNIER, JEAN_MOREAU
from nsds.solvers.contact.newton import FISCHER_BURMEISTER, NATURAL_MAP
from nsds.solvers.contact.signature import Cone, Options
from nsds.status import CONVERGED, MAX_ITER, UNSUITED
from tests import reference_contact as ref
from tests.strategies import examples, generators

FORMS = {ALART_CURNIER: newton.newton_ac, JEAN_MOREAU: newton.newton_jm, NATURAL_MAP: newton.newton_natural}
FORMS[FISCHER_BURMEISTER] = newton.newton_fb
KINDS = ((2, 1), (3, 2), (3, 1), (5, 2))  # components, those of T
CASES = [(form, d, disk) for form, (d, disk) in itertools.product(FORMS, KINDS) if form != FISCHER_BURMEISTER or disk == d - 1]
EQUATION = -1


# The twin: laws as their definitions say, derivatives by differences, dense matrices.


def disks(disk, d):
    return (slice(1, 1 + disk), slice(1 + disk, d))


def modified(disk, mu, u):
    u = u.copy()
    u[0] += sum(m * np.linalg.norm(u[part]) for m, part in zip(mu, disks(disk, len(u)), strict=True))
    return u


def project(disk, mu, x):
    """Bisection for the normal component: ``t - x_N - sum mu (||x_T|| - mu t)_+`` grows with t."""
    sizes = [np.linalg.norm(x[part]) for part in disks(disk, len(x))]
    low, high = 0.0, abs(x[0]) + sum(m * s for m, s in zip(mu, sizes, strict=True))
    for _ in range(200):
        t = 0.5 * (low + high)
        if t - x[0] - sum(m * max(s - m * t, 0.0) for m, s in zip(mu, sizes, strict=True)) < 0.0:
            low = t
        else:
            high = t
    p = np.r_[t, x[1:]]
    for m, s, part in zip(mu, sizes, disks(disk, len(x)), strict=True):
        p[part] *= min(1.0, m * t / s) if s > 0.0 else 1.0
    return p


def square_root(z):
    size = np.linalg.norm(z[1:])
    n = z[1:] / size if size > 0.0 else 0.0 * z[1:]
    greater, lesser = np.sqrt(z[0] + size), np.sqrt(max(z[0] - size, 0.0))
    return np.r_[greater + lesser, (greater - lesser) * n] / 2


def square(x):
    return np.r_[x @ x, 2.0 * x[0] * x[1:]]


def law(form, disk, mu, rho, r, u):
    """F of one contact."""
    if disk == EQUATION:
        return u.copy()
    d = len(r)
    s = np.sqrt(np.r_[rho[0], np.full(disk, rho[1]), np.full(d - 1 - disk, rho[2])])
    if form == NATURAL_MAP:
        scaled = [m * np.sqrt(rho[0] / x) for m, x in zip(mu, rho[1:], strict=True)]
        return (r / s - project(disk, scaled, r / s - s * modified(disk, mu, u))) / s
    if form == FISCHER_BURMEISTER:
        if mu[0] == 0.0:
            return np.r_[(r[0] + rho[0] * u[0] - np.hypot(r[0], rho[0] * u[0])) / rho[0], r[1:] / rho[1]]
        T, scale = np.r_[1.0 / mu[0], np.ones(d - 1)], min(mu[0] ** 2 * rho[0], rho[1])
        x, y = r / T, scale * T * modified(disk, mu, u)
        return (x + y - square_root(square(x) + square(y))) / T / scale
    F = np.empty(d)
    pushed = max(r[0] - rho[0] * u[0], 0.0)
    F[0] = (r[0] - pushed) / rho[0]
    for m, x, part in zip(mu, rho[1:], disks(disk, d), strict=True):
        y = r[part] - x * u[part]
        size, radius = np.linalg.norm(y), m * (pushed if form == ALART_CURNIER else max(r[0], 0.0))
        F[part] = (r[part] - (y * min(1.0, radius / size) if size > 0.0 else y)) / x
    return F


def contact_rho(W, disk):
    split = 1 + disk if disk != EQUATION else len(W)
    parts = (slice(0, 1), slice(1, min(split, 3)), slice(split, len(W)))
    blocks = [(W[p, p] + W[p, p].T) / 2 for p in parts]
    return [1.0 / np.linalg.eigvalsh(b)[-1] if b.size else 1.0 for b in blocks]


def all_laws(form, problem, rho, r):
    disk, mu, W, q = problem
    r = r.reshape(len(disk), -1)
    u = (W @ r.ravel() + q).reshape(r.shape)
    return np.concatenate([law(form, disk[c], mu[c], rho[c], r[c], u[c]) for c in range(len(disk))])


def newton_twin(form, problem, r, n_steps):
    """All iterates of damped Newton; differences are taken backwards because at ``r_N = 0`` of an open contact a disk is a point."""
    disk, _, W, _ = problem
    n, d, h = len(disk), len(r) // len(disk), 1e-7
    diagonal = [W[c * d : c * d + d, c * d : c * d + d] for c in range(n)]
    rho = [contact_rho(diagonal[c], disk[c]) for c in range(n)]
    means = np.repeat([np.trace(block) / d for block in diagonal], d)
    F, sigma, iterates = all_laws(form, problem, rho, r), 1e-9, [r]
    recent = [F @ F] * 5
    for _ in range(n_steps):
        r, regular = iterates[-1], (disk, problem[1], W + np.diag(sigma * means), problem[3] - sigma * means * iterates[-1])
        J = np.stack([(F - all_laws(form, regular, rho, r - e)) / h for e in h * np.eye(len(r))], 1)
        step, t = np.linalg.solve(J, F), 1.0
        F = all_laws(form, problem, rho, r - step)
        while (1 - 2e-4 * t) * max(recent) < F @ F and t > 2.0**-12:
            t /= 2
            F = all_laws(form, problem, rho, r - t * step)
        sigma = max(sigma / 10, 1e-9) if t == 1.0 else min(100 * sigma, 1.0)
        recent = [*recent[1:], F @ F]
        iterates.append(r - t * step)
    return iterates


def residual(problem, r):
    """The shared merit."""
    disk, mu, W, q = problem
    return ref.merit(ref.Drawn(len(q) // len(disk), disk, mu, W, q), r)


# Problems and calls.


def draw(rng, n, d, disk, freedoms=None, unsymmetric=0.0, equations=False):
    """``W = H H^T`` of contacts that each touch two of some bodies, so that W is sparse; definite where there are freedoms enough."""
    n_bodies = n + 1 if freedoms is None else freedoms
    H = np.zeros((n * d, n_bodies * d))
    for c in range(n):
        for b in (c % n_bodies, (c + 1) % n_bodies):
            H[c * d : c * d + d, b * d : b * d + d] = np.eye(d) + 0.3 * rng.normal(size=(d, d))
    W = H @ H.T + unsymmetric * np.kron(np.eye(n), rng.normal(size=(d, d)))
    q = H @ rng.normal(size=H.shape[1])
    q[::d] -= 0.5
    kinds = np.where(equations & (np.arange(n) == 0), EQUATION, disk)
    return kinds, rng.uniform(0.1, 0.6, (n, 2)), W, q


def blocks(W, d):
    n = len(W) // d
    B = W.reshape(n, d, n, d).transpose(0, 2, 1, 3)
    kept = (abs(B) + abs(B.transpose(1, 0, 3, 2))).max((2, 3)) > 0.0
    return np.r_[0, kept.sum(1).cumsum()], np.nonzero(kept)[1], B[kept].ravel()


def call(solver, work_size, problem, tol=1e-10, max_iter=0, r=None):
    disk, mu, W, q = problem
    d = len(q) // len(disk)
    row, column, entries = blocks(W, d)
    n_floats, n_integers = work_size(d, row, column)
    r, u, info = np.zeros(len(q)) if r is None else r.copy(), np.zeros(len(q)), np.zeros(4)
    options = Options(tol, float(max_iter), 0.0, 0.0, 0.0, 0.0, tol, 0.1)
    arrays = signature.Problem(disk.astype(np.int64), mu.ravel(), row.astype(np.int64), column.astype(np.int64), entries, q)
    return solver(arrays, options, r, u, info, np.zeros(n_floats), np.zeros(n_integers, np.int64)), info, r, u


def evaluate(form, disk, mu, rho, r, u):
    d = len(r)
    F, A, B = np.zeros(d), np.zeros(d * d), np.zeros(d * d)
    rho, cone = np.array(rho), Cone(d, disk, *mu)
    if form == NATURAL_MAP:
        natural_map.evaluate(cone, rho, r, u, F, A, B)
    elif form == FISCHER_BURMEISTER:
        fischer_burmeister.evaluate(cone, rho, r, u, F, A, B)
    else:
        alart_curnier.evaluate(form, cone, rho, r, u, F, A, B)
    return F, A.reshape(d, d), B.reshape(d, d)


def draw_contact(rng, d):
    mu = [rng.choice([0.0, 0.3, 1.0]) for _ in range(2)]
    rho, r, u = 10 ** rng.uniform(-1, 1, 3), rng.normal(size=d), rng.normal(size=d)
    r[0] = 2.0 * abs(r[0])
    return mu, rho, r, u


# Forms.


@pytest.mark.parametrize(("form", "d", "disk"), [*CASES, *((form, 3, EQUATION) for form in FORMS)])
def test_forms_and_their_derivatives(form, d, disk):
    @examples(100)
    @given(rng=generators)
    def check(rng):
        mu, rho, r, u = draw_contact(rng, d)
        F, A, B = evaluate(form, disk, mu, rho, r, u)
        np.testing.assert_allclose(F, law(form, disk, mu, rho, r, u), atol=1e-13 / min(rho), rtol=1e-12)
        h = 1e-6
        for x, derivative in ((u, A), (r, B)):
            for j in range(d):
                x[j] += h
                ahead = evaluate(form, disk, mu, rho, r, u)[0]
                x[j] -= 2 * h
                behind = evaluate(form, disk, mu, rho, r, u)[0]
                x[j] += h
                np.testing.assert_allclose(derivative[:, j], (ahead - behind) / (2 * h), atol=1e-6)

    check()


def admissible(rng, disk, d, mu):
    """A pair (r, u) that obeys the law: open, sticking, or sliding."""
    r, u, kind = np.zeros(d), np.zeros(d), rng.integers(3)
    if kind == 0:
        u = np.r_[rng.uniform(0, 1), rng.normal(size=d - 1)]
    else:
        r[0] = rng.uniform(0.1, 2.0)
        for m, part in zip(mu, disks(disk, d), strict=True):
            n = rng.normal(size=part.stop - part.start)
            n /= max(np.linalg.norm(n), 1e-300)
            r[part] = (m * r[0] if kind == 2 else rng.uniform(0, m * r[0])) * n
            u[part] = -rng.uniform(0, 2) * n if kind == 2 else 0.0
    return r, u


@pytest.mark.parametrize(("form", "d", "disk"), CASES)
def test_forms_vanish_where_the_law_holds_and_nowhere_else(form, d, disk):
    @examples(100)
    @given(rng=generators)
    def check(rng):
        mu, rho = rng.uniform(0.1, 1, 2), 10 ** rng.uniform(-1, 1, 3)
        r, u = admissible(rng, disk, d, mu)
        size = np.linalg.norm(r) / min(rho) + np.linalg.norm(u)
        assert np.linalg.norm(evaluate(form, disk, mu, rho, r, u)[0]) <= 1e-13 * size / min(mu[0], 1.0) ** 2
        r, u = rng.normal(size=(2, d))
        assert np.linalg.norm(r - project(disk, mu, r - modified(disk, mu, u))) > 1e-9
        assert np.linalg.norm(evaluate(form, disk, mu, rho, r, u)[0]) > 1e-9

    check()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("d", [2, 3])
def test_forms_at_the_origin_are_finite(form, d):
    for mu in (0.0, 0.5):
        F, A, B = evaluate(form, d - 1, (mu, 0.0), np.ones(3), np.zeros(d), np.zeros(d))
        assert (F == 0.0).all()
        assert np.linalg.matrix_rank(A + B) == d


# Methods.


@pytest.mark.parametrize(("form", "d", "disk"), CASES)
def test_iterates_are_those_of_the_twin(form, d, disk):
    rng = np.random.default_rng(4)  # others may put iterates on kinks, where differences and the generalised Jacobian choose otherwise
    problem = draw(rng, 4, d, disk, unsymmetric=0.05, equations=True)
    start = rng.normal(size=4 * d) + np.tile(np.r_[2.0, np.zeros(d - 1)], 4)
    iterates = newton_twin(form, problem, start, 4)
    for n_steps in (1, 2, 4):
        status, info, r, _ = call(FORMS[form], newton.work_size, problem, tol=0.0, max_iter=n_steps, r=start)
        assert status == MAX_ITER
        assert info[0] == n_steps
        best = min(iterates[: n_steps + 1], key=lambda x: residual(problem, x))
        np.testing.assert_allclose(r, best, atol=2e-5)


@pytest.mark.parametrize(("form", "d", "disk"), [*CASES, (None, 2, 1), (None, 3, 2), (None, 5, 2)])
def test_solutions_of_definite_problems(form, d, disk):
    solver, work_size = (proximal.proximal, proximal.work_size) if form is None else (FORMS[form], newton.work_size)

    @examples(25)
    @given(rng=generators, n=st.integers(1, 6), unsymmetric=st.sampled_from([0.0, 0.02]), equations=st.booleans())
    def check(rng, n, unsymmetric, equations):
        problem = draw(rng, n, d, disk, unsymmetric=unsymmetric, equations=equations)
        status, info, r, u = call(solver, work_size, problem)
        assert status == CONVERGED
        assert residual(problem, r) <= 1e-10 + 1e-14
        np.testing.assert_allclose(info[1], residual(problem, r), atol=1e-14)
        np.testing.assert_allclose(u, problem[2] @ r + problem[3], atol=1e-12)

    check()


@pytest.mark.parametrize("d", [2, 3, 5])
def test_proximal_points_of_hyperstatic_problems(d):
    @examples(15)
    @given(rng=generators)
    def check(rng):
        problem = draw(rng, 8, d, min(d - 1, 2), freedoms=4)
        assert np.linalg.matrix_rank(problem[2]) == 4 * d
        status, _, r, _ = call(proximal.proximal, proximal.work_size, problem, tol=1e-9)
        assert status == CONVERGED
        assert residual(problem, r) <= 1e-9 + 1e-14

    check()


@pytest.mark.parametrize("form", FORMS)
def test_newton_is_quadratic_near_a_regular_solution(form):
    rng = np.random.default_rng(3)
    problem = draw(rng, 6, 3, 2)
    status, _, solution, _ = call(FORMS[form], newton.work_size, problem, tol=1e-14)
    start = solution + 1e-2 * rng.normal(size=18)
    errors = [np.linalg.norm(start - solution)]
    for n_steps in range(1, 8):
        r = call(FORMS[form], newton.work_size, problem, tol=1e-15, max_iter=n_steps, r=start)[2]
        errors.append(np.linalg.norm(r - solution))
    assert status == CONVERGED
    for before, after in itertools.pairwise(errors):
        assert after <= 1e2 * before**2 + 1e-8 * before + 1e-13  # the term with eta = 1e-9 of the diagonal is linear
    assert errors[-1] <= 1e-12


def test_what_methods_do_not_treat():
    rng = np.random.default_rng(0)
    rolling = draw(rng, 2, 5, 2)
    assert call(newton.newton_fb, newton.work_size, rolling)[0] == UNSUITED
    n = block_lu.LARGEST + 1
    row, column = np.arange(n + 1), np.arange(n)
    assert newton.work_size(2, row, column) == (5, 0)
    many = signature.Problem(np.ones(n, np.int64), np.zeros(2 * n), row, column, np.tile(np.eye(2).ravel(), n), -np.ones(2 * n))
    options = Options(1e-9, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-9, 0.1)
    for solver in (*FORMS.values(), proximal.proximal):
        scratch = (np.zeros(2 * n), np.zeros(2 * n), np.zeros(4), np.zeros(5), np.zeros(0, np.int64))
        assert solver(many, options, *scratch) == UNSUITED
