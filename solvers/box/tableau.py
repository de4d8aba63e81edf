"""The dictionary that pivoting methods share: basic variables as affine functions of the nonbasic ones, exchanged in place.

    basic_r = sum_c T[r, c] * nonbasic_c + constant

Variables have numbers: w_i is i, z_i is n + i, the covering variable t of Lemke's method is 2 n. All have bounds [low, high] and a
present value, x[r] of the basic and y[c] of the nonbasic ones. A w_i has the range that goes with the place of z_i: [0, inf) when z_i is
at its lower bound, (-inf, 0] at its upper one. T is n by n + 1, row by row; column n belongs to t.
The problem is scaled to ``R M C`` with largest entries about 1, see `equilibrate`, and q to size 1: signs of w and z stay.
"""

import math
from typing import NamedTuple

from numpy.typing import NDArray

from nsds._jit import inlined, kernel, tiny, view
from nsds.solvers.box.signature import clip, multiply, proves_infeasible
from nsds.status import CONVERGED, INFEASIBLE, SINGULAR

EPS = 1e-11  # smaller entries of the scaled tableau are rounding
_SCALINGS = 12
_NARROWEST = 1e-200  # q, relative to bounds; a smaller one is not taken as the unit
_LEAST, _MOST = 0.03, 30.0  # what counts as about 1


def work_size(n, row, column):
    """The parts of `Dictionary`."""
    return room(n), 4 * n + 2


@kernel
def room(n):
    """Floats of the scratch."""
    return n * (n + 1) + 8 * n + 3


class Dictionary(NamedTuple):
    """The parts of the scratch."""

    T: NDArray  # (n, n + 1), by rows
    x: NDArray  # (n,): values of the basic variables
    y: NDArray  # (n + 1,): of the nonbasic ones
    R: NDArray  # (n,): scales of rows
    C: NDArray  # (n,): and of unknowns
    low: NDArray  # (2 n + 1,): bounds by the numbers of variables
    high: NDArray
    basic: NDArray  # (n,): numbers of the basic variables
    nonbasic: NDArray  # (n + 1,)
    place: NDArray  # (2 n + 1,): row or column of each variable


@tiny
def dictionary(n, work, iwork):
    """The parts of the scratch for n unknowns."""
    a = n * (n + 1)
    return Dictionary(
        view(work, 0, a),
        view(work, a, n),
        view(work, a + n, n + 1),
        view(work, a + 2 * n + 1, n),
        view(work, a + 3 * n + 1, n),
        view(work, a + 4 * n + 1, 2 * n + 1),
        view(work, a + 6 * n + 2, 2 * n + 1),
        view(iwork, 0, n),
        view(iwork, n, n + 1),
        view(iwork, 2 * n + 1, 2 * n + 1),
    )


@kernel
def fill(problem, work, iwork):
    """Start with all w basic and all z at a finite bound (the lower one, where there are two; 0 for free ones). Returns the size of q."""
    q, lower, upper = problem.q, problem.lower, problem.upper
    n = q.size
    D = dictionary(n, work, iwork)
    equilibrate(n, problem, D.R, D.C, D.x, D.y)
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(D.R[i] * q[i]))
        for bound in (lower[i], upper[i]):
            if abs(bound) < math.inf:  # which must not overflow in units of q
                largest = max(largest, _NARROWEST * abs(bound / D.C[i]))
    size = largest if largest > 0.0 else 1.0
    for i in range(n):
        D.basic[i], D.nonbasic[i], D.place[i], D.place[n + i] = i, n + i, i, i
        D.low[n + i], D.high[n + i] = lower[i] / (D.C[i] * size), upper[i] / (D.C[i] * size)
        at_lower, at_upper = lower[i] > -math.inf, lower[i] == -math.inf and upper[i] < math.inf
        D.low[i] = 0.0 if at_lower and lower[i] < upper[i] else -math.inf
        D.high[i] = 0.0 if at_upper else math.inf
        D.y[i] = D.low[n + i] if at_lower else D.high[n + i] if at_upper else 0.0
    D.nonbasic[n], D.place[2 * n], D.low[2 * n], D.high[2 * n], D.y[n] = 2 * n, n, 0.0, math.inf, 0.0
    for i in range(n):
        for j in range(n + 1):
            D.T[i * (n + 1) + j] = 0.0
        D.x[i] = q[i] * D.R[i] / size
        for k in range(problem.row[i], problem.row[i + 1]):
            j = problem.column[k]
            D.T[i * (n + 1) + j] = problem.M[k] * D.R[i] * D.C[j]
            D.x[i] += D.T[i * (n + 1) + j] * D.y[j]
    return size


