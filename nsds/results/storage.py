"""Runs in HDF5 files (extra ``io``): the simulated record, the settings, and the rows, one dataset for each field.

/system            bytes of a .npy file: the record or ensemble; after growth with the room of the last rows; attribute model: its parts
/row               bytes of .npy files without rows, of the dtype of rows at the start (0), after the first growth (1), ...
/scheme, /solver   bytes of .npy files: options that are records
/settings          JSON: the other arguments of the run; versions with which it was computed
/trajectory/t, step, status, n_iter, residual, PART/FIELD      (members..., rows, elements..., shape of the field...)
/checksums         (stretches of rows, 1 + fields): number of the dtype of a stretch of rows, CRC-32 of each field in that dtype
attributes         n_rows: number of valid rows; n_stretch: rows of a stretch

Bytes end with their CRC-32. The file changes by transactions only (`nsds.results.transaction`): after a kill, a full disk or a
power failure it has the state of the last one. Nothing in it is trusted: links out of it, filters and damaged bytes are refused.
"""

import errno
import io
import json
import os
import platform
import secrets
import shutil
import time
import warnings
import zlib
from contextlib import closing, contextmanager, suppress
from importlib.metadata import version

import llvmlite.binding
import numpy as np

from nsds import _checks
from nsds.model.records import model_of, widened
from nsds.results.trajectories import ROW_HEAD, chosen_fields, row_dtype
from nsds.results.transaction import Transaction

try:
    import fcntl
except ImportError:  # on Windows, where a file that is open is not replaced
    fcntl = None

_MAX_HEADER = 2**31 - 1  # of a .npy file: NumPy's own limit is meant for files that are not trusted, and a long model exceeds it
_SETTINGS = ("t_end", "h", "scheme", "solver", "save_every", "fields", "on_failure", "t_eval", "until")
_FORMAT = {"libver": ("v110", "v110")}  # with checksums of HDF5's own metadata
_STRETCH_BYTES = 2**16, 2**20  # rows checked, and written, together: in short runs, in long ones
_READ_BYTES = 2**25
_TRIALS = 6  # of reading a file that changes during the read


