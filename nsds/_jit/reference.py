"""Tuples of tables that are passed to kernels by reference.

numba passes each word of each array of a tuple at each call, and unpacks them all in the callee: half of LLVM's input, as most
kernels pass the tables on and read one or two. Here each word is in memory, written once where Python calls, and a kernel
loads those that it needs.
"""

import hashlib

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import PrimitiveModel, default_manager
from numba.core.imputils import lower_getattr_generic
from numba.core.pythonapi import NativeValue, unbox
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.core.typing.typeof import typeof_impl
from numba.extending import intrinsic

from nsds._jit.convention import Words

_WORD = ir.IntType(64)
_NOT_KEPT = next(name for name in ("captures(none)", "nocapture") if name in ir.ArgumentAttributes._known)  # in LLVM 21 and before


def by_reference(cls):
    """Decorator of a NamedTuple that kernels read, and create by `made` only: fields are arrays, numbers, and tuples of them."""

    @typeof_impl.register(cls)
    def typeof(value, context):
        return Reference(cls, [numba.typeof(item) for item in value])

    return cls


def made(cls):
    """A function ``make((fields...))`` for kernels: a tuple of a class that is passed by reference, in the memory of the caller."""

    @intrinsic
    def make(typing_context, fields):
        kind = Reference(cls, fields)

        def generate(context, builder, signature, given):
            place = cgutils.alloca_once(builder, _WORD, size=max(n_words(kind), 1))
            at = place
            for value, inner in zip(cgutils.unpack_tuple(builder, given[0]), kind.kinds, strict=True):
                if isinstance(inner, Reference):  # given by its address: its words are stored in place
                    words = [builder.load(_after(builder, value, i)) for i in range(n_words(inner))]
                else:
                    words = Words([inner]).as_arguments(builder, [value])
                for word in words:
                    builder.store(word, builder.bitcast(at, word.type.as_pointer()))
                    at = _after(builder, at, 1)
            return place

        return kind(fields), generate

    return make


class Reference(types.Type):
    """Type of a tuple that is passed by its address."""

    def __init__(self, cls, kinds):
        self.cls, self.kinds = cls, tuple(kinds)
        super().__init__(f"{cls.__module__}.{cls.__name__}({', '.join(map(str, self.kinds))})")

    @property
    def key(self):
        return self.cls, self.kinds

    @property
    def mangling_args(self):
        """A short name for symbols: those of numba list each column of each table."""
        return f"{self.cls.__name__}_{hashlib.sha256(self.name.encode()).hexdigest()[:16]}", ()

    def field(self, name):
        """(type of a field, index of its first word)."""
        i = self.cls._fields.index(name)
        return self.kinds[i], sum(map(n_words, self.kinds[:i]))


def n_words(kind):
    """Number of words of a value in memory; references inside others are stored in place."""
    return sum(map(n_words, kind.kinds)) if isinstance(kind, Reference) else len(Words([kind]).argument_types)


@infer_getattr
class _Fields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, kind, name):
        return kind.field(name)[0] if name in kind.cls._fields else None


class _Model(PrimitiveModel):
    attributes = ("noalias", _NOT_KEPT)  # so that writes elsewhere do not force words to be read again

    def __init__(self, manager, kind):
        super().__init__(manager, kind, _WORD.as_pointer())


default_manager.register(Reference, _Model)


@lower_getattr_generic(Reference)
def _get(context, builder, kind, place, name):
    kind, at = kind.field(name)
    place = _after(builder, place, at)
    if isinstance(kind, Reference):
        return place
    words = Words([kind])
    return words.from_arguments(
        builder,
        [builder.load(builder.bitcast(_after(builder, place, i), word.as_pointer())) for i, word in enumerate(words.argument_types)],
    )[0]


def _after(builder, place, n):
    return builder.gep(place, [ir.Constant(_WORD, n)]) if n else place


@unbox(Reference)
def _unbox(kind, value, c):
    """Words of a Python tuple, in memory of the caller."""
    place = cgutils.alloca_once(c.builder, _WORD, size=max(n_words(kind), 1))
    return NativeValue(place, is_error=_write(kind, value, c, place))


def _write(kind, value, c, place):
    """Whether a part of a tuple differs from its type; writes the words."""
    failed = cgutils.false_bit
    for i, inner in enumerate(kind.kinds):
        item = c.pyapi.tuple_getitem(value, i)
        if isinstance(inner, Reference):
            failed = c.builder.or_(failed, _write(inner, item, c, place))
            place = _after(c.builder, place, n_words(inner))
            continue
        native = c.unbox(inner, item)
        failed = c.builder.or_(failed, native.is_error)
        for word in Words([inner]).as_arguments(c.builder, [native.value]):
            c.builder.store(word, c.builder.bitcast(place, word.type.as_pointer()))
            place = _after(c.builder, place, 1)
    return failed
