"""Contact problems beside the peer, and the cost of a sweep: ``python -m tests.benchmarks.contacts [--json FILE] [--only TEXT] ...``.

Problems of ``../shared/problems``: µs of one solution by auto in compiled code from the guess 0, of the reduction of global problems, and
of the public function; µs of the fastest of the peer's methods that solve the problem (baseline: what the fastest took when the baseline
was recorded); residuals recomputed apart from both. Here and peer have the same time to repeat in, the least counts, and a peer's method
with few calls is marked. Sweeps: ns for each contact, beside the time in which the machine reads what a sweep must read.
"""

import os

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import argparse
import csv
import importlib.util
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from nsds import solvers
from nsds._jit import kernel
from nsds.solvers import table
from nsds.solvers.box.signature import solve_repeatedly as solve_box_repeatedly
from nsds.solvers.contact import colours, forms, generic, nsgs
from nsds.solvers.contact import local as one
from nsds.solvers.contact import panels as bodies
from nsds.solvers.contact.signature import Problem, diagonal_block, solve_repeatedly
from nsds.solvers.faces.contact import contacts, kind_of
from nsds.solvers.problems import profiling
from tests.benchmarks.__main__ import find_peer
from tests.benchmarks.solvers import show
from tests.paths import PEER, PROBLEMS

CLASSES = ("fc2d", "fc3d", "rfc3d", "gfc2d", "gfc3d", "grfc3d", "generic_mechanical")
TOLERANCE = 1e-8
SOLVED = 2e-8  # res_q at which a solution of the peer counts: it measures a little differently
_PEER_METHODS = 4  # the fastest of the baseline, each with every storage of matrices that the peer has
_PEER_ALSO = {  # which these are depends on the storage: it is dense that makes Newton's method quick on small problems
    "fc2d": ("NSGS/blocks", "NSGS/dense", "CPG", "LEMKE"),
    "gfc2d": ("NSGS(reduced)", "CPG(reduced)"),
    "fc3d": ("NSGS/NSN", "NSGS/NSN_GP_HYBRID", "NSN_AC", "NSN_FB", "PROX", "VI_EG", "ADMM"),
    "rfc3d": ("NSGS/PLI", "NSGS/P", "ADMM"),
    "gfc3d": ("NSGS", "NSGS_WR", "NSN_AC", "NSN_AC_WR", "ADMM", "VI_EG"),
    "grfc3d": ("NSGS_WR",),
    "generic_mechanical": ("NSGS/all_blocks", "NSGS/subs_equalities", "NSGS/assemble_equalities", "MLCP_like"),
}  # fmt: skip
_SECONDS, _FIRST_SECONDS = 0.2, 0.05  # for each method and turn, here and there; in the first turn of the peer, with its many methods
_DENSE = 1000  # rows up to which the peer is given dense matrices, too
_SLOWER = 3.0  # than the peer's best in the first turn, at which a method of it has no other
_FEW = 6  # calls of the peer, below which a time is marked as uncertain
_READ = 8  # bytes of an entry


