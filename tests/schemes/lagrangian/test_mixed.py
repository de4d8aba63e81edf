"""Large linear systems with many constraints: the mixed problem with sparse factors against the Delassus matrix, and its own laws."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.schemes.lagrangian import linear, mixed, mixed_friction
from nsds.schemes.run.preparation import prepare_run
from nsds.status import CONVERGED, has_failed
from tests.strategies import examples

seeds = st.integers(0, 2**32 - 1)


def line(n):
    return sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()


def form_of(system, scheme=None):
    return prepare_run("test", system, 1e-2, scheme, None, False)[0].prepared.stepper


def drawn(seed, stored):
    """Chain of 90 masses with random springs and dampers over a floor, with relations between two masses, friction and drives.

    stored: makes what the record stores of sparse matrices.
    """
    random, n = np.random.default_rng(seed), 90
    scale = sp.diags_array(random.uniform(0.5, 2.0, n))
    part = nsds.lagrangian_linear(
        stored(scale), stored(random.uniform(10, 500) * line(n)), stored(0.5 * line(n)), q=random.uniform(0.0, 0.05, n),
        v=random.normal(size=n), fext=random.normal(-5.0, 3.0, n),
    )  # fmt: skip
    order = random.permutation(n)
    floor = sp.csr_array((random.uniform(0.5, 2.0, 60), (range(60), order[:60])), shape=(60, n))
    pairs = sp.csr_array((np.tile([1.0, -1.0], 8), (np.repeat(range(8), 2), order[60:76])), shape=(8, n))
    across = sp.csr_array((np.tile([1.0, -0.5], 4), (np.repeat(range(4), 2), order[[0, 76, 1, 77, 2, 78, 3, 79]])), shape=(4, n))
    pads = sp.csr_array((np.ones(6), (range(6), order[80:86])), shape=(6, n))

    def on(law, H, **more):
        return nsds.interaction(nsds.lagrangian_linear_relation(H=stored(H), **more), law, on="chain")

    return nsds.system(
        chain=part,
        floor=on(nsds.newton_impact(random.uniform(0.0, 0.9)), floor),
        stops=on(nsds.newton_impact(0.3), pairs, b=np.full(8, 0.1)),
        across=on(nsds.newton_impact(0.0), across, b=np.full(4, 0.05)),
        pads=on(nsds.dry_friction(2.0), pads),
        rubber=on(nsds.complementarity(), pads[:2], b=np.full(2, 0.02), D=stored(sp.csr_array([[1e-4, 2e-5], [0.0, 1e-4]]))),
        drive=nsds.interaction(nsds.prescribed_velocity(order[88:], [0.1, -0.2]), nsds.equality(), on="chain"),
    )


@pytest.mark.parametrize("theta", [0.5, 1.0])
@given(seeds)
@examples(5)
def test_sparse_and_dense_chains_move_alike(theta, seed):
    sparse, dense, scheme = drawn(seed, lambda A: A), drawn(seed, lambda A: A.toarray()), nsds.moreau_jean(theta=theta)
    assert form_of(sparse, scheme) is mixed
    assert form_of(dense, scheme) is linear
    one, other = (nsds.simulate(each, t_end=0.3, h=5e-3, scheme=scheme, progress=False) for each in (sparse, dense))
    assert (one["status"] == CONVERGED).all()
    for field in ("q", "v"):
        np.testing.assert_allclose(one["chain"][field], other["chain"][field], rtol=0, atol=1e-12 * (1 + abs(other["chain"][field]).max()))
    for part in ("floor", "stops", "across", "pads", "drive"):
        np.testing.assert_allclose(one[part]["lambda"], other[part]["lambda"], rtol=0, atol=1e-11)


def test_a_membrane_rests_on_its_obstacle_as_the_active_set_says():
    """In the end ``K q - f = lambda / h``, with both and the gap complementary."""
    k = 12
    n, h = k * k, 0.02
    K = (sp.kron(line(k), sp.eye_array(k)) + sp.kron(sp.eye_array(k), line(k))).tocsr()
    f = np.full(n, -0.02)
    sheet = nsds.lagrangian_linear(sp.eye_array(n), K, 2.0 * sp.eye_array(n), fext=f, q=np.full(n, 0.01), v=np.zeros(n))
    floor = nsds.interaction(nsds.lagrangian_linear_relation(H=sp.eye_array(n), b=np.full(n, 0.1)), nsds.newton_impact(0.0), on="sheet")
    system = nsds.system(sheet=sheet, floor=floor)
    assert form_of(system) is mixed
    rows = nsds.simulate(system, t_end=60.0, h=h, save_every=3000, progress=False, scheme=nsds.moreau_jean(theta=1.0))
    q, lam = rows["sheet"]["q"][-1], rows["floor"]["lambda"][-1]
    np.testing.assert_allclose(K @ q - f, lam / h, atol=1e-9)
    assert 0 < (lam > 0).sum() < n
    # laws of velocities hold gaps as they were closed, to the way of a step
    assert (q >= -0.1 - h * 0.2).all()
    assert (q[lam > 0] <= -0.1 + 1e-9).all()


def test_exchanges_that_cycle_end_by_single_ones():
    """Newton-min cycles on [1 0 2; 2 1 0; 0 2 1], q = -1 (Ben Gharbia, Gilbert, Mathematical Programming 134, 2012)."""
    copies, h = 25, 0.5
    n = 3 * copies
    W = np.array([[1.0, 0.0, 2.0], [2.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
    C = sp.csr_array((sp.block_diag([np.linalg.inv(W)] * copies) - sp.eye_array(n)) / h)
    v = -np.ones(n)
    # M_hat = W^-1, and v_free = v: forces balance the dampers
    plate = nsds.lagrangian_linear(sp.eye_array(n), C=C, fext=C @ v, q=np.zeros(n), v=v)
    stops = nsds.interaction(nsds.lagrangian_linear_relation(H=sp.eye_array(n)), nsds.newton_impact(0.0), on="plate")
    system = nsds.system(plate=plate, stops=stops)
    assert form_of(system, nsds.moreau_jean(theta=1.0)) is mixed
    rows = nsds.simulate(system, t_end=h, h=h, scheme=nsds.moreau_jean(theta=1.0), progress=False)
    lam = rows["stops"]["lambda"][-1]
    np.testing.assert_allclose(np.minimum(lam, np.kron(np.eye(copies), W) @ lam - 1.0), 0.0, atol=1e-10)
    assert rows["status"][-1] == CONVERGED


def test_equations_that_contradict_each_other_end_the_step():
    """Two rows that prescribe different velocities of one coordinate beside many contacts: dependent by pattern, left to other methods."""
    n = 80
    chain = nsds.lagrangian_linear(sp.eye_array(n), 10 * line(n), q=np.zeros(n), v=np.zeros(n))
    floor = nsds.interaction(nsds.lagrangian_linear_relation(H=sp.eye_array(n)), nsds.newton_impact(0.0), on="chain")
    drives = {f"drive{k}": nsds.interaction(nsds.prescribed_velocity([3], float(k)), nsds.equality(), on="chain") for k in (1, 2)}
    system = nsds.system(chain=chain, floor=floor, **drives)
    assert form_of(system) is linear
    rows = nsds.simulate(system, t_end=0.02, h=1e-2, on_failure="continue", progress=False)
    assert has_failed(rows["status"]).any() or (rows["status"] != CONVERGED).any()


def test_memory_and_time_of_preparation_grow_with_the_entries():
    """A contact at each of 40 000 nodes of a plane: the Delassus matrix would have 1.6e9 entries."""
    k = 200
    n = k * k
    K = (sp.kron(line(k), sp.eye_array(k)) + sp.kron(sp.eye_array(k), line(k))).tocsr()
    sheet = nsds.lagrangian_linear(sp.eye_array(n), K, q=np.full(n, 0.01), v=-np.ones(n))
    floor = nsds.interaction(nsds.lagrangian_linear_relation(H=sp.eye_array(n)), nsds.newton_impact(0.0), on="sheet")
    prepared = prepare_run("test", nsds.system(sheet=sheet, floor=floor), 1e-2, None, None, False)[0].prepared
    assert prepared.stepper is mixed
    assert prepared.work.nbytes + prepared.iwork.nbytes < 2e8


def test_contacts_that_are_stated_twice_push_once():
    n, random = 100, np.random.default_rng(0)
    H = sp.csr_array((np.tile([1.0, 0.7], 40), (np.repeat(range(40), 2), random.permutation(n)[:80])), shape=(40, n))
    v = random.normal(size=n)

    def chain(H):
        part = nsds.lagrangian_linear(sp.eye_array(n), 50 * line(n), 0.5 * line(n), q=np.full(n, 0.01), v=v, fext=np.full(n, -5.0))
        return nsds.system(part=part, floor=nsds.interaction(nsds.lagrangian_linear_relation(H=H), nsds.newton_impact(0.5), on="part"))

    twice, once = chain(sp.vstack([H, 1.3 * H])), chain(H)
    assert form_of(twice) is mixed
    one, other = (nsds.simulate(each, t_end=0.3, h=5e-3, progress=False) for each in (twice, once))
    assert (one["status"] == CONVERGED).all()
    np.testing.assert_allclose(one["part"]["v"], other["part"]["v"], atol=1e-12)


def rough(seed, d, stored):
    """Chain of nodes in the plane or in space over a floor with friction, with normals of its own at each; one contact without friction,
    one row that moves as it is told, and one with dry friction of a given size.
    """
    random, k = np.random.default_rng(seed), 24
    n = d * k
    frames = [np.linalg.qr(np.eye(d) + 0.1 * random.normal(size=(d, d)))[0] for _ in range(k)]
    H = sp.block_diag(frames).tocsr()
    K = sp.kron(300 * line(k), sp.eye_array(d))
    q, v, f = np.zeros((k, d)), random.normal(size=(k, d)), np.zeros((k, d))
    q[:, 0], f[:, 0] = random.uniform(0, 0.02, k), -9.81
    q, f = H.T @ q.reshape(-1), H.T @ f.reshape(-1)
    chain = nsds.lagrangian_linear(stored(sp.eye_array(n)), stored(K), stored(0.1 * K), q=q, v=v.reshape(-1), fext=f)

    def on(law, rows):
        return nsds.interaction(nsds.lagrangian_linear_relation(H=stored(rows)), law, on="chain")

    law = nsds.newton_impact_friction(random.uniform(0.0, 0.6), random.uniform(0.1, 0.8), dimension=d)
    return nsds.system(
        chain=chain, ground=on(law, H[: n - 3 * d]), smooth=on(nsds.newton_impact(0.4), H[n - d : n - d + 1]),
        drive=nsds.interaction(nsds.prescribed_velocity([n - 2 * d], 0.1), nsds.equality(), on="chain"),
        pad=on(nsds.dry_friction(1.0), H[n - 3 * d : n - 3 * d + 1]),
    )  # fmt: skip


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_friction_in_sparse_and_dense_statements_is_the_same(d, seed, monkeypatch):
    monkeypatch.setattr(mixed, "MANY_PAIRS", 0)
    monkeypatch.setattr(mixed, "FEW", 30)
    sparse, dense, solver = rough(seed, d, lambda A: A.tocsr()), rough(seed, d, lambda A: A.toarray()), nsds.solvers.solver(tol=1e-13)
    assert form_of(sparse) is mixed_friction
    one, other = (nsds.simulate(each, t_end=0.1, h=2e-3, solver=solver, progress=False) for each in (sparse, dense))
    assert (one["status"] == CONVERGED).all()
    np.testing.assert_allclose(one["chain"]["v"], other["chain"]["v"], rtol=0, atol=1e-11)
    for part in ("ground", "smooth", "drive", "pad"):
        np.testing.assert_allclose(one[part]["lambda"], other[part]["lambda"], rtol=0, atol=1e-11)
    # Coulomb's cone
    r = one["ground"]["lambda"].reshape(len(one), -1, d)
    assert (np.linalg.norm(r[..., 1:], axis=-1) <= sparse["ground"]["mu"] * r[..., 0] * (1 + 1e-14)).all()
    assert (r[..., 0] > 0).any()


def test_a_chain_between_floor_and_ceiling_touches_both():
    n, v = 100, 3 * np.random.default_rng(0).normal(size=100)

    def chain(stored):
        part = nsds.lagrangian_linear(stored(sp.eye_array(n)), stored(200 * line(n)), stored(0.1 * line(n)), q=np.zeros(n), v=v)
        H = sp.vstack([sp.eye_array(n), -sp.eye_array(n)])
        walls = nsds.interaction(nsds.lagrangian_linear_relation(stored(H), np.full(2 * n, 0.05)), nsds.newton_impact(0.7), on="part")
        return nsds.system(part=part, walls=walls)

    sparse, dense = chain(lambda A: A), chain(lambda A: A.toarray())
    assert form_of(sparse) is mixed
    one, other = (nsds.simulate(each, t_end=0.3, h=5e-3, progress=False) for each in (sparse, dense))
    assert (one["status"] == CONVERGED).all()
    assert (one["walls"]["lambda"][:, :n] > 0).any()
    assert (one["walls"]["lambda"][:, n:] > 0).any()
    np.testing.assert_allclose(one["part"]["v"], other["part"]["v"], rtol=0, atol=1e-11)


def test_compliance_in_sparse_form_is_the_same_under_all_schemes():
    def bumper(D):
        relation = nsds.lagrangian_linear_relation(H=np.eye(2), b=[0.0, 0.01], D=D)
        masses = nsds.lagrangian_linear([1.0, 2.0], np.diag([3.0, 4.0]), q=[0.1, 0.2], v=[-1.0, -0.5])
        return nsds.system(masses=masses, bumper=nsds.interaction(relation, nsds.complementarity(), on="masses"))

    dense = np.array([[1e-3, 2e-4], [2e-4, 1e-3]])
    twice = sp.coo_array((np.r_[dense.reshape(-1) / 2, dense.reshape(-1) / 2], (np.tile([0, 0, 1, 1], 2), np.tile([0, 1, 0, 1], 2))))
    for scheme in (nsds.moreau_jean(), nsds.event_driven(), nsds.moreau_jean_combined_projection()):
        one, other = (nsds.simulate(bumper(D), t_end=0.3, h=1e-3, scheme=scheme, progress=False) for D in (twice, dense))
        np.testing.assert_array_equal(one["masses"]["q"], other["masses"]["q"])
    with pytest.raises(ValueError, match=r"lagrangian_linear_relation: D must have shape \(2, 2\), got \(3, 3\)"):
        bumper(sp.eye_array(3))
    with pytest.raises(ValueError, match=r"D must be finite, got nan at index \[1, 1\]"):
        bumper(sp.csr_array(np.diag([1.0, np.nan])))


def test_what_would_be_dense_is_refused_with_its_size():
    n = 12000
    chain = nsds.lagrangian_linear(sp.eye_array(n), line(n), q=np.zeros(n), v=np.zeros(n))
    floor = nsds.interaction(nsds.lagrangian_linear_relation(H=sp.eye_array(n)), nsds.newton_impact(0.0), on="chain")
    system = nsds.system(chain=chain, floor=floor)
    with pytest.raises(ValueError, match=r"one-step problem of 12000 rows, .* would be dense, 4.61 GB; .* scipy.sparse do without it"):
        nsds.simulate(system, t_end=0.1, h=0.1, scheme=nsds.schatzman_paoli())
    drive = nsds.interaction(nsds.prescribed_velocity(np.arange(n)), nsds.equality(), on="chain")
    with pytest.raises(ValueError, match=r"interaction 'drive': H would be dense, 1.15 GB; .* an H of scipy.sparse"):
        nsds.simulate(nsds.system(chain=chain, drive=drive), t_end=0.1, h=0.1)


def test_descriptions_tell_the_size_of_sparse_matrices():
    text = str(nsds.describe(drawn(0, lambda A: A)))
    assert "sparse, 90 rows, 268 entries" in text
    assert "sparse, 60 rows, 60 entries" in text
