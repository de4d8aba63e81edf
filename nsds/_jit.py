"""The only place where numba is configured: kernels, callbacks and calls by address.

numba's own cache looks at the file of a function, not at what that function calls: an edited callee would leave a stale caller
behind. A kernel is therefore cached under a fingerprint of its own code and of all that it reads and calls (`nsds._cache`).

Kernels release the GIL, follow IEEE arithmetic (``error_model="numpy"``, no fastmath) and return status codes instead of raising.
"""

import ctypes
import os
import sys
import types as python_types
from functools import cache

import llvmlite.binding
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils, sigutils
from numba.core import ir as numba_ir
from numba.core.ccallback import CFunc
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonRewrites
from numba.extending import intrinsic

from nsds._cache import KernelCache, is_cold

# Threads wait awake for the next loop for some microseconds only: with OpenMP's own choice, two are five times slower than one where
# other programs want the cores, too; with none at all, they wake up too late.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


@register_pass(mutates_CFG=False, analysis_only=True)
class _UnsignedIndices(FunctionPass):
    """Kernels never count from the end: read every index as unsigned, which spares the test for a negative one at each access."""

    _name = "nsds_unsigned_indices"

    def __init__(self):
        FunctionPass.__init__(self)

    def run_pass(self, state):
        for block in state.func_ir.blocks.values():
            for place in [*block.find_exprs("getitem"), *block.find_insts(numba_ir.SetItem)]:
                array, index = state.calltypes[place].args[:2]
                if isinstance(array, types.Array) and _is_signed_index(index):
                    unsigned = types.UniTuple(types.uintp, len(index)) if isinstance(index, types.BaseTuple) else types.uintp
                    signature = state.calltypes.pop(place)  # entries of this dict may be set only once
                    state.calltypes[place] = signature.replace(args=(array, unsigned, *signature.args[2:]))
        return False


def _is_signed_index(index):
    parts = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
    return len(parts) > 0 and all(isinstance(part, types.Integer) and part.signed for part in parts)


@register_pass(mutates_CFG=False, analysis_only=True)
class _LoadThreads(FunctionPass):
    """Have numba load what parallel code refers to before this comes out of the cache: it forgets that of what is called, and aborts."""

    _name = "nsds_load_threads"

    def __init__(self):
        FunctionPass.__init__(self)

    def run_pass(self, state):
        state.reload_init.append(numba.get_num_threads)
        return False


class _KernelCompiler(CompilerBase):
    passes = (_UnsignedIndices,)

    def define_pipelines(self):
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        for one in self.passes:
            pipeline.add_pass_after(one, NopythonRewrites)
        pipeline.finalize()
        return [pipeline]


class _ThreadedCompiler(_KernelCompiler):
    passes = (_UnsignedIndices, _LoadThreads)


# No runtime (_nrt) means no allocation and no reference counting: a kernel that allocates does not compile.
_OPTIONS = {"error_model": "numpy", "_nrt": False}


def kernel(function, **options):
    """Compile on first use; cached on disk; runs without the GIL; never raises."""
    result = numba.njit(function, nogil=True, **{"pipeline_class": _KernelCompiler} | _OPTIONS | options)
    result._cache = KernelCache(result)
    return result


def inlined(function):
    """A kernel that numba pastes into its one caller: pieces of a step, whose many arrays cost more to hand over than to use."""
    return kernel(function, inline="always")


def tiny(function):
    """A kernel for many callers that is compiled once, and copied into each of them when they are optimised."""
    return kernel(function, forceinline=True)


def parallel(function):
    """A kernel whose loops over `each` run on all cores; only over independent outputs, so that the bits do not depend on their number."""
    return kernel(function, parallel=True)


def threaded(function):
    """A kernel that calls parallel ones."""
    return kernel(function, pipeline_class=_ThreadedCompiler)


each = numba.prange


def callback(signature, function, parameters=None, arguments=None):
    """A user's function compiled at once, with the ordinary meaning of indices, to C code with an ``address``.

    ``parameters`` and ``arguments``: the names of the signature's parameters, and how the function is called with them, as text, where
    ``cleared(out)`` is the vector out full of zeros.
    """
    if parameters is not None:
        names = {"function": numba.njit(function, error_model="numpy"), "cleared": _cleared}
        function = eval(f"lambda {parameters}: function({arguments})", names)
    return numba.cfunc(signature, error_model="numpy")(function)


@numba.njit
def _cleared(out):
    for i in range(out.size):
        out[i] = 0.0
    return out


def specialised(function, suffix, **names):
    """The same code under another name, with some of the global names it reads bound otherwise: one template, several kernels.

    A closure would do the same but never be found in the cache again.
    """
    function = getattr(function, "py_func", function)
    result = python_types.FunctionType(function.__code__, {**function.__globals__, **names}, f"{function.__name__}_{suffix}")
    result.__qualname__, result.__module__, result.__doc__ = result.__name__, function.__module__, function.__doc__
    return result


@cache
def address(signature, function):
    """Address of a kernel's code compiled for one signature, for `caller`."""
    code = CFunc(_at(function), sigutils.normalize_signature(signature), {}, _OPTIONS, pipeline_class=function._compiler.pipeline_class)
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

    For what is long to compile and rarely needed. The compiled caller knows only a symbol, so that it can be cached; 0 after a failure.
    """
    symbol = f"nsds_address_of_{function.__module__}_{function.__name__}".replace(".", "_")

    @cache
    def found():
        if is_cold(_at(function)):
            print(f"nsds: compiling {function.__name__}, once for this version of the package ...", file=sys.stderr, flush=True)
        return int(address(signature, function))

    find = ctypes.CFUNCTYPE(ctypes.c_size_t)(found)

    _kept.append(find)
    llvmlite.binding.add_symbol(symbol, ctypes.cast(find, ctypes.c_void_p).value)

    @intrinsic
    def ask(typing_context):
        def generate(context, builder, _, __):
            target = ir.FunctionType(context.get_value_type(types.uintp), [])
            return builder.call(cgutils.get_or_insert_function(builder.module, target, symbol), [])

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


if numba.config.DISABLE_JIT:
    from nsds import _plain

    globals().update({name: item for name, item in vars(_plain).items() if not name.startswith("_")})
