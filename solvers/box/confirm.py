"""Whether a solution whose rows miss their data by rounding of large terms is one: whether z with twice the digits meets them."""

from contextlib import suppress

import numpy as np

from nsds.maths.superlu import factorise
from nsds.solvers.box.signature import LEVELS, OF_DATA, hides_data, least_data, multiply_exactly, rounding_of_data, size_beside

_REPEATS = 50  # at most, while the error falls
_SHIFT = 1e-9  # on the diagonal
_SMALLEST = (1e-14, 1e-12, 1e-10, 1e-8)  # singular values, of the largest, that are not 0
_DENSE = 600  # unknowns up to which a matrix that may be singular is treated as a dense one


def confirmed(tol, problem, z):
    """(whether there is a solution beside z, the largest error of a row in units of its data) of a `nsds.solvers.box.signature.Problem`.

    Between the bounds z is refined, ``z <- z - M_BB^-1 w_B``, a sum of many numbers, with w as if computed with twice the digits. Where
    z is what the data ask for, its rows lose their error; where z has grown along a direction that M nearly maps to 0 until rounding hides
    what is missing, no z meets them, and they keep it. Rounding of M is nothing where z is what the data ask for: equations that depend on
    each other may contradict by that.
    """
    from scipy.sparse import csr_array

    q, lower = problem.q, problem.lower
    n, w = q.size, np.zeros(q.size)
    multiply_exactly(problem, z, w)
    whole = csr_array((problem.M, problem.column, problem.row), shape=(n, n))
    parts = csr_array((abs(problem.M), problem.column, problem.row), shape=(n, n))
    least = least_data(problem)
    at_bound = (z == lower) | (z == problem.upper)
    terms = abs(q) + parts @ abs(z)
    is_rounding = abs(q) <= least * parts.max(axis=1).toarray().ravel()
    data = np.where(is_rounding, 0.0, abs(q)) + parts @ np.where(at_bound, abs(z), 0.0)
    for i in np.tile(np.flatnonzero(data == 0.0), LEVELS):
        data[i] = data[i] or size_beside(i, least, problem, data)
    data = np.where(data > 0.0, data, abs(q))
    of_data = [rounding_of_data(i, least, problem) for i in range(n)]
    of_matrix = [OF_DATA * size_beside(i, least, problem, data) for i in range(n)]
    enough = np.max([tol * data, of_data, of_matrix], axis=0)
    B = np.flatnonzero(~at_bound)
    rows, columns = 1.0 / np.where(terms > 0.0, terms, 1.0)[B], np.where(z == 0.0, 1.0, abs(z))[B]
    units = np.where(data > 0.0, data, 1.0)

    def judged(exact):
        """(whether all rows with data are met, the largest error in units of these) of w."""
        error = np.where(~at_bound, abs(exact), np.where(z == lower, np.maximum(-exact, 0.0), np.maximum(exact, 0.0)))
        error = np.where((lower == problem.upper) | (data == 0.0), 0.0, error)
        return (error <= enough).all(), float(np.max(error / units, initial=0.0))

    is_met, worst = judged(w)
    if is_met or B.size == 0:
        return is_met, worst
    for solve in _solutions_of(whole[B][:, B], rows, columns):
        step, exact, before = np.zeros(n), w.copy(), np.inf
        for _ in range(_REPEATS):
            step[B] = -solve(exact[B])
            multiply_exactly(problem._replace(q=exact.copy()), step, exact)
            is_met, missing = judged(exact)
            if not np.isfinite(exact).all() or missing >= before:
                break
            if is_met:
                return True, missing
            before, worst = missing, min(worst, missing)
    return False, worst


def holds(tol, problem, z):
    """Whether a z that `judge` calls a solution is one though its rows may have grown until rounding hides what is missing."""
    return not hides_data(tol, problem, z, np.empty(problem.q.size)) or confirmed(tol, problem, z)[0]


def _solutions_of(A, rows, columns):
    """Functions that solve a square system, or come nearer; rows and columns: units of these.

    Elimination; proximal steps, which move nothing along what a monotone A maps to 0; elimination with a shift; that of least norm.
    """
    from scipy.sparse import diags_array

    scaled = diags_array(rows) @ A @ diags_array(columns)
    largest = abs(A).max(axis=1).toarray().ravel()
    even = 1.0 / np.sqrt(np.where(largest > 0.0, largest, 1.0))
    own = scaled.diagonal()
    shift = diags_array(_SHIFT * np.where(own > 0.0, own, 1.0))
    for matrix, left, right in (
        (scaled, rows, columns),
        (diags_array(even) @ A @ diags_array(even) + diags_array(np.full(even.size, _SHIFT)), even, even),
        (scaled + shift, rows, columns),
    ):
        with suppress(RuntimeError, ValueError):  # an exact zero, or no unknowns
            factors = factorise(matrix)
            yield lambda b, factors=factors, left=left, right=right: right * factors.solve(left * b)
    if A.shape[0] <= _DENSE:
        U, sizes, V = np.linalg.svd(scaled.toarray())
        for smallest in _SMALLEST:
            k = int((sizes > smallest * sizes.max(initial=0.0)).sum())
            yield lambda b, k=k: columns * (V[:k].T @ ((U[:, :k].T @ (rows * b)) / sizes[:k]))
