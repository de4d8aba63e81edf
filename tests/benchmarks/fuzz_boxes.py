"""Unkind box problems, variational inequalities and quadratic programs for `fuzz`, and a judge in rational numbers."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from nsds import solvers
from nsds.solvers.problems import families
from nsds.status import CONVERGED, INFEASIBLE, UNBOUNDED
from tests.random_problems import ROUNDING, SEEN, exactly, explained_by_rounding

TOL = 1e-10
_LARGEST = 11  # unknowns of most problems


class Kind(NamedTuple):
    """A class of problems: generators (name: function of a random generator), methods, how to solve and to judge.

    ``solve(problem, method, rng)`` returns a solution; ``judge(problem, solution)`` a complaint, or "".
    """

    generators: dict
    methods: list
    solve: object
    judge: object


_PERTURBATIONS = 100
_LEAST = Fraction(5e-324)  # number: products below it are nothing


class Box(NamedTuple):
    """``w = M z + q``, ``lower <= z <= upper``, ``-w in N(z)``; dense."""

    M: np.ndarray
    q: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class Constrained(NamedTuple):
    """``w = M z + q`` over ``G z >= g``, ``A z = b``, ``lower <= z <= upper``."""

    M: np.ndarray
    q: np.ndarray
    G: np.ndarray
    g: np.ndarray
    A: np.ndarray
    b: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


# Matrices and vectors.


def _size(rng):
    return int(rng.integers(1, _LARGEST + 1))


def family(rng):
    """Those of the package, of random kind."""
    n = _size(rng)
    p = solvers.generate(str(rng.choice(list(solvers.FAMILIES))), n, int(rng.integers(2**31)))
    return (p.M.toarray() if sp.issparse(p.M) else p.M), p.q


def integers(rng):
    """Small integers, singular more often than not: ties everywhere."""
    n, most = _size(rng), int(rng.integers(1, 4))
    M = rng.integers(-most, most + 1, size=(n, n)) * (rng.uniform(size=(n, n)) < rng.uniform(0.2, 1))
    return M.astype(float), rng.integers(-most, most + 1, size=n).astype(float)


def integer_semidefinite(rng):
    """``H H^T`` of small integers, plus a skew part sometimes; q in its range or not."""
    n = _size(rng)
    H = rng.integers(-2, 3, size=(n, int(rng.integers(1, n + 1)))).astype(float)
    A = np.triu(rng.integers(-1, 2, size=(n, n)), 1) * (rng.uniform() < 0.5)
    q = H @ rng.integers(-2, 3, size=H.shape[1]) if rng.uniform() < 0.5 else rng.integers(-2, 3, size=n)
    return H @ H.T + A - A.T, q.astype(float)


def copositive(rng):
    """Nonnegative plus positive semidefinite, zeros on the diagonal."""
    n = _size(rng)
    H, N = rng.normal(size=(n, int(rng.integers(1, n + 1)))), rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.5)
    M = N + (H @ H.T) * (rng.uniform() < 0.5)
    np.fill_diagonal(M, np.diag(M) * (rng.uniform(size=n) < 0.5) if rng.uniform() < 0.5 else np.diag(M))
    return M, rng.normal(size=n)


def skew(rng):
    """Linear programmes as complementarity problems."""
    n = _size(rng)
    A = np.triu(rng.integers(-2, 3, size=(n, n)) if rng.uniform() < 0.5 else rng.normal(size=(n, n)), 1)
    return A - A.T, rng.integers(-2, 3, size=n) + rng.normal(size=n) * (rng.uniform() < 0.5)


def nearly_singular(rng):
    """Rank deficient up to a perturbation of any size."""
    n = _size(rng)
    H = rng.normal(size=(n, max(1, n - int(rng.integers(1, 3)))))
    M = H @ H.T + 10.0 ** rng.uniform(-17, -4) * rng.normal(size=(n, n))
    return M, H @ rng.normal(size=H.shape[1]) + rng.normal(size=n) * (rng.uniform() < 0.5) * 10.0 ** rng.uniform(-16, 0)


def ill_conditioned(rng):
    """Hilbert matrices, and powers of two on the diagonal of an orthogonal congruence."""
    n = _size(rng)
    if rng.uniform() < 0.5:
        i = np.arange(n)
        return 1.0 / (1 + i[:, None] + i), rng.normal(size=n)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return Q @ np.diag(10.0 ** rng.uniform(-12, 2, size=n)) @ Q.T, rng.normal(size=n)


def negative(rng):
    """Minus a positive definite matrix, a permutation, a triangle, or nothing at all."""
    n, choice = _size(rng), rng.integers(4)
    M = (-np.eye(n) - rng.uniform(size=(n, n)), np.eye(n)[rng.permutation(n)], np.triu(rng.normal(size=(n, n))), np.zeros((n, n)))[choice]
    return M.astype(float), rng.normal(size=n)


def nearly_infeasible(rng):
    """Two rows that contradict each other, or just not."""
    M, q = integer_semidefinite(rng)
    n, margin = len(q), rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-14, 0)
    if n > 1:
        i, j = rng.choice(n, 2, replace=False)
        M[j] = -M[i]
        q[j] = -q[i] + margin
    return M, q


def blocks(rng):
    """Independent problems, some without solution, in units far apart."""
    one, other = integers(rng), family(rng)
    scale = 10.0 ** rng.uniform(-12, 12)
    n, m = len(one[1]), len(other[1])
    M = np.zeros((n + m, n + m))
    M[:n, :n], M[n:, n:] = one[0], other[0] * scale
    if rng.uniform() < 0.5:  # a weak link
        M[rng.integers(n), n + rng.integers(m)] = 10.0 ** rng.uniform(-14, 0)
    return M, np.r_[one[1], other[1] * 10.0 ** rng.uniform(-12, 12)]


MATRICES = {
    f.__name__: f
    for f in (
        family,
        integers,
        integer_semidefinite,
        copositive,
        skew,
        nearly_singular,
        ill_conditioned,
        negative,
        nearly_infeasible,
        blocks,
    )
}


def scaled(rng, M, q, lower, upper):
    """The problem in other units: as it is, row by row and column by column, or all of it by up to 10^300; or q nearly nothing."""
    n, choice = len(q), rng.integers(10)
    R = C = np.ones(n)
    if choice == 0:
        R, C = 10.0 ** rng.uniform(-6, 6, size=(2, n))
    elif choice == 1:
        R = C = 10.0 ** rng.uniform(-5, 5, size=n)
    elif choice == 2:
        R, C = np.full(n, 10.0 ** rng.uniform(-150, 150)), np.full(n, 10.0 ** rng.uniform(-150, 150))
    elif choice == 3:
        q = q * 10.0 ** rng.choice([-300.0, -310, -320, 300, -100, 100, -12])
    elif choice == 4:
        R, C = 10.0 ** rng.uniform(-40, 40, size=(2, n))
    M, q, lower, upper = R[:, None] * M * C, R * q, lower / C, upper / C
    largest = np.finfo(float).max / 4
    return Box(np.clip(M, -largest, largest), np.clip(q, -largest, largest), lower, upper)


def bounds(rng, kind, n):
    """(lower, upper): of the package's kinds, or integers with many infinite and equal ones."""
    if kind == "lcp":
        return np.zeros(n), np.full(n, np.inf)
    if rng.uniform() < 0.5:
        return families.bounds("mlcp" if kind == "mlcp" else str(rng.choice(["relay", "mixed"])), rng, n)
    lower = rng.integers(-2, 2, size=n).astype(float)
    upper = lower + rng.integers(0, 3, size=n)
    if kind == "mlcp":
        lower, upper = np.zeros(n), np.full(n, np.inf)
        lower[rng.uniform(size=n) < 0.6] = -np.inf
        return lower, upper
    lower[rng.uniform(size=n) < 0.3], upper[rng.uniform(size=n) < 0.3] = -np.inf, np.inf
    return lower, upper


