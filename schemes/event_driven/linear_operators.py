"""Operators of linear first-order systems that move event by event, and the components into which their rows fall.

In a mode, lambda of the HELD rows follows from ``0 = C x + D lambda + e``, or from its derivatives. Rows are of one component if D, or for
rows without D the product C B, couples them. Where each component has a definite matrix, of D or of C B, lambda of any of its rows that are
held follows from the states that its C, or C A, reads, whatever the modes of others: a change of modes then is one of its component alone.
Otherwise, and for few rows, all of them are one component that reads all states.
"""

from typing import NamedTuple

import numpy as np

from nsds.model.records import are_circuits
from nsds.schemes.event_driven.circuit_sources import augmented
from nsds.schemes.event_driven.collocation import LARGEST
from nsds.schemes.first_order.relative_degree import inputs, inverse_masses, operators
from nsds.schemes.problem.branches import LARGEST_LOOKED_AT

LENGTHS = (1e-11, 1e-9, 1e-7, 1e-5, 1e-3)  # of the step that decides the modes, in the shortest times of the system
_LONGER = 3  # further ones, where times are far apart: up to that part of a row, in which what is slow is no rounding
_FEW = 16  # rows that are one component
_MANY = 256  # states from which on operators are sparse at set-up
_VANISHED = 1e-100  # of the largest influence in a choice of modes: smaller ones are none
_NO_TIME = 2.0**-60  # of a step: the time in which B reaches what D gives at once, if less, is none
_FAR = 1e3  # of the shortest time: rows and times so far apart
_DEFINITE = 1e-9  # of the largest eigenvalue of a component: a smaller one is none
_WORTH = 0.25  # of the entries of one component: fewer are worth more than one
_SWEEPS, _TERMS = 16, 400  # of scaling; of a series, which falls by a thousand with each term


# Columns of the plan. Floats: operators. Integers: of rows by component, where those begin, and its columns, `first`; its entries and its
# square in arrays of all; of each row its component, its place there, its entries and their number, where its columns lie, and whether it
# has D; touched: states on which components act; compressed rows of operators, and of all that x' may have.
STORED = (
    "C", "D", "e", "lengths", "rate", "n_rate", "rate_row", "rate_pattern",
    *(f"{name}{what}" for name in ("A", "B", "raw_B", "mass", "near_x", "near_s", "near_lam") for what in ("", "_row", "_column")),
    "begin", "rows", "first", "columns", "entries", "square", "owner", "local", "at", "wide", "reads", "direct", "touched_begin", "touched",
)  # fmt: skip


class Components(NamedTuple):
    """The components of m rows, each with its rows and the states that it reads, side by side."""

    of_row: np.ndarray  # (m,): the component of each row
    begin: np.ndarray  # where the rows of each begin, and their number
    rows: np.ndarray
    first: np.ndarray  # where the columns of each begin, and their number
    columns: np.ndarray

    def local(self):
        """The place of each row in its component."""
        result = np.empty(self.rows.size, np.int64)
        result[self.rows] = np.arange(self.rows.size) - np.repeat(self.begin[:-1], np.diff(self.begin))
        return result

    def entries(self):
        """(entries of all rows over the columns of their component, those of the squares of components)."""
        heights, widths = np.diff(self.begin), np.diff(self.first)
        return int((heights * widths).sum()), int((heights**2).sum())


def of_member(record, layout, constants, h):
    """Sparse operators of one member, by the names of their places in the plan; near_x, near_s, near_lam: one for each of its `lengths`."""
    from scipy.sparse import block_diag, csr_array

    C, A, B, D = operators(record, layout, constants)
    mass, raw = csr_array(block_diag(inverse_masses(record, layout))), inputs(layout, constants)
    e, constant = constants[layout.constraints["base"]], np.zeros(A.shape[0])
    if are_circuits(record):
        C, A, B, mass, e, constant = augmented(record, C, A, B, mass)
        raw = csr_array((raw.data, raw.indices, np.append(raw.indptr, np.full(A.shape[0] - raw.shape[0], raw.nnz))), shape=B.shape)
    D = _without(D, abs(D) < _NO_TIME * h * (abs(C) @ abs(B)))
    return {"A": A, "B": B, "raw_B": raw, "C": C, "D": D, "mass": mass, "e": e, "spare": constant}


