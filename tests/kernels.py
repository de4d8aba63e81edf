"""Where kernels are in the sources: functions that are decorated, and templates that are compiled under other names."""

import ast
import re
from functools import cache

from tests.paths import ROOT

SOURCES = [path for folder in ("nsds", "solvers", "schemes") for path in sorted((ROOT / folder).rglob("*.py"))]
DECORATORS = {"kernel", "inlined", "tiny", "parallel", "threaded"}


def last_name(node):
    """The last part of the name that is called or read."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@cache
def kernels():
    """(path, function) of every function that is compiled, as a tuple."""
    return tuple((path, node) for path in SOURCES for node in kernels_of(path.read_text())[1])


def kernels_of(text):
    """(syntax tree, those of its functions that are compiled) of a source."""
    tree, found = ast.parse(text), []
    templates = set(re.findall(r"\bspecialised\(\s*(\w+)", text))
    waiting = tree.body[::-1]
    while waiting:
        node = waiting.pop()
        waiting += [inner for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.stmt)][::-1]
        if isinstance(node, ast.FunctionDef) and (
            node.name in templates or any(last_name(decorator) in DECORATORS for decorator in node.decorator_list)
        ):
            found.append(node)
    return tree, found
