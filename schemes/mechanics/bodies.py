"""Rigid bodies as parts of Lagrangian systems: those parts of their motion and constraints that differ.

The state of a body is (x, p, v, Omega), 13 numbers, Omega in axes of the body: there its masses are constant. Only the direction of p
counts, so that errors of its length in stages have no effect. H of all rows acts on (v, Omega), too.

Contacts of two shapes are found by the detection of all schemes, `nsds.collision.narrow.contacts_of_pair`. Each pair has as many slots as
it can have contacts, each slot the rows of one contact. A slot identifies its contact by the feature; `renew_contacts` assigns empty slots
to new contacts. In between, in stages and samples of a step, a contact whose feature has changed, as where a corner slides over an edge, is
the nearest one found.
"""

import math

from numba import typeof, types

from nsds._jit import caller, kernel, on_demand, stack, tiny, view
from nsds.collision import WORLD, place
from nsds.collision.frames import FIELDS, MOST, frame_in
from nsds.collision.kinds import MESH, bound
from nsds.collision.narrow import contacts_of_pair, others_of_pair
from nsds.maths import rotations
from nsds.maths.vectors import dot, norm, times_transposed
from nsds.model.layout import ABSENT
from nsds.schemes.derivatives import BEGIN_FIRST, BEGIN_SECOND, FIRST, SECOND
from nsds.schemes.lagrangian.relations import ACTIVE, EVERY
from nsds.schemes.mechanics.tables import FREE, Rigid, no_bodies
from nsds.schemes.memory import MEMORY
from nsds.schemes.rigid.bodies import EXPONENTIAL, force, move, radius_of_gyration
from nsds.schemes.rigid.collisions import add_surfaces, take_over
from nsds.schemes.rigid.forces import force_of
from nsds.schemes.rigid.interactions import contact_rows, evaluate
from nsds.schemes.rigid.joined import ROWS, find_rows, is_carried
from nsds.schemes.rigid.tables import FORCE, V

STATE = 13  # numbers of a body
_ROOM = MOST * FIELDS
NO_FEATURE = -(1 << 60)  # of a slot without a contact; features are smaller in size
SAME, NEW, LOST = range(3)  # state of a slot after `renew_contacts`: as before, another contact than before, none any more
_NEAR = 1e-11  # relative to the lengths that cancel in a gap: touching
_WAY = 2.0**-9  # of a turn, or of the radius of gyration: distance between the points of a difference along the motion


@kernel
def copy_state(s, from_mem, memory, x):
    """States of all bodies from mem into work[x:], or back, p made unit then."""
    mem = memory.mem
    for i in range(s.rigid.bodies.size):
        q, at = s.rigid.bodies[i].q, x + STATE * i
        for k in range(STATE):
            if from_mem:
                memory.work[at + k] = mem[q + k]
            else:
                mem[q + k] = memory.work[at + k]
        if not from_mem:
            rotations.normalise(view(mem, q + 3, 4))


@kernel
def rates(s, memory, out):
    """x' of all bodies at the state in mem, with the accelerations in p.acc, into work[out:]."""
    mem, work = memory.mem, memory.work
    psi, acc = stack(12), s.newton.plan[0].acc
    for i in range(s.rigid.bodies.size):
        q, to = s.rigid.bodies[i].q, out + STATE * i
        rotations.rate_matrix(view(mem, q + 3, 4), psi)
        for k in range(3):
            work[to + k] = mem[q + V + k]
        for k in range(4):
            w = psi[3 * k] * mem[q + V + 3] + psi[3 * k + 1] * mem[q + V + 4] + psi[3 * k + 2] * mem[q + V + 5]
            work[to + 3 + k] = 0.5 * w
        for k in range(6):
            work[to + V + k] = work[acc + 6 * i + k]


@kernel
def displace(s, memory, shift):
    """Move all bodies by work[shift:], rotation vectors in axes of the bodies."""
    kept = stack(7)
    for i in range(s.rigid.bodies.size):
        q, d = s.rigid.bodies[i].q, view(memory.work, shift + 6 * i, 6)
        for k in range(7):
            kept[k] = memory.mem[q + k]
        move(EXPONENTIAL, kept, 1.0, 1.0, d, d, view(memory.mem, q, 7))


