"""What public sets of problems ask for: optima with rows without cost, data that are rounding, contradictions that grown z would hide."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, diags_array, random_array, vstack

from nsds import solvers, status


def gap_and_violation(s, P, c, G, g, A, b, lower, upper):
    """Frank and Wolfe's gap of a convex programme, by a linear programme, and by how much the constraints are violated."""
    slope = P @ s.z + c
    best = linprog(slope, A_ub=-G, b_ub=-g, A_eq=A, b_eq=b, bounds=np.c_[lower, upper])
    beyond = [abs(A @ s.z - b).max(initial=0.0), *(np.maximum(x, 0.0).max(initial=0.0) for x in (g - G @ s.z, lower - s.z, s.z - upper))]
    return abs(slope @ s.z - best.fun), max(beyond)


def transport(rng, n_from, n_to, curvature):
    """Flows from depots to shops at least cost, some arcs without any; all that is there is sent, so that a row follows from the others."""
    n = n_from * n_to
    A = np.vstack([np.kron(np.eye(n_from), np.ones(n_to)), np.kron(np.ones(n_from), np.eye(n_to))])
    b = A @ rng.integers(0, 3, n).astype(float)
    P = np.diag(curvature * rng.integers(0, 2, n).astype(float))
    return P, rng.integers(0, 3, n).astype(float), A, b


@pytest.mark.parametrize("method", ["auto", "lemke"])
@pytest.mark.parametrize("curvature", [0.0, 1.0])
def test_an_optimum_is_accepted_whatever_multipliers_of_rows_without_cost_are(method, curvature):
    """Multipliers of 1e-31 where there is no cost are no error of size 1."""
    rng = np.random.default_rng(7)
    for n_from, n_to in ((2, 3), (4, 5), (6, 9)):
        P, c, A, b = transport(rng, n_from, n_to, curvature)
        n = len(c)
        s = solvers.solve_qp(P, c, A=A, b=b, lower=0, method=method)
        gap, violation = gap_and_violation(s, P, c, np.zeros((0, n)), np.zeros(0), A, b, np.zeros(n), np.full(n, np.inf))
        assert gap < 1e-9
        assert violation < 1e-9


ROUNDING = [0.3 - 0.1 - 0.2, 1.1 - 0.1 - 1.0 - 1e-16, 0.7 - 0.6 - 0.1]


@pytest.mark.parametrize("b", ROUNDING)
@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e9])
def test_what_rounding_of_the_data_can_do_is_no_proof(b, n, unit):
    """``sum of z = b`` with b < 0 by rounding and z >= 0: z = 0, in whatever unit; by a thousandth it is infeasible."""
    assert b < 0.0
    c, row = np.r_[-1.0, np.arange(1.0, n)] * unit, np.ones((1, n))
    for state in (
        lambda b: {"A": row, "b": [b]},
        lambda b: {"G": -row, "g": [-b]},
        lambda b: {"A": np.vstack([row, 2 * row]), "b": [b, 2 * b]},
    ):
        s = solvers.solve_qp(np.eye(n), c, lower=0, **state(b * unit))
        assert abs(s.z).max() < 1e-9 * unit
        s = solvers.solve_qp(np.eye(n), c, lower=0, **state(-1e-3 * unit), on_failure="continue")
        assert s.status == status.INFEASIBLE


def contradictory(rng, n, gap):
    """(M, q) of equations and one inequality that whole numbers y contradict: ``y M = 0``, ``y q = -gap``, the last y being 1."""
    y = np.r_[rng.choice([-2.0, -1, 1, 2], n - 1), 1.0]
    M = rng.integers(-9, 10, (n, n)).astype(float)
    M[-1] = -y[:-1] @ M[:-1]
    q = rng.integers(-4, 5, n).astype(float)
    q[-1] = -y[:-1] @ q[:-1] - gap
    assert (y @ M == 0.0).all()
    return M, q


@pytest.mark.parametrize("method", ["auto", "newton_fb", "lemke", "newton_min", "interior_point", "proximal"])
@pytest.mark.parametrize("digits", [10, 18, 22, 26])
def test_grown_unknowns_do_not_hide_a_contradiction(method, digits):
    """Sums of rows are exact, and nothing that is missing may be hidden by rounding of terms of unknowns that have grown."""
    rng = np.random.default_rng(digits)
    for n in (3, 4, 5, 7):
        M, q = contradictory(rng, n, 2.0**-digits)
        s = solvers.solve_mlcp(M, q, np.r_[np.full(n - 1, -np.inf), 0.0], np.inf, method, on_failure="continue")
        assert s.status != status.CONVERGED


