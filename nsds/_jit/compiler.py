"""Compilation of kernels: numba's pipeline with unsigned indices, without its runtime, cached by fingerprint."""

import gc
import inspect
import itertools
import os
import types as python_types
from contextlib import contextmanager
from functools import cache, partial
from typing import ClassVar
from weakref import WeakKeyDictionary

import numba
from numba import types
from numba.core import ir as numba_ir
from numba.core import sigutils
from numba.core.bytecode import FunctionIdentity
from numba.core.ccallback import CFunc
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import InlineOverloads, NativeLowering, NativeParforLowering, NopythonRewrites, NopythonTypeInference
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import InlineClosureLikes, InlineInlinables, LiteralUnroll, RewriteDynamicRaises, WithLifting

from nsds._jit.cache import KernelCache, announced, is_cold
from nsds._jit.convention import Lowering, LoweringOfPieces, as_callers_see
from nsds._jit.library import Library, Pieces
from nsds._jit.views import matrix

_ALLOCATED = 20000  # objects, between two looks for garbage while kernels are compiled

# Threads wait actively for the next loop for some microseconds only: with OpenMP's own choice, two are five times slower than one when
# other programs want the cores, too; with none at all, they wake up too late.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def _count_from_anywhere():
    """Numbers functions from a random number on: numba counts them, and types of rows, from 0 in each process, and names symbols by that.

    Of two cached kernels that were compiled in different processes, one would be linked to callees of the other, wherever a function
    of the same number takes rows of another table.
    """
    FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(7)))


_count_from_anywhere()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_from_anywhere)


class _Pass(FunctionPass):
    """Pass with the constructor that numba requires."""

    def __init__(self):
        FunctionPass.__init__(self)


