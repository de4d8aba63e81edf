"""Newton's method on ``z - P(z - w) = 0`` with elimination inside the envelope: exact, and linear in n for chains.

Each iteration solves for the basic z, the others being at their bounds, and exchanges all that came out with the wrong sign (block
principal pivoting); when that no longer helps, it falls back on one exchange at a time (Murty), which is finite for P-matrices.
References: Júdice, Pires, Computers and Operations Research 21 (1994) 587–596 and, with two bounds, Journal of Optimization Theory and
Applications 74 (1992) 391–411; Murty, Linear Complementarity, section 4.2.
"""

import numpy as np

from nsds._jit import inlined, kernel, tiny, view
from nsds.solvers.box.signature import UNDERFLOW, clip, diagonal, excess, is_affordable, judge
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, STALLED

_PATIENCE = 10  # block exchanges without progress before single ones
_PIVOT = 1e-12  # smaller pivots, relative to the diagonal, mark a redundant constraint
_ROUNDING = 1e-14  # signs are read up to this, relative to the terms of their row

LOWER, BASIC, UPPER = 0, 1, 2  # where z_i is: at a bound or, basic, between them with w_i = 0

# iwork: the remembered factorisation (0: none), then the vectors side, first, start, member, place and factored.
_KNOWN, _SIDE = 0, 1


def work_size(n, row, column):
    """Envelopes of both factors, pivots and right-hand side; the sets and the shape of the envelope."""
    first = column[row[:-1]] if n else np.zeros(0, np.int64)
    return 2 * int((np.arange(n) - first).sum()) + 2 * n, 6 * n + 2


