"""Detected contacts of rigid bodies: detection, choice of active ones, frames and levers ([Notes], 12.0.4)."""

import math

from numba import uintp

from nsds._jit import kernel, stack, tiny, view
from nsds.collision import (
    WORLD,
    Contacts,
    Shapes,
    address_of_detect,
    address_of_detect_parallel,
    address_of_drop_hidden,
    call_detect,
    call_drop_hidden,
    place,
    solids_of,
)
from nsds.collision import inherit as match
from nsds.collision.detection import before
from nsds.collision.frames import frame_in
from nsds.collision.kinds import SPHERE, bound
from nsds.maths.rotations import rotate, rotate_back
from nsds.maths.vectors import cross, dot, norm
from nsds.model.functions import call_address
from nsds.model.layout import ABSENT
from nsds.schemes.problem.activation_rule import is_closed, slack
from nsds.schemes.rigid.bodies import length_of_turns
from nsds.schemes.rigid.enabled import hide
from nsds.schemes.rigid.interactions import axis_of, contact_rows
from nsds.schemes.rigid.joined import drop_carried
from nsds.schemes.rigid.tables import INERTIA, MASS

_MANY = 2000  # shapes from which all cores detect contacts
DEEPEST = 0.01  # of the size of a body: by no more is it pushed out of another in a step
WAY = 0.1  # of the displacement that forces cause in a step: contacts with smaller gaps are active
_REBOUND = 1e-6  # of the velocities that cancel: slower ones are residuals of a contact that persists
STRUCK = 2.0  # taking of contacts that close where a body is stopped
_SIGHT = 1e-3  # times the size of a shape: forces add no more to its slack


@kernel
def find(c, interactions, ahead, parallel, q, v, memory):
    """Contacts of collisions c at the state (q, v) of all bodies; returns their number, which may exceed the capacity. Out: new_*, slack.

    ahead: time ahead; gaps are listed that the motion at v may close within it, and those that may be active as they are. slack: of
    each shape, its part of the forecasts up to which contacts are active: by rounding, and at most by forces.
    """
    mem, imem, work, iwork = memory.mem, memory.imem, memory.work, memory.iwork
    n, m = c.n_shapes, c.capacity
    kind, size, body = view(imem, c.kind, n), view(mem, c.size, 3 * n), view(imem, c.body, n)
    local, pose, reach = view(mem, c.local, 7 * n), view(work, c.pose, 7 * n), view(work, c.reach, n)
    # 1. poses; disabled shapes have none
    place(body, local, q, pose)
    hide(c, pose, work)
    # 2. reach of the broad phase: half the margin, rounding, forces, and the motion ahead of the farthest point
    for s in range(n):
        reach[s], work[c.slack + 2 * s], work[c.slack + 2 * s + 1] = 0.5 * mem[c.margin], 0.0, 0.0
        if body[s] != WORLD:
            far, r = norm(view(local, 7 * s, 3)), bound(kind, size, s)
            r = r if r < math.inf else size[3 * s]
            rounding, forces = slack(r + norm(view(q, 7 * body[s], 3)), 0.0, ahead), _SIGHT * r
            # the rotation of a ball about its centre moves no point of its surface outwards
            if kind[s] != SPHERE:
                far += r
            reach[s] += rounding + forces + ahead * (norm(view(v, 6 * body[s], 3)) + norm(view(v, 6 * body[s] + 3, 3)) * far)
            work[c.slack + 2 * s], work[c.slack + 2 * s + 1] = rounding, forces
    # 3. detect; on one core if there are pairs of general shapes
    general = iwork[c.general]
    address = address_of_detect_parallel() if parallel and n >= _MANY and general == 0 else address_of_detect()
    count = call_detect(address, (
        Shapes(kind, size, pose, body, reach, view(imem, c.group, n), view(imem, c.mask, c.n_mask)),
        view(mem, c.vertices, 3 * c.n_vertices), general, _found(c, m, memory),
        view(work, c.scratch, c.n_scratch), view(iwork, c.scratch_i, c.n_scratch_i),
    ))  # fmt: skip
    # 4. what joints carry, hidden contacts at edges, or the user's filter
    if count <= m and c.joined != ABSENT:
        count = drop_carried(c, count, interactions, q, memory)
    if count > m or (iwork[c.hook] == 0 and c.edges == 0):
        return count
    return _drop_hidden(c, count, memory) if iwork[c.hook] == 0 else _hand_over(c, count, memory)


@tiny
def _found(c, n, memory):
    """Arrays of the first n contacts found."""
    work, iwork = memory.work, memory.iwork
    return Contacts(
        view(iwork, c.new_a, n), view(iwork, c.new_b, n), view(iwork, c.new_feature, n),
        view(work, c.new_normal, 3 * n), view(work, c.new_point, 3 * n), view(work, c.new_gap, n),
    )  # fmt: skip


@kernel
def _drop_hidden(c, n, memory):
    """Drop from the n contacts found those that others make redundant, see `nsds.collision.hidden`; returns their number."""
    mem, imem, ns, address = memory.mem, memory.imem, c.n_shapes, address_of_drop_hidden()
    solids = solids_of((
        view(imem, c.kind, ns), view(mem, c.size, 3 * ns), view(memory.work, c.pose, 7 * ns), view(imem, c.body, ns),
        view(mem, c.vertices, 3 * c.n_vertices), memory.iwork[c.general],
    ))  # fmt: skip
    links = view(memory.iwork, c.links, c.n_links)
    return n if address == 0 else call_drop_hidden(address, (solids, _found(c, n, memory), c.n_bodies, links))


