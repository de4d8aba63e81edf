"""Contact problems in the HDF5 files of FCLIB, the collection of https://frictionalcontactlibrary.github.io (extra ``io``).

    /fclib_local   spacedim, W, vectors/(q, mu), and with equations V, R, vectors/s:  u = W r + V l + q,  V^T r + R l + s = 0
    /fclib_global  spacedim, M, H, vectors/(f, w, mu), and with equations G, vectors/b:  M v = H r + G l + f,  u = H^T v + w,  G^T v + b = 0
    /solution      u, r, of global problems v, with equations l;  /guesses/number_of_guesses and groups 1, 2, ... of the same
    info in either group: title, description, math_info

A matrix is a group of m, n, nz, nzmax, p, i, x: for ``nz >= 0`` that many triplets of row p, column i and x; -1: compressed columns; -2:
compressed rows, p the pointers in both. Whole numbers are int32 in vectors of one entry, as FCLIB's own C code reads and writes them.
"""

import errno
import io
import os
import secrets
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.solvers.box import forms
from nsds.solvers.contact.forms import without_equations
from nsds.solvers.problems.contact_problem import ContactProblem, checked_problem
from nsds.solvers.problems.profiling import path_of

_COLUMNS, _ROWS = -1, -2  # nz of compressed matrices


class FclibSolution(NamedTuple):
    """Reactions, relative velocities and, of global problems, velocities."""

    r: np.ndarray
    u: np.ndarray
    v: object = None


class FclibFile(NamedTuple):
    """Contents of a file: problem, solution or None, guesses, and its title, description, math_info and whole numbers."""

    problem: ContactProblem
    solution: object
    guesses: list
    info: dict


def read_fclib(file):
    """Contact problem of an FCLIB file, with its solution and guesses.

    Parameters
    ----------
    file : str or Path
        HDF5 file with a local or a global problem, or both.

    Returns
    -------
    FclibFile
        NamedTuple (problem, solution, guesses, info). The problem is named after the file. Of a global problem with equations ``G^T v + b
        = 0`` their multipliers l are further velocities, ``[[M, -G], [G^T, 0]] (v, l) = (f, -b) + (H, 0) r``, also in solution and
        guesses; of a local one they are eliminated.

    Raises
    ------
    ImportError
        h5py is not installed.
    ValueError
        Not an HDF5 file, or a damaged one; no problem in it, something is missing or lies in another file, sizes do not match, R is
        singular.

    Examples
    --------
    >>> import nsds, pathlib, tempfile
    >>> problem = nsds.solvers.generate_contacts("stack", 8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nsds.solvers.write_fclib(pathlib.Path(folder) / "boxes.hdf5", problem)
    ...     stored = nsds.solvers.read_fclib(pathlib.Path(folder) / "boxes.hdf5")
    >>> stored.problem.name, stored.info["title"], (stored.problem.W != problem.W).sum().item()
    ('boxes', 'stack-8-0-fc3d', 0)
    """
    owner = f"read_fclib({path_of('read_fclib', file).name})"
    try:
        opened = _h5py().File(file, "r")
    except FileNotFoundError:
        raise
    except (OSError, TypeError) as error:
        raise ValueError(f"{owner}: not an HDF5 file: {error}") from None
    with opened as tree, _named(owner):
        groups = [_member(owner, tree, name) for name in ("fclib_local", "fclib_global") if name in tree]
        if not groups:
            raise ValueError(f"{owner}: neither fclib_local nor fclib_global in the file")
        fields, info = {}, {}
        for group in groups:
            found = (_read_local if group.name == "/fclib_local" else _read_global)(owner, group)
            if "mu" in fields and not np.array_equal(fields["mu"], found["mu"]):
                raise ValueError(f"{owner}: mu of fclib_local and fclib_global differ")
            fields, info = fields | found, info | _read_info(owner, group)
        solution = _read_solution(owner, _member(owner, tree, "solution")) if "solution" in tree else None
        listed = _member(owner, tree, "guesses") if "guesses" in tree else None
        count = 0 if listed is None else _whole(owner, listed, "number_of_guesses")
        guesses = [_read_solution(owner, _member(owner, listed, str(k + 1))) for k in range(count)]
    problem = ContactProblem(Path(file).stem, fields.pop("W", None), fields.pop("q", None), **fields)
    return FclibFile(problem, solution, guesses, info)


