"""Every contact solver of the table: the definition of the law, invariances, problems that have another form, truth about failures."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nsds import solvers, status
from nsds.solvers import table
from nsds.solvers.contact import forms, signature
from nsds.solvers.faces.contact import kind_of
from tests import reference_contact as ref
from tests.reference_contact import FAMILIES
from tests.strategies import examples, generators

METHODS = list(solvers.methods("fc2d"))
TOL = 1e-9
# (d, components of T) -> the function that solves it
KINDS = {(2, 1): "solve_fc2d", (3, 2): "solve_fc3d", (3, 1): "solve_rfc2d", (5, 2): "solve_rfc3d"}
_FRICTION, _ROLLING = {(2, 1), (3, 2)}, {(3, 1), (5, 2)}
# Families of problems that a method solves from any guess. Others it may solve, or say that it did not: Newton's methods and lemke fail at
# about one redundant problem in a hundred, newton_fb also at some where mu is small.
_DEFINITE = {"unique", "definite", "unsymmetric"}
PROMISED = {method: set(FAMILIES) for method in METHODS} | {
    **dict.fromkeys(("newton_ac", "newton_jm", "newton_natural", "lemke"), _DEFINITE),
    "newton_fb": {"definite", "unsymmetric"},
    "cpg": set(),  # solves two in three
}
each_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Problems are too small for more, which only wait for each other."""
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)


def promised(method, p):
    """Whether the method is held to solving this problem."""
    return (p.d, int(p.disk[0])) in kinds_of(method) and p.family in PROMISED[method]


def kinds_of(method):
    """Contacts that the method treats."""
    return [kind for kind in KINDS if method in solvers.methods(KINDS[kind].removeprefix("solve_"))]


@st.composite
def problems(draw, method, families=FAMILIES, kinds=tuple(KINDS), largest=5, frictionless=0.2):
    d, disk = draw(st.sampled_from([kind for kind in kinds if kind in kinds_of(method)]))
    n, seed = draw(st.integers(1, largest)), draw(st.integers(0, 2**32 - 1))
    return ref.draw_contacts(draw(st.sampled_from(families)), d, disk, n, seed, frictionless)


def solve(p, method, tol=TOL, on_failure="continue", W=None, **options):
    kind = p.d, int(p.disk[0])
    rolling = (p.mu[:, 1],) if kind in _ROLLING else ()
    return getattr(solvers, KINDS[kind])(p.W if W is None else W, p.q, p.mu[:, 0], *rolling, method, tol, on_failure=on_failure, **options)


