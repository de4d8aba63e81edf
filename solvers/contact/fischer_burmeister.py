"""The contact law as the Fischer–Burmeister function of the second-order cone, with its generalised Jacobian.

For one disk (not for rolling friction), with ``T = diag(1 / mu, 1, ...)``, x and y below lie in Lorentz's cone ``{x_0 >= ||x_T||}`` and are
orthogonal where the law holds. Products and the root are those of the cone's algebra, ``L_x y = (x · y, x_0 y_T + y_0 x_T)``:

    x = T^-1 r,    y = rho T uhat,    w = (x^2 + y^2)^(1/2),    F = T^-1 (x + y - w) / rho, a velocity
    ∂F/∂uhat = T^-1 (I - L_w^-1 L_y) T,    ∂F/∂r = T^-1 (I - L_w^-1 L_x) T^-1 / rho

Eigenvalues of ``z = x^2 + y^2`` are ``z_0 ± ||z_T||``; the lesser one would drown in rounding and is computed as ``det z / greater``, with
det z a sum of squares. Without friction: the scalar function of r_N and u_N, and ``F_T = r_T / rho_T``.
Reference: Fukushima, Luo, Tseng, SIAM Journal on Optimization 12 (2002) 436–460, proposition 4.2 and 5.2.
"""

import math

from nsds._jit import kernel, tiny
from nsds.solvers.contact.natural_map import differentiate_modification
from nsds.solvers.contact.signature import EQUATION, Cone, norm

_SINGULAR = 1e-12  # lesser eigenvalue of w, relative to the greater one, below which L_w is not inverted as it is
_AT_ORIGIN = 1.0 - math.sqrt(0.5)  # the derivative along x = y = e


@kernel
def suits(disk, d):
    """One disk for every contact: no rolling friction."""
    rolling = 0
    for c in range(disk.size):
        rolling += disk[c] != EQUATION and disk[c] != d - 1
    return rolling == 0


@tiny
def _root(x_0, y_0, scale, d, r, u, w):
    """``w = (x^2 + y^2)^(1/2)`` for x = (x_0, r_T), y = (y_0, scale u_T); returns ``det w = w_0^2 - ||w_T||^2``."""
    xx = yy = xy = across = size = 0.0
    for i in range(1, d):
        x, y = r[i], scale * u[i]
        xx, yy, xy = xx + x * x, yy + y * y, xy + x * y
        across += (x_0 * y - y_0 * x) ** 2
        w[i] = 2.0 * (x_0 * x + y_0 * y)
        size += w[i] ** 2
    size = math.sqrt(size)
    greater = math.sqrt(x_0 * x_0 + xx + y_0 * y_0 + yy + size)
    turned = max(xx * yy - xy * xy, 0.0)
    det_z = (x_0 * x_0 - xx) ** 2 + (y_0 * y_0 - yy) ** 2 + 2.0 * (across + (x_0 * y_0 - xy) ** 2 + turned)
    lesser = math.sqrt(det_z) / greater if greater > 0.0 else 0.0
    w[0] = 0.5 * (greater + lesser)
    for i in range(1, d):
        w[i] *= 0.5 * (greater - lesser) / size if size > 0.0 else 0.0
    return greater * max(lesser, _SINGULAR * greater)


@tiny
def _differentiate(d, w, det, x_0, scale, x, M):
    """``M = I - L_w^-1 L_x`` for x = (x_0, scale x_T)."""
    for j in range(d):
        first, along = x_0, 0.0
        if j == 0:
            for i in range(1, d):
                along += w[i] * scale * x[i]
        else:
            first, along = scale * x[j], w[j] * x_0
        first = (w[0] * first - along) / det
        M[j] = -first
        for i in range(1, d):
            entry = scale * x[i] if j == 0 else x_0 if i == j else 0.0
            M[i * d + j] = -(entry - first * w[i]) / w[0]
        M[j * (d + 1)] += 1.0


@tiny
def _scalar(rho, r, u):
    """``(r + rho u - sqrt(r^2 + rho^2 u^2)) / rho`` and its derivatives by u and r."""
    y = rho * u
    size = math.hypot(r, y)
    if size == 0.0:
        return 0.0, _AT_ORIGIN, _AT_ORIGIN / rho
    f = 2.0 * r * y / (r + y + size) if r + y > 0.0 else r + y - size  # without cancellation
    return f / rho, 1.0 - y / size, (1.0 - r / size) / rho


@kernel
def evaluate(cone, rho, r, u, F, A, B):
    """F of a contact, from its r and u, with ``A = ∂F/∂u`` and ``B = ∂F/∂r`` (d, d); rho (3,): of N, T and R; mu_r is not read."""
    d, disk, mu, _ = cone
    for i in range(d * d):
        A[i] = B[i] = 0.0
    if disk == EQUATION:
        for i in range(d):
            F[i], A[i * (d + 1)] = u[i], 1.0
        return
    if mu == 0.0:
        F[0], A[0], B[0] = _scalar(rho[0], r[0], u[0])
        for i in range(1, d):
            F[i], B[i * (d + 1)] = r[i] / rho[1], 1.0 / rho[1]
        return
    scale = min(mu * mu * rho[0], rho[1])
    x_0, y_0 = mu * r[0], scale * (u[0] / mu + norm(u, 1, d))
    det = _root(x_0, y_0, scale, d, r, u, F)
    if det > 0.0:
        _differentiate(d, F, det, y_0, scale, u, A)
        _differentiate(d, F, det, x_0, 1.0, r, B)
    else:
        for i in range(d):
            A[i * (d + 1)] = B[i * (d + 1)] = _AT_ORIGIN
    F[0] = mu * (x_0 + y_0 - F[0]) / scale
    for i in range(1, d):
        F[i] = (r[i] + scale * u[i] - F[i]) / scale
        A[i * d] /= mu
        A[i] *= mu
        B[i * d] *= mu
        B[i] *= mu
    B[0] *= mu * mu
    for i in range(d * d):
        B[i] /= scale
    differentiate_modification(Cone(d, disk, mu, 0.0), u, A)
