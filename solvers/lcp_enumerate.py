"""Enumeration of all complementary bases: the reference for small problems, exact for any matrix."""

import math

from nsds._jit import kernel
from nsds.solvers.signature import conclude, is_complementarity
from nsds.status import CONVERGED, STALLED, UNSUITED

MAX_UNKNOWNS = 20
_PIVOT = 1e-13  # smaller pivots, relative to their column, are rounding


def work_size(n, row, column):
    """A dense augmented matrix and a permutation."""
    n = min(n, MAX_UNKNOWNS)
    return n * (n + 1), n


@kernel
def lcp_enumerate(row, column, M, q, lower, upper, options, z, w, info, work, iwork):
    """LCP (with equations): tries every set of basic z_i, solves ``M_BB z_B = -q_B`` and accepts the first with merit <= tol.

    Equations are always basic. UNSUITED: more than 20 unknowns or finite upper bounds. STALLED: no basis solves the problem;
    z is of the one with the least merit.
    """
    n = q.size
    if n > MAX_UNKNOWNS or not is_complementarity(lower, upper):
        conclude(UNSUITED, 0, row, column, M, q, lower, upper, options, z, w, info)
        return UNSUITED
    best, least = 0, math.inf
    for basis in range(1 << n):
        wanted = True
        for i in range(n):
            wanted &= lower[i] == 0.0 or (basis >> i) & 1 == 1
        if wanted and _solve_basis(basis, row, column, M, q, lower, z, work, iwork):
            status = conclude(STALLED, basis + 1, row, column, M, q, lower, upper, options, z, w, info)
            if status == CONVERGED:
                return CONVERGED
            if info[1] < least:
                best, least = basis, info[1]
    if not _solve_basis(best, row, column, M, q, lower, z, work, iwork):
        for i in range(n):
            z[i] = 0.0
    return conclude(STALLED, 1 << n, row, column, M, q, lower, upper, options, z, w, info)


@kernel
def _solve_basis(basis, row, column, M, q, lower, z, work, iwork):
    """``M_BB z_B = -q_B`` by Gauss elimination with partial pivoting, z = 0 off the basis; then ``z >= lower``. False: singular."""
    n = q.size
    b = 0
    for i in range(n):
        z[i] = 0.0
        if (basis >> i) & 1:
            iwork[b] = i
            b += 1
    width = b + 1
    for i in range(b):
        for j in range(b):
            work[i * width + j] = 0.0
        work[i * width + b] = -q[iwork[i]]
        for k in range(row[iwork[i]], row[iwork[i] + 1]):
            for j in range(b):
                if iwork[j] == column[k]:
                    work[i * width + j] = M[k]
                    z[iwork[j]] = max(z[iwork[j]], abs(M[k]))  # the size of the column, until it is solved for
    for j in range(b):
        pivot = j
        for i in range(j + 1, b):
            if abs(work[i * width + j]) > abs(work[pivot * width + j]):
                pivot = i
        if not abs(work[pivot * width + j]) > _PIVOT * z[iwork[j]]:
            return False
        for k in range(width):
            work[j * width + k], work[pivot * width + k] = work[pivot * width + k], work[j * width + k]
        for i in range(j + 1, b):
            factor = work[i * width + j] / work[j * width + j]
            for k in range(j, width):
                work[i * width + k] -= factor * work[j * width + k]
    for i in range(b - 1, -1, -1):
        s = work[i * width + b]
        for k in range(i + 1, b):
            s -= work[i * width + k] * z[iwork[k]]
        z[iwork[i]] = s / work[i * width + i]
    for i in range(n):
        z[i] = max(z[i], lower[i])  # a degenerate zero may have been rounded; a wrong basis shows in the merit
    return True
