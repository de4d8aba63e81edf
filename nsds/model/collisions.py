"""Detected contacts: shapes on bodies and in the world, and the law of their contacts."""

import itertools

import numpy as np

from nsds import _checks
from nsds.collision import SUPPORTED, WORLD, require_supported
from nsds.collision.groups import kinds_that_meet, mask_of
from nsds.collision.kinds import NAMES, SHAPES
from nsds.model.fields import CONTACT_FIELDS
from nsds.model.functions import function_name
from nsds.model.laws import HELD, LAWS, block_of, require_treated
from nsds.model.records import pack, widened
from nsds.model.shapes import require_shape
from nsds.model.system_kinds import COLLISIONS, NEWTON_EULER, SYSTEMS

_WORLD = "world"
# contacts of a shape that small scenes have room for at first
_POINTS, _MOST_POINTS = {"sphere": 4, "capsule": 4, "disk": 4, "stadium": 4, "polygon": 6}, 12


def collisions(
    shapes, law, *, world=(), materials=None, surface_velocity=None, pairs=None, margin=0.0, capacity=None, enabled=None, on_contact=None,
    z=None,
):  # fmt: skip
    """Contacts between shapes, detected in every step: a part for `nsds.system`, of rigid bodies, in space or in the plane.

    A contact takes part in a step when the forecast ``y + gamma h ydot <= slack`` says so ([Notes], eq. 11.203); its frame (normal, two
    tangents, [Notes], 12.0.3) is that of the start of the step. The normal points from b to a; a contact point between two bodies lies
    halfway between their surfaces, one with the world on the surface of the body.

    The slack is rounding, 1e-10 of the size of a shape and of its body's coordinates, added up for both: bodies that are drawn touching
    touch. What is at rest, in that it neither comes nor goes by more within a step, takes part up to a tenth of ``h^2 F / m`` of its
    bodies, and at most 1e-3 of a shape's size: forces would close such a gap within the step, and where something else holds the body, as
    the other three legs of a table, the contact carries its share.

    Shapes that abut are as one, whether of one body or of several: a contact is left out where another one of the same body has a plane
    that parts its shapes, one above and one below it, to 1e-5 of the smaller; so that a sliding body is not caught at a seam of
    tiles or triangles which are flush. A contact that is open takes part only if the shapes meet within the forecast as they move, and then
    with the normal of where they meet: what passes above an edge is not struck. With on_contact contacts are those that are found.
    Where edges or corners of boxes, convex hulls or polygons touch, any normal between those of the faces that meet there is one of the
    contact; it is that in the middle, up to 1e-5 of the smaller one's half width beside the edge, so that what leans on an edge stays.
    A body that moves in a step by more than half of the thinner of two shapes is followed along its path and stops at the touch, and passes
    nothing, however fast: the time that is left of the step is lost for it.

    Two bodies do not touch where joints between them, which are equations, leave no motion along the normal: if they are welded
    together, also by way of others, a drawer and its runners, the leaves of a hinge. What presses there the joints carry, without friction;
    `nsds.dry_friction` gives them some. Of joints with the world and its shapes both carry, in shares that the equations leave open.

    Parameters
    ----------
    shapes : dict of str to shape
        Shape of the bodies of each part, from `nsds.shapes`; a list of shapes for bodies of several; a list of lists, one for each body,
        where they differ.
    law : dict
        From `nsds.newton_impact` (without friction), `nsds.newton_impact_friction`, `nsds.fremond_impact`,
        `nsds.newton_impact_rolling_friction` or `nsds.newton_impact_spinning_friction`, with one value of each parameter; or, with
        materials, with some that are symmetric tables (k, k), the value in row i and column j for contacts between materials i and j.
    world : shape or sequence of shapes
        Shapes that do not move.
    materials : dict of str to int or sequence of int, optional
        Number of the material of the shapes of each part, and of ``"world"``, from 0; a list has one for each shape of a body, or of the
        world, or one for each body where shapes are listed body by body.
    surface_velocity : dict of str to array_like (3,) or (6,), optional
        Velocity at which the surface of the shapes of each part, and of ``"world"``, runs over its shape, which stays in place: belts,
        treadmills, rollers, turntables. Linear (m/s) and, of six numbers, then angular (rad/s) about the position of the shape, in axes of
        the body, those of the world inertial; a list has one for each shape of a body, or of the world, or one for each body where shapes
        are listed body by body. Parts that are not named have none. Only its tangential part counts: friction, rolling friction, and e_t
        if any, act on the velocity of a against b plus that of the surface of a, less that of b. It may be changed between steps in the
        record, also from 0.
    pairs : sequence of pairs of str, optional
        Pairs of parts tested for contact, as ``[("balls", "balls"), ("balls", "world")]``; all by default, those that a joint holds
        together too, whose shapes must not overlap then along what it leaves free.
    margin : float
        Contacts are listed from this gap on (m), besides those which motion may close within a step, or that may take part as they are.
    capacity : int, optional
        Contacts for which the record has room at first; it grows as needed.
    enabled : bool or array_like of bool (n_shapes,), optional
        Which shapes are there, where that may change: between steps, in the record, or in a run, by a `nsds.sampled_control` that writes
        ``"contacts.enabled"``. Shapes are counted through all parts, body by body, those of the world last.
    on_contact : function ``on_contact(shapes, poses, z, contact)``, optional
        Called, compiled, for each contact that is found, before anything knows of it: shapes (3,), numbers of the shapes a and b, and the
        feature; poses (14,), position and quaternion of both; contact (7,), its normal, its point on a and its gap, which the function may
        change. A normal is made a unit vector; a gap of infinity drops the contact. One that lessens gaps, as a coat does, wants a margin
        of as much. Fast bodies are then not followed along their paths; a warning says what may have passed. `nsds.event_driven` and
        `nsds.d1_minus_linear`, which follow shapes as they are, refuse it.
    z : array_like, optional
        Parameters of this function.

    Returns
    -------
    dict
        A part for `nsds.system`. In the record it has the number of contacts n and, for each: a, b, numbers of the shapes, counted through
        all parts, the world's last; feature; normal and point (3,) on the surface of a, inertial; gap y; impulses lambda, normal
        first, of the step that ends at t, with spinning friction the moment about the normal last; in the plane the second is along
        z × n, and with rolling friction the last is the moment about z, the others 0. What a contact carried that is gone at t, since
        other features of its shapes touch, is in the nearest contact of the two. The rest of the arrays is 0. And enabled and
        material (n_shapes,), surface_velocity (n_shapes, 6), and z, where they were given.

    Raises
    ------
    TypeError, ValueError
        Not a shape or law, a part named "world", shapes between which contacts cannot be found, a plane on a body, shapes in the plane
        beside shapes in space.

    Examples
    --------
    >>> import nsds
    >>> ball = nsds.shapes.sphere(0.1)
    >>> system = nsds.system(
    ...     gravity=[0, 0, -9.81],
    ...     ball=nsds.rigid_bodies(1.0, nsds.shapes.inertia(ball, 1.0), q=[0, 0, 0.5, 1, 0, 0, 0], v=[1, 0, 0, 0, 0, 0]),
    ...     contacts=nsds.collisions({"ball": ball}, nsds.newton_impact_friction(e_n=0.5, mu=0.3), world=nsds.shapes.plane()),
    ... )
    >>> rows = nsds.simulate(system, t_end=1.0, h=2e-3)
    >>> float(rows["ball"]["q"][-1, 2].round(3)), float(rows["ball"]["v"][-1, 0].round(3))
    (0.1, 0.714)

    Wood and ice: a block of each slides on a floor of wood.

    >>> crate = nsds.shapes.box([0.2, 0.2, 0.2])
    >>> system = nsds.system(
    ...     gravity=[0, 0, -9.81],
    ...     blocks=nsds.rigid_bodies(
    ...         1.0, nsds.shapes.inertia(crate, 1.0), q=[[0, y, 0.1, 1, 0, 0, 0] for y in (0, 1)], v=[[1.0, 0, 0, 0, 0, 0]] * 2
    ...     ),
    ...     contacts=nsds.collisions(
    ...         {"blocks": [[crate], [crate]]},
    ...         nsds.newton_impact_friction(e_n=0.0, mu=[[0.4, 0.05], [0.05, 0.02]]),
    ...         world=nsds.shapes.plane(),
    ...         materials={"blocks": [0, 1], "world": 0},
    ...     ),
    ... )
    >>> nsds.simulate(system, t_end=0.2, h=1e-3)["blocks"]["v"][-1, :, 0].round(3).tolist()  # 1 - mu g t
    [0.215, 0.902]

    A crate on a belt gains speed by mu g, until it has that of the belt:

    >>> system = nsds.system(
    ...     gravity=[0, 0, -9.81],
    ...     crate=nsds.rigid_bodies(1.0, nsds.shapes.inertia(crate, 1.0), q=[0, 0, 0.1, 1, 0, 0, 0], v=[0.0] * 6),
    ...     contacts=nsds.collisions(
    ...         {"crate": crate},
    ...         nsds.newton_impact_friction(e_n=0.0, mu=0.5),
    ...         world=nsds.shapes.plane(),
    ...         surface_velocity={"world": [1.0, 0, 0]},
    ...     ),
    ... )
    >>> nsds.simulate(system, t_end=0.4, h=1e-3)["crate"]["v"][[100, -1], 0].round(3).tolist()  # mu g t, and at most 1
    [0.49, 1.0]
    """
    # 1. shapes of bodies and of the world
    owner = "collisions"
    if not isinstance(shapes, dict) or not shapes or not all(isinstance(name, str) for name in shapes):
        raise TypeError(f"{owner}: shapes must be a dict from names of parts to shapes, got {_checks.shortened(shapes)}")
    if _WORLD in shapes:
        raise ValueError(f"{owner}: the name 'world' is taken; shapes that do not move go into world=")
    # 2. the law: one that contacts may have, with one value of each parameter
    detected = [name for name, row in LAWS.items() if row.is_detected]
    _checks.made(owner, "law", law, "law", {name: HELD[name] for name in detected}, [f"nsds.{name}" for name in detected])
    require_treated("collisions", law["law"])
    materials = _materials(owner, materials, [*shapes, _WORLD])
    _require_tables(owner, law, materials)
    surfaces = _surfaces(owner, surface_velocity, [*shapes, _WORLD])
    if surfaces is not None and not LAWS[law["law"]].treatment.has_friction:
        raise ValueError(f"{owner}: surface_velocity acts by friction, which {law['law']} has none of; use nsds.newton_impact_friction")
    # 3. shapes in space or in the plane, and the dimension of friction that fits
    result = {"kind": COLLISIONS, "law": law, "materials": materials, "surfaces": surfaces}
    result["margin"] = _checks.number(owner, "margin", margin, low=0.0)
    result["shapes"] = {name: _listed(owner, name, value) for name, value in shapes.items()}
    result["world"] = _listed(owner, "world", world)
    if surfaces is not None and _WORLD in surfaces and not result["world"]:
        raise ValueError(f"{owner}: surface_velocity['{_WORLD}'] is that of the shapes of world=, of which none was given")
    is_planar = _is_planar(owner, result)
    if is_planar and LAWS[law["law"]].treatment.spins:
        raise ValueError(
            f"{owner}: {law['law']} is for shapes in space: bodies in the plane do not spin about the normals of their contacts"
        )
    if is_planar and law.get("dimension") == 3:
        raise ValueError(f"{owner}: contacts of shapes in the plane have one tangent; {law['law']} wants dimension=2, got 3")
    block_of(owner, law | {"dimension": None} if is_planar else law, NEWTON_EULER)
    # 4. pairs, capacity, flags, callback
    names = [*shapes, _WORLD]
    result["pairs"] = None if pairs is None else _pairs(owner, pairs, names)
    result["capacity"] = None if capacity is None else _checks.integer(owner, "capacity", capacity, low=1)
    result["enabled"] = None if enabled is None else _checks.flags(owner, "enabled", enabled)
    result["on_contact"] = None if on_contact is None else function_name(on_contact, owner, "on_contact")
    if z is not None and on_contact is None:
        raise ValueError(f"{owner}: z are parameters of on_contact, which was not given")
    result["z"] = None if z is None else _checks.array(owner, "z", z, at_least=1, n_dims=1)
    return result


