"""Slow and obvious twins in plain NumPy: one dense matrix for everything, enumeration for the one-step problem. Imports no kernel."""

import itertools

import numpy as np

from tests.reference_solvers import sides, solve_by_enumeration


def moreau_jean(model, t0, h, n_steps, theta=0.5, gamma=0.5):
    """Moreau–Jean for one dense system: seed 001, summary of the linear case, line by line.

    model: dict with M, K, C, F (function of t), q, v, H, b, D, e, bilateral. With D, bilateral constraints are ``H q + b + D lambda = 0``
    with lambda a force, the others have D in ydot. Returns arrays t, q, v, y, ydot, lambda, active by rows.
    """
    M, K, C, F, H, b, D, e, bilateral = (model[key] for key in ("M", "K", "C", "F", "H", "b", "D", "e", "bilateral"))
    q, v = model["q"].copy(), model["v"].copy()
    m = H.shape[0]
    M_hat = M + h * theta * C + h**2 * theta**2 * K
    position = bilateral & D.any(axis=1)
    scale = np.where(position, 1 / (h * h * theta), 1.0)  # the unknown is h lambda, the equation y / (h theta)
    W = H @ np.linalg.solve(M_hat, H.T) + scale[:, None] * D
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
            free = np.where(position, (H @ (q + h * (1 - theta) * v) + b) / (h * theta) + H @ v_free, H @ v_free + e * ydot)
            lam[a] = solve_by_enumeration(W[np.ix_(a, a)], free[a], lower, np.full(a.size, np.inf), tol=1e-10)
        v_new = v_free + np.linalg.solve(M_hat, H.T @ lam)
        q = q + h * (theta * v_new + (1 - theta) * v)
        v = v_new
        lam = np.where(position, lam / h, lam)
        y, ydot = H @ q + b + position * (D @ lam), H @ v + ~position * (D @ lam)
        rows.append((t_new, q, v, y, ydot, lam, active))
    return [np.array(column) for column in zip(*rows, strict=True)]


def euler_moreau(model, t0, h, n_steps, theta=1.0, gamma=1.0, full=False, midpoint=False):
    """Euler–Moreau (seed 003, eqs 9.5–9.7) by brute force: for each choice of sides of lambda, Newton on all equations at once.

    model: dict with M, x, lower, upper and functions f(t, x), h(t, x, lam), g(t, x, lam). Returns arrays t, x, r, y, lambda by rows.
    """
    M, f, output, g, lower, upper = (model[key] for key in ("M", "f", "h", "g", "lower", "upper"))
    n, m = len(M), len(lower)
    full = full or midpoint
    x, lam = np.array(model["x"], float), np.zeros(m)
    r, y = g(t0, x, lam), output(t0, x, lam)
    rows = [(t0, x, r, y, lam)]
    last = None
    for k in range(n_steps):
        t, t_new = t0 + k * h, t0 + (k + 1) * h

        def equations(x_new, lam, t=t, t_new=t_new, x=x, r=r):
            at, t_at = (gamma * x_new + (1 - gamma) * x, t + gamma * h) if full else (x_new, t_new)
            smooth = f(t + theta * h, theta * x_new + (1 - theta) * x) if midpoint else theta * f(t_new, x_new) + (1 - theta) * f(t, x)
            push = g(t_at, at, lam) if full else gamma * g(t_at, at, lam) + (1 - gamma) * r
            return M @ (x_new - x) - h * (smooth + push), output(t_at, at, lam), g(t_at, at, lam)

        choices = list(itertools.product(*map(sides, lower, upper)))
        for chosen in [last, *choices] if last is not None else choices:
            free = np.array([side is None for side in chosen], bool)
            fixed = np.array([0.0 if side is None else side for side in chosen])

            def unknown(v, free=free, fixed=fixed, equations=equations):
                lam = fixed.copy()
                lam[free] = v[n:]
                residual, y, _ = equations(v[:n], lam)
                return np.concatenate([residual, y[free]])

            v = _newton(unknown, np.concatenate([x, lam[free]]))
            if v is None:
                continue
            new = fixed.copy()
            new[free] = v[n:]
            _, y, push = equations(v[:n], new)
            wrong = np.maximum(np.minimum(y, new - lower), new - upper)
            if abs(wrong).max(initial=0) < 1e-8:
                break
        else:
            raise AssertionError(f"no choice of sides solves step {k + 1}")
        x, lam, r, last = v[:n], new, push, chosen
        rows.append((t_new, x, r, y, lam))
    return [np.array(column) for column in zip(*rows, strict=True)]


def _newton(function, v):
    """Root by Newton's method with central differences, or None."""
    for _ in range(50):
        value = function(v)
        if abs(value).max(initial=0) < 1e-13:
            return v
        steps = 1e-6 * np.maximum(1, abs(v))
        columns = [(function(v + d) - function(v - d)) / (2 * s) for d, s in zip(np.diag(steps), steps, strict=True)]
        change = np.linalg.lstsq(np.array(columns).T, -value, rcond=None)[0]
        v = v + change
        if abs(change).max(initial=0) < 1e-15 * (1 + abs(v).max(initial=0)):
            break
    return v if abs(function(v)).max(initial=0) < 1e-9 else None
