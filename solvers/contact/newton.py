"""Semismooth Newton on the law of contact written as equations ``F(u, r) = 0`` with ``u = W r + q``, all contacts at once.

    (A (W + eta) + B) step = -F,    A = ∂F/∂u,  B = ∂F/∂r  in the generalised sense,    r <- r + t step

with t = 1, 1/2, 1/4, ... until ``||F||^2`` falls below the largest one of the last steps (Armijo's condition, not monotone). eta is there
because W is singular where there are more contacts than motions; it changes steps but not what they converge to. It falls after each
full step and grows after each shortened one, between 1e-9 and 1 of the diagonal, which turns long useless steps into short useful ones.

The equations are one of four forms: Alart–Curnier's, Jean–Moreau's (`alart_curnier`), the natural map and Fischer–Burmeister's function.
References: Alart, Curnier, Computer Methods in Applied Mechanics and Engineering 92 (1991) 353–375; Acary, Brémond, Huber, "On solving
contact problems with Coulomb friction: formulations and numerical comparisons", Advanced Topics in Nonsmooth Dynamics (2018).
"""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.solvers.contact import alart_curnier, block_lu, fischer_burmeister, natural_map
from nsds.solvers.contact.alart_curnier import ALART_CURNIER, JEAN_MOREAU
from nsds.solvers.contact.signature import begin_progress, check, cone_of, diagonal_block, end, judge, mean_diagonal, multiply
from nsds.status import MAX_ITER, SINGULAR, UNSUITED

NATURAL_MAP, FISCHER_BURMEISTER = 2, 3  # forms, after those of `alart_curnier`

MAX_ITERATIONS = 200
HALVINGS = 12
MEMORY = 5  # merits among which the largest is the one to fall below
DECREASE = 1e-4  # Armijo's condition
LEAST, MOST = 1e-9, 1.0  # eta relative to the mean diagonal of a block,
RELAX, STIFFEN = 10.0, 100.0  # divided and multiplied by these after full and shortened steps


@kernel
def room(d, n, n_upper):
    """Floats of scratch for n contacts and n_upper blocks above the diagonal in the factors; the first 5 whatever the problem."""
    return 5 + MEMORY + n * (5 + 4 * d + 2 * d * d) + block_lu.float_room(d, n, n_upper)


def work_size(d, row, column):
    """Scratch of the factors."""
    return block_lu.work_size(room, d, row, column)


@tiny
def parts(d, n, work):
    """x (5,), recent merits, rho (n, 3), D and eta (n,), F, step, centre, best (n, d), A, B (n, d, d), factors."""
    at = 5 + MEMORY + 5 * n
    end = at + 4 * n * d + 2 * n * d * d
    return (
        (view(work, 0, 5), view(work, 5, MEMORY)),
        (view(work, 5 + MEMORY, 3 * n), view(work, 5 + MEMORY + 3 * n, n), view(work, 5 + MEMORY + 4 * n, n)),
        (view(work, at, n * d), view(work, at + n * d, n * d), view(work, at + 2 * n * d, n * d), view(work, at + 3 * n * d, n * d)),
        (view(work, at + 4 * n * d, n * d * d), view(work, at + 4 * n * d + n * d * d, n * d * d), view(work, end, work.size - end)),
    )


@kernel
def prepare(form, rho, problem, d, work, iwork):
    """Pattern of the factors, rho (0: of the diagonal blocks) and D. Returns blocks above the diagonal; -1: unsuited."""
    disk = problem.disk
    n = disk.size
    if form == FISCHER_BURMEISTER and not fischer_burmeister.suits(disk, d):
        return -1
    n_upper = block_lu.pattern(block_lu.UNLIMITED, problem.row, problem.column, iwork)
    if n_upper < 0 or room(d, n, n_upper) > work.size:
        return -1
    _, (rhos, D, _), _, _ = parts(d, n, work)
    for c in range(n):
        k = diagonal_block(problem.row, problem.column, c)
        alart_curnier.split_rho(disk[c], d, problem.W, k * d * d, view(rhos, 3 * c, 3))
        for i in range(3):
            rhos[3 * c + i] = rho if rho > 0.0 else rhos[3 * c + i]
        D[c] = abs(mean_diagonal(d, k, problem.W))
        D[c] = D[c] if 0.0 < D[c] < math.inf else 1.0
    return n_upper


@kernel
def evaluate(form, problem, d, centre, r, u, work):
    """``u = W r + q + eta (r - centre)``, F, A and B in work; returns ``||F||^2``. centre: r itself for the plain problem."""
    disk = problem.disk
    _, (rhos, _, eta), (Fs, _, _, _), (As, Bs, _) = parts(d, disk.size, work)
    multiply(problem.row, problem.column, problem.W, problem.q, r, u)
    merit = 0.0
    for c in range(disk.size):
        at = c * d
        rho, F, A, B = view(rhos, 3 * c, 3), view(Fs, at, d), view(As, at * d, d * d), view(Bs, at * d, d * d)
        for i in range(at, at + d):
            u[i] += eta[c] * (r[i] - centre[i])
        cone, r_c, u_c = cone_of(c, d, disk, problem.mu), view(r, at, d), view(u, at, d)
        if form == NATURAL_MAP:
            natural_map.evaluate(cone, rho, r_c, u_c, F, A, B)
        elif form == FISCHER_BURMEISTER:
            fischer_burmeister.evaluate(cone, rho, r_c, u_c, F, A, B)
        else:
            alart_curnier.evaluate(form, cone, rho, r_c, u_c, F, A, B)
        for i in range(d):
            merit += F[i] ** 2
    return merit