def _without(matrix, gone):
    """The matrix without the entries that are gone, or 0."""
    from scipy.sparse import csr_array

    result = csr_array(matrix - matrix.multiply(gone))
    result.eliminate_zeros()
    result.sort_indices()
    return result


def look_ahead(members, h):
    """Into the operators of members: ``C G A``, ``C G`` and ``C G B`` for each step of a choice of modes, with ``G = (I - step A)^-1``.

    Beside a leak of 1 ns a commutation of 1 ms is decided by what a source changes in a step: nothing, if that is a part of the 1 ns.
    """
    fastest = [max(_fastest(member["A"]), 1.0 / h) for member in members]
    are_far = max(fastest) * h > _FAR and members[0]["A"].shape[0] <= _MANY
    for member, rate in zip(members, fastest, strict=True):
        # 1. steps
        steps = [length / rate for length in LENGTHS]
        steps += [steps[-1] * (rate * h) ** (k / _LONGER) for k in range(1, _LONGER + 1) if are_far]
        member["lengths"] = np.array(steps)
        # 2. along many rows influence vanishes as a power of the step, down to what underflows
        A, B, C = member["A"], member["B"], member["C"]
        near = _near(C, A, steps)
        for name, operators_ in (("near_x", [each @ A for each in near]), ("near_s", near), ("near_lam", [each @ B for each in near])):
            member[name] = [_visible(each) if C.shape[0] > LARGEST_LOOKED_AT else _compressed(each) for each in operators_]


def _near(C, A, steps):
    """``step C (I - step A)^-1`` of each step: by inverses of few states, by series of many."""
    from scipy.linalg import matrix_balance

    n = A.shape[0]
    if n > _MANY:
        return [_series(C, A, step) for step in steps]
    balanced, (scale, _) = matrix_balance(A.toarray(), permute=False, separate=True)  # states may have units of any size
    return [C @ (step * scale[:, None] * np.linalg.inv(np.eye(n) - step * balanced) / scale) for step in steps]


def _fastest(A):
    """The largest magnitude of the eigenvalues; of many states a bound of it, in the best of some units of the states (Osborne)."""
    from scipy.linalg import matrix_balance

    if A.shape[0] <= _MANY:
        return abs(np.linalg.eigvals(matrix_balance(A.toarray(), permute=False)[0])).max(initial=0.0)
    A, least = abs(A), np.inf
    for _ in range(_SWEEPS):
        rows, columns = A.sum(axis=1), A.sum(axis=0)
        least = min(least, np.sqrt(rows.max(initial=0.0) * columns.max(initial=0.0)))
        ratio = np.where((rows > 0.0) & (columns > 0.0), columns, 1.0) / np.where((rows > 0.0) & (columns > 0.0), rows, 1.0)
        scale = ratio**0.25
        A = A.multiply(scale[:, None]).multiply(1.0 / scale).tocsr()
    return least


def _series(C, A, step):
    """``step C (I - step A)^-1``, of a step that is short against all times of A."""
    term = total = step * C
    for _ in range(_TERMS):
        term = _visible(step * (term @ A), abs(total).max())
        if term.nnz == 0:
            break
        total = total + term
    return total


def _visible(matrix, beside=0.0):
    """The matrix without influences that are none beside the largest one, there or ``beside``."""
    matrix = _compressed(matrix)
    matrix.data[abs(matrix.data) < _VANISHED * max(beside, abs(matrix.data).max(initial=0.0))] = 0.0
    matrix.eliminate_zeros()
    return matrix


def _compressed(matrix):
    """By rows, with the columns in order."""
    from scipy.sparse import csr_array

    result = csr_array(matrix)
    result.sum_duplicates()
    return result


