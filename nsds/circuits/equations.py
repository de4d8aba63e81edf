"""From elements to the least equations that describe them: the sparse tableau, eliminated in fractions.

Unknowns of the tableau are node voltages, currents of all elements, rates of the states, and of each device (diode, switch) its voltage v
and current i. Known are the states x (voltages of capacitors, currents of inductors), the sources u and their rates, 1, and of each device
one of v and i, as lambda: the other one is y. Which one it is follows from the circuit.

    x' = A x + B lambda + (sources),      y = C x + D lambda + (sources)

States that elements alone make depend on others (loops of capacitors and sources, cut sets of inductors, coupling 1) are eliminated once.
"""

import itertools
import math
from fractions import Fraction
from typing import NamedTuple

_OWNER = "circuit"
_ONE = ("one",)
_NO_PIVOT = Fraction(1, 10**6)  # of the largest factor of a state: one that follows by a gain of amplifiers would take rounding with it
_FAR = 10**11  # Roff / Ron from which digits are lost where a current is measured by what it would do to the leak
_MOST = Fraction(1, 1000)  # of the leak: resistances that currents of inductors and sources meet below that do not flow through it
_MOST_CHOICES = 4096  # of voltages and currents of devices, where the first choice fails


class Device(NamedTuple):
    """A diode, a switch, both side by side, or an op-amp, and its rows.

    nodes: of v and i; name: of the diode, or else the switch; switch, and whether it points the other way than the diode. by_voltage:
    lambda is a voltage, not a current. drop, breakdown: of the diode, None where there is none. leak: its Roff where that is far above Ron.
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
    """Rows as dicts from what is known, ("x", name), ("lam", device), ("u", source), ("du", source), ("one",), to coefficients.

    rates, outputs: of states and devices; voltages, currents: of nodes and elements; starts: of the states.
    """

    states: tuple
    devices: tuple
    amplifiers: tuple  # elements
    sources: tuple  # names of those that vary
    rates: dict
    outputs: dict
    voltages: dict
    currents: dict
    starts: dict
    waves: dict
    controls: dict  # of switches: (threshold, nodes)


def reduced(elements, t=0.0):
    """`Equations` of a netlist's elements, at the start of which it is t (s).

    Raises
    ------
    ValueError
        Loops of voltage sources, cut sets of current sources, and what else does not determine voltages and currents.
    """
    plain, devices = _devices(elements)
    waves = {name: wave for e in plain if e.kind in "VI" for name, wave in e.value.parts(e.name).items()}
    rows, states, starts = _tableau(plain, devices)
    amplifiers = tuple(e for e in plain if e.kind == "OP")
    solved = _System()
    for row in rows:
        solved.add(_with_constants(row, waves))
    dependent, loops = {}, {}
    while True:
        solved.solve()
        relation = solved.relation()
        if relation is None:
            break
        name = _dependent_state(relation, starts, waves)
        factor = relation.pop(("x", name))
        value = {key: -c / factor for key, c in relation.items()}
        dependent = {other: _substituted(row, ("x", name), value) for other, row in dependent.items()} | {name: value}
        loops[name] = value
        solved.substitute(("x", name), value)
        solved.add(
            {("dx", name): Fraction(1), ("push", name): Fraction(-1)}
            | {(f"d{key[0]}", key[1]): -c for key, c in value.items() if key != _ONE}
        )
    devices = solved.choose(devices)
    kept = tuple(name for name in states if name not in dependent)
    free = _Start(loops, starts, waves, t, solved).of(kept)
    _require_consistent(dependent, free, starts, waves, t)
    for name in kept:  # less what follows outputs of op-amps at once: so no rate of these is needed
        at_once = {("lam", key[1]): c for key, c in solved.value(("dx", name)).items() if key[0] == "dlam"}
        solved.substitute(("x", name), {("x", name): Fraction(1)} | at_once)
    nodes = dict.fromkeys(node for e in elements for node in e.nodes if node != "0")
    voltages = {node: solved.value(("v", node), True) for node in nodes} | {"0": {}}
    rates = {name: {key: c for key, c in solved.value(("dx", name)).items() if key[0] != "dlam"} for name in kept}
    outputs = {d.name: solved.value(("id" if d.by_voltage else "vd", d.name)) for d in devices}
    for e in amplifiers:
        v_p, v_q = (solved.value(("v", node)) if node != "0" else {} for node in e.nodes[2:])
        outputs[e.name] = _sum((1, v_p), (-1, v_q))
    for name, row in outputs.items():
        if any(key[0] == "dlam" for key in row):
            others = ", ".join(key[1] for key in row if key[0] == "dlam")
            raise ValueError(
                f"{_OWNER}: {name} depends on how fast the output of {others} changes, which may jump: put a resistor beside the capacitor "
                "between them"
            )
    currents = {e.name: solved.value(("i", e.name), True) for e in plain if e.kind != "K"}
    for d in devices:
        currents[d.name] = outputs[d.name] if d.by_voltage else {("lam", d.name): Fraction(1)}
    for name in [name for name in currents if "#" in name]:  # resistances of models
        leak, name = currents.pop(name), name.partition("#")
        if name[2] == "off":
            currents[name[0]] = _sum((1, currents[name[0]]), (1, leak))
    sources = tuple(name for name, wave in waves.items() if not wave.is_constant)
    controls = {e.name: (e.value.get("vt", Fraction(0)), e.nodes[2:]) for e in elements if e.kind == "S"}
    return Equations(kept, devices, amplifiers, sources, rates, outputs, voltages, currents, free, waves, controls)


def _devices(elements):
    """(elements without devices, devices): resistances of models become resistors, a diode beside a switch joins it."""
    plain, devices, switches = [], [], {}
    for e in elements:
        if e.kind not in "DS":
            plain.append(e)
            continue
        a, b, on, off = *e.nodes[:2], e.value.get("ron", 0), e.value.get("roff")
        leak = off if off is not None and on > 0 and off > _FAR * on else None
        if off is not None:
            plain.append(e._replace(name=f"{e.name}#off", kind="R", nodes=(a, b), value=off))
            on = on * off / (off - on)
        if on > 0:
            plain.append(e._replace(name=f"{e.name}#on", kind="R", nodes=(f"{e.name}#", b), value=on))
            b = f"{e.name}#"
        if e.kind == "S":
            switches[a, b] = e.name
            devices.append(Device(e.name, (a, b), False, e.name, leak=leak))
        else:
            devices.append(Device(e.name, (a, b), True, "", False, e.value.get("vfwd", Fraction(0)), e.value.get("vrev"), leak=leak))
    return plain, _joined(devices, switches)


def _joined(devices, switches):
    """Ideal diodes without a drop beside switches make one device with them: how they share a current is not determined."""
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
    """(rows that are zero, names of states, their values at the start or None)."""
    rows, starts = [], {}
    balance = {}  # of currents at nodes

    def flow(key, a, b):
        for node, sign in ((a, 1), (b, -1)):
            if node != "0":
                balance.setdefault(node, {})[key] = balance.setdefault(node, {}).get(key, 0) + Fraction(sign)

    def voltage(a, b, sign=1):
        row = {}
        for node, factor in ((a, 1), (b, -1)):
            if node != "0":
                row["v", node] = row.get(("v", node), 0) + Fraction(sign * factor)
        return {key: c for key, c in row.items() if c}  # of an element between a node and itself nothing

    for e in elements:
        if e.kind == "K":
            continue
        a, b = e.nodes[:2]
        current = ("i", e.name)
        if e.kind != "OP":
            flow(current, a, b)
        if e.kind == "R":
            rows.append(voltage(a, b) | {current: -e.value})
        elif e.kind == "C":
            rows += [voltage(a, b) | {("x", e.name): Fraction(-1)}, {current: Fraction(-1), ("dx", e.name): e.value}]
            starts[e.name] = e.start
        elif e.kind == "V":
            rows.append(voltage(a, b) | {("u", name): Fraction(-1) for name in e.value.parts(e.name)})
        elif e.kind == "I":
            rows.append({current: Fraction(1)} | {("u", name): Fraction(-1) for name in e.value.parts(e.name)})
        elif e.kind in "EG":
            control = {key: -e.value * c for key, c in voltage(*e.nodes[2:]).items()}
            rows.append(_sum((1, voltage(a, b) if e.kind == "E" else {current: Fraction(1)}), (1, control)))
        elif e.kind in "FH":
            rows.append((voltage(a, b) if e.kind == "H" else {current: Fraction(1)}) | {("i", named(elements, e.of[0]).name): -e.value})
        elif e.kind == "OP":
            flow(current, a, b)
            rows.append(voltage(a, b) | {("lam", e.name): Fraction(-1)})
    for d in devices:
        flow(("id", d.name), *d.nodes)
        rows.append(_sum((1, voltage(*d.nodes)), (1, {("vd", d.name): Fraction(-1)})))
    rows += _inductors(elements, voltage, starts)
    return rows + [{key: c for key, c in row.items() if c} for row in balance.values()], tuple(starts), starts


def named(elements, name):
    """The element of that name, in any case."""
    return next(e for e in elements if e.name.lower() == name.lower())


def _inductors(elements, voltage, starts):
    """``i = x``, ``v = L x'`` of inductors and groups that are coupled.

    Of a singular L, x are the currents of as many of its windings as have the same flux alone.
    """
    inductors = {e.name: e for e in elements if e.kind == "L"}
    group, rows = {name: {name} for name in inductors}, []
    coupling = {}
    for e in elements:
        if e.kind == "K":
            if not abs(e.value) <= 1:
                raise ValueError(f"{_OWNER}: element '{e.name}': a coefficient of coupling must be in [-1, 1], got {float(e.value):g}")
            names = [named(elements, other).name for other in e.of]
            for one, other in itertools.combinations(names, 2):
                coupling[one, other] = coupling[other, one] = e.value
                joint = group[one] | group[other]
                for each in joint:
                    group[each] = joint
    for names in {id(members): [name for name in inductors if name in members] for members in group.values()}.values():
        first = inductors[names[0]].value
        turns = {name: _root(inductors[name].value / first) for name in names}
        L = [[first * turns[a] * turns[b] * (1 if a == b else coupling.get((a, b), 0)) for b in names] for a in names]
        if len(names) == 1:
            L = [[inductors[names[0]].value]]
        chosen = _independent(L, names)
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
        given = [inductors[name].start for name in names]
        for p in chosen:
            starts[names[p]] = given[p]
        if len(chosen) < len(names) and any(value for value in given):
            flux = [sum(L[p][j] * (given[j] or 0) for j in range(len(names))) for p in chosen]
            inner = _System()
            for k, p in enumerate(chosen):
                inner.add({("dx", q): L[p][q] for q in chosen} | {_ONE: -flux[k]})
            inner.solve()
            for p in chosen:
                starts[names[p]] = inner.value(("dx", p)).get(_ONE, Fraction(0))
    return rows


def _root(value):
    """The square root, exact where it is a fraction; else to rounding."""
    roots = math.isqrt(value.numerator), math.isqrt(value.denominator)
    return Fraction(*roots) if roots[0] ** 2 == value.numerator and roots[1] ** 2 == value.denominator else Fraction(math.sqrt(value))


def _independent(L, names):
    """Indices of windings whose inductances are a regular block of the same rank; refuses a matrix with a negative eigenvalue."""
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
    factor = row.get(key, 0)
    return _sum((1, {k: c for k, c in row.items() if k != key}), (factor, value)) if factor else row


def _with_constants(row, waves):
    """A row with sources that never change put into its constant."""
    for key in [key for key in row if key[0] == "u" and waves[key[1]].is_constant]:
        row = _substituted(row, key, {_ONE: Fraction(repr(waves[key[1]].numbers[3]))})
    return row


def _constants(waves):
    """In words, the sources that never change."""
    return f"constant sources ({', '.join(name for name, wave in waves.items() if wave.is_constant)})"


def _dependent_state(relation, starts, waves):
    """Which state a relation of known quantities alone is solved for: one without a value of its own at the start, where there is one."""
    states = [key[1] for key in relation if key[0] == "x"]
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
    """Voltages and currents right after the start of states that depend on each other: what sources move there, they move through all.

    Before it states have the values that are given, or none. A loop of capacitors (cut set of inductors) that is off then is put right by
    one charge (flux): ``x + P w``, w by how much each relation is off, P what the rates say of a push on it. An op-amp's output takes part
    as if it were 0: the states that are kept do not follow it.
    """

    def __init__(self, loops, starts, waves, t, solved):
        self.loops, self.starts = loops, starts
        self.before = {name: float(value or 0) for name, value in starts.items()}
        self.off = {}
        for name, row in loops.items():
            known = {key: c for key, c in row.items() if key[0] != "lam"}
            self.off[name] = sum(float(c) * _start_of(key, self.before, waves, t) for key, c in known.items()) - self.before[name]
        self.pushed = {state: solved.pushed(state) for state in starts}

    def of(self, kept):
        """{name: value} of the states that are kept."""
        result = {name: self.before[name] for name in kept}
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
        """[(names of relations, names of states), ...] of what is joined by relations or by what pushes on them move."""
        groups = []
        for name, row in self.loops.items():
            names, states = {name}, {name} | {key[1] for key in row if key[0] == "x"} | {s for s in self.pushed if name in self.pushed[s]}
            for group in [group for group in groups if group[1] & states]:
                groups.remove(group)
                names, states = names | group[0], states | group[1]
            groups.append((names, states))
        return [(names, [state for state in self.starts if state in states]) for names, states in groups]


def _require_consistent(dependent, free, starts, waves, t):
    """Values at the start of states that depend on others are those that follow from these."""
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
    from nsds.circuits.waveforms import value_of

    return 1.0 if key == _ONE else float(free[key[1]]) if key[0] == "x" else value_of(waves[key[1]], float(t))


def _says_something(row):
    return any(key[0] != "push" for key in row)


class _System:
    """Homogeneous linear equations in fractions, rows as dicts; ``solved`` maps a column to the row that gives it.

    "push" of a dependent state is what puts its relation right at the start, 0 from then on: a row of these alone says nothing.
    """

    _KNOWN = ("x", "u", "du", "one", "lam", "dlam", "push")

    def __init__(self):
        self.solved, self.left, self.new = {}, [], []

    def add(self, row):
        self.new.append(row)

    def substitute(self, key, value):
        """Put a row for something known everywhere."""
        self.solved = {column: _substituted(row, key, value) for column, row in self.solved.items()}
        self.left = [row for row in (_substituted(row, key, value) for row in self.left) if _says_something(row)]

    def solve(self):
        """Take each new row in: its first column that is neither known nor of a device is solved for; rows without one are left."""
        rows, self.new, self.left = self.left + self.new, [], []
        rows.sort(key=len)
        for row in rows:
            for column in [key for key in row if key in self.solved]:
                row = _substituted(row, column, self.solved[column])
            pivot = next((key for key in row if key[0] not in (*self._KNOWN, "vd", "id")), None)
            if pivot is not None:
                self._pivot(row, pivot)
            elif _says_something(row):
                self.left.append(row)

    def _pivot(self, row, pivot):
        value = {key: -c / row[pivot] for key, c in row.items() if key != pivot}
        self.solved = {column: _substituted(other, pivot, value) for column, other in self.solved.items()}
        self.left = [_substituted(other, pivot, value) for other in self.left if other is not row]
        self.left = [other for other in self.left if _says_something(other)]
        self.solved[pivot] = value

    def relation(self):
        """A relation of known quantities alone that the rows which are left imply, or None."""
        rows = [{key: c for key, c in row.items() if key[0] != "push"} for row in self.left]
        while rows:
            row = rows.pop()
            pivot = next((key for key in row if key[0] in ("vd", "id")), None)
            if pivot is None:
                return dict(row)
            value = {key: -c / row[pivot] for key, c in row.items() if key != pivot}
            rows = [other for other in (_substituted(other, pivot, value) for other in rows) if other]
        return None

    def choose(self, devices):
        """Devices, of each of which either v or i is now solved for, and the other one known as lambda."""
        base = dict(self.solved), list(self.left)
        usual = self._chosen(devices, [("vd", "id")] * len(devices))
        if usual is not None:
            choice = [("id",) if self._leads_through_leak(d) else ("vd", "id") for d in usual]
            if ("id",) not in choice:
                return usual
            kept, (self.solved, self.left) = (self.solved, self.left), (dict(base[0]), list(base[1]))
            found = self._chosen(devices, choice)
            if found is None:
                self.solved, self.left = kept
            return found or usual
        choices = itertools.product((("vd",), ("id",)), repeat=len(devices)) if 2 ** len(devices) <= _MOST_CHOICES else ()
        for choice in choices:
            self.solved, self.left = dict(base[0]), list(base[1])
            found = self._chosen(devices, choice)
            if found is not None:
                return found
        names = ", ".join(d.name for d in devices)
        raise ValueError(f"{_OWNER}: voltages and currents of {names} are not determined, whichever of them conduct")

    def _leads_through_leak(self, d):
        """Whether a current that is given, as of an inductor, had to flow through the leak of a device if that were open."""
        row = {} if d.leak is None or d.by_voltage else self.solved["vd", d.name]
        return any(abs(c) > _MOST * d.leak for key, c in row.items() if key[0] in ("x", "u"))

    def _chosen(self, devices, choice):
        by_voltage = {}
        for what in ("vd", "id"):
            for d, allowed in zip(devices, choice, strict=True):
                if d.name in by_voltage or what not in allowed:
                    continue
                row = next((row for row in self.left if (what, d.name) in row), None)
                if row is not None:
                    by_voltage[d.name] = what == "id"
                    self._pivot(row, (what, d.name))
        if len(by_voltage) < len(devices) or self.left:
            return None
        for d in devices:
            lam = ("vd" if by_voltage[d.name] else "id", d.name)
            value = {("lam", d.name): Fraction(1)}
            self.solved = {column: _substituted(row, lam, value) for column, row in self.solved.items()}
        return tuple(d._replace(by_voltage=by_voltage[d.name]) for d in devices)

    def value(self, key, may_float=False):
        """A quantity in terms of what is known; one that nothing determines is 0 where it may float, else refused."""
        row = {key: Fraction(1)} if key not in self.solved else self.solved[key]
        unknown = [other for other in row if other[0] not in self._KNOWN]
        if unknown and not may_float:
            what = {"v": "the voltage of node", "i": "the current of", "dx": "the rate of"}.get(unknown[0][0], "something of")
            raise ValueError(f"{_OWNER}: {what} '{unknown[0][1]}' is not determined, and something depends on it")
        return {other: c for other, c in row.items() if other[0] in self._KNOWN and other[0] != "push"}

    def pushed(self, state):
        """{name: by how much a push on that relation moves the state}."""
        return {key[1]: float(c) for key, c in self.solved.get(("dx", state), {}).items() if key[0] == "push"}
