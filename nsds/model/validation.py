"""Table of the fields of all parts and their ranges, by which every record is checked once before a run.

Records are arrays that anyone may edit, save and load, and kernels index memory by their contents: nothing in them is trusted. The table
below states each field of each kind of part: its type, its shape in lengths that must agree, and the range of its values. A field
without a row is an error, also for `nsds.system`, which checks its own result. The structure is checked once for a dtype and a model; the
ranges of all members are compared in a few operations for the whole record.
"""

import math
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.collision.groups import has_groups, kinds_that_meet
from nsds.collision.kinds import NAMES, PLANAR, POLYHEDRA, SHAPES
from nsds.collision.pairs import SUPPORTED, require_supported
from nsds.model import joints
from nsds.model.fields import CONTACT_FIELDS, FUNCTION, LARGEST, Leaf, Pattern, floats, integers, pattern, sparse
from nsds.model.function_checks import try_functions
from nsds.model.functions import arguments_of
from nsds.model.laws import ANY, LAWS, require_fitting, rows_of_contact
from nsds.model.records import GRAVITY, HEAD, copied, lines_of, memory, model_of
from nsds.model.rigid_bodies import require_values
from nsds.model.system_kinds import COLLISIONS, CONTROL, FIRST_ORDER, LAGRANGIAN, NEWTON_EULER, RELATIONS, SYSTEMS, WRITABLE, wiring
from nsds.model.system_kinds import NAMES as NAMES_OF_CIRCUIT
from nsds.model.systems import require_mass
from nsds.status import ADVICE, EVENT

_WHOLE = np.iinfo(np.int64)
_SMALL = 4096  # entries: smaller parts are checked together
_MOST_CONTROLS = 10000
_UNIT = 1e-6  # accepted deviation of the norm of a quaternion or direction from 1


def _matrix(name, required=False):
    return floats("n", required=required), floats("n", "n", required=required), sparse("n", "n", f"nonzeros of {name}")


def _control(*, T, u):
    return {"T": (floats("n", "n_u"), *T), "u": (floats("n_u"), *u), "n_u": integers(low=1, high=_MOST_CONTROLS), "z": floats("n_z")}


