"""Ray casting in the scene of a record: the first surface that each ray hits."""

from functools import lru_cache

import numpy as np

from nsds import _checks
from nsds.collision.frames import place
from nsds.collision.geometry import geometry_of
from nsds.collision.grid import measure
from nsds.collision.kinds import CONVEX, MESH, PLANAR, SPHERE
from nsds.collision.rays import cast
from nsds.model.records import model_of
from nsds.model.system_kinds import NEWTON_EULER, SYSTEMS, collisions_of, split
from nsds.model.validation import valid

RAY = np.dtype([("part", "<i8"), ("shape", "<i8"), ("body", "<i8"), ("distance", "<f8"), ("point", "<f8", (3,)), ("normal", "<f8", (3,))])
_WORLD = "world"


def rays(system, origins, directions, *, name=None, reach=np.inf, ignore=()):
    """First surfaces that rays hit, of all shapes of `nsds.collisions` as they are in a record: lines of sight, distance sensors, picking.

    Bodies that are not alive and shapes that are not enabled are not seen. A ray that begins in a solid meets its surface from inside,
    where it comes out: the normal there points along the ray, ``normal @ direction > 0``, elsewhere against it. Meshes and walls of tubes
    are seen from both sides, and the normal tells from which. A surface on which a ray begins, as that of the body that carries a sensor,
    may be met at distance 0 or not, by rounding: leave out that body by ``ignore``, or begin off the surface.

    Parameters
    ----------
    system : numpy.ndarray, shape () or (members,)
        The record; `nsds.restart` makes one of a row of a trajectory. Or an ensemble of records.
    origins, directions : array_like (n, 3)
        Where rays begin (m) and where they go, vectors of any length but zero; (3,) for one of all rays, and (members, n, 3) for rays of
        each member of an ensemble. In the plane (n, 2), or with z = 0.
    name : str, optional
        The part of `nsds.collisions` whose shapes are considered; all by default.
    reach : float
        Surfaces farther than this are not seen (m).
    ignore : str, int or sequence of these
        Ignored parts: names of parts of bodies, "world", or numbers of bodies as in the result.

    Returns
    -------
    numpy.ndarray (n,), or (members, n)
        Structured. part: number of the part of `nsds.collisions`, 0 of the first; shape: number of the shape, as that part counts them;
        body: number of the body, counted through all parts, -1: the world; distance (m) from the origin; point (3,) there, inertial; normal
        (3,), unit, outwards. Where nothing is met -1, an infinite distance, and NaN.

    Raises
    ------
    TypeError, ValueError
        Not a record, or one without such parts; unknown names; arrays that do not fit or are not finite; a direction that is zero; rays
        that leave the plane of planar shapes.

    Examples
    --------
    >>> import nsds
    >>> system = nsds.examples.sliding_ball()  # a ball of radius 0.028575 m at the origin of a plane
    >>> seen = nsds.rays(system, origins=[[-1, 0, 0.028575], [3, 0, 1]], directions=[[1, 0, 0], [0, 0, -1]])
    >>> seen["body"].tolist(), seen["distance"].round(6).tolist(), seen["normal"][0].round(6).tolist()
    ([0, -1], [0.971425, 1.0], [-1.0, 0.0, 0.0])
    """
    # 1. record and the parts with shapes
    owner = "rays"
    records = valid(owner, system)
    model = model_of(records)
    parts = _parts(owner, model, name)
    reach = _checks.number_or_inf(owner, "reach", reach, low=0.0)
    is_planar = _is_planar(owner, records, parts.values())
    # 2. rays of each member
    origins, directions = _lines(owner, records.shape, origins, directions, is_planar)
    result = np.empty(origins.shape[:-1], RAY)
    lines = origins.reshape(records.size, -1), directions.reshape(records.size, -1), result.reshape(records.size, -1)
    # 3. first hits, member by member; the limit itself is within reach
    unseen = _unseen(owner, records, model, ignore)
    for record, *of_member in zip(records.reshape(-1), *lines, strict=True):
        _look(record, model, parts, unseen, np.nextafter(reach, np.inf), *of_member)
    return result


