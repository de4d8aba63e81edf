"""Warnings of a run: about its start, bodies born into others, shapes that may have passed others, intervals without event detection."""

import warnings
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.circuits.waveforms import edges_of, rates_at_once
from nsds.collision import WORLD
from nsds.collision.kinds import NAMES, thickness_of
from nsds.model.laws import LAWS, is_force, rows_of_contact
from nsds.model.layout import ABSENT
from nsds.model.records import are_circuits, model_of
from nsds.model.system_kinds import collisions_of, split
from nsds.schemes.problem.branches import places_of_open
from nsds.schemes.problem.rows import VELOCITY
from nsds.schemes.problem.tables import interaction_of, leaves
from nsds.schemes.rigid.tables import EQUALITY
from nsds.schemes.run.recording import ROW
from nsds.status import TIME_STEPPED, advice, is_event

_VIOLATION = 1e-6  # in units of y: smaller values are rounding, or the residual of an earlier run
_OF_A_PULSE = 1e-3  # relative error of a pulse: that of time stepping anyway
_MOST_EDGES = 1000  # of a source that are checked
_ON_A_STEP = 1e-6  # of a step: an edge so near before its end is at its end
_OVERLAP = 0.01  # of the least extent of the smaller shape


class LookedAt(NamedTuple):
    """Data for warnings, found once for all runs: bilateral constraints, see `_bilateral`; entries of iwork, see `places_of_open`.

    has_sources: whether the system is a circuit from a netlist.
    """

    bilateral: list
    open_places: np.ndarray
    has_sources: bool


def looked_at(records, prepared):
    """`LookedAt` of records, and of the tables of their scheme."""
    return LookedAt(_bilateral(prepared.layout), places_of_open(prepared.tables), are_circuits(records))


def warn_of_violations(bilateral, trajectory):
    """Warn of the most violated bilateral constraint at the start: the first step corrects velocities, but mostly not positions.

    Only saved rows (members, rows) of a run are checked, and none that continue an earlier run.
    """
    worst = (_VIOLATION,)
    for name, entries, m in bilateral:
        # rows that start a run have the step 0; later ones contain the drift of an earlier run
        if name in trajectory.dtype.names and "y" in trajectory.dtype[name].base.names:
            y = trajectory[name]["y"][:, 0].reshape(trajectory.shape[0], -1)[:, entries] * (trajectory["step"][:, :1] == 0)
            member, at = np.unravel_index(abs(y).argmax(), y.shape)
            if abs(y[member, at]) > worst[0]:
                worst = abs(y[member, at]), y[member, at], name, member, *divmod(int(entries[at]), m)
    if len(worst) > 1:
        _, y, name, member, element, row = worst
        where = f"{name}[{element}]" if trajectory.dtype[name].shape else name
        who = _checks.of_member(member, trajectory.shape[0])
        warnings.warn(
            f"the bilateral constraint '{where}', row {row}{who}, is violated at the start, y = {y:.3g}; "
            f"nsds.consistent(system) moves the system onto its constraints",
            RuntimeWarning, stacklevel=4,
        )  # fmt: skip


def warn_of_hand_overs(rows):
    """Warn of intervals of rows (members, rows) that event-driven steps handed over to time stepping: how many, the first, and why."""
    stepped = is_event(rows["status"]) & (rows["status"] & TIME_STEPPED != 0)
    if stepped.any():
        member, row = np.unravel_index(stepped.argmax(), stepped.shape)
        who = _checks.of_member(member, rows.shape[0])
        warnings.warn(
            f"event_driven: {np.count_nonzero(stepped)} interval(s) were handed over to time stepping, the first{who} up to "
            f"t = {rows['t'][member, row]:.9g}: {advice(int(rows['status'][member, row]))}; hybrid=False ends the run there instead",
            RuntimeWarning, stacklevel=4,
        )  # fmt: skip


