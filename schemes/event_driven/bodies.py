"""Rigid bodies under the event-driven scheme: what of their motion and their constraints is not as that of Lagrangian systems.

The state of a body is (x, p, v, Omega), 13 numbers, Omega in axes of the body: there its masses are constant. p counts by its direction
alone, so that what stages leave of its length does no harm. H of all rows acts on (v, Omega), too.
"""

import math

from numba import typeof, types

from nsds._jit import caller, kernel, on_demand, stack, tiny, view
from nsds.collision import place
from nsds.collision.frames import FIELDS, MOST
from nsds.collision.narrow import contacts_of_pair, other_pairs
from nsds.maths import rotations
from nsds.maths.vectors import norm, times_transposed
from nsds.model.layout import ABSENT
from nsds.schemes.event_driven.tables import FREE, Rigid, no_bodies
from nsds.schemes.lagrangian.newton import ACTIVE, EVERY
from nsds.schemes.rigid.bodies import EXPONENTIAL, force, move
from nsds.schemes.rigid.collisions import take_over
from nsds.schemes.rigid.forces import force_of
from nsds.schemes.rigid.interactions import contact_rows, evaluate, frame_in
from nsds.schemes.rigid.moreau_jean import radius_of_gyration
from nsds.schemes.rigid.tables import FORCE, V

STATE = 13  # numbers of a body
_ROOM = MOST * FIELDS
_NEAR = 1e-11  # of the lengths that cancel in a gap: what touches
_WAY = 2.0**-9  # of a turn, or of the radius of gyration: between the points of a difference along the motion


@kernel
def copy_state(s, from_mem, mem, work, x):
    """States of all bodies from mem into work[x:], or back, p made unit then."""
    for i in range(s.rigid.bodies.size):
        q, at = s.rigid.bodies[i].q, x + STATE * i
        for k in range(STATE):
            if from_mem:
                work[at + k] = mem[q + k]
            else:
                mem[q + k] = work[at + k]
        if not from_mem:
            rotations.normalise(view(mem, q + 3, 4))


@kernel
def rates(s, mem, work, out):
    """x' of all bodies at the state in mem, with the accelerations in p.acc, into work[out:]."""
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
def displace(s, mem, work, shift):
    """Move all bodies by work[shift:], rotation vectors in axes of the bodies."""
    kept = stack(7)
    for i in range(s.rigid.bodies.size):
        q, d = s.rigid.bodies[i].q, view(work, shift + 6 * i, 6)
        for k in range(7):
            kept[k] = mem[q + k]
        move(EXPONENTIAL, kept, 1.0, 1.0, d, d, view(mem, q, 7))


@kernel
def _evaluate_wrenches(t, f, rigid, functions, mem, imem, work):
    """Forces on all bodies at the state in mem, those between bodies too, into work[f:]; none on those that are fixed."""
    size = stack(2)
    for i in range(rigid.bodies.size):
        body, out = rigid.bodies[i], view(work, f + 6 * i, 6)
        if body.fixed:
            for k in range(6):
                out[k] = 0.0
        else:
            force(t, body, view(mem, body.q, 7), view(mem, body.q + V, 6), functions, mem, out, size)
    for k in range(rigid.interactions.size):
        if rigid.interactions[k].law == FORCE and rigid.rows[k].collision == ABSENT:
            _add_force_between(t, k, f, rigid, functions, mem, imem, work)


@kernel
def _add_force_between(t, k, f, rigid, functions, mem, imem, work):
    """The force of a spring, damper or function into lambda of its rows, and ``H^T lambda`` to the forces in work[f:]."""
    r = rigid.interactions[k]
    _place(r.a, 0.0, rigid, mem, work)
    if r.b != ABSENT:
        _place(r.b, 0.0, rigid, mem, work)
    _evaluate(t, k, rigid, functions, mem, imem, work)
    _turn_rows(r, rigid.plan[0], work)
    ydot, lam = view(work, r.spare, r.m), view(mem, r.lam, r.m)
    for i in range(r.m):
        ydot[i] = _speed(r, i, rigid.bodies, mem, work)
    force_of(t, r, view(work, r.h, r.m), ydot, functions, mem, lam)
    for side in range(2 if r.b != ABSENT else 1):
        body = r.a if side == 0 else r.b
        for i in range(r.m if not rigid.bodies[body].fixed else 0):
            for l in range(6):
                work[f + 6 * body + l] += work[r.H + 12 * i + 6 * side + l] * lam[i]


@kernel
def _evaluate_interactions(t, which, mode, rigid, functions, mem, imem, work, iwork):
    """h, rate and H of the chosen interactions at the state in mem; which: EVERY, ACTIVE, or else those that hold nothing."""
    for i in range(rigid.bodies.size):
        _place(i, 0.0, rigid, mem, work)
    for k in range(rigid.interactions.size):
        if which == EVERY or _acts(k, mode, rigid, iwork) == (which == ACTIVE):
            _evaluate(t, k, rigid, functions, mem, imem, work)
            _turn_rows(rigid.interactions[k], rigid.plan[0], work)


