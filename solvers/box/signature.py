"""The one signature that all solvers of box-constrained one-step problems share, and the merit function that judges them.

Problem ([Notes], eq. 9.34): find ``lower <= z <= upper`` with ``w = M z + q`` and ``-w ∈ N_[lower,upper](z)``. Bounds 0 and infinity
give the LCP ``0 <= z ⟂ w >= 0``; minus and plus infinity an equation ``w_i = 0``.

    status = solver(row, column, M, q, lower, upper, options, z, w, info, work, iwork)

That is how a method of a user's own is written. Those of the package get the six arrays of the problem as one `Problem`, by reference, and
are called so by their address; `nsds.solvers.table` wraps the others.

====================  ==========================================================================================================
row, column, M        compressed rows: columns of a row ascending, pattern symmetric, every diagonal entry stored; (n+1,), (nnz,) × 2
q, lower, upper       (n,)
options               `Options`
z                     in: first guess; out: solution
w                     out: ``M z + q``
info                  out (3,): n_iter, residual; of auto, the place in `nsds.solvers.box.auto.ORDER` of the method it took
work, iwork           scratch of at least the method's ``work_size(n, row, column)``, and one integer: iwork[0] is 0 unless row, column
                      and M are those of the last call with this scratch, so that a method may keep what it knows of them
====================  ==========================================================================================================

A solver allocates nothing, never raises, and returns a code of `nsds.status`: CONVERGED only where the merit of `judge`, which explains
its units, is at most tol.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import float64, int64, typeof, types

from nsds._jit import by_reference, caller, inlined, kernel, made, on_demand, tiny
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, STALLED

__all__ = ["N_INFO", "Options", "Problem", "conclude"]

N_INFO = 3
_PROOF = 1e-10  # of a sum's terms: what is smaller is rounding
_WORK = 4e9  # multiplications that a method may spend where no max_iter is given: a few seconds
_CERTAIN = 1e-13  # of a sum's terms: what is larger is not rounding
_CLEAR = 1e-6  # of a proof's terms: what is larger is not made good by z of natural size
_ROUNDING = 2.0**-52
_VISIBLE = 0.01  # of a row's terms: the part that data must have to be seen
_FAILED = 1e100  # relative errors count up to this
_NEAR = 1e-6  # of a row's terms: what a step to a bound may change
_MET = 1e-6  # of a row's data: the error up to which it is met
_MISSED = 1e-3  # of a row's data: the error from which it is not, unless that is rounding
_SEEN = 1e-3  # of the tolerance: errors of rows that are more than rounding
_TIGHT = 2e-14  # of a row's terms: an error that rounding of z explains in long rows; in short ones it is less
_LARGE = 0.01  # of a row's terms: what counts as a large term
_GROWN = 1e6  # of the rounding that is told: that of steps before, at most
_GRAIN = 64 * _ROUNDING  # of a row's terms: what steps before may have left in q, where a scheme computes it
UNDERFLOW = 1e-290  # less than this is compared with this, so that what dies out is not divided by 0, or by what has lost its digits
_SPLITTER = 2.0**27 + 1.0
OF_DATA = 2.0**-46  # of what a row's z are beside: an error, or a q, that rounding of the data explains, as of sums of some terms
MINOR = 2.0**-45  # of the largest q in units of its row: what smaller q is may be rounding
_SMALLEST = 2.0**-1022  # the least number with all its digits
_MORE = 1.0 + 2.0**-20  # so that a sum of rounding is not missed by its own rounding
LEVELS = 8  # rows away, from which a row without data takes its size


@by_reference
class Problem(NamedTuple):
    """A box problem of n unknowns, as kernels get it: by reference."""

    row: np.ndarray  # (n+1,)
    column: np.ndarray  # (nnz,)
    M: np.ndarray  # (nnz,)
    q: np.ndarray  # (n,)
    lower: np.ndarray  # (n,)
    upper: np.ndarray  # (n,)


problem_of = made(Problem)


class Options(NamedTuple):
    """Options of a box problem from `nsds.solvers.solver`, as floats; 0 of max_iter, weight and block: the method's own."""

    tol: float
    max_iter: float
    weight: float
    block: float
    rounding: float  # of q, see `judge`
    inexact: float  # which schemes read


_floats, _integers = float64[::1], int64[::1]
PROBLEM = typeof(Problem(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)))

SOLVER = int64(PROBLEM, types.NamedUniTuple(float64, len(Options._fields), Options), _floats, _floats, _floats, _floats, _integers)
call_solver = caller(SOLVER)


@tiny
def changed(options, tol, max_iter):
    """The options with another tolerance and limit."""
    return Options(tol, max_iter, options.weight, options.block, options.rounding, options.inexact)


@tiny
def exact(options, tol):
    """The options with that tolerance at most, and no inexact solution."""
    return Options(min(tol, options.tol), options.max_iter, options.weight, options.block, options.rounding, 0.0)


@kernel
def solve_repeatedly(count, keep, solver, z0, problem, options, z, w, info, work, iwork):
    """The same problem ``count`` times from the same guess; with ``keep``, what the solver knows of the matrix is kept between calls.

    solver: the address of its compiled code, so that this loop is compiled once for all of them.
    """
    status = 0
    for _ in range(count):
        if not keep:
            iwork[0] = 0
        for i in range(problem.q.size):
            z[i] = z0[i]
        status = call_solver(solver, (problem, options, z, w, info, work, iwork))
    return status


@tiny
def multiply(row, column, M, q, z, w):
    """``w = M z + q``."""
    for i in range(q.size):
        s = q[i]
        for k in range(row[i], row[i + 1]):
            s += M[k] * z[column[k]]
        w[i] = s


@tiny
def row_sum(i, problem, z):
    """``w_i`` and the sum of the magnitudes of its terms."""
    s = problem.q[i]
    terms = abs(s)
    for k in range(problem.row[i], problem.row[i + 1]):
        term = problem.M[k] * z[problem.column[k]]
        s += term
        terms += abs(term)
    return s, terms


