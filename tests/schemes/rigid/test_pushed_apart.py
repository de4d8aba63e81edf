"""Bodies that begin within others are pushed apart by positions alone: friction and joints do not feel the push."""

import numpy as np
import pytest

import nsds
from nsds import joints, shapes

GRAVITY, RADIUS, STEP, STEPS = 9.81, 0.1, 1e-3, 60


def wall(t, q, z, out):
    """A wall along z on the left of a ball: gap, point, normal."""
    out[0] = q[0] - z[0]
    out[1], out[2], out[3] = q[0] - z[0], q[1], q[2]
    out[4], out[5], out[6] = 1.0, 0.0, 0.0


def beside_a_wall(kind, mu):
    """A ball that falls, a third of its radius within a wall."""
    ball = nsds.rigid_bodies(2.0, [0.008] * 3, q=[RADIUS * 2 / 3, 0, 1.0, 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -2.0 * GRAVITY])
    law = nsds.newton_impact_friction(0.0, mu)
    if kind == "shape":
        return nsds.system(ball=ball, wall=nsds.collisions({"ball": shapes.sphere(RADIUS)}, law, world=shapes.plane([1, 0, 0], 0.0)))
    return nsds.system(ball=ball, wall=nsds.interaction(nsds.contact_point(wall, z=[RADIUS]), law, on="ball"))


@pytest.mark.parametrize("kind", ["shape", "relation"])
@pytest.mark.parametrize("mu", [0.3, 1.2])
def test_what_falls_along_a_wall_within_it_falls_freely(kind, mu):
    """The wall carries nothing, but for what forces are worth in a step: ``mu g h / 2`` of velocity. It was held until it was out."""
    rows = nsds.simulate(beside_a_wall(kind, mu), t_end=STEPS * STEP, h=STEP)
    t, z = rows["t"], rows["ball"]["q"][:, 2]
    assert rows["ball"]["q"][-1, 0] > RADIUS * (1 - 1e-6)  # it is out
    assert (abs(z - (1.0 - 0.5 * GRAVITY * t**2)) <= mu * GRAVITY * STEP / 2 * t + 1e-12).all()
    np.testing.assert_allclose(rows["ball"]["v"][:, 2], -GRAVITY * t, atol=1e-9)


def two_on_a_rod(depth):
    """Two bodies on a hinge in free fall, and a heavy one that one of them begins within."""
    turned = [np.cos(0.3), 0, np.sin(0.3), 0]
    a = nsds.rigid_bodies(1.0, [0.01, 0.02, 0.015], q=[0, 0, 0, *turned], v=[0, 0, 0, 0.5, -0.3, 0.2])
    b = nsds.rigid_bodies(3.0, [0.02, 0.03, 0.025], q=[0.3, 0.1, 0, 1, 0, 0, 0], v=np.zeros(6))
    c = nsds.rigid_bodies(300.0, [3.0] * 3, q=[0.05, 0, -0.3 + depth, 1, 0, 0, 0], v=np.zeros(6))
    hits = nsds.collisions({"a": shapes.box([0.2, 0.2, 0.2]), "c": shapes.box([0.4, 0.4, 0.4])}, nsds.newton_impact_friction(0.0, 0.0))
    hinge = nsds.interaction(joints.ball_joint([0.15, 0.05, 0]), nsds.equality(), on=("b", "a"))
    return nsds.system(a=a, b=b, c=c, hinge=hinge, hits=hits)


def kinetic_energy(system, rows):
    total = np.zeros(len(rows))
    for name in "abc":
        v, inertia = rows[name]["v"], system[name]["inertia"].reshape(3, 3)
        total += 0.5 * system[name]["mass"] * (v[:, :3] ** 2).sum(axis=1) + 0.5 * np.einsum("ti,ij,tj->t", v[:, 3:], inertia, v[:, 3:])
    return total


@pytest.mark.parametrize("depth", [0.05, 0.12])
def test_joints_take_nothing_from_a_push(depth):
    """What they do against it in the first half of a step turned with the bodies until the second."""
    system = two_on_a_rod(depth)
    rows = nsds.simulate(system, t_end=STEPS * STEP, h=STEP)
    K = kinetic_energy(system, rows)
    assert rows["hits"]["y"][0].min() < -0.5 * depth
    assert abs(rows["hinge"]["y"]).max() < 1e-9
    assert K.max() <= K[0] * (1 + 1e-6)
