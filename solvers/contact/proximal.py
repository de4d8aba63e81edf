"""Proximal points: a sequence of regularised contact problems, each solved by Newton's method as far as it is worth it."""

import math

from nsds._jit import kernel, stack
from nsds.solvers.contact import newton
from nsds.solvers.contact.alart_curnier import ALART_CURNIER
from nsds.solvers.contact.signature import begin_progress, check, end, judge
from nsds.status import MAX_ITER, STALLED, UNSUITED

MAX_ITERATIONS = 1000  # steps of Newton's method in all
_FIRST, _LEAST, _MOST = 1e-2, 1e-12, 1e4  # eta relative to the mean diagonal of a block
_INNER, _QUICK = 25, 6  # steps of Newton's method for one regularised problem: the most, and few enough to take a smaller eta
_SMALLER, _GREATER = 0.1, 30.0  # factors of eta
_INEXACT = 0.1  # ||F|| of a regularised problem, relative to ||eta (r - centre)||


def work_size(d, row, column):
    """Newton's."""
    return newton.work_size(d, row, column)


@kernel
def solve_regularised(limit, inexact, problem, d, n_upper, r, u, work, iwork):
    """The problem with ``u = W r + q + eta (r - centre)``, from r, up to ``||F|| <= inexact ||eta (r - centre)||``.

    Returns (whether it was solved, number of steps).
    """
    (_, recent), (_, _, eta), (_, _, centre, _), _ = newton.parts(d, problem.disk.size, work)
    merit = newton.evaluate(ALART_CURNIER, problem, d, centre, r, u, work)
    for i in range(recent.size):
        recent[i] = merit
    for step in range(limit):
        bound = newton.largest(recent)
        merit, t = newton.advance(ALART_CURNIER, bound, problem, d, centre, n_upper, r, u, work, iwork)
        if t == 0.0:
            return False, step + 1
        moved = 0.0
        for i in range(problem.q.size):
            moved += (eta[i // d] * (r[i] - centre[i])) ** 2
        if merit <= inexact * inexact * moved:
            return True, step + 1
        recent[step % recent.size] = merit
    return False, limit


@kernel
def proximal(problem, options, r, u, info, work, iwork):
    """Contact problem by proximal points: r_{k+1} solves ``u = W r + q + eta (r - r_k)`` with the law.

    Each by Newton's method on Alart–Curnier's equations, up to ``||F|| <= 0.1 ||eta (r - r_k)||``; eta, a multiple of the diagonal, is
    made smaller where that was quick and greater where it failed. For W that is singular (hyperstatic problems), unsymmetric too.
    rho: the first eta over the diagonal; n_iter counts Newton's steps.
    STALLED: regularised problems fail whatever eta; UNSUITED: more contacts than `block_lu.LARGEST`.
    Reference: Acary, Brémond, Huber (2018), see `newton`, 4.4; Rockafellar, SIAM Journal on Control and Optimization 14 (1976) 877–898.
    """
    q = problem.q
    n = problem.disk.size
    d = q.size // max(n, 1)
    (x, _), (_, D, eta), (_, _, centre, best), _ = newton.parts(d, n, work)
    n_upper = newton.prepare(ALART_CURNIER, 0.0, problem, d, work, iwork)
    if n_upper < 0:
        judge(UNSUITED, 0, problem, options, r, u, info)
        return UNSUITED
    sigma = options.rho if options.rho > 0.0 else _FIRST
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_ITERATIONS
    n_iter, progress = 0, stack(4)
    begin_progress(math.inf, limit, progress)
    status = check(n_iter, progress, problem, options, r, u, info, best)
    while status == MAX_ITER and n_iter < limit:
        newton.set_eta(sigma, D, eta)
        for i in range(q.size):
            centre[i] = r[i]
        solved, steps = solve_regularised(min(_INNER, limit - n_iter), _INEXACT, problem, d, n_upper, r, u, work, iwork)
        n_iter += steps
        if solved:
            sigma = max(sigma * _SMALLER, _LEAST) if steps <= _QUICK else sigma
        else:
            for i in range(q.size):
                r[i] = centre[i]
            if sigma == _MOST:
                status = STALLED
                break
            sigma = min(sigma * _GREATER, _MOST)
        status = check(n_iter, progress, problem, options, r, u, info, best)
    return status if progress[2] == math.inf else end(status, n_iter, problem, options, r, u, info, best)