def _materials(owner, materials, names):
    """{part: numbers of materials of its shapes, one for all or one each}; None where none were given."""
    if materials is None:
        return None
    if not isinstance(materials, dict) or set(materials) - set(names):
        raise ValueError(f"{owner}: materials must be a dict of some of the names {', '.join(names)}, got {_checks.shortened(materials)}")
    missing = [name for name in names[:-1] if name not in materials]
    if missing:
        raise ValueError(f"{owner}: materials must have the shapes of all parts, got none of '{missing[0]}'")
    result = {}
    for name, value in materials.items():
        result[name] = np.atleast_1d(_checks.whole_numbers(owner, f"materials['{name}']", value))
        if result[name].ndim > 1 or result[name].size == 0 or result[name].min() < 0:
            raise ValueError(f"{owner}: materials['{name}'] must be a number from 0 or a list of them, got {_checks.shortened(value)}")
    return result


def _surfaces(owner, surface_velocity, names):
    """{part: velocities (n, 6) of the surfaces of its shapes, one for all or one each}; None where none were given."""
    if surface_velocity is None:
        return None
    if not isinstance(surface_velocity, dict) or set(surface_velocity) - set(names):
        known = ", ".join(names)
        raise ValueError(
            f"{owner}: surface_velocity must be a dict of some of the names {known}, got {_checks.shortened(surface_velocity)}"
        )
    result = {}
    for name, value in surface_velocity.items():
        velocity = np.atleast_2d(_checks.array(owner, f"surface_velocity['{name}']", value, at_least=1))
        if velocity.ndim > 2 or velocity.shape[1] not in (3, 6):
            raise ValueError(
                f"{owner}: surface_velocity['{name}'] must be three numbers (m/s), or six (m/s and rad/s), or a list of them, "
                f"got {_checks.shortened(value)}"
            )
        result[name] = np.pad(velocity, ((0, 0), (0, 6 - velocity.shape[1])))
    return result


