"""Random one-step problems of few unknowns: degenerate, singular, badly scaled, with decimals that cancel but for rounding.

``python -m tests.random_problems FIRST LAST`` solves those of some seeds with the defaults. Every claim is judged without the package: what
is CONVERGED in exact arithmetic, INFEASIBLE and UNBOUNDED by solutions that were there before the problem, or by trying all bases exactly.
"""

import collections
import itertools
import sys
import time
import warnings
from fractions import Fraction

import numpy as np

from nsds import solvers, status

MET = Fraction(1, 10**8)  # of a row's terms
SEEN = Fraction(1, 10**10)  # of a row's terms: a w that is more is not 0
HIDDEN = Fraction(1, 1000)  # of a row's data: more of it may not be hidden by z that have grown
LARGE = 10**10
ROUNDING = Fraction(1, 2**46)
ROUNDING_OF_SUMS = Fraction(1, 2**19)
NOISE, LEAST = 2.0**-48, 1e-140  # of a row's terms: more than floating point loses in few of them; what has products that are not lost
MOST_BASES = 20000
WRONG = 1e-6  # of ``||q||``, of a contact; of the units of its residual, of a nonlinear problem
SOLVABLE, CONTRADICTORY, UNBOUNDED, ANY = "solvable", "contradictory", "unbounded", "any"


# ------------------------------------------------------------------------------------------------------------- exact judgement of rows


def exactly(x):
    """Entries of an array as fractions, infinite ones as they are."""
    return [exactly(y) if np.ndim(y) else Fraction(y) if np.isfinite(y) else float(y) for y in np.asarray(x, float).tolist()]


def row_errors(M, q, lower, upper, z):
    """(error, terms, data, is slack) of rows of a box problem, exactly: the part of w_i whose sign does not go with the place of z_i."""
    result = []
    for i, w in enumerate(q):
        terms = data = abs(w)
        for j, m in enumerate(M[i]):
            term = m * z[j]
            w += term
            terms += abs(term)
            data += abs(term) if z[j] in (lower[j], upper[j]) else 0
        error = max(-w if z[i] < upper[i] else 0, w if z[i] > lower[i] else 0, 0)
        result.append((error, terms, data, error == 0 and abs(w) > SEEN * terms))
    return result


