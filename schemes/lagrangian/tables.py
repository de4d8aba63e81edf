"""Tables of Lagrangian systems: parts, relations and constraints, with H, B and D gathered in the work memory.

The linear and the Newton form of a step read H, B and D through the same tables; only the latter evaluates them anew.

The constraints of a contact with friction lie behind one another: the normal one, one or two tangents, then those of rolling.
"""

from typing import NamedTuple

import numpy as np

from nsds.model.kinds import RELATIONS, split
from nsds.model.laws import LAWS, is_force, rows_of_contact
from nsds.model.layout import ABSENT, COUPLING, RANGES, FunctionSlots, entries_at, join, table
from nsds.model.records import model_of
from nsds.schemes.problem.lines import interaction, parts_of, relation_rows

# One row per system; element e of an array part lies stride * e words further; v = q + n, p = q + 2 n. T and u_work are places in the work
# memory: of T, and of u.
PART = table(
    "count", "stride", "n", "dof", "body", "q", "z", "n_z", "M", "M_kind", "M_nnz", "K", "K_kind", "K_nnz", "C", "C_kind", "C_nnz",
    "fext", "u", "n_u", "T", "u_work",
    "mass_function", "fint_function", "fgyr_function", "fext_function", "jac_q_function", "jac_v_function", "T_function", "u_function",
)  # fmt: skip
# One row per scalar unknown of the one-step problem. In the record: y, ydot, lam, active; gap and gap_rate, the y and ydot of the contact
# it belongs to. component: its place in the contact, 0 of the normal constraint and of one without friction; tangents: of the contact, 0
# without friction. In the work memory: base, the constant part of y; h, the value of a nonlinear y; rate, what ydot is besides H v;
# curvature, what its derivative is besides H a; e; of multiple impacts stiffness and exponent; of laws of impacts rebound and blow, see
# `schemes.problem.impact`; mu and mu_r of the contact; lower and upper, bounds of the force, of laws that have their own; closed, up
# to which the gap counts as closed; pull, what the forces add to ydot in a step. impact_law: a place in IMPACTS.
CONSTRAINT = table(
    "y", "ydot", "lam", "active", "gap", "gap_rate", "component", "tangents", "closed", "pull", "level", "bilateral", "always", "base", "h",
    "rate", "curvature", "e", "stiffness", "exponent", "impact_law", "rebound", "blow", "mu", "mu_r", "lower", "upper", *RANGES,
)  # fmt: skip
POSITION, VELOCITY, DRIVEN = range(3)
# One row per element of an interaction that users' functions say something of; what kind of relation it is, kernels see in which of them it
# has, and in the places that are ABSENT: rate, where ydot is H v, and D, where y does not depend on lambda. active, multiplier: where those
# of its first constraint lie; block: how many are one contact. In the work memory: arguments x and lam, values h, g and rate, operators,
# scaled: D as the one-step problem has it. Its coordinates are n_first behind q_first, then the rest behind q_second; dof_first and
# dof_second are their numbers.
RELATION = table(
    "m", "n", "n_first", "q_first", "q_second", "dof_first", "dof_second", "body_first", "body_second", "z", "n_z", "level", "block",
    "active", "multiplier", "x", "lam", "h", "g", "rate", "curvature", "H", "B", "D", "scaled", "e",
    "h_function", "g_function", "H_function", "h_t_function", "D_function", "B_function", "velocity_function",
)  # fmt: skip
TANGENTS = {("rolling", 3): 1, ("rolling", 5): 2}  # of a contact: (form of its law, constraints)
TANGENTS |= {(form, size): size - 1 for form in ("friction", "poisson", "multiple_impact") for size in (2, 3)}
CURVATURE = 4  # entries a row: curvature, its error, what it was by other points, and of a relation how far these are apart
IMPACTS = ("", "multiple_impact", "poisson")  # forms of laws of impacts, by the place that constraints and plans have
_PART_FUNCTIONS = ("mass", "fint", "fgyr", "fext", "jac_q", "jac_v", "T", "u")


class Layout(NamedTuple):
    """Tables of one model, before the constraints are ordered, and what goes with their rows."""

    parts: np.ndarray
    relations: np.ndarray
    constraints: np.ndarray
    entries: np.ndarray
    inputs: np.ndarray
    couplings: np.ndarray
    functions: np.ndarray
    part_names: tuple
    relation_names: tuple
    owners: tuple  # (interaction, element, row) of each constraint
    sizes: dict  # constraints in an element of each interaction


