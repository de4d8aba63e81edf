"""The one signature of solvers of nonlinear complementarity problems and variational inequalities, and the residual that judges them.

Problem: find z in a set K with ``-F(z)`` in the normal cone of K at z. K is a box ``lower <= z <= upper``, with inequalities
``G z >= g`` whose multipliers are unknowns, too, or a product of second-order cones ``z_1 >= ||(z_2, ..., z_k)||``. Bounds 0 and infinity
give the nonlinear complementarity problem ``0 <= z ⟂ F(z) >= 0``. With inequalities the unknowns are (z, multipliers), and F is
``(F(z) - G^T multipliers, G z - g)``: below, all N of them are z.

    status = solver(problem, options, z, w, info, work, iwork)

===========  ======================================================================================
problem      `Problem`
options      `Options`
z            in: first guess; out: solution, in the set (N,)
w            out: F(z) (N,)
info         out (3,): iterations, residual; of auto, the place in its order of the method it took
work, iwork  scratch of the method's ``work_size(N)``
===========  ======================================================================================

A solver allocates nothing, never raises, and returns a code of `nsds.status`: CONVERGED only where the residual of `judge` is at most tol.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import float64, types

from nsds._jit import caller, kernel, tiny, view
from nsds.status import CONVERGED, NON_FINITE

__all__ = ["N_INFO", "Options", "Problem", "judge"]

N_INFO = 3
_vector = float64[::1]
CALLBACK = types.void(_vector, _vector, _vector)  # of users' functions: z, parameters, out
call_function = caller(CALLBACK)

_CENTRAL, _ONE_SIDED = 2.0**-17, 2.0**-26  # steps of differences, relative to 1 or the variable


class Problem(NamedTuple):
    """A problem: addresses of F and its Jacobian (0: by differences), their parameters, inequalities, bounds, sizes of cones.

    Unknowns, and their bounds, are counted in units, powers of two; F and its Jacobian are called at a point in the user's.
    """

    functions: np.ndarray
    parameters: np.ndarray
    G: np.ndarray  # rows one after the other
    g: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    cones: np.ndarray  # they cover all unknowns; none: a box
    units: np.ndarray  # of the unknowns but multipliers
    point: np.ndarray  # these unknowns in the user's units: work


class Options(NamedTuple):
    """Options of a nonlinear problem, from `nsds.solvers.solver`; max_iter 0: the method's own."""

    tol: float
    max_iter: float


@kernel
def evaluate(p, z, F):
    """F(z) of all unknowns. Returns False where it is NaN or infinite."""
    m = p.g.size
    n = z.size - m
    _set_point(p, z)
    call_function(p.functions[0], (p.point, p.parameters, view(F, 0, n)))
    for i in range(m):
        s = -p.g[i]
        for j in range(n):
            s += p.G[i * n + j] * p.point[j]
            F[j] -= p.G[i * n + j] * z[n + i]
        F[n + i] = s
    zero = 0.0
    for i in range(z.size):
        zero += 0.0 * F[i]
    return zero == 0.0


@tiny
def _set_point(p, z):
    for i in range(p.point.size):
        p.point[i] = p.units[i] * z[i]


@kernel
def differentiate(p, z, J, spare):
    """Jacobian of F at z, by the user's function or by differences. Out: J (N^2,). Work: spare (n^2 + 2 n,); z is moved and put back.

    Differences are central, one-sided where the other side is out of bounds or F is not finite there.
    """
    N, m = z.size, p.g.size
    n = N - m
    for i in range(N * N):
        J[i] = 0.0
    for i in range(m):
        for j in range(n):
            J[j * N + n + i] = -p.G[i * n + j]
            J[(n + i) * N + j] = p.G[i * n + j] * p.units[j]
    own = view(spare, 0, n * n)
    if p.functions[1] != 0:
        _set_point(p, z)
        call_function(p.functions[1], (p.point, p.parameters, own))
        for i in range(n):
            for j in range(n):
                J[i * N + j] = own[i * n + j] * p.units[j]
        return
    ahead, behind = view(spare, n * n, n), view(spare, n * n + n, n)
    for j in range(n):
        _difference(p, view(z, 0, n), j, ahead, behind)
        for i in range(n):
            J[i * N + j] = ahead[i]


