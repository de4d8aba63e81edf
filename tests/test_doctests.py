"""The examples in the docstrings run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import nsds
import nsds.collision
import nsds.schemes

PACKAGES = (nsds, nsds.collision, nsds.examples, nsds.schemes, nsds.solvers, nsds.solvers.contact)
MODULES = sorted({p.__name__ for p in PACKAGES} | {f"{p.__name__}.{m.name}" for p in PACKAGES for m in pkgutil.iter_modules(p.__path__)})


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_docstring_examples(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