class RunFile:
    """The file of a run in progress, locked against other writers.

    Parameters
    ----------
    owner : str
        Function that errors name.
    path : str or Path
        File to make; of a run that goes on, to continue.
    overwrite : bool
        Whether a file that exists may be replaced.

    Raises
    ------
    ImportError
        h5py is not installed.
    FileExistsError
        The file exists.
    BlockingIOError
        Another run writes it.
    """

    def __init__(self, owner, path, overwrite=False):
        self.owner, self.path, self.overwrite, self.h5py = owner, _checks.path(owner, "file", path), overwrite, _h5py(owner)
        self.place = os.path.realpath(self.path)  # links stay, their target is replaced
        self.raw, self.temporary, self.n_rows, self.n_kept, self.has_failed, self.editions = None, None, 0, 0, False, []
        with _existing(self.place) as old:
            if old is not None and not overwrite:
                raise FileExistsError(f"{owner}: the file {self.path} exists; overwrite=True replaces it, nsds.resume goes on with it")
            if old is not None:
                self._lock(old)

    @classmethod
    def resumed(cls, owner, path):
        """(the file of a run to be continued, its record, its settings, its last row or None)."""
        # 1. lock it, and complete an interrupted transaction
        self = cls(owner, path, overwrite=True)
        self.raw = open(path, "r+b", buffering=0)  # noqa: SIM115
        try:
            self._lock(self.raw)
            self.transaction = Transaction(self.raw)
            self.transaction.restore()
            # 2. what the file holds, with the rows of an unfinished stretch, which are written again with the next ones
            with _named(owner, path), self.h5py.File(self.transaction, "r", **_FORMAT) as tree:
                stored = _Stored(tree)
                n = self.n_rows = self.n_kept = stored.n_rows
                self.n_stretch, self.n_dtypes = stored.n_stretch, len(stored.dtypes)
                self.rest = stored.read(stored.dtype, range(n - n % self.n_stretch, n))
                last = stored.read(stored.dtype, range(n - 1, n))[..., 0] if n else None
                settings, self.editions = stored.settings()
        except BaseException:
            self.close()
            raise
        self.system = stored.system
        return self, stored.system, settings, last

    def _lock(self, raw):
        if not _locked(raw, exclusive=True):
            reason = f"{self.owner}: the file is in use: another run writes it, or it is being read"
            raise BlockingIOError(errno.EWOULDBLOCK, reason, self.path)

    def open(self, system, dtype, settings, n_rows, edition):
        """Creates the file of a system, for about n_rows rows of a dtype, or continues the existing one.

        Settings: those of `_SETTINGS`; records, numbers and text. Edition: see `computed_with`.
        """
        # 1. a new file, and warnings before the run
        self.n_to_come = self.n_kept + n_rows
        if self.raw is None:
            self._make(system, dtype)
        self._warn_of_another(edition)
        self._warn_of_room()
        # 2. settings and, in a new file, the datasets, as one transaction
        settings = settings | {"computed_with": self.editions}
        with self._changed() as tree:
            records = {name: value for name, value in settings.items() if isinstance(value, (np.ndarray, np.void))}
            for name, value in records.items():
                _write(tree, name, _npy(value))
            _write(tree, "settings", json.dumps({name: value for name, value in settings.items() if name not in records}).encode())
            if not self.n_kept:
                tree.attrs["n_rows"], tree.attrs["n_stretch"] = 0, self.n_stretch
                self._describe(tree, dtype)
                leaves = list(_leaves(dtype))
                for path, leaf in leaves:
                    self._create(tree, f"trajectory/{path}", (*system.shape, 0, *leaf.shape), self.n_stretch, system.ndim, leaf.base)
                self._create(tree, "checksums", (0, 1 + len(leaves)), 64, 0, "<u4")

    def _warn_of_another(self, edition):
        """Warns, when a run is continued, of differences between the versions with which it was computed."""
        if self.editions and self.editions[-1] != edition:
            last = self.editions[-1]
            different = [f"{name} {last.get(name)} then, {value} now" for name, value in edition.items() if last.get(name) != value]
            message = f"{self.owner}: the rows in {self.path} were computed with other code: {'; '.join(different)}"
            warnings.warn(f"{message}. Those that follow may differ in their last bits", RuntimeWarning, stacklevel=5)
        if self.editions[-1:] != [edition]:
            self.editions = [*self.editions, edition]

    def _warn_of_room(self):
        """Warns before a run whose rows will not fit on the disk."""
        free, needed = shutil.disk_usage(os.path.dirname(self.place)).free, (self.n_to_come - self.n_kept) * self._width
        if needed > free:
            message = f"{self.owner}: all rows of the run need {_size(needed)}, {_size(free)} are free for {self.path}"
            warnings.warn(f"{message}: save_every and fields choose fewer", RuntimeWarning, stacklevel=5)

    @property
    def _width(self):
        """Bytes of a row of all members."""
        return self.rest.itemsize * self.system.size

    def _remove_remains(self, folder, name):
        """Removes new files of runs that were killed before their first rows."""
        for one in os.listdir(folder) if fcntl else ():
            if one.startswith(f".{name}.") and one.endswith(".part"):
                with suppress(OSError), open(os.path.join(folder, one), "rb", buffering=0) as raw:
                    if _locked(raw, exclusive=True):
                        os.unlink(os.path.join(folder, one))

    def _make(self, system, dtype):
        """Creates a file beside its final place, which it takes with its first rows."""
        # 1. stretches: long enough that checksums are few, short enough that a kill loses little
        self.system, self.rest, self.n_dtypes = system, np.zeros((*system.shape, 0), dtype), 0
        low, high = _STRETCH_BYTES
        self.n_stretch = max(1, min(max(low, self.n_to_come * self._width // 16), high) // self._width)
        # 2. a hidden file with a random name, locked
        folder, name = os.path.split(self.place)
        temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.part")
        try:
            self.raw = open(temporary, "x+b", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise type(error)(error.errno, f"{self.owner}: no file can be made here: {error.strerror}", self.path) from None
        self.temporary = temporary
        _locked(self.raw, exclusive=True)
        self._remove_remains(folder, name)
        self.transaction = Transaction(self.raw)

    @staticmethod
    def _create(tree, path, shape, n_chunk, axis, dtype):
        chunk = [max(1, n) for n in shape]
        chunk[axis] = n_chunk
        tree.create_dataset(path, shape, dtype, maxshape=(None,) * len(shape), chunks=tuple(chunk))

    @contextmanager
    def _changed(self, commit=False):
        """The tree of the file, changed as a whole: in memory, and with ``commit`` on the disk."""
        before = self.transaction.changes()
        try:
            with self.h5py.File(self.transaction, "r+" if self.transaction.seek(0, os.SEEK_END) else "w", **_FORMAT) as tree:
                yield tree
            if commit:
                self.transaction.commit()
                if self.temporary is not None:
                    self._publish()
        except BaseException:
            if not self.transaction.is_broken:
                self.transaction.go_back(before)
            raise

    def _describe(self, tree, dtype):
        _write(tree, "system", _npy(self.system))
        tree["system"].attrs["model"] = np.bytes_("\n".join(" ".join(line) for line in model_of(self.system)))
        _write(tree, f"row/{self.n_dtypes}", _npy(np.zeros(0, dtype)))
        self.n_dtypes += 1

    def write(self, first, rows):
        """Writes rows (members, rows) of the run at their index; on return they are on the disk and valid."""
        self._append(first, rows)

    def secure(self, first, rows):
        """As `write`, for the first rows of a block that is not full: they are written again with the block."""
        self._append(first, rows)

    def _append(self, first, rows):
        first += max(0, self.n_kept - 1)
        # rows of the file that come again are skipped; after a failure as many as fit are stored
        start, stop = max(first, self.n_rows), first + rows.shape[1]
        if start >= stop:
            return
        try:
            self._store(rows[:, start - first :])
        except OSError as error:
            self.has_failed = True
            reason = self._reason(error, stop)
            if not isinstance(error, (FileExistsError, BlockingIOError)):
                self._store_what_fits(rows[:, start - first :])
            held = f"the file holds {self.n_rows} rows, from which nsds.resume goes on" if self.n_rows else "nothing was changed"
            raise type(error)(error.errno, f"{self.owner}: {reason}; {held}", self.path) from error

    def _store(self, rows):
        """Appends rows (members, rows)."""
        # 1. rows of the last, unfinished stretch once more
        system, axis, n = self.system, self.system.ndim, self.n_stretch
        rows = np.concatenate([self.rest, rows.reshape(*system.shape, rows.shape[1])], axis)
        begin = self.n_rows - self.rest.shape[axis]
        stop = begin + rows.shape[axis]
        # 2. data of each field, and checksums of each stretch, as one transaction
        stretches = range(begin // n, -(-stop // n))
        sums = np.zeros((len(stretches), 1 + len(list(_leaves(rows.dtype)))), np.uint32)
        sums[:, 0] = self.n_dtypes - 1
        with self._changed(commit=True) as tree:
            for column, (path, leaf) in enumerate(_leaves(rows.dtype), 1):
                data, values = tree[f"trajectory/{path}"], np.ascontiguousarray(_at(rows, path))
                data.resize(stop, axis)
                data[_where(axis, slice(begin, stop), leaf)] = values
                sums[:, column] = _checksums(values, axis, n)
            tree["checksums"].resize(stretches.stop, 0)
            tree["checksums"][stretches.start :] = sums
            tree.attrs.modify("n_rows", np.int64(stop))
        # 3. rows of the stretch that is now unfinished
        self.n_rows, self.rest = stop, rows[_from(axis, stop // n * n - begin)].copy()

    def _store_what_fits(self, rows):
        """Writes some of the rows to a full disk, at least half of those for which there is room."""
        while rows.shape[1] > 1 and not self.transaction.is_broken:
            rows = rows[:, : rows.shape[1] // 2]
            with suppress(OSError):
                return self._store(rows)
        return None

    def _reason(self, error, n_rows):
        """Reason why rows up to a number could not be written."""
        if isinstance(error, (FileExistsError, BlockingIOError)):
            return error.strerror
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return f"writing failed: {error.strerror}"
        free, needed = shutil.disk_usage(os.path.dirname(self.place)).free, self.transaction.n_needed
        more = max(0, self.n_to_come - n_rows) * self._width
        return f"{error.strerror}: {_size(free)} are free, the next rows need {_size(needed)}, all that are to come {_size(needed + more)}"

    def _publish(self):
        """Gives the new file its name, and replaces another file only if nobody writes that one."""
        # 1. replace the old file
        if os.name == "nt":  # where files that are open keep their names
            self.raw.close()
        with _existing(self.place) as old:
            if old is not None and not self.overwrite:
                raise FileExistsError(errno.EEXIST, "another program has made the file meanwhile")
            if old is not None:
                self._lock(old)
            os.replace(self.temporary, self.place)
        self.temporary = None
        # 2. make the new name durable: on POSIX the folder is synchronised, on Windows the file is opened again
        if os.name == "nt":
            self.raw = open(self.place, "r+b", buffering=0)  # noqa: SIM115
            self.transaction = Transaction(self.raw)
        else:
            folder = os.open(os.path.dirname(self.place), os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def widen(self, records_dtype, dtype):
        """Makes room for rows of a wider dtype; new entries of earlier rows are zero."""
        self.system, self.rest = widened(self.system, records_dtype), widened(self.rest, dtype)
        with self._changed() as tree:
            for path, leaf in _leaves(dtype):
                data = tree[f"trajectory/{path}"]
                data.resize((*data.shape[: self.system.ndim + 1], *leaf.shape))
            self._describe(tree, dtype)

    def close(self):
        """Closes the file; a new one without rows is removed."""
        if self.raw is not None:
            self.raw.close()
            self.raw = None
        if self.temporary is not None:
            os.unlink(self.temporary)
            self.temporary = None


class _Stored:
    """Contents of a tree: system, dtypes of the rows from the first to the last, n_rows, n_stretch."""

    def __init__(self, tree):
        self.tree = tree
        self.system = _from_npy(_read(tree, "system"))
        self.dtypes = [_from_npy(_read(tree, f"row/{k}")).dtype for k in range(len(_member(tree, "row")))]
        self.dtype = self.dtypes[-1]
        self.n_rows, self.n_stretch = int(tree.attrs["n_rows"]), int(tree.attrs["n_stretch"])
        model_of(self.system)

    def settings(self):
        """(settings, editions) of the run."""
        settings = json.loads(_read(self.tree, "settings"))
        settings |= {name: _from_npy(_read(self.tree, name)) for name in ("scheme", "solver") if name not in settings}
        settings = {"t_eval": None, "until": None} | settings  # which earlier files do not have
        return {name: settings[name] for name in _SETTINGS}, settings["computed_with"]

    def read(self, dtype, chosen):
        """Rows (members..., rows) with the fields of a dtype, for an ascending range of rows."""
        # 1. memory, and the checksums of all stretches
        shape, n = self.system.shape, self.n_stretch
        _require_memory(np.prod(shape, dtype=object) * len(chosen) * dtype.itemsize)
        result, axis = np.empty((*shape, len(chosen)), dtype), len(shape)
        held = [dict(_leaves(one)) for one in self.dtypes]
        order = {path: column for column, path in enumerate(held[-1], 1)}
        sums = _dataset(self.tree, "checksums", "<u4", (-(-self.n_rows // n), 1 + len(order)))[()]
        # 2. each field in groups of whole stretches, verified, of which the chosen rows are copied
        for path, leaf in _leaves(dtype):
            data = _dataset(self.tree, f"trajectory/{path}", leaf.base, (*shape, self.n_rows, *leaf.shape))
            step = max(1, _READ_BYTES // max(1, n * int(np.prod(shape)) * leaf.itemsize))
            for group, rows in _groups(chosen, n, step):
                values = data[_where(axis, slice(group.start * n, min(group.stop * n, self.n_rows)), leaf)]
                self._verify(values, path, axis, [one[path].shape for one in held], sums[group.start : group.stop, (0, order[path])])
                part = _from(axis, slice(chosen[rows.start] - group.start * n, chosen[rows.stop - 1] - group.start * n + 1, chosen.step))
                _at(result, path)[_from(axis, rows)] = values[part]
        return result

    def _verify(self, values, path, axis, shapes, sums):
        """Compares stretches of rows with their checksums (dtype, checksum)."""
        for k, (number, expected) in enumerate(sums.tolist()):
            rows = values[_from(axis, slice(k * self.n_stretch, (k + 1) * self.n_stretch))]
            # a stretch of an earlier, narrower dtype has its checksum in that dtype, and zeros in the rest
            place = (..., *(slice(n) for n in shapes[number]))
            narrow = np.ascontiguousarray(rows[place])
            widened_again = narrow
            if narrow.size < rows.size:
                widened_again = np.zeros(rows.shape, rows.dtype)
                widened_again[place] = narrow
            if zlib.crc32(narrow) != expected or (narrow.size < rows.size and widened_again.tobytes() != rows.tobytes()):
                raise ValueError(f"{path} does not agree with its checksum")


def _groups(chosen, n, step):
    """(group of at most ``step`` stretches of n rows; range of the indices in an ascending range of rows that lie there)."""
    at, step = 0, 1 if chosen.step > n else step
    while at < len(chosen):
        first = chosen[at] // n
        stop = at + max(1, -(-((first + step) * n - chosen[at]) // chosen.step))
        stop = min(stop, len(chosen))
        yield slice(first, chosen[stop - 1] // n + 1), slice(at, stop)
        at = stop


def read_trajectory(file, fields=None, rows=slice(None)):
    """Rows of a run that `nsds.stream` wrote, with the bits that `nsds.simulate` would have returned.

    A file can be read while the run goes on, after it was killed, and when the disk was full: it holds the rows up to the last block.

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
    OSError
        No such file, another one, or a damaged one.
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

    # 1. arguments
    if not isinstance(rows, (slice, int, np.integer)) or isinstance(rows, bool):
        raise TypeError(f"read_trajectory: rows must be a whole number or a slice, got {_checks.shortened(rows)}")
    listed = [fields] if fields is None or isinstance(fields, str) else fields
    if not isinstance(listed, (list, tuple)) or not all(path is None or isinstance(path, str) for path in listed):
        raise TypeError(f'read_trajectory: fields must be texts such as "ball" or "ball.q", got {_checks.shortened(fields)}')

    # 2. fields and rows, once the file is known
    def chosen_rows(stored):
        dtype = stored.dtype
        if fields is not None:
            held = {part: dtype[part].base.names for part in dtype.names[len(ROW_HEAD) :]}
            dtype = row_dtype(dtype, chosen_fields(fields, held, held))
        try:
            chosen = range(stored.n_rows)[rows]
        except (IndexError, TypeError, ValueError) as error:
            raise type(error)(f"read_trajectory: rows: the file has {stored.n_rows}, got {rows}: {error}") from None
        if isinstance(chosen, int):
            return lambda: stored.read(dtype, range(chosen, chosen + 1))[..., 0]
        if chosen.step > 0:
            return lambda: stored.read(dtype, chosen)
        return lambda: stored.read(dtype, chosen[::-1])[..., ::-1]

    return _of_file("read_trajectory", file, chosen_rows)


def read_system(file):
    """The record, or ensemble, whose run is in a file; user functions are identified by name, as in one read by `numpy.load`.

    Nothing is imported for it: see ``functions`` of `nsds.simulate`.

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
    OSError
        No such file, another one, or a damaged one.

    Examples
    --------
    >>> import nsds, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "run.h5"
    ...     final = nsds.stream(nsds.examples.bouncing_ball(), file, t_end=10.0, h=5e-3)
    ...     bool(nsds.read_system(file) == nsds.examples.bouncing_ball())
    True
    """
    return _of_file("read_system", file, lambda stored: lambda: stored.system)


def _of_file(owner, file, choose):
    """Result of ``choose(stored)``, which checks the request and returns a function that reads it.

    While a run goes on the file may change during the read, which the checksums detect: then it is read again.
    """
    h5py, file = _h5py(owner), _checks.path(owner, "file", file)
    # errors while another process writes may be a change during the read: try again, later each time
    for trial in range(_TRIALS):
        with open(file, "rb", buffering=0) as raw:
            is_changing = not _locked(raw, exclusive=False)
            try:
                with _named(owner, file):
                    tree = h5py.File(Transaction(raw), "r", **_FORMAT)
                with closing(tree):
                    with _named(owner, file):
                        stored = _Stored(tree)
                    read = choose(stored)
                    with _named(owner, file):
                        return read()
            except OSError:
                if not is_changing or trial == _TRIALS - 1:
                    raise
        time.sleep(0.05 * 2**trial)
    return None


@contextmanager
def _named(owner, file):
    """Turns any error while a file is read into an OSError that names it: HDF5 and damaged contents may fail in any way."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise OSError(f"{owner}: {os.fspath(file)} is damaged, or is no file that nsds.stream wrote: {reason}") from error


def computed_with(kernels):
    """Versions on which the bits of a run depend besides its record and arguments; kernels: fingerprint of the compiled code."""
    versions = {name: version(name) for name in ("nsds", "numpy", "numba", "llvmlite")}
    return versions | {"kernels": kernels, "processor": f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()}"}


def _h5py(owner):
    _checks.require_package("h5py", "h5py", f"{owner}: runs in files need h5py")
    import h5py

    return h5py


def _locked(raw, exclusive):
    """Locks a file while it is open; False if another process holds the lock. True if there are no locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(raw, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system that does not know locks
        return True
    return True


@contextmanager
def _existing(path):
    """The file of a path, open; None if there is none."""
    try:
        raw = open(path, "rb", buffering=0)  # noqa: SIM115
    except FileNotFoundError:
        yield None
        return
    with raw:
        yield raw


def _size(n_bytes):
    return f"{n_bytes / 1e6:.3g} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:.3g} GB"


def _require_memory(n_bytes):
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return
    if n_bytes > total:
        raise MemoryError(f"rows of {_size(n_bytes)} are more than the memory of this machine: pass fields or rows")


def _leaves(dtype, above="", shape=()):
    """(path of a field, its dtype with the shape of its parents) of all fields at all depths."""
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
    """Index of some rows of all members in a dataset whose last axes may be longer than those of the field."""
    return (*[slice(None)] * axis, rows, *(slice(n) for n in leaf.shape))


def _from(axis, rows):
    """Index of some rows of all members; a number means all rows from there on."""
    return (*[slice(None)] * axis, rows if isinstance(rows, slice) else slice(rows, None))


def _checksums(values, axis, n):
    """CRC-32 of stretches of n rows of values (members..., rows, ...)."""
    starts = range(0, values.shape[axis], n)
    return [zlib.crc32(np.ascontiguousarray(values[_from(axis, slice(start, start + n))])) for start in starts]


def _npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def _from_npy(data):
    return np.load(io.BytesIO(data), allow_pickle=False, max_header_size=_MAX_HEADER)


def _write(tree, name, data):
    if name in tree:
        del tree[name]
    tree[name] = np.frombuffer(data + zlib.crc32(data).to_bytes(4, "little"), np.uint8)


def _read(tree, name):
    data = _dataset(tree, name, np.uint8)[()].tobytes()
    data, checksum = data[:-4], data[-4:]
    if zlib.crc32(data).to_bytes(4, "little") != checksum:
        raise ValueError(f"{name} does not agree with its checksum")
    return data


def _dataset(tree, path, dtype, least=()):
    """A dataset of a tree stored in the file itself, as `RunFile` writes it, of at least a given shape."""
    tree = _member(tree, path)
    if not hasattr(tree, "dtype") or tree.dtype != np.dtype(dtype):
        raise ValueError(f"{path} is expected to hold numbers of type {np.dtype(dtype)}")
    created = tree.id.get_create_plist()
    if tree.is_virtual or tree.external or created.get_nfilters():
        raise ValueError(f"{path} is stored elsewhere, or in a way of its own, which is not read")
    if least and (tree.ndim != len(least) or any(held < wanted for held, wanted in zip(tree.shape, least, strict=True))):
        raise ValueError(f"{path} has shape {tree.shape}, expected at least {least}")
    return tree


def _member(tree, path):
    """The object at a path in the file itself."""
    h5py = _h5py("nsds.results.storage")
    for name in path.split("/"):
        if tree.id.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"{path} is a link to another place, which is not followed")
        tree = tree[name]
    return tree