def components_of(members):
    """`Components` of the rows, of all members at once."""
    from scipy.sparse.csgraph import connected_components

    m, n = members[0]["C"].shape
    every = np.arange(m, dtype=np.int64)
    whole = Components(0 * every, np.array([0, m]), every, np.array([0, n]), np.arange(n, dtype=np.int64))
    if m <= _FEW:
        return whole
    # 1. couplings: by D, and of rows without it by C B
    first = [(abs(member["C"]) @ abs(member["B"]), member["C"] @ member["B"]) for member in members]
    direct = sum(abs(member["D"]) for member in members).sum(axis=1) > 0.0
    coupled = _compressed(sum(abs(member["D"]) + _of_rows(~direct, sizes) for member, (sizes, _) in zip(members, first, strict=True)))
    count, of_row = connected_components(coupled, directed=False)
    # 2. rows, and the states that they read
    rows = np.argsort(of_row, kind="stable")
    begin = np.searchsorted(of_row[rows], np.arange(count + 1))
    reads = sum(abs(member["C"]) + _of_rows(~direct, abs(member["C"]) @ abs(member["A"])) for member in members)
    owner, column = of_row[(entries := reads.tocoo()).coords[0]], entries.coords[1]
    owner, columns = np.divmod(np.unique(owner.astype(np.int64) * n + column), n)
    found = Components(of_row.astype(np.int64), begin, rows, np.searchsorted(owner, np.arange(count + 1)), columns)
    # 3. whether they are worth it, and definite
    if sum(found.entries()) > _WORTH * m * n:
        return whole
    if (np.bincount(of_row, direct)[of_row] > 0.0).sum() > direct.sum():
        return whole
    squares = [_compressed(member["D"] + _of_rows(~direct, products)) for member, (_, products) in zip(members, first, strict=True)]
    return found if all(_are_definite(square, found) for square in squares) else whole


def _of_rows(chosen, matrix):
    """The matrix with the chosen rows only."""
    from scipy.sparse import dia_array

    return dia_array((chosen[None].astype(float), [0]), shape=(chosen.size, chosen.size)) @ matrix


def _are_definite(matrix, parts):
    """Whether the symmetric parts of the squares of components are positive definite: so are all of their principal minors."""
    entries, sizes = _blocks(matrix, parts.begin, parts.rows, parts), np.diff(parts.begin)
    blocks = np.split(entries, np.cumsum(sizes**2)[:-1])
    for block, size in zip(blocks, sizes, strict=True):
        half = 0.5 * (block.reshape(size, size) + block.reshape(size, size).T)
        values = half[0] if size == 1 else np.linalg.eigvalsh(half)
        if not values[0] > max(_DEFINITE * values[-1], 0.0):
            return False
    return True


def _pattern_of_rate(members, parts):
    """Pattern of x' in all modes: entries of A, and of B times the columns of components."""
    from scipy.sparse import csr_array

    n, m = members[0]["B"].shape
    count = np.diff(parts.first)[parts.of_row]
    columns = np.concatenate([parts.columns[parts.first[k] : parts.first[k + 1]] for k in parts.of_row] or [parts.columns[:0]])
    reads = csr_array((np.ones(columns.size), columns, np.append(0, np.cumsum(count))), shape=(m, n))
    return _pattern([each for member in members for each in (abs(member["A"]), abs(member["B"]) @ reads)])


def _reaches(rate, n_own):
    """(how far apart the system's states are that act on each other, first and end of the range on which the states of sources act)."""
    row, column = rate.tocoo().coords
    band = abs(row - column)[(row < n_own) & (column < n_own)].max(initial=0)
    driven = row[(row < n_own) & (column >= n_own)]
    # few states are one range
    if n_own <= LARGEST:
        return band, 0, n_own
    return band, driven.min(initial=n_own), driven.max(initial=-1) + 1


def rate_entries(members, parts):
    """Entries of x', at most."""
    widths = np.diff(parts.first)[parts.of_row]
    return max(int(member["A"].nnz + widths[member["B"].tocoo().coords[1]].sum()) for member in members)


