"""The page docs/performance.md: ``python -m tests.benchmarks.roofline [--show] [--spheres N ...] [--sizes N ...]``.

A quarter of an hour on a quiet machine, and some 12 GB for the largest size.

Bytes and operations of a step beside what the machine moves and computes in a second, for single models, ensembles and piles; time and
memory by size; rows that go to a file. With ``--show`` the page is printed, and the file stays as it is.
"""

import os

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import nsds
from nsds.schemes.run import tiles
from tests.benchmarks import ensembles, floors, machine, rigid
from tests.benchmarks.__main__ import bytes_of_a_row
from tests.benchmarks.pages import OF_SIZES, PAGE, replaced, split, table
from tests.benchmarks.workloads import WORKLOADS, measure
from tests.paths import ROOT

_SINGLE = ("bouncing ball", "diode bridge", "relay", "cam follower", "resting column 10", "resting column 100", "resting column 1000")
_ROWS_OF_A_FILE = 2000  # of a thousand balls
_PILES = (1000, 10_000, 100_000)
_STEPS = 40


class Line(NamedTuple):
    """A row of the table: a step, or a member's; seconds are ns."""

    model: str
    cores: int
    bytes: float
    flops: float
    ns: float
    by_hand: float
    bandwidth: float  # bytes a ns
    peak: float  # operations a ns

    def cells(self):
        """Text of the columns."""
        moving, computing = self.bytes / self.bandwidth, self.flops / self.peak
        bound, roof = ("memory", moving) if moving > computing else ("arithmetic", computing)
        figures = (
            f"{self.bytes:.4g}",
            f"{self.flops:.4g}",
            f"{self.flops / self.bytes:.2f}",
            _time(self.ns),
            f"{self.bytes / self.ns:.2f} of {self.bandwidth:.1f}",
            f"{self.flops / self.ns:.2f} of {self.peak:.1f}",
            f"{bound}, {_time(roof)}",
            f"{100 * roof / self.ns:.0f} %",
            _time(self.by_hand),
        )
        return (self.model, str(self.cores), *figures)


_HEAD = (
    "model", "cores", "bytes", "flops", "flops a byte", "time", "GB/s", "Gflop/s", "roof", "of the roof", "by hand",
)  # fmt: skip


def _time(ns):
    return f"{ns:.3g} ns" if ns < 1e3 else f"{ns / 1e3:.3g} µs" if ns < 1e6 else f"{ns / 1e6:.3g} ms"


def single_models():
    """Lines of models that are stepped alone, on one core."""
    for workload in WORKLOADS:
        if workload.name in _SINGLE:
            ns, size = measure(workload)[0], bytes_of_a_row(workload)
            bandwidth = machine.bandwidth("write", size * workload.n_steps, 1) / 1e9
            operations, by_hand = floors.count_flops(workload.floor), floors.measure(workload.floor)
            yield Line(workload.name, 1, size, operations, ns, by_hand, bandwidth, machine.flops(1) / 1e9)


def of_ensembles(rows):
    """Lines of ensembles, a member and step, with reused and with fresh output."""
    for row in rows:
        for output in ("reused", "fresh"):
            name, cores = f"{row['name']}, {output} output", row["cores"]
            peak = machine.flops(cores) / 1e9
            yield Line(name, cores, row["bytes"], row["flops"], row[output], row["floor"], row[f"{output}_GBs"], peak)


def line_of_pile(row):
    """The line of a pile: what its sweeps move and compute, beside the whole step."""
    ns, by_hand, peak = 1e6 * row["ms"], 1e6 * row["floor"], machine.flops(row["threads"]) / 1e9
    return Line(f"{row['name']} spheres", row["threads"], 1e6 * row["MB"], 1e6 * row["Mflop"], ns, by_hand, row["GBs"], peak)


def to_a_file():
    """(bytes, MB a second of `nsds.stream`, of a plain file that is written as long and made durable, of the run that keeps its rows)."""
    balls, h, folder = np.repeat(nsds.examples.bouncing_ball(), 1000), 5e-3, Path(tempfile.mkdtemp(dir=ROOT))
    try:
        began = time.perf_counter()
        rows = nsds.simulate(balls, t_end=_ROWS_OF_A_FILE * h, h=h, progress=False)
        kept = time.perf_counter() - began
        began = time.perf_counter()
        nsds.stream(balls, folder / "rows.h5", t_end=_ROWS_OF_A_FILE * h, h=h, progress=False)
        _make_durable(folder / "rows.h5")
        streamed = time.perf_counter() - began
        began = time.perf_counter()
        (folder / "plain").write_bytes(rows.data)
        _make_durable(folder / "plain")
        plain = time.perf_counter() - began
    finally:
        shutil.rmtree(folder)
    return rows.nbytes, *(rows.nbytes / 1e6 / seconds for seconds in (streamed, plain, kept))


def _make_durable(path):
    with path.open("rb") as file:
        os.fsync(file.fileno())