@kernel
def _hand_over(c, n, memory):
    """Pass the n contacts found to the user's function `on_contact`; returns the number without those whose gap is infinite.

    One with NaN or infinite data gets the gap -infinity, so that it is active and the step fails.
    """
    work, iwork = memory.work, memory.iwork
    kept, contact = 0, stack(7)
    for i in range(n):
        a, b, feature, contact[6] = iwork[c.new_a + i], iwork[c.new_b + i], iwork[c.new_feature + i], work[c.new_gap + i]
        for k in range(3):
            contact[k], contact[3 + k] = work[c.new_normal + 3 * i + k], work[c.new_point + 3 * i + k]
        if not ask_user((a, b, feature), c, memory, contact):
            continue
        sound = 0.0
        for k in range(3):
            work[c.new_normal + 3 * kept + k], work[c.new_point + 3 * kept + k] = contact[k], contact[3 + k]
            sound += 0.0 * (contact[k] + contact[3 + k] + contact[6])
        iwork[c.new_a + kept], iwork[c.new_b + kept], iwork[c.new_feature + kept] = a, b, feature
        work[c.new_gap + kept] = contact[6] if sound == 0.0 else -math.inf
        kept += 1
    return kept


@kernel
def ask_user(names, c, memory, contact):
    """Whether the user's function keeps a contact (normal, point, gap) of two shapes, (a, b, feature), whose poses are in the work memory.

    In/out: contact (7,), of which a changed normal is made unit; an unchanged one keeps its bits.
    """
    (a, b, feature), shapes, poses, normal, size = names, stack(3), stack(14), stack(3), 1.0
    # the user's function sees copies, since it may write anything
    shapes[0], shapes[1], shapes[2] = a, b, feature
    for k in range(7):
        poses[k], poses[7 + k] = memory.work[c.pose + 7 * a + k], memory.work[c.pose + 7 * b + k]
    for k in range(3):
        normal[k] = contact[k]
    address = uintp(memory.iwork[c.hook])
    call_address(address, (0.0, view(shapes, 0, 3), view(poses, 0, 14), view(memory.mem, c.z, c.n_z), contact))
    for k in range(3):
        if contact[k] != normal[k]:
            size = norm(contact)
    for k in range(3):
        contact[k] /= size
    return contact[6] != math.inf


@kernel
def inherit(with_last, c, n, memory):
    """Impulses of the n contacts found: those of the same contacts in the record, turned with the frame; 0 of new ones. Out: new_lam.

    with_last: those of the last step, too. Out: new_last; known, which contacts of the record persist.
    """
    mem, imem, work, iwork = memory.mem, memory.imem, memory.work, memory.iwork
    m, frame, old, k = imem[c.n], stack(9), stack(9), 0
    for j in range(m):
        work[c.known + j] = 0.0
    for i in range(n):
        # 1. the same (a, b, feature): both lists are sorted, so that one pass over either is enough
        a, b, feature = iwork[c.new_a + i], iwork[c.new_b + i], iwork[c.new_feature + i]
        while k < m and before(imem[c.a + k], imem[c.b + k], imem[c.feature + k], a, b, feature):
            k += 1
        is_known = k < m and imem[c.a + k] == a and imem[c.b + k] == b and imem[c.feature + k] == feature
        for l in range(c.each):
            work[c.new_lam + c.each * i + l] = mem[c.lam + c.each * k + l] if is_known else 0.0
            if with_last:
                work[c.new_last + c.each * i + l] = work[c.last + c.each * k + l] if is_known else 0.0
        if not is_known:
            continue
        work[c.known + k] = 1.0
        # 2. tangential components by the old frame, into the new one, if the normal has turned
        normal, new_normal = view(mem, c.normal + 3 * k, 3), view(work, c.new_normal + 3 * i, 3)
        if c.each > 1 and norm(normal) > 0.0 and _has_turned(normal, new_normal):
            frame_in(c.planar, normal, old)
            frame_in(c.planar, new_normal, frame)
            for first in range(c.each * i + 1, c.each * i + c.each - 1, 2):
                _turn(old, frame, view(work, c.new_lam + first, 2))
                if with_last:
                    _turn(old, frame, view(work, c.new_last + first, 2))


@tiny
def coefficients_of(c, a, b, imem):
    """Place of the coefficients of shapes a and b in tables over their materials: the first, where all have the same."""
    return 0 if c.material == ABSENT else c.n_materials * imem[c.material + a] + imem[c.material + b]


@tiny
def restitution(c, k, place_in_table, mem):
    """e of component k of a contact: of the normal, of tangents, none of rolling, or where the law has none."""
    e = c.e_n if k == 0 else c.e_t if k < min(c.each, 3) else ABSENT
    return mem[e + place_in_table] if e != ABSENT else 0.0


@tiny
def rebounds(c, mem):
    """Whether velocities before an impact count, for some materials."""
    some = False
    for at in range(c.n_materials**2):
        some = some or restitution(c, 0, at, mem) != 0.0 or restitution(c, 1, at, mem) != 0.0
    return some


@kernel
def note_approach(h, c, q, w, gain, memory):
    """Share of a step h after which contacts of the record close, see `time_to_close`; gain: velocity change by forces. Out: before, last.

    A contact that has rebounded is not persistent any more, see `has_rebounded`.
    """
    frame, lever, u, more = stack(9), stack(6), stack(5), stack(5)
    for i in range(memory.imem[c.n] if rebounds(c, memory.mem) else 0):
        a, b = locate(c, i, q, memory, frame, lever)
        relative_velocity(1, a, b, frame, lever, w, u)
        relative_velocity(1, a, b, frame, lever, gain, more)
        memory.work[c.before + i] = time_to_close(h, memory.mem[c.y + i], u[0], more[0])
        if has_rebounded(u[0], more[0], norm(view(w, 6 * a, 3)) + (norm(view(w, 6 * b, 3)) if b != WORLD else 0.0)):
            memory.work[c.last + c.each * i] = 0.0


