"""The one signature that all solvers of contact problems share, the cones, and the merit that judges them.

Problem: ``u = W r + q`` and, for every contact with its d components (normal first), ``K* ∋ uhat ⟂ r ∈ K`` where
``K = {r : ||r_T|| <= mu r_N, ||r_R|| <= mu_r r_N}`` and ``uhat = u + (mu ||u_T|| + mu_r ||u_R||) e_N``. A contact in the plane has d = 2,
in space d = 3; with rolling friction d = 3 and d = 5. A block of equations has K = R^d and ``u = 0``.

    status = solver(disk, mu, row, column, W, q, options, r, u, info, work, iwork)

That is how a method of a user's own is written. Those of the package get the six arrays of the problem as one `Problem`, by reference, and
are called so by their address; `nsds.solvers.table` wraps the others.

====================  ==========================================================================================================
disk                  (nc,) integers: components of T; the others after the first are those of R; EQUATION: K = R^d
mu                    (2 nc,): mu and mu_r of each contact
row, column, W        compressed rows of d × d blocks (row by row): columns ascending, pattern symmetric, diagonal blocks stored;
                      (nc+1,), (n_blocks,), (n_blocks d^2,)
q                     (d nc,)
options               `Options`
r                     in: first guess; out: solution
u                     out: ``W r + q``
info                  out (4,): n_iter, merit, nothing; of auto, the place in `solvers.contact.auto.ORDER` of the method it took
work, iwork           scratch of at least the method's ``work_size(d, row, column)``
====================  ==========================================================================================================

A solver allocates nothing, never raises, and returns a code of `nsds.status`: CONVERGED only where `merit` is at most tol.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import float64, int64, typeof, types

from nsds._jit import absolute, by_reference, caller, kernel, larger, load, made, put, specialised, spread, stack, tiny, view
from nsds.solvers.box.signature import place_of
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, STALLED

__all__ = ["EQUATION", "N_INFO", "Options", "Problem", "conclude"]

EQUATION = -1
LARGEST_BLOCK = 5
N_INFO = 4
_ROUNDING = 2.0**-52
_SPLITTER = 2.0**27 + 1.0
_LEAST = 2.0**-1000  # the inverse of less may not be finite: it counts as 0
_LOST = 1e-4  # of ``||q||``: where rounding may hide so much, nothing is a solution


@by_reference
class Problem(NamedTuple):
    """A problem of nc contacts with d components, as kernels get it: by reference."""

    disk: np.ndarray  # (nc,)
    mu: np.ndarray  # (2 nc,)
    row: np.ndarray  # (nc+1,)
    column: np.ndarray  # (n_blocks,)
    W: np.ndarray  # (n_blocks d^2,)
    q: np.ndarray  # (d nc,)

    @property
    def d(self):
        """Components of a contact; not for kernels."""
        return self.q.size // max(self.disk.size, 1)


problem_of = made(Problem)


class Options(NamedTuple):
    """Options of a contact problem from `nsds.solvers.solver`, as floats; 0 of max_iter, rho, seed, freeze: the method's own, or none."""

    tol: float
    max_iter: float
    local: float  # place in `nsds.solvers.contact.local.LOCALS`
    rho: float
    seed: float
    freeze: float
    enough: float  # residual that schemes take as solved, whatever tol was asked for
    inexact: float  # and up to which it is INEXACT
    patience: float = 0.0  # iterations in which the residual must halve; 0: as long as the method itself wants


class Cone(NamedTuple):
    """Cone of one contact: components, those of its disk of friction (or EQUATION), coefficients of friction and of rolling friction."""

    d: int
    disk: int
    mu: float
    mu_r: float


@tiny
def cone_of(c, d, disk, mu):
    """`Cone` of contact c."""
    return Cone(d, disk[c], mu[2 * c], mu[2 * c + 1])


_floats, _integers = float64[::1], int64[::1]

PROBLEM = typeof(Problem(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0)))
CONE = types.NamedTuple((int64, int64, float64, float64), Cone)
OPTIONS = types.NamedUniTuple(float64, len(Options._fields), Options)

