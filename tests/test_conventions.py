"""Rules of the project that a machine can check."""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path

import pytest

import nsds
from nsds.collision.kinds import SHAPES
from nsds.model.laws import LAWS
from nsds.model.system_kinds import FIRST_ORDER, LAGRANGIAN, NEWTON_EULER, RELATIONS
from nsds.schemes.first_order import tables as first_order
from nsds.schemes.lagrangian import tables as lagrangian
from nsds.schemes.rigid import tables as rigid
from nsds.schemes.table import SCHEMES
from tests.kernels import SOURCES, kernels, last_name, nodes, nodes_of, text_of
from tests.paths import ROOT

ALLOCATORS = {"zeros", "empty", "ones", "full", "array", "arange", "copy", "concatenate", "zeros_like", "empty_like", "linspace"}


def names(path):
    return path.relative_to(ROOT).as_posix()


def test_numba_is_configured_in_one_place():
    for path in SOURCES:
        if path.parent.name != "_jit":
            assert not re.findall(r"\b(njit|cfunc|vectorize|guvectorize|stencil|intrinsic|prange)\b\(?", text_of(path)), names(path)


def test_kernels_neither_raise_nor_print_nor_allocate():
    wrong = [f"{names(path)}: {node.name}: {what}" for path, node in kernels() for what in broken_rules(path, node)]
    assert not wrong, "\n".join(wrong)


@cache
def _lines(path):
    return text_of(path).splitlines()


def broken_rules(path, node):
    if node.args.defaults:
        yield "default arguments"
    if not ast.get_docstring(node) and not node.name.startswith("_"):
        yield "no docstring"
    lines = _lines(path)[node.lineno : node.end_lineno]
    if sum(not line.lstrip().startswith("#") for line in lines) > 75:
        yield "longer than a screen, without the comments that name its stages"
    for inner in nodes_of(node):
        if isinstance(inner, (ast.Raise, ast.Assert, ast.Try, ast.ListComp, ast.Lambda)):
            yield type(inner).__name__
        if isinstance(inner, ast.Call) and last_name(inner) in ALLOCATORS | {"print"}:
            yield last_name(inner)
        if isinstance(inner, ast.While) and inner.orelse:
            yield "else of a loop"


def has_long_tuple(node):
    """True where more than six names are unpacked from one value: what travels together has named fields."""
    return any(
        isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Tuple) and len(inner.targets[0].elts) > 6
        and not isinstance(inner.value, ast.Tuple)
        for inner in nodes_of(node)
    )  # fmt: skip


def has_numbered_option(node):
    """True where an option is read by its number."""
    return any(
        isinstance(inner, ast.Subscript) and last_name(inner.value).endswith("options") and isinstance(inner.slice, ast.Constant)
        and isinstance(inner.slice.value, int)
        for inner in nodes_of(node)
    )  # fmt: skip


def test_what_travels_has_names():
    assert not {names(path) for path, node in kernels() if has_long_tuple(node)}
    assert not {names(path) for path, node in kernels() if has_numbered_option(node)}


# Functions of the package with more positional arguments than so many: values stand for what travels together. These may only become fewer.
WITH_MORE_ARGUMENTS = {8: 146, 12: 10}


def test_what_travels_together_is_one_argument():
    functions = [node for path in SOURCES for node in nodes(path) if isinstance(node, ast.FunctionDef)]
    counts = [len(node.args.posonlyargs) + len(node.args.args) for node in functions]
    for many, most in WITH_MORE_ARGUMENTS.items():
        assert sum(count > many for count in counts) <= most, many


