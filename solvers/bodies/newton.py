"""Semismooth Newton on the laws of contact, eliminated to the velocities of the bodies: its matrix has the graph of the bodies.

Of each block, linearised and regularised by eta as in `nsds.solvers.contact.newton`,

    A (du + eta dr) + B dr = -F,    du = E dw + s dr,    M dw = sum of H^T dr

gives ``dr = -f - S E dw`` with ``T = A (eta + s) + B``, ``f = T^-1 F`` and ``S = T^-1 A``, and

    (M + sum of H^T S E) dw = -sum of H^T f

with one block of 6 × 6 for each pair of bodies that touch, however many contacts they have. A tower or an arch is a chain, whose factors
cost as much as its matrix; a Delassus matrix couples all contacts of neighbouring pairs with each other.
References: see `nsds.solvers.contact.newton`; the elimination is that of augmented Lagrangians, Li, Sun, Toh, SIAM Journal on
Optimization 28 (2018) 433–458.
"""

import math
from typing import NamedTuple

from numba import float64, int64, types
from numpy.typing import NDArray

from nsds._jit import caller, kernel, load, on_demand, put, specialised, spread, stack, tiny, view
from nsds.maths.dense import invert, invert_6
from nsds.solvers.box.signature import place_of
from nsds.solvers.contact import alart_curnier, block_lu
from nsds.solvers.contact.alart_curnier import ALART_CURNIER
from nsds.solvers.contact.newton import DECREASE, HALVINGS, MEMORY, MOST, RELAX, STIFFEN, largest
from nsds.solvers.contact.signature import EQUATION, cone_of, has_stalled, keep_better, norm, problem_of
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, SINGULAR, STALLED, UNSUITED

_LEAST = 1e-6  # eta relative to the diagonal of a block: less would lose dr, a difference of terms with 1 / eta, to rounding
_PATIENCE = 3.0  # steps in which the residual must halve to go on, once it is enough
_LOST = 1e-4 / (16 * 2.0**-52)  # velocities by impulses, of those without, whose rounding may hide that nothing is a solution
_KEPT = 3  # integers beside the bodies of an analysis
_FEWEST = 25.0  # steps for which the method is begun
_PRODUCT, _BLOCK_3, _BLOCK_5 = 2.5, 8.0, 16.0  # work of a product of two blocks of 6 × 6, and of the elimination of one of 3 or 5


class Problem(NamedTuple):
    """``u = E w + s r + q`` of n blocks, ``M w = H^T r`` of m bodies; q are velocities without impulses."""

    d: int
    disk: NDArray  # (n,)
    mu: NDArray  # (2 n,)
    body: NDArray  # (2 n,): a and b, -1 the world
    H: NDArray  # (n, d, 12): of impulses, on v_a, omega_a, v_b, omega_b
    E: NDArray  # the same of velocities
    diagonal: NDArray  # (n, d): s
    q: NDArray  # (n d,)
    stride: int  # floats of an inverse: 36, or 10 for 1/m and 3 × 3
    inverse: NDArray  # (stride m,): M^-1; zeros: cannot be moved


class Options(NamedTuple):
    """Options of `newton`."""

    tol: float  # of ``||F|| / ||q||``, velocities by which contacts miss their laws
    enough: float  # the same of all, where steps get no closer
    of_equations: float  # velocity by which an equation may miss its own, m/s
    max_iter: float
    budget: float  # work in all, in solutions of one contact by a sweep


class Parts(NamedTuple):
    """The parts of the scratch."""

    recent: NDArray  # (MEMORY,): merits
    rho: NDArray  # (n, 3)
    D: NDArray  # (n d,): diagonal of the own block of W
    F: NDArray  # (n d,)
    A: NDArray  # (n, d, d); S of the elimination afterwards
    B: NDArray  # (n, d, d); T
    step: NDArray  # (n d,): f of the elimination, then dr
    best: NDArray  # (n d,)
    M: NDArray  # (m, 6, 6)
    p: NDArray  # (6 m,): impulses on bodies; dw
    w: NDArray  # (6 m,): velocities by these
    K: NDArray  # blocks of the matrix, and behind them its factors
    movable: NDArray  # (m,): whether impulses change the velocity of a body
    kept: NDArray  # (_KEPT + 2 n,): n, most and blocks of the last analysis, and its bodies
    bits: NDArray  # of all pairs of bodies
    row: NDArray  # (m + 1,): compressed rows of the graph
    column: NDArray
    symbols: NDArray  # of `block_lu`


