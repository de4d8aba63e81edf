"""Lemke's complementary pivoting with lexicographic ties: finite and exact where the theory promises it; dense, so for small problems."""

import math

from nsds._jit import kernel
from nsds.solvers.signature import conclude, diagonal, is_complementarity, multiply
from nsds.status import CONVERGED, MAX_ITER, RAY, SINGULAR, UNSUITED

_EPS = 1e-12  # smaller entries of the scaled tableau, and smaller differences of ratios, are rounding
_SCALINGS = 5


def work_size(n, row, column):
    """The tableau ``[w | z | z0 | q]`` and its basis; scales."""
    return n * (2 * n + 3), n


@kernel
def lcp_lemke(row, column, M, q, lower, upper, options, z, w, info, work, iwork):
    """LCP (with equations) ``w = M z + q``, ``0 <= z ⟂ w >= 0``, by pivoting in the tableau ``w - M z - e z0 = q``.

    Equations: their z is pivoted into the basis first and stays. Then z0 enters, and the complement of what leaves follows until
    z0 leaves. Ties in the ratio test are broken lexicographically, so no degenerate problem can cycle.
    Solves every problem with M positive semidefinite (copositive plus) or P; for these, RAY means that there is no solution.
    SINGULAR: the equations have no unique solution. UNSUITED: finite upper bounds.
    Reference: Cottle, Pang, Stone, section 4.4 and 4.9.
    """
    n = q.size
    if not is_complementarity(lower, upper):
        conclude(UNSUITED, 0, row, column, M, q, lower, upper, options, z, w, info)
        return UNSUITED
    width = 2 * n + 2
    size = _fill(row, column, M, q, lower, work, iwork)
    limit = int(options[1]) if options[1] > 0 else 100 + 20 * n
    n_iter = 0
    status = CONVERGED
    if not _pivot_equations(n, lower, work, iwork):
        status = SINGULAR
    elif _leaving_first(n, lower, work) >= 0:
        r = _leaving_first(n, lower, work)
        entering = iwork[r] + n
        _pivot(n, r, 2 * n, work, iwork)
        status = MAX_ITER
        while n_iter < limit:
            n_iter += 1
            r = _leaving(n, lower, entering, work, iwork)
            if r < 0:
                status = RAY
                break
            leaving = iwork[r]
            _pivot(n, r, entering, work, iwork)
            if leaving == 2 * n:
                status = CONVERGED
                break
            entering = leaving + n if leaving < n else leaving - n
    for i in range(n):
        z[i] = 0.0
    for r in range(n):
        if n <= iwork[r] < 2 * n:
            z[iwork[r] - n] = work[r * width + width - 1] * size * work[n * width + iwork[r] - n]
    if status == CONVERGED:
        _refine(row, column, M, q, z, w, work, iwork)
    for i in range(n):
        z[i] = max(z[i], lower[i])
    return conclude(status, n_iter, row, column, M, q, lower, upper, options, z, w, info)


@kernel
def _fill(row, column, M, q, lower, T, basis):
    """Tableau of the starting basis w for ``S M S`` and ``S q / max|S q|``, S from `_equilibrate`.

    Leaves S behind the tableau and returns ``max|S q|``.
    """
    n = q.size
    width = 2 * n + 2
    S = n * width
    _equilibrate(n, row, column, M, T, S)
    size = 0.0
    for i in range(n):
        size = max(size, abs(T[S + i] * q[i]))
    size = size if size > 0.0 else 1.0
    for i in range(n):
        for j in range(width):
            T[i * width + j] = 0.0
        T[i * width + i] = 1.0
        for k in range(row[i], row[i + 1]):
            T[i * width + n + column[k]] = -M[k] * T[S + i] * T[S + column[k]]
        T[i * width + 2 * n] = -1.0 if lower[i] == 0.0 else 0.0
        T[i * width + 2 * n + 1] = q[i] * T[S + i] / size
        basis[i] = i
    return size


