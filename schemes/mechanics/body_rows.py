"""Rigid bodies as parts of Lagrangian systems: tables for schemes that are written for rows and parts.

A body is a part of six coordinates, whose velocities and impulses are consecutive in the record; motions and operators of interactions,
which differ from those of Lagrangian systems, are in `nsds.schemes.mechanics.bodies`.

Contacts of shapes are detected in each step: each contact that two shapes can have is a slot, with rows of its own, whose guard is its
gap. While a scheme works, y, ydot and flags of these rows are in the places of their record; `bodies.list_contacts` restores the contacts
there.
"""

from typing import NamedTuple

import numpy as np

from nsds.collision import WORLD
from nsds.collision.groups import meeting
from nsds.collision.kinds import HALF_PLANE, PLANE, thickness_of
from nsds.collision.pairs import most_contacts
from nsds.maths.polynomials import GUARD_DEGREE
from nsds.model.laws import LAWS
from nsds.model.layout import ABSENT, COUPLING, DENSE, ENTRY, join
from nsds.model.records import model_of
from nsds.model.system_kinds import COLLISIONS, NEWTON_EULER, WRITABLE, collisions_of, split
from nsds.schemes.lagrangian import equations, newton
from nsds.schemes.lagrangian.newton import ELEMENT
from nsds.schemes.lagrangian.tables import PART, RELATION, constraints_of
from nsds.schemes.mechanics.bodies import NO_FEATURE
from nsds.schemes.mechanics.tables import PLACES, RIGID_ROWS, Rigid, number_blocks
from nsds.schemes.problem.disks import state_coefficients
from nsds.schemes.problem.model_reader import Interaction, Layout, interaction
from nsds.schemes.problem.rows import CONSTRAINT, DRIVEN, POSITION, VELOCITY
from nsds.schemes.problem.tables import BODY
from nsds.schemes.rigid.tables import INTERACTION, P, V, tables

_LOOKED = 0.1  # of the thinner of two shapes: displacement after which gaps are evaluated again
_MOST = 2000  # rows of contacts of shapes: they have a dense matrix


class Stated(NamedTuple):
    """The rows of a model of rigid bodies, as those of Lagrangian systems, whose parts its bodies are; d: components of a contact."""

    layout: Layout
    rigid: Rigid
    d: int


def state_bodies(owner, records, work, iwork):
    """`Stated` of a record or ensemble, for the scheme that is the owner; the work memory is reserved.

    Raises
    ------
    ValueError
        Spinning friction, parts that may be disabled, a function on contacts, and too many contacts.
    """
    _require_treated(owner, records)
    # 1. tables of bodies and interactions
    lists = tables(records, work, iwork)
    rows = np.zeros(lists.interactions.size, RIGID_ROWS)
    rows["collision"], rows["first"], rows["many"] = ABSENT, np.arange(rows.size), 1
    # 2. slots of the contacts of shapes, after the other interactions
    pairs = [_pairs(owner, records, k, line, lists, work, iwork) for k, line in enumerate(collisions_of(model_of(records)))]
    lists = lists._replace(interactions=np.concatenate([lists.interactions, *(found for found, _ in pairs)], dtype=INTERACTION))
    for (_, row), begin in zip(pairs, np.cumsum([rows.size, *(row.size for _, row in pairs)]), strict=False):
        row["first"] += begin
    rows = np.concatenate([rows, *(row for _, row in pairs)], dtype=RIGID_ROWS)
    # 3. constraints, and memory of configurations
    layout = _layout_of(records, lists, rows, work)
    n, plan = lists.bodies.size, np.zeros(1, PLACES)
    rows["number"] = [iwork.reserve(m) for m in lists.interactions["m"]]
    work.place(plan, q=7 * n, R=9 * n, horizon=1)
    iwork.place(plan, side=1)
    plan["is_short"] = any(row.size > c["capacity"] for (_, row), c in zip(pairs, lists.collisions, strict=True))
    return Stated(layout, Rigid(lists.bodies, lists.interactions, rows, lists.collisions, plan), lists.d)


