"""Solvers as Python users meet them: forms of a problem, checks of what is passed in, results, comparisons, solvers of their own."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds import solvers, status
from nsds.solvers.box.signature import conclude, diagonal
from nsds.solvers.contact import signature as contact_signature
from tests import reference_solvers as twins
from tests.strategies import examples, generators, problems

SMALL = {"M": [[1.0]], "q": [1]}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["M", "(2, 2)", "(2, 3)"], {"M": np.ones((2, 3)), "q": [1, 2]}),
        (["M", "(3, 3)", "(2, 2)"], {"M": np.eye(2), "q": [1, 2, 3]}),
        (["M", "(3, 3)", "(2, 2)"], {"M": sp.eye_array(2), "q": [1, 2, 3]}),
        (["q", "1 dimensions"], {"M": np.eye(2), "q": [[1, 2]]}),
        (["M", "finite", "nan"], {"M": [[np.nan]], "q": [1]}),
        (["M", "finite", "nan"], {"M": sp.csr_array([[np.nan]]), "q": [1]}),
        (["q", "finite", "inf"], {"M": [[1.0]], "q": [np.inf]}),
        (["z0", "(1,)"], {**SMALL, "z0": [1, 2]}),
        (["method", "simplex", "lemke"], {**SMALL, "method": "simplex"}),
        (["tol", "above 0"], {**SMALL, "tol": 0.0}),
        (["max_iter", "at least 1"], {**SMALL, "max_iter": 0}),
        (["weight", "above 0"], {**SMALL, "weight": -1.0}),
        (["block", "at least 1"], {**SMALL, "block": 0}),
        (["on_failure", "warn", "return"], {**SMALL, "on_failure": "return"}),
    ],
)
def test_bad_arguments_are_named(words, arguments):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        solvers.solve_lcp(**arguments)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("words", "lower", "upper"),
    [
        (["lower must not exceed upper", "2.0 and 1.0 at 1"], [0, 2], 1),
        (["lower", "NaN"], np.nan, 1),
        (["upper", "(2,)"], 0, [1, 2, 3]),
        (["lower", "(2,)", "low"], "low", 1),
        (["finite point", "at 0"], np.inf, np.inf),
        (["finite point", "at 0"], -np.inf, -np.inf),
    ],
)
def test_bad_bounds_are_named(words, lower, upper):
    for solve in (solvers.solve_relay, solvers.solve_mlcp):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            solve(np.eye(2), [1.0, 1.0], lower, upper)
        assert all(word in str(caught.value) for word in words), str(caught.value)
        assert solve.__name__ in str(caught.value)


def test_types_are_named():
    with pytest.raises(TypeError, match="M must be an array of real numbers"):
        solvers.solve_lcp([["a"]], [1.0])
    with pytest.raises(TypeError, match="max_iter must be a whole number"):
        solvers.solve_lcp([[1.0]], [1.0], max_iter=2.5)
    with pytest.raises(TypeError, match="omega"):
        solvers.solve_lcp([[1.0]], [1.0], "psor", omega=1.0)


def test_inputs_are_left_alone():
    M, q, z0 = np.array([[2.0, 1], [1, 2]]), np.array([-5.0, -6]), np.array([1.0, 1])
    copies = M.copy(), q.copy(), z0.copy()
    for method in solvers.methods("relay"):
        solvers.solve_lcp(M, q, method, z0=z0, on_failure="continue")
        solvers.solve_lcp(sp.csr_array(M), q, method, z0=z0, on_failure="continue")
    assert all((a == b).all() for a, b in zip((M, q, z0), copies, strict=True))


# Mixed problems: the block form, and more or fewer equations than free unknowns.


@examples(100)
@given(problems(("positive_definite", "unsymmetric"), kinds=("lcp",)), st.integers(0, 8), st.booleans())
def test_block_form_is_the_joined_problem(p, n_free, sparse):
    n_free = min(n_free, len(p.q))
    A, C, D, B = p.M[:n_free, :n_free], p.M[:n_free, n_free:], p.M[n_free:, :n_free], p.M[n_free:, n_free:]
    lower = np.where(np.arange(len(p.q)) < n_free, -np.inf, 0.0)
    joined = solvers.solve_mlcp(p.M, p.q, lower, np.inf)
    blocks = dict(zip("ABCD", map(sp.csr_array if sparse else np.array, (A, B, C, D)), strict=True))
    s = solvers.solve_mlcp(**blocks, a=p.q[:n_free], b=p.q[n_free:])
    np.testing.assert_allclose(s.z, joined.z, atol=1e-9)


def test_fewer_equations_than_free_unknowns():
    """u_1 + u_2 = v, 0 <= v ⟂ v - 1 >= 0."""
    s = solvers.solve_mlcp(A=[[1.0, 1.0]], B=[[1.0]], C=[[-1.0]], D=[[0.0, 0.0]], a=[0.0], b=[-1.0])
    assert s.z.shape == (3,)
    assert s.w.shape == (2,)
    np.testing.assert_allclose([s.z[0] + s.z[1], s.z[2]], [1.0, 1.0], atol=1e-10)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["all of A, B, C, D, a and b"], {"A": [[1.0]]}),
        (["all of A, B, C, D, a and b"], {"M": [[1.0]], "q": [1.0]}),
        (["all of A, B, C, D, a and b"], {"M": [[1.0]], "A": [[1.0]], "B": [[1.0]], "C": [[1.0]], "D": [[1.0]], "a": [1.0], "b": [1.0]}),
        (["C", "(1, 2)", "(1, 1)"], {"A": [[1.0]], "B": np.eye(2), "C": [[1.0]], "D": np.ones((2, 1)), "a": [1.0], "b": [1.0, 1.0]}),
        (["q must have shape (2,)"], {"M": np.ones((2, 1)), "q": [1.0], "lower": 0.0, "upper": 1.0}),
        (["free unknowns must come first"], {"M": np.ones((2, 3)), "q": [1.0, 1.0], "lower": [0.0, -np.inf, 0.0], "upper": np.inf}),
        (["free unknowns must come first"], {"M": np.ones((1, 2)), "q": [1.0], "lower": [0.0, 0.0], "upper": np.inf}),
    ],
)
def test_bad_mixed_problems_are_named(words, arguments):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        solvers.solve_mlcp(**arguments)
    assert all(word in str(caught.value) for word in words), str(caught.value)


# Variational inequalities over polyhedra, and quadratic programs.


def assert_optimal(w, z, multipliers, G, g, tol=1e-8):
    """``w = G^T lambda``, ``0 <= lambda ⟂ G z - g >= 0``."""
    np.testing.assert_allclose(w, G.T @ multipliers, atol=tol)
    assert (multipliers >= -tol).all()
    assert (G @ z - g >= -tol).all()
    assert (abs(multipliers * (G @ z - g)) <= tol * (1 + multipliers)).all()


def random_polyhedron(rng, n, m):
    """A box and m cuts that leave the origin inside."""
    G = np.vstack([np.eye(n), -np.eye(n), rng.normal(size=(m, n))])
    return G, np.r_[-rng.uniform(1, 2, size=2 * n), -rng.uniform(0.1, 1, size=m)]


@examples(200)
@given(generators, st.integers(1, 5), st.integers(0, 4), st.sampled_from(["auto", "cao_ferris", "lemke"]), st.booleans())
def test_variational_inequalities_over_bounded_polyhedra(rng, n, m, method, monotone):
    """Every continuous map has a solution over a bounded polyhedron (Brouwer), and Cao–Ferris finds it for every matrix."""
    G, g = random_polyhedron(rng, n, m)
    M, q = rng.normal(size=(n, n)), 3 * rng.normal(size=n)
    M = M @ M.T + rng.normal() * (M - M.T) if monotone else M
    s = solvers.solve_avi(M, q, G, g, method, on_failure="continue")
    assert s.status == status.CONVERGED or (method == "lemke" and not monotone)
    if s.status == status.CONVERGED:
        assert_optimal(M @ s.z + q, s.z, s.multipliers, G, g)
        np.testing.assert_allclose(s.w, M @ s.z + q)
        sparse = solvers.solve_avi(sp.csr_array(M), q, sp.csr_array(G), g, method)
        assert_optimal(M @ sparse.z + q, sparse.z, sparse.multipliers, G, g)


@examples(60)
@given(problems(("positive_definite", "unsymmetric"), kinds=("relay",), largest=6), st.sampled_from(["auto", "cao_ferris"]))
def test_a_box_is_a_polyhedron(p, method):
    n = len(p.q)
    s = solvers.solve_avi(p.M, p.q, np.vstack([np.eye(n), -np.eye(n)]), np.r_[p.lower, -p.upper], method)
    np.testing.assert_allclose(s.z, solvers.solve_relay(p.M, p.q, p.lower, p.upper).z, atol=1e-8)


@pytest.mark.parametrize("method", ["auto", "cao_ferris"])
def test_degenerate_vertices(method):
    """A pyramid's tip where more faces meet than the space has dimensions, each given twice."""
    G = np.array([[1.0, 0, -1], [-1, 0, -1], [0, 1, -1], [0, -1, -1]])
    G, g = np.vstack([G, G]), np.full(8, -1.0)
    s = solvers.solve_avi(np.eye(3), [0.0, 0.0, -9.0], G, g, method)
    np.testing.assert_allclose(s.z, [0, 0, 1], atol=1e-10)
    assert_optimal(s.w, s.z, s.multipliers, G, g)


