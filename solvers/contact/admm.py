"""Alternating directions: one sparse factorisation, then a substitution and a projection on the cones per iteration."""

import math

from nsds._jit import kernel, view
from nsds.solvers.contact import block_lu
from nsds.solvers.contact.signature import (
    EQUATION,
    cone_of,
    diagonal_block,
    end,
    judge,
    keep_better,
    mean_diagonal,
    modify,
    multiply,
    norm,
    project,
)
from nsds.status import MAX_ITER, SINGULAR, UNSUITED

_LIMIT = 10_000
_PROXIMAL = 1e-6  # eta
_RELAXATION = 1.5
_RATIO = 3.0  # of the two residuals, above which rho changes
_POWER, _CHANGE = 0.2, 0.05  # of the condition number: in the first rho, and in its changes
_POWER_STEPS = 20  # for the largest eigenvalue
_CHECKED = 5  # iterations between two checks of the residual
_AT_ONCE, _WAIT = 10, 50  # changes of rho that may follow each other; iterations between the later ones


@kernel
def room(d, n, n_upper):
    """Floats of scratch for n contacts and n_upper blocks above the diagonal in the factors."""
    return 5 + n * (2 + 4 * d + 2 * d * d) + block_lu.float_room(d, n, n_upper)


def work_size(d, row, column):
    """Scratch of the factors."""
    return block_lu.work_size(room, d, row, column)


@kernel
def scale_contacts(d, problem, D):
    """``D_c`` = mean diagonal of the block of contact c, at least 1e-12 of the largest; 1 where none is positive."""
    largest = 0.0
    for c in range(D.size):
        D[c] = mean_diagonal(d, diagonal_block(problem.row, problem.column, c), problem.W)
        largest = max(largest, D[c])
    for c in range(D.size):
        D[c] = max(D[c], 1e-12 * largest) if largest > 0.0 else 1.0


