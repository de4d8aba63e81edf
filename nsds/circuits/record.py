"""A circuit as a record: a first-order system, and its diodes, switches and op-amps as rows of a box law."""

import contextlib
import gc
import itertools
import math
import re

import numpy as np

from nsds import _checks
from nsds.circuits.equations import by_name, reduced
from nsds.circuits.netlist import read
from nsds.circuits.waveforms import driven_bounds, driven_rows, packed
from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import relay
from nsds.model.records import pack
from nsds.model.relations_first_order import first_order_linear_relation
from nsds.model.systems import compressed_rows

_OWNER = "circuit"
IMPULSIVE = (
    "the source steps, and capacitors or inductors follow it without a resistor, which would need an impulse; give it a rise time, or put "
    "a resistor into the loop"
)
LARGE = 120  # states and rows, above which matrices are stored in sparse form
_READING = re.compile(r"([vi])\s*\(\s*([^\s,()]+)\s*(?:,\s*([^\s,()]+)\s*)?\)", re.IGNORECASE)
# Kinds of devices, by which of their rows tell that they conduct; see `nsds.circuits.readings`.
DIODE, ZENER, AMPLIFIER, NONE = range(4)


def circuit(netlist, params=None, *, integrals=(), t=0.0):
    """Record of a circuit with ideal components, from a netlist in a subset of SPICE.

    Parameters
    ----------
    netlist : str, path, or list of str and tuple
        A text whose first line is a title, or the file with it; or a list of lines without a title, in which a tuple such as
        ``("R1", "a", "b", 1e3)`` stands for a line.
    params : dict of numbers, optional
        In place of the values that ``.param`` gives, by name.
    integrals : sequence of str, optional
        Voltages and currents whose integrals over time from the start are states of their own, as ``"v(out)"``, ``"v(p,n)"``, ``"i(L1)"``:
        see `nsds.circuits.mean`.
    t : float
        Time at the start (s).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``circuit`` (states: voltages of capacitors in V, currents of inductors in A, then the integrals),
        ``devices`` (y and lambda of diodes, switches and op-amps, all in V: currents are multiplied by one resistance) and ``names``.
        `nsds.circuits.voltage` and `nsds.circuits.current` read a trajectory by names. Records of one netlist with other numbers make an
        ensemble, ``numpy.stack``.

    Raises
    ------
    TypeError, ValueError
        What cannot be read, or is not supported, with its line and name; loops of voltage sources, cut sets of current sources, values at
        the start that contradict each other, and other circuits that do not determine their voltages and currents.

    Notes
    -----
    Read are R, C, L (``IC=``), K (1 allowed), V and I (DC, SIN, PULSE, PWL, also with ``td=``, ``r=0`` or REPEAT FOREVER, EXP with all
    six numbers, SFFM, and AM of HSPICE: amplitude, offset, signal, carrier, delay), E, G, F, H (linear), B, E and G with ``V=``, ``I=`` or
    ``VALUE=`` and POLY where they are sums of V(node), V(node,node) and I(element), E with a TABLE of two corners (op-amp with rails),
    D with ``.model D(Ron Roff Vfwd Vrev)``, S with ``.model SW(Ron Roff Vt Vh)``, W with ``.model CSW(Ron Roff It Ih)``, ``.subckt``
    and X with parameters, ``.global``, ``.param``, ``.func``, ``.ic`` and ``.tran ... UIC``. What a subcircuit defines inside is seen there
    only. ``Rser=`` of C, L and V is a resistor of its own, ``C1:Rser``.
    Nodes that ``.ic`` does not name are at 0 for capacitors at a node that it names. Without effect are AC values of sources,
    ``.options``, ``.temp``, ``.control`` and lines about output or other analyses.

    ``Ron`` is 0 and ``Roff`` infinite unless given, and steps of a PULSE with tr = tf = 0 are steps. Controls of switches must be sums of
    sources; with ``Vh`` they close above Vt + Vh, open below Vt - Vh, and keep their state in between, at the start that of ON or OFF (the
    default) at the end of the line. Numbers have the factors of SPICE, T G Meg k m mil u n p f, with µ for u, in any case and before any
    unit: 1M is 1e-3. 4k7 is 4.7k. Currents flow through an element from its first node to its second. A diode beside a switch, without a
    drop, is one device with it.

    Capacitors and inductors in loops and cut sets, also through devices and op-amps, need no resistors. Without ``IC=`` they start without
    charge and flux, and where sources are in the loop (cut set) share what these move through all of them at the start. The states of
    those that follow the output of an op-amp at once are what they would be with the output at 0, and no currents that depend on its rate
    can be read. Under `nsds.event_driven` all is exact to
    rounding; `nsds.euler_moreau` is of first order, and steps should end where switches are driven.

    Examples
    --------
    >>> import nsds
    >>> rectifier = nsds.circuit('''half-wave rectifier
    ... V1 in 0 SIN(0 10 50)
    ... D1 in out DI
    ... C1 out 0 100u
    ... R1 out 0 100
    ... .model DI D
    ... ''')
    >>> rows = nsds.simulate(rectifier, t_end=0.06, h=1e-3, scheme=nsds.event_driven())
    >>> nsds.circuits.events(rectifier, rows)["t"][:3].round(9).tolist()
    [0.0, 0.005980933, 0.020701623]
    """
    params = {} if params is None else params
    if not isinstance(params, dict) or not all(isinstance(name, str) for name in params):
        raise TypeError(f"{_OWNER}: params must be a dict of names and numbers, got {_checks.shortened(params)}")
    with _without_collections():
        return _record(netlist, params, integrals, t)


