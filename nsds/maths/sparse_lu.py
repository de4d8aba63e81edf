"""LU factors of sparse square matrices whose pattern is known when a scheme is prepared, computed and used inside kernels.

``P_r A P_c = L U`` with pivots where `plan` has put them, row by row (George, Liu, *Computer Solution of Large Sparse Positive Definite
Systems*, 1981). Both factors have the pattern of the factor of ``A + A^T``. A pivot that is rounding is perturbed, and iterative refinement
with A mends the solution (Li, Demmel, ACM Trans. Math. Software 29, 2003), or its residual tells that it could not.

>>> import numpy as np
>>> from scipy.sparse import csr_array
>>> from nsds.maths import sparse_lu
>>> A = csr_array([[4.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 2.0]])
>>> plan = sparse_lu.plan(A)
>>> work = np.concatenate([A.data, [5.0, 2.0, 3.0], np.zeros(3 + plan.size)])  # values, b, x, factors
>>> values, b, x, data, index, iwork = 0, plan.nnz, plan.nnz + 3, plan.nnz + 6, 0, plan.index.copy()
>>> sparse_lu.factorise(values, data, index, work, iwork)
0
>>> bool(sparse_lu.solve(values, data, index, b, x, work, iwork) < 1e-15)
True
>>> work[x : x + 3].round(12)
array([1., 1., 1.])
"""

from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, tiny
from nsds.maths.dissection import dissect

# the index, in iwork: a head of numbers and of offsets from its beginning, then the arrays there
# n; entries of L; perturbed pivots, the row of A of the first; multiplications of the last factorisation and a solution
_N, _M, _WEAK, _WEAK_ROW, _EFFORT = 0, 1, 2, 3, 14
_ROW, _COLUMN, _START, _PLACE, _VALUE = 4, 5, 6, 7, 8  # A: row and column of each pivot; rows by pivots: places of columns, of values
_LOWER, _LOWER_COLUMN, _MIRROR, _UPPER, _UPPER_COLUMN = 9, 10, 11, 12, 13  # factors by rows; of an entry of L, the transposed one of U
_HEAD = 15
# the data, in work: L (m), U (m), reciprocals of pivots (n), four vectors of scratch (n), marks of perturbed pivots (n), A of these (nnz)
_VECTORS = 6
SOLVED = 1e-12  # what `solve` returns, where the solution is one: relative to the terms of a row
_LOST = 1e-13  # of the terms that cancel in a pivot: a smaller one is rounding
_REPLACED = 2.0**-26  # of these terms: what such a pivot is replaced by
_EXACT = 2.0**-51  # of the terms of a row: the residual that asks for no refinement
_UNDERFLOW = 1e-290  # terms that have lost their digits: smaller ones count as this
_REFINEMENTS = 2  # at most, with pivots that are right
_REPAIRS = 12  # at most, with perturbed ones
_PLAIN_FILL = 40  # entries a row of the factor, up to which minimum degree is not beaten on planes


class Plan(NamedTuple):
    """Symbolic factors: the integers that kernels read, and the pattern whose values they get.

    ``values`` of `factorise` are the entries of compressed rows ``row``, ``column``: columns of a row ascending.
    """

    index: np.ndarray  # for iwork; kernels change its head
    size: int  # entries of work for the factors and scratch
    row: np.ndarray  # (n + 1,)
    column: np.ndarray  # (nnz,)
    nnz: int
    fill: int  # entries of L and U without the diagonal


class Rows(NamedTuple):
    """Offsets of compressed rows of a triangular factor: starts of rows, columns, values."""

    start: int
    column: int
    value: int


class SingularPatternError(ValueError):
    """A pattern all of whose matrices are singular; ``rows`` find no column of their own."""

    def __init__(self, rows):
        super().__init__(f"singular by its pattern: rows {rows.tolist()[:10]} have no column of their own")
        self.rows = rows

    def __reduce__(self):
        return SingularPatternError, (self.rows,)


