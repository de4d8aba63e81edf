"""Compressed finite differences: derivatives of functions of many arguments, of whole groups of these at once.

The pattern is stated by the part's ``jac_sparsity``, or found by trial; see `nsds.maths.patterns`.
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import kernel
from nsds.maths import patterns
from nsds.model.functions import Raised, evaluate_at, try_once
from nsds.model.layout import ABSENT
from nsds.model.records import memory, stored_sparse
from nsds.schemes.derivatives import FORWARD_STEP

_DISPLACEMENTS = (2.0**-20, 2.0**-10, 2.0**-4)  # of arguments, relative to 1 or themselves, in a trial
_FAR = (1.0, 1.0)  # further ones of a pattern that is looked for, where the functions do not fail in Python
MANY = 60  # arguments above which a pattern that is not stated is looked for
_GROUPS = 0.25  # of the arguments: groups from which a Jacobian counts as dense
_DIRECTIONS = 8  # random ones, at other states, by which a pattern that was found is checked
_HEAD = ("groups", "first", "order", "begin", "row", "place")


class Family(NamedTuple):
    """A kind of part: its constructor, its functions of the state, the arguments of these, and what a message calls their results."""

    owner: str
    functions: tuple
    variables: tuple
    result: str


class _States(NamedTuple):
    """A set of states for a trial: displacements besides `_DISPLACEMENTS`, and the seed of the random ones."""

    far: tuple = ()
    seed: int = 0


def stated_pattern(records, part, name, functions, family):
    """Pattern of ``jac_sparsity`` as scipy.sparse, checked at the start; None where groups of columns are not worth it.

    functions: addresses (members, slots).

    Raises
    ------
    ValueError
        The pattern lacks an entry.
    """
    n, fields = part["n"].item(), records[name].reshape(records.size, -1)
    trials = [_Trial(records, part, name, functions, where, family, _States()) for where in _chosen(fields.shape)]
    stored = fields["jac_sparsity"][0, 0]
    stated = stored_sparse({"data": np.ones(stored["indices"].size), "indices": stored["indices"], "indptr": stored["indptr"]}, n)
    for k, variable in enumerate(family.variables):
        missing = patterns.missing_entry(lambda columns, k=k: _any(trials, k, columns), stated)
        if missing is not None:
            i, j = missing
            raise ValueError(f"part '{name}': jac_sparsity lacks the entry {missing}: the {family.result} {i} depends on {variable}[{j}]")
    return stated if patterns.is_compressible(stated) else None


def found_patterns(records, part, name, functions, family):
    """Patterns of the derivatives by each variable, found by trial, with the transposed entries; None where one is dense.

    What random directions at other states near the start show beyond it is looked for there, too.
    """
    # of forces that rest in some places, as of contacts, those that act tell where others may
    shape, n = records[name].reshape(records.size, -1).shape, part["n"].item()
    sets = _States(_FAR), _States(seed=1)
    one, other = ([_Trial(records, part, name, functions, where, family, each) for where in _chosen(shape)] for each in sets)
    result, most = [], max(int(_GROUPS * n), MANY)
    for k in range(len(family.variables)):
        pattern = patterns.found(lambda columns, k=k: _any(one, k, columns), n, most)
        if pattern is not None and patterns.missing_entry(lambda columns, k=k: _any(other, k, columns), pattern, _DIRECTIONS):
            more = patterns.found(lambda columns, k=k: _any(other, k, columns), n, most)
            pattern = None if more is None else pattern + more
        pattern = None if pattern is None else patterns.with_whole_diagonals(pattern + pattern.T)
        if pattern is None or not patterns.is_compressible(pattern):
            return None
        result.append(pattern)
    return result


def _chosen(shape):
    """Members and elements that are tried: the first, the last, and one between."""
    members, elements = (sorted({0, size // 2, size - 1}) for size in shape)
    return [(m, e) for m in members for e in elements]


def _any(trials, variable, columns):
    """Which results change in any trial as these entries of an argument do."""
    return np.logical_or.reduce([trial.moved(variable, columns) for trial in trials])


class _Trial:
    """Values of the functions of one element at states near its own, and at others that differ in some arguments."""

    def __init__(self, records, part, name, functions, where, family, states):
        m, e = where
        mem, first = memory(records)[m], part["q"] + e * part["stride"]
        n, random = part["n"].item(), np.random.default_rng(states.seed)
        self.family = family
        self.t, self.part, self.e, self.functions = records["t"].reshape(-1)[m], part, e, functions[m]
        self.z = mem[part["z"] + e * part["stride"] :][: part["n_z"]].copy()
        self.mem, self.q, self.v = mem, mem[first : first + n], mem[first + n : first + n * len(family.variables)]
        given = records[name].reshape(records.size, -1)[m, e]
        self.T = given["T"] if "T" in given.dtype.names else None  # a function, a matrix, or the identity
        fields = [(name, given[field].decode(), field) for field in family.functions if part[f"{field}_function"] != ABSENT]

        def near(x, size):
            return x + size * np.maximum(1.0, abs(x)) * random.uniform(0.5, 1.0, x.size) * random.choice([-1.0, 1.0], x.size)

        sizes = *_DISPLACEMENTS, *states.far
        pairs = [[(x := near(self.q, size), near(x, size)), (v := near(self.v, size), near(v, size))] for size in sizes]
        pairs = [pair for k, pair in enumerate(pairs) if k < len(_DISPLACEMENTS) or self.is_fit(pair, fields)]
        self.states, self.others = ([np.array([pair[i][k] for pair in pairs]) for i in (0, 1)] for k in (0, 1))
        self.base = self.results(*self.states)

    def is_fit(self, pair, fields):
        """Whether functions give numbers at both states of a pair: a table may end before."""
        (q, other_q), (v, other_v) = pair
        try:
            for part, name, field in fields:
                for x, lam in ((q, v), (other_q, other_v)):
                    try_once(part, name, self.family.owner, field, self.t, x, lam, self.z, np.zeros(x.size))
        except (TypeError, ValueError):
            return False
        return True

    def moved(self, variable, columns):
        """Which results change as these entries of the argument of that number do."""
        states = list(self.states)
        states[variable] = np.where(columns, self.others[variable], states[variable])
        results = self.results(*states)
        return ~((results == self.base) | (np.isnan(results) & np.isnan(self.base))).all(axis=0)

    def results(self, q, v):
        """Sums (states, n) of the functions and controls that depend on the state."""
        part, n, total = self.part, self.part["n"].item(), np.zeros(q.shape)
        for field in self.family.functions:
            if part[f"{field}_function"] != ABSENT:
                total -= self.values(field, q, v, n)
        if part["n_u"] > 0 and (part["T_function"] != ABSENT or part["u_function"] != ABSENT):
            n_u = part["n_u"].item()
            shift = self.e * part["stride"]
            u = self.mem[part["u"] + shift :][:n_u] if part["u_function"] == ABSENT else self.values("u", q, v, n_u)
            if self.T is None:
                return total + u
            T = self.T if part["T_function"] == ABSENT else self.values("T", q, v, n * n_u).reshape(-1, n, n_u)
            total += (T * np.broadcast_to(u, (len(q), n_u))[:, None]).sum(axis=-1)
        return total

    def values(self, field, q, v, size):
        """Values (states, size) of a function."""
        out = np.zeros((len(q), size))
        address = self.functions[1 + self.part[f"{field}_function"] + self.e]
        with Raised():  # states near the start may be none that the function is for
            evaluate_at(address, np.full(len(q), self.t), np.ascontiguousarray(q), np.ascontiguousarray(v), self.z, out)
        return out


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


@kernel
def move_group(groups, g, least, x, old, memory):
    """Move the entries of work[x:] whose columns are in group g, away from 0, so that signs do not change; they are kept in work[old:].

    least: the least size of one that is not 0 to which its step is relative.
    """
    work, iwork = memory.work, memory.iwork
    first, order = iwork[groups + 1], iwork[groups + 2]
    for k in range(iwork[first + g], iwork[first + g + 1]):
        j = iwork[order + k]
        x_j = work[old + j] = work[x + j]
        work[x + j] = x_j + math.copysign(FORWARD_STEP * max(least if x_j != 0.0 else 1.0, abs(x_j)), x_j)


@kernel
def add_differences(groups, g, factor, values, points, results, memory):
    """Move the entries of a group back, and add factor times the finite differences of their columns to the entries at values.

    points: offsets of x, which is moved, and of what it was; results: of the function there, and of what it was.
    """
    work, iwork, (x, old), (moved, base) = memory.work, memory.iwork, points, results
    first, order, begin, row, place = (
        iwork[groups + 1], iwork[groups + 2], iwork[groups + 3], iwork[groups + 4], iwork[groups + 5],
    )  # fmt: skip
    for k in range(iwork[first + g], iwork[first + g + 1]):
        j = iwork[order + k]
        step = work[x + j] - work[old + j]
        work[x + j] = work[old + j]
        for l in range(iwork[begin + j], iwork[begin + j + 1]):
            i = iwork[row + l]
            work[values + iwork[place + l]] += factor * (work[moved + i] - work[base + i]) / step


@kernel
def add_absolute_columns(groups, n, factor, values, x, out, memory):
    """``out += factor |J| x`` with the derivative J whose entries are at values; x is not negative."""
    work, iwork = memory.work, memory.iwork
    begin, row, place = iwork[groups + 3], iwork[groups + 4], iwork[groups + 5]
    for j in range(n):
        for l in range(iwork[begin + j], iwork[begin + j + 1]):
            work[out + iwork[row + l]] += factor * abs(work[values + iwork[place + l]]) * work[x + j]