def solve_exactly(A, b):
    """x with ``A x = b`` in fractions, or None where A is singular."""
    n = len(b)
    rows = [[*A[i], b[i]] for i in range(n)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n):
            if i != k and rows[i][k]:
                part = rows[i][k] / rows[k][k]
                rows[i] = [x - part * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [rows[k][n] / rows[k][k] for k in range(n)]


def basic_solutions(M, q, lower, upper):
    """Exact solutions of a box problem at vertices of its solution set, of which there is one wherever there is a solution.

    Each z_j is at a finite bound (free ones: 0) or basic; basic ones follow from as many rows w = 0. None where these are too many.
    """
    n = len(q)
    places = [[x for x in {lower[j], upper[j]} if abs(x) < np.inf] or [Fraction(0)] for j in range(n)]
    count = 0
    for size in range(n + 1):
        for basis in itertools.combinations(range(n), size):
            others = [j for j in range(n) if j not in basis]
            for at in itertools.product(*(places[j] for j in others)):
                for rows in itertools.combinations(range(n), size):
                    count += 1
                    if count > MOST_BASES:
                        yield None
                        return
                    load = [-q[i] - sum(M[i][j] * x for j, x in zip(others, at, strict=True)) for i in rows]
                    x = solve_exactly([[M[i][j] for j in basis] for i in rows], load)
                    if x is None:
                        continue
                    z = dict(zip((*basis, *others), (*x, *at), strict=True))
                    z = [z[j] for j in range(n)]
                    inside = all(lower[j] <= z[j] <= upper[j] for j in range(n))
                    if inside and not any(error for error, *_ in row_errors(M, q, lower, upper, z)):
                        yield z


def judge_rows(claim, truth, M, q, lower, upper, z, known=0.0):
    """What is false in a claim on a box problem; "" where nothing is.

    known: sizes of the z from which the data were computed, whose rounding they have. Floating point decides what its rounding cannot
    change; the rest is exact.
    """
    if claim == status.INFEASIBLE:
        if truth == SOLVABLE:
            return "infeasible, which it is not by construction"
        M, q, lower, upper = exactly(M), exactly(q), exactly(lower), exactly(upper)
        if truth == ANY and any(z and _is_natural(z, M, q) for z in basic_solutions(M, q, lower, upper)):
            return "infeasible, though a basis solves it exactly"
    if claim != status.CONVERGED:
        return ""
    if truth != ANY and truth != SOLVABLE:
        return f"converged, though {truth}"
    if not np.isfinite(z).all():
        return "converged at NaN or infinity"
    if (z < lower).any() or (z > upper).any():
        return "converged outside the bounds"
    if _is_met(truth, M, q, lower, upper, z):
        return ""
    rounding = exactly(float(ROUNDING) * (abs(M) @ np.broadcast_to(known, q.size)))
    M, q, lower, upper, z = exactly(M), exactly(q), exactly(lower), exactly(upper), exactly(z)
    errors = row_errors(M, q, lower, upper, z)
    if any(error > MET * terms for error, terms, *_ in errors):
        _, terms, _, is_slack = zip(*errors, strict=True)
        rounding = map(max, rounding, explained_by_rounding(M, q, lower, upper, z, terms, is_slack))
        if any(error > max(MET * terms, small) for (error, terms, *_), small in zip(errors, rounding, strict=True)):
            return "converged with a row that is not met"
    if truth == ANY and any(error > HIDDEN * data > 0 for error, _, data, _ in errors):
        size = max(map(abs, z))
        for other in basic_solutions(M, q, lower, upper):
            if other is None or 100 * max(map(abs, other), default=0) >= size:
                return ""
        return "converged with data that grown z hide"
    return ""


def _is_met(truth, M, q, lower, upper, z):
    """Whether floating point, whose rounding is bounded, says that all rows are met, and that no data are hidden."""
    w, terms = M @ z + q, abs(M) @ abs(z) + abs(q)
    data = abs(q) + abs(M) @ np.where((z == lower) | (z == upper), abs(z), 0.0)
    error = np.maximum(np.where(z < upper, -w, 0.0), np.where(z > lower, w, 0.0)) + NOISE * terms
    is_clear = ((terms == 0.0) | (terms > LEAST)).all() and ((z == 0.0) | (abs(z) > LEAST)).all()
    is_hidden = truth == ANY and ((error > 0.5 * float(HIDDEN) * data) & (data > 0.0)).any()
    return is_clear and (error <= 0.5 * float(MET) * terms).all() and not is_hidden


def _is_natural(z, M, q):
    """Whether no z_j is LARGE times what carries alone all that some row is worth, as rounding of nearly singular rows might ask for."""
    return all(abs(x) <= LARGE * max((abs(b / row[j]) for b, row in zip(q, M, strict=True) if row[j]), default=1) for j, x in enumerate(z))


def explained_by_rounding(M, q, lower, upper, z, terms, is_slack):
    """The errors of rows that rounding of the data explains, as fractions: of the z in them, as far as other rows tell these, and of q.

    A z_j inside is known to ROUNDING of what carries alone the terms of another equation, the one that tells it best; at a bound it is
    exact. All of q_i is rounding where it is that beside the largest q of rows that ask for some z, in units of their rows, and at most
    SEEN of the largest term that z_j have by such equations, or, where none has z_j, by rows with ``is_slack``, of whose w_i only the sign
    is asked: 0.3 - 0.1 - 0.2 need
    not be met beside terms of 1. Equations in which all z are 0 tell each other, from one to the next, how large others say these might be.
    """
    n = len(M)
    bounds = [max(abs(l), abs(u)) for l, u in zip(lower, upper, strict=True)]
    by_column = [[k for k in range(n) if M[k][j]] for j in range(len(bounds))]
    largest = [max(map(abs, row)) for row in M]
    idle = [i for i in range(n) if not is_slack[i] and terms[i] == abs(q[i])]
    terms = _terms_that_tell(M, q, lower, upper, z, terms, is_slack)
    spread = list(terms)

    def sizes(i, j, terms):
        others = [k for k in by_column[j] if terms[k] and k != i]
        equations = [abs(terms[k] / M[k][j]) for k in others if not is_slack[k]]
        slacks = [abs(terms[k] / M[k][j]) for k in others if is_slack[k]]
        worst = min(max(equations or slacks, default=0), bounds[j])
        return min(min(equations), bounds[j]) if equations else 0 if terms[i] else worst, worst

    def largest_term(i, terms):
        return max((abs(a) * sizes(i, j, terms)[1] for j, a in enumerate(M[i]) if a), default=0)

    for _ in idle:
        for i in idle:
            size = largest_term(i, spread)
            spread[i] = size if spread[i] < 2 * ROUNDING * size else spread[i]
    is_fixed = [l == u for l, u in zip(lower, upper, strict=True)] if n == len(bounds) else [False] * n
    ask = [not fixed and any(a and size for a, size in zip(row, bounds, strict=True)) for row, fixed in zip(M, is_fixed, strict=True)]
    least = 2 * ROUNDING * max((abs(b) / a for b, a, asks in zip(q, largest, ask, strict=True) if a and asks), default=0)
    explained = []
    for i, row in enumerate(M):
        known = spread if i in idle else terms
        of_z = sum(abs(a) * sizes(i, j, known)[0] for j, a in enumerate(row) if a and lower[j] < z[j] < upper[j])
        is_rounding = abs(q[i]) <= least * largest[i] and abs(q[i]) <= SEEN * (1 + ROUNDING_OF_SUMS) * largest_term(i, known)
        explained.append(ROUNDING * of_z + ((1 + ROUNDING_OF_SUMS) * abs(q[i]) if is_rounding else 0))
    return explained


def _terms_that_tell(M, q, lower, upper, z, terms, is_slack):
    """The terms of rows; 0 of equations without data, unless a z in them is more than rounding of an equation that tells."""
    columns = range(len(z))
    at = [x if x in (l, u) else 0 for x, l, u in zip(z, lower, upper, strict=True)]
    has_data = [slack or b or any(a and x for a, x in zip(row, at, strict=True)) for row, b, slack in zip(M, q, is_slack, strict=True)]
    result, old = [size if data else 0 for size, data in zip(terms, has_data, strict=True)], None
    while result != old:
        old = list(result)
        tell = [k for k, size in enumerate(result) if size and not is_slack[k]]
        known = [any(abs(M[k][j] * z[j]) > 2 * ROUNDING * result[k] for k in tell) for j in columns]
        result = [size or (terms[i] if any(M[i][j] and known[j] for j in columns) else 0) for i, size in enumerate(result)]
    return result


# ------------------------------------------------------------------------------------------------------------------------- rows


def random_matrix(rng, n):
    """Integers, decimals or normal numbers; of full or lower rank, semidefinite, skew, indefinite, with zero rows, nearly singular."""
    kind = rng.integers(8)
    draw = (lambda *s: rng.integers(-3, 4, s).astype(float), lambda *s: rng.integers(-9, 10, s) / 10, lambda *s: rng.normal(size=s))[
        rng.integers(3)
    ]
    G = draw(rng.integers(1, n + 1), n)
    if kind == 0:
        M = G.T @ G
    elif kind == 1:
        S = draw(n, n)
        M = G.T @ G + S - S.T
    elif kind == 2:
        M = G.T @ G + np.diag(abs(draw(n)))
    elif kind == 3:
        m = rng.integers(0, n)
        M = np.zeros((n, n))
        M[m:, :m] = draw(n - m, m)
        M[:m, m:] = -M[m:, :m].T
        M[:m, :m] = (lambda F: F.T @ F)(draw(rng.integers(1, n + 1), m))
    elif kind == 4:
        M = abs(draw(n, n))
    elif kind == 5:
        M = draw(n, 1) @ draw(1, n) + 10.0 ** -rng.integers(3, 14) * draw(n, n)
    else:
        M = draw(n, n)
    if rng.random() < 0.15:
        M[rng.integers(n)] = M[rng.integers(n)]
    if rng.random() < 0.1:
        M[:, rng.integers(n)] = 0.0
    return M


def random_bounds(rng, n):
    """Of an LCP, of a mixed one, or any: finite, free, equal."""
    kind = rng.integers(3)
    lower, upper = np.zeros(n), np.full(n, np.inf)
    if kind == 1:
        lower[rng.random(n) < 0.5] = -np.inf
    elif kind == 2:
        lower = rng.choice([-np.inf, -1.0, 0.0, 0.1], n)
        upper = np.where(rng.random(n) < 0.5, np.inf, np.where(np.isfinite(lower), lower, 0.0) + rng.choice([0.0, 1.0, 0.2], n))
    return lower, upper


def random_solution(rng, lower, upper):
    """(z, w) that obey the law of rows with bounds, w = 0 at a bound at times."""
    n = lower.size
    low, high = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 3, -3)), np.where(np.isfinite(upper), upper, 0.0)
    high = np.where(np.isfinite(upper), high, low + 3)
    draw = rng.integers(0, 10, n) / 10 if rng.random() < 0.6 else rng.random(n)
    z = low + draw * (high - low)
    at = rng.integers(4, size=n)
    z = np.where((at == 0) & np.isfinite(lower), lower, np.where((at == 1) & np.isfinite(upper), upper, z))
    push = rng.choice([0.0, 0.3, 1.0], n)
    w = np.where(z == lower, push, np.where(z == upper, -push, 0.0))
    return z, np.where(lower == upper, rng.choice([-1.0, 1.0], n) * push, w)


