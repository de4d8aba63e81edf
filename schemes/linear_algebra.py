"""Products and solves with diagonal, dense and compressed-row matrices in a record's memory or in a scheme's work memory."""

import math

import numpy as np
from numba import types

from nsds._jit import caller, inlined, kernel, load, on_demand, put, spread, tiny, view
from nsds.maths import cholesky, sparse_lu, superlu
from nsds.maths import dense as dense_factors
from nsds.model.layout import ABSENT, DENSE, DIAGONAL, SPARSE
from nsds.model.records import stored_sparse

# storages of an inverse, beside DIAGONAL, DENSE and SPARSE: by `nsds.maths.cholesky`; and a matrix of n_lower entries with factors by
# `nsds.maths.sparse_lu` behind them, which steps may compute again
FRONTS, PLANNED = 3, 4
_SYMMETRIC = 1e-14  # relative to the largest entry: difference of transposed entries in a symmetric matrix
_NO_PIVOT = 1e-13  # relative to the absolute terms of a row: a smaller pivot is rounding, which grows in elimination
_NOT_POSITIVE = 1e-15  # relative to the diagonal entry: a smaller remainder in Cholesky's method is rounding
_LARGEST_BATCH = 64  # rows; larger matrices are inverted one by one, for less memory at a time
_BESIDE = 1e-9  # relative to the rows of a singular matrix: shift by which it has factors
_ACCURATE = 1e-12  # relative to the terms that cancel: residual of accurate sparse factors


@kernel
def subtract_product(kind, n, nnz, mem, imem, A, factor, work, x, out):
    """``out -= factor A x``; A is in mem, x and out in work.

    In: kind, n, nnz (SPARSE only), mem with its integer view imem, offsets A, x, out. In/out: work.
    """
    # rows are summed before they are subtracted: fewer roundings, and the same for all kinds of storage
    if kind == DIAGONAL:
        for i in range(n):
            work[out + i] -= factor * mem[A + i] * work[x + i]
    elif kind == DENSE:
        for i in range(n):
            row = 0.0
            for j in range(n):
                row += mem[A + i * n + j] * work[x + j]
            work[out + i] -= factor * row
    else:
        columns, data = A + n + 1, A + n + 1 + nnz
        for i in range(n):
            row = 0.0
            for k in range(imem[A + i], imem[A + i + 1]):
                row += mem[data + k] * work[x + imem[columns + k]]
            work[out + i] -= factor * row


@kernel
def add_absolute_product(kind, n, nnz, mem, imem, A, factor, work, x, out):
    """``out += factor |A| x``; A lies in mem, x (not negative) and out in work; for the arguments see `subtract_product`."""
    if kind == DIAGONAL:
        for i in range(n):
            work[out + i] += factor * abs(mem[A + i]) * work[x + i]
    elif kind == DENSE:
        for i in range(n):
            for j in range(n):
                work[out + i] += factor * abs(mem[A + i * n + j]) * work[x + j]
    else:
        columns, data = A + n + 1, A + n + 1 + nnz
        for i in range(n):
            for k in range(imem[A + i], imem[A + i + 1]):
                work[out + i] += factor * abs(mem[data + k]) * work[x + imem[columns + k]]


@inlined
def solve_with(operator, element, n, b, x, scratch, memory):
    """``x = M_hat^-1 b`` for one body of a part, its operator prepared by `invert`; offsets b, x and scratch in work."""
    data, index = operator.data + element * operator.data_stride, operator.index + element * operator.index_stride
    apply_inverse(operator.kind, n, operator.n_lower, operator.n_upper, data, index, memory.work, memory.iwork, b, x, scratch)


@kernel
def solve_sparse(kind, n, n_lower, n_upper, data, index, work, iwork, b, x, scratch):
    """`apply_inverse` with factors of a sparse matrix."""
    if kind == FRONTS:
        cholesky.solve(n, data, index, work, iwork, b, x, scratch)
    elif kind == PLANNED:
        sparse_lu.solve(data, data + n_lower, index, b, x, work, iwork)
    else:
        _solve_triangular(n, n_lower, n_upper, data, index, work, iwork, b, x, scratch)


