"""Dynamical systems: pure constructors of parts, which `nsds.system` joins to a record."""

import sys

import numpy as np

from nsds import _checks
from nsds.maths import cholesky, superlu
from nsds.model.functions import function_name
from nsds.model.records import pack


def lagrangian_linear(M, K=None, C=None, fext=None, *, q, v, z=None, count=None):
    """Linear time-invariant Lagrangian system ``M v' + C v + K q = fext(t, z) + p``, ``q' = v`` ([Notes], eq. 10.10).

    Parameters
    ----------
    M, K, C : array_like (n, n) or (n,), or scipy.sparse, optional for K and C
        Mass (symmetric), stiffness, damping. A 1-D array is the diagonal. With ``count`` they hold for every element; a 3-D array
        ``(count, n, n)`` gives each element its own.
    fext : array_like (n,) or function ``fext(t, z, out)``, optional
        Constant external force, or a function that writes the force at time ``t`` into ``out`` (n,).
    q, v : array_like (n,)
        Coordinates and velocities at the start. With ``count`` also ``(count, n)``; for n = 1 also ``(count,)``.
    z : array_like, optional
        Parameters passed to ``fext``.
    count : int, optional
        Makes the part an array of that many systems that share one description.

    Returns
    -------
    dict
        A part for `nsds.system`. In the record it has the fields q, v, p (generalised impulse ``H^T lambda`` of the last step) and
        those of M, K, C, fext, z that were given.

    Raises
    ------
    TypeError, ValueError
        Wrong shape or type, NaN or infinity, M not symmetric or with a negative eigenvalue, or a function that has the wrong
        arguments or does not compile.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> ball = nsds.lagrangian_linear(M=np.diag([1.0, 1.0, 4e-3]), fext=[-9.81, 0, 0], q=[1, 0, 0], v=[0, 0, 0])
    >>> nsds.system(ball=ball)["ball"]["q"]
    array([1., 0., 0.])
    """
    owner = "lagrangian_linear"
    if count is not None:
        count = _checks.integer(owner, "count", count, low=1)
    # 1. state
    n = _order(owner, M)
    fields = {name: per_element(owner, name, value, n, count) for name, value in (("q", q), ("v", v))}
    fields["p"] = np.zeros_like(fields["q"])
    # 2. matrices and force
    fields["M"] = mass_field(owner, "M", M, n, count, regular=False)
    for name, matrix in (("K", K), ("C", C)):
        if matrix is not None:
            fields[name] = matrix_field(owner, name, matrix, n, count)
    if callable(fext):
        fields["fext"] = function_name(fext, owner, "fext")
    elif fext is not None:
        fields["fext"] = per_element(owner, "fext", fext, n, count)
    if z is not None:
        z = _checks.array(owner, "z", z)
        fields["z"] = per_element(owner, "z", z, z.shape[-1] if z.ndim else 1, count)
    return {"kind": owner, "record": pack(fields, count)}


def _require_symmetric(where, matrix, transpose):
    """Raises unless a mass is symmetric; K and C need not be: circulatory and gyroscopic forces make them unsymmetric."""
    difference = abs(matrix - transpose).max()
    if difference > _ROUNDING * abs(matrix).max():
        raise ValueError(f"{where} must be symmetric, got a difference of {difference:.3g} from its transpose")


_ROUNDING = 1e-9  # of the largest entry of a mass: accepted asymmetry, and magnitude of a negative eigenvalue


def require_mass(where, M, is_dense, regular):
    """Raises a ValueError unless masses are symmetric and positive definite, or semidefinite if they need not be regular.

    Parameters
    ----------
    where : str
        What the error names.
    M : ndarray (..., n) or (..., n, n), or records of compressed rows
        Masses. Of compressed rows only the diagonal is checked: the constructor has checked the rest.
    is_dense : bool
        Whether these are matrices.
    regular : bool
        Whether no eigenvalue may be zero.
    """
    # 1. compressed rows: diagonal entries only
    if M.dtype.names:
        indptr = M["indptr"].reshape(-1, M["indptr"].shape[-1])
        rows = np.stack(
            [np.repeat(np.arange(each.size - 1), np.diff(each)) for each in (indptr[:1] if (indptr == indptr[0]).all() else indptr)]
        )
        least = np.where(M["indices"].reshape(len(indptr), -1) == rows, M["data"].reshape(len(indptr), -1), 0.0).min(initial=0.0)
        regular = False
    # 2. dense: symmetric, and a Cholesky factor is quicker than eigenvalues, which decide where it fails
    elif is_dense:
        if (M.swapaxes(-1, -2) != M).any():
            _require_symmetric(where, M, M.swapaxes(-1, -2))
        try:
            np.linalg.cholesky(M)
            return
        except np.linalg.LinAlgError:
            least = np.linalg.eigvalsh(M).min()
            least = 0.0 if abs(least) <= _ROUNDING * abs(M).max() else least
    # 3. diagonal
    else:
        least = M.min()
    if least < 0 or (regular and least == 0):
        wanted, given = "definite" if regular else "semidefinite", "an eigenvalue" if is_dense else "an entry"
        raise ValueError(f"{where} must be positive {wanted}, got {given} of {least:.3g}")


