"""Contact detection: shapes in flat arrays, cell lists, contacts of pairs of shapes, and values inherited from the previous step.

Shapes are numbered. The normal of a contact points from shape b to shape a, ``gap < 0`` is penetration.
"""

from nsds.collision.detection import (
    Contacts,
    Shapes,
    address_of_detect,
    address_of_detect_parallel,
    call_detect,
    detect,
    detect_parallel,
    inherit,
    work_size,
)
from nsds.collision.frames import WORLD, place
from nsds.collision.hidden import address_of_drop_hidden, call_drop_hidden, has_edges, links_size, solids_of
from nsds.collision.kinds import NAMES
from nsds.collision.pairs import COMPILED, GENERAL, SUPPORTED, require_supported

__all__ = [
    "COMPILED",
    "GENERAL",
    "NAMES",
    "SUPPORTED",
    "WORLD",
    "Contacts",
    "Shapes",
    "address_of_detect",
    "address_of_detect_parallel",
    "address_of_drop_hidden",
    "call_detect",
    "call_drop_hidden",
    "detect",
    "detect_parallel",
    "has_edges",
    "inherit",
    "links_size",
    "place",
    "require_supported",
    "solids_of",
    "work_size",
]
