"""Piles of bodies of all shapes under the defaults: they gain no energy, nothing ends within something else, all steps converge."""

import numpy as np
import pytest

import nsds
from nsds import shapes
from tests.random_piles import box_of_corners, run


@pytest.mark.parametrize("seed", [*range(6), 50043, 50518, 51626])
def test_a_random_pile_gains_nothing_and_lies_without_overlap(seed):
    """Of the weight times a body's size, and of that size; a hundredth, by which a body is pushed out of another in a step at most.

    In 50043 and 51626 a cone rocks on a box with its side, in 50518 a mesh drives a ball into the ground.
    """
    gain, overlap, rows = run(seed)
    assert not rows["status"].any()
    assert gain < 1e-2
    assert overlap < 1e-2
    assert rows["contacts"]["n"][-1] > 0


THICKNESS = 2e-3


def card(kind):
    """A playing card, as a box, a hull or a closed mesh."""
    lengths = [0.06, 0.09, THICKNESS]
    return shapes.box(lengths) if kind == "box" else box_of_corners(kind, lengths)


def cards(kind, q):
    """They lie or fall as q (n, 7) says, on a plane."""
    shape, v = card(kind), np.zeros((len(q), 6))
    part = nsds.rigid_bodies(0.005, shapes.inertia(shape, 0.005), q=q, v=v, count=len(q))
    law = nsds.newton_impact_friction(0.0, 0.3)
    return nsds.system(gravity=[0, 0, -9.81], cards=part, contacts=nsds.collisions({"cards": shape}, law, world=shapes.plane()))


@pytest.mark.filterwarnings("ignore:.*overlaps at the start")
@pytest.mark.parametrize("kind", ["box", "convex", "mesh"])
@pytest.mark.parametrize("seed", range(3))
def test_thin_cards_never_end_within_each_other(kind, seed):
    """Whatever describes them, as solids they overlap by less than half of their thickness on the way, and by none of it at the end."""
    rng = np.random.default_rng(seed)
    turned = np.column_stack([np.ones(5), 0.05 * rng.normal(size=(5, 2)), rng.normal(size=5)])
    place = np.column_stack([rng.uniform(-0.02, 0.02, size=(5, 2)), 0.02 + 0.03 * np.arange(5)])
    rows = nsds.simulate(cards(kind, np.column_stack([place, turned / np.linalg.norm(turned, axis=1)[:, None]])), t_end=0.8, h=2e-3)
    assert not rows["status"].any()
    overlaps = [_overlap(q) for q in rows["cards"]["q"][::20]]
    assert max(overlaps) < 0.5 * THICKNESS
    assert overlaps[-1] < 1e-2 * THICKNESS


def _overlap(q):
    """The deepest of cards at q, as boxes."""
    rows = nsds.simulate(cards("box", q), t_end=1e-9, h=1e-9)
    return max(0.0, -rows["contacts"]["y"][0, : rows["contacts"]["n"][0]].min(initial=0.0))
