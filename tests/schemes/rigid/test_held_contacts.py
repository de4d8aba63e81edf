"""Contacts along whose normals joints let nothing move: what overlaps there stays, and a step costs no more than one that is solved."""

import numpy as np
import pytest

import nsds
from nsds.status import CONVERGED, INEXACT

_H, _N = 1e-3, 20
_TURN, _SHIFT = [0, 0.5, 0, 0, 0, 1.0], [0, 0.5, 0, 0, 0, 0]


def _run(joint, v, overlap):
    """A bar that moves on a joint, and overlaps a floor below it."""
    bar = nsds.rigid_bodies(1.0, [0.005, 0.02, 0.02], q=[0.5, 0, 0, 1, 0, 0, 0], v=v, fext=[0, 0, -9.81])
    floor, law = nsds.shapes.plane([0, 0, 1], overlap - 0.05), nsds.newton_impact_friction(0.0, 0.3)
    rubs = nsds.collisions({"bar": nsds.shapes.box([1.0, 0.1, 0.1])}, law, world=floor)
    system = nsds.system(bar=bar, pivot=nsds.interaction(joint, nsds.equality(), on="bar"), rubs=rubs)
    return nsds.simulate(system, t_end=_N * _H, h=_H, progress=False)


@pytest.mark.filterwarnings("ignore:collisions 'rubs'")
@pytest.mark.parametrize(("joint", "v"), [(nsds.joints.hinge([0, 0, 0], [0, 0, 1]), _TURN), (nsds.joints.prismatic([0, 1, 0]), _SHIFT)])
def test_a_contact_that_joints_hold_is_known_without_sweeps(joint, v):
    held, touching = _run(joint, v, 1e-3), _run(joint, v, 0.0)
    assert (touching["status"][1:] == CONVERGED).all()
    assert (held["status"][1:] == INEXACT).all()  # the overlap stays
    assert held["n_iter"].sum() <= touching["n_iter"].sum()
    np.testing.assert_allclose(held["bar"]["q"][:, 2], 0.0, atol=1e-12)  # the joint holds, and
    assert (np.diff(np.abs(held["bar"]["v"][:, 1])) <= 1e-9).all()  # nothing drives the bar


@pytest.mark.filterwarnings("ignore:collisions 'rubs'")
def test_a_contact_that_can_move_is_pushed_apart():
    q = _run(nsds.joints.hinge([-0.5, 0, 0], [0, 1, 0]), np.zeros(6), 1e-3)
    assert (q["status"] == CONVERGED).all()
    assert q["bar"]["q"][-1, 2] > 1e-4
