"""Floating-point operations of a kernel, counted: its Python is run on numbers that count what is done with them."""

import math
import types

import numpy as np

_OPERATIONS = ("add", "sub", "mul", "truediv", "mod", "pow")


class Counted(float):
    """A number; operations with it, and functions of `math`, are counted. Comparisons and changes of sign are free."""

    count = 0

    def __neg__(self):
        return Counted(-float(self))

    def __abs__(self):
        return Counted(abs(float(self)))


def _counting(function):
    def operation(*arguments):
        Counted.count += 1
        return Counted(function(*arguments))

    return operation


for _name in _OPERATIONS:
    for _key in (f"__{_name}__", f"__r{_name}__"):
        setattr(Counted, _key, _counting(getattr(float, _key)))
_ROOTS = {"sin": _counting(math.sin), "cos": _counting(math.cos), "sqrt": _counting(math.sqrt)}
_MODULES = {math: types.SimpleNamespace(pi=math.pi, inf=math.inf, **_ROOTS), np: types.SimpleNamespace(**_ROOTS)}


def plain(kernel):
    """The Python function of a compiled one, which calls those of others."""
    function = getattr(kernel, "py_func", kernel)
    names = dict(function.__globals__)
    for key in function.__code__.co_names:
        value = names.get(key)
        if isinstance(value, types.ModuleType):
            names[key] = _MODULES[value]
        elif hasattr(value, "py_func") or isinstance(value, types.FunctionType):
            names[key] = plain(value)
    return types.FunctionType(function.__code__, names, closure=function.__closure__)


def counted(value):
    """A float, or an array of floats, as numbers that count."""
    if isinstance(value, np.ndarray) and value.dtype == float:
        wrapped = np.empty(value.shape, object)
        wrapped.reshape(-1)[:] = [Counted(x) for x in value.flat]
        return wrapped
    return Counted(value) if isinstance(value, float) else value


def of(kernel, *arguments):
    """How many operations a call of a kernel takes."""
    arguments = [counted(argument) for argument in arguments]
    Counted.count = 0
    plain(kernel)(*arguments)
    return Counted.count
