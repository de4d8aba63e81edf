"""Methods compared: every method on every problem of a folder or list, as one structured array."""

import math
import time
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.solvers import table
from nsds.solvers.box import forms
from nsds.solvers.box.signature import solve_repeatedly
from nsds.solvers.workspaces import left_at_interrupts

PROFILE = np.dtype(
    [("problem", "U48"), ("method", "U16"), ("n", "<i8"), ("status", "<i8"), ("n_iter", "<i8"), ("residual", "<f8"), ("time", "<f8")]
)
_LONGEST = 3600.0  # seconds that one problem may be repeated with a method
_BRIEF = 0.1  # seconds: what takes longer listens for Ctrl-C
_ROWS = ("data", "indices", "indptr", "shape")  # a matrix by compressed rows
_MATRICES, _BOUNDS, _COUNTS = ("M", "H"), ("lb", "ub"), ("n", "m")  # arrays of two dimensions, those that may be infinite, whole numbers


class Problem(NamedTuple):
    """Box problem ``w = M z + q``, ``lower <= z <= upper``, ``-w ∈ N_[lower,upper](z)`` with a name.

    Parameters
    ----------
    name : str
        What tables and pictures call it.
    M : array_like (n, n) or scipy.sparse matrix
        Matrix.
    q : array_like (n,)
        Vector.
    lower, upper : float or array_like (n,)
        Bounds of z: 0 and infinity, a linear complementarity problem, if not given; both infinite of an equation.

    Examples
    --------
    >>> import nsds
    >>> problem = nsds.solvers.Problem("small", [[2.0, 1.0], [1.0, 2.0]], [-5.0, -6.0])
    >>> nsds.solvers.profile([problem], ["lemke"], seconds=0)["status"].tolist()
    [[0]]
    """

    name: str
    M: object
    q: np.ndarray
    lower: object = 0.0
    upper: object = np.inf


def read_problem(file):
    """Problem of an ``.npz`` file.

    Parameters
    ----------
    file : str or Path
        Arrays ``M`` (or ``M_data``, ``M_indices``, ``M_indptr``, ``M_shape``: compressed rows), ``q``, and ``cls``: "lcp"; "mlcp" with
        ``n`` free unknowns, which come first, as the equations do, and ``m`` others; "relay" with ``lb`` and ``ub``.

    Returns
    -------
    Problem
        Named after the file; an MLCP whose equations are not as many as its free unknowns is padded with zeros to square form.

    Raises
    ------
    ValueError
        Another class, or an array is missing; sizes that do not go together, an index beyond a matrix.
    """
    owner = f"read_problem({path_of('read_problem', file).name})"
    kind, field = read_arrays(owner, file, {"lcp": ("M", "q"), "mlcp": ("M", "q", "n", "m"), "relay": ("M", "q", "lb", "ub")})
    M, q = field["M"], field["q"]
    require_rows(owner, "M", M, q.size)
    for name in ("lb", "ub") if kind == "relay" else ():
        require_rows(owner, name, field[name], q.size)
    if kind != "mlcp" and M.shape[1] != q.size:
        raise ValueError(f"{owner}: M must have as many columns as rows, {q.size}, got shape {M.shape}")
    lower, upper = (field["lb"], field["ub"]) if kind == "relay" else (0.0, np.inf)
    if kind == "mlcp":
        n_free, m = (_whole(owner, name, field[name]) for name in "nm")
        if np.shape(M)[1:] != (n_free + m,):
            raise ValueError(f"{owner}: M must have n + m = {n_free + m} columns, got shape {np.shape(M)}")
        lower, upper = np.r_[np.full(n_free, -np.inf), np.zeros(m)], np.full(n_free + m, np.inf)
        if M.shape[0] != M.shape[1]:
            M, q, (lower, upper), _, _ = forms.squared(owner, M, q, lower, upper)
    return Problem(Path(file).stem, M, q, lower, upper)


