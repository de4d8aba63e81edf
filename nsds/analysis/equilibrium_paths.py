"""Paths of static equilibria with contacts over a parameter, by pseudo-arclength: smooth for each set of contact states."""

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.analysis.equilibria import equilibrium
from nsds.analysis.parameters import Parameter, label_of, one_record
from nsds.analysis.paths import DIFFERENCE, FAST, GROWTH, LONGEST, Path, scale_of
from nsds.model.function_checks import n_u
from nsds.model.laws import ANY, FINITE, LAWS, rows_of_contact
from nsds.model.layout import elements_of
from nsds.model.records import model_of, stored_sparse
from nsds.model.system_kinds import LAGRANGIAN, family, split
from nsds.model.validation import valid
from nsds.results.energy import along, generalised, times
from nsds.status import CONVERGED

OPEN, HELD, SLIP_UP, SLIP_DOWN = range(4)  # states of contacts; slip by the sign of the friction force
_SIGN = {SLIP_UP: 1.0, SLIP_DOWN: -1.0}
_FOLD, _CROSSING, _N = 0, 1, 2  # test functions: direction of the parameter, det of the bordered derivatives; those of contacts follow
_WEAK = 1e-9  # of forces and gaps: a contact within this margin may change its state
_AHEAD = 1e-3  # of a step: distance behind a change at which the inequalities are checked
_MOST = 5  # contacts that may change at one point
_SINGULAR = 1e-9  # of the largest singular value: below it derivatives have more than one null vector
_CLOSED = 1e-7  # of lengths: gaps that `nsds.equilibrium` may leave
_SMALL = 1e-3  # of the lengths: smaller coordinates have no scale of their own
_RELATIONS = "lagrangian_linear_relation", "scleronomous", "rheonomous"


def continue_equilibrium(system, *, parameter, until, step=0.02, smallest_step=1e-7, max_points=500, tol=1e-12):
    """The path of static equilibria through a system's state over a parameter, through folds and changes of its contacts.

    The path is quasi-static: a sticking contact stays where it began to stick, a slipping one has the friction against its motion.

    Parameters
    ----------
    system : numpy.ndarray
        A record of Lagrangian systems. The path begins at the equilibrium that `nsds.equilibrium` finds from it.
    parameter : str
        The parameter, as ``"truss.fext[0]"``: of systems, interactions and laws.
    until : float
        Value at which the path ends; it also ends where it is back at the first value.
    step, smallest_step : float
        First, and smallest, distance of points, as a fraction of the interval from the first value to ``until``.
    max_points : int
        Points at most, special ones included.
    tol : float
        Residual at which a point is accepted: of forces relative to the largest, of gaps to lengths.

    Returns
    -------
    numpy.ndarray (points,)
        parameter; q (n,); y and lambda (m,), the outputs and the forces of all interactions in the order of the record; stiffness, the
        least eigenvalue of the stiffness of what contacts leave free, above 0 where the equilibrium is stable (without friction; infinity
        where nothing is free); kind; contact, the names of those that change; turns, whether the parameter turns there (a nonsmooth fold;
        else the path persists); residual; n_iter; status. Kinds of special points, located to rounding: "closes", "opens", "slips" and
        "sticks" of contacts, "fold", "branch_point" (another path crosses); of the last point "until", or "lost" where no state of the
        contacts goes on. Else empty. Where a load comes to what friction alone holds, the path goes on at that value: places are all the
        same there.

    Raises
    ------
    ValueError, TypeError
        Arguments that do not fit; no equilibrium at the start; laws and relations that are not treated: those but newton_impact,
        newton_impact_friction in the plane, dry_friction and equality, on functions of q.

    Examples
    --------
    A mass on a spring is drawn to a stop, which it reaches at a force of 2, and leaves again:

    >>> import nsds
    >>> system = nsds.system(
    ...     mass=nsds.lagrangian_linear(M=[[1.0]], K=[[4.0]], fext=[0.0], q=[0.0], v=[0.0]),
    ...     stop=nsds.interaction(nsds.lagrangian_linear_relation(H=[[-1.0]], b=[0.5]), nsds.newton_impact(0.0), on="mass"),
    ... )
    >>> path = nsds.continue_equilibrium(system, parameter="mass.fext[0]", until=3.0)
    >>> (closes,) = path[path["kind"] == "closes"]
    >>> round(float(closes["parameter"]), 9), path["lambda"][-1].round(9).tolist()
    (2.0, [1.0])
    """
    # 1. arguments
    owner = "continue_equilibrium"
    record, parameter = one_record(owner, system), _checks.text(owner, "parameter", parameter)
    until, tol = _checks.number(owner, "until", until), _checks.number(owner, "tol", tol, above=0.0)
    step = _checks.number(owner, "step", step, 0.0, 1.0, above=0.0)
    smallest_step = _checks.number(owner, "smallest_step", smallest_step, 0.0, step, above=0.0)
    max_points = _checks.integer(owner, "max_points", max_points, low=2)
    # 2. the equilibrium at the first value, then the path
    statics = _Statics(owner, record, parameter)
    valid(owner, statics.at(until))
    if until == statics.value:
        raise ValueError(f"{owner}: until must differ from the value {until} of {parameter!r}, where the path begins")
    return _followed(owner, statics, until, tol, step, smallest_step, max_points)


