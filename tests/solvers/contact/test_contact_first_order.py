"""First-order solvers of contact problems against plain NumPy twins, and against the definition of the law."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds import status
from nsds.solvers.contact import accelerated, fixed_points, projections, signature
from nsds.solvers.contact.signature import Options
from tests import reference_contact as ref
from tests.strategies import examples

EQUATION = -1
NEVER = 1e-300  # a tolerance that stops no iteration
METHODS = {
    "fixed_point": projections.fixed_point,
    "extragradient": projections.extragradient,
    "accelerated": accelerated.accelerated,
    "tresca": fixed_points.tresca,
    "aclm": fixed_points.aclm,
    "panagiotopoulos": fixed_points.panagiotopoulos,
}


class Problem(NamedTuple):
    """``u = W r + q``, W dense; mu (nc, 2)."""

    d: int
    disk: np.ndarray
    mu: np.ndarray
    W: np.ndarray
    q: np.ndarray

    def contacts(self):
        for c, (disk, (mu, mu_r)) in enumerate(zip(self.disk, self.mu, strict=True)):
            first, middle = c * self.d, c * self.d + 1 + max(disk, 0)
            yield c, disk, first, slice(first + 1, middle), slice(middle, first + self.d), mu, mu_r


@st.composite
def contact_problems(draw, largest=4, skew=0.05):
    """A chain of contacts with a positive definite, slightly unsymmetric W; some are equations."""
    d, n = draw(st.sampled_from((2, 3, 5))), draw(st.integers(1, largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    near = np.kron(abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 1, np.ones((d, d)))
    B = np.kron(np.tril(near[::d, ::d]), np.ones((d, d))) * rng.normal(size=(d * n, d * n))
    W = B @ B.T / d + 0.5 * np.eye(d * n)
    W += skew * near * np.triu(rng.normal(size=W.shape), 1)
    disk = np.where(rng.uniform(size=n) < 0.2, EQUATION, min(d - 1, 2))
    mu = rng.uniform(0.0, 0.6, size=(n, 2)) * (rng.uniform(size=(n, 1)) < 0.9)
    scale = 10.0 ** rng.uniform(-2, 2)
    return Problem(d, disk, mu * [1, d == 5], scale * W, rng.normal(size=d * n) - 0.5 * (np.arange(d * n) % d == 0))


def solve(p, method, tol=1e-9, max_iter=0, rho=0.0, r=None):
    """(status, r, u, info); blocks of zeros are not stored."""
    n = len(p.disk)
    blocks = p.W.reshape(n, p.d, n, p.d).swapaxes(1, 2)
    stored = (abs(blocks).max((2, 3)) > 0) | (abs(blocks).max((2, 3)) > 0).T | np.eye(n, dtype=bool)
    column = np.nonzero(stored)[1]
    row = np.r_[0, np.cumsum(stored.sum(1))]
    r, u, info = np.zeros(p.q.size) if r is None else r.copy(), np.zeros(p.q.size), np.zeros(4)
    floats, integers = projections.work_size(p.d, row, column)
    options = Options(tol, float(max_iter), 0.0, rho, 0.0, 0.0, tol, 0.1)
    work, iwork = np.full(floats, np.nan), np.zeros(max(integers, 1), np.int64)
    problem = signature.Problem(p.disk, p.mu.reshape(-1), row, column, blocks[stored].reshape(-1), p.q)
    code = METHODS[method](problem, options, r, u, info, work, iwork)
    return code, r, u, info


# ---------------------------------------------------------------------------------------------------------------------- twins


def onto_cone(x, mu, mu_r, T, R):
    """The nearest of what the pieces of the squared distance, as a function of the normal component, propose."""
    x_t, x_r = np.linalg.norm(x[T]), np.linalg.norm(x[R])
    proposals = [max((x[0] + i * mu * x_t + j * mu_r * x_r) / (1 + i * mu**2 + j * mu_r**2), 0.0) for i in (0, 1) for j in (0, 1)]
    t = min(proposals, key=lambda t: (t - x[0]) ** 2 + max(x_t - mu * t, 0.0) ** 2 + max(x_r - mu_r * t, 0.0) ** 2)
    return np.concatenate([[t], onto_disk(x[T], mu * t), onto_disk(x[R], mu_r * t)])


def onto_disk(x, radius):
    return x * min(1.0, radius / np.linalg.norm(x)) if x.any() else x


def project(p, y):
    y = y.copy()
    for _, disk, first, _, R, mu, mu_r in p.contacts():
        if disk != EQUATION:
            y[first : R.stop] = onto_cone(y[first : R.stop], mu, mu_r, slice(1, 1 + disk), slice(1 + disk, p.d))
    return y


def hat(p, u):
    """What uhat adds to u."""
    s = np.zeros(u.size)
    for _, disk, first, T, R, mu, mu_r in p.contacts():
        s[first] = (disk != EQUATION) * (mu * np.linalg.norm(u[T]) + mu_r * np.linalg.norm(u[R]))
    return s


def merit(p, r):
    return ref.merit(ref.Drawn(p.d, p.disk, p.mu, p.W, p.q), r)


def scale(p):
    """S, and the same problem for ``y = r / S``."""
    S, mu = np.ones(p.q.size), p.mu.copy()
    for c, disk, first, T, R, _, _ in p.contacts():
        if disk == EQUATION:
            S[first : R.stop] = np.diag(p.W)[first : R.stop] ** -0.5
            continue
        for part in (slice(first, first + 1), T, R):
            if part.stop > part.start:
                S[part] = np.linalg.eigvalsh((p.W + p.W.T)[part, part] / 2)[-1] ** -0.5
        mu[c] *= S[first] / S[[T.start, R.stop - 1]]
    return S, p._replace(mu=mu, W=p.W * np.outer(S, S), q=S * p.q)


def project_repeatedly(p, n_iter, twice):
    def F(y):
        return p.W @ y + p.q + hat(p, p.W @ y + p.q)

    y, t = np.zeros(p.q.size), 1.0
    for _ in range(n_iter):
        while True:
            y_new = project(p, y - t * F(y))
            e, f = y - y_new, F(y) - F(y_new)
            ratio = t * np.linalg.norm(f) / np.linalg.norm(e) if e.any() else 0.0
            if ratio <= 0.9:
                break
            t *= 2 / 3 * min(1, 1 / ratio)
        if twice and e.any():
            alpha = e @ (e - t * f) / ((e - t * f) @ (e - t * f))
            y = project(p, y - 1.8 * alpha * t * F(y_new))
        else:
            y = y_new
        t *= 1.5 if ratio < 0.3 else 1.0
    return y


class Momentum:
    """Accelerated projected gradient from y for ``F(y) = W y + q + s``, with a projection P and with moving components only."""

    L = 1.0

    def begin(self, p, y):
        self.p, self.y, self.z, self.theta = p, y, y, 1.0

    def step(self, s, P, moving):
        p, L, theta = self.p, self.L, self.theta
        while True:
            y_new = P(self.z - moving * (p.W @ self.z + p.q + s) / L)
            change = y_new - self.z
            if (moving * (p.W @ change)) @ change <= L * change @ change + 1e-14 * np.linalg.norm(p.q) * np.linalg.norm(change):
                break
            L *= 1.5
        self.theta = (np.sqrt(theta**4 + 4 * theta**2) - theta**2) / 2
        beta = theta * (1 - theta) / (theta**2 + self.theta)
        if change @ (y_new - self.y) < 0:
            beta, self.theta = 0.0, 1.0
        self.z, self.y, self.L = y_new + beta * (y_new - self.y), y_new, 0.98 * L
        return L * np.linalg.norm(change)

    def approach(self, s, P, moving):
        first = self.step(s, P, moving)
        for _ in range(499):
            if first == 0.0 or self.step(s, P, moving) <= 0.1 * first:
                break
        return self.y


def onto_cylinder(p, radii, y, parts="NT"):
    y = y.copy()
    for c, disk, first, T, R, _, _ in p.contacts():
        if disk != EQUATION:
            y[first] = max(y[first], 0.0)
            if "T" in parts:
                y[T], y[R] = onto_disk(y[T], radii[c, 0]), onto_disk(y[R], radii[c, 1])
    return y


def solve_convex_problems(p, n_iter, method, residual):
    """The best of the first n_iter iterates."""
    y, free = np.zeros(p.q.size), np.repeat(p.disk == EQUATION, p.d)
    normal = np.arange(p.q.size) % p.d == 0
    momentum, best = Momentum(), [y]
    for _ in range(n_iter):
        radii = p.mu * y[normal, None]
        momentum.begin(p, y)
        if method == "aclm":
            y = momentum.approach(hat(p, p.W @ y + p.q), lambda x: project(p, x), 1.0)
        elif method == "tresca":
            y = momentum.approach(0.0, lambda x, g=radii: onto_cylinder(p, g, x), 1.0)
        else:
            y = momentum.approach(0.0, lambda x, g=radii: onto_cylinder(p, g, x, "N"), normal | free)
            momentum.begin(p, y)
            y = momentum.approach(0.0, lambda x, g=p.mu * y[normal, None]: onto_cylinder(p, g, x), ~normal | free)
        best.append(y)
    return min(best, key=residual)


def twin(p, method, n_iter):
    S, scaled = scale(p)
    if method in ("fixed_point", "extragradient"):
        return S * project_repeatedly(scaled, n_iter, method == "extragradient")
    if method == "accelerated":
        momentum, y = Momentum(), np.zeros(p.q.size)
        momentum.begin(scaled, y)
        for _ in range(n_iter):
            momentum.step(hat(scaled, scaled.W @ momentum.y + scaled.q), lambda x: project(scaled, x), 1.0)
        return S * momentum.y
    return S * solve_convex_problems(scaled, n_iter, method, lambda y: merit(p, S * y))


# ---------------------------------------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("method", METHODS)
@examples(20)
@given(p=contact_problems(), n_iter=st.integers(1, 12))
def test_iterates_are_those_of_the_twin(method, p, n_iter):
    code, r, u, info = solve(p, method, NEVER, n_iter)
    expected = twin(p, method, n_iter)
    size = np.linalg.norm(p.q) / np.linalg.norm(p.W, 2)
    if code == status.CONVERGED:  # r = 0, or a problem whose every operation is exact
        assert info[1] == 0.0
    assert np.linalg.norm(r - expected) <= 1e-7 * (np.linalg.norm(expected) + size)
    assert np.allclose(u, p.W @ r + p.q, rtol=0, atol=1e-13 * np.linalg.norm(abs(p.W) @ abs(r) + abs(p.q)))
    assert np.isclose(info[1], merit(p, r), rtol=1e-6, atol=1e-13)


@pytest.mark.parametrize("rho", [0.0, 1.0])
@pytest.mark.parametrize("method", METHODS)
@examples(15)
@given(p=contact_problems())
def test_the_law_is_fulfilled(method, rho, p):
    """e, the merit as velocity and as impulse, bounds the distances of r to K and of uhat to K*, and ``|r' uhat|``."""
    tol = 1e-9
    code, r, _, _ = solve(p, method, tol, rho=rho / np.linalg.norm(p.W, 2))
    assert code == status.CONVERGED
    u = p.W @ r + p.q
    e = 1.01 * tol * np.linalg.norm(p.q) * max(1.0, 1.0 / ref.scales(p, r).min())
    for _, disk, first, T, R, mu, mu_r in p.contacts():
        every = slice(first, R.stop)
        if disk == EQUATION:
            assert np.linalg.norm(u[every]) <= e
            continue
        u_hat = u[every] + hat(p, u)[every]
        r_t, r_r = np.linalg.norm(r[T]), np.linalg.norm(r[R])
        dual = u_hat[0] - mu * np.linalg.norm(u[T]) - mu_r * np.linalg.norm(u[R])
        assert r[first] >= -e
        assert r_t <= mu * r[first] + (1 + mu) * e
        assert r_r <= mu_r * r[first] + (1 + mu_r) * e
        assert dual >= -(1 + mu + mu_r) * e
        assert abs(r[every] @ u_hat) <= 3 * e * (np.linalg.norm(r[every]) + np.linalg.norm(u_hat) + e)


