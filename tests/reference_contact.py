"""Contact problems in plain NumPy, dense and contact by contact: the law, problems to test it on, and slow twins of what the kernels do."""

import math
from typing import NamedTuple

import numpy as np

EQUATION = -1
EPSILON = np.finfo(float).eps


class Drawn(NamedTuple):
    """``u = W r + q``, W dense, and the law of contacts of d components; disk (nc,), mu (nc, 2) as kernels have them."""

    d: int
    disk: np.ndarray
    mu: np.ndarray
    W: np.ndarray
    q: np.ndarray
    family: str = ""

    @property
    def n(self):
        return len(self.disk)

    def velocity(self, r):
        return self.W @ r + self.q

    def contacts(self):
        """(places, tangents, rolling, mu, mu_r, disk) of each contact; tangents and rolling within the contact."""
        for c, (disk, (mu, mu_r)) in enumerate(zip(self.disk, self.mu, strict=True)):
            yield slice(c * self.d, (c + 1) * self.d), slice(1, 1 + max(disk, 0)), slice(1 + max(disk, 0), self.d), mu, mu_r, disk


# ---------------------------------------------------------------------------------------------------------------------- the law


def hat(u, mu, mu_r, disk):
    """``u + (mu ||u_T|| + mu_r ||u_R||) e_N`` of one contact."""
    result = np.array(u)
    result[0] += mu * _size(u[1 : 1 + disk]) + mu_r * _size(u[1 + disk :])
    return result


def _size(x):
    return math.sqrt(x @ x)


def onto_disk(x, radius):
    size = _size(x)
    return x if size <= radius else x * (radius / size)


def onto_cone(x, mu, mu_r, disk):
    """Normal component: the zero of an increasing function, linear in four pieces, which propose one each; at least 0."""
    x_n, x_t, x_r = float(x[0]), _size(x[1 : 1 + disk]), _size(x[1 + disk :])
    proposals = [(x_n + i * mu * x_t + j * mu_r * x_r) / (1 + i * mu**2 + j * mu_r**2) for i in (0, 1) for j in (0, 1)]
    t = min(proposals, key=lambda t: abs(t - x_n - mu * max(x_t - mu * t, 0.0) - mu_r * max(x_r - mu_r * t, 0.0)))
    t = max(t, 0.0)
    return np.concatenate([[t], onto_disk(x[1 : 1 + disk], mu * t), onto_disk(x[1 + disk :], mu_r * t)])


def onto_polar_cone(x, mu):
    """On ``{mu ||x_T|| <= -x_N}``, the polar of ``{||x_T|| <= mu x_N}``: inside, at the apex, or on the ray ``(-mu, x_T / ||x_T||)``."""
    size = np.linalg.norm(x[1:])
    if mu * size <= -x[0]:
        return x
    if size <= mu * x[0]:
        return np.zeros(len(x))
    return (size - mu * x[0]) / (1 + mu**2) * np.concatenate([[-mu], x[1:] / size])


def natural_map(p, r, rho=1.0):
    """``r - P_K(r - rho uhat)``; ``rho u`` for equations."""
    u, F = p.velocity(r), np.empty(len(r))
    for at, _, _, mu, mu_r, disk in p.contacts():
        F[at] = rho * u[at] if disk == EQUATION else r[at] - onto_cone(r[at] - rho * hat(u[at], mu, mu_r, disk), mu, mu_r, disk)
    return F


def residual(p, r):
    """res_q."""
    return np.linalg.norm(natural_map(p, r)) / (np.linalg.norm(p.q) or 1.0)


def scales(p, r, own=False):
    """(nc d,) largest entries in rows of W, of N, T and R of each contact; own: of its diagonal block alone."""
    W, n, d = abs(np.asarray(p.W, np.longdouble)), len(p.disk), p.d
    near = W * np.kron(np.eye(n), np.ones((d, d))) if own else W
    rows, columns, largest = near.max(axis=1), near.max(axis=0), W.max()
    least = abs(p.q).max() / abs(r).max() if p.q.any() and r.any() else 1.0
    result = np.ones(len(p.q), np.longdouble)
    for c, disk in enumerate(p.disk):
        split = 1 + max(disk, 0)
        for first, last in ((0, 1), (1, split), (split, d)):
            part = slice(c * d + first, c * d + last)
            if disk != EQUATION and last > first:
                result[part] = next(x for x in (rows[part].max(), columns[part].max() * (not own), largest, least) if x > 0)
    return result