SOLVER = int64(PROBLEM, OPTIONS, _floats, _floats, _floats, _floats, _integers)
call_solver = caller(SOLVER)


@tiny
def changed(options, tol, max_iter, patience):
    """The options with another tolerance and other limits."""
    return Options(tol, max_iter, options.local, options.rho, options.seed, options.freeze, options.enough, options.inexact, patience)


@kernel
def solve_repeatedly(count, solver, r0, problem, options, r, u, info, work, iwork):
    """The same problem ``count`` times from the same guess; solver: the address of its compiled code."""
    status = 0
    for _ in range(count):
        for i in range(problem.q.size):
            r[i] = r0[i]
        status = call_solver(solver, (problem, options, r, u, info, work, iwork))
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
    return place_of(row, column, c, c)


@tiny
def norm(x, first, last):
    """``||x[first:last]||``."""
    s = 0.0
    for i in range(first, last):
        s += x[i] ** 2
    return math.sqrt(s)


@tiny
def modify(cone, first, u):
    """Slip term ``mu ||u_T|| + mu_r ||u_R||``, which uhat adds to ``u_N``; u of the contact begins at first."""
    split = first + 1 + cone.disk
    return cone.mu * norm(u, first + 1, split) + cone.mu_r * norm(u, split, first + cone.d)


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
def project(cone, first, x):
    """``x_c <- P_K(x_c)`` for the d components of x that begin at first."""
    d, disk, mu, mu_r = cone
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
def natural_map(rho, cone, first, r, u, x):
    """``||r - P_K(r - rho uhat)||^2`` of one contact; x (5,): scratch that ends as the projection."""
    s = 0.0
    if cone.disk == EQUATION:
        for a in range(cone.d):
            s += (rho * u[first + a]) ** 2
        return s
    return natural_map_with(modify(cone, first, u), rho, cone, first, r, u, x)


@tiny
def natural_map_with(slip, rho, cone, first, r, u, x):
    """`natural_map` of a contact whose slip term is given."""
    s = 0.0
    for a in range(cone.d):
        x[a] = r[first + a] - rho * (u[first + a] + (slip if a == 0 else 0.0))
    project(cone, 0, x)
    for a in range(cone.d):  # r - P(x) as (r - x) + (x - P(x)): a velocity is not lost beside a large r
        v = rho * (u[first + a] + (slip if a == 0 else 0.0))
        s += (v + ((r[first + a] - v) - x[a])) ** 2
    return s


# ---------------------------------------------------------------------------------------------------------------------- the merit


@tiny
def _disk_error(scale, radius, first, last, r, u, factor):
    """``||factor F||^2`` with ``F = scale r - P(scale r - u)``, P the projection onto a disk; radius: scale times that of r's.

    Of more than two components, as of a row of complementarity among contacts, the others are padding.
    """
    if last == first:
        return 0.0
    if last - first == 1:
        x = scale * r[first]
        return (factor * max(min(u[first], x + radius), x - radius)) ** 2
    # two components: by how much the trial impulse is beyond the disk
    x, y = factor * (scale * r[first] - u[first]), factor * (scale * r[first + 1] - u[first + 1])
    square, most, beyond = x * x + y * y, factor * radius, 0.0
    if square > most * most:
        size = math.sqrt(square)
        beyond = max(size - most, 0.0) / size
    return (factor * u[first] + beyond * x) ** 2 + (factor * u[first + 1] + beyond * y) ** 2


@tiny
def law_error(cone, first, scales, r, u, factor):
    """``||factor F||^2`` of one contact, F the velocity by which it misses its law; see `merit`. scales: of N, T and R, see `scales_of`."""
    d, disk, mu, mu_r = cone
    scale_n, scale_t, scale_r = scales
    if disk == EQUATION:
        s = 0.0
        for i in range(first, first + d):
            s += (factor * u[i]) ** 2
        return s
    split, r_n = first + 1 + disk, max(r[first], 0.0)
    s = (factor * min(scale_n * r[first], u[first])) ** 2
    s += _disk_error(scale_t, scale_t * (mu * r_n), first + 1, split, r, u, factor)
    return s + _disk_error(scale_r, scale_r * (mu_r * r_n), split, first + d, r, u, factor)