@tiny
def _difference(p, z, j, ahead, behind):
    """Derivative of the user's F by z_j, into ahead."""
    value = z[j]
    size = max(1.0, abs(value))
    up = value + _CENTRAL * size <= p.upper[j] and _at(p, z, j, value + _CENTRAL * size, ahead)
    down = value - _CENTRAL * size >= p.lower[j] and _at(p, z, j, value - _CENTRAL * size, behind)
    step = 2.0 * _CENTRAL * size
    if not (up and down):
        sign = -1.0 if down or value + _ONE_SIDED * size > p.upper[j] else 1.0
        _at(p, z, j, value + sign * _ONE_SIDED * size, ahead)
        _at(p, z, j, value, behind)
        step = (value + sign * _ONE_SIDED * size) - value
    z[j] = value
    for i in range(z.size):
        ahead[i] = (ahead[i] - behind[i]) / step


@tiny
def _at(p, z, j, value, out):
    """F with another z_j, which stays in z. Returns whether it is finite."""
    z[j] = value
    _set_point(p, z)
    call_function(p.functions[0], (p.point, p.parameters, out))
    zero = 0.0
    for i in range(out.size):
        zero += 0.0 * out[i]
    return zero == 0.0


@tiny
def project_cone(x):
    """Nearest point of the second-order cone, in place."""
    r = 0.0
    for i in range(1, x.size):
        r = math.hypot(r, x[i])
    if r > x[0]:
        s = 0.5 * (x[0] + r) if r > -x[0] else 0.0
        x[0] = s
        for i in range(1, x.size):
            x[i] *= s / r if r > 0.0 else 0.0


@kernel
def project(p, z):
    """Nearest point of the set, in place."""
    at = 0
    for k in range(p.cones.size):
        project_cone(view(z, at, p.cones[k]))
        at += p.cones[k]
    for i in range(at, z.size):
        z[i] = min(max(z[i], p.lower[i]), p.upper[i])


@tiny
def mid(lower, upper, z, F):
    """``z - P(z - F)`` of one row with bounds."""
    return max(min(F, z - lower), z - upper)


@kernel
def residual(p, z, F, J, spare):
    """Largest ``|z - P(z - F)|``, z_i being relative to ``1 + |z_i|`` and F_i to ``sum_j |J_ij| (1 + |z_j|)``; in a cone to its largest.

    So units of F do not count. Work: spare (N,).
    """
    worst, at, N = 0.0, 0, z.size
    for k in range(p.cones.size):
        size, move = 0.0, 1.0
        for i in range(at, at + p.cones[k]):
            size, move = max(size, _terms(J, z, i)), max(move, 1.0 + abs(z[i]))
        for i in range(at, at + p.cones[k]):
            spare[i] = z[i] / move - F[i] / size
        project_cone(view(spare, at, p.cones[k]))
        for i in range(at, at + p.cones[k]):
            worst = max(worst, abs(z[i] / move - spare[i])) + 0.0 * F[i]
        at += p.cones[k]
    for i in range(at, N):
        size = 1.0 + abs(z[i])
        worst = max(worst, abs(mid(p.lower[i] / size, p.upper[i] / size, z[i] / size, F[i] / _terms(J, z, i)))) + 0.0 * F[i]
    return worst


@tiny
def _terms(J, z, i):
    """``sum_j |J_ij| (1 + |z_j|)``, 1 where that is 0."""
    s = 0.0
    for j in range(z.size):
        s += abs(J[i * z.size + j]) * (1.0 + abs(z[j]))
    return s if s != 0.0 else 1.0


@kernel
def judge(status, n_iter, p, options, z, w, info, work):
    """The status of what a method ends with: z goes into the set, what is at a bound within tol goes there, and only the residual counts.

    Out: z, w, info. Work: (2 N^2 + 4 N,). CONVERGED where the residual is at most tol, else the status, or NON_FINITE.
    """
    N = z.size
    J, spare = view(work, 0, N * N), view(work, N * N, N * N + 2 * N)
    moved, F = view(work, 2 * N * N + 2 * N, N), view(work, 2 * N * N + 3 * N, N)
    project(p, z)
    is_finite = evaluate(p, z, w)
    differentiate(p, z, J, spare)
    info[0], info[1] = float(n_iter), residual(p, z, w, J, spare)
    for i in range(N):
        moved[i] = z[i]
        if p.cones.size == 0:
            near = options.tol * (1.0 + abs(z[i]))
            moved[i] = p.lower[i] if z[i] - p.lower[i] <= near else p.upper[i] if p.upper[i] - z[i] <= near else z[i]
    if evaluate(p, moved, F):
        snapped = residual(p, moved, F, J, spare)
        if snapped <= info[1]:
            info[1] = snapped
            for i in range(N):
                z[i], w[i] = moved[i], F[i]
    if info[1] <= options.tol:
        return CONVERGED
    return status if is_finite and info[1] < math.inf else NON_FINITE


@tiny
def judge_size(n):
    """Scratch of `judge`."""
    return 2 * n * n + 4 * n
