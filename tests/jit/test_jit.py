"""Compilation: once for all models, never stale."""

import math
import os
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest
from numba import float64
from numba import types as nb_types
from numba.core.types.functions import BaseFunction

from nsds._jit import cache, callback, caller, calls, compiler, kernel, on_demand, shipped, tiny
from nsds._jit.cache import FOLDER, fingerprint
from tests.jit.part import part_of_the_package
from tests.paths import ROOT

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
    kernels |= set(simulation._marches.values())
    return {(kernel.__module__, kernel.__name__): len(kernel.signatures) for kernel in kernels}

def compiled_again(first):
    # What is compiled on demand may come for the first time.
    return {name: n for name, n in compiled().items() if first.get(name, 0) not in (0, n)}

def use(model):
    for solver in ("auto", "lemke"):
        nsds.simulate(model, t_end=0.1, h=0.01, solver=solver)
        nsds.simulate(model, t_end=0.1, h=0.01, solver=solver, fields=[], save_every=3)

from nsds.schemes.run import simulation
use(models[0])
first = compiled()
assert [len(march.signatures) for march in simulation._marches.values()] == [1], simulation._marches
for model in models[1:] + [np.repeat(models[2], 3)]:
    use(model)
    assert not compiled_again(first), compiled_again(first)
    first = compiled()

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
        assert not compiled_again(first), compiled_again(first)
        first = compiled()
assert [len(march.signatures) for march in simulation._marches.values()] == [1, 1, 1], simulation._marches
print("once")
"""


def run(code, cwd=ROOT, **environment):
    """A process; with a cache of its own, it does without shipped kernels."""
    if "NUMBA_CACHE_DIR" in environment:
        environment[shipped.SWITCH] = "0"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_no_kernel_is_compiled_twice_for_different_models():
    result = run(COUNT_COMPILATIONS)
    assert result.stdout.startswith("once"), result.stderr


def edit(path, old, new):
    """Replace the first occurrence."""
    source = path.read_text()
    assert old in source
    path.write_text(source.replace(old, new, 1))


USE_A_CALLEE = "import numpy as np, nsds; out = np.zeros(4); nsds.rotations.exp_quaternion(np.zeros(3), out); print(out[0])"


@pytest.fixture
def copy_of_the_package(tmp_path):
    """The package as an installation lays it out, with its bytecode: to read the sources anew takes longer than most tests."""
    for part, place in (("nsds", "nsds"), ("solvers", "nsds/solvers"), ("schemes", "nsds/schemes")):
        shutil.copytree(ROOT / part, tmp_path / place, ignore=shutil.ignore_patterns("*.nbk"))
    return tmp_path


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    return part_of_the_package(ROOT / "nsds", tmp_path_factory.mktemp("part"))


@pytest.fixture
def copy_of_the_part(tmp_path):
    """In another folder, to be changed."""
    return part_of_the_package(ROOT / "nsds", tmp_path)


@pytest.fixture(scope="module")
def compiled_once(part, tmp_path_factory):
    """A cache with the caller, its callee and nothing else."""
    folder = tmp_path_factory.mktemp("compiled")
    first = run(USE_A_CALLEE, part, NUMBA_CACHE_DIR=str(folder))
    assert first.stdout.strip() == "1.0", first.stderr
    return folder


@pytest.fixture
def cache_of_a_callee(compiled_once, tmp_path):
    """A copy of it, to be written into."""
    return shutil.copytree(compiled_once, tmp_path / "cache")


def test_a_caller_follows_an_edited_callee_in_another_module(copy_of_the_part, cache_of_a_callee):
    """numba alone would go on with the old callee: it looks at the caller's file only."""
    where = {"NUMBA_CACHE_DIR": str(cache_of_a_callee)}
    before = run(USE_A_CALLEE, copy_of_the_part, **where)
    assert before.stdout.strip() == "1.0", before.stderr
    edit(copy_of_the_part / "nsds" / "maths" / "vectors.py", "+ a[2] * b[2]\n", "+ a[2] * b[2] + 4.0\n")
    assert float(run(USE_A_CALLEE, copy_of_the_part, **where).stdout) == math.cos(1.0)


