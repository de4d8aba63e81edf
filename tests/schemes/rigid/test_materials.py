"""Coefficients of contacts by the materials of both shapes: each pair has its own restitution and friction, under every scheme."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import nsds
from nsds.model.system_kinds import NEWTON_EULER
from tests.cells.outcomes import schemes_of

CRATE, BALL = nsds.shapes.box([0.2, 0.2, 0.2]), nsds.shapes.sphere(0.1)
E, MU = np.array([[0.0, 0.8, 0.3], [0.8, 0.0, 0.6], [0.3, 0.6, 0.0]]), np.array([[0.4, 0.05, 0.2], [0.05, 0.0, 0.1], [0.2, 0.1, 0.9]])
SCHEMES = {name: getattr(nsds, name)() for name in schemes_of(NEWTON_EULER)}


def _blocks(e, mu, z, v, materials):
    """Three blocks beside each other, over the floor."""
    q = [[0, y, z, 1, 0, 0, 0] for y in range(3)]
    return nsds.system(
        gravity=[0, 0, -10.0],
        blocks=nsds.rigid_bodies(1.0, nsds.shapes.inertia(CRATE, 1.0), q=q, v=[[v, 0, 0, 0, 0, 0]] * 3),
        contacts=nsds.collisions(
            {"blocks": [[CRATE]] * 3}, nsds.newton_impact_friction(e_n=e, mu=mu), world=nsds.shapes.plane(), materials=materials
        ),
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_blocks_slide_by_the_friction_of_their_pair(scheme):
    """A block that slides is slower by mu g t, with mu of its material and the floor's."""
    rows = nsds.simulate(_blocks(0.0, MU, 0.1, 1.0, {"blocks": [0, 1, 2], "world": 0}), t_end=0.2, h=5e-3, scheme=SCHEMES[scheme])
    assert (rows["status"] == nsds.status.CONVERGED).all()
    assert_allclose(rows["blocks"]["v"][-1, :, 0], 1.0 - 10.0 * 0.2 * MU[0], atol=1e-9)


@pytest.mark.parametrize("scheme", ["rattle", "moreau_jean", "event_driven"])
def test_bodies_rebound_by_the_restitution_of_their_pair(scheme):
    """In a row of balls that meet pairwise, each pair parts with its own e times the speed of approach."""
    x = [0.0, 0.25, 1.0, 1.25]  # materials 0 and 1, 1 and 2
    system = nsds.system(
        balls=nsds.rigid_bodies(1.0, nsds.shapes.inertia(BALL, 1.0), q=[[at, 0, 0, 1, 0, 0, 0] for at in x],
                                v=[[1.0 - i % 2, 0, 0, 0, 0, 0] for i in range(4)]),
        contacts=nsds.collisions({"balls": [[BALL]] * 4}, nsds.newton_impact_friction(e_n=E, mu=0.0), materials={"balls": [0, 1, 1, 2]}),
    )  # fmt: skip
    v = nsds.simulate(system, t_end=0.1, h=1e-2, scheme=SCHEMES[scheme])["balls"]["v"][-1, :, 0]
    assert_allclose([v[1] - v[0], v[3] - v[2]], [E[0, 1], E[1, 2]], atol=1e-9)


def test_one_material_is_as_none():
    """A table of equal entries gives the bits of one number."""
    one = nsds.simulate(_blocks(0.5, 0.3, 0.15, 0.5, None), t_end=0.3, h=5e-3)
    table = nsds.simulate(
        _blocks(np.full((2, 2), 0.5), np.full((2, 2), 0.3), 0.15, 0.5, {"blocks": [0, 1, 0], "world": 1}), t_end=0.3, h=5e-3
    )
    assert (one["blocks"] == table["blocks"]).all()


@pytest.mark.parametrize(
    ("e", "mu", "materials", "text"),
    [
        (0.0, [[0.1, 0.2], [0.2, 0.1]], None, "mu must be one number for all contacts, or a table with materials="),
        (0.0, [[0.1, 0.2], [0.3, 0.1]], {"blocks": 0, "world": 1}, "mu must be a symmetric table over 2 materials or more"),
        (0.0, [[0.1, 0.2], [0.2, 0.1]], {"blocks": [0, 1, 2], "world": 0}, "mu must be a symmetric table over 3 materials or more"),
        (0.0, [0.1, 0.2], {"blocks": 0, "world": 1}, "mu must be a symmetric table"),
        (
            np.zeros((3, 3)),
            np.zeros((2, 2)),
            {"blocks": 0, "world": 0},
            "tables must be over the same number of materials, got 3 for e_n, 2",
        ),
        (0.0, 0.1, {"blocks": 0}, "materials must have that of the shapes of the world, got none"),
        (0.0, 0.1, {"world": 0}, "materials must have the shapes of all parts, got none of 'blocks'"),
        (0.0, 0.1, {"stones": 0}, "materials must be a dict of some of the names blocks, world"),
        (0.0, 0.1, {"blocks": [0, 1], "world": 0}, r"materials\['blocks'\] must be one number or 3 of them, got 2"),
        (0.0, 0.1, {"blocks": -1, "world": 0}, r"materials\['blocks'\] must be a number from 0"),
    ],
)
def test_bad_materials(e, mu, materials, text):
    with pytest.raises(ValueError, match=text):
        _blocks(e, mu, 0.1, 0.0, materials)


def test_tables_in_a_record_stay_symmetric():
    system = _blocks(0.0, MU, 0.1, 1.0, {"blocks": [0, 1, 2], "world": 0})
    system["contacts"]["mu"][0, 1] = 0.3
    with pytest.raises(ValueError, match=r"contacts.mu must be a symmetric table over materials"):
        nsds.simulate(system, t_end=0.01, h=1e-3)