def warn_of_edges(records, h, t_end):
    """Warn of sources of a circuit with edges inside steps of h, which act as at the start of the step: by the error of their pulses.

    What follows an edge by its rate, capacitors without a resistor, is lost where the rate is that at the end of a step, and no mean.
    """
    # 1. each pulse against its length in whole steps; edges whose rate is not seen
    worst, t, unseen = (_OF_A_PULSE, 0.0, 0.0), float(records["t"][0]), np.inf
    numbers = [records["names"]["z"], *(records[part]["z"] for part in ("circuit", "devices") if "z" in records[part].dtype.names)]
    ends = np.cumsum([each.shape[1] for each in numbers])[:-1]
    for z, *rows in (np.split(each, ends) for each in {each.tobytes(): each for each in np.hstack(numbers)}.values()):
        for source, edges in edges_of(z, t, t_end, h, _MOST_EDGES):
            pulses = np.diff(edges)
            taken = np.diff(np.floor((edges - t) / h + _ON_A_STEP)) * h  # a step has what is at its end
            off = abs(taken - pulses) / pulses
            k = off.argmax() if off.size else 0
            worst = (off[k], pulses[k], taken[k]) if off.size and off[k] > worst[0] else worst
            if edges.size and any(rates_at_once(each)[source] for each in rows):
                unseen = min(unseen, edges[0])
    # 2. duty ratios, and charges
    if worst[1] > 0.0:
        off, pulse, taken = worst
        warnings.warn(
            f"steps of {h:g} s do not end at the edges of a source: {pulse:.6g} s between two of them is {taken:.6g} s, off by "
            f"{100 * off:.2g} %, and duty ratios with it; take a step that divides these times, a shorter one, or nsds.event_driven",
            RuntimeWarning, stacklevel=4,
        )  # fmt: skip
    if unseen < np.inf:
        warnings.warn(
            f"steps of {h:g} s do not see how fast a source changes at its edge at t = {unseen:.6g}, which is shorter, and capacitors or "
            "inductors follow it without a resistor: their charges or fluxes will be wrong; take theta=1, steps shorter than the edge, "
            "nsds.event_driven, or a resistor in the loop",
            RuntimeWarning, stacklevel=4,
        )  # fmt: skip


def warn_of_open_starts(records, prepared, places):
    """Warn of a relay that may begin at either of its bounds, between which lambda of the record does not choose; the note is cleared."""
    if not places.size or prepared.iwork.take(places, axis=1).max() <= 0:
        return

    # 1. the first member and row, which is cleared for the next run
    noted = prepared.iwork[:, places].max(axis=1)
    prepared.iwork[:, places] = 0
    member = int((noted > 0).argmax())
    row, is_high = divmod(int(noted[member]) - 1, 2)
    constraints = next(table for table in leaves(prepared.tables) if {"lam", "entry"} <= set(table.dtype.names or ()))
    name, at = interaction_of(records, int(constraints["lam"][row]))
    what = f"row {at} of interaction '{name}'"
    # 2. its name: of a circuit that of the device
    if are_circuits(records):
        what = records["names"]["row_names"][member].decode().split()[at]
    who = _checks.of_member(member, records.size)
    warnings.warn(
        f"{what}{who} may begin at either bound of lambda, between which lambda of the record lies: it begins at the "
        f"{'upper' if is_high else 'lower'} one; put the one that is meant into the record",
        RuntimeWarning, stacklevel=4,
    )  # fmt: skip


def _bilateral(layout):
    """(interaction, which of its rows are bilateral constraints of positions, rows of an element), of each that has some."""
    found = {}
    if getattr(layout, "owners", ()):
        c = layout.constraints
        for i in np.flatnonzero((c["bilateral"] != 0) & (c["level"] == VELOCITY)):
            name, element, row = layout.owners[i]
            found.setdefault(name, []).append(element * layout.sizes[name] + row)
        return [(name, np.array(entries), layout.sizes[name]) for name, entries in found.items()]
    for name, it in zip(getattr(layout, "interaction_names", ()), getattr(layout, "interactions", ()), strict=True):
        if it["law"] == EQUALITY and it["dofs"] == ABSENT:
            found[name] = found.get(name, (0,))[0] + int(it["m"]), int(it["m"])
    return [(name, np.arange(count), m) for name, (count, m) in found.items()]


