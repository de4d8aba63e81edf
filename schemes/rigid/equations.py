"""Equations of joints as one matrix, ``W = E M_hat^-1 H^T`` and their diagonal, factorised in an order with little fill-in.

Rows that link the same two bodies are a node of a graph, whose nodes are linked if they share a movable body. They are eliminated in the
order of minimum degree: a tree of joints has little fill-in, so that the time grows with the number of joints. Rows are scaled by their
own diagonal, ``A = D W D`` with ``D = |diag(W)|^(-1/2)``. As W is nearly symmetric and positive definite, there is no pivoting; after a
small pivot rows may be linearly dependent, and `nsds.schemes.problem.redundancy` pivots.
References: George, Liu, SIAM Review 31 (1989) 1–19; Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, 6.5 (sparsity of trees).
"""

import math

from nsds._jit import kernel, load, put, spread, stack, tiny, view
from nsds.schemes.problem import redundancy
from nsds.solvers.contact.signature import EQUATION

MOST = 600  # rows that there is room for; larger systems go to the solver
_BITS = 62  # nodes for each integer of links
_SMALL = 1e-6  # relative to a row's diagonal: a smaller pivot may come from linearly dependent rows


def words_of(n_nodes):
    """Number of integers that hold the links of a node."""
    return (n_nodes + _BITS - 1) // _BITS


@kernel
def gather(d, stated, bodies, G, p, memory):
    """Equations of a problem as a dense matrix, rows in their order of elimination; they were completed by `blocks.complete_blocks`.

    Returns the number of rows; 0 without room. Out: nodes, component, scale, and the entries of dense that the elimination reaches.
    """
    work, iwork = memory.work, memory.iwork
    # 1. nodes, and, if they have changed, their order of elimination: mostly that of the last step
    n = _find_nodes(d, stated, G, p, memory)
    if n > 0 and iwork[p.is_ordered] == 0:
        _link_nodes(bodies, p, iwork)
        _order_nodes(p, iwork)
        _list_runs(p, iwork)
    # 2. rows in that order
    if n > 0 and iwork[p.is_ordered] != n:
        _list_rows(stated, p, iwork)
        iwork[p.is_ordered] = n
    # 3. scale, and the unit diagonal
    for i in range(n):
        own = work[p.own + iwork[p.component + i]]
        scale = 1.0 / math.sqrt(abs(own))
        work[p.scale + i], work[p.dense + n * i + i] = scale, own * (scale * scale)  # the bits of a power differ without a compiler
    # 4. entries between linked nodes only, in runs of consecutive nodes
    for x in range(iwork[p.n_nodes]):
        for run in range(iwork[p.run_of + x], iwork[p.run_of + x + 1], 2):
            for y in range(iwork[run], iwork[run + 1]):
                _couple(x, y, n, stated.E, G, p, memory)
    return n


@tiny
def _products(x, y, E, G):
    """``E[x:x + 6] . G[y:y + 6]`` as two sums."""
    first = load(view(E, x, 2), 0, 2) * load(view(G, y, 2), 0, 2)
    second = load(view(E, x + 2, 2), 0, 2) * load(view(G, y + 2, 2), 0, 2)
    return first + second + load(view(E, x + 4, 2), 0, 2) * load(view(G, y + 4, 2), 0, 2)


@tiny
def _own(x, E, G):
    """``E[x:x + 12] . G[x:x + 12]``."""
    sums = stack(2)
    put(sums, 0, 2, _products(x, x, E, G) + _products(x + 6, x + 6, E, G))
    return sums[0] + sums[1]


@tiny
def _couple(x, y, n, E, G, p, memory):
    """Entries between the rows of nodes x and y, by the bodies that both link. Out: dense.

    Both triangles at once, as W is not symmetric: E and H differ.
    """
    work, iwork = memory.work, memory.iwork
    # 1. which bodies are shared
    a, b, c, d = iwork[p.ends + 2 * x], iwork[p.ends + 2 * x + 1], iwork[p.ends + 2 * y], iwork[p.ends + 2 * y + 1]
    share_ac, share_ad, share_bc, share_bd = a == c and a >= 0, a == d and a >= 0, b == c and b >= 0, b == d and b >= 0
    dense, scale, component, end, sums = p.dense, p.scale, p.component, iwork[p.node_row + y + 1], stack(4)
    # 2. products of E and G over these, two sums at a time
    for i in range(iwork[p.node_row + x], iwork[p.node_row + x + 1]):
        e, scale_i = 12 * iwork[component + i], work[scale + i]
        for j in range(max(iwork[p.node_row + y], i + 1), end):
            g, s, t = 12 * iwork[component + j], spread(0.0, 2), spread(0.0, 2)
            if share_ac:
                s, t = _products(e, g, E, G), _products(g, e, E, G)
            if share_bd:
                s, t = s + _products(e + 6, g + 6, E, G), t + _products(g + 6, e + 6, E, G)
            if share_ad:
                s, t = s + _products(e, g + 6, E, G), t + _products(g + 6, e, E, G)
            if share_bc:
                s, t = s + _products(e + 6, g, E, G), t + _products(g, e + 6, E, G)
            put(sums, 0, 2, s)
            put(sums, 1, 2, t)
            both = scale_i * work[scale + j]
            work[dense + n * i + j], work[dense + n * j + i] = both * (sums[0] + sums[1]), both * (sums[2] + sums[3])


