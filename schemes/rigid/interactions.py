"""Kinematics of interactions of rigid bodies: h, H on velocities in inertial axes, and the rate of h at rest."""

import math

import numpy as np

from nsds._jit import kernel, stack, tiny, view
from nsds.collision.frames import frame_of
from nsds.maths import rotations
from nsds.maths.vectors import cross, dot, dot_6, norm, times
from nsds.model.functions import call_function
from nsds.model.joints import ANGLE, COUPLER, GEAR
from nsds.model.layout import ABSENT
from nsds.model.records import memory, model_of
from nsds.model.system_kinds import collisions_of
from nsds.schemes.derivatives import differences
from nsds.schemes.lagrangian.functions import prescribe
from nsds.schemes.problem.blame import blaming
from nsds.schemes.rigid.joint_rows import joint_row, seen_from
from nsds.schemes.rigid.tables import EQUALITY, V
from nsds.status import advice

_DEPENDENT, _CONTRADICTS = 1e-6, 1e-3  # relative singular values that vanish; and the part of the rates without a solution
_OVERLAP = 1e-6  # of the distance of two bodies: deeper than rounding and the input of a contact allow


@tiny
def axis_of(each, i):
    """Axis of the frame along which, or about which, component i of a contact is: normal, tangents, then these again, or the normal."""
    return i if i < 3 else i - 2 if each == 5 else 0


@tiny
def contact_rows(each, frame, lever_a, lever_b, has_b, H):
    """H (each, 12) of one contact on (v_a, omega_a, v_b, omega_b) in inertial axes ([Notes], 12.0.4).

    Normal and tangents of the velocity of a against b at the contact point; then relative angular velocities, of five rows about the
    tangents, of four about the normal.
    """
    moment = stack(3)
    for i in range(each):
        for k in range(12):
            H[12 * i + k] = 0.0
        axis = view(frame, 3 * axis_of(each, i), 3)
        first = 0 if i < 3 else 3
        for k in range(3):
            H[12 * i + first + k] = axis[k]
            if has_b:
                H[12 * i + 6 + first + k] = -axis[k]
        # lever arm of the contact force; rows of rolling and spinning are moments already
        if i < 3:
            cross(lever_a, axis, moment)
            for k in range(3):
                H[12 * i + 3 + k] = moment[k]
            cross(lever_b, axis, moment)
            for k in range(3):
                if has_b:
                    H[12 * i + 9 + k] = -moment[k]


@tiny
def row_velocity(start, it, i, w, work):
    """``start + H w`` of row i of an interaction, with H as it lies in the work memory and velocities w of all bodies."""
    s = start + dot_6(view(work, it.H + 12 * i, 6), view(w, 6 * it.a, 6))
    return s if it.b == ABSENT else s + dot_6(view(work, it.H + 12 * i + 6, 6), view(w, 6 * it.b, 6))


@tiny
def row_length(row, x):
    """``|H_v| |x| + |H_omega|`` of the part of a row for one body at x, whose rounding is that of its value; rows of angles have no H_v."""
    push = dot(view(row, 0, 3), view(row, 0, 3))
    return norm(view(row, 3, 3)) + (math.sqrt(push) * norm(x) if push > 0.0 else 0.0)


@tiny
def keep_angles(interactions, memory):
    """Angles of rows of joints at the start of a step, from which `foresee_angles` goes on. Out: angle_old."""
    for k in range(interactions.size):
        r = interactions[k]
        for i in range(2 * r.m if r.angle != ABSENT else 0):
            memory.work[r.angle_old + i] = memory.mem[r.angle + i]


@tiny
def restore_angles(interactions, memory):
    """Angles of rows of joints as at the start of the step, where the next configuration is that one again."""
    for k in range(interactions.size):
        r = interactions[k]
        for i in range(2 * r.m if r.angle != ABSENT else 0):
            memory.mem[r.angle + i] = memory.work[r.angle_old + i]