def assert_truthful(p, s, tol=TOL):
    """CONVERGED says what the merit says, and merit and res_q are what twins find, up to rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        error, noise = ref.merit(p, s.r), ref.merit_rounding(p, s.r)
        mixed, mixed_noise = ref.residual(p, s.r), ref.rounding(p, s.r)
    assert np.isfinite(s.r).all()
    assert (s.status == status.CONVERGED) == (s.residual <= tol)
    assert error <= tol or s.status != status.CONVERGED or noise <= tol
    assert abs(error - s.residual) <= noise + 1e-9 * error or s.residual > 1e-4
    assert abs(mixed - s.res_q) <= mixed_noise + 1e-9 * mixed or not np.isfinite(mixed)  # the twin overflows
    np.testing.assert_array_less(abs(s.u - p.velocity(s.r)), noise * (np.linalg.norm(p.q) or 1.0) + 1e-300)


def assert_law(p, r, e):
    """All that the law says of every contact, with what a merit of the velocity e allows.

    ``min(D r_N, u_N)`` is at most e in size. With F, ``||F|| <= e``, what r_T misses its law by: ``s = r_T - F / D`` is in the disk of
    radius g, and ``(F - u_T) (z - s) <= 0`` for every z of it, so that ``u_T (z - s) >= -2 g e``.
    """
    u, D = p.velocity(r), ref.scales(p, r).astype(float)
    for at, T, R, mu, mu_r, _ in p.contacts():
        x, v, d = r[at], u[at], D[at]
        assert d[0] * x[0] >= -e
        assert v[0] >= -e
        assert min(d[0] * x[0], v[0]) <= e
        for part, m in ((T, mu), (R, mu_r)):
            if not x[part].size:
                continue
            g, speed, near = m * max(x[0], 0.0), np.linalg.norm(v[part]), e / d[part][0]
            assert np.linalg.norm(x[part]) <= g + near
            assert g * speed + x[part] @ v[part] <= 2 * g * e + near * speed  # dissipates most
            if speed > 0:  # so that r_T is near -mu r_N u_T / ||u_T||, in a disk that is flat there to second order
                aside = np.linalg.norm(x[part] + g * v[part] / speed)
                assert aside <= near + np.sqrt(2 * g * 2 * g * e / speed) * (1 + 1e-9)


# ---------------------------------------------------------------------------------------------------------------------- the law


def test_every_method_is_promised_something():
    assert set(PROMISED) == set(METHODS)
    for kind in ("fc3d", "rfc2d", "rfc3d"):
        assert set(solvers.methods(kind)) < set(METHODS)
        assert set(solvers.methods(f"g{kind}" if kind != "rfc2d" else "gfc3d")) >= {"nsgs_bodies", "newton_global"}


@each_method
def test_solution_satisfies_the_law(method):
    @examples(80)
    @given(problems(method))
    def check(p):
        s = solve(p, method)
        assert s.method == method or (method == "auto" and s.method.startswith("auto: "))
        assert s.status == status.CONVERGED or not promised(method, p)
        assert_truthful(p, s)
        if s.status == status.CONVERGED:
            assert_law(p, s.r, (TOL + ref.merit_rounding(p, s.r)) * np.linalg.norm(p.q))

    check()


@examples(200)
@given(problems("auto", kinds=tuple(_FRICTION)), generators)
def test_polar_decomposition(p, rng):
    """``r - rho uhat = P_K(.) + P_K°(.)`` is Moreau's decomposition: r and -rho uhat are its parts, whatever rho."""
    s = solve(p, "auto", on_failure="raise")
    rho = 10.0 ** rng.uniform(-1, 1)
    e = max(1.0, rho) * (s.res_q + ref.rounding(p, s.r)) * np.linalg.norm(p.q)
    for at, _, _, mu, _, disk in p.contacts():
        uhat = ref.hat(p.velocity(s.r)[at], mu, 0.0, disk)
        x = s.r[at] - rho * uhat
        inside, polar = ref.onto_cone(x, mu, 0.0, disk), ref.onto_polar_cone(x, mu)
        np.testing.assert_allclose(inside + polar, x, rtol=0, atol=1e-14 * np.linalg.norm(x))
        assert abs(inside @ polar) <= 1e-14 * (x @ x)
        assert np.linalg.norm(inside - s.r[at]) <= e
        assert np.linalg.norm(polar + rho * uhat) <= e + 1e-14 * np.linalg.norm(x)


@examples(200)
@given(problems("auto"), generators)
def test_no_force_dissipates_more(p, rng):
    """``u_T (s - r_T) >= 0`` for every s of the disk."""
    s = solve(p, "auto", on_failure="raise")
    e = (s.res_q + ref.rounding(p, s.r)) * np.linalg.norm(p.q)
    for at, T, R, mu, mu_r, disk in p.contacts():
        r, u = s.r[at], p.velocity(s.r)[at]
        gap = e * (np.linalg.norm(r) + np.linalg.norm(ref.hat(u, mu, mu_r, disk)) + e)
        for part, m in ((T, mu), (R, mu_r)):
            other = rng.normal(size=r[part].size)
            other = ref.onto_disk(other, 1.0) * m * r[0]
            assert u[part] @ (other - r[part]) >= -(5 + 2 * mu + 2 * mu_r) * gap


@each_method
def test_states_are_what_forces_and_velocities_say(method):
    @examples(30)
    @given(problems(method, ("unique",)))
    def check(p):
        s = solve(p, method)
        if s.status != status.CONVERGED:
            return
        state, e = s.state.reshape(p.n, -1), 1e3 * TOL * np.linalg.norm(p.q) * max(1.0, ref.force_distance(p))
        for c, (at, T, R, mu, mu_r, _) in enumerate(p.contacts()):
            r, u = s.r[at], s.u[at]
            for name, part, m in zip(state[c], (T, R), (mu, mu_r), strict=False):
                if name == "open":
                    assert r[0] <= e
                if name == "sticking":
                    assert np.linalg.norm(u[part]) <= e
                if name == "sliding":
                    assert abs(np.linalg.norm(r[part]) - m * r[0]) <= e

    check()


