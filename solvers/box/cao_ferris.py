"""Affine variational inequalities over a polyhedron: a feasible vertex first, then complementary pivoting along its normal cone."""

import math

from nsds._jit import kernel
from nsds.solvers.box.lemke import cover, follow_path
from nsds.solvers.box.signature import affordable, judge
from nsds.solvers.box.tableau import (
    EPS,
    dictionary,
    exchange,
    fill,
    is_free,
    move,
    pivot_equations,
    pivot_largest,
    read,
    row_is_a_proof,
    work_size,
)
from nsds.status import CONVERGED, INFEASIBLE, MAX_ITER, RAY, UNSUITED

__all__ = ["cao_ferris", "work_size"]


@kernel
def cao_ferris(problem, options, z, w, info, work, iwork):
    """``0 = M x + q - G^T lam``, ``0 <= lam ⟂ G x - g >= 0``: rows of free z (x), and of z between 0 and infinity (lam), without lam in w.

    A vertex of the polyhedron by the simplex method, then the path of Lemke with the covering vector inside the normal cone at the
    vertex. Solves every such problem with M copositive plus on the recession cone, so for every M where the polyhedron is bounded.
    INFEASIBLE: the polyhedron is empty, or a ray proves that there is no solution. SINGULAR: the polyhedron holds lines on which M
    vanishes. UNSUITED: problems of another form.
    Reference: Cao, Ferris, Mathematics of Operations Research 21 (1996) 382–401.
    """
    n = problem.q.size
    if not _is_variational(problem):
        judge(UNSUITED, 0, problem, options, z, w, info)
        return UNSUITED
    size = fill(problem, work, iwork)
    limit = int(options.max_iter) if options.max_iter > 0 else affordable(100 + 20 * n, float(n) * n)
    pivot_largest(n, True, False, work, iwork)  # x into the rows of slacks G x - g
    status, n_iter = _find_vertex(n, limit, work, iwork)
    if status == INFEASIBLE and not row_is_a_proof(iwork[2 * n + 1 + 2 * n], problem, work, iwork, z, w):
        status = RAY
    if status == CONVERGED:
        pivot_largest(n, False, True, work, iwork)  # multipliers of the faces at the vertex into the rows of M x + q - G^T lam
        status = pivot_equations(problem, work, iwork, z, w)
    if status == CONVERGED:
        cover(n, n, work, iwork)
        status, n_path = follow_path(problem, limit, work, iwork, z, w)
        n_iter += n_path
    read(problem, size, work, iwork, z, w)
    return judge(status, n_iter, problem, options, z, w, info)


@kernel
def _is_variational(problem):
    lower = problem.lower
    fits = True
    for i in range(lower.size):
        free = lower[i] == -math.inf and problem.upper[i] == math.inf
        fits &= free or (lower[i] == 0.0 and problem.upper[i] == math.inf)
        for k in range(problem.row[i], problem.row[i + 1]):
            fits &= free or lower[problem.column[k]] == -math.inf or problem.M[k] == 0.0
    return fits


@kernel
def _find_vertex(n, limit, work, iwork):
    """Phase one of the simplex method on the slacks: all of them + t, t driven to 0, by Bland's rule. Returns (status, n_iter)."""
    D = dictionary(n, work, iwork)
    t, worst = 0.0, n
    for r in range(n):
        slack = D.basic[r] < n and not is_free(n, n + D.basic[r], work, iwork)
        D.T[r * (n + 1) + n] = 1.0 if slack else 0.0
        if slack and -D.x[r] > t:
            t, worst = -D.x[r], r
    if t <= EPS:
        return CONVERGED, 0
    move(n, n, t, work, iwork)
    exchange(n, worst, n, work, iwork)
    D.y[n] = 0.0
    for n_iter in range(1, limit + 1):
        row_t, c = D.place[2 * n], n + 1
        for j in range(n + 1):
            improves = D.nonbasic[j] < n and not is_free(n, n + D.nonbasic[j], work, iwork) and D.T[row_t * (n + 1) + j] < -EPS
            if improves and (c > n or D.nonbasic[j] < D.nonbasic[c]):
                c = j
        if c > n:
            return INFEASIBLE, n_iter
        r, least = row_t, D.x[row_t] / -D.T[row_t * (n + 1) + c]
        for i in range(n):
            if D.basic[i] < n and not is_free(n, n + D.basic[i], work, iwork) and D.T[i * (n + 1) + c] < -EPS:
                ratio = max(D.x[i], 0.0) / -D.T[i * (n + 1) + c]
                if ratio < least or (ratio == least and D.basic[r] < n and D.basic[i] < D.basic[r]):
                    r, least = i, ratio
        move(n, c, least, work, iwork)
        exchange(n, r, c, work, iwork)
        D.y[c] = 0.0
        if D.nonbasic[c] == 2 * n:
            return CONVERGED, n_iter
    return MAX_ITER, limit
