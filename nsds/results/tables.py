"""Rows as tables of other packages: pandas (extra ``pandas``) and xarray (extra ``xarray``)."""

import numpy as np

from nsds import _checks
from nsds.results.trajectories import ROW_HEAD, require_rows


def to_pandas(trajectory):
    """Rows as a DataFrame with a column for each number, named as in `nsds.plotting`: ``ball.q[0]``, ``floor.lambda``.

    Parameters
    ----------
    trajectory : numpy.ndarray (rows,) or (members, rows)
        From `nsds.simulate`.

    Returns
    -------
    pandas.DataFrame
        Index t (s); of an ensemble (member, t). Columns step, status, n_iter, residual, then all fields of all parts; of array parts and
        fields with several axes all indices stand in the bracket, as ``beads.q[3,0]``.

    Raises
    ------
    ImportError
        pandas is not installed; the message names the extra.
    TypeError, ValueError
        Not a trajectory.

    Examples
    --------
    >>> import nsds
    >>> table = nsds.to_pandas(nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=0.1))
    >>> [name for name in table.columns if name.startswith("ball.q")], table.index.name
    (['ball.q[0]', 'ball.q[1]', 'ball.q[2]'], 't')
    """
    trajectory = require_rows("to_pandas", trajectory, (1, 2))
    _checks.require_package("pandas", "pandas", "to_pandas needs pandas")
    import pandas as pd

    columns = {name: trajectory[name].reshape(-1) for name, _ in ROW_HEAD[1:]}
    for part, field, values in _fields(trajectory):
        values = values.reshape(trajectory.size, *values.shape[trajectory.ndim :])
        for index in np.ndindex(values.shape[1:]):
            columns[f"{part}.{field}[{','.join(map(str, index))}]" if index else f"{part}.{field}"] = values[(slice(None), *index)]
    t = trajectory["t"].reshape(-1)
    if trajectory.ndim == 1:
        return pd.DataFrame(columns, index=pd.Index(t, name="t"))
    members = np.repeat(np.arange(trajectory.shape[0]), trajectory.shape[1])
    return pd.DataFrame(columns, index=pd.MultiIndex.from_arrays([members, t], names=["member", "t"]))


def to_xarray(trajectory):
    """Rows as a Dataset with a variable for each field, named ``ball.q``, ``floor.lambda``.

    Parameters
    ----------
    trajectory : numpy.ndarray (rows,) or (members, rows)
        From `nsds.simulate`.

    Returns
    -------
    xarray.Dataset
        Dimensions t, or (member, row) of an ensemble, whose t is a coordinate of both; then those of each field, ``ball.q_0`` and so on.
        A view of the rows where that is possible.

    Raises
    ------
    ImportError
        xarray is not installed; the message names the extra.
    TypeError, ValueError
        Not a trajectory.

    Examples
    --------
    >>> import nsds
    >>> data = nsds.to_xarray(nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=0.1))
    >>> data["ball.q"].dims, float(data["ball.q"].sel(t=0.2, method="nearest")[0].round(3))
    (('t', 'ball.q_0'), 0.804)
    """
    trajectory = require_rows("to_xarray", trajectory, (1, 2))
    _checks.require_package("xarray", "xarray", "to_xarray needs xarray")
    import xarray as xr

    rows = ("t",) if trajectory.ndim == 1 else ("member", "row")
    variables = {name: (rows, trajectory[name]) for name, _ in ROW_HEAD[1:]}
    for part, field, values in _fields(trajectory):
        name = f"{part}.{field}"
        variables[name] = (*rows, *(f"{name}_{i}" for i in range(values.ndim - len(rows)))), values
    coordinates = {"t": (rows, trajectory["t"], {"units": "s"})}
    if trajectory.ndim == 2:
        coordinates["member"] = np.arange(trajectory.shape[0])
    return xr.Dataset(variables, coordinates)


def _fields(trajectory):
    """(part, field, values) of all parts."""
    for part in trajectory.dtype.names[len(ROW_HEAD) :]:
        for field in trajectory.dtype[part].base.names:
            yield part, field, trajectory[part][field]