@kernel
def _evaluate_wrenches(t, f, rigid, functions, memory):
    """Forces on all bodies at the state in mem, with those between bodies, into work[f:]; none on fixed ones."""
    mem = memory.mem
    size = stack(2)
    for i in range(rigid.bodies.size):
        body, out = rigid.bodies[i], view(memory.work, f + 6 * i, 6)
        if body.fixed:
            for k in range(6):
                out[k] = 0.0
        else:
            force(t, body, view(mem, body.q, 7), view(mem, body.q + V, 6), functions, mem, out, size)
    for k in range(rigid.interactions.size):
        if rigid.interactions[k].law == FORCE and rigid.rows[k].collision == ABSENT:
            _add_force_between(t, k, f, rigid, functions, memory)


@kernel
def _add_force_between(t, k, f, rigid, functions, memory):
    """The force of a spring, damper or function into lambda of its rows, and ``H^T lambda`` to the forces in work[f:]."""
    work = memory.work
    r = rigid.interactions[k]
    _place(r.a, 0.0, rigid, memory)
    if r.b != ABSENT:
        _place(r.b, 0.0, rigid, memory)
    _evaluate(t, k, ABSENT, rigid, functions, memory)
    ydot, lam = view(work, r.spare, r.m), view(memory.mem, r.lam, r.m)
    for i in range(r.m):
        ydot[i] = _speed(r, i, rigid.bodies, memory)
    force_of(t, r, view(work, r.h, r.m), ydot, functions, memory.mem, lam)
    for side in range(2 if r.b != ABSENT else 1):
        body = r.a if side == 0 else r.b
        for i in range(r.m if not rigid.bodies[body].fixed else 0):
            for l in range(6):
                work[f + 6 * body + l] += work[r.H + 12 * i + 6 * side + l] * lam[i]


@kernel
def _evaluate_interactions(t, which, mode, rigid, functions, memory):
    """h, rate and H of the chosen interactions at the state in mem; which: EVERY, ACTIVE, or else those without held rows."""
    for i in range(rigid.bodies.size):
        _place(i, 0.0, rigid, memory)
    for k in range(rigid.interactions.size):
        if rigid.rows[k].first == k and (which == EVERY or _is_chosen(k, which == ACTIVE, mode, rigid, memory.iwork)):
            _evaluate(t, k, mode, rigid, functions, memory)


@tiny
def _is_chosen(first, is_active, mode, rigid, iwork):
    """Whether of an interaction, or of the slots of a pair of shapes from the first one on, one holds something, or one does not."""
    chosen = False
    for k in range(first, first + rigid.rows[first].many):
        chosen |= _acts(k, mode, rigid, iwork) == is_active
    return chosen


@tiny
def _acts(k, mode, rigid, iwork):
    """Whether an interaction has a row that is not FREE."""
    first, any_row = rigid.rows[k], False
    for i in range(rigid.interactions[k].m):
        any_row |= iwork[mode + iwork[first.number + i]] != FREE
    return any_row


@tiny
def _place(i, way, rigid, memory):
    """Body i where constant velocities take it in a time, for `evaluate`."""
    mem, work = memory.mem, memory.work
    plan, q = rigid.plan[0], rigid.bodies[i].q
    v, to = view(mem, q + V, 6), view(work, plan.q + 7 * i, 7)
    if way == 0.0:
        for k in range(7):
            to[k] = mem[q + k]
    else:
        move(EXPONENTIAL, view(mem, q, 7), way, 1.0, v, v, to)
    rotations.rotation_matrix(view(work, plan.q + 7 * i + 3, 4), view(work, plan.R + 9 * i, 9))


@tiny
def _turn_rows(r, plan, work):
    """Angular columns of H from inertial axes into those of the bodies."""
    for i in range(r.m):
        row = view(work, r.H + 12 * i, 12)
        times_transposed(view(work, plan.R + 9 * r.a, 9), view(row, 3, 3), view(row, 3, 3))
        if r.b != ABSENT:
            times_transposed(view(work, plan.R + 9 * r.b, 9), view(row, 9, 3), view(row, 9, 3))