def newton_form(stated, records, words, method, work, iwork):
    """The Newton form for these rows; the masses are constant in axes of the bodies. Out: numbers of the rows."""
    layout, rigid = stated.layout, stated.rigid
    elements, inverses = _elements(rigid.bodies.size), _inverses(records, layout.part_names, rigid.bodies.size, work)
    places = equations.reserve(layout.constraints, records.size, work, iwork)
    prepared = newton.prepare_problem(records, layout, elements, inverses, inverses, stated.d, words, method, work, iwork)
    for name, at in places.items():
        prepared.tables.plan[name] = at
    if places:
        number_blocks(prepared, prepared.tables.plan, stated.d)
    number = {lam: i for i, lam in enumerate(prepared.tables.constraints["lam"])}
    for r, row in zip(rigid.interactions, rigid.rows, strict=True):
        prepared.iwork[:, row["number"] : row["number"] + r["m"]] = [number[r["lam"] + i] for i in range(r["m"])]
    return prepared


def _require_treated(owner, records):
    """Refuse spinning friction, and parts that may be disabled."""
    model = model_of(records)
    for name, kind, *rest in model:
        if rest and rest[0] in LAWS and LAWS[rest[0]].treatment.spins:
            part = "collisions" if kind == COLLISIONS else "interaction"
            raise ValueError(f"{owner}: {part} '{name}': the scheme does not treat the moment of {rest[0]}; use nsds.moreau_jean")
        for field in WRITABLE[1:]:
            if field in (records.dtype[name].base.names or ()):
                raise ValueError(f"{owner}: the scheme does not treat what comes and goes, as by {name}.{field}; use nsds.moreau_jean")


def _pairs(owner, records, k, line, lists, work, iwork):
    """(rows of INTERACTION, rows of RIGID_ROWS) of slots for all contacts that the shapes of one of the collisions can have."""
    name, part, c = line[0], records[line[0]][0], lists.collisions[k]
    if "on_contact" in part.dtype.names:
        raise ValueError(f"{owner}: collisions '{name}': the scheme follows shapes as they are, without on_contact; use nsds.moreau_jean")
    # 1. pairs of shapes, and how many contacts they can have
    found = np.array(_pairs_of(part, lists.bodies), np.int64).reshape(-1, 3)
    many = found[:, 2]
    slot = np.arange(many.sum())
    if slot.size * c["each"] > _MOST:
        raise ValueError(f"{owner}: collisions '{name}': the shapes can have {slot.size} contacts, which is too many: use nsds.moreau_jean")
    # 2. a slot is an interaction without functions or joint
    interactions, rows = np.zeros(slot.size, INTERACTION), np.zeros(slot.size, RIGID_ROWS)
    for column in interactions.dtype.names:
        interactions[column] = ABSENT if column.endswith("_function") or column in ("row", "dofs", "angle") else 0
    interactions["m"] = interactions["each"] = m = c["each"]
    rows["collision"], rows["slot"], rows["many"] = k, slot, np.repeat(many, many)
    rows["first"] = np.repeat(np.cumsum(many) - many, many)
    # 3. shapes and bodies of each slot
    for side, shape in zip("ab", found.T[:2], strict=True):
        rows[f"shape_{side}"] = np.repeat(shape, many)
        interactions[side] = part["shape_body"][rows[f"shape_{side}"]]
    interactions["b"] = np.where(interactions["b"] == WORLD, ABSENT, interactions["b"])
    # 4. multipliers in the record, operators and geometry in the work memory
    interactions["lam"] = c["lam"] + m * slot
    for column, size in (("H", 12 * m), ("h", m), ("rate", m)):
        interactions[column] = work.reserve(size * slot.size) + size * slot
    for column in ("normal", "point"):
        rows[column] = work.reserve(3 * slot.size) + 3 * slot
    for column in ("least", "rate"):
        rows[column] = work.reserve(slot.size) + slot
    for column in ("least_at", "rate_at"):
        rows[column] = work.reserve(slot.size * (GUARD_DEGREE + 1)) + slot * (GUARD_DEGREE + 1)
    rows["thin"] = work.store(np.stack([_ways(member, found[:, :2]) for member in records[name]])) + slot
    rows["feature"] = iwork.store(np.full((records.size, slot.size), NO_FEATURE)) + slot
    for column in ("state", "changed"):
        rows[column] = iwork.reserve(slot.size) + slot
    return interactions, rows


