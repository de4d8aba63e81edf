"""Calling convention of kernels and callbacks: an array is passed as its data pointer and shape.

numba passes seven words for a vector, of which kernels need two: a step has some twenty arrays, and most of its callees are short.
"""

from collections import ChainMap

from llvmlite import ir
from numba import types
from numba.core import cgutils, targetconfig
from numba.core.callconv import CPUCallConv
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUContext
from numba.core.datamodel import ArgPacker, default_manager
from numba.core.datamodel.manager import DataModelManager
from numba.core.datamodel.models import ArrayModel
from numba.core.imputils import fix_returning_optional, impl_ret_new_ref
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering
from numba.parfors.parfor_lowering import ParforLower


class _Contiguous(ArrayModel):
    """numba's array, but contiguous and without reference count when passed as an argument."""

    def get_argument_type(self):
        if self._fe_type.layout != "C":
            return super().get_argument_type()
        return tuple(self._models[self._fields.index(name)].get_argument_type() for name in ("data", "shape"))

    def as_argument(self, builder, value):
        if self._fe_type.layout != "C":
            return super().as_argument(builder, value)
        return self.get(builder, value, "data"), tuple(cgutils.unpack_tuple(builder, self.get(builder, value, "shape")))

    def from_argument(self, builder, value):
        if self._fe_type.layout != "C":
            return super().from_argument(builder, value)
        data, shape = value
        # strides and number of entries follow from the shape
        word = shape[0].type
        stride = itemsize = ir.Constant(data.type, None).gep([ir.Constant(word, 1)]).ptrtoint(word)
        strides = []
        for n in reversed(shape):
            strides.insert(0, stride)
            stride = builder.mul(stride, n)
        count = shape[0]
        for n in shape[1:]:
            count = builder.mul(count, n)
        fields = {
            "nitems": count, "itemsize": itemsize, "data": data, "shape": cgutils.pack_array(builder, shape),
            "strides": cgutils.pack_array(builder, strides),
        }  # fmt: skip
        array = cgutils.get_null_value(self.get_value_type())
        for name, field in fields.items():
            array = self.set(builder, array, field, name)
        return array


_LONG = 48  # fields of a table, from which its entries count as constant
AS_CALLED = "<nsds: code that is called by its address>"  # origin of exceptions in such code, as shown by Python
_models = DataModelManager(ChainMap({types.Array: _Contiguous}, default_manager._handlers))


class Words(ArgPacker):
    """Packer of arguments into machine words."""

    def __init__(self, kinds):
        super().__init__(_models, kinds)

    def of_each(self, words):
        """Machine words of each argument."""
        return self._unflattener.unflatten(words)

    def c_function(self, context, returned):
        """Type of code that is called by its address."""
        return ir.FunctionType(context.get_value_type(returned), self.argument_types)


class _Convention(CPUCallConv):
    def _get_arg_packer(self, argtypes):
        return Words(argtypes)

    def decorate_function(self, fn, args, fe_argtypes, noalias=False):
        super().decorate_function(fn, args, fe_argtypes, noalias)
        for kind, argument in zip(fe_argtypes, Words(fe_argtypes).of_each(self.get_arguments(fn)), strict=True):
            for attribute in getattr(_models.lookup(kind), "attributes", ()):
                argument.add_attribute(attribute)


class _Quiet(CPUContext):
    """numba's context, for code without an entry for Python."""

    def __init__(self, context):
        self.__dict__ = context.__dict__

    def get_executable(self, library, fndesc, env):
        return executable(super(), library, fndesc, env)


def executable(context, library, fndesc, environment):
    """Entry for Python of compiled code, or a placeholder if there is none."""
    library._ensure_finalized()
    engine = library.codegen._engine
    if engine.is_symbol_defined(fndesc.llvm_cpython_wrapper_name):
        return context.get_executable(library, fndesc, environment)
    set_environment(library.codegen, environment)
    return object()


def set_environment(codegen, environment):
    """Sets the environment with which numba's code raises and reads Python objects, if the code refers to it."""
    if codegen._engine._ee.get_global_value_address(environment.env_name):
        codegen.set_env(environment.env_name, environment)