@kernel
def foresee_angles(h, weight, v, v_old, R, interactions, memory):
    """Predicted angles of rows of joints after a motion for h by ``weight v + (1 - weight) v_old``, from angle_old on.

    `evaluate` then chooses the turn nearest to that, so that bodies may turn by more than half a turn in a step. v, v_old (6 each), in axes
    of the bodies, and R (9 each): of all bodies, at the start.
    """
    mem, work = memory.mem, memory.work
    n, spin, spin_b, Omega = stack(3), stack(3), stack(3), stack(3)
    for k in range(interactions.size):
        r = interactions[k]
        for i in range(r.m if r.angle != ABSENT else 0):
            kind, angle, old = memory.imem[r.row + i], r.angle + 2 * i, r.angle_old + 2 * i
            # only these rows count full turns
            if kind != ANGLE and kind != COUPLER and kind != GEAR:
                continue
            # 1. rotation of A and of B in the step, inertial axes
            for l in range(3):
                Omega[l] = h * (weight * v[6 * r.a + 3 + l] + (1.0 - weight) * v_old[6 * r.a + 3 + l])
            times(view(R, 9 * r.a, 9), Omega, spin)
            for l in range(3):
                n[l], spin_b[l] = mem[r.row_w + 3 * i + l], 0.0
            if r.b != ABSENT:
                for l in range(3):
                    Omega[l] = h * (weight * v[6 * r.b + 3 + l] + (1.0 - weight) * v_old[6 * r.b + 3 + l])
                times(view(R, 9 * r.b, 9), Omega, spin_b)
            # 2. angles: a coupler has one on each body, a gear its relative angle and the direction of the centre
            if kind == COUPLER:
                axis = view(mem, r.row_a + 3 * i, 3)
                mem[angle] = work[old] + dot(axis, spin) / norm(axis)
                mem[angle + 1] = work[old + 1] + dot(n, spin if r.b == ABSENT else spin_b)
            else:
                if r.b != ABSENT:
                    times(view(R, 9 * r.b, 9), n, n)
                mem[angle] = work[old] + dot(n, spin) - dot(n, spin_b)
                mem[angle + 1] = work[old + 1] - (dot(n, spin_b) if kind == GEAR else 0.0)


@kernel
def evaluate(t, interaction, q, R, functions, memory):
    """h, rate and H of an interaction at (t, q). q (7 each), R (9 each): of all bodies; angular columns of H in inertial axes, by R."""
    mem, work = memory.mem, memory.work
    r = interaction
    has_b, qa = r.b != ABSENT, view(q, 7 * r.a, 7)
    qb = view(q, 7 * r.b, 7) if has_b else qa
    # 1. contacts have frames and levers of their own
    if r.gap_function != ABSENT:
        _evaluate_contact(t, r, qa, qb, has_b, functions, memory)
        return
    # 2. joints: the relative pose is shared by all rows
    if r.row != ABSENT:
        seen = stack(12)
        seen_from(qa, qb, has_b, seen)
        for i in range(r.m):
            a, u, b, w = (r.row_a + 3 * i, r.row_u + 3 * i, r.row_b + 3 * i, r.row_w + 3 * i)
            angle = view(work, r.spare, 2) if r.angle == ABSENT else view(mem, r.angle + 2 * i, 2)
            work[r.h + i] = joint_row(
                memory.imem[r.row + i], view(mem, a, 3), view(mem, u, 3), view(mem, b, 3), view(mem, w, 3), mem[r.row_offset + i],
                qa, qb, has_b, seen, angle, view(work, r.H + 12 * i, 12),
            )  # fmt: skip
            work[r.rate + i] = 0.0
    # 3. prescribed velocities, or a user's relation
    elif r.dofs != ABSENT:
        _evaluate_prescribed(t, r, functions, memory)
    else:
        _evaluate_relation(t, r, qa, qb, has_b, functions, memory)
    # 4. angular columns into inertial axes, by R of q_k
    for i in range(r.m):
        row = view(work, r.H + 12 * i, 12)
        times(view(R, 9 * r.a, 9), view(row, 3, 3), view(row, 3, 3))
        if has_b:
            times(view(R, 9 * r.b, 9), view(row, 9, 3), view(row, 9, 3))


