"""Tables of rigid bodies and of the interactions between them."""

from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from nsds.collision import has_edges, links_size, work_size
from nsds.collision.frames import FIELDS, MOST
from nsds.collision.general import general_pairs
from nsds.collision.kinds import PLANAR
from nsds.collision.touching import safe_ways
from nsds.model.fields import CONTACT_FIELDS
from nsds.model.laws import LAWS
from nsds.model.layout import ABSENT, FunctionSlots, addresses, count_and_stride, table
from nsds.model.records import GRAVITY, memory, model_of, words
from nsds.model.system_kinds import COLLISIONS as DETECTED
from nsds.model.system_kinds import NEWTON_EULER, collisions_of, split
from nsds.schemes.problem.kinds import components_of_bodies
from nsds.schemes.problem.model_reader import interaction, state_functions
from nsds.schemes.rigid.joined import connections, kinds_of

# Offsets in a body's record from q on: v, p, mass and inertia follow each other.
V, P, MASS, INERTIA = 7, 13, 19, 20
# One row per body; offsets into the record unless noted.
BODY = table(
    # q, and behind it v, p, mass, inertia; z (n_z): parameters of user functions; gravity (3), m/s²
    "q", "z", "n_z", "gravity",
    # numeric force (3), N, and moment (3), N m, the latter in inertial axes if mext_inertial; C (6, 6), K (6, 7): damping and stiffness;
    # T, u (n_u): control matrix and controls
    "fext", "mext", "mext_inertial", "C", "K", "T", "u", "n_u", "u_inertial",
    # flags. isotropic: no gyroscopic moment; oriented: forces depend on the rotation; fixed: infinite mass; coupled: forces depend on q
    # and v, so that the inverse does not separate into force and moment
    "isotropic", "oriented", "fixed", "coupled",
    # alive: flag in the record; gone: in the work memory, that it is not set, see `schemes.rigid.enabled`; planar: moves in z = 0
    "alive", "gone", "planar",
    # slots of user functions
    "fext_function", "mext_function", "fint_function", "mint_function", "jac_q_function", "jac_v_function",
)  # fmt: skip
_FUNCTIONS = ("fext", "mext", "fint", "mint", "jac_q", "jac_v")
# One row per element of an interaction; m rows of its law. The kind of relation shows in the columns that it has: row of a joint, dofs of
# prescribed velocities, gap_function of a contact, h_function.
INTERACTION = table(
    # law: EQUALITY, FORCE or OTHER; bounds, tangents: those of its form, see `nsds.model.laws`; a, b: bodies, b ABSENT for the world; each:
    # components of a contact; n_blocks: blocks of the one-step problem; always: active whatever the forecast (bilateral, or with bounds);
    # q_a, q_b: the bodies in the record, ABSENT for those that nothing moves
    "law", "bounds", "tangents", "m", "a", "b", "each", "n_blocks", "always", "q_a", "q_b",
    # record: outputs and multipliers (m), flag of activity; z (n_z): parameters of user functions
    "y", "ydot", "lam", "active", "z", "n_z",
    # record: parameters of the law, restitution, friction, mu_r of rolling or spinning, stiffness, damping; work memory: lower, upper
    # (m), bounds
    "e_n", "e_t", "mu", "mu_r", "lower", "upper", "stiffness", "damping",
    # record: rows of a joint, their kinds, points and directions on A and B, offsets; angle: angles counted over full turns;
    # work memory: angle_old (m, 2), at the start of the step; record: dofs, components whose velocity is prescribed
    "row", "row_a", "row_u", "row_b", "row_w", "row_offset", "angle", "angle_old", "dofs",
    # work memory: H (m, 12), rows on velocities in inertial axes; h (m), value; rate (m), explicit time derivative, ydot = H v + rate;
    # slack (m, 2), forecasts up to which a row is active; joined (m), not 0: active whatever the forecast
    "H", "h", "rate", "slack", "joined",
    # pressing (m): see `project`. Half steps: before (m), share of the step after which a gap closes; aim (m), velocity from which laws
    # are counted; grip (m), share of friction; last (m), impulses of the last step, N s
    "pressing", "before", "aim", "grip", "last",
    # enabled: flag in the record; off: work memory, that it is disabled; x (14): arguments of user functions; spare (14 m): scratch
    "enabled", "off", "x", "spare",
    # force laws: force_old, force (m): at the start and end of the step; root (m, m): Cholesky factor of the stiffness; blur (4):
    # see `schemes.rigid.forces`
    "force_old", "force", "root", "blur",
    # slots of user functions
    "h_function", "jac_function", "h_t_function", "gap_function", "velocity_function", "force_function",
)  # fmt: skip
# Fields of collisions whose columns have other names.
_COLUMNS = {"lambda": "lam", "shape_kind": "kind", "shape_size": "size", "shape_pose": "local", "shape_body": "body"}
# One row per set of detected contacts of a model. c: capacity, s: shapes.
COLLISIONS = table(
    # record: number n of contacts, each of which has its two shapes, feature, normal (3), point (3), gap y, impulse (each)
    "capacity", "n_shapes", "each", "n", *(_COLUMNS.get(field, field) for field in CONTACT_FIELDS),
    # record: parameters of the law, mu_r of rolling or spinning, of all contacts or a table over the materials of two shapes; margin, m
    "e_n", "e_t", "mu", "mu_r", "material", "n_materials", "margin",
    # record, per shape: kind, size (3), local pose (7), body, collision group and mask, flag enabled, surface (6), velocity of its surface
    # against the body, linear and angular about its position, in axes of the body; work memory: hidden (s), disabled
    "kind", "size", "local", "body", "group", "mask", "n_mask", "enabled", "surface", "hidden",
    # work memory, per shape: pose (7 s), reach (s) of the broad phase, slack (2 s) of forecasts by rounding and forces
    "pose", "reach", "slack",
    # contacts found at the end of a step, in the order of (a, b, feature), with inherited impulses; number: scratch
    "new_normal", "new_point", "new_gap", "new_lam", "number",
    # half steps: before, share of the step after which a gap closes; aim (each), velocity from which laws are counted; grip, share of
    # friction; last (each), impulses of the last step; begun (each), those in the record before a half; new_*: of contacts found
    "before", "new_before", "aim", "grip", "last", "begun", "new_last",
    # taking, whether a contact of the record is active, and presses or is struck; known, number in the record, plus 1, of a contact found
    "taking", "known",
    # scratch of detection, floats and integers; new_a, new_b, new_feature, found: contacts found; convex hulls
    "scratch", "n_scratch", "new_a", "new_b", "new_feature", "found", "scratch_i", "n_scratch_i", "vertices", "n_vertices",
    # addresses: general pairs of shapes, and a user's `on_contact`, which reads z
    "general", "hook", "z", "n_z",
    # joined: what joints connect, see `schemes.rigid.joined`, ABSENT without joints
    "joined",
    # planar: all shapes are in z = 0; edges: some have edges, so that contacts may be hidden; links: scratch for that
    "planar", "edges", "links", "n_links", "n_bodies",
    # passing: thickness of each shape, and the displacement that is safe for two; swept: poses along the step, and contacts of two shapes
    # there; passed (3): by how many times the safe displacement a shape has moved that a user's function lets pass, which one, its speed
    "thickness", "swept", "passed",
)  # fmt: skip
_OF_ROWS = ("joined", "pressing", "before", "aim", "grip", "last")  # numbers of each row of an interaction
EQUALITY, FORCE, OTHER = range(3)  # laws of interactions: equations, forces that y and ydot give, and those with an unknown and a sign


