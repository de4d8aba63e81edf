"""Trajectories: their dtype, restart from a row, and exceptions of runs that end early."""

from functools import lru_cache

import numpy as np

from nsds import _checks
from nsds.model.collisions import with_room
from nsds.model.layout import state_fields
from nsds.model.records import copied, model_of, words
from nsds.model.system_kinds import collisions_of
from nsds.model.validation import valid
from nsds.status import EVENT, MAX_ITER, NEWTON, STALLED, advice, is_event

_UNSOLVED = (MAX_ITER, STALLED, NEWTON)

ROW_HEAD = [("t", "<f8"), ("step", "<i8"), ("status", "<i8"), ("n_iter", "<i8"), ("residual", "<f8")]


class SimulationError(RuntimeError):
    """A step that failed under ``on_failure="raise"``.

    Attributes
    ----------
    trajectory : numpy.ndarray
        Rows up to and including the failed step (of an ensemble: rows that a member did not reach have the status
        `nsds.status.NOT_COMPUTED`); of a run into a file the last block of them.
    member, step, t, status, residual
        Where and how it failed; member is None for a single system.
    cause : str
        The part or function to blame, where it is known, else empty.
    """

    def __init__(self, trajectory, member, step, t, status, residual, cause=""):
        who = "" if member is None else f"member {member}, "
        way = "; on_failure='warn' goes on with the best that was found" if status in _UNSOLVED else ""
        super().__init__(f"{who}step {step} (t = {t:.9g}) failed: {cause or advice(status)}; residual {residual:.3g}{way}")
        self.trajectory, self.member, self.step, self.t = trajectory, member, step, t
        self.status, self.residual, self.cause = status, residual, cause

    def __reduce__(self):  # otherwise what a pool of processes sends back cannot be made again there, and the pool hangs
        return SimulationError, (self.trajectory, self.member, self.step, self.t, self.status, self.residual, self.cause)


class SimulationInterrupted(KeyboardInterrupt):
    """Ctrl-C during a run; ``trajectory`` holds the rows computed so far, of a run into a file the last block of them."""

    def __init__(self, trajectory, n_rows, place):
        super().__init__(f"interrupted after {n_rows} saved rows; see {place}")
        self.trajectory, self.n_rows, self.place = trajectory, n_rows, place

    def __reduce__(self):
        return SimulationInterrupted, (self.trajectory, self.n_rows, self.place)


def left_limits(rows):
    """Mask of rows that hold the limit from the left at a jump at their time. Rows (.., rows), by time.

    Of rows at events the last one of a time holds what is there after it, as does the first row; by steps, and where a run ends, rows hold
    what a step came to.
    """
    t = np.atleast_1d(rows["t"])
    edge, same = np.ones((*t.shape[:-1], 1), bool), t[..., 1:] <= t[..., :-1]
    is_first, is_after = np.append(edge, np.zeros_like(same), axis=-1), np.append(~edge, same, axis=-1)
    has_passed = is_event(rows["status"]) & (is_after | (rows["status"] > EVENT))
    return np.append(same, ~edge, axis=-1) | ~(is_first | has_passed)


def recorded(records, fields=None):
    """(dtype of a row, offsets in a record of the entries after the row's head) for the chosen fields; None: the state of all parts."""
    return _recorded(records.dtype, records["model"].reshape(-1)[0], fields if fields is None or isinstance(fields, str) else tuple(fields))


