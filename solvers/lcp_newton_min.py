"""Newton's method on ``min(z, w) = 0`` with elimination inside the envelope: exact, and linear in n for chains.

Each iteration solves on the set of basic constraints and exchanges all that came out with the wrong sign (block principal pivoting);
when that no longer helps, it falls back on one exchange at a time (Murty), which is finite for P-matrices.
Reference: Júdice, Pires, Computers and Operations Research 21 (1994) 587–596; Murty, Linear Complementarity, section 4.2.
"""

import numpy as np

from nsds._jit import inlined, kernel, view
from nsds.solvers.signature import conclude, diagonal, is_complementarity
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, STALLED, UNSUITED

_PATIENCE = 10  # block exchanges without progress before single ones
_PIVOT = 1e-12  # smaller pivots, relative to the diagonal, mark a redundant constraint
_ROUNDING = 1e-14  # signs are read up to this, relative to the terms of their row

# iwork: the remembered factorisation (0: none), then the vectors basic, first, start, member, place and factored.
_KNOWN, _BASIC = 0, 1


def work_size(n, row, column):
    """Envelopes of both factors, pivots and right-hand side; the sets and the shape of the envelope."""
    first = column[row[:-1]] if n else np.zeros(0, np.int64)
    return 2 * int((np.arange(n) - first).sum()) + 2 * n, 6 * n + 2


@inlined
def lcp_newton_min(row, column, M, q, lower, upper, options, z, w, info, work, iwork):
    """LCP (with equations) ``w = M z + q``, ``0 <= z ⟂ w >= 0``; starts from the basis ``z > 0`` of the guess; all, if there is none.

    Exact for P-matrices. Redundant constraints of a positive semidefinite M get z = 0, which may leave no way on: STALLED. A basis that
    was factorised in the last call is not factorised again. UNSUITED: finite upper bounds.
    """
    n = q.size
    if n == 1 and lower[0] == 0.0 and upper[0] == np.inf and M[0] > 0.0:
        return _one_contact(M, q, options, z, w, info)
    if not is_complementarity(lower, upper):
        conclude(UNSUITED, 0, row, column, M, q, lower, upper, options, z, w, info)
        return UNSUITED
    limit = int(options[1]) if options[1] > 0 else 200 + 3 * n
    guess = 0.0
    for i in range(n):
        guess = max(guess, z[i])
    basic = view(iwork, _BASIC, n)
    for i in range(n):
        basic[i] = 1 if lower[i] < 0.0 or z[i] > 0.0 or guess == 0.0 else 0
    status, n_iter, fewest, patience = MAX_ITER, 0, n + 1, _PATIENCE
    while n_iter < limit:
        n_iter += 1
        if not _is_known(n, basic, iwork):
            _factorise(n, row, column, M, basic, work, iwork)
        _substitute(n, q, z, work, iwork)
        n_wrong, last = _wrong_signs(n, row, column, M, q, lower, z, basic)
        if n_wrong == 0:
            status = CONVERGED
            break
        patience = _PATIENCE if n_wrong < fewest else patience - 1
        fewest = min(fewest, n_wrong)
        if patience < 0 and _is_redundant(n, work, iwork):
            status = STALLED
            break
        _exchange(n, last if patience < 0 else n, basic)
    for i in range(n):
        z[i] = max(z[i], lower[i])
    return conclude(status, n_iter, row, column, M, q, lower, upper, options, z, w, info)


@inlined
def _one_contact(M, q, options, z, w, info):
    """No sets to search, and the merit without its roots."""
    z[0] = max(-q[0] / M[0], 0.0)
    w[0] = M[0] * z[0] + q[0]
    info[0] = 1.0
    info[1] = abs(min(z[0], w[0])) / (1.0 + abs(q[0]))
    if not np.isfinite(w[0]):
        return NON_FINITE
    return CONVERGED if info[1] <= options[0] else STALLED


