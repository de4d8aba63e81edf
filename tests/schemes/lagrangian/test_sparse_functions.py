"""Forces by functions of many coordinates: sparse and dense iteration matrices give the same motion, and patterns that lie are refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.maths import patterns
from nsds.schemes import compressed
from nsds.schemes.lagrangian import mixed
from nsds.schemes.run import preparation
from tests.strategies import examples

seeds = st.integers(0, 2**32 - 1)
TIGHT = {"newton_tol": 1e-14}  # else differences of rounding in finite differences are left in the motion
SCHEMES = tuple(
    scheme(**TIGHT) for scheme in (nsds.moreau_jean, nsds.schatzman_paoli, nsds.moreau_jean_direct_projection, nsds.generalised_alpha)
)
EXPLICIT = (nsds.event_driven(), nsds.d1_minus_linear())


def webbed(t, q, v, z, out):
    """Cubic springs and dampers between pairs of coordinates, which z lists, and soft springs to the ground."""
    for i in range(q.size):
        out[i] = 10.0 * q[i] + 0.1 * v[i]
    for k in range(z.size // 3):
        i, j = int(z[3 * k]), int(z[3 * k + 1])
        e = q[i] - q[j]
        f = z[3 * k + 2] * (e + e * e * e + 0.01 * (v[i] - v[j]))
        out[i] += f
        out[j] -= f


def drawn(seed, n, stated):
    """(system, pattern): random springs between neighbours, and a stop."""
    random = np.random.default_rng(seed)
    i, j = (random.integers(0, n, n) for _ in range(2))
    j = np.where(i == j, (j + 1) % n, j)
    z = np.column_stack([i, j, random.uniform(10.0, 1000.0, n)]).reshape(-1)
    pattern = sp.coo_array((np.ones(3 * n), (np.r_[i, j, :n], np.r_[j, i, :n])), shape=(n, n))
    web = nsds.lagrangian(
        random.uniform(0.5, 2.0, n), webbed, q=0.1 * random.normal(size=n), v=random.normal(size=n), z=z, **stated(pattern)
    )
    stop = nsds.lagrangian_linear_relation(H=sp.csr_array(([1.0], ([0], [0])), shape=(1, n)), b=[0.5])
    return nsds.system(web=web, stop=nsds.interaction(stop, nsds.newton_impact(0.5), on="web")), pattern.tocsr()


def steps(system, scheme):
    preparation._kept.clear()
    return nsds.simulate(system, t_end=0.05, h=2e-3, scheme=scheme, progress=False)


@pytest.mark.parametrize("scheme", SCHEMES + EXPLICIT, ids=lambda options: options["scheme"].item().decode())
@given(seeds)
@examples(4)
def test_sparse_and_dense_statements_give_the_same_motion(scheme, seed):
    sparse, _ = drawn(seed, 12, lambda pattern: {"jac_sparsity": pattern})
    dense, _ = drawn(seed, 12, lambda pattern: {})
    one, other = steps(sparse, scheme), steps(dense, scheme)
    for field in ("q", "v"):
        np.testing.assert_allclose(one["web"][field], other["web"][field], rtol=0, atol=1e-12 * abs(other["web"][field]).max())
    np.testing.assert_allclose(one["stop"]["lambda"], other["stop"]["lambda"], rtol=0, atol=1e-10)


@given(seeds)
@examples(3)
def test_a_pattern_is_found_where_there_are_many_coordinates(seed):
    n = compressed.MANY + 20
    plain, _ = drawn(seed, n, lambda pattern: {})
    stated, _ = drawn(seed, n, lambda pattern: {"jac_sparsity": pattern})
    one, other = steps(plain, SCHEMES[0]), steps(stated, SCHEMES[0])
    np.testing.assert_allclose(one["web"]["v"], other["web"]["v"], rtol=0, atol=1e-12 * abs(other["web"]["v"]).max())


@given(seeds, st.integers(1, 40))
@examples(20)
def test_found_patterns_are_those_of_the_function(seed, n):
    pattern = sp.random_array((n, n), density=min(1.0, 2.0 / n), rng=np.random.default_rng(seed), format="csr")

    def moved(columns):
        return pattern.astype(bool).astype(int) @ columns.astype(int) > 0

    found = patterns.found(moved, n, most=n + 1)
    np.testing.assert_array_equal(found.toarray() != 0, pattern.toarray() != 0)
    # groups have no row in common
    group = patterns.groups(pattern)
    for k in range(group.max() + 1):
        assert ((pattern.toarray()[:, group == k] != 0).sum(axis=1) <= 1).all()
    # and one entry less is missed
    if pattern.nnz:
        lie = pattern.copy()
        k = seed % pattern.nnz
        lie.data[k] = 0.0
        lie.eliminate_zeros()
        coo = pattern.tocoo()
        assert patterns.missing_entry(moved, lie) == (coo.row[k], coo.col[k])


def test_patterns_that_lie_are_refused_with_the_entry():
    _, pattern = drawn(1, 12, lambda pattern: {})
    i, j = next((i, j) for i, j in zip(*pattern.nonzero(), strict=True) if i != j)
    lie = pattern.tolil()
    lie[i, j] = 0.0
    system, _ = drawn(1, 12, lambda _: {"jac_sparsity": lie.tocsr()})
    with pytest.raises(ValueError, match=rf"part 'web': jac_sparsity lacks the entry \({i}, {j}\)"):
        steps(system, None)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (np.eye(3), r"jac_sparsity must have shape \(2, 2\)"),
        (sp.csr_array(np.diag([1.0, np.nan])), "jac_sparsity must be finite"),
        (np.zeros((2, 2)), "jac_sparsity must have an entry"),
    ],
)
def test_wrong_patterns_are_refused_by_name(pattern, message):
    with pytest.raises(ValueError, match=f"lagrangian: {message}"):
        nsds.lagrangian([1.0, 1.0], webbed, q=[0, 0], v=[0, 0], z=[0.0], jac_sparsity=pattern)


def test_duplicates_of_a_pattern_are_one_entry():
    pattern = sp.coo_array(([1.0, -1.0, 1.0], ([0, 0, 1], [1, 1, 1])), shape=(2, 2))
    part = nsds.lagrangian([1.0, 1.0], webbed, q=[0, 0], v=[0, 0], z=[0.0], jac_sparsity=pattern)["record"]
    np.testing.assert_array_equal(part["jac_sparsity"]["indices"], [1, 1])


def every_one(t, q, v, z, out):
    s = 0.0
    for i in range(q.size):
        s += q[i]
    for i in range(q.size):
        out[i] = s


def test_dense_matrices_of_many_coordinates_are_refused_before_they_are_made():
    n = 20000
    system = nsds.system(cloud=nsds.lagrangian(np.ones(n), every_one, q=np.zeros(n), v=np.zeros(n)))
    with pytest.raises(ValueError, match=r"part 'cloud': the iteration matrix would be dense, 9.6 GB; state .* as jac_sparsity"):
        steps(system, None)


def clearance(t, q, v, z, out):
    """Masses that touch only where they come near each other."""
    for i in range(q.size):
        out[i] = 10.0 * q[i] + 0.1 * v[i]
    for i in range(1, q.size):
        gap = q[i] - q[i - 1] + z[0]
        if gap < 0.0:
            out[i] += 1e5 * gap
            out[i - 1] -= 1e5 * gap


@pytest.mark.parametrize("gap", [0.02, 0.2])
def test_forces_that_rest_at_the_start_are_found(gap):
    n = compressed.MANY + 40
    v = 5 * np.random.default_rng(0).normal(size=n)
    system = nsds.system(row=nsds.lagrangian(np.ones(n), clearance, q=np.zeros(n), v=v, z=[gap]))
    rows = nsds.simulate(system, t_end=0.1, h=2e-3, progress=False)
    assert rows["n_iter"].max() <= 4  # as with all columns; without those of the contacts it is ten and more


def test_diagonals_of_a_pattern_are_filled_where_many_entries_are_known():
    pattern = np.zeros((80, 80))
    pattern[[3, 9, 20, 50], [2, 8, 19, 49]] = pattern[5, 30] = 1.0
    whole = patterns.with_whole_diagonals(sp.csr_array(pattern)).toarray() != 0
    expected = np.diag(np.ones(79), -1)
    expected[5, 30] = 1.0
    np.testing.assert_array_equal(whole, expected != 0)


@pytest.mark.parametrize("scheme", [SCHEMES[0], SCHEMES[1], nsds.moreau_jean(theta=1.0, **TIGHT)])
@pytest.mark.parametrize("seed", [0, 1])
def test_many_contacts_beside_forces_by_functions_need_no_delassus_matrix(scheme, seed, monkeypatch):
    random, n = np.random.default_rng(seed), 90
    H = sp.csr_array((np.tile([1.0, -0.5], 8), (np.repeat(range(8), 2), random.permutation(n)[:16])), shape=(8, n))
    web = drawn(seed, n, lambda pattern: {"jac_sparsity": pattern})[0]["web"]
    stated = sp.csr_array((np.ones(web["jac_sparsity"]["indices"].size), web["jac_sparsity"]["indices"], web["jac_sparsity"]["indptr"]))
    part = nsds.lagrangian(web["M"], webbed, q=abs(web["q"]) + 0.01, v=web["v"], z=web["z"], fext=np.full(n, -20.0), jac_sparsity=stated)

    def on(law, H, **more):
        return nsds.interaction(nsds.lagrangian_linear_relation(H=H, **more), law, on="web")

    parts = {"floor": on(nsds.newton_impact(0.4), sp.eye_array(n).tocsr()[:80]), "pairs": on(nsds.newton_impact(0.0), H, b=np.full(8, 0.1))}
    if scheme["scheme"] == b"moreau_jean":
        pads = sp.eye_array(n).tocsr()[80:83]
        parts |= {"pads": on(nsds.dry_friction(5.0), pads), "rubber": on(nsds.complementarity(), pads, D=1e-4 * sp.eye_array(3))}
    system = nsds.system(web=part, **parts)

    def steps():
        preparation._kept.clear()
        run, _ = preparation.prepare_run("test", system, 2e-3, scheme, None, False)
        return nsds.simulate(system, t_end=0.1, h=2e-3, scheme=scheme, progress=False), run.prepared.tables.mixed.size

    one, is_mixed = steps()
    monkeypatch.setattr(mixed, "FEW", 10**6)
    other, is_other = steps()
    assert (is_mixed, is_other) == (1, 0)
    assert (one["floor"]["lambda"] > 0).any()
    np.testing.assert_array_equal(one["status"], other["status"])
    np.testing.assert_allclose(one["web"]["v"], other["web"]["v"], rtol=0, atol=1e-11 * abs(other["web"]["v"]).max())
    for name in parts:
        np.testing.assert_allclose(one[name]["lambda"], other[name]["lambda"], rtol=0, atol=1e-10 * (1 + abs(other[name]["lambda"]).max()))
