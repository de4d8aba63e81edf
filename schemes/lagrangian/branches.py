"""Joints between coordinates of one's own that do work in a smooth step: the mechanism has left its branch, and the step has failed.

As `nsds.schemes.rigid.branches`. Here the turn of a step is that of the rows H by the velocity of its start, as the mass measures them:
``|H(q_k + h v_k) - H_k| / |H_k|`` with the norm of ``H M^-1 H^T``. Of a point on a circle it is the angle h omega, of a rod about its end
0.87 of that. It is found only where a bound without turn does not suffice.
"""

import math

from nsds._jit import kernel, tiny
from nsds.model.layout import ABSENT, DENSE
from nsds.schemes.lagrangian.outputs import keep_state
from nsds.schemes.lagrangian.relations import EVERY, evaluate_relations
from nsds.schemes.linear_algebra import subtract_product
from nsds.schemes.problem.rows import VELOCITY
from nsds.schemes.problem.smooth_work import HELD, of_smooth
from nsds.status import CONVERGED, INEXACT, LEFT_BRANCH

_OF_ROD = math.sqrt(4.0 / 3.0)  # turn of a rod about its end, relative to that of its rows
_ROUNDING = 2.0**-48  # relative to the terms of a state: negligible velocities


def are_bent(constraints):
    """Which constraints are joints whose rows turn."""
    return (
        (constraints["bilateral"] != 0)
        & (constraints["level"] == VELOCITY)
        & (constraints["h"] != ABSENT)
        & (constraints["rate"] == ABSENT)
    )


@tiny
def is_joint(c):
    """Whether a constraint is an equation that does not move by itself."""
    return c.bilateral != 0 and c.level == VELOCITY and c.rate == ABSENT


@kernel
def keep_start(parts, elements, entries, p, memory):
    """State and rows at the start of the step. Out: q_begun, v_begun, H_begun, pressed."""
    work = memory.work
    keep_state(parts, elements, p.q_begun, p.v_begun, memory)
    for i in range(p.n_dofs):
        work[p.pressed + i] = 0.0
    for k in range(entries.size):
        work[p.H_begun + k] = work[entries[k].coefficient]


@kernel
def press(sign, constraints, entries, p, work):
    """``sign H^T r`` of the joints, with the multipliers r in total, added to pressed."""
    for i in range(constraints.size):
        c = constraints[i]
        for k in range(c.entry, c.entry_end if is_joint(c) else c.entry):
            work[p.pressed + entries[k].dof] += sign * work[p.total + i] * work[entries[k].coefficient]


@kernel
def take_impulses(parts, elements, p, memory):
    """The impulses of bodies in the record are those of joints, where nothing else acts. Out: pressed."""
    for k in range(elements.size):
        el = elements[k]
        q, n = parts[el.part].q + el.e * parts[el.part].stride, parts[el.part].n
        for i in range(n):
            memory.work[p.pressed + el.dof + i] = memory.mem[q + 2 * n + i]


@tiny
def work_of_pressed(parts, elements, p, memory):
    """``P . (v + v_k) / 2`` of the impulses of joints in pressed."""
    work, done = memory.work, 0.0
    for k in range(elements.size):
        el = elements[k]
        q, n = parts[el.part].q + el.e * parts[el.part].stride, parts[el.part].n
        for i in range(n):
            done += 0.5 * work[p.pressed + el.dof + i] * (work[p.v_begun + el.dof + i] + memory.mem[q + n + i])
    return done


@tiny
def _is_smooth(constraints, memory):
    """Whether nothing but joints has a multiplier."""
    result = True
    for i in range(constraints.size):
        result = result and (is_joint(constraints[i]) or memory.mem[constraints[i].lam] == 0.0)
    return result


@tiny
def _of_mass(part, el, x, p, memory):
    """``x^T M x`` of an element; x: an offset in the work memory. Work: solution."""
    work, result = memory.work, 0.0
    for i in range(part.n):
        work[p.solution + i] = 0.0
    if el.mass == ABSENT:
        at = part.M + el.e * part.stride
        subtract_product(part.M_kind, part.n, part.M_nnz, memory.mem, memory.imem, at, 1.0, work, x, p.solution)
    else:
        subtract_product(DENSE, part.n, 0, work, memory.imem, el.mass, 1.0, work, x, p.solution)
    for i in range(part.n):
        result -= work[x + i] * work[p.solution + i]
    return result


@kernel
def gain_of_energy(s, memory):
    """Change of the kinetic energy in the step, with masses as they are now. Work: at_v."""
    work, p, gain = memory.work, s.plan[0], 0.0
    for k in range(s.elements.size):
        el = s.elements[k]
        part = s.parts[el.part]
        v = part.q + el.e * part.stride + part.n
        gain -= _of_mass(part, el, p.v_begun + el.dof, p, memory)
        for i in range(part.n):
            work[p.at_v + i] = memory.mem[v + i]
        gain += _of_mass(part, el, p.at_v, p, memory)
    return 0.5 * gain


