"""Relations in sparse form, and steps whose one-step problem has no matrix of the multipliers."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.schemes.problem import mixed
from nsds.solvers import solver
from nsds.status import CONVERGED, has_failed
from tests.strategies import examples

seeds = st.integers(0, 2**32 - 1)
FORMS = ("csr", "csc", "coo", "lil", "dok")


def line(n):
    return sp.diags_array([np.ones(n - 1), np.full(n, -2.2), np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()


def in_some_form(rng, matrix):
    """The same numbers by scipy.sparse, in any of its forms, with long indices or entries that are stored in two parts."""
    entries = sp.coo_array(matrix)
    half = entries.data * rng.uniform(-1, 1)
    twice = sp.coo_array((np.concatenate([half, entries.data - half]), tuple(np.tile(c, 2) for c in entries.coords)), shape=matrix.shape)
    if rng.uniform() < 0.3 and np.array_equal(twice.toarray(), matrix):
        return twice
    result = sp.csr_array(matrix).asformat(rng.choice(FORMS))
    if result.format == "csr":
        result.indices, result.indptr = result.indices.astype(np.int64), result.indptr.astype(np.int64)
    return result


def law_of(rng, m):
    """(law, lower, upper)."""
    which = rng.integers(3)
    if which == 0:
        lower, upper = -rng.uniform(0.1, 1, m), rng.uniform(0.1, 1, m)
        return nsds.relay(lower, upper), lower, upper
    if which == 1:
        return nsds.complementarity(), np.zeros(m), np.full(m, np.inf)
    n_equations = int(rng.integers(0, m + 1))
    lower = np.concatenate([np.full(n_equations, -np.inf), np.zeros(m - n_equations)])
    return nsds.mixed_complementarity(n_equations), lower, np.full(m, np.inf)


def matrices(rng, n, m, density):
    """(A, C, B, D) with a positive definite W in each step: passive, with B of C and D of a positive definite part and a skew one."""
    A = line(n).toarray() * rng.uniform(0.5, 2)
    C = np.where(rng.uniform(size=(m, n)) < density / n, rng.normal(size=(m, n)), 0.0)
    C[np.arange(m), rng.permutation(n)[np.arange(m) % n]] += 1.0
    S = np.where(rng.uniform(size=(m, m)) < density / m, rng.normal(size=(m, m)), 0.0)
    return A, C, C.T.copy(), np.diag(rng.uniform(0.1, 1, m)) + S - S.T


def model(rng, n, m, convert, seed, density=1.5):
    A, C, B, D = matrices(rng, n, m, density)
    law, lower, upper = law_of(rng, m)
    e, b, x = rng.normal(size=m), rng.normal(size=n), rng.normal(size=n)
    choose = np.random.default_rng(seed)
    relation = nsds.first_order_linear_relation(C=convert(choose, C), B=convert(choose, B), D=convert(choose, D), e=e)
    plant = nsds.first_order_linear(A=convert(choose, A), b=b, x=x)
    return nsds.system(plant=plant, law=nsds.interaction(relation, law, on="plant")), (A, C, B, D, e, b, lower, upper)


def as_it_is(rng, matrix):
    return matrix


def require_the_law(rows, lower, upper, tol):
    y, lam = rows["law"]["y"][1:], rows["law"]["lambda"][1:]
    assert (lam >= lower).all()
    assert (lam <= upper).all()
    assert (np.where(lam < upper, -y, 0.0) <= tol).all()
    assert (np.where(lam > lower, y, 0.0) <= tol).all()


@pytest.mark.parametrize("scheme", [nsds.euler_moreau(), nsds.euler_moreau(theta=0.5, gamma=0.5, gamma_for_relation=True),
                                    nsds.zero_order_hold(), nsds.event_driven()], ids=["euler", "midpoint", "hold", "events"])  # fmt: skip
@examples(15)
@given(seeds)
def test_sparse_and_dense_statements_are_one_model(scheme, seed):
    rows = []
    for convert in (as_it_is, in_some_form):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 12))
        system, _ = model(rng, n, int(rng.integers(1, 8)), convert, seed)
        rows.append(nsds.simulate(system, t_end=0.05, h=0.01, scheme=scheme, on_failure="continue", progress=False))
    for part, field in (("plant", "x"), ("law", "y"), ("law", "lambda")):
        unit = 1.0 + abs(rows[0][part][field]).max()
        np.testing.assert_allclose(rows[1][part][field], rows[0][part][field], rtol=0, atol=1e-12 * unit)


@examples(15)
@given(seeds)
def test_steps_without_a_matrix_obey_equation_and_law(seed):
    """By the definition of the scheme (9.5): each state from the one before, and the law at each row; the same as with a matrix."""
    rng, h = np.random.default_rng(seed), 0.02
    n, m = int(rng.integers(61, 90)), int(rng.integers(61, 90))
    theta, gamma = rng.choice([1.0, 0.7]), rng.choice([1.0, 0.6])
    system, (A, C, B, D, e, b, lower, upper) = model(rng, n, m, in_some_form, seed, density=0.3)
    scheme = nsds.euler_moreau(theta=theta, gamma=gamma)
    rows = nsds.simulate(system, t_end=8 * h, h=h, scheme=scheme, progress=False)
    assert (rows["status"] == CONVERGED).all()
    x, y, lam = rows["plant"]["x"], rows["law"]["y"], rows["law"]["lambda"]
    r = lam @ B.T
    middle, force = theta * x[1:] + (1 - theta) * x[:-1], gamma * r[1:] + (1 - gamma) * r[:-1]
    scale = 1.0 + abs(x).max() + abs(lam).max()
    np.testing.assert_allclose(x[1:], x[:-1] + h * (middle @ A.T + b + force), rtol=0, atol=1e-11 * scale)
    np.testing.assert_allclose(y[1:], x[1:] @ C.T + lam[1:] @ D.T + e, rtol=0, atol=1e-11 * scale)
    require_the_law(rows, lower, upper, 1e-9 * scale)
    beside = nsds.simulate(system, t_end=8 * h, h=h, scheme=scheme, solver=solver("newton_min"), progress=False)
    np.testing.assert_allclose(x, beside["plant"]["x"], rtol=0, atol=1e-9 * scale)


def pulled(t, z, out):
    for i in range(out.size):
        out[i] = math.sin(40.0 * t + i)


@pytest.mark.parametrize("options", [{"gamma": 0.6, "gamma_for_relation": True}, {"theta": 0.5, "midpoint": True}, {"gamma": 0.7}],
                         ids=["relation", "midpoint", "input"])  # fmt: skip
def test_steps_without_a_matrix_are_those_with_one(options):
    """Two systems joined by the rows, one with a source by a function of time, the other with a mass, under all weights of the scheme."""
    n, m, rng = 90, 70, np.random.default_rng(0)
    C = np.zeros((m, 2 * n))
    C[np.arange(m), np.arange(m)], C[np.arange(m), n + rng.permutation(n)[:m]] = 1.0, -1.0
    relation = nsds.first_order_linear_relation(C=sp.csr_array(C), B=sp.csr_array(C.T), e=0.1 * rng.normal(size=m))
    one = nsds.first_order_linear(A=line(n), b=pulled, x=rng.normal(size=n))
    other = nsds.first_order_linear(A=2.0 * line(n), M=rng.uniform(1, 2, n), x=rng.normal(size=n))
    system = nsds.system(one=one, other=other, law=nsds.interaction(relation, nsds.relay(-0.3, 0.4), on=("one", "other")))
    runs = []
    for chosen in (None, solver("newton_min")):
        runs.append(nsds.simulate(system, t_end=0.2, h=0.01, scheme=nsds.euler_moreau(**options), solver=chosen, progress=False))
        assert (runs[-1]["status"] == CONVERGED).all()
    assert (abs(np.diff(runs[0]["law"]["lambda"] >= 0.4, axis=0)).sum(axis=1) > 0).any()
    for part, field in (("one", "x"), ("other", "x"), ("law", "y"), ("law", "lambda")):
        np.testing.assert_allclose(*(run[part][field] for run in runs), rtol=0, atol=1e-11)


def pile(n, law=None, **more):
    identity = sp.eye_array(n).tocsr()
    relation = nsds.first_order_linear_relation(C=identity, B=identity, **more)
    plant = nsds.first_order_linear(A=10 * line(n), x=np.linspace(-1, 1, n))
    return nsds.system(plant=plant, friction=nsds.interaction(relation, law or nsds.relay(-0.1, 0.1), on="plant"))


def test_a_run_in_two_parts_has_the_same_bits():
    """Factors that are kept from step to step change no bit."""
    whole = nsds.simulate(pile(200), t_end=0.02, h=1e-3, progress=False)
    rest = nsds.simulate(nsds.restart(pile(200), whole[10]), t_end=0.02, h=1e-3, progress=False)
    assert whole["n_iter"].max() > 1
    np.testing.assert_array_equal(rest["plant"]["x"], whole["plant"]["x"][10:])


def test_states_that_come_to_rest_at_zero_one_after_the_other():
    """Where a state sticks at 0 all terms of its row are rounding: no step may take that for a singular problem."""
    n = 1000
    identity = sp.eye_array(n).tocsr()
    plant = nsds.first_order_linear(A=10 * (line(n) + 0.2 * identity), x=np.linspace(-1, 1, n))
    relation = nsds.first_order_linear_relation(C=identity, B=identity)
    system = nsds.system(plant=plant, friction=nsds.interaction(relation, nsds.relay(-0.1, 0.1), on="plant"))
    rows = nsds.simulate(system, t_end=0.08, h=1e-3, progress=False)
    assert (rows["status"] == CONVERGED).all()
    assert (abs(rows["plant"]["x"][-1]) <= 1e-14).sum() >= 3


def test_ten_thousand_relays_on_one_system():
    """Dense matrices of them would have 0.8 GB each."""
    rows = nsds.simulate(pile(10_000), t_end=0.003, h=1e-3, progress=False)
    assert (rows["status"] == CONVERGED).all()
    assert (abs(rows["friction"]["lambda"]) <= 0.1).all()


def test_hysteresis_of_many_rows_is_that_of_one():
    """A negative D leaves several solutions, of which each row has the one that it was led to."""
    slopes, states = np.linspace(-0.9, -0.3, 80), []
    for chosen in (np.arange(80), np.array([0]), np.array([79])):
        n = chosen.size
        relation = nsds.first_order_linear_relation(C=sp.eye_array(n), B=0.3 * sp.eye_array(n), D=sp.diags_array(slopes[chosen]))
        plant = nsds.first_order_linear(A=sp.diags_array(np.zeros(n)), b=np.full(n, 2.0), x=np.full(n, -2.0))
        system = nsds.system(plant=plant, law=nsds.interaction(relation, nsds.relay(-1.0, 1.0), on="plant"))
        rows = nsds.simulate(system, t_end=2.0, h=0.02, progress=False)
        assert (rows["status"] == CONVERGED).all()
        states.append(rows["law"]["lambda"].reshape(-1, n))
    assert set(np.unique(states[0][1:])) == {-1.0, 1.0}
    np.testing.assert_array_equal(states[0][:, [0]], states[1])
    np.testing.assert_array_equal(states[0][:, [79]], states[2])


def test_a_sparse_operator_without_entries_is_none():
    n, rows = 5, []
    one, plant = sp.eye_array(n).tocsr(), nsds.first_order_linear(A=line(n), x=np.linspace(-1.0, 1.0, n))
    for more in ({}, {"D": sp.csr_array((n, n))}):
        relation = nsds.first_order_linear_relation(C=one, B=one, **more)
        system = nsds.system(plant=plant, law=nsds.interaction(relation, nsds.relay(-0.1, 0.1), on="plant"))
        rows.append(nsds.simulate(system, t_end=0.05, h=0.01, progress=False)["plant"]["x"])
    np.testing.assert_array_equal(*rows)


@pytest.mark.parametrize("law", [nsds.equality(), nsds.complementarity()], ids=["equality", "complementarity"])
def test_redundant_rows_leave_the_state_determined(law):
    """Each row stated twice: lambda of the two is not unique, their sum and the state are."""
    n, rng = 80, np.random.default_rng(0)
    once = sp.eye_array(n).tocsr()
    twice = sp.vstack([once, once])
    e, x = rng.normal(size=n), rng.normal(size=n)
    states = []
    for C, constant in ((once, e), (twice, np.tile(e, 2))):
        relation = nsds.first_order_linear_relation(C=C, B=C.T, e=constant)
        plant = nsds.first_order_linear(A=line(n), x=x)
        system = nsds.system(plant=plant, law=nsds.interaction(relation, law, on="plant"))
        rows = nsds.simulate(system, t_end=0.05, h=0.01, progress=False)
        assert (rows["status"] == CONVERGED).all()
        states.append(rows["plant"]["x"])
    np.testing.assert_allclose(states[1], states[0], rtol=0, atol=1e-9)


def test_rows_that_contradict_each_other_are_told():
    """x = 1 and x = 2 of each of many states: no step may claim to be solved."""
    n = 70
    C = sp.vstack([sp.eye_array(n), sp.eye_array(n)])
    relation = nsds.first_order_linear_relation(C=C, B=C.T, e=np.repeat([-1.0, -2.0], n))
    system = nsds.system(
        plant=nsds.first_order_linear(A=line(n), x=np.ones(n)), law=nsds.interaction(relation, nsds.equality(), on="plant")
    )
    rows = nsds.simulate(system, t_end=0.02, h=0.01, on_failure="continue", progress=False)
    assert (rows["status"][1:] != CONVERGED).all()


@pytest.mark.parametrize("scheme", [nsds.zero_order_hold(), nsds.event_driven(flow="radau")], ids=["hold", "events"])
def test_what_would_be_dense_is_refused_with_its_size(scheme):
    with pytest.raises(ValueError, match=r"would be dense, \d.* GB; .*euler_moreau"):
        nsds.simulate(pile(15_000), t_end=1e-3, h=1e-3, scheme=scheme, progress=False)


def test_a_matrix_of_all_multipliers_is_refused_with_its_size():
    with pytest.raises(ValueError, match=r"would be dense, 1\.8 GB; .*its own choice of a solver"):
        nsds.simulate(pile(15_000), t_end=1e-3, h=1e-3, solver=solver("newton_min"), progress=False)


@pytest.mark.parametrize(
    ("operators", "words"),
    [
        ({"C": sp.csr_array(([np.nan], ([1], [2])), shape=(3, 3))}, r"C must be finite, got nan at index \[1, 2\]"),
        ({"B": sp.eye_array(4)}, r"B must have shape \(3, 3\), got \(4, 4\)"),
        ({"D": sp.csr_array((3, 2))}, r"D must have shape \(3, 3\), got \(3, 2\)"),
        ({"C": 1j * sp.eye_array(3)}, "C must be an array of real numbers"),
        ({"C": sp.csr_array((0, 3)), "B": sp.csr_array((3, 0))}, "C must have at least one row"),
    ],
)
def test_bad_sparse_operators_are_named(operators, words):
    with pytest.raises((TypeError, ValueError), match=words):
        nsds.first_order_linear_relation(**{"C": sp.eye_array(3), "B": sp.eye_array(3)} | operators)


def test_members_must_have_one_pattern():
    members = np.stack([pile(3), pile(3)])
    members["friction"]["C"]["indices"][1] = [1, 0, 2]
    with pytest.raises(ValueError, match="interaction 'friction': a sparse C must have the same pattern in all members"):
        nsds.simulate(members, t_end=1e-3, h=1e-3, progress=False)


def test_members_of_an_ensemble_have_their_own_numbers():
    alone = [pile(70), pile(70)]
    alone[1]["plant"]["A"]["data"] *= 2
    alone[1]["friction"]["B"]["data"] *= 3
    together = nsds.simulate(np.stack(alone), t_end=5e-3, h=1e-3, progress=False)
    for m, system in enumerate(alone):
        rows = nsds.simulate(system, t_end=5e-3, h=1e-3, progress=False)
        np.testing.assert_array_equal(together["plant"]["x"][m], rows["plant"]["x"])


def test_a_function_of_many_states_is_refused_by_the_size_of_its_matrix():
    def field(t, x, z, out):
        mean = 0.0
        for i in range(x.size):
            mean += x[i] / x.size
        for i in range(x.size):
            out[i] = mean - x[i] ** 3

    record = nsds.system(plant=nsds.first_order(field, x=np.zeros(20000)))
    instead = r"state which states act on which rates as jac_sparsity of nsds\.first_order; nsds\.first_order_linear keeps"
    for scheme in (nsds.euler_moreau(), nsds.event_driven()):
        with pytest.raises(ValueError, match=rf"part 'plant': the iteration matrix would be dense, 9\.6 GB; {instead}"):
            nsds.simulate(record, t_end=2e-3, h=1e-3, scheme=scheme)


@examples(40)
@given(seeds, st.booleans())
def test_matrices_that_are_told_by_their_form_have_no_negative_diagonal(seed, spoil):
    """diag(C A^-1 B + D) of dominant A and inputs through C^T with weights; what breaks the form is not told by it."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 9)), int(rng.integers(1, 6))
    A, C, B, D = matrices(rng, n, m, 1.5)
    A = (abs(A) + abs(A.T)).sum(axis=1).max() * np.eye(n) + A
    C = rng.uniform(0.0, 2.0, (m, 1)) * C
    if spoil:
        C[0], D[0, 0] = -C[0] - 0.1, 0.0
    told = mixed._is_positive(*map(sp.csr_array, (A, B, C, D)))
    diagonal = np.diag(C @ np.linalg.solve(A, B) + D)
    assert told == (not spoil)
    assert not told or (diagonal >= 0.0).all()


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
def test_more_equations_than_states_are_told_where_rounding_hides_that(stored):
    """W is singular, but its computed inverse is finite: multipliers of 3e18 leave a relative residual of rounding, and y = 1."""
    C = [[-1.58, 0.0, 0.0, 0.85], [0.0, 1.01, 0.0, 0.11], [0.0, 0.0, 1.15, 0.0], [-0.39, 0.0, 0.0, 0.21], [0.91, 0.0, -1.24, 0.36]]
    A = [[-4.7, 0.7, 0.0, 0.0], [-1.7, -4.2, 0.0, 0.0], [0.0, 0.0, -4.3, 1.5], [0.0, 0.0, -0.3, -4.3]]
    relation = nsds.first_order_linear_relation(C=stored(C), B=stored(np.transpose(C)), e=np.ones(5))
    plant = nsds.first_order_linear(stored(A), x=np.zeros(4))
    system = nsds.system(plant=plant, law=nsds.interaction(relation, nsds.equality(), on="plant"))
    rows = nsds.simulate(system, t_end=0.02, h=5e-3, on_failure="continue", progress=False)
    assert has_failed(rows["status"][1:]).all()
