"""Contact solvers on random problems, most of them unkind: ``python -m tests.benchmarks.fuzz_contacts [--number 100000] [--seed 0]``.

A problem is drawn from a table of matrices, changed by one of a table of changes, given a q of a table and one of the classes; it goes
through the next method of that class. ``--generators structured`` draws from `structured_contacts` instead. Judged in extended precision
by NumPy alone: claims of convergence, claims of infeasibility (of what was made with a solution, of what enumeration solves, of what linear
programming finds feasible), numbers that are not finite, and calls that take longer than a limit of processor time. Exit status 1 if there
is anything of it.
"""

import argparse
import itertools
import sys
import time
import warnings
from collections import Counter
from typing import NamedTuple

import numpy as np

from nsds import solvers
from nsds.solvers.faces.contact import kind_of
from nsds.status import CONVERGED, INFEASIBLE
from tests.benchmarks import structured_contacts

TOL = 1e-8
LIMIT = 20.0  # seconds
_EXACT = np.finfo(np.longdouble).eps


class Law(NamedTuple):
    """Places of N, T and R of one contact, or of an equation in N alone."""

    kind: str
    N: np.ndarray
    T: np.ndarray
    R: np.ndarray
    mu: float
    mu_r: float


# ---------------------------------------------------------------------------------------------------------------------- problems


def definite(rng, n):
    G = rng.normal(size=(n, n))
    return G @ G.T / n + 10.0 ** rng.uniform(-6, 0) * np.eye(n)


def deficient(rng, n):
    G = rng.normal(size=(n, int(rng.integers(1, n + 1))))
    return G @ G.T


def unsymmetric(rng, n):
    S = rng.normal(size=(n, n))
    return definite(rng, n) + 0.3 * (S - S.T)


def zeros(rng, n):
    keep = np.kron(rng.uniform(size=(n,)) < 0.6, [1.0]).astype(bool)
    return deficient(rng, n) * np.outer(keep, keep)


def nothing(rng, n):
    return np.zeros((n, n))


def indefinite(rng, n):
    W = rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < rng.uniform())
    np.fill_diagonal(W, abs(np.diag(W)))
    return W


def integers(rng, n):
    G = rng.integers(-2, 3, size=(n, int(rng.integers(1, n + 1)))).astype(float)
    return G @ G.T


