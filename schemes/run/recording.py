"""Rows of a run: all of them in memory, or written block by block into a file."""

import math
import os
import time
from functools import cache

import numpy as np

from nsds import _checks
from nsds.model.records import memory, widened
from nsds.results.trajectories import ROW_HEAD, recorded
from nsds.status import CAPACITY, NOT_COMPUTED, has_failed

_MORE_ROWS = 64
_NEVER = 2**62  # steps: rows are saved at requested times only
BLOCK_BYTES = 2**25  # of rows on their way into a file
_BLOCK_SECONDS = 5.0  # a partial block is written after that time; at the beginning sooner
_FIRST_SECONDS = 0.05
# Columns of the progress of a member: rows saved, steps done, the status that ended its run, whether the scheme has started on its memory.
ROW, DONE, STOPPED, STARTED, FAILED = range(5)
ROW_T, ROW_STEP, ROW_STATUS, ROW_N_ITER, ROW_RESIDUAL = range(5)  # entries of the head of a row


class Recorder:
    """Saved rows of all members in memory, those before ``first`` being in the file; and the progress of each member.

    Between two calls of the compiled loop all running members have the same number of rows.
    """

    def __init__(self, records, fields, n_steps, save_every, file=None, rows_at=None):
        self.fields, self.save_every, self.file, self.rows_at = fields, save_every if rows_at is None else _NEVER, file, rows_at
        self.n_rows = 1 + (-(-n_steps // save_every) if rows_at is None else rows_at.size)
        self.dtype, self.sources = recorded(records, fields)
        self.reached = np.zeros((records.size, 5), np.int64)
        self._seen = np.ones(records.size, np.int64)  # rows at which a condition was checked
        self.ended = {}  # of members that a condition ended: a record from before, and steps from there
        self.rows = self._allocated(records.size)
        self.first, self.written, self.wait = 0, -math.inf, 0.0
        self.n_failed, self.first_failed = 0, None

    def write_into(self, owner, out, shape):
        """Take a user's array for the rows of a system, or ensemble, of this shape."""
        wanted = (*shape, self.n_rows)
        if not isinstance(out, np.ndarray) or out.dtype != self.dtype or out.shape != wanted or not out.flags.carray:
            given = f"shape {out.shape} of {out.dtype.itemsize} bytes" if isinstance(out, np.ndarray) else _checks.shortened(out)
            raise ValueError(
                f"{owner}: out must be a writable, contiguous array of shape {wanted} and of the type of the rows, of "
                f"{self.dtype.itemsize} bytes each, got {given}"
            )
        self.rows = out.reshape(self.rows.shape)

    def _allocated(self, n_members, n_rows=None):
        shape, width = (n_members, n_rows or self._room()), self.dtype.itemsize
        if shape[0] * shape[1] * width > _memory():
            raise MemoryError(
                f"{shape[0] * shape[1]} rows of {width} bytes are more than the memory of this machine: "
                "pass save_every or fields, or write them into a file with nsds.stream"
            )
        return np.empty(shape, self.dtype)

    def _room(self):
        if self.file is None:
            return self.n_rows
        return min(self.n_rows, max(1, BLOCK_BYTES // (len(self.reached) * self.dtype.itemsize)))

    @property
    def last_step(self):
        """Last step for which there is room; its row is the last, and no further one has begun."""
        return (self.first + self.rows.shape[1] - 1) * self.save_every

    @property
    def is_stopped(self):
        """Whether a failed step has ended the run."""
        return bool(self.reached[:, STOPPED].any())

    @property
    def n_reached(self):
        """Rows that some member reached."""
        return int(self.reached[:, ROW].max())

    def block(self):
        """Rows in memory that some member reached; the rest of the others is marked as not computed."""
        counts = self.reached[:, ROW] - self.first
        block = self.rows[:, : counts.max()]
        for m in (counts < block.shape[1]).nonzero()[0]:
            mark_not_computed(block[m, max(counts[m], 0) :])
        return block

    def spill(self):
        """Write the block into the file when it is full, or when it is time to; of a full one the next row goes on as the first."""
        if self.file is None:
            return
        if self.n_reached - self.first == self.rows.shape[1]:
            self._put()
            self.first, self.written = self.n_reached, time.monotonic()
            if self.rows.shape[1] != self._room():  # rows have become wider
                self.rows = self._allocated(len(self.reached))
            self.rows[:, :1] = np.zeros(1, self.dtype)
        elif time.monotonic() - self.written >= self.wait:
            self.file.secure(self.first, self.block())
            self.written, self.wait = time.monotonic(), min(_BLOCK_SECONDS, max(_FIRST_SECONDS, 2 * self.wait))

    def _put(self):
        block = self.block()
        if self.first == 0:
            self.initial = block[:, :1].copy()
        failed = np.zeros((0, 2), np.int64)
        if self.reached[:, FAILED].any():
            failed = np.argwhere(has_failed(block["status"]))
        if len(failed) and self.first_failed is None:
            self.first_failed = failed[0, 0], block[tuple(failed[0])].copy()
        self.n_failed += len(failed)
        if self.file is not None:
            self.file.write(self.first, block)

    def grow(self, records):
        """Go on with records that have more room, whose members that wanted it are to repeat their step."""
        self.dtype, self.sources = recorded(records, self.fields)
        if self.file is not None:
            self.file.widen(records.dtype, self.dtype)
        self.rows = widened(self.rows, self.dtype)
        self.reached[self.reached[:, STOPPED] == CAPACITY, STOPPED] = 0
        self.reached[:, STARTED] = 0

    def extend(self):
        """Double the room for rows, for those at events, whose number is unknown."""
        n_rows, width = self.rows.shape[1], self.dtype.itemsize
        more = self._allocated(len(self.reached), 2 * n_rows + _MORE_ROWS)
        more.view(np.uint8).reshape(len(more), -1)[:, : n_rows * width] = self.rows.view(np.uint8).reshape(len(more), -1)
        self.rows = more
        self.reached[self.reached[:, STOPPED] == CAPACITY, STOPPED] = 0

    def next_row(self, done, n_steps):
        """The next step after ``done`` whose row is asked for, or the last one."""
        return n_steps if self.rows_at is None else int(self.rows_at[np.searchsorted(self.rows_at, done, side="right")])

    def end_where(self, until, before=None):
        """Let the rows of each member end where a condition holds first; True where it has for all of them.

        before: the records from which the last steps were made, from which `ended` then says how many of them count.
        """
        for m in np.flatnonzero(self.reached[:, DONE] != _NEVER):
            row = until.first(self.rows[m, self._seen[m] - self.first : self.reached[m, ROW] - self.first])
            if row is None:
                self._seen[m] = max(self.reached[m, ROW], 1)
            else:  # what came after it is as if it had not been
                last = self.rows[m, self._seen[m] - self.first + row]
                self.reached[m, ROW], self.reached[m, DONE] = self._seen[m] + row + 1, _NEVER
                self.reached[m, STOPPED] = last["status"] if self.reached[m, STOPPED] != 0 and has_failed(last["status"]) else 0
                if before is not None:
                    self.ended[m] = before[m : m + 1], int(last["step"] - before["step"][m])
        return bool((self.reached[:, DONE] == _NEVER).all())

    def end_at(self, records):
        """Let the rows of members end with their state, where that is not yet saved."""
        for m in np.flatnonzero(self.rows["step"][np.arange(records.size), self.reached[:, ROW] - self.first - 1] != records["step"]):
            last = self.rows[m : m + 1, self.reached[m, ROW] - self.first :][:, :1]
            last["t"], last["step"] = records["t"][m], records["step"][m]
            last.view(np.float64)[..., len(ROW_HEAD) :] = memory(records)[m, self.sources]
            self.reached[m, ROW] += 1

    def close(self):
        """Write the remaining rows, and note failures."""
        try:
            if self.file is None or not self.file.has_failed:
                self._put()
        finally:
            if self.file is not None:
                self.file.close()

    def failure(self):
        """(member, row) of the step that ended the run, else of the first row with a failed step; None where there is none."""
        stopped = self.reached[:, STOPPED].nonzero()[0]
        if stopped.size:
            return stopped[0], self.rows[stopped[0], self.reached[stopped[0], ROW] - self.first - 1]
        return self.first_failed


def mark_not_computed(rows):
    """Mark rows, which are contiguous, as not reached by their member."""
    rows.view(np.float64)[...] = math.nan
    rows["status"], rows["step"], rows["n_iter"] = NOT_COMPUTED, -1, 0


@cache
def _memory():
    """Bytes of memory of the machine; infinite if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return math.inf
