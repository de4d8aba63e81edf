"""Records: a system is one NumPy record whose dtype is nested and named, every leaf 8 bytes wide.

The head of a record holds the clock and the outcome of the last step; ``model`` lists the parts as text, one part a line;
``gravity`` is a field if it was given.
"""

from functools import lru_cache

import numpy as np

from nsds._checks import shortened
from nsds.model.system_kinds import NAMES

HEAD = [("t", "<f8"), ("t0", "<f8"), ("step", "<i8"), ("status", "<i8"), ("n_iter", "<i8"), ("residual", "<f8")]
T, T0, STEP, STATUS, N_ITER, RESIDUAL = range(6)  # entries of the head
_TEXT = 128  # bytes: room for the name of another function, or of a longer model
GRAVITY = "gravity"  # field after the model, optional: an acceleration in space (3,)
RESERVED = {name for name, _ in HEAD} | {"model", GRAVITY}


def pack(fields, count):
    """Structured array of the given fields: shape () or (count,); a dict of fields makes a nested record, a str a text leaf."""
    record = np.zeros(() if count is None else (count,), _dtype(fields, 0 if count is None else 1))
    _fill(record, fields)
    return record


def _dtype(fields, n_leading):
    return np.dtype([(name, *leaf(value, n_leading)) for name, value in fields.items()])


def leaf(value, n_leading):
    """(type,) or (type, shape) of a field of a dtype, for a value whose first ``n_leading`` axes count records."""
    if isinstance(value, dict):
        return (_dtype(value, n_leading),)
    if isinstance(value, str):
        return (f"S{max(_TEXT, -8 * (-len(value.encode()) // 8))}",)
    kind = "<i8" if value.dtype.kind == "i" else "<f8"
    return (kind, value.shape[n_leading:]) if value.ndim > n_leading else (kind,)


def _fill(record, fields):
    for name, value in fields.items():
        if isinstance(value, dict):
            _fill(record[name], value)
        else:
            record[name] = value.encode() if isinstance(value, str) else value


def model_of(records):
    """[(name, kind, further words...), ...] of the parts of a record, or of an ensemble of equal models."""
    dtype = getattr(records, "dtype", None) if isinstance(records, (np.ndarray, np.void)) else None
    if dtype is None or "model" not in (dtype.names or ()) or dtype["model"].kind != "S":
        given, way = type(records).__name__, ""
        if isinstance(records, (list, tuple)):
            way = "; numpy.stack makes an ensemble of records"
        elif dtype is not None and "residual" in (dtype.names or ()):
            given, way = "rows of a trajectory", "; the record comes first where a function takes both"
        raise TypeError(f"expected a record made by nsds.system, got {given}{way}")
    models = np.asarray(records["model"]).reshape(-1)
    if models.size == 0:
        raise ValueError("an ensemble needs at least one record, got none")
    if models.size > 1 and (models != models[0]).any():
        raise ValueError(f"all records of an ensemble must have the same model, member {np.argmax(models != models[0])} differs")
    return lines_of(models[0])


@lru_cache(maxsize=64)
def lines_of(model):
    """The lines of a model, split into words: names and kinds of parts."""
    try:
        lines = tuple(tuple(line.split()) for line in model.decode().split("\n"))
    except UnicodeDecodeError:
        lines = ((),)
    if not all(len(line) > 1 and line[0].isidentifier() for line in lines) or len({line[0] for line in lines}) < len(lines):
        raise ValueError(f"the record's model must have a line for each part, its name and what it is, got {shortened(model)}")
    return lines


def are_circuits(records):
    """Whether records are those of circuits."""
    return any(kind == NAMES for _, kind, *_ in model_of(records))


def copied(records):
    """A copy with memory of its own, also of one member of an ensemble: ``numpy.array(ensemble[0])`` shares its memory."""
    result = np.empty(np.shape(records), records.dtype)
    result[...] = records
    return result


def memory(records):
    """The records as a float64 matrix (members, entries) that shares their memory."""
    return records.reshape(-1).view(np.float64).reshape(records.size, -1)


def widened(array, dtype):
    """A copy of a structured array in a dtype with the same fields in other, mostly larger, shapes; new entries are zero.

    Fields are matched by name at every depth, and entries from the start of each axis.
    """
    result = np.zeros(np.shape(array), dtype)
    _copy_overlap(np.asarray(array), result)
    return result


def _copy_overlap(source, target):
    if source.dtype.names != target.dtype.names or source.ndim != target.ndim:
        raise ValueError(f"widened: expected the same fields and axes, got {source.dtype} and {target.dtype}")
    overlap = (*(slice(min(sizes)) for sizes in zip(source.shape, target.shape, strict=True)), ...)
    source, target = source[overlap], target[overlap]
    if source.dtype.names is None:
        target[...] = source
    for name in source.dtype.names or ():
        _copy_overlap(source[name], target[name])


def stored_sparse(stored, n):
    """The scipy.sparse matrix with n columns of a nested record with indptr, indices and data."""
    from scipy.sparse import csr_array

    return csr_array((stored["data"], stored["indices"], stored["indptr"]), shape=(stored["indptr"].size - 1, n))


def words(dtype, *path):
    """(offset in 8-byte entries, dtype) of a nested field; the dtype of an array field keeps its shape."""
    offset = 0
    for name in path:
        dtype, start = (dtype.base if dtype.subdtype else dtype).fields[name][:2]
        offset += start // 8
    return offset, dtype
