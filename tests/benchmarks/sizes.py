"""How the cost of a run grows with the model: ``python -m tests.benchmarks.sizes [SCENE ...] [--sizes N ...] [--write]``.

Scenes: ``sandpile``, a heat equation with a relay per node, 100 steps of 1 ms; ``ladder``, a netlist of sections with R, C, and a diode
with a resistor to ground, 1000 steps of 5 us; ``chain``, masses on cubic springs by a function, with one stop, 100 steps of 1 ms;
``membrane``, so many nodes over a floor, a contact each, 100 steps of 5 ms; ``plate``, so many contacts with friction in the plane under
an elastic strip that is pressed and sheared, with 100 states for each, 20 steps of 2 ms. ``ladder-events`` and ``chain-events`` move
event by event. For each size: seconds to state the model, of a run of one step and of the whole run, microseconds of a further step, the
peak of memory, and growth, the power of the size by which all of it takes longer than with the size before; at the end that power from
the first size to the last. Each size runs in a process of its own, on one thread; times are those of the processor. ``--write`` puts the
scenes into the section of this name in docs/performance.md, which the rest of that page leaves as it is.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import math
import resource
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

import nsds
from tests.benchmarks import machine
from tests.benchmarks.pages import OF_SIZES, PAGE, replaced, table
from tests.schemes.lagrangian.elastic_blocks import elastic_block

_TEXT = """{heading}

Made by `python -m tests.benchmarks.sizes --write`, on {machine}, with nsds {version}, at a load of {load:.0f} of others:
seconds of the processor, on one thread, to state the model, of a run of one step, and of a whole run, both with all that is prepared; a
further step; the peak of memory of the process. The last three columns are the powers of the size by which the time of statement and run,
that of a further step, and memory, grow from the row before; behind the last size, those from the first to the last.

- **sandpile**: heat equation with a relay at each node, 100 steps. **membrane**: a square of nodes over a floor, a contact each, 100 steps.
- **ladder**: sections of R, C and a diode with a resistor, as a netlist, 1000 steps.
- **chain**: masses on cubic springs by a function, one stop, 100 steps.
- **plate**: contacts in friction under an elastic strip, 100 states for each, 20 steps.
- What ends in **-events** moves event by event.

{table}
"""


def sandpile(n):
    """(record, h, steps)."""
    identity = sp.eye_array(n).tocsr()
    A = sp.diags_array([np.full(n - 1, 10.0), np.full(n, -20.0), np.full(n - 1, 10.0)], offsets=[-1, 0, 1]).tocsr()
    friction = nsds.interaction(nsds.first_order_linear_relation(C=identity, B=identity), nsds.relay(-0.1, 0.1), on="plant")
    return nsds.system(plant=nsds.first_order_linear(A=A, x=np.linspace(-1, 1, n)), friction=friction), 1e-3, 100


def ladder(n):
    """(record, h, steps)."""
    lines = ["ladder", ".model dx D", "V1 n0 0 SIN(0 10 1k)"]
    for k in range(n):
        lines += [f"R{k} n{k} n{k + 1} 10", f"C{k} n{k + 1} 0 1u IC=0", f"D{k} n{k + 1} d{k} dx", f"Rd{k} d{k} 0 100"]
    return nsds.circuit("\n".join(lines)), 5e-6, 1000


def plate(n):
    """(record, h, steps): n contacts at the lower nodes of linear elements, 25 nodes in height; q and v together are the states."""
    _, M, K = elastic_block([np.linspace(0.0, 10.0, n), np.linspace(0.0, 240.0 / (n - 1), 25)], E=1e4)
    bottom, top = np.arange(0, 25 * n, 25), np.arange(24, 25 * n, 25)
    rows = np.arange(2 * n)
    H = sp.csr_array((np.ones(2 * n), (rows, (2 * bottom[:, None] + [1, 0]).reshape(-1))), shape=(2 * n, 50 * n))
    force = np.zeros((25 * n, 2))
    force[top] = np.array([25.0, -100.0]) / n
    law, rest = nsds.newton_impact_friction(e_n=0.0, mu=0.3), np.zeros(50 * n)
    strip = nsds.lagrangian_linear(M=M, K=K, C=2e-3 * K, fext=force.reshape(-1), q=rest, v=rest)
    return nsds.system(strip=strip, floor=nsds.interaction(nsds.lagrangian_linear_relation(H=H), law, on="strip")), 2e-3, 20


def springs(t, q, v, z, out):
    n = q.size
    for i in range(n):
        left = q[i] - (q[i - 1] if i > 0 else 0.0)
        right = (q[i + 1] if i < n - 1 else 0.0) - q[i]
        out[i] = 1000 * (left + left**3) - 1000 * (right + right**3) + 0.1 * v[i]


def chain(n):
    """(record, h, steps)."""
    masses = nsds.lagrangian(mass=np.ones(n), fint=springs, q=0.01 * np.sin(np.arange(n)), v=np.zeros(n))
    stop = nsds.interaction(nsds.lagrangian_linear_relation(H=np.eye(1, n), b=[0.005]), nsds.newton_impact(0.5), on="chain")
    return nsds.system(chain=masses, stop=stop), 1e-3, 100


def membrane(n):
    """(record, h, steps): a square of about n nodes."""
    k = round(math.sqrt(n))
    line = sp.diags_array([-np.ones(k - 1), np.full(k, 2.0), -np.ones(k - 1)], offsets=[-1, 0, 1])
    K, nodes = (sp.kron(line, sp.eye_array(k)) + sp.kron(sp.eye_array(k), line)).tocsr(), np.ones(k * k)
    sheet = nsds.lagrangian_linear(M=sp.diags_array(nodes / k**2).tocsr(), K=K, fext=-9.81 / k**2 * nodes, q=0.01 * nodes, v=0.0 * nodes)
    floor = nsds.interaction(nsds.lagrangian_linear_relation(H=sp.eye_array(k * k).tocsr()), nsds.newton_impact(0.0), on="sheet")
    return nsds.system(sheet=sheet, floor=floor), 5e-3, 100


BY_EVENTS = "-events"
_COLUMNS = {"stated": "stated s", "one step": "one step s", "whole run": "run s", "us a step": "step µs", "peak MB": "MB"}
_SIZES = 100, 300, 1000, 3000, 10000
_LARGEST = {"plate": 1000}  # of these sizes
SCENES = {"sandpile": sandpile, "ladder": ladder, "chain": chain, "membrane": membrane, "plate": plate}
SCENES |= {name + BY_EVENTS: SCENES[name] for name in ("ladder", "chain")}
# seconds of a whole run
_GOALS = (
    ("ladder", 1000, 0.2), ("ladder", 10000, 2.5), ("ladder-events", 1000, 1.0), ("sandpile", 1000, 0.03), ("sandpile", 10000, 0.3),
    ("membrane", 900, 0.1), ("membrane", 10000, 2.0), ("chain", 1000, 0.03), ("chain", 10000, 0.3), ("chain-events", 1000, 0.3),
    ("chain-events", 10000, 4.0),
)  # fmt: skip


def measure(name, n):
    """Figures of one size."""
    scheme = nsds.event_driven() if name.endswith(BY_EVENTS) else None
    for small in (9, 81):  # kernels are compiled
        system, h, _ = SCENES[name](small)
        nsds.simulate(system, t_end=2 * h, h=h, scheme=scheme, progress=False)
    begin = time.process_time()
    system, h, steps = SCENES[name](n)
    stated = time.process_time() - begin
    first = _time(system, h, 1, scheme)
    # runs after it find what it has prepared
    again, whole = (_least_time(system, h, count, scheme) for count in (1, steps))
    return {
        "stated": stated, "one step": first, "whole run": first + whole - again, "us a step": 1e6 * (whole - again) / (steps - 1),
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }  # fmt: skip


def figures_of(name, n):
    """`measure` in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.sizes", name, "--one", "--sizes", str(n)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def large_models():
    """{what: (figure, most that it should be)}: seconds to state and run models of 10^3 and 10^4 in size, and what a plate takes."""
    result = {}
    for name, n, goal in _GOALS:
        figures = figures_of(name, n)
        result[f"{name} {n} (s)"] = figures["stated"] + figures["whole run"], goal
    figures = figures_of("plate", 1000)
    result["plate, 10^5 states, 10^3 contacts (ms/step)"] = figures["us a step"] / 1e3, 100.0
    result["the same, peak of memory (GB)"] = figures["peak MB"] / 1e3, 1.0
    return result