def test_the_second_process_finds_everything_compiled(copy_of_the_part, cache_of_a_callee):
    """Also in another folder than the first."""
    files = {path: path.stat().st_ino for path in cache_of_a_callee.rglob("*.nbc")}
    assert files
    second = run(USE_A_CALLEE, copy_of_the_part, NUMBA_CACHE_DIR=str(cache_of_a_callee))
    assert second.returncode == 0, second.stderr
    assert files == {path: path.stat().st_ino for path in cache_of_a_callee.rglob("*.nbc")}


@pytest.mark.skipif(cache.fcntl is None, reason="this system locks no bytes of files")
def test_one_of_several_processes_compiles_a_kernel(part, tmp_path):
    """While the others wait for its code; one that has stopped, or a folder without locks, costs time alone."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), shipped.SWITCH: "0"}
    running = [subprocess.Popen([sys.executable, "-c", USE_A_CALLEE], cwd=part, env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate()[0] for process in running] == 2 * [b"1.0\n"]
    kernels = [path.name.rpartition("-")[0] for path in tmp_path.rglob("*.nbc")]
    assert len(kernels) == len(set(kernels)) > 0


@pytest.mark.skipif(cache.fcntl is None, reason="this system locks no bytes of files")
def test_no_kernel_waits_for_ever(tmp_path, monkeypatch):
    """Another process has all locks, and does not end."""
    monkeypatch.setattr(cache, "_PATIENCE", 0.05)
    monkeypatch.setattr(cache, "_locks", lambda: locks)
    with open(tmp_path / "locks", "w") as locks:
        holder = "import fcntl, sys; file = open('locks', 'w'); fcntl.lockf(file, fcntl.LOCK_EX); print(1, flush=True); sys.stdin.read()"
        process = subprocess.Popen([sys.executable, "-c", holder], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"1\n"
        cache._end_turn(cache._begin_turn("a kernel"))
        process.communicate()


def test_cached_kernels_and_functions_run_without_what_numba_compiles_with():
    """Which takes as long to load as all the rest."""
    program = """
import sys, nsds

def pull(t, z, out):
    out[0] = -z[0] * t

system = nsds.system(ball=nsds.lagrangian_linear(M=[1.0], q=[1.0], v=[0.0], z=[9.0], fext=pull),
                     floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.5), on="ball"))
print(nsds.simulate(system, t_end=1.0, h=0.01)["ball"]["q"].tobytes().hex()[-64:], "numba.np.arraymath" in sys.modules)
"""
    first, second = run(program), run(program)
    assert second.stdout.split() == [first.stdout.split()[0], "False"], first.stderr + second.stderr


def test_cached_functions_of_users_follow_what_they_read(tmp_path):
    """A number of their module, a function that they call, and what another function closes over."""
    source = """
import numba
gain = {gain}
def tuned(power):
    def push(t, z, out):
        out[0] = shape(gain * t) ** power
    return push
@numba.njit
def shape(x):
    return x + {offset}
"""
    program = """
import importlib, pathlib, nsds, forces
for text, power in CASES:
    pathlib.Path(forces.__file__).write_text(text)
    importlib.reload(forces)
    system = nsds.system(mass=nsds.lagrangian_linear(M=[1.0], q=[0.0], v=[0.0], fext=forces.tuned(power)))
    print(nsds.simulate(system, t_end=1.0, h=0.5, scheme=nsds.moreau_jean(theta=1.0))["mass"]["v"][-1, 0])
"""
    # velocities 0.5 ((2 0.5 + 1) + (2 1 + 1)), and with another number, function and power
    values = {(2.0, 1.0, 1): "2.5", (4.0, 1.0, 1): "4.0", (2.0, 0.0, 1): "1.5", (2.0, 1.0, 2): "6.5"}
    (tmp_path / "forces.py").write_text(source.format(gain=1.0, offset=0.0))
    for cases in (list(values), [*values][::-1]):  # a process for each order, and the first case once more
        cases.append(cases[0])
        texts = [(source.format(gain=gain, offset=offset), power) for gain, offset, power in cases]
        done = run(program.replace("CASES", repr(texts)), PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
        assert done.stdout.split() == [values[case] for case in cases], done.stderr


def test_a_function_that_calls_itself_is_compiled_in_every_process():
    """numba finds it within one process only; what calls it was found in the cache again, and ended the process."""
    program = """
