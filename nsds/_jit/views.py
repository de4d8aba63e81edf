"""Views of memory inside kernels, without counting references."""

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _require_inside(context, builder, whole, begin, length):
    """Code that raises IndexError if a view is not empty and not inside its array."""
    nothing = context.get_constant(types.intp, 0)
    starts_outside = builder.icmp_signed("<", begin, nothing)
    ends_outside = builder.icmp_signed(">", builder.add(begin, length), whole)
    is_negative, is_empty = (builder.icmp_signed(sign, length, nothing) for sign in ("<", "=="))
    outside = builder.or_(builder.or_(starts_outside, ends_outside), is_negative)
    with builder.if_then(builder.and_(builder.not_(is_empty), outside), likely=False):
        context.call_conv.return_user_exc(builder, IndexError, ("a view of memory reaches beyond its array",))


@intrinsic
def view(typing_context, array, start, size):
    """``array[start:start + size]`` for a 1-D array; checked if NUMBA_BOUNDSCHECK is set.

    Then a view that begins before its array or ends after it raises IndexError, unless it is empty. Code that is called by its address
    cannot raise: numba prints the exception as ignored.
    """

    # 1. both arrays, begin and length in machine integers
    def generate(context, builder, signature, values):
        source = context.make_array(signature.args[0])(context, builder, values[0])
        target = context.make_array(signature.return_type)(context, builder)
        begin, length = (context.cast(builder, values[i], signature.args[i], types.intp) for i in (1, 2))
        # 2. the bounds
        if numba.config.BOUNDSCHECK:
            _require_inside(context, builder, cgutils.unpack_tuple(builder, source.shape, 1)[0], begin, length)
        # 3. a view without owner: nothing counts its references
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
def matrix(typing_context, array, shape):
    """``array.reshape(shape)`` for a 1-D array of as many entries."""

    def generate(context, builder, signature, values):
        source = context.make_array(signature.args[0])(context, builder, values[0])
        target = context.make_array(signature.return_type)(context, builder)
        rows, columns = cgutils.unpack_tuple(builder, values[1], 2)
        itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(array.dtype)))
        context.populate_array(
            target,
            data=source.data,
            shape=cgutils.pack_array(builder, [rows, columns]),
            strides=cgutils.pack_array(builder, [builder.mul(columns, itemsize), itemsize]),
            itemsize=itemsize,
            meminfo=None,
        )
        return target._getvalue()

    return types.Array(array.dtype, 2, "C")(array, shape), generate


@intrinsic
def pointer(typing_context, array):
    """Address of the first entry of an array, for callbacks into Python."""

    def generate(context, builder, signature, values):
        source = context.make_array(signature.args[0])(context, builder, values[0])
        return builder.ptrtoint(source.data, context.get_value_type(types.int64))

    return types.int64(array), generate


@intrinsic
def at_address(typing_context, place, size):
    """Floats at an address, (size,): the inverse of `pointer`. Nothing checks that they are there."""

    def generate(context, builder, signature, values):
        target = context.make_array(signature.return_type)(context, builder)
        length = context.cast(builder, values[1], signature.args[1], types.intp)
        itemsize = context.get_constant(types.intp, 8)
        context.populate_array(
            target,
            data=builder.inttoptr(values[0], ir.DoubleType().as_pointer()),
            shape=cgutils.pack_array(builder, [length]),
            strides=cgutils.pack_array(builder, [itemsize]),
            itemsize=itemsize,
            meminfo=None,
        )
        return target._getvalue()

    return types.Array(types.float64, 1, "C")(place, size), generate


@intrinsic
def stack(typing_context, size):
    """A small uninitialised array of floats on the stack, (size,); small ones of constant size stay in registers."""
    if not isinstance(size, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, values):
        target = context.make_array(signature.return_type)(context, builder)
        n = signature.args[0].literal_value
        # allocated once in the entry block: in a loop the stack would grow with each pass
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
