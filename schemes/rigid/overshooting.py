"""Contacts missed by the first half of RATTLE, or changed in kind after bodies have turned by a radian in the step.

If the motion of a step ends with bodies in deeper penetration than intended, by more than any separation in a step, the contacts found
there are added to the first half, which is solved again: with their normals and levers at the end, at the bodies' places at the start, and
with the gap that the motion has closed, ``y_{k+1} - h H v``. So ``y_k + h H v >= 0`` is Newton's method for the gap at the end.
"""

from nsds._jit import kernel, stack, tiny, view
from nsds.collision import WORLD
from nsds.schemes.rigid import collisions as contacts
from nsds.schemes.rigid.projection import enter

ROUNDS = 5  # first halves in a step, at most
_JOINS = 0.1  # of the depth at which a first half is solved again: deeper contacts are added


@kernel
def is_any(span, s, q, memory):
    """Whether contacts found at q, the end of a step of length span, are that deep."""
    result = False
    for k in range(s.collisions.size):
        c = s.collisions[k]
        limit = -contacts.DEEPEST * memory.work[c.thickness + c.n_shapes]
        for i in range(memory.iwork[c.found]):
            if memory.work[c.new_gap + i] < limit:  # of the thinnest shape: ordinary contacts pay for this alone
                result = result or _is_deep(1.0, span, c, i, s, q, memory)[0]
    return result


@kernel
def join(span, n_contacts, s, q, w, memory):
    """Add contacts found at q that are too deep. Returns the number of active ones, or -1 without room for them in the record.

    w: velocities of the motion, in inertial axes. In/out: contacts of the record, with their linearised gaps; pair and which.
    """
    iwork = memory.iwork
    p = s.plan[0]
    for k in range(s.collisions.size):
        c = s.collisions[k]
        # 1. contacts that the record knows
        contacts.recognise(c, iwork[c.found], memory)
        for i in range(iwork[c.found]):
            # 2. too deep: insert it, which shifts the numbers of later contacts
            is_deep, wanted = _is_deep(_JOINS, span, c, i, s, q, memory)
            if not is_deep:
                continue
            number = int(memory.work[c.known + i]) - 1
            if number < 0:
                if memory.imem[c.n] == c.capacity:
                    return -1
                number = enter(k, i, n_contacts, s, q, memory)
            # 3. data of the end, and into the list of active ones
            a, b = _put(span, wanted, c, i, number, s, q, w, memory)
            is_listed = False
            for j in range(n_contacts):
                is_listed = is_listed or (iwork[p.which + p.n_contacts + j] == k and iwork[p.which + j] == number)
            if not is_listed:
                iwork[p.pair + 2 * n_contacts], iwork[p.pair + 2 * n_contacts + 1] = a, b
                iwork[p.which + n_contacts], iwork[p.which + p.n_contacts + n_contacts] = number, k
                n_contacts += 1
    return n_contacts


@tiny
def _is_deep(share, span, c, i, s, q, memory):
    """(whether a contact found is too deep, the gap that the first half intends there), which few contacts ask for."""
    if not _is_too_deep(share, 0.0, c, i, s, q, memory):
        return False, 0.0
    wanted = _wanted(span, c, i, memory)
    return _is_too_deep(share, wanted, c, i, s, q, memory), wanted


@kernel
def _is_too_deep(share, wanted, c, i, s, q, memory):
    """Whether a contact found is deeper than intended by more than a share of the largest separation, and joints hold neither body."""
    work, iwork = memory.work, memory.iwork
    a, b, normal = memory.imem[c.body + iwork[c.new_a + i]], memory.imem[c.body + iwork[c.new_b + i]], view(work, c.new_normal + 3 * i, 3)
    held, lever = s.plan[0].held, stack(6)
    if iwork[held + a] != 0 or (b != WORLD and iwork[held + b] != 0) or (s.bodies[a].fixed and (b == WORLD or s.bodies[b].fixed)):
        return False
    contacts.reach_found(c, i, a, b, q, work, lever)
    return work[c.new_gap + i] < wanted - share * contacts.DEEPEST * contacts.size_at(s.bodies, a, b, lever, normal, memory.mem)


@kernel
def _wanted(span, c, i, memory):
    """Gap that the first half intends at the end where it found a contact: 0, or the rest of an overlap of the same shapes."""
    imem = memory.imem
    target = 0.0
    for j in range(imem[c.n]):
        if imem[c.a + j] == memory.iwork[c.new_a + i] and imem[c.b + j] == memory.iwork[c.new_b + i]:
            target = min(target, memory.mem[c.y + j] - span * memory.work[c.aim + c.each * j])
    return target


@tiny
def _put(span, wanted, c, i, number, s, q, w, memory):
    """Replace contact ``number`` of the record by the i-th one found, with levers of the end and bodies of the start. Out: aim, grip.

    Returns its bodies. If both bodies move, and their contact points differ at the start, the point halfway between is used.
    """
    mem, work = memory.mem, memory.work
    a, b, lever = memory.imem[c.body + memory.iwork[c.new_a + i]], memory.imem[c.body + memory.iwork[c.new_b + i]], stack(6)
    normal, gap, q_old = view(work, c.new_normal + 3 * i, 3), work[c.new_gap + i], s.plan[0].q_old
    # 1. levers of the end, moved to the start
    contacts.reach_found(c, i, a, b, q, work, lever)
    for k in range(3):
        x, n_sides = 0.0, 0
        for side in range(2):
            body = a if side == 0 else b
            if body != WORLD and not s.bodies[body].fixed:
                x, n_sides = x + lever[3 * side + k] + work[q_old + 7 * body + k], n_sides + 1
        x /= n_sides
        lever[k] = x - work[q_old + 7 * a + k]
        lever[3 + k] = x - work[q_old + 7 * b + k] if b != WORLD else 0.0
        mem[c.normal + 3 * number + k], mem[c.point + 3 * number + k] = normal[k], x
    # 2. linearised gap at the start, so that the forecast at v gives the gap found
    gap -= span * contacts.normal_velocity(a, b, normal, lever, w)
    mem[c.y + number] = gap
    for k in range(3 if b != WORLD else 0):
        mem[c.point + 3 * number + k] += 0.5 * gap * normal[k]
    # 3. law of the first half
    for k in range(c.each):
        work[c.aim + c.each * number + k] = (gap - wanted) / span if k == 0 else 0.0
    contacts.aim_at_surfaces(c, number, number + 1, view(work, q_old, 7 * s.plan[0].n_bodies), memory)
    work[c.grip + number] = 1.0
    return a, b
