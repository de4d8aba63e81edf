"""Equations of joints as one matrix, ``W = E M_hat^-1 H^T`` and their diagonal, factorised in an order in which little fills in.

Rows that link the same two bodies are a node of a graph, whose nodes are linked where they share a body that can move. They are eliminated
in the order of minimum degree: of a tree of joints little fills in, so that the time grows with the number of joints. Rows are scaled by
their own diagonal, ``A = D W D`` with ``D = |diag(W)|^(-1/2)``. As W is all but symmetric and positive definite, pivots are taken as they
come; where one is small rows may depend on each other, and `nsds.schemes.rigid.redundancy` looks for pivots.
References: George, Liu, SIAM Review 31 (1989) 1–19; Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, 6.5 (sparsity of trees).
"""

import math

from nsds._jit import kernel, tiny
from nsds.solvers.contact.signature import EQUATION

MOST = 120  # rows of a dense matrix; more are left to the solver
MOST_NODES = 62  # bits of a word; what links further pairs of bodies goes to the last node
_SMALL = 1e-6  # of a row's own diagonal: a pivot that rows which depend on each other may have left


@kernel
def gather(epsilon, d, stated, bodies, G, p, work, iwork):
    """The equations of a problem as a dense matrix, without the epsilon that makes them regular for other methods.

    Returns the number of rows; 0 where there is no room. Out: nodes, component, scale, and dense where the elimination gets to.
    """
    n = _find_nodes(d, stated, G, p, iwork)
    if n == 0:
        return 0
    _link_nodes(d, stated, bodies, p, iwork)
    _order_nodes(p, iwork)
    _list_rows(d, stated, p, iwork)
    for i in range(n):
        a = iwork[p.component + i]
        diagonal = stated.diagonal[a] + _product(12 * a, 12 * a, 12, stated.E, G)
        work[p.scale + i] = 1.0 / math.sqrt(abs(diagonal))
        work[p.dense + n * i + i] = diagonal * work[p.scale + i] ** 2 - epsilon
    for x in range(iwork[p.n_nodes]):
        first, m = iwork[p.node_row + x], _reach(x, p, iwork)
        for k in range(iwork[p.node_row + x + 1] - first):
            for j in range(k + 1, m):
                _couple(first + k, iwork[p.reach + j], n, stated.E, G, p, work, iwork)
    return n


@tiny
def _product(x, y, size, E, G):
    """``E[x:x + size] . G[y:y + size]``."""
    s = 0.0
    for l in range(size):
        s += E[x + l] * G[y + l]
    return s


@tiny
def _couple(i, j, n, E, G, p, work, iwork):
    """The entries (i, j) and (j, i): what acts on bodies that both rows have. Out: dense."""
    x, y, s, t = 12 * iwork[p.component + i], 12 * iwork[p.component + j], 0.0, 0.0
    for side in range(2):
        body = iwork[p.ends + 2 * i + side]
        for other in range(2):
            if body >= 0 and body == iwork[p.ends + 2 * j + other]:
                s += _product(x + 6 * side, y + 6 * other, 6, E, G)
                t += _product(y + 6 * other, x + 6 * side, 6, E, G)
    scale = work[p.scale + i] * work[p.scale + j]
    work[p.dense + n * i + j], work[p.dense + n * j + i] = scale * s, scale * t


# ------------------------------------------------------------------------------------------------------------------ nodes


@kernel
def _find_nodes(d, stated, G, p, iwork):
    """Number of rows that act on anything, 0 where there is no room for them. Out: n_nodes, node_body, row_of: the node of each, or -1."""
    n, n_nodes = 0, 0
    for k in range(stated.disk.size):
        node = -1
        for a in range(d * k, d * k + d):
            iwork[p.row_of + a] = -1
            if stated.disk[k] != EQUATION or not _acts(a, stated, G):
                continue
            if n == p.most:
                return 0
            if node < 0:
                node = _node_of(stated.body[2 * k], stated.body[2 * k + 1], n_nodes, p, iwork)
                n_nodes = max(n_nodes, node + 1)
            iwork[p.row_of + a] = node
            n += 1
    iwork[p.n_nodes] = n_nodes
    return n


@tiny
def _acts(a, stated, G):
    """Whether component a acts on anything that can be moved, or yields."""
    size = 0.0
    for l in range(12 * a, 12 * a + 12):
        size += abs(stated.H[l])
    return size > 0.0 and stated.diagonal[a] + _product(12 * a, 12 * a, 12, stated.E, G) != 0.0


@tiny
def _node_of(body_a, body_b, n_nodes, p, iwork):
    """The node of a pair of bodies, a new one for a new pair. Out: node_body."""
    for x in range(n_nodes):
        if iwork[p.node_body + 2 * x] == body_a and iwork[p.node_body + 2 * x + 1] == body_b:
            return x
    x = min(n_nodes, MOST_NODES - 1)
    iwork[p.node_body + 2 * x], iwork[p.node_body + 2 * x + 1] = body_a, body_b
    return x


