"""Conjugate projected gradients for contacts in the plane: directions that stay in the faces where the iterate is."""

import math

from nsds._jit import inlined, kernel, tiny, view
from nsds.solvers.contact.signature import EQUATION, end, judge, keep_better, multiply
from nsds.status import CONVERGED, MAX_ITER, STALLED, UNSUITED

MAX_ITERATIONS = 10_000
_CHECKED = 10  # iterations between two checks of the residual
_PATIENCE = 100  # checks without progress after which the iteration has stalled
_EDGE = 1e-12  # distance from the rim of a disk, relative to its radius, that is rounding


def work_size(d, row, column):
    """Residual, direction, its image under W, zeros, the best r, and scratch of one contact."""
    return 5 * d * (row.size - 1) + 5, 0


@inlined
def _project(disk, mu, r):
    """``r_N <- (r_N)_+``, then ``|r_T| <= mu r_N``; True where that changes r."""
    cut = False
    for c in range(disk.size):
        if disk[c] != EQUATION:
            n, t = 2 * c, 2 * c + 1
            r_n = max(r[n], 0.0)
            r_t = min(max(r[t], -mu[n] * r_n), mu[n] * r_n)
            cut |= r_n != r[n] or r_t != r[t]
            r[n], r[t] = r_n, r_t
    return cut


@kernel
def _into_set(disk, mu, r, x):
    """``x <- `` its projection onto the directions that do not leave ``r_N >= 0`` and, r_N being held, ``|r_T| <= mu r_N``."""
    for c in range(disk.size):
        if disk[c] == EQUATION:
            continue
        n, t, rim = 2 * c, 2 * c + 1, mu[2 * c] * r[2 * c] * (1.0 - _EDGE)
        if r[n] == 0.0:
            x[n] = max(x[n], 0.0)
        if not rim > 0.0:
            x[t] = 0.0
        elif r[t] >= rim:
            x[t] = min(x[t], 0.0)
        elif r[t] <= -rim:
            x[t] = max(x[t], 0.0)


@tiny
def _dot(x, y):
    s = 0.0
    for i in range(x.size):
        s += x[i] * y[i]
    return s


@kernel
def cpg(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q`` by conjugate gradients within the faces, the disks following r_N.

        r <- P(r + alpha p),    alpha = w'p / p'Wp,    p <- w + beta z,    beta = -w'Wp / p'Wp

    with w and z the projections of -u and p onto the directions that stay within ``r_N >= 0`` and ``|r_T| <= mu r_N`` at the new r;
    beta = 0 where P has cut the step, p = w where w'p <= 0. For symmetric positive semidefinite W; not proved to converge with friction.
    In space it would not: a step along the rim of a disk whose curvature it does not see overshoots. STALLED: no progress; UNSUITED: not
    in the plane.
    Reference: Renouf, Alart, Computer Methods in Applied Mechanics and Engineering 194 (2005) 2019–2041.
    """
    disk, mu = problem.disk, problem.mu
    n = problem.q.size
    w, p, Wp, zeros, best = (
        view(work, 5, n),
        view(work, 5 + n, n),
        view(work, 5 + 2 * n, n),
        view(work, 5 + 3 * n, n),
        view(work, 5 + 4 * n, n),
    )
    if n != 2 * disk.size:
        judge(UNSUITED, 0, problem, options, r, u, info)
        return UNSUITED
    for i in range(n):
        zeros[i], p[i] = 0.0, 0.0
    cut = _project(disk, mu, r)
    for i in range(n):
        best[i] = r[i]
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_ITERATIONS
    status, least, patience = MAX_ITER, math.inf, _PATIENCE
    curvature = 0.0
    for k in range(limit + 1):
        if k % _CHECKED == 0 or k == limit:
            status = judge(MAX_ITER, k, problem, options, r, u, info)
            patience = _PATIENCE if info[1] < 0.999 * least else patience - 1
            least = keep_better(info[1], least, r, best)
            if status == CONVERGED:
                return status
            if patience == 0 or k == limit:
                break
        multiply(problem.row, problem.column, problem.W, problem.q, r, u)
        for i in range(n):
            w[i] = -u[i]
        _into_set(disk, mu, r, w)
        _into_set(disk, mu, r, p)
        beta = -_dot(w, Wp) / curvature if curvature > 0.0 and not cut else 0.0
        for i in range(n):
            p[i] = w[i] + beta * p[i]
        if not _dot(w, p) > 0.0:
            for i in range(n):
                p[i] = w[i]
        multiply(problem.row, problem.column, problem.W, zeros, p, Wp)
        curvature = _dot(p, Wp)
        alpha = _dot(w, p) / curvature if curvature > 0.0 else 0.0
        for i in range(n):
            r[i] += alpha * p[i]
        cut = _project(disk, mu, r)
    return end(STALLED if patience == 0 else MAX_ITER, info[0], problem, options, r, u, info, best)
