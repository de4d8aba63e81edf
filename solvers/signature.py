"""The one signature that all solvers of box-constrained one-step problems share, and the merit function that judges them.

Problem (seed 003, eq. 9.34): find ``lower <= z <= upper`` with ``w = M z + q`` and ``-w ∈ N_[lower,upper](z)``. Bounds 0 and infinity
give the LCP ``0 <= z ⟂ w >= 0``; minus and plus infinity an equation ``w_i = 0``.

    status = solver(row, column, M, q, lower, upper, options, z, w, info, work, iwork)

====================  ==========================================================================================================
row, column, M        compressed rows: columns of a row ascending, pattern symmetric, every diagonal entry stored; (n+1,), (nnz,) × 2
q, lower, upper       (n,)
options               (4,): tol; max_iter, weight and block (0: the method's own; what they are is in `nsds.solvers.solver`)
z                     in: first guess; out: solution
w                     out: ``M z + q``
info                  out (3,): n_iter, residual; of auto, the place in `solvers.auto.ORDER` of the method it took
work, iwork           scratch of at least the method's ``work_size(n, row, column)``, and one integer: iwork[0] is 0 unless row, column
                      and M are those of the last call with this scratch, so that a method may keep what it knows of them
====================  ==========================================================================================================

A solver allocates nothing, never raises, and returns a code of `nsds.status`: CONVERGED only where `residual` is at most tol.
"""

import math

from numba import float64, int64

from nsds._jit import caller, inlined, kernel, tiny
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, STALLED

_PROOF = 1e-10  # of a sum's terms: what is smaller is rounding
_ROUNDING = 2.0**-52
_SPLITTER = 2.0**27 + 1.0

_floats, _integers = float64[::1], int64[::1]

SOLVER = int64(
    _integers, _integers, _floats, _floats, _floats, _floats, _floats, _floats, _floats, _floats, _floats, _integers
)  # fmt: skip
call_solver = caller(SOLVER)


@kernel
def solve_repeatedly(count, keep, solver, z0, row, column, M, q, lower, upper, options, z, w, info, work, iwork):
    """The same problem ``count`` times from the same guess; with ``keep``, what the solver knows of the matrix is kept between calls.

    solver: the address of its compiled code, so that this loop is compiled once for all of them.
    """
    status = 0
    for _ in range(count):
        if not keep:
            iwork[0] = 0
        for i in range(q.size):
            z[i] = z0[i]
        status = call_solver(solver, (row, column, M, q, lower, upper, options, z, w, info, work, iwork))
    return status


@tiny
def multiply(row, column, M, q, z, w):
    """``w = M z + q``."""
    for i in range(q.size):
        s = q[i]
        for k in range(row[i], row[i + 1]):
            s += M[k] * z[column[k]]
        w[i] = s


@inlined
def residual(row, column, M, q, lower, upper, z, w):
    """Merit ``||z - P_[lower,upper](z - w)||_2 / (1 + ||q||_2)`` with w computed anew, and what rounding may hide in it. Out: w.

    Written as the median of w, z - lower and z - upper: a small w is not lost beside a large z. NaN where anything is NaN or infinite,
    and where ``||q||^2`` overflows.
    """
    noise = 0.0
    for i in range(q.size):
        s = q[i]
        terms = abs(s)
        for k in range(row[i], row[i + 1]):
            term = M[k] * z[column[k]]
            s += term
            terms += abs(term)
        w[i] = s
        noise += terms * (row[i + 1] - row[i])
    error, scale = _norms(q, lower, upper, z, w)
    return error / scale, _ROUNDING * noise / scale


@tiny
def _norms(q, lower, upper, z, w):
    """Numerator and denominator of the merit."""
    error = scale = 0.0
    for i in range(q.size):
        error += max(min(w[i], z[i] - lower[i]), z[i] - upper[i]) ** 2
        scale += q[i] ** 2 + 0.0 * w[i]  # NaN for an infinite w
    return math.sqrt(error), 1.0 + math.sqrt(scale) if scale < math.inf else math.nan


