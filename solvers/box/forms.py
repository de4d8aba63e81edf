"""From what users have to what solvers take: compressed rows, orders that keep them narrow, equations and polyhedra as box problems."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._jit import kernel
from nsds.solvers.box.signature import (
    MINOR,
    Problem,
    call_solver,
    entry,
    exact_error,
    hides_data,
    is_rounding_of_terms,
    largest_in_row,
    row_sum,
)
from nsds.solvers.workspaces import DOUBTFUL, REFUSED, UNCERTAIN
from nsds.status import CONVERGED

_LEAST, _MOST = 1e-50, 1e50  # sizes of numbers with which all methods get along
_SCALINGS = 20
_SAFE = 400  # binary digits of the largest numbers whose products are split into digits
_FAR = 160.0  # binary digits by which bounds may be larger than what q asks of z
NOTHING, ROUNDING, MORE = range(3)  # of `missing`
_LOST = 2.0**-48  # of 1: what rounding leaves of sums of some terms
_SPARSE_FROM = 32  # unknowns from which a dense matrix is searched for zeros
_DENSITY = 0.2


def narrow_order(row, column, n):
    """An order of n unknowns that keeps entries (row, column) near the diagonal: the given one, or reverse Cuthill–McKee."""
    if not row.size or (row - column).max() <= 2 * np.bincount(row).max():
        return np.arange(n)
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    pattern = csr_array((np.ones(row.size), (row, column)), shape=(n, n))
    return reverse_cuthill_mckee(pattern, symmetric_mode=True).astype(np.int64)


@lru_cache(maxsize=64)
def dense_pattern(n):
    """(row, column) of n × n entries or blocks that are all stored."""
    return np.arange(n + 1) * n, np.tile(np.arange(n), n)


def matrix(owner, field, value, shape=None):
    """A checked matrix: a float array, or a scipy.sparse array in coordinate form."""
    if hasattr(value, "tocoo"):
        return entries(owner, field, value, shape)
    return _checks.array(owner, field, value, n_dims=2) if shape is None else _checks.array(owner, field, value, shape=shape)


def entries(owner, field, value, shape=None):
    """As `matrix`, but an array may be the caller's own, and NaN and infinities may be in it."""
    if type(value) is np.ndarray or not hasattr(value, "tocoo"):
        return _checks.floats(owner, field, value, None if shape else 2, shape)
    value = value.tocoo()
    if len(value.shape) != 2:
        raise ValueError(f"{owner}: {field} must have 2 dimensions, got shape {value.shape}")
    if shape is not None and value.shape != shape:
        raise ValueError(f"{owner}: {field} must have shape {shape}, got {value.shape}")
    from scipy.sparse import coo_array

    return coo_array((_checks.array(owner, field, value.data), (value.row, value.col)), value.shape)


def dense(value):
    """A matrix from `matrix` as a float array."""
    return value.toarray() if hasattr(value, "toarray") else value


def box(owner, M, q, lower, upper, reorder):
    """(`Problem`, order) for solvers, of a square M and checked vectors.

    Sorted compressed rows with symmetric pattern and full diagonal; unknown k is the caller's unknown order[k].
    """
    row, column, data, order = compressed_rows(matrix(owner, "M", M, (q.size, q.size)), reorder)
    if order is None:
        return Problem(row, column, data, q, lower, upper), slice(None)
    return Problem(row, column, data, q[order], lower[order], upper[order]), order


def compressed_rows(M, reorder=False):
    """(row, column, data, order) of a square matrix from `matrix`: sorted compressed rows, symmetric pattern, full diagonal.

    order is None where the unknowns keep their places; else row k of the result is row order[k] of M.
    """
    n = M.shape[0]
    if type(M) is np.ndarray:
        if n < _SPARSE_FROM or np.count_nonzero(M) > _DENSITY * n**2:
            return *dense_pattern(n), M.reshape(-1), None
        i, j = np.nonzero(M)
        x = M[i, j]
    else:
        i, j, x = M.row.astype(np.int64), M.col.astype(np.int64), M.data
    order = None
    if reorder and n:
        order = narrow_order(np.concatenate([i, j]), np.concatenate([j, i]), n)
        place = np.empty(n, np.int64)
        place[order] = np.arange(n)
        i, j = place[i], place[j]
    return *with_symmetric_pattern(i, j, x, n), order


