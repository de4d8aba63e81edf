"""``python -m tests.without_compiler``: what runs with shipped kernels alone? Exit status 1 where a kernel of the package is compiled.

First steps of all examples, the programs of the pages, the notebooks. Only functions of users, and what tests define, may be compiled.
"""

import argparse
import json
import os
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

os.environ |= {"MPLBACKEND": "Agg"}

import nsds
from nsds._jit import cache
from tests.paths import ROOT
from tests.test_docs import PROGRAMS, programs


def forbid():
    """Have an error raised where a kernel of the package, or a call of a function that the package brings, is not found compiled."""
    find = cache.KernelCache.load_overload

    def found(self, signature, context):
        code = find(self, signature, context)
        function = self._function
        called = getattr(function, "__globals__", {}).get("function", function)  # of a callback, what it calls
        owner = getattr(called, "py_func", called).__module__
        if code is None and owner.partition(".")[0] == "nsds":
            raise AssertionError(f"{owner}.{called.__name__} is compiled, with {signature}")
        return code

    cache.KernelCache.load_overload = found


def all_programs():
    """(name, text or function) of all that is to run."""
    for name, example in nsds.examples.EXAMPLES.items():
        yield f"example {name}", lambda example=example: _first_steps(example)
    for one in PROGRAMS:
        yield f"page {one.id}", "\n".join(programs(one.values[0]))
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield f"notebook {path.stem}", "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def _first_steps(example):
    system, run = example.build(), dict(example.run)
    nsds.simulate(system, **run | {"t_end": float(system["t"].max()) + 3 * run["h"], "progress": False})


def _run(text):
    """Run a program of a file, as that is where messages find the lines of users' functions."""
    source = Path("program.py")
    source.write_text(text, encoding="utf-8")
    exec(compile(text, str(source.resolve()), "exec"), {"__name__": "__main__"})


def main():
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="programs whose name contains this")
    arguments = parser.parse_args()
    forbid()
    warnings.simplefilter("ignore")
    failed, lacking, n = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, program in all_programs():
            if arguments.only not in name:
                continue
            n += 1
            try:
                program() if callable(program) else _run(program)
            except ModuleNotFoundError as error:
                lacking.append(f"{name}: {error}")
            except Exception:
                failed.append(name)
                print(f"{name}:\n{traceback.format_exc(limit=-4)}", flush=True)
    print(f"{n - len(failed) - len(lacking)} of {n} programs ran without the compiler")
    print("".join([f"failed: {name}\n" for name in failed] + [f"skipped: {name}\n" for name in lacking]), end="")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
