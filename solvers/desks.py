"""Where single problems are solved: memory for one of its size, with a compiled call bound to it, kept for the next of the same size."""

import queue
import threading
from functools import partial

from nsds._jit import bound

REFUSED = -1  # no status: the problem is not as compiled code wants it
DOUBTFUL = -2  # no status: CONVERGED, if it is confirmed that rounding hides nothing
UNCERTAIN = -3  # no status: CONVERGED, if what was taken for rounding is so in other units, too
_MOST_COLUMNS = 2**10  # of a pattern that is remembered
_OFTEN = 100  # problems on a desk, in which numba's call has cost as much more as binding does
_MOST = 64  # sizes, each with as many desks as threads were at work at once
_LARGEST = 2**18  # bytes of a desk that is kept: of larger ones making it is a small part
_LONG = 1e7  # multiplications: a method that may need more is left at Ctrl-C; 50 us for a thread are a small part of it


def work_of(n_entries, n, max_iter):
    """Multiplications that a method may need, roughly: so many sweeps of a matrix, or a factorisation."""
    return n_entries * max(n, max_iter)


def left_at_interrupts(work, call, *arguments):
    """What compiled code returns. Where it may take long, KeyboardInterrupt is raised at once; the code then ends by itself, unheeded.

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
    """What decides whether a desk serves a problem: method and pattern; size: as of `nsds.solvers.table.scratch`. None: none is kept."""
    n = row.size - 1
    if column.size == n * n:
        return method.name, options, size, n
    return (method.name, options, size, row.tobytes(), column.tobytes()) if column.size <= _MOST_COLUMNS else None


class Desk:
    """Arguments of a kernel, in memory that is filled anew for each problem; it is for one problem at a time.

    arguments, of the kernel: those of `nsds.solvers.table.arguments_of`, then more. problem: the arrays of a problem; guess: where the
    method starts; z, w, info and more are for the kernel to write. work: see `work_of`.
    """

    __slots__ = ("_call", "_n_solved", "arguments", "guess", "info", "kernel", "more", "problem", "w", "work", "z")

    def __init__(self, kernel, arguments, problem, work, more=()):
        self.kernel, self.arguments, self.problem, self.more = kernel, (*arguments, *more), problem, more
        self.guess, self.z, self.w, self.info = arguments[1], *arguments[-5:-2]
        self.work, self._call, self._n_solved = work, None, 0

    def solve(self):
        """What the kernel returns for the present problem. After some problems its arguments are bound, as a call then costs a sixth."""
        if self._call is not None:
            return self._call()
        self._n_solved += 1
        if self._n_solved == _OFTEN:
            call = bound((self.kernel, self.arguments))
            self._call = call if self.work <= _LONG else partial(left_at_interrupts, self.work, call)
        return left_at_interrupts(self.work, self.kernel, *self.arguments)


class Desks:
    """Desks that are not in use, by what decides whether one serves a problem."""

    def __init__(self):
        self._free = {}

    def taken(self, key):
        """A desk of this key, which is its taker's alone until it is put back; None where none is free."""
        try:
            return self._free[key].pop()
        except (KeyError, IndexError):
            return None

    def put_back(self, key, desk):
        """Keep a desk for others, unless it is large; of too many sizes the first are forgotten."""
        try:
            self._free[key].append(desk)
        except KeyError:
            if sum(part.nbytes for part in (*desk.arguments, *desk.problem) if hasattr(part, "nbytes")) > _LARGEST:
                return
            self._free[key] = [desk]
            for old in list(self._free)[:-_MOST]:
                self._free.pop(old, None)