def layout_of(records, work, owner, h, reach, has_impact_laws=False):
    """Tables of a record or ensemble; constants are stored in the work memory by its allocator.

    reach: how far a unit of v_{k+1} moves q_{k+1}. At position level the unknown is the impulse ``h lambda``, and the equation, that of
    ``y / reach``, is like one of velocities. has_impact_laws: whether the scheme treats these.

    Raises
    ------
    ValueError
        A law that does not go with its relation; the members of an ensemble differ in which elements their interactions act on.
    """
    systems, interactions, _ = split(model_of(records))
    functions = FunctionSlots(records)
    parts = parts_of(records, systems, functions, work, PART, ("fext", "u"), ("M", "K", "C"))
    index = {name: i for i, (name, _) in enumerate(systems)}
    lines = [interaction(records, index, line) for line in interactions]
    _require_impacts_of_one_law(owner, lines, has_impact_laws)
    if components(records)[0]:
        _require_finite_bounds(owner, lines)
    pieces = [_pieces(records, parts, line, functions, work, owner, h, reach) for line in lines]
    constraints, entries, inputs, couplings = join(pieces, CONSTRAINT)
    relations = np.concatenate([np.zeros(0, RELATION), *(piece["relations"] for piece in pieces)])
    sizes = {line[0]: max(records.dtype[line[0]].base["y"].shape, default=1) for line in interactions}
    names = tuple(name for (name, *_), piece in zip(interactions, pieces, strict=True) for _ in piece["relations"])
    owners = tuple(
        (line[0], *where) for line, piece in zip(interactions, pieces, strict=True) for where in np.ndindex(piece["number"].shape)
    )
    return Layout(parts, relations, constraints, entries, inputs, couplings, functions.addresses, tuple(index), names, owners, sizes)


def _require_finite_bounds(owner, lines):
    """Beside contacts with friction a bounded force is a contact of its own, which wants both bounds."""
    for line in lines:
        law = LAWS[line.law]
        if law.is_bounded and not np.isfinite(law.bounds(line.values, line.m)).all():
            raise ValueError(
                f"{owner}: interaction '{line.name}': beside contacts with friction {line.law} wants finite bounds; "
                "a force that is bounded on one side only is nsds.newton_impact or nsds.complementarity, a free one nsds.equality"
            )


def _require_impacts_of_one_law(owner, lines, is_treated):
    """All contacts of an impact by one of the laws of impacts have such a law, and one exponent; beside it there are equations at most."""
    found = [line for line in lines if LAWS[line.law].form in IMPACTS]
    if not found:
        return
    where, law, form = f"{owner}: interaction '{found[0].name}'", found[0].law, LAWS[found[0].law].form
    if not is_treated:
        raise ValueError(f"{where}: {law} is for nsds.event_driven, and nsds.moreau_jean, form='reduced', and its projections")
    of_forces = [line for line in lines if is_force(line.law, line.kind, "D" in line.at)]
    other = next((line for line in lines if LAWS[line.law].form not in (form, "equality") or line in of_forces), None)
    if other is not None:
        raise ValueError(
            f"{where} has the law {law}, which goes with no other law but equality of velocities, and '{other.name}' has {other.law}"
        )
    if "exponent" not in LAWS[law].parameters:
        return
    exponents = [line.values["exponent"].reshape(line.values.shape[0], -1) for line in found]
    exponents = np.concatenate(exponents, axis=1)
    if (exponents != exponents[:, :1]).any():
        raise ValueError(f"{where}: all multiple impacts of a system must have one exponent")


def is_linear(layout):
    """True when matrices and relations are constant: the form of a step that is prepared once."""
    varies = [layout.parts[f"{field}_function"] != ABSENT for field in _PART_FUNCTIONS if field != "fext"]
    return not np.any(varies) and not change(layout.relations).any() and bool((layout.parts["n_u"] == 0).all())


def change(relations):
    """Which rows have an H or a rate that changes with q."""
    return (relations["h_function"] != ABSENT) | (relations["H_function"] != ABSENT) | (relations["h_t_function"] != ABSENT)


def components(records):
    """(components of the largest contact with friction of a record, whether one resists rolling); (0, False) without friction."""
    d, rolls = 0, False
    for name, _, law, *_ in split(model_of(records))[1]:
        if LAWS[law].blocks:
            d, rolls = max(d, rows_of_contact(law, records.dtype[name].base)), rolls or LAWS[law].form == "rolling"
    return d, rolls


