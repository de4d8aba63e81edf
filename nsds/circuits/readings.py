"""Voltages, currents, means and switching events of a circuit's trajectory, by the names of its netlist."""

import operator

import numpy as np

from nsds import _checks
from nsds.circuits.record import AMPLIFIER, LARGE, NONE, ZENER
from nsds.circuits.waveforms import K, by_rate, driven_rows, is_closed, place_of_switch, waves
from nsds.model.records import model_of, stored_sparse
from nsds.model.system_kinds import NAMES
from nsds.model.validation import valid
from nsds.results.trajectories import left_limits, of_system, require_rows
from nsds.status import is_event

AT_ONCE = 2.0**-44  # of the time: events no further apart are simultaneous
NOTHING = 1e-12  # of the largest current: smaller currents count as 0
_SEEN = 1e-9  # of the largest voltage: smaller values may be rounding if the rows lie at zeros of the quantity
_DEPENDENT = 1e-13  # relative pivots and singular values: smaller ones are none
_STEPS = 64  # steps to the middle between two events


def voltage(system, trajectory, node, reference="0"):
    """Voltage of a node of a circuit over time (V).

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        Record of `nsds.circuit`.
    trajectory : numpy.ndarray (rows,)
        Result of `nsds.simulate` for it.
    node, reference : str
        Names of the netlist; the voltage of the first relative to the second, which is ground if not given.

    Returns
    -------
    numpy.ndarray (rows,)
        Where something jumps, rows of `nsds.event_driven` come in pairs, before it and after it; a row of a step has what is before it.
        Voltages of a part of the circuit that floats are those against one of its nodes. The first row of a run by steps has lambda of the
        record, which says 0 of devices before any step: what they do begins in the next one.

    Raises
    ------
    TypeError, ValueError
        Not a circuit and its trajectory, or a node that it does not have.

    Examples
    --------
    >>> import nsds
    >>> circuit = nsds.circuit([("V1", "in", 0, 5.0), ("R1", "in", "out", 1e3), ("C1", "out", 0, 1e-6)])
    >>> rows = nsds.simulate(circuit, t_end=1e-3, h=1e-6)
    >>> float(nsds.circuits.voltage(circuit, rows, "out")[-1].round(2))  # 5 (1 - 1 / e)
    3.16
    """
    of = Readings("voltage", system, trajectory)
    return of.voltage(node) - of.voltage(reference)


def current(system, trajectory, element):
    """Current through an element of a circuit, from its first node to its second, over time (A).

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        Record of `nsds.circuit`.
    trajectory : numpy.ndarray (rows,)
        Result of `nsds.simulate` for it.
    element : str
        Name of the netlist; elements of a subcircuit have that of its line before theirs, as ``"X1.D1"``.

    Returns
    -------
    numpy.ndarray (rows,)
        Of a source, the current into its first node. A closed switch takes all of the current of a diode beside it. The first row of a run
        by steps is as of `voltage`.

    Raises
    ------
    TypeError, ValueError
        Not a circuit and its trajectory, or an element that it does not have.

    Examples
    --------
    >>> import nsds
    >>> circuit = nsds.circuit([("V1", "in", 0, 5.0), ("R1", "in", "out", 1e3), ("C1", "out", 0, 1e-6)])
    >>> rows = nsds.simulate(circuit, t_end=1e-3, h=1e-6)
    >>> float(nsds.circuits.current(circuit, rows, "V1")[-1].round(5))
    -0.00184
    """
    return Readings("current", system, trajectory).current(element)


