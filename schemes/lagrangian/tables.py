"""Tables of Lagrangian systems: parts, relations and constraints, with H, B and D gathered in the work memory.

The linear and the Newton form of a step read H, B and D through the same tables; only the latter evaluates them again in each iteration.

The constraints of a contact with friction follow each other: the normal one, one or two tangents, then those of rolling.
"""

import numpy as np

from nsds.model.laws import LAWS, is_force, rows_of_contact
from nsds.model.layout import ABSENT, COUPLING, FunctionSlots, entries_at, join, table
from nsds.model.records import model_of
from nsds.model.system_kinds import RELATIONS, split
from nsds.schemes.memory import require_affordable
from nsds.schemes.problem.kinds import components
from nsds.schemes.problem.model_reader import Layout, interaction, parts_of, relation_rows, stored_pattern
from nsds.schemes.problem.rows import CONSTRAINT, DRIVEN, IMPACTS, POSITION, VELOCITY

# One row per system; element e of an array part is stride * e entries further; v = q + n, p = q + 2 n.
PART = table(
    # count elements of n coordinates, stride apart; dof, body: number of the first coordinate and element among all
    "count", "stride", "n", "dof", "body",
    # record: q, and behind it v, p; z (n_z): parameters of user functions
    "q", "z", "n_z",
    # record: mass, stiffness and damping matrices, their storage (dense, diagonal, sparse) and number of entries
    "M", "M_kind", "M_nnz", "K", "K_kind", "K_nnz", "C", "C_kind", "C_nnz",
    # record: fext (n), N; u (n_u): controls; work memory: T (n, n_u), and u_work, a copy of u
    "fext", "u", "n_u", "T", "u_work",
    # slots of user functions
    "mass_function", "fint_function", "fgyr_function", "fext_function", "jac_q_function", "jac_v_function", "T_function", "u_function",
)  # fmt: skip
# One row per element of an interaction that has user functions; the kind of relation shows in the ones that it has, and in offsets that
# are ABSENT: rate, if ydot = H v, and D, if y does not depend on lambda.
RELATION = table(
    # m rows, n coordinates, n_first of them from q_first on and the rest from q_second; dof_*, body_*: their numbers
    "m", "n", "n_first", "q_first", "q_second", "dof_first", "dof_second", "body_first", "body_second",
    # z (n_z): parameters; level: POSITION or velocity; block: constraints that are one contact
    "z", "n_z", "level", "block",
    # record: flag and multiplier of its first constraint; work memory: arguments x (n), lam (m), values h (m), g (n), rate (m): explicit
    # time derivative, ydot = H v + rate; curvature (m): d/dt(ydot) = H a + curvature
    "active", "multiplier", "x", "lam", "h", "g", "rate", "curvature",
    # work memory: H (m, n), B (n, m), D (m, m); scaled: D in the units of the one-step problem; e: restitution
    "H", "B", "D", "scaled", "e",
    # slots of user functions
    "h_function", "g_function", "H_function", "h_t_function", "D_function", "B_function", "velocity_function",
)  # fmt: skip
_SPARSE_H = "state it in several interactions, or as nsds.lagrangian_linear_relation with an H of scipy.sparse"
CURVATURE = 4  # entries a row: curvature, its error, its value by other points, and of a relation the distance of these
_PART_FUNCTIONS = ("mass", "fint", "fgyr", "fext", "jac_q", "jac_v", "T", "u")


