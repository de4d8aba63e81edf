"""Which lines of the kernels run as plain Python: each statement of a kernel marks itself before it runs.

A tracer, which the interpreter asks at every line, makes kernels two and a half times as slow.
"""

import ast
import builtins
import sys
from importlib.machinery import SourceFileLoader

from tests.kernels import SOURCES, kernels_of

_FILES = {str(path) for path in SOURCES}
_places = []  # (path, line) of what is marked
_ran = bytearray()  # of each, whether it did


class _Finder:
    """Modules of the package are found as ever."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not cls)
        spec = next((spec for spec in others if spec is not None), None)
        if spec is not None and spec.origin in _FILES:
            spec.loader = _Loader(name, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    """Their kernels are compiled with marks."""

    def get_code(self, fullname):
        tree, found = kernels_of(self.get_data(self.path).decode())
        for block in [block for node in found for block in _blocks(node)]:
            block[:] = [line for node in block for line in (*self._marks(node), node)]
        return compile(tree, self.path, "exec", dont_inherit=True)

    def _marks(self, node):
        if _is_run(node):
            yield ast.increment_lineno(ast.parse(f"__reached__[{len(_places)}] = 1").body[0], node.lineno - 1)
            _places.append((self.path, node.lineno))
            _ran.append(0)


def _blocks(node):
    """Every list of statements of a function, its own and those inside it."""
    for inner in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(inner, name, None)
            if isinstance(block, list):
                yield block


def _is_run(node):
    return not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))  # as a docstring


def statements(node):
    """Lines of the statements of a kernel."""
    return {one.lineno for block in _blocks(node) for one in block if _is_run(one)}


def mark():
    """From here on modules of the package are imported with marks."""
    builtins.__reached__ = _ran
    sys.meta_path.insert(0, _Finder)


def reached():
    """(path, line) of every statement of a kernel that ran since then."""
    return [place for place, ran in zip(_places, _ran, strict=True) if ran]
