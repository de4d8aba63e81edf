"""Interior point method with sparse factors (SuperLU), in Python: quadratic programmes and monotone inequalities of hundreds of rows."""

import numpy as np

from nsds.maths.superlu import factorise
from nsds.solvers.box import confirm
from nsds.solvers.box.signature import Problem, judge, multiply_exactly
from nsds.status import CONVERGED, MAX_ITER, SINGULAR, STALLED

_LIMIT = 200
_SCALINGS = 20
_SHIFT = 1e-10  # on the diagonal, in common units: redundant rows have factors, too
_REFINEMENTS = 3
_TO_BOUND = 0.995  # of the way to the nearest bound
_DONE = 1e-11  # of the residual, from which it need not fall
_NEARLY = 1e-6  # of the residual, from which iterates are tried as the end
_NEARER = 0.1  # of the residual of the last one that was tried
_STEPS, _FALLS = 100, 0.95  # with the same factors, in the end, while the error falls by that
_CHANGES = 6  # of what is at its bound, in the end
_ROUNDING = 1e-15  # z beside data of 1
_MISSED = 1e-6  # of a row's terms, and of the data: what is no end, which need not be judged
_NOTHING = 1e-2  # of the root of the residual: z and w that are both less go to the bound
_BEGINNING = 1e-2  # of the largest data: slacks, a and b at first; beside 1 bounds that are 1e-7 apart would let no step be made
_LEAST = 1e-30  # slack, a and b
_PATIENCE, _PATIENCE_DONE = 25, 5  # iterations in which the error must fall by a tenth
# Of the equations of the end: shift, and distance to a bound below which z go their way as that; the last where nothing else is left.
_ENDS = (1e-9, 1e-3), (1e-9, 1e-2), (1e-7, 1e-3), (1e-11, 1e-3)


def interior_sparse(problem, options):
    """(status, z, w, info) of a box problem ``w = M z + q`` with positive semidefinite M, not symmetric as a rule; no use for a guess.

    ``(M + A / (z - lower) + B / (upper - z)) dz = ..``, by Mehrotra's predictor and corrector; A and B are the parts of w at lower and
    upper bounds, ``w = A - B``. The unknowns are scaled so that M stays semidefinite. In the end what is nearer to its bound than its w to
    0 goes there, the others follow from w = 0, and `judge` decides.
    References: Mehrotra, SIAM Journal on Optimization 2 (1992) 575–601; Wright, Primal-dual interior-point methods, 1997; Vanderbei,
    Symmetric quasidefinite matrices, SIAM Journal on Optimization 5 (1995) 100–113 (the shift).
    """
    lower, upper = problem.lower, problem.upper
    n = problem.q.size
    C = _units(n, problem)
    i = np.repeat(np.arange(n), np.diff(problem.row))
    fixed = lower == upper
    low, high, vector = lower / C, upper / C, problem.q * C
    size = max(abs(vector).max(initial=0.0), 1e-300)
    finite = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
    size = max(size, 1e-3 * np.median(abs(finite[finite != 0.0])) if (finite != 0.0).any() else 0.0)
    size = 2.0 ** np.round(np.log2(size))
    scaled = Problem(problem.row, problem.column, problem.M * C[i] * C[problem.column], vector / size, low / size, high / size)
    search = _Search(scaled, fixed)
    status, best, n_iter = MAX_ITER, None, 0
    limit = int(options.max_iter) if options.max_iter > 0 else _LIMIT
    least, since, tried, nearest = np.inf, 0, np.inf, (np.inf, None)
    for n_iter in range(limit + 1):
        error = search.error()
        least, since = (error, n_iter) if error < 0.9 * least else (least, since)
        is_last = not np.isfinite(error) or n_iter == limit or n_iter - since >= (_PATIENCE if error > _DONE else _PATIENCE_DONE)
        if error < nearest[0]:
            nearest = error, (search.z, search.a, search.b)
        if is_last or error < min(_NEARLY, _NEARER * tried):
            tried = error
            for found in search.ends(nearest[1] if is_last else None):
                if search.misses(found, max(_MISSED, 1e3 * options.tol)):
                    continue
                end = np.clip(np.where(found <= search.low, lower, np.where(found >= search.high, upper, found * size * C)), lower, upper)
                w, info = np.zeros(n), np.zeros(3)
                outcome = judge(STALLED, n_iter, problem, options, end, w, info)
                if outcome == CONVERGED and not confirm.holds(options.tol, problem, end):
                    outcome, info[1] = STALLED, max(info[1], 2.0 * options.tol)
                if best is None or info[1] < best[3][1]:
                    best = outcome, end, w, info
                if outcome == CONVERGED:
                    return best
        if is_last:
            status = STALLED if n_iter < limit else MAX_ITER
            break
        if not search.advance():
            status = SINGULAR
            break
    if best is None:
        end, w, info = np.clip(search.z * size * C, lower, upper), np.zeros(n), np.zeros(3)
        best = judge(status, n_iter, problem, options, end, w, info), end, w, info
    return status, *best[1:]


