"""One-step problems with bounds whose matrix ``W = C A^-1 B + D`` is never formed: sparse equations for the state and the multipliers.

    A d - B z = 0,      w = C d + D z + q,      lower <= z <= upper,  -w ∈ N_[lower,upper](z)

For a set of basic rows, those with ``w_i = 0``, the others being at a bound, this is one sparse system for (d, z) (Newton's method on
``z - P(z - w) = 0``, as block principal pivoting: Júdice, Pires, Computers and Operations Research 21, 1994). The set is that of the guess,
and a set that was factorised in the last call is not factorised again. Where exchanges of all rows with wrong signs no longer help, single
ones follow, which are finite for P-matrices (Murty, Linear Complementarity, section 4.2); where a set is singular, as with redundant
constraints, proximal terms ``rho (z - z_k)`` are added and z is iterated (Rockafellar, SIAM J. Control Optim. 14, 1976).
"""

import math
from typing import NamedTuple

import numpy as np
from numba import float64, int64, typeof, types

from nsds._jit import caller, inlined, kernel, on_demand, tiny, view
from nsds.maths import sparse_lu, superlu
from nsds.model.layout import table
from nsds.schemes.memory import MEMORY
from nsds.solvers.box.newton_min import BASIC, LOWER, choose_sides
from nsds.solvers.box.signature import UNDERFLOW, Options, is_affordable
from nsds.status import CONVERGED, INEXACT, MAX_ITER, NON_FINITE, SINGULAR, STALLED

# One row: sizes N of d and n of z. Work: the vectors of the problem; given: values of the pattern with all rows basic (nnz); values:
# those of the present set; data: factors; rhs, solution (N + n); unit, centre: of proximal terms (n). Iwork: index: of the factors; row
# (n + 1), column: pattern of the rows of w, the first of which is entry ``at`` of the values; diagonal (n): their entries of D_ii; side,
# factored: sets (n), known: whether the latter has factors, and of which form.
VECTORS = ("q", "z", "w", "lower", "upper", "info", "rounding")
MIXED = table("N", "n", *VECTORS, "given", "values", "data", "rhs", "solution", "unit", "centre", "index", "row", "column", "at",
              "diagonal", "side", "factored", "known")  # fmt: skip
SMALLEST = 60  # rows up to which W is formed
_MOST_EXACT = 2 * 10**6  # entries of A^-1 B, up to which the diagonal of W is computed with all of A
_COLUMNS = 256  # of B at once
PATIENCE = 10  # exchanges of all rows without progress before single ones
ROUNDING = 1e-14  # signs are read up to this, relative to the terms of their row
_PROXIMAL = 1e-6  # of the unit of a row: weight of the proximal term
_ROUNDS = 60  # of the proximal method
PLAIN, _REGULAR = 1, 2  # forms of the equations: without proximal terms, with them


class Equations(NamedTuple):
    """Mixed equations of all members on one pattern: plan of the factors, values (members, nnz) with all rows basic, and units of rows."""

    N: int
    plan: sparse_lu.Plan
    given: np.ndarray
    unit: np.ndarray  # (members, n)
    several: bool  # W has a negative entry on its diagonal, so that there may be several solutions


def equations(A, B, C, D):
    """`Equations` of the matrices of all members, each a list of scipy.sparse."""
    from scipy.sparse import block_array, csr_array

    # 1. entries of all members on their common pattern, with the diagonal of the rows of w; the values of others are zeros there
    N, n = B[0].shape
    every = np.arange(N, N + n)
    wholes = [block_array([[a, -b], [c, d]], format="coo") for a, b, c, d in zip(A, B, C, D, strict=True)]
    row, column = (np.concatenate([*(whole.coords[axis] for whole in wholes), every]) for axis in (0, 1))
    ends = np.cumsum([0, *(whole.nnz for whole in wholes)])
    values = []
    for k, whole in enumerate(wholes):
        data = np.zeros(row.size)
        data[ends[k] : ends[k + 1]] = whole.data
        pattern = csr_array((data, (row, column)), shape=(N + n, N + n))
        values.append(pattern.data)
    plan = sparse_lu.plan(pattern, last_after=every)
    # 2. units of rows, and whether an entry of the diagonal of W is negative
    unit, several = [], False
    for a, b, c, d in zip(A, B, C, D, strict=True):
        size = abs(a.diagonal())
        size = np.where(size > 0.0, size, abs(a).max(axis=1).toarray().reshape(-1))
        about = abs(d.diagonal()) + abs(c).multiply(abs(b).T).multiply(1.0 / np.where(size > 0.0, size, 1.0)).sum(axis=1)
        unit.append(np.where(about > 0.0, about, 1.0))
        several |= not _is_positive(a, b, c, d) and bool((_diagonal(a, b, c, d) < -ROUNDING * unit[-1]).any())
    return Equations(N, plan, np.array(values), np.array(unit), several)


