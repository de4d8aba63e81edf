"""One contact: every local method on many random blocks, degenerate ones too, against the law and against plain NumPy twins."""

import numpy as np
import pytest

from nsds._jit import kernel
from nsds.solvers.contact import local, quartic
from nsds.solvers.contact.local import LOCALS
from nsds.solvers.contact.signature import Cone
from tests import reference_contact as twins
from tests.strategies import many

COUNT = many(100_000)
STATES = {quartic.OPEN: "open", quartic.STICK: "stick", quartic.SLIDE: "slide"}


# ---------------------------------------------------------------------------------------------------------------------- problems


def draw(d, n, seed, unsymmetric=False, condition=2.0, disk=None):
    """n blocks ``(mu (n, 2), W (n, d, d), q (n, d))`` with positive definite symmetric part, of which many have something special."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(n, d, d)))[0]
    W = (Q * 10.0 ** rng.uniform(-condition / 2, condition / 2, size=(n, 1, d))) @ Q.swapaxes(1, 2)
    W = (W + W.swapaxes(1, 2)) / 2
    q, mu = rng.normal(size=(n, d)), rng.uniform(0.0, 1.2, size=(n, 2))
    q[:, 0] -= 0.5
    kind = rng.integers(0, 12, size=n)
    mu[kind == 1] = 0.0
    W[kind == 2] = np.eye(d) * rng.uniform(0.1, 10.0, size=((kind == 2).sum(), 1, 1))
    W[kind == 3] *= np.eye(d)
    q[kind == 4, 1:] = 0.0
    q[kind == 5, 1] = 0.0
    q[kind == 6, -1] = 0.0
    q[kind == 7, 0] = 0.0
    edge = kind == 8  # r_N on the edge between sticking and sliding
    r = -np.linalg.solve(W[edge], q[edge][:, :, None])[:, :, 0]
    mu[edge, 0] = np.linalg.norm(r[:, 1:3], axis=1) / abs(r[:, 0])
    one = W[:, 0, 0] / (np.linalg.norm(W[:, 0, 1:3], axis=1) + 1e-300)  # mu where mu ||W_NT|| / W_NN is 1
    near, above = kind == 9, (kind == 10) & (one < 1e6)
    mu[near, 0] = (one * (1 + 10.0 ** rng.uniform(-12, 0, size=n) * rng.choice([-1, 1], size=n)))[near]
    mu[above, 0] = (one * rng.uniform(1.0, 4.0, size=n))[above]
    W[kind == 11, 0, 1:] = W[kind == 11, 1:, 0] = 0.0
    if unsymmetric:
        skew = rng.normal(size=(n, d, d))
        smallest = np.linalg.eigvalsh(W)[:, 0]
        W += 0.3 * smallest[:, None, None] * (skew - skew.swapaxes(1, 2))
    scale = 10.0 ** rng.uniform(-3, 3, size=(2, n))
    return mu, W * scale[0, :, None, None], q * scale[1, :, None], kind


@kernel
def solve_all(how, d, disk, mu, W, q, r, scratch):
    """Each block by `local.solve_contact`, from the guess in r."""
    for c in range(mu.size // 2):
        cone = Cone(d, disk, mu[2 * c], mu[2 * c + 1])
        local.solve_contact(how, cone, W, c * d * d, q[c * d : (c + 1) * d], r[c * d : (c + 1) * d], scratch)


@kernel
def quartic_all(mu, W, q, r, roots, state):
    """Each block by `quartic.solve_quartic`."""
    for c in range(state.size):
        state[c] = quartic.solve_quartic(mu[2 * c], W, 9 * c, q[3 * c : 3 * c + 3], r[3 * c : 3 * c + 3], roots)


@kernel
def enumerate_all(mu, W, q, r, state):
    """Each block by `local.enumerate_plane`."""
    for c in range(state.size):
        state[c] = local.enumerate_plane(mu[2 * c], W, 4 * c, q[2 * c : 2 * c + 2], r[2 * c : 2 * c + 2])


def solve(how, disk, mu, W, q, r0=None):
    r = np.zeros(q.shape) if r0 is None else r0.copy()
    solve_all(LOCALS.index(how), q.shape[1], disk, mu.ravel(), W.ravel(), q.ravel(), r.ravel(), np.zeros(local.SCRATCH))
    return r


# ---------------------------------------------------------------------------------------------------------------------- the law, vectorised


def errors(disk, mu, W, q, r):
    """``||(r - P_K(r - rho uhat)) / rho||``, relative to the terms that uhat is a sum of: ``(1 + mu) (||q|| + ||W|| ||r||)``."""
    u = np.einsum("cab,cb->ca", W, r) + q
    rho = 1.0 / np.einsum("caa->c", W) * q.shape[1]
    T, R = slice(1, 1 + disk), slice(1 + disk, q.shape[1])
    x = r - rho[:, None] * u
    x[:, 0] -= rho * (mu[:, 0] * np.linalg.norm(u[:, T], axis=1) + mu[:, 1] * np.linalg.norm(u[:, R], axis=1))
    size_t, size_r = np.linalg.norm(x[:, T], axis=1), np.linalg.norm(x[:, R], axis=1)
    best, t = np.full(len(q), np.inf), np.zeros(len(q))
    for i in (0, 1):
        for j in (0, 1):
            s = np.maximum((x[:, 0] + i * mu[:, 0] * size_t + j * mu[:, 1] * size_r) / (1 + i * mu[:, 0] ** 2 + j * mu[:, 1] ** 2), 0)
            d2 = (s - x[:, 0]) ** 2 + np.maximum(size_t - mu[:, 0] * s, 0) ** 2 + np.maximum(size_r - mu[:, 1] * s, 0) ** 2
            t, best = np.where(d2 < best, s, t), np.minimum(best, d2)
    P = x.copy()
    P[:, 0] = t
    with np.errstate(invalid="ignore", divide="ignore"):
        P[:, T] *= np.where(size_t > mu[:, 0] * t, mu[:, 0] * t / size_t, 1.0)[:, None]
        P[:, R] *= np.where(size_r > mu[:, 1] * t, mu[:, 1] * t / size_r, 1.0)[:, None]
    scale = (1 + mu.sum(1)) * (np.linalg.norm(q, axis=1) + np.linalg.norm(W, axis=(1, 2)) * np.linalg.norm(r, axis=1))
    return np.linalg.norm(r - P, axis=1) / rho / scale


# ---------------------------------------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("unsymmetric", [False, True])
@pytest.mark.parametrize("condition", [2.0, 6.0])
@pytest.mark.parametrize("how", [how for how in LOCALS if how != "projection"])
@pytest.mark.parametrize("d", [2, 3])
def test_the_law_holds_on_every_block_with_friction(d, how, condition, unsymmetric):
    """Up to rounding, that a block's condition amplifies where r is."""
    mu, W, q, _ = draw(d, COUNT, 1, unsymmetric, condition)
    r = solve(how, d - 1, mu * [1, 0], W, q)
    assert (errors(d - 1, mu * [1, 0], W, q, r) <= 1e-15 * 10 ** (condition + 1)).all()
    assert (r[q[:, 0] >= 0] == 0.0).all()


