"""Random netlists of stepped and fast sources, ideal diodes and switches, inductors and capacitors, event by event beside steps in time.

``python -m tests.random_netlists FIRST LAST`` runs those of some seeds with the defaults, and tells which end early, how and where, and
which differ from the limit of `nsds.euler_moreau`.
"""

import collections
import itertools
import signal
import sys
import time
import warnings

import numpy as np

import nsds
from nsds.circuits.netlist import read

T_END, ROWS = 2e-3, 200
SECONDS, HEARD = 20.0, 1.0  # of a run, and in which it hears that it is to end
STEPS = 20_000  # of the run in time; then half as many again of half the length
FAR, NEAR, SHARE = 2e-2, 4.0, 0.9  # differences that count, in errors of the steps, and of how many rows they are less


def random_netlist(seed):
    """The text of a netlist, drawn as it comes: a source may be short-circuited by ideal devices, which a run has to say."""
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 6)
    nodes = [f"n{k}" for k in range(n + 1)]
    lines = [f"netlist {seed}", f"V1 n0 0 {_source(rng, 5.0)}"]
    for a, b in itertools.pairwise(nodes):
        lines.append(f"R{b} {b} {a} {_number(rng, 0, 3)}")
    lines.append(f"RL {nodes[-1]} 0 {_number(rng, 1, 4)}")
    for k in range(rng.integers(1, 6)):
        a, b = rng.choice([*nodes, "0"], 2, replace=False)
        kind = rng.choice(list("DDDDCCLSSI"))
        if kind == "D":
            lines.append(f"D{k} {a} {b} D{rng.choice(['I', 'I', 'F', 'Z', 'R'])}")
        elif kind == "S":
            lines += [f"VG{k} g{k} 0 {_source(rng, 1.0)}", f"S{k} {a} {b} g{k} 0 S{rng.choice(['I', 'R'])}"]
        elif kind == "I":
            lines.append(f"I{k} {a} {b} {_source(rng, 0.05)}")
        else:
            lines.append(f"{kind}{k} {a} {b} {_number(rng, -8, -5) if kind == 'C' else _number(rng, -5, -1)}")
    models = (".model DI D", ".model DF D(Vfwd=0.6)", ".model DZ D(Vfwd=0.6 Vrev=3)", ".model DR D(Ron=10m Roff=10meg Vfwd=0.4)",
              ".model SI SW(Vt=0.5)", ".model SR SW(Vt=0.5 Ron=10m Roff=1meg)")  # fmt: skip
    return "\n".join([*lines, *models])


def _number(rng, low, high):
    return f"{10 ** rng.uniform(low, high):.3g}"


def _source(rng, size):
    """A sine, a pulse with edges of no length, of a nanosecond or of some time, or straight pieces with steps."""
    kind, values = rng.choice(["SIN", "PULSE", "PULSE", "PWL"]), np.round(size * rng.uniform(-1, 2, 8), 2)
    if kind == "SIN":
        return f"SIN({rng.choice([0, values[0]])} {values[1]} {rng.choice(['500', '1k', '7k'])} 0 0 {rng.choice([0, 0, 90])})"
    if kind == "PULSE":
        edge = rng.choice(["0", "0", "1n", "30u"])
        low, begin, width, period = rng.choice([0, values[0]]), rng.integers(4), rng.integers(1, 4), rng.integers(5, 11)
        return f"PULSE({low} {values[1]} {begin}00u {edge} {edge} {width}00u {period}00u)"
    times = np.sort(rng.integers(0, 16, 8)) / 10
    return "PWL(" + " ".join(f"{time:g}m {value:g}" for time, value in zip(times, values, strict=True)) + ")"


class Limit:
    """Ctrl-C after SECONDS. seconds: what the run took."""

    def __enter__(self):
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.seconds = time.perf_counter() - self._began


def voltages(circuit, rows, text):
    """(rows, nodes): voltages of all nodes."""
    nodes = dict.fromkeys(node for element in read(text, {}).elements for node in element.nodes if node != "0")
    return np.stack([nsds.circuits.voltage(circuit, rows, node) for node in nodes], axis=1)


def difference(circuit, rows, text):
    """How many errors of the steps rows are away from the limit of `nsds.euler_moreau`, in the row at `SHARE` of all; NaN without steps.

    Rows beside jumps of voltages are one step off, and are not in that share.
    """
    runs = [
        voltages(circuit, nsds.simulate(circuit, t_end=T_END, h=T_END / count, save_every=count // ROWS), text)
        for count in (STEPS, 2 * STEPS)
    ]
    at = np.searchsorted(rows["t"], np.arange(ROWS + 1) * T_END / ROWS + 1e-12, side="right") - 1
    by_events = voltages(circuit, rows, text)[at][1:]
    coarse, fine = (run[1:] for run in runs)
    size = max(abs(fine).max(), 1e-9)
    error = abs(by_events - 2 * fine + coarse).max(axis=1) / (FAR * size + NEAR * abs(fine - coarse).max(axis=1))
    return np.quantile(error, SHARE)


def is_confirmed(circuit, error):
    """Whether steps in time from where a run ended fail there, too, or have currents or voltages that double as the step is halved."""
    begin = nsds.restart(circuit, error.trajectory[-1])
    for h in (1e-11, 1e-8):
        largest = []
        for step in (h, h / 2):
            try:
                rows = nsds.simulate(begin, t_end=error.t + 200 * h, h=step)[1:]
            except nsds.SimulationError:
                return True
            if rows["status"].any():
                return True
            largest.append(abs(rows["devices"]["lambda"]).max())
        if largest[1] > 1.7 * largest[0] > 0.0:
            return True
    return False


def outcome(seed):
    """(kind, text) of the run of a seed: "agrees", "differs", "late", or how it ended."""
    text = random_netlist(seed)
    try:
        circuit = nsds.circuit(text)
    except ValueError as error:
        return "refused", str(error)
    run = Limit()
    try:
        with run:
            rows = nsds.simulate(circuit, t_end=T_END, h=T_END / ROWS, scheme=nsds.event_driven())
    except KeyboardInterrupt:
        return "late" if run.seconds > SECONDS + HEARD else "endless", f"ended after {run.seconds:.1f} s"
    except nsds.SimulationError as error:
        has_no_motion = error.status in (nsds.status.IMPULSE, nsds.status.INFEASIBLE) and is_confirmed(circuit, error)
        return "no motion" if has_no_motion else "ended", str(error)
    if rows["t"][-1] != T_END:
        return "short", f"ends at {rows['t'][-1]}"
    try:
        far = difference(circuit, rows, text)
    except nsds.SimulationError as error:
        return "steps failed", str(error)
    return ("agrees" if far <= 1.0 else "differs"), f"{far:.3g} in {run.seconds:.1f} s"


def main(first, last):
    """Run the netlists of some seeds."""
    warnings.simplefilter("ignore")
    nsds.simulate(nsds.circuit(random_netlist(0)), t_end=T_END, h=T_END / ROWS, scheme=nsds.event_driven())  # compiles
    counts = collections.Counter()
    for seed in range(first, last):
        kind, said = outcome(seed)
        counts[kind] += 1
        if kind not in ("agrees", "no motion", "refused"):
            print(f"{seed}: {kind}: {said}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
