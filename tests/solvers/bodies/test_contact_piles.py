"""Steps of piles on which sweeps do not settle: what is reached on kept problems, and what the solution with frozen slip is.

``problems/pile_*.npz``: one-step problems of equal spheres that settle in a box, at which sweeps gave up with residuals of 1e-3 to 0.1.
"""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds import status
from nsds.solvers.bodies import rigid, rigid_contact
from nsds.solvers.contact.signature import Cone
from tests import reference_contact as ref
from tests.paths import ROOT
from tests.solvers.bodies.test_contact_rigid import Rigid, draw, flat, one_by_one, residual, solve, unit_of_impulses, unphased
from tests.strategies import examples, generators

FILES = sorted((ROOT / "tests" / "problems").glob("pile_*.npz"))
TOL = 1e-4
REACHED = 5e-3  # residual of the law with the slip frozen, on all problems; the aim is TOL


def load(path):
    """(problem, guess, begin): spheres that touch along normal, in the order of the sweep."""
    with np.load(path) as file:
        data = {name: file[name].astype(np.int64 if file[name].dtype.kind == "i" else np.float64) for name in file.files}
    n, bodies = len(data["body"]), len(data["v_free"])
    normal = data["normal"] / np.linalg.norm(data["normal"], axis=1)[:, None]
    across = np.where(abs(normal[:, [0]]) < 0.6, [[1.0, 0, 0]], [[0, 1.0, 0]])
    t = np.cross(normal, across)
    t /= np.linalg.norm(t, axis=1)[:, None]
    frame, lever = np.stack([normal, t, np.cross(normal, t)], 1), data["radius"] * np.stack([-normal, normal], 1)
    inverse = np.tile(np.r_[1 / data["mass"], np.eye(3).ravel() / data["inertia"]], (bodies, 1))
    panels = np.zeros((0, 2), int), np.zeros((0, 3, 12)), np.zeros((0, 3))
    mu = np.tile([data["mu"], 0.0], (n, 1))
    p = Rigid(3, np.full(n, 2), mu, data["body"], frame, lever, np.zeros((n, 3)), *panels, inverse, data["v_free"])
    return p, np.einsum("ci,cai->ca", data["guess"], frame).ravel(), data["begin"]


def velocities(p, r):
    """(v, u) of r in plain NumPy, without matrices."""
    n, v = len(p.body), np.r_[p.v_free, np.zeros((1, 6))]
    P = np.einsum("ca,cai->ci", r.reshape(n, 3), p.frame)
    inverse = np.r_[p.inverse, np.zeros((1, 10))]
    for side, sign in ((0, 1.0), (1, -1.0)):
        i = p.body[:, side]
        moment = np.einsum("cij,cj->ci", inverse[i, 1:].reshape(n, 3, 3), np.cross(p.lever[:, side], P))
        np.add.at(v, i, sign * np.hstack([inverse[i, :1] * P, moment]))
    v[-1] = 0.0
    a, b = (v[p.body[:, k], :3] + np.cross(v[p.body[:, k], 3:], p.lever[:, k]) for k in (0, 1))
    return v[:-1], np.einsum("cai,ci->ca", p.frame, a - b)


