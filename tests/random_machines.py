"""Random machines: up to eight bodies of random shapes with joints between neighbours, which also collide, on a plane or in a box.

``python -m tests.random_machines FIRST LAST`` runs those of some seeds with the defaults, and tells which end early or gain energy.
"""

import collections
import math
import sys
import time
import warnings

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


def main(first, last):
    """Run the machines of some seeds."""
    warnings.simplefilter("ignore")
    counts = collections.Counter()
    for seed in range(first, last):
        system, _, h = random_machine(seed)
        began = time.perf_counter()
        try:
            rows = nsds.simulate(system, t_end=N_STEPS * h, h=h)
        except nsds.SimulationError as error:
            counts["ended"] += 1
            print(f"{seed}: {error}", flush=True)
            continue
        E, seconds = mechanical_energy(system, rows), time.perf_counter() - began
        counts["ran"] += 1
        counts["with inexact steps"] += int(rows["status"].any())
        if E.max() > 1.01 * E[0]:
            counts["gained"] += 1
            print(f"{seed}: energy grows to {E.max() / E[0]:.3g} times what it was", flush=True)
        if seconds > 20.0:
            print(f"{seed}: {seconds:.0f} s", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