@tiny
def _evaluate(t, k, mode, rigid, functions, memory):
    """h, rate and H of an interaction, or of all slots of a pair of shapes from the first one on, where bodies have been placed."""
    work = memory.work
    plan = rigid.plan[0]
    if rigid.rows[k].collision == ABSENT:
        q, R = view(work, plan.q, 7 * rigid.bodies.size), view(work, plan.R, 9 * rigid.bodies.size)
        evaluate(t, rigid.interactions[k], q, R, functions, memory)
        _turn_rows(rigid.interactions[k], plan, work)
    else:
        _evaluate_pair(k, False, mode, rigid, memory)


@kernel
def _evaluate_pair(first, renews, mode, rigid, memory):
    """h and H of all contacts of two shapes, whose slots begin with the first, with normals and points as `detect` gives them.

    renews: whether slots take over the contacts found. mode: offset of the modes of rows, ABSENT without. Out: least, the least gap
    without impulse, and rate; changed, set to 1 if a slot is not evaluated with its own feature, or there are more contacts than slots.
    """
    mem, work, iwork = memory.mem, memory.work, memory.iwork
    row, pair, plan = rigid.rows[first], rigid.rows[first], rigid.plan[0]
    c, r, many = rigid.collisions[pair.collision], rigid.interactions[first], pair.many
    n, found, own, mate = c.n_shapes, stack(_ROOM), stack(MOST), stack(MOST)
    kind, size, pose = view(memory.imem, c.kind, n), view(mem, c.size, 3 * n), view(work, c.pose, 7 * n)
    q, a, b = view(work, plan.q, 7 * rigid.bodies.size), pair.shape_a, pair.shape_b
    # 1. poses of both shapes
    for side in range(2):
        shape = a if side == 0 else b
        place(view(memory.imem, c.body + shape, 1), view(mem, c.local + 7 * shape, 7), q, view(work, c.pose + 7 * shape, 7))
    # 2. contacts up to a gap that may matter, and bound of its rate
    others = others_of_pair(kind, a, b), view(mem, c.vertices, 3 * c.n_vertices), iwork[c.general]
    far = _far(kind, size, pose, a, b)
    work[pair.rate] = _rate_of_gap(first, far, kind, size, rigid, mem)
    margin = _sight(first, kind, size, rigid, memory)
    count = contacts_of_pair(kind, size, pose, a, b, margin, others, found)
    if c.joined != ABSENT:
        count = _drop_carried(r, count, found, c, rigid, memory)
    # 3. assign contacts to slots
    _match(first, count, found, own, mate, rigid, memory)
    if renews:
        _fill_slots(first, count, found, own, mate, mode, rigid, memory)
    # 4. least gap of contacts that no slot holds closed
    least = min(margin, far)
    for j in range(count):
        k = first + int(mate[j])
        if mate[j] < 0.0:
            iwork[pair.changed] = 1
        elif iwork[rigid.rows[k].feature] != int(found[FIELDS * j]):
            iwork[pair.changed] = 1
        if mate[j] < 0.0 or (mode != ABSENT and iwork[mode + iwork[rigid.rows[k].number]] == FREE):
            least = min(least, found[FIELDS * j + 1])
    work[pair.least] = least
    # 5. rows of each slot; without a contact it has a large gap
    for k in range(first, first + many):
        row, j = rigid.rows[k], int(own[k - first])
        for i in range(r.m):
            work[rigid.interactions[k].h + i], work[rigid.interactions[k].rate + i] = 0.0, 0.0
        if j >= 0:
            _write_contact(k, found, j, rigid, memory)
        else:
            iwork[pair.changed] = 1 if iwork[row.feature] != NO_FEATURE else iwork[pair.changed]
            work[rigid.interactions[k].h] = min(margin, far)


@kernel
def _drop_carried(r, count, found, c, rigid, memory):
    """Drop from the contacts found of two shapes those that joints carry, see `schemes.rigid.joined`; returns the number of the others."""
    q, rows, centre, kept = view(memory.work, rigid.plan[0].q, 7 * rigid.bodies.size), stack(ROWS), stack(3), 0
    for k in range(3 if count > 0 else 0):
        centre[k] = found[5 + k]
    rank = find_rows(r.a, WORLD if r.b == ABSENT else r.b, centre, c, rigid.interactions, q, memory, rows)
    for j in range(count):
        at = FIELDS * j
        if is_carried(rank, rows, centre, view(found, at + 2, 3), view(found, at + 5, 3)):
            continue
        for k in range(FIELDS):
            found[FIELDS * kept + k] = found[at + k]
        kept += 1
    return kept