def assert_obeys_the_law_but_for_slip(r, u, mu, tol, off):
    """What follows from ``||r - P_K(r - (u + s e_N))|| <= tol``, r in units like u, with s >= 0 no farther than off from ``mu ||u_T||``.

    There are r' in K and w' in K* with ``r' w' = 0``, and both no farther than tol from r and ``w = u + s e_N``: so where r is larger than
    tol, ``|u_N| <= off + (1 + mu) tol``; elsewhere ``u_N >= -s - tol``. And contacts do no work, ``r u = r w - s r_N``, but for tol.
    """
    slip = mu * np.linalg.norm(u[:, 1:], axis=1)
    assert (np.linalg.norm(r[:, 1:], axis=1) <= mu * r[:, 0] * (1 + 1e-12)).all()
    pressing = np.linalg.norm(r, axis=1) > tol
    assert (abs(u[pressing, 0]) <= off + (1 + mu[pressing]) * tol).all()
    w = np.linalg.norm(np.c_[abs(u[:, 0]) + slip + off, u[:, 1:]])
    assert (r * u).sum() <= tol * (np.linalg.norm(r) + w + tol)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_reached(path):
    """CONVERGED within the tolerance, else INEXACT: the law holds but for u_N of contacts that slide, which is off by info[3] at most."""
    p, guess, begin = load(path)
    code, r, u, v, info = solve(p, TOL, r=guess, begin=begin)
    v_dense, u_dense = velocities(p, r)
    size = np.linalg.norm(velocities(p, 0 * r)[1])
    np.testing.assert_allclose(v.reshape(-1, 6), v_dense, rtol=0, atol=1e-11)
    np.testing.assert_allclose(u.reshape(-1, 3), u_dense, rtol=0, atol=1e-11)
    W_n, W_t = 2 * p.inverse[0, 0], 2 * (p.inverse[0, 0] + p.inverse[0, 1] * np.sum(p.lever[0, 0] ** 2))
    unit, mu, x, w = 2.0 ** np.ceil(np.log2((W_n + 2 * W_t) / 3)), p.mu[:, 0], r.reshape(-1, 3), u.reshape(-1, 3)
    law = np.array([unit * a - ref.onto_cone(unit * a - ref.hat(b, m, 0.0, 2), m, 0.0, 2) for a, b, m in zip(x, w, mu, strict=True)])
    assert abs(info[1] - np.linalg.norm(law) / size) <= 1e-9
    assert code == (status.CONVERGED if info[1] <= TOL else status.INEXACT)
    assert info[1] <= REACHED
    if code == status.INEXACT:
        assert_obeys_the_law_but_for_slip(unit * x, w, mu, TOL * size, info[3])


def test_bits_of_frozen_steps_do_not_depend_on_threads():
    p, guess, begin = load(max(FILES, key=lambda path: path.stat().st_size))
    assert (np.diff(begin)[:6] > 0).all()
    threads, results = numba.get_num_threads(), [solve(p, TOL, 350, r=guess, begin=begin)]
    assert results[0][4][0] == 700
    try:
        for n in {1, threads}:
            numba.set_num_threads(n)
            results.append(solve(p, TOL, 350, r=guess, begin=begin, method=rigid.nsgs_rigid_parallel))
    finally:
        numba.set_num_threads(threads)
    for result in results[1:]:
        for a, b in zip(result, results[0], strict=True):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("power", [-20, 20])
def test_light_grains_are_solved_as_well_as_heavy_ones(power):
    """Masses times ``2^power``: impulses are times that, velocities and residuals the same."""
    p, guess, begin = load(FILES[0])
    code, r, u, _, info = solve(p, TOL, 200, r=guess, begin=begin)
    other = solve(p._replace(inverse=p.inverse * 2.0**-power), TOL, 200, r=guess * 2.0**power, begin=begin)
    assert other[0] == code
    np.testing.assert_allclose(other[2], u, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other[1] * 2.0**-power, r, rtol=1e-9, atol=1e-12)
    assert abs(other[4][1] - info[1]) <= 1e-9 * info[1]


# ----------------------------------------------------------------------------------------------------------------- frozen slip, small


@pytest.mark.parametrize("d", [3, 5])
def test_a_frozen_contact_is_the_minimum_over_its_cone(d):
    @examples(60)
    @given(generators, st.floats(0.0, 1.5))
    def check(rng, size):
        A = rng.normal(size=(d, d))
        W, q, mu = A @ A.T + 0.3 * np.eye(d), rng.normal(size=d), rng.uniform(0, 1.5, 2)
        r = np.abs(rng.normal(size=d)) * size
        for _ in range(60):  # calls go on where the last one ended
            rigid_contact.solve_frozen(Cone(d, 2, *mu), W.ravel(), 0, q, r, np.full(40, np.nan))
        expected = ref.solve_one_frozen(W, q, mu[0], mu[1], 2)
        assert np.linalg.norm(r - expected) <= 1e-6 * (1 + np.linalg.norm(expected))

    check()