@tiny
def _product_error(a, b, product):
    """``a b - product`` of a rounded product, without rounding (Dekker)."""
    a_high, b_high = _SPLITTER * a - (_SPLITTER * a - a), _SPLITTER * b - (_SPLITTER * b - b)
    a_low, b_low = a - a_high, b - b_high
    return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


@tiny
def _excess(mu, r_n, first, last, r):
    """``||r_T|| - mu r_N`` with a small relative error although both may be large."""
    bound = mu * r_n
    rest = _product_error(mu, r_n, bound)
    if last - first == 1:
        return (abs(r[first]) - bound) - rest
    s, low = 0.0, 0.0
    for i in range(first, last):
        square = r[i] * r[i]
        total = s + square
        old = total - square
        low += ((s - old) + (square - (total - old))) + _product_error(r[i], r[i], square)
        s = total
    square = bound * bound
    low -= _product_error(bound, bound, square) + 2.0 * bound * rest
    size = math.sqrt(s) + bound
    return ((s - square) + low) / size if size > 0.0 else 0.0


@tiny
def _disk_error_exactly(scale, mu, r_n, first, last, r, u, factor):
    """As `_disk_error`, by ``||D r - u|| - D mu r_N = D (||r|| - mu r_N) + (||u||^2 - 2 D r u) / (||D r - u|| + ||D r||)``; D: scale."""
    size = own = square = product = s = 0.0
    for i in range(first, last):
        size += (factor * (scale * r[i] - u[i])) ** 2
        own += (factor * scale * r[i]) ** 2
        square += (factor * u[i]) ** 2
        product += (factor * scale * r[i]) * (factor * u[i])
    size, own = math.sqrt(size), math.sqrt(own)
    beyond = 0.0
    if size > 0.0:
        beyond = factor * scale * _excess(mu, r_n, first, last, r) + (square - 2.0 * product) / (size + own)
        beyond = min(max(beyond, 0.0) / size, 1.0)
    for i in range(first, last):
        s += (factor * (u[i] + beyond * (scale * r[i] - u[i]))) ** 2
    return s


@kernel
def law_error_exactly(cone, first, scales, r, u, factor):
    """`law_error` where r is so large that the rounding of ``mu r_N`` is a velocity that counts."""
    d, disk, mu, mu_r = cone
    scale_n, scale_t, scale_r = scales
    if disk == EQUATION:
        return law_error(cone, first, scales, r, u, factor)
    split, r_n = first + 1 + disk, max(r[first], 0.0)
    s = (factor * min(scale_n * r[first], u[first])) ** 2
    s += _disk_error_exactly(scale_t, mu, r_n, first + 1, split, r, u, factor)
    return s + _disk_error_exactly(scale_r, mu_r, r_n, split, first + d, r, u, factor)


@kernel
def multiply_exactly(problem, r, u):
    """``u = W r + q`` as if computed with twice the digits; reference: `nsds.solvers.box.signature.multiply_exactly`."""
    row = problem.row
    n_contacts = row.size - 1
    d = problem.q.size // max(n_contacts, 1)
    for c in range(n_contacts):
        for a in range(d):
            s, rest = problem.q[c * d + a], 0.0
            for k in range(row[c], row[c + 1]):
                for b in range(d):
                    x, y = problem.W[(k * d + a) * d + b], r[problem.column[k] * d + b]
                    term = x * y
                    total = s + term
                    old = total - term
                    rest += ((s - old) + (term - (total - old))) + _product_error(x, y, term)
                    s = total
            u[c * d + a] = s + rest


@tiny
def largest(x):
    """``max |x_i|``."""
    return _largest_of(0, x.size, x)


@tiny
def _largest_of(first, last, x):
    """``max |x_i|`` of some, two side by side."""
    pairs, both, i = spread(0.0, 2), stack(2), first
    while i < last - 1:
        pairs = larger(pairs, absolute(load(view(x, i, 2), 0, 2)))
        i += 2
    put(both, 0, 2, pairs)
    return max(both[0], both[1], abs(x[i]) if i < last else 0.0)