@tiny
def _write_contact(k, found, j, rigid, memory):
    """h, rate, H, normal and point of a slot from the j-th contact found. In/out: rate, which is 0 without surfaces that move."""
    row, r, plan, frame, lever, work = rigid.rows[k], rigid.interactions[k], rigid.plan[0], stack(9), stack(6), memory.work
    c, q, normal, gap = (
        rigid.collisions[row.collision], view(work, plan.q, 7 * rigid.bodies.size), view(found, FIELDS * j + 2, 3), found[FIELDS * j + 1],
    )  # fmt: skip
    frame_in(c.planar, normal, frame)
    for i in range(3):
        work[row.normal + i], work[row.point + i] = normal[i], found[FIELDS * j + 5 + i]
        x = found[FIELDS * j + 5 + i] - (0.5 * gap * normal[i] if r.b != ABSENT else 0.0)
        lever[i], lever[3 + i] = x - q[7 * r.a + i], x - q[7 * r.b + i] if r.b != ABSENT else 0.0
    if c.surface != ABSENT:
        add_surfaces(c, row.shape_a, row.shape_b, frame, lever, q, memory, view(work, r.rate, r.m))
    contact_rows(r.m, frame, view(lever, 0, 3), view(lever, 3, 3), r.b != ABSENT, view(work, r.H, 12 * r.m))
    _turn_rows(r, plan, work)
    work[r.h] = gap


@tiny
def _far(kind, size, pose, a, b):
    """Length of the order of the distance of two shapes: upper bound of the gap of a slot without contact."""
    far = 0.0
    for i in range(3):
        far += abs(pose[7 * a + i] - pose[7 * b + i])
    for side in range(2):
        radius = bound(kind, size, a if side == 0 else b)
        far += radius if radius < math.inf else 0.0
    return far


@tiny
def _sight(first, kind, size, rigid, memory):
    """Largest gap for which contacts of two shapes are searched: of meshes those that motion may close soon, of others all."""
    pair = rigid.rows[first]
    if kind[pair.shape_a] != MESH and kind[pair.shape_b] != MESH:
        return math.inf
    smaller = min(bound(kind, size, pair.shape_a), bound(kind, size, pair.shape_b))
    return max(
        memory.mem[rigid.collisions[pair.collision].margin], smaller + 2.0 * memory.work[pair.rate] * memory.work[rigid.plan[0].horizon]
    )


@tiny
def _rate_of_gap(first, far, kind, size, rigid, mem):
    """A bound of how fast the gap of two shapes changes, from the speeds of the bodies in mem."""
    pair, r, square, rate = rigid.rows[first], rigid.interactions[first], 0.0, 0.0
    for i in range(3):
        v = mem[rigid.bodies[r.a].q + V + i] - (mem[rigid.bodies[r.b].q + V + i] if r.b != ABSENT else 0.0)
        square += v * v
    for side in range(2 if r.b != ABSENT else 1):
        body, shape = (r.a, pair.shape_a) if side == 0 else (r.b, pair.shape_b)
        radius = min(bound(kind, size, shape), far) + norm(view(mem, rigid.collisions[pair.collision].local + 7 * shape, 3))
        rate += radius * norm(view(mem, rigid.bodies[body].q + V + 3, 3))
    return rate + math.sqrt(square)


@kernel
def _match(first, count, found, own, mate, rigid, memory):
    """Assign the contacts found to slots: by feature, else the nearest free one.

    Out: own (MOST,): contact of each slot; mate (MOST,): slot of each contact; -1 for none.
    """
    many = rigid.rows[first].many
    for j in range(count):
        mate[j] = -1.0
    # 1. by feature
    for l in range(many):
        own[l] = -1.0
        for j in range(count):
            if mate[j] < 0.0 and int(found[FIELDS * j]) == memory.iwork[rigid.rows[first + l].feature]:
                own[l], mate[j] = j, l
                break
    # 2. by position, with a normal in the same half space
    for l in range(many):
        row, nearest, least = rigid.rows[first + l], -1, math.inf
        if own[l] < 0.0 and memory.iwork[row.feature] != NO_FEATURE:
            for j in range(count):
                square = 0.0
                for i in range(3):
                    square += (found[FIELDS * j + 5 + i] - memory.work[row.point + i]) ** 2
                if mate[j] < 0.0 and square < least and dot(view(found, FIELDS * j + 2, 3), view(memory.work, row.normal, 3)) > 0.0:
                    nearest, least = j, square
            if nearest >= 0:
                own[l], mate[nearest] = nearest, l


