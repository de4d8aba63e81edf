"""Spheres that settle in a box, and lie in it: ``python -m tests.benchmarks.rigid [--spheres N ...] [--steps N] [--peer N] [--json FILE]``.

Per step, on one thread and on all: ms, its share in detection, in sweeps and in the rest (assembly, states), contacts, sweeps, ns for each
contact and sweep. A sweep's time is that of the step less that of the same step with one sweep. Bits are compared between numbers of
threads. Beside them what sweeps read and write, in MB a step, and what share of the machine's bandwidth for so many bytes that is; and a
hand-written step, which finds the contacts and takes as many sweeps over as many contacts, on one thread. Below the table: the condition
of the normal block of 1000 spheres, and the sweeps that follow from it. Then whole runs by the defaults, from drop to rest: processor time
a step on the mean, of the first 40 beside it, steps that are not clean, and the deepest overlap at the ends of 40 steps; and those of
the scenes of ``../shared/peer/contact_scenes.py``, where it is at hand.

``--growth N ...`` measures other things instead: seconds to build so many spheres that touch, bytes, ns a contact. ``--settle N``: N steps
of the first number of spheres, in up to 300 sweeps each: penetration, speed, whether some sphere is outside. ``--peer N``: N spheres
beside the other code in the same steps, where ``../shared/peer`` and the code itself are at hand; its package is built with assertions,
which cost it 13 times (500 spheres) to 38 times (1000) the time (``../shared/peer/perf_baseline.md``).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numba
import numpy as np

import nsds
from nsds.schemes.memory import Calls, Memory
from nsds.schemes.rigid import moreau_jean as scheme
from nsds.schemes.rigid import problem
from nsds.schemes.run import preparation
from nsds.solvers.bodies.rigid_contact import BODY, record_size
from tests.benchmarks import machine, sphere_floors
from tests.benchmarks.__main__ import find_peer
from tests.benchmarks.solvers import show
from tests.paths import PEER

_PEER_SCRIPT = PEER / "siconos_bench.py"
RADIUS, DENSITY, MU, H = 0.1, 1000.0, 0.3, 5e-3
OPTIONS = {"tol": 1e-4, "max_iter": 1000}
_REPEATS, _FEW_REPEATS, _MOST_AT_REST, _ON_ONE = 3, 50_000, 1000, 1000
SWEEPS = 20  # of steps that show growth, which are not solved
SIZES = [10**k for k in range(2, 7)]
FIRST, WHOLE = 40, 440  # steps of the beginning of a run, and of all of it
_LOADING = 400  # steps of a scene that are not timed, in which compiled code is loaded, that of rare steps, too
SCENES = (
    "stack10", "stack20", "ratio_tower", "wall200", "arch60", "welded12", "rolling600", "sliding600", "silo2000", "tube2500",
    "spheres1000_whole", "spheres10000",
)  # fmt: skip
TARGETS = {"1000 settling": 2, "10000 settling": 15, "100000 settling": 150}  # ms a step
# Bytes for each contact and sweep: its record, r and r_before, its bodies' numbers and records; r, r_before, velocities.
READ, WRITTEN = 8 * (record_size(3) + 6 + 2 + 2 * BODY), 8 * (6 + 2 * 6)


def half_width(n):
    """Of the box of n spheres."""
    return 0.5 * (2.02 * max(2, round(n ** (1 / 3))) + 1.0) * RADIUS


def pile(n):
    """n spheres on a slightly irregular grid above the floor of a box; the places of `granular` in ``../shared/peer``."""
    k, i = max(2, round(n ** (1 / 3))), np.arange(n)
    row, line, layer = i % k, i // k % k, i // k**2
    shift = 0.3 * (layer % 2)
    x = (row - (k - 1) / 2) * 2.02 + shift + 0.001 * (7 * i % 11 - 5)
    y = (line - (k - 1) / 2) * 2.02 + 0.7 * shift + 0.001 * (5 * i % 13 - 6)
    return _in_a_box(RADIUS * np.stack([x, y, 1.01 + 2.02 * layer], axis=1))


def packed(n):
    """n spheres on a cubic grid that touch their neighbours and the floor, and fly apart and together."""
    k, i = max(2, round(n ** (1 / 3))), np.arange(n)
    place = np.stack([i % k - (k - 1) / 2, i // k % k - (k - 1) / 2, i // k**2 + 0.5], axis=1)
    return _in_a_box(2.0 * (1.0 - 1e-6) * RADIUS * place, np.random.default_rng(0).uniform(-1.0, 1.0, (n, 6)))


@cache
def settled(n):
    """The spheres of `pile` after three seconds, at rest but for some rolling."""
    solver, steps = nsds.solvers.solver("bodies", tol=OPTIONS["tol"], max_iter=300), 600
    how = {"h": H, "scheme": nsds.moreau_jean(theta=0.50001), "solver": solver, "save_every": steps, "on_failure": "continue"}
    return nsds.restart(pile(n), nsds.simulate(pile(n), t_end=steps * H, progress=False, **how)[-1])


def _in_a_box(place, v=0.0):
    n, half = len(place), half_width(len(place))
    ball, planes = nsds.shapes.sphere(RADIUS), [nsds.shapes.plane()]
    planes += [nsds.shapes.plane(normal, -half) for normal in ([1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0])]
    mass, q = DENSITY * nsds.shapes.volume(ball), np.tile([0.0, 0, 0, 1, 0, 0, 0], (n, 1))
    q[:, :3] = place
    bodies = nsds.rigid_bodies(mass, 0.4 * mass * RADIUS**2, q=q, v=np.broadcast_to(v, (n, 6)), fext=[0, 0, -9.81 * mass])
    return nsds.system(balls=bodies, contacts=nsds.collisions({"balls": ball}, nsds.newton_impact_friction(0.0, MU), world=planes))


class March:
    """The steps of a simulation one by one, each of them to be taken again from the same state."""

    def __init__(self, system):
        solver = nsds.solvers.solver("bodies", **OPTIONS)
        self.run = preparation.prepare_run("benchmark", system, H, nsds.moreau_jean(theta=0.50001), solver, False)[0]
        prepared, self.mem = self.run.prepared, self.run.mem[0]
        self.tables, self.functions, self.work, self.iwork = prepared.tables, prepared.functions[0], prepared.work[0], prepared.iwork[0]
        self.memory = Memory(self.mem, self.mem.view(np.int64), self.work, self.iwork)
        scheme.start(0.0, self.tables, self.functions, prepared.options, self.memory)
        self.steps = 0

    def step(self, limit):
        """(seconds, sweeps) of the next step, in up to so many sweeps."""
        options = self.run.solver_options._replace(max_iter=float(limit))
        began = time.perf_counter()
        calls = Calls(self.functions, self.run.solver, options)
        status = scheme.step((self.steps + 1) * H, self.tables, calls, self.run.prepared.options, self.memory)[0]
        seconds = time.perf_counter() - began
        if status not in (nsds.status.CONVERGED, nsds.status.MAX_ITER, nsds.status.INEXACT):
            raise RuntimeError(f"step {self.steps}: {nsds.status.ADVICE[status]}")
        return seconds, int(self.work[self.tables.plan[0]["info"]])

    def measure(self, limit=OPTIONS["max_iter"]):
        """The next step: seconds, of which seconds in detection and in sweeps; contacts, sweeps, up to a limit; whether it converged."""
        p, options = self.tables.plan[0], self.run.prepared.options
        kept = [array.copy() for array in (self.mem, self.work, self.iwork)]
        n_contacts, _ = problem.choose_active(options, self.tables, self.memory)
        short, _ = self.step(1)
        for array, copy in zip((self.mem, self.work, self.iwork), kept, strict=True):
            array[:] = copy
        seconds, sweeps = self.step(limit)
        m = p["n_bodies"]
        q, v = self.work[p["q"] : p["q"] + 7 * m], self.work[p["v"] : p["v"] + 6 * m]
        began = time.perf_counter()
        scheme.find_contacts(options, p["parallel"] != 0, self.tables.collisions, q, v, self.memory)
        detection = time.perf_counter() - began
        self.steps += 1
        residual = self.work[p["info"] + 1]
        solving = max(seconds - short, 0.0) * sweeps / max(sweeps - 1, 1)
        return seconds, detection, solving, n_contacts, sweeps, residual <= OPTIONS["tol"]


def row(system, name, n_steps, threads):
    """(figures of a march, the march at its end)."""
    numba.set_num_threads(threads)
    march = March(system)
    seconds, detection, solving, contacts, sweeps, solved = np.array([march.measure() for _ in range(n_steps)]).T
    work, total = (contacts * np.maximum(sweeps - 1, 0)).sum(), seconds.sum()
    figures = {"name": name, "threads": threads, "ms": 1e3 * seconds.mean(), "late_ms": 1e3 * seconds[n_steps // 2 :].mean()}
    figures |= {"detection": 100 * detection.sum() / total, "sweeping": 100 * solving.sum() / total}
    figures["rest"] = 100 - figures["detection"] - figures["sweeping"]
    figures |= {"contacts": contacts[-1], "sweeps": sweeps.mean(), "unsolved": n_steps - solved.sum()}
    figures["ns"] = 1e9 * (solving * np.maximum(sweeps - 1, 0) / np.maximum(sweeps, 1)).sum() / work if work else None
    figures["swept"] = (contacts * sweeps).mean()
    return figures, march


def beside_floors(figures, march):
    """Bytes that sweeps move, as a share of what memory gives for so many; operations; the hand-written step."""
    balls, threads, contacts = march.run.records[0]["balls"], figures["threads"], max(figures["contacts"], 1)
    n = len(balls["q"])
    size = contacts * 8 * (record_size(3) + 8) + n * 8 * (BODY + 6)
    reading, writing = (machine.bandwidth(kind, int(size / threads), threads) for kind in ("read", "write"))
    mass = DENSITY * nsds.shapes.volume(nsds.shapes.sphere(RADIUS))
    by_hand = sphere_floors.Pile(balls["q"][:, :3], balls["v"], RADIUS, mass, half_width(n))
    finding, sweeping, operations = by_hand.measure(MU)
    swept = figures["swept"]
    figures |= {"MB": 1e-6 * (READ + WRITTEN) * swept, "Mflop": 1e-6 * operations * swept, "floor": 1e3 * (finding + sweeping * swept)}
    figures |= {"pace": 1e5 * swept * (READ / reading + WRITTEN / writing) / (0.01 * figures["sweeping"] * figures["ms"])}
    figures |= {"GBs": 1e-9 * (READ + WRITTEN) / (READ / reading + WRITTEN / writing), "ratio_floor": figures["ms"] / figures["floor"]}
    return figures


def condition(march):
    """(ratio of the extreme eigenvalues other than 0 of the normal block of W, of bodies in contact; sweeps that gain 1 / tol by it).

    A method of conjugate gradients needs ``sqrt(ratio) ln(2 / tol) / 2`` products with the matrix, each of which costs what a sweep does,
    without a guess.
    """
    balls = march.run.records[0]["balls"]
    mass = DENSITY * nsds.shapes.volume(nsds.shapes.sphere(RADIUS))
    pile_ = sphere_floors.Pile(balls["q"][:, :3], balls["v"], RADIUS, mass, half_width(len(balls["q"])))
    H_n, n = np.zeros((pile_.n_contacts, 3 * len(balls["q"]) + 3)), pile_.n_contacts
    for side, sign in ((0, 1.0), (1, -1.0)):
        for a in range(3):
            H_n[np.arange(n), 3 * pile_.ids[:n, side] + a] = sign * pile_.normals[:n, a]
    values = np.linalg.eigvalsh(H_n[:, :-3] @ H_n[:, :-3].T)
    ratio = values[-1] / values[values > 1e-9 * values[-1]][0]
    return ratio, 0.5 * np.sqrt(ratio) * np.log(2 / OPTIONS["tol"])


def growth(n):
    """Figures of n spheres that touch: seconds to build them, bytes, ns a contact of detection, of a sweep and of the rest of a step."""
    first, _ = _timed(packed, n)
    again, system = _timed(packed, n)
    preparing, march = _timed(March, system)
    found = [march.measure(SWEEPS), *(March(system).measure(SWEEPS) for _ in range(_REPEATS if n < _FEW_REPEATS else 0))]
    total, detection, solving, contacts, sweeps, _ = min(found)
    size = march.mem.nbytes + march.work.nbytes + march.iwork.nbytes
    figures = {"name": f"{n} spheres", "first": first, "again": again, "preparing": preparing, "contacts": contacts, "ms": 1e3 * total}
    figures |= {"bytes": size / contacts, "detection": 1e9 * detection / contacts, "ns": 1e9 * solving / contacts / sweeps}
    return figures | {"rest": 1e9 * (total - detection - solving) / contacts}


def _timed(function, *arguments):
    began = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - began, result


COLUMNS = (
    ("threads", "threads", 8, 0), ("ms", "ms/step", 9, 2), ("late_ms", "2nd half", 9, 2), ("detection", "% detect", 9, 1),
    ("sweeping", "% sweeps", 9, 1), ("rest", "% rest", 7, 1), ("contacts", "contacts", 9, 0), ("sweeps", "sweeps", 7, 0),
    ("unsolved", "unsolved", 9, 0), ("ns", "ns/(c s)", 9, 1), ("MB", "MB", 8, 1), ("pace", "% memory", 9, 0), ("floor", "floor ms", 9, 2),
    ("ratio_floor", "x floor", 8, 1), ("target", "target", 7, 0), ("peer_ms", "peer ms", 9, 1), ("ratio", "ratio", 7, 1),
)  # fmt: skip
OF_WHOLE = (
    ("ms", "ms/step", 9, 2), ("first", "first 40", 9, 2), ("last", "last 40", 9, 2), ("unclean", "not clean", 10, 0),
    ("overlap", "% overlap", 10, 2),
)  # fmt: skip
OF_SCENES = (
    ("bodies", "bodies", 8, 0), ("contacts", "contacts", 10, 0), ("steps", "steps", 7, 0), ("ms", "ms/step", 9, 3),
    ("unclean", "not clean", 10, 0),
)  # fmt: skip
OF_GROWTH = (
    ("first", "build s", 9, 3), ("again", "again s", 9, 3), ("preparing", "prepare s", 10, 3), ("contacts", "contacts", 10, 0),
    ("bytes", "B/contact", 10, 0), ("ms", "ms/step", 10, 2), ("detection", "ns detect", 10, 0), ("ns", "ns/(c s)", 9, 1),
    ("rest", "ns rest", 9, 0),
)  # fmt: skip


def compiled():
    """All that is measured, once."""
    for threads in {1, numba.config.NUMBA_NUM_THREADS}:
        row(pile(2000), "", 12, threads)
        numba.set_num_threads(threads)
        March(packed(20_000)).measure(2)


def peer_row(python, n, n_steps):
    """A march of n spheres beside that of the peer, in turns."""
    own, others = [], []
    for _ in range(_REPEATS):
        own.append(row(pile(n), f"{n} settling", n_steps, 1)[0])
        command = [python, str(_PEER_SCRIPT), "granular", f"n={n}", f"steps={n_steps}"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        others.append(json.loads(printed.splitlines()[-1])["us_per_step"] / 1e3)
    best = min(own, key=lambda figures: figures["ms"])
    return best | {"peer_ms": min(others), "ratio": min(others) / best["ms"]}


def settle(n, n_steps):
    """A long march of n spheres: a line for each tenth of it."""
    system, solver = pile(n), nsds.solvers.solver("bodies", tol=OPTIONS["tol"], max_iter=300)
    half, began, tenth = half_width(n), time.perf_counter(), n_steps // 10
    run = {"scheme": nsds.moreau_jean(theta=0.50001), "solver": solver, "on_failure": "continue", "save_every": tenth}
    for k in range(10):
        rows = nsds.simulate(system, t_end=(k + 1) * tenth * H, h=H, **run)
        system = nsds.restart(system, rows[-1])
        q, v, gap = rows["balls"]["q"][-1], rows["balls"]["v"][-1], rows["contacts"]["y"][-1].min()
        outside = (abs(q[:, :2]).max(axis=1) > half).sum() + (q[:, 2] < 0.0).sum() + (~np.isfinite(q).all(axis=1)).sum()
        head = f"{(k + 1) * tenth:6d} steps, {time.perf_counter() - began:6.1f} s: {rows['contacts']['n'][-1]} contacts, deepest"
        speed = np.linalg.norm(v[:, :3], axis=1).max()
        print(f"{head} {-gap / RADIUS:.4f} radii, fastest {speed:.2e} m/s, highest {q[:, 2].max():.3f} m, outside {outside}", flush=True)


def rows_of(sizes, n_steps):
    """Rows of piles that settle, and of up to 1000 spheres at rest, on one thread and on all; says whether they have the same bits."""
    for n in sizes:
        for state, build in {"settling": pile, "resting": settled}.items():
            if state == "resting" and n > _MOST_AT_REST:
                continue
            ends, system, repeats = set(), build(n), _REPEATS if n < _FEW_REPEATS and state == "settling" else 1
            for threads in sorted({1, numba.config.NUMBA_NUM_THREADS}):
                name = f"{n} {state}"
                figures, march = min((row(system, name, n_steps, threads) for _ in range(repeats)), key=lambda one: one[0]["ms"])
                ends.add(march.mem.tobytes())
                if threads > 1 or n <= _ON_ONE:
                    figures["target"] = TARGETS.get(name)
                yield beside_floors(figures, march)
            print(f"{n} {state}: the bits are {'the same' if len(ends) == 1 else 'NOT the same'} on any number of threads")


def whole(n, n_steps=WHOLE):
    """Figures of n spheres by the defaults from drop to rest: ms of processor time a step, of the whole run and of its beginning."""
    system, spent, deepest = pile(n), [], 0.0
    advance = nsds.stepper(system, h=H, on_failure="continue")
    advance(system)
    for _ in range(n_steps // FIRST):
        began = time.process_time()
        system = advance(system, n=FIRST)
        spent.append((time.process_time() - began) / FIRST)
        deepest = max(deepest, -system["contacts"]["y"][: system["contacts"]["n"]].min(initial=0.0))
    rows = nsds.simulate(pile(n), t_end=n_steps * H, h=H, fields=("balls.v",), on_failure="continue", progress=False)
    figures = {"name": f"{n} spheres", "ms": 1e3 * np.mean(spent), "first": 1e3 * spent[0], "last": 1e3 * spent[-1]}
    return figures | {"unclean": int((rows["status"] != 0).sum()), "overlap": 100 * deepest / RADIUS}


def whole_scenes(names=SCENES):
    """Figures of whole runs of scenes of ``../shared/peer/contact_scenes.py`` by the defaults, those before the clock of that script, too.

    Processor time of one thread, which depends little on what else the machine does; no rows where the script is not at hand.
    """
    file = PEER / "contact_scenes.py"
    if not file.exists():
        return
    specification = importlib.util.spec_from_file_location(file.stem, file)
    module = sys.modules[file.stem] = importlib.util.module_from_spec(specification)  # dataclasses look their module up
    specification.loader.exec_module(module)
    numba.set_num_threads(1)
    for name in names:
        scene = module.SCENES[name]()
        system, steps = module.ours(scene), scene.before + scene.steps
        run = {"h": scene.h, "fields": ("contacts.n",), "on_failure": "continue", "progress": False}
        nsds.simulate(system, t_end=min(steps, _LOADING) * scene.h, **run)
        began = time.process_time()
        rows = nsds.simulate(system, t_end=steps * scene.h, **run)
        figures = {"name": name, "ms": 1e3 * (time.process_time() - began) / steps, "steps": steps, "bodies": len(scene.bodies)}
        yield figures | {"contacts": int(rows["contacts"]["n"].max()), "unclean": int((rows["status"] != 0).sum())}


def limits(rows):
    """What keeps piles from their targets, line by line."""
    for figures in rows:
        ms, target, floor = figures["ms"], figures.get("target"), figures["floor"]
        if target and ms > target:
            threads = "one thread" if figures["threads"] == 1 else f"{figures['threads']} threads"
            head = f"{figures['name']}, {threads}: {ms:.1f} ms, {target} asked; {figures['sweeping']:.0f} % of it in"
            yield f"{head} {figures['sweeps']:.0f} sweeps, {figures['detection']:.0f} % in detection; by hand as many take {floor:.1f} ms"


def limit_of_sweeps():
    """What the condition of a pile at rest says about the number of sweeps."""
    ratio, sweeps = condition(March(settled(1000)))
    return f"1000 resting: condition of the normal block {ratio:.1e}; from no guess, conjugate gradients need {sweeps:.0f} sweeps"


def table(rows, columns):
    """Print rows as they come; returns them."""
    print(f"{'':16s}" + "".join(f"{title:>{width}s}" for _, title, width, _ in columns))
    kept = []
    for figures in rows:
        print(f"{figures['name']:16s}" + "".join(show(figures.get(key), width, digits) for key, _, width, digits in columns), flush=True)
        kept.append(figures)
    return kept


def main():
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spheres", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--settle", type=int, metavar="STEPS")
    parser.add_argument("--growth", type=int, nargs="*", metavar="N", help="sizes; without a number 10^2 to 10^6")
    parser.add_argument("--peer", type=int, default=100, help="spheres beside the peer; 0: none")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.settle:
        settle(arguments.spheres[0], arguments.settle)
        return
    compiled()
    if arguments.growth is not None:
        rows = table(map(growth, arguments.growth or SIZES), OF_GROWTH)
    else:
        rows = table(rows_of(arguments.spheres, arguments.steps), COLUMNS)
        print(*limits(rows), limit_of_sweeps(), sep="\n")
        table(map(whole, (n for n in arguments.spheres if n <= _MOST_AT_REST)), OF_WHOLE)
        table(whole_scenes(), OF_SCENES)
        python = find_peer()
        if arguments.peer and python and _PEER_SCRIPT.exists():
            table([peer_row(python, arguments.peer, arguments.steps)], COLUMNS)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