def _pieces(records, parts, line, functions, work, owner, h, reach):
    """Relations, constraints, entries of H, B and D of one interaction; constraints are numbered from 0."""
    values, m, at, law = line.values, line.m, line.at, LAWS[line.law]
    count, block = values.shape[1], rows_of_contact(line.law, values.dtype)
    level = _level(owner, line, reach)
    constraints = constraints_of(line, block, level, work)
    number = np.arange(count * m).reshape(count, m)
    if "b" in at:
        constraints["base"] = work.store(values["b"].reshape(records.size, -1)) + number
    relations = _relation_rows(line, parts, functions, level, work)
    pieces = {"number": number}
    for column in ("h", "rate", "curvature"):
        if relations[column][0] != ABSENT:
            constraints[column] = relations[column][:, None] + np.arange(m)
    if law.restitution:
        relations["e"] = constraints["e"][:, 0]
    relations["block"] = block
    relations["active"], relations["multiplier"] = constraints["active"][:, 0], constraints["lam"][:, 0]
    _store_operators(pieces, line, relations, parts, number, work, 1.0 / (h * reach) if reach else 0.0)
    pieces["relations"] = relations if RELATIONS[line.kind].functions else relations[:0]
    pieces["constraints"] = constraints.reshape(-1)
    return pieces


def constraints_of(line, block, level, work):
    """Rows (elements, m) of one interaction, with what its law says; block: how many make a contact."""
    values, m, at, law = line.values, line.m, line.at, LAWS[line.law]
    count = values.shape[1]
    constraints = np.zeros((count, m), CONSTRAINT)
    for column, key in (("y", "y"), ("ydot", "ydot"), ("lam", "lambda"), ("active", "active")):
        constraints[column] = at[key] + np.arange(m)
    constraints["component"] = np.arange(m) % block
    first = np.arange(m) - constraints["component"][0]
    constraints["gap"], constraints["gap_rate"] = at["y"] + first, at["ydot"] + first
    constraints["tangents"] = TANGENTS.get((law.form, block), 0)
    for column in ("closed", "pull"):
        constraints[column] = (work.reserve(count * m) + np.arange(count * m).reshape(count, m))[:, first]
    constraints["level"], constraints["bilateral"] = level, law.form == "equality"
    constraints["always"] = law.bilateral or law.is_bounded or level == POSITION
    for column in ("base", "h", "rate", "curvature", "e", "stiffness", "exponent", "rebound", "blow", "mu", "mu_r", "lower", "upper"):
        constraints[column] = ABSENT
    _store_parameters(constraints, values, law, m, block, work)
    return constraints


def _level(owner, line, reach):
    """Whether the law holds for y or for ydot: a complementarity between y and a lambda that y depends on is one of positions.

    DRIVEN are laws of velocities that say nothing of y.
    """
    if RELATIONS[line.kind].role == "drive" or LAWS[line.law].is_bounded:
        return DRIVEN
    if not is_force(line.law, line.kind, "D" in line.at):
        return VELOCITY
    if reach == 0:
        raise ValueError(f"{owner}: interaction '{line.name}' is a law between y and a force, which theta = 0 cannot treat; raise theta")
    return POSITION


