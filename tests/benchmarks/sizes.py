"""How the cost of a run grows with the model: ``python -m tests.benchmarks.sizes [SCENE ...] [--sizes N ...]``.

Scenes: ``sandpile``, a heat equation with a relay per node, 100 steps of 1 ms; ``ladder``, a netlist of sections with R, C, and a diode
with a resistor to ground, 1000 steps of 5 us; ``chain``, masses on cubic springs by a function, with one stop, 100 steps of 1 ms;
``membrane``, so many nodes over a floor, a contact each, 100 steps of 5 ms; ``plate``, so many contacts with friction in the plane under
an elastic strip that is pressed and sheared, with 100 states for each, 20 steps of 2 ms. ``ladder-events`` and ``chain-events`` move
event by event. For each size: seconds to state the model, of a run of one step and of the whole run, microseconds of a further step, the
peak of memory, and growth, the power of the size by which all of it takes longer than with the size before; at the end that power from
the first size to the last. Each size runs in a process of its own, on one thread; times are those of the processor.
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
from tests.schemes.lagrangian.elastic_blocks import elastic_block


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
SCENES = {"sandpile": sandpile, "ladder": ladder, "chain": chain, "membrane": membrane, "plate": plate}
SCENES |= {name + BY_EVENTS: SCENES[name] for name in ("ladder", "chain")}


def measure(name, n):
    """Figures of one size."""
    scheme = nsds.event_driven() if name.endswith(BY_EVENTS) else None
    for small in (9, 81):  # kernels are compiled
        system, h, _ = SCENES[name](small)
        nsds.simulate(system, t_end=2 * h, h=h, scheme=scheme, progress=False)
    times = [time.process_time()]
    system, h, steps = SCENES[name](n)
    times.append(time.process_time())
    for count in (1, steps):
        rows = nsds.simulate(system, t_end=count * h, h=h, scheme=scheme, save_every=count, on_failure="continue", progress=False)
        times.append(time.process_time())
    stated, first, whole = np.diff(times).tolist()
    return {
        "stated": stated, "one step": first, "whole run": whole, "us a step": 1e6 * (whole - first) / (steps - 1),
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, "worst status": int(rows["status"].max()),
    }  # fmt: skip


def main():
    """Measure all sizes and show a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", help=", ".join(SCENES))
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 300, 1000, 3000, 10000])
    parser.add_argument("--one", action="store_true", help="in this process, as JSON")
    arguments = parser.parse_args()
    scenes = arguments.scenes or list(SCENES)
    if arguments.one:
        print(json.dumps(measure(scenes[0], arguments.sizes[0])))
        return
    for name in scenes:
        last, first = None, None
        for n in arguments.sizes:
            command = [sys.executable, "-m", "tests.benchmarks.sizes", name, "--one", "--sizes", str(n)]
            figures = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
            shown, took = [f"{key} {value:.3g}" for key, value in figures.items()], figures["stated"] + figures["whole run"]
            if last is not None:
                shown.append(f"growth {math.log(took / last[1]) / math.log(n / last[0]):.2f}")
            print(f"{name} {n}: " + ", ".join(shown), flush=True)
            last = n, took, figures["peak MB"]
            first = first or last
        if last[0] > first[0]:
            powers = [math.log(last[k] / first[k]) / math.log(last[0] / first[0]) for k in (1, 2)]
            print(f"{name}: from {first[0]} to {last[0]} time grows by the power {powers[0]:.2f}, memory by {powers[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
