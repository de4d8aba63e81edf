"""Assembly: joins named parts to one record."""

import numpy as np

from nsds import _checks
from nsds.model.collisions import collisions_record
from nsds.model.free_motions import require_free
from nsds.model.interactions import interaction_record
from nsds.model.laws import LAWS
from nsds.model.records import GRAVITY, HEAD, RESERVED, leaf
from nsds.model.system_kinds import COLLISIONS, CONTROL, NAMES, SYSTEMS, WRITABLE
from nsds.model.validation import runnable


def system(*, t=0.0, gravity=None, **parts):
    """Joins parts to one record: the whole state and description of a nonsmooth dynamical system.

    Parameters
    ----------
    t : float
        Time at the start.
    gravity : array_like (3,), optional
        Acceleration of free fall in inertial axes (m/s²), as ``[0, 0, -9.81]``: ``m g`` acts at the centre of mass of every rigid body of
        finite mass, besides its fext. The record has it as ``system["gravity"]``, which may be changed. Coordinates of Lagrangian systems
        need not be positions: their weight is ``M g`` in fext, or in fint.
    **parts
        Systems (`nsds.lagrangian`, `nsds.lagrangian_linear`, `nsds.lagrangian_modal`, `nsds.first_order_linear`, `nsds.first_order`,
        `nsds.rigid_bodies`, `nsds.planar_bodies`), interactions (`nsds.interaction`), contacts to be detected (`nsds.collisions`) and
        controllers (`nsds.sampled_control`), under the names by which they refer to each other.

    Returns
    -------
    numpy.ndarray, shape ()
        A record with one field per part, ``system["ball"]["M"]``; ``np.repeat(system, 1000)`` makes an ensemble. It can be copied,
        compared, saved and memory-mapped as any array.

    Raises
    ------
    TypeError, ValueError
        A part that no constructor made, a taken name, gravity of systems that are not rigid bodies, an interaction on a part that does not
        exist or does not fit, a force on a coordinate that joints of the same bodies hold.

    Examples
    --------
    >>> import nsds
    >>> system = nsds.system(
    ...     ball=nsds.lagrangian_linear(M=[1.0], fext=[-9.81], q=[1.0], v=[0.0]),
    ...     floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(e=0.9), on="ball"),
    ... )
    >>> system["floor"]["e"].item()
    0.9
    """
    # 1. head of the record: clock and gravity
    for name, value in (("t", t), (GRAVITY, gravity)):
        if isinstance(value, dict):
            raise ValueError(_TAKEN.format(name))
    t = _checks.number("system", "t", t)
    if gravity is not None:
        gravity = _checks.array("system", "gravity", gravity)
        if gravity.shape != (3,):
            raise ValueError(f"system: gravity must have shape (3,), got {gravity.shape}")
    # 2. names and kinds of the parts; only a constructor's dict is accepted, since its values are checked
    for name, part in parts.items():
        if not name.isidentifier():
            raise ValueError(f"system: the name of a part must be an identifier, got {_checks.shortened(name)}")
        if name in RESERVED:
            raise ValueError(_TAKEN.format(name))
        kind = part.get("kind") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in _HELD or not set(_HELD[kind]) <= set(part) or not _is_record(part.get("record")):
            given = _checks.shortened(part)
            way = "; a relation becomes a part by nsds.interaction" if isinstance(part, dict) and "relation" in part else ""
            raise TypeError(f"system: part '{name}' must come from a constructor such as nsds.lagrangian_linear, got {given}{way}")
    # 3. systems, all of one family: a scheme steps all of them
    kinds = {name: part["kind"] for name, part in parts.items() if part["kind"] in SYSTEMS}
    if not kinds:
        raise ValueError("system: at least one dynamical system is needed, got none")
    families = {SYSTEMS[kind][0]: name for name, kind in kinds.items()}
    if len(families) > 1:
        both = " and ".join(f"'{name}' is {family}" for family, name in families.items())
        raise ValueError(f"system: one scheme steps all systems of a record, but {both}")
    systems = {name: parts[name] for name in kinds}
    flat = [name for name, part in systems.items() if "planar" in part["record"].dtype.names]
    if gravity is not None and gravity[2] != 0 and flat:
        raise ValueError(f"system: gravity must lie in the plane z = 0 of the planar bodies '{flat[0]}', got {gravity.tolist()}")

    # 4. record of each part, and its line in the model: name, kind, parts to which it refers
    model, records = [], {}
    for name, part in parts.items():
        if part["kind"] == "interaction":
            records[name] = interaction_record(name, part, systems)
            words = (part["relation"]["relation"], part["law"]["law"], *(side for side, _ in part["sides"]))
        elif part["kind"] == COLLISIONS:
            records[name] = collisions_record(name, part, systems)
            words = (COLLISIONS, part["law"]["law"], *part["shapes"])
        else:
            records[name] = part["record"]
            words = (part["kind"],)
            if part["kind"] == CONTROL:
                words += _wired(name, part, parts, kinds)
        model.append(" ".join((name, *words)))
    # 5. one structured record; runnable checks it once more, as any record that a user hands in
    _require_free(parts, records, systems)
    model = "\n".join(model)
    dtype = HEAD + [("model", *leaf(model, 0))] + ([] if gravity is None else [(GRAVITY, *leaf(gravity, 0))])
    dtype += [(name, r.dtype, r.shape) if r.ndim else (name, r.dtype) for name, r in records.items()]
    result = np.zeros((), np.dtype(dtype))
    if gravity is not None:
        result[GRAVITY] = gravity
    result["t"] = result["t0"] = t
    result["model"] = model.encode()
    for name, record in records.items():
        result[name] = record
    return runnable("system", result)