class _Context(_Quiet):
    """numba's context with our calling convention, for callers of kernels."""

    @property
    def call_conv(self):
        return _Convention(self)

    def create_cfunc_wrapper(self, library, fndesc, env, call_helper):
        """numba's wrapper with arguments in machine words; exceptions go to `sys.unraisablehook`."""
        module = self.create_module("cfunc_wrapper")
        callee = ir.Function(module, self.call_conv.get_function_type(fndesc.restype, fndesc.argtypes), fndesc.llvm_func_name)
        words = Words(fndesc.argtypes)
        function = ir.Function(module, words.c_function(self, fndesc.restype), fndesc.llvm_cfunc_wrapper_name)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        given = words.from_arguments(builder, function.args)
        status, result = self.call_conv.call_function(builder, callee, fndesc.restype, fndesc.argtypes, given)
        with builder.if_then(status.is_error, likely=False):
            python = self.get_python_api(builder)
            held = python.gil_ensure()
            self.call_conv.raise_error(builder, python, status)
            place = python.string_from_string(self.insert_const_string(module, AS_CALLED))
            python.err_write_unraisable(place)
            python.decref(place)
            python.gil_release(held)
        builder.ret(result)
        library.add_ir_module(module)

    def insert_user_function(self, func, fndesc, libs=()):
        call = _call_of(fndesc, libs)
        self._defns[func].append(call, call.signature)


def as_callers_see(context):
    """The context in which callers see kernels."""
    return context if isinstance(context, _Context) else _Context(context)


def _call_of(fndesc, libraries):
    """Code generator of a kernel's call: numba's `user_function`, in whatever context the caller is compiled."""

    def call(context, builder, signature, arguments):
        inside = as_callers_see(context)
        function = inside.declare_function(builder.module, fndesc)
        status, result = inside.call_conv.call_function(builder, function, fndesc.restype, fndesc.argtypes, arguments)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        result = fix_returning_optional(context, builder, signature, status, result)
        return impl_ret_new_ref(context, builder, fndesc.restype, result)

    call.signature, call.libs = fndesc.argtypes, tuple(libraries)
    return call


class _Arguments:
    """numba's lowering with arguments in our calling convention."""

    @property
    def call_conv(self):
        return as_callers_see(self.context).call_conv

    def setup_function(self, fndesc):
        inner, self.context = self.context, as_callers_see(self.context)
        super().setup_function(fndesc)
        self.context = inner

    def lower_expr(self, resty, expr):
        result = super().lower_expr(resty, expr)
        # kernels only read tables: after a write to memory none of their entries is read again. Short ones are read in the loop over steps,
        # which would read all of them in advance and keep them in memory again
        if expr.op == "getattr" and isinstance(result, ir.LoadInstr):
            table = self.typeof(expr.value.name)
            if isinstance(table, types.Record) and len(table.fields) >= _LONG:
                result.set_metadata("invariant.load", self.module.add_metadata([]))
        return result

    def create_cpython_wrapper(self, release_gil=False):
        as_callers_see(self.context).create_cpython_wrapper(self.library, self.fndesc, self.env, self.call_helper, release_gil=release_gil)

    def create_cfunc_wrapper(self):
        as_callers_see(self.context).create_cfunc_wrapper(self.library, self.fndesc, self.env, self.call_helper)


class _Lower(_Arguments, Lower):
    """Lowering of a kernel."""


class _ParforLower(_Arguments, ParforLower):
    """Lowering of a kernel with parallel loops."""


@register_pass(mutates_CFG=True, analysis_only=False)
class LoweringOfPieces(BaseNativeLowering):
    """numba's last pass but one, for code that callers inline."""

    _name, lowering_class = "nsds_lowering_of_pieces", Lower

    def run_pass(self, state):
        context, state.targetctx = state.targetctx, _Quiet(state.targetctx)
        super().run_pass(state)
        state.targetctx = context
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(LoweringOfPieces):
    """numba's last pass but one, for kernels."""

    _name = "nsds_lowering"

    @property
    def lowering_class(self):
        return _ParforLower if targetconfig.ConfigStack.top_or_none().auto_parallel.enabled else _Lower

    def run_pass(self, state):
        super().run_pass(state)
        callee = state["cr"].cfunc
        if callee is not None:  # as of code that is called by its address
            state.targetctx.remove_user_function(callee)
            as_callers_see(state.targetctx).insert_user_function(callee, state["cr"].fndesc, [state.library])
        return True