def single(W, q, mu):
    d = len(q)
    return Problem(d, np.array([min(d - 1, 2)]), np.array([[mu, mu * (d == 5)]]), np.array(W, float), np.array(q, float))


@pytest.mark.parametrize("method", METHODS)
def test_a_solution_of_the_convex_law_is_none_of_the_law(method):
    """W = I: the convex law has ``r = P_K(-q)``, Coulomb's has u_N = 0 while the contact slides."""
    p = single(np.eye(3), [-1.0, 2.0, 0.0], 0.5)
    convex = project(p, -p.q)
    assert solve(p, method, 1e-12, max_iter=1, r=convex)[0] != status.CONVERGED or method == "panagiotopoulos"  # it needs no more
    code, r, u, _ = solve(p, method, 1e-12, r=convex)
    assert code == status.CONVERGED
    assert np.allclose(r, [1.0, -0.5, 0.0], atol=1e-11)
    assert np.allclose(u, [0.0, 1.5, 0.0], atol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_many_contacts_on_one_body(method):
    """W of rank 6 for a box on four corners that is pushed until it slides: the forces are not unique, their sum is."""
    corners = np.array([[x, y, -0.5] for x in (-1.0, 1.0) for y in (-1.0, 1.0)])
    H = np.zeros((6, 12))
    for c, (x, y, z) in enumerate(corners):
        H[:3, 3 * c : 3 * c + 3] = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
        for k, axis in enumerate(np.eye(3)[[2, 0, 1]]):
            H[3:, 3 * c + k] = np.cross([x, y, z], axis)
    v = np.array([3.0, 1.0, -1.0, 0.0, 0.0, 0.0])
    p = Problem(3, np.full(4, 2), np.full((4, 2), 0.3) * [1, 0], H.T @ H, H.T @ v)
    code, r, _, _ = solve(p, method)
    assert code == status.CONVERGED
    after = v + H @ r
    assert np.allclose(after[2:], 0.0, atol=1e-8)
    assert np.allclose(after[:2], v[:2] * (1 - 0.3 / np.hypot(3, 1)), atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_be_solved_is_told(method):
    assert solve(single(np.eye(3), [-1.0, np.nan, 0.0], 0.5), method)[0] == status.NON_FINITE
    code, r, _, info = solve(single(np.zeros((2, 2)), [-1.0, 0.0], 0.5), method, max_iter=300)
    assert code in (status.MAX_ITER, status.STALLED)
    assert info[1] >= 1.0
    assert np.isfinite(r).all()
    empty = Problem(3, np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros((0, 0)), np.zeros(0))
    row, none, options = np.zeros(1, np.int64), np.zeros(0), Options(1e-9, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-9, 0.1)
    problem = signature.Problem(empty.disk, none, row, row[:0], none, none)
    assert METHODS[method](problem, options, none, none, np.zeros(4), np.zeros(8), row) == status.CONVERGED


@pytest.mark.parametrize("method", METHODS)
def test_an_open_contact_needs_no_force(method):
    code, r, _, info = solve(single(np.eye(5), [1.0, 0.3, 0.1, 0.0, 0.2], 0.5), method)
    assert code == status.CONVERGED
    assert not r.any()
    assert info[0] <= 1