def is_sparse(matrix):
    """True for scipy.sparse, without importing scipy for users who have none of it."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(matrix)


def _order(owner, M):
    if not is_sparse(M):
        M = _checks.array(owner, "M", M)
    return M.shape[-1] if is_sparse(M) else _checks.length(owner, "M", M)


def per_element(owner, name, value, n, count):
    """Vector (n,), or (count, n) for an array part."""
    vector = _checks.array(owner, name, value)
    if vector.ndim == 0 and n == 1:
        vector = vector.reshape(1)
    if count is not None and n == 1 and vector.shape == (count,):
        vector = vector.reshape(count, 1)
    if vector.shape == (n,) and count is not None:
        vector = np.broadcast_to(vector, (count, n))
    shape = (n,) if count is None else (count, n)
    if vector.shape != shape:
        raise ValueError(f"{owner}: {name} must have shape {shape}, got {vector.shape}")
    return vector


def mass_field(owner, name, matrix, n, count, regular):
    """`matrix_field` of a mass, which is symmetric and positive definite, or semidefinite if it need not be regular."""
    field = matrix_field(owner, name, matrix, n, count)
    if isinstance(field, dict):
        _require_sparse_mass(f"{owner}: {name}", matrix.tocsc(copy=True))
    else:
        require_mass(f"{owner}: {name}", field, field.ndim == (2 if count is None else 3), regular)
    return field


def _require_sparse_mass(where, M):
    """Semidefiniteness by Sylvester's law of inertia: diagonal pivots of a symmetric matrix have the signs of its eigenvalues."""
    from scipy.sparse import eye_array

    # 1. symmetry and diagonal, cheap
    _require_symmetric(where, M, M.T)
    least = M.diagonal().min()
    # 2. a wide matrix by dense blocks, shifted by its rounding, as a semidefinite one has no Cholesky factor
    if least >= 0 and cholesky.is_wide(M):
        shifted = (M + _ROUNDING * abs(M).max() * eye_array(M.shape[0])).tocsr()
        plan = cholesky.plan(shifted, np.zeros(0, np.int64))
        try:
            cholesky.factorise(shifted, plan, np.zeros(plan.size))
        except np.linalg.LinAlgError:
            raise ValueError(f"{where} must be positive semidefinite, and has a negative eigenvalue") from None
    # 3. a narrow one by SuperLU with pivots on the diagonal
    elif least >= 0:
        try:
            factors = superlu.factorise(M, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError:  # exactly singular: the factorisation of the step decides
            return
        least = factors.U.diagonal().min() if (factors.perm_r == factors.perm_c).all() else 0.0
    if least < -_ROUNDING * abs(M).max():
        raise ValueError(f"{where} must be positive semidefinite, got a pivot of {least:.3g}")


def matrix_field(owner, name, matrix, n, count):
    """Diagonal (n,), dense (n, n) or the arrays of compressed rows; stacked for an array part."""
    if is_sparse(matrix):
        return _compressed_rows(owner, name, matrix, n, count)
    dense = _checks.array(owner, name, matrix)
    if dense.ndim == 0:
        dense = dense.reshape(1, 1)
    single = dense.shape[1:] if count is not None and dense.ndim == 3 else dense.shape
    if single not in ((n,), (n, n)) or (dense.ndim == 3 and dense.shape[0] != count):
        stacked = "" if count is None else f" or {(count, n, n)}"
        raise ValueError(f"{owner}: {name} must have shape {(n, n)} or {(n,)}{stacked}, got {dense.shape}")
    return dense if count is None or dense.ndim == 3 else np.broadcast_to(dense, (count, *single))


def compressed_rows(owner, name, matrix):
    """Fields of a record for a scipy.sparse matrix: compressed rows, columns ascending, duplicates summed, entries finite.

    Raises
    ------
    TypeError, ValueError
        Entries that are not real numbers, NaN or infinite.
    """
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    data = _checks.floats(owner, name, rows.data)
    if not np.isfinite(data).all():
        k = np.flatnonzero(~np.isfinite(data))[0]
        i = np.searchsorted(rows.indptr, k, side="right") - 1
        raise ValueError(f"{owner}: {name} must be finite, got {data[k]} at index {[int(i), int(rows.indices[k])]}")
    return {"indptr": rows.indptr.astype(np.int64), "indices": rows.indices.astype(np.int64), "data": data}


def _compressed_rows(owner, name, matrix, n, count):
    if matrix.shape != (n, n):
        raise ValueError(f"{owner}: {name} must have shape {(n, n)}, got {matrix.shape}")
    parts = compressed_rows(owner, name, matrix)
    if count is not None:
        parts = {key: np.broadcast_to(value, (count, *value.shape)) for key, value in parts.items()}
    return parts


def pattern_field(owner, name, pattern, n, count):
    """Places of the entries of a matrix that are not zero, by compressed rows; stacked for an array part."""
    if not is_sparse(pattern):
        from scipy.sparse import csr_array

        dense = np.asarray(pattern)
        dense = dense.astype(np.float64) if dense.dtype.kind == "b" else _checks.array(owner, name, dense)
        if dense.shape != (n, n):
            raise ValueError(f"{owner}: {name} must have shape {(n, n)}, got {dense.shape}")
        pattern = csr_array(dense)
    entries = pattern.tocoo(copy=True)
    entries.data = (_checks.array(owner, name, entries.data) != 0).astype(np.float64)  # duplicates must not cancel
    rows = entries.tocsr()
    rows.eliminate_zeros()
    if rows.nnz == 0:
        raise ValueError(f"{owner}: {name} must have an entry that is not zero, got none")
    stored = _compressed_rows(owner, name, rows, n, count)
    return {key: stored[key] for key in ("indices", "indptr")}


def control_fields(owner, n, T, u, n_u, z, count):
    """Fields T, u, z of a controlled part, and n_u if it does not follow from them."""
    # 1. length of u, from each argument that tells it
    fields = {}
    if T is not None and u is None:
        raise ValueError(f"{owner}: T is the weight of u, which is missing; give u=numpy.zeros(n_u) for one that is set later")
    known = {}
    if T is not None and not callable(T):
        fields["T"] = _weight(owner, T, n, count)
        known["T"] = fields["T"].shape[-1]
    elif T is None:
        known["T (the identity)"] = n
    if n_u is not None:
        known["n_u"] = _checks.integer(owner, "n_u", n_u, low=1)
    if u is not None and not callable(u):
        is_one_each = _checks.shape_of(owner, "u", u) == (count,) and count not in known.values()
        known["u"] = 1 if is_one_each else _checks.length(owner, "u", u)
    # 2. they must agree
    if u is not None:
        if not known:
            raise ValueError(f"{owner}: T and u are both functions: n_u, the length of u, must be given")
        if len(set(known.values())) > 1:
            raise ValueError(
                f"{owner}: the length of u is not clear: " + ", ".join(f"{value} from {name}" for name, value in known.items())
            )
        n_u = next(iter(known.values()))
        # 3. fields; n_u is stored only where T and u are functions
        if callable(T):
            fields["T"] = function_name(T, owner, "T")
        fields["u"] = function_name(u, owner, "u") if callable(u) else per_element(owner, "u", u, n_u, count)
        if callable(T) and callable(u):
            fields["n_u"] = np.full(() if count is None else (count,), n_u)
    if z is not None:
        z = _checks.array(owner, "z", z)
        fields["z"] = per_element(owner, "z", z, z.shape[-1] if z.ndim else 1, count)
    return fields


def _weight(owner, T, n, count):
    weight = _checks.array(owner, "T", T, at_least=2)
    if weight.shape[-2] != n or weight.ndim > 2 + (count is not None) or (weight.ndim == 3 and weight.shape[0] != count):
        raise ValueError(f"{owner}: T must have shape ({n}, n_u), got {weight.shape}")
    return weight if count is None or weight.ndim == 3 else np.broadcast_to(weight, (count, *weight.shape))