def _units(n, problem):
    """Powers of two C that bring the largest entries of rows and columns of ``C M C`` near 1."""
    column = problem.column
    i = np.repeat(np.arange(n), np.diff(problem.row))
    with np.errstate(divide="ignore"):
        digits, C = np.log2(abs(problem.M)), np.zeros(n)
    for _ in range(_SCALINGS):
        largest = np.full(n, -np.inf)
        np.maximum.at(largest, i, digits + C[i] + C[column])
        np.maximum.at(largest, column, digits + C[i] + C[column])
        C -= np.where(largest > -np.inf, largest / 2.0, 0.0)
    return 2.0 ** np.round(C)


class _Search:
    """An iterate z, a and b, with the problem in common units."""

    def __init__(self, problem, fixed):
        from scipy.sparse import csr_array, diags_array
        from scipy.sparse.csgraph import connected_components

        self.problem, q, low, high = problem, problem.q, problem.lower, problem.upper
        A = csr_array((problem.M, problem.column, problem.row), shape=(q.size, q.size))
        self.A, self.q, self.low, self.high, self.fixed = A, q, low, high, fixed
        self.has_low, self.has_high = np.isfinite(low) & ~fixed, np.isfinite(high) & ~fixed
        _, part = connected_components(A, directed=False)
        is_still = (q == 0.0) & (low <= 0.0) & (high >= 0.0)
        self.is_idle = np.bincount(part, ~is_still)[part] == 0  # unknowns that are linked to no data: 0 solves these rows
        own = A.diagonal()
        self.own = np.where(own > 0.0, own, 1.0)
        self.shift = _SHIFT * diags_array(self.own)
        self.n_bounds = int(self.has_low.sum() + self.has_high.sum())
        self._begin()

    def _begin(self):
        """A point between the bounds, w of the right signs, and both of a size."""
        low, high = np.where(self.has_low, self.low, -1.0), np.where(self.has_high, self.high, 1.0)
        middle = np.where(self.has_low & self.has_high, 0.5 * (low + high), np.where(self.has_low, low, np.where(self.has_high, high, 0.0)))
        middle = np.where(self.fixed, self.low, middle)
        size = _BEGINNING * max(1.0, abs(self.q).max(initial=0.0))
        both, width = self.has_low & self.has_high, np.where(self.has_low & self.has_high, 0.5 * (high - low), np.inf)
        self.z = middle + np.where(both, 0.0, np.where(self.has_low, size, np.where(self.has_high, -size, 0.0)))
        self.a, self.b = np.where(self.has_low, size, 0.0), np.where(self.has_high, size, 0.0)
        if self._factorise(np.where(self.has_low | self.has_high, 1.0, 0.0)):
            z = self.z - self._solve(self.A @ self.z + self.q)
            w = self.A @ z + self.q
            room = np.minimum(size, np.where(both, 0.9 * width, size))
            z = np.where(self.has_low, np.maximum(z, low + np.minimum(room, size)), z)
            z = np.where(self.has_high, np.minimum(z, high - np.minimum(room, size)), z)
            if np.isfinite(z).all() and np.isfinite(w).all():
                self.z = np.where(self.fixed, self.low, z)
                self.a = np.where(self.has_low, np.maximum(w, 0.0) + size, 0.0)
                self.b = np.where(self.has_high, np.maximum(-w, 0.0) + size, 0.0)

    def _factorise(self, D):
        """Factors of ``A + D`` with a small shift; rows and columns of fixed unknowns are those of the identity."""
        from scipy.sparse import diags_array

        free = diags_array(np.where(self.fixed, 0.0, 1.0))
        self.exact = (free @ self.A @ free + diags_array(D + self.fixed)).tocsc()
        try:
            self.factors = factorise(self.exact + self.shift, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.01)
        except (RuntimeError, MemoryError):
            return False
        return True

    def _solve(self, rhs):
        rhs = np.where(self.fixed, 0.0, rhs)
        x = self.factors.solve(rhs)
        for _ in range(_REFINEMENTS):
            rest = rhs - self.exact @ x
            better = x + self.factors.solve(rest)
            if not abs(rhs - self.exact @ better).max() < abs(rest).max():
                break
            x = better
        return x

    def _residual(self):
        return np.where(self.fixed, 0.0, self.A @ self.z + self.q - self.a + self.b)

    def _slacks(self):
        below, above = np.where(self.has_low, self.z - self.low, 1.0), np.where(self.has_high, self.high - self.z, 1.0)
        return np.maximum(below, _LEAST), np.maximum(above, _LEAST)

    def error(self):
        """Residual: rows relative to their terms, products relative to all."""
        below, above = self._slacks()
        size = 1.0 + abs(self.q).max(initial=0.0)
        gap = (self.a * below + self.b * above).sum() / (size * (1.0 + abs(self.z @ self.q)))
        return max(abs(self._residual()).max(initial=0.0) / size, gap)

    def advance(self):
        """One step; False where there are no factors."""
        below, above = self._slacks()
        r, mu = self._residual(), (self.a @ below + self.b @ above) / max(self.n_bounds, 1) if self.n_bounds else 0.0
        if not self._factorise(np.where(self.fixed, 0.0, self.a / below + self.b / above)):
            return False
        x = self._direction(r, 0.0, 0.0, 0.0, below, above)
        t = self._longest(*x, below, above, 1.0)
        dz, da, db = x
        after = ((self.a + t * da) * (below + t * dz))[self.has_low].sum() + ((self.b + t * db) * (above - t * dz))[self.has_high].sum()
        sigma = (after / max(self.n_bounds, 1) / mu) ** 3 if mu > 0.0 else 0.0
        dz, da, db = self._direction(r, sigma * mu, da * dz, -db * dz, below, above)
        t = self._longest(dz, da, db, below, above, _TO_BOUND)
        self.z = self.z + t * dz
        self.a = np.where(self.has_low, np.maximum(self.a + t * da, _LEAST), 0.0)
        self.b = np.where(self.has_high, np.maximum(self.b + t * db, _LEAST), 0.0)
        self.z = np.where(self.fixed, self.low, self.z)
        return bool(np.isfinite(self.z).all())

    def _direction(self, r, target, more_a, more_b, below, above):
        rest_a = np.where(self.has_low, (target - more_a) / below - self.a, 0.0)
        rest_b = np.where(self.has_high, (target - more_b) / above - self.b, 0.0)
        dz = self._solve(-r + rest_a - rest_b)
        return dz, np.where(self.has_low, rest_a - self.a / below * dz, 0.0), np.where(self.has_high, rest_b + self.b / above * dz, 0.0)

    def _longest(self, dz, da, db, below, above, part):
        """The step, up to 1, that leaves a part of every slack and of a and b."""
        t = 1.0
        for value, change in ((below[self.has_low], dz[self.has_low]), (above[self.has_high], -dz[self.has_high]),
                              (self.a[self.has_low], da[self.has_low]), (self.b[self.has_high], db[self.has_high])):  # fmt: skip
            falls = change < 0.0
            t = min(t, part * (value[falls] / -change[falls]).min(initial=np.inf))
        return t

    def misses(self, z, part):
        """Whether z, put into its bounds, clearly leaves some row out, or is not finite."""
        inside = np.clip(z, self.low, self.high)
        w, terms = self.A @ inside + self.q, abs(self.A) @ abs(inside) + abs(self.q)
        error = np.maximum(np.where(inside < self.high, -w, 0.0), np.where(inside > self.low, w, 0.0))
        return not (error[terms > part] <= part * terms[terms > part]).all()

    def ends(self, nearest):
        """Points with some z at bounds, and w = 0 elsewhere: by `_ends`; all of them where the search ends, with its nearest iterate."""
        yield from self._ends_here(_ENDS if nearest else _ENDS[:1])
        if nearest and nearest[0] is not self.z:  # steps have led away since
            self.z, self.a, self.b = nearest
            yield from self._ends_here(_ENDS)

    def _ends_here(self, kinds):
        nothing = _NOTHING * np.sqrt(self.error())
        for shift, narrow in kinds:
            for least, most in ((0.0, np.inf), (0.0, 1.0), (nothing, np.inf)):
                yield from self._ends(shift, narrow, least, most)

    def _ends(self, shift, narrow, nothing, largest):
        """At first those are at bounds that are nearer to it than their w to 0, and those of which both are nothing.

        Others are as near to the present z as w = 0 lets them be, or to what is left of it within ``largest``: z that nothing determines,
        as multipliers of equations that depend on each other, may have gone far. Then what is beyond a bound goes there, and what w pulls
        away from it leaves, as in the primal-dual active set method.
        """
        from scipy.sparse import diags_array

        below, above = self._slacks()
        at_low = (self.has_low & (self.a > np.where(below <= nothing, 0.0, below))) | self.fixed
        at_high = self.has_high & (self.b > np.where(above <= nothing, 0.0, above)) & ~at_low
        start = np.clip(self.z, -largest, largest)
        start = np.where((start > self.low) & (start < self.high), start, self.z)
        start = np.where(~self.has_low & ~self.has_high & (abs(self.z) <= nothing), 0.0, start)
        weight = 1.0 / np.clip(np.minimum(below, above), narrow, 1.0) ** 2
        w = np.empty(start.size)
        for _ in range(_CHANGES):
            z = np.where(at_low, self.low, np.where(at_high, self.high, start))
            B = np.flatnonzero(~(at_low | at_high))
            try:
                held = diags_array(shift * (self.own * weight)[B])
                factors = factorise(self.A[B][:, B] + held, permc_spec="MMD_AT_PLUS_A") if B.size else None
            except (RuntimeError, MemoryError):
                return
            z[self.is_idle] = 0.0
            before = np.inf
            for _ in range(_STEPS if B.size else 0):
                multiply_exactly(self.problem, z, w)
                error = abs(w[B]).max()
                if not error < _FALLS * before:
                    break
                z[B] -= factors.solve(w[B])
                before = error
            if not np.isfinite(z).all():
                return
            yield z
            is_rounding = (abs(z) < _ROUNDING) & (z != 0.0)
            if is_rounding.any():
                yield np.clip(np.where(is_rounding, 0.0, z), self.low, self.high)
            w = np.where(self.is_idle, 0.0, self.A @ z + self.q)
            stays_low = self.fixed | (at_low & (w >= 0.0)) | (self.has_low & ~at_high & (z < self.low))
            stays_high = (at_high & (w <= 0.0)) | (self.has_high & ~at_low & (z > self.high))
            if (stays_low == at_low).all() and (stays_high == at_high).all():
                return
            at_low, at_high = stays_low, stays_high
