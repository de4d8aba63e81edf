"""The contact law as ``r - P_K(r - rho uhat) = 0``, with its generalised Jacobian.

Normal and tangential components may have rho of their own: with ``S = diag(sqrt(rho))``, ``S^-1 r`` and ``S uhat`` obey the law with the
friction ``mu sqrt(rho_N / rho_T)``. Divided by ``S^2`` the difference is a velocity:

    F = S^-1 (y_r - P_K(y)),    y = y_r - S uhat,    y_r = S^-1 r
    ∂F/∂uhat = S^-1 J S,    ∂F/∂r = S^-1 (I - J) S^-1,    ∂uhat/∂u = I + e_N (mu u_T / ||u_T|| + mu_r u_R / ||u_R||)^T

with J a generalised Jacobian of the projection at y, and 0 for the gradient of a norm at zero.
Reference: Acary, Brémond, Huber, "On solving contact problems with Coulomb friction", Advanced Topics in Nonsmooth Dynamics (2018), 3.3.
"""

import math

from nsds._jit import kernel, tiny
from nsds.solvers.contact.signature import EQUATION, Cone, modify, norm, normal_of_projection


@tiny
def _disk_rows(mu, t, size, d, first, last, x, J):
    """Rows first..last - 1 of J, whose row 0 is the gradient of t, and of the projection; size: norm of these components of x."""
    if mu > 0.0 and size <= mu * t:
        for i in range(first, last):
            J[i * (d + 1)] = 1.0
        return
    for i in range(first, last):
        for j in range(d):
            J[i * d + j] = mu * x[i] / size * J[j] if size > 0.0 else 0.0
        if size > 0.0:
            J[i * (d + 1)] += mu * t / size
            for j in range(first, last):
                J[i * d + j] -= mu * t / size * (x[i] / size) * (x[j] / size)
    for i in range(first, last):
        x[i] *= mu * t / size if size > 0.0 else 0.0


@kernel
def project(cone, x, J):
    """``x <- P_K(x)`` for ``K = {||x_T|| <= mu x_N, ||x_R|| <= mu_r x_N}``; J (d, d): a generalised Jacobian, 0 at the apex."""
    d, disk, mu, mu_r = cone
    x_t, x_r = norm(x, 1, 1 + disk), norm(x, 1 + disk, d)
    t = x[0]
    if x_t > mu * t or x_r > mu_r * t:
        t = normal_of_projection(mu, mu_r, t, x_t, x_r)
    for i in range(d * d):
        J[i] = 0.0
    if not t > 0.0:
        for i in range(d):
            x[i] = 0.0
        return
    slope_t, slope_r = mu if x_t > mu * t else 0.0, mu_r if x_r > mu_r * t else 0.0
    J[0] = 1.0 / (1.0 + slope_t**2 + slope_r**2)
    for j in range(1, d):
        slope, size = (slope_t, x_t) if j <= disk else (slope_r, x_r)
        J[j] = J[0] * slope * x[j] / size if slope > 0.0 else 0.0
    x[0] = t
    _disk_rows(mu, t, x_t, d, 1, 1 + disk, x, J)
    _disk_rows(mu_r, t, x_r, d, 1 + disk, d, x, J)


@tiny
def differentiate_modification(cone, u, A):
    """``A <- A ∂uhat/∂u`` for the d × d block A = ∂F/∂uhat."""
    d, disk, mu, mu_r = cone
    for j in range(1, d):
        size = norm(u, 1, 1 + disk) if j <= disk else norm(u, 1 + disk, d)
        if size > 0.0:
            for i in range(d):
                A[i * d + j] += A[i * d] * (mu if j <= disk else mu_r) * u[j] / size


@kernel
def evaluate(cone, rho, r, u, F, A, B):
    """F of a contact, from its r and u, with ``A = ∂F/∂u`` and ``B = ∂F/∂r`` (d, d); rho (3,): of N, T and R."""
    d, disk, mu, mu_r = cone
    if disk == EQUATION:
        for i in range(d * d):
            A[i] = B[i] = 0.0
        for i in range(d):
            F[i], A[i * (d + 1)] = u[i], 1.0
        return
    s_n, s_t, s_r = math.sqrt(rho[0]), math.sqrt(rho[1]), math.sqrt(rho[2])
    for i in range(d):
        s = s_n if i == 0 else s_t if i <= disk else s_r
        F[i] = r[i] / s - s * u[i]
    F[0] -= s_n * modify(cone, 0, u)
    project(Cone(d, disk, mu * s_n / s_t, mu_r * s_n / s_r), F, A)
    for i in range(d):
        s_i = s_n if i == 0 else s_t if i <= disk else s_r
        F[i] = (r[i] / s_i - F[i]) / s_i
        for j in range(d):
            s_j = s_n if j == 0 else s_t if j <= disk else s_r
            B[i * d + j] = -A[i * d + j] / (s_i * s_j)
            A[i * d + j] *= s_j / s_i
        B[i * (d + 1)] += 1.0 / (s_i * s_i)
    differentiate_modification(cone, u, A)
