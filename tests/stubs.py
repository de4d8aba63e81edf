"""Types of the public functions, for editors and type checkers, from what docstrings say: ``python -m tests.stubs`` writes them.

They stand in a stub: annotations in the sources would be one more place to state types, and evaluated in each import.
"""

import inspect
import re
from pathlib import Path

import numpy as np

import nsds
from tests.paths import ROOT

_IMPORTS = (  # those that a stub uses
    ("collections.abc", ("Callable", "Sequence")), ("os", ("PathLike",)),
    ("typing", ("Any", "NamedTuple")), ("", ("np",)), ("numpy.typing", ("ArrayLike",)),
)  # fmt: skip
# What stands in the type of a parameter -> its type; the first that a phrase contains counts.
_TYPES = (
    (r"sequence of str\b", "Sequence[str]"), (r"(sequence|list) of\b", "Sequence[Any]"), (r"\bdict\b", "dict[str, Any]"),
    (r"^shape\b", "dict[str, Any]"),
    (r"\bfunctions?\b", "Callable[..., Any]"), ("map from", "Any"), ("array_like", "ArrayLike"), (r"numpy\.ndarray", "np.ndarray"),
    (r"numpy\.void", "np.void"), (r"scipy\.sparse", "Any"), (r"\bfloat\b", "float"), (r"\bint\b", "int"), (r"\bbool\b", "bool"),
    (r"\b[Pp]ath\b", "PathLike[str]"), (r"\bstr\b|\"", "str"),
)  # fmt: skip
_FIELDS = {np.ndarray: "np.ndarray", int: "int", float: "float", str: "str", bool: "bool", list: "list[Any]", dict: "dict[str, Any]"}
_PROPERTIES = {"success": "bool", "message": "str"}
_PLAIN = ("numpy.ndarray", "bool", "float", "int", "str", "dict", "callable")


def stubs():
    """{path of a stub: its text}: of the package, and of its public modules where users import them from."""
    modules = {name: getattr(nsds, name) for name in nsds.__all__ if inspect.ismodule(getattr(nsds, name))}
    files = {ROOT / "nsds" / "__init__.pyi": _text(nsds, modules)}
    for name, module in modules.items():
        is_package = Path(module.__file__).name == "__init__.py"
        path = Path(module.__file__).with_suffix(".pyi") if is_package else ROOT / "nsds" / f"{name}.pyi"
        files[path] = _text(module)
    return files


def _agreed(functions):
    """{parameter: type} of those that have one type wherever these functions tell it."""
    told = [pair for function in functions for pair in _parameters(inspect.getdoc(function)).items()]
    told = [(name, kind.removesuffix(" | None")) for name, kind in told]  # a default that is None says so itself
    return {name: kind for name, kind in told if all(other == kind for same, other in told if same == name)}


def _text(module, modules=()):
    """Text of the stub of a module."""
    values = {name: getattr(module, name) for name in module.__all__ if name not in modules}
    shared = _agreed([value for value in values.values() if inspect.isfunction(value)])
    lines = [f"from nsds import {name} as {name}" for name in modules] + ["__version__: str"] * bool(modules)
    for name, value in values.items():
        if inspect.isclass(value):
            lines.append(_class(name, value))
        elif isinstance(value, dict):
            lines.append(f"{name}: dict[str, Any]")
        else:
            lines.append(_function(name, getattr(value, "py_func", value), shared))
    text = "\n".join(lines) + "\n"
    used = [(place, [name for name in names if re.search(rf"\b{name}\b", text)]) for place, names in _IMPORTS]
    imports = [f"from {place} import {', '.join(names)}" if place else "import numpy as np" for place, names in used if names]
    what = "the package" if modules else "a public module"
    title = f'"""Types of {what}. Made from the docstrings by ``python -m tests.stubs``."""'
    return "\n".join([title, *imports, text])


def _class(name, value):
    """Lines of a class: its fields and what it does."""
    if hasattr(value, "_fields"):  # a named tuple, whose children may have more fields than it: each is stated as a whole
        kinds = {field: kind for base in reversed(value.__mro__) for field, kind in getattr(base, "__annotations__", {}).items()}
        fields = [
            f"{field}: {_FIELDS.get(kinds.get(field), 'Any')}" + (" = ..." if field in value._field_defaults else "")
            for field in value._fields
        ]
        base = "NamedTuple"
    else:
        told = re.findall(r"^(\w+(?:, \w+)*)(?: : .*)?$", inspect.getdoc(value).partition("Attributes\n----------\n")[2], re.MULTILINE)
        fields = [f"{field}: Any" for line in told for field in line.split(", ")]
        base = value.__base__.__name__
    members = {key: item for one in reversed(value.__mro__[:-1]) if one.__module__.startswith("nsds") for key, item in vars(one).items()}
    for key, item in members.items():
        if isinstance(item, property):
            fields.append(f"@property\n    def {key}(self) -> {_PROPERTIES.get(key, 'Any')}: ...")
        elif inspect.isfunction(item) and (not key.startswith("_") or (key == "__init__" and base == "object")):
            types = _parameters(inspect.getdoc(value)) if key == "__init__" else {}
            fields.append(_function(key, item, types).replace("-> Any", "-> None") if key == "__init__" else _function(key, item, types))
    return f"class {name}({base}):\n".replace("(object)", "") + "\n".join(f"    {field}" for field in fields or ["solution: Any"])


def _function(name, function, shared):
    """A line of the stub; shared: types of parameters, for those that a docstring refers to another one for."""
    text = inspect.getdoc(function) or ""
    types, parts, starred = shared | _parameters(text), [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            parts.append("self")
            continue
        if parameter.kind == parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        kind = types.get(parameter.name, "Any") if not mark else "Any"
        if parameter.default is None and kind != "Any" and not kind.endswith("None"):
            kind += " | None"
        parts.append(f"{mark}{parameter.name}: {kind}" + (" = ..." if parameter.default is not parameter.empty else ""))
    return f"def {name}({', '.join(parts)}) -> {_returned(text)}: ..."


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
    for path, text in stubs().items():
        path.write_text(text)