def _is_positive(A, B, C, D):
    """Whether W is ``S B^T A^-1 B + D`` with S not negative and A dominant, so that its diagonal is at least that of D, not negative."""
    symmetric, transposed = A + A.T, B.T.tocsr()
    diagonal, others = symmetric.diagonal(), abs(symmetric).sum(axis=1)
    squares = transposed.multiply(transposed).sum(axis=1)
    factor = C.multiply(transposed).sum(axis=1) / np.where(squares > 0.0, squares, 1.0)
    is_dominant = (diagonal > 0.0).all() and (2.0 * diagonal >= others).all()
    rest = abs(C - transposed.multiply(factor[:, None]))
    return is_dominant and (factor >= 0.0).all() and rest.max() <= ROUNDING * abs(C).max() and (D.diagonal() >= 0.0).all()


def _diagonal(A, B, C, D):
    """Diagonal of W; of large systems with the diagonal of A in place of A."""
    n, result = D.shape[0], D.diagonal()
    if A.shape[0] * n > _MOST_EXACT:
        own = A.diagonal()
        return result + C.multiply(B.T).multiply(1.0 / np.where(own != 0.0, own, np.inf)).sum(axis=1)
    factors, C, columns = superlu.factorise(A), C.tocsr(), B.tocsc()
    for start in range(0, n, _COLUMNS):
        chosen = slice(start, min(start + _COLUMNS, n))
        result[chosen] += C[chosen].multiply(factors.solve(columns[:, chosen].toarray()).T).sum(axis=1)
    return result


def is_cheaper(planned, n_pairs):
    """Whether solutions with the factors take fewer operations than with W, of so many entries; not where its form alone tells which one
    of several solutions a step has."""
    return not planned.several and planned.plan.fill + planned.plan.nnz < n_pairs


def place_mixed(planned, work, iwork):
    """One row of `MIXED`, with its memory, but for the offsets `VECTORS` of the problem."""
    p, plan, N = np.zeros(1, MIXED), planned.plan, planned.N
    n = planned.unit.shape[1]
    size, members = N + n, planned.given.shape[0]
    p["N"], p["n"] = N, n
    work.place(p, values=plan.nnz, data=plan.size, rhs=size, solution=size, centre=n)
    p["given"], p["unit"] = work.store(planned.given), work.store(planned.unit)
    iwork.place(p, side=n, factored=n, known=1)

    def stored(numbers):
        return iwork.store(np.broadcast_to(numbers, (members, numbers.size)))

    first = plan.row[N]
    row = np.repeat(np.arange(n), np.diff(plan.row[N:]))
    p["at"] = first
    p["index"], p["row"], p["column"] = stored(plan.index), stored(plan.row[N:] - first), stored(plan.column[first:])
    p["diagonal"] = stored(np.flatnonzero(plan.column[first:] == N + row))
    return p