def layout_of(records, work, owner, h, reach, has_impact_laws=False):
    """Tables of a record or ensemble; constants are stored in the work memory by its allocator.

    reach: displacement of q_{k+1} by a unit of v_{k+1}. At position level the unknown is the impulse ``h lambda``, and the equation, that
    of ``y / reach``, is like one of velocities. has_impact_laws: whether the scheme treats these.

    Raises
    ------
    ValueError
        A law that does not go with its relation; the members of an ensemble differ in which elements their interactions act on.
    """
    systems, interactions, _ = split(model_of(records))
    functions = FunctionSlots(records)
    # 1. parts, then interactions, which refer to them by number
    parts = parts_of(records, systems, functions, work, PART, ("fext", "u"), ("M", "K", "C"))
    index = {name: i for i, (name, _) in enumerate(systems)}
    lines = [interaction(records, index, line) for line in interactions]
    _require_impacts_of_one_law(owner, lines, has_impact_laws)
    if components(records)[0]:
        _require_finite_bounds(owner, lines)
    pieces = [_pieces(records, parts, line, functions, work, owner, h, reach) for line in lines]
    # 2. one table of all constraints, and one of relations with functions
    constraints, entries, inputs, couplings = join(pieces, CONSTRAINT)
    relations = np.concatenate([np.zeros(0, RELATION), *(piece["relations"] for piece in pieces)])
    sizes = {line[0]: max(records.dtype[line[0]].base["y"].shape, default=1) for line in interactions}
    # 3. names by row, for messages
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
    found = [line for line in lines if LAWS[line.law].treatment.impact]
    if not found:
        return
    where, law, form = f"{owner}: interaction '{found[0].name}'", found[0].law, LAWS[found[0].law].treatment
    if not is_treated:
        raise ValueError(f"{where}: {law} is for nsds.event_driven, and nsds.moreau_jean, form='reduced', and its projections")
    of_forces = [line for line in lines if is_force(line.law, line.kind, "D" in line.at)]
    other = next((line for line in lines if not _goes_with(LAWS[line.law].treatment, form) or line in of_forces), None)
    if other is not None:
        raise ValueError(
            f"{where} has the law {law}, which goes with no other law but equality of velocities, and '{other.name}' has {other.law}"
        )
    if "exponent" not in LAWS[law].parameters:
        return
    # one exponent for all members and contacts: the law is integrated along one path
    exponents = [line.values["exponent"].reshape(line.values.shape[0], -1) for line in found]
    exponents = np.concatenate(exponents, axis=1)
    if (exponents != exponents[:, :1]).any():
        raise ValueError(f"{where}: all multiple impacts of a system must have one exponent")


def _goes_with(form, of_impacts):
    """Whether laws of a form, and those of a law of impacts, may be in one impact."""
    return form.is_equation or form.impact == of_impacts.impact


def is_linear(layout):
    """True when matrices and relations are constant: the form of a step that is prepared once."""
    varies = [layout.parts[f"{field}_function"] != ABSENT for field in _PART_FUNCTIONS if field != "fext"]
    return not np.any(varies) and not change(layout.relations).any() and bool((layout.parts["n_u"] == 0).all())


def change(relations):
    """Which rows have an H or a rate that changes with q."""
    return (relations["h_function"] != ABSENT) | (relations["H_function"] != ABSENT) | (relations["h_t_function"] != ABSENT)


def _pieces(records, parts, line, functions, work, owner, h, reach):
    """Relations, constraints, entries of H, B and D of one interaction; constraints are numbered from 0."""
    values, m, at, law = line.values, line.m, line.at, LAWS[line.law]
    count, block = values.shape[1], rows_of_contact(line.law, values.dtype)
    # 1. constraints, and relations with functions
    level = _level(owner, line, reach)
    constraints = constraints_of(line, block, level, work)
    number = np.arange(count * m).reshape(count, m)
    if "b" in at:
        constraints["base"] = work.store(values["b"].reshape(records.size, -1)) + number
    relations = _relation_rows(line, parts, functions, level, work)
    pieces = {"number": number}
    # 2. values that functions of relations compute are those of their constraints
    for column in ("h", "rate", "curvature"):
        if relations[column][0] != ABSENT:
            constraints[column] = relations[column][:, None] + np.arange(m)
    if law.restitution:
        relations["e"] = constraints["e"][:, 0]
    relations["block"] = block
    relations["active"], relations["multiplier"] = constraints["active"][:, 0], constraints["lam"][:, 0]
    # 3. operators, and their entries in the tables of the problem
    _store_operators(pieces, line, relations, parts, number, work, 1.0 / (h * reach) if reach else 0.0)
    pieces["relations"] = relations if RELATIONS[line.kind].functions else relations[:0]
    pieces["constraints"] = constraints.reshape(-1)
    return pieces


