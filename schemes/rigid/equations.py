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

MOST = 600  # rows that there is room for; more are left to the solver
_BITS = 62  # nodes for each word of links
_SMALL = 1e-6  # of a row's own diagonal: a pivot that rows which depend on each other may have left


def words_of(n_nodes):
    """Words of the links of a node."""
    return (n_nodes + _BITS - 1) // _BITS


@kernel
def gather(d, stated, bodies, G, p, work, iwork):
    """The equations of a problem as a dense matrix, rows in their order of elimination; they were completed by `blocks.complete_blocks`.

    Returns the number of rows; 0 where there is no room. Out: nodes, component, scale, and dense where the elimination gets to.
    """
    n = _find_nodes(d, stated, G, p, iwork)
    if n == 0:
        return 0
    if iwork[p.is_ordered] == 0:
        _link_nodes(bodies, p, iwork)
        _order_nodes(p, iwork)
        iwork[p.is_ordered] = 1
    _list_rows(d, stated, p, iwork)
    for i in range(n):
        a = iwork[p.component + i]
        diagonal = stated.diagonal[a] + _product(12 * a, 12 * a, 12, stated.E, G)
        work[p.scale + i] = 1.0 / math.sqrt(abs(diagonal))
        work[p.dense + n * i + i] = diagonal * work[p.scale + i] ** 2
    for x in range(iwork[p.n_nodes]):
        n_runs = _reach(x, p, iwork)
        for i in range(iwork[p.node_row + x], iwork[p.node_row + x + 1]):
            iwork[p.reach] = i + 1
            for run in range(p.reach, p.reach + 2 * n_runs, 2):
                _couple(i, iwork[run], iwork[run + 1], n, stated.E, G, p, work, iwork)
    return n


@tiny
def _product(x, y, size, E, G):
    """``E[x:x + size] . G[y:y + size]``."""
    s = 0.0
    for l in range(size):
        s += E[x + l] * G[y + l]
    return s


@tiny
def _couple(i, begin, end, n, E, G, p, work, iwork):
    """The entries (i, j) and (j, i) of rows j from begin up to end: what acts on bodies that both rows have. Out: dense."""
    x, body_a, body_b, scale = 12 * iwork[p.component + i], iwork[p.ends + 2 * i], iwork[p.ends + 2 * i + 1], work[p.scale + i]
    for j in range(begin, end):
        y, s, t = 12 * iwork[p.component + j], 0.0, 0.0
        for other in range(2):
            body = iwork[p.ends + 2 * j + other]
            if body >= 0 and body == body_a:
                s += _product(x, y + 6 * other, 6, E, G)
                t += _product(y + 6 * other, x, 6, E, G)
            if body >= 0 and body == body_b:
                s += _product(x + 6, y + 6 * other, 6, E, G)
                t += _product(y + 6 * other, x + 6, 6, E, G)
        both = scale * work[p.scale + j]
        work[p.dense + n * i + j], work[p.dense + n * j + i] = both * s, both * t


# ------------------------------------------------------------------------------------------------------------------ nodes


@kernel
def _find_nodes(d, stated, G, p, iwork):
    """Number of rows that act on anything, 0 where there is no room for them. Out: n_nodes, node_body, row_of: the node of each, or -1.

    is_ordered becomes 0 where nodes are others than those of the last call.
    """
    n, n_nodes, n_before = 0, 0, iwork[p.n_nodes]
    for k in range(stated.disk.size):
        node = -1
        for a in range(d * k, d * k + d):
            iwork[p.row_of + a] = -1
            if stated.disk[k] != EQUATION or not _acts(a, stated, G):
                continue
            if n == p.most:
                iwork[p.is_ordered] = 0
                return 0
            if node < 0:
                node = _node_of(stated.body[2 * k], stated.body[2 * k + 1], n_nodes, p, iwork)
                n_nodes = max(n_nodes, node + 1)
            iwork[p.row_of + a] = node
            n += 1
    if n_nodes != n_before:
        iwork[p.n_nodes], iwork[p.is_ordered] = n_nodes, 0
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
    """The node of a pair of bodies, a new one for a new pair. In/out: node_body, is_ordered."""
    for x in range(n_nodes):
        if iwork[p.node_body + 2 * x] == body_a and iwork[p.node_body + 2 * x + 1] == body_b:
            return x
    at = p.node_body + 2 * n_nodes
    if iwork[at] != body_a or iwork[at + 1] != body_b:
        iwork[at], iwork[at + 1], iwork[p.is_ordered] = body_a, body_b, 0
    return n_nodes


