"""Types of the public functions, for editors and type checkers, from what docstrings say: ``python -m tests.stubs`` writes them.

They stand in a stub: annotations in the sources would be one more place to state types, and evaluated in each import. With ``--inner`` it
writes those of all other modules, too, which are not committed: wheels of a release take them along.
"""

import argparse
import inspect
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np

import nsds
from nsds.build_kernels import modules as all_modules
from tests.paths import ROOT

_IMPORTS = (  # those that a stub uses
    ("collections.abc", ("Callable", "Iterator", "Sequence")), ("os", ("PathLike",)),
    ("typing", ("Any", "NamedTuple")), ("", ("np",)), ("matplotlib.axes", ("Axes",)), ("matplotlib.figure", ("Figure",)),
    ("numpy.typing", ("ArrayLike",)),
)  # fmt: skip
_TITLE = '"""Types of {}. Made from the docstrings by ``python -m tests.stubs``."""'
GROUPS = ("analysis", "io", "laws", "relations", "schemes")
# What stands in the type of a parameter -> its type; the first that a phrase contains counts.
_TYPES = (
    (r"sequence of str\b", "Sequence[str]"), (r"(sequence|list) of\b", "Sequence[Any]"), (r"\bdict\b", "dict[str, Any]"),
    (r"^shape\b", "dict[str, Any]"),
    (r"\bfunctions?\b", "Callable[..., Any]"), ("map from", "Any"), ("array_like", "ArrayLike"), (r"numpy\.ndarray", "np.ndarray"),
    (r"numpy\.void", "np.void"), (r"scipy\.sparse", "Any"), (r"\bfloat\b", "float"), (r"\bint\b", "int"), (r"\bbool\b", "bool"),
    (r"\b[Pp]ath\b", "PathLike[str]"), (r"\bstr\b|\"", "str"), (r"\bcallable\b", "Callable[..., Any]"), (r"^sequence$", "Sequence[Any]"),
    (r"^pair\b", "Sequence[Any]"), (r"\bslice\b", "slice"), (r"matplotlib axes", "Axes"), (r"^ndarray\b", "np.ndarray"),
)  # fmt: skip
# Names that mean the same in all functions, for docstrings that leave it at that.
_EVERYWHERE = {
    name: kind
    for kind, names in (
        ("str", "on_failure name"), ("str | np.ndarray", "method solver"), ("np.ndarray", "scheme system trajectory out"), ("Axes", "ax"),
        ("bool", "progress"), ("Callable[..., Any]", "callback"), ("Sequence[Callable[..., Any]]", "functions"),
        ("int", "status max_iter newton_max_iter max_rounds n_periods n_u count save_every callback_every"),
        ("float", "tol h t_end period newton_tol constraint_tol theta gamma elev azim fps speed inches dpi height rpm angle"),
        ("float | ArrayLike", "mu_r"),
        ("ArrayLike", "W M H q b u v x z f z0 r0 t_eval q_star metric stiffness exponent lower upper box position"),
    )
    for name in names.split()
}  # fmt: skip
_OF_ERRORS = {
    "trajectory": "np.ndarray",
    "step": "int",
    "t": "float",
    "status": "int",
    "residual": "float",
    "cause": "str",
    "n_rows": "int",
}
_OF_KERNELS = dict.fromkeys("pqwxRnm", "np.ndarray") | {"out": "np.ndarray"}  # arrays that kernels take
_FIELDS = {np.ndarray: "np.ndarray", int: "int", float: "float", str: "str", bool: "bool", list: "list[Any]", dict: "dict[str, Any]"}
_PROPERTIES = {"success": "bool", "message": "str", "residual": "float", "n_contacts": "int", "d": "int", "tangents": "int"}
_PLAIN = (
    "numpy.ndarray",
    "ndarray",
    "numpy.void",
    "bool",
    "float",
    "int",
    "str",
    "dict",
    "callable",
    "matplotlib axes",
    "matplotlib figure",
)
_NAMES = {"numpy.ndarray": "np.ndarray", "ndarray": "np.ndarray", "numpy.void": "np.void", "callable": "Callable[..., Any]"}
_NAMES |= {"dict": "dict[str, Any]", "matplotlib figure": "Figure"}
# matplotlib types ax.figure as Figure or SubFigure, and then refuses ax.figure.savefig(...)
_NAMES["matplotlib axes"] = "Any"
# What functions return whose docstring says it in its first line.
_RETURNED = {
    "advice": "str", "consistent": "np.ndarray", "in_plane": "tuple[np.ndarray, np.ndarray]", "lagrangian_modal": "dict[str, Any]",
    "report": "None", "restart": "np.ndarray", "cam_motion": "tuple[float, float, float]", "figure": "tuple[Figure, Any]",
     "values": "np.ndarray", "normalise": "float", "turned": "np.ndarray", "turned_back": "np.ndarray",
    "methods": "dict[str, str]", "solver": "np.ndarray", "write_fclib": "None", "circuit_rlcd_energies": "dict[str, np.ndarray]",
    "hopper_apex": "float", "solve_fc2d": "ContactSolution", "solve_rfc2d": "ContactSolution", "solve_gfc2d": "GlobalContactSolution",
    "solve_grfc3d": "GlobalContactSolution",
}  # fmt: skip


