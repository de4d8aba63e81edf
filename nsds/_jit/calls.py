"""Calls by address, and views of memory, inside kernels."""

import ctypes
import sys
from functools import cache

import llvmlite.binding
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils, sigutils
from numba.core.ccallback import CFunc
from numba.extending import intrinsic

from nsds._jit.cache import KernelCache, is_cold
from nsds._jit.compiler import OPTIONS, specialised


@cache
def address(signature, function):
    """Address of a kernel's code compiled for one signature, for `caller`."""
    code = CFunc(_at(function), sigutils.normalize_signature(signature), {}, OPTIONS, pipeline_class=function._compiler.pipeline_class)
    code._cache = KernelCache(code)
    code.compile()
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
        if is_cold(_at(function)):
            print(f"nsds: compiling {function.__name__}, once for this version of the package ...", file=sys.stderr, flush=True)
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
            target = ir.FunctionType(context.get_value_type(signature.return_type), [context.get_value_type(a) for a in signature.args])
            pointer = builder.inttoptr(values[0], target.as_pointer())
            unpacked = [
                context.cast(builder, builder.extract_value(values[1], i), given.args[1][i], wanted)
                for i, wanted in enumerate(signature.args)
            ]
            result = builder.call(pointer, unpacked)
            return context.get_dummy_value() if signature.return_type is types.void else result

        return signature.return_type(address, arguments), generate

    return call


def _require_inside(context, builder, whole, begin, length):
    """Code that raises IndexError where a view is not empty and not inside its array."""
    nothing = context.get_constant(types.intp, 0)
    starts_outside = builder.icmp_signed("<", begin, nothing)
    ends_outside = builder.icmp_signed(">", builder.add(begin, length), whole)
    is_negative, is_empty = (builder.icmp_signed(sign, length, nothing) for sign in ("<", "=="))
    outside = builder.or_(builder.or_(starts_outside, ends_outside), is_negative)
    with builder.if_then(builder.and_(builder.not_(is_empty), outside), likely=False):
        context.call_conv.return_user_exc(builder, IndexError, ("a view of memory reaches beyond its array",))


@intrinsic
def view(typing_context, array, start, size):
    """``array[start:start + size]`` for a 1-D array, without counting references; checked where NUMBA_BOUNDSCHECK says so.

    Then a view that begins before its array or ends behind it raises IndexError, unless it is empty. Code that is called by its address
    cannot raise: numba prints it as an exception that is ignored.
    """

    def generate(context, builder, signature, values):
        source = context.make_array(signature.args[0])(context, builder, values[0])
        target = context.make_array(signature.return_type)(context, builder)
        begin, length = (context.cast(builder, values[i], signature.args[i], types.intp) for i in (1, 2))
        if numba.config.BOUNDSCHECK:
            _require_inside(context, builder, cgutils.unpack_tuple(builder, source.shape, 1)[0], begin, length)
        itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(array.dtype)))
        context.populate_array(
            target,
            data=builder.gep(source.data, [begin]),
            shape=cgutils.pack_array(builder, [length]),
            strides=cgutils.pack_array(builder, [itemsize]),
            itemsize=itemsize,
            meminfo=None,
        )
        return target._getvalue()

    return types.Array(array.dtype, 1, "C")(array, start, size), generate


@intrinsic
def pointer(typing_context, array):
    """Where the numbers of an array lie in memory, for callbacks into Python."""

    def generate(context, builder, signature, values):
        source = context.make_array(signature.args[0])(context, builder, values[0])
        return builder.ptrtoint(source.data, context.get_value_type(types.int64))

    return types.int64(array), generate


@intrinsic
def stack(typing_context, size):
    """A few floats on the stack, (size,), not initialised: what is small, constant and does not leave a function stays in registers."""
    if not isinstance(size, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, values):
        target = context.make_array(signature.return_type)(context, builder)
        n = signature.args[0].literal_value
        place = cgutils.alloca_once(builder, ir.DoubleType(), size=n)
        itemsize, length = (context.get_constant(types.intp, k) for k in (8, n))
        context.populate_array(
            target,
            data=place,
            shape=cgutils.pack_array(builder, [length]),
            strides=cgutils.pack_array(builder, [itemsize]),
            itemsize=itemsize,
            meminfo=None,
        )
        return target._getvalue()

    return types.Array(types.float64, 1, "C")(size), generate
