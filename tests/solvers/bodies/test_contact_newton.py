"""Newton's method on the graph of the bodies, against the dense problem in plain NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsds import status
from nsds.solvers.bodies import newton
from tests import reference_contact as ref
from tests.solvers.bodies.test_contact_rigid import Rigid, draw, few, residual
from tests.strategies import examples, generators

TOL = 1e-10


def solve(p, r=None, budget=np.inf, max_iter=100.0, scratch=None, method=newton.newton):
    """(status, r, u, info) of a `Rigid`, whose contacts and general blocks are stated by their rows; scratch: integers."""
    n, m, ends = len(p.disk), len(p.inverse), np.concatenate([p.body, p.panel_body])
    dense = np.concatenate([p.dense()[0].reshape(n, p.d, m, 6), np.zeros((n, p.d, 1, 6))], axis=2)  # the world is the last body
    H = np.concatenate([dense[np.arange(n), :, ends[:, k]] for k in (0, 1)], axis=-1).ravel()
    diagonal = np.concatenate([np.zeros((len(p.body), p.d)), p.panel_diagonal]).ravel()
    q = p.reduced().q
    given = newton.Problem(p.d, p.disk, p.mu.ravel(), ends.ravel(), H, H, diagonal, q, 10, p.inverse.ravel())
    r, u, info = np.zeros(n * p.d) if r is None else r.copy(), np.zeros(n * p.d), np.zeros(4)
    floats, integers = newton.work_size(p.d, n, m, m * (m - 1) // 2)
    options = newton.Options(TOL, TOL, TOL * np.linalg.norm(q) / np.sqrt(q.size), max_iter, budget)
    scratch = np.full(integers, -7) if scratch is None else scratch
    assert scratch.size >= integers
    code = method(given, options, r, u, info, np.full(floats, np.nan), scratch)
    return code, r, u, info


@pytest.mark.parametrize("d", [3, 5])
def test_a_solution_obeys_the_law(d):
    @examples(40)
    @given(generators, st.integers(1, 6), st.integers(0, 3))
    def check(rng, n_contacts, n_panels):
        p = few(rng, d, n_contacts, n_panels)
        code, r, u, info = solve(p)
        q = p.reduced()
        assert code == status.CONVERGED
        assert info[1] <= 2 * TOL  # of contacts and equations
        np.testing.assert_allclose(u, q.velocity(r), rtol=0, atol=1e-12 * (1 + np.linalg.norm(q.W) * np.linalg.norm(r)))
        assert residual(q, r) <= 1e-8

    check()


@pytest.mark.parametrize("d", [3, 5])
def test_a_guess_that_is_a_solution_is_told_without_a_matrix(d):
    @examples(25)
    @given(generators, st.integers(1, 6), st.integers(0, 3))
    def check(rng, n_contacts, n_panels):
        p = few(rng, d, n_contacts, n_panels)
        _, r, u, info = solve(p)
        code, same, found, known = solve(p, r, method=newton.guess)
        assert code == status.CONVERGED
        np.testing.assert_array_equal(np.r_[same, found, 0.0, known[1:]], np.r_[r, u, 0.0, info[1:]])
        assert np.linalg.norm(r) == 0 or solve(p, 1.001 * r, method=newton.guess)[0] == status.MAX_ITER

    check()


@pytest.mark.parametrize("d", [3, 5])
def test_more_contacts_than_motions(d):
    """Several contacts of a pair, bodies that cannot be moved, and the world: impulses are not unique, velocities obey the law."""

    @examples(25)
    @given(generators)
    def check(rng):
        p = draw(rng, d, 3, 8, mu=0.3)
        q = p.reduced()
        code, r, _, info = solve(p)
        if code == status.CONVERGED:
            assert residual(q, r) <= 1e-7
        assert info[1] <= 1.0 + 1e-12 or code != status.CONVERGED  # never farther from the law than no impulses

    check()


def test_its_step_is_that_of_the_eliminated_system():
    """One equation a body: the first step is the solution, up to the regularisation, which the second one removes."""
    rng = np.random.default_rng(0)
    p = few(rng, 3, 0, 3)
    p = p._replace(disk=np.full(3, ref.EQUATION))
    code, r, u, info = solve(p)
    q = p.reduced()
    assert code == status.CONVERGED
    assert info[0] <= 2
    np.testing.assert_allclose(r, np.linalg.solve(q.W, -q.q), rtol=1e-8)
    assert np.linalg.norm(u) <= TOL * np.linalg.norm(q.q)


def test_a_graph_that_costs_too_much_is_left_alone():
    p = few(np.random.default_rng(1), 3, 5)
    before = np.arange(15.0)
    code, r, _, info = solve(p, before, budget=1.0)
    assert code == status.UNSUITED
    assert (r == before).all()
    assert (info == 0.0).all()


def test_a_problem_without_solution_is_not_called_solved():
    """A body that is pressed between two walls that close."""
    walls = np.array([[[1.0, 0, 0], [0, 1, 0], [0, 0, 1]], [[-1.0, 0, 0], [0, -1, 0], [0, 0, 1]]])
    none = np.zeros((0, 2), np.int64), np.zeros((0, 3, 12)), np.zeros((0, 3))
    b, inverse = np.array([[-1.0, 0, 0], [-1.0, 0, 0]]), np.r_[1.0, np.eye(3).ravel()][None]
    p = Rigid(
        3, np.full(2, 2), np.zeros((2, 2)), np.array([[0, -1], [0, -1]]), walls, np.zeros((2, 2, 3)), b, *none, inverse, np.zeros((1, 6))
    )
    code, _, _, info = solve(p)
    assert code != status.CONVERGED
    assert info[1] > 0.1


def test_what_is_kept_of_the_last_graph_changes_nothing():
    """Neither the order of elimination of the same graph, nor of another one, nor a budget that was too small for it."""

    @examples(15)
    @given(generators)
    def check(rng):
        p, other, scratch = draw(rng, 3, 4, 7, mu=0.3), draw(rng, 3, 4, 9, mu=0.3), np.full(100_000, -7)
        expected = solve(p)
        for before in ((p, 1.0), (p, np.inf), (other, np.inf), (other, 1.0)):
            solve(before[0], budget=before[1], scratch=scratch)
            found = solve(p, scratch=scratch)
            assert found[0] == expected[0]
            assert found[1].tobytes() == expected[1].tobytes()

    check()
