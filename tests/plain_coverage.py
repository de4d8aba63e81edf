"""``python -m tests.plain_coverage``: small cases of everything as plain Python, and how many lines of the kernels they run.

Without a compiler (``NUMBA_DISABLE_JIT=1``) every index and view is checked, too. All scenes for two steps; every example with every
scheme; test problems with every method; the docstrings' examples; and tests that are quick without a compiler. Prints the coverage of each
folder and the kernels with the most lines left; exit status 1 if a case fails or fewer than `LEAST` percent of the lines were run.
"""

import os

os.environ |= {"NUMBA_DISABLE_JIT": "1", "MPLBACKEND": "Agg"}  # before numba is imported

import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import defaultdict
from itertools import islice
from pathlib import Path

import coverage
import pytest

from tests.kernels import kernels
from tests.paths import ROOT

LEAST = 90.0
SHARES = 2  # processes
FOLDERS = [f"{ROOT}/{name}/*" for name in ("nsds", "solvers", "schemes")]
_SHOWN = 25

# Test files that are quick as plain Python, but for the tests with these words in their names: long runs, threads, what is compiled.
TESTS = [
    "collision/test_collision.py", "collision/test_collision_detection.py", "maths/test_rotations.py", "schemes/test_linear_algebra.py",
    "schemes/run/test_stepper.py", "schemes/run/test_tiles.py", "jit/test_lanes.py",
    "schemes/lagrangian/test_forms_and_starts.py", "schemes/lagrangian/test_lagrangian_friction.py", "solvers/bodies/test_contact_rigid.py",
    "solvers/bodies/test_contact_piles.py", "solvers/box/test_solver_interface.py", "solvers/box/test_solver_kernels.py",
    "solvers/contact/test_contact_block_lu.py", "solvers/contact/test_contact_few.py", "solvers/contact/test_contact_sweeps.py",
]  # fmt: skip
LONG = [
    "a_million_steps", "what_is_reached", "light_grains", "bits_of_frozen", "bits_do_not_depend", "momentum_saves", "number_of_cores",
    "out_of_the_cache", "profile_measures", "unsuitable_solver", "as_if_alone", "arm_with_dry", "thin_disc",
    "strikes_a_rough", "rigid_body_does", "units_do_not_matter", "slides_in_a_curve", "redundant_contacts_at_rest",
    "steps_have_the_bits", "takes_what_another", "own_steps_from", "memory_is_flat",
]  # fmt: skip


def run(cases):
    """Names and errors of cases that fail; cases: (group, name, function that raises where something is wrong)."""
    failed, seconds, count = [], defaultdict(float), defaultdict(int)
    begin = time.process_time()
    for group, name, compute in cases:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compute()
        except Exception:
            failed.append(name)
            print(f"{group}, {name}:\n{traceback.format_exc()}", flush=True)
        end = time.process_time()  # of the case, and of making it
        seconds[group] += end - begin
        count[group] += 1
        begin = end
    for group, spent in seconds.items():
        print(f"{group:32} {count[group]:5d} cases {spent:6.1f} s")
    return failed


def lines_of_kernels(measured):
    """(file, kernel, number of its lines, those that were not run) of all kernels."""
    analysed = {}
    for path, node in kernels():
        if path not in analysed:
            _, lines, _, missing, _ = measured.analysis2(str(path))
            analysed[path] = set(lines), set(missing)
        own = set(range(node.body[0].lineno, node.end_lineno + 1))
        lines, missing = analysed[path]
        yield path.relative_to(ROOT).as_posix(), node.name, len(lines & own), sorted(missing & own)


def report(rows):
    """Print what was covered; returns the percentage of all lines."""
    folders = defaultdict(lambda: [0, 0])
    for file, _, n_lines, missing in rows:
        for name in (os.path.dirname(file), "all kernels"):
            folders[name][0] += n_lines
            folders[name][1] += len(missing)
    print("\nleast covered kernels")
    for file, name, n_lines, missing in sorted(rows, key=lambda row: -len(row[3]))[:_SHOWN]:
        print(f"{file:44} {name:32} {n_lines - len(missing):3d} of {n_lines:3d} lines, first not run: {missing[0] if missing else ''}")
    print("\nlines of kernels that were run")
    for name, (n_lines, n_missing) in sorted(folders.items(), key=lambda item: item[0] == "all kernels"):
        print(f"{name:32} {n_lines - n_missing:6d} of {n_lines:6d}  {100 * (1 - n_missing / n_lines):6.1f} %")
    return 100 * (1 - folders["all kernels"][1] / folders["all kernels"][0])


def run_share(share, file):
    """Every so many of the cases and files of tests, their coverage into a file. Exit status."""
    measured = coverage.Coverage(data_file=file, include=FOLDERS, config_file=False)
    measured.start()
    from tests.plain_cases import cases  # imports the package, whose templates are to be seen as they are made

    failed = run(islice(cases(), share, None, SHARES))
    files = [f"{ROOT}/tests/{name}" for name in TESTS[share::SHARES]]
    if pytest.main(["-n", "0", "-p", "no:cacheprovider", "--durations=10", "-k", f"not ({' or '.join(LONG)})", *files]) != 0:
        failed.append("tests")
    measured.stop()
    measured.save()
    print(f"{len(failed)} cases failed: {', '.join(failed) or 'none'}\n")
    return int(bool(failed))


def main():
    """Exit status."""
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{share}" for share in range(SHARES)]
        running = []
        for share, file in enumerate(files):
            command = [sys.executable, "-m", "tests.plain_coverage", str(share), file]
            with open(f"{file}.txt", "w") as printed:
                running.append(subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT))
        failed = sum(process.wait() != 0 for process in running)
        for file in files:
            print(Path(f"{file}.txt").read_text())
        measured = coverage.Coverage(data_file=None, include=FOLDERS, config_file=False)
        measured.combine([file for file in files if Path(file).exists()])
        covered = report(list(lines_of_kernels(measured)))
    print(f"\n{covered:.1f} % of the lines of kernels, at least {LEAST} wanted")
    return int(covered < LEAST or failed > 0)


if __name__ == "__main__":
    sys.exit(run_share(int(sys.argv[1]), sys.argv[2]) if sys.argv[1:] else main())