def _store_parameters(constraints, values, law, m, block, work):
    """Restitution of each constraint, coefficients of friction of contacts, bounds that are the law's own."""
    n_members, count = values.shape
    contacts = np.arange(count * (m // block)).reshape(count, m // block)
    for field, of_components in zip(law.restitution, (slice(0, 1), slice(1, 1 + constraints["tangents"].max(initial=0))), strict=False):
        places = work.store(values[field].reshape(n_members, -1)) + contacts
        for component in range(*of_components.indices(block)):
            constraints["e"][:, component::block] = places
    if law.form in IMPACTS:
        constraints["impact_law"] = IMPACTS.index(law.form)
        for field in ("stiffness", "exponent"):
            if field in law.parameters:
                constraints[field] = np.repeat(work.store(values[field].reshape(n_members, -1)) + contacts, block, axis=1)
        for column in ("rebound", "blow"):
            constraints[column] = work.reserve(count * m) + np.arange(count * m).reshape(count, m)
    for field in ("mu", "mu_r") if block > 1 else ():
        if field in law.parameters:
            constraints[field] = np.repeat(work.store(values[field].reshape(n_members, -1)) + contacts, block, axis=1)
    if law.is_bounded:
        for column, bound in zip(("lower", "upper"), law.bounds(values, m), strict=True):
            constraints[column] = work.store(bound.reshape(n_members, -1)) + np.arange(count * m).reshape(count, m)


def _relation_rows(line, parts, functions, level, work):
    """Rows of `relation_rows`, and where arguments and values lie in the work memory."""
    rows, values, m = relation_rows(line, parts, functions, RELATION), line.values, line.m
    n_members, count = values.shape
    n, each, of_users = rows["n"][0], np.arange(count), RELATIONS[line.kind].functions
    for which, end in (("first", 0), ("second", -1)):
        rows[f"body_{which}"] = parts["body"][line.sides[end]] + line.elements[:, end]
    rows["level"] = level
    for column in ("h", "rate", "curvature", "D", "e"):
        rows[column] = ABSENT
    if of_users:
        for field, size in (("x", n), ("lam", m), ("h", m), ("g", n if "g" in of_users else 0), ("curvature", CURVATURE * m)):
            rows[field] = work.reserve(count * size) + size * each
    if "velocity" in values.dtype.names and values.dtype["velocity"].base.kind == "f":
        rows["rate"] = work.store(-values["velocity"].reshape(n_members, -1)) + m * each
    elif of_users and ("h_t" in of_users or "h" not in of_users):
        rows["rate"] = work.reserve(count * m) + m * each
    return rows


def _store_operators(pieces, line, relations, parts, number, work, position_scale):
    """H, B and D in the work memory, and the entries of each."""
    values, sides, elements = line.values, line.sides, line.elements
    n_members, count = values.shape
    fields, m, n = values.dtype.names, *(relations[column][0] for column in ("m", "n"))
    each = np.arange(count)[:, None]
    is_sparse = "H" in fields and values.dtype["H"].names is not None
    if "dofs" in fields:
        H = np.zeros((*values.shape, m, n))
        np.put_along_axis(H, values["dofs"].reshape(*values.shape, m, 1), 1.0, axis=-1)
    elif "H" in fields and values.dtype["H"].kind != "S" and not is_sparse:
        H = values["H"]
    else:
        H = None
    if is_sparse:
        row, column, data = _pattern(values, m, line.name)
        coefficient = work.store(data.reshape(n_members, -1)) + row.size * each + np.arange(row.size)
        kept = (data != 0).any(axis=0)
    else:
        row, column = np.divmod(np.arange(m * n), n)
        relations["H"] = (work.reserve(count * m * n) if H is None else work.store(H.reshape(n_members, -1))) + m * n * each[:, 0]
        coefficient = relations["H"][:, None] + np.arange(m * n)
        kept = np.ones((count, m * n), bool) if H is None else (H.reshape(n_members, count, -1) != 0).any(axis=0)
    pieces["entries"] = _chosen(entries_at(parts, sides, elements, row, column, coefficient, number), kept)
    relations["B"] = relations["H"]
    if relations["g_function"][0] != ABSENT:
        relations["B"] = work.reserve(count * n * m) + n * m * each[:, 0]
        coefficient = relations["B"][:, None] + column * m + row
    pieces["inputs"] = _chosen(entries_at(parts, sides, elements, row, column, coefficient, number), kept)
    pieces["couplings"] = _couplings(line, relations, number, work, position_scale)


def _chosen(entries, kept):
    rows, owner = entries
    return rows[kept], owner[kept]


def _pattern(values, m, name):
    """(row, column, data) of a sparse H, whose pattern is that of the first member and element."""
    pattern = values["H"]
    indptr, indices = (pattern[key].reshape(-1, pattern[key].shape[-1]) for key in ("indptr", "indices"))
    if (indptr != indptr[0]).any() or (indices != indices[0]).any():
        raise ValueError(f"interaction '{name}': a sparse H must have the same pattern in all members and elements")
    return np.repeat(np.arange(m), np.diff(indptr[0])), indices[0], pattern["data"]


def _couplings(line, relations, number, work, position_scale):
    """Entries of D: (table, owners)."""
    values = line.values
    n_members, count = values.shape
    m, level = (relations[column][0] for column in ("m", "level"))
    if "D" not in values.dtype.names and "D" not in RELATIONS[line.kind].functions:
        return np.zeros(0, COUPLING), np.zeros(0, np.int64)
    scale = position_scale if level == POSITION else 1.0
    is_number = "D" in values.dtype.names and values.dtype["D"].base.kind == "f"
    size = count * m * m
    relations["D"] = work.reserve(size) + m * m * np.arange(count)
    scaled = work.store(scale * values["D"].reshape(n_members, -1)) if is_number else work.reserve(size)
    relations["scaled"] = scaled + m * m * np.arange(count)
    rows = np.zeros((count, m, m), COUPLING)
    rows["coefficient"] = relations["scaled"][:, None, None] + np.arange(m * m).reshape(m, m)
    rows["constraint"], rows["sign"] = number[:, None, :], 1
    return rows.reshape(-1), np.repeat(number.reshape(-1), m)
