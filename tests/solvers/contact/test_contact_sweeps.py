"""Sweeps, pivoting, and what prepares problems for them, against plain NumPy twins: iterates, orders, islands, colours, conversions."""

import itertools
import subprocess
import sys

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nsds import solvers, status
from nsds.solvers import table
from nsds.solvers.contact import colours, forms, generic, islands, schwarz, signature
from nsds.solvers.contact import local as one
from nsds.solvers.contact import panels as bodies
from nsds.solvers.faces.contact import kind_of
from tests import reference_contact as ref
from tests.strategies import examples, generators

NEVER = 1e-300  # a tolerance that stops no iteration
KINDS = [(2, 1), (3, 2), (3, 1), (5, 2)]


def call(method, p, r=None, **options):
    """(status, r, u, info) of a kernel for a dense problem."""
    row, column, blocks = forms.block_rows(sp.coo_array(p.W), p.d)
    chosen, options = table.chosen(solvers.solver(method, **options), kind_of(p.d, rolls=False))
    problem = signature.Problem(p.disk, p.mu.ravel(), row, column, blocks, p.q)
    arguments = table.arguments_of(chosen, options, problem, p.d, np.zeros(len(p.q)) if r is None else r)
    return signature.solve_repeatedly(1, *arguments), *arguments[-5:-2]


def chain(rng, n, d=2, n_islands=1):
    """n contacts, each with the next one of its island, in random order; W positive definite, mu moderate."""
    near = np.zeros((n, n), bool)
    order = rng.permutation(n)
    for part in np.array_split(order, n_islands):
        near[part[1:], part[:-1]] = near[part[:-1], part[1:]] = True
    G = np.kron(near, np.ones((d, d))) * rng.normal(size=(n * d, n * d)) * 0.2
    return ref.Drawn(d, np.full(n, d - 1), rng.uniform(0, 0.4, (n, 2)) * [1, 0], G + G.T + 2 * np.eye(n * d), rng.normal(size=n * d) - 0.5)


# ---------------------------------------------------------------------------------------------------------------------- sweeps


def shuffled(order, state):
    """(order, state): Fisher–Yates with the high bits of Knuth's generator."""
    order = list(order)
    for i in range(len(order) - 1, 0, -1):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        j = (state >> 33) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order, state


def sweeps(p, n_sweeps, order=None, seed=0):
    """r after n sweeps in one order, or with a seed in a new one every time."""
    r, order, contacts = np.zeros(len(p.q)), range(p.n) if order is None else order, list(p.contacts())
    for _ in range(n_sweeps):
        if seed:
            order, seed = shuffled(order, seed)
        for c in order:
            at, _, _, mu, mu_r, disk = contacts[c]
            q_c = p.q[at] + p.W[at] @ r - p.W[at, at] @ r[at]
            r[at] = ref.solve_one(p.W[at, at], q_c, mu, mu_r, disk)
    return r


def better(p, r, own=False):
    """r, or the guess 0 where its residual is smaller."""
    return r if ref.merit(p, r, own) <= ref.merit(p, 0 * r, own) else 0 * r


def painted(near):
    """Contacts by colour: each takes the first colour that no earlier neighbour has."""
    colour = []
    for c in range(len(near)):
        colour.append(next(k for k in range(c + 1) if k not in {colour[j] for j in range(c) if near[c, j]}))
    return np.argsort(colour, kind="stable"), np.array(colour)


def neighbours(p):
    blocks = abs(p.W).reshape(p.n, p.d, p.n, p.d).max(axis=(1, 3)) > 0
    return blocks | blocks.T


def assert_close(r, expected, tol=1e-9):
    assert np.linalg.norm(r - expected) <= tol * (1 + np.linalg.norm(expected))


@pytest.mark.parametrize("seed", [0, 1, 12345678901])
@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_are_those_of_the_twin(kind, seed):
    @examples(6)
    @given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.integers(1, 4))
    def check(n, draw, n_sweeps):
        p = ref.draw_contacts("unique", *kind, n, draw)
        for local in ("auto", "exact", "alart_curnier", "jean_moreau"):
            code, r, u, info = call("nsgs", p, tol=NEVER, max_iter=n_sweeps, local=local, seed=seed or None)
            assert code in (status.MAX_ITER, status.CONVERGED)
            assert_close(r, better(p, sweeps(p, n_sweeps, seed=seed)))
            assert_close(u, p.velocity(r), 1e-12)
            assert info[0] <= n_sweeps

    check()