@tiny
def excess(w_i, noise, lower_i, upper_i, z_i):
    """Distance of ``w_i``, known up to noise, from the sign that goes with z_i: any between equal bounds, 0 inside, else one of two."""
    low = noise - w_i if z_i < upper_i else 0.0
    high = noise + w_i if z_i > lower_i else 0.0
    return max(low, high, 0.0)


@tiny
def grain(terms, rounding):
    """Up to which an error of a row is none, and q_i no data; 0 for given problems. Grown z hide no q: they count up to a limit."""
    return rounding + min(_GRAIN * terms, _GROWN * rounding)


@tiny
def given(q_i, least):
    """Size of q_i as data; 0 where it is rounding."""
    return abs(q_i) if abs(q_i) > least else 0.0


@kernel
def least_data(problem):
    """The q_i, for rows whose largest entry is 1, below which q_i is rounding beside the largest q: as of ``0.3 - 0.1 - 0.2`` beside 1.

    Rows all of whose entries are rounding beside others of their columns do not count, nor do those that ask nothing of any z: of an
    unknown that is fixed, or of unknowns that are fixed at 0.
    """
    row, M, q, lower, upper = problem.row, problem.M, problem.q, problem.lower, problem.upper
    most = 0.0
    for i in range(q.size):
        if abs(q[i]) > most * largest_in_row(row, M, i) and lower[i] < upper[i]:
            for k in range(row[i], row[i + 1]):
                j = problem.column[k]
                if (lower[j] != 0.0 or upper[j] != 0.0) and _tells(M[k], j, problem):
                    most = abs(q[i]) / largest_in_row(row, M, i)
                    break
    return MINOR * most


@kernel
def _tells(part, j, problem):
    """True when an entry of column j is no rounding beside the largest there, so that q of its row says how large z_j may be."""
    return abs(part) > MINOR * _largest_in_column(j, problem)


@tiny
def _largest_in_column(j, problem):
    """``max_i |M_ij|``."""
    row, largest = problem.row, 0.0
    for k in range(row[j], row[j + 1]):
        largest = max(largest, abs(entry(row, problem.column, problem.M, problem.column[k], j)))
    return largest


@kernel
def _natural_size(j, least, problem, sizes):
    """The least z_j that carries alone what a row is worth, ``min_k sizes_k / |M_kj|``; else its nearest bound but 0; 0: nothing tells.

    No z is larger than both of its bounds. Rows that are worth ``least`` times their largest entry, or less, do not count; those whose
    entry is rounding beside others of its column, or in a small unit, only where no others tell.
    """
    row = problem.row
    size = by_small = math.inf
    for k in range(row[j], row[j + 1]):
        i = problem.column[k]
        part = abs(entry(row, problem.column, problem.M, i, j))
        worth = abs(sizes[i])
        if 0.0 < worth < size * part and worth > least * largest_in_row(row, problem.M, i):
            if _tells(part, j, problem):
                size = worth / part  # what costs most to know is asked last
            else:
                by_small = min(by_small, worth / part)
    if size == math.inf:
        size = by_small
    if size == math.inf:
        for bound in (problem.lower[j], problem.upper[j]):
            size = min(size, abs(bound) if bound != 0.0 else math.inf)
    return min(size, max(abs(problem.lower[j]), abs(problem.upper[j]))) if size < math.inf else 0.0


@kernel
def size_beside(i, least, problem, sizes):
    """The largest term that a z of `_natural_size` has in row i, which itself may be worth nothing; sizes: what rows are worth, as q."""
    size = 0.0
    for k in range(problem.row[i], problem.row[i + 1]):
        if problem.M[k] != 0.0:
            size = max(size, abs(problem.M[k]) * _natural_size(problem.column[k], least, problem, sizes))
    return size


@kernel
def rounding_of_data(i, least, problem):
    """Error of w_i that counts as none, where q_i is rounding, or 0, beside the q of other rows; else 0. least: from `least_data`.

    Where nothing tells how large the terms of the row may be, it is all of a q_i that would be rounding beside 1, and with z of 1, too,
    unless rows with z in common, whose units may be small, have q that are as small.
    """
    q = problem.q
    largest = largest_in_row(problem.row, problem.M, i)
    if abs(q[i]) > least * largest:
        return 0.0
    size = size_beside(i, least, problem, q)
    if size > 0.0:
        return OF_DATA * size
    is_small = abs(q[i]) <= MINOR * min(largest, 1.0)
    return _MORE * abs(q[i]) if is_small and not _has_peers(i, problem) else 0.0


@kernel
def _has_peers(i, problem):
    """Whether q_i is no rounding beside the q of rows with which row i has z in common, for rows with entries of 1."""
    row, column, M = problem.row, problem.column, problem.M
    most = 0.0
    for k in range(row[i], row[i + 1]):
        j = column[k]
        if not _tells(M[k], j, problem):
            continue
        for l in range(row[j], row[j + 1]):
            other = column[l]
            part = entry(row, column, M, other, j)
            if other != i and part != 0.0 and _tells(part, j, problem):
                most = max(most, abs(problem.q[other]) / largest_in_row(row, M, other))
    return most > 0.0 and abs(problem.q[i]) > MINOR * most * largest_in_row(row, M, i)


@tiny
def scale_of_row(terms, data):
    """In what ``w_i`` is judged: the terms that cancel, or what is given, where that is less than a hundredth of them (and not nothing)."""
    return terms if data == 0.0 or data >= _VISIBLE * terms else data


@kernel
def _is_near_its_bound(i, w_i, terms, problem, z):
    """True when z_i is inside, and the bound that w_i names is so near that the step there hardly moves any w."""
    row, column = problem.row, problem.column
    slack = z[i] - problem.lower[i] if w_i > 0.0 else problem.upper[i] - z[i]
    near = (
        problem.lower[i] < z[i] < problem.upper[i]
        and slack < math.inf
        and slack * abs(diagonal(row, column, problem.M, i)) <= _NEAR * terms
    )
    k = row[i]
    while near and k < row[i + 1]:
        a = abs(entry(row, column, problem.M, column[k], i))
        if a != 0.0:
            _, others = row_sum(column[k], problem, z)
            near = slack * a <= _NEAR * others
        k += 1
    return near