class Lists(NamedTuple):
    """Tables of one model; d: components of a block of its one-step problem."""

    bodies: np.ndarray
    interactions: np.ndarray
    collisions: np.ndarray
    functions: np.ndarray
    d: int
    part_names: tuple  # (part, number of its first body)
    interaction_names: tuple  # interaction of each row
    general_pairs: tuple  # what answers for pairs of shapes without a kernel, for each of the collisions and each member


def tables(records, work, iwork):
    """`Lists` of a record or ensemble; the work memory of interactions is reserved.

    Raises
    ------
    ValueError
        A law that does not go with its relation; the members of an ensemble differ in which elements their interactions act on.
    """
    systems, lines, _ = split(model_of(records))
    functions = FunctionSlots(records)
    # 1. bodies of all systems, numbered in a row
    pieces, first, n_bodies = [], {}, 0
    for name, kind in systems:
        pieces.append(_bodies(records, name, kind, functions, work))
        first[name] = n_bodies
        n_bodies += pieces[-1].size
    d = components_of_bodies(records)
    # 2. interactions, by element
    interactions, owners = [np.zeros(0, INTERACTION)], []
    for line in lines:
        interactions.append(_interaction(records, line, first, d, functions, work))
        owners += [line[0]] * interactions[-1].size
    interactions = np.concatenate(interactions)
    # 3. detected contacts
    bodies = np.concatenate(pieces)
    joined = connections(bodies, interactions, kinds_of(interactions, EQUALITY, memory(records)))
    collisions, general = _collisions(records, joined, work, iwork)
    bodies["coupled"] = bodies["coupled"].any()  # inverse matrices of all bodies have one form
    for side in ("a", "b"):
        body = interactions[side]
        interactions[f"q_{side}"] = np.where((body == ABSENT) | bodies["fixed"][body].astype(bool), ABSENT, bodies["q"][body])
    return Lists(bodies, interactions, collisions, functions.addresses, d, tuple(first.items()), tuple(owners), general)


