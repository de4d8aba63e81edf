"""Compiled kernels on disk, each under a fingerprint of its code and of all that it reads and calls.

An edit recompiles only the kernels that it reaches, whatever the checkout or installation; docstrings, comments and moved lines recompile
none. The cache only saves time: if it cannot be read or written, or a file of it is damaged, kernels are compiled again. Of processes that
want the same kernel at the same time one compiles it, the others wait.
"""

import dis
import hashlib
import io
import itertools
import os
import pickle
import sys
import tempfile
import time
import types as python_types
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import llvmlite
import numba
import numpy as np
from llvmlite.binding import Linkage, address_of_symbol
from numba import types
from numba.core.caching import dumps
from numba.core.compiler import compile_result
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys

from nsds._jit import shipped
from nsds._jit.convention import executable, set_environment
from nsds._jit.library import Library, Pieces

try:
    import fcntl
except ImportError:  # Windows: processes do not wait for one another
    fcntl = None

_UNUSED_DAYS = 30
_FOREIGN = sys.stdlib_module_names | {"numba", "numpy", "scipy", "llvmlite", "builtins"}  # known by their versions
_COMPILED, _OF_NUMBA = "_ZN", "_ZN5numba"  # prefixes of the symbols of compiled code, and of those of numba's own functions
_ITSELF = ".numba.unresolved$"  # of a function that calls itself: numba finds it within one process only
_CHECKSUM = hashlib.sha256().digest_size
_LOAD_GLOBAL, _EXTENDED, _CACHE = dis.opmap["LOAD_GLOBAL"], dis.EXTENDED_ARG, dis.opmap.get("CACHE")
# Bits of the argument of an operation that are not of the number of the name.
_FLAGS = int(sys.version_info >= (3, 11))
_ATTRIBUTES = {
    dis.opmap[name]: bits for name, bits in (("LOAD_ATTR", int(sys.version_info >= (3, 12))), ("LOAD_METHOD", 0)) if name in dis.opmap
}
_PATIENCE = 600.0  # s; another process that has not compiled a kernel by then may be a stopped one
_BETWEEN = 0.02  # s, between two looks at a lock


def _configuration():
    """Digest of the version of numba and of the code that configures it."""
    config = [numba.__version__, llvmlite.__version__, sys.version_info[:2], numba.config.BOUNDSCHECK, numba.config.OPT]
    sources = [
        Path(__file__).with_name(name).read_bytes()
        for name in ("compiler.py", "convention.py", "calls.py", "cache.py", "library.py", "reference.py")
    ]
    return hashlib.sha256(repr(config).encode() + b"".join(sources))


def _folder():
    """Where kernels of this configuration are kept; None where there is no home."""
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        root = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:
        return None
    return root / "nsds" / CONFIGURATION.hexdigest()[:16]


CONFIGURATION = _configuration()
FOLDER = _folder()
SHIPPED = shipped.Archive(CONFIGURATION.digest())


