"""Layout: where everything lies in a record's memory, as tables of word offsets.

Kernels take ``(mem, tables..., work)``; the tables have the same types for every model, so no model triggers a compilation.
"""

from typing import NamedTuple

import numpy as np

from nsds.functions import function_address
from nsds.laws import LAWS
from nsds.records import memory, model_of, words

ABSENT = -1
DIAGONAL, DENSE, SPARSE = 0, 1, 2


def _table(*names):
    return np.dtype([(name, np.int32) for name in names])


# One row per dynamical system; element e of an array part lies stride * e words further; v = q + n, p = q + 2 n.
PART = _table(
    "count", "stride", "n", "dof", "body", "q", "z", "n_z", "fext", "function",
    "M", "M_kind", "M_nnz", "K", "K_kind", "K_nnz", "C", "C_kind", "C_nnz",
)  # fmt: skip
# One row per scalar constraint; its entries, and the couplings through D, are [entry, entry_end) and [coupling, coupling_end).
CONSTRAINT = _table(
    "y", "ydot", "lam", "active", "b", "e", "bilateral", "entry", "entry_end", "coupling", "coupling_end",
)  # fmt: skip
# One row per nonzero of H: y += mem[coefficient] * mem[q]; the velocity is n words behind q, the impulse 2 n.
ENTRY = _table("coefficient", "q", "n", "dof", "body", "part")
# One row per entry of D: ydot += mem[coefficient] * lambda[constraint].
COUPLING = _table("coefficient", "constraint")

_STATE = {"system": ("q", "v"), "interaction": ("y", "ydot", "lambda", "active")}


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
    """Layout of a record, or of an ensemble of records of one model.

    Raises
    ------
    ValueError
        The members of an ensemble differ in their model, or in which elements their interactions act on.
    """
    model = model_of(records)
    records = records.reshape(-1)
    mem = memory(records)
    systems = [line for line in model if len(line) == 2]
    interactions = [line for line in model if len(line) > 2]
    parts, functions = _parts(records, [name for name, _ in systems])
    index = {name: i for i, (name, _) in enumerate(systems)}
    constraints, entries, couplings, owners = _constraints(records, mem, parts, index, interactions)
    return Layout(parts, constraints, entries, couplings, functions, tuple(index), tuple(owners))


def state_fields(records):
    """[(part, (fields...)), ...]: what changes in time, in the order of the record."""
    return [(line[0], _STATE["system" if len(line) == 2 else "interaction"]) for line in model_of(records)]


def _count_and_stride(dtype):
    return (dtype.shape[0] if dtype.shape else 1), dtype.base.itemsize // 8


def _parts(records, names):
    parts = np.zeros(len(names), PART)
    functions = np.zeros((records.size, 0), np.uintp)
    dof = body = 0
    for part, name in zip(parts, names, strict=True):
        start, dtype = words(records.dtype, name)
        fields = dtype.base.fields
        part["count"], part["stride"] = _count_and_stride(dtype)
        part["n"] = fields["q"][0].shape[0]
        part["dof"], part["body"] = dof, body
        dof, body = dof + part["count"] * part["n"], body + part["count"]
        part["q"] = start + fields["q"][1] // 8
        part["z"] = start + fields["z"][1] // 8 if "z" in fields else part["q"]
        part["n_z"] = fields["z"][0].shape[0] if "z" in fields else 0
        part["fext"] = part["function"] = ABSENT
        if "fext" in fields and fields["fext"][0].kind == "S":
            part["function"] = functions.shape[1]
            functions = np.hstack([functions, _addresses(records[name]["fext"], "fext", name)])
        elif "fext" in fields:
            part["fext"] = start + fields["fext"][1] // 8
        for matrix in "MKC":
            part[matrix] = start + fields[matrix][1] // 8 if matrix in fields else ABSENT
            if matrix in fields:
                part[matrix + "_kind"], part[matrix + "_nnz"] = _storage(fields[matrix][0])
    return parts, functions


def _storage(dtype):
    if dtype.names:
        return SPARSE, dtype["data"].shape[0]
    return (DIAGONAL, 0) if len(dtype.shape) == 1 else (DENSE, 0)