_FACTORS = types.void(*(types.int64,) * 6, types.float64[::1], types.int64[::1], *(types.int64,) * 3)
call_solve_sparse = caller(_FACTORS)
address_of_solve_sparse = on_demand(_FACTORS, solve_sparse)


@kernel
def apply_inverse(kind, n, n_lower, n_upper, data, index, work, iwork, b, x, scratch):
    """``x = A^-1 b`` with the result of `invert` for A: reciprocals, the inverse, or triangular factors; all in work and iwork.

    In: offsets data, index, b. Out: work[x:x + n]. Work: work[scratch:scratch + n] (SPARSE and FRONTS).
    """
    if kind == DIAGONAL:
        for i in range(n):
            work[x + i] = work[data + i] * work[b + i]
    elif kind == DENSE:
        for i in range(n):
            row = 0.0
            for j in range(n):
                row += work[data + i * n + j] * work[b + j]
            work[x + i] = row
    else:
        factors = address_of_solve_sparse()
        if factors != 0:
            call_solve_sparse(factors, (kind, n, n_lower, n_upper, data, index, work, iwork, b, x, scratch))
        else:
            work[x] = math.nan  # it could not be compiled: the step tells


@tiny
def apply_inverses(bodies, rhs, out, scratch, memory):
    """``out = A^-1 rhs`` of all bodies, each with its own A; rhs and out by degree of freedom, offsets in work. Work: scratch."""
    for b in range(bodies.size):
        body = bodies[b]
        apply_inverse(body.kind, body.n, body.n_lower, body.n_upper, body.data, body.index, memory.work, memory.iwork, rhs + body.dof,
                      out + body.dof, scratch)  # fmt: skip


@kernel
def _solve_triangular(n, n_lower, n_upper, data, index, work, iwork, b, x, y):
    """``A x = b`` from ``P_r A P_c = L U``, both factors by rows, L with unit diagonal, U with reciprocals of its diagonal apart."""
    lower_column = index + 2 * (n + 1)
    upper_column = lower_column + n_lower
    row_place, column_place = upper_column + n_upper, upper_column + n_upper + n
    # 1. rows in the order of their pivots
    for i in range(n):
        work[y + iwork[row_place + i]] = work[b + i]
    # 2. forward and back substitution
    lower, upper = sparse_lu.Rows(index, lower_column, data), sparse_lu.Rows(index + n + 1, upper_column, data + n_lower)
    sparse_lu.substitute(n, lower, upper, data + n_lower + n_upper, y, work, iwork)
    # 3. columns in their order
    for i in range(n):
        work[x + i] = work[y + iwork[column_place + i]]


@kernel
def invert_in_place(n, A, size, memory, pivots):
    """``A <- A^-1`` (Gauss–Jordan, row pivoting); False if a pivot is rounding against ``size``, the sum of absolute terms of its row.

    In/out: work[A:A + n^2], work[size:size + n]. Work: iwork[pivots:pivots + n].
    """
    work = memory.work
    if n == 2:
        return _invert_two(A, size, work)
    for k in range(n):
        # 1. pivot: the largest entry relative to its row; NaN is none
        best = k
        for i in range(k + 1, n):
            if abs(work[A + i * n + k]) * work[size + best] > abs(work[A + best * n + k]) * work[size + i]:
                best = i
        if not abs(work[A + best * n + k]) > _NO_PIVOT * work[size + best]:
            return False
        # 2. exchange rows
        memory.iwork[pivots + k] = best
        work[size + k], work[size + best] = work[size + best], work[size + k]
        for j in range(n if best != k else 0):
            work[A + k * n + j], work[A + best * n + j] = work[A + best * n + j], work[A + k * n + j]
        # 3. eliminate; the inverse grows in place of the columns that are done. Zeros, as of rows far from each other, cost nothing
        reciprocal, first, end = 1.0 / work[A + k * n + k], n, 0
        work[A + k * n + k] = 1.0
        for j in range(n):
            work[A + k * n + j] *= reciprocal
            if work[A + k * n + j] != 0.0:
                first, end = min(first, j), j + 1
        for i in range(n):
            factor = work[A + i * n + k]
            if i != k and factor != 0.0:
                work[A + i * n + k] = 0.0
                for j in range(first, end):
                    work[A + i * n + j] -= factor * work[A + k * n + j]
    # 4. undo the row exchanges, as exchanges of columns of the inverse
    for k in range(n - 1, -1, -1):
        swap = memory.iwork[pivots + k]
        if swap != k:
            for i in range(n):
                work[A + i * n + k], work[A + i * n + swap] = work[A + i * n + swap], work[A + i * n + k]
    return True


