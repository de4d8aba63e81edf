"""Kernels that come with the package are found by fingerprint, and where they can't be used, kernels are compiled, which is said once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nsds import build_kernels
from nsds._jit import cache, shipped
from tests.jit.part import part_of_the_package
from tests.paths import ROOT

pytestmark = pytest.mark.skipif(shipped.BASELINE is None, reason="no baseline for this kind of processor")

USE = "import numpy as np, nsds; out = np.zeros(4); nsds.rotations.exp_quaternion(np.zeros(3), out); print(out[0])"
FOR_THE_BASELINE = {
    "NUMBA_CPU_NAME": str(shipped.BASELINE), "NUMBA_CPU_FEATURES": shipped.FEATURES, "NUMBA_DISABLE_INTEL_SVML": "1",
}  # fmt: skip
SHIP = """
from numba import float64, int64
from nsds.maths.cholesky import _multiply
_multiply.compile((int64, int64, int64, int64, float64[::1]))
from nsds._jit import cache, shipped
shipped.write(cache.CONFIGURATION.digest(), {name: (cache.FOLDER / name).read_bytes() for name in cache.used()})
"""


def start(package, home, code, environment=None):
    """A process in a folder with the package, with a user's cache in another."""
    unwanted = (*FOR_THE_BASELINE, shipped.SWITCH, "PYTHONDONTWRITEBYTECODE")
    names = {key: value for key, value in os.environ.items() if key not in unwanted}
    environment = {**names, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(home), **(environment or {})}
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=package, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(*arguments, **named):
    """(what a process printed, its messages); it has not failed."""
    process = start(*arguments, **named)
    printed, said = process.communicate()
    assert process.returncode == 0, said
    return printed.strip(), said


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """The package as an installation lays it out, with an archive of what `USE` needs."""
    folder, ignore = tmp_path_factory.mktemp("made"), shutil.ignore_patterns("*.nbk")
    shutil.copytree(ROOT / "nsds", folder / "package" / "nsds", ignore=ignore)
    for part in ("solvers", "schemes"):
        shutil.copytree(ROOT / part, folder / "package" / "nsds" / part, ignore=ignore)
    assert run(folder / "package", folder / "cache", USE + SHIP, environment=FOR_THE_BASELINE)[0] == "1.0"
    return folder / "package"


@pytest.fixture
def package(made_once, tmp_path):
    """A copy, to be changed, of what `USE` needs of it."""
    return part_of_the_package(made_once / "nsds", tmp_path / "package")


def archive(package):
    return package / "nsds" / "_jit" / shipped.path().name


def kept(home):
    """Names of files in a user's cache."""
    return sorted(path.name for path in Path(home).rglob("*.nbc"))


def assert_compiled(package, home, why, code=USE, **named):
    """The result is right, kernels are compiled and kept, and one line says why."""
    printed, said = run(package, home, code, **named)
    assert printed == "1.0"
    assert kept(home)
    assert said.startswith("nsds: shipped kernels are not used, ")
    assert why in said
    assert said.count("\n") == 1


def test_nothing_is_compiled_that_is_shipped(made_once, tmp_path):
    """By any of several processes at once; and the archive is read where it lies."""
    places = sorted(made_once.rglob("*.nbk"))
    running = [start(made_once, tmp_path, USE) for _ in range(3)]
    assert [process.communicate() for process in running] == 3 * [("1.0\n", "")]
    assert kept(tmp_path) == []
    assert sorted(made_once.rglob("*.nbk")) == places


def test_no_home_and_no_permission_to_write(made_once, tmp_path):
    """A package that nobody may write, and no place for a cache."""
    (tmp_path / "file").touch()
    assert run(made_once, tmp_path / "file" / "no folder", USE) == ("1.0", "")
    assert run(made_once, "", USE, environment={"HOME": "", "XDG_CACHE_HOME": ""}) == ("1.0", "")
    for path in (made_once, *made_once.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        assert run(made_once, tmp_path / "file" / "no folder", USE) == ("1.0", "")
    finally:
        for path in (made_once, *made_once.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)


def changed(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def begin_of_contents(data):
    """Behind mark, head and index."""
    behind = len(shipped._MAGIC) + shipped._HEAD.size
    return behind + shipped._HEAD.unpack(data[len(shipped._MAGIC) : behind])[2]


DAMAGES = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "without the end": lambda data: data[:-1],
    "without an index": lambda data: data[:20],
    "longer": lambda data: data + b"more",
    "foreign": lambda data: b"PK\3\4 of another program" * 1000,
    "of another format": lambda data: changed(data, 3),
    "index": lambda data: changed(data, 120),
    "contents": lambda data: changed(data, begin_of_contents(data) + 200),  # of the first file, what Python calls
}


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "contents"])  # which is seen when it is read
def test_damaged_archives_hold_nothing(made_once, tmp_path, monkeypatch, damage):
    place, whole = tmp_path / "archive", archive(made_once).read_bytes()
    monkeypatch.setattr(shipped, "path", lambda: place)
    monkeypatch.delenv(shipped.SWITCH, raising=False)
    place.write_bytes(whole)
    intact = shipped.Archive(cache.CONFIGURATION.digest())
    assert intact.why == ""
    place.write_bytes(DAMAGES[damage](whole))
    damaged = shipped.Archive(cache.CONFIGURATION.digest())
    assert damaged.why == f"{place} is damaged"
    names = [name for inside in intact._by_beginning.values() for name in inside]
    assert names
    assert not any(damaged.names(name[: name.rindex("-") + 1]) or damaged.read(name) for name in names)


