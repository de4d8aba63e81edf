"""Rules of the project that a machine can check."""

import ast
import inspect
import re

import pytest

import nsds
from tests.paths import ROOT

SOURCES = [path for folder in ("nsds", "solvers", "schemes") for path in sorted((ROOT / folder).rglob("*.py"))]
KERNEL_DECORATORS = {"kernel", "inlined", "tiny", "parallel", "threaded"}
ALLOCATORS = {"zeros", "empty", "ones", "full", "array", "arange", "copy", "concatenate", "zeros_like", "empty_like", "linspace"}


def names(path):
    return path.relative_to(ROOT).as_posix()


def last_name(node):
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def kernels():
    """Every function that is compiled, with the file it is in; the template of the time loop counts too."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and (
                any(last_name(d) in KERNEL_DECORATORS for d in node.decorator_list) or node.name == "_march_template"
            ):
                yield pytest.param(path, node, id=f"{names(path)}:{node.name}")


@pytest.mark.parametrize("path", SOURCES, ids=names)
def test_numba_is_configured_in_one_place(path):
    if path.parent.name != "_jit":
        found = re.findall(r"\b(njit|jit|cfunc|vectorize|guvectorize|stencil|intrinsic|prange)\b\(?", path.read_text())
        assert not [word for word in found if word not in ("jit",)]


@pytest.mark.parametrize(("path", "node"), list(kernels()))
def test_kernels_neither_raise_nor_print_nor_allocate(path, node):
    assert not node.args.defaults
    assert ast.get_docstring(node) or node.name.startswith("_")
    assert node.end_lineno - node.lineno <= 75, "a kernel fits a screen"
    for inner in ast.walk(node):
        assert not isinstance(inner, (ast.Raise, ast.Assert, ast.Try, ast.ListComp, ast.Lambda))
        if isinstance(inner, ast.Call):
            assert last_name(inner) not in ALLOCATORS | {"print"}
        if isinstance(inner, ast.While):
            assert inner.orelse == []


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", SOURCES, ids=names)
def test_imports_run_one_way(path):
    """Records know nothing of solvers and schemes, solvers nothing of records; only the public face knows all."""
    folder = path.relative_to(ROOT).parts[0]
    if path.name in ("__init__.py", "__main__.py") and folder == "nsds":
        return
    modules = set(imported(path))
    assert not any(module.startswith(".") for module in modules)
    inside = {module.split(".")[1] for module in modules if module.startswith("nsds.")}
    if folder == "nsds" and "examples" not in path.parts:
        assert not inside & {"solvers", "schemes"}
    if folder == "solvers":
        assert inside <= {"_jit", "_checks", "maths", "status", "solvers"}


@pytest.mark.parametrize("name", [n for n in nsds.__all__ if inspect.isfunction(getattr(nsds, n))])
def test_public_functions_are_documented(name):
    function = getattr(nsds, name)
    text = inspect.getdoc(function)
    assert ">>>" in text
    if inspect.signature(function).parameters and name != "advice":
        assert "Parameters\n----------" in text


def test_no_machine_paths():
    for path in ROOT.rglob("*"):
        if path.suffix in (".py", ".md", ".toml", ".yml", ".ipynb") and not {".git", ".venv"} & set(path.parts):
            assert not re.search(r"/(work|root|home)/\w", path.read_text()) or path.name == "test_conventions.py", path


def test_sources_are_named():
    """Every key that is cited is on the page of sources."""
    known = set(re.findall(r"^\| \[(\w+)\] \|", (ROOT / "docs" / "sources.md").read_text(), re.MULTILINE))
    texts = [path.read_text() for path in SOURCES]
    cited = [key for text in texts for key in re.findall(r"\[([A-Z][A-Za-z]+[a-z])\](?=,? (?:eqs?\b|chapters?\b|\d))", text)]
    assert len(cited) > 50
    assert set(cited) <= known
    assert not any(re.search(r"\bseeds? \d{3}\b", text) for text in texts)
