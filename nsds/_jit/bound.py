"""Kernels with bound arguments: a call takes a fraction of a microsecond, whatever their number."""

import ctypes
from functools import cache

import numba
import numpy as np
from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from nsds._jit.convention import as_callers_see
from nsds._jit.reference import Reference

_WORD = ir.IntType(64)


def bound(*calls):
    """A function ``call(is_brief=False)`` that calls kernels one after the other, and returns the integer result of the last one.

    calls: of each (kernel, arguments): numbers, arrays and tuples of them, also named ones. They are checked now: the contents of arrays
    may change between calls, numbers are fixed. Kernels are compiled if necessary. They run without the GIL;
    brief calls keep it, as passing it between threads at each call takes longer than one of them.
    """
    # 1. compile for the types of the arguments
    signatures = [tuple(map(numba.typeof, arguments)) for _, arguments in calls]
    for (kernel, _), signature in zip(calls, signatures, strict=True):
        if signature not in kernel.overloads:
            kernel.compile(signature)
    if numba.config.BOUNDSCHECK:  # kernels raise, which numba reports to its own callers only
        return lambda is_brief=False: [kernel(*arguments) for kernel, arguments in calls][-1]
    # 2. arguments as machine words, and the entry point that reads them; what they point to is kept alive by the closure
    kept = [calls]
    held = np.array([word for _, arguments in calls for item in arguments for word in _words_of(item, kept)], np.uint64)
    entries = _entries(tuple((kernel, signature) for (kernel, _), signature in zip(calls, signatures, strict=True)))

    def call(is_brief=False, entries=entries, place=held.ctypes.data, kept=(held, kept)):
        return entries[is_brief](place)

    return call


def _words_of(value, kept):
    """Machine words of an argument, one for each of its parts; objects to which they point are added to kept."""
    if isinstance(value, tuple) and _is_by_reference(value):
        kept.append(np.array([word for item in value for word in _parts_of(item, kept)], np.uint64))
        return [kept[-1].ctypes.data]
    return _parts_of(value, kept)


def _parts_of(value, kept):
    """Machine words of an argument, or of a part of one that is passed by reference."""
    if isinstance(value, tuple) and _is_by_reference(value):
        return [word for item in value for word in _parts_of(item, kept)]
    if isinstance(value, tuple):
        return [word for item in value for word in _words_of(item, kept)]
    if isinstance(value, np.ndarray) and value.flags.c_contiguous:  # as in `nsds._jit.convention`
        return [value.ctypes.data, *value.shape]
    if isinstance(value, np.ndarray):  # two owners, entries, bytes of an entry, data, lengths, strides
        return [0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides]
    return [np.array(value, np.float64 if isinstance(value, (float, np.floating)) else np.int64).view(np.uint64).item()]


def _is_by_reference(value):
    """Whether tuples of its class are passed by reference; cached, as the type of a large tuple takes milliseconds."""
    if type(value) not in _by_reference:
        _by_reference[type(value)] = isinstance(numba.typeof(value), Reference)
    return _by_reference[type(value)]


@cache
@global_compiler_lock
def _entries(codes):
    """Compiled code that calls kernels, of these signatures, with the words at a place in memory: without the GIL, and with it."""
    # 1. a function of one argument: where the words are
    context = cpu_target.target_context
    library = context.codegen().create_library("nsds_bound")
    module = library.create_ir_module("nsds_bound")
    function = ir.Function(module, ir.FunctionType(_WORD, [_WORD.as_pointer()]), f"nsds_bound_{len(_kept)}")
    builder = ir.IRBuilder(function.append_basic_block())
    result, raised, at = builder.alloca(_WORD), builder.alloca(_WORD), 0
    # 2. one call for each kernel, its address as a constant
    for kernel, signature in codes:
        code = kernel.overloads[signature]
        target = as_callers_see(context).call_conv.get_function_type(code.signature.return_type, signature)
        arguments = [builder.bitcast(place, kind) for place, kind in zip((result, raised), target.args, strict=False)]
        for kind in target.args[2:]:
            word = builder.load(builder.gep(function.args[0], [ir.Constant(_WORD, at)]))
            arguments.append(_as_type(builder, word, kind))
            at += 1
        address = code.library.get_pointer_to_function(code.fndesc.llvm_func_name)
        builder.call(builder.inttoptr(ir.Constant(_WORD, address), target.as_pointer()), arguments)
    builder.ret(builder.load(result))
    # 3. machine code, and the same address as two C functions
    library.add_ir_module(module)
    library.finalize()
    _kept.append(library)
    address = library.get_pointer_to_function(function.name)
    return tuple(make(ctypes.c_int64, ctypes.c_void_p)(address) for make in (ctypes.CFUNCTYPE, ctypes.PYFUNCTYPE))


def _as_type(builder, word, kind):
    if isinstance(kind, ir.PointerType):
        return builder.inttoptr(word, kind)
    if isinstance(kind, ir.IntType):
        return word if kind.width == 64 else builder.trunc(word, kind)
    return builder.bitcast(word, kind)


_kept = []
_by_reference = {}
