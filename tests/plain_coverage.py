"""``python -m tests.plain_coverage``: small cases of everything as plain Python, and how many lines of the kernels they run.

Without a compiler (``NUMBA_DISABLE_JIT=1``) every index and view is checked, too. Scenes for two steps; examples with every scheme; test
problems with every method; the docstrings' examples; and tests that are quick without a compiler: of what takes seconds, what runs lines
that nothing else does. Prints the coverage of each folder and the kernels with the most lines left; exit status 1 if a case fails or fewer
than `LEAST` percent of the lines were run.
"""

import os

os.environ |= {"NUMBA_DISABLE_JIT": "1", "MPLBACKEND": "Agg"}  # before numba is imported

import json
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import defaultdict
from pathlib import Path

import pytest

from tests.kernels import kernels
from tests.paths import ROOT
from tests.reached import mark, reached, statements

LEAST = 90.0
SHARES = 2  # processes
_SHOWN = 25

# Test files that are quick as plain Python, but for the tests with these words in their names: long runs, threads, what is compiled, and
# what takes seconds and runs no lines that others do not run.
TESTS = [
    "collision/test_collision.py", "collision/test_collision_detection.py", "collision/test_rays.py", "maths/test_rotations.py",
    "schemes/test_linear_algebra.py", "schemes/run/test_stepper.py", "schemes/run/test_tiles.py", "schemes/rigid/test_on_contact.py",
    "jit/test_lanes.py",
    "schemes/lagrangian/test_forms_and_starts.py", "schemes/lagrangian/test_lagrangian_friction.py", "solvers/bodies/test_contact_rigid.py",
    "schemes/lagrangian/test_mixed.py", "schemes/lagrangian/test_sparse_functions.py", "solvers/bodies/test_contact_piles.py",
    "solvers/bodies/test_contact_newton.py", "solvers/box/test_solver_interface.py", "solvers/box/test_solver_kernels.py",
    "solvers/contact/test_contact_block_lu.py", "solvers/contact/test_contact_few.py", "solvers/contact/test_contact_sweeps.py",
    "schemes/first_order/test_sparse_relations.py", "schemes/rigid/test_trees.py", "schemes/event_driven/test_compliance.py",
]  # fmt: skip
LONG = [
    "a_million_steps", "what_is_reached", "light_grains", "bits_of_frozen", "bits_do_not_depend", "momentum_saves", "number_of_cores",
    "out_of_the_cache", "profile_measures", "unsuitable_solver", "as_if_alone", "arm_with_dry", "thin_disc",
    "strikes_a_rough", "rigid_body_does", "units_do_not_matter", "slides_in_a_curve", "redundant_contacts_at_rest",
    "steps_have_the_bits", "takes_what_another", "own_steps_from", "memory_is_flat", "closed_surfaces_have",
    "membrane_rests", "stated_twice", "contradict_each", "floor_and_ceiling", "memory_and_time", "would_be_dense", "rest_at_the_start",
    "where_there_are_many", "many_contacts_beside", "chains_move", "compliance_in_sparse", "dense_matrices_of_many",
    "ten_thousand", "hysteresis_of_many", "coupled_floors", "force_of_its_own", "nonlinear_floor", "springs_and_forces",
    "touches_at_the_start", "tenth_of_the_rounds", "steps_without_a_matrix", "by_equations_where", "contacts_are_open", "have_spoilt",
    "last_graph_changes", "wobbles", "few_contacts_with_much", "rounds_over_groups", "other_scales", "nothing_reaches", "changes_no_bit",
    "same[0", "same[2", "same[1-3]", "linear_floor[100.0]", "linear_floor[10000.0]", "determined[equality]", "same_motion[event_driven]",
    "same_motion[generalised", "same_motion[moreau_jean_direct", "add_no_energy", "masses_that_rub", "rooms_for_contacts",
    "more_contacts_than_motions", "large_clouds", "carries_nothing", "owed_that_is_small", "sweeps_are_not_worth", "coat_carries",
    "come_to_rest_at_zero", "though_it_is_rough", "are_those_by_equations", "of_examples[column", "recording_does_not",
    "same_motion[moreau_jean]", "a_controller[nonlinear]", "is_the_new_plane", "two_parts_has", "of_many_shapes",
    "by_the_size_of_its_matrix",
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


def lines_of_kernels(ran):
    """(file, kernel, number of its lines, those that were not run) of all kernels; ran: (path, line) of statements that were."""
    for path, node in kernels():
        lines = statements(node)
        missing = sorted(line for line in lines if (str(path), line) not in ran)
        yield path.relative_to(ROOT).as_posix(), node.name, len(lines), missing


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


def _unclaimed(cases, folder):
    """The cases that no other process has taken."""
    for number, case in enumerate(cases):
        try:
            (folder / f"case {number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        yield case


def run_share(share, folder):
    """Every so many of the files of tests, then cases that are left; the lines that ran go into a file. Exit status."""
    mark()
    from tests.plain_cases import cases  # imports the package

    failed = []
    files = [f"{ROOT}/tests/{name}" for name in TESTS[share::SHARES]]
    if pytest.main(["-n", "0", "-p", "no:cacheprovider", "--durations=10", "-k", f"not ({' or '.join(LONG)})", *files]) != 0:
        failed.append("tests")
    failed += run(_unclaimed(cases(), folder))
    (folder / f"{share}.json").write_text(json.dumps(reached()))
    print(f"{len(failed)} cases failed: {', '.join(failed) or 'none'}\n")
    return int(bool(failed))


def main():
    """Exit status."""
    with tempfile.TemporaryDirectory() as name:
        folder, running = Path(name), []
        for share in range(SHARES):
            command = [sys.executable, "-m", "tests.plain_coverage", str(share), name]
            with open(folder / f"{share}.txt", "w") as printed:
                running.append(subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT))
        failed = sum(process.wait() != 0 for process in running)
        ran = set()
        for share in range(SHARES):
            print((folder / f"{share}.txt").read_text())
            if (folder / f"{share}.json").exists():
                ran.update(map(tuple, json.loads((folder / f"{share}.json").read_text())))
        covered = report(list(lines_of_kernels(ran)))
    print(f"\n{covered:.1f} % of the lines of kernels, at least {LEAST} wanted")
    return int(covered < LEAST or failed > 0)


if __name__ == "__main__":
    sys.exit(run_share(int(sys.argv[1]), Path(sys.argv[2])) if sys.argv[1:] else main())
