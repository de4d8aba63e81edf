"""Comparison of trajectories with those of the established code: at checkpoints always, in full where the collection is at hand.

Case names are those of the reference collection, which states each problem; tolerances are the ones it states. Row k holds the multiplier
of the step that ends at t_k; row 0 is not compared.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

import nsds
from nsds.examples import EXAMPLES
from tests.paths import REFERENCE

needs_collection = pytest.mark.skipif(not REFERENCE.is_dir(), reason="the reference trajectories are not part of the package")
trajectory_of = cache(lambda run: run())  # for both comparisons


class Bound(NamedTuple):
    """Largest difference of some columns, up to a row."""

    tolerance: float
    columns: str
    until: float = math.inf


def numbered(**arrays):
    """Columns ``x0, x1, ...`` of arrays (rows, n), ``x0`` also where there is one only."""
    return {f"{name}{i}": column for name, array in arrays.items() for i, column in enumerate(array.reshape(len(array), -1).T)}


def run_example(name, parameters=(), **settings):
    """Record and trajectory of an example, with other parameters or settings than its own where given."""
    system = EXAMPLES[name].build(**dict(parameters))
    return system, nsds.simulate(system, **EXAMPLES[name].run | settings)


def compare_at_checkpoints(columns, bounds, names, rows):
    """Rows: number of a row of the full series -> values of the columns named."""
    for k, wanted in rows.items():
        for name, value in zip(names.split(), wanted, strict=True):
            tolerance = min(bound.tolerance for bound in bounds if name in bound.columns.split() and k <= bound.until)
            np.testing.assert_allclose(columns[name][k], value, rtol=0, atol=tolerance, err_msg=f"{name} in row {k}")


def compare_in_full(case, columns, bounds):
    """All rows that the collection holds of a case."""
    with np.load(REFERENCE / case / "ref.npz") as file:
        reference = dict(file)
    whole = np.arange(len(reference["t"])) + (reference["t"][0] > 0)  # row 0 is the state at t = 0
    rows = next((reference[name].astype(int) for name in ("step", "row") if name in reference), whole)
    for tolerance, names, until in bounds:
        compared = (rows >= 1) & (rows <= until)
        for name in names.split():
            np.testing.assert_allclose(columns[name][rows[compared]], reference[name][compared], rtol=0, atol=tolerance, err_msg=name)