@tiny
def has_rebounded(ydot, gain, speed):
    """Whether a contact moves faster than forces change it in a step, by gain, and than residuals, relative to the speed of its bodies.

    u^- of its next impact is this velocity, and not the 0 of a contact that persists.
    """
    return abs(ydot) > abs(gain) + _REBOUND * speed


@tiny
def time_to_close(h, gap, ydot, gain):
    """Share s of a step h after which a gap is closed, ``gap + h s (ydot + gain s / 2) = 0``: 0 if it is closed, at most 1.

    gain: change of ydot by forces in the step.
    """
    if gap <= 0.0:
        return 0.0
    square = ydot * ydot - 2.0 * gain * gap / h
    speed = math.sqrt(square) - ydot if square > 0.0 else 0.0
    return 2.0 * gap / (h * speed) if 2.0 * gap < h * speed else 1.0


@kernel
def inherit_approach(c, n, memory):
    """`before` of the n contacts found, from the same contacts in the record; 0 of new ones. Out: new_before."""
    imem, iwork = memory.imem, memory.iwork
    m = imem[c.n]
    if rebounds(c, memory.mem):
        found = view(iwork, c.new_a, n), view(iwork, c.new_b, n), view(iwork, c.new_feature, n)
        known = view(imem, c.a, m), view(imem, c.b, m), view(imem, c.feature, m)
        match(found, known, 1, view(memory.work, c.before, m), view(memory.work, c.new_before, n))


@kernel
def aim_at_gaps(span, nothing, c, bodies, moved, q, w, memory):
    """Velocities that close gaps after a motion of time span: ``u + y / span >= 0``; sticking bodies keep their place. Out: aim, grip.

    Penetrating bodies are separated by at most a share of their size, or, if nothing is infinite, not at all. Bodies at rest,
    velocities w, with a gap below a share of the displacement by forces, see `choose`, stay where they are. On surfaces that move they
    go with them.
    """
    mem, imem, work = memory.mem, memory.imem, memory.work
    lever = stack(6)
    for i in range(imem[c.n]):
        a, b = reach(c, i, q, memory, lever)
        gap, normal = mem[c.y + i], view(mem, c.normal + 3 * i, 3)
        rest = _slack(c, imem[c.a + i], a, moved, work)[1] + _slack(c, imem[c.b + i], b, moved, work)[1]
        speed = normal_velocity(a, b, normal, lever, w)
        if (0.0 < gap <= rest and span * abs(speed) <= rest) or (gap <= 0.0 and _is_negligible(gap, nothing, bodies, a, b, mem)):
            gap = 0.0
        elif math.isfinite(gap):
            gap = gap_to_close(gap, size_at(bodies, a, b, lever, normal, mem), nothing)
        for k in range(c.each):
            work[c.aim + c.each * i + k] = gap / span if k == 0 else 0.0
        way = (0.0 if a == WORLD else moved[a]) + (0.0 if b == WORLD else moved[b])
        work[c.grip + i] = grip(span, gap, speed, way)
    aim_at_surfaces(c, 0, imem[c.n], q, memory)


@kernel
def aim_at_surfaces(c, first, last, q, memory):
    """Velocities of the surfaces of contacts of the record, from first on, to their aims, from which laws are counted."""
    frame, lever, imem = stack(9), stack(6), memory.imem
    for i in range(first, last if c.surface != ABSENT else first):
        locate(c, i, q, memory, frame, lever)
        add_surfaces(c, imem[c.a + i], imem[c.b + i], frame, lever, q, memory, view(memory.work, c.aim + c.each * i, c.each))


@tiny
def grip(span, gap, speed, way):
    """Share of its friction that a contact keeps which is opened by gap, if that is negative, in a motion of time span.

    The ratio of the impulse that stops the body to the whole: of its own speed and that by forces, displacement way of half the time,
    to these and that of the separation: what separates bodies must not hold them by friction.
    """
    if not gap < 0.0:
        return 1.0
    stopped = max(-speed, 0.0) + way / (WAY * 0.5 * span)
    return stopped / (stopped - gap / span)


@tiny
def gap_to_close(gap, size, nothing):
    """Part of a gap that a motion may close; of a negative one the part that it opens, with the sign of the gap.

    Any overlap up to ``nothing`` times the size is accepted, and half of it is the target otherwise: the residual of solvers then does
    not move bodies at rest. If it is infinite, nothing is opened.
    """
    if not math.isfinite(gap):
        return gap
    if nothing == math.inf:
        return max(gap, 0.0)
    if -nothing * size <= gap <= 0.0:
        return 0.0
    return gap if gap > nothing * size else max(gap + 0.5 * nothing * size, -DEEPEST * size)


@tiny
def _is_negligible(gap, share, bodies, a, b, mem):
    """Whether an overlap is at most a share of the radii of gyration of two bodies, which are less than their sizes; without a root."""
    result = True
    for side in range(2):
        body = a if side == 0 else b
        if body != WORLD and not bodies[body].fixed:
            I = view(mem, bodies[body].q + INERTIA, 9)
            result = result and 3.0 * mem[bodies[body].q + MASS] * gap * gap <= share * share * (I[0] + I[4] + I[8])
    return result


@tiny
def size_at(bodies, a, b, lever, normal, mem):
    """Size of the smaller of two bodies, seen from their contact."""
    return min(_size(bodies, a, view(lever, 0, 3), normal, mem), _size(bodies, b, view(lever, 3, 3), normal, mem))


@tiny
def _size(bodies, body, lever, normal, mem):
    """Size of a body, seen from a contact: its radius of gyration, and its lever about the centre; infinity if it is fixed."""
    if body == WORLD or bodies[body].fixed:
        return math.inf
    I, moment = view(mem, bodies[body].q + INERTIA, 9), stack(3)
    cross(lever, normal, moment)
    return math.sqrt((I[0] + I[4] + I[8]) / (3.0 * mem[bodies[body].q + MASS])) + norm(moment)