def constraints_of(line, block, level, work):
    """Rows (elements, m) of one interaction, with the parameters of its law; block: constraints of a contact."""
    values, m, at, law = line.values, line.m, line.at, LAWS[line.law]
    count = values.shape[1]
    constraints = np.zeros((count, m), CONSTRAINT)
    # 1. fields of the record
    for column, key in (("y", "y"), ("ydot", "ydot"), ("lam", "lambda"), ("active", "active")):
        constraints[column] = at[key] + np.arange(m)
    # 2. place in the contact: the gap decides whether all its constraints are active
    constraints["component"] = np.arange(m) % block
    first = np.arange(m) - constraints["component"][0]
    constraints["gap"], constraints["gap_rate"] = at["y"] + first, at["ydot"] + first
    constraints["tangents"] = law.treatment.tangents.get(block, 0)
    for column in ("closed", "pull"):
        constraints[column] = (work.reserve(count * m) + np.arange(count * m).reshape(count, m))[:, first]
    # 3. the law: level, bilateral, active whatever the gap
    constraints["level"], constraints["bilateral"] = level, law.treatment.is_equation
    constraints["always"] = law.bilateral or law.is_bounded or level == POSITION
    for column in ("base", "h", "rate", "curvature", "e", "stiffness", "exponent", "rebound", "blow", "mu", "mu_r", "lower", "upper"):
        constraints[column] = ABSENT
    _store_parameters(constraints, values, law, m, block, work)
    return constraints


def _level(owner, line, reach):
    """Whether the law holds for y or for ydot: a complementarity between y and a lambda that y depends on is one of positions.

    DRIVEN are laws of velocities without y.
    """
    if RELATIONS[line.kind].role == "drive" or LAWS[line.law].is_bounded:
        return DRIVEN
    if not is_force(line.law, line.kind, "D" in line.at):
        return VELOCITY
    if reach == 0:
        raise ValueError(f"{owner}: interaction '{line.name}' is a law between y and a force, which theta = 0 cannot treat; raise theta")
    return POSITION


