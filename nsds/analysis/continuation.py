"""Branches of periodic orbits over a parameter, by pseudo-arclength, and the special points on them."""

import math
from contextlib import ExitStack, closing
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.analysis.maps import section_of
from nsds.analysis.orbits import filled, newton, orbit_dtype, refuse, require_run
from nsds.analysis.paths import (
    BEND,
    DIFFERENCE,
    FAST,
    GROWTH,
    JUMPS,
    LOCATED,
    LONGEST,
    ROUNDING,
    SECANTS,
    STRAY,
    UNKNOWN,
    ZERO,
    Path,
    Point,
    has_complex_pair,
    in_order,
    is_isolated,
    scale_of,
    tests_of_maps,
)
from nsds.analysis.sections import difference
from nsds.results.description import result_dtype

_KINK = 4.0  # steps: allowed distance of a point from its prediction beyond the border of a map
_NEAR = 8.0  # smallest steps: distance to a corner or border within which it is the reason why a branch is lost
_SHARES = (0.9, 0.5) * 16  # fractions of the remaining distance, one step after the other
_AWAY = 1e-7  # of the branch: distance from a border at which derivatives are evaluated
_GRAZES = 0.2  # of the first step: distance to zero speed of the slowest impact within which a lost branch ends by grazing
_BEGUN, _NARROWED = 0.5, 12  # of a branch that leaves another: allowed distance of its first point from the prediction; halvings of it
_LEAVE = {"period_doubling": 2, "branch_point": 1}  # points at which branches leave, and their multiple of the period
_FASTER = 1.25  # ratio of speeds of the points from which speeds are extrapolated
_FADES, _LEAST_FADE = 12, 0.1  # points towards a grazing; fraction of the speed before
_AT_SECTION = 1e-2  # of an orbit: distance of an impact from the time of the section at which it may be why a branch is lost
_APART = 1e-5  # of the branch: distance of points that define a direction
_PROBES, _SETTLES = (64.0, 128.0), 16  # smallest steps beyond the end of a branch; orbits after which friction has brought motions to rest
_CRAWLS, _FADED = 1e-2, 1e-2  # of the first step: shorter ones may lead to a grazing without end; of the speed that remains there
KINDS = ("fold", "period_doubling", "neimark_sacker", "branch_point")  # and "corner" of systems, "border" of maps
_N, _CROSSING = len(KINDS), KINDS.index("branch_point")