@kernel
def aim_at_velocities(c, q, w_old, gain, memory):
    """Velocity before the impact that restitution of contacts of the record refers to. Out: aim (each), grip, which is all of it.

    That of the start, with the change by forces until the gap is closed; 0 for contacts that persist. It has the sign that it has: as
    ``P . (u + e u^-) = 0`` and P is ``W^-1`` of the jump, ``P . u^- <= 0`` over all contacts, so that one e for all takes the energy
    ``-(1 - e) P . u^- / 2``. If e counted for approach alone, a contact that opens, and is struck through others, would be stopped by
    an impulse that does the work ``P u^- / 2 > 0``.
    """
    mem, imem, work = memory.mem, memory.imem, memory.work
    frame, lever, u, more = stack(9), stack(6), stack(5), stack(5)
    # 1. without restitution laws aim at the velocity of surfaces, with full friction
    for i in range(c.each * imem[c.n]):
        work[c.aim + i] = 0.0
    for i in range(imem[c.n]):
        work[c.grip + i] = 1.0
    aim_at_surfaces(c, 0, imem[c.n], q, memory)
    # 2. contacts that rebound
    for i in range(imem[c.n] if rebounds(c, mem) else 0):
        # a persistent contact does not impact
        if mem[c.lam + c.each * i] != 0.0 and work[c.new_last + c.each * i] > 0.0:
            continue
        a, b = locate(c, i, q, memory, frame, lever)
        relative_velocity(c.each, a, b, frame, lever, w_old, u)
        relative_velocity(c.each, a, b, frame, lever, gain, more)
        at = coefficients_of(c, memory.imem[c.a + i], memory.imem[c.b + i], memory.imem)
        for k in range(min(c.each, 3)):
            aim = work[c.aim + c.each * i + k]
            work[c.aim + c.each * i + k] = aim + restitution(c, k, at, mem) * (aim + u[k] + work[c.new_before + i] * more[k])


@kernel
def take_back(c, n, q_old, q, memory, lost, turned):
    """``-H^T r`` of the contacts of the record in the first half of a step, which ends with the n contacts found.

    Of those that carried in the last step, too, with H of the end q, as their forces turn with the bodies; of impacts, and of contacts
    that opened, with H of q_old, so that their impulse is undone. In: known, see `inherit`. In/out: turned, lost (6 each), in inertial
    axes.
    """
    imem, work, iwork = memory.imem, memory.work, memory.iwork
    frame, lever = stack(9), stack(6)
    # 1. impacts and opened contacts: undone at q_old
    for j in range(imem[c.n]):
        is_impact = work[c.known + j] == 0.0 or not work[c.last + c.each * j] > 0.0
        if is_impact and memory.mem[c.lam + c.each * j] != 0.0:
            a, b = locate(c, j, q_old, memory, frame, lever)
            _subtract(c.each, a, b, frame, lever, view(memory.mem, c.lam + c.each * j, c.each), lost)
    # 2. persistent contacts: at the end q
    for i in range(n):
        if work[c.new_last + c.each * i] > 0.0 and work[c.new_lam + c.each * i] != 0.0:
            a, b = imem[c.body + iwork[c.new_a + i]], imem[c.body + iwork[c.new_b + i]]
            normal, point = view(work, c.new_normal + 3 * i, 3), view(work, c.new_point + 3 * i, 3)
            place_contact(c, a, b, work[c.new_gap + i], normal, point, q, frame, lever)
            _subtract(c.each, a, b, frame, lever, view(work, c.new_lam + c.each * i, c.each), turned)


@tiny
def _subtract(each, a, b, frame, lever, r, impulse):
    """``impulse -= H^T r`` of one contact."""
    P, L, moment = stack(3), stack(3), stack(3)
    for k in range(3):
        P[k] = frame[k] * r[0] + (frame[3 + k] * r[1] + frame[6 + k] * r[2] if each > 1 else 0.0)
        L[k] = 0.0
        for j in range(3, each):
            L[k] += frame[3 * axis_of(each, j) + k] * r[j]
    for side in range(2):
        i, sign = (a, -1.0) if side == 0 else (b, 1.0)
        if i != WORLD:
            cross(view(lever, 3 * side, 3), P, moment)
            for k in range(3):
                impulse[6 * i + k] += sign * P[k]
                impulse[6 * i + 3 + k] += sign * (moment[k] + L[k])


@kernel
def guess_whole(c, memory):
    """lambda of the first half as a guess for the whole step: that of the last one, or twice as much. In/out: lambda."""
    mem = memory.mem
    for i in range(memory.imem[c.n]):
        is_known = memory.work[c.new_last + c.each * i] > 0.0 and mem[c.lam + c.each * i] > 0.0
        for k in range(c.each * i, c.each * i + c.each):
            mem[c.lam + k] = memory.work[c.new_last + k] if is_known else 2.0 * mem[c.lam + k]


