"""Preparation of a scheme: tables for all members of an ensemble, and work memory of one layout for each."""

from types import ModuleType
from typing import NamedTuple

import numpy as np
from numba import typeof

from nsds._jit import by_reference, made
from nsds.model.records import memory


@by_reference
class Memory(NamedTuple):
    """The memory of one member, as kernels get it: its record and its scratch."""

    mem: np.ndarray  # the entries of its record
    imem: np.ndarray  # the same entries as integers
    work: np.ndarray  # prepared data, and scratch
    iwork: np.ndarray  # the same, of integers


@by_reference
class Calls(NamedTuple):
    """Targets that kernels call by address: functions of users, and the solver of the one-step problem, with its options."""

    functions: np.ndarray  # of one member
    solver: np.uintp
    solver_options: NamedTuple


memory_of, calls_of = made(Memory), made(Calls)
MEMORY = typeof(Memory(np.zeros(0), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)))  # its type, of all members


class Prepared(NamedTuple):
    """Data that do not change in time, and the module whose ``start`` and ``step`` use them."""

    tables: NamedTuple  # `Tables` of the form of the step
    functions: np.ndarray  # addresses (members, slots)
    options: NamedTuple  # floats with names, the step h among them
    work: np.ndarray  # (members, entries)
    iwork: np.ndarray
    stepper: ModuleType
    layout: NamedTuple  # for messages and warnings: tables before they were ordered, names


def of_each_member(compiled, prepared, records, solver, solver_options):
    """Results of a kernel with the arguments of a scheme's ``step`` for each member of an ensemble, whose memory it changes."""
    mem = memory(records)
    return [
        compiled(
            records["t"][m], prepared.tables, Calls(prepared.functions[m], solver, solver_options), prepared.options,
            Memory(mem[m], mem[m].view(np.int64), prepared.work[m], prepared.iwork[m]),
        )
        for m in range(records.size)
    ]  # fmt: skip


LARGEST_DENSE = 2**30  # bytes of what is dense where its data need not be
_LAST_PLACE = np.iinfo(np.int32).max  # tables hold offsets as 32-bit integers


def require_affordable(what, n_entries, instead):
    """Refuse dense memory of more than a GB before it is reserved; ``instead``: what to state, or to take."""
    if 8 * n_entries > LARGEST_DENSE:
        raise ValueError(f"{what} would be dense, {8 * n_entries / 1e9:.3g} GB; {instead}")


class Allocator:
    """Lays arrays behind one another in a memory of equal length for every member."""

    def __init__(self, n_members):
        self.n_members, self.size, self.filled = n_members, 0, []

    def reserve(self, size):
        """Offset of room for ``size`` entries."""
        start, self.size = self.size, self.size + int(size)
        if self.size > _LAST_PLACE:
            raise ValueError(f"the one-step problem needs more than {self.size:.1e} words: too many constraints that all act on one body")
        return start

    def place(self, plan, **sizes):
        """Reserve room for several arrays and note their offsets in a plan."""
        for name, size in sizes.items():
            plan[name] = self.reserve(size)

    def store(self, data):
        """Reserve room for ``data`` (members, ...), to be filled by `array`."""
        start = self.reserve(data[0].size)
        self.filled.append((start, data.reshape(self.n_members, -1)))
        return start

    def array(self, dtype=np.float64):
        """The memory (members, entries), zero where nothing was stored."""
        result = np.zeros((self.n_members, self.size), dtype)
        for start, data in self.filled:
            result[:, start : start + data.shape[1]] = data
        return result

    def first(self):
        """Stored values of the first member so far (entries,)."""
        result = np.zeros(self.size)
        for start, data in self.filled:
            result[start : start + data.shape[1]] = data[0]
        return result