def _box_generator(kind, draw):
    def generator(rng):
        M, q = draw(rng)
        lower, upper = bounds(rng, kind, len(q))
        return scaled(rng, M, q, lower, upper)

    return generator


def rectangular(rng):
    """More equations than free unknowns, or fewer: consistent ones and others. Returns a `Box` that is not square."""
    n_free, m, n_equations = (int(x) for x in rng.integers(0, 4, size=3))
    m = max(m, 1)
    M = rng.integers(-2, 3, size=(n_equations + m, n_free + m)).astype(float)
    z = np.r_[rng.integers(-2, 3, size=n_free), np.maximum(rng.integers(-2, 3, size=m), 0)]
    q = -(M @ z) if rng.uniform() < 0.7 else rng.integers(-2, 3, size=n_equations + m).astype(float)
    return Box(M, q, np.r_[np.full(n_free, -np.inf), np.zeros(m)], np.full(n_free + m, np.inf))


def _constrained_generator(kind, draw):
    def generator(rng):
        M, q = draw(rng)
        M, q = M[:6, :6], q[:6]
        n = len(q)
        if kind == "qp":
            M = M @ M.T if rng.uniform() < 0.5 else np.round(M) @ np.round(M).T
            M = M if np.linalg.eigvalsh(M)[0] >= -1e-12 * abs(M).max() else np.zeros((n, n))
        m, k = int(rng.integers(0, 6)), int(rng.integers(0, 3)) if kind == "qp" else 0
        whole = rng.uniform() < 0.6
        G, A = (rng.integers(-2, 3, size=(r, n)).astype(float) if whole else rng.normal(size=(r, n)) for r in (m, k))
        z = rng.integers(-1, 2, size=n)
        g = G @ z - rng.integers(0, 2, size=m) if rng.uniform() < 0.7 else rng.integers(-2, 3, size=m).astype(float)
        b = A @ z if rng.uniform() < 0.8 else rng.integers(-2, 3, size=k).astype(float)
        lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
        if kind == "qp" and rng.uniform() < 0.6:
            lower, upper = bounds(rng, "mixed", n)
        S = 10.0 ** rng.uniform(-6, 6) if rng.uniform() < 0.2 else 1.0
        return Constrained(S * M, S * q, G, g, A, b, lower, upper)

    return generator


