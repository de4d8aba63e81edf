"""A user's program that takes from every group: it runs, and type checkers have nothing to say about it (``python -m tests.types``)."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import nsds
from nsds import io, laws, relations, schemes, solvers
from nsds.analysis import energy, orbit
from nsds.status import CONVERGED


def push(t: float, z: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Force on the mass."""
    out[0] = np.cos(z[0] * t)


def main(folder: Path) -> None:
    """Model, run, analysis, circuit, solver, files and pictures."""
    # 1. mechanics: an oscillator before a stop, by steps and by events
    oscillator = nsds.system(
        mass=nsds.lagrangian_linear(M=[1.0], K=[1.0], C=[0.1], fext=push, q=[0.1], v=[0.0], z=[2.2]),
        stop=nsds.interaction(relations.lagrangian_linear_relation(H=[[1.0]], b=[0.2]), laws.newton_impact(e=0.8), on="mass"),
    )
    rows = nsds.simulate(oscillator, t_end=1.0, h=1e-2, scheme=schemes.moreau_jean(theta=0.5), progress=False)
    exact = nsds.simulate(oscillator, t_end=1.0, h=1e-2, scheme=nsds.event_driven(rtol=1e-8), progress=False)
    assert rows["status"][-1] == exact["status"][-1] == CONVERGED
    nsds.report(oscillator, rows)
    print(nsds.describe(oscillator).title, nsds.advice(int(rows["status"][-1])), energy(oscillator, rows).shape)
    # 2. an orbit of it, and its multipliers
    found = orbit(oscillator, period=2 * np.pi / 2.2, n_periods=1)
    print(found["x"], found.dtype.names)
    # 3. bodies with shapes, a joint and detected contacts
    box = nsds.shapes.box([0.1, 0.1, 0.1])
    bodies = nsds.system(
        gravity=[0.0, 0.0, -9.81],
        boxes=nsds.rigid_bodies(1.0, nsds.shapes.inertia(box, 1.0), q=[[0, 0, 0.05, 1, 0, 0, 0]], v=[[0.0] * 6]),
        contacts=nsds.collisions({"boxes": box}, nsds.newton_impact_friction(e_n=0.0, mu=0.5), world=nsds.shapes.plane()),
    )
    last = nsds.step(bodies, h=1e-3)
    turned = nsds.rotations.turned(last["boxes"]["q"][..., 3:], np.array([1.0, 0.0, 0.0]))
    hinge = nsds.joints.hinge(point=[0.0, 0.0, 0.0], axis=[0.0, 0.0, 1.0])
    print(turned.shape, sorted(hinge))
    # 4. a circuit, an example, a complementarity problem
    bridge = nsds.circuit("half-wave rectifier\nV1 a 0 SIN(0 10 50)\nD1 a out DI\nR1 out 0 50\n.model DI D\n")
    volts = nsds.circuits.voltage(bridge, nsds.simulate(bridge, t_end=0.02, h=1e-4, progress=False), "out")
    ball = nsds.examples.bouncing_ball(height=2.0)
    solution = solvers.solve_lcp(M=np.eye(2), q=[-1.0, 1.0])
    assert solution.success, solution.message
    print(volts.max(), ball["ball"]["q"], solution.z + solution.w)
    # 5. files and pictures
    io.stream(ball, folder / "ball.h5", t_end=0.1, h=1e-2, progress=False)
    print(len(io.read_trajectory(folder / "ball.h5")))
    nsds.plotting.time_series(rows, "mass.q").figure.savefig(folder / "mass.png")
