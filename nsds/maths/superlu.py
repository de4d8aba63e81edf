"""Factors of sparse matrices by SuperLU, with structurally singular ones refused before."""

import numpy as np


def factorise(A, **options):
    """``scipy.sparse.linalg.splu(A, **options)``; RuntimeError where A is exactly singular.

    If no permutation of the stored nonzero entries fills the diagonal, SuperLU finds a column without a pivot and uses an index
    that was never written, which can end the process. So this is checked before.
    """
    from scipy.sparse.csgraph import structural_rank
    from scipy.sparse.linalg import splu

    A = A.tocsc()
    n = A.shape[0]
    if not (A.diagonal() != 0.0).all():
        i, j = A.nonzero()
        if structural_rank(type(A)((np.ones(i.size), (i, j)), shape=A.shape)) < n:
            raise RuntimeError("matrix is singular by its pattern")
    return splu(A, **options)