_Q = {"q": floats("n", required=True), "v": floats("n", required=True), "p": floats("n", required=True)}
_X = {"x": floats("n", required=True), "r": floats("n", required=True)}
_TEXT = (FUNCTION,)
_FORCE = (floats(3), FUNCTION)
# kind of system -> its fields, first those at its start, in this order
SYSTEM_FIELDS = {
    "lagrangian_linear": _Q
    | {"M": _matrix("M", required=True), "K": _matrix("K"), "C": _matrix("C"), "fext": (floats("n"), FUNCTION), "z": floats("n_z")},
    "lagrangian": _Q
    | {"M": _matrix("M"), "mass": FUNCTION, "fext": (floats("n"), FUNCTION)}
    | dict.fromkeys(("fint", "fgyr", "jac_q", "jac_v"), FUNCTION)
    | {"jac_sparsity": pattern("n", "n", "nonzeros of jac_sparsity")}
    | _control(T=_TEXT, u=_TEXT),
    "first_order_linear": _X
    | {"M": _matrix("M"), "A": (*_matrix("A", required=True), FUNCTION), "b": (floats("n"), FUNCTION)}
    | _control(T=_TEXT, u=_TEXT),
    "first_order": _X
    | {"M": _matrix("M"), "f": Leaf("S", required=True), "jac_f": FUNCTION, "jac_sparsity": pattern("n", "n", "nonzeros of jac_sparsity")}
    | _control(T=_TEXT, u=_TEXT),
    "rigid_bodies": {
        "q": floats(7, required=True),
        "v": floats(6, required=True),
        "p": floats(6, required=True),
        "mass": floats(high=np.inf, required=True),
        "inertia": floats(3, 3, required=True),
        "fext": _FORCE,
        "mext": _FORCE,
        "mext_inertial": integers(low=0, high=1),
        "T": floats(6, "n_u"),
        "u": floats("n_u"),
        "u_inertial": integers(low=0, high=1),
        "alive": integers(low=0, high=1),
        "planar": integers(low=1, high=1),
        "C": floats(6, 6),
        "K": floats(6, 7),
        "z": floats("n_z"),
    }
    | dict.fromkeys(("fint", "mint", "jac_q", "jac_v"), FUNCTION),
}  # fmt: skip
_LEADING = {LAGRANGIAN: 3, FIRST_ORDER: 2, NEWTON_EULER: 5}  # number of fields at the start of a system, which kernels read by offset
# fields of interactions by the family of their systems; per_row and per_contact are whole shapes
_ROW = Leaf("f", "per_row", -LARGEST, LARGEST, True)
_MECHANICAL_ROWS = {"y": _ROW, "ydot": _ROW, "lambda": _ROW, "active": Leaf("i", "per_row", 0, 1, True)}
ROWS = {LAGRANGIAN: _MECHANICAL_ROWS, NEWTON_EULER: _MECHANICAL_ROWS, FIRST_ORDER: {"y": _ROW, "lambda": _ROW}}
CONTROL_FIELDS = {
    "control": Leaf("S", required=True),
    "start": FUNCTION,
    "period": floats(low=0.0, required=True),
    "t_last": floats(required=True),
    "state": floats("n_state"),
    "z": floats("n_z"),
}
_NAMED = Leaf("S", required=True)
NAMES_FIELDS = {
    "nodes_by_rate": Leaf("i", ("n_nodes",), 0, 1, True),
    "elements_by_rate": Leaf("i", ("n_elements",), 0, 1, True),
    # of large circuits by compressed rows of the transpose
    "voltages": (floats("n_nodes", "n_known", required=True), sparse("n_known", "n_nodes", "nonzeros of voltages")),
    "currents": (floats("n_elements", "n_known", required=True), sparse("n_known", "n_elements", "nonzeros of currents")),
    "by_switch": Leaf("i", ("n_elements", 2), -1, _WHOLE.max, True),
    "terminals": Leaf("i", ("n_elements", 2), 0, "n_nodes-1", True),
    "stores": Leaf("i", ("n_stores", 2), 0, "n_elements-1", True),
    "stored": floats("n_stores", required=True),
    "devices": Leaf("i", ("n_devices", 3), 0, _WHOLE.max, True),
    "z": floats("n_z", required=True),
    "t_end": floats(high=np.inf, required=True),
} | dict.fromkeys(("node_names", "element_names", "state_names", "device_names", "row_names", "integral_names", "source_names"), _NAMED)
COLLISION_FIELDS = {
    "shape_kind": Leaf("i", ("n_shapes",), 0, len(NAMES) - 1, True),
    **CONTACT_FIELDS,
    "n": Leaf("i", (), 0, "capacity", True),
    "shape_size": floats("n_shapes", 3, low=0.0, high=np.inf, required=True),
    "shape_pose": floats("n_shapes", 7, required=True),
    "shape_body": Leaf("i", ("n_shapes",), -1, "n_bodies-1", True),
    "group": Leaf("i", ("n_shapes",), 0, _WHOLE.max, True),
    "mask": Leaf("i", ("n_mask",), _WHOLE.min, _WHOLE.max, True),
    "vertices": floats("n_vertices", 3),
    "triangles": integers("n_triangles", 3, low=0, high="n_vertices-1"),
    "margin": floats(low=0.0, required=True),
    "enabled": integers("n_shapes", low=0, high=1),
    "material": integers("n_shapes", low=0, high="n_materials-1"),
    "surface_velocity": floats("n_shapes", 6),
    "on_contact": Leaf("S"),
    "z": floats("n_z"),
}
_HEAD = {
    "t": floats(), "t0": floats(), "step": integers(low=0, high=2**53),
    "status": integers(low=min(ADVICE), high=2 * EVENT - 1), "n_iter": integers(low=0, high=_WHOLE.max), GRAVITY: floats(3),
}  # fmt: skip


class _Range(NamedTuple):
    """Entries of a field of one element, and their range; scalars if all entries have the same one."""

    field: str
    kind: str
    start: int
    size: int
    low: object
    high: object


class _Group(NamedTuple):
    """Entries that are checked together: of each of ``count`` elements of ``stride`` entries, from entry ``start`` on."""

    start: int
    count: int
    stride: int
    checks: tuple  # (kind, entries of an element, least, largest)


class _Rules(NamedTuple):
    groups: tuple
    parts: dict  # name -> (start, count, stride, ranges)
    more: tuple  # (function, name): checks of values that depend on one another


def runnable(owner, system):
    """`valid` records whose user functions are known and have been tried."""
    records = valid(owner, system)
    try_functions(owner, records)
    return records


def valid(owner, system):
    """The record, or ensemble, if a run can use it; a copy if its memory has another layout than that of `nsds.system`.

    Numbers of another byte order or precision are converted.

    Raises
    ------
    TypeError
        Not a record, or fields of another type.
    ValueError
        A field that is unknown, missing or of the wrong shape, a value out of its range; the error names part, field, expected and given.
    """
    # 1. layout: packed, little-endian, 8 bytes
    records, dtype = _named(owner, _record_array, system), _named(owner, _converted_dtype, system.dtype)
    if dtype is not None:
        converted = np.empty(records.shape, dtype)
        _convert(records, converted)
        records = converted
    elif not records.flags.c_contiguous or not records.flags.aligned:
        records = copied(records)
    # 2. structure, once for a dtype and model, and ranges of all values at once
    rules = _named(owner, _rules, records.dtype, records["model"].reshape(-1)[0])
    mem = memory(records)
    for group in rules.groups:
        if not _within(group, mem):
            _raise_range(owner, rules, mem)
    # 3. values that depend on each other
    flat = records.reshape(-1)
    for check, name in rules.more:
        check(owner, name, flat[name], flat.size)
    return records