def write_fclib(file, problem, solution=None, guesses=()):
    """Write a contact problem as an FCLIB file, over what there is, which is replaced once all has been written.

    Parameters
    ----------
    file : str or Path
        HDF5 file to write.
    problem : ContactProblem
        Without rolling friction, with at least one contact; the forms that it has are written, with its name as title.
    solution : optional
        Anything with vectors r and u and, where the problem has a global form, v: an `FclibSolution`, a result of `solve_gfc3d`.
    guesses : sequence
        As solution.

    Raises
    ------
    ImportError
        h5py is not installed.
    ValueError
        Rolling friction, no contacts, wrong shapes, NaN or infinity, or a solution without v.

    Examples
    --------
    >>> import nsds, pathlib, tempfile
    >>> p = nsds.solvers.generate_contacts("pile", 4, d=2)
    >>> s = nsds.solvers.solve_gfc2d(p.M, p.H, p.f, p.w, p.mu)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nsds.solvers.write_fclib(pathlib.Path(folder) / "pile.hdf5", p, s, guesses=[s])
    ...     stored = nsds.solvers.read_fclib(pathlib.Path(folder) / "pile.hdf5")
    >>> (stored.solution.r == s.r).all().item(), len(stored.guesses)
    (True, 1)
    """
    owner, h5py = "write_fclib", _h5py()
    checked_problem(owner, problem)
    if problem.mu_r is not None or problem.d not in (2, 3) or not problem.n_contacts:
        raise ValueError(f"{owner}: FCLIB holds contacts of 2 or 3 components without rolling friction, got {problem.name!r}")
    size = problem.d * problem.n_contacts
    vectors, matrices = {"mu": (problem.mu, problem.n_contacts)}, {}
    sizes = {"r": size, "u": size}
    if problem.M is not None:
        sizes["v"] = np.size(problem.f)
        matrices["fclib_global"] = {"M": (sizes["v"], sizes["v"]), "H": (sizes["v"], size)}
        vectors |= {"f": (problem.f, sizes["v"]), "w": (problem.w, size)}
    if problem.W is not None:
        matrices["fclib_local"] = {"W": (size, size)}
        vectors["q"] = problem.q, size
    vectors = {name: _checks.array(owner, name, value, shape=(n,)) for name, (value, n) in vectors.items()}
    matrices = {
        group: {name: forms.matrix(owner, name, getattr(problem, name), shape) for name, shape in shapes.items()}
        for group, shapes in matrices.items()
    }
    if not isinstance(guesses, (list, tuple)):
        raise TypeError(f"{owner}: guesses must be a list of solutions, got {_checks.shortened(guesses)}")
    solutions = {f"guesses/{k + 1}": guess for k, guess in enumerate(guesses)} | ({} if solution is None else {"solution": solution})
    solutions = {place: _checked_solution(owner, place, value, sizes) for place, value in solutions.items()}
    stream = io.BytesIO()
    with h5py.File(stream, "w") as tree:
        for name, parts in matrices.items():
            group = tree.create_group(name)
            group["spacedim"] = np.array([problem.d], np.int32)
            group["info/title"] = np.array(problem.name.encode(), f"S{len(problem.name.encode()) + 1}")  # C wants a zero at the end
            for part, matrix in parts.items():
                _write_matrix(group.create_group(part), matrix)
            for part in ("q", "mu") if name == "fclib_local" else ("f", "w", "mu"):
                group[f"vectors/{part}"] = vectors[part]
        if len(guesses):
            tree["guesses/number_of_guesses"] = np.array([len(guesses)], np.int32)
        for place, value in solutions.items():
            for part, x in value.items():
                tree[f"{place}/{part}"] = x
    _replace(file, stream.getbuffer())


def _replace(file, data):
    """Have a file hold some bytes; on a full disk it stays as it was."""
    place = Path(os.path.realpath(_checks.path("write_fclib", "file", file)))
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, "write_fclib: file must not be a folder", str(file))
    new = place.with_name(f".{secrets.token_hex(8)}.part")
    try:
        new.write_bytes(data)
        os.replace(new, place)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def _named(owner):
    """Whatever HDF5 raises is a ValueError that names the file."""
    try:
        yield
    except (ValueError, TypeError, OSError, KeyError, IndexError, RuntimeError) as error:
        if str(error).startswith(owner):
            raise
        raise ValueError(f"{owner}: the file is damaged, or holds no contact problem: {error}") from error


def _h5py():
    _checks.require_package("h5py", "h5py", "FCLIB files need h5py")
    import h5py

    return h5py


def _member(owner, group, name):
    if name not in group:
        raise ValueError(f"{owner}: {group.name.rstrip('/')}/{name} is missing")
    h5py, found = _h5py(), None
    if isinstance(group.get(name, getlink=True), h5py.HardLink):
        found = group[name]
    if found is None or (isinstance(found, h5py.Dataset) and (found.is_virtual or found.external)):
        raise ValueError(f"{owner}: {group.name.rstrip('/')}/{name} lies elsewhere, which is not read")
    return found


def _vector(owner, group, name, size):
    return _checks.array(owner, f"{group.name}/{name}", np.ravel(_member(owner, group, name)), shape=(size,))


def _whole(owner, group, name):
    given = np.ravel(_member(owner, group, name))
    if given.dtype.kind not in "iu" or given.size != 1:
        raise ValueError(f"{owner}: {group.name}/{name} must be a whole number, got {_checks.shortened(given.tolist())}")
    return int(given[0])