def _ways(part, pairs):
    """Displacement of two shapes without evaluation, for the slots of each pair: a small part of the thinner one; any on half spaces.

    A shape past the middle of a solid would leave it on the other side; behind a mesh contacts deeper than a quarter of it are not found.
    """
    thickness, ends = thickness_of(part), np.isin(part["shape_kind"], [PLANE, HALF_PLANE])
    ways = _LOOKED * thickness[pairs].min(axis=1)
    many = [most_contacts(*part["shape_kind"][pair]) for pair in pairs]
    return np.repeat(np.where(ends[pairs].any(axis=1), np.inf, ways), many)


def _pairs_of(part, bodies):
    """(shape, shape, most contacts) of the shapes that may meet and move, the first on a body."""
    body, group, found = part["shape_body"], part["group"], []
    can_move, meets = [on != WORLD and not bodies[on]["fixed"] for on in body], meeting(part["mask"], int(group.max()) + 1)
    for a in range(body.size):
        for b in range(a + 1, body.size):
            if body[a] != body[b] and (can_move[a] or can_move[b]) and meets[group[a], group[b]]:
                one, other = (b, a) if body[a] == WORLD else (a, b)
                found.append((one, other, most_contacts(part["shape_kind"][a], part["shape_kind"][b])))
    return found


def _line_of(records, line, c, rows):
    """The contacts of shapes of one of the collisions as an interaction."""
    name, kind, law = line[:3]
    m, slot = int(c["each"]), np.arange(rows.size)[:, None]
    dtype = [(field, float) for field in LAWS[law].parameters]
    values = np.zeros((records.size, rows.size), dtype)
    for field, _ in dtype:
        values[field] = _of_slots(records[name], field, rows)
    at = {"y": c["normal"] + 3 * slot, "ydot": c["point"] + 3 * slot, "lambda": c["lam"] + m * slot, "active": c["a"] + slot}
    return Interaction(name, kind, law, [], None, values, m, at)


def _of_slots(collisions, field, rows):
    """(members, slots) values of a parameter of the law: one for all, or that of the materials of both shapes."""
    if "material" not in collisions.dtype.names:
        return collisions[field].reshape(-1, 1)
    a, b = (collisions["material"][:, rows[f"shape_{side}"]] for side in "ab")
    return collisions[field][np.arange(collisions.size)[:, None], a, b]


def _layout_of(records, lists, rows, work):
    """`Layout` of a record or ensemble. Out: curvature of rows."""
    # 1. interactions of the model, then the slots of its collisions
    lines = [interaction(records, dict(lists.part_names), line) for line in split(model_of(records))[1]]
    for k, line in enumerate(collisions_of(model_of(records))):
        lines.append(_line_of(records, line, lists.collisions[k], rows[rows["collision"] == k]))
    # 2. constraints and entries of each
    pieces, owners, first = [], [], 0
    for line in lines:
        count = line.values.shape[1]
        mine = slice(first, first + count)
        pieces.append(_pieces(line, lists, lists.interactions[mine], rows[mine], work))
        owners += [(line.name, *where) for where in np.ndindex(count, line.m)]
        first += count
    # 3. parts, and names for messages
    parts, relations = _parts(lists.bodies), np.zeros(0, RELATION)
    sizes = {line.name: line.m for line in lines}
    named = lists.interactions[: len(lists.interaction_names)]  # behind them are contacts of shapes
    constraints, *rest = join(pieces, CONSTRAINT)
    return Layout(parts, relations, state_coefficients(constraints), *rest, lists.functions, lists.part_names, owners=tuple(owners),
                  sizes=sizes, bodies=lists.bodies, interactions=named, interaction_names=lists.interaction_names,
                  geometry=lists.general_pairs)  # fmt: skip