@pytest.mark.parametrize("method", ["auto", "cao_ferris"])
def test_polyhedra_with_lines_or_without_points(method):
    s = solvers.solve_avi(np.eye(2), [1.0, -3.0], [[0.0, 1.0]], [5.0], method)  # a half plane, which holds lines
    np.testing.assert_allclose(s.z, [-1.0, 5.0], atol=1e-10)
    s = solvers.solve_avi(np.eye(1), [0.0], [[1.0], [-1.0]], [2.0, -1.0], method, on_failure="continue")
    assert s.status == status.INFEASIBLE
    s = solvers.solve_avi(np.zeros((1, 1)), [1.0], [[-1.0]], [0.0], method, on_failure="continue")  # downhill for ever
    assert s.status != status.CONVERGED
    s = solvers.solve_avi(np.eye(2), [1.0, -3.0], np.zeros((0, 2)), [], method)
    np.testing.assert_allclose(s.z, [-1.0, 3.0], atol=1e-10)


def test_cao_ferris_refuses_other_problems():
    with pytest.raises(ValueError, match=r"solve_relay: method must be one of .* got 'cao_ferris', which is for avi, qp"):
        solvers.solve_relay(np.eye(2), [1.0, 1.0], method="cao_ferris")


@examples(100)
@given(generators, st.integers(1, 6), st.integers(0, 3), st.integers(0, 2), st.sampled_from(["auto", "lemke", "interior_point"]))
def test_quadratic_programs_meet_their_conditions(rng, n, m, k, method):
    k = min(k, n - 1)
    H = rng.normal(size=(n, n))
    P, c, z = H @ H.T, rng.normal(size=n), rng.uniform(-1, 1, size=n)
    G, A = rng.normal(size=(m, n)), rng.normal(size=(k, n))
    g, b = G @ z - rng.uniform(0, 1, size=m), A @ z
    s = solvers.solve_qp(P, c, G, g, A, b, lower=-1.0, upper=1.0, method=method)
    inequalities = np.vstack([G, np.eye(n), -np.eye(n)])
    np.testing.assert_allclose(A @ s.z, b, atol=1e-8)
    np.testing.assert_allclose(s.w, P @ s.z + c - G.T @ s.multipliers[:m] - A.T @ s.multipliers[m:], atol=1e-8)
    multipliers = np.r_[s.multipliers[:m], np.maximum(s.w, 0), np.maximum(-s.w, 0)]
    at = np.r_[g, -np.ones(2 * n)]
    assert_optimal(P @ s.z + c - A.T @ s.multipliers[m:], s.z, multipliers, inequalities, at, tol=1e-7)


