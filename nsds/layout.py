"""Layout: where everything lies in a record's memory, as tables of word offsets.

Kernels take ``(mem, tables..., work)``; the tables have the same types for every model, so no model triggers a compilation.
"""

from typing import NamedTuple

import numpy as np

from nsds.functions import function_address
from nsds.kinds import split, state_of
from nsds.laws import LAWS
from nsds.records import memory, model_of, words

ABSENT = -1
DIAGONAL, DENSE, SPARSE = 0, 1, 2


def table(*names):
    """dtype of a table of 32-bit integers."""
    return np.dtype([(name, np.int32) for name in names])


# One row per Lagrangian system; element e of an array part lies stride * e words further; v = q + n, p = q + 2 n.
PART = table(
    "count", "stride", "n", "dof", "body", "q", "z", "n_z", "fext", "function",
    "M", "M_kind", "M_nnz", "K", "K_kind", "K_nnz", "C", "C_kind", "C_nnz",
)  # fmt: skip
# One row per scalar constraint; its entries of H, of H^T, and of D, are [entry, entry_end), [input, input_end), [coupling, coupling_end).
RANGES = ("entry", "entry_end", "input", "input_end", "coupling", "coupling_end")
CONSTRAINT = table("y", "ydot", "lam", "active", "b", "e", "bilateral", *RANGES)
# One row per nonzero of H: y += mem[coefficient] * mem[q]; the velocity is n words behind q, the impulse 2 n.
ENTRY = table("coefficient", "q", "n", "dof", "body")
# One row per entry of D: ydot += mem[coefficient] * lambda[constraint].
COUPLING = table("coefficient", "constraint", "sign")


class Layout(NamedTuple):
    """Tables of one model, and the addresses of its user functions (members, slots)."""

    parts: np.ndarray
    constraints: np.ndarray
    entries: np.ndarray
    couplings: np.ndarray
    functions: np.ndarray
    part_names: tuple
    constraint_owners: tuple


def layout(records):
    """Layout of a record of Lagrangian systems, or of an ensemble of such records of one model.

    Raises
    ------
    ValueError
        The members of an ensemble differ in their model, or in which elements their interactions act on.
    """
    systems, interactions, _ = split(model_of(records))
    records = records.reshape(-1)
    mem = memory(records)
    parts, functions = _parts(records, systems)
    index = {name: i for i, (name, _) in enumerate(systems)}
    constraints, entries, couplings, owners = _constraints(records, mem, parts, index, interactions)
    return Layout(parts, constraints, entries, couplings, functions, tuple(index), tuple(owners))


def state_fields(records):
    """[(part, (fields...)), ...]: what changes in time, in the order of the record."""
    result = []
    for name, kind, *_ in model_of(records):
        dtype = records.dtype[name].base
        result.append((name, tuple(field for field in state_of(kind) if field in dtype.names and dtype[field].base.kind in "fi")))
    return result


def count_and_stride(dtype):
    """Elements of a part, and words from one to the next."""
    return (dtype.shape[0] if dtype.shape else 1), dtype.base.itemsize // 8


def _parts(records, systems):
    parts = np.zeros(len(systems), PART)
    functions = np.zeros((records.size, 0), np.uintp)
    dof = body = 0
    for part, (name, kind) in zip(parts, systems, strict=True):
        start, dtype = words(records.dtype, name)
        fields = dtype.base.fields
        part["count"], part["stride"] = count_and_stride(dtype)
        part["n"] = fields["q"][0].shape[0]
        part["dof"], part["body"] = dof, body
        dof, body = dof + part["count"] * part["n"], body + part["count"]
        part["q"] = start + fields["q"][1] // 8
        part["z"] = start + fields["z"][1] // 8 if "z" in fields else part["q"]
        part["n_z"] = fields["z"][0].shape[0] if "z" in fields else 0
        part["fext"] = part["function"] = ABSENT
        if "fext" in fields and fields["fext"][0].kind == "S":
            part["function"] = functions.shape[1]
            functions = np.hstack([functions, addresses(records[name]["fext"], name, kind, "fext")])
        elif "fext" in fields:
            part["fext"] = start + fields["fext"][1] // 8
        for matrix in "MKC":
            part[matrix] = start + fields[matrix][1] // 8 if matrix in fields else ABSENT
            if matrix in fields:
                part[matrix + "_kind"], part[matrix + "_nnz"] = storage(fields[matrix][0])
    return parts, functions


def storage(dtype):
    """(how a matrix is stored, number of its entries if it is sparse)."""
    if dtype.names:
        return SPARSE, dtype["data"].shape[0]
    return (DIAGONAL, 0) if len(dtype.shape) == 1 else (DENSE, 0)


def addresses(names, part, kind, field):
    """Addresses (members, elements) of the functions that a text field names."""
    flat = names.reshape(names.shape[0], -1)
    found, which = np.unique(flat, return_inverse=True)
    try:
        addresses = np.array([function_address(name.decode(), kind, field) for name in found], np.uintp)
    except ValueError as error:
        raise ValueError(f"part '{part}', {error}") from None
    return addresses[which.reshape(flat.shape)]


