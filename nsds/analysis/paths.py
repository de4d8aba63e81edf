"""Paths of orbits over parameters, by pseudo-arclength: points at which one equation fewer holds than there are unknowns."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import matrix_balance
from scipy.sparse.csgraph import connected_components

DIFFERENCE = 2.0**-17  # of the parameter, relative to its range or itself
_SMALL = 1e-3  # of the largest state: one that is smaller has no scale of its own
_MINOR = 0.1  # of what a state is like by the others that it acts on: one that is smaller has their scale
_CORRECTIONS = 8  # of a point, at most
FAST, GROWTH, LONGEST = 3, 1.5, 4.0  # corrections after which the next step is longer, by how much, and of the first one at most
_FARTHEST = 1.0  # of all the way: corrections that lead farther lead nowhere, and parameters out of their ranges
STRAY = 0.2  # of a step: by how much a point may lie elsewhere than predicted
ROUNDING = 1e-9  # residuals that are smaller, and no longer fall, are rounding
_BESIDE = 1e-6  # of the path: a jump of a test so near to a special point is that of this point
_ISOLATED = 1e-9  # singular value of the derivatives, in units of the scales: where the least one is smaller, orbits are a continuum
_ZERO = 1e-6  # of the values between which a test changes sign: what a special point may have
_REAL = 1e-9  # imaginary part of multipliers that are real
_NOISE = 1e-3  # the same where derivatives are finite differences: what has more jumps
LOCATED, SECANTS = 1e-13, 60  # of a step: where a special point is; how many points are tried
BEND = 0.9  # cosine between directions of successive points: below it the step is repeated, half as long
ZERO, JUMPS, UNKNOWN = range(3)  # how a test changes its sign


class Point(NamedTuple):
    """A point of a path: u = (x, parameters) in units of their scales, the direction of the path, and what the section gave."""

    u: np.ndarray
    direction: np.ndarray
    returned: NamedTuple
    tests: np.ndarray  # that change sign at special points
    n_iter: int
    least: float  # singular value of the derivatives


class Path:
    """A path and its scales: u = (x / scale, parameters less the first ones, by their spans); the last unknown goes from 0 to 1.

    What is particular to one gives ``equations(u)``: (what the section returned, F (n,), its derivatives (n, n + 1)), F None where there is
    no orbit; and ``tests(u, returned, derivatives, direction)``.
    """

    def __init__(self, section, first, span, tol, scale):
        self.section, self.first, self.span, self.tol, self.scale = section, first, span, tol, scale

    def parts(self, u):
        """State and parameters."""
        return u[: self.section.n] * self.scale, self.first + u[self.section.n :] * self.span

    def corrected(self, u, normal, towards, tol=None):
        """The point of the path in the plane through u with this normal; None where Newton's method does not find it."""
        at, last, tol = u, math.inf, self.tol if tol is None else tol
        for k in range(_CORRECTIONS):
            returned, F, derivatives = self.equations(at)
            if F is None:
                return None
            bordered, size = np.vstack([derivatives, normal]), abs(F).max()
            if size <= tol or (size <= ROUNDING and size > 0.5 * last) or (size <= self.tol and k == _CORRECTIONS - 1):
                _, sizes, directions = np.linalg.svd(derivatives)
                direction = directions[-1] if directions[-1] @ towards >= 0 else -directions[-1]
                return Point(at, direction, returned, self.tests(at, returned, derivatives, direction), k, sizes[-1])
            last = size
            try:
                at = at - np.linalg.solve(bordered, np.append(F, normal @ (at - u)))
            except np.linalg.LinAlgError:
                return None
            if not np.linalg.norm(at - u) <= _FARTHEST:
                return None
        return None

    def next(self, point, step, smallest):
        """(the next point, the step that led to it), or (None, one that is too short) where no step does.

        It lies in the range of the last unknown: at its end, where a step leads beyond. Nor does it lie in a continuum of orbits.
        """
        bent = None
        while step >= smallest:
            predicted = point.u + step * point.direction
            new = self.corrected(predicted, point.direction, point.direction)
            off = math.inf if new is None else np.linalg.norm(new.u - predicted)
            new = None if new is None or not is_isolated(new) else self._within(point, new)
            if new is not None:
                turns = new.direction @ point.direction < BEND
                if off <= STRAY * step and not turns and new.returned.impacts[0] == point.returned.impacts[0]:
                    return new, step
                bent = new if self.may_bend(point, new, off / step) else bent
            step *= 0.5
        return bent, step

    def may_bend(self, _point, _new, _off):
        """Whether a point may come next though it lies elsewhere than predicted, by so many steps."""
        return False

    def located(self, a, b, k):
        """(the point between two at which test k changes its sign, how: ZERO, JUMPS or UNKNOWN), by the method of Illinois.

        Along the direction of the first. UNKNOWN where not all points between the two are found: the point is the last one, or None.
        """
        length = (b.u - a.u) @ a.direction
        low, high, f_low, f_high, side = 0.0, length, a.tests[k], b.tests[k], 0
        around, best = [f_low, f_high], None
        if f_high == 0.0:
            return b, ZERO
        for _ in range(SECANTS):
            s = (low * f_high - high * f_low) / (f_high - f_low)
            new = self.corrected(a.u + s * a.direction, a.direction, a.direction, tol=0.0)
            if new is None or len(new.tests) != len(a.tests):
                return best, UNKNOWN
            best, f = new, new.tests[k]
            if f == 0.0 or abs(high - low) <= LOCATED * length or min(s - low, high - s) <= LOCATED * length:
                break
            if f * f_high > 0.0:
                high, f_high, around[1] = s, f, f
                f_low *= 0.5 if side == 1 else 1.0
                side = 1
            else:
                low, f_low, around[0] = s, f, f
                f_high *= 0.5 if side == -1 else 1.0
                side = -1
        least, most = sorted(abs(point.tests[k]) for point in (a, b))
        is_zero = abs(best.tests[k]) <= _ZERO * min(1.0 + least, most) or max(map(abs, around)) <= _NOISE * most
        return best, ZERO if is_zero else JUMPS

    def where_events_change(self, a, b):
        """The last point from a towards b with as many events as a: a phase of sticking or sliding begins, or ceases, there."""
        length = (b.u - a.u) @ a.direction
        low, high, best = 0.0, length, None
        while high - low > LOCATED * length:
            middle = 0.5 * (low + high)
            new = self.corrected(a.u + middle * a.direction, a.direction, a.direction)
            if new is None or new.returned.impacts[0] != a.returned.impacts[0]:
                return None
            if new.returned.events[0] == a.returned.events[0]:
                low, best = middle, new
            else:
                high = middle
        return best

    def at_value(self, a, b, value):
        """The point at a value of the last unknown that lies between two; None where it is not found, or is of another path."""
        share = (value - a.u[-1]) / (b.u[-1] - a.u[-1])
        normal = np.append(np.zeros(len(a.u) - 1), 1.0)
        start = a.u + share * (b.u - a.u)
        start[-1] = value
        point = self.corrected(start, normal, b.direction)
        if point is None or not np.linalg.norm(point.u - start) <= np.linalg.norm(b.u - a.u):
            return None
        point.u[-1] = value
        return point

    def _within(self, a, b):
        """b, or the point at the end of the range of the last unknown that lies between two."""
        if 0.0 <= b.u[-1] < 1.0:
            return b
        return self.at_value(a, b, 1.0 if b.u[-1] >= 1.0 else 0.0)