@kernel
def _scale_without_rows(c, d, first, last, problem, r):
    """Scale of components whose rows of W are 0: the largest entry of their columns, or of W; with W = 0, ``max |q| / max |r|``."""
    row = problem.row
    size = 0.0
    for j in range(row.size - 1):
        for k in range(row[j], row[j + 1]):
            if problem.column[k] == c:
                for a in range(d):
                    for b in range(first, last):
                        size = max(size, abs(problem.W[(k * d + a) * d + b]))
    if not size > 0.0:
        size = largest(problem.W)
    if not size > 0.0:
        most_q, most_r = largest(problem.q), largest(r)
        size = most_q / most_r if most_q > 0.0 and most_r > 0.0 else 1.0
    return size


@tiny
def part_scale(c, d, first, last, problem, r):
    """A velocity for an impulse: the largest ``|W_ij|`` in rows first..last - 1 of contact c."""
    size = 0.0
    for k in range(problem.row[c], problem.row[c + 1]):
        size = max(size, _largest_of((k * d + first) * d, (k * d + last) * d, problem.W))
    return size if size > 0.0 or first == last else _scale_without_rows(c, d, first, last, problem, r)


@tiny
def scales_of(c, disk, d, problem, r):
    """`part_scale` of N, T and R of contact c; 1 for equations, which need none."""
    if disk == EQUATION:
        return 1.0, 1.0, 1.0
    split = 1 + disk
    return (
        part_scale(c, d, 0, 1, problem, r),
        part_scale(c, d, 1, split, problem, r),
        part_scale(c, d, split, d, problem, r),
    )


@tiny
def _norm_of_data(problem, r):
    """(factor, size): the inverse of the largest ``|q_i|``, and ``||factor q||``; where q = 0, of velocities that r makes, and 1."""
    q = problem.q
    most, s = largest(q), 0.0
    if not most > _LEAST:
        most = largest(problem.W) * largest(r)
        return (1.0 / most if most > _LEAST else 1.0), 1.0
    factor = 1.0 / most
    for i in range(q.size):
        s += (factor * q[i]) ** 2
    return factor, math.sqrt(s)


@tiny
def _error(exactly, factor, problem, r, u):
    """``||factor F||`` of all contacts; see `merit`."""
    disk, mu = problem.disk, problem.mu
    d, error = problem.q.size // max(disk.size, 1), 0.0
    for c in range(disk.size):
        cone, scales = cone_of(c, d, disk, mu), scales_of(c, disk[c], d, problem, r)
        if exactly:
            error += law_error_exactly(cone, c * d, scales, r, u, factor)
        else:
            error += law_error(cone, c * d, scales, r, u, factor)
        for i in range(c * d, (c + 1) * d):
            error += 0.0 * u[i]  # NaN for an infinite u, which min and max do not pass on
    return math.sqrt(error)


@kernel
def merit(exactly, problem, r, u):
    """The velocity by which contacts miss their laws, relative to ``||q||``. Out: u.

        ||(F_N, F_T, F_R)|| / ||q||,    F_N = min(D_N r_N, u_N),    F_T = D_T r_T - P(D_T r_T - u_T),    F = u of an equation

    with P the projection onto the disk of radius ``mu D_T (r_N)_+``, and so for R. D is a velocity for an impulse, the largest entry in
    rows of W of the component: units of W, q and r do not matter, nor how large mu is. r is no part of the scale: one that grows
    without bound would solve a problem without solution. Only where q = 0, F is compared with the velocities that r makes. NaN where
    anything is NaN or infinite.

    exactly: with twice the digits, where F is a difference of numbers so large that their rounding counts.
    """
    factor, size = _norm_of_data(problem, r)
    if exactly:
        multiply_exactly(problem, r, u)
        return _error(True, factor, problem, r, u) / size
    multiply(problem.row, problem.column, problem.W, problem.q, r, u)
    return _error(False, factor, problem, r, u) / size