class _Contact(NamedTuple):
    """A unilateral contact, with friction or without, dry friction, or an equation: rows of lambda, -1 where there is none."""

    name: str
    normal: int
    tangent: int
    is_equation: bool

    def states(self):
        """All states that the contact may have."""
        if self.is_equation:
            return (HELD,)
        if self.tangent < 0:
            return OPEN, HELD
        return (OPEN, HELD, SLIP_UP, SLIP_DOWN) if self.normal >= 0 else (HELD, SLIP_UP, SLIP_DOWN)


class _Statics:
    """Forces on the coordinates, and outputs, of a record as functions of a parameter."""

    def __init__(self, owner, record, path):
        # 1. only Lagrangian systems: their coordinates are a vector space, in which secants make sense
        if family(model_of(record)) != LAGRANGIAN:
            raise ValueError(f"{owner}: expected a record of Lagrangian systems; state bodies by nsds.lagrangian")
        self.parameter, self.name, self.t = Parameter(owner, label_of([path]), record, path), path, record["t"].reshape(1)
        self.value = self.parameter.of(record)
        # 2. coordinates of each system, numbered one after the other
        systems, interactions, _ = split(model_of(record))
        self.parts, self.places, self.sides, self.contacts, n, m = [], {}, [], [], 0, 0
        for name, kind in systems:
            for e, part in enumerate(record[name].reshape(-1)):
                self.places[name, e] = np.arange(n, n + part["q"].size)
                self.parts.append((name, e, kind, self.places[name, e]))
                n += part["q"].size
        # 3. coordinates and rows of lambda of each interaction, and its contacts
        for name, relation, law, *sides in interactions:
            if relation not in _RELATIONS or not _is_treated(LAWS[law].treatment):
                raise ValueError(f"{owner}: '{name}': {relation} with {law} is not treated; see nsds.equilibrium at single values")
            for e, chosen in enumerate(elements_of(record, name, len(sides))):
                own = record[name].reshape(-1)[e]["lambda"].size
                at = np.concatenate([self.places[side, element] for side, element in zip(sides, chosen, strict=True)])
                self.sides.append((name, e, relation, at, np.arange(m, m + own)))
                label = f"{name}[{e}]" if record[name].shape else name
                self.contacts += _contacts_of(owner, label, law, record.dtype[name].base, own, m)
                m += own
        # 4. the equilibrium at the first value
        self.n, self.m, self.record = n, m, equilibrium(record)
        self.q = np.concatenate([self.record[name].reshape(-1)["q"][e] for name, e, *_ in self.parts])
        forces = [self.record[name].reshape(-1)[e]["lambda"].reshape(-1) for name, e, *_ in self.sides]
        self.lam = np.concatenate([np.zeros(0), *forces])

    def at(self, value):
        """The record with another value of the parameter."""
        return self.parameter.put(self.record.reshape(1).copy(), value).reshape(())

    def applied(self, record, q):
        """Forces (rows, n) at rest at q (rows, n), without those of interactions."""
        out, t = np.zeros(q.shape), np.repeat(self.t, len(q))
        for name, e, kind, at in self.parts:
            part, own = record[name].reshape(-1)[e], q[:, at]
            # functions and constants at zero velocity, spring, control
            rest, names = np.zeros(own.shape), part.dtype.names
            for field, sign in (("fext", 1.0), ("fint", -1.0), ("fgyr", -1.0)):
                if field in names:
                    out[:, at] += sign * along(part, kind, field, (at.size,), t, own, rest)
            if "K" in names:
                out[:, at] -= times(own, part["K"])
            if "u" in names:
                size = n_u(part)
                u = along(part, kind, "u", (size,), t, own, rest)
                T = along(part, kind, "T", (at.size, size), t, own, rest) if "T" in names else np.eye(at.size)
                out[:, at] += np.einsum("...ij,kj->ki", T, u) if T.ndim == 2 else np.einsum("kij,kj->ki", T, u)
        return out

    def pressed(self, record, q, lam):
        """``H^T lambda`` (rows, n)."""
        out, t = np.zeros(q.shape), np.repeat(self.t, len(q))
        for name, e, relation, at, rows in self.sides:
            out[:, at] += generalised(record[name].reshape(-1)[e], relation, t, q[:, at], lam[:, rows])
        return out

    def outputs(self, record, q):
        """y (rows, m)."""
        out, t = np.zeros((len(q), self.m)), np.repeat(self.t, len(q))
        for name, e, relation, at, rows in self.sides:
            part, own = record[name].reshape(-1)[e], q[:, at]
            if relation == "lagrangian_linear_relation":
                H = stored_sparse(part["H"], at.size).toarray() if part["H"].dtype.names else part["H"]
                out[:, rows] = own @ H.T + (part["b"] if "b" in part.dtype.names else 0.0)
            else:
                out[:, rows] = along(part, relation, "h", (rows.size,), t, own, np.zeros((len(q), rows.size)))
        return out

    def friction(self, record):
        """Friction parameter of each contact: mu, a limit, or 0."""
        numbers = []
        for name, e, _, _, rows in self.sides:
            part = record[name].reshape(-1)[e]
            count = sum(rows[0] <= max(one.normal, one.tangent) <= rows[-1] for one in self.contacts)
            field = next((field for field in ("mu", "limit") if field in part.dtype.names), None)
            numbers.append(np.zeros(count) if field is None else np.resize(part[field].reshape(-1), count))
        return np.concatenate([np.zeros(0), *numbers])