@tiny
def _evaluate_prescribed(t, r, functions, memory):
    """Rows that pick velocities; rate: minus the velocity that is wanted."""
    mem, work = memory.mem, memory.work
    prescribe(t, r, functions, memory)
    for i in range(r.m):
        work[r.rate + i], work[r.h + i] = work[r.rate + i] if r.velocity_function != ABSENT else -mem[r.z + i], 0.0
        for k in range(12):
            work[r.H + 12 * i + k] = 1.0 if k == memory.imem[r.dofs + i] else 0.0


@kernel
def _evaluate_contact(t, r, qa, qb, has_b, functions, memory):
    """A contact whose gap, point and normal are the user's."""
    work = memory.work
    x, out, frame, lever_a, lever_b = view(work, r.x, 14), stack(7), stack(9), stack(3), stack(3)
    for i in range(7):
        x[i], x[7 + i] = qa[i], qb[i]
    z, nothing = view(memory.mem, r.z, r.n_z), view(memory.mem, 0, 0)
    call_function(functions, r.gap_function, (t, view(x, 0, 14 if has_b else 7), nothing, z, out))
    frame_of(view(out, 4, 3), frame)
    for k in range(3):
        lever_a[k], lever_b[k] = out[1 + k] - qa[k], out[1 + k] - qb[k]
    contact_rows(r.m, frame, lever_a, lever_b, has_b, view(work, r.H, 12 * r.m))
    for i in range(r.m):
        work[r.h + i], work[r.rate + i] = 0.0, 0.0
    work[r.h] = out[0]