def warn_of_penetration(records, given=None):
    """Warn of contacts and stops of interactions whose gap is negative at the start: the deepest of each interaction.

    given: the records before a scheme opened the run, which moves penetrating bodies out of their contacts: then of those moved. Records
    that continue an earlier run are not reported.
    """
    starts = (records["step"] == 0).nonzero()[0]
    if not starts.size:
        return
    # 1. systems that the opening has moved
    for name, *_ in split(model_of(records))[0] if given is not None else ():
        if "q" not in records.dtype[name].base.names:
            continue
        moved = abs(records[name]["q"] - given[name]["q"]).reshape(records.size, -1, records.dtype[name].base["q"].shape[0])
        moved[records["step"] != 0] = 0.0
        if moved.max() > _VIOLATION:
            member, element, entry = np.unravel_index(moved.argmax(), moved.shape)
            where = f"{name}[{element}]" if records.dtype[name].shape else name
            who = _checks.of_member(member, records.size)
            warnings.warn(
                f"'{where}'{who} begins in penetration: its contacts have moved it out before the first row, q[{entry}] by "
                f"{moved.max():.3g}; nsds.consistent(system) moves the system onto its constraints",
                UserWarning, stacklevel=5,
            )  # fmt: skip
    # 2. contacts of interactions
    for name, kind, law, *_ in split(model_of(records))[1]:
        fields = records.dtype[name].base
        if not LAWS[law].is_one_sided or "ydot" not in fields.names or is_force(law, kind, "D" in fields.names):
            continue
        part = (records[name] if starts.size == records.size else records[name][starts]).reshape(starts.size, -1)
        each = rows_of_contact(law, fields)
        gap = part["y"].reshape(*part.shape, -1)[..., ::each]
        if "enabled" in fields.names:
            gap = np.where(part["enabled"][..., None] != 0, gap, 0.0)
        count = np.count_nonzero(gap < -_VIOLATION)
        if count:
            member, element, contact = np.unravel_index(gap.argmin(), gap.shape)
            where = f"{name}[{element}]" if records.dtype[name].shape else name
            who = f" of member {starts[member]}" if records.size > 1 else ""
            begin = f"{count} contacts of '{name}' begin" if count > 1 else f"the contact '{name}' begins"
            warnings.warn(
                f"{begin} in penetration, the deepest is '{where}', row {contact * each}{who}, with the gap y = {gap.min():.3g}; it stays "
                f"so unless something pulls it apart or the scheme does; nsds.consistent(system) moves it onto its constraints",
                UserWarning, stacklevel=5,
            )  # fmt: skip


def warn_of_overlaps(records, prepared):
    """Warn of detected contacts of rigid bodies that overlap at the start by more than a part of the smaller shape.

    Records that continue an earlier run are not reported.
    """
    for name, *_ in collisions_of(model_of(records)):
        worst = None
        # the deepest contact of all members
        for m in np.flatnonzero(records["step"] == 0):
            part = records[name][m]
            a, b, depth = part["a"][: part["n"]], part["b"][: part["n"]], -part["y"][: part["n"]]
            thickness = thickness_of(part)
            deep = depth > _OVERLAP * np.minimum(thickness[a], thickness[b])
            if deep.any() and (worst is None or depth[deep].max() > worst[0]):
                i = np.argmax(np.where(deep, depth, 0.0))
                worst = depth[i], np.count_nonzero(deep), m, [_shape_named(part, s, prepared.layout) for s in (a[i], b[i])]
        if worst is not None:
            depth, count, m, (one, other) = worst
            who = f" of member {m}" if records.size > 1 else ""
            warnings.warn(
                f"collisions '{name}'{who}: {count} {'contacts overlap' if count > 1 else 'contact overlaps'} at the start by more than "
                f"{_OVERLAP:.0%} of the smaller shape, the deepest by {depth:.3g} m: {one} and {other}; what overlaps stays so unless "
                f"something pulls it apart or the scheme pushes it out, as nsds.rattle() does",
                UserWarning, stacklevel=5,
            )  # fmt: skip