def continue_orbit(system, *, parameter, until, period=None, n_periods=1, step=0.02, smallest_step=1e-7, max_points=500, tol=1e-12,
                   corners=(), switch=0, scheme=None):  # fmt: skip
    """The branch of periodic orbits through a system's state over a parameter, through folds, with its special points.

    On request also the branches that leave it.

    Parameters
    ----------
    system, n_periods, scheme
        See `nsds.orbit`, by which the first orbit is found from the state of the system.
    parameter : str
        The parameter, as ``"follower.z[0]"``, of maps as ``"p[0]"``.
    until : float
        Value at which the branch ends; it also ends where it is back at the first value.
    period : float, or function of the parameter
        Of the excitation of the system. Cycles of autonomous systems are refused: their period changes with the parameter.
    step, smallest_step : float
        First, and smallest, distance of points, as a fraction of the interval from the first value to ``until``.
    max_points : int
        Points of a branch at most, special ones included.
    tol : float
        Difference between end and start of an orbit, relative to 1 or the state, at which a point is accepted; also one that no longer
        falls for rounding.
    corners : array_like (k,)
        Phases, as fractions of the period from the system's time on, at which the excitation has corners: impacts at these times are
        special.
    switch : int
        0: one branch. 1: also the branches that leave it at period doublings, and at the points at which branches of the same period
        cross, as of symmetric systems that lose their symmetry (pitchforks); 2: also those that leave these, and so on.

    Returns
    -------
    numpy.ndarray (points,)
        The fields of `nsds.orbit` with the value of the parameter; branch, its number, in the order in which they are found from 0 on;
        and kind. Of special points, located to rounding of what derivatives are known to: "fold", "period_doubling", "neimark_sacker",
        "branch_point" (another branch crosses), "stick" of mechanical systems and "sliding" of others (a phase of sticking, or of
        sliding, begins or ceases, or a pair of switches: the number of events changes, and not that of impacts; multipliers are those
        before it), "corner" or, of maps in pieces, "border" (a point of the orbit is where another piece begins; multipliers are those
        before it), or "jump": multipliers jump there past what would be one of the first four, as where an impact comes to a corner
        that ``corners`` does not name, or orbits between two points are not found. Of the last point "until", "max_points", "corner" or
        "border" where the branch folds or ends there, "grazing" where it ends because a contact begins or ceases with speed 0, "rest"
        where it ends in a continuum of orbits, as where friction holds what has moved, or "lost", where orbits are no longer found for
        another reason. A branch that leaves another begins at the special point, "leaves", and may end where it is back on it,
        "rejoins". Else empty.

    Raises
    ------
    ValueError
        No orbit is found at the start, or a continuum of them, or nothing drives the system.

    Notes
    -----
    Orbits are found over a section at the system's time. Where an impact comes to that time, the branch goes on over a section at another
    time; rows are at the system's own time nevertheless.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> def bounce(x, p, out):
    ...     out[0], out[1] = x[0] + x[1], 0.5 * x[1] - p[0] * np.cos(x[0] + x[1])
    >>> start = [-np.arccos(-np.pi / 4), 2 * np.pi]  # one bounce a period of the table
    >>> table = nsds.iterated_map(bounce, x=start, p=[4.0], modulo=[2 * np.pi, 0])
    >>> branch = nsds.continue_orbit(table, parameter="p[0]", until=5.0)
    >>> doubling = branch[branch["kind"] == "period_doubling"]["parameter"]  # 2 sqrt(pi² (1 - a)² + (1 + a)²), a = 0.5
    >>> bool(abs(doubling - 2 * np.hypot(np.pi / 2, 1.5)).max() < 1e-8)
    True
    """
    # 1. arguments
    owner = "continue_orbit"
    parameter = _checks.text(owner, "parameter", parameter)
    until, tol = _checks.number(owner, "until", until), _checks.number(owner, "tol", tol, above=0.0)
    step = _checks.number(owner, "step", step, 0.0, 1.0, above=0.0)
    smallest_step = _checks.number(owner, "smallest_step", smallest_step, 0.0, step, above=0.0)
    max_points = _checks.integer(owner, "max_points", max_points, low=2)
    corners = _checks.array(owner, "corners", corners, n_dims=1)
    switch, steps = _checks.integer(owner, "switch", switch, low=0), _Steps(step, smallest_step, LONGEST * step)
    with ExitStack() as opened:
        # 2. the first orbit, by Newton's method from the state of the system
        section = opened.enter_context(closing(section_of(owner, system, period, n_periods, scheme, [parameter])))
        if until == section.values[0]:
            raise ValueError(f"{owner}: until must differ from the value {section.values[0]} of {parameter!r}, where the branch begins")
        section.require_parameters()
        section.require(0, until)
        x, returned, residual, _ = newton(section, section.x, section.values, tol, 30)
        if not residual <= max(tol, ROUNDING):
            refuse(owner, section, x, returned, residual)
        require_run(owner, returned, x)
        section.require_branch(x, section.values)
        section.require_drive(x, section.values)
        # 3. the branch, then those that leave it, generation by generation
        first = _Branch(section, scale_of(x, returned.maps[0]), until, tol, corners)
        found = leave = [_pieces(first, first.begun(owner, x), steps, max_points)]
        for _ in range(switch):
            leave = [one for before in leave for one in _that_leave(before, opened, steps, max_points)]
            found = found + leave
        # 4. one table, with the number of each branch
        tables = [np.concatenate([piece.table() for piece in pieces]) for pieces in found]
    for k, rows in enumerate(tables):
        rows["branch"] = k
    return np.concatenate(tables)


