"""Long steps of a linear motion ``x' = R x + c`` after its fast terms have decayed: collocation at Radau's points, damped at infinity.

A series is limited by the fastest term of the motion, whether that term is excited or not, as through a diode that leaks into an inductor.
Here x is the polynomial of degree `STAGES` that solves the equations at Radau's points (Hairer and Wanner, Solving Ordinary Differential
Equations II, IV.5), of order 13 at its end; it is accepted if its last terms are rounding, so that it is as exact as series are. A
growing motion is not smooth, and is left to series. p is a row of the table of the motion.

The stages solve ``(A^-1 - h R) stages = rest`` with A of Butcher. By its Schur form they fall into blocks of one or two, which are
inverted: 7 n rows at once cost 13 times as much.
"""

import itertools
from fractions import Fraction

import numpy as np

from nsds._jit import kernel, tiny
from nsds.schemes.linear_algebra import invert_dense

STAGES = 7
LARGEST = 48  # states: beyond, the matrices of the stages are as large as what they save
NOISE = 1e-12  # relative to the largest possible terms of a coefficient: smaller values are their rounding
_PATIENCE = 64  # short steps in the same modes before a long one is tried; it must replace as many, or it costs more than they do
_AGAIN = 8192  # short steps after a failed attempt
_LONGER = 1.0 + 2.0**-10  # than the remaining time, so that the next step of that length, up to rounding, has the same matrix
_TRIES, _SHORTER = 12, 2.0**-4
_REFINEMENTS = 2  # of an attempt whose last terms are too large, as by rounding
_SMALL = 2.0**-50  # last terms, of the largest x so far or in the step
_OFTEN, _GROWTH = 8, 4.0  # every so many steps the length grows by that factor,
_EASY = 0.1  # if last terms are below that part of their limit
_GRAIN = 2.0**-50  # of x: rounding at the points


def _points():
    """Radau's points in (0, 1], the last of which is 1."""
    of_legendre = np.zeros(STAGES + 1)
    of_legendre[-2:] = -1.0, 1.0
    points = (np.sort(np.polynomial.legendre.legroots(of_legendre).real) + 1.0) / 2.0
    points[-1] = 1.0
    return points


def _tables():
    """(slopes at the points, coefficients of theta, theta^2, ...) of a polynomial that is 0 at 0, by its values at the points; exact."""
    points = [Fraction(0), *(Fraction(point) for point in _points())]
    coefficients, slopes = np.zeros((STAGES, STAGES)), np.zeros((STAGES, STAGES))
    for j in range(1, STAGES + 1):
        polynomial = [Fraction(1)]  # of Lagrange, lowest first
        for k in range(STAGES + 1):
            if k != j:
                scale = 1 / (points[j] - points[k])
                shifted = [Fraction(0), *polynomial]
                polynomial = [scale * (a - points[k] * b) for a, b in zip(shifted, [*polynomial, Fraction(0)], strict=True)]
        coefficients[:, j - 1] = [float(c) for c in polynomial[1:]]
        for i in range(1, STAGES + 1):
            slopes[i - 1, j - 1] = float(sum(k * c * points[i] ** (k - 1) for k, c in enumerate(polynomial) if k > 0))
    return slopes, coefficients


def _schur(matrix):
    """(Q, T, where its blocks begin): ``matrix = Q T Q'`` with blocks of one or two rows on the diagonal of T, which is 0 below them."""
    values, vectors = np.linalg.eig(matrix)
    order = [k for k in np.argsort(values.real) if values[k].imag >= 0.0]
    columns, begin = [], [0]
    for k in order:
        parts = [vectors[:, k].real, vectors[:, k].imag][: 1 + (values[k].imag > 0.0)]
        columns, begin = [*columns, *parts], [*begin, begin[-1] + len(parts)]
    Q, _ = np.linalg.qr(np.stack(columns, axis=1))
    T = Q.T @ matrix @ Q
    for first, end in itertools.pairwise(begin):
        T[end:, first:end] = 0.0
    return Q, T, np.array(begin)


_POINTS = np.append(0.0, _points())
_SLOPES, _COEFFICIENTS = _tables()
_SIZES = abs(_COEFFICIENTS).sum(axis=1)
_Q, _T, _BEGIN = _schur(_SLOPES)
_Q_T = np.ascontiguousarray(_Q.T)
BLOCKS = int((np.diff(_BEGIN) ** 2).sum())  # squares of the states in the inverses of all blocks