def test_every_folder_of_the_package_is_installed():
    listed = set(
        re.findall(r'"(nsds[\w.]*)"', re.search(r"packages = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL).group(1))
    )
    folders = {path.parent.relative_to(ROOT).parts for path in SOURCES if path.name == "__init__.py"}
    assert listed == {".".join(parts if parts[0] == "nsds" else ("nsds", *parts)) for parts in folders}


def test_each_name_in_the_walk_of_a_step_is_defined_in_one_place():
    """``a.b.f`` is the function or class f, or one of its methods, of the file a/b.py; files are there."""
    found = re.findall(r"`([\w./]+)`", (ROOT / "docs" / "architecture.md").read_text())
    dotted = [name for name in found if re.match(r"(nsds|schemes|solvers)\.", name) and name != "nsds.simulate"]
    assert len(dotted) > 40
    for name in dotted:
        module, _, function = name.rpartition(".")
        source = (ROOT / module.replace(".", "/")).with_suffix(".py").read_text()
        assert len(re.findall(rf"^(?:def|class) {function}\b", source, re.MULTILINE)) == 1, name
    assert all((ROOT / name).exists() for name in found if "/" in name)


def imported(path):
    for node in nodes(path):
        yield from named_by(node)


def named_by(node):
    """Modules, and names in them, that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        yield node.module or ""
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)


def test_imports_run_one_way():
    """Records know nothing of solvers and schemes, solvers nothing of records; only the public face and what stands above runs know all."""
    for path in SOURCES:
        assert_imports_run_one_way(path)


def assert_imports_run_one_way(path):
    folder = path.relative_to(ROOT).parts[0]
    if path.name in ("__init__.py", "__main__.py", "build_kernels.py", "io.py") and folder == "nsds":
        return
    modules = set(imported(path))
    assert not any(module.startswith(".") for module in modules)
    inside = {module.split(".")[1] for module in modules if module.startswith("nsds.")}
    if folder == "nsds" and not {"examples", "analysis"} & set(path.parts):
        assert not inside & {"solvers", "schemes"}
    if folder == "solvers":
        assert inside <= {"_jit", "_checks", "maths", "status", "solvers"}


def test_modules_of_the_package_are_imported_at_the_top():
    """A module that another one may not import at its top stands in a circle of imports."""
    for path in SOURCES:
        for function in nodes(path):
            if isinstance(function, ast.FunctionDef):
                inside = [name for node in ast.walk(function) if isinstance(node, (ast.Import, ast.ImportFrom)) for name in named_by(node)]
                assert not [name for name in inside if name.split(".")[0] in ("nsds", "schemes", "solvers")], (names(path), function.name)


# What modules of `schemes/` and `solvers/` import of the others there: only what stands on a floor below, or on theirs in the same folder.
FLOORS = {
    "schemes": (
        ("linear_algebra", "derivatives", "memory", "sides", "declared"),
        ("compressed",),
        ("problem",),
        ("lagrangian", "first_order"),
        ("rigid",),
        ("mechanics",),
        ("event_driven",),
        ("table",),
        ("options", "recorder"),
        ("run",),
    ),
    "solvers": (
        ("workspaces", "results"),
        ("box",),
        ("contact",),
        ("bodies", "impact", "nonlinear"),
        ("table",),
        ("faces",),
        ("problems",),
    ),
}


def test_folders_import_what_is_below():
    for path in SOURCES:
        if path.relative_to(ROOT).parts[0] in FLOORS:
            assert_imports_what_is_below(path)


def assert_imports_what_is_below(path):
    house = path.relative_to(ROOT).parts[0]
    floor = {name: number for number, names in enumerate(FLOORS[house]) for name in names}
    own = path.relative_to(ROOT / house).with_suffix("").parts[0]
    if own == "__init__":
        return
    others = {module.split(".")[2] for module in imported(path) if module.startswith(f"nsds.{house}.")} - {own}
    assert all(floor[other] < floor[own] for other in others), (names(path), sorted(others))


def test_forms_of_laws_are_known_by_their_properties():
    """Nobody but the table of laws asks for a form by its name: a new form is a row of `nsds.model.laws.FORMS`."""
    own = ROOT / "nsds" / "model" / "laws.py"
    for path in SOURCES:
        asked = [node for node in nodes(path) if isinstance(node, ast.Attribute) and node.attr == "form" and is_law(node.value)]
        assert path == own or not asked, (names(path), [node.lineno for node in asked])


def is_law(node):
    """Whether an expression is a row of `LAWS`, by its name."""
    return "law" in ast.unparse(node).lower()


@pytest.mark.parametrize("name", [n for n in nsds.__all__ if inspect.isfunction(getattr(nsds, n))])
def test_public_functions_are_documented(name):
    function = getattr(nsds, name)
    text = inspect.getdoc(function)
    assert ">>>" in text
    if inspect.signature(function).parameters and name != "advice":
        assert "Parameters\n----------" in text


# Everyday words in place of the field's terms: padding, again or restart, active constraints, disabled, text, checked, workspace.
VAGUE = (
    r"\b(left over|(be)?g[iu]ns? anew|anew|what is (held|not there)|what follows from each other|by the way|in words|looked at|desks?)\b"
)
HEADLESS = r"(What|Of|Where|Who|How|That|Those)\b"


def docstrings(path):
    described = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return [ast.get_docstring(node) or "" for node in nodes(path) if isinstance(node, described)]


def comments(path):
    with open(path, "rb") as file:
        return [token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]


def test_prose_has_the_terms_of_the_field():
    """The head of a docstring is a noun phrase, an imperative or "Whether ..." of a predicate."""
    for path in SOURCES:
        if path.parent.name != "_jit":
            said = docstrings(path)
            assert not [text for text in said if re.match(HEADLESS, text)], names(path)
            if re.search(VAGUE, text_of(path), re.IGNORECASE):  # else none of its comments, each a part of a line, has such words
                said += comments(path)
            assert not [text for text in said if re.search(VAGUE, text, re.IGNORECASE)], names(path)


def test_no_machine_paths():
    for folder, below, files in os.walk(ROOT):
        below[:] = set(below) - {".git", ".venv"}
        for path in (Path(folder, name) for name in files):
            if path.suffix in (".py", ".md", ".toml", ".yml", ".ipynb") and path.name != "test_conventions.py":
                assert not re.search(r"/(work|root|home)/\w", path.read_text()), path


def test_sources_are_named():
    """Every key that is cited is on the page of sources."""
    known = set(re.findall(r"^\| \[(\w+)\] \|", (ROOT / "docs" / "sources.md").read_text(), re.MULTILINE))
    texts = [text_of(path) for path in SOURCES]
    cited = [key for text in texts for key in re.findall(r"\[([A-Z][A-Za-z]+[a-z])\](?=,? (?:eqs?\b|chapters?\b|\d))", text)]
    assert len(cited) > 50
    assert set(cited) <= known
    assert not any(re.search(r"\bseeds? \d{3}\b", text) for text in texts)


@pytest.mark.parametrize("name", ["joints", "plotting", "rotations", "shapes", "examples", "solvers", "analysis", "laws", "status"])
def test_public_modules_are_imported_from_the_face(name):
    assert importlib.import_module(f"nsds.{name}") is getattr(nsds, name)


def test_what_few_programs_need_is_not_imported_with_the_package():
    late = (
        "matplotlib scipy.sparse scipy.spatial h5py nsds.examples nsds.circuits.record nsds.analysis.orbits "
        "nsds.schemes.event_driven.linear_modes"
    )
    ask = f"import sys, nsds; print([name for name in {late.split()} if name in sys.modules], nsds.examples.bouncing_ball()['t'])"
    found = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.split() == ["[]", "0.0"]


@pytest.mark.parametrize("table", [LAWS, RELATIONS, SCHEMES], ids=["laws", "relations", "schemes"])
def test_what_is_stated_is_on_the_face(table):
    assert set(table) - {"joint"} <= set(nsds.__all__)


def test_every_shape_has_a_constructor():
    assert set(SHAPES) <= set(vars(nsds.shapes))


def test_solids_are_known_by_their_rows():
    """Nobody but the table of shapes asks for such kinds by name: a new one is a row there, and kernels of its pairs."""
    for path in SOURCES:
        if not path.is_relative_to(ROOT / "solvers") and path.name != "kinds.py":
            assert not re.findall(r"\b(CAPSULE|CYLINDER|CONE|STADIUM|DISK)\b", text_of(path)), names(path)


@pytest.mark.parametrize("relation", RELATIONS)
def test_functions_of_a_relation_are_read_in_all_its_families(relation):
    columns = {LAGRANGIAN: lagrangian.RELATION, FIRST_ORDER: first_order.RELATION, NEWTON_EULER: rigid.INTERACTION}
    for family in RELATIONS[relation].families:
        assert {f"{field}_function" for field in RELATIONS[relation].functions} <= set(columns[family].names)
