"""Whether "auto" keeps its promise: no listed method succeeds within ten times its time where it fails, or is ten times faster.

``python -m tests.portfolio [FOLDER] [KIND...]`` asks it of problems that families and `tests.random_problems` draw, and of a folder of
stored problems with a subfolder for each class, as `nsds.solvers.read_problem` and `read_contact_problem` read them. Times are of one
process, in which all methods have run before. It prints what breaks the promise, and what every kind has cost.
"""

import collections
import itertools
import os
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nsds import solvers, status
from tests import random_problems

PATIENCE = 10.0  # times that another may take of the time of "auto"
SHORT = 2e-3  # s: what is no difference
SOLVED = (status.CONVERGED, status.INFEASIBLE, status.UNBOUNDED)
FOLDERS = ("lcp", "mlcp", "relay", "generic_mechanical", "fc2d", "fc3d", "rfc3d", "gfc2d", "gfc3d", "grfc3d")


class Posed(NamedTuple):
    """A problem: its name, kind, unknowns, and the function and arguments that solve it."""

    name: str
    kind: str
    size: int
    function: object
    arguments: tuple

    def solved_by(self, method):
        """(solution, seconds)."""
        began = time.perf_counter()
        solution = self.function(*self.arguments, method=method, on_failure="continue")
        return solution, time.perf_counter() - began


class Tried(NamedTuple):
    """What "auto" did, and the names and times of methods that succeed where it does not, or are faster."""

    problem: Posed
    solution: object
    seconds: float
    better: list
    faster: list

    def __str__(self):
        others = ", ".join(f"{name} {1e3 * seconds:.3g} ms" for name, seconds in self.better or self.faster)
        kind = "not solved, but by" if self.better else "slower than"
        p, s = self.problem, self.solution
        return f"{p.kind} {p.name} ({p.size}): {s.method}, status {s.status}, {1e3 * self.seconds:.3g} ms; {kind} {others or 'none'}"


# ----------------------------------------------------------------------------------------------------------------------- problems


def stored(folder):
    """The problems of a folder, smallest first."""
    found = [_read(kind, file) for kind in FOLDERS for file in sorted((Path(folder) / kind).glob("*.npz"))]
    return sorted(found, key=lambda problem: problem.size)


def _read(kind, file):
    if kind == "generic_mechanical":
        return _read_generic(file)
    if kind in ("lcp", "mlcp", "relay"):
        p = solvers.read_problem(file)
        return Posed(p.name, kind, p.q.size, solvers.solve_mlcp, (p.M, p.q, p.lower, p.upper))
    p = solvers.read_contact_problem(file)
    return posed_contacts(p, kind)


def posed_contacts(p, kind):
    """A `ContactProblem` of a kind."""
    data = (p.W, p.q) if p.W is not None else (p.M, p.H, p.f, p.w)
    friction = (p.mu,) if p.mu_r is None else (p.mu, p.mu_r)
    return Posed(p.name, kind, p.d * p.n_contacts, getattr(solvers, f"solve_{kind}"), (*data, *friction))


def _read_generic(file):
    from scipy.sparse import csr_array

    with np.load(file, allow_pickle=False) as f:
        q, ends, laws, mu = (f[name] for name in ("q", "block_ptr", "block_type", "mu"))
        M = f["M"] if "M" in f else csr_array((f["M_data"], f["M_indices"], f["M_indptr"]), shape=f["M_shape"]).toarray()
    blocks = [
        ("friction", 3, float(mu[b])) if law == "fc3d" else (str(law), int(ends[b + 1] - ends[b])) for b, law in enumerate(laws.tolist())
    ]
    kind = "fc3d" if "fc3d" in laws else "mlcp"
    return Posed(file.stem, kind, q.size, solvers.solve_generic, (M, q, blocks))


def drawn(seeds, sizes=(2, 5, 12, 40)):
    """Problems of families, with any bounds, and contacts of all families, by size."""
    for n in sizes:
        for seed in seeds:
            for family in solvers.FAMILIES:
                for bounds in ("lcp", "mlcp", "relay", "mixed"):
                    p = solvers.generate(family, n, seed, bounds)
                    yield Posed(p.name, "mlcp" if bounds == "mixed" else bounds, n, solvers.solve_mlcp, (p.M, p.q, p.lower, p.upper))
            for family in solvers.CONTACT_FAMILIES:
                for kind, d, mu_r in (("fc2d", 2, None), ("fc3d", 3, None), ("rfc2d", 3, 0.1), ("rfc3d", 5, 0.1)):
                    if mu_r is None or family != "flexible":  # whose nodes do not turn
                        yield posed_contacts(solvers.generate_contacts(family, n, seed, d, (0.3, 0.9)[seed % 2], mu_r), kind)