@tiny
def _acts(k, mode, rigid, iwork):
    """Whether an interaction has a row that is not FREE."""
    first, any_row = rigid.rows[k], False
    for i in range(rigid.interactions[k].m):
        any_row |= iwork[mode + iwork[first.number + i]] != FREE
    return any_row


@tiny
def _place(i, way, rigid, mem, work):
    """Body i where constant velocities take it in a time, for `evaluate`."""
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
def _evaluate(t, k, rigid, functions, mem, imem, work):
    """h, rate and H of an interaction, or of a contact of two shapes, where bodies have been placed."""
    plan = rigid.plan[0]
    q, R = view(work, plan.q, 7 * rigid.bodies.size), view(work, plan.R, 9 * rigid.bodies.size)
    if rigid.rows[k].collision == ABSENT:
        evaluate(t, rigid.interactions[k], q, R, functions, mem, imem, work)
    else:
        _evaluate_pair(rigid.interactions[k], rigid.rows[k], rigid.collisions[rigid.rows[k].collision], q, mem, imem, work)


@kernel
def _evaluate_pair(r, row, c, q, mem, imem, work):
    """h and H of a contact of two shapes, however far they are from each other; its normal and its point, as `detect` gives them."""
    n, found, frame, lever_a, lever_b = c.n_shapes, stack(_ROOM), stack(9), stack(3), stack(3)
    kind, pose, a, b, at = view(imem, c.kind, n), view(work, c.pose, 7 * n), row.shape_a, row.shape_b, 0
    for side in range(2):
        shape = a if side == 0 else b
        place(view(imem, c.body + shape, 1), view(mem, c.local + 7 * shape, 7), q, view(work, c.pose + 7 * shape, 7))
    others = other_pairs(kind), view(mem, c.vertices, 3 * c.n_vertices), 0
    count = contacts_of_pair(kind, view(mem, c.size, 3 * n), pose, a, b, math.inf, others, found)
    while at < count - 1 and found[FIELDS * at] != row.feature:
        at += 1
    normal, gap = view(found, FIELDS * at + 2, 3), found[FIELDS * at + 1]
    frame_in(c.planar, normal, frame)
    for k in range(3):
        work[row.normal + k], work[row.point + k] = normal[k], found[FIELDS * at + 5 + k]
        x = found[FIELDS * at + 5 + k] - (0.5 * gap * normal[k] if r.b != ABSENT else 0.0)
        lever_a[k], lever_b[k] = x - q[7 * r.a + k], x - q[7 * r.b + k] if r.b != ABSENT else 0.0
    contact_rows(r.m, frame, lever_a, lever_b, r.b != ABSENT, view(work, r.H, 12 * r.m))
    for i in range(r.m):
        work[r.h + i], work[r.rate + i] = 0.0, 0.0
    work[r.h] = gap


@kernel
def list_contacts(s, mem, imem, work, iwork):
    """The contacts of shapes that touch, or are nearer than the margin, into the record; what the engine has kept in its places goes."""
    rigid, f = s.rigid, s.flow[0]
    for k in range(rigid.rows.size):
        if rigid.rows[k].collision != ABSENT:
            number = iwork[rigid.rows[k].number]
            touches = iwork[f.mode + number] != FREE or work[rigid.interactions[k].h] <= _NEAR * work[f.length + number]
            iwork[f.listed + number] = 1 if touches else 0
    write_contacts(f.listed, rigid, mem, imem, work, iwork)


@kernel
def write_contacts(listed, rigid, mem, imem, work, iwork):
    """Contacts of shapes into the record: those with a flag in iwork[listed:] or an impulse, and those nearer than the margin."""
    for i in range(rigid.collisions.size):
        c, n, last = rigid.collisions[i], 0, 0
        for k in range(rigid.rows.size):
            row, r = rigid.rows[k], rigid.interactions[k]
            if row.collision == i:
                last = row.slot + 1
                if iwork[listed + iwork[row.number]] != 0 or mem[r.lam] != 0.0 or work[r.h] <= mem[c.margin]:
                    iwork[c.new_a + n], iwork[c.new_b + n], iwork[c.new_feature + n] = row.shape_a, row.shape_b, row.feature
                    work[c.new_gap + n] = work[r.h]
                    for j in range(3):
                        work[c.new_normal + 3 * n + j], work[c.new_point + 3 * n + j] = work[row.normal + j], work[row.point + j]
                    for j in range(c.each):
                        work[c.new_lam + c.each * n + j] = mem[r.lam + j]
                    n += 1
        imem[c.n] = last
        take_over(c, n, mem, imem, work, iwork)