def _parts(bodies):
    """Each body as a part of six coordinates: with q such that the velocities are 6 entries after it, impulses 12."""
    parts = np.zeros(bodies.size, PART)
    for column in parts.dtype.names:
        parts[column] = ABSENT if column.endswith("_function") or column in ("M", "K", "C", "fext") else 0
    parts["count"], parts["n"], parts["dof"], parts["body"] = 1, 6, 6 * np.arange(bodies.size), np.arange(bodies.size)
    parts["q"] = bodies["q"] + V - 6
    return parts


def _elements(n):
    """Rows of elements whose masses do not change."""
    elements = np.zeros(n, ELEMENT)
    elements["part"], elements["dof"] = np.arange(n), 6 * np.arange(n)
    elements["mass"] = elements["stiff"] = ABSENT
    return elements


def _inverses(records, part_names, n, work):
    """Inverse masses of all n bodies, of mass and inertia; zero for fixed ones."""
    rows = np.zeros(n, BODY)
    rows["kind"], rows["n"], rows["dof"] = DENSE, 6, 6 * np.arange(rows.size)
    for name, first in part_names:
        values = records[name].reshape(records.size, -1)
        inverse = np.zeros((*values.shape, 6, 6))
        free = ~np.isinf(values["mass"])
        inverse[free, :3, :3] = np.eye(3) / values["mass"][free][:, None, None]
        inverse[free, 3:, 3:] = np.linalg.inv(values["inertia"][free])
        rows["data"][first : first + values.shape[1]] = work.store(inverse) + 36 * np.arange(values.shape[1])
    return rows


def _pieces(line, lists, interactions, rows, work):
    """Constraints and entries of H of one interaction, numbered from 0. Out: curvature of rows."""
    law, m, count, bodies, collisions = LAWS[line.law], line.m, interactions.size, lists.bodies, lists.collisions
    # 1. level; given forces are held rows, though no equations: the state determines lambda
    level = DRIVEN if law.is_bounded or (interactions["dofs"] != ABSENT).any() else POSITION if law.is_given else VELOCITY
    constraints = constraints_of(line, law.block(NEWTON_EULER), level, work)
    constraints["bilateral"] |= law.is_given
    rows["curvature"] = work.reserve(m * count) + m * np.arange(count)
    # 2. slots: y, ydot and flags use three entries of each contact in the record; rows of rolling share the last, unread
    if rows["collision"][:1].max(initial=ABSENT) != ABSENT:
        collision, word = collisions[rows["collision"][0]], np.minimum(np.arange(m), 2)
        constraints["active"] = np.array([collision[at] for at in ("a", "b", "feature")])[word] + rows["slot"][:, None]
        for column, at in (("y", collision["normal"]), ("ydot", collision["point"])):
            constraints[column] = at + 3 * rows["slot"][:, None] + word
    for column, places in (("h", interactions["h"]), ("rate", interactions["rate"]), ("curvature", rows["curvature"])):
        constraints[column] = places[:, None] + np.arange(m)
    # 3. entries of H on both bodies
    number = np.arange(count * m).reshape(count, m)
    columns = np.arange(6 if (interactions["b"] == ABSENT).all() else 12)
    entries = np.zeros((count, m, columns.size), ENTRY)
    entries["coefficient"] = interactions["H"][:, None, None] + 12 * np.arange(m)[:, None] + columns
    body = np.where(columns < 6, interactions["a"][:, None], interactions["b"][:, None])
    entries["body"], entries["dof"] = body[:, None], 6 * body[:, None] + columns % 6
    entries["q"], entries["n"] = bodies["q"][body][:, None] + columns % 6, V
    inputs = entries.copy()
    inputs["q"], inputs["n"] = entries["q"] + V - 6, P - V
    # 4. of shapes some meet the world, and others bodies
    on_body = np.broadcast_to(body[:, None] != ABSENT, entries.shape)
    owner = np.broadcast_to(number[..., None], entries.shape)[on_body]
    none = np.zeros(0, COUPLING), np.zeros(0, np.int64)
    return {"number": number, "constraints": constraints.reshape(-1), "entries": (entries[on_body], owner),
            "inputs": (inputs[on_body], owner), "couplings": none}  # fmt: skip
