"""Tables of pandas and xarray hold the numbers of the rows."""

import numpy as np
import pytest

import nsds

pd, xr = pytest.importorskip("pandas"), pytest.importorskip("xarray")


def ensemble():
    return nsds.simulate(np.repeat(nsds.examples.column_of_beads(), 2), t_end=0.01, h=1e-3)


def test_columns_of_pandas_are_those_of_the_rows():
    rows = nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=0.1)
    table = nsds.to_pandas(rows)
    np.testing.assert_array_equal(table.index, rows["t"])
    np.testing.assert_array_equal(table["ball.v[2]"], rows["ball"]["v"][:, 2])
    np.testing.assert_array_equal(table["floor.lambda"], rows["floor"]["lambda"])
    assert table["status"].dtype == np.int64
    assert len(table.columns) == 4 + 6 + 4


def test_ensembles_and_array_parts():
    rows = ensemble()
    table, data = nsds.to_pandas(rows), nsds.to_xarray(rows)
    assert table.index.names == ["member", "t"]
    np.testing.assert_array_equal(table.loc[1]["beads.q[3,0]"], rows["beads"]["q"][1, :, 3, 0])
    np.testing.assert_array_equal(data["beads.q"].sel(member=1), rows["beads"]["q"][1])
    assert data["beads.q"].dims == ("member", "row", "beads.q_0", "beads.q_1")


def test_xarray_selects_by_time():
    rows = nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=0.1)
    data = nsds.to_xarray(rows)
    assert float(data["ball.q"].sel(t=0.5, method="nearest")[0]) == rows["ball"]["q"][5, 0]
    assert data["t"].attrs["units"] == "s"
    assert np.shares_memory(data["ball.q"].values, rows)


@pytest.mark.parametrize("name", ["pandas", "xarray"])
def test_what_is_not_installed_is_named(name, monkeypatch):
    rows = nsds.simulate(nsds.examples.bouncing_ball(), t_end=0.1, h=0.1)
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None)
    with pytest.raises(ImportError, match=f"pip install {name}"):
        getattr(nsds, f"to_{name}")(rows)
