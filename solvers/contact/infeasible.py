"""Proofs that a contact problem has no solution, from a theorem of alternatives (Farkas) that holds for Coulomb's law.

Whatever slides or sticks, a solution has r in K (in R^d for an equation), ``u_N >= 0`` (``u = 0`` for an equation) and ``u = W r + q``.
Let s have ``s_N >= 0``, ``s_T = s_R = 0`` for contacts, and any sign for equations. Then ``s u >= 0``, but

    s u = s q + g r <= s q + sum_c gain_c r_N,    g = W^T s,    gain_c = (g_N + mu ||g_T|| + mu_r ||g_R||)_+    (||g|| ||r|| for equations)

so that there is no solution if ``s q < 0`` and no gain. The associated law, with u in K*, would let s have tangential parts; Coulomb's does
not. What it says more is used where a contact must slide: if u_T has a direction t whatever r is, then ``r_T = -mu r_N t``, and
``||g_T||`` becomes ``-g_T t``.

A gain that is not 0 but small says that r is large: it proves that ``D_c r_N >= BEYOND max |q|`` for some contact, with D the scale of
`nsds.solvers.contact.signature.merit`. The rounding of such an r is more than any tolerance.
"""

import numpy as np

BEYOND = 1e11
LARGEST = 300  # contacts of problems of which a proof is sought
_BY_MARGIN = 60  # contacts up to which linear programming is tried
_SUPPORT = 1e-8  # parts of s, relative to the largest, that are rounding
_RANK = 1e-11  # singular values, relative to the largest, that are 0
_FACETS = 16  # directions that stand for ||g_T|| in space, where s is sought
_EPSILON = np.finfo(np.longdouble).eps


class _Relaxed:
    """The conditions on r and u that every solution fulfils, by dense matrices."""

    def __init__(self, problem):
        disk, mu, row, column, W, q = problem
        self.d, self.n = problem.d, disk.size
        d, n = self.d, self.n
        self.W = np.zeros((n, d, n, d))
        i = np.repeat(np.arange(n), np.diff(row))
        self.W[i, :, column] = W.reshape(-1, d, d)
        self.W = self.W.reshape(n * d, n * d)
        self.q, self.disk, self.mu = q, disk, mu.reshape(n, 2)
        self.equation = disk < 0
        self.rows = np.flatnonzero(np.repeat(self.equation, d) | (np.arange(n * d) % d == 0))  # where s may differ from 0
        self.free = np.repeat(self.equation, d)[self.rows]
        largest = abs(self.W).max(axis=1)
        self.scale = np.where(largest > 0.0, largest, abs(self.W).max(axis=0))
        self.slip = np.full((n, d - 1), np.nan)
        self._find_slip()

    def gain(self, g, noise):
        """(..., n, d): what a unit of r_N, or of each component of an equation's r, adds to ``g r`` at most; g and noise (..., n d)."""
        d, n = self.d, self.n
        g, noise = g.reshape(*g.shape[:-1], n, d), noise.reshape(*g.shape[:-1], n, d)
        result = np.zeros_like(g)
        result[..., self.equation, :] = abs(g)[..., self.equation, :] + noise[..., self.equation, :]
        normal = g[..., 0] + noise[..., 0]
        tangent = (np.arange(1, d) <= np.maximum(self.disk, 0)[:, None]).astype(g.dtype)
        for part, mu in ((tangent, self.mu[:, 0]), (1.0 - tangent, self.mu[:, 1])):
            size = np.sqrt((part * g[..., 1:] ** 2).sum(axis=-1))
            known = np.isfinite(self.slip[:, 0]) & (part.sum(axis=1) > 0) & (part is tangent)
            along = -(g[..., 1:] * part * np.where(known[:, None], self.slip, 0.0)).sum(axis=-1)
            normal = normal + mu * (np.where(known, along, size) + (part * noise[..., 1:]).sum(axis=-1))
        result[..., ~self.equation, 0] = np.maximum(normal, 0.0)[..., ~self.equation]
        return result

    def _find_slip(self):
        """Directions of u_T that no r changes: ``u_T = q_T``, and in the plane where all forces push to the side of q_T."""
        for c in np.flatnonzero((self.disk > 0) & (self.mu[:, 0] > 0.0)):
            at = c * self.d + 1 + np.arange(self.disk[c])
            size = np.linalg.norm(self.q[at])
            if not size > 0.0:
                continue
            moved = (self.W[at] != 0.0).any()
            if moved and self.disk[c] == 1:
                g = -np.sign(self.q[at]) * self.W[at[0]]
                moved = self.gain(g, 1e-12 * abs(g)).any()
            if not moved:
                self.slip[c, : self.disk[c]] = self.q[at] / size

    def proves(self, s):
        """Whether s (rows,) proves that there is no solution, rounding included."""
        s = np.asarray(s, dtype=np.longdouble)
        if not np.isfinite(s).all() or (s[~self.free] < 0.0).any():
            return False
        W, q = self.W[self.rows].astype(np.longdouble), self.q[self.rows].astype(np.longdouble)
        count = s.size + 2
        value = q @ s + count * _EPSILON * (abs(q) @ abs(s))
        gain = self.gain(W.T @ s, count * _EPSILON * (abs(W).T @ abs(s))).reshape(-1)
        r = np.divide(gain, self.scale, out=np.full(gain.shape, np.inf, np.longdouble), where=self.scale > 0.0)
        r[gain == 0.0] = 0.0
        return bool(value + BEYOND * abs(self.q).max() * r.sum() < 0.0)