@pytest.mark.parametrize("unsymmetric", [False, True])
@pytest.mark.parametrize("how", [how for how in LOCALS if how != "projection"])
@pytest.mark.parametrize(("d", "disk"), [(3, 1), (5, 2)])
def test_the_law_holds_on_nearly_every_block_with_rolling(d, disk, how, unsymmetric):
    """Newton's method has no proof: of 10^4 blocks, of which a third are degenerate, one may fail."""
    mu, W, q, _ = draw(d, COUNT, 1, unsymmetric)
    assert (errors(disk, mu, W, q, solve(how, disk, mu, W, q)) > 1e-10).sum() <= COUNT / 10_000


@pytest.mark.parametrize(("d", "disk"), [(2, 1), (3, 2), (3, 1), (5, 2)])
def test_projections_end_at_solutions(d, disk):
    """They contract where the blocks are nearly diagonal and mu is not large; elsewhere 200 may be too few."""
    mu, W, q, _ = draw(d, 10_000, 2, condition=0.3)
    mu = np.minimum(mu, 0.5) * [1, d - 1 > disk]
    assert (errors(disk, mu, W, q, solve("projection", disk, mu, W, q)) <= 1e-10).all()


@pytest.mark.parametrize("d", [2, 3])
def test_the_exact_methods_always_know(d):
    """NONE is for blocks that are not positive definite."""
    mu, W, q, _ = draw(d, COUNT, 3, condition=6.0)
    r, state = np.zeros(q.shape), np.zeros(COUNT, np.int64)
    if d == 2:
        enumerate_all(mu.ravel(), W.ravel(), q.ravel(), r.ravel(), state)
    else:
        quartic_all(mu.ravel(), W.ravel(), q.ravel(), r.ravel(), np.zeros(4), state)
    assert (state != quartic.NONE).all()
    np.testing.assert_array_equal(state == quartic.OPEN, q[:, 0] >= 0)
    size_t = np.linalg.norm(r[:, 1:], axis=1)
    cone = mu[:, 0] * r[:, 0]
    assert (size_t[state == quartic.STICK] <= cone[state == quartic.STICK] * (1 + 1e-9)).all()
    np.testing.assert_allclose(size_t[state == quartic.SLIDE], cone[state == quartic.SLIDE], rtol=1e-14)