def units(rng, n, binary):
    """Factors of unknowns, or rows: 1, over some decades, or over many."""
    kind = rng.integers(4)
    if kind < 2:
        return np.ones(n)
    power = rng.integers(-12, 13, n) if kind == 3 else np.full(n, rng.integers(-12, 13))
    return 2.0 ** (3 * power) if binary else 10.0**power


def random_rows(rng):
    """(truth, M, q, lower, upper)."""
    n, kind = int(rng.integers(1, 6)), rng.integers(4)
    if kind == 0 and n > 1:
        return CONTRADICTORY, *_contradictory_rows(rng, n)
    M, (lower, upper) = random_matrix(rng, n), random_bounds(rng, n)
    C = units(rng, n, True)
    R = C if rng.random() < 0.7 else units(rng, n, True)
    if kind == 1:
        q = rng.integers(-3, 4, n) / rng.choice([1, 10])
        return ANY, R[:, None] * M * C, R * q, lower / C, upper / C
    z, w = random_solution(rng, lower, upper)
    q = w - M @ z
    terms = abs(M) @ abs(z) + abs(w)
    return SOLVABLE if _is_seen(M, q, terms) else ANY, R[:, None] * M * C, R * q, lower / C, upper / C


def _is_seen(M, q, terms):
    """Whether q is 0 or more than rounding of the terms of which it came in some row of each part whose rows z link with each other.

    Else rounding is all that is given there, and asks for an answer of its own: what other parts are worth does not tell its unit.
    """
    linked = (M != 0.0).astype(int) @ (M != 0.0).T > 0
    for _ in q:
        linked |= linked.astype(int) @ linked > 0
    return all((abs(q) > 1e-9 * terms)[part].any() or not q[part].any() for part in linked | np.eye(q.size, dtype=bool))


