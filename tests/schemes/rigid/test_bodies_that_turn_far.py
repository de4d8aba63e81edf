"""Rods that turn by up to three radians in a step and strike a plane: every step is found, and restitution of 0 gives them no energy."""

import numpy as np
import pytest

import nsds

N_STEPS = 20


def _rods(low, high, restitution):
    """For each of some random rods what is needed of it: (system, h, mass matrix as a diagonal)."""
    rng = np.random.default_rng(1)
    for k in range(24):
        radius, length, h, turn = (
            10 ** rng.uniform(-2.3, -1),
            10 ** rng.uniform(-1.5, -0.3),
            10 ** rng.uniform(-4, -2),
            rng.uniform(low, high),
        )
        across, along = length**2 / 12 + radius**2 / 4, radius**2 / 2
        axis, attitude = rng.normal(size=3), rng.normal(size=4)
        rate, attitude = turn / h * axis / np.linalg.norm(axis), attitude / np.linalg.norm(attitude)
        height, speed = rng.uniform(1.0, 1.5) * (length / 2 + radius), rng.uniform(0, 1) * length / h / 10
        shape = (
            nsds.shapes.capsule(radius, length),
            nsds.shapes.cylinder(radius, length),
            nsds.shapes.box([2 * radius, 2 * radius, length]),
        )
        rod = nsds.rigid_bodies(1.0, [across, across, along], q=[0, 0, height, *attitude], v=[0, 0, -speed, *rate])
        law = nsds.newton_impact_friction(restitution, rng.choice([0.0, 0.3]))
        contacts = nsds.collisions({"rod": shape[k % 3]}, law, world=nsds.shapes.plane())
        yield nsds.system(gravity=[0, 0, -9.81], rod=rod, contacts=contacts), h, np.array([1.0, 1.0, 1.0, across, across, along])


@pytest.mark.parametrize(("low", "high"), [(0.2, 1.0), (1.0, 3.0)])
def test_rods_that_turn_far_in_a_step_gain_no_energy(low, high):
    n_struck = 0
    for system, h, mass in _rods(low, high, 0.0):
        rows = nsds.simulate(system, t_end=N_STEPS * h, h=h, progress=False)
        energy = 0.5 * rows["rod"]["v"] ** 2 @ mass + 9.81 * rows["rod"]["q"][:, 2]
        assert energy.max() <= 1.01 * energy[0]
        n_struck += energy[-1] < 0.99 * energy[0]
    assert n_struck >= 6


def test_rods_that_turn_far_in_a_step_rebound_with_hardly_any_energy_of_their_own():
    for system, h, mass in _rods(1.0, 3.0, 0.5):
        rows = nsds.simulate(system, t_end=N_STEPS * h, h=h, progress=False)
        energy = 0.5 * rows["rod"]["v"] ** 2 @ mass + 9.81 * rows["rod"]["q"][:, 2]
        assert energy.max() <= 1.06 * energy[0]


def test_what_contacts_take_back_leaves_energy_and_angular_momentum_of_a_ball():
    """A body without gyroscopic moment has the same energy for every attitude: nothing is shortened."""
    ball = nsds.rigid_bodies(1.0, 0.004 * np.eye(3), q=[0, 0, 0.1, 1, 0, 0, 0], v=[0, 0, -1, 40.0, 30.0, 20.0])
    contacts = nsds.collisions({"ball": nsds.shapes.sphere(0.1)}, nsds.newton_impact(0.0), world=nsds.shapes.plane())
    rows = nsds.simulate(nsds.system(ball=ball, contacts=contacts), t_end=0.2, h=0.02, progress=False)
    np.testing.assert_allclose(rows["ball"]["v"][-1], [0, 0, 0, 40.0, 30.0, 20.0], atol=1e-12)