# Solving.


def _guess(rng, n):
    choice = rng.integers(4)
    return None if choice < 2 else rng.normal(size=n) if choice == 2 else np.zeros(n)


def _options(rng):
    return {"on_failure": "continue", "max_iter": int(rng.integers(1, 3000)) if rng.uniform() < 0.3 else None}


def solve_box(p, method, rng):
    """By `solve_mlcp`, as a sparse matrix in one of three cases."""
    M = sp.csr_array(p.M) if rng.uniform() < 0.3 else p.M
    return solvers.solve_mlcp(M, p.q, p.lower, p.upper, method, z0=_guess(rng, M.shape[1]), **_options(rng))


def solve_avi(p, method, rng):
    """By `solve_avi`."""
    return solvers.solve_avi(p.M, p.q, p.G, p.g, method, z0=_guess(rng, len(p.q)), **_options(rng))


def solve_qp(p, method, rng):
    """By `solve_qp`."""
    return solvers.solve_qp(p.M, p.q, p.G, p.g, p.A, p.b, p.lower, p.upper, method, z0=_guess(rng, len(p.q)), **_options(rng))


# Judging, in rational numbers.


def _exact(M, q, z):
    """(w, terms): ``M z + q`` and the sums of magnitudes, as fractions."""
    z = [Fraction(x) for x in z]
    w, terms = [], []
    for row, q_i in zip(M, q, strict=True):
        products = [Fraction(a) * b for a, b in zip(row, z, strict=True) if a and b]
        w.append(sum(products, Fraction(q_i)))
        terms.append(sum(map(abs, products), abs(Fraction(q_i))))
    return w, terms


