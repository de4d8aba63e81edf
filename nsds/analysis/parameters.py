"""Parameters of a record: number fields by their path, as ``"follower.z[0]"``, and the offsets of the state."""

import re
from functools import lru_cache

import numpy as np

from nsds import _checks
from nsds.model.layout import state_fields
from nsds.model.records import memory, model_of
from nsds.model.system_kinds import FIRST_ORDER, LAGRANGIAN, family, split
from nsds.model.validation import bounds_of_words, valid

_FRICTION = ("mu", "limit")
_PATH = re.compile(r"(\w+)\.(\w+)((?:\[\d{1,9}\])*)")


class Parameter:
    """A number in a record, by its path: ``part.field`` or ``part.field[i]``; label: the argument that names it."""

    def __init__(self, owner, label, record, path):
        # 1. form of the path
        found = _PATH.fullmatch(_checks.text(owner, label, path))
        if found is None:
            raise ValueError(f"{owner}: {label} must be named as 'part.field' or 'part.field[i]', got {_checks.shortened(path)}")
        part, field, indices = found.groups()
        self.owner, self.label, self.path, self.part, self.field = owner, label, path, part, field
        self.index = tuple(int(i) for i in re.findall(r"\d+", indices))
        # 2. part and field
        names = record.dtype.names
        if part not in names or record.dtype[part].base.names is None:
            known = [name for name in names if record.dtype[name].names]
            hint = f"there are {', '.join(known)}{_checks.meant(part, known)}"
            raise ValueError(f"{owner}: {label}: {_checks.shortened(path)} names no part; {hint}")
        fields = record.dtype[part].base
        if field not in fields.names or fields[field].base.kind != "f":
            known = [name for name in fields.names if fields[name].base.kind == "f"]
            hint = f"'{part}' has {', '.join(known)}{_checks.meant(field, known)}"
            raise ValueError(f"{owner}: {label}: {path!r} names no field of numbers; {hint}")
        # 3. one entry of the field
        values = record.reshape(-1)[:1][part][field]
        try:
            places = np.zeros(values.shape)[(0, *self.index)]
        except IndexError:
            raise ValueError(f"{owner}: {label}: {path!r} is out of range: the field has shape {values.shape[1:]}") from None
        if np.size(places) != 1:
            raise ValueError(f"{owner}: {label}: {path!r} has {np.size(places)} entries: say which, as '{path}[0]'")

    def of(self, record):
        """Value in one record."""
        return float(np.asarray(record[self.part][self.field])[self.index].reshape(-1)[0])

    def beside(self, record, delta):
        """The value, or the nearest one for which value - delta and value + delta are in the range of the field.

        Laws are linear in their parameters while the modes stay the same: there the derivative beside an end of the range is that at it.
        At zero friction there are no modes of friction: ValueError.
        """
        value = self.of(record)
        _, _, _, ranges = bounds_of_words(record.dtype, record["model"].item())[self.part]
        of_field = next(each for each in ranges if each.field == self.field)
        inner, shape = record.dtype[self.part].base[self.field].shape, np.shape(record[self.part][self.field])
        bounds = (np.broadcast_to(bound, of_field.size).reshape(inner) for bound in (of_field.low, of_field.high))
        low, high = (float(np.broadcast_to(bound, shape)[self.index].flat[0]) for bound in bounds)
        if value == low == 0.0 and self.field in _FRICTION:
            raise ValueError(f"{self.owner}: {self.label}: {self.path!r} is 0, where friction begins: take a small number, as 1e-9")
        return min(max(value, low + delta), high - delta)

    def put(self, records, values):
        """The records (members,) with other values of the parameter, a number or (members,); they are changed in place."""
        places = records[self.part][self.field]
        places[(slice(None), *self.index)] = np.reshape(
            np.broadcast_to(values, records.shape), records.shape + (1,) * (places[(0, *self.index)].ndim)
        )
        return records


def named_parameters(owner, system, paths):
    """`Parameter`s of a list of paths, none of which is a state: what a run starts from, or overwrites in each step."""
    if isinstance(paths, str) or not isinstance(paths, (list, tuple)):
        raise TypeError(f"{owner}: parameters must be a list of texts, got {_checks.shortened(paths)}")
    named, states = [Parameter(owner, "parameters", system, path) for path in paths], dict(state_fields(system))
    for each in named:
        if each.field == "p" or each.field in states[each.part]:
            is_own = each.field in ("q", "v", "x")
            hint = "derivatives by the initial state are computed without naming it" if is_own else "each step overwrites it"
            raise ValueError(f"{owner}: parameters: {each.path!r} is a state and no parameter: {hint}")
    return named


def label_of(names):
    """Name of the argument that lists these parameters."""
    return "parameter" if len(names) == 1 else "parameters"


def one_record(owner, system):
    """A copy of the record of one system; ValueError or TypeError if it is not one."""
    system = valid(owner, system)
    if np.shape(system) != ():
        raise ValueError(f"{owner}: system must be one record, not an ensemble of shape {np.shape(system)}")
    return np.array(system)


def state_of(record):
    """The state (n,) in the record of one system."""
    return memory(record.reshape(1))[0, state_words(record)]


def state_words(record):
    """Offsets of the states in a record, as entries of its memory, in the order of `nsds.analysis`: all q, then all v, or all x."""
    return _words_of(record.dtype, record["model"].reshape(-1)[0])


def branch_words(record):
    """Offsets of the multipliers of first-order systems: with hysteresis they say on which of several branches a motion is at a state."""
    model = model_of(record)
    interactions = {line[0] for line in split(model)[1]} if family(model) == FIRST_ORDER else ()
    fields = tuple((part, ("lambda",)) for part, _ in state_fields(record) if part in interactions)
    return _places(record.dtype, fields, ("lambda",))


@lru_cache(maxsize=64)
def _words_of(dtype, model):
    record = np.zeros((), dtype)
    record["model"] = model
    wanted = ("q", "v") if family(model_of(record)) == LAGRANGIAN else ("x",)
    return _places(dtype, tuple(state_fields(record)), wanted)


@lru_cache(maxsize=64)
def _places(dtype, fields_of_parts, wanted):
    """Offsets of the wanted fields of some parts, one field after the other."""
    words = {field: [] for field in wanted}
    for part, fields in fields_of_parts:
        base, begin = dtype[part].base, dtype.fields[part][1]
        for e in range(int(np.prod(dtype[part].shape, dtype=int))):
            for field in wanted:
                if field in fields:
                    start = (begin + e * base.itemsize + base.fields[field][1]) // 8
                    words[field].append(start + np.arange(int(np.prod(base[field].shape, dtype=int))))
    result = np.concatenate([np.zeros(0, int), *(block for field in wanted for block in words[field])])
    result.flags.writeable = False
    return result