@lru_cache(maxsize=64)
def _recorded(dtype, model, fields):
    records = np.zeros(1, dtype)
    records["model"] = model
    state, bases = dict(state_fields(records)), {name: dtype[name].base for name in dtype.names}
    numbers = {part: [name for name in bases[part].names if bases[part][name].base.kind in "fi"] for part in state}
    chosen = state if fields is None else chosen_fields(fields, state, numbers)
    sources = [np.zeros(0, np.int64)]
    for part, names in chosen.items():
        start, part_dtype = words(dtype, part)
        base, count = part_dtype.base, part_dtype.shape[0] if part_dtype.shape else 1
        element = np.concatenate([base.fields[name][1] // 8 + np.arange(base[name].itemsize // 8) for name in names])
        sources.append((start + base.itemsize // 8 * np.arange(count)[:, None] + element).reshape(-1))
    return row_dtype(dtype, chosen), np.concatenate(sources).astype(np.int32)


def row_dtype(source, chosen):
    """dtype of rows with the chosen fields {part: names}, with their types in a record, or in other rows."""
    parts = [(part, [(name, source[part].base[name]) for name in names], source[part].shape) for part, names in chosen.items()]
    return np.dtype(ROW_HEAD + parts)


def chosen_fields(fields, usual, available):
    """{part: [names]} of paths like ``"ball"``, the usual fields of that part, and ``"ball.q"``."""
    chosen = {}
    for path in [fields] if isinstance(fields, str) else fields:
        part, dot, field = str(path).partition(".")
        if part not in usual:
            raise ValueError(f"fields: there is no part '{part}'; the parts are: {', '.join(usual)}{_checks.meant(part, usual)}")
        if (dot or field) and field not in available[part]:
            known = available[part]
            raise ValueError(
                f"fields: part '{part}' has no field '{field}' to choose; it has: {', '.join(known)}{_checks.meant(field, known)}"
            )
        names = chosen.setdefault(part, [])
        names += [name for name in ([field] if field else usual[part]) if name not in names]
    return chosen


def of_system(owner, system, trajectory):
    """A trajectory in the byte order of the machine, if its parts and shapes are those of the system.

    Raises
    ------
    TypeError
        Not a trajectory.
    ValueError
        Other parts or shapes than those of the system.
    """
    dtype = require_rows(owner, trajectory, None).dtype
    detected = {name for name, *_ in collisions_of(model_of(system))}  # their arrays grow during a run
    for part in dtype.names[len(ROW_HEAD) :]:
        if part not in system.dtype.names:
            raise ValueError(f"{owner}: the trajectory is that of another system: this one has no part '{part}'")
        for field in () if part in detected else dtype[part].base.names:
            held, fields = (*dtype[part].shape, *dtype[part].base[field].shape), system.dtype[part].base
            wanted = (*system.dtype[part].shape, *fields[field].shape) if field in fields.names else None
            if held != wanted:
                expected = "no such field" if wanted is None else f"shape {wanted} as in the system"
                raise ValueError(
                    f"{owner}: the trajectory is that of another system: expected of {part}.{field} {expected}, got shape {held}"
                )
    return np.asarray(trajectory).astype(dtype.newbyteorder("="), copy=False)


def is_mechanical(trajectory):
    """Whether a trajectory has fields of mechanical systems, so that lambda is an impulse and y a gap."""
    held = {field for part in trajectory.dtype.names for field in trajectory.dtype[part].base.names or ()}
    return not held.isdisjoint(("q", "v", "p", "ydot", "active"))


def require_rows(owner, trajectory, n_dims, field="trajectory"):
    """Rows of a run, as an array with one of the given numbers of dimensions; any with None."""
    given = np.asarray(trajectory) if isinstance(trajectory, (np.ndarray, np.void)) else np.zeros(0)
    if given.dtype.names is None or not {name for name, _ in ROW_HEAD} <= set(given.dtype.names) or "model" in given.dtype.names:
        is_record = "model" in (given.dtype.names or ())
        what = "a record, which comes first where a function takes both" if is_record else _checks.shortened(trajectory)
        raise TypeError(f"{owner}: {field} must be what nsds.simulate returns, got {what}")
    if n_dims is not None and (given.ndim not in n_dims or not given.size):
        raise ValueError(f"{owner}: {field} must have {' or '.join(map(str, n_dims))} dimensions and some rows, got shape {given.shape}")
    return given


def restart(system, row):
    """The record at a saved row of a trajectory: continuing the simulation from it gives the bits of an uninterrupted run.

    Parameters
    ----------
    system : numpy.ndarray
        The record (or ensemble) that was simulated.
    row : numpy.void or numpy.ndarray
        One row of its trajectory (``trajectory[k]``; of an ensemble ``trajectories[:, k]``).

    Raises
    ------
    ValueError
        The row does not hold the whole state (see ``fields`` of `nsds.simulate`), or other shapes.

    Examples
    --------
    >>> import nsds
    >>> system = nsds.examples.bouncing_ball()
    >>> whole = nsds.simulate(system, t_end=1.0, h=0.005)
    >>> half = nsds.simulate(nsds.restart(system, whole[100]), t_end=1.0, h=0.005)
    >>> bool((half["ball"]["q"] == whole["ball"]["q"][100:]).all())
    True
    """
    # 1. one row for each record, with room for its contacts
    result, row = copied(valid("restart", system)), require_rows("restart", row, None, "row")
    if row.shape != result.shape:
        raise ValueError(f"restart: expected one row for each record, shape {result.shape}, got {row.shape}")
    grown = [name for name, *_ in collisions_of(model_of(result)) if name in row.dtype.names and "a" in row.dtype[name].names]
    result = with_room(result, {name: max(dtype[name]["a"].shape[0] for dtype in (result.dtype, row.dtype)) for name in grown})
    # 2. the whole state, field by field
    for part, names in state_fields(result):
        missing = [name for name in names if part not in row.dtype.names or name not in row.dtype[part].base.names]
        if missing:
            raise ValueError(f"restart: the row does not hold {', '.join(f'{part}.{name}' for name in missing)}")
        for name in names:
            if row[part][name].shape != result[part][name].shape:
                expected, given = result[part][name].shape, row[part][name].shape
                raise ValueError(f"restart: {part}.{name} must have shape {expected} as in the record, got {given} in the row")
            result[part][name] = row[part][name]
    for name, _ in ROW_HEAD:
        result[name] = row[name]
    return result