@tiny
def _invert_two(A, size, work):
    """`invert_in_place` of a matrix 2 x 2: the same operations without loops."""
    a, b, c, d, size_first, size_last = work[A], work[A + 1], work[A + 2], work[A + 3], work[size], work[size + 1]
    is_exchanged = abs(c) * size_first > abs(a) * size_last
    if is_exchanged:
        a, b, c, d, size_first, size_last = c, d, a, b, size_last, size_first
    # 1. first column: (a, b; c, d) with the inverse in place of that column
    if not abs(a) > _NO_PIVOT * size_first:
        return False
    a = 1.0 / a
    b *= a
    c, d = -(c * a), d - c * b
    # 2. second column
    if not abs(d) > _NO_PIVOT * size_last:
        return False
    d = 1.0 / d
    c *= d
    a, b = a - b * c, -(b * d)
    # 3. undo the exchange
    if is_exchanged:
        a, b, c, d = b, a, d, c
    work[A], work[A + 1], work[A + 2], work[A + 3] = a, b, c, d
    return True


@tiny
def invert_dense(n, A, size, memory, pivots):
    """`invert_in_place` of a matrix whose entries are its terms. Out: work[size:size + n]."""
    for i in range(n):
        s = 0.0
        for j in range(n):
            s += abs(memory.work[A + i * n + j])
        memory.work[size + i] = s
    return invert_in_place(n, A, size, memory, pivots)


@kernel
def is_positive_definite(n, A, L, work):
    """Whether a symmetric matrix in work[A:] has a Cholesky factor; work: work[L:L + n^2]."""
    for i in range(n * n):
        work[L + i] = work[A + i]
    return dense_factors.cholesky(n, n, _NOT_POSITIVE, view(work, L, n * n)) == n


def weighted_sum(records, part, terms):
    """(kind, matrices) of ``sum factor * field`` for the elements (members, elements) of a part, in a form that `invert` takes.

    A field that is missing counts as zero, but a missing M as the identity.
    """
    kinds = {name: part[name + "_kind"].item() for _, name in terms if part[name] != ABSENT}
    kind = DENSE if DENSE in kinds.values() else max(kinds.values(), default=DIAGONAL)
    n = part["n"].item()
    terms = [(factor, name) for factor, name in terms if name in kinds or name == "M"]
    if kind == DIAGONAL:
        return kind, sum(factor * (records[name] if name in kinds else np.ones((*records.shape, n))) for factor, name in terms)
    if kind == DENSE:
        return kind, sum(factor * dense(records, part, name) for factor, name in terms)
    return kind, [[sum(factor * sparse(element, part, name) for factor, name in terms) for element in member] for member in records]


def dense(records, part, name):
    """A matrix field of the elements (members, elements) of a part as dense matrices; the identity for an M that is missing."""
    n = part["n"].item()
    if part[name] == ABSENT:
        return np.broadcast_to(np.eye(n), (*records.shape, n, n))
    if part[name + "_kind"] == DENSE:
        return records[name]
    result = np.zeros((*records.shape, n, n))
    for where in np.ndindex(records.shape):
        field = records[name][where]
        result[where] = np.diag(field) if part[name + "_kind"] == DIAGONAL else stored_sparse(field, n).toarray()
    return result


def sparse(element, part, name):
    """A matrix field of one element of a part as a sparse matrix; the identity for an M that is missing, 0 for others."""
    from scipy.sparse import csr_array, diags_array, eye_array

    n = part["n"].item()
    if part[name] == ABSENT:
        return eye_array(n) if name == "M" else csr_array((n, n))
    kind = part[name + "_kind"]
    if kind == DIAGONAL:
        return diags_array(element[name])
    return csr_array(element[name]) if kind == DENSE else stored_sparse(element[name], n)