def plan(pattern, last_after=None):
    """Order of elimination and pattern of the factors.

    An unknown without an entry on the diagonal, and each of ``last_after``, comes directly behind a neighbour of its own that has one: all
    pivots of ``[[M, H^T], [H, 0]]`` are then nonzero for positive definite M and independent rows of H. Where there is no such neighbour,
    rows are permuted until the diagonal is full.

    Parameters
    ----------
    pattern : scipy.sparse (n, n)
        Stored entries count as nonzero, whatever their values; duplicates are one entry.
    last_after : ndarray (k,) of int, optional
        Unknowns whose diagonal entry may vanish though it is stored, as those of active constraints.

    Returns
    -------
    Plan

    Raises
    ------
    SingularPatternError
        No permutation of the rows fills the diagonal.
    """
    # 1. canonical pattern
    n = pattern.shape[0]
    A = _pattern_of(pattern)
    # 2. partners of unknowns without a pivot; else a permutation of the rows
    doubtful = np.zeros(n, bool)
    doubtful[np.zeros(0, np.int64) if last_after is None else last_after] = True
    empty = A.diagonal() == 0
    partner = _partners(A, doubtful | empty)
    rows, permuted = np.arange(n), A
    if (partner[empty] < 0).any():
        rows = _rows_with_pivots(A)
        permuted = A[rows]
        partner = _partners(permuted, doubtful)
    # 3. order of elimination of the symmetric pattern, partners together
    graph = permuted + permuted.T
    graph.data[:] = 1.0
    order, graph, counts = _best_order(graph, partner, np.flatnonzero(doubtful & (partner < 0)))
    # 4. pattern of the factors, and A by pivots
    return _indexed(A, rows, order, graph, counts)


def _pattern_of(matrix):
    """Compressed rows of ones, sorted, without duplicates."""
    from scipy.sparse import csr_array

    A = csr_array(matrix.tocsr(copy=True))
    A.sum_duplicates()
    A.data = np.ones(A.nnz)
    return A


def _partners(A, alone):
    """For each unknown of ``alone``, a neighbour that is not, each the partner of one unknown only; else -1."""
    partner = np.full(alone.size, -1)
    if alone.any():
        from scipy.sparse.csgraph import maximum_bipartite_matching

        others = np.flatnonzero(~alone)
        both = A.multiply(A.T).tocsr()[alone][:, others]
        found = maximum_bipartite_matching(both, perm_type="column") if both.nnz else np.full(both.shape[0], -1)
        partner[alone] = np.where(found >= 0, others[found] if others.size else -1, -1)
    return partner


def _rows_with_pivots(A):
    """Row for each column so that its entry there is stored; rows stay where they can."""
    from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching

    found = maximum_bipartite_matching(A, perm_type="column")
    if (found < 0).any():
        raise SingularPatternError(np.flatnonzero(found < 0))
    weights = A.copy()
    weights.data += np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)) != A.indices  # 1 on the diagonal, 2 elsewhere
    row, column = min_weight_full_bipartite_matching(weights)
    result = np.empty(A.shape[0], np.int64)
    result[column] = row
    return result


def _best_order(graph, partner, late):
    """(order of elimination, (row, column) of the graph in that order, its counts by `_count`): the one of two with less fill."""
    # 1. each unknown with its partner is one vertex
    n = graph.shape[0]
    vertex = np.arange(n)
    vertex[partner >= 0] = partner[partner >= 0]
    first, vertex = np.unique(vertex, return_inverse=True)
    members = np.argsort(2 * vertex + (partner >= 0), kind="stable")  # an unknown behind its partner
    small = graph if first.size == n else _joined(graph, vertex, first.size)
    # 2. the order as it is, where a full band has no room for fill; minimum degree; nested dissection, too, where that fills in much
    best = None
    for method in (_as_it_is,) if _is_full_band(small) else (_minimum_degree, _dissected):
        place = np.empty(first.size, np.int64)
        place[method(small)] = np.arange(first.size)
        order = _behind(graph, members[np.argsort(place[vertex[members]], kind="stable")], late)
        ordered = _by_pivots(graph, order)
        counts = _count(*ordered)
        if best is None or counts[0].sum() < best[2][0].sum():
            best = order, ordered, counts
        if best[2][0].sum() <= _PLAIN_FILL * n:
            break
    return best


def _is_full_band(graph):
    """Whether all entries of a symmetric pattern between its outermost diagonals are stored, as of a chain in its order."""
    n = graph.shape[0]
    width = int(abs(np.repeat(np.arange(n), np.diff(graph.indptr)) - graph.indices).max(initial=0))
    entries = (graph.nnz - np.count_nonzero(graph.diagonal())) // 2
    return entries == width * n - width * (width + 1) // 2