def along_a_line(rng, n, d):
    """n contacts of a body whose compliance decays along a line, in random order; half of them slide, or nearly so."""
    x = np.sort(rng.uniform(0.0, n / 12.0, n))
    decay = np.exp(-abs(x[:, None] - x)) + 0.05 * np.eye(n)
    order = rng.permutation(n)
    own = np.eye(d) + 0.1 * np.diag(np.ones(d - 1), 1) + 0.1 * np.diag(np.ones(d - 1), -1)
    W = np.kron(decay[order][:, order], own)
    pressed = (rng.uniform(0.5, 1.5, (n, d)) * np.where(np.arange(d) == 0, 1.0, 0.3)).reshape(-1)
    return ref.Drawn(d, np.full(n, d - 1), np.tile([0.3, 0.0], (n, 1)), W, -W @ pressed + 0.05 * rng.normal(size=n * d))


def groups(p):
    """Overlapping groups: contacts without one that are coupled most to those of the group, then others that are."""
    strength = abs(p.W).reshape(p.n, p.d, p.n, p.d).sum(axis=(1, 3)) / np.sqrt(
        np.trace(p.W.reshape(p.n, p.d, p.n, p.d), axis1=1, axis2=3).diagonal()
    )
    free, found, c = set(range(p.n)), [], 0
    while free:
        group = []
        while len(group) < schwarz.CORE and free:
            group.append(c)
            free.remove(c)
            c = max(free, key=lambda j: strength[group, j].sum(), default=None)
        core, others = list(group), set(range(p.n)) - set(group)
        for _ in range(min(schwarz.OVERLAP, len(others))):
            group.append(max(others, key=lambda j: strength[core, j].sum()))
            others.remove(group[-1])
        found.append(group)
    return found


def rounds(p, n_rounds):
    """r after rounds over the groups, each swept until its changes are 1e-2 of those in the first sweep."""
    r, contacts = np.zeros(len(p.q)), list(p.contacts())
    for _ in range(n_rounds):
        for group in groups(p):
            first = None
            for _ in range(100):
                changes = 0.0
                for c in group:
                    at, _, _, mu, mu_r, disk = contacts[c]
                    new = ref.solve_one(p.W[at, at], p.q[at] + p.W[at] @ r - p.W[at, at] @ r[at], mu, mu_r, disk)
                    changes += (np.trace(p.W[at, at]) * np.linalg.norm(new - r[at])) ** 2
                    r[at] = new
                first = changes if first is None else first
                if changes <= 1e-4 * first:
                    break
    return r


@pytest.mark.parametrize(("n", "d"), [(7, 2), (95, 2), (60, 3)])
def test_rounds_over_groups_are_those_of_the_twin(n, d):
    p = along_a_line(np.random.default_rng(n), n, d)
    code, r, u, _ = call("schwarz", p, tol=NEVER, max_iter=2)
    assert code in (status.MAX_ITER, status.CONVERGED)
    assert_close(r, rounds(p, 2))
    assert_close(u, p.velocity(r), 1e-12)


@pytest.mark.parametrize("d", [2, 3])
def test_groups_need_a_tenth_of_the_rounds(d):
    """Where all contacts act on each other; both end at the one solution."""
    p = along_a_line(np.random.default_rng(d), 250, d)
    (code, r, _, by_groups), (_, plain, _, one_by_one), (_, _, _, usual) = (
        call(name, p, tol=1e-11) for name in ("schwarz", "nsgs", "auto")
    )
    assert code == status.CONVERGED
    assert by_groups[0] < one_by_one[0] / 10
    assert usual[:2].tolist() == by_groups[:2].tolist()
    assert_close(r, plain, 1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_parallel_sweeps_go_by_colour(kind):
    @examples(6)
    @given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.integers(1, 4))
    def check(n, draw, n_sweeps):
        p = ref.draw_contacts("unique", *kind, n, draw)
        _, r, _, _ = call("nsgs_parallel", p, tol=NEVER, max_iter=n_sweeps)
        assert_close(r, better(p, sweeps(p, n_sweeps, painted(neighbours(p))[0])))

    check()