# ---------------------------------------------------------------------------------------------------------------------- invariances


def assert_same(p, r, other):
    """Two approximate solutions of a problem with one solution are as near as their natural maps say."""
    errors = np.linalg.norm(ref.natural_map(p, r)) + np.linalg.norm(ref.natural_map(p, other))
    noise = (ref.rounding(p, r) + ref.rounding(p, other)) * np.linalg.norm(p.q)
    assert np.linalg.norm(r - other) <= ref.force_distance(p) * (errors + noise)


def check_unique(method, transform, number=30):
    """transform(p, rng) -> (another problem, function of its r that gives a solution of p)."""

    @examples(number)
    @given(problems(method, ("unique",)), generators)
    def check(p, rng):
        if promised(method, p):
            other, back = transform(p, rng)
            assert_same(p, solve(p, method, on_failure="raise").r, back(solve(other, method, on_failure="raise").r))

    check()


def turned(p, rng):
    """Other tangents."""
    Q = np.eye(len(p.q))
    for at, T, R, *_ in p.contacts():
        for part in (T, R):
            size = part.stop - part.start
            Q[at, at][part, part] = np.linalg.qr(rng.normal(size=(size, size)))[0]
    return p._replace(W=Q @ p.W @ Q.T, q=Q @ p.q), lambda r: Q.T @ r


def permuted(p, rng):
    """The contacts in another order."""
    order = rng.permutation(p.n)
    places = (order[:, None] * p.d + np.arange(p.d)).ravel()
    back = np.argsort(places)
    return p._replace(W=p.W[np.ix_(places, places)], q=p.q[places], mu=p.mu[order]), lambda r: r[back]


def faster(p, rng):
    """Velocities in another unit: r grows with q."""
    c = 10.0 ** rng.uniform(-6, 6)
    return p._replace(q=c * p.q), lambda r: r / c


def heavier(p, rng):
    """Masses in another unit: ``c W`` has the solution r / c."""
    c = 10.0 ** rng.uniform(-6, 6)
    return p._replace(W=c * p.W), lambda r: c * r


@each_method
@pytest.mark.parametrize("transform", [turned, permuted, faster, heavier])
def test_the_solution_is_invariant(method, transform):
    check_unique(method, transform)


@each_method
def test_the_guess_does_not_change_the_solution(method):
    @examples(20)
    @given(problems(method, ("unique",)), generators)
    def check(p, rng):
        if promised(method, p):
            cold = solve(p, method, on_failure="raise").r
            for r0 in (rng.normal(size=len(p.q)), np.full(len(p.q), 1e-300), cold):
                assert_same(p, solve(p, method, on_failure="raise", r0=r0).r, cold)

    check()


@each_method
def test_sparse_and_dense_are_the_same_bits(method):
    @examples(10)
    @given(problems(method, ("definite",)))
    def check(p):
        dense = solve(p, method)
        for storage in (sp.csr_array, sp.csc_array, sp.coo_array, sp.bsr_array):
            s = solve(p, method, W=storage(p.W))
            np.testing.assert_allclose(s.r, dense.r, rtol=0, atol=1e-6 * (1 + abs(dense.r).max()))

    check()


# ---------------------------------------------------------------------------------------------------------------------- agreement


@each_method
def test_methods_agree_where_there_is_one_solution(method):
    @examples(40)
    @given(problems(method, ("unique",)))
    def check(p):
        if promised(method, p):
            assert_same(p, solve(p, method, on_failure="raise").r, solve(p, "nsgs", on_failure="raise").r)

    check()


