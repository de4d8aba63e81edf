"""Tables of first-order systems: parts, relations and constraints, with their operators gathered in the work memory.

The linear and the Newton form of a step read C, B and D through the same tables; only the latter evaluates them again in each iteration.
"""

import numpy as np

from nsds.model.laws import LAWS
from nsds.model.layout import ABSENT, COUPLING, RANGES, FunctionSlots, entries_at, join, table
from nsds.model.records import model_of
from nsds.model.relations_first_order import SPARSE_OPERATORS
from nsds.model.system_kinds import RELATIONS, split
from nsds.schemes.problem.model_reader import Layout, interaction, parts_of, relation_rows, stored_pattern

# One row per system; element e of an array part is stride * e entries further; the input r = q + n.
PART = table(
    # count elements of n states, stride apart; dof, body: number of the first state and element among all
    "count", "stride", "n", "dof", "body",
    # record: state q, parameters z (n_z) of user functions; M and A, their storage and number of entries; b (n); controls u (n_u)
    "q", "z", "n_z", "M", "M_kind", "M_nnz", "A", "A_kind", "A_nnz", "b", "u", "n_u",
    # work memory: T (n, n_u), u_work (n_u), A_work (n, n): dense A if it changes
    "T", "u_work", "A_work",
    # slots of user functions
    "f_function", "jac_f_function", "A_function", "b_function", "T_function", "u_function",
)  # fmt: skip
# One row per scalar unknown of the one-step problem. Record: y (ABSENT for a multiplier mu of a cone) and lambda; work memory: base, the
# constant part of h; h; argument, the relation's copy of lambda; low, high: bounds that are functions of time, else ABSENT.
CONSTRAINT = table("y", "lam", "base", "h", "argument", "low", "high", *RANGES)
# One row per element of an interaction; it is linear if it has no function h.
RELATION = table(
    # m rows, n states, n_first of them from q_first on and the rest from q_second; dof_first, dof_second: their numbers
    "m", "n", "n_first", "q_first", "q_second", "dof_first", "dof_second",
    # z (n_z): parameters; work memory: arguments x (n), lam (m); values h (m), g (n); base (m): constant part of h
    "z", "n_z", "x", "lam", "h", "g", "base",
    # operators C (m, n), B (n, m), D (m, m), ABSENT if h does not depend on lambda, K (n, n), ABSENT if g does not depend on x, F, ABSENT
    # without a function; bounds (2 m)
    "C", "B", "D", "K", "F", "bounds",
    # record: compressed rows of operators of which only stored entries lie in the work memory, else ABSENT
    "C_rows", "B_rows", "D_rows",
    # slots of user functions
    "h_function", "g_function", "e_function", "C_function", "B_function", "D_function", "K_function", "F_function", "bounds_function",
)  # fmt: skip


def layout_of(records, work):
    """`Layout` of a record or ensemble; constants are stored in the work memory by its allocator."""
    systems, interactions, _ = split(model_of(records))
    functions = FunctionSlots(records)
    parts = parts_of(records, systems, functions, work, PART, ("b", "u"), ("M", "A"))
    index = {name: i for i, (name, _) in enumerate(systems)}
    pieces = [_pieces(records, parts, interaction(records, index, line), functions, work) for line in interactions]
    constraints, entries, inputs, couplings = join(pieces, CONSTRAINT)
    none = np.zeros((records.size, 0))
    lower, upper = (np.concatenate([none, *(piece[key] for piece in pieces)], axis=1) for key in ("lower", "upper"))
    relations = np.concatenate([np.zeros(0, RELATION), *(piece["relations"] for piece in pieces)])
    names = tuple(name for (name, *_), piece in zip(interactions, pieces, strict=True) for _ in piece["relations"])
    return Layout(
        parts, relations, constraints, entries, inputs, couplings, functions.addresses, tuple(index), names, lower=lower, upper=upper
    )