@kernel
def multiply_exactly(row, column, M, q, z, w):
    """``w = M z + q`` as if computed with twice the digits.

    Reference: Ogita, Rump, Oishi, SIAM Journal on Scientific Computing 26 (2005) 1955–1988, algorithm 5.3.
    """
    for i in range(q.size):
        s, rest = q[i], 0.0
        for k in range(row[i], row[i + 1]):
            a, b = M[k], z[column[k]]
            term = a * b
            a_high, b_high = _SPLITTER * a - (_SPLITTER * a - a), _SPLITTER * b - (_SPLITTER * b - b)
            a_low, b_low = a - a_high, b - b_high
            total = s + term
            old = total - term
            rest += (s - old) + (term - (total - old))
            rest += a_low * b_low - (((term - a_high * b_high) - a_low * b_high) - a_high * b_low)
            s = total
        w[i] = s + rest


@kernel
def entry(row, column, M, i, j):
    """``M_ij``, which must be stored."""
    low, high = row[i], row[i + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if column[middle] < j:
            low = middle + 1
        else:
            high = middle
    return M[low]


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
def a_row_is_infeasible(row, column, M, q, lower, upper):
    """True when some w_i has the wrong sign, beyond rounding, for every z within the bounds."""
    found = False
    for i in range(q.size):
        most = least = q[i]
        terms = abs(q[i])
        for k in range(row[i], row[i + 1]):
            if M[k] != 0.0:
                at_lower, at_upper = M[k] * lower[column[k]], M[k] * upper[column[k]]
                most += max(at_lower, at_upper)
                least += min(at_lower, at_upper)
                terms += max(abs(at_lower) if abs(at_lower) < math.inf else 0.0, abs(at_upper) if abs(at_upper) < math.inf else 0.0)
        found |= (upper[i] == math.inf and most < -_PROOF * terms) or (lower[i] == -math.inf and least > _PROOF * terms)
    return found


@kernel
def proves_infeasible(row, column, M, q, lower, upper, y, g):
    """True when y proves, up to rounding, that no z within the bounds gives w the signs that are asked for.

    The proof (Farkas): ``y_i >= 0`` where ``w_i >= 0`` is asked (upper_i infinite), ``<= 0`` where ``w_i <= 0`` is (lower_i infinite), and
    ``max over z in [lower, upper] of y^T (M z + q) < 0``. Work: g (n,).
    """
    n = q.size
    for i in range(n):
        g[i] = 0.0
    value = terms = 0.0
    for i in range(n):
        if (y[i] < 0.0 and lower[i] > -math.inf) or (y[i] > 0.0 and upper[i] < math.inf):
            return False
        value += y[i] * q[i]
        terms += abs(y[i] * q[i])
        for k in range(row[i], row[i + 1]):
            g[column[k]] += M[k] * y[i]
    for j in range(n):
        if g[j] != 0.0:
            size = 0.0
            for k in range(row[j], row[j + 1]):  # the pattern is symmetric: row j names what column j holds
                i = column[k]
                size += abs(y[i] * entry(row, column, M, i, j))
            if abs(g[j]) > _PROOF * size:
                most = g[j] * (upper[j] if g[j] > 0.0 else lower[j])
                if most == math.inf:
                    return False
                value += most
                terms += abs(most)
    return value < -_PROOF * terms


@kernel
def conclude(status, n_iter, row, column, M, q, lower, upper, options, z, w, info):
    """Status of a method that believes to have finished (CONVERGED) or has given up, checked against the merit function.

    Where rounding may hide an error above tol (the z of an infeasible problem grow until they swallow q), w is computed exactly.
    """
    merit, noise = residual(row, column, M, q, lower, upper, z, w)
    if merit <= options[0] < noise:
        multiply_exactly(row, column, M, q, z, w)
        error, scale = _norms(q, lower, upper, z, w)
        merit = error / scale
    info[0] = n_iter
    info[1] = merit
    if not math.isfinite(merit):
        return NON_FINITE
    if merit <= options[0]:
        return CONVERGED
    return STALLED if status == CONVERGED else status


@tiny
def look(n_iter, full, least, patience, row, column, M, q, lower, upper, options, z, w, info):
    """(status, least merit, patience) of an iteration that goes on while the status is MAX_ITER.

    Patience is full where the merit fell by a thousandth, else one less; with none left the iteration has STALLED.
    """
    status = conclude(MAX_ITER, n_iter, row, column, M, q, lower, upper, options, z, w, info)
    patience = full if info[1] < 0.999 * least else patience - 1
    if status == MAX_ITER and patience == 0:
        status = STALLED
    return status, min(info[1], least), patience
