"""Order of elimination of the unknowns of a sparse symmetric matrix: nested dissection (George, SIAM J. Numer. Anal. 10, 1973).

A set of vertices that separates the graph in two halves is eliminated after both, and each half recursively.
"""

from typing import NamedTuple

import numpy as np

_LEAF = 40  # vertices that are eliminated together without further dissection
_LANDMARKS = 5  # vertices far from each other; differences of distances from two of them divide the graph,
_SMOOTHINGS = 10  # averaged over neighbours, which straightens the separator
_LEAST_SHARE = 0.3  # of the vertices, least size of the smaller half


class Front(NamedTuple):
    """Unknowns that are eliminated together, after the fronts ``before``, by number, whose parent is this one."""

    unknowns: np.ndarray
    before: list


def dissect(pattern, last):
    """Fronts in an order of elimination.

    Parameters
    ----------
    pattern : scipy.sparse (n, n)
        A symmetric matrix; stored entries count as nonzero.
    last : ndarray (k,)
        Unknowns of the last front.

    Returns
    -------
    list of Front
        Each behind its children; the last one with the unknowns ``last`` in the order given, if there are any.
    """
    # 1. graph without the last unknowns; unknowns with equal neighbours are one vertex
    fronts = []
    rest = np.setdiff1d(np.arange(pattern.shape[0]), last)
    graph, members = _without_twins(pattern[rest][:, rest])
    # 2. recursive dissection; fronts without parent end in the last one
    loose = _dissect(graph, np.arange(graph.shape[0]), lambda vertices: rest[np.concatenate([members[i] for i in vertices])], fronts)
    if last.size:
        fronts.append(Front(last, loose))
    return fronts


def _without_twins(pattern):
    """(graph with one vertex for unknowns with equal neighbours, unknowns of each vertex)."""
    from scipy.sparse import csr_array, eye_array

    n = pattern.shape[0]
    # equal rows of the pattern are found by a product with random numbers
    pattern = (csr_array((np.ones(pattern.nnz), pattern.indices, pattern.indptr), shape=(n, n)) + eye_array(n)).tocsr()
    pattern.sort_indices()  # rows that are alike are summed in the same order
    pattern.data[:] = 1.0
    _, first, vertex = np.unique(pattern @ np.random.default_rng(0).uniform(size=n), return_index=True, return_inverse=True)
    graph = pattern[first][:, first]
    graph.setdiag(0.0)
    graph.eliminate_zeros()
    return graph, np.split(np.argsort(vertex, kind="stable"), np.cumsum(np.bincount(vertex))[:-1])


def _dissect(graph, vertices, unknowns_of, fronts):
    """Appends the fronts of a graph; returns the numbers of those without parent."""
    from scipy.sparse.csgraph import connected_components

    if vertices.size == 0:
        return []
    # 1. halves: components, or a separator of a connected graph
    halves = None
    if vertices.size > _LEAF:
        count, label = connected_components(graph, directed=False)
        halves = _share_out(label) if count > 1 else _separate(graph)
    # 2. small graphs, and such as have no good separator, are one front
    if halves is None:
        fronts.append(Front(unknowns_of(vertices), []))
        return [len(fronts) - 1]
    # 3. both halves, then the separator, the parent of their last fronts
    loose = []
    for half in (-1, 1):
        chosen = np.flatnonzero(halves == half)
        loose += _dissect(graph[chosen][:, chosen], vertices[chosen], unknowns_of, fronts)
    if (halves == 0).any():
        fronts.append(Front(unknowns_of(vertices[halves == 0]), loose))
        loose = [len(fronts) - 1]
    return loose


def _share_out(label):
    """-1 or 1 for each vertex: components of a graph in two parts of about equal size."""
    sizes = np.bincount(label)
    order = np.argsort(-sizes, kind="stable")
    first = np.cumsum(sizes[order]) <= max(label.size // 2, sizes.max())
    return np.where(np.isin(label, order[first]), -1, 1)


def _separate(graph):
    """0 for vertices that separate a connected graph, -1 and 1 for the halves; None if there is no good separator."""
    n = graph.shape[0]
    best, least = None, np.inf
    # each measure divides the vertices at its median; the boundary on either side separates, and the cheapest one is used
    for measure in _measures(graph).T:
        half = measure <= np.partition(measure, n // 2)[n // 2]
        if min(half.sum(), n - half.sum()) < _LEAST_SHARE * n:
            continue
        for side in (half, ~half):
            between = side & (graph @ np.where(side, 0.0, 1.0) > 0)
            inside, outside = side.sum() - between.sum(), n - side.sum()
            cost = between.sum() * (1.0 + 0.5 * abs(inside - outside) / n)
            if inside > 0 and cost < least:
                best, least = np.where(between, 0, np.where(side, -1, 1)), cost
    return best


def _measures(graph):
    """Differences of the distances from two landmarks, smoothed: (n, pairs of landmarks)."""
    from scipy.sparse.csgraph import dijkstra

    # 1. landmarks: each the vertex farthest from those before
    mark, nearest, distances = int(np.argmax(dijkstra(graph, unweighted=True, indices=0))), np.inf, []
    for _ in range(_LANDMARKS):
        distances.append(dijkstra(graph, unweighted=True, indices=mark))
        nearest = np.minimum(nearest, distances[-1])
        mark = int(np.argmax(nearest))
    # 2. differences of distances, averaged over neighbours
    measures = np.array([distances[i] - distances[j] for i in range(_LANDMARKS) for j in range(i)]).T
    weight = 1.0 / (1.0 + np.diff(graph.indptr))[:, None]
    for _ in range(_SMOOTHINGS):
        measures = weight * (measures + graph @ measures)
    return measures