def warn_of_passing(records, prepared):
    """Warn of the shape most likely to have passed others undetected, if a user's function filters contacts; the note is cleared."""
    collisions = getattr(prepared.layout, "collisions", ())
    for c, (name, *_) in zip(collisions, collisions_of(model_of(records)) if len(collisions) else (), strict=False):
        noted = prepared.work[:, c["passed"] : c["passed"] + 3]
        m = int(noted[:, 0].argmax())
        ratio, shape, speed = noted[m].tolist()
        noted[:] = 0.0
        if ratio > 1.0:
            who, shape = f" of member {m}" if records.size > 1 else "", _shape_named(records[name][m], int(shape), prepared.layout)
            warnings.warn(
                f"collisions '{name}'{who}: {shape} has moved at {speed:.3g} m/s, in a step {ratio:.3g} times as far as is safe beside the "
                f"thinnest shape; as on_contact decides what touches, no contact is looked for on the way, and it may have passed others: "
                f"take a smaller step",
                UserWarning, stacklevel=5,
            )  # fmt: skip


class Births:
    """Bodies that are born inside others, found from the rows of a run: the deepest overlap of each part of collisions."""

    def __init__(self, records, prepared, dtype):
        self._layout, self._records, self._seen, self._worst = prepared.layout, records, np.ones(records.size, np.int64), {}
        bodies = prepared.layout.part_names if hasattr(prepared.layout, "general_pairs") else ()
        self._first = {name: first for name, first in bodies if name in dtype.names and "alive" in (dtype[name].base.names or ())}
        self._alive = {name: np.stack([records[name]["alive"].reshape(records.size, -1) != 0] * 2, axis=1) for name in self._first}
        found = [line[0] for line in collisions_of(model_of(records))] if self._first else []
        self._parts = [name for name in found if name in dtype.names and {"a", "b", "n", "y"} <= set(dtype[name].names)]

    def note(self, recorder):
        """Check the rows since the last call. Contacts of bodies born at one row are in the next."""
        for m in range(self._seen.size if self._parts else 0):
            rows = recorder.rows[m, self._seen[m] - recorder.first : recorder.reached[m, ROW] - recorder.first]
            if rows.size == 0:
                continue
            self._seen[m] += rows.size
            for name, first in self._first.items():
                flags = np.concatenate([self._alive[name][m], rows[name]["alive"].reshape(rows.size, -1) != 0])
                self._alive[name][m] = flags[-2:]
                born = flags[1:-1] & ~flags[:-2]
                for k in np.flatnonzero(born.any(axis=1)):
                    self._compare(m, rows[k], first + np.flatnonzero(born[k]))

    def _compare(self, m, row, born):
        """Overlaps of bodies that were born before a row with others."""
        for name in self._parts:
            contacts, part = row[name], self._records[name][m]
            a, b, depth = contacts["a"][: contacts["n"]], contacts["b"][: contacts["n"]], -contacts["y"][: contacts["n"]]
            thickness, body = thickness_of(part), part["shape_body"]
            deep = depth > _OVERLAP * np.minimum(thickness[a], thickness[b])
            deep &= np.isin(body[a], born) | np.isin(body[b], born)
            if deep.any():
                i = np.argmax(np.where(deep, depth, 0.0))
                who = f" of member {m}" if self._records.size > 1 else ""
                pair = " and ".join(_shape_named(part, s, self._layout) for s in (a[i], b[i]))
                count, worst = self._worst.get(name, (0, (0.0,)))
                self._worst[name] = count + np.count_nonzero(deep), max(worst, (depth[i], float(row["t"]), who, pair))

    def warn(self):
        """Warn of the births found."""
        for name, (count, (depth, t, who, pair)) in self._worst.items():
            found = f"{count} {'contacts overlap' if count > 1 else 'contact overlaps'}"
            warnings.warn(
                f"collisions '{name}': bodies are born inside others: {found} by more than {_OVERLAP:.0%} of the smaller shape, the "
                f"deepest{who} by {depth:.3g} m at t = {t:.6g}: {pair}; what overlaps stays so unless something "
                f"pulls it apart or the scheme pushes it out, as nsds.rattle() does",
                UserWarning, stacklevel=5,
            )  # fmt: skip


def _shape_named(part, s, layout):
    """Kind, number and body of a shape, as text."""
    body, kind = part["shape_body"][s], NAMES[part["shape_kind"][s]]
    if body == WORLD:
        return f"{kind} {s} of the world"
    owner, first = [(name, first) for name, first in layout.part_names if first <= body][-1]
    return f"{kind} {s} of {owner}[{body - first}]"
