"""Tables that describe a record, a trajectory or a result to a person."""

import html
import inspect

import numpy as np

from nsds import _checks
from nsds.collision.kinds import NAMES as SHAPE_NAMES
from nsds.model.functions import arguments_of
from nsds.model.records import GRAVITY, model_of
from nsds.model.system_kinds import COLLISIONS, CONTROL, NAMES, RELATIONS, family, state_of
from nsds.model.validation import valid
from nsds.results.trajectories import ROW_HEAD, require_rows
from nsds.status import advice, has_failed

_MOST = 7  # shown numbers of an array
_STATES = ("q", "v", "x", "u", "state")
_TABLES = ("p", "geometry", "element", "shape_size", "shape_pose", "shape_body", "group", "mask", "vertices", "triangles")


class Description:
    """A title and a table; from `nsds.describe`. Prints as text, in notebooks as HTML.

    Attributes
    ----------
    title : str
    columns : tuple of str
    rows : list of tuple of str
    """

    def __init__(self, title, columns, rows):
        self.title, self.columns, self.rows = title, columns, rows

    def __repr__(self):
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns) - 1)]
        table = ["  ".join([*(cell.ljust(w) for cell, w in zip(line, widths, strict=False)), line[-1]]).rstrip() for line in lines]
        return "\n".join([self.title, *table])

    def _repr_html_(self):
        def row(tag, cells):
            return "<tr>" + "".join(f'<{tag} style="text-align:left">{html.escape(cell)}</{tag}>' for cell in cells) + "</tr>"

        table = row("th", self.columns) + "".join(row("td", cells) for cells in self.rows)
        return f"<p>{html.escape(self.title)}</p><table>{table}</table>"


class Result(np.void):
    """A result of analysis that prints with the names of its fields, as `nsds.describe` tells it."""

    def __repr__(self):
        return repr(table_of(self))

    __str__ = __repr__


def result_dtype(fields):
    """The dtype of these fields whose records are `Result`; it equals the plain one."""
    return np.dtype((Result, np.dtype(fields)))


def table_of(what):
    """`Description` of a system, rows, a part, a scheme or a result; for `nsds.describe`, see there."""
    # by the fields: records, rows of a trajectory, dicts of constructors, records of options and results, named tuples
    names = getattr(getattr(what, "dtype", None), "names", None) or ()
    if "model" in names:
        return _of_system(valid("describe", what))
    if isinstance(what, (np.ndarray, np.void)) and {name for name, _ in ROW_HEAD} <= set(names):
        return _of_rows(require_rows("describe", what, None))
    if isinstance(what, dict) and len(what) > 1:
        kind = next((what[key] for key in ("kind", "relation", "law", "shape", "joint") if isinstance(what.get(key), str)), "dict")
        return Description(kind, ("field", "value"), list(_told(what, kind)))
    if {"scheme", "method", "status", "kind"} & set(names):
        named = next((name for name in ("scheme", "method") if name in names and what.ndim == 0), None)
        title = f"{named} {_text(what[named])}" if named else "result" if what.ndim == 0 else f"result, {' x '.join(map(str, what.shape))}"
        return Description(title, ("field", "value"), list(_told({name: what[name] for name in names if name != named}, "")))
    if isinstance(what, tuple) and hasattr(what, "_fields"):
        return Description(type(what).__name__, ("field", "value"), list(_told(what._asdict(), "")))
    raise TypeError(f"describe: expected a system, rows, a part, a scheme or a result, got {_checks.shortened(what)}")


def _told(fields, kind):
    """(name, value) of the given fields; those of a part's record are listed beside its own."""
    for name, value in fields.items():
        if value is None or (isinstance(value, str) and value == kind):
            continue
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", said) for inner, said in _told(value, ""))
        elif getattr(getattr(value, "dtype", None), "names", None):
            yield from ((inner, _text(value[inner])) for inner in value.dtype.names)
        else:
            yield name, _text(value)


def _text(value):
    """A value as short text: a long array by the range of its numbers."""
    if callable(value):
        return f"{getattr(value, '__name__', value)}{inspect.signature(value) if inspect.isfunction(value) else ''}"
    values = np.asarray(value) if isinstance(value, (np.ndarray, np.generic, int, float, bool)) else None
    if values is None or values.dtype.kind not in "fiubcS":
        return _checks.shortened(value)
    if values.dtype.kind == "S":
        return ", ".join(text.decode(errors="replace") for text in values.reshape(-1)[:_MOST].tolist())
    if values.dtype.kind == "c":
        return f"{values.item():.6g}" if values.size == 1 else _line(values.reshape(-1)[:_MOST])
    return _array(values.astype(float)) if values.size else "none"