def _bodies(records, name, kind, functions, work):
    start, dtype = words(records.dtype, name)
    fields = dtype.base.fields
    # 1. offsets of states and of user functions
    count, stride = count_and_stride(dtype)
    rows = np.zeros(count, BODY)
    shift = stride * np.arange(count)
    rows["q"] = start + fields["q"][1] // 8 + shift
    rows["z"], rows["n_z"] = (start + fields["z"][1] // 8 + shift, fields["z"][0].shape[0]) if "z" in fields else (0, 0)
    for field in _FUNCTIONS:
        rows[f"{field}_function"] = functions.slots(name, kind, field, count)
    # 2. flags of presence
    rows["alive"] = start + fields["alive"][1] // 8 + shift if "alive" in fields else ABSENT
    rows["planar"] = "planar" in fields
    rows["gone"] = work.reserve(count) + np.arange(count)
    # 3. numeric terms, ABSENT where a field is missing or names a function
    rows["gravity"] = words(records.dtype, GRAVITY)[0] if GRAVITY in records.dtype.names else ABSENT
    rows["n_u"] = fields["u"][0].shape[0] if "u" in fields else 0
    for field in ("fext", "mext", "C", "K", "T", "u"):
        numeric = field in fields and fields[field][0].kind != "S"
        rows[field] = start + fields[field][1] // 8 + shift if numeric else ABSENT
    # 4. flags that choose a kernel: they have to agree over the members of an ensemble
    values = records[name].reshape(records.size, count)
    rows["fixed"] = _same(name, "an infinite mass", np.isinf(values["mass"]))
    scalar = (values["inertia"] == values["inertia"][..., :1, :1] * np.eye(3)).all(axis=(-2, -1))
    rows["isotropic"] = scalar.all(axis=0)
    for field, what in (("mext", "moments"), ("u", "controls")):
        inertial = f"{field}_inertial"
        rows[inertial] = _same(name, f"{what} in inertial axes", values[inertial]) if field in fields else 0
    rows["oriented"] = (rows["mext_inertial"] != 0) | (rows["u"] != ABSENT)
    rows["coupled"] = sum(rows[field] != ABSENT for field in ("C", "K", "fint_function", "mint_function")) > 0
    return rows


def _same(name, what, flags):
    """A property of the bodies of a part, which must not differ between members of an ensemble."""
    if (flags != flags[0]).any():
        raise ValueError(f"part '{name}': all members of an ensemble must have {what} in the same bodies")
    return flags[0]


def _interaction(records, line, first, d, functions, work):
    """Rows of the elements of one interaction; their work memory is reserved."""
    line = interaction(records, first, line)
    # 1. law, number of rows and blocks; equations and forces fill blocks, contacts have one each
    law, m, at = line.law, line.m, line.at
    fields, count = line.values.dtype.fields, line.values.shape[1]
    rows, each = np.zeros(count, INTERACTION), np.arange(count)
    form, block, is_given = LAWS[law].treatment, LAWS[law].block(NEWTON_EULER), LAWS[law].is_given
    rows["law"] = EQUALITY if form.is_equation else FORCE if is_given else OTHER
    rows["bounds"], rows["tangents"], rows["m"], rows["each"] = form.bounds, form.tangents.get(block, 0), m, block
    rows["n_blocks"] = -(-m // d) if form.is_equation or is_given else m // block
    rows["always"] = LAWS[law].bilateral or LAWS[law].is_bounded
    # 2. bodies
    rows["a"] = line.sides[0] + line.elements[:, 0]
    rows["b"] = line.sides[1] + line.elements[:, 1] if len(line.sides) > 1 else ABSENT
    if (rows["a"] == rows["b"]).any():
        raise ValueError(f"interaction '{line.name}' joins a body with itself")
    # 3. fields of the record
    for column, field in (
        ("y", "y"), ("ydot", "ydot"), ("lam", "lambda"), ("active", "active"), ("z", "z"), ("dofs", "dofs"), ("angle", "angle"),
        *_restitution(law), ("mu", "mu"), ("mu_r", LAWS[law].treatment.of_moments),
        ("stiffness", "stiffness"), ("damping", "damping"), ("enabled", "enabled"),
    ):  # fmt: skip
        rows[column] = at[field][:, 0] if field in at else ABSENT
    rows["lower"] = rows["upper"] = ABSENT
    # 4. bounds that the law itself has, as copies
    if LAWS[law].is_bounded:
        for column, bound in zip(("lower", "upper"), LAWS[law].bounds(line.values, m), strict=True):
            rows[column] = work.store(bound.reshape(records.size, -1)) + m * each
    rows["n_z"] = fields["z"][0].shape[0] if "z" in fields else 0
    # 5. geometry of a joint
    rows["row"] = ABSENT
    if "geometry" in fields:
        geometry = fields["geometry"][0].fields
        for field in ("row", "a", "u", "b", "w", "offset"):
            rows["row" if field == "row" else f"row_{field}"] = at["geometry"][:, 0] + geometry[field][1] // 8
    # 6. user functions; a prescribed velocity is the parameter of its own function
    state_functions(rows, line, functions)
    if "velocity" in fields and fields["velocity"][0].base.kind == "f":
        rows["z"] = at["velocity"][:, 0]
    # 7. work memory of each element
    sizes = {
        "H": 12 * m, **dict.fromkeys(("h", "rate"), m), "slack": 2 * m, **dict.fromkeys(_OF_ROWS, m), "off": 1, "x": 14, "spare": 17 * m,
        "angle_old": 2 * m, "force_old": m * is_given, "force": m * is_given, "root": m * m * is_given, "blur": 4 * is_given,
    }  # fmt: skip
    for column, size in sizes.items():
        rows[column] = work.reserve(count * size) + size * each
    return rows


def _restitution(law):
    """(column, field) of the restitution of normals and tangents."""
    return zip_longest(("e_n", "e_t"), LAWS[law].restitution)


def _collisions(records, joined, work, iwork):
    """(table of the collisions of a record or ensemble, their `GeneralPairs`); the work memory is reserved."""
    lines, general = collisions_of(model_of(records)), []
    rows = np.zeros(len(lines), COLLISIONS)
    rows["joined"] = iwork.store(np.tile(joined, (records.size, 1))) if joined.size > 0 else ABSENT
    for row, (name, _, law, *_) in zip(rows, lines, strict=True):
        start, dtype = words(records.dtype, name)
        at = {field: start + dtype.fields[field][1] // 8 for field in dtype.names}
        # 1. sizes, and fields of the record
        row["capacity"], row["n_shapes"] = dtype["a"].shape[0], dtype["shape_kind"].shape[0]
        row["each"] = LAWS[law].block(NEWTON_EULER)
        row["surface"] = at.get("surface_velocity", ABSENT)
        for column, field in _restitution(law):
            row[column] = at.get(field, ABSENT)
        for field in ("n", *CONTACT_FIELDS, *_COLUMNS, "mu", "material", "margin", "group", "mask", "enabled"):
            row[_COLUMNS.get(field, field)] = at.get(field, ABSENT)
        row["mu_r"] = at.get(LAWS[law].treatment.of_moments, ABSENT)
        row["n_materials"] = dtype[LAWS[law].restitution[0]].shape[0] if "material" in at else 1
        row["n_mask"] = dtype["mask"].shape[0]
        # 2. work memory: shapes, contacts found, half steps, projections
        capacity, n_shapes = int(row["capacity"]), int(row["n_shapes"])
        floats, integers = work_size(n_shapes)
        found = ("new_gap", "before", "new_before", "grip", "taking", "known", "number")
        impulses = ("aim", "last", "begun", "new_last", "new_lam")
        sizes = {
            "pose": 7 * n_shapes, "reach": n_shapes, "slack": 2 * n_shapes, "hidden": n_shapes, "swept": 7 * n_shapes + MOST * FIELDS,
            **dict.fromkeys(("new_normal", "new_point"), 3 * capacity), **dict.fromkeys(found, capacity),
            **dict.fromkeys(impulses, int(row["each"]) * capacity), "passed": 3, "scratch": floats,
        }  # fmt: skip
        work.place(row, **sizes)
        iwork.place(row, **dict.fromkeys(("new_a", "new_b", "new_feature"), capacity), found=1, scratch_i=integers)
        # 3. hidden contacts at edges of shapes, planar shapes, hulls
        row["edges"], row["n_bodies"] = has_edges(np.unique(records[name]["shape_kind"])), int(records[name]["shape_body"].max()) + 1
        row["n_links"] = links_size(row["n_bodies"], capacity) if row["edges"] else 0
        row["links"] = iwork.reserve(int(row["n_links"]))
        row["planar"] = np.isin(records[name]["shape_kind"], PLANAR).all()
        row["n_scratch"], row["n_scratch_i"] = floats, integers
        if "vertices" in at:
            row["vertices"], row["n_vertices"] = at["vertices"], dtype["vertices"].shape[0]
        # 4. displacements that are safe from passing through; addresses of pairs and of the user's function
        row["thickness"] = work.store(np.stack([safe_ways(one) for one in records[name]]))
        asked = [_general_pairs(one) for one in records[name]]
        row["general"] = iwork.store(np.array([[pairs.address] for pairs in asked]))
        general += asked
        row["hook"] = iwork.store(_addresses_on_contact(records[name], name))
        row["z"], row["n_z"] = (at["z"], dtype["z"].shape[0]) if "z" in at else (0, 0)
    return rows, tuple(general)


def _addresses_on_contact(collisions, name):
    """(members, 1) addresses of the function that is called for each contact, 0 without one."""
    if "on_contact" not in collisions.dtype.names:
        return np.zeros((collisions.size, 1), np.int64)
    return addresses(collisions["on_contact"], name, DETECTED, "on_contact").astype(np.int64).reshape(-1, 1)


def _general_pairs(collisions):
    none = np.zeros((0, 3))
    geometry = (collisions["vertices"], collisions["triangles"]) if "vertices" in collisions.dtype.names else (none, none)
    shapes = (collisions[f"shape_{field}"].copy() for field in ("kind", "size", "body"))
    return general_pairs(*shapes, collisions["group"], collisions["mask"], *geometry)
