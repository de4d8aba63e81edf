"""Equations of joints in an order of elimination: against dense matrices, without fill in trees, and with dependent rows noticed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds import joints
from nsds.model.layout import table
from nsds.schemes.rigid import blocks, equations
from nsds.schemes.rigid.blocks import Blocks
from nsds.solvers.contact.signature import EQUATION
from tests.memories import memory_with
from tests.strategies import examples, generators

PLAN = table(
    "dense", "null", "gram", "scaled", "scale", "weight", "component", "row_of", "most",
    "n_nodes", "n_words", "is_ordered", "next_row", "ends", "node_row", "node_body", "node_links", "node_at", "node_place", "nodes_left",
    "on_body", "own", "pivot", "run_of", "runs",
)  # fmt: skip
FREE = np.zeros(70, table("fixed"))


def laid_out(most, n_components, n_bodies):
    """A plan whose arrays lie behind one another, and its memory."""
    p, at, words = np.zeros(1, PLAN), 0, equations.words_of(most)
    whole = {"dense": most**2, "null": most**2, "gram": most**2 + most, "own": n_components}
    for name, size in (whole | dict.fromkeys(("scaled", "scale", "weight", "pivot"), most)).items():
        p[name], at = at, at + size
    n_floats, at = at, 2
    whole = {"component": most, "next_row": most, "ends": 2 * most, "row_of": n_components, "node_row": most + 1, "node_body": 2 * most}
    whole |= {"run_of": most + 1, "runs": most * (most + 5) // 2}
    whole |= {"node_links": words * most, "node_at": most, "node_place": most, "nodes_left": words, "on_body": words * n_bodies}
    for name, size in whole.items():
        p[name], at = at, at + size
    p["most"], p["n_words"], p["is_ordered"], iwork = most, words, 1, np.full(at, -7)
    iwork[:2] = 0
    return p[0], memory_with(np.full(n_floats, np.nan), iwork)


def stated_of(rng, H, bodies, n_bodies):
    """(blocks, G, W) of rows H (n, 12) between bodies (blocks, 2), -1 the world, with random masses, not quite symmetric."""
    inverse = np.array([(X := rng.normal(size=(6, 6))) @ X.T + np.eye(6) + 0.05 * (Y := rng.normal(size=(6, 6))) - 0.05 * Y.T
                        for _ in range(n_bodies)])  # fmt: skip
    n, pairs = len(H), np.repeat(bodies, 3, axis=0)
    G, full_H, full_G = np.zeros((n, 12)), np.zeros((n, 6 * n_bodies)), np.zeros((n, 6 * n_bodies))
    for i, side in np.ndindex(n, 2):
        k, row = pairs[i, side], H[i, 6 * side : 6 * side + 6]
        if k >= 0:
            G[i, 6 * side : 6 * side + 6] = inverse[k] @ row
            full_H[i, 6 * k : 6 * k + 6], full_G[i, 6 * k : 6 * k + 6] = row, inverse[k] @ row
    disk = np.full(len(bodies), EQUATION)
    flat = np.ascontiguousarray(H).reshape(-1)
    stated = Blocks(flat, flat, np.zeros(n), bodies.reshape(-1).copy(), disk, np.zeros(2 * len(bodies)), np.zeros(n), np.zeros(n))
    return stated, G.reshape(-1), full_H @ full_G.T


def solved(q, stated, G, n_bodies):
    """(whether no pivot was small, r, plan, integers of its memory)."""
    n, r = q.size, np.zeros(q.size)
    p, memory = laid_out(n, n, n_bodies)
    assert equations.gather(3, stated, FREE[:n_bodies], G, p, memory) == n
    is_regular = equations.eliminate(n, q, p, memory)
    if is_regular:
        equations.substitute(n, p, r, memory)
    return is_regular, r, p, memory.iwork


@examples(60)
@given(generators, st.integers(1, 8), st.integers(0, 6))
def test_equations_between_random_bodies_are_solved(rng, n_bodies, n_loops):
    """A tree of bodies that hangs from the world, and further links: r of a dense solver."""
    tree = [[i, rng.integers(-1, i)] for i in range(n_bodies)]
    loops = [list(rng.choice(n_bodies, 2, replace=False)) for _ in range(n_loops if n_bodies > 4 else 0)]
    bodies = np.array(tree + loops)[: 2 * n_bodies - 1]
    stated, G, W = stated_of(rng, rng.normal(size=(3 * len(bodies), 12)), bodies, n_bodies)
    q = rng.normal(size=len(W))
    is_regular, r, _, _ = solved(q, stated, G, n_bodies)
    if is_regular:
        np.testing.assert_allclose(W @ r, -q, atol=1e-7 * abs(q).max())
    else:
        scale = 1.0 / np.sqrt(abs(np.diag(W)))
        assert np.linalg.cond(scale[:, None] * W * scale) > 1e3


@examples(60)
@given(generators, st.integers(1, 6), st.integers(1, 3))
def test_blocks_that_act_on_one_body_have_the_pattern_of_all_pairs(rng, n, n_bodies):
    """As the search for pairs finds it; blocks that act on several have that of the search alone."""
    fixed, body = np.zeros(n_bodies, table("fixed")), rng.integers(-1, n_bodies, 2 * n)
    fixed["fixed"] = rng.random(n_bodies) < 0.3
    row, column, first, linked = (np.zeros(size, np.int64) for size in (n + 1, n * n, n_bodies + 1, 2 * n))
    blocks.link(n, body, n_bodies, fixed, first, linked)
    assert blocks.pattern(n, body, fixed, first, linked, row, column, n * n)
    row_of_all, column_of_all = np.zeros(n + 1, np.int64), np.zeros(n * n, np.int64)
    moving = [{int(b) for b in pair if b >= 0 and not fixed["fixed"][b]} for pair in body.reshape(-1, 2)]
    assert blocks.full_pattern(n, body, fixed, row_of_all, column_of_all) == (n == 1 or bool(set.intersection(*moving)))
    if row_of_all[n] > 0:
        np.testing.assert_array_equal(row, row_of_all)
        np.testing.assert_array_equal(column, column_of_all)


def test_little_fills_in_where_joints_make_a_tree():
    """Nothing in a star and a chain of 20 bodies, in a comb a link or two, where a joint of its back has as many links as a tooth."""
    rng = np.random.default_rng(1)
    for parents, most in (([-1] + [0] * 19, 0), (range(-1, 19), 0), ([i - 1 if i < 10 else i - 10 for i in range(20)], 2)):
        bodies = np.array([[i, parent] for i, parent in enumerate(parents)])
        order = rng.permutation(20)
        stated, G, W = stated_of(rng, rng.normal(size=(60, 12)), bodies[order], 20)
        is_regular, r, p, iwork = solved(np.ones(60), stated, G, 20)
        links = iwork[p["node_links"] : p["node_links"] + 20]  # a word each
        joined = np.array([[len({*x} & {*y} - {-1}) > 0 for x in bodies] for y in bodies])
        assert 0 <= sum(int(x).bit_count() for x in links) - (joined.sum() - 20) / 2 <= most
        assert is_regular
        np.testing.assert_allclose(W @ r, -1.0, atol=1e-8)


def test_links_of_many_bodies_take_several_words():
    rng = np.random.default_rng(2)
    bodies = np.array([[i, i - 1] for i in range(70)])
    H = rng.normal(size=(210, 12))
    H.reshape(70, 3, 12)[:, 1:] = 0.0  # one row each
    stated, G, W = stated_of(rng, H, bodies, 70)
    acting = np.arange(0, 210, 3)
    p, memory = laid_out(100, 210, 70)
    r = np.zeros(210)
    assert equations.gather(3, stated, FREE, G, p, memory) == 70
    assert equations.eliminate(70, np.ones(210), p, memory)
    equations.substitute(70, p, r, memory)
    np.testing.assert_allclose((W @ r)[acting], -1.0, atol=1e-9)
    assert not np.delete(r, acting).any()
    assert equations.gather(3, stated, FREE, G, *laid_out(60, 210, 70)) == 0


def test_rows_that_come_and_go_between_the_same_bodies_are_listed_anew():
    """With the work memory of the problem before: all rows, one of them left out, another one in its place, and all again."""
    rng, bodies = np.random.default_rng(3), np.array([[0, -1], [0, 1], [2, 1]])
    H, (p, memory) = rng.normal(size=(9, 12)), laid_out(9, 9, 3)
    for absent in ([], [4], [3], []):
        acting, r = np.delete(np.arange(9), absent), np.zeros(9)
        H_now = H.copy()
        H_now[absent] = 0.0
        stated, G, W = stated_of(rng, H_now, bodies, 3)
        n = equations.gather(3, stated, FREE[:3], G, p, memory)
        assert n == acting.size
        assert equations.eliminate(n, np.ones(9), p, memory)
        equations.substitute(n, p, r, memory)
        np.testing.assert_allclose((W @ r)[acting], -1.0, atol=1e-8)
        assert not r[absent].any()


@examples(30)
@given(generators, st.integers(0, 5))
def test_rows_that_depend_on_others_are_noticed(rng, which):
    H = rng.normal(size=(6, 12))
    H[which] = rng.normal(size=5) @ np.delete(H, which, axis=0)
    stated, G, _ = stated_of(rng, H, np.array([[0, 1], [0, 1]]), 2)
    assert not solved(np.ones(6), stated, G, 2)[0]


def test_a_chain_of_thirty_links_hangs_on_as_a_rope_does():
    """90 rows of ball joints: momentum about the hook is what gravity gives, and joints stay closed."""
    length, parts = 0.1, {}
    for i in range(30):
        parts[f"link{i}"] = nsds.rigid_bodies(
            0.5, [1e-3, 1e-3, 1e-3], q=[(i + 0.5) * length, 0, 0, 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -9.81 * 0.5]
        )
        on = "link0" if i == 0 else (f"link{i}", f"link{i - 1}")
        parts[f"joint{i}"] = nsds.interaction(joints.ball_joint([i * length, 0, 0]), nsds.equality(), on=on)
    rows = nsds.simulate(nsds.system(**parts), t_end=0.05, h=1e-3)
    assert (rows["status"] == 0).all()
    x, moment, given = [], 0.0, 0.0
    for i in range(30):
        q, v = rows[f"link{i}"]["q"], rows[f"link{i}"]["v"]
        x.append(q[:, 0])
        moment += 0.5 * (q[:, 2] * v[:, 0] - q[:, 0] * v[:, 2])[-1] + 1e-3 * v[-1, 4]
        given += np.trapezoid(9.81 * 0.5 * q[:, 0], rows["t"])
        assert abs(rows[f"joint{i}"]["y"]).max() < 1e-12
    np.testing.assert_allclose(moment, given, rtol=1e-4)
