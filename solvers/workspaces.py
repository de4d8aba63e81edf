"""Reusable workspaces for single problems: preallocated memory of one size with a compiled call bound to it."""

import queue
import threading
from functools import partial

from nsds._jit import bound

REFUSED = -1  # no status: the problem is not as compiled code wants it
DOUBTFUL = -2  # no status: CONVERGED, if it is confirmed that rounding hides nothing
UNCERTAIN = -3  # no status: CONVERGED, if what counted as rounding also does in other units
_MOST_COLUMNS = 2**10  # of a pattern that is kept as a key
_OFTEN = 100  # problems in a workspace, after which numba's slower calls have cost as much as binding does
_MOST = 64  # keys, each with as many workspaces as threads were at work at once
_LARGEST = 2**18  # bytes of a workspace that is kept: allocating a larger one is a small part of the work
_LONG = 1e7  # multiplications: a method that may need more is left at Ctrl-C; 50 us for a thread are a small part of it


def work_of(n_entries, n, max_iter):
    """Multiplications that a method may need, roughly: so many sweeps of a matrix, or a factorisation."""
    return n_entries * max(n, max_iter)


def left_at_interrupts(work, call, *arguments):
    """Result of a call of compiled code. Where it may take long, KeyboardInterrupt is raised at once; the code then ends by itself.

    Ctrl-C reaches the main thread alone, and that only in Python: the code runs in another thread. Its arrays are to be used no more
    after an exception.
    """
    if work <= _LONG or threading.current_thread() is not threading.main_thread():
        return call(*arguments)
    outcomes = queue.SimpleQueue()

    def run():
        try:
            outcomes.put((call(*arguments), None))
        except BaseException as error:  # raised again where it was called
            outcomes.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    result, error = outcomes.get()
    if error is not None:
        raise error
    return result


def key_of(method, options, size, row, column):
    """Key of the workspaces that serve a method and a pattern; size: as of `nsds.solvers.table.scratch`. None: none is kept."""
    n = row.size - 1
    if column.size == n * n:
        return method.name, options, size, n
    return (method.name, options, size, row.tobytes(), column.tobytes()) if column.size <= _MOST_COLUMNS else None


class Workspace:
    """Arguments of a kernel, in memory that is overwritten for each problem; it is for one problem at a time.

    arguments, of the kernel: those of `nsds.solvers.table.arguments_of`, then more. problem, which has their pattern, and guess, where the
    method starts, are filled by the caller; z, w, info and more are outputs of the kernel. work: see `work_of`.
    """

    __slots__ = ("_call", "_n_solved", "arguments", "guess", "info", "kernel", "more", "problem", "w", "work", "z")

    def __init__(self, kernel, arguments, work, more=()):
        self.kernel, self.arguments, self.more = kernel, (*arguments, *more), more
        self.guess, self.problem, self.z, self.w, self.info = *arguments[1:3], *arguments[-5:-2]
        self.work, self._call, self._n_solved = work, None, 0

    def solve(self):
        """Status that the kernel returns for the present problem. After some problems its arguments are bound, which costs a sixth."""
        if self._call is not None:
            return self._call()
        self._n_solved += 1
        if self._n_solved == _OFTEN:
            call = bound((self.kernel, self.arguments))
            self._call = call if self.work <= _LONG else partial(left_at_interrupts, self.work, call)
        return left_at_interrupts(self.work, self.kernel, *self.arguments)


class Workspaces:
    """Workspaces that are not in use, by their keys."""

    def __init__(self):
        self._free = {}

    def taken(self, key):
        """A workspace of this key, which is the caller's alone until it is put back; None where none is free."""
        try:
            return self._free[key].pop()
        except (KeyError, IndexError):
            return None

    def put_back(self, key, workspace):
        """Keep a workspace for others, unless it is large or has no key; of too many keys the first are forgotten."""
        if key is None:
            return
        try:
            self._free[key].append(workspace)
        except KeyError:
            if sum(part.nbytes for part in (*workspace.arguments, *workspace.problem) if hasattr(part, "nbytes")) > _LARGEST:
                return
            self._free[key] = [workspace]
            for old in list(self._free)[:-_MOST]:
                self._free.pop(old, None)
