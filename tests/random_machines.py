"""Random machines: up to eight bodies of random shapes with joints between neighbours, which also collide, on a plane or in a box.

``python -m tests.random_machines FIRST LAST [PROCESSES]`` runs those of some seeds with the defaults, and tells which end early, gain
energy or open their joints.
"""

import collections
import math
import multiprocessing
import sys
import time
import warnings
from typing import NamedTuple

import numpy as np

import nsds
from nsds import joints, shapes
from tests.scenes.model import Model

N_STEPS = 150


def random_machine(seed):
    """(system, length, step size): drawn as it comes, so that held neighbours may overlap."""
    rng = np.random.default_rng(seed)
    length = 10.0 ** rng.uniform(-3, 3) if rng.random() < 0.4 else 1.0
    world = [shapes.plane()]
    if rng.random() < 0.4:
        world += [shapes.plane(normal, -length) for normal in ([1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0])]
    model = Model(mu=rng.choice([0, 0.3, 0.6, 1.2]), e=rng.choice([0, 0, 0.3, 0.8]), ground=False, world=world)
    places, at = [], np.array([0, 0, 0.3 * length])
    for k in range(rng.integers(1, 9)):
        turned = rng.normal(size=4)
        turned /= np.linalg.norm(turned)
        if rng.random() < 0.4:
            turned = np.array([1.0, 0, 0, 0])
        mass = 10 ** rng.uniform(-1, 1) * (1 if rng.random() < 0.8 else 100)
        model.body(f"b{k}", *_drawn(rng, length, at), mass=mass, turned=turned)
        places.append(at)
        step = rng.normal(size=3)
        step /= np.linalg.norm(step)
        step[2] = abs(step[2])
        at = at + step * length * (0.35 + 0.2 * rng.random())
    _join(rng, model, places, length)
    return model.record(), length, rng.choice([1e-2, 1e-3]) * math.sqrt(min(length, 1.0))


def _drawn(rng, length, at):
    """(shape, place) of the next body."""
    kind, size = rng.choice(["box", "sphere", "capsule", "cylinder", "hull"]), length * (0.1 + 0.3 * rng.random(3))
    if kind == "box":
        return shapes.box(size), at
    if kind == "sphere":
        return shapes.sphere(size[0] / 2), at
    if kind == "capsule":
        return shapes.capsule(size[0] / 3, size[1]), at
    if kind == "cylinder":
        return shapes.cylinder(size[0] / 2, size[1]), at
    return shapes.convex(rng.normal(size=(rng.integers(6, 14), 3)) * size / 2), at


def _join(rng, model, places, length):
    """Joints between some neighbours, brakes in some hinges, and now and then one with the world."""
    n = 0
    for k in range(1, len(places)):
        if rng.random() < 0.45:
            point, axis = (places[k] + places[k - 1]) / 2, rng.normal(size=3)
            axis /= np.linalg.norm(axis)
            kind, on = rng.choice(["ball", "hinge", "fixed", "prismatic", "universal"]), (f"b{k}", f"b{k - 1}")
            held = {"hinge": (joints.hinge, point, axis), "fixed": (joints.fixed_joint,), "prismatic": (joints.prismatic, axis)}
            make, *arguments = held.get(kind, (joints.ball_joint, point))
            model.join(f"j{n}", make(*arguments), on)
            n += 1
            if kind == "hinge" and rng.random() < 0.4:
                model.join(f"m{n}", joints.hinge_angle(axis), on, nsds.dry_friction(float(10 ** rng.uniform(-1, 2) * length)))
    if rng.random() < 0.2:
        model.join("w", joints.ball_joint(places[0]), "b0")


def mechanical_energy(system, rows):
    """(rows,): kinetic energy, and weight times height."""
    total = np.zeros(len(rows))
    for name in (name for name in rows.dtype.names if name[0] == "b"):
        mass, inertia, v = system[name]["mass"].item(), system[name]["inertia"].reshape(3, 3), rows[name]["v"]
        turning = np.einsum("ti,ij,tj->t", v[:, 3:], inertia, v[:, 3:])
        total += 0.5 * mass * (v[:, :3] ** 2).sum(axis=1) + 0.5 * turning + mass * 9.81 * rows[name]["q"][:, 2]
    return total


def energy_by_velocities(system, rows):
    """(rows,): kinetic energy, and weight times height at the start and times the way of the velocities since.

    What pushes bodies out of each other raises some without doing work on them: that is no part of it.
    """
    total = np.zeros(len(rows))
    for name in (name for name in rows.dtype.names if name[0] == "b"):
        weight, v = system[name]["mass"].item() * 9.81, rows[name]["v"][:, 2]
        way = np.concatenate([[0.0], np.cumsum(np.diff(rows["t"]) * (v[1:] + v[:-1]) / 2)])
        total += weight * (rows[name]["q"][0, 2] + way - rows[name]["q"][:, 2])
    return mechanical_energy(system, rows) + total


class Found(NamedTuple):
    """What became of a machine; gain: of `energy_by_velocities`, raised: of the rest of the energy, both relative to that at the start."""

    seed: int
    ended: str
    n_steps: int
    n_inexact: int
    gain: float
    raised: float
    opened: float  # joints in steps that were solved, of the length, radians
    depth: float  # at the end, of the length
    seconds: float  # of CPU

    def __str__(self):
        return (
            f"{self.seed}: {self.n_steps} steps, {self.n_inexact} inexact, gain {self.gain:.1e}, raised {self.raised:.1e}, joints open by "
            f"{self.opened:.1e}, depth at the end {self.depth:.1e}, {self.seconds:.1f} s{self.ended}"
        )


def run(seed):
    """`Found` of one machine. Of a run that ends the rows before count, which are those that somebody would look at."""
    warnings.simplefilter("ignore")
    system, length, h = random_machine(seed)
    began, ended = time.process_time(), ""
    try:
        rows = nsds.simulate(system, t_end=N_STEPS * h, h=h)
    except nsds.SimulationError as error:
        ended = f"; {str(error)[:100]}"
        rows = error.trajectory[~nsds.status.has_failed(error.trajectory["status"])]
        rows = rows[rows["status"] != nsds.status.NOT_COMPUTED]
    seconds = time.process_time() - began
    E, V, is_solved = mechanical_energy(system, rows), energy_by_velocities(system, rows), rows["status"] == nsds.status.CONVERGED
    opened = [abs(rows[name]["y"][is_solved]).max(initial=0.0) for name in rows.dtype.names if name[0] in "jw"]
    depth = -min(rows["contacts"]["y"][-1][: rows["contacts"]["n"][-1]].min(initial=0.0), 0.0)
    gain, raised, n_inexact = V.max() / E[0] - 1.0, (E - V).max() / E[0], int((rows["status"] == nsds.status.INEXACT).sum())
    return Found(seed, ended, len(rows) - 1, n_inexact, gain, raised, max(opened, default=0.0) / max(length, 1.0), depth / length, seconds)


def main(first, last, processes=2):
    """Run the machines of some seeds, a line for each that is suspicious: ended, gains a hundredth, joints open, dear."""
    counts = collections.Counter()
    with multiprocessing.Pool(processes) as pool:
        for found in pool.imap(run, range(first, last)):
            counts.update(machines=1, ended=bool(found.ended), inexact=found.n_inexact > 0, gained=found.gain > 1e-2, seconds=found.seconds)
            if found.ended or found.gain > 1e-2 or found.opened > 1e-6 or found.seconds > 20.0:
                print(found, flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
