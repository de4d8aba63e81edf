"""The peer's solvers on LCP, MLCP and relay files: ``python3 peer_solvers.py FOLDER_OR_FILE... [--budget 0.2]`` prints one JSON object.

Run by the python that has siconos installed. The C drivers are called at their addresses: the bindings have no relay problem and no
blocks of an MLCP. ``time_s`` is the best of many driver calls, each from zero, with one Python call (``overhead_s``) in it.
"""

import argparse
import ctypes.util
import json
import math
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import siconos.numerics as sn

TOLERANCE = 1e-10
SOLVED = 1e-8  # relative residual
TIME_LIMIT = 10.0  # seconds of one child process
MIN_REPEATS, MAX_REPEATS = 3, 2000
SOLVERS = {
    "lcp": "LEMKE PIVOT PIVOT_LUMOD BARD MURTY PATHSEARCH ENUM NEWTONMIN NEWTON_FB_FBLSA NEWTON_MIN_FBLSA PGS PSOR RPGS CPG LATIN LATIN_W "
    "QP NSQP AVI_CAOFERRIS CONVEXQP_PG",
    "mlcp": "ENUM DIRECT_ENUM PGS PSOR RPGS RPSOR SIMPLEX DIRECT_SIMPLEX FB DIRECT_FB LCP_LEMKE",
    "relay": "PGS ENUM LEMKE AVI_CAOFERRIS",
}
DRIVERS = {"lcp": "linearComplementarity_driver", "mlcp": "mlcp_driver", "relay": "relay_driver"}
MEMBERS = {  # of the C structures, in their order; numbers are ints, the rest pointers
    "lcp": "size M q",
    "mlcp": "has_M has_blocks n m block_rows block_is_complementary M q A B C D a b",
    "relay": "size M q lb ub",
}

library = ctypes.PyDLL(ctypes.util.find_library("siconos_numerics"))
library.NM_create_from_data.restype = ctypes.c_void_p


class Problem:
    """One problem: its arrays, and the C structure that points to copies of them."""

    def __init__(self, name, entries):
        self.name, self.kind = name, str(entries["cls"])
        self.arrays = {key: entries[key].astype(float) for key in ("M", "q", "lb", "ub") if key in entries}
        M, q = self.arrays["M"], self.arrays["q"]
        numbers = {"size": len(q)}
        if self.kind == "mlcp":
            n, m = int(entries["n"]), int(entries["m"])
            equal = len(q) - m  # rows of equalities: n, but where the problem is not square
            self.arrays.update(A=M[:equal, :n], B=M[equal:, n:], C=M[:equal, n:], D=M[equal:, :n], a=q[:equal], b=q[equal:])
            self.arrays.update(block_rows=np.array([0, n, n + m], np.int32), block_is_complementary=np.array([0, 1], np.int32))
            numbers = {"has_M": 1, "has_blocks": 1, "n": n, "m": m}
        self.copies = {key: np.array(value, order="F") for key, value in self.arrays.items()}
        addresses = {key: copy.ctypes.data for key, copy in self.copies.items()}
        addresses["M"] = library.NM_create_from_data(0, *M.shape, ctypes.c_void_p(addresses["M"]))  # 0: dense
        fields = [(key, ctypes.c_int if key in numbers else ctypes.c_void_p) for key in MEMBERS[self.kind].split()]
        self.structure = type("Structure", (ctypes.Structure,), {"_fields_": fields})(**numbers, **addresses)

    def residual(self, z):
        """Relative residual, recomputed from z alone."""
        w = self.arrays["M"] @ z + self.arrays["q"]
        if self.kind == "lcp":
            gap = np.minimum(z, w)
        elif self.kind == "mlcp":
            n, equal = self.structure.n, len(w) - self.structure.m
            gap = np.concatenate([w[:equal], np.minimum(z[n:], w[equal:])])
        else:
            gap = z - np.clip(z - w, self.arrays["lb"], self.arrays["ub"])
        return np.linalg.norm(gap) / (1 + np.linalg.norm(self.arrays["q"]))


