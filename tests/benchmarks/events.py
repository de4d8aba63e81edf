"""Event-driven runs beside the peer's, and the cam follower's.

``python -m tests.benchmarks.events [--only TEXT] [--repeats N] [--speeds N] [--turns N] [--no-peer]``: the same models with the same rows
and tolerances, in turns in one run; the least of the repeats counts, of the compiled loop here and of the peer's loop without its
initialisation. Events are impacts and rows, at both of which the peer stops too; what is between them counts, so that events that are far
apart cost more. Here every row is kept, two at each impact; there times of impacts alone. Runs end before bodies come to rest, that of 20
beads before the peer fails. "apart" is the largest relative difference of the times of impacts, as many as the two motions share.

Last the cam follower at 500 speeds, 500 turns each, with exact flow: corners of the cam, seven a turn, are among its events.
"""

import os

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import argparse
import json
import math
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import nsds
from nsds.status import EVENT, JUMP
from tests.benchmarks.__main__ import find_peer
from tests.benchmarks.workloads import column, loop_clock

_RTOL = 1e-9
_APART = 1e-6  # farther apart motions are other ones


class Run(NamedTuple):
    """A model by events, and the peer's workload of it."""

    name: str
    build: Callable
    t_end: float
    h: float
    peer: str


def _pull(t, q, v, z, out):
    out[0] = 9.81 * math.sin(q[0])


def pendulum_at_a_stop():
    """One angle, held above -0.3."""
    stop = nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]], b=[0.3]), nsds.newton_impact(0.9), on="pendulum")
    return nsds.system(pendulum=nsds.lagrangian(mass=[1.0], fint=_pull, q=[1.0], v=[0.0]), stop=stop)


RUNS = [
    *(Run(f"ball, rows {h:g} s apart", nsds.examples.bouncing_ball, 8.0, h, f"ball_by_events h={h} T=8") for h in (1.0, 5e-3)),
    *(Run(f"pendulum, rows {h:g} s apart", pendulum_at_a_stop, 10.0, h, f"pendulum_by_events h={h} T=10") for h in (1.0, 5e-3)),
    *(Run(f"chain of {n}", lambda n=n: column(n, False), t_end, 0.1, f"chain_by_events n={n} h=0.1 T={t_end}")
      for n, t_end in ((3, 0.5), (10, 0.5), (20, 0.4))),
]  # fmt: skip


def ours(run, flow):
    """(seconds of the compiled loop, times of impacts)."""
    with loop_clock() as spent:
        rows = nsds.simulate(run.build(), t_end=run.t_end, h=run.h, scheme=nsds.event_driven(_RTOL, 1e-3 * _RTOL, flow), progress=False)
    return sum(spent), rows["t"][impacts_of(rows)]


def impacts_of(rows):
    """Which rows are those after an impact."""
    return rows["status"] & (EVENT | JUMP) == EVENT | JUMP


def peers(run, python):
    """(seconds, times of impacts) of the peer."""
    command = [python, str(Path(__file__).with_name("peer.py")), *run.peer.split(), f"rtol={_RTOL}"]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()[-1])
    return found["seconds"], np.array(found["impacts"])


def apart(one, other):
    """Largest relative difference of the times that two motions share, and how many they are."""
    n = min(len(one), len(other))
    off = abs(one[:n] - other[:n]) / other[:n]
    shared = n if (off < _APART).all() else int(np.argmax(off >= _APART))
    return off[:shared].max(initial=0.0), shared


def compare(run, python, repeats):
    """A line of the table for each of our flows."""
    flows = ("exact", "dopri5") if "pendulum" not in run.name else ("dopri5",)
    for flow in flows:
        ours(run, flow)  # what is compiled or loaded is not counted
    taken, times = dict.fromkeys((*flows, "peer"), math.inf), {}
    for _ in range(repeats):
        for way in taken if python else flows:
            seconds, times[way] = peers(run, python) if way == "peer" else ours(run, way)
            taken[way] = min(taken[way], seconds)
    for flow in flows:
        events = len(times[flow]) + round(run.t_end / run.h)
        line = f"{run.name:<28}{flow:>8}{len(times[flow]):8}{events:8}{1e3 * taken[flow]:10.3f}{1e6 * taken[flow] / events:10.2f}"
        if python:
            other, (off, shared) = len(times["peer"]) + round(run.t_end / run.h), apart(times[flow], times["peer"])
            line += f"{1e3 * taken['peer']:10.3f}{1e6 * taken['peer'] / other:10.2f}{taken['peer'] / taken[flow]:9.1f}"
            line += f"{off:10.0e}{shared:6} of {len(times['peer'])}"
        print(line, flush=True)


def cam(n_speeds, n_turns):
    """The cam follower by exact flow: seconds of the compiled loops and in all, how many impacts, and how many events with corners."""
    arcs = np.array([0.0, 1.050328174371336, 1.22173047639603])  # angles at which the profile of the rising side changes
    pi = 3.14159265  # of the study
    corners = np.sort(np.r_[arcs, pi - arcs, pi / 2]) / (2 * pi)
    impacts, events, loop, began = 0, 0, 0.0, time.perf_counter()
    for rpm in np.linspace(358.0, 750.0, n_speeds):
        period = 60 / rpm
        scheme = nsds.event_driven(flow="exact", time_events=((np.arange(n_turns)[:, None] + corners) * period).ravel())
        with loop_clock() as spent:
            rows = nsds.simulate(nsds.examples.cam_follower(rpm), t_end=n_turns * period, h=period, scheme=scheme, progress=False)
        loop += sum(spent)
        impacts += np.count_nonzero(impacts_of(rows))
        events += np.count_nonzero(rows["status"] & EVENT) // 2
    return loop, time.perf_counter() - began, impacts, events


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--speeds", type=int, default=500)
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    python = None if arguments.no_peer else find_peer()
    print(f"peer: {'Siconos of the system python (Debian builds it with assertions)' if python else 'not found'}, rtol {_RTOL:g}")
    titles = (("impacts", 8), ("events", 8), ("ms", 10), ("µs/event", 10), ("peer ms", 10), ("µs/event", 10), ("ratio", 9), ("apart", 10))
    print(f"{'run':<28}{'flow':>8}" + "".join(f"{title:>{width}}" for title, width in titles) + "  shared")
    for run in RUNS:
        if arguments.only in run.name:
            compare(run, python, arguments.repeats)
    if arguments.only in "cam follower":
        cam(1, 20)
        loop, wall, impacts, events = cam(arguments.speeds, arguments.turns)
        print(f"cam follower, {arguments.speeds} speeds x {arguments.turns} turns: {loop:.2f} s in compiled loops, {wall:.2f} s in all;")
        print(f"{impacts} impacts, {events} events: {1e6 * loop / impacts:.2f} µs an impact, {1e6 * loop / events:.2f} µs an event")


if __name__ == "__main__":
    main()