@kernel
def _link_nodes(d, stated, bodies, p, iwork):
    """Out: node_links: of each node the bits of those that share a body with it that can move."""
    for i in range(bodies.size):
        iwork[p.on_body + i] = 0
    for x in range(iwork[p.n_nodes]):
        iwork[p.node_links + x] = 0
    for turn in range(2):
        for a in range(stated.b.size):
            x = iwork[p.row_of + a]
            for side in range(2 if x >= 0 else 0):
                body = stated.body[2 * (a // d) + side]
                if body >= 0 and not bodies[body].fixed and turn == 0:
                    iwork[p.on_body + body] |= 1 << x
                elif body >= 0 and not bodies[body].fixed:
                    iwork[p.node_links + x] |= iwork[p.on_body + body]


@kernel
def _order_nodes(p, iwork):
    """Next comes the node with the fewest links to what is left, which it links with each other.

    Out: node_place: places in the order; node_links: bits of what a node is linked to later; node_at: the node at each place.
    """
    n_nodes = iwork[p.n_nodes]
    left = (1 << n_nodes) - 1
    for x in range(n_nodes):
        best, fewest = -1, MOST_NODES + 1
        for j in range(n_nodes):
            degree = _count(iwork[p.node_links + j] & left) if (left >> j) & 1 else fewest
            if degree < fewest:
                best, fewest = j, degree
        left ^= 1 << best
        later = iwork[p.node_links + best] & left
        iwork[p.node_at + x], iwork[p.node_links + best] = best, later
        for j in range(n_nodes):
            if (later >> j) & 1:
                iwork[p.node_links + j] |= later


@tiny
def _count(bits):
    """How many bits are set."""
    n = 0
    while bits != 0:
        bits &= bits - 1
        n += 1
    return n


@kernel
def _list_rows(d, stated, p, iwork):
    """Out: component: that of each row, node by node in their order; node_row: where nodes begin; ends: bodies of each row."""
    n = 0
    for x in range(iwork[p.n_nodes]):
        iwork[p.node_row + x] = n
        for a in range(stated.b.size):
            if iwork[p.row_of + a] == iwork[p.node_at + x]:
                iwork[p.component + n] = a
                iwork[p.ends + 2 * n], iwork[p.ends + 2 * n + 1] = stated.body[2 * (a // d)], stated.body[2 * (a // d) + 1]
                n += 1
    iwork[p.node_row + iwork[p.n_nodes]] = n


@tiny
def _reach(x, p, iwork):
    """Number of rows of the node at place x and of those that it is linked to later. Out: reach: these rows."""
    m, links = 0, iwork[p.node_links + iwork[p.node_at + x]]
    for y in range(x, iwork[p.n_nodes]):
        if y == x or (links >> iwork[p.node_at + y]) & 1:
            for i in range(iwork[p.node_row + y], iwork[p.node_row + y + 1]):
                iwork[p.reach + m] = i
                m += 1
    return m


# ------------------------------------------------------------------------------------------------------------------ elimination


@kernel
def eliminate(n, p, work, iwork):
    """Factors L and U of the n rows as they come; False where a pivot is small. In/out: dense."""
    for x in range(iwork[p.n_nodes] if n > 0 else 0):
        first, m = iwork[p.node_row + x], _reach(x, p, iwork)
        for k in range(iwork[p.node_row + x + 1] - first):
            row = p.dense + n * (first + k)
            if not abs(work[row + first + k]) > _SMALL:
                return False
            inverse = 1.0 / work[row + first + k]
            for i in range(k + 1, m):
                below = p.dense + n * iwork[p.reach + i]
                factor = work[below + first + k] * inverse
                work[below + first + k] = factor
                for j in range(k + 1, m):
                    work[below + iwork[p.reach + j]] -= factor * work[row + iwork[p.reach + j]]
    return True


@kernel
def substitute(n, q, p, r, work, iwork):
    """``W r + q = 0`` by the factors of `eliminate`. Out: r, 0 but in these rows."""
    z = p.scaled
    for a in range(r.size):
        r[a] = 0.0
    for i in range(n):
        work[z + i] = -work[p.scale + i] * q[iwork[p.component + i]]
    for x in range(iwork[p.n_nodes]):
        first, m = iwork[p.node_row + x], _reach(x, p, iwork)
        for k in range(iwork[p.node_row + x + 1] - first):
            for i in range(k + 1, m):
                work[z + iwork[p.reach + i]] -= work[p.dense + n * iwork[p.reach + i] + first + k] * work[z + first + k]
    for x in range(iwork[p.n_nodes] - 1, -1, -1):
        first, m = iwork[p.node_row + x], _reach(x, p, iwork)
        for k in range(iwork[p.node_row + x + 1] - first - 1, -1, -1):
            s = work[z + first + k]
            for j in range(k + 1, m):
                s -= work[p.dense + n * (first + k) + iwork[p.reach + j]] * work[z + iwork[p.reach + j]]
            work[z + first + k] = s / work[p.dense + n * (first + k) + first + k]
    for i in range(n):
        r[iwork[p.component + i]] = work[p.scale + i] * work[z + i]
