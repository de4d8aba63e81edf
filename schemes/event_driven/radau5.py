"""The implicit Runge–Kutta method Radau IIA of order 5 for stiff motions, for any right-hand side.

Of the stages ``x + z_i`` at ``t + C[i] h``, with f an autonomous or other right-hand side and J its slope at the start of the step,

    z_i = h sum_j a_ij f(t + c_j h, x + z_j),       (I - h A ⊗ J) dz = h (A ⊗ I) f - z       simplified Newton
    (gamma / h I - J) error = f(t, x) + sum_i e_i z_i / h                                     of order 3

and the solution at the end is the last stage. `steps_of` binds it to a right-hand side. Of the tables of a motion, ``s.flow[0]`` has the
columns n, and x, x_new, x_sampled, first, atol (n), k, poly, jac (n, n), newton (3 n, 3 n), filter (n, n), z, g, sizes (3 n) of the work
memory, and stage_pivots (3 n) of the integer one. Hairer and Wanner, Solving Ordinary Differential Equations II, IV.8; dense output is the
polynomial of collocation.
"""

import math

import numpy as np

from nsds._jit import kernel, specialised, tiny
from nsds.schemes.event_driven.dopri5 import LAST, TINY
from nsds.schemes.linear_algebra import invert_dense
from nsds.status import CONVERGED

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
_ITERATIONS = 10  # of Newton's method, at most
_SLOPE = 2.0**-26  # step of finite differences, of a component, or of the size below which its absolute tolerance counts
_LOOSE, _UNITS = 0.03, 10.0  # of the tolerance: error of Newton's method; units in the last place that it cannot resolve
_DIVERGES = 0.99  # ratio of two changes


def _note_slopes(t, s, functions, options, memory):
    """Slopes of x' at the start of a step, by differences from x' in work[k:], into work[jac:]; errors only slow Newton's method."""
    work = memory.work
    f, n = s.flow[0], s.flow[0].n
    for j in range(n):
        for a in range(n):
            work[f.x_sampled + a] = work[f.x + a]
        work[f.x_sampled + j] += _SLOPE * max(abs(work[f.x + j]), work[f.atol + j] / options.rtol)
        derivative(t, f.x_sampled, f.first, s, functions, options, memory)  # noqa: F821
        for a in range(n):
            work[f.jac + a * n + j] = (work[f.first + a] - work[f.k + a]) / (work[f.x_sampled + j] - work[f.x + j])


def _take_step(t, h, s, functions, options, memory):
    """A step from work[x:], with x' there in work[k:] and its slopes in work[jac:]: the state in x_new, x' in LAST of k, and dense output.

    Returns (status, error relative to the tolerances, infinite if a stage fails or the equations are not solved).
    """
    work = memory.work
    f, n, last, status = s.flow[0], s.flow[0].n, 0.0, CONVERGED
    # 1. matrices
    if not _prepare(n, h, f, memory):
        return CONVERGED, math.inf
    # 2. simplified Newton for the stages, from 0
    for a in range(n):
        work[f.first + a] = work[f.k + a]
    for i in range(STAGES * n):
        work[f.z + i] = 0.0
    is_done, diverges = False, False
    for _ in range(_ITERATIONS):
        for i in range(STAGES):
            for a in range(n):
                work[f.x_new + a] = work[f.x + a] + work[f.z + i * n + a]
            at = derivative(time_in_step(t, C[i], h), f.x_new, f.k + i * n, s, functions, options, memory)  # noqa: F821
            status = at if status == CONVERGED else status
        size = improve(n, h, options.rtol, f, work)
        is_done, diverges = _is_solved(size, last, options.rtol)
        if is_done or diverges or status != CONVERGED:
            break
        last = size
    # 3. end of the step; k[0] is x' at the start again, which the stages have overwritten
    for a in range(n):
        work[f.k + a] = work[f.first + a]
        work[f.x_new + a] = work[f.x + a] + work[f.z + 2 * n + a]
    if not is_done or status != CONVERGED:
        return status, math.inf
    # 4. dense output, slope at the end, error
    _dense_output(n, f, work)
    status = derivative(time_in_step(t, 1.0, h), f.x_new, f.k + LAST * n, s, functions, options, memory)  # noqa: F821
    error = _error_of_step(n, h, f.k, options.rtol, f, work)
    # the estimate is too large for stiff components: it is filtered a second time
    if error > 1.0:
        for a in range(n):
            work[f.x_sampled + a] = work[f.x + a] + work[f.g + a]
        derivative(t, f.x_sampled, f.first, s, functions, options, memory)  # noqa: F821
        error = _error_of_step(n, h, f.first, options.rtol, f, work)
    return status, error if status == CONVERGED else math.inf


