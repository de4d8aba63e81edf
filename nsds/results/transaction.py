"""A file that changes as a whole or not at all, despite a kill, a full disk or a power failure: a redo log.

Changes are collected in memory. `Transaction.commit` then appends to the file the added bytes, the new versions of
changed pages, and a checksum. Once this is on the disk, the pages are copied to their places, and
the log is cut off::

    file as it was | added bytes | changed pages | their numbers | mark, sizes, checksum of everything after the file as it was

A reader of a file that ends in a complete log takes the changed pages from there; an incomplete log is a change that was not made.
"""

import os
import struct
import zlib

import numpy as np

_PAGE = 4096
_FOOTER = struct.Struct("<8sQQQQ")  # mark, size before, size afterwards, number of pages, checksum
_MARK = b"nsdsredo"


class Transaction:
    """A file in the state of the last transaction, with the methods of a binary file that h5py needs; writes stay in memory.

    Parameters
    ----------
    raw : io.FileIO
        The file, without a buffer.

    Attributes
    ----------
    n_needed : int
        Bytes on the disk that the last change needed.
    """

    def __init__(self, raw):
        self._raw, self._place, self.n_needed = raw, 0, 0
        self.is_broken = False  # whether a change is in the log and could not be made: who opens the file next makes it
        self._base = self._size = os.fstat(raw.fileno()).st_size
        self._pages, self._gained = {}, bytearray()
        if self._base >= _FOOTER.size:
            self._read_log()

    def _read_log(self):
        # 1. footer with the mark, and sizes that fit the file
        mark, base, size, n_pages, checksum = _FOOTER.unpack(self._read(self._base - _FOOTER.size, _FOOTER.size))
        behind = max(base, size)
        if mark != _MARK or behind + n_pages * (_PAGE + 8) + _FOOTER.size != self._base:
            return
        # 2. checksum; a log that fails it was not completed
        log = self._read(base, self._base - 8 - base)
        if zlib.crc32(log) != checksum:
            return
        # 3. changed pages replace those of the file
        pages, numbers = behind - base, behind - base + n_pages * _PAGE
        for k, number in enumerate(np.frombuffer(log, np.int64, n_pages, numbers).tolist()):
            length = max(0, min(_PAGE, base - number * _PAGE))
            self._pages[number] = bytearray(log[pages + k * _PAGE : pages + k * _PAGE + length])
        self._base = self._size = size

    def changes(self):
        """Present changes, for `go_back`."""
        return self._size, {number: bytes(page) for number, page in self._pages.items()}, bytes(self._gained)

    def go_back(self, changes):
        """Restores the changes of an earlier call of `changes`."""
        self._size, pages, gained = changes
        self._pages, self._gained = {number: bytearray(page) for number, page in pages.items()}, bytearray(gained)

    def commit(self):
        """Writes the changes to the disk.

        Raises
        ------
        OSError
            The disk is full, or fails: the file has not changed, or is found changed by who opens it next.
        """
        if self._pages or self._gained or self._size != self._base:
            self._write_log()
            self.is_broken = True
            self._apply()
            self.is_broken = False

    def _write_log(self):
        # 1. pieces of the log, and their checksum
        numbers = sorted(number for number in self._pages if number * _PAGE < self._size)
        gained = memoryview(self._gained)[: max(0, self._size - self._base)]
        pieces = [gained, *(self._pages[number].ljust(_PAGE, b"\0") for number in numbers), np.array(numbers, np.int64).tobytes()]
        footer = _FOOTER.pack(_MARK, self._base, self._size, len(numbers), 0)[:-8]
        checksum = 0
        for piece in [*pieces, footer]:
            checksum = zlib.crc32(piece, checksum)
        pieces.append(footer + struct.pack("<Q", checksum))
        # 2. write it; a failure leaves the file as it was
        try:
            self.n_needed = sum(len(piece) for piece in pieces)
            if hasattr(os, "posix_fallocate"):  # a full disk shows before anything is written
                os.posix_fallocate(self._raw.fileno(), self._base, self.n_needed)
            self._raw.seek(self._base)
            for piece in pieces:
                self._write(piece)
            _sync(self._raw)
        except OSError:
            gained.release()
            self._raw.truncate(self._base)
            raise
        gained.release()

    def _apply(self):
        """Copies the pages of the log to their places, and cuts it off."""
        for number, page in self._pages.items():
            start = number * _PAGE
            if start < self._size:
                self._raw.seek(start)
                self._write(memoryview(page)[: self._size - start])
        _sync(self._raw)
        self._raw.truncate(self._size)
        self._base, self._pages, self._gained = self._size, {}, bytearray()

    def restore(self):
        """Completes a change that is still in the log."""
        if os.fstat(self._raw.fileno()).st_size != self._size:
            self._apply()

    def _read(self, start, count):
        """Bytes of the file on the disk; fewer at its end."""
        self._raw.seek(start)
        pieces = []
        while count > 0 and (piece := self._raw.read(count)):
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def _write(self, piece):
        piece = memoryview(piece)
        while len(piece):
            piece = piece[self._raw.write(piece) :]

    # Methods called by h5py.

    def seek(self, place, whence=os.SEEK_SET):
        """Sets the position, from the start, the present one or the end."""
        self._place = place + (0, self._place, self._size)[whence]
        return self._place

    def tell(self):
        """Position of the next byte to be read or written."""
        return self._place

    def read(self, count):
        """The next bytes; fewer at the end."""
        target = bytearray(count)
        return bytes(target[: self.readinto(target)])

    def readinto(self, target):
        """Fills a buffer; returns the number of bytes."""
        target = memoryview(target).cast("B")
        # 1. bytes of the file, with changed pages over them
        start, stop = self._place, min(self._place + len(target), self._size)
        within = min(stop, self._base)
        if start < within:
            found = self._read(start, within - start)
            target[: len(found)] = found
            for number in self._pages.keys() & range(start // _PAGE, -(-within // _PAGE)) if self._pages else ():
                page = self._pages[number]  # the last one of the file as it was may be shorter
                first, last = max(start, number * _PAGE), min(within, number * _PAGE + len(page))
                if first < last:
                    target[first - start : last - start] = page[first - number * _PAGE : last - number * _PAGE]
        # 2. added bytes
        if stop > self._base:
            first = max(start, self._base)
            target[first - start : stop - start] = self._gained[first - self._base : stop - self._base]
        self._place = max(start, stop)
        return max(0, stop - start)

    def write(self, source):
        """Records bytes to be written."""
        # 1. pages of the file: a changed page is read once, then kept
        source = memoryview(source).cast("B")
        start, stop = self._place, self._place + len(source)
        for number in range(start // _PAGE, -(-min(stop, self._base) // _PAGE)) if start < self._base else ():
            if number not in self._pages:
                self._pages[number] = bytearray(self._read(number * _PAGE, min(_PAGE, self._base - number * _PAGE)))
            first, last = max(start, number * _PAGE), min(stop, self._base, (number + 1) * _PAGE)
            self._pages[number][first - number * _PAGE : last - number * _PAGE] = source[first - start : last - start]
        # 2. added bytes
        if stop > self._base:
            first = max(start, self._base)
            self._gained.extend(bytes(max(0, stop - self._base - len(self._gained))))
            self._gained[first - self._base : stop - self._base] = source[first - start :]
        self._place, self._size = stop, max(self._size, stop)
        return len(source)

    def truncate(self, size=None):
        """Records the new size of the file."""
        size = self._place if size is None else size
        cut = min(self._size, self._base) - size
        if cut > 0:  # what a file that grows again holds there is zero
            self.seek(size)
            self.write(bytes(cut))
        self._size = size
        gained = max(0, self._size - self._base)
        del self._gained[gained:]
        self._gained.extend(bytes(gained - len(self._gained)))
        return self._size

    def flush(self):
        """No operation: writes stay in memory until `commit`."""


def _sync(raw):
    """Waits until all writes are on the disk."""
    os.fsync(raw.fileno())