@each_method
def test_without_friction_the_normal_forces_solve_an_lcp(method):
    @examples(30)
    @given(problems(method, ("unique", "definite"), frictionless=1.0))
    def check(p):
        s = solve(p, method)
        assert s.status == status.CONVERGED or not promised(method, p)
        if s.status == status.CONVERGED:
            normal = np.arange(len(p.q)) % p.d == 0
            z = solvers.solve_lcp(p.W[np.ix_(normal, normal)], p.q[normal], tol=1e-12).z
            r = np.where(normal, np.repeat(z, p.d), 0.0)
            smallest, size = np.linalg.eigvalsh(p.W)[[0, -1]]
            errors = sum(np.linalg.norm(ref.natural_map(p, x)) for x in (s.r, r)) + ref.rounding(p, r) * np.linalg.norm(p.q)
            assert np.linalg.norm(s.r - r) <= (1 + size) / smallest * errors  # force_distance for mu = 0

    check()


@each_method
def test_without_rolling_friction_nothing_is_transmitted_by_rolling(method):
    """Five components with mu_r = 0 are three and two that are free; three in the plane, two and one."""
    if not set(kinds_of(method)) & _ROLLING:
        return

    @examples(30)
    @given(problems(method, ("unique",), tuple(_ROLLING)))
    def check(p):
        p = p._replace(mu=p.mu * [1, 0])
        if promised(method, p):
            kept = np.arange(len(p.q)) % p.d <= p.disk[0]
            d = 1 + int(p.disk[0])
            plain = ref.Drawn(d, p.disk, p.mu, p.W[np.ix_(kept, kept)], p.q[kept], p.family)
            s, r = solve(p, method, on_failure="raise"), np.zeros(len(p.q))
            r[kept] = solve(plain, method if (d, d - 1) in kinds_of(method) else "nsgs", on_failure="raise").r
            assert_same(p, s.r, r)

    check()


@each_method
def test_space_with_one_idle_tangent_is_the_plane(method):
    @examples(30)
    @given(problems(method, ("unique",), ((2, 1),)), generators)
    def check(plane, rng):
        kept = np.arange(3 * plane.n) % 3 < 2
        W, q = np.diag(np.where(kept, 0.0, np.diag(plane.W).mean())), np.zeros(3 * plane.n)
        W[np.ix_(kept, kept)], q[kept] = plane.W, plane.q
        p = ref.Drawn(3, np.full(plane.n, 2), plane.mu, W, q, plane.family)
        if (3, 2) in kinds_of(method) and promised(method, p):
            r = np.zeros(len(q))
            r[kept] = solve(plane, method, on_failure="raise").r
            assert_same(p, solve(p, method, on_failure="raise").r, r)

    check()


@each_method
def test_in_the_plane_an_lcp_says_the_same(method):
    """For each contact 0 <= (r_N, r_T + mu r_N, slip) ⟂ (u_N, u_T + slip, mu r_N - r_T) >= 0, by the box solvers."""

    @examples(30)
    @given(problems(method, ("unique", "definite"), ((2, 1),), largest=4))
    def check(p):
        n = p.n
        T, E, mu = np.zeros((2 * n, 3 * n)), np.zeros((3 * n, 2 * n)), p.mu[:, 0]
        for c in range(n):
            T[2 * c, 3 * c], T[2 * c + 1, 3 * c], T[2 * c + 1, 3 * c + 1] = 1.0, -mu[c], 1.0
            E[3 * c, 2 * c], E[3 * c + 1, 2 * c + 1] = 1.0, 1.0
        M = E @ p.W @ T
        for c in range(n):
            M[3 * c + 1, 3 * c + 2], M[3 * c + 2, 3 * c], M[3 * c + 2, 3 * c + 1] = 1.0, 2 * mu[c], -1.0
        lcp = solvers.solve_lcp(M, E @ p.q, tol=1e-12)
        r = T @ lcp.z
        assert ref.residual(p, r) <= 1e-9
        s = solve(p, method)
        assert s.status == status.CONVERGED or not promised(method, p)
        if p.family == "unique" and promised(method, p):
            assert_same(p, s.r, r)

    check()