def _record(netlist, params, integrals, t):
    """Record of `circuit`, by arguments of the right types."""
    # 1. netlist and its equations
    elements, t_end = read(netlist, params)
    equations = reduced(elements, _checks.number(_OWNER, "t", t))
    rows = _Rows(equations, elements)
    # 2. integrals: further states, whose rates are the rows of the readings
    integrals = [integrals] if isinstance(integrals, str) else integrals
    if not isinstance(integrals, (list, tuple)):
        raise TypeError(f"{_OWNER}: integrals must be a list of texts such as 'v(out)', got {_checks.shortened(integrals)}")
    readings = [_reading(text, equations) for text in integrals]
    for text, row in zip(integrals, readings, strict=True):
        if any(key[0] == "dlam" for key in row):
            raise ValueError(f"{_OWNER}: the integral of {text} is not at hand: it depends on how fast the output of an op-amp changes")
    integrals = {"".join(text.split()): row for text, row in zip(integrals, readings, strict=True)}
    # 3. matrices of states and outputs, with weights of the sources
    rates = [*equations.rates.values(), *integrals.values()] or [{}]
    x = [*(float(value) for value in equations.starts.values()), *(0.0 for _ in integrals)] or [0.0]
    A, B, U, U_rate, constants = rows.matrices(rates, len(x))
    C, D, weights, weights_rate, base = rows.matrices(rows.outputs, len(x))
    # 4. functions of time only where sources or switches need them
    switches, bounds = rows.switches(), np.array(rows.bounds).T
    part = {"b": constants} if abs(U).sum() + abs(U_rate).sum() == 0 else {"b": driven_rows, "z": packed(rows.waves, constants, U, U_rate)}
    z = packed(rows.waves, base, weights, weights_rate, bounds, switches)
    varies = abs(weights).sum() + abs(weights_rate).sum() > 0
    relation = first_order_linear_relation(C, B, D, driven_rows if varies else base, bounds=driven_bounds if switches else None, z=z)
    return system(
        t=t,
        circuit=first_order_linear(A, x=x, **part),
        devices=interaction(relation, relay(bounds[0], bounds[1]), on="circuit"),
        names=rows.names(len(x), integrals, switches, t_end),
    )


@contextlib.contextmanager
def _without_collections():
    """Pause searches for cyclic garbage: an elimination keeps many small objects without cycles, and each search visits all of them."""
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


