"""Ctrl-C during a run: noted at once, and raised where the run can be left with all its rows."""

import signal
import threading
from contextlib import contextmanager

CHUNK_SECONDS = 0.2  # between two checks for Ctrl-C, about
_GROWTH = 64.0  # of a chunk from one to the next, at most: steps may become slower
_SMALL = 2**18  # bytes: steps of smaller records are quick


def first_chunk(most, n_bytes):
    """Number of steps before the first check for Ctrl-C, at most ``most``, of records of n_bytes in all."""
    return max(1, min(most, most * _SMALL // n_bytes))


def next_chunk(n, elapsed):
    """Number of steps before the next check, after n that took ``elapsed`` seconds."""
    return max(1, int(n * min(_GROWTH, CHUNK_SECONDS / max(elapsed, 1e-6))))


class Interrupts:
    """While this context lasts, the first Ctrl-C is kept for `raise_noted` or the end, so that none is lost in a callback or a library.

    A second one is raised at once, though only within `at_once`. Other threads than the main one never see a Ctrl-C.
    """

    def __enter__(self):
        self._noted, self._is_open, self._before = None, False, None
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind, *_):
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if kind is None or not issubclass(kind, KeyboardInterrupt):
            self.raise_noted()

    def _note(self, *arguments):
        is_second, self._noted = self._noted is not None, arguments
        if is_second and self._is_open:
            self.raise_noted()

    def raise_noted(self):
        """Raise a noted interrupt as it would have been without this context: KeyboardInterrupt, as a rule."""
        if self._noted is not None:
            arguments, self._noted = self._noted, None
            self._before(*arguments)

    @contextmanager
    def at_once(self):
        """Context in which long work, as compiling, may be interrupted in the middle."""
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False
