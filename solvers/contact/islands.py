"""Islands: sets of contacts that do not touch each other through any body, and so are problems of their own."""

import math

import numpy as np

from nsds._jit import kernel, tiny, view
from nsds.solvers.contact import block_lu


@kernel
def find(row, column, begin, member, queue):
    """Number of islands; island i has the contacts ``member[begin[i]:begin[i + 1]]``, ascending.

    Out: begin (n+1,), member (n,). Work: queue (2 n,).
    """
    n, n_islands, n_marked = row.size - 1, 0, 0
    for c in range(n):
        queue[n + c] = -1
    for c in range(n):
        if queue[n + c] >= 0:
            continue
        queue[0], queue[n + c] = c, n_islands
        head, tail = 0, 1
        while head < tail:
            for k in range(row[queue[head]], row[queue[head] + 1]):
                j = column[k]
                if queue[n + j] < 0:
                    queue[n + j] = n_islands
                    queue[tail] = j
                    tail += 1
            head += 1
        begin[n_islands] = n_marked
        n_marked += tail
        n_islands += 1
    begin[n_islands] = n
    for i in range(n_islands):
        queue[i] = begin[i]
    for c in range(n):
        i = queue[n + c]
        member[queue[i]] = c
        queue[i] += 1
    return n_islands


@kernel
def extract_pattern(first, last, member, place, row, column, row_i, column_i):
    """Rows and columns of the contacts ``member[first:last]`` among themselves. Out: row_i, column_i. Work: place (n,)."""
    for i in range(first, last):
        place[member[i]] = i - first
    row_i[0] = n_blocks = 0
    for i in range(last - first):
        for k in range(row[member[first + i]], row[member[first + i] + 1]):
            column_i[n_blocks] = place[column[k]]
            n_blocks += 1
        row_i[i + 1] = n_blocks


@kernel
def largest(row, column, begin, member, place, row_i, column_i, bits, found):
    """Out: found (3,): the most contacts, blocks, and blocks above the diagonal of the factors (where they fit `block_lu`) of an island.

    Work: begin, member, place and row_i (n+1,), column_i like column, bits.
    """
    n_islands = find(row, column, begin, member, bits)
    for i in range(n_islands):
        n = begin[i + 1] - begin[i]
        extract_pattern(begin[i], begin[i + 1], member, place, row, column, row_i, column_i)
        found[0], found[1] = max(found[0], n), max(found[1], row_i[n])
        if n <= block_lu.LARGEST:
            rows, m = view(row_i, 0, n + 1), n * block_lu.words(n)
            order, degree, neighbours = view(bits, 0, n), view(bits, n, n), view(bits, 2 * n, m)
            n_upper = block_lu.least_degree_order(block_lu.UNLIMITED, rows, column_i, neighbours, order, degree)
            found[2] = max(found[2], n_upper)


def sizes(row, column):
    """(contacts, blocks, blocks above the diagonal of the factors): the most of an island, the last one of those that fit `block_lu`."""
    n = row.size - 1
    bits = np.zeros(2 * n + min(n, block_lu.LARGEST) * block_lu.words(min(n, block_lu.LARGEST)), np.int64)
    begin, member, place, row_i = (np.zeros(n + 1, np.int64) for _ in range(4))
    found = np.zeros(3, np.int64)
    largest(row, column, begin, member, place, row_i, np.zeros_like(column), bits, found)
    return tuple(found.tolist())


@kernel
def extract(first, last, member, place, problem, r, island, r_i):
    """The problem of the contacts ``member[first:last]`` and its guess. Out: island, whose arrays may be longer, r_i. Work: place (n,)."""
    row, d, n_entries = problem.row, problem.q.size // problem.disk.size, 0
    extract_pattern(first, last, member, place, row, problem.column, island.row, island.column)
    for i in range(last - first):
        c = member[first + i]
        island.disk[i], island.mu[2 * i], island.mu[2 * i + 1] = problem.disk[c], problem.mu[2 * c], problem.mu[2 * c + 1]
        for a in range(d):
            island.q[d * i + a], r_i[d * i + a] = problem.q[d * c + a], r[d * c + a]
        for k in range(row[c] * d * d, row[c + 1] * d * d):
            island.W[n_entries] = problem.W[k]
            n_entries += 1


@tiny
def share(tol, first, last, d, member, q):
    """Tolerance for an island: its part, by number of contacts, of what tol allows the whole."""
    whole = own = 0.0
    for i in range(q.size):
        whole += q[i] ** 2
    for i in range(first, last):
        for a in range(d * member[i], d * (member[i] + 1)):
            own += q[a] ** 2
    return tol * math.sqrt((whole if whole > 0.0 else 1.0) * d * (last - first) / q.size / (own if own > 0.0 else 1.0))
