"""Sparse Jacobians: the same solutions as dense ones, traffic assignment of thousands of unknowns by its definition, refusals."""

import time

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from scipy.sparse.csgraph import dijkstra

from nsds.solvers import SolverError, solve_mcp, solve_ncp, solve_vi


def traffic(side, n_goals, seed, unit=1.0):
    """Flows x of each goal over the arcs of a grid, and travel times t to it: ``0 <= x ⟂ time(sum x) + t_end - t_begin >= 0``.

    And ``0 <= t ⟂ outflow - inflow - demand >= 0`` at all nodes but the goal. Returns the network and demands, parameters, pattern.
    """
    rng = np.random.default_rng(seed)
    k = np.arange(side * side)
    right, up = k[k % side < side - 1], k[k < side * (side - 1)]
    begin = np.r_[right, right + 1, up, up + side]
    end = np.r_[right + 1, right, up + side, up]
    n_arcs, n_nodes = begin.size, k.size
    goals = rng.choice(k, n_goals, replace=False)
    demand = rng.uniform(0.5, 2.0, (n_goals, n_nodes)) * (rng.uniform(size=(n_goals, n_nodes)) < 0.3)
    demand[np.arange(n_goals), goals] = 0.0
    free, capacity, demand = rng.uniform(1.0, 2.0, n_arcs), unit * rng.uniform(3.0, 9.0, n_arcs), unit * demand
    p = np.r_[n_arcs, n_nodes, n_goals, begin, end, goals, free, capacity, demand.ravel()].astype(float)
    rows, columns = [], []  # in the order in which jac writes
    for g in range(n_goals):
        x, t = g * n_arcs, n_goals * n_arcs + g * n_nodes
        for a in range(n_arcs):
            for other in range(n_goals):
                rows.append(x + a)
                columns.append(other * n_arcs + a)
            rows += [x + a] * 2 + [t + begin[a], t + end[a]]
            columns += [t + end[a], t + begin[a], x + a, x + a]
        rows += [t + goals[g]]
        columns += [t + goals[g]]
    order = np.lexsort((columns, rows))
    place = np.empty(order.size)
    place[order] = np.arange(order.size)
    n = n_goals * (n_arcs + n_nodes)
    indptr = np.r_[0, np.cumsum(np.bincount(rows, minlength=n))]
    return (begin, end, free, capacity, goals, demand), np.r_[p, place], (indptr, np.array(columns)[order])


def F(z, p, out):
    n_arcs, n_nodes, n_goals = int(p[0]), int(p[1]), int(p[2])
    begin, end, goals = p[3 : 3 + n_arcs], p[3 + n_arcs : 3 + 2 * n_arcs], p[3 + 2 * n_arcs : 3 + 2 * n_arcs + n_goals]
    at = 3 + 2 * n_arcs + n_goals
    free, capacity, demand = p[at : at + n_arcs], p[at + n_arcs : at + 2 * n_arcs], p[at + 2 * n_arcs :]
    for g in range(n_goals):
        for i in range(n_nodes):
            out[n_goals * n_arcs + g * n_nodes + i] = -demand[g * n_nodes + i]
    for a in range(n_arcs):
        load = 0.0
        for g in range(n_goals):
            load += z[g * n_arcs + a]
        cost = free[a] * (1.0 + 0.15 * (load / capacity[a]) ** 4)
        for g in range(n_goals):
            t, x = n_goals * n_arcs + g * n_nodes, z[g * n_arcs + a]
            b, e, goal = int(begin[a]), int(end[a]), int(goals[g])
            out[g * n_arcs + a] = cost + z[t + e] - z[t + b]
            if b != goal:
                out[t + b] += x
            if e != goal:
                out[t + e] -= x
    for g in range(n_goals):
        out[n_goals * n_arcs + g * n_nodes + int(goals[g])] = z[n_goals * n_arcs + g * n_nodes + int(goals[g])]


