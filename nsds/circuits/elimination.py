"""Sparse elimination of homogeneous linear equations in whole numbers, as the tableau of a circuit has them.

A row is a dict from quantities to whole numbers, the factors of a sum that is zero. A multiple of a row says the same, so no fractions are
needed. The shortest row is next, by the column that is in the fewest others, which keeps rows short (H. M. Markowitz, *The elimination
form of the inverse*, Management Science 3, 1957); what is eliminated is substituted at the end, from the last to the first. Numbers are
exact as long as they have less than three hundred digits, see `_shorten`.
"""

import heapq
import math
from fractions import Fraction

_LONGEST = 1024  # bits of a factor above which its row is rounded
_ROUNDED = 512  # bits of the largest number of a rounded row
_CANCELLED = 256  # bits by which a difference is smaller than its terms if these are equal but for rounding


def whole(row):
    """A row of whole numbers and fractions as one of whole numbers, without zeros; a row that is one is returned itself."""
    common, is_whole = 1, True
    for c in row.values():
        if type(c) is not int:
            common, is_whole = math.lcm(common, c.denominator), False
        elif c == 0:
            is_whole = False
    if is_whole:
        return row
    return {key: c * common if type(c) is int else c.numerator * (common // c.denominator) for key, c in row.items() if c}


def solved_for(row, key):
    """The factors of all others in a quantity."""
    pivot = row[key]
    return {other: Fraction(-c, pivot) for other, c in row.items() if other != key}


def eliminate(row, key, other):
    """Eliminate a quantity from a row, in place, by another row."""
    # 1. factors of the two rows, without what they have in common
    factor, pivot = row[key], other[key]
    if pivot != 1 and pivot != -1:
        common = math.gcd(factor, pivot)
        factor, pivot = factor // common, pivot // common
    if pivot < 0:
        factor, pivot = -factor, -pivot
    if pivot != 1:
        for column in row:
            row[column] *= pivot
    # 2. difference of the rows
    for column, c in other.items():
        term = factor * c
        if column in row:
            value = row[column] - term
            if value and value.bit_length() + _CANCELLED > term.bit_length():
                row[column] = value
            else:
                del row[column]
        else:
            row[column] = -term
    # 3. short numbers
    if pivot != 1 and row:
        _shorten(row)


def _shorten(row):
    """Divide a row by what its factors have in common, and round factors that are too long, all to a multiple of one number.

    A factor then has a relative error of 2^-511 times the largest over its own: ones that differ by 10^70 still have 70 digits and more.
    """
    common = math.gcd(*row.values())
    if common != 1:
        for column in row:
            row[column] //= common
    most = max(map(int.bit_length, row.values()))
    if most > _LONGEST:
        shift = most - _ROUNDED
        half = 1 << (shift - 1)
        for column, c in list(row.items()):
            if c := (c + half) >> shift:
                row[column] = c
            else:
                del row[column]


class Rows:
    """Rows by number, in the order of addition, and in which of them each column occurs. Rows are changed in place."""

    def __init__(self):
        self.rows, self.of, self._count = {}, {}, 0

    def copy(self):
        """The same rows, to be changed apart."""
        result = Rows()
        result.rows = {k: dict(row) for k, row in self.rows.items()}
        result.of = {column: set(numbers) for column, numbers in self.of.items()}
        result._count = self._count
        return result

    def add(self, row):
        """Add a row and return its number."""
        k = self._count
        self._count += 1
        self.rows[k], of = row, self.of
        for column in row:
            if column in of:
                of[column].add(k)
            else:
                of[column] = {k}
        return k

    def drop(self, k):
        """Remove a row and return it."""
        row, of = self.rows.pop(k), self.of
        for column in row:
            of[column].discard(k)
        return row

    def eliminate(self, key, other):
        """Eliminate a quantity by a row that is none of these; returns the numbers of the rows that had it."""
        changed, of = self.of.pop(key, ()), self.of
        for k in changed:
            row = self.rows[k]
            eliminate(row, key, other)
            for column in other:
                if column == key:
                    continue
                if column in row:
                    if column in of:
                        of[column].add(k)
                    else:
                        of[column] = {k}
                elif column in of:
                    of[column].discard(k)
        return changed


class System:
    """Equations among quantities whose names begin with their kind, of which some kinds are known, and others are not to be eliminated.

    known, fixed: these kinds. idle: a known kind; a row of such quantities alone says nothing. `left` are the rows without a quantity to
    eliminate, `gone` those by which quantities were eliminated, in order: in each are only quantities that are eliminated later, or never.
    """

    def __init__(self, known=(), fixed=(), idle=""):
        self.known, self._fixed, self._idle = frozenset(known), frozenset((*known, *fixed)), idle
        self.left, self.gone, self._places = Rows(), {}, {}

    def solve(self, rows):
        """Eliminate what can be, with further rows."""
        # 1. rows without what has been eliminated, in a heap by their length
        of_number = self.left.rows
        heap = [(len(row), self.left.add(row)) for row in map(self._reduced, rows) if self._says_something(row)]
        heapq.heapify(heap)
        # 2. the shortest row that has a quantity to eliminate
        while heap:
            length, k = heapq.heappop(heap)
            row = of_number.get(k)
            if row is None or len(row) != length:
                continue
            key = self._pivot(row)
            if key is not None:
                for changed in self.take(k, key):
                    heapq.heappush(heap, (len(of_number[changed]), changed))

    def _pivot(self, row):
        """The quantity to eliminate by a row: the one in the fewest others."""
        best, fewest, fixed, of = None, math.inf, self._fixed, self.left.of
        for key in row:
            if key[0] not in fixed:
                count = len(of[key])
                if count < fewest:
                    best, fewest = key, count
        return best

    def take(self, k, key):
        """Eliminate a quantity by one of the rows that are left; returns the numbers of the changed ones."""
        return self.fix(key, self.left.drop(k))

    def fix(self, key, row):
        """Eliminate a quantity by a row; returns the numbers of the changed ones."""
        self._places[key] = len(self.gone)
        self.gone[key] = row
        if not self.left.of.get(key):
            return ()
        changed = self.left.eliminate(key, row)
        empty = [k for k in changed if not self._says_something(self.left.rows[k])]
        for k in empty:
            self.left.drop(k)
        return [k for k in changed if k not in empty] if empty else changed

    def _says_something(self, row):
        return bool(row) and (next(iter(row))[0] != self._idle or any(key[0] != self._idle for key in row))

    def _reduced(self, row):
        """A row as whole numbers, without quantities that have been eliminated."""
        row, places, gone = whole(row), self._places, self.gone
        while found := [key for key in row if key in places]:
            key = found[0] if len(found) == 1 else min(found, key=places.__getitem__)
            eliminate(row, key, gone[key])
        return row

    def state(self):
        """The present state, for `restore`, as long as nothing is substituted."""
        return len(self.gone), self.left.copy()

    def restore(self, state):
        """Return to a state, from one in which more is eliminated."""
        n_gone, left = state
        self.left = left.copy()
        for key in list(self.gone)[n_gone:]:
            del self.gone[key], self._places[key]

    def substitute(self, begin=0):
        """Substitute all that is eliminated in the rows of what was eliminated from there on: only what is not stays in them."""
        gone = self.gone
        for key in reversed(list(gone)[begin:]):
            row = gone[key]
            for other in [other for other in row if other in gone]:
                if other != key:
                    eliminate(row, other, gone[other])