@pytest.mark.parametrize("disk", [2])
def test_the_guess_does_not_change_the_velocity_where_it_is_unique(disk):
    """Where the natural map is strongly monotone (small mu), from anywhere."""
    mu, W, q, _ = draw(3, 20_000, 4, condition=1.0)
    smallest, largest = np.linalg.eigvalsh(W)[:, [0, -1]].T
    mu[:, 0] = np.minimum(mu[:, 0], 0.5 * smallest / largest)
    guess = np.random.default_rng(0).normal(size=q.shape) * (np.linalg.norm(q, axis=1) / largest)[:, None]
    cold = solve("exact", disk, mu, W, q)
    for how in ("auto", "alart_curnier", "jean_moreau"):
        warm = solve(how, disk, mu, W, q, guess)
        assert (np.linalg.norm(warm - cold, axis=1) <= 1e-9 * (1 + 1e-300 + np.linalg.norm(q, axis=1) / smallest)).all()


def test_sliding_goes_on_from_where_it_was():
    """From its own solution, auto finds it again, without the quartic."""
    mu, W, q, _ = draw(3, 20_000, 5)
    r = solve("exact", 2, mu, W, q)
    again = solve("auto", 2, mu, W, q, r)
    size = np.linalg.norm(q, axis=1) * np.linalg.norm(np.linalg.inv(W), axis=(1, 2))
    assert (errors(2, mu * [1, 0], W, q, again) <= 1e-12).all()
    assert np.median(np.linalg.norm(again - r, axis=1) / size) <= 1e-14


def test_quartic_agrees_with_the_roots_of_its_polynomial():
    mu, W, q, _ = draw(3, 1000, 6)
    r, state = np.zeros(q.shape), np.zeros(len(q), np.int64)
    quartic_all(mu.ravel(), W.ravel(), q.ravel(), r.ravel(), np.zeros(4), state)
    for c in range(len(q)):
        solutions = twins.solve_in_space(mu[c, 0], W[c], q[c])
        assert solutions
        size = max(np.linalg.norm(x) for _, x in solutions)
        assert min(np.linalg.norm(r[c] - x) for _, x in solutions) <= 1e-6 * size  # a double root is known to half the digits
        if len(solutions) == 1:
            assert STATES[state[c]] == solutions[0][0]


def test_enumeration_agrees_with_its_twin():
    mu, W, q, _ = draw(2, 2000, 7)
    r, state = np.zeros(q.shape), np.zeros(len(q), np.int64)
    enumerate_all(mu.ravel(), W.ravel(), q.ravel(), r.ravel(), state)
    for c in range(len(q)):
        solutions = twins.solve_in_plane(mu[c, 0], W[c], q[c])
        assert min(np.linalg.norm(r[c] - x) for _, x in solutions) <= 1e-9 * max(np.linalg.norm(x) for _, x in solutions)


@pytest.mark.parametrize("how", LOCALS)
def test_equations_are_solved(how):
    _, W, q, _ = draw(5, 1000, 8, unsymmetric=True)
    r = solve(how, twins.EQUATION, np.zeros((1000, 2)), W, q)
    expected = np.linalg.solve(W, -q[:, :, None])[:, :, 0]
    np.testing.assert_allclose(r, expected, rtol=0, atol=1e-12 * abs(expected).max())


@pytest.mark.parametrize("how", LOCALS)
@pytest.mark.parametrize(("d", "disk"), [(2, 1), (3, 2), (3, 1), (5, 2)])
def test_blocks_without_a_solution_leave_finite_forces(d, disk, how):
    """Singular, zero and indefinite blocks."""
    rng = np.random.default_rng(9)
    H = rng.normal(size=(300, d, 1))
    W = H @ H.swapaxes(1, 2)
    W[:100] = 0.0
    W[100:200] += (lambda S: S + S.swapaxes(1, 2))(rng.normal(size=(100, d, d)))
    r = solve(how, disk, rng.uniform(0, 2, size=(300, 2)), W, rng.normal(size=(300, d)) - np.eye(d)[0])
    assert np.isfinite(r).all()


def test_quartic_roots_are_those_of_numpy():
    """Real roots of random quartics, and of products with double roots, each near one of the candidates."""
    rng, roots = np.random.default_rng(10), np.zeros(4)
    for k in range(500):
        zeros = rng.normal(size=4) + 1j * np.array([0, 0, 1, -1]) * (k % 3 == 0)
        zeros[3] = zeros[2].conj() if k % 3 == 0 else zeros[3]
        if k % 5 == 0:
            zeros[1] = zeros[0]
        a = np.poly(zeros).real
        n = quartic.quartic_roots(*a[1:], roots)
        real = zeros[zeros.imag == 0].real
        assert n >= 2
        assert (abs(real[:, None] - roots[:n]).min(1) <= 1e-3 * abs(zeros).max()).all()  # to be polished