_floats, _integers = float64[::1], int64[::1]
_PROBLEM = types.NamedTuple([int64, _integers, _floats, _integers, *(_floats,) * 4, int64, _floats], Problem)
# The arguments of `newton` and `guess`, for those who call them by their addresses.
SIGNATURE = int64(_PROBLEM, types.NamedUniTuple(float64, 5, Options), *(_floats,) * 4, _integers)
call_newton = caller(SIGNATURE)


@tiny
def _most_blocks(n, m):
    """Blocks of a matrix with n pairs of m bodies, at most."""
    return min(2 * n, m * (m - 1)) + m


@tiny
def _sizes(d, n, m):
    """(floats, integers) of scratch before what depends on the graph, of n blocks and m bodies."""
    floats = MEMORY + n * (3 + 4 * d + 2 * d * d) + 48 * m + 36 * _most_blocks(n, m)
    return floats, _KEPT + 2 * n + m * block_lu.words(m) + 2 * m + 1 + _most_blocks(n, m)


def work_size(d, n, m, n_upper):
    """(floats, integers) of scratch for graphs whose factors have up to n_upper blocks above the diagonal."""
    floats, integers = _sizes(d, n, m)
    return floats + block_lu.float_room(6, m, n_upper), integers + block_lu.integer_room(m, n_upper)


@tiny
def _parts(p, work, iwork):
    """The parts of the scratch; the factors are behind the floats."""
    d, n, m = p.d, p.disk.size, p.inverse.size // p.stride
    F = MEMORY + (3 + d) * n
    A = F + n * d
    step = A + 2 * n * d * d
    M = step + 2 * n * d
    end, bits = M + 48 * m, m + _KEPT + 2 * n
    row = bits + m * block_lu.words(m)
    column = row + m + 1
    return Parts(
        view(work, 0, MEMORY),
        view(work, MEMORY, 3 * n),
        view(work, MEMORY + 3 * n, n * d),
        view(work, F, n * d),
        view(work, A, n * d * d),
        view(work, A + n * d * d, n * d * d),
        view(work, step, n * d),
        view(work, step + n * d, n * d),
        view(work, M, 36 * m),
        view(work, M + 36 * m, 6 * m),
        view(work, M + 42 * m, 6 * m),
        view(work, end, work.size - end),
        view(iwork, 0, m),
        view(iwork, m, _KEPT + 2 * n),
        view(iwork, bits, row - bits),
        view(iwork, row, m + 1),
        view(iwork, column, _most_blocks(n, m)),
        view(iwork, column + _most_blocks(n, m), iwork.size - column - _most_blocks(n, m)),
    )


# ------------------------------------------------------------------------------------------------------------------------- the graph


