"""Sampled controllers in the time loop: called at their own period, their output held in between (`nsds.sampled_control`)."""

from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, view
from nsds.model.functions import call_function, no_functions
from nsds.model.kinds import read_by_controllers, split
from nsds.model.layout import addresses, count_and_stride, table
from nsds.model.records import model_of, words

_PUNCTUAL = 1e-6  # of a step: how far the time may be off an instant

# Where a controller's fields lie in a record, the words that it reads and writes (a range of the list of words), and its scratch.
CONTROLLER = table("t_last", "period", "state", "n_state", "z", "n_z", "read", "read_end", "write_end", "x", "u")


class Controls(NamedTuple):
    """Tables of the controllers of a model, the words that they read and write, addresses of their functions, scratch (members, words)."""

    table: np.ndarray
    words: np.ndarray
    functions: np.ndarray
    scratch: np.ndarray


def has_controls(records):
    """Whether a model has controllers."""
    return len(split(model_of(records))[2]) > 0


def prepare(owner, records, h):
    """Controls of a record or ensemble.

    Raises
    ------
    ValueError
        A period that is not a multiple of the step h.
    """
    systems, _, controls = split(model_of(records))
    kinds = dict(systems)
    rows, lists, size = np.zeros(len(controls), CONTROLLER), [np.zeros(0, np.int64)], 0
    functions = np.repeat(no_functions(), records.size, axis=0)
    for row, (name, kind, written, *read) in zip(rows, controls, strict=True):
        start, dtype = words(records.dtype, name)
        _require_multiple(owner, name, records[name]["period"], h)
        for field in ("t_last", "period", "state", "z"):
            row[field] = start + dtype.fields[field][1] // 8 if field in dtype.names else start
        row["n_state"], row["n_z"] = (dtype[field].shape[0] if field in dtype.names else 0 for field in ("state", "z"))
        x = np.concatenate([_words_of(records.dtype, part, *read_by_controllers(kinds[part])) for part in read])
        u = _words_of(records.dtype, written, "u")
        row["read"] = sum(each.size for each in lists)
        row["read_end"], row["write_end"] = row["read"] + x.size, row["read"] + x.size + u.size
        row["x"], row["u"] = size, size + x.size
        size += x.size + u.size
        lists += [x, u]
        functions = np.hstack([functions, addresses(records[name]["control"], name, kind, "control")])
    return Controls(rows, np.concatenate(lists).astype(np.int32), functions, np.zeros((records.size, size)))


def _require_multiple(owner, name, periods, h):
    ratio = periods / h
    if (abs(ratio - np.round(ratio)) > _PUNCTUAL * np.maximum(ratio, 1)).any():
        raise ValueError(f"{owner}: the period of controller '{name}', {periods.max():g}, must be a multiple of the step h = {h:g}")


def _words_of(record, part, *fields):
    """Offsets of fields in all elements of a part, element by element."""
    start, dtype = words(record, part)
    count, stride = count_and_stride(dtype)
    inner = [offset // 8 + np.arange(field.itemsize // 8) for field, offset, *_ in (dtype.base.fields[name] for name in fields)]
    return (start + stride * np.arange(count)[:, None] + np.concatenate(inner)).reshape(-1)


@kernel
def act(t, h, controllers, where, functions, mem, scratch):
    """Call the controllers whose instant t is; the control lies in mem afterwards."""
    for i in range(controllers.size):
        c = controllers[i]
        if t > mem[c.t_last] and t - mem[c.t_last] >= mem[c.period] - _PUNCTUAL * h:
            for k in range(c.read, c.write_end):
                scratch[c.x + k - c.read] = mem[where[k]]
            x, u = view(scratch, c.x, c.read_end - c.read), view(scratch, c.u, c.write_end - c.read_end)
            call_function(functions, i, (t, x, view(mem, c.state, c.n_state), view(mem, c.z, c.n_z), u))
            for k in range(c.read_end, c.write_end):
                mem[where[k]] = scratch[c.x + k - c.read]
            mem[c.t_last] = t