@tiny
def _hidden(factor, problem, r):
    """Error of ``||factor F||`` by rounding: of the sums in u, and of ``r_T`` and ``mu r_N``, which cancel where a contact slides."""
    disk, row = problem.disk, problem.row
    d, noise = problem.q.size // max(disk.size, 1), 0.0
    for c in range(disk.size):
        count, split, at = d * (row[c + 1] - row[c]) + 1, 1 + disk[c], c * d
        for a in range(d):
            terms = abs(problem.q[at + a])
            for k in range(row[c], row[c + 1]):
                for b in range(d):
                    terms += abs(problem.W[(k * d + a) * d + b] * r[problem.column[k] * d + b])
            noise += (factor * count * terms) ** 2
        if disk[c] != EQUATION and r[at] != 0.0:
            _, scale_t, scale_r = scales_of(c, disk[c], d, problem, r)
            for a in range(1, d):
                scale, slope = (scale_t, problem.mu[2 * c]) if a < split else (scale_r, problem.mu[2 * c + 1])
                noise += (factor * scale * (slope * abs(r[at]) + abs(r[at + a]))) ** 2
    return 4.0 * _ROUNDING * math.sqrt(noise)


@tiny
def most_hidden(factor, mu, scale, q, r):
    """A bound of `_hidden` that takes less to find; scale: no entry of W is larger."""
    n, most_q, total = q.size, largest(q), 0.0
    for i in range(n):
        total += abs(r[i])
    in_sums, in_disks = factor * (n + 1) * (most_q + scale * total), factor * scale * (1.0 + largest(mu)) * total
    return 4.0 * _ROUNDING * math.sqrt(n * (in_sums**2 + in_disks**2))


@kernel
def mixed_residual(problem, r, u, x):
    """``res_q = ||r - P_K(r - uhat)|| / ||q||``, which other codes judge by although it mixes units; infinite where squares are too large.

    Out: u. Work: x (5,).
    """
    disk, q = problem.disk, problem.q
    d = q.size // max(disk.size, 1)
    multiply(problem.row, problem.column, problem.W, q, r, u)
    s = scale = 0.0
    for c in range(disk.size):
        s += natural_map(1.0, cone_of(c, d, disk, problem.mu), c * d, r, u, x)
        for i in range(c * d, (c + 1) * d):
            scale += q[i] ** 2 + 0.0 * u[i]
    error = math.sqrt(s) / (math.sqrt(scale) if scale != 0.0 else 1.0)
    return error if error >= 0.0 else math.inf


@kernel
def natural_maps(d, disk, mu, W, r, u, x):
    """Numerators of `merit` and of `mixed_residual` where only the diagonal blocks W (n, d, d) are at hand. Work: x (5,)."""
    mixed = error = 0.0
    whole = largest(W)
    for c in range(disk.size):
        cone, scales = cone_of(c, d, disk, mu), (1.0, 1.0, 1.0)
        if disk[c] != EQUATION:
            scales = (
                _largest_of_rows(c, d, 0, 1, W, whole),
                _largest_of_rows(c, d, 1, 1 + disk[c], W, whole),
                _largest_of_rows(c, d, 1 + disk[c], d, W, whole),
            )
        error += law_error(cone, c * d, scales, r, u, 1.0)
        mixed += natural_map(1.0, cone, c * d, r, u, x)
        for i in range(c * d, (c + 1) * d):
            error += 0.0 * u[i]
    return math.sqrt(error), math.sqrt(mixed)


@tiny
def _largest_of_rows(k, d, first, last, W, instead):
    """Largest entry in rows first..last - 1 of block k; if that is 0, the one given."""
    size = _largest_of((k * d + first) * d, (k * d + last) * d, W)
    return size if size > 0.0 else instead


@tiny
def mean_diagonal(d, k, W):
    """Mean of the diagonal of block k."""
    s = 0.0
    for a in range(d):
        s += W[k * d * d + a * (d + 1)]
    return s / d