def stubs():
    """{path of a stub: its text}: of the package, and of its public modules where users import them from."""
    modules = {name: getattr(nsds, name) for name in nsds.__all__ if inspect.ismodule(getattr(nsds, name))}
    files = {ROOT / "nsds" / "__init__.pyi": _text(nsds, modules)}
    for name, module in modules.items():
        is_package = Path(module.__file__).name == "__init__.py"
        path = Path(module.__file__).with_suffix(".pyi") if is_package else ROOT / "nsds" / f"{name}.pyi"
        files[path] = _group(module) if name in GROUPS else _text(module)
    return files


def inner():
    """{path of a stub: its text} of modules that users do not import from: what they define, and what a package brings together."""
    public, files = stubs().keys(), {}
    for module in all_modules():
        path = Path(module.__file__).with_suffix(".pyi")
        names = [name for name, value in vars(module).items() if not name.startswith("_") and _is_of(module, name, value)]
        if path not in public and names and "._" not in module.__name__:
            files[path] = _text(module, names=names)
    return files


def _is_of(module, name, value):
    """Whether a name is defined in a module: functions and classes there, constants in capitals."""
    value = getattr(value, "py_func", value)
    return name.isupper() if not hasattr(value, "__qualname__") else value.__module__ == module.__name__


def _group(module):
    """Text of the stub of a group: its names are those of the package."""
    imports = [f"from nsds import {name} as {name}" for name in module.__all__]
    return "\n".join([_TITLE.format("a group of names of the package"), *imports, _exported(module)]) + "\n"


def _exported(module):
    return f"__all__ = [{', '.join(map(repr, module.__all__))}]"


def _agreed(functions):
    """{parameter: type} of those that have one type wherever these functions tell it."""
    told = [pair for function in functions for pair in _parameters(inspect.getdoc(function)).items()]
    told = [(name, kind.removesuffix(" | None")) for name, kind in told]  # a default that is None says so itself
    return {name: kind for name, kind in told if all(other == kind for same, other in told if same == name)}


def _text(module, modules=(), names=None):
    """Text of the stub of a module with its public names, or with these."""
    values = {name: getattr(module, name) for name in names or module.__all__ if name not in modules}
    shared = _EVERYWHERE | _agreed([value for value in values.values() if inspect.isfunction(value)])
    lines = [f"from nsds import {name} as {name}" for name in modules]
    lines += [] if names else [_exported(module)]
    lines += ["__version__: str"] * bool(modules)
    for name, value in values.items():
        if inspect.isclass(value):
            lines.append(_class(name, value))
        elif not callable(getattr(value, "py_func", value)) and type(value) is not dict:
            lines.append(f"{name}: {_FIELDS.get(type(value), 'Any')}")
        elif isinstance(value, dict):
            key, kind = (_FIELDS.get(type(one), "Any") for one in next(iter(value.items())))
            lines.append(f"{name}: dict[{key}, {kind}]")
        else:
            lines.append(_function(name, getattr(value, "py_func", value), _OF_KERNELS if module is nsds.rotations else shared))
    # classes of results that are no names of the module itself
    text = "\n".join(lines) + "\n"
    inner = {
        f"from {cls.__module__} import {cls.__name__}"
        for cls in map(_class_returned, values.values())
        if cls and cls.__name__ not in values
    }
    used = [(place, [name for name in names if re.search(rf"(?<!\.)\b{name}\b", text)]) for place, names in _IMPORTS]
    imports = [f"from {place} import {', '.join(names)}" if place else "import numpy as np" for place, names in used if names]
    inner |= {
        f"from {value.__base__.__module__} import {value.__base__.__name__}"
        for value in values.values()
        if inspect.isclass(value) and value.__base__.__module__.startswith("nsds") and value.__base__.__name__ not in values
    }
    title = _TITLE.format("the package" if modules else "an inner module" if names else "a public module")
    return "\n".join([title, *imports, *lines[: len(modules)], *sorted(inner), *lines[len(modules) :]]) + "\n"