@kernel
def _fill_slots(first, count, found, own, mate, mode, rigid, memory):
    """Give slots the contacts that they have been matched with; remaining contacts, the nearest first, get slots without one.

    If there is none, the slot of the largest gap without impulse. Out: state of each slot.
    """
    iwork = memory.iwork
    many = rigid.rows[first].many
    # 1. features of the matched contacts
    for l in range(many):
        row, was = rigid.rows[first + l], iwork[rigid.rows[first + l].feature]
        iwork[row.feature] = int(found[FIELDS * int(own[l])]) if own[l] >= 0.0 else NO_FEATURE
        iwork[row.state] = LOST if own[l] < 0.0 and was != NO_FEATURE else SAME
    # 2. remaining contacts
    for _ in range(count):
        nearest, least, slot, most = -1, math.inf, -1, -math.inf
        for j in range(count):
            if mate[j] < 0.0 and found[FIELDS * j + 1] < least:
                nearest, least = j, found[FIELDS * j + 1]
        # free slot, or the one whose contact is farthest
        for l in range(many if nearest >= 0 else 0):
            is_held = mode != ABSENT and iwork[mode + iwork[rigid.rows[first + l].number]] != FREE
            gap = math.inf if own[l] < 0.0 else found[FIELDS * int(own[l]) + 1]
            if not is_held and gap > max(most, least):
                slot, most = l, gap
        if slot < 0:
            return
        # the replaced contact competes again
        if own[slot] >= 0.0:
            mate[int(own[slot])] = -1.0
        own[slot], mate[nearest] = nearest, slot
        iwork[rigid.rows[first + slot].feature] = int(found[FIELDS * nearest])
        iwork[rigid.rows[first + slot].state] = NEW


@kernel
def _renew_contacts(mode, rigid, memory):
    """The slots of all pairs of shapes take over the contacts that are found at the state in mem; h and H of these."""
    for i in range(rigid.bodies.size):
        _place(i, 0.0, rigid, memory)
    for k in range(rigid.rows.size):
        if rigid.rows[k].collision != ABSENT and rigid.rows[k].first == k:
            _evaluate_pair(k, True, mode, rigid, memory)


@kernel
def list_contacts(s, memory):
    """Contacts of shapes that touch, or are nearer than the margin, into the record; the data of the engine in its place is overwritten."""
    iwork = memory.iwork
    rigid, f = s.rigid, s.flow[0]
    for k in range(rigid.rows.size):
        if rigid.rows[k].collision != ABSENT:
            number = iwork[rigid.rows[k].number]
            touches = iwork[f.mode + number] != FREE or memory.work[rigid.interactions[k].h] <= _NEAR * memory.work[f.length + number]
            iwork[f.listed + number] = 1 if touches else 0
    write_contacts(f.listed, rigid, memory)


@kernel
def write_contacts(listed, rigid, memory):
    """Contacts of shapes into the record: those with a flag in iwork[listed:] or an impulse, and those nearer than the margin."""
    mem, work, iwork = memory.mem, memory.work, memory.iwork
    for i in range(rigid.collisions.size):
        c, n, last = rigid.collisions[i], 0, 0
        # pairs of shapes in order, so that the record is sorted by (a, b, feature)
        for first in range(rigid.rows.size):
            pair = rigid.rows[first]
            if pair.collision != i or pair.first != first:
                continue
            last, begin = pair.slot + pair.many, n
            # slots of the pair that touch, carry or are near
            for k in range(first, first + pair.many):
                row, r = rigid.rows[k], rigid.interactions[k]
                is_near = iwork[listed + iwork[row.number]] != 0 or mem[r.lam] != 0.0 or work[r.h] <= mem[c.margin]
                if is_near and iwork[row.feature] != NO_FEATURE:
                    at = _move_up(c, begin, n, iwork[row.feature], memory)
                    iwork[c.new_a + at], iwork[c.new_b + at], iwork[c.new_feature + at] = row.shape_a, row.shape_b, iwork[row.feature]
                    work[c.new_gap + at] = work[r.h]
                    for j in range(3):
                        work[c.new_normal + 3 * at + j], work[c.new_point + 3 * at + j] = work[row.normal + j], work[row.point + j]
                    for j in range(c.each):
                        work[c.new_lam + c.each * at + j] = mem[r.lam + j]
                    n += 1
        memory.imem[c.n] = last
        take_over(c, n, memory)