def jac(z, p, out):
    n_arcs, n_nodes, n_goals = int(p[0]), int(p[1]), int(p[2])
    begin, end, goals = p[3 : 3 + n_arcs], p[3 + n_arcs : 3 + 2 * n_arcs], p[3 + 2 * n_arcs : 3 + 2 * n_arcs + n_goals]
    at = 3 + 2 * n_arcs + n_goals
    free, capacity = p[at : at + n_arcs], p[at + n_arcs : at + 2 * n_arcs]
    place, k = p[at + 2 * n_arcs + n_goals * n_nodes :], 0
    for g in range(n_goals):
        for a in range(n_arcs):
            load = 0.0
            for other in range(n_goals):
                load += z[other * n_arcs + a]
            slope = free[a] * 0.6 * (load / capacity[a]) ** 3 / capacity[a]
            for _ in range(n_goals):
                out[int(place[k])] = slope
                k += 1
            out[int(place[k])], out[int(place[k + 1])] = 1.0, -1.0
            out[int(place[k + 2])] = 1.0 if begin[a] != goals[g] else 0.0
            out[int(place[k + 3])] = -1.0 if end[a] != goals[g] else 0.0
            k += 4
        out[int(place[k])] = 1.0
        k += 1


def assert_wardrop(network, z, unit=1.0):
    """All that travels takes shortest paths by the times that it causes, and arrives."""
    begin, end, free, capacity, goals, demand = network
    n_arcs, (n_goals, n_nodes) = begin.size, demand.shape
    x, t = z[: n_goals * n_arcs].reshape(n_goals, n_arcs), z[n_goals * n_arcs :].reshape(n_goals, n_nodes)
    cost = free * (1.0 + 0.15 * (x.sum(axis=0) / capacity) ** 4)
    shortest = dijkstra(csr_array((cost, (end, begin)), shape=(n_nodes, n_nodes)), indices=goals)
    for g, goal in enumerate(goals):
        others = np.arange(n_nodes) != goal
        outflow = np.bincount(begin, x[g], n_nodes) - np.bincount(end, x[g], n_nodes)
        np.testing.assert_allclose(outflow[others], demand[g][others], atol=1e-6 * unit)
        travels = demand[g] > 0.0
        np.testing.assert_allclose(t[g][travels], shortest[g][travels], rtol=1e-6)
        used = x[g] > 1e-6 * unit
        np.testing.assert_allclose((cost + shortest[g][end] - shortest[g][begin])[used], 0.0, atol=1e-5)


@pytest.mark.parametrize(("side", "n_goals"), [(3, 2), (4, 5), (6, 15)])
def test_traffic_assignment(side, n_goals):
    """Wardrop's conditions; 2340 unknowns on a grid of 36 nodes in seconds."""
    network, p, pattern = traffic(side, n_goals, side)
    began = time.process_time()
    s = solve_ncp(F, np.ones(n_goals * (network[0].size + side * side)), jac, p, pattern=pattern)
    assert time.process_time() - began < 60.0
    assert_wardrop(network, s.z)


@pytest.mark.parametrize(("side", "n_goals", "unit"), [(3, 2, 1.0), (3, 8, 2000.0), (5, 10, 2000.0)])
def test_traffic_assignment_from_nothing(side, n_goals, unit):
    """Where nothing moves the Jacobian is singular: no time depends on flows. In vehicles a day, as networks are published."""
    network, p, pattern = traffic(side, n_goals, side, unit)
    s = solve_ncp(F, np.zeros(n_goals * (network[0].size + side * side)), jac, p, pattern=pattern)
    assert_wardrop(network, s.z, unit)


