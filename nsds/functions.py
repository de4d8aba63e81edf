"""User functions: compiled once to callbacks, known to records by name, called by kernels at their address."""

import hashlib
import importlib
import inspect
import types as python_types

import numpy as np
from numba import float64, types
from numba.core.errors import NumbaError

from nsds import _jit

_vector = float64[::1]

SIGNATURES = {"fext": ("fext(t, z, out)", types.void(float64, _vector, _vector))}

call_force = _jit.caller(SIGNATURES["fext"][1])

_compiled = {}


@_jit.kernel
def forces_at(address, t, z, out):
    """Rows ``out[k] = fext(t[k], z)`` of the function that lives at ``address``."""
    for k in range(t.size):
        call_force(address, (t[k], z, out[k]))


def function_name(function, role):
    """Compile a user function for ``role`` and return the name under which records refer to it.

    The name is ``module:qualified_name#fingerprint``. The fingerprint covers the code and the constants that it reads, so a function
    that was redefined in a notebook is a new function, and a record that was saved to disk never runs with another one.

    Parameters
    ----------
    function : callable
        Plain Python function (or a numba dispatcher) with the role's arguments; it writes its result into the last one.
    role : str
        A key of ``SIGNATURES``.

    Raises
    ------
    TypeError
        Not a function, wrong number of arguments, or numba cannot compile it; the message shows the signature wanted.
    """
    wanted = SIGNATURES[role][0]
    function = getattr(function, "py_func", function)
    if not isinstance(function, python_types.FunctionType):
        raise TypeError(f"{role}: expected an array or a function {wanted}, got {function!r}")
    n_wanted = wanted.count(",") + 1
    try:
        inspect.signature(function).bind(*range(n_wanted))
    except TypeError:
        given = f"{function.__name__}{inspect.signature(function)}"
        raise TypeError(f"{role}: expected a function {wanted}, got {given}") from None
    name = f"{function.__module__}:{function.__qualname__}#{_fingerprint(function)}"
    if (name, role) not in _compiled:
        _compiled[name, role] = _compile(function, role)
    return name


def function_address(name, role):
    """Address of the compiled function that a record names; looks it up in its module if this process has not seen it yet."""
    if (name, role) not in _compiled:
        module, _, qualified = name.partition("#")[0].partition(":")
        try:
            found = importlib.import_module(module)
            for attribute in qualified.split("."):
                found = getattr(found, attribute)
        except (ImportError, AttributeError):
            raise ValueError(
                f"{role}: the record names the user function {name!r}, which this process does not know; "
                f"run the code that defines it, then build a system with it once"
            ) from None
        if function_name(found, role) != name:
            raise ValueError(f"{role}: the record names the user function {name!r}, but {module}.{qualified} has changed since")
    return _compiled[name, role].address


def _compile(function, role):
    wanted, signature = SIGNATURES[role]
    try:
        return _jit.callback(signature, function)
    except (NumbaError, TypeError) as error:
        raise TypeError(
            f"{role}: the function {function.__qualname__} does not compile as {wanted} "
            f"(t a float, z and out float64 vectors, nothing returned): {error}"
        ) from error


def _fingerprint(function):
    digest = hashlib.sha256()
    _feed(digest, function, set())
    return digest.hexdigest()[:12]


def _feed(digest, value, seen):
    """Hash what decides how a function computes: its code, its constants and, in turn, the functions it calls."""
    value = getattr(value, "py_func", value)
    if isinstance(value, python_types.FunctionType):
        if value in seen:
            return
        seen.add(value)
        outer = inspect.getclosurevars(value)
        _feed(digest, value.__code__, seen)
        _feed(digest, value.__defaults__, seen)
        for name, item in sorted({**outer.globals, **outer.nonlocals}.items()):
            digest.update(name.encode())
            _feed(digest, item, seen)
    elif isinstance(value, python_types.CodeType):
        digest.update(value.co_code + repr(value.co_names + value.co_varnames).encode())
        for constant in value.co_consts:
            _feed(digest, constant, seen)
    elif isinstance(value, np.ndarray):
        digest.update(repr((value.dtype, value.shape)).encode() + value.tobytes())
    elif isinstance(value, tuple):
        for item in value:
            _feed(digest, item, seen)
    elif isinstance(value, python_types.ModuleType):
        digest.update(value.__name__.encode())
    else:
        digest.update(repr(value).encode())
