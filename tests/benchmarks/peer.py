"""The same workloads in Siconos' Python interface: ``python3 peer.py NAME key=value ...`` prints µs per step, first step left out.

Run by the python that has siconos installed; Debian's package is built with assertions on. The state is recorded every step where it
is few arrays; larger models record nothing here, in the peer's favour. Workloads whose name ends in ``_by_events`` print a line of JSON
for `tests.benchmarks.events`.
"""

import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import siconos.kernel as sk


def march(simulation, n_steps, state):
    """µs per step of the usual loop after the first step, in which the peer initialises itself (a millisecond and more)."""
    recorded = len(state) < 50
    ends = np.cumsum([len(x) for x in state])
    rows = np.empty((n_steps + 2, ends[-1]))
    places = [(slice(end - len(x), end), x) for end, x in zip(ends.tolist(), state, strict=True)]
    simulation.computeOneStep()
    simulation.nextStep()
    k = 1
    began = time.perf_counter()
    while simulation.hasNextEvent() and k < n_steps:
        simulation.computeOneStep()
        if recorded:
            row = rows[k]
            for place, x in places:  # the cheapest of five ways to copy a few numbers
                row[place] = x
        simulation.nextStep()
        k += 1
    return (time.perf_counter() - began) / (k - 1) * 1e6


def simulation_of(links, bodies, h, T, theta=0.5):
    """Moreau-Jean with an LCP (Lemke)."""
    model = sk.NonSmoothDynamicalSystem(0.0, T)
    for body in bodies:
        model.insertDynamicalSystem(body)
    for interaction, *on in links:
        model.link(interaction, *on)
    return sk.TimeStepping(model, sk.TimeDiscretisation(0.0, h), sk.MoreauJeanOSI(theta), sk.LCP())


def impact(e, H, b=None):
    """Newton impact on a linear relation."""
    return sk.Interaction(sk.NewtonImpactNSL(e), sk.LagrangianLinearTIR(H, b) if b else sk.LagrangianLinearTIR(H))


def bouncing_ball(h, T):
    """One ball of three coordinates."""
    ball = sk.LagrangianLinearTIDS([1.0, 0, 0], [0.0, 0, 0], [[1.0, 0, 0], [0, 1, 0], [0, 0, 0.004]])
    ball.setFExtPtr([-9.81, 0, 0])
    contact = impact(0.9, [[1.0, 0, 0]])
    s = simulation_of([(contact, ball)], [ball], h, T)
    return march(s, round(T / h), [ball.q(), ball.velocity(), contact.lambda_(1)])


def cam_force(t, rpm):
    """Cam force of the study, in plain Python."""
    w = 2 * math.pi * rpm / 60
    b = (w * t + math.pi / 2) % (2 * math.pi)
    if b > math.pi:
        b, w = 2 * math.pi - b, -w
    if b <= math.pi / 2:
        return -1430.8 * 0.1
    if b <= math.pi / 2 + 1.050328174371336:
        k, rho = 0.45, 0.85
    elif b <= math.pi / 2 + 1.22173047639603:
        b, k, rho = b - 1.22173047639603, -0.40393320723821, 0.15
    else:
        return -1430.8 * 0.25393320723821
    s, c = math.sin(b), math.cos(b)
    root = math.sqrt(1 - (c * k / rho) ** 2)
    acceleration = (k * s + k * k / (rho * root) * (c * c - s * s - (k * s * c / (rho * root)) ** 2)) * w * w
    return -(1.221 * acceleration + 1430.8 * (-k * s + rho * root - 0.3))


class Follower(sk.LagrangianLinearTIDS):
    """The user's force is a Python method, as here it is a Python function."""

    def computeFExt(self, t):
        """Called twice a step."""
        self.force[0] = cam_force(t, 358.0)


def cam_follower(h, T):
    """One coordinate, forcing written in Python."""
    follower = Follower([0.1], [0.0], [[1.221]])
    follower.setKPtr([[1430.8]])
    follower.setFExtPtr([0.0])
    follower.force = follower.fExt()  # a view: what setFExtPtr is given is copied
    contact = impact(0.8, [[1.0]])
    s = simulation_of([(contact, follower)], [follower], h, T)
    return march(s, round(T / h), [follower.q(), follower.velocity(), contact.lambda_(1)])


def column_of(n, gap, e):
    """(bodies, links) of a column of n beads."""
    radius = 0.1
    bodies = [sk.LagrangianLinearTIDS([radius + gap + i * (2 * radius + gap)], [0.0], [[1.0]]) for i in range(n)]
    for body in bodies:
        body.setFExtPtr([-9.81])
    links = [(impact(e, [[1.0]], [-radius]), bodies[0])]
    links += [(impact(e, [[-1.0, 1.0]], [-2 * radius]), bodies[i - 1], bodies[i]) for i in range(1, n)]
    return bodies, links


def beads(n, steps, rest=1, h=1e-3):
    """A column of n beads."""
    bodies, links = column_of(n, -1e-6, 0.0) if rest else column_of(n, 0.05, 0.9)
    s = simulation_of(links, bodies, h, (steps + 5) * h)
    return march(s, steps, [x for b in bodies for x in (b.q(), b.velocity())])