def _record_array(system):
    model_of(system)
    return np.asarray(system)


def _named(owner, function, *arguments):
    try:
        return function(*arguments)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{owner}: {error}") from None


def _within(group, mem):
    values = mem[:, group.start : group.start + group.count * group.stride].reshape(mem.shape[0], group.count, group.stride)
    for kind, words, low, high in group.checks:
        chosen = values[..., words] if kind == "f" else values.view(np.int64)[..., words]
        if not ((chosen >= low) & (chosen <= high)).all():
            return False
    return True


def _raise_range(owner, rules, mem):
    """Raises an error that names the first value out of its range."""
    # the check of all at once has failed: search part by part, field by field
    for name, (start, count, stride, ranges) in rules.parts.items():
        values = mem[:, start : start + count * stride].reshape(mem.shape[0], count, stride)
        for field, kind, first, size, low, high in ranges:
            chosen = values[..., first : first + size]
            chosen = chosen if kind == "f" else chosen.view(np.int64)
            wrong = np.argwhere(~((chosen >= low) & (chosen <= high)))
            if len(wrong):
                member, element, entry = wrong[0].tolist()
                given = chosen[member, element, entry].item()
                low, high = (np.broadcast_to(bound, (size,))[entry].item() for bound in (low, high))
                where = f" at entry {entry}" if size > 1 else ""
                where += f" of element {element}" if count > 1 else ""
                where += _checks.of_member(member, mem.shape[0])
                raise ValueError(
                    f"{owner}: {name}{'.' if name else ''}{field} must be {_wanted_range(kind, low, high)}, got {given}{where}"
                )
    raise AssertionError("a value out of its range was found and lost")


def _wanted_range(kind, low, high):
    if kind == "f":
        if (low, high) == (-LARGEST, LARGEST):
            return "finite"
        if (low, high) == (-LARGEST, np.inf):
            return "finite, or infinite"
        if high == LARGEST:
            return f"finite and at least {low:g}"
        return f"in [{low:g}, {high:g}]"
    return f"a whole number in [{low}, {high}]" if high >= low else "of length 0"


@lru_cache(maxsize=256)
def _converted_dtype(dtype):
    """A dtype with the layout of `nsds.system`: packed, little-endian, leaves of 8 bytes; None if the given one has it."""
    made = _packed(dtype, "")
    return None if _same_layout(dtype, made) else made


def _packed(dtype, path):
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return np.dtype((_packed(base, path), shape))
    if dtype.names:
        return np.dtype([(name, _packed(dtype[name], f"{path}.{name}" if path else name)) for name in dtype.names])
    if dtype.kind in "fi" and dtype.itemsize <= 8:
        return np.dtype("<f8" if dtype.kind == "f" else "<i8")
    if dtype.kind == "S" and dtype.itemsize:
        return np.dtype(f"S{-8 * (-dtype.itemsize // 8)}")
    raise TypeError(f"{path} must hold float64, int64 or bytes, got {dtype}")


def _same_layout(one, other):
    if one.subdtype or other.subdtype:
        return bool(one.subdtype and other.subdtype) and one.shape == other.shape and _same_layout(one.base, other.base)
    if one.names != other.names or one.itemsize != other.itemsize:
        return False
    if one.names is None:
        return one.str == other.str
    return all(
        one.fields[name][1] == other.fields[name][1] and _same_layout(one.fields[name][0], other.fields[name][0]) for name in one.names
    )


def _convert(source, target):
    for name in source.dtype.names:
        if source[name].dtype.names:
            _convert(source[name], target[name])
        else:
            target[name] = source[name]


