"""What `nsds._jit` offers, without a compiler: with ``NUMBA_DISABLE_JIT=1`` every kernel is an ordinary Python function.

For debuggers, line coverage and checked runs: results have the same bits, some thousand times later, and an index or a view outside its
array is an IndexError, where compiled code reads what lies there.
"""

import ctypes as _ctypes

import numpy as _np
from numba import types as _types

_np.seterr(all="ignore")  # kernels follow IEEE arithmetic and test what comes of it

_functions = {}  # by address
_C_TYPES = {_types.int64: _ctypes.c_int64, _types.float64: _ctypes.c_double, _types.uintp: _ctypes.c_size_t}


class _Callback:
    def __init__(self, function):
        self.function, self.address = function, len(_functions) + 1
        _functions[self.address] = function


class PythonCallback(_Callback):
    """A Python function with an ``address``."""

    def __init__(self, signature, function):
        super().__init__(function)


def kernel(function, **options):
    """The function as it is."""
    return function


inlined = tiny = parallel = threaded = compiled = kernel


def is_compiled(kernel):
    """Nothing has to be."""
    return True


def callback(signature, function, parameters=None, arguments=None):
    """A user's function with an ``address``, called as `nsds._jit.callback` says."""
    if parameters is not None:
        function = eval(f"lambda {parameters}: function({arguments})", {"function": function, "cleared": _cleared, "matrix": _np.reshape})
    return _Callback(function)


def _cleared(out):
    out[:] = 0.0
    return out


def address(signature, function):
    """A number under which `caller` finds a kernel."""
    return next((number for number, known in _functions.items() if known is function), None) or _Callback(function).address


def bound(*calls):
    """A function ``call(is_brief=False)`` that calls kernels one after the other, and returns what the last one does."""
    return lambda is_brief=False: [function(*arguments) for function, arguments in calls][-1]


def on_demand(signature, function):
    """A function ``address()`` for kernels."""
    return lambda: address(signature, function)


def caller(signature):
    """A function ``call(address, (arguments...))``; an address that is not of a kernel is that of a C function of numbers."""
    returned, *arguments = (_C_TYPES.get(kind) for kind in (signature.return_type, *signature.args))

    def call(address, values):
        function = _functions.get(int(address)) or _ctypes.CFUNCTYPE(returned, *arguments)(int(address))
        return function(*values)

    return call


def view(array, start, size):
    """``array[start:start + size]``, which has to lie inside."""
    if size == 0:
        return array[:0]
    if start < 0 or start + size > array.size:
        raise IndexError(f"view of the words {start} to {start + size} of {array.size}")
    return array[start : start + size]


def pointer(array):
    """Where the numbers of an array lie in memory."""
    return array.ctypes.data


def at_address(place, size):
    """Floats that lie at an address, (size,)."""
    return _np.ctypeslib.as_array((_ctypes.c_double * int(size)).from_address(int(place)))


def stack(size):
    """A few floats, (size,), not initialised."""
    return _np.empty(size)


def load(array, word, width):
    """The lanes of a word of members side by side."""
    return view(array, word * width, width).copy()


def put(array, word, width, lanes):
    """Write the lanes of a word."""
    view(array, word * width, width)[:] = lanes


def spread(number, width):
    """A number, for all members."""
    return _np.full(width, number, _np.float64)


chosen, absolute = _np.where, _np.abs


def larger(this, other):
    """``max(this, other)`` of all members, this where the other is NaN."""
    return _np.where(other > this, other, this)


def bits_of(mask):
    """A whole number whose bit l is set where the mask says yes of member l."""
    return sum(1 << int(lane) for lane in _np.flatnonzero(mask))


def by_reference(cls):
    """A tuple as it is."""
    return cls


def announcing(kernel, what):
    """There is nothing to be compiled."""
    return kernel


each = range


def made(cls):
    """As `nsds._jit.reference.made`."""
    return lambda fields: cls(*fields)