@kernel
def largest_eigenvalue(problem, D, zero, x, y):
    """Estimate of ``||D^-1/2 W D^-1/2||`` by the power method. Work: x, y, zero."""
    size, d = 0.0, x.size // D.size
    for i in range(x.size):
        zero[i] = 0.0
        x[i] = 1.0 + math.sin(i + 1.0)  # any vector that is not orthogonal to what is sought
    for _ in range(_POWER_STEPS):
        size = norm(x, 0, x.size)
        for i in range(x.size):
            x[i] /= size * math.sqrt(D[i // d])
        multiply(problem.row, problem.column, problem.W, zero, x, y)
        for i in range(x.size):
            x[i] = y[i] / math.sqrt(D[i // d])
        size = norm(x, 0, x.size)
        if not size > 0.0:
            return 1.0
    return size


@kernel
def damped_factors(damping, d, problem, D, A, B, eta, n_upper, symbols, factors):
    """Factors of ``W + damping D``; False: singular. Work: A, B, eta."""
    for i in range(A.size):
        A[i] = B[i] = 0.0
    for c in range(D.size):
        eta[c] = damping * D[c]
        for i in range(d):
            A[c * d * d + i * (d + 1)] = 1.0
    return block_lu.factorise(d, problem, eta, A, B, n_upper, symbols, factors)


@kernel
def _start(problem, d, r, x, z, work):
    """``y = P_K(r)``, kept in r, ``x = y`` and ``z = P_K*(uhat)``. Work: work (d,)."""
    disk, mu = problem.disk, problem.mu
    for c in range(disk.size):
        if disk[c] != EQUATION:
            project(cone_of(c, d, disk, mu), c * d, r)
    multiply(problem.row, problem.column, problem.W, problem.q, r, z)
    for c in range(disk.size):
        first = c * d
        if disk[c] != EQUATION:
            z[first] += modify(cone_of(c, d, disk, mu), first, z)
        for i in range(d):
            x[first + i], work[i] = r[first + i], -z[first + i]
        if disk[c] != EQUATION:
            project(cone_of(c, d, disk, mu), 0, work)
        for i in range(d):
            z[first + i] += work[i]


@kernel
def _right_hand_side(rho, problem, d, D, x, y, z, rhs):
    """``rho D y + eta D x + z - q - s(z)``."""
    disk, mu, q = problem.disk, problem.mu, problem.q
    for c in range(disk.size):
        for i in range(c * d, (c + 1) * d):
            rhs[i] = D[c] * (rho * y[i] + _PROXIMAL * x[i]) + z[i] - q[i]
        if disk[c] != EQUATION:
            rhs[c * d] -= modify(cone_of(c, d, disk, mu), c * d, z)


@kernel
def _advance(rho, problem, D, x_new, x, y, z, work):
    """Next x, y, z. Returns the largest ``D^1/2 |x - y|`` and ``D^1/2 |rho change of y + eta change of x|``. Work: x_new, work (d,)."""
    disk, mu, primal, dual = problem.disk, problem.mu, 0.0, 0.0
    d = problem.q.size // max(disk.size, 1)
    for c in range(disk.size):
        first, root = c * d, math.sqrt(D[c])
        for i in range(d):
            x_new[first + i] += (_RELAXATION - 1.0) * (x_new[first + i] - y[first + i])
            work[i] = x_new[first + i] - z[first + i] / (rho * D[c])
        if disk[c] != EQUATION:
            project(cone_of(c, d, disk, mu), 0, work)
        for i in range(d):
            k = first + i
            primal = max(primal, root * abs(x_new[k] - work[i]))
            dual = max(dual, root * abs(rho * (work[i] - y[k]) + _PROXIMAL * (x_new[k] - x[k])))
            z[k] -= rho * D[c] * (x_new[k] - work[i])
            x[k], y[k] = x_new[k], work[i]
    return primal, dual


@kernel
def admm(problem, options, r, u, info, work, iwork):
    """Contact problem as ``W x + q + s(z) = z``, ``x = y``, ``K ∋ y ⟂ z ∈ K*`` with ``s(z) = (mu ||z_T|| + mu_r ||z_R||) e_N``.

        x <- (W + (rho + eta) D)^-1 (rho D y + eta D x + z - q - s(z)),   x <- 1.5 x - 0.5 y
        y <- P_K(x - z / (rho D)),   z <- z - rho D (x - y)

    with D the mean diagonal of each contact's block and eta = 1e-6. The guess is y, and gives z. Where the residuals of ``x = y`` and of
    ``W x + q + s = z`` differ by more than a factor of 3, rho is multiplied or divided by ``κ^0.05``, and the matrix factorised again;
    ``κ = ||D^-1/2 W D^-1/2|| / eta``, and rho begins with ``eta κ^0.7``. options.rho: a rho that stays as it is.
    For positive semidefinite W, redundant contacts included. The best y that was checked is returned.
    MAX_ITER; SINGULAR: a pivot vanished; UNSUITED: more than `block_lu.LARGEST`.
    Reference: Carpentier, Le Lidec and Montaut, From compliant to rigid contact simulation, RSS 2024, whose rho follows every iteration
    and which does not relax.
    """
    disk = problem.disk
    n, size = disk.size, problem.q.size
    d = size // max(n, 1)
    n_upper = block_lu.pattern(block_lu.UNLIMITED, problem.row, problem.column, iwork)
    scratch = view(work, 0, 5)
    if n_upper < 0 or room(d, n, n_upper) > work.size:
        judge(UNSUITED, 0, problem, options, r, u, info)
        return UNSUITED
    D, eta, x, z, x_new = (
        view(work, 5, n),
        view(work, 5 + n, n),
        view(work, 5 + 2 * n, size),
        view(work, 5 + 2 * n + size, size),
        view(work, 5 + 2 * n + 2 * size, size),
    )
    best = view(work, 5 + 2 * n + 3 * size, size)
    at = 5 + 2 * n + 4 * size
    A, B, factors = (
        view(work, at, size * d),
        view(work, at + size * d, size * d),
        view(work, at + 2 * size * d, work.size - at - 2 * size * d),
    )
    scale_contacts(d, problem, D)
    condition = largest_eigenvalue(problem, D, x_new, x, z) / _PROXIMAL
    rho = options.rho if options.rho > 0.0 else _PROXIMAL * condition ** (0.5 + _POWER)
    _start(problem, d, r, x, z, scratch)
    limit = int(options.max_iter) if options.max_iter > 0 else _LIMIT
    n_changes, wait, factorised = 0, 0, False
    status, least, iteration = MAX_ITER, math.inf, 0
    for i in range(size):
        best[i] = r[i]
    while True:
        if iteration % _CHECKED == 0 or iteration == limit:
            status = judge(MAX_ITER, iteration, problem, options, r, u, info)
            least = keep_better(info[1], least, r, best)
            if status != MAX_ITER or iteration == limit:
                break
        if not factorised and not damped_factors(rho + _PROXIMAL, d, problem, D, A, B, eta, n_upper, iwork, factors):
            status = SINGULAR
            break
        factorised = True
        _right_hand_side(rho, problem, d, D, x, r, z, x_new)
        block_lu.substitute(d, problem.row, n_upper, iwork, factors, x_new)
        primal, dual = _advance(rho, problem, D, x_new, x, r, z, scratch)
        wait -= 1
        if wait <= 0 and options.rho <= 0.0 and max(primal, dual) > _RATIO * min(primal, dual):
            rho *= condition**_CHANGE if primal > dual else condition**-_CHANGE
            n_changes, factorised = n_changes + 1, False
            wait = _WAIT if n_changes >= _AT_ONCE else 1
        iteration += 1
    return end(status, iteration, problem, options, r, u, info, best)