@pytest.mark.parametrize("d", [3, 5])
@pytest.mark.parametrize("sides", [1, 2])
def test_a_frozen_sweep_is_its_definition(d, sides):
    """From ``r + beta (r - r_before)``, each contact in turn with its slip held; which then goes a part of the way to what it is now."""

    @examples(15)
    @given(generators, st.integers(1, 5), st.sampled_from([0.0, 0.5]), st.sampled_from([0.0, 0.2, 1.0]))
    def check(rng, n, beta, gain):
        p = draw(rng, d, 2 * n + 2, n, fixed=0.0, mu=1.0, world=float(sides == 1))
        q, (H, M_inverse), S = p.reduced(), p.dense(), rng.uniform(0, 0.5, n)
        r = np.concatenate([ref.onto_cone(rng.normal(size=d), *mu, 2) for mu in p.mu])
        before = np.concatenate([ref.onto_cone(rng.normal(size=d), *mu, 2) for mu in p.mu])
        R, ids = np.zeros(rigid_contact.record_size(d) * n), np.zeros(2 * n, np.int64)
        rigid._build_serial(flat(p, unphased(n)), R, ids)
        y, slip = r + beta * (r - before), S.copy()
        B = np.zeros((len(p.v_free) + 1, 16))
        B[:-1, :6] = p.v_free + (M_inverse @ H.T @ y).reshape(-1, 6)
        B[:-1, 6:] = p.inverse
        new, sweep = r.copy(), rigid._sweep_blocks_3 if d == 3 else rigid._sweep_blocks_5
        sweep(unphased(n), beta, gain, one_by_one(p.disk, R, ids, B.ravel(), S, new, before.copy()), np.zeros(2), np.zeros(1000))
        for c, (at, _, _, mu, mu_r, disk) in enumerate(q.contacts()):
            W = q.W[at, at]
            q_c = q.velocity(y)[at] - W @ y[at] + slip[c] * np.eye(d)[0]
            found, expected = new[at], ref.solve_one_frozen(W, q_c, mu, mu_r, disk)
            before_it = np.linalg.norm(y[at] - expected)
            assert np.linalg.norm(found - expected) <= before_it + 1e-9  # projections come closer in every sweep, and
            assert energy(W, q_c, found) <= energy(W, q_c, y[at]) + 1e-9 or beta > 0.0
            y[at] = found
            u = q.velocity(y)[at]
            slip[c] += gain * (ref.hat(u, mu, mu_r, disk)[0] - u[0] - slip[c])
        np.testing.assert_allclose(S, slip, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(B[:-1, :6].ravel(), p.v_free.ravel() + M_inverse @ H.T @ new, rtol=1e-9, atol=1e-9)

    check()


def energy(W, q, r):
    return 0.5 * r @ W @ r + q @ r


@pytest.mark.parametrize("d", [3, 5])
def test_what_is_said_of_few_contacts_with_much_friction(d):
    """Contacts and blocks of joints, with more friction than sweeps may like: CONVERGED and INEXACT are what they claim to be."""

    @examples(25)
    @given(generators, st.integers(4, 12), st.integers(0, 2))
    def check(rng, n, n_panels):
        p = draw(rng, d, 6, n, n_panels, mu=3.0)
        tol = 1e-6
        code, r, u, _, info = solve(p, tol, 600)
        q = p.reduced()
        assert abs(info[1] - residual(q, r)) <= 1e-9
        assert (code == status.CONVERGED) == (info[1] <= tol)
        if code == status.INEXACT:
            unit, size = unit_of_impulses(q), np.linalg.norm(q.q)
            for at, _, _, mu, mu_r, disk in q.contacts():
                if disk == ref.EQUATION:
                    assert np.linalg.norm(u[at]) <= tol * size
                elif unit * np.linalg.norm(r[at]) > tol * size:
                    assert abs(u[at][0]) <= info[3] + (1 + mu + mu_r) * tol * size

    check()
