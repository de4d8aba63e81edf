"""Vector arithmetic over several members: one operation acts on the numbers of all of them in a vector register.

Entries of the members are interleaved: those of entry w are consecutive from ``w width`` on, ``width`` being a constant. Arithmetic is
that of single numbers, with the same bits; comparisons give a mask, ``&`` and ``|`` join masks, and `chosen` replaces a branch.
"""

import hashlib
import operator
from pathlib import Path

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, lower_cast, models, register_model

_EDITION = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()  # kernels are cached under what they read: `load` reads this


class Lanes(types.Type):
    """Floats of ``width`` members."""

    def __init__(self, width):
        self.width = width
        super().__init__(f"Lanes({width})")


class Mask(types.Type):
    """Booleans of ``width`` members."""

    def __init__(self, width):
        self.width = width
        super().__init__(f"Mask({width})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.VectorType(ir.DoubleType(), kind.width))


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.VectorType(ir.IntType(1), kind.width))


@lower_cast(types.Float, Lanes)
def _spread(context, builder, source, target, value):
    whole = ir.Constant(context.get_value_type(target), ir.Undefined)
    for lane in range(target.width):
        whole = builder.insert_element(whole, value, ir.Constant(ir.IntType(32), lane))
    return whole


@lower_cast(types.Integer, Lanes)
def _spread_integer(context, builder, source, target, value):
    return _spread(context, builder, types.float64, target, context.cast(builder, value, source, types.float64))


def _typed(result):
    """Typing of operators on lanes, or on lanes and a number."""

    class Template(AbstractTemplate):
        def generic(self, arguments, keywords):
            widths = [one.width for one in arguments if isinstance(one, Lanes)]
            if widths and all(isinstance(one, (Lanes, types.Number)) for one in arguments):
                return signature(result(widths[0]), *[Lanes(widths[0])] * len(arguments))
            return None

    return Template


def _enter_operators():
    # 1. arithmetic
    arithmetic = {operator.add: "fadd", operator.sub: "fsub", operator.mul: "fmul", operator.truediv: "fdiv"}
    for key, name in arithmetic.items():
        infer_global(key)(type(f"_{name}_{key.__name__}", (_typed(Lanes),), {"key": key}))

        def binary(context, builder, signature, values, name=name):
            return getattr(builder, name)(*values)

        lower_builtin(key, Lanes, Lanes)(binary)
    infer_global(operator.neg)(type("_neg", (_typed(Lanes),), {"key": operator.neg}))

    def negative(context, builder, signature, values):
        minus_zero = _spread(context, builder, types.float64, signature.return_type, ir.Constant(ir.DoubleType(), -0.0))
        return builder.fsub(minus_zero, values[0])

    lower_builtin(operator.neg, Lanes)(negative)
    # 2. comparisons: unordered != is true for NaN, as for single numbers
    comparisons = {operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "==", operator.ne: "!="}
    for key, sign in comparisons.items():
        infer_global(key)(type(f"_{key.__name__}", (_typed(Mask),), {"key": key}))

        def compare(context, builder, signature, values, sign=sign):
            return (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, *values)

        lower_builtin(key, Lanes, Lanes)(compare)
    # 3. masks
    for key, name in {operator.and_: "and_", operator.or_: "or_"}.items():

        class Join(AbstractTemplate):
            def generic(self, arguments, keywords):
                if all(isinstance(one, Mask) for one in arguments):
                    return signature(arguments[0], *arguments)
                return None

        infer_global(key)(type(f"_{name}_{key.__name__}", (Join,), {"key": key}))

        def join(context, builder, signature, values, name=name):
            return getattr(builder, name)(*values)

        lower_builtin(key, Mask, Mask)(join)


_enter_operators()


def _place(context, builder, signature, values):
    """Address of the lanes of an entry of an array."""
    array, word, width = signature.args[:3]
    data = context.make_array(array)(context, builder, values[0]).data
    begin = builder.mul(context.cast(builder, values[1], word, types.intp), context.get_constant(types.intp, width.literal_value))
    whole = ir.VectorType(ir.DoubleType(), width.literal_value)
    return builder.bitcast(builder.gep(data, [begin]), whole.as_pointer())


@intrinsic
def load(typing_context, array, word, width):
    """The lanes of an entry."""
    if not isinstance(width, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, values):
        return builder.load(_place(context, builder, signature, values), align=8)

    _ = _EDITION
    return Lanes(width.literal_value)(array, word, width), generate


