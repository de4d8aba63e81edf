"""Types of the public functions, for editors and type checkers, from what docstrings say: ``python -m tests.stubs`` writes them.

They stand in a stub: annotations in the sources would be one more place to state types, and evaluated in each import.
"""

import inspect
import re

import nsds
from tests.paths import ROOT

STUB = ROOT / "nsds" / "__init__.pyi"
_HEAD = '''"""Types of the public functions. Made from the docstrings by ``python -m tests.stubs``."""

from collections.abc import Callable, Sequence
from os import PathLike
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__version__: str
'''
# What stands in the type of a parameter -> its type; the first that a phrase contains counts.
_TYPES = (
    (r"sequence of str\b", "Sequence[str]"), (r"(sequence|list) of\b", "Sequence[Any]"), (r"\bdict\b", "dict[str, Any]"),
    (r"\bfunctions?\b", "Callable[..., Any]"), ("map from", "Any"), ("array_like", "ArrayLike"), (r"numpy\.ndarray", "np.ndarray"),
    (r"numpy\.void", "np.void"), (r"scipy\.sparse", "Any"), (r"\bfloat\b", "float"), (r"\bint\b", "int"), (r"\bbool\b", "bool"),
    (r"\b[Pp]ath\b", "PathLike[str]"), (r"\bstr\b|\"", "str"),
)  # fmt: skip
_PLAIN = ("numpy.ndarray", "bool", "float", "int", "str", "dict", "callable")


def stub():
    """Text of the stub."""
    lines, functions = [_HEAD], [value for value in (getattr(nsds, name) for name in nsds.__all__) if inspect.isfunction(value)]
    told = [pair for function in functions for pair in _parameters(inspect.getdoc(function)).items()]
    told = [(name, kind.removesuffix(" | None")) for name, kind in told]  # a default that is None says so itself
    shared = {name: kind for name, kind in told if all(other == kind for same, other in told if same == name)}
    for name in nsds.__all__:
        value = getattr(nsds, name)
        if inspect.ismodule(value):
            lines.append(f"{name}: ModuleType")
        elif inspect.isclass(value):
            fields = re.findall(
                r"^(\w+(?:, \w+)*)(?: : .*)?$", inspect.getdoc(value).partition("Attributes\n----------\n")[2], re.MULTILINE
            )
            known = [field for line in fields for field in line.split(", ")] or ["trajectory", "n_rows", "place"]
            lines.append(f"class {name}({value.__base__.__name__}):\n" + "\n".join(f"    {field}: Any" for field in known))
        else:
            lines.append(_function(name, value, shared))
    return "\n".join(lines) + "\n"


def _function(name, function, shared):
    """A line of the stub; shared: types of parameters, for those that a docstring refers to another one for."""
    types, parts, starred = shared | _parameters(inspect.getdoc(function)), [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind == parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        kind = types.get(parameter.name, "Any") if not mark else "Any"
        if parameter.default is None and kind != "Any" and not kind.endswith("None"):
            kind += " | None"
        parts.append(f"{mark}{parameter.name}: {kind}" + (" = ..." if parameter.default is not parameter.empty else ""))
    return f"def {name}({', '.join(parts)}) -> {_returned(inspect.getdoc(function))}: ..."


def _parameters(text):
    """{parameter: type} of a docstring."""
    result = {}
    for line in text.partition("Parameters\n----------\n")[2].partition("\n\n")[0].splitlines():
        head, separator, phrase = line.partition(" : ")
        if separator and not line.startswith(" "):
            result |= dict.fromkeys(head.replace("*", "").split(", "), _type(phrase))
    return result


def _type(phrase):
    if re.match(r'[\d"]', phrase):
        return "str" if phrase[0] == '"' else "int"
    found = []
    for piece in re.split(r",? or |, (?=[a-z(])", re.sub(r"\([^()]*\)", "", phrase)):
        found += [kind for word, kind in _TYPES if re.search(word, piece)][:1] or (["None"] if piece in ("optional", "None") else [])
    return " | ".join(dict.fromkeys(found)) if set(found) - {"None"} else "Any"


def _returned(text):
    first = text.partition("Returns\n-------\n")[2].partition("\n")[0]
    plain = next((kind for kind in _PLAIN if first.startswith(kind)), None)
    return {"numpy.ndarray": "np.ndarray", "callable": "Callable[..., Any]", "dict": "dict[str, Any]"}.get(plain, plain or "Any")


if __name__ == "__main__":
    STUB.write_text(stub())