def mean(system, trajectory, reading, start, end):
    """Mean of a voltage or current over time, by its integral, which is a state of the circuit.

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        Record of `nsds.circuit` with the reading among its ``integrals``.
    trajectory : numpy.ndarray (rows,)
        What `nsds.simulate` returned for it.
    reading : str
        Which of them, as ``"v(out)"``.
    start, end : float
        Times of rows (s).

    Returns
    -------
    float
        Mean, as exact as the trajectory.

    Raises
    ------
    TypeError, ValueError
        Not a circuit and its trajectory, an integral that it does not have, times at which there are no rows.

    Examples
    --------
    >>> import nsds
    >>> circuit = nsds.circuit([("V1", "a", 0, "SIN(1 2 50)"), ("R1", "a", 0, 10.0)], integrals=["i(R1)"])
    >>> rows = nsds.simulate(circuit, t_end=0.02, h=1e-4)
    >>> round(nsds.circuits.mean(circuit, rows, "i(R1)", 0.0, 0.02), 12)
    0.1
    """
    # 1. which integral
    of = Readings("mean", system, trajectory)
    x, names = of.trajectory["circuit"]["x"], of.names["integral_names"].item().decode().split()
    known = [name.lower() for name in names]
    if not isinstance(reading, str) or "".join(reading.split()).lower() not in known:
        there = ", ".join(names) or "of which there are none"
        got = f"{_checks.shortened(reading)}{_checks.meant(reading, names)}"
        raise ValueError(f"mean: reading must be one of the circuit's integrals, {there}, got {got}")
    # 2. its values at two rows
    place = known.index("".join(reading.split()).lower()) - len(known)
    values = []
    for name, time in (("start", start), ("end", end)):
        time = _checks.number("mean", name, time)
        at = np.flatnonzero(abs(of.trajectory["t"] - time) <= 1e-12 * max(abs(of.trajectory["t"][-1]), abs(time)))
        if at.size == 0:
            raise ValueError(f"mean: {name} must be the time of a row, got {time}")
        values.append((of.trajectory["t"][at[-1]], x[at[-1], place]))
    if not values[1][0] > values[0][0]:
        raise ValueError(f"mean: end must be after start, got {start} and {end}")
    return float((values[1][1] - values[0][1]) / (values[1][0] - values[0][0]))


def events(system, trajectory):
    """Times at which diodes and op-amps of a circuit change their state.

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        Record of `nsds.circuit`.
    trajectory : numpy.ndarray (rows,)
        What `nsds.simulate` returned for it; under `nsds.event_driven` times are exact, else those of rows.

    Returns
    -------
    numpy.ndarray (events,)
        With the fields t, device, its name, and state, which begins: of a diode 0 open, 1 conducts, 2 breaks down; of an op-amp -1 low,
        0 between, 1 high. Before the first row diodes are open and op-amps between their rails.

    Raises
    ------
    TypeError, ValueError
        Not a circuit and its trajectory.

    Examples
    --------
    >>> import nsds
    >>> circuit = nsds.circuit([("V1", "a", 0, "SIN(0 1 1)"), ("D1", "a", "b", "DI"), ("R1", "b", 0, 10.0), ".model DI D"])
    >>> rows = nsds.simulate(circuit, t_end=0.9, h=0.1, scheme=nsds.event_driven())
    >>> nsds.circuits.events(circuit, rows).tolist()
    [(0.0, 'D1', 1), (0.5, 'D1', 0)]
    """
    # 1. intervals between events, in which each device has one state
    of = Readings("events", system, trajectory)
    rows, segments = of.trajectory, of.segments()
    begin = rows["t"][segments[:, 0]]
    y, lam = (rows["devices"][field].reshape(rows.size, -1) for field in ("y", "lambda"))
    found, names = [], system["names"]["device_names"].item().decode().split()
    # 2. state of each device in each interval
    for number, (row, kind, by_voltage) in enumerate(system["names"]["devices"]):
        if kind == NONE:
            continue
        lower, upper = (np.ravel(system["devices"][field])[row] for field in ("lower", "upper"))
        # an op-amp by its output, a diode by its current, directly or as lambda
        if kind == AMPLIFIER:
            states = _of_amplifier(y[:, row], lam[:, row], lower, upper, segments)
        elif by_voltage:  # y is the current
            least, most, drop = (
                function.reduceat(each, segments.ravel()[:-1])[::2]
                for function, each in ((np.minimum, abs(y[:, row])), (np.maximum, abs(y[:, row])), (np.maximum, lam[:, row]))
            )
            is_unclear = (most <= _SEEN * abs(y).max()) & (np.diff(segments)[:, 0] > 1)
            flows = np.where(is_unclear, of.flows_between(is_unclear & (least > 0.0), 0, row, segments), most > NOTHING * most.max())
            states = flows * np.where(drop < upper, 1, 2)
        else:
            states = of.conducts(row, segments)
            if kind == ZENER:
                states = np.where(of.conducts(row + 1, segments), 2, states)
        # 3. a diode beside a closed switch counts as open; an event where the state differs from that before
        closed = of.is_closed(names[number], begin, False)
        states = states if closed is None else np.where(closed, 0, states)
        found += [(begin[k], names[number], states[k]) for k in np.flatnonzero(np.diff(states, prepend=0))]
    found.sort(key=operator.itemgetter(0))  # those of one time stay in the order of the netlist
    return np.array(found, [("t", "<f8"), ("device", f"<U{max(map(len, names), default=1)}"), ("state", "<i8")])