def _store_parameters(constraints, values, law, m, block, work):
    """Restitution of each constraint, friction coefficients of contacts, bounds of the law itself."""
    n_members, count = values.shape
    contacts = np.arange(count * (m // block)).reshape(count, m // block)
    # 1. restitution along the normal and along tangents
    for field, of_components in zip(law.restitution, (slice(0, 1), slice(1, 1 + constraints["tangents"].max(initial=0))), strict=False):
        places = work.store(values[field].reshape(n_members, -1)) + contacts
        for component in range(*of_components.indices(block)):
            constraints["e"][:, component::block] = places
    # 2. laws of multiple impacts
    if law.treatment.impact:
        constraints["impact_law"] = IMPACTS.index(law.treatment.impact)
        for field in ("stiffness", "exponent"):
            if field in law.parameters:
                constraints[field] = np.repeat(work.store(values[field].reshape(n_members, -1)) + contacts, block, axis=1)
        for column in ("rebound", "blow"):
            constraints[column] = work.reserve(count * m) + np.arange(count * m).reshape(count, m)
    # 3. friction, repeated for all constraints of a contact
    for field in ("mu", "mu_r") if block > 1 else ():
        if field in law.parameters:
            constraints[field] = np.repeat(work.store(values[field].reshape(n_members, -1)) + contacts, block, axis=1)
    if law.is_bounded:
        for column, bound in zip(("lower", "upper"), law.bounds(values, m), strict=True):
            constraints[column] = work.store(bound.reshape(n_members, -1)) + np.arange(count * m).reshape(count, m)


def _relation_rows(line, parts, functions, level, work):
    """Rows of `relation_rows`, and offsets of arguments and values in the work memory."""
    rows, values, m = relation_rows(line, parts, functions, RELATION), line.values, line.m
    n_members, count = values.shape
    n, each, of_users = rows["n"][0], np.arange(count), RELATIONS[line.kind].functions
    # 1. bodies and level
    for which, end in (("first", 0), ("second", -1)):
        rows[f"body_{which}"] = parts["body"][line.sides[end]] + line.elements[:, end]
    rows["level"] = level
    for column in ("h", "rate", "curvature", "D", "e"):
        rows[column] = ABSENT
    # 2. arguments and values of user functions
    if of_users:
        for field, size in (("x", n), ("lam", m), ("h", m), ("g", n if "g" in of_users else 0), ("curvature", CURVATURE * m)):
            rows[field] = work.reserve(count * size) + size * each
    # 3. rate: a prescribed velocity, or the explicit time derivative
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
    # 1. constant H, if it is known before the first step
    each = np.arange(count)[:, None]
    is_sparse = "H" in fields and values.dtype["H"].names is not None
    if not is_sparse:
        require_affordable(f"interaction '{line.name}': H", count * int(m) * int(n), _SPARSE_H)
    if "dofs" in fields:
        H = np.zeros((*values.shape, m, n))
        np.put_along_axis(H, values["dofs"].reshape(*values.shape, m, 1), 1.0, axis=-1)
    elif "H" in fields and values.dtype["H"].kind != "S" and not is_sparse:
        H = values["H"]
    else:
        H = None
    # 2. entries: zeros of a constant H are dropped, those that a function fills are all kept
    if is_sparse:
        row, column = stored_pattern(line, "H")
        data = values["H"]["data"]
        coefficient = work.store(data.reshape(n_members, -1)) + row.size * each + np.arange(row.size)
        kept = (data != 0).any(axis=0)
    else:
        row, column = np.divmod(np.arange(m * n), n)
        relations["H"] = (work.reserve(count * m * n) if H is None else work.store(H.reshape(n_members, -1))) + m * n * each[:, 0]
        coefficient = relations["H"][:, None] + np.arange(m * n)
        kept = np.ones((count, m * n), bool) if H is None else (H.reshape(n_members, count, -1) != 0).any(axis=0)
    pieces["entries"] = _chosen(entries_at(parts, sides, elements, row, column, coefficient, number), kept)
    # 3. B is H^T, unless the relation has a nonlinear input
    relations["B"] = relations["H"]
    if relations["g_function"][0] != ABSENT:
        relations["B"] = work.reserve(count * n * m) + n * m * each[:, 0]
        coefficient = relations["B"][:, None] + column * m + row
    pieces["inputs"] = _chosen(entries_at(parts, sides, elements, row, column, coefficient, number), kept)
    pieces["couplings"] = _couplings(line, relations, number, work, position_scale)


def _chosen(entries, kept):
    rows, owner = entries
    return rows[kept], owner[kept]


def _couplings(line, relations, number, work, position_scale):
    """Entries of D: (table, owners)."""
    values = line.values
    n_members, count = values.shape
    m, level = (relations[column][0] for column in ("m", "level"))
    if "D" not in values.dtype.names and "D" not in RELATIONS[line.kind].functions:
        return np.zeros(0, COUPLING), np.zeros(0, np.int64)
    scale = position_scale if level == POSITION else 1.0
    if "D" in values.dtype.names and values.dtype["D"].names:
        row, column = stored_pattern(line, "D")
        entries = np.zeros((count, row.size), COUPLING)
        scaled = work.store(scale * values["D"]["data"].reshape(n_members, -1))
        entries["coefficient"] = scaled + np.arange(count * row.size).reshape(count, row.size)
        entries["constraint"], entries["sign"] = number[:, column], 1
        return entries.reshape(-1), number[:, row].reshape(-1)
    is_number = "D" in values.dtype.names and values.dtype["D"].base.kind == "f"
    size = count * m * m
    relations["D"] = work.reserve(size) + m * m * np.arange(count)
    scaled = work.store(scale * values["D"].reshape(n_members, -1)) if is_number else work.reserve(size)
    relations["scaled"] = scaled + m * m * np.arange(count)
    rows = np.zeros((count, m, m), COUPLING)
    rows["coefficient"] = relations["scaled"][:, None, None] + np.arange(m * m).reshape(m, m)
    rows["constraint"], rows["sign"] = number[:, None, :], 1
    return rows.reshape(-1), np.repeat(number.reshape(-1), m)