@pytest.fixture
def threads():
    yield
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_parallel_sweeps_give_the_same_bits_on_any_number_of_cores(d, threads):
    p, found = ref.draw_contacts("definite", d, min(d - 1, 2), 60, 1), []
    H, M = np.random.default_rng(0).normal(size=(40, 3 * 60)) * (np.random.default_rng(1).uniform(size=(40, 180)) < 0.1), np.eye(40)
    for n in range(1, numba.config.NUMBA_NUM_THREADS + 1):
        numba.set_num_threads(n)
        code, r, u, info = call("nsgs_parallel", p, max_iter=200)
        s = solvers.solve_gfc3d(M, H, np.full(40, -1.0), np.full(180, 0.1), 0.4, "nsgs_bodies", max_iter=200, on_failure="continue")
        found.append((code, r.tobytes(), u.tobytes(), info.tobytes(), s.r.tobytes(), s.v.tobytes(), s.status))
    assert len(set(found)) == 1


def test_parallel_sweeps_come_out_of_the_cache():
    """In a process that compiles nothing, nobody else has loaded numba's threads."""
    call("nsgs_parallel", ref.draw_contacts("definite", 2, 1, 3, 1))
    solvers.solve_gfc2d(np.eye(2), np.eye(2), [-1.0, 0.0], [0.0, 0.0], 0.5, "nsgs_bodies")
    code = (
        "from nsds import solvers as s; I = [[1.0, 0.0], [0.0, 1.0]]; s.solve_fc2d(I, [-1, 0], 0.5, 'nsgs_parallel');"
        "s.solve_gfc2d(I, I, [-1, 0], [0, 0], 0.5, 'nsgs_bodies')"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_out_for_a_while_ends_at_the_same_solution(kind):
    @examples(10)
    @given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.integers(1, 50), st.sampled_from([None, 7]))
    def check(n, draw, freeze, seed):
        p = ref.draw_contacts("unique", *kind, n, draw)
        code, r, _, _ = call("nsgs", p, tol=1e-11, freeze=freeze, seed=seed)
        _, plain, _, _ = call("nsgs", p, tol=1e-11)
        assert code == status.CONVERGED
        errors = sum(np.linalg.norm(ref.natural_map(p, x)) + ref.rounding(p, x) * np.linalg.norm(p.q) for x in (r, plain))
        assert np.linalg.norm(r - plain) <= ref.force_distance(p) * errors

    check()


def global_problem(rng, d, n):
    """(M, H, q, b) of contacts between neighbours in a chain of bodies with d velocities each, H sparse and full within its panels."""
    H = np.zeros(((n + 1) * d, n * d))
    for c in range(n):
        H[c * d : (c + 2) * d, c * d : (c + 1) * d] = np.r_[np.eye(d), -np.eye(d)] + 0.2 * rng.normal(size=(2 * d, d))
    M = np.kron(np.diag(rng.uniform(1, 2, n + 1)), np.eye(d) + 0.1)
    return M, H, rng.normal(size=len(M)), rng.normal(size=n * d) - 0.5 * (np.arange(n * d) % d == 0)


def call_bodies(p, M, H, q, b, max_iter, tol=NEVER):
    """(status, v, r, u, info) of the kernel; p says mu and disks."""
    solve_M, G = forms.inverse_times("test", sp.coo_array(M), sp.csc_array(H))
    panels, v_free = forms.panels(p.d, sp.csc_array(H), G), solve_M(q)
    floats, integers = bodies.work_size(p.n, len(q), p.d)
    r, v, u, info = np.zeros(len(b)), np.zeros(len(q)), np.zeros(len(b)), np.zeros(4)
    _, options = table.chosen(solvers.solver("nsgs_bodies", tol=tol, max_iter=max_iter), "gfc3d")
    data = (bodies.Problem(p.disk, p.mu.ravel(), *panels, v_free, b), options, r, v, u, info)
    return bodies.nsgs_bodies(*data, np.full(floats, np.nan), np.zeros(integers, np.int64)), v, r, u, info