def measure(problem, solver, budget):
    """(best time, worst residual) of repeated driver calls, each from zero with everything a solver may remember put back."""
    driver, solver_id = getattr(library, DRIVERS[problem.kind]), getattr(sn, f"SICONOS_{problem.kind.upper()}_{solver}")
    options = sn.SolverOptions(solver_id)
    options.dparam[sn.SICONOS_DPARAM_TOL] = TOLERANCE
    settings = options.iparam.copy(), options.dparam.copy()
    n_rows, n_columns = problem.arrays["M"].shape
    z, w = np.zeros((2, max(n_rows, n_columns)))
    pair = ctypes.c_void_p(ctypes.addressof(problem.structure)), ctypes.c_void_p(int(options.this))
    arguments = pair[0], ctypes.c_void_p(z.ctypes.data), ctypes.c_void_p(w.ctypes.data), pair[1]
    best, worst, repeats, spent, start = math.inf, 0.0, 0, 0.0, time.perf_counter()
    while repeats < MAX_REPEATS and (spent < budget or (repeats < MIN_REPEATS and spent < TIME_LIMIT / 2)):
        for key, copy in problem.copies.items():
            copy[...] = problem.arrays[key]
        options.solverId, options.iparam[:], options.dparam[:] = solver_id, *settings
        z[:] = w[:] = 0.0
        if problem.kind == "mlcp":
            library.mlcp_driver_init(*pair)
        library.numerics_set_verbose(0)  # also warms the path of such a call: 0.06 µs less in what is timed
        began = time.perf_counter()
        driver(*arguments)
        best = min(best, time.perf_counter() - began)
        if problem.kind == "mlcp":
            library.mlcp_driver_reset(*pair)  # else the direct solvers start from the solution before
        worst = np.maximum(worst, problem.residual(z[:n_columns]))  # keeps a NaN
        repeats, spent = repeats + 1, time.perf_counter() - start
    return best, float(worst)


def child(function, arguments, pipe):
    """Body of the child process: the library's chatter goes nowhere."""
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    try:
        pipe.send(("ok", function(*arguments)))
    except Exception as error:
        pipe.send((f"error: {error!r}", None))


def in_child(function, arguments, limit):
    """(status, what the function returns or None) from a child process that may crash or hang."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=child, args=(function, arguments, sender))
    process.start()
    sender.close()
    status, result = "timeout", None
    if receiver.poll(limit):
        try:
            status, result = receiver.recv()
        except EOFError:
            process.join()
            status = "crashed" if process.exitcode < 0 else f"error: exit code {process.exitcode}"
    process.kill()
    process.join()
    return status, result


def row(problem, solver, budget):
    """One row of the table."""
    status, measured = in_child(measure, (problem, solver, budget), TIME_LIMIT)
    best, worst = measured or (math.inf, math.inf)
    time_s, residual = (value if math.isfinite(value) else None for value in (best, worst))
    result = {"time_s": time_s, "residual": residual, "solved": worst <= SOLVED, "status": status}
    return {"problem": problem.name, "class": problem.kind, "solver": solver, **result}


def problems(places):
    """Every problem of the three classes in files and folders."""
    for place in map(Path, places):
        for path in sorted(place.rglob("*.npz")) if place.is_dir() else [place]:
            with np.load(path) as entries:
                if str(entries["cls"]) in SOLVERS:
                    yield Problem(path.stem, entries)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("places", nargs="+", metavar="FOLDER_OR_FILE")
    parser.add_argument("--budget", type=float, default=0.2, help="seconds for one solver on one problem")
    given = parser.parse_args()
    overhead = measure(Problem("trivial", {"cls": "lcp", "M": np.eye(1), "q": np.ones(1)}), "LEMKE", given.budget)[0]
    rows = [row(problem, solver, given.budget) for problem in problems(given.places) for solver in SOLVERS[problem.kind].split()]
    print(json.dumps({"overhead_s": overhead, "rows": rows}))
