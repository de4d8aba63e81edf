"""Slow and obvious twins in plain NumPy: one dense matrix for everything, enumeration for the one-step problem. Imports no kernel."""

import numpy as np

from tests.reference_solvers import solve_by_enumeration


def moreau_jean(model, t0, h, n_steps, theta=0.5, gamma=0.5):
    """Moreau–Jean for one dense system: seed 001, summary of the linear case, line by line.

    model: dict with M, K, C, F (function of t), q, v, H, b, D, e, bilateral. Returns arrays t, q, v, y, ydot, lambda, active by rows.
    """
    M, K, C, F, H, b, D, e, bilateral = (model[key] for key in ("M", "K", "C", "F", "H", "b", "D", "e", "bilateral"))
    q, v = model["q"].copy(), model["v"].copy()
    m = H.shape[0]
    M_hat = M + h * theta * C + h**2 * theta**2 * K
    W = H @ np.linalg.solve(M_hat, H.T) + D
    lam, active = np.zeros(m), np.zeros(m, int)
    y, ydot = H @ q + b, H @ v
    rows = [(t0, q, v, y, ydot, lam, active)]
    for k in range(n_steps):
        t, t_new = t0 + k * h, t0 + (k + 1) * h
        rhs = -h * C @ v - h * K @ q - h**2 * theta * K @ v + h * theta * F(t_new) + h * (1 - theta) * F(t)
        v_free = v + np.linalg.solve(M_hat, rhs)
        active = (bilateral | (y + gamma * h * ydot <= 0)).astype(int)
        a = np.flatnonzero(active)
        lam = np.zeros(m)
        if a.size:
            lower = np.where(bilateral[a], -np.inf, 0.0)
            lam[a] = solve_by_enumeration(W[np.ix_(a, a)], (H @ v_free + e * ydot)[a], lower, np.full(a.size, np.inf), tol=1e-10)
        v_new = v_free + np.linalg.solve(M_hat, H.T @ lam)
        q = q + h * (theta * v_new + (1 - theta) * v)
        v = v_new
        y, ydot = H @ q + b, H @ v + D @ lam
        rows.append((t_new, q, v, y, ydot, lam, active))
    return [np.array(column) for column in zip(*rows, strict=True)]