def with_symmetric_pattern(i, j, x, n):
    """(row, column, data) of the sum of entries x at (i, j), with what makes the pattern symmetric and the diagonal full."""
    every, zeros = np.arange(n), np.zeros(x.size + n)
    a, b, values = np.concatenate([i, j, every]), np.concatenate([j, i, every]), np.concatenate([x, zeros])
    row, column, data = np.empty(n + 1, np.int64), np.empty_like(a), np.empty_like(values)
    n_stored = sum_entries(a, b, values, np.arange(a.size), np.empty_like(a), row, column, data)
    return row, column[:n_stored].copy(), data[:n_stored].copy()


@kernel
def sum_entries(i, j, x, places, spare, row, column, data):
    """Compressed rows, columns ascending, of the sum of entries x at (i, j), each in their order. Returns how many there are.

    Out: row, column, data. In: places, 0, 1, 2, ...; they and spare, as long, are work.
    """
    _order_by(j, places, row, spare)
    _order_by(i, spare, row, places)
    for k in range(row.size):
        row[k] = 0
    n_stored, in_row = 0, 0
    for k in range(places.size):
        e = places[k]
        if n_stored > 0 and in_row == i[e] and column[n_stored - 1] == j[e]:
            data[n_stored - 1] += x[e]
        else:
            in_row, column[n_stored], data[n_stored] = i[e], j[e], x[e]
            row[in_row + 1] += 1
            n_stored += 1
    for k in range(row.size - 1):
        row[k + 1] += row[k]
    return n_stored


@kernel
def _order_by(key, before, begin, after):
    """Places in the order of their keys, those with one key as they were before. Out: after. Work: begin, one more than there are keys."""
    for k in range(begin.size):
        begin[k] = 0
    for k in range(before.size):
        begin[key[before[k]] + 1] += 1
    for k in range(begin.size - 1):
        begin[k + 1] += begin[k]
    for k in range(before.size):
        place = begin[key[before[k]]]
        after[place] = before[k]
        begin[key[before[k]]] = place + 1


class Units(NamedTuple):
    """Powers of two by which rows were multiplied, and in which unknowns are counted."""

    rows: np.ndarray
    columns: np.ndarray


def in_common_units(problem):
    """(`Problem`, `Units`) with numbers whose squares neither vanish nor overflow, and q of one size in all that is linked.

    ``R M C`` with largest entries of rows and columns about 1, ``R q`` and ``bounds / C``. Rows that unknowns link, and these unknowns,
    share one more unit, in which the largest q is about 1: nothing says how costs and constraints of a programme compare. Powers of two,
    so that nothing is rounded; a symmetric matrix stays symmetric.
    """
    column, M, q = problem.column, problem.M, problem.q
    n, i = q.size, np.repeat(np.arange(q.size), np.diff(problem.row))
    exponent = np.where(M == 0.0, -np.inf, np.frexp(np.where(M == 0.0, 1.0, M))[1])
    R, C = np.zeros(n), np.zeros(n)
    for _ in range(_SCALINGS):
        largest = np.full((2, n), -np.inf)
        np.maximum.at(largest[0], i, exponent + R[i] + C[column])
        np.maximum.at(largest[1], column, exponent + R[i] + C[column])
        step = np.where(largest > -np.inf, np.round(largest / 2), 0.0)
        R, C = R - step[0], C - step[1]
    # unknowns that bounds fix at 0 are in no row
    links = (M != 0.0) & ((problem.lower != 0.0) | (problem.upper != 0.0))[column]
    part_of_row, part_of_column = _linked(n, i[links], column[links])
    size, far = np.full((2, 2 * n), -np.inf)
    np.maximum.at(size, part_of_row[q != 0.0], (np.frexp(q)[1] + R)[q != 0.0])
    for side in (problem.lower, problem.upper):
        is_data = np.isfinite(side) & (side != 0.0)
        np.maximum.at(far, part_of_column[is_data], (np.frexp(side)[1] - C)[is_data])
    size = np.maximum(size, far - np.where(size > -np.inf, _FAR, 0.0))
    size[size == -np.inf] = 0.0
    units = Units(R - size[part_of_row], C + size[part_of_column])
    scaled = _times(M, R[i] + C[column]), _times(q, units.rows), *(_bound(side, -units.columns) for side in (problem.lower, problem.upper))
    return Problem(problem.row, column, *scaled), units


