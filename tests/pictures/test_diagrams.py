"""Pictures of analysis show what was found."""

import matplotlib as mpl
import numpy as np
import pytest

import nsds
from nsds.pictures import plotting

mpl.use("Agg")


def logistic(x, p, out):
    out[0] = p[0] * x[0] * (1 - x[0]) - p[1]


def cubic(x, p, out):
    out[0], out[1] = 1.5 * x[0] - 0.5 * x[0] ** 3, 0.5 * x[1]


def table(p=2.5):
    return nsds.iterated_map(logistic, x=[0.6], p=[p, 0.0])


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_diagram_shows_the_points_of_each_direction():
    rows = nsds.sweep(table(), vary={"p[0]": [2.9, 3.2, 3.5, 9.0]}, keep=8, progress=False)
    ax = plotting.diagram(rows)
    assert len(ax.lines) == 2
    for line, of_direction in zip(ax.lines, rows, strict=True):
        points = [(row["parameters"][0], x) for row in of_direction for x in row["x"][: row["n_points"], 0]]
        np.testing.assert_array_equal(line.get_xydata(), points)
    assert ax.lines[0].get_xdata().max() == 3.5  # what drifts away has no points
    assert len(plotting.diagram(rows[0]).lines) == 1
    with pytest.raises(ValueError, match="coordinate"):
        plotting.diagram(rows, 1)


def test_a_chart_has_a_colour_for_each_period():
    vary = {"p[0]": [2.9, 3.2, 3.5, 3.9, 9.0], "p[1]": [0.0, 0.001]}
    rows = nsds.sweep(table(), vary=vary, progress=False)
    assert rows["n_periods"][:, 0].tolist() == [1, 2, 4, 0, 0]
    ax = plotting.diagram(rows)
    assert legend(ax) == ["none", "1", "2", "4"]
    (mesh,) = ax.collections
    colours = mesh.get_array().reshape(2, 5, 4)[0]
    assert len(np.unique(colours, axis=0)) == 5
    np.testing.assert_array_equal(colours[4], [1, 1, 1, 1])  # has ended
    with pytest.raises(ValueError, match="two axes"):
        plotting.diagram(rows.ravel())


def test_a_branch_is_dashed_where_it_is_unstable():
    rows = nsds.continue_orbit(table(), parameter="p[0]", until=3.5)
    stable, unstable, doubling = plotting.branch(rows).lines
    assert np.nanmax(stable.get_xdata()) == pytest.approx(3.0, abs=1e-9)
    assert np.nanmin(unstable.get_xdata()) == pytest.approx(3.0, abs=1e-9)
    assert (stable.get_linestyle(), unstable.get_linestyle()) == ("-", "--")
    np.testing.assert_allclose(doubling.get_xydata(), [[3.0, 2 / 3]], atol=1e-9)
    joined = np.concatenate([line.get_xdata() for line in (stable, unstable)])
    assert set(joined[np.isfinite(joined)]) == set(rows["parameter"])


def test_multipliers_of_one_orbit_and_of_a_branch():
    orbit = nsds.orbit(table())
    ax = plotting.multipliers(orbit)
    np.testing.assert_allclose(ax.lines[1].get_xydata(), [[-0.5, 0.0]], atol=1e-9)
    np.testing.assert_allclose(np.hypot(*ax.lines[0].get_xydata().T), 1.0)
    branch = nsds.continue_orbit(table(), parameter="p[0]", until=3.5)
    assert len(plotting.multipliers(branch, ax=ax).lines[3].get_xdata()) == branch.size


def test_basins_are_coloured_by_their_attractor():
    grid = {"x[0]": np.linspace(-1.6, 1.5, 32), "x[1]": [-0.5, 0.5]}
    found = nsds.basins(nsds.iterated_map(cubic, x=[0.0, 0.0]), grid=grid, progress=False)
    ax = plotting.basin_map(found, grid)
    colours = ax.collections[0].get_array().reshape(2, 32, 4)
    for k in range(3):
        here = colours.transpose(1, 0, 2)[found.labels == k]
        assert (here == here[0]).all()
    assert legend(ax) == ["0: period 1", "1: period 1", "2: period 1"]
    assert ax.get_ylabel() == "x[1]"
    with pytest.raises(ValueError, match="shape"):
        plotting.basin_map(found, {"x[0]": [1.0], "x[1]": [1.0]})
