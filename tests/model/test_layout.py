"""Layout tables against the offsets that NumPy reports, and the pattern of the one-step problem against a dense product."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.model.layout import ABSENT, DENSE, DIAGONAL
from nsds.model.records import memory
from nsds.schemes.lagrangian import moreau_jean
from nsds.schemes.lagrangian.tables import layout_of
from nsds.schemes.memory import Allocator
from nsds.schemes.problem.tables import linked_pairs
from nsds.solvers import table
from nsds.solvers.box.forms import narrow_order
from tests.strategies import examples

relation = nsds.lagrangian_linear_relation


def word(record, *path):
    """Word offset of a field, read off the addresses of NumPy views."""
    view = record
    for name in path:
        view = view[name]
    return (view.__array_interface__["data"][0] - record.__array_interface__["data"][0]) // 8


def random_system(seed):
    """Bodies of both storages, alone and as arrays, with constraints on one or two of them."""
    rng = np.random.default_rng(seed)
    n, count = int(rng.integers(1, 4)), int(rng.integers(2, 6))
    spd = lambda k: (lambda A: A @ A.T + np.eye(k))(rng.normal(size=(k, k)))  # noqa: E731
    m = int(rng.integers(1, 4))
    D = spd(m) if rng.uniform() < 0.5 else None
    return nsds.system(
        single=nsds.lagrangian_linear(M=spd(n), q=rng.normal(size=n), v=rng.normal(size=n)),
        grains=nsds.lagrangian_linear(M=rng.uniform(1, 2, size=2), q=rng.normal(size=(count, 2)), v=np.zeros(2), count=count),
        walls=nsds.interaction(relation(H=rng.normal(size=(m, n)), D=D), nsds.newton_impact(0.5), on="single"),
        chain=nsds.interaction(relation(H=rng.normal(size=(2, 4))), nsds.equality(), on=("grains[:-1]", "grains[1:]")),
        link=nsds.interaction(relation(H=[[*rng.normal(size=n), 0.0, 1.0]]), nsds.complementarity(), on=("single", "grains[0]")),
    )


def layout(records):
    """Tables of a record or ensemble."""
    records = records.reshape(-1)
    return layout_of(records, Allocator(records.size), "test", 0.01, 0.005)


def dense_operators(system):
    """Dense block-diagonal M, and H, D with the rows in the order of the record."""
    single, grains = system["single"], system["grains"]
    n, count = single["q"].size, grains.shape[0]
    M = np.zeros((n + 2 * count,) * 2)
    M[:n, :n] = single["M"]
    M[n:, n:] = np.diag(grains["M"].reshape(-1))
    rows = [np.hstack([system["walls"]["H"], np.zeros((system["walls"]["H"].shape[0], 2 * count))])]
    for i, H in enumerate(system["chain"]["H"]):
        block = np.zeros((2, M.shape[0]))
        block[:, n + 2 * i : n + 2 * i + 4] = H
        rows.append(block)
    last = np.zeros((1, M.shape[0]))
    last[0, : n + 2] = system["link"]["H"]
    H = np.vstack([*rows, last])
    D = np.zeros((H.shape[0],) * 2)
    if "D" in system.dtype["walls"].names:
        m = rows[0].shape[0]
        D[:m, :m] = system["walls"]["D"]
    return M, H, D


def test_offsets_are_those_of_numpy():
    system = random_system(0)
    lists = layout(system)
    assert lists.part_names == ("single", "grains")
    single, grains = lists.parts
    assert (single["M_kind"], grains["M_kind"]) == (DENSE, DIAGONAL)
    assert single["q"] == word(system, "single", "q")
    assert grains["q"] + 3 * grains["stride"] == word(system, "grains") + word(system["grains"], "q") + 3 * (
        system["grains"].strides[0] // 8
    )
    assert single["K"] == ABSENT
    owners = lists.owners
    last = lists.constraints[owners.index(("link", 0, 0))]
    assert last["lam"] == word(system, "link", "lambda")
    assert last["e"] == ABSENT
    assert lists.constraints["bilateral"].sum() == sum(name == "chain" for name, _, _ in owners)


def test_zeros_of_the_jacobian_cost_nothing():
    ball = nsds.examples.bouncing_ball()
    assert layout(ball).entries.size == 1
    balls = np.repeat(ball, 2)
    balls["floor"]["H"][1, 0] = [1.0, 0.5, 0.0]
    assert layout(balls).entries.size == 2


@examples(40)
@given(st.integers(0, 2**32 - 1))
def test_delassus_matrix_is_the_dense_product(seed):
    """``W = H M^-1 H^T + D`` ([Notes], eqs 1.39-1.42) on the pattern, and zero off it."""
    records = random_system(seed).reshape(1)
    h = 0.01
    prepared = moreau_jean.prepare(records, memory(records), nsds.moreau_jean(), h, table.find("newton_min", "relay"))
    plan, W_row, W_column = prepared.tables.plan, prepared.tables.W_row, prepared.tables.W_column
    M, H, D = dense_operators(records[0])
    order = [layout(records).owners.index(owner) for owner in prepared.layout.owners]
    W = (H @ np.linalg.solve(M, H.T) + D)[np.ix_(order, order)]
    stored = np.zeros_like(W)
    for i in range(len(W)):
        for k in range(W_row[i], W_row[i + 1]):
            stored[i, W_column[k]] = prepared.work[0, plan[0]["W"] + k]
    np.testing.assert_allclose(stored, W, atol=1e-11)


def test_pattern_of_a_chain_is_narrow_and_linear_whatever_the_numbering():
    for n in (10, 1000):
        place = np.random.default_rng(0).permutation(n)
        system = nsds.system(
            beads=nsds.lagrangian_linear(M=1.0, q=np.zeros(n), v=0.0, count=n),
            gaps=nsds.interaction(relation(H=[[-1.0, 1.0]]), nsds.newton_impact(0.5), on=(("beads", place[:-1]), ("beads", place[1:]))),
        )
        shuffle = np.random.default_rng(1).permutation(n - 1)
        system["gaps"]["element"] = system["gaps"]["element"][shuffle]
        lists = layout(system)
        row, column = linked_pairs(lists.constraints, lists.entries, lists.inputs, lists.couplings, np.full(n, DIAGONAL))
        assert row.size == 3 * (n - 1) - 2
        back = np.argsort(narrow_order(row, column, n - 1))
        assert abs(back[row] - back[column]).max() == 1
