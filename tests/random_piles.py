"""Random small piles: three to eight bodies of all shapes dropped onto a plane, a height map or a mesh, with the defaults.

``python -m tests.random_piles FIRST LAST`` runs those of some seeds, and tells which end early, gain energy or end within each other.
"""

import collections
import sys
import time
import warnings

import numpy as np

import nsds
from nsds import shapes

SIZE, GRAVITY, T_END = 0.1, 9.81, 1.0
KINDS = ("sphere", "box", "capsule", "cylinder", "cone", "convex", "mesh")
FLOORS = ("plane", "height_map", "mesh")


def random_pile(seed):
    """(system, h, masses, inertias): bodies one above the other, none of which touches another at the start."""
    rng = np.random.default_rng(seed)
    parts, of_bodies, masses, inertias, height = {}, {}, [], [], 0.25
    for k in range(rng.integers(3, 9)):
        shape, mass = _drawn(rng, rng.choice(KINDS)), 10 ** rng.uniform(-1, 1)
        inertia, p = np.eye(3) * shapes.inertia(shape, mass), rng.normal(size=4)
        q = [*rng.uniform(-0.06, 0.06, size=2), height, *(p / np.linalg.norm(p))]
        parts[f"b{k}"] = nsds.rigid_bodies(mass, inertia, q=q, v=[*rng.normal(size=3) * 0.2, *rng.normal(size=3)])
        of_bodies[f"b{k}"] = shape
        masses.append(mass)
        inertias.append(inertia)
        height += 0.25
    law = nsds.newton_impact_friction(rng.choice([0.0, 0.0, 0.2, 0.5]), rng.choice([0.0, 0.3, 0.6, 1.0]))
    contacts = nsds.collisions(of_bodies, law, world=_floor(rng, rng.choice(FLOORS)))
    return nsds.system(gravity=[0, 0, -GRAVITY], **parts, contacts=contacts), rng.choice([1e-3, 2e-3, 5e-3, 1e-2]), masses, inertias


def _drawn(rng, kind):
    """A shape about its centre of mass, at most 0.12 m from it."""
    a, b, c = SIZE * rng.uniform(0.5, 1.0, size=3)
    if kind == "sphere":
        return shapes.sphere(a / 2)
    if kind == "box":
        return shapes.box([a, b, c])
    if kind in ("capsule", "cylinder", "cone"):
        return {"capsule": shapes.capsule, "cylinder": shapes.cylinder, "cone": shapes.cone}[kind](a / 2, b)
    if kind == "convex":
        points = rng.normal(size=(10, 3))
        points *= a / 2 / np.linalg.norm(points, axis=1)[:, None]
        return shapes.convex(points - shapes.centre_of_mass(shapes.convex(points)))
    return box_of_corners("mesh", [a, b, c])


def box_of_corners(kind, lengths):
    """A box about the origin as a hull, or as a closed mesh of twelve triangles."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2 * lengths
    sides = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    triangles = [t for s in sides for t in ([s[0], s[1], s[2]], [s[0], s[2], s[3]])]
    return shapes.convex(corners) if kind == "convex" else shapes.mesh(corners, triangles)


def _floor(rng, kind):
    """A plane, or a bowl with bumps."""
    if kind == "plane":
        return shapes.plane()
    x = np.linspace(-2.0, 2.0, 25)
    heights = 0.02 * (x[:, None] ** 2 + x**2) + 0.004 * rng.uniform(size=(25, 25))
    if kind == "height_map":
        return shapes.height_map(heights, [4.0, 4.0])
    vertices = np.stack([*np.meshgrid(x, x, indexing="ij"), heights], axis=-1).reshape(-1, 3)
    first = (np.arange(24)[:, None] * 25 + np.arange(24)).reshape(-1)
    halves = [np.stack([first, first + 25, first + 26], axis=1), np.stack([first, first + 26, first + 1], axis=1)]
    return shapes.mesh(vertices, np.concatenate(halves))


def run(seed):
    """(gain, overlap, rows): energy above that at the start, of weight times size, and the deepest overlap at the end, of the size."""
    system, h, masses, inertias = random_pile(seed)
    rows = nsds.simulate(system, t_end=T_END, h=h)
    E = np.zeros(len(rows))
    for k, (mass, inertia) in enumerate(zip(masses, inertias, strict=True)):
        v, q = rows[f"b{k}"]["v"], rows[f"b{k}"]["q"]
        E += (
            0.5 * mass * (v[:, :3] ** 2).sum(axis=1)
            + 0.5 * np.einsum("ti,ij,tj->t", v[:, 3:], inertia, v[:, 3:])
            + mass * GRAVITY * q[:, 2]
        )
    last = rows["contacts"][-1]
    return (E.max() - E[0]) / (sum(masses) * GRAVITY * SIZE), max(0.0, -last["y"][: last["n"]].min(initial=0.0)) / SIZE, rows


def main(first, last):
    """Run the piles of some seeds."""
    warnings.simplefilter("ignore")
    counts = collections.Counter()
    for seed in range(first, last):
        began = time.perf_counter()
        try:
            gain, overlap, rows = run(seed)
        except nsds.SimulationError as error:
            counts["ended"] += 1
            print(f"{seed}: {error}", flush=True)
            continue
        counts["ran"] += 1
        counts["with inexact steps"] += int(rows["status"].any())
        for name, value, most in (("gained", gain, 1e-2), ("overlap", overlap, 1e-2)):
            if value > most:
                counts[name] += 1
                print(f"{seed}: {name} {value:.3g}", flush=True)
        if time.perf_counter() - began > 20.0:
            print(f"{seed}: {time.perf_counter() - began:.0f} s", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