@lru_cache(maxsize=256)
def _rules(dtype, model):
    """Ranges of all entries of a record, and further checks, after its structure was compared with its model.

    Raises
    ------
    ValueError
        The model does not say how the record is made up, or not as its dtype does.
    """
    # 1. fields in the order of head and model
    model = lines_of(model)
    head = [name for name, _ in HEAD] + ["model"] + [GRAVITY] * (GRAVITY in dtype.names)
    names = [line[0] for line in model]
    if list(dtype.names) != head + names:
        raise ValueError(f"the record's fields must be {', '.join(head + names)}, as its model says, got {', '.join(dtype.names)}")
    for name, kind in HEAD:
        if dtype[name] != np.dtype(kind):
            raise ValueError(f"{name} must be one number of type {kind}, got {dtype[name]}")
    # 2. head, and sizes of the systems, on which other parts depend
    parts = {"": (0, 1, dtype.itemsize // 8, _ranges_of_fields("", _head_dtype(dtype), _HEAD, {}, dtype))}
    sizes = _sizes_of_systems(dtype, model)
    for name, (family, _, _) in sizes.items() if GRAVITY in dtype.names else ():
        if family != NEWTON_EULER:
            raise ValueError(f"gravity is an acceleration in space of rigid bodies; '{name}' is {family}: give it its weight as a force")
    # 3. each part: one record or an array of them, with fields of its kind
    more = []
    for line in model:
        name, kind = line[:2]
        part, start = dtype.fields[name][0], dtype.fields[name][1] // 8
        if len(part.shape) > 1 or part.base.names is None:
            raise ValueError(f"{name} must be one element or an array of them, got {part}")
        fields, lengths, checks = _fields_of(line, part, sizes)
        ranges = _ranges_of_fields(name, part.base, fields, lengths)
        parts[name] = start, part.shape[0] if part.shape else 1, part.base.itemsize // 8, ranges
        more += [(check, name) for check in checks]
    return _Rules(_groups(parts, dtype.itemsize // 8), parts, tuple(more))


def bounds_of_words(dtype, model):
    """{part: (first entry, elements, entries of an element, ranges of its fields)} of the records of a model; the head is the part ""."""
    return _rules(dtype, model).parts


def _head_dtype(dtype):
    return np.dtype([(name, dtype[name]) for name in _HEAD if name in dtype.names])


def _groups(parts, n_words):
    """Small parts in one group, larger ones each in its own."""
    together, groups = {"f": [], "i": []}, []
    for start, count, stride, ranges in parts.values():
        own = {kind: [each for each in ranges if each.kind == kind] for kind in "fi"}
        checks = tuple(_joined(kind, each) for kind, each in own.items() if each)
        if count * stride > _SMALL and count > 1:
            groups.append(_Group(start, count, stride, checks))
            continue
        for kind, words, low, high in checks:
            for element in range(count):
                together[kind].append((words + start + element * stride, low, high))
    checks = tuple((kind, *(np.concatenate(column) for column in zip(*each, strict=True))) for kind, each in together.items() if each)
    return (_Group(0, 1, n_words, checks), *groups)


def _joined(kind, ranges):
    number = np.float64 if kind == "f" else np.int64
    words = np.concatenate([np.arange(each.start, each.start + each.size) for each in ranges])
    low, high = (
        np.concatenate([np.broadcast_to(np.asarray(getattr(each, bound), number), (each.size,)) for each in ranges])
        for bound in ("low", "high")
    )
    return kind, words, low, high


def _sizes_of_systems(dtype, model):
    """{system: (family, coordinates, elements or None)}; refuses a model that names missing parts."""
    # 1. systems, with a vector as state
    sizes = {}
    for line in model:
        name, kind, *others = line if len(line) > 1 else (*line, "")
        if kind not in SYSTEMS and kind not in RELATIONS and kind not in (COLLISIONS, CONTROL, NAMES_OF_CIRCUIT):
            raise ValueError(f"the model says that part '{name}' is a {kind!r}, which is none of {', '.join((*SYSTEMS, *RELATIONS))}")
        if kind in SYSTEMS:
            if others:
                raise ValueError(f"the model says of part '{name}' more than that it is a {kind}: {' '.join(others)}")
            part, state = dtype[name], SYSTEMS[kind][1]
            if part.base.names is None or state not in part.base.names or len(part.base[state].shape) != 1 or len(part.shape) > 1:
                raise ValueError(f"{name} is a {kind} and must have a vector {state}, got {part}")
            sizes[name] = SYSTEMS[kind][0], part.base[state].shape[0], part.shape[0] if part.shape else None
    # 2. one family
    families = {family for family, _, _ in sizes.values()}
    if len(families) != 1:
        raise ValueError(f"the model must have systems of one family, got {', '.join(sorted(families)) or 'none'}")
    # 3. sides of interactions and collisions
    for name, kind, *others in model:
        if kind in SYSTEMS or kind == NAMES_OF_CIRCUIT:
            continue
        if kind == CONTROL and others:  # checked by `_require_wired`
            continue
        sides, most = others[1:], len(sizes) if kind == COLLISIONS else 2
        if not 1 <= len(sides) <= most or not set(sides) <= set(sizes):
            raise ValueError(f"the model says that {kind} '{name}' acts on {' '.join(sides) or 'nothing'}; systems are: {', '.join(sizes)}")
    _require_wired(dtype, model)
    return sizes


def _require_wired(dtype, model):
    """Refuses controllers that read or write missing fields, or fields that another one writes."""
    writer = {}
    for line in model:
        if line[1] != CONTROL:
            continue
        name, (written, read) = line[0], wiring(model, line)
        # 1. fields exist, and are numbers or, if written, controls or flags
        places = [(part, field, "reads", "fi") for part, fields in read for field in fields]
        places += [(part, field, "writes", "f" if field == "u" else "i" if field in WRITABLE else "") for part, field in written]
        for part, field, does, kinds in places:
            fields = dtype[part].base.names if part in dtype.names else None
            if fields is None or field not in fields or dtype[part].base[field].base.kind not in kinds:
                raise ValueError(f"controller '{name}' {does} {part}.{field}, which is not there or not of numbers")
        # 2. one writer for each field
        for place in written:
            if writer.setdefault(place, name) != name:
                raise ValueError(f"controllers '{writer[place]}' and '{name}' both write {'.'.join(place)}")
        if not read:
            raise ValueError(f"the model says that controller '{name}' reads nothing")


def _fields_of(line, part, sizes):
    """(fields, lengths, further checks) of a part."""
    name, kind, *others = line
    names = part.base.names
    # 1. systems: leading fields in the order in which kernels read them, alternatives, length of the control
    if kind in SYSTEMS:
        family, n, _ = sizes[name]
        leading = tuple(SYSTEM_FIELDS[kind])[: _LEADING[family]]
        if names[: len(leading)] != leading:
            raise ValueError(f"{name} must begin with the fields {', '.join(leading)}, got {', '.join(names)}")
        if kind == "lagrangian" and ("M" in names) == ("mass" in names):
            raise ValueError(f"{name} must have one of the fields M and mass, got {', '.join(names)}")
        for field in ("mext", "u") if kind == "rigid_bodies" else ():
            if (field in names) != (f"{field}_inertial" in names):
                raise ValueError(f"{name} must have both of the fields {field} and {field}_inertial, or none, got {', '.join(names)}")
        lengths, n = ({"n": n}, n) if family != NEWTON_EULER else ({}, 6)
        if "n_u" not in names and "u" in names and ("T" not in names or part.base["u"].base.kind == "f"):
            lengths["n_u"] = n if "T" not in names else part.base["u"].shape[-1] if part.base["u"].shape else 0
        elif "n_u" not in names and "u" in names and part.base["T"].base.kind == "S":
            raise ValueError(f"{name} must have the field n_u, because T and u are functions")
        return SYSTEM_FIELDS[kind], lengths, _system_checks(name, kind, part, family)
    # 2. controllers and names of circuits
    if kind == CONTROL:
        return CONTROL_FIELDS, {}, []
    if kind == NAMES_OF_CIRCUIT:
        return NAMES_FIELDS, {}, [_sparse_check(field) for field in ("voltages", "currents") if part.base[field].names]
    # 3. collisions, with the parameters of their law
    law, *sides = others
    family = sizes[sides[0]][0]
    if kind == COLLISIONS:
        if law not in LAWS or not LAWS[law].is_detected or family != NEWTON_EULER:
            raise ValueError(f"the model says that collisions '{name}' have the law {law} on {family} systems")
        n_bodies = sum(count or 1 for _, _, count in sizes.values())
        lengths = {"block": LAWS[law].block(NEWTON_EULER), "n_bodies": n_bodies}
        table = ("n_materials",) * 2 if "material" in part.base.names else ()
        parameters = {
            field: floats(*table, low=low, high=_finite(high), required=True) for field, (low, high) in LAWS[law].parameters.items()
        }
        return parameters | COLLISION_FIELDS, lengths, [_shapes_check, *([partial(_tables_check, law)] if table else [])]
    # 4. interactions
    if law not in LAWS or family not in LAWS[law].families or family not in RELATIONS[kind].families:
        raise ValueError(f"the model says that interaction '{name}' is a {kind} with the law {law} on {family} systems")
    require_fitting(f"interaction '{name}'", law, kind, family)
    return _fields_of_interaction(name, kind, law, sides, part, sizes)


def _finite(bound):
    return min(bound, LARGEST)


def _block(law, family, dtype):
    """Constraints of one contact: length of y over number of coefficients of friction, if the law has such contacts; else the usual."""
    sizes = LAWS[law].blocks.get(family, {}).values()
    found = rows_of_contact(law, dtype) if sizes and {"y", "mu"} <= set(dtype.names) and math.prod(dtype["mu"].shape) else 0
    return found if found in sizes else LAWS[law].block(family)


def _fields_of_interaction(name, kind, law, sides, part, sizes):
    # 1. number of constraints, a multiple of those of a contact
    family, n = sizes[sides[0]][0], sum(sizes[side][1] for side in sides)
    y = part.base["y"].shape if "y" in part.base.names else (0,)
    m, block = (y[0] if y else 1), _block(law, family, part.base)
    if len(y) > 1 or y in ((0,), (1,)) or m % block:
        raise ValueError(f"{name}.y must be a number or a vector, {block} for each contact, got shape {y}")
    lengths = {"m": m, "n": n, "per_row": y, "per_contact": y if block == 1 else (m // block,) if m > block else (),
               "per_pair": 2 * y}  # fmt: skip
    # 2. fields of the family, of the relation's functions and numbers, of the law
    fields = dict(ROWS[family])
    if family == NEWTON_EULER:
        fields["enabled"] = integers(low=0, high=1)
    for field in arguments_of(kind):
        fields[field] = Leaf("S", required=field in RELATIONS[kind].needed)
    for field, known in RELATIONS[kind].fields.items():
        fields[field] = (*(known if isinstance(known, tuple) and not isinstance(known, Leaf) else (known,)), *_function_too(kind, field))
    fields |= dict.fromkeys(arguments_of(law), Leaf("S", required=True))
    if arguments_of(kind) or arguments_of(law):
        fields["z"] = floats("n_z")
    for field, (low, high) in LAWS[law].parameters.items():
        is_bound = LAWS[law].treatment.bounds == ANY
        fields[field] = Leaf("f", "per_contact", low, high if is_bound else _finite(high), True)
    for field, shape in LAWS[law].shapes.items():
        is_number = isinstance(lengths.get(shape), int)
        fields[field] = Leaf("i", (), 0, shape, True) if is_number else Leaf("f", shape, -LARGEST, LARGEST, True)
    # 3. checks of values that depend on each other
    checks = [_bounds_check] if "lower" in LAWS[law].parameters else []
    if "dofs" in RELATIONS[kind].fields:
        checks.append(_dofs_check)
    if "geometry" in RELATIONS[kind].fields:
        checks.append(_geometry_check)
    checks += [_sparse_check(field) for field in "HCBD" if field in part.base.names and part.base[field].names]
    # 4. elements of array parts
    if any(sizes[side][2] is not None for side in sides):
        last = np.array([(sizes[side][2] or 1) - 1 for side in sides])
        fields["element"] = Leaf("i", (len(sides),), 0, last, True)
    if "F" in part.base.names and "z" not in part.base.names:
        raise ValueError(f"{name} must have the field z, because F is its weight")
    return fields, lengths, checks


def _function_too(kind, field):
    return (FUNCTION,) if field in arguments_of(kind) else ()


def _ranges_of_fields(name, dtype, fields, lengths, whole=None):
    """Ranges of the entries of one element; refuses fields that are unknown, missing, or have another type or shape."""
    lengths, ranges = dict(lengths), []
    # 1. unknown fields
    unknown = [field for field in dtype.names if field not in fields]
    if unknown:
        raise ValueError(f"{name} has no field '{unknown[0]}'; its fields are: {', '.join(fields)}")
    # 2. known fields, in the order of the table, as lengths follow from earlier ones
    for field, known in fields.items():
        alternatives = known if isinstance(known, tuple) and not isinstance(known, Leaf) else (known,)
        path = f"{name}.{field}" if name else field
        if field not in dtype.names:
            if any(isinstance(each, Leaf) and each.required for each in alternatives) or all(
                isinstance(each, dict) and not isinstance(each, Pattern) for each in alternatives
            ):
                raise ValueError(f"{path} is missing")
            continue
        leaf, start = (whole or dtype).fields[field][:2]
        ranges += _ranges_of(path, field, leaf, start // 8, alternatives, lengths)
    return tuple(ranges)


def _ranges_of(path, field, leaf, start, alternatives, lengths):
    """Ranges of a field that fits one of the alternatives; adds lengths that become known."""
    # the first alternative whose type and shape fit; nested records recursively
    for each in alternatives:
        if isinstance(each, dict):
            if leaf.names and set(leaf.names) == set(each):
                ranges = []
                for inner, known in each.items():
                    at = leaf.fields[inner]
                    ranges += _ranges_of(f"{path}.{inner}", f"{field}.{inner}", at[0], start + at[1] // 8, (known,), lengths)
                return ranges
        elif leaf.base.kind == each.kind and (found := _fitted(each.shape, leaf.shape, lengths)) is not None:
            lengths.update(found)
            if each.kind == "S":
                return []
            return [_Range(field, each.kind, start, leaf.itemsize // 8, *(_bound(bound, lengths) for bound in (each.low, each.high)))]
    wanted = " or ".join("a sparse matrix or nested record" if isinstance(each, dict) else _wanted(each, lengths) for each in alternatives)
    raise ValueError(f"{path} must be {wanted}, got {leaf.base if leaf.names is None else 'a nested record'} of shape {leaf.shape}")


def _fitted(wanted, shape, lengths):
    """Lengths that follow from a shape, or None if it does not fit."""
    if isinstance(wanted, str):
        return {} if shape == lengths[wanted] else None
    if len(wanted) != len(shape):
        return None
    found = {}
    for length, given in zip(wanted, shape, strict=True):
        expected = _bound(length, lengths | found, None)
        if expected is None:
            found[length] = given
        elif expected != given:
            return None
    return found


def _bound(value, lengths, unknown=0):
    """A number, or the value of a name such as ``"n"``, ``"n+1"`` or ``"n-1"``."""
    if not isinstance(value, str):
        return value
    name, step = value.removesuffix("+1").removesuffix("-1"), value.endswith("+1") - value.endswith("-1")
    return lengths[name] + step if name in lengths else unknown


def _wanted(leaf, lengths):
    if leaf.kind == "S":
        return "the name of a function"
    shape = lengths[leaf.shape] if isinstance(leaf.shape, str) else tuple(_bound(each, lengths, each) for each in leaf.shape)
    return f"{'float64' if leaf.kind == 'f' else 'int64'} of shape ({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _system_checks(name, kind, part, family):
    checks = [_sparse_check(field) for field in (*"MKCA", "jac_sparsity") if field in part.base.names and part.base[field].names]
    if "n_u" in part.base.names:
        checks.append(_same_check("n_u"))
    if kind == "rigid_bodies":
        checks.append(lambda owner, name, bodies, n: require_values(owner, f"{name}.", bodies, n))
        checks += [_planar_check] if "planar" in part.base.names else []
    if family == LAGRANGIAN and "M" in part.base.names:
        is_dense = len(part.base["M"].shape) == 2
        checks.append(lambda owner, name, values, n: require_mass(f"{owner}: {name}.M", values["M"], is_dense, kind == "lagrangian"))
    return checks


OUT_OF_PLANE = {"q": [2, 4, 5], "v": [2, 3, 4]}  # entries that are 0 of planar bodies


def _planar_check(owner, name, bodies, n_members):
    """Checks that planar bodies are in the plane z = 0, rotated about its normal, without gyroscopic moments."""
    for field, out in OUT_OF_PLANE.items():
        off = bodies[field][..., out]
        if off.any():
            raise ValueError(f"{owner}: {name}.{field} must be 0 at entries {out}, out of the plane, got {abs(off).max():.3g}")
    inertia = bodies["inertia"]
    if (inertia != inertia[..., :1, :1] * np.eye(3)).any():
        raise ValueError(
            f"{owner}: {name}.inertia of planar bodies must be a number times the identity, got {inertia.reshape(-1, 3, 3)[0]}"
        )


def _same_check(field):
    def check(owner, name, values, n_members):
        if (values[field] != values[field].reshape(-1)[0]).any():
            raise ValueError(f"{owner}: {name}.{field} must be the same in all elements and members, got {np.unique(values[field])}")

    return check


def _sparse_check(field):
    def check(owner, name, values, n_members):
        indptr, nonzeros = values[field]["indptr"], values[field]["indices"].shape[-1]
        if (indptr[..., 0] != 0).any() or (indptr[..., -1] != nonzeros).any() or (np.diff(indptr) < 0).any():
            raise ValueError(f"{owner}: {name}.{field}.indptr must rise from 0 to {nonzeros}, the number of entries")

    return check


def _bounds_check(owner, name, values, n_members):
    lower, upper = values["lower"], values["upper"]
    if not (lower <= upper).all() or np.isposinf(lower).any() or np.isneginf(upper).any():
        raise ValueError(f"{owner}: {name}.lower must be at most {name}.upper, and -inf and inf only be bounds that never act")


def _dofs_check(owner, name, values, n_members):
    if (np.diff(np.sort(values["dofs"], axis=-1)) == 0).any():
        raise ValueError(f"{owner}: {name}.dofs must be different from each other")


def _geometry_check(owner, name, values, n_members):
    """Checks that directions of joints are unit vectors, for kinds of rows that have them; u and b of a coupler are 0 for translations."""
    geometry = values["geometry"]
    row = geometry["row"]
    # 1. kinds of rows that need angles, or stand alone
    alone = np.isin(row, (joints.COUPLER, joints.GEAR))
    if (np.isin(row, joints.ANGULAR).any() and "angle" not in values.dtype.names) or (alone.any() and row.shape[-1] > 1):
        raise ValueError(f"{owner}: {name}.geometry.row has kinds that want the field angle, or one row alone, got {row[0].tolist()}")
    if ((row == joints.COUPLER) & (geometry["a"] == 0).all(axis=-1)).any():
        raise ValueError(f"{owner}: {name}.geometry.a of a coupler must not be zero: it is an axis times the ratio")
    # 2. unit vectors; squares are clipped, so that they do not overflow
    for field, kinds in (("w", None), ("u", (joints.ALIGN, joints.ANGLE, joints.GEAR)), ("b", (joints.ANGLE, joints.GEAR))):
        squares = (np.clip(geometry[field], -2.0, 2.0) ** 2).sum(axis=-1)
        concerned = np.isin(row, kinds) if kinds else True
        wrong = concerned & (abs(squares - 1) > 2 * _UNIT)
        if kinds:
            wrong |= (row == joints.COUPLER) & (abs(squares - 1) > 2 * _UNIT) & (squares != 0)
        if wrong.any():
            raise ValueError(f"{owner}: {name}.geometry.{field} must be unit vectors, got {geometry[field][wrong][0].tolist()}")


# kind of shape -> number of its sizes that are positive lengths
_LENGTHS, _IS_ENDLESS, _IS_OF_WORLD = (
    np.array([getattr(shape, what) for shape in SHAPES.values()]) for what in ("lengths", "is_endless", "is_of_world")
)


def _shapes_check(owner, name, part, n_members):
    """Checks the sizes, poses and vertices of shapes, and that contacts of all pairs can be found."""
    # 1. positive lengths, as many as the kind has
    kind, size, pose, body = (part[f"shape_{field}"] for field in ("kind", "size", "pose", "body"))
    n_lengths = _LENGTHS[kind]
    for i in range(3):
        wrong = (i < n_lengths) & ~((size[..., i] > 0) & (np.isfinite(size[..., i]) | (_IS_ENDLESS[kind] & (i == n_lengths - 1))))
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0])
            raise ValueError(
                f"{owner}: {name}.shape_size must be positive lengths of a {NAMES[kind[at]]}, got {size[at].tolist()} for shape {at[-1]}"
            )
    # 2. vertices of polyhedra within the list, groups within the mask
    solid = np.isin(kind, POLYHEDRA)
    if solid.any():
        n_vertices = part.dtype["vertices"].shape[0] if "vertices" in part.dtype.names and "triangles" in part.dtype.names else 0
        first, count = size[solid][:, 1], size[solid][:, 2]
        if not ((first == np.floor(first)) & (count == np.floor(count)) & (count >= 1) & (first + count <= n_vertices)).all():
            raise ValueError(f"{owner}: {name}.shape_size must hold first vertex and number of vertices, of {n_vertices}, of polyhedra")
    if not has_groups(part["mask"], last := part["group"].max().item()):
        raise ValueError(f"{owner}: {name}.mask must have bits for all pairs of groups up to group {last}")
    # 3. poses: unit quaternions, and shapes in the plane there
    if (abs(np.linalg.norm(pose[..., 3:], axis=-1) - 1) > _UNIT).any():
        raise ValueError(f"{owner}: {name}.shape_pose[3:] must be unit quaternions, scalar first")
    if (flat := np.isin(kind, PLANAR)).any():
        if not flat.all():
            raise ValueError(f"{owner}: {name}.shape_kind must be of shapes in the plane, or in space, got both")
        z = abs(pose[..., [2, 4, 5]]).max()
        if z > 0:
            raise ValueError(f"{owner}: {name}.shape_pose must be in the plane z = 0 and turned about z, got one that is {z:.3g} off")
    # 4. planes in the world only; pairs without contact kernel only where they cannot meet
    misplaced = _IS_OF_WORLD[kind] & (body >= 0)
    if misplaced.any():
        raise ValueError(f"{owner}: {name}.shape_body must be -1, the world, for {NAMES[kind[misplaced][0]]}s")
    present = np.flatnonzero(np.bincount(kind.reshape(-1))).tolist()
    doubtful = [
        (i, j) for i in present for j in present if i <= j and (i, j) not in SUPPORTED and not (_IS_OF_WORLD[i] and _IS_OF_WORLD[j])
    ]
    if doubtful:
        columns = (part[field].reshape(n_members, -1) for field in ("shape_kind", "shape_body", "group", "mask"))
        for member in {tuple(column.tobytes() for column in member) for member in zip(*columns, strict=True)}:
            for pair in _meeting(*member) & set(doubtful):
                require_supported(*pair)


def _tables_check(law, owner, name, part, n_members):
    """Checks that parameters over two materials do not depend on their order."""
    for field in LAWS[law].parameters:
        if (part[field] != np.swapaxes(part[field], -1, -2)).any():
            raise ValueError(f"{owner}: {name}.{field} must be a symmetric table over materials, got {part[field].tolist()}")


@lru_cache(maxsize=64)
def _meeting(*columns):
    return kinds_that_meet(*(np.frombuffer(column, np.int64) for column in columns))
