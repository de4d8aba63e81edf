"""Joints that do work in a step: the mechanism has left the branch of its motion, as at a dead centre, and the step has failed.

At a bifurcation, as of a parallelogram whose links are collinear, the equations select the branch by the distance from it, and drifted
positions select the wrong one: impulses then throw the mechanism onto the other branch, or between both. Joints that hold for velocities
at both ends of a step do no work but ``O(h omega)`` of the work of bodies on each other through them.
"""

import math

from nsds._jit import kernel, tiny, view
from nsds.maths.vectors import norm
from nsds.model.layout import ABSENT
from nsds.schemes.problem.smooth_work import HELD, of_smooth
from nsds.schemes.rigid import problem
from nsds.schemes.rigid.bodies import kinetic_energy
from nsds.schemes.rigid.interactions import row_velocity
from nsds.schemes.rigid.tables import EQUALITY, FORCE, INERTIA, MASS

_LITTLE = 1e-3  # of the kinetic energy: work of joints explained by the curvature of an ordinary motion, also in short steps
_ROUNDING = 2.0**-48  # relative to the terms of a state: negligible velocities


@kernel
def are_held(h, w, interactions, work):
    """Whether joints hold for the velocities w at the start of the step, with H that lies in the work memory."""
    share = 0.0
    for i in range(w.size // 6):
        share = max(share, h * norm(view(w, 6 * i + 3, 3)))
    for k in range(interactions.size):
        it = interactions[k]
        for i in range(it.m if is_joint(it) and work[it.off] == 0.0 else 0):
            size = 0.0
            for side in range(2):
                body, row = it.a if side == 0 else it.b, it.H + 12 * i + 6 * side
                if body != ABSENT:
                    size += norm(view(work, row, 3)) * norm(view(w, 6 * body, 3))
                    size += norm(view(work, row + 3, 3)) * norm(view(w, 6 * body + 3, 3))
            if abs(row_velocity(0.0, it, i, w, work)) > max(HELD, share) * size:
                return False
    return True


@tiny
def is_joint(it):
    """Whether an interaction is a joint: equations that do not move by themselves."""
    return it.row != ABSENT and it.law == EQUALITY


@tiny
def are_only_joints(interactions, p, iwork):
    """Whether no active interaction makes velocities jump: all are joints or forces."""
    result = True
    for k in range(interactions.size):
        result = result and (iwork[p.begin + k] < 0 or is_joint(interactions[k]) or interactions[k].law == FORCE)
    return result


@kernel
def measure(h, size, v_old, v, bodies, memory):
    """(energy, expected, turn) of a step: kinetic, of both ends and of what forces do; h omega, as expected and at most.

    Expected is the turn of the fastest body with the velocity of the start and what forces alone add to it, where joints make of a push
    what they can, with an arm as long as the radius of gyration. size: where forces and moments lie, of each body; velocities are in axes
    of the bodies.
    """
    work, energy, expected, turn = memory.work, 0.0, 0.0, 0.0
    for i in range(bodies.size):
        body, at, m, I = bodies[i], 6 * i, memory.mem[bodies[i].q + MASS], view(memory.mem, bodies[i].q + INERTIA, 9)
        begun, ended, inertia = h * norm(view(work, v_old + at + 3, 3)), h * norm(view(work, v + at + 3, 3)), (I[0] + I[4] + I[8]) / 3.0
        turn = max(turn, begun, ended)
        if body.fixed:
            expected = max(expected, begun, ended)
            continue
        push, spin = h * work[size + 2 * i] / m, h * work[size + 2 * i + 1] / inertia
        energy += 0.5 * m * push * push + 0.5 * inertia * spin * spin
        energy += kinetic_energy(body, v_old + at, memory) + kinetic_energy(body, v + at, memory)
        expected = max(expected, begun + h * (0.5 * push * math.sqrt(m / inertia) + spin))
    return energy, min(expected, turn), turn


@kernel
def work_of_joints(w_old, n_contacts, n_blocks, interactions, p, memory):
    """``r^T H (w + w_k) / 2`` of the equations of joints; w_old: where w_k, of the start of the step, lies in the work memory."""
    stated, done = problem.stated_blocks(n_contacts, n_blocks, p, memory), 0.0
    for k in range(interactions.size):
        it, first = interactions[k], p.d * memory.iwork[p.begin + k]
        for i in range(first, first + it.m if is_joint(it) and first >= 0 else first):
            for l in range(12 if it.b != ABSENT else 6):
                at = 6 * (it.a if l < 6 else it.b) + l % 6
                done += 0.5 * stated.r[i] * stated.H[12 * i + l] * (memory.work[p.w + at] + memory.work[w_old + at])
    return done


@kernel
def work_beyond_reason(were_held, n_contacts, n_blocks, h, s, memory):
    """`beyond_reason` for the impulses of joints in the problem that was solved. In w_free: w of the start of the step. Work: w_end.

    Rounding: of impulses, on velocities below the rounding of the state (`moreau_jean.state_worth`).
    """
    p, rounding, is_smooth = s.plan[0], 0.0, n_contacts == 0 and are_only_joints(s.interactions, s.plan[0], memory.iwork)
    done = work_of_joints(p.w_free, n_contacts, n_blocks, s.interactions, p, memory)
    for i in range(s.bodies.size if done != 0.0 else 0):
        I, m = view(memory.mem, s.bodies[i].q + INERTIA, 9), memory.mem[s.bodies[i].q + MASS]
        for side in range(0 if s.bodies[i].fixed else 2):
            mass, worth = m if side == 0 else (I[0] + I[4] + I[8]) / 3.0, _ROUNDING * memory.work[p.worth + 2 * i + side]
            rounding += (memory.work[p.impulses + 2 * i + side] + mass * worth) * worth
    return beyond_reason(done, rounding, were_held, is_smooth, h, s.bodies, p, memory)


@kernel
def beyond_reason(done, rounding, were_held, is_smooth, h, bodies, p, memory):
    """Work of joints relative to the kinetic energy, if it is more than in a step on its branch; else 0.

    That is ``_LITTLE`` of the kinetic energy T, and ``h omega (T T')^(1/2)`` with T' the energy of what velocities have changed by; besides
    rounding. Of a smooth step, in which nothing but joints and forces acts, it is no more than `of_smooth`, either.
    were_held: joints held before; else they may take energy, as where a latch closes. p says where v_old, v and size lie, see `measure`,
    and w_end, scratch for velocities.
    """
    if done == 0.0:
        return 0.0
    work, changed = memory.work, 0.0
    energy, expected, turn = measure(h, p.size, p.v_old, p.v, bodies, memory)
    for i in range(bodies.size):
        for l in range(6 * i, 6 * i + 6):
            work[p.w_end + l] = work[p.v + l] - work[p.v_old + l]
        changed += 0.0 if bodies[i].fixed else kinetic_energy(bodies[i], p.w_end + 6 * i, memory)
    bound = _LITTLE * energy + turn * math.sqrt(energy * changed)
    if is_smooth and were_held:
        bound = min(bound, of_smooth(expected, energy))
    bound += rounding
    return abs(done) / energy if done > bound or (were_held and -done > bound) else 0.0