def _contradictory_rows(rng, n):
    """Whole y with ``y M = 0`` and ``y q = -gap``, of equations and an inequality, in units that are powers of two."""
    y = np.r_[rng.choice([-2.0, -1, 1, 2], n - 1), 1.0]
    M, q = rng.integers(-9, 10, (n, n)).astype(float), rng.integers(-4, 5, n).astype(float)
    M[-1], q[-1] = -y[:-1] @ M[:-1], -y[:-1] @ q[:-1] - 2.0 ** -rng.integers(0, 20)
    R, C = (2.0 ** rng.integers(-30, 31, n) if rng.random() < 0.3 else np.ones(n) for _ in range(2))
    lower = np.r_[np.full(n - 1, -np.inf), 0.0]
    return R[:, None] * M * C, R * q, lower / C, np.full(n, np.inf)


def try_rows(rng):
    """(kind, truth, status, what is false, problem)."""
    truth, *problem = random_rows(rng)
    s = solvers.solve_mlcp(*problem, on_failure="continue")
    return "rows", truth, s, judge_rows(s.status, truth, *problem, s.z), problem


# -------------------------------------------------------------------------------------------------------------------- programmes


def random_programme(rng):
    """(truth, P, c, G, g, A, b, lower, upper, sizes of the z from which g and b are computed)."""
    n, m, k = int(rng.integers(1, 5)), int(rng.integers(0, 4)), int(rng.integers(0, 3))
    F, (lower, upper) = rng.integers(-2, 3, (rng.integers(0, n + 1), n)).astype(float), random_bounds(rng, n)
    unit = rng.choice([1, 10])
    P, G, A = F.T @ F, rng.integers(-2, 3, (m, n)) / unit, rng.integers(-2, 3, (k, n)) / unit
    if m > 1 and rng.random() < 0.3:
        G[0] = -G[1]
    if k > 1 and rng.random() < 0.5:
        A[0] = 2 * A[1]
    z, w = random_solution(rng, lower, upper)
    is_active = rng.random(m) < 0.6
    g, b, y = G @ z - np.where(is_active, 0.0, 1.0), A @ z, np.where(is_active, rng.choice([0.0, 0.3, 2.0], m), 0.0)
    c = w - P @ z + G.T @ y + A.T @ (rng.integers(-2, 3, k) / unit)
    truth = SOLVABLE
    kind = rng.integers(5)
    if kind == 0:  # x - x = 1
        a = rng.integers(-2, 3, n).astype(float)
        G, g, truth = np.vstack([G, a, -a]), np.r_[g, 0.5, 0.0], CONTRADICTORY
    elif kind == 1:  # an unknown that costs less the larger it is
        P, G, A = (np.pad(X, ((0, grown), (0, 1))) for X, grown in ((P, 1), (G, 0), (A, 0)))
        c, lower, upper, z, truth = np.r_[c, -1.0], np.r_[lower, 0.0], np.r_[upper, np.inf], np.r_[z, 0.0], UNBOUNDED
    C, R = units(rng, c.size, True), units(rng, g.size, True)
    cost = 2.0 ** rng.integers(-30, 31) if rng.random() < 0.3 else 1.0
    return truth, cost * C[:, None] * P * C, cost * C * c, R[:, None] * G * C, R * g, A * C, b, lower / C, upper / C, abs(z) / C