def _require_tables(owner, law, materials):
    """Refuses parameters that are neither one number nor, with materials, a symmetric table over them."""
    most = 0 if materials is None else 1 + max(int(value.max()) for value in materials.values())
    tables = {name: law[name] for name in LAWS[law["law"]].parameters if law[name].ndim}
    for name, value in tables.items():
        if materials is None:
            raise ValueError(f"{owner}: {name} must be one number for all contacts, or a table with materials=, got {value.tolist()}")
        if value.ndim != 2 or value.shape[0] != value.shape[1] or value.shape[0] < most or (value != value.T).any():
            raise ValueError(f"{owner}: {name} must be a symmetric table over {most} materials or more, got {value.tolist()}")
    if len({len(value) for value in tables.values()}) > 1:
        sizes = ", ".join(f"{len(value)} for {name}" for name, value in tables.items())
        raise ValueError(f"{owner}: tables must be over the same number of materials, got {sizes}")


def _pairs(owner, pairs, names):
    result = list(pairs) if isinstance(pairs, (list, tuple, set, frozenset)) else [pairs]
    for pair in result:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(side, str) and side in names for side in pair):
            raise ValueError(f"{owner}: pairs must be pairs of {', '.join(names)}, got {_checks.shortened(pair)}")
    return [tuple(pair) for pair in result]


