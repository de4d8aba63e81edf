"""Checks of what users pass in: float64 copies or an error that names the function, the field, what it wants and what it got."""

import importlib.util

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
