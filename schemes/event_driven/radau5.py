"""The implicit Runge–Kutta method Radau IIA of order 5 for stiff motions, piece by piece, for any right-hand side.

Of the stages ``x + z_i`` at ``t + C[i] h``, with f an autonomous or other right-hand side and J its slope at the start of the step,

    z_i = h sum_j a_ij f(t + c_j h, x + z_j),       (I - h A ⊗ J) dz = h (A ⊗ I) f - z       simplified Newton
    (gamma / h I - J) error = f(t, x) + sum_i e_i z_i / h                                     of order 3

and the solution at the end is the last stage. Whoever integrates evaluates the right-hand side in between:

    perturb(j, n, x, at, work); f(t, at, column); note_slope(j, ...)          # for all j: J
    prepare(n, h, p, work, iwork)                                             # the two matrices
    begin(n, p, work)                                                         # z = 0
    while not done:
        stage(i, n, p, at, work); f(t + C[i] h, at, k + i n)                  # for all i
        size = improve(n, h, rtol, atol, p, work)                             # a step of Newton's method
    conclude(n, p, work); error = error_of_step(n, h, first, rtol, atol, p, work); dense_output(n, p, work)

p is a row of a table with the columns n, x, x_new, k, poly, jac (n, n), newton (3 n, 3 n), filter (n, n), z, g, sizes (3 n) of the work
memory, and stage_pivots (3 n) of the integer one. Hairer and Wanner, Solving Ordinary Differential Equations II, IV.8; dense output is the
polynomial of collocation.
"""

import math

import numpy as np

from nsds._jit import kernel, tiny
from nsds.schemes.linear_algebra import invert_in_place

STAGES, DEGREE = 3, 3
_S = math.sqrt(6.0)
C = np.array([(4 - _S) / 10, (4 + _S) / 10, 1.0])
A = np.array(
    [
        [(88 - 7 * _S) / 360, (296 - 169 * _S) / 1800, (-2 + 3 * _S) / 225],
        [(296 + 169 * _S) / 1800, (88 + 7 * _S) / 360, (-2 - 3 * _S) / 225],
        [(16 - _S) / 36, (16 + _S) / 36, 1 / 9],
    ]
)
ERROR = np.array([-(13 + 7 * _S) / 3, (-13 + 7 * _S) / 3, -1 / 3])
GAMMA = 30.0 / (6.0 + 81.0 ** (1 / 3) - 9.0 ** (1 / 3))  # the real eigenvalue of A^-1
ITERATIONS = 10  # of Newton's method, at most
_SLOPE, _LEAST_SIZE = 2.0**-26, 1e-5  # of a component: difference for its slope, and of how small a one
_LOOSE, _UNITS = 0.03, 10.0  # of the tolerance: what Newton's method may miss; units in the last place that it cannot
_DIVERGES = 0.99  # ratio of two changes


@tiny
def perturb(j, n, x, at, work):
    """The state with component j moved, into work[at:]."""
    for a in range(n):
        work[at + a] = work[x + a]
    work[at + j] += _SLOPE * math.sqrt(max(_LEAST_SIZE, abs(work[x + j])))


@tiny
def note_slope(j, n, x, at, first, moved, jac, work):
    """Column j of J, from x' at the state (work[first:]) and at the moved one (work[moved:]); n rows."""
    for a in range(n):
        work[jac + a * n + j] = (work[moved + a] - work[first + a]) / (work[at + j] - work[x + j])


@kernel
def prepare(n, h, p, work, iwork):
    """Inverses of ``I - h A ⊗ J`` and ``gamma / h I - J``; False where one is singular."""
    m = 3 * n
    for i in range(m):
        work[p.sizes + i] = 0.0
        for j in range(m):
            unit = 1.0 if i == j else 0.0
            work[p.newton + i * m + j] = value = unit - h * A[i // n, j // n] * work[p.jac + i % n * n + j % n]
            work[p.sizes + i] += abs(value)
    if not invert_in_place(m, p.newton, p.sizes, work, iwork, p.stage_pivots):
        return False
    for i in range(n):
        work[p.sizes + i] = 0.0
        for j in range(n):
            work[p.filter + i * n + j] = value = (GAMMA / h if i == j else 0.0) - work[p.jac + i * n + j]
            work[p.sizes + i] += abs(value)
    return invert_in_place(n, p.filter, p.sizes, work, iwork, p.stage_pivots)


@tiny
def begin(n, p, work):
    """``z = 0``."""
    for i in range(3 * n):
        work[p.z + i] = 0.0


@tiny
def stage(i, n, p, at, work):
    """State of stage i into work[at:]."""
    for a in range(n):
        work[at + a] = work[p.x + a] + work[p.z + i * n + a]


@kernel
def improve(n, h, rtol, atol, p, work):
    """A step of Newton's method from x' of the stages in work[p.k:]; returns its size in the norm of the tolerances, or NaN."""
    m, s = 3 * n, 0.0
    for i in range(m):
        g = -work[p.z + i]
        for j in range(STAGES):
            g += h * A[i // n, j] * work[p.k + j * n + i % n]
        work[p.g + i] = g
    for i in range(m):
        change = 0.0
        for j in range(m):
            change += work[p.newton + i * m + j] * work[p.g + j]
        work[p.z + i] += change
        s += (change / (atol + rtol * abs(work[p.x + i % n]))) ** 2
    return math.sqrt(s / m)


@tiny
def is_solved(size, last, rtol):
    """(Whether Newton's method has come near enough, whether it diverges); size and last: of its last two changes, 0 of none."""
    ratio = size / last if last > 0.0 else 1.0
    if size == 0.0 or (ratio < 1.0 and size * ratio / (1.0 - ratio) <= max(_UNITS * 2.0**-52 / rtol, min(_LOOSE, math.sqrt(rtol)))):
        return True, False
    return False, not size < math.inf or (last > 0.0 and ratio >= _DIVERGES)


@tiny
def conclude(n, p, work):
    """The state at the end of the step into x_new."""
    for a in range(n):
        work[p.x_new + a] = work[p.x + a] + work[p.z + 2 * n + a]


@kernel
def error_of_step(n, h, first, rtol, atol, p, work):
    """Root mean square of the errors of all components, in the norm of the tolerances; in work[p.g:], too, itself.

    first: offset of x' at the start of the step, or, filtered once more, at the start moved by the error.
    """
    s = 0.0
    for a in range(n):
        error = 0.0
        for b in range(n):
            rate = work[first + b]
            for i in range(STAGES):
                rate += ERROR[i] * work[p.z + i * n + b] / h
            error += work[p.filter + a * n + b] * rate
        work[p.g + a] = error
        s += (error / (atol + rtol * max(abs(work[p.x + a]), abs(work[p.x_new + a])))) ** 2
    return math.sqrt(s / n)


@kernel
def dense_output(n, p, work):
    """Coefficients of the cubic through the start and all stages: that of theta^j of component a in work[poly + j n + a]."""
    for a in range(n):
        z1, z2, z3 = work[p.z + a], work[p.z + n + a], work[p.z + 2 * n + a]
        d1, d2 = z1 / C[0], (z2 - z1) / (C[1] - C[0])
        d12 = (d2 - d1) / C[1]
        d123 = (((z3 - z2) / (1.0 - C[1]) - d2) / (1.0 - C[0]) - d12) / 1.0
        work[p.poly + a] = work[p.x + a]
        work[p.poly + n + a] = d1 - C[0] * d12 + C[0] * C[1] * d123
        work[p.poly + 2 * n + a] = d12 - (C[0] + C[1]) * d123
        work[p.poly + 3 * n + a] = d123