def _errors(w, z, lower, upper):
    """How far each w is from the sign that goes with z."""
    return [max(-w_i if x < u else 0, w_i if x > l else 0, 0) for w_i, x, l, u in zip(w, z, lower, upper, strict=True)]


def judge_box(p, s):
    """Finite; a solution where it is said to be one; no z with the right signs where that is said."""
    if not (np.isfinite(s.z).all() and np.isfinite(s.w).all()):
        return f"not finite: z {s.z}, w {s.w}"
    if np.isnan(s.residual):
        return "residual is NaN"
    if s.status == CONVERGED:
        return _judge_solution(p, s)
    if s.status == INFEASIBLE and has_clearly_a_point(p):
        return "false infeasible"
    return ""


def _judge_solution(p, s):
    if not ((s.z >= p.lower) & (s.z <= p.upper)).all():
        return "false converged: outside the bounds"
    w, terms = _exact(p.M, p.q, s.z)
    rounding = Fraction(len(p.q) + 2) * Fraction(2) ** -52
    largest = Fraction(np.finfo(float).max)
    for shown, true, size in zip(s.w, w, terms, strict=True):
        representable = max(min(true, largest), -largest)
        if abs(Fraction(shown) - representable) > rounding * size + Fraction(5e-324):
            return "w is not M z + q"
    lower, upper = _row_bounds(p)
    z = s.z if len(w) == len(s.z) else np.r_[np.zeros(len(w) - _n_bounded(p)), s.z[-_n_bounded(p) :]]
    errors = _errors(w, z, lower, upper)
    is_rounding = all(error <= rounding * size for error, size in zip(errors, terms, strict=True))
    is_slack = [error == 0 and abs(x) > SEEN * size for x, error, size in zip(w, errors, terms, strict=True)]
    explained = [0] * len(w) if is_rounding else explained_by_rounding(*map(exactly, (p.M, p.q, p.lower, p.upper, s.z)), terms, is_slack)
    by_terms = [((Fraction(TOL) + ROUNDING) if not is_rounding else 1) * size for size in terms]
    missed = [small if error > size else 0 for error, size, small in zip(errors, by_terms, explained, strict=True)]
    for error, size, most, small in zip(errors, terms, by_terms, missed, strict=True):
        if error > max(most, small) + len(w) * _LEAST:
            return f"false converged: error {float(error / size):.3g} of the terms"
    is_doubtful = p.M.shape[0] == p.M.shape[1] and _hides_its_data(p, s.z, w, z, lower, upper)
    if is_doubtful and not _is_determined(p, s.z, is_rounding) and not has_a_point(p, s.z, missed):
        return "false converged: a problem without a point, z hides q"
    return ""


def _n_bounded(p):
    return int((np.isfinite(p.lower) | np.isfinite(p.upper)).sum())


def _row_bounds(p):
    """Bounds by rows: of a matrix that is not square the first rows are equations."""
    n_rows, m = len(p.q), _n_bounded(p)
    if n_rows == len(p.lower):
        return p.lower, p.upper
    return np.r_[np.full(n_rows - m, -np.inf), p.lower[-m:]], np.r_[np.full(n_rows - m, np.inf), p.upper[-m:]]


def _hides_its_data(p, z, w, z_rows, lower, upper):
    """True where an error is not small beside what is given in its row."""
    at = [Fraction(x) if x in (l, u) else Fraction(0) for x, l, u in zip(z, p.lower, p.upper, strict=True)]
    for i, error in enumerate(_errors(w, z_rows, lower, upper)):
        data = abs(Fraction(p.q[i])) + sum(abs(Fraction(a) * x) for a, x in zip(p.M[i], at, strict=True) if a and x)
        if data and error > Fraction(1e-3) * data:
            return True
    return False