@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_without_the_matrix_are_those_with_it(kind):
    """The coloured order of contacts that share unknowns is that of contacts whose block of W is not zero: iterate by iterate."""

    @examples(20)
    @given(generators, st.integers(1, 8), st.integers(1, 6))
    def check(rng, n, n_sweeps):
        d, disk = kind
        M, H, q, b = global_problem(rng, d, n)
        inverse = np.linalg.inv(M)
        mu = rng.uniform(0, 0.2, (n, 2)) * [1, disk < d - 1]
        p = ref.Drawn(d, np.full(n, disk), mu, H.T @ inverse @ H, H.T @ inverse @ q + b)
        _, v, r, u, info = call_bodies(p, M, H, q, b, n_sweeps)
        _, r_reduced, u_reduced, info_reduced = call("nsgs_parallel", p, tol=NEVER, max_iter=n_sweeps)
        assert_close(v, inverse @ (q + H @ r), 1e-12)
        if better(p, r).any() and better(p, r, True).any():  # what these return
            assert_close(r, r_reduced, 1e-10)
            assert_close(u, u_reduced, 1e-10)
            np.testing.assert_allclose(info_reduced[1], ref.merit(p, r), rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(info[1:3], [ref.merit(p, r, own=True), ref.residual(p, r)], rtol=1e-6, atol=1e-12)

    check()


def test_bodies_with_more_contacts_than_colours_are_swept_all_the_same():
    """100 contacts of one body: the last ones have no colour of their own and go one after the other."""
    rng = np.random.default_rng(3)
    up = np.kron(np.ones(100), np.eye(3)[0])
    H = np.vstack([up, rng.normal(size=(5, 300))])
    p = ref.Drawn(3, np.full(100, 2), np.full((100, 2), 0.3) * [1, 0], H.T @ H, H.T @ np.r_[-1.0, np.zeros(5)])
    code, v, r, _, info = call_bodies(p, np.eye(6), H, np.r_[-1.0, np.zeros(5)], np.zeros(300), 10_000, 1e-8)
    assert code == status.CONVERGED
    assert ref.merit(p, r, own=True) <= 1e-8 + ref.rounding(p, r)
    assert abs(info[1] - ref.merit(p, r, own=True)) <= ref.rounding(p, r)
    np.testing.assert_allclose(v, np.r_[-1.0, np.zeros(5)] + H @ r, atol=1e-12)


# ---------------------------------------------------------------------------------------------------------------------- pivoting


@examples(60)
@given(generators, st.integers(1, 60), st.integers(1, 4), st.booleans())
def test_lemke_follows_its_path_on_sparse_chains(rng, n, n_islands, guessed):
    p = chain(rng, n, 2, min(n, n_islands))
    code, r, _, info = call("lemke", p, rng.normal(size=2 * n) if guessed else None, tol=1e-10)
    assert code == status.CONVERGED
    assert ref.merit(p, r) <= 1e-10 + ref.rounding(p, r)
    assert info[0] <= 10 * n + 60
    _, swept, _, _ = call("nsgs", p, tol=1e-12)
    errors = np.linalg.norm(ref.natural_map(p, r)) + np.linalg.norm(ref.natural_map(p, swept))
    assert np.linalg.norm(r - swept) <= ref.force_distance(p) * (errors + 1e-14 * np.linalg.norm(p.q))


def test_lemke_meets_a_ray_where_there_is_no_solution():
    H = np.array([[1.0, 0, -1, 0], [0, 1, 0, 1]])  # a rod that is squeezed from both sides
    p = ref.Drawn(2, np.array([1, 1]), np.zeros((2, 2)), H.T @ H, np.array([-1.0, 0.2, -1.0, 0.2]))
    for mu in (0.0, 0.3):
        assert call("lemke", p._replace(mu=np.full((2, 2), mu)))[0] in (status.RAY, status.SINGULAR)
    assert call("lemke", ref.Drawn(2, np.array([1]), np.full((1, 2), 0.5), np.zeros((2, 2)), np.array([-1.0, 0.0])))[0] != status.CONVERGED
    W, q = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([-1.0, 1.0])  # Painlevé: slides forwards, whatever r is, and into the plane
    assert call("lemke", ref.Drawn(2, np.array([1]), np.ones((1, 2)), W, q))[0] in (status.RAY, status.SINGULAR)


# ---------------------------------------------------------------------------------------------------------------------- structure


@st.composite
def patterns(draw, largest=12):
    """(rng, near): a symmetric pattern with the diagonal."""
    rng, n = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), draw(st.integers(1, largest))
    near = np.triu(rng.uniform(size=(n, n)) < draw(st.sampled_from([0.0, 0.1, 0.3, 1.0])), 1)
    return rng, near | near.T | np.eye(n, dtype=bool)


def compressed(near):
    return np.r_[0, near.sum(1).cumsum()], np.nonzero(near)[1]


