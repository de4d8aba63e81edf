"""Slow twins of the nonlinear solvers: what a solution is, semismooth Newton and extragradient steps in plain NumPy."""

import numpy as np


def natural_residual(F, z, lower, upper):
    """Largest ``|z - P(z - F(z))|``."""
    return abs(z - np.clip(z - F, lower, upper)).max()


def onto_cones(x, sizes):
    """Nearest point of a product of second-order cones."""
    parts = []
    for part in np.split(np.array(x, float), np.cumsum(sizes)[:-1]):
        r = np.linalg.norm(part[1:])
        if r > part[0]:
            s = max(0.0, 0.5 * (part[0] + r))
            part = np.r_[s, part[1:] * (s / r if r > 0 else 0.0)]
        parts.append(part)
    return np.concatenate(parts)


def newton_fb(F, jac, z, n_iter):
    """Full steps of Newton's method for ``z + F - sqrt(z^2 + F^2) = 0``, away from kinks."""
    for _ in range(n_iter):
        f, r = F(z), np.hypot(z, F(z))
        H = np.diag(1 - z / r) + (1 - f / r)[:, None] * jac(z)
        z = z - np.linalg.solve(H, z + f - r)
    return z


def newton_min(F, jac, z, n_iter):
    """Full steps of Newton's method for ``min(z, F) = 0``."""
    for _ in range(n_iter):
        f = F(z)
        H = np.where((f < z)[:, None], jac(z), np.eye(z.size))
        z = z - np.linalg.solve(H, np.minimum(z, f))
    return z


def extragradient(F, project, z, rho, n_iter):
    """Korpelevich's method with a fixed step."""
    for _ in range(n_iter):
        y = project(z - rho * F(z))
        z = project(z - rho * F(y))
    return z