def test_quadratic_program_without_constraints_is_a_box_problem():
    s = solvers.solve_qp([[2.0]], [-6.0], upper=1.0, method="qp")
    assert s.z.tolist() == [1.0]
    assert s.multipliers.size == 0


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["P must be symmetric"], {"P": [[1.0, 1], [0, 1]], "c": [0, 0]}),
        (["P must be positive semidefinite", "-1.0"], {"P": [[1.0, 0], [0, -1]], "c": [0, 0]}),
        (["G and g belong together"], {"P": np.eye(2), "c": [0, 0], "G": np.eye(2)}),
        (["A", "(1, 2)", "(1, 3)"], {"P": np.eye(2), "c": [0, 0], "A": [[1.0, 1, 1]], "b": [1]}),
        (["P", "(2, 2)"], {"P": np.eye(3), "c": [0, 0]}),
    ],
)
def test_bad_quadratic_programs_are_named(words, arguments):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        solvers.solve_qp(**arguments)
    assert all(word in str(caught.value) for word in words), str(caught.value)


# All solutions.


@examples(100)
@given(problems(("indefinite", "positive_definite"), kinds=("lcp", "mlcp", "relay"), largest=5))
def test_all_solutions_are_solutions_and_the_twin_finds_no_other(p):
    found = solvers.all_solutions(*p.data)
    for z in found:
        assert twins.merit(*p.data[:2], z, *p.data[2:]) <= 1e-9
    z = twins.solve_by_enumeration(*p.data, tol=1e-10)
    assert (z is None) == (len(found) == 0)
    if z is not None:
        assert abs(found - z).max(axis=1).min() <= 1e-4 * (1 + abs(z).max())
    if p.family == "positive_definite":
        assert len(found) == 1