@kernel
def _link_nodes(bodies, p, iwork):
    """Out: node_links: of each node the bits of those that share a body with it that can move, itself among them."""
    words = p.n_words
    for i in range(bodies.size * words):
        iwork[p.on_body + i] = 0
    for turn in range(2):
        for x in range(iwork[p.n_nodes]):
            for w in range(words if turn == 0 else 0):
                iwork[p.node_links + words * x + w] = 0
            for side in range(2):
                body = iwork[p.node_body + 2 * x + side]
                if body >= 0 and not bodies[body].fixed and turn == 0:
                    iwork[p.on_body + words * body + x // _BITS] |= 1 << x % _BITS
                elif body >= 0 and not bodies[body].fixed:
                    for w in range(words):
                        iwork[p.node_links + words * x + w] |= iwork[p.on_body + words * body + w]


@kernel
def _order_nodes(p, iwork):
    """Next comes the node with the fewest links to what is left, which it links with each other.

    Out: node_at: the node at each place of the order, node_place: that of each node; node_links: of each node those to later ones.
    """
    n_nodes, words, left = iwork[p.n_nodes], p.n_words, p.nodes_left
    for w in range(words):
        iwork[left + w] = (1 << min(max(n_nodes - w * _BITS, 0), _BITS)) - 1
    for at in range(n_nodes):
        best, fewest = -1, n_nodes + 1
        for x in range(n_nodes):
            degree = fewest
            if _has(left, x, iwork):
                degree = 0
                for w in range(words):
                    degree += _count(iwork[p.node_links + words * x + w] & iwork[left + w])
            if degree < fewest:
                best, fewest = x, degree
        iwork[left + best // _BITS] ^= 1 << best % _BITS
        iwork[p.node_at + at], iwork[p.node_place + best] = best, at
        for w in range(words):
            iwork[p.node_links + words * best + w] &= iwork[left + w]
        for x in range(n_nodes):
            for w in range(words if _has(p.node_links + words * best, x, iwork) else 0):
                iwork[p.node_links + words * x + w] |= iwork[p.node_links + words * best + w]


@tiny
def _has(at, x, iwork):
    """Whether bit x of the words that begin there is set."""
    return (iwork[at + x // _BITS] >> x % _BITS) & 1


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
    n_nodes = iwork[p.n_nodes]
    for at in range(n_nodes + 1):
        iwork[p.node_row + at] = 0
    for a in range(stated.b.size):
        if iwork[p.row_of + a] >= 0:
            iwork[p.node_row + 1 + iwork[p.node_place + iwork[p.row_of + a]]] += 1
    for at in range(n_nodes):
        iwork[p.node_row + at + 1] += iwork[p.node_row + at]
    for at in range(n_nodes):
        iwork[p.reach + at] = iwork[p.node_row + at]  # where the next row of a node goes
    for a in range(stated.b.size):
        if iwork[p.row_of + a] >= 0:
            at = p.reach + iwork[p.node_place + iwork[p.row_of + a]]
            i = iwork[at]
            iwork[at] += 1
            iwork[p.component + i] = a
            iwork[p.ends + 2 * i], iwork[p.ends + 2 * i + 1] = stated.body[2 * (a // d)], stated.body[2 * (a // d) + 1]


@tiny
def _reach(at, p, iwork):
    """Runs of rows of the node at this place and of those that it is linked to later. Returns their number. Out: reach: begin, end."""
    n_runs, first = 0, p.node_links + p.n_words * iwork[p.node_at + at]
    iwork[p.reach], iwork[p.reach + 1] = iwork[p.node_row + at], iwork[p.node_row + at + 1]
    for w in range(p.n_words):
        bits, x = iwork[first + w], w * _BITS
        while bits != 0:
            if bits & 1 and iwork[p.node_place + x] != at:
                later, last = p.node_row + iwork[p.node_place + x], p.reach + 2 * n_runs
                if iwork[later] != iwork[last + 1]:
                    n_runs, last = n_runs + 1, last + 2
                    iwork[last] = iwork[later]
                iwork[last + 1] = iwork[later + 1]
            bits, x = bits >> 1, x + 1
    return n_runs + 1


# ------------------------------------------------------------------------------------------------------------------ elimination


@tiny
def _subtract(factor, row, below, n_runs, p, work, iwork):
    """A multiple of a row from one below, in the columns of reach. In/out: dense."""
    for run in range(p.reach, p.reach + 2 * n_runs, 2):
        for j in range(iwork[run], iwork[run + 1]):
            work[below + j] -= factor * work[row + j]


@kernel
def eliminate(n, p, work, iwork):
    """Factors L and U of the n rows as they come; False where a pivot is small. In/out: dense."""
    for x in range(iwork[p.n_nodes] if n > 0 else 0):
        n_runs = _reach(x, p, iwork)
        for k in range(iwork[p.node_row + x], iwork[p.node_row + x + 1]):
            row = p.dense + n * k
            if not abs(work[row + k]) > _SMALL:
                return False
            iwork[p.reach], inverse = k + 1, 1.0 / work[row + k]
            for run in range(p.reach, p.reach + 2 * n_runs, 2):
                for i in range(iwork[run], iwork[run + 1]):
                    work[p.dense + n * i + k] *= inverse
                    _subtract(work[p.dense + n * i + k], row, p.dense + n * i, n_runs, p, work, iwork)
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
        n_runs = _reach(x, p, iwork)
        for k in range(iwork[p.node_row + x], iwork[p.node_row + x + 1]):
            iwork[p.reach], z_k = k + 1, work[z + k]
            for run in range(p.reach, p.reach + 2 * n_runs, 2):
                for i in range(iwork[run], iwork[run + 1]):
                    work[z + i] -= work[p.dense + n * i + k] * z_k
    for x in range(iwork[p.n_nodes] - 1, -1, -1):
        n_runs = _reach(x, p, iwork)
        for k in range(iwork[p.node_row + x + 1] - 1, iwork[p.node_row + x] - 1, -1):
            s, row, iwork[p.reach] = work[z + k], p.dense + n * k, k + 1
            for run in range(p.reach, p.reach + 2 * n_runs, 2):
                for j in range(iwork[run], iwork[run + 1]):
                    s -= work[row + j] * work[z + j]
            work[z + k] = s / work[row + k]
    for i in range(n):
        r[iwork[p.component + i]] = work[p.scale + i] * work[z + i]