def _pieces(records, parts, line, functions, work):
    """Relations, constraints, entries of C, B and D, bounds and constants of one interaction; constraints are numbered from 0."""
    values, m, at = line.values, line.m, line.at
    count = values.shape[1]
    k = values.dtype["mu"].shape[0] if "mu" in at else 0
    rows = _relation_rows(line, parts, functions, work)
    # 1. unknowns: m rows, and k multipliers of a cone
    constraints = np.zeros((count, m + k), CONSTRAINT)
    constraints["y"][:, :m], constraints["y"][:, m:] = at["y"] + np.arange(m), ABSENT
    constraints["lam"][:, :m] = at["lambda"] + np.arange(m)
    for column in ("h", "argument", "low", "high"):
        constraints[column] = ABSENT
    constraints["h"][:, :m] = rows["h"][:, None] + np.arange(m)
    constraints["argument"][:, :m] = rows["lam"][:, None] + np.arange(m)
    if "bounds" in values.dtype.names:
        constraints["low"][:, :m] = rows["bounds"][:, None] + np.arange(m)
        constraints["high"][:, :m] = rows["bounds"][:, None] + m + np.arange(m)
    # 2. bounds and constants
    number = np.arange(count * (m + k)).reshape(count, m + k)
    lower, upper = np.zeros((*values.shape, m + k)), np.full((*values.shape, m + k), np.inf)
    lower[..., :m], upper[..., :m] = LAWS[line.law].bounds(values, m)
    base = np.zeros((records.size, count, m + k))
    base[..., :m] = _constant_output(values, m)
    if k:
        constraints["lam"][:, m:] = at["mu"] + np.arange(k)
        base[..., m:] = -values["cone_g"]
    constraints["base"] = work.store(base) + number
    rows["base"] = constraints["base"][:, 0]
    # 3. tables, and entries of C, B and D
    result = {"relations": rows, "number": number, "constraints": constraints.reshape(-1)}
    result |= {key: value.reshape(records.size, -1) for key, value in (("lower", lower), ("upper", upper))}
    n = int(rows["n"][0])
    row, column, C = _places(line, "C", rows, (m, n))
    result["entries"] = _kept(values, "C", entries_at(parts, line.sides, line.elements, row, column, C, number))
    row, column, B = _places(line, "B", rows, (n, m))
    result["inputs"] = _kept(values, "B", entries_at(parts, line.sides, line.elements, column, row, B, number))
    result["couplings"] = _couplings(line, rows, number, k, work)
    return result


def _places(line, field, rows, shape):
    """(row, column) of the entries of an operator that are stored, and where they lie in the work memory (elements, entries)."""
    if not _is_sparse(line.values, field):
        row, column = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
        return row, column, rows[field][:, None] + np.arange(row.size)
    row, column = stored_pattern(line, field)
    return row, column, rows[field][:, None] + np.arange(row.size)


def _relation_rows(line, parts, functions, work):
    """Rows of `relation_rows`, and where arguments, values and operators lie in the work memory."""
    rows, values, of_users = relation_rows(line, parts, functions, RELATION), line.values, RELATIONS[line.kind].functions
    (n_members, count), at = values.shape, line.at
    m, n, n_z = line.m, int(rows["n"][0]), int(rows["n_z"][0])  # products of the table's own integers overflow
    sizes = {"x": n, "lam": m, "h": m, "g": n, "C": m * n, "B": n * m, "D": m * m, "K": n * n, "F": m * n_z, "bounds": 2 * m}
    for field, size in sizes.items():
        if field in SPARSE_OPERATORS:
            rows[field + "_rows"] = at[field][:, 0] if _is_sparse(values, field) else ABSENT
        # numbers of F are in the base
        is_none = field == "D" and "D" not in values.dtype.names and (rows["h_function"] == ABSENT).all()
        if (field in "DK" and field not in of_users) or is_none or (field == "F" and (rows["F_function"] == ABSENT).all()):
            rows[field] = ABSENT
            continue
        if _is_sparse(values, field):
            data = values[field]["data"]
            size = data.shape[-1]
        else:
            data = values[field] if _is_numeric(values, field) else None
        rows[field] = (work.reserve(count * size) if data is None else work.store(data.reshape(n_members, -1))) + size * np.arange(count)
    return rows