def fingerprint(function, known):
    """Hash of everything that determines a function's results: its code, the constants that it reads and, in turn, the functions it calls.

    known: results of earlier calls for single functions; must be empty if functions may have been redefined since.
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
    """(hash of a function without the functions it calls, the functions that it reads)."""
    # 1. options of the compiler
    digest, called = hashlib.sha256(), []
    if isinstance(function, Dispatcher):
        options = sorted(function.targetoptions.items())
        digest.update(repr((options, function._compiler.pipeline_class.__name__)).encode())
    # 2. code and defaults; docstrings and line numbers are not part of them
    function = _plain(function)
    names = sorted(_names(function.__code__))
    _feed_code(digest, called, function.__code__, names, function.__doc__)
    _feed(digest, called, function.__defaults__, names)
    # 3. values of the globals and of the closure that the code reads
    for name, attributes in sorted(_globals(function.__code__).items()):
        if name in function.__globals__:
            digest.update(name.encode() + b"=")
            _feed(digest, called, function.__globals__[name], sorted(attributes))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        digest.update(name.encode() + b"=")
        with suppress(ValueError):  # a cell that is still empty
            _feed(digest, called, cell.cell_contents, names)
    return digest.digest(), called


def _plain(function):
    """The Python function of a kernel, or of an intrinsic that generates code."""
    return getattr(function, "py_func", getattr(function, "_defn", function))


def _names(code):
    """Names that a function and its inner functions look up: globals, and attributes."""
    return set(code.co_names).union(*map(_names, _inner(code)))


def _globals(code):
    """{name: attributes} that a function and its inner functions look up in their module, and on what they find there."""
    found, attributes, beyond = {}, None, 0
    for operation, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        if operation == _LOAD_GLOBAL:
            attributes = found.setdefault(code.co_names[(beyond | argument) >> _FLAGS], set())
        elif operation in _ATTRIBUTES and attributes is not None:
            attributes.add(code.co_names[(beyond | argument) >> _ATTRIBUTES[operation]])
        elif operation not in (_EXTENDED, _CACHE):
            attributes = None
        beyond = (beyond | argument) << 8 if operation == _EXTENDED else 0
    for one in _inner(code):
        for name, more in _globals(one).items():
            found.setdefault(name, set()).update(more)
    return found


def _inner(code):
    return [one for one in code.co_consts if isinstance(one, python_types.CodeType)]


def _is_foreign(name):
    return (name or "").partition(".")[0] in _FOREIGN


def _feed(digest, called, value, names):
    """Hashes a value; functions are appended to called; of a module only the attributes among the names are hashed."""
    # 1. functions and code
    if isinstance(_plain(value), python_types.FunctionType):
        function = _plain(value)
        digest.update(f"{function.__module__}:{function.__qualname__}".encode())
        if not _is_foreign(function.__module__):
            called.append(value)
    elif isinstance(value, python_types.CodeType):
        _feed_code(digest, called, value, names, None)
    # 2. modules: values of the names that are looked up
    elif isinstance(value, python_types.ModuleType):
        digest.update(value.__name__.encode())
        if not _is_foreign(value.__name__):
            for name in names:
                if name in vars(value):
                    digest.update(name.encode() + b"=")
                    _feed(digest, called, vars(value)[name], names)
    # 3. arrays, tuples and lists, other values by their repr
    elif isinstance(value, np.ndarray):
        digest.update(repr((value.dtype, value.shape)).encode() + value.tobytes())
    elif isinstance(value, (tuple, list)):
        digest.update(f"{type(value).__name__}({len(value)}".encode())
        for item in value:
            _feed(digest, called, item, names)
    else:
        digest.update(repr((value, getattr(value, "_fields", None))).encode())


def _feed_code(digest, called, code, names, documentation):
    """Hashes the code of a function without its docstring, the first of its constants."""
    digest.update(code.co_code + repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    is_documented = documentation is not None and code.co_consts[:1] == (documentation,)
    for constant in code.co_consts[is_documented:]:
        _feed(digest, called, constant, names)


_known = {}


def _label(function):
    """Prefix of the names of files with code of a function."""
    plain = _plain(function)
    return f"{plain.__module__}.{plain.__qualname__}-{fingerprint(function, _known)[:20]}".replace("<", "").replace(">", "")


def is_cold(function):
    """True if no code of a kernel is cached: its first call will compile."""
    label = _label(function)
    if SHIPPED.holds(label):
        return False
    try:
        return FOLDER is None or not any(name.startswith(label) for name in os.listdir(FOLDER))
    except OSError:
        return True


def _described(kind):
    """Text of a type with all of its fields, which the names of numba's types do not list."""
    if isinstance(kind, types.BaseTuple):
        return f"{kind}{getattr(kind, 'fields', '')}[{','.join(map(_described, kind))}]"
    return ",".join(map(_described, kind)) if isinstance(kind, (tuple, list)) else str(kind)


@contextmanager
def announced(function, what):
    """Announces that a kernel is compiled, if it is, with the time that it took last on this machine."""
    if not is_cold(function):
        yield
        return
    path, last = None if FOLDER is None else FOLDER.parent / f"{what}.seconds", ""
    with suppress(OSError, ValueError, AttributeError):
        last = f" ({float(path.read_text()):.0f} s last time)"
    print(f"nsds: compiling {what}, once for this version of the package{last} ...", file=sys.stderr, flush=True)
    began = time.perf_counter()
    yield
    with suppress(OSError, AttributeError):
        path.write_text(f"{time.perf_counter() - began:.1f}")


