"""Random rigid bodies on a plane with friction in space, thrown, spun or left lying, and their energy."""

import sys

import numpy as np

import nsds
from nsds.status import EVENT, JUMP

G = 9.81


def random_bodies(seed):
    """A box or capsule that is thrown, a box that lies, or several bodies, by turns."""
    rng = np.random.default_rng(seed)
    return (_thrown, _lying, _several)[seed % 3](rng)


def _turned(rng):
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def _gravity(rng, steepest):
    tilt, turn = rng.choice([0.0, steepest * rng.random()]), rng.choice([0.0, 2 * np.pi * rng.random()])
    return G * np.array([np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), -np.cos(tilt)])


def _law(rng):
    return nsds.newton_impact_friction(e_n=rng.choice([0.0, 0.3]), mu=rng.choice([0.2, 0.5, 1.2 * rng.random()]), dimension=3)


def _body(rng, kind, q, v, g):
    """(part, shape) of a random size."""
    m = 0.5 + rng.random()
    if kind == "box":
        size = 0.2 + 0.6 * rng.random(3)
        shape, inertia = nsds.shapes.box(size), m / 12 * (np.sum(size**2) - size**2)
    elif kind == "capsule":
        radius, length = 0.05 + 0.15 * rng.random(), 0.3 + 0.5 * rng.random()
        across = m * (length**2 / 12 + radius**2 / 4)
        shape, inertia = nsds.shapes.capsule(radius, length), np.array([across, across, m * radius**2 / 2])
    else:
        radius = 0.1 + 0.2 * rng.random()
        shape, inertia = nsds.shapes.sphere(radius), np.full(3, 0.4 * m * radius**2)
    q = [*q[:2], size[2] / 2, *q[3:]] if q[2] == 0.0 else q
    return nsds.rigid_bodies(m, inertia, q=q, v=v, fext=m * g), shape


def _scene(rng, bodies):
    parts, shapes = {f"body_{k}": part for k, (part, _) in enumerate(bodies)}, {f"body_{k}": shape for k, (_, shape) in enumerate(bodies)}
    return nsds.system(**parts, hits=nsds.collisions(shapes, _law(rng), world=nsds.shapes.plane()))


def _thrown(rng):
    g = _gravity(rng, 0.5)
    q, v = [0, 0, 0.45 + 0.5 * rng.random(), *_turned(rng)], [*rng.normal(size=2) * 1.5, 0.5 * rng.normal(), *rng.normal(size=3) * 3]
    return _scene(rng, [_body(rng, rng.choice(["box", "capsule"]), q, v, g)])


def _lying(rng):
    g, a = _gravity(rng, 0.8), np.pi * rng.random()
    v = rng.choice([0.0, 1.0]) * np.array([*rng.normal(size=2) * 1.5, 0, 0, 0, 3 * rng.normal() * rng.integers(2)])
    return _scene(rng, [_body(rng, "box", [0, 0, 0.0, np.cos(a), 0, 0, np.sin(a)], v, g)])


def _several(rng):
    g, bodies = np.array([0, 0, -G]), []
    for k in range(2 + rng.integers(2)):
        q = [*rng.normal(size=2) * 0.2, 0.5 + 0.7 * k + 0.2 * rng.random(), *_turned(rng)]
        v = [*rng.normal(size=2) * 0.7, 0, *rng.normal(size=3) * 2]
        bodies.append(_body(rng, rng.choice(["box", "capsule"]) if k == 0 else "sphere", q, v, g))
    return _scene(rng, bodies)


def gain_of(rows, system):
    """The largest rise of energy from one row to the next, in J, but for those that impacts make."""
    energy = 0.0
    for name in [name for name in system.dtype.names if name.startswith("body")]:
        part, q, v = system[name], rows[name]["q"], rows[name]["v"]
        energy += part["mass"] * (v[:, :3] ** 2).sum(axis=1) / 2 - q[:, :3] @ part["fext"]
        energy += np.einsum("ti,ij,tj->t", v[:, 3:], part["inertia"], v[:, 3:]) / 2
    impact = (rows["status"] & (EVENT | JUMP)) == EVENT | JUMP
    return np.where(impact[1:], 0.0, np.diff(energy)).max()


def main(count=300, first=0, t_end=1.5):
    """Runs of so many seeds: those that gain energy, or end before their time."""
    for seed in range(first, first + count):
        system = random_bodies(seed)
        try:
            gain = gain_of(nsds.simulate(system, t_end=t_end, h=0.01, scheme=nsds.event_driven(max_events=5000), progress=False), system)
        except nsds.SimulationError as error:
            print(f"seed {seed}: {error}", flush=True)
        else:
            if gain > 1e-6:
                print(f"seed {seed}: gains {gain:.1e} J", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