def read_arrays(owner, file, wanted):
    """(class, arrays) of an ``.npz`` file: those that its class needs by ``wanted``; a matrix X may be stored by rows: ``X_data``, ..."""
    try:
        with np.load(file, allow_pickle=False) as stored:
            field = dict(stored)
    except (ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{owner}: not a readable .npz file of plain arrays: {error}") from None
    kind = str(field.get("cls"))
    if kind not in wanted:
        *names, last = map(repr, wanted)
        raise ValueError(f"{owner}: cls must be {', '.join(names)} or {last}, got {_checks.shortened(kind)}")
    parts = {name: [f"{name}_{part}" for part in _ROWS] if f"{name}_data" in field else [name] for name in wanted[kind]}
    missing = {part for names in parts.values() for part in names} - set(field)
    if missing:
        raise ValueError(f"{owner}: {', '.join(sorted(missing))} missing")
    return kind, {name: _stored(owner, name, *(field[part] for part in names)) for name, names in parts.items()}


def _whole(owner, name, value):
    if np.ndim(value) != 0 or not np.issubdtype(np.asarray(value).dtype, np.integer) or value < 0:
        raise ValueError(f"{owner}: {name} must be a whole number of at least 0, got {_checks.shortened(value)}")
    return int(value)


def path_of(owner, file):
    """The path of a file that is to be read."""
    return Path(_checks.path(owner, "file", file))


def require_rows(owner, name, value, size):
    """Refuse a matrix, or a vector, that has not as many rows."""
    if np.shape(value)[:1] != (size,):
        raise ValueError(f"{owner}: {name} must have {size} rows, got shape {np.shape(value)}")


def _stored(owner, name, first, *rest):
    """An array as it is used: finite numbers but for bounds and whole numbers, and a matrix of compressed rows within its shape."""
    if not rest:
        if name in _COUNTS:
            return first
        if name in _BOUNDS:
            return _checks.floats(owner, name, first, n_dims=1)
        return _checks.array(owner, name, first, n_dims=2 if name in _MATRICES else 1)
    from scipy.sparse import csr_array

    data = _checks.array(owner, f"{name}_data", first, n_dims=1)
    indices, indptr, shape = (_checks.whole_numbers(owner, f"{name}_{part}", one) for part, one in zip(_ROWS[1:], rest, strict=True))
    if shape.shape != (2,) or (shape < 0).any():
        raise ValueError(f"{owner}: {name}_shape must be two whole numbers of at least 0, got {_checks.shortened(shape.tolist())}")
    if indices.shape != data.shape:
        raise ValueError(f"{owner}: {name}_indices must have shape {data.shape}, as {name}_data, got {indices.shape}")
    if indptr.shape != (shape[0] + 1,) or indptr[0] != 0 or (np.diff(indptr) < 0).any() or indptr[-1] > data.size:
        raise ValueError(
            f"{owner}: {name}_indptr must be {shape[0] + 1} whole numbers from 0 on that do not fall, up to {data.size}, the size of "
            f"{name}_data, got {_checks.shortened(indptr.tolist())}"
        )
    beyond = np.flatnonzero((indices < 0) | (indices >= shape[1]))
    if beyond.size:
        raise ValueError(f"{owner}: {name}_indices must be in [0, {shape[1] - 1}], got {indices[beyond[0]]} at index {beyond[0]}")
    return csr_array((data, indices, indptr), shape=tuple(shape))


def profile(problems, methods=None, *, tol=1e-10, max_iter=None, seconds=0.02):
    """Run methods over problems, each from the guess 0.

    Parameters
    ----------
    problems : str, Path or sequence of Problem
        A folder, searched with its subfolders for ``.npz`` files that `read_problem` reads, or problems.
    methods : sequence of str, optional
        Names from `nsds.solvers.methods` or records from `nsds.solvers.solver`; all methods, if not given.
    tol, max_iter
        Options of those that are names.
    seconds : float
        Time to spend on the repetitions of a problem and a method, of which the fastest counts; 0: no repetition, 3600 at most.

    Returns
    -------
    numpy.ndarray (problems, methods)
        Structured: problem, method, n (unknowns), status, n_iter, residual, and time (s) of one solution in compiled code, conversions
        and allocations not included.

    Raises
    ------
    ValueError
        No problems; a file that cannot be read; an unknown method.

    Examples
    --------
    >>> import nsds
    >>> problem = nsds.solvers.Problem("small", [[2.0, 1.0], [1.0, 2.0]], [-5.0, -6.0])
    >>> result = nsds.solvers.profile([problem], ["lemke", "pgs"], seconds=0)
    >>> result.shape, result["method"][0].tolist(), result["status"][0].tolist()
    ((1, 2), ['lemke', 'pgs'], [0, 0])
    """
    problems = collected("profile", problems, {".npz": read_problem})
    if methods is not None and (not isinstance(methods, (list, tuple)) or any(method is None for method in methods)):
        given = _checks.shortened(methods)
        raise TypeError(f"profile: methods must be a list of names or of records from nsds.solvers.solver, got {given}")
    chosen = [table.asked("profile", "relay", method, tol, max_iter, {}) for method in methods or table.methods("relay")]
    return compared("profile", problems, chosen, PROFILE, seconds, _measured)


def collected(owner, problems, readers):
    """The problems of a folder and its subfolders, read by the reader of their file's suffix, or those that are given."""
    if isinstance(problems, (str, Path)):
        files = sorted(file for file in Path(problems).rglob("*") if file.suffix in readers)
        if not files:
            raise ValueError(f"{owner}: problems: no {' or '.join(readers)} files in {problems}")
        return [readers[file.suffix](file) for file in files]
    if not isinstance(problems, (list, tuple)) or any(not hasattr(problem, "name") or not hasattr(problem, "q") for problem in problems):
        given = _checks.shortened(problems)
        raise TypeError(f"{owner}: problems must be a folder or a list of problems, as nsds.solvers.Problem(name, M, q), got {given}")
    if not problems:
        raise ValueError(f"{owner}: problems must hold at least one problem, got none")
    return problems


def compared(owner, problems, methods, dtype, seconds, measured):
    """Structured array (problems, methods) of the rows ``measured(problem, method, seconds)``."""
    _checks.number(owner, "seconds", seconds, 0.0, _LONGEST)
    result = np.zeros((len(problems), len(methods)), dtype)
    for line, problem in zip(result, problems, strict=True):
        for k, method in enumerate(methods):
            line[k] = measured(problem, method, seconds)
    return result


def _measured(problem, choice, seconds):
    """One row of a profile; choice: (`Method`, options)."""
    method, options = choice
    arguments = prepared(problem, method, options, np.zeros(np.size(problem.q)))
    status, least = fastest(seconds, True, solve_repeatedly, (False, *arguments))
    info = arguments[-3]
    return problem.name, method.name, np.size(problem.q), status, info[0], info[1], least


def prepared(problem, method, options, z0):
    """Arguments of `solve_repeatedly` from solver on, for a problem, a method and a guess."""
    owner = f"profile({problem.name})"
    q = _checks.array(owner, "q", problem.q, n_dims=1)
    lower, upper = forms.bounds(owner, q.size, problem.lower, problem.upper)
    box, order = forms.box(owner, problem.M, q, lower, upper, method.reorders)
    return table.arguments_of(method, options, box, q.size, z0[order])


def fastest(seconds, may_be_left, repeated, arguments):
    """(status, seconds of one solution), the least of as many repetitions ``repeated(count, *arguments)`` as fit; at least one.

    may_be_left: whether Ctrl-C is heard while one takes long, see `nsds.solvers.workspaces.left_at_interrupts`.
    """
    work, began = math.inf if may_be_left else 0.0, time.perf_counter()
    left_at_interrupts(work, repeated, 1, *arguments)  # before the clock starts: it compiles on demand
    if time.perf_counter() - began < _BRIEF and seconds < _BRIEF:
        work = 0.0  # to begin a thread would be seen in the time
    times, count, end = [], 1, time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        began = time.perf_counter()
        status = left_at_interrupts(work, repeated, count, *arguments)
        times.append((time.perf_counter() - began) / count)
        count = max(1, min(100_000, int(0.05 * seconds / times[-1])))
    return status, min(times)