def store_operators(p, members, parts, work, iwork):
    """Store operators and components of all members at the names of `STORED`. Returns (row, column, begin), the patterns of W.

    C and D of each row lie in the block of its component; A, B, raw_B, mass and the operators of choices by compressed rows.
    """
    m, n = members[0]["C"].shape
    # 1. components: their rows, columns and blocks
    heights, widths = np.diff(parts.begin), np.diff(parts.first)
    entries, square = (np.append(0, np.cumsum(sizes)[:-1]) for sizes in (heights * widths, heights**2))
    local = parts.local()
    p["n_components"] = heights.size
    states, acting = sum(abs(member["B"]) for member in members).tocoo().coords
    acting, touched = np.divmod(np.unique(parts.of_row[acting] * n + states), n)
    _store_integers(
        p, iwork, members, begin=parts.begin, first=parts.first, columns=parts.columns, rows=parts.rows, owner=parts.of_row, local=local,
        entries=entries, square=square, at=entries[parts.of_row] + local * widths[parts.of_row], wide=widths[parts.of_row],
        touched=touched, touched_begin=np.searchsorted(acting, np.arange(heights.size + 1)),
    )  # fmt: skip
    p["reads"] = iwork.store(np.tile(p["columns"] + parts.first[parts.of_row], (len(members), 1)))
    p["direct"] = iwork.store(np.stack([abs(member["D"]).sum(axis=1) > 0.0 for member in members]).astype(np.int64))
    for name, first, columns in (("C", parts.first, parts.columns), ("D", parts.begin, parts.rows)):
        p[name] = work.store(np.stack([_blocks(member[name], first, columns, parts) for member in members]))
    # 2. compressed rows
    for name in ("A", "B", "raw_B", "mass"):
        _store_rows(p, name, [member[name] for member in members], work, iwork)
    for name in ("near_x", "near_s", "near_lam"):
        _store_rows(p, name, [_stacked(member[name]) for member in members], work, iwork)
    for name in ("e", "lengths"):
        p[name] = work.store(np.stack([member[name] for member in members]))
    rate = _pattern_of_rate(members, parts)
    p["n_rate"] = rate.nnz
    p["band"], p["first_driven"], p["end_driven"] = _reaches(rate, int(p["n_own"][0]))
    _store_integers(p, iwork, members, rate_row=rate.indptr, rate_pattern=rate.indices)
    # 3. patterns of W
    patterns = [_pattern_of_choice(m, members, length) for length in range(int(p["n_lengths"][0]))]
    begin = np.append(0, np.cumsum([pattern.nnz for pattern in patterns]))
    row, column = (np.concatenate([getattr(pattern, name) for pattern in patterns]).astype(np.int64) for name in ("indptr", "indices"))
    return row, column, begin


def _pattern_of_choice(m, members, length):
    """Pattern of W in the choice of modes by one step: full for few rows, else what is not zero in some member."""
    from scipy.sparse import csr_array, eye_array

    if m <= LARGEST_LOOKED_AT:
        return csr_array(np.ones((m, m)))
    return _pattern([eye_array(m)] + [abs(matrix) for member in members for matrix in (member["D"], member["near_lam"][length])])


def _pattern(matrices):
    """The sum of matrices without negative entries, by rows, with the columns in order."""
    total = _compressed(sum(matrices))
    total.eliminate_zeros()
    return total


def _stacked(matrices):
    """Matrices below one another, whose rows share one list of their beginnings, each with an end of its own."""
    from scipy.sparse import csr_array, vstack

    none = csr_array((1, matrices[0].shape[1]))
    return vstack([each for matrix in matrices for each in (matrix, none)]).tocsr()


def _store_rows(p, name, matrices, work, iwork):
    """Store a matrix of all members by compressed rows, at name, name_row and name_column."""
    pattern = _pattern([abs(matrix) for matrix in matrices])
    p[name] = work.store(np.stack([_at_pattern(_compressed(matrix), pattern) for matrix in matrices]))
    _store_integers(p, iwork, matrices, **{f"{name}_row": pattern.indptr, f"{name}_column": pattern.indices})


def _store_integers(p, iwork, members, **arrays):
    """Store arrays that all members have in common."""
    for name, array in arrays.items():
        p[name] = iwork.store(np.tile(np.asarray(array, np.int64), (len(members), 1)))


def _at_pattern(matrix, pattern):
    """The entries of a sparse matrix at the places of a pattern that contains them."""
    if matrix.nnz == pattern.nnz and matrix.data.all():  # one pattern
        return matrix.data
    n, result = matrix.shape[1], np.zeros(pattern.nnz)
    places, own = (np.repeat(np.arange(each.shape[0]), np.diff(each.indptr)) * n + each.indices for each in (pattern, matrix))
    there = np.searchsorted(places, own[matrix.data != 0.0])
    result[there] = matrix.data[matrix.data != 0.0]
    return result


def _blocks(matrix, first, columns, parts):
    """The rows of all components, one after the other, over the columns of each; columns of component k: those from first[k] on."""
    n, widths = matrix.shape[1], np.diff(first)
    entries = np.append(0, np.cumsum(np.diff(parts.begin) * widths))
    row, column = matrix.tocoo().coords
    owner, keys = parts.of_row[row], np.repeat(np.arange(widths.size), widths) * n + columns
    place = np.searchsorted(keys, owner * n + column) - first[owner]
    result = np.zeros(entries[-1])
    result[entries[owner] + parts.local()[row] * widths[owner] + place] = matrix.tocoo().data
    return result