def quartic(n, rng):
    """``F = M z + z^3 + q`` with sparse unsymmetric M, positive definite; as functions, dense and sparse."""
    A = random_array((n, n), density=min(1.0, 3.0 / n), rng=rng).toarray()
    M = A - A.T + np.diag(1.0 + rng.uniform(size=n))
    q = rng.normal(size=n)
    S = csr_array(M)

    def F(z, p, out):
        m = z.size
        for i in range(m):
            out[i] = p[i] + z[i] ** 3
            for j in range(m):
                out[i] += p[m + i * m + j] * z[j]

    def dense(z, p, out):
        m = z.size
        for i in range(m):
            for j in range(m):
                out[i, j] = p[m + i * m + j]
            out[i, i] += 3.0 * z[i] ** 2

    def values(z, p, out):
        m = z.size
        at = m + m * m
        for k in range(out.size):
            i, j = int(p[at + 2 * k]), int(p[at + 2 * k + 1])
            out[k] = p[m + i * m + j] + (3.0 * z[i] ** 2 if i == j else 0.0)

    S.sort_indices()
    where = np.c_[np.repeat(np.arange(n), np.diff(S.indptr)), S.indices].ravel()
    return F, dense, values, np.r_[q, M.ravel(), where].astype(float), (S.indptr, S.indices)


@pytest.mark.parametrize("method", ["auto", "newton_fb", "josephy"])
def test_sparse_and_dense_jacobians_give_the_same(method):
    rng = np.random.default_rng(5)
    for n in (1, 4, 15):
        F, dense, values, p, pattern = quartic(n, rng)
        z0 = rng.normal(size=n)
        lower = np.where(rng.uniform(size=n) < 0.3, -np.inf, -0.2)
        upper = np.where(rng.uniform(size=n) < 0.5, np.inf, 0.1)
        expected = solve_mcp(F, z0, lower, upper, dense, p)
        s = solve_mcp(F, z0, lower, upper, values, p, method, pattern=pattern)
        np.testing.assert_allclose(s.z, expected.z, atol=1e-8)
        np.testing.assert_allclose(s.w, expected.w, atol=1e-7)
        G, g = rng.normal(size=(2, n)), -rng.uniform(size=2)
        expected = solve_vi(F, z0, G=G, g=g, jac=dense, parameters=p)
        s = solve_vi(F, z0, G=csr_array(G), g=g, jac=values, parameters=p, method=method, pattern=pattern)
        np.testing.assert_allclose(s.z, expected.z, atol=1e-7)
        np.testing.assert_allclose(s.w, G.T @ s.multipliers, atol=1e-7)


def test_sparse_problems_without_solution_are_not_solved():
    def F(z, out):
        out[0], out[1] = z[0] * z[0] + 1.0, z[1] - z[0]

    def values(z, out):
        out[0], out[1], out[2] = 2.0 * z[0], -1.0, 1.0

    with pytest.raises(SolverError):
        solve_mcp(F, [0.5, 0.5], -np.inf, np.inf, values, pattern=([0, 1, 3], [0, 0, 1]))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"jac": None, "pattern": ([0, 1], [0])}, "pattern goes with jac"),
        ({"pattern": [0, 1, 0]}, "must be .indptr, indices."),
        ({"pattern": ([0, 2], [0])}, "indptr of pattern must be 2 numbers"),
        ({"pattern": ([0, 1, 1], [0])}, "indptr of pattern must be 2 numbers"),
        ({"pattern": ([0, 1], [1])}, "indices of pattern must be from 0 to 0, got 1 to 1"),
        ({"pattern": ([0, 1], [-1])}, "indices of pattern must be from 0 to 0, got -1 to -1"),
        ({"pattern": ([0, 1], [0.5])}, "indices"),
        ({"pattern": ([0, 1], [0]), "method": "extragradient"}, "with a pattern method must be one of auto, newton_fb, josephy"),
    ],
)
def test_patterns_that_are_refused(arguments, said):
    def F(z, out):
        out[0] = z[0] - 1.0

    def values(z, out):
        out[0] = 1.0

    with pytest.raises((ValueError, TypeError), match=said):
        solve_ncp(F, [0.0], **{"jac": values, **arguments})