def _of_system(records):
    members, model = records.reshape(-1), model_of(records)
    n_parts = f"{len(model)} part{'s' * (len(model) != 1)}"
    who = f"system of {n_parts}" if records.ndim == 0 else f"ensemble of {members.size} systems, each of {n_parts}"
    rows = []
    # a row of the table for each field of each part, with kind, law and sides in the second column
    for name, kind, *words in model:
        part = members[name]
        what = [", ".join([kind, *words[:1]]), f"on {', '.join(words[1:])}"] if kind in RELATIONS or kind == COLLISIONS else [kind]
        if kind == CONTROL and words:
            what = [kind, f"of {', '.join(words[0].split(','))}", f"reads {', '.join(words[1:])}"]
        what += [f"{part.shape[1]} of them"] if part.ndim > 1 else []
        law = words[0] if what[0] != kind and words else kind
        values = [(field, _value(part, field, kind, law)) for field in part.dtype.names if _is_told(part, field, kind)]
        rows += _side_by_side(name, what, values)
    title = f"{who}, {family(model)}, at t = {_range(members['t'])} s"
    if GRAVITY in members.dtype.names:
        title += f", gravity {_value(members, GRAVITY, '', '')} m/s²"
    return Description(title, ("part", "what", "field", "value"), rows)


def _side_by_side(name, what, values):
    """Rows of a table of one part, with its name in the first."""
    n = max(len(what), len(values))
    cells = [[name], what, [field for field, _ in values], [value for _, value in values]]
    return list(zip(*([*column, *[""] * (n - len(column))] for column in cells), strict=True))


def _is_told(part, field, kind):
    """Whether a field is shown: parameters and states, but neither results of steps nor tables that only kernels read."""
    if kind == NAMES:
        return field.endswith("_names")
    return field in _STATES or (field not in state_of(kind) and field not in _TABLES)


def _value(part, field, kind, law):
    """Short text that summarises a field over all members and elements."""
    # 1. records and names
    values, leaf = part[field], part.dtype[field]
    if leaf.base.names:
        is_sparse = "indices" in leaf.names
        return f"sparse, {leaf['indptr'].shape[0] - 1} rows, {leaf['indices'].shape[0]} entries" if is_sparse else ", ".join(leaf.names)
    values = values.reshape(-1, *leaf.shape)
    if field == "shape_kind":
        kinds, counts = np.unique(values[0], return_counts=True)
        return ", ".join(f"{count} {SHAPE_NAMES[kind]}" for kind, count in zip(kinds, counts, strict=True))
    if leaf.base.kind == "S":
        arguments = arguments_of(kind).get(field, arguments_of(law).get(field, ""))
        found = {text.decode(errors="replace") for text in np.unique(values).tolist()}
        return ", ".join(sorted(f"{text.partition(':')[2].partition('#')[0]}({arguments})" if arguments else text for text in found))
    # 2. numbers: one value for all, or the range over members and elements
    low, high = values.min(axis=0), values.max(axis=0)
    if (low == high).all():
        return _array(low)
    if low.size <= _MOST:
        return f"{_array(low)} to {_array(high)}"
    return f"{_shape(low)}, from {low.min():.6g} to {high.max():.6g}"


def _array(values):
    """Text of numbers: diagonal matrices by their diagonal, large arrays by size and range."""
    if values.size == 1:
        return f"{values.item():.6g}"
    if (values == values.flat[0]).all() and values.size > _MOST:
        return f"{_shape(values)}, all {values.flat[0]:.6g}"
    if values.ndim == 1 and values.size <= _MOST:
        return _line(values)
    if values.ndim == 2 and values.shape[0] == values.shape[1] <= _MOST and (values == np.diag(np.diag(values))).all():
        return f"diagonal {_line(np.diag(values))}"
    if values.ndim == 2 and values.size <= 2 * _MOST:
        return f"[{', '.join(map(_line, values))}]"
    return f"{_shape(values)}, {np.count_nonzero(values)} not zero, from {values.min():.6g} to {values.max():.6g}"


def _line(values):
    return f"[{' '.join(f'{value:.6g}' for value in values)}]"


def _shape(values):
    return " x ".join(map(str, values.shape)) + (" numbers" if values.ndim == 1 else "")


def _range(values):
    low, high = np.nanmin(values), np.nanmax(values)
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"


def _of_rows(rows):
    if not rows.size:
        raise ValueError("describe: the trajectory has no rows")
    failed = np.count_nonzero(has_failed(rows["status"]))
    first = rows.reshape(-1)[has_failed(rows["status"]).reshape(-1).argmax()]
    states = f"{failed} failed, the first: {advice(first['status'])}" if failed else "none failed"
    who = "row" if rows.ndim == 0 else f"trajectory of {rows.shape[-1]} rows"
    who += f" of {rows[..., 0].size} members" if rows.ndim > 1 else ""
    cells = []
    for part in rows.dtype.names[len(ROW_HEAD) :]:
        for i, field in enumerate(rows.dtype[part].base.names):
            shape = (*rows.dtype[part].shape, *rows.dtype[part].base[field].shape)
            cells.append((part if i == 0 else "", field, " x ".join(map(str, shape)) or "1", *_extremes(rows[part][field])))
    return Description(f"{who}, t = {_range(rows['t'])} s, {states}", ("part", "field", "shape", "smallest", "largest"), cells)


def _extremes(values):
    finite = values[np.isfinite(values)]
    return (f"{finite.min():.6g}", f"{finite.max():.6g}") if finite.size else ("nan", "nan")