@kernel
def _energies(h, s, memory):
    """Twice the kinetic energies: of the start, of the end, and of what forces add in the step. Work: at_v."""
    mem, work, p = memory.mem, memory.work, s.plan[0]
    begun, ended, pushed = 0.0, 0.0, 0.0
    for k in range(s.elements.size):
        el = s.elements[k]
        part = s.parts[el.part]
        v = part.q + el.e * part.stride + part.n
        begun += _of_mass(part, el, p.v_begun + el.dof, p, memory)
        for i in range(part.n):
            work[p.at_v + i] = mem[v + i]
            m, push = work[el.diagonal + i * el.diagonal_step], h * work[p.f + el.dof + i]
            pushed += push * push / m if m > 0.0 else 0.0
        ended += _of_mass(part, el, p.at_v, p, memory)
    return begun, ended, pushed


@kernel
def _turn(t, s, options, functions, memory):
    """Turn of the rows of joints by the velocity of the start, the largest. State and rows are those of the end again."""
    mem, work, p, largest = memory.mem, memory.work, s.plan[0], 0.0
    # 1. there and back
    for is_there in (True, False):
        for k in range(s.elements.size):
            el = s.elements[k]
            q = s.parts[el.part].q + el.e * s.parts[el.part].stride
            for i in range(s.parts[el.part].n):
                at = el.dof + i
                if is_there:
                    work[p.q_ended + at] = mem[q + i]
                mem[q + i] = work[p.q_begun + at] + options.h * work[p.v_begun + at] if is_there else work[p.q_ended + at]
        evaluate_relations(t, 1.0, 0.0, EVERY, options, s.relations, p, functions, memory)
        if is_there:
            largest = _largest_turn(s.constraints, s.elements, s.entries, p, work)
    return largest


@kernel
def _largest_turn(constraints, elements, entries, p, work):
    """Largest turn of a row of joints, against its place at the start."""
    largest = 0.0
    for i in range(constraints.size):
        c, change, size = constraints[i], 0.0, 0.0
        for k in range(c.entry, c.entry_end if is_joint(c) else c.entry):
            el = elements[entries[k].body]
            m, H = work[el.diagonal + (entries[k].dof - el.dof) * el.diagonal_step], work[p.H_begun + k]
            change += (work[entries[k].coefficient] - H) ** 2 / m if m > 0.0 else 0.0
            size += H * H / m if m > 0.0 else 0.0
        largest = max(largest, math.sqrt(change / size) if size > 0.0 else 0.0)
    return largest


@tiny
def _are_held(turn, constraints, entries, p, work):
    """Whether joints held at the start of the step, for its velocities."""
    result = True
    for i in range(constraints.size):
        c, rate, size = constraints[i], 0.0, 0.0
        for k in range(c.entry, c.entry_end if is_joint(c) else c.entry):
            term = work[p.H_begun + k] * work[p.v_begun + entries[k].dof]
            rate, size = rate + term, size + abs(term)
        result = result and abs(rate) <= max(HELD, turn) * size
    return result


@kernel
def judge(status, residual, done, slack, is_of_end, t, s, options, functions, memory):
    """(status, residual), LEFT_BRANCH with the work done by joints, of the kinetic energy, where that is more than in a step on its branch.

    slack: what of it forces may have done; is_of_end: all impulses have H of the end of the step, so that the scheme itself takes twice
    the energy. The state, multipliers, forces f and H are those of the end. options: of the Newton form.
    """
    if status not in (CONVERGED, INEXACT) or not _is_smooth(s.constraints, memory):
        return status, residual
    # 1. energies, and rounding: of impulses and of momenta, on velocities below the rounding of the state
    mem, work, p, h = memory.mem, memory.work, s.plan[0], options.h
    begun, ended, pushed = _energies(h, s, memory)
    energy = 0.5 * (begun + ended + pushed)
    for k in range(s.elements.size):
        el = s.elements[k]
        q, n = s.parts[el.part].q + el.e * s.parts[el.part].stride, s.parts[el.part].n
        for i in range(n):
            worth = _ROUNDING * (abs(mem[q + n + i]) + abs(work[p.v_begun + el.dof + i]) + abs(mem[q + i]) / h)
            slack += (abs(work[p.pressed + el.dof + i]) + abs(work[el.diagonal + i * el.diagonal_step]) * worth) * worth
    if abs(done) <= of_smooth(0.0, energy) + slack:
        return status, residual
    # 2. the turn that velocities of the start explain, and what forces add to them
    turn = _OF_ROD * _turn(t, s, options, functions, memory)
    expected = turn * (1.0 + 0.5 * math.sqrt(pushed / begun)) if begun > 0.0 else 0.0
    expected *= math.sqrt(2.0) if is_of_end else 1.0
    if abs(done) <= of_smooth(expected, energy) + slack or not _are_held(turn, s.constraints, s.entries, p, work):
        return status, residual
    return LEFT_BRANCH, max(residual, abs(done) / energy)
