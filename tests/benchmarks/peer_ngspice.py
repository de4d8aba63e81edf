"""Circuits beside ngspice, in one run: ``python -m tests.benchmarks.peer_ngspice`` (Debian package ngspice).

The netlists of the tests with ideal elements here, and there with elements as steep as its Newton's method bears: diodes of emission
coefficient 0.01, which drop 7 mV, switches of 1 mOhm with edges of 1 ns, an op-amp of gain 10^6. Shown: the largest difference of a
voltage, relative to its largest value, and the times; that of ngspice is what it says of its analysis, without starting and reading.
"""

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import nsds
from tests.circuits.netlists import EXAMPLES

# name -> voltage compared, and end of the run
WATCHED = {
    "rectifier": ("out", 0.06),
    "boost": ("out", 4e-3),
    "oscillator": ("q", 10e-3),
    "zener": ("out", 3e-3),
    "bridge": (("p", "n"), 0.06),
}
_ROWS = 2000
_MODELS = """
.subckt IDEAL a k
D a k DSTEEP
.ends
.model DSTEEP D(IS=1e-12 N=0.01)
.model SWI SW(Ron=1m Roff=1e9 Vt=0.5)
"""


def for_ngspice(netlist, node, t_end):
    """The netlist in elements of ngspice, with what prints one voltage at equal times."""
    zeners = dict(re.findall(r"\.model (\w+) D\((Ron=0 Vfwd=\S+ Vrev=\S+)\)", netlist))
    lines = []
    for line in netlist.splitlines():
        words = line.split()
        if re.match(r"D\d", line):
            name, a, k, model = words
            if model in zeners:
                forward, reverse = (re.search(rf"{key}=([\d.]+)", zeners[model]).group(1) for key in ("Vfwd", "Vrev"))
                lines += [f"X{name}f {a} {name}f IDEAL", f"V{name}f {name}f {k} {forward}"]
                lines += [f"X{name}r {k} {name}r IDEAL", f"V{name}r {name}r {a} {reverse}"]
            else:
                lines.append(f"X{name} {a} {k} IDEAL")
        elif "TABLE" in line:
            lines.append("E1 out 0 TABLE {V(p,q)} = (-9u,-9) (12u,12)")
        elif not line.lower().startswith((".model", ".tran", ".end")):
            lines.append(re.sub(r"(PULSE\(\S+ \S+ \S+) 0 0", r"\1 1n 1n", line))  # edges of no length would get that of a step
    if not any("0" in line.split()[1:3] for line in lines[1:]):
        lines.append("RG n 0 1k")  # ngspice wants a ground
    step, voltage = t_end / _ROWS, f"v({','.join(node)})" if isinstance(node, tuple) else f"v({node})"
    control = [".options reltol=1e-6 abstol=1e-12 vntol=1e-9 method=gear", ".control", f"tran {step} {t_end} 0 {step} uic",
               "rusage trantime", "linearize", f"wrdata OUT {voltage}", ".endc", ".end"]  # fmt: skip
    return "\n".join([*lines, _MODELS.strip(), *control]) + "\n"


def run_ngspice(netlist, node, t_end):
    """(times, voltage, seconds of the analysis) by ngspice."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "in.cir").write_text(for_ngspice(netlist, node, t_end))
        ran = subprocess.run(["ngspice", "-b", "in.cir"], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
        out = next(iter(Path(folder).glob("[oO][uU][tT]*")), None)
        seconds = re.search(r"[Tt]ran\w* .*?=\s*([\d.e+-]+)", ran.stdout)
        if out is None:
            raise RuntimeError(f"ngspice: {(ran.stdout + ran.stderr)[-600:]}")
        t, v = np.loadtxt(out).T
        return t, v, float(seconds.group(1)) if seconds else np.nan


def run_ours(netlist, node, t_end):
    """(times, voltage, seconds of a run whose kernels are compiled) by events."""
    circuit = nsds.circuit(netlist)
    for _ in range(2):
        began = time.perf_counter()
        rows = nsds.simulate(circuit, t_end=t_end, h=t_end / _ROWS, scheme=nsds.event_driven())
        seconds = time.perf_counter() - began
    one, *other = node if isinstance(node, tuple) else (node,)
    v = nsds.circuits.voltage(circuit, rows, one)
    for name in other:
        v = v - nsds.circuits.voltage(circuit, rows, name)
    return rows["t"], v, seconds


def compare(name):
    """(largest relative difference, seconds of ngspice, seconds of ours) of one circuit."""
    t, v, theirs = run_ngspice(EXAMPLES[name], *WATCHED[name])
    times, ours, seconds = run_ours(EXAMPLES[name], *WATCHED[name])
    return abs(np.interp(t[1:], times, ours) - v[1:]).max() / abs(v).max(), theirs, seconds


def main():
    """A line for each circuit."""
    if shutil.which("ngspice") is None:
        raise SystemExit("ngspice is not installed: apt-get install ngspice")
    print(f"{'circuit':12} {'difference':>10} {'ngspice, s':>11} {'nsds, s':>9}")
    for name in WATCHED:
        difference, theirs, seconds = compare(name)
        print(f"{name:12} {difference:10.1e} {theirs:11.3g} {seconds:9.3g}")


if __name__ == "__main__":
    main()
