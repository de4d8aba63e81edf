"""A wheel that rolls down stairs: a cylinder on boxes moves as a disk on rectangles does in the plane, whose contacts are closed forms."""

import numpy as np
import pytest

import nsds
from nsds import shapes
from nsds.status import TIME_STEPPED

G, RADIUS, SPEED, RUN, RISE = 9.81, 0.1, 0.6, 0.25, 0.06
LAW = nsds.newton_impact_friction(e_n=0.0, mu=0.5)


def in_space(steps):
    wheel = shapes.cylinder(RADIUS, 0.08, orientation=[1, 1, 0, 0])
    stairs = [shapes.box([RUN, 0.6, 1.0], position=[RUN * (i + 0.5), 0, -0.5 - RISE * i]) for i in range(steps)]
    body = nsds.rigid_bodies(1.0, shapes.inertia(wheel, 1.0), q=[0.05, 0, RADIUS, 1, 0, 0, 0], v=[SPEED, 0, 0, 0, SPEED / RADIUS, 0])
    return nsds.system(gravity=[0, 0, -G], wheel=body, contacts=nsds.collisions({"wheel": wheel}, LAW, world=stairs))


def in_plane(steps):
    stairs = [shapes.rectangle([RUN, 1.0], position=[RUN * (i + 0.5), -0.5 - RISE * i]) for i in range(steps)]
    body = nsds.planar_bodies(1.0, 0.5 * RADIUS**2, q=[0.05, RADIUS, 0], v=[SPEED, 0, -SPEED / RADIUS])
    return nsds.system(gravity=[0, -G, 0], wheel=body, contacts=nsds.collisions({"wheel": shapes.disk(RADIUS)}, LAW, world=stairs))


def run(system, scheme, h):
    return nsds.simulate(system, t_end=1.0, h=h, scheme=getattr(nsds, scheme)())


def deepest(rows):
    return min(rows["contacts"]["y"][i][: int(n)].min(initial=0.0) for i, n in enumerate(rows["contacts"]["n"]))


@pytest.mark.parametrize("scheme", ["rattle", "moreau_jean", "moreau_jean_combined_projection"])
def test_a_wheel_rolls_down_stairs_as_a_disk_does_step_by_step(scheme):
    """On both ends of its side at each edge: on one of them it turned away, at 2 rad/s."""
    wheel, disk = (run(system(3), scheme, 2e-3) for system in (in_space, in_plane))
    assert disk["wheel"]["q"][-1, 1] < RADIUS - 1.5 * RISE
    np.testing.assert_allclose(wheel["wheel"]["q"][:, [0, 2]], disk["wheel"]["q"][:, :2], atol=1e-9)
    np.testing.assert_allclose(wheel["wheel"]["v"][:, [0, 2]], disk["wheel"]["v"][:, :2], atol=1e-8)
    np.testing.assert_allclose(wheel["wheel"]["v"][:, [1, 3, 5]], 0, atol=1e-8)
    assert abs(deepest(wheel) - deepest(disk)) < 1e-9


def test_a_wheel_rolls_down_stairs_as_a_disk_does_event_by_event():
    """Normals at edges are exact and contacts stay the same, so that steps of the smooth motion are long, and no steps in time help."""
    wheel, disk = (run(system(3), "event_driven", 1e-2) for system in (in_space, in_plane))
    assert not (wheel["status"] & TIME_STEPPED).any()
    assert wheel["n_iter"].sum() < 2 * disk["n_iter"].sum()
    assert disk["wheel"]["q"][-1, 1] < RADIUS - 1.5 * RISE
    np.testing.assert_allclose(wheel["wheel"]["q"][-1, [0, 2]], disk["wheel"]["q"][-1, :2], atol=1e-6)
    np.testing.assert_allclose(wheel["wheel"]["v"][-1, [0, 2, 4]], disk["wheel"]["v"][-1, [0, 1, 5]] * [1, 1, -1], atol=1e-6)
    np.testing.assert_allclose(wheel["wheel"]["v"][:, [1, 3, 5]], 0, atol=1e-9)