@intrinsic
def put(typing_context, array, word, width, lanes):
    """Writes the lanes of an entry: lanes, or one number for all."""
    if not isinstance(width, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, values):
        builder.store(values[3], _place(context, builder, signature, values), align=8)
        return context.get_dummy_value()

    return types.void(array, word, width, Lanes(width.literal_value)), generate


@intrinsic
def spread(typing_context, number, width):
    """A number, for all members."""
    if not isinstance(width, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, values):
        return values[0]

    kind = Lanes(width.literal_value)
    return kind(kind, width), generate


@intrinsic
def chosen(typing_context, mask, this, other):
    """``this`` where the mask is true, else ``other``."""
    kind = Lanes(mask.width)

    def generate(context, builder, signature, values):
        return builder.select(*values)

    return kind(mask, kind, kind), generate


@intrinsic
def larger(typing_context, this, other):
    """``max(this, other)`` of all members, this where the other is NaN."""
    kind = this if isinstance(this, Lanes) else other

    def generate(context, builder, signature, values):
        return builder.select(builder.fcmp_ordered(">", values[1], values[0]), values[1], values[0])

    return kind(kind, kind), generate


def _of_each(lanes, operation):
    """(signature, generator) of an operation of LLVM on all members."""

    def generate(context, builder, signature, values):
        name = f"llvm.{operation}.v{lanes.width}f64"
        kind = context.get_value_type(lanes)
        return builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name), values)

    return lanes(lanes), generate


@intrinsic
def absolute(typing_context, lanes):
    """``abs`` of all members."""
    return _of_each(lanes, "fabs")


@intrinsic
def bits_of(typing_context, mask):
    """Integer whose bit l is set if the mask is true for member l."""

    def generate(context, builder, signature, values):
        return builder.zext(builder.bitcast(values[0], ir.IntType(mask.width)), ir.IntType(64))

    return types.int64(mask), generate


@intrinsic
def root(typing_context, lanes):
    """``sqrt`` of all members."""
    return _of_each(lanes, "sqrt")


def _entry(context, builder, kind, array, index):
    """Address of an entry of an array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


@intrinsic
def places(typing_context, numbers, first, step, size, width):
    """``numbers[first + l step] size`` of all lanes l: where the entries of scattered members begin."""
    if not isinstance(width, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, values):
        begin, apart, scale = (context.cast(builder, values[k], signature.args[k], types.intp) for k in (1, 2, 3))
        found = []
        for lane in range(width.literal_value):
            index = builder.add(begin, builder.mul(apart, context.get_constant(types.intp, lane)))
            found.append(builder.mul(builder.load(_entry(context, builder, signature.args[0], values[0], index)), scale))
        return context.make_tuple(builder, signature.return_type, found)

    return types.UniTuple(types.intp, width.literal_value)(numbers, first, step, size, width), generate


@intrinsic
def apart(typing_context, first, step, width):
    """``first + l step`` of all lanes l, as `places`."""
    if not isinstance(width, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, values):
        begin, way = (context.cast(builder, values[k], signature.args[k], types.intp) for k in (0, 1))
        found = [builder.add(begin, builder.mul(way, context.get_constant(types.intp, lane))) for lane in range(width.literal_value)]
        return context.make_tuple(builder, signature.return_type, found)

    return types.UniTuple(types.intp, width.literal_value)(first, step, width), generate


@intrinsic
def gather(typing_context, array, at, entry):
    """``array[at + entry]`` of all members; at: `places`."""

    def generate(context, builder, signature, values):
        offset = context.cast(builder, values[2], signature.args[2], types.intp)
        whole = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
        for lane, place in enumerate(cgutils.unpack_tuple(builder, values[1])):
            one = builder.load(_entry(context, builder, signature.args[0], values[0], builder.add(place, offset)))
            whole = builder.insert_element(whole, one, ir.Constant(ir.IntType(32), lane))
        return whole

    return Lanes(at.count)(array, at, entry), generate


@intrinsic
def scatter(typing_context, array, at, entry, lanes):
    """Writes ``array[at + entry]`` of all members, one after the other."""

    def generate(context, builder, signature, values):
        offset = context.cast(builder, values[2], signature.args[2], types.intp)
        for lane, place in enumerate(cgutils.unpack_tuple(builder, values[1])):
            one = builder.extract_element(values[3], ir.Constant(ir.IntType(32), lane))
            builder.store(one, _entry(context, builder, signature.args[0], values[0], builder.add(place, offset)))
        return context.get_dummy_value()

    return types.void(array, at, entry, Lanes(at.count)), generate
