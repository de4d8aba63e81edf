"""Relations: the output y of an interaction as a function of the state of one or two parts, and the input it gives back."""

import numpy as np

from nsds import _checks
from nsds.systems import _is_sparse


def lagrangian_linear_relation(H, b=None, D=None):
    """Linear relation ``y = H q + b + D lambda``, ``ydot = H v + D lambda``, ``p = H^T lambda`` (seed 001; seed 003, eq. 1.30–1.32).

    Parameters
    ----------
    H : array_like (m, n) or (n,), or scipy.sparse (m, n)
        Jacobian, one row per scalar constraint; between two parts the columns of the first, then those of the second.
    b : array_like (m,), optional
        Constant gap.
    D : array_like (m, m), optional
        Compliance of the constraint. Under a scheme at velocity level lambda is an impulse: D acts on ydot, and y is ``H q + b``.

    Raises
    ------
    TypeError, ValueError
        Wrong shape, NaN or infinity.

    Examples
    --------
    >>> import nsds
    >>> nsds.lagrangian_linear_relation(H=[[1, 0, 0]])["H"]
    array([[1., 0., 0.]])
    """
    owner = "lagrangian_linear_relation"
    if _is_sparse(H):
        rows = H.tocsr()
        rows.sum_duplicates()
        m = H.shape[0]
        jacobian = {
            "indptr": rows.indptr.astype(np.int64),
            "indices": rows.indices.astype(np.int64),
            "data": _checks.array(owner, "H", rows.data),
        }
    else:
        jacobian = np.atleast_2d(_checks.array(owner, "H", H))
        if jacobian.ndim != 2 or jacobian.size == 0:
            raise ValueError(f"{owner}: H must have shape (m, n), got {jacobian.shape}")
        m = jacobian.shape[0]
    relation = {"relation": owner, "m": m, "n": H.shape[1] if _is_sparse(H) else jacobian.shape[1], "H": jacobian}
    if b is not None:
        relation["b"] = _checks.array(owner, "b", np.atleast_1d(b), shape=(m,))
    if D is not None:
        relation["D"] = _checks.array(owner, "D", np.atleast_2d(D), shape=(m, m))
    return relation
