"""Ensembles of small models, a thousand members side by side in tiles: ``python -m tests.benchmarks.ensembles [NAME]``.

ns a member and step with every step recorded: into memory that the process has never touched ("first"), that is newly allocated ("fresh"),
and into ``out=`` ("reused"); bytes of a row and operations a step; what share that is of the pace at which this machine writes such memory;
a hand-written loop beside it. Each ensemble on one core and on all, each in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

import nsds
from nsds.schemes.run import tiles
from tests.benchmarks import floors, machine
from tests.benchmarks.workloads import TRAPEZOIDAL, relay
from tests.paths import ROOT

MEMBERS = 1000
_REPEATS = 5
# name -> member, steps, h, scheme, floor, ns a step that are asked of two cores
ENSEMBLES = {
    "balls": (nsds.examples.bouncing_ball, 2000, 5e-3, None, "ball", 15.0),
    "bridges": (nsds.examples.diode_bridge, 1000, 1e-6, TRAPEZOIDAL, "bridge", 30.0),
    "relays": (relay, 1000, 1e-3, TRAPEZOIDAL, "relay", None),
    "cam followers": (nsds.examples.cam_follower, 1000, 1e-4, None, "cam", 25.0),
}
COLUMNS = (
    ("cores", "cores", 7, 0), ("first", "first ns", 10, 1), ("fresh", "fresh ns", 10, 1), ("reused", "reused ns", 11, 1),
    ("target", "target", 8, 0), ("bytes", "bytes", 7, 0), ("flops", "flops", 7, 0), ("fresh_pace", "% fresh", 9, 0),
    ("reused_pace", "% reused", 10, 0), ("floor", "floor ns", 10, 1), ("ratio", "x floor", 9, 1),
)  # fmt: skip


def measure(name, repeats):
    """The row of an ensemble, on the cores that this process may use."""
    build, n_steps, h, scheme, floor, target = ENSEMBLES[name]
    systems, cores = np.repeat(build(), MEMBERS), len(os.sched_getaffinity(0))
    tiles.WORTH_COMPILING = 0

    def seconds(n, out=None):
        began = time.perf_counter()
        rows = nsds.simulate(systems, t_end=n * h, h=h, scheme=scheme, progress=False, out=out)
        return time.perf_counter() - began, rows

    seconds(tiles.WORTH // MEMBERS)  # compiles the tiles
    one = min(seconds(1)[0] for _ in range(3))
    figures = {"first": seconds(n_steps)[0], "fresh": np.inf, "reused": np.inf}
    rows, floor_ns = seconds(n_steps)[1], np.inf
    for _ in range(repeats):  # in turns
        figures["reused"] = min(figures["reused"], seconds(n_steps, rows)[0])
        figures["fresh"] = min(figures["fresh"], seconds(n_steps)[0])
        floor_ns = min(floor_ns, floors.measure(floor, n_steps) / cores)
    figures = {key: (value - one) / (n_steps - 1) / MEMBERS * 1e9 for key, value in figures.items()}
    size, target = rows.dtype.itemsize, target if cores > 1 else None
    fresh, reused = machine.fresh_bandwidth(rows.nbytes, cores) / 1e9, machine.bandwidth("write", rows.nbytes // cores, cores) / 1e9
    paces = {"fresh_pace": 100 * size / figures["fresh"] / fresh, "reused_pace": 100 * size / figures["reused"] / reused}
    own = {"name": f"{MEMBERS} {name}", "cores": cores, "target": target, "bytes": size, "flops": floors.count_flops(floor, n_steps)}
    return own | figures | paces | {"fresh_GBs": fresh, "reused_GBs": reused, "floor": floor_ns, "ratio": figures["reused"] / floor_ns}


def rows_of(names=tuple(ENSEMBLES), repeats=_REPEATS):
    """Rows of ensembles on one core, and on all of them."""
    cores = sorted(os.sched_getaffinity(0))
    for name in names:
        for n in sorted({1, len(cores)}):
            command = [sys.executable, "-m", __spec__.name, name, "--cores", str(n), "--repeats", str(repeats), "--json"]
            yield json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)


def limit(row):
    """What keeps an ensemble from its target, if something does."""
    if row["target"] is None or row["reused"] <= row["target"]:
        return None
    least, name = row["bytes"] / row["reused_GBs"], f"{row['name']}, {row['cores']} cores: {row['reused']:.0f} ns"
    return f"{name}, {row['target']:.0f} asked; writing the rows alone takes {least:.0f} ns, the hand-written loop {row['floor']:.0f} ns"


def show(rows):
    """Print rows, and what is not reached."""
    print(f"{'ensemble':<22}" + "".join(f"{title:>{width}}" for _, title, width, _ in COLUMNS))
    limits = []
    for row in rows:
        print(f"{row['name']:<22}" + "".join(_cell(row[key], width, digits) for key, _, width, digits in COLUMNS), flush=True)
        limits.append(limit(row))
        yield row
    print(*filter(None, limits), sep="\n")


def _cell(value, width, digits):
    return f"{'-':>{width}}" if value is None else f"{value:>{width}.{digits}f}"


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=list(ENSEMBLES))
    parser.add_argument("--cores", type=int, help="only on so many, in this process")
    parser.add_argument("--repeats", type=int, default=_REPEATS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    names = [arguments.name] if arguments.name else list(ENSEMBLES)
    if arguments.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
        rows = [measure(name, arguments.repeats) for name in names]
    else:
        rows = rows_of(names, arguments.repeats)
    if arguments.json:
        print(json.dumps(rows[0] if arguments.cores and arguments.name else list(rows)))
    else:
        list(show(rows))


if __name__ == "__main__":
    main()
