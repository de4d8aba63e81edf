"""Hand-written kernels for single models: how fast the same arithmetic goes when nothing is general."""

import itertools
import time
from functools import cache

import numba
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import spsolve

from nsds.examples.cam_follower import cam_profile
from nsds.examples.diode_bridge import diode_bridge
from nsds.examples.impacting_bar import impacting_bar
from tests.benchmarks import flops
from tests.benchmarks.workloads import relay


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
def _bar(n_steps, h, K0, K1, lower, pivot, wall, q, v, d, rows):
    """Tridiagonal product and solve; ``wall`` is M_hat^-1 e_0, so that a contact costs one more pass."""
    n = q.size
    for k in range(n_steps):
        closed, v_wall = q[0] <= 0.0, v[0]
        for i in range(n):
            s = K0[i] * (q[i] + 0.5 * h * v[i])
            if i > 0:
                s += K1 * (q[i - 1] + 0.5 * h * v[i - 1])
            if i + 1 < n:
                s += K1 * (q[i + 1] + 0.5 * h * v[i + 1])
            d[i] = -h * s
        for i in range(1, n):
            d[i] -= lower[i] * d[i - 1]
        d[n - 1] *= pivot[n - 1]
        for i in range(n - 2, -1, -1):
            d[i] = d[i] * pivot[i] - lower[i + 1] * d[i + 1]
        lam = max(0.0, -(v_wall + d[0]) / wall[0]) if closed else 0.0
        if lam > 0.0:
            for i in range(n):
                d[i] += wall[i] * lam
        for i in range(n):
            q[i] += h * (v[i] + 0.5 * d[i])
            v[i] += d[i]
            rows[k, i], rows[k, n + i] = q[i], v[i]


def _bar_of(n, n_steps, h):
    """`_bar` of `nsds.examples.impacting_bar`: L D L^T of its iteration matrix."""
    bar = impacting_bar(n)["bar"]
    M, K = (csr_array(tuple(bar[name][key] for key in ("data", "indices", "indptr")), shape=(n, n)) for name in "MK")
    M_hat = M + h * h / 4 * K
    diagonal, off = M_hat.diagonal(), M_hat.diagonal(1)
    lower, pivot = np.zeros(n), np.zeros(n)
    pivot[0] = 1 / diagonal[0]
    for i in range(1, n):
        lower[i] = off[i - 1] * pivot[i - 1]
        pivot[i] = 1 / (diagonal[i] - lower[i] * off[i - 1])
    wall = spsolve(M_hat.tocsc(), np.eye(1, n)[0])
    rows, d = np.empty((n_steps, 2 * n)), np.empty(n)
    diagonal, off = K.diagonal(), float(K.diagonal(1)[0])
    return _bar, lambda: (n_steps, h, diagonal, off, lower, pivot, wall, bar["q"].copy(), bar["v"].copy(), d, rows)


@numba.njit
def _switched(n, h, Phi, G, C, M, S, shift, lower, upper, x, x_free, q, z, w, rows):
    """Any small switched circuit: z = shift + S q for each set of sides, the last one tried first."""
    last, m = 0, len(q)
    for k in range(n):
        for i in range(len(x)):
            x_free[i] = 0.0
            for j in range(len(x)):
                x_free[i] += Phi[i, j] * x[j]
        for i in range(m):
            q[i] = 0.0
            for j in range(len(x)):
                q[i] += C[i, j] * x_free[j]
        for trial in range(len(S)):
            right = True
            for i in range(m):
                z[i] = shift[last, i]
                for j in range(m):
                    z[i] += S[last, i, j] * q[j]
                right &= lower[i] <= z[i] <= upper[i]
            for i in range(m):
                w[i] = q[i]
                for j in range(m):
                    w[i] += M[i, j] * z[j]
                right &= abs(max(min(w[i], z[i] - lower[i]), z[i] - upper[i])) <= 1e-12
            if right:
                break
            last = trial
        rows[k, 0] = (k + 1) * h
        for i in range(len(x)):
            x[i] = x_free[i]
            for j in range(m):
                x[i] += G[i, j] * z[j]
            rows[k, 1 + i] = x[i]
        for i in range(m):
            rows[k, 1 + len(x) + i], rows[k, 1 + len(x) + m + i] = w[i], z[i]


