"""Contact laws as equations without inequalities, with their generalised Jacobians ([Notes], chapter 16).

    F_N = (r_N - (r_N - rho_N u_N)_+) / rho_N                                                   (16.4)
    F_T = (r_T - P_D(r_T - rho_T u_T)) / rho_T,    D the disk of radius mu b                    (16.9)

with ``b = (r_N - rho_N u_N)_+`` for Alart–Curnier and ``b = (r_N)_+`` for Jean–Moreau. Divided by rho, F is a velocity whatever the
case; the first argument of the projection, r - rho u, decides it, in this order (what the source leaves open in 16.1.4):

- ``b = 0``: the disk is a point, ``F_T = r_T / rho_T``;
- ``||y|| <= mu b`` with ``y = r_T - rho_T u_T``: sticking, ``F_T = u_T``;
- else sliding along ``n = y / ||y||``: ``F_T = (r_T - mu b n) / rho_T``, where b depends on u_N too (the case that 16.16 marks as not
  taken into account): ``∂F_T/∂u_N = mu rho_N n / rho_T`` for Alart–Curnier, 0 for Jean–Moreau.

Rolling friction adds a second disk. An equation has ``F = u``.
"""

import math

from nsds._jit import inlined, kernel, tiny
from nsds.solvers.contact.signature import EQUATION

ALART_CURNIER, JEAN_MOREAU = 0, 1


@tiny
def largest_eigenvalue(W, k, d, first, last):
    """Largest eigenvalue of the symmetric part of rows and columns first..last - 1 (two at most) of the block at W[k]; 1 of none."""
    if last == first:
        return 1.0
    a = W[k + first * (d + 1)]
    if last - first == 1:
        return a
    b, c = W[k + (first + 1) * (d + 1)], 0.5 * (W[k + first * d + first + 1] + W[k + (first + 1) * d + first])
    return 0.5 * (a + b) + math.sqrt(0.25 * (a - b) * (a - b) + c * c)


@tiny
def split_rho(disk, d, W, k, rho):
    """``1 / W_NN``, ``1 / λ_max(W_TT)`` and ``1 / λ_max(W_RR)`` of the block at W[k]; 1 where that is not positive. Out: rho (3,)."""
    split = 1 + disk if disk > EQUATION else d
    rho[0], rho[1], rho[2] = W[k], largest_eigenvalue(W, k, d, 1, min(split, 3)), largest_eigenvalue(W, k, d, split, d)
    for i in range(3):
        rho[i] = 1.0 / rho[i] if 0.0 < rho[i] < math.inf else 1.0


@inlined
def _disk_equation(form, b, rho_n, disk, d, r, u, F, A, B):
    """Rows of F, A and B of a disk: (mu, rho_t, first row, row after the last)."""
    mu, rho_t, first, last = disk
    g, size = mu * b, 0.0
    for i in range(first, last):
        F[i] = r[i] - rho_t * u[i]
        size += F[i] * F[i]
    size = math.sqrt(size)
    if b > 0.0 and size <= g:
        for i in range(first, last):
            F[i], A[i * (d + 1)] = u[i], 1.0
    elif not g > 0.0:
        for i in range(first, last):
            F[i], B[i * (d + 1)] = r[i] / rho_t, 1.0 / rho_t
    else:
        beta = g / size
        for i in range(first, last):
            n_i = F[i] / size
            B[i * d] = -mu * n_i / rho_t
            A[i * d] = mu * rho_n * n_i / rho_t if form == ALART_CURNIER else 0.0
            for j in range(first, last):
                A[i * d + j] = -beta * n_i * F[j] / size
            A[i * (d + 1)] += beta
            for j in range(first, last):
                B[i * d + j] = -A[i * d + j] / rho_t
            B[i * (d + 1)] += 1.0 / rho_t
        for i in range(first, last):
            F[i] = (r[i] - beta * F[i]) / rho_t


@kernel
def evaluate(form, cone, rho, r, u, F, A, B):
    """F of a contact, from its r and u, with ``A = ∂F/∂u`` and ``B = ∂F/∂r`` (d, d); rho (3,): of N, T and R."""
    d, disk, mu, mu_r = cone
    for i in range(d * d):
        A[i] = B[i] = 0.0
    if disk == EQUATION:
        for i in range(d):
            F[i], A[i * (d + 1)] = u[i], 1.0
        return
    x_n = r[0] - rho[0] * u[0]
    if x_n > 0.0:
        F[0], A[0] = u[0], 1.0
    else:
        F[0], B[0] = r[0] / rho[0], 1.0 / rho[0]
    b = max(x_n if form == ALART_CURNIER else r[0], 0.0)
    _disk_equation(form, b, rho[0], (mu, rho[1], 1, 1 + disk), d, r, u, F, A, B)
    _disk_equation(form, b, rho[0], (mu_r, rho[2], 1 + disk, d), d, r, u, F, A, B)
