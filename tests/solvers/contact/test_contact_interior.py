"""Interior point method and ADMM of contact problems: NumPy twins, iterate by iterate, and the law itself on random problems."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds import status
from nsds.solvers.contact import admm, interior_point, signature
from nsds.solvers.contact.signature import Options
from tests import reference_contact as ref
from tests.strategies import examples, generators

NEVER = 1e-300  # a tolerance that stops no iteration
KERNELS = {"interior_point": interior_point, "admm": admm}
DISKS = {2: 1, 3: 2, 5: 2}


# ---------------------------------------------------------------- problems
def random_problem(rng, d, n, redundant=False, unsymmetric=False):
    """(W, q, mu): positive definite, or with fewer degrees of freedom than rows. A velocity inside K* is reachable: there is a solution."""
    rows = d * n
    G = rng.normal(size=(rows, max(rows // 2, 1) if redundant else rows + 2))
    W = G @ G.T / G.shape[1] + (0.0 if redundant else 0.1) * np.eye(rows)
    if unsymmetric:
        skew = rng.normal(size=(rows, rows))
        W += 0.02 * (skew - skew.T)
    mu = rng.uniform(0.2, 0.9, size=(n, 2))
    q = W @ (rng.normal(size=rows) - np.tile(np.eye(d)[0], n))
    return W, q + 0.1 * np.tile(np.eye(d)[0], n), mu


def solve(name, W, q, mu, disk, max_iter=0, tol=1e-9, rho=0.0):
    """Status, r and info of the kernel for a dense W, kept as rows of blocks that are all there."""
    n, d = len(disk), q.size // len(disk)
    row, column = np.arange(n + 1) * n, np.tile(np.arange(n), n)
    blocks = np.ascontiguousarray(W.reshape(n, d, n, d).transpose(0, 2, 1, 3)).ravel()
    n_floats, n_integers = KERNELS[name].work_size(d, row, column)
    r, u, info = np.zeros(q.size), np.zeros(q.size), np.zeros(signature.N_INFO)
    options = Options(tol, float(max_iter), 0.0, rho, 0.0, 0.0, tol, 0.1)
    problem = signature.Problem(np.asarray(disk), np.ravel(mu), row, column, blocks, q)
    state = getattr(KERNELS[name], name)(problem, options, r, u, info, np.zeros(n_floats), np.zeros(n_integers, int))
    return state, r, info


# ---------------------------------------------------------------- twins
def slip(u, mu, d):
    """``mu ||u_T|| + mu_r ||u_R||`` of one contact."""
    return mu[0] * np.linalg.norm(u[1:3]) + mu[1] * np.linalg.norm(u[3:d])


def project(x, mu):
    """On K by Dykstra's alternation between its two cones; d < 5: one cone, at once."""

    def on_cone(z, m):
        size = np.linalg.norm(z[1:])
        if size <= m * z[0]:
            return z
        t = max((z[0] + m * size) / (1 + m * m), 0.0)
        return np.r_[t, m * t * z[1:] / size]

    if x.size < 5:
        return on_cone(x, mu[0])
    x, p, q = x.copy(), np.zeros(5), np.zeros(5)
    for _ in range(2000):
        y = x + p
        y[:3] = on_cone(y[:3], mu[0])
        p = x + p - y
        x = y + q
        x[[0, 3, 4]] = on_cone(x[[0, 3, 4]], mu[1])
        q = y + q - x
        if abs(x - y).max() <= 1e-14 * abs(x).max():
            break
    return x


def arrow(x):
    """Matrix of the Jordan product with x."""
    return np.block([[x[:1, None], x[None, 1:]], [x[1:, None], x[0] * np.eye(x.size - 1)]])


def quadratic(x):
    """Quadratic representation ``2 L(x)^2 - L(x^2)``."""
    return 2 * arrow(x) @ arrow(x) - arrow(arrow(x) @ x)


def root(x):
    """Square root in the Jordan algebra, by the spectral decomposition."""
    size = np.linalg.norm(x[1:])
    n = x[1:] / size if size > 0 else np.zeros(x.size - 1)
    a, b = np.sqrt(x[0] + size), np.sqrt(max(x[0] - size, 0.0))
    return np.r_[(a + b) / 2, (a - b) / 2 * n]


def inverse(x):
    return np.r_[x[0], -x[1:]] / (x[0] ** 2 - x[1:] @ x[1:])


def nesterov_todd(x, y):
    """Symmetric S with ``S x = S^-1 y``: ``S^2 = Q(w)^-1`` and ``w = Q(x^1/2) (Q(x^1/2) y)^-1/2``."""
    w = quadratic(root(x)) @ inverse(root(quadratic(root(x)) @ y))
    return quadratic(root(inverse(w)))


