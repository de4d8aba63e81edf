"""Hand-written kernels for single models: how fast the same arithmetic goes when nothing is general."""

import time

import numba
import numpy as np

from nsds.examples.cam_follower import cam_profile


@numba.njit
def _ball(n, h, e, M_inv, f, H, q, v, v_free, rows):
    for k in range(n):
        y = ydot = u = 0.0
        for i in range(3):
            y += H[i] * q[i]
            ydot += H[i] * v[i]
            v_free[i] = v[i]
            for j in range(3):
                v_free[i] += M_inv[i, j] * h * f[j]
        for i in range(3):
            u += H[i] * v_free[i]
        lam = 0.0
        if y + 0.5 * h * ydot <= 0:
            W = 0.0
            for i in range(3):
                for j in range(3):
                    W += H[i] * M_inv[i, j] * H[j]
            lam = max(0.0, -(u + e * ydot) / W)
        for i in range(3):
            new = v_free[i]
            for j in range(3):
                new += M_inv[i, j] * H[j] * lam
            q[i] += h * 0.5 * (v[i] + new)
            v[i] = new
            rows[k, 1 + i], rows[k, 4 + i] = q[i], v[i]
        rows[k, 0], rows[k, 7], rows[k, 8], rows[k, 9] = (k + 1) * h, y, ydot, lam


@numba.njit
def _cam(n, h, e, rpm, rows):
    m, stiffness = 1.221, 1430.8
    M_hat_inv = 1.0 / (m + 0.25 * h * h * stiffness)
    q, v = 0.1, 0.0
    c = cam_profile(0.0, rpm)
    force = -(m * c[2] + stiffness * c[0])
    for k in range(n):
        c = cam_profile((k + 1) * h, rpm)
        new_force = -(m * c[2] + stiffness * c[0])
        new = v + M_hat_inv * h * (0.5 * (force + new_force) - stiffness * (q + 0.5 * h * v))
        lam = 0.0
        if q + 0.5 * h * v <= 0 and new + e * v < 0:
            lam = -(new + e * v) / M_hat_inv
            new = -e * v
        q += 0.5 * h * (v + new)
        v, force = new, new_force
        rows[k, 0], rows[k, 1], rows[k, 2], rows[k, 3] = (k + 1) * h, q, v, lam


@numba.njit
def _column(n_steps, h, q, v, pivot, lam, rows):
    """All contacts closed: one tridiagonal solve a step."""
    n = q.size
    for k in range(n_steps):
        for i in range(n):
            v[i] -= 9.81 * h
        pivot[0], lam[0] = 1.0, -v[0]
        for i in range(1, n):
            m = -1.0 / pivot[i - 1]
            pivot[i] = 2.0 + m
            lam[i] = -(v[i] - v[i - 1]) - m * lam[i - 1]
        lam[n - 1] /= pivot[n - 1]
        for i in range(n - 2, -1, -1):
            lam[i] = (lam[i] + lam[i + 1]) / pivot[i]
        for i in range(n):
            v[i] += lam[i] - (lam[i + 1] if i + 1 < n else 0.0)
            q[i] += h * v[i]
            rows[k, 2 * i], rows[k, 2 * i + 1] = q[i], lam[i]


@numba.njit
def _bar(n_steps, h, K0, K1, lower, pivot, q, v, d, rows):
    """Tridiagonal product and solve: a step of the bar in free flight."""
    n = q.size
    for k in range(n_steps):
        for i in range(n):
            left = q[i - 1] + 0.5 * h * v[i - 1] if i else 0.0
            right = q[i + 1] + 0.5 * h * v[i + 1] if i + 1 < n else 0.0
            own = q[i] + 0.5 * h * v[i]
            d[i] = -h * (K0 * own * (1.0 if 0 < i < n - 1 else 0.5) + K1 * (left + right))
        for i in range(1, n):
            d[i] -= lower * d[i - 1]
        d[n - 1] *= pivot
        for i in range(n - 2, -1, -1):
            d[i] = d[i] * pivot - lower * d[i + 1]
        for i in range(n):
            q[i] += h * (v[i] + 0.5 * d[i])
            v[i] += d[i]
            rows[k, i], rows[k, n + i] = q[i], v[i]


def _calls():
    z = np.zeros
    yield "ball", 2000, lambda n: _ball(n, 5e-3, 0.9, np.diag([1, 1, 250.0]), np.array([-9.81, 0, 0]), np.array([1.0, 0, 0]),
                                        np.array([1.0, 0, 0]), z(3), z(3), np.empty((n, 10)))  # fmt: skip
    yield "cam", 10_000, lambda n: _cam(n, 1e-4, 0.8, 358.0, np.empty((n, 4)))
    for size in (10, 100, 1000):
        yield (
            f"column {size}",
            20_000 // size,
            lambda n, size=size: _column(n, 1e-3, z(size), z(size), z(size), z(size), np.empty((n, 2 * size))),
        )
    for size in (100, 1000):
        yield (
            f"bar {size}",
            600,
            lambda n, size=size: _bar(n, 1e-6, 2.0, -1.0, 0.1, 0.5, z(size), z(size), z(size), np.empty((n, 2 * size))),
        )


def measure(repeats):
    """ns per step of each floor, recorded, memory warm: {name: minimum over repeats}."""
    result = {}
    for name, n, call in _calls():
        call(2)
        times = []
        for _ in range(5 * repeats):
            began = time.perf_counter()
            call(n)
            times.append((time.perf_counter() - began) / n * 1e9)
        result[name] = min(times)
    return result
