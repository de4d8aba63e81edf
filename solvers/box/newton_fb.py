"""Newton's method on the Fischer–Burmeister equations, made global: a line search, and Levenberg–Marquardt where Newton does not help."""

import math

from nsds._jit import inlined, kernel, view
from nsds.solvers.box import band
from nsds.solvers.box.signature import clip, goes_on, is_affordable, judge, largest_in_row, multiply
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, STALLED

_LIMIT = 200
_SMALLEST_STEP = 2.0**-12
_DECREASE = 1e-4  # Armijo's condition
_LEAST, _MOST = 1e-12, 1e12  # Levenberg–Marquardt parameters, relative to the largest entry of J squared
_PROGRESS = 1e-12


def work_size(n, row, column):
    """The Jacobian by rows, the band of ``J^T J``; Phi, its two weights, direction, trial point and its w, scales."""
    return room(n, column.size, band.half_width(n, row, column)), 2 * n


@kernel
def room(n, nnz, half):
    """Floats of the scratch."""
    return nnz + band.room(n, wide(n, half)) + 8 * n


@kernel
def newton_fb(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q`` as ``Phi(z) = 0``: ``Phi_i = phi(z_i - lower_i, w_i)``, ``phi(a, b) = a + b - sqrt(a^2 + b^2)``.

    Two bounds: ``phi(z - lower, -phi(upper - z, -w))``; a free z_i: ``w_i``. Step: ``J d = -Phi``; where that is singular or does not lower
    ``|Phi|^2 / 2``, ``(J^T J + mu I) d = -J^T Phi``, with the least mu that does. Finds solutions of equations that are singular or that
    determine other unknowns than their own. STALLED: a stationary point that is no solution.
    References: De Luca, Facchinei, Kanzow, Mathematical Programming 75 (1996) 407–439; two bounds: Billups, thesis, Wisconsin 1995.
    """
    row, column, lower, upper = problem.row, problem.column, problem.lower, problem.upper
    n, nnz = problem.q.size, column.size
    J, A = view(work, 0, nnz), view(work, nnz + 8 * n, work.size - nnz - 8 * n)
    Phi, along, across, d = (view(work, nnz, n), view(work, nnz + n, n), view(work, nnz + 2 * n, n), view(work, nnz + 3 * n, n))
    z_new, w_new, scale = view(work, nnz + 4 * n, n), view(work, nnz + 5 * n, n), view(work, nnz + 6 * n, n)
    gradient = view(work, nnz + 7 * n, n)
    every, pivots = view(iwork, 0, n), view(iwork, n, n)
    half = band.measure(n, row, column)
    for i in range(n):
        every[i], scale[i] = i, largest_in_row(row, problem.M, i)
        scale[i] = scale[i] if scale[i] > 0.0 else 1.0
    clip(lower, upper, z)
    value = _equations(problem, scale, z, w, Phi, along, across)
    limit = int(options.max_iter) if options.max_iter > 0 else _LIMIT
    n_iter, work_done, cost, merit = 0, 0.0, n * (half + 1.0) ** 2, math.inf
    while True:
        for i in range(n):
            z_new[i] = min(max(z[i], lower[i]), upper[i])
        status = judge(MAX_ITER, n_iter, problem, options, z_new, w_new, info)
        if status == CONVERGED and goes_on(merit, options, problem, z_new, w_new, info):
            status = MAX_ITER
        merit = info[1]
        if status != MAX_ITER or n_iter == limit or not is_affordable(work_done, options):
            break
        n_iter += 1
        for i in range(n):
            for k in range(row[i], row[i + 1]):
                J[k] = across[i] * problem.M[k] + (along[i] if column[k] == i else 0.0)
        band.fill(n, half, row, column, J, every, every, A)
        advanced, step = False, 1.0
        work_done += cost
        if band.factorise(n, half, A, pivots):
            for i in range(n):
                d[i] = -Phi[i]
            band.substitute(n, half, A, pivots, d)
            while not advanced and step > _SMALLEST_STEP:
                trial = _try(step, problem, scale, z, d, z_new, w_new, Phi, along, across)
                advanced = trial <= (1.0 - 2.0 * _DECREASE * step) * value
                step *= 0.5
        if not advanced:
            _equations(problem, scale, z, w, Phi, along, across)
            _slope(row, column, J, Phi, gradient)
            mu, most = _dampings(J)
            while not advanced and mu < most and is_affordable(work_done, options):
                work_done += 3.0 * cost
                if _damped_step(n, wide(n, half), row, column, J, mu, gradient, A, pivots, d):
                    trial = _try(1.0, problem, scale, z, d, z_new, w_new, Phi, along, across)
                    advanced = trial < value * (1.0 - _PROGRESS)
                mu *= 10.0
        if not advanced:
            status = STALLED if math.isfinite(value) else NON_FINITE
            status = status if is_affordable(work_done, options) else MAX_ITER
            break
        for i in range(n):
            z[i] = z_new[i]
        value = trial
    clip(lower, upper, z)
    return judge(status, n_iter, problem, options, z, w, info)


@kernel
def wide(n, half):
    """Half width of ``J^T J``."""
    return min(2 * half, max(n - 1, 0))


@kernel
def _equations(problem, scale, z, w, Phi, along, across):
    """Phi, and the weights with ``dPhi_i = along_i dz_i + across_i dw_i``; returns ``|Phi|^2 / 2``. z counts with scale_i."""
    multiply(problem.row, problem.column, problem.M, problem.q, z, w)
    value = 0.0
    for i in range(z.size):
        f, a, b = w[i], 0.0, 1.0
        if problem.upper[i] < math.inf:
            f, a, b = _phi(scale[i] * (problem.upper[i] - z[i]), -w[i])
            f, a = -f, a * scale[i]
        if problem.lower[i] > -math.inf:
            f, c, e = _phi(scale[i] * (z[i] - problem.lower[i]), f)
            a, b = c * scale[i] + e * a, e * b
        Phi[i], along[i], across[i] = f, a, b
        value += 0.5 * f * f
    return value


@kernel
def _phi(a, b):
    """``a + b - sqrt(a^2 + b^2)`` and its derivatives; at the origin those along a = b."""
    r = math.hypot(a, b)
    if r == 0.0:
        return 0.0, 1.0 - math.sqrt(0.5), 1.0 - math.sqrt(0.5)
    f = 2.0 * a * b / (a + b + r) if a + b > 0.0 else a + b - r  # without cancellation
    return f, 1.0 - a / r, 1.0 - b / r


@kernel
def _try(step, problem, scale, z, d, z_new, w_new, Phi, along, across):
    """Value at ``z + step d``, which is left in z_new."""
    for i in range(z.size):
        z_new[i] = z[i] + step * d[i]
    return _equations(problem, scale, z_new, w_new, Phi, along, across)


@inlined
def _slope(row, column, J, Phi, gradient):
    """``J^T Phi``."""
    for i in range(Phi.size):
        gradient[i] = 0.0
    for i in range(Phi.size):
        for k in range(row[i], row[i + 1]):
            gradient[column[k]] += J[k] * Phi[i]


@inlined
def _dampings(J):
    """Least and largest Levenberg–Marquardt parameter."""
    largest = 0.0
    for k in range(J.size):
        largest = max(largest, J[k] ** 2)
    largest = largest if 0.0 < _LEAST * largest < math.inf else 1.0  # a square of small entries may vanish, and 10 times 0 is 0
    return _LEAST * largest, _MOST * largest


@inlined
def _damped_step(n, half, row, column, J, mu, gradient, A, pivots, d):
    """``(J^T J + mu I) d = -gradient`` in a band of the given half width. False: singular."""
    width = 3 * half + 1
    for k in range(n * width):
        A[k] = 0.0
    for i in range(n):
        A[i * width + half] += mu
        d[i] = -gradient[i]
        for k in range(row[i], row[i + 1]):
            shift = column[k] * width + half - column[k]
            for m in range(row[i], row[i + 1]):
                A[shift + column[m]] += J[k] * J[m]
    if not band.factorise(n, half, A, pivots):
        return False
    band.substitute(n, half, A, pivots, d)
    return True