def try_programme(rng):
    """As `try_rows`."""
    truth, P, c, G, g, A, b, lower, upper, known = random_programme(rng)
    s = solvers.solve_qp(P, c, G, g, A, b, lower, upper, on_failure="continue")
    problem = P, c, G, g, A, b, lower, upper
    m, k = g.size, b.size
    M = np.block([[P, -G.T, -A.T], [G, np.zeros((m, m + k))], [A, np.zeros((k, m + k))]])
    low, high = np.r_[lower, np.zeros(m), np.full(k, -np.inf)], np.r_[upper, np.full(m + k, np.inf)]
    if s.status == status.UNBOUNDED:
        return "programme", truth, s, "" if truth == UNBOUNDED else f"unbounded, though {truth}", problem
    if s.status == status.INFEASIBLE and truth == UNBOUNDED:
        return "programme", truth, s, "infeasible, though it has points", problem
    z = np.concatenate([s.z, s.multipliers])
    known = np.r_[known, np.zeros(m + k)]
    return "programme", truth, s, judge_rows(s.status, truth, M, np.r_[c, -g, -b], low, high, z, known), problem


# ---------------------------------------------------------------------------------------------------------------------- contacts


def random_contacts(rng):
    """(truth, d, W, q, mu): contacts of a few coordinates, redundant as a rule, each open, sticking or sliding."""
    nc, d = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    n = d * nc
    draw = rng.integers(-2, 3, (int(rng.integers(1, n + 2)), n)) / rng.choice([1, 10])
    mu = rng.choice([0.0, 0.3, 1.0, 2.0], nc)
    if rng.random() < 0.1:  # normals that face each other, without friction, and want more room than there is
        nc, n, mu = 2, 2 * d, np.zeros(2)
        draw = np.zeros((2, n))
        draw[:, 0], draw[:, d] = 1.0, -1.0
        W, q = draw.T @ draw, np.zeros(n)
        q[0] = -0.25
        scale = 2.0 ** rng.integers(-30, 31)
        return CONTRADICTORY, d, scale * W, q, mu
    r, u = np.zeros((nc, d)), np.zeros((nc, d))
    for c in range(nc):
        kind, force = rng.integers(4), rng.choice([0.0, 0.3, 2.0])
        t = np.array([1.0, 0.0]) if d == 2 else np.array([3.0, 4.0]) / 5.0
        if kind == 0:
            u[c, 0], u[c, 1:] = rng.choice([0.0, 0.1, 1.0]), rng.integers(-2, 3, d - 1)
        elif kind == 1:
            r[c, 0], r[c, 1:] = force, mu[c] * force * t[: d - 1] * rng.choice([0.0, 0.5, 1.0])
        else:
            r[c, 0], r[c, 1:] = force, -mu[c] * force * t[: d - 1]
            u[c, 1:] = t[: d - 1] * rng.choice([0.1, 1.0])
    W = draw.T @ draw
    q = u.ravel() - W @ r.ravel()
    scale, speed = 2.0 ** rng.integers(-30, 31), 2.0 ** rng.integers(-20, 21)
    is_seen = abs(q).max() > 1e-9 * (abs(W) @ abs(r.ravel()) + abs(u.ravel())).max()
    return SOLVABLE if is_seen else ANY, d, scale * W, speed * q, mu


