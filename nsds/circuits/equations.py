"""State equations of a circuit: the sparse tableau of its elements, eliminated exactly, see `nsds.circuits.elimination`.

Unknowns of the tableau are node voltages, currents of all elements, rates of the states, and of each device (diode, switch) its voltage v
and current i. Known are the states x (voltages of capacitors, currents of inductors), the sources u and their rates, 1, and of each device
one of v and i, as lambda: the other one is y. The choice follows from the circuit.

    x' = A x + B lambda + (sources),      y = C x + D lambda + (sources)

States that depend on others through elements alone (loops of capacitors and sources, cut sets of inductors, coupling 1) are eliminated.
"""

import itertools
import math
import operator
from fractions import Fraction
from typing import NamedTuple

from nsds.circuits.elimination import Rows, System, solved_for, whole
from nsds.circuits.waveforms import value_of

_OWNER = "circuit"
_ONE = ("one",)
_NO_PIVOT = Fraction(1, 10**6)  # of the largest factor of a state: a smaller pivot comes from amplifier gains and would amplify rounding
_FAR = 10**11  # Roff / Ron from which digits are lost where a current is computed from the leak
_MOST = Fraction(1, 1000)  # of the leak: resistances that currents of inductors and sources see below that do not flow through it
_MOST_CHOICES = 4096  # of voltages and currents of devices, tried if the first choice fails


class Device(NamedTuple):
    """A diode, a switch, both side by side, or an op-amp, and its rows.

    nodes: of v and i; name: of the diode, or else the switch; switch, and whether it points the other way than the diode. by_voltage:
    lambda is a voltage, not a current. drop, breakdown: of the diode, None if it has none. leak: its Roff if that is far above Ron.
    """

    name: str
    nodes: tuple
    is_diode: bool
    switch: str = ""
    turned: bool = False
    drop: Fraction = Fraction(0)
    breakdown: object = None
    by_voltage: bool = False
    leak: object = None


class Equations(NamedTuple):
    """Rows as dicts from known quantities, ("x", name), ("lam", device), ("u", source), ("du", source), ("one",), to coefficients.

    rates, outputs: of states and devices; voltages, currents: of nodes and elements; starts: of the states.
    """

    states: tuple
    devices: tuple
    amplifiers: tuple  # elements
    sources: tuple  # names of the varying ones
    rates: dict
    outputs: dict
    voltages: dict
    currents: dict
    starts: dict
    waves: dict
    controls: dict  # of switches: (their parameters, row of the voltage or current that controls them)