def _as_it_is(graph):
    return np.arange(graph.shape[0])


def _joined(graph, vertex, n):
    """The graph of vertices of several unknowns each."""
    from scipy.sparse import csr_array

    row, column = vertex[np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))], vertex[graph.indices]
    return _pattern_of(csr_array((np.ones(row.size), (row, column)), shape=(n, n)))


def _minimum_degree(graph):
    """Order by multiple minimum degree, as SuperLU finds it before it factorises the Laplace matrix of the graph."""
    from scipy.sparse import csc_array, diags_array
    from scipy.sparse.linalg import splu

    laplace = csc_array(diags_array(np.diff(graph.indptr) + 1.0) - graph)
    return np.argsort(splu(laplace, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).perm_c)


def _dissected(graph):
    """Order by nested dissection."""
    return np.concatenate([front.unknowns for front in dissect(graph, np.zeros(0, np.int64))])


def _behind(graph, order, late):
    """The order with unknowns ``late`` moved behind all of their neighbours."""
    place = np.empty(order.size)
    place[order] = np.arange(order.size)
    for i in late:
        place[i] = max(place[graph.indices[graph.indptr[i] : graph.indptr[i + 1]]].max(), place[i]) + 0.5
    return np.argsort(place, kind="stable")


def _by_pivots(graph, order):
    """(row, column) of a symmetric pattern with its unknowns in an order."""
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    rows = graph[order]
    return rows.indptr.astype(np.int64), place[rows.indices]


def _count(row, column):
    """(entries of each row of L, of each row of U, parent of each pivot in the elimination tree)."""
    lower, upper, parent = (np.zeros(row.size - 1, np.int64) for _ in range(3))
    _walk(row, column, lower, upper, parent, np.zeros(row.size - 1, np.int64))
    return lower, upper, parent


@kernel
def _walk(row, column, lower, upper, parent, mark):
    """Counts of the factor of a symmetric pattern: row i of L is what paths from its entries up the elimination tree pass (Liu 1986)."""
    n = row.size - 1
    for i in range(n):
        parent[i], mark[i] = n, i
        for k in range(row[i], row[i + 1]):
            j = column[k]
            while j < i and mark[j] != i:
                mark[j] = i
                lower[i] += 1
                upper[j] += 1
                if parent[j] == n:
                    parent[j] = i
                j = parent[j]


@kernel
def _fill(row, column, parent, mark, upper, upper_column, lower, lower_column, mirror):
    """Columns of both factors, ascending in each row, and the place in U of what is transposed to an entry of L.

    In/out: upper and lower, the beginnings of rows; out: their ends.
    """
    n = parent.size
    for i in range(n):
        mark[i] = n
    for i in range(n):
        mark[i] = i
        for k in range(row[i], row[i + 1]):
            j = column[k]
            while j < i and mark[j] != i:
                mark[j] = i
                upper_column[upper[j]] = i
                upper[j] += 1
                j = parent[j]
    k = 0
    for j in range(n):
        while k < upper[j]:
            i = upper_column[k]
            lower_column[lower[i]] = j
            mirror[lower[i]] = k
            lower[i] += 1
            k += 1


def _indexed(A, rows, order, graph, counts):
    """`Plan` of A with the pivots (rows[j], j) in an order of j."""
    n = order.size
    lower_count, upper_count, parent = counts
    lower, upper = (np.concatenate([[0], np.cumsum(count)]) for count in (lower_count, upper_count))
    m = int(lower[-1])
    # 1. patterns of the factors
    lower_column, mirror, upper_column = (np.zeros(m, np.int64) for _ in range(3))
    _fill(*graph, parent, np.zeros(n, np.int64), upper[:-1].copy(), upper_column, lower[:-1].copy(), lower_column, mirror)
    # 2. rows of A by pivots
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    row_of = rows[order]
    length = np.diff(A.indptr)[row_of]
    start = np.concatenate([[0], np.cumsum(length)])
    value = np.repeat(A.indptr[row_of] - start[:-1], length) + np.arange(A.nnz)
    # 3. one array, offsets in its head
    arrays = {
        _ROW: row_of, _COLUMN: order, _START: start, _PLACE: place[A.indices[value]], _VALUE: value, _LOWER: lower,
        _LOWER_COLUMN: lower_column, _MIRROR: mirror, _UPPER: upper, _UPPER_COLUMN: upper_column,
    }  # fmt: skip
    head, at = np.zeros(_HEAD, np.int64), _HEAD
    head[[_N, _M, _WEAK_ROW]] = n, m, -1
    for key, array in arrays.items():
        head[key] = at
        at += array.size
    index = np.concatenate([head, *arrays.values()]).astype(np.int64)
    return Plan(index, 2 * m + _VECTORS * n + A.nnz, A.indptr.astype(np.int64), A.indices.astype(np.int64), A.nnz, 2 * m)