@pytest.mark.parametrize("method", [*METHODS, "nsgs_bodies"])
def test_reduced_and_global_problems_are_the_same(method):
    @examples(25)
    @given(problems("nsgs" if method == "nsgs_bodies" else method, ("unique",), ((2, 1), (3, 2), (5, 2))), generators, st.booleans())
    def check(p, rng, sparse):
        """M and H random, with M small next to H so that W is p's own and what is uniform added."""
        if method != "nsgs_bodies" and not promised(method, p):
            return
        n = len(p.q)
        H = np.linalg.qr(rng.normal(size=(n, n)))[0] * 10.0 ** rng.uniform(-0.2, 0.2, size=n)
        M = np.linalg.inv(np.linalg.solve(H.T, p.W) @ np.linalg.inv(H))  # H^T M^-1 H = W
        q, b = rng.normal(size=n), rng.normal(size=n)
        b = p.q - H.T @ np.linalg.solve(M, q)
        call = {2: solvers.solve_gfc2d, 3: solvers.solve_gfc3d, 5: solvers.solve_grfc3d}[p.d]
        rolling = (p.mu[:, 1],) if p.d == 5 else ()
        s = call(sp.csr_array(M) if sparse else M, sp.csr_array(H) if sparse else H, q, b, p.mu[:, 0], *rolling, method, TOL)
        noise = 1e-13 * np.linalg.cond(M) * (np.linalg.norm(s.r) + np.linalg.norm(q) + np.linalg.norm(b))
        np.testing.assert_allclose(M @ s.v, q + H @ s.r, rtol=0, atol=noise * np.linalg.norm(M, 2))
        np.testing.assert_allclose(s.u, H.T @ s.v + b, rtol=0, atol=noise)
        assert ref.merit(p, s.r) <= 3 * TOL + 10 * noise  # scales of global problems are those of diagonal blocks
        assert_same(p, s.r, solve(p, "nsgs", on_failure="raise").r)

    check()


# ---------------------------------------------------------------------------------------------------------------------- failures


def squeezed():
    """A rod that is squeezed from both sides: no velocity opens both contacts."""
    H = np.array([[1.0, 0, -1, 0], [0, 1, 0, 1]])
    return H.T @ H, [-1.0, 0.2, -1.0, 0.2]


def jammed():
    """Slides forwards whatever r is, so that ``r_T = -mu r_N`` and ``u_N = (1 - 2 mu) r_N - 1``: Painlevé's paradox."""
    return np.array([[1.0, 2.0], [0.0, 0.0]]), [-1.0, 1.0]


