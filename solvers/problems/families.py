"""Families of test problems, for comparisons, experiments and property tests: each draws a matrix and a vector of a given size."""

import numpy as np

from nsds import _checks
from nsds.solvers.problems.profiling import Problem


def positive_definite(rng, n):
    """Symmetric positive definite."""
    A = rng.normal(size=(n, n))
    return A @ A.T / n + 0.5 * np.eye(n), rng.normal(size=n)


def unsymmetric(rng, n):
    """Positive definite and not symmetric, hence P."""
    M, q = positive_definite(rng, n)
    A = rng.normal(size=(n, n))
    return M + A - A.T, q


def m_matrix(rng, n):
    """Nonpositive off the diagonal, strictly diagonally dominant, hence P."""
    B = rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.5)
    np.fill_diagonal(B, 0.0)
    return np.diag(0.3 + B.sum(axis=1)) - B, rng.normal(size=n)


def redundant(rng, n):
    """``M = H H^T`` of lower rank and ``q = H v``: what the contacts of a few bodies give; z is not unique, H^T z is."""
    rank = int(rng.integers(1, n + 1))
    H = rng.normal(size=(n, rank))
    return H @ H.T, H @ rng.normal(size=rank)


def degenerate(rng, n):
    """Redundant, in small integers: repeated rows, equal ratios, z_i = w_i = 0."""
    H = rng.integers(-1, 2, size=(n, int(rng.integers(1, n + 1)))).astype(float)
    H[~H.any(axis=1), 0] = 1.0
    H = H[rng.integers(0, n, size=n)]
    return H @ H.T, H @ rng.integers(-2, 3, size=H.shape[1]).astype(float)


def optimality_conditions(rng, n):
    """Positive semidefinite, zeros on the diagonal: ``[[P, C], [-C^T, 0]]``, q such that there is a solution for bounds 0 and infinity."""
    m = n // 2
    P, C = rng.normal(size=(n - m, n - m)), rng.normal(size=(n - m, m))
    M = np.block([[P @ P.T, C], [-C.T, np.zeros((m, m))]])
    pressing = rng.uniform(size=n) < 0.5
    return M, np.where(pressing, 0.0, rng.uniform(size=n)) - M @ np.where(pressing, rng.uniform(size=n), 0.0)


def indefinite(rng, n):
    """Anything: there may be no solution, or many."""
    return rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.7), rng.normal(size=n)


def murty(rng, n):
    """Triangular with 2 above the diagonal, ``q = -1``: pivoting may take 2^n - 1 steps (Murty 1978)."""
    return np.eye(n) + 2.0 * np.triu(np.ones((n, n)), 1), -np.ones(n)


def fathi(rng, n):
    """Symmetric positive definite counterpart of Murty's problem (Fathi 1979)."""
    L = np.eye(n) + 2.0 * np.tril(np.ones((n, n)), -1)
    return L @ L.T, -np.ones(n)


def chain(rng, n):
    """Impacts in a row of n + 1 balls of different masses: tridiagonal, as sparse rows."""
    from scipy.sparse import diags_array

    inverse_mass = rng.uniform(0.5, 2.0, size=n + 1)
    H = diags_array([-np.ones(n), np.ones(n)], offsets=[0, 1], shape=(n, n + 1)).tocsr()
    return (H @ diags_array(inverse_mass) @ H.T).tocsr(), H @ rng.normal(size=n + 1)


def stack(rng, n):
    """Blocks on top of each other that translate and turn, n contacts, up to three between two blocks: one in three redundant; sparse."""
    from scipy.sparse import coo_array, diags_array

    k = np.arange(n)
    block, x = k // 3, k % 3 - 1.0
    above = block > 0
    i = np.concatenate([k, k, k[above], k[above]])
    j = np.concatenate([2 * block, 2 * block + 1, 2 * block[above] - 2, 2 * block[above] - 1])
    ones = np.ones(n)
    H = coo_array((np.concatenate([ones, x, -ones[above], -x[above]]), (i, j))).tocsr()
    v = rng.normal(size=H.shape[1])
    return (H @ diags_array(np.tile([1.0, 3.0], H.shape[1] // 2)) @ H.T).tocsr(), H @ v


FAMILIES = {
    family.__name__: family
    for family in (
        positive_definite, unsymmetric, m_matrix, redundant, degenerate, optimality_conditions, indefinite, murty, fathi, chain, stack,
    )
}  # fmt: skip
_MOST = 10_000_000  # unknowns, or contacts
KINDS = ("lcp", "mlcp", "relay", "mixed")


def bounds(kind, rng, n):
    """(lower, upper) of a kind: "lcp", "mlcp" (40 % equations), "relay" (random boxes) or "mixed" (all of these, upper bounds, z given)."""
    lower, upper = np.zeros(n), np.full(n, np.inf)
    if kind == "mlcp":
        lower[rng.uniform(size=n) < 0.4] = -np.inf
    elif kind != "lcp":
        centre, width = rng.normal(size=n), rng.uniform(size=n)
        lower, upper = centre - width, centre + width
        choice = rng.uniform(size=n) if kind == "mixed" else np.ones(n)
        lower = np.where(choice < 0.4, -np.inf, lower)
        upper = np.where((choice < 0.2) | ((choice > 0.4) & (choice < 0.6)), np.inf, upper)
        upper = np.where((choice > 0.6) & (choice < 0.65), lower, upper)
    return lower, upper


def drawing(owner, families, family, field, n, seed):
    """(function of a family, size of the problem, which errors call by its field, generator of random numbers), checked."""
    _checks.choice(owner, "family", family, families)
    n = _checks.integer(owner, field, n, low=1, high=_MOST)
    return families[family], n, np.random.default_rng(_checks.integer(owner, "seed", seed, low=0, high=2**63 - 1))


def generate(family, n, seed=0, kind="lcp"):
    """A random problem of a family.

    Parameters
    ----------
    family : str
        A name from `nsds.solvers.FAMILIES`.
    n : int
        Unknowns.
    seed : int
        The same seed gives the same problem.
    kind : "lcp", "mlcp", "relay" or "mixed"
        Bounds: 0 and infinity; and equations; random intervals; all of these, upper bounds only, and equal bounds.

    Returns
    -------
    Problem
        Named after its arguments. All families but "indefinite" have a solution with bounds 0 and infinity, and all but this one and
        "optimality_conditions" with any bounds.

    Raises
    ------
    ValueError
        Unknown family or kind; n < 1.

    Examples
    --------
    >>> import nsds
    >>> problem = nsds.solvers.generate("fathi", 3)
    >>> problem.name, nsds.solvers.solve_lcp(problem.M, problem.q).z.tolist()
    ('fathi-3-0-lcp', [1.0, 0.0, 0.0])
    """
    _checks.choice("generate", "kind", kind, KINDS)
    draw, n, rng = drawing("generate", FAMILIES, family, "n", n, seed)
    M, q = draw(rng, n)
    return Problem(f"{family}-{n}-{seed}-{kind}", M, q, *bounds(kind, rng, n))