class SingularMatrixError(ValueError):
    """A matrix that cannot be inverted; ``where`` is the index (member, element)."""

    def __init__(self, where):
        super().__init__("singular matrix")
        self.where = where

    def __reduce__(self):
        return SingularMatrixError, (self.where,)


def invert(kind, matrices):
    """Data for `apply_inverse` of a batch of matrices.

    Parameters
    ----------
    kind : int
        DIAGONAL, DENSE or SPARSE.
    matrices : ndarray (members, elements, n) or (members, elements, n, n), or nested lists of scipy.sparse
        The matrices.

    Returns
    -------
    data : ndarray (members, elements, k), index : ndarray (members, elements, j), n_lower : int, n_upper : int

    Raises
    ------
    SingularMatrixError
        To working precision.
    """
    if kind == SPARSE:
        return _factorise(matrices)
    no_index = np.zeros((*matrices.shape[:2], 0), np.int64)
    if kind == DIAGONAL:
        zero = np.argwhere((matrices == 0).any(axis=-1))
        if zero.size:
            raise SingularMatrixError(zero[0])
        return 1.0 / matrices, no_index, 0, 0
    inverse = np.empty_like(matrices)
    for where in np.ndindex(matrices.shape[:2]) if matrices.shape[-1] > _LARGEST_BATCH else [()]:
        try:
            inverse[where] = _dense_inverse(matrices[where])
        except SingularMatrixError as error:
            raise SingularMatrixError((*where, *error.where)) from None
    return inverse.reshape(*matrices.shape[:2], -1), no_index, 0, 0


def inverse_of(records, part, name, terms, formula, last=()):
    """(kind, result of `invert`) of the `weighted_sum` for all elements of a part; ``formula`` names the singular matrix in an error.

    ``last``: coordinates whose rows and columns of the inverse are kept, if the matrix is factorised in fronts; None: in rows, which takes
    less to prepare.
    """
    records = records.reshape(records.shape[0], -1)
    kind, matrices = weighted_sum(records, part, terms)
    try:
        fronts = _in_fronts(matrices, np.asarray(last, np.int64)) if kind == SPARSE and last is not None else None
        return (kind, *invert(kind, matrices)) if fronts is None else (FRONTS, *fronts, 0, 0)
    except SingularMatrixError as error:
        member, element = error.where[:2]
        where = (f", element {element}" if part["count"] > 1 else "") + (f", member {member}" if records.shape[0] > 1 else "")
        row = _dependent_row(kind, matrices[member][element])
        raise ValueError(f"part '{name}'{where}: the iteration matrix {formula}: row {row} is zero or depends on the others") from None


def _dependent_row(kind, A):
    """Index of the zero row of a singular matrix, or of the one with the largest share in a combination of rows that is zero."""
    from scipy.sparse import csr_array, diags_array, eye_array

    if kind == DIAGONAL:
        return int(abs(A).argmin())
    A = csr_array(A)
    size = abs(A).sum(axis=1)
    if (size == 0).any():
        return int((size == 0).argmax())
    # left null vector of rows of size 1, by inverse iteration beside the singular matrix
    lu = superlu.factorise((diags_array(1.0 / size) @ A).T.tocsc() + _BESIDE * eye_array(len(size), format="csc"))
    y = np.random.default_rng(0).normal(size=len(size))
    for _ in range(3):
        y = lu.solve(y)
        y /= abs(y).max()
    return int(abs(y).argmax())


def _dense_inverse(A):
    try:
        inverse = np.linalg.inv(A)
    except np.linalg.LinAlgError:
        where = next(i for i in np.ndindex(A.shape[:-2]) if np.linalg.matrix_rank(A[i]) < A.shape[-1])
        raise SingularMatrixError(where) from None
    unit = np.sqrt(abs(np.diagonal(A, axis1=-2, axis2=-1)))  # coordinates may have units, as lengths and angles
    unit = np.where(unit > 0, unit, 1.0)
    scaled, back = A / (unit[..., :, None] * unit[..., None, :]), inverse * (unit[..., :, None] * unit[..., None, :])
    condition = abs(scaled).sum(axis=-1).max(axis=-1) * abs(back).sum(axis=-1).max(axis=-1)
    bad = np.argwhere(~(condition < 1 / np.finfo(float).eps))
    if bad.size:
        raise SingularMatrixError(tuple(bad[0]))
    return inverse