def _constraints(records, mem, parts, index, interactions):
    tables, entry_tables, coupling_tables, owners = [], [], [], []
    n_constraints = 0
    for name, _, law, *sides in interactions:
        start, dtype = words(records.dtype, name)
        fields = dtype.base.fields
        count, stride = count_and_stride(dtype)
        base = start + stride * np.arange(count)[:, None]
        at = {key: base + fields[key][1] // 8 for key in fields}
        m = fields["y"][0].shape[0] if fields["y"][0].shape else 1
        number = n_constraints + np.arange(count * m).reshape(count, m)
        rows = np.zeros((count, m), CONSTRAINT)
        for column, key in (("y", "y"), ("ydot", "ydot"), ("lam", "lambda"), ("active", "active"), ("b", "b"), ("e", "e")):
            rows[column] = at[key] + np.arange(m) if key in at else ABSENT
        rows["bilateral"] = LAWS[law].bilateral
        entry_tables.append(_entries(records, mem, parts, index, name, sides, at, m, number))
        if "D" in at:
            coupling = np.zeros((count, m, m), COUPLING)
            coupling["coefficient"] = at["D"][:, :, None] + np.arange(m * m).reshape(m, m)
            coupling["constraint"] = number[:, None, :]
            coupling["sign"] = 1
            coupling_tables.append((coupling.reshape(-1), np.repeat(number.reshape(-1), m)))
        tables.append(rows.reshape(-1))
        owners += [(name, e, i) for e in range(count) for i in range(m)]
        n_constraints += count * m
    constraints = np.concatenate([np.zeros(0, CONSTRAINT), *tables])
    entries = attach(constraints, "entry", entry_tables, ENTRY)
    constraints["input"], constraints["input_end"] = constraints["entry"], constraints["entry_end"]
    couplings = attach(constraints, "coupling", coupling_tables, COUPLING)
    return constraints, entries, couplings, owners


def attach(constraints, column, tables, dtype):
    """Join tables of (rows, owner of each row), sorted by owner, and note each owner's range."""
    rows = np.concatenate([np.zeros(0, dtype)] + [rows for rows, _ in tables])
    owner = np.concatenate([np.zeros(0, np.int64)] + [owner for _, owner in tables])
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(constraints.size + 1))
    constraints[column], constraints[column + "_end"] = bounds[:-1], bounds[1:]
    return rows[order]


def elements_of(records, name, n_sides):
    """Elements (count, sides) that an interaction acts on, the same in all members."""
    dtype = words(records.dtype, name)[1]
    count = count_and_stride(dtype)[0]
    if "element" not in dtype.base.names:
        return np.zeros((count, n_sides), np.int64)
    elements = records[name]["element"].reshape(records.size, count, n_sides)
    if (elements != elements[0]).any():
        raise ValueError(f"interaction '{name}': all members of an ensemble must act on the same elements")
    return elements[0]


def entries_at(parts, sides, elements, row, column, coefficient, number):
    """Table of the entries (row, column) of a matrix (m, n) for each element, and the constraint that each belongs to.

    sides: indices of the parts; coefficient: offsets (elements, entries); number: constraints (elements, m).
    """
    first = np.cumsum([0] + [parts["n"][side] for side in sides])
    side_of = np.searchsorted(first, column, side="right") - 1
    chosen, part = elements[:, side_of], parts[np.array(sides)[side_of]]
    local = column - first[side_of]
    rows = np.zeros(coefficient.shape, ENTRY)
    rows["coefficient"] = coefficient
    rows["n"] = part["n"]
    rows["q"] = part["q"] + part["stride"] * chosen + local
    rows["dof"] = part["dof"] + part["n"] * chosen + local
    rows["body"] = part["body"] + chosen
    return rows, np.broadcast_to(number[:, row], rows.shape)


def _entries(records, mem, parts, index, name, sides, at, m, number):
    """Nonzeros of H, and the constraint that each belongs to; a coefficient that is 0 in every member is left out."""
    row, column, coefficient = _nonzeros(records, name, parts, index, sides, at, m)
    elements = elements_of(records, name, len(sides))
    rows, owner = entries_at(parts, [index[side] for side in sides], elements, row, column, coefficient, number)
    kept = (mem[:, rows["coefficient"]] != 0).any(axis=0)
    return rows[kept], owner[kept]


def _nonzeros(records, name, parts, index, sides, at, m):
    """(row, column) of the stored coefficients of one element's H, and their offsets in memory (elements, coefficients)."""
    _, dtype = words(records.dtype, name, "H")
    if dtype.names is None:
        n = sum(parts["n"][index[side]] for side in sides)
        row, column = np.divmod(np.arange(m * n), n)
        return row, column, at["H"] + np.arange(m * n)
    pattern = records[name]["H"]
    indptr, indices = (pattern[key].reshape(-1, pattern[key].shape[-1]) for key in ("indptr", "indices"))
    if (indptr != indptr[0]).any() or (indices != indices[0]).any():
        raise ValueError(f"interaction '{name}': a sparse H must have the same pattern in all members and elements")
    row = np.repeat(np.arange(m), np.diff(indptr[0]))
    return row, indices[0], at["H"] + words(dtype, "data")[0] + np.arange(row.size)