def reduced(elements, t=0.0):
    """`Equations` of a netlist's elements, starting at time t (s).

    Raises
    ------
    ValueError
        Loops of voltage sources, cut sets of current sources, and what else does not determine voltages and currents.
    """
    # 1. tableau: currents that an element gives, and a row for each other element, device and node
    plain, devices = _devices(elements)
    waves = {name: wave for e in plain if e.kind in "VI" for name, wave in e.value.parts(e.name).items()}
    currents, rows, starts = _tableau(plain, devices)
    amplifiers = tuple(e for e in plain if e.kind == "OP")
    solved = _Tableau()
    for key, row in currents.items():
        solved.fix(key, whole(row))
    solved.solve(rows)
    # 2. a relation among known quantities alone makes one state depend on the others, which differentiates its equation
    dependent, loops = {}, {}
    while relation := solved.relation():
        name = _dependent_state(relation, starts, waves)
        value = solved_for(relation, ("x", name))
        dependent = {other: _substituted(row, ("x", name), value) for other, row in dependent.items()} | {name: value}
        loops[name] = value
        solved.fix(("x", name), relation)
        solved.solve([{("dx", name): 1, ("push", name): -1} | {(f"d{key[0]}", key[1]): -c for key, c in value.items() if key != _ONE}])
    # 3. known quantity of each device: voltage or current
    devices = solved.choose(devices)
    # 4. initial values of the independent states
    kept = tuple(name for name in starts if name not in dependent)
    free = _Start(loops, starts, waves, t, solved).of(kept)
    _require_consistent(dependent, free, starts, waves, t)
    # 5. subtract outputs of op-amps that a state follows instantly, so that no rate of these is needed
    follows = {}
    for name in kept:
        if any(key[0] == "dlam" for key in solved.gone.get(("dx", name), ())):
            at_once = {("lam", key[1]): c for key, c in solved.value(("dx", name)).items() if key[0] == "dlam"}
            follows["x", name] = {("x", name): 1} | at_once

    def row_of(key, may_float=False, number=operator.truediv):
        row = solved.value(key, may_float, Fraction if follows else number)
        return _sum(*((c, follows.get(other, {other: 1})) for other, c in row.items())) if follows else row

    # 6. rows of voltages, rates and outputs
    nodes = dict.fromkeys(node for e in elements for node in e.nodes if node != "0")
    voltages = {node: row_of(("v", node), True) for node in nodes} | {"0": {}}
    rates = {name: {key: c for key, c in row_of(("dx", name)).items() if key[0] != "dlam"} for name in kept}
    leaky, outputs = {e.name.partition("#")[0] for e in plain if "#" in e.name}, {}  # a leak is added exactly
    for d in devices:
        outputs[d.name] = row_of(("id" if d.by_voltage else "vd", d.name), number=Fraction if d.name in leaky else operator.truediv)
    for e in amplifiers:
        v_p, v_q = (row_of(("v", node), number=Fraction) if node != "0" else {} for node in e.nodes[2:])
        outputs[e.name] = _sum((1, v_p), (-1, v_q))
    # 7. an output that depends on the rate of lambda would need an impulse where that jumps
    for name, row in outputs.items():
        if any(key[0] == "dlam" for key in row):
            others = ", ".join(key[1] for key in row if key[0] == "dlam")
            raise ValueError(
                f"{_OWNER}: {name} depends on how fast the output of {others} changes, which may jump: put a resistor beside the capacitor "
                "between them"
            )
    # 8. currents; resistances of a model count with their device
    currents = {e.name: row_of(("i", e.name), True, Fraction if "#" in e.name else operator.truediv) for e in plain if e.kind != "K"}
    for d in devices:
        currents[d.name] = outputs[d.name] if d.by_voltage else {("lam", d.name): 1}
    for name in [name for name in currents if "#" in name]:  # resistances of models
        leak, name = currents.pop(name), name.partition("#")
        if name[2] == "off":
            currents[name[0]] = _sum((1, currents[name[0]]), (1, leak))
    sources = tuple(name for name, wave in waves.items() if not wave.is_constant)
    known = by_name(elements)
    controls = {e.name: (e.value, _control(e, known, voltages, currents)) for e in elements if e.kind in "SW"}
    return Equations(kept, devices, amplifiers, sources, rates, outputs, voltages, currents, free, waves, controls)


def _control(e, known, voltages, currents):
    """Row of the voltage between the second nodes of a switch, or of the current through the source that it names."""
    if e.kind == "W":
        return currents[known[e.of[0].lower()].name]
    one, other = (voltages[node] for node in e.nodes[2:])
    return _sum((1, one), (-1, other))


def _devices(elements):
    """(elements without devices, devices): resistances of models become resistors, a diode beside a switch joins it."""
    plain, devices, switches = [], [], {}
    for e in elements:
        if e.kind not in "DSW":
            plain.append(e)
            continue
        # Ron in series and Roff in parallel, so that closed and open device have these resistances exactly
        a, b, on, off = *e.nodes[:2], e.value.get("ron", 0), e.value.get("roff")
        leak = off if off is not None and on > 0 and off > _FAR * on else None
        if off is not None:
            plain.append(e._replace(name=f"{e.name}#off", kind="R", nodes=(a, b), value=off))
            on = on * off / (off - on)
        if on > 0:
            plain.append(e._replace(name=f"{e.name}#on", kind="R", nodes=(f"{e.name}#", b), value=on))
            b = f"{e.name}#"
        if e.kind in "SW":
            switches[a, b] = e.name
            devices.append(Device(e.name, (a, b), False, e.name, leak=leak))
        else:
            devices.append(Device(e.name, (a, b), True, "", False, e.value.get("vfwd", Fraction(0)), e.value.get("vrev"), leak=leak))
    return plain, _joined(devices, switches)


