"""User functions are tried once, in Python, when a system is put together: a wrong shape is an error there, not a wild write later."""

import numpy as np

from nsds.functions import ARGUMENTS, try_once
from nsds.kinds import CONTROL, SYSTEMS, read_by_controllers, split
from nsds.records import model_of

_NOTHING = np.zeros(0)


def try_functions(system):
    """Run the user functions of a record at its state; of an array part those of the first element.

    Raises
    ------
    ValueError, TypeError
        A function that fails, gives NaN or infinity, or returns something.
    """
    t = system["t"].item()
    systems, interactions, controls = split(model_of(system))
    states = {name: system[name].reshape(-1)[SYSTEMS[kind][1]] for name, kind in systems}
    for name, kind in systems:
        x = states[name][0]
        part = system[name].reshape(-1)[0]
        sizes = dict.fromkeys(("A", "jac_f", "mass", "jac_q", "jac_v"), x.size**2) | {"u": n_u(part), "T": x.size * n_u(part)}
        if kind == "rigid_bodies":
            sizes = dict.fromkeys(("fext", "mext", "fint", "mint"), 3) | {"jac_q": 42, "jac_v": 36}
        _try_part(name, kind, part, t, x, part["v"] if "v" in part.dtype.names else _NOTHING, sizes, x.size)
    for name, kind, _, *sides in interactions:
        part = system[name].reshape(-1)[0]
        elements = part["element"] if "element" in part.dtype.names else np.zeros(len(sides), np.int64)
        x = np.concatenate([states[side][element] for side, element in zip(sides, elements, strict=True)])
        lam = np.atleast_1d(part["lambda"])
        n, m, n_z = x.size, lam.size, part["z"].size if "z" in part.dtype.names else 0
        sizes = {"g": n, "C": m * n, "H": m * n, "B": n * m, "D": m * m, "K": n * n, "F": m * n_z, "jac": m * n, "gap": 7}
        _try_part(name, kind, part, t, x, lam, sizes, m)
    kinds = dict(systems)
    for name, _, written, *read in controls:
        x = np.concatenate(
            [np.concatenate([system[part][field] for field in read_by_controllers(kinds[part])], axis=-1).reshape(-1) for part in read]
        )
        state = system[name]["state"] if "state" in system[name].dtype.names else _NOTHING
        _try_part(name, CONTROL, system[name], t, x, state, {}, system[written].reshape(-1)["u"].size)


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
    for field in ARGUMENTS.get(kind, ()):
        if field in part.dtype.names and part.dtype[field].kind == "S":
            try_once(name, part[field].item().decode(), kind, field, t, x, lam, z, sizes.get(field, otherwise))
