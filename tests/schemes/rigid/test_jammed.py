"""Bodies in rooms that are too small for them: a state that no motion can put right is said by every scheme."""

import warnings

import numpy as np
import pytest

import nsds
from nsds import shapes
from tests.schemes.rigid.test_passing import SCHEMES as BY_STEPS

SCHEMES = BY_STEPS | {"d1_minus_linear": nsds.d1_minus_linear, "event_driven": nsds.event_driven}


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_ball_between_walls_nearer_than_its_diameter(scheme, length):
    """By a tenth, in the middle or nearer to one of them: the run ends by name, its steps are not CONVERGED, or it has warned."""
    world = [shapes.plane([1, 0, 0], -0.45 * length), shapes.plane([-1, 0, 0], -0.45 * length)]
    for place, mu in ((0.0, 0.0), (0.0, 0.3), (0.02, 0.0), (0.06, 0.3)):
        q = [place * length, 0, 0, 1, 0, 0, 0]
        ball = nsds.rigid_bodies(1.0, [0.1 * length**2] * 3, q=q, v=np.zeros(6))
        contacts = nsds.collisions({"ball": shapes.sphere(0.5 * length)}, nsds.newton_impact_friction(0.0, mu), world=world)
        system, h = nsds.system(gravity=[0, 0, -9.81], ball=ball, contacts=contacts), 1e-2 * length**0.5
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            try:
                status = nsds.simulate(system, t_end=10 * h, h=h, scheme=SCHEMES[scheme]())["status"]
            except nsds.SimulationError as error:
                status = error.trajectory["status"]
        is_said = np.isin(status, (nsds.status.INEXACT, nsds.status.VIOLATED)).any()
        assert is_said or any("at the start" in str(one.message) for one in noted)


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("scheme", sorted(SCHEMES.keys() - {"d1_minus_linear"}))  # which ends by name at walls not parallel by rounding
def test_a_box_in_a_shaft_as_wide_as_itself_falls(scheme, length):
    """Both of its sides touch, by rounding within each other, which is no jam: without friction it falls as it would alone."""
    world = [shapes.plane([1, 0, 0], -0.1 * length), shapes.plane([-1, 0, 0], -0.1 * length)]
    block = shapes.box(np.array([0.2, 0.2, 0.3]) * length)
    box = nsds.rigid_bodies(1.0, shapes.inertia(block, 1.0), q=[0, 0, 0, 1, 0, 0, 0], v=np.zeros(6))
    contacts = nsds.collisions({"box": block}, nsds.newton_impact(0.0), world=world)
    system, h = nsds.system(gravity=[0, 0, -9.81], box=box, contacts=contacts), 5e-3 * length**0.5
    rows = nsds.simulate(system, t_end=20 * h, h=h, scheme=SCHEMES[scheme]())
    assert not nsds.status.has_failed(rows["status"]).any()
    assert (rows["status"] & ~0xFFF == rows["status"]).all()  # CONVERGED, or an event
    np.testing.assert_allclose(rows["box"]["v"][-1, 2], -9.81 * 20 * h, rtol=1e-9)
    assert abs(rows["box"]["q"][:, :2]).max() < 1e-9 * length