@tiny
def _square(x):
    """Square that does not overflow."""
    return min(x, _FAILED) ** 2


@tiny
def _judged(i, rounding, problem, z):
    """(w_i, its terms, its error, the largest that this may be, its data): the last three up to what is no error, and no data."""
    w_i, terms = row_sum(i, problem, z)
    least = grain(terms, rounding)
    noise = excess(w_i, _ROUNDING * (problem.row[i + 1] - problem.row[i]) * terms - least, problem.lower[i], problem.upper[i], z[i])
    data = given(problem.q[i], least)
    if data == 0.0 and noise > 0.0:
        data = _data(i, rounding, problem, z)
    return w_i, terms, excess(w_i, -least, problem.lower[i], problem.upper[i], z[i]), noise, data


@inlined
def residual(tol, rounding, problem, z, w):
    """(merit, largest that it may be, clear failures, failures that `_mend` may mend) at a z within its bounds. Out: w.

    The merit is the one of `judge` without the second look. NaN where anything is NaN or infinite. Errors of rows without data may be
    larger than beside their terms, if z has grown as in the row where it has most.
    """
    merit = most = total = idle = 0.0
    growth = 1.0
    n_clear = n_mendable = 0
    for i in range(problem.q.size):
        w_i, terms, error, noise, data = _judged(i, rounding, problem, z)
        w[i] = w_i
        total += 0.0 * terms
        if noise > 0.0:
            merit += _square(error / terms)
            most += _square(noise / scale_of_row(terms, data))
            idle += _square(noise / terms) if data == 0.0 else 0.0
            growth = max(growth, terms / data) if data > 0.0 else growth
            if error > tol * terms:
                if data == 0.0 or _is_near_its_bound(i, w_i, terms, problem, z):
                    n_mendable += 1
                else:
                    n_clear += 1
    most = math.sqrt(most)
    if rounding == 0.0 and idle > 0.0:
        most = max(most, growth * math.sqrt(idle))
    return math.sqrt(merit) + total, most, n_clear, n_mendable


@kernel
def second_look(thorough, tol, rounding, problem, z, w):
    """The merit where q is lost in the terms of some rows, with w as if computed with twice the digits. Out: w.

    A row whose data (q and the terms of z at a bound) is invisible beside its terms may be an honest one, to which others pass on their
    data, or one where z has grown until it hides q, which solves nothing. It is honest if large terms of it are large terms of a row with
    visible data, or of one that is honest by this rule. Rows that are met up to rounding of their terms are also backed by rows whose
    data is met to 10^-6 and larger than what rounding of z might meet by chance (long chains). All others, and of given
    problems honest ones that miss a thousandth of their data by more than rounding, are judged by their data, or where they have none by
    that of a row with a large term in common, in units of the terms; rows of given problems without data that fail so, by what they are
    worth beside others, see `size_beside`.
    Meanwhile w holds the scales of the honest rows, and those of the others with a minus.
    """
    q = problem.q
    doubt, least, is_open = 0.0, -1.0, False
    for i in range(q.size):
        _, terms = row_sum(i, problem, z)
        data = _data(i, rounding, problem, z)
        w[i] = terms if data >= _VISIBLE * terms else -terms
        error = exact_error(i, rounding, problem, z) if w[i] < 0.0 else 0.0
        if error > 0.0:
            doubt += _square(error / data if data > 0.0 else _FAILED)
    if math.sqrt(doubt) > tol:
        while _spread(thorough, False, rounding, problem, z, w):
            pass
        for i in range(q.size):
            if w[i] < 0.0 and _is_tight(i, rounding, problem, z):
                data = _data(i, rounding, problem, z)
                if data > 0.0 and abs(exact_row(i, problem, z)) + _ROUNDING * abs(w[i]) <= _MET * data:
                    w[i] = -w[i]  # an equation that holds, and not by chance: rounding of z leaves no room for that
        while _spread(thorough, True, rounding, problem, z, w):
            pass
    while _spread_growth(thorough, rounding, problem, z, w):
        pass
    merit = 0.0
    for i in range(q.size):
        error = exact_error(i, rounding, problem, z)
        if error > 0.0:
            data = _data(i, rounding, problem, z)
            is_missed = rounding == 0.0 and error > _MISSED * data and not _is_tight(i, rounding, problem, z)
            scale = data if data > 0.0 and (w[i] < 0.0 or is_missed) else abs(w[i])
            if rounding == 0.0 and error > tol * scale:
                least = least_data(problem) if least < 0.0 else least
                if data > 0.0 and error <= rounding_of_data(i, least, problem):
                    error = 0.0
                elif _clear_data(i, least, problem, z) == 0.0:
                    error = w[i] = 0.0  # what it is worth is found below
                    is_open = True
            merit += _square(error / scale)
    if is_open:
        merit += _merit_beside(least, problem, z, w)
    merit = math.sqrt(merit)
    multiply_exactly(problem, z, w)
    return merit


@kernel
def _merit_beside(least, problem, z, w):
    """Part of the merit of rows with w_i = 0, without data, but for rounding of what others leave for them. In: other w are scales."""
    for i in range(problem.q.size):
        data = _clear_data(i, least, problem, z)
        w[i] = data if data > 0.0 else abs(w[i])
    _spread_sizes(least, problem, w)
    merit = 0.0
    for i in range(problem.q.size):
        error = exact_error(i, 0.0, problem, z) if w[i] <= 0.0 else 0.0
        if error > OF_DATA * -w[i]:
            _, terms = row_sum(i, problem, z)
            merit += _square(error / _worth(i, -w[i], terms, _data(i, 0.0, problem, z), least, problem))
    return merit