def _class_returned(function):
    """The class of the package that a function returns, as its docstring says."""
    first = (inspect.getdoc(function) or "").partition("Returns\n-------\n")[2].partition("\n")[0].split(" of ")[-1]
    found = getattr(sys.modules[function.__module__], first, None) if inspect.isfunction(function) and first.isidentifier() else None
    return found if inspect.isclass(found) else None


def _field(kind):
    """Type of a field of a named tuple from its annotation."""
    if isinstance(kind, types.UnionType):
        return " | ".join("None" if one is type(None) else _field(one) for one in kind.__args__)
    return _FIELDS.get(kind, "Any")


def _class(name, value):
    """Lines of a class: its fields and what it does."""
    if hasattr(value, "_fields"):  # a named tuple, whose children may have more fields than it: each is stated as a whole
        kinds = {field: kind for base in reversed(value.__mro__) for field, kind in getattr(base, "__annotations__", {}).items()}
        fields = [f"{field}: {_field(kinds.get(field))}" + (" = ..." if field in value._field_defaults else "") for field in value._fields]
        base = "NamedTuple"
    elif issubclass(value, BaseException):  # keeps what it is made of
        fields = [f"{field}: {_OF_ERRORS.get(field, 'Any')}" for field in list(inspect.signature(value).parameters)]
        base = _base(value)
    else:
        told = re.findall(r"^(\w+(?:, \w+)*)(?: : (.*))?$", inspect.getdoc(value).partition("Attributes\n----------\n")[2], re.MULTILINE)
        fields = [f"{field}: {_type(phrase)}" for line, phrase in told for field in line.split(", ")]
        base = _base(value)
    members = {key: item for one in reversed(value.__mro__[:-1]) if one.__module__.startswith("nsds") for key, item in vars(one).items()}
    for key, item in members.items():
        if isinstance(item, property):
            fields.append(f"@property\n    def {key}(self) -> {_PROPERTIES.get(key, 'Any')}: ...")
        elif inspect.isfunction(item) and (not key.startswith("_") or key == "__init__"):
            types = _OF_ERRORS | _parameters(inspect.getdoc(value)) if key == "__init__" else {}
            fields.append(_function(key, item, types).replace("-> Any", "-> None") if key == "__init__" else _function(key, item, types))
    return f"class {name}({base}):\n".replace("(object)", "") + "\n".join(f"    {field}" for field in fields or ["..."])


def _base(value):
    """Name of the class that a class is made from."""
    package = value.__base__.__module__.partition(".")[0]
    return ("np." if package == "numpy" else "") + value.__base__.__name__


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
        if type(parameter.default) is int and not re.search("int|float|Array|Any", kind):
            kind = "int"  # a name that means something else here
        if parameter.default is None and kind != "Any" and not kind.endswith("None"):
            kind += " | None"
        parts.append(f"{mark}{parameter.name}: {kind}" + (" = ..." if parameter.default is not parameter.empty else ""))
    return f"def {name}({', '.join(parts)}) -> {_returned(name, function)}: ..."


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
        found += [kind for word, kind in _TYPES if re.search(word, piece)][:1] or (["None"] if piece == "None" else [])
    return " | ".join(dict.fromkeys(found)) if set(found) - {"None"} else "Any"


def _returned(name, function):
    """Type of what a function returns: as its docstring says, else as functions of its module do."""
    text = inspect.getdoc(function) or ""
    first = text.partition("Returns\n-------\n")[2].partition("\n")[0]
    plain = next((kind for kind in _PLAIN if first.startswith(kind)), None)
    if plain:
        return _NAMES.get(plain, plain)
    if cls := _class_returned(function):
        return f"Iterator[{cls.__name__}]" if first.startswith("iterator") else cls.__name__
    if name in _RETURNED:
        return _RETURNED[name]
    if name in nsds.laws.__all__ or name in nsds.relations.__all__:
        return "dict[str, Any]"
    return "None" if "out" in inspect.signature(function).parameters else "Any"


def main():
    """Write the stubs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inner", action="store_true", help="of all modules, for a wheel")
    written = inner() if parser.parse_args().inner else stubs()
    for path, text in written.items():
        path.write_text(text)
    for command in (["check", "--select", "I", "--fix"], ["format"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, "--quiet", *map(str, written)], check=True)


if __name__ == "__main__":
    main()