def longest(x, dx):
    """Up to where ``x + t dx`` stays in the Lorentz cone."""
    roots = np.roots([dx[0] ** 2 - dx[1:] @ dx[1:], 2 * (x[0] * dx[0] - x[1:] @ dx[1:]), x[0] ** 2 - x[1:] @ x[1:]])
    return min((t.real for t in roots if abs(t.imag) < 1e-9 * abs(t) and t.real > 0), default=np.inf)


def interior_point_twin(W, q, mu, d, steps):
    """The path for ``u = W r + q`` with cones over (N, T) and (N, R) that all have friction; dense, one list entry per cone."""
    n = q.size // d
    size = abs(q).max()
    r = np.zeros(q.size)
    r[::d] = size / np.diag(W)[::d]
    parts = [[0, *range(1, min(d, 3))]] + ([[0, 3, 4]] if d == 5 else [])
    cones = [(c * d + np.array(part), mu[c, j]) for c in range(n) for j, part in enumerate(parts)]
    scale = [np.r_[m, np.ones(i.size - 1)] for i, m in cones]
    ys = [np.r_[size, np.zeros(i.size - 1)] for i, _ in cones]
    for _ in range(steps):
        xs = [s * r[i] for (i, _), s in zip(cones, scale, strict=True)]
        F, J, Qs, Ss = W @ r + q, W.copy(), [], []
        for (i, m), s, x, y in zip(cones, scale, xs, ys, strict=True):
            t = np.linalg.norm(y[1:])
            F[i] -= np.r_[m * (y[0] - t), y[1:]]
            Q = np.diag(s)
            Q[0, 1:] = -m * y[1:] / t if t > 0 else 0.0
            S = nesterov_todd(x, y)
            J[np.ix_(i, i)] += Q @ S @ S @ np.diag(s)
            Qs.append(Q)
            Ss.append(S)

        def direction(target, dxs, dys, xs=xs, ys=ys, F=F, J=J, Qs=Qs, Ss=Ss):
            gs, rhs = [], -F
            for (i, _), x, y, dx, dy, Q, S in zip(cones, xs, ys, dxs, dys, Qs, Ss, strict=True):
                aim = target * np.eye(x.size)[0] - arrow(S @ dx) @ np.linalg.solve(S, dy)
                gs.append(S @ np.linalg.solve(arrow(S @ x), aim) - y)
                rhs[i] += Q @ gs[-1]
            dr = np.linalg.solve(J, rhs)
            dxs = [s * dr[i] for (i, _), s in zip(cones, scale, strict=True)]
            dys = [g - S @ S @ dx for g, S, dx in zip(gs, Ss, dxs, strict=True)]
            return dr, dxs, dys, min(map(longest, xs + ys, dxs + dys))

        zero = [0 * x for x in xs]
        _, dxs, dys, t = direction(0.0, zero, zero)
        gap = np.mean([x @ y for x, y in zip(xs, ys, strict=True)])
        t = min(t, 1.0)
        ahead = np.mean([(x + t * dx) @ (y + t * dy) for x, y, dx, dy in zip(xs, ys, dxs, dys, strict=True)])
        dr, dxs, dys, t = direction(gap * max(0.1, (ahead / gap) ** 2), dxs, dys)
        t = min(0.9 * t, 1.0)
        r, ys = r + t * dr, [y + t * dy for y, dy in zip(ys, dys, strict=True)]
    return r


def admm_twin(W, q, mu, d, rho, steps):
    n, eta = q.size // d, 1e-6
    D = np.repeat([np.mean(np.diag(W)[c * d : (c + 1) * d]) for c in range(n)], d)
    x = y = np.zeros(q.size)
    contacts = [slice(c * d, (c + 1) * d) for c in range(n)]
    z = q.copy()
    for c, k in enumerate(contacts):
        z[k.start] += slip(q[k], mu[c], d)
        z[k] += project(-z[k], mu[c])
    for _ in range(steps):
        s = np.zeros(q.size)
        s[::d] = [slip(z[k], mu[c], d) for c, k in enumerate(contacts)]
        x = np.linalg.solve(W + (rho + eta) * np.diag(D), rho * D * y + eta * D * x + z - q - s)
        x = 1.5 * x - 0.5 * y
        y = np.concatenate([project((x - z / (rho * D))[k], mu[c]) for c, k in enumerate(contacts)])
        z = z - rho * D * (x - y)
    return y


# ---------------------------------------------------------------- tests
@examples(25)
@given(generators, st.sampled_from(sorted(DISKS)), st.integers(1, 4), st.integers(1, 4))
def test_interior_point_iterates(rng, d, n, steps):
    W, q, mu = random_problem(rng, d, n)
    state, r, _ = solve("interior_point", W, q, mu, np.full(n, DISKS[d]), steps, NEVER)
    trail = [interior_point_twin(W, q, mu, d, k) for k in range(steps + 1)]
    errors = [law_residual(W, q, mu, r_k) for r_k in trail]
    if state == status.MAX_ITER:
        best = int(np.argmin(errors))
        np.testing.assert_allclose(r, trail[best], rtol=1e-6, atol=1e-6 * abs(trail[best]).max())


