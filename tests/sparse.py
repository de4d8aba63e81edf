"""Sparse matrices of a user, in all formats of scipy, and what they hold."""

import numpy as np
import scipy.sparse as sp

FORMATS = ("coo", "csr", "csc", "bsr", "dia", "lil", "dok")


def kept(matrix):
    """All that a sparse matrix holds: its format, type of numbers and arrays, or lists."""
    arrays = {name: value for name, value in vars(matrix).items() if isinstance(value, np.ndarray)}
    arrays |= {f"coords {k}": each for k, each in enumerate(getattr(matrix, "coords", ()))}
    held = {name: (value.dtype, value.tolist()) for name, value in arrays.items()}
    return matrix.format, matrix.dtype, matrix.nnz, matrix.toarray().tolist(), held


def stored(matrix, kind):
    """A sparse matrix with what is stored twice, and out of order, where its format can be so."""
    row, column = (each[::-1] for each in matrix.nonzero())
    value = matrix[row, column]
    coo = sp.coo_array((np.r_[value, value], (np.r_[row, row], np.r_[column, column])), shape=matrix.shape)
    coo.data[: value.size], coo.data[value.size :] = value - value // 2, value // 2
    if kind == "coo":
        return coo
    if kind == "csr":
        order = np.argsort(coo.row, kind="stable")
        begin = np.searchsorted(coo.row[order], np.arange(matrix.shape[0] + 1))
        return sp.csr_array((coo.data[order], coo.col[order], begin), shape=matrix.shape)
    if kind == "csc":
        order = np.argsort(coo.col, kind="stable")
        begin = np.searchsorted(coo.col[order], np.arange(matrix.shape[1] + 1))
        return sp.csc_array((coo.data[order], coo.row[order], begin), shape=matrix.shape)
    return sp.coo_array(matrix).asformat(kind)
