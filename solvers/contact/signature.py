"""The one signature that all solvers of contact problems share, the cones, and the merit that judges them.

Problem: ``u = W r + q`` and, for every contact with its d components (normal first), ``K* ∋ uhat ⟂ r ∈ K`` where
``K = {r : ||r_T|| <= mu r_N, ||r_R|| <= mu_r r_N}`` and ``uhat = u + (mu ||u_T|| + mu_r ||u_R||) e_N``. A contact in the plane has d = 2,
in space d = 3; with rolling friction d = 3 and d = 5. A block of equations has K = R^d and ``u = 0``.

    status = solver(disk, mu, row, column, W, q, options, r, u, info, work, iwork)

====================  ==========================================================================================================
disk                  (nc,) integers: components of T; the others after the first are those of R; EQUATION: K = R^d
mu                    (2 nc,): mu and mu_r of each contact
row, column, W        compressed rows of d × d blocks (row by row): columns ascending, pattern symmetric, diagonal blocks stored;
                      (nc+1,), (n_blocks,), (n_blocks d^2,)
q                     (d nc,)
options               (6,): tol; max_iter, local, rho, seed and freeze (0: the method's own; see `solvers.contact.table.options`)
r                     in: first guess; out: solution
u                     out: ``W r + q``
info                  out (4,): n_iter, res_q, res_rho; of auto, the place in `solvers.contact.auto.ORDER` of the method it took
work, iwork           scratch of at least the method's ``work_size(d, row, column)``
====================  ==========================================================================================================

A solver allocates nothing, never raises, and returns a code of `nsds.status`: CONVERGED only where res_q is at most tol.
"""

import math

from numba import float64, int64

from nsds._jit import caller, inlined, kernel, specialised, tiny
from nsds.status import CONVERGED, NON_FINITE, STALLED

EQUATION = -1
LARGEST_BLOCK = 5
N_OPTIONS, N_INFO = 6, 4
_LOST = 1e13  # times q: rounding of W r is about a thousandth of q

_floats, _integers = float64[::1], int64[::1]

SOLVER = int64(_integers, _floats, _integers, _integers, _floats, _floats, _floats, _floats, _floats, _floats, _floats, _integers)
call_solver = caller(SOLVER)


@kernel
def solve_repeatedly(count, solver, r0, disk, mu, row, column, W, q, options, r, u, info, work, iwork):
    """The same problem ``count`` times from the same guess; solver: the address of its compiled code."""
    status = 0
    for _ in range(count):
        for i in range(q.size):
            r[i] = r0[i]
        status = call_solver(solver, (disk, mu, row, column, W, q, options, r, u, info, work, iwork))
    return status


_D = 0  # components of a contact; bound by `specialised`


def _multiply_row(c, row, column, W, q, r, u):
    """``u_c = q_c + sum_j W_cj r_j``."""
    for a in range(_D):
        u[c * _D + a] = q[c * _D + a]
    for k in range(row[c], row[c + 1]):
        j = column[k] * _D
        for a in range(_D):
            s = 0.0
            for b in range(_D):
                s += W[(k * _D + a) * _D + b] * r[j + b]
            u[c * _D + a] += s


_multiply_row_2 = tiny(specialised(_multiply_row, "2", _D=2))
_multiply_row_3 = tiny(specialised(_multiply_row, "3", _D=3))
_multiply_row_5 = tiny(specialised(_multiply_row, "5", _D=5))


@kernel
def multiply(row, column, W, q, r, u):
    """``u = W r + q``."""
    n_contacts = row.size - 1
    d = q.size // max(n_contacts, 1)
    for c in range(n_contacts):
        if d == 2:
            _multiply_row_2(c, row, column, W, q, r, u)
        elif d == 3:
            _multiply_row_3(c, row, column, W, q, r, u)
        else:
            _multiply_row_5(c, row, column, W, q, r, u)


