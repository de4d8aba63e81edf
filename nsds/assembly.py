"""Assembly: named parts to one record."""

import numpy as np

from nsds import _checks
from nsds.interactions import interaction_record
from nsds.records import HEAD, RESERVED, leaf


def system(*, t=0.0, **parts):
    """Join parts to one record: the whole state and description of a nonsmooth dynamical system.

    Parameters
    ----------
    t : float
        Time at the start.
    **parts
        Systems (`nsds.lagrangian_linear`) and interactions (`nsds.interaction`), under the names by which they refer to each other.

    Returns
    -------
    numpy.ndarray, shape ()
        A record with one field per part, ``system["ball"]["M"]``; ``np.repeat(system, 1000)`` makes an ensemble. It can be copied,
        compared, saved and memory-mapped as any array.

    Raises
    ------
    TypeError, ValueError
        A part that no constructor made, a reserved name, an interaction on a part that does not exist or does not fit.

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
    t = _checks.number("system", "t", t)
    for name, part in parts.items():
        if not name.isidentifier():
            raise ValueError(f"system: the name of a part must be an identifier, got {name!r}")
        if name in RESERVED:
            raise ValueError(f"system: the name '{name}' is reserved, choose another for this part")
        if not isinstance(part, dict) or "kind" not in part:
            raise TypeError(f"system: part '{name}' must come from a constructor such as nsds.lagrangian_linear, got {part!r}")
    bodies = {name: part["record"] for name, part in parts.items() if "record" in part}
    if not bodies:
        raise ValueError("system: at least one dynamical system is needed, got none")
    counts = {name: record.shape[0] if record.ndim else None for name, record in bodies.items()}
    sizes = {name: record["q"].shape[-1] for name, record in bodies.items()}

    model, records = [], {}
    for name, part in parts.items():
        if name in bodies:
            records[name] = bodies[name]
            model.append(f"{name} {part['kind']}")
        else:
            records[name] = interaction_record(name, part, counts, sizes)
            sides = " ".join(side for side, _ in part["sides"])
            model.append(f"{name} {part['relation']['relation']} {part['law']['law']} {sides}")
    model = "\n".join(model)
    dtype = HEAD + [("model", *leaf(model, 0))] + [(name, r.dtype, r.shape) if r.ndim else (name, r.dtype) for name, r in records.items()]
    result = np.zeros((), np.dtype(dtype))
    result["t"] = result["t0"] = t
    result["model"] = model.encode()
    for name, record in records.items():
        result[name] = record
    return result