@kernel
def _bend_rows(t, moment, which, mode, rigid, functions, mem, imem, work, iwork):
    """``d/dt (H v + rate)`` at constant v of the chosen interactions: differences of fourth order along the motion.

    Of h itself where its derivatives are differences. moment: between the points, where something depends on time. H is left moved.
    """
    for k in range(rigid.interactions.size):
        r = rigid.interactions[k]
        if which == ACTIVE and not _acts(k, mode, rigid, iwork):
            continue
        out, way = rigid.rows[k].curvature, _way(moment, k, rigid, mem)
        by_output = r.h_function != ABSENT and r.jac_function == ABSENT
        for i in range(r.m):
            work[out + i] = 0.0
        for j in range(-2, 3 if way < math.inf else -2):
            weight = _weight(j, by_output, way)
            if weight == 0.0:
                continue
            _place(r.a, j * way, rigid, mem, work)
            if r.b != ABSENT:
                _place(r.b, j * way, rigid, mem, work)
            _evaluate(t + j * way, k, rigid, functions, mem, imem, work)
            _turn_rows(r, rigid.plan[0], work)
            for i in range(r.m):
                work[out + i] += weight * (work[r.h + i] if by_output else _speed(r, i, rigid.bodies, mem, work))


@tiny
def _weight(j, by_output, way):
    """Of the j-th point: for the first derivative, or for the second."""
    if by_output:
        return (-30.0 if j == 0 else 16.0 if abs(j) == 1 else -1.0) / (12.0 * way * way)
    return (0.0 if j == 0 else math.copysign(8.0 if abs(j) == 1 else 1.0, j if abs(j) == 1 else -j)) / (12.0 * way)


@tiny
def _speed(r, i, bodies, mem, work):
    """``H v + rate`` of row i, H as it was evaluated last."""
    u = work[r.rate + i]
    for l in range(6):
        u += work[r.H + 12 * i + l] * mem[bodies[r.a].q + V + l]
        if r.b != ABSENT:
            u += work[r.H + 12 * i + 6 + l] * mem[bodies[r.b].q + V + l]
    return u


@tiny
def _way(moment, k, rigid, mem):
    """Time in which the bodies turn, or move along what is not straight, by a small part; infinite where they are at rest."""
    r, bodies, fastest = rigid.interactions[k], rigid.bodies, 0.0
    bends = r.gap_function != ABSENT or r.h_function != ABSENT or rigid.rows[k].collision != ABSENT
    for side in range(2 if r.b != ABSENT else 1):
        body = bodies[r.a if side == 0 else r.b]
        fastest = max(fastest, norm(view(mem, body.q + V + 3, 3)))
        if bends and not body.fixed:
            fastest = max(fastest, norm(view(mem, body.q + V, 3)) / radius_of_gyration(body, mem))
    way = _WAY / fastest if fastest > 0.0 else math.inf
    return min(way, moment) if r.h_t_function != ABSENT or r.velocity_function != ABSENT else way


# What interactions and forces say takes long to compile, and Lagrangian systems do without: it is called by address.
_FORCES, _OPERATORS, _CURVATURES = range(3)


@kernel
def _operate(bodies, interactions, rows, collisions, plan, what, which, t, moment, at, functions, mem, imem, work, iwork):
    """One of the three; at: where forces go, or modes are."""
    rigid = Rigid(bodies, interactions, rows, collisions, plan)
    if what == _FORCES:
        _evaluate_wrenches(t, at, rigid, functions, mem, imem, work)
    elif what == _CURVATURES:
        _bend_rows(t, moment, which, at, rigid, functions, mem, imem, work, iwork)
    else:
        _evaluate_interactions(t, which, at, rigid, functions, mem, imem, work, iwork)
    return 0


_DOOR = types.int64(
    *(typeof(rows) for rows in no_bodies()), types.int64, types.int64, types.float64, types.float64, types.int64, types.uintp[::1],
    types.float64[::1], types.int64[::1], types.float64[::1], types.int64[::1],
)  # fmt: skip
_call_door = caller(_DOOR)
_address_of_door = on_demand(_DOOR, _operate)


@tiny
def evaluate_wrenches(t, f, rigid, functions, mem, imem, work, iwork):
    """Forces on all bodies at the state in mem, into work[f:]."""
    r = rigid
    _call_door(_address_of_door(), (r.bodies, r.interactions, r.rows, r.collisions, r.plan, _FORCES, EVERY, t, 0.0, f, functions, mem, imem,
                                    work, iwork))  # fmt: skip


@tiny
def evaluate_interactions(t, which, mode, rigid, functions, mem, imem, work, iwork):
    """h, rate and H of the chosen interactions at the state in mem; which: EVERY, ACTIVE, or else those whose modes hold nothing."""
    r = rigid
    _call_door(_address_of_door(), (r.bodies, r.interactions, r.rows, r.collisions, r.plan, _OPERATORS, which, t, 0.0, mode, functions,
                                    mem, imem, work, iwork))  # fmt: skip


@tiny
def bend_rows(t, moment, which, mode, rigid, functions, mem, imem, work, iwork):
    """Curvatures of the chosen interactions; moment: between points of differences where something depends on time. H is left moved."""
    r = rigid
    _call_door(_address_of_door(), (r.bodies, r.interactions, r.rows, r.collisions, r.plan, _CURVATURES, which, t, moment, mode, functions,
                                    mem, imem, work, iwork))  # fmt: skip
