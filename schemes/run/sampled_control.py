"""Sampled controllers in the time loop: called at their own period, their output constant in between (`nsds.sampled_control`)."""

from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, view
from nsds.model.control import NEVER
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT, FunctionSlots, count_and_stride, table
from nsds.model.records import model_of, words
from nsds.model.system_kinds import split, wiring

HELD, SWITCHED, BROKEN = range(3)  # outcome of the controllers
_PUNCTUAL = 1e-6  # of a step: deviation of the time from an instant

CONTROLLER = table(
    # record: t_last, time of the last call, s; period, s; state (n_state); z (n_z): parameters
    "t_last", "period", "state", "n_state", "z", "n_z",
    # slots of its functions
    "control", "start",
    # ranges in the list of entries: [read, read_end) is read, up to write_end written; scratch x and u
    "read", "read_end", "write_end", "x", "u",
)  # fmt: skip
# An entry of the record, and whether it is an integer.
WORD = table("at", "is_whole")


class Controls(NamedTuple):
    """Tables of the controllers of a model, entries that they read and write, addresses of functions, scratch (members, entries)."""

    table: np.ndarray
    words: np.ndarray
    functions: np.ndarray
    scratch: np.ndarray


def prepare(owner, records, h):
    """Controls of a record or ensemble.

    Raises
    ------
    ValueError
        A period that is not a multiple of the step h.
    """
    # 1. fields and functions of each controller
    model = model_of(records)
    controls = split(model)[2]
    rows, lists, size, functions = np.zeros(len(controls), CONTROLLER), [np.zeros(0, WORD)], 0, FunctionSlots(records)
    for row, line in zip(rows, controls, strict=True):
        name, kind, *_ = line
        written, read = wiring(model, line)
        start, dtype = words(records.dtype, name)
        _require_multiple(owner, name, records[name]["period"], h)
        for field in ("t_last", "period", "state", "z"):
            row[field] = start + dtype.fields[field][1] // 8 if field in dtype.names else start
        row["n_state"], row["n_z"] = (dtype[field].shape[0] if field in dtype.names else 0 for field in ("state", "z"))
        for field in ("control", "start"):
            row[field] = functions.slots(name, kind, field, 1)[0]
        # 2. entries that it reads and writes, listed in a row
        x = np.concatenate([_words_of(records.dtype, part, *fields) for part, fields in read])
        u = np.concatenate([_words_of(records.dtype, part, field) for part, field in written])
        row["read"] = sum(each.size for each in lists)
        row["read_end"], row["write_end"] = row["read"] + x.size, row["read"] + x.size + u.size
        row["x"], row["u"] = size, size + x.size
        size += x.size + u.size
        lists += [x, u]
    return Controls(rows, np.concatenate(lists, dtype=WORD), functions.addresses, np.zeros((records.size, size)))


def _require_multiple(owner, name, periods, h):
    ratio = periods / h
    if (abs(ratio - np.round(ratio)) > _PUNCTUAL * np.maximum(ratio, 1)).any():
        raise ValueError(f"{owner}: the period of controller '{name}', {periods.max():g}, must be a multiple of the step h = {h:g}")


def _words_of(record, part, *fields):
    """Entries of fields in all elements of a part, element by element."""
    start, dtype = words(record, part)
    count, stride = count_and_stride(dtype)
    inner = [(offset // 8 + k, field.base.kind == "i") for field, offset, *_ in (dtype.base.fields[name] for name in fields)
             for k in range(field.itemsize // 8)]  # fmt: skip
    rows = np.zeros((count, len(inner)), WORD)
    at, rows["is_whole"] = np.array(inner).T
    rows["at"] = start + stride * np.arange(count)[:, None] + at
    return rows.reshape(-1)


@kernel
def act(t, h, controllers, where, functions, mem, imem, scratch):
    """Call the controllers whose instant t is; their output is in mem afterwards. HELD, SWITCHED: a flag, or BROKEN: not finite."""
    zero, outcome = 0.0, HELD
    for i in range(controllers.size):
        c = controllers[i]
        # due, up to rounding of t
        if t > mem[c.t_last] and t - mem[c.t_last] >= mem[c.period] - _PUNCTUAL * h:
            # 1. copies of what it reads, and of its present output
            for k in range(c.read, c.write_end):
                scratch[c.x + k - c.read] = imem[where[k].at] if where[k].is_whole else mem[where[k].at]
            x, u = view(scratch, c.x, c.read_end - c.read), view(scratch, c.u, c.write_end - c.read_end)
            slot = c.start if mem[c.t_last] == NEVER and c.start != ABSENT else c.control
            call_function(functions, slot, (t, x, view(mem, c.state, c.n_state), view(mem, c.z, c.n_z), u))
            # 2. output; a changed flag makes the scheme restart
            for k in range(c.read_end, c.write_end):
                written = scratch[c.x + k - c.read]
                zero += 0.0 * written
                if where[k].is_whole:
                    flag = 1 if written != 0.0 else 0
                    outcome = outcome if flag == imem[where[k].at] else SWITCHED
                    imem[where[k].at] = flag
                else:
                    mem[where[k].at] = written
            mem[c.t_last] = t
    return outcome if zero == 0.0 else BROKEN
