"""The one-step problem in sparse form over the linked constraints, ``w = W z + q``: its unknowns and pattern ([Notes], 1.37–1.42).

Two constraints are linked when they act on one body (through a diagonal iteration matrix: on one coordinate), or through D.
"""

from typing import NamedTuple

import numpy as np

from nsds.maths.patterns import distinct
from nsds.model.layout import DIAGONAL, table
from nsds.model.records import model_of, words
from nsds.model.system_kinds import RELATIONS
from nsds.schemes.memory import require_affordable
from nsds.solvers.box.forms import narrow_order

_ARRAYS = 4  # as long as W: its entries, those of the active rows, and both patterns
_INSTEAD = (
    "rows that act on one body have an entry with each other; systems with matrices, patterns and relations in a form of scipy.sparse do "
    "without it, by their default scheme, nsds.euler_moreau or nsds.moreau_jean, and solver"
)
# One row per matrix that `solve_with` inverts, that is per body: offsets of its inverse.
BODY = table("kind", "n", "dof", "n_lower", "n_upper", "data", "index")


def store_inverse(operator, inverse, work, iwork):
    """Store the result of `nsds.schemes.linear_algebra.inverse_of` for a part, and its offsets."""
    operator["kind"], data, index, operator["n_lower"], operator["n_upper"] = inverse
    operator["data"], operator["index"] = work.store(data), iwork.store(index)
    operator["data_stride"], operator["index_stride"] = data.shape[-1], index.shape[-1]


def bodies_of(parts, operators):
    """One row for each element of each part, whose inverse iteration matrices lie one stride apart."""
    bodies = np.zeros(parts["count"].sum(), BODY)
    for part, operator in zip(parts, operators, strict=True):
        rows = bodies[part["body"] : part["body"] + part["count"]]
        element = np.arange(part["count"])
        for column in ("kind", "n_lower", "n_upper"):
            rows[column] = operator[column]
        rows["n"], rows["dof"] = part["n"], part["dof"] + part["n"] * element
        rows["data"], rows["index"] = (operator[at] + operator[at + "_stride"] * element for at in ("data", "index"))
    return bodies


def store_inverses(bodies, inverse, work, iwork):
    """Store the result of `nsds.schemes.linear_algebra.inverse_of` for a part, and its offsets in the rows of its elements."""
    kind, data, index, n_lower, n_upper = inverse
    bodies["kind"], bodies["n_lower"], bodies["n_upper"] = kind, n_lower, n_upper
    element = np.arange(bodies.size)
    bodies["data"], bodies["index"] = work.store(data) + data.shape[-1] * element, iwork.store(index) + index.shape[-1] * element


def linked_pairs(constraints, entries, inputs, couplings, kinds):
    """Pattern of W by rows: (row, column), sorted, symmetric, with the full diagonal.

    ``kinds``: storage of the iteration matrix of each body.
    """
    n = constraints.size
    # 1. pairs that share a node
    owner, first, shared = _by_nodes(constraints, entries, inputs, kinds)
    row = np.repeat(owner, shared)
    column = owner[np.repeat(first, shared) + np.arange(shared.sum()) - np.repeat(np.cumsum(shared) - shared, shared)]
    # 2. couplings by D, and the diagonal
    coupled = np.repeat(np.arange(n), constraints["coupling_end"] - constraints["coupling"])
    partner = couplings["constraint"]
    every = np.arange(n)
    pairs = distinct(np.concatenate([row * n + column, coupled * n + partner, partner * n + coupled, every * n + every]), n * n)
    return np.divmod(pairs, n) if n else (pairs, pairs)


def _by_nodes(constraints, entries, inputs, kinds):
    """(constraint, place of the first one there, their number) of each constraint at each node, sorted by nodes.

    A node is a body, or a single coordinate if its iteration matrix is diagonal.
    """
    every = np.arange(constraints.size)
    size = [constraints[column + "_end"] - constraints[column] for column in ("entry", "input")]
    owner = np.concatenate([np.repeat(every, size[0]), np.repeat(every, size[1])])
    dof, body = (np.concatenate([entries[column], inputs[column]]).astype(np.int64) for column in ("dof", "body"))
    node = np.where(np.asarray(kinds)[body] == DIAGONAL, dof, dof.max(initial=0) + 1 + body)
    owner, node = np.divmod(np.unique(owner * (node.max(initial=0) + 1) + node), node.max(initial=0) + 1)
    order = np.argsort(node, kind="stable")
    owner, node = owner[order], node[order]
    first = np.searchsorted(node, node, side="left")
    return owner, first, np.searchsorted(node, node, side="right") - first


def number_of_pairs(constraints, entries, inputs, couplings, kinds):
    """At least as many entries as `linked_pairs` has, counted without them: several nodes of two constraints count several times."""
    return int(_by_nodes(constraints, entries, inputs, kinds)[2].sum()) + 2 * couplings.size + constraints.size