@tiny
def _move_up(c, begin, n, feature, memory):
    """Make room among the contacts from begin to n, in the order of features: later ones move up. Returns its place."""
    work, iwork = memory.work, memory.iwork
    at = n
    while at > begin and iwork[c.new_feature + at - 1] > feature:
        at -= 1
        iwork[c.new_a + at + 1], iwork[c.new_b + at + 1] = iwork[c.new_a + at], iwork[c.new_b + at]
        iwork[c.new_feature + at + 1], work[c.new_gap + at + 1] = iwork[c.new_feature + at], work[c.new_gap + at]
        for j in range(3):
            work[c.new_normal + 3 * at + 3 + j], work[c.new_point + 3 * at + 3 + j] = (
                work[c.new_normal + 3 * at + j], work[c.new_point + 3 * at + j],
            )  # fmt: skip
        for j in range(c.each):
            work[c.new_lam + c.each * at + c.each + j] = work[c.new_lam + c.each * at + j]
    return at


@kernel
def _bend_rows(t, moment, which, mode, rigid, functions, memory):
    """``d/dt (H v + rate)`` at constant v of the chosen interactions: finite differences of fourth order along the motion.

    Of h itself if its derivatives are finite differences. moment: between the points, if something depends on time, and then all on one
    side of times known in advance, see `nsds.schemes.sides`. H is that of the last moved point.
    """
    work = memory.work
    for first in range(rigid.interactions.size):
        pair, r = rigid.rows[first], rigid.interactions[first]
        if pair.first != first or (which == ACTIVE and not _is_chosen(first, True, mode, rigid, memory.iwork)):
            continue
        # 1. distance of the points; by second differences of h, or first ones of H v + rate
        way = _way(moment, first, rigid, memory.mem)
        by_output = r.h_function != ABSENT and r.jac_function == ABSENT
        for k in range(first, first + pair.many):
            for i in range(r.m):
                work[rigid.rows[k].curvature + i] = 0.0
        side = memory.iwork[rigid.plan[0].side] if _is_timed(r) else 0
        count = 0 if way == math.inf else SECOND.shape[1] if by_output else FIRST.shape[1]
        # 2. each point: bodies moved along their motion
        for a in range(count):
            j = a + (BEGIN_SECOND[side] if by_output else BEGIN_FIRST[side])
            weight = SECOND[side, a] / (way * way) if by_output else FIRST[side, a] / way
            if weight == 0.0:
                continue
            _place(r.a, j * way, rigid, memory)
            if r.b != ABSENT:
                _place(r.b, j * way, rigid, memory)
            _evaluate(t + j * way, first, mode, rigid, functions, memory)
            # 3. weighted sum
            for k in range(first, first + pair.many):
                one, out = rigid.interactions[k], rigid.rows[k].curvature
                for i in range(r.m):
                    work[out + i] += weight * (work[one.h + i] if by_output else _speed(one, i, rigid.bodies, memory))


@tiny
def _is_timed(r):
    """Whether rows of an interaction depend on time."""
    return r.h_t_function != ABSENT or r.velocity_function != ABSENT


@tiny
def _speed(r, i, bodies, memory):
    """``H v + rate`` of row i, H as it was evaluated last."""
    work = memory.work
    u = work[r.rate + i]
    for l in range(6):
        u += work[r.H + 12 * i + l] * memory.mem[bodies[r.a].q + V + l]
        if r.b != ABSENT:
            u += work[r.H + 12 * i + 6 + l] * memory.mem[bodies[r.b].q + V + l]
    return u