@kernel
def _worth(i, size, terms, data, least, problem):
    """Scale of an error in a row without data, or whose data may be rounding; size: of the natural z in it, 0 where unknown.

    Where z have terms that are larger than such data, the row is one without. Where no other row tells how large one of its z is, and
    rounding does not explain its data, in whatever units, these are data.
    """
    if size <= 0.0:
        return terms
    if terms > 2.0 * data:
        return min(size, terms)
    return terms if data > MINOR * size and _tells_alone(i, least, problem) else max(size, terms)


@kernel
def _tells_alone(i, least, problem):
    """Whether some z_j in row i, where it is more than rounding, has a size that no row tells whose q is more than rounding may be."""
    for k in range(problem.row[i], problem.row[i + 1]):
        j = problem.column[k]
        if problem.M[k] != 0.0 and _tells(problem.M[k], j, problem) and _natural_size(j, least, problem, problem.q) == 0.0:
            return True
    return False


_SECOND_LOOK = float64(types.boolean, float64, float64, PROBLEM, _floats, _floats)
_call_second_look = caller(_SECOND_LOOK)
address_of_second_look = on_demand(_SECOND_LOOK, second_look)


@tiny
def exact_error(i, rounding, problem, z):
    """The largest `excess` that w_i may have, computed with twice the digits; infinite where that overflows."""
    w_i = exact_row(i, problem, z)
    _, terms = row_sum(i, problem, z)
    noise = _ROUNDING**2 * (problem.row[i + 1] - problem.row[i]) * terms  # where q_i is smaller it is lost in twice the digits, too
    return excess(w_i, noise - grain(terms, rounding), problem.lower[i], problem.upper[i], z[i]) if math.isfinite(w_i) else math.inf


@tiny
def is_rounding_of_terms(i, error, problem, z):
    """True when an error of w_i is rounding of its terms."""
    _, terms = row_sum(i, problem, z)
    return error <= min(2.0 * _ROUNDING * (problem.row[i + 1] - problem.row[i]), _TIGHT) * terms


@tiny
def _is_tight(i, rounding, problem, z):
    """True when the error of w_i is rounding of its terms."""
    return is_rounding_of_terms(i, exact_error(i, rounding, problem, z), problem, z)


@kernel
def _data(i, rounding, problem, z):
    """Magnitudes of what is given in row i: q_i and the terms of z at a bound."""
    _, terms = row_sum(i, problem, z)
    data = given(problem.q[i], grain(terms, rounding))
    for k in range(problem.row[i], problem.row[i + 1]):
        j = problem.column[k]
        if z[j] == problem.lower[j] or z[j] == problem.upper[j]:
            data += abs(problem.M[k] * z[j])
    return data


@kernel
def _clear_data(i, least, problem, z):
    """As `_data` of a problem that is given, but 0 where that is no more than a q_i that may be rounding beside the q of other rows."""
    data = _data(i, 0.0, problem, z)
    return 0.0 if data == abs(problem.q[i]) and data <= least * largest_in_row(problem.row, problem.M, i) else data


@kernel
def _spread(thorough, only_tight, rounding, problem, z, w):
    """Rows with a large term in common with an honest row become honest; False: none did. All rows are asked only if ``thorough``."""
    spread = False
    for sweep in range(3 if thorough else 2):
        for a in range(w.size):
            i = w.size - 1 - a if sweep == 1 else a
            backed = w[i] < 0.0 and _is_backed(i, sweep == 2 and not spread, problem, z, w)
            if backed and (not only_tight or _is_tight(i, rounding, problem, z)):
                w[i] = -w[i]
                spread = True
    return spread


@kernel
def _is_backed(i, by_all, problem, z, w):
    """True when a large term ``M_ij z_j`` of row i has a large counterpart in honest row j, or in an honest row without a large own one."""
    row = problem.row
    for k in range(row[i], row[i + 1]):
        j = problem.column[k]
        if abs(problem.M[k] * z[j]) >= _LARGE * -w[i]:
            for m in range(row[j], row[j + 1]) if by_all else range(1):
                other = problem.column[m] if by_all else j
                if w[other] > 0.0 and _has_large(other, j, w[other], problem, z):
                    return True
    return False


@tiny
def _has_large(i, j, terms, problem, z):
    """True when z_j has a large term in row i, and that is row j or has no large own term."""
    large = _LARGE * terms
    is_free = i == j or abs(diagonal(problem.row, problem.column, problem.M, i) * z[i]) < large
    return is_free and abs(entry(problem.row, problem.column, problem.M, i, j) * z[j]) >= large


@kernel
def _spread_growth(thorough, rounding, problem, z, w):
    """Scales of rows without data become what z would make of them, had they not grown in rows that share large terms; False: none did."""
    spread = False
    for a in range(2 * w.size):
        i = a if a < w.size else 2 * w.size - 1 - a
        _, terms = row_sum(i, problem, z)
        if w[i] == -terms and _data(i, rounding, problem, z) == 0.0:
            scale = terms * _part_of_data(i, thorough, rounding, problem, z, w)
            if 0.0 < scale < terms:
                w[i] = -scale
                spread = True
    return spread


@kernel
def _part_of_data(i, by_all, rounding, problem, z, w):
    """The largest part that data has of the terms of a row that shares a large one with row i, where that is known; else 0."""
    row = problem.row
    most = 0.0
    for k in range(row[i], row[i + 1]):
        j = problem.column[k]
        if abs(problem.M[k] * z[j]) >= _LARGE * -w[i]:
            for m in range(row[j], row[j + 1]) if by_all else range(1):
                other = problem.column[m] if by_all else j
                _, terms = row_sum(other, problem, z)
                if terms > 0.0 and _has_large(other, j, terms, problem, z):
                    data = _data(other, rounding, problem, z)
                    part = data / terms if data > 0.0 else -w[other] / terms
                    most = max(most, part if part < 1.0 else 0.0)
    return most


@kernel
def multiply_exactly(problem, z, w):
    """``w = M z + q`` as if computed with twice the digits, where that does not overflow."""
    for i in range(problem.q.size):
        w[i] = exact_row(i, problem, z)
        if not math.isfinite(w[i]):
            w[i], _ = row_sum(i, problem, z)


