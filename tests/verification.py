"""The page of the documentation that says what is tested, made from the tests: ``python -m tests.verification`` writes it anew."""

import ast

from tests.paths import ROOT

PAGE = ROOT / "docs" / "verification.md"
# Sections in the order of the page, and the folders of tests in each: a folder that is missing here is an error.
SECTIONS = {
    "All features together": ".",
    "Models and records": "model",
    "Steps of all schemes": "schemes schemes/problem schemes/run",
    "Lagrangian systems": "schemes/lagrangian",
    "Rigid bodies": "schemes/rigid",
    "Shapes and contacts": "collision",
    "First-order systems": "schemes/first_order",
    "Circuits": "circuits",
    "Event-driven motions": "schemes/event_driven",
    "One-step problems": "solvers solvers/box solvers/contact solvers/bodies solvers/impact solvers/nonlinear solvers/problems",
    "Analysis": "analysis",
    "Results and pictures": "results pictures",
    "Examples": "examples",
    "Linear algebra and compilation": "maths jit benchmarks",
}
_HEAD = """# Verification

Each row is a file of tests, what it tests and how: definitions of the laws, closed forms, published results, orders of convergence, plain
NumPy twins of the kernels; none compares with an earlier run of this package. Comparisons with collections of reference trajectories are
marked `reference` and run where these are at hand; checkpoint values of them, with their sources, are in the tests that always run. The
page is made from the tests.
"""


def page():
    """Text of the page."""
    used = {folder for folders in SECTIONS.values() for folder in folders.split()}
    left = {str(path.parent.relative_to(ROOT / "tests")) for path in (ROOT / "tests").rglob("test_*.py")} - used
    if left:
        raise ValueError(f"tests/verification.py: no section has {', '.join(sorted(left))}")
    parts = [_HEAD.rstrip("\n")]
    for title, folders in SECTIONS.items():
        parts += [f"\n## {title}\n", "| tests | what they show |", "|---|---|"]
        for path in (path for folder in folders.split() for path in sorted((ROOT / "tests" / folder).glob("test_*.py"))):
            parts.append(f"| `{path.relative_to(ROOT / 'tests')}` | {_said_of(path)} |")
    return "\n".join([*parts, ""])


def _said_of(path):
    """First paragraph of what a file of tests says of itself."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).split("\n\n")[0]
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