@each_method
@pytest.mark.parametrize(("d", "W", "q", "mu"), [
    (2, np.zeros((2, 2)), [-1.0, 0.0], 0.5),
    (3, np.zeros((3, 3)), [-1.0, 0.0, 1.0], 0.5),
    (3, np.diag([0.0, 1.0, 1.0]), [-1.0, 0.3, 1.0], 0.0),
    (2, *squeezed(), 0.5),
    (2, *squeezed(), 0.0),
    (2, *jammed(), 1.0),
    (2, *jammed(), 100.0),
])  # fmt: skip
def test_what_has_no_solution_is_reported(method, d, W, q, mu):
    if method not in solvers.methods(kind_of(d, rolls=False)):
        return
    p = ref.Drawn(d, np.full(len(q) // d, d - 1), np.full((len(q) // d, 2), mu) * [1, 0], np.array(W), np.array(q))
    s = solve(p, method, max_iter=300)
    assert s.status == status.INFEASIBLE
    assert s.residual > 1e-4
    assert status.advice(s.status)
    assert_truthful(p, s)
    with pytest.raises(solvers.SolverError, match=method) as caught:
        solve(p, method, max_iter=300, on_failure="raise")
    assert caught.value.solution.status == s.status


@each_method
def test_nothing_false_is_claimed_of_any_matrix(method):
    """Random, singular, indefinite and badly scaled, from any guess, with any friction."""

    @examples(60)
    @given(generators, st.integers(1, 5), st.sampled_from(kinds_of(method)))
    def check(rng, n, kind):
        d, disk = kind
        rows = d * n
        W = rng.normal(size=(rows, rows)) * (rng.uniform(size=(rows, rows)) < rng.uniform())
        np.fill_diagonal(W, abs(np.diag(W)))
        S = 10.0 ** rng.uniform(-3, 3, size=rows)
        p = ref.Drawn(
            d, np.full(n, disk), 10.0 ** rng.uniform(-2, 2, (n, 2)) * [1, disk < d - 1], S[:, None] * W * S, S * rng.normal(size=rows)
        )
        assert_truthful(p, solve(p, method, r0=rng.normal(size=rows), max_iter=50))

    check()


@each_method
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_not_solved(method, bad):
    """Checked inputs never are; a simulation that explodes hands them to the kernels."""
    d = 2
    for place in range(2 * d):
        for where in ("W", "q"):
            p = ref.draw_contacts("definite", d, 1, 2, 5)
            W, q = p.W.copy(), p.q.copy()
            (W if where == "W" else q)[place] = bad
            assert call(method, p._replace(W=W, q=q), 0.0, 0)[0] != status.CONVERGED


@each_method
def test_scratch_may_be_dirty(method):
    """What the scratch holds does not matter: NaN and nonsense give the same bits as zeros."""
    p = ref.draw_contacts("definite", 2, 1, 4, 11)
    assert call(method, p, 0.0, 0) == call(method, p, np.nan, -7) == call(method, p, 1e300, 2**40)


@pytest.mark.parametrize("family", ["definite", "redundant"])
@pytest.mark.parametrize(("method", "d"), [(method, d) for d in (2, 3) for method in solvers.methods(f"fc{d}d")])
def test_methods_keep_to_their_scratch(method, family, d):
    """What lies behind the words that ``work_size`` asks for stays as it is."""
    behind = []
    call(method, ref.draw_contacts(family, d, d - 1, 4, 11), 0.0, 0, f"fc{d}d", behind)
    assert len(behind) == 2
    for part in behind:
        assert (part == _GUARD).all()


_GUARD = 77


def call(method, p, value, number, kind="fc2d", behind=None):
    """(status, r, u, info) by the compiled code, with scratch that holds value and number; behind: gets what lies behind that."""
    problem = signature.Problem(p.disk, p.mu.ravel(), *forms.block_rows(p.W, p.d), p.q)
    chosen, options = table.chosen(solvers.solver(method, max_iter=20), kind)
    *arguments, r, u, info, work, iwork = table.arguments_of(chosen, options, problem, p.d, np.zeros(len(p.q)))
    longer = [np.full(part.size + 64, _GUARD, part.dtype) for part in (work, iwork)]
    work, iwork = longer[0][: work.size], longer[1][: iwork.size]
    work[:], iwork[:] = value, number
    code = signature.solve_repeatedly(1, *arguments, r, u, info, work, iwork)
    if behind is not None:
        behind += [longer[0][work.size :], longer[1][iwork.size :]]
    return code, r.tobytes(), u.tobytes(), info.tobytes()


@each_method
def test_nothing_to_solve_is_solved(method):
    for W in (np.zeros((0, 0)), sp.csr_array((0, 0))):
        s = solvers.solve_fc2d(W, [], 0.5, method)
        assert (s.status, s.residual, s.r.size, s.u.size, s.state.size) == (status.CONVERGED, 0.0, 0, 0, 0)


@each_method
def test_an_open_contact_needs_no_force(method):
    s = solvers.solve_fc2d(np.eye(2), [1.0, 0.3], 0.5, method)
    np.testing.assert_allclose(s.r, 0.0, atol=1e-7)
    assert s.state.tolist() == ["open"]


@each_method
@pytest.mark.parametrize("d", [2, 3, 5])
def test_an_open_contact_without_friction_or_slip_is_open(method, d):
    """uhat is on the axis of the polar cone, and nothing but its sign tells."""
    if method in solvers.methods(kind_of(d, rolls=False)) and method != "newton_fb":
        q = np.eye(d)[0]
        p = ref.Drawn(d, np.array([min(d - 1, 2)]), np.zeros((1, 2)), np.eye(d), q)
        s = solve(p, method)
        assert s.status == status.CONVERGED
        np.testing.assert_allclose(s.r, 0.0, atol=1e-8)


@each_method
def test_iteration_limit_is_kept(method):
    p = ref.draw_contacts("definite", 2, 1, 20, 3)
    s = solve(p, method, tol=1e-15, max_iter=1)
    assert s.status != status.CONVERGED
    assert s.n_iter <= 1 or method == "auto"


GOOD = {"W": np.eye(3), "q": [-1.0, 0.0, 0.0], "mu": 0.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mu": -0.1}, "mu must not be negative"),
        ({"mu": [0.5, 0.5]}, "mu must be a number or have shape"),
        ({"mu": np.nan}, "mu must be finite"),
        ({"W": np.diag([1.0, -1.0, 1.0])}, "negative entries on its diagonal, got -1.0 at 1"),
        ({"W": np.full((3, 3), np.nan)}, "W must be finite"),
        ({"W": np.eye(4)}, "W must have shape"),
        ({"q": [-1.0, np.inf, 0.0]}, "q must be finite"),
        ({"q": np.zeros((3, 1))}, "q must be an array of 1 dimensions"),
        ({"q": np.zeros(4), "W": np.eye(4)}, "q must have 3 components for each contact, got 4"),
        ({"r0": [0.0]}, "r0 must have shape"),
        ({"tol": 0.0}, "tol must be above 0"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"method": "lemke"}, "method must be one of"),
        ({"method": "simplex"}, "method must be one of"),
        ({"local": "magic"}, "local must be one of"),
        ({"rho": -1.0}, "rho must be above 0"),
        ({"seed": 0}, "seed must be at least 1"),
    ],
)
def test_nonsense_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        solvers.solve_fc3d(**{**GOOD, **change})


