"""Lengths have no unit: a model of another size, of the same masses and times, has the same steps, statuses and residuals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import nsds
from nsds import shapes

G, RADIUS, UPRIGHT = 9.81, 0.005, [1.0, 0, 0, 0]
SCHEMES = {"default": None, "moreau_jean": nsds.moreau_jean(), "generalised_alpha": nsds.generalised_alpha()}


def _columns(size, n=112):
    """Columns of grains that topple: lengths, weight and moments of rolling friction times size."""
    rng, i, radius = np.random.default_rng(2), np.arange(n), size * RADIUS
    layer, row, line = i // 16, i // 4 % 4, i % 4
    x = 2.05 * np.stack([row, line, layer], axis=1) + [0, 0, 1.02] + rng.uniform(-0.02, 0.02, (16, 3))[i % 16] * [1, 1, 0]
    x += rng.uniform(-0.02, 0.02, (n, 3)) * [1, 1, 0]
    mass, ball = 1e-3, shapes.sphere(radius)
    q, v = np.concatenate([radius * x, np.tile(UPRIGHT, (n, 1))], axis=1), np.zeros((n, 6))
    v[:, 0] = 0.1 * size * x[:, 2] * RADIUS / 0.05
    return nsds.system(
        gravity=[0, 0, -G * size],
        grains=nsds.rigid_bodies(mass, shapes.inertia(ball, mass), q=q, v=v, count=n),
        contacts=nsds.collisions({"grains": ball}, nsds.newton_impact_rolling_friction(0.0, 0.5, 0.1 * radius), world=shapes.plane()),
    )


def _over_floor(t, q, z, out):
    out[0] = q[2] - z[0]
    out[1], out[2], out[3] = q[0], q[1], q[2] - z[0]
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def _slides_and_spins(size, law, is_detected):
    """A ball that slides, rolls and spins on a plane, which is detected, or an interaction."""
    radius, mass = 0.1 * size, 2.0
    ball = shapes.sphere(radius)
    relation = nsds.contact_point(_over_floor, z=[radius])
    contacts = nsds.collisions({"ball": ball}, law, world=shapes.plane()) if is_detected else nsds.interaction(relation, law, on="ball")
    bodies = nsds.rigid_bodies(mass, shapes.inertia(ball, mass), q=[0, 0, radius, *UPRIGHT], v=[size, 0, 0, 3.0, -2.0, 4.0])
    return nsds.system(gravity=[0, 0, -G * size], ball=bodies, contacts=contacts)


def test_a_heap_that_owes_its_residual_has_the_same_steps_at_all_sizes():
    """Angular rates count at a length of the bodies: in rad/s they would drown small grains' velocities, and vanish beside large ones'."""
    h, rows = 5e-4, {}
    for size in (1.0, 1e-3, 1e3):
        rows[size] = nsds.simulate(_columns(size), t_end=60 * h, h=h, on_failure="continue")
    one = rows[1.0]
    assert one["contacts"]["n"].max() > 100
    assert 1e-6 < one["residual"].max() <= 1e-2  # some steps stop at what they owe
    for size, other in rows.items():
        assert_array_equal(other["status"], one["status"])
        assert_array_equal(other["n_iter"], one["n_iter"])
        assert_allclose(other["residual"], one["residual"], rtol=1e-4, atol=1e-6)
        assert_allclose(other["grains"]["q"][..., :3] / size, one["grains"]["q"][..., :3], rtol=0, atol=1e-6 * RADIUS)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("is_detected", [True, False])
@pytest.mark.parametrize("kind", ["rolling", "spinning"])
def test_moments_of_a_contact_are_those_of_its_law_at_all_sizes(kind, is_detected, scheme):
    """mu_r times the normal impulse while rates last, of a contact that is detected or stated: solved in other units, kept in N m s."""
    law = nsds.newton_impact_rolling_friction if kind == "rolling" else nsds.newton_impact_spinning_friction
    h, moments, rates = 1e-3, slice(3, None), {}
    for size in (1.0, 1e-3, 1e3):
        system = _slides_and_spins(size, law(0.0, 0.3, 0.01 * size), is_detected)
        rows = nsds.simulate(system, t_end=60 * h, h=h, scheme=SCHEMES[scheme])
        lam = rows["contacts"]["lambda"].reshape(len(rows), -1)[1:]
        lam = lam[:, : 5 if kind == "rolling" else 4]
        assert_allclose(np.linalg.norm(lam[:, moments], axis=1), 0.01 * size * lam[:, 0], rtol=1e-8)
        assert_allclose(lam[:, 0].sum(), 2.0 * G * size * 60 * h, rtol=0.02)
        rates[size] = rows["ball"]["v"][:, 3:]
    assert_allclose(rates[1e-3], rates[1.0], rtol=0, atol=1e-7)
    assert_allclose(rates[1e3], rates[1.0], rtol=0, atol=1e-7)
