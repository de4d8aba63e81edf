"""Slow twins of the solvers in plain NumPy: the merit, all bases, the textbook's pivoting, sweeps and splittings. Imports no kernel."""

import itertools

import numpy as np


def natural(M, q, z, lower, upper):
    """``z - P_[lower,upper](z - w)``, as a median so that small w survive beside large z: zero at solutions and nowhere else."""
    return np.maximum(np.minimum(M @ z + q, z - lower), z - upper)


def merit(M, q, z, lower, upper):
    """``||natural|| / (1 + ||q||)``."""
    return np.linalg.norm(natural(M, q, z, lower, upper)) / (1 + np.linalg.norm(q))


def terms(M, q, z):
    """Sums of the magnitudes that cancel in w, by row."""
    return abs(M) @ abs(z) + abs(q)


def errors(M, q, z, lower, upper):
    """How far each w is from the sign that goes with the place of z: 0 inside the bounds, >= 0 at a lower one, <= 0 at an upper one."""
    w = M @ z + q
    return np.maximum(np.maximum(np.where(z < upper, -w, 0.0), np.where(z > lower, w, 0.0)), 0.0)


def relative_error(M, q, z, lower, upper):
    """The solvers' merit, where no z hides q: the norm of all errors relative to the terms of their rows."""
    wrong, size = errors(M, q, z, lower, upper), terms(M, q, z)
    return np.linalg.norm(wrong / np.where(wrong > 0, size, 1.0))


def worth(M, q, lower, upper, levels=8):
    """By row, q, or where that is 0 the largest term of z that carry alone what other rows are worth, or are at their nearest bound."""
    bound = np.minimum(np.where(lower != 0.0, abs(lower), np.inf), np.where(upper != 0.0, abs(upper), np.inf))
    worth = abs(q)
    for _ in range(levels):
        known = (M != 0.0) & (worth != 0.0)[:, None]
        ask = np.where(known, worth[:, None] / np.where(M != 0.0, abs(M), 1.0), np.inf).min(axis=0)
        size = np.where(np.isfinite(ask), ask, np.where(np.isfinite(bound), bound, 0.0))
        worth = np.where(worth == 0.0, (abs(M) * size).max(axis=1), worth)
    return worth


def rounding(M, q, z):
    """What recomputing w in another order may change, by row."""
    return (len(q) + 2) * np.finfo(float).eps * (abs(M) @ abs(z) + abs(q))


def sides(lower, upper):
    """Where a z may be: None is between its bounds."""
    if lower == upper:
        return [lower]
    return [None, *[bound for bound in (lower, upper) if np.isfinite(bound)]] if np.isfinite([lower, upper]).any() else [None]


def solve_by_enumeration(M, q, lower, upper, tol=1e-9):
    """The first basis whose z and w have the right signs; least squares where the basis is singular; None if there is none."""
    for chosen in itertools.product(*map(sides, lower, upper)):
        basis = np.array([side is None for side in chosen], bool)
        z = np.array([0.0 if side is None else side for side in chosen])
        z[basis] = np.linalg.lstsq(M[np.ix_(basis, basis)], -(q + M @ z)[basis], rcond=None)[0]
        z = np.clip(z, lower, upper)
        if merit(M, q, z, lower, upper) <= tol:
            return z
    return None


def solve_by_lemke(M, q, limit=1000):
    """Cottle, Pang, Stone, algorithm 4.4.1, with lexicographic ties; (z, True), or (None, False) on a ray. LCP only."""
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


def basic_solution(M, q, lower, upper, side):
    """z and w with z at the bounds that side (-1, 0, 1) names and ``w = 0`` elsewhere."""
    z = np.where(side < 0, lower, np.where(side > 0, upper, 0.0))
    basis = side == 0
    z[basis] = np.linalg.solve(M[np.ix_(basis, basis)], -(q + M @ z)[basis])
    return z, np.where(basis, 0.0, M @ z + q)


