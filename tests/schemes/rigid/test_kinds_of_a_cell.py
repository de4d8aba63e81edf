"""A cell of docs/laws.md stands for every shape and every joint: laws of contacts with other shapes than its ball, and all joints."""

import numpy as np
import pytest

import nsds
from nsds.model import joints, shapes
from nsds.model.system_kinds import NEWTON_EULER
from nsds.schemes.table import SCHEMES
from tests.model.test_joints import HOLDING
from tests.pairs import ABOVE, BELOW, G

SCHEMES_OF_BODIES = sorted(name for name, scheme in SCHEMES.items() if NEWTON_EULER in scheme.modules)
MU, H, T_END, SPEED = 0.3, 2e-3, 0.1, 1.0
LAWS = {
    "newton_impact": (nsds.newton_impact(0.0), 0.0),
    "newton_impact_friction": (nsds.newton_impact_friction(0.0, MU), MU),
    "fremond_impact": (nsds.fremond_impact(0.0, MU), MU),
    "newton_impact_rolling_friction": (nsds.newton_impact_rolling_friction(0.0, MU, 1e-3), MU),
}
FLAT = ["box", "mesh", "cylinder"]


@pytest.mark.parametrize("scheme", SCHEMES_OF_BODIES)
@pytest.mark.parametrize("floor", ["plane", "mesh"])
@pytest.mark.parametrize("kind", FLAT)
@pytest.mark.parametrize("name", LAWS)
def test_what_slides_is_braked_as_its_law_says(name, kind, floor, scheme):
    """``v = v_0 - mu g t`` of whatever lies flat, on whatever is level; nothing turns or leaves the ground."""
    (law, mu), (shape, low, _) = LAWS[name], ABOVE[kind]
    body = nsds.rigid_bodies(1.0, shapes.inertia(shape, 1.0), q=[0, 0, low, 1, 0, 0, 0], v=[SPEED, 0, 0, 0, 0, 0])
    system = nsds.system(gravity=[0, 0, -G], body=body, contacts=nsds.collisions({"body": shape}, law, world=BELOW[floor][0]))
    h = H if scheme != "event_driven" else 0.05
    rows = nsds.simulate(system, t_end=T_END, h=h, scheme=getattr(nsds, scheme)(), progress=False)
    np.testing.assert_allclose(rows["body"]["v"][-1, :3], [SPEED - mu * G * T_END, 0, 0], atol=1e-4)
    np.testing.assert_allclose(rows["body"]["v"][-1, 3:], 0, atol=1e-2)  # what carries is not unique where moments of rolling are
    np.testing.assert_allclose(rows["body"]["q"][:, 2], low, atol=1e-5)


POINT, AXIS = [0.3, 0.2, 0.1], [0.0, 0.6, 0.8]
MADE = {
    "ball_joint": lambda: joints.ball_joint(POINT),
    "universal": lambda: joints.universal(POINT, AXIS, [1.0, 0, 0]),
    "hinge": lambda: joints.hinge(POINT, AXIS),
    "prismatic": lambda: joints.prismatic(AXIS),
    "cylindrical": lambda: joints.cylindrical(POINT, AXIS),
    "planar": lambda: joints.planar(POINT, AXIS),
    "fixed_joint": joints.fixed_joint,
}
OPEN = {"moreau_jean": 1e-4, "d1_minus_linear": 1e-3}  # of positions that are not corrected; 1e-7 where they are


def test_all_joints_that_hold_are_there():
    assert set(MADE) == set(HOLDING)


@pytest.mark.parametrize("scheme", SCHEMES_OF_BODIES)
@pytest.mark.parametrize("name", MADE)
def test_a_joint_holds_and_does_nothing_to_the_momentum_of_both_bodies(name, scheme):
    """A force pulls one of two bodies that float: their momentum is that of the force, and the joint stays closed."""
    pull, masses = np.array([0.5, -1.0, 0.7]), (1.0, 2.5)
    parts = {
        "one": nsds.rigid_bodies(masses[0], [0.02, 0.03, 0.04], q=[0, 0, 0, 1, 0, 0, 0], v=np.zeros(6), fext=pull),
        "other": nsds.rigid_bodies(masses[1], [0.1, 0.12, 0.15], q=[0.6, 0.1, 0.3, 1, 0, 0, 0], v=np.zeros(6)),
    }
    system = nsds.system(joint=nsds.interaction(MADE[name](), nsds.equality(), on=("one", "other")), **parts)
    h = 5e-3 if scheme != "event_driven" else 0.05
    rows = nsds.simulate(system, t_end=0.5, h=h, scheme=getattr(nsds, scheme)(), progress=False)
    momentum = masses[0] * rows["one"]["v"][-1, :3] + masses[1] * rows["other"]["v"][-1, :3]
    np.testing.assert_allclose(momentum, 0.5 * pull, atol=1e-9)
    assert abs(rows["joint"]["y"]).max() < OPEN.get(scheme, 1e-7)
