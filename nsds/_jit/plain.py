"""The interface of `nsds._jit` without a compiler: with ``NUMBA_DISABLE_JIT=1`` every kernel is an ordinary Python function.

For debuggers, line coverage and checked runs: results have the same bits, some thousand times slower, and an index or a view outside its
array is an IndexError, where compiled code reads whatever is in memory.
"""

import ctypes as _ctypes

import numpy as _np
from numba import types as _types

_np.seterr(all="ignore")  # kernels follow IEEE arithmetic and test its results

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
    """The function itself."""
    return function


inlined = tiny = parallel = threaded = compiled = kernel


def is_compiled(kernel):
    """True: nothing has to be compiled."""
    return True


def callback(signature, function, parameters=None, arguments=None):
    """A user's function with an ``address``, called as `nsds._jit.callback` describes."""
    if parameters is not None:
        function = eval(f"lambda {parameters}: function({arguments})", {"function": function, "cleared": _cleared, "matrix": _np.reshape})
    return _Callback(function)


def _cleared(out):
    out[:] = 0.0
    return out


def address(signature, function):
    """A number by which `caller` finds a kernel."""
    return next((number for number, known in _functions.items() if known is function), None) or _Callback(function).address


def bound(*calls):
    """A function ``call(is_brief=False)`` that calls kernels one after the other, and returns the result of the last one."""
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
    """``array[start:start + size]``, which must lie inside."""
    if size == 0:
        return array[:0]
    if start < 0 or start + size > array.size:
        raise IndexError(f"view of the words {start} to {start + size} of {array.size}")
    return array[start : start + size]


def pointer(array):
    """Address of the first entry of an array."""
    return array.ctypes.data


def at_address(place, size):
    """Floats at an address, (size,)."""
    return _np.ctypeslib.as_array((_ctypes.c_double * int(size)).from_address(int(place)))


def stack(size):
    """A small uninitialised array of floats, (size,)."""
    return _np.empty(size)


def load(array, word, width):
    """The lanes of an entry of members side by side."""
    return view(array, word * width, width).copy()


def put(array, word, width, lanes):
    """Writes the lanes of an entry."""
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


def root(lanes):
    """``sqrt`` of all members."""
    return _np.sqrt(lanes)


def places(numbers, first, step, size, width):
    """``numbers[first + l step] size`` of all lanes l."""
    return view(numbers, first, step * (width - 1) + 1)[::step] * size


def apart(first, step, width):
    """``first + l step`` of all lanes l."""
    return first + step * _np.arange(width)


def gather(array, at, entry):
    """``array[at + entry]`` of all members."""
    return array[at + entry]


def scatter(array, at, entry, lanes):
    """Writes ``array[at + entry]`` of all members."""
    array[at + entry] = lanes


def by_reference(cls):
    """The tuple class itself."""
    return cls


def announcing(kernel, what):
    """The kernel itself: there is nothing to compile."""
    return kernel


each = range


def made(cls):
    """As `nsds._jit.reference.made`."""
    return lambda fields: cls(*fields)
