"""Solvers on collected problems, beside the peer, and on chains: ``python -m tests.benchmarks.solvers FOLDER... [--json FILE]``.

µs of one solution in compiled code, from the guess 0 and (warm) from the solution, the matrix being that of the last call; and of the whole
call of the public function. The peer's time is that of its fastest solver that solves the problem, called through one Python call, with
all arguments made before, whose cost is subtracted in the last column.
"""

import os

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import argparse
import json
import subprocess
import time
import timeit
from pathlib import Path

import numpy as np

from nsds import solvers
from nsds.solvers import table
from nsds.solvers.box import forms
from nsds.solvers.box.signature import solve_repeatedly
from nsds.solvers.problems.profiling import fastest, prepared
from nsds.status import CONVERGED
from tests.benchmarks.__main__ import find_peer


def warm_time(problem, seconds=0.02):
    """Seconds of a solution by auto from the solution, with the scratch of the last call."""
    z0 = solvers.solve_relay(*problem[1:], on_failure="continue").z
    arguments = prepared(problem, *table.chosen("auto", "relay"), z0)
    solve_repeatedly(2, True, *arguments)
    status, least = fastest(seconds, False, solve_repeatedly, (True, *arguments))
    return least if status == CONVERGED else None


def whole_time(problem, seconds=0.05):
    """Seconds of a call of the public function."""
    call = timeit.Timer(lambda: solvers.solve_relay(*problem[1:], on_failure="continue"))
    count = max(1, int(0.1 * seconds / call.timeit(1)))
    return min(call.repeat(10, count)) / count


def peer_times(python, folders):
    """(best time and solver by problem, cost of a call) of the peer."""
    script = Path(__file__).with_name("peer_solvers.py")
    printed = subprocess.run([python, script, *folders], capture_output=True, text=True, check=True).stdout
    result, best = json.loads(printed), {}
    for row in result["rows"]:
        if row["solved"] and row["time_s"] < best.get(row["problem"], (np.inf, ""))[0]:
            best[row["problem"]] = row["time_s"], row["solver"]
    return best, result["overhead_s"]


def collected(folders, peer):
    """Rows of the table of collected problems."""
    best, overhead = peer_times(peer, folders) if peer else ({}, 0.0)
    for file in sorted(path for folder in folders for path in Path(folder).rglob("*.npz")):
        problem = solvers.read_problem(file)
        own = solvers.profile([problem], ["auto"], seconds=0.1)[0, 0]
        row = {"problem": problem.name, "n": int(own["n"]), "status": int(own["status"]), "auto_us": own["time"] * 1e6}
        row["method"] = solvers.solve_relay(*problem[1:], on_failure="continue").method
        warm = warm_time(problem) if own["status"] == CONVERGED else None
        row["warm_us"] = None if warm is None else warm * 1e6
        row["whole_us"] = whole_time(problem) * 1e6
        if problem.name in best:
            row["peer_us"], row["peer"] = best[problem.name][0] * 1e6, best[problem.name][1]
            row["ratio"] = row["peer_us"] / row["auto_us"]
            row["net_ratio"] = (row["peer_us"] - overhead * 1e6) / row["auto_us"]
            row["whole_ratio"] = row["peer_us"] / row["whole_us"]
        yield row


def chains(sizes=(1_000, 10_000, 100_000)):
    """Rows of the table of chains: time of a solution, conversions included or not, and memory of scratch and matrix."""
    for n in sizes:
        problem = solvers.generate("chain", n)
        began = time.perf_counter()
        solvers.solve_lcp(problem.M, problem.q, tol=1e-9)
        whole = time.perf_counter() - began
        row = solvers.profile([problem], ["auto"], tol=1e-9, seconds=0.5)[0, 0]
        (indptr, column, data, *_), _ = forms.box("chain", problem.M, problem.q, np.zeros(n), np.full(n, np.inf), True)
        scratch = sum(part.nbytes for part in table.scratch(table.find("auto", "lcp"), n, indptr, column))
        megabytes = (scratch + indptr.nbytes + column.nbytes + data.nbytes) / 1e6
        yield {"n": n, "status": int(row["status"]), "ms": row["time"] * 1e3, "whole_ms": whole * 1e3, "megabytes": megabytes}


def successes(folders):
    """How many of the problems each method solves at 1e-10."""
    problems = [solvers.read_problem(file) for folder in folders for file in sorted(Path(folder).rglob("*.npz"))]
    names = list(solvers.methods("relay"))
    solved = (solvers.profile(problems, [n for n in names if n != "enumerate"], seconds=0)["status"] == CONVERGED).sum(axis=0)
    small = [p for p in problems if len(p.q) <= 20]  # all bases of larger ones take minutes
    counted = dict(zip([n for n in names if n != "enumerate"], solved.tolist(), strict=True))
    counted["enumerate"] = int((solvers.profile(small, ["enumerate"], seconds=0)["status"] == CONVERGED).sum())
    return counted, len(problems)


def show(value, width, digits=2):
    """A figure or a dash."""
    return f"{'-':>{width}}" if value is None else f"{value:{width}.{digits}f}"


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    peer = None if arguments.no_peer else find_peer()
    rows = []
    if arguments.folders:
        print(f"{'problem':34s}{'n':>5s}{'auto':>10s}{'warm':>9s}{'whole':>10s}{'peer':>10s}{'ratio':>8s}{'net':>8s}")
    for row in collected(arguments.folders, peer):
        rows.append(row)
        figures = show(row["auto_us"], 10) + show(row["warm_us"], 9, 3) + show(row["whole_us"], 10) + show(row.get("peer_us"), 10)
        ratios = show(row.get("ratio"), 8) + show(row.get("net_ratio"), 8)
        print(
            f"{row['problem']:34s}{row['n']:5d}{figures}{ratios}  {row['method']} / {row.get('peer', '-')} (status {row['status']})",
            flush=True,
        )
    for name in ("ratio", "net_ratio", "whole_ratio"):
        ratios = np.array([row[name] for row in rows if name in row])
        if ratios.size:
            counts = f"faster on {(ratios > 1).sum()} of {ratios.size}, within 2x on {(ratios >= 0.5).sum()}"
            print(f"{name}: {counts}, least {ratios.min():.2f}, median {np.median(ratios):.2f}")
    counted = {}
    if arguments.folders:
        counted, n_problems = successes(arguments.folders)
        print(f"solved of {n_problems}: " + ", ".join(f"{name} {count}" for name, count in counted.items()))
    lines = list(chains())
    for line in lines:
        print(f"chain of {line['n']:7d}: {line['ms']:9.3f} ms, with conversion {line['whole_ms']:9.3f} ms, {line['megabytes']:8.2f} MB")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"problems": rows, "solved": counted, "chains": lines}, indent=1))


if __name__ == "__main__":
    main()
