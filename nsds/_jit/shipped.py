"""Kernels that come with the package: an archive that `nsds.build_kernels` writes, compiled for a baseline that most processors have.

One read-only file for each numba, llvmlite, Python and baseline. A kernel is looked up by its fingerprint, read and unpacked in memory, so
that the file may lie anywhere and any number of processes may read it. Where the archive is missing, damaged or made for something else,
kernels are compiled, and that is said once.
"""

import hashlib
import json
import os
import platform
import struct
import sys
from functools import cache
from pathlib import Path

import llvmlite
import numba
from llvmlite import binding
from numba.core.codegen import get_host_cpu_features

try:
    import lzma
except ImportError:  # Python was built without it
    lzma = None

# Of each architecture the baseline, as LLVM names it, and what a processor must have of it.
_X86 = "x86-64-v3", ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2", "xsave")
_BASELINES = {"x86_64": _X86, "amd64": _X86, "aarch64": ("generic", ()), "arm64": ("generic", ())}
BASELINE, _WANTED = _BASELINES.get(platform.machine().lower(), (None, ()))
FEATURES = ""  # beyond the baseline
SWITCH = "NSDS_SHIPPED_KERNELS"  # environment variable: 0 for kernels compiled here alone

_MADE_FOR = "numba {}, llvmlite {}, Python {}.{}, {} {}".format(
    numba.__version__, llvmlite.__version__, *sys.version_info[:2], sys.platform, BASELINE
)
_NAME = "kernels-{}.nbk".format(_MADE_FOR.replace(", ", "-").replace(" ", "_"))
_MAGIC = b"nsds kernels 1\n"
_HEAD = struct.Struct("<32s32sQ")  # digest of what configures the compiler, checksum and length of the index


def path():
    """Where the archive for this environment lies, or would lie."""
    return Path(__file__).with_name(_NAME)


def write(configuration, files):
    """Write the archive; returns its size (bytes).

    Parameters
    ----------
    configuration : bytes (32,)
        Digest of what configures the compiler.
    files : dict
        Contents by name. Those of one module are alike, and are compressed together.
    """
    blocks, data = [], []
    for name, content in sorted(files.items()):
        if not blocks or sum(map(len, data[-1])) > _BLOCK:
            blocks.append([])
            data.append([])
        blocks[-1].append((name, len(content)))
        data[-1].append(content)
    packed = [_pack(b"".join(block)) for block in data]
    index = _pack(json.dumps([(len(block), inside) for block, inside in zip(packed, blocks, strict=True)]).encode())
    head = _HEAD.pack(configuration, hashlib.sha256(index).digest(), len(index))
    partial = path().with_suffix(".tmp")
    partial.write_bytes(b"".join([_MAGIC, head, index, *packed]))
    os.replace(partial, path())
    return path().stat().st_size


_BLOCK = 200_000  # bytes: five times as many take a fifth less space, and twice as long to unpack for the few that are wanted


def _pack(data):
    return lzma.compress(data, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "preset": 6}])


def _unpack(data):
    """What was packed; ValueError where that is damaged."""
    try:
        return lzma.decompress(data, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "preset": 6}])
    except lzma.LZMAError as error:
        raise ValueError from error


class Archive:
    """The archive of this environment; empty where there is none that can be used, and then ``why`` says why, if anybody has to know."""

    def __init__(self, configuration):
        self.why, self._blocks, self._by_beginning, self._unpacked = "", {}, {}, {}
        if _is_unwanted():
            return
        try:
            self._open(configuration)
        except FileNotFoundError:
            others = [one.name for one in Path(__file__).parent.glob("kernels-*.nbk")]
            self.why = f"those in this package are not for {_MADE_FOR}" if others else ""
        except OSError as error:
            self.why = f"{path()} cannot be read ({error.strerror})"
        except _DAMAGED:
            self.why = f"{path()} is damaged"

    def _open(self, configuration):
        with open(path(), "rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ValueError
            made_by, checksum, length = _HEAD.unpack(file.read(_HEAD.size))
            index = file.read(length)
            begin, size = file.tell(), os.fstat(file.fileno()).st_size
        if hashlib.sha256(index).digest() != checksum:
            raise ValueError
        if made_by != configuration:
            self.why = f"{path()} was made by another version of nsds._jit or with other settings of numba"
            return
        if lzma is None:
            self.why = "they want a Python that has the module lzma"
            return
        lacking = [one for one in _WANTED if not get_host_features().get(one, False)]
        if lacking:
            self.why = f"they want a processor with {BASELINE}, and this one lacks {', '.join(lacking)}"
            return
        blocks = json.loads(_unpack(index))
        if begin + sum(length for length, _ in blocks) != size:
            raise ValueError
        for length, inside in blocks:
            block = begin, length, inside
            for name, _ in inside:
                self._blocks[name] = block
                self._by_beginning.setdefault(name[: name.rindex("-") + 1], []).append(name)
            begin += length

    def names(self, beginning):
        """Names of files that begin so."""
        return self._by_beginning.get(beginning, ())

    def holds(self, label):
        """Whether some file is of the function of this label."""
        return any(name.startswith(label) for name in self._by_beginning)

    def read(self, name):
        """Contents of a file; None where there is no such file, or it cannot be read."""
        if name not in self._blocks:
            return None
        if name not in self._unpacked:
            self._unpack(*self._blocks[name])
        return self._unpacked.pop(name, None)

    def _unpack(self, begin, length, inside):
        """Take the files of a block apart, which are often wanted together."""
        try:
            with open(path(), "rb") as file:
                file.seek(begin)
                data = _unpack(file.read(length))
        except OSError as error:
            self.why = f"{path()} cannot be read ({error.strerror})"
        except _DAMAGED:
            self.why = f"{path()} is damaged"
        else:
            at = 0
            for name, size in inside:
                self._unpacked[name] = data[at : at + size]
                at += size

    def is_damaged(self, name):
        """Note that a file has not the contents that were written."""
        self.why = f"{path()} is damaged"
        del self._blocks[name]

    def tell(self):
        """Say, once, why kernels are compiled that others have ready."""
        if self.why and not _said:
            print(f"nsds: shipped kernels are not used, {self.why}: kernels are compiled once, then kept", file=sys.stderr, flush=True)
            _said.append(self.why)


_DAMAGED = ValueError, struct.error
_said = []


@cache
def get_host_features():
    """What this processor has, by LLVM's names."""
    return {one[1:]: one[0] == "+" for one in get_host_cpu_features().split(",") if one}


def _is_unwanted():
    """Whether settings ask for other code than the archive has."""
    asked = numba.config.BOUNDSCHECK, numba.config.CPU_NAME, numba.config.CPU_FEATURES
    return BASELINE is None or any(one not in (None, 0) for one in asked) or os.environ.get(SWITCH) == "0"


def magic():
    """What numba's ``magic_tuple`` is where code is compiled for the baseline."""
    return binding.get_process_triple(), BASELINE, FEATURES