def what_the_machine_does():
    """Table of bandwidths by size."""
    cores = sorted({1, len(os.sched_getaffinity(0))})
    sizes = {"16 kB": 2**14, "256 kB": 2**18, "2 MB": 2**21, "64 MB": 2**26}
    rows = []
    for n in cores:
        for kind in ("read", "write"):
            rates = [f"{machine.bandwidth(kind, size, n) / 1e9:.1f}" for size in sizes.values()]
            fresh = f"{machine.fresh_bandwidth(2**28, n) / 1e9:.1f}" if kind == "write" else ""
            rows.append((str(n), kind, *rates, fresh, f"{machine.flops(n) / 1e9:.1f}"))
    return table(("cores", "GB/s", *sizes, "fresh memory", "Gflop/s"), rows)


_INTRODUCTION = """# Performance: what a step moves and computes

This page is made by `python -m tests.benchmarks.roofline`, but for the section on models that grow, on {machine}, with nsds {version},
at a load of {load:.1f} of others.

## What the machine does

Bytes a second, of all cores together, each of which goes through so many bytes of its own again and again; memory that was just allocated
is cleared by the system first, page by page. Operations are multiplications and additions in vector registers, not fused.

{does}

## Roofs

A step moves what it records: the state of a small model stays in the nearest cache. The sweeps of a pile read and write each contact and
its two bodies. Operations are counted in the hand-written loop of the same arithmetic, in which nothing is general and which is timed
beside it; a sine counts as one. The roof is the time that the bytes take at the bandwidth which the machine has for so many, or the
operations at its peak, whichever is longer. Of an ensemble the figures are those of a member. Piles are marched for {steps} steps from a
loose grid (settling), or from rest; each step takes as many sweeps as it needs.

{roofs}

A model that is stepped alone is bound by neither: each operation waits for the one before, as in the hand-written loop. Ensembles take
eight members at a time; with fresh output the system's clearing of pages is part of the step. What is asked and not reached:

{limits}

## Growth

Spheres that touch, in {sweeps} sweeps: seconds to build the record, first and again, and to prepare the run; bytes of the record and of the
work memory for each contact; ns for each contact in detection, in a sweep, and in all else.

{growth}

{scenes}## Rows in a file

{bytes:.0f} MB of rows of 1000 balls, until the disk has them: {streamed:.0f} MB/s by `nsds.stream`, {plain:.0f} MB/s for a plain file
of the same bytes, {kept:.0f} MB/s for the run that keeps them in memory.
"""


_SCENES = """## Whole runs

Scenes with contacts by the defaults, from the first step to the last: processor time of one thread, at a load of {load:.0f} of others. Most
contacts found in a step, and steps that are not clean (INEXACT). Towers, the wall and the arch are drawn at rest; grains fall into a silo
of 4 diameters' radius and a tube of 6, out of a loose cylinder, or into a box. `spheres10000` are the first 40 steps alone.

{rows}

"""


def whole_runs():
    """The section of whole runs; empty where the scenes are not at hand."""
    load = machine.load()
    rows = [[row["name"], *(f"{row[key]:.{digits}f}" for key, _, _, digits in rigid.OF_SCENES)] for row in rigid.whole_scenes()]
    if not rows:
        return ""
    return _SCENES.format(load=load, rows=table(("", *(title for _, title, _, _ in rigid.OF_SCENES)), rows))


def page(spheres, sizes):
    """Text of docs/performance.md."""
    tiles.WORTH_COMPILING, load = 0, machine.load()
    rigid.compiled()
    piles = list(rigid.rows_of(spheres, _STEPS))
    members = list(ensembles.rows_of())
    lines = [*single_models(), *of_ensembles(members), *map(line_of_pile, piles)]
    limits = [*filter(None, map(ensembles.limit, members)), *rigid.limits(piles), rigid.limit_of_sweeps()]
    grown = [[row["name"], *(f"{row[key]:.{digits}f}" for key, _, _, digits in rigid.OF_GROWTH)] for row in map(rigid.growth, sizes)]
    n_bytes, streamed, plain, kept = to_a_file()
    return _INTRODUCTION.format(
        machine=machine.name(), version=nsds.__version__, load=load, does=what_the_machine_does(), steps=_STEPS,
        roofs=table(_HEAD, [line.cells() for line in lines]), limits="\n".join(f"- {line}." for line in limits), sweeps=rigid.SWEEPS,
        growth=table(("", *(title for _, title, _, _ in rigid.OF_GROWTH)), grown), scenes=whole_runs(), bytes=n_bytes / 1e6,
        streamed=streamed, plain=plain, kept=kept,
    )  # fmt: skip


def main():
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--spheres", type=int, nargs="*", default=_PILES, help="sizes of the piles")
    parser.add_argument("--sizes", type=int, nargs="*", default=rigid.SIZES, help="of piles that show growth")
    arguments = parser.parse_args()
    text = page(arguments.spheres, arguments.sizes)
    if arguments.show:
        print(text)
    else:
        of_sizes = split(PAGE.read_text(encoding="utf-8"), OF_SIZES)[1]
        PAGE.write_text(replaced(text, of_sizes) if of_sizes else text, encoding="utf-8")


if __name__ == "__main__":
    main()