@examples(100)
@given(patterns())
def test_colours_are_greedy_and_neighbours_differ(drawn):
    _, near = drawn
    n = len(near)
    order, begin, colour, taken = (np.full(size, -9) for size in (n, n + 1, n, n + 1))
    n_colours = colours.paint(*compressed(near), order, begin, colour, taken)
    expected, twin = painted(near)
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(colour, twin)
    assert n_colours == twin.max() + 1
    for k in range(n_colours):
        members = order[begin[k] : begin[k + 1]]
        assert (np.diff(members) > 0).all()
        assert not (near & ~np.eye(n, dtype=bool))[np.ix_(members, members)].any()


@examples(100)
@given(patterns(), st.sampled_from([2, 3, 5]))
def test_islands_are_connected_components_with_problems_of_their_own(drawn, d):
    rng, near = drawn
    n, (row, column) = len(near), compressed(near)
    begin, member, place = np.zeros(n + 1, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    n_islands = islands.find(row, column, begin, member, np.zeros(2 * n, np.int64))
    expected, label = sp.csgraph.connected_components(sp.csr_array(near))
    assert n_islands == expected
    W, q, r = rng.normal(size=(len(column), d, d)), rng.normal(size=n * d), rng.normal(size=n * d)
    dense = ref.from_blocks(row, column, W)
    disk, mu, whole, share = rng.integers(-1, 3, size=n), rng.uniform(size=2 * n), np.linalg.norm(q), 0.0
    for i in range(n_islands):
        mine = member[begin[i] : begin[i + 1]]
        np.testing.assert_array_equal(mine, np.flatnonzero(label == label[mine[0]]))
        m, places = len(mine), (mine[:, None] * d + np.arange(d)).ravel()
        disk_i, mu_i, row_i, column_i = np.zeros(n, np.int64), np.zeros(2 * n), np.zeros(n + 1, np.int64), np.zeros(len(column), np.int64)
        W_i, q_i, r_i = np.zeros(W.size), np.zeros(n * d), np.zeros(n * d)
        whole_problem = signature.Problem(disk, mu, row, column, W.ravel(), q)
        island = signature.Problem(disk_i, mu_i, row_i, column_i, W_i, q_i)
        islands.extract(begin[i], begin[i + 1], member, place, whole_problem, r, island, r_i)
        size = row_i[m]
        own = ref.from_blocks(row_i[: m + 1], column_i[:size], W_i[: size * d * d].reshape(-1, d, d))
        np.testing.assert_array_equal(own, dense[np.ix_(places, places)])
        np.testing.assert_array_equal(disk_i[:m], disk[mine])
        np.testing.assert_array_equal(mu_i[: 2 * m].reshape(-1, 2), mu.reshape(-1, 2)[mine])
        np.testing.assert_array_equal(q_i[: m * d], q[places])
        np.testing.assert_array_equal(r_i[: m * d], r[places])
        share += (islands.share(1e-8, begin[i], begin[i + 1], d, member, q) * np.linalg.norm(q[places])) ** 2
    assert np.sqrt(share) == pytest.approx(1e-8 * whole)  # what islands leave adds up to what the whole may have


@examples(100)
@given(patterns(14), st.sampled_from([2, 3, 5]))
def test_rows_of_blocks_hold_the_matrix(drawn, d):
    rng, near = drawn
    n = len(near)
    half = near & (rng.uniform(size=near.shape) < 0.7)  # the pattern need not be symmetric, nor the diagonal stored
    W = np.kron(half, np.ones((d, d))) * rng.normal(size=(n * d, n * d)) * (rng.uniform(size=(n * d, n * d)) < 0.5)
    for M in (W, sp.coo_array(W), sp.coo_array((np.r_[W.ravel(), W.ravel()] / 2, np.tile(np.indices(W.shape).reshape(2, -1), 2)))):
        row, column, data = forms.block_rows(M, d)
        np.testing.assert_array_equal(ref.from_blocks(row, column, data.reshape(-1, d, d)), W)
        pattern = ref.from_blocks(row, column, np.ones((len(column), 1, 1))) > 0
        assert (pattern == pattern.T).all()
        assert pattern.diagonal().all()
        assert all((np.diff(column[row[i] : row[i + 1]]) > 0).all() for i in range(n))
        places = [signature.diagonal_block(row, column, c) for c in range(n)]
        np.testing.assert_array_equal(column[places], np.arange(n))
        r, u = rng.normal(size=n * d), np.zeros(n * d)
        signature.multiply(row, column, data, np.ones(n * d), r, u)
        np.testing.assert_allclose(u, W @ r + 1, atol=1e-13 * n * d)


@examples(60)
@given(generators, st.integers(1, 6), st.sampled_from([2, 3, 5]))
def test_panels_hold_what_contacts_touch(rng, n, d):
    H = rng.normal(size=(9, n * d)) * (rng.uniform(size=(9, n * d)) < 0.3)
    G = rng.normal(size=(9, n * d)) * (rng.uniform(size=(9, n * d)) < 0.3)
    panels = forms.panels(d, sp.csc_array(H), sp.csr_array(G))
    H_back, G_back = np.zeros((9, n * d)), np.zeros((9, n * d))
    for c in range(n):
        touched, k = panels.unknown[panels.panel[c] : panels.panel[c + 1]], slice(c * d, (c + 1) * d)
        np.testing.assert_array_equal(touched, np.flatnonzero((abs(H[:, k]) + abs(G[:, k])).any(axis=1)))
        entries = slice(panels.panel[c] * d, panels.panel[c + 1] * d)
        H_back[touched, k] = panels.H[entries].reshape(d, -1).T
        G_back[touched, k] = panels.G[entries].reshape(d, -1).T
    np.testing.assert_array_equal(H_back, H)
    np.testing.assert_array_equal(G_back, G)
    W = np.zeros(n * d * d)
    bodies.blocks(d, panels.panel, panels.H, panels.G, W)
    for c, block in enumerate(W.reshape(n, d, d)):
        k = slice(c * d, (c + 1) * d)
        np.testing.assert_allclose(block, H[:, k].T @ G[:, k], atol=1e-13)


@examples(60)
@given(generators, st.sampled_from(["dense", "bodies", "connected"]), st.integers(1, 5))
def test_the_mass_is_inverted_as_it_falls_apart(rng, storage, n):
    size = rng.integers(1, 7, size=n)
    M = sp.block_diag([rng.normal(size=(m, m)) + 4 * np.eye(m) for m in size]).toarray()
    if storage == "connected":
        M = sp.block_diag([M, np.diag(np.full(14, 4.0)) + np.diag(np.ones(13), 1)]).toarray()
    order = rng.permutation(len(M))
    M = M[np.ix_(order, order)]
    H = rng.normal(size=(len(M), 6)) * (rng.uniform(size=(len(M), 6)) < 0.5)
    solve_M, inverse_H = forms.inverse_times("test", *((M, H) if storage == "dense" else (sp.coo_array(M), sp.csc_array(H))))
    x = rng.normal(size=len(M))
    room = 1e-13 * np.linalg.cond(M)
    np.testing.assert_allclose(solve_M(x), np.linalg.solve(M, x), atol=room)
    np.testing.assert_allclose(inverse_H.toarray() if sp.issparse(inverse_H) else inverse_H, np.linalg.solve(M, H), atol=room)
    if storage == "bodies":
        assert inverse_H.nnz <= sum(np.count_nonzero(H, axis=0)) * 6


@examples(100)
@given(generators, st.integers(1, 5), st.sampled_from(KINDS))
def test_states_follow_from_the_argument_of_the_projection(rng, n, kind):
    d, disk = kind
    p = ref.draw_contacts("definite", d, disk, n, rng.integers(2**32))
    r, u, state = rng.normal(size=n * d), rng.normal(size=n * d), np.zeros(2 * n, np.int64)
    row, column, blocks = forms.block_rows(p.W, d)
    signature.classify(signature.Problem(p.disk, p.mu.ravel(), row, column, blocks, p.q), r, u, state)
    for c, (at, T, R, mu, mu_r, _) in enumerate(p.contacts()):
        x = r[at] - u[at] / (np.trace(p.W[at, at]) / d)
        for k, (part, m) in enumerate(((T, mu), (R, mu_r))):
            assert state[2 * c + k] == (0 if x[0] <= 0 else 1 if np.linalg.norm(x[part]) < m * x[0] else 2)


def test_scratch_of_one_contact_is_enough():
    assert one.SCRATCH >= 98


# ---------------------------------------------------------------------------------------------------------------------- mixed systems

_NAMES = ["equality", "lcp", "plane", "space", "rolling_plane", "rolling"]


def blocks_of(names, rng):
    made = []
    for name in names:
        mu, mu_r = rng.uniform(0.0, 0.3, size=2)
        sizes = {"equality": 1 + rng.integers(6), "lcp": 1 + rng.integers(3)}
        friction = {"plane": ("friction", 2, mu), "space": ("friction", 3, mu)}
        rolling = {"rolling_plane": ("rolling", 3, mu, mu_r), "rolling": ("rolling", 5, mu, mu_r)}
        made.append((name, int(sizes[name])) if name in sizes else {**friction, **rolling}[name])
    return made


def mixed_residual(M, q, blocks, z):
    """Natural map of each law, over ``||q||``."""
    w, at, F = M @ z + q, 0, []
    for law, size, *mu in blocks:
        x, y = z[at : at + size], w[at : at + size]
        if law == "equality":
            F.append(y)
        elif law == "lcp":
            F.append(np.minimum(x, y))
        else:
            disk, (m, m_r) = (size - 1) // (1 + (law == "rolling")), (*mu, 0.0)[:2]
            F.append(x - ref.onto_cone(x - ref.hat(y, m, m_r, disk), m, m_r, disk))
        at += size
    return np.linalg.norm(np.concatenate(F)) / np.linalg.norm(q)


@examples(100)
@given(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4), generators)
def test_mixed_systems_are_contact_problems_with_idle_components(names, rng):
    blocks = blocks_of(names, rng)
    n = sum(block[1] for block in blocks)
    G = rng.normal(size=(n, n))
    M, q = G @ G.T / n + np.eye(n), rng.normal(size=n) - 0.3
    s = solvers.solve_generic(M, q, blocks, tol=1e-9)
    assert s.status == status.CONVERGED
    np.testing.assert_allclose(s.w, M @ s.z + q, atol=1e-12 * n * (1 + abs(s.z).max()))
    friction = any(name not in ("equality", "lcp") for name in names)
    scale = 1.0 if friction else (1 + np.linalg.norm(q)) / np.linalg.norm(q)  # without, it is an MLCP
    D = abs(M).max(axis=1).min()  # impulses are divided by such velocities, at least
    assert mixed_residual(M, q, blocks, s.z) <= 1.001e-9 * scale * (3.0 * max(1.0, 1.0 / D) if friction else 1.0)
    if friction:
        checked = generic.checked_blocks("test", n, blocks)
        problem, place = generic.embedded(sp.coo_array(M), q, checked)
        W = ref.from_blocks(problem.row, problem.column, problem.W.reshape(-1, problem.d, problem.d))
        idle = np.setdiff1d(np.arange(len(W)), place)
        assert problem.d == max(block.size for block in checked if block.law in ("friction", "rolling"))
        np.testing.assert_array_equal(W[np.ix_(place, place)], M)
        np.testing.assert_array_equal(problem.q[place], q)
        np.testing.assert_array_equal(W[np.ix_(idle, place)], 0.0)
        np.testing.assert_array_equal(W[np.ix_(place, idle)], 0.0)
        assert (problem.q[idle] == 0).all()
        assert (np.diag(W)[idle] > 0).all()


@pytest.mark.parametrize("names", list(itertools.permutations(_NAMES, 2)), ids="-".join)
def test_the_merit_of_a_mixed_system_counts_every_component(names):
    """At impulses that solve nothing: an error of any of them is seen."""
    rng = np.random.default_rng(len("".join(names)))
    blocks = blocks_of([*names, "space"], rng)
    n = sum(block[1] for block in blocks)
    M, q = rng.normal(size=(n, n)), rng.normal(size=n)
    problem, place = generic.embedded(sp.coo_array(M), q, generic.checked_blocks("test", n, blocks))
    W = ref.from_blocks(problem.row, problem.column, problem.W.reshape(-1, problem.d, problem.d))
    drawn = ref.Drawn(problem.d, problem.disk, problem.mu.reshape(-1, 2), W, problem.q)
    r = np.zeros(len(W))
    r[place] = rng.normal(size=n)
    expected = ref.merit(drawn, r)
    assert abs(signature.merit(False, problem, r, np.zeros(r.size)) - expected) <= 1e-9 * expected
    assert abs(signature.merit(True, problem, r, np.zeros(r.size)) - expected) <= 1e-9 * expected