def test_all_solutions_of_a_many_valued_problem():
    """Each z_i on its own: 0 or 1, or with two bounds also between."""
    assert len(solvers.all_solutions(-np.eye(3), np.ones(3))) == 8
    np.testing.assert_allclose(sorted(solvers.all_solutions([[-1.0]], [0.2], -1.0, 1.0).ravel()), [-1, 0.2, 1])
    with pytest.raises(ValueError, match="bases"):
        solvers.all_solutions(np.eye(21), np.ones(21))


# Comparisons.


def test_profile_measures_what_it_says():
    easy, hard = solvers.generate("positive_definite", 6, 1), solvers.generate("indefinite", 6, 3)
    result = solvers.profile([easy, hard], ["auto", solvers.solver("pgs", max_iter=1)], seconds=0.001)
    assert result.shape == (2, 2)
    assert result["problem"][:, 0].tolist() == [easy.name, hard.name]
    assert result["method"][0].tolist() == ["auto", "pgs"]
    assert (result["n"] == 6).all()
    assert result["status"][0].tolist() == [status.CONVERGED, status.MAX_ITER]
    assert (result["time"] > 0).all()
    s = solvers.solve_lcp(easy.M, easy.q)
    assert (result["residual"][0, 0], result["n_iter"][0, 0]) == (s.residual, s.n_iter)


def test_profile_of_a_folder(tmp_path):
    M = np.array([[2.0, 1], [1, 2]])
    rows = sp.csr_array(M)
    stored = {"M_data": rows.data, "M_indices": rows.indices, "M_indptr": rows.indptr, "M_shape": rows.shape}
    np.savez(tmp_path / "a.npz", cls="lcp", M=M, q=[-5.0, -6])
    (tmp_path / "below").mkdir()
    np.savez(tmp_path / "below" / "b.npz", cls="relay", q=[-5.0, 6], lb=[-1.0, -1], ub=[1.0, 1], **stored)
    np.savez(tmp_path / "c.npz", cls="mlcp", M=[[1.0, -1], [-1, -1], [1, 1]], q=[0.0, 1, -1], n=1, m=1)
    result = solvers.profile(tmp_path, ["auto", "newton_fb"], seconds=0)
    assert result["problem"][:, 0].tolist() == ["a", "b", "c"]
    assert (result["status"] == status.CONVERGED).all()
    assert result["n"][:, 0].tolist() == [2, 2, 3]
    assert solvers.read_problem(tmp_path / "below" / "b.npz").upper.tolist() == [1, 1]


