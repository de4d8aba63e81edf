"""Slow twins of the solvers in plain NumPy: the merit, all bases, the textbook's pivoting and sweeps. Imports no kernel."""

import itertools

import numpy as np


def natural(M, q, z, equation):
    """``min(z, w)``, and w on the rows that are equations: zero at solutions and nowhere else."""
    w = M @ z + q
    return np.where(equation, w, np.minimum(z, w))


def merit(M, q, z, equation):
    """``||natural|| / (1 + ||q||)``."""
    return np.linalg.norm(natural(M, q, z, equation)) / (1 + np.linalg.norm(q))


def rounding(M, q, z):
    """What recomputing w in another order may change, by row."""
    return (len(q) + 2) * np.finfo(float).eps * (abs(M) @ abs(z) + abs(q))


def solve_by_enumeration(M, q, equation, tol=1e-9):
    """The first basis whose z and w have the right signs; least squares where the basis is singular; None if there is none."""
    n = len(q)
    for chosen in itertools.product([False, True], repeat=n):
        basis = np.array(chosen, bool)
        if (equation & ~basis).any():
            continue
        z = np.zeros(n)
        z[basis] = np.linalg.lstsq(M[np.ix_(basis, basis)], -q[basis], rcond=None)[0]
        z = np.where(equation, z, np.maximum(z, 0.0))
        if merit(M, q, z, equation) <= tol:
            return z
    return None


def solve_by_lemke(M, q, limit=1000):
    """Cottle, Pang, Stone, algorithm 4.4.1, with lexicographic ties; (z, True), or (None, False) on a ray. No equations."""
    n = len(q)
    if (q >= 0).all():
        return np.zeros(n), True
    T = np.column_stack([np.eye(n), -M, -np.ones(n), q])
    basis = list(range(n))

    def smallest(rows, column):
        return min(rows, key=lambda i: [round(x, 10) for x in np.r_[T[i, -1], T[i, :n]] / column[i]])

    def pivot(r, c):
        T[r] /= T[r, c]
        for i in range(n):
            if i != r:
                T[i] -= T[i, c] * T[r]
        leaving, basis[r] = basis[r], c
        return leaving

    leaving = pivot(smallest(np.flatnonzero(q < 0), np.ones(n)), 2 * n)
    for _ in range(limit):
        entering = leaving + n if leaving < n else leaving - n
        rows = np.flatnonzero(T[:, entering] > 1e-11)
        if rows.size == 0:
            return None, False
        leaving = pivot(smallest(rows, T[:, entering]), entering)
        if leaving == 2 * n:
            z = np.zeros(2 * n + 1)
            z[basis] = T[:, -1]
            return z[n : 2 * n], True
    raise RuntimeError("cycle")


def solve_by_sweeps(M, q, equation, n_sweeps):
    """Projected Gauss–Seidel from z = 0."""
    z = np.zeros(len(q))
    for _ in range(n_sweeps):
        for i in range(len(q)):
            z_i = z[i] - (M[i] @ z + q[i]) / M[i, i]
            z[i] = z_i if equation[i] else max(z_i, 0.0)
    return z


def distance_bound(M):
    """c with ``|z - solution|_inf <= c |min(z, w)|_inf`` for positive definite M.

    Mathias and Pang, Linear Algebra and its Applications 132 (1990) 123–136: ``(1 + |M|_inf) / min_x max_i x_i (M x)_i``, |x|_inf = 1;
    the mean over i of ``x_i (M x)_i`` is at least the least eigenvalue of the symmetric part over n.
    """
    return (1 + abs(M).sum(axis=1).max()) * len(M) / np.linalg.eigvalsh((M + M.T) / 2)[0]
