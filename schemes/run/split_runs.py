"""Runs composed of others: parts with schemes of their own ([Notes], 10.4), members with steps of their own."""

import numpy as np

from nsds import _checks
from nsds.model.records import RESERVED, copied, model_of, widened
from nsds.model.system_kinds import NAMES, collisions_of, split, systems_of
from nsds.results.trajectories import ROW_HEAD, with_room
from nsds.schemes import table
from nsds.schemes.run.recording import mark_not_computed
from nsds.status import CONVERGED, is_event


def groups_of(owner, system, scheme):
    """[(scheme, names of systems, interactions and controllers)] from a dict system -> scheme; the others get the default.

    Raises
    ------
    ValueError
        A name that is no system; an interaction, collisions or a controller between systems with different schemes.
    """
    # 1. names
    model = model_of(system)
    systems = split(model)[0]
    if not scheme:
        raise ValueError(
            f"{owner}: scheme: a dict must give at least one system its scheme, got {{}}; the systems are: {', '.join(dict(systems))}"
        )
    for name in scheme:
        if name not in dict(systems):
            raise ValueError(f"{owner}: scheme: there is no system '{name}'; the systems are: {', '.join(dict(systems))}")
    # 2. groups of systems with equal options
    options = {name: table.chosen(scheme.get(name), system)[1] for name, _ in systems}
    key = {name: (repr(record.dtype), record.tobytes()) for name, record in options.items()}
    groups = {key[name]: (options[name], []) for name in options}
    for name in options:
        groups[key[name]][1].append(name)
    # 3. interactions, collisions and controllers join the group of their systems
    for name in [line[0] for line in model if line[0] not in options and line[1] != NAMES]:
        linked = systems_of(model, name)
        if len({key[part] for part in linked}) > 1:
            both = " and ".join(f"'{part}' ({options[part]['scheme'].item().decode()})" for part in linked)
            raise ValueError(
                f"{owner}: '{name}' links {both}: what positions, velocities and impulses two schemes would share is not defined "
                f"([Notes], 10.4); give them one scheme"
            )
        groups[key[linked[0]]][1].append(name)
    return list(groups.values())


def part_of(system, names):
    """The record, or ensemble, with some of its parts only."""
    kept = [name for name in system.dtype.names if name in RESERVED or name in names]
    result = np.zeros(system.shape, [(name, system.dtype[name]) for name in kept])
    for name in kept:
        result[name] = system[name]
    lines = system["model"].reshape(-1)[0].decode().split("\n")
    result["model"] = "\n".join(line for line in lines if line.split()[0] in names).encode()
    for name, *_ in collisions_of(model_of(result)):
        body = result[name]["shape_body"]
        body[body >= 0] = _number_among(system, names)[body[body >= 0]]
    return result


def _number_among(system, names):
    """Number of each body of a record among those of some of its systems."""
    sizes = [(name in names, np.prod(system.dtype[name].shape, dtype=int)) for name, _ in split(model_of(system))[0]]
    return np.cumsum(np.repeat(*zip(*sizes, strict=True))) - 1


def fields_of(fields, names):
    """Fields to save that belong to some of the parts."""
    chosen = [fields] if isinstance(fields, str) else fields
    return None if chosen is None else [path for path in chosen if str(path).partition(".")[0] in names]


def joined_rows(system, pieces):
    """One trajectory from those of the groups, its parts in the order of the system.

    Raises
    ------
    ValueError
        A group has rows at events, which the others do not have.
    """
    if any(is_event(piece["status"]).any() for piece in pieces):
        raise ValueError("simulate: nsds.event_driven has rows at events of its own: it cannot be one of several schemes; run it apart")
    owner = {name: piece for piece in pieces for name in piece.dtype.names}
    names = [name for name in system.dtype.names if name in owner and name not in dict(ROW_HEAD)]
    result = np.zeros(pieces[0].shape, ROW_HEAD + [(name, owner[name].dtype[name]) for name in names])
    for name in ("t", "step", *names):
        result[name] = owner[name][name]
    return _with_outcome(result, pieces)


def joined_records(system, pieces):
    """The record, or ensemble, with the parts of the groups."""
    rooms = {name: piece.dtype[name]["a"].shape[0] for piece in pieces for name, *_ in collisions_of(model_of(piece))}
    result = with_room(copied(system), rooms)
    for piece in pieces:
        for name in piece.dtype.names:
            if name != "model":
                result[name] = piece[name]
    for name, *_ in collisions_of(model_of(system)):
        result[name]["shape_body"] = np.asarray(system)[name]["shape_body"]
    return _with_outcome(result, pieces)


def members_by_step(owner, system, h):
    """[(step size, numbers of the members that have it)], the first member's first; h: one for each member.

    Raises
    ------
    ValueError, TypeError
        Not one step size for each member.
    """
    steps = _checks.array(owner, "h", h)
    if steps.shape != system.shape:
        raise ValueError(f"{owner}: h must be a number, or one for each member with shape {system.shape}, got shape {steps.shape}")
    steps = steps.reshape(-1)
    return [(value, np.flatnonzero(steps == value)) for value in dict.fromkeys(steps.tolist())]


def joined_members(shape, pieces, kinds=None, empty=np.zeros):
    """One trajectory of an ensemble from (numbers of members, their rows) of pieces; rows that a member has not reached are NOT_COMPUTED.

    kinds: for each piece the type and the number of rows of a member, if pieces are read in sequence; empty(shape, dtype) makes the
    array.
    """
    kinds = [(rows.dtype, rows.shape[1]) for _, rows in pieces] if kinds is None else kinds
    names, n_rows = kinds[0][0].names, max(count for _, count in kinds)
    dtype = np.dtype([(name, max((kind[name] for kind, _ in kinds), key=lambda each: each.itemsize)) for name in names])
    result = empty((np.prod(shape, dtype=int), n_rows), dtype)
    mark_not_computed(result)
    for members, rows in pieces:
        result[members, : rows.shape[1]] = widened(rows, dtype)
    return result.reshape(*shape, n_rows)


def _with_outcome(result, pieces):
    """The first status that is not 0, all iterations, the largest residual."""
    status = pieces[0]["status"]
    for piece in pieces[1:]:
        status = np.where(status == CONVERGED, piece["status"], status)
    result["status"], result["n_iter"] = status, sum(piece["n_iter"] for piece in pieces)
    result["residual"] = np.max([piece["residual"] for piece in pieces], axis=0)
    return result