def _is_determined(p, z, is_rounding):
    """True where z is what the rows inside the bounds make of the data in rational numbers: it has not just grown.

    To a thousandth; or to any extent where these rows are regular and the errors are what changes in the last place of M make.
    """
    inside = np.flatnonzero((p.lower < z) & (z < p.upper))
    at = [Fraction(0) if i in inside else Fraction(x) for i, x in enumerate(z)]
    rows = [[Fraction(a) for a in p.M[i, inside]] for i in inside]
    for i, row in zip(inside, rows, strict=True):
        row.append(-sum((Fraction(a) * x for a, x in zip(p.M[i], at, strict=True)), Fraction(p.q[i])))
    for j in range(len(rows)):
        pivot = next((i for i in range(j, len(rows)) if rows[i][j]), None)
        if pivot is None:
            return False
        rows[j], rows[pivot] = rows[pivot], rows[j]
        for i, row in enumerate(rows):
            if i != j and row[j]:
                factor = row[j] / rows[j][j]
                rows[i] = [a - factor * b for a, b in zip(row, rows[j], strict=True)]
    exact = [row[-1] / row[j] for j, row in enumerate(rows)]
    return is_rounding or all(abs(x - Fraction(z[i])) <= abs(x) / 1000 for x, i in zip(exact, inside, strict=True))


def has_a_point(p, claimed=None, missed=0.0):
    """True when some z within the bounds gives w the signs that are asked for, and is not 10^6 times larger than the data asks for.

    A linear programme in common units; what its tolerance leaves open is decided in rational numbers. With a claimed z, errors up to the
    tolerance times the terms of natural size are allowed: there a relative change of M and q by the tolerance has z as its solution, and
    no answer in this precision is better. Natural are |z| up to 10^3 times the data, or times what q of some row alone would make of it (a
    weak link to data of that row). What counts as false are thus z that have grown until they hide q. A point may then be as large as the
    claimed z: definite matrices of condition 10^13 have such solutions. Rows that are not met by their terms may lack what is ``missed``.
    """
    R, C, q_size, z_size = _units(p)
    lower, upper = _row_bounds(p)
    M, q = R[:, None] * p.M * C, R * (p.q / q_size)  # in this order, for q that nearly vanish
    z = np.zeros(len(C)) if claimed is None else abs(claimed) / C / z_size
    most = max(1e6, 2 * z.max(initial=0.0))
    low, high = np.maximum(p.lower / C / z_size, -most), np.minimum(p.upper / C / z_size, most)
    at_least, at_most = np.isposinf(upper), np.isneginf(lower)
    rows, sides = np.vstack([-M[at_least], M[at_most]]), np.r_[q[at_least], -q[at_most]]
    if not len(rows):
        return True
    empty = ~p.M.any(axis=1)  # there q alone decides, however small
    if (low > high).any() or (at_least & empty & (p.q < 0)).any() or (at_most & empty & (p.q > 0)).any():
        return False
    if claimed is not None:
        asked = np.divide(abs(q)[:, None], abs(M), out=np.zeros(M.shape), where=M != 0.0).max(axis=0, initial=1.0)
        missed = R * (np.array(missed, float) / q_size)
        sides = sides + TOL * (abs(sides) + abs(rows) @ np.minimum(z, 1e3 * asked)) + np.r_[missed[at_least], missed[at_most]]
        return exactly_feasible(rows, sides, low, high)
    scale = np.maximum(abs(rows).max(axis=1, initial=0), abs(sides))
    scale[scale == 0] = 1.0
    result = linprog(
        np.zeros(len(low)), rows / scale[:, None], sides / scale, bounds=np.c_[low, high],
        options={"primal_feasibility_tolerance": 1e-10, "presolve": False},
    )  # fmt: skip
    return result.status != 2 and exactly_feasible(rows, sides, low, high)