def judge_contacts(claim, truth, d, W, q, mu, r):
    """What is false in a claim on a contact problem; velocities are exact but for roots."""
    if claim == status.INFEASIBLE and truth == SOLVABLE:
        return "infeasible, which it is not by construction"
    if claim != status.CONVERGED:
        return ""
    if truth == CONTRADICTORY:
        return "converged, though contradictory"
    if not np.isfinite(r).all():
        return "converged at NaN or infinity"
    size = np.linalg.norm(q)
    noise = np.sqrt(d) * NOISE * (abs(q) + abs(W) @ abs(r)).max()  # the error changes no more than u does
    error = _error_of_contacts(d, W, mu, r, q + W @ r)
    if not error + noise <= WRONG * size:
        exact_W, exact_r = exactly(W), exactly(r)
        u = [q_i + sum(a * b for a, b in zip(row, exact_r, strict=True)) for q_i, row in zip(exactly(q), exact_W, strict=True)]
        error = _error_of_contacts(d, W, mu, r, np.array(u, float))
    return f"converged with an error of {error / size:.1e}" if error > WRONG * size else ""


def _error_of_contacts(d, W, mu, r, u):
    """The largest velocity by which a contact misses its law."""
    u, r, worst = u.reshape(-1, d), r.reshape(-1, d), 0.0
    for c in range(mu.size):
        block = np.diag(W)[c * d : c * d + d]
        D_N, D_T = block[0], block[1:].max()
        stiff = abs(W[c * d : c * d + d]).max()
        D_N, D_T = D_N if D_N > 0 else stiff or 1.0, D_T if D_T > 0 else stiff or 1.0
        radius = mu[c] * r[c, 0]
        away = D_T * r[c, 1:] - u[c, 1:]
        slip = np.linalg.norm(away)
        F_T = D_T * r[c, 1:] - (away if slip <= D_T * radius else away * D_T * radius / slip)
        worst = max(worst, abs(min(D_N * r[c, 0], u[c, 0])), np.linalg.norm(F_T))
    return worst


def try_contacts(rng):
    """As `try_rows`."""
    truth, d, W, q, mu = random_contacts(rng)
    s = (solvers.solve_fc2d if d == 2 else solvers.solve_fc3d)(W, q, mu, on_failure="continue")
    return "contacts", truth, s, judge_contacts(s.status, truth, d, W, q, mu, s.r), (d, W, q, mu)


