"""Trial calls of user functions in Python before a run: a wrong shape is an error here, not a wild write later."""

from functools import lru_cache

import numpy as np

from nsds.model.functions import arguments_of, try_once
from nsds.model.records import model_of
from nsds.model.system_kinds import COLLISIONS, CONTROL, SYSTEMS, collisions_of, split, wiring

_NOTHING = np.zeros(0)
_tried = set()


def try_functions(owner, records):
    """Runs the user functions of checked records at their state, unless records of the same structure were tried with the same functions.

    In array parts and ensembles, one element for each set of functions.

    Raises
    ------
    ValueError, TypeError
        A function that this process does not know, fails, gives NaN or infinity, or returns something.
    """
    # 1. functions in the records
    paths = _functions_of(records.dtype)
    if not paths:
        return
    members = records.reshape(-1)
    columns = [members[part][field] for part, field in paths]
    model = members["model"][0]
    # 2. one member, or all that have other functions than those tried before
    same = members.size == 1 or all((column == column[0]).all() for column in columns)
    for m in range(1 if same else members.size):
        key = (records.dtype, model, *(column[m].tobytes() for column in columns))
        if key in _tried:
            continue
        try:
            _try_all(members[m])
        except (TypeError, ValueError) as error:
            raise type(error)(f"{owner}: {error}") from None
        _tried.add(key)


@lru_cache(maxsize=256)
def _functions_of(dtype):
    """Fields (part, field) that name functions, and lengths that follow from nothing else."""
    parts = [(part, dtype[part].base) for part in dtype.names if dtype[part].base.names]
    found = [(part, field) for part, base in parts for field in base.names if base[field].kind == "S"]
    return found + [(part, "n_u") for part, base in parts if found and "n_u" in base.names]


def has_functions(records):
    """Whether a record names a function."""
    return bool(_functions_of(records.dtype))


def function_names(records):
    """Names of all functions in records."""
    found = (np.unique(records[part][field]) for part, field in _functions_of(records.dtype) if field != "n_u")
    return {name.decode(errors="replace") for names in found for name in names.tolist()}


def _try_all(system):
    # 1. systems: state, velocity, sizes of the results
    t = system["t"].item()
    systems, interactions, controls = split(model_of(system))
    states = {name: system[name].reshape(-1)[SYSTEMS[kind][1]] for name, kind in systems}
    for name, kind in systems:
        parts = system[name].reshape(-1)
        for e in _with_other_functions(parts):
            x, part = states[name][e], parts[e]
            sizes = dict.fromkeys(("A", "jac_f", "mass", "jac_q", "jac_v"), x.size**2) | {"u": n_u(part), "T": x.size * n_u(part)}
            if kind == "rigid_bodies":
                sizes = dict.fromkeys(("fext", "mext", "fint", "mint"), 3) | {"jac_q": 42, "jac_v": 36}
            _try_part(name, kind, part, t, x, part["v"] if "v" in part.dtype.names else _NOTHING, sizes, x.size)
    # 2. interactions: coordinates of all sides, and functions of relation and law
    for name, kind, law, *sides in interactions:
        parts = system[name].reshape(-1)
        for e in _with_other_functions(parts):
            part = parts[e]
            elements = part["element"] if "element" in part.dtype.names else np.zeros(len(sides), np.int64)
            x = np.concatenate([states[side][element] for side, element in zip(sides, elements, strict=True)])
            lam = np.atleast_1d(part["lambda"])
            n, m, n_z = x.size, lam.size, part["z"].size if "z" in part.dtype.names else 0
            sizes = {
                "g": n,
                "C": m * n,
                "H": m * n,
                "B": n * m,
                "D": m * m,
                "K": n * n,
                "bounds": 2 * m,
                "F": m * n_z,
                "jac": m * n,
                "gap": 7,
            }
            _try_part(name, kind, part, t, x, lam, sizes, m)
            if arguments_of(law):
                _try_part(name, law, part, t, np.atleast_1d(part["y"]), np.atleast_1d(part["ydot"]), {}, m)
    # 3. contact callbacks and controllers
    for name, *_ in collisions_of(model_of(system)):
        _try_on_contact(name, system[name])
    for name, *words in controls:
        written, read = wiring(model_of(system), (name, *words))
        parts = [(system[part].reshape(-1), fields) for part, fields in read]
        x = np.concatenate([np.concatenate([one[field].reshape(-1) for field in fields]) for each, fields in parts for one in each])
        state = system[name]["state"] if "state" in system[name].dtype.names else _NOTHING
        n_controls = sum(system[part][field].size for part, field in written)
        _try_part(name, CONTROL, system[name], t, x.astype(np.float64), state, {}, n_controls)


def _try_on_contact(name, part):
    """Tries the contact callback on a possible contact: the first shape with itself, as it lies on its body."""
    if "on_contact" in part.dtype.names:
        pose, z = part["shape_pose"][0], part["z"] if "z" in part.dtype.names else _NOTHING
        contact = np.concatenate([[0.0, 0.0, 1.0], pose[:3], [0.0]])
        function = part["on_contact"].item().decode(errors="replace")
        try_once(name, function, COLLISIONS, "on_contact", 0.0, np.zeros(3), np.concatenate([pose, pose]), z, contact)


def _with_other_functions(parts):
    """First element of each set of elements that have the same functions."""
    fields = [field for field in parts.dtype.names if parts.dtype[field].kind == "S"]
    first = {}
    for e in range(parts.size if any((parts[field] != parts[field][0]).any() for field in fields) else min(len(fields), 1)):
        first.setdefault(tuple(parts[field][e] for field in fields), e)
    return first.values()


def n_u(part):
    """Length of the control of one element of a part; 0 without one."""
    names = part.dtype.names
    if "u" not in names:
        return 0
    if part.dtype["u"].base.kind == "f":
        return part.dtype["u"].shape[0]
    if "T" not in names:
        return part.dtype["x" if "x" in names else "q"].shape[0]
    return int(part["n_u"]) if "n_u" in names else part.dtype["T"].shape[1]


def _try_part(name, kind, part, t, x, lam, sizes, otherwise):
    z = part["z"].reshape(-1) if "z" in part.dtype.names else _NOTHING
    for field in arguments_of(kind):
        if field in part.dtype.names and part.dtype[field].kind == "S":
            out = np.zeros(sizes.get(field, otherwise))
            try_once(name, part[field].item().decode(errors="replace"), kind, field, t, x, lam, z, out)