@register_pass(mutates_CFG=False, analysis_only=True)
class _UnsignedIndices(_Pass):
    """Reads every index as unsigned, as kernels never count from the end; this spares the test for a negative index at each access."""

    _name = "nsds_unsigned_indices"

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
class _LoadThreads(_Pass):
    """Makes numba load what parallel code refers to before it comes out of the cache: numba forgets that of callees, and aborts."""

    _name = "nsds_load_threads"

    def run_pass(self, state):
        state.reload_init.append(numba.get_num_threads)
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _CompileOnce(_Pass):
    """Puts the code into a library of ours."""

    _name, _kind = "nsds_compile_once", Library

    def run_pass(self, state):
        state.library = self._kind(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _CopyOnly(_CompileOnce):
    """Makes the code available to callers for inlining only."""

    _name, _kind = "nsds_copy_only", Pieces


@register_pass(mutates_CFG=True, analysis_only=False)
class _Paste(InlineInlinables):
    """numba's inlining without the copies of the inlined IR, made for one place: numba copies it twice, with all names per block."""

    _name = "nsds_paste"

    def _do_work(self, state, work_list, block, i, call, worker):
        worker._compiler_pipeline = lambda state: _with(DefaultPassBuilder.define_untyped_pipeline(state), _PASTE)
        worker.inline_function = partial(_paste, worker)
        return InlineInlinables._do_work(self, state, work_list, block, i, call, worker)


_PASTE = {InlineInlinables: _Paste}


def _paste(worker, caller, block, i, function):
    """Replacement of numba's `InlineWorker.inline_function`."""
    piece = worker.run_untyped_passes(function)
    # the blocks are used once, so that a deep copy may return the block itself
    blocks = list(piece.blocks.values())
    for one in blocks:
        one.__deepcopy__ = lambda _, one=one: one
    result = worker.inline_ir(caller, block, i, piece, function.__code__.co_freevars)
    for one in blocks:
        del one.__deepcopy__
    return result


def _with(pipeline, others):
    """The pipeline with other passes in place of some; None removes a pass."""
    pipeline.passes = [(others.get(one, one), why) for one, why in pipeline.passes if others.get(one, one) is not None]
    return pipeline


# Passes for Python at large that no kernel needs: closures, expressions of whole arrays, functions of numba's that are inlined.
_SPARED = dict.fromkeys((InlineClosureLikes, InlineOverloads, LiteralUnroll, NopythonRewrites, RewriteDynamicRaises, WithLifting))


class _KernelCompiler(CompilerBase):
    passes = (_UnsignedIndices, _CompileOnce)
    lowering: ClassVar = {NativeLowering: Lowering, NativeParforLowering: Lowering}
    spared: ClassVar = _SPARED

    def define_pipelines(self):
        pipeline = _with(DefaultPassBuilder.define_nopython_pipeline(self.state), _PASTE | self.spared | self.lowering)
        for one in self.passes:
            pipeline.add_pass_after(one, NopythonTypeInference)
        pipeline.finalize()
        return [pipeline]


class _TinyCompiler(_KernelCompiler):
    """Compiler of pieces that callers inline, arguments and all, so that users' functions which call them may go into numba's own cache."""

    passes = (_UnsignedIndices, _CopyOnly)
    lowering: ClassVar = dict.fromkeys(_KernelCompiler.lowering, LoweringOfPieces)


class _ThreadedCompiler(_KernelCompiler):
    passes = (_UnsignedIndices, _CompileOnce, _LoadThreads)


class _CallbackCompiler(_KernelCompiler):
    """Compiler of callbacks, whose indices may count from the end."""

    passes, spared = (_CompileOnce,), {}


class _UsersCompiler(_CallbackCompiler):
    """numba's compiler as it is: other compiled functions may call its results, and be called."""

    lowering: ClassVar = {}


# No runtime (_nrt) means no allocation and no reference counting: a kernel that allocates does not compile.
OPTIONS = {"error_model": "numpy", "_nrt": False}


def kernel(function, **options):
    """Compiles on first use; cached on disk; runs without the GIL; never raises."""
    function.__signature__ = inspect.signature(function)  # numba asks for it twice
    result = _without_entries(function, **{"pipeline_class": _KernelCompiler} | OPTIONS | options)
    # calling convention and templates
    result.compile = partial(_compile, result, result._cache)
    if Lowering in result._compiler.pipeline_class.lowering.values():
        result.targetctx = as_callers_see(result.targetctx)
    result.get_call_template = partial(_get_call_template, result)
    result._compile_for_args, result._doors = partial(_open_door, result), {}
    return result


def _without_entries(function, **options):
    """A dispatcher with a cache of its own, and without entries for Python or C: most are called by compiled functions only."""
    result = numba.njit(function, no_cfunc_wrapper=True, no_cpython_wrapper=True, **options)
    result._cache = KernelCache(result)
    result.add_overload = partial(_add_overload, result)
    return result


@contextmanager
def _compiling(kept):
    """Around what loads or compiles code: no other process compiles the same, and Python seldom looks for garbage.

    The compiler makes millions of objects, few of which are garbage: to look for it as often as ever takes a tenth of the time. What
    operators and functions of numba's are called with is looked up once for the same types: to try all their variants in each call anew
    takes a seventh.
    """
    with global_compiler_lock, kept.in_turn():
        usual, trying = gc.get_threshold(), BaseFunction.get_call_type
        gc.set_threshold(usual[0] and max(usual[0], _ALLOCATED), *usual[1:])
        BaseFunction.get_call_type = _signature_of_call
        try:
            yield
        finally:
            BaseFunction.get_call_type = trying
            gc.set_threshold(*usual)


_try_variants, _signatures = BaseFunction.get_call_type, WeakKeyDictionary()  # of each function, by types of arguments and flags
_flags = []  # all that functions were compiled with


def _signature_of_call(function, context, arguments, keywords):
    """Replacement of numba's `BaseFunction.get_call_type` that remembers what it has found: the signature and what implements it."""
    known, key = _signatures.setdefault(function, {}), (context, arguments, *keywords.items(), _number(ConfigStack.top_or_none()))
    if key not in known:
        signature = _try_variants(function, context, arguments, keywords)
        known[key] = signature, function._impl_keys[signature.args]
    signature, function._impl_keys[signature.args] = known[key]
    return signature


def _number(flags):
    """One number for equal flags, whose hash takes longer than to compare the few that there are."""
    values = flags and flags._values
    if values not in _flags:
        _flags.append(values and dict(values))
    return _flags.index(values)


def _compile(kernel, kept, signature):
    """Loads or compiles a kernel like numba."""
    with _compiling(kept):
        return type(kernel).compile(kernel, signature)


def announcing(kernel, what):
    """The kernel, with a message when it is compiled for the first time."""
    ordinary = kernel.compile

    def first(signature):
        kernel.compile = ordinary
        with announced(kernel, what):
            return ordinary(signature)

    kernel.compile = first
    return kernel


def is_compiled(kernel):
    """Whether code of a kernel is loaded or cached, so that its first call need not compile."""
    return bool(kernel.overloads) or not is_cold(kernel)


def _add_overload(kernel, compiled):
    """Registers compiled code like numba, but without an entry for Python."""
    kernel.overloads[tuple(compiled.signature.args)] = compiled


def _open_door(kernel, *arguments):
    """Called by numba if Python calls a kernel with new types; the entry is made now, since most kernels are called by kernels only."""
    type(kernel)._compile_for_args(kernel, *arguments)
    kinds = tuple(map(kernel.typeof_pyval, arguments))
    entry = _door(kernel, kinds)
    kernel._insert([kind._code for kind in kinds], entry)
    return entry


def _door(kernel, kinds):
    """Entry point from Python to the code of a kernel for these types."""
    if kinds not in kernel._doors:
        names = ", ".join(f"argument_{i}" for i in range(len(kinds)))
        function = eval(f"lambda {names}: kernel({names})", {"kernel": kernel, "__name__": __name__})
        is_threaded = kernel.targetoptions.get("parallel") or kernel._compiler.pipeline_class is _ThreadedCompiler
        pipeline_class = _ThreadedCompiler if is_threaded else _KernelCompiler
        door = numba.njit(function, nogil=True, pipeline_class=pipeline_class, no_cfunc_wrapper=True, **OPTIONS)
        door._cache = KernelCache(door)
        with _compiling(door._cache):
            kernel._doors[kinds] = door.compile(kinds)
    return kernel._doors[kinds]


def _get_call_template(kernel, arguments, keywords):
    """Called by numba where code calls a kernel; literals and integer columns of tables do not lead to another compilation."""
    return type(kernel).get_call_template(kernel, tuple(map(_as_passed, arguments)), keywords)


def _as_passed(kind):
    """Type in which a kernel takes an argument: integers in the widest."""
    kind = types.unliteral(kind)
    return types.int64 if kind == types.int32 else kind


def compiled(kernel):
    """Entry point of a kernel without numba's check of the argument types, which takes microseconds.

    Only for arguments of the types of the last call; the kernel itself if it has been compiled for several.
    """
    known = list(kernel.overloads)
    return _door(kernel, known[0]) if len(known) == 1 else kernel


def inlined(function):
    """A kernel that numba inlines into its one caller: pieces of a step whose many arrays cost more to pass than to use."""
    return kernel(function, inline="always")


def tiny(function):
    """A kernel for many callers that is compiled once, and inlined into each of them by LLVM."""
    return kernel(function, forceinline=True, pipeline_class=_TinyCompiler)


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
    ``cleared(out)`` is the vector out full of zeros, and ``matrix(out, (rows, columns))`` a matrix with its entries.
    """
    if parameters is not None:
        names = {"function": _users(function), "cleared": _clearing(), "matrix": matrix, "__name__": __name__}
        function = eval(f"lambda {parameters}: function({arguments})", names)
    return c_code(function, signature, {"error_model": "numpy"}, _CallbackCompiler)


def c_code(function, signature, options, pipeline_class):
    """A function's code for one signature, from the cache or compiled at once, with an ``address``."""
    pipeline_class = _KernelCompiler if pipeline_class is _TinyCompiler else pipeline_class
    code = CFunc(function, sigutils.normalize_signature(signature), {}, options, pipeline_class=pipeline_class)
    code._cache = KernelCache(code)
    with _compiling(code._cache):
        code.compile()
    return code


def _users(function):
    """A function that callbacks call, compiled again on each request: the values that it reads may have changed."""
    return _without_entries(function, error_model="numpy", pipeline_class=_UsersCompiler)


@cache
def _clearing():
    """`_cleared` compiled once, also if nothing can be stored on disk."""
    return _users(_cleared)


def _cleared(out):
    for i in range(out.size):
        out[i] = 0.0
    return out


def specialised(function, suffix, **names):
    """The same code under another name, with some of its globals replaced: one template, several kernels.

    A closure would do the same but never be found in the cache again.
    """
    function = getattr(function, "py_func", function)
    result = python_types.FunctionType(function.__code__, {**function.__globals__, **names}, f"{function.__name__}_{suffix}")
    result.__qualname__, result.__module__, result.__doc__ = result.__name__, function.__module__, function.__doc__
    return result