@kernel
def _graph(p, movable, bits, row, column):
    """Compressed rows of the movable bodies that share a block, and of all themselves. Out: row, column. Work: bits."""
    m = row.size - 1
    words = block_lu.words(m)
    for i in range(m * words):
        bits[i] = 0
    # 1. bits of each body and of both sides of a block
    for i in range(m):
        bits[i * words + i // 64] |= int64(1) << (i % 64)
    for c in range(p.disk.size):
        a, b = p.body[2 * c], p.body[2 * c + 1]
        if a >= 0 and b >= 0 and movable[a] != 0 and movable[b] != 0:
            bits[a * words + b // 64] |= int64(1) << (b % 64)
            bits[b * words + a // 64] |= int64(1) << (a % 64)
    # 2. columns ascend
    total = row[0] = 0
    for i in range(m):
        for k in range(words):
            rest = bits[i * words + k]
            while rest != 0:
                bit = rest & -rest
                rest ^= bit
                column[total] = 64 * k + block_lu.count_bits(bit - 1)
                total += 1
        row[i + 1] = total


# ------------------------------------------------------------------------------------------------------------------------- small blocks


@tiny
def _apply_inverse(stride, inverse, x, y):
    """``y = M^-1 x`` of one body."""
    for k in range(6):
        y[k] = 0.0
        if stride == 36:
            for l in range(6):
                y[k] += inverse[6 * k + l] * x[l]
        elif k < 3:
            y[k] = inverse[0] * x[k]
        else:
            for l in range(3):
                y[k] += inverse[1 + 3 * (k - 3) + l] * x[3 + l]


_invert_3 = kernel(specialised(invert, "3", _N=3))


@kernel
def _matrices(p, l):
    """M of all bodies, 1 of those that cannot be moved. Out: M. False: singular."""
    regular, own, of_turns = True, stack(36), stack(9)
    for i in range(p.inverse.size // p.stride):
        M = view(l.M, 36 * i, 36)
        for k in range(36):
            M[k] = 1.0 if k % 7 == 0 else 0.0
        if l.movable[i] == 0:
            continue
        for k in range(p.stride):
            own[k] = p.inverse[p.stride * i + k]
        if p.stride == 36:
            regular = invert_6(own, M) and regular
            continue
        regular = own[0] > 0.0 and _invert_3(view(own, 1, 9), of_turns) and regular
        for k in range(9 if regular else 0):
            M[21 + 6 * (k // 3) + k % 3] = of_turns[k]
            M[7 * (k // 3)] = 1.0 / own[0]
    return regular


@kernel
def _own_blocks(p, l):
    """rho and D of all blocks. Out: rho, D."""
    d, W, G = p.d, stack(25), stack(12)
    for c in range(p.disk.size):
        for e in range(d):
            for side in range(2):
                i = p.body[2 * c + side]
                for k in range(6):
                    G[6 * side + k] = 0.0
                if i >= 0:
                    row = view(p.H, 12 * (d * c + e) + 6 * side, 6)
                    _apply_inverse(p.stride, view(p.inverse, p.stride * i, p.stride), row, view(G, 6 * side, 6))
            for a in range(d):
                s = p.diagonal[d * c + a] if a == e else 0.0
                for k in range(12):
                    s += p.E[12 * (d * c + a) + k] * G[k]
                W[d * a + e] = s
        alart_curnier.split_rho(p.disk[c], d, W, int64(0), view(l.rho, 3 * c, 3))
        for a in range(d):
            own = abs(W[a * (d + 1)])
            l.D[d * c + a] = own if 0.0 < own < math.inf else 1.0


# ------------------------------------------------------------------------------------------------------------------------- the method


@kernel
def _velocities(p, r, l, u):
    """``u = E w + s r + q`` with ``M w = H^T r``. Out: p, w, u."""
    d, m = p.d, p.inverse.size // p.stride
    for i in range(6 * m):
        l.p[i] = 0.0
    for c in range(p.disk.size):
        for side in range(2):
            i = p.body[2 * c + side]
            for a in range(d * c, d * c + d if i >= 0 else d * c):
                put(l.p, i, 6, load(l.p, i, 6) + load(p.H, 2 * a + side, 6) * r[a])
    for i in range(m):
        _apply_inverse(p.stride, view(p.inverse, p.stride * i, p.stride), view(l.p, 6 * i, 6), view(l.w, 6 * i, 6))
    for c in range(p.disk.size):
        _add_velocity(c, p, l.w, u)
        for a in range(d * c, d * c + d):
            u[a] += p.diagonal[a] * r[a] + p.q[a]


@tiny
def _add_velocity(c, p, w, u):
    """``E w`` of block c. Out: u of it."""
    for a in range(p.d * c, p.d * c + p.d):
        s = 0.0
        for side in range(2):
            i = p.body[2 * c + side]
            for k in range(6 if i >= 0 else 0):
                s += p.E[12 * a + 6 * side + k] * w[6 * i + k]
        u[a] = s


@kernel
def _evaluate(p, r, l, u):
    """``||F||^2``. Out: u, F, A, B."""
    d, merit = p.d, 0.0
    _velocities(p, r, l, u)
    for c in range(p.disk.size):
        at, size = d * c, d * d
        A, B, F = view(l.A, size * c, size), view(l.B, size * c, size), view(l.F, at, d)
        cone, rho = cone_of(c, d, p.disk, p.mu), view(l.rho, 3 * c, 3)
        alart_curnier.evaluate(ALART_CURNIER, cone, rho, view(r, at, d), view(u, at, d), F, A, B)
        for a in range(d):
            merit += F[a] ** 2 + 0.0 * u[at + a]
    return merit


@kernel
def _errors(p, l):
    """(``||F||`` of contacts, largest ``|F|`` of a row of an equation), where `_evaluate` was called last."""
    squares = most = 0.0
    for c in range(p.disk.size):
        for a in range(p.d * c, p.d * (c + 1)):
            if p.disk[c] == EQUATION:
                most = max(most, abs(l.F[a]))
            else:
                squares += l.F[a] ** 2
    return math.sqrt(squares), most


@kernel
def _largest_term(p, r, l):
    """The largest velocity that an impulse gives to its own component."""
    most = 0.0
    for i in range(r.size):
        most = max(most, l.D[i] * abs(r[i]))
    return most


_D, _invert_block = 0, invert_6  # components of a block, and what inverts them: bound by `specialised`


def _eliminate(sigma, p, l):
    """S and f of each block, the matrix and its right side. Out: A, step, K, p. False: a block is singular."""
    # 1. the bodies by themselves
    for i in range(36 * l.row[l.row.size - 1]):
        l.K[i] = 0.0
    for i in range(l.row.size - 1):
        at = 36 * place_of(l.row, l.column, i, i)
        for k in range(36):
            l.K[at + k] = l.M[36 * i + k]
        for k in range(6 * i, 6 * i + 6):
            l.p[k] = 0.0
    # 2. blocks
    regular = True
    for c in range(p.disk.size):
        regular = regular and _eliminate_block(c, sigma, p, l)
    return regular


def _eliminate_block(c, sigma, p, l):
    """Block c of `_eliminate`."""
    A, B, F = view(l.A, _D * _D * c, _D * _D), view(l.B, _D * _D * c, _D * _D), view(l.F, _D * c, _D)
    f, T, SE, is_closed = view(l.step, _D * c, _D), stack(25), stack(60), False
    # 1. T^-1, f = T^-1 F and S = T^-1 A
    for a in range(_D):
        for b in range(_D):
            is_closed = is_closed or A[_D * a + b] != 0.0
            T[_D * a + b] = A[_D * a + b] * (sigma * l.D[_D * c + b] + p.diagonal[_D * c + b]) + B[_D * a + b]
    if not _invert_block(T, B):
        return False
    for a in range(_D):
        s, x = 0.0, spread(0.0, _D)
        for b in range(_D):
            s += B[_D * a + b] * F[b]
            x = x + B[_D * a + b] * load(A, b, _D)
        f[a] = s
        put(T, a, _D, x)
    for a in range(_D):
        put(A, a, _D, load(T, a, _D))
    # 2. S E
    E = view(p.E, 12 * _D * c, 12 * _D)
    for a in range(_D if is_closed else 0):
        for half in range(2):
            x = spread(0.0, 6)
            for b in range(_D):
                x = x + T[_D * a + b] * load(E, 2 * b + half, 6)
            put(SE, 2 * a + half, 6, x)
    # 3. H^T f, and H^T S E of all pairs of sides
    H = view(p.H, 12 * _D * c, 12 * _D)
    for side in range(2):
        i = p.body[2 * c + side]
        if i < 0 or l.movable[i] == 0:
            continue
        x = load(l.p, i, 6)
        for a in range(_D):
            x = x - f[a] * load(H, 2 * a + side, 6)
        put(l.p, i, 6, x)
        for other in range(2 if is_closed else 0):
            j = p.body[2 * c + other]
            if j >= 0 and l.movable[j] != 0:
                K = view(l.K, 36 * place_of(l.row, l.column, i, j), 36)
                for k in range(6):
                    x = load(K, k, 6)
                    for a in range(_D):
                        x = x + H[12 * a + 6 * side + k] * load(SE, 2 * a + other, 6)
                    put(K, k, 6, x)
    return True


def _elimination(d):
    """`_eliminate` for blocks of d components."""
    inverse = kernel(specialised(invert, str(d), _N=d))
    block = kernel(specialised(_eliminate_block, str(d), _D=d, _invert_block=inverse))
    return kernel(specialised(_eliminate, str(d), _eliminate_block=block))


_eliminate_3, _eliminate_5 = _elimination(3), _elimination(5)


@kernel
def _advance(sigma, bound, n_upper, p, r, l, u):
    """One step from where `_evaluate` was called last, halved until ``||F||^2`` is below bound; (||F||^2, length), length 0: singular."""
    d, m, n_blocks = p.d, l.row.size - 1, l.row[l.row.size - 1]
    # 1. dw
    regular = _eliminate_3(sigma, p, l) if d == 3 else _eliminate_5(sigma, p, l)
    if not regular:
        return bound, 0.0
    K, factors = view(l.K, 0, 36 * n_blocks), view(l.K, 36 * n_blocks, block_lu.float_room(6, m, n_upper))
    matrix = problem_of((l.movable, l.p, l.row, l.column, K, l.p))
    if not block_lu.factorise_bodies(matrix, n_upper, l.symbols, factors):
        return bound, 0.0
    block_lu.substitute(6, l.row, n_upper, l.symbols, factors, l.p)
    # 2. dr = -f - S E dw
    for c in range(p.disk.size):
        _add_velocity(c, p, l.p, u)
        for a in range(d):
            s = -l.step[d * c + a]
            for b in range(d):
                s -= l.A[d * d * c + d * a + b] * u[d * c + b]
            l.step[d * c + a] = s
    # 3. its length
    t = 1.0
    for i in range(r.size):
        r[i] += l.step[i]
    merit = _evaluate(p, r, l, u)
    for _ in range(HALVINGS):
        if merit <= (1.0 - 2.0 * DECREASE * t) * bound:
            break
        t *= 0.5
        for i in range(r.size):
            r[i] -= t * l.step[i]
        merit = _evaluate(p, r, l, u)
    return merit, t


@tiny
def _start(p, r, l, u, info):
    """||F||^2 of the guess. Out: rho, D, u, F, A, B, info."""
    size = norm(p.q, 0, p.q.size)
    _own_blocks(p, l)
    merit = _evaluate(p, r, l, u)
    info[0], info[1], info[2], info[3] = 0.0, math.sqrt(merit) / (size if size > 0.0 else 1.0), size, 0.0
    return merit


@kernel
def guess(p, options, r, u, info, work, iwork):
    """Whether the guess solves the problem as `newton` would have it, without any matrix: CONVERGED, else MAX_ITER. Out: u, info."""
    l = _parts(p, work, iwork)
    _start(p, r, l, u, info)
    of_contacts, of_equations = _errors(p, l)
    is_met = of_contacts <= options.tol * info[2] and of_equations <= options.of_equations
    return CONVERGED if is_met and _largest_term(p, r, l) <= _LOST * info[2] else MAX_ITER


@kernel
def newton(p, options, r, u, info, work, iwork):
    """Contact problem of rigid bodies as Alart–Curnier's equations, by Newton's method on the graph of the bodies.

    p: `Problem`; options: `Options`. In/out: r, the iterate of least residual where none is enough. Out: u; info: iterations,
    ``||F|| / ||q||``. SINGULAR: no direction although regularised; STALLED, with r = 0: the rounding of impulses hides that
    nothing is a solution; UNSUITED: some steps would cost more than the budget, or there is no room for factors.
    """
    l, size = _parts(p, work, iwork), norm(p.q, 0, p.q.size)
    most = (options.budget / _FEWEST - _work_of_blocks(p)) / _PRODUCT
    n_upper = _analyse(most, p, l)
    limit = min(options.max_iter, options.budget / _work_of_step(n_upper, p, l)) if n_upper >= 0 else 0.0
    if limit < _FEWEST:
        return UNSUITED
    # 1. the guess
    merit = _start(p, r, l, u, info)
    size, sigma, n_iter, least, halved = size if size > 0.0 else 1.0, _LEAST, 0, math.inf, stack(2)
    halved[0], halved[1] = math.inf, 0.0
    for i in range(MEMORY):
        l.recent[i] = merit
    # 2. steps, with less regularisation after full ones and more after shortened ones
    while True:
        info[0], info[1], status = n_iter, math.sqrt(merit) / size, MAX_ITER
        least = keep_better(info[1], least, r, l.best)
        of_contacts, of_equations = _errors(p, l)
        is_met, is_last = of_contacts <= options.tol * size, has_stalled(n_iter, info[1], _PATIENCE, halved)
        if not math.isfinite(merit):
            status = NON_FINITE
        elif of_equations <= options.of_equations and (is_met or (is_last and least <= options.enough)):
            status = CONVERGED
        if status != MAX_ITER or n_iter >= int(limit):
            break
        merit, t = _advance(sigma, largest(l.recent), n_upper, p, r, l, u)
        if t == 0.0 and sigma == MOST:
            status = SINGULAR
            break
        sigma = max(sigma / RELAX, _LEAST) if t == 1.0 else min(sigma * STIFFEN, MOST)
        n_iter += 1
        l.recent[n_iter % MEMORY] = merit
    # 3. the best iterate
    if status == CONVERGED and not _largest_term(p, r, l) <= _LOST * size:
        status, info[1] = STALLED, 1.0
        for i in range(r.size):
            r[i] = 0.0
    elif info[1] > least and not (status == CONVERGED and is_met):
        for i in range(r.size):
            r[i] = l.best[i]
        info[1] = math.sqrt(_evaluate(p, r, l, u)) / size
    return status


@kernel
def _analyse(most, p, l):
    """Blocks above the diagonal of the factors; -1 without room for them, or where they take more than so many products of blocks.

    The order, and what is found out, are those of the last problem where its graph was the same. Out: M and constant blocks; in/out:
    movable, kept, row, column, symbols.
    """
    m, at_most = l.row.size - 1, int64(min(most, block_lu.UNLIMITED))
    if m > block_lu.LARGEST or not most > 0.0:
        return -1
    is_same = _is_graph_kept(p, l)
    if is_same and (l.kept[2] >= 0 or at_most <= l.kept[1]):
        n_upper = l.kept[2]
    else:
        _graph(p, l.movable, l.bits, l.row, l.column)
        n_upper = block_lu.pattern(at_most, l.row, view(l.column, 0, l.row[m]), l.symbols)
        l.kept[0], l.kept[1], l.kept[2] = p.disk.size, at_most, n_upper
    if n_upper < 0 or 36 * l.row[m] + block_lu.float_room(6, m, n_upper) > l.K.size or not _matrices(p, l):
        return -1
    return n_upper


@kernel
def _is_graph_kept(p, l):
    """Whether the graph is that of the last problem. Out: movable, and the bodies of kept."""
    is_same = l.kept[0] == p.disk.size
    for i in range(l.movable.size):
        moves = 0
        for k in range(p.stride * i, p.stride * (i + 1)):
            moves = 1 if p.inverse[k] != 0.0 else moves
        is_same = is_same and l.movable[i] == moves
        l.movable[i] = moves
    for k in range(p.body.size):
        is_same = is_same and l.kept[_KEPT + k] == p.body[k]
        l.kept[_KEPT + k] = p.body[k]
    return is_same


@tiny
def _work_of_blocks(p):
    """Work of a step with all contacts, in solutions of one contact by a sweep."""
    return (_BLOCK_3 if p.d == 3 else _BLOCK_5) * p.disk.size


@tiny
def _work_of_step(n_upper, p, l):
    """Work of one step, in solutions of one contact by a sweep, some 50 ns."""
    return _PRODUCT * block_lu.n_products(l.row.size - 1, n_upper, l.symbols) + _work_of_blocks(p)


address_of_newton = on_demand(SIGNATURE, newton)
address_of_guess = on_demand(SIGNATURE, guess)