def problem_tools():
    """``problem_io`` of the shared problems: reading, and residuals that use numpy and scipy only."""
    spec = importlib.util.spec_from_file_location("problem_io", PROBLEMS / "problem_io.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def peer_methods():
    """{(class, problem): (seconds, name) of the peer's fastest methods that solve it}."""
    file, times = PEER / "solver_baseline.csv", {}
    if not file.exists():
        return {}
    with open(file, newline="") as lines:
        for line in csv.DictReader(lines):
            if line["solved"] == "1" and line["tol"] != "0.0001":
                times.setdefault((line["class"], line["problem"]), []).append((float(line["time_s"]), line["solver"]))
    return {key: sorted(found)[:_PEER_METHODS] for key, found in times.items()}


class Own(NamedTuple):
    """One problem here: a timed solution (seconds, status), seconds of the reduction, and the public function."""

    solve: object
    reduce: object
    public: object
    problem: object


def own(stored):
    """`Own` of a problem read by ``problem_io``."""
    kind, mu = stored["cls"], np.atleast_1d(stored["mu"])
    if kind == "generic_mechanical":
        return own_generic(stored)
    arguments = [stored[key] for key in (("M", "H", "q", "b") if kind[0] == "g" else ("M", "q"))]
    coefficients = {"mu": mu, "mu_r": np.atleast_1d(stored["mu_r"])} if "mu_r" in stored else {"mu": mu}
    function = getattr(solvers, f"solve_{kind}")
    d = stored["d"]

    def reduce():
        M, H, q, b = forms.global_matrices(kind, d, *arguments)
        solve_M, inverse_H = forms.inverse_times(kind, M, H)
        return H.T @ inverse_H, H.T @ solve_M(q) + b

    W, q = reduce() if kind[0] == "g" else arguments
    problem = contacts(kind, kind.removeprefix("g"), W, q, mu, coefficients.get("mu_r", 0.0))

    timed = solution(problem)
    return Own(timed, reduce if kind[0] == "g" else None, lambda: function(*arguments, on_failure="continue", **coefficients), problem)


def own_generic(stored):
    """`Own` of a mixed problem; without friction it is a box problem."""
    begin, blocks = stored["block_ptr"], []
    for k, law in enumerate(stored["block_type"]):
        size = int(begin[k + 1] - begin[k])
        blocks.append(("friction", size, float(stored["mu"][k])) if law == "fc3d" else (str(law), size))

    def public():
        return solvers.solve_generic(stored["M"], stored["q"], blocks, on_failure="continue")

    if any(block[0] == "friction" for block in blocks):
        problem, place = generic.embedded(stored["M"].toarray(), stored["q"], generic.checked_blocks("contacts", stored["q"].size, blocks))
        timed = solution(problem)

        def solve(seconds):
            status, least, r = timed(seconds)
            return status, least, r[place]

        return Own(solve, None, public, problem)
    lower = np.repeat([-np.inf if block[0] == "equality" else 0.0 for block in blocks], [block[1] for block in blocks])
    box = profiling.Problem("generic", stored["M"], stored["q"], lower, np.full(lower.size, np.inf))
    arguments = profiling.prepared(box, *table.chosen("auto", "mlcp"), np.zeros(lower.size))
    solve_box_repeatedly(0, False, *arguments)

    def solve_box(seconds):
        status, least = profiling.fastest(seconds, False, solve_box_repeatedly, (False, *arguments))
        return status, least, public().z

    return Own(solve_box, None, public, None)


def solution(problem):
    """Function ``seconds -> (status, seconds of one solution by auto, r)``, the least of as many as fit."""
    method, options = table.chosen(table.solver("auto", tol=TOLERANCE), kind_of(problem.d, rolls=False))
    arguments = table.arguments_of(method, options, problem, problem.d, np.zeros(problem.q.size))
    solve_repeatedly(0, *arguments)

    def solve(seconds):
        return *profiling.fastest(seconds, False, solve_repeatedly, arguments), arguments[-5]

    return solve


def stored_ways(kind, n, method):
    """A method's names with the storages of matrices that it may be quickest with; n: rows of the largest matrix."""
    if kind == "generic_mechanical":
        return [method]
    if kind in ("fc2d", "gfc2d"):
        outer, _, storage = method.removesuffix("(reduced)").partition("/")
        return [f"{outer}@{storage}"] if storage else [f"{outer}@{way}" for way in (("dense", "blocks") if outer == "NSGS" else ("dense",))]
    ways = ("blocks", "sparse") if kind in ("fc3d", "rfc3d") else ("sparse",)
    return [f"{method}@{way}" for way in (*ways, *(("dense",) if n <= _DENSE else ()))]


def run_peer(python, file, methods, seconds, *others):
    """Rows of `peer_contacts` for the methods that returned; others: more of its arguments."""
    script = Path(__file__).with_name("peer_contacts.py")
    command = [python, script, file, *methods, "--budget", str(seconds), *others]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [row for row in json.loads(printed or "[]") if row["status"] == "ok"]


def worthwhile(tools, stored, best):
    """The methods of the peer that solve the problem, without those that are much slower than its best."""
    times = {name: row["time_s"] for name, row in best.items() if tools.residuals(stored, row["r"])["res_q"] <= SOLVED}
    return [name for name, seconds in times.items() if seconds <= _SLOWER * min(times.values())]


def compare(file, tools, python, methods, repeats, folder):
    """One row of the table; here and peer take turns."""
    stored = tools.load_problem(file)
    kind, name = stored["cls"], file.stem
    row = {"class": kind, "problem": name, "nc": int(stored.get("nc", len(stored.get("block_type", ()))))}
    if not row["nc"]:
        return row | {"note": "no contact"}
    here = own(stored)
    here.public()
    known = methods.get((kind, name), [])
    names = dict.fromkeys([*(method for _, method in known), *_PEER_ALSO[kind]])
    wanted = list(dict.fromkeys(way for method in names for way in stored_ways(kind, stored["q"].size, method)))
    if kind == "gfc2d":  # the peer has no method for it but those of the reduced problem
        file = Path(folder) / "reduced.npz"
        W, q = tools.reduced(stored)
        W[abs(W) < 1e-300] = 0.0
        tools.save_problem(file, "fc2d", {key: stored[key] for key in ("mu", "d", "nc")} | {"q": q}, {"M": sp.csr_array(W)})
    times, whole, reduction, best = [], [], [], {}
    for turn in range(1 + repeats):
        status, fastest, r = here.solve(_SECONDS)
        times.append(fastest)
        whole.append(least(here.public, _SECONDS / 2))
        if here.reduce:
            reduction.append(least(here.reduce, _SECONDS / 2))
        if python and wanted:
            for found in run_peer(python, file, wanted, _SECONDS if turn else _FIRST_SECONDS):
                before = best.get(found["solver"], {"time_s": np.inf, "calls": 0})
                calls = before["calls"] + found["calls"]
                best[found["solver"]] = (found if found["time_s"] < before["time_s"] else before) | {"calls": calls}
            wanted = worthwhile(tools, stored, best)
    result = here.public()
    if kind[0] == "g" and here.problem is not None and kind != "generic_mechanical":
        stored["_rho"] = tools.diag_rho(tools.reduced(stored)[0], stored["d"])
    checked = tools.residuals(stored, r)
    row |= {"status": int(status), "method": result.method.removeprefix("auto: "), "own_us": min(times) * 1e6, "whole_us": min(whole) * 1e6}
    row |= {"reduction_us": min(reduction) * 1e6 if reduction else None, "res_q": checked["res_q"], "res_rho": checked.get("res_rho")}
    solved = []
    for found in best.values():
        residual = tools.residuals(stored, found["r"])["res_q"]
        if residual <= SOLVED:
            solved.append((found["time_s"] * 1e6, found["solver"], residual, found["calls"]))
    row["baseline_us"] = known[0][0] * 1e6 if known else None
    if solved:
        row |= dict(zip(("peer_us", "peer", "peer_res_q", "calls"), min(solved), strict=True))
        reduces = row["reduction_us"] if kind in ("gfc3d", "grfc3d") else None  # where the peer's time has this work in it
        row |= {"ratio": row["peer_us"] / row["own_us"], "whole_ratio": row["peer_us"] / (row["own_us"] + reduces) if reduces else None}
    return row


def compare_all(only, python, repeats):
    """Rows of the table of problems, printed as they come."""
    if not PROBLEMS.exists():
        print(f"problems: none, {PROBLEMS} is not there")
        return []
    tools, methods, rows = problem_tools(), peer_methods(), []
    titles = "".join(f"{title:>11s}" for title in ("auto", "reduction", "call", "peer", "baseline"))
    print(f"{'problem':44s}{'nc':>5s}{titles}{'ratio':>9s}{'reduced':>9s}{'res_q':>9s}{'peer res':>9s}")
    with tempfile.TemporaryDirectory() as scratch:
        for file in (file for kind in CLASSES for file in sorted((PROBLEMS / kind).glob("*.npz"))):
            if only not in f"{file.parent.name}/{file.stem}":
                continue
            row = compare(file, tools, python, methods, repeats, scratch)
            rows.append(row)
            figures = "".join(show(row.get(key), 11) for key in ("own_us", "reduction_us", "whole_us", "peer_us", "baseline_us"))
            figures += "".join(show(row.get(key), 9) for key in ("ratio", "whole_ratio"))
            figures += "".join(f"{row[key]:9.0e}" if key in row else f"{'-':>9s}" for key in ("res_q", "peer_res_q"))
            name = f"{row['class']}/{row['problem']}"[:43]
            few = f" ({row['calls']} calls)" if row.get("calls", _FEW) < _FEW else ""
            print(f"{name:44s}{row['nc']:5d}{figures}  {row.get('method', row.get('note'))} / {row.get('peer', '-')}{few}", flush=True)
    return rows


def summary(rows):
    """What the table says, as text."""
    measured = [row for row in rows if "status" in row]
    solved = [row for row in measured if row["status"] == 0 and row["res_q"] <= SOLVED]
    beside = [row for row in solved if "ratio" in row]
    lost = [row["problem"] for row in measured if row not in solved and "peer_us" in row]
    alone = [row["problem"] for row in solved if "ratio" not in row]
    text = f"solved {len(solved)} of {len(measured)}"
    if beside:
        n = len(beside) + len(lost)
        ratios = np.array([[row["ratio"], row["whole_ratio"] or row["ratio"]] for row in beside])
        for name, values in zip(("", ", reduction counted"), ratios.T, strict=True):
            text += f"; within 2x of the peer{name} {(values >= 0.5).sum()}/{n}, faster {(values > 1.0).sum()}/{n}"
            text += f", median ratio {np.median(values):.2f}"
        text += f"; only the peer: {', '.join(lost) or 'none'}; only here: {', '.join(alone) or 'none'}"
    return text


@kernel
def _read(x):
    """Sum of integers: the least work on what is read."""
    s = 0
    for i in range(x.size):
        s += x[i]
    return s


@kernel
def _diagonals(row, column, diagonal):
    for c in range(diagonal.size):
        diagonal[c] = diagonal_block(row, column, c)


def least(function, seconds):
    """Seconds of the fastest of as many calls as fit, at least three."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


class Balls(NamedTuple):
    """Balls under their weight: the contact problem with W, and without it."""

    problem: Problem
    panels: forms.Panels
    v_free: np.ndarray


def balls(place, first, second):
    """`Balls` of radius 1/2 and mass 1 at these places, pressed together: contact c joins first[c] and second[c] (-1: the ground below)."""
    n, n_bodies = first.size, len(place)
    normal = np.where(second[:, None] >= 0, place[first] - place[second], [[0.0, 0.0, 1.0]])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    helper = np.where(abs(normal[:, :1]) < 0.7, [[1.0, 0, 0]], [[0, 1.0, 0]])
    t = np.cross(normal, helper)
    t /= np.linalg.norm(t, axis=1)[:, None]
    frame = np.stack([normal, t, np.cross(normal, t)], axis=1)
    turned = np.cross(-0.5 * normal[:, None, :], frame)  # arm × direction
    entries = []
    for body, side in ((first, 1.0), (second, -1.0)):
        there = np.flatnonzero(body >= 0)
        columns = np.repeat(3 * there[:, None] + np.arange(3), 6, axis=1)
        rows = np.tile(6 * body[there][:, None] + np.arange(6), (1, 3))
        entries.append((rows.ravel(), columns.ravel(), np.concatenate([side * frame, turned], axis=2)[there].ravel()))
    i, j, data = (np.concatenate(part) for part in zip(*entries, strict=True))
    H = sp.csc_array((data, (i, j)), shape=(6 * n_bodies, 3 * n))
    inverse = np.tile([1.0] * 3 + [10.0] * 3, n_bodies)
    v_free = 0.3 * np.random.default_rng(1).standard_normal((n_bodies, 6))
    v_free[:, :3] -= place
    v_free = v_free.reshape(-1)
    G = sp.csc_array(sp.diags_array(inverse) @ H)
    row, column, W = forms.block_rows((H.T @ G).tocoo(), 3)
    friction = np.tile([0.5, 0.0], n)
    return Balls(Problem(np.full(n, 2), friction, row, column, W, H.T @ v_free), forms.panels(3, H, G), v_free)


def chain(n):
    """n balls one above the other: three blocks in a row."""
    return balls(np.arange(n)[:, None] * np.array([0.0, 0.0, 1.0]), np.arange(n), np.arange(n) - 1)


def pile(n):
    """n contacts between near neighbours of balls at random places, numbered from the bottom: about eight blocks in a row."""
    random, n_bodies = np.random.default_rng(0), int(n / 1.75)
    height = n_bodies ** (1 / 3)
    place = random.uniform(0.0, height, (n_bodies, 3))
    place = place[np.argsort(place[:, 2])]
    pairs = cKDTree(place).query_pairs(1.3, output_type="ndarray").astype(np.int64)
    pairs = pairs[np.argsort(np.linalg.norm(place[pairs[:, 0]] - place[pairs[:, 1]], axis=1))[:n]]
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    return balls(place, pairs[:, 1], pairs[:, 0])


def sweepers(case):
    """{name: (one sweep, its r and v, bytes that it must read, bytes of the problem and its scratch)}."""
    disk, mu, row, column, W, q = case.problem
    n, local, read = disk.size, one.AUTO, {}
    r = np.zeros(q.size)
    fixed = sum(x.nbytes for x in (disk, mu, q)) + 2 * r.nbytes + n * _READ  # r twice, the change
    blocks = row.nbytes + column.nbytes + W.nbytes
    floats, integers = nsgs.work_size(3, row, column)
    diagonal, order, asleep, change = np.zeros(n, int), np.arange(n), np.zeros(n, int), np.zeros(n)
    _diagonals(row, column, diagonal)
    in_order = nsgs.Sweep(3, local, diagonal, order, change, np.zeros(10 + one.SCRATCH))

    def serial():
        nsgs.sweep(asleep, in_order, case.problem, r)

    memory = blocks + fixed + _READ * (floats + integers)
    read["nsgs"] = serial, [r], fixed + blocks + 3 * n * _READ, memory
    begin, painted, room = np.zeros(n + 1, int), np.zeros(n, int), np.zeros(nsgs.parallel_work_size(3, row, column)[0])
    n_colours = colours.paint(row, column, painted, begin, np.zeros(n, int), np.zeros(n + 1, int))
    r_painted, by_colour = np.zeros(q.size), nsgs.Sweep(3, local, diagonal, painted, change, room)

    def coloured():
        nsgs.sweep_colours(n_colours, begin, by_colour, case.problem, r_painted)

    memory = blocks + fixed + _READ * sum(nsgs.parallel_work_size(3, row, column))
    read["nsgs_parallel"] = coloured, [r_painted], fixed + blocks + 2 * n * _READ, memory
    panels, r_bodies, v = case.panels, np.zeros(q.size), case.v_free.copy()
    n_unknowns = v.size
    order_b, begin_b, W_c, b = np.zeros(n, int), np.zeros(bodies.MOST_COLOURS + 2, int), np.zeros(9 * n), np.zeros(q.size)
    n_painted = bodies.paint(*panels[:2], n_unknowns, np.zeros(n, int), order_b, begin_b, np.zeros(n_unknowns, int))
    bodies.blocks(3, panels.panel, panels.H, panels.G, W_c)
    room_b, stated = np.zeros(bodies.sweep_room()), bodies.Problem(disk, mu, *panels, case.v_free, b)
    of_bodies = bodies.Sweep(3, local, n_painted, begin_b, order_b, W_c, change, room_b)

    def without():
        bodies.sweep(of_bodies, stated, r_bodies, v)

    held = sum(x.nbytes for x in panels) + W_c.nbytes
    memory = held + fixed + 2 * v.nbytes + _READ * sum(bodies.work_size(n, n_unknowns, 3))
    read["nsgs_bodies"] = without, [r_bodies, v], held + fixed + v.nbytes + n * _READ, memory
    return read


SWEEPS = {f"chain {n}": (chain, n) for n in (1_000, 10_000, 100_000)} | {f"pile {n}": (pile, n) for n in (10_000, 100_000)}
_FIRST_SWEEPS = 30  # until contacts do what they will do


def sweeps(only, repeats):
    """Rows of the table of sweeps, printed as they come."""
    titles = (("blocks", 7), ("ns/contact", 11), ("bytes", 7), ("GB/s", 7), ("limit ns", 9), ("ratio", 7), ("memory B", 10))
    print(f"{'sweep':16s}{'method':18s}" + "".join(f"{title:>{width}s}" for title, width in titles))
    rows = []
    for name, (build, n) in SWEEPS.items():
        if only not in name:
            continue
        case = build(n)
        row = case.problem.row
        variants = {}
        for method, (sweep, state, n_bytes, memory) in sweepers(case).items():
            for _ in range(_FIRST_SWEEPS):
                sweep()
            for threads in (1, *((2,) if method != "nsgs" and numba.config.NUMBA_NUM_THREADS > 1 else ())):
                variants[method, threads] = [sweep, state, n_bytes, memory, np.inf, np.inf]
        for _ in range(repeats):
            for (_method, threads), variant in variants.items():
                numba.set_num_threads(threads)
                saved = [x.copy() for x in variant[1]]
                words = np.ones(variant[2] // _READ, int)
                variant[4] = min(variant[4], least(variant[0], 0.05))
                variant[5] = min(variant[5], least(lambda words=words: _read(words), 0.02))
                for x, old in zip(variant[1], saved, strict=True):
                    x[:] = old
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
        for (method, threads), (_, _, n_bytes, memory, seconds, reading) in variants.items():
            figures = {"blocks": row[-1] / n, "ns": seconds / n * 1e9, "bytes": n_bytes / n, "bandwidth": n_bytes / reading / 1e9}
            figures |= {"limit_ns": reading / n * 1e9, "ratio": seconds / reading, "memory": memory / n}
            rows.append({"case": name, "method": method, "threads": threads, **figures})
            line = "".join(show(figures[key], w, digits) for key, w, digits in (("blocks", 7, 1), ("ns", 11, 1), ("bytes", 7, 0)))
            line += "".join(show(figures[key], w, digits) for key, w, digits in (("bandwidth", 7, 1), ("limit_ns", 9, 1), ("ratio", 7, 1)))
            print(f"{name:16s}{f'{method}, {threads}':18s}{line}{figures['memory']:10.0f}", flush=True)
    return rows


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", default="", help="problems (class/name) and sweeps whose name contains this")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    python = None if arguments.no_peer else find_peer()
    print(f"peer: {'Siconos of the system python (Debian builds it with assertions)' if python else 'not found or not wanted'}")
    rows = compare_all(arguments.only, python, arguments.repeats)
    if rows:
        print(summary(rows))
    lines = sweeps(arguments.only, arguments.repeats)
    if arguments.json:
        about = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "peer": bool(python)}
        Path(arguments.json).write_text(json.dumps({**about, "problems": rows, "summary": summary(rows), "sweeps": lines}, indent=1))


if __name__ == "__main__":
    main()