@kernel
def diagonal_block(row, column, c):
    """Place k of the block ``W_cc``: its entries are ``W[k d^2 + a d + b]``."""
    low, high = row[c], row[c + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if column[middle] < c:
            low = middle + 1
        else:
            high = middle
    return low


@tiny
def norm(x, first, last):
    """``||x[first:last]||``."""
    s = 0.0
    for i in range(first, last):
        s += x[i] ** 2
    return math.sqrt(s)


@tiny
def modify(disk, mu, mu_r, d, first, u):
    """``mu ||u_T|| + mu_r ||u_R||``: what uhat adds to ``u_N``."""
    return mu * norm(u, first + 1, first + 1 + disk) + mu_r * norm(u, first + 1 + disk, first + d)


@tiny
def normal_of_projection(mu, mu_r, x_n, x_t, x_r):
    """Normal component t of the projection: ``(t - x_n) - mu (x_t - mu t)_+ - mu_r (x_r - mu_r t)_+ = 0``, at least 0.

    The left side is increasing and piecewise linear in t, with a zero in one of four pieces.
    """
    for piece in range(4):
        a, b = piece & 1, piece >> 1
        t = (x_n + a * mu * x_t + b * mu_r * x_r) / (1.0 + a * mu * mu + b * mu_r * mu_r)
        if (x_t > mu * t) == (a == 1) and (x_r > mu_r * t) == (b == 1):
            return max(t, 0.0)
    return max(x_n, 0.0)


@tiny
def project(disk, mu, mu_r, d, first, x):
    """``x_c <- P_K(x_c)`` for the d components of x that begin at first."""
    x_t, x_r = norm(x, first + 1, first + 1 + disk), norm(x, first + 1 + disk, first + d)
    t = x[first]
    if t < 0.0 or x_t > mu * t or x_r > mu_r * t:
        t = normal_of_projection(mu, mu_r, t, x_t, x_r)
    x[first] = t
    scale_t = mu * t / x_t if x_t > mu * t else 1.0
    scale_r = mu_r * t / x_r if x_r > mu_r * t else 1.0
    for i in range(first + 1, first + 1 + disk):
        x[i] *= scale_t
    for i in range(first + 1 + disk, first + d):
        x[i] *= scale_r


@tiny
def natural_map(rho, disk, mu, mu_r, d, first, r, u, x):
    """``||r - P_K(r - rho uhat)||^2`` of one contact; x (5,): scratch that ends as the projection."""
    s = 0.0
    if disk == EQUATION:
        for a in range(d):
            s += (rho * u[first + a]) ** 2
        return s
    hat = modify(disk, mu, mu_r, d, first, u)
    for a in range(d):
        x[a] = r[first + a] - rho * (u[first + a] + (hat if a == 0 else 0.0))
    project(disk, mu, mu_r, d, 0, x)
    for a in range(d):  # r - P(x) as (r - x) + (x - P(x)): a velocity is not lost beside a large r
        v = rho * (u[first + a] + (hat if a == 0 else 0.0))
        s += (v + ((r[first + a] - v) - x[a])) ** 2
    return s


@inlined
def residuals(disk, mu, row, column, W, q, r, u, x):
    """(res_q, res_rho) with u computed anew; see `nsds.solvers.solve_fc3d`. NaN where anything is. Out: u. Work: x (5,)."""
    n_contacts = disk.size
    d = q.size // max(n_contacts, 1)
    multiply(row, column, W, q, r, u)
    largest = 0.0
    for c in range(n_contacts):
        largest = max(largest, abs(mean_diagonal(d, diagonal_block(row, column, c), W)))
    floor = 1e-14 * largest if largest > 0.0 else 1.0
    plain = scaled = scale = 0.0
    for c in range(n_contacts):
        diagonal = max(abs(mean_diagonal(d, diagonal_block(row, column, c), W)), floor)
        plain += natural_map(1.0, disk[c], mu[2 * c], mu[2 * c + 1], d, c * d, r, u, x)
        scaled += natural_map(1.0 / diagonal, disk[c], mu[2 * c], mu[2 * c + 1], d, c * d, r, u, x) * diagonal**2
        for i in range(c * d, (c + 1) * d):
            scale += q[i] ** 2 + 0.0 * u[i]
    scale = math.sqrt(scale) if scale != 0.0 else 1.0
    return math.sqrt(plain) / scale, math.sqrt(scaled) / scale


@kernel
def natural_maps(d, disk, mu, W, r, u, x):
    """Numerators of res_q and res_rho where only the diagonal blocks W (n, d, d) are at hand. Work: x (5,)."""
    largest = plain = scaled = 0.0
    for c in range(disk.size):
        largest = max(largest, abs(mean_diagonal(d, c, W)))
    for c in range(disk.size):
        diagonal = max(abs(mean_diagonal(d, c, W)), 1e-14 * largest) if largest > 0.0 else 1.0
        plain += natural_map(1.0, disk[c], mu[2 * c], mu[2 * c + 1], d, c * d, r, u, x)
        scaled += natural_map(1.0 / diagonal, disk[c], mu[2 * c], mu[2 * c + 1], d, c * d, r, u, x) * diagonal**2
    return math.sqrt(plain), math.sqrt(scaled)


@tiny
def mean_diagonal(d, k, W):
    """Mean of the diagonal of block k."""
    s = 0.0
    for a in range(d):
        s += W[k * d * d + a * (d + 1)]
    return s / d


@tiny
def _drowned(row, column, W, q, r):
    """True where q is lost beside W r: what seems to solve a problem without solution, when r has grown enough."""
    n_contacts, size, most = row.size - 1, 0.0, 0.0
    d = q.size // max(n_contacts, 1)
    for c in range(n_contacts):
        diagonal = abs(mean_diagonal(d, diagonal_block(row, column, c), W))
        for i in range(c * d, (c + 1) * d):
            size, most = max(size, abs(q[i])), max(most, diagonal * abs(r[i]))
    return 0.0 < _LOST * size < most


@kernel
def conclude(status, n_iter, disk, mu, row, column, W, q, options, r, u, info, x):
    """Status of a method that believes to have finished (CONVERGED) or has given up, checked against res_q. Out: u, info. Work: x (5,).

    STALLED, where r has grown so large that res_q is nothing but rounding.
    """
    plain, scaled = residuals(disk, mu, row, column, W, q, r, u, x)
    info[0], info[1], info[2] = n_iter, plain, scaled
    if not math.isfinite(plain):
        return NON_FINITE
    if plain <= options[0]:
        return STALLED if _drowned(row, column, W, q, r) else CONVERGED
    return STALLED if status == CONVERGED else status


@kernel
def classify(disk, mu, row, column, W, r, u, state):
    """Out: state (2 nc,) of the disks of T and R: 0 open, 1 sticking, 2 sliding, by ``r - rho u``, as Alart and Curnier do."""
    d = r.size // max(disk.size, 1)
    for c in range(disk.size):
        diagonal = mean_diagonal(d, diagonal_block(row, column, c), W)
        rho, split = 1.0 / diagonal if diagonal > 0.0 else 1.0, 1 + max(disk[c], 0)
        x = r[c * d] - rho * u[c * d]
        for i in range(2):
            first, last = (1, split) if i == 0 else (split, d)
            size = 0.0
            for a in range(c * d + first, c * d + last):
                size += (r[a] - rho * u[a]) ** 2
            state[2 * c + i] = 0 if x <= 0.0 else (1 if math.sqrt(size) < mu[2 * c + i] * x else 2)


@tiny
def keep_better(residual, least, r, best):
    """The lesser one of two residuals; r is kept if it is the one of r."""
    if not residual < least:
        return least
    for i in range(r.size):
        best[i] = r[i]
    return residual
