"""A law of a user's own for rows with bounds: each row that is no equation obeys ``z = law(rho, lower, upper, z, w)`` for every rho > 0.

The law is a compiled function, known by its address, of one row. That of bounds is ``min(max(z - rho w, lower), upper)``. Rows are solved
one after the other with ``rho = 1 / M_ii``: a law that is a function of ``z - rho w``, as proximal maps are, is solved in one evaluation.
"""

import math

from numba import float64

from nsds._jit import caller, kernel, tiny, view
from nsds.solvers.box.signature import diagonal, row_sum
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, SINGULAR, STALLED

ARGUMENTS = "rho, lower, upper, z, w"
LAW = float64(*(float64,) * 5)
_call_law = caller(LAW)
MAX_SWEEPS, PATIENCE = 10_000, 200


def work_size(n, row, column):
    """The best z."""
    return n, 0


@tiny
def look(k, error, least, patience, tol, z, best, info):
    """(status, least residual, patience) after sweep k, whose residual is error; MAX_ITER: go on. In/out: best, the z of the least one."""
    patience = PATIENCE if error < 0.999 * least else patience - 1
    if error < least:
        least = error
        for i in range(z.size):
            best[i] = z[i]
    info[0], info[1] = k, error
    if not math.isfinite(error):
        return NON_FINITE, least, patience
    return CONVERGED if error <= tol else STALLED if patience == 0 else MAX_ITER, least, patience


@kernel
def sweeps(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q`` with the law at the address options.weight; see the module. SINGULAR: M_ii <= 0.

    The residual is the norm of ``M_ii (z_i - law(1 / M_ii, ..))`` relative to the terms that cancel in w_i, beyond options.rounding.
    """
    law, n, best = int(options.weight), problem.q.size, view(work, 0, problem.q.size)
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_SWEEPS
    status, least, patience = MAX_ITER, math.inf, PATIENCE
    info[0], info[1] = 0, math.inf
    for i in range(n):
        if not diagonal(problem.row, problem.column, problem.M, i) > 0.0:
            return SINGULAR
    for k in range(limit + 1):
        error = residual(law, options.rounding, problem, z, w)
        status, least, patience = look(k, error, least, patience, options.tol, z, best, info)
        if status != MAX_ITER or k == limit:
            break
        for i in range(n):
            z[i] = _renewed(
                law, i, row_sum(i, problem, z)[0], diagonal(problem.row, problem.column, problem.M, i), problem.lower, problem.upper, z
            )
    if status in (MAX_ITER, STALLED):
        for i in range(n):
            z[i] = best[i]
        info[1] = residual(law, options.rounding, problem, z, w)
    return status


@kernel
def _renewed(law, i, w_i, M_ii, lower, upper, z):
    """z_i by its law, the others being held."""
    if lower[i] == -math.inf and upper[i] == math.inf:
        return z[i] - w_i / M_ii
    return _call_law(law, (1.0 / M_ii, lower[i], upper[i], z[i], w_i))


@kernel
def residual(law, rounding, problem, z, w):
    """See `sweeps`. Out: w."""
    error = 0.0
    for i in range(problem.q.size):
        M_ii = diagonal(problem.row, problem.column, problem.M, i)
        w[i], terms = row_sum(i, problem, z)
        missed = max(abs(M_ii * (z[i] - _renewed(law, i, w[i], M_ii, problem.lower, problem.upper, z))) - rounding, 0.0)
        error += (missed / terms) ** 2 if missed > 0.0 else 0.0 * (missed + z[i] + w[i])
    return math.sqrt(error)