def _is_treated(form):
    """Whether laws of a form have states by which paths go on: equations, contacts, friction in the plane or of a given strength."""
    return not (form.rolls or form.impact or form.is_given or form.is_cone or form.bounds == ANY)


def _contacts_of(owner, name, law, dtype, m, first):
    """`_Contact`s of one interaction of m rows, numbered from ``first``."""
    form, width = LAWS[law].treatment, rows_of_contact(law, dtype)
    if form.has_friction and width != 2:
        raise ValueError(f"{owner}: '{name}': friction in space is not treated; state the contact in its plane")
    result = []
    for k, row in enumerate(range(first, first + m, width if form.has_friction else 1)):
        label = f"{name} {k}" if m > width else name
        if form.has_friction:
            result.append(_Contact(label, row, row + 1, False))
        else:
            is_dry = form.bounds == FINITE
            result.append(_Contact(label, -1 if is_dry else row, row if is_dry else -1, form.is_equation))
    return result


class _Returned(NamedTuple):
    """Quantities at a point of the path."""

    impacts: np.ndarray  # zero: field of orbits that `Path` reads
    q: np.ndarray
    y: np.ndarray
    lam: np.ndarray
    stiffness: float
    residual: float


class _Branch(Path):
    """A path with fixed states of all contacts: u = (q, lambda of active constraints, parameter), in units of their scales."""

    def __init__(self, statics, states, anchors, scales, until, tol):
        self.statics, self.states, self.anchors, self.scales = statics, states, anchors, scales
        held = []  # rows of lambda that are unknown, each with the row whose output is constant
        for contact, state in zip(statics.contacts, states, strict=True):
            if contact.normal >= 0 and state != OPEN:
                held.append(contact.normal)
            if contact.tangent >= 0 and state == HELD:
                held.append(contact.tangent)
        self.held, self.n = np.array(held, int), statics.n + len(held)
        first = np.array([statics.value])
        super().__init__(self, first, until - first, tol, np.concatenate([scales.q, np.full(len(held), scales.force)]))

    def unknown(self, q, lam, share):
        """u of a point."""
        return np.append(np.concatenate([q, lam[self.held]]) / self.scale, share)

    def _forces(self, friction):
        """lambda = base + T (lambda of active constraints): (base, T)."""
        s, contacts = self.statics, zip(self.statics.contacts, self.states, friction, strict=True)
        base, T = np.zeros(s.m), np.zeros((s.m, self.held.size))
        # slip: the tangential force is mu times the normal one, or the limit of dry friction
        T[self.held, np.arange(self.held.size)] = 1.0
        for contact, state, mu in contacts:
            if state in _SIGN and contact.normal >= 0:
                T[contact.tangent] = _SIGN[state] * mu * T[contact.normal]
            elif state in _SIGN:
                base[contact.tangent] = _SIGN[state] * mu
        return base, T

    def _residual(self, record, q, held):
        """Unbalanced forces (rows, n) and outputs of active constraints less their anchors, at q (rows, n)."""
        s = self.statics
        base, T = self._forces(s.friction(record))
        lam = np.repeat((base + T @ held)[None], len(q), axis=0)
        y = s.outputs(record, q)
        return s.applied(record, q) + s.pressed(record, q, lam), y[:, self.held] - self.anchors[self.held], y, lam[0], T

    def equations(self, u):
        """See `nsds.analysis.paths.Path`."""
        s, n, (state, values) = self.statics, self.statics.n, self.parts(u)
        # 1. derivatives by the coordinates: central differences of forces and outputs
        q, held, value, widths = state[:n], state[n:], values[0], DIFFERENCE * self.scales.q
        around = np.concatenate([q[None], q + np.diag(widths), q - np.diag(widths)])
        forces, off, y, lam, T = self._residual(s.at(value), around, held)
        by_q = [(each[1 : n + 1] - each[n + 1 :]).T / (2.0 * widths) for each in (forces, off)]
        # 2. by lambda: its forces are linear, so that these are exact
        presses = s.pressed(s.at(value), np.repeat(q[None], self.held.size, axis=0), T.T).T
        # 3. by the parameter
        delta = DIFFERENCE * max(abs(self.span[0]), abs(value))
        low, high = (self._residual(s.at(value + side * delta), q[None], held)[:2] for side in (-1.0, 1.0))
        by_value = [(b[0] - a[0]) / (2.0 * delta) for a, b in zip(low, high, strict=True)]
        # 4. rows and columns in units of the scales
        upper = np.column_stack([by_q[0] * self.scales.q, presses * self.scales.force, by_value[0] * self.span]) / self.scales.force
        lower = np.column_stack([by_q[1] * self.scales.q, np.zeros((self.held.size,) * 2), by_value[1] * self.span]) / self.scales.length
        F = np.concatenate([forces[0] / self.scales.force, off[0] / self.scales.length])
        derivatives = np.vstack([upper, lower])
        if not (np.isfinite(F).all() and np.isfinite(derivatives).all()):
            return None, None, None
        returned = _Returned(np.zeros(1), q, y[0], lam, _stiffness(by_q), abs(F).max())
        return returned, F, derivatives

    def tests(self, u, returned, derivatives, direction):
        """Test functions, which are zero at special points; those of contacts must not be negative."""
        crossing = np.linalg.det(np.vstack([derivatives, direction]))
        return np.array([direction[-1], crossing, *(number for _, number in self.margins(u, returned, direction))])

    def margins(self, u, returned, direction):
        """(number of a contact, quantity that must not be negative) of all contacts, in units of the scales."""
        s, value = self.statics, self.parts(u)[1][0]
        record, result = s.at(value), []
        friction, slides = s.friction(record), None
        for k, (contact, state) in enumerate(zip(s.contacts, self.states, strict=True)):
            if contact.is_equation:
                continue
            # open: the gap
            if state == OPEN:
                result.append((k, returned.y[contact.normal] / self.scales.length))
                continue
            # closed: the normal force
            pressure = returned.lam[contact.normal] if contact.normal >= 0 else 1.0
            if contact.normal >= 0:
                result.append((k, pressure / self.scales.force))
            # slip: its speed along the path must be against the friction force
            if state in _SIGN:
                if slides is None:
                    way = DIFFERENCE * direction[: s.n] * self.scales.q
                    slides = np.diff(s.outputs(record, np.array([returned.q - way, returned.q + way])), axis=0)[0] / (2.0 * DIFFERENCE)
                result.append((k, -_SIGN[state] * slides[contact.tangent] / self.scales.length))
            # stick: distance to the friction limit
            elif contact.tangent >= 0:
                result.append((k, (friction[k] * pressure - abs(returned.lam[contact.tangent])) / self.scales.force))
        return result