@kernel
def forget_long_steps(p, memory):
    """Other modes: another matrix, and fast terms to wait for."""
    memory.iwork[p.n_short], memory.work[p.inverted] = 0, 0.0


@kernel
def take_long_step(h_most, degree, p, memory):
    """Coefficients of the motion over a long step into p.poly, their largest possible values into p.c_size, and the most that they move a
    state into p.reach. Returns its length, or 0.

    The length may be more than h_most.
    """
    work, iwork = memory.work, memory.iwork
    # 1. worth trying: as many short steps in a row as a long one costs
    iwork[p.n_short] += 1
    least = _PATIENCE * work[p.step]
    if p.n_stages == 0 or iwork[p.n_short] <= _PATIENCE or not 0.0 < least < h_most:
        return 0.0
    # 2. length: that of the last matrix, or the remaining time
    h = work[p.long] if least < work[p.long] < h_most else h_most * _LONGER if work[p.long] < h_most else work[p.long]
    # 3. attempts, shorter by a factor
    for _ in range(_TRIES):
        if h < least or not _invert(h, p, memory):
            break
        _solve_stages(h, p, memory)
        error = _coefficients(degree, p, work)
        # rounding of the inverse, where time scales are far apart
        for _ in range(_REFINEMENTS):
            if error <= 1.0:
                break
            _refine(h, p, memory)
            error = _coefficients(degree, p, work)
        if error <= 1.0:
            grows = error < _EASY and h < h_most and iwork[p.n_short] % _OFTEN == 0
            work[p.long] = _GROWTH * h if grows else h
            return h
        h *= _SHORTER
    # 4. failure: not tried again for a long time
    iwork[p.n_short], work[p.long] = _PATIENCE - _AGAIN, 0.0
    return 0.0


@kernel
def _invert(h, p, memory):
    """Inverses of the blocks of ``T - h R`` into p.stages, unless they are known; Q T Q' is A^-1, A that of Butcher. False if one is
    singular.
    """
    work, n = memory.work, p.n
    # the same length, the same matrices
    if work[p.inverted] == h:
        return True
    work[p.inverted], block = 0.0, p.stages
    for b in range(_BEGIN.size - 1):
        first, size = _BEGIN[b], _BEGIN[b + 1] - _BEGIN[b]
        m = size * n
        for k in range(m * m):
            work[block + k] = 0.0
        for i in range(size):
            for a in range(n):
                row = block + (i * n + a) * m
                for k in range(memory.iwork[p.rate_row + a], memory.iwork[p.rate_end + a]):
                    work[row + i * n + memory.iwork[p.rate_column + k]] = -h * work[p.rate + k]
                for j in range(size):
                    work[row + j * n + a] += _T[first + i, first + j]
        if not invert_dense(m, block, p.stage_size, memory, p.stage_pivots):
            return False
        block += m * m
    work[p.inverted] = h
    return True


@kernel
def _add_solution(p, memory):
    """Add the solution of ``(A^-1 - h R) stages = stage_rest`` to the stages. Overwrites stage_rest."""
    work, n = memory.work, p.n
    # 1. by the columns of Q
    _mix(_Q_T, p, work)
    # 2. from the last block back; each is subtracted from those before
    block = p.stages + BLOCKS * n * n
    for b in range(_BEGIN.size - 2, -1, -1):
        first, size = _BEGIN[b], _BEGIN[b + 1] - _BEGIN[b]
        m, at = size * n, p.stage_rest + first * n
        block -= m * m
        for row in range(m):
            value = 0.0
            for k in range(m):
                value += work[block + row * m + k] * work[at + k]
            work[p.stage_size + row] = value
        for row in range(m):
            work[at + row] = work[p.stage_size + row]
        for i in range(first):
            for j in range(size):
                for a in range(n):
                    work[p.stage_rest + i * n + a] -= _T[i, first + j] * work[at + j * n + a]
    # 3. by its rows, of states that move
    _mix(_Q, p, work)
    for row in range(p.n_stages):
        if not _stands_still(row % n, p, memory):
            work[p.stage_value + row] += work[p.stage_rest + row]


