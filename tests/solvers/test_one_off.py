"""Problems solved one by one in memory that is kept: bits do not depend on what was solved there before, nor on who solves beside."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from nsds import solvers
from nsds.solvers import table, workspaces
from nsds.solvers.box import forms
from nsds.solvers.box.signature import Problem, multiply, multiply_exactly, solve_repeatedly
from nsds.solvers.contact import forms as contact_forms
from nsds.solvers.contact import signature
from nsds.solvers.faces import box, contact
from nsds.status import CONVERGED
from tests.sparse import FORMATS, kept, stored
from tests.strategies import examples, generators

SIZES = [0.0, -1.0, 1e-60, 1e60, 1e-300, 1e300, np.inf, -np.inf, np.nan]  # numbers that a problem may not want
BLOCKS = [("equality", 1), ("friction", 3, 0.4), ("lcp", 2)]


def draw(rng, n):
    """A matrix that is definite, with a vector."""
    A = rng.normal(size=(n, n))
    return A @ A.T + np.eye(n), rng.normal(size=n)


def solve_any(rng):
    """The result of some function for a small problem of its own, which may have no solution."""
    M, q = draw(rng, 6)
    M *= rng.choice([1.0, 1e80, 1e-80], p=[0.8, 0.1, 0.1])
    q *= rng.choice([1.0, 0.0, 1e-80], p=[0.8, 0.1, 0.1])
    some = {"on_failure": "continue", "method": rng.choice(["auto", "nsgs"]).item(), "tol": rng.choice([1e-10, 1e-6]).item()}
    calls = [
        lambda: solvers.solve_lcp(M, q, **some),
        lambda: solvers.solve_lcp(M - np.diag(M.diagonal()), q, **some),
        lambda: solvers.solve_relay(M, q, -0.1, 0.2, z0=q, **some),
        lambda: solvers.solve_mlcp(sp.coo_array(M), q, -np.inf, np.inf, **some),
        lambda: solvers.solve_fc2d(M, q, 0.3, **some),
        lambda: solvers.solve_fc3d(M, q, [0.3, 0.0], r0=q, **some),
        lambda: solvers.solve_rfc2d(M, q, 0.3, 0.1, **some),
        lambda: solvers.solve_generic(M, q, BLOCKS, **some),
        lambda: solvers.solve_avi(M, q, np.ones((1, 6)), [0.1], on_failure="continue"),
    ]
    return calls[rng.integers(len(calls))]()


def bits(result):
    return [part.tobytes() if isinstance(part, np.ndarray) else part for part in result]


def fresh(monkeypatch):
    for module in (box, contact):
        monkeypatch.setattr(module, "WORKSPACES", workspaces.Workspaces())


@pytest.fixture(params=[1, 2, 100], ids=["bound at once", "bound", "not bound"])
def often(request, monkeypatch):
    """Problems after which the arguments of a call are bound to it."""
    monkeypatch.setattr(workspaces, "_OFTEN", request.param)
    fresh(monkeypatch)


@pytest.mark.usefixtures("often")
def test_bits_do_not_depend_on_what_was_solved_before(monkeypatch):
    seeds = list(range(80))
    alone = []
    for seed in seeds:
        fresh(monkeypatch)
        alone.append(bits(solve_any(np.random.default_rng(seed))))
    fresh(monkeypatch)
    for seed in [*seeds, *reversed(seeds), *seeds]:
        assert bits(solve_any(np.random.default_rng(seed))) == alone[seed], seed


@pytest.mark.usefixtures("often")
def test_threads_do_not_meet():
    seeds = np.random.default_rng(0).integers(60, size=1200).tolist()
    alone = [bits(solve_any(np.random.default_rng(seed))) for seed in range(60)]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda seed: bits(solve_any(np.random.default_rng(seed))), seeds))
    assert together == [alone[seed] for seed in seeds]


def test_results_are_the_users_own():
    rng = np.random.default_rng(1)
    first = [solve_any(np.random.default_rng(seed)) for seed in range(30)]
    before = [bits(result) for result in first]
    for _ in range(100):
        solve_any(rng)
    assert [bits(result) for result in first] == before
    M, q = draw(rng, 4)
    a, b = solvers.solve_lcp(M, q), solvers.solve_lcp(M, q)
    assert not any(np.shares_memory(x, y) for x in (a.z, a.w) for y in (b.z, b.w, M, q))
    a.z[:] = np.nan
    assert bits(solvers.solve_lcp(M, q)) == bits(b)


def test_what_is_given_stays_and_may_lie_anyhow():
    rng = np.random.default_rng(2)
    M, q = draw(rng, 6)
    M[0], M[:, 0] = np.abs(M[0]), np.abs(M[:, 0])
    wide = np.repeat(q, 2)
    for solve, more in ((solvers.solve_lcp, ()), (solvers.solve_relay, (-q * 0 - 1, q * 0 + 1)), (solvers.solve_fc3d, (0.3,))):
        expected = bits(solve(M, q, *more))
        for matrix, vector in ((np.asfortranarray(M), wide[::2]), (M.tolist(), q.tolist()), (M.astype(">f8"), q.astype(">f8"))):
            given_before = [np.array(x).tobytes() for x in (matrix, vector)]
            assert bits(solve(matrix, vector, *more)) == expected
            assert [np.array(x).tobytes() for x in (matrix, vector)] == given_before
        for x in (M, q):
            x.flags.writeable = False
        assert bits(solve(M, q, *more)) == expected
        for x in (M, q):
            x.flags.writeable = True


IMPULSES = np.array([[-1, 1, 0], [0, -1, 1]])
# name -> (call with matrices of whole numbers, the matrices)
WITH_MATRICES = {
    "lcp": (lambda M: solvers.solve_lcp(M, [-1, 2, -3]), 3),
    "relay": (lambda M: solvers.solve_relay(M, [-1, 2, -3]), 3),
    "mlcp": (lambda M: solvers.solve_mlcp(M, [-1, 2, -3], [-np.inf, 0, 0], np.inf), 3),
    "mlcp of blocks": (lambda A, B, C, D: solvers.solve_mlcp(A=A, B=B, C=C, D=D, a=[-1, 2, 3], b=[1, 3, 4]), 3, 3, 3, 3),
    "avi": (lambda M, G: solvers.solve_avi(M, [-1, 2, -3], G, [0, 0, 0]), 3, 3),
    "qp": (lambda P, G, A: solvers.solve_qp(P, [-1, 2, -3], G, [-9, -9, -9], A, [1, 1, 1]), 3, 3, 3),
    "all": (lambda M: solvers.all_solutions(M, [-1, 2, -3]), 3),
    "fc2d": (lambda W: solvers.solve_fc2d(W, [-1, 2, -3, 1], 0.5), 4),
    "fc3d": (lambda W: solvers.solve_fc3d(W, [-1, 2, -3], 0.5), 3),
    "rfc2d": (lambda W: solvers.solve_rfc2d(W, [-1, 2, -3], 0.5, 0.1), 3),
    "rfc3d": (lambda W: solvers.solve_rfc3d(W, [-1, 2, -3, 1, 1], 0.5, 0.1), 5),
    "gfc2d": (lambda M, H: solvers.solve_gfc2d(M, H, [-1, 2, -3, 1], np.zeros(4), 0.5), 4, 4),
    "gfc3d": (lambda M, H: solvers.solve_gfc3d(M, H, [-1, 2, -3], np.zeros(3), 0.5), 3, 3),
    "grfc3d": (lambda M, H: solvers.solve_grfc3d(M, H, [-1, 2, -3, 1, 1], np.zeros(5), 0.5, 0.1), 5, 5),
    "generic": (lambda M: solvers.solve_generic(M, [-1, 2, -3, 1, 1, 1], BLOCKS), 6),
    "soclcp": (lambda M: solvers.solve_soclcp(M, [-1, 2, -3], cones=[3]), 3),
    "multiple impact": (lambda M, H: solvers.solve_multiple_impact(M, H, [1, 0, 0], 1.0), 3, IMPULSES),
    "multiple impact of W": (lambda W: solvers.solve_multiple_impact(W=W, u=[-1, 0, 0], e=1.0), 3),
    "poisson impact": (lambda M, H: solvers.solve_poisson_impact(M, H, [1, 0, 0], 1.0), 3, IMPULSES),
}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", WITH_MATRICES)
def test_sparse_matrices_of_the_user_stay_as_they_are(name, kind):
    """Of any format and type of numbers, with entries that are stored twice or in no order; the result is that of the dense matrix."""
    solve, *sizes = WITH_MATRICES[name]
    dense = [2 * np.eye(size, dtype=int) if isinstance(size, int) else size for size in sizes]
    expected = solve(*dense)
    for dtype in (np.int8, np.int32, np.int64, np.int16, np.float32, np.float64):
        given = [stored(matrix.astype(dtype), kind) for matrix in dense]
        before = [kept(matrix) for matrix in given]
        result = solve(*given)
        assert [kept(matrix) for matrix in given] == before
        for one, other in zip(result, expected, strict=True):
            assert not isinstance(one, np.ndarray) or one.dtype.kind == "U" or np.allclose(one, other, atol=1e-6)


def test_whole_numbers_are_not_taken_for_options_that_they_equal():
    M, q = draw(np.random.default_rng(3), 3)
    for _ in range(2):
        solvers.solve_lcp(M, q, max_iter=1, on_failure="continue")
        with pytest.raises(TypeError, match="max_iter must be a whole number"):
            solvers.solve_lcp(M, q, max_iter=True)
        with pytest.raises(TypeError, match="max_iter must be a whole number"):
            solvers.solve_lcp(M, q, max_iter=1.0)


def test_few_sizes_and_no_large_ones_are_kept(monkeypatch):
    fresh(monkeypatch)
    for n in range(1, 100):
        solvers.solve_lcp(np.eye(n), np.ones(n), method="pgs")
    assert len(box.WORKSPACES._free) <= workspaces._MOST
    solvers.solve_lcp(np.ones((400, 400)) + np.eye(400), np.ones(400), method="pgs")
    sizes = [part.nbytes for free in box.WORKSPACES._free.values() for one in free for part in one.arguments if hasattr(part, "nbytes")]
    assert max(sizes) <= workspaces._LARGEST


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_mixed_systems_without_entries(make):
    s = solvers.solve_generic(make(np.zeros((6, 6))), [0.0, 1.0, 0.0, 0.0, 1.0, 2.0], BLOCKS)
    assert s.z.tolist() == [0.0] * 6
    assert s.w.tolist() == [0.0, 1.0, 0.0, 0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: solvers.solve_lcp([[0.0]], [-1.0], on_failure="warn"),
        lambda: solvers.solve_avi([[0.0]], [-1.0], [[1.0]], [0.0], on_failure="warn"),
        lambda: solvers.solve_fc2d(np.zeros((2, 2)), [-1.0, 1.0], 0.3, on_failure="warn"),
        lambda: solvers.solve_gfc2d(np.eye(2), np.zeros((2, 2)), [0.0, 0.0], [-1.0, 1.0], 0.3, on_failure="warn"),
    ],
)
def test_warnings_name_the_line_that_called(call):
    with pytest.warns(RuntimeWarning, match="proved up to rounding") as found:
        call()
    assert [warning.filename for warning in found] == [__file__]


# Kernels and their twins.


def is_moderate(M, q, lower, upper, z0):
    """Twin of what `solve_moderate` asks of numbers."""

    def are(x, may_be_infinite=False):
        size = abs(np.asarray(x))
        return ((size == 0) | ((size >= 1e-50) & (size <= 1e50)) | ((size == np.inf) & may_be_infinite)).all()

    sides = are(lower, True) and are(upper, True) and (lower <= upper).all() and (lower < np.inf).all() and (upper > -np.inf).all()
    return bool(are(M) and are(q) and sides and np.isfinite(z0).all())


@examples(200)
@given(generators, st.integers(1, 4), st.lists(st.tuples(st.integers(0, 4), st.sampled_from(SIZES)), max_size=2))
def test_numbers_that_are_refused(rng, n, odd):
    M, q = draw(rng, n)
    parts = [M.ravel(), q, np.zeros(n), np.ones(n), rng.normal(size=n)]
    for which, number in odd:
        parts[which][rng.integers(parts[which].size)] = number
    M, q, lower, upper, z0 = parts
    method, options = table.asked("", "relay", "newton_min", 1e-10, None, {})
    row, column, *_ = forms.compressed_rows(M.reshape(n, n))
    problem = Problem(row, column, M, q, lower, upper)
    arguments = table.arguments_of(method, options, problem, n, z0)
    status = forms.solve_moderate(*arguments)
    assert (status != workspaces.REFUSED) == is_moderate(M, q, lower, upper, z0)
    if status != workspaces.REFUSED:
        again = table.arguments_of(method, options, problem, n, z0)
        assert solve_repeatedly(1, False, *again) == status
        assert [x.tobytes() for x in again[-5:-2]] == [x.tobytes() for x in arguments[-5:-2]]


@examples(200)
@given(generators, st.integers(1, 5))
def test_units_of_what_is_linked(rng, n):
    """Powers of two by which w and z of the scaled problem are those of the given one; linked rows have their largest q near 1."""
    M = np.where(rng.random((n, n)) < 0.4, rng.choice([1.0, 3.0, 2.0**-60], (n, n)), 0.0)
    q, z = rng.choice([0.0, 1.0, 1e-16, 1e-40], n), rng.normal(size=n)
    row, column, data, _ = forms.compressed_rows(M)
    problem, units = forms.in_common_units(Problem(row, column, data, q, np.full(n, -np.inf), np.full(n, np.inf)))
    w, inside = np.zeros((2, n))
    multiply(row, column, data, q, z, w)
    multiply(*problem[:4], forms.in_units_of(units, slice(None), z), inside)
    assert np.ldexp(inside, -units.rows.astype(int)) == pytest.approx(w, rel=1e-12, abs=1e-300)
    linked = np.linalg.matrix_power(((M != 0.0).astype(int) @ (M != 0.0).T) + np.eye(n, dtype=int), n) > 0
    largest = np.array([abs(problem.q[part]).max() for part in linked])
    assert ((largest == 0.0) | ((largest >= 0.5) & (largest <= 2.0))).all()


@examples(100)
@given(generators, st.integers(1, 4), st.integers(0, 700), st.integers(-300, 300))
def test_safe_sizes_are_one_power_of_two_for_all_rows_and_one_for_all_unknowns(rng, n, of_M, of_z):
    """The digits stay, and the products of any two numbers can be split into digits."""
    M, q, z = np.ldexp(rng.normal(size=(n, n)), of_M), np.ldexp(rng.normal(size=n), of_M + of_z), np.ldexp(rng.normal(size=n), of_z)
    row, column, data, _ = forms.compressed_rows(M)
    problem = Problem(row, column, data, q, np.full(n, -np.inf), z + abs(z))
    safe, safe_z = forms.of_safe_size(problem, z)
    w = multiplied_exactly(problem._replace(M=np.ldexp(data, -of_M), q=np.ldexp(q, -of_M - of_z)), np.ldexp(z, -of_z))
    mine = multiplied_exactly(safe, safe_z)
    power = np.log2(mine / w)
    assert power == pytest.approx(np.round(power[0]), abs=1e-9)
    assert (np.sign(safe.upper) == np.sign(problem.upper)).all()
    assert (safe.lower == -np.inf).all()
    assert max(abs(safe.M).max(), abs(safe_z).max()) <= 2.0**400


def multiplied_exactly(problem, z):
    """``M z + q``."""
    w = np.empty(z.size)
    multiply_exactly(problem, z, w)
    assert np.isfinite(w).all()
    return w


def is_ordinary(d, mu, W, q, r0):
    """Twin of what `solve_and_judge` asks of numbers."""
    finite = all(np.isfinite(x).all() for x in (W, q, mu, r0))
    return bool(
        finite
        and (abs(W).max() == 0 or abs(np.frexp(abs(W).max())[1]) <= 150)
        and q.any()
        and abs(np.frexp(abs(q).max())[1]) <= 150
        and (mu >= 0).all()
        and (W.diagonal() >= 0).all()
    )


@examples(200)
@given(generators, st.sampled_from([2, 3]), st.integers(1, 3), st.lists(st.tuples(st.integers(0, 4), st.sampled_from(SIZES)), max_size=2))
@example(np.random.default_rng(0), 2, 2, [(0, 0.0), (3, 1e300)])  # of which squares are too large
def test_contacts_that_are_refused(rng, d, n, odd):
    W, q = draw(rng, d * n)
    mu, r0 = np.abs(rng.normal(size=2 * n)), rng.normal(size=d * n)
    for which, number in odd:
        target = (W.reshape(-1), q, mu, r0, np.arange(0))[which]
        if target.size:
            target[rng.integers(target.size)] = number
        else:
            q[:] = 0.0
    method, options = table.asked("", f"fc{d}d", "nsgs", 1e-8, 50, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = signature.Problem(contact_forms.disks(n, d - 1), mu, *contact_forms.block_rows(W, d), q)
    kept = contact._workspace(method, options, problem)
    kept.guess[:] = r0
    status = kept.solve()
    assert (status != workspaces.REFUSED) == is_ordinary(d, mu, W, q, r0)
    if status == workspaces.REFUSED:
        return
    arguments = table.arguments_of(method, options, problem, d, r0)
    assert signature.solve_repeatedly(1, *arguments) == status
    r, answer = arguments[-5], kept.more[0]
    np.testing.assert_array_equal(kept.z, r)
    if np.isfinite(r).all():
        u, code, res_rho = contact._judged(problem, options, r)
        np.testing.assert_array_equal(answer[:2], (res_rho, contact.mixed_residual_of(problem, r)))  # a merit may be NaN, with its status
        assert status != CONVERGED or code == CONVERGED
        np.testing.assert_array_equal(kept.w, u)
        assert contact._texts(problem, kept.more[1]).tolist() == contact.states(problem, r, u).tolist()


@examples(100)
@given(generators, st.integers(1, 9), st.integers(0, 30))
def test_rows_of_entries(rng, n, count):
    i, j, x = rng.integers(n, size=count), rng.integers(n, size=count), np.round(rng.normal(size=count), 1)
    row, column, data, order = forms.compressed_rows(sp.coo_array((x, (i, j)), shape=(n, n)))
    assert order is None
    expected = np.zeros((n, n))
    np.add.at(expected, (i, j), x)
    np.testing.assert_allclose(sp.csr_array((data, column, row), shape=(n, n)).toarray(), expected, rtol=1e-15, atol=1e-15)
    pairs = {*zip(i.tolist(), j.tolist(), strict=True), *zip(j.tolist(), i.tolist(), strict=True), *((k, k) for k in range(n))}
    stored = [(k, int(c)) for k in range(n) for c in column[row[k] : row[k + 1]]]
    assert stored == sorted(pairs)


@examples(100)
@given(generators, st.sampled_from([2, 3, 5]), st.integers(1, 6), st.integers(0, 30), st.booleans())
def test_blocks_of_entries(rng, d, n, count, dense):
    i, j, x = rng.integers(n * d, size=count), rng.integers(n * d, size=count), rng.choice([-1.5, 0.25, 2.0], size=count)
    if dense:
        _, places = np.unique(i * n * d + j, return_index=True)
        i, j, x = i[places], j[places], x[places]
    W = sp.coo_array((x, (i, j)), shape=(n * d, n * d))
    row, column, data = contact_forms.block_rows(W.toarray(order="F") if dense else W, d, full=0)
    expected = np.zeros((n, d, n, d))
    np.add.at(expected, (i // d, i % d, j // d, j % d), x)
    blocks = np.zeros((n, n, d, d))
    blocks[np.repeat(np.arange(n), np.diff(row)), column] = data.reshape(-1, d, d)
    np.testing.assert_array_equal(blocks, expected.transpose(0, 2, 1, 3))
    a, b = (i // d).tolist(), (j // d).tolist()
    pairs = {*zip(a, b, strict=True), *zip(b, a, strict=True), *((k, k) for k in range(n))}
    assert [(k, int(c)) for k in range(n) for c in column[row[k] : row[k + 1]]] == sorted(pairs)
