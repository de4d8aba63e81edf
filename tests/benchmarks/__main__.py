"""Table of ns per step: ``python -m tests.benchmarks [--json FILE] [--history FILE] [--only TEXT] [--repeats N] [--no-peer]``.

With ``--first-results [PYTHON]`` seconds until the first result of each scheme instead, from an empty cache and from a warm one: of the
interpreter of a fresh environment with the wheel, whose kernels are compiled, or of this one.

Here, floor and peer take turns within a workload; medians are shown, and the ratio to the floor is one of minima. The peer is looked for
in the python that NSDS_PEER_PYTHON names, else in /usr/bin/python3. Forces of users are Python functions on both sides: compiled here,
called by the peer's interpreter. A history gets one entry a run; "x last" is the ratio of the minima to the last run of the same machine.
Bytes are those of a row; "% memory" is the time in which this machine writes them, into memory of the size of all rows, as a share of the
step's; operations are counted in the hand-written loop. Ensembles follow with fresh and with reused output; then calls,
first results, and models of 10^3 and more in size, each in a process of its own.
"""

import os

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np

import nsds
from nsds.schemes.run import tiles
from tests.benchmarks import ensembles, floors, history, machine
from tests.benchmarks.first_results import first_result, show_first_results
from tests.benchmarks.sizes import large_models
from tests.benchmarks.workloads import (
    WORKLOADS,
    calls,
    failed_steps,
    keep_memory,
    measure,
    one_off_solves,
    peer_command,
    threads,
)

_PEER_SECONDS = 20.0  # per workload, after which the peer has no further turns
COLUMNS = (
    ("ns", "ns/step", 11, 1), ("min_ns", "min", 11, 1), ("target_ns", "target", 9, 0), ("floor_ns", "floor", 10, 1),
    ("floor_ratio", "x floor", 9, 1), ("setup_ms", "set-up ms", 11, 2), ("peer_us", "peer µs", 11, 2), ("ratio", "ratio", 8, 0),
    ("bytes", "bytes", 7, 0), ("flops", "flops", 8, 0), ("pace", "% memory", 9, 0), ("last_ratio", "x last", 9, 3),
)  # fmt: skip


def find_peer():
    """A python that imports siconos, or None."""
    python = os.environ.get("NSDS_PEER_PYTHON", "/usr/bin/python3")
    if not Path(python).exists():
        return None
    found = subprocess.run([python, "-c", "import siconos.kernel"], capture_output=True, check=False)
    return python if found.returncode == 0 else None


def run_peer(python, workload, n_processes):
    """µs per step of the peer; of one process on each core, divided by their number, where a workload uses them all."""
    command = peer_command(python, workload)
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(n_processes)]
    printed = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise RuntimeError(f"the peer failed: {workload.peer}")
    return statistics.mean(float(text.split()[-1]) for text in printed) / n_processes


def run(workload, peer, repeats):
    """One row: ns per step and set-up here, ns of the floor, µs per step of the peer, in turns."""
    cores = sorted(os.sched_getaffinity(0))
    used = cores[: workload.cores] if workload.cores else cores
    os.sched_setaffinity(0, used)
    measure(workload)
    own, setups, floor, others = [], [], [], []
    peer_seconds = 0.0
    try:
        for _ in range(repeats):
            ns, setup = measure(workload)
            own.append(ns)
            setups.append(setup)
            if workload.floor:
                floor.append(floors.measure(workload.floor) / (1 if workload.cores else len(used)))
            if peer and workload.peer and peer_seconds < _PEER_SECONDS:
                began = time.perf_counter()
                others.append(run_peer(peer, workload, 1 if workload.cores else len(used)))
                peer_seconds += time.perf_counter() - began
    finally:
        os.sched_setaffinity(0, cores)
    row = {"name": workload.name, "ns": statistics.median(own), "min_ns": min(own), "max_ns": max(own), "repeats": repeats}
    row |= {"setup_ms": statistics.median(setups), "target_ns": workload.target_ns or None, "cores": len(used)}
    row |= {"floor_ns": min(floor) if floor else None, "floor_ratio": min(own) / min(floor) if floor else None}
    row |= {"peer_us": statistics.median(others), "peer_min_us": min(others), "peer_repeats": len(others)} if others else {"peer_us": None}
    row["ratio"] = row["peer_us"] * 1e3 / row["ns"] if others else None
    size = bytes_of_a_row(workload)
    writing = machine.bandwidth("write", size * workload.per * workload.n_steps // len(used), len(used))
    return row | {"bytes": size, "flops": floors.count_flops(workload.floor) if floor else None, "pace": 1e11 * size / writing / min(own)}


def bytes_of_a_row(workload):
    """What is recorded of a system, or of a member, in each step."""
    system = workload.build()
    t_end = np.min(system["t"]) + workload.h
    return nsds.simulate(system, t_end=t_end, h=workload.h, scheme=workload.scheme, progress=False).dtype.itemsize


def cell(row, key, width, digits):
    """A figure of the table, or a dash."""
    return f"{'-':>{width}}" if row[key] is None else f"{row[key]:>{width}.{digits}f}"


def _versions():
    return {"nsds": nsds.__version__, "numba": numba.__version__, "numpy": np.__version__, "python": platform.python_version()}


def _print(figures):
    for name, (figure, target) in figures.items():
        print(f"{name:<42}{figure:9.3f}" + (f"   target {target}" if target else ""))


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--history", metavar="FILE", help="compare with the last run in this file, and add this one")
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument(
        "--first-results", nargs="?", const=sys.executable, metavar="PYTHON", help="seconds until the first result of each scheme"
    )
    arguments = parser.parse_args()
    if arguments.first_results:
        show_first_results(arguments.first_results)
        return
    peer = None if arguments.no_peer else find_peer()
    tiles.WORTH_COMPILING = 0  # as on a machine that has run a large ensemble before
    warm = keep_memory()
    print(f"nsds {nsds.__version__}, numba {numba.__version__}, numpy {np.__version__}, {platform.machine()}, every step recorded")
    print(f"peer: {'Siconos of the system python (Debian builds it with assertions)' if peer else 'not found'}")
    print(f"memory of the output: {'warm' if warm else 'as malloc gives it'}")
    entries, versions = history.read(arguments.history) if arguments.history else [], _versions()
    print(f"{'workload':<22}" + "".join(f"{title:>{width}}" for _, title, width, _ in COLUMNS))
    rows = []
    for workload in WORKLOADS:
        if arguments.only not in workload.name:
            continue
        row = run(workload, peer, arguments.repeats)
        row["last_ratio"] = history.ratio_to_last(row, entries, history.machine())
        rows.append(row)
        mark = "  slower" if history.is_slower(row["last_ratio"]) else ""
        print(f"{workload.name:<22}" + "".join(cell(row, key, width, digits) for key, _, width, digits in COLUMNS) + mark, flush=True)
    members, processes = [], {}
    if not arguments.only:
        members = list(ensembles.show(ensembles.rows_of()))
        processes = calls() | threads() | failed_steps() | one_off_solves() | first_result(sys.executable, 3) | large_models()
    _print(processes)
    if arguments.history and rows:
        history.append(arguments.history, entries, history.entry(versions, rows))
    if arguments.json:
        about = {"machine": platform.machine(), "cores": os.cpu_count(), "warm_memory": warm, "load": os.getloadavg()[0]}
        about["peer"] = "siconos, Debian package with assertions" if peer else None
        Path(arguments.json).write_text(
            json.dumps({"versions": versions, **about, "rows": rows, "ensembles": members, "processes": processes}, indent=1)
        )


if __name__ == "__main__":
    main()
