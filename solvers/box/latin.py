"""LATIN: global linear stages and local nonlinear ones, in turns; one factorisation for all iterations."""

import math

from nsds._jit import kernel, stack, view
from nsds.solvers.box import band
from nsds.solvers.box.signature import affordable, diagonal, judge, largest_in_row, look
from nsds.status import MAX_ITER, SINGULAR

_LIMIT = 20_000
_CHECKED = 20  # iterations between two checks of the merit
_PATIENCE = 50  # checks without progress before the method has stalled
_RELAXATION = 1.6  # of z between two linear stages


def work_size(n, row, column):
    """The band of ``M + K``, K, and the iterate of the linear stage."""
    return band.room(n, band.half_width(n, row, column)) + 3 * n, 2 * n


@kernel
def latin(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``. K diagonal: the search directions, weight (1 if not given) times ``|M_ii|``.

    Local stage, from a: ``z = P(a)``, ``w = K (z - a)``. Linear stage: ``(M + K) b = K z + w - q``. Then ``a <- a + 1.6 (b - z)``.
    Converges for every positive semidefinite M with a solution (a Douglas–Rachford splitting). SINGULAR: ``M + K`` is.
    Reference: Dureisseix, Alart, Computer Methods in Applied Mechanics and Engineering 189 (2000) 1029–1057.
    """
    row, column, M = problem.row, problem.column, problem.M
    n = problem.q.size
    half = band.measure(n, row, column)
    K, a, b = view(work, 0, n), view(work, n, n), view(work, 2 * n, n)
    A = view(work, 3 * n, band.room(n, half))
    every, pivots = view(iwork, 0, n), view(iwork, n, n)
    weight = options.weight if options.weight > 0.0 else 1.0
    for i in range(n):
        every[i], largest, d = i, largest_in_row(row, M, i), abs(diagonal(row, column, M, i))
        K[i] = weight * (d if d > 0.0 else largest if largest > 0.0 else 1.0)
    band.fill(n, half, row, column, M, every, every, A)
    for i in range(n):
        A[i * (3 * half + 1) + half] += K[i]
    if not band.factorise(n, half, A, pivots):
        return judge(SINGULAR, 0, problem, options, z, w, info)
    for i in range(n):
        a[i] = z[i]
    limit = int(options.max_iter) if options.max_iter > 0 else affordable(_LIMIT, 4.0 * n * (half + 1))
    progress = stack(2)
    progress[0], progress[1] = math.inf, _PATIENCE
    for n_iter in range(1, limit + 1):
        settled = True
        for i in range(n):
            z[i] = min(max(a[i], problem.lower[i]), problem.upper[i])
            b[i] = K[i] * (2.0 * z[i] - a[i]) - problem.q[i]
        band.substitute(n, half, A, pivots, b)
        for i in range(n):
            settled &= abs(b[i] - z[i]) <= options.tol * abs(b[i])
            a[i] += _RELAXATION * (b[i] - z[i])
        if n_iter % _CHECKED == 0 or settled:
            status = look(n_iter, _PATIENCE, progress, problem, options, z, w, info)
            if status != MAX_ITER:
                return status
    return judge(MAX_ITER, limit, problem, options, z, w, info)