def merit(p, r, own=False):
    """Velocity by which contacts miss their laws, over ``||q||``, in extended precision."""
    W, q, r = (np.asarray(x, np.longdouble) for x in (p.W, p.q, r))
    u, D, F = W @ r + q, scales(p, r, own), []
    for c, (disk, mu) in enumerate(zip(p.disk, np.asarray(p.mu, np.longdouble), strict=True)):
        at, split = c * p.d, c * p.d + 1 + max(disk, 0)
        if disk == EQUATION:
            F += list(u[at : at + p.d])
            continue
        F.append(min(D[at] * r[at], u[at]))
        for m, part in ((mu[0], slice(at + 1, split)), (mu[1], slice(split, at + p.d))):
            y = D[part] * r[part] - u[part]
            F += list(D[part] * r[part] - onto_disk(y, (m * D[part][:1].sum() * max(r[at], 0))))
    size = np.sqrt(np.sum(q**2)) if q.any() else abs(W).max() * abs(r).max()
    return float(np.sqrt(np.sum(np.array(F) ** 2)) / size) if size > 0 else 0.0


def merit_rounding(p, r):
    """What rounding may make of the merit: of the sums in u, and of the disks."""
    size = np.linalg.norm(abs(p.W) @ abs(r) + abs(p.q)) * (len(r) + 4)
    reach = 1.0 + p.mu.max(initial=0.0)
    size += 8 * reach * np.linalg.norm(scales(p, r).astype(float) * np.repeat(np.linalg.norm(r.reshape(p.n, -1), axis=1), p.d))
    return 4 * EPSILON * size / (np.linalg.norm(p.q) or 1.0)


def rounding(p, r):
    """What rounding may make of res_q: of the sums in u, each of as many terms as W has columns, of r, and of the projection."""
    size = np.linalg.norm(abs(p.W) @ abs(r) + abs(p.q)) * (len(r) + 4) + 8 * np.linalg.norm(r)
    return 4 * EPSILON * size / (np.linalg.norm(p.q) or 1.0)


def force_distance(p):
    """Bound of ``||r - r*|| / ||natural map of r||`` where ``r -> u + s(u)`` is strongly monotone: small mu; infinity else.

    The map is Lipschitz with L, and monotone with m; ``||r - r*|| <= (1 + L) / m ||r - P(r - F(r))||``.
    """
    size, weight = np.linalg.norm(p.W, 2), np.hypot(*p.mu.T).max(initial=0.0)
    m = np.linalg.eigvalsh(p.W + p.W.T)[0] / 2 - weight * size
    return (1 + size * (1 + weight)) / m if m > 0 else np.inf


# ---------------------------------------------------------------------------------------------------------------------- problems

FAMILIES = ("unique", "definite", "unsymmetric", "redundant")