class _Scales(NamedTuple):
    """Units of coordinates (n,), gaps and forces."""

    q: np.ndarray
    length: float
    force: float


def _scales_of(statics, until):
    """`_Scales` of a path: forces are those at both its ends."""
    q, record = statics.q[None], statics.record
    applied = [abs(statics.applied(one, q)).max() for one in (record, statics.at(until))]
    length = max(abs(q).max(), abs(statics.outputs(record, q)).max(initial=0.0)) or 1.0
    force = max(*applied, abs(statics.lam).max(initial=0.0)) or 1.0
    return _Scales(np.maximum(scale_of(q[0]), _SMALL * length), length, force)


def _stiffness(by_q):
    """Least eigenvalue of the stiffness on the null space of the active constraints."""
    forces, outputs = by_q
    # 1. null space of the outputs of active constraints
    free = np.eye(forces.shape[1])
    if len(outputs):
        _, values, rows = np.linalg.svd(outputs)
        free = rows[(values > _SINGULAR * max(values.max(), 1e-300)).sum() :].T
    if free.shape[1] == 0:
        return math.inf
    # 2. symmetric part of the stiffness there
    K = -free.T @ forces @ free
    return float(np.linalg.eigvalsh(0.5 * (K + K.T))[0])


def _followed(owner, statics, until, tol, step, smallest, max_points):
    """The table of the path."""
    # 1. states of the contacts at the start; those at a limit may change at once
    scales, y = _scales_of(statics, until), statics.outputs(statics.record, statics.q[None])[0]
    make = lambda states, anchors: _Branch(statics, states, anchors, scales, until, tol)  # noqa: E731
    lam, gaps = statics.lam / scales.force, y / scales.length
    at_start, weak, mu = [], {}, statics.friction(statics.record)
    for k, contact in enumerate(statics.contacts):
        at_start.append(_first_state(contact, gaps, lam, mu[k]))
        choices = _choices(contact, at_start[-1], gaps, lam, mu[k], _CLOSED)
        weak |= {k: choices} if len(choices) > 1 else {}
    anchors = np.where(_tangents(statics), y, 0.0)
    # 2. direction in which the path begins
    branch, point = _onward(make, at_start, anchors, weak, (statics.q, statics.lam, 0.0), None, step)
    if point is None:
        raise ValueError(f"{owner}: no path leads on from the equilibrium at {statics.name} = {statics.value} towards {until}")
    points, kinds, names, turns, way = [(branch, point)], [""], [""], [False], step

    def add(branch, point, kind="", name="", turned=False):
        points.append((branch, point))
        kinds.append(kind)
        names.append(name)
        turns.append(turned)

    while len(points) < max_points and kinds[-1] not in ("until", "lost"):
        # 3. next point; at the first inequality that is violated the path ends at its zero instead
        new, way = branch.next(point, way, smallest)
        if new is None:
            kinds[-1] = kinds[-1] or "lost"
            break
        event = _first_event(branch, point, new)
        if event is not None:
            new = event[0]
        # 4. folds and branch points up to there
        for k, kind in ((_FOLD, "fold"), (_CROSSING, "branch_point")):
            special = branch.located(point, new, k)[0] if point.tests[k] * new.tests[k] < 0.0 else None
            if special is not None and 0.0 <= special.u[-1] <= 1.0:
                add(branch, special, kind)
        # 5. end of the interval, or an ordinary point
        if event is None and new.u[-1] in (0.0, 1.0):
            add(branch, new, "until")
            break
        if event is None:
            add(branch, new)
            longest = LONGEST * step * max(1.0, np.linalg.norm(new.u))  # what is far from the start has its own size
            point, way = new, max(smallest, min(way * (GROWTH if new.n_iter <= FAST else 1.0), longest))
            continue
        # 6. change of contacts: the states that lead on, with anchors of new sticking contacts where they are now
        changed = _changed(branch, new, event[1])
        anchors = np.where(_tangents(statics), new.returned.y, 0.0)
        after, ahead = _onward(make, branch.states, _kept_anchors(branch, anchors), changed, _at(new), (branch, new.direction), step)
        if ahead is None:
            add(branch, new, "lost", ", ".join(statics.contacts[k].name for k in changed))
            break
        kind, who = _what_changed(statics, branch.states, after.states)
        add(branch, new, kind, who, bool(ahead.direction[-1] * new.direction[-1] < 0.0))
        branch, point, way = after, ahead, max(smallest, way)
    return _table(points[:max_points], kinds, names, turns)


