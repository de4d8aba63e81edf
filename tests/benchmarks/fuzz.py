"""Every solver on random problems, most of them unkind: ``python -m tests.benchmarks.fuzz [--number 100000] [--seed 0] [--kinds lcp qp]``.

A table of kinds of problems, each with its own table of generators and a judge that shares no code with the solvers: `fuzz_boxes`, or with
``--generators structured`` those of `structured_boxes`, with the same judge. Problem
k of a seed is drawn by ``default_rng([seed, k])`` and goes to the next kind and method in turn; ``--first k --number 1`` repeats it alone.
Counted: claims of convergence, of infeasibility and of unboundedness that are false, numbers that are not finite, errors, calls that take
too long. Exit status 1 if there is any. ``--jobs`` processes share the work.
"""

import argparse
import collections
import concurrent.futures
import multiprocessing
import sys
import time
import warnings
from typing import NamedTuple

import numpy as np

from nsds.status import ADVICE
from tests.benchmarks import fuzz_boxes, structured_boxes

GENERATORS = {"random": fuzz_boxes.KINDS, "structured": structured_boxes.KINDS}  # of name: Kind(generators, methods, solve, judge)


class Found(NamedTuple):
    """What came of a range of problems."""

    counts: collections.Counter
    complaints: list
    longest: tuple


def examine(seed, k, kinds, names, limit):
    """(name of the problem, method, status, seconds, complaint) of problem k."""
    rng = np.random.default_rng([seed, k])
    kind = kinds[names[k % len(names)]]
    method = kind.methods[(k // len(names)) % len(kind.methods)]
    generator = list(kind.generators)[int(rng.integers(len(kind.generators)))]
    problem = kind.generators[generator](rng)
    name = f"{names[k % len(names)]} {generator} (seed {seed}, k {k})"
    for _ in range(2):
        began = time.process_time()
        try:
            solution = kind.solve(problem, method, rng)
        except Exception as error:
            return name, method, None, 0.0, f"{type(error).__name__}: {error}"
        seconds = time.process_time() - began
        if seconds <= limit:
            break  # else once more: the first call compiles
    complaint = kind.judge(problem, solution)
    if not complaint and seconds > limit:
        complaint = f"took {seconds:.1f} s"
    return name, method, int(solution.status), seconds, complaint


def examine_range(seed, first, number, generators, names, limit):
    """`Found` of problems first, ..., first + number - 1."""
    warnings.simplefilter("ignore")
    counts, complaints, longest = collections.Counter(), [], (0.0, "")
    with np.errstate(all="ignore"):
        for k in range(first, first + number):
            name, method, status, seconds, complaint = examine(seed, k, GENERATORS[generators], names, limit)
            counts[name.split()[0], method, status] += 1
            longest = max(longest, (seconds, f"{method} on {name}"))
            if complaint:
                complaints.append(f"{method} on {name}: {complaint}")
    return Found(counts, complaints, longest)


def main():
    """Run, print, and fail where something false was claimed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds of processor time that a call may take")
    parser.add_argument("--generators", default="random", choices=list(GENERATORS))
    parser.add_argument("--kinds", nargs="*", default=list(fuzz_boxes.KINDS), choices=list(fuzz_boxes.KINDS))
    arguments = parser.parse_args()
    began, size = time.perf_counter(), 2000
    end = arguments.first + arguments.number
    parts = [(first, min(size, end - first)) for first in range(arguments.first, end, size)]
    every = Found(collections.Counter(), [], (0.0, ""))
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs, mp_context=context) as pool:
        runs = [pool.submit(examine_range, arguments.seed, *part, arguments.generators, arguments.kinds, arguments.limit) for part in parts]
        for done, run in enumerate(runs):
            found = run.result()
            every.counts.update(found.counts)
            every.complaints.extend(found.complaints)
            every = every._replace(longest=max(every.longest, found.longest))
            print(*found.complaints, sep="\n", end="\n" if found.complaints else "", flush=True)
            if done % 10 == 9:
                n = sum(every.counts.values())
                print(f"{n} problems, {time.perf_counter() - began:.0f} s, {len(every.complaints)} complaints", flush=True)
    report(every, arguments.seed)
    sys.exit(bool(every.complaints))


def report(found, seed):
    """Counts by kind, method and status."""
    lines = collections.defaultdict(list)
    for (kind, method, status), count in sorted(found.counts.items(), key=str):
        lines[kind, method].append(f"{'error' if status is None else ADVICE[status].split(':')[0][:24]} {count}")
    for (kind, method), parts in lines.items():
        print(f"{kind:5s} {method:15s} " + ", ".join(parts))
    print(f"longest: {found.longest[0]:.2f} s, {found.longest[1]}")
    print(f"{sum(found.counts.values())} problems of seed {seed}: {len(found.complaints)} complaints")


if __name__ == "__main__":
    main()
