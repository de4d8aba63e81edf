"""Spheres that settle in a box: ``python -m tests.benchmarks.rigid [--spheres N ...] [--steps N] [--peer N] [--settle N] [--json FILE]``.

Per step, on one thread and on all: ms, its share in detection, in sweeps and in the rest (assembly, states), contacts, sweeps, ns for each
contact and sweep. A sweep's time is that of the step less that of the same step with one sweep. Bits are compared between numbers of
threads. ``--settle N`` does nothing of this, but N steps of the first number of spheres, in up to 300 sweeps each: penetration, speed,
whether some sphere is outside. ``--peer N``: N spheres beside the other code in the same steps, where ``../shared/peer`` and the code
itself are at hand; its package is built with assertions, which cost it 13 times (500 spheres) to 38 times (1000) the time
(``../shared/peer/perf_baseline.md``).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import subprocess
import time
from pathlib import Path

import numba
import numpy as np

import nsds
from nsds.schemes.rigid import moreau_jean as scheme
from nsds.schemes.rigid import problem
from nsds.schemes.run import preparation
from tests.benchmarks.__main__ import find_peer
from tests.benchmarks.solvers import show
from tests.paths import PEER

_PEER_SCRIPT = PEER / "siconos_bench.py"
RADIUS, DENSITY, MU, H = 0.1, 1000.0, 0.3, 5e-3
OPTIONS = {"tol": 1e-4, "max_iter": 1000}
_REPEATS = 3


def pile(n):
    """n spheres on a slightly irregular grid above the floor of a box; the places of `granular` in ``../shared/peer``."""
    k, i = max(2, round(n ** (1 / 3))), np.arange(n)
    row, line, layer = i % k, i // k % k, i // k**2
    shift = 0.3 * (layer % 2)
    x = (row - (k - 1) / 2) * 2.02 + shift + 0.001 * (7 * i % 11 - 5)
    y = (line - (k - 1) / 2) * 2.02 + 0.7 * shift + 0.001 * (5 * i % 13 - 6)
    place, half = RADIUS * np.stack([x, y, 1.01 + 2.02 * layer], axis=1), 0.5 * (2.02 * k + 1.0) * RADIUS
    ball, planes = nsds.shapes.sphere(RADIUS), [nsds.shapes.plane()]
    planes += [nsds.shapes.plane(normal, -half) for normal in ([1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0])]
    mass, q = DENSITY * nsds.shapes.volume(ball), np.tile([0.0, 0, 0, 1, 0, 0, 0], (n, 1))
    q[:, :3] = place
    bodies = nsds.rigid_bodies(mass, 0.4 * mass * RADIUS**2, q=q, v=np.zeros((n, 6)), fext=[0, 0, -9.81 * mass])
    return nsds.system(balls=bodies, contacts=nsds.collisions({"balls": ball}, nsds.newton_impact_friction(0.0, MU), world=planes))


class March:
    """The steps of a simulation one by one, each of them to be taken again from the same state."""

    def __init__(self, n):
        solver = nsds.solvers.solver("bodies", **OPTIONS)
        self.run = preparation.prepare_run("benchmark", pile(n), H, nsds.moreau_jean(theta=0.50001), solver, False)[0]
        prepared, self.mem = self.run.prepared, self.run.mem[0]
        self.tables, self.functions, self.work, self.iwork = prepared.tables, prepared.functions[0], prepared.work[0], prepared.iwork[0]
        self.state = (self.mem, self.mem.view(np.int64), self.work, self.iwork)
        scheme.start(0.0, self.tables, self.functions, prepared.options, *self.state)
        self.steps = 0

    def step(self, limit):
        """(seconds, sweeps) of the next step, in up to so many sweeps."""
        options = self.run.solver_options._replace(max_iter=float(limit))
        began = time.perf_counter()
        status = scheme.step(
            (self.steps + 1) * H, self.tables, self.functions, self.run.solver, options, self.run.prepared.options, *self.state
        )[0]
        seconds = time.perf_counter() - began
        if status not in (nsds.status.CONVERGED, nsds.status.MAX_ITER, nsds.status.INEXACT):
            raise RuntimeError(f"step {self.steps}: {nsds.status.ADVICE[status]}")
        return seconds, int(self.work[self.tables.plan[0]["info"]])

    def measure(self):
        """The next step: seconds, of which seconds in detection and in sweeps; contacts, sweeps; whether it converged."""
        p, options = self.tables.plan[0], self.run.prepared.options
        kept = [array.copy() for array in (self.mem, self.work, self.iwork)]
        n_contacts, _ = problem.choose_active(options, self.tables, *self.state)
        short, _ = self.step(1)
        for array, copy in zip((self.mem, self.work, self.iwork), kept, strict=True):
            array[:] = copy
        seconds, sweeps = self.step(OPTIONS["max_iter"])
        m = p["n_bodies"]
        q, v = self.work[p["q"] : p["q"] + 7 * m], self.work[p["v"] : p["v"] + 6 * m]
        began = time.perf_counter()
        scheme.find_contacts(options, p["parallel"] != 0, self.tables.collisions, q, v, *self.state)
        detection = time.perf_counter() - began
        self.steps += 1
        residual = self.work[p["info"] + 1]
        solving = max(seconds - short, 0.0) * sweeps / max(sweeps - 1, 1)
        return seconds, detection, solving, n_contacts, sweeps, residual <= OPTIONS["tol"]


def row(n, n_steps, threads):
    """(figures of a march of n spheres, its last state)."""
    numba.set_num_threads(threads)
    march = March(n)
    seconds, detection, solving, contacts, sweeps, solved = np.array([march.measure() for _ in range(n_steps)]).T
    work, total = (contacts * np.maximum(sweeps - 1, 0)).sum(), seconds.sum()
    figures = {"name": f"{n} spheres", "threads": threads, "ms": 1e3 * seconds.mean(), "late_ms": 1e3 * seconds[n_steps // 2 :].mean()}
    figures |= {"detection": 100 * detection.sum() / total, "sweeping": 100 * solving.sum() / total}
    figures["rest"] = 100 - figures["detection"] - figures["sweeping"]
    figures |= {"contacts": contacts[-1], "sweeps": sweeps.mean(), "unsolved": n_steps - solved.sum()}
    figures["ns"] = 1e9 * (solving * np.maximum(sweeps - 1, 0) / np.maximum(sweeps, 1)).sum() / work if work else None
    return figures, march.mem.copy()


COLUMNS = (
    ("threads", "threads", 8, 0), ("ms", "ms/step", 9, 2), ("late_ms", "2nd half", 9, 2), ("detection", "% detect", 9, 1),
    ("sweeping", "% sweeps", 9, 1), ("rest", "% rest", 7, 1), ("contacts", "contacts", 9, 0), ("sweeps", "sweeps", 7, 0),
    ("unsolved", "unsolved", 9, 0), ("ns", "ns/(c s)", 9, 1), ("peer_ms", "peer ms", 9, 1), ("ratio", "ratio", 7, 1),
)  # fmt: skip


def compiled():
    """All that is measured, once."""
    for threads in {1, numba.config.NUMBA_NUM_THREADS}:
        row(2000, 12, threads)


def peer_row(python, n, n_steps):
    """A march of n spheres beside that of the peer, in turns."""
    own, others = [], []
    for _ in range(_REPEATS):
        own.append(row(n, n_steps, 1)[0])
        command = [python, str(_PEER_SCRIPT), "granular", f"n={n}", f"steps={n_steps}"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        others.append(json.loads(printed.splitlines()[-1])["us_per_step"] / 1e3)
    best = min(own, key=lambda figures: figures["ms"])
    return best | {"peer_ms": min(others), "ratio": min(others) / best["ms"]}


def settle(n, n_steps):
    """A long march of n spheres: a line for each tenth of it."""
    system, solver = pile(n), nsds.solvers.solver("bodies", tol=OPTIONS["tol"], max_iter=300)
    half, began, tenth = 0.5 * (2.02 * max(2, round(n ** (1 / 3))) + 1.0) * RADIUS, time.perf_counter(), n_steps // 10
    run = {"scheme": nsds.moreau_jean(theta=0.50001), "solver": solver, "on_failure": "continue", "save_every": tenth}
    for k in range(10):
        rows = nsds.simulate(system, t_end=(k + 1) * tenth * H, h=H, **run)
        system = nsds.restart(system, rows[-1])
        q, v, gap = rows["balls"]["q"][-1], rows["balls"]["v"][-1], rows["contacts"]["y"][-1].min()
        outside = (abs(q[:, :2]).max(axis=1) > half).sum() + (q[:, 2] < 0.0).sum() + (~np.isfinite(q).all(axis=1)).sum()
        head = f"{(k + 1) * tenth:6d} steps, {time.perf_counter() - began:6.1f} s: {rows['contacts']['n'][-1]} contacts, deepest"
        speed = np.linalg.norm(v[:, :3], axis=1).max()
        print(f"{head} {-gap / RADIUS:.4f} radii, fastest {speed:.2e} m/s, highest {q[:, 2].max():.3f} m, outside {outside}", flush=True)


def main():
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spheres", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--settle", type=int, metavar="STEPS")
    parser.add_argument("--peer", type=int, default=100, help="spheres beside the peer; 0: none")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.settle:
        settle(arguments.spheres[0], arguments.settle)
        return
    compiled()
    rows, python = [], find_peer()
    for n in arguments.spheres:
        states = []
        for threads in sorted({1, numba.config.NUMBA_NUM_THREADS}):
            figures, state = min((row(n, arguments.steps, threads) for _ in range(_REPEATS)), key=lambda one: one[0]["ms"])
            states.append(state)
            rows.append(figures)
        print(f"{n} spheres: the bits are {'the same' if len({state.tobytes() for state in states}) == 1 else 'NOT the same'}")
    if arguments.peer and python and _PEER_SCRIPT.exists():
        rows.append(peer_row(python, arguments.peer, arguments.steps))
    print(f"{'':16s}" + "".join(f"{title:>{width}s}" for _, title, width, _ in COLUMNS))
    for figures in rows:
        print(f"{figures['name']:16s}" + "".join(show(figures.get(key), width, digits) for key, _, width, digits in COLUMNS))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