import numba
import nsds

@numba.njit
def factorial(n):
    return 1.0 if n <= 1.0 else n * factorial(n - 1.0)

def push(t, z, out):
    out[0] = factorial(z[0])

mass = nsds.system(mass=nsds.lagrangian_linear(M=[1.0], q=[0.0], v=[0.0], z=[4.0], fext=push))
print(nsds.simulate(mass, t_end=1.0, h=0.5)["mass"]["v"][-1, 0])
"""
    first, second = run(program), run(program)
    assert first.stdout == second.stdout == "24.0\n", first.stderr + second.stderr


SHORT_MARCH = """
import nsds
nsds.simulate(nsds.examples.cam_follower(), t_end=0.1, h=0.01, scheme=nsds.moreau_jean_direct_projection())
"""


@pytest.mark.parametrize(
    ("program", "printed", "what"),
    [
        # whose force calls a kernel of its own, and whose march is short
        (SHORT_MARCH, "", "kernels"),
        # what is rarely needed
        ("import nsds; print(nsds.solvers.solve_lcp([[0.0, -1.0], [1.0, 0.0]], [1.0, -1.0]).method)", "auto: lemke\n", "fall_back"),
    ],
)
def test_the_first_compilation_is_announced_and_only_that(tmp_path, program, printed, what):
    """In the cache that all tests share, without the march or the method that is announced."""
    assert run(program).stdout == printed
    shutil.copytree(FOLDER, tmp_path / "nsds" / FOLDER.name, ignore=shutil.ignore_patterns("*_march_*", "*fall_back*", "*.tmp"))
    first, second = (run(program, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert (first.stdout, second.stdout) == (printed,) * 2
    assert first.stderr.startswith(f"nsds: compiling {what}")
    assert first.stderr.count("\n") == 1
    assert second.stderr == ""


def test_how_long_a_compilation_took_is_told_the_next_time(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cache, "FOLDER", tmp_path / "where nothing is kept")
    for _ in range(2):
        with cache.announced(_doubled, "twice"):
            pass
    first, second = capsys.readouterr().err.splitlines()
    assert first == "nsds: compiling twice, once for this version of the package ..."
    assert second == "nsds: compiling twice, once for this version of the package (0 s last time) ..."


FINGERPRINTS = """
import sys, nsds, nsds._jit.cache
from nsds.schemes.lagrangian import consistency, projection
from nsds.schemes.rigid import generalised_alpha, projection, rattle
from numba.core.dispatcher import Dispatcher
modules = [module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == "nsds"]
kernels = {id(x): x for module in modules for x in vars(module).values() if isinstance(x, Dispatcher)}
for kernel in kernels.values():
    print(kernel.__module__, kernel.__name__, nsds._jit.cache.fingerprint(kernel, nsds._jit.cache._known))