class Unknowns(NamedTuple):
    """Constraints in an order that keeps W close to its diagonal, and the pattern of W by rows; transpose: where w_ji lies."""

    order: np.ndarray
    every: np.ndarray  # 0, 1, ...: the list of all
    constraints: np.ndarray
    couplings: np.ndarray
    row: np.ndarray
    column: np.ndarray
    transpose: np.ndarray


def ordered(constraints, entries, inputs, couplings, kinds):
    """`Unknowns` of the one-step problem; for the arguments see `linked_pairs`."""
    n = constraints.size
    n_pairs = number_of_pairs(constraints, entries, inputs, couplings, kinds)
    require_affordable(f"the matrix of the one-step problem of {n} rows, with its pattern,", _ARRAYS * n_pairs, _INSTEAD)
    row, column = linked_pairs(constraints, entries, inputs, couplings, kinds)
    order = np.arange(n) if has_friction(constraints) else narrow_order(row, column, n)  # contacts stay together
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    couplings = couplings.copy()
    couplings["constraint"] = place[couplings["constraint"]]
    if (place[1:] < place[:-1]).any():
        row, column = np.divmod(np.sort(place[row] * n + place[column]), n)
    constraints, transpose = constraints[order], np.argsort(column, kind="stable")  # rows ascend
    return Unknowns(order, np.arange(n), constraints, couplings, np.searchsorted(row, np.arange(n + 1)), column, transpose)


def as_they_are(constraints, couplings):
    """`Unknowns` in their own order, without a pattern of W."""
    every = np.arange(constraints.size)
    return Unknowns(every, every, constraints, couplings, np.zeros(constraints.size + 1, np.int64), every[:0], every[:0])


def has_friction(constraints):
    """Whether some constraints are those of contacts with friction."""
    return "tangents" in constraints.dtype.names and bool((constraints["tangents"] > 0).any())


def largest_contact(constraints):
    """Components of the largest contact with friction, 0 without any."""
    return int(constraints["component"].max()) + 1 if has_friction(constraints) else 0


def place_problem(plan, unknowns, method, work, iwork, d=None):
    """Reserve the arrays of the one-step problem and the scratch of its solver; that of one in blocks is in their table.

    d: components of a block, 0 of a problem with bounds; without it those of the largest contact.
    """
    n, d = unknowns.constraints.size, has_friction(unknowns.constraints) if d is None else d
    n_work, n_iwork = (0, 1) if d else method.work_size(n, unknowns.row, unknowns.column)
    place_vectors(plan, n, work)
    work.place(plan, W=unknowns.column.size, solver=n_work)
    iwork.place(plan, isolver=max(n_iwork, 1))
    plan["n_solver"], plan["n_isolver"] = n_work, max(n_iwork, 1)


def place_vectors(plan, n, work):
    """Reserve the vectors of a one-step problem, without its matrix."""
    work.place(plan, q=n, z=n, w=n, lower=n, upper=n, info=3, rounding=1)


def place_active(plan, unknowns, work, iwork):
    """Reserve the lists of active constraints and the pattern of their problem."""
    n, nnz = unknowns.constraints.size, unknowns.column.size
    iwork.place(plan, active=n, local=n, sub_row=n + 1, sub_column=nnz, sub_place=nnz)


def leaves(tables):
    """All tables of a form, those of forms inside it too."""
    for table_ in tables:
        if isinstance(table_, tuple):
            yield from leaves(table_)
        else:
            yield table_


def interaction_of(records, place):
    """(name of the interaction that a word of the record belongs to, the row whose lambda it is); ("", 0) of none."""
    for name, kind, *_ in model_of(records):
        start, dtype = words(records.dtype, name)
        if kind in RELATIONS and start <= place < start + dtype.itemsize // 8:
            inner = dtype.base
            element, at = divmod(place - start, inner.itemsize // 8)
            m = inner["lambda"].itemsize // 8
            return name, element * m + at - inner.fields["lambda"][1] // 8
    return "", 0


def blame_row(records, prepared, m):
    """Interaction whose row of the one-step problem of member m is NaN or infinite, as text; empty if none is, or for rigid bodies."""
    tables = [table for table in leaves(prepared.tables) if table.dtype.names]
    constraints = next((table for table in tables if {"lam", "entry"} <= set(table.dtype.names)), ())
    plan = next((table[0] for table in tables if {"W", "q", "lower", "dofs"} <= set(table.dtype.names)), None)
    if plan is None or len(constraints) == 0:
        return ""
    work, iwork = prepared.work[m], prepared.iwork[m]
    n = constraints.size
    if "sub_row" in plan.dtype.names:
        constraints = constraints[np.clip(iwork[plan["active"] : plan["active"] + n], 0, n - 1)]
    for row in np.flatnonzero(~np.isfinite(work[plan["q"] : plan["q"] + n])):
        place = max(constraints[row]["gap"] if "gap" in constraints.dtype.names else constraints[row]["y"], constraints[row]["lam"])
        name, _ = interaction_of(records, place)
        if name:
            return f"the one-step problem became NaN or infinite in a row of interaction '{name}'"
    return ""