def bar(n, steps, h=1e-6):
    """Bar of n nodes, dense matrices (its fastest storage)."""
    E, S, rho, element = 210e9, 0.000314, 7800.0, 1.0 / n
    ends = np.full(n, 2.0)
    ends[[0, -1]] = 1.0
    neighbours = np.eye(n, k=1) + np.eye(n, k=-1)
    M = rho * S * element / 6 * (np.diag(2 * ends) + neighbours)
    body = sk.LagrangianLinearTIDS(np.full(n, 5e-5), np.full(n, -0.1), M)
    body.setKPtr(E * S / element * (np.diag(ends) - neighbours))
    body.setFExtPtr(np.zeros(n))
    s = simulation_of([(impact(0.0, np.eye(1, n)), body)], [body], h, (steps + 5) * h)
    return march(s, steps, [body.q(), body.velocity()])


def by_events(links, bodies, h, T, rtol):
    """JSON of an event-driven run with Lsodar: seconds without initialisation, times of impacts, and how many times were stopped at."""
    model = sk.NonSmoothDynamicalSystem(0.0, T)
    for body in bodies:
        model.insertDynamicalSystem(body)
    for interaction, *on in links:
        model.link(interaction, *on)
    simulation, integrator = sk.EventDriven(model, sk.TimeDiscretisation(0.0, h)), sk.LsodarOSI()
    simulation.insertIntegrator(integrator)
    simulation.insertNonSmoothProblem(sk.LCP(), sk.SICONOS_OSNSP_ED_IMPACT)
    simulation.insertNonSmoothProblem(sk.LCP(), sk.SICONOS_OSNSP_ED_SMOOTH_ACC)
    integrator.setTol(1, rtol, 1e-3 * rtol)
    simulation.initialize()
    manager, impacts, stops = simulation.eventsManager(), [], 0
    began = time.perf_counter()
    while simulation.hasNextEvent():
        simulation.advanceToEvent()
        if manager.nextEvent().getType() == 2:  # found on the way, not a time of the discretisation
            impacts.append(simulation.nextTime())
        simulation.processEvents()
        stops += 1
    return json.dumps({"seconds": time.perf_counter() - began, "impacts": impacts, "stops": stops})


def ball_by_events(h, T, rtol):
    """The ball of three coordinates."""
    ball = sk.LagrangianLinearTIDS([1.0, 0, 0], [0.0, 0, 0], [[1.0, 0, 0], [0, 1, 0], [0, 0, 0.004]])
    ball.setFExtPtr([-9.81, 0, 0])
    return by_events([(impact(0.9, [[1.0, 0, 0]]), ball)], [ball], h, T, rtol)


PENDULUM_FORCE = """#include <math.h>
void pendulum(double t, unsigned n, const double *q, const double *v, double *f, unsigned n_z, double *z) { f[0] = 9.81 * sin(q[0]); }
"""


def pendulum_by_events(h, T, rtol):
    """A pendulum of one angle at a stop, its force a compiled function, as here."""
    pendulum = sk.LagrangianDS([1.0], [0.0], [[1.0]])
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "force.c"), Path(folder, "ForcePlugin")
        source.write_text(PENDULUM_FORCE)
        subprocess.run(["cc", "-O3", "-shared", "-fPIC", source, "-o", library.with_suffix(".so"), "-lm"], check=True)
        pendulum.setComputeFIntFunction(str(library), "pendulum")
        return by_events([(impact(0.9, [[1.0]], [0.3]), pendulum)], [pendulum], h, T, rtol)


def chain_by_events(n, h, T, rtol):
    """The dropping column of n beads."""
    bodies, links = column_of(n, 0.05, 0.9)
    return by_events(links, bodies, h, T, rtol)


def first_order(model, law, problem, h, T):
    """Euler-Moreau with theta = 1/2; model: A, B, C, D, x."""
    A, B, C, D, x = model
    plant = sk.FirstOrderLinearDS(x, A)
    relation = sk.FirstOrderLinearTIR(C, B)
    if D is not None:
        relation.setDPtr(D)
    switches = sk.Interaction(law, relation)
    system = sk.NonSmoothDynamicalSystem(0.0, T)
    system.insertDynamicalSystem(plant)
    system.link(switches, plant)
    s = sk.TimeStepping(system, sk.TimeDiscretisation(0.0, h), sk.EulerMoreauOSI(0.5), problem)
    return march(s, round(T / h), [plant.x(), switches.y(0), switches.lambda_(0)])


def diode_bridge(h, T):
    """LC tank, four diodes, resistor."""
    L, C0, R = 1e-2, 1e-6, 1e3
    A, B = [[0, -1 / C0], [1 / L, 0]], [[0, 0, -1 / C0, 1 / C0], [0, 0, 0, 0]]
    C, D = [[0.0, 0], [0, 0], [-1, 0], [1, 0]], [[1 / R, 1 / R, -1, 0], [1 / R, 1 / R, 0, -1], [1, 0, 0, 0], [0, 1, 0, 0]]
    return first_order((A, B, C, D, [10.0, 0.0]), sk.ComplementarityConditionNSL(4), sk.LCP(), h, T)


def relay(h, T):
    """Two states, two relays."""
    return first_order((np.zeros((2, 2)), 2 * np.eye(2), np.eye(2), None, [1.0, -1.0]), sk.RelayNSL(2, -1, 1), sk.Relay(), h, T)


if __name__ == "__main__":
    name, *pairs = sys.argv[1:]
    values = {key: float(value) if any(c in value for c in ".e") else int(value) for key, value in (pair.split("=") for pair in pairs)}
    print(globals()[name](**values))