def _parts(owner, model, name):
    """{number: name} of the parts of collisions that are considered."""
    known = [line[0] for line in collisions_of(model)]
    if not known:
        raise ValueError(f"{owner}: the system must have a part of nsds.collisions, got {', '.join(line[0] for line in model)}")
    if name is None:
        return dict(enumerate(known))
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"{owner}: name must be a part of nsds.collisions, {', '.join(known)}, got {_checks.shortened(name)}")
    return {known.index(name): name}


def _is_planar(owner, records, parts):
    found = {bool(np.isin(records[part]["shape_kind"], PLANAR).any()): part for part in parts}
    if len(found) == 2:
        raise ValueError(f"{owner}: name must choose between shapes in the plane, '{found[True]}', and in space, '{found[False]}'")
    return True in found


def _lines(owner, members, origins, directions, is_planar):
    """(origins, directions), both (*members, n, 3), of unit vectors."""
    # 1. three components, and one array for all members or one each
    given = {"origins": origins, "directions": directions}
    for field, value in given.items():
        value = _checks.array(owner, field, value, at_least=1)
        if value.shape[-1] == 2 and is_planar:
            value = np.concatenate([value, np.zeros((*value.shape[:-1], 1))], axis=-1)
        if value.shape[-1] != 3 or (value.ndim > 2 and value.shape[:-2] != members):
            wanted = " or (*members, n, 3)" if members else ""
            raise ValueError(f"{owner}: {field} must have shape (n, 3){wanted}, got {value.shape}")
        if is_planar and value[..., 2].any():
            raise ValueError(f"{owner}: {field} must lie in the plane z = 0 of the shapes, got z = {abs(value[..., 2]).max():.6g}")
        given[field] = np.atleast_2d(value)
    # 2. as many directions as origins, or one
    counts = {field: value.shape[-2] for field, value in given.items()}
    if len({*counts.values()} - {1}) > 1:
        raise ValueError(f"{owner}: directions must be as many as origins, {counts['origins']}, or one, got {counts['directions']}")
    n = max(counts.values()) if min(counts.values()) else 0
    for field, value in given.items():
        given[field] = np.array(np.broadcast_to(value, (*members, n, 3)), order="C")  # a copy, as kernels want arrays that may be written
    return given["origins"], _unit(owner, given["directions"])


def _unit(owner, directions):
    """Directions of length 1, also if their squares over- or underflow."""
    largest = abs(directions).max(axis=-1, keepdims=True, initial=0.0)
    if not largest.all():
        where = np.argwhere(largest[..., 0] == 0)[0].tolist()
        raise ValueError(f"{owner}: directions must not be zero, got [0, 0, 0] at index {where[0] if len(where) == 1 else where}")
    directions = directions / largest
    return directions / np.linalg.norm(directions, axis=-1, keepdims=True)


def _unseen(owner, records, model, ignore):
    """Numbers of the ignored bodies, -1 for the world."""
    # 1. numbers of the bodies of each part
    first, n_bodies = {_WORLD: range(-1, 0)}, 0
    for name, kind, *_ in split(model)[0]:
        if SYSTEMS[kind][0] == NEWTON_EULER:
            count = max(records.dtype[name].shape, (1,))[0]
            first[name] = range(n_bodies, n_bodies + count)
            n_bodies += count
    # 2. names and numbers
    result = set()
    ignore = ignore.ravel() if isinstance(ignore, np.ndarray) else ignore
    for each in ignore if isinstance(ignore, (list, tuple, set, frozenset, np.ndarray)) else [ignore]:
        if isinstance(each, str) and each in first:
            result.update(first[each])
        elif isinstance(each, (int, np.integer)) and not isinstance(each, bool) and 0 <= each < n_bodies:
            result.add(int(each))
        else:
            raise ValueError(
                f"{owner}: ignore must be names of parts of bodies, {', '.join(name for name in first if name != _WORLD)}, or 'world', or "
                f"numbers of bodies, 0 to {n_bodies - 1}, got {_checks.shortened(each)}"
            )
    return sorted(result)


