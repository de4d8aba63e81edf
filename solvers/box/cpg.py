"""Projected conjugate gradients: O(nnz) an iteration, for large symmetric problems."""

import math

from nsds._jit import kernel, stack, view
from nsds.solvers.box.signature import affordable, clip, diagonal, judge, look, multiply
from nsds.status import MAX_ITER, RAY, SINGULAR, STALLED

_LIMIT = 100  # times the number of unknowns
_CHECKED = 20  # iterations between two checks of the merit
_PATIENCE = 50  # checks without progress before the method has stalled


def work_size(n, row, column):
    """Preconditioner, gradient, direction and its product."""
    return 4 * n, 0


@kernel
def cpg(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q`` with symmetric M: minimise ``z^T M z / 2 + q^T z`` over the box.

    Conjugate gradients on the face of the present active set; a step that would leave the box is cut at its border and followed by a
    projected gradient step; the face is left when the gradient across it dominates the one along it. Diagonal preconditioner.
    Linear convergence for positive definite M. RAY: the objective falls without end. SINGULAR: M_ii <= 0.
    Reference: Dostál, Schöberl, Computational Optimization and Applications 30 (2005) 23–43 (MPRGP).
    """
    row, column, M, q, lower, upper = problem.row, problem.column, problem.M, problem.q, problem.lower, problem.upper
    n = q.size
    D, g, p, Mp = view(work, 0, n), view(work, n, n), view(work, 2 * n, n), view(work, 3 * n, n)
    alpha = 0.0
    for i in range(n):
        d = diagonal(row, column, M, i)
        if not d > 0.0:
            return judge(SINGULAR, 0, problem, options, z, w, info)
        D[i] = 1.0 / d
        size = 0.0
        for k in range(row[i], row[i + 1]):
            size += abs(M[k])
        alpha = max(alpha, size * D[i])
    alpha = 1.9 / alpha
    clip(lower, upper, z)
    multiply(row, column, M, q, z, g)
    _restart(lower, upper, z, g, D, p)
    limit = int(options.max_iter) if options.max_iter > 0 else affordable(_LIMIT * n, M.size + 10.0 * n)
    progress, first = stack(2), 0.0
    progress[0], progress[1] = math.inf, _PATIENCE
    for n_iter in range(1, limit + 1):
        along, across = _gradients(alpha, lower, upper, z, g, D)
        first = max(first, along + across)
        if not along + across > 0.0:
            return judge(STALLED, n_iter - 1, problem, options, z, w, info)
        if across > along:
            _restart_across(lower, upper, z, g, D, p)
        curvature, slope, room = _product(problem, z, g, p, Mp)
        step = slope / curvature if curvature > 0.0 else math.inf
        if min(step, room) == math.inf:
            return judge(RAY if slope > 0.0 else STALLED, n_iter, problem, options, z, w, info)
        for i in range(n):
            z[i] = min(max(z[i] - min(step, room) * p[i], lower[i]), upper[i])
            g[i] -= min(step, room) * Mp[i]
        if across > along or room < step:
            if room < step:
                _projected_step(alpha, lower, upper, z, g, D)
                multiply(row, column, M, q, z, g)
            _restart(lower, upper, z, g, D, p)
        else:
            _conjugate(curvature, lower, upper, z, g, D, p, Mp)
        if n_iter % _CHECKED == 0 or along + across <= options.tol**2 * first:
            status = look(n_iter, _PATIENCE, progress, problem, options, z, w, info)
            if status != MAX_ITER:
                return status
            for i in range(n):
                g[i] = w[i]
    return judge(MAX_ITER, limit, problem, options, z, w, info)


@kernel
def _gradients(alpha, lower, upper, z, g, D):
    """Squares, weighted with D, of the gradient along the face (cut where the border is near) and across it."""
    along = across = 0.0
    for i in range(z.size):
        if lower[i] < z[i] < upper[i]:
            step = D[i] * g[i]
            cut = min((z[i] - lower[i]) / alpha, step) if step > 0.0 else max((z[i] - upper[i]) / alpha, step)
            along += cut * g[i]
        elif lower[i] < upper[i]:
            inwards = min(g[i], 0.0) if z[i] == lower[i] else max(g[i], 0.0)
            across += inwards * D[i] * inwards
    return along, across


@kernel
def _restart(lower, upper, z, g, D, p):
    """Direction: the preconditioned gradient along the face."""
    for i in range(z.size):
        p[i] = D[i] * g[i] if lower[i] < z[i] < upper[i] else 0.0


@kernel
def _restart_across(lower, upper, z, g, D, p):
    """Direction: the preconditioned gradient across the face, inwards."""
    for i in range(z.size):
        at_lower, at_upper = z[i] == lower[i] and z[i] < upper[i], z[i] == upper[i] and z[i] > lower[i]
        p[i] = D[i] * (min(g[i], 0.0) if at_lower else max(g[i], 0.0) if at_upper else 0.0)


@kernel
def _product(problem, z, g, p, Mp):
    """``M p``, the curvature and slope along p, and how far ``z - step p`` stays in the box."""
    curvature = slope = 0.0
    room = math.inf
    for i in range(z.size):
        s = 0.0
        for k in range(problem.row[i], problem.row[i + 1]):
            s += problem.M[k] * p[problem.column[k]]
        Mp[i] = s
        curvature += p[i] * s
        slope += g[i] * p[i]
        if p[i] > 0.0:
            room = min(room, (z[i] - problem.lower[i]) / p[i])
        elif p[i] < 0.0:
            room = min(room, (z[i] - problem.upper[i]) / p[i])
    return curvature, slope, room


@kernel
def _projected_step(alpha, lower, upper, z, g, D):
    """``z <- P(z - alpha D g)`` along the face."""
    for i in range(z.size):
        if lower[i] < z[i] < upper[i]:
            z[i] = min(max(z[i] - alpha * D[i] * g[i], lower[i]), upper[i])


@kernel
def _conjugate(curvature, lower, upper, z, g, D, p, Mp):
    """Next direction on the same face, conjugate to the last one."""
    beta = 0.0
    for i in range(z.size):
        if lower[i] < z[i] < upper[i]:
            beta += D[i] * g[i] * Mp[i]
    beta /= curvature
    for i in range(z.size):
        p[i] = D[i] * g[i] - beta * p[i] if lower[i] < z[i] < upper[i] else 0.0
