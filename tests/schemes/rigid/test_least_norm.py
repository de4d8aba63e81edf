"""A table on four legs: shares of redundant contacts of least norm, for those who ask for them."""

import numpy as np
import pytest

import nsds
from nsds import shapes

MASS, GRAVITY, STEP = 10.0, 9.81, 1e-3
FEET = np.array([[x, y] for x in (-0.6, 0.6) for y in (-0.4, 0.4)])


def table(load, law):
    """Its centre of mass lies at load, seen from the middle between the feet."""
    legs = shapes.convex([[x - load[0], y - load[1], z] for x, y in FEET for z in (-0.5, 0.5)])
    body = nsds.rigid_bodies(MASS, [1.0, 1.5, 2.0], q=[0, 0, 0.5, 1, 0, 0, 0], v=np.zeros(6))
    return nsds.system(gravity=[0, 0, -GRAVITY], body=body, floor=nsds.collisions({"body": legs}, law, world=shapes.plane()))


def shares_of_least_norm(load):
    """``min |f|^2`` with f >= 0, and force and moments of the weight; a foot with a negative share carries nothing."""
    equilibrium, feet = np.vstack([np.ones(4), FEET.T]), np.arange(4)
    while True:
        f = np.linalg.pinv(equilibrium[:, feet]) @ (MASS * GRAVITY * np.array([1.0, *load]))
        if (f >= -1e-9).all():
            return np.bincount(feet, f, 4)
        feet = np.delete(feet, np.argmin(f))


@pytest.mark.parametrize("law", [nsds.newton_impact(0.0), nsds.newton_impact_friction(0.0, 0.5)], ids=["smooth", "rough"])
@pytest.mark.parametrize("scheme", [nsds.rattle(), nsds.moreau_jean()], ids=["rattle", "moreau_jean"])
@pytest.mark.parametrize("load", [(0.0, 0.0), (0.2, 0.1), (0.55, 0.3)])
def test_four_legs_carry_shares_of_least_norm(load, scheme, law):
    rows = nsds.simulate(table(load, law), t_end=20 * STEP, h=STEP, scheme=scheme, solver=nsds.solvers.solver("least_norm"))
    assert (rows["status"] == 0).all()
    floor = rows["floor"][-1]
    assert floor["n"] == 4
    forces = floor["lambda"][:4].reshape(4, -1) / STEP
    at = [np.argmin(abs(floor["point"][:4, :2] + np.array(load) - foot).sum(axis=1)) for foot in FEET]
    np.testing.assert_allclose(forces[at, 0], shares_of_least_norm(load), atol=1e-4 * MASS * GRAVITY)
    assert abs(forces[:, 1:]).max(initial=0.0) < 1e-4 * MASS * GRAVITY
    assert abs(rows["body"]["q"][-1, 2] - 0.5) < 1e-8
