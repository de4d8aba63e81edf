"""Kinds of shapes: their codes, what their sizes mean, and the pairs between which contacts are known.

============ =========================== =============================================
kind         size                        in its own axes
============ =========================== =============================================
``sphere``   radius, -, -                centred
``capsule``  radius, length, -           length of the cylinder along z, between half balls
``cylinder`` radius, length, -           along z
``box``      lengths                     edges along the axes
``plane``    -                           the half space z <= 0 is solid
``tube``     radius, length, -           inner wall of a hollow cylinder along z, without caps
============ =========================== =============================================
"""

import math

from nsds._jit import tiny

SPHERE, CAPSULE, CYLINDER, BOX, PLANE, TUBE = range(6)
NAMES = ("sphere", "capsule", "cylinder", "box", "plane", "tube")

SUPPORTED = frozenset(
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
    }
)


def require_supported(kind_a, kind_b):
    """Refuse two kinds of shapes between which contacts cannot be found.

    Parameters
    ----------
    kind_a, kind_b : int or str
        Codes or names, in any order.

    Raises
    ------
    ValueError
        There is no such kind, or no kernel for this pair.

    Examples
    --------
    >>> from nsds.collision import require_supported
    >>> require_supported("plane", "box")
    >>> require_supported("box", "cylinder")
    Traceback (most recent call last):
    ...
    ValueError: collision: contacts between a box and a cylinder cannot be found; a box meets: sphere, capsule, box, plane
    """
    pair = [_code(kind) for kind in (kind_a, kind_b)]
    if tuple(sorted(pair)) not in SUPPORTED:
        partners = [NAMES[k] for k in range(len(NAMES)) if tuple(sorted((pair[0], k))) in SUPPORTED]
        a, b = (NAMES[k] for k in pair)
        raise ValueError(f"collision: contacts between a {a} and a {b} cannot be found; a {a} meets: {', '.join(partners)}")


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
    if kind[s] == SPHERE:
        return radius
    if kind[s] == CAPSULE:
        return radius + 0.5 * length
    if kind[s] == BOX:
        return 0.5 * math.sqrt(radius**2 + length**2 + size[3 * s + 2] ** 2)
    if kind[s] == PLANE:
        return math.inf
    return math.sqrt(radius**2 + 0.25 * length**2)
