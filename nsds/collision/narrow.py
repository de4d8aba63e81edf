"""Contacts of two shapes of any kind."""

from inspect import signature

from numba import types

from nsds._jit import caller, kernel, on_demand, specialised, stack, tiny
from nsds.collision.frames import FIELDS, turn_round
from nsds.collision.general import general_pair
from nsds.collision.kinds import NAMES, PLANE, SPHERE, kinds_with
from nsds.collision.pairs import COMPILED
from nsds.collision.spheres import sphere_plane, sphere_sphere

_GENERAL = kinds_with(lambda shape: shape.is_general)  # solids and meshes
_INTS, _FLOATS = types.Array(types.int64, 1, "C"), types.Array(types.float64, 1, "C")
_OTHERS = types.Tuple((types.int64, _FLOATS, types.int64))  # as of `contacts_of_pair`
_OF_GENERAL = types.int64(_INTS, _FLOATS, _FLOATS, *(types.int64,) * 3, types.float64, _FLOATS)
_call_general = caller(_OF_GENERAL)
_address_of_general = on_demand(_OF_GENERAL, general_pair)


@kernel
def _in_order(kind, size, pose, others, a, b, margin, found):
    """Contacts of shapes without a kernel of their own; none between unsupported kinds."""
    general = others[2]
    if general != 0 and (_GENERAL >> kind[a]) & (_GENERAL >> kind[b]) & 1:
        address = _address_of_general()
        return types.int64(0) if address == 0 else _call_general(address, (kind, size, pose, general, a, b, margin, found))
    return types.int64(0)


def _of_two(kind, size, pose, others, a, b, margin, found):
    """Contacts of shapes a and b, the kind of a not after that of b, by the kernel of two kinds, or by the next case."""
    if kind[a] == first and kind[b] == second:  # noqa: F821
        address, n = address_of_contacts(), 0  # noqa: F821
        one, other = (b, a) if is_turned else (a, b)  # noqa: F821
        if address != 0:
            n = call_contacts(address, (size, pose, one, other, margin, found))  # noqa: F821
        if is_turned:  # noqa: F821
            turn_round(found, n)
        return n
    return next_case(kind, size, pose, others, a, b, margin, found)  # noqa: F821


def _of_polyhedra(kind, size, pose, others, a, b, margin, found):
    """As `_of_two`, by a kernel that takes vertices."""
    if kind[a] == first and kind[b] == second:  # noqa: F821
        address, n = address_of_contacts(), 0  # noqa: F821
        one, other = (b, a) if is_turned else (a, b)  # noqa: F821
        if address != 0:
            n = call_contacts(address, (size, pose, others[1], one, other, margin, found))  # noqa: F821
        if is_turned:  # noqa: F821
            turn_round(found, n)
        return n
    return next_case(kind, size, pose, others, a, b, margin, found)  # noqa: F821


def _with(pair, contacts, next_case):
    """Dispatch for shapes ordered by kind: a pair of kinds has its kernel, compiled when two such shapes first come near.

    Where the first kind of the pair is the later one, the kernel gets the shapes in its own order.
    """
    wants_vertices = "vertices" in signature(contacts).parameters
    of_pair = types.int64(*(_FLOATS,) * (3 if wants_vertices else 2), types.int64, types.int64, types.float64, _FLOATS)
    names = dict(zip(("first", "second"), sorted(pair), strict=True))
    names |= {"is_turned": pair[0] > pair[1], "address_of_contacts": on_demand(of_pair, contacts), "call_contacts": caller(of_pair)}
    template = _of_polyhedra if wants_vertices else _of_two
    return tiny(specialised(template, "_".join(NAMES[kind] for kind in pair), next_case=next_case, **names))


for pair, contacts in reversed(COMPILED.items()):
    _in_order = _with(pair, contacts, _in_order)


@tiny
def _sort(found, n):
    """Sorts contacts by feature, by insertion."""
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
def _any_pair(kind, size, pose, others, a, b, margin, found):
    """Contacts of shapes a and b with gaps up to a margin, in the order of their features; returns their number."""
    if kind[a] <= kind[b]:
        n = _in_order(kind, size, pose, others, a, b, margin, found)
    else:
        n = _in_order(kind, size, pose, others, b, a, margin, found)
        turn_round(found, n)
    _sort(found, n)
    return n


_PAIR = types.int64(_INTS, _FLOATS, _FLOATS, _OTHERS, types.int64, types.int64, types.float64, _FLOATS)
_call = caller(_PAIR)
_address_of_any_pair = on_demand(_PAIR, _any_pair)


@kernel
def other_pairs(kind):
    """Address of the kernel for pairs other than sphere-sphere and sphere-plane, 0 if no shape needs it."""
    for s in range(kind.size):
        if kind[s] != SPHERE and kind[s] != PLANE:
            return types.int64(_address_of_any_pair())
    return 0


@tiny
def others_of_pair(kind, a, b):
    """As `other_pairs`, for shapes a and b alone."""
    are_simple = (kind[a] == SPHERE or kind[a] == PLANE) and (kind[b] == SPHERE or kind[b] == PLANE)
    return types.int64(0) if are_simple else types.int64(_address_of_any_pair())


@tiny
def contacts_of_pair(kind, size, pose, a, b, margin, others, found):
    """Contacts of shapes a and b with gaps up to a margin, in the order of their features; returns their number.

    In: others: address from `other_pairs` or `others_of_pair`, vertices of polyhedra, address of `nsds.collision.general` or 0. Out: found
    (MOST * FIELDS): feature, gap, normal (3) from b to a, point (3) on a, for each contact.
    """
    # spheres and planes are inlined: a pile of balls compiles, and calls, nothing else
    if kind[a] == SPHERE and kind[b] == SPHERE:
        return sphere_sphere(size, pose, a, b, margin, found)
    if kind[a] == SPHERE and kind[b] == PLANE:
        return sphere_plane(size, pose, a, b, margin, found)
    if kind[a] == PLANE and kind[b] == SPHERE:
        n = sphere_plane(size, pose, b, a, margin, found)
        turn_round(found, n)
        return n
    return 0 if others[0] == 0 else _call(others[0], (kind, size, pose, others, a, b, margin, found))
