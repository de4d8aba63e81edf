"""Runs in HDF5 files (extra ``io``): the record that was simulated, how, and its rows, one dataset for each field.

/system            bytes of a .npy file: the record or ensemble; after growth with the room of the last rows; attribute model: its parts
/row               bytes of a .npy file without rows, of their dtype
/scheme, /solver   bytes of .npy files: options that are records
/trajectory/t, step, status, n_iter, residual, PART/FIELD      (members..., rows, elements..., shape of the field...)
attributes         n_rows: so many rows are valid; the other arguments of the run as JSON; versions
"""

import io
import json
import os
from importlib.metadata import version
from pathlib import Path

import numpy as np

from nsds.records import model_of, widened
from nsds.results import ROW_HEAD, chosen_fields, row_dtype

_MAX_HEADER = 2**31 - 1  # of a .npy file: NumPy's own limit is meant for files that are not trusted, and a long model exceeds it
_SETTINGS = ("t_end", "h", "scheme", "solver", "save_every", "fields", "on_failure")


class RunFile:
    """The file of a run that is going on.

    Parameters
    ----------
    owner : str
        Function that errors name.
    path : str or Path
        File to make; of a run that goes on, to continue.
    overwrite : bool
        Whether a file that exists may be replaced.
    n_kept : int
        Rows of the file that are kept, the last of which is the first of the run that goes on; 0: it is a new file.

    Raises
    ------
    ImportError
        h5py is not installed.
    FileExistsError
        The file exists.
    """

    def __init__(self, owner, path, overwrite=False, n_kept=0):
        self.path, self.n_kept, self.h5py = os.fspath(path), n_kept, _h5py(owner)
        if not overwrite and not n_kept and Path(path).exists():
            raise FileExistsError(f"{owner}: the file {self.path} exists; overwrite=True replaces it, nsds.resume goes on with it")

    def open(self, system, dtype, settings):
        """Make the file of a system, for rows of a dtype, or go on with the one that there is.

        Settings: t_end, h, scheme, solver, save_every, fields, on_failure; records, numbers and text.
        """
        self.system, self.tree = system, self.h5py.File(self.path, "r+" if self.n_kept else "w")
        for name in _SETTINGS:
            if isinstance(settings[name], (np.ndarray, np.void)):
                _write(self.tree, name, settings[name])
            else:
                self.tree.attrs[name] = json.dumps(settings[name])
        if self.n_kept:
            return
        self.tree.attrs.update({f"version of {name}": version(name) for name in ("nsds", "numpy", "numba", "h5py")})
        self.tree.attrs["n_rows"] = 0
        self._describe(system, dtype)
        for path, leaf in _leaves(dtype):
            shape = (*system.shape, 0, *leaf.shape)
            self.tree.create_dataset(f"trajectory/{path}", shape, leaf.base, maxshape=(None,) * len(shape), chunks=True)

    def _describe(self, system, dtype):
        _write(self.tree, "system", system)
        _write(self.tree, "row", np.zeros(0, dtype))
        self.tree["system"].attrs["model"] = "\n".join(" ".join(line) for line in model_of(system))

    def write(self, first, rows):
        """Put rows (members, rows) of the run where they belong; when this returns they are on the disk and count as valid."""
        first += max(0, self.n_kept - 1)
        start, stop = max(first, self.n_kept), max(first + rows.shape[1], self.n_kept)
        rows, axis = rows[:, start - first :].reshape(*self.system.shape, stop - start), self.system.ndim
        for path, leaf in _leaves(rows.dtype):
            data = self.tree[f"trajectory/{path}"]
            data.resize(stop, axis)
            data[_where(axis, slice(start, stop), leaf)] = _at(rows, path)
        self.tree.attrs.modify("n_rows", stop)
        self.tree.flush()

    def widen(self, records_dtype, dtype):
        """Make room for rows of a wider dtype; the entries of earlier rows that are new are zero."""
        for path, leaf in _leaves(dtype):
            data = self.tree[f"trajectory/{path}"]
            data.resize((*data.shape[: self.system.ndim + 1], *leaf.shape))
        self.system = widened(self.system, records_dtype)
        self._describe(self.system, dtype)

    def close(self):
        """Close the file."""
        self.tree.close()


