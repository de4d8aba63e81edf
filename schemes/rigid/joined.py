"""Contacts of two bodies that joints connect: along whose normals these joints let nothing move is no contact.

What presses there the joints carry: of bodies that are welded together, a drawer on its runners, the leaf of a hinge on its frame.
As contacts they would state equations of the joints once more, and while the bodies turn not quite the same ones, which no impulse
satisfies. Joints with the world, whose axes do not turn, are consistent with its shapes, and share the load with them.
"""

import numpy as np

from nsds._jit import kernel, stack, tiny, view
from nsds.collision import WORLD
from nsds.maths.rotations import rotate
from nsds.maths.vectors import cross, dot_6
from nsds.model.joints import ALIGN, ANGLE, DISTANCE, POINT
from nsds.model.layout import ABSENT
from nsds.schemes.rigid.joint_rows import joint_row, seen_from

_FREE = 1e-6  # of a motion: as much of it is rounding
_SIX = 6  # components of a relative motion
ROWS = _SIX * _SIX + 1  # entries of what joints forbid


def connections(bodies, interactions, kinds):
    """Units of bodies, and the joints between these, as int64 entries; none without joints.

    First the unit of each body: those that joints weld together for good are one. Then, for each unit and the end, where the numbers of
    its joints with others begin, and these. kinds: of the rows of each interaction, () of one that is no equation of motion of two bodies.
    """
    n, joints = len(bodies), [k for k, rows in enumerate(kinds) if rows]
    if not joints:
        return np.zeros(0, np.int64)
    # 1. units
    leader, ends = list(range(n)), {k: (int(interactions["a"][k]), int(interactions["b"][k])) for k in joints}

    def unit_of(body):
        while leader[body] != body:
            leader[body] = body = leader[leader[body]]
        return body

    for k in joints:
        stays = interactions["enabled"][k] == ABSENT and all(bodies["alive"][body] == ABSENT for body in ends[k])
        if stays and _welds(kinds[k], bodies["planar"][ends[k][0]]):
            leader[unit_of(ends[k][0])] = unit_of(ends[k][1])
    # 2. joints of each
    of_units = [[] for _ in range(n)]
    for k in joints:
        one, other = map(unit_of, ends[k])
        for unit in (one, other) if one != other else ():
            of_units[unit].append(k)
    begin = 2 * n + 1 + np.cumsum([0, *map(len, of_units)])
    return np.array([*map(unit_of, range(n)), *begin, *(k for numbers in of_units for k in numbers)], np.int64)


def _welds(kinds, is_planar):
    """Whether a joint with rows of these kinds leaves no relative motion."""
    return kinds == [POINT] * (2 if is_planar else 3) + [ALIGN] * (1 if is_planar else 3)


def kinds_of(interactions, equality, mem):
    """For each interaction the kinds of its rows, (): see `connections`. mem (members, entries): the records' memory."""
    found = []
    for it in interactions:
        is_one = it["law"] == equality and it["row"] != ABSENT != it["b"]
        rows = mem[:, it["row"] : it["row"] + it["m"]].view(np.int64) if is_one else mem[:, :0]
        is_one = is_one and (rows == rows[0]).all() and np.isin(rows[0], (POINT, ALIGN, ANGLE, DISTANCE)).all()
        found.append(rows[0].tolist() if is_one else ())
    return found


@kernel
def find_rows(a, b, centre, c, interactions, q, memory, rows):
    """Relative motions of two bodies that joints forbid, orthonormal, about a point near both; returns their number.

    Out: rows (ROWS,): the motions, velocity of the point times a length and rotation, and behind them the length.
    """
    work, iwork, n, rank = memory.work, memory.iwork, q.size // 7, 0
    if a == WORLD or b == WORLD:
        return 0
    one, other = iwork[c.joined + a], iwork[c.joined + b]
    if one == other:
        return _SIX
    # 1. a length of the motion
    length = 0.0
    for side in range(2):
        body, square = (a if side == 0 else b), 0.0
        for i in range(3):
            square += (q[7 * body + i] - centre[i]) ** 2
        length += square**0.5
    rows[_SIX * _SIX] = length
    # 2. rows of joints of both
    for at in range(iwork[c.joined + n + one], iwork[c.joined + n + one + 1]):
        it = interactions[iwork[c.joined + at]]
        is_of_both = iwork[c.joined + it.a] == other or iwork[c.joined + it.b] == other
        for i in range(it.m if is_of_both and work[it.off] == 0.0 else 0):
            rank = _add_row(it, i, centre, length, q, memory, rank, rows)
    return rank