def _of_amplifier(y, lam, lower, upper, segments):
    """States of an op-amp; between its rails y is 0, and lambda may start or end at a rail."""
    edge, first = NOTHING * (upper - lower), lam[segments[:, 0]]
    is_between = (y == 0.0) | ((lam > lower + edge) & (lam < upper - edge))
    return np.where(np.logical_or.reduceat(is_between, segments.ravel()[:-1])[::2], 0, np.where(first <= lower + edge, -1, 1))


def _columns(weights, n):
    """Stored weights of n quantities (known, n); of large circuits sparse."""
    return stored_sparse(weights, n).tocsc() if weights.dtype.names else weights.T


def _solver_of(matrix):
    """Solution as a function of the right-hand side: by sparse factors if it is large, by the pseudo-inverse if rows may be dependent."""
    from scipy.sparse.linalg import splu

    if matrix.shape[0] > LARGE:
        try:
            factors = splu(matrix)
            pivots = abs(factors.U.diagonal())
        except RuntimeError:  # singular
            pivots = np.zeros(1)
        if pivots.min() > _DEPENDENT * pivots.max():
            return factors.solve
    inverse = np.linalg.pinv(matrix.toarray(), rcond=_DEPENDENT)
    return lambda right: inverse @ right


def follows_rate(record, number):
    """Whether a state, an output or a reading of one record of a circuit depends on the rate of its source of that number."""
    names, n, m = record["names"], record["circuit"]["x"].size, record["devices"]["lambda"].size
    if any("z" in record.dtype[part].names and by_rate(record[part]["z"])[number] for part in ("circuit", "devices")):
        return True
    k, n_elements = int(names["z"][K]), len(names["element_names"].item().split())
    return bool(abs(_columns(names["currents"], n_elements)[[n + m + k + number]]).max() > 0.0)


def _dense_column(weights, place):
    return weights[:, place] if isinstance(weights, np.ndarray) else weights[:, [place]].toarray()[:, 0]