def _units(p):
    """Powers of two for rows and columns, and the sizes of q and z: one of all rows and columns that are linked with each other."""
    A = abs(p.M)
    R, C = np.ones(A.shape[0]), np.ones(A.shape[1])
    for _ in range(20):
        B = np.ldexp(1.0, np.clip(np.frexp(A)[1] + np.frexp(R)[1][:, None] + np.frexp(C)[1] - 2, -1000, 1000)) * (A > 0)
        rows, columns = B.max(axis=1, initial=0), B.max(axis=0, initial=0)
        R = R / 2.0 ** np.round(np.log2(np.where(rows > 0, rows, 1)) / 2)
        C = C / 2.0 ** np.round(np.log2(np.where(columns > 0, columns, 1)) / 2)
    exponents = [(np.frexp(p.q)[1] + np.frexp(R)[1] - 1, (p.q != 0) & A.any(axis=1), 0)]  # as R q may vanish
    for side in (p.lower, p.upper):
        exponents.append((np.frexp(side)[1] - np.frexp(C)[1] + 1, np.isfinite(side) & (side != 0) & A.any(axis=0), 1))
    n_parts, part = connected_components(sp.block_array([[None, sp.csr_array(A)], [sp.csr_array(A.T), None]]), directed=False)
    of = part[: len(R)], part[len(R) :]  # rows, columns
    largest = np.full(n_parts, -np.inf)
    for exponent, counts, axis in exponents:  # rows and columns without entries have no unit
        np.maximum.at(largest, of[axis][counts], exponent[counts])
    size = np.where(np.isfinite(largest), 2.0 ** np.clip(np.where(np.isfinite(largest), largest, 0), -1074, 1023), 1.0)
    return R, C, size[of[0]], size[of[1]]


def exactly_feasible(rows, sides, low, high):
    """Whether ``rows z <= sides`` has a solution in a box: the first phase of the simplex method with fractions and Bland's rule."""
    A = [[Fraction(x) for x in row] for row in rows]
    low, high = [Fraction(x) for x in low], [Fraction(x) for x in high]
    n = len(low)
    b = [Fraction(side) - sum(a * l for a, l in zip(row, low, strict=True)) for row, side in zip(A, sides, strict=True)]
    for j in range(n):  # z = low + x, x >= 0, x <= high - low
        A.append([Fraction(int(j == k)) for k in range(n)])
        b.append(high[j] - low[j])
    # Dictionary: slack_i = b_i - sum A_ij x_j + t; the least t with all slacks >= 0 is 0 if there is a point.
    m = len(A)
    T = [[-a for a in row] + [Fraction(1)] for row in A]
    basic, nonbasic = [n + 1 + i for i in range(m)], [*range(n), n]  # x: 0..n-1, t: n, slacks behind
    if min(b) >= 0:
        return True

    def exchange(r, c):
        pivot = T[r][c]
        row = [-x / pivot for x in T[r]]
        row[c] = 1 / pivot
        value = -b[r] / pivot
        for i in range(m):
            if i != r and T[i][c]:
                factor = T[i][c]
                T[i] = [x + factor * y for x, y in zip(T[i], row, strict=True)]
                T[i][c] = factor * row[c]
                b[i] += factor * value
        T[r], b[r] = row, value
        basic[r], nonbasic[c] = nonbasic[c], basic[r]

    exchange(min(range(m), key=lambda i: b[i]), n)
    while True:
        if n not in basic:
            return True
        t = basic.index(n)
        if b[t] == 0:
            return True
        choices = [c for c in range(n + 1) if T[t][c] < 0]
        if not choices:
            return False
        c = min(choices, key=lambda c: nonbasic[c])
        ratios = [(b[i] / -T[i][c], basic[i] != n, basic[i], i) for i in range(m) if T[i][c] < 0]
        exchange(min(ratios)[3], c)


def has_clearly_a_point(p):
    """Whether some z gives w its signs, also where entries of M are other by a unit in the last place: what hangs on that is no claim."""
    if not has_a_point(p):
        return False
    rng, ways = np.random.default_rng(0), np.array([-np.inf, 0.0, np.inf])
    for _ in range(_PERTURBATIONS):
        way = ways[rng.integers(3, size=p.M.shape)]
        M = np.where((p.M != 0.0) & (way != 0.0), np.nextafter(p.M, way), p.M)
        if not has_a_point(p._replace(M=M)):
            return False
    return True


