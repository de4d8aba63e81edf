"""Lines of a model, read into rows of tables: offsets of the fields of parts and interactions in a record, and slots of functions.

Columns common to all tables of a kind are filled in here, by their names; the families add their own.
"""

from typing import NamedTuple

import numpy as np

from nsds.model.function_checks import n_u
from nsds.model.functions import arguments_of
from nsds.model.layout import ABSENT, count_and_stride, elements_of, storage
from nsds.model.records import words
from nsds.model.system_kinds import SYSTEMS

_FUNCTION = "_function"  # suffix of the columns of functions


class Layout(NamedTuple):
    """Tables of one model, before the constraints are ordered, and names that belong to their rows."""

    parts: np.ndarray
    relations: np.ndarray
    constraints: np.ndarray
    entries: np.ndarray  # of H, or of C
    inputs: np.ndarray  # entries of B
    couplings: np.ndarray  # entries of D
    functions: np.ndarray  # addresses (members, slots)
    part_names: tuple  # of bodies: (part, number of its first body)
    relation_names: tuple = ()  # interaction of each row of relations
    # of mechanical systems: (interaction, element, row) of each constraint; constraints in an element of each interaction
    owners: tuple = ()
    sizes: dict | None = None
    # of first-order systems: bounds (members, constraints)
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    # of rigid bodies: tables, names, and `GeneralPairs`, whose memory the tables point to
    bodies: np.ndarray | tuple = ()
    interactions: np.ndarray | tuple = ()
    interaction_names: tuple = ()
    geometry: tuple = ()


def parts_of(records, systems, functions, work, columns, vectors, matrices):
    """Table of the systems: one row each, its degrees of freedom and its elements numbered after those of the systems before it.

    vectors, matrices: fields that may be numbers or functions. Of a control ``T u``, T and room for u are in the work memory.
    """
    parts = np.zeros(len(systems), columns)
    dof = body = 0
    for part, (name, kind) in zip(parts, systems, strict=True):
        # 1. sizes, and numbers of degrees of freedom and elements
        start, dtype = words(records.dtype, name)
        fields, state = dtype.base.fields, SYSTEMS[kind][1]
        count, part["stride"] = count_and_stride(dtype)
        n = fields[state][0].shape[0]
        part["count"], part["n"], part["dof"], part["body"] = count, n, dof, body
        dof, body = dof + count * n, body + count
        # 2. offsets in the record, and slots of functions
        part["q"] = start + fields[state][1] // 8
        part["z"] = start + fields["z"][1] // 8 if "z" in fields else part["q"]
        part["n_z"] = fields["z"][0].shape[0] if "z" in fields else 0
        for field in _roles(columns):
            part[field + _FUNCTION] = functions.slots(name, kind, field, count)[0]
        # 3. numeric fields, ABSENT where a field is missing or names a function
        for field in (*vectors, *matrices):
            numeric = field in fields and fields[field][0].kind != "S"
            part[field] = start + fields[field][1] // 8 if numeric else ABSENT
            if numeric and field in matrices:
                part[field + "_kind"], part[field + "_nnz"] = storage(fields[field][0])
        # 4. controls
        part["n_u"] = n_u(records[name].reshape(-1)[0])
        part["T"], part["u_work"] = _control_weight(records[name], part, work), work.reserve(part["n_u"])
    return parts


def _roles(columns):
    return [column.removesuffix(_FUNCTION) for column in columns.names if column.endswith(_FUNCTION)]


def _control_weight(fields, part, work):
    """Offset of T of the elements of a part in the work memory: its numbers, the identity, or room for the values of a function."""
    n, shape = part["n"], (work.n_members, part["count"])
    if part["n_u"] == 0 or part["T" + _FUNCTION] != ABSENT:
        return work.reserve(part["count"] * n * part["n_u"])
    T = fields["T"] if "T" in fields.dtype.names else np.broadcast_to(np.eye(n), (*shape, n, n))
    return work.store(T.reshape(work.n_members, -1))


class Interaction(NamedTuple):
    """Fields of an interaction of a model, and their offsets."""

    name: str
    kind: str
    law: str
    sides: list  # indices of the systems that it joins
    elements: np.ndarray  # (elements, sides): which of their elements
    values: np.ndarray  # its fields (members, elements)
    m: int  # outputs of an element
    at: dict  # field -> where it lies in the record (elements, 1)


def interaction(records, index, line):
    """`Interaction` of a line; ``index`` numbers the systems by name."""
    name, kind, law, *sides = line
    start, dtype = words(records.dtype, name)
    fields = dtype.base.fields
    count, stride = count_and_stride(dtype)
    at = {field: start + stride * np.arange(count)[:, None] + fields[field][1] // 8 for field in fields}
    m = fields["y"][0].shape[0] if fields["y"][0].shape else 1
    elements = elements_of(records, name, len(sides))
    return Interaction(name, kind, law, [index[side] for side in sides], elements, records[name].reshape(records.size, count), m, at)


def stored_pattern(line, field):
    """(row, column) of the entries of an operator by compressed rows, which is the same in all members and elements."""
    stored, n_records = line.values[field], line.values.size
    indptr, indices = (stored[key].reshape(n_records, stored[key].shape[-1]) for key in ("indptr", "indices"))
    if (indptr != indptr[0]).any() or (indices != indices[0]).any():
        raise ValueError(f"interaction '{line.name}': a sparse {field} must have the same pattern in all members and elements")
    return np.repeat(np.arange(indptr.shape[1] - 1), np.diff(indptr[0])), indices[0]


def relation_rows(line, parts, functions, columns):
    """One row for each element of an interaction: its states, constants z, and functions."""
    count, at, z = line.values.shape[1], line.at, line.values.dtype.fields.get("z")
    rows = np.zeros(count, columns)
    rows["m"], rows["n"] = line.m, sum(parts["n"][side] for side in line.sides)
    rows["n_first"] = parts["n"][line.sides[0]]
    for which, end in (("first", 0), ("second", -1)):
        part, chosen = parts[line.sides[end]], line.elements[:, end]
        rows["q_" + which], rows["dof_" + which] = part["q"] + part["stride"] * chosen, part["dof"] + part["n"] * chosen
    rows["z"], rows["n_z"] = (at["z"][:, 0], z[0].shape[0]) if z else (0, 0)
    state_functions(rows, line, functions)
    return rows


def state_functions(rows, line, functions):
    """Slots of an interaction's functions in the columns that are theirs; ABSENT where the relation has none of that role.

    Raises
    ------
    ValueError
        The relation has a function that no column is for.
    """
    known, stated = _roles(rows.dtype), dict.fromkeys(arguments_of(line.kind), line.kind) | dict.fromkeys(arguments_of(line.law), line.law)
    if unknown := set(stated) - set(known):
        raise ValueError(f"interaction '{line.name}': no scheme here reads {min(unknown)} of a {line.kind}; they read {', '.join(known)}")
    for field in known:
        rows[field + _FUNCTION] = functions.slots(line.name, stated[field], field, rows.size) if field in stated else ABSENT