# --------------------------------------------------------------------------------------------------------------------- nonlinear


def bent(z, p, out):
    """``M z + q`` and a cube, p holding M, q and the weights of cubes."""
    n = z.size
    for i in range(n):
        out[i] = p[n * n + i] + p[n * n + n + i] * z[i] ** 3
        for j in range(n):
            out[i] += p[i * n + j] * z[j]


def bent_jacobian(z, p, out):
    """Derivatives of `bent`."""
    n = z.size
    for i in range(n):
        for j in range(n):
            out[i, j] = p[i * n + j]
        out[i, i] += 3.0 * p[n * n + n + i] * z[i] ** 2


def try_bent(rng):
    """As `try_rows`, of rows with cubes: a mixed complementarity problem, or a variational inequality over a polyhedron."""
    n = int(rng.integers(1, 5))
    M, (lower, upper) = random_matrix(rng, n), random_bounds(rng, n)
    z, w = random_solution(rng, lower, upper)
    cubes = rng.choice([0.0, 0.5, 1.0], n)
    m = int(rng.integers(0, 3))
    G = rng.integers(-2, 3, (m, n)).astype(float)
    y = rng.choice([0.0, 1.0], m)
    g = G @ z - np.where(y > 0.0, 0.0, rng.choice([0.0, 1.0], m))
    q = w - M @ z - cubes * z**3 + G.T @ y
    p = np.concatenate([M.ravel(), q, cubes])
    z0 = np.clip(rng.normal(size=n), lower, upper)
    if m == 0:
        s = solvers.solve_mcp(bent, z0, lower, upper, bent_jacobian, p, on_failure="continue")
        y = np.zeros(0)
    else:
        s = solvers.solve_vi(bent, z0, lower, upper, G, g, jac=bent_jacobian, parameters=p, on_failure="continue")
        y = s.multipliers
    return "nonlinear", SOLVABLE, s, _judge_bent(s, M, q, cubes, G, g, lower, upper, y), (M, q, cubes, G, g, lower, upper, z0)


def _judge_bent(s, M, q, cubes, G, g, lower, upper, y):
    if s.status == status.INFEASIBLE:
        return "infeasible, which it is not by construction"
    if s.status != status.CONVERGED:
        return ""
    z = s.z.astype(np.longdouble)
    F = M @ z + q + cubes * z**3 - G.T @ y
    scale = (abs(M) + np.diag(3 * cubes * s.z**2)) @ (1 + abs(s.z)) + abs(G.T) @ (1 + abs(y))
    error = np.maximum(np.minimum(F / np.where(scale > 0, scale, 1), (z - lower) / (1 + abs(z))), (z - upper) / (1 + abs(z)))
    slack = (G @ z - g) / np.where(G.any(axis=1), abs(G) @ (1 + abs(s.z)), 1.0)
    missing = np.minimum(slack, y / (1 + abs(y)))
    worst = max(abs(error).max(), abs(missing).max(initial=0.0))
    return f"converged with an error of {float(worst):.1e}" if not worst <= WRONG else ""


TRIES = (try_rows, try_rows, try_rows, try_programme, try_programme, try_contacts, try_contacts, try_bent)


def tried(seed):
    """The outcome of the problem of a seed: (kind, truth, solution, what is false, problem)."""
    return TRIES[seed % len(TRIES)](np.random.default_rng(seed))


def main(first, last):
    """Solve the problems of some seeds; tell false claims, and how many were solved."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    counts, slow = collections.Counter(), collections.Counter()
    for seed in range(first, last):
        began = time.perf_counter()
        kind, truth, s, false, _ = tried(seed)
        slow[kind] += time.perf_counter() - began
        counts[kind, truth, int(s.status)] += 1
        if false:
            counts["false claims"] += 1
            print(f"{seed}: {kind}, {truth}, {s.method}: {false}", flush=True)
        if (seed + 1) % 20000 == 0:
            print(f"... {seed + 1}", dict(counts), dict(slow), flush=True)
    for key, count in sorted(counts.items(), key=str):
        print(key, count)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
