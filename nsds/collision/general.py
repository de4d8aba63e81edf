"""Contacts of pairs without a kernel of their own: solids by support functions, meshes triangle by triangle."""

import numpy as np

from nsds._jit import at_address, kernel, stack
from nsds.collision.frames import turn_round
from nsds.collision.geometry import geometry_of
from nsds.collision.groups import kinds_that_meet
from nsds.collision.kinds import MESH
from nsds.collision.meshes import of_meshes, with_mesh
from nsds.collision.pairs import GENERAL
from nsds.collision.parts import PLACED
from nsds.collision.solids import of_solids
from nsds.collision.support import place_shape


@kernel
def general_pair(kind, size, pose, general, a, b, margin, found):
    """Contacts of two solids or meshes, the kind of a not after that of b; returns their number.

    In: general: address of the geometry of all shapes, from `GeneralPairs`. Out: found (MOST FIELDS).
    """
    # the address leads to one vector for all shapes; its first entry is its own length
    head = at_address(general, 1)
    geometry = at_address(general, int(head[0]))
    one, other = stack(PLACED), stack(PLACED)
    place_shape(kind, size, pose, geometry, a, one)
    place_shape(kind, size, pose, geometry, b, other)
    # a mesh comes second in the kernels; the contacts are reversed where the first shape is one
    if kind[a] == MESH and kind[b] == MESH:
        return of_meshes(one, other, geometry, margin, found)
    if kind[b] == MESH:
        return with_mesh(one, other, geometry, margin, found)
    if kind[a] == MESH:
        n = with_mesh(other, one, geometry, margin, found)
        turn_round(found, n)
        return n
    return of_solids(one, other, geometry, margin, found)


class GeneralPairs:
    """Geometry of the shapes of one record, to be kept alive; ``address`` is the argument of `nsds.collision.detect`, 0 if not needed.

    Parameters
    ----------
    kind, size : ndarray (ns,) and (ns, 3)
        The shapes.
    vertices, triangles : ndarray (nv, 3) and (nt, 3)
        Of all polyhedra of the record.
    pairs : set of (int, int)
        Kinds that can touch, the smaller code first.
    """

    def __init__(self, kind, size, vertices, triangles, pairs):
        needed = not pairs.isdisjoint(GENERAL)
        self._geometry = geometry_of(kind, size, vertices, triangles) if needed else np.zeros(0)
        self.address = self._geometry.ctypes.data if needed else 0


def general_pairs(kind, size, body, group, mask, vertices, triangles):
    """`GeneralPairs` of the shapes of a record: their groups say which kinds can touch; shapes of one body do not touch."""
    present = set(np.flatnonzero(np.bincount(kind)).tolist())
    if not any(present.issuperset(pair) for pair in GENERAL):  # many balls are not sorted for nothing
        return GeneralPairs(kind, size, vertices, triangles, set())
    return GeneralPairs(kind, size, vertices, triangles, kinds_that_meet(kind, body, group, mask))