def _is_planar(owner, part):
    """Whether all shapes are in the plane; refuses a mixture of shapes in the plane and in space."""
    found = {}
    for side, shapes in (*part["shapes"].items(), (_WORLD, part["world"])):
        for each in shapes:
            for shape in each if isinstance(each, (list, tuple)) else [each]:
                found.setdefault(SHAPES[shape["shape"]].is_planar, (side, shape["shape"]))
    if len(found) == 2:
        (side, flat), (other, solid) = found[True], found[False]
        raise ValueError(f"{owner}: shapes must all be in the plane or in space, got a {flat} for '{side}' and a {solid} for '{other}'")
    return True in found


def _listed(owner, name, value):
    """A list of shapes, or of lists of shapes, one for each body."""
    if not isinstance(value, (dict, list, tuple)) or (name != _WORLD and not value):
        raise TypeError(f"{owner}: the shapes of '{name}' must be one from nsds.shapes or a list of them, got {_checks.shortened(value)}")
    value = [value] if isinstance(value, dict) else list(value)
    if name != _WORLD and len({isinstance(each, dict) for each in value}) > 1:
        raise TypeError(f"{owner}: the shapes of '{name}' must be a list of shapes, or one of lists for each body, got both")
    for each in value:
        for shape in each if isinstance(each, (list, tuple)) and name != _WORLD else [each]:
            require_shape(f"{owner}: the shapes of '{name}'", shape)
            if SHAPES[shape["shape"]].is_of_world and name != _WORLD:
                raise ValueError(f"{owner}: shapes: a {shape['shape']} cannot be on a body, only in the world; got one for '{name}'")
    return value


