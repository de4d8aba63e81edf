"""Rates by functions of many states: sparse and dense iteration matrices give the same motion, and patterns that lie are refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.schemes import compressed
from nsds.schemes.first_order import newton_mixed
from nsds.schemes.run import preparation
from tests.strategies import examples

seeds = st.integers(0, 2**32 - 1)
N = 12
TIGHT = {"newton_tol": 1e-14}  # else differences of rounding in finite differences are left in the motion
SCHEMES = (
    nsds.euler_moreau(**TIGHT),
    nsds.euler_moreau(theta=0.6, gamma=0.7, **TIGHT),
    nsds.euler_moreau(theta=0.5, midpoint=True, **TIGHT),
)


def reacting(t, x, z, out):
    """Flows with the cube of differences between pairs of states, which z lists, and decay."""
    for i in range(x.size):
        out[i] = -10.0 * x[i] + np.sin(t)
    for k in range(z.size // 3):
        i, j = int(z[3 * k]), int(z[3 * k + 1])
        e = x[i] - x[j]
        flow = z[3 * k + 2] * (e + e * e * e)
        out[i] -= flow
        out[j] += flow


def pump(t, x, z, out):
    out[0] = -2.0 * x[3]


def drawn(seed, n, stated, count=None, **more):
    """(system, pattern): random flows between states, and a relay on two of them, of one element or of several."""
    random = np.random.default_rng(seed)
    i, j = (random.integers(0, n, n) for _ in range(2))
    j = np.where(i == j, (j + 1) % n, j)
    z = np.column_stack([i, j, random.uniform(1.0, 100.0, n)]).reshape(-1)
    pattern = sp.coo_array((np.ones(3 * n), (np.r_[i, j, :n], np.r_[j, i, :n])), shape=(n, n))
    M = (None, random.uniform(0.5, 2.0, n), sp.diags_array([np.full(n, 2.0), random.uniform(-0.5, 0.5, n - 1)], offsets=[0, 1]).tocsr())
    x = random.normal(size=n if count is None else (count, n))
    web = nsds.first_order(reacting, M=M[seed % 3], x=x, z=z, count=count, **more, **stated(pattern))
    C = np.eye(2, n) + 0.3 * np.eye(2, n, 1)
    relation = nsds.first_order_linear_relation(C=C, B=C.T)
    return nsds.system(web=web, relays=nsds.interaction(relation, nsds.relay(-1.0, 1.0), on="web")), pattern.tocsr()


def steps(system, scheme=None):
    preparation._kept.clear()
    return nsds.simulate(system, t_end=0.05, h=2e-3, scheme=scheme, progress=False)


def plain(pattern):
    return {}


def stated(pattern):
    return {"jac_sparsity": pattern}


@pytest.mark.parametrize("scheme", SCHEMES, ids=("implicit", "weighted", "midpoint"))
@pytest.mark.parametrize("count", [None, 2])
@given(seeds)
@examples(4)
def test_sparse_and_dense_statements_give_the_same_motion(scheme, count, seed):
    one, other = (steps(drawn(seed, N, form, count)[0], scheme) for form in (stated, plain))
    np.testing.assert_allclose(one["web"]["x"], other["web"]["x"], rtol=0, atol=1e-12 * abs(other["web"]["x"]).max())
    np.testing.assert_allclose(one["relays"]["lambda"], other["relays"]["lambda"], rtol=0, atol=1e-10)


@given(seeds)
@examples(3)
def test_controls_and_members_of_an_ensemble_have_matrices_of_their_own(seed):
    T = np.eye(N, 1, -5)

    def with_feedback(pattern):
        full = pattern.tolil()
        full[5, 3] = 1.0
        return {"jac_sparsity": full.tocsr()}

    runs = []
    for form in (with_feedback, plain):
        members = np.stack([drawn(seed, N, form, T=T, u=pump, n_u=1)[0] for _ in range(2)])
        members["web"]["x"][1] *= 0.5
        runs.append(steps(members))
    np.testing.assert_allclose(runs[0]["web"]["x"], runs[1]["web"]["x"], rtol=0, atol=1e-9 * abs(runs[1]["web"]["x"]).max())


def test_patterns_contain_what_controls_depend_on():
    system, pattern = drawn(3, N, stated, T=np.eye(N, 1, -5), u=pump, n_u=1)
    assert pattern[5, 3] == 0.0
    with pytest.raises(ValueError, match=r"part 'web': jac_sparsity lacks the entry \(5, 3\): the rate of state 5 depends on x\[3\]"):
        steps(system)


def test_patterns_that_lie_are_refused_with_the_entry():
    _, pattern = drawn(1, N, plain)
    i, j = next((i, j) for i, j in zip(*pattern.nonzero(), strict=True) if i != j)
    lie = pattern.tolil()
    lie[i, j] = 0.0
    system, _ = drawn(1, N, lambda _: {"jac_sparsity": lie.tocsr()})
    with pytest.raises(ValueError, match=rf"part 'web': jac_sparsity lacks the entry \({i}, {j}\)"):
        steps(system)


def test_patterns_go_without_a_function_of_the_matrix():
    with pytest.raises(ValueError, match="first_order: jac_sparsity goes without a function jac_f"):
        nsds.first_order(reacting, reacting, x=[0.0], z=[0.0], jac_sparsity=[[1.0]])
    with pytest.raises(ValueError, match=r"first_order: jac_sparsity must have shape \(2, 2\)"):
        nsds.first_order(reacting, x=[0.0, 0.0], z=[0.0], jac_sparsity=np.eye(3))


def diffusing(t, x, z, out):
    """Heat equation along a line with a cubic sink."""
    for i in range(x.size):
        left, right = x[i - 1] if i > 0 else 0.0, x[i + 1] if i < x.size - 1 else 0.0
        out[i] = 10.0 * (left - 2.0 * x[i] + right) - x[i] * x[i] * x[i]


def averaging(t, x, z, out):
    """Each state moves to the mean of all."""
    mean = 0.0
    for i in range(x.size):
        mean += x[i] / x.size
    for i in range(x.size):
        out[i] = mean - x[i]


def test_dense_matrices_of_many_states_are_refused_before_they_are_made():
    with pytest.raises(ValueError, match=r"the iteration matrix would be dense, 9\.6 GB; state .* as jac_sparsity"):
        steps(nsds.system(cloud=nsds.first_order(averaging, x=np.zeros(20000))))


@pytest.mark.parametrize("is_stated", [True, False])
def test_many_states_have_no_dense_matrix(is_stated):
    """With a pattern, which may be stated, each step obeys its equation."""
    n = 20000
    x, pattern = np.sin(np.linspace(0.0, 20.0, n)), sp.diags_array([np.ones(n)] * 3, offsets=[-1, 0, 1], shape=(n, n))
    line = nsds.first_order(diffusing, x=x, **(stated(pattern) if is_stated else {}))
    rows = nsds.simulate(nsds.system(line=line), t_end=0.05, h=0.01, progress=False)
    x, rates = rows["line"]["x"], np.empty((5, n))
    for k in range(5):
        diffusing(0.0, x[k + 1], None, rates[k])
    np.testing.assert_allclose(np.diff(x, axis=0) / 0.01, rates, rtol=0, atol=1e-8)


@pytest.mark.parametrize("count", [None, 2])
@given(seeds)
@examples(3)
def test_a_pattern_is_found_where_there_are_many_states(count, seed):
    n = compressed.MANY + 20
    one, other = (steps(drawn(seed, n, form, count)[0], SCHEMES[0]) for form in (plain, stated))
    np.testing.assert_allclose(one["web"]["x"], other["web"]["x"], rtol=0, atol=1e-12 * abs(other["web"]["x"]).max())


def spilling(t, x, z, out):
    """Basins in a row, each filled from a source and emptied into one that lies farther on, once it is full."""
    for i in range(x.size):
        out[i] = 1.0 - 0.1 * x[i]
    for i in range(x.size):
        spill = 50.0 * max(x[i] - z[0], 0.0)
        out[i] -= spill
        out[(i + 7) % x.size] += 0.5 * spill


def test_entries_that_appear_as_the_state_changes_are_found_at_other_states():
    """Near the state at the start no basin spills; the pattern that is found has those entries, as farther states show them."""
    n = compressed.MANY + 20
    system = nsds.system(basins=nsds.first_order(spilling, x=np.linspace(0.0, 0.4, n), z=[0.5]))
    run, _ = preparation.prepare_run("test", system, 2e-3, nsds.euler_moreau(), None, False)
    assert run.prepared.tables.groups["n_entries"][0] >= 2 * n
    rows = nsds.simulate(system, t_end=1.0, h=2e-3, progress=False)
    x, rates = rows["basins"]["x"], np.empty((500, n))
    for k in range(500):
        spilling(0.0, x[k + 1], np.array([0.5]), rates[k])
    np.testing.assert_allclose(np.diff(x, axis=0) / 2e-3, rates, rtol=0, atol=1e-9)
    assert (x[-1] > 0.5).all()


LAWS = {
    "relay": nsds.relay(-1.0, 1.0), "complementarity": nsds.complementarity(),
    "equality": nsds.equality(), "mixed": nsds.mixed_complementarity(7),
}  # fmt: skip


def many_rows(seed, law, n=80, form=sp.csr_array):
    """Random flows between states, and a row that acts on each, with neighbours; D positive definite, but without symmetry."""
    random = np.random.default_rng(seed)
    system, pattern = drawn(seed, n, stated)
    C = sp.eye_array(n) + sp.random_array((n, n), density=1.0 / n, rng=random) * random.uniform(-0.3, 0.3)
    S = sp.random_array((n, n), density=1.0 / n, rng=random)
    relation = nsds.first_order_linear_relation(C=form(C), B=form(C.T), D=form(0.05 * sp.eye_array(n) + S - S.T), e=random.normal(size=n))
    web = nsds.first_order(reacting, x=system["web"]["x"], z=system["web"]["z"], jac_sparsity=pattern)
    return nsds.system(web=web, law=nsds.interaction(relation, LAWS[law], on="web"))


@pytest.mark.parametrize("scheme", SCHEMES, ids=("implicit", "weighted", "midpoint"))
@pytest.mark.parametrize("law", LAWS)
@given(seeds)
@examples(2)
def test_steps_of_functions_with_and_without_a_matrix_of_the_rows_agree(scheme, law, seed):
    """Equations of states and multipliers, the matrix W of a sparse statement, and that of a dense one."""
    systems, runs = (many_rows(seed, law), many_rows(seed, law), many_rows(seed, law, form=lambda matrix: matrix.toarray())), []
    for system, is_mixed in zip(systems, (True, False, False), strict=True):
        with pytest.MonkeyPatch.context() as patch:
            if not is_mixed:
                patch.setattr(newton_mixed, "SMALLEST", 10**6)
            preparation._kept.clear()
            run, _ = preparation.prepare_run("test", system, 2e-3, scheme, None, False)
            assert run.prepared.tables.mixed.size == is_mixed
            runs.append(steps(system, scheme))
    for run in runs[1:]:
        for part, field in (("web", "x"), ("law", "y"), ("law", "lambda")):
            unit = 1.0 + abs(run[part][field]).max()
            np.testing.assert_allclose(runs[0][part][field], run[part][field], rtol=0, atol=1e-12 * unit)


def test_ten_thousand_rows_beside_a_function():
    """Each step obeys its equation and the law of the relays; W alone would have 0.8 GB."""
    n, h, identity = 10_000, 1e-3, sp.eye_array(10_000)
    relation = nsds.first_order_linear_relation(C=identity, B=identity)
    line = nsds.first_order(diffusing, x=np.sin(np.linspace(0.0, 20.0, n)))
    system = nsds.system(line=line, relays=nsds.interaction(relation, nsds.relay(-0.5, 0.5), on="line"))
    rows = nsds.simulate(system, t_end=0.01, h=h, progress=False)
    x, lam, rate = rows["line"]["x"], rows["relays"]["lambda"], np.empty(n)
    for k in range(10):
        diffusing(0.0, x[k + 1], None, rate)
        np.testing.assert_allclose((x[k + 1] - x[k]) / h, rate + lam[k + 1], rtol=0, atol=1e-8)
        assert (abs(lam[k + 1]) <= 0.5).all()
        assert (np.where(abs(lam[k + 1]) < 0.5, abs(x[k + 1]), np.maximum(np.sign(lam[k + 1]) * x[k + 1], 0.0)) <= 1e-10).all()


@pytest.mark.parametrize("scheme", [nsds.euler_moreau(), nsds.event_driven(flow="dopri5"), nsds.event_driven(flow="radau")],
                         ids=["steps", "explicit", "stiff"])  # fmt: skip
@given(seeds)
@examples(2)
def test_sparse_relations_beside_functions_are_dense_ones(scheme, seed):
    """Fewer rows, each formed in W: to the bit, as sums have the same terms in the same order."""
    one, other = (steps(many_rows(seed, "complementarity", 10, form), scheme) for form in (sp.csr_array, lambda matrix: matrix.toarray()))
    for part, field in (("web", "x"), ("law", "y"), ("law", "lambda")):
        np.testing.assert_array_equal(one[part][field], other[part][field])


def catching(t, x, z, out):
    """Decay, and a flow to another state from each one within a window beside the start."""
    for i in range(x.size):
        out[i] = -x[i]
    for i in range(x.size):
        if 0.05 < x[i] < 0.08:
            out[(7 * i + 3) % x.size] += x[i] - 0.05


def test_other_states_add_to_a_pattern_that_misses_an_entry():
    system, n_entries = nsds.system(chain=nsds.first_order(catching, x=np.zeros(compressed.MANY + 20))), []
    for directions in (0, 8):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compressed, "_DIRECTIONS", directions)
            preparation._kept.clear()
            run, _ = preparation.prepare_run("test", system, 2e-3, nsds.euler_moreau(), None, False)
            n_entries.append(run.prepared.tables.groups["n_entries"][0])
    assert n_entries[1] > n_entries[0] + 10


def test_rows_that_act_against_their_own_output_keep_their_matrix():
    """They may have several solutions, among which its form tells; each step is solved."""
    n, identity = 80, sp.eye_array(80)
    relation = nsds.first_order_linear_relation(C=identity, B=-identity)
    line = nsds.first_order(diffusing, x=np.sin(np.linspace(0.0, 20.0, n)))
    system = nsds.system(line=line, relays=nsds.interaction(relation, nsds.relay(-0.5, 0.5), on="line"))
    run, _ = preparation.prepare_run("test", system, 1e-3, nsds.euler_moreau(), None, False)
    assert run.prepared.tables.mixed.size == 0
    assert (nsds.simulate(system, t_end=5e-3, h=1e-3, progress=False)["status"] == 0).all()