class KernelCache:
    """Cache with numba's interface, for one function: a file for each signature, with a checksum, written as a whole or not at all.

    Code refers to other kernels by symbols, which no two processes share: each file lists the files that must be loaded before it.
    """

    def __init__(self, owner):
        # What compiled code is made for has no name of its own in numba: a dispatcher, or a callback.
        self._function = owner if isinstance(owner, Dispatcher) else owner.__wrapped__
        self._turns = None
        self.cache_path = str(FOLDER)

    def _beginning(self, signature, magic):
        """Of the names of files with code for a signature and a processor; one for each process that has compiled it."""
        arguments = getattr(signature, "args", signature)
        returned = getattr(signature, "return_type", None)
        key = repr((_described(arguments), str(returned), magic))
        return f"{_label(self._function)}-{hashlib.sha256(key.encode()).hexdigest()[:16]}-"

    @contextmanager
    def in_turn(self):
        """Where code is not found, no other process compiles the same until the end of this context."""
        outer, self._turns = self._turns, []
        try:
            yield
        finally:
            for place in self._turns:
                _end_turn(place)
            self._turns = outer

    def load_overload(self, signature, target_context):
        """The code of a signature; None where it is to be compiled."""
        shipped_ones = SHIPPED.names(self._beginning(signature, shipped.magic()))
        beginning = self._beginning(signature, target_context.codegen().magic_tuple())
        if not _names_listed:
            _list_files()
        code = _first(itertools.chain(shipped_ones, _listed.get(beginning, ())), target_context)
        if code is None:
            SHIPPED.tell()
            if self._turns is not None:
                self._turns.append(_begin_turn(beginning))
            _list_files()  # another process may have compiled it
            code = _first(_listed.get(beginning, ()), target_context)
        return code

    def save_overload(self, signature, result):
        """Stores the code of a signature, if possible."""
        # 1. symbols that it needs: files of other kernels, and symbols from outside
        library, symbol = result.library, result.fndesc.mangled_name
        declared = _declarations(library._final_module)
        needed = [_file_of[one] for one in declared if one in _file_of]
        outside = [one for one in declared if not one.startswith(_COMPILED)]
        others = [one for one in declared if one.startswith(_COMPILED) and one not in _file_of and not one.startswith(_OF_NUMBA)]
        others += [one for one in outside if one.startswith(_ITSELF)]
        # 2. code that refers to other code which is not cached cannot be found again
        _file_of[symbol] = None
        if others or FOLDER is None or library.has_dynamic_globals or None in needed or not _is_writable():
            return
        # 3. write a temporary file and rename it: other processes see the whole file or none
        name = f"{self._beginning(signature, result.codegen.magic_tuple())}{hashlib.sha256(symbol.encode()).hexdigest()[:8]}.nbc"
        defined = [one.name for one in library.get_defined_functions()]
        data = pickle.dumps((needed, outside)) + dumps(result._replace(type_annotation="")._reduce()) + pickle.dumps(defined)
        try:
            handle, path = tempfile.mkstemp(prefix=name, suffix=".tmp", dir=FOLDER)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(data).digest() + data)
                os.replace(path, FOLDER / name)
            except BaseException:
                os.unlink(path)
                raise
            _file_of[symbol] = name
        except OSError as error:
            _say_that_nothing_is_kept(error)


def _first(names, target_context):
    """The code in the first of these files that can be used; None where there is none."""
    return next((code for name in names if (code := _load(name, target_context)) is not None), None)