def _joined(devices, switches):
    """Joins ideal diodes without a drop to switches beside them: the division of a current between both is not determined."""
    result, taken = [], set()
    for d in devices:
        a, b = d.nodes
        switch, turned = (switches[a, b], False) if (a, b) in switches else (switches.get((b, a), ""), True)
        if d.is_diode and switch and switch not in taken and d.drop == 0 and d.breakdown is None:
            taken.add(switch)
            d = d._replace(switch=switch, turned=turned)
        result.append(d)
    return [d for d in result if d.is_diode or d.name not in taken]


def _tableau(elements, devices):
    """({current: row that gives it by voltages, states and sources}, other rows that are zero, {state: its initial value or None})."""
    currents, rows, starts, known = {}, [], {}, by_name(elements)
    balance = {}  # of currents at nodes

    def flow(key, a, b):
        for node, sign in ((a, 1), (b, -1)):
            if node != "0":
                row = balance.setdefault(node, {})
                row[key] = row[key] + sign if key in row else sign

    def voltage(a, b):
        row = {}
        for node, sign in ((a, 1), (b, -1)):
            if node != "0":
                row["v", node] = row["v", node] + sign if ("v", node) in row else sign
        return {key: c for key, c in row.items() if c}  # of an element between a node and itself nothing

    # 1. equation of each element, and its current in the balances of its nodes
    for e in elements:
        if e.kind == "K":
            continue
        a, b = e.nodes[:2]
        current = ("i", e.name)
        if e.kind != "OP":
            flow(current, a, b)
        if e.kind == "R" and e.value:
            currents[current] = {current: -e.value} | voltage(a, b)
        elif e.kind == "R":
            rows.append(voltage(a, b))
        elif e.kind == "C":
            currents[current] = {current: -1, ("dx", e.name): e.value}
            rows.append(voltage(a, b) | {("x", e.name): -1})
            starts[e.name] = e.start
        elif e.kind == "V":
            rows.append(voltage(a, b) | _source(e))
        elif e.kind == "I":
            currents[current] = {current: 1} | _source(e)
        elif e.kind == "E":
            rows.append(_sum((1, voltage(a, b)), (-e.value, voltage(*e.nodes[2:]))))
        elif e.kind == "G":
            currents[current] = {current: 1} | {key: -e.value * c for key, c in voltage(*e.nodes[2:]).items()}
        elif e.kind == "F":
            currents[current] = {current: 1, ("i", known[e.of[0].lower()].name): -e.value}
        elif e.kind == "H":
            rows.append(voltage(a, b) | {("i", known[e.of[0].lower()].name): -e.value})
        elif e.kind in ("BV", "BI"):
            value = _sum(*((factor, _read(what, names, voltage, known)) for what, names, factor in e.value))
            if e.kind == "BV":
                rows.append(_sum((1, voltage(a, b)), (-1, value)))
            else:
                currents[current] = _sum((1, {current: 1}), (-1, value))
        elif e.kind == "OP":
            flow(current, a, b)
            rows.append(voltage(a, b) | {("lam", e.name): -1})
    # 2. devices: both voltage and current are unknown so far
    for d in devices:
        flow(("id", d.name), *d.nodes)
        rows.append(_sum((1, voltage(*d.nodes)), (1, {("vd", d.name): -1})))
    rows += _inductors(elements, known, voltage, starts)
    return currents, [*rows, *balance.values()], starts


def _read(what, names, voltage, known):
    """Row of a term of a behavioural source."""
    return voltage(*names) if what == "v" else {_ONE: 1} if what == "one" else {("i", known[names[0].lower()].name): 1}


def by_name(elements):
    """{name in small letters: element}, by which elements name others in any case of letters."""
    return {e.name.lower(): e for e in elements}


