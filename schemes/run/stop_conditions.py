"""Conditions that end a run: on saved rows, checked between the chunks of the time loop."""

import re

import numpy as np

from nsds import _checks

_WORDS = re.compile(r"(\w+)\.(\w+)(?:\[(\d{1,9})\])?\s*(<=|>=|<|>)\s*(\S+)")
_COMPARE = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


class Until:
    """End of a run: for each member the first saved row after the initial one at which a condition holds."""

    def __init__(self, owner, given):
        self._owner = owner
        self.text = given if isinstance(given, str) else None
        if callable(given):
            _checks.takes(owner, "until", given, "rows")
            self._holds = given
        elif isinstance(given, str):
            self._holds = _compared(owner, given)
        else:
            raise TypeError(
                f'{owner}: until must be a text such as "ball.q[0] < 0.1" or a function until(rows), got {_checks.shortened(given)}'
            )

    def first(self, rows):
        """Number of the first of some rows at which the condition holds; None where there is none."""
        if rows.size == 0:
            return None
        held = np.asarray(self._holds(rows))
        if held.shape != rows.shape or held.dtype != bool:
            raise ValueError(
                f"{self._owner}: until must return an array of bool, one for each row, shape {rows.shape}, got {_checks.shortened(held)}"
            )
        return int(held.argmax()) if held.any() else None


def _compared(owner, text):
    """Function of rows for a text like ``"ball.q[0] < 0.1"``."""
    match = _WORDS.fullmatch(text.strip())
    try:
        part, field, index, sign, number = match.groups()
        bound = _checks.number(owner, "until", float(number))
    except (AttributeError, ValueError):
        raise ValueError(
            f'{owner}: until must compare a saved number with a number, as "ball.q[0] < 0.1", got {_checks.shortened(text)}'
        ) from None

    def holds(rows):
        if part not in rows.dtype.names or field not in (rows.dtype[part].base.names or ()):
            held = [f"{p}.{f}" for p in rows.dtype.names for f in rows.dtype[p].base.names or ()]
            raise ValueError(f"{owner}: until must name what is saved, {', '.join(held)}; got {_checks.shortened(text)}")
        columns = rows[part][field].reshape(rows.size, -1)
        if int(index or 0) >= columns.shape[1] or (index is None and columns.shape[1] > 1):
            has = f"{part}.{field} has {columns.shape[1]} numbers, of which one is to be named"
            raise ValueError(f"{owner}: until: {has}, got {_checks.shortened(text)}")
        return _COMPARE[sign](columns[:, int(index or 0)], bound)

    return holds