@kernel
def _mix(Q, p, work):
    """``stage_rest <- Q stage_rest``, over the stages of each state."""
    n = p.n
    for a in range(n):
        for i in range(STAGES):
            work[p.stage_size + i] = work[p.stage_rest + i * n + a]
        for i in range(STAGES):
            value = 0.0
            for j in range(STAGES):
                value += Q[i, j] * work[p.stage_size + j]
            work[p.stage_rest + i * n + a] = value


@kernel
def _solve_stages(h, p, memory):
    """Stages of the motion over h, as differences from x, so that nothing cancels."""
    work, n = memory.work, p.n
    # 1. slope at the start, times h
    for a in range(n):
        rate = work[p.constant + a]
        for k in range(memory.iwork[p.rate_row + a], memory.iwork[p.rate_end + a]):
            rate += work[p.rate + k] * work[p.x + memory.iwork[p.rate_column + k]]
        work[p.spare + a] = h * rate
    # 2. stages
    for i in range(STAGES):
        for a in range(n):
            work[p.stage_rest + i * n + a], work[p.stage_value + i * n + a] = work[p.spare + a], 0.0
    _add_solution(p, memory)


@tiny
def _stands_still(a, p, memory):
    """Whether a state has no rate in the present modes: rounding of the inverse must not move it."""
    return memory.iwork[p.rate_row + a] == memory.iwork[p.rate_end + a] and memory.work[p.constant + a] == 0.0


@kernel
def _refine(h, p, memory):
    """A step of iterative refinement: ``stages += inverse (h x' - (A^-1 - h R) stages)``, with h x' of `_solve_stages`."""
    work, n = memory.work, p.n
    # 1. residual
    for i in range(STAGES):
        for a in range(n):
            rest = work[p.spare + a]
            for k in range(memory.iwork[p.rate_row + a], memory.iwork[p.rate_end + a]):
                rest += h * work[p.rate + k] * work[p.stage_value + i * n + memory.iwork[p.rate_column + k]]
            for j in range(STAGES):
                rest -= _SLOPES[i, j] * work[p.stage_value + j * n + a]
            work[p.stage_rest + i * n + a] = rest
    # 2. correction
    _add_solution(p, memory)


@kernel
def _coefficients(degree, p, work):
    """Coefficients of the motion through the stages. Returns the size of the last ones, relative to the limit; NaN if not finite."""
    n, error, zero = p.n, 0.0, 0.0
    # of each state; sizes by rounding at the points
    for a in range(n):
        size = work[p.x_size + a]
        for i in range(STAGES):
            size = max(size, abs(work[p.x + a] + work[p.stage_value + i * n + a]))
        work[p.reach + a] = 0.0
        work[p.poly + a], work[p.c_size + a] = work[p.x + a], work[p.x_size + a] if a >= p.n_own else abs(work[p.x + a])
        for j in range(degree):
            c = 0.0
            for i in range(STAGES if j < STAGES else 0):
                c += _COEFFICIENTS[j, i] * work[p.stage_value + i * n + a]
            work[p.poly + (j + 1) * n + a] = c
            work[p.reach + a] += abs(c)
            work[p.c_size + (j + 1) * n + a] = _GRAIN / NOISE * _SIZES[j] * size if j < STAGES else 0.0
        # last two coefficients in the Chebyshev basis: those of powers of theta are far larger than what they add
        last, before = work[p.poly + STAGES * n + a], work[p.poly + (STAGES - 1) * n + a]
        last, before = abs(last) * 2.0 ** (1 - 2 * STAGES), abs(before + 0.5 * STAGES * last) * 2.0 ** (3 - 2 * STAGES)  # of Chebyshev
        error = max(error, max(last, before) / (_SMALL * size))
        zero += 0.0 * size
    return error + zero


@kernel
def move_to(theta, p, work):
    """x at theta of a long step, by the values at its points: of the coefficients' rounding much would be left."""
    for i in range(STAGES + 1):
        weight = 1.0
        for k in range(STAGES + 1):
            weight *= (theta - _POINTS[k]) / (_POINTS[i] - _POINTS[k]) if k != i else 1.0
        for a in range(p.n if i > 0 else 0):
            work[p.x + a] += weight * work[p.stage_value + (i - 1) * p.n + a]
