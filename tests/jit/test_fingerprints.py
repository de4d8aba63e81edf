"""A kernel has one fingerprint, in every process and whatever that has done before: with another one it is never found compiled.

Of its module the fingerprint has what the kernel looks up there, and nothing else.
"""

import json
import os
import subprocess
import sys
import types

from nsds._jit import cache

FINGERPRINTS = """
import json, nsds
from nsds import build_kernels
from nsds._jit import cache
kernels = sorted(build_kernels.kernels(), key=lambda kernel: (kernel.py_func.__module__, kernel.py_func.__qualname__))[::ORDER]
print(json.dumps(sorted((kernel.py_func.__qualname__, cache.fingerprint(kernel, cache._known)) for kernel in kernels)))
"""
RUN = "import nsds; nsds.simulate(nsds.examples.cam_follower(), t_end=0.01, h=1e-3)"


def fingerprints(before, seed, order):
    environment, program = {**os.environ, "PYTHONHASHSEED": seed}, before + FINGERPRINTS.replace("ORDER", order)
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def test_fingerprints_are_those_of_any_process():
    """In any order, too: what is known of one kernel is used for the next."""
    first, second = fingerprints("", "1", "1"), fingerprints(RUN, "2", "-1")
    assert len(first) > 1000
    assert [one for one, other in zip(first, second, strict=True) if one != other] == []


def read(names, text):
    """Fingerprint of a function with this text in a module that has these names."""
    module = {"__name__": "somewhere", **names}
    exec(text, module)
    return cache.fingerprint(module["function"], {})


def test_a_field_is_no_function_of_the_same_name():
    text = "def function(row):\n    return row.step + size + sum(row.fields[i] for i in range(n))"
    names = {"size": 1, "n": 2}
    first = read(names, text)
    assert read({**names, "step": read, "fields": 3}, text) == first
    assert read({**names, "size": 2}, text) != first
    assert read({**names, "n": 3}, text) != first  # of the function within


def test_of_a_module_only_what_is_looked_up_on_it_counts():
    """Also where something else has an attribute of that name."""
    text = "def function(row):\n    return row.step + tools.size + tools.more.rest(row)"
    more = types.ModuleType("more")
    more.rest = 1
    tools = types.ModuleType("tools")
    vars(tools).update(size=1, step=1, more=more)
    first = read({"tools": tools}, text)
    tools.step = 2
    assert read({"tools": tools}, text) == first
    tools.size = 2
    second = read({"tools": tools}, text)
    assert second != first
    more.rest = 2
    assert read({"tools": tools}, text) != second


def test_a_function_may_read_any_number_of_names():
    names = {f"name_{i}": i for i in range(700)}
    text = f"def function():\n    return {' + '.join(names)}"
    first = read(names, text)
    assert all(read({**names, f"name_{i}": -1}, text) != first for i in (0, 127, 128, 255, 256, 511, 512, 699))