@inlined
def equilibrate(n, problem, R, C, rows, columns):
    """R and C such that the largest entries of rows and columns of ``R M C`` are about 1: a few times over the roots of these entries.

    Reference: Ruiz, A scaling algorithm to equilibrate both rows and columns norms, RAL-TR-2001-034. Work: rows, columns (n,).
    """
    column = problem.column
    for i in range(n):
        R[i] = C[i] = 1.0
    for _ in range(_SCALINGS):
        for i in range(n):
            rows[i] = columns[i] = 0.0
        for i in range(n):
            for k in range(problem.row[i], problem.row[i + 1]):
                scaled = R[i] * abs(problem.M[k]) * C[column[k]]
                rows[i] = max(rows[i], scaled)
                columns[column[k]] = max(columns[column[k]], scaled)
        even = True
        for i in range(n):
            even &= (rows[i] == 0.0 or _LEAST < rows[i] < _MOST) and (columns[i] == 0.0 or _LEAST < columns[i] < _MOST)
        if even:
            break
        for i in range(n):
            R[i] /= math.sqrt(rows[i]) if rows[i] > 0.0 else 1.0
            C[i] /= math.sqrt(columns[i]) if columns[i] > 0.0 else 1.0


@kernel
def exchange(n, r, c, work, iwork):
    """The nonbasic variable of column c becomes basic in row r, and the other way round; no value changes."""
    D = dictionary(n, work, iwork)
    width = n + 1
    pivot = 1.0 / D.T[r * width + c]
    for j in range(width):
        D.T[r * width + j] *= -pivot
    D.T[r * width + c] = pivot
    for i in range(n):
        factor = D.T[i * width + c]
        if i != r and factor != 0.0:
            D.T[i * width + c] = 0.0
            for j in range(width):
                D.T[i * width + j] += factor * D.T[r * width + j]
    D.basic[r], D.nonbasic[c] = D.nonbasic[c], D.basic[r]
    D.place[D.basic[r]], D.place[D.nonbasic[c]] = r, c
    D.x[r], D.y[c] = D.y[c], D.x[r]


@kernel
def move(n, c, change, work, iwork):
    """The nonbasic variable of column c changes its value, and the basic ones follow."""
    D = dictionary(n, work, iwork)
    for r in range(n):
        D.x[r] += D.T[r * (n + 1) + c] * change
    D.y[c] += change


@tiny
def is_basic(n, variable, work, iwork):
    """True when a variable is basic."""
    D = dictionary(n, work, iwork)
    r = D.place[variable]
    return r < n and D.basic[r] == variable


@tiny
def is_free(n, variable, work, iwork):
    """True for the z of an equation."""
    D = dictionary(n, work, iwork)
    return D.low[variable] == -math.inf and D.high[variable] == math.inf


@kernel
def pivot_equations(problem, work, iwork, y, g):
    """Bring the free z into the basis and the w of equations out of it, at 0: what every start of a pivoting method needs.

    First free z against equations, the largest entry first. What is left of a singular block goes by pairs: a free z into the row of
    some w_i, and z_i into the row of the equation, so that the pair i starts with z_i basic. Left-over equations without entries must
    hold (INFEASIBLE where it is proved that they do not) and are given up; a left-over free z that moves none but free ones stays 0.
    SINGULAR: neither. y and g are scratch.
    """
    n = problem.q.size
    D = dictionary(n, work, iwork)
    pivot_largest(n, True, True, work, iwork)
    while _pivot_pair(n, work, iwork):
        pass
    status = CONVERGED
    for i in range(n):
        if D.basic[i] < n and is_free(n, n + D.basic[i], work, iwork):
            rest = 0.0
            for j in range(n + 1):
                rest = max(rest, abs(D.T[i * (n + 1) + j]) if n <= D.nonbasic[j] < 2 * n else 0.0)
            status = SINGULAR if rest > EPS else status
            if rest <= EPS and abs(D.x[i]) > EPS:
                if row_is_a_proof(i, problem, work, iwork, y, g):
                    return INFEASIBLE
                status = SINGULAR
    for j in range(n + 1):
        if D.nonbasic[j] >= n and is_free(n, D.nonbasic[j], work, iwork):
            rest = 0.0
            for r in range(n):
                rest = max(rest, 0.0 if D.basic[r] >= n and is_free(n, D.basic[r], work, iwork) else abs(D.T[r * (n + 1) + j]))
            status = SINGULAR if rest > EPS else status
    return status


