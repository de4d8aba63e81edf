"""The default: exact elimination first, then what also treats redundant and singular problems; the residual decides."""

from nsds._jit import inlined, kernel
from nsds.solvers import lcp_enumerate as enumerate_
from nsds.solvers import lcp_lemke as lemke
from nsds.solvers import lcp_pgs as pgs
from nsds.solvers import lcp_proximal as proximal
from nsds.solvers.lcp_enumerate import lcp_enumerate
from nsds.solvers.lcp_lemke import lcp_lemke
from nsds.solvers.lcp_newton_min import lcp_newton_min
from nsds.solvers.lcp_pgs import lcp_pgs
from nsds.solvers.lcp_proximal import lcp_proximal
from nsds.status import CONVERGED, UNSUITED

_DENSE_LIMIT = 64  # unknowns up to which a dense tableau is kept at hand; more where M itself is dense
_DENSITY = 0.25
_ENUMERABLE = 10  # unknowns up to which all bases may be tried


def work_size(n, row, column):
    """The most that one of its methods needs; the proximal steps hold Newton-min."""
    tableau = n if column.size >= _DENSITY * n**2 else min(n, _DENSE_LIMIT)
    methods = (proximal, n), (lemke, tableau), (enumerate_, min(n, _ENUMERABLE)), (pgs, n)
    sizes = [method.work_size(size, row, column) for method, size in methods]
    return max(s[0] for s in sizes), max(s[1] for s in sizes)


@kernel
def lcp_auto(row, column, M, q, lower, upper, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``: Newton-min; where it fails, proximal steps, then Lemke if the scratch has room for its tableau.

    The last resort is enumeration up to 10 unknowns and projected Gauss–Seidel, for finite bounds too, where there is no tableau.
    Iterations of all attempts are counted.
    """
    status = lcp_newton_min(row, column, M, q, lower, upper, options, z, w, info, work, iwork)
    if status == CONVERGED:
        return status
    if status == UNSUITED:
        return lcp_pgs(row, column, M, q, lower, upper, options, z, w, info, work, iwork)
    return _fall_back(row, column, M, q, lower, upper, options, z, w, info, work, iwork)


@inlined
def _fall_back(row, column, M, q, lower, upper, options, z, w, info, work, iwork):
    """From z = 0, so that the load on redundant constraints does not depend on the first guess."""
    n, n_iter = q.size, info[0]
    for i in range(n):
        z[i] = 0.0
    iwork[0] = 0  # what Newton-min remembers is not what the proximal steps expect
    status = lcp_proximal(row, column, M, q, lower, upper, options, z, w, info, work, iwork)
    if status != CONVERGED:
        n_iter += info[0]
        if n * (2 * n + 3) <= work.size:
            status = lcp_lemke(row, column, M, q, lower, upper, options, z, w, info, work, iwork)
        else:
            for i in range(n):
                z[i] = 0.0
            status = lcp_pgs(row, column, M, q, lower, upper, options, z, w, info, work, iwork)
    if status != CONVERGED and n <= _ENUMERABLE:
        n_iter += info[0]
        status = lcp_enumerate(row, column, M, q, lower, upper, options, z, w, info, work, iwork)
    info[0] += n_iter
    iwork[0] = 0  # the others have written over the factors
    return status
