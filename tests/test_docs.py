"""The documentation: its programs run, its tables name what there is, and every public name is in its reference."""

import ast
import base64
import builtins
import importlib.util
import inspect
import json
import re
import subprocess
import sys

import matplotlib as mpl
import pytest

import nsds
from nsds._docstrings import with_sections
from nsds.status import ADVICE
from tests import stubs, verification
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


PROGRAMS = [pytest.param(path.read_text(), id=path.stem) for path in [*PAGES, ROOT / "README.md"] if programs(path.read_text())]


@pytest.mark.parametrize("text", PROGRAMS)
def test_programs_run(text, tmp_path, monkeypatch):
    for module in re.findall(r"^import (jax)$", "\n".join(programs(text)), re.MULTILINE):
        pytest.importorskip(module, reason="an example for those who have it, which nsds does not need")
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "program.py"  # of a file: users' functions are compiled from their source
    source.write_text("\n".join(programs(text)))
    exec(compile(source.read_text(), str(source), "exec"), {"__name__": "program"})


@pytest.mark.parametrize("path", sorted((DOCS / "how_to").glob("*.md")), ids=lambda path: path.stem)
def test_a_task_is_a_short_page_of_its_own(path):
    lines = [line for line in "\n".join(programs(path.read_text())).splitlines() if line.strip()]
    assert 0 < len(lines) < 30 or path.stem == "have_kernels_compiled_ahead"  # commands of a shell
    assert f"how_to/{path.stem}\n" in (DOCS / "how_to.md").read_text()


def test_the_page_of_tests_is_that_of_the_tests():
    assert verification.PAGE.read_text(encoding="utf-8") == verification.page(), "python -m tests.verification writes it anew"


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
    """All of a module; of the package what is in no group, and the groups."""
    value = getattr(nsds, module) if module else nsds
    shown = {name for name in dir(value) if not name.startswith("_")}
    grouped = {name for group in (*generator().GROUPS, "status") for name in getattr(nsds, group).__all__} if not module else set()
    assert shown == set(value.__all__) - grouped
    assert module or len(shown) < 40


@pytest.mark.parametrize(("path", "text"), stubs.stubs().items(), ids=lambda value: getattr(value, "stem", ""))
def test_types_are_those_of_the_docstrings(path, text):
    """`python -m tests.stubs` was run after the last change of a signature; most parameters have a type."""
    made, kept = ast.parse(text), ast.parse(path.read_text())
    assert ast.dump(made) == ast.dump(kept)
    functions = [node for node in kept.body if isinstance(node, ast.FunctionDef)]
    typed = [ast.unparse(argument.annotation) != "Any" for node in functions for argument in [*node.args.args, *node.args.kwonlyargs]]
    assert sum(typed) >= 0.9 * len(typed)
    assert (ROOT / "nsds" / "py.typed").exists()


@pytest.mark.parametrize(("path", "text"), stubs.stubs().items(), ids=lambda value: getattr(value, "stem", ""))
def test_types_admit_none_where_functions_do(path, text):
    """A parameter that may be omitted may be None only if None is its default, or its docstring names it."""
    name = path.parent.name if path.stem == "__init__" else path.stem
    owner = getattr(nsds, name, nsds)
    for node in (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)):
        function = getattr(owner, node.name)
        parameters, told = inspect.signature(function).parameters, inspect.getdoc(function) or ""
        for argument in [*node.args.args, *node.args.kwonlyargs]:
            line = next((line for line in told.splitlines() if re.match(rf"(.*, )?{argument.arg}(,.*)? : ", line)), "")
            if "None" in ast.unparse(argument.annotation) and "None" not in line:
                assert parameters[argument.arg].default is None, f"{node.name}: {argument.arg}"


def test_types_of_inner_modules_name_only_what_is_known():
    """`python -m tests.stubs --inner` writes them for a wheel, beside the sources that have none."""
    found = stubs.inner()
    assert not found.keys() & stubs.stubs().keys()
    for path, text in found.items():
        assert path.with_suffix(".py").exists()
        tree = ast.parse(text)
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom | ast.Import)]
        imported = [alias.asname or alias.name for node in imports for alias in node.names]
        defined = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        assert read <= {*imported, *defined, *vars(builtins)}, path


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


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_show_what_they_compute(path):
    """Outputs are kept, with small pictures; `python -m tests.run_notebooks` compares them with new ones."""
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    pictures = [data for output in outputs for kind, data in output.get("data", {}).items() if kind.startswith("image")]
    assert all(cell["execution_count"] for cell in cells)
    assert pictures
    assert max(len(base64.b64decode("".join(data))) for data in pictures) <= 100_000
    assert not any(output["output_type"] == "error" for output in outputs)


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


def test_recipe_of_conda_is_that_of_the_package():
    """Dependencies, Python and build requirement; the version is read from the package."""
    project, recipe = (ROOT / "pyproject.toml").read_text(), (ROOT / "conda" / "meta.yaml").read_text()
    stated = [*re.findall(r'"([^"]+)"', re.search(r"^dependencies = \[(.*)\]", project, re.MULTILINE)[1])]
    stated += ["python" + re.search(r'^requires-python = "(.*)"', project, re.MULTILINE)[1]]
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    assert sorted(line.strip("- ").replace(" ", "") for line in run.splitlines()) == sorted(stated)
    assert re.search(r"setuptools>=\d+", project)[0] == re.search(r"setuptools >=\d+", recipe)[0].replace(" ", "")
    assert re.search(r"^description = (.*)$", project, re.MULTILINE)[1] == re.search(r"summary: (.*)$", recipe, re.MULTILINE)[1]


def test_what_is_cited_is_what_is_released():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited.group(1) == nsds.__version__