def _at(point):
    """(q, lambda, fraction of the interval) of a point."""
    return point.returned.q, point.returned.lam, point.u[-1]


def _tangents(statics):
    """Rows of friction."""
    result = np.zeros(statics.m, bool)
    result[[one.tangent for one in statics.contacts if one.tangent >= 0]] = True
    return result


def _kept_anchors(branch, anchors):
    """Anchors of a new branch: contacts that already stick keep theirs."""
    sticks = [one.tangent for one, state in zip(branch.statics.contacts, branch.states, strict=True) if one.tangent >= 0 and state == HELD]
    result = anchors.copy()
    result[sticks] = branch.anchors[sticks]
    return result


def _first_state(contact, gaps, lam, mu):
    """State of a contact in an equilibrium, from outputs and forces in units of their scales."""
    if contact.is_equation:
        return HELD
    if contact.normal >= 0 and gaps[contact.normal] > _CLOSED:
        return OPEN
    if contact.tangent < 0:
        return HELD
    limit = mu * (lam[contact.normal] if contact.normal >= 0 else 1.0)
    if contact.normal >= 0 and abs(lam[contact.tangent]) >= limit * (1.0 - _CLOSED) > 0.0:
        return SLIP_UP if lam[contact.tangent] > 0.0 else SLIP_DOWN
    return HELD


