"""A second family of box problems for `fuzz`: with structure, built from a solution or a proof, where that of `fuzz_boxes` is random.

``python -m tests.benchmarks.fuzz --generators structured``. Matrices of graphs, chains, towers and games, in exact integers where that can
be; q from a solution with prescribed active and degenerate parts, on a kink, or from a proof that there is none.
"""

import numpy as np
import scipy.linalg

from nsds import solvers
from tests.benchmarks.fuzz_boxes import Box, Constrained, Kind, judge_box, judge_constrained, solve_avi, solve_box, solve_qp

_LARGEST = 12


# ---------------------------------------------------------------------------------------------------------------------- matrices


def _size(rng, most=_LARGEST):
    return int(rng.integers(1, most + 1))


def incidence(rng, n_rows, n_bodies):
    """Rows of a chain, a tower on the ground, a ring, a star or a random graph: +1 for one body, -1 for another or for the ground."""
    H, kind = np.zeros((n_rows, n_bodies)), rng.integers(5)
    for i in range(n_rows):
        a = (i % n_bodies, i % n_bodies, i % n_bodies, 0, rng.integers(n_bodies))[kind]
        b = (i + 1, i - 1, (i + 1) % n_bodies, i, rng.integers(n_bodies + 1))[kind]
        H[i, a] += 1.0
        if 0 <= b < n_bodies and b != a:
            H[i, b] -= 1.0
    return H


def delassus(rng, n):
    """``H M^-1 H^T`` of bodies whose masses are 1 to 10^6, rows repeated and redundant."""
    n_bodies = int(rng.integers(1, n + 1))
    masses = 10.0 ** rng.choice([0, 0, 3, 6, -6], size=n_bodies) if rng.uniform() < 0.7 else 2.0 ** rng.integers(-20, 1, size=n_bodies)
    H = incidence(rng, n, n_bodies)
    return H @ (H / masses).T


def laplacian(rng, n):
    """Of a weighted graph, singular on every component; grounded in one node or nowhere."""
    H = incidence(rng, n + int(rng.integers(n + 1)), n)
    M = H.T @ (H * 10.0 ** rng.integers(-3, 4, size=(len(H), 1)))
    return M


def circulant(rng, n):
    """Of a short stencil."""
    stencil = np.zeros(n)
    stencil[: min(3, n)] = rng.integers(-2, 3, size=min(3, n))
    return scipy.linalg.circulant(stencil)


def toeplitz(rng, n):
    """Symmetric, triangular or any, of integers or decaying powers."""
    column, line = (np.round(3 * rng.normal(size=n) * rng.choice([1.0, 0.5]) ** np.arange(n)) for _ in range(2))
    return scipy.linalg.toeplitz(column, (column, np.zeros(n), line)[rng.integers(3)])


def isolated(rng, n):
    """Sparse: rows with a diagonal entry alone, rows of nothing, columns that nobody reads."""
    M = rng.integers(-2, 3, size=(n, n)) * (rng.uniform(size=(n, n)) < 1.5 / n) + np.diag(rng.integers(0, 3, size=n))
    M = M.astype(float)
    alone = rng.uniform(size=n) < 0.3
    M[alone] = np.diag(rng.integers(0, 2, size=n).astype(float))[alone]
    M[:, rng.uniform(size=n) < 0.1] = 0.0
    return M


def game(rng, n):
    """Two players: zero blocks on the diagonal."""
    M, k = np.zeros((n, n)), n // 2
    M[:k, k:], M[k:, :k] = rng.integers(0, 4, size=(k, n - k)), rng.integers(0, 4, size=(n - k, k))
    return M * (1.0 if rng.uniform() < 0.5 else -1.0)


def saddle(rng, n):
    """Optimality conditions of a programme whose rows depend on each other."""
    k = n // 2
    P, A = incidence(rng, n - k, n - k), rng.integers(-1, 2, size=(k, n - k)).astype(float)
    if k > 1 and rng.uniform() < 0.5:
        A[-1] = A[0] * rng.choice([1.0, -1.0, 2.0])
    return np.block([[P.T @ P * rng.integers(2), -A.T], [A, np.zeros((k, k))]])


def named(rng, n):
    """Pascal, Hilbert, Vandermonde, Hadamard, Kahan's triangle, exponentially many pivots."""
    i = np.arange(n, dtype=float)
    return (
        lambda: scipy.linalg.pascal(n).astype(float),
        lambda: scipy.linalg.invhilbert(min(n, 7)),
        lambda: np.vander(i + 1.0, increasing=True)[:, ::-1] / (n + 1.0) ** i,
        lambda: scipy.linalg.hadamard(2 ** min(3, int(np.log2(n)))).astype(float),
        lambda: np.triu(-0.8 * np.ones((n, n)), 1) + np.diag(0.6**i),
        lambda: np.tril(2.0 * np.ones((n, n)), -1) + np.eye(n),
    )[rng.integers(6)]()


