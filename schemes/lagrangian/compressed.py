"""Sparse iteration matrices of elements with functions of forces: finite differences of whole groups of coordinates at once.

The pattern is stated by the part's ``jac_sparsity``, or found by trial where there are many coordinates; see `nsds.maths.patterns`.
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import kernel
from nsds.maths import patterns
from nsds.model.functions import Raised, evaluate_at, try_once
from nsds.model.layout import ABSENT, DIAGONAL, SPARSE
from nsds.model.records import memory, stored_sparse
from nsds.schemes.derivatives import FORWARD_STEP
from nsds.schemes.lagrangian.functions import part_of_force

MANY = 60  # coordinates above which a pattern that is not stated is looked for
_GROUPS = 0.25  # of the coordinates: groups from which a Jacobian counts as dense
_TRIALS = 3  # states of one element at which a pattern is tried, and members and elements that are
_DISPLACEMENTS = (2.0**-20, 2.0**-10, 2.0**-4)  # of coordinates and velocities, relative to 1 or themselves, in a trial
_FAR = (1.0, 1.0)  # further ones of a pattern that is looked for, where the functions do not fail in Python
_OF_STATE = ("fint", "fgyr")
_HEAD = ("groups", "first", "order", "begin", "row", "place")


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
    # 1. trials with a few members and elements
    trials = [_Trial(records, part, name, functions, m, e, () if is_stated else _FAR) for m, e in _chosen(fields.shape)]
    if is_stated:
        stored = fields["jac_sparsity"][0, 0]
        stated = stored_sparse({"data": np.ones(stored["indices"].size), "indices": stored["indices"], "indptr": stored["indptr"]}, n)
        for variable in ("q", "v"):
            missing = patterns.missing_entry(lambda columns, x=variable: _any(trials, x, columns), stated)
            if missing is not None:
                raise ValueError(
                    f"part '{name}': jac_sparsity lacks the entry {missing}: the force of coordinate {missing[0]} depends on "
                    f"{variable}[{missing[1]}]"
                )
        return Pattern(stated, stated) if patterns.is_compressible(stated) else None
    # 2. found by trial; of forces that rest in some places, as of contacts, those that act tell where others may
    most = max(int(_GROUPS * n), MANY)
    by_q, by_v = (patterns.found(lambda columns, x=variable: _any(trials, x, columns), n, most) for variable in ("q", "v"))
    if by_q is None or by_v is None:
        return None
    by_q, by_v = (patterns.with_whole_diagonals(pattern + pattern.T) for pattern in (by_q, by_v))
    return Pattern(by_q, by_v) if patterns.is_compressible(by_q) else None


def _is_of_one_pattern(M):
    """Whether sparse masses of all members and elements have the same entries stored."""
    return all((M[key] == M[key][:1, :1]).all() for key in ("indptr", "indices"))


def _chosen(shape):
    """Members and elements that are tried: the first, the last, and one between."""
    members, elements = (sorted({0, size // 2, size - 1}) for size in shape)
    return [(m, e) for m in members for e in elements]


def _any(trials, variable, columns):
    """Which forces change in any trial as coordinates or velocities change."""
    return np.logical_or.reduce([trial.moved(variable, columns) for trial in trials])


class _Trial:
    """Forces of one element at states near its own, and at others that differ in some coordinates."""

    def __init__(self, records, part, name, functions, m, e, far):
        mem, first = memory(records)[m], part["q"] + e * part["stride"]
        n, random = part["n"].item(), np.random.default_rng(0)
        self.t, self.part, self.e, self.functions = records["t"].reshape(-1)[m], part, e, functions[m]
        self.z = mem[part["z"] + e * part["stride"] :][: part["n_z"]].copy()
        self.mem, self.q, self.v = mem, *(mem[first + k * n : first + (k + 1) * n] for k in (0, 1))
        names = records[name].reshape(records.size, -1)[m, e]
        fields = [(name, names[field].decode(), field) for field in _OF_STATE if part[f"{field}_function"] != ABSENT]

        def near(x, size):
            return x + size * np.maximum(1.0, abs(x)) * random.uniform(0.5, 1.0, n) * random.choice([-1.0, 1.0], n)

        pairs = [[(x := near(self.q, size), near(x, size)), (v := near(self.v, size), near(v, size))] for size in (*_DISPLACEMENTS, *far)]
        pairs = [pair for k, pair in enumerate(pairs) if k < len(_DISPLACEMENTS) or self.is_fit(pair, fields)]
        self.states, self.others = ({x: np.array([pair[i][k] for pair in pairs]) for i, x in enumerate("qv")} for k in (0, 1))
        self.base = self.forces(self.states["q"], self.states["v"])

    def is_fit(self, pair, fields):
        """Whether functions give numbers at both states of a pair: a table may end before."""
        (q, other_q), (v, other_v) = pair
        try:
            for part, name, field in fields:
                for x, lam in ((q, v), (other_q, other_v)):
                    try_once(part, name, "lagrangian", field, self.t, x, lam, self.z, np.zeros(x.size))
        except (TypeError, ValueError):
            return False
        return True

    def moved(self, variable, columns):
        """Which forces change as these coordinates or velocities do."""
        states = dict(self.states)
        states[variable] = np.where(columns, self.others[variable], states[variable])
        forces = self.forces(states["q"], states["v"])
        return ~((forces == self.base) | (np.isnan(forces) & np.isnan(self.base))).all(axis=0)

    def forces(self, q, v):
        """Forces (states, n) that depend on q and v."""
        part, n, total = self.part, self.part["n"].item(), np.zeros(q.shape)
        for field in _OF_STATE:
            if part[f"{field}_function"] != ABSENT:
                total -= self.values(field, q, v, n)
        if part["n_u"] > 0 and (part["T_function"] != ABSENT or part["u_function"] != ABSENT):
            n_u = part["n_u"].item()
            shift = self.e * part["stride"]
            u = self.mem[part["u"] + shift :][:n_u] if part["u_function"] == ABSENT else self.values("u", q, v, n_u)
            T = self.values("T", q, v, n * n_u).reshape(-1, n, n_u) if part["T_function"] != ABSENT else self.weight(n, n_u)
            total += (T * np.broadcast_to(u, (len(q), n_u))[:, None]).sum(axis=-1)
        return total

    def weight(self, n, n_u):
        """T where it is none of functions: which forces a control acts on; all, as the numbers are not at hand here."""
        return np.eye(n)[None] if n == n_u else np.ones((1, n, n_u))

    def values(self, field, q, v, size):
        """Values (states, size) of a function."""
        out = np.zeros((len(q), size))
        address = self.functions[1 + self.part[f"{field}_function"] + self.e]
        with Raised():  # states near the start may be none that the function is for
            evaluate_at(address, np.full(len(q), self.t), np.ascontiguousarray(q), np.ascontiguousarray(v), self.z, out)
        return out


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


def store_groups(pattern, rows, iwork):
    """Store the groups of columns of a derivative, and where its entries lie in the matrix ``rows``; returns their offset in iwork."""
    columns, group = pattern.tocsc(), patterns.groups(pattern)
    columns.sort_indices()
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], np.arange(group.max() + 2))
    j = np.repeat(np.arange(pattern.shape[1]), np.diff(columns.indptr))
    arrays = first, order, columns.indptr, columns.indices, patterns.places(rows.indptr, rows.indices, columns.indices, j)
    at = iwork.size + len(_HEAD)
    offsets = at + np.cumsum([0, *(each.size for each in arrays)])[:-1]
    everything = np.concatenate([[first.size - 1], offsets, *arrays]).astype(np.int64)
    return iwork.store(np.broadcast_to(everything, (iwork.n_members, everything.size)))


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
    work, iwork, n = memory.work, memory.iwork, part.n
    base, size, moved, old = spare + n, spare + 2 * n, spare + 3 * n, spare + 4 * n
    first, order, begin, row, place = (
        iwork[groups + 1], iwork[groups + 2], iwork[groups + 3], iwork[groups + 4], iwork[groups + 5],
    )  # fmt: skip
    for g in range(iwork[groups] if factor != 0.0 else 0):
        # 1. move all coordinates of the group, away from 0, so that signs do not change
        for k in range(iwork[first + g], iwork[first + g + 1]):
            j = iwork[order + k]
            x_j = work[old + j] = work[variable + j]
            work[variable + j] = x_j + math.copysign(FORWARD_STEP * max(1.0, abs(x_j)), x_j)
        part_of_force(t, part, e, q, v, ABSENT, spare, functions, memory, moved, size)
        # 2. each entry belongs to one of them
        for k in range(iwork[first + g], iwork[first + g + 1]):
            j = iwork[order + k]
            step = work[variable + j] - work[old + j]
            work[variable + j] = work[old + j]
            for l in range(iwork[begin + j], iwork[begin + j + 1]):
                i = iwork[row + l]
                work[values + iwork[place + l]] -= factor * (work[moved + i] - work[base + i]) / step
