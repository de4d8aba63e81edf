"""The documentation: its programs run, its tables name what there is, and every public name is in its reference."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys

import matplotlib as mpl
import pytest

import nsds
from nsds._docstrings import with_sections
from nsds.status import ADVICE
from tests import stubs
from tests.paths import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not {"generated", "_build"} & set(path.parts))


def generator():
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def programs(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def pages_with_programs():
    """A page is one program, but each section of the page of tasks is one of its own."""
    for path in [*PAGES, ROOT / "README.md"]:
        if path.name == "how_to.md":
            sections = re.split(r"^## ", path.read_text(), flags=re.MULTILINE)[1:]
            yield from (pytest.param(section, id=section.splitlines()[0]) for section in sections)
        elif programs(path.read_text()):
            yield pytest.param(path.read_text(), id=path.name)


@pytest.mark.parametrize("text", list(pages_with_programs()))
def test_programs_run(text, tmp_path, monkeypatch):
    for module in re.findall(r"^import (jax)$", "\n".join(programs(text)), re.MULTILINE):
        pytest.importorskip(module, reason="an example for those who have it, which nsds does not need")
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "program.py"  # of a file: users' functions are compiled from their source
    source.write_text("\n".join(programs(text)))
    exec(compile(source.read_text(), str(source), "exec"), {"__name__": "program"})


def test_tasks_are_short():
    for section in re.split(r"^## ", (DOCS / "how_to.md").read_text(), flags=re.MULTILINE)[1:]:
        lines = [line for line in "\n".join(programs(section)).splitlines() if line.strip()]
        assert len(lines) < 30, section.splitlines()[0]


def test_every_public_name_is_in_the_reference():
    made = generator()
    pages = made._reference()
    told = {name for text in pages.values() for name in re.findall(r"^\.\. (?:auto)?(?:function|class):: (\w+)", text, re.MULTILINE)}
    assert set(nsds.__all__) - set(made.modules()) <= told
    for module in made.modules():
        value = getattr(nsds, module)
        assert set(made.public_names(value)) <= told, module
        assert all(inspect.getdoc(getattr(value, name)) for name in value.__all__), module
    index = (DOCS / "index.md").read_text()
    assert {page for page in pages if f"generated/reference/{page}\n" not in index} == set()
    assert all(f"notebooks/{path.stem}\n" in index for path in (ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("module", ["", *generator().modules()])
def test_completion_shows_what_is_public(module):
    value = getattr(nsds, module) if module else nsds
    assert {name for name in dir(value) if not name.startswith("_")} == set(value.__all__)


@pytest.mark.parametrize(("path", "text"), stubs.stubs().items(), ids=lambda value: getattr(value, "stem", ""))
def test_types_are_those_of_the_docstrings(path, text):
    """`python -m tests.stubs` was run after the last change of a signature; most parameters have a type."""
    made, kept = ast.parse(text), ast.parse(path.read_text())
    assert ast.dump(made) == ast.dump(kept)
    functions = [node for node in kept.body if isinstance(node, ast.FunctionDef)]
    typed = [ast.unparse(argument.annotation) != "Any" for node in functions for argument in [*node.args.args, *node.args.kwonlyargs]]
    assert path.stem == "rotations" or sum(typed) > 0.7 * len(typed)
    assert (ROOT / "nsds" / "py.typed").exists()


def test_shared_sections_are_where_they_belong():
    """In the order of numpydoc, and only where a docstring does not have its own."""

    @with_sections(Parameters="b : int\n    Last.", Returns="int", Raises="ValueError\n    Shared.")
    def one(a, b):
        """Head.

        Parameters
        ----------
        a : int
            First.

        Raises
        ------
        TypeError
            Own.

        Examples
        --------
        >>> 1
        1
        """

    sections = inspect.getdoc(one).split("\n\n")
    assert [section.partition("\n")[0] for section in sections] == ["Head.", "Parameters", "Returns", "Raises", "Examples"]
    assert sections[1].endswith("a : int\n    First.\nb : int\n    Last.")
    assert "Shared" not in sections[3]
    assert with_sections(Parameters="b : int\n    Other.")(one).__doc__.count("b : int") == 1


def test_statuses_are_told():
    text = generator()._statuses()
    assert all(f"| {code} |" in text and advice in text for code, advice in ADVICE.items())


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_names_in_pages_are_there(path):
    """`nsds.a.b` in a page is something that nsds has; a link leads to a page."""
    text = path.read_text()
    for name in set(re.findall(r"`nsds\.([\w.]+)[`(]", text)) if path.name != "architecture.md" else ():
        value = nsds
        for part in name.split("."):
            assert hasattr(value, part), f"{path.name}: nsds.{name}"
            value = getattr(value, part)
    for target in re.findall(r"\]\(((?!http)[^)#]+)", re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)):
        assert "generated" in target or (path.parent / target).exists(), f"{path.name}: {target}"


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md"], ids=lambda path: path.name)
def test_tests_and_examples_in_pages_are_there(path):
    text = path.read_text()
    known = {file.name for file in (ROOT / "tests").rglob("test_*.py")}
    assert set(re.findall(r"`(?:tests/\S*/)?(test_\w+\.py)`", text)) <= known
    assert set(re.findall(r"example `(\w+)`", text)) <= set(nsds.examples.EXAMPLES)


def test_a_checkout_that_is_not_installed_says_what_to_do():
    result = subprocess.run([sys.executable, "-S", "-c", "import nsds"], cwd=ROOT, capture_output=True, text=True)
    said = result.stderr.splitlines()[-1]
    assert f"pip install -e {ROOT}" in said
    assert "start Python in another folder" in said


def test_what_is_cited_is_what_is_released():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited.group(1) == nsds.__version__
