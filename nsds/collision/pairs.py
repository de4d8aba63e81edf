"""Pairs of kinds of shapes with contacts: by a kernel each, or by the general one for solids."""

from nsds.collision.boxes import box_box
from nsds.collision.capsule_box import capsule_box
from nsds.collision.capsules import capsule_capsule
from nsds.collision.frames import MOST
from nsds.collision.kinds import BALL, NAMES, SHAPES
from nsds.collision.planar import disk_disk, disk_half_plane, disk_outline, outline_half_plane, outline_outline
from nsds.collision.planes import box_plane, capsule_plane, cone_plane, cylinder_plane, polyhedron_plane
from nsds.collision.spheres import sphere_box, sphere_capsule, sphere_cylinder, sphere_plane, sphere_sphere, sphere_tube

# Two kinds of shapes, in any order -> kernel (size, pose, a, b, margin, found) of their contacts, a of the first kind; a kernel that
# takes vertices has them after pose.
_KERNELS = {
    ("sphere", "sphere"): sphere_sphere,
    ("sphere", "capsule"): sphere_capsule,
    ("sphere", "cylinder"): sphere_cylinder,
    ("sphere", "box"): sphere_box,
    ("sphere", "plane"): sphere_plane,
    ("sphere", "tube"): sphere_tube,
    ("capsule", "capsule"): capsule_capsule,
    ("capsule", "box"): capsule_box,
    ("capsule", "plane"): capsule_plane,
    ("cylinder", "plane"): cylinder_plane,
    ("cone", "plane"): cone_plane,
    ("box", "box"): box_box,
    ("box", "plane"): box_plane,
    ("convex", "plane"): polyhedron_plane,
    ("mesh", "plane"): polyhedron_plane,
    ("disk", "disk"): disk_disk,
    ("disk", "stadium"): disk_outline,
    ("disk", "polygon"): disk_outline,
    ("disk", "half_plane"): disk_half_plane,
    ("stadium", "stadium"): outline_outline,
    ("stadium", "polygon"): outline_outline,
    ("stadium", "half_plane"): outline_half_plane,
    ("polygon", "polygon"): outline_outline,
    ("polygon", "half_plane"): outline_half_plane,
}
# Largest numbers of contacts, where less than MOST; pairs with a sphere or disk have one.
_MANY = {
    ("capsule", "capsule"): 3,
    ("capsule", "plane"): 2,
    ("cylinder", "plane"): 10,
    ("cone", "plane"): 6,
    ("box", "box"): 12,
    ("box", "plane"): 8,
    ("stadium", "stadium"): 3,
    ("stadium", "polygon"): 3,
    ("stadium", "half_plane"): 2,
    ("polygon", "polygon"): 3,
    ("polygon", "half_plane"): 2,
}
_ROUND = {name for name, shape in SHAPES.items() if shape.symmetry == BALL}
COMPILED = {(NAMES.index(a), NAMES.index(b)): contacts for (a, b), contacts in _KERNELS.items()}
_OWN = frozenset(tuple(sorted(pair)) for pair in COMPILED)
_SOLID = [code for code, shape in enumerate(SHAPES.values()) if shape.is_general]
GENERAL = frozenset((a, b) for a in _SOLID for b in _SOLID if a <= b) - _OWN
SUPPORTED = _OWN | GENERAL


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
    if tuple(sorted(pair)) not in SUPPORTED:
        partners = [NAMES[k] for k in range(len(NAMES)) if tuple(sorted((pair[0], k))) in SUPPORTED]
        a, b = (NAMES[k] for k in pair)
        raise ValueError(f"collision: contacts between a {a} and a {b} cannot be found; a {a} meets: {', '.join(partners)}")


def most_contacts(kind_a, kind_b):
    """Largest number of contacts of two shapes of these kinds, codes in any order: a round shape touches a convex one once."""
    kinds = NAMES[min(kind_a, kind_b)], NAMES[max(kind_a, kind_b)]
    return 1 if _ROUND & set(kinds) and "mesh" not in kinds else _MANY.get(kinds, MOST)


def _code(kind):
    if kind in NAMES:
        return NAMES.index(kind)
    if isinstance(kind, str) or int(kind) not in range(len(NAMES)):
        raise ValueError(f"collision: kind must be one of {', '.join(NAMES)} or their codes 0 to {len(NAMES) - 1}, got {kind!r}")
    return int(kind)
