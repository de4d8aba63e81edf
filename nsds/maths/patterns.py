"""Patterns of sparse Jacobians: groups of columns for compressed finite differences, and patterns found or checked by trial.

Columns without a row in common are moved together (Curtis, Powell, Reid, IMA Journal of Applied Mathematics 13, 1974), so that a Jacobian
costs as many evaluations as there are groups, not as there are columns.

>>> import numpy as np
>>> from scipy.sparse import csr_array
>>> from nsds.maths import patterns
>>> tridiagonal = csr_array(np.triu(np.tril(np.ones((5, 5)), 1), -1))
>>> patterns.groups(tridiagonal)
array([0, 1, 2, 0, 1])
>>> moved = lambda columns: tridiagonal @ columns.astype(float) > 0
>>> patterns.found(moved, 5, most=5).nnz
13
"""

import numpy as np

from nsds._jit import kernel

_PAIRS = 2e8  # of entries in one row: more are not worth compressing
_MANY = 0.05  # of the entries of a diagonal
_CHECKS = 48  # sets of columns by which a stated pattern is checked


def groups(pattern):
    """Number of the group of each column of a scipy.sparse pattern (m, n); columns of a group have no row in common."""
    rows, columns = pattern.tocsr(), pattern.tocsc()
    group, mark = np.empty(pattern.shape[1], np.int64), np.full(pattern.shape[1] + 1, -1)
    arrays = (each.astype(np.int64) for each in (rows.indptr, rows.indices, columns.indptr, columns.indices))
    _group_greedily(*arrays, group, mark)
    return group


def is_compressible(pattern):
    """Whether grouping the columns is affordable: the square of a full row is not."""
    return float((np.diff(pattern.tocsr().indptr).astype(float) ** 2).sum()) <= _PAIRS


@kernel
def _group_greedily(row, column, begin, row_of, group, mark):
    """The first group that no earlier column with a row in common is in. In: rows (row, column), columns (begin, row_of). Work: mark."""
    for j in range(group.size):
        group[j] = -1
    for j in range(group.size):
        for k in range(begin[j], begin[j + 1]):
            for e in range(row[row_of[k]], row[row_of[k] + 1]):
                if group[column[e]] >= 0:
                    mark[group[column[e]]] = j
        free = 0
        while mark[free] == j:
            free += 1
        group[j] = free


def found(moved, n, most):
    """Pattern of a function of n arguments, as scipy.sparse; None if it has too many entries for groups of columns.

    Blocks of columns are halved down to single ones; blocks that no row depends on together are tried together, so that each row that
    moves names the block that moved it.

    Parameters
    ----------
    moved : callable
        ``moved(columns)``: which results (m,) change as the arguments in a boolean array (n,) do.
    n : int
    most : int
        Evaluations of each halving, at most.
    """
    from scipy.sparse import csr_array

    edges, everything = np.array([0, n]), moved(np.ones(n, bool))
    m = everything.size
    row = np.flatnonzero(everything)
    block = np.zeros(row.size, np.int64)
    while (np.diff(edges) > 1).any():
        # 1. halves of blocks; a row may depend on either half
        middle = (edges[:-1] + edges[1:]) // 2
        finer = np.unique(np.concatenate([edges, middle]))
        first = np.searchsorted(finer, edges[block])
        has_two = finer[first + 1] < edges[block + 1]
        row, block, edges = np.concatenate([row, row[has_two]]), np.concatenate([first, first[has_two] + 1]), finer
        candidates = csr_array((np.ones(row.size, np.int8), (row, block)), shape=(m, edges.size - 1))
        if not is_compressible(candidates):
            return None
        # 2. blocks of a group move together; those rows keep a block that change
        group = groups(candidates)
        if group.max(initial=-1) >= most:
            return None
        stays = np.zeros(row.size, bool)
        for k in range(group.max(initial=-1) + 1):
            changed = moved(np.repeat(group == k, np.diff(edges)))
            mine = group[block] == k
            stays[mine] = changed[row[mine]]
        row, block = row[stays], block[stays]
    return csr_array((np.ones(row.size), (row, block)), shape=(m, n))


def with_whole_diagonals(pattern):
    """A square pattern with the rest of each diagonal that has many entries."""
    from scipy.sparse import coo_array, csr_array

    entries, n = csr_array(pattern).tocoo(), pattern.shape[0]
    offset = entries.coords[1] - entries.coords[0]
    found, count = np.unique(offset, return_counts=True)
    room = n - abs(found)
    rows, columns = [entries.coords[0]], [entries.coords[1]]
    for k in found[count >= _MANY * room]:
        i = np.arange(max(0, -k), min(n, n - k))
        rows.append(i)
        columns.append(i + k)
    rows, columns = np.concatenate(rows), np.concatenate(columns)
    return coo_array((np.ones(rows.size), (rows, columns)), shape=pattern.shape).tocsr()


def missing_entry(moved, pattern, n_checks=_CHECKS):
    """(row, column) of an entry that a pattern lacks, found by random sets of columns; None if none shows."""
    rows = pattern.tocsr()
    n = pattern.shape[1]
    random, width = np.random.default_rng(0), max(int(np.diff(rows.indptr).max(initial=1)), 1)
    for k in range(n_checks):
        # of columns so few that most rows do not depend on any: those rows must not change
        columns = random.random(n) < (1.0 if k == 0 else 1.0 / (width + 1))
        reached = rows @ columns.astype(float) > 0
        wrong = np.flatnonzero(moved(columns) & ~reached)
        if wrong.size:
            i, candidates = wrong[0], np.flatnonzero(columns)
            while candidates.size > 1:
                half = np.zeros(n, bool)
                half[candidates[: candidates.size // 2]] = True
                candidates = candidates[: candidates.size // 2] if moved(half)[i] else candidates[candidates.size // 2 :]
            return int(i), int(candidates[0])
    return None


def places(row, column, i, j):
    """Places of entries (i, j) among those of compressed rows, columns ascending."""
    n = row.size - 1
    owner = np.repeat(np.arange(n), np.diff(row))
    return np.searchsorted(owner * n + column, np.asarray(i, np.int64) * n + j)


def distinct(numbers, end):
    """Distinct integers of an array, from 0 to end - 1, ascending.

    >>> from nsds.maths.patterns import distinct
    >>> distinct(np.array([3, 1, 3, 2, 1]), 4), distinct(np.array([700, 3, 700]), 1000)
    (array([1, 2, 3]), array([  3, 700]))
    """
    # 1. many of those that there can be: a mark for each
    if end <= _MARKS * numbers.size:
        marks = np.zeros(end, bool)
        marks[numbers] = True
        return np.flatnonzero(marks)
    # 2. few: by sorting, as tables of millions of them take several times as long
    numbers = np.sort(numbers)
    return numbers[np.append(True, numbers[1:] != numbers[:-1])] if numbers.size else numbers


_MARKS = 16  # marks are looked through faster than one number is sorted