def _is_numeric(values, field):
    """Whether an interaction has the field, in numbers."""
    return field in values.dtype.names and values.dtype[field].base.kind == "f"


def _is_sparse(values, field):
    """Whether an interaction has the operator by compressed rows."""
    return field in SPARSE_OPERATORS and field in values.dtype.names and values.dtype[field].names is not None


def _constant_output(values, m):
    """``e + F z`` of numbers, (members, elements, m)."""
    result = np.zeros((*values.shape, m))
    if _is_numeric(values, "e"):
        result += values["e"].reshape(result.shape)
    if _is_numeric(values, "F"):
        result += np.einsum("...ij,...j->...i", values["F"], values["z"])
    return result


def _kept(values, field, entries):
    """Without the entries whose coefficient is a number that is 0 in every member and element."""
    rows, owner = entries
    if _is_sparse(values, field) or _is_numeric(values, field):
        numbers = values[field]["data"] if _is_sparse(values, field) else values[field]
        kept = (numbers.reshape(*values.shape, -1) != 0).any(axis=0)
        return rows[kept], owner[kept]
    return rows.reshape(-1), owner.reshape(-1)


def _couplings(line, rows, number, k, work):
    """Entries of D, and of the skew pair ``-G^T``, ``G`` of a cone: (table, owners)."""
    values, m, pieces = line.values, line.m, [(np.zeros(0, COUPLING), np.zeros(0, np.int64))]

    def add(coefficient, owner, partner, sign, kept):
        shape = np.broadcast_shapes(coefficient.shape, owner.shape, partner.shape)
        coupling = np.zeros(shape, COUPLING)
        coupling["coefficient"], coupling["constraint"], coupling["sign"] = coefficient, partner, sign
        kept = np.broadcast_to(kept, shape)
        pieces.append((coupling[kept], np.broadcast_to(owner, shape)[kept]))

    has_function = rows["D_function"][0] != ABSENT or (rows["h_function"][0] != ABSENT and rows["D"][0] != ABSENT)
    # 1. D
    if _is_sparse(values, "D") and not has_function:
        row, column, where = _places(line, "D", rows, (m, m))
        add(where, number[:, row], number[:, column], 1, (values["D"]["data"] != 0).any(axis=0))
    elif "D" in values.dtype.names or has_function:
        where = rows["D"][:, None, None] + np.arange(m * m).reshape(m, m)
        kept = np.True_ if has_function else (values["D"].reshape(*values.shape, m, m) != 0).any(axis=0)
        add(where, number[:, :m, None], number[:, None, :m], 1, kept)
    # 2. cone: G z couples the multipliers of the cone with lambda, skew-symmetric
    if k:
        G = np.broadcast_to(values["cone_G"], (*values.shape, k, m))
        where = (
            work.store(G.reshape(values.shape[0], -1)) + k * m * np.arange(values.shape[1])[:, None, None] + np.arange(k * m).reshape(k, m)
        )
        kept = (G != 0).any(axis=0)
        add(where, number[:, m:, None], number[:, None, :m], 1, kept)
        add(where.swapaxes(1, 2), number[:, :m, None], number[:, None, m:], -1, kept.swapaxes(1, 2))
    return tuple(np.concatenate(column) for column in zip(*pieces, strict=True))


def is_constant(records):
    """True when all is linear and only b, T, u and e depend on time: the form of a step that is prepared once."""
    systems, interactions, _ = split(model_of(records))
    fields = [(name, field) for name, *_ in systems for field in "fA"] + [(name, field) for name, *_ in interactions for field in "hCBDF"]
    return not any(field in records.dtype[name].base.names and records.dtype[name].base[field].kind == "S" for name, field in fields)
