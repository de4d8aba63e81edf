"""Options of schemes, each declared once: the check of its argument, its type in a record, and the argument that a record stands for."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nsds import _checks


class Option(NamedTuple):
    """One option: its type in a record; the check, which returns the stored value; the argument of a stored value (None: itself)."""

    dtype: str
    checked: Callable  # (owner, name of the argument, its value)
    argument: Callable | None = None  # (owner, name, stored value)


def number(low=-np.inf, high=np.inf, above=None):
    """A finite number within [low, high], above a bound where that is given."""
    return Option("<f8", lambda owner, name, value: _checks.number(owner, name, value, low, high, above))


def number_or_inf(**limits):
    """As `number`, or infinity."""
    return Option("<f8", lambda owner, name, value: _checks.number_or_inf(owner, name, value, **limits))


def integer(low):
    """A whole number that is not below a bound."""
    return Option("<i8", lambda owner, name, value: _checks.integer(owner, name, value, low))


def times():
    """Times in any order, stored in theirs."""
    return Option("<f8", lambda owner, name, value: np.sort(_checks.array(owner, name, value, n_dims=1)))


def word(*known):
    """Choice among words."""
    return Option(f"S{max(map(len, known))}", lambda owner, name, value: _checks.choice(owner, name, value, known).encode(), _text)


def flag(*, or_none=False):
    """True or False, stored as 1 and 0; or None, stored as 2."""

    def checked(owner, name, value):
        return 2 if value is None and or_none else int(_checks.flag(owner, name, value))

    def argument(owner, name, value):
        values = (False, True, None) if or_none else (False, True)
        if value not in range(len(values)):
            raise ValueError(f"{owner}: {name} must be {' or '.join(map(str, range(len(values))))}, got {value}")
        return values[value]

    return Option("<i8", checked, argument)


def _text(owner, name, value):
    return value.decode(errors="replace")


def record_of(scheme, options, arguments):
    """Record of the options of a scheme, () of its name and of the stored value of each argument.

    Raises
    ------
    ValueError, TypeError
        An argument that its option refuses.
    """
    stored = {name: option.checked(scheme, name, arguments[name]) for name, option in options.items()}
    fields = [(name, option.dtype, np.shape(stored[name])) for name, option in options.items()]
    record = np.zeros((), [("scheme", "S32"), *fields])
    record["scheme"] = scheme.encode()
    for name, value in stored.items():
        record[name] = value
    return record


def arguments_of(scheme, options, record):
    """The arguments of `record_of` that make a record of a scheme's options."""
    values = {name: record[name].tolist() for name in options}
    return {name: option.argument(scheme, name, values[name]) if option.argument else values[name] for name, option in options.items()}