# ------------------------------------------------------------------------------------------------------------------ nodes


@kernel
def _find_nodes(d, stated, G, p, memory):
    """Number of rows that act on a movable body, 0 without room for them. Out: n_nodes, node_body, own, row_of.

    own: diagonal entries, row_of: nodes, or -1, by components. is_ordered, the number of rows that are listed, becomes 0 if nodes differ
    from those of the last call, and -1 if only rows do.
    """
    iwork = memory.iwork
    n, n_nodes, n_before, are_same = 0, 0, iwork[p.n_nodes], True
    for k in range(stated.disk.size):
        node = -1
        for a in range(d * k, d * k + d):
            before = iwork[p.row_of + a]
            # a row that moves nothing has no diagonal entry, and no equation to solve
            product = _own(12 * a, stated.E, G) if stated.disk[k] == EQUATION else 0.0
            memory.work[p.own + a] = stated.diagonal[a] + product
            does_act = product != 0.0 and memory.work[p.own + a] != 0.0
            if does_act:
                # no room: the structure is unknown from here on
                if n == p.most:
                    iwork[p.n_nodes], iwork[p.is_ordered] = 0, 0
                    return 0
                if node < 0:
                    node = _node_of(stated.body[2 * k], stated.body[2 * k + 1], n_nodes, p, iwork)
                    n_nodes = max(n_nodes, node + 1)
                n += 1
            iwork[p.row_of + a] = node if does_act else -1
            are_same = are_same and iwork[p.row_of + a] == before
    # what has changed against the last call decides how much of the order is reused
    if n_nodes != n_before:
        iwork[p.n_nodes], iwork[p.is_ordered] = n_nodes, 0
    elif iwork[p.is_ordered] != 0 and not are_same:
        iwork[p.is_ordered] = -1
    return n


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
    """Links between nodes that share a movable body, as bit sets, each node linked to itself. Out: node_links."""
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
    """Minimum degree: next is the node with the fewest links to remaining ones, which become linked with each other.

    Out: node_at: the node at each place of the order, node_place: that of each node; node_links: of each node those to later ones.
    """
    n_nodes, words, left = iwork[p.n_nodes], p.n_words, p.nodes_left
    # 1. all nodes remain
    for w in range(words):
        iwork[left + w] = (1 << min(max(n_nodes - w * _BITS, 0), _BITS)) - 1
    for at in range(n_nodes):
        # 2. the node of least degree; of equal ones the first, so that the order is reproducible
        best, fewest = -1, n_nodes + 1
        for x in range(n_nodes):
            degree = fewest
            if _has(left, x, iwork):
                degree = 0
                for w in range(words):
                    degree += _count(iwork[p.node_links + words * x + w] & iwork[left + w])
            if degree < fewest:
                best, fewest = x, degree
        # 3. eliminate it: its remaining neighbours become a clique
        iwork[left + best // _BITS] ^= 1 << best % _BITS
        iwork[p.node_at + at], iwork[p.node_place + best] = best, at
        for w in range(words):
            iwork[p.node_links + words * best + w] &= iwork[left + w]
        for x in range(n_nodes):
            for w in range(words if _has(p.node_links + words * best, x, iwork) else 0):
                iwork[p.node_links + words * x + w] |= iwork[p.node_links + words * best + w]


@tiny
def _has(at, x, iwork):
    """Whether bit x of the set that begins at ``at`` is set."""
    return (iwork[at + x // _BITS] >> x % _BITS) & 1


@tiny
def _count(bits):
    """Number of bits that are set."""
    n = 0
    while bits != 0:
        bits &= bits - 1
        n += 1
    return n


@kernel
def _list_runs(p, iwork):
    """Runs of consecutive places, of each node itself and its later links, as [first, end) pairs. Out: runs; run_of; ends.

    run_of: where the runs of each place start, ends: the bodies of its node.
    """
    n_nodes, run = iwork[p.n_nodes], p.runs
    for at in range(n_nodes):
        node = iwork[p.node_at + at]
        iwork[p.run_of + at], iwork[run], iwork[run + 1] = run, at, at + 1
        for other in range(at + 1, n_nodes):
            if _has(p.node_links + p.n_words * node, iwork[p.node_at + other], iwork):
                if other != iwork[run + 1]:
                    run += 2
                    iwork[run] = other
                iwork[run + 1] = other + 1
        run += 2
        for side in range(2):
            iwork[p.ends + 2 * at + side] = iwork[p.node_body + 2 * node + side]
    iwork[p.run_of + n_nodes] = run


@kernel
def _list_rows(stated, p, iwork):
    """Out: component: that of each row, node by node in their order; node_row: where nodes begin."""
    n_nodes = iwork[p.n_nodes]
    for at in range(n_nodes + 1):
        iwork[p.node_row + at] = 0
    for a in range(stated.b.size):
        if iwork[p.row_of + a] >= 0:
            iwork[p.node_row + 1 + iwork[p.node_place + iwork[p.row_of + a]]] += 1
    for at in range(n_nodes):
        iwork[p.node_row + at + 1] += iwork[p.node_row + at]
        iwork[p.next_row + at] = iwork[p.node_row + at]  # where the next row of a node goes
    for a in range(stated.b.size):
        if iwork[p.row_of + a] >= 0:
            at = p.next_row + iwork[p.node_place + iwork[p.row_of + a]]
            iwork[p.component + iwork[at]] = a
            iwork[at] += 1


# ------------------------------------------------------------------------------------------------------------------ elimination


@kernel
def eliminate(n, q, p, memory):
    """Eliminate ``W r + q = 0`` of the n rows without pivoting; False at a small pivot. In/out: dense. Out: scaled, pivot."""
    work, iwork = memory.work, memory.iwork
    z, node_row = p.scaled, p.node_row
    # 1. scaled right-hand side
    for i in range(n):
        work[z + i] = -work[p.scale + i] * q[iwork[p.component + i]]
    # 2. forward elimination, over the runs of each node
    for x in range(iwork[p.n_nodes] if n > 0 else 0):
        first, last = iwork[p.run_of + x], iwork[p.run_of + x + 1]
        for k in range(iwork[node_row + x], iwork[node_row + x + 1]):
            row = p.dense + n * k
            # dependent rows, or indefinite ones: the caller pivots
            if not abs(work[row + k]) > _SMALL:
                return False
            inverse, z_k = 1.0 / work[row + k], work[z + k]
            work[p.pivot + k] = inverse
            for run in range(first, last, 2):
                # rows of the same node below the pivot, and of linked nodes
                for i in range(max(k + 1, iwork[node_row + iwork[run]]), iwork[node_row + iwork[run + 1]]):
                    below = p.dense + n * i
                    factor = work[below + k] * inverse
                    if factor != 0.0:
                        work[z + i] -= factor * z_k
                        _subtract(factor, row, below, k + 1, first, last, node_row, memory)
    return True


@tiny
def _subtract(factor, row, below, begin, first, last, node_row, memory):
    """A multiple of a row from one below, from a column on, in the columns of runs. In/out: dense."""
    work, iwork = memory.work, memory.iwork
    for run in range(first, last, 2):
        # two at a time: vector loops of the compiler take longer to begin than these are long
        j, end = max(begin, iwork[node_row + iwork[run]]), iwork[node_row + iwork[run + 1]]
        while j < end - 1:
            put(view(work, below + j, 2), 0, 2, load(view(work, below + j, 2), 0, 2) - factor * load(view(work, row + j, 2), 0, 2))
            j += 2
        if j < end:
            work[below + j] -= factor * work[row + j]


@kernel
def substitute(n, p, r, memory):
    """Back substitution for ``W r + q = 0`` after `eliminate`. Out: r, 0 in other rows. In/out: scaled."""
    work, iwork = memory.work, memory.iwork
    z, node_row = p.scaled, p.node_row
    for a in range(r.size):
        r[a] = 0.0
    for x in range(iwork[p.n_nodes] - 1, -1, -1):
        for k in range(iwork[node_row + x + 1] - 1, iwork[node_row + x] - 1, -1):
            s, row = work[z + k], p.dense + n * k
            for run in range(iwork[p.run_of + x], iwork[p.run_of + x + 1], 2):
                for j in range(max(k + 1, iwork[node_row + iwork[run]]), iwork[node_row + iwork[run + 1]]):
                    s -= work[row + j] * work[z + j]
            work[z + k] = s * work[p.pivot + k]
            r[iwork[p.component + k]] = work[p.scale + k] * work[z + k]


@kernel
def gather_dense(d, stated, bodies, G, p, memory):
    """As `gather`, with all entries of dense. Out: also weight, the traces by rows."""
    work, iwork = memory.work, memory.iwork
    for i in range(min(p.most, redundancy.MOST) ** 2):
        work[p.dense + i] = 0.0
    n = gather(d, stated, bodies, G, p, memory)
    if n > 0:
        iwork[p.is_ordered] = -1  # `factorise` exchanges rows: they are to be listed again
    for i in range(n):
        work[p.weight + i] = 0.0
        for j in range(n):
            if iwork[p.component + i] // d == iwork[p.component + j] // d:
                ratio = work[p.scale + i] / work[p.scale + j]
                work[p.weight + i] += ratio * ratio
    return n