def random(seeds):
    """Problems of `tests.random_problems` of rows, programmes and contacts."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        _, *rows = random_problems.random_rows(rng)
        yield Posed(f"rows-{seed}", "mlcp", rows[1].size, solvers.solve_mlcp, tuple(rows))
        _, *programme, _ = random_problems.random_programme(rng)
        yield Posed(f"programme-{seed}", "qp", programme[1].size, solvers.solve_qp, tuple(programme))
        _, d, *contacts = random_problems.random_contacts(rng)
        yield Posed(f"contacts-{seed}", f"fc{d}d", contacts[1].size, getattr(solvers, f"solve_fc{d}d"), tuple(contacts))


def contacts_of_any_matrix(seeds):
    """Contacts, 1 to 12, whose W is drawn, but for the sign of its diagonal: sweeps fail on most, and a third have no solution."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        kind, d = (("fc2d", 2), ("fc3d", 3), ("fc3d", 3), ("rfc3d", 5))[rng.integers(4)]
        nc = int(rng.choice([1, 2, 3, 4, 6, 8, 12]))
        W, q, mu = rng.normal(size=(d * nc, d * nc)), rng.normal(size=d * nc), rng.uniform(0.2, 1.5, nc)
        np.fill_diagonal(W, abs(W.diagonal()))
        friction = (mu, 0.1) if d == 5 else (mu,)
        yield Posed(f"any-{seed}", kind, d * nc, getattr(solvers, f"solve_{kind}"), (W, q, *friction))


# ------------------------------------------------------------------------------------------------------------------------- trying


def attempt(problem, is_fastest=False):
    """`Tried` of a problem; is_fastest: the methods are also run where "auto" solves it, to compare their times."""
    solution, seconds = problem.solved_by("auto")
    seconds = min(seconds, problem.solved_by("auto")[1]) if seconds < 0.1 else seconds
    is_solved = solution.status in SOLVED
    others = {}
    if not is_solved or is_fastest:
        for name in solvers.methods(problem.kind):
            if name != "auto" and not (is_solved and name == "enumerate"):
                other, taken = problem.solved_by(name)
                if other.status == status.CONVERGED:
                    others[name] = min(taken, problem.solved_by(name)[1]) if taken < 0.1 else taken
    limit = PATIENCE * max(seconds, SHORT)
    better = [(name, taken) for name, taken in others.items() if solution.status != status.CONVERGED and taken <= limit]
    faster = [(name, taken) for name, taken in others.items() if is_solved and seconds > PATIENCE * max(taken, SHORT)]
    return Tried(problem, solution, seconds, better, faster)


def warm():
    """Every method once, so that no time is that of loading it."""
    for problem in drawn([0], (2,)):
        for name in solvers.methods(problem.kind):
            problem.solved_by(name)
    for problem in random(range(4)):
        problem.solved_by("auto")


def main(arguments):
    """Try all problems, or those of some kinds."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    folders = [a for a in arguments if os.path.isdir(a)]
    kinds = set(arguments) - set(folders)
    warm()
    counts, cost, broken = collections.Counter(), collections.Counter(), 0
    of_folders = (problem for folder in folders for problem in stored(folder))
    for problem in itertools.chain(random(range(2000)), contacts_of_any_matrix(range(1000)), drawn(range(10)), of_folders):
        if kinds and problem.kind not in kinds:
            continue
        tried = attempt(problem, problem.size <= 300)
        is_solved = tried.solution.status in SOLVED
        counts[problem.kind, "solved" if is_solved else "not solved"] += 1
        cost[problem.kind, "solved" if is_solved else "not solved"] += tried.seconds
        if tried.better or tried.faster or tried.seconds > 2.0:
            broken += bool(tried.better or tried.faster)
            print(tried, flush=True)
    for key, count in sorted(counts.items()):
        print(*key, f"{count}, {1e3 * cost[key] / count:.3g} ms each")
    return broken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
