"""Newton's method on ``min(z, w) = 0`` with elimination inside the envelope: exact, and linear in n for chains.

Each iteration solves on the set of basic constraints and exchanges all that came out with the wrong sign (block principal pivoting);
when that no longer helps, it falls back on one exchange at a time (Murty), which is finite for P-matrices.
Reference: Júdice, Pires, Computers and Operations Research 21 (1994) 587–596; Murty, Linear Complementarity, section 4.2.
"""

import numpy as np

from nsds._jit import inlined, kernel
from nsds.solvers.signature import conclude, diagonal, is_complementarity
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, STALLED, UNSUITED

_PATIENCE = 10  # block exchanges without progress before single ones
_PIVOT = 1e-12  # smaller pivots, relative to the diagonal, mark a redundant constraint
_ROUNDING = 1e-14  # signs are read up to this, relative to the largest |q|


def work_size(n, row, column):
    """Envelopes of both factors, pivots and right-hand side; first columns, starts, the basis and its inverse."""
    first = column[row[:-1]] if n else np.zeros(0, np.int64)
    return 2 * int((np.arange(n) - first).sum()) + 2 * n, 5 * n + 1


@inlined
def lcp_newton_min(row, column, M, q, lower, upper, options, z, w, info, work, iwork):
    """LCP (with equations) ``w = M z + q``, ``0 <= z ⟂ w >= 0``; starts from the basis ``z > 0`` of the guess; all, if there is none.

    Exact for P-matrices. Redundant constraints of a positive semidefinite M get z = 0. UNSUITED: finite upper bounds.
    """
    n = q.size
    if n == 1 and lower[0] == 0.0 and upper[0] == np.inf and M[0] > 0.0:
        return _one_contact(M, q, options, z, w, info)
    if not is_complementarity(lower, upper):
        conclude(UNSUITED, 0, row, column, M, q, lower, upper, options, z, w, info)
        return UNSUITED
    limit = int(options[1]) if options[1] > 0 else 100 + 10 * n
    largest = guess = 0.0
    for i in range(n):
        largest, guess = max(largest, abs(q[i])), max(guess, z[i])
    for i in range(n):
        iwork[i] = 1 if lower[i] < 0.0 or z[i] > 0.0 or guess == 0.0 else 0
    fewest, patience = n + 1, _PATIENCE
    for n_iter in range(limit):
        _solve_basis(n, row, column, M, q, z, work, iwork)
        n_wrong, last = _wrong_signs(n, row, column, M, q, lower, z, largest, iwork)
        if n_wrong == 0:
            for i in range(n):
                z[i] = max(z[i], lower[i])
            return conclude(CONVERGED, n_iter + 1, row, column, M, q, lower, upper, options, z, w, info)
        if n_wrong < fewest:
            fewest, patience = n_wrong, _PATIENCE
        else:
            patience -= 1
        for i in range(n if patience >= 0 else 0):
            if iwork[i] < 0:
                iwork[i] = 0 if iwork[i] == -2 else 1
        if patience < 0:
            _exchange_last(n, last, iwork)
    return conclude(MAX_ITER, limit, row, column, M, q, lower, upper, options, z, w, info)


@inlined
def _one_contact(M, q, options, z, w, info):
    """No sets to search, and the merit without its roots."""
    z[0] = max(-q[0] / M[0], 0.0)
    w[0] = M[0] * z[0] + q[0]
    info[0] = 1.0
    info[1] = abs(min(z[0], w[0])) / (1.0 + abs(q[0]))
    if not np.isfinite(info[1]):
        return NON_FINITE
    return CONVERGED if info[1] <= options[0] else STALLED


@kernel
def _wrong_signs(n, row, column, M, q, lower, z, largest, basic):
    """Count and last index of basic z < 0 (marked -2) and nonbasic w < 0 (marked -1)."""
    count, last = 0, -1
    for i in range(n):
        if basic[i] == 1:
            if lower[i] == 0.0 and z[i] < 0.0 and z[i] * diagonal(row, column, M, i) < -_ROUNDING * largest:
                basic[i] = -2
        else:
            w_i = q[i]
            for k in range(row[i], row[i + 1]):
                w_i += M[k] * z[column[k]]
            if w_i < -_ROUNDING * largest:
                basic[i] = -1
        if basic[i] < 0:
            count += 1
            last = i
    return count, last


@kernel
def _exchange_last(n, last, basic):
    """Murty's rule: only the last wrong constraint changes sides."""
    for i in range(n):
        if basic[i] < 0:
            was_basic = basic[i] == -2
            basic[i] = 1 if was_basic != (i == last) else 0


@kernel
def _solve_basis(n, row, column, M, q, z, work, iwork):
    """``M_BB z_B = -q_B``, z = 0 elsewhere, by Crout elimination inside the envelope of M_BB.

    Row i of L and column i of U lie at start[i]..start[i + 1], for columns first[i]..i - 1. A vanishing pivot gives z_i = 0.
    """
    basic, first, start, member, place = 0, n, 2 * n, 3 * n + 1, 4 * n + 1
    b = 0
    for i in range(n):
        z[i] = 0.0
        iwork[place + i] = -1
        if iwork[basic + i] == 1:
            iwork[place + i] = b
            iwork[member + b] = i
            b += 1
    size = 0
    for i in range(b):
        iwork[start + i] = size
        for k in range(row[iwork[member + i]], row[iwork[member + i] + 1]):
            if iwork[place + column[k]] >= 0:
                iwork[first + i] = iwork[place + column[k]]
                break
        size += i - iwork[first + i]
    iwork[start + b] = size
    lower, upper, pivot, x = 0, size, 2 * size, 2 * size + b
    for k in range(2 * size):
        work[k] = 0.0
    for i in range(b):
        for k in range(row[iwork[member + i]], row[iwork[member + i] + 1]):
            j = iwork[place + column[k]]
            if j == i:
                work[pivot + i] = M[k]
            elif 0 <= j < i:
                work[lower + iwork[start + i] + j - iwork[first + i]] = M[k]
            elif j > i:
                work[upper + iwork[start + j] + i - iwork[first + j]] = M[k]
    for i in range(b):
        x_i = -q[iwork[member + i]]
        d = work[pivot + i]
        tiny = _PIVOT * abs(d)
        f_i, row_i, column_i = iwork[first + i], lower + iwork[start + i], upper + iwork[start + i]
        for j in range(f_i, i):
            f_j = iwork[first + j]
            row_j, column_j = lower + iwork[start + j], upper + iwork[start + j]
            l_ij, u_ji = work[row_i + j - f_i], work[column_i + j - f_i]
            for k in range(max(f_i, f_j), j):
                l_ij -= work[row_i + k - f_i] * work[column_j + k - f_j]
                u_ji -= work[row_j + k - f_j] * work[column_i + k - f_i]
            l_ij *= work[pivot + j]  # holds 1 / d_j, or 0 for a redundant constraint
            work[row_i + j - f_i] = l_ij
            work[column_i + j - f_i] = u_ji
            d -= l_ij * u_ji
            x_i -= l_ij * work[x + j]
        work[pivot + i] = 1.0 / d if abs(d) > tiny else 0.0
        work[x + i] = x_i
    for i in range(b - 1, -1, -1):
        x_i = work[x + i] * work[pivot + i]
        z[iwork[member + i]] = x_i
        for k in range(iwork[first + i], i):
            work[x + k] -= work[upper + iwork[start + i] + k - iwork[first + i]] * x_i