def _lifted(p):
    """The box problem of z and all multipliers."""
    n, m, k = len(p.q), len(p.g), len(p.b)
    M = np.zeros((n + m + k,) * 2)
    M[:n, :n], M[:n, n : n + m], M[:n, n + m :] = p.M, -p.G.T, -p.A.T
    M[n : n + m, :n], M[n + m :, :n] = p.G, p.A
    lower = np.r_[p.lower, np.zeros(m), np.full(k, -np.inf)]
    return Box(M, np.r_[p.q, -p.g, -p.b], lower, np.r_[p.upper, np.full(m + k, np.inf)])


def judge_constrained(p, s):
    """As `judge_box`, by the conditions with multipliers; programs without a point or without a lowest one, as they are said to be."""
    lifted, z = _lifted(p), np.r_[s.z, s.multipliers]
    if not (np.isfinite(z).all() and np.isfinite(s.w).all()):
        return f"not finite: z {s.z}, multipliers {s.multipliers}"
    if s.status == CONVERGED:
        w = np.array([float(x) for x in _exact(lifted.M, lifted.q, z)[0]])
        return _judge_solution(lifted, solvers.Solution(z, w, s.status, 0, s.residual, s.method))
    n = len(p.q)
    if s.status == INFEASIBLE and isinstance(s, solvers.ProgramSolution):
        return "false infeasible" if has_clearly_a_point(_constraints(p)) else ""
    if s.status == INFEASIBLE and has_clearly_a_point(lifted):
        return "false infeasible"
    if s.status == UNBOUNDED:
        if not has_a_point(_constraints(p), np.r_[s.z, np.zeros(len(p.g) + len(p.b))]):  # in which they hold as in a solution
            return "false unbounded: there is no point"
        # A direction with P d = 0, G d >= 0, A d = 0, d >= 0 below a bound, <= 0 above one, along which q falls by 1.
        edges = np.where(np.isfinite(p.lower), 0.0, -np.inf), np.where(np.isfinite(p.upper), 0.0, np.inf)
        M = np.vstack([p.M / (abs(p.M).max() or 1.0), p.A, p.q / abs(p.q).max(), p.G])
        q = np.r_[np.zeros(n + len(p.b)), 1.0, np.zeros(len(p.g))]
        if not linear_point(M, q, len(q) - len(p.g), *edges):
            return "false unbounded"
    return ""


def _constraints(p):
    """The feasible set of a program as a box problem whose objective does not matter: that of least distance has a solution."""
    return _lifted(p._replace(M=np.eye(len(p.q)), q=np.zeros(len(p.q))))


def linear_point(M, q, n_equations, lower, upper):
    """True when a linear programme finds z with ``M z + q = 0`` in the first rows and >= 0 in the others."""
    a, b = M[:n_equations], M[n_equations:]
    sides = {"A_ub": -b, "b_ub": q[n_equations:]} if len(b) else {}
    return linprog(np.zeros(M.shape[1]), **sides, A_eq=a, b_eq=-q[:n_equations], bounds=np.c_[lower, upper]).status == 0


def _kinds():
    boxes = {
        kind: Kind({name: _box_generator(kind, draw) for name, draw in MATRICES.items()}, list(solvers.methods(kind)), solve_box, judge_box)
        for kind in ("lcp", "mlcp", "relay")
    }
    boxes["rect"] = Kind({"rectangular": rectangular}, list(solvers.methods("mlcp")), solve_box, judge_box)
    draws = {name: MATRICES[name] for name in ("family", "integers", "integer_semidefinite", "skew", "copositive", "negative")}
    for kind, solve in (("avi", solve_avi), ("qp", solve_qp)):
        generators = {name: _constrained_generator(kind, draw) for name, draw in draws.items()}
        methods = [name for name in solvers.methods(kind) if name != "qp"]  # which is not for inequalities
        boxes[kind] = Kind(generators, methods, solve, judge_constrained)
    return boxes


KINDS = _kinds()
