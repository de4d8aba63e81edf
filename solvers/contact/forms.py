"""From what users have to what contact solvers take: rows of blocks, and the reduced form of global problems."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._jit import kernel
from nsds.maths import superlu
from nsds.solvers.box import forms
from nsds.solvers.box.signature import place_of

_FULL = 10  # contacts up to which a dense matrix is not searched for zeros
_SMALL_BODY = 12  # unknowns of M that belong together, up to which they are inverted
_FEW_UNKNOWNS = 200  # of a global problem, up to which its matrices are dense
_SINGULAR = 1e-15  # least over largest pivot
_CHUNK = 256  # columns that a factorised M is applied to at a time


def block_rows(W, d, full=_FULL):
    """(row, column, data) of a square matrix from `nsds.solvers.box.forms.matrix`: rows of d × d blocks, as solvers want them.

    Columns ascend, the pattern is symmetric, and the blocks of the diagonal are stored. full: contacts up to which an array is not searched
    for blocks of zeros.
    """
    n = W.shape[0] // d
    if not hasattr(W, "tocsr"):
        if n <= full:
            return *forms.dense_pattern(n), W.reshape(n, d, n, d).transpose(0, 2, 1, 3).reshape(-1)
        W, stored, row = np.array(W, order="C"), np.zeros((n, n), np.int64), np.zeros(n + 1, np.int64)
        mark_blocks(d, W, stored, row)
        column = np.empty(row[n], np.int64)
        data = np.empty(column.size * d * d)
        copy_blocks(d, W, stored, column, data)
        return row, column, data
    i, j = W.row.astype(np.int64), W.col.astype(np.int64)
    row, column, _ = forms.with_symmetric_pattern(i // d, j // d, W.data, n)
    data = np.zeros(column.size * d * d)
    add_entries(d, i, j, W.data, row, column, data)
    return row, column, data


@kernel
def mark_blocks(d, W, stored, row):
    """Mark the blocks of W that are not 0, their mirror images and the diagonal. In/out: stored (nc, nc), row (nc + 1,); zeros at first."""
    n = row.size - 1
    for c in range(n):
        stored[c, c] = 1
        for e in range(n):
            for a in range(d):
                for b in range(d):
                    if W[c * d + a, e * d + b] != 0.0:
                        stored[c, e] = stored[e, c] = 1
    for c in range(n):
        row[c + 1] = row[c]
        for e in range(n):
            row[c + 1] += stored[c, e]


@kernel
def copy_blocks(d, W, stored, column, data):
    """Blocks of W that `mark_blocks` has marked, row by row. Out: column, data."""
    k = 0
    for c in range(stored.shape[0]):
        for e in range(stored.shape[1]):
            if stored[c, e] == 1:
                column[k] = e
                for a in range(d):
                    for b in range(d):
                        data[(k * d + a) * d + b] = W[c * d + a, e * d + b]
                k += 1


@kernel
def add_entries(d, i, j, x, row, column, data):
    """Add entries x at (i, j) to the blocks that hold them. In/out: data."""
    for e in range(x.size):
        k = place_of(row, column, i[e] // d, j[e] // d)
        data[(k * d + i[e] % d) * d + j[e] % d] += x[e]


def count(owner, d, field, vector):
    """Number of contacts of a vector with d components for each."""
    if vector.size % d:
        _checks.finite(owner, field, vector)
        raise ValueError(f"{owner}: {field} must have {d} components for each contact, got {vector.size}")
    return vector.size // d


@lru_cache(maxsize=64)
def disks(n_contacts, disk):
    """(nc,) of contacts of one kind; for reading."""
    return np.full(n_contacts, disk)


def coefficients(owner, mu, mu_r, n_contacts):
    """(2 nc,): coefficients of friction and of rolling friction, each from a number or one for each contact; they may be any."""
    result = np.empty((n_contacts, 2))
    for i, (field, value) in enumerate((("mu", mu), ("mu_r", mu_r))):
        value = value if type(value) is float else _checks.floats(owner, field, value)
        if type(value) is not float and value.shape not in ((), (n_contacts,)):
            _checks.finite(owner, field, value)
            raise ValueError(f"{owner}: {field} must be a number or have shape {(n_contacts,)}, got {value.shape}")
        result[:, i] = value
    return result.reshape(-1)


def friction(owner, mu, mu_r, n_contacts):
    """`coefficients`, which must be finite and at least 0."""
    result = coefficients(owner, mu, mu_r, n_contacts)
    for field, value in (("mu", mu), ("mu_r", mu_r)):
        value = _checks.array(owner, field, value)
        if (value < 0.0).any():
            raise ValueError(f"{owner}: {field} must not be negative, got {value.min()}")
    return result


def check_diagonal(owner, field, W):
    """W_ii >= 0: what a mass can give."""
    diagonal = W.diagonal()
    wrong = np.flatnonzero(diagonal < 0.0)
    if wrong.size:
        raise ValueError(f"{owner}: {field} must not have negative entries on its diagonal, got {diagonal[wrong[0]]} at {wrong[0]}")


def factorised(owner, M):
    """Function ``x -> M^-1 x``. Raises ValueError where M is singular."""
    if not hasattr(M, "tocsr"):
        if not M.size:
            return lambda x: x
        from scipy.linalg.lapack import dgetrf, dgetrs

        factors, pivots, _ = dgetrf(M)
        diagonal = abs(factors.diagonal())
        if diagonal.min() <= _SINGULAR * diagonal.max():
            raise ValueError(f"{owner}: M must be regular, it is singular")
        return lambda x: dgetrs(factors, pivots, x)[0]
    import scipy.sparse as sp

    try:
        return superlu.factorise(sp.csc_array(M)).solve
    except RuntimeError:
        raise ValueError(f"{owner}: M must be regular, it is singular") from None


def without_equations(owner, W, V, U, R, q, s):
    """(W, q) of ``u = W r + V l + q`` once the equations ``U r + R l + s = 0`` are eliminated; matrices are sparse."""
    solve, inverse_U = inverse_times(owner, R, U.tocsc())
    return (W - V @ inverse_U).tocsr(), q - V @ solve(s)


def inverse_times(owner, M, H):
    """Function ``x -> M^-1 x`` for vectors, and ``M^-1 H``, sparse where M falls apart into small blocks.

    Raises ValueError where M is singular.
    """
    import scipy.sparse as sp

    if not hasattr(M, "tocsr"):
        solve = factorised(owner, M)
        return solve, solve(H.toarray() if hasattr(H, "toarray") else H)
    M = M.tocoo()
    if M.nnz == M.shape[0] and (M.row == M.col).all():
        diagonal = M.diagonal()
        if not (diagonal != 0.0).all():
            raise ValueError(f"{owner}: M must be regular, it is singular")
        return lambda x: x / diagonal, sp.csc_array((H.data / diagonal[H.indices], H.indices, H.indptr), shape=H.shape)
    n_bodies, body = sp.csgraph.connected_components(M, directed=False) if M.shape[0] else (0, np.zeros(0, int))
    if np.bincount(body).max(initial=0) <= _SMALL_BODY:
        inverse = _inverse_of_blocks(owner, M, n_bodies, body)
        return lambda x: inverse @ x, inverse @ H
    solve = factorised(owner, M)
    chunks = [sp.csr_array(solve(H[:, k : k + _CHUNK].toarray())) for k in range(0, H.shape[1], _CHUNK)]
    return solve, sp.hstack(chunks, format="csr") if chunks else H


def _inverse_of_blocks(owner, M, n_bodies, body):
    """Sparse inverse of a matrix that is block diagonal up to the order of its unknowns."""
    import scipy.sparse as sp

    n = M.shape[0]
    order = np.argsort(body, kind="stable")
    size = np.bincount(body, minlength=n_bodies)
    begin = np.concatenate([[0], np.cumsum(size)])
    place = np.empty(n, np.int64)  # of an unknown within its body
    place[order] = np.arange(n) - begin[body[order]]
    M = M.tocoo()
    rows, columns, data = [], [], []
    for m in np.unique(size):
        chosen = np.flatnonzero(size == m)
        number = np.full(n_bodies, -1)
        number[chosen] = np.arange(chosen.size)
        entry = number[body[M.row]] >= 0
        blocks = np.zeros((chosen.size, m, m))
        np.add.at(blocks, (number[body[M.row[entry]]], place[M.row[entry]], place[M.col[entry]]), M.data[entry])
        try:
            blocks = np.linalg.inv(blocks)
        except np.linalg.LinAlgError:
            raise ValueError(f"{owner}: M must be regular, a block of {m} unknowns is singular") from None
        unknowns = order[begin[chosen][:, None] + np.arange(m)]
        rows.append(np.repeat(unknowns, m, axis=1).reshape(-1))
        columns.append(np.tile(unknowns, (1, m)).reshape(-1))
        data.append(blocks.reshape(-1))
    return sp.csr_array((np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))), shape=(n, n))


def global_matrices(owner, d, M, H, q, b):
    """Checked (M, H, q, b) of ``M v = q + H r``, ``u = H^T v + b``: M and H dense for few unknowns, else H sparse by columns."""
    q, b = _checks.array(owner, "q", q, n_dims=1), _checks.array(owner, "b", b, n_dims=1)
    count(owner, d, "b", b)
    M = forms.matrix(owner, "M", M, (q.size, q.size))
    H = forms.matrix(owner, "H", H, (q.size, b.size))
    if q.size <= _FEW_UNKNOWNS:
        return *(X.toarray() if hasattr(X, "toarray") else X for X in (M, H)), q, b
    import scipy.sparse as sp

    return sp.coo_array(M), sp.csc_array(H), q, b


class Panels(NamedTuple):
    """Unknowns that contacts act on, with H and G there: see `nsds.solvers.contact.panels`."""

    panel: np.ndarray
    unknown: np.ndarray
    H: np.ndarray
    G: np.ndarray


def panels(d, H, G):
    """`Panels` of sparse H and G = M^-1 H, (n, d nc)."""
    import scipy.sparse as sp

    H, G = sp.coo_array(H), sp.coo_array(G)
    n, n_contacts = H.shape[0], H.shape[1] // d
    keys = [matrix.col.astype(np.int64) // d * n + matrix.row for matrix in (H, G)]
    places = np.unique(np.concatenate(keys))
    contact, unknown = np.divmod(places, n) if n else (places, places)
    size = np.bincount(contact, minlength=n_contacts)
    panel = np.concatenate([[0], np.cumsum(size)])
    entries = []
    for matrix, key in zip((H, G), keys, strict=True):
        i = np.searchsorted(places, key)
        c = contact[i]
        entries.append(np.zeros(d * unknown.size))
        np.add.at(entries[-1], d * panel[c] + (matrix.col % d) * size[c] + i - panel[c], matrix.data)
    return Panels(panel, np.ascontiguousarray(unknown), *entries)