def _switched_of(n_steps, system, h, lower, upper):
    """The floor of a record made by `nsds.linear_complementarity_system` (theta = 1/2), all sets prepared."""
    plant, switches = (system[name] for name in system.dtype.names[-2:])
    A, B, C, m = plant["A"], switches["B"], switches["C"], switches["y"].size
    D = switches["D"] if "D" in switches.dtype.names else np.zeros((m, m))
    W = np.eye(len(A)) - h / 2 * A
    Phi, G = np.linalg.solve(W, np.eye(len(A)) + h / 2 * A), np.linalg.solve(W, h * B)
    M = D + C @ G
    sets = list(itertools.product(*([None, *(b for b in bounds if np.isfinite(b))] for bounds in zip(lower, upper, strict=True))))
    S, shift = np.zeros((len(sets), m, m)), np.zeros((len(sets), m))
    for k, sides in enumerate(sets):
        basis = [i for i in range(m) if sides[i] is None]
        shift[k] = [0.0 if side is None else side for side in sides]
        inverse = -np.linalg.pinv(M[np.ix_(basis, basis)])
        S[k][np.ix_(basis, basis)] = inverse
        shift[k][basis] = inverse @ (M @ shift[k])[basis]
    lower, upper = np.array(lower), np.array(upper)
    x_free, q, z, w, rows = np.empty(len(A)), np.empty(m), np.empty(m), np.empty(m), np.empty((n_steps, 1 + len(A) + 2 * m))

    return _switched, lambda: (n_steps, h, Phi, G, C, M, S, shift, lower, upper, plant["x"].copy(), x_free, q, z, w, rows)


def _ball_of(n_steps):
    M_inv, f, H = np.diag([1, 1, 250.0]), np.array([-9.81, 0, 0]), np.array([1.0, 0, 0])
    v_free, rows = np.empty(3), np.empty((n_steps, 10))
    return _ball, lambda: (n_steps, 5e-3, 0.9, M_inv, f, H, np.array([1.0, 0, 0]), np.zeros(3), v_free, rows)


def _cam_of(n_steps):
    rows = np.empty((n_steps, 4))
    return _cam, lambda: (n_steps, 1e-4, 0.8, 358.0, rows)


def _column_of(n, n_steps):
    pivot, lam, rows = np.empty(n), np.empty(n), np.empty((n_steps, 2 * n))
    return _column, lambda: (n_steps, 1e-3, np.zeros(n), np.zeros(n), pivot, lam, rows)


FLOORS = {"ball": (_ball_of, 2000), "cam": (_cam_of, 10_000)}
FLOORS |= {
    "bridge": (lambda n_steps: _switched_of(n_steps, diode_bridge(), 1e-6, [0.0] * 4, [np.inf] * 4), 5000),
    "relay": (lambda n_steps: _switched_of(n_steps, relay(), 1e-3, [-1.0] * 2, [1.0] * 2), 10_000),
}
FLOORS |= {f"column {n}": (lambda n_steps, n=n: _column_of(n, n_steps), 20_000 // n) for n in (10, 100, 1000)}
FLOORS |= {
    f"bar {n}": (lambda n_steps, n=n, h=h: _bar_of(n, n_steps, h), n_steps) for n, n_steps, h in ((100, 748, 2e-6), (1000, 600, 1e-6))
}


@cache
def prepared(name, n_steps):
    """(kernel, function that makes its arguments) of a floor, compiled and with its memory touched."""
    kernel, arguments = FLOORS[name][0](n_steps)
    kernel(*arguments())
    return kernel, arguments


def measure(name, n_steps=None):
    """ns per step of a floor, recorded, memory warm: minimum over a few calls."""
    n_steps, times = n_steps or FLOORS[name][1], []
    kernel, arguments = prepared(name, n_steps)
    for _ in range(20):
        given = arguments()
        began = time.perf_counter()
        kernel(*given)
        times.append(time.perf_counter() - began)
    return min(times) / n_steps * 1e9


@cache
def count_flops(name, n_steps=None):
    """Floating-point operations per step of a floor, those of a sine counted as one."""
    n_steps = n_steps or FLOORS[name][1]
    kernel, arguments = prepared(name, n_steps)
    return flops.of(kernel, *arguments()) / n_steps