def read_trajectory(file, fields=None, rows=slice(None)):
    """Rows of a run that `nsds.stream` wrote, with the bits that `nsds.simulate` would have returned.

    Parameters
    ----------
    file : str or Path
        HDF5 file.
    fields : sequence of str, optional
        What to read, as ``"ball"`` (all that was saved of it) or ``"ball.q"``; all that was saved by default.
    rows : int or slice
        Which rows; all by default. Only these are read.

    Returns
    -------
    numpy.ndarray
        Structured array (rows,), for an ensemble (members, rows), see `nsds.simulate`; without the axis of rows where ``rows`` is a number.

    Raises
    ------
    ImportError
        h5py is not installed.
    OSError, KeyError
        No such file, or another one.
    ValueError
        A part or field that is not in the file.
    IndexError
        There is no such row.

    Examples
    --------
    >>> import nsds, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "run.h5"
    ...     final = nsds.stream(nsds.examples.bouncing_ball(), file, t_end=10.0, h=5e-3)
    ...     rows = nsds.read_trajectory(file, fields="ball.q", rows=slice(None, None, 100))
    >>> rows["t"].shape, rows["ball"]["q"].shape
    ((21,), (21, 3))
    """
    with _h5py("read_trajectory").File(file, "r") as tree:
        dtype, shape = _read(tree, "row").dtype, _read(tree, "system").shape
        if fields is not None:
            held = {part: dtype[part].base.names for part in dtype.names[len(ROW_HEAD) :]}
            dtype = row_dtype(dtype, chosen_fields(fields, held, held))
        chosen = range(int(tree.attrs["n_rows"]))[rows]
        ascending = range(chosen, chosen + 1) if isinstance(chosen, int) else chosen if chosen.step > 0 else chosen[::-1]
        result, axis = np.empty((*shape, len(ascending)), dtype), len(shape)
        asked = slice(ascending.start, max(ascending.stop, ascending.start), ascending.step)
        for path, leaf in _leaves(dtype):
            _at(result, path)[...] = tree[f"trajectory/{path}"][_where(axis, asked, leaf)]
    if isinstance(chosen, int):
        return result[..., 0]
    return result if chosen.step > 0 else result[..., ::-1]


def read_system(file):
    """The record, or ensemble, whose run is in a file; user functions are known by name, as in one that `numpy.load` has read.

    With a row it goes on where the run was: ``nsds.restart(nsds.read_system(file), nsds.read_trajectory(file, rows=-1))``.

    Parameters
    ----------
    file : str or Path
        HDF5 file that `nsds.stream` wrote.

    Returns
    -------
    numpy.ndarray
        The record at the start of the run; where records grew during the run, with the room that they had at its end.

    Raises
    ------
    ImportError
        h5py is not installed.
    OSError, KeyError
        No such file, or another one.

    Examples
    --------
    >>> import nsds, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "run.h5"
    ...     final = nsds.stream(nsds.examples.bouncing_ball(), file, t_end=10.0, h=5e-3)
    ...     bool(nsds.read_system(file) == nsds.examples.bouncing_ball())
    True
    """
    with _h5py("read_system").File(file, "r") as tree:
        return _read(tree, "system")


def read_settings(owner, file):
    """(settings of a run as `RunFile.open` takes them, number of its rows)."""
    with _h5py(owner).File(file, "r") as tree:
        settings = {name: _read(tree, name) if name in tree else json.loads(tree.attrs[name]) for name in _SETTINGS}
        return settings, int(tree.attrs["n_rows"])


def _h5py(owner):
    try:
        import h5py
    except ImportError:
        raise ImportError(f"{owner}: runs in files need h5py: pip install 'nsds[io]'") from None
    return h5py


def _leaves(dtype, above="", shape=()):
    """(path of a field, its dtype with the shape of what it is part of) of all fields in all depths."""
    for name in dtype.names:
        base, inner = dtype[name].base, (*shape, *dtype[name].shape)
        if base.names:
            yield from _leaves(base, f"{above}{name}/", inner)
        else:
            yield f"{above}{name}", np.dtype((base, inner))


def _at(rows, path):
    for name in path.split("/"):
        rows = rows[name]
    return rows


def _where(axis, rows, leaf):
    """Place in a dataset, whose last axes may be longer than those of the field, of some rows of all members."""
    return (*[slice(None)] * axis, rows, *(slice(n) for n in leaf.shape))


def _write(tree, name, array):
    if name in tree:
        del tree[name]
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    tree[name] = np.frombuffer(stream.getbuffer(), np.uint8)


def _read(tree, name):
    return np.load(io.BytesIO(tree[name][()].tobytes()), allow_pickle=False, max_header_size=_MAX_HEADER)