def _inductors(elements, known, voltage, starts):
    """``i = x``, ``v = L x'`` of inductors and coupled groups.

    For a singular L, x are the currents of a set of windings that generate the same flux.
    """
    # 1. groups of coupled inductors
    inductors = {e.name: e for e in elements if e.kind == "L"}
    place = {name: k for k, name in enumerate(inductors)}
    group, rows = {name: {name} for name in inductors}, []
    coupling = {}
    for e in elements:
        if e.kind == "K":
            if not abs(e.value) <= 1:
                raise ValueError(f"{_OWNER}: element '{e.name}': a coefficient of coupling must be in [-1, 1], got {float(e.value):g}")
            names = [known[other.lower()].name for other in e.of]
            for one, other in itertools.combinations(names, 2):
                coupling[one, other] = coupling[other, one] = e.value
                joint = group[one] | group[other]
                for each in joint:
                    group[each] = joint
    # 2. matrix of inductances of each group, and a regular block of its rank
    for members in {id(members): members for members in group.values()}.values():
        names = sorted(members, key=place.get)
        first = inductors[names[0]].value
        turns = {name: _root(inductors[name].value / first) for name in names}
        L = [[first * turns[a] * turns[b] * (1 if a == b else coupling.get((a, b), 0)) for b in names] for a in names]
        if len(names) == 1:
            L = [[inductors[names[0]].value]]
        chosen = _independent(L, names)
        # 3. voltages by rates, and currents of all windings by those of the block, so that fluxes agree
        for j, name in enumerate(names):
            row = voltage(*inductors[name].nodes)
            for p in chosen:
                row["dx", names[p]] = -L[j][p]
            rows.append(row)
        for p in chosen:
            row = {}
            for j, name in enumerate(names):
                row["i", name] = L[p][j]
                row["x", names[j]] = -L[p][j] if j in chosen else Fraction(0)
            rows.append({key: c for key, c in row.items() if c})
        # 4. initial values: of a singular group those with the same flux
        given = [inductors[name].start for name in names]
        for p in chosen:
            starts[names[p]] = given[p]
        if len(chosen) < len(names) and any(value for value in given):
            flux = [sum(L[p][j] * (given[j] or 0) for j in range(len(names))) for p in chosen]
            inner = _Tableau()
            inner.solve({("dx", q): L[p][q] for q in chosen} | {_ONE: -flux[k]} for k, p in enumerate(chosen))
            inner.substitute()
            for p in chosen:
                starts[names[p]] = inner.value(("dx", p)).get(_ONE, Fraction(0))
    return rows


def _root(value):
    """The square root, exact if it is a fraction; else to rounding."""
    roots = math.isqrt(value.numerator), math.isqrt(value.denominator)
    return Fraction(*roots) if roots[0] ** 2 == value.numerator and roots[1] ** 2 == value.denominator else Fraction(math.sqrt(value))


def _independent(L, names):
    """Indices of windings whose inductances form a regular block of full rank; refuses a matrix with a negative eigenvalue."""
    # elimination on the diagonal: a zero pivot depends on those before, a negative one is a negative eigenvalue
    chosen, rest = [], [row[:] for row in L]
    for k in range(len(L)):
        if rest[k][k] < 0 or (rest[k][k] == 0 and any(rest[k])):
            raise ValueError(f"{_OWNER}: the couplings of {', '.join(names)} contradict each other: energies would be negative")
        if rest[k][k] > 0:
            chosen.append(k)
            pivot = rest[k][:]
            for i in range(len(L)):
                factor = rest[i][k] / pivot[k]
                rest[i] = [a - factor * b for a, b in zip(rest[i], pivot, strict=True)]
    return chosen


def _sum(*terms):
    """Sum of (factor, row)."""
    result = {}
    for factor, row in terms:
        for key, c in row.items():
            result[key] = result.get(key, 0) + factor * c
    return {key: c for key, c in result.items() if c}


def _substituted(row, key, value):
    """A row with another one in place of a quantity."""
    return _sum((1, {other: c for other, c in row.items() if other != key}), (row[key], value)) if key in row else row


def _source(element):
    """The voltage or current of a source with the other sign: sums of what varies, and a constant."""
    row = {}
    for name, wave in element.value.parts(element.name).items():
        if wave.is_constant:
            row[_ONE] = row.get(_ONE, 0) - Fraction(repr(wave.numbers[3]))
        else:
            row["u", name] = -1
    return row


def _constants(waves):
    """The constant sources, as text."""
    return f"constant sources ({', '.join(name for name, wave in waves.items() if wave.is_constant)})"