"""


def fingerprints(cwd=ROOT):
    result = run(FINGERPRINTS, cwd)
    assert result.returncode == 0, result.stderr
    return {tuple(line.split()[:2]): line.split()[2] for line in result.stdout.splitlines()}


@pytest.fixture(scope="module")
def fingerprints_here():
    """Those of the package itself, which another folder and another process share."""
    found = fingerprints()
    assert len(found) > 500
    return found


def test_fingerprints_follow_what_is_called_and_nothing_else(copy_of_the_package, fingerprints_here):
    """An edited kernel changes its own and those of its callers, also through a module; documentation and lines that move change none."""
    vectors = copy_of_the_package / "nsds" / "maths" / "vectors.py"  # which most kernels call
    vectors.write_text(vectors.read_text().replace('"""', '"""\n\nMore. ', 1).replace('    """', '    """In other words: '))
    edit(copy_of_the_package / "nsds" / "schemes" / "rigid" / "blocks.py", "PROXIMAL = ", "PROXIMAL = 2 * ")
    after = fingerprints(copy_of_the_package)
    assert after.keys() == fingerprints_here.keys()
    changed = {name for name, value in after.items() if value != fingerprints_here[name]}
    assert {name for _, name in changed} >= {"solve_with_matrix", "solve_by_sweeps", "solve", "step"}
    rigid = ("blocks", "problem", "moreau_jean", "projection", "generalised_alpha", "rattle", "consistency")
    allowed = (*(f"rigid.{module}" for module in rigid), "lagrangian.consistency", "lagrangian.projection")
    assert {module for module, _ in changed} < {f"nsds.schemes.{m}" for m in allowed}


COMPILED_FOR_A_BALL = """
import nsds
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    nsds.simulate(nsds.examples.bouncing_ball(), t_end=0.5, h=0.01)
print(len(recorder.buffer))
"""


def test_nothing_is_compiled_again_for_other_words_or_for_a_solver_that_is_not_called(copy_of_the_package, fingerprints_here):
    """A frictionless march, after all docstrings and lines of its modules have moved, and a kernel of all contact solvers has changed."""
    warm = run(COMPILED_FOR_A_BALL)  # in the cache that all tests share
    assert warm.returncode == 0, warm.stderr
    package = copy_of_the_package / "nsds"
    for folder in ("maths", "schemes/problem", "schemes/lagrangian", "schemes/run", "solvers/box"):
        for path in (package / folder).glob("[!_]*.py"):
            edit(path, '"""', '"""More.\n\n')
            if '    """' in path.read_text():
                edit(path, '    """', '    """In other words: ')
    edit(package / "solvers" / "contact" / "signature.py", " += ", " -= ")
    after = fingerprints(copy_of_the_package)
    assert after.keys() == fingerprints_here.keys()
    changed = {module for (module, name), value in after.items() if value != fingerprints_here[module, name]}
    assert changed >= {"nsds.solvers.contact.signature", "nsds.solvers.contact.nsgs"}
    untouched = ("nsds.maths", "nsds.solvers.box", "nsds.schemes.problem", "nsds.schemes.first_order")
    assert not any(module.startswith(untouched) for module in changed)
    assert run(COMPILED_FOR_A_BALL, copy_of_the_package).stdout.strip() == "0"


def test_users_fingerprints_follow_functions_called_through_a_module():
    helper = types.ModuleType("helper")
    exec("def f(x):\n    return 2 * x\ndef g(x):\n    return x", helper.__dict__)
    scope = {"helper": helper}
    exec("def force(t, z, out):\n    out[0] = helper.f(t)", scope)
    first = fingerprint(scope["force"], {})
    exec("def g(x):\n    return 3 * x", helper.__dict__)
    assert fingerprint(scope["force"], {}) == first
    exec("def f(x):\n    return 3 * x", helper.__dict__)
    assert fingerprint(scope["force"], {}) != first


def test_damaged_and_missing_files_of_the_cache_are_made_anew(part, tmp_path):
    """Also those that refer to them: nothing of what remains is linked to code that is not there."""
    where, program = {"cwd": part, "NUMBA_CACHE_DIR": str(tmp_path)}, A_PIECE + EARLY + LATE + LATEST
    assert run(program, **where).stdout.split() == ["2.0", "4.0", "6.0"]
    files = sorted(tmp_path.rglob("*.nbc"))
    assert len(files) > 8
    for i, path in enumerate(files):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        if i % 4 == 3:
            path.unlink()
        elif i % 4 != 2:
            path.write_bytes((b"", bytes(data))[i % 4])
    result = run(program, **where)
    assert result.stdout.split() == ["2.0", "4.0", "6.0"], result.stderr
    left = {path: path.read_bytes() for path in tmp_path.rglob("*.nbc")}
    assert left.keys() - set(files)  # but for what those that are whole have copied: nobody asks for that
    assert run(program, **where).stdout.split() == ["2.0", "4.0", "6.0"]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.nbc")} == left


COMPILED_ONCE = """
import numpy as np
from numba.core import event
from nsds._jit import kernel, tiny

@tiny
def short(x):
    return 2.0 * x[0]

@kernel
def long(x):
    for i in range(1, x.size):
REPEATED

@kernel
def caller(x):
    long(x)
    long(x)
    return short(x)

with event.install_recorder("numba:compile") as recorder:
    value = caller(np.ones(2))
module = next(iter(caller.overloads.values())).library._final_module
declared = [f.name for f in module.functions if f.is_declaration]
print(value, ["long" in " ".join(declared), "short" in " ".join(declared)], len(recorder.buffer) > 0)
""".replace(
    "REPEATED", 12 * "        x[i] = np.sin(x[i - 1]) + np.exp(x[i]) + np.cos(x[i]) + np.tan(x[i]) + np.tanh(x[i]) + np.sinh(x[i])\n"
)