def in_order(found, jumps):
    """[(kind, point), ...] of special points and of jumps of tests, (distance, kind, point) each, no two jumps at the same place."""
    result = [*found]
    for jump in jumps:
        if all(abs(jump[0] - one[0]) > _BESIDE for one in result):
            result.append(jump)
    return [(kind, special) for _, kind, special in sorted(result, key=lambda one: one[0])]


def is_isolated(point):
    """Whether there are no other orbits beside a point but those of the path."""
    return point.least > _ISOLATED


def scale_of(x, M=None):
    """Units of a state: its own sizes, but for numbers that are small.

    By the map M of tangent vectors small is what is less than others make of it: units that balance M, in each part of the state whose
    coordinates act on each other, tell how these compare, as of a velocity that is small where the section is. So a state of 1e-6 beside
    one of 1e6 has a unit of its own.
    """
    largest = abs(x).max() or 1.0
    if M is None:
        return np.where(abs(x) > _SMALL * largest, abs(x), largest)
    scale, (n_parts, part) = np.zeros(x.size), connected_components(M != 0.0, connection="strong")
    for k in range(n_parts):
        own = np.flatnonzero(part == k)
        units = matrix_balance(M[np.ix_(own, own)], permute=False, separate=True)[1][0]
        like = units * (abs(x[own]) / units).max()
        scale[own] = np.where(abs(x[own]) > _MINOR * like, abs(x[own]), like)
    return np.where(scale > 0.0, scale, largest)


def tests_of_maps(M):
    """Numbers that change sign where an orbit with these derivatives folds, doubles its period, and where a pair of multipliers has the
    product 1."""
    identity = np.eye(len(M))
    multipliers = np.linalg.eigvals(M)
    i, j = np.triu_indices(len(M), 1)
    pairs = np.prod(multipliers[i] * multipliers[j] - 1.0).real
    return np.linalg.det(M - identity), np.linalg.det(M + identity), pairs


def has_complex_pair(point):
    """Whether the multipliers whose product is nearest to 1 are no real ones."""
    multipliers = np.linalg.eigvals(point.returned.maps[0])
    i, j = np.triu_indices(len(multipliers), 1)
    if not i.size:
        return False
    nearest = np.argmin(abs(multipliers[i] * multipliers[j] - 1.0))
    one, other = multipliers[i[nearest]], multipliers[j[nearest]]
    return bool(min(abs(one.imag), abs(other.imag)) > _REAL and abs(one - other.conj()) <= _REAL * max(1.0, abs(one)))
