"""Every solver on random problems, most of them unkind: ``python -m tests.benchmarks.fuzz [--number 100000] [--seed 0]``.

Degenerate, rank-deficient, infeasible, badly scaled and indefinite problems with all kinds of bounds; each goes through the next method
of the table. Counted: claims of convergence that NumPy does not confirm, claims of infeasibility of what a basis solves, crashes, and
what took longest. Exit status 1 if there is anything of the first three.
"""

import argparse
import sys
import time

import numpy as np

from nsds import solvers
from nsds.status import CONVERGED, INFEASIBLE
from tests import reference_solvers as twins

SHAPES = ("scaled", "plain", "plain", "plain", "integers", "infeasible")


def random_problem(rng, seed):
    """A problem of a random family, kind, size and shape; dense."""
    family, kind = rng.choice(list(solvers.FAMILIES)), rng.choice(["lcp", "mlcp", "relay", "mixed"])
    n = int(rng.integers(1, 13))
    problem = solvers.generate(str(family), n, seed, str(kind))
    M, q, lower, upper = problem.M, problem.q, problem.lower, problem.upper
    M = M.toarray() if hasattr(M, "toarray") else M
    shape = rng.choice(SHAPES)
    if shape == "scaled":
        S = 10.0 ** rng.uniform(-5, 5, size=n)
        M, q, lower, upper = S[:, None] * M * S, S * q, lower / S, upper / S
    elif shape == "integers":
        M, q, lower, upper = np.round(2 * M), np.round(2 * q), np.floor(lower), np.ceil(upper)
    elif shape == "infeasible":
        M[rng.integers(n)] = 0.0
        q = np.where(rng.uniform(size=n) < 0.5, -abs(q), q)
    return problem.name + f"-{shape}", M, q, lower, upper


def main():
    """Run, print, and fail where something false was claimed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    methods = list(solvers.methods("relay"))
    statuses = {method: {} for method in methods}
    false, longest, began = [], (0.0, ""), time.perf_counter()
    for k in range(arguments.number):
        method = methods[k % len(methods)]
        name, M, q, lower, upper = random_problem(rng, arguments.seed + k)
        start = time.perf_counter()
        s = solvers.solve_relay(M, q, lower, upper, method, z0=rng.normal(size=len(q)), on_failure="continue", max_iter=2000)
        longest = max(longest, (time.perf_counter() - start if k >= len(methods) else 0.0, f"{method} on {name}"))
        statuses[method][s.status] = statuses[method].get(s.status, 0) + 1
        if s.status == CONVERGED:
            with np.errstate(over="ignore"):
                noise = np.linalg.norm(twins.rounding(M, q, s.z)) / (1 + np.linalg.norm(q))
            inside = ((s.z >= lower) & (s.z <= upper)).all()
            if not (inside and twins.merit(M, q, s.z, lower, upper) <= 1e-10 + noise):
                false.append(f"converged: {method} on {name}")
        elif s.status == INFEASIBLE and len(solvers.all_solutions(M, q, lower, upper)):
            false.append(f"infeasible: {method} on {name}")
        if (k + 1) % 10_000 == 0:
            print(f"{k + 1} problems, {time.perf_counter() - began:.0f} s, {len(false)} false claims", flush=True)
    for method, counts in statuses.items():
        print(f"{method:15s} " + ", ".join(f"status {code}: {count}" for code, count in sorted(counts.items())))
    print(f"longest: {longest[0] * 1e3:.1f} ms, {longest[1]}")
    print("\n".join(false) or "no false claim")
    sys.exit(bool(false))


if __name__ == "__main__":
    main()