@kernel
def row_is_a_proof(r, problem, work, iwork, y, g):
    """True when a row of the dictionary, as a combination of the rows of M z + q, proves that no z within its bounds gives w its signs."""
    n = problem.q.size
    D = dictionary(n, work, iwork)
    for i in range(n):
        y[i] = 0.0
    if D.basic[r] < n:
        y[D.basic[r]] = D.R[D.basic[r]]
    for c in range(n + 1):
        if D.nonbasic[c] < n and abs(D.T[r * (n + 1) + c]) > EPS:
            y[D.nonbasic[c]] = -D.T[r * (n + 1) + c] * D.R[D.nonbasic[c]]
    proved = proves_infeasible(problem, y, g)
    for i in range(n):
        y[i] = -y[i]
    return proved or proves_infeasible(problem, y, g)


@kernel
def pivot_largest(n, from_free, into_free, work, iwork):
    """Bring z into rows of w, which become 0, the largest entry first, until none is left.

    z: free ones, or bounded ones whose w is not basic; rows: of equations (``into_free``: their z is free), or of inequalities.
    """
    D = dictionary(n, work, iwork)
    while True:
        largest, r, c = EPS, n, n
        for j in range(n + 1):
            z = D.nonbasic[j]
            if n <= z < 2 * n and is_free(n, z, work, iwork) == from_free and (from_free or not is_basic(n, z - n, work, iwork)):
                for i in range(n):
                    entry = abs(D.T[i * (n + 1) + j])
                    if entry > largest and D.basic[i] < n and is_free(n, n + D.basic[i], work, iwork) == into_free:
                        largest, r, c = entry, i, j
        if r == n:
            return
        exchange(n, r, c, work, iwork)
        move(n, c, -D.y[c], work, iwork)


@inlined
def _pivot_pair(n, work, iwork):
    """Exchange a free z with some w_i and z_i with the w of an equation, where the product of both pivots is largest. False: none."""
    D = dictionary(n, work, iwork)
    best, r, c, equation = EPS, n, n, n
    for j in range(n + 1):
        if D.nonbasic[j] < n or not is_free(n, D.nonbasic[j], work, iwork):
            continue
        for i in range(n):
            if D.basic[i] >= n or is_free(n, D.basic[i], work, iwork) or abs(D.T[i * (n + 1) + j]) <= EPS:
                continue  # not the w of an inequality, or no pivot
            column = D.place[n + D.basic[i]]
            for e in range(n):
                if D.basic[e] < n and is_free(n, n + D.basic[e], work, iwork):
                    product = abs(D.T[i * (n + 1) + j]) * abs(D.T[e * (n + 1) + column])
                    if product > best:
                        best, r, c, equation = product, i, j, e
    if r == n:
        return False
    column = D.place[n + D.basic[r]]
    exchange(n, r, c, work, iwork)
    move(n, c, -D.y[c], work, iwork)
    exchange(n, equation, column, work, iwork)
    move(n, column, -D.y[column], work, iwork)
    return True


@kernel
def read(problem, size, work, iwork, z, w):
    """z of the tableau, refined once (the columns of nonbasic w are the inverse of the basis) and clipped to its bounds."""
    n = problem.q.size
    D = dictionary(n, work, iwork)
    for i in range(n):
        p = D.place[n + i]
        z[i] = (D.x[p] if is_basic(n, n + i, work, iwork) else D.y[p]) * D.C[i] * size
    multiply(problem.row, problem.column, problem.M, problem.q, z, w)
    for c in range(n + 1):
        if D.nonbasic[c] < n:
            error = w[D.nonbasic[c]] * D.R[D.nonbasic[c]]
            for r in range(n):
                if n <= D.basic[r] < 2 * n:
                    z[D.basic[r] - n] -= D.C[D.basic[r] - n] * D.T[r * (n + 1) + c] * error
    clip(problem.lower, problem.upper, z)
