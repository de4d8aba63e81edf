"""The examples in the docstrings run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import nsds
from nsds import schemes, solvers

MODULES = ["nsds", *(m.name for p in (nsds, schemes, solvers) for m in pkgutil.walk_packages(p.__path__, f"{p.__name__}."))]


@pytest.mark.parametrize("name", [name for name in sorted({*MODULES}) if not name.endswith("__main__")])
def test_docstring_examples(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
