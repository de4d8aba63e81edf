"""Table of ns per step: ``python -m tests.benchmarks [--json FILE] [--only TEXT] [--repeats N] [--no-peer]``.

Engines take turns within a workload; medians are shown. The peer is looked for in the python that NSDS_PEER_PYTHON names, else in
/usr/bin/python3.
"""

import os

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import argparse
import json
import platform
import statistics
import subprocess
from pathlib import Path

import numba
import numpy

import nsds
from tests.benchmarks import floors
from tests.benchmarks.workloads import WORKLOADS, first_result, measure, peer_command


def find_peer():
    """A python that imports siconos, or None."""
    python = os.environ.get("NSDS_PEER_PYTHON", "/usr/bin/python3")
    if not Path(python).exists():
        return None
    found = subprocess.run([python, "-c", "import siconos.kernel"], capture_output=True, check=False)
    return python if found.returncode == 0 else None


def run(workload, peer, repeats):
    """One row: ns per step and set-up here, µs per step of the peer, in turns."""
    cores = os.sched_getaffinity(0)
    if workload.cores:
        os.sched_setaffinity(0, sorted(cores)[: workload.cores])
    measure(workload)
    own, setups, others = [], [], []
    try:
        for _ in range(repeats):
            ns, setup = measure(workload)
            own.append(ns)
            setups.append(setup)
            if peer and workload.peer and len(others) < 3:
                result = subprocess.run(peer_command(peer, workload), capture_output=True, text=True, check=True)
                others.append(float(result.stdout.split()[-1]))
    finally:
        os.sched_setaffinity(0, cores)
    row = {"name": workload.name, "ns": statistics.median(own), "min_ns": min(own), "setup_ms": statistics.median(setups)}
    row["target_ns"] = workload.target_ns or None
    row["peer_us"] = statistics.median(others) if others else None
    row["ratio"] = row["peer_us"] * 1e3 / row["ns"] if others else None
    return row


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    peer = None if arguments.no_peer else find_peer()
    floor = floors.measure(arguments.repeats)
    print(f"nsds {nsds.__version__}, numba {numba.__version__}, numpy {numpy.__version__}, {platform.machine()}, every step recorded")
    print(f"peer: {'Siconos of the system python (Debian builds it with assertions)' if peer else 'not found'}")
    print(f"{'workload':<20}{'ns/step':>12}{'min':>12}{'target':>10}{'floor':>10}{'set-up ms':>11}{'peer µs':>11}{'ratio':>8}")
    rows = []
    for workload in WORKLOADS:
        if arguments.only not in workload.name:
            continue
        row = run(workload, peer, arguments.repeats)
        row["floor_ns"] = floor.get(workload.floor)
        rows.append(row)
        cells = [f"{row[key]:.{digits}f}" if row[key] is not None else "-" for key, digits in (
            ("ns", 1), ("min_ns", 1), ("target_ns", 0), ("floor_ns", 1), ("setup_ms", 2), ("peer_us", 2), ("ratio", 0))]  # fmt: skip
        print(f"{row['name']:<20}" + "".join(f"{c:>{w}}" for c, w in zip(cells, (12, 12, 10, 10, 11, 11, 8), strict=True)), flush=True)
    processes = {} if arguments.only else first_result(3)
    for name, (seconds, target) in processes.items():
        print(f"{name:<26}{seconds:8.3f}   target {target}")
    if arguments.json:
        versions = {"nsds": nsds.__version__, "numba": numba.__version__, "numpy": numpy.__version__, "python": platform.python_version()}
        machine = {"machine": platform.machine(), "cores": os.cpu_count()}
        Path(arguments.json).write_text(json.dumps({"versions": versions, **machine, "rows": rows, "processes": processes}, indent=1))


if __name__ == "__main__":
    main()
