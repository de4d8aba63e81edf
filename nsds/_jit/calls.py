"""Calls by address inside kernels."""

import ctypes
from functools import cache

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from nsds._jit.cache import announced
from nsds._jit.compiler import OPTIONS, c_code, specialised
from nsds._jit.convention import Words


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
