"""Comparison with published results of the Modelica Standard Library, where the collection is at hand; its ``case.md`` state each case."""

import numpy as np
import pytest

from tests.paths import REFERENCE

MODELICA = REFERENCE.parent / "modelica"
needs_collection = pytest.mark.skipif(not MODELICA.is_dir(), reason="the published results are not part of the package")


def reference_of(case):
    """Columns of a case by name."""
    with np.load(MODELICA / case / "ref.npz") as file:
        return dict(file)


def deviations(case, t, columns, until=np.inf):
    """By how much each column is off at the rows of the reference, of its range."""
    reference = reference_of(case)
    wanted = reference["t"] <= until
    at = np.searchsorted(t, reference["t"][wanted] + 1e-9 * t[-1]) - 1  # of the rows of a time the last, after what happens then
    np.testing.assert_allclose(t[at], reference["t"][wanted], rtol=0, atol=1e-9 * t[-1])
    return {name: abs(values[at] - reference[name][wanted]) / np.ptp(reference[name]) for name, values in columns.items()}


def compare(case, t, columns, tolerance, until=np.inf):
    """All columns at the rows of the reference, relative to the range of each; tolerance: a number, or one for each name."""
    for name, off in deviations(case, t, columns, until).items():
        assert off.max() <= (tolerance if np.isscalar(tolerance) else tolerance[name]), name
