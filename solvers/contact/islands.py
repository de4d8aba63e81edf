"""Islands: sets of contacts that do not touch each other through any body, and so are problems of their own."""

import math

from nsds._jit import kernel, tiny


@kernel
def find(row, column, begin, member, queue):
    """Number of islands; island i has the contacts ``member[begin[i]:begin[i + 1]]``, ascending. Out: begin (n+1,), member (n,). Work: queue (2 n,)."""
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
def extract(first, last, member, place, d, disk, mu, row, column, W, q, r, disk_i, mu_i, row_i, column_i, W_i, q_i, r_i):
    """The problem of the contacts ``member[first:last]`` and its guess. Out: all that end in _i. Work: place (n,)."""
    for i in range(first, last):
        place[member[i]] = i - first
    row_i[0] = n_blocks = 0
    for i in range(last - first):
        c = member[first + i]
        disk_i[i], mu_i[2 * i], mu_i[2 * i + 1] = disk[c], mu[2 * c], mu[2 * c + 1]
        for a in range(d):
            q_i[d * i + a], r_i[d * i + a] = q[d * c + a], r[d * c + a]
        for k in range(row[c], row[c + 1]):
            column_i[n_blocks] = place[column[k]]
            for a in range(d * d):
                W_i[n_blocks * d * d + a] = W[k * d * d + a]
            n_blocks += 1
        row_i[i + 1] = n_blocks


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