class Readings:
    """A trajectory with the maps to its voltages and currents."""

    def __init__(self, owner, system, trajectory):
        # 1. the record of a circuit, and rows with the fields that are needed
        self.owner = owner
        system = valid(owner, system)
        if ("names", NAMES) not in [line[:2] for line in model_of(system)] or np.shape(system) != ():
            raise ValueError(f"{owner}: system must be one record of nsds.circuit, with the part 'names'")
        self.system, self.names = system, system["names"]
        self.trajectory = require_rows(owner, of_system(owner, system, trajectory), (1,))
        for part, field in (("circuit", "x"), ("devices", "lambda")):
            if field not in (self.trajectory.dtype[part].names or () if part in self.trajectory.dtype.names else ()):
                raise ValueError(f"{owner}: {part}.{field} was not recorded, from which voltages and currents follow")
        # 2. names, and the known quantities at each row
        self.node_names, self.element_names = (self.names[f"{what}_names"].item().decode().split() for what in ("node", "element"))
        # weights of the known quantities in voltages and currents (known, quantities)
        self.voltages = _columns(self.names["voltages"], len(self.node_names))
        self.currents = _columns(self.names["currents"], len(self.element_names))
        n = self.trajectory["circuit"]["x"].shape[1]
        self.middles = {}  # of intervals between events
        self.of_lambda = slice(n, n + self.trajectory["devices"]["lambda"][0].size)
        self.is_left = left_limits(self.trajectory)
        self.known = self.known_at(self.is_left)

    def known_at(self, is_left):
        """Known quantities that determine voltages and currents, at each row (rows, known); is_left: sources that step, before the step."""
        rows, z = self.trajectory, self.names["z"]
        u = np.zeros((2, rows.size, int(z[K])))
        if u.size:
            waves(np.ascontiguousarray(rows["t"]), np.array(np.broadcast_to(is_left, rows.shape)), z, u[0], u[1])
        lam = rows["devices"]["lambda"].reshape(rows.size, -1)
        return np.hstack([rows["circuit"]["x"], lam, u[0], u[1], np.ones((rows.size, 1))])

    def segments(self):
        """(first row, row after the last one) of intervals in which each device has one state: between events; by steps each row."""
        # 1. by steps: rows
        rows = self.trajectory
        at = np.flatnonzero(is_event(rows["status"]))
        if at.size == 0:
            return np.stack([np.arange(rows.size), np.arange(rows.size) + 1], axis=1)
        # 2. rows of simultaneous events form a group; an interval runs from the last row of one to the first of the next
        t = rows["t"][at]
        groups = np.split(at, np.flatnonzero(np.diff(t) > AT_ONCE * abs(t[1:])) + 1)  # those of one time
        starts = [group[-1] for group in groups]
        ends = [group[0] + 1 if group.size > 1 else group[0] for group in groups[1:]] + [rows.size]
        if groups[0][0] > 0:  # the beginning of the run is not there
            starts, ends = [0, *starts], [groups[0][0] + int(groups[0].size > 1), *ends]
        return np.stack([starts, ends], axis=1)

    def conducts(self, row, segments):
        """Whether lambda of a row, a current, flows in an interval: at one of its rows, or between them if these are at zeros of it."""
        y, lam = (self.trajectory["devices"][field].reshape(self.trajectory.size, -1) for field in ("y", "lambda"))
        most, off = (np.maximum.reduceat(each, segments.ravel()[:-1])[::2] for each in (lam[:, row], abs(y[:, row])))
        result = most > np.maximum(NOTHING * abs(lam[:, row]).max(), off)
        return (result | self.flows_between(~result & (off == 0.0), 1, row, segments)).astype(int)

    def flows_between(self, candidates, which, row, segments):
        """Whether y (which = 0) or lambda (1) of a row is nonzero in the middle of the intervals between events."""
        result = np.zeros(len(segments), bool)
        for k in np.flatnonzero(candidates & (np.diff(segments)[:, 0] > 1)):  # by steps each row is a stretch
            key = tuple(segments[k].tolist())
            if key not in self.middles:
                self.middles[key] = self._in_the_middle(segments[k])
            found, largest = self.middles[key]
            result[k] = abs(found[which, row]) > _SEEN * largest
        return result

    def _in_the_middle(self, segment):
        """(y and lambda in the middle of an interval, the largest), with rows active or at a bound as at its ends, by implicit Euler."""
        from scipy.sparse import block_array, csr_array, eye_array

        # 1. active rows, by y = 0 at both ends
        rows, circuit, devices = self.trajectory[segment[0] : segment[1]], self.system["circuit"], self.system["devices"]
        y, lam = (rows["devices"][field].reshape(rows.size, -1)[[0, -1]] for field in ("y", "lambda"))
        held, x, b, e = (y == 0.0).all(axis=0), rows["circuit"]["x"][0].copy(), np.zeros_like(rows["circuit"]["x"][0]), np.zeros(y.shape[1])
        stored = (circuit["A"], x.size), (devices["B"], y.shape[1]), (devices["C"], x.size), (devices["D"], y.shape[1])
        A, B, C, D = (csr_array(stored_sparse(each, n) if each.dtype.names else each) for each, n in stored)
        # 2. one matrix for all steps
        h, lam = (rows["t"][-1] - rows["t"][0]) / (2 * _STEPS), np.where(held, 0.0, lam[0])
        solve = _solver_of(block_array([[eye_array(x.size) - h * A, -h * B[:, held]], [C[held], D[held][:, held]]], format="csc"))
        # 3. steps to the middle
        for k in range(_STEPS):
            t = rows["t"][0] + (k + 1) * h
            if "z" in circuit.dtype.names:
                driven_rows(t, circuit["z"], b)
            else:
                b = circuit["b"]
            driven_rows(t, devices["z"], e)
            lam[held] = 0.0
            solved = solve(np.append(x + h * (b + B @ lam), -(e + D @ lam)[held]))
            x, lam[held] = solved[: x.size], solved[x.size :]
        found = np.array([C @ x + D @ lam + e, lam])
        return found, abs(found).max()

    def voltage(self, node):
        """Voltage of a node relative to ground, or to a node of its part of the circuit."""
        place = self._place("node", node)
        self._require_readable("nodes", place, f"voltage of node '{node}'")
        return self.known @ _dense_column(self.voltages, place)

    def current(self, element):
        """Current through an element; a closed switch takes that of a diode beside it."""
        place = self._place("element", element)
        self._require_readable("elements", place, f"current of '{element}'")
        result, is_diode = self.known @ _dense_column(self.currents, place), self.names["by_switch"][place][1] == 1
        closed = self.is_closed(element, self.trajectory["t"], self.is_left)
        return result if closed is None else np.where(closed == is_diode, 0.0, result)

    def require_all_readable(self):
        """Refuses a trajectory that does not determine all voltages and currents."""
        for what, known in (("nodes", self.node_names), ("elements", self.element_names)):
            for place, name in enumerate(known):
                self._require_readable(what, place, f"{'voltage' if what == 'nodes' else 'current'} of '{name}'")

    def _require_readable(self, what, place, reading):
        if self.names[f"{what}_by_rate"][place]:
            raise ValueError(f"{self.owner}: the {reading} depends on how fast the output of an op-amp changes, which rows do not tell")

    def voltages_across(self, known):
        """Voltages of all elements, from their first nodes to their second, for rows of known quantities (rows, elements)."""
        first, second = self.names["terminals"].T
        return known @ (self.voltages[:, first] - self.voltages[:, second])

    def distinct_elements(self):
        """(index, name) of all elements except switches beside diodes, with which they share a current."""
        return [
            (k, name) for k, name in enumerate(self.element_names) if self.names["by_switch"][k][0] < 0 or self.names["by_switch"][k][1]
        ]

    def is_closed(self, element, times, is_left):
        """Whether the switch of an element, or beside a diode, is closed at each time, before or after a step; None for other elements."""
        switch, z = self.names["by_switch"][self._place("element", element)][0], self.names["z"]
        if switch < 0:
            return None
        sides = np.broadcast_to(is_left, times.shape)
        s = place_of_switch(switch, z)
        return np.array([is_closed(t, left, s, z) for t, left in zip(times.tolist(), sides.tolist(), strict=True)])

    def _place(self, what, name):
        if not isinstance(name, str) and not (what == "node" and isinstance(name, int)):
            raise TypeError(f"{self.owner}: {what} must be the name of one, got {_checks.shortened(name)}")
        known = self.node_names if what == "node" else self.element_names
        lowered = [each.lower() for each in known]
        if str(name).lower() not in lowered:
            raise ValueError(f"{self.owner}: there is no {what} '{name}'; there are: {', '.join(known)}")
        return lowered.index(str(name).lower())