def collisions_record(name, part, systems):
    """Record of collisions, when the systems of the model are known: shapes in flat arrays, and room for contacts."""
    # 1. number of the first body of each system
    first, n_bodies = {}, 0
    for side, system in systems.items():
        first[side] = n_bodies
        n_bodies += max(system["record"].size, 1)
    # 2. rows of all shapes: kind, size, pose, body, group
    columns, names, known = [], [*part["shapes"], _WORLD], {}
    group_of, mask = _groups(part["pairs"], names)
    for side in names:
        shapes, which, bodies = _on_bodies(name, part, side, systems, first)
        if shapes:
            rows = [
                (NAMES.index(shape["shape"]), _size_of(shape, known), shape["pose"], group_of[side], material, surface)
                for shape, material, surface in zip(
                    shapes, _materials_of(name, part, side, len(shapes)), _surfaces_of(name, part, side, len(shapes)), strict=True
                )
            ]
            columns.append((bodies, *(np.array(column)[which] for column in zip(*rows, strict=True))))
    if not columns:
        raise ValueError(f"collisions '{name}': at least one shape is needed, got none")
    body, kind, size, pose, group, material, surface = (np.concatenate(column) for column in zip(*columns, strict=True))
    # 3. every pair of kinds that can meet must have a contact kernel
    for pair in sorted(kinds_that_meet(kind, body, group, mask) - SUPPORTED):
        try:
            require_supported(*pair)
        except ValueError as error:
            raise ValueError(f"collisions '{name}': {error}") from None
    # 4. room for contacts: a few for each shape of a body, more for small scenes
    law = part["law"]
    points = np.array([_POINTS.get(shape, _MOST_POINTS) for shape in NAMES])
    likely = int(points[kind[body != WORLD]].sum())
    capacity = part["capacity"] or max(4 * kind.size, min(64, likely))
    # 5. fields: contacts first, then shapes, polyhedra once each, parameters of the law
    sizes = {"capacity": capacity, "block": LAWS[law["law"]].block(NEWTON_EULER)}
    fields = {field: np.zeros([sizes.get(size, size) for size in leaf.shape], f"{leaf.kind}8") for field, leaf in CONTACT_FIELDS.items()}
    fields |= {"shape_kind": kind, "shape_size": size, "shape_pose": pose, "shape_body": body, "group": group, "mask": mask}
    if known:  # polyhedra: their triangles have the numbers of the vertices in the list of all
        fields["vertices"] = np.concatenate([shape["vertices"] for shape, _ in known.values()])
        fields["triangles"] = np.concatenate([shape["triangles"] + first for shape, first in known.values()])
    parameters = {parameter: law[parameter] for parameter in LAWS[law["law"]].parameters}
    fields |= parameters
    if part["materials"] is not None:  # one number is a table, too
        k = max([int(material.max()) + 1, *(len(value) for value in parameters.values() if value.ndim)])
        fields |= {"material": material} | {parameter: np.broadcast_to(value, (k, k)) for parameter, value in parameters.items()}
    if part["surfaces"] is not None:
        fields["surface_velocity"] = surface
    if part["enabled"] is not None:
        fields["enabled"] = _checks.flags(f"collisions '{name}'", "enabled", part["enabled"], kind.shape)
    fields |= {field: part[field] for field in ("on_contact", "z") if part[field] is not None}
    return pack({"n": np.array(0)} | fields | {"margin": np.array(part["margin"])}, None)


def _materials_of(name, part, side, n):
    """Materials of the n shapes of a part or of the world; 0 where none were given."""
    if part["materials"] is None:
        return np.zeros(n, np.int64)
    if side not in part["materials"]:
        raise ValueError(f"collisions '{name}': materials must have that of the shapes of the world, got none")
    return _of_shapes(name, f"materials['{side}'] must be one number", part["materials"][side], part, side, n)


def _surfaces_of(name, part, side, n):
    """Velocities (n, 6) of the surfaces of the n shapes of a part or of the world; 0 where none were given."""
    if part["surfaces"] is None or side not in part["surfaces"]:
        return np.zeros((n, 6))
    return _of_shapes(name, f"surface_velocity['{side}'] must be one velocity", part["surfaces"][side], part, side, n)