def kronecker(rng, n):
    """A small matrix on a grid: the same contradiction many times over."""
    A = rng.integers(-1, 3, size=(2, 2)).astype(float)
    B = delassus(rng, max(1, n // 2))
    return np.kron(A + A.T if rng.uniform() < 0.5 else A, B)


def units_of_blocks(rng, n):
    """Blocks in units of 10^-8 to 10^8, with links from block to block as weak as rounding."""
    M, at, one = np.zeros((n, n)), 0, MATRICES[int(rng.integers(len(MATRICES) - 1))]
    while at < n:
        block = one(rng, int(rng.integers(1, n - at + 1)))[: n - at, : n - at]
        M[at : at + len(block), at : at + len(block)] = block * 10.0 ** rng.choice([-8, -4, 0, 4, 8])
        if at:
            M[at, at - 1] = 10.0 ** rng.uniform(-16, 0) * rng.choice([0, 1, -1])
        at += len(block)
    return M


MATRICES = (delassus, laplacian, circulant, toeplitz, isolated, game, saddle, named, kronecker, units_of_blocks)


# ---------------------------------------------------------------------------------------------------------------------- vectors and bounds


def bounds(rng, kind, n):
    """(lower, upper): boxes that are thin, equal, one-sided, far from 0 or as wide as 10^8."""
    lower, upper = np.zeros(n), np.full(n, np.inf)
    if kind == "mlcp":
        lower[rng.uniform(size=n) < rng.uniform()] = -np.inf
    elif kind == "relay":
        half = 10.0 ** rng.choice([-8.0, -3, 0, 0, 0, 3, 8], size=n)
        centre = rng.choice([0.0, 0, 0, 1, -1, 1e3], size=n)
        lower, upper = centre - half, centre + half
        choice = rng.integers(8, size=n)
        lower[choice == 0], upper[choice == 1] = -np.inf, np.inf
        lower[choice == 2], upper[choice == 2] = 0.0, np.inf
        upper[choice == 3] = lower[choice == 3]
        lower[choice == 4], upper[choice == 4] = -np.inf, np.inf
    return lower, upper


def planted(rng, lower, upper):
    """(z, w) that solve a problem: a part at bounds, of which a part with w = 0, and a part inside."""
    n, degenerate = len(lower), rng.choice([0.0, 0.3, 1.0])
    z = np.clip(rng.integers(-3, 4, size=n) * (1.0 if rng.uniform() < 0.7 else 10.0 ** rng.uniform(-3, 3)), lower, upper)
    side = rng.integers(3, size=n)
    z = np.where((side == 0) & np.isfinite(lower), lower, np.where((side == 1) & np.isfinite(upper), upper, z))
    w = rng.integers(1, 4, size=n) * 10.0 ** (rng.uniform(-8, 4) if rng.uniform() < 0.3 else 0.0)
    w = np.where(rng.uniform(size=n) < degenerate, 0.0, w)
    w = np.where((z == lower) & (z == upper), w * rng.choice([-1, 1], size=n), np.where(z == lower, w, np.where(z == upper, -w, 0.0)))
    return z, w


def contradicted(rng, M, lower, upper):
    """(M, q) with y > 0, ``y^T M = 0``: ``y^T q < 0`` proves that there is no point; a margin of 0 or more leaves one."""
    n = len(lower)
    asked = np.flatnonzero(np.isposinf(upper) & np.isfinite(lower))
    q = rng.integers(-3, 4, size=n).astype(float)
    if len(asked):
        of = rng.choice(asked, size=int(rng.integers(1, min(3, len(asked)) + 1)), replace=False)
        last, others = of[-1], of[:-1]
        y = rng.integers(1, 4, size=len(others)).astype(float)
        M, margin = M.copy(), rng.choice([-1.0, -1e-3, -1e-6, 0.0, 1e-6, 1.0])
        M[last] = -(y @ M[others]) if len(others) else 0.0
        q[last] = -(y @ q[others]) + margin
    return M, q


def _vector(rng, M, lower, upper):
    """(M, q) of a random choice."""
    n, choice = len(M), rng.integers(6)
    if choice < 3:
        z, w = planted(rng, lower, upper)
        return M, w - M @ z
    if choice == 3:
        return contradicted(rng, M, lower, upper)
    if choice == 4:  # gravity on everything, or on one
        return M, -np.ones(n) if rng.uniform() < 0.5 else -np.eye(n)[int(rng.integers(n))]
    return M, rng.integers(-1, 2, size=n) * 10.0 ** rng.choice([-8.0, 0, 8], size=n)


def in_units(rng, M, q, lower, upper):
    """The problem with z and w in units of 10^-8 or 10^8, or each row and column in its own."""
    n, choice = len(q), rng.integers(5)
    R = C = np.ones(n)
    if choice == 0:
        R, C = np.full(n, 10.0 ** rng.choice([-8, 8])), np.full(n, 10.0 ** rng.choice([-8, 8]))
    elif choice == 1:
        R, C = 10.0 ** rng.choice([-8.0, 0, 8], size=(2, n))
    return Box(R[:, None] * M * C, R * q, lower / C, upper / C)


def _box_generator(kind, matrix):
    def generator(rng):
        M = matrix(rng, _size(rng))
        lower, upper = bounds(rng, kind, len(M))
        return in_units(rng, *_vector(rng, M, lower, upper), lower, upper)

    return generator


def rectangular(rng):
    """Equations that repeat each other, or contradict each other by little, and unknowns under a mass matrix of a graph."""
    n_free, m = (int(x) for x in rng.integers(1, 4, size=2))
    M = delassus(rng, n_free + m)
    repeated = rng.integers(0, n_free, size=int(rng.integers(0, 3)))
    z = np.r_[rng.integers(-2, 3, size=n_free), np.maximum(rng.integers(-1, 2, size=m), 0)].astype(float)
    w = np.r_[np.zeros(n_free), np.where(z[n_free:] > 0, 0.0, rng.integers(0, 2, size=m))]
    q = w - M @ z
    factor = rng.integers(1, 3, size=len(repeated))
    M, q = np.vstack([factor[:, None] * M[repeated], M]), np.r_[factor * q[repeated] + (rng.uniform() < 0.3) * 1e-6, q]
    return Box(M, q, np.r_[np.full(n_free, -np.inf), np.zeros(m)], np.full(n_free + m, np.inf))


def _inequalities(rng, z, m):
    """(G, g): active, slack and degenerate in z, some repeated, in other units, sums of others, or against one that there is."""
    n = len(z)
    G = rng.integers(-2, 3, size=(m, n)).astype(float)
    g = G @ z - rng.integers(0, 3, size=m) * (rng.uniform(size=m) < 0.6)
    for i in range(1, m):
        choice, j, unit = rng.integers(6), int(rng.integers(i)), 2.0 ** rng.choice([-20, 0, 20])
        if choice == 0:
            G[i], g[i] = unit * G[j], unit * g[j]
        elif choice == 1:
            G[i], g[i] = G[:i].sum(axis=0), g[:i].sum()
        elif choice == 2:
            G[i], g[i] = -G[j], -g[j] + rng.choice([-1.0, -1e-3, 0, 0, 1e-6, 1e-3])
    return G, g


def _constrained_generator(kind, matrix):
    def generator(rng):
        M = matrix(rng, _size(rng, 6))
        n = len(M)
        if kind == "qp":
            H = np.round(M / (abs(M).max() or 1.0) * 3)[: int(rng.integers(n + 1))]
            M = H.T @ H
        m, k = int(rng.integers(0, 6)), int(rng.integers(0, 3)) if kind == "qp" else 0
        z = rng.integers(-2, 3, size=n).astype(float)
        G, g = _inequalities(rng, z, m)
        A = rng.integers(-1, 2, size=(k, n)).astype(float)
        if k == 2 and rng.uniform() < 0.5:
            A[1] = -2.0 * A[0]
        b = A @ z + (rng.uniform() < 0.15) * rng.choice([1.0, 1e-3]) * (np.arange(k) == 1)
        lower, upper = bounds(rng, "relay", n) if kind == "qp" and rng.uniform() < 0.5 else (np.full(n, -np.inf), np.full(n, np.inf))
        multipliers = rng.integers(0, 3, size=m) * (G @ z == g)
        q = G.T @ multipliers + A.T @ rng.integers(-1, 2, size=k) - M @ z
        if rng.uniform() < 0.3:  # a linear term that may fall without end
            q = rng.integers(-2, 3, size=n).astype(float)
        unit = 10.0 ** rng.choice([-8.0, 0, 0, 8])
        return Constrained(unit * M, unit * q, G, g, A, b, lower, upper)

    return generator


def _kinds():
    kinds = {
        kind: Kind(
            {matrix.__name__: _box_generator(kind, matrix) for matrix in MATRICES}, list(solvers.methods(kind)), solve_box, judge_box
        )
        for kind in ("lcp", "mlcp", "relay")
    }
    kinds["rect"] = Kind({"rectangular": rectangular}, list(solvers.methods("mlcp")), solve_box, judge_box)
    for kind, solve in (("avi", solve_avi), ("qp", solve_qp)):
        generators = {matrix.__name__: _constrained_generator(kind, matrix) for matrix in MATRICES}
        kinds[kind] = Kind(generators, [name for name in solvers.methods(kind) if name != "qp"], solve, judge_constrained)
    return kinds


KINDS = _kinds()
