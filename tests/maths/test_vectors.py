"""Vectors and 3 × 3 matrices in kernels."""

import numpy as np
import pytest

from nsds.maths.vectors import solve_3


@pytest.mark.parametrize("seed", range(5))
def test_a_solution_solves_in_place_too(seed):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(3, 3)), rng.normal(size=3)
    x = np.empty(3)
    solve_3(A.ravel(), b, x)
    assert A @ x == pytest.approx(b, abs=1e-14 * np.linalg.cond(A))
    solve_3(A.ravel(), b, b)
    assert (b == x).all()
