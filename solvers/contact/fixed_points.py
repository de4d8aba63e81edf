"""Contact problems as sequences of convex ones, each of which accelerated projected gradients bring a little nearer to its solution.

    aclm               min over K of ``r' W r / 2 + (q + s e_N)' r``,    then ``s <- mu ||u_T|| + mu_r ||u_R||``
    tresca             ``0 <= u_N ⟂ r_N >= 0`` and ``-u_T ∈ N_D(r_T)``, D the disk of radius g (and so for R),    then ``g <- mu r_N``
    panagiotopoulos    ``0 <= u_N ⟂ r_N >= 0`` with r_T held,    then ``-u_T ∈ N_D(r_T)`` with r_N held, D of radius ``mu r_N``

A convex problem is left when its own residual is a tenth of the first, which is about that of the law, or after 500 steps: to solve it
exactly would help no more, as the law asks for another. CONVERGED is said of the law alone. That the sequences converge is proved for
small mu only. options.rho as in `nsds.solvers.contact.accelerated`; n_iter and max_iter count convex problems (of panagiotopoulos:
pairs), of which 100 000 steps are spent if it is not given. STALLED: 400 without progress. All return the best r that they checked.
"""

import math

from nsds._jit import kernel, stack
from nsds.solvers.contact import scaled
from nsds.solvers.contact.accelerated import advance, follow, rest
from nsds.solvers.contact.scaled import CONE, CYLINDER, NORMAL, PATIENCE, TANGENT, layout, look, radii, start
from nsds.solvers.contact.signature import begin_progress, end
from nsds.status import MAX_ITER

MAX_PROBLEMS = 2000
_ENOUGH = 0.1  # of a convex problem's first residual
_MAX_STEPS = 500
_STEPS_IN_ALL = 100_000  # where max_iter is not given

work_size = scaled.work_size


@kernel
def tresca(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q`` as a sequence of problems with a given threshold of friction; see the module.

    Reference: Haslinger, Mathematical Methods in the Applied Sciences 5 (1983) 422–437.
    """
    return _iterate(CYLINDER, problem, options, r, u, info, work)


@kernel
def aclm(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q`` as a sequence of second-order cone programs; see the module.

    Reference: Acary, Cadoux, Lemaréchal, Malick, ZAMM 91 (2011) 155–175.
    """
    return _iterate(CONE, problem, options, r, u, info, work)


@kernel
def panagiotopoulos(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q``, its normal and its tangential part in turn; see the module.

    Reference: Panagiotopoulos, Ingenieur-Archiv 44 (1975) 421–432.
    """
    return _iterate(NORMAL, problem, options, r, u, info, work)


@kernel
def _iterate(shape, problem, options, r, u, info, work):
    """All three; the shape is that of the first convex problem."""
    v = layout(problem.q.size, problem.disk.size, work)
    start(problem, options, r, work)
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_PROBLEMS
    n_iter, left = 0, _MAX_STEPS * limit if options.max_iter > 0 else _STEPS_IN_ALL
    progress = stack(4)
    begin_progress(math.inf, PATIENCE, progress)
    status = look(0, progress, problem, options, r, u, info, v.best)
    while status == MAX_ITER and n_iter < limit and left > 0:
        left -= _approach(shape, min(_MAX_STEPS, left), problem, r, u, work)
        if shape == NORMAL:
            left -= _approach(TANGENT, _MAX_STEPS, problem, r, u, work)
        n_iter += 1
        status = look(n_iter, progress, problem, options, r, u, info, v.best)
    return end(status, n_iter, problem, options, r, u, info, v.best)


@kernel
def _approach(shape, limit, problem, r, u, work):
    """From y towards the solution of the convex problem that belongs to y, in at most limit steps; returns their number."""
    disk = problem.disk
    v = layout(problem.q.size, disk.size, work)
    rest(shape, problem, r, u, work)
    if shape == CONE:
        follow(disk, problem.q.size, work)
    else:
        radii(disk, v.mu_y, v.y, v.radius)
    residual, enough, n_steps = math.inf, 0.0, 0
    while n_steps < limit and not residual <= enough:
        residual = advance(shape, problem, r, u, work)
        enough = _ENOUGH * residual if n_steps == 0 else enough
        n_steps += 1
    return n_steps