@kernel
def pass_on(c, n, memory):
    """Impulses of contacts of the record that are not among the n found go to the nearest one of the same shapes. In/out: new_lam.

    Which features of two shapes touch may change by rounding, as where corners lie on corners. In: known, see `inherit`.
    """
    mem, imem, work = memory.mem, memory.imem, memory.work
    m, frame, old, lam = imem[c.n], stack(9), stack(9), stack(5)
    # 1. a contact that has vanished, with impulse
    for j in range(m):
        if work[c.known + j] != 0.0 or mem[c.lam + c.each * j] == 0.0:
            continue
        # 2. heir: the nearest contact of the same two shapes
        heir, least = -1, math.inf
        for i in range(n):
            if memory.iwork[c.new_a + i] == imem[c.a + j] and memory.iwork[c.new_b + i] == imem[c.b + j]:
                far = 0.0
                for k in range(3):
                    far += (work[c.new_point + 3 * i + k] - mem[c.point + 3 * j + k]) ** 2
                heir, least = (i, far) if far < least else (heir, least)
        if heir < 0:
            continue
        # 3. components into the heir's frame, and sum
        frame_in(c.planar, view(mem, c.normal + 3 * j, 3), old)
        frame_in(c.planar, view(work, c.new_normal + 3 * heir, 3), frame)
        for k in range(c.each):
            lam[k] = mem[c.lam + c.each * j + k]
        for first in range(1, c.each - 1, 2):
            _turn(old, frame, view(lam, first, 2))
        # half steps: an heir without impulse of its own continues the history of what it replaces
        if work[c.new_lam + c.each * heir] == 0.0 and rebounds(c, mem):
            work[c.new_before + heir], work[c.new_last + c.each * heir] = work[c.before + j], work[c.last + c.each * j]
        for k in range(c.each):
            work[c.new_lam + c.each * heir + k] += lam[k]


@kernel
def recognise(c, n, memory):
    """Which of the n contacts found are in the record. Out: known."""
    imem, iwork = memory.imem, memory.iwork
    m = imem[c.n]
    numbers = view(memory.work, c.number, m)
    for i in range(m):
        numbers[i] = i + 1.0
    found = view(iwork, c.new_a, n), view(iwork, c.new_b, n), view(iwork, c.new_feature, n)
    match(found, (view(imem, c.a, m), view(imem, c.b, m), view(imem, c.feature, m)), 1, numbers, view(memory.work, c.known, n))


@kernel
def insert(c, i, q_old, q, memory):
    """Insert the i-th contact found, at q, into the record, as it was at q_old; returns its number there. Room is needed.

    Later contacts of the record move back by one, with their data of the step, and their numbers in `known`. The point is halfway
    between the points of both bodies that touch now.
    """
    mem, imem, work, iwork = memory.mem, memory.imem, memory.work, memory.iwork
    n, number, normal = imem[c.n], imem[c.n], view(work, c.new_normal + 3 * i, 3)
    x, z = stack(3), stack(3)
    a, b, feature = iwork[c.new_a + i], iwork[c.new_b + i], iwork[c.new_feature + i]
    # 1. place by (a, b, feature)
    while number > 0 and before(a, b, feature, imem[c.a + number - 1], imem[c.b + number - 1], imem[c.feature + number - 1]):
        number -= 1
    # 2. move later contacts back by one
    for j in range(n - 1, number - 1, -1):
        imem[c.a + j + 1], imem[c.b + j + 1], imem[c.feature + j + 1] = imem[c.a + j], imem[c.b + j], imem[c.feature + j]
        mem[c.y + j + 1], work[c.taking + j + 1] = mem[c.y + j], work[c.taking + j]
        work[c.before + j + 1], work[c.grip + j + 1] = work[c.before + j], work[c.grip + j]
        for k in range(3):
            mem[c.normal + 3 * j + 3 + k], mem[c.point + 3 * j + 3 + k] = mem[c.normal + 3 * j + k], mem[c.point + 3 * j + k]
        for k in range(c.each * j, c.each * j + c.each):
            mem[c.lam + c.each + k], work[c.aim + c.each + k] = mem[c.lam + k], work[c.aim + k]
            work[c.last + c.each + k], work[c.begun + c.each + k] = work[c.last + k], work[c.begun + k]
    # 3. numbers of contacts found, counted from 1
    for j in range(iwork[c.found]):
        work[c.known + j] += 1.0 if work[c.known + j] > number else 0.0
    work[c.known + i] = number + 1.0
    imem[c.a + number], imem[c.b + number], imem[c.feature + number], imem[c.n] = a, b, feature, n + 1
    # 4. geometry at q_old: material points of both bodies, carried back
    gap = work[c.new_gap + i]
    _carry(imem[c.body + a], view(work, c.new_point + 3 * i, 3), q, q_old, x)
    _carry(imem[c.body + b], view(work, c.new_point + 3 * i, 3), q, q_old, z)
    for k in range(3):
        gap += normal[k] * (x[k] - z[k])
        mem[c.normal + 3 * number + k], mem[c.point + 3 * number + k] = normal[k], 0.5 * (x[k] + z[k])
    mem[c.y + number], work[c.before + number] = gap, 0.0
    for k in range(c.each * number, c.each * number + c.each):
        mem[c.lam + k] = work[c.last + k] = work[c.begun + k] = 0.0
    return number


@kernel
def recall(c, number, q_old, q, memory):
    """Contact of the record, with its data at q_old, as one found at q where it is hidden: the reverse of `insert`.

    Room is needed. In/out: found.
    """
    mem, imem, work, iwork = memory.mem, memory.imem, memory.work, memory.iwork
    i, x, z = iwork[c.found], stack(3), stack(3)
    a, b, feature = imem[c.a + number], imem[c.b + number], imem[c.feature + number]
    iwork[c.found] = i + 1
    # 1. place by (a, b, feature), and room there
    while i > 0 and before(a, b, feature, iwork[c.new_a + i - 1], iwork[c.new_b + i - 1], iwork[c.new_feature + i - 1]):
        i -= 1
    for j in range(iwork[c.found] - 1, i, -1):
        iwork[c.new_a + j], iwork[c.new_b + j] = iwork[c.new_a + j - 1], iwork[c.new_b + j - 1]
        iwork[c.new_feature + j], work[c.new_gap + j] = iwork[c.new_feature + j - 1], work[c.new_gap + j - 1]
        work[c.known + j] = work[c.known + j - 1]
        for k in range(3 * j, 3 * j + 3):
            work[c.new_normal + k], work[c.new_point + k] = work[c.new_normal + k - 3], work[c.new_point + k - 3]
    iwork[c.new_a + i], iwork[c.new_b + i], iwork[c.new_feature + i], work[c.known + i] = a, b, feature, number + 1.0
    # 2. geometry at q: material points of both bodies, carried on
    _carry(imem[c.body + a], view(mem, c.point + 3 * number, 3), q_old, q, x)
    _carry(imem[c.body + b], view(mem, c.point + 3 * number, 3), q_old, q, z)
    gap = mem[c.y + number]
    for k in range(3):
        normal = mem[c.normal + 3 * number + k]
        gap += normal * (x[k] - z[k])
        work[c.new_normal + 3 * i + k], work[c.new_point + 3 * i + k] = normal, 0.5 * (x[k] + z[k])
    work[c.new_gap + i] = gap


