"""Whether a solution whose rows miss their data by rounding of large terms is one: whether z with twice the digits meets them."""

from contextlib import suppress

import numpy as np

from nsds.maths.superlu import factorise
from nsds.solvers.box.signature import LEVELS, least_data, multiply_exactly, rounding_of_data, size_beside

_ROUNDING = 2.0**-52
_LEFT = 1e-3  # of the rounding of a row's terms: what more digits must leave of its error
_REPEATS = 8
_SHIFT = 1e-9  # on the diagonal
_SMALLEST = (1e-14, 1e-12, 1e-10, 1e-8)  # singular values, of the largest, that are not 0
_DENSE = 1500  # unknowns up to which a matrix that may be singular is treated as a dense one


def confirmed(tol, row, column, M, q, lower, upper, z):
    """(whether there is a solution beside z, the largest error of a row in units of its data) of a `nsds.solvers.box.forms.Box`.

    Between the bounds z is refined, ``z <- z - M_BB^-1 w_B``, as a sum of two numbers, with w as if computed with twice the digits. Where
    z is what the data ask for, its rows lose their error; where z has grown along a direction that M nearly maps to 0 until rounding hides
    what is missing, no z meets them, and they keep it.
    """
    from scipy.sparse import csr_array, diags_array

    n, w, least = q.size, np.zeros(q.size), least_data(row, column, M, q)
    multiply_exactly(row, column, M, q, z, w)
    whole = csr_array((M, column, row), shape=(n, n))
    parts = csr_array((abs(M), column, row), shape=(n, n))
    at_bound = (z == lower) | (z == upper)
    terms = abs(q) + parts @ abs(z)
    data = abs(q) + parts @ np.where(at_bound, abs(z), 0.0)
    for i in np.tile(np.flatnonzero(data == 0.0), LEVELS):
        data[i] = data[i] or size_beside(i, least, row, column, M, data, lower, upper)
    of_data = [rounding_of_data(i, least, row, column, M, q, lower, upper) for i in range(n)]
    enough = np.maximum(np.maximum(tol * data, _LEFT * _ROUNDING * terms), of_data)
    B = np.flatnonzero(~at_bound)
    rows, columns = diags_array(1.0 / np.where(terms > 0.0, terms, 1.0)[B]), diags_array(np.where(z == 0.0, 1.0, abs(z))[B])
    A, worst = (rows @ whole[B][:, B] @ columns).tocsc(), np.inf
    for solve in _solutions_of(A):
        rest, exact = np.zeros(n), w.copy()
        for _ in range(_REPEATS):
            rest[B] -= columns @ solve(rows @ exact[B])
            exact = w + whole @ rest
        error = np.where(~at_bound, abs(exact), np.where(z == lower, np.maximum(-exact, 0.0), np.maximum(exact, 0.0)))
        error[lower == upper] = 0.0
        if np.isfinite(exact).all():
            worst = min(worst, np.max(error / np.where(data > 0.0, data, 1.0), initial=0.0, where=data > 0.0))
            if (error <= enough)[data > 0.0].all():
                return True, float(worst)
    return False, float(worst)


def _solutions_of(A):
    """Functions that solve a square system, or come nearer: elimination, with a shift where that is singular; that of least norm."""
    from scipy.sparse import diags_array

    own = A.diagonal()
    shift = diags_array(_SHIFT * np.where(own > 0.0, own, 1.0)).tocsc()
    for matrix in (A, A + shift):
        with suppress(RuntimeError, ValueError):  # an exact zero, or no unknowns
            yield factorise(matrix).solve
    if A.shape[0] <= _DENSE:
        U, sizes, V = np.linalg.svd(A.toarray())
        for smallest in _SMALLEST:
            k = int((sizes > smallest * sizes.max(initial=0.0)).sum())
            yield lambda b, k=k: V[:k].T @ ((U[:, :k].T @ b) / sizes[:k])