def test_bad_comparisons_are_named(tmp_path):
    with pytest.raises(ValueError, match="at least one problem"):
        solvers.profile([])
    with pytest.raises(ValueError, match=r"no \.npz files"):
        solvers.profile(tmp_path)
    with pytest.raises(ValueError, match="method must be one of"):
        solvers.profile([solvers.Problem("a", [[1.0]], [1.0])], ["simplex"])
    with pytest.raises(ValueError, match=r"profile\(a\): M must have shape \(1, 1\)"):
        solvers.profile([solvers.Problem("a", np.eye(2), [1.0])], ["pgs"])
    np.savez(tmp_path / "a.npz", cls="fc3d", M=np.eye(3), q=np.ones(3))
    with pytest.raises(ValueError, match=r"a.npz.*cls must be .*'fc3d'"):
        solvers.profile(tmp_path)
    np.savez(tmp_path / "a.npz", cls="mlcp", M=np.eye(3), q=np.ones(3))
    with pytest.raises(ValueError, match=r"a.npz.*m, n missing"):
        solvers.profile(tmp_path)


@pytest.mark.parametrize("family", list(solvers.FAMILIES))
@pytest.mark.parametrize("kind", ["lcp", "mlcp", "relay", "mixed"])
def test_families_are_reproducible(family, kind):
    a, b = solvers.generate(family, 7, 5, kind), solvers.generate(family, 7, 5, kind)
    assert a.name == b.name == f"{family}-7-5-{kind}"
    assert (a.q == b.q).all()
    assert (a.M != b.M).sum() == 0
    assert (a.lower <= a.upper).all()
    assert a.M.shape == (7, 7)


def test_bad_families_are_named():
    for words, arguments in (("family", ("x", 3)), ("kind", ("chain", 3, 0, "x")), ("n must be at least 1", ("chain", 0))):
        with pytest.raises(ValueError, match=words):
            solvers.generate(*arguments)


def test_methods_are_listed_by_kind():
    assert "cao_ferris" in solvers.methods("avi")
    assert "cao_ferris" not in solvers.methods("lcp")
    assert set(solvers.methods("relay")) == set(solvers.methods("mlcp"))
    with pytest.raises(ValueError, match="kind must be"):
        solvers.methods("fc4d")


# A solver of one's own.


def gauss_seidel_of_a_user(row, column, M, q, lower, upper, options, z, w, info, work, iwork):
    n = q.size
    for i in range(n):
        work[i] = 1.0 / diagonal(row, column, M, i)
    for _ in range(500):
        for i in range(n):
            w_i = q[i]
            for k in range(row[i], row[i + 1]):
                w_i += M[k] * z[column[k]]
            z[i] = max(z[i] - w_i * work[i], 0.0)
    return conclude(status.CONVERGED, 500, row, column, M, q, lower, upper, options, z, w, info)


def test_a_user_may_bring_a_solver():
    p = solvers.generate("positive_definite", 5, 4)
    own = solvers.solver(gauss_seidel_of_a_user, work_size=(1, 0))
    s = solvers.solve_lcp(p.M, p.q, gauss_seidel_of_a_user, work_size=(1, 0))
    np.testing.assert_allclose(s.z, solvers.solve_lcp(p.M, p.q).z, atol=1e-9)
    assert solvers.profile([p], [own], seconds=0)["n_iter"].item() == 500
    system = nsds.examples.column_of_beads(count=4)
    mine = nsds.simulate(system, t_end=0.6, h=1e-3, solver=own)
    usual = nsds.simulate(system, t_end=0.6, h=1e-3)
    np.testing.assert_allclose(mine["beads"]["q"], usual["beads"]["q"], atol=1e-9)
    assert (mine["n_iter"][mine["gaps"]["active"].any(axis=1)] == 500).all()


