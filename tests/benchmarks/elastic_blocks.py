"""An elastic block that is pressed on the ground and sheared: ``python -m tests.benchmarks.elastic_blocks [--cells N ...] [--peer]``.

For a cube of so many cells along a side (6, 14, 20 and 31 make 1029, 10 125, 27 783 and 98 304 unknowns with 49 to 1024 contacts): the time
to make the record, to prepare (order of elimination, factors, W) and of a step, in all, of solutions with the factors alone (two in a
step), and the iterations of the contact problem; the peak of memory; growth, the power of the number of unknowns by which a step takes
longer than with the size before. Each size runs in a process of its own, on one thread; times are those of the processor. With ``--peer``
also seconds of the peer's global methods that solve the problem of the last step, from zero: they factorise in each, which here is done
once, in preparation. A method that has not ended after ``--patience`` seconds has no figure.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import nsds
from nsds.schemes.linear_algebra import apply_inverse
from nsds.schemes.run import preparation
from tests.benchmarks.__main__ import find_peer
from tests.benchmarks.contacts import run_peer
from tests.schemes.lagrangian.elastic_blocks import elastic_block

MU, H = 0.4, 2e-3
FORCE = np.array([30.0, 3.0, -100.0])  # on the upper face
PEER_METHODS = ["NSGS_WR@sparse", "NSN_AC_WR@sparse", "NSN_AC@sparse", "ADMM@sparse", "ADMM_WR@sparse", "IPM@sparse"]
CLOSE = 1e-6  # of the largest impulse: how near a solution of the peer is to count


def matrices(cells):
    """(M, C, K, H, force) of a cube with a contact at each node of its lower face."""
    points, M, K = elastic_block([np.linspace(0.0, 1.0, cells + 1)] * 3, E=1e4, density=1.0)
    bottom, top = (np.flatnonzero(points[:, 2] == height) for height in (0.0, 1.0))
    rows = np.arange(3 * bottom.size)
    jacobian = sp.csr_array((np.ones(rows.size), (rows, (3 * bottom[:, None] + [2, 0, 1]).reshape(-1))), shape=(rows.size, 3 * len(points)))
    force = np.zeros((len(points), 3))
    force[top] = FORCE / top.size
    return M, 2e-3 * K, K, jacobian, force.reshape(-1)


def cube(cells):
    """The record of `matrices`, at rest."""
    M, C, K, jacobian, force = matrices(cells)
    law, rest = nsds.newton_impact_friction(e_n=0.0, mu=MU, dimension=3), np.zeros(force.size)
    return nsds.system(
        block=nsds.lagrangian_linear(M=M, K=K, C=C, fext=force, q=rest, v=rest),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=jacobian), law, on="block"),
    )


def measure(cells, steps):
    """Times (s) and the peak of memory (GB) of one size."""
    began = time.process_time()
    system, settings = cube(cells), {"h": H, "scheme": nsds.moreau_jean(theta=1.0), "fields": ["floor"], "progress": False}
    made = time.process_time()
    nsds.simulate(cube(2), t_end=H, **settings)  # kernels are compiled
    compiled = time.process_time()
    run = preparation.prepare_run("benchmark", system, H, settings["scheme"], None, False)[0]
    prepared = time.process_time()
    o, work, iwork, n = run.prepared.tables.operators[0], run.prepared.work[0], run.prepared.iwork[0], system["block"]["q"].size
    p, solution = run.prepared.tables.plan[0], []
    for _ in range(3):
        work[p.rhs : p.rhs + n] = 1.0
        start = time.process_time()
        apply_inverse(o.kind, n, o.n_lower, o.n_upper, o.data, o.index, work, iwork, p.rhs, p.solution, p.scratch)
        solution.append(time.process_time() - start)
    factors = work.nbytes / 1e9
    del run, work, iwork
    took, rows = [], None
    for count in (1, 1 + steps):
        start = time.process_time()
        rows = nsds.simulate(system, t_end=count * H, **settings)
        took.append(time.process_time() - start)
    impulse = rows["floor"]["lambda"][-1].reshape(-1, 3)
    slides = np.linalg.norm(impulse[:, 1:], axis=1) > (1 - 1e-7) * MU * impulse[:, 0]
    return {
        "unknowns": n, "contacts": len(impulse), "record": made - began, "prepare": prepared - compiled,
        "step": (took[1] - took[0]) / steps, "solution": min(solution), "iterations": float(rows["n_iter"][2:].mean()), "work GB": factors,
        "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, "sliding": float(slides.mean()),
        "worst residual": float(rows["residual"].max()),
    }  # fmt: skip


def beside_peer(cells, steps, python, patience):
    """Seconds of the peer's global methods whose impulses in the last step are those here."""
    system, settings = cube(cells), {"h": H, "scheme": nsds.moreau_jean(theta=1.0), "progress": False}
    rows = nsds.simulate(system, t_end=(1 + steps) * H, **settings)
    M, C, K, jacobian, force = matrices(cells)
    q, v, impulse = rows["block"]["q"][-2], rows["block"]["v"][-2], rows["floor"]["lambda"][-1]
    M_hat = sp.csr_array(M + H * C + H * H * K)
    rhs = M @ v - H * (K @ q) + H * force
    problem = {"cls": "gfc3d", "q": rhs, "b": np.zeros(impulse.size), "mu": np.full(impulse.size // 3, MU), "d": 3, "nc": impulse.size // 3}
    for name, A in (("M", M_hat), ("H", sp.csr_array(jacobian.T))):
        A.sort_indices()
        problem |= {f"{name}_data": A.data, f"{name}_indices": A.indices, f"{name}_indptr": A.indptr, f"{name}_shape": np.array(A.shape)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problem.npz"
        np.savez(file, **problem)
        found = run_peer(python, file, PEER_METHODS, 0.2, "--limit", str(patience))
    off = [abs(np.array(row["r"]) - impulse).max() / abs(impulse).max() for row in found]
    return {f"peer {row['solver']}": row["time_s"] for row, error in zip(found, off, strict=True) if error <= CLOSE}


def main():
    """Measure all sizes and show a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="*", default=[6, 14, 20, 31])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--one", action="store_true", help="in this process, as JSON")
    parser.add_argument("--peer", action="store_true", help="beside the peer, where it is found")
    parser.add_argument("--patience", type=float, default=30.0, help="seconds for one method of the peer")
    arguments = parser.parse_args()
    python = find_peer() if arguments.peer else None
    if arguments.one:
        figures = measure(arguments.cells[0], arguments.steps)
        print(json.dumps(figures | (beside_peer(arguments.cells[0], arguments.steps, python, arguments.patience) if python else {})))
        return
    last = None
    for cells in arguments.cells:
        command = [sys.executable, "-m", "tests.benchmarks.elastic_blocks", "--one", "--cells", str(cells), "--steps", str(arguments.steps)]
        command += ["--peer", "--patience", str(arguments.patience)] if arguments.peer else []
        figures = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        shown = [f"{key} {value:.4g}" for key, value in figures.items()]
        if last is not None:
            shown.append(f"growth {np.log(figures['step'] / last['step']) / np.log(figures['unknowns'] / last['unknowns']):.2f}")
        if arguments.peer and not any(key.startswith("peer") for key in figures):
            shown.append(f"no method of the peer within {arguments.patience:g} s" if python else "no peer here")
        print(f"{cells} cells: " + ", ".join(shown), flush=True)
        last = figures


if __name__ == "__main__":
    main()
