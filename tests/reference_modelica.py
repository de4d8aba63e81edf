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


def compare(case, t, columns, tolerance, until=np.inf):
    """All columns at the rows of the reference, relative to the range of each; tolerance: a number, or one for each name."""
    reference = reference_of(case)
    wanted = reference["t"] <= until
    at = np.searchsorted(t, reference["t"][wanted] + 1e-9 * t[-1]) - 1  # of the rows of a time the last, after what happens then
    np.testing.assert_allclose(t[at], reference["t"][wanted], rtol=0, atol=1e-9 * t[-1])
    for name, values in columns.items():
        bound = (tolerance if np.isscalar(tolerance) else tolerance[name]) * np.ptp(reference[name])
        np.testing.assert_allclose(values[at], reference[name][wanted], rtol=0, atol=bound, err_msg=name)