@kernel
def judge(status, n_iter, problem, options, r, u, info):
    """Status of a method that believes to have finished (CONVERGED) or has given up, checked against `merit`. Out: u, info.

    Where rounding may hide an error above tol, the merit is computed exactly; where r has grown until it swallows q, the error is taken
    to be all that rounding may hide, whatever this r does by chance.
    """
    multiply(problem.row, problem.column, problem.W, problem.q, r, u)
    factor, size = _norm_of_data(problem, r)
    error = _error(False, factor, problem, r, u) / size
    if error <= options.tol:
        hidden = most_hidden(factor, problem.mu, largest(problem.W), problem.q, r) / size
        if not hidden <= options.tol:
            hidden = _hidden(factor, problem, r) / size
        if not hidden <= options.tol:
            error = merit(True, problem, r, u)
        if not hidden <= max(_LOST, options.tol):
            error = max(error, hidden)
    info[0], info[1] = n_iter, error
    if not math.isfinite(error):
        return NON_FINITE
    if error <= options.tol:
        return CONVERGED
    return STALLED if status == CONVERGED else status


@kernel
def conclude(status, n_iter, disk, mu, row, column, W, q, options, r, u, info):
    """`judge` of the arrays of a problem, for methods of a user's own."""
    return judge(status, n_iter, problem_of((disk, mu, row, column, W, q)), options, r, u, info)


@kernel
def classify(problem, r, u, state):
    """Out: state (2 nc,) of the disks of T and R: 0 open, 1 sticking, 2 sliding, by ``r - rho u``, as Alart and Curnier do."""
    disk = problem.disk
    d = r.size // max(disk.size, 1)
    for c in range(disk.size):
        diagonal = mean_diagonal(d, diagonal_block(problem.row, problem.column, c), problem.W)
        rho, split = 1.0 / diagonal if diagonal > 0.0 else 1.0, 1 + max(disk[c], 0)
        x = r[c * d] - rho * u[c * d]
        for i in range(2):
            first, last = (1, split) if i == 0 else (split, d)
            size = 0.0
            for a in range(c * d + first, c * d + last):
                size += (r[a] - rho * u[a]) ** 2
            state[2 * c + i] = 0 if x <= 0.0 else (1 if math.sqrt(size) < problem.mu[2 * c + i] * x else 2)


@tiny
def has_stalled(n_iter, residual, patience, halved):
    """Whether the residual has not halved in the last iterations. In/out: halved: the last that was half of one before, and when.

    patience: how many iterations; 0 where there is no such limit. halved begins as infinity and 0.
    """
    if residual <= 0.5 * halved[0]:
        halved[0], halved[1] = residual, n_iter
    return patience > 0.0 and n_iter - halved[1] >= patience


@tiny
def begin_progress(residual, patience, progress):
    """Before the first check; residual: of the guess, or infinite.

    Out: progress (4,): the two numbers of `has_stalled`, the least residual, how many checks without progress remain.
    """
    progress[0], progress[1], progress[2], progress[3] = residual, 0.0, residual, patience


@kernel
def check(n_iter, progress, problem, options, r, u, info, best):
    """Status of an iteration that goes on while it is MAX_ITER; STALLED: the residual has not halved, see `has_stalled`.

    In/out: best (n,), of r that were checked; progress (4,), see `begin_progress`, with the limit of n_iter in place of remaining checks.
    """
    status = judge(MAX_ITER, n_iter, problem, options, r, u, info)
    progress[2] = keep_better(info[1], progress[2], r, best)
    if status == MAX_ITER and n_iter < progress[3] and has_stalled(n_iter, info[1], options.patience, progress):
        return STALLED
    return status


@kernel
def end(status, n_iter, problem, options, r, u, info, best):
    """A solution as it is; else the best r so far, judged again."""
    if status == CONVERGED:
        return status
    for i in range(r.size):
        r[i] = best[i]
    return judge(status, n_iter, problem, options, r, u, info)


@tiny
def keep_better(residual, least, r, best):
    """The lesser one of two residuals; r is kept if it is the one of r."""
    if not residual < least:
        return least
    for i in range(r.size):
        best[i] = r[i]
    return residual