def repeated(rng, n):
    W = definite(rng, n)
    half = np.r_[np.arange((n + 1) // 2), np.arange(n // 2)]
    return W[np.ix_(half, half)]


def skew(rng, n):
    S = rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.5)
    return np.triu(S, 1) - np.triu(S, 1).T + np.diag(rng.uniform(size=n) < 0.5)


def heavy(rng, n):
    G = rng.normal(size=(n, n + 1))
    return G @ np.diag(10.0 ** rng.uniform(-6, 0, size=n + 1)) @ G.T


MATRICES = (definite, deficient, unsymmetric, zeros, nothing, indefinite, integers, repeated, skew, heavy)
CHANGES = ("none", "none", "none", "rows", "W", "q", "both", "subnormal q", "subnormal W", "tiny", "huge")
VECTORS = ("random", "planted", "planted", "pressed", "integers", "sparse", "zero")
FRICTION = ("none", "moderate", "moderate", "large")
CLASSES = ("fc2d", "fc2d", "fc3d", "fc3d", "rfc2d", "rfc3d", "gfc2d", "gfc3d", "generic", "generic")
_PARTS = {"fc2d": (1, 0), "fc3d": (2, 0), "rfc2d": (1, 1), "rfc3d": (2, 2), "gfc2d": (1, 0), "gfc3d": (2, 0)}


def coefficient(rng, kind):
    return {"none": 0.0, "moderate": rng.uniform(0, 1), "large": 10.0 ** rng.uniform(0, 3)}[kind]


def draw_laws(rng, cls):
    """(laws, blocks of `solve_generic` or None)."""
    laws, blocks, at, friction = [], [], 0, rng.choice(FRICTION)
    for k in range(int(rng.integers(1, 6))):
        kind = rng.choice(["equality", "lcp", "friction", "rolling"]) if cls == "generic" and k else "friction"
        mu, mu_r = coefficient(rng, friction), coefficient(rng, friction)
        if kind in ("equality", "lcp"):
            size = int(rng.integers(1, 4))
            blocks.append((kind, size))
            laws += [Law(kind, np.array([at + i]), np.array([], int), np.array([], int), 0.0, 0.0) for i in range(size)]
            at += size
            continue
        t, r = _PARTS.get(cls, (int(rng.integers(1, 3)), 0))
        if kind == "rolling":
            r = t
        places = at + np.arange(1 + t + r)
        laws.append(Law("contact", places[:1], places[1 : 1 + t], places[1 + t :], mu, mu_r if r else 0.0))
        blocks.append(("rolling", 1 + t + r, mu, mu_r) if r else ("friction", 1 + t, mu))
        at += 1 + t + r
    return laws, blocks, at


def draw_solution(rng, laws, n):
    """(r, u) that the laws allow."""
    r, u = np.zeros(n), np.zeros(n)
    for law in laws:
        N, pressed = law.N[0], rng.uniform() < 0.6
        if law.kind == "equality":
            r[N] = rng.normal()
            continue
        r[N], u[N] = (rng.uniform(), 0.0) if pressed else (0.0, rng.uniform())
        for part, mu in ((law.T, law.mu), (law.R, law.mu_r)):
            t = rng.normal(size=part.size)
            t /= np.linalg.norm(t) if t.size else 1.0
            sliding = rng.uniform() < 0.5
            r[part] = t * mu * r[N] * (1.0 if sliding else rng.uniform())
            u[part] = -t * rng.uniform() if sliding or not pressed else 0.0
    return r, u


def draw(rng, cls, generators="random"):
    """(name, laws, blocks, W, q, solvable)."""
    laws, blocks, n = draw_laws(rng, cls)
    if generators == "structured":
        return structured_contacts.draw(rng, cls, laws, blocks, n)
    matrix, change, vector = rng.choice(MATRICES), rng.choice(CHANGES), rng.choice(VECTORS)
    W = matrix(rng, n)
    S = 10.0 ** rng.uniform(-3, 3, size=n) if change == "rows" else np.ones(n)
    for law in laws:
        S[law.T], S[law.R] = (S[part[0]] if part.size else 1.0 for part in (law.T, law.R))
    r, u = draw_solution(rng, laws, n)
    q = {
        "random": lambda: rng.normal(size=n),
        "planted": lambda: (u - W.astype(np.longdouble) @ r).astype(float),
        "pressed": lambda: rng.normal(size=n) - 2.0,
        "integers": lambda: rng.integers(-3, 4, size=n).astype(float),
        "sparse": lambda: rng.normal(size=n) * (rng.uniform(size=n) < 0.4),
        "zero": lambda: np.zeros(n),
    }[vector]()
    if change == "rows":
        W, q = S[:, None] * W * S, S * q
    a, b = {"W": (rng.uniform(-9, 9), 0), "q": (0, rng.uniform(-9, 9)), "both": rng.uniform(-9, 9, size=2), "subnormal q": (0, -310)}.get(
        change, {"subnormal W": (-310, 0), "tiny": (-150, -160), "huge": (150, 160)}.get(change, (0, 0))
    )
    if cls.startswith("gf") and change == "huge":
        a, b = a / 2, b / 2
    W, q = W * 10.0**a, q * 10.0**b
    solvable = (
        not cls.startswith("gf")
        and vector == "planted"
        and change in ("none", "W", "q", "both")
        and abs(W @ r).max(initial=0.0) * 10.0**b < 1e6
    )
    return f"{cls}-{matrix.__name__}-{change}-{vector}", laws, blocks, W, q, solvable


def call(rng, cls, laws, blocks, W, q, method, options):
    """(r, status, u, residuals) and the W that is judged."""
    mu, mu_r = np.array([law.mu for law in laws]), np.array([law.mu_r for law in laws])
    if cls == "generic":
        s = solvers.solve_generic(W, q, blocks, method, on_failure="continue", **options)
        return s.z, s.w, s.status, [s.residual], W, q
    if cls.startswith("gf"):
        M, H = 2.0 ** rng.integers(-3, 4, size=q.size), W
        W = H.T.astype(np.longdouble) @ (H / M[:, None])
        f = rng.integers(-3, 4, size=q.size) * abs(q).max(initial=0.0)
        whole = H.T.astype(np.longdouble) @ (f / M) + q
        s = getattr(solvers, f"solve_{cls}")(np.diag(M), H, f, q, mu, method, on_failure="continue", **options)
        return s.r, s.u, s.status, [s.residual, *s.v], W, whole
    rolling = (mu_r,) if cls[0] == "r" else ()
    s = getattr(solvers, f"solve_{cls}")(W, q, mu, *rolling, method, on_failure="continue", **options)
    return s.r, s.u, s.status, [s.residual], W, q


# ---------------------------------------------------------------------------------------------------------------------- the judge


def judge(laws, W, q, r):
    """(velocity by which the laws are missed, what extended precision may hide of it), both over ``||q||``; largest entries are 1."""
    W, q, r = (np.asarray(x, np.longdouble) for x in (W, q, r))
    size_W, size_q = abs(W).max() or np.longdouble(1), abs(q).max() or np.longdouble(1)
    W, q, r = W / size_W, q / size_q, r * (size_W / size_q)
    u, rows, columns = W @ r + q, abs(W).max(axis=1), abs(W).max(axis=0)
    terms, F = abs(W) @ abs(r) + abs(q), []

    def scale(part):
        return rows[part].max() or columns[part].max() or abs(W).max() or ((abs(q).max() / abs(r).max()) if r.any() else 1.0)

    for law in laws:
        N = law.N[0]
        if law.kind == "equality":
            F.append(u[N])
            continue
        F.append(min(scale(law.N) * r[N], u[N]))
        for part, mu in ((law.T, law.mu), (law.R, law.mu_r)):
            if part.size:
                D = scale(part)
                y, radius = D * r[part] - u[part], D * np.longdouble(mu) * max(r[N], 0)
                size = np.sqrt(y @ y)
                F += list(u[part] if size <= radius else D * r[part] - y * (radius / size))
                terms = np.append(terms, D * (np.sqrt(r[part] @ r[part]) + mu * abs(r[N])))
    whole = np.sqrt(q @ q) if q.any() else max(abs(r).max(), _EXACT)
    F = np.array(F, np.longdouble)
    return float(np.sqrt(F @ F) / whole), float(4 * (len(q) + 4) * _EXACT * np.sqrt(terms @ terms) / whole)


def _is_pulled(laws, W, q):
    """Whether ``u_N = q_N < 0`` for some contact, or ``u = q != 0`` for an equation: W has no row for it. However small, no r helps."""
    return any(not np.any(W[law.N[0]]) and (q[law.N[0]] != 0 if law.kind == "equality" else q[law.N[0]] < 0) for law in laws)


def is_feasible(laws, W, q):
    """Whether linear programming finds impulses in the cones (polyhedra inside of them) with ``u_N >= 0``, and 0 for equations."""
    from scipy.optimize import linprog

    if _is_pulled(laws, W, q):
        return False
    n, A, b, E, f = len(q), [], [], [], []
    size_W, size_q = abs(W).max() or 1.0, abs(q).max() or 1.0
    W, q, bounds = np.asarray(W / size_W, float), np.asarray(q / size_q, float), [(None, None)] * n
    for law in laws:
        N = law.N[0]
        if law.kind == "equality":
            E.append(W[N])
            f.append(-q[N])
            continue
        bounds[N] = (0.0, None)
        A.append(-W[N])
        b.append(q[N])
        for part, mu in ((law.T, law.mu), (law.R, law.mu_r)):
            for signs in itertools.product((-1, 1), repeat=part.size):
                if part.size:
                    row = np.zeros(n)
                    row[part], row[N] = signs, -mu
                    A.append(row)
                    b.append(0.0)
    found = linprog(np.zeros(n), A or None, b or None, E or None, f or None, [*bounds])
    if found.x is None or found.status != 0 or abs(found.x).max(initial=0.0) > 1e6:
        return False
    u, slack = W @ found.x + q, 1e-12 * (abs(W) @ abs(found.x) + abs(q))
    return all(abs(u[law.N[0]]) <= slack[law.N[0]] if law.kind == "equality" else u[law.N[0]] >= -slack[law.N[0]] for law in laws)


def has_solution_in_plane(laws, W, q):
    """Whether one of the combinations of open, sticking and sliding is a solution, of a few contacts."""
    W, q = np.asarray(W, float), np.asarray(q, float)
    if _is_pulled(laws, W, q) or len(laws) > 4 or any(law.R.size or law.T.size > 1 for law in laws):
        return False
    choices = [range(1) if law.kind == "equality" else range(2) if not law.T.size else range(4) for law in laws]
    for combination in itertools.product(*choices):
        A, b = np.eye(len(q)), np.zeros(len(q))
        for law, piece in zip(laws, combination, strict=True):
            N = law.N[0]
            if law.kind == "equality" or piece:
                A[N], b[N] = W[N], -q[N]
            if law.T.size and piece:
                T = law.T[0]
                if piece == 1:
                    A[T], b[T] = W[T], -q[T]
                else:
                    A[T, N] = law.mu * (1 if piece == 2 else -1)
        try:
            r = np.linalg.solve(A, b)
        except np.linalg.LinAlgError:
            continue
        missing, allowed = -(W @ r + q), 1e-10 * (abs(W) @ abs(r) + abs(q))  # row by row, as contacts may have units of their own
        is_met = all(missing[law.N[0]] <= allowed[law.N[0]] for law in laws)
        if np.isfinite(r).all() and is_met and judge(laws, W, q, r)[0] <= 1e-12:
            return True
    return False


def findings(cls, laws, W, q, solvable, r, u, status, others, seconds):
    """What is wrong with an answer."""
    if not (np.isfinite(r).all() and np.isfinite(u).all() and np.isfinite(np.asarray(others, float)).all()):
        yield "not finite"
        return
    if seconds > LIMIT:
        yield f"{seconds:.0f} s"
    if status == CONVERGED:
        error, hidden = judge(laws, W, q, r)
        factor = 30.0 if cls.startswith("gf") else 1.001  # u of global problems comes from v, and their scales from diagonal blocks
        if not error <= factor * TOL + 4 * hidden:
            yield f"false converged ({error:.1e}, {hidden:.1e})"
    if status == INFEASIBLE and (solvable or has_solution_in_plane(laws, W, q)):
        yield "false infeasible"
    elif status == INFEASIBLE and is_feasible(laws, W, q):
        slips = any(law.T.size and law.mu > 0 and not np.any(np.asarray(W)[law.T] != 0) for law in laws)
        if not slips and not any(law.T.size == 1 for law in laws):
            yield "infeasible, though linear programming finds impulses"


def main():
    """Run, print, and fail where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--methods", nargs="*", default=None)
    parser.add_argument("--generators", default="random", choices=("random", "structured"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    counts, wrong, longest, began, turn = {}, [], (0.0, ""), time.time(), Counter()
    for k in range(arguments.number):
        rng = np.random.default_rng([arguments.seed, k])
        cls = str(rng.choice(CLASSES))
        name, laws, blocks, W, q, solvable = draw(rng, cls, arguments.generators)
        d = max(block[1] for block in blocks if block[0] in ("friction", "rolling"))
        kind = kind_of(d, any(block[0] == "rolling" for block in blocks)) if cls == "generic" else cls
        methods = [m for m in solvers.methods(kind) if not arguments.methods or m in arguments.methods]
        turn[cls, d] += 1
        method = "auto" if rng.uniform() < 0.3 else methods[turn[cls, d] % len(methods)]
        options = {} if rng.uniform() < 0.2 else {"max_iter": int(10 ** rng.uniform(0, 3))}
        try:
            for _ in range(2):
                start = time.process_time()
                r, u, status, others, whole, vector = call(rng, cls, laws, blocks, W, q, method, options)
                seconds = time.process_time() - start
                if seconds <= LIMIT:
                    break  # else once more: the first call compiles
        except Exception as error:  # whatever it is, it is a finding
            wrong.append(f"{arguments.seed}-{k} {method} on {name}: {type(error).__name__}: {error}")
            continue
        longest = max(longest, (seconds, f"{arguments.seed}-{k} {method} on {name}"))
        counts.setdefault(method, Counter())[status] += 1
        found = [
            f"{arguments.seed}-{k} {method} on {name}: {what}"
            for what in findings(cls, laws, whole, vector, solvable, r, u, status, others, seconds)
        ]
        print(*found, sep="\n", end="\n" if found else "", flush=True)
        wrong += found
        if (k + 1) % 1000 == 0:
            print(f"{k + 1} problems, {time.time() - began:.0f} s, {len(wrong)} findings", flush=True)
        if time.time() - began > 60 * arguments.minutes:
            break
    for method, each in counts.items():
        print(f"{method:17s} " + ", ".join(f"status {code}: {count}" for code, count in sorted(each.items())))
    print(f"{k + 1} problems; longest: {longest[0]:.2f} s, {longest[1]}")
    print("\n".join(wrong) or "nothing wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
