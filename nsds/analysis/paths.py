"""Paths of orbits over parameters, by pseudo-arclength: n equations in n + 1 unknowns."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import matrix_balance
from scipy.sparse.csgraph import connected_components

DIFFERENCE = 2.0**-17  # finite difference by the parameter, relative to its range or itself
_SMALL = 1e-3  # of the largest state: smaller states have no scale of their own
_MINOR = 0.1  # of its size by the others that it acts on: a smaller state has their scale
_CORRECTIONS = 8  # Newton corrections of a point, at most
FAST, GROWTH, LONGEST = 3, 1.5, 4.0  # corrections up to which the next step grows, its factor, largest multiple of the first step
_FARTHEST = 1.0  # of the whole path: larger corrections diverge, and leave the ranges of the parameters
STRAY = 0.2  # of a step: allowed distance of a point from its prediction
ROUNDING = 1e-9  # smaller residuals that no longer fall are rounding
_BESIDE = 1e-6  # of the path: distance within which a jump of a test function belongs to a special point
_ISOLATED = 1e-9  # least singular value of the derivatives, in units of the scales, below which orbits are a continuum
_ZERO = 1e-6  # of the values between which a test function changes sign: its largest value at a special point
_REAL = 1e-9  # imaginary part below which multipliers are real
_NOISE = 1e-3  # the same for derivatives by finite differences: a larger value is a jump
LOCATED, SECANTS = 1e-13, 60  # of a step: accuracy of a special point; number of secants
BEND = 0.9  # cosine between directions of successive points below which the step is repeated, half as long
ZERO, JUMPS, UNKNOWN = range(3)  # how a test function changes its sign


class Point(NamedTuple):
    """A point of a path: u = (x, parameters) in units of their scales, the direction of the path, and the result of the section."""

    u: np.ndarray
    direction: np.ndarray
    returned: NamedTuple
    tests: np.ndarray  # test functions, which change sign at special points
    n_iter: int
    least: float  # least singular value of the derivatives


class Path:
    """A path and its scales: u = (x / scale, parameters less the first ones, by their spans); the last unknown goes from 0 to 1.

    A subclass gives ``equations(u)``: (result of the section, F (n,), its derivatives (n, n + 1)), F None if there is
    no orbit; and ``tests(u, returned, derivatives, direction)``.
    """

    def __init__(self, section, first, span, tol, scale):
        self.section, self.first, self.span, self.tol, self.scale = section, first, span, tol, scale

    def parts(self, u):
        """State and parameters."""
        return u[: self.section.n] * self.scale, self.first + u[self.section.n :] * self.span

    def corrected(self, u, normal, towards, tol=None):
        """Point of the path in the plane through u with this normal; None if Newton's method does not converge."""
        at, last, tol = u, math.inf, self.tol if tol is None else tol
        # 1. residual and derivatives
        for k in range(_CORRECTIONS):
            returned, F, derivatives = self.equations(at)
            if F is None:
                return None
            # 2. converged, or a residual that no longer falls for rounding: the direction is the null vector
            bordered, size = np.vstack([derivatives, normal]), abs(F).max()
            if size <= tol or (size <= ROUNDING and size > 0.5 * last) or (size <= self.tol and k == _CORRECTIONS - 1):
                _, sizes, directions = np.linalg.svd(derivatives)
                direction = directions[-1] if directions[-1] @ towards >= 0 else -directions[-1]
                return Point(at, direction, returned, self.tests(at, returned, derivatives, direction), k, sizes[-1])
            # 3. Newton step in the plane; far corrections belong to another path
            last = size
            try:
                at = at - np.linalg.solve(bordered, np.append(F, normal @ (at - u)))
            except np.linalg.LinAlgError:
                return None
            if not np.linalg.norm(at - u) <= _FARTHEST:
                return None
        return None

    def next(self, point, step, smallest):
        """(next point, its step), or (None, a step that is too short) if no step succeeds.

        The point lies in the range of the last unknown, at its end if a step leads beyond, and not in a continuum of orbits.
        """
        bent = None
        # 1. predict along the tangent, correct in the plane across it
        while step >= smallest:
            predicted = point.u + step * point.direction
            new = self.corrected(predicted, point.direction, point.direction)
            off = math.inf if new is None else np.linalg.norm(new.u - predicted)
            new = None if new is None or not is_isolated(new) else self._within(point, new)
            # 2. accept a point near its prediction, with a similar direction and as many impacts; else half the step
            if new is not None:
                turns = new.direction @ point.direction < BEND
                if off <= STRAY * step and not turns and new.returned.impacts[0] == point.returned.impacts[0]:
                    return new, step
                # 3. a corner of the path is remembered, and used where no shorter step does better
                bent = new if self.may_bend(point, new, off / step) else bent
            step *= 0.5
        return bent, step

    def may_bend(self, _point, _new, _off):
        """Whether a point may be accepted though it lies ``_off`` steps from its prediction."""
        return False

    def located(self, a, b, k):
        """(point between two at which test k changes its sign, how: ZERO, JUMPS or UNKNOWN), by the Illinois method.

        Along the direction of the first. UNKNOWN if a point between the two is not found: then the last one found, or None.
        """
        # 1. bracket in terms of the distance along the first direction
        length = (b.u - a.u) @ a.direction
        low, high, f_low, f_high, side = 0.0, length, a.tests[k], b.tests[k], 0
        around, best = [f_low, f_high], None
        if f_high == 0.0:
            return b, ZERO
        # 2. regula falsi; halving the value of the end that stays twice keeps it superlinear
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
        # 3. a zero, or a jump: what remains is compared with the values at both ends and on both sides
        least, most = sorted(abs(point.tests[k]) for point in (a, b))
        is_zero = abs(best.tests[k]) <= _ZERO * min(1.0 + least, most) or max(map(abs, around)) <= _NOISE * most
        return best, ZERO if is_zero else JUMPS

    def where_events_change(self, a, b):
        """Last point from a towards b with as many events as a: a phase of sticking or sliding begins, or ends, there."""
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
        """Point at a value of the last unknown between two points; None if it is not found, or of another path."""
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
        """b, or the point at the end of the range of the last unknown if that lies between the two."""
        if 0.0 <= b.u[-1] < 1.0:
            return b
        return self.at_value(a, b, 1.0 if b.u[-1] >= 1.0 else 0.0)


