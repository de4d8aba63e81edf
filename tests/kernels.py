"""Where kernels are in the sources: functions that are decorated, and templates that are compiled under other names."""

import ast

from tests.paths import ROOT

SOURCES = [path for folder in ("nsds", "solvers", "schemes") for path in sorted((ROOT / folder).rglob("*.py"))]
DECORATORS = {"kernel", "inlined", "tiny", "parallel", "threaded"}


def last_name(node):
    """The last part of the name that is called or read."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def kernels():
    """(path, function) of every function that is compiled."""
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        templates = {
            call.args[0].id
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and last_name(call) == "specialised" and isinstance(call.args[0], ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (
                node.name in templates or any(last_name(decorator) in DECORATORS for decorator in node.decorator_list)
            ):
                yield path, node