def _require_free(parts, records, systems):
    """Refuses forces, motors and friction on coordinates that joints constrain."""
    rows = {name: part for name, part in parts.items() if part["kind"] == "interaction" and part["relation"]["relation"] == "joint"}
    laws = {name: LAWS[part["law"]["law"]] for name, part in rows.items()}
    lines = [(name, law.treatment.is_equation, law.is_given or law.is_bounded) for name, law in laws.items()]
    if any(is_force for _, _, is_force in lines):
        require_free(records, lines, {name: _places(part, records[name], systems) for name, part in rows.items()})


def _places(part, record, systems):
    """(body of A, of B or None, q of A, q of B or None) of each element of an interaction."""
    places = []
    for element in np.atleast_1d(record):
        chosen = element["element"] if "element" in record.dtype.names else [0] * len(part["sides"])
        bodies = [(side, int(i)) for (side, _), i in zip(part["sides"], chosen, strict=True)]
        q = [np.atleast_1d(systems[side]["record"])["q"][i] for side, i in bodies]
        places.append((bodies[0], bodies[1] if len(bodies) > 1 else None, q[0], q[1] if len(q) > 1 else None))
    return places


# Fields of parts, by their kind.
_HELD = dict.fromkeys(SYSTEMS, ("record",)) | {
    "interaction": ("relation", "law", "sides", "enabled"),
    COLLISIONS: ("law", "margin", "shapes", "world", "pairs", "capacity", "enabled"),
    CONTROL: ("record", "reads", "writes"),
    NAMES: ("record",),
}


_TAKEN = "system: the name '{}' is taken: it is reserved for what all records have; choose another for this part"


def _is_record(record):
    return record is None or (isinstance(record, np.ndarray) and record.dtype.names is not None)


def _switches(part):
    """Flags of a part."""
    if part.get("record") is not None:
        return [name for name in WRITABLE[1:] if name in part["record"].dtype.base.names]
    return [name for name in WRITABLE[1:] if part.get(name) is not None]


def _wired(name, part, parts, kinds):
    """Paths that a controller writes, as one word, then those that it reads."""
    # 1. paths that it reads: a system, or a field of a part
    for path in part["reads"]:
        other, dot, _ = path.partition(".")
        if other not in (parts if dot else kinds):
            known = f"parts are: {', '.join(parts)}" if dot else f"systems are: {', '.join(kinds)}"
            raise ValueError(f"controller '{name}': there is no {'part' if dot else 'system'} '{other}'; the {known}")
    # 2. paths that it writes: a constant control u, or a flag that was declared
    for path in part["writes"]:
        other, dot, field = path.partition(".")
        if dot and other in parts and field != "u":
            if field not in _switches(parts[other]):
                known, way = ", ".join(WRITABLE), f"; give it {field}=True" if field in WRITABLE else ""
                raise ValueError(f"controller '{name}' can write {known} of parts that have them, got {path}{way}")
            continue
        if other not in kinds:
            raise ValueError(f"controller '{name}': there is no system '{other}'; the systems are: {', '.join(kinds)}")
        written = parts[other]["record"].dtype.base
        if "u" not in written.names or written["u"].base.kind != "f":
            way = "give it u=numpy.zeros(n_u)"
            if kinds[other] == "lagrangian_linear":
                way = "lagrangian_linear has none, make it a nsds.lagrangian with u=numpy.zeros(n_u)"
            raise ValueError(f"controller '{name}': '{other}' has no constant control u to write; {way}")
    return ",".join(part["writes"]), *part["reads"]
