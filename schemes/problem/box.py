"""One-step problems with bounds: solution by a solver, and accuracy of the result."""

from nsds._jit import inlined, kernel, tiny, view
from nsds.solvers.box.newton_min import one_unknown
from nsds.solvers.box.signature import UNDERFLOW, Options, call_solver, problem_of
from nsds.status import CONVERGED, INEXACT, INFEASIBLE, MAX_ITER, RAY, SINGULAR, STALLED

_ROUNDING = 2.0**-52  # of the terms of a row
ULPS = 64 * _ROUNDING  # relative to the terms that cancel in q: its possible error


@tiny
def rounding_of(most):
    """Largest error of q by rounding; most: the largest sum of terms that cancel in one of its rows."""
    return max(ULPS * most, UNDERFLOW)


@inlined
def solve(n, row, column, W, p, solver, solver_options, at_once, memory):
    """Solve the problem of n unknowns, with W on the pattern (row, column) and the rest at the offsets of the plan.

    at_once: one unknown gets its root here, as `nsds.solvers.box.auto` would give it: the call alone takes longer. An error of q by
    rounding, which its caller leaves in p.rounding, does not count. Returns the solver's status, or INEXACT if the residual exceeds the
    tolerance but the solution is still useful; then the residual is in units of w.
    """
    work = memory.work
    asked = solver_options
    own = Options(asked.tol, asked.max_iter, asked.weight, asked.block, work[p.rounding], asked.inexact)
    M, q, lower, upper = view(work, W, column.size), view(work, p.q, n), view(work, p.lower, n), view(work, p.upper, n)
    z, w, info = view(work, p.z, n), view(work, p.w, n), view(work, p.info, 3)
    if at_once and n == 1 and M[0] > 0.0:
        status = one_unknown(M, q, lower, upper, own, z, w, info)
    else:
        status = _call(n, row, column, W, p, solver, own, memory)
    return status if status == CONVERGED else _judge(status, asked.inexact, n, row, column, W, p, work)


@kernel
def _call(n, row, column, W, p, solver, own, memory):
    """Call the solver; here, as the value of a problem goes by its address, which the steps that state it pay for even without a call."""
    work = memory.work
    M, q, lower, upper = view(work, W, column.size), view(work, p.q, n), view(work, p.lower, n), view(work, p.upper, n)
    z, w, info = view(work, p.z, n), view(work, p.w, n), view(work, p.info, 3)
    scratch, iscratch = view(work, p.solver, p.n_solver), view(memory.iwork, p.isolver, p.n_isolver)
    return call_solver(solver, (problem_of((row, column, M, q, lower, upper)), own, z, w, info, scratch, iscratch))


@kernel
def _judge(status, inexact, n, row, column, W, p, work):
    """INEXACT for an unsolved problem whose rows deviate by at most that part of the largest ``|q|``, in units of w; else the status.

    The deviation of a row is the median of w, ``W_ii (z - lower)`` and ``W_ii (z - upper)``: the missing velocity, or that of z; plus the
    rounding of w, which dominates if impulses have grown against each other.
    """
    if status not in (MAX_ITER, STALLED, RAY, SINGULAR, INFEASIBLE):
        return status
    error = scale = 0.0
    # w, the size of its terms, and the unit of z by the diagonal, or by the largest entry of the row
    for i in range(n):
        w, terms, unit, most = work[p.q + i], abs(work[p.q + i]), 0.0, 0.0
        for k in range(row[i], row[i + 1]):
            w += work[W + k] * work[p.z + column[k]]
            terms += abs(work[W + k] * work[p.z + column[k]])
            most = max(most, abs(work[W + k]))
            if column[k] == i:
                unit = abs(work[W + k])
        unit = unit if unit > 0.0 else most if most > 0.0 else 1.0
        z, lower, upper = work[p.z + i], work[p.lower + i], work[p.upper + i]
        # natural residual of the bounds; NaN is passed on
        error = max(error, abs(max(min(w, unit * (z - lower)), unit * (z - upper))) + _ROUNDING * terms) + 0.0 * w
        scale = max(scale, abs(work[p.q + i]))
    if not error <= max(inexact * scale, work[p.rounding]):
        return status
    work[p.info + 1] = error / max(scale, work[p.rounding])
    return INEXACT


@tiny
def worse(status, other):
    """The worse one of two statuses: INEXACT is better than a failure."""
    return other if status == CONVERGED or (status == INEXACT and other != CONVERGED) else status


@kernel
def outputs_of_cones(constraints, couplings, z, w, work):
    """``y = w + G^T mu`` where w is ``y - G^T mu``."""
    for i in range(constraints.size):
        for k in range(constraints[i].coupling, constraints[i].coupling_end):
            if couplings[k].sign < 0:
                work[w + i] += work[couplings[k].coefficient] * work[z + couplings[k].constraint]
