"""Projection methods for the variational inequality of the contact law: products with W and projections, whatever W is."""

import math

from nsds._jit import kernel, stack, tiny
from nsds.solvers.contact import scaled
from nsds.solvers.contact.scaled import CHECKED, CONE, MAX_ITERATIONS, PATIENCE, hat, layout, look, scaled_velocity, start, step
from nsds.solvers.contact.signature import begin_progress, end
from nsds.status import MAX_ITER

_MOST, _LITTLE = 0.9, 0.3  # of t times the local Lipschitz constant: a longer step is cut, after a shorter one t grows
_CUT, _GROW = 2.0 / 3.0, 1.5
_CUTS = 60
_RELAXED = 1.8  # in (0, 2); 1 minimises He and Liao's bound of the distance to a solution, but takes twice the iterations

work_size = scaled.work_size


@kernel
def fixed_point(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q``: ``r <- P_K(r - t uhat(r))``, one product with W an iteration.

    In the coordinates of `nsds.solvers.contact.scaled`, or with options.rho > 0 in such that S^2 is that for all. t is cut until
    ``t ||F(y) - F(y_new)|| <= 0.9 ||y - y_new||``, and grows where 0.3 is not reached. Proved to converge where mu ||u_T|| is constant,
    and W symmetric and positive semidefinite. STALLED: 10 000 iterations without progress. Returns the best r that it checked.
    Reference: Khobotov, USSR Computational Mathematics and Mathematical Physics 27 (1987) 120–127 (the rule for t).
    """
    return _iterate(False, problem, options, r, u, info, work)


@kernel
def extragradient(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q``: ``r_new = P_K(r - t uhat(r))``, ``r <- P_K(r - 1.8 alpha t uhat(r_new))``, two products with W.

    t as in `fixed_point`; ``alpha = e'd / d'd`` with ``e = y - y_new``, ``d = e - t (F(y) - F(y_new))``, at least 1/2; Korpelevich's method
    has 1 in place of 1.8 alpha. Proved to converge where mu ||u_T|| is constant, and W + W' positive semidefinite.
    STALLED: 10 000 iterations without progress. Returns the best r that it checked.
    References: Korpelevich, Matecon 12 (1976) 747–756; He, Liao, Journal of Optimization Theory and Applications 112 (2002) 111–128.
    """
    return _iterate(True, problem, options, r, u, info, work)


@kernel
def _iterate(twice, problem, options, r, u, info, work):
    """Both methods."""
    disk = problem.disk
    v = layout(problem.q.size, disk.size, work)
    small = start(problem, options, r, work)
    _evaluate(problem, v.mu_y, v.S, v.y, r, u, v.F)
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_ITERATIONS
    status, n_iter, t, progress = MAX_ITER, 0, 1.0, stack(4)
    begin_progress(math.inf, PATIENCE, progress)
    while status == MAX_ITER and n_iter < limit:
        moved = changed = product = ratio = 0.0
        for _ in range(_CUTS):
            step(CONE, t, disk, v.mu_y, v.radius, v.y, v.F, v.y_new)
            _evaluate(problem, v.mu_y, v.S, v.y_new, r, u, v.F_new)
            moved, changed, product = _differences(v.y, v.y_new, v.F, v.F_new)
            ratio = t * math.sqrt(changed / moved) if moved > 0.0 else 0.0
            if not ratio > _MOST:
                break
            t *= _CUT * min(1.0, 1.0 / ratio)
        residual = math.sqrt(moved) / t if t > 0.0 else math.inf
        if twice and moved > 0.0:
            alpha = (moved - t * product) / (moved - 2.0 * t * product + t * t * changed)
            step(CONE, _RELAXED * alpha * t, disk, v.mu_y, v.radius, v.y, v.F_new, v.y)
            _evaluate(problem, v.mu_y, v.S, v.y, r, u, v.F)
        else:
            for i in range(problem.q.size):
                v.y[i], v.F[i] = v.y_new[i], v.F_new[i]
        t *= _GROW if ratio < _LITTLE else 1.0
        n_iter += 1
        if not residual > small or n_iter % CHECKED == 0 or n_iter == limit:
            status = look(n_iter, progress, problem, options, r, u, info, v.best)
            small = min(small, 0.5 * residual)
    return end(status, n_iter, problem, options, r, u, info, v.best)


@kernel
def _evaluate(problem, mu_y, S, y, r, u, F):
    """``F = S uhat``."""
    disk = problem.disk
    scaled_velocity(problem, S, y, r, u, F)
    d = problem.q.size // max(disk.size, 1)
    for c in range(disk.size):
        F[c * d] += hat(disk, mu_y, d, c, F)


@tiny
def _differences(y, y_new, F, F_new):
    """``||e||^2``, ``||f||^2`` and ``e'f`` with ``e = y - y_new``, ``f = F - F_new``."""
    moved = changed = product = 0.0
    for i in range(y.size):
        moved += (y[i] - y_new[i]) ** 2
        changed += (F[i] - F_new[i]) ** 2
        product += (y[i] - y_new[i]) * (F[i] - F_new[i])
    return moved, changed, product