@pytest.mark.parametrize("damage", ["truncated", "contents"])
def test_kernels_of_damaged_archives_are_compiled(package, tmp_path, damage):
    archive(package).write_bytes(DAMAGES[damage](archive(package).read_bytes()))
    assert_compiled(package, tmp_path / "cache", "is damaged")


def test_every_bit_counts(package, tmp_path):
    """Code is loaded only as it was written: bits that are flipped anywhere in the contents change no result."""
    whole = archive(package).read_bytes()
    begin = begin_of_contents(whole)
    for at in (begin, (begin + len(whole)) // 2, len(whole) - 1):
        archive(package).write_bytes(changed(whole, at))
        assert run(package, tmp_path / "cache", USE)[0] == "1.0"


def test_archives_of_another_numba(package, tmp_path):
    archive(package).rename(archive(package).with_name("kernels-numba_0.1.2-llvmlite_0.1.2-Python_3.9-linux_x86-64-v3.nbk"))
    assert_compiled(package, tmp_path / "cache", f"those in this package are not for numba {shipped.numba.__version__}")
    assert run(package, tmp_path / "cache", USE) == ("1.0", "")  # all is kept now: there is nothing to say


def test_archives_of_another_compiler_of_ours(package, tmp_path):
    source = package / "nsds" / "_jit" / "calls.py"
    source.write_text(source.read_text() + "\n# another\n")
    assert_compiled(package, tmp_path / "cache", "was made by another version of nsds._jit or with other settings")


@pytest.mark.skipif(shipped.BASELINE != "x86-64-v3", reason="the baseline is any processor")
def test_processors_below_the_baseline(package, tmp_path):
    """Told of the processor before the package is imported."""
    less = "from numba.core import codegen; codegen.get_host_cpu_features = lambda: '+sse4.2,+avx,-avx2,-fma'\n"
    assert_compiled(package, tmp_path / "cache", "this one lacks avx2, bmi", code=less + USE)


def test_an_edited_kernel_is_compiled_and_nothing_else(package, tmp_path):
    source = package / "nsds" / "maths" / "rotations.py"
    old = "    out[0] = cosine(x2)\n"
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, old[:-1] + " + 1.0\n", 1))
    assert run(package, tmp_path, USE) == ("2.0", "")
    assert all("exp_quaternion" in name or "lambda" in name for name in kept(tmp_path))


def test_shipped_kernels_may_be_refused(package, tmp_path):
    assert run(package, tmp_path, USE, environment={shipped.SWITCH: "0"}) == ("1.0", "")
    assert kept(tmp_path)


def test_checked_indices_are_never_those_that_are_shipped(package, tmp_path):
    assert run(package, tmp_path, USE, environment={"NUMBA_BOUNDSCHECK": "1"}) == ("1.0", "")
    assert kept(tmp_path)


USERS = """
import ctypes
import numpy as np
from numba import float64, types
from nsds._jit import callback
from nsds.maths.cholesky import _multiply

def product(out):
    _multiply(2, 0, 4, 6, out)

code = callback(types.void(float64[::1]), product, "out", "out")
out = np.array([1.0, 2.0, 3.0, 4.0, 1.0, 1.0, 0.0, 0.0])
ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_int64)(code.address)(out.ctypes.data, out.size)
print(*out[6:])
"""


def test_two_environments_with_one_cache(package, tmp_path):
    """A user's function that calls kernels: those of the archive here, others there. Neither removes what the other has kept."""
    home = tmp_path / "cache"
    other = shutil.copytree(package, tmp_path / "other")
    archive(other).unlink()
    first, of_first = run(package, home, USERS), kept(home)
    second = run(other, home, USERS)
    assert first == second == ("4.0 6.0", "")
    of_both = kept(home)
    assert set(of_first) < set(of_both)
    assert run(package, home, USERS) == run(other, home, USERS) == first
    assert kept(home) == of_both


@pytest.mark.parametrize("job", build_kernels.OTHERS, ids=lambda job: job.__name__)
def test_jobs_that_are_stated_by_hand_are_those_of_the_package(job):
    """They name what is in it now: nobody builds all kernels after each change."""
    job()


def test_a_job_that_fails_keeps_no_other_from_being_done(monkeypatch):
    def broken():
        raise AttributeError("no such kernel")

    monkeypatch.setattr(build_kernels, "_known_jobs", lambda: [("whole", dict), ("broken", broken), ("not for this", lambda: int("a"))])
    (*_, refused, wrong), (*_, wrong_of_broken), (*_, said, nothing) = map(build_kernels._compile, range(3))
    assert refused == wrong == nothing == ""
    assert "AttributeError: no such kernel" in wrong_of_broken
    assert said.startswith("ValueError")


def test_time_loops_are_looked_for_though_they_are_made_when_asked_for():
    loops = {f"nsds.schemes.run.simulation._march_template_{name}" for name in ("lagrangian_mixed", "rigid_rattle", "event_driven_linear")}
    assert loops <= set(build_kernels.lacking({}))
    assert not loops & set(build_kernels.lacking({f"{name}-1-2.nbc": b"" for name in loops}))
