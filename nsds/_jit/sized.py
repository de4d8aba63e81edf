"""Public kernels: called from Python they check the lengths of their arrays, which compiled code trusts."""

import numpy as np
from numba.core.dispatcher import Dispatcher

from nsds import _checks


def of_sizes(*sizes):
    """Decorator of a kernel with arguments of these lengths. Other kernels call it without checks."""

    def decorate(function):
        if isinstance(function, Dispatcher):  # without a compiler it is plain Python, which checks itself
            function.sizes = dict(zip(function.py_func.__code__.co_varnames, sizes, strict=False))
            function.__class__ = _checking(type(function))
        return function

    return decorate


def _checking(base):
    """A class of dispatchers that check their arguments."""

    class CheckedDispatcher(base):
        __slots__ = ()

        def _reduce_class(self):  # what it is pickled as
            return base

        def __call__(self, *arguments, **named):
            if len(arguments) > len(self.sizes):
                raise TypeError(f"{self.__name__}: expected the arguments {', '.join(self.sizes)}, got {len(arguments)}")
            _require_sizes(self.__name__, self.sizes, dict(zip(self.sizes, arguments, strict=False)) | named)
            return base.__call__(self, *arguments, **named)

    return CheckedDispatcher


def _require_sizes(owner, sizes, given):
    if set(given) != set(sizes):
        raise TypeError(f"{owner}: expected the arguments {', '.join(sizes)}, got {', '.join(given) or 'none'}")
    for name, size in sizes.items():
        array = given[name]
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != (size,) or not array.flags.c_contiguous:
            got = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else _checks.shortened(array)
            raise TypeError(f"{owner}: {name} must be a contiguous float64 array of shape ({size},), got {got}")
    if not array.flags.writeable:
        raise ValueError(f"{owner}: {name} is written, and must not be read-only")
