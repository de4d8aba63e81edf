"""Sections of docstrings that several functions share, written in one place."""

import inspect
import re

_ORDER = ("Parameters", "Returns", "Raises", "Notes", "Examples")
_HEAD = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)


def with_sections(**sections):
    """Decorator of a function whose docstring gets these sections, unless it has them itself.

    Parameters is the description of one, or of several in one entry, which becomes the last.
    """

    def documented(function):
        if function.__doc__:  # not under python -OO
            head, *rest = _HEAD.split(inspect.cleandoc(function.__doc__))
            own = dict(zip(rest[::2], rest[1::2], strict=True))
            told, given, more = sections | own, own.get("Parameters", ""), sections.get("Parameters", "")
            if more and f"\n{more.partition(':')[0]}:" not in f"\n{given}":
                told["Parameters"] = f"{given.rstrip()}\n{more}"
            parts = (f"{name}\n{'-' * len(name)}\n{told[name].strip()}" for name in sorted(told, key=_ORDER.index))
            function.__doc__ = "\n\n".join([head.rstrip(), *parts]) + "\n"
        return function

    return documented
