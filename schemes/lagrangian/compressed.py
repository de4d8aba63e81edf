"""Sparse iteration matrices of elements with functions of forces, by `nsds.schemes.compressed` finite differences."""

from typing import NamedTuple

import numpy as np

from nsds._jit import kernel
from nsds.model.layout import ABSENT, DIAGONAL, SPARSE
from nsds.schemes.compressed import MANY, Family, add_differences, found_patterns, move_group, stated_pattern
from nsds.schemes.lagrangian.functions import part_of_force

_FAMILY = Family("lagrangian", ("fint", "fgyr"), ("q", "v"), "force of coordinate")


class Pattern(NamedTuple):
    """Patterns of the derivatives of the forces of a part, by q and by v, as scipy.sparse."""

    by_q: object
    by_v: object


def pattern_of(records, part, name, functions):
    """`Pattern` of a part of a layout; None where it is dense, or its mass is a function.

    functions: addresses (members, slots). A stated pattern is checked at the start.

    Raises
    ------
    ValueError
        The stated pattern lacks an entry.
    """
    n, fields = part["n"].item(), records[name].reshape(records.size, -1)
    is_stated = "jac_sparsity" in fields.dtype.names
    has_controls = part["n_u"] > 0
    if not is_stated and (n <= MANY or part["mass_function"] != ABSENT or part["jac_q_function"] != ABSENT or has_controls):
        return None
    if part["M_kind"] == SPARSE and part["M"] != ABSENT and not _is_of_one_pattern(fields["M"]):
        return None
    if is_stated:
        stated = stated_pattern(records, part, name, functions, _FAMILY)
        return None if stated is None else Pattern(stated, stated)
    found = found_patterns(records, part, name, functions, _FAMILY)
    return None if found is None else Pattern(*found)


def _is_of_one_pattern(M):
    """Whether sparse masses of all members and elements have the same entries stored."""
    return all((M[key] == M[key][:1, :1]).all() for key in ("indptr", "indices"))


def matrix_pattern(records, part, name, pattern):
    """Pattern of ``M + K_t + C_t`` of a part with a full diagonal, as scipy.sparse (n, n) with sorted indices."""
    from scipy.sparse import coo_array, eye_array

    n = part["n"].item()
    i, j, _ = mass_entries(records, part, name)
    M = coo_array((np.ones(i.size), (i, j)), shape=(n, n))
    total = (abs(pattern.by_q) + abs(pattern.by_v) + eye_array(n) + M).tocsr()
    total.sum_duplicates()
    return total


def mass_entries(records, part, name):
    """(row, column, place in its field) of the entries of a mass of numbers."""
    n, field = part["n"].item(), records[name].reshape(records.size, -1)["M"]
    if part["M_kind"] == DIAGONAL:
        return np.arange(n), np.arange(n), np.arange(n)
    if part["M_kind"] == SPARSE:
        stored = field[0, 0]
        return np.repeat(np.arange(n), np.diff(stored["indptr"])), stored["indices"], n + 1 + part["M_nnz"] + np.arange(part["M_nnz"])
    i, j = np.nonzero((field != 0).any(axis=(0, 1)))
    return i, j, i * n + j


def scratch_of(n):
    """Entries of scratch of `add_compressed_tangents`."""
    return 5 * n


@kernel
def add_compressed_tangents(t, part, el, values, q, v, spare, factor_q, factor_v, functions, memory):
    """Add ``factor_q K_t + factor_v C_t``, the derivatives of ``-force`` by q and v, to the entries at values; work: spare (5 n)."""
    base, size, e = spare + part.n, spare + 2 * part.n, el.e
    part_of_force(t, part, e, q, v, ABSENT, spare, functions, memory, base, size)
    _add_derivative(t, part, e, el.groups_q, values, q, v, q, spare, factor_q, functions, memory)
    _add_derivative(t, part, e, el.groups_v, values, q, v, v, spare, factor_v, functions, memory)


@kernel
def _add_derivative(t, part, e, groups, values, q, v, variable, spare, factor, functions, memory):
    """Subtract factor times the derivative of F by q or v (variable); F itself is at spare + n."""
    base, size, moved, old = spare + part.n, spare + 2 * part.n, spare + 3 * part.n, spare + 4 * part.n
    for g in range(memory.iwork[groups] if factor != 0.0 else 0):
        move_group(groups, g, 1.0, variable, old, memory)
        part_of_force(t, part, e, q, v, ABSENT, spare, functions, memory, moved, size)
        add_differences(groups, g, -factor, values, (variable, old), (moved, base), memory)
