"""Checks of what users pass in: float64 copies or an error that names the function, the field, what it wants and what it got."""

import importlib.util
import os
import sys

import numpy as np


def array(owner, field, value, n_dims=None, shape=None):
    """Finite float64 array of the given shape or number of dimensions."""
    try:
        result = np.array(value)
        if result.dtype.kind not in "biuf":
            raise TypeError
        result = np.ascontiguousarray(result, dtype=np.float64).reshape(result.shape)
    except (TypeError, ValueError):
        raise TypeError(f"{owner}: {field} must be an array of real numbers, got {value!r}") from None
    if n_dims is not None and result.ndim != n_dims:
        raise ValueError(f"{owner}: {field} must have {n_dims} dimensions, got shape {result.shape}")
    if shape is not None and result.shape != shape:
        raise ValueError(f"{owner}: {field} must have shape {shape}, got {result.shape}")
    if not np.isfinite(result).all():
        where = np.argwhere(~np.isfinite(result))[0].tolist()
        raise ValueError(f"{owner}: {field} must be finite, got {result[tuple(where)]} at index {where}")
    return result


def number(owner, field, value, low=-np.inf, high=np.inf, above=None):
    """Finite float within [low, high], and > above where that is given."""
    result = array(owner, field, value, n_dims=0).item()
    if not low <= result <= high or (above is not None and not result > above):
        bounds = f"above {above}" if above is not None else f"in [{low}, {high}]"
        raise ValueError(f"{owner}: {field} must be {bounds}, got {result}")
    return result


def integer(owner, field, value, low):
    """Whole number >= low."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{owner}: {field} must be a whole number, got {value!r}")
    if value < low:
        raise ValueError(f"{owner}: {field} must be at least {low}, got {value}")
    return int(value)


def require_extra(module, extra, need):
    """Raise an ImportError that names the extra of the package with which a module comes, where it is not installed."""
    if importlib.util.find_spec(module) is None:
        raise ImportError(f"{need}: pip install 'nsds[{extra}]'")


def may_use_threads():
    """Whether parallel kernels run here: not in a process forked from one whose threads had begun, which OpenMP would end."""
    return not _forked_from_threads


def require_threads(owner, method):
    """Raise a RuntimeError where a method that needs parallel kernels is called in a process that cannot run them."""
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