@tiny
def _carry(body, point, q, q_new, x):
    """Position at q_new of a point that is fixed to a body at q. Out: x."""
    for k in range(3):
        x[k] = point[k] - (q[7 * body + k] if body != WORLD else 0.0)
    if body != WORLD:
        rotate_back(view(q, 7 * body + 3, 4), x, x)
        rotate(view(q_new, 7 * body + 3, 4), x, x)
        for k in range(3):
            x[k] += q_new[7 * body + k]


@tiny
def _has_turned(old, new):
    """Whether two normals differ at all: at a restart they do not, and impulses keep their bits."""
    return old[0] != new[0] or old[1] != new[1] or old[2] != new[2]


@tiny
def _turn(old, new, tangential):
    """Tangential components on the new frame of a vector given on the old one."""
    x, y = tangential[0], tangential[1]
    for j in range(2):
        s = 0.0
        for l in range(3):
            s += new[3 * (1 + j) + l] * (x * old[3 + l] + y * old[6 + l])
        tangential[j] = s


@kernel
def take_over(c, n, memory):
    """The n contacts found become those of the record; the rest of its arrays is cleared."""
    mem, imem, work, iwork = memory.mem, memory.imem, memory.work, memory.iwork
    last = max(n, imem[c.n])
    imem[c.n] = n
    for i in range(last):
        known = i < n
        imem[c.a + i] = iwork[c.new_a + i] if known else 0
        imem[c.b + i] = iwork[c.new_b + i] if known else 0
        imem[c.feature + i] = iwork[c.new_feature + i] if known else 0
        mem[c.y + i] = work[c.new_gap + i] if known else 0.0
        for k in range(3):
            mem[c.normal + 3 * i + k] = work[c.new_normal + 3 * i + k] if known else 0.0
            mem[c.point + 3 * i + k] = work[c.new_point + 3 * i + k] if known else 0.0
        for k in range(c.each):
            mem[c.lam + c.each * i + k] = work[c.new_lam + c.each * i + k] if known else 0.0


@tiny
def locate(c, i, q, memory, frame, lever):
    """(a, b): bodies of contact i of collisions c, -1: the world. Out: frame (9,), lever (6,): contact point minus the bodies' centres."""
    mem, imem = memory.mem, memory.imem
    a, b = imem[c.body + imem[c.a + i]], imem[c.body + imem[c.b + i]]
    place_contact(c, a, b, mem[c.y + i], view(mem, c.normal + 3 * i, 3), view(mem, c.point + 3 * i, 3), q, frame, lever)
    return a, b


@tiny
def place_contact(c, a, b, gap, normal, point, q, frame, lever):
    """frame and lever, see `locate`, of a contact between bodies a and b whose point is on a."""
    frame_in(c.planar, normal, frame)
    _place_levers(a, b, gap, normal, point, q, lever)


@tiny
def _place_levers(a, b, gap, normal, point, q, lever):
    way = 0.0 if b == WORLD else 0.5 * gap
    for k in range(3):
        x = point[k] - way * normal[k]
        lever[k] = x - q[7 * a + k]
        lever[3 + k] = 0.0 if b == WORLD else x - q[7 * b + k]


@tiny
def reach(c, i, q, memory, lever):
    """As `locate`, without the frame, whose first axis is the normal in the record."""
    mem, imem = memory.mem, memory.imem
    a, b = imem[c.body + imem[c.a + i]], imem[c.body + imem[c.b + i]]
    _place_levers(a, b, mem[c.y + i], view(mem, c.normal + 3 * i, 3), view(mem, c.point + 3 * i, 3), q, lever)
    return a, b


@tiny
def reach_found(c, i, a, b, q, work, lever):
    """As `reach`, of the i-th contact found, between bodies a and b."""
    _place_levers(a, b, work[c.new_gap + i], view(work, c.new_normal + 3 * i, 3), view(work, c.new_point + 3 * i, 3), q, lever)


@tiny
def point_velocity(a, b, lever, w, x):
    """Velocity of a against b at their contact, in inertial axes. Out: x (3,)."""
    turned = stack(3)
    cross(view(w, 6 * a + 3, 3), lever, turned)
    for k in range(3):
        x[k] = w[6 * a + k] + turned[k]
    if b != WORLD:
        cross(view(w, 6 * b + 3, 3), view(lever, 3, 3), turned)
        for k in range(3):
            x[k] -= w[6 * b + k] + turned[k]


@tiny
def normal_velocity(a, b, normal, lever, w):
    """Velocity of a against b along the normal of their contact."""
    x = stack(3)
    point_velocity(a, b, lever, w, x)
    return dot(normal, x)


@tiny
def relative_velocity(each, a, b, frame, lever, w, u):
    """Velocity of a against b at the contact in its frame; then angular velocities, see `contact_rows`. Out: u (each,)."""
    x = stack(3)
    point_velocity(a, b, lever, w, x)
    for j in range(min(each, 3)):
        u[j] = frame[3 * j] * x[0] + frame[3 * j + 1] * x[1] + frame[3 * j + 2] * x[2]
    for j in range(3, each):
        s = 0.0
        for k in range(3):
            s += frame[3 * axis_of(each, j) + k] * (w[6 * a + 3 + k] - (0.0 if b == WORLD else w[6 * b + 3 + k]))
        u[j] = s