def _linked(n, row, column):
    """Numbers of the parts to which rows and columns belong that entries link with each other."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, part = connected_components(coo_array((np.ones(row.size), (row, n + column)), shape=(2 * n, 2 * n)), directed=False)
    return part[:n], part[n:]


@kernel
def wants_common_units(status, tol, problem, z):
    """Whether what a method says hangs on what counts as rounding beside the largest q, which depends on units of rows and unknowns.

    So it is where some q_i is so small, for rows whose largest entry is 1, and the method has failed, proved that there is no solution, or
    returns a z that misses a row by more than tol of its q_i, or, where that is 0, of its terms.
    """
    q, largest, smallest = problem.q, 0.0, np.inf
    for i in range(q.size):
        size = largest_in_row(problem.row, problem.M, i)
        if size > 0.0 and q[i] != 0.0:
            largest, smallest = max(largest, abs(q[i]) / size), min(smallest, abs(q[i]) / size)
    if smallest >= MINOR * largest:
        return False
    if status != CONVERGED:
        return True
    for i in range(q.size):
        _, terms = row_sum(i, problem, z)
        if exact_error(i, 0.0, problem, z) > tol * (abs(q[i]) if q[i] != 0.0 else terms):
            return True
    return False


@kernel
def missing(tol, problem, z):
    """The lack of z in a problem in common units: NOTHING, ROUNDING of the terms of its rows, or MORE.

    A row has what it asks for to within tol of its q_i, or of the terms of z that carry alone what some other row asks for. So a q_i is
    what rounding left of a sum that should be 0, or less than what is asked, if others say that z are so much larger. Rows whose q are
    rounding beside 1 themselves, the largest q of what is linked, say nothing, and are nothing where no others tell.
    """
    row, M, q, lacks = problem.row, problem.M, problem.q, NOTHING
    for i in range(q.size):
        asked = 0.0
        for k in range(row[i], row[i + 1]):
            if M[k] != 0.0:
                asked += abs(M[k]) * _asked_by_others(i, problem.column[k], problem)
        size = asked + abs(q[i]) if asked > 0.0 or abs(q[i]) > _LOST * largest_in_row(row, M, i) else 1.0
        error = exact_error(i, 0.0, problem, z)
        if error > tol * size:
            lacks = max(lacks, ROUNDING if is_rounding_of_terms(i, error, problem, z) else MORE)
    return lacks


@kernel
def _asked_by_others(i, j, problem):
    """The least z_j that carries alone the q of a row other than i, up to its bounds; 0 where no row tells."""
    row, column, M, q, size = problem.row, problem.column, problem.M, problem.q, np.inf
    for k in range(row[j], row[j + 1]):
        other = column[k]
        part = abs(entry(row, column, M, other, j))
        if other != i and abs(q[other]) > _LOST * largest_in_row(row, M, other) and part > 0.0:
            size = min(size, abs(q[other]) / part)
    return min(size, max(abs(problem.lower[j]), abs(problem.upper[j]))) if size < np.inf else 0.0


@kernel
def solve_moderate(solver, z0, problem, options, z, w, info, work, iwork):
    """Solve a problem from a guess; REFUSED where it wants `in_common_units`, a number is NaN, or bounds cross.

    In place of CONVERGED: DOUBTFUL where rounding of the terms of a row hides more than tol of its data, UNCERTAIN where it hangs on units.
    solver: the address of its compiled code; all else as in `nsds.solvers.box.signature`.
    """
    lower, upper = problem.lower, problem.upper
    is_good = (
        _are_moderate(False, problem.M) and _are_moderate(False, problem.q) and _are_moderate(True, lower) and _are_moderate(True, upper)
    )
    for i in range(problem.q.size):
        is_good &= lower[i] <= upper[i] and lower[i] < np.inf and upper[i] > -np.inf and abs(z0[i]) < np.inf
        z[i] = z0[i]
    if not is_good:
        return REFUSED
    iwork[0] = 0
    status = call_solver(solver, (problem, options, z, w, info, work, iwork))
    if wants_common_units(status, options.tol, problem, z):
        return UNCERTAIN if status == CONVERGED else REFUSED
    is_doubtful = status == CONVERGED and hides_data(options.tol, problem, z, w)
    return DOUBTFUL if is_doubtful else status


@kernel
def _are_moderate(may_be_infinite, numbers):
    """Whether all numbers but 0, and infinity where that may be, are of sizes with which all methods get along."""
    for i in range(numbers.size):
        size = abs(numbers[i])
        if not (_LEAST <= size <= _MOST or size == 0.0 or (may_be_infinite and size == np.inf)):
            return False
    return True


def _times(x, exponent):
    """``x 2^exponent``, in two steps as the power alone may overflow."""
    half = np.trunc(exponent / 2)
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(np.ldexp(x, half.astype(int)), (exponent - half).astype(int))


def _bound(side, exponent):
    """A bound in other units; a finite one stays finite, and one that is not 0 stays so."""
    scaled = _times(side, exponent)
    scaled = np.where(np.isinf(scaled) & np.isfinite(side), np.copysign(np.finfo(float).max, side), scaled)
    return np.where((scaled == 0.0) & (side != 0.0), np.copysign(np.finfo(float).tiny, side), scaled)


def of_safe_size(problem, z):
    """(`Problem`, z) with one power of two for all of M and one for all of z, where products of digits would overflow else."""
    largest = [np.frexp(abs(x).max(initial=0.0))[1] for x in (problem.M, problem.q, z)]
    of_M = min(0, _SAFE - largest[0])
    of_z = min(0, _SAFE - largest[2], 2 * _SAFE - largest[1] - of_M)
    M, q, *others = (_times(x, np.array(k)) for x, k in zip((*problem[2:], z), (of_M, of_M + of_z, of_z, of_z, of_z), strict=True))
    return Problem(problem.row, problem.column, M, q, *others[:2]), others[2]


def in_units_of(units, order, z):
    """A z of the user's in the units of a scaled problem, whose unknown k is order[k]; the order stays the user's."""
    exponent = np.empty(z.size)
    exponent[order] = -units.columns
    return _times(z, exponent)


def in_users_units(units, lower, upper, scaled_lower, scaled_upper, z, w):
    """(z, w) of a problem from `in_common_units`; z within the bounds that were given, and at them where it was at the scaled ones.

    Scaled bounds may have lost digits, and may have become equal: there w tells which of the two is meant.
    """
    at_lower, at_upper = z <= scaled_lower, z >= scaled_upper
    at_lower &= ~at_upper | (w >= 0.0)
    z, w = _times(z, units.columns), _times(w, -units.rows)
    return np.where(at_lower, lower, np.where(at_upper, upper, np.clip(z, lower, upper))), w


def bounds(owner, n, lower, upper):
    """(lower, upper) as vectors: numbers are repeated; infinities allowed, NaN and lower > upper not."""
    sides = [np.empty(n), np.empty(n)]
    for side, field, value in zip(sides, ("lower", "upper"), (lower, upper), strict=True):
        side[...] = bound_of(owner, n, field, value)
    if ((sides[0] <= sides[1]) & (sides[0] < np.inf) & (sides[1] > -np.inf)).all():
        return sides
    for field, side in zip(("lower", "upper"), sides, strict=True):
        if np.isnan(side).any():
            raise ValueError(f"{owner}: {field} must not be NaN, got {side}")
    wrong = np.flatnonzero((sides[0] > sides[1]) | (sides[0] == np.inf) | (sides[1] == -np.inf))
    i = wrong[0]
    raise ValueError(
        f"{owner}: lower must not exceed upper, and both must leave a finite point, got {sides[0][i]} and {sides[1][i]} at {i}"
    )


def bound_of(owner, n, field, value):
    """A bound as it was given, a number or one for each unknown; it may be NaN, or on the wrong side of the other."""
    if type(value) is float:
        return value
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "biuf" or given.shape not in ((), (n,)):
            raise TypeError
        return given
    except (TypeError, ValueError):
        raise ValueError(f"{owner}: {field} must be a number or have shape {(n,)}, got {_checks.shortened(value)}") from None


def squared(owner, M, q, lower, upper):
    """(M, q, (lower, upper), rows, columns) of an MLCP with more equations than free unknowns or fewer, padded with zeros to square form.

    rows and columns say where the rows of w and the unknowns are.
    """
    n_rows, n = M.shape
    n_free = int(((lower == -np.inf) & (upper == np.inf)).sum())
    m = n - n_free
    n_equations = n_rows - m
    if n_equations < 0 or (lower[:n_free] > -np.inf).any() or (upper[:n_free] < np.inf).any():
        raise ValueError(
            f"{owner}: of a matrix M that is not square, {M.shape}, the free unknowns must come first, and there must be a row for each of "
            f"the {m} bounded ones"
        )
    padded = max(n_free, n_equations)
    rows = np.concatenate([np.arange(n_equations), padded + np.arange(m)])
    columns = np.concatenate([np.arange(n_free), padded + np.arange(m)])
    square, vector = np.zeros((padded + m,) * 2), np.zeros(padded + m)
    edges = np.full(padded + m, -np.inf), np.full(padded + m, np.inf)
    square[np.ix_(rows, columns)] = M.toarray() if hasattr(M, "toarray") else M
    vector[rows], edges[0][columns], edges[1][columns] = q, lower, upper
    return square, vector, edges, rows, columns


def blocks(rows):
    """One sparse matrix of a nested list of matrices; None for zero blocks."""
    from scipy.sparse import block_array, coo_array

    return block_array([[None if b is None else coo_array(b) for b in line] for line in rows], format="coo")


def joined(rows):
    """`blocks`, but an array where there are few unknowns and all parts are arrays; no row or column of blocks may be None alone."""
    parts = [b for line in rows for b in line if b is not None]
    heights = [next(b.shape[0] for b in line if b is not None) for line in rows]
    widths = [next(b.shape[1] for b in column if b is not None) for column in zip(*rows, strict=True)]
    if sum(widths) >= _SPARSE_FROM or any(not isinstance(b, np.ndarray) for b in parts):
        return blocks(rows)
    result, top = np.zeros((sum(heights), sum(widths))), 0
    for line, height in zip(rows, heights, strict=True):
        left = 0
        for b, width in zip(line, widths, strict=True):
            if b is not None:
                result[top : top + height, left : left + width] = b
            left += width
        top += height
    return result


def identity(n):
    """The identity, as a sparse matrix."""
    from scipy.sparse import eye_array

    return eye_array(n, format="coo")


def constraints(owner, edges, G, g, A, b):
    """(matrices and vectors, bounds) of bounds and the rows ``G z >= g`` and ``A z = b``, either of which may be None.

    Bounds are those of z, followed by those of the multipliers of the rows.
    """
    n, parts = edges[0].size, []
    for names, matrix, vector, low in ((("G", "g"), G, g, 0.0), (("A", "b"), A, b, -np.inf)):
        if (matrix is None) != (vector is None):
            raise ValueError(f"{owner}: {names[0]} and {names[1]} belong together")
        if matrix is not None:
            parts.append(polyhedron(owner, n, matrix, vector, names))
            size = parts[-1][1].size
            edges = [np.concatenate([side, np.full(size, bound)]) for side, bound in zip(edges, (low, np.inf), strict=True)]
    return parts, edges


def polyhedron(owner, n, G, g, names=("G", "g")):
    """Checked (G, g) of m inequalities or equations in n unknowns."""
    g = _checks.array(owner, names[1], g, n_dims=1)
    return matrix(owner, names[0], G, (g.size, n)), g