def number_of_entries(index):
    """Entries of both factors, with the diagonal, by the index of a `Plan`."""
    return int(2 * index[_M] + index[_N])


@kernel
def factorise(values, data, index, work, iwork):
    """``P_r A P_c = L U`` for the values of a planned pattern; returns the number of pivots that were rounding and are perturbed.

    Only rows whose values differ from those of the call before, and rows that are eliminated with others whose factors have changed, are
    eliminated again: the rest would get the same numbers. In: offsets values, data in work (data of zeros before the first call); index in
    iwork. Out: data. The row of A with the first perturbed pivot: `weak_row`; the multiplications that it took, with a solution: `effort`.
    """
    n, m = iwork[index + _N], iwork[index + _M]
    row_of, start = index + iwork[index + _ROW], index + iwork[index + _START]
    place, value = index + iwork[index + _PLACE], index + iwork[index + _VALUE]
    lower, lower_column, mirror = index + iwork[index + _LOWER], index + iwork[index + _LOWER_COLUMN], index + iwork[index + _MIRROR]
    upper, upper_column = index + iwork[index + _UPPER], index + iwork[index + _UPPER_COLUMN]
    L, U, reciprocal = data, data + m, data + 2 * m
    dense, changed, weak, kept = reciprocal + n, reciprocal + 2 * n, reciprocal + 5 * n, reciprocal + 6 * n
    n_weak, n_products = 0, 2 * m + n
    for i in range(n):
        work[dense + i] = work[changed + i] = 0.0
    for i in range(n):
        # 1. a row keeps its factors, unless it has changed, or one that it is eliminated with
        is_new = work[changed + i] != 0.0 or work[reciprocal + i] == 0.0
        for k in range(iwork[start + i], iwork[start + i + 1]):
            is_new |= work[kept + iwork[value + k]] != work[values + iwork[value + k]]
        if not is_new:
            if work[weak + i] != 0.0:
                iwork[index + _WEAK_ROW] = iwork[row_of + i] if n_weak == 0 else iwork[index + _WEAK_ROW]
                n_weak += 1
            continue
        # 2. row of A
        for k in range(iwork[start + i], iwork[start + i + 1]):
            work[dense + iwork[place + k]] = work[kept + iwork[value + k]] = work[values + iwork[value + k]]
        terms = abs(work[dense + i])
        # 3. elimination with the rows above; entries that vanish, as of inactive constraints, cost nothing
        for k in range(iwork[lower + i], iwork[lower + i + 1]):
            j = iwork[lower_column + k]
            factor = work[dense + j] * work[reciprocal + j]
            work[dense + j] = 0.0
            work[L + k] = factor
            if factor != 0.0:
                terms += abs(factor * work[U + iwork[mirror + k]])
                n_products += iwork[upper + j + 1] - iwork[upper + j] + 1
                for l in range(iwork[upper + j], iwork[upper + j + 1]):
                    work[dense + iwork[upper_column + l]] -= factor * work[U + l]
        # 4. pivot
        pivot = work[dense + i]
        work[dense + i] = work[weak + i] = 0.0
        if abs(pivot) <= _LOST * terms:
            work[weak + i] = 1.0
            if n_weak == 0:
                iwork[index + _WEAK_ROW] = iwork[row_of + i]
            n_weak += 1
            pivot = (_REPLACED * terms if terms > 0.0 else 1.0) * (-1.0 if pivot < 0.0 else 1.0)
        differs = work[reciprocal + i] != 1.0 / pivot
        work[reciprocal + i] = 1.0 / pivot
        # 5. row of U; rows that are eliminated with it change, if it has
        for l in range(iwork[upper + i], iwork[upper + i + 1]):
            differs |= work[U + l] != work[dense + iwork[upper_column + l]]
            work[U + l] = work[dense + iwork[upper_column + l]]
            work[dense + iwork[upper_column + l]] = 0.0
        for l in range(iwork[upper + i] if differs else 0, iwork[upper + i + 1] if differs else 0):
            work[changed + iwork[upper_column + l]] = 1.0
    iwork[index + _WEAK], iwork[index + _EFFORT] = n_weak, n_products
    if n_weak == 0:
        iwork[index + _WEAK_ROW] = -1
    return n_weak