@kernel
def surfaces_apart(c, shape_a, shape_b, lever, places, memory, x, spin):
    """Velocity of the surfaces of two shapes over their bodies, of a against b, at their contact, in inertial axes. Out: x, spin (3,).

    lever: as from `locate`; places (14,): positions and orientations of both bodies, that of the world unused. Without surfaces 0.
    """
    mem, arm, own, turn = memory.mem, stack(3), stack(3), stack(3)
    for k in range(3):
        x[k] = spin[k] = 0.0
    for side in range(2 if c.surface != ABSENT else 0):
        shape, sign = (shape_a, 1.0) if side == 0 else (shape_b, -1.0)
        is_world, surface, position = memory.imem[c.body + shape] == WORLD, c.surface + 6 * shape, c.local + 7 * shape
        # 1. the contact point seen from the position of the shape, in axes of the body
        for k in range(3):
            arm[k] = lever[k] + places[k] if is_world else lever[3 * side + k]
        if not is_world:
            rotate_back(view(places, 7 * side + 3, 4), arm, arm)
        for k in range(3):
            arm[k], turn[k] = arm[k] - mem[position + k], mem[surface + 3 + k]
        # 2. velocity there, in inertial axes
        cross(turn, arm, own)
        for k in range(3):
            own[k] += mem[surface + k]
        if not is_world:
            rotate(view(places, 7 * side + 3, 4), own, own)
            rotate(view(places, 7 * side + 3, 4), turn, turn)
        for k in range(3):
            x[k], spin[k] = x[k] + sign * own[k], spin[k] + sign * turn[k]


@kernel
def add_surfaces(c, shape_a, shape_b, frame, lever, q, memory, u):
    """Velocity of the surfaces of two shapes over their bodies to that of their contact, u (each,) in its frame; see `surfaces_apart`.

    It has no normal part: surfaces stay where they are.
    """
    places, x, spin = stack(14), stack(3), stack(3)
    # 1. in inertial axes
    for side in range(2):
        body = memory.imem[c.body + (shape_a if side == 0 else shape_b)]
        for k in range(7 if body != WORLD else 0):
            places[7 * side + k] = q[7 * body + k]
    surfaces_apart(c, shape_a, shape_b, lever, places, memory, x, spin)
    # 2. along the tangents, and about axes of rolling or spinning; in the plane along the first and about the last
    for k in range(1, c.each):
        if not (c.planar != 0 and 2 <= k <= 3):
            u[k] += dot(view(frame, 3 * axis_of(c.each, k), 3), x if k < 3 else spin)


@kernel
def choose(c, bodies, ahead, is_half, moved, first, q, w, memory, bodies_of, which):
    """Active contacts of collisions c ([Notes], eq. 11.203, and `is_closed`); returns the number of those so far.

    is_half: those with an impulse, too, see `problem.Options`. moved (n_bodies,): see `way_of_forces`. Slacks are those of both shapes.

    Pairs of fixed bodies have no unknowns. Out, from place ``first`` on: bodies_of (2 each), which: number of the contact.
    """
    mem, imem = memory.mem, memory.imem
    lever, n = stack(6), first
    for i in range(imem[c.n]):
        a, b = imem[c.body + imem[c.a + i]], imem[c.body + imem[c.b + i]]
        if bodies[a].fixed and (b == WORLD or bodies[b].fixed):
            continue
        # forecast of the gap, y + gamma h ydot
        way = 0.0
        if ahead != 0.0:
            reach(c, i, q, memory, lever)
            way = ahead * normal_velocity(a, b, view(mem, c.normal + 3 * i, 3), lever, w)
        # slack by rounding and forces of both shapes: a resting gap opened by rounding has to stay active
        rounding, forces = _slack(c, imem[c.a + i], a, moved, memory.work)
        rounding_b, forces_b = _slack(c, imem[c.b + i], b, moved, memory.work)
        carries = is_half and mem[c.lam + c.each * i] > 0.0
        if carries or is_closed(mem[c.y + i] + way, way, rounding + rounding_b, forces + forces_b):
            bodies_of[2 * n], bodies_of[2 * n + 1], which[n] = a, b, i
            n += 1
    return n


@kernel
def find_struck(c, bodies, ahead, q, w, struck, memory):
    """Number of contacts of two spheres that do not take part, but close in a time ahead if a body that is struck is at rest.

    In/out: struck (n_bodies,), which bodies are; taking, STRUCK of those found.
    """
    mem, imem, work, lever, x = memory.mem, memory.imem, memory.work, stack(6), stack(3)
    n = 0
    for i in range(imem[c.n]):
        shape_a, shape_b = imem[c.a + i], imem[c.b + i]
        a, b, is_round = imem[c.body + shape_a], imem[c.body + shape_b], imem[c.kind + shape_a] == SPHERE == imem[c.kind + shape_b]
        if work[c.taking + i] != 0.0 or not is_round or b == WORLD or struck[a] + struck[b] == 0 or (bodies[a].fixed and bodies[b].fixed):
            continue
        reach(c, i, q, memory, lever)
        normal, speed = view(mem, c.normal + 3 * i, 3), -math.inf
        # the other one goes on
        for side in range(2):
            other, is_struck, sign = (a, struck[b], -1.0) if side == 0 else (b, struck[a], 1.0)
            cross(view(w, 6 * other + 3, 3), view(lever, 3 * side, 3), x)
            if is_struck != 0:
                speed = max(speed, sign * (dot(normal, view(w, 6 * other, 3)) + dot(normal, x)))
        if mem[c.y + i] <= ahead * speed:
            work[c.taking + i], struck[a], struck[b] = STRUCK, 1, 1
            n += 1
    return n