def _addresses(names, role, part):
    """Addresses (members, elements) of the functions that a text field names."""
    flat = names.reshape(names.shape[0], -1)
    found, which = np.unique(flat, return_inverse=True)
    try:
        addresses = np.array([function_address(name.decode(), role) for name in found], np.uintp)
    except ValueError as error:
        raise ValueError(f"part '{part}', {error}") from None
    return addresses[which.reshape(flat.shape)]


def _constraints(records, mem, parts, index, interactions):
    tables, entry_tables, coupling_tables, owners = [], [], [], []
    n_constraints = 0
    for name, _, law, *sides in interactions:
        start, dtype = words(records.dtype, name)
        fields = dtype.base.fields
        count, stride = _count_and_stride(dtype)
        base = start + stride * np.arange(count)[:, None]
        at = {key: base + fields[key][1] // 8 for key in fields}
        m = fields["y"][0].shape[0] if fields["y"][0].shape else 1
        number = n_constraints + np.arange(count * m).reshape(count, m)
        table = np.zeros((count, m), CONSTRAINT)
        for column, key in (("y", "y"), ("ydot", "ydot"), ("lam", "lambda"), ("active", "active"), ("b", "b"), ("e", "e")):
            table[column] = at[key] + np.arange(m) if key in at else ABSENT
        table["bilateral"] = LAWS[law][0]
        entry_tables.append(_entries(records, mem, parts, index, name, sides, at, m, number))
        if "D" in at:
            coupling = np.zeros((count, m, m), COUPLING)
            coupling["coefficient"] = at["D"][:, :, None] + np.arange(m * m).reshape(m, m)
            coupling["constraint"] = number[:, None, :]
            coupling_tables.append((coupling.reshape(-1), np.repeat(number.reshape(-1), m)))
        tables.append(table.reshape(-1))
        owners += [(name, e, i) for e in range(count) for i in range(m)]
        n_constraints += count * m
    constraints = np.concatenate([np.zeros(0, CONSTRAINT), *tables])
    entries = _attach(constraints, "entry", entry_tables, ENTRY)
    couplings = _attach(constraints, "coupling", coupling_tables, COUPLING)
    return constraints, entries, couplings, owners


def _attach(constraints, column, tables, dtype):
    """Join tables of (rows, owner of each row), sorted by owner, and note each owner's range."""
    rows = np.concatenate([np.zeros(0, dtype)] + [rows for rows, _ in tables])
    owner = np.concatenate([np.zeros(0, np.int64)] + [owner for _, owner in tables])
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(constraints.size + 1))
    constraints[column], constraints[column + "_end"] = bounds[:-1], bounds[1:]
    return rows[order]


def _entries(records, mem, parts, index, name, sides, at, m, number):
    """Nonzeros of H, and the constraint that each belongs to; a coefficient that is 0 in every member is left out."""
    count = number.shape[0]
    elements = np.zeros((count, len(sides)), np.int64)
    if "element" in at:
        elements = records[name]["element"].reshape(records.size, count, len(sides))
        if (elements != elements[0]).any():
            raise ValueError(f"interaction '{name}': all members of an ensemble must act on the same elements")
        elements = elements[0]
    row, column, coefficient = _nonzeros(records, name, parts, index, sides, at, m)
    first = np.cumsum([0] + [parts["n"][index[side]] for side in sides])
    side_of = np.searchsorted(first, column, side="right") - 1
    side_part = np.array([index[side] for side in sides])[side_of]
    chosen = elements[:, side_of]
    part = parts[side_part]
    local = column - first[side_of]
    table = np.zeros(coefficient.shape, ENTRY)
    table["coefficient"] = coefficient
    table["n"], table["part"] = part["n"], side_part
    table["q"] = part["q"] + part["stride"] * chosen + local
    table["dof"] = part["dof"] + part["n"] * chosen + local
    table["body"] = part["body"] + chosen
    owner = np.broadcast_to(number[:, row], table.shape)
    kept = (mem[:, table["coefficient"]] != 0).any(axis=0)
    return table[kept], owner[kept]


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