def _choices(contact, state, gaps, lam, mu, small):
    """States in which a contact may continue from these outputs and forces, in units of their scales."""
    if contact.is_equation or (state == OPEN and gaps[contact.normal] > small):
        return (state,)
    if contact.normal >= 0 and lam[contact.normal] <= small:
        return contact.states()
    if contact.tangent < 0:
        return (state,)
    limit = mu * (lam[contact.normal] if contact.normal >= 0 else 1.0)
    if contact.normal >= 0 and abs(lam[contact.tangent]) < limit - small:
        return (state,)
    return HELD, (SLIP_UP if lam[contact.tangent] > 0.0 else SLIP_DOWN)


def _first_event(branch, a, b):
    """(first point from a to b where a quantity that must not be negative is zero, number of its contact), or None."""
    who, found = [k for k, _ in branch.margins(b.u, b.returned, b.direction)], []
    for k in np.flatnonzero(b.tests[_N:] < 0.0):
        if a.tests[_N + k] <= 0.0:
            found.append((0.0, a, who[k]))
            continue
        special, _ = branch.located(a, b, _N + k)
        if special is not None:
            found.append(((special.u - a.u) @ a.direction, special, who[k]))
    return min(found, key=lambda one: one[0])[1:] if found else None


def _changed(branch, point, k):
    """{contact: states in which it may continue} at a special point of contact k."""
    s, scales, returned = branch.statics, branch.scales, point.returned
    gaps, lam, mu = returned.y / scales.length, returned.lam / scales.force, s.friction(s.at(branch.parts(point.u)[1][0]))
    result = {}
    for j, contact in enumerate(s.contacts):
        choices = _choices(contact, branch.states[j], gaps, lam, mu[j], _WEAK)
        if j == k and len(choices) == 1:  # at rest between both directions of slip, or located less well
            choices = (HELD, branch.states[j]) if branch.states[j] in _SIGN else contact.states()
        if len(choices) > 1:
            result[j] = choices
    return result


