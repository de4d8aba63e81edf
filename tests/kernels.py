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
def text_of(path):
    """The text of a file of the package."""
    return path.read_text()


@cache
def _analysed(path):
    return kernels_of(text_of(path))


@cache
def kernels():
    """(path, function) of every function that is compiled, as a tuple."""
    return tuple((path, node) for path in SOURCES for node in _analysed(path)[1])


@cache
def nodes(path):
    """All nodes of the syntax tree of a file of the package, as a tuple."""
    return nodes_of(_analysed(path)[0])


@cache
def nodes_of(node):
    """A node of a syntax tree and all below it, as a tuple."""
    return tuple(ast.walk(node))


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