class _Piece(NamedTuple):
    """Part of a branch over one section: its points and their kinds; the first n_before of them are also in the piece before."""

    branch: object
    points: list
    kinds: list
    n_before: int

    def table(self):
        return self.branch.table(self.points[self.n_before :], self.kinds[self.n_before :])


class _Steps(NamedTuple):
    """Steps along a branch: the first, the smallest and the longest."""

    first: float
    smallest: float
    longest: float


def _pieces(branch, point, steps, max_points, origin=None):
    """Pieces of a branch from its first point on; origin: the special point at which it has left another one."""
    points, kinds = ([point], [""]) if origin is None else ([origin, point], ["leaves", ""])
    found, room, onward = [], max_points, (branch, points, kinds)
    while onward is not None:
        branch, points, kinds = onward
        n_before = 1 if found else 0
        points, kinds, onward = branch.followed(points, kinds, steps, room + n_before)
        found.append(_Piece(branch, points, kinds, n_before))
        room -= len(points) - n_before
    return found


def _that_leave(pieces, opened, steps, max_points):
    """Yields the pieces of each branch that leaves another, except where one that left it has returned."""
    for branch, points, kinds, n_before in pieces:
        for point, kind in zip(points[max(n_before, 1) :], kinds[max(n_before, 1) :], strict=True):
            if kind in _LEAVE and not any(point is crossing.point for crossing in branch.rejoined):
                section = opened.enter_context(closing(branch.section.over(branch.section.n_periods * _LEAVE[kind])))
                for start in branch.leaving(point, kind, section, steps):
                    yield _pieces(start.branch, start.point, steps._replace(first=start.step), max_points, start.origin)


class _Start(NamedTuple):
    """Start of a branch that leaves another: its first point beside the special one, and the point to which it may return."""

    branch: object
    point: Point
    step: float
    origin: Point


class _Crossing(NamedTuple):
    """Special point at which branches leave, with its state and parameters at the system's own time."""

    point: Point
    x: np.ndarray
    values: np.ndarray