@kernel
def _equilibrate(n, row, column, M, T, S):
    """S such that the largest entry of each row and column of ``S M S`` is about 1: from S_i = |M_ii|^-1/2, five times S_i /= max^1/2.

    Reference: Ruiz, A scaling algorithm to equilibrate both rows and columns norms, RAL-TR-2001-034. T[0:n] is scratch.
    """
    for i in range(n):
        d = abs(diagonal(row, column, M, i))
        T[S + i] = 1.0 / math.sqrt(d) if d > 0.0 else 1.0
    for _ in range(_SCALINGS):
        for i in range(n):
            T[i] = 0.0
        for i in range(n):
            for k in range(row[i], row[i + 1]):
                entry = T[S + i] * abs(M[k]) * T[S + column[k]]
                T[i] = max(T[i], entry)
                T[column[k]] = max(T[column[k]], entry)
        for i in range(n):
            if T[i] > 0.0:
                T[S + i] /= math.sqrt(T[i])


@kernel
def _refine(row, column, M, q, z, w, T, basis):
    """One step of iterative refinement: the columns of w in the tableau are the inverse of the basis."""
    n = q.size
    width = 2 * n + 2
    S = n * width
    multiply(row, column, M, q, z, w)
    for r in range(n):
        if basis[r] < n:
            w[basis[r]] = 0.0  # basic: free to be what it is
    for r in range(n):
        if n <= basis[r] < 2 * n:
            s = 0.0
            for i in range(n):
                s += T[r * width + i] * T[S + i] * w[i]
            z[basis[r] - n] += T[S + basis[r] - n] * s


@kernel
def _pivot(n, r, c, T, basis):
    """Column c enters the basis in row r."""
    width = 2 * n + 2
    d = 1.0 / T[r * width + c]
    for j in range(width):
        T[r * width + j] *= d
    T[r * width + c] = 1.0
    for i in range(n):
        f = T[i * width + c]
        if i != r and f != 0.0:
            for j in range(width):
                T[i * width + j] -= f * T[r * width + j]
            T[i * width + c] = 0.0
    basis[r] = c


@kernel
def _pivot_equations(n, lower, T, basis):
    """Bring the free z into the basis, each in the row of an equation, largest pivot first. False: no pivot is left."""
    width = 2 * n + 2
    for i in range(n):
        if lower[i] == 0.0:
            continue
        best, r, c = 0.0, -1, -1
        for j in range(n):
            for k in range(n):
                free = basis[j] < n and lower[j] < 0.0 and lower[k] < 0.0
                if free and abs(T[j * width + n + k]) > best and not _is_basic(n, n + k, basis):
                    best, r, c = abs(T[j * width + n + k]), j, n + k
        if r < 0 or best < _EPS:
            return False
        _pivot(n, r, c, T, basis)
    return True


@kernel
def _is_basic(n, variable, basis):
    found = False
    for i in range(n):
        found |= basis[i] == variable
    return found


@kernel
def _leaving_first(n, lower, T):
    """Row that leaves when z0 enters: the lexicographically smallest; -1 when the starting basis is feasible."""
    width = 2 * n + 2
    r = -1
    for i in range(n):
        if lower[i] == 0.0 and T[i * width + width - 1] < 0.0 and (r < 0 or _lexicographically_less(n, i, 1.0, r, 1.0, T)):
            r = i
    return r


@kernel
def _leaving(n, lower, c, T, basis):
    """Row of the smallest ratio of (q, B^-1) to column c among positive entries; z0 wins a tie in q; -1: a ray."""
    width = 2 * n + 2
    r = -1
    for i in range(n):
        if basis[i] >= n and basis[i] < 2 * n and lower[basis[i] - n] < 0.0:
            continue
        d = T[i * width + c]
        if d > _EPS and (r < 0 or _lexicographically_less(n, i, d, r, T[r * width + c], T)):
            r = i
    if r >= 0:
        ratio = T[r * width + width - 1] / T[r * width + c]
        for i in range(n):
            d = T[i * width + c]
            if basis[i] == 2 * n and d > _EPS and T[i * width + width - 1] / d <= ratio + _EPS * (1.0 + abs(ratio)):
                return i
    return r


@kernel
def _lexicographically_less(n, i, d_i, j, d_j, T):
    """Row i / d_i before row j / d_j, comparing q first and then the columns of w."""
    width = 2 * n + 2
    difference = T[i * width + width - 1] / d_i - T[j * width + width - 1] / d_j
    scale = max(abs(T[i * width + width - 1] / d_i), abs(T[j * width + width - 1] / d_j))
    if abs(difference) > _EPS * scale:
        return difference < 0.0
    for k in range(n):
        difference = T[i * width + k] / d_i - T[j * width + k] / d_j
        if not math.isfinite(difference):
            return False
        if abs(difference) > _EPS:
            return difference < 0.0
    return False