def _time(system, h, count, scheme):
    """Seconds of a run of so many steps."""
    begin = time.process_time()
    nsds.simulate(system, t_end=count * h, h=h, scheme=scheme, save_every=count, on_failure="continue", progress=False)
    return time.process_time() - begin


def _least_time(system, h, count, scheme):
    """Seconds of a run of so many steps, the least of those that fit into half a second."""
    least, total = math.inf, 0.0
    while total < 0.5:
        took = _time(system, h, count, scheme)
        least, total = min(least, took), total + took
    return least


def main():
    """Measure all sizes and show a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", help=", ".join(SCENES))
    parser.add_argument("--sizes", type=int, nargs="*", help="of each [100 to 10000, of some fewer]")
    parser.add_argument("--one", action="store_true", help="in this process, as JSON")
    parser.add_argument("--write", action="store_true", help="into docs/performance.md")
    arguments = parser.parse_args()
    scenes = arguments.scenes or list(SCENES)
    if arguments.one:
        print(json.dumps(measure(scenes[0], arguments.sizes[0])))
        return
    rows, load = [], machine.load()
    for name in scenes:
        last, first = None, None
        for n in arguments.sizes or [n for n in _SIZES if n <= _LARGEST.get(name, n)]:
            figures = figures_of(name, n)
            shown = [f"{key} {value:.3g}" for key, value in figures.items()]
            powers = ["", "", ""]
            if last is not None:
                powers = [f"{power:.2f}" for power in _powers(last, (n, figures))]
                shown.append("time grows by the power {}, a step by {}, memory by {}".format(*powers))
            print(f"{name} {n}: " + ", ".join(shown), flush=True)
            rows.append((name, str(n), *(f"{figures[key]:.3g}" for key in _COLUMNS), *powers))
            last = n, figures
            first = first or last
        if last is not None and last[0] > first[0]:
            powers = [f"{power:.2f}" for power in _powers(first, last)]
            print(
                f"{name}: from {first[0]} to {last[0]} time grows by the power {{}}, a step by {{}}, memory by {{}}".format(*powers),
                flush=True,
            )
            rows.append((name, f"{first[0]} to {last[0]}", *[""] * len(_COLUMNS), *powers))
    if arguments.write:
        head = ("model", "size", *_COLUMNS.values(), "time", "step", "memory")
        text = _TEXT.format(heading=OF_SIZES, machine=machine.name(), version=nsds.__version__, load=load, table=table(head, rows))
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


def _powers(one, other):
    """Powers of the size by which time, a step and memory grow between two (size, figures); NaN of a step that is too short to be told."""
    (n, before), (m, after) = one, other
    pairs = [(figures["stated"] + figures["whole run"], figures["us a step"], figures["peak MB"]) for figures in (before, after)]
    return [math.log(new / old) / math.log(m / n) if min(old, new) > 0.0 else math.nan for old, new in zip(*pairs, strict=True)]


if __name__ == "__main__":
    main()