@kernel
def _solve(mixed, options, memory):
    """Solve the problem in the vectors of a table `MIXED` of one row; its guess is z, as that of a solver.

    CONVERGED only where the residual of `_judge` is at most tol; INEXACT as in
    `nsds.schemes.problem.box.solve`.
    """
    work, iwork, m = memory.work, memory.iwork, mixed[0]
    n = m.n
    lower, upper, z = view(work, m.lower, n), view(work, m.upper, n), view(work, m.z, n)
    choose_sides(lower, upper, z, view(iwork, m.side, n), False)
    # 1. the set of basic rows
    spent = 0.0
    status, n_iter, spent = _exchange_sets(PLAIN, spent, m, options, memory)
    # 2. singular sets, or none found: proximal terms around the last z
    if status != CONVERGED:
        for _ in range(_ROUNDS):
            change = 0.0
            for i in range(n):
                work[m.centre + i] = min(max(work[m.z + i], lower[i]), upper[i])
            status, more, spent = _exchange_sets(_REGULAR, spent, m, options, memory)
            n_iter += more
            for i in range(n):
                change = max(change, abs(work[m.z + i] - work[m.centre + i]) / max(abs(work[m.z + i]), UNDERFLOW))
            if status != CONVERGED or change <= ROUNDING or not is_affordable(spent, options):
                break
    # 3. within the bounds, and what is left
    work[m.info] = n_iter
    return _judge(status, m, options, memory)


@kernel
def _exchange_sets(form, spent, m, options, memory):
    """Exchange rows until all signs are right, without proximal terms or with. Returns (status, sets, multiplications so far)."""
    work, iwork = memory.work, memory.iwork
    n = m.n
    limit = int(options.max_iter) if options.max_iter > 0 else 200 + 3 * n
    fewest, patience, n_iter = n + 1, PATIENCE, 0
    while n_iter < limit and is_affordable(spent, options):
        n_iter += 1
        # 1. factors of the set, unless they are there
        if not is_known(form, n, m, iwork):
            _write_values(form, m, memory)
            sparse_lu.factorise(m.values, m.data, m.index, work, iwork)
            iwork[m.known] = form
            spent += sparse_lu.effort(m.index, iwork)
        # 2. state and multipliers
        error = _solve_set(form, m, memory)
        if sparse_lu.weak_row(m.index, iwork) >= 0 and form == PLAIN:
            return SINGULAR, n_iter, spent
        if not error <= sparse_lu.SOLVED:
            return SINGULAR, n_iter, spent
        # 3. signs
        n_wrong, last = _wrong_signs(form, m, memory)
        if n_wrong == 0:
            return CONVERGED, n_iter, spent
        patience = PATIENCE if n_wrong < fewest else patience - 1
        fewest = min(fewest, n_wrong)
        exchange(n, patience >= 0, last, m, iwork)
    return MAX_ITER, n_iter, spent


@tiny
def is_known(form, n, places, iwork):
    """Whether the factors are those of the set of n rows; places: offsets of side, factored and known."""
    known = iwork[places.known] == form
    for i in range(n):
        known &= (iwork[places.factored + i] == BASIC) == (iwork[places.side + i] == BASIC)
    return known


@tiny
def mark(i, old, new, places, iwork):
    """Mark row i, which belongs on another side, for `exchange`."""
    iwork[places.side + i] = -1 - old - 3 * new


@tiny
def exchange(n, all_at_once, last, places, iwork):
    """Marked rows change sides: all, or the last one alone."""
    for i in range(n):
        side = -1 - iwork[places.side + i]
        if side >= 0:
            iwork[places.side + i] = side // 3 if all_at_once or i == last else side % 3


@inlined
def _write_values(form, m, memory):
    """Rows of w of the basic multipliers, ``z_i = bound`` of the others."""
    work, iwork = memory.work, memory.iwork
    for k in range(m.at):
        work[m.values + k] = work[m.given + k]
    for i in range(m.n):
        basic = iwork[m.side + i] == BASIC
        iwork[m.factored + i] = iwork[m.side + i]
        for k in range(iwork[m.row + i], iwork[m.row + i + 1]):
            work[m.values + m.at + k] = work[m.given + m.at + k] if basic else 0.0
        own = m.values + m.at + iwork[m.diagonal + i]
        if not basic:
            work[own] = 1.0
        elif form == _REGULAR:
            work[own] += _PROXIMAL * work[m.unit + i]


