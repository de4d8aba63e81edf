"""Impacts at the same time without friction: one coefficient of restitution for all takes energy, whatever each contact did before."""

import numpy as np
import pytest

import nsds
from nsds import shapes

STEP, STEPS = 1e-2, 40


def above(t, q, z, out):
    """A ball above the floor, or above another one: gap, point, normal."""
    below = q[9] if q.size == 14 else 0.0
    out[0], out[1], out[2], out[3] = q[2] - below - z[0], q[0], q[1], q[2]
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def column(seed, e, kind):
    """Three balls on a vertical line above a floor, some within each other, at velocities of either sign; without weight."""
    rng = np.random.default_rng(seed)
    bodies, radius, height = {}, 10 ** rng.uniform(-1.5, -0.5, size=3), 0.0
    for k in range(3):
        height += radius[k] * (1 + rng.choice([-0.5, 0.0, 0.5]) * rng.random())
        bodies[f"b{k}"] = nsds.rigid_bodies(
            10 ** rng.uniform(-1, 1), [0.01] * 3, q=[0, 0, height, 1, 0, 0, 0], v=[0, 0, 3 * rng.normal(), 0, 0, 0]
        )
        height += radius[k]
    law = nsds.newton_impact(e)
    if kind == "shapes":
        balls = {f"b{k}": shapes.sphere(radius[k]) for k in range(3)}
        return nsds.system(**bodies, contacts=nsds.collisions(balls, law, world=shapes.plane()))
    relations = [nsds.contact_point(above, z=[r]) for r in (radius[0], radius[0] + radius[1], radius[1] + radius[2])]
    on = ("b0", ("b1", "b0"), ("b2", "b1"))
    return nsds.system(**bodies, **{f"c{k}": nsds.interaction(relations[k], law, on=on[k]) for k in range(3)})


@pytest.mark.filterwarnings("ignore:.*overlap", "ignore:.*penetration")
@pytest.mark.parametrize("kind", ["shapes", "relations"])
@pytest.mark.parametrize("e", [0.3, 0.8, 1.0])
def test_no_impact_adds_energy(kind, e):
    """``P . (u + e u^-) = 0`` gives ``-(1 - e) P . u^- / 2 >= 0``. A ball that rebounded within another, and was struck, gained energy."""
    for seed in range(20):
        system = column(seed, e, kind)
        rows = nsds.simulate(system, t_end=STEPS * STEP, h=STEP)
        energy = sum(0.5 * system[f"b{k}"]["mass"] * (rows[f"b{k}"]["v"] ** 2).sum(axis=1) for k in range(3))
        assert (np.diff(energy) <= 1e-9 * energy[0]).all(), seed
        if e == 1.0:
            np.testing.assert_allclose(energy, energy[0], rtol=1e-8)