def _look(record, model, parts, unseen, limit, origins, directions, result):
    """First hits of the rays of one record."""
    # 1. bodies that are alive
    bodies = [record[name] for name, kind, *_ in split(model)[0] if SYSTEMS[kind][0] == NEWTON_EULER]
    q = np.concatenate([_with_unit(part["q"].reshape(-1, 7)) for part in bodies])
    dead = np.concatenate([_switched_off(part, "alive", part["q"].size // 7) for part in bodies])
    result["distance"] = np.inf
    # 2. first hit in each part; the nearer one of several parts stays
    for number, name in parts.items():
        seen, part = np.empty(result.shape, RAY), record[name]
        body = part["shape_body"].copy()
        off = _switched_off(part, "enabled", body.size) | (dead[body] & (body >= 0)) | np.isin(body, unseen)
        seen["shape"], found = _first(part, body, q, off, limit, origins, directions)
        seen["part"], seen["body"] = number, body[seen["shape"]]
        seen["distance"], seen["point"], seen["normal"] = found[:, 0], found[:, 1:4], found[:, 4:]
        missed = seen["shape"] < 0
        for field in RAY.names:
            seen[field][missed] = np.inf if field == "distance" else -1 if RAY[field].kind == "i" else np.nan
        nearer = (seen["distance"] < result["distance"]) if number != min(parts) else slice(None)
        result[nearer] = seen[nearer]


def _first(part, body, q, off, limit, origins, directions):
    """(numbers of shapes (n,), distances, points and normals (n, 7)) of a part of collisions."""
    # 1. poses and bounding balls; disabled shapes have no position, and so no ball
    kind, size, local = (part[field].ravel() for field in ("shape_kind", "shape_size", "shape_pose"))
    pose, radius, unbounded = np.empty(7 * kind.size), np.empty(kind.size), np.empty(kind.size, np.int64)
    place(body, _with_unit(local.reshape(-1, 7)).ravel(), q.ravel(), pose)
    pose.reshape(-1, 7)[off] = np.nan
    measure(kind, size, pose, np.zeros(kind.size), radius, unbounded)
    # 2. geometry of polyhedra, and the rays
    n = origins.size // 3
    shape, found = np.empty(n, np.int64), np.empty(7 * n)
    has_polyhedra = "vertices" in part.dtype.names
    vertices = part["vertices"].ravel() if has_polyhedra else np.empty(0)
    geometry = _geometry(kind.tobytes(), size.tobytes(), vertices.tobytes(), part["triangles"].tobytes()) if has_polyhedra else np.empty(0)
    cast(kind, size, pose, radius, vertices, geometry, origins, directions, limit, shape, found)
    return shape, found.reshape(n, 7)


def _with_unit(pose):
    """Coordinates with normalised quaternions, as those of a record are normalised to a tolerance only."""
    return np.concatenate([pose[:, :3], pose[:, 3:] / np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)], axis=1)


def _switched_off(part, flag, count):
    """Mask of flags that are 0; all False without the flag."""
    return part[flag].reshape(-1) == 0 if flag in part.dtype.names else np.zeros(count, bool)


@lru_cache(maxsize=16)
def _geometry(kind, size, vertices, triangles):
    """Faces of hulls and trees of meshes, cached by the bytes of the arrays of a record, for repeated calls on one scene."""
    kind = np.frombuffer(kind, np.int64)
    kind = np.where((kind == CONVEX) | (kind == MESH), kind, SPHERE)  # the other polyhedra, boxes too, do without
    return geometry_of(
        kind, np.frombuffer(size).reshape(-1, 3), np.frombuffer(vertices).reshape(-1, 3), np.frombuffer(triangles, np.int64).reshape(-1, 3)
    )
