"""Generated contact problems are what their families promise: symmetry, definiteness, two forms that agree, bodies that obey Newton."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds import solvers
from nsds.solvers.problems.contact_families import frames, wrenches
from tests.strategies import examples

KINDS = {"fc2d": (2, None), "fc3d": (3, None), "rfc2d": (3, 0.1), "rfc3d": (5, 0.1)}
BODIES = ("stack", "pile", "chain")


def dense(A):
    return A.toarray() if hasattr(A, "toarray") else A


def drawn(family, kind, n=12, seed=3):
    d, mu_r = KINDS[kind]
    return solvers.generate_contacts(family, n, seed, d, 0.5, None if family == "flexible" else mu_r)


def cases():
    return [(family, kind) for family in solvers.CONTACT_FAMILIES for kind in KINDS if family != "flexible" or kind[0] == "f"]


@examples(60)
@given(st.sampled_from(cases()), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_matrices_are_what_the_family_promises(case, n, seed):
    family, kind = case
    p = drawn(family, kind, n, seed)
    W, size = dense(p.W), KINDS[kind][0] * n
    assert p.name == f"{family}-{n}-{seed}-{kind}"
    assert (p.n_contacts, p.d, p.tangents) == (n, KINDS[kind][0], int(kind[-2]) - 1)
    assert (W.shape, p.q.shape, p.mu.shape) == ((size, size), (size,), (n,))
    assert (p.mu_r is None) == (kind[0] == "f")
    largest, symmetric = abs(W).max(), family != "unsymmetric"
    assert (abs(W - W.T).max() <= 1e-13 * largest) == symmetric or n * size == 1
    eigenvalues = np.linalg.eigvalsh(0.5 * (W + W.T))
    assert eigenvalues[0] >= -1e-13 * size * largest
    assert eigenvalues[0] > 1e-4 * largest or family in BODIES


@examples(60)
@given(st.sampled_from(cases()), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_global_and_reduced_form_agree(case, n, seed):
    p = drawn(*case, n, seed)
    if p.M is None:
        assert case[0] in ("random", "unsymmetric")
        assert (p.H, p.f, p.w) == (None, None, None)
        return
    M, H = dense(p.M), dense(p.H)
    assert (abs(M - M.T) <= 1e-12 * abs(M).max()).all()
    assert np.linalg.eigvalsh(M)[0] > 0.0
    W = H.T @ np.linalg.solve(M, H)
    np.testing.assert_allclose(dense(p.W), W, atol=1e-12 * abs(W).max())
    np.testing.assert_allclose(p.q, H.T @ np.linalg.solve(M, p.f) + p.w, atol=1e-11)
    w = p.w.reshape(n, -1)
    assert (w[:, 0] >= 0.0).all()
    assert (w[:, 1:] == 0.0).all()


@examples(40)
@given(st.sampled_from([case for case in cases() if case[1] != "rfc2d"]), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_small_problems_are_solved_and_contacts_take_energy(case, n, seed):
    """``r^T (u + q) / 2`` is what the contacts add to the kinetic energy; with ``w = 0`` it is ``r^T u - r^T W r / 2 <= 0``."""
    p = drawn(*case, n, seed)
    s = getattr(solvers, f"solve_{case[1]}")(p.W, p.q, p.mu, *([] if p.mu_r is None else [p.mu_r]))
    assert s.status == 0
    if p.M is not None and not p.w.any():
        assert s.r @ (s.u + p.q) <= 1e-6 * (1.0 + abs(s.r) @ abs(p.q))


@pytest.mark.parametrize(("dimension", "size"), [(2, 3), (3, 6)])
def test_reactions_on_a_pair_balance(dimension, size):
    """Newton's third law: unit reactions at one point move neither the pair's momentum nor its moment of momentum."""
    rng = np.random.default_rng(1)
    normal = rng.normal(size=(5, dimension))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    frame = frames(normal)
    np.testing.assert_allclose(frame @ frame.transpose(0, 2, 1), np.tile(np.eye(dimension), (5, 1, 1)), atol=1e-14)
    np.testing.assert_array_equal(frame[:, 0], normal)
    centre, point = rng.normal(size=(2, 5, dimension)), rng.normal(size=(5, dimension))
    first, second = (wrenches(frame, point - x, True) for x in centre)
    assert first.shape == (5, 2 * dimension - 1, size)
    force = frame[..., :dimension]
    arm = (centre[0] - centre[1])[:, None]
    moment = np.cross(arm, force) if dimension == 3 else (arm[..., 0] * force[..., 1] - arm[..., 1] * force[..., 0])[..., None]
    np.testing.assert_allclose(first[:, :dimension, :dimension], second[:, :dimension, :dimension])
    np.testing.assert_allclose(first[:, :dimension, dimension:] - second[:, :dimension, dimension:], -moment, atol=1e-13)
    np.testing.assert_array_equal(first[:, dimension:, :dimension], 0.0)


def test_stacks_are_hyperstatic_and_stand():
    """Falling straight down, boxes come to rest with all contacts closed, whatever the order of their points."""
    p = solvers.generate_contacts("stack", 32, 5)
    assert np.linalg.matrix_rank(dense(p.W), 1e-9) <= p.M.shape[0] < 3 * 32
    fall = np.zeros((p.M.shape[0] // 6, 6))
    fall[:, 2] = -1.0
    s = solvers.solve_gfc3d(p.M, p.H, p.M @ fall.ravel(), p.w, p.mu)
    np.testing.assert_allclose(s.v, 0.0, atol=1e-6)
    assert s.r.reshape(-1, 3)[:, 0].sum() > p.M.diagonal()[2::6].sum()


def test_chains_are_block_tridiagonal_and_long():
    p = solvers.generate_contacts("chain", 1000)
    i, j = p.W.nonzero()
    assert abs(i // 3 - j // 3).max() == 1
    assert p.W.nnz == 9 * (3 * 1000 - 2)


def test_piles_touch_the_ground_and_each_other():
    p = solvers.generate_contacts("pile", 60, 2)
    touched = (abs(p.H) > 0).reshape(-1, 180).tocsc()
    bodies = [np.unique(touched[:, [3 * c]].nonzero()[0] // 6).size for c in range(60)]
    assert set(bodies) == {1, 2}


@pytest.mark.parametrize("case", cases())
def test_families_are_reproducible(case):
    a, b, other = drawn(*case), drawn(*case), drawn(*case, seed=4)
    assert (a.q == b.q).all()
    assert (dense(a.W) == dense(b.W)).all()
    assert (a.q != other.q).any()


def test_coefficients_may_differ():
    assert solvers.generate_contacts("chain", 2, mu=[0.1, 0.2], d=5, mu_r=0.3).mu.tolist() == [0.1, 0.2]


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("family must be one of 'stack', 'pile'", {"family": "wall", "n_contacts": 3}),
        ("n_contacts must be at least 1", {"family": "stack", "n_contacts": 0}),
        ("2 or 3 without mu_r, got 5", {"family": "stack", "n_contacts": 3, "d": 5}),
        ("3 or 5 with mu_r, got 2", {"family": "stack", "n_contacts": 3, "d": 2, "mu_r": 0.1}),
        ("nodes of the family 'flexible' do not turn", {"family": "flexible", "n_contacts": 3, "mu_r": 0.1}),
        ("mu must not be negative", {"family": "stack", "n_contacts": 3, "mu": -0.1}),
        ("mu_r must be a number or have shape", {"family": "stack", "n_contacts": 3, "mu_r": [0.1, 0.2]}),
    ],
)
def test_bad_arguments_are_named(words, arguments):
    with pytest.raises(ValueError, match=words):
        solvers.generate_contacts(**arguments)
