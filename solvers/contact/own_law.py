"""A law of a user's own in place of Coulomb's: each contact with friction obeys ``r = law(rho, mu, mu_r, r, u)`` for every rho > 0.

The law is a compiled function, known by its address, of one contact:

    law(rho, mu, mu_r, r, u, out)        out <- the projection of ``r - rho u`` by which the law is stated, (d,)

Coulomb's in the form of Alart and Curnier has ``out_N = (r_N - rho u_N)_+`` and ``out_T`` the projection of ``r_T - rho u_T`` onto the
disk of radius ``mu out_N``. Contacts are solved one after the other, as by `nsds.solvers.contact.nsgs`, each by the fixed-point iteration
``r_c <- law(rho_c, ..)`` with rho_c the inverse of a bound on the eigenvalues of ``W_cc``. Equations and rows without friction keep their
own laws.
"""

import math

from numba import float64, void

from nsds._jit import caller, kernel, stack, tiny, view
from nsds.solvers.box.own_law import MAX_SWEEPS, PATIENCE, look
from nsds.solvers.contact import local as one
from nsds.solvers.contact.signature import LARGEST_BLOCK, cone_of, diagonal_block, law_error, multiply, scales_of
from nsds.status import MAX_ITER, STALLED

ARGUMENTS = "rho, mu, mu_r, r, u, out"
LAW = void(*(float64,) * 3, *(float64[::1],) * 3)
_call_law = caller(LAW)
_MAX_LOCAL = 100
_STILL = 1e-15  # change of a contact, relative to its largest component, at which its iteration ends


def work_size(d, row, column):
    """Scratch of one contact and the best r."""
    n = row.size - 1
    return 2 * LARGEST_BLOCK + one.SCRATCH + d * n, 0


@kernel
def sweeps(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q`` with the law at the address options.rho; see the module.

    The residual is ``||F|| / ||q||``, ``F = (r - law(rho, mu, mu_r, r, u)) / rho`` of contacts with friction, and that of
    `nsds.solvers.contact.signature.merit` of other rows. STALLED: no progress in many sweeps; r is the best one.
    """
    law, n = int(options.rho), problem.disk.size
    d = problem.q.size // max(n, 1)
    own, scratch = view(work, 0, 2 * LARGEST_BLOCK), view(work, 2 * LARGEST_BLOCK, one.SCRATCH)
    best = view(work, 2 * LARGEST_BLOCK + one.SCRATCH, d * n)
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_SWEEPS
    status, least, patience = MAX_ITER, math.inf, PATIENCE
    for k in range(limit + 1):
        error = residual(law, problem, r, u)
        status, least, patience = look(k, error, least, patience, options.tol, r, best, info)
        if status != MAX_ITER or k == limit:
            break
        for c in range(n):
            _relax(c, law, d, problem, r, own, scratch)
    if status in (MAX_ITER, STALLED):
        for i in range(d * n):
            r[i] = best[i]
        info[1] = residual(law, problem, r, u)
    return status


@tiny
def _step_of(d, W, k):
    """Inverse of the largest row sum of ``|W_cc|``, the block at W[k]; 1 where that is 0."""
    most = 0.0
    for a in range(d):
        s = 0.0
        for b in range(d):
            s += abs(W[k + a * d + b])
        most = max(most, s)
    return 1.0 / most if most > 0.0 else 1.0


@kernel
def residual(law, problem, r, u):
    """``||F|| / ||q||``, see `sweeps`; ``||F||`` where q = 0. Out: u."""
    disk, mu, q = problem.disk, problem.mu, problem.q
    d, out, error, size = q.size // max(disk.size, 1), stack(LARGEST_BLOCK), 0.0, 0.0
    multiply(problem.row, problem.column, problem.W, q, r, u)
    for c in range(disk.size):
        if disk[c] > 0:
            rho = _step_of(d, problem.W, diagonal_block(problem.row, problem.column, c) * d * d)
            _call_law(law, (rho, mu[2 * c], mu[2 * c + 1], view(r, c * d, d), view(u, c * d, d), view(out, 0, d)))
            for a in range(d):
                error += ((r[c * d + a] - out[a]) / rho) ** 2
        else:
            error += law_error(cone_of(c, d, disk, mu), c * d, scales_of(c, disk[c], d, problem, r), r, u, 1.0)
        for i in range(c * d, c * d + d):
            error += 0.0 * u[i]
            size += q[i] ** 2
    return math.sqrt(error) / (math.sqrt(size) if size > 0.0 else 1.0)


@kernel
def _relax(c, law, d, problem, r, own, scratch):
    """Solves contact c, the others being held. In/out: r. Work: own (2 `LARGEST_BLOCK`), scratch (`local.SCRATCH`)."""
    mu, row, W = problem.mu, problem.row, problem.W
    diagonal, q_c, u_c, r_c, out = (
        diagonal_block(row, problem.column, c),
        view(own, 0, d),
        view(own, LARGEST_BLOCK, d),
        view(r, c * d, d),
        stack(5),
    )
    for a in range(d):
        q_c[a] = problem.q[c * d + a]
    for k in range(row[c], row[c + 1]):
        for a in range(d if k != diagonal else 0):
            for b in range(d):
                q_c[a] += W[(k * d + a) * d + b] * r[problem.column[k] * d + b]
    at = diagonal * d * d
    if problem.disk[c] <= 0:
        one.solve_contact(one.AUTO, cone_of(c, d, problem.disk, mu), W, at, q_c, r_c, scratch)
        return
    rho = _step_of(d, W, at)
    for _ in range(_MAX_LOCAL):
        one.product(d, W, at, r_c, q_c, u_c)
        _call_law(law, (rho, mu[2 * c], mu[2 * c + 1], r_c, u_c, view(out, 0, d)))
        change = size = 0.0
        for a in range(d):
            change, size = max(change, abs(out[a] - r_c[a])), max(size, abs(out[a]))
            r_c[a] = out[a]
        if not change > _STILL * size:
            break