def in_order(found, jumps):
    """Sorted [(kind, point), ...] of special points and jumps, (distance, kind, point) each; no jump beside another point."""
    result = [*found]
    for jump in jumps:
        if all(abs(jump[0] - one[0]) > _BESIDE for one in result):
            result.append(jump)
    return [(kind, special) for _, kind, special in sorted(result, key=lambda one: one[0])]


def is_isolated(point):
    """Whether the orbits beside a point are only those of the path."""
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
    """Test functions of a fold, a period doubling, and a pair of multipliers with the product 1, of orbits with the
    derivatives M."""
    identity = np.eye(len(M))
    multipliers = np.linalg.eigvals(M)
    i, j = np.triu_indices(len(M), 1)
    pairs = np.prod(multipliers[i] * multipliers[j] - 1.0).real
    return np.linalg.det(M - identity), np.linalg.det(M + identity), pairs


def has_complex_pair(point):
    """Whether the pair of multipliers whose product is nearest to 1 is complex."""
    multipliers = np.linalg.eigvals(point.returned.maps[0])
    i, j = np.triu_indices(len(multipliers), 1)
    if not i.size:
        return False
    nearest = np.argmin(abs(multipliers[i] * multipliers[j] - 1.0))
    one, other = multipliers[i[nearest]], multipliers[j[nearest]]
    return bool(min(abs(one.imag), abs(other.imag)) > _REAL and abs(one - other.conj()) <= _REAL * max(1.0, abs(one)))
