"""Compilation: once for all models, never stale."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

COUNT_COMPILATIONS = """
import sys
import numpy as np, scipy.sparse as sp, nsds
from numba.core.dispatcher import Dispatcher

def pull(t, z, out):
    out[0] = t

def push(t, z, out):
    out[0] = -z[0]

rel = nsds.lagrangian_linear_relation
models = [
    nsds.examples.bouncing_ball(),
    nsds.system(a=nsds.lagrangian_linear(M=sp.eye_array(4), K=np.eye(4), C=np.ones(4), fext=pull, q=np.zeros(4), v=np.zeros(4))),
    nsds.system(b=nsds.lagrangian_linear(M=2.0, fext=push, z=[1.0], q=np.arange(5.0), v=0.0, count=5),
                c=nsds.interaction(rel(H=[[-1.0, 1.0]], b=[1.0], D=[[0.1]]), nsds.newton_impact(0.5), on=("b[:-1]", "b[1:]")),
                j=nsds.interaction(rel(H=[[1.0]]), nsds.equality(), on="b[0]")),
]

def compiled():
    # Compilations so far of every kernel of the package, for as many combinations of argument types.
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "nsds"]
    kernels = {x for module in modules for x in vars(module).values() if isinstance(x, Dispatcher)}
    return {kernel.__name__: len(kernel.signatures) for kernel in kernels | set(simulation._marches.values())}

def use(model):
    for solver in ("auto", "lemke"):
        nsds.simulate(model, t_end=0.1, h=0.01, solver=solver)
        nsds.simulate(model, t_end=0.1, h=0.01, solver=solver, fields=[], save_every=3)

from nsds.schemes import simulation
use(models[0])
first = compiled()
assert first["_march_template_moreau_jean_linear"] == 1, first
for model in models[1:] + [np.repeat(models[2], 3)]:
    use(model)
    assert compiled() == first, (first, compiled())

def f(t, x, z, out):
    out[0] = -x[0] ** 3

def g(t, x, lam, z, out):
    out[0] = lam[0] * x[0]

def h(t, x, lam, z, out):
    out[0] = x[0] + lam[0]

lcs = nsds.linear_complementarity_system
linear = [
    lcs([[-1.0]], [[1.0]], [[1.0]], [[1.0]], x=[-1.0]),
    lcs(-np.ones(3), np.eye(3), np.eye(3), x=np.ones(3), law=nsds.relay()),
    lcs(sp.csr_array(-np.eye(4)), np.eye(4)[:, :1], np.eye(4)[:1], x=np.ones(4), e=pull),
]
newton = [
    nsds.system(p=nsds.first_order(f, x=[1.0])),
    nsds.system(p=nsds.first_order(f, x=np.ones((3, 1)), count=3),
                r=nsds.interaction(nsds.first_order_relation(h, g, m=1), nsds.relay(), on="p")),
]
for models in (linear, newton):
    use(models[0])
    use(models[-1])  # with functions
    first = compiled()
    for model in [*models, np.repeat(models[-1], 3)]:
        use(model)
        assert compiled() == first, (first, compiled())
assert first["_march_template_euler_moreau_linear"] == first["_march_template_euler_moreau_newton"] == 1, first
print("once")
"""


def run(code, cwd=ROOT, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_no_kernel_is_compiled_twice_for_different_models():
    result = run(COUNT_COMPILATIONS)
    assert result.stdout.startswith("once"), result.stderr


USE_A_CALLEE = "import nsds; print(nsds.solvers.solve_lcp([[2.0]], [-1.0], 'pgs', on_failure='continue').w[0])"


@pytest.fixture
def copy_of_the_package(tmp_path):
    """The package as an installation lays it out."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "nsds", tmp_path / "nsds", ignore=ignore)
    for part in ("solvers", "schemes"):
        shutil.copytree(ROOT / part, tmp_path / "nsds" / part, ignore=ignore)
    return tmp_path


def test_a_caller_follows_an_edited_callee_in_another_module(copy_of_the_package):
    """numba alone would go on with the old callee: it looks at the caller's file only."""
    cache = {"NUMBA_CACHE_DIR": str(copy_of_the_package / "cache")}
    before = run(USE_A_CALLEE, copy_of_the_package, **cache)
    assert before.stdout.strip() == "0.0", before.stderr
    callee = copy_of_the_package / "nsds" / "solvers" / "signature.py"
    source = callee.read_text()
    assert source.count("        w[i] = s\n        noise") == 1
    callee.write_text(source.replace("        w[i] = s\n        noise", "        w[i] = s + 0.5\n        noise"))
    assert run(USE_A_CALLEE, copy_of_the_package, **cache).stdout.strip() == "0.5"


def test_the_second_process_finds_everything_compiled(copy_of_the_package):
    cache = {"NUMBA_CACHE_DIR": str(copy_of_the_package / "cache")}
    first = run(USE_A_CALLEE, copy_of_the_package, **cache)
    assert first.returncode == 0, first.stderr
    files = {path: path.stat().st_mtime_ns for path in (copy_of_the_package / "cache").rglob("*.nbc")}
    assert files
    run(USE_A_CALLEE, copy_of_the_package, **cache)
    assert files == {path: path.stat().st_mtime_ns for path in (copy_of_the_package / "cache").rglob("*.nbc")}


def test_the_first_compilation_is_announced_and_only_that(tmp_path):
    follower = "import nsds; nsds.simulate(nsds.examples.cam_follower(), t_end=0.1, h=0.01)"  # its force calls a kernel of its own
    first, second = (run(follower, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert "compiling kernels" in first.stderr
    assert "fall_back" not in first.stderr
    assert second.stderr == ""
    hard = "import nsds; print(nsds.solvers.solve_lcp([[0.0, -1.0], [1.0, 0.0]], [1.0, -1.0]).method)"  # compiles what is rarely needed
    first, second = (run(hard, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert (first.stdout, second.stdout) == ("auto: lemke\n",) * 2
    assert "compiling fall_back" in first.stderr
    assert second.stderr == ""


def test_import_does_not_compile_and_a_read_only_home_is_no_obstacle(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = run("import nsds; print(nsds.__version__)", NUMBA_CACHE_DIR=str(blocked / "below"))
    assert result.returncode == 0, result.stderr