def _dependent_state(relation, starts, waves):
    """State for which a relation of known quantities is solved: one without an initial value of its own, if there is one."""
    states = [name for name in starts if ("x", name) in relation]
    others = [key for key in relation if key[0] in ("du", "dlam")]
    if not states or others:
        names = ", ".join(dict.fromkeys(str(key[1]) for key in relation if key != _ONE)) or _constants(waves)
        raise ValueError(
            f"{_OWNER}: {names}: a loop of voltages, or a cut set of currents, that elements give already, contradict each other or would "
            "need an impulse; put a resistor into it"
        )
    largest = max(abs(relation["x", name]) for name in states)
    states = [name for name in states if abs(relation["x", name]) > _NO_PIVOT * largest]
    return next((name for name in reversed(states) if starts[name] is None), states[-1])


class _Start:
    """Initial voltages and currents, just after the start, of states that depend on each other: sources move all of them there.

    Before it states have their given values, or 0. A loop of capacitors (cut set of inductors) that violates its relation is corrected by
    one charge (flux): ``x + P w``, w the violation of each relation, P the effect of a push on it by the rates. An op-amp's output counts
    as 0: the independent states do not follow it.
    """

    def __init__(self, loops, starts, waves, t, solved):
        # 1. values before the start, and violation of each relation by them
        self.loops, self.starts = loops, starts
        self.before = {name: float(value or 0) for name, value in starts.items()}
        self.off = {}
        for name, row in loops.items():
            known = {key: c for key, c in row.items() if key[0] != "lam"}
            self.off[name] = sum(float(c) * _start_of(key, self.before, waves, t) for key, c in known.items()) - self.before[name]
        # 2. effect of a push on each relation on the states
        self.pushed = {state: solved.pushed(state) for state in starts} if loops else {}

    def of(self, kept):
        """{name: value} of the independent states."""
        result = {name: self.before[name] for name in kept}
        # a group of relations that push on common states is corrected as a whole; given values stay, or the start is not determined
        for names, states in self._groups():
            jump = {state: sum(c * self.off[name] for name, c in self.pushed[state].items() if name in names) for state in states}
            size = max(max(abs(self.off[name]) for name in names), max(abs(self.before[state]) for state in states))
            moved = [state for state in states if abs(jump[state]) > 1e-12 * size]
            has_output = any(key[0] == "lam" for name in names for key in self.loops[name])
            if has_output or all(self.starts[state] is None for state in moved):
                result |= {state: self.before[state] + jump[state] for state in states if state in result}
                continue
            open_ones = [state for state in moved if state in result and self.starts[state] is None]
            if open_ones:
                given = ", ".join(state for state in moved if self.starts[state] is not None)
                raise ValueError(
                    f"{_OWNER}: the start of {', '.join(open_ones)} is not determined beside {given}, with which it makes a loop or a cut "
                    "set: give it IC="
                )
        return result

    def _groups(self):
        """[(names of relations, names of states), ...] of groups joined by relations or by the effect of pushes on them."""
        groups = []
        for name, row in self.loops.items():
            names, states = {name}, {name} | {key[1] for key in row if key[0] == "x"} | {s for s in self.pushed if name in self.pushed[s]}
            for group in [group for group in groups if group[1] & states]:
                groups.remove(group)
                names, states = names | group[0], states | group[1]
            groups.append((names, states))
        return [(names, [state for state in self.starts if state in states]) for names, states in groups]


def _require_consistent(dependent, free, starts, waves, t):
    """Checks that given initial values of dependent states are those that follow from the others."""
    for name, row in dependent.items():
        if starts[name] is None or any(key[0] == "lam" for key in row):
            continue
        value = sum(float(c) * _start_of(key, free, waves, t) for key, c in row.items())
        size = sum(abs(float(c) * _start_of(key, free, waves, t)) for key, c in row.items()) + abs(starts[name])
        if abs(value - float(starts[name])) > 1e-12 * float(size):
            others = ", ".join(str(key[1]) for key in row if key != _ONE) or _constants(waves)
            raise ValueError(
                f"{_OWNER}: element '{name}': IC={float(starts[name]):g} contradicts {others}, with which it makes a loop or a cut set: "
                f"it would jump to {value:g}"
            )


def _start_of(key, free, waves, t):
    return 1.0 if key == _ONE else float(free[key[1]]) if key[0] == "x" else value_of(waves[key[1]], float(t))