@tiny
def are_some_open(c, first, last, which, memory):
    """Whether some of the contacts chosen are open, so that the forecast alone may have chosen them, and as they were found."""
    result = False
    for at in range(first, last if memory.iwork[c.hook] == 0 else first):
        i = which[at]
        result = result or memory.mem[c.y + i] > memory.work[c.slack + 2 * memory.imem[c.a + i]]
    return result


@tiny
def _slack(c, shape, body, moved, work):
    """Part of a shape in the forecasts up to which its contacts are active: by rounding, by forces."""
    if body == WORLD:
        return 0.0, 0.0
    return work[c.slack + 2 * shape], min(moved[body], work[c.slack + 2 * shape + 1])


@kernel
def state_contact(is_half, c, number, i, p, memory):
    """Contact ``number`` of collisions c for the one-step problem. Out: the i-th of disk, mu, body, frame, lever, b, r of plan p.

    is_half: its law is counted from `aim`, with a share `grip` of its friction.
    """
    work, imem = memory.work, memory.imem
    q, w = view(work, p.q_old, 7 * p.n_bodies), view(work, p.w, 6 * p.n_bodies)
    frame, lever, body = view(work, p.frame + 9 * i, 9), view(work, p.lever + 6 * i, 6), view(memory.iwork, p.body + 2 * i, 2)
    body[0], body[1] = locate(c, number, q, memory, frame, lever)
    if is_half:
        _state_cone(c, coefficients_of(c, imem[c.a + number], imem[c.b + number], imem), i, p, memory)
        for k in range(p.d):
            work[p.b + p.d * i + k] = work[c.aim + c.each * number + k] if k < c.each else 0.0
        for k in range(2):
            work[p.mu + 2 * i + k] *= work[c.grip + number]
    else:
        state_law(c, imem[c.a + number], imem[c.b + number], i, p, frame, lever, q, w, memory)
    for k in range(p.d):
        work[p.r + p.d * i + k] = memory.mem[c.lam + c.each * number + k] if k < c.each else 0.0


@tiny
def state_moments(each, i, bodies, p, memory):
    """Moments of the i-th contact, if blocks have some, in units of forces: those of its law over `length_of_turns`, rates times it.

    The axes, of that length, are tangents, or the normal and none. So all of u is in m/s, and all of r in N s, whatever the size of the
    bodies. In/out: b, r, mu of plan p; out: axes.
    """
    work = memory.work
    if p.d < 5:
        return
    a, b = memory.iwork[p.body + 2 * i], memory.iwork[p.body + 2 * i + 1]
    length = length_of_turns(_place_if_moved(a, bodies), _place_if_moved(b, bodies), memory.mem)
    work[p.mu + 2 * i + 1] /= length
    for j in range(3, 5):
        work[p.b + 5 * i + j] *= length
        work[p.r + 5 * i + j] /= length
        for k in range(3):
            axis = work[p.frame + 9 * i + 3 * axis_of(4 if each == 4 else 5, j) + k]
            work[p.axes + 6 * i + 3 * (j - 3) + k] = length * axis if each != 4 or j == 3 else 0.0


@tiny
def _place_if_moved(body, bodies):
    """Place of a body in the record; ABSENT for the world, and for one that nothing moves."""
    return ABSENT if body == WORLD or bodies[body].fixed else bodies[body].q


@tiny
def length_of_moments(i, p, work):
    """Length by which the moments of the i-th contact have been divided, see `state_moments`."""
    return norm(view(work, p.axes + 6 * i, 3)) if p.d == 5 else 1.0


@kernel
def state_law(c, shape_a, shape_b, i, p, frame, lever, q, w, memory):
    """The law of a contact of two shapes whose bodies had velocities w. Out: the i-th of disk, mu, b of plan p."""
    mem, imem, u, b = memory.mem, memory.imem, stack(5), view(memory.work, p.b + p.d * i, p.d)
    at = coefficients_of(c, shape_a, shape_b, imem)
    _state_cone(c, at, i, p, memory)
    if rebounds(c, mem):
        relative_velocity(c.each, imem[c.body + shape_a], imem[c.body + shape_b], frame, lever, w, u)
    for k in range(p.d):
        b[k] = 0.0
    if c.surface != ABSENT:
        add_surfaces(c, shape_a, shape_b, frame, lever, q, memory, b)
    for k in range(p.d):
        e = restitution(c, k, at, mem)
        b[k] += e * (u[k] + b[k]) if e != 0.0 else 0.0  # u has what the contact has


@tiny
def _state_cone(c, at, i, p, memory):
    """Cone of a contact; at: `coefficients_of`. Out: the i-th of disk and mu of plan p."""
    memory.iwork[p.disk + i] = 0 if c.each == 1 else 2
    memory.work[p.mu + 2 * i] = 0.0 if c.each == 1 else memory.mem[c.mu + at]
    memory.work[p.mu + 2 * i + 1] = memory.mem[c.mu_r + at] if c.each > 3 else 0.0


@kernel
def rows_of_contact(each, is_equation, i, p, memory, H, diagonal):
    """H (d, 12) of the i-th contact; diagonal: 1 for padding, -1 for equations, 0 otherwise: for a problem with a matrix."""
    d, frame, lever = p.d, view(memory.work, p.frame + 9 * i, 9), view(memory.work, p.lever + 6 * i, 6)
    contact_rows(each, frame, lever, view(lever, 3, 3), memory.iwork[p.body + 2 * i + 1] != WORLD, H)
    length = length_of_moments(i, p, memory.work)
    for k in range(36, 12 * each):
        H[k] *= length
    for k in range(d):
        diagonal[k] = 1.0 if k >= each else -1.0 if is_equation else 0.0
    for k in range(12 * each, 12 * d):
        H[k] = 0.0
