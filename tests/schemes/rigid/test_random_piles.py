"""Piles of bodies of all shapes under the defaults: they gain no energy, nothing ends within something else, all steps converge."""

import pytest

from tests.random_piles import run


@pytest.mark.parametrize("seed", range(6))
def test_a_random_pile_gains_nothing_and_lies_without_overlap(seed):
    """Of the weight times a body's size, and of that size; a hundredth, by which a body is pushed out of another in a step at most."""
    gain, overlap, rows = run(seed)
    assert not rows["status"].any()
    assert gain < 1e-2
    assert overlap < 1e-2
    assert rows["contacts"]["n"][-1] > 0
