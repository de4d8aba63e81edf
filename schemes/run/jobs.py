"""Pieces of a long computation: each is finished once, here or on a cluster, and kept in a file if a store is given."""

import hashlib
import os
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.schemes.run.cores import on_one_core
from nsds.schemes.run.progress import Progress

_RETRIES = 3  # of a piece whose worker dies
_BYTES = 2**28  # of memory of the members that run at once
_PIECES = 64  # least number of pieces of a computation, if it has as many members
_FEWEST, _MOST = 16, 256  # members of a piece


class Piece(NamedTuple):
    """Members that run at once, in steps of which each begins where the one before ended."""

    values: np.ndarray  # (steps, members, parameters), or records (1, members)
    periods: np.ndarray  # (steps, members)
    follows: bool  # whether it begins where the piece before ended
    first: int = 0  # number of its first member, for messages


def places_of(n_members, n_bytes):
    """Numbers of the members of each piece (1, members), which all start on their own, many at once; n_bytes: of memory of one."""
    size = max(1, min(_MOST, _BYTES // n_bytes, max(_FEWEST, n_members // _PIECES)))
    return [np.arange(k, min(k + size, n_members))[None] for k in range(0, n_members, size)]


class Store:
    """A folder of finished pieces, as .npz files, whose every byte has a checksum; they appear whole or not at all."""

    def __init__(self, owner, folder):
        self.folder = Path(_checks.path(owner, "store", folder)).absolute()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise type(error)(f"{owner}: store must be a folder that can be made or exists: {_checks.shortened(str(error))}") from None

    def read(self, name):
        """(rows, states at the ends) of a piece; None where there is no such file, or a damaged one."""
        try:
            with np.load(self.folder / name, allow_pickle=False) as arrays:
                return arrays["rows"], arrays["ends"]
        except (OSError, ValueError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error):
            return None

    def rows_of(self, name):
        """The rows of a piece that is finished."""
        found = self.read(name)
        if found is None:
            raise OSError(f"{self.folder}: a piece of this computation, {name}, was finished and is not there any more: call again")
        return found[0]

    def array(self, names, shape, dtype):
        """New array over a file for the pieces with these names."""
        digest = hashlib.sha256("".join(names).encode()).hexdigest()[:32]
        return np.lib.format.open_memmap(self.folder / f"rows-{digest}.npy", mode="w+", shape=shape, dtype=dtype)

    def write(self, name, rows, ends):
        """Store the rows of a piece."""
        part = self.folder / f".{name}.{os.getpid()}-{os.urandom(4).hex()}"
        try:
            with open(part, "xb") as file:
                np.savez(file, rows=rows, ends=ends)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self.folder / name)
        finally:
            part.unlink(missing_ok=True)


def store_of(owner, store, client, mapped):
    """The `Store` of a folder, None where none is given; a client needs one, which its workers see, too; so does a result on the disk."""
    if _checks.flag(owner, "mapped", mapped) and store is None:
        raise ValueError(f"{owner}: mapped goes with store= a folder, in which the result lies")
    if client is not None and (store is None or not hasattr(client, "submit")):
        raise ValueError(f"{owner}: client must be a distributed.Client, with store= a folder that its workers see, too")
    return None if store is None else Store(owner, store)


def finish_all(work, pieces, names, store, client, progress):
    """Yield (number, rows) of all pieces as they are finished; pieces that are in the store, under their names, are read.

    ``work.compute(piece, states)`` gives the rows of a piece and the states at their ends, from the states at its start, None for those of
    the system; ``work.identity()`` contains all that determines this except the piece.
    """
    with Progress(progress, sum(piece.periods.size for piece in pieces)) as shown:
        for k, rows in _on_cluster(work, pieces, names, store, client) if client else _here(work, pieces, names, store):
            shown.update(pieces[k].periods.size)
            yield k, rows


def names_of(work, pieces, store):
    """Names of the files of pieces: number, and hash of all that determines their contents; without a store they have none."""
    if store is None:
        return [""] * len(pieces)
    names, before, identity = [], b"", work.identity()
    for k, piece in enumerate(pieces):
        digest = hashlib.sha256(identity + repr(piece.values.shape).encode() + piece.values.tobytes() + piece.periods.tobytes())
        digest.update(before if piece.follows else b"")
        before = digest.digest()
        names.append(f"{k:06d}-{digest.hexdigest()[:32]}.npz")
    return names


def _here(work, pieces, names, store):
    """In this process, whose cores share the members of a piece."""
    ends = None
    for k, (piece, name) in enumerate(zip(pieces, names, strict=True)):
        found = None if store is None else store.read(name)
        if found is None:
            found = work.compute(piece, ends if piece.follows else None)
            if store is not None:
                store.write(name, *found)
        rows, ends = found
        yield k, rows


def _on_cluster(work, pieces, names, store, client):
    """On the workers of a cluster, one task a piece."""
    from distributed import as_completed

    numbers, before, identity = {}, None, work.identity()
    try:
        # 1. submit missing pieces; one that continues another waits for it
        for k, (piece, name) in enumerate(zip(pieces, names, strict=True)):
            found = store.read(name)
            if found is None:
                asked = work, identity, piece, name, names[k - 1] if piece.follows else None, store, before if piece.follows else None
                before = client.submit(_finish, *asked, retries=_RETRIES, pure=False)
                numbers[before] = k
            else:
                before = None
                yield k, found[0]
        # 2. rows come by the store, as results would pass through the scheduler
        for future in as_completed(list(numbers)):
            future.result()
            k = numbers.pop(future)
            yield k, store.rows_of(names[k])
    finally:
        client.cancel(list(numbers))


def _finish(work, identity, piece, name, name_before, store, _before):
    """Task of a worker: compute a piece, unless one that died had finished it."""
    if work.identity() != identity:
        raise RuntimeError("a worker of the cluster computes with another version of nsds, or of its functions")
    if store.read(name) is None:
        with on_one_core():
            store.write(name, *work.compute(piece, None if name_before is None else store.read(name_before)[1]))