def draw_contacts(family, d, disk, n, seed, frictionless=0.2):
    """n contacts in a chain of bodies, some without friction.

    unique: mu so small that r is; definite: mu up to 0.8; unsymmetric: some skew part in the blocks; redundant: W = H^T M^-1 H with
    fewer degrees of freedom than rows, and a motion that opens all contacts, so that there is a solution.
    """
    rng = np.random.default_rng(seed)
    rows = d * n
    M = np.diag(10.0 ** rng.uniform(-0.3, 0.3, size=(n + 1) * d))
    H = np.zeros(((n + 1) * d, rows))
    for c in range(n):
        for body, sign in ((c, 1.0), (c + 1, -1.0)):
            H[body * d : body * d + d, c * d : c * d + d] = sign * (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    v_free = rng.normal(size=len(H))
    normal = np.arange(rows) % d == 0
    if family == "redundant":
        H, M, v_free = H[: max(rows // 2, 2)], M[: max(rows // 2, 2), : max(rows // 2, 2)], v_free[: max(rows // 2, 2)]
        up = rng.normal(size=len(H))
        up /= np.linalg.norm(up)
        H += np.outer(up, normal - up @ H)  # H^T up = e_N
        v_free -= up * rng.uniform(0.5, 2.0)
    W = H.T @ np.linalg.inv(M) @ H
    q = H.T @ v_free - (0.0 if family == "redundant" else 0.7) * normal
    if family == "unsymmetric":
        for c in range(n):
            k = slice(c * d, c * d + d)
            skew = rng.normal(size=(d, d))
            W[k, k] += 0.05 * (skew - skew.T)
    W = W if family == "unsymmetric" else (W + W.T) / 2
    if family == "unique":
        W += 0.5 * np.eye(rows) * np.trace(W) / rows
    mu = rng.uniform(0.05, 0.8, size=(n, 2)) * (rng.uniform(size=(n, 2)) >= frictionless) * [1, disk < d - 1]
    if family == "unique":
        eigenvalues = np.linalg.eigvalsh(W)
        mu *= 0.5 * eigenvalues[0] / eigenvalues[-1]
    return Drawn(d, np.full(n, disk), mu, W, q, family)


# ---------------------------------------------------------------------------------------------------------------------- one contact

_ROOM = 1e-7  # what may miss an inequality, relative to its terms: the edge between two pieces belongs to both


def solve_in_plane(mu, W, q):
    """All (piece, r) that fulfil the law of one contact in the plane."""
    room, solutions = _ROOM * np.linalg.norm(q), []
    if q[0] >= 0:
        return [("open", np.zeros(2))]
    r = np.linalg.solve(W, -q)
    if abs(r[1]) <= mu * r[0] + _ROOM * np.linalg.norm(r):
        solutions.append(("stick", r))
    for side in (-1, 1):
        divisor = W[0] @ [1, side * mu]
        if divisor > 0:
            r = -q[0] / divisor * np.array([1, side * mu])
            if side * (W[1] @ r + q[1]) <= room + _ROOM * abs(W[1]) @ abs(r) or mu == 0:
                solutions.append(("slide", r))
    return solutions


def solve_in_space(mu, W, q):
    """All (piece, r) that fulfil the law of one contact in space: sliding along t by the real roots of a quartic in tan(θ/2).

    ``r = -q_N / D (1, mu t)`` with ``D = W_NN + mu W_NT t``; ``D t⊥ u_T = t⊥ a + t⊥ G t`` vanishes, with ``a = W_NN q_T - q_N W_TN`` and
    ``G = mu (q_T W_NT - q_N W_TT)``.
    """
    if q[0] >= 0:
        return [("open", np.zeros(3))]
    if mu == 0:
        return [("slide", np.array([-q[0] / W[0, 0], 0, 0]))]
    solutions, r = [], np.linalg.solve(W, -q)
    if np.linalg.norm(r[1:]) <= mu * r[0] + _ROOM * np.linalg.norm(r):
        solutions.append(("stick", r))
    a, G = W[0, 0] * q[1:] - q[0] * W[1:, 0], mu * (np.outer(q[1:], W[0, 1:]) - q[0] * W[1:, 1:])
    A, B, C, D, E = G[1, 0], -G[0, 1], G[1, 1] - G[0, 0], -a[0], a[1]
    x = np.roots([A - E, 2 * (D - C), 4 * B - 2 * A, 2 * (C + D), A + E])
    x = x[abs(x.imag) <= 1e-5 * (1 + abs(x))].real
    for t in [np.array([1 - s * s, 2 * s]) / (1 + s * s) for s in x] + [np.array([-1.0, 0.0])]:
        divisor = W[0, 0] + mu * W[0, 1:] @ t
        if divisor <= 0:
            continue
        r = -q[0] / divisor * np.r_[1, mu * t]
        u, size = W[1:] @ r + q[1:], np.linalg.norm(abs(W[1:]) @ abs(r) + abs(q[1:]))
        if abs(u @ [-t[1], t[0]]) <= 1e-6 * size and t @ u <= _ROOM * size:
            solutions.append(("slide", r))
    return solutions


def solve_one(W, q, mu, mu_r, disk):
    """r of one contact where it is unique; with rolling friction by projections until they rest."""
    d = len(q)
    if disk == d - 1:
        return (solve_in_plane if d == 2 else solve_in_space)(mu, W, q)[0][1]
    r, rho = np.zeros(d), 1.0 / np.linalg.norm(W, 2)
    for _ in range(5000):
        last, r = r, onto_cone(r - rho * hat(W @ r + q, mu, mu_r, disk), mu, mu_r, disk)
        if np.linalg.norm(r - last) <= 1e-15 * np.linalg.norm(r):
            break
    return r


def from_blocks(row, column, W):
    """Dense matrix of rows of d × d blocks."""
    n, d = len(row) - 1, W.shape[1]
    dense = np.zeros((n, d, n, d))
    for i in range(n):
        for k in range(row[i], row[i + 1]):
            dense[i, :, column[k]] = W[k]
    return dense.reshape(n * d, n * d)


def solve_one_frozen(W, q, mu, mu_r, disk):
    """r of one contact whose slip is in q_N: the minimum of ``r W r / 2 + q r`` over the cone, by projections until they rest."""
    r, rho = np.zeros(len(q)), 1.0 / np.linalg.norm(W, 2)
    for _ in range(20_000):
        last, r = r, onto_cone(r - rho * (W @ r + q), mu, mu_r, disk)
        if np.linalg.norm(r - last) <= 1e-16 * np.linalg.norm(r):
            break
    return r


def natural_map_frozen(p, r, slip, rho=1.0):
    """``r - P_K(r - rho (u + s e_N))``; ``rho u`` for equations."""
    u, F = p.velocity(r), np.empty(len(r))
    for (at, _, _, mu, mu_r, disk), s in zip(p.contacts(), slip, strict=True):
        w = u[at] + s * np.eye(p.d)[0]
        F[at] = rho * u[at] if disk == EQUATION else r[at] - onto_cone(r[at] - rho * w, mu, mu_r, disk)
    return F
