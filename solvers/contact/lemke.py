"""Contacts in the plane by pivoting: the piecewise linear path of ``u = W r + q + t e`` from a t with a known solution to t = 0.

The law of a plane contact is made of four pieces, open, sticking, sliding forwards and backwards; within given pieces r and u are linear
in t, and where one of the inequalities of a contact is about to be violated, the contact changes to the neighbouring piece. t need not
decrease all the way. That is Lemke's method, with the sparse factors of `block_lu` in place of a tableau.
"""

import math

from nsds._jit import inlined, kernel, stack, tiny, view
from nsds.solvers.contact import alart_curnier, block_lu
from nsds.solvers.contact.signature import EQUATION, diagonal_block, judge, keep_better, multiply
from nsds.status import CONVERGED, MAX_ITER, RAY, SINGULAR, UNSUITED

_OPEN, _STICK, _FORWARD, _BACKWARD = range(4)  # pieces of the law of a plane contact
_PIVOTS = 50  # for each contact, after which the path is given up,
_PRODUCTS = 1e9  # or so many products of blocks, but not before two pivots for each contact
_FEW = 50  # pivots, and one for every fourth contact, that a path from a guess may take before it restarts


@kernel
def room(d, n, n_upper):
    """Floats of scratch: factors, the matrices of the pieces, and r and u as linear functions of t."""
    return 5 + 21 * n + block_lu.float_room(d, n, n_upper)


def work_size(d, row, column):
    """Scratch of the factors, and the pieces."""
    floats, integers = block_lu.work_size(room, d, row, column)
    return floats, integers + row.size - 1


@kernel
def pieces(disk, mu, state, A, B):
    """Matrices of ``A u + B r = 0``, which hold within the pieces."""
    for c in range(disk.size):
        for i in range(4 * c, 4 * c + 4):
            A[i] = B[i] = 0.0
        if state[c] == _OPEN:
            B[4 * c] = B[4 * c + 3] = 1.0
        elif state[c] == _STICK:
            A[4 * c] = A[4 * c + 3] = 1.0
        else:
            A[4 * c], B[4 * c + 3] = 1.0, 1.0
            B[4 * c + 2] = -mu[2 * c] if state[c] == _FORWARD else mu[2 * c]


@tiny
def _solve_pieces(problem, A, b, n_upper, symbols, factors, r, u):
    """r and u of ``u = W r + b`` within the pieces."""
    for i in range(0, b.size, 2):
        for a in range(2):
            r[i + a] = -A[2 * i + 2 * a] * b[i] - A[2 * i + 2 * a + 1] * b[i + 1]
    block_lu.substitute(2, problem.row, n_upper, symbols, factors, r)
    multiply(problem.row, problem.column, problem.W, b, r, u)


@tiny
def _slack(which, state, mu, c, r, u):
    """Inequality 0 or 1 of the piece of contact c, which asks this to be at least 0: linear in r and u."""
    if state == _OPEN:
        return u[2 * c]
    if state == _STICK:
        return mu * r[2 * c] + (r[2 * c + 1] if which == 0 else -r[2 * c + 1])
    if which == 0:
        return r[2 * c]
    return -u[2 * c + 1] if state == _FORWARD else u[2 * c + 1]


@tiny
def _next_piece(which, state, tangential):
    """(piece beyond inequality ``which``, inequality of that piece which is 0 there); tangential: u_T there."""
    if state == _OPEN:
        return (_FORWARD if tangential < 0.0 else _BACKWARD), 0
    if state == _STICK:
        return (_BACKWARD if which == 0 else _FORWARD), 1
    if which == 0:
        return _OPEN, 0
    return _STICK, (1 if state == _FORWARD else 0)


@inlined
def _first_violated(disk, mu, state, t, sign, entered, r_0, u_0, r_1, u_1):
    """(contact, inequality, t) of the first inequality that is violated when t moves from its value into the direction of sign."""
    best, contact, inequality = math.inf, -1, 0
    for c in range(disk.size):
        if disk[c] == EQUATION:
            continue
        for which in range(1 if state[c] == _OPEN or mu[2 * c] == 0.0 else 2):
            slope = sign * _slack(which, state[c], mu[2 * c], c, r_1, u_1)
            if slope < 0.0 and 2 * c + which != entered:
                advance = max(0.0, (_slack(which, state[c], mu[2 * c], c, r_0, u_0) + t * sign * slope) / -slope)
                if advance < best:
                    best, contact, inequality = advance, c, which
    return contact, inequality, t + sign * best


@inlined
def _start_warm(problem, r, u, state, e):
    """Pieces of the guess, and e such that the guess, moved onto them, is the solution for t = 1."""
    disk, row, column, W, q = problem.disk, problem.row, problem.column, problem.W, problem.q
    multiply(row, column, W, q, r, u)
    rho = stack(3)
    for c in range(disk.size):
        alart_curnier.split_rho(disk[c], 2, W, 4 * diagonal_block(row, column, c), rho)
        rho_n, rho_t, i = rho[0], rho[1], 2 * c
        if disk[c] == EQUATION:
            state[c], e[i], e[i + 1] = _STICK, 0.0, 0.0
            continue
        x, y = r[i] - rho_n * u[i], r[i + 1] - rho_t * u[i + 1]
        bound = problem.mu[2 * c] * max(x, 0.0)
        r[i], e[i] = max(x, 0.0), max(-x, 0.0) / rho_n
        r[i + 1] = min(max(y, -bound), bound)
        e[i + 1] = (r[i + 1] - y) / rho_t
        if x <= 0.0:
            state[c] = _OPEN
        elif abs(y) < bound:
            state[c] = _STICK
        else:
            state[c] = _FORWARD if y > 0.0 else _BACKWARD
    multiply(row, column, W, q, r, u)
    for i in range(q.size):
        e[i] -= u[i]