def test_a_callee_is_not_compiled_again_with_its_caller(part, tmp_path):
    """Its code is referred to, that of tiny ones copied; a process that compiles nothing finds both."""
    first, second = (run(COMPILED_ONCE, part, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.stdout.strip() == "2.0 [True, False] True", first.stderr
    assert second.stdout.strip() == "2.0 [False, False] False", second.stderr


A_PIECE = """
import numpy as np
from nsds._jit import kernel, tiny

@kernel
def long(x):
    for i in range(1, x.size):
REPEATED

@tiny
def piece(x):
    long(x)
    return 2.0 * x[0]

""".replace(
    "REPEATED", 12 * "        x[i] = np.sin(x[i - 1]) + np.exp(x[i]) + np.cos(x[i]) + np.tan(x[i]) + np.tanh(x[i]) + np.sinh(x[i])\n"
)
EARLY = """
@kernel
def known_first(x):
    long(x)

@kernel
def early(x):
    return piece(x)

known_first(np.ones(2))
print(early(np.ones(2)))
"""
LATE = """
@kernel
def late(x):
    return piece(x) + piece(x)

print(late(np.ones(2)))
"""
LATEST = """
@kernel
def latest(x):
    return early(x) + late(x)

print(latest(np.ones(2)))
"""


def test_what_a_piece_calls_is_loaded_with_it(part, tmp_path):
    """Code that a piece shows to its callers is not in them where they do not copy it: they refer to it, in another process, too."""
    for callers, value in ((EARLY, "2.0"), (LATE, "4.0"), (LATE, "4.0")):
        found = run(A_PIECE + callers, part, NUMBA_CACHE_DIR=str(tmp_path))
        assert (found.returncode, found.stdout.strip()) == (0, value), found.stderr


DOORS = """
import numba
import numpy as np
from numba.core import event
from nsds._jit import kernel, tiny

@tiny
def doubled(x):
    return 2.0 * x

@kernel
def inner(x):
    for i in range(x.size):
        x[i] = doubled(x[i])
    return x[0]

@kernel
def outer(x):
    return inner(x) + doubled(1.0)

x = np.ones(3)
print(outer(x), end=" ")
for one, argument in ((doubled, 1.0), (inner, x)):
    one.compile((numba.typeof(argument),))
codes = [next(iter(one.overloads.values())) for one in (doubled, inner, outer)]
print(*(bool(code.library.get_pointer_to_function(code.fndesc.llvm_func_name)) for code in codes), end=" ")
print(*(code.library.get_pointer_to_function(code.fndesc.llvm_cpython_wrapper_name) for code in codes), end=" ")
with event.install_recorder("numba:compile") as recorder:
    print(doubled(3.0), inner(x), outer(x), *(len(one.overloads) for one in (doubled, inner, outer)), end=" ")
    print([data["dispatcher"].py_func.__name__ for data in (entry.data for _, entry in recorder.buffer if entry.is_start)])
"""


def test_python_comes_in_by_a_door(part, tmp_path):
    """What only kernels call has no code for Python, what they contain none at all, until Python calls them; then nothing is made anew."""
    first, second = (run(DOORS, part, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    results, doors = "4.0 False True True 0 0 0 6.0 4.0 10.0 1 1 1", "['<lambda>', '<lambda>']"
    assert first.stdout.strip() == f"{results} {doors}", first.stderr
    assert second.stdout.strip() == f"{results} []", second.stderr


def test_a_cache_that_cannot_be_written_is_read_and_told_of(part, cache_of_a_callee, tmp_path):
    """A full or read-only disk: what is there is used, the rest is compiled for this process only."""
    full = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); {USE_A_CALLEE}"
    warm, cold = (run(full, part, NUMBA_CACHE_DIR=str(folder)) for folder in (cache_of_a_callee, tmp_path / "other"))
    assert (warm.stdout, cold.stdout) == ("1.0\n",) * 2, warm.stderr + cold.stderr
    assert "cannot be kept" not in warm.stderr
    assert cold.stderr.count("cannot be kept") == 1


def test_import_does_not_compile_and_a_read_only_home_is_no_obstacle(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = run("import nsds; print(nsds.__version__)", NUMBA_CACHE_DIR=str(blocked / "below"))
    assert result.returncode == 0, result.stderr


SYMBOLS = """
import os
import numba
import numpy as np
from numba.core.caching import NullCache
from nsds._jit import kernel

@kernel
def first(rows):
    return rows[0].a

def compiled():
    first._cache = NullCache()
    first.compile((numba.typeof(np.zeros(1, [("a", np.int32)])),))
    return first.overloads[first.signatures[0]].fndesc.mangled_name

child = os.fork()
if child:
    os.waitpid(child, 0)
print(compiled(), flush=True)
os._exit(0)
"""


def test_no_two_processes_give_a_function_the_same_symbol(tmp_path):
    """Kernels that were compiled apart are linked together when they come out of the cache."""
    printed = []
    for k in range(2):
        script = tmp_path / f"symbols{k}.py"
        script.write_text(SYMBOLS)
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        printed += done.stdout.split()
    assert len(printed) == len(set(printed)) == 4, printed


def _doubled(x):
    return 2.0 * x


def test_numba_would_find_the_signatures_that_are_remembered(monkeypatch):
    """And what implements them, for the flags of each function: kernels, pieces, and what users write."""
    monkeypatch.setattr(cache, "FOLDER", None)  # all is compiled here
    remembered, known = compiler._signature_of_call, []

    def checked(function, context, arguments, keywords):
        signature = remembered(function, context, arguments, keywords)
        implementation = function._impl_keys[signature.args]
        again = compiler._try_variants(function, context, arguments, keywords)
        assert (again, function._impl_keys[again.args]) == (signature, implementation)
        known.append((function, arguments))
        return signature

    monkeypatch.setattr(compiler, "_signature_of_call", checked)

    @tiny
    def piece(x, i):
        return max(x[i], 2.0) * math.sin(x[0])

    @kernel
    def whole(x):
        return piece(x, 0) + max(x[1], 2.0) * math.sin(x[0]) + min(x[0], x[1])

    def push(x, out):
        out[0] = max(x[0], 2.0) * math.sin(x[0])

    assert whole(np.ones(2)) == 4.0 * math.sin(1.0) + 1.0
    callback(nb_types.void(float64[::1], float64[::1]), push, "x, out", "x, out")
    assert len(known) > 2 * len(set(known))


def test_numbas_own_search_is_back_after_a_compilation():
    assert BaseFunction.get_call_type is compiler._try_variants


def test_code_on_demand_asks_python_once(monkeypatch):
    """Its address is a word of memory from then on: a callback in every step would cost more than the step, and hold up all threads."""
    asked, callback = [], calls.ctypes.CFUNCTYPE

    def counting(returned):
        return lambda function: callback(returned)(lambda: asked.append(function) or function())

    monkeypatch.setattr(calls.ctypes, "CFUNCTYPE", counting)
    signature = float64(float64)
    call, address_of_doubled = caller(signature), on_demand(signature, kernel(_doubled))

    @kernel
    def many_times(n):
        x = 1.0
        for _ in range(n):
            x = call(address_of_doubled(), (x,))
        return x

    assert many_times(10) == 1024.0
    assert many_times(3) == 8.0
    assert len(asked) == 1


FIRST_CALLED_BY_THREADS = """
import cProfile, pstats, numpy as np, nsds
from nsds.analysis.tangent_run import Carried
from nsds.schemes.run import cores
cores.cores = lambda: 2
run = Carried("test", np.repeat(nsds.examples.cam_follower(rpm=700.0), 64), 60 / 700, n_columns=0)
run.advance(1)
profile = cProfile.Profile()
profile.enable()
run.advance(1)
profile.disable()
print([place for place in pstats.Stats(profile).stats if "numba" in place[0]])
"""


def test_kernels_that_threads_called_first_are_called_without_numba():
    """Types that two threads number at once have two numbers, and no call finds the compiled code but by way of Python, for 12 ms."""
    assert run(FIRST_CALLED_BY_THREADS).stdout == "[]\n"
