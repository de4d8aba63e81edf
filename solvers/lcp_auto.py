"""The default: exact elimination first, pivoting or sweeps where that fails; the residual decides."""

from nsds._jit import kernel
from nsds.solvers import lcp_newton_min as newton_min
from nsds.solvers.lcp_lemke import lcp_lemke
from nsds.solvers.lcp_lemke import work_size as lemke_work_size
from nsds.solvers.lcp_newton_min import lcp_newton_min
from nsds.solvers.lcp_pgs import lcp_pgs
from nsds.status import CONVERGED, UNSUITED

_DENSE_LIMIT = 64  # unknowns up to which a dense tableau is kept at hand


def work_size(n, row, column):
    """The larger of what its methods need."""
    sizes = newton_min.work_size(n, row, column), lemke_work_size(min(n, _DENSE_LIMIT), row, column), (n, 0)
    return max(s[0] for s in sizes), max(s[1] for s in sizes)


@kernel
def lcp_auto(row, column, M, q, lower, upper, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``: Newton-min; then Lemke up to 64 unknowns; else, and for finite bounds, projected Gauss–Seidel."""
    status = lcp_newton_min(row, column, M, q, lower, upper, options, z, w, info, work, iwork)
    if status == CONVERGED:
        return status
    n_iter = info[0]
    if status != UNSUITED and q.size <= _DENSE_LIMIT:
        status = lcp_lemke(row, column, M, q, lower, upper, options, z, w, info, work, iwork)
    else:
        status = lcp_pgs(row, column, M, q, lower, upper, options, z, w, info, work, iwork)
    info[0] += n_iter
    iwork[0] = 0  # the others have written over the factors
    return status
