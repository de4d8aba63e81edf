"""Every law with every relation and scheme that may go together: small systems of every kind that a cell of docs/laws.md stands for.

A ball of radius R falls on a plane, slides and rolls; its coordinates are those of the centre and angles about the axes, of which only the
derivatives count, so that it is the same linear problem for Lagrangian systems and for rigid bodies. Laws of one row act on one of its
coordinates. Every kind of statement of it (functions, derivatives by differences, sparse matrices, what moves with time, two parts, other
shapes and joints) has the same motion, by which it is judged, beside the definition of its law. ``python -m tests.cells`` writes
docs/laws.md.
"""

from nsds.model.system_kinds import FIRST_ORDER, LAGRANGIAN, NEWTON_EULER
from tests.cells.bodies import rigid_cells
from tests.cells.first_order import first_order_cells
from tests.cells.lagrangian import lagrangian_cells

CELLS = {LAGRANGIAN: lagrangian_cells, NEWTON_EULER: rigid_cells, FIRST_ORDER: first_order_cells}
