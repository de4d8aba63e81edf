"""Seconds until the first results, in fresh processes of an environment: ``python -m tests.benchmarks --first-results [PYTHON]``."""

import os
import statistics
import subprocess
import tempfile

FIRST_RESULT = """
import time
began = time.perf_counter()
import nsds
imported = time.perf_counter()
{}
print(imported - began, time.perf_counter() - imported, time.process_time())
"""
BALL = "nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=5e-3)"
NEW_FUNCTION = """
def push(t, z, out):
    out[0] = z[0] * t
system = nsds.system(
    mass=nsds.lagrangian_linear(M=[[2.0]], K=[[3.0]], fext=push, z=[1.0], q=[1.0], v=[0.0]),
    wall=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.5), on="mass"))
nsds.simulate(system, t_end=1.0, h=1e-3)
"""
_EXAMPLE = "nsds.simulate(nsds.examples.{}(), t_end={}, h={}, scheme=nsds.{}())"
_BOX = """
box = nsds.shapes.box([1.0, 1.0, 1.0])
system = nsds.system(
    gravity=[0, 0, -9.81],
    box=nsds.rigid_bodies(1.0, nsds.shapes.inertia(box, 1.0), q=[0, 0, 0.5, 1, 0, 0, 0], v=[0] * 6),
    contacts=nsds.collisions({{"box": box}}, nsds.newton_impact_friction(e_n=0.0, mu=0.5), world=nsds.shapes.plane()))
nsds.simulate(system, t_end=0.1, h=0.01, scheme=nsds.{}())
"""
_OF_LAGRANGIAN = ("schatzman_paoli", "moreau_jean_direct_projection", "moreau_jean_combined_projection", "d1_minus_linear",
                  "generalised_alpha", "event_driven")  # fmt: skip
# what is stepped, by which scheme -> program
FIRST_PROGRAMS = {
    "ball, moreau_jean": BALL,
    "a user's function, moreau_jean": NEW_FUNCTION,
    **{f"ball, {scheme}": _EXAMPLE.format("bouncing_ball", 1.0, 5e-3, scheme) for scheme in _OF_LAGRANGIAN},
    "string, moreau_jean_exact": _EXAMPLE.format("guitar_string", 1e-3, 5e-6, "moreau_jean_exact"),
    "double pendulum, moreau_jean": _EXAMPLE.format("double_pendulum", 0.05, 5e-4, "moreau_jean"),
    "diode bridge, euler_moreau": _EXAMPLE.format("diode_bridge", 1e-4, 1e-6, "euler_moreau"),
    "relay, zero_order_hold": _EXAMPLE.format("relay_oscillator", 0.1, 1e-3, "zero_order_hold"),
    "diode bridge, event_driven": _EXAMPLE.format("diode_bridge", 1e-4, 1e-6, "event_driven"),
    **{f"box, {scheme}": _BOX.format(scheme) for scheme in ("moreau_jean", "rattle", "generalised_alpha", "event_driven")},
}
TARGETS = {"ball, moreau_jean": 1.2, "a user's function, moreau_jean": 2.5}  # with shipped kernels; the others 2


def seconds_of_first(python, program, cache):
    """[seconds of the import, of what a program does, processor time of both] in a fresh process, with kernels of users in ``cache``."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": os.path.join(cache, "kernels")}  # whose folder nsds would be found in the current one
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH"):  # an installation has bytecode, and is what is measured
        environment.pop(name, None)
    command = [python, "-c", FIRST_RESULT.format(program)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=cache)
    return [float(x) for x in result.stdout.split()]


def first_result(python, repeats):
    """Seconds in fresh processes: the import and the first results from a warm cache, and both together from an empty one."""
    with tempfile.TemporaryDirectory() as cache:
        empty = sum(seconds_of_first(python, BALL, cache)[:2])
        seconds_of_first(python, NEW_FUNCTION, cache)
        balls, new = ([seconds_of_first(python, program, cache) for _ in range(repeats)] for program in (BALL, NEW_FUNCTION))
    return {
        "import, warm (s)": (statistics.median(imported for imported, *_ in balls), 0.65),
        "first ball, warm (s)": (statistics.median(first for _, first, _ in balls), 0.3),
        "first with a new function, warm (s)": (statistics.median(first for _, first, _ in new), None),
        "import and first ball, empty cache (s)": (empty, 1.2),
    }


def show_first_results(python):
    """Print, for each scheme, the seconds of the import and the first result from an empty cache of its own, and from the warm one."""
    print(f"{'import and first result, s (processor time)':<46}{'empty cache':>18}{'warm':>18}{'target':>8}")
    for name, program in FIRST_PROGRAMS.items():
        with tempfile.TemporaryDirectory() as cache:
            empty, warm = (seconds_of_first(python, program, cache) for _ in range(2))
        cells = "".join(f"{imported + first:9.2f} ({spent:6.2f})" for imported, first, spent in (empty, warm))
        print(f"{name:<46}{cells}{TARGETS.get(name, 2.0):8.1f}", flush=True)
