"""Contacts in the plane by trial: every combination of open, sticking, and sliding forwards or backwards."""

import math

from nsds._jit import kernel, view
from nsds.solvers.contact.lemke import pieces
from nsds.solvers.contact.local import gauss
from nsds.solvers.contact.signature import EQUATION, judge, keep_better
from nsds.status import CONVERGED, MAX_ITER, STALLED, UNSUITED

LARGEST = 10  # contacts: 4^10 combinations


def work_size(d, row, column):
    """W, the matrix of a combination, matrices of the pieces, the best r."""
    n = min(row.size - 1, LARGEST)
    return 5 + 8 * n * n + 10 * n, n


@kernel
def enumeration(problem, options, r, u, info, work, iwork):
    """Contact problem in the plane: the first combination of pieces, counted from all open, whose r has ``res_q <= tol``.

    max_iter: combinations. UNSUITED: not in the plane, or more than 10 contacts. STALLED: no combination gives a solution; those that do
    not determine r were passed over, so that there may still be one.
    """
    disk = problem.disk
    n = disk.size
    if problem.q.size != 2 * n or n > LARGEST:
        judge(UNSUITED, 0, problem, options, r, u, info)
        return UNSUITED
    dense, J = view(work, 5, 4 * n * n), view(work, 5 + 4 * n * n, 4 * n * n)
    A, B, best = view(work, 5 + 8 * n * n, 4 * n), view(work, 5 + 8 * n * n + 4 * n, 4 * n), view(work, 5 + 8 * n * n + 8 * n, 2 * n)
    for i in range(4 * n * n):
        dense[i] = 0.0
    for c in range(n):
        iwork[c] = 1 if disk[c] == EQUATION else 0
        for k in range(problem.row[c], problem.row[c + 1]):
            for a in range(2):
                for b in range(2):
                    dense[(2 * c + a) * 2 * n + 2 * problem.column[k] + b] = problem.W[4 * k + 2 * a + b]
    least, tried, going_on = math.inf, 0, True
    while going_on:
        pieces(disk, problem.mu, iwork, A, B)
        if options.max_iter > 0 and tried >= options.max_iter:
            break
        tried += 1
        _combine(n, dense, A, B, problem.q, J, r)
        if gauss(2 * n, J, r):
            status = judge(CONVERGED, tried, problem, options, r, u, info)
            if status == CONVERGED:
                return status
            least = keep_better(info[1], least, r, best)
        going_on = False
        for c in range(n):  # the next combination, as a number with one digit for each contact
            if disk[c] == EQUATION:
                continue
            iwork[c] = (iwork[c] + 1) % 4
            if iwork[c] != 0:
                going_on = True
                break
    for i in range(2 * n):
        r[i] = best[i] if least < math.inf else 0.0
    status = MAX_ITER if going_on else STALLED
    return judge(status, tried, problem, options, r, u, info)


@kernel
def _combine(n, dense, A, B, q, J, b):
    """``J = A W + B`` and ``b = -A q``."""
    for c in range(n):
        for a in range(2):
            i = 2 * c + a
            b[i] = -A[4 * c + 2 * a] * q[2 * c] - A[4 * c + 2 * a + 1] * q[2 * c + 1]
            for j in range(2 * n):
                J[i * 2 * n + j] = A[4 * c + 2 * a] * dense[4 * c * n + j] + A[4 * c + 2 * a + 1] * dense[(2 * c + 1) * 2 * n + j]
            J[i * 2 * n + 2 * c] += B[4 * c + 2 * a]
            J[i * 2 * n + 2 * c + 1] += B[4 * c + 2 * a + 1]
