"""Compiled kernels on disk, each under a fingerprint of its code and of all that it reads and calls.

An edit makes anew just the kernels that it reaches, whatever the checkout or installation; docstrings, comments and lines that moved make
none. The cache only ever saves time: where it cannot be read or written, or a file of it is damaged, kernels are compiled again.
"""

import hashlib
import os
import pickle
import sys
import tempfile
import time
import types as python_types
from contextlib import suppress
from functools import cache
from pathlib import Path

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core.caching import dumps
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher

_UNUSED_DAYS = 30
_FOREIGN = sys.stdlib_module_names | {"numba", "numpy", "scipy", "llvmlite", "builtins"}  # known by their versions
_CHECKSUM = hashlib.sha256().digest_size


def _folder():
    """Where kernels of this version of numba and of the code that configures it are kept; None where there is no home."""
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        root = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:
        return None
    config = [numba.__version__, llvmlite.__version__, sys.version_info[:2], numba.config.BOUNDSCHECK, numba.config.OPT]
    sources = [Path(__file__).with_name(name).read_bytes() for name in ("compiler.py", "calls.py", "cache.py")]
    digest = hashlib.sha256(repr(config).encode() + b"".join(sources))
    return root / "nsds" / digest.hexdigest()[:16]


FOLDER = _folder()


def fingerprint(function, known):
    """Hash of what decides how a function computes: its code, the constants that it reads and, in turn, the functions it calls.

    known: what earlier calls found of single functions; to be empty where functions may have been redefined since.
    """
    digest, found, waiting = hashlib.sha256(), set(), [function]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            if one not in known:
                known[one] = _own(one)
            digest.update(known[one][0])
            waiting += known[one][1]
    return digest.hexdigest()


def _own(function):
    """(hash of a function without what it calls, the functions that it reads)."""
    digest, called = hashlib.sha256(), []
    if isinstance(function, Dispatcher):
        options = sorted(function.targetoptions.items())
        digest.update(repr((options, function._compiler.pipeline_class.__name__)).encode())
    function = _plain(function)
    names = sorted(_names(function.__code__))
    _feed_code(digest, called, function.__code__, names, function.__doc__)
    _feed(digest, called, function.__defaults__, names)
    for name in names:
        if name in function.__globals__:
            digest.update(name.encode() + b"=")
            _feed(digest, called, function.__globals__[name], names)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        digest.update(name.encode() + b"=")
        with suppress(ValueError):  # a cell that is still empty
            _feed(digest, called, cell.cell_contents, names)
    return digest.digest(), called


def _plain(function):
    """The Python function behind a kernel, or behind a piece that generates code."""
    return getattr(function, "py_func", getattr(function, "_defn", function))


def _names(code):
    """Names that a function and the functions inside it look up."""
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if isinstance(c, python_types.CodeType)))


def _is_foreign(name):
    return (name or "").partition(".")[0] in _FOREIGN


def _feed(digest, called, value, names):
    """Hash a value; functions are listed in called, of a module only what is among the names."""
    if isinstance(_plain(value), python_types.FunctionType):
        function = _plain(value)
        digest.update(f"{function.__module__}:{function.__qualname__}".encode())
        if not _is_foreign(function.__module__):
            called.append(value)
    elif isinstance(value, python_types.CodeType):
        _feed_code(digest, called, value, names, None)
    elif isinstance(value, python_types.ModuleType):
        digest.update(value.__name__.encode())
        if not _is_foreign(value.__name__):
            for name in names:
                if name in vars(value):
                    digest.update(name.encode() + b"=")
                    _feed(digest, called, vars(value)[name], names)
    elif isinstance(value, np.ndarray):
        digest.update(repr((value.dtype, value.shape)).encode() + value.tobytes())
    elif isinstance(value, (tuple, list)):
        digest.update(f"{type(value).__name__}({len(value)}".encode())
        for item in value:
            _feed(digest, called, item, names)
    else:
        digest.update(repr((value, getattr(value, "_fields", None))).encode())


def _feed_code(digest, called, code, names, documentation):
    """Hash the code of a function but its docstring, which comes first among the constants."""
    digest.update(code.co_code + repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    is_documented = documentation is not None and code.co_consts[:1] == (documentation,)
    for constant in code.co_consts[is_documented:]:
        _feed(digest, called, constant, names)


_known = {}


def _label(function):
    """Beginning of the names of files with code of a function."""
    plain = _plain(function)
    return f"{plain.__module__}.{plain.__qualname__}-{fingerprint(function, _known)[:20]}".replace("<", "").replace(">", "")


def is_cold(function):
    """True when no code of a kernel is cached: its first call will compile."""
    label = _label(function)
    try:
        return FOLDER is None or not any(name.startswith(label) for name in os.listdir(FOLDER))
    except OSError:
        return True


def _described(kind):
    """A type in words that tell all of its fields, which the names of numba's types do not."""
    if isinstance(kind, types.BaseTuple):
        return f"{kind}{getattr(kind, 'fields', '')}[{','.join(map(_described, kind))}]"
    return ",".join(map(_described, kind)) if isinstance(kind, (tuple, list)) else str(kind)


class KernelCache:
    """What numba asks of a cache, for one function: a file a signature, with a checksum, written whole or not at all."""

    def __init__(self, owner):
        # What compiled code is made for has no name of its own in numba: a dispatcher, or a callback.
        self._function = owner if isinstance(owner, Dispatcher) else owner.__wrapped__
        self.cache_path = str(FOLDER)

    def _path(self, signature, codegen):
        arguments = getattr(signature, "args", signature)
        returned = getattr(signature, "return_type", None)
        key = repr((_described(arguments), str(returned), codegen.magic_tuple()))
        return FOLDER / f"{_label(self._function)}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.nbc"

    def load_overload(self, signature, target_context):
        """The code of a signature; None where it is to be compiled."""
        target_context.refresh()
        if FOLDER is None:
            return None
        path = self._path(signature, target_context.codegen())
        try:
            data = path.read_bytes()
        except OSError:
            return None
        if hashlib.sha256(data[_CHECKSUM:]).digest() != data[:_CHECKSUM]:
            return None
        with suppress(OSError):  # a cache that may not be written: no need to tell when it was used
            os.utime(path)
        return CompileResult._rebuild(target_context, *pickle.loads(data[_CHECKSUM:]))

    def save_overload(self, signature, result):
        """Keep the code of a signature, where that is possible."""
        if FOLDER is None or result.library.has_dynamic_globals or not _is_writable():
            return
        data = dumps(result._reduce())
        path = self._path(signature, result.codegen)
        try:
            handle, name = tempfile.mkstemp(prefix=path.name, suffix=".tmp", dir=FOLDER)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(data).digest() + data)
                os.replace(name, path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            _say_that_nothing_is_kept(error)


@cache
def _is_writable():
    """Make the folder, and drop from it and beside it what nobody has used for a month; asked when something was compiled."""
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        os.utime(FOLDER)
    except OSError as error:
        _say_that_nothing_is_kept(error)
        return False
    limit = time.time() - 86400 * _UNUSED_DAYS
    for path in FOLDER.parent.rglob("*"):
        with suppress(OSError):  # another process has removed it, or still fills it
            if path.stat().st_mtime < limit:
                path.rmdir() if path.is_dir() else path.unlink()
    return True


def _say_that_nothing_is_kept(error):
    if not _said:
        print(f"nsds: compiled kernels cannot be kept in {FOLDER} ({error}); set NUMBA_CACHE_DIR to a folder for them", file=sys.stderr)
        _said.append(error)


_said = []