@inlined
def _solve_set(form, m, memory):
    """(d, z) of the set; returns the backward error. Out: solution, z of the problem."""
    work, iwork = memory.work, memory.iwork
    for i in range(m.N):
        work[m.rhs + i] = 0.0
    for i in range(m.n):
        side = iwork[m.side + i]
        if side != BASIC:
            work[m.rhs + m.N + i] = work[m.lower + i] if side == LOWER else work[m.upper + i]
        else:
            work[m.rhs + m.N + i] = -work[m.q + i]
            if form == _REGULAR:
                work[m.rhs + m.N + i] += _PROXIMAL * work[m.unit + i] * work[m.centre + i]
    error = sparse_lu.solve(m.values, m.data, m.index, m.rhs, m.solution, work, iwork)
    for i in range(m.n):
        work[m.z + i] = work[m.solution + m.N + i]
    return error


@tiny
def _output(i, m, memory):
    """``w_i`` and the sum of the magnitudes of its terms."""
    work, iwork = memory.work, memory.iwork
    w = work[m.q + i]
    terms = abs(w)
    for k in range(iwork[m.row + i], iwork[m.row + i + 1]):
        term = work[m.given + m.at + k] * work[m.solution + iwork[m.column + k]]
        w += term
        terms += abs(term)
    return w, terms


@inlined
def _wrong_signs(form, m, memory):
    """Count and last index of the rows that belong on another side, which are marked."""
    work, iwork = memory.work, memory.iwork
    count, last = 0, -1
    for i in range(m.n):
        old = iwork[m.side + i]
        new, z, lower, upper = old, work[m.z + i], work[m.lower + i], work[m.upper + i]
        if old == BASIC:
            if max(lower - z, z - upper) > ROUNDING * abs(z):
                new = LOWER if z < lower else 2
        elif lower < upper:
            w, size = _output(i, m, memory)
            if form == _REGULAR:
                w += _PROXIMAL * work[m.unit + i] * (z - work[m.centre + i])
            if (w < 0.0 if old == LOWER else w > 0.0) and abs(w) > ROUNDING * size:
                new = BASIC
        if new != old:
            mark(i, old, new, m, iwork)
            count += 1
            last = i
    return count, last


@inlined
def _judge(status, m, options, memory):
    """Status by the residual, which is written with w: errors of rows relative to their terms, as far as they are no rounding of q."""
    work = memory.work
    merit = error = scale = 0.0
    for i in range(m.n):
        lower, upper = work[m.lower + i], work[m.upper + i]
        z = min(max(work[m.z + i], lower), upper)
        shift = abs(work[m.z + i] - z)
        work[m.z + i] = z
        w, terms = _output(i, m, memory)
        work[m.w + i] = w
        # 1. relative error of the row: the sign of w that goes with z; what clipping has moved
        wrong = max(-w if z < upper else 0.0, w if z > lower else 0.0, 0.0)
        wrong = max(wrong - work[m.rounding], 0.0) + work[m.unit + i] * (shift if shift > ROUNDING * abs(z) else 0.0)
        if wrong > 0.0:
            merit += (wrong / max(terms, UNDERFLOW)) ** 2
        # 2. natural residual in units of w; NaN is passed on
        unit = work[m.unit + i]
        error = max(error, abs(max(min(w, unit * (z - lower)), unit * (z - upper))) + unit * shift) + 0.0 * w
        scale = max(scale, abs(work[m.q + i]))
    work[m.info + 1] = math.sqrt(merit) + 0.0 * error
    if work[m.info + 1] <= options.tol and status != SINGULAR:
        return CONVERGED
    if error <= max(options.inexact * scale, work[m.rounding]) and status != SINGULAR:
        work[m.info + 1] = error / max(scale, work[m.rounding])
        return INEXACT
    return STALLED if status == CONVERGED else status


_SIGNATURE = int64(typeof(np.zeros(0, MIXED)), types.NamedUniTuple(float64, len(Options._fields), Options), MEMORY)
_call_solve, _address_of_solve = caller(_SIGNATURE), on_demand(_SIGNATURE, _solve)


@tiny
def solve_mixed(mixed, options, memory):
    """See `_solve`, which is compiled when it is first called."""
    address = _address_of_solve()
    return _call_solve(address, (mixed, options, memory)) if address != 0 else NON_FINITE