@tiny
def _way(moment, k, rigid, mem):
    """Time in which the bodies turn, or move along curved directions, by a small part; infinite at rest."""
    r, bodies, fastest = rigid.interactions[k], rigid.bodies, 0.0
    bends = r.gap_function != ABSENT or r.h_function != ABSENT or rigid.rows[k].collision != ABSENT
    for side in range(2 if r.b != ABSENT else 1):
        body = bodies[r.a if side == 0 else r.b]
        fastest = max(fastest, norm(view(mem, body.q + V + 3, 3)))
        if bends and not body.fixed:
            fastest = max(fastest, norm(view(mem, body.q + V, 3)) / radius_of_gyration(body, mem))
    way = _WAY / fastest if fastest > 0.0 else math.inf
    return min(way, moment) if _is_timed(r) else way


# Kernels of interactions and forces take long to compile, and Lagrangian systems do without: they are called by address.
_FORCES, _OPERATORS, _CURVATURES, _CONTACTS, _PAIR = range(5)


@kernel
def _operate(bodies, interactions, rows, collisions, plan, what, which, t, moment, at, functions, memory):
    """One of the five; at: where forces go, or modes are."""
    rigid = Rigid(bodies, interactions, rows, collisions, plan)
    if what == _FORCES:
        _evaluate_wrenches(t, at, rigid, functions, memory)
    elif what == _CURVATURES:
        _bend_rows(t, moment, which, at, rigid, functions, memory)
    elif what == _CONTACTS:
        _renew_contacts(at, rigid, memory)
    elif what == _PAIR:
        for side in range(2 if interactions[which].b != ABSENT else 1):
            _place(interactions[which].a if side == 0 else interactions[which].b, 0.0, rigid, memory)
        _evaluate_pair(which, False, at, rigid, memory)
    else:
        _evaluate_interactions(t, which, at, rigid, functions, memory)
    return 0


_DOOR = types.int64(
    *(typeof(rows) for rows in no_bodies()), types.int64, types.int64, types.float64, types.float64, types.int64, types.uintp[::1],
    MEMORY,
)  # fmt: skip
_call_door = caller(_DOOR)
_address_of_door = on_demand(_DOOR, _operate)


@tiny
def evaluate_wrenches(t, f, rigid, functions, memory):
    """Forces on all bodies at the state in mem, into work[f:]."""
    r = rigid
    _call_door(_address_of_door(), (r.bodies, r.interactions, r.rows, r.collisions, r.plan, _FORCES, EVERY, t, 0.0, f, functions, memory))


@tiny
def evaluate_interactions(t, which, mode, rigid, functions, memory):
    """h, rate and H of the chosen interactions at the state in mem; which: EVERY, ACTIVE, or else those without held rows."""
    r = rigid
    _call_door(
        _address_of_door(), (r.bodies, r.interactions, r.rows, r.collisions, r.plan, _OPERATORS, which, t, 0.0, mode, functions, memory)
    )


@tiny
def bend_rows(t, moment, which, mode, rigid, functions, memory):
    """Curvatures of the chosen interactions; moment: between points in time, if they depend on it. H is that of the last point."""
    r = rigid
    _call_door(
        _address_of_door(), (r.bodies, r.interactions, r.rows, r.collisions, r.plan, _CURVATURES, which, t, moment, mode, functions, memory)
    )


@tiny
def renew_contacts(mode, rigid, functions, memory):
    """Slots of all pairs of shapes take over the contacts found at the state in mem. Out: state of each slot, h and H."""
    r = rigid
    if r.collisions.size > 0:
        _call_door(
            _address_of_door(),
            (r.bodies, r.interactions, r.rows, r.collisions, r.plan, _CONTACTS, EVERY, 0.0, 0.0, mode, functions, memory),
        )


@tiny
def least_gap(first, mode, rigid, functions, memory):
    """The least gap that holds nothing of two shapes, by the first of their slots, at the state in mem."""
    r = rigid
    _call_door(
        _address_of_door(), (r.bodies, r.interactions, r.rows, r.collisions, r.plan, _PAIR, first, 0.0, 0.0, mode, functions, memory)
    )
    return memory.work[r.rows[first].least]


@tiny
def forget_contacts(rigid, iwork):
    """All slots are without a contact."""
    for k in range(rigid.rows.size):
        if rigid.rows[k].collision != ABSENT:
            iwork[rigid.rows[k].feature] = NO_FEATURE