def _onward(make, states, anchors, changed, at, incoming, step):
    """(branch, its point just behind a special point, with its direction), or (None, None).

    Of all states of the contacts that may change those are accepted in which no inequality is violated a little farther on; of
    several the one whose direction is most like that of the incoming path, and not back on it.
    """
    best = None, None, -math.inf
    if len(changed) > _MOST:
        return best[:2]
    # 1. all combinations of states of the contacts that may change
    for choice in product(*changed.values()):
        new = list(states)
        for k, state in zip(changed, choice, strict=True):
            new[k] = state
        branch = make(new, anchors)
        u = branch.unknown(*at)
        _, F, derivatives = branch.equations(u)
        if F is None:
            continue
        # 2. tangent at the special point; a second null vector would leave it undetermined
        values, rows = np.linalg.svd(derivatives)[1:]
        if values.size and values[-1] <= _SINGULAR * values[0]:
            continue
        # 3. both directions: a point a little ahead must satisfy all inequalities
        for direction in (rows[-1], -rows[-1]):
            likeness = _likeness(branch, direction, incoming)
            is_back = incoming is not None and new == incoming[0].states and likeness < 0.0
            if is_back or (incoming is None and direction[-1] <= 0.0):
                continue
            ahead = branch.corrected(u + _AHEAD * step * direction, direction, direction)
            if ahead is None or any(
                number < -_WEAK * _AHEAD * step for k, number in branch.margins(ahead.u, ahead.returned, ahead.direction)
            ):
                continue
            if likeness > best[2]:
                best = branch, ahead, likeness
    return best[:2]


def _likeness(branch, direction, incoming):
    """Cosine between two directions of (q, parameter); without an incoming path, that with the parameter."""
    n = branch.statics.n
    own = np.append(direction[:n], direction[-1])
    if incoming is None:
        return direction[-1] / np.linalg.norm(own)
    before = np.append(incoming[1][:n], incoming[1][-1])
    return own @ before / (np.linalg.norm(own) * np.linalg.norm(before))


def _what_changed(statics, before, after):
    """(kind of the change of the first contact that changes, names of all that do)."""
    who = [k for k, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    if not who:
        return "", ""
    a, b = before[who[0]], after[who[0]]
    kind = "closes" if a == OPEN else "opens" if b == OPEN else "sticks" if b == HELD else "slips"
    return kind, ", ".join(statics.contacts[k].name for k in who)


def _table(points, kinds, names, turns):
    statics = points[0][0].statics
    fields = [("parameter", "<f8"), ("q", "<f8", (statics.n,)), ("y", "<f8", (statics.m,)), ("lambda", "<f8", (statics.m,)),
              ("stiffness", "<f8"), ("kind", "U16"), ("contact", f"U{max(1, *map(len, names))}"), ("turns", "?"), ("residual", "<f8"),
              ("n_iter", "<i8"), ("status", "<i8")]  # fmt: skip
    rows = np.zeros(len(points), fields)
    for row, (branch, point), kind, name, turned in zip(rows, points, kinds, names, turns, strict=False):
        returned = point.returned
        row["parameter"] = branch.parts(point.u)[1][0]
        row["q"], row["y"], row["lambda"] = returned.q, returned.y, returned.lam
        row["stiffness"], row["residual"], row["n_iter"], row["status"] = returned.stiffness, returned.residual, point.n_iter, CONVERGED
        row["kind"], row["contact"], row["turns"] = kind, name, turned
    return rows
