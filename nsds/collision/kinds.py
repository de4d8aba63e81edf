"""Kinds of shapes: their codes, what their sizes mean, and the pairs between which contacts are known.

============ =========================== =============================================
kind         size                        in its own axes
============ =========================== =============================================
``sphere``   radius, -, -                centred
``capsule``  radius, length, -           length of the cylinder along z, between half balls
``cylinder`` radius, length, -           along z
``box``      lengths                     edges along the axes
``convex``   bound, vertex, vertices     convex hull of vertices; the largest distance of one, the first in the list of all, how many
``mesh``     bound, vertex, vertices     surface of triangles of vertices, which are listed alike
``plane``    -                           the half space z <= 0 is solid
``tube``     radius, length, -           inner wall of a hollow cylinder along z, without caps
============ =========================== =============================================
"""

import math

from nsds import _checks
from nsds._jit import tiny

SPHERE, CAPSULE, CYLINDER, BOX, CONVEX, MESH, PLANE, TUBE = range(8)
NAMES = ("sphere", "capsule", "cylinder", "box", "convex", "mesh", "plane", "tube")

COMPILED = frozenset(
    {
        (SPHERE, SPHERE),
        (SPHERE, CAPSULE),
        (SPHERE, CYLINDER),
        (SPHERE, BOX),
        (SPHERE, PLANE),
        (SPHERE, TUBE),
        (CAPSULE, CAPSULE),
        (CAPSULE, BOX),
        (CAPSULE, PLANE),
        (CYLINDER, PLANE),
        (BOX, BOX),
        (BOX, PLANE),
        (CONVEX, PLANE),
        (MESH, PLANE),
    }
)
GENERAL = frozenset((a, b) for a in range(PLANE) for b in range(a, PLANE)) - COMPILED - {(MESH, MESH)}  # by the library coal
SUPPORTED = COMPILED | GENERAL


def require_supported(kind_a, kind_b):
    """Refuse two kinds of shapes between which contacts cannot be found.

    Parameters
    ----------
    kind_a, kind_b : int or str
        Codes or names, in any order.

    Raises
    ------
    ValueError
        There is no such kind, or nothing finds the contacts of this pair.
    ImportError
        The pair needs the extra ``collision``, which is not installed.

    Examples
    --------
    >>> from nsds.collision import require_supported
    >>> require_supported("plane", "box")
    >>> require_supported("tube", "box")
    Traceback (most recent call last):
    ...
    ValueError: collision: contacts between a tube and a box cannot be found; a tube meets: sphere
    """
    pair = [_code(kind) for kind in (kind_a, kind_b)]
    if tuple(sorted(pair)) in GENERAL:
        require_coal(*(NAMES[k] for k in pair))
    elif tuple(sorted(pair)) not in SUPPORTED:
        partners = [NAMES[k] for k in range(len(NAMES)) if tuple(sorted((pair[0], k))) in SUPPORTED]
        a, b = (NAMES[k] for k in pair)
        raise ValueError(f"collision: contacts between a {a} and a {b} cannot be found; a {a} meets: {', '.join(partners)}")


def require_coal(a, b):
    """Raise an ImportError that names the extra where the library that finds contacts of these kinds is not installed."""
    _checks.require_extra("coal", "collision", f"contacts between a {a} and a {b} need coal")


def _code(kind):
    if kind in NAMES:
        return NAMES.index(kind)
    if isinstance(kind, str) or int(kind) not in range(len(NAMES)):
        raise ValueError(f"collision: kind must be one of {', '.join(NAMES)} or their codes 0 to {len(NAMES) - 1}, got {kind!r}")
    return int(kind)


@tiny
def bound(kind, size, s):
    """Radius of the smallest ball about the position of shape s that holds it; infinite for what has no end."""
    radius, length = size[3 * s], size[3 * s + 1]
    if kind[s] == SPHERE or kind[s] == CONVEX or kind[s] == MESH:
        return radius
    if kind[s] == CAPSULE:
        return radius + 0.5 * length
    if kind[s] == BOX:
        return 0.5 * math.sqrt(radius**2 + length**2 + size[3 * s + 2] ** 2)
    if kind[s] == PLANE:
        return math.inf
    return math.sqrt(radius**2 + 0.25 * length**2)