@kernel
def _evaluate_relation(t, r, qa, qb, has_b, functions, memory):
    """A user's h, with ``H = dh/dq T(q)`` ([Notes], eq. 11.195); angular columns in axes of the bodies."""
    work = memory.work
    n = 14 if has_b else 7
    x, z, nothing = view(work, r.x, 14), view(memory.mem, r.z, r.n_z), view(memory.mem, 0, 0)
    at, h, rate, D = view(x, 0, n), view(work, r.h, r.m), view(work, r.rate, r.m), view(work, r.spare, r.m * n)
    # 1. arguments are copies, which the user's function may overwrite
    for i in range(7):
        x[i], x[7 + i] = qa[i], qb[i]
    for i in range(r.m):
        rate[i] = 0.0
    # 2. derivative by q, 7 a body: the user's, or central differences
    if r.jac_function != ABSENT:
        call_function(functions, r.jac_function, (t, at, h, z, D))
    else:
        differences(t, at, nothing, z, r.h_function, r.m, r.x, n, r.spare, r.spare + r.m * n, functions, memory)
    # 3. explicit time derivative, and h at the point itself, last, so that h is not that of a difference
    if r.h_t_function != ABSENT:
        call_function(functions, r.h_t_function, (t, at, nothing, z, rate))
    call_function(functions, r.h_function, (t, at, nothing, z, h))
    # 4. times the tangent map: quaternion rates to angular velocities
    psi = stack(12)
    for side in range(n // 7):
        rotations.rate_matrix(view(x, 7 * side + 3, 4), psi)
        for i in range(r.m):
            for k in range(3):
                work[r.H + 12 * i + 6 * side + k] = D[i * n + 7 * side + k]
                s = 0.0
                for l in range(4):
                    s += 0.5 * D[i * n + 7 * side + 3 + l] * psi[3 * l + k]
                work[r.H + 12 * i + 6 * side + 3 + k] = s
    if not has_b:
        for i in range(r.m):
            for k in range(6, 12):
                work[r.H + 12 * i + k] = 0.0


def _asked(lists, mem, work):
    """Functions of bodies and interactions, for `blaming`."""
    nothing = np.zeros(0)
    # 1. functions of bodies
    ends = [*(first for _, first in lists.part_names[1:]), lists.bodies.size]
    for (name, first), end in zip(lists.part_names, ends, strict=True):
        for e in range(end - first):
            body = lists.bodies[first + e]
            q, v, z = (mem[body[at] + shift :][:size] for at, shift, size in (("q", 0, 7), ("q", V, 6), ("z", 0, body["n_z"])))
            for field, size in {"fext": 3, "mext": 3, "fint": 3, "mint": 3, "jac_q": 42, "jac_v": 36}.items():
                state = (nothing, nothing) if field in ("fext", "mext") else (q, v)
                yield "part", name, e, field, body[f"{field}_function"], *state, z, size
    # 2. functions of interactions
    for name, r in zip(lists.interaction_names, lists.interactions, strict=True):
        x, z, m = work[r["x"] : r["x"] + (7 if r["b"] == ABSENT else 14)], mem[r["z"] : r["z"] + r["n_z"]], r["m"]
        for field, size in {"h": m, "jac": m * x.size, "h_t": m, "gap": 7, "velocity": m}.items():
            yield "interaction", name, 0, field, r[f"{field}_function"], nothing if field == "velocity" else x, nothing, z, size


blame = blaming(_asked)


def cause_of(records, prepared, m, status):
    """Likely reason why a step of member m failed, as text; empty if neither of the two known reasons applies."""
    return _contradiction(prepared, m, status) or _overlap_of_held(records, prepared, m, status)


def _contradiction(prepared, m, status):
    """Equations that no velocity satisfies, as of a motor on a blocked joint: by H and rate of the failed step."""
    lists, work = prepared.layout, prepared.work[m]
    # 1. unit rows, and rates in the same units
    rows, rates, names = [], [], []
    for name, it in zip(lists.interaction_names, lists.interactions, strict=True):
        for i in range(it["m"] if it["law"] == EQUALITY and work[it["off"]] == 0.0 else 0):
            row = np.zeros(6 * lists.bodies.size)
            for side, body in enumerate((it["a"], it["b"])):
                if body != ABSENT and not lists.bodies[body]["fixed"]:
                    at = it["H"] + 12 * i + 6 * side
                    row[6 * body : 6 * body + 6] = work[at : at + 6]
            size = norm(row)
            rows.append(row / size if size > 0.0 else row)
            rates.append(work[it["rate"] + i] / (size if size > 0.0 else 1.0))
            names.append(name)
    # homogeneous equations always have a solution
    if not np.any(rates) or not np.isfinite(rows).all():
        return ""
    # 2. part of the rates outside the range of H
    left, singular, _ = np.linalg.svd(np.array(rows))
    null = left[:, np.count_nonzero(singular > _DEPENDENT * singular[0]) :]
    missed = null @ (null.T @ np.array(rates))
    worst = abs(missed).max()
    if not worst > _CONTRADICTS * abs(np.array(rates)).max():
        return ""
    # 3. names of the interactions that take part in it
    parts = sorted({f"'{name}'" for name, each in zip(names, missed, strict=True) if abs(each) > _DEPENDENT * worst})
    return f"the equations of {' and '.join(parts)} contradict each other: no velocity of the bodies obeys all of them"


def _overlap_of_held(records, prepared, m, status):
    """Shapes that overlap on bodies that a joint holds together."""
    lists, mem, names = prepared.layout, memory(records)[m], {}
    # 1. names of bodies, and pairs that joints connect
    for name, first in lists.part_names:
        count = records.dtype[name].shape
        names |= {first + e: f"'{name}[{e}]'" if count else f"'{name}'" for e in range(count[0] if count else 1)}
    joined = {}
    for name, r in zip(lists.interaction_names, lists.interactions, strict=True):
        if r["law"] == EQUALITY and r["b"] != ABSENT:
            joined[frozenset((int(r["a"]), int(r["b"])))] = name
    # 2. contacts of such pairs that overlap
    for name, *_ in collisions_of(model_of(records)):
        found = records[name][m]
        sides = found["shape_body"][found["a"]], found["shape_body"][found["b"]]
        for a, b, y in zip(*sides, found["y"][: found["n"]], strict=False):
            pair = frozenset((int(a), int(b)))
            if pair in joined:
                x, other = (mem[lists.bodies[body]["q"] :][:3] for body in pair)
                if y < -_OVERLAP * norm(x - other):
                    held = " and ".join(names[body] for body in sorted(pair))
                    return (
                        f"{advice(status)}; the shapes of {held}, which '{joined[pair]}' holds together, overlap by {-y:.3g}: leave them "
                        f"out by pairs= of nsds.collisions"
                    )
    return ""