class _Tableau(System):
    """The tableau of a circuit.

    "push" of a dependent state corrects its relation at the start, and is 0 from then on: a row of pushes alone says nothing.
    """

    def __init__(self):
        super().__init__(known=("x", "u", "du", "one", "lam", "dlam", "push"), fixed=("vd", "id"), idle="push")

    def relation(self):
        """A relation among known quantities alone that the remaining rows imply, or None."""
        rows = Rows()
        for row in self.left.rows.values():
            rows.add({key: c for key, c in row.items() if key[0] != "push"})
        for k in reversed(list(rows.rows)):
            row = rows.rows.get(k)
            if not row:
                continue
            pivot = next((key for key in row if key[0] in ("vd", "id")), None)
            if pivot is None:
                return row
            rows.eliminate(pivot, rows.drop(k))
        return None

    def choose(self, devices):
        """Devices, each with either v or i solved for, and the other one known as lambda; substitutes all that is eliminated."""
        # 1. the usual choice: voltages wherever possible; others may follow from the same rows
        are_few = 2 ** len(devices) <= _MOST_CHOICES
        base = self.state() if are_few or any(d.leak is not None for d in devices) else None
        begin, usual = len(self.gone), [("vd", "id")] * len(devices)
        found = self._chosen(devices, usual)
        # 2. devices in whose leak a given current would have to flow are solved for the current, so that the leak's digits are not lost
        if found is not None and base is not None:
            self.substitute(begin)
            choice = [("id",) if self._leads_through_leak(d) else ("vd", "id") for d in found]
            if ("id",) in choice:
                found = self._restored(base, devices, choice) or self._restored(base, devices, usual)
        # 3. all choices, if there are few enough
        if found is None and are_few:
            choices = itertools.product((("vd",), ("id",)), repeat=len(devices))
            found = next(filter(None, (self._restored(base, devices, choice) for choice in choices)), None)
        if found is None:
            names = ", ".join(d.name for d in devices)
            raise ValueError(f"{_OWNER}: voltages and currents of {names} are not determined, whichever of them conduct")
        self.substitute()
        return found

    def _restored(self, base, devices, choice):
        self.restore(base)
        return self._chosen(devices, choice)

    def _leads_through_leak(self, d):
        """Whether a given current, as of an inductor, would flow through the leak of an open device."""
        row = {} if d.leak is None or d.by_voltage else solved_for(self.gone["vd", d.name], ("vd", d.name))
        return any(abs(c) > _MOST * d.leak for key, c in row.items() if key[0] in ("x", "u"))

    def _chosen(self, devices, choice):
        # pivots of voltages first, then of currents, among the rows that are left
        by_voltage = {}
        for what in ("vd", "id"):
            for d, allowed in zip(devices, choice, strict=True):
                if d.name in by_voltage or what not in allowed:
                    continue
                found = self.left.of.get((what, d.name))
                if found:
                    by_voltage[d.name] = what == "id"
                    self.take(min(found), (what, d.name))
        if len(by_voltage) < len(devices) or self.left.rows:
            return None
        for d in devices:
            lam = ("vd" if by_voltage[d.name] else "id", d.name)
            self.fix(lam, {lam: 1, ("lam", d.name): -1})
        return tuple(d._replace(by_voltage=by_voltage[d.name]) for d in devices)

    def value(self, key, may_float=False, number=Fraction):
        """A quantity in terms of known ones, as fractions or floats; an undetermined one is 0 if it may float, else refused."""
        row, known, result = self.gone.get(key) or {key: 1}, self.known, {}
        pivot = -row[key]
        for other, c in row.items():
            kind = other[0]
            if kind in known:
                if kind != "push":
                    result[other] = number(c, pivot)
            elif not may_float and (other != key or key not in self.gone):
                what = {"v": "the voltage of node", "i": "the current of", "dx": "the rate of"}.get(other[0], "something of")
                raise ValueError(f"{_OWNER}: {what} '{other[1]}' is not determined, and something depends on it")
        return result

    def pushed(self, state):
        """{name: effect of a push on that relation on the state}."""
        key = ("dx", state)
        row = solved_for(self.gone[key], key) if key in self.gone else {}
        return {other[1]: float(c) for other, c in row.items() if other[0] == "push"}
