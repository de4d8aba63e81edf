"""Tables of rigid bodies as parts of Lagrangian systems, and the modes of the rows of their problems of forces."""

from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference
from nsds.model.layout import table
from nsds.schemes.rigid.tables import BODY, COLLISIONS, INTERACTION

# Modes of the rows of problems of forces. A bilateral constraint is always HELD, an open contact FREE; of a closed one the normal is HELD
# and its tangents are, if it sticks, or SLIP, with ``lambda_t = -mu lambda_n direction``; a bounded force is HELD if it keeps the
# velocity 0, else SLIP, at the bound given by its direction. A contact whose motion others determine is REDUNDANT: its force is 0, or a
# share of friction, or what the problem of forces gives it; of dry friction the former one.
FREE, HELD, SLIP, REDUNDANT = range(4)
# Of an interaction of rigid bodies, or of a slot for a contact of two shapes that may meet.
RIGID_ROWS = table(
    # work memory: curvature (m); integers: number (m) of its rows; first: first slot of these shapes, or its own
    # number; many: their number, or 1
    "curvature", "number", "first", "many",
    # slots: collisions, both shapes, place in these collisions
    "collision", "shape_a", "shape_b", "slot",
    # slots, integers: feature of its contact; state: SAME, NEW or LOST; changed, of the first slot: other features have been found
    "feature", "state", "changed",
    # slots, work memory: normal (3) and point (3)
    "normal", "point",
    # first slot, work memory: least gap without impulse, bound of its rate; both at the samples of guards; thin: displacement within which
    # nothing can pass
    "least", "rate", "least_at", "rate_at", "thin",
)  # fmt: skip
# Of all bodies: q (7 n) and R (9 n) at which interactions are evaluated; is_short: collisions lack room for their contacts; horizon: time
# in which contacts with meshes must be predicted, s; side (integers): side of finite differences along the motion, see `sides.side_of`.
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
    """First constraint of the block of equations of each constraint, d rows of an interaction, into the integer work memory, at block."""
    first = {}
    blocks = [first.setdefault((name, element, row // d), i) for i, (name, element, row) in enumerate(prepared.layout.owners)]
    prepared.iwork[:, plan["block"][0] : plan["block"][0] + len(blocks)] = blocks
