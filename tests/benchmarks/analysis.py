"""Times of `nsds.analysis`: ``python -m tests.benchmarks.analysis [--part P] [--repeats N] [--no-cluster] [--json FILE]``.

Each is the least of some repeats, beside what is asked and a floor: what the same motions cost without the analysis. ``--part 0.1`` takes a
tenth of the speeds, periods and cells, whose times are then not those that are asked for.

- cam: a diagram of the follower, 500 speeds from 650 to 750 rpm, 2000 turns each; its floor is the ensemble's run, nothing written down.
- basins: of a ball on a table, 1000 x 1000 starts; its floor is the iteration of the map.
- Lyapunov: both exponents of an impact oscillator over the run without them, whose ratio is asked for.
- orbit: one orbit with multipliers of a forced oscillator, started on it, and found by Newton's method; its floor is one period.
- branch: 500 points of a branch, divided by their number and times 500; its floor is 500 periods of the three members that a point needs.
- cluster: pieces of a diagram on a local cluster of one worker and of two, of one thread each, whose ratio is asked for.
"""

import os

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import argparse
import json
import math
import tempfile
import time
from pathlib import Path

import numpy as np

import nsds
from nsds.analysis.maps import Iterates
from nsds.analysis.tangent_run import Carried
from tests.analysis.models import impact_oscillator, single_impact_orbit

TURNS = 2000


def seconds(run, repeats):
    """The least of some times, after one that is not counted: kernels may have to be compiled."""
    run()
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        found.append(time.perf_counter() - began)
    return min(found)


def turn(rpm):
    return 60 / rpm


def cam(part, repeats):
    """(seconds, floor) of the diagram of the cam follower."""
    speeds, turns = np.linspace(650, 750, max(2, round(500 * part))), max(40, round(TURNS * part))
    follower = nsds.examples.cam_follower(rpm=700.0)
    settings = {
        "vary": {"follower.z[0]": speeds},
        "period": turn,
        "transient": turns - 40,
        "keep": 40,
        "direction": None,
        "progress": False,
    }
    systems = np.repeat(follower, speeds.size)
    systems["follower"]["z"][:, 0] = speeds
    plain = lambda: Carried("cam", systems, turn(speeds), n_columns=0).advance(turns)  # noqa: E731
    return seconds(lambda: nsds.sweep(follower, **settings), repeats), seconds(plain, repeats)


def bounce(x, p, out):
    out[0], out[1] = x[0] + x[1], 0.5 * x[1] - p[0] * math.cos(x[0] + x[1])


def basins(part, repeats):
    """(seconds, floor) of the basins of the table."""
    side = max(10, round(1000 * math.sqrt(part)))
    table = nsds.iterated_map(bounce, x=[0.0, 0.0], p=[4.1], modulo=[2 * math.pi, 0])
    axes = {"x[0]": np.linspace(0, 2 * math.pi, side), "x[1]": np.linspace(-10, 20, side)}
    starts = np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1).reshape(-1, 2)
    plain = lambda: Iterates(table, starts.copy(), np.full((len(starts), 1), 4.1)).advance(316)  # noqa: E731
    return seconds(lambda: nsds.basins(table, grid=axes, progress=False), repeats), seconds(plain, repeats)


def exponents(part, repeats):
    """(seconds, floor) of exponents and of the run."""
    system, period, n = impact_oscillator(0.05, 2.8, 0.8), 2 * math.pi / 2.8, max(100, round(20_000 * part))
    with_vectors = lambda: nsds.lyapunov(system, period=period, n_periods=n, transient=0)  # noqa: E731
    return seconds(with_vectors, repeats), seconds(lambda: Carried("run", system, period, n_columns=0).advance(n), repeats)


def on_orbit(off=0.0):
    """(an oscillator on its orbit with one impact a period, or beside it; the period)."""
    _, phase, state, *_ = single_impact_orbit(0.05, 2.8, 0.8, 1, 0.0, 0.37)
    return impact_oscillator(0.05, 2.8, 0.8, 0.0, *(state + off), phase), 2 * math.pi / 2.8


def orbits(off, repeats):
    """(seconds, floor) of one orbit."""
    system, period = on_orbit(off)
    many = lambda run: lambda: [run() for _ in range(50)]  # noqa: E731
    found = seconds(many(lambda: nsds.orbit(system, period=period)), repeats) / 50
    run = Carried("orbit", system, period)

    def one_period():
        run.restart()
        run.advance(1)

    return found, seconds(many(one_period), repeats) / 50


def branch(repeats):
    """(seconds of 500 points, floor)."""
    system, _ = on_orbit()
    settings = {"parameter": "mass.z[0]", "until": 3.3, "period": lambda omega: 2 * math.pi / omega, "step": 4e-4, "max_points": 500}
    n_points = len(nsds.continue_orbit(system, **settings))
    run = Carried("branch", np.repeat(system, 3), 2 * math.pi / 2.8)

    def point():
        run.restart()
        run.advance(1)

    found = seconds(lambda: nsds.continue_orbit(system, **settings), repeats) * 500 / n_points
    return found, seconds(lambda: [point() for _ in range(500)], repeats)


def cluster(part):
    """Seconds of the pieces of a diagram on one worker, and on two."""
    from distributed import Client, LocalCluster

    speeds, turns = np.linspace(650, 750, max(64, round(500 * part))), max(200, round(TURNS * part))
    follower = nsds.examples.cam_follower(rpm=700.0)

    def run(client, rpm, n_turns):
        with tempfile.TemporaryDirectory() as store:
            began = time.perf_counter()
            nsds.sweep(follower, vary={"follower.z[0]": rpm}, period=turn, transient=n_turns - 40, keep=40, direction=None, client=client,
                       store=store, progress=False)  # fmt: skip
            return time.perf_counter() - began

    found = []
    for n_workers in (1, 2):
        with LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as local, Client(local) as client:
            client.wait_for_workers(n_workers)
            run(client, speeds, 60)  # each worker loads its kernels
            found.append(min(run(client, speeds, turns) for _ in range(2)))
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--part", type=float, default=1.0)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--no-cluster", action="store_true")
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    part, repeats, rows = given.part, given.repeats, []

    def tell(name, value, asked, floor):
        rows.append({"name": name, "value": value, "asked": asked, "floor": floor})
        print(f"{name:40s} {value:12.4g}   asked {asked:8.4g}   floor {floor:10.4g}", flush=True)

    value, floor = cam(part, repeats)
    tell("cam, 500 speeds x 2000 turns (s)", value, 30.0 * part**2, floor)
    value, floor = basins(part, repeats)
    tell("basins, 1000 x 1000 (s)", value, 60.0 * part, floor)
    value, floor = exponents(part, repeats)
    tell("Lyapunov exponents over the run (ratio)", value / floor, 2.5, 1.0)
    for name, off in (("orbit, started on it (ms)", 0.0), ("orbit, by Newton's method (ms)", 1e-3)):
        value, floor = orbits(off, repeats)
        tell(name, 1e3 * value, 1.0, 1e3 * floor)
    value, floor = branch(repeats)
    tell("branch, 500 points (s)", value, 1.0, floor)
    if not given.no_cluster:
        one, two = cluster(part)
        tell("two workers over one (ratio)", one / two, 1.8, 2.0)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
