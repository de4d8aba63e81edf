"""One problem from Python: checks, conversion to the solvers' form, and a result that says what happened."""

from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.solvers import table
from nsds.status import CONVERGED, advice


class Solution(NamedTuple):
    """Result of a solver: ``w = M z + q``, a status of `nsds.status`, and the merit at z."""

    z: np.ndarray
    w: np.ndarray
    status: int
    n_iter: int
    residual: float
    method: str


class SolverError(RuntimeError):
    """A problem that was not solved; ``solution`` is the best that was found."""

    def __init__(self, solution):
        super().__init__(f"{solution.method}: {advice(solution.status)} (residual {solution.residual:.3g}, {solution.n_iter} iterations)")
        self.solution = solution


def solve_lcp(M, q, method="lcp_auto", *, tol=1e-10, max_iter=0, work_size=(0, 0), z0=None, on_failure="raise"):
    """Linear complementarity problem: ``w = M z + q``, ``0 <= z ⟂ w >= 0``.

    Parameters
    ----------
    M : array_like or scipy.sparse (n, n)
        Matrix.
    q : array_like (n,)
        Vector.
    method, tol, max_iter, work_size
        See `nsds.solvers.solver` and `nsds.solvers.methods`.
    z0 : array_like (n,), optional
        First guess.
    on_failure : "raise" or "return"
        What to do with a problem that was not solved.

    Returns
    -------
    Solution
        NamedTuple (z, w, status, n_iter, residual, method).

    Raises
    ------
    ValueError, TypeError
        Wrong shapes, NaN or infinity, unknown method.
    SolverError
        Not solved and ``on_failure="raise"``.

    Examples
    --------
    >>> import nsds
    >>> nsds.solvers.solve_lcp([[2, 1], [1, 2]], [-5, -6]).z.round(12)
    array([1.33333333, 2.33333333])
    """
    if on_failure not in ("raise", "return"):
        raise ValueError(f"solve_lcp: on_failure must be 'raise' or 'return', got {on_failure!r}")
    name, module, options = table.chosen(table.solver(method, tol=tol, max_iter=max_iter, work_size=work_size))
    q = _checks.array("solve_lcp", "q", q, n_dims=1)
    n = q.size
    row, column, data = _compressed_rows(M, n)
    z = np.zeros(n) if z0 is None else _checks.array("solve_lcp", "z0", z0, shape=(n,))
    w, info, lower, upper = np.zeros(n), np.zeros(2), np.zeros(n), np.full(n, np.inf)
    n_work, n_iwork = module.work_size(n, row, column)
    solve = getattr(module, name)
    status = solve(row, column, data, q, lower, upper, options, z, w, info, np.zeros(n_work), np.zeros(max(n_iwork, 1), np.int64))
    solution = Solution(z, w, int(status), int(info[0]), float(info[1]), name)
    if status != CONVERGED and on_failure == "raise":
        raise SolverError(solution)
    return solution


def _compressed_rows(M, n):
    """The solvers' form of a matrix: sorted compressed rows, symmetric pattern, full diagonal."""
    if hasattr(M, "tocsr"):
        if M.shape != (n, n):
            raise ValueError(f"solve_lcp: M must have shape {(n, n)}, got {M.shape}")
        from scipy.sparse import coo_array

        M = M.tocoo()
        i, j, x = M.row.astype(np.int64), M.col.astype(np.int64), _checks.array("solve_lcp", "M", M.data)
        every, zeros = np.arange(n), np.zeros(x.size + n)
        pattern = (np.concatenate([i, j, every]), np.concatenate([j, i, every]))  # explicit zeros make it symmetric
        rows = coo_array((np.concatenate([x, zeros]), pattern), shape=(n, n)).tocsr()
        rows.sum_duplicates()
        return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data
    M = _checks.array("solve_lcp", "M", M, shape=(n, n))
    return np.arange(n + 1) * n, np.tile(np.arange(n), n), M.reshape(-1)
