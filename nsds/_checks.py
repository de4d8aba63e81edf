"""Checks of users' arguments: float64 copies, or an error that names function, field, expected and given."""

import functools
import importlib.util
import inspect
import math
import os
import reprlib
import sys

import numpy as np

_FLOATS = np.dtype(np.float64)
_LONGEST_PATH = 4096  # characters, the limit of Linux
_FEW = 64  # numbers whose sum is computed faster than each is tested
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80
_short.maxlist = _short.maxtuple = 8


def shortened(value):
    """The repr of a value, in a line of bounded length."""
    try:
        return " ".join(_short.repr(value).split())
    except Exception:  # a repr of the user's own that fails is no reason to say nothing
        return f"<{type(value).__name__}>"


def array(owner, field, value, n_dims=None, shape=None, at_least=0):
    """Finite float64 array of the given shape or number of dimensions; leading axes of length 1 are added up to ``at_least``."""
    result = floats(owner, field, value, n_dims, shape, at_least)
    return finite(owner, field, result.copy() if type(value) is np.ndarray and value.dtype is _FLOATS else result)


def floats(owner, field, value, n_dims=None, shape=None, at_least=0):
    """As `array`, but NaN and infinities are allowed, and a float64 array is not copied."""
    # 1. float64; strings, objects, booleans and masked values are refused
    if type(value) is np.ndarray and value.dtype is _FLOATS:
        result = value
    else:
        try:
            result = np.array(value)
            if result.dtype.kind not in "biuf" or isinstance(value, (bool, np.bool_)) or np.ma.is_masked(value):
                raise TypeError
            result = np.ascontiguousarray(result, dtype=np.float64).reshape(result.shape)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"{owner}: {field} must be an array of real numbers, got {shortened(value)}") from None
    # 2. number of dimensions and shape
    if result.ndim < at_least:
        result = result.reshape((1,) * (at_least - result.ndim) + result.shape)
    if n_dims is not None and result.ndim != n_dims:
        wanted = "a number" if n_dims == 0 else f"an array of {n_dims} dimensions"
        raise ValueError(f"{owner}: {field} must be {wanted}, got shape {result.shape}")
    if shape is not None and result.shape != shape:
        raise ValueError(f"{owner}: {field} must have shape {shape}, got {result.shape}")
    return result


def finite(owner, field, value):
    """The array, if it has neither NaN nor infinities."""
    if value.size <= _FEW and math.isfinite(sum(value.ravel().tolist())):  # which is soon done
        return value
    if not np.isfinite(value).all():
        where = np.argwhere(~np.isfinite(value))[0].tolist()
        at = f" at index {where}" if value.ndim else ""
        raise ValueError(f"{owner}: {field} must be finite, got {value[tuple(where)]}{at}")
    return value


def number(owner, field, value, low=-np.inf, high=np.inf, above=None):
    """Finite float within [low, high], and > above where that is given."""
    result = value if type(value) is float and math.isfinite(value) else array(owner, field, value, n_dims=0).item()
    if not low <= result <= high or (above is not None and not result > above):
        bounds = f"above {above}" if above is not None else f"in [{low}, {high}]"
        raise ValueError(f"{owner}: {field} must be {bounds}, got {result}")
    return result