@kernel
def newton_min(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``; starts from the sides of the guess: z inside its bounds is basic; all, if none is inside.

    Exact for P-matrices. Redundant constraints of a positive semidefinite M get z = 0, which may leave no way on: STALLED. A basis that
    was factorised in the last call is not factorised again.
    """
    lower, upper = problem.lower, problem.upper
    n = problem.q.size
    if n == 1 and problem.M[0] > 0.0:
        return one_unknown(problem.M, problem.q, lower, upper, options, z, w, info)
    limit = int(options.max_iter) if options.max_iter > 0 else 200 + 3 * n
    side = view(iwork, _SIDE, n)
    choose_sides(lower, upper, z, side, True)
    status, n_iter, fewest, patience, work_done = MAX_ITER, 0, n + 1, _PATIENCE, 0.0
    while n_iter < limit and is_affordable(work_done, options):
        n_iter += 1
        if not _is_known(n, side, iwork):
            _factorise(n, problem, side, work, iwork)
            work_done += _cost(n, iwork)
        _substitute(n, problem, side, z, work, iwork)
        n_wrong, last = _wrong_signs(n, problem, z, side)
        if n_wrong == 0:
            status = CONVERGED
            break
        patience = _PATIENCE if n_wrong < fewest else patience - 1
        fewest = min(fewest, n_wrong)
        if patience < 0 and _is_redundant(n, work, iwork):
            status = STALLED
            break
        _exchange(n, last if patience < 0 else n, side)
    clip(lower, upper, z)
    return judge(status, n_iter, problem, options, z, w, info)


@tiny
def _cost(n, iwork):
    """Multiplications of a factorisation, about: for each of b rows the square of the mean width of the envelope."""
    b = iwork[_KNOWN] - 1
    size = iwork[_SIDE + 2 * n + b]
    return float(size) * size / max(b, 1)


@tiny
def one_unknown(M, q, lower, upper, options, z, w, info):
    """No sets to search, and the merit without its roots."""
    z[0] = min(max(-q[0] / M[0], lower[0]), upper[0])
    w[0] = M[0] * z[0] + q[0]
    info[0] = 1.0
    if not np.isfinite(w[0]):
        z[0] = min(max(0.0, lower[0]), upper[0])
        w[0] = M[0] * z[0] + q[0]
        info[1] = np.inf
        return NON_FINITE
    error = excess(w[0], 0.0, lower[0], upper[0], z[0])
    info[1] = error / max(abs(q[0]) + abs(M[0] * z[0]), UNDERFLOW) if error > 0.0 else 0.0
    return CONVERGED if info[1] <= options.tol else STALLED


@tiny
def choose_sides(lower, upper, z, side, all_if_none):
    """Sides that a guess suggests: z strictly inside its bounds is basic. With ``all_if_none``, everything is where nothing is inside."""
    inside = False
    for i in range(z.size):
        is_free = lower[i] == -np.inf and upper[i] == np.inf
        inside |= lower[i] < z[i] < upper[i] and not is_free
    for i in range(z.size):
        if lower[i] == upper[i]:
            side[i] = LOWER
        elif lower[i] < z[i] < upper[i] or (all_if_none and not inside):
            side[i] = BASIC
        else:
            side[i] = LOWER if z[i] <= lower[i] else UPPER


@inlined
def _wrong_signs(n, problem, z, side):
    """Count and last index of the i that belong on another side; they are marked -1 - (old side) - 3 (new side)."""
    row, lower, upper = problem.row, problem.lower, problem.upper
    count, last = 0, -1
    for i in range(n):
        old = new = side[i]
        if old == BASIC:
            if z[i] < lower[i] or z[i] > upper[i]:
                beyond = max(lower[i] - z[i], z[i] - upper[i]) * diagonal(row, problem.column, problem.M, i)
                if beyond > rounding(i, problem, z):
                    new = LOWER if z[i] < lower[i] else UPPER
        elif lower[i] < upper[i]:
            w_i = problem.q[i]
            for k in range(row[i], row[i + 1]):
                w_i += problem.M[k] * z[problem.column[k]]
            if (w_i < 0.0 if old == LOWER else w_i > 0.0) and abs(w_i) > rounding(i, problem, z):
                new = BASIC
        if new != old:
            side[i] = -1 - old - 3 * new
            count += 1
            last = i
    return count, last


@kernel
def rounding(i, problem, z):
    """Up to which ``w_i`` may be rounding."""
    terms = abs(problem.q[i])
    for k in range(problem.row[i], problem.row[i + 1]):
        terms += abs(problem.M[k] * z[problem.column[k]])
    return _ROUNDING * terms


@inlined
def _exchange(n, only, side):
    """Change the side of all marked constraints, or (Murty's rule) of one only; ``only = n`` means all."""
    for i in range(n):
        if side[i] < 0:
            mark = -1 - side[i]
            side[i] = mark // 3 if only in (i, n) else mark % 3


@inlined
def _is_known(n, side, iwork):
    """True when the factors in work are those of this basis; iwork[0] is 0 where M has changed since the last call."""
    factored = _SIDE + 5 * n + 1
    known = iwork[_KNOWN] != 0
    for i in range(n):
        known &= (iwork[factored + i] == BASIC) == (side[i] == BASIC)
    return known


@inlined
def _is_redundant(n, work, iwork):
    """True when a pivot of the factors in work vanished: the rule of single exchanges then promises nothing."""
    b = iwork[_KNOWN] - 1
    pivot = 2 * iwork[_SIDE + 2 * n + b]
    found = False
    for i in range(b):
        found |= work[pivot + i] == 0.0
    return found


@inlined
def _factorise(n, problem, side, work, iwork):
    """``M_BB = L D U`` by Crout elimination inside the envelope of M_BB; L and U with unit diagonal, U stored as D U.

    Row i of L and column i of U lie at start[i]..start[i + 1], for columns first[i]..i - 1; then come 1 / D, 0 for a vanishing pivot.
    """
    row, column, M = problem.row, problem.column, problem.M
    first, start = _SIDE + n, _SIDE + 2 * n
    member, place, factored = start + n + 1, start + 2 * n + 1, start + 3 * n + 1
    b = 0
    for i in range(n):
        iwork[factored + i] = side[i]
        iwork[place + i] = b if side[i] == BASIC else -1
        iwork[member + b] = i
        b += side[i] == BASIC
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


@inlined
def _substitute(n, problem, side, z, work, iwork):
    """``M_BB z_B = -q_B - M_BN z_N`` with the factors in work; z_N at its bounds, z = 0 for redundant constraints."""
    first, start = _SIDE + n, _SIDE + 2 * n
    member = start + n + 1
    b = iwork[_KNOWN] - 1
    size = iwork[start + b]
    upper_factor, pivot, x = size, 2 * size, 2 * size + b
    at_zero = True
    for i in range(n):
        z[i] = 0.0 if side[i] == BASIC else problem.lower[i] if side[i] == LOWER else problem.upper[i]
        at_zero &= z[i] == 0.0
    for i in range(b):
        x_i = -problem.q[iwork[member + i]]
        if not at_zero:
            for k in range(problem.row[iwork[member + i]], problem.row[iwork[member + i] + 1]):
                x_i -= problem.M[k] * z[problem.column[k]]
        work[x + i] = x_i
    for i in range(b):
        x_i = work[x + i]
        row_i, first_i = iwork[start + i], iwork[first + i]
        for k in range(iwork[start + i + 1] - row_i):
            x_i -= work[row_i + k] * work[x + first_i + k]
        work[x + i] = x_i
    for i in range(b - 1, -1, -1):
        x_i = work[x + i] * work[pivot + i]
        z[iwork[member + i]] = x_i
        column_i, first_i = upper_factor + iwork[start + i], iwork[first + i]
        for k in range(i - first_i):
            work[x + first_i + k] -= work[column_i + k] * x_i