def _read_matrix(owner, group, name, shape=None):
    """Sparse rows of the matrix in a subgroup; arrays may be longer than what they hold."""
    from scipy.sparse import coo_array, csc_array, csr_array

    group = _member(owner, group, name)
    m, n, nz = (_whole(owner, group, field) for field in ("m", "n", "nz"))
    if shape is not None and (m, n) != shape:
        raise ValueError(f"{owner}: {group.name} must have shape {shape}, got {(m, n)}")
    p, i, x = (np.ravel(_member(owner, group, field)) for field in ("p", "i", "x"))
    if nz not in (_COLUMNS, _ROWS) and nz < 0:
        raise ValueError(f"{owner}: nz of {group.name} must be -2, -1 or a number of triplets, got {nz}")
    for field, values in (("p", p), ("i", i)):
        if values.dtype.kind not in "iu" or (nz < 0 and field == "p" and not values.size):
            raise ValueError(f"{owner}: {group.name}/{field} must be whole numbers, got {_checks.shortened(values.tolist())}")
    count = nz if nz >= 0 else int(p[-1])
    if not 0 <= count <= min(i.size, x.size, p.size if nz >= 0 else i.size):
        raise ValueError(f"{owner}: {group.name} must hold {count} entries, got {x.size} in x, {i.size} in i")
    i, x = i[:count], _checks.array(owner, f"{group.name}/x", x[:count])
    try:
        if nz == _COLUMNS:
            matrix = csc_array((x, i, p), shape=(m, n))
        elif nz == _ROWS:
            matrix = csr_array((x, i, p), shape=(m, n))
        else:
            matrix = coo_array((x, (p[:count], i)), shape=(m, n))
        if nz < 0:
            matrix.check_format()
    except ValueError as error:
        raise ValueError(f"{owner}: {group.name} is not a matrix: {error}") from None
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    return matrix


def _spacedim(owner, group, size):
    d = _whole(owner, group, "spacedim")
    if d not in (2, 3) or size % d:
        raise ValueError(f"{owner}: {group.name}/spacedim must be 2 or 3 and divide the number of rows {size}, got {d}")
    return d


def _read_local(owner, group):
    """{W, q, mu}, without the multipliers of equations: ``W - V R^-1 V^T``, ``q - V R^-1 s``."""
    W = _read_matrix(owner, group, "W")
    size, vectors = W.shape[0], _member(owner, group, "vectors")
    mu = _vector(owner, vectors, "mu", size // _spacedim(owner, group, size))
    q = _vector(owner, vectors, "q", size)
    if "V" in group:
        s = np.ravel(_member(owner, vectors, "s"))
        V, R = _read_matrix(owner, group, "V", (size, s.size)), _read_matrix(owner, group, "R", (s.size, s.size))
        W, q = without_equations(f"{owner}, of {group.name}/R", W, V, V.T, R, q, _vector(owner, vectors, "s", s.size))
    return {"W": W, "q": q, "mu": mu}


def _read_global(owner, group):
    """{M, H, f, w, mu}, with the multipliers of equations as further velocities."""
    from scipy.sparse import block_array, csr_array

    M = _read_matrix(owner, group, "M")
    H, vectors = _read_matrix(owner, group, "H"), _member(owner, group, "vectors")
    n, size = H.shape
    mu = _vector(owner, vectors, "mu", size // _spacedim(owner, group, size))
    f, w = _vector(owner, vectors, "f", n), _vector(owner, vectors, "w", size)
    if "G" in group:
        b = np.ravel(_member(owner, vectors, "b"))
        G = _read_matrix(owner, group, "G", (n, b.size))
        M, f = block_array([[M, -G], [G.T, None]], format="csr"), np.concatenate([f, -_vector(owner, vectors, "b", b.size)])
        H = block_array([[H], [csr_array((b.size, size))]], format="csr")
    return {"M": M, "H": H, "f": f, "w": w, "mu": mu}


def _read_solution(owner, group):
    r = np.ravel(_member(owner, group, "r"))
    v = np.concatenate([np.ravel(_member(owner, group, part)) for part in ("v", "l") if part in group]) if "v" in group else None
    return FclibSolution(r, _vector(owner, group, "u", r.size), v)


def _read_info(owner, group):
    info = _member(owner, group, "info") if "info" in group else {}
    texts = {name: np.ravel(_member(owner, info, name))[0].decode(errors="replace") for name in info}
    return texts | {name: int(np.ravel(value)[0]) for name, value in getattr(info, "attrs", {}).items()}


def _write_matrix(group, matrix):
    """Compressed columns."""
    from scipy.sparse import csc_array

    columns = csc_array(matrix)
    columns.sum_duplicates()
    for name, value in zip(("m", "n", "nz", "nzmax"), (*columns.shape, _COLUMNS, columns.nnz), strict=True):
        group[name] = np.array([value], np.int32)
    group["p"], group["i"], group["x"] = columns.indptr.astype(np.int32), columns.indices.astype(np.int32), columns.data


def _checked_solution(owner, place, solution, sizes):
    values = {name: getattr(solution, name, None) for name in sizes}
    for name, value in values.items():
        if value is None:
            raise ValueError(f"{owner}: {place} must have {name}, got {_checks.shortened(solution)}")
    return {name: _checks.array(owner, f"{name} of {place}", value, shape=(sizes[name],)) for name, value in values.items()}