def programme(rng, n):
    """Convex programme with traits of Maros and Meszaros' set: degenerate, badly scaled, free and fixed unknowns, redundant rows."""

    def rows(m):
        X = random_array((m, n), density=min(1.0, 4.0 / n), rng=rng).tocsr()
        X.data[:] = np.where(rng.uniform(size=X.nnz) < 0.6, rng.choice([-1.0, 1.0], X.nnz), rng.normal(size=X.nnz))
        return X

    F = random_array((max(1, rng.integers(0, n + 1)), n), density=min(1.0, 3.0 / n), rng=rng).tocsr() * float(rng.uniform() < 0.7)
    P, G, A = F.T @ F, rows(rng.integers(1, max(2, n // 2))), rows(rng.integers(1, max(2, n // 3)))
    G, A = vstack([G, G[[0]], G[[0]] + G[[-1]]]).tocsr(), vstack([A, A[[0]] + A[[-1]], 2.0 * A[[0]]]).tocsr()
    kind = rng.uniform(size=n)
    lower = np.where(kind < 0.2, -np.inf, np.where(kind < 0.8, 0.0, np.round(rng.normal(size=n), 1)))
    upper = np.where(kind < 0.6, np.inf, np.where(np.isfinite(lower), lower, 0.0) + rng.integers(1, 10, n))
    inside = np.minimum(lower + rng.integers(0, 5, n), upper)
    z = np.where(np.isfinite(lower), np.where(rng.uniform(size=n) < 0.5, inside, lower), rng.normal(size=n))
    fixed = rng.uniform(size=n) < 0.05
    lower, upper = np.where(fixed, z, lower), np.where(fixed, z, upper)
    active = rng.uniform(size=G.shape[0]) < 0.5
    active[-2:] = active[0], active[0] and active[-3]
    g, b = G @ z - np.where(active, 0.0, rng.integers(1, 5, G.shape[0])), A @ z
    multipliers = np.where(active & (rng.uniform(size=active.size) < 0.7), rng.integers(0, 5, active.size), 0.0)
    w = np.where(z == lower, rng.integers(0, 3, n), 0.0) - np.where((z == upper) & (lower < upper), rng.integers(0, 3, n), 0.0)
    c = w - P @ z + G.T @ multipliers + A.T @ (rng.normal(size=b.size) * (rng.uniform(size=b.size) < 0.7))
    power = rng.integers(0, 4)
    D, of_G, of_A = (10.0 ** rng.integers(-power, power + 1, m) for m in (n, g.size, b.size))
    scaled = diags_array(D)
    return {
        "P": csr_array(scaled @ P @ scaled), "c": D * c, "G": csr_array(diags_array(of_G) @ G @ scaled), "g": of_G * g,
        "A": csr_array(diags_array(of_A) @ A @ scaled), "b": of_A * b, "lower": lower / D, "upper": upper / D,
    }, z / D  # fmt: skip


@pytest.mark.parametrize(
    ("n", "seeds"), [(5, range(20)), (20, range(12)), (60, range(6)), (250, range(3)), (500, [28, 31]), (1000, [9, 12])]
)
def test_convex_programmes_as_of_a_public_set(n, seeds):
    """The known minimum, to 1e-8 of the magnitudes in it; those of 500 have bounds 1e-7 apart beside data of 1, of 1000 ends in doubt."""
    for seed in seeds:
        p, z = programme(np.random.default_rng([n, seed]), n)
        s = solvers.solve_qp(**p)

        def value(x, p=p):
            return 0.5 * x @ p["P"] @ x + p["c"] @ x

        size = 0.5 * abs(s.z) @ abs(p["P"]) @ abs(s.z) + abs(p["c"]) @ abs(s.z) + abs(p["c"]) @ abs(z)
        assert abs(value(s.z) - value(z)) <= 1e-8 * size
        for X, x in ((p["A"], p["b"]), (p["G"], p["g"])):
            low = x - X @ s.z
            assert ((abs(low) if X is p["A"] else low) <= 1e-8 * (abs(X) @ abs(s.z) + abs(x)) + 1e-12).all()


@pytest.mark.parametrize("kind", ["lcp", "mlcp"])
def test_auto_solves_what_a_listed_method_solves(kind):
    """Of P, semidefinite, indefinite and singular matrices: where any method has a solution, "auto" has one."""
    rng = np.random.default_rng(3)
    for family in ("indefinite", "optimality_conditions", "redundant", "murty", "fathi"):
        for n in (3, 12, 40):
            p = solvers.generate(family, n, int(rng.integers(1000)), kind)
            s = solvers.solve_mlcp(p.M, p.q, p.lower, p.upper, on_failure="continue")
            if s.status != status.CONVERGED:
                for method in solvers.methods(kind):
                    other = solvers.solve_mlcp(p.M, p.q, p.lower, p.upper, method, on_failure="continue")
                    assert other.status != status.CONVERGED
