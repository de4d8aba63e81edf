"""Tables of rigid bodies as parts of Lagrangian systems, and the modes of the rows of their problems of forces."""

from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference
from nsds.model.layout import table
from nsds.schemes.rigid.tables import BODY, COLLISIONS, INTERACTION

# What a row of the problems of forces is. A bilateral constraint is always HELD, an open contact FREE; of a closed one the normal is HELD
# and its tangents are, where it sticks, or SLIP, where ``lambda_t = -mu lambda_n direction``; a bounded force is HELD where it keeps the
# velocity 0, else SLIP, at the bound that its direction says. A contact that others hold already is REDUNDANT: its force is 0, or a share
# of friction; of dry friction that of before.
FREE, HELD, SLIP, REDUNDANT = range(4)
# Of the rows of an interaction of rigid bodies: where their curvature lies, and in the integer work memory their numbers; first, its own
# number, and many, 1. Of a slot for a contact of two shapes that may meet: which collisions and shapes, its place in these collisions; the
# first of the slots of these shapes, and how many they are; in the integer work memory the feature that it has, what has become of it
# (state), and, of the first of these slots, whether others than these features have been found (changed); where normal and point lie.
# Of the first also the least gap that holds nothing, a bound of the rate at which gaps change, both of these at the points of a step where
# guards are sampled (least_at, rate_at), and thin, the way that may be taken without a look: what is shorter passes nothing.
RIGID_ROWS = table(
    "curvature", "number", "first", "many", "collision", "shape_a", "shape_b", "slot", "feature", "state", "changed", "normal", "point",
    "least", "rate", "least_at", "rate_at", "thin",
)  # fmt: skip
# Of all bodies, where interactions are evaluated; whether collisions have no room for their contacts; horizon, the time in which contacts
# with meshes must be foreseen; side, which differences along the motion are taken (integer work memory), see `sides.side_of`.
PLACES = table("q", "R", "is_short", "horizon", "side")


@by_reference
class Rigid(NamedTuple):
    """Tables of rigid bodies, empty where there are none."""

    bodies: np.ndarray
    interactions: np.ndarray
    rows: np.ndarray
    collisions: np.ndarray
    plan: np.ndarray


def no_bodies():
    """`Rigid` of a system without rigid bodies."""
    return Rigid(np.zeros(0, BODY), np.zeros(0, INTERACTION), np.zeros(0, RIGID_ROWS), np.zeros(0, COLLISIONS), np.zeros(1, PLACES))


def number_blocks(prepared, plan, d):
    """Of each constraint the first one of its block of equations, d rows of an interaction, into the integer work memory, at block."""
    first = {}
    blocks = [first.setdefault((name, element, row // d), i) for i, (name, element, row) in enumerate(prepared.layout.owners)]
    prepared.iwork[:, plan["block"][0] : plan["block"][0] + len(blocks)] = blocks