@inlined
def _start_cold(disk, q, state, e):
    """All contacts open; returns t from which on this is a solution. e differs from contact to contact, so that few events coincide."""
    t = 0.0
    for c in range(disk.size):
        state[c] = _STICK if disk[c] == EQUATION else _OPEN
        e[2 * c], e[2 * c + 1] = 1.0 + 0.5 * ((c * 0.6180339887498949) % 1.0), 0.0
        if disk[c] != EQUATION:
            t = max(t, -q[2 * c] / e[2 * c])
    return t


@kernel
def lemke(problem, options, r, u, info, work, iwork):
    """Contact problem in the plane: the path from the guess, where there is one, else from all contacts open.

    Finite but for degenerate problems; finds a solution where W is copositive plus and there is one, and often else. RAY: the path leads
    to infinity. SINGULAR: the pieces met do not determine r. UNSUITED: not in the plane, or more than 8192 contacts.
    """
    q = problem.q
    n = problem.disk.size
    n_upper = -1
    if q.size == 2 * n and iwork.size >= n:
        n_upper = block_lu.pattern(block_lu.UNLIMITED, problem.row, problem.column, view(iwork, n, iwork.size - n))
    if n_upper < 0 or room(2, n, n_upper) > work.size:
        judge(UNSUITED, 0, problem, options, r, u, info)
        return UNSUITED
    guessed, best = False, view(work, 5 + 19 * n, 2 * n)
    for i in range(q.size):
        guessed |= r[i] != 0.0
    judge(MAX_ITER, 0, problem, options, r, u, info)
    least, n_iter, status = keep_better(info[1], math.inf, r, best), 0.0, MAX_ITER
    for warm in (True, False):
        if status == CONVERGED or (warm and not guessed):
            continue
        status = _follow(warm, n_upper, problem, options, r, u, info, work, iwork)
        n_iter += info[0]
        least = keep_better(info[1], least, r, best)
    if status != CONVERGED:
        for i in range(q.size):
            r[i] = best[i] if least < math.inf else 0.0
        status = judge(status, int(n_iter), problem, options, r, u, info)
    info[0] = n_iter
    return status


@kernel
def _follow(warm, n_upper, problem, options, r, u, info, work, iwork):
    disk, mu, q = problem.disk, problem.mu, problem.q
    n, state, symbols = disk.size, iwork, view(iwork, disk.size, iwork.size - disk.size)
    A, B, eta = view(work, 5, 4 * n), view(work, 5 + 4 * n, 4 * n), view(work, 5 + 8 * n, n)
    e, r_0, u_0 = view(work, 5 + 9 * n, 2 * n), view(work, 5 + 11 * n, 2 * n), view(work, 5 + 13 * n, 2 * n)
    r_1, u_1, factors = view(work, 5 + 15 * n, 2 * n), view(work, 5 + 17 * n, 2 * n), view(work, 5 + 21 * n, work.size - 5 - 21 * n)
    for c in range(n):
        eta[c] = 0.0
    t, sign, entered = 1.0, -1.0, -1
    if warm:
        _start_warm(problem, r, u, state, e)
    else:
        t = _start_cold(disk, q, state, e)
    status, n_iter = MAX_ITER, 0
    products = block_lu.n_products(n, n_upper, symbols)
    limit = int(options.max_iter) if options.max_iter > 0 else min(_PIVOTS * n, max(2 * n, int(_PRODUCTS / (1.0 + products)))) + 100
    limit = min(limit, _FEW + n // 4) if warm else limit
    while n_iter < limit:
        n_iter += 1
        pieces(disk, mu, state, A, B)
        if not block_lu.factorise(2, problem, eta, A, B, n_upper, symbols, factors):
            status = SINGULAR
            break
        _solve_pieces(problem, A, q, n_upper, symbols, factors, r_0, u_0)
        _solve_pieces(problem, A, e, n_upper, symbols, factors, r_1, u_1)
        if entered >= 0:
            c = entered // 2
            sign = math.copysign(1.0, _slack(entered % 2, state[c], mu[2 * c], c, r_1, u_1))
        contact, which, t_new = _first_violated(disk, mu, state, t, sign, entered, r_0, u_0, r_1, u_1)
        if sign < 0.0 and t_new <= 0.0:
            status = CONVERGED
            break
        if contact < 0:
            status = RAY
            break
        t = t_new
        state[contact], which = _next_piece(which, state[contact], u_0[2 * contact + 1] + t * u_1[2 * contact + 1])
        entered = 2 * contact + which
    for i in range(q.size):
        r[i] = r_0[i] if status == CONVERGED else r_0[i] + t * r_1[i]
    return judge(status, n_iter, problem, options, r, u, info)