class _Branch(Path):
    """A branch, or a piece of it, and its scales: u = (x / scale, (parameter - first) / (until - first)).

    Pieces of one branch share the special points at which branches leave, and those at which they return.
    """

    def __init__(self, section, scale, until, tol, corners, parent=None, before=None):
        super().__init__(section, section.values, until - section.values, tol, scale)
        self.corners, self.parent = corners, parent
        self.crossings, self.rejoined = ([], []) if before is None else (before.crossings, before.rejoined)

    def begun(self, owner, x):
        """The point of the branch at the first value, where the state is x."""
        u, ahead = np.append(x / self.scale, 0.0), np.append(np.zeros(len(x)), 1.0)
        point = self.corrected(u, ahead, ahead)
        if point is None or not is_isolated(point):
            why = "no orbit is found there" if point is None else "others are as near as one likes, as where friction holds what could move"
            raise ValueError(f"{owner}: no branch begins at the state {x.tolist()}: {why}")
        return self.resolved(point)

    def resolved(self, point):
        """The point with derivatives as accurate as those of orbits."""
        rows, returned = self.section.rows, self.section.resolved(*self.parts(point.u), point.returned)
        if self.section.rows != rows:
            again = self.corrected(point.u, point.direction, point.direction)
            point = point if again is None else again
        return point._replace(returned=point.returned._replace(error=returned.error))

    def leaving(self, point, kind, section, steps):
        """Yields `_Start`s of the branches that leave this one at a special point, on a section of their period.

        They leave along the eigenvector of the multiplier -1, or along the second null vector of the derivatives. The first point lies
        in the plane across this at a distance, which excludes the present branch.
        """
        # 1. directions in which branches leave: both of a crossing, one of a period doubling, whose two halves are the same orbit
        if kind == "period_doubling":
            values, vectors = np.linalg.eig(point.returned.maps[0] * self.scale / self.scale[:, None])
            ways = [np.append(vectors[:, np.argmin(abs(values + 1.0))].real, 0.0)]
        else:
            *_, one, other = np.linalg.svd(self.equations(point.u)[2])[2]
            across = one if abs(one @ point.direction) < abs(other @ point.direction) else other
            ways = [across, -across]
        # 2. a first point beside the special one in each direction, nearer and nearer until Newton's method stays close to it
        branch = _Branch(section, self.scale, self.first + self.span, self.tol, self.corners, parent=self)
        returned, *_ = branch.equations(point.u)
        for way in ways:
            away = way - (way @ point.direction) * point.direction
            away /= np.linalg.norm(away)
            distance = steps.first
            for _ in range(_NARROWED):
                new = branch.corrected(point.u + distance * away, away, away)
                if new is not None and np.linalg.norm(new.u - point.u - distance * away) <= _BEGUN * distance:
                    yield _Start(branch, new, max(distance, steps.smallest), point._replace(returned=returned, n_iter=0))
                    break
                distance *= 0.5

    def followed(self, points, kinds, steps, max_points):
        """(points, their kinds, continuation over another section: the piece, its points and kinds, or None), from the first ones on."""
        points, kinds, point, way, onward = [*points], [*kinds], points[-1], [], None
        step, smallest, longest = steps
        # 1. next point
        while len(points) < max_points and kinds[-1] != "until":
            new, taken = self.next(point, step, smallest)
            # 2. no next point: another section, if an impact has come to the time of this one; else the reason for the end
            if new is None:
                onward = self._on_another_section(points, smallest) if not kinds[-1] and self._is_impact_at_section(points[-1]) else None
                if onward is None:
                    kinds[-1] = kinds[-1] or self._why_lost(points, way, smallest)
                if kinds[-1] == "lost":
                    onward = self._on_another_section(points, smallest)
                    kinds[-1] = "lost" if onward is None else ""
                break
            # 3. back on the branch that was left
            back = self._back_on(point, new)
            if back is not None:
                points.append(back)
                kinds.append("rejoins")
                break
            # 4. special points in between; where some are not found the step is repeated, half as long
            new = self.resolved(new)
            specials, is_known = self._specials(point, new)
            if not is_known and taken >= 2.0 * smallest:
                step = 0.5 * taken
                continue
            step = taken
            for kind, special in specials:
                points.append(special)
                kinds.append(kind)
            points.append(new)
            kinds.append("until" if new.u[-1] in (0.0, 1.0) else "")
            # 5. short steps: towards a grazing, which is extrapolated, as no number of steps reaches it
            way.append(step)
            end = self._where_events_fade(points, 0.0, smallest) if step <= _CRAWLS * way[0] and not kinds[-1] else None
            if end is not None:
                points[-1], kinds[-1] = end
                break
            # 6. step control
            point, step = new, max(smallest, min(step * (GROWTH if new.n_iter <= FAST else 1.0), longest))
        # 7. points at which other branches may leave, also in terms of the system's own time
        if len(points) >= max_points:
            points, kinds, onward = points[:max_points], kinds[:max_points], None
            kinds[-1] = kinds[-1] or "max_points"
        special = [one for one, kind in zip(points, kinds, strict=True) if kind in _LEAVE]
        self.crossings += [_Crossing(one, *self.section.home(*self.parts(one.u))[:2]) for one in special]
        return points, kinds, onward

    def _is_impact_at_section(self, point):
        times = self.section.impact_times(*self.parts(point.u))
        return any(min(time, 1.0 - time) <= _AT_SECTION for time in times)

    def _on_another_section(self, points, smallest):
        """Continuation of a branch over another section, with its points and kinds; None if there is none."""
        last, apart = points[-1], [one for one in points[:-1] if np.linalg.norm(one.u - points[-1].u) > _APART]
        # times of other sections, the best first; states of the last points there give the direction
        for part in self.section.other_times(*self.parts(last.u)):
            section, states = self.section.later(part, [self.parts(one.u) for one in [*apart[-1:], last]])
            if section is None:
                continue
            other = _Branch(section, self.scale, self.first + self.span, self.tol, self.corners, before=self)
            other.parent = self.parent
            ends = [np.append(x / other.scale, one.u[section.n :]) for x, one in zip(states, [*apart[-1:], last], strict=True)]
            towards = ends[-1] - ends[0] if apart else np.append(np.zeros(section.n), math.copysign(1.0, last.direction[-1]))
            # the point must lead on, or the new section has the same difficulty
            first = other.corrected(ends[-1], towards / np.linalg.norm(towards), towards)
            if first is not None and other.next(first, 16.0 * smallest, smallest)[0] is not None:
                return other, [first], [""]
        return None

    def _back_on(self, a, b):
        """Point between two at which the branch returns to the one that it left, at a special point of that; None if it does not.

        No branch leaves there any more.
        """
        way = b.u - a.u
        for crossing in self.parent.crossings if self.parent is not None and a.tests[_CROSSING] * b.tests[_CROSSING] < 0.0 else ():
            u = np.append(self.section.away(crossing.x, crossing.values) / self.scale, crossing.point.u[self.section.n :])
            share = min(max((u - a.u) @ way / (way @ way), 0.0), 1.0)
            if np.linalg.norm(a.u + share * way - u) <= STRAY * np.linalg.norm(way):
                self.parent.rejoined.append(crossing)
                return b._replace(u=u, returned=self.equations(u)[0], n_iter=0)
        return None

    def may_bend(self, a, b, off):
        """Whether the branch may have a corner there: an impact at a corner of the excitation, or a point of a cycle at a border."""
        crosses = self.section.met == "border" and (a.tests[_N:] * b.tests[_N:] <= 0.0).any()
        return off <= STRAY or (off <= _KINK and crosses)

    def equations(self, u):
        """(result of the section, its residual in units of the scales, derivatives (n, n + 1) of that)."""
        x, values = self.parts(u)
        section = self.section
        returned, slope = section.with_slopes(x, values, DIFFERENCE * max(abs(self.span[0]), abs(values[0])))
        by_state = (returned.maps[0] - np.eye(section.n)) * self.scale / self.scale[:, None]
        derivatives = np.column_stack([by_state, slope * self.span / self.scale])
        if returned.status.any() or not np.isfinite(returned.ends).all() or not np.isfinite(derivatives).all():
            return returned, None, None
        return returned, difference(returned.ends[0], x, section.modulo) / self.scale, derivatives

    def tests(self, u, returned, derivatives, direction):
        """Test functions of special points, in the order of KINDS, then the margins of the section."""
        M = returned.maps[0]
        crossing = np.linalg.det(np.vstack([derivatives, direction]))
        doubles, pairs = tests_of_maps(M)[1:]
        return np.array([direction[-1], doubles, pairs, crossing, *self.section.margins(*self.parts(u), self.corners)])

    def _specials(self, a, b):
        """(special points between two points, in their order: [(kind, point), ...]; whether all are found)."""
        found, jumps = [], []
        # 1. tests that change sign, each located
        for k in range(len(a.tests) if len(a.tests) == len(b.tests) else _N):
            kind = KINDS[k] if k < _N else self.section.met
            if not (a.tests[k] * b.tests[k] < 0.0 or (b.tests[k] == 0.0 != a.tests[k])):
                continue
            if kind == "corner" and abs(a.tests[k] - b.tests[k]) > 0.25:  # half a period away from it phases come back from the other side
                continue
            if kind == "border":
                special = self._at_border(a, b, k)
                how = UNKNOWN if special is None else ZERO
            else:
                special, how = self.located(a, b, k)
            if how == UNKNOWN:
                return [("jump", b)], False
            if kind == "neimark_sacker" and not has_complex_pair(special):
                continue  # a saddle whose multipliers are real: nothing changes there
            found += [(np.linalg.norm(special.u - a.u), kind, special)] if how == ZERO else []
            jumps += [(np.linalg.norm(special.u - a.u), "jump", special)] if how == JUMPS and k < _N else []
        # 2. the number of events changes, and not that of impacts: a phase of sticking or sliding
        if a.returned.events[0] != b.returned.events[0] and a.returned.impacts[0] == b.returned.impacts[0]:
            special = self.where_events_change(a, b)
            if special is not None:
                found.append((np.linalg.norm(special.u - a.u), self.section.phases, special))
        return in_order(found, jumps), True

    def _at_border(self, a, b, k):
        """Point between two at which margin k is zero, from the side of the first: branches have kinks there."""
        way = (b.u - a.u) @ a.direction
        for halving in range(1, SECANTS):
            new = self.corrected(a.u + way * 0.5**halving * a.direction, a.direction, a.direction)
            if new is not None and 0.0 < new.tests[k] / a.tests[k] < 1.0:
                return self._crept(a, new, k)
        return None

    def _crept(self, a, b, k):
        """Point at which margin k, falling from a to b, is zero: approached from their side, then extrapolated.

        Its derivatives are those of the last point whose finite differences do not reach across.
        """
        # 1. approach by fractions of the remaining distance; derivatives are kept from points far enough away
        near = b.returned
        for share in _SHARES:
            new = self.corrected(b.u + share * _way_to_zero(a, b, k) * b.direction, b.direction, b.direction, tol=0.0)
            if new is not None and 0.0 < new.tests[k] / b.tests[k] < 1.0:
                a, b = b, new
                near = b.returned if _way_to_zero(a, b, k) > _AWAY else near
        # 2. extrapolate to the zero along the last secant
        tests = b.tests.copy()
        tests[k] = 0.0
        returned = b.returned._replace(maps=near.maps, log_det=near.log_det)
        return b._replace(u=b.u + _way_to_zero(a, b, k) / np.linalg.norm(b.u - a.u) * (b.u - a.u), returned=returned, tests=tests)

    def _why_lost(self, points, way, smallest):
        """Reason why the branch is lost (a corner, a border, a grazing contact, rest); its last point becomes that one."""
        # 1. a margin of the section at zero
        last, met = points[-1], self._met(points, smallest)
        if met is not None:
            points[-1] = met
            return self.section.met
        # 2. contacts beyond the end: one begins with speed 0
        beyond = [self.section.returns(*self._one(last.u + smallest * k * last.direction)) for k in _PROBES]
        if all(one.impacts[0] > last.returned.impacts[0] for one in beyond):
            points[-1] = self._before_contact(last, smallest)
            return "grazing"
        # 3. the slowest event fades; else orbits beyond that are not isolated
        end = self._where_events_fade(points, _GRAZES * max(way[0] if way else 0.0, 1e-3), smallest)
        if end is not None:
            points[-1] = end[0]
            return end[1]
        return "rest" if self._rests(last, smallest) else "lost"

    def _rests(self, last, smallest):
        """Whether motions from beyond a point settle to orbits that are not isolated."""
        u = last.u + _PROBES[0] * smallest * last.direction
        x, _ = self.parts(u)
        for _ in range(_SETTLES):
            at = np.append(x / self.scale, u[self.section.n :])
            returned, F, derivatives = self.equations(at)
            if F is None:
                return False
            if abs(F).max() <= ROUNDING:
                return np.linalg.svd(derivatives)[1][-1] <= ROUNDING
            x = returned.ends[0]
        return False

    def _where_events_fade(self, points, near, smallest):
        """(point at which the slowest event has zero speed, "grazing" or "rest") if orbits lead near it, or it is near; else None."""
        fading = self._fading(_spread(points))
        if fading is None:
            return None
        u, speeds = _at_speed(fading, 0.0), fading[-1].returned.slowest
        if speeds[0] > _FADED * points[-1].returned.slowest[0] and not np.linalg.norm(u - points[-1].u) <= near:
            return None
        end = fading[-1]._replace(u=u, returned=fading[-1].returned._replace(slowest=np.zeros_like(speeds)))
        if self._do_impacts_fade(fading):
            return end, "grazing"
        return (end, "rest") if self._rests(end, smallest) else None

    def _do_impacts_fade(self, fading):
        """Whether the slowest event is an impact, not an end of slip: then the least jump of a state falls with its speed."""
        jumps = [self.section.least_jump(*self.parts(one.u)) / one.returned.slowest[0] for one in (fading[0], fading[-1])]
        return 0.5 * jumps[0] < jumps[1] < 2.0 * jumps[0]

    def _before_contact(self, last, smallest):
        """Last point of a branch before a contact begins with speed 0, where no step of the smallest length leads on from ``last``.

        Up to there the branch is smooth, so that only bisection finds its end.
        """
        low, high, best = 0.0, smallest, last
        while high - low > LOCATED:
            middle = 0.5 * (low + high)
            new = self.corrected(last.u + middle * last.direction, last.direction, last.direction)
            if new is not None and new.returned.events[0] == last.returned.events[0] and new.direction @ last.direction >= BEND:
                low, best = middle, new
            else:
                high = middle
        return best

    def _fading(self, points):
        """Three points towards the end of a contact, each impact half as fast as the one before, as far as orbits are found.

        In terms of the speed the branch is smooth, though derivatives of the section are unbounded: points are predicted in it. None if
        speeds do not fall.
        """
        for _ in range(_FADES if len(points) == 3 else 0):
            speeds = [one.returned.slowest[0] for one in points]
            if not math.inf > speeds[0] > speeds[1] > speeds[2] > 0.0:
                return None
            predicted = _at_speed(points, 0.5 * speeds[2])
            along = (predicted - points[2].u) / np.linalg.norm(predicted - points[2].u)
            new = self.corrected(predicted, along, along)
            if new is None or new.returned.impacts[0] != points[2].returned.impacts[0]:
                break
            if not _LEAST_FADE * speeds[2] < new.returned.slowest[0] < 0.9 * speeds[2]:
                break
            points = [*points[1:], new]
        return points if len(points) == 3 else None

    def _met(self, points, smallest):
        """End of a branch at which a margin of its section is zero, or None: approached from this side, then extrapolated."""
        for k in range(_N, len(points[-1].tests) if len(points) > 1 and len(points[-1].tests) == len(points[-2].tests) else 0):
            if 0.0 <= _way_to_zero(*points[-2:], k) <= _NEAR * smallest:
                return self._crept(*points[-2:], k)
        return None

    def _one(self, u):
        """A point as arguments of the section."""
        x, values = self.parts(u)
        return x[None], [values]

    def table(self, points, kinds):
        """The table of points."""
        dtype = result_dtype([*orbit_dtype(self.section.n).descr, ("branch", "<i8"), ("kind", "U16")])
        rows = np.zeros(len(points), dtype)
        for k, point in enumerate(points):
            x, values, map_of = self.section.home(*self.parts(point.u))
            off = difference(point.returned.ends[0], self.parts(point.u)[0], self.section.modulo)
            returned = point.returned if map_of is None else point.returned._replace(ends=(x + off)[None], maps=map_of[None])
            filled(rows, self.section, k, x, values, returned, point.n_iter)
            rows[k]["kind"] = kinds[k]
        return rows


def _spread(points):
    """The last point and two before it, each with a faster slowest event by a ratio; the last three points if there are none."""
    found = [points[-1]]
    for one in points[-2::-1]:
        if one.returned.slowest[0] >= _FASTER * found[-1].returned.slowest[0]:
            found.append(one)
        if len(found) == 3:
            return found[::-1]
    return points[-3:]


def _at_speed(points, speed):
    """Point at which the slowest impact has a speed, on the parabola through three points."""
    speeds = np.array([one.returned.slowest[0] for one in points])
    weights = [np.prod([(speed - speeds[j]) / (speeds[i] - speeds[j]) for j in range(3) if j != i]) for i in range(3)]
    return np.array(weights) @ np.array([one.u for one in points])


def _way_to_zero(a, b, k):
    """Distance beyond b at which the line through test k of two points is zero; negative if it does not fall or has changed sign."""
    before, now = a.tests[k], b.tests[k]
    return np.linalg.norm(b.u - a.u) * now / (before - now) if before * now >= 0.0 and before != now else -1.0