def _begin_turn(beginning):
    """Wait until no other process compiles the code whose files begin so; returns the place of its lock in the file of locks.

    Where the folder has no locks, or the other process takes too long, both compile the same: only time is lost. A lock goes with its
    process. No two processes wait for each other, as a kernel waits only for those that it calls.
    """
    place, began = int.from_bytes(hashlib.sha256(beginning.encode()).digest()[:7], "big"), time.monotonic()
    if fcntl is not None and FOLDER is not None and _is_writable():
        with suppress(OSError):
            while time.monotonic() < began + _PATIENCE:
                try:
                    fcntl.lockf(_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                    break
                except (BlockingIOError, PermissionError):  # another process has it
                    time.sleep(_BETWEEN)
    return place


def _end_turn(place):
    if fcntl is not None and FOLDER is not None and _is_writable():
        with suppress(OSError):
            fcntl.lockf(_locks(), fcntl.LOCK_UN, 1, place)


@cache
def _locks():
    """File whose bytes are locked, one for each kernel; closing it anywhere in this process would end all locks."""
    return os.open(FOLDER / "locks", os.O_RDWR | os.O_CREAT, 0o666)


_file_of = {}  # by symbol, of all code that was compiled or loaded here; None where it could not be kept
_loaded = {}  # what came out of the cache, by the names of files
_listed, _names_listed = {}, set()  # names of files by their beginnings, and all names


def used():
    """Names of files with all code that this process has compiled and kept, or loaded."""
    return {name for name in _file_of.values() if name is not None}


def _list_files():
    """Note the names of files that have come into the folder."""
    if FOLDER is not None:
        with suppress(OSError):
            new = set(os.listdir(FOLDER)) - _names_listed
            _names_listed.update(new)
            for name in sorted(new):
                if name.endswith(".nbc"):
                    _listed.setdefault(name[: name.rindex("-") + 1], []).append(name)


def _declarations(module):
    """Symbols that compiled code refers to and does not define, except LLVM's intrinsics.

    Code that is available for inlining counts, too: a caller that does not inline it refers to it.
    """
    named = itertools.chain(module.functions, module.global_variables)
    outside = [one for one in named if one.is_declaration or one.linkage == Linkage.available_externally]
    return [one.name for one in outside if not one.name.startswith("llvm.")]


def _are_missing(symbols, target_context):
    """Whether some of the symbols are not in this process."""
    is_defined = target_context.codegen()._engine.is_symbol_defined
    return any(address_of_symbol(one) is None and not is_defined(one) for one in symbols)


def _load(name, target_context):
    """The code in a file, and before it all that it refers to; None where something is missing or damaged.

    Damaged files are removed. Those that refer to missing ones may be of another environment, which has other shipped kernels.
    """
    if name not in _loaded:
        data = SHIPPED.read(name) or _read(name)
        if data is None:
            return None
        if hashlib.sha256(data[_CHECKSUM:]).digest() != data[:_CHECKSUM]:
            _discard(name)
            return None
        stream = io.BytesIO(data[_CHECKSUM:])
        needed, outside = pickle.load(stream)
        if any(_load(one, target_context) is None for one in needed):
            return None
        # 2. symbols from outside: numba's runtime, then numba's own functions, only where they are missing
        if _are_missing(outside, target_context):
            rtsys.initialize(target_context)  # what counts references, in users' functions
            if _are_missing(outside, target_context):
                target_context.refresh()  # numba's own functions, which take half a second to load
        try:
            reduced = pickle.load(stream)
            _loaded[name] = _restore(target_context, pickle.load(stream), *reduced)
        except ImportError:  # the module of a user's function, which has gone
            return None
        _file_of[_loaded[name].fndesc.mangled_name] = name
    return _loaded[name]


def _read(name):
    """Contents of a file of the user's cache, which notes that it was used; None where there is none."""
    if FOLDER is None:
        return None
    try:
        data = (FOLDER / name).read_bytes()
    except OSError:
        return None
    with suppress(OSError):  # a cache that may not be written
        os.utime(FOLDER / name)
    return data


def _discard(name):
    """Remove a file that is damaged, where that is possible."""
    if SHIPPED.names(name[: name.rindex("-") + 1]):
        SHIPPED.is_damaged(name)
    else:
        with suppress(OSError):
            (FOLDER / name).unlink()


def _restore(
    target_context, defined, library, fndesc, environment, signature, objectmode, lifted, type_annotation, reload_init, referenced_envs
):
    """Replacement of numba's `CompileResult._rebuild` that parses nothing which only callers need."""
    for function in reload_init:
        function()
    codegen, (name, _, (code, bitcode)) = target_context.codegen(), library
    library = Library.restored(codegen, name, code, bitcode, defined) if code else Pieces.restored(codegen, name, bitcode)
    result = compile_result(
        target_context=target_context, typing_context=target_context.typing_context, library=library, environment=environment,
        entry_point=executable(target_context, library, fndesc, environment), fndesc=fndesc, type_annotation=type_annotation,
        signature=signature, objectmode=objectmode, lifted=lifted, reload_init=reload_init, referenced_envs=referenced_envs,
    )  # fmt: skip
    for one in referenced_envs:
        set_environment(codegen, one)
    return result


@cache
def _is_writable():
    """Makes the folder, and removes files in and beside it that were not used for a month; called after a compilation."""
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
