"""Contacts of two shapes, whatever they are."""

from numba import types

from nsds._jit import caller, kernel, on_demand, pointer, stack, tiny
from nsds.collision.boxes import box_box
from nsds.collision.capsule_box import capsule_box
from nsds.collision.capsules import capsule_capsule
from nsds.collision.frames import FIELDS
from nsds.collision.kinds import BOX, CAPSULE, CONVEX, CYLINDER, MESH, PLANE, SPHERE, TUBE
from nsds.collision.planes import box_plane, capsule_plane, cylinder_plane, polyhedron_plane
from nsds.collision.spheres import sphere_box, sphere_capsule, sphere_cylinder, sphere_plane, sphere_sphere, sphere_tube

_call_general = caller(types.int64(types.int64, types.int64, types.float64, types.int64, types.int64))


@kernel
def _in_order(kind, size, pose, vertices, general, a, b, margin, found):
    """Contacts of shapes a and b, the kind of a not after that of b; none between kinds that are not supported."""
    first, second = kind[a], kind[b]
    if first == SPHERE:
        if second == CAPSULE:
            return sphere_capsule(size, pose, a, b, margin, found)
        if second == CYLINDER:
            return sphere_cylinder(size, pose, a, b, margin, found)
        if second == BOX:
            return sphere_box(size, pose, a, b, margin, found)
        if second == TUBE:
            return sphere_tube(size, pose, a, b, margin, found)
    if first == CAPSULE:
        if second == CAPSULE:
            return capsule_capsule(size, pose, a, b, margin, found)
        if second == BOX:
            return capsule_box(size, pose, a, b, margin, found)
        if second == PLANE:
            return capsule_plane(size, pose, a, b, margin, found)
    if first == CYLINDER and second == PLANE:
        return cylinder_plane(size, pose, a, b, margin, found)
    if first == BOX:
        if second == BOX:
            return box_box(size, pose, a, b, margin, found)
        if second == PLANE:
            return box_plane(size, pose, a, b, margin, found)
    if second == PLANE and (first == CONVEX or first == MESH):  # noqa: SIM109
        return polyhedron_plane(size, pose, vertices, a, b, margin, found)
    if second <= MESH and general != 0:
        return _call_general(general, (a, b, margin, pointer(pose), pointer(found)))
    return 0


@tiny
def _flip(found, n):
    """The same contacts seen from the other shape: normals turn round, points move across the gaps."""
    for k in range(n):
        at = k * FIELDS
        for i in range(2, 5):
            found[at + 3 + i] -= found[at + 1] * found[at + i]
            found[at + i] = -found[at + i]


@tiny
def _sort(found, n):
    """Contacts in the order of their features, by insertion."""
    one = stack(8)
    for k in range(1, n):
        for i in range(FIELDS):
            one[i] = found[k * FIELDS + i]
        at = k
        while at > 0 and found[(at - 1) * FIELDS] > one[0]:
            for i in range(FIELDS):
                found[at * FIELDS + i] = found[(at - 1) * FIELDS + i]
            at -= 1
        for i in range(FIELDS):
            found[at * FIELDS + i] = one[i]


@kernel
def _any_pair(kind, size, pose, vertices, general, a, b, margin, found):
    """Contacts of shapes a and b with gaps up to a margin, in the order of their features; returns their number."""
    if kind[a] <= kind[b]:
        n = _in_order(kind, size, pose, vertices, general, a, b, margin, found)
    else:
        n = _in_order(kind, size, pose, vertices, general, b, a, margin, found)
        _flip(found, n)
    _sort(found, n)
    return n


_INTS, _FLOATS = types.Array(types.int64, 1, "C"), types.Array(types.float64, 1, "C")
_PAIR = types.int64(_INTS, _FLOATS, _FLOATS, _FLOATS, *(types.int64,) * 3, types.float64, _FLOATS)
_call = caller(_PAIR)
_address_of_any_pair = on_demand(_PAIR, _any_pair)


@kernel
def other_pairs(kind):
    """Address of the code for pairs other than spheres with spheres and planes, 0 if no shape needs it: it takes long to compile."""
    for s in range(kind.size):
        if kind[s] != SPHERE and kind[s] != PLANE:
            return types.int64(_address_of_any_pair())
    return 0


@tiny
def contacts_of_pair(kind, size, pose, a, b, margin, others, found):
    """Contacts of shapes a and b with gaps up to a margin, in the order of their features; returns their number.

    In: others: address from `other_pairs`, vertices of polyhedra, address of `nsds.collision.general` or 0. Out: found (MOST * FIELDS):
    feature, gap, normal (3) from b to a, point (3) on a, for each contact.
    """
    if kind[a] == SPHERE and kind[b] == SPHERE:
        return sphere_sphere(size, pose, a, b, margin, found)
    if kind[a] == SPHERE and kind[b] == PLANE:
        return sphere_plane(size, pose, a, b, margin, found)
    if kind[a] == PLANE and kind[b] == SPHERE:
        n = sphere_plane(size, pose, b, a, margin, found)
        _flip(found, n)
        return n
    address, vertices, general = others
    return 0 if address == 0 else _call(address, (kind, size, pose, vertices, general, a, b, margin, found))