@tiny
def weak_row(index, iwork):
    """Row of A with the first pivot that the last call of `factorise` perturbed, -1 if there is none."""
    return iwork[index + _WEAK_ROW]


@tiny
def effort(index, iwork):
    """Multiplications of the last call of `factorise`, and of one solution."""
    return iwork[index + _EFFORT]


@kernel
def solve(values, data, index, b, x, work, iwork):
    """``A x = b`` with the factors of `factorise`, refined; returns the largest residual of a row relative to its terms.

    In: offsets values (of A itself), data, b in work; index in iwork. Out: work[x:x + n]; b may be x. More than
    `SOLVED`, or NaN, tells that the matrix is singular to working precision, and b not in its range.
    """
    n, m = iwork[index + _N], iwork[index + _M]
    row_of, column_of = index + iwork[index + _ROW], index + iwork[index + _COLUMN]
    y = data + 2 * m + 2 * n
    rest, rhs = y + n, y + 2 * n
    # 1. with the factors as they are
    for i in range(n):
        work[rhs + i] = work[b + iwork[row_of + i]]
        work[y + i] = work[rhs + i]
    _substitute(data, index, y, work, iwork)
    # 2. refinement, as long as it halves the residual
    limit = _REPAIRS if iwork[index + _WEAK] > 0 else _REFINEMENTS
    error = _residual(values, index, y, rest, rhs, work, iwork)
    for _ in range(limit):
        if error <= _EXACT:
            break
        before = error
        _substitute(data, index, rest, work, iwork)
        for i in range(n):
            work[y + i] += work[rest + i]
        error = _residual(values, index, y, rest, rhs, work, iwork)
        if not error < 0.5 * before:
            break
    # 3. unknowns in their order
    for i in range(n):
        work[x + iwork[column_of + i]] = work[y + i]
    return error


@kernel
def _substitute(data, index, y, work, iwork):
    """``y <- U^-1 L^-1 y``."""
    m = iwork[index + _M]
    lower = Rows(index + iwork[index + _LOWER], index + iwork[index + _LOWER_COLUMN], data)
    upper = Rows(index + iwork[index + _UPPER], index + iwork[index + _UPPER_COLUMN], data + m)
    substitute(iwork[index + _N], lower, upper, data + 2 * m, y, work, iwork)


@tiny
def substitute(n, L, U, reciprocal, y, work, iwork):
    """``y <- U^-1 L^-1 y``; L with unit diagonal, U with the reciprocals of its diagonal apart. In/out: work[y:y + n]."""
    for i in range(n):
        s = work[y + i]
        for k in range(iwork[L.start + i], iwork[L.start + i + 1]):
            s -= work[L.value + k] * work[y + iwork[L.column + k]]
        work[y + i] = s
    for i in range(n - 1, -1, -1):
        s = work[y + i]
        for k in range(iwork[U.start + i], iwork[U.start + i + 1]):
            s -= work[U.value + k] * work[y + iwork[U.column + k]]
        work[y + i] = s * work[reciprocal + i]


@kernel
def _residual(values, index, y, rest, rhs, work, iwork):
    """``rest = rhs - A y`` by pivots; returns its largest entry relative to the terms of its row, NaN where one is NaN or infinite."""
    start, place, value = index + iwork[index + _START], index + iwork[index + _PLACE], index + iwork[index + _VALUE]
    error = invalid = 0.0
    for i in range(iwork[index + _N]):
        s = work[rhs + i]
        terms = abs(s)
        for k in range(iwork[start + i], iwork[start + i + 1]):
            term = work[values + iwork[value + k]] * work[y + iwork[place + k]]
            s -= term
            terms += abs(term)
        work[rest + i] = s
        invalid += 0.0 * terms
        if abs(s) > error * max(terms, _UNDERFLOW):
            error = abs(s) / max(terms, _UNDERFLOW)
    return error + invalid
