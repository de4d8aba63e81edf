"""Rows of switched systems at events: what the elimination of multipliers leaves, and modes by multipliers."""

import numpy as np
import pytest

from nsds.schemes.event_driven.switched_rows import HELD, LOWER, UPPER, Rows, bounds_away_from_zero, bounds_of_impulse, mode_at, pivot
from nsds.schemes.memory import Memory


def laid_out(P, X, K):
    """(memory, `Rows`) of the rows ``P lambda + X + K = 0``."""
    m, width = X.shape
    work, iwork = np.concatenate([P.ravel(), X.ravel(), K, abs(P).max(axis=1), np.zeros(m)]), np.tile(np.arange(m), 3)
    floats, integers = np.zeros(0), np.zeros(0, np.int64)
    at = m * m, m * (m + width), m * (m + width + 1), m * (m + width + 2)
    return Memory(floats, integers, work, iwork), Rows(m, 0, at[0], width, width, at[1], at[2], at[3], 0, m, 2 * m, 1e-10, 1e-13)


@pytest.mark.parametrize("rank", [1, 3, 5])
def test_solved_rows_give_the_multipliers_whatever_the_state(rank):
    rng = np.random.default_rng(rank)
    m, n = 5, 4
    scale = 10.0 ** rng.integers(-6, 7, m)  # rows of any unit
    P = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, m)) * scale[:, None]
    X, K = rng.normal(size=(m, n)) * scale[:, None], rng.normal(size=m) * scale
    memory, rows = laid_out(P, X, K)
    assert pivot(0, m, rows, memory) == rank
    # lambda of the columns solved for, 0 of the others
    number, column = memory.iwork[:m], memory.iwork[m : 2 * m]
    found, constant = memory.work[rows.X : rows.X + m * n].reshape(m, n), memory.work[rows.K : rows.K + m]
    x, lam = rng.normal(size=n), np.zeros(m)
    lam[column[:rank]] = -(found @ x + constant)[:rank]
    left = (P @ lam + X @ x + K) / scale
    assert sorted(number) == sorted(column) == list(range(m))
    assert abs(left[number[:rank]]).max() < 1e-8 * abs(lam).max()
    # what remains is a combination of the rows, the same for any lambda
    remaining = memory.work[: m * m].reshape(m, m)[rank:]
    assert abs(remaining / scale[number[rank:], None]).max(initial=0.0) < 1e-8


def test_rows_without_a_multiplier_are_not_solved():
    memory, rows = laid_out(np.zeros((2, 2)), np.ones((2, 1)), np.ones(2))
    assert pivot(0, 2, rows, memory) == 0


def test_modes_are_those_of_the_law():
    assert [mode_at(z, 0.0, 1.0, 0.0) for z in (0.0, 0.5, 1.0)] == [LOWER, HELD, UPPER]
    assert [mode_at(2.0, 2.0, 2.0, w) for w in (1.0, -1.0)] == [LOWER, UPPER]
    assert bounds_away_from_zero(1.0, 0.0, np.inf) == (0.0, 0.0)
    assert bounds_away_from_zero(-1.0, -1.0, 1.0) == (1.0, 1.0)
    assert bounds_away_from_zero(-1.0, 0.0, np.inf) == (0.0, np.inf)
    assert bounds_of_impulse(0.0, np.inf) == (0.0, np.inf)
    assert bounds_of_impulse(-1.0, 1.0) == (0.0, 0.0)