@kernel
def _add_row(it, i, centre, length, q, memory, rank, rows):
    """Number of rows with that of row i of a joint, if that is another one. In/out: rows."""
    mem, seen, H, angle, arm, e = memory.mem, stack(12), stack(12), stack(2), stack(3), stack(_SIX)
    qa, qb = view(q, 7 * it.a, 7), view(q, 7 * it.b, 7)
    seen_from(qa, qb, True, seen)
    angle[0] = angle[1] = 0.0
    joint_row(
        memory.imem[it.row + i], view(mem, it.row_a + 3 * i, 3), view(mem, it.row_u + 3 * i, 3), view(mem, it.row_b + 3 * i, 3),
        view(mem, it.row_w + 3 * i, 3), 0.0, qa, qb, True, seen, angle, H,
    )  # fmt: skip
    # 1. as a row on the velocity of A about the centre, of which the rotation is times a length
    rotate(view(qa, 3, 4), view(H, 3, 3), view(H, 3, 3))
    for k in range(3):
        arm[k] = qa[k] - centre[k]
    cross(arm, view(H, 0, 3), view(e, 3, 3))
    for k in range(3):
        e[k], e[3 + k] = H[k] * length, H[3 + k] + e[3 + k]
    # 2. what other rows do not have
    if not _is_new(rank, rows, e):
        return rank
    for k in range(_SIX):
        rows[_SIX * rank + k] = e[k]
    return rank + 1


@tiny
def _is_new(rank, rows, e):
    """Whether a vector has a part across orthonormal rows that is not rounding. In/out: e (6,), that part as a unit vector."""
    before = dot_6(e, e)
    for _ in range(2):  # the second time against rounding
        for r in range(rank):
            along = dot_6(e, view(rows, _SIX * r, _SIX))
            for k in range(_SIX):
                e[k] -= along * rows[_SIX * r + k]
    after = dot_6(e, e)
    if not after > _FREE * _FREE * before:
        return False
    for k in range(_SIX):
        e[k] /= after**0.5
    return True


@tiny
def is_carried(rank, rows, centre, normal, point):
    """Whether rows of joints let nothing move along the normal at a point, see `find_rows`."""
    if rank == 0 or rank == _SIX:
        return rank == _SIX
    arm, e = stack(3), stack(_SIX)
    for k in range(3):
        arm[k] = point[k] - centre[k]
    cross(arm, normal, view(e, 3, 3))
    for k in range(3):
        e[k] = normal[k] * rows[_SIX * _SIX]
    return not _is_new(rank, rows, e)


@kernel
def drop_carried(c, n, interactions, q, memory):
    """Drop from the n contacts found those that joints of their bodies carry; returns the number of the others. In/out: new_*."""
    imem, work, iwork, rows, centre = memory.imem, memory.work, memory.iwork, stack(ROWS), stack(3)
    kept, rank, shape_a, shape_b = 0, 0, -1, -1
    for i in range(n):
        normal, point = view(work, c.new_normal + 3 * i, 3), view(work, c.new_point + 3 * i, 3)
        if iwork[c.new_a + i] != shape_a or iwork[c.new_b + i] != shape_b:
            shape_a, shape_b = iwork[c.new_a + i], iwork[c.new_b + i]
            for k in range(3):
                centre[k] = point[k]
            rank = find_rows(imem[c.body + shape_a], imem[c.body + shape_b], centre, c, interactions, q, memory, rows)
        if is_carried(rank, rows, centre, normal, point):
            continue
        iwork[c.new_a + kept], iwork[c.new_b + kept], iwork[c.new_feature + kept] = shape_a, shape_b, iwork[c.new_feature + i]
        work[c.new_gap + kept] = work[c.new_gap + i]
        for k in range(3):
            work[c.new_normal + 3 * kept + k], work[c.new_point + 3 * kept + k] = normal[k], point[k]
        kept += 1
    return kept