def _factorise(matrices):
    """Sparse factors of a batch of matrices, in memory of one layout for all of them."""
    shape = (len(matrices), len(matrices[0]))
    # 1. factors; patterns may differ, so the largest one decides the room
    factors = {where: _sparse_factors(matrices[where[0]][where[1]], where) for where in np.ndindex(shape)}
    n = matrices[0][0].shape[0]
    n_lower = max(f["lower"].nnz for f in factors.values())
    n_upper = max(f["upper"].nnz for f in factors.values())
    data = np.zeros((*shape, n_lower + n_upper + n))
    index = np.zeros((*shape, 2 * (n + 1) + n_lower + n_upper + 2 * n), np.int64)
    # 2. values: L, U, and reciprocals of the diagonal
    for where, f in factors.items():
        lower, upper = f["lower"], f["upper"]
        data[where][: lower.nnz] = lower.data
        data[where][n_lower : n_lower + upper.nnz] = upper.data
        data[where][n_lower + n_upper :] = f["reciprocal"]
        # 3. patterns: rows, columns, and both permutations
        at = 2 * (n + 1)
        index[where][: n + 1], index[where][n + 1 : at] = lower.indptr, upper.indptr
        index[where][at : at + lower.nnz] = lower.indices
        index[where][at + n_lower : at + n_lower + upper.nnz] = upper.indices
        index[where][at + n_lower + n_upper :] = np.concatenate([f["row_place"], f["column_place"]])
    return data, index, n_lower, n_upper


def _in_fronts(matrices, last):
    """(data, index) of `nsds.maths.cholesky.factorise` of a batch; None where matrices are narrow, or not symmetric positive definite."""
    pattern = sum(abs(matrix) for member in matrices for matrix in member).tocsr()
    if not cholesky.is_wide(pattern) or any(
        abs(matrix - matrix.T).max() > _SYMMETRIC * abs(matrix).max() for member in matrices for matrix in member
    ):
        return None
    planned = cholesky.plan(pattern, last)
    data, index = np.zeros((len(matrices), len(matrices[0]), planned.size)), []
    try:
        for where in np.ndindex(data.shape[:2]):
            index.append(cholesky.factorise(matrices[where[0]][where[1]], planned, data[where]))
    except np.linalg.LinAlgError:
        return None
    return data, np.array(index).reshape(*data.shape[:2], -1)


def _sparse_factors(A, where):
    """Sparse LU factors: diagonal pivots preserve sparsity of a mass-like matrix; if they lose accuracy, partial pivoting is used."""
    from scipy.sparse import tril, triu

    # 1. symmetric mode, then partial pivoting; accepted by the residual for one right-hand side
    A = A.tocsc()
    b = A @ np.ones(A.shape[0])
    for options in (
        {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}},
        {"permc_spec": "COLAMD"},
    ):
        try:
            lu = superlu.factorise(A, **options)
        except RuntimeError:
            continue
        x = lu.solve(b)
        # relative to the terms that cancel: b itself may be small, as K 1 is
        if abs(A @ x - b).max() <= _ACCURATE * (abs(A) @ abs(x)).max():
            break
    else:
        raise SingularMatrixError(where)
    # 2. a small diagonal entry of U: singular to working precision
    diagonal = lu.U.diagonal()
    if not abs(diagonal).min() > np.finfo(float).eps * abs(diagonal).max():
        raise SingularMatrixError(where)
    return {
        "lower": tril(lu.L.tocsr(), -1, "csr"),
        "upper": triu(lu.U.tocsr(), 1, "csr"),
        "reciprocal": 1.0 / diagonal,
        "row_place": lu.perm_r,
        "column_place": lu.perm_c,
    }


@inlined
def apply_inverse_in_lanes(width, kind, n, data, b, x, work):
    """``x = A^-1 b``, as `apply_inverse` does, of several members at once."""
    for i in range(n):
        if kind == DENSE:
            row = spread(0.0, width)
            for j in range(n):
                row = row + load(work, data + i * n + j, width) * load(work, b + j, width)
            put(work, x + i, width, row)
        else:
            put(work, x + i, width, load(work, data + i, width) * load(work, b + i, width))
