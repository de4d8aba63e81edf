"""Sizes of a prepared model: storage of its matrices and their fill, the kind of solve, memory, and multiplications of a step."""

import numpy as np

from nsds.maths import cholesky, sparse_lu
from nsds.model.layout import ABSENT, DENSE, DIAGONAL, SPARSE, state_fields
from nsds.model.records import memory
from nsds.schemes.linear_algebra import FRONTS, PLANNED
from nsds.schemes.run.preparation import prepare_run

_KINDS = {
    DIAGONAL: "diagonal",
    DENSE: "dense inverse",
    SPARSE: "sparse triangular factors",
    FRONTS: "sparse Cholesky factors in dense blocks",
    PLANNED: "sparse LU factors",
}
_STATES = {"q", "v", "x", "u"}


def costs_of(owner, system, h, scheme, solver):
    """Rows (part, what, field, value) of a table: what a step h of a system costs, of one member."""
    run, options = prepare_run(owner, system, h, scheme, solver, False)
    p = run.prepared
    rows, motion = [], 0
    # 1. iteration matrices, and products with what is stored
    for name, kind, count, n, entries, stored in _matrices(p):
        of_all = f"{count} of {n} rows" if count > 1 else f"{n} rows"
        fill = f", {entries / stored:.3g} times those of the record" if stored else ""
        rows.append((name, "iteration matrix", _KINDS[kind], f"{of_all}, {_count(entries)} entries{fill}"))
        motion += count * (entries + stored)
    # 2. one-step problem, or that of modes
    what, size, entries = _problem(p)
    rows.append(("", "one-step problem", what, size))
    # 3. sums
    n_bytes = 8 * (memory(run.records).shape[1] + p.work.shape[1] + p.iwork.shape[1])
    rows.append(("", "memory", "of a member", _bytes(n_bytes)))
    if motion:
        rows.append(("", "multiplications", "of a free motion", _count(motion)))
    if entries:
        rows.append(("", "multiplications", "of an iteration", _count(entries)))
    head = ("step", f"{options['scheme'].item().decode()}, h = {h:g}", "states", _count(_number_of_states(run.records)))
    return [head, *rows]


def _number_of_states(records):
    total = 0
    for part, fields in state_fields(records[0]):
        base = records.dtype[part].base
        sizes = (int(np.prod(base[field].shape, dtype=int)) for field in fields if field in _STATES)
        total += int(np.prod(records.dtype[part].shape, dtype=int)) * sum(sizes)
    return total


def _tables(tables):
    """The tables of a step, and those within them, from outside."""
    yield tables
    for value in tables:
        if hasattr(value, "_fields"):
            yield from _tables(value)


def _first(tables, name):
    """The first table of this name that has rows; None where there is none."""
    return next((getattr(each, name) for each in _tables(tables) if len(getattr(each, name, ()))), None)


def _matrices(p):
    """(part, kind, elements, rows, entries of what solves it, largest number of entries of a matrix of the record) of each part."""
    parts, bodies, operators = (_first(p.tables, name) for name in ("parts", "bodies", "operators"))
    if parts is None or "n" not in parts.dtype.names:
        return
    for k, (name, part) in enumerate(zip(getattr(p.layout, "part_names", ()), parts, strict=False)):
        n, count, of_part = int(part["n"]), int(part["count"]), None
        if operators is not None and "n_lower" in operators.dtype.names:
            of_part = operators[k]
        elif bodies is not None and "n_lower" in bodies.dtype.names and "body" in parts.dtype.names and part["body"] < bodies.size:
            of_part = bodies[part["body"]]
            n = int(of_part["n"])
        if of_part is not None:
            stored = sum(_stored(part, field, int(part["n"])) for field in ("M", "K", "C", "A") if field in part.dtype.names)
            yield name, int(of_part["kind"]), count, n, _entries(of_part, n, p.iwork[0]), stored


def _stored(part, field, n):
    """Entries of a matrix of a part in the record."""
    if part[field] == ABSENT:
        return 0
    kind = int(part[field + "_kind"]) if field + "_kind" in part.dtype.names else DENSE
    return n if kind == DIAGONAL else n * n if kind == DENSE else int(part[field + "_nnz"])


def _entries(of_part, n, iwork):
    """Entries of a stored inverse, or of factors, of n rows."""
    kind, index = int(of_part["kind"]), iwork[int(of_part["index"]) :]
    if kind in (DIAGONAL, DENSE):
        return n if kind == DIAGONAL else n * n
    if kind == FRONTS:
        return cholesky.number_of_entries(n, index)
    return sparse_lu.number_of_entries(index) if kind == PLANNED else int(of_part["n_lower"] + of_part["n_upper"]) + n


def _problem(p):
    """(kind of the one-step problem, its size as text, entries that an iteration multiplies with)."""
    mixed, bordered, flow, row = (_first(p.tables, name) for name in ("mixed", "bordered", "flow", "W_row"))
    constraints, bodies = _first(p.tables, "constraints"), _plan_of_bodies(p.tables)
    n_rows = len(constraints) if constraints is not None else len(row) - 1 if row is not None else 0
    if mixed is not None:
        index = p.iwork[0, int(mixed["index"][0]) :]
        factors = sparse_lu.number_of_entries(index)
        return "mixed: states and multipliers together, sparse factors", f"{n_rows} rows, {_count(factors)} entries", factors
    if bodies is not None and bodies["n_contacts"] + bodies["n_blocks"] > 0:
        size = f"room for {_count(int(bodies['n_contacts']))} contacts, {bodies['n_blocks']} other blocks"
        return f"blocks: W up to {bodies['few']} of contacts, {bodies['limit']} with others, else sweeps", size, 0
    if flow is not None and isinstance(flow, np.ndarray) and "matrix" in flow.dtype.names:
        return "modes: dense matrix of active rows", f"{n_rows} rows, {_count(n_rows**2)} entries", n_rows**2
    if row is None or not n_rows:
        return "none", "0 rows", 0
    entries = int(row[n_rows]) if len(row) > n_rows else 0
    what = "bordered: states and multipliers together" if bordered is not None else "matrix W of the rows"
    return what, f"{n_rows} rows, {_count(entries)} entries, {100 * entries / n_rows**2:.3g} % of all", entries


def _plan_of_bodies(tables):
    """The plan of the problem of rigid bodies; None where there is none."""
    plans = (getattr(each, "plan", None) for each in _tables(tables))
    return next((plan[0] for plan in plans if plan is not None and "few" in plan.dtype.names), None)


def _count(number):
    return str(number) if number < 10**6 else f"{number:.3g}"


def _bytes(number):
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"
