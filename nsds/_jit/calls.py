"""Calls by address inside kernels."""

import ctypes
from functools import cache

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from nsds._jit.cache import announced
from nsds._jit.compiler import OPTIONS, c_code, specialised
from nsds._jit.convention import Words
from nsds._jit.reference import Reference, n_words


@cache
def address(signature, function):
    """Address of a kernel's code compiled for one signature, for `caller`."""
    code = c_code(_at(function), signature, OPTIONS, function._compiler.pipeline_class)
    _kept.append(code)
    return code.address


def _at(function):
    """The function that is compiled to code with an address."""
    return specialised(function, "at")


_kept = []
ON_DEMAND = []  # (signature, kernel) of all that is compiled when it is first asked for


def on_demand(signature, function):
    """A function ``address()`` for kernels: where another kernel's code lives, which is compiled or loaded when it is first asked for.

    For what is long to compile and rarely needed. The compiled caller knows two symbols only, so that it can be cached: of a word in
    memory that holds the address, and of what fills it, in Python, while that is 0; so it remains after a failure.
    """
    symbol = f"nsds_address_of_{function.__module__}_{function.__name__}".replace(".", "_")
    known = ctypes.c_size_t(0)

    def find():
        with announced(_at(function), function.__name__):
            known.value = int(address(signature, function))
        return known.value

    fill = ctypes.CFUNCTYPE(ctypes.c_size_t)(find)
    _kept.append((fill, known))
    ON_DEMAND.append((signature, function))
    llvmlite.binding.add_symbol(symbol, ctypes.cast(fill, ctypes.c_void_p).value)
    llvmlite.binding.add_symbol(f"{symbol}_known", ctypes.addressof(known))

    @intrinsic
    def ask(typing_context):
        def generate(context, builder, _, __):
            word = context.get_value_type(types.uintp)
            place = cgutils.alloca_once_value(builder, builder.load(context.get_c_value(builder, word, f"{symbol}_known")))
            with builder.if_then(cgutils.is_null(builder, builder.load(place)), likely=False):
                target = cgutils.get_or_insert_function(builder.module, ir.FunctionType(word, []), symbol)
                builder.store(builder.call(target, []), place)
            return builder.load(place)

        return types.uintp(), generate

    return ask


class PythonCallback:
    """A Python function with an ``address``, which kernels call as they do a kernel of a signature; arrays are those of the caller.

    What it raises is lost: it has to keep it.
    """

    def __init__(self, signature, function):
        words = []
        self._function, self._readers = function, [_reader(kind, words) for kind in signature.args]
        self._code = ctypes.CFUNCTYPE(_C_WORDS[signature.return_type], *words)(lambda *given: self._call(iter(given)))
        self.address = ctypes.cast(self._code, ctypes.c_void_p).value

    def _call(self, given):
        return self._function(*(reader(given) for reader in self._readers))


_C_WORDS = {types.float64: ctypes.c_double, types.int64: ctypes.c_int64, types.uintp: ctypes.c_size_t, types.void: None}


def _reader(kind, words):
    """What makes an argument of the next words that are given; their types are added to ``words``."""
    if isinstance(kind, types.Array):
        words += [ctypes.c_size_t, ctypes.c_int64]
        number = _C_WORDS[kind.dtype]
        return lambda given: _vector_at(number, next(given), next(given))
    if isinstance(kind, Reference):  # of arrays
        words.append(ctypes.c_size_t)
        readers = [_reader(each, []) for each in kind.kinds]
        return lambda given: _read(kind, readers, iter((ctypes.c_int64 * n_words(kind)).from_address(next(given))))
    if isinstance(kind, types.BaseTuple):
        readers = [_reader(each, words) for each in kind.types]
        return lambda given: kind.instance_class(*(reader(given) for reader in readers))
    words.append(_C_WORDS[kind])
    return next


def _read(kind, readers, words):
    """A tuple that was handed over by reference, from the words where it lies."""
    return kind.cls(*(reader(words) for reader in readers))


def _vector_at(number, place, size):
    return np.frombuffer((number * size).from_address(place), number) if size else np.zeros(0, number)


def caller(signature):
    """A function ``call(address, (arguments...))`` for kernels: calls the callback of this signature that lives at ``address``.

    The address is data, so a kernel that calls a user's function or a solver is compiled once for all of them.
    """

    @intrinsic
    def call(typing_context, address, arguments):
        def generate(context, builder, given, values):
            words = Words(signature.args)
            pointer = builder.inttoptr(values[0], words.c_function(context, signature.return_type).as_pointer())
            unpacked = [
                context.cast(builder, builder.extract_value(values[1], i), given.args[1][i], wanted)
                for i, wanted in enumerate(signature.args)
            ]
            result = builder.call(pointer, words.as_arguments(builder, unpacked))
            return context.get_dummy_value() if signature.return_type is types.void else result

        return signature.return_type(address, arguments), generate

    return call
