"""Impulses of least norm: of all solutions of a redundant contact problem the one with the least sum of squares, as under four legs.

With ``u = W r + q + eta r`` the problem has one solution, which tends to that as eta falls (Tikhonov, Arsenin, Solutions of Ill-Posed
Problems, 1977; for complementarity problems Facchinei, Pang, Finite-Dimensional Variational Inequalities, 2003, 12.2). eta is the same for
all impulses: a weight for each, as the diagonal of W, would be another norm.
"""

from nsds._jit import kernel
from nsds.solvers.contact import newton
from nsds.solvers.contact.proximal import MAX_ITERATIONS, proximal, solve_regularised
from nsds.solvers.contact.signature import Options, judge
from nsds.status import MAX_ITER, UNSUITED

_FIRST, _SMALLER, _LAST = 1e-1, 1e-1, 1e-7  # eta relative to the mean diagonal
_EXACT = 1e-5  # ||F|| of a regularised problem, relative to ||eta r||: error of the shares
_INNER = 30  # steps of Newton's method for one of them


def work_size(d, row, column):
    """Newton's."""
    return newton.work_size(d, row, column)


@kernel
def least_norm(problem, options, r, u, info, work, iwork):
    """Contact problem by a sequence of regularised ones with falling eta, from r = 0; then `proximal`, which moves r by O(eta).

    For W that is positive semidefinite; with friction the norm is least among the solutions near that of the regularised problem.
    n_iter counts Newton's steps. UNSUITED: more contacts than `block_lu.LARGEST`.
    """
    n = problem.disk.size
    d = problem.q.size // max(n, 1)
    (_, _), (_, D, eta), (_, _, centre, _), _ = newton.parts(d, n, work)
    n_upper = newton.prepare(newton.ALART_CURNIER, 0.0, problem, d, work, iwork)
    if n_upper < 0:
        judge(UNSUITED, 0, problem, options, r, u, info)
        return UNSUITED
    # 1. one scale for all, and no impulses
    mean = 0.0
    for c in range(n):
        mean += D[c] / n
    for i in range(problem.q.size):
        r[i] = centre[i] = 0.0
    # 2. regularised problems, each from the last one
    limit = int(options.max_iter) if options.max_iter > 0.0 else MAX_ITERATIONS
    sigma, n_iter, is_solved = _FIRST, 0, True
    while is_solved and sigma >= _LAST and n_iter < limit:
        for c in range(n):
            eta[c] = sigma * mean
        is_solved, steps = solve_regularised(min(_INNER, limit - n_iter), _EXACT, problem, d, n_upper, r, u, work, iwork)
        sigma, n_iter = sigma * _SMALLER, n_iter + steps
    # 3. the problem itself
    if n_iter == limit:
        return judge(MAX_ITER, n_iter, problem, options, r, u, info)
    left = float(limit - n_iter)
    own = Options(options.tol, left, options.local, _LAST, options.seed, options.freeze, options.enough, options.inexact, options.patience)
    status = proximal(problem, own, r, u, info, work, iwork)
    info[0] += n_iter
    return status