def _reading(text, equations):
    """Row of a voltage or current given as text."""
    match = _READING.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or (match[1].lower() == "i" and match[3]):
        raise ValueError(f"{_OWNER}: integrals must be 'v(node)', 'v(node,node)' or 'i(element)', got {_checks.shortened(text)}")
    if match[1].lower() == "i":
        return _of(equations.currents, match[2], "element")
    one, other = (_of(equations.voltages, name or "0", "node") for name in match.groups()[1:])
    return {key: one.get(key, 0) - other.get(key, 0) for key in one | other}


def _of(table, name, what):
    for known, row in table.items():
        if known.lower() == name.lower():
            return row
    raise ValueError(f"{_OWNER}: integrals name the {what} '{name}', which there is not; there are: {', '.join(table)}")


class _Rows:
    """Rows of y and lambda, all in volts, and matrices of quantities that depend on them."""

    def __init__(self, equations, elements):
        # 1. rows of devices and op-amps, in volts: currents are multiplied by one resistance
        self.equations = equations
        self.resistance, self.order = _resistance(elements), [each.name for each in elements]
        self.elements = {each.name: each for each in elements}
        self.outputs, self.bounds, self.closed, self.first, self.lam = [], [], {}, {}, {}
        self.owners = []  # names of the elements of rows
        for devices, add in ((equations.devices, self._add_device), (equations.amplifiers, self._add_amplifier)):
            for device in devices:
                self.first[device.name] = len(self.outputs)
                add(device)
                self.owners += [device.name] * (len(self.outputs) - len(self.owners))
        # 2. switches and sources that vary; whether matrices are sparse
        self.is_large = len(equations.states) + len(self.outputs) > LARGE
        if not self.outputs:  # a record has one row at least: this one is 0
            self._add({}, 0.0, 0.0)
        names = {d.switch for d in equations.devices if d.switch}
        self.switch_names = [name for name in equations.controls if name in names]
        self.sources = {name: j for j, name in enumerate(equations.sources)}
        self.waves = [equations.waves[name] for name in equations.sources]

    def _add(self, row, lower, upper):
        self.outputs.append(row)
        self.bounds.append((float(lower), float(upper)))

    def _add_device(self, d):
        """Rows of a device: i or -v is lambda, the other one is in y; see `nsds.circuits.equations.Device`."""
        row, at = self.equations.outputs[d.name], len(self.outputs)
        drop = {("one",): d.drop} if d.drop else {}
        # 1. lambda is a voltage: bounds by drop and breakdown
        if d.by_voltage:
            self.lam[d.name] = [(at, -1.0)]
            upper = math.inf if d.breakdown is None else d.breakdown
            lower = -d.drop if d.is_diode else -math.inf
            self._add(_scaled(row, self.resistance), lower, upper)
            self.closed[d.switch] = (at, 0.0, 0.0)
            return
        # 2. lambda is a current: a second row for the breakdown
        self.lam[d.name] = [(at, 1.0 / self.resistance)]
        self._add(_total(drop, _scaled(row, -1)), 0.0, math.inf if d.is_diode else 0.0)
        self.closed[d.switch] = (at, -math.inf, math.inf)
        if d.breakdown is not None:
            self.lam[d.name].append((at + 1, -1.0 / self.resistance))
            self._add(_total(row, {("one",): d.breakdown}), 0.0, math.inf)

    def _add_amplifier(self, e):
        """Row of an op-amp: lambda is the output voltage; y the distance of the input from where the table has that output."""
        (x0, y0), (x1, y1) = e.value
        slope, sign = (x1 - x0) / (y1 - y0), 1 if y1 > y0 else -1
        self.lam[e.name] = [(len(self.outputs), 1.0)]
        row = _total(_scaled(self.equations.outputs[e.name], -1), {("one",): x0 - slope * y0, ("lam", e.name): slope})
        self._add(_scaled(row, sign), min(y0, y1), max(y0, y1))

    def matrices(self, rows, n):
        """(states (rows, n), lambda, sources, their rates, constants) of rows; all but the last sparse in a large circuit."""
        m, k = len(self.outputs), len(self.sources)
        states = {name: j for j, name in enumerate(self.equations.states)}
        of_states, of_devices, of_sources, of_rates = (([], [], []) for _ in range(4))  # rows, columns, numbers
        constants = np.zeros(len(rows))
        # coefficients by the kind of known quantity; lambda of a device may be several rows
        for i, row in enumerate(rows):
            for key, c in row.items():
                what = key[0]
                if what == "x":
                    _add_entry(of_states, i, states[key[1]], float(c))
                elif what == "lam":
                    for at, factor in self.lam[key[1]]:
                        _add_entry(of_devices, i, at, float(c) * factor)
                elif what == "one":
                    constants[i] += float(c)
                elif what == "dlam":  # no row says how fast an output changes: what depends on it cannot be read
                    continue
                else:
                    _add_entry(of_rates if what == "du" else of_sources, i, self.sources[key[1]], float(c))
                    self._require_smooth(what, key[1])
        both = (self._matrix(each, (len(rows), k)) for each in (of_sources, of_rates))
        return self._matrix(of_states, (len(rows), n)), self._matrix(of_devices, (len(rows), m)), *both, constants

    def _matrix(self, entries, shape):
        """Rows, columns and numbers of entries, those of one place added."""
        row, column = (np.array(places, np.int64) for places in entries[:2])
        numbers = np.array(entries[2], np.float64)
        if self.is_large:
            from scipy.sparse import csr_array

            return csr_array((numbers, (row, column)), shape=shape)
        result = np.zeros(shape)
        np.add.at(result, (row, column), numbers)
        return result

    def _require_smooth(self, what, name):
        """Refuses rates of sources that step: they would be impulses."""
        if what == "du" and "#" not in name and self.equations.waves[name].has_steps:  # what a sine adds while it waits makes it continuous
            raise ValueError(f"{_OWNER}: element '{name}': {IMPULSIVE}")

    def switches(self):
        """Numbers of each switch: row, threshold, bounds when closed, constant, hysteresis, start; sources of its control; their weights.

        In small circuits these are all sources, so that members of an ensemble have one form.
        """
        result = []
        for name in self.switch_names:
            model, row = self.equations.controls[name]
            if any(key[0] not in ("u", "one") for key in row):
                others = ", ".join(str(key[1]) for key in row if key[0] not in ("u", "one"))
                raise ValueError(f"{_OWNER}: the control of switch '{name}' must be a sum of sources, but it depends on {others}")
            weights = {} if self.is_large else dict.fromkeys(range(len(self.sources)), 0.0)
            weights |= dict(sorted((self.sources[key[1]], float(c)) for key, c in row.items() if key[0] == "u"))
            at, lower, upper = self.closed[name]
            threshold, hysteresis = (float(model.get(f"v{what}", model.get(f"i{what}", 0))) for what in "th")
            if hysteresis > 0.0:
                self._require_one_wave(name, weights)
            numbers = [at, threshold, lower, upper, float(row.get(("one",), 0)), hysteresis, float(model["on"])]
            result.append((numbers, list(weights), list(weights.values())))
        return result

    def _require_one_wave(self, name, weights):
        """Refuses controls of a switch with hysteresis whose last value beyond it cannot be told from the time alone."""
        acting = [self.waves[j] for j, weight in weights.items() if weight]
        if len(acting) > 1 or any(wave.kind == "SIN" and wave.numbers[4] != 0 for wave in acting):
            raise ValueError(
                f"{_OWNER}: the control of switch '{name}', which has hysteresis, must be one source beside constant ones: pulses, "
                "straight pieces, or one sine without damping, and without a phase where it has a delay"
            )

    def names(self, n, integrals, switches, t_end):
        """Part of a record with the maps from its states to voltages and currents."""
        # 1. elements; a switch beside a diode has the current of that, when it is closed
        e, fields = self.equations, {}
        shared = {d.name: d.switch for d in e.devices if d.switch and d.is_diode}  # diode -> the switch beside it
        elements = [*e.currents, *shared.values()]
        turned = [_scaled(e.currents[d.name], -1 if d.turned else 1) for d in e.devices if d.name in shared]
        currents = [*e.currents.values(), *turned]
        # 2. maps from known quantities; flags where a rate of lambda is missing
        for field, of, rows in (("voltages", "nodes", list(e.voltages.values())), ("currents", "elements", currents)):
            fields[field] = self._weights(rows, n)
            fields[f"{of}_by_rate"] = np.array([int(any(key[0] == "dlam" for key in row)) for row in rows])
        # 3. switch of each element, terminals, stores of energy
        beside = shared | {switch: switch for switch in shared.values()}
        switch, node, place = ({name: k for k, name in enumerate(each)} for each in (self.switch_names, e.voltages, elements))
        through = [switch[beside[name]] if name in beside else -1 for name in elements]
        fields["by_switch"] = np.array([through, [int(name in shared) for name in elements]]).T
        fields["terminals"] = np.array([[node[end] for end in self.elements[name].nodes[:2]] for name in elements])
        stores = self._stores()
        fields["stores"] = np.array([[place[name] for name in pair] for pair in stores] or [(0, 0)])
        fields["stored"] = np.array([float(value) for value in stores.values()] or [0.0])
        # 4. devices, switches, names
        devices = self._kinds()
        fields["devices"] = np.array(list(devices.values()) or [(0, NONE, 0)])
        none = np.zeros((0, len(self.waves)))
        fields["z"] = packed(self.waves, np.zeros(0), none, none, None, switches)
        fields["t_end"] = np.array(math.inf if t_end is None else t_end)
        words = {"node_names": e.voltages, "element_names": elements, "state_names": e.states,
                 "device_names": devices, "row_names": self.owners, "integral_names": integrals, "source_names": self.sources}  # fmt: skip
        fields |= {field: " ".join(each) for field, each in words.items()}
        return {"kind": "names", "record": pack(fields, None)}

    def _weights(self, rows, n):
        """Map from the known quantities to those of rows; in a large circuit the compressed rows of its transpose."""
        parts = [each if each.ndim == 2 else each[:, None] for each in self.matrices(rows, n)]
        if not self.is_large:
            return np.hstack(parts)
        from scipy.sparse import csr_array, hstack

        return compressed_rows(_OWNER, "netlist", hstack([csr_array(each) for each in parts]).T)

    def _stores(self):
        """{(element, element): C, L or mutual inductance}: factors of the products of voltages or currents in twice the energy."""
        elements, known = self.elements.values(), by_name(self.elements.values())
        stores = {(e.name, e.name): e.value for e in elements if e.kind in "CL"}
        for coupling in (e for e in elements if e.kind == "K"):
            for one, other in itertools.permutations([known[name.lower()] for name in coupling.of], 2):
                stores[one.name, other.name] = float(coupling.value) * math.sqrt(one.value * other.value)
        return stores

    def _kinds(self):
        """{name: (first row, kind, whether lambda is a voltage)} of diodes and op-amps, in the order of the netlist."""
        e = self.equations
        kinds = {d.name: (self.first[d.name], DIODE if d.breakdown is None else ZENER, int(d.by_voltage)) for d in e.devices if d.is_diode}
        kinds |= {each.name: (self.first[each.name], AMPLIFIER, 0) for each in e.amplifiers}
        return {name: kinds[name] for name in self.order if name in kinds}


def _add_entry(entries, row, column, number):
    rows, columns, numbers = entries
    rows.append(row)
    columns.append(column)
    numbers.append(number)


def _scaled(row, factor):
    return {key: c * factor for key, c in row.items()}


def _total(one, other):
    return {key: one.get(key, 0) + other.get(key, 0) for key in one | other}


def _resistance(elements):
    """A typical resistance of the circuit, a power of two: for inductors and capacitors the root of L / C."""
    sizes = {kind: [math.log2(abs(float(e.value))) for e in elements if e.kind == kind and e.value] for kind in "RLC"}
    found = list(sizes["R"])
    if sizes["L"] and sizes["C"]:
        found.append((np.mean(sizes["L"]) - np.mean(sizes["C"])) / 2)
    return 2.0 ** round(float(np.mean(found))) if found else 1.0