@examples(25)
@given(generators, st.sampled_from(sorted(DISKS)), st.integers(1, 4), st.integers(1, 12))
def test_admm_iterates(rng, d, n, steps):
    W, q, mu = random_problem(rng, d, n)
    _, r, _ = solve("admm", W, q, mu, np.full(n, DISKS[d]), steps, NEVER, rho=0.1)
    looked_at = [admm_twin(W, q, mu, d, 0.1, k) for k in sorted({0, 5, 10, steps}) if k <= steps]
    expected = min(looked_at, key=lambda x: law_residual(W, q, mu, x))
    np.testing.assert_allclose(r, expected, rtol=1e-6, atol=1e-7 * max(abs(expected).max(), 1.0))


def law_residual(W, q, mu, r):
    """The shared merit."""
    d = len(q) // len(mu)
    return ref.merit(ref.Drawn(d, np.full(len(mu), DISKS[d]), mu, W, q), r)


def assert_law(W, q, mu, r, tol):
    """r in K, uhat in K*, and orthogonal: each to within what the residual allows, of impulses divided by their scale."""
    n, d = len(mu), len(q) // len(mu)
    U, R = (W @ r + q).reshape(n, -1), r.reshape(n, -1)
    small = tol * np.linalg.norm(q) * max(1.0, 1.0 / ref.scales(ref.Drawn(d, np.full(n, DISKS[d]), mu, W, q), r).min())
    for u, x, m in zip(U, R, mu, strict=True):
        s = slip(u, m, d)
        assert np.linalg.norm(x[1:3]) <= m[0] * x[0] + 2 * small
        assert np.linalg.norm(x[3:]) <= m[1] * x[0] + 2 * small
        assert u[0] >= -2 * small
        assert abs(x @ u + x[0] * s) <= 4 * small * (np.linalg.norm(x) + np.linalg.norm(u) + s + small)


@pytest.mark.parametrize("name", KERNELS)
@examples(40)
@given(generators, st.sampled_from(sorted(DISKS)), st.integers(1, 5), st.booleans(), st.booleans())
def test_the_law_holds(name, rng, d, n, redundant, unsymmetric):
    W, q, mu = random_problem(rng, d, n, redundant, unsymmetric and not redundant)
    state, r, info = solve(name, W, q, mu, np.full(n, DISKS[d]))
    assert state == status.CONVERGED
    assert info[1] <= 1e-9
    assert_law(W, q, mu, r, 1e-9)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("d", sorted(DISKS))
def test_equations_and_contacts_without_friction(name, d):
    rng = np.random.default_rng(d)
    W, q, mu = random_problem(rng, d, 4)
    disk = np.array([signature.EQUATION, DISKS[d], DISKS[d], signature.EQUATION])
    mu[1] = 0.0
    mu[2, 0] = 0.0
    state, r, _ = solve(name, W, q, mu, disk)
    u = W @ r + q
    assert state == status.CONVERGED
    assert abs(u[:d]).max() < 1e-8 * np.linalg.norm(q)
    assert abs(u[3 * d :]).max() < 1e-8 * np.linalg.norm(q)
    k = slice(d, 3 * d)
    full = q + W[:, :d] @ r[:d] + W[:, 3 * d :] @ r[3 * d :]
    assert_law(W[k, k], full[k], mu[1:3], r[k], 1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_limits_and_nonsense(name):
    W, q, mu = random_problem(np.random.default_rng(0), 3, 3)
    disk = np.full(3, 2)
    assert solve(name, W, q, mu, disk, 1, NEVER)[0] in (status.MAX_ITER, status.STALLED)
    assert solve(name, W, q * np.nan, mu, disk)[0] == status.NON_FINITE
    state, r, _ = solve(name, W, abs(q) + 10.0 * np.tile([1.0, 0.0, 0.0], 3), mu, disk)
    assert state == status.CONVERGED
    assert abs(r).max() < 1e-7


@pytest.mark.parametrize("name", KERNELS)
def test_too_many_contacts_are_refused(name):
    n = 8193
    row, column, W = np.arange(n + 1), np.arange(n), np.tile([1.0, 0.0, 0.0, 1.0], n)
    floats, integers = KERNELS[name].work_size(2, row, column)
    r, u, info = np.zeros(2 * n), np.zeros(2 * n), np.zeros(signature.N_INFO)
    options, mu = Options(1e-8, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-8, 0.1), np.zeros(2 * n)
    kernel = getattr(KERNELS[name], name)
    problem = signature.Problem(np.ones(n, int), mu, row, column, W, -np.ones(2 * n))
    assert kernel(problem, options, r, u, info, np.zeros(floats), np.zeros(integers, int)) == status.UNSUITED