@pytest.mark.parametrize("function", [lambda z: 0, lambda a, b, c, d, e, f, g, h, i, j, k, m: "solved"])
def test_an_unsuitable_solver_is_refused(function):
    with pytest.raises(TypeError, match=r"solver\(row, column, M, q"):
        solvers.solve_lcp([[1.0]], [1.0], function)
    with pytest.raises(TypeError, match=r"solver\(disk, mu, row, column, W"):
        solvers.solve_fc2d(np.eye(2), [1.0, 0.0], 0.5, function)


def projections_of_a_user(disk, mu, row, column, W, q, options, r, u, info, work, iwork):
    d = q.size // disk.size
    for k in range(1000):
        if contact_signature.conclude(status.MAX_ITER, k, disk, mu, row, column, W, q, options, r, u, info) == status.CONVERGED:
            break
        for c in range(disk.size):
            cone = contact_signature.cone_of(c, d, disk, mu)
            hat = contact_signature.modify(cone, c * d, u)
            for a in range(d):
                work[c * d + a] = r[c * d + a] - 0.3 * (u[c * d + a] + (hat if a == 0 else 0.0))
            contact_signature.project(cone, c * d, work)
        r[:] = work[: r.size]
    return contact_signature.conclude(status.CONVERGED, k, disk, mu, row, column, W, q, options, r, u, info)


def test_a_user_may_bring_a_solver_for_contacts():
    W, q = np.diag([2.0, 1.0, 1.0]), [-4.0, 3.0, 4.0]
    s = solvers.solve_fc3d(W, q, 0.5, projections_of_a_user, work_size=(1, 0))
    np.testing.assert_allclose(s.r, solvers.solve_fc3d(W, q, 0.5).r, atol=1e-7)
    assert s.method.startswith("projecti#")
    own = solvers.solver(projections_of_a_user, tol=1e-10, work_size=(1, 0))
    problem = solvers.ContactProblem("pressed", W, np.array(q), np.array([0.5]))
    assert solvers.profile_contacts([problem], [own, "nsgs"], seconds=0)["status"].tolist() == [[0, 0]]
    system = nsds.examples.sliding_ball()
    mine = nsds.simulate(system, t_end=0.05, h=1e-3, solver=own)
    usual = nsds.simulate(system, t_end=0.05, h=1e-3, solver="nsgs")
    np.testing.assert_allclose(mine["ball"]["q"], usual["ball"]["q"], atol=1e-7)


@pytest.mark.parametrize(("inexact", "found"), [(0.0, status.MAX_ITER), (1e-3, status.MAX_ITER), (0.1, status.INEXACT)])
def test_how_exact_steps_are_is_up_to_the_user(inexact, found):
    system, solver = nsds.examples.column_of_beads(count=8), solvers.solver("pgs", max_iter=2, inexact=inexact)
    rows = nsds.simulate(system, t_end=0.6, h=1e-3, solver=solver, on_failure="continue")
    assert rows["status"].max() == found


@pytest.mark.parametrize(("inexact", "found"), [(0.1, status.MAX_ITER), (0.5, status.INEXACT)])
def test_how_exact_steps_with_friction_are_is_up_to_the_user(inexact, found):
    """Two sweeps over six blocks, one on the other, leave an error of 0.488."""
    n, law, relation = 6, nsds.newton_impact_friction(0.0, 0.3), nsds.lagrangian_linear_relation
    system = nsds.system(
        blocks=nsds.lagrangian_linear(M=np.eye(2), fext=[-9.81, 1.0], q=np.c_[0.1 * np.arange(n), np.zeros(n)], v=[0, 0], count=n),
        floor=nsds.interaction(relation(np.eye(2)), law, on="blocks[0]"),
        between=nsds.interaction(relation([[-1, 0, 1, 0], [0, -1, 0, 1]], b=[-0.1, 0]), law, on=("blocks[:-1]", "blocks[1:]")),
    )
    solver = solvers.solver("nsgs", max_iter=2, inexact=inexact)
    rows = nsds.simulate(system, t_end=0.01, h=0.01, solver=solver, on_failure="continue")
    assert rows["status"][1] == found