@kernel
def _wrong_signs(n, row, column, M, q, lower, z, basic):
    """Count and last index of basic z < 0 (marked -2) and nonbasic w < 0 (marked -1)."""
    count, last = 0, -1
    for i in range(n):
        if basic[i] == 1:
            if lower[i] == 0.0 and z[i] < 0.0 and z[i] * diagonal(row, column, M, i) < -_rounding(i, row, column, M, q, z):
                basic[i] = -2
        else:
            w_i = q[i]
            for k in range(row[i], row[i + 1]):
                w_i += M[k] * z[column[k]]
            if w_i < 0.0 and w_i < -_rounding(i, row, column, M, q, z):
                basic[i] = -1
        if basic[i] < 0:
            count += 1
            last = i
    return count, last


@kernel
def _rounding(i, row, column, M, q, z):
    """Up to which ``w_i`` may be rounding."""
    terms = abs(q[i])
    for k in range(row[i], row[i + 1]):
        terms += abs(M[k] * z[column[k]])
    return _ROUNDING * terms


@kernel
def _exchange(n, only, basic):
    """Change the side of all wrong constraints, or (Murty's rule) of one only; ``only = n`` means all."""
    for i in range(n):
        if basic[i] < 0:
            was_basic = basic[i] == -2
            basic[i] = 1 if was_basic != (only in (i, n)) else 0


@kernel
def _is_known(n, basic, iwork):
    """True when the factors in work are those of this basis; iwork[0] is 0 where M has changed since the last call."""
    factored = _BASIC + 5 * n + 1
    known = iwork[_KNOWN] != 0
    for i in range(n):
        known &= iwork[factored + i] == basic[i]
    return known


@kernel
def _is_redundant(n, work, iwork):
    """True when a pivot of the factors in work vanished: the rule of single exchanges then promises nothing."""
    b = iwork[_KNOWN] - 1
    pivot = 2 * iwork[_BASIC + 2 * n + b]
    found = False
    for i in range(b):
        found |= work[pivot + i] == 0.0
    return found


@kernel
def _factorise(n, row, column, M, basic, work, iwork):
    """``M_BB = L D U`` by Crout elimination inside the envelope of M_BB; L and U with unit diagonal, U stored as D U.

    Row i of L and column i of U lie at start[i]..start[i + 1], for columns first[i]..i - 1; then come 1 / D, 0 for a vanishing pivot.
    """
    first, start = _BASIC + n, _BASIC + 2 * n
    member, place, factored = start + n + 1, start + 2 * n + 1, start + 3 * n + 1
    b = 0
    for i in range(n):
        iwork[factored + i] = basic[i]
        iwork[place + i] = b if basic[i] == 1 else -1
        iwork[member + b] = i
        b += basic[i]
    size = 0
    for i in range(b):
        iwork[start + i] = size
        k = row[iwork[member + i]]
        while iwork[place + column[k]] < 0:
            k += 1
        iwork[first + i] = iwork[place + column[k]]
        size += i - iwork[first + i]
    iwork[start + b] = size
    iwork[_KNOWN] = b + 1
    lower, upper, pivot = 0, size, 2 * size
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
            d -= l_ij * u_ji * work[pivot + j]
            work[row_i + j - f_i] = l_ij * work[pivot + j]
            work[column_i + j - f_i] = u_ji
        work[pivot + i] = 1.0 / d if abs(d) > tiny else 0.0


@kernel
def _substitute(n, q, z, work, iwork):
    """``M_BB z_B = -q_B`` with the factors in work; z = 0 off the basis and for redundant constraints."""
    first, start = _BASIC + n, _BASIC + 2 * n
    member = start + n + 1
    b = iwork[_KNOWN] - 1
    size = iwork[start + b]
    upper, pivot, x = size, 2 * size, 2 * size + b
    for i in range(n):
        z[i] = 0.0
    for i in range(b):
        x_i = -q[iwork[member + i]]
        row_i, first_i = iwork[start + i], iwork[first + i]
        for k in range(iwork[start + i + 1] - row_i):
            x_i -= work[row_i + k] * work[x + first_i + k]
        work[x + i] = x_i
    for i in range(b - 1, -1, -1):
        x_i = work[x + i] * work[pivot + i]
        z[iwork[member + i]] = x_i
        column_i, first_i = upper + iwork[start + i], iwork[first + i]
        for k in range(i - first_i):
            work[x + first_i + k] -= work[column_i + k] * x_i
