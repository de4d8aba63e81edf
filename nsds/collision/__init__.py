"""Contact detection: shapes in flat arrays, cell lists, contacts of pairs, and what contacts inherit from the step before.

Shapes are numbered. The normal of a contact points from shape b to shape a, ``gap < 0`` is penetration.
"""

from nsds.collision.detection import address_of_detect, address_of_detect_parallel, call_detect, detect, detect_parallel, inherit, work_size
from nsds.collision.frames import WORLD, place
from nsds.collision.kinds import (
    BOX,
    CAPSULE,
    CONE,
    CONVEX,
    CYLINDER,
    DISK,
    HALF_PLANE,
    MESH,
    NAMES,
    PLANE,
    POLYGON,
    SPHERE,
    STADIUM,
    TUBE,
)
from nsds.collision.pairs import COMPILED, GENERAL, SUPPORTED, require_supported

__all__ = [
    "BOX",
    "CAPSULE",
    "COMPILED",
    "CONE",
    "CONVEX",
    "CYLINDER",
    "DISK",
    "GENERAL",
    "HALF_PLANE",
    "MESH",
    "NAMES",
    "PLANE",
    "POLYGON",
    "SPHERE",
    "STADIUM",
    "SUPPORTED",
    "TUBE",
    "WORLD",
    "address_of_detect",
    "address_of_detect_parallel",
    "call_detect",
    "detect",
    "detect_parallel",
    "inherit",
    "place",
    "require_supported",
    "work_size",
]