@kernel
def advance(form, bound, problem, d, centre, n_upper, r, u, work, iwork):
    """One step from where `evaluate` was called last, halved until ``||F||^2`` is below bound; (||F||^2, length), length 0: singular."""
    q = problem.q
    _, (_, _, eta), (F, step, _, _), (A, B, factors) = parts(d, problem.disk.size, work)
    if not block_lu.factorise(d, problem, eta, A, B, n_upper, iwork, factors):
        return bound, 0.0
    for i in range(q.size):
        step[i] = F[i]
    block_lu.substitute(d, problem.row, n_upper, iwork, factors, step)
    for i in range(q.size):
        r[i] -= step[i]
    t = 1.0
    merit = evaluate(form, problem, d, centre, r, u, work)
    for _ in range(HALVINGS):
        if merit <= (1.0 - 2.0 * DECREASE * t) * bound:
            break
        t *= 0.5
        for i in range(q.size):
            r[i] += t * step[i]
        merit = evaluate(form, problem, d, centre, r, u, work)
    return merit, t


@tiny
def largest(recent):
    """The largest of recent merits: what the next one must fall below."""
    bound = recent[0]
    for i in range(1, recent.size):
        bound = max(bound, recent[i])
    return bound


@tiny
def set_eta(sigma, D, eta):
    """``eta = sigma D``."""
    for c in range(D.size):
        eta[c] = sigma * D[c]


@kernel
def iterate(form, problem, options, r, u, info, work, iwork):
    """Newton's method on one form, from the guess r. Out: r, the iterate of least residual where it did not converge."""
    n = problem.disk.size
    d = problem.q.size // max(n, 1)
    (x, recent), (_, D, eta), (_, _, _, best), _ = parts(d, n, work)
    n_upper = prepare(form, options.rho, problem, d, work, iwork)
    if n_upper < 0:
        judge(UNSUITED, 0, problem, options, r, u, info)
        return UNSUITED
    sigma = LEAST
    set_eta(sigma, D, eta)
    merit = evaluate(form, problem, d, r, r, u, work)
    for i in range(MEMORY):
        recent[i] = merit
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_ITERATIONS
    n_iter, progress = 0, stack(4)
    begin_progress(math.inf, limit, progress)
    status = check(n_iter, progress, problem, options, r, u, info, best)
    while status == MAX_ITER and n_iter < limit:
        merit, t = advance(form, largest(recent), problem, d, r, n_upper, r, u, work, iwork)
        if t == 0.0 and sigma == MOST:
            status = SINGULAR
            break
        sigma = max(sigma / RELAX, LEAST) if t == 1.0 else min(sigma * STIFFEN, MOST)
        set_eta(sigma, D, eta)
        n_iter += 1
        recent[n_iter % MEMORY] = merit
        status = check(n_iter, progress, problem, options, r, u, info, best)
    return status if progress[2] == math.inf else end(status, n_iter, problem, options, r, u, info, best)


@kernel
def newton_ac(problem, options, r, u, info, work, iwork):
    """Contact problem as Alart–Curnier's equations, by Newton's method: quadratic near a regular solution, for unsymmetric W too.

    SINGULAR: no direction although regularised; UNSUITED: more contacts than `block_lu.LARGEST`. rho: 0, of the diagonal blocks.
    Reference: Alart, Curnier, Computer Methods in Applied Mechanics and Engineering 92 (1991) 353–375.
    """
    return iterate(ALART_CURNIER, problem, options, r, u, info, work, iwork)


@kernel
def newton_jm(problem, options, r, u, info, work, iwork):
    """Contact problem as Jean–Moreau's equations (disks of radius ``mu (r_N)_+``), by Newton's method; else as `newton_ac`.

    Reference: Jean, Moreau, "Unilaterality and dry friction in the dynamics of rigid body collections", Contact Mechanics (1992) 31–48.
    """
    return iterate(JEAN_MOREAU, problem, options, r, u, info, work, iwork)


@kernel
def newton_natural(problem, options, r, u, info, work, iwork):
    """Contact problem as ``r = P_K(r - rho uhat)``, by Newton's method; else as `newton_ac`. Reference: see `natural_map`."""
    return iterate(NATURAL_MAP, problem, options, r, u, info, work, iwork)


@kernel
def newton_fb(problem, options, r, u, info, work, iwork):
    """Contact problem as Fischer–Burmeister's function of the cone, by Newton's method; else as `newton_ac`.

    UNSUITED for rolling friction too, whose cone is no second-order cone. Reference: see `fischer_burmeister`.
    """
    return iterate(FISCHER_BURMEISTER, problem, options, r, u, info, work, iwork)