def integer(owner, field, value, low, high=2**31 - 1):
    """Whole number in [low, high]."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{owner}: {field} must be a whole number, got {shortened(value)}")
    if not low <= value <= high:
        bounds = f"at least {low}" if value < low else f"at most {high}"
        raise ValueError(f"{owner}: {field} must be {bounds}, got {shortened(int(value))}")
    return int(value)


def number_or_inf(owner, field, value, **limits):
    """`number`, or infinity."""
    return np.inf if isinstance(value, (float, np.floating)) and value == np.inf else number(owner, field, value, **limits)


def whole_numbers(owner, field, value):
    """int64 array of whole numbers."""
    try:
        result = np.array(value)
    except ValueError:
        result = np.array(None)
    if result.dtype.kind not in "iu":
        given = result.dtype if result.dtype.kind in "bf" else shortened(value)
        raise TypeError(f"{owner}: {field} must be whole numbers, got {given}")
    return result.astype(np.int64)


def shape_of(owner, field, value):
    """Shape of a value that is to become an array."""
    try:
        shape = np.shape(value)
    except ValueError:
        shape = None
    if not isinstance(shape, tuple):  # also of a class of NumPy, which has a descriptor of this name
        raise TypeError(f"{owner}: {field} must be an array of real numbers, got {shortened(value)}")
    return shape


def length(owner, field, value):
    """Length of the last axis of a value that is to become an array, at least 1; 1 of a number."""
    shape = shape_of(owner, field, value)
    if shape and shape[-1] == 0:
        raise ValueError(f"{owner}: {field} must have at least one entry, got shape {shape}")
    return shape[-1] if shape else 1


def made(owner, field, value, key, known, makers):
    """A dict made by a constructor: its ``key`` is in a table of names with the fields that belong to them."""
    name = value.get(key) if isinstance(value, dict) else None
    if not isinstance(name, str) or name not in known or not set(known[name]) <= set(value):
        raise TypeError(f"{owner}: {field} must come from one of {', '.join(makers)}, got {shortened(value)}")
    return value


def choice(owner, field, value, known):
    """One of several words."""
    if not isinstance(value, str) or value not in known:
        listed = ", ".join(map(repr, known))
        raise ValueError(f"{owner}: {field} must be one of {listed}, got {shortened(value)}{meant(value, known)}")
    return value


def meant(value, known):
    """The question whether a similar name was meant, for the end of a message; empty without one."""
    from difflib import get_close_matches  # of errors alone

    near = get_close_matches(value, list(known), 1) if isinstance(value, str) else []
    return f"; did you mean {near[0]!r}?" if near else ""


def imported_later(package, places):
    """``__getattr__`` and ``__dir__`` of a package that imports a name when it is asked for; places: the module of each."""

    def get(name):
        if name not in places:
            raise AttributeError(f"module '{package}' has no attribute {name!r}{meant(name, places)}", name=name)
        value = getattr(importlib.import_module(places[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: [*places]


def naming_options(function):
    """The function, with a message for an option that it does not have: which there are, and which was probably meant."""
    known = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args, **kwargs):
        unknown = [name for name in kwargs if name not in known]
        if unknown:
            options = f"has the options {', '.join(known)}" if known else "has no options"
            raise TypeError(f"{function.__name__}: {options}, got {unknown[0]!r}{meant(unknown[0], known)}")
        return function(*args, **kwargs)

    return checked


def flag(owner, field, value):
    """True or False, also of NumPy."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{owner}: {field} must be True or False, got {shortened(value)}")
    return bool(value)


def flags(owner, field, value, shape=None):
    """int64 array of 0 and 1, from booleans or these; of the given shape, from one for all or one for each."""
    try:
        result = np.array(value)
    except ValueError:
        result = np.array(None)
    if result.dtype.kind not in "biuf" or not np.isin(result, (0, 1)).all():
        raise TypeError(f"{owner}: {field} must be flags, True or False, got {shortened(value)}")
    if shape is not None and result.shape not in ((), shape):
        raise ValueError(f"{owner}: {field} must be one flag or have shape {shape}, got {result.shape}")
    return np.broadcast_to(result.astype(np.int64), result.shape if shape is None else shape)


def takes(owner, field, function, arguments):
    """Refuses a function that does not take these arguments, given as text."""
    try:
        inspect.signature(function).bind(*arguments.split(", "))
    except TypeError:
        raise TypeError(f"{owner}: {field} must be a function {field}({arguments}), got {shortened(function)}") from None
    except ValueError:  # of what is compiled, Python does not always know
        return


def text(owner, field, value):
    """A str."""
    if not isinstance(value, str):
        raise TypeError(f"{owner}: {field} must be a text, got {shortened(value)}")
    return value


def of_member(member, n_members):
    """Suffix of a message that names the member of an ensemble; empty for one record."""
    return f" of member {member}" if n_members > 1 else ""


def path(owner, field, value):
    """The name of a file or folder, as a str."""
    name = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not name or "\0" in os.fsdecode(name):
        raise TypeError(f"{owner}: {field} must be a path, got {shortened(value)}")
    if len(name) > _LONGEST_PATH:
        raise ValueError(f"{owner}: {field} must be a path of at most {_LONGEST_PATH} characters, got {len(name)}: {shortened(value)}")
    return os.fsdecode(name)


def path_ending(owner, field, value, form, endings):
    """A path whose ending, one of these, names the format."""
    name = path(owner, field, value)
    if not name.lower().endswith(endings):
        raise ValueError(f"{owner}: {field} is written as {form}, and its name must end in {' or '.join(endings)}, got {shortened(name)}")
    return name


def require_package(module, packages, need):
    """Raises an ImportError with the command that installs the packages of a module, if it is not installed."""
    if importlib.util.find_spec(module) is None:
        raise ImportError(f"{need}: pip install {packages}")


def may_use_threads():
    """Whether parallel kernels can run here: not in a process forked from one with running threads, which OpenMP would abort."""
    return not _forked_from_threads


def require_threads(owner, method):
    """Raises a RuntimeError if a method that needs parallel kernels is called in a process that cannot run them."""
    if not may_use_threads():
        raise RuntimeError(
            f"{owner}: {method} runs on threads, which a process forked from one that used them does not have: take the start "
            "method 'spawn' or 'forkserver' of multiprocessing, or a method without threads"
        )


_forked_from_threads = []


def _note_fork():
    if getattr(sys.modules.get("numba.np.ufunc.parallel"), "_is_initialized", False):
        _forked_from_threads.append(os.getpid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