def _of_shapes(name, wanted, of, part, side, n):
    """The n rows of the shapes of a part or of the world: of them one for all, one for each, or one for each body of a list of lists."""
    listed = part["world"] if side == _WORLD else part["shapes"][side]
    if len(of) == 1:
        return np.repeat(of, n, axis=0)
    many = [len(each) if isinstance(each, (list, tuple)) else 1 for each in listed]
    if len(of) not in (n, len(listed)):
        raise ValueError(f"collisions '{name}': {wanted} or {len(listed)} of them, got {len(of)}")
    return of if len(of) == n else np.repeat(of, many, axis=0)


def _groups(pairs, names):
    """({part: number of its group}, mask): parts that are tested against the same ones form a group; see `nsds.collision.groups`."""
    if pairs is None:
        return dict.fromkeys(names, 0), mask_of(np.ones((1, 1), bool))
    place, meets = {side: i for i, side in enumerate(names)}, np.zeros((len(names), len(names)), bool)
    for a, b in pairs:
        meets[place[a], place[b]] = meets[place[b], place[a]] = True
    _, first, group = np.unique(meets, axis=0, return_index=True, return_inverse=True)
    return dict(zip(names, group.reshape(-1).tolist(), strict=True)), mask_of(meets[np.ix_(first, first)])


def _size_of(shape, known):
    """Size of a shape in the record; the geometry of a new polyhedron is added to ``known``, with its first vertex."""
    if "vertices" not in shape:
        return shape["size"]
    key = shape["vertices"].tobytes(), shape["triangles"].tobytes()
    if key not in known:
        known[key] = shape, sum(len(other["vertices"]) for other, _ in known.values())
    return np.array([shape["size"][0], known[key][1], shape["size"][2]])


def _on_bodies(name, part, side, systems, first):
    """(shapes of a part, or of the world; for each row of the record the index of its shape, and the number of its body)."""
    if side == _WORLD:
        return part["world"], np.arange(len(part["world"])), np.full(len(part["world"]), WORLD)
    if side not in systems:
        raise ValueError(
            f"collisions '{name}': shapes: there is no part '{side}'; the systems are: {', '.join(systems)}{_checks.meant(side, systems)}"
        )
    if SYSTEMS[systems[side]["kind"]][0] != NEWTON_EULER:
        raise ValueError(f"collisions '{name}': '{side}' is a {systems[side]['kind']}, expected rigid_bodies")
    count, shapes = max(systems[side]["record"].size, 1), part["shapes"][side]
    # planar bodies take shapes in the plane only, and conversely
    for shape in itertools.chain.from_iterable(each if isinstance(each, (list, tuple)) else [each] for each in shapes):
        if SHAPES[shape["shape"]].is_planar != ("planar" in systems[side]["record"].dtype.names):
            given, wanted = ("a body in space", "planar_bodies") if SHAPES[shape["shape"]].is_planar else ("a planar body", "rigid_bodies")
            raise ValueError(f"collisions '{name}': shapes of '{side}': a {shape['shape']} is a shape of nsds.{wanted}, got {given}")
    # a list for each body, or the same shapes for all
    if shapes and isinstance(shapes[0], (list, tuple)):
        if len(shapes) != count:
            raise ValueError(f"collisions '{name}': '{side}' has {count} bodies, got shapes for {len(shapes)}")
        own = list(itertools.chain.from_iterable(shapes))
        return own, np.arange(len(own)), first[side] + np.repeat(np.arange(count), [len(each) for each in shapes])
    return shapes, np.tile(np.arange(len(shapes)), count), first[side] + np.repeat(np.arange(count), len(shapes))


def with_room(records, capacities):
    """Records whose collisions have the given room for contacts, by part."""
    fields = []
    for name in records.dtype.names:
        dtype = records.dtype[name]
        if name in capacities:
            room = capacities[name]
            fields_of_part = [
                (key, dtype[key].base, (room, *dtype[key].shape[1:])) if key in CONTACT_FIELDS else (key, dtype[key]) for key in dtype.names
            ]
            dtype = np.dtype(fields_of_part)
        fields.append((name, dtype))
    return widened(records, np.dtype(fields))