def is_infeasible(problem, r):
    """Whether a `Problem`, which a method left with r, is proved to have no solution."""
    if problem.disk.size > LARGEST or not np.isfinite(problem.W).all() or not problem.q.any():
        return False
    relaxed = _Relaxed(problem)
    wanting = problem.q[relaxed.rows]
    if not ((wanting < 0.0) | (relaxed.free & (wanting != 0.0))).any():  # no impulses fulfil the relaxed conditions
        return False
    return any(relaxed.proves(s) for s in _candidates(relaxed, r))


def _candidates(relaxed, r):
    """Vectors s that may be a proof, the cheap ones first."""
    W, q, rows = relaxed.W[relaxed.rows], relaxed.q[relaxed.rows], relaxed.rows
    size, unit = rows.size, np.eye(rows.size)
    for sign in (1.0, -1.0):
        g = sign * W
        hopeful = (relaxed.gain(g, np.zeros_like(g)).reshape(size, -1) <= 1e-12 * abs(g).max(initial=0.0)).all(axis=1)
        for i in np.flatnonzero(hopeful & (sign * q < 0.0) & (relaxed.free | (sign > 0.0))):
            yield sign * unit[i]
    grown = np.where(relaxed.free, r[rows], np.maximum(r[rows], 0.0))
    if np.isfinite(grown).all():
        yield from _null_vectors(relaxed, W, q, grown)
    yield from _null_vectors(relaxed, W, q, _least_squares(relaxed, W, q))
    s = _by_margin(relaxed, W, q) if relaxed.n <= _BY_MARGIN else None
    if s is not None:
        yield s


def _null_vectors(relaxed, W, q, s):
    """s on its support, and its part that ``W^T s = 0`` holds for to the last digits."""
    if not s.any():
        return
    weight = 1.0 / np.sqrt(np.where(relaxed.scale[relaxed.rows] > 0.0, relaxed.scale[relaxed.rows], 1.0))
    kept = np.flatnonzero(abs(s / weight) > _SUPPORT * abs(s / weight).max())
    U, sizes, _ = np.linalg.svd(weight[kept, None] * W[kept], full_matrices=True)
    null = U[:, np.sum(sizes > _RANK * max(sizes[0], 1e-300)) :] if sizes.size else U
    result = np.zeros_like(s)
    result[kept] = weight[kept] * (null @ (null.T @ (s[kept] / weight[kept])))
    result[~relaxed.free] = np.where(abs(result) > 1e-14 * abs(result).max(), result, 0.0)[~relaxed.free]
    if result.any():
        yield result


def _least_squares(relaxed, W, q):
    """``s_N >= 0`` that brings ``W^T s = 0``, ``s q = -1`` about, as well as it can: complete where W is symmetric and semidefinite."""
    from scipy.optimize import nnls

    weight = 1.0 / np.sqrt(np.where(relaxed.scale[relaxed.rows] > 0.0, relaxed.scale[relaxed.rows], 1.0))
    size = abs(weight * q).max()
    if not size > 0.0:
        return np.zeros_like(q)
    A = np.concatenate([(weight[:, None] * W).T / max(abs(weight[:, None] * W).max(), 1e-300), (weight * q / size)[None]])
    A = np.concatenate([A, -A[:, relaxed.free]], axis=1)
    target = np.zeros(A.shape[0])
    target[-1] = -1.0
    try:
        s, _ = nnls(A, target)
    except RuntimeError:  # too many iterations
        return np.zeros_like(q)
    both = s[: q.size].copy()
    both[relaxed.free] -= s[q.size :]
    return weight * both


def _by_margin(relaxed, W, q):
    """s with ``g_N + mu ||g_T|| + mu_r ||g_R||`` as far below 0 as can be, ``s q = -1``, by linear programming; None: there is none."""
    from scipy.optimize import linprog

    if relaxed.equation.any():  # which ask for g = 0, without a margin
        return None
    d, n = relaxed.d, relaxed.n
    columns = (W / np.where(relaxed.scale > 0.0, relaxed.scale, 1.0)).T.reshape(n, d, q.size)
    inequalities = []
    for c in range(n):
        split = 1 + relaxed.disk[c]
        sides = [_directions(relaxed.disk[c], relaxed.mu[c, 0]), _directions(d - split, relaxed.mu[c, 1])]
        if np.isfinite(relaxed.slip[c, 0]):
            sides[0] = -relaxed.mu[c, 0] * relaxed.slip[c : c + 1, : relaxed.disk[c]]
        for a in sides[0]:
            inequalities += [columns[c, 0] + a @ columns[c, 1:split] + b @ columns[c, split:] for b in sides[1]]
    A = np.column_stack([np.array(inequalities), np.ones(len(inequalities))])
    size = abs(q).max()
    found = linprog(
        np.r_[np.zeros(q.size), -1.0], A, np.zeros(len(A)), np.r_[q / size, 0.0][None], [-1.0], [(0.0, None)] * q.size + [(None, 1.0)]
    )
    return found.x[:-1] if found.x is not None else None


def _directions(size, mu):
    """Vectors a with ``max a g >= mu ||g||``."""
    if not mu > 0.0 or size == 0:
        return np.zeros((1, size))
    if size != 2:
        return mu * np.sqrt(size) * np.concatenate([np.eye(size), -np.eye(size)])
    angle = 2.0 * np.pi * np.arange(_FACETS) / _FACETS
    return mu / np.cos(np.pi / _FACETS) * np.column_stack([np.cos(angle), np.sin(angle)])