@kernel
def _prepare(n, h, p, memory):
    """Inverses of ``I - h A ⊗ J`` and ``gamma / h I - J``; False if one is singular."""
    work = memory.work
    m = 3 * n
    # 1. matrix of the stages
    for i in range(m):
        for j in range(m):
            unit = 1.0 if i == j else 0.0
            work[p.newton + i * m + j] = unit - h * A[i // n, j // n] * work[p.jac + i % n * n + j % n]
    if not invert_dense(m, p.newton, p.sizes, memory, p.stage_pivots):
        return False
    # 2. filter of the error
    for i in range(n):
        for j in range(n):
            work[p.filter + i * n + j] = (GAMMA / h if i == j else 0.0) - work[p.jac + i * n + j]
    return invert_dense(n, p.filter, p.sizes, memory, p.stage_pivots)


@kernel
def improve(n, h, rtol, p, work):
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
        s += (change / max(work[p.atol + i % n] + rtol * abs(work[p.x + i % n]), TINY)) ** 2
    return math.sqrt(s / m)


@tiny
def _is_solved(size, last, rtol):
    """(Whether Newton's method has come near enough, whether it diverges); size and last: of its last two changes, 0 of none.

    Changes that no longer fall and are next to nothing are rounding.
    """
    ratio = size / last if last > 0.0 else 1.0
    if size == 0.0 or (ratio < 1.0 and size * ratio / (1.0 - ratio) <= max(_UNITS * 2.0**-52 / rtol, min(_LOOSE, math.sqrt(rtol)))):
        return True, False
    stays = last > 0.0 and ratio >= _DIVERGES
    return stays and size <= _LOOSE, not size < math.inf or stays


@kernel
def _error_of_step(n, h, first, rtol, p, work):
    """Root mean square of the errors of all components, in the norm of the tolerances; the errors themselves in work[p.g:].

    first: offset of x' at the start of the step, or, for the second filter, at the start moved by the error.
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
        s += (error / max(work[p.atol + a] + rtol * max(abs(work[p.x + a]), abs(work[p.x_new + a])), TINY)) ** 2
    return math.sqrt(s / n)


@kernel
def _dense_output(n, p, work):
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


@kernel
def meet_rate(n, h, first, p, work):
    """Give dense output x' at the start, in work[first:], by a quartic that is zero at the start and all stages; poly has its order 4."""
    s, product = C[0] + C[1], C[0] * C[1]
    for a in range(n):
        off = (h * work[first + a] - work[p.poly + n + a]) / product
        work[p.poly + n + a] = h * work[first + a]
        work[p.poly + 2 * n + a] -= off * (product + s)
        work[p.poly + 3 * n + a] += off * (1.0 + s)
        work[p.poly + 4 * n + a] -= off


def steps_of(name, derivative, time_in_step):
    """(kernel of the slopes, kernel of a step) of motions with a right-hand side.

    derivative: ``(t, x, out, s, functions, options, mem, imem, work, iwork) -> status``, x' at the state work[x:] into work[out:];
    time_in_step: ``(t, theta, h)``, when theta of a step is; name: of the motions, which makes the kernels ones of their own.
    """
    names = {"derivative": derivative, "time_in_step": time_in_step}
    return kernel(specialised(_note_slopes, name, **names)), kernel(specialised(_take_step, name, **names))
