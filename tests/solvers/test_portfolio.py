"""The promise of "auto": what a listed method solves it solves, and what has no solution costs a small multiple of what has one."""

from pathlib import Path

import numpy as np
import pytest

from nsds import solvers, status
from tests import portfolio

PROBLEMS = Path(__file__).parents[3] / "shared/problems"


def unmatched(problem):
    """Methods that solve a problem that "auto" does not, whatever time they take."""
    if problem.solved_by("auto")[0].status in portfolio.SOLVED:
        return []
    return [name for name in solvers.methods(problem.kind) if problem.solved_by(name)[0].status == status.CONVERGED]


@pytest.mark.parametrize("which", ["random", "any matrix", "families"])
def test_no_listed_method_solves_what_auto_does_not(which):
    problems = {
        "random": portfolio.random(range(40)),
        "any matrix": portfolio.contacts_of_any_matrix((0, 3, 4, 7, 15, 25, 350, 919)),
        "families": portfolio.drawn(range(2), (4, 7)),
    }[which]
    for problem in problems:
        assert not unmatched(problem), problem.name


@pytest.mark.parametrize(("kind", "d"), [("fc2d", 2), ("fc3d", 3)])
def test_contacts_without_a_solution_cost_a_bounded_number_of_iterations(kind, d):
    """Of eight contacts; 61 520 iterations were seen, of which each costs a sweep or more."""
    n_failed = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        W = rng.normal(size=(8 * d, 8 * d))
        np.fill_diagonal(W, abs(W.diagonal()))
        s = getattr(solvers, f"solve_{kind}")(W, rng.normal(size=8 * d), rng.uniform(0.2, 1.5, 8), on_failure="continue")
        if s.status != status.CONVERGED:
            n_failed += 1
            assert s.n_iter <= 10_000
    assert n_failed >= 2


@pytest.mark.reference
@pytest.mark.skipif(not PROBLEMS.is_dir(), reason="the stored problems are not at hand")
def test_stored_problems():
    problems = portfolio.stored(PROBLEMS)
    assert len(problems) > 60
    for problem in problems:
        assert problem.size > 2000 or not unmatched(problem), problem.name
        if problem.size <= 2000:
            assert problem.solved_by("auto")[0].status in portfolio.SOLVED, problem.name