@tiny
def exact_row(i, problem, z):
    """``w_i`` as if computed with twice the digits.

    Reference: Ogita, Rump, Oishi, SIAM Journal on Scientific Computing 26 (2005) 1955–1988, algorithm 5.3.
    """
    s, rest = problem.q[i], 0.0
    for k in range(problem.row[i], problem.row[i + 1]):
        a, b = problem.M[k], z[problem.column[k]]
        term = a * b
        a_high, b_high = _SPLITTER * a - (_SPLITTER * a - a), _SPLITTER * b - (_SPLITTER * b - b)
        a_low, b_low = a - a_high, b - b_high
        total = s + term
        old = total - term
        rest += (s - old) + (term - (total - old))
        rest += a_low * b_low - (((term - a_high * b_high) - a_low * b_high) - a_high * b_low)
        s = total
    return s + rest


@tiny
def place_of(row, column, i, j):
    """Place k of the entry (or block) ij, which must be stored; the columns of a row ascend."""
    low, high = row[i], row[i + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if column[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def entry(row, column, M, i, j):
    """``M_ij``, which must be stored."""
    return M[place_of(row, column, i, j)]


@kernel
def diagonal(row, column, M, i):
    """``M_ii``."""
    return entry(row, column, M, i, i)


@tiny
def largest_in_row(row, M, i):
    """``max_j |M_ij|``."""
    largest = 0.0
    for k in range(row[i], row[i + 1]):
        largest = max(largest, abs(M[k]))
    return largest


@tiny
def clip(lower, upper, z):
    """``z <- P_[lower,upper](z)``."""
    for i in range(z.size):
        z[i] = min(max(z[i], lower[i]), upper[i])


@kernel
def a_row_is_infeasible(problem):
    """True when some w_i has the wrong sign, beyond rounding of its terms and of its data, for every z within the bounds."""
    M, q = problem.M, problem.q
    found, small = False, least_data(problem)
    for i in range(q.size):
        most = least = q[i]
        terms = abs(q[i])
        for k in range(problem.row[i], problem.row[i + 1]):
            if M[k] != 0.0:
                at_lower, at_upper = M[k] * problem.lower[problem.column[k]], M[k] * problem.upper[problem.column[k]]
                most += max(at_lower, at_upper)
                least += min(at_lower, at_upper)
                terms += max(abs(at_lower) if abs(at_lower) < math.inf else 0.0, abs(at_upper) if abs(at_upper) < math.inf else 0.0)
        missing = max(-most if problem.upper[i] == math.inf else 0.0, least if problem.lower[i] == -math.inf else 0.0)
        found |= missing > _PROOF * terms and missing > rounding_of_data(i, small, problem)
    return found


@kernel
def proves_infeasible(problem, y, sizes):
    """True when y proves, up to rounding, that no z within the bounds gives w the signs that are asked for.

    The proof (Farkas): ``y_i >= 0`` where ``w_i >= 0`` is asked (upper_i infinite), ``<= 0`` where ``w_i <= 0`` is (lower_i infinite), and
    ``max over z in [lower, upper] of y^T (M z + q) < 0``. Where a sum ``(M^T y)_j`` is rounding and z_j has no bound, y^T q must be so
    clear that z_j would have to be 10^7 times larger than what moves the data, and that this rounding does not make it good with z_j as
    large as the rows ask for (see `_sizes_asked_for`). It is less than what rounding of the data can do. Work: sizes (n,).
    """
    q, lower, upper = problem.q, problem.lower, problem.upper
    n = q.size
    value, terms, of_data, least = 0.0, 0.0, 0.0, least_data(problem)
    for i in range(n):
        if (y[i] < 0.0 and lower[i] > -math.inf) or (y[i] > 0.0 and upper[i] < math.inf):
            return False
        value += y[i] * q[i]
        terms += abs(y[i] * q[i])
        of_data += abs(y[i]) * rounding_of_data(i, least, problem) if y[i] != 0.0 else 0.0
    is_clear = True
    for j in range(n):
        g, size = _slope(j, problem, y)
        if abs(g) > _CERTAIN * size:
            most = g * (upper[j] if g > 0.0 else lower[j])
            if most == math.inf:
                return False
            value += most
            terms += abs(most)
        elif size > 0.0 and max(abs(lower[j]), abs(upper[j])) < math.inf:
            terms += size * max(abs(lower[j]), abs(upper[j]))
        elif size > 0.0:
            is_clear &= _is_zero(j, problem, y)
    if is_clear:
        return value < -_CERTAIN * terms and value < -of_data
    if not (value < -_CLEAR * terms and value < -of_data):
        return False
    _sizes_asked_for(problem, y, sizes)
    unsure = 0.0
    for j in range(n):
        g, size = _slope(j, problem, y)
        if abs(g) <= _CERTAIN * size and max(abs(lower[j]), abs(upper[j])) == math.inf and not _is_zero(j, problem, y):
            unsure += _CERTAIN * size * sizes[j]
    return value < -_CLEAR * terms - unsure


@kernel
def _slope(j, problem, y):
    """``(M^T y)_j``, and the sum of the magnitudes in it."""
    row = problem.row
    g = size = 0.0
    for k in range(row[j], row[j + 1]):  # the pattern is symmetric: row j names what column j holds
        i = problem.column[k]
        product = y[i] * entry(row, problem.column, problem.M, i, j) if y[i] != 0.0 else 0.0
        g += product
        size += abs(product)
    return g, size


@kernel
def _sizes_asked_for(problem, y, sizes):
    """The largest z_j that a row asks for: to carry its q alone, then what z_k that are known by then are in it. Out: sizes.

    So what a chain moves at one end moves it as a whole, whatever its stiffness; these are rows of the proof. q counts in all rows, as what
    another asks for may be what makes the proof's rounding good. Parts of a column that are rounding ask for nothing.
    """
    for j in range(problem.q.size):
        sizes[j] = 0.0
    is_first, grows = True, True
    while grows:
        grows = False
        for j in range(problem.q.size):
            if sizes[j] == 0.0:
                sizes[j] = _size_asked_for(j, is_first, problem, y, sizes)
                grows |= sizes[j] > 0.0
        grows |= is_first
        is_first = False


@kernel
def _size_asked_for(j, is_first, problem, y, sizes):
    """The largest z_j that one row asks for; is_first: by its q alone."""
    row, column, M = problem.row, problem.column, problem.M
    most, largest, least = 0.0, 0.0, _ROUNDING * _slope(j, problem, y)[1]
    for k in range(row[j], row[j + 1]):
        largest = max(largest, abs(entry(row, column, M, column[k], j)))
    for k in range(row[j], row[j + 1]):
        i, load = column[k], 0.0
        part = abs(entry(row, column, M, i, j))
        asks = abs(y[i]) * part > least if y[i] != 0.0 else is_first and part > _ROUNDING * largest
        if asks:
            load = abs(problem.q[i])
            for l in range(row[i], row[i + 1] if not is_first else row[i]):
                load = max(load, abs(M[l]) * sizes[column[l]])
            most = max(most, load / part)
    return most


@kernel
def _is_zero(j, problem, y):
    """True when ``(M^T y)_j`` is nothing but one product after the other with what is an exact multiple of it: exact zero."""
    row, column = problem.row, problem.column
    s, exact = 0.0, True
    for k in range(row[j], row[j + 1]):
        product = y[column[k]] * entry(row, column, problem.M, column[k], j)
        total = s + product
        old = total - product
        exact &= (s - old) + (product - (total - old)) == 0.0 and abs(product) == math.floor(abs(product))
        s = total
    return exact and s == 0.0


@kernel
def judge(status, n_iter, problem, options, z, w, info):
    """Status of a method that believes to have finished (CONVERGED) or has given up, checked against the merit function.

    The merit is the 2-norm of all ``error of w_i / scale_i``. The error is the part of w_i whose sign does not go with the place of z_i:
    all of it inside the bounds, the part that pulls z_i inwards at a bound, none between equal bounds. The scale is the sum of magnitudes
    ``|q_i| + sum_j |M_ij z_j|`` that cancel in w_i. So the merit has no unit, and it stays the same when rows or unknowns are counted in
    other units. Where z has grown until it hides q, `second_look` decides. Where only rounding is in the way, as z that are inside but near
    the bound that w_i names, `_mend` takes it out. Rows without data, or whose data is rounding, are judged by what z are elsewhere, see
    `_beside`. Where anything is NaN or infinite, z becomes the point of the box nearest to 0.

    In the end CONVERGED means of each row that its error is at most tol of its terms, or what rounding of the data explains:

    - of each z_j inside its bounds, 2^-46 of the z_j that carries alone the terms of another equation, of the one that tells it best, and
      of no more than its bounds allow, or, where no equation tells, the largest of other rows; a z_j at a bound is exact;
    - of q_i all of it, where it is rounding beside the largest q of rows that ask for some z (`least_data`), and at most tol of the
      largest term that some z_j has in its row by any such equation, or by another row if no equation has z_j. So
      ``x + y = 0.3 - 0.1 - 0.2`` is met by x = y = 0, where x is beside 1 in another row.

    An equation is here a row whose w_i is 0, up to tol of its terms, or is missed. One without q, with bounds that are 0, tells of its z
    only if one of them is more than rounding in an equation that tells: multipliers of 1e-31 do not confirm each other. The terms are those
    at z: a link to an unknown that is 0 makes no row large, whatever it might carry. Only to rows in which all z are 0, as where nothing
    flows, such rows tell from one to the next what might be there. In the judge of `tests.random_problems` the same stands in rational
    numbers.

    Where ``rounding`` is not 0, errors up to it, in units of w, and up to the rounding of the terms are none, and q up to that is no data:
    schemes compute q as the difference of larger numbers, to which the z of the steps before belong. A problem that is given has 0.
    """
    tol, rounding = options.tol, options.rounding
    clip(problem.lower, problem.upper, z)
    info[0] = n_iter
    merit, most, n_clear, n_mendable = residual(tol, rounding, problem, z, w)
    if not math.isfinite(merit):
        for i in range(problem.q.size):
            z[i] = min(max(0.0, problem.lower[i]), problem.upper[i])
        merit, most, n_clear, n_mendable = residual(tol, rounding, problem, z, w)
        info[1] = merit if math.isfinite(merit) else math.inf
        return NON_FINITE
    if n_mendable > 0 and n_clear == 0:
        merit, most = _mend(merit, most, tol, rounding, problem, z, w)
    met = merit
    if tol < merit < math.inf and rounding == 0.0 and status != MAX_ITER:
        merit, most = _beside(merit, most, tol, problem, z, w)
    if merit <= tol < most or tol < merit < _VISIBLE * most:
        closer = address_of_second_look()
        merit = _call_second_look(closer, (merit <= tol, tol, rounding, problem, z, w)) if closer != 0 else math.inf
    if merit <= tol < met and rounding == 0.0:
        merit = met if is_more_than_rounding(tol, problem, z, w) else merit
    info[1] = merit if math.isfinite(merit) else math.inf
    if merit <= tol:
        return CONVERGED
    return STALLED if status == CONVERGED else status


@kernel
def conclude(status, n_iter, row, column, M, q, lower, upper, options, z, w, info):
    """`judge` of the arrays of a problem, for methods of a user's own."""
    return judge(status, n_iter, problem_of((row, column, M, q, lower, upper)), options, z, w, info)


@kernel
def _mend(merit, most, tol, rounding, problem, z, w):
    """(merit, the most it may be) with what is left of rounding taken out of z, if that is a solution; else z stays. w keeps z meanwhile.

    Failing z near the bound that w_i names go there. In failing rows without data, where everything may be rounding, z becomes 0.
    """
    row, column, q = problem.row, problem.column, problem.q
    for i in range(q.size):
        w[i] = z[i]
    for i in range(q.size):
        w_i, terms, error, _, data = _judged(i, rounding, problem, z)
        if error > tol * terms:
            if _is_near_its_bound(i, w_i, terms, problem, z):
                w[i] = problem.lower[i] if w_i > 0.0 else problem.upper[i]
            elif data == 0.0:
                for k in range(row[i], row[i + 1]):
                    if problem.M[k] != 0.0:
                        w[column[k]] = min(max(0.0, problem.lower[column[k]]), problem.upper[column[k]])
    new_merit = new_most = 0.0
    for i in range(q.size):
        _, terms, error, noise, data = _judged(i, rounding, problem, w)
        if noise > 0.0:
            new_merit += _square(error / terms)
            new_most += _square(noise / scale_of_row(terms, data))
    new_merit, new_most = math.sqrt(new_merit), math.sqrt(new_most)
    if new_merit <= tol:
        for i in range(q.size):
            z[i] = w[i]
        merit, most = new_merit, new_most
    multiply(row, column, problem.M, q, z, w)
    return merit, most


@kernel
def _beside(merit, most, tol, problem, z, w):
    """(merit, the most it may be) at a z whose w fails only in rows without data, or by rounding of the data; else they stay. w as it was.

    A row without data is worth as much as its terms; what is rounding of the largest term of a z of `_natural_size` in it, which the rows
    with data say, and rows without from one to the next, is nothing. A row whose data may be rounding is worth that term. Meanwhile w holds
    these sizes.
    """
    q = problem.q
    least = least_data(problem)
    for i in range(q.size):
        _, terms, error, _, _ = _judged(i, 0.0, problem, z)
        is_missed = error > tol * terms and error > rounding_of_data(i, least, problem)
        if is_missed and _clear_data(i, least, problem, z) > 0.0:
            return merit, most
    for i in range(q.size):
        w[i] = _clear_data(i, least, problem, z)
    _spread_sizes(least, problem, w)
    new_merit = new_most = 0.0
    for i in range(q.size):
        _, terms, error, noise, data = _judged(i, 0.0, problem, z)
        is_rounding = data > 0.0 and error <= rounding_of_data(i, least, problem)
        if noise > 0.0 and not (error > tol * terms and (is_rounding or error <= OF_DATA * -w[i])):
            scale = max(terms, -w[i])
            new_merit += _square(error / (_worth(i, -w[i], terms, data, least, problem) if w[i] <= 0.0 else terms))
            new_most += _square(noise / (scale if w[i] <= 0.0 else scale_of_row(terms, data)))
    new_merit, new_most = math.sqrt(new_merit), math.sqrt(new_most)
    multiply(problem.row, problem.column, problem.M, q, z, w)
    return (new_merit, new_most) if new_merit <= tol else (merit, most)


@kernel
def is_more_than_rounding(tol, problem, z, w):
    """Whether some row misses more than tol of its terms, and than what rounding of the data explains (see `judge`). w as it was.

    Meanwhile w holds the terms of rows, with a minus where w_i is not asked to be 0.
    """
    q = problem.q
    for i in range(q.size):
        w_i, terms = row_sum(i, problem, z)
        is_slack = abs(w_i) > tol * terms and excess(w_i, 0.0, problem.lower[i], problem.upper[i], z[i]) == 0.0
        w[i] = -terms if is_slack else terms if _data(i, 0.0, problem, z) > 0.0 else 0.0
    _tell_from_row_to_row(problem, z, w)
    least = least_data(problem)
    is_more = _is_a_row_missed(False, tol, least, problem, z, w)
    if not is_more:
        _spread_terms(problem, z, w)
        is_more = _is_a_row_missed(True, tol, least, problem, z, w)
    multiply(problem.row, problem.column, problem.M, q, z, w)
    return is_more


@kernel
def _is_a_row_missed(idle, tol, least, problem, z, terms):
    """Whether a row in which all z are 0, or one of the others, misses more than tol of its terms, and than what is explained."""
    is_more, i = False, 0
    while not is_more and i < problem.q.size:
        size, error = row_sum(i, problem, z)[1], exact_error(i, 0.0, problem, z)
        if error > tol * size and (size == abs(problem.q[i])) == idle:
            is_more = not error <= _explained(i, tol, least, problem, z, terms)
        i += 1
    return is_more


@kernel
def _tell_from_row_to_row(problem, z, terms):
    """Equations without data tell of their z, if such an other has one of these as more than rounding. In and out: terms, 0: tells none."""
    tells_more, level = True, 0
    while tells_more and level < LEVELS:
        tells_more, level = False, level + 1
        for i in range(terms.size):
            if terms[i] == 0.0 and _has_a_known_z(i, problem, z, terms):
                terms[i] = row_sum(i, problem, z)[1]
                tells_more = True


@kernel
def _has_a_known_z(i, problem, z, terms):
    """Whether a z that is not 0 in row i is more than rounding of the terms of an equation that tells."""
    is_known, k = False, problem.row[i]
    while not is_known and k < problem.row[i + 1]:
        j = problem.column[k]
        for l in range(problem.row[j], problem.row[j + 1] if problem.M[k] * z[j] != 0.0 else problem.row[j]):
            other = problem.column[l]
            term = abs(entry(problem.row, problem.column, problem.M, other, j) * z[j])
            is_known |= terms[other] > 0.0 and term > MINOR * terms[other]
        k += 1
    return is_known


@kernel
def _spread_terms(problem, z, terms):
    """Equations in which all z are 0 are as large as others say that these might be, from one to the next. In and out: terms."""
    spread, level = True, 0
    while spread and level < LEVELS:
        spread, level = False, level + 1
        for i in range(terms.size):
            if terms[i] >= 0.0 and row_sum(i, problem, z)[1] == abs(problem.q[i]):
                size = _largest_term(i, problem, terms)
                if terms[i] < MINOR * size:
                    terms[i] = size
                    spread = True


@kernel
def _explained(i, tol, least, problem, z, terms):
    """The error of row i that rounding explains: of its z, where these are inside, and all of q_i, where that is rounding."""
    of_z, q_i = 0.0, abs(problem.q[i])
    for k in range(problem.row[i], problem.row[i + 1]):
        j = problem.column[k]
        if problem.M[k] != 0.0 and problem.lower[j] < z[j] < problem.upper[j]:
            best, worst = _sizes_elsewhere(j, i, problem, terms)
            best = min(best if best > 0.0 or terms[i] > 0.0 else worst, max(abs(problem.lower[j]), abs(problem.upper[j])))
            of_z = max(of_z, _in_range(abs(problem.M[k]) * _in_range(best)))
    is_rounding = q_i <= least * largest_in_row(problem.row, problem.M, i) and q_i <= tol * _largest_term(i, problem, terms)
    return OF_DATA * of_z / _MORE + (q_i * _MORE if is_rounding else 0.0)


@kernel
def _largest_term(i, problem, terms):
    """The largest term that a z has in row i which carries alone the terms of another row, up to its bounds."""
    size = 0.0
    for k in range(problem.row[i], problem.row[i + 1]):
        if problem.M[k] != 0.0:
            j = problem.column[k]
            worst = min(_sizes_elsewhere(j, i, problem, terms)[1], max(abs(problem.lower[j]), abs(problem.upper[j])))
            size = max(size, _in_range(abs(problem.M[k]) * _in_range(worst)))
    return size


@kernel
def _sizes_elsewhere(j, i, problem, terms):
    """The least and the largest z_j that carry alone the terms of an equation but i; 0, and that of another row, where no such has it."""
    best, of_equations, of_others = math.inf, 0.0, 0.0
    for k in range(problem.row[j], problem.row[j + 1]):
        other = problem.column[k]
        part = abs(entry(problem.row, problem.column, problem.M, other, j))
        if part > 0.0 and other != i and terms[other] != 0.0:
            size = abs(terms[other] / part)
            if terms[other] > 0.0:
                best, of_equations = min(best, size), max(of_equations, size)
            else:
                of_others = max(of_others, size)
    return (best, of_equations) if of_equations > 0.0 else (0.0, of_others)


@tiny
def _in_range(x):
    """x, or 0 where it has lost its digits or is infinite."""
    return x if _SMALLEST <= x < math.inf else 0.0


@kernel
def _spread_sizes(least, problem, sizes):
    """Rows that are worth 0 by themselves get, with a minus, what they are worth beside others, from one to the next. In and out: sizes."""
    for _ in range(LEVELS):
        for i in range(sizes.size):
            sizes[i] = sizes[i] if sizes[i] > 0.0 else -size_beside(i, least, problem, sizes)


@kernel
def hides_data(tol, problem, z, w):
    """True when some row misses its data by more than tol of it, though by rounding of its terms only: z has grown, or only there.

    A row without data is worth what z of natural size have in it, which is asked, with w as work, where its error is not rounding alone.
    """
    q, least, is_open = problem.q, -1.0, False
    for i in range(q.size):
        _, terms = row_sum(i, problem, z)
        if _ROUNDING * terms > tol * abs(q[i]):
            data, error = _data(i, 0.0, problem, z), exact_error(i, 0.0, problem, z)
            if data > 0.0 and error > tol * data:
                least = least_data(problem) if least < 0.0 else least
                if data > rounding_of_data(i, least, problem):
                    return True
            is_open |= data == 0.0 and error > _SEEN * tol * terms
    return is_open and _misses_beside(tol, problem, z, w)


@kernel
def _misses_beside(tol, problem, z, w):
    """True when some row without data misses more than tol of what z of natural size have in it. Out: w, which holds sizes meanwhile."""
    least, is_missed = least_data(problem), False
    for i in range(problem.q.size):
        w[i] = _clear_data(i, least, problem, z)
    _spread_sizes(least, problem, w)
    for i in range(problem.q.size):
        is_missed |= w[i] < 0.0 and exact_error(i, 0.0, problem, z) > tol * -w[i]
    multiply_exactly(problem, z, w)
    return is_missed


@tiny
def affordable(limit, cost):
    """The iterations that a method makes by default: limit, or as many of the given cost (in multiplications) as a few seconds allow."""
    return max(1, int(min(float(limit), _WORK / max(cost, 1.0))))


@tiny
def is_affordable(work, options):
    """True while the multiplications done are what a method may spend, or max_iter limits the work instead."""
    return work <= _WORK or options.max_iter > 0.0


@tiny
def goes_on(least, options, problem, z, w, info):
    """True when an iteration that has converged may as well go on: its merit still falls, and one measure is not yet met.

    Where terms are much larger than q, the merit asks less than ``||natural map|| <= tol (1 + ||q||)``, which most problems are written
    for; that one has units, and is not what decides in the end.
    """
    q, error, scale = problem.q, 0.0, 0.0
    for i in range(q.size):
        error += max(min(w[i], z[i] - problem.lower[i]), z[i] - problem.upper[i]) ** 2
        scale += q[i] ** 2
    return info[1] < 0.999 * least and math.sqrt(error) > options.tol * (1.0 + math.sqrt(scale))


@tiny
def look(n_iter, full, progress, problem, options, z, w, info):
    """Status of an iteration that goes on while it is MAX_ITER. In/out: progress (2,): the least merit, how many looks remain.

    These are ``full`` again where the merit fell by a thousandth, else one less; with none left the iteration has STALLED.
    """
    status = judge(MAX_ITER, n_iter, problem, options, z, w, info)
    if status == CONVERGED and goes_on(progress[0], options, problem, z, w, info):
        status = MAX_ITER
    progress[1] = full if info[1] < 0.999 * progress[0] else progress[1] - 1.0
    if status == MAX_ITER and progress[1] == 0.0:
        status = CONVERGED if info[1] <= options.tol else STALLED
    progress[0] = min(info[1], progress[0])
    return status