def change_sides(z, w, lower, upper, side, changed):
    """Put the chosen ones of those with wrong signs on the other side."""
    side = side.copy()
    for i in changed:
        side[i] = (-1 if z[i] < lower[i] else 1) if side[i] == 0 else 0
    return side


def wrong_signs(z, w, lower, upper, side):
    """Indices whose z or w says that they belong elsewhere."""
    outside = (side == 0) & ((z < lower) | (z > upper))
    pulling = ((side < 0) & (w < 0)) | ((side > 0) & (w > 0))
    return np.flatnonzero((outside | pulling) & (lower < upper))


def solve_by_least_index(M, q, lower, upper, limit=5000):
    """Murty's rule: (z, number of exchanges). For P-matrices."""
    side = np.where(np.isfinite(lower), -1, np.where(np.isfinite(upper), 1, 0))
    for n_iter in range(limit):
        z, w = basic_solution(M, q, lower, upper, side)
        wrong = wrong_signs(z, w, lower, upper, side)
        if wrong.size == 0:
            return z, n_iter
        side = change_sides(z, w, lower, upper, side, wrong[:1])
    raise RuntimeError("limit")


def solve_by_blocks(M, q, lower, upper, limit=10):
    """Newton-min from all between the bounds: (z, number of linear systems), or None where exchanging all does not settle it."""
    side = np.where(lower == upper, -1, 0)
    for n_iter in range(1, limit):
        z, w = basic_solution(M, q, lower, upper, side)
        wrong = wrong_signs(z, w, lower, upper, side)
        if wrong.size == 0:
            return z, n_iter
        side = change_sides(z, w, lower, upper, side, wrong)
    return None


def solve_by_sweeps(M, q, lower, upper, n_sweeps, omega=1.0, rho=0.0):
    """Projected Gauss–Seidel, over-relaxed by omega, regularised by rho, from z = 0."""
    z = np.clip(np.zeros(len(q)), lower, upper)
    for _ in range(n_sweeps):
        for i in range(len(q)):
            z[i] = np.clip(z[i] - omega * (M[i] @ z + q[i]) / (M[i, i] + rho * abs(M[i]).max()), lower[i], upper[i])
    return z


def solve_by_block_sweeps(M, q, lower, upper, n_sweeps, size):
    """Block Gauss–Seidel from z = 0, each block solved exactly."""
    z = np.zeros(len(q))
    for _ in range(n_sweeps):
        for first in range(0, len(q), size):
            B = np.arange(first, min(first + size, len(q)))
            rest = q[B] + M[B] @ z - M[np.ix_(B, B)] @ z[B]
            z[B] = solve_by_enumeration(M[np.ix_(B, B)], rest, lower[B], upper[B])
    return z


def solve_by_splitting(M, q, lower, upper, n_iter):
    """Douglas–Rachford with the resolvents of the normal cone and of M in the metric K = |diagonal|, relaxed by 1.6, from 0."""
    K = np.diag(abs(np.diag(M)))
    a = np.zeros(len(q))
    for _ in range(n_iter):
        z = np.clip(a, lower, upper)
        a += 1.6 * (np.linalg.solve(M + K, K @ (2 * z - a) - q) - z)
    return z


def solve_by_proximal_steps(M, q, lower, upper, n_steps, shift=1e-7):
    """Proximal points from 0: ``M + S`` and ``q - S z``, each solved by enumeration."""
    S, z = shift * np.diag(np.diag(M)), np.zeros(len(q))
    for _ in range(n_steps):
        z = solve_by_enumeration(M + S, q - S @ z, lower, upper, tol=1e-12)
    return z


def distance_bound(M):
    """c with ``||z - solution|| <= c ||natural||``, for a positive definite M and any box.

    Facchinei, Pang, Finite-Dimensional Variational Inequalities, theorem 2.3.3: ``(1 + L) / mu`` with L = ||M|| and mu the least
    eigenvalue of the symmetric part.
    """
    return (1 + np.linalg.norm(M, 2)) / np.linalg.eigvalsh((M + M.T) / 2)[0]