@pytest.mark.parametrize("change", [{"W": "no"}, {"q": ["a", "b", "c"]}, {"mu": None}, {"max_iter": 1.5}, {"W": 1j * np.eye(3)}])
def test_what_is_no_number_is_refused(change):
    with pytest.raises(TypeError):
        solvers.solve_fc3d(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"M": np.zeros((3, 3))}, "M must be regular"),
        ({"M": sp.csr_array((3, 3))}, "M must be regular"),
        ({"M": sp.csr_array(np.ones((3, 3)))}, "M must be regular"),
        ({"M": np.eye(2)}, "M must have shape"),
        ({"H": np.eye(2)}, "H must have shape"),
        ({"b": np.zeros(4)}, "b must have 3 components"),
        ({"mu": -1.0}, "mu must not be negative"),
        ({"q": [np.nan, 0.0, 0.0]}, "q must be finite"),
    ],
)
@pytest.mark.parametrize("method", ["auto", "nsgs_bodies"])
def test_nonsense_is_refused_of_global_problems(method, change, message):
    good = {"M": np.eye(3), "H": np.eye(3), "q": [-1.0, 0.0, 0.0], "b": np.zeros(3), "mu": 0.5}
    with pytest.raises(ValueError, match=message):
        solvers.solve_gfc3d(**{**good, **change}, method=method)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([("friction", 2, 0.5)], "add up to 3"),
        ([("friction", 4, 0.5)], "2 or 3 unknowns"),
        ([("rolling", 2, 0.5, 0.1), ("lcp", 1)], "3 or 5 unknowns"),
        ([("friction", 3, -0.5)], "coefficient of block 0"),
        ([("friction", 3)], "block 0 must be"),
        ([("relay", 3)], "block 0 must be"),
        ([("equality", 0), ("friction", 3, 0.5)], "size of block 0"),
    ],
)
def test_nonsense_is_refused_of_mixed_systems(blocks, message):
    with pytest.raises(ValueError, match=message):
        solvers.solve_generic(np.eye(3), [-1.0, 0.0, 0.0], blocks)


@examples(60)
@given(problems("auto"), st.floats(-6.0, 12.0), st.integers(0, 2**32 - 1))
def test_the_bound_of_what_rounding_hides_is_one(p, size, seed):
    """And of problems as small as these at most a thousand times as much, so that it says enough."""
    rng = np.random.default_rng(seed)
    r = 10.0**size * rng.normal(size=p.q.size)
    row, column, W = forms.block_rows(p.W, p.d)
    hidden = signature._hidden(1.0, signature.Problem(p.disk, p.mu.ravel(), row, column, W, p.q), r)
    bound = signature.most_hidden(1.0, p.mu.ravel(), signature.largest(W), p.q, r)
    assert hidden <= bound * (1 + 1e-12)
    assert bound <= 1e3 * hidden
