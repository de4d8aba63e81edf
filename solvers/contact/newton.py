"""Semismooth Newton on the contact laws written as equations, all contacts at once."""

from nsds._jit import kernel, tiny, view
from nsds.solvers.contact import alart_curnier, block_lu
from nsds.solvers.contact.signature import conclude, diagonal_block, mean_diagonal, multiply
from nsds.status import MAX_ITER, SINGULAR, UNSUITED

MAX_ITERATIONS = 100
_HALVINGS = 12
_MEMORY = 5  # merits among which the largest is the one to fall below
_REGULARISED = 1e-9  # eta relative to the mean diagonal of a block


@kernel
def room(d, n, n_upper):
    """(floats, integers) of scratch for n contacts and n_upper blocks above the diagonal in the factors."""
    return 5 + _MEMORY + n * (4 + 2 * d + 2 * d * d) + n * d * 2 + block_lu.float_room(d, n, n_upper), block_lu.integer_room(n, n_upper)


def work_size(d, row, column):
    """Scratch of the factors; for many contacts what the dense factors need is not asked for."""
    n = row.size - 1
    if n > block_lu.LARGEST:
        return 5, 0
    n_upper, _ = block_lu.count(row, column)
    return room(d, n, n_upper)


@tiny
def _merit(form, disk, mu, rho, d, r, u, F, A, B):
    s = 0.0
    for c in range(disk.size):
        at = c * d
        alart_curnier.evaluate(
            form,
            disk[c],
            mu[2 * c],
            mu[2 * c + 1],
            view(rho, 3 * c, 3),
            d,
            at,
            r,
            u,
            view(F, at, d),
            view(A, at * d, d * d),
            view(B, at * d, d * d),
        )
        for i in range(at, at + d):
            s += F[i] ** 2
    return s


@kernel
def newton_ac(disk, mu, row, column, W, q, options, r, u, info, work, iwork):
    """Newton on Alart–Curnier's equations."""
    return iterate(alart_curnier.ALART_CURNIER, disk, mu, row, column, W, q, options, r, u, info, work, iwork)


@kernel
def newton_jm(disk, mu, row, column, W, q, options, r, u, info, work, iwork):
    """Newton on Jean-Moreau's equations."""
    return iterate(alart_curnier.JEAN_MOREAU, disk, mu, row, column, W, q, options, r, u, info, work, iwork)


@kernel
def iterate(form, disk, mu, row, column, W, q, options, r, u, info, work, iwork):
    """Newton."""
    n = disk.size
    d = q.size // max(n, 1)
    n_upper = block_lu.pattern(row, column, iwork)
    x = view(work, 0, 5)
    if n_upper < 0 or room(d, n, n_upper)[0] > work.size:
        conclude(UNSUITED, 0, disk, mu, row, column, W, q, options, r, u, info, x)
        return UNSUITED
    at = 5 + _MEMORY
    recent = view(work, 5, _MEMORY)
    rho, eta, F, step = view(work, at, 3 * n), view(work, at + 3 * n, n), view(work, at + 4 * n, n * d), view(work, at + (4 + d) * n, n * d)
    at += (4 + 2 * d) * n
    A, B = view(work, at, n * d * d), view(work, at + n * d * d, n * d * d)
    at += 2 * n * d * d
    factors = view(work, at, work.size - at)
    for c in range(n):
        k = diagonal_block(row, column, c)
        alart_curnier.split_rho(disk[c], d, W, k * d * d, view(rho, 3 * c, 3))
        eta[c] = _REGULARISED * mean_diagonal(d, k, W)
    multiply(row, column, W, q, r, u)
    merit = _merit(form, disk, mu, rho, d, r, u, F, A, B)
    for i in range(_MEMORY):
        recent[i] = merit
    limit = int(options[1]) if options[1] > 0 else MAX_ITERATIONS
    for iteration in range(limit):
        status = conclude(MAX_ITER, iteration, disk, mu, row, column, W, q, options, r, u, info, x)
        if status != MAX_ITER:
            return status
        if not block_lu.factorise(d, row, column, W, eta, A, B, n_upper, iwork, factors):
            return SINGULAR
        for i in range(q.size):
            step[i] = F[i]
        block_lu.substitute(d, row, n_upper, iwork, factors, step)
        bound = 0.0
        for i in range(_MEMORY):
            bound = max(bound, recent[i])
        t = 1.0
        for i in range(q.size):
            r[i] -= step[i]
        for _ in range(_HALVINGS):
            multiply(row, column, W, q, r, u)
            merit = _merit(form, disk, mu, rho, d, r, u, F, A, B)
            if merit <= (1.0 - 2e-4 * t) * bound:
                break
            t *= 0.5
            for i in range(q.size):
                r[i] += t * step[i]
        recent[iteration % _MEMORY] = merit
    return conclude(MAX_ITER, limit, disk, mu, row, column, W, q, options, r, u, info, x)
