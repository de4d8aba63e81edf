"""Layout: offsets of fields in a record's memory, as integer tables; common part of the tables of all families.

Kernels take ``(mem, tables..., work)``; the tables have the same types for every model, so no model triggers a compilation.
"""

import numpy as np

from nsds.model.functions import address_for, no_functions
from nsds.model.records import model_of, words
from nsds.model.system_kinds import NAMES, state_of

ABSENT = -1
DIAGONAL, DENSE, SPARSE = 0, 1, 2


class Row(np.record):
    """A row of a table whose columns are its attributes in plain Python as in compiled code, ``data`` and ``size`` too."""

    def __getattribute__(self, name):
        names = object.__getattribute__(self, "dtype").names
        return int(self[name]) if name in names else super().__getattribute__(name)


def table(*names):
    """dtype of a table of 32-bit integers."""
    return np.dtype((Row, [(name, np.int32) for name in names]))


# Columns of the tables of constraints: their entries of C (or H), of B, and of D, are [entry, entry_end), [input, input_end), [coupling,
# coupling_end).
RANGES = ("entry", "entry_end", "input", "input_end", "coupling", "coupling_end")
# One row per nonzero of C: y += work[coefficient] * mem[q]; for Lagrangian systems the velocity is at q + n, the impulse at q + 2 n.
ENTRY = table("coefficient", "q", "n", "dof", "body")
# One row per entry of D: y += sign * work[coefficient] * lambda[constraint].
COUPLING = table("coefficient", "constraint", "sign")


def state_fields(records):
    """[(part, (fields...)), ...]: fields that change in time, in the order of the record."""
    result = []
    for name, kind, *_ in model_of(records):
        dtype = records.dtype[name].base
        if kind == NAMES:
            continue
        result.append((name, tuple(field for field in state_of(kind) if field in dtype.names and dtype[field].base.kind in "fi")))
    return result


def count_and_stride(dtype):
    """Number of elements of a part, and entries from one to the next."""
    return (dtype.shape[0] if dtype.shape else 1), dtype.base.itemsize // 8


def storage(dtype):
    """(how a matrix is stored, number of its entries if it is sparse)."""
    if dtype.names:
        return SPARSE, dtype["data"].shape[0]
    return (DIAGONAL, 0) if len(dtype.shape) == 1 else (DENSE, 0)


def addresses(names, part, kind, field):
    """Addresses (members, elements) of the functions named by a text field."""
    flat = names.reshape(names.shape[0], -1)
    found, which = np.unique(flat, return_inverse=True)
    try:
        addresses = np.array([address_for(part, name.decode(errors="replace"), kind, field) for name in found], np.uintp)
    except ValueError as error:
        raise ValueError(f"part '{part}', {error}") from None
    return addresses[which.reshape(flat.shape)]


class FunctionSlots:
    """Collects the addresses (members, 1 + slots) of user functions, after that of `no_functions`."""

    def __init__(self, records):
        self.records, self.addresses = records, np.repeat(no_functions(), records.size, axis=0)

    def slots(self, name, kind, field, count):
        """Slots of a field's functions for each element; ABSENT where the field is missing or numeric."""
        dtype = words(self.records.dtype, name)[1].base
        if field not in dtype.names or dtype[field].kind != "S":
            return np.full(count, ABSENT)
        found = addresses(self.records[name][field], name, kind, field)
        first = self.addresses.shape[1] - 1
        self.addresses = np.hstack([self.addresses, np.broadcast_to(found, (self.records.size, count))])
        return first + np.arange(count)


def attach(constraints, column, tables, dtype):
    """Joins tables of (rows, owner of each row), sorted by owner, and records each owner's range."""
    rows = np.concatenate([np.zeros(0, dtype)] + [rows for rows, _ in tables], dtype=dtype)  # else NumPy may forget that they are `Row`
    owner = np.concatenate([np.zeros(0, np.int64)] + [owner for _, owner in tables])
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(constraints.size + 1))
    constraints[column], constraints[column + "_end"] = bounds[:-1], bounds[1:]
    return rows[order]


def join(pieces, dtype):
    """Tables (constraints, entries, inputs, couplings) of all interactions, with consecutive numbers of constraints.

    pieces: dicts with these of one interaction each, the last three with the owner of each row, numbered from 0; and number, its size.
    """
    constraints = np.concatenate([np.zeros(0, dtype), *(piece["constraints"] for piece in pieces)])
    for start, piece in zip(np.cumsum([0, *(piece["number"].size for piece in pieces)]), pieces, strict=False):
        piece["couplings"][0]["constraint"] += start
        for key in ("entries", "inputs", "couplings"):
            piece[key] = piece[key][0], piece[key][1] + start
    kinds = (("entry", "entries", ENTRY), ("input", "inputs", ENTRY), ("coupling", "couplings", COUPLING))
    return constraints, *(attach(constraints, column, [piece[key] for piece in pieces], rows) for column, key, rows in kinds)


def elements_of(records, name, n_sides):
    """Elements (count, sides) on which an interaction acts, the same in all members."""
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
    # part of each column: columns of all sides are counted through
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
